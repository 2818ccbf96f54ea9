#include <utility>

#include "weir/core/graph/scope.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/lib/math_internal.h"
#include "weir/ops/lib/op_costs.h"
#include "weir/ops/lib/registry.h"

// Selection, clipping, and sums of several tensors.
namespace weir {

namespace {

Grads SelectGradient(GradContext& g) {
  const Output condition = g.x(0), zeros = ZerosOf(g.x(1));
  const Output gt = Select(condition, g.dy(), zeros);
  return {Grad(), gt, Select(condition, zeros, g.dy())};
}

Output SumToInput(Output gradient, const Output& input, const Output& result) {
  const Output shape = ShapeVector(input), full = ShapeVector(result);
  if (StaticAndEqual(input.shape(), result.shape())) return gradient;
  const BroadcastReductions axes = BroadcastGradientArgs(shape, full);
  return Reshape(ReduceSum(gradient, axes.r0, /*keep_dims=*/true), shape);
}

Grads SelectV2Gradient(GradContext& g) {
  const Output condition = g.x(0), zeros = Zeros(g.graph(), Shape(), g.dy().dtype());
  const Output gt = AddOp("SelectV2", {condition, g.dy(), zeros});
  const Output ge = AddOp("SelectV2", {condition, zeros, g.dy()});
  const Output to_t = SumToInput(gt, g.x(1), g.y());
  return {Grad(), to_t, SumToInput(ge, g.x(2), g.y())};
}

Grads ClipByValueGradient(GradContext& g) {
  const Output x = g.x(0), low = g.x(1), high = g.x(2), dy = g.dy();
  const Output sx = ShapeVector(x), s_low = ShapeVector(low), s_high = ShapeVector(high),
               s_dy = ShapeVector(dy);
  const Output zeros = Zeros(g.graph(), s_dy, dy.dtype());
  const Output below = Less(x, low), above = Greater(x, high);
  const Output low_axes = BroadcastGradientArgs(sx, s_low).r1,
               high_axes = BroadcastGradientArgs(sx, s_high).r1;
  const Output gx = Select(LogicalOr(below, above), zeros, dy);
  const Output g_low = Select(below, dy, zeros), g_high = Select(above, dy, zeros);
  const Output to_low = SumTo(g_low, low_axes, s_low);
  return {gx, to_low, SumTo(g_high, high_axes, s_high)};
}

Grads AddNGradient(GradContext& g) { return Grads(g.num_inputs(), Grad(g.dy())); }

// Select: `t` and `e` have the same shape. The condition has that shape too, is a scalar, or is a
// vector with the length of their first dimension.
absl::Status SelectShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(Shape shape, c.input(1).MergeWith(c.input(2)));
  const Shape& condition = c.input(0);
  if (condition.has_rank() && shape.has_rank() && condition.rank() != 0) {
    if (condition.rank() == 1 && shape.rank() != 1) {
      if (shape.rank() == 0) {
        return InvalidArgument("Select: the condition of shape ", condition.ToString(),
                               " selects rows, but t and e are scalars");
      }
      WEIR_ASSIGN_OR_RETURN(const int64_t rows, MergeDims(condition.dim(0), shape.dim(0)));
      shape.set_dim(0, rows);
    } else {
      WEIR_ASSIGN_OR_RETURN(shape, shape.MergeWith(condition));
    }
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status SelectV2Shape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape values, BroadcastShapes(c.input(1), c.input(2)));
  WEIR_ASSIGN_OR_RETURN(Shape shape, BroadcastShapes(c.input(0), values));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// As in TensorFlow, the inputs need only agree with each other; the attribute `shape` is not
// checked.
absl::Status AccumulateShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(MergedShape(c));
  absl::StatusOr<Shape> shape = c.outputs()[0].MergeWith(c.attr<Shape>("shape"));
  if (shape.ok()) c.set_output(0, *std::move(shape));
  return absl::OkStatus();
}

}  // namespace

void AddSelectOps(OpRegistry* ops) {
  ops->Add(OpSpec("Select")
               .In("condition: bool, t: T, e: T")
               .Out("output: T")
               .Attr("T: type")
               .Flops(ElementwiseFlops)
               .InferShape(SelectShape)
               .Gradient(SelectGradient)
               .Doc("Returns t where the condition is true, and e elsewhere. A vector of "
                    "conditions selects rows; a scalar selects everything."));
  ops->Add(OpSpec("SelectV2")
               .In("condition: bool, t: T, e: T")
               .Out("output: T")
               .Attr("T: type")
               .Elementwise()
               .InferShape(SelectV2Shape)
               .Gradient(SelectV2Gradient)
               .Doc("Returns t where the condition is true, and e elsewhere. All three arguments "
                    "broadcast."));
  ops->Add(OpSpec("ClipByValue")
               .In("t: T, clip_value_min: T, clip_value_max: T")
               .Out("output: T")
               .Attr("T: numbertype")
               .Elementwise()
               .InferShape(SameShape)
               .Gradient(ClipByValueGradient)
               .Doc("Clips t to [clip_value_min, clip_value_max]. The bounds are scalars or have "
                    "t's shape."));
  ops->Add(OpSpec("AddN")
               .In("inputs: N * T")
               .Out("sum: T")
               .Attr("N: int >= 1")
               .Attr("T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, "
                     "quint8, qint32, bfloat16, "
                     "qint16, quint16, uint16, complex128, half, uint32, uint64, variant}")
               .Commutative()
               .Aggregate()
               .Flops(AddNFlops)
               .InferShape(MergedShape)
               .Gradient(AddNGradient)
               .Doc("Returns the elementwise sum of all inputs."));
  ops->Add(
      OpSpec("AccumulateNV2")
          .In("inputs: N * T")
          .Out("sum: T")
          .Attr("N: int >= 1")
          .Attr("T: numbertype")
          .Attr("shape: shape")
          .Commutative()
          .Aggregate()
          .InferShape(AccumulateShape)
          .Gradient(AddNGradient)
          .Doc("Returns the elementwise sum of all inputs. `shape` is the shape of the inputs."));
}

Output Select(Output condition, Output t, Output e, absl::string_view name) {
  return AddOp("Select", {condition, t, e}, {}, name);
}

Output SelectV2(Output condition, const TensorArg& t, const TensorArg& e, absl::string_view name) {
  if (!t.is_literal() && !e.is_literal())
    return AddOp("SelectV2", {condition, t.output(), e.output()}, {}, name);
  if (!condition.valid()) return {};
  Graph& g = condition.graph();
  NameScope scope(g, name.empty() ? "SelectV2" : name);
  // If both arguments are literals, the first determines the dtype.
  const Output a = t.is_literal() ? t.In(g, e.output().dtype(), "t") : t.output();
  const Output b = e.is_literal() ? e.In(g, a.dtype(), "e") : e.output();
  return AddOp("SelectV2", {condition, a, b}, {}, scope.name());
}

Output ClipByValue(Output x, const TensorArg& low, const TensorArg& high, absl::string_view name) {
  if (!x.valid()) return {};
  NameScope scope(x.graph(), name);
  const Output below = Minimum(x, high);
  const Output bound = low.is_literal() ? low.In(x.graph(), x.dtype(), "y") : low.output();
  return AddOp("Maximum", {below, bound}, {}, scope.name());
}

Output AddN(const Outputs& inputs, absl::string_view name) {
  for (const Output& input : inputs) internal::ReadHere(input);  // TensorFlow's text
  if (inputs.size() == 1) return name.empty() ? inputs[0] : Identity(inputs[0], name);
  return AddOp("AddN", {inputs}, {}, name);
}

Output AccumulateN(const Outputs& inputs, absl::string_view name) {
  if (inputs.size() == 1) return name.empty() ? inputs[0] : Identity(inputs[0], name);
  Shape shape = Shape::UnknownRank();
  for (const Output& input : inputs) {
    if (absl::StatusOr<Shape> merged = shape.MergeWith(input.shape()); merged.ok())
      shape = *std::move(merged);
  }
  return AddOp("AccumulateNV2", {inputs}, {{"shape", shape}}, name);
}

}  // namespace weir
