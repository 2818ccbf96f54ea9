#include "weir/ops/image/image.h"

#include <algorithm>
#include <string>

#include "weir/core/graph/scope.h"
#include "weir/ops/image/image_internal.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/registry.h"

// Non-maximum suppression, and drawing of boxes.
namespace weir {

// ---- shape functions

namespace {

// Checks the shapes of the boxes (or their overlaps), their scores, and the scalars.
absl::Status CheckNms(ShapeContext& c, bool overlaps) {
  WEIR_ASSIGN_OR_RETURN(const Shape boxes, c.WithRank(0, 2));
  WEIR_ASSIGN_OR_RETURN(const Shape scores, c.WithRank(1, 1));
  for (int i = 2; i < c.num_inputs(); ++i) WEIR_RETURN_IF_ERROR(c.WithRank(i, 0).status());
  WEIR_RETURN_IF_ERROR(MergeDims(boxes.dim(0), scores.dim(0)).status());
  if (overlaps) return MergeDims(boxes.dim(0), boxes.dim(1)).status();
  return CheckDim(boxes, 1, 4);
}

absl::Status NmsShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(CheckNms(c, c.node().op_name() == "NonMaxSuppressionWithOverlaps"));
  int64_t count = Shape::kUnknown;
  if (c.node().attr_or<bool>("pad_to_max_output_size", false)) {
    if (const auto most = KnownInts(c, 2); most.has_value() && (*most)[0] >= 0) count = (*most)[0];
  }
  c.set_output(0, Shape({count}));
  if (c.num_outputs() == 3) c.set_output(1, Shape({count}));
  if (c.num_outputs() > 1) c.set_output(c.num_outputs() - 1, Shape());
  return absl::OkStatus();
}

// Returns the positive constant at input i, or -1 if it is unknown.
absl::StatusOr<int64_t> KnownSize(ShapeContext& c, int i, absl::string_view name) {
  const auto known = KnownInts(c, i);
  if (!known.has_value()) return Shape::kUnknown;
  if ((*known)[0] <= 0) return InvalidArgument(name, " should be > 0 ");
  return (*known)[0];
}

absl::Status CombinedNmsShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape boxes, c.WithRank(0, 4));
  WEIR_ASSIGN_OR_RETURN(const Shape scores, c.WithRank(1, 3));
  for (int i = 2; i < 6; ++i) WEIR_RETURN_IF_ERROR(c.WithRank(i, 0).status());
  WEIR_ASSIGN_OR_RETURN(const int64_t batch, MergeDims(boxes.dim(0), scores.dim(0)));
  WEIR_RETURN_IF_ERROR(MergeDims(boxes.dim(1), scores.dim(1)).status());
  WEIR_RETURN_IF_ERROR(CheckDim(boxes, 3, 4));
  const int64_t classes = scores.dim(2);
  if (boxes.dim(2) >= 0 && classes >= 0 && boxes.dim(2) != 1 && boxes.dim(2) != classes) {
    return InvalidArgument(
        "third dimension of boxes must be either 1 or equal to the third dimension of scores");
  }
  WEIR_ASSIGN_OR_RETURN(int64_t size, KnownSize(c, 3, "max_total_size"));
  if (c.attr<bool>("pad_per_class")) {
    WEIR_ASSIGN_OR_RETURN(const int64_t per_class, KnownSize(c, 2, "max_output_size_per_class"));
    const bool known = size >= 0 && per_class >= 0 && classes >= 0;
    size = known ? std::min(size, per_class * classes) : Shape::kUnknown;
  }
  c.set_output(0, Shape({batch, size, 4}));
  c.set_output(1, Shape({batch, size}));
  c.set_output(2, Shape({batch, size}));
  c.set_output(3, Shape({batch}));
  return absl::OkStatus();
}

absl::Status DrawShape(ShapeContext& c) {
  if (c.num_inputs() == 3) {
    WEIR_ASSIGN_OR_RETURN(const Shape images, c.WithRankAtLeast(0, 3));
    c.set_output(0, images);
    return absl::OkStatus();
  }
  WEIR_ASSIGN_OR_RETURN(const Shape images, c.WithRank(0, 4));
  WEIR_ASSIGN_OR_RETURN(const Shape boxes, c.WithRank(1, 3));
  const int64_t depth = images.dim(3);
  if (depth >= 0 && depth != 1 && depth != 3 && depth != 4) {
    return InvalidArgument("Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA), but is ",
                           depth);
  }
  WEIR_RETURN_IF_ERROR(CheckDim(boxes, 2, 4));
  c.set_output(0, images);
  return absl::OkStatus();
}

constexpr char kType[] = "T: {half, float} = DT_FLOAT";
constexpr char kThreshold[] = "T_threshold: {half, float} = DT_FLOAT";
constexpr char kPad[] = "pad_to_max_output_size: bool = false";

void AddSuppression(OpRegistry* ops) {
  const std::string inputs = "boxes: T, scores: T, max_output_size: int32, ";
  ops->Add(OpSpec("NonMaxSuppression")
               .In("boxes: float, scores: float, max_output_size: int32")
               .Out("selected_indices: int32")
               .Attr("iou_threshold: float = 0.5")
               .InferShape(NmsShape)
               .Doc("Selects boxes by score and drops those that overlap a better box too much."));
  ops->Add(OpSpec("NonMaxSuppressionV2")
               .In(inputs + "iou_threshold: T_threshold")
               .Out("selected_indices: int32")
               .Attr(kType)
               .Attr(kThreshold)
               .InferShape(NmsShape)
               .Doc("NonMaxSuppression with a threshold that is an input."));
  ops->Add(OpSpec("NonMaxSuppressionV3")
               .In(inputs + "iou_threshold: T_threshold, score_threshold: T_threshold")
               .Out("selected_indices: int32")
               .Attr(kType)
               .Attr(kThreshold)
               .InferShape(NmsShape)
               .Doc("NonMaxSuppression of boxes above a score threshold."));
  ops->Add(OpSpec("NonMaxSuppressionV4")
               .In(inputs + "iou_threshold: T_threshold, score_threshold: T_threshold")
               .Out("selected_indices: int32, valid_outputs: int32")
               .Attr(kType)
               .Attr(kThreshold)
               .Attr(kPad)
               .InferShape(NmsShape)
               .Doc("NonMaxSuppressionV3 that can pad its result and returns the number of valid "
                    "elements."));
  ops->Add(OpSpec("NonMaxSuppressionV5")
               .In(inputs + "iou_threshold: T, score_threshold: T, soft_nms_sigma: T")
               .Out("selected_indices: int32, selected_scores: T, valid_outputs: int32")
               .Attr(kType)
               .Attr(kPad)
               .InferShape(NmsShape)
               .Doc("Soft non-maximum suppression: reduces the scores of boxes that overlap better "
                    "ones."));
  ops->Add(OpSpec("NonMaxSuppressionWithOverlaps")
               .In("overlaps: float, scores: float, max_output_size: int32, "
                   "overlap_threshold: float, score_threshold: float")
               .Out("selected_indices: int32")
               .InferShape(NmsShape)
               .Doc("NonMaxSuppression of boxes with precomputed overlaps."));
  ops->Add(OpSpec("CombinedNonMaxSuppression")
               .In("boxes: float, scores: float, max_output_size_per_class: int32, "
                   "max_total_size: int32, iou_threshold: float, score_threshold: float")
               .Out("nmsed_boxes: float, nmsed_scores: float, nmsed_classes: float, "
                    "valid_detections: int32")
               .Attr("pad_per_class: bool = false")
               .Attr("clip_boxes: bool = true")
               .InferShape(CombinedNmsShape)
               .Doc("NonMaxSuppression for each class of each image, followed by the selection of "
                    "the best boxes of all classes."));
}

}  // namespace

void AddBoxOps(OpRegistry* ops) {
  AddSuppression(ops);
  ops->Add(OpSpec("DrawBoundingBoxes")
               .In("images: T, boxes: float")
               .Out("output: T")
               .Attr("T: {float, half} = DT_FLOAT")
               .InferShape(DrawShape)
               .Doc("Draws boxes into images, in a cycle of colors."));
  ops->Add(OpSpec("DrawBoundingBoxesV2")
               .In("images: T, boxes: float, colors: float")
               .Out("output: T")
               .Attr("T: {float, half} = DT_FLOAT")
               .InferShape(DrawShape)
               .Doc("DrawBoundingBoxes with given colors."));
}

// ---- builders

Output NonMaxSuppression(Output boxes, Output scores, Output max_output_size, float iou_threshold,
                         float score_threshold, absl::string_view name) {
  if (!boxes.valid()) return {};
  const NameScope scope(boxes.graph(), name.empty() ? "non_max_suppression" : name);
  const Output iou = Const(boxes.graph(), iou_threshold, "iou_threshold");
  const Output score = Const(boxes.graph(), score_threshold, "score_threshold");
  return AddOp("NonMaxSuppressionV3", {boxes, scores, max_output_size, iou, score});
}
Output DrawBoundingBoxes(Output images, Output boxes, absl::string_view name) {
  return AddOp("DrawBoundingBoxes", {images, boxes}, {}, name);
}

}  // namespace weir
