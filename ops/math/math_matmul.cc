#include <algorithm>
#include <optional>

#include "weir/core/graph/scope.h"
#include "weir/ops/lib/math_internal.h"
#include "weir/ops/lib/op_costs.h"
#include "weir/ops/lib/range_size.h"
#include "weir/ops/lib/registry.h"

// Products of matrices and vectors.
namespace weir {

// ---- shape functions

absl::Status MatMulShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape a, c.WithRank(0, 2));
  WEIR_ASSIGN_OR_RETURN(const Shape b, c.WithRank(1, 2));
  const bool ta = c.attr<bool>("transpose_a"), tb = c.attr<bool>("transpose_b");
  WEIR_RETURN_IF_ERROR(MergeDims(a.dim(ta ? 0 : 1), b.dim(tb ? 1 : 0)).status());
  c.set_output(0, Shape({a.dim(ta ? 1 : 0), b.dim(tb ? 0 : 1)}));
  return absl::OkStatus();
}

namespace {

absl::Status BatchShape(ShapeContext& c, bool broadcasts) {
  WEIR_ASSIGN_OR_RETURN(const Shape x, c.WithRankAtLeast(0, 2));
  WEIR_ASSIGN_OR_RETURN(const Shape y, c.WithRankAtLeast(1, 2));
  if (!x.has_rank() || !y.has_rank()) return absl::OkStatus();
  const bool ax = c.attr<bool>("adj_x"), ay = c.attr<bool>("adj_y");
  WEIR_RETURN_IF_ERROR(MergeDims(x.dim(ax ? -2 : -1), y.dim(ay ? -1 : -2)).status());
  const Shape x_batch = x.Sub(0, x.rank() - 2), y_batch = y.Sub(0, y.rank() - 2);
  WEIR_ASSIGN_OR_RETURN(
      Shape out, broadcasts ? BroadcastShapes(x_batch, y_batch) : x_batch.MergeWith(y_batch));
  if (!out.has_rank()) return absl::OkStatus();
  out.AddDim(x.dim(ax ? -1 : -2));
  out.AddDim(y.dim(ay ? -2 : -1));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}
absl::Status BatchMatMulShape(ShapeContext& c) { return BatchShape(c, /*broadcasts=*/false); }
absl::Status BatchMatMulV2Shape(ShapeContext& c) { return BatchShape(c, /*broadcasts=*/true); }

absl::Status CrossShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(MergedShape(c));
  const Shape& shape = c.outputs()[0];
  if (!shape.has_rank()) return absl::OkStatus();
  if (shape.rank() == 0) return InvalidArgument("Shape must be at least rank 1 but is rank 0");
  return MergeDims(shape.dim(-1), 3).status();
}

// ---- gradients

// `of` is the value of the attribute that says which argument the gradient belongs to.
Output Product(Output a, Output b, bool ta, bool tb, const char* of) {
  return AddOp("MatMul", {a, b}, {{"transpose_a", ta}, {"transpose_b", tb}, {of, true}}, "MatMul");
}

// For C = A B: dA = dC B', dB = A' dC. Transposes are folded into the attributes of the products.
Grads MatMulGradient(GradContext& g) {
  const bool ta = g.attr<bool>("transpose_a"), tb = g.attr<bool>("transpose_b");
  const Output a = Conj(g.x(0)), b = Conj(g.x(1)), dy = g.dy();
  const Output da = ta ? Product(b, dy, tb, true, "grad_a") : Product(dy, b, false, !tb, "grad_a");
  const Output db = tb ? Product(dy, a, true, ta, "grad_b") : Product(a, dy, !ta, false, "grad_b");
  return {da, db};
}

Output BatchProduct(Output x, Output y, bool ax, bool ay) {
  return AddOp("BatchMatMulV2", {x, y}, {{"adj_x", ax}, {"adj_y", ay}}, "MatMul");
}

Grads BatchMatMulGradient(GradContext& g) {
  const bool ax = g.attr<bool>("adj_x"), ay = g.attr<bool>("adj_y");
  const Output x = g.x(0), y = g.x(1), dy = g.dy();
  const Output dx = ax ? BatchProduct(y, dy, ay, true) : BatchProduct(dy, y, false, !ay);
  const Output dy_grad = ay ? BatchProduct(dy, x, true, ax) : BatchProduct(x, dy, !ax, false);
  return {dx, dy_grad};
}

// Like BatchMatMulGradient, then summed over the batch dimensions that were broadcast.
Grads BatchMatMulV2Gradient(GradContext& g) {
  Grads grads = BatchMatMulGradient(g);
  const Output x = g.x(0), y = g.x(1);
  const Shape &sx = x.shape(), &sy = y.shape();
  if (sx.has_rank() && sy.has_rank()) {
    const Shape bx = sx.Sub(0, sx.rank() - 2), by = sy.Sub(0, sy.rank() - 2);
    if (bx == by && bx.IsFullyDefined()) return grads;
  }
  const Output shape_x = ShapeVector(x), shape_y = ShapeVector(y);
  const Output batch_x = StridedSlice(shape_x, {Index::Range(std::nullopt, -2)});
  const Output batch_y = StridedSlice(shape_y, {Index::Range(std::nullopt, -2)});
  const BroadcastReductions axes = BroadcastGradientArgs(batch_x, batch_y);
  const Output dx = SumTo(grads[0].dense(), axes.r0, shape_x);
  return {dx, SumTo(grads[1].dense(), axes.r1, shape_y)};
}

Grads CrossGradient(GradContext& g) {
  const Output ga = Cross(g.x(1), g.dy());
  return {ga, Cross(g.dy(), g.x(0))};
}

// ---- op definitions

constexpr char kBatchAttrs[][24] = {"adj_x: bool = false", "adj_y: bool = false",
                                    "grad_x: bool = false", "grad_y: bool = false"};

OpSpec WithBatchAttrs(OpSpec spec) {
  for (const char* attr : kBatchAttrs) spec.Attr(attr);
  return spec;
}

}  // namespace

void AddMatMulOps(OpRegistry* ops) {
  ops->Add(OpSpec("MatMul")
               .In("a: T, b: T")
               .Out("product: T")
               .Attr("transpose_a: bool = false")
               .Attr("transpose_b: bool = false")
               .Attr("T: {bfloat16, half, float, double, int32, int64, uint8, uint16, uint32, "
                     "uint64, complex64, "
                     "complex128}")
               .Attr("grad_a: bool = false")
               .Attr("grad_b: bool = false")
               .Rows(RowRule::kMatMul)
               .Flops(MatMulFlops)
               .InferShape(MatMulShape)
               .Gradient(MatMulGradient)
               .Doc("Multiplies two matrices, either of which may be transposed first."));
  ops->Add(WithBatchAttrs(
               OpSpec("BatchMatMul")
                   .In("x: T, y: T")
                   .Out("output: T")
                   .Attr("T: {bfloat16, half, float, double, int32, int64, complex64, complex128}"))
               .Flops(MatMulFlops)
               .InferShape(BatchMatMulShape)
               .Gradient(BatchMatMulGradient)
               .Doc("Multiplies batches of matrices in the last two dimensions. The batch "
                    "dimensions must be equal. adj_x and adj_y transpose and conjugate."));
  ops->Add(
      WithBatchAttrs(
          OpSpec("BatchMatMulV2")
              .In("x: T, y: T")
              .Out("output: T")
              .Attr(
                  "T: {bfloat16, half, float, double, int16, int32, int64, uint8, uint16, uint32, "
                  "uint64, complex64, complex128}"))
          .Flops(MatMulFlops)
          .InferShape(BatchMatMulV2Shape)
          .Gradient(BatchMatMulV2Gradient)
          .Doc("Multiplies batches of matrices in the last two dimensions. The batch dimensions "
               "broadcast. adj_x and adj_y transpose and conjugate."));
  constexpr char kInTypes[] =
      ": {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, complex128}";
  ops->Add(WithBatchAttrs(OpSpec("BatchMatMulV3")
                              .In("x: Ta, y: Tb")
                              .Out("output: Tout")
                              .Attr(absl::StrCat("Ta", kInTypes))
                              .Attr(absl::StrCat("Tb", kInTypes))
                              .Attr("Tout: {bfloat16, half, float, double, int16, int32, int64, "
                                    "complex64, complex128}"))
               .Flops(MatMulFlops)
               .InferShape(BatchMatMulV2Shape)
               .Gradient(BatchMatMulV2Gradient)
               .Doc("BatchMatMulV2 with a separate type for the result."));
  ops->Add(OpSpec("Cross")
               .In("a: T, b: T")
               .Out("product: T")
               .Attr(kRealTypes)
               .InferShape(CrossShape)
               .Gradient(CrossGradient)
               .Doc("Computes the cross product of 3-vectors in the last dimension."));
}

// ---- builders

Output MatMul(Output a, Output b, const MatMulOptions& o) {
  if (!a.valid() || !b.valid()) return {};
  const auto may_be_stacked = [](const Output& x) {
    return !x.shape().has_rank() || x.shape().rank() > 2;
  };
  if (!may_be_stacked(a) && !may_be_stacked(b)) {
    // Python replaces an adjoint by a conjugate and a transpose here.
    const Output left = o.adjoint_a ? Conj(a) : a, right = o.adjoint_b ? Conj(b) : b;
    return AddOp("MatMul", {left, right},
                 {{"transpose_a", o.transpose_a || o.adjoint_a},
                  {"transpose_b", o.transpose_b || o.adjoint_b}},
                 o.name);
  }
  const Output left = o.transpose_a ? Conj(a) : a, right = o.transpose_b ? Conj(b) : b;
  return AddOp("BatchMatMulV2", {left, right},
               {{"adj_x", o.transpose_a || o.adjoint_a}, {"adj_y", o.transpose_b || o.adjoint_b}},
               o.name.empty() ? "MatMul" : absl::string_view(o.name));
}

namespace {

// Reshapes an argument of Tensordot into a matrix: the axes that are summed over go last (first for
// the right argument), and the others are flattened. Nodes that would change nothing are omitted.
// Appends the sizes of the other axes to `free_dims`.
Output AsMatrix(Output x, std::vector<int64_t> axes, bool right, std::vector<int64_t>* free_dims) {
  const int64_t rank = x.shape().rank();
  for (int64_t& a : axes) a = a < 0 ? a + rank : a;
  std::vector<int64_t> free, perm;
  for (int64_t i = 0; i < rank; ++i) {
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) free.push_back(i);
  }
  perm = right ? axes : free;
  perm.insert(perm.end(), right ? free.begin() : axes.begin(), right ? free.end() : axes.end());
  int64_t free_size = 1, sum_size = 1;
  for (const int64_t i : free) {
    free_size *= x.dim(static_cast<int>(i));
    free_dims->push_back(x.dim(static_cast<int>(i)));
  }
  for (const int64_t i : axes) sum_size *= x.dim(static_cast<int>(i));
  if (!std::is_sorted(perm.begin(), perm.end())) x = Transpose(x, Ints(perm), "transpose");
  const Shape matrix = right ? Shape({sum_size, free_size}) : Shape({free_size, sum_size});
  return x.shape() == matrix ? x : Reshape(x, matrix);
}

}  // namespace

Output Tensordot(Output a, Output b, std::vector<int64_t> axes_a, std::vector<int64_t> axes_b,
                 absl::string_view name) {
  if (!a.valid() || !b.valid()) return {};
  Graph& g = a.graph();
  if (!a.shape().IsFullyDefined() || !b.shape().IsFullyDefined() ||
      axes_a.size() != axes_b.size()) {
    g.Fail(InvalidArgument(
        "Tensordot needs static shapes and the same number of axes of a and b; got ",
        a.shape().ToString(), " with ", axes_a.size(), " axes and ", b.shape().ToString(), " with ",
        axes_b.size()));
    return {};
  }
  const auto in_range = [](const std::vector<int64_t>& axes, int64_t rank) {
    return std::all_of(axes.begin(), axes.end(),
                       [rank](int64_t x) { return x >= -rank && x < rank; });
  };
  if (!in_range(axes_a, a.shape().rank()) || !in_range(axes_b, b.shape().rank())) {
    g.Fail(InvalidArgument("Tensordot: an axis is out of range for shapes ", a.shape().ToString(),
                           " and ", b.shape().ToString()));
    return {};
  }
  NameScope scope(g, name);
  std::vector<int64_t> dims;
  const Output left = AsMatrix(a, std::move(axes_a), /*right=*/false, &dims);
  const Output right = AsMatrix(b, std::move(axes_b), /*right=*/true, &dims);
  const Output product = MatMul(left, right);
  return product.shape() == Shape(dims) ? product : Reshape(product, Ints(dims), scope.name());
}

Output Cross(Output a, Output b, absl::string_view name) {
  return AddOp("Cross", {a, b}, {}, name);
}

}  // namespace weir
