#ifndef WEIR_CAPI_EAGER_RECORDER_H_
#define WEIR_CAPI_EAGER_RECORDER_H_

#include <atomic>
#include <memory>

#include "weir/session/session.h"

namespace weir::proto {
class RunMetadata;
}

namespace weir::capi {

// What a context tells about executions: when ops ran, while it is enabled, and where, on stderr.
// Thread-safe.
class Recorder {
 public:
  Recorder();
  ~Recorder();

  void Enable(bool enable) { is_enabled_.store(enable, std::memory_order_relaxed); }
  void PrintPlacement(bool print) { prints_.store(print, std::memory_order_relaxed); }
  // Runs the step of an op.
  absl::Status Run(const std::string& op, const Step& step, absl::Span<const Tensor> feeds,
                   Tensors* fetches);
  // Returns the record as a serialized RunMetadata, and empties it.
  std::string Take();

 private:
  absl::Status RunAndRecord(const Step& step, absl::Span<const Tensor> feeds, Tensors* fetches);

  std::atomic<bool> is_enabled_{false}, prints_{false};
  Mutex mutex_;
  std::unique_ptr<proto::RunMetadata> record_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weir::capi

#endif  // WEIR_CAPI_EAGER_RECORDER_H_
