#ifndef WEIR_SESSION_RUNTIME_UNINITIALIZED_H_
#define WEIR_SESSION_RUNTIME_UNINITIALIZED_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "weir/core/tensor/mutex.h"
#include "weir/session/plan/plan_environment.h"
#include "weir/session/plan/plan_graph.h"

namespace weir {

// The checkpoint that was restored last in a session, for error messages. Stored among its
// resources.
class RestoredCheckpoint final : public Resource {
 public:
  // Returns the one of these resources; creates it if there is none.
  static std::shared_ptr<RestoredCheckpoint> Of(ResourceMap& resources);

  // `variables`: the nodes whose variables were assigned.
  void Set(std::string path, std::shared_ptr<const std::vector<std::string>> variables);
  // Returns the checkpoint's path, if one was restored but did not contain this node's variable;
  // else empty.
  std::string Lacking(const std::string& variable) const;
  std::string Describe() const override { return "the restored checkpoint"; }

 private:
  mutable Mutex mutex_;
  std::string path_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const std::vector<std::string>> variables_ ABSL_GUARDED_BY(mutex_);
};

// A step fails at the first uninitialized variable. This function adds the names of all
// uninitialized variables that the step reads, each with its initializer and the checkpoint that
// lacks it, if any. Other errors are returned unchanged. `prepare` prunes the step's graph, as
// PreparePlan does; it is called only if needed.
absl::Status NameUninitialized(const absl::Status& error, const Graph& graph,
                               absl::FunctionRef<absl::StatusOr<PlanGraph>()> prepare,
                               ResourceMap& resources);

}  // namespace weir

#endif  // WEIR_SESSION_RUNTIME_UNINITIALIZED_H_
