#include "weir/ops/lib/array.h"

#include <algorithm>

#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/ranked_internal.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/lib/shape_values.h"

// Shapes of tensors, and ops that change only the shape.
namespace weir {

// ---- shape functions

namespace {

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

// Reshapes dy to the shape of x. A single unknown dimension becomes -1, which avoids a Shape node.
Grads ReshapeGradient(GradContext& g) {
  const Shape& shape = g.x().shape();
  const auto [product, unknown] = KnownProduct(shape);
  if (shape.has_rank() && unknown == 1 && product > 0) return {Reshape(g.dy(), shape)};
  return ReshapeToInputGradient(g);
}

Grads BroadcastToGradient(GradContext& g) {
  const DataType type = g.x(1).dtype();
  const Output x_shape = ShapeTensor(g.x(0), type);
  Output y_shape = g.x(1);
  if (g.y().shape().IsFullyDefined()) y_shape = Ints(g.y().shape()).In(g.graph(), "Const", type);
  const BroadcastReductions axes = BroadcastGradientArgs(y_shape, x_shape);
  return {Reshape(ReduceSum(g.dy(), axes.r1, true), x_shape)};
}

}  // namespace

void AddArrayShapeOps(OpRegistry* ops) {
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

// ---- builders

Output ShapeTensor(Output x, DataType out_type, absl::string_view name, bool optimize) {
  if (!x.valid()) return {};
  if (optimize && x.shape().IsFullyDefined()) {
    return Ints(x.shape()).In(x.graph(), name.empty() ? "Shape" : name, out_type);
  }
  return AddOp("Shape", {x}, {{"out_type", out_type}}, name);
}

Output Size(Output x, DataType out_type, absl::string_view name, bool optimize) {
  if (!x.valid()) return {};
  if (optimize && x.shape().IsFullyDefined()) {
    return Ints(x.shape().num_elements()).In(x.graph(), name.empty() ? "Size" : name, out_type);
  }
  return AddOp("Size", {x}, {{"out_type", out_type}}, name);
}

Output Rank(Output x, absl::string_view name, bool optimize) {
  if (!x.valid()) return {};
  if (optimize && x.shape().has_rank())
    return Ints(x.shape().rank()).In(x.graph(), name.empty() ? "Rank" : name);
  return AddOp("Rank", {x}, {}, name);
}

Outputs ShapeN(const Outputs& xs, DataType out_type, absl::string_view name) {
  return AllOutputs(AddNode("ShapeN", {xs}, {{"out_type", out_type}}, name), xs.size());
}

Output Reshape(Output x, const Ints& shape, absl::string_view name) {
  return WithInts("Reshape", x, "shape", shape, name);
}

Output ExpandDims(Output x, const Ints& axis, absl::string_view name) {
  return WithInts("ExpandDims", x, "dim", axis, name);
}

Output Squeeze(Output x, std::vector<int64_t> axes, absl::string_view name) {
  return AddOp("Squeeze", {x}, {{"squeeze_dims", std::move(axes)}}, name);
}

Output BroadcastTo(Output x, const Ints& shape, absl::string_view name) {
  return WithInts("BroadcastTo", x, "shape", shape, name);
}

Output BroadcastDynamicShape(Output s0, Output s1, absl::string_view name) {
  return AddOp("BroadcastArgs", {s0, s1}, {}, name);
}

BroadcastReductions BroadcastGradientArgs(Output s0, Output s1, absl::string_view name) {
  const Outputs r = AllOutputs(AddNode("BroadcastGradientArgs", {s0, s1}, {}, name), 2);
  return {r[0], r[1]};
}

}  // namespace weir
