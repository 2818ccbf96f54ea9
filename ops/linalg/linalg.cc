#include "weir/ops/linalg/linalg.h"

#include "weir/core/graph/scope.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/lib/math_internal.h"
#include "weir/ops/linalg/linalg_internal.h"

// Transposes and identities, and what the files of linear algebra share.
namespace weir {

absl::StatusOr<Shape> SquareInput(ShapeContext& c, int i) {
  WEIR_ASSIGN_OR_RETURN(Shape s, c.WithRankAtLeast(i, 2));
  if (!s.has_rank()) return s;
  WEIR_ASSIGN_OR_RETURN(const int64_t n, MergeDims(s.dim(-2), s.dim(-1)));
  return s.Sub(0, -2).Concatenate({n, n});
}

absl::Status SquareShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape s, SquareInput(c, 0));
  c.set_output(0, s);
  return absl::OkStatus();
}

void AddWithBatchForm(OpRegistry* ops, const char* op, const char* types,
                      const GradientFn& gradient, const char* batch_op, const char* batch_types,
                      OpSpec (*describe)(OpSpec spec, const char* types)) {
  OpSpec spec = describe(OpSpec(op), types);
  if (gradient) spec.Gradient(gradient);
  ops->Add(std::move(spec));
  ops->Add(describe(OpSpec(batch_op), batch_types)
               .Deprecated(13, "use the op without Batch, which accepts batches"));
}

Output Product(Output a, Output b, bool adjoint_a, bool adjoint_b) {
  return MatMul(a, b, {.adjoint_a = adjoint_a, .adjoint_b = adjoint_b});
}

Output OuterShape(const Output& shape) {
  return StridedSlice(shape, {Index::Range(std::nullopt, -2)});
}

// ---- functions of several ops

Output MatrixTranspose(Output x, bool conjugate, absl::string_view name) {
  if (!x.valid()) return {};
  Graph& g = x.graph();
  const NameScope scope(g, name);
  const int rank = x.shape().rank();
  Ints perm;
  if (x.shape().has_rank()) {
    std::vector<int64_t> order(static_cast<size_t>(rank));
    for (int i = 0; i < rank; ++i) order[static_cast<size_t>(i)] = i;
    if (rank >= 2) std::swap(order[order.size() - 2], order[order.size() - 1]);
    perm = Ints(order);
  } else {
    const Output r = Rank(x);
    const Output outer = Range(g, 0, Subtract(r, 2, "sub"), 1, "Range");
    const Output last = Subtract(r, 1, "sub_1"), before = Subtract(r, 2, "sub_2");
    perm = Concat({outer, Stack({last, before}, 0, "concat/values_1")}, 0, "concat");
  }
  return conjugate && IsComplex(x.dtype()) ? ConjugateTranspose(x, perm, "transpose")
                                           : Transpose(x, perm, "transpose");
}

Output Adjoint(Output x, absl::string_view name) {
  if (!x.valid()) return {};
  const NameScope scope(x.graph(), name);
  return MatrixTranspose(x, /*conjugate=*/true);
}

Output Eye(Graph& graph, const Ints& rows, const Ints& batch, DataType dtype,
           absl::string_view name) {
  const NameScope scope(graph, name);
  if (!rows.is_tensor() && !batch.is_tensor()) {
    std::vector<int64_t> shape = batch.values();
    shape.push_back(rows.values().empty() ? 0 : rows.values()[0]);
    return MatrixDiag(Ones(graph, shape, dtype, "ones"));
  }
  const Output n = rows.In(graph, "rows", DT_INT32);
  const Output size = Minimum(n, n);
  const Output outer = batch.In(graph, "shape", DT_INT32);
  const Output shape = Concat({outer, Stack({size}, 0, "concat/values_1")}, 0, "concat");
  return MatrixDiag(Ones(graph, shape, dtype, "ones"));
}

}  // namespace weir
