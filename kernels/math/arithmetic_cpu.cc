#include <limits>
#include <utility>

#include "weir/kernels/math/divide_by_scalar.h"
#include "weir/kernels/math/elementwise.h"
#include "weir/kernels/math/elementwise_kernels.h"
#include "weir/kernels/math/elementwise_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/math/arithmetic_cpu.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "hwy/contrib/math/math-inl.h"

// Arithmetic: vectorized for float and double as far as it has vector forms.
HWY_BEFORE_NAMESPACE();
namespace weir {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#include "weir/kernels/lib/vector_math-inl.h"

#include "weir/kernels/math/arithmetic-inl.h"
#include "weir/kernels/math/elementwise_loops-inl.h"

void AddArithmeticVectors(LoopRegistry* t) {
  AddUnaryVectors(t, UnaryArithmetic());
  AddBinaryVectors(t, BinaryArithmetic());
}

}  // namespace HWY_NAMESPACE
}  // namespace weir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {
namespace {
HWY_EXPORT(AddArithmeticVectors);
}  // namespace

void AddArithmeticLoops(LoopRegistry* t) {
  HWY_DYNAMIC_DISPATCH(AddArithmeticVectors)(t);
  AddUnaryOtherTypes(t, functor::UnaryArithmetic());
  AddBinaryOtherTypes(t, functor::BinaryArithmetic());
  AddScalarDivisors(t);
}

}  // namespace weir
#endif  // HWY_ONCE
