#include "weir/ops/linalg/linalg.h"

#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/lib/math_internal.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/linalg/linalg_internal.h"

// Functions of matrices. Their gradients are built as TensorFlow's linalg_grad.py builds them.
namespace weir {

namespace {

// One number (or two) for each matrix.
absl::Status DeterminantShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape s, SquareInput(c, 0));
  if (s.has_rank()) c.set_all_outputs(s.Sub(0, -2));
  return absl::OkStatus();
}

// Reshapes to [..., 1, 1]: one number for each matrix.
Output ReshapePerMatrix(const Output& numbers, const Output& one_each) {
  Graph& g = numbers.graph();
  return Reshape(numbers, Concat({ShapeVector(one_each), Const<int32_t>(g, {1, 1})}, 0));
}

Grads MatrixInverseGradient(GradContext& g) {
  const Output inverse = g.y();
  const bool adjoint = g.attr<bool>("adjoint");
  return {Negative(
      Product(inverse, Product(g.dy(), inverse, adjoint, !adjoint), /*adjoint_a=*/!adjoint))};
}

Grads MatrixDeterminantGradient(GradContext& g) {
  const Output inverse = MatrixInverse(g.x(), /*adjoint=*/true);
  return {ReshapePerMatrix(g.dy() * g.y(), g.y()) * inverse};
}

Grads LogMatrixDeterminantGradient(GradContext& g) {
  const Output inverse = MatrixInverse(g.x(), /*adjoint=*/true);
  return {ReshapePerMatrix(g.dy(1), g.y(1)) * inverse};
}

// Returns the Kronecker products of two batches of n x n matrices. `outer` is the batch shape.
Output KroneckerProduct(const Output& a, const Output& b, const Output& outer) {
  Graph& g = a.graph();
  const Output one = Const<int32_t>(g, {1});
  const auto order = [](const Output& x) {
    return Stack({StridedSlice(ShapeVector(x), {Index(-1)})}, 0);
  };
  const Output na = order(a), nb = order(b);
  const Output wide_a = Reshape(a, Concat({outer, na, one, na, one}, 0));
  const Output wide_b = Reshape(b, Concat({outer, one, nb, one, nb}, 0));
  const Output n = na * nb;
  return Reshape(wide_a * wide_b, Concat({outer, n, n}, 0));
}

// R = sqrt(A) implies R dR + dR R = dA, a linear system for dR; its transpose is solved here.
Grads MatrixSquareRootGradient(GradContext& g) {
  const Output root = g.y();
  Graph& graph = g.graph();
  const Output shape = ShapeVector(root);
  const Output order = StridedSlice(shape, {Index(-1)});
  const Output count = ReduceProd(OuterShape(shape));
  const Output eye = Eye(graph, order, {}, root.dtype());
  const Output eyes = Reshape(Tile(Reshape(eye, {-1}), Stack({count}, 0)), shape);
  const Output outer = OuterShape(shape);
  const Output sum = Add(KroneckerProduct(eyes, MatrixTranspose(root), outer),
                         KroneckerProduct(root, eyes, outer));
  const Output rows = Stack({order * order}, 0);
  const Output da =
      Reshape(MatrixTranspose(g.dy()), Concat({outer, rows, Const<int32_t>(graph, {1})}, 0));
  return {MatrixTranspose(Reshape(MatrixSolve(sum, da), shape))};
}

}  // namespace

void AddMatrixFunctionOps(OpRegistry* ops) {
  AddWithBatchForm(ops, "MatrixInverse", kAllTypes, MatrixInverseGradient, "BatchMatrixInverse",
                   kDoubleFloat, [](OpSpec spec, const char* types) {
                     return spec.In("input: T")
                         .Out("output: T")
                         .Attr("adjoint: bool = false")
                         .Attr(types)
                         .InferShape(SquareShape)
                         .Doc("Computes the inverse of square matrices (or of their adjoints).");
                   });
  AddWithBatchForm(ops, "MatrixDeterminant", kFloatFirst, MatrixDeterminantGradient,
                   "BatchMatrixDeterminant", "T: {float, double, complex64, complex128}",
                   [](OpSpec spec, const char* types) {
                     return spec.In("input: T")
                         .Out("output: T")
                         .Attr(types)
                         .InferShape(DeterminantShape)
                         .Doc("Computes the determinant of square matrices.");
                   });
  ops->Add(
      OpSpec("LogMatrixDeterminant")
          .In("input: T")
          .Out("sign: T, log_abs_determinant: T")
          .Attr(kFloatFirst)
          .InferShape(DeterminantShape)
          .Gradient(LogMatrixDeterminantGradient)
          .Doc("Computes the determinant as its sign and the logarithm of its absolute value."));
  ops->Add(OpSpec("MatrixSquareRoot")
               .In("input: T")
               .Out("output: T")
               .Attr(kAllTypes)
               .InferShape(SquareShape)
               .Gradient(MatrixSquareRootGradient)
               .Doc("Computes the principal square root of square matrices, or NaN where it does "
                    "not exist."));
  ops->Add(OpSpec("MatrixExponential")
               .In("input: T")
               .Out("output: T")
               .Attr("T: {double, float, half, complex64, complex128}")
               .Deprecated(27, "Use Python implementation tf.linalg.matrix_exponential instead.")
               .InferShape(SquareShape)
               .Doc("Computes the exponential of square matrices, in graphs of an old version."));
  ops->Add(
      OpSpec("MatrixLogarithm")
          .In("input: T")
          .Out("output: T")
          .Attr("T: {complex64, complex128}")
          .InferShape(SquareShape)
          .Doc("Computes the principal logarithm of square matrices, or NaN for singular ones."));
}

Output MatrixInverse(Output x, bool adjoint, absl::string_view name) {
  return AddOp("MatrixInverse", {x}, {{"adjoint", adjoint}}, name);
}
Output MatrixDeterminant(Output x, absl::string_view name) {
  return AddOp("MatrixDeterminant", {x}, {}, name);
}
LogDeterminantResult LogMatrixDeterminant(Output x, absl::string_view name) {
  const Outputs y = AllOutputs(AddNode("LogMatrixDeterminant", {x}, {}, name), 2);
  return {y[0], y[1]};
}
Output MatrixSquareRoot(Output x, absl::string_view name) {
  return AddOp("MatrixSquareRoot", {x}, {}, name);
}
Output MatrixLogarithm(Output x, absl::string_view name) {
  return AddOp("MatrixLogarithm", {x}, {}, name);
}

}  // namespace weir
