#include "weir/kernels/nn/pool.h"

#include <algorithm>

#include "absl/strings/str_join.h"

namespace weir {
namespace {

constexpr int64_t kMaxTaps = int64_t{1}
                             << 24;  // positions within a window are counted in float lanes

absl::StatusOr<std::vector<int64_t>> ReadSizes(const Tensor& t, int rank, absl::string_view name) {
  if (t.num_elements() != rank) {
    return InvalidArgument("Sliding window ", name, " field must specify ", rank, " dimensions");
  }
  std::vector<int64_t> out;
  for (int i = 0; i < rank; ++i) out.push_back(t.IntAt(i));
  return out;
}

absl::StatusOr<std::vector<int64_t>> NarrowList(const Node& node, absl::string_view name) {
  const auto list = node.attr_or<std::vector<int64_t>>(name, {});
  for (const int64_t value : list) WEIR_RETURN_IF_ERROR(CheckInt32Attr(name, value));
  return list;
}

absl::Status CheckSizes(const PoolAttributes& a, const std::vector<int64_t>& ksize,
                        const std::vector<int64_t>& strides) {
  const size_t rank = a.layout.rank;
  if (ksize.size() != rank)
    return InvalidArgument("Sliding window ksize field must specify ", rank, " dimensions");
  if (strides.size() != rank)
    return InvalidArgument("Sliding window stride field must specify ", rank, " dimensions");
  for (int64_t k : ksize) {
    if (k <= 0) {
      return InvalidArgument(
          "Sliding window ksize must be positive. The specified or inferred ksize is: ",
          absl::StrJoin(ksize, ","));
    }
  }
  if (ksize[a.layout.batch] != 1 || strides[a.layout.batch] != 1) {
    return Unimplemented("Pooling is not yet supported on the batch dimension.");
  }
  for (int64_t s : strides) {
    if (s <= 0)
      return InvalidArgument("Sliding window strides must be positive, not ",
                             absl::StrJoin(strides, ","));
  }
  return absl::OkStatus();
}

absl::Status SlideAlong(const PoolAttributes& a, const std::vector<int64_t>& ksize,
                        const std::vector<int64_t>& strides, const Shape& input, PoolShape* p) {
  double taps = 1;
  const int spatial = a.layout.num_spatial();
  for (int i = 0; i < spatial; ++i) {
    const int dim = a.layout.spatial + i, at = 3 - spatial + i;
    Window w = WindowAlong(dim, strides, {}, a.explicit_paddings);
    w.input = input.dim(dim);
    w.size = ksize[dim];
    WEIR_RETURN_IF_ERROR(Slide(a.padding, &w));
    p->in[at] = w.input;
    p->window[at] = w.size;
    p->stride[at] = w.stride;
    p->pad_before[at] = w.pad_before;
    p->out[at] = w.output;
    p->output.set_dim(dim, w.output);
    taps *= static_cast<double>(w.size);
  }
  if (taps > kMaxTaps) return InvalidArgument("a window of ", taps, " elements is too big");
  return absl::OkStatus();
}

// Non-overlapping windows of one pixel and several channels.
absl::Status PoolChannels(const PoolAttributes& a, const std::vector<int64_t>& ksize,
                          const std::vector<int64_t>& strides, const Shape& input, PoolShape* p) {
  const int64_t window = ksize[a.layout.channel], depth = input.dim(a.layout.channel);
  for (int i = 0; i < a.layout.num_spatial(); ++i) {
    if (ksize[a.layout.spatial + i] != 1 || strides[a.layout.spatial + i] != 1) {
      return Unimplemented(
          "MaxPooling supports exactly one of pooling across depth or pooling across "
          "width/height.");
    }
  }
  if (a.layout.channels_first()) {
    return Unimplemented("Depthwise max pooling is only supported with the channels last");
  }
  if (window != strides[a.layout.channel]) {
    return Unimplemented(
        "Depthwise max pooling requires the depth window to equal the depth stride");
  }
  if (depth % window != 0) {
    return Unimplemented(
        "Depthwise max pooling requires the depth window to evenly divide the input depth");
  }
  if (window > kMaxTaps) return InvalidArgument("a window of ", window, " elements is too big");
  p->batch = 1;
  for (int i = 0; i + 1 < input.rank(); ++i) p->batch *= input.dim(i);
  p->channels = 1;
  p->in[2] = depth;
  p->window[2] = p->stride[2] = window;
  p->out[2] = depth / window;
  p->output.set_dim(a.layout.channel, depth / window);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PoolAttributes> PoolAttributes::Read(const Node& node) {
  PoolAttributes a;
  WEIR_ASSIGN_OR_RETURN(a.layout,
                        ParseDataFormat(node.attr_or<std::string>("data_format", "NHWC")));
  a.padding = node.attr<std::string>("padding");
  a.explicit_paddings = node.attr_or<std::vector<int64_t>>("explicit_paddings", {});
  const std::pair<int, int> sizes = node.InputRange("ksize");
  if (sizes.first != sizes.second) {
    a.sizes_input = sizes.first;
  } else {
    WEIR_ASSIGN_OR_RETURN(a.ksize, NarrowList(node, "ksize"));
    WEIR_ASSIGN_OR_RETURN(a.strides, NarrowList(node, "strides"));
    WEIR_RETURN_IF_ERROR(CheckSizes(a, a.ksize, a.strides));
  }
  // The checks of explicit padding are those of convolutions.
  WEIR_RETURN_IF_ERROR(CheckWindowAttrs(a.layout, a.padding, std::vector<int64_t>(a.layout.rank, 1),
                                        {}, a.explicit_paddings));
  return a;
}

bool PoolShape::tiles() const {
  for (int i = 0; i < 3; ++i) {
    if (window[i] != stride[i] || pad_before[i] != 0 || in[i] != out[i] * stride[i]) return false;
  }
  return true;
}

absl::StatusOr<PoolShape> PoolShape::Make(const KernelContext& ctx, const PoolAttributes& a,
                                          const Shape& input) {
  if (input.rank() != a.layout.rank) {
    return InvalidArgument("tensor_in must be ", a.layout.rank, "-dimensional, not ",
                           input.ToString());
  }
  std::vector<int64_t> ksize = a.ksize, strides = a.strides;
  if (a.sizes_input >= 0) {
    WEIR_ASSIGN_OR_RETURN(ksize, ReadSizes(ctx.input(a.sizes_input), a.layout.rank, "ksize"));
    WEIR_ASSIGN_OR_RETURN(strides,
                          ReadSizes(ctx.input(a.sizes_input + 1), a.layout.rank, "stride"));
    WEIR_RETURN_IF_ERROR(CheckSizes(a, ksize, strides));
  }
  PoolShape p;
  p.output = input;
  if (ksize[a.layout.channel] != 1) {
    WEIR_RETURN_IF_ERROR(PoolChannels(a, ksize, strides, input, &p));
    return p;
  }
  if (strides[a.layout.channel] != 1) {
    return Unimplemented(
        "Pooling across channels with a stride but without a window is not supported");
  }
  p.batch = input.dim(a.layout.batch);
  p.channels = input.dim(a.layout.channel);
  p.channels_first = a.layout.channels_first();
  WEIR_RETURN_IF_ERROR(SlideAlong(a, ksize, strides, input, &p));
  WEIR_RETURN_IF_ERROR(Shape::Make(p.output.dims()).status());
  return p;
}

}  // namespace weir
