#include <algorithm>
#include <cmath>
#include <vector>

#include "weir/ops/image/image_internal.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/registry.h"

// Op definitions for fractional pooling.
namespace weir {

namespace {

absl::Status PoolShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape in, c.WithRank(0, 4));
  const std::vector<float> ratios = c.attr<std::vector<float>>("pooling_ratio");
  if (ratios.size() != 4) {
    return InvalidArgument("pooling_ratio field must specify 4 dimensions");
  }
  Shape out = UnknownDims(4);
  for (int i = 0; i < 4; ++i) {
    if (!(ratios[i] >= 1)) {
      return InvalidArgument("pooling_ratio cannot be smaller than 1, got: ", ratios[i]);
    }
    if (in.dim(i) < 0) continue;
    const float cells = std::floor(static_cast<float>(in.dim(i)) / ratios[i]);
    out.set_dim(i, std::min(in.dim(i), static_cast<int64_t>(cells)));
  }
  c.set_output(0, out);
  for (int i = 1; i < 3; ++i) {
    WEIR_ASSIGN_OR_RETURN(const int64_t borders, AddDims(out.dim(i), 1));
    c.set_output(i, Shape({borders}));
  }
  return absl::OkStatus();
}

absl::Status MaxGradShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape in, c.WithRank(0, 4));
  c.set_output(0, in);
  return absl::OkStatus();
}

absl::Status AverageGradShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape shape, RequestedShape(c, 0));
  c.set_output(0, shape.has_rank() ? shape : UnknownDims(4));
  return absl::OkStatus();
}

Grads MaxGradient(GradContext& g) {
  return {AddOp("FractionalMaxPoolGrad", {g.x(), g.y(), g.dy(), g.y(1), g.y(2)},
                {{"overlapping", g.attr<bool>("overlapping")}})};
}

Grads AverageGradient(GradContext& g) {
  const Shape& shape = g.x().shape();
  const Output size =
      shape.IsFullyDefined()
          ? Ints(shape).In(g.graph(), "FractionalAvgPoolGrad/orig_input_tensor_shape", DT_INT64)
          : ShapeTensor(g.x(), DT_INT64);
  return {AddOp("FractionalAvgPoolGrad", {size, g.dy(), g.y(1), g.y(2)},
                {{"overlapping", g.attr<bool>("overlapping")}})};
}

constexpr char kOverlapping[] = "overlapping: bool = false";
constexpr char kTypes[] = "T: {float, double, int32, int64}";

OpSpec PoolSpec(const char* name, GradientFn gradient, const char* doc) {
  OpSpec spec(name);
  spec.In("value: T")
      .Out("output: T, row_pooling_sequence: int64, col_pooling_sequence: int64")
      .Attr("pooling_ratio: list(float) >= 4")
      .Attr("pseudo_random: bool = false")
      .Attr(kOverlapping)
      .Attr("deterministic: bool = false")
      .Attr("seed: int = 0")
      .Attr("seed2: int = 0")
      .Attr(kTypes)
      .InferShape(PoolShape)
      .Gradient(gradient)
      .Doc(doc);
  return spec;
}

}  // namespace

void AddFractionalPoolOps(OpRegistry* ops) {
  ops->Add(PoolSpec("FractionalMaxPool", MaxGradient,
                    "Computes the maximum of each cell of a random partition of the image. The "
                    "reduction factor need not be an integer."));
  ops->Add(PoolSpec("FractionalAvgPool", AverageGradient,
                    "Computes the mean of each cell of the partition used by FractionalMaxPool."));
  ops->Add(OpSpec("FractionalMaxPoolGrad")
               .In("orig_input: T, orig_output: T, out_backprop: T, row_pooling_sequence: int64, "
                   "col_pooling_sequence: int64")
               .Out("output: T")
               .Attr(kOverlapping)
               .Attr(kTypes)
               .InferShape(MaxGradShape)
               .Doc("Computes the gradient of FractionalMaxPool: it goes to the first maximum of a "
                    "cell."));
  ops->Add(OpSpec("FractionalAvgPoolGrad")
               .In("orig_input_tensor_shape: int64, out_backprop: T, row_pooling_sequence: int64, "
                   "col_pooling_sequence: int64")
               .Out("output: T")
               .Attr(kOverlapping)
               .Attr(kTypes)
               .InferShape(AverageGradShape)
               .Doc("Computes the gradient of FractionalAvgPool: it is distributed equally over a "
                    "cell."));
}

}  // namespace weir
