#ifndef WEIR_OPS_LIB_MATH_H_
#define WEIR_OPS_LIB_MATH_H_

#include <string>
#include <type_traits>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/literal.h"

// Builders of arithmetic ops: TensorFlow's math_ops. Each adds the nodes that the Python function
// of that name adds, under the same names; the last argument is the name. Elementwise functions of
// two tensors broadcast as in NumPy; both must have the same dtype. A TensorArg may be a literal (a
// number, a string, a list of them), which becomes a Const "<node>/y" (or x) with the other
// argument's dtype if it can be converted (ops/lib/literal.h: 0.5 with an int32 tensor is
// INVALID_ARGUMENT). An error (dtypes, shapes) is recorded in the graph, and the builder returns an
// invalid Output.
namespace WEIR_API weir {

// ---- binary arithmetic and operators: x + y is named "add", x - y "sub", x * y "mul", x / y
// "truediv", x % y "mod".

Output Add(const TensorArg& x, const TensorArg& y,
           absl::string_view name = {});  // AddV2, or Add for strings
Output Subtract(const TensorArg& x, const TensorArg& y, absl::string_view name = {});
Output Multiply(const TensorArg& x, const TensorArg& y, absl::string_view name = {});
// True division: integers are converted to float64 first (8- and 16-bit integers to float32).
Output Divide(const TensorArg& x, const TensorArg& y, absl::string_view name = {});
Output RealDiv(const TensorArg& x, const TensorArg& y, absl::string_view name = {});
// Divide and round toward minus infinity, and toward zero.
Output FloorDiv(const TensorArg& x, const TensorArg& y, absl::string_view name = {});
Output TruncateDiv(const TensorArg& x, const TensorArg& y, absl::string_view name = {});
// DivNoNan returns 0 where y is 0. MulNoNan returns 0 where y is 0, even if x is infinite or NaN.
Output DivNoNan(const TensorArg& x, const TensorArg& y, absl::string_view name = {});
Output MulNoNan(const TensorArg& x, const TensorArg& y, absl::string_view name = {});
// Return the remainder with the sign of y, and with the sign of x.
Output FloorMod(const TensorArg& x, const TensorArg& y, absl::string_view name = {});
Output TruncateMod(const TensorArg& x, const TensorArg& y, absl::string_view name = {});
// Returns x to the power y. Integers do not support negative exponents.
Output Pow(const TensorArg& x, const TensorArg& y, absl::string_view name = {});
Output Maximum(const TensorArg& x, const TensorArg& y, absl::string_view name = {});
Output Minimum(const TensorArg& x, const TensorArg& y, absl::string_view name = {});
Output SquaredDifference(const TensorArg& x, const TensorArg& y, absl::string_view name = {});
Output Atan2(const TensorArg& y, const TensorArg& x, absl::string_view name = {});
// Return x / y, x log(y) and x log(1 + y); 0 where x is 0.
Output Xdivy(const TensorArg& x, const TensorArg& y, absl::string_view name = {});
Output Xlogy(const TensorArg& x, const TensorArg& y, absl::string_view name = {});
Output Xlog1py(const TensorArg& x, const TensorArg& y, absl::string_view name = {});
// The incomplete gamma functions P(a, x) and Q(a, x), the Hurwitz zeta function, and the a-th
// derivative of the digamma function.
Output Igamma(const TensorArg& a, const TensorArg& x, absl::string_view name = {});
Output Igammac(const TensorArg& a, const TensorArg& x, absl::string_view name = {});
Output Zeta(const TensorArg& x, const TensorArg& q, absl::string_view name = {});
Output Polygamma(const TensorArg& a, const TensorArg& x, absl::string_view name = {});
// Multiplies a tensor by a scalar with Mul. A number becomes the Const "scalar".
Output ScalarMul(const TensorArg& scalar, Output x, absl::string_view name = {});

// ---- comparison, logic and bitwise ops. Comparisons return bool.

// If `incompatible_shape_error` is false, shapes that do not broadcast yield the scalar false (true
// for NotEqual).
Output Equal(const TensorArg& x, const TensorArg& y, absl::string_view name = {},
             bool incompatible_shape_error = true);
Output NotEqual(const TensorArg& x, const TensorArg& y, absl::string_view name = {},
                bool incompatible_shape_error = true);
Output Less(const TensorArg& x, const TensorArg& y, absl::string_view name = {});
Output LessEqual(const TensorArg& x, const TensorArg& y, absl::string_view name = {});
Output Greater(const TensorArg& x, const TensorArg& y, absl::string_view name = {});
Output GreaterEqual(const TensorArg& x, const TensorArg& y, absl::string_view name = {});
// Returns |x - y| < tolerance. Does not broadcast.
Output ApproximateEqual(Output x, Output y, float tolerance = 1e-5f, absl::string_view name = {});
Output LogicalAnd(Output x, Output y, absl::string_view name = {});
Output LogicalOr(Output x, Output y, absl::string_view name = {});
Output LogicalXor(Output x, Output y, absl::string_view name = "LogicalXor");
Output LogicalNot(Output x, absl::string_view name = {});
Output BitwiseAnd(const TensorArg& x, const TensorArg& y, absl::string_view name = {});
Output BitwiseOr(const TensorArg& x, const TensorArg& y, absl::string_view name = {});
Output BitwiseXor(const TensorArg& x, const TensorArg& y, absl::string_view name = {});
Output Invert(Output x, absl::string_view name = {});
Output LeftShift(const TensorArg& x, const TensorArg& y, absl::string_view name = {});
Output RightShift(const TensorArg& x, const TensorArg& y, absl::string_view name = {});

namespace internal {
// Argument types of the operators: at least one is an Output or converts to one (a variable); the
// other may be a literal.
template <class T>
concept TensorOperand = std::is_class_v<T> && std::is_convertible_v<const T&, Output>;
template <class A, class B>
concept OperandPair = (TensorOperand<A> && std::is_convertible_v<const B&, TensorArg>) ||
                      (std::is_convertible_v<const A&, TensorArg> && TensorOperand<B>);
Output BinaryOperator(const char* op, const char* name, const TensorArg& x, const TensorArg& y);
Output FunctionOperator(Output (*fn)(const TensorArg&, const TensorArg&, absl::string_view),
                        const char* name, const TensorArg& x, const TensorArg& y);
}  // namespace internal

// As in Python, where an operator is a method of its first tensor: if the first argument is a
// variable, it is read before the operator's name scope is opened; if the second one is, it is read
// inside that scope.

// x + y is Add(x, y), named "add".
template <class A, class B>
requires internal::OperandPair<A, B> Output operator+(const A& x, const B& y) {
  return internal::FunctionOperator(Add, "add", x, y);
}
// x - y, named "sub".
template <class A, class B>
requires internal::OperandPair<A, B> Output operator-(const A& x, const B& y) {
  return internal::BinaryOperator("Sub", "sub", x, y);
}
// x * y, named "mul".
template <class A, class B>
requires internal::OperandPair<A, B> Output operator*(const A& x, const B& y) {
  return internal::BinaryOperator("Mul", "mul", x, y);
}
// x / y is Divide(x, y), named "truediv".
template <class A, class B>
requires internal::OperandPair<A, B> Output operator/(const A& x, const B& y) {
  return internal::FunctionOperator(Divide, "truediv", x, y);
}
// x % y has the sign of y, as FloorMod; named "mod".
template <class A, class B>
requires internal::OperandPair<A, B> Output operator%(const A& x, const B& y) {
  return internal::BinaryOperator("FloorMod", "mod", x, y);
}
// The comparisons return bool, as Less and so on.
template <class A, class B>
requires internal::OperandPair<A, B> Output operator<(const A& x, const B& y) {
  return internal::FunctionOperator(Less, "", x, y);
}
// See operator<.
template <class A, class B>
requires internal::OperandPair<A, B> Output operator<=(const A& x, const B& y) {
  return internal::FunctionOperator(LessEqual, "", x, y);
}
// See operator<.
template <class A, class B>
requires internal::OperandPair<A, B> Output operator>(const A& x, const B& y) {
  return internal::FunctionOperator(Greater, "", x, y);
}
// See operator<.
template <class A, class B>
requires internal::OperandPair<A, B> Output operator>=(const A& x, const B& y) {
  return internal::FunctionOperator(GreaterEqual, "", x, y);
}
// The negative of x, named "Neg".
Output operator-(const Output& x);
// Logical on bool, bitwise on integers. There are no operators !, && and ||, because C++ would
// require their operands to convert to bool; use LogicalNot, LogicalAnd and LogicalOr.
Output operator&(const Output& x, const Output& y);
Output operator|(const Output& x, const Output& y);
Output operator^(const Output& x, const Output& y);

// ---- unary elementwise ops

Output Abs(Output x, absl::string_view name = {});  // ComplexAbs for complex numbers
Output Negative(Output x, absl::string_view name = {});
Output Sign(Output x, absl::string_view name = {});
Output Reciprocal(Output x, absl::string_view name = {});
Output Square(Output x, absl::string_view name = {});
Output Sqrt(Output x, absl::string_view name = {});
Output Rsqrt(Output x, absl::string_view name = {});  // 1 / sqrt(x)
Output Exp(Output x, absl::string_view name = {});
Output Expm1(Output x, absl::string_view name = {});  // exp(x) - 1
Output Log(Output x, absl::string_view name = {});
Output Log1p(Output x, absl::string_view name = {});  // log(1 + x)
Output Sin(Output x, absl::string_view name = {});
Output Cos(Output x, absl::string_view name = {});
Output Tan(Output x, absl::string_view name = {});
Output Asin(Output x, absl::string_view name = {});
Output Acos(Output x, absl::string_view name = {});
Output Atan(Output x, absl::string_view name = {});
Output Sinh(Output x, absl::string_view name = {});
Output Cosh(Output x, absl::string_view name = {});
Output Tanh(Output x, absl::string_view name = {});
Output Asinh(Output x, absl::string_view name = {});
Output Acosh(Output x, absl::string_view name = {});
Output Atanh(Output x, absl::string_view name = {});
Output Sigmoid(Output x, absl::string_view name = {});  // 1 / (1 + exp(-x))
Output LogSigmoid(Output x, absl::string_view name = "LogSigmoid");
Output Erf(Output x, absl::string_view name = {});
Output Erfc(Output x, absl::string_view name = {});
Output Erfinv(Output x, absl::string_view name = {});
Output Ndtri(Output x,
             absl::string_view name = {});  // quantile function of the normal distribution
Output Lgamma(Output x, absl::string_view name = {});  // log |gamma(x)|
Output Digamma(Output x, absl::string_view name = {});
Output Floor(Output x, absl::string_view name = {});
Output Ceil(Output x, absl::string_view name = {});
Output Round(Output x, absl::string_view name = {});  // rounds halves to even
Output Rint(Output x, absl::string_view name = {});   // like Round, floating-point dtypes only
Output IsNan(Output x, absl::string_view name = {});
Output IsInf(Output x, absl::string_view name = {});
Output IsFinite(Output x, absl::string_view name = {});
// For real numbers, Real and Conj return x, and Imag returns zeros.
Output Conj(Output x, absl::string_view name = {});
Output Real(Output x, absl::string_view name = {});
Output Imag(Output x, absl::string_view name = {});
Output Angle(Output x, absl::string_view name = {});
Output Complex(Output real, Output imag, absl::string_view name = {});
// Returns x itself if it already has that dtype.
Output Cast(Output x, DataType dtype, absl::string_view name = {});
Output SaturateCast(Output x, DataType dtype, absl::string_view name = "saturate_cast");
// Returns the index of the interval between boundaries (ascending) that contains x.
Output Bucketize(Output x, std::vector<float> boundaries, absl::string_view name = {});

// Compute the gradient with respect to the argument from y (the value of the function) and dy.
Output SigmoidGrad(Output y, Output dy, absl::string_view name = {});
Output TanhGrad(Output y, Output dy, absl::string_view name = {});
Output SqrtGrad(Output y, Output dy, absl::string_view name = {});
Output RsqrtGrad(Output y, Output dy, absl::string_view name = {});
Output ReciprocalGrad(Output y, Output dy, absl::string_view name = {});

// ---- selection

// Return t where the condition is true, and e elsewhere. Select does not broadcast, but accepts a
// scalar condition or a vector with one condition per row. SelectV2 broadcasts all three arguments.
Output Select(Output condition, Output t, Output e, absl::string_view name = {});
Output SelectV2(Output condition, const TensorArg& t, const TensorArg& e,
                absl::string_view name = {});
// Returns min(max(x, low), high) as a Minimum "clip_by_value/Minimum" and a Maximum
// "clip_by_value".
Output ClipByValue(Output x, const TensorArg& low, const TensorArg& high,
                   absl::string_view name = "clip_by_value");

// ---- sums of several tensors

// A single tensor is returned unchanged (with a name: as an Identity). INVALID_ARGUMENT for an
// empty list.
Output AddN(const Outputs& inputs, absl::string_view name = {});
Output AccumulateN(const Outputs& inputs, absl::string_view name = {});

// ---- reductions. `axes` is one dimension or several; negative ones count from the end; the
// default is all. Reduced dimensions are removed, or with keep_dims kept with size 1.

Output ReduceSum(Output x);
Output ReduceSum(Output x, const Ints& axes, bool keep_dims = false, absl::string_view name = {});
Output ReduceMean(Output x);
Output ReduceMean(Output x, const Ints& axes, bool keep_dims = false, absl::string_view name = {});
Output ReduceProd(Output x);
Output ReduceProd(Output x, const Ints& axes, bool keep_dims = false, absl::string_view name = {});
Output ReduceMax(Output x);
Output ReduceMax(Output x, const Ints& axes, bool keep_dims = false, absl::string_view name = {});
Output ReduceMin(Output x);
Output ReduceMin(Output x, const Ints& axes, bool keep_dims = false, absl::string_view name = {});
Output ReduceAll(Output x);
Output ReduceAll(Output x, const Ints& axes, bool keep_dims = false, absl::string_view name = {});
Output ReduceAny(Output x);
Output ReduceAny(Output x, const Ints& axes, bool keep_dims = false, absl::string_view name = {});
Output ReduceEuclideanNorm(Output x);
Output ReduceEuclideanNorm(Output x, const Ints& axes, bool keep_dims = false,
                           absl::string_view name = {});
// Computes log(sum(exp(x))) without overflow.
Output ReduceLogsumexp(Output x, const Ints& axes, bool keep_dims = false,
                       absl::string_view name = "ReduceLogSumExp");
Output ReduceVariance(Output x, const Ints& axes, bool keep_dims = false,
                      absl::string_view name = "reduce_variance");
Output ReduceStd(Output x, const Ints& axes, bool keep_dims = false,
                 absl::string_view name = "reduce_std");
Output CountNonzero(Output x, const Ints& axes, bool keep_dims = false,
                    absl::string_view name = "count_nonzero");
// Returns all dimensions of x: a Const "Const" if the rank is static, otherwise Rank and Range. The
// short forms above use it.
Output AllAxes(Output x);

// Return the index of the largest (smallest) element along an axis; the first one on a tie.
Output ArgMax(Output x, const Ints& axis, DataType output_type = DT_INT64,
              absl::string_view name = {});
Output ArgMin(Output x, const Ints& axis, DataType output_type = DT_INT64,
              absl::string_view name = {});

// Options of Cumsum, Cumprod and CumulativeLogsumexp.
struct CumulativeOptions {
  bool exclusive = false;  // element i does not include x[i] itself
  bool reverse = false;    // accumulates from the end
};
// Return the sums (products, log-sum-exps) of the elements up to each along an axis, in the shape
// and dtype of x.
Output Cumsum(Output x, const Ints& axis = 0, const CumulativeOptions& options = {},
              absl::string_view name = {});
Output Cumprod(Output x, const Ints& axis = 0, const CumulativeOptions& options = {},
               absl::string_view name = {});
Output CumulativeLogsumexp(Output x, const Ints& axis = 0, const CumulativeOptions& options = {},
                           absl::string_view name = {});

// Returns start, start + delta, ... up to but excluding limit. Literals become Consts "range/start"
// and so on.
Output Range(Graph& graph, const Ints& start, const Ints& limit, const Ints& delta = 1,
             absl::string_view name = "range");
Output Range(Output start, Output limit, Output delta, absl::string_view name = {});
// Returns `num` evenly spaced values from start to stop, both included.
Output LinSpace(Output start, Output stop, const Ints& num, absl::string_view name = {});

// ---- matrices

struct MatMulOptions {
  bool transpose_a = false, transpose_b = false;  // the matrices are transposed first
  bool adjoint_a = false, adjoint_b = false;      // transposed and conjugated
  std::string name = {};                          // of the node
};
// Returns the matrix product. If an argument has more than two dimensions, multiplies batches of
// matrices (BatchMatMulV2, whose batch dimensions broadcast).
Output MatMul(Output a, Output b, const MatMulOptions& options = {});
// Sums products over these axes of a and b (the same number of each). Shapes must be static.
Output Tensordot(Output a, Output b, std::vector<int64_t> axes_a, std::vector<int64_t> axes_b,
                 absl::string_view name = "Tensordot");
// Einstein summation over one or two tensors: "ij,jk->ik" is a matrix product, "ii->" a trace, and
// "...ij->...ji" transposes a batch of matrices. Labels that do not occur in the result are summed
// over. Without "->" the result has the labels that occur once, in alphabetical order.
Output Einsum(absl::string_view equation, const Outputs& inputs, absl::string_view name = "einsum");
// The cross product of 3-vectors in the last dimension.
Output Cross(Output a, Output b, absl::string_view name = {});

// ---- segments: rows of `data` with equal ids are reduced into one row. Segment* requires sorted
// ids (0, 0, 1, 3). UnsortedSegment* accepts any order and takes the number of segments; negative
// ids are dropped. SparseSegment* reduces the rows `indices` of data.

Output SegmentSum(Output data, Output segment_ids, absl::string_view name = {});
Output SegmentMean(Output data, Output segment_ids, absl::string_view name = {});
Output SegmentProd(Output data, Output segment_ids, absl::string_view name = {});
Output SegmentMin(Output data, Output segment_ids, absl::string_view name = {});
Output SegmentMax(Output data, Output segment_ids, absl::string_view name = {});
Output UnsortedSegmentSum(Output data, Output segment_ids, const Ints& num_segments,
                          absl::string_view name = {});
Output UnsortedSegmentProd(Output data, Output segment_ids, const Ints& num_segments,
                           absl::string_view name = {});
Output UnsortedSegmentMin(Output data, Output segment_ids, const Ints& num_segments,
                          absl::string_view name = {});
Output UnsortedSegmentMax(Output data, Output segment_ids, const Ints& num_segments,
                          absl::string_view name = {});
Output SparseSegmentSum(Output data, Output indices, Output segment_ids,
                        absl::string_view name = {});
Output SparseSegmentMean(Output data, Output indices, Output segment_ids,
                         absl::string_view name = {});
Output SparseSegmentSqrtN(Output data, Output indices, Output segment_ids,
                          absl::string_view name = {});

// Counts the occurrences of each of 0 ... size - 1 in `values`, weighted if `weights` is not empty.
Output Bincount(Output values, Output size, Output weights, absl::string_view name = {});
// Counts the values in each of nbins equal-width bins of value_range (two numbers). Values outside
// the range count in the first and last bin.
Output HistogramFixedWidth(Output values, Output value_range, const Ints& nbins = 100,
                           DataType dtype = DT_INT32, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_LIB_MATH_H_
