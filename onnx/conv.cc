#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "weir/onnx/building.h"
#include "weir/onnx/importers.h"
#include "weir/onnx/window.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"

// Convolutions over one, two or three dimensions, with channels first. A filter of ONNX is
// [out, in, spatial...], and one of TensorFlow is [spatial..., in, out].
namespace weir::onnx {

namespace {

// A convolution over one dimension is one over two, of which the first has size 1.
void AddDimension(Window* w) {
  for (std::vector<int64_t>* list : {&w->kernel, &w->strides, &w->dilations})
    list->insert(list->begin(), 1);
  for (std::vector<int64_t>* list : {&w->pads_begin, &w->pads_end}) list->insert(list->begin(), 0);
}

Output MoveChannelsLast(const Output& filter) {
  std::vector<int64_t> perm(filter.shape().rank() - 2);
  std::iota(perm.begin(), perm.end(), 2);
  perm.push_back(1);
  perm.push_back(0);
  return Transpose(filter, perm);
}

ConvOptions OptionsOf(const Window& w) {
  ConvOptions options;
  options.strides = WithBatchAndChannels(w.strides);
  options.dilations = WithBatchAndChannels(w.dilations);
  options.padding = "VALID";
  options.data_format = w.rank() == 2 ? "NCHW" : "NCDHW";
  const auto is_zero = [](int64_t n) { return n == 0; };
  if (w.rank() != 2 ||
      (absl::c_all_of(w.pads_begin, is_zero) && absl::c_all_of(w.pads_end, is_zero)))
    return options;
  options.padding = "EXPLICIT";
  options.explicit_paddings = {0, 0, 0, 0};
  for (int i = 0; i < 2; ++i)
    options.explicit_paddings.insert(options.explicit_paddings.end(),
                                     {w.pads_begin[i], w.pads_end[i]});
  return options;
}

// A convolution in which each channel has filters of its own.
Output DepthwiseConv(const Output& x, const Output& filter, const Window& w) {
  const int64_t channels = x.dim(1), outs = filter.dim(0);
  const Output last = Transpose(filter, {2, 3, 1, 0});  // [h, w, 1, outs]
  const Output depthwise = Reshape(last, {w.kernel[0], w.kernel[1], channels, outs / channels});
  return DepthwiseConv2dNative(x, depthwise, OptionsOf(w));
}

// Convolves groups of channels apart, and joins the results.
Output GroupedConv3D(const Output& x, const Output& filter, const Window& w, int64_t groups) {
  const Outputs xs = Split(x, groups, 1), filters = Split(filter, groups, 0);
  Outputs parts;
  for (size_t i = 0; i < xs.size() && i < filters.size(); ++i)
    parts.push_back(Conv3D(xs[i], MoveChannelsLast(filters[i]), OptionsOf(w)));
  return Concat(parts, 1);
}

Output AddBias(const Output& y, const Output& bias) {
  return y.shape().rank() == 4 ? BiasAdd(y, bias, "NCHW")
                               : Add(y, AlongAxis(bias, 1, y.shape().rank()));
}

// Each group becomes nodes of its own. A model says how many there are, in a few bytes.
absl::Status CheckNumGroups(int64_t groups) {
  constexpr int64_t kMaxGroups = 4096;
  if (groups <= kMaxGroups) return absl::OkStatus();
  return Unimplemented(groups, " groups; the limit is ", kMaxGroups);
}

// What Conv and ConvTranspose have in common: the filter's sizes are known, and fit the groups.
absl::StatusOr<std::vector<int64_t>> KernelOf(NodeContext& c, int64_t groups) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  const Shape& filter = c.shape(1);
  if (rank < 3 || filter.rank() != rank)
    return InvalidArgument(
        "expected an input and a filter of the same rank of at least 3; they are ",
        c.shape(0).ToString(), " and ", filter.ToString());
  if (rank > 5) return Unimplemented("convolutions over more than 3 dimensions are not supported");
  if (!filter.IsFullyDefined())
    return Unimplemented("the filter's shape ", filter.ToString(),
                         " is not known while the graph is built");
  if (groups < 1 || filter.dim(0) % groups != 0 || filter.num_elements() == 0)
    return InvalidArgument("a filter of the shape ", filter.ToString(), " cannot have ", groups,
                           " groups");
  return std::vector<int64_t>(filter.dims().begin() + 2, filter.dims().end());
}

absl::Status ImportConv(NodeContext& c) {
  const int64_t groups = c.Int("group", 1);
  WEIR_ASSIGN_OR_RETURN(const std::vector<int64_t> kernel, KernelOf(c, groups));
  WEIR_ASSIGN_OR_RETURN(Window w, WindowOf(c, kernel));
  const int64_t channels = c.shape(0).dim(1), in = c.shape(1).dim(1);
  if (channels >= 0 && channels != in * groups)
    return InvalidArgument("the input has ", channels, " channels; the filter and ", groups,
                           " groups expect ", in * groups);
  const bool is_1d = w.rank() == 1;
  const Output x = is_1d ? ExpandDims(c.in(0), 2) : c.in(0);
  const Output filter = is_1d ? ExpandDims(c.in(1), 2) : c.in(1);
  if (is_1d) AddDimension(&w);
  Output y;
  if (w.rank() == 3) {
    WEIR_RETURN_IF_ERROR(CheckNumGroups(groups));
    const Output padded = PadSpatial(x, w.pads_begin, w.pads_end, ScalarLike(x, 0));
    y = groups == 1 ? Conv3D(padded, MoveChannelsLast(filter), OptionsOf(w))
                    : GroupedConv3D(padded, filter, w, groups);
  } else if (groups > 1 && in == 1 && channels == groups) {
    y = DepthwiseConv(x, filter, w);
  } else {
    y = Conv2D(x, MoveChannelsLast(filter), OptionsOf(w));
  }
  if (c.has(2)) y = AddBias(y, c.in(2));
  return c.Return(is_1d ? Squeeze(y, {2}) : y);
}

// ---- ConvTranspose

// The padding that auto_pad or output_shape asks for, of a result of the size that has none.
absl::Status SetTransposedPads(NodeContext& c, const std::vector<int64_t>& output_padding,
                               Window* w) {
  const std::string auto_pad = c.String("auto_pad", "NOTSET");
  std::vector<int64_t> sizes = c.Ints("output_shape");
  if (static_cast<int>(sizes.size()) > w->rank())
    sizes.erase(sizes.begin(), sizes.end() - w->rank());
  const bool is_same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (sizes.empty() && !is_same) return absl::OkStatus();
  if (!sizes.empty() && static_cast<int>(sizes.size()) != w->rank())
    return InvalidArgument("output_shape must have ", w->rank(), " numbers");
  for (int i = 0; i < w->rank(); ++i) {
    const int64_t in = c.shape(0).dim(i + 2);
    if (in < 0) return Unimplemented("output_shape and auto_pad need the sizes of the input");
    const int64_t size = sizes.empty() ? in * w->strides[i] : sizes[i];
    if (size < 0 || size > std::numeric_limits<int32_t>::max())
      return InvalidArgument("output_shape has the number ", size);
    const int64_t total = w->strides[i] * (in - 1) + output_padding[i] + w->Extent(i) - size;
    const int64_t half = total >= 0 ? total / 2 : -((1 - total) / 2);  // rounded down
    w->pads_begin[i] = auto_pad == "SAME_UPPER" ? half : total - half;
    w->pads_end[i] = total - w->pads_begin[i];
  }
  return absl::OkStatus();
}

// Removes `begin` and `end` elements of the spatial dimensions, or adds zeros where negative.
Output CropSpatial(const Output& x, const std::vector<int64_t>& begin,
                   const std::vector<int64_t>& end) {
  std::vector<Index> kept = {Index::All(), Index::All()};
  std::vector<int64_t> before, after;
  for (size_t i = 0; i < begin.size(); ++i) {
    before.push_back(std::max<int64_t>(0, -begin[i]));
    after.push_back(std::max<int64_t>(0, -end[i]));
    const int64_t last = std::max<int64_t>(0, end[i]);
    kept.push_back(Index::Range(std::max<int64_t>(0, begin[i]),
                                last == 0 ? std::optional<int64_t>() : std::optional(-last)));
  }
  const bool crops = absl::c_any_of(begin, [](int64_t n) { return n > 0; }) ||
                     absl::c_any_of(end, [](int64_t n) { return n > 0; });
  const Output padded = PadSpatial(x, before, after, ScalarLike(x, 0));
  return crops ? StridedSlice(padded, kept) : padded;
}

// The transposed convolution of one group without padding, as the gradient of a convolution.
Output TransposedConv(const Output& x, const Output& filter, const Window& w) {
  Outputs sizes = {DimOf(x, 0), Const<int64_t>(x.graph(), filter.dim(1))};
  for (int i = 0; i < w.rank(); ++i) {
    const Output steps = Subtract(DimOf(x, i + 2), Const<int64_t>(x.graph(), 1));
    const Output reach = Multiply(steps, Const<int64_t>(x.graph(), w.strides[i]));
    sizes.push_back(Add(reach, Const<int64_t>(x.graph(), w.Extent(i))));
  }
  const Output shape = Cast(Stack(sizes), DT_INT32), last = MoveChannelsLast(filter);
  const ConvOptions options = OptionsOf(w);
  if (w.rank() == 2) return Conv2DBackpropInput(shape, last, x, options);
  return AddOp("Conv3DBackpropInputV2", {shape, last, x},
               {{"strides", options.strides},
                {"padding", options.padding},
                {"data_format", options.data_format},
                {"dilations", options.dilations}});
}

absl::Status ImportConvTranspose(NodeContext& c) {
  const int64_t groups = c.Int("group", 1);
  WEIR_RETURN_IF_ERROR(CheckNumGroups(groups));
  WEIR_ASSIGN_OR_RETURN(const std::vector<int64_t> kernel, KernelOf(c, groups));
  WEIR_ASSIGN_OR_RETURN(Window w, WindowOf(c, kernel));
  std::vector<int64_t> extra = c.Ints("output_padding", std::vector<int64_t>(w.rank(), 0));
  if (static_cast<int>(extra.size()) != w.rank() ||
      absl::c_any_of(extra, [](int64_t n) { return n < 0 || n > (1 << 30); }))
    return InvalidArgument("output_padding must have ", w.rank(), " numbers");
  WEIR_RETURN_IF_ERROR(SetTransposedPads(c, extra, &w));
  const bool is_1d = w.rank() == 1;
  if (is_1d) {
    AddDimension(&w);
    extra.insert(extra.begin(), 0);
  }
  std::vector<int64_t> end = std::exchange(w.pads_end, std::vector<int64_t>(w.rank(), 0));
  const std::vector<int64_t> begin = std::exchange(w.pads_begin, std::vector<int64_t>(w.rank(), 0));
  for (int i = 0; i < w.rank(); ++i) end[i] -= extra[i];
  const Output x = is_1d ? ExpandDims(c.in(0), 2) : c.in(0);
  const Output filter = is_1d ? ExpandDims(c.in(1), 2) : c.in(1);
  Outputs parts;
  const Outputs xs = groups == 1 ? Outputs{x} : Split(x, groups, 1);
  const Outputs filters = groups == 1 ? Outputs{filter} : Split(filter, groups, 0);
  for (size_t i = 0; i < xs.size() && i < filters.size(); ++i)
    parts.push_back(TransposedConv(xs[i], filters[i], w));
  Output y = CropSpatial(groups == 1 ? parts[0] : Concat(parts, 1), begin, end);
  if (c.has(2)) y = AddBias(y, c.in(2));
  return c.Return(is_1d ? Squeeze(y, {2}) : y);
}

constexpr Importer kImporters[] = {
    {"Conv", 7, 2, 3, ImportConv},
    {"ConvTranspose", 7, 2, 3, ImportConvTranspose},
};

}  // namespace

absl::Span<const Importer> ConvImporters() { return kImporters; }

}  // namespace weir::onnx
