#include "weir/kernels/chain.h"

#include <limits>
#include <utility>

#include "weir/kernels/span_loops.h"
#include "weir/kernels/spans.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/chain_cpu.cc"
#include "weir/kernels/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "hwy/contrib/math/math-inl.h"

// What chains begin and end with. Links are where their ops are (math_spans_cpu.cc,
// activation_cpu.cc).
HWY_BEFORE_NAMESPACE();
namespace weir {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#include "weir/kernels/vector_math-inl.h"

#include "weir/kernels/spans-inl.h"

ChainEnds EndsOfFloats() { return Links<float>::Ends(); }
ChainEnds EndsOfDoubles() { return Links<double>::Ends(); }

}  // namespace HWY_NAMESPACE
}  // namespace weir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {
namespace {

HWY_EXPORT(EndsOfFloats);
HWY_EXPORT(EndsOfDoubles);

}  // namespace

const ChainEnds* FindChainEnds(DataType type) {
  static const ChainEnds floats = HWY_DYNAMIC_DISPATCH(EndsOfFloats)(),
                         doubles = HWY_DYNAMIC_DISPATCH(EndsOfDoubles)();
  return type == DT_FLOAT ? &floats : type == DT_DOUBLE ? &doubles : nullptr;
}

}  // namespace weir
#endif  // HWY_ONCE
