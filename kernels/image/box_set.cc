#include "weir/kernels/image/box_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/image/box_set.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace weir {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// As std::min and std::max, also for NaNs and zeros.
template <class V>
HWY_INLINE V Min(V a, V b) {
  return hn::IfThenElse(hn::Lt(b, a), b, a);
}
template <class V>
HWY_INLINE V Max(V a, V b) {
  return hn::IfThenElse(hn::Lt(a, b), b, a);
}

// Most boxes are apart: then nothing is divided.
bool FindOverlap(const Box& box, const BoxSet::Block* blocks, int64_t count, float threshold) {
  const hn::CappedTag<float, BoxSet::Block::kBoxes> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto none = hn::Zero(d), limit = hn::Set(d, threshold), area = hn::Set(d, box.area);
  const auto low_y = hn::Set(d, box.low_y), high_y = hn::Set(d, box.high_y);
  const auto low_x = hn::Set(d, box.low_x), high_x = hn::Set(d, box.high_x);
  for (const BoxSet::Block* b = blocks; b < blocks + count; ++b) {
    for (int64_t i = 0; i < BoxSet::Block::kBoxes; i += lanes) {
      const auto height = Max(
          hn::Sub(Min(high_y, hn::LoadU(d, b->high_y + i)), Max(low_y, hn::LoadU(d, b->low_y + i))),
          none);
      const auto width = Max(
          hn::Sub(Min(high_x, hn::LoadU(d, b->high_x + i)), Max(low_x, hn::LoadU(d, b->low_x + i))),
          none);
      const auto common = hn::Mul(height, width);
      if (hn::AllFalse(d, hn::Gt(common, none))) continue;
      const auto other = hn::LoadU(d, b->area + i);
      const auto overlap = hn::Div(common, hn::Sub(hn::Add(area, other), common));
      const auto is_empty = hn::Le(other, none);
      if (!hn::AllFalse(d, hn::AndNot(is_empty, hn::Gt(overlap, limit)))) return true;
    }
  }
  return false;
}

}  // namespace HWY_NAMESPACE
}  // namespace weir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {

HWY_EXPORT(FindOverlap);

void BoxSet::Add(const Box& box) {
  const int64_t i = count_ % Block::kBoxes;
  if (i == 0) blocks_.emplace_back();
  Block& block = blocks_.back();
  block.low_y[i] = box.low_y;
  block.low_x[i] = box.low_x;
  block.high_y[i] = box.high_y;
  block.high_x[i] = box.high_x;
  block.area[i] = box.area;
  ++count_;
}

bool BoxSet::HasOverlap(const Box& box, float threshold) const {
  if (box.area <= 0) return false;
  return HWY_DYNAMIC_DISPATCH(FindOverlap)(box, blocks_.data(),
                                           static_cast<int64_t>(blocks_.size()), threshold);
}

}  // namespace weir
#endif  // HWY_ONCE
