#include <array>
#include <vector>

#include "weir/core/scope.h"
#include "weir/ops/array_internal.h"
#include "weir/ops/image_internal.h"

// The gradient of RGBToHSV. Hue, saturation and value are piecewise rational in red, green and
// blue. Masks (1 or 0) that say which component is the largest and which the smallest select the
// piece. With components k, m, o:
//   dV/dk = k biggest
//   dS/dk = k biggest * smallest / k^2  -  k smallest / biggest
//   dH/dk = (60 / 360) * (-(difference of the others) / (max - min)^2       if k is the biggest
//                         (difference of the others) / (m - k)^2            if m is, and k smallest
//                         +- 1 / (m - o))                                   if m is, and o smallest
// The nodes are those of TensorFlow's rule, created in the same order. A division by zero yields
// zero.
namespace weir {

namespace {

constexpr int kNext[] = {1, 2, 0}, kPrevious[] = {2, 0, 1};
// The components other than k, in the order in which the saturation rule uses them.
constexpr int kOthers[3][2] = {{1, 2}, {0, 2}, {1, 0}};

struct Components {
  std::array<Output, 3> rgb, biggest, smallest;
  Output saturation, value;
  DataType dtype() const { return rgb[0].dtype(); }
  Output Positive(int k) const { return Cast(rgb[k] > 0, dtype()); }
};

Output Channel(Output x, int channel) { return StridedSlice(x, {Index::Ellipsis(), channel}); }

Output Inverse(Output x) {
  Graph& g = x.graph();
  Output one;
  {
    const NameScope scope(g, "Cast");
    one = Const(g, 1.0f, "x");
    if (x.dtype() != DT_FLOAT) one = AddOp("Cast", {one}, {{"DstT", x.dtype()}}, scope.name());
  }
  return DivNoNan(one, x);
}

// Returns a mask that is 1 where component k satisfies `first` against component `a` and `second`
// against `b`. On ties, red precedes green and green precedes blue.
using Relation = Output (*)(const TensorArg&, const TensorArg&, absl::string_view);
Output Mask(const Components& c, int k, int a, Relation first, int b, Relation second) {
  const Output with_a = first(c.rgb[k], c.rgb[a], {});
  const Output with_b = second(c.rgb[k], c.rgb[b], {});
  return Cast(with_a & with_b, c.dtype());
}

Components ReadComponents(GradContext& g) {
  Components c;
  for (int k = 0; k < 3; ++k) c.rgb[k] = Channel(g.x(), k);
  c.saturation = Channel(g.y(), 1);
  c.value = Channel(g.y(), 2);
  c.biggest[0] = Mask(c, 0, 2, GreaterEqual, 1, GreaterEqual);
  c.biggest[1] = Mask(c, 1, 0, Greater, 2, GreaterEqual);
  c.biggest[2] = Mask(c, 2, 0, Greater, 1, Greater);
  c.smallest[0] = Mask(c, 0, 2, Less, 1, Less);
  c.smallest[1] = Mask(c, 1, 0, LessEqual, 2, Less);
  c.smallest[2] = Mask(c, 2, 0, LessEqual, 1, LessEqual);
  return c;
}

Output SaturationBy(const Components& c, int k) {
  const auto [a, b] = kOthers[k];
  const Output positive = c.Positive(k);
  const Output low_a = c.smallest[a] * c.rgb[a], low_b = c.smallest[b] * c.rgb[b];
  const Output smallest = Add(low_a, low_b, "Add");
  const Output above = c.biggest[k] * smallest;
  const Output inverse = Inverse(Square(c.rgb[k]));
  const Output if_biggest = above * inverse;
  const Output below = c.smallest[k] * -1;
  const Output high_a = c.biggest[a] * c.rgb[a], high_b = c.biggest[b] * c.rgb[b];
  const Output if_smallest = below * Inverse(high_a + high_b);
  return positive * Add(if_biggest, if_smallest, "Add");
}

// The case in which component m is the largest and k the smallest.
Output HueBetween(const Components& c, int k, int m) {
  const Output mask = c.Positive(m) * c.biggest[m] * c.smallest[k];
  const Output difference = mask * (c.rgb[kPrevious[k]] - c.rgb[kNext[k]]);
  const bool reversed = k == 0 && m == 1;
  const Output range = reversed ? c.rgb[k] - c.rgb[m] : c.rgb[m] - c.rgb[k];
  return 60 * (difference * Inverse(Square(range)));
}

// The case in which component m is the largest and k is not the smallest.
Output HueBeside(const Components& c, int k, int m) {
  const int other = 3 - k - m;
  Output mask = c.Positive(m) * c.biggest[m] * c.smallest[other];
  if (m == kNext[k]) mask = mask * -1;
  return 60 * (mask * Inverse(c.rgb[m] - c.rgb[other]));
}

Output HueBy(const Components& c, int k) {
  const Output mask = c.Positive(k) * c.biggest[k] * -1;
  const Output difference = mask * (c.rgb[kNext[k]] - c.rgb[kPrevious[k]]);
  const Output by_saturation = difference * Inverse(Square(c.saturation));
  std::vector<Output> terms = {60 * (by_saturation * Inverse(Square(c.value)))};
  for (int m = 0; m < 3; ++m) {
    if (m == k) continue;
    terms.push_back(HueBetween(c, k, m));
    terms.push_back(HueBeside(c, k, m));
  }
  Output sum = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) sum = sum + terms[i];
  return sum / 360;
}

// Multiplies the gradient of a channel of the result by that channel's derivatives.
Output ApplyDerivatives(GradContext& g, int channel, const std::array<Output, 3>& derivatives) {
  Outputs products;
  for (const Output& derivative : derivatives) {
    products.push_back(Channel(g.dy(), channel) * derivative);
  }
  return Stack(products, -1);
}

}  // namespace

Grads RgbToHsvGradient(GradContext& g) {
  const Components c = ReadComponents(g);
  std::array<Output, 3> saturation, hue;
  for (int k = 0; k < 3; ++k) saturation[k] = SaturationBy(c, k);
  for (int k = 0; k < 3; ++k) hue[k] = HueBy(c, k);
  const Output by_value = ApplyDerivatives(g, 2, c.biggest);
  const Output by_saturation = ApplyDerivatives(g, 1, saturation);
  const Output by_hue = ApplyDerivatives(g, 0, hue);
  return {Add(Add(by_value, by_saturation, "Add"), by_hue, "Add")};
}

}  // namespace weir
