#ifndef WEIR_SESSION_RUNTIME_FUNCTIONS_H_
#define WEIR_SESSION_RUNTIME_FUNCTIONS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "weir/core/io/function_library.h"
#include "weir/core/runtime/function.h"
#include "weir/core/tensor/mutex.h"
#include "weir/session/plan/plan_environment.h"

namespace weir {

// The functions of a session's graph, ready to run. Each pair of a function and its attributes is
// one body with a plan of its own, which is compiled at the first call and shared by all callers.
class SessionFunctions final : public Functions {
 public:
  // `env` is the session's.
  explicit SessionFunctions(const PlanEnvironment& env);
  ~SessionFunctions() override;

  absl::StatusOr<Function*> Find(const FunctionRef& function) override;
  absl::StatusOr<FunctionBody> MakeBody(const FunctionRef& function,
                                        absl::string_view prefix) override;
  absl::Status CheckDevice(absl::string_view name) const override;
  // Calls PreparedStep::Forget for all bodies.
  void Forget();

 private:
  class Body;
  absl::StatusOr<Body*> FindBody(const FunctionRef& function) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  FunctionRef Normalized(const FunctionRef& function) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<FunctionBody> Instantiate(const FunctionRef& function,
                                           absl::string_view prefix = "")
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status MergeGraphLibrary() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_)
      ABSL_SHARED_LOCKS_REQUIRED(env_.graph_mutex);
  absl::Status MergeLibrary(const std::shared_ptr<const FunctionLibrary>& library)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A body and those that it calls, directly or not; `complete`: all of them.
  struct Callees {
    std::vector<Body*> bodies;
    bool complete = false;
  };
  Callees CalledBy(Body& body) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayWait(const Callees& called) const;
  static Function::State StateOf(const Callees& called);

  const PlanEnvironment env_;
  Mutex mutex_;
  // The graph's functions, and those that gradients of functions have added.
  std::shared_ptr<const FunctionLibrary> library_ ABSL_GUARDED_BY(mutex_);
  // The graph's library, which is already in library_.
  std::shared_ptr<const FunctionLibrary> graph_library_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, std::unique_ptr<Body>> bodies_ ABSL_GUARDED_BY(mutex_);
};

// Returns the step that runs a body: its arguments are fed and its results fetched, except results
// that are arguments. Sets `passed`, by result, to the argument that it is, or -1.
PlanRequest MakePlanRequest(const FunctionBody& body, std::vector<int>* passed);

}  // namespace weir

#endif  // WEIR_SESSION_RUNTIME_FUNCTIONS_H_
