#include <limits>

#include "weir/kernels/elementwise.h"
#include "weir/kernels/elementwise_kernels.h"
#include "weir/kernels/elementwise_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/transcendental_cpu.cc"
#include "weir/kernels/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "hwy/contrib/math/math-inl.h"

// Elementary functions: vectorized for float and double, the C++ library for complex numbers.
HWY_BEFORE_NAMESPACE();
namespace weir {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#include "weir/kernels/vector_math-inl.h"

#include "weir/kernels/elementwise-inl.h"
#include "weir/kernels/elementwise_loops-inl.h"

void AddElementaryVectors(LoopRegistry* t) {
  AddUnaryVectors<Exp, Expm1, Log, Log1p, Sin, Cos, Tan, Asin, Acos, Atan, Sinh, Cosh, Tanh, Asinh,
                  Acosh, Atanh, Sigmoid>(t);
  AddBinaryVectors<Xlogy, Xlog1py>(t);
}

}  // namespace HWY_NAMESPACE
}  // namespace weir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {
namespace {
HWY_EXPORT(AddElementaryVectors);
}  // namespace

void AddTranscendentalLoops(LoopRegistry* t) {
  using namespace functor;
  HWY_DYNAMIC_DISPATCH(AddElementaryVectors)(t);
  AddUnaryOtherTypes<Exp, Expm1, Log, Log1p, Sin, Cos, Tan, Asin, Acos, Atan, Sinh, Cosh, Tanh,
                     Asinh, Acosh, Atanh, Sigmoid>(t);
  AddBinaryOtherTypes<Xlogy, Xlog1py>(t);
}

}  // namespace weir
#endif  // HWY_ONCE
