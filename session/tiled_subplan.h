#ifndef WEIR_SESSION_TILED_SUBPLAN_H_
#define WEIR_SESSION_TILED_SUBPLAN_H_

#include <memory>
#include <vector>

#include "weir/session/executor.h"
#include "weir/session/subplan.h"

namespace weir {

// Nodes of a plan that work on each row of a batch by itself, as one kernel (tile_batch.cc). It
// runs them on one slice of the batch after the other, every slice from the first node to the last
// on one thread, several slices at once.
class TiledSubplan {
 public:
  struct Layout {
    int64_t rows = 0;            // of a slice; divides those of the batch
    std::vector<bool> cut;       // by feed: a slice of it is fed, or all of it
    std::vector<Shape> results;  // of the whole batch
  };
  // `slice`: the nodes, before all passes that follow from shapes. An error of these passes, or if
  // the results of a slice would not have the shapes that the layout says.
  static absl::StatusOr<std::shared_ptr<TiledSubplan>> Make(PlanGraph slice,
                                                          absl::Span<const Shape> feed_shapes,
                                                          const PlanEnvironment& env, Layout layout,
                                                          const SubplanSignature& face);
  // Of nodes that run one.
  static const KernelDef& Def();
  const Node& node() const { return *node_; }

  // To be called by an Executor's item alone, whose step is a TracedStep.
  absl::Status Run(KernelContext& c);

 private:
  TiledSubplan(std::unique_ptr<const Plan> plan, const PlanEnvironment& env, Layout layout);
  absl::Status RunSlice(const KernelContext& c, const TracedStep& step, int64_t slice,
                        absl::Span<Tensor* const> results);

  const Layout layout_;
  Graph graph_;  // has the node
  const Node* node_ = nullptr;
  Executor executor_;
};

}  // namespace weir

#endif  // WEIR_SESSION_TILED_SUBPLAN_H_
