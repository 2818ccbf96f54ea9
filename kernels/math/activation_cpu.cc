#include <limits>
#include <utility>

#include "weir/kernels/math/elementwise.h"
#include "weir/kernels/math/elementwise_kernels.h"
#include "weir/kernels/math/elementwise_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/math/activation_cpu.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weir {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#include "weir/kernels/lib/vector_math-inl.h"

#include "weir/kernels/math/activation-inl.h"
#include "weir/kernels/math/elementwise_loops-inl.h"

void AddActivationVectors(LoopRegistry* t) {
  AddUnaryVectors(t, UnaryActivations());
  AddBinaryVectors(t, BinaryActivations());
}

}  // namespace HWY_NAMESPACE
}  // namespace weir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {
namespace {
HWY_EXPORT(AddActivationVectors);
}  // namespace

void AddActivationLoops(LoopRegistry* t) {
  HWY_DYNAMIC_DISPATCH(AddActivationVectors)(t);
  AddUnaryOtherTypes(t, functor::UnaryActivations());
  AddBinaryOtherTypes(t, functor::BinaryActivations());
}

}  // namespace weir
#endif  // HWY_ONCE
