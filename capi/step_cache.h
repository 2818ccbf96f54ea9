#ifndef WEIR_CAPI_STEP_CACHE_H_
#define WEIR_CAPI_STEP_CACHE_H_

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "tensorflow/c/c_api.h"
#include "weir/core/tensor/mutex.h"
#include "weir/session/session.h"

namespace weir::capi {

// The handles of a call of TF_SessionRun, which stand for one step.
struct StepHandles {
  absl::Span<const TF_Output> inputs, outputs;
  absl::Span<const TF_Operation* const> targets;
};

// A prepared step, and the types of its feeds.
struct PreparedCall {
  Step step;
  DataTypes feed_types;
};

// The steps that a session has run, by their handles, so that a call neither checks nor converts
// handles that it had before. Handles of operations live as long as the session's graph: what was
// valid stays so.
//
// Thread-safe. Find takes no lock and writes nothing, so callers do not slow each other down.
// Therefore no step is removed: the cache keeps the first 1,000, which is what Weir's session
// keeps, and later ones are prepared by each call.
class StepCache {
 public:
  static constexpr size_t kMaxSteps = 1000;

  StepCache() = default;
  ~StepCache();
  StepCache(const StepCache&) = delete;
  StepCache& operator=(const StepCache&) = delete;

  // Returns the step of these handles; null if there is none. Valid as long as the cache.
  const PreparedCall* Find(const StepHandles& handles) const;
  // Adds a step. If another thread has added it meanwhile, or there is no room, nothing happens.
  void Insert(const StepHandles& handles, const PreparedCall& call);

 private:
  struct Entry;
  static constexpr size_t kBuckets = 512;

  // Lists of entries; an entry is immutable once it is in one.
  std::array<std::atomic<const Entry*>, kBuckets> buckets_{};
  Mutex mutex_;
  size_t num_steps_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace weir::capi

#endif  // WEIR_CAPI_STEP_CACHE_H_
