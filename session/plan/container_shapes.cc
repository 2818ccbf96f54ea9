#include "weir/session/plan/container_shapes.h"

#include <optional>
#include <vector>

#include "absl/algorithm/container.h"
#include "weir/session/plan/disjoint_sets.h"

namespace weir {

namespace {

// The shape of a row: of `all` without dimension 0.
Shape RowShape(const Shape& all) {
  return all.has_rank() && all.rank() > 0 ? all.Sub(1) : Shape::UnknownRank();
}

// Returns the shape of the value that node `n` stores in the stack or array whose handle is its
// input `k`; nothing if it stores none there.
std::optional<Shape> StoredShape(const PlanGraph& plan, const PlanNode& n, size_t k) {
  const ContainerUse& use = n.traits().container;
  if (use.type == ContainerUse::Type::kList) return Shape::UnknownRank();
  if (k == 0 && use.kind == ContainerUse::Kind::kPuts) return plan.ShapeOf(n.inputs[use.value]);
  if (k == 0 && use.kind == ContainerUse::Kind::kPutsRows)
    return RowShape(plan.ShapeOf(n.inputs[use.value]));
  if (use.kind == ContainerUse::Kind::kTakes || use.kind == ContainerUse::Kind::kObserves)
    return std::nullopt;
  return Shape::UnknownRank();
}

}  // namespace

bool ContainerShapes::Update(const PlanGraph& plan) {
  const bool more = UpdateHandles(plan);
  return UpdateLists(plan) || more;
}

// Infers the shapes of values that are popped from stacks or read from arrays, if their handles
// are used only by nodes that store and load values. Returns false if nothing new is known.
bool ContainerShapes::UpdateHandles(const PlanGraph& plan) {
  const auto makes_handle = [](const PlanNode& n) {
    return n.traits().container.kind == ContainerUse::Kind::kMakes && n.num_outputs() > 0 &&
           n.type(0) == DT_RESOURCE;
  };
  if (absl::c_none_of(plan.nodes, makes_handle)) return false;
  std::vector<int> created_by(plan.nodes.size(), -1);  // by node whose output is such a handle
  absl::flat_hash_map<int, std::optional<Shape>>
      put;  // by the node that creates the handle; empty: nothing stored
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlanNode& n = plan.nodes[i];
    if (makes_handle(n)) created_by[i] = static_cast<int>(i);
    for (size_t k = 0; k < n.inputs.size(); ++k) {
      const PlanValue& v = n.inputs[k];
      const int maker = created_by[v.node];
      if (maker < 0 || plan.nodes[v.node].type(v.output) != DT_RESOURCE) continue;
      if (n.Is(ControlFlow::kEnter) || n.is_identity()) {
        created_by[i] = maker;
      } else if (const std::optional<Shape> one = StoredShape(plan, n, k)) {
        std::optional<Shape>& all = put[maker];
        all = all ? CommonShape(*all, *one) : one;
      }
    }
  }
  bool more = false;
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlanNode& n = plan.nodes[i];
    if (n.traits().container.kind != ContainerUse::Kind::kTakes ||
        plan.nodes[n.inputs[0].node].type(n.inputs[0].output) != DT_RESOURCE) {
      continue;
    }
    const auto found = put.find(created_by[n.inputs[0].node]);
    if (found != put.end()) more |= Record(static_cast<int>(i), *found->second);
  }
  return more;
}

// Returns true if the shape is new.
bool ContainerShapes::Record(int node, const Shape& shape) {
  if (!shape.has_rank()) return false;
  const auto [known, is_new] = shapes_.try_emplace(node, shape);
  const bool differs = known->second != shape;
  known->second = shape;
  return is_new || differs;
}

// Does the same for tensor lists. A list is a value: it contains the values stored in it and in
// the lists it was derived from through list ops and loop variables. These lists form a group.
// Nothing is known about a group into which another value flows.
bool ContainerShapes::UpdateLists(const PlanGraph& plan) {
  const auto takes = [](const PlanNode& n) {
    const ContainerUse& use = n.traits().container;
    return use.kind == ContainerUse::Kind::kTakes && use.type == ContainerUse::Type::kList;
  };
  if (absl::c_none_of(plan.nodes, takes)) return false;
  struct Group {
    bool is_known = true;
    std::optional<Shape> put = {};  // their common shape; empty: none so far
  };
  const int count = static_cast<int>(plan.nodes.size());
  DisjointSets sets(count);  // of nodes whose output 0 may be a list
  std::vector<Group> groups(plan.nodes.size());
  const auto group_of = [&](int i) -> Group& { return groups[sets.Find(i)]; };
  const auto put = [&](int i, const Shape& shape) {
    std::optional<Shape>& all = group_of(i).put;
    all = all ? CommonShape(*all, shape) : shape;
  };
  const auto unite = [&](int i, const PlanValue& list) {
    if (list.output != 0) {
      group_of(i).is_known = false;
    } else if (sets.Find(i) != sets.Find(list.node)) {
      const Group joining = group_of(list.node);
      sets.Join(list.node, i);
      group_of(i).is_known &= joining.is_known;
      if (joining.put) put(i, *joining.put);
    }
  };
  for (int i = 0; i < count; ++i) {
    const PlanNode& n = plan.nodes[i];
    if (n.num_outputs() == 0 || n.type(0) != DT_VARIANT) continue;
    const auto shape_of = [&](size_t k) {
      return plan.nodes[n.inputs[k].node].shapes[n.inputs[k].output];
    };
    const ContainerUse& use = n.traits().container;
    const bool is_list_op =
        use.kind != ContainerUse::Kind::kNone && use.type == ContainerUse::Type::kList;
    if (is_list_op && use.kind == ContainerUse::Kind::kPutsRows) {
      put(i, RowShape(shape_of(use.value)));
    } else if (is_list_op && use.kind == ContainerUse::Kind::kTakes && n.num_outputs() == 1) {
      group_of(i).is_known = false;  // an element that is a list itself
    } else if (n.Is(ControlFlow::kEnter) || n.is_identity() ||
               (is_list_op && use.kind != ContainerUse::Kind::kMakes)) {
      unite(i, n.inputs[0]);
      if (use.kind == ContainerUse::Kind::kPuts) put(i, shape_of(use.value));
    } else if (!is_list_op) {
      group_of(i).is_known = false;
    }
  }
  for (const PlanGraph::Carry& c : plan.carries) {
    if (plan.nodes[c.carry].type(0) == DT_VARIANT) unite(c.carry, c.next);
  }
  bool more = false;
  for (int i = 0; i < count; ++i) {
    const PlanNode& n = plan.nodes[i];
    if (!takes(n) || n.inputs[0].output != 0) continue;
    const Group& group = group_of(n.inputs[0].node);
    if (group.is_known && group.put) more |= Record(i, *group.put);
  }
  return more;
}

}  // namespace weir
