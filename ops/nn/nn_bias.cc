#include "weir/ops/nn/nn.h"

#include <string>

#include "weir/core/graph/gradient.h"
#include "weir/core/graph/scope.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/framework/gradient_util.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/lib/op_costs.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/nn/nn_internal.h"

// BiasAdd and its older form.
namespace weir {

namespace {

// The channel dimension, to which the bias is added. It is the second one for "NCHW" at any rank.
absl::StatusOr<int> BiasDim(const ShapeContext& c, const Shape& value) {
  const bool second = c.node().attr_or<std::string>("data_format", "NHWC") == "NCHW";
  const int min_rank = second ? 3 : 2;
  if (value.rank() < min_rank) {
    return InvalidArgument("Shape must be at least rank ", min_rank, " but is rank ", value.rank());
  }
  return second ? 1 : value.rank() - 1;
}

absl::Status BiasAddShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape bias, c.WithRank(1, 1));
  Shape value = c.input(0);
  if (value.has_rank()) {
    WEIR_ASSIGN_OR_RETURN(const int dim, BiasDim(c, value));
    const absl::StatusOr<int64_t> channels = MergeDims(value.dim(dim), bias.dim(0));
    if (!channels.ok()) {
      return InvalidArgument(
          "Must provide as many biases as the channel dimension of the input tensor: ",
          bias.ToString(), " vs. ", value.ToString());
    }
    value.set_dim(dim, *channels);
  }
  c.set_output(0, value);
  return absl::OkStatus();
}

absl::Status BiasAddGradShape(ShapeContext& c) {
  const Shape& value = c.input(0);
  if (!value.has_rank()) {
    c.set_output(0, Shape({-1}));
    return absl::OkStatus();
  }
  WEIR_ASSIGN_OR_RETURN(const int dim, BiasDim(c, value));
  c.set_output(0, Shape({value.dim(dim)}));
  return absl::OkStatus();
}

Grads BiasAddGradient(GradContext& c) {
  return {c.dy(), AddOp("BiasAddGrad", {c.dy()}, CopyAttrs(c.node(), {"data_format"}))};
}

Grads BiasAddV1Gradient(GradContext& c) {
  Graph& g = c.graph();
  Output last = WithScalar("Sub", Rank(c.dy(), "Rank"), 1, "sub");
  Output axes;
  {
    NameScope scope(g, "range");
    Output start = Const<int32_t>(g, 0, "start"), delta = Const<int32_t>(g, 1, "delta");
    axes = AddOp("Range", {start, last, delta}, {}, scope.name());
  }
  return {c.dy(), AddOp("Sum", {c.dy(), axes})};
}

// Broadcasts the gradient of the bias: reshapes it to [1, .., channels, .., 1] and tiles it.
Grads BiasAddGradGradient(GradContext& c) {
  Output shape = ShapeTensor(c.x(), DT_INT32, "Shape");
  Output bias_shape = ShapeTensor(c.dy(), DT_INT32, "Shape");
  const auto part = [&](std::optional<int64_t> begin, std::optional<int64_t> end) {
    return StridedSlice(shape, {Index::Range(begin, end)});
  };
  Output expanded, tiles;
  if (c.attr<std::string>("data_format") == "NCHW") {
    Output before = OnesLike(part(std::nullopt, 1)), after = OnesLike(part(2, std::nullopt));
    expanded = Concat({before, bias_shape, after}, 0);
    Output batch = part(std::nullopt, 1), spatial = part(2, std::nullopt);
    tiles = Concat({batch, Const<int32_t>(c.graph(), {1}, "concat_1/values_1"), spatial}, 0);
  } else {
    expanded = Concat({OnesLike(part(std::nullopt, -1)), bias_shape}, 0);
    tiles =
        Concat({part(std::nullopt, -1), Const<int32_t>(c.graph(), {1}, "concat_1/values_1")}, 0);
  }
  return {Tile(Reshape(c.dy(), expanded), tiles)};
}

}  // namespace

void AddBiasOps(OpRegistry* ops) {
  ops->Add(OpSpec("BiasAdd")
               .In("value: T, bias: T")
               .Out("output: T")
               .Attr("T: numbertype")
               .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
               .Flops(ElementwiseFlops)
               .Rows(RowRule::kChannels)
               .InferShape(BiasAddShape)
               .Gradient(BiasAddGradient)
               .Doc("Adds bias to value, where bias is a vector along the channels."));
  ops->Add(
      OpSpec("BiasAddV1")
          .In("value: T, bias: T")
          .Out("output: T")
          .Attr("T: numbertype")
          .Elementwise()
          .InferShape(BiasAddShape)
          .Gradient(BiasAddV1Gradient)
          .Doc("Computes BiasAdd without a data format: the bias is along the last dimension."));
  ops->Add(OpSpec("BiasAddGrad")
               .In("out_backprop: T")
               .Out("output: T")
               .Attr("T: numbertype")
               .Attr("data_format: {'NHWC', 'NCHW'} = 'NHWC'")
               .Reduction()
               .InferShape(BiasAddGradShape)
               .Gradient(BiasAddGradGradient)
               .Doc("Computes the gradient of BiasAdd with respect to the bias: the sum over all "
                    "dimensions but the channels."));
}

Output BiasAdd(Output value, Output bias, absl::string_view data_format, absl::string_view name) {
  return AddOp("BiasAdd", {value, bias}, {{"data_format", data_format}}, name);
}

Output XwPlusB(Output x, Output weights, Output biases, absl::string_view name) {
  if (!x.valid() || !weights.valid() || !biases.valid()) return Output();
  NameScope scope(x.graph(), Or(name, "xw_plus_b"));
  return BiasAdd(Op("MatMul", x, weights, {}), biases, "NHWC", scope.name());
}

}  // namespace weir
