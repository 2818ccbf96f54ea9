#ifndef WEIR_SESSION_PASSES_TILED_SUBPLAN_H_
#define WEIR_SESSION_PASSES_TILED_SUBPLAN_H_

#include <memory>
#include <vector>

#include "weir/session/plan/subplan.h"
#include "weir/session/runtime/executor.h"

namespace weir {

// A kernel that runs a subplan on the rows of a batch, slice by slice (tile_batch.cc). Each slice
// runs from the first node to the last on one thread; several slices run at once.
class TiledSubplan {
 public:
  struct Layout {
    int64_t rows = 0;            // of a slice; divides the rows of the batch
    std::vector<bool> sliced;    // by feed: whether it is sliced, or fed as a whole
    std::vector<Shape> results;  // of the whole batch
  };
  // `slice`: the nodes, before all passes that depend on shapes. Returns an error of these passes,
  // or INTERNAL if the results of a slice do not have the shapes of the layout.
  static absl::StatusOr<std::shared_ptr<TiledSubplan>> Make(PlanGraph slice,
                                                            absl::Span<const Shape> feed_shapes,
                                                            const PlanEnvironment& env,
                                                            Layout layout,
                                                            const SubplanSignature& signature);
  // The kernel definition of nodes that run one.
  static const KernelDef& Def();
  const Node& node() const { return *node_; }

  absl::Status Run(KernelContext& c);

 private:
  TiledSubplan(std::unique_ptr<const Plan> plan, const PlanEnvironment& env, Layout layout);
  absl::Status RunSlice(const KernelContext& c, const StepInfo& step, int64_t slice,
                        absl::Span<Tensor* const> results);

  const Layout layout_;
  Graph graph_;  // contains the node
  const Node* node_ = nullptr;
  Executor executor_;
};

}  // namespace weir

#endif  // WEIR_SESSION_PASSES_TILED_SUBPLAN_H_
