#include "weir/ops/lib/shape_values.h"

#include <algorithm>

#include "weir/core/graph/graph.h"

namespace weir {

namespace {

constexpr int64_t kMaxElements = Shape::kMaxRank;

ShapeValues One(int64_t value) { return std::vector<int64_t>{value}; }

// The values of inputs [first, last), one after the other.
ShapeValues Concatenated(ShapeValueContext& c, int first, int last) {
  std::vector<int64_t> out;
  for (int i = first; i < last; ++i) {
    const ShapeValues part = c.Input(i);
    if (!part || out.size() + part->size() > kMaxElements) return std::nullopt;
    out.insert(out.end(), part->begin(), part->end());
  }
  return out;
}

}  // namespace

ShapeValues ConstShapeValue(ShapeValueContext& c) {
  const AttrValue* attr = c.node().FindAttr("value");
  const Tensor* t = attr == nullptr ? nullptr : attr->get_if<Tensor>();
  if (t == nullptr || !IsInteger(t->dtype()) || t->rank() > 1 || t->num_elements() > kMaxElements)
    return std::nullopt;
  std::vector<int64_t> out(t->num_elements());
  for (size_t i = 0; i < out.size(); ++i) out[i] = t->IntAt(static_cast<int64_t>(i));
  return out;
}

ShapeValues ShapeOfInputValue(ShapeValueContext& c) {
  const Shape& s = c.node().input(0).shape();
  if (!s.has_rank()) return std::nullopt;
  return std::vector<int64_t>(s.dims().begin(), s.dims().end());
}

ShapeValues RankShapeValue(ShapeValueContext& c) {
  const Shape& s = c.node().input(0).shape();
  return s.has_rank() ? One(s.rank()) : std::nullopt;
}

ShapeValues SizeShapeValue(ShapeValueContext& c) {
  return One(c.node().input(0).shape().num_elements());
}

ShapeValues ForwardedShapeValue(ShapeValueContext& c) {
  return IsInteger(c.node().input(0).dtype()) ? c.Input(0) : std::nullopt;
}

ShapeValues ExpandedShapeValue(ShapeValueContext& c) {
  return c.node().input(0).shape().IsScalar() ? c.Input(0) : std::nullopt;
}

ShapeValues PackedShapeValue(ShapeValueContext& c) {
  const Node& node = c.node();
  const bool scalars = node.num_inputs() > 0 && node.input(0).shape().IsScalar();
  return scalars ? Concatenated(c, 0, node.num_inputs()) : std::nullopt;
}

ShapeValues ConcatShapeValue(ShapeValueContext& c) {
  return Concatenated(c, 0, c.node().num_inputs() - 1);
}

ShapeValues SlicedShapeValue(ShapeValueContext& c) {
  const Node& node = c.node();
  if (node.num_inputs() != 4) return std::nullopt;
  const ShapeValues x = c.Input(0), begin = c.Input(1), end = c.Input(2), strides = c.Input(3);
  if (!x || !begin || !end || !strides || begin->size() != 1 || end->size() != 1 ||
      strides->size() != 1) {
    return std::nullopt;
  }
  const auto mask = [&](const char* name) { return node.attr_or<int64_t>(name, 0); };
  if (mask("ellipsis_mask") != 0 || mask("new_axis_mask") != 0) return std::nullopt;
  const int64_t n = static_cast<int64_t>(x->size()), stride = (*strides)[0];
  const auto at = [n](int64_t i) { return i < 0 ? i + n : i; };
  const int64_t b = at((*begin)[0]);
  if (mask("shrink_axis_mask") == 1) return b >= 0 && b < n ? One((*x)[b]) : std::nullopt;
  if (stride != 1) return std::nullopt;
  const int64_t from = mask("begin_mask") == 1 ? 0 : std::clamp<int64_t>(b, 0, n);
  const int64_t to = mask("end_mask") == 1 ? n : std::clamp<int64_t>(at((*end)[0]), from, n);
  return std::vector<int64_t>(x->begin() + from, x->begin() + std::max(from, to));
}

bool AddShapeValues(int64_t x, int64_t y, int64_t* z) { return !__builtin_add_overflow(x, y, z); }
bool SubtractShapeValues(int64_t x, int64_t y, int64_t* z) {
  *z = x - y;
  return true;
}
bool MultiplyShapeValues(int64_t x, int64_t y, int64_t* z) {
  return !__builtin_mul_overflow(x, y, z);
}
bool DivideShapeValues(int64_t x, int64_t y, int64_t* z) {
  if (y != 0) *z = x / y;
  return y != 0;
}
bool MaximumOfShapeValues(int64_t x, int64_t y, int64_t* z) {
  *z = std::max(x, y);
  return true;
}
bool MinimumOfShapeValues(int64_t x, int64_t y, int64_t* z) {
  *z = std::min(x, y);
  return true;
}

}  // namespace weir
