#include "weir/onnx/window.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "weir/onnx/building.h"

namespace weir::onnx {

namespace {

// No model has larger windows, steps or paddings; sums of products of these do not overflow.
constexpr int64_t kLargest = int64_t{1} << 30;

absl::StatusOr<std::vector<int64_t>> Positive(NodeContext& c, const char* name, int rank) {
  const std::vector<int64_t> list = c.Ints(name, std::vector<int64_t>(rank, 1));
  const bool is_sound = static_cast<int>(list.size()) == rank &&
                        absl::c_all_of(list, [](int64_t n) { return n >= 1 && n <= kLargest; });
  if (is_sound) return list;
  return InvalidArgument(name, " must have ", rank, " positive numbers");
}

// The padding with which there are ceil(size / stride) windows; the odd one goes to the end for
// SAME_UPPER, and to the begin for SAME_LOWER.
absl::Status SetSamePads(NodeContext& c, bool is_upper, Window* w) {
  for (int i = 0; i < w->rank(); ++i) {
    const int64_t size = c.shape(0).dim(i + 2);
    if (size < 0)
      return Unimplemented("auto_pad needs the sizes of the input, whose shape is ",
                           c.shape(0).ToString(), " while the graph is built");
    const int64_t count = (size + w->strides[i] - 1) / w->strides[i];
    const int64_t total = std::max<int64_t>(0, (count - 1) * w->strides[i] + w->Extent(i) - size);
    w->pads_begin[i] = is_upper ? total / 2 : total - total / 2;
    w->pads_end[i] = total - w->pads_begin[i];
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Window> WindowOf(NodeContext& c, const std::vector<int64_t>& kernel) {
  Window w;
  const int rank = static_cast<int>(kernel.size());
  w.kernel = c.Ints("kernel_shape", kernel);
  if (w.kernel != kernel)
    return InvalidArgument("kernel_shape does not have the sizes of the filter, or of the input");
  if (absl::c_any_of(w.kernel, [](int64_t n) { return n < 1 || n > kLargest; }))
    return InvalidArgument("a size of the kernel is not positive");
  WEIR_ASSIGN_OR_RETURN(w.strides, Positive(c, "strides", rank));
  WEIR_ASSIGN_OR_RETURN(w.dilations, Positive(c, "dilations", rank));
  const std::vector<int64_t> pads = c.Ints("pads", std::vector<int64_t>(2 * rank, 0));
  if (static_cast<int>(pads.size()) != 2 * rank ||
      absl::c_any_of(pads, [](int64_t n) { return n < 0 || n > kLargest; }))
    return InvalidArgument("pads must have ", 2 * rank, " numbers that are not negative");
  w.pads_begin.assign(pads.begin(), pads.begin() + rank);
  w.pads_end.assign(pads.begin() + rank, pads.end());
  const std::string auto_pad = c.String("auto_pad", "NOTSET");
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    WEIR_RETURN_IF_ERROR(SetSamePads(c, auto_pad == "SAME_UPPER", &w));
  } else if (auto_pad == "VALID") {
    w.pads_begin = w.pads_end = std::vector<int64_t>(rank, 0);
  } else if (auto_pad != "NOTSET" && !auto_pad.empty()) {
    return InvalidArgument("auto_pad is '", auto_pad,
                           "'; expected NOTSET, SAME_UPPER, SAME_LOWER or VALID");
  }
  return w;
}

std::vector<int64_t> WithBatchAndChannels(const std::vector<int64_t>& spatial) {
  std::vector<int64_t> all = {1, 1};
  all.insert(all.end(), spatial.begin(), spatial.end());
  return all;
}

Output PadSpatial(const Output& x, const std::vector<int64_t>& begin,
                  const std::vector<int64_t>& end, const Output& value) {
  std::vector<int64_t> paddings = {0, 0, 0, 0};
  for (size_t i = 0; i < begin.size(); ++i) {
    paddings.push_back(begin[i]);
    paddings.push_back(end[i]);
  }
  if (absl::c_all_of(paddings, [](int64_t n) { return n == 0; }) || !x.valid()) return x;
  const Output rows =
      Const(x.graph(), Tensor::Of<int64_t>(Shape({static_cast<int64_t>(begin.size()) + 2, 2}),
                                           absl::Span<const int64_t>(paddings)));
  return PadV2(x, rows, value);
}

}  // namespace weir::onnx
