#include <algorithm>
#include <cmath>
#include <vector>

#include "weir/kernels/image/image.h"
#include "weir/kernels/image/resample.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/nn/pool.h"
#include "weir/kernels/quantize/quantize.h"
#include "weir/kernels/quantize/quantized_range.h"

// Pooling and resizing of quantized images: computes on the integers; the range is unchanged.
namespace weir {

namespace {

// ---- pooling

template <class T>
struct Maximum {
  int64_t value = kLowest<T>;
  void Take(int64_t x) { value = std::max(value, x); }
  int64_t Result() const { return value; }
};

// The mean, rounded to the nearest integer, ties to even.
template <class T>
struct Mean {
  int64_t sum = 0, count = 0;
  void Take(int64_t x) {
    sum += x;
    ++count;
  }
  int64_t Result() const {
    return std::llrint(static_cast<double>(sum) / static_cast<double>(std::max<int64_t>(count, 1)));
  }
};

// Computes channel `channel` of output pixel (y, x) of an image.
template <class T, class Reduction>
T PoolElement(const PoolShape& p, const T* image, int64_t y, int64_t x, int64_t channel) {
  const int64_t top = y * p.stride[1] - p.pad_before[1], left = x * p.stride[2] - p.pad_before[2];
  Reduction reduction;
  for (int64_t i = std::max<int64_t>(top, 0); i < std::min(top + p.window[1], p.in[1]); ++i) {
    for (int64_t j = std::max<int64_t>(left, 0); j < std::min(left + p.window[2], p.in[2]); ++j)
      reduction.Take(image[(i * p.in[2] + j) * p.channels + channel].value);
  }
  return {static_cast<Word<T>>(reduction.Result())};
}

template <class T, class Reduction>
absl::StatusOr<Kernel> MakePool(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const PoolAttributes attributes, PoolAttributes::Read(init.node));
  return Kernel([attributes](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const NumberRange range, ReadRange(c, 1));
    WEIR_ASSIGN_OR_RETURN(const PoolShape p, PoolShape::Make(c, attributes, c.input(0).shape()));
    WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, p.output));
    const double cost = static_cast<double>(p.taps() * p.channels);
    c.pool().ParallelFor(p.batch * p.out_pixels(), cost, [&](int64_t begin, int64_t end) {
      for (int64_t pixel = begin; pixel < end; ++pixel) {
        const int64_t n = pixel / p.out_pixels(), at = pixel % p.out_pixels();
        const T* const image = c.input_data<T>(0) + n * p.in_pixels() * p.channels;
        for (int64_t channel = 0; channel < p.channels; ++channel) {
          out->data<T>()[pixel * p.channels + channel] =
              PoolElement<T, Reduction>(p, image, at / p.out[2], at % p.out[2], channel);
        }
      }
    });
    return WriteRange(c, 1, range);
  });
}

// ---- resizing

// The two original pixels around a resized one, and the fraction of the distance between them.
struct Neighbors {
  int64_t low, high;
  float fraction;
};

std::vector<Neighbors> NeighborsAlong(const ResizeGrid& grid, int64_t original, int64_t resized) {
  const float scale = grid.Scale(original, resized);
  std::vector<Neighbors> neighbors;
  for (int64_t i = 0; i < resized; ++i) {
    const float position = grid.Position(i, scale), below = std::floor(position);
    const auto low = static_cast<int64_t>(below);
    neighbors.push_back({std::clamp<int64_t>(low, 0, original - 1),
                         std::clamp<int64_t>(low + 1, 0, original - 1), position - below});
  }
  return neighbors;
}

// The four pixels around a position.
template <class T>
struct Corners {
  T top_left, top_right, bottom_left, bottom_right;
};

float Interpolate(const Corners<float>& p, float x, float y) {
  const float top = p.top_left + (p.top_right - p.top_left) * x;
  const float bottom = p.bottom_left + (p.bottom_right - p.bottom_left) * x;
  return top + (bottom - top) * y;
}

// Interpolates in fixed-point arithmetic with this many fraction bits; elements of 32 bits are
// first rounded to floats. It follows TensorFlow's arithmetic step by step.
template <class T, int kBits>
T InterpolateFixed(const Corners<T>& p, float right, float down) {
  constexpr int64_t kOne = int64_t{1} << kBits;
  const auto value = [](T q) {
    return kBits > 24 ? static_cast<int64_t>(static_cast<float>(q.value)) : int64_t{q.value};
  };
  const auto x = static_cast<int64_t>(right * static_cast<float>(kOne));
  const auto y = static_cast<int64_t>(down * static_cast<float>(kOne));
  const auto between = [&](T a, T b) { return value(a) * kOne + (value(b) - value(a)) * x; };
  const int64_t top = between(p.top_left, p.top_right);
  const int64_t bottom = between(p.bottom_left, p.bottom_right);
  const int64_t result = (top + (bottom - top) / kOne * y + kOne / 2) / kOne;
  return {static_cast<Word<T>>(std::clamp(result, kLowest<T>, kHighest<T>))};
}
quint8 Interpolate(const Corners<quint8>& p, float x, float y) {
  return InterpolateFixed<quint8, 7>(p, x, y);
}
qint32 Interpolate(const Corners<qint32>& p, float x, float y) {
  return InterpolateFixed<qint32, 30>(p, x, y);
}

template <class T>
void ResizeRow(const T* above, const T* below, float y, const std::vector<Neighbors>& columns,
               int64_t channels, T* out) {
  for (const Neighbors& column : columns) {
    const int64_t left = column.low * channels, right = column.high * channels;
    for (int64_t i = 0; i < channels; ++i) {
      const Corners<T> corners = {above[left + i], above[right + i], below[left + i],
                                  below[right + i]};
      *out++ = Interpolate(corners, column.fraction, y);
    }
  }
}

absl::Status CheckResize(const Tensor& images, const ResizeGrid& grid) {
  WEIR_RETURN_IF_ERROR(CheckRank(images, 4, "images"));
  constexpr int64_t kMaxSide = std::numeric_limits<int32_t>::max();
  for (const int dim : {1, 2, 3}) {
    if (images.dim(dim) > 0 && images.dim(dim) < kMaxSide) continue;
    return InvalidArgument("images must have pixels and channels, but the shape is ",
                           images.shape().ToString());
  }
  if (!grid.align_corners || !grid.half_pixel_centers) return absl::OkStatus();
  return InvalidArgument("If half_pixel_centers is True, align_corners must be False.");
}

template <class T>
absl::StatusOr<Kernel> MakeResize(const KernelInit& init) {
  const ResizeGrid grid = {init.attr<bool>("align_corners"), init.attr<bool>("half_pixel_centers")};
  return Kernel([grid](KernelContext& c) -> absl::Status {
    const Tensor& images = c.input(0);
    WEIR_RETURN_IF_ERROR(CheckResize(images, grid));
    WEIR_ASSIGN_OR_RETURN(const Extent size, ReadExtent(c.input(1), "size", images));
    WEIR_ASSIGN_OR_RETURN(const NumberRange range, ReadRange(c, 2));
    const int64_t batch = images.dim(0), channels = images.dim(3);
    WEIR_ASSIGN_OR_RETURN(const Shape shape,
                          CheckedShape({batch, size.height, size.width, channels}));
    WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    const int64_t row = images.dim(2) * channels, out_row = size.width * channels;
    if (batch > 0) {
      const std::vector<Neighbors> rows = NeighborsAlong(grid, images.dim(1), size.height);
      const std::vector<Neighbors> columns = NeighborsAlong(grid, images.dim(2), size.width);
      const double cost = 4 * static_cast<double>(out_row);
      c.pool().ParallelFor(batch * size.height, cost, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const Neighbors& place = rows[i % size.height];
          const T* const image = images.data<T>() + i / size.height * images.dim(1) * row;
          ResizeRow(image + place.low * row, image + place.high * row, place.fraction, columns,
                    channels, out->data<T>() + i * out_row);
        }
      });
    }
    return WriteRange(c, 1, range);
  });
}

template <class T>
void AddPools(KernelRegistry* r) {
  r->Add("QuantizedMaxPool", kCpu, DataTypeOf<T>::value, MakePool<T, Maximum<T>>);
  r->Add("QuantizedAvgPool", kCpu, DataTypeOf<T>::value, MakePool<T, Mean<T>>);
}

}  // namespace

void AddQuantizedImageCpu(KernelRegistry* r) {
  AddPools<qint8>(r);
  AddPools<quint8>(r);
  r->Add("QuantizedResizeBilinear", kCpu, DT_QUINT8, MakeResize<quint8>);
  r->Add("QuantizedResizeBilinear", kCpu, DT_QINT32, MakeResize<qint32>);
  r->Add("QuantizedResizeBilinear", kCpu, DT_FLOAT, MakeResize<float>);
}

}  // namespace weir
