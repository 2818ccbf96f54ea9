#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "weir/tests/kernels/lib/pick.h"

// Gradients checked to order 1 by rows: ResizeNearestNeighbor.

// Resizing, crops, colors and projections, compared with their definitions in double.
namespace weir {
namespace {

using namespace pick;  // NOLINT: a vocabulary made for these tables

// ---- resizing: the old pixels that contribute to each new pixel

using Weights = std::vector<std::map<int64_t, double>>;
using Filter = Weights (*)(int64_t in, int64_t out, bool align, bool half);

double Ratio(int64_t in, int64_t out, bool align) {
  return align && in > 1 && out > 1 ? (in - 1.0) / (out - 1.0) : 1.0 * in / out;
}
double Position(int64_t i, double ratio, bool half) {
  return half ? (i + 0.5) * ratio - 0.5 : i * ratio;
}
int64_t Clamp(int64_t i, int64_t n) { return std::clamp<int64_t>(i, 0, n - 1); }

Weights Linear(int64_t in, int64_t out, bool align, bool half) {
  Weights w(out);
  for (int64_t i = 0; i < out; ++i) {
    const double at = Position(i, Ratio(in, out, align), half), low = std::floor(at + 1e-6);
    w[i][Clamp(static_cast<int64_t>(low), in)] += 1 - (at - low);
    w[i][Clamp(static_cast<int64_t>(low) + 1, in)] += at - low;
  }
  return w;
}

// Keys' piecewise cubic (1981) at a distance.
double Cubic(double a, double d) {
  d = std::abs(d);
  if (d >= 2) return 0;
  return d <= 1 ? (a + 2) * d * d * d - (a + 3) * d * d + 1
                : a * d * d * d - 5 * a * d * d + 8 * a * d - 4 * a;
}

Weights Bicubic(int64_t in, int64_t out, bool align, bool half) {
  Weights w(out);
  for (int64_t i = 0; i < out; ++i) {
    const double at = Position(i, Ratio(in, out, align), half), low = std::floor(at + 1e-6);
    const double rounded = low + std::round((at - low) * 1024) / 1024;
    double sum = 0;
    for (int64_t k = static_cast<int64_t>(low) - 1; k <= low + 2; ++k) {
      const double weight = Cubic(half ? -0.5 : -0.75, static_cast<double>(k) - rounded);
      if (half && (k < 0 || k >= in)) continue;
      w[i][Clamp(k, in)] += weight;
      sum += weight;
    }
    for (auto& [k, weight] : w[i]) weight /= sum;
  }
  return w;
}

Weights Area(int64_t in, int64_t out, bool align, bool) {
  Weights w(out);
  const double ratio = Ratio(in, out, align);
  for (int64_t i = 0; i < out; ++i) {
    for (int64_t k = 0; k <= in; ++k) {
      const double covered =
          std::min<double>(k + 1, (i + 1) * ratio) - std::max<double>(k, i * ratio);
      if (covered > 1e-6) w[i][Clamp(k, in)] += covered / ratio;
    }
  }
  return w;
}

Weights Nearest(int64_t in, int64_t out, bool align, bool half) {
  Weights w(out);
  for (int64_t i = 0; i < out; ++i) {
    const double at = (i + (half ? 0.5 : 0.0)) * Ratio(in, out, align);
    w[i][Clamp(static_cast<int64_t>(align ? std::round(at) : std::floor(at + 1e-6)), in)] = 1;
  }
  return w;
}

// Calls fn(element of the resized images, element of the images, weight).
void ForEachTap(const Shape& images, const Weights& rows, const Weights& columns,
                const std::function<void(int64_t, int64_t, double)>& fn) {
  const Shape out({images.dim(0), static_cast<int64_t>(rows.size()),
                   static_cast<int64_t>(columns.size()), images.dim(3)});
  ForEachIndex(out, [&](int64_t to, const pick::Index& i) {
    for (const auto& [y, wy] : rows[i[1]]) {
      for (const auto& [x, wx] : columns[i[2]]) fn(to, Flat(images, {i[0], y, x, i[3]}), wy * wx);
    }
  });
}

bool Flag(const Node& n, const char* name) { return n.attr_or<bool>(name, false); }

OpReference ResizeOf(Filter filter, int64_t height, int64_t width) {
  return [=](const Node& n, const Tensors& in) {
    const bool align = Flag(n, "align_corners"), half = Flag(n, "half_pixel_centers");
    const Shape& s = in[0].shape();
    const std::vector<double> x = ToDoubles(in[0]);
    std::vector<double> y(s.dim(0) * height * width * s.dim(3));
    ForEachTap(s, filter(s.dim(1), height, align, half), filter(s.dim(2), width, align, half),
               [&](int64_t to, int64_t from, double weight) { y[to] += weight * x[from]; });
    return Tensors{Doubles(Shape({s.dim(0), height, width, s.dim(3)}), y)};
  };
}

// Input 0 holds gradients of images resized to `resized`; the result has the size of `images`.
OpReference ResizeGradOf(Filter filter, const Shape& images) {
  return [=](const Node& n, const Tensors& in) {
    const bool align = Flag(n, "align_corners"), half = Flag(n, "half_pixel_centers");
    const std::vector<double> dy = ToDoubles(in[0]);
    std::vector<double> dx(images.num_elements());
    ForEachTap(images, filter(images.dim(1), in[0].dim(1), align, half),
               filter(images.dim(2), in[0].dim(2), align, half),
               [&](int64_t from, int64_t to, double weight) { dx[to] += weight * dy[from]; });
    return Tensors{Doubles(images, dx)};
  };
}

struct Grid {
  const char* label;
  bool align, half;
};
constexpr Grid kGrids[] = {{"plain", false, false}, {"align", true, false}, {"half", false, true}};

OpCase OnGrid(OpCase c, const Grid& g, const std::string& size) {
  c.Label(absl::StrCat(g.label, "_", size)).Attr("align_corners", g.align);
  return c.op() == "ResizeArea" ? c : c.Attr("half_pixel_centers", g.half);
}

void AddResizing(std::vector<OpCase>* all) {
  const Shape images({2, 3, 5, 2});
  const struct {
    const char* label;
    int32_t height, width;
  } sizes[] = {{"up", 7, 9}, {"down", 2, 3}, {"same", 3, 5}, {"one", 1, 1}};
  const std::pair<const char*, Filter> ops[] = {{"ResizeBilinear", Linear},
                                                {"ResizeBicubic", Bicubic},
                                                {"ResizeArea", Area},
                                                {"ResizeNearestNeighbor", Nearest}};
  for (const auto& [op, filter] : ops) {
    const bool nearest = filter == Nearest, area = filter == Area;
    for (const Grid& g : kGrids) {
      if (area && g.half) continue;
      for (const auto& s : sizes) {
        all->push_back(OnGrid(OpCase(op)
                                  .Input(images)
                                  .Input(I32({s.height, s.width}))
                                  .ToleranceFactor(4)
                                  .Gradient(nearest ? 1 : 0)
                                  .Reference(ResizeOf(filter, s.height, s.width)),
                              g, s.label));
        if (area) continue;
        const Shape resized({2, s.height, s.width, 2});
        OpCase grad(std::string(op) + "Grad");
        if (nearest) {
          grad.Input(resized).Input(I32({3, 5}));
        } else {
          grad.Input(DT_FLOAT, resized).Input(images);
        }
        all->push_back(OnGrid(grad.ToleranceFactor(nearest ? 8 : 4)
                                  .Gradient(0)
                                  .Reference(ResizeGradOf(filter, images)),
                              g, s.label)
                           .Tolerance(DT_DOUBLE, 1e-5));
      }
    }
  }
}

// ---- crops

// The sampling points of a crop along one side, in pixels of the image.
std::vector<double> CropPoints(double begin, double end, int64_t crop, int64_t size) {
  std::vector<double> points;
  for (int64_t i = 0; i < crop; ++i) {
    const double share = crop > 1 ? static_cast<double>(i) / (crop - 1) : 0.5;
    points.push_back((begin + share * (end - begin)) * (size - 1));
  }
  return points;
}

Tensors CropReference(const Node& n, const Tensors& in) {
  const Shape& s = in[0].shape();
  const std::vector<double> x = ToDoubles(in[0]);
  const float* boxes = in[1].data<float>();
  const int64_t height = in[3].IntAt(0), width = in[3].IntAt(1);
  const double outside = n.attr<float>("extrapolation_value");
  const bool linear = n.attr<std::string>("method") == "bilinear";
  std::vector<double> y;
  for (int64_t b = 0; b < in[1].dim(0); ++b, boxes += 4) {
    for (const double py : CropPoints(boxes[0], boxes[2], height, s.dim(1))) {
      for (const double px : CropPoints(boxes[1], boxes[3], width, s.dim(2))) {
        for (int64_t c = 0; c < s.dim(3); ++c) {
          const auto at = [&](double row, double column) {
            return x[Flat(
                s, {in[2].IntAt(b), static_cast<int64_t>(row), static_cast<int64_t>(column), c})];
          };
          const double y0 = std::floor(py), x0 = std::floor(px), fy = py - y0, fx = px - x0;
          if (py < 0 || py > s.dim(1) - 1 || px < 0 || px > s.dim(2) - 1) {
            y.push_back(outside);
          } else if (linear) {
            const double y1 = std::ceil(py), x1 = std::ceil(px);
            y.push_back((1 - fy) * ((1 - fx) * at(y0, x0) + fx * at(y0, x1)) +
                        fy * ((1 - fx) * at(y1, x0) + fx * at(y1, x1)));
          } else {
            y.push_back(at(std::round(py), std::round(px)));
          }
        }
      }
    }
  }
  return {Doubles(Shape({in[1].dim(0), height, width, s.dim(3)}), y)};
}

void AddCrops(std::vector<OpCase>* all) {
  // No sampling point is midway between two pixels.
  const Tensor boxes = Tensor::Of<float>(
      {3, 4}, {0.1f, 0.2f, 0.8f, 0.92f, 0.6f, 0, 0.1f, 0.88f, -0.3f, 0.2f, 0.5f, 1.36f});
  for (const char* method : {"bilinear", "nearest"}) {
    for (const int32_t size : {1, 4}) {
      all->push_back(OpCase("CropAndResize")
                         .Label(absl::StrCat(method, size))
                         .Attr("method", method)
                         .Attr("extrapolation_value", 0.5f)
                         .Input({2, 5, 6, 2})
                         .Input(boxes)
                         .Input(I32({1, 0, 1}))
                         .Input(I32({size, size + 1}))
                         .Gradient(0)
                         .Tolerance(DT_DOUBLE, 1e-5)
                         .Reference(CropReference));
    }
  }
}

// ---- colors

// Source: the hexagon of hues, in degrees (en.wikipedia.org/wiki/HSL_and_HSV).
Tensors RgbToHsvReference(const Node&, const Tensors& in) {
  std::vector<double> v = ToDoubles(in[0]);
  for (size_t i = 0; i < v.size(); i += 3) {
    const double r = v[i], g = v[i + 1], b = v[i + 2], top = std::max({r, g, b}),
                 chroma = top - std::min({r, g, b});
    double degrees = 0;
    if (chroma > 0) {
      degrees = top == r   ? 60 * std::fmod((g - b) / chroma + 6, 6)
                : top == g ? 60 * ((b - r) / chroma + 2)
                           : 60 * ((r - g) / chroma + 4);
    }
    v[i] = degrees / 360;
    v[i + 1] = top > 0 ? chroma / top : 0;
    v[i + 2] = top;
  }
  return {Doubles(in[0].shape(), v)};
}

void HsvToRgb(const double* hsv, double* rgb) {
  const double chroma = hsv[1] * hsv[2], sector = std::fmod(hsv[0], 1) * 6,
               x = chroma * (1 - std::abs(std::fmod(sector, 2) - 1)), low = hsv[2] - chroma;
  const double parts[6][3] = {{chroma, x, 0}, {x, chroma, 0}, {0, chroma, x},
                              {0, x, chroma}, {x, 0, chroma}, {chroma, 0, x}};
  for (int k = 0; k < 3; ++k) rgb[k] = parts[static_cast<int>(sector)][k] + low;
}

Tensors HsvToRgbReference(const Node&, const Tensors& in) {
  const std::vector<double> v = ToDoubles(in[0]);
  std::vector<double> out(v.size());
  for (size_t i = 0; i < v.size(); i += 3) HsvToRgb(&v[i], &out[i]);
  return {Doubles(in[0].shape(), out)};
}

// Converts to hue and saturation and back.
Tensors AdjustReference(const Node& n, const Tensors& in) {
  std::vector<double> v = ToDoubles(RgbToHsvReference(n, in)[0]);
  const double by = in[1].data<float>()[0];
  std::vector<double> out(v.size());
  for (size_t i = 0; i < v.size(); i += 3) {
    if (n.op_name() == "AdjustHue") {
      v[i] = std::fmod(v[i] + by + 10, 1);
    } else {
      v[i + 1] = std::clamp(v[i + 1] * by, 0.0, 1.0);
    }
    HsvToRgb(&v[i], &out[i]);
  }
  return {Doubles(in[0].shape(), out)};
}

Tensors ContrastReference(const Node& n, const Tensors& in) {
  std::vector<double> v = ToDoubles(in[0]);
  const int64_t channels = in[0].dim(-1), pixels = in[0].dim(-2) * in[0].dim(-3);
  const double factor = in[1].data<float>()[0];
  for (size_t image = 0; image < v.size(); image += pixels * channels) {
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (int64_t p = 0; p < pixels; ++p) sum += v[image + p * channels + c];
      for (int64_t p = 0; p < pixels; ++p) {
        double& x = v[image + p * channels + c];
        x = sum / pixels + factor * (x - sum / pixels);
      }
    }
  }
  return {Doubles(in[0].shape(), v)};
}

void AddColors(std::vector<OpCase>* all) {
  const Range unit = {0.02, 0.98, false, true};
  for (const Shape& shape : {Shape({3}), Shape({2, 3, 4, 3}), Shape({0, 3})}) {
    const std::string label = absl::StrCat("rank", shape.rank(), "_of_", shape.num_elements());
    all->push_back(OpCase("RGBToHSV")
                       .Label(label)
                       .Input(shape, unit)
                       .Tolerance(DT_HALF, 2e-2)
                       .Tolerance(DT_BFLOAT16, 2e-1)
                       .Reference(RgbToHsvReference));
    all->push_back(OpCase("HSVToRGB")
                       .Label(label)
                       .Input(shape, unit)
                       .Gradient(0)
                       .Reference(HsvToRgbReference));
  }
  for (const float by : {-0.7f, 0.0f, 0.3f, 2.6f}) {
    const std::string label = absl::StrCat("by", static_cast<int>(std::lround(by * 10 + 10)));
    for (const char* op : {"AdjustHue", "AdjustSaturation"}) {
      all->push_back(OpCase(op)
                         .Label(label)
                         .Input({2, 4, 3, 3}, unit)
                         .Input(Tensor::Scalar(by))
                         .Reference(AdjustReference));
    }
    all->push_back(OpCase("AdjustContrastv2")
                       .Label(label)
                       .Input({2, 4, 3, 2})
                       .Input(Tensor::Scalar(by))
                       .Reference(ContrastReference));
  }
}

// ---- projections

Tensors ProjectReference(const Node& n, const Tensors& in) {
  const Shape& s = in[0].shape();
  const Shape out({s.dim(0), in[2].IntAt(0), in[2].IntAt(1), s.dim(3)});
  const std::vector<double> x = ToDoubles(in[0]);
  const double fill = in.size() > 3 ? in[3].data<float>()[0] : 0;
  std::vector<double> y(out.num_elements());
  ForEachIndex(out, [&](int64_t to, const pick::Index& i) {
    const float* t = in[1].data<float>() + (in[1].dim(0) == 1 ? 0 : 8 * i[0]);
    const double k = t[6] * i[2] + t[7] * i[1] + 1;
    const double px = (t[0] * i[2] + t[1] * i[1] + t[2]) / k,
                 py = (t[3] * i[2] + t[4] * i[1] + t[5]) / k;
    const auto at = [&](double row, double column) {
      if (row < 0 || row >= s.dim(1) || column < 0 || column >= s.dim(2)) return fill;
      return x[Flat(s, {i[0], static_cast<int64_t>(row), static_cast<int64_t>(column), i[3]})];
    };
    if (n.attr<std::string>("interpolation") == "NEAREST") {
      y[to] = at(std::round(py), std::round(px));
      return;
    }
    const double y0 = std::floor(py), x0 = std::floor(px), fy = py - y0, fx = px - x0;
    y[to] = (1 - fy) * ((1 - fx) * at(y0, x0) + fx * at(y0, x0 + 1)) +
            fy * ((1 - fx) * at(y0 + 1, x0) + fx * at(y0 + 1, x0 + 1));
  });
  return {Doubles(out, y)};
}

void AddProjections(std::vector<OpCase>* all) {
  const Tensor transforms =
      Tensor::Of<float>({2, 8}, {1.1f, 0.2f, -0.6f, -0.1f, 0.9f, 0.35f, 0.01f, 0.02f,  //
                                 0.5f, 0, 1, 0, 0.5f, 0.25f, 0, 0});
  for (const char* op : {"ImageProjectiveTransformV2", "ImageProjectiveTransformV3"}) {
    for (const char* interpolation : {"NEAREST", "BILINEAR"}) {
      OpCase c(op);
      c.Label(interpolation)
          .TypeAttr("dtype")
          .Attr("interpolation", interpolation)
          .Input({2, 5, 6, 2})
          .Input(transforms)
          .Input(I32({4, 7}));
      if (op[25] == '3') c.Input(Tensor::Scalar(1.0f));
      // Integer types truncate, and a rounding error may change the result.
      if (interpolation[0] == 'B') c.Types(DataTypesOf(Floats()));
      all->push_back(c.Gradient(0)
                         .Tolerance(DT_DOUBLE, 1e-4)
                         .Tolerance(DT_FLOAT, 1e-4)
                         .Reference(ProjectReference));
    }
  }
}

std::vector<OpCase> ImageCases() {
  std::vector<OpCase> all;
  AddResizing(&all);
  AddCrops(&all);
  AddColors(&all);
  AddProjections(&all);
  return all;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Image, OpSweepTest, testing::ValuesIn(ImageCases()), OpCaseName);

}  // namespace weir
