#include "weir/kernels/nn/conv_plain.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "weir/kernels/lib/scalar_math.h"

// All three passes visit the same triples (output pixel, tap, corresponding input pixel). The
// innermost loop runs over contiguous output channels, a row of the filter, so that the compiler
// vectorizes it:
//   forward          y[o]    += x[i] * f[tap, i, o]
//   backprop input   dx[i]   += sum over o of dy[o] * f[tap, i, o]
//   backprop filter  df[tap, i, o] += x[i] * dy[o]
// The first is parallel over rows of output pixels, the second over images (output rows share input
// rows), the third over taps, each of which owns a slice of the filter.
namespace weir {
namespace {

// Integers wrap around, as in TensorFlow.
template <class T>
inline T MulAdd(T acc, T a, T b) {
  return ScalarMath<T>::Add(acc, ScalarMath<T>::Mul(a, b));
}

// Calls fn(tap, input pixel) for those taps [first, last) of the window of output pixel (z, y, x)
// that are inside the image.
template <class F>
inline void ForEachTap(const ConvShape& s, int64_t z, int64_t y, int64_t x, int64_t first,
                       int64_t last, F&& fn) {
  for (int64_t tap = first; tap < last; ++tap) {
    const int64_t kx = tap % s.kernel[2], ky = tap / s.kernel[2] % s.kernel[1],
                  kz = tap / s.kernel[2] / s.kernel[1];
    const int64_t iz = z * s.stride[0] - s.pad_before[0] + kz * s.dilation[0];
    const int64_t iy = y * s.stride[1] - s.pad_before[1] + ky * s.dilation[1];
    const int64_t ix = x * s.stride[2] - s.pad_before[2] + kx * s.dilation[2];
    if (iz < 0 || iz >= s.in[0] || iy < 0 || iy >= s.in[1] || ix < 0 || ix >= s.in[2]) continue;
    fn(tap, (iz * s.in[1] + iy) * s.in[2] + ix);
  }
}

template <class F>
inline void ForEachOutputPixel(const ConvShape& s, F&& fn) {
  for (int64_t z = 0; z < s.out[0]; ++z) {
    for (int64_t y = 0; y < s.out[1]; ++y) {
      ThrowIfCancelled();
      for (int64_t x = 0; x < s.out[2]; ++x) fn(z, y, x);
    }
  }
}

constexpr double kNsPerFlop = 0.3;

}  // namespace

template <class T>
void PlainConv(ThreadPool& pool, const ConvShape& s, const T* input, const T* filter, T* output) {
  const int64_t rows = s.batch * s.out[0] * s.out[1];
  const int64_t in_depth = s.group_in(), out_depth = s.out_channels / s.groups;
  pool.ParallelFor(
      rows, s.flops() / std::max<int64_t>(rows, 1) * kNsPerFlop, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t n = row / (s.out[0] * s.out[1]), z = row / s.out[1] % s.out[0],
                        y = row % s.out[1];
          const T* image = input + n * s.in_pixels() * s.in_channels;
          for (int64_t x = 0; x < s.out[2]; ++x) {
            T* out = output + (row * s.out[2] + x) * s.out_channels;
            std::fill(out, out + s.out_channels, T(0));
            ForEachTap(s, z, y, x, 0, s.taps(), [&](int64_t tap, int64_t pixel) {
              for (int64_t g = 0; g < s.groups; ++g) {
                T* to = out + g * out_depth;
                for (int64_t i = 0; i < in_depth; ++i) {
                  const T value = image[pixel * s.in_channels + g * in_depth + i];
                  const T* weights = filter + (tap * in_depth + i) * s.out_channels + g * out_depth;
                  for (int64_t o = 0; o < out_depth; ++o) to[o] = MulAdd(to[o], value, weights[o]);
                }
              }
            });
          }
        }
      });
}

template <class T>
void PlainConvBackpropInput(ThreadPool& pool, const ConvShape& s, const T* filter, const T* dy,
                            T* dx) {
  const int64_t in_depth = s.group_in(), out_depth = s.out_channels / s.groups;
  const double cost = s.flops() / std::max<int64_t>(s.batch, 1) * kNsPerFlop;
  pool.ParallelFor(s.batch, cost, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      T* image = dx + n * s.in_pixels() * s.in_channels;
      std::fill(image, image + s.in_pixels() * s.in_channels, T(0));
      const T* from = dy + n * s.out_pixels() * s.out_channels;
      ForEachOutputPixel(s, [&](int64_t z, int64_t y, int64_t x) {
        ForEachTap(s, z, y, x, 0, s.taps(), [&](int64_t tap, int64_t pixel) {
          for (int64_t c = 0; c < s.in_channels; ++c) {
            const int64_t g = c / in_depth, i = c % in_depth;
            const T* weights = filter + (tap * in_depth + i) * s.out_channels + g * out_depth;
            T sum = 0;
            for (int64_t o = 0; o < out_depth; ++o)
              sum = MulAdd(sum, from[g * out_depth + o], weights[o]);
            image[pixel * s.in_channels + c] = MulAdd(image[pixel * s.in_channels + c], sum, T(1));
          }
        });
        from += s.out_channels;
      });
    }
  });
}

template <class T>
void PlainConvBackpropFilter(ThreadPool& pool, const ConvShape& s, const T* input, const T* dy,
                             T* df) {
  const int64_t in_depth = s.group_in(), out_depth = s.out_channels / s.groups;
  const int64_t slice = in_depth * s.out_channels;
  const double cost = s.flops() / std::max<int64_t>(s.taps(), 1) * kNsPerFlop;
  pool.ParallelFor(s.taps(), cost, [&](int64_t begin, int64_t end) {
    std::fill(df + begin * slice, df + end * slice, T(0));
    const T* from = dy;
    for (int64_t n = 0; n < s.batch; ++n) {
      const T* image = input + n * s.in_pixels() * s.in_channels;
      ForEachOutputPixel(s, [&](int64_t z, int64_t y, int64_t x) {
        ForEachTap(s, z, y, x, begin, end, [&](int64_t tap, int64_t pixel) {
          for (int64_t c = 0; c < s.in_channels; ++c) {
            const int64_t g = c / in_depth, i = c % in_depth;
            const T value = image[pixel * s.in_channels + c];
            T* to = df + tap * slice + i * s.out_channels + g * out_depth;
            const T* gradients = from + g * out_depth;
            for (int64_t o = 0; o < out_depth; ++o) to[o] = MulAdd(to[o], value, gradients[o]);
          }
        });
        from += s.out_channels;
      });
    }
  });
}

template void PlainConv(ThreadPool&, const ConvShape&, const float*, const float*, float*);
template void PlainConv(ThreadPool&, const ConvShape&, const double*, const double*, double*);
template void PlainConv(ThreadPool&, const ConvShape&, const int32_t*, const int32_t*, int32_t*);
template void PlainConvBackpropInput(ThreadPool&, const ConvShape&, const float*, const float*,
                                     float*);
template void PlainConvBackpropInput(ThreadPool&, const ConvShape&, const double*, const double*,
                                     double*);
template void PlainConvBackpropInput(ThreadPool&, const ConvShape&, const int32_t*, const int32_t*,
                                     int32_t*);
template void PlainConvBackpropFilter(ThreadPool&, const ConvShape&, const float*, const float*,
                                      float*);
template void PlainConvBackpropFilter(ThreadPool&, const ConvShape&, const double*, const double*,
                                      double*);

}  // namespace weir
