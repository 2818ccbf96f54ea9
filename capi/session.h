#ifndef WEIR_CAPI_SESSION_H_
#define WEIR_CAPI_SESSION_H_

#include <map>
#include <memory>
#include <string>

#include "weir/capi/objects.h"
#include "weir/capi/step_cache.h"

// A session, and what its functions share.
struct TF_Session {
  TF_Graph* graph = nullptr;  // kept alive by its list of sessions
  std::unique_ptr<weir::Session> session;
  weir::capi::StepCache steps;  // destroyed before the session, which owns their memory
  std::atomic<bool> is_closed{false};
  weir::Mutex mutex;
  std::map<std::string, weir::PartialRun, std::less<>> partial_runs ABSL_GUARDED_BY(mutex);
  int64_t num_partial_runs ABSL_GUARDED_BY(mutex) = 0;
};

namespace weir::capi {

// Returns the options of a session with the kernels of plug-ins.
SessionOptions DefaultOptions();
// Adds a session to those of its graph.
TF_Session* Register(TF_Graph* graph, std::unique_ptr<Session> session)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(graph->mutex);

// Converts the values of feeds of these types. INVALID_ARGUMENT for a value of another type.
absl::StatusOr<Tensors> FeedValues(absl::Span<const DataType> types, TF_Tensor* const* values);
// Sets the values of outputs to null, which they are after an error.
void ClearFetches(TF_Tensor** outputs, int count);
// Stores fetched values; on an error none is.
absl::Status StoreFetches(Tensors values, TF_Tensor** outputs);
// Returns the error of a step with the failed node marked, as TensorFlow's clients expect it.
absl::Status StepError(const absl::Status& error);

}  // namespace weir::capi

#endif  // WEIR_CAPI_SESSION_H_
