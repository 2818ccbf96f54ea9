#include "weir/kernels/math/register_fusion.h"

#include <limits>
#include <utility>

#include "weir/kernels/math/elementwise_kernels.h"
#include "weir/kernels/math/elementwise_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/math/register_fusion_cpu.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "hwy/contrib/math/math-inl.h"

// The first and last stages of pipelines. The stages of ops follow from their functors
// (elementwise_loops-inl.h).
HWY_BEFORE_NAMESPACE();
namespace weir {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#include "weir/kernels/lib/vector_math-inl.h"

#include "weir/kernels/math/elementwise_loops-inl.h"

PipelineBackend FloatBackend() { return Stages<float>::Backend(); }
PipelineBackend DoubleBackend() { return Stages<double>::Backend(); }

}  // namespace HWY_NAMESPACE
}  // namespace weir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {
namespace {

HWY_EXPORT(FloatBackend);
HWY_EXPORT(DoubleBackend);

}  // namespace

const PipelineBackend* FindPipelineBackend(DataType type) {
  static const PipelineBackend floats = HWY_DYNAMIC_DISPATCH(FloatBackend)(),
                               doubles = HWY_DYNAMIC_DISPATCH(DoubleBackend)();
  return type == DT_FLOAT ? &floats : type == DT_DOUBLE ? &doubles : nullptr;
}

}  // namespace weir
#endif  // HWY_ONCE
