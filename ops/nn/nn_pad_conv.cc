#include "weir/ops/nn/nn_pad_conv.h"

#include <utility>

#include "weir/core/graph/scope.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/lib/window.h"
#include "weir/ops/nn/nn_internal.h"

// Convolutions of images that are resized and padded first, in frozen graphs for phones.
namespace weir {

namespace {

// Inputs: images, their new size (if `resizes`), paddings, and the filter.
absl::Status PadConvShape(ShapeContext& c, bool resizes) {
  WEIR_ASSIGN_OR_RETURN(const ConvAttributes a, ConvAttributes::Read(c.node()));
  if (a.strides.size() != 4) {
    return InvalidArgument("Operation requires the stride attribute to contain 4 values, but got: ",
                           a.strides.size());
  }
  const int paddings = resizes ? 2 : 1;
  WEIR_ASSIGN_OR_RETURN(Shape images, c.WithRank(0, 4));
  WEIR_ASSIGN_OR_RETURN(const Shape filter, c.WithRank(paddings + 1, 4));
  WEIR_RETURN_IF_ERROR(MergeDims(images.dim(3), filter.dim(2)).status());
  if (resizes) {
    WEIR_RETURN_IF_ERROR(c.WithRank(1, 1).status());
    const auto size = KnownInts(c, 1);
    for (int i = 0; i < 2; ++i) {
      const bool known = size.has_value() && size->size() == 2 && (*size)[i] >= 0;
      images.set_dim(1 + i, known ? (*size)[i] : Shape::kUnknown);
    }
  }
  WEIR_RETURN_IF_ERROR(c.WithRank(paddings, 2).status());
  const auto borders = KnownInts(c, paddings);
  for (int i = 0; i < 2; ++i) {
    int64_t size = Shape::kUnknown;
    if (borders.has_value() && borders->size() == 8) {
      const int64_t before = (*borders)[2 + 2 * i], after = (*borders)[3 + 2 * i];
      if (before < 0 || after < 0)
        return InvalidArgument("paddings must be non-negative: ", before, " ", after);
      WEIR_ASSIGN_OR_RETURN(size, AddDims(images.dim(1 + i), before));
      WEIR_ASSIGN_OR_RETURN(size, AddDims(size, after));
    }
    images.set_dim(1 + i, size);
  }
  WEIR_ASSIGN_OR_RETURN(const Shape out, ConvOutputShape(a, images, filter, filter.dim(3)));
  c.set_output(0, out);
  return absl::OkStatus();
}

OpSpec PadConvSpec(absl::string_view op, absl::string_view in, absl::string_view types) {
  OpSpec spec(op);
  spec.In(in).Out("output: T").Attr(types);
  return spec;
}

void AddConvAttrs(OpSpec& spec) {
  spec.Attr("mode: {'REFLECT', 'SYMMETRIC'}")
      .Attr("strides: list(int)")
      .Attr("padding: {'SAME', 'VALID'}");
}

}  // namespace

void AddPadConvOps(OpRegistry* ops) {
  OpSpec pad = PadConvSpec("FusedPadConv2D", "input: T, paddings: int32, filter: T",
                           "T: {half, bfloat16, float, double}");
  AddConvAttrs(pad);
  pad.InferShape([](ShapeContext& c) { return PadConvShape(c, false); })
      .Doc("Computes Conv2D of images whose borders are mirrored first.");
  ops->Add(std::move(pad));
  OpSpec resize =
      PadConvSpec("FusedResizeAndPadConv2D", "input: T, size: int32, paddings: int32, filter: T",
                  "T: {half, float, double}");
  resize.Attr("resize_align_corners: bool = false");
  AddConvAttrs(resize);
  resize.InferShape([](ShapeContext& c) { return PadConvShape(c, true); })
      .Doc(
          "Computes Conv2D of images that are resized bilinearly, and whose borders are then "
          "mirrored.");
  ops->Add(std::move(resize));
}

// ---- builders

Output FusedPadConv2D(Output input, Output paddings, Output filter, const std::string& mode,
                      const ConvOptions& o, absl::string_view name) {
  return AddOp("FusedPadConv2D", {input, paddings, filter},
               {{"mode", mode}, {"strides", o.strides}, {"padding", o.padding}}, name);
}

Output FusedResizeAndPadConv2D(Output input, Output size, Output paddings, Output filter,
                               const std::string& mode, bool resize_align_corners,
                               const ConvOptions& o, absl::string_view name) {
  return AddOp("FusedResizeAndPadConv2D", {input, size, paddings, filter},
               {{"resize_align_corners", resize_align_corners},
                {"mode", mode},
                {"strides", o.strides},
                {"padding", o.padding}},
               name);
}

}  // namespace weir
