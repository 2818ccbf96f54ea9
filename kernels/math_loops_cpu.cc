#include <limits>
#include <utility>

#include "weir/kernels/elementwise.h"
#include "weir/kernels/elementwise_kernels.h"
#include "weir/kernels/elementwise_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/math_loops_cpu.cc"
#include "weir/kernels/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "hwy/contrib/math/math-inl.h"

// Arithmetic that is no more expensive than memory access: vectorized for float and double.
HWY_BEFORE_NAMESPACE();
namespace weir {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#include "weir/kernels/vector_math-inl.h"

#include "weir/kernels/elementwise-inl.h"
#include "weir/kernels/elementwise_loops-inl.h"

void AddArithmeticVectors(LoopRegistry* t) {
  AddUnaryVectors<Abs, Neg, Sign, Reciprocal, Inv, Square, Sqrt, Rsqrt, Floor, Ceil, Round, Rint>(
      t);
  AddBinaryVectors<Add, AddV2, Sub, Mul, Div, RealDiv, DivNoNan, Xdivy, MulNoNan, Maximum, Minimum,
                   SquaredDifference, FloorDiv, TruncateDiv, SigmoidGrad, TanhGrad, SqrtGrad,
                   RsqrtGrad, ReciprocalGrad, InvGrad>(t);
  AddScalarVariants<Add, AddV2, Sub, Mul, RealDiv, Maximum, Minimum, SquaredDifference>(t);
  AddUnaryStages<Abs, Neg, Reciprocal, Square, Sqrt, Rsqrt>(t);
  AddBinaryStages<Add, AddV2, Sub, Mul, RealDiv, Maximum, Minimum, SquaredDifference, SigmoidGrad,
                  TanhGrad>(t);
}

}  // namespace HWY_NAMESPACE
}  // namespace weir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {
namespace {

HWY_EXPORT(AddArithmeticVectors);

template <class T>
absl::Status CheckNonzero(const Tensor&, const Tensor& y) {
  for (const T v : y.flat<T>()) {
    if (v == T(0)) return InvalidArgument("Integer division by zero");
  }
  return absl::OkStatus();
}

template <class T>
absl::Status CheckExponents(const Tensor&, const Tensor& y) {
  for (const T v : y.flat<T>()) {
    if (v < T(0)) return InvalidArgument("Integers to negative integer powers are not allowed");
  }
  return absl::OkStatus();
}

template <class... Ts>
void AddChecks(LoopRegistry* t, List<Ts...>) {
  const auto add = [t](const char* op, DataType type, BinaryLoop::Check check) {
    if (BinaryLoop* loop = t->FindBinary(op, type)) loop->check = check;
  };
  for (const char* op :
       {"Div", "RealDiv", "FloorDiv", "TruncateDiv", "FloorMod", "Mod", "TruncateMod"}) {
    (add(op, DataTypeOf<Ts>::value, CheckNonzero<Ts>), ...);
  }
  (add("Pow", DataTypeOf<Ts>::value, CheckExponents<Ts>), ...);
}

}  // namespace

void AddMathLoops(LoopRegistry* t) {
  using namespace functor;
  HWY_DYNAMIC_DISPATCH(AddArithmeticVectors)(t);
  AddUnaryOtherTypes<Abs, Neg, Sign, Reciprocal, Inv, Square, Sqrt, Rsqrt, Floor, Ceil, Round,
                     Rint>(t);
  AddUnaryScalars<Conj>(t);
  AddBinaryOtherTypes<Add, AddV2, Sub, Mul, Div, RealDiv, DivNoNan, Xdivy, MulNoNan, Maximum,
                      Minimum, SquaredDifference, FloorDiv, TruncateDiv, SigmoidGrad, TanhGrad,
                      SqrtGrad, RsqrtGrad, ReciprocalGrad, InvGrad>(t);
  AddBinaryScalars<TruncateMod, Mod, FloorMod, Pow>(t);
  AddChecks(t, Integers{});
  for (const char* op :
       {"SigmoidGrad", "TanhGrad", "SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad"}) {
    for (const DataType type :
         {DT_HALF, DT_BFLOAT16, DT_FLOAT, DT_DOUBLE, DT_COMPLEX64, DT_COMPLEX128}) {
      t->FindBinary(op, type)->broadcasts = false;
    }
  }
}

}  // namespace weir
#endif  // HWY_ONCE
