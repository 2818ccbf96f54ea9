#include <limits>

#include "weir/kernels/math/elementwise.h"
#include "weir/kernels/math/elementwise_kernels.h"
#include "weir/kernels/math/elementwise_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/math/transcendental_cpu.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "hwy/contrib/math/math-inl.h"

// Elementary functions: vectorized for float and double, the C++ library for complex numbers.
HWY_BEFORE_NAMESPACE();
namespace weir {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#include "weir/kernels/lib/vector_math-inl.h"

#include "weir/kernels/math/elementwise_loops-inl.h"
#include "weir/kernels/math/transcendental-inl.h"

void AddTranscendentalVectors(LoopRegistry* t) {
  AddUnaryVectors(t, UnaryTranscendentals());
  AddBinaryVectors(t, BinaryTranscendentals());
}

}  // namespace HWY_NAMESPACE
}  // namespace weir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {
namespace {
HWY_EXPORT(AddTranscendentalVectors);
}  // namespace

void AddTranscendentalLoops(LoopRegistry* t) {
  HWY_DYNAMIC_DISPATCH(AddTranscendentalVectors)(t);
  AddUnaryOtherTypes(t, functor::UnaryTranscendentals());
  AddBinaryOtherTypes(t, functor::BinaryTranscendentals());
}

}  // namespace weir
#endif  // HWY_ONCE
