#include "weir/kernels/register_fusion.h"

#include <limits>
#include <utility>

#include "weir/kernels/elementwise_kernels.h"
#include "weir/kernels/elementwise_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/register_fusion_cpu.cc"
#include "weir/kernels/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "hwy/contrib/math/math-inl.h"

// What pipelines begin and end with. Stages are where their ops are (math_loops_cpu.cc,
// activation_cpu.cc).
HWY_BEFORE_NAMESPACE();
namespace weir {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#include "weir/kernels/vector_math-inl.h"

#include "weir/kernels/elementwise_loops-inl.h"

PipelineEnds EndsOfFloats() { return Stages<float>::Ends(); }
PipelineEnds EndsOfDoubles() { return Stages<double>::Ends(); }

}  // namespace HWY_NAMESPACE
}  // namespace weir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {
namespace {

HWY_EXPORT(EndsOfFloats);
HWY_EXPORT(EndsOfDoubles);

}  // namespace

const PipelineEnds* FindPipelineEnds(DataType type) {
  static const PipelineEnds floats = HWY_DYNAMIC_DISPATCH(EndsOfFloats)(),
                         doubles = HWY_DYNAMIC_DISPATCH(EndsOfDoubles)();
  return type == DT_FLOAT ? &floats : type == DT_DOUBLE ? &doubles : nullptr;
}

}  // namespace weir
#endif  // HWY_ONCE
