#ifndef WEIR_CAPI_EAGER_RECORDER_H_
#define WEIR_CAPI_EAGER_RECORDER_H_

#include <atomic>
#include <memory>

#include "weir/session/session.h"

namespace weir::proto {
class RunMetadata;
}

namespace weir::capi {

// Records when ops ran, between Enable and Disable. Thread-safe.
class Recorder {
 public:
  Recorder();
  ~Recorder();

  bool is_enabled() const { return is_enabled_.load(std::memory_order_relaxed); }
  void Enable(bool enable) { is_enabled_.store(enable, std::memory_order_relaxed); }
  // Runs a step, and adds its nodes to the record.
  absl::Status Run(const Step& step, absl::Span<const Tensor> feeds, Tensors* fetches);
  // Returns the record as a serialized RunMetadata, and empties it.
  std::string Take();

 private:
  std::atomic<bool> is_enabled_{false};
  Mutex mutex_;
  std::unique_ptr<proto::RunMetadata> record_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weir::capi

#endif  // WEIR_CAPI_EAGER_RECORDER_H_
