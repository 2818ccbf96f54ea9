#include "weir/ops/sparse/sparse.h"

#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/math_internal.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/sparse/sparse_internal.h"

// Arithmetic and products of sparse tensors.
namespace weir {

// ---- shape functions

namespace {

absl::Status AddToDenseShape(ShapeContext& c) {
  c.set_output(0, c.input(3));
  return absl::OkStatus();
}

absl::Status AddShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape shape, c.WithRank(2, 1));
  return SetSparseOutputs(c, Shape::kUnknown, shape.dim(0));
}

absl::Status AddGradShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape a, c.WithRank(1, 2));
  WEIR_ASSIGN_OR_RETURN(const Shape b, c.WithRank(2, 2));
  c.set_output(0, Shape({a.dim(0)}));
  c.set_output(1, Shape({b.dim(0)}));
  return absl::OkStatus();
}

absl::Status CwiseShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape indices, c.WithRank(0, 2));
  c.set_output(0, Shape({indices.dim(0)}));
  return absl::OkStatus();
}

// The kernel checks that the parts are compatible, as in TensorFlow.
absl::Status ExtremeShape(ShapeContext& c) {
  for (const int first : {0, 3}) {
    WEIR_RETURN_IF_ERROR(c.WithRank(first, 2).status());
    WEIR_RETURN_IF_ERROR(c.WithRank(first + 1, 1).status());
    WEIR_RETURN_IF_ERROR(c.WithRank(first + 2, 1).status());
  }
  return SetSparseOutputs(c, Shape::kUnknown, c.input(0).dim(1));
}

absl::Status MultiplyDenseShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape indices, c.WithRank(0, 2));
  WEIR_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  WEIR_ASSIGN_OR_RETURN(const Shape b, c.WithRank(3, 2));
  WEIR_RETURN_IF_ERROR(MergeDims(indices.dim(1), 2).status());
  WEIR_ASSIGN_OR_RETURN(Shape a, c.InputAsShape(2));
  if (!a.has_rank()) a = UnknownDims(2);
  if (a.rank() != 2) return InvalidArgument("a_shape must have 2 elements, not ", a.rank());
  const bool adjoint_a = c.attr<bool>("adjoint_a"), adjoint_b = c.attr<bool>("adjoint_b");
  WEIR_RETURN_IF_ERROR(MergeDims(a.dim(adjoint_a ? 0 : 1), b.dim(adjoint_b ? 1 : 0)).status());
  c.set_output(0, Shape({a.dim(adjoint_a ? 1 : 0), b.dim(adjoint_b ? 0 : 1)}));
  return absl::OkStatus();
}

// ---- gradients

Grads AddToDenseGradient(GradContext& g) {
  return {Grad(), GatherNd(g.dy(), g.x(0)), Grad(), g.dy()};
}

Grads AddGradient(GradContext& g) {
  const Outputs r = AllOutputs(AddNode("SparseAddGrad", {g.dy(1), g.x(0), g.x(3), g.y(0)}), 2);
  return {Grad(), r[0], Grad(), Grad(), r[1], Grad(), Grad()};
}

// For the elements of A: rows of the gradient times rows of B, selected by each element's position.
Output MultiplyDenseValuesGradient(GradContext& g, bool adjoint_a, bool adjoint_b) {
  const Output rows = StridedSlice(g.x(0), {Index::All(), Index(0)});
  const Output cols = StridedSlice(g.x(0), {Index::All(), Index(1)});
  const Output of_dy = Gather(g.dy(), adjoint_a ? cols : rows);
  const Output of_b = Gather(adjoint_b ? Transpose(g.x(3)) : g.x(3), adjoint_a ? rows : cols);
  // An extra dimension of 1 turns vectors into matrices, whose product reduces the other dimension.
  const Output left = ExpandDims(of_dy, adjoint_a ? -1 : -2);
  const Output right = ExpandDims(of_b, adjoint_a == adjoint_b ? -2 : -1);
  MatMulOptions options;
  options.adjoint_a = adjoint_a;
  options.adjoint_b = adjoint_a == adjoint_b;
  return Squeeze(MatMul(left, right, options), {-2, -1});
}

Grads MultiplyDenseGradient(GradContext& g) {
  const bool adjoint_a = g.attr<bool>("adjoint_a"), adjoint_b = g.attr<bool>("adjoint_b");
  Output b = AddOp("SparseTensorDenseMatMul", {g.x(0), g.x(1), g.x(2), g.dy()},
                   {{"adjoint_a", !adjoint_a}});
  if (adjoint_b && b.valid()) {
    const NameScope scope(g.graph(), "matrix_transpose");
    b = IsComplex(b.dtype()) ? ConjugateTranspose(b, {1, 0}, "transpose")
                             : Transpose(b, {1, 0}, "transpose");
  }
  return {Grad(), MultiplyDenseValuesGradient(g, adjoint_a, adjoint_b), Grad(), b};
}

// Gathers the dense operand's elements at the positions of the sparse operand's. Their gradients
// are summed because an element that is broadcast is gathered several times.
template <bool kDivides>
Grads CwiseGradient(GradContext& g) {
  const Output values = g.x(1), shape = g.x(2), dense = g.x(3);
  const Output dense_shape = Cast(ShapeVector(dense), DT_INT64);
  const Output rank = Size(shape);
  const Output added = ExpandDims(rank - Size(dense_shape), 0);
  const Output whole = Concat({Ones(g.graph(), added, DT_INT64), dense_shape}, 0);
  const Output scaled = FloorDiv(g.x(0), FloorDiv(shape, whole, "floordiv"), "floordiv");
  Output begin;
  {
    const NameScope scope(g.graph(), "concat");
    const Output zero = Const(g.graph(), {int32_t{0}}, "values_0");
    const Output axis = Const(g.graph(), int32_t{0}, "axis");
    begin = AddOp("ConcatV2", {Outputs{zero, added}, axis}, {}, scope.name());
  }
  const Output places = Slice(scaled, begin, {-1, -1});
  const Output gathered = GatherNd(dense, places);
  const Output dx = kDivides ? g.dy() / gathered : g.dy() * gathered;
  Output slope = values;
  if (kDivides) {
    slope = -values;
    slope = slope / Square(gathered);
  }
  const Output dy_values = g.dy() * slope;
  const Output zeros = ZerosOf(dense);
  const SparseTensor of_dense = MakeSparseTensor(places, dy_values, dense_shape);
  return {Grad(), dx, Grad(), SparseAdd(of_dense, zeros)};
}

// One matrix product of SparseMatMul's gradient, in the type of the corresponding argument.
class SparseMatMulGradients {
 public:
  explicit SparseMatMulGradients(GradContext& g) : g_(g) {}

  // Flags transpose the factors. A separate node transposes the second one, as in Python.
  Output Product(Output x, Output y, DataType type, bool transpose_x, bool transpose_y) {
    const bool sparse_x = IsSparse(x), sparse_y = IsSparse(y);
    if (transpose_y) y = Transpose(y);
    Output product;
    if (x.dtype() == y.dtype() && !sparse_x && !sparse_y) {
      product = MatMul(x, y, {.transpose_a = transpose_x});
    } else {
      product = AddOp(
          "SparseMatMul", {x, y},
          {{"transpose_a", transpose_x}, {"a_is_sparse", sparse_x}, {"b_is_sparse", sparse_y}},
          "MatMul");
    }
    return product.valid() ? Cast(product, type) : product;
  }

 private:
  bool IsSparse(const Output& x) const {
    if (x == g_.x(0)) return g_.attr<bool>("a_is_sparse");
    if (x == g_.x(1)) return g_.attr<bool>("b_is_sparse");
    return x.valid() && x.node->op_name() == "ReluGrad";
  }
  GradContext& g_;
};

Grads SparseMatMulGradient(GradContext& g) {
  const bool ta = g.attr<bool>("transpose_a"), tb = g.attr<bool>("transpose_b");
  const Output a = g.x(0), b = g.x(1), dy = g.dy();
  SparseMatMulGradients of(g);
  const Output da =
      ta ? of.Product(b, dy, a.dtype(), tb, true) : of.Product(dy, b, a.dtype(), false, !tb);
  const Output db =
      tb ? of.Product(dy, a, b.dtype(), true, ta) : of.Product(a, dy, b.dtype(), !ta, false);
  return {da, db};
}

// ---- op definitions

OpSpec CwiseSpec(absl::string_view op, absl::string_view doc) {
  return OpSpec(op)
      .In("sp_indices: int64, sp_values: T, sp_shape: int64, dense: T")
      .Out("output: T")
      .Attr("T: numbertype")
      .InferShape(CwiseShape)
      .Doc(doc);
}

OpSpec ExtremeSpec(absl::string_view op, absl::string_view doc) {
  return OpSpec(op)
      .In("a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, "
          "b_shape: int64")
      .Out("output_indices: int64, output_values: T")
      .InferShape(ExtremeShape)
      .Doc(doc);
}

void AddProducts(OpRegistry* ops) {
  ops->Add(OpSpec("SparseTensorDenseMatMul")
               .In("a_indices: Tindices, a_values: T, a_shape: int64, b: T")
               .Out("product: T")
               .Attr("T: type")
               .Attr("Tindices: {int32, int64} = DT_INT64")
               .Attr("adjoint_a: bool = false")
               .Attr("adjoint_b: bool = false")
               .InferShape(MultiplyDenseShape)
               .Gradient(MultiplyDenseGradient)
               .Doc("Multiplies a sparse matrix by a dense one."));
  ops->Add(OpSpec("SparseMatMul")
               .In("a: Ta, b: Tb")
               .Out("product: float")
               .Attr("transpose_a: bool = false")
               .Attr("transpose_b: bool = false")
               .Attr("a_is_sparse: bool = false")
               .Attr("b_is_sparse: bool = false")
               .Attr("Ta: {float, bfloat16} = DT_FLOAT")
               .Attr("Tb: {float, bfloat16} = DT_FLOAT")
               .InferShape(MatMulShape)
               .Gradient(SparseMatMulGradient)
               .Doc("Multiplies two dense matrices that contain many zeros."));
}

}  // namespace

void AddSparseMathOps(OpRegistry* ops) {
  ops->Add(OpSpec("SparseTensorDenseAdd")
               .In("a_indices: Tindices, a_values: T, a_shape: Tindices, b: T")
               .Out("output: T")
               .Attr("T: numbertype")
               .Attr("Tindices: {int32, int64}")
               .InferShape(AddToDenseShape)
               .Gradient(AddToDenseGradient)
               .Doc("Returns the dense sum of a sparse and a dense tensor of the same shape."));
  ops->Add(OpSpec("SparseAdd")
               .In("a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T, "
                   "b_shape: int64, thresh: Treal")
               .Out("sum_indices: int64, sum_values: T, sum_shape: int64")
               .Attr("T: numbertype")
               .Attr("Treal: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, "
                     "half, uint32, uint64}")
               .InferShape(AddShape)
               .Gradient(AddGradient)
               .Doc("Returns the sum of two sparse tensors of the same shape. Sums of two elements "
                    "whose magnitude is below a threshold are dropped."));
  ops->Add(OpSpec("SparseAddGrad")
               .In("backprop_val_grad: T, a_indices: int64, b_indices: int64, sum_indices: int64")
               .Out("a_val_grad: T, b_val_grad: T")
               .Attr("T: numbertype")
               .InferShape(AddGradShape)
               .NotDifferentiable()
               .Doc("Computes the gradients of SparseAdd with respect to both tensors' values."));
  ops->Add(ExtremeSpec(
               "SparseSparseMaximum",
               "Returns the elementwise maximum of two sparse tensors where either has an element.")
               .Attr(kRealTypes));
  ops->Add(ExtremeSpec(
               "SparseSparseMinimum",
               "Returns the elementwise minimum of two sparse tensors where either has an element.")
               .Attr("T: numbertype"));
  ops->Add(CwiseSpec(
      "SparseDenseCwiseAdd",
      "Adds the elements of a dense tensor, which is broadcast, to those of a sparse one."));
  ops->Add(CwiseSpec("SparseDenseCwiseMul",
                     "Multiplies the elements of a sparse tensor by those of a dense one.")
               .Gradient(CwiseGradient<false>));
  ops->Add(CwiseSpec("SparseDenseCwiseDiv",
                     "Divides the elements of a sparse tensor by those of a dense one.")
               .Gradient(CwiseGradient<true>));
  AddProducts(ops);
}

// ---- builders

namespace {

SparseTensor Cwise(absl::string_view op, const SparseTensor& x, Output dense) {
  const Output values = AddOp(op, {x.indices, x.values, x.dense_shape, dense});
  return MakeSparseTensor(x.indices, values, x.dense_shape);
}

SparseTensor Extreme(absl::string_view op, const SparseTensor& a, const SparseTensor& b,
                     absl::string_view name) {
  if (!a.indices.valid()) return {};
  Node* node = nullptr;
  {
    const NameScope scope(a.indices.graph(), name.empty() ? op : name);
    node = AddNode(op, {a.indices, a.values, a.dense_shape, b.indices, b.values, b.dense_shape}, {},
                   scope.name());
  }
  const Outputs r = AllOutputs(node, 2);
  return MakeSparseTensor(r[0], r[1], a.dense_shape);
}

}  // namespace

SparseTensor SparseAdd(const SparseTensor& a, const SparseTensor& b, const Literal& threshold) {
  if (!a.values.valid()) return {};
  const DataType type = a.values.dtype() == DT_COMPLEX64    ? DT_FLOAT
                        : a.values.dtype() == DT_COMPLEX128 ? DT_DOUBLE
                                                            : a.values.dtype();
  const Output limit = ConstOf(a.values.graph(), type, threshold, "threshold");
  Node* const node = AddNode(
      "SparseAdd", {a.indices, a.values, a.dense_shape, b.indices, b.values, b.dense_shape, limit});
  if (node == nullptr) return {};
  Ints shape = node->output(2);
  if (const std::optional<Shape> known = StaticShape(node, 2); known && StaticShape(node, 5))
    shape = Ints(*known);
  return MakeSparseTensor(node->output(0), node->output(1), shape);
}

Output SparseAdd(const SparseTensor& a, Output dense) {
  return AddOp("SparseTensorDenseAdd", {a.indices, a.values, a.dense_shape, dense});
}

SparseTensor SparseMaximum(const SparseTensor& a, const SparseTensor& b, absl::string_view name) {
  return Extreme("SparseSparseMaximum", a, b, name);
}
SparseTensor SparseMinimum(const SparseTensor& a, const SparseTensor& b, absl::string_view name) {
  return Extreme("SparseSparseMinimum", a, b, name);
}

SparseTensor SparseDenseCwiseAdd(const SparseTensor& x, Output dense) {
  return Cwise("SparseDenseCwiseAdd", x, dense);
}
SparseTensor SparseDenseCwiseMul(const SparseTensor& x, Output dense) {
  return Cwise("SparseDenseCwiseMul", x, dense);
}
SparseTensor SparseDenseCwiseDiv(const SparseTensor& x, Output dense) {
  return Cwise("SparseDenseCwiseDiv", x, dense);
}

Output SparseTensorDenseMatMul(const SparseTensor& a, Output b, const SparseMatMulOptions& options,
                               absl::string_view name) {
  const Attrs attrs = {{"adjoint_a", options.adjoint_a}, {"adjoint_b", options.adjoint_b}};
  if (!a.indices.valid()) return {};
  const NameScope scope(a.indices.graph(), name.empty() ? "SparseTensorDenseMatMul" : name);
  return AddOp("SparseTensorDenseMatMul", {a.indices, a.values, a.dense_shape, b}, attrs);
}

}  // namespace weir
