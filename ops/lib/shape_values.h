#ifndef WEIR_OPS_LIB_SHAPE_VALUES_H_
#define WEIR_OPS_LIB_SHAPE_VALUES_H_

#include "weir/core/graph/op_traits.h"

// Evaluation of the ops that graphs compute shapes with, for their records (OpSpec::ShapeValue):
// vectors or scalars of integers of which some may be known while a graph is built.
namespace weir {

using ShapeValues = std::optional<std::vector<int64_t>>;

ShapeValues ConstShapeValue(ShapeValueContext& c);
ShapeValues ShapeOfInputValue(ShapeValueContext& c);  // Shape
ShapeValues RankShapeValue(ShapeValueContext& c);
ShapeValues SizeShapeValue(ShapeValueContext& c);
ShapeValues ForwardedShapeValue(ShapeValueContext& c);  // Identity, Cast: input 0 if integers
ShapeValues ExpandedShapeValue(ShapeValueContext& c);   // ExpandDims of a scalar
ShapeValues PackedShapeValue(ShapeValueContext& c);     // Pack of scalars
ShapeValues ConcatShapeValue(ShapeValueContext& c);     // ConcatV2
ShapeValues SlicedShapeValue(ShapeValueContext& c);     // StridedSlice of one dimension

// Element by element; an operand of one element broadcasts. A negative or overflowing result is
// unknown.
template <bool (*kCombine)(int64_t x, int64_t y, int64_t* z)>
ShapeValues CombinedShapeValue(ShapeValueContext& c) {
  const ShapeValues a = c.Input(0), b = c.Input(1);
  if (!a || !b) return std::nullopt;
  if (a->size() != b->size() && a->size() != 1 && b->size() != 1) return std::nullopt;
  const size_t n = a->size() == 1 ? b->size() : a->size();
  std::vector<int64_t> out(n, -1);
  for (size_t i = 0; i < n; ++i) {
    const int64_t x = (*a)[a->size() == 1 ? 0 : i], y = (*b)[b->size() == 1 ? 0 : i];
    int64_t z = -1;
    if (x >= 0 && y >= 0 && kCombine(x, y, &z) && z >= 0) out[i] = z;
  }
  return out;
}
// Each is false where the result is not known.
bool AddShapeValues(int64_t x, int64_t y, int64_t* z);
bool SubtractShapeValues(int64_t x, int64_t y, int64_t* z);
bool MultiplyShapeValues(int64_t x, int64_t y, int64_t* z);
bool DivideShapeValues(int64_t x, int64_t y, int64_t* z);
bool MaximumOfShapeValues(int64_t x, int64_t y, int64_t* z);
bool MinimumOfShapeValues(int64_t x, int64_t y, int64_t* z);

}  // namespace weir

#endif  // WEIR_OPS_LIB_SHAPE_VALUES_H_
