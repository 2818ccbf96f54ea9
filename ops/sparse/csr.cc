#include "weir/ops/sparse/csr.h"

#include <utility>

#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/sparse/csr_internal.h"
#include "weir/ops/sparse/sparse_internal.h"

// CSR matrices: conversions, parts, transposes and factors.
namespace weir {

// ---- shared with csr_product.cc

absl::StatusOr<Shape> MatrixShape(ShapeContext& c, int i) {
  WEIR_RETURN_IF_ERROR(c.WithRank(i, 0).status());
  if (c.handle(i) == nullptr || !c.handle(i)->shape.has_rank()) return Shape::UnknownRank();
  const Shape& shape = c.handle(i)->shape;
  if (shape.rank() == 2 || shape.rank() == 3) return shape;
  return InvalidArgument("Shape must be rank 2 or 3 but is rank ", shape.rank());
}
DataType MatrixType(ShapeContext& c, int i) {
  return c.handle(i) == nullptr ? DT_INVALID : c.handle(i)->dtype;
}

absl::Status SetMatrix(ShapeContext& c, DataType type, Shape shape) {
  c.set_output(0, Shape());
  c.set_output_handle(0, {type, std::move(shape)});
  return absl::OkStatus();
}

Attrs TypeAttr(Output matrix, DataType type) {
  if (type == DT_INVALID) type = CSRTypeOf(matrix);
  if (type == DT_INVALID) return {};
  return {{"type", type}};
}

namespace {

// ---- shape functions

absl::Status FromSparseShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t rank, SparseRank(c, 0));
  WEIR_ASSIGN_OR_RETURN(Shape shape, c.InputAsShape(2));
  if (!shape.has_rank()) shape = UnknownDims(rank);
  if (shape.has_rank() && shape.rank() != 2 && shape.rank() != 3) {
    return InvalidArgument("Invalid rank: ", shape.rank(),
                           ".  Expected a known rank of either 2 or 3.");
  }
  return SetMatrix(c, c.attr<DataType>("T"), std::move(shape));
}

absl::Status FromDenseShape(ShapeContext& c) {
  const Shape& dense = c.input(0);
  if (dense.has_rank() && dense.rank() != 2 && dense.rank() != 3) {
    return InvalidArgument("Invalid rank of dense: ", dense.rank(),
                           ".  Expected a known rank of either 2 or 3.");
  }
  WEIR_ASSIGN_OR_RETURN(const Shape indices, c.WithRank(1, 2));
  if (dense.has_rank() && indices.dim(1) >= 0 && indices.dim(1) != dense.rank()) {
    return InvalidArgument("indices.shape[1] must match rank of dense; saw: ", indices.dim(1),
                           " vs. ", dense.rank());
  }
  return SetMatrix(c, c.attr<DataType>("T"), dense);
}

absl::Status ToDenseShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(Shape shape, MatrixShape(c, 0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status ToSparseShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape shape, MatrixShape(c, 0));
  return SetSparseOutputs(c, Shape::kUnknown, shape.rank());
}

absl::Status ComponentsShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape shape, MatrixShape(c, 0));
  if (c.input(1).has_rank() && c.input(1).rank() != 0) {
    return InvalidArgument("index must be a scalar.");
  }
  WEIR_ASSIGN_OR_RETURN(const int64_t pointers, AddDims(shape.dim(-2), 1));
  c.set_output(0, Shape({pointers}));
  c.set_output(1, Shape({Shape::kUnknown}));
  c.set_output(2, Shape({Shape::kUnknown}));
  return absl::OkStatus();
}

absl::Status CountShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape shape, MatrixShape(c, 0));
  if (shape.has_rank()) c.set_output(0, shape.Sub(0, shape.rank() - 2));
  return absl::OkStatus();
}

absl::Status TransposedShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(Shape shape, MatrixShape(c, 0));
  if (shape.has_rank()) {
    const int64_t rows = shape.dim(-2), rank = shape.rank();
    shape.set_dim(static_cast<int>(rank) - 2, shape.dim(-1));
    shape.set_dim(static_cast<int>(rank) - 1, rows);
  }
  return SetMatrix(c, MatrixType(c, 0), std::move(shape));
}

absl::StatusOr<Shape> SquareShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(Shape shape, MatrixShape(c, 0));
  WEIR_RETURN_IF_ERROR(MergeDims(shape.dim(-2), shape.dim(-1)).status());
  return shape;
}

absl::Status OrderShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape shape, SquareShape(c));
  if (shape.has_rank()) c.set_output(0, shape.Sub(0, shape.rank() - 1));
  return absl::OkStatus();
}

absl::Status FactorShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(Shape shape, SquareShape(c));
  WEIR_RETURN_IF_ERROR(c.WithRankAtLeast(1, 1).status());
  WEIR_ASSIGN_OR_RETURN(const Shape permutation, c.WithRankAtMost(1, 2));
  WEIR_RETURN_IF_ERROR(MergeDims(shape.dim(-1), permutation.dim(-1)).status());
  return SetMatrix(c, c.attr<DataType>("type"), std::move(shape));
}

// ---- gradients of conversions

Grads FromSparseGradient(GradContext& g) {
  return {Grad(), CSRSparseMatrixToSparseTensor(g.dy(), g.attr<DataType>("T")).values, Grad()};
}

Grads FromDenseGradient(GradContext& g) {
  return {CSRSparseMatrixToDense(g.dy(), g.attr<DataType>("T")), Grad()};
}

Grads ToDenseGradient(GradContext& g) {
  const Output dy = g.dy();
  const Output indices = CSRSparseMatrixToSparseTensor(g.x(), dy.dtype()).indices;
  return {
      SparseTensorToCSRSparseMatrix({indices, GatherNd(dy, indices), ShapeTensor(dy, DT_INT64)})};
}

Grads ToSparseGradient(GradContext& g) {
  return {SparseTensorToCSRSparseMatrix({g.y(0), g.dy(1), g.y(2)})};
}

Grads TransposeGradient(GradContext& g) {
  return {SparseMatrixTranspose(g.dy(), g.attr<bool>("conjugate"), g.attr<DataType>("type"))};
}

}  // namespace

// ---- op definitions

void AddCsrOps(OpRegistry* ops) {
  constexpr char kT[] = "T: {float, double, complex64, complex128}";
  ops->Add(OpSpec("SparseTensorToCSRSparseMatrix")
               .In("indices: int64, values: T, dense_shape: int64")
               .Out("sparse_matrix: variant")
               .Attr(kT)
               .InferShape(FromSparseShape)
               .Gradient(FromSparseGradient)
               .Doc("Converts a sparse tensor of rank 2 or 3 to a CSR matrix or a batch of them."));
  ops->Add(OpSpec("DenseToCSRSparseMatrix")
               .In("dense_input: T, indices: int64")
               .Out("sparse_output: variant")
               .Attr(kT)
               .InferShape(FromDenseShape)
               .Gradient(FromDenseGradient)
               .Doc("Makes a CSR matrix of the elements of a dense matrix at the given indices."));
  ops->Add(OpSpec("CSRSparseMatrixToDense")
               .In("sparse_input: variant")
               .Out("dense_output: type")
               .Attr(kCsrType)
               .InferShape(ToDenseShape)
               .Gradient(ToDenseGradient)
               .Doc("Converts a CSR matrix to a dense one."));
  ops->Add(OpSpec("CSRSparseMatrixToSparseTensor")
               .In("sparse_matrix: variant")
               .Out("indices: int64, values: type, dense_shape: int64")
               .Attr(kCsrType)
               .InferShape(ToSparseShape)
               .Gradient(ToSparseGradient)
               .Doc("Converts a CSR matrix to a sparse tensor."));
  ops->Add(OpSpec("CSRSparseMatrixComponents")
               .In("csr_sparse_matrix: variant, index: int32")
               .Out("row_ptrs: int32, col_inds: int32, values: type")
               .Attr(kCsrType)
               .InferShape(ComponentsShape)
               .Doc("Returns the pointers, columns and values of one CSR matrix of a batch."));
  ops->Add(OpSpec("SparseMatrixNNZ")
               .In("sparse_matrix: variant")
               .Out("nnz: int32")
               .InferShape(CountShape)
               .NotDifferentiable()
               .Doc("Returns the number of elements of a CSR matrix."));
  ops->Add(OpSpec("SparseMatrixTranspose")
               .In("input: variant")
               .Out("output: variant")
               .Attr("conjugate: bool = false")
               .Attr(kCsrType)
               .InferShape(TransposedShape)
               .Gradient(TransposeGradient)
               .Doc("Transposes a CSR matrix."));
  ops->Add(OpSpec("SparseMatrixOrderingAMD")
               .In("input: variant")
               .Out("output: int32")
               .InferShape(OrderShape)
               .Doc("Returns an order of the rows that keeps the Cholesky factor of a CSR matrix "
                    "sparse."));
  ops->Add(OpSpec("SparseMatrixSparseCholesky")
               .In("input: variant, permutation: int32")
               .Out("output: variant")
               .Attr(kCsrType)
               .InferShape(FactorShape)
               .Doc("Returns the Cholesky factor of a CSR matrix whose rows and columns are "
                    "permuted."));
}

// ---- builders

DataType CSRTypeOf(Output matrix) {
  if (!matrix.valid()) return DT_INVALID;
  const HandleData* const data = matrix.node->output_handle(matrix.index);
  return data == nullptr ? DT_INVALID : data->dtype;
}

Output SparseTensorToCSRSparseMatrix(const SparseTensor& x, absl::string_view name) {
  return AddOp("SparseTensorToCSRSparseMatrix", {x.indices, x.values, x.dense_shape}, {}, name);
}
Output DenseToCSRSparseMatrix(Output dense, Output indices, absl::string_view name) {
  return AddOp("DenseToCSRSparseMatrix", {dense, indices}, {}, name);
}
Output CSRSparseMatrixToDense(Output matrix, DataType type, absl::string_view name) {
  return AddOp("CSRSparseMatrixToDense", {matrix}, TypeAttr(matrix, type), name);
}
SparseTensor CSRSparseMatrixToSparseTensor(Output matrix, DataType type, absl::string_view name) {
  return SparseOutputs(
      AddNode("CSRSparseMatrixToSparseTensor", {matrix}, TypeAttr(matrix, type), name));
}
CSRComponents CSRSparseMatrixComponents(Output matrix, const Ints& index, DataType type,
                                        absl::string_view name) {
  if (!matrix.valid()) return {};
  const Output at = index.In(matrix.graph(), "index", DT_INT32);
  const Outputs r = AllOutputs(
      AddNode("CSRSparseMatrixComponents", {matrix, at}, TypeAttr(matrix, type), name), 3);
  return {r[0], r[1], r[2]};
}
Output SparseMatrixNNZ(Output matrix, absl::string_view name) {
  return AddOp("SparseMatrixNNZ", {matrix}, {}, name);
}

Output SparseMatrixTranspose(Output matrix, bool conjugate, DataType type, absl::string_view name) {
  Attrs attrs = TypeAttr(matrix, type);
  attrs.emplace_back("conjugate", conjugate);
  return AddOp("SparseMatrixTranspose", {matrix}, attrs, name);
}
Output SparseMatrixOrderingAMD(Output matrix, absl::string_view name) {
  return AddOp("SparseMatrixOrderingAMD", {matrix}, {}, name);
}
Output SparseMatrixSparseCholesky(Output matrix, Output permutation, DataType type,
                                  absl::string_view name) {
  return AddOp("SparseMatrixSparseCholesky", {matrix, permutation}, TypeAttr(matrix, type), name);
}

}  // namespace weir
