#include "weir/ops/lib/common_shape.h"

namespace weir {

Shape CommonShape(const Shape& a, const Shape& b) {
  if (!a.has_rank() || a.rank() != b.rank()) return Shape::UnknownRank();
  Shape common = a;
  for (int d = 0; d < a.rank(); ++d) {
    if (a.dim(d) != b.dim(d)) common.set_dim(d, Shape::kUnknown);
  }
  return common;
}

}  // namespace weir
