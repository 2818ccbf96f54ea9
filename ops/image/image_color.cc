#include "weir/ops/image/image.h"

#include <array>
#include <string>
#include <vector>

#include "weir/core/graph/scope.h"
#include "weir/ops/image/image_internal.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/registry.h"

// Color conversion and adjustment.
namespace weir {

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

// ---- op definitions

absl::Status ColorShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(Shape images, c.WithRankAtLeast(0, 1));
  if (images.has_rank()) {
    WEIR_RETURN_IF_ERROR(CheckDim(images, -1, 3));
    images.set_dim(images.rank() - 1, 3);
  }
  c.set_output(0, images);
  return absl::OkStatus();
}

// The inputs are images, followed by scalars.
absl::Status AdjustShape(ShapeContext& c) {
  const bool contrast = c.node().op_name().find("Contrast") != std::string::npos;
  for (int i = 1; contrast && i < c.num_inputs(); ++i) {
    WEIR_RETURN_IF_ERROR(c.WithRank(i, 0).status());
  }
  WEIR_ASSIGN_OR_RETURN(const Shape images, c.WithRankAtLeast(0, 3));
  c.set_output(0, images);
  return absl::OkStatus();
}

OpSpec AdjustSpec(const char* name, const char* inputs, const char* doc) {
  OpSpec spec(name);
  spec.In(inputs)
      .Out("output: T")
      .Attr("T: {half, float} = DT_FLOAT")
      .InferShape(AdjustShape)
      .Doc(doc);
  return spec;
}

constexpr char kFloats[] = "T: {half, bfloat16, float, double} = DT_FLOAT";

}  // namespace

void AddColorOps(OpRegistry* ops) {
  ops->Add(OpSpec("RGBToHSV")
               .In("images: T")
               .Out("output: T")
               .Attr(kFloats)
               .InferShape(ColorShape)
               .Gradient(RgbToHsvGradient)
               .Doc("Converts RGB to hue, saturation and value. All values are in [0, 1]."));
  ops->Add(OpSpec("HSVToRGB")
               .In("images: T")
               .Out("output: T")
               .Attr(kFloats)
               .InferShape(ColorShape)
               .Doc("Converts hue, saturation and value to RGB."));
  ops->Add(OpSpec("AdjustContrast")
               .In("images: T, contrast_factor: float, min_value: float, max_value: float")
               .Out("output: float")
               .Attr("T: {uint8, int8, int16, int32, int64, float, double}")
               .Deprecated(2, "Use AdjustContrastv2 instead")
               .InferShape(AdjustShape)
               .Doc("AdjustContrastv2 for any numeric type, clipped to a minimum and a maximum."));
  ops->Add(AdjustSpec("AdjustContrastv2", "images: T, contrast_factor: float",
                      "Scales the differences of each channel from its mean in each image."));
  ops->Add(AdjustSpec("AdjustHue", "images: T, delta: float",
                      "Rotates the hue of RGB pixels. A delta of 1 is a full rotation."));
  ops->Add(AdjustSpec("AdjustSaturation", "images: T, scale: float",
                      "Scales the saturation of RGB pixels, clamped to [0, 1]."));
}

// ---- builders

Output RgbToHsv(Output images, absl::string_view name) {
  return AddOp("RGBToHSV", {images}, {}, name);
}
Output HsvToRgb(Output images, absl::string_view name) {
  return AddOp("HSVToRGB", {images}, {}, name);
}
Output AdjustContrast(Output images, Output factor, absl::string_view name) {
  return AddOp("AdjustContrastv2", {images, factor}, {}, name);
}
Output AdjustHue(Output images, Output delta, absl::string_view name) {
  return AddOp("AdjustHue", {images, delta}, {}, name);
}
Output AdjustSaturation(Output images, Output factor, absl::string_view name) {
  return AddOp("AdjustSaturation", {images, factor}, {}, name);
}

}  // namespace weir
