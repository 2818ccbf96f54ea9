#include "weir/core/scope.h"
#include "weir/ops/array_internal.h"
#include "weir/ops/ranked_internal.h"
#include "weir/ops/registry.h"
#include "weir/ops/shape_values.h"

namespace weir {

absl::Status PassShape(ShapeContext& c, int input, int output) {
  c.set_output(output, c.input(input));
  if (c.handle(input) != nullptr) c.set_output_handle(output, *c.handle(input));
  return absl::OkStatus();
}

absl::Status IdentityShape(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) WEIR_RETURN_IF_ERROR(PassShape(c, 0, i));
  return absl::OkStatus();
}

absl::StatusOr<int> CheckedAxis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) {
    return InvalidArgument("axis ", axis, " must be in the range [", -rank, ", ", rank, ")");
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::optional<std::vector<int64_t>> KnownInts(ShapeContext& c, int i) {
  const Tensor* value = c.input_value(i);
  if (value == nullptr) return std::nullopt;
  std::vector<int64_t> out;
  for (int64_t k = 0; k < value->num_elements(); ++k) out.push_back(value->IntAt(k));
  return out;
}

absl::StatusOr<int64_t> VectorLength(ShapeContext& c, int i) {
  WEIR_ASSIGN_OR_RETURN(const Shape shape, c.WithRank(i, 1));
  return shape.dim(0);
}

absl::StatusOr<Shape> RequestedShape(ShapeContext& c, int i) {
  WEIR_RETURN_IF_ERROR(c.WithRank(i, 1).status());
  return c.InputAsShape(i, /*minus_one_is_unknown=*/false);
}

Shape UnknownDims(int64_t rank) {
  if (rank < 0 || rank > Shape::kMaxRank) return Shape::UnknownRank();
  return Shape(absl::Span<const int64_t>(std::vector<int64_t>(rank, Shape::kUnknown)));
}

Grads PassGradient(GradContext& g) { return {g.dy_grad()}; }

Grads PassAllGradients(GradContext& g) {
  Grads out;
  for (int i = 0; i < g.node().num_outputs(); ++i) out.push_back(g.dy_grad(i));
  return out;
}

Grads ReshapeToInputGradient(GradContext& g) { return {Reshape(g.dy(), ShapeTensor(g.x()))}; }

Output SubOp(Output a, Output b, absl::string_view name) { return AddOp("Sub", {a, b}, {}, name); }
Output AddV2Op(Output a, Output b, absl::string_view name) {
  return AddOp("AddV2", {a, b}, {}, name);
}
Output MulOp(Output a, Output b, absl::string_view name) { return AddOp("Mul", {a, b}, {}, name); }
Output ModOp(Output a, Output b, absl::string_view name) {
  return AddOp("FloorMod", {a, b}, {}, name);
}

Output SumAll(Output x) {
  if (!x.valid()) return {};
  Output axes;
  if (x.shape().has_rank()) {
    std::vector<int64_t> all(x.shape().rank());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    axes = Ints(std::move(all)).In(x.graph(), "Const");
  } else {
    axes = RangeOp(x.graph(), 0, Rank(x), 1);
  }
  return AddOp("Sum", {x, axes});
}

Output ProdOp(Output x, const Ints& axes) {
  return x.valid() ? AddOp("Prod", {x, axes.In(x.graph(), "Const")}) : Output();
}

Output RangeOp(Graph& graph, const Ints& start, const Ints& limit, const Ints& delta,
               absl::string_view name) {
  NameScope scope(graph, name);
  const Output a = start.In(graph, "start"), b = limit.In(graph, "limit");
  return AddOp("Range", {a, b, delta.In(graph, "delta")}, {}, scope.name());
}

Output UnsortedSegmentSumOp(Output data, Output ids, Output num_segments) {
  return AddOp("UnsortedSegmentSum", {data, ids, num_segments});
}

namespace {

// ---- shape functions

absl::Status ConstShape(ShapeContext& c) {
  const Tensor value = c.attr<Tensor>("value");
  if (!value.initialized()) {  // as written by an import that could not read the bytes
    return InvalidArgument(c.node().attr_or<std::string>("_value_error", "Const without a value"));
  }
  if (value.dtype() != c.attr<DataType>("dtype")) {
    return InvalidArgument("Const of type ", DataTypeName(c.attr<DataType>("dtype")),
                           " has a value of type ", DataTypeName(value.dtype()));
  }
  c.set_output(0, value.shape());
  return absl::OkStatus();
}

absl::Status AttrShape(ShapeContext& c) {
  c.set_output(0, c.attr<Shape>("shape"));
  return absl::OkStatus();
}

// Returns the declared shape. Graphs with a version below 22 use a scalar shape to mean an unknown
// one.
absl::Status PlaceholderShape(ShapeContext& c) {
  constexpr int kLastWithoutUnknownRank = 21;
  const Shape shape = c.attr<Shape>("shape");
  const bool unknown =
      shape.rank() <= 0 && c.node().graph().versions().producer <= kLastWithoutUnknownRank;
  c.set_output(0, unknown ? Shape::UnknownRank() : shape);
  return absl::OkStatus();
}

absl::Status PlaceholderWithDefaultShape(ShapeContext& c) {
  const Shape shape = c.attr<Shape>("shape");
  WEIR_RETURN_IF_ERROR(c.input(0).MergeWith(shape).status());
  c.set_output(0, shape);
  return absl::OkStatus();
}

absl::Status IdentityNShape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) WEIR_RETURN_IF_ERROR(PassShape(c, i, i));
  return absl::OkStatus();
}

absl::Status EnsureShapeShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(Shape merged, c.input(0).MergeWith(c.attr<Shape>("shape")));
  c.set_output(0, std::move(merged));
  return absl::OkStatus();
}

absl::Status BitcastShape(ShapeContext& c) {
  Shape shape = c.input(0);
  const int64_t from = ElementSize(c.attr<DataType>("T")),
                to = ElementSize(c.attr<DataType>("type"));
  if (!shape.has_rank()) return absl::OkStatus();
  if (from < to) {
    if (shape.rank() == 0) {
      return InvalidArgument("Cannot bitcast a scalar of type ",
                             DataTypeName(c.attr<DataType>("T")), " to the larger type ",
                             DataTypeName(c.attr<DataType>("type")));
    }
    if (shape.dim(-1) >= 0 && shape.dim(-1) != to / from) {
      return InvalidArgument("Cannot bitcast: the last dimension of ", shape.ToString(),
                             " must be ", to / from);
    }
    shape.RemoveDim(shape.rank() - 1);
  } else if (from > to) {
    shape.AddDim(from / to);
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status ShapeShape(ShapeContext& c) {
  c.set_output(0, Shape({c.input(0).rank()}));
  return absl::OkStatus();
}

absl::Status ShapeNShape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) c.set_output(i, Shape({c.input(i).rank()}));
  return absl::OkStatus();
}

// Returns the product of the known dimensions and the number of unknown ones.
std::pair<int64_t, int> KnownProduct(const Shape& shape) {
  int64_t product = 1;
  int unknown = 0;
  for (int64_t d : shape.dims()) {
    if (d < 0) {
      ++unknown;
    } else if (__builtin_mul_overflow(product, d, &product)) {
      return {-1, unknown};
    }
  }
  return {product, unknown};
}

absl::Status ReshapeShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(Shape out, c.InputAsShape(1));
  const Shape& in = c.input(0);
  if (!out.has_rank() || !in.has_rank()) {
    c.set_output(0, std::move(out));
    return absl::OkStatus();
  }
  const auto [in_product, in_unknown] = KnownProduct(in);
  const auto [out_product, out_unknown] = KnownProduct(out);
  const bool fits =
      out_product > 0 ? in_product % out_product == 0 : in_product == 0 || out_unknown > 0;
  if (in_unknown == 0 && in_product >= 0 && out_product >= 0) {
    if (out_unknown == 0 ? in_product != out_product : !fits) {
      return InvalidArgument("Cannot reshape a tensor with ", in_product, " elements to shape ",
                             out.ToString(), " (",
                             out_unknown == 0 ? absl::StrCat(out_product)
                                              : absl::StrCat("a multiple of ", out_product),
                             " elements)");
    }
    if (out_unknown == 1 && out_product > 0) {
      for (int i = 0; i < out.rank(); ++i) {
        if (out.dim(i) < 0) out.set_dim(i, in_product / out_product);
      }
    }
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status ExpandDimsShape(ShapeContext& c) {
  Shape shape = c.input(0);
  const auto axis = KnownInts(c, 1);
  if (c.input(1).has_rank() && c.input(1).IsFullyDefined() && c.input(1).num_elements() != 1) {
    return InvalidArgument("'dim' input must be a tensor with a single value, but has shape ",
                           c.input(1).ToString());
  }
  if (!shape.has_rank()) return absl::OkStatus();
  if (!axis.has_value() || axis->size() != 1) {
    c.set_output(0, UnknownDims(shape.rank() + 1));
    return absl::OkStatus();
  }
  const int rank = shape.rank();
  if ((*axis)[0] < -rank - 1 || (*axis)[0] > rank) {
    return InvalidArgument("dim ", (*axis)[0], " not in the interval [", -rank - 1, ", ", rank,
                           "]");
  }
  shape.InsertDim(static_cast<int>((*axis)[0] < 0 ? (*axis)[0] + rank + 1 : (*axis)[0]), 1);
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status SqueezeShape(ShapeContext& c) {
  const Shape& in = c.input(0);
  const std::vector<int64_t> axes = c.attr<std::vector<int64_t>>("squeeze_dims");
  if (!in.has_rank()) return absl::OkStatus();
  std::vector<bool> drop(in.rank(), false);
  for (int64_t axis : axes) {
    WEIR_ASSIGN_OR_RETURN(const int i, CheckedAxis(axis, in.rank()));
    if (in.dim(i) >= 0 && in.dim(i) != 1) {
      return InvalidArgument("Can not squeeze dim[", i, "], expected a dimension of 1, got ",
                             in.dim(i));
    }
    drop[i] = true;
  }
  Shape out;
  for (int i = 0; i < in.rank(); ++i) {
    if (axes.empty() && in.dim(i) < 0) return absl::OkStatus();
    if (!(axes.empty() ? in.dim(i) == 1 : drop[i])) out.AddDim(in.dim(i));
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status FillShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(Shape shape, RequestedShape(c, 0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status BroadcastToShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(Shape out, RequestedShape(c, 1));
  if (out.has_rank() && c.input(0).has_rank()) {
    if (c.input(0).rank() > out.rank()) {
      return InvalidArgument("Rank of input (", c.input(0).rank(),
                             ") must be no greater than rank of output shape (", out.rank(), ")");
    }
    for (int i = 1; i <= c.input(0).rank(); ++i) {
      const int64_t from = c.input(0).dim(-i), to = out.dim(-i);
      if (from > 1 && to >= 0 && from != to) {
        return InvalidArgument("Incompatible shapes: ", c.input(0).ToString(), " vs. ",
                               out.ToString());
      }
    }
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status BroadcastArgsShape(ShapeContext& c) {
  const int64_t a = c.input(0).rank() == 1 ? c.input(0).dim(0) : -1;
  const int64_t b = c.input(1).rank() == 1 ? c.input(1).dim(0) : -1;
  c.set_output(0, Shape({a < 0 || b < 0 ? Shape::kUnknown : std::max(a, b)}));
  return absl::OkStatus();
}

absl::Status TwoVectorsShape(ShapeContext& c) {
  c.set_all_outputs(Shape({Shape::kUnknown}));
  return absl::OkStatus();
}

// ---- gradients

Grads PreventGradientGradient(GradContext& g) {
  g.graph().Fail(InvalidArgument("Gradient explicitly disabled at ", g.node().Label(),
                                 ". Reason: ", g.attr<std::string>("message")));
  return {};
}

Grads EnsureShapeGradient(GradContext& g) { return {g.dy()}; }

Grads CheckNumericsGradient(GradContext& g) {
  const std::string message =
      absl::StrCat("Not a number (NaN) or infinity (Inf) values detected in gradient. ",
                   g.attr<std::string>("message"));
  return {AddOp(g.node().op_name(), {g.dy()}, {{"message", message}})};
}

// Reshapes dy to the shape of x. A single unknown dimension becomes -1, which avoids a Shape node.
Grads ReshapeGradient(GradContext& g) {
  const Shape& shape = g.x().shape();
  const auto [product, unknown] = KnownProduct(shape);
  if (shape.has_rank() && unknown == 1 && product > 0) return {Reshape(g.dy(), shape)};
  return ReshapeToInputGradient(g);
}

Grads FillGradient(GradContext& g) { return {Grad(), SumAll(g.dy())}; }

Grads BroadcastToGradient(GradContext& g) {
  const DataType type = g.x(1).dtype();
  const Output x_shape = ShapeTensor(g.x(0), type);
  Output y_shape = g.x(1);
  if (g.y().shape().IsFullyDefined()) y_shape = Ints(g.y().shape()).In(g.graph(), "Const", type);
  const BroadcastReductions axes = BroadcastGradientArgs(y_shape, x_shape);
  return {Reshape(ReduceSum(g.dy(), axes.r1, true), x_shape)};
}

}  // namespace

void AddArrayBasicOps(OpRegistry* ops) {
  ops->Add(OpSpec("Const")
               .Out("output: dtype")
               .Attr("value: tensor")
               .Attr("dtype: type")
               .Moves(Movement::kStored)
               .ShapeValue(ConstShapeValue)
               .InferShape(ConstShape)
               .NotDifferentiable()
               .Doc("Returns a tensor whose value is known at graph construction time."));
  ops->Add(OpSpec("Placeholder")
               .Out("output: dtype")
               .Attr("dtype: type")
               .Attr("shape: shape = {unknown_rank: true}")
               .IsPlaceholder()
               .InferShape(PlaceholderShape)
               .Doc("Returns a tensor that must be fed. Running it without a feed fails with "
                    "INVALID_ARGUMENT."));
  ops->Add(OpSpec("PlaceholderV2")
               .Out("output: dtype")
               .Attr("dtype: type")
               .Attr("shape: shape")
               .Deprecated(23, "use Placeholder")
               .IsPlaceholder()
               .InferShape(AttrShape)
               .Doc("Returns a tensor that must be fed. The older name of Placeholder."));
  ops->Add(OpSpec("PlaceholderWithDefault")
               .In("input: dtype")
               .Out("output: dtype")
               .Attr("dtype: type")
               .Attr("shape: shape")
               .Moves(Movement::kIdentity)
               .InferShape(PlaceholderWithDefaultShape)
               .Gradient(PassGradient)
               .Doc("Returns the input, unless a value is fed for the output."));
  ops->Add(OpSpec("Identity")
               .In("input: T")
               .Out("output: T")
               .Attr("T: type")
               .Moves(Movement::kIdentity)
               .Rows(RowRule::kChannels)
               .ShapeValue(ForwardedShapeValue)
               .InferShape(IdentityShape)
               .Gradient(PassGradient)
               .Doc("Returns the input unchanged."));
  ops->Add(OpSpec("IdentityN")
               .In("input: T")
               .Out("output: T")
               .Attr("T: list(type) >= 1")
               .Moves(Movement::kIdentity)
               .InferShape(IdentityNShape)
               .Gradient(PassAllGradients)
               .Doc("Returns the inputs unchanged."));
  ops->Add(OpSpec("Snapshot")
               .In("input: T")
               .Out("output: T")
               .Attr("T: type")
               .Moves(Movement::kIdentity)
               .InferShape(SameShape)
               .Doc("Returns a copy of the input."));
  ops->Add(OpSpec("StopGradient")
               .In("input: T")
               .Out("output: T")
               .Attr("T: type")
               .Moves(Movement::kIdentity)
               .InferShape(SameShape)
               .NotDifferentiable()
               .Doc("Returns the input and stops the gradient."));
  ops->Add(OpSpec("PreventGradient")
               .In("input: T")
               .Out("output: T")
               .Attr("T: type")
               .Attr("message: string = ''")
               .Moves(Movement::kIdentity)
               .InferShape(SameShape)
               .Gradient(PreventGradientGradient)
               .Doc("Returns the input. Differentiating through it is an error that contains "
                    "`message`."));
  ops->Add(OpSpec("GuaranteeConst")
               .In("input: T")
               .Out("output: T")
               .Attr("T: type")
               .Stateful()
               .InferShape(IdentityShape)
               .Doc("Returns the input, with a promise that it is the same in every run."));
  ops->Add(OpSpec("DeepCopy")
               .In("x: T")
               .Out("y: T")
               .Attr("T: type")
               .Stateful()
               .Moves(Movement::kRearrange)
               .InferShape(SameShape)
               .Doc("Returns a copy of the input that shares no memory with it."));
  ops->Add(OpSpec("EnsureShape")
               .In("input: T")
               .Out("output: T")
               .Attr("shape: shape")
               .Attr("T: type")
               .Moves(Movement::kForward)
               .Has(Effect::kChecks)
               .InferShape(EnsureShapeShape)
               .Gradient(EnsureShapeGradient)
               .Doc("Returns the input. Fails at run time if its shape does not match `shape`."));
  ops->Add(OpSpec("CheckNumerics")
               .In("tensor: T")
               .Out("output: T")
               .Attr("T: {bfloat16, half, float, double}")
               .Attr("message: string")
               .Stateful()
               .Elementwise()
               .Has(Effect::kChecks)
               .InferShape(SameShape)
               .Gradient(CheckNumericsGradient)
               .Doc("Returns the input. Fails with INVALID_ARGUMENT and `message` if it contains a "
                    "NaN or an infinity."));
  ops->Add(OpSpec("CheckNumericsV2")
               .In("tensor: T")
               .Out("output: T")
               .Attr("T: {bfloat16, half, float, double}")
               .Attr("message: string")
               .Stateful()
               .InferShape(SameShape)
               .Gradient(CheckNumericsGradient)
               .Doc("Returns the input. Fails with INVALID_ARGUMENT and `message` if it contains a "
                    "NaN or an infinity; distinguishes -Inf and +Inf."));
  ops->Add(
      OpSpec("Bitcast")
          .In("input: T")
          .Out("output: type")
          .Attr(
              "T: {bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, "
              "uint64, int8, int16, complex64, complex128, qint8, quint8, qint16, quint16, qint32}")
          .Attr(
              "type: {bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, "
              "uint64, int8, int16, complex64, complex128, qint8, quint8, qint16, quint16, qint32}")
          .Moves(Movement::kForward)
          .InferShape(BitcastShape)
          .Doc("Reinterprets the bits of the input as another type. If the element sizes differ, "
               "the last dimension is added, removed or scaled."));
  ops->Add(OpSpec("Shape")
               .In("input: T")
               .Out("output: out_type")
               .Attr("T: type")
               .Attr("out_type: {int32, int64} = DT_INT32")
               .Moves(Movement::kReadsShape)
               .ShapeValue(ShapeOfInputValue)
               .InferShape(ShapeShape)
               .NotDifferentiable()
               .Doc("Returns the shape of the input as a vector."));
  ops->Add(OpSpec("ShapeN")
               .In("input: N * T")
               .Out("output: N * out_type")
               .Attr("N: int >= 1")
               .Attr("T: type")
               .Attr("out_type: {int32, int64} = DT_INT32")
               .Moves(Movement::kReadsShape)
               .InferShape(ShapeNShape)
               .NotDifferentiable()
               .Doc("Returns the shapes of the inputs as vectors."));
  ops->Add(OpSpec("Size")
               .In("input: T")
               .Out("output: out_type")
               .Attr("T: type")
               .Attr("out_type: {int32, int64} = DT_INT32")
               .Moves(Movement::kReadsShape)
               .ShapeValue(SizeShapeValue)
               .InferShape(ScalarShape)
               .NotDifferentiable()
               .Doc("Returns the number of elements of the input."));
  ops->Add(OpSpec("Rank")
               .In("input: T")
               .Out("output: int32")
               .Attr("T: type")
               .Moves(Movement::kReadsShape)
               .ShapeValue(RankShapeValue)
               .InferShape(ScalarShape)
               .NotDifferentiable()
               .Doc("Returns the number of dimensions of the input."));
  ops->Add(OpSpec("Reshape")
               .In("tensor: T, shape: Tshape")
               .Out("output: T")
               .Attr("T: type")
               .Attr("Tshape: {int32, int64} = DT_INT32")
               .Moves(Movement::kReshape)
               .IdentityIfSameShape()
               .Rows(RowRule::kReshape)
               .InferShape(ReshapeShape)
               .Gradient(ReshapeGradient)
               .Doc("Returns the elements of the input in another shape. One dimension may be -1, "
                    "in which case it is inferred."));
  ops->Add(OpSpec("ExpandDims")
               .In("input: T, dim: Tdim")
               .Out("output: T")
               .Attr("T: type")
               .Attr("Tdim: {int32, int64} = DT_INT32")
               .Moves(Movement::kReshape)
               .ShapeValue(ExpandedShapeValue)
               .InferShape(ExpandDimsShape)
               .Gradient(ReshapeToInputGradient)
               .Doc("Inserts a dimension of size 1 at index `dim`."));
  ops->Add(OpSpec("Squeeze")
               .In("input: T")
               .Out("output: T")
               .Attr("T: type")
               .Attr("squeeze_dims: list(int) >= 0 = []")
               .Moves(Movement::kReshape)
               .IdentityIfSameShape()
               .Rows(RowRule::kSqueeze)
               .InferShape(SqueezeShape)
               .Gradient(ReshapeToInputGradient)
               .Doc("Removes the dimensions in `squeeze_dims`, which must have size 1. If the list "
                    "is empty, removes all dimensions of size 1."));
  ops->Add(OpSpec("Fill")
               .In("dims: index_type, value: T")
               .Out("output: T")
               .Attr("T: type")
               .Attr("index_type: {int32, int64} = DT_INT32")
               .Repeats(1)
               .InferShape(Ranked("value: 0", FillShape))
               .Gradient(FillGradient)
               .Doc("Returns a tensor of shape `dims` filled with `value`."));
  ops->Add(OpSpec("ZerosLike")
               .In("x: T")
               .Out("y: T")
               .Attr("T: type")
               .Moves(Movement::kReadsShape)
               .InferShape(SameShape)
               .NotDifferentiable()
               .Doc("Returns zeros with the shape and type of x."));
  ops->Add(
      OpSpec("OnesLike")
          .In("x: T")
          .Out("y: T")
          .Attr("T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, "
                "int64, uint64, complex64, complex128, bool}")
          .Moves(Movement::kReadsShape)
          .InferShape(SameShape)
          .NotDifferentiable()
          .Doc("Returns ones with the shape and type of x."));
  ops->Add(
      OpSpec("Empty")
          .In("shape: int32")
          .Out("output: dtype")
          .Attr("dtype: type")
          .Attr("init: bool = false")
          .Stateful()
          .InferShape(FillShape)
          .Doc("Returns a tensor of this shape with arbitrary elements, or with zeros if `init`."));
  ops->Add(OpSpec("BroadcastTo")
               .In("input: T, shape: Tidx")
               .Out("output: T")
               .Attr("T: type")
               .Attr("Tidx: {int32, int64} = DT_INT32")
               .Moves(Movement::kRearrange)
               .IdentityIfSameShape()
               .Repeats(0)
               .InferShape(BroadcastToShape)
               .Gradient(BroadcastToGradient)
               .Doc("Broadcasts the input to a larger shape, as elementwise ops do."));
  ops->Add(OpSpec("BroadcastArgs")
               .In("s0: T, s1: T")
               .Out("r0: T")
               .Attr("T: {int32, int64} = DT_INT32")
               .InferShape(Ranked("s0: 1, s1: 1", BroadcastArgsShape))
               .Doc("Returns the shape that two shapes broadcast to."));
  ops->Add(OpSpec("BroadcastGradientArgs")
               .In("s0: T, s1: T")
               .Out("r0: T, r1: T")
               .Attr("T: {int32, int64} = DT_INT32")
               .InferShape(Ranked("s0: 1, s1: 1", TwoVectorsShape))
               .NotDifferentiable()
               .Doc("For arguments of shapes s0 and s1, returns the dimensions over which the "
                    "gradient of each is summed."));
}

}  // namespace weir
