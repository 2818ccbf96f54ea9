#include "weir/ops/image/image.h"

#include <optional>
#include <string>
#include <vector>

#include "weir/core/graph/scope.h"
#include "weir/ops/image/image_internal.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/registry.h"

// Resizing and transforming images.
namespace weir {

// ---- shape functions

namespace {

absl::Status ResizeShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape images, c.WithRank(0, 4));
  return SizedImageShape(c, 1, images.dim(0), images.dim(3));
}

absl::Status LikeInput1(ShapeContext& c) { return PassShape(c, 1, 0); }
absl::Status LikeInput2(ShapeContext& c) { return PassShape(c, 2, 0); }

absl::Status CropShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape images, c.WithRank(0, 4));
  WEIR_ASSIGN_OR_RETURN(const Shape boxes, c.WithRank(1, 2));
  WEIR_ASSIGN_OR_RETURN(const Shape indices, c.WithRank(2, 1));
  WEIR_ASSIGN_OR_RETURN(const int64_t count, MergeDims(boxes.dim(0), indices.dim(0)));
  WEIR_RETURN_IF_ERROR(CheckDim(boxes, 1, 4));
  return SizedImageShape(c, 3, count, images.dim(3));
}

absl::Status CropGradImageShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape shape, RequestedShape(c, 3));
  if (shape.has_rank() && shape.rank() != 4) {
    return InvalidArgument("Shape must be rank 4 but is rank ", shape.rank());
  }
  c.set_output(0, shape.has_rank() ? shape : UnknownDims(4));
  return absl::OkStatus();
}

absl::Status ProjectionShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape images, c.WithRank(0, 4));
  return SizedImageShape(c, 2, images.dim(0), images.dim(3));
}

// ---- gradients

Attrs GridAttrs(const Node& n) {
  return {{"align_corners", n.attr<bool>("align_corners")},
          {"half_pixel_centers", n.attr<bool>("half_pixel_centers")}};
}

// Returns the height and width of the images, as a constant if they are static.
Output SpatialSize(GradContext& g) {
  const Shape& shape = g.x().shape();
  if (shape.has_rank() && shape.Sub(1, 3).IsFullyDefined()) {
    return Ints(shape.Sub(1, 3)).In(g.graph(), g.node().op_name() + "Grad/size", DT_INT32);
  }
  return StridedSlice(ShapeTensor(g.x()), {Index::Range(1, 3)});
}

Grads NearestGradient(GradContext& g) {
  return {AddOp("ResizeNearestNeighborGrad", {g.dy(), SpatialSize(g)}, GridAttrs(g.node()))};
}
Grads BilinearGradient(GradContext& g) {
  return {AddOp("ResizeBilinearGrad", {g.dy(), g.x()}, GridAttrs(g.node()))};
}
Grads BicubicGradient(GradContext& g) {
  if (g.x().dtype() != DT_FLOAT && g.x().dtype() != DT_DOUBLE) return {};
  return {AddOp("ResizeBicubicGrad", {g.dy(), g.x()}, GridAttrs(g.node()))};
}
Grads ScaleGradient(GradContext& g) {
  return {AddOp("ScaleAndTranslateGrad", {g.dy(), g.x(), g.x(2), g.x(3)},
                {{"kernel_type", g.attr<std::string>("kernel_type")},
                 {"antialias", g.attr<bool>("antialias")}})};
}

// Boxes always get the gradient of bilinear sampling. Images get a gradient only if their dtype is
// floating-point.
Grads CropGradient(GradContext& g) {
  const DataType type = g.x().dtype();
  Grads grads(4);
  const bool is_static = g.x().shape().IsFullyDefined();
  const Output shape = is_static ? Output() : ShapeTensor(g.x());
  if (type == DT_HALF || type == DT_FLOAT || type == DT_DOUBLE) {
    const Output size =
        is_static ? Ints(g.x().shape()).In(g.graph(), "CropAndResizeGradImage/image_size", DT_INT32)
                  : shape;
    grads[0] = AddOp("CropAndResizeGradImage", {g.dy(), g.x(1), g.x(2), size},
                     {{"T", type}, {"method", g.attr<std::string>("method")}});
  }
  grads[1] = AddOp("CropAndResizeGradBoxes", {g.dy(), g.x(0), g.x(1), g.x(2)});
  return grads;
}

// Inverts 3 x 3 matrices. Arguments and results hold eight elements of each matrix; the ninth is 1.
Output InvertTransforms(Output transforms) {
  Graph& g = transforms.graph();
  Output matrices;
  {
    const NameScope scope(g, "flat_transforms_to_matrices");
    const Output flat = Reshape(transforms, Const<int32_t>(g, {-1, 8}));
    const Output count = StridedSlice(ShapeTensor(flat), {0});
    const Output ones =
        Ones(g, Stack({count, Const<int32_t>(g, 1, "ones/packed/1")}, 0, "ones/packed"));
    matrices = Reshape(Concat({flat, ones}, 1), Const<int32_t>(g, {-1, 3, 3}));
  }
  const Output inverse = AddOp("MatrixInverse", {matrices});
  const NameScope scope(g, "matrices_to_flat_transforms");
  const Output rows = Reshape(inverse, Const<int32_t>(g, {-1, 9}));
  const Output scaled =
      rows / StridedSlice(rows, {Index::Range(std::nullopt, std::nullopt), Index::Range(8, 9)});
  return StridedSlice(scaled,
                      {Index::Range(std::nullopt, std::nullopt), Index::Range(std::nullopt, 8)});
}

Grads ProjectionGradient(GradContext& g) {
  const Output transforms = InvertTransforms(g.x(1));
  const Output size = StridedSlice(ShapeTensor(g.x()), {Index::Range(1, 3)});
  const std::string& op = g.node().op_name();
  std::vector<Arg> args = {g.dy(), transforms, size};
  if (op == "ImageProjectiveTransformV3") {
    args.push_back(Const(g.graph(), 0.0f, op + "/fill_value"));
  }
  return {AddOp(op, args,
                {{"interpolation", g.attr<std::string>("interpolation")},
                 {"fill_mode", g.attr<std::string>("fill_mode")}})};
}

constexpr char kAlign[] = "align_corners: bool = false";
constexpr char kHalf[] = "half_pixel_centers: bool = false";

OpSpec ResizeSpec(const char* name, const char* types, const char* result, GradientFn gradient,
                  const char* doc) {
  OpSpec spec(name);
  spec.In("images: T, size: int32").Out(result).Attr(types).Attr(kAlign);
  if (std::string(name) != "ResizeArea") spec.Attr(kHalf);
  spec.InferShape(ResizeShape).Doc(doc);
  if (gradient != nullptr) spec.Gradient(gradient);
  return spec;
}

OpSpec ResizeGradSpec(const char* name, const char* types, const char* doc) {
  OpSpec spec(name);
  spec.In("grads: float, original_image: T")
      .Out("output: T")
      .Attr(types)
      .Attr(kAlign)
      .Attr(kHalf)
      .InferShape(LikeInput1)
      .Doc(doc);
  if (std::string(name) == "ResizeBilinearGrad") spec.NotDifferentiable();
  return spec;
}

void AddResizing(OpRegistry* ops) {
  constexpr char kFloatResult[] = "resized_images: float";
  constexpr char kTypes[] =
      "T: {int8, uint8, int16, uint16, int32, int64, half, float, double, bfloat16}";
  ops->Add(
      ResizeSpec("ResizeArea", kTypes, kFloatResult, nullptr,
                 "Resizes images: computes the mean over the area that an output pixel covers."));
  ops->Add(ResizeSpec("ResizeBicubic", kTypes, kFloatResult, BicubicGradient,
                      "Resizes images with cubic convolution."));
  ops->Add(ResizeSpec("ResizeBilinear",
                      "T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, "
                      "double, bfloat16}",
                      kFloatResult, BilinearGradient, "Resizes images with linear interpolation.")
               .Rows(RowRule::kWindows));
  ops->Add(ResizeSpec("ResizeNearestNeighbor", kTypes, "resized_images: T", NearestGradient,
                      "Resizes images: each pixel is that of the nearest neighbor.")
               .Rows(RowRule::kWindows));
  ops->Add(ResizeGradSpec("ResizeBicubicGrad", "T: {float, double}",
                          "Computes the gradient of ResizeBicubic."));
  ops->Add(ResizeGradSpec("ResizeBilinearGrad", "T: {float, bfloat16, half, double}",
                          "Computes the gradient of ResizeBilinear."));
  ops->Add(OpSpec("ResizeNearestNeighborGrad")
               .In("grads: T, size: int32")
               .Out("output: T")
               .Attr("T: {uint8, int8, int32, half, float, double, bfloat16}")
               .Attr(kAlign)
               .Attr(kHalf)
               .InferShape(ResizeShape)
               .Doc("Computes the gradient of ResizeNearestNeighbor: sums over the output pixels "
                    "that copy an input pixel."));
}

void AddScaling(OpRegistry* ops) {
  ops->Add(OpSpec("ScaleAndTranslate")
               .In("images: T, size: int32, scale: float, translation: float")
               .Out("resized_images: float")
               .Attr("T: {int8, uint8, int16, uint16, int32, int64, bfloat16, half, float, double}")
               .Attr("kernel_type: string = 'lanczos3'")
               .Attr("antialias: bool = true")
               .InferShape(ResizeShape)
               .Gradient(ScaleGradient)
               .Doc("Scales and translates images, with a choice of resampling kernels."));
  ops->Add(OpSpec("ScaleAndTranslateGrad")
               .In("grads: T, original_image: T, scale: float, translation: float")
               .Out("output: T")
               .Attr("T: {float}")
               .Attr("kernel_type: string = 'lanczos3'")
               .Attr("antialias: bool = true")
               .InferShape(LikeInput1)
               .Doc("Computes the gradient of ScaleAndTranslate."));
  for (const char* op : {"ImageProjectiveTransformV2", "ImageProjectiveTransformV3"}) {
    const bool filled = op[std::string(op).size() - 1] == '3';
    ops->Add(OpSpec(op)
                 .In(filled ? "images: dtype, transforms: float, output_shape: int32, "
                              "fill_value: float"
                            : "images: dtype, transforms: float, output_shape: int32")
                 .Out("transformed_images: dtype")
                 .Attr("dtype: {uint8, int32, int64, half, bfloat16, float, double}")
                 .Attr("interpolation: string")
                 .Attr("fill_mode: string = 'CONSTANT'")
                 .InferShape(ProjectionShape)
                 .Gradient(ProjectionGradient)
                 .Doc("Applies projective transforms, of eight numbers each, to images."));
  }
}

void AddCropping(OpRegistry* ops) {
  constexpr char kTypes[] = "T: {uint8, uint16, int8, int16, int32, int64, half, float, double}";
  constexpr char kMethod[] = "method: {'bilinear', 'nearest'} = 'bilinear'";
  ops->Add(OpSpec("CropAndResize")
               .In("image: T, boxes: float, box_ind: int32, crop_size: int32")
               .Out("crops: float")
               .Attr(kTypes)
               .Attr(kMethod)
               .Attr("extrapolation_value: float = 0")
               .InferShape(CropShape)
               .Gradient(CropGradient)
               .Doc("Crops boxes from images and resizes the crops to one size."));
  ops->Add(OpSpec("CropAndResizeGradImage")
               .In("grads: float, boxes: float, box_ind: int32, image_size: int32")
               .Out("output: T")
               .Attr("T: {float, half, double}")
               .Attr(kMethod)
               .InferShape(CropGradImageShape)
               .Doc("Computes the gradient of CropAndResize with respect to the images."));
  ops->Add(OpSpec("CropAndResizeGradBoxes")
               .In("grads: float, image: T, boxes: float, box_ind: int32")
               .Out("output: float")
               .Attr(kTypes)
               .Attr("method: {'bilinear'} = 'bilinear'")
               .InferShape(LikeInput2)
               .Doc("Computes the gradient of CropAndResize with respect to the boxes."));
}

}  // namespace

void AddResizeOps(OpRegistry* ops) {
  AddResizing(ops);
  AddScaling(ops);
  AddCropping(ops);
}

// ---- builders

namespace {

Output Resize(const char* op, Output images, const Ints& size, Attrs attrs,
              absl::string_view name) {
  if (!images.valid()) return {};
  const std::string node = name.empty() ? op : std::string(name);
  return AddOp(op, {images, size.In(images.graph(), node + "/size", DT_INT32)}, attrs, node);
}

Attrs GridAttrs(const ResizeOptions& o) {
  return {{"align_corners", o.align_corners}, {"half_pixel_centers", o.half_pixel_centers}};
}

}  // namespace

Output ResizeBilinear(Output images, const Ints& size, const ResizeOptions& options,
                      absl::string_view name) {
  return Resize("ResizeBilinear", images, size, GridAttrs(options), name);
}
Output ResizeBicubic(Output images, const Ints& size, const ResizeOptions& options,
                     absl::string_view name) {
  return Resize("ResizeBicubic", images, size, GridAttrs(options), name);
}
Output ResizeNearestNeighbor(Output images, const Ints& size, const ResizeOptions& options,
                             absl::string_view name) {
  return Resize("ResizeNearestNeighbor", images, size, GridAttrs(options), name);
}
Output ResizeArea(Output images, const Ints& size, bool align_corners, absl::string_view name) {
  return Resize("ResizeArea", images, size, {{"align_corners", align_corners}}, name);
}

Output CropAndResize(Output images, Output boxes, Output box_indices, const Ints& crop_size,
                     const CropAndResizeOptions& o, absl::string_view name) {
  if (!images.valid()) return {};
  const std::string node = name.empty() ? "CropAndResize" : std::string(name);
  return AddOp(
      "CropAndResize",
      {images, boxes, box_indices, crop_size.In(images.graph(), node + "/crop_size", DT_INT32)},
      {{"method", o.method}, {"extrapolation_value", o.extrapolation_value}}, node);
}

}  // namespace weir
