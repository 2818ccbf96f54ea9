#include "weir/ops/framework/gradient_util.h"

#include <algorithm>
#include <map>

#include "weir/core/graph/scope.h"
#include "weir/ops/framework/state.h"
#include "weir/ops/lib/array.h"

namespace weir {

bool IsTrainable(DataType type) {
  return IsFloating(type) || IsComplex(type) || type == DT_RESOURCE || type == DT_VARIANT;
}

namespace {

// Uses only the shape of the switched value, but takes it from the same output of a Switch, so that
// the zeros are dead when the output is.
Output ZerosForSwitch(const Output& y) {
  Graph& graph = y.graph();
  Node* sides = AddNode("Switch", {y.node->input(0), y.node->input(1)});
  if (sides == nullptr) return Output();
  const Output side(sides, y.index);
  // Zeros of a list have as many elements, zeros of a map none; only the value determines this.
  if (y.dtype() == DT_VARIANT) return ZerosLike(side, DT_INVALID, {}, /*optimize=*/false);
  const Operation pivot = AddOp("Identity", {side});
  if (y.dtype() == DT_RESOURCE) {
    const HandleData* handle = y.handle_data();
    if (handle == nullptr) return Output();
    const ControlDependencies after(graph, {pivot});
    return Zeros(graph, VariableShape(side), handle->dtype);
  }
  const Output shape = ShapeTensor(side, DT_INT32, {}, /*optimize=*/false);
  const ControlDependencies after(graph, {pivot});
  return Zeros(graph, shape, y.dtype());
}

}  // namespace

Attrs CopyAttrs(const Node& node, std::initializer_list<absl::string_view> names) {
  Attrs attrs;
  for (absl::string_view name : names) {
    if (const AttrValue* value = node.FindAttr(name)) attrs.emplace_back(name, *value);
  }
  return attrs;
}

Output ZerosForOutput(const Output& y) {
  if (!y.valid()) return {};
  if (y.node->op_name() == "Switch") return ZerosForSwitch(y);
  if (y.dtype() == DT_RESOURCE) {
    const HandleData* handle = y.handle_data();
    if (handle == nullptr || handle->dtype == DT_INVALID) return Output();
    return Zeros(y.graph(), StaticVariableShape(y), handle->dtype);
  }
  return ZerosLike(y, DT_INVALID, {}, /*optimize=*/false);
}

Output RowsToDense(const IndexedSlices& slices, absl::string_view name) {
  if (!slices.values.valid()) return Output();
  if (!slices.dense_shape.valid()) {
    slices.values.graph().Fail(
        InvalidArgument("Tensor conversion requested for IndexedSlices without dense_shape: ",
                        slices.values.name()));
    return Output();
  }
  const Output rows = StridedSlice(slices.dense_shape, {0});
  return AddOp("UnsortedSegmentSum", {slices.values, slices.indices, rows}, {}, name);
}

namespace {

// Adds dense and sparse parts. IndexedSlices become dense in the scope of the AddN, which then
// takes the name of the scope.
Grad DenseSum(Graph& graph, const Grads& parts) {
  const NameScope scope(graph, "AddN");
  Outputs dense;
  for (size_t i = 0; i < parts.size(); ++i) {
    dense.push_back(parts[i].is_slices()
                        ? RowsToDense(parts[i].slices(), absl::StrCat("inputs_", i))
                        : parts[i].dense());
  }
  return Grad(AddOp("AddN", {dense}, {}, scope.name()));
}

}  // namespace

Grad SumWithRows(Graph& graph, const Grads& parts) {
  if (std::any_of(parts.begin(), parts.end(), [](const Grad& g) { return !g.is_slices(); })) {
    return DenseSum(graph, parts);
  }
  const bool any_narrow = std::any_of(parts.begin(), parts.end(), [](const Grad& g) {
    return g.slices().indices.dtype() == DT_INT32;
  });
  const bool any_wide = std::any_of(parts.begin(), parts.end(), [](const Grad& g) {
    return g.slices().indices.dtype() != DT_INT32;
  });
  Outputs values, indices;
  for (const Grad& part : parts) {
    values.push_back(part.slices().values);
    Output index = part.slices().indices;
    if (any_narrow && any_wide && index.dtype() == DT_INT32)
      index = AddOp("Cast", {index}, {{"DstT", DT_INT64}});
    indices.push_back(index);
  }
  return Grad(IndexedSlices{Concat(values, 0), Concat(indices, 0), parts[0].slices().dense_shape});
}

IndexedSlices WithoutDuplicates(const IndexedSlices& slices) {
  Node* unique = AddNode("Unique", {slices.indices});
  if (unique == nullptr) return {};
  const Output rows = StridedSlice(ShapeTensor(Output(unique, 0)), {0});
  const Output values = AddOp("UnsortedSegmentSum", {slices.values, Output(unique, 1), rows});
  return {values, Output(unique, 0), slices.dense_shape};
}

namespace {

Operation GroupNode(Graph& graph, const std::vector<Operation>& ops, absl::string_view name,
                    const std::string* device) {
  NodeBuilder builder(graph, "NoOp");
  builder.Name(name);
  if (device != nullptr) builder.Device(*device);
  for (const Operation& op : ops) {
    if (op.valid()) builder.Control(op.node);
  }
  return builder.Build();
}

}  // namespace

Operation GroupOps(Graph& graph, const std::vector<Operation>& ops, absl::string_view name) {
  std::map<std::string, std::vector<Operation>> by_device;
  for (const Operation& op : ops) {
    if (op.valid()) by_device[op.node->device()].push_back(op);
  }
  if (by_device.size() <= 1) {
    return GroupNode(graph, ops, name, by_device.empty() ? nullptr : &by_device.begin()->first);
  }
  const NameScope scope(graph, name);
  std::vector<Operation> groups;
  for (const auto& [device, members] : by_device)
    groups.push_back(GroupNode(graph, members, "NoOp", &device));
  return GroupNode(graph, groups, scope.name(), nullptr);
}

Grads GateGrads(Graph& graph, const Grads& grads) {
  const NameScope scope(graph, "tuple");
  std::vector<Operation> parts;
  for (const Grad& grad : grads) {
    if (!grad.none() &&
        std::find(parts.begin(), parts.end(), Operation(grad.node())) == parts.end()) {
      parts.push_back(grad.node());
    }
  }
  if (parts.empty()) return grads;
  std::sort(parts.begin(), parts.end(),
            [](const Operation& a, const Operation& b) { return a.node->id() < b.node->id(); });
  const Operation gate = GroupOps(graph, parts);
  Grads gated;
  for (const Grad& grad : grads) {
    if (grad.none()) {
      gated.push_back(grad);
      continue;
    }
    const NameScope name(graph, "control_dependency");
    const ColocateWith colocate(graph, grad.node());
    const ControlDependencies after(graph, {gate});
    if (grad.is_slices()) {
      IndexedSlices slices = grad.slices();
      slices.values = AddOp("Identity", {slices.values}, {}, name.name());
      gated.push_back(Grad(slices));
    } else {
      gated.push_back(Grad(AddOp("Identity", {grad.dense()}, {}, name.name())));
    }
  }
  return gated;
}

}  // namespace weir
