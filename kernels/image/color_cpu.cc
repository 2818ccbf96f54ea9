#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "absl/functional/function_ref.h"
#include "weir/core/tensor/cancellation.h"
#include "weir/kernels/image/color_rows.h"
#include "weir/kernels/image/image.h"

// Color conversions: hue, saturation and value of RGB pixels, and adjustments.
namespace weir {

namespace {

template <class T>
struct Color {
  T first, second, third;  // red, green, blue; or hue, saturation, value
};

// Hue is the angle on the color circle as a fraction of a turn, from red (0) through green (1/3) to
// blue (2/3); gray has hue and saturation 0. Source: Smith, "Color gamut transform pairs", 1978.
template <class T>
Color<T> ToHsv(Color<T> c) {
  const T red = c.first, green = c.second, blue = c.third;
  const T value = std::max({red, green, blue}), range = value - std::min({red, green, blue});
  const T saturation = value > 0 ? range / value : T(0);
  const T norm = T(1) / (T(6) * range);
  T hue = red == value     ? norm * (green - blue)
          : green == value ? norm * (blue - red) + T(2) / T(6)
                           : norm * (red - green) + T(4) / T(6);
  if (!(range > 0)) hue = 0;
  return {hue < 0 ? hue + T(1) : hue, saturation, value};
}

template <class T>
Color<T> ToRgb(Color<T> c) {
  const T turn = c.first * T(6), saturation = c.second, value = c.third;
  const auto part = [&](T share) {
    return (T(1) - saturation + saturation * std::clamp(share, T(0), T(1))) * value;
  };
  return {part(std::abs(turn - T(3)) - T(1)), part(T(2) - std::abs(turn - T(2))),
          part(T(2) - std::abs(turn - T(4)))};
}

// AdjustHue and AdjustSaturation perform TensorFlow's operations one by one, so that NaN and
// infinity produce the same results; HSVToRGB uses another formula. A hue here counts sectors of
// the color circle: in each of the six, one component is the largest, one the smallest, and the
// third is in between.
struct Extremes {
  float largest, middle, smallest;
  int sector;
};
Extremes ExtremesOf(const Color<float>& c) {
  const float red = c.first, green = c.second, blue = c.third;
  if (red < green) {
    if (blue < red) return {green, red, blue, 1};
    if (blue > green) return {blue, green, red, 3};
    return {green, blue, red, 2};
  }
  if (blue < green) return {red, green, blue, 0};
  if (blue > red) return {blue, red, green, 4};
  return {red, blue, green, 5};
}

// A hue split into sector and remainder. `sectors` is in [0, 6), or NaN.
struct Hue {
  explicit Hue(float sectors)
      : sector(std::isnan(sectors) ? -1 : static_cast<int>(sectors)),
        rest(std::isnan(sectors) ? sectors : sectors - static_cast<float>(sector)) {}
  int sector;  // -1 for NaN
  float rest;
};

// Orders the components as the sector requires.
Color<float> ColorInSector(int sector, float largest, float middle, float smallest,
                           Color<float> none) {
  switch (sector) {
    case 0:
      return {largest, middle, smallest};
    case 1:
      return {middle, largest, smallest};
    case 2:
      return {smallest, largest, middle};
    case 3:
      return {smallest, middle, largest};
    case 4:
      return {middle, smallest, largest};
    case 5:
      return {largest, smallest, middle};
    default:
      return none;
  }
}

// Rotates the hue; keeps the largest and the smallest component.
Color<float> RotateHue(Color<float> c, float turns) {
  const Extremes e = ExtremesOf(c);
  float sectors = 0;
  if (e.largest != e.smallest) {
    const float ratio = (e.middle - e.smallest) / (e.largest - e.smallest);
    sectors = static_cast<float>(e.sector) + (e.sector % 2 == 0 ? ratio : 1 - ratio);
  }
  sectors = std::fmod(sectors + turns * 6, 6.0f);
  if (sectors < 0) sectors += 6;
  if (sectors >= 6) sectors -= 6;
  const Hue hue(sectors);
  const float ratio = hue.sector % 2 == 1 ? 1 - hue.rest : hue.rest;
  const float middle = e.smallest + ratio * (e.largest - e.smallest);
  return ColorInSector(hue.sector, e.largest, middle, e.smallest, {e.largest, e.smallest, middle});
}

Color<float> Saturate(Color<float> c, float scale) {
  const float red = c.first, green = c.second, blue = c.third;
  const float value = std::max(red, std::max(green, blue));
  const float range = value - std::min(red, std::min(green, blue));
  const float norm = 1.0f / (6.0f * range);
  float hue = red == value     ? norm * (green - blue)
              : green == value ? static_cast<float>(norm * (blue - red) + 2.0 / 6.0)
                               : static_cast<float>(norm * (red - green) + 4.0 / 6.0);
  if (range <= 0) hue = 0;
  if (hue < 0) hue += 1;
  const float saturation = value > 0 ? range / value : 0;
  const float chroma = std::min(1.0f, std::max(0.0f, saturation * scale)) * value;
  const float sectors = hue * 6;
  const float between = chroma * (1 - std::abs(std::fmod(sectors, 2.0f) - 1));
  const float smallest = value - chroma;
  const int sector = sectors > -1 && sectors < 6 ? static_cast<int>(sectors) : -1;
  const Color<float> above = ColorInSector(sector, chroma, between, 0, {0, 0, 0});
  return {above.first + smallest, above.second + smallest, above.third + smallest};
}

// Applies f to every pixel. Narrow types are computed in float.
template <class T, class F>
absl::Status ForEachColor(KernelContext& c, const F& f) {
  using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const Tensor& in = c.input(0);
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, in.shape()));
  const T* from = in.data<T>();
  T* to = out->data<T>();
  c.pool().ParallelFor(in.num_elements() / 3, 10, [&](int64_t begin, int64_t end) {
    for (int64_t i = 3 * begin; i < 3 * end; i += 3) {
      const Color<Wide> color =
          f(Color<Wide>{static_cast<Wide>(from[i]), static_cast<Wide>(from[i + 1]),
                        static_cast<Wide>(from[i + 2])});
      to[i] = static_cast<T>(color.first);
      to[i + 1] = static_cast<T>(color.second);
      to[i + 2] = static_cast<T>(color.third);
    }
  });
  return absl::OkStatus();
}

// Calls run(pixels, how many, results) for runs of pixels.
absl::Status InRows(KernelContext& c, absl::FunctionRef<void(const float*, int64_t, float*)> run) {
  const Tensor& in = c.input(0);
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, in.shape()));
  const float* const from = in.data<float>();
  float* const to = out->data<float>();
  c.pool().ParallelFor(in.num_elements() / 3, 1.5, [&](int64_t begin, int64_t end) {
    run(from + 3 * begin, end - begin, to + 3 * begin);
  });
  return absl::OkStatus();
}

template <class T, bool to_hsv>
absl::Status Convert(KernelContext& c) {
  const Tensor& in = c.input(0);
  if (in.rank() < 1) {
    return InvalidArgument("input must be at least 1D, but has shape ", in.shape().ToString());
  }
  if (in.dim(-1) != 3) {
    return FailedPrecondition("input must have 3 channels but input only has ", in.dim(-1),
                              " channels.");
  }
  if constexpr (std::is_same_v<T, float>) {
    return InRows(c, to_hsv ? color_rows::RgbToHsv : color_rows::HsvToRgb);
  }
  return ForEachColor<T>(c, [](const auto& color) {
    if constexpr (to_hsv) {
      return ToHsv(color);
    } else {
      return ToRgb(color);
    }
  });
}

absl::Status CheckPixels(const Tensor& in) {
  if (in.rank() < 3) {
    return InvalidArgument("input must be at least 3-D, got shape ", in.shape().ToString());
  }
  return absl::OkStatus();
}

// AdjustHue and AdjustSaturation: input 0 holds the pixels, input 1 the amount.
template <Color<float> (*adjust)(Color<float>, float)>
absl::Status Adjust(KernelContext& c) {
  const Tensor &in = c.input(0), &by = c.input(1);
  WEIR_RETURN_IF_ERROR(CheckPixels(in));
  WEIR_RETURN_IF_ERROR(CheckScalar(by, "delta (scale)"));
  if (in.dim(-1) != 3) {
    return InvalidArgument("input must have 3 channels but instead has ", in.dim(-1), " channels.");
  }
  const float amount = by.scalar<float>();
  if (adjust == RotateHue && std::abs(amount) < 1) {
    return InRows(c, [amount](const float* from, int64_t n, float* to) {
      color_rows::RotateHue(from, amount, n, to);
    });
  }
  return ForEachColor<float>(c,
                             [amount](const Color<float>& color) { return adjust(color, amount); });
}

// ---- contrast: scales the differences from the mean of each image channel

// Images, and how loops over them are cut: into blocks of pixels, so that the sums and the means of
// a block are consecutive (one of each for every element), and pieces of blocks, for the threads.
// Both depend on sizes only, so the order of additions does not depend on threads.
struct ContrastGrid {
  ContrastGrid(const Tensor& in)
      : channels(in.dim(-1)), pixels(in.dim(-3) * in.dim(-2)), images(in.num_elements() / size()) {}

  static constexpr int64_t kBlock = 256, kPiece = int64_t{1} << 16;  // elements, about

  int64_t size() const { return pixels * channels; }
  int64_t block() const {
    return channels * std::min(pixels, 16 * ((kBlock - 1) / (16 * channels) + 1));
  }
  // At least 16 blocks, so that the sums of an image of several pieces are smaller than the image.
  int64_t piece() const { return block() * std::max<int64_t>(16, kPiece / block()); }
  int64_t pieces() const { return (size() + piece() - 1) / piece(); }

  // Calls f(first element, number of elements) for the blocks of one of all images' pieces, in
  // order.
  template <class F>
  void ForEachBlock(int64_t index, const F& f) const {
    ThrowIfCancelled();
    const int64_t image = index / pieces() * size();
    const int64_t first = index % pieces() * piece(), last = std::min(first + piece(), size());
    for (int64_t at = first; at < last; at += block()) f(image + at, std::min(block(), last - at));
  }
  // Calls f(first, last) for ranges of pieces on the pool's threads; `cost` is that of an element.
  template <class F>
  void ForPieces(ThreadPool& pool, double cost, const F& f) const {
    pool.ParallelFor(images * pieces(), cost * static_cast<double>(std::min(piece(), size())), f);
  }

  const int64_t channels, pixels, images;
};

template <class T>
void AddToSums(const T* x, int64_t n, double* sums) {
  if constexpr (std::is_same_v<T, float>) {
    color_rows::AddToSums(x, n, sums);
  } else {
    for (int64_t i = 0; i < n; ++i) sums[i] += static_cast<double>(x[i]);
  }
}

// Adds the elements of a piece's blocks to `sums`, a block.
template <class T>
void AddPiece(const ContrastGrid& grid, const T* in, int64_t piece, double* sums) {
  grid.ForEachBlock(piece, [&](int64_t at, int64_t n) { AddToSums(in + at, n, sums); });
}

// Writes the means of an image's channels for the elements of a block, from its pieces' sums.
void ToMeans(const ContrastGrid& grid, const double* sums, float* means) {
  for (int64_t k = 0; k < grid.channels; ++k) {
    double sum = 0;
    for (int64_t i = k; i < grid.pieces() * grid.block(); i += grid.channels) sum += sums[i];
    const auto mean = static_cast<float>(sum / static_cast<double>(grid.pixels));
    for (int64_t i = k; i < grid.block(); i += grid.channels) means[i] = mean;
  }
}

// Images of one piece: a thread finds the means of an image and uses them at once.
template <class T, class F>
void AroundMeansOfSmall(ThreadPool& pool, const ContrastGrid& grid, const T* in, float* out,
                        const F& f) {
  grid.ForPieces(pool, 0.5, [&](int64_t first, int64_t last) {
    std::vector<double> sums(grid.block());
    std::vector<float> means(grid.block());
    for (int64_t image = first; image < last; ++image) {
      std::fill(sums.begin(), sums.end(), 0.0);
      AddPiece(grid, in, image, sums.data());
      ToMeans(grid, sums.data(), means.data());
      grid.ForEachBlock(image,
                        [&](int64_t at, int64_t n) { f(in + at, means.data(), n, out + at); });
    }
  });
}

template <class T, class F>
void AroundMeansOfLarge(ThreadPool& pool, const ContrastGrid& grid, const T* in, float* out,
                        const F& f) {
  const int64_t block = grid.block(), pieces = grid.pieces();
  std::vector<double> sums(grid.images * pieces * block);
  grid.ForPieces(pool, 0.2, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) AddPiece(grid, in, i, &sums[i * block]);
  });
  std::vector<float> means(grid.images * block);
  for (int64_t image = 0; image < grid.images; ++image) {
    ToMeans(grid, &sums[image * pieces * block], &means[image * block]);
  }
  grid.ForPieces(pool, 0.3, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const float* const own = &means[i / pieces * block];
      grid.ForEachBlock(i, [&](int64_t at, int64_t n) { f(in + at, own, n, out + at); });
    }
  });
}

// Calls f(elements, their means, how many, results) for all blocks of all images.
template <class T, class F>
absl::Status AroundMeans(KernelContext& c, const F& f) {
  const Tensor &in = c.input(0), &factor = c.input(1);
  WEIR_RETURN_IF_ERROR(CheckPixels(in));
  WEIR_RETURN_IF_ERROR(CheckScalar(factor, "contrast_factor"));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, in.shape()));
  if (in.num_elements() == 0) return absl::OkStatus();
  const ContrastGrid grid(in);
  const T* const from = in.data<T>();
  float* const to = out->data<float>();
  if (grid.pieces() == 1) {
    AroundMeansOfSmall(c.pool(), grid, from, to, f);
  } else {
    AroundMeansOfLarge(c.pool(), grid, from, to, f);
  }
  return absl::OkStatus();
}

absl::Status AdjustContrastV2(KernelContext& c) {
  WEIR_RETURN_IF_ERROR(CheckScalar(c.input(1), "contrast_factor"));
  const float factor = c.input(1).scalar<float>();
  return AroundMeans<float>(c, [factor](const float* x, const float* means, int64_t n, float* out) {
    color_rows::ScaleDifferences(x, means, factor, n, out);
  });
}

template <class T>
absl::Status AdjustContrast(KernelContext& c) {
  const char* const names[] = {"contrast_factor", "min_value", "max_value"};
  for (int i = 1; i < 4; ++i) WEIR_RETURN_IF_ERROR(CheckScalar(c.input(i), names[i - 1]));
  const float factor = c.input(1).scalar<float>(), low = c.input(2).scalar<float>(),
              high = c.input(3).scalar<float>();
  return AroundMeans<T>(c, [=](const T* x, const float* means, int64_t n, float* out) {
    for (int64_t i = 0; i < n; ++i) {
      const float scaled = (static_cast<float>(x[i]) - means[i]) * factor + means[i];
      out[i] = std::max(std::min(scaled, high), low);
    }
  });
}

template <class... Ts>
void AddConversions(KernelRegistry* r, List<Ts...>) {
  (r->Add("RGBToHSV", kCpu, DataTypeOf<Ts>::value, Convert<Ts, true>), ...);
  (r->Add("HSVToRGB", kCpu, DataTypeOf<Ts>::value, Convert<Ts, false>), ...);
}

template <class... Ts>
void AddContrast(KernelRegistry* r, List<Ts...>) {
  (r->Add("AdjustContrast", kCpu, DataTypeOf<Ts>::value, AdjustContrast<Ts>), ...);
}

}  // namespace

void AddColorCpu(KernelRegistry* r) {
  AddConversions(r, Floats{});
  AddContrast(r, List<uint8_t, int8_t, int16_t, int32_t, float, double>{});
  r->Add("AdjustContrastv2", kCpu, DT_FLOAT, AdjustContrastV2);
  r->Add("AdjustHue", kCpu, DT_FLOAT, Adjust<RotateHue>);
  r->Add("AdjustSaturation", kCpu, DT_FLOAT, Adjust<Saturate>);
}

}  // namespace weir
