#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/tensor/dtype.h"
#include "weir/tests/evaluate.h"

// The vector loops of resizing and crops, compared with plain loops over pixels: every bit where
// TensorFlow's operations are known, for sizes and channels with and without tails.
namespace weir {
namespace {

constexpr int64_t kChannels[] = {1, 2, 3, 4, 5, 7, 8, 15, 16, 19, 33};

// Numbers from -200 to 200, or all values of a narrow type.
template <class T>
Tensor Pixels(const Shape& shape, uint32_t seed) {
  Tensor t(DataTypeOf<T>::value, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    seed = seed * 1664525u + 1013904223u;
    const float unit = static_cast<float>(seed >> 8) / (1 << 24);
    if constexpr (std::is_integral_v<T>) {
      t.data<T>()[i] = static_cast<T>(seed >> 13);
    } else {
      t.data<T>()[i] = static_cast<T>(400 * unit - 200);
    }
  }
  return t;
}

struct Point {
  int64_t low, high;
  float fraction;
};

// As TensorFlow places the pixels of a resized side.
Point PointOf(int64_t i, int64_t original, int64_t resized, bool align, bool half) {
  const float scale = align && resized > 1
                          ? static_cast<float>(original - 1) / static_cast<float>(resized - 1)
                          : static_cast<float>(original) / static_cast<float>(resized);
  const float at =
      half ? (static_cast<float>(i) + 0.5f) * scale - 0.5f : static_cast<float>(i) * scale;
  const float low = std::floor(at);
  return {std::clamp<int64_t>(static_cast<int64_t>(low), 0, original - 1),
          std::clamp<int64_t>(static_cast<int64_t>(std::ceil(at)), 0, original - 1), at - low};
}

// As TensorFlow interpolates between four pixels.
template <class T>
float Interpolated(const Tensor& images, int64_t b, const Point& y, const Point& x, int64_t c) {
  const auto at = [&](int64_t row, int64_t column) {
    return static_cast<float>(
        images.data<T>()[((b * images.dim(1) + row) * images.dim(2) + column) * images.dim(3) + c]);
  };
  const float tl = at(y.low, x.low), tr = at(y.low, x.high), bl = at(y.high, x.low),
              br = at(y.high, x.high);
  const float top = tl + (tr - tl) * x.fraction, bottom = bl + (br - bl) * x.fraction;
  return top + (bottom - top) * y.fraction;
}

template <class T>
Tensor Bilinear(const Tensor& images, int64_t height, int64_t width, bool align, bool half) {
  const int64_t channels = images.dim(3);
  Tensor out(DT_FLOAT, Shape({images.dim(0), height, width, channels}));
  float* to = out.data<float>();
  for (int64_t b = 0; b < images.dim(0); ++b) {
    for (int64_t i = 0; i < height; ++i) {
      const Point y = PointOf(i, images.dim(1), height, align, half);
      for (int64_t j = 0; j < width; ++j) {
        const Point x = PointOf(j, images.dim(2), width, align, half);
        for (int64_t c = 0; c < channels; ++c) *to++ = Interpolated<T>(images, b, y, x, c);
      }
    }
  }
  return out;
}

void ExpectSameBits(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(got.shape(), want.shape());
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    ASSERT_EQ(got.data<float>()[i], want.data<float>()[i]) << "element " << i;
  }
}

Tensor Size(int64_t height, int64_t width) {
  return Tensor::Of<int32_t>(Shape({2}),
                             {static_cast<int32_t>(height), static_cast<int32_t>(width)});
}

template <class T>
void TestBilinear(const Shape& shape, int64_t height, int64_t width) {
  const Tensor images = Pixels<T>(shape, 7);
  for (const auto& [align, half] : {std::pair{false, false}, {true, false}, {false, true}}) {
    SCOPED_TRACE(absl::StrCat(DataTypeName(images.dtype()), " ", shape.ToString(), " to ", height,
                              "x", width, align ? " align" : "", half ? " half" : ""));
    const auto got = RunFed("ResizeBilinear", {images, Size(height, width)},
                            {{"align_corners", align}, {"half_pixel_centers", half}});
    ASSERT_TRUE(got.ok()) << got.status();
    ExpectSameBits((*got)[0], Bilinear<T>(images, height, width, align, half));
  }
}

TEST(Resize, BilinearHasTensorFlowsBits) {
  for (const int64_t channels : kChannels) {
    for (const auto& [height, width] : {std::pair{1, 1}, {4, 9}, {5, 3}, {13, 40}}) {
      TestBilinear<float>(Shape({2, 5, 9, channels}), height, width);
      TestBilinear<uint8_t>(Shape({2, 5, 9, channels}), height, width);
    }
  }
}

TEST(Resize, BilinearConvertsAllTypes) {
  for (const int64_t channels : {1, 3, 9}) {
    const Shape shape({1, 6, 11, channels});
    TestBilinear<int8_t>(shape, 4, 17);
    TestBilinear<int16_t>(shape, 4, 17);
    TestBilinear<uint16_t>(shape, 4, 17);
    TestBilinear<int32_t>(shape, 4, 17);
    TestBilinear<int64_t>(shape, 4, 17);
    TestBilinear<half>(shape, 4, 17);
    TestBilinear<bfloat16>(shape, 4, 17);
    TestBilinear<double>(shape, 4, 17);
  }
}

// Reads few pixels of each row; rows of a large result go around the caches.
TEST(Resize, BilinearOfUnusualSizes) {
  TestBilinear<uint8_t>(Shape({1, 20, 300, 3}), 3, 5);
  TestBilinear<uint8_t>(Shape({1, 3, 300, 16}), 2, 5);
  TestBilinear<float>(Shape({1, 20, 300, 3}), 3, 5);
  TestBilinear<float>(Shape({1, 8, 16, 32}), 512, 520);
  TestBilinear<float>(Shape({1, 8, 16, 24}), 512, 700);
}

// ---- filters by taps: rows first, then columns, taps in ascending order

TEST(Resize, BicubicSumsInOrder) {
  const int64_t height = 5, width = 7;
  for (const int64_t channels : kChannels) {
    const Tensor images = Pixels<float>(Shape({2, height, width, channels}), 3);
    // A position halfway between two pixels has the same four weights everywhere, and one on a
    // pixel that pixel alone.
    const auto got =
        RunFed("ResizeBicubic", {images, Size(2 * height, 2 * width)}, {{"align_corners", false}});
    ASSERT_TRUE(got.ok()) << got.status();
    const float halfway[] = {-0.09375f, 0.59375f, 0.59375f, -0.09375f}, on[] = {0, 1, 0, 0};
    const Tensor& out = (*got)[0];
    for (int64_t i = 0; i < out.num_elements(); ++i) {
      const int64_t c = i % channels, x = i / channels % (2 * width),
                    y = i / channels / (2 * width) % (2 * height),
                    b = i / channels / (4 * width * height);
      float sum = 0;
      for (int64_t kx = 0; kx < 4; ++kx) {
        float column = 0;
        for (int64_t ky = 0; ky < 4; ++ky) {
          const int64_t row = std::clamp<int64_t>(y / 2 + ky - 1, 0, height - 1),
                        at = std::clamp<int64_t>(x / 2 + kx - 1, 0, width - 1);
          column += (y % 2 ? halfway : on)[ky] *
                    images.data<float>()[((b * height + row) * width + at) * channels + c];
        }
        sum += (x % 2 ? halfway : on)[kx] * column;
      }
      ASSERT_EQ(out.data<float>()[i], sum) << channels << " channels, element " << i;
    }
  }
}

// Scatters gradients to the four pixels around each point, in double.
TEST(Resize, BilinearGradientScatters) {
  for (const int64_t channels : kChannels) {
    for (const auto& [height, width] : {std::pair{1, 1}, {3, 4}, {11, 20}}) {
      const Shape original({2, 5, 9, channels});
      const Tensor grads = Pixels<float>(Shape({2, height, width, channels}), 5);
      std::vector<double> want(original.num_elements());
      for (int64_t i = 0; i < grads.num_elements(); ++i) {
        const int64_t c = i % channels, x = i / channels % width, y = i / channels / width % height,
                      b = i / channels / width / height;
        const Point py = PointOf(y, 5, height, false, true), px = PointOf(x, 9, width, false, true);
        for (const auto& [row, wy] :
             {std::pair{py.low, 1.0 - py.fraction}, {py.high, 1.0 * py.fraction}}) {
          for (const auto& [col, wx] :
               {std::pair{px.low, 1.0 - px.fraction}, {px.high, 1.0 * px.fraction}}) {
            want[((b * 5 + row) * 9 + col) * channels + c] += wy * wx * grads.data<float>()[i];
          }
        }
      }
      for (const DataType type : {DT_FLOAT, DT_DOUBLE}) {
        const auto got = RunFed("ResizeBilinearGrad", {grads, Tensor::Zeros(type, original)},
                                {{"half_pixel_centers", true}});
        ASSERT_TRUE(got.ok()) << got.status();
        for (size_t i = 0; i < want.size(); ++i) {
          const double value =
              type == DT_FLOAT ? (*got)[0].data<float>()[i] : (*got)[0].data<double>()[i];
          ASSERT_NEAR(value, want[i], 2e-3) << channels << " channels, element " << i;
        }
      }
    }
  }
}

// ---- crops

Point CropPoint(float begin, float end, int64_t i, int64_t crop, int64_t size) {
  const float last = static_cast<float>(size - 1);
  const float scale = crop > 1 ? (end - begin) * last / static_cast<float>(crop - 1) : 0;
  const float at = crop > 1 ? begin * last + static_cast<float>(i) * scale
                            : static_cast<float>(0.5 * (begin + end) * last);
  if (!(at >= 0 && at <= last)) return {-1, -1, 0};
  return {static_cast<int64_t>(std::floor(at)), static_cast<int64_t>(std::ceil(at)),
          at - std::floor(at)};
}

template <class T>
void TestCrops(const Shape& shape, int64_t height, int64_t width) {
  SCOPED_TRACE(absl::StrCat(shape.ToString(), " to ", height, "x", width));
  const Tensor images = Pixels<T>(shape, 11);
  const std::vector<float> boxes = {0,    0,    1,     1,    0.1f, 0.2f, 0.8f, 0.9f, 0.9f, 0.7f,
                                    0.2f, 0.1f, -0.5f, 0.3f, 0.7f, 1.4f, 2,    2,    3,    3};
  const int64_t count = static_cast<int64_t>(boxes.size()) / 4;
  for (const bool bilinear : {true, false}) {
    const auto got =
        RunFed("CropAndResize",
               {images, Tensor::Of<float>(Shape({count, 4}), boxes),
                Tensor::Of<int32_t>(Shape({count}), {0, 1, 0, 1, 0}), Size(height, width)},
               {{"method", std::string(bilinear ? "bilinear" : "nearest")},
                {"extrapolation_value", 7.0f}});
    ASSERT_TRUE(got.ok()) << got.status();
    const float* value = (*got)[0].data<float>();
    for (int64_t b = 0; b < count; ++b) {
      const float* box = &boxes[4 * b];
      for (int64_t i = 0; i < height * width; ++i) {
        Point y = CropPoint(box[0], box[2], i / width, height, shape.dim(1)),
              x = CropPoint(box[1], box[3], i % width, width, shape.dim(2));
        if (!bilinear) {
          y = {y.low + (y.fraction >= 0.5f), y.low + (y.fraction >= 0.5f), 0};
          x = {x.low + (x.fraction >= 0.5f), x.low + (x.fraction >= 0.5f), 0};
        }
        for (int64_t c = 0; c < shape.dim(3); ++c, ++value) {
          const float want = y.low < 0 || x.low < 0 ? 7 : Interpolated<T>(images, b % 2, y, x, c);
          ASSERT_EQ(*value, want) << "box " << b << ", pixel " << i << ", channel " << c;
        }
      }
    }
  }
}

TEST(Resize, CropsHaveTensorFlowsBits) {
  for (const int64_t channels : kChannels) {
    for (const auto& [height, width] : {std::pair{1, 1}, {4, 5}, {16, 37}}) {
      TestCrops<float>(Shape({2, 7, 10, channels}), height, width);
      TestCrops<uint8_t>(Shape({2, 7, 10, channels}), height, width);
    }
  }
  TestCrops<uint8_t>(Shape({2, 30, 200, 3}), 3, 4);
  TestCrops<double>(Shape({2, 9, 12, 3}), 6, 4);
}

// Overlapping boxes of two images, one of them flipped and partly outside.
TEST(Resize, CropGradientsScatter) {
  const float boxes[] = {0, 0, 1, 1, 0.1f, 0.2f, 0.8f, 0.9f, 0.9f, 0.7f, -0.2f, 0.1f};
  constexpr int64_t kHeight = 7, kWidth = 10, kRows = 6, kColumns = 13;
  for (const int64_t channels : kChannels) {
    const Tensor grads = Pixels<float>(Shape({3, kRows, kColumns, channels}), 5);
    std::vector<double> want(2 * kHeight * kWidth * channels);
    for (int64_t i = 0; i < grads.num_elements(); ++i) {
      const int64_t c = i % channels, x = i / channels % kColumns,
                    y = i / channels / kColumns % kRows, b = i / channels / kColumns / kRows;
      const float* box = boxes + 4 * b;
      const Point py = CropPoint(box[0], box[2], y, kRows, kHeight),
                  px = CropPoint(box[1], box[3], x, kColumns, kWidth);
      if (py.low < 0 || px.low < 0) continue;
      const auto add = [&](int64_t row, int64_t column, double weight) {
        want[((b % 2 * kHeight + row) * kWidth + column) * channels + c] +=
            weight * grads.data<float>()[i];
      };
      add(py.low, px.low, (1.0 - py.fraction) * (1.0 - px.fraction));
      add(py.low, px.high, (1.0 - py.fraction) * px.fraction);
      add(py.high, px.low, py.fraction * (1.0 - px.fraction));
      add(py.high, px.high, static_cast<double>(py.fraction) * px.fraction);
    }
    const Tensor size =
        Tensor::Of<int32_t>(Shape({4}), {2, kHeight, kWidth, static_cast<int32_t>(channels)});
    for (const DataType type : {DT_FLOAT, DT_DOUBLE}) {
      const auto got = RunFed("CropAndResizeGradImage",
                              {grads, Tensor::Of<float>(Shape({3, 4}), boxes),
                               Tensor::Of<int32_t>(Shape({3}), {0, 1, 0}), size},
                              {{"T", type}});
      ASSERT_TRUE(got.ok()) << got.status();
      for (size_t i = 0; i < want.size(); ++i) {
        const double value =
            type == DT_FLOAT ? (*got)[0].data<float>()[i] : (*got)[0].data<double>()[i];
        ASSERT_NEAR(value, want[i], 2e-3) << channels << " channels, element " << i;
      }
    }
  }
}

}  // namespace
}  // namespace weir
