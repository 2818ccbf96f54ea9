#include <limits>
#include <string>
#include <utility>

#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/sparse/csr_internal.h"
#include "weir/ops/sparse/sparse_internal.h"

// Products of CSR matrices.
namespace weir {

namespace {

// ---- shape functions

// Whether a factor is transposed, perhaps also conjugated.
absl::StatusOr<bool> IsTransposed(const ShapeContext& c, const std::string& factor) {
  const bool transpose = c.attr<bool>("transpose_" + factor),
             adjoint = c.attr<bool>("adjoint_" + factor);
  if (!transpose || !adjoint) return transpose || adjoint;
  return InvalidArgument("Only one of adjoint_", factor, " and transpose_", factor,
                         " may be true.");
}

// Returns the shape of the product of matrices of these shapes.
absl::StatusOr<Shape> ProductShape(const ShapeContext& c, const Shape& a, const Shape& b) {
  WEIR_ASSIGN_OR_RETURN(const bool transpose_a, IsTransposed(c, "a"));
  WEIR_ASSIGN_OR_RETURN(const bool transpose_b, IsTransposed(c, "b"));
  if (!a.has_rank() || !b.has_rank()) return Shape::UnknownRank();
  WEIR_RETURN_IF_ERROR(
      MergeDims(a.dim(transpose_a ? -2 : -1), b.dim(transpose_b ? -1 : -2)).status());
  WEIR_ASSIGN_OR_RETURN(Shape out, a.Sub(0, a.rank() - 2).MergeWith(b.Sub(0, b.rank() - 2)));
  out.AddDim(a.dim(transpose_a ? -1 : -2));
  out.AddDim(b.dim(transpose_b ? -2 : -1));
  return out;
}

absl::Status DenseProductShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape a, MatrixShape(c, 0));
  WEIR_RETURN_IF_ERROR(c.WithRankAtLeast(1, 2).status());
  WEIR_ASSIGN_OR_RETURN(const Shape b, c.WithRankAtMost(1, 3));
  WEIR_ASSIGN_OR_RETURN(Shape out, ProductShape(c, a, b));
  if (out.has_rank() && c.attr<bool>("transpose_output")) {
    const int64_t rows = out.dim(-2);
    out.set_dim(out.rank() - 2, out.dim(-1));
    out.set_dim(out.rank() - 1, rows);
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status SparseProductShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape a, MatrixShape(c, 0));
  WEIR_ASSIGN_OR_RETURN(const Shape b, MatrixShape(c, 1));
  WEIR_ASSIGN_OR_RETURN(Shape out, ProductShape(c, a, b));
  return SetMatrix(c, c.attr<DataType>("type"), std::move(out));
}

// ---- gradients
//
// The gradients of a product P = op(A) op(B) are dP op(B)^H and op(A)^H dP. Those of the factors
// follow by op again. The gradient of a CSR matrix has the matrix's elements.

// What is done to a factor.
enum class Form { kPlain, kTransposed, kAdjoint };

Form FormOf(const GradContext& g, const std::string& factor) {
  if (g.attr<bool>("adjoint_" + factor)) return Form::kAdjoint;
  return g.attr<bool>("transpose_" + factor) ? Form::kTransposed : Form::kPlain;
}

// Transposes the matrices of a dense tensor of rank 2 or 3.
Output TransposeMatrices(Output x) {
  return x.shape().rank() == 3 ? Transpose(x, {0, 2, 1}) : Transpose(x, {1, 0});
}

// Gathers, for each element, the row of a dense matrix that the element's index `axis` names.
Output RowsAt(Output matrix, Output indices, int axis) {
  if (matrix.shape().rank() != 3)
    return Gather(matrix, StridedSlice(indices, {Index::All(), Index(axis)}));
  const Output batch = StridedSlice(indices, {Index::All(), Index(0)});
  const Output row = StridedSlice(indices, {Index::All(), Index(axis + 1)});
  return GatherNd(matrix, Stack({batch, row}, 1));
}

Grads DenseProductGradient(GradContext& g) {
  const Form form_a = FormOf(g, "a"), form_b = FormOf(g, "b");
  const bool transpose_output = g.attr<bool>("transpose_output");
  const Output a = g.x(0), b = g.x(1);
  const Output dy = g.attr<bool>("conjugate_output") ? Conj(g.dy()) : g.dy();
  // Element [i, j] of dP op(B)^H is the product of a row of dP and a column of op(B), conjugated.
  const SparseTensor pattern = CSRSparseMatrixToSparseTensor(a, b.dtype());
  const Output left = transpose_output ? TransposeMatrices(dy) : dy;
  const Output right = form_b == Form::kPlain        ? Conj(b)
                       : form_b == Form::kTransposed ? Conj(TransposeMatrices(b))
                                                     : TransposeMatrices(b);
  const int row = form_a == Form::kPlain ? 0 : 1;
  const Output terms = RowsAt(left, pattern.indices, row) * RowsAt(right, pattern.indices, 1 - row);
  Output values = ReduceSum(terms, {1});
  if (form_a == Form::kAdjoint) values = Conj(values);
  const Output da = SparseTensorToCSRSparseMatrix({pattern.indices, values, pattern.dense_shape});
  CSRMatMulOptions options;
  options.adjoint_a = form_a == Form::kPlain;
  options.transpose_b = transpose_output;
  options.transpose_output = form_b != Form::kPlain;
  options.conjugate_output = form_b == Form::kAdjoint;
  return {da, SparseMatrixMatMul(form_a == Form::kTransposed ? Conj(a) : a, dy, options)};
}

// Returns the elements of `matrix` at the places of the elements of `pattern`, zeros where it has
// none. The columns of its rows are in order.
Output ElementsAt(Output matrix, Output pattern, DataType type) {
  const SparseTensor x = CSRSparseMatrixToSparseTensor(matrix, type);
  const SparseTensor places = CSRSparseMatrixToSparseTensor(pattern, type);
  Graph& g = matrix.graph();
  const auto keys = [](const SparseTensor& t) {
    return StridedSlice(SparseReshape(t, {-1}).indices, {Index::All(), Index(0)});
  };
  // One key more, greater than all, so that every search finds one.
  const Output have = Concat({keys(x), Const(g, {std::numeric_limits<int64_t>::max()})}, 0);
  const Output want = keys(places);
  const Output zero = Zeros(g, {1}, type);
  const Output found = Reshape(
      AddOp("LowerBound", {ExpandDims(have, 0), ExpandDims(want, 0)}, {{"out_type", DT_INT64}}),
      {-1});
  const Output values = Gather(Concat({x.values, zero}, 0), found);
  const Output matched = SelectV2(Equal(Gather(have, found), want), values, ZerosLike(values));
  return SparseTensorToCSRSparseMatrix({places.indices, matched, places.dense_shape});
}

Grads SparseProductGradient(GradContext& g) {
  const DataType type = g.attr<DataType>("type");
  const Output a = g.x(0), b = g.x(1), dy = g.dy();
  // Multiplies dP by the adjoint of a factor in its form, or the adjoint by dP.
  const auto from_right = [&](Output factor, Form form) {
    CSRMatMulOptions options;
    options.adjoint_b = form == Form::kPlain;
    return SparseMatrixSparseMatMul(dy, form == Form::kTransposed ? Conj(factor) : factor, options,
                                    type);
  };
  const auto from_left = [&](Output factor, Form form) {
    CSRMatMulOptions options;
    options.adjoint_a = form == Form::kPlain;
    return SparseMatrixSparseMatMul(form == Form::kTransposed ? Conj(factor) : factor, dy, options,
                                    type);
  };
  const auto undo = [&](Output gradient, Form form) {
    if (form == Form::kPlain) return gradient;
    return SparseMatrixTranspose(gradient, form == Form::kAdjoint, type);
  };
  const Form form_a = FormOf(g, "a"), form_b = FormOf(g, "b");
  return {ElementsAt(undo(from_right(b, form_b), form_a), a, type),
          ElementsAt(undo(from_left(a, form_a), form_b), b, type)};
}

}  // namespace

void AddCsrProductOps(OpRegistry* ops) {
  const auto forms = [](OpSpec spec) {
    for (const char* attr : {"transpose_a", "transpose_b", "adjoint_a", "adjoint_b"})
      spec.Attr(absl::StrCat(attr, ": bool = false"));
    return spec;
  };
  ops->Add(
      forms(OpSpec("SparseMatrixMatMul").In("a: variant, b: T").Out("output: T").Attr("T: type"))
          .Attr("transpose_output: bool = false")
          .Attr("conjugate_output: bool = false")
          .InferShape(DenseProductShape)
          .Gradient(DenseProductGradient)
          .Doc("Multiplies a CSR matrix by a dense matrix."));
  ops->Add(forms(OpSpec("SparseMatrixSparseMatMul")
                     .In("a: variant, b: variant")
                     .Out("c: variant")
                     .Attr(kCsrType))
               .InferShape(SparseProductShape)
               .Gradient(SparseProductGradient)
               .Doc("Multiplies two CSR matrices."));
}

Output SparseMatrixMatMul(Output a, Output b, const CSRMatMulOptions& o, absl::string_view name) {
  return AddOp("SparseMatrixMatMul", {a, b},
               {{"transpose_a", o.transpose_a},
                {"transpose_b", o.transpose_b},
                {"adjoint_a", o.adjoint_a},
                {"adjoint_b", o.adjoint_b},
                {"transpose_output", o.transpose_output},
                {"conjugate_output", o.conjugate_output}},
               name);
}
Output SparseMatrixSparseMatMul(Output a, Output b, const CSRMatMulOptions& o, DataType type,
                                absl::string_view name) {
  Attrs attrs = TypeAttr(a, type);
  attrs.insert(attrs.end(), {{"transpose_a", o.transpose_a},
                             {"transpose_b", o.transpose_b},
                             {"adjoint_a", o.adjoint_a},
                             {"adjoint_b", o.adjoint_b}});
  return AddOp("SparseMatrixSparseMatMul", {a, b}, attrs, name);
}

}  // namespace weir
