#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "weir/kernels/image/image.h"
#include "weir/kernels/image/image_rows.h"
#include "weir/kernels/image/resample.h"
#include "weir/kernels/lib/accumulate.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/strided_copy.h"

// Image resizing: by weighted sums (resample.h), or by copying the nearest pixel.
namespace weir {

namespace {

// The sizes of images before and after resizing. For a gradient the images are the result.
struct Resizing {
  int64_t batch = 0;
  ImageSize image;
  Extent resized;
};

absl::Status CheckGrid(const ResizeGrid& grid) {
  if (grid.half_pixel_centers && grid.align_corners) {
    return InvalidArgument("If half_pixel_centers is True, align_corners must be False.");
  }
  return absl::OkStatus();
}

// Checks that the tensor has rank 4, is not empty, and has sides that fit an int32.
absl::Status CheckImages(const Tensor& t, absl::string_view argument) {
  if (t.rank() != 4) {
    return InvalidArgument(argument, " must be 4-dimensional, but has shape ",
                           t.shape().ToString());
  }
  if (t.dim(1) <= 0 || t.dim(2) <= 0) {
    return InvalidArgument(argument, " must be of non-zero size, but has shape ",
                           t.shape().ToString());
  }
  constexpr int64_t kMaxSide = std::numeric_limits<int32_t>::max();
  if (t.dim(1) >= kMaxSide || t.dim(2) >= kMaxSide) {
    return InvalidArgument(argument, " sizes must be between 0 and max int32, but are ",
                           t.shape().ToString());
  }
  return absl::OkStatus();
}

absl::StatusOr<Resizing> ReadForward(const KernelContext& c) {
  const Tensor& images = c.input(0);
  WEIR_RETURN_IF_ERROR(CheckImages(images, "input"));
  if (images.dim(3) <= 0) return InvalidArgument("image must have at least one channel");
  WEIR_ASSIGN_OR_RETURN(const Extent resized, ReadExtent(c.input(1), "size", images));
  return Resizing{images.dim(0), {images.dim(1), images.dim(2), images.dim(3)}, resized};
}

absl::StatusOr<Resizing> ReadGradient(const KernelContext& c) {
  const Tensor &grads = c.input(0), &original = c.input(1);
  WEIR_RETURN_IF_ERROR(CheckImages(grads, "input_grad"));
  WEIR_RETURN_IF_ERROR(CheckImages(original, "original_image"));
  return Resizing{
      grads.dim(0), {original.dim(1), original.dim(2), grads.dim(3)}, {grads.dim(1), grads.dim(2)}};
}

// A function that makes the taps of rows (dimension 0) or columns (1).
using MakeTaps = std::function<absl::StatusOr<Taps>(const KernelContext&, int dimension,
                                                    int64_t original, int64_t resized)>;

// Inputs 2 and 3, if present, are the scales and translations of rows and of columns.
absl::Status CheckSampling(const KernelContext& c) {
  if (c.num_inputs() < 4) return absl::OkStatus();
  for (int i = 2; i < 4; ++i) {
    if (c.input(i).rank() != 1 || c.input(i).num_elements() != 2) {
      return InvalidArgument(i == 2 ? "scale" : "translation",
                             " must be 1-dimensional and have two elements, but has shape ",
                             c.input(i).shape().ToString());
    }
  }
  const float* const scale = c.input_data<float>(2);
  if (!(scale[0] > 0) || !(scale[1] > 0))
    return InvalidArgument("Scale must be greater than zero.");
  return absl::OkStatus();
}

template <class T>
absl::Status RunForward(KernelContext& c, const MakeTaps& taps) {
  WEIR_ASSIGN_OR_RETURN(const Resizing r, ReadForward(c));
  WEIR_RETURN_IF_ERROR(CheckSampling(c));
  WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape({r.batch, r.resized.height, r.resized.width,
                                                         r.image.channels}));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(const Taps rows, taps(c, 0, r.image.height, r.resized.height));
  WEIR_ASSIGN_OR_RETURN(const Taps columns, taps(c, 1, r.image.width, r.resized.width));
  Resample(c.pool(), r.batch, r.image, rows, columns, c.input_data<T>(0), out->data<float>());
  return absl::OkStatus();
}

template <class T>
absl::Status RunGradient(KernelContext& c, const MakeTaps& taps) {
  WEIR_ASSIGN_OR_RETURN(const Resizing r, ReadGradient(c));
  WEIR_RETURN_IF_ERROR(CheckSampling(c));
  WEIR_ASSIGN_OR_RETURN(const Shape shape,
                        CheckedShape({r.batch, r.image.height, r.image.width, r.image.channels}));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(const Taps rows, taps(c, 0, r.image.height, r.resized.height));
  WEIR_ASSIGN_OR_RETURN(const Taps columns, taps(c, 1, r.image.width, r.resized.width));
  ResampleGradient(c.pool(), r.batch, r.image, rows, columns, c.input_data<float>(0),
                   out->data<T>());
  return absl::OkStatus();
}

// Bilinear resizing. As in TensorFlow, an image that keeps its size is only converted.
template <class T>
absl::Status ResizeBilinear(KernelContext& c, const ResizeGrid& grid) {
  WEIR_ASSIGN_OR_RETURN(const Resizing r, ReadForward(c));
  WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape({r.batch, r.resized.height, r.resized.width,
                                                         r.image.channels}));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  WEIR_RETURN_IF_ERROR(CheckGrid(grid));
  const T* const in = c.input_data<T>(0);
  float* const to = out->data<float>();
  if (r.image.height == r.resized.height && r.image.width == r.resized.width) {
    c.pool().ParallelFor(out->num_elements(), 0.2, [&](int64_t begin, int64_t end) {
      image_rows::Widen(DataTypeOf<T>::value, in + begin, end - begin, to + begin);
    });
    return absl::OkStatus();
  }
  ResampleBilinear(c.pool(), r.batch, r.image, BilinearLerp(grid, r.image.height, r.resized.height),
                   BilinearLerp(grid, r.image.width, r.resized.width), in, to);
  return absl::OkStatus();
}

// Taps that depend only on the attributes.
absl::StatusOr<MakeTaps> GridTaps(const KernelInit& init,
                                  Taps (*make)(const ResizeGrid&, int64_t, int64_t)) {
  const ResizeGrid grid = {init.node.attr_or<bool>("align_corners", false),
                           init.node.attr_or<bool>("half_pixel_centers", false)};
  return MakeTaps([grid, make](const KernelContext&, int, int64_t original,
                               int64_t resized) -> absl::StatusOr<Taps> {
    WEIR_RETURN_IF_ERROR(CheckGrid(grid));
    return make(grid, original, resized);
  });
}

absl::StatusOr<MakeTaps> SampledTaps(const KernelInit& init) {
  const std::string kernel = init.attr<std::string>("kernel_type");
  const bool antialias = init.attr<bool>("antialias");
  return MakeTaps([kernel, antialias](const KernelContext& c, int dimension, int64_t original,
                                      int64_t resized) -> absl::StatusOr<Taps> {
    return KernelTaps(kernel, antialias, c.input_data<float>(2)[dimension],
                      c.input_data<float>(3)[dimension], original, resized);
  });
}

using TapsFactory = absl::StatusOr<MakeTaps> (*)(const KernelInit&);

template <class... Ts>
void AddResampling(KernelRegistry* r, absl::string_view op, List<Ts...>, TapsFactory factory) {
  (r->Add(op, kCpu, DataTypeOf<Ts>::value,
          [factory](const KernelInit& init) -> absl::StatusOr<Kernel> {
            WEIR_ASSIGN_OR_RETURN(MakeTaps taps, factory(init));
            return Kernel(
                [taps = std::move(taps)](KernelContext& c) { return RunForward<Ts>(c, taps); });
          }),
   ...);
}

template <class... Ts>
void AddGradients(KernelRegistry* r, absl::string_view op, List<Ts...>, TapsFactory factory) {
  (r->Add(op, kCpu, DataTypeOf<Ts>::value,
          [factory](const KernelInit& init) -> absl::StatusOr<Kernel> {
            WEIR_ASSIGN_OR_RETURN(MakeTaps taps, factory(init));
            return Kernel(
                [taps = std::move(taps)](KernelContext& c) { return RunGradient<Ts>(c, taps); });
          }),
   ...);
}

// ---- nearest neighbors

// Returns the original pixel of each pixel of the resized image.
std::vector<int64_t> NearestPixels(const ResizeGrid& grid, int64_t original, int64_t resized) {
  const float scale = grid.Scale(original, resized);
  std::vector<int64_t> pixels(resized);
  for (int64_t i = 0; i < resized; ++i) {
    const float at = (static_cast<float>(i) + (grid.half_pixel_centers ? 0.5f : 0.0f)) * scale;
    pixels[i] = std::clamp<int64_t>(
        static_cast<int64_t>(grid.align_corners ? std::round(at) : std::floor(at)), 0,
        original - 1);
  }
  return pixels;
}

absl::Status ResizeNearest(KernelContext& c, const ResizeGrid& grid) {
  WEIR_RETURN_IF_ERROR(CheckGrid(grid));
  WEIR_ASSIGN_OR_RETURN(const Resizing r, ReadForward(c));
  constexpr int64_t kMaxSide = 1 << 24;  // the integers that a float represents exactly
  if (r.image.height >= kMaxSide || r.image.width >= kMaxSide) {
    return InvalidArgument("nearest neighbor requires max height & width of 2^24");
  }
  const Extent& to = r.resized;
  WEIR_ASSIGN_OR_RETURN(const Shape shape,
                        CheckedShape({r.batch, to.height, to.width, r.image.channels}));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  const std::vector<int64_t> rows = NearestPixels(grid, r.image.height, to.height);
  const std::vector<int64_t> columns = NearestPixels(grid, r.image.width, to.width);
  const Tensor& in = c.input(0);
  const int64_t channels = r.image.channels;
  const size_t pixel = channels * ElementSize(in.dtype());
  c.pool().ParallelFor(
      r.batch * to.height, 2.0 * static_cast<double>(to.width * channels),
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t from =
              row / to.height * r.image.size() + rows[row % to.height] * r.image.row();
          char* target = static_cast<char*>(ElementAt(*out, row * to.width * channels));
          for (int64_t x = 0; x < to.width; ++x, target += pixel) {
            std::memcpy(target, ElementAt(in, from + columns[x] * channels), pixel);
          }
        }
      });
  return absl::OkStatus();
}

template <class T>
absl::Status ResizeNearestGradient(KernelContext& c, const ResizeGrid& grid) {
  WEIR_RETURN_IF_ERROR(CheckGrid(grid));
  const Tensor& grads = c.input(0);
  if (grads.rank() != 4) {
    return InvalidArgument("input must be 4-dimensional, but has shape ", grads.shape().ToString());
  }
  WEIR_ASSIGN_OR_RETURN(const Extent original, ReadExtent(c.input(1), "size", grads));
  const int64_t batch = grads.dim(0), height = grads.dim(1), width = grads.dim(2),
                channels = grads.dim(3);
  WEIR_ASSIGN_OR_RETURN(const Shape shape,
                        CheckedShape({batch, original.height, original.width, channels}));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  std::fill_n(out->data<T>(), out->num_elements(), T(0));
  if (grads.num_elements() == 0 || out->num_elements() == 0) return absl::OkStatus();
  const std::vector<int64_t> rows = NearestPixels(grid, original.height, height);
  const std::vector<int64_t> columns = NearestPixels(grid, original.width, width);
  const T* grad = grads.data<T>();
  for (int64_t row = 0; row < batch * height; ++row) {
    T* to = out->data<T>() +
            (row / height * original.height + rows[row % height]) * original.width * channels;
    for (int64_t x = 0; x < width; ++x) {
      T* pixel = to + columns[x] * channels;
      for (int64_t i = 0; i < channels; ++i, ++grad) pixel[i] = Add(pixel[i], *grad);
    }
  }
  return absl::OkStatus();
}

KernelFactory OnGrid(absl::Status (*run)(KernelContext&, const ResizeGrid&)) {
  return [run](const KernelInit& init) -> absl::StatusOr<Kernel> {
    const ResizeGrid grid = {init.attr<bool>("align_corners"),
                             init.attr<bool>("half_pixel_centers")};
    return Kernel([run, grid](KernelContext& c) { return run(c, grid); });
  };
}

template <class... Ts>
void AddBilinear(KernelRegistry* r, List<Ts...>) {
  (r->Add("ResizeBilinear", kCpu, DataTypeOf<Ts>::value, OnGrid(ResizeBilinear<Ts>)), ...);
}
template <class... Ts>
void AddNearest(KernelRegistry* r, List<Ts...>) {
  (r->Add("ResizeNearestNeighbor", kCpu, DataTypeOf<Ts>::value, OnGrid(ResizeNearest)), ...);
}
template <class... Ts>
void AddNearestGradient(KernelRegistry* r, List<Ts...>) {
  (r->Add("ResizeNearestNeighborGrad", kCpu, DataTypeOf<Ts>::value,
          OnGrid(ResizeNearestGradient<Ts>)),
   ...);
}

}  // namespace

void AddResizeCpu(KernelRegistry* r) {
  const TapsFactory bilinear = [](const KernelInit& init) { return GridTaps(init, BilinearTaps); };
  const TapsFactory bicubic = [](const KernelInit& init) { return GridTaps(init, BicubicTaps); };
  const TapsFactory area = [](const KernelInit& init) { return GridTaps(init, AreaTaps); };
  AddBilinear(r, PixelTypes{});
  AddResampling(r, "ResizeBicubic", PixelTypes{}, bicubic);
  AddResampling(r, "ResizeArea", PixelTypes{}, area);
  AddResampling(r, "ScaleAndTranslate", PixelTypes{}, SampledTaps);
  AddGradients(r, "ResizeBilinearGrad", Floats{}, bilinear);
  AddGradients(r, "ResizeBicubicGrad", List<float, double>{}, bicubic);
  AddGradients(r, "ScaleAndTranslateGrad", List<float>{}, SampledTaps);
  AddNearest(r, PixelTypes{});
  AddNearestGradient(r, List<uint8_t, int8_t, int32_t, half, float, double, bfloat16>{});
}

}  // namespace weir
