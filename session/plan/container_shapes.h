#ifndef WEIR_SESSION_PLAN_CONTAINER_SHAPES_H_
#define WEIR_SESSION_PLAN_CONTAINER_SHAPES_H_

#include "absl/container/flat_hash_map.h"
#include "weir/ops/lib/common_shape.h"
#include "weir/session/plan/plan_graph.h"

namespace weir {

// The shapes of values that are popped from a stack, or read from a tensor array or a tensor list.
// Such a value is one of those that were stored there, so it has the shape that these have in
// common.
class ContainerShapes {
 public:
  // Infers the shapes from those that the nodes of the plan have now. Returns false if nothing new
  // is known.
  bool Update(const PlanGraph& plan);
  // Returns the shape of the last output of a node that pops or reads; null if it is not known.
  const Shape* Find(int node) const {
    const auto it = shapes_.find(node);
    return it == shapes_.end() ? nullptr : &it->second;
  }

 private:
  bool UpdateHandles(const PlanGraph& plan);
  bool UpdateLists(const PlanGraph& plan);
  bool Record(int node, const Shape& shape);

  absl::flat_hash_map<int, Shape> shapes_;  // by node
};

}  // namespace weir

#endif  // WEIR_SESSION_PLAN_CONTAINER_SHAPES_H_
