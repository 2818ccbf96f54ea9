#include "weir/session/plan/row_ops.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "weir/kernels/math/fused_elementwise.h"

namespace weir {

namespace {

// An argument has the rows of the result, or is the same for all rows.
std::optional<RowOp> FindElementwise(const PlanGraph& plan, const PlanNode& n) {
  const Shape& y = n.shapes[0];
  if (!FindFusableOp(n.node->op_name(), n.inputs.size(), n.node->output_type(0)))
    return std::nullopt;
  RowOp op;
  for (const PlanValue& v : n.inputs) {
    const Shape& x = plan.ShapeOf(v);
    if (!x.IsFullyDefined() || x.rank() > y.rank()) return std::nullopt;
    op.sliced.push_back(x.rank() == y.rank() && x.dim(0) == y.dim(0));
  }
  return absl::c_linear_search(op.sliced, true) ? std::optional(op) : std::nullopt;
}

}  // namespace

std::optional<RowOp> FindRowOp(const PlanGraph& plan, const PlanNode& n) {
  const Shape& y = n.shapes[0];
  const auto is_known = [&](const PlanValue& v) { return plan.ShapeOf(v).IsFullyDefined(); };
  if (n.inputs.empty() || !y.IsFullyDefined() || y.rank() == 0 ||
      !absl::c_all_of(n.inputs, is_known)) {
    return std::nullopt;
  }
  const RowRule rule = n.traits().rows;
  if (rule == RowRule::kNone) return FindElementwise(plan, n);
  const Shape& x = plan.ShapeOf(n.inputs[0]);
  if (x.rank() == 0 || x.dim(0) != y.dim(0)) return std::nullopt;

  const Tensor* const second = n.inputs.size() > 1 ? plan.ConstantOf(n.inputs[1]) : nullptr;
  const auto is_first_axis = [&](int64_t axis) { return axis == 0 || axis == -x.rank(); };
  RowOp op;
  op.sliced.resize(n.inputs.size(), false);
  op.sliced[0] = true;
  op.makes_values = true;
  bool fits = true;
  switch (rule) {
    case RowRule::kNone:
    case RowRule::kWindows:
      break;
    case RowRule::kChannels:
      op.makes_values = false;
      break;
    case RowRule::kNorm:
      op.makes_values = false;
      fits = !n.node->attr_or<bool>("is_training", true);
      break;
    case RowRule::kReduce:
      fits = second != nullptr;
      for (int64_t i = 0; fits && i < second->num_elements(); ++i)
        fits = !is_first_axis(second->IntAt(i));
      break;
    case RowRule::kSoftmax:
      fits = y.rank() > 1;
      break;
    case RowRule::kMatMul:
      fits = !n.node->attr_or<bool>("transpose_a", false);
      break;
    case RowRule::kReshape:
      op.makes_values = false;
      op.has_shape_input = true;
      fits = second != nullptr;
      break;
    case RowRule::kSqueeze: {
      op.makes_values = false;
      // Without explicit axes, squeezing a slice of one row would remove that dimension too.
      const auto axes = n.node->attr_or<std::vector<int64_t>>("squeeze_dims", {});
      fits = !axes.empty() && absl::c_none_of(axes, is_first_axis);
      break;
    }
    case RowRule::kPad:
      fits = second != nullptr && second->num_elements() >= 2 && second->IntAt(0) == 0 &&
             second->IntAt(1) == 0;
      break;
    case RowRule::kConcat: {
      const Tensor* const axis = plan.ConstantOf(n.inputs.back());
      fits = axis != nullptr && axis->num_elements() == 1 && !is_first_axis(axis->IntAt(0));
      std::fill(op.sliced.begin(), op.sliced.end() - 1, true);
      break;
    }
  }
  return fits ? std::optional(op) : std::nullopt;
}

}  // namespace weir
