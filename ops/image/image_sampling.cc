#include <string>

#include "weir/ops/image/image_internal.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/registry.h"

// Op definitions for cropping images at random or given positions.
namespace weir {

namespace {

absl::Status SampleShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape sizes, c.WithRank(0, 1));
  WEIR_ASSIGN_OR_RETURN(const Shape boxes, c.WithRank(1, 3));
  if (c.num_inputs() > 2) WEIR_RETURN_IF_ERROR(c.WithRank(2, 0).status());
  WEIR_RETURN_IF_ERROR(CheckDim(sizes, 0, 3));
  WEIR_RETURN_IF_ERROR(CheckDim(boxes, 2, 4));
  if (c.num_inputs() > 3) {
    WEIR_ASSIGN_OR_RETURN(const Shape seed, c.WithRank(3, 1));
    WEIR_RETURN_IF_ERROR(CheckDim(seed, 0, 2));
  }
  c.set_output(0, Shape({3}));
  c.set_output(1, Shape({3}));
  c.set_output(2, Shape({1, 1, 4}));
  return absl::OkStatus();
}

absl::Status RandomCropShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape image, c.WithRank(0, 3));
  WEIR_RETURN_IF_ERROR(SizedImageShape(c, 1, 1, image.dim(2)));
  Shape shape = c.outputs()[0];
  shape.RemoveDim(0);
  c.set_output(0, shape);
  return absl::OkStatus();
}

absl::Status GlimpseShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape images, c.WithRank(0, 4));
  WEIR_ASSIGN_OR_RETURN(const Shape offsets, c.WithRank(2, 2));
  WEIR_ASSIGN_OR_RETURN(const int64_t batch, MergeDims(images.dim(0), offsets.dim(0)));
  WEIR_RETURN_IF_ERROR(CheckDim(offsets, 1, 2));
  const std::string noise = c.attr<std::string>("noise");
  if (c.attr<bool>("uniform_noise") && !noise.empty() && noise != "uniform") {
    return InvalidArgument("The uniform_noise and noise should not be specified at the same time");
  }
  return SizedImageShape(c, 1, batch, images.dim(3));
}

// Adds the attributes that the three sampling ops have in common, after their own first
// attributes.
OpSpec& SampleAttrs(OpSpec& spec) {
  return spec.Attr("aspect_ratio_range: list(float) = [0.75, 1.33]")
      .Attr("area_range: list(float) = [0.05, 1.0]")
      .Attr("max_attempts: int = 100")
      .Attr("use_image_if_no_bounding_boxes: bool = false")
      .InferShape(SampleShape)
      .NotDifferentiable();
}

OpSpec Sample(const char* name, const char* inputs) {
  OpSpec spec(name);
  spec.In(inputs)
      .Out("begin: T, size: T, bboxes: float")
      .Attr("T: {uint8, int8, int16, int32, int64}");
  return spec;
}

void AddSampling(OpRegistry* ops) {
  OpSpec first = Sample("SampleDistortedBoundingBox", "image_size: T, bounding_boxes: float");
  first.Attr("seed: int = 0").Attr("seed2: int = 0").Attr("min_object_covered: float = 0.1");
  ops->Add(SampleAttrs(first)
               .Stateful()
               .Has(Effect::kDraws)
               .Doc("Returns a random crop of an image that covers enough of one of the boxes."));
  OpSpec second = Sample("SampleDistortedBoundingBoxV2",
                         "image_size: T, bounding_boxes: float, min_object_covered: float");
  second.Attr("seed: int = 0").Attr("seed2: int = 0");
  ops->Add(SampleAttrs(second)
               .Stateful()
               .Has(Effect::kDraws)
               .Doc("SampleDistortedBoundingBox with a minimum coverage that is an input."));
  OpSpec stateless =
      Sample("StatelessSampleDistortedBoundingBox",
             "image_size: T, bounding_boxes: float, min_object_covered: float, seed: Tseed");
  stateless.Attr("Tseed: {int32, int64}");
  ops->Add(SampleAttrs(stateless).Doc(
      "SampleDistortedBoundingBoxV2 whose result depends on its seed alone."));
}

}  // namespace

void AddImageSamplingOps(OpRegistry* ops) {
  AddSampling(ops);
  ops->Add(OpSpec("RandomCrop")
               .In("image: T, size: int64")
               .Out("output: T")
               .Attr("T: {uint8, int8, int16, int32, int64, float, double}")
               .Attr("seed: int = 0")
               .Attr("seed2: int = 0")
               .Stateful()
               .Has(Effect::kDraws)
               .Deprecated(8, "Random crop is now pure Python")
               .InferShape(RandomCropShape)
               .Doc("Crops a window of a given size at a random position of an image."));
  for (const char* op : {"ExtractGlimpse", "ExtractGlimpseV2"}) {
    ops->Add(OpSpec(op)
                 .In("input: float, size: int32, offsets: float")
                 .Out("glimpse: float")
                 .Attr("centered: bool = true")
                 .Attr("normalized: bool = true")
                 .Attr("uniform_noise: bool = true")
                 .Attr("noise: string = 'uniform'")
                 .InferShape(GlimpseShape)
                 .Doc("Extracts a window of each image around a given point, with noise outside "
                      "the image."));
  }
}

}  // namespace weir
