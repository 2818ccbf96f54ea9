#ifndef WEIR_SESSION_UNINITIALIZED_H_
#define WEIR_SESSION_UNINITIALIZED_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "weir/session/plan.h"

namespace weir {

// The checkpoint that was restored last in a session, for messages. Kept among its resources.
class RestoredCheckpoint final : public Resource {
 public:
  // The one of these resources, made if there is none.
  static std::shared_ptr<RestoredCheckpoint> Of(ResourceMap& resources);

  // `variables`: the nodes that were given values.
  void Set(std::string path, std::shared_ptr<const std::vector<std::string>> variables);
  // Its path, if one was restored and gave the variable of this node no value; else empty.
  std::string Lacking(const std::string& variable) const;
  std::string Describe() const override { return "the restored checkpoint"; }

 private:
  mutable std::mutex mutex_;
  std::string path_;
  std::shared_ptr<const std::vector<std::string>> variables_;
};

// A step fails at the first variable that it finds without a value. This adds the names of all that
// it reads and that have none, each with where a value could come from. Other errors stay as they
// are. `prepare` makes what is left of the step's graph, as PreparePlan does; only if it is needed.
absl::Status NameUninitialized(const absl::Status& error, const Graph& graph,
                               absl::FunctionRef<absl::StatusOr<PlanGraph>()> prepare,
                               ResourceMap& resources);

}  // namespace weir

#endif  // WEIR_SESSION_UNINITIALIZED_H_
