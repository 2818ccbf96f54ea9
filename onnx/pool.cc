#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "weir/onnx/building.h"
#include "weir/onnx/importers.h"
#include "weir/onnx/window.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"

// Pools, with channels first. TensorFlow's pools run where they compute the same: floats in one or
// two dimensions, without dilation. Others combine strided slices of the padded input, one for each
// place in the window: slower, but of any type and rank.
namespace weir::onnx {

namespace {

constexpr int64_t kMaxSlices = 1024;

// How a node's windows slide: `extra` is the padding at the end that ceil_mode needs, whose
// elements never count.
struct Pool {
  Window window;
  std::vector<int64_t> extra;
  std::vector<int64_t> PadsEnd() const {
    std::vector<int64_t> sum = window.pads_end;
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += extra[i];
    return sum;
  }
  bool IsPadded() const {
    const auto is_zero = [](int64_t n) { return n == 0; };
    return !absl::c_all_of(window.pads_begin, is_zero) || !absl::c_all_of(PadsEnd(), is_zero);
  }
};

// The padding with which the last window, which begins inside the input or its padding, is whole.
absl::Status SetExtra(NodeContext& c, Pool* pool) {
  const Window& w = pool->window;
  for (int i = 0; i < w.rank(); ++i) {
    const int64_t size = c.shape(0).dim(i + 2);
    if (size < 0)
      return Unimplemented("ceil_mode needs the sizes of the input, whose shape is ",
                           c.shape(0).ToString(), " while the graph is built");
    const int64_t room = size + w.pads_begin[i] + w.pads_end[i];
    if (room < w.Extent(i)) continue;  // the shape function says so
    int64_t steps = (room - w.Extent(i) + w.strides[i] - 1) / w.strides[i];
    if (steps * w.strides[i] >= size + w.pads_begin[i]) --steps;
    pool->extra[i] = std::max<int64_t>(0, steps * w.strides[i] + w.Extent(i) - room);
  }
  return absl::OkStatus();
}

absl::StatusOr<Pool> PoolOf(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  if (rank < 3) return InvalidArgument("the input has rank ", rank, "; expected 3 or more");
  const std::vector<int64_t> kernel = c.Ints("kernel_shape");
  if (static_cast<int>(kernel.size()) != rank - 2)
    return InvalidArgument("kernel_shape must have ", rank - 2, " numbers");
  Pool pool;
  WEIR_ASSIGN_OR_RETURN(pool.window, WindowOf(c, kernel));
  pool.extra.assign(kernel.size(), 0);
  if (c.Int("ceil_mode", 0) != 0) WEIR_RETURN_IF_ERROR(SetExtra(c, &pool));
  return pool;
}

bool HasDilation(const Window& w) {
  return absl::c_any_of(w.dilations, [](int64_t n) { return n != 1; });
}

// Whether TensorFlow's pools of two dimensions compute the node.
bool IsPlainPool(const Output& x, const Window& w) {
  return IsFloating(x.dtype()) && w.rank() <= 2 && !HasDilation(w);
}

// Calls make(input of rank 4, options without padding), for one or two spatial dimensions.
Output AsImages(const Output& x, const Window& w,
                const std::function<Output(const Output&, const PoolOptions&)>& make) {
  PoolOptions options{.ksize = WithBatchAndChannels(w.kernel),
                      .strides = WithBatchAndChannels(w.strides),
                      .padding = "VALID",
                      .data_format = "NCHW"};
  if (w.rank() == 2) return make(x, options);
  options.ksize.insert(options.ksize.begin() + 2, 1);
  options.strides.insert(options.strides.begin() + 2, 1);
  return Squeeze(make(ExpandDims(x, 2), options), {2});
}

// ---- slices

// Calls f(slice of each tensor) for each place in the window, in row-major order.
absl::Status ForEachPlace(const Outputs& padded, const Window& w,
                          const std::function<void(const Outputs&)>& f) {
  int64_t count = 1;
  for (const int64_t size : w.kernel) {
    count *= size;
    if (count > kMaxSlices)
      return Unimplemented("windows of more than ", kMaxSlices,
                           " elements are supported for floats in 1 or 2 dimensions, without "
                           "dilations, only");
  }
  std::vector<int64_t> place(w.rank(), 0);
  for (int64_t n = 0; n < count; ++n) {
    std::vector<Index> indices = {Index::All(), Index::All()};
    for (int i = 0; i < w.rank(); ++i) {
      const int64_t begin = place[i] * w.dilations[i], rest = w.Extent(i) - 1 - begin;
      indices.push_back(Index::Range(
          begin, rest == 0 ? std::optional<int64_t>() : std::optional(-rest), w.strides[i]));
    }
    Outputs slices;
    for (const Output& tensor : padded) slices.push_back(StridedSlice(tensor, indices));
    f(slices);
    for (int i = w.rank() - 1; i >= 0 && ++place[i] == w.kernel[i]; --i) place[i] = 0;
  }
  return absl::OkStatus();
}

absl::StatusOr<Output> SumOfSlices(const Output& padded, const Window& w) {
  Output sum;
  WEIR_RETURN_IF_ERROR(ForEachPlace({padded}, w, [&](const Outputs& slices) {
    sum = sum.valid() ? Add(sum, slices[0]) : slices[0];
  }));
  return sum;
}

// ---- MaxPool

Output LowestLike(const Output& x) {
  if (IsFloating(x.dtype())) return ScalarLike(x, -std::numeric_limits<double>::infinity());
  const bool is_signed = x.dtype() == DT_INT8;
  return ScalarLike(x, is_signed ? -128 : 0);
}

// The position of each element in the whole tensor, as ONNX counts: within an image row by row, or
// (storage_order 1) column by column.
Output Positions(const Output& x, int rank, bool by_columns) {
  const Output zero = Const<int64_t>(x.graph(), 0), one = Const<int64_t>(x.graph(), 1);
  if (!by_columns) return Reshape(Range(zero, weir::Size(x, DT_INT64), one), ShapeOf(x));
  Output position = zero, factor = one;
  std::vector<int> order;
  for (int i = 2; i < rank; ++i) order.push_back(i);
  order.push_back(1);
  order.push_back(0);
  for (const int axis : order) {
    const Output along = AlongAxis(Range(zero, DimOf(x, axis), one), axis, rank);
    position = Add(position, Multiply(along, factor));
    factor = Multiply(factor, DimOf(x, axis));
  }
  return position;
}

absl::Status ImportMaxPool(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Pool pool, PoolOf(c));
  const bool by_columns = c.Int("storage_order", 0) != 0;
  const Output x = c.in(0);
  const Output padded = PadSpatial(x, pool.window.pads_begin, pool.PadsEnd(), LowestLike(x));
  if (IsPlainPool(x, pool.window) && !c.wants(1)) {
    return c.Return(AsImages(padded, pool.window, [](const Output& images, const PoolOptions& o) {
      return MaxPool(images, o);
    }));
  }
  Outputs tensors = {padded};
  if (c.wants(1)) {
    const Output positions = Positions(x, pool.window.rank() + 2, by_columns);
    tensors.push_back(PadSpatial(positions, pool.window.pads_begin, pool.PadsEnd(),
                                 Const<int64_t>(c.graph(), -1)));
  }
  Output best, position;
  WEIR_RETURN_IF_ERROR(ForEachPlace(tensors, pool.window, [&](const Outputs& slices) {
    if (c.wants(1) && best.valid())
      position = SelectV2(Greater(slices[0], best), slices[1], position);
    if (c.wants(1) && !best.valid()) position = slices[1];
    best = best.valid() ? Maximum(best, slices[0]) : slices[0];
  }));
  return c.Return({best, position});
}

// ---- AveragePool and LpPool

// The mean over each window of the padded tensor, padding included.
absl::StatusOr<Output> MeanOfWindows(const Output& padded, const Window& w) {
  if (IsPlainPool(padded, w)) {
    return AsImages(padded, w,
                    [](const Output& images, const PoolOptions& o) { return AvgPool(images, o); });
  }
  int64_t count = 1;
  for (const int64_t size : w.kernel) count *= size;
  WEIR_ASSIGN_OR_RETURN(const Output sum, SumOfSlices(padded, w));
  return RealDiv(sum, ScalarLike(sum, static_cast<double>(count)));
}

// The part of each window that counts, as a tensor that broadcasts over batch and channels.
absl::StatusOr<Output> CountedPart(const Output& x, const Pool& pool, bool counts_padding) {
  const Window& w = pool.window;
  Outputs sizes = {Const<int64_t>(x.graph(), 1), Const<int64_t>(x.graph(), 1)};
  for (int i = 0; i < w.rank(); ++i) sizes.push_back(DimOf(x, i + 2));
  const Output ones = Fill(Stack(sizes), ScalarLike(x, 1));
  const Output padding = ScalarLike(x, counts_padding ? 1 : 0);
  const Output inner = PadSpatial(ones, w.pads_begin, w.pads_end, padding);
  const std::vector<int64_t> none(w.rank(), 0);
  return MeanOfWindows(PadSpatial(inner, none, pool.extra, ScalarLike(x, 0)), w);
}

absl::Status ImportAveragePool(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Pool pool, PoolOf(c));
  const bool counts_padding = c.Int("count_include_pad", 0) != 0;
  const Output x = c.in(0);
  const Output padded = PadSpatial(x, pool.window.pads_begin, pool.PadsEnd(), ScalarLike(x, 0));
  WEIR_ASSIGN_OR_RETURN(const Output mean, MeanOfWindows(padded, pool.window));
  const bool has_extra = absl::c_any_of(pool.extra, [](int64_t n) { return n > 0; });
  if (!pool.IsPadded() || (counts_padding && !has_extra)) return c.Return(mean);
  WEIR_ASSIGN_OR_RETURN(const Output part, CountedPart(x, pool, counts_padding));
  return c.Return(RealDiv(mean, part));
}

// (sum of |x|^p)^(1/p), by `sum`.
template <class SumOf>
absl::StatusOr<Output> LpOf(NodeContext& c, const SumOf& sum) {
  const int64_t p = c.Int("p", 2);
  if (p < 1) return InvalidArgument("p is ", p, "; expected a positive number");
  const Output x = c.in(0), exponent = ScalarLike(x, static_cast<double>(p));
  const Output powers = p == 1 ? Abs(x) : p == 2 ? Square(x) : Pow(Abs(x), exponent);
  WEIR_ASSIGN_OR_RETURN(const Output total, sum(powers));
  if (p == 1) return total;
  return p == 2 ? Sqrt(total) : Pow(total, ScalarLike(x, 1.0 / static_cast<double>(p)));
}

absl::Status ImportLpPool(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Pool pool, PoolOf(c));
  WEIR_ASSIGN_OR_RETURN(const Output y, LpOf(c, [&](const Output& powers) {
                          return SumOfSlices(PadSpatial(powers, pool.window.pads_begin,
                                                        pool.PadsEnd(), ScalarLike(powers, 0)),
                                             pool.window);
                        }));
  return c.Return(y);
}

// ---- whole images

absl::StatusOr<weir::Ints> SpatialAxes(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  std::vector<int64_t> axes;
  for (int i = 2; i < rank; ++i) axes.push_back(i);
  return weir::Ints(axes);
}

absl::Status ImportGlobalAveragePool(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const weir::Ints axes, SpatialAxes(c));
  return c.Return(ReduceMean(c.in(0), axes, true));
}

absl::Status ImportGlobalMaxPool(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const weir::Ints axes, SpatialAxes(c));
  return c.Return(ReduceMax(c.in(0), axes, true));
}

absl::Status ImportGlobalLpPool(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const weir::Ints axes, SpatialAxes(c));
  WEIR_ASSIGN_OR_RETURN(const Output y,
                        LpOf(c, [&](const Output& powers) -> absl::StatusOr<Output> {
                          return ReduceSum(powers, axes, true);
                        }));
  return c.Return(y);
}

// ---- MaxUnpool

// Puts each element at its position in a larger tensor of zeros. The positions are those in a
// tensor of the size that the windows say; a larger shape that is given adds zeros at the ends.
absl::Status ImportMaxUnpool(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Pool pool, PoolOf(c));
  const Window& w = pool.window;
  const Output x = c.in(0);
  Outputs sizes = {DimOf(x, 0), DimOf(x, 1)};
  for (int i = 0; i < w.rank(); ++i) {
    const Output steps = Subtract(DimOf(x, i + 2), Const<int64_t>(c.graph(), 1));
    const int64_t rest = w.kernel[i] - w.pads_begin[i] - w.pads_end[i];
    sizes.push_back(Add(Multiply(steps, Const<int64_t>(c.graph(), w.strides[i])),
                        Const<int64_t>(c.graph(), rest)));
  }
  const Output shape = Stack(sizes);
  const Output flat =
      ScatterNd(Reshape(c.in(1), {-1, 1}), Reshape(x, {-1}), ExpandDims(ReduceProd(shape, 0), 0));
  const Output y = WithRank(Reshape(flat, shape), w.rank() + 2);
  if (!c.has(2)) return c.Return(y);
  const Output more = Subtract(Cast(c.in(2), DT_INT64), shape);
  return c.Return(WithRank(Pad(y, Stack({ZerosLike(more), more}, 1)), w.rank() + 2));
}

constexpr Importer kImporters[] = {
    {"AveragePool", 7, 1, 1, ImportAveragePool},
    {"GlobalAveragePool", 7, 1, 1, ImportGlobalAveragePool},
    {"GlobalLpPool", 7, 1, 1, ImportGlobalLpPool},
    {"GlobalMaxPool", 7, 1, 1, ImportGlobalMaxPool},
    {"LpPool", 7, 1, 1, ImportLpPool},
    {"MaxPool", 7, 1, 1, ImportMaxPool},
    {"MaxUnpool", 9, 2, 3, ImportMaxUnpool},
};

}  // namespace

absl::Span<const Importer> PoolImporters() { return kImporters; }

}  // namespace weir::onnx
