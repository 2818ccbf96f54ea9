#include "weir/ops/array_internal.h"
#include "weir/ops/image_internal.h"
#include "weir/ops/registry.h"

// Records of what changes colors.
namespace weir {

namespace {

absl::Status ColorShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(Shape images, c.WithRankAtLeast(0, 1));
  if (images.has_rank()) {
    WEIR_RETURN_IF_ERROR(CheckDim(images, -1, 3));
    images.set_dim(images.rank() - 1, 3);
  }
  c.set_output(0, images);
  return absl::OkStatus();
}

// Images, and scalars behind them.
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
               .Doc("Hue, saturation and value of RGB pixels; all from 0 to 1."));
  ops->Add(OpSpec("HSVToRGB")
               .In("images: T")
               .Out("output: T")
               .Attr(kFloats)
               .InferShape(ColorShape)
               .Doc("RGB pixels of a hue, a saturation and a value."));
  ops->Add(OpSpec("AdjustContrast")
               .In("images: T, contrast_factor: float, min_value: float, max_value: float")
               .Out("output: float")
               .Attr("T: {uint8, int8, int16, int32, int64, float, double}")
               .Deprecated(2, "Use AdjustContrastv2 instead")
               .InferShape(AdjustShape)
               .Doc("AdjustContrastv2 of any numbers, cut off at two bounds."));
  ops->Add(AdjustSpec("AdjustContrastv2", "images: T, contrast_factor: float",
                      "Scales each channel's distances from its mean in each image."));
  ops->Add(AdjustSpec("AdjustHue", "images: T, delta: float",
                      "Turns the hue of RGB pixels; 1 is once around."));
  ops->Add(AdjustSpec("AdjustSaturation", "images: T, scale: float",
                      "Scales the saturation of RGB pixels, which stays between 0 and 1."));
}

}  // namespace weir
