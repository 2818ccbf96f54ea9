#include "weir/session/row_ops.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "weir/kernels/fused_elementwise.h"

namespace weir {

namespace {

enum class Rule : uint8_t {
  kWindows,   // of each image; filters, sizes and axes are other inputs
  kChannels,  // elements, with a value of their channel
  kNorm,      // the same, in inference
  kReduce,    // along axes that do not include the first
  kSoftmax,
  kMatMul,
  kReshape,
  kSqueeze,
  kPad,
  kConcat,
};

const absl::flat_hash_map<absl::string_view, Rule>& Rules() {
  static const auto* const rules = new absl::flat_hash_map<absl::string_view, Rule>{
      {"AvgPool", Rule::kWindows},
      {"BiasAdd", Rule::kChannels},
      {"ConcatV2", Rule::kConcat},
      {"Conv2D", Rule::kWindows},
      {"DepthwiseConv2dNative", Rule::kWindows},
      {"FusedBatchNorm", Rule::kNorm},
      {"FusedBatchNormV2", Rule::kNorm},
      {"FusedBatchNormV3", Rule::kNorm},
      {"Identity", Rule::kChannels},
      {"LRN", Rule::kWindows},
      {"MatMul", Rule::kMatMul},
      {"Max", Rule::kReduce},
      {"MaxPool", Rule::kWindows},
      {"Mean", Rule::kReduce},
      {"Pad", Rule::kPad},
      {"Reshape", Rule::kReshape},
      {"ResizeBilinear", Rule::kWindows},
      {"ResizeNearestNeighbor", Rule::kWindows},
      {"Softmax", Rule::kSoftmax},
      {"Squeeze", Rule::kSqueeze},
      {"Sum", Rule::kReduce},
  };
  return *rules;
}

const Shape& ShapeOf(const PlanGraph& plan, const PlanValue& v) {
  return plan.nodes[v.node].shapes[v.output];
}

// Null if it is not known.
const Tensor* ConstantOf(const PlanGraph& plan, const PlanValue& v) {
  const PlanNode& n = plan.nodes[v.node];
  return n.is_constant(v.output) ? &n.constants[v.output] : nullptr;
}

// An argument has the rows of the result, or is the same for all of them.
std::optional<RowOp> FindElementwise(const PlanGraph& plan, const PlanNode& n) {
  const Shape& y = n.shapes[0];
  if (!FindFusableOp(n.node->op_name(), n.inputs.size(), n.node->output_type(0)))
    return std::nullopt;
  RowOp op;
  for (const PlanValue& v : n.inputs) {
    const Shape& x = ShapeOf(plan, v);
    if (!x.IsFullyDefined() || x.rank() > y.rank()) return std::nullopt;
    op.cut.push_back(x.rank() == y.rank() && x.dim(0) == y.dim(0));
  }
  return absl::c_linear_search(op.cut, true) ? std::optional(op) : std::nullopt;
}

}  // namespace

std::optional<RowOp> FindRowOp(const PlanGraph& plan, const PlanNode& n) {
  const Shape& y = n.shapes[0];
  const auto is_known = [&](const PlanValue& v) { return ShapeOf(plan, v).IsFullyDefined(); };
  if (n.inputs.empty() || !y.IsFullyDefined() || y.rank() == 0 ||
      !absl::c_all_of(n.inputs, is_known)) {
    return std::nullopt;
  }
  const auto rule = Rules().find(n.node->op_name());
  if (rule == Rules().end()) return FindElementwise(plan, n);
  const Shape& x = ShapeOf(plan, n.inputs[0]);
  if (x.rank() == 0 || x.dim(0) != y.dim(0)) return std::nullopt;

  const Tensor* const second = n.inputs.size() > 1 ? ConstantOf(plan, n.inputs[1]) : nullptr;
  const auto is_first_axis = [&](int64_t axis) { return axis == 0 || axis == -x.rank(); };
  RowOp op;
  op.cut.resize(n.inputs.size(), false);
  op.cut[0] = true;
  op.makes_values = true;
  bool fits = true;
  switch (rule->second) {
    case Rule::kWindows:
      break;
    case Rule::kChannels:
      op.makes_values = false;
      break;
    case Rule::kNorm:
      op.makes_values = false;
      fits = !n.node->attr_or<bool>("is_training", true);
      break;
    case Rule::kReduce:
      fits = second != nullptr;
      for (int64_t i = 0; fits && i < second->num_elements(); ++i)
        fits = !is_first_axis(second->IntAt(i));
      break;
    case Rule::kSoftmax:
      fits = y.rank() > 1;
      break;
    case Rule::kMatMul:
      fits = !n.node->attr_or<bool>("transpose_a", false);
      break;
    case Rule::kReshape:
      op.makes_values = false;
      op.names_rows = true;
      fits = second != nullptr;
      break;
    case Rule::kSqueeze: {
      op.makes_values = false;
      // Without names, a slice of one row would lose that dimension too.
      const auto axes = n.node->attr_or<std::vector<int64_t>>("squeeze_dims", {});
      fits = !axes.empty() && absl::c_none_of(axes, is_first_axis);
      break;
    }
    case Rule::kPad:
      fits = second != nullptr && second->num_elements() >= 2 && second->IntAt(0) == 0 &&
             second->IntAt(1) == 0;
      break;
    case Rule::kConcat: {
      const Tensor* const axis = ConstantOf(plan, n.inputs.back());
      fits = axis != nullptr && axis->num_elements() == 1 && !is_first_axis(axis->IntAt(0));
      std::fill(op.cut.begin(), op.cut.end() - 1, true);
      break;
    }
  }
  return fits ? std::optional(op) : std::nullopt;
}

}  // namespace weir
