#include "weir/ops/array_internal.h"
#include "weir/ops/image_internal.h"
#include "weir/ops/registry.h"

// Op definitions for color conversion and adjustment.
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

}  // namespace weir
