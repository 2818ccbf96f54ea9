#include "weir/ops/lib/window.h"

#include <algorithm>
#include <limits>

#include "absl/strings/match.h"
#include "weir/core/graph/graph.h"

namespace weir {
namespace {

constexpr int64_t kMaxExtent = std::numeric_limits<int32_t>::max();

}  // namespace

absl::StatusOr<DataLayout> ParseDataFormat(absl::string_view data_format) {
  if (data_format == "NHWC") return DataLayout{4, 0, 3, 1};
  if (data_format == "NCHW") return DataLayout{4, 0, 1, 2};
  if (data_format == "NDHWC") return DataLayout{5, 0, 4, 1};
  if (data_format == "NCDHW") return DataLayout{5, 0, 1, 2};
  return InvalidArgument("Invalid data format: ", data_format,
                         "; NHWC, NCHW, NDHWC or NCDHW is expected");
}

absl::Status Slide(absl::string_view padding, Window* w) {
  if (w->stride <= 0 || w->stride > kMaxExtent)
    return InvalidArgument("Stride must be > 0, but got ", w->stride);
  if (w->dilation <= 0 || w->dilation > kMaxExtent) {
    return InvalidArgument("Dilation rate must be >= 1, but got ", w->dilation);
  }
  w->output = -1;
  if (w->size > kMaxExtent || w->input > std::numeric_limits<int64_t>::max() / 4) {
    return InvalidArgument("a window of ", w->size, " over a dimension of ", w->input,
                           " is too big");
  }
  const int64_t extent = w->size < 0 ? -1 : (w->size - 1) * w->dilation + 1;
  if (padding == "SAME") {
    if (w->input < 0) return absl::OkStatus();
    w->output = (w->input + w->stride - 1) / w->stride;
    if (extent < 0) return absl::OkStatus();
    const int64_t pads = std::max<int64_t>(0, (w->output - 1) * w->stride + extent - w->input);
    w->pad_before = pads / 2;
    w->pad_after = pads - pads / 2;
    return absl::OkStatus();
  }
  if (w->input < 0 || extent < 0) return absl::OkStatus();
  const int64_t out = (w->input + w->pad_before + w->pad_after - extent + w->stride) / w->stride;
  if (out < 0) {
    return InvalidArgument("Computed output size would be negative: ", out,
                           " [input_size: ", w->input, ", effective_filter_size: ", extent,
                           ", stride: ", w->stride, "]");
  }
  w->output = out;
  return absl::OkStatus();
}

absl::Status SlideInside(absl::string_view padding, Window* w) {
  WEIR_RETURN_IF_ERROR(Slide(padding, w));
  if (padding == "SAME" || w->input < 0 || w->size < 0) return absl::OkStatus();
  const int64_t room = w->input + w->pad_before + w->pad_after;
  const int64_t extent = (w->size - 1) * w->dilation + 1;
  if (extent <= room) return absl::OkStatus();
  return InvalidArgument("Negative dimension size caused by subtracting ", extent, " from ", room);
}

Window WindowAlong(int dim, const std::vector<int64_t>& strides,
                   const std::vector<int64_t>& dilations,
                   const std::vector<int64_t>& explicit_paddings) {
  Window w;
  w.stride = strides[dim];
  if (!dilations.empty()) w.dilation = dilations[dim];
  if (!explicit_paddings.empty()) {
    w.pad_before = explicit_paddings[2 * dim];
    w.pad_after = explicit_paddings[2 * dim + 1];
  }
  return w;
}

absl::Status CheckWindowAttrs(const DataLayout& layout, absl::string_view padding,
                              const std::vector<int64_t>& strides,
                              const std::vector<int64_t>& dilations,
                              const std::vector<int64_t>& explicit_paddings) {
  const size_t rank = layout.rank;
  if (strides.size() != rank) {
    return InvalidArgument("the strides attribute must contain ", rank,
                           " values, but got: ", strides.size());
  }
  if (!dilations.empty() && dilations.size() != rank) {
    return InvalidArgument("the dilations attribute must contain ", rank,
                           " values, but got: ", dilations.size());
  }
  for (int64_t s : strides) {
    if (s <= 0 || s > kMaxExtent) return InvalidArgument("Stride must be > 0, but got ", s);
  }
  for (int64_t d : dilations) {
    if (d <= 0 || d > kMaxExtent) return InvalidArgument("Dilation rate must be >= 1, but got ", d);
  }
  if (strides[layout.batch] != 1 || strides[layout.channel] != 1) {
    return Unimplemented(
        "Current implementation does not yet support strides in the batch and depth dimensions.");
  }
  if (!dilations.empty() && (dilations[layout.batch] != 1 || dilations[layout.channel] != 1)) {
    return Unimplemented(
        "Current implementation does not yet support dilations in the batch and depth dimensions.");
  }
  if (padding != "EXPLICIT") {
    if (explicit_paddings.empty()) return absl::OkStatus();
    return InvalidArgument(
        "explicit_paddings attribute must be empty if the padding attribute is not EXPLICIT");
  }
  if (explicit_paddings.size() != 2 * rank) {
    return InvalidArgument("explicit_paddings attribute must contain ", 2 * rank,
                           " values, but got: ", explicit_paddings.size());
  }
  for (size_t i = 0; i < 2 * rank; ++i) {
    const int64_t pad = explicit_paddings[i];
    if (pad < 0 || pad > kMaxExtent) {
      return InvalidArgument("All elements of explicit_paddings must be nonnegative, but got ",
                             pad);
    }
    const int dim = static_cast<int>(i / 2);
    if (pad != 0 && (dim == layout.batch || dim == layout.channel)) {
      return InvalidArgument(
          "Nonzero explicit padding in the batch or depth dimensions is not supported");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<ConvAttributes> ConvAttributes::Read(const Node& node) {
  ConvAttributes a;
  a.strides = node.attr_or<std::vector<int64_t>>("strides", {});
  const char* const channels_last = a.strides.size() == 5 ? "NDHWC" : "NHWC";
  WEIR_ASSIGN_OR_RETURN(a.layout,
                        ParseDataFormat(node.attr_or<std::string>("data_format", channels_last)));
  a.depthwise = absl::StrContains(node.op_name(), "Depthwise");
  a.padding = node.attr<std::string>("padding");
  a.dilations = node.attr_or<std::vector<int64_t>>("dilations", {});
  a.explicit_paddings = node.attr_or<std::vector<int64_t>>("explicit_paddings", {});
  WEIR_RETURN_IF_ERROR(
      CheckWindowAttrs(a.layout, a.padding, a.strides, a.dilations, a.explicit_paddings));
  return a;
}

}  // namespace weir
