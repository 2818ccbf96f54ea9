#include "weir/onnx/building.h"
#include "weir/onnx/importers.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/linalg/linalg.h"

// Matrix products.
namespace weir::onnx {

namespace {

// As NumPy's matmul: a vector on the left is a row, one on the right a column, and the result lacks
// that dimension.
absl::Status ImportMatMul(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int rank_a, c.Rank(0));
  WEIR_ASSIGN_OR_RETURN(const int rank_b, c.Rank(1));
  if (rank_a == 0 || rank_b == 0) return InvalidArgument("an input is a scalar");
  const Output a = rank_a == 1 ? ExpandDims(c.in(0), 0) : c.in(0);
  const Output b = rank_b == 1 ? ExpandDims(c.in(1), 1) : c.in(1);
  Output product = MatMul(a, b);
  if (rank_b == 1) product = Squeeze(product, {-1});
  if (rank_a == 1) product = Squeeze(product, {rank_b == 1 ? -1 : -2});
  return c.Return(product);
}

Output Scaled(const Output& x, float factor) {
  if (factor == 1) return x;
  if (!IsInteger(x.dtype())) return Multiply(x, ScalarLike(x, factor));
  const Output wide = Cast(x, DT_DOUBLE);
  return Cast(Multiply(wide, ScalarLike(wide, factor)), x.dtype());
}

// alpha A B + beta C.
absl::Status ImportGemm(NodeContext& c) {
  const Output product =
      MatMul(c.in(0), c.in(1),
             {.transpose_a = c.Int("transA", 0) != 0, .transpose_b = c.Int("transB", 0) != 0});
  const float alpha = c.Float("alpha", 1.0f), beta = c.Float("beta", 1.0f);
  const Output scaled = Scaled(product, alpha);
  return c.Return(c.has(2) ? Add(scaled, Scaled(c.in(2), beta)) : scaled);
}

absl::Status ImportEinsum(NodeContext& c) {
  return c.Return(Einsum(c.String("equation", ""), c.tensors()));
}

absl::Status ImportDet(NodeContext& c) { return c.Return(AddOp("MatrixDeterminant", {c.in(0)})); }

constexpr Importer kImporters[] = {
    {"Det", 11, 1, 1, ImportDet},
    {"Einsum", 12, 1, kAnyNumber, ImportEinsum},
    {"Gemm", 7, 2, 3, ImportGemm},
    {"MatMul", 7, 2, 2, ImportMatMul},
};

}  // namespace

absl::Span<const Importer> MatrixImporters() { return kImporters; }

}  // namespace weir::onnx
