#include "weir/kernels/image/resample.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <type_traits>

#include "absl/strings/ascii.h"
#include "weir/core/tensor/cancellation.h"
#include "weir/core/tensor/dtype.h"
#include "weir/kernels/image/bilinear_rows.h"
#include "weir/kernels/image/image_rows.h"
#include "weir/kernels/lib/non_temporal.h"

namespace weir {

namespace {

int64_t Within(int64_t index, int64_t size) { return std::clamp<int64_t>(index, 0, size - 1); }

// The two pieces of the cubic convolution kernel: for distances below 1, and for distances from 1
// to 2.
float CubicNear(double a, float x) {
  return static_cast<float>(((a + 2) * x - (a + 3)) * x * x + 1);
}
float CubicFar(double a, float x) {
  return static_cast<float>(((a * x - 5 * a) * x + 8 * a) * x - 4 * a);
}

// ---- the kernels of ScaleAndTranslate, symmetric around 0

float Lanczos(float x, float radius) {
  constexpr float kPi = 3.14159265359f;
  if (x > radius) return 0;
  if (x <= 1e-3f) return 1;
  return radius * std::sin(kPi * x) * std::sin(kPi * x / radius) / (kPi * kPi * x * x);
}
float Gaussian(float x) {
  constexpr float kRadius = 1.5f, kSigma = kRadius / 3;
  return x >= kRadius ? 0 : std::exp(-x * x / (2 * kSigma * kSigma));
}
float Box(float x) { return x < 0.5f ? 1 : x == 0.5f ? 0.5f : 0; }
float Triangle(float x) { return x < 1 ? 1 - x : 0; }
float KeysCubic(float x) {
  if (x >= 2) return 0;
  return x >= 1 ? ((-0.5f * x + 2.5f) * x - 4) * x + 2 : (1.5f * x - 2.5f) * x * x + 1;
}
// Mitchell and Netravali, 1988, with B = C = 1/3.
float MitchellCubic(float x) {
  if (x >= 2) return 0;
  return x >= 1 ? ((-7.0f / 18 * x + 2) * x - 10.0f / 3) * x + 16.0f / 9
                : (7.0f / 6 * x - 2) * x * x + 8.0f / 9;
}

struct SamplingKernel {
  const char* name;
  float radius;
  float (*value)(float);
};

constexpr SamplingKernel kSamplingKernels[] = {
    {"lanczos1", 1, [](float x) { return Lanczos(x, 1); }},
    {"lanczos3", 3, [](float x) { return Lanczos(x, 3); }},
    {"lanczos5", 5, [](float x) { return Lanczos(x, 5); }},
    {"gaussian", 1.5f, Gaussian},
    {"box", 1, Box},
    {"triangle", 1, Triangle},
    {"keyscubic", 2, KeysCubic},
    {"mitchellcubic", 2, MitchellCubic},
};

// Taps with a smaller sum than this count as zero: they are not normalized.
constexpr float kTiny = 1000 * std::numeric_limits<float>::min();

// Adds taps for pixels [first, last] around `center`, weighted by the kernel and normalized to a
// sum of 1.
void AddKernel(const SamplingKernel& kernel, float center, float widening, int64_t first,
               int64_t last, Taps* taps) {
  const size_t begin = taps->weights.size();
  float sum = 0;
  for (int64_t i = first; i <= last; ++i) {
    const float distance = static_cast<float>(i) + 0.5f - center;
    const float weight = kernel.value(std::abs(distance * (1 / widening)));
    sum += weight;
    taps->Add(i, weight);
  }
  const float factor = std::abs(sum) >= kTiny ? 1 / sum : 0;
  for (size_t k = begin; k < taps->weights.size(); ++k) taps->weights[k] *= factor;
}

}  // namespace

float ResizeGrid::Scale(int64_t original, int64_t resized) const {
  if (align_corners && original > 1 && resized > 1) {
    return static_cast<float>(original - 1) / static_cast<float>(resized - 1);
  }
  return static_cast<float>(original) / static_cast<float>(resized);
}

Lerp BilinearLerp(const ResizeGrid& grid, int64_t original, int64_t resized) {
  Lerp lerp;
  const float scale = grid.Scale(original, resized);
  for (int64_t i = 0; i < resized; ++i) {
    const float at = grid.Position(i, scale), low = std::floor(at);
    lerp.Add(Within(static_cast<int64_t>(low), original),
             Within(static_cast<int64_t>(std::ceil(at)), original), at - low);
  }
  return lerp;
}

Taps BilinearTaps(const ResizeGrid& grid, int64_t original, int64_t resized) {
  Taps taps;
  const float scale = grid.Scale(original, resized);
  for (int64_t i = 0; i < resized; ++i) {
    const float at = grid.Position(i, scale), low = std::floor(at), fraction = at - low;
    taps.Add(Within(static_cast<int64_t>(low), original), 1 - fraction);
    if (fraction != 0) taps.Add(Within(static_cast<int64_t>(low) + 1, original), fraction);
    taps.Close();
  }
  return taps;
}

Taps BicubicTaps(const ResizeGrid& grid, int64_t original, int64_t resized) {
  constexpr int kSteps = 1024;
  Taps taps;
  const double a = grid.half_pixel_centers ? -0.5 : -0.75;
  const float scale = grid.Scale(original, resized);
  for (int64_t i = 0; i < resized; ++i) {
    const float at = grid.Position(i, scale), low = std::floor(at);
    const float x = static_cast<float>(std::lrint((at - low) * kSteps)) / kSteps;
    float weights[4] = {CubicFar(a, 1 + x), CubicNear(a, x), CubicNear(a, 1 - x),
                        CubicFar(a, 2 - x)};
    const int64_t first = static_cast<int64_t>(low) - 1;
    if (grid.half_pixel_centers) {
      float sum = 0;
      for (int k = 0; k < 4; ++k) {
        if (Within(first + k, original) != first + k) weights[k] = 0;
        sum += weights[k];
      }
      for (float& weight : weights) weight *= std::abs(sum) >= kTiny ? 1 / sum : 1;
    }
    for (int k = 0; k < 4; ++k) taps.Add(Within(first + k, original), weights[k]);
    taps.Close();
  }
  return taps;
}

Taps AreaTaps(const ResizeGrid& grid, int64_t original, int64_t resized) {
  Taps taps;
  const float scale = grid.Scale(original, resized);
  for (int64_t i = 0; i < resized; ++i) {
    const float begin = static_cast<float>(i) * scale, end = static_cast<float>(i + 1) * scale;
    for (int64_t k = static_cast<int64_t>(begin); static_cast<float>(k) < end; ++k) {
      const float covered =
          std::min(static_cast<float>(k + 1), end) - std::max(static_cast<float>(k), begin);
      taps.Add(Within(k, original), covered / scale);
    }
    taps.Close();
  }
  return taps;
}

absl::StatusOr<Taps> KernelTaps(const std::string& kernel, bool antialias, float scale,
                                float translation, int64_t original, int64_t resized) {
  constexpr double kMaxTaps = 1 << 26;
  const std::string name = absl::AsciiStrToLower(kernel);
  const auto* found = std::find_if(std::begin(kSamplingKernels), std::end(kSamplingKernels),
                                   [&](const SamplingKernel& k) { return k.name == name; });
  if (found == std::end(kSamplingKernels)) {
    return InvalidArgument("Unrecognized kernel type: ", kernel);
  }
  const float inverse = 1 / scale, shift = -inverse * translation;
  const float widening = antialias ? std::max(inverse, 1.0f) : 1.0f;
  const float reach = found->radius * widening, size = static_cast<float>(original);
  if (!std::isfinite(reach) || !std::isfinite(shift) ||
      static_cast<double>(std::min(2 * reach + 1, size)) * static_cast<double>(resized) >
          kMaxTaps) {
    return InvalidArgument("a scale of ", scale, " and a translation of ", translation, " from ",
                           original, " to ", resized, " pixels are out of range");
  }
  Taps taps;
  for (int64_t i = 0; i < resized; ++i) {
    const float center = (static_cast<float>(i) + 0.5f) * inverse + shift;
    if (center >= 0 && center <= size) {
      AddKernel(*found, center, widening,
                Within(static_cast<int64_t>(std::ceil(center - reach - 0.5f)), original),
                Within(static_cast<int64_t>(std::floor(center + reach - 0.5f)), original), &taps);
    }
    taps.Close();
  }
  return taps;
}

namespace {

// The transposed map: from a gradient of the resized side to one of the original side.
Taps Transposed(const Taps& taps, int64_t original) {
  Taps out;
  out.begins.assign(original + 1, 0);
  for (const int32_t index : taps.indices) ++out.begins[index + 1];
  std::partial_sum(out.begins.begin(), out.begins.end(), out.begins.begin());
  out.indices.resize(taps.indices.size());
  out.weights.resize(taps.indices.size());
  std::vector<int64_t> next(out.begins.begin(), out.begins.end() - 1);
  for (int64_t i = 0; i < taps.size(); ++i) {
    for (int64_t k = taps.begins[i]; k < taps.begins[i + 1]; ++k) {
      const int64_t to = next[taps.indices[k]]++;
      out.indices[to] = static_cast<int32_t>(i);
      out.weights[to] = taps.weights[k];
    }
  }
  return out;
}

// Each row of a result is a weighted sum of rows, and its pixels are weighted sums of pixels of
// that sum. The first pass reads consecutive memory, whatever the number of channels, and its
// result stays in the L1 cache for the second one. The order of additions is that of TensorFlow's
// bicubic resizing: rows first, taps in ascending order. V is the type of sums. Rows are
// independent of each other, so the results do not depend on how threads divide them.
template <class V, class T, class Out>
void MixImages(ThreadPool& pool, int64_t batch, const ImageSize& from, const Taps& rows,
               const Taps& columns, const T* in, Out* out) {
  const int64_t height = rows.size(), row = columns.size() * from.channels;
  const double taps = static_cast<double>(from.row()) * static_cast<double>(rows.indices.size()) /
                          static_cast<double>(std::max<int64_t>(height, 1)) +
                      static_cast<double>(columns.indices.size() * from.channels);
  pool.ParallelFor(batch * height, 0.3 * taps, [&](int64_t begin, int64_t end) {
    std::vector<V> mixed(from.row() + kRowPadding), result(std::is_same_v<V, Out> ? 0 : row);
    for (int64_t r = begin; r < end; ++r) {
      ThrowIfCancelled();
      image_rows::MixRows(DataTypeOf<T>::value, in + r / height * from.size(), from.row(), rows,
                          r % height, mixed.data());
      if constexpr (std::is_same_v<V, Out>) {
        image_rows::MixColumns(columns, from.channels, mixed.data(), out + r * row);
      } else {
        image_rows::MixColumns(columns, from.channels, mixed.data(), result.data());
        std::transform(result.begin(), result.end(), out + r * row,
                       [](V v) { return static_cast<Out>(v); });
      }
    }
  });
}

}  // namespace

template <class T>
void Resample(ThreadPool& pool, int64_t batch, const ImageSize& from, const Taps& rows,
              const Taps& columns, const T* in, float* out) {
  MixImages<float>(pool, batch, from, rows, columns, in, out);
}

template <class T>
void ResampleGradient(ThreadPool& pool, int64_t batch, const ImageSize& to, const Taps& rows,
                      const Taps& columns, const float* grads, T* out) {
  using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;
  MixImages<Sum>(pool, batch, {rows.size(), columns.size(), to.channels},
                 Transposed(rows, to.height), Transposed(columns, to.width), grads, out);
}

template <class T>
void ResampleBilinear(ThreadPool& pool, int64_t batch, const ImageSize& from, const Lerp& rows,
                      const Lerp& columns, const T* in, float* out) {
  const int64_t height = rows.size(), row = columns.size() * from.channels;
  const bool stream = non_temporal::Pays(batch * height * row * sizeof(float));
  const double cost = 0.2 * static_cast<double>(from.row() + 2 * row);
  pool.ParallelFor(batch * height, cost, [&](int64_t begin, int64_t end) {
    BilinearRows<T> lines(columns, from.channels, in + batch * from.size(), stream);
    for (int64_t r = begin; r < end; ++r) {
      ThrowIfCancelled();
      const T* const image = in + r / height * from.size();
      const int64_t y = r % height;
      lines.Interpolate(image + rows.low[y] * from.row(), image + rows.high[y] * from.row(),
                        rows.fraction[y], out + r * row);
    }
  });
}

#define WEIR_RESAMPLE(T)                                                                           \
  template void Resample(ThreadPool&, int64_t, const ImageSize&, const Taps&, const Taps&,         \
                         const T*, float*);                                                        \
  template void ResampleBilinear(ThreadPool&, int64_t, const ImageSize&, const Lerp&, const Lerp&, \
                                 const T*, float*);
WEIR_RESAMPLE(int8_t)
WEIR_RESAMPLE(uint8_t)
WEIR_RESAMPLE(int16_t)
WEIR_RESAMPLE(uint16_t)
WEIR_RESAMPLE(int32_t)
WEIR_RESAMPLE(int64_t)
WEIR_RESAMPLE(half)
WEIR_RESAMPLE(bfloat16)
WEIR_RESAMPLE(float)
WEIR_RESAMPLE(double)
#undef WEIR_RESAMPLE
#define WEIR_RESAMPLE_GRADIENT(T)                                                                  \
  template void ResampleGradient(ThreadPool&, int64_t, const ImageSize&, const Taps&, const Taps&, \
                                 const float*, T*);
WEIR_RESAMPLE_GRADIENT(half)
WEIR_RESAMPLE_GRADIENT(bfloat16)
WEIR_RESAMPLE_GRADIENT(float)
WEIR_RESAMPLE_GRADIENT(double)
#undef WEIR_RESAMPLE_GRADIENT

}  // namespace weir
