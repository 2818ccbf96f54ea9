#include <algorithm>
#include <cmath>
#include <string>

#include "weir/kernels/image/image.h"
#include "weir/kernels/lib/arguments.h"

// Projective transforms of images: eight numbers (a0 .. a5, b0, b1) map pixel (x, y) of the result
// to point ((a0 x + a1 y + a2) / k, (a3 x + a4 y + a5) / k) of the image, with k = b0 x + b1 y + 1.
// Points outside the image are filled with a value, or folded back.
namespace weir {

namespace {

enum class Fill { kConstant, kReflect, kWrap, kNearest };

struct ProjectionOptions {
  Fill fill = Fill::kConstant;
  bool bilinear = false;
};

// Folds a coordinate back into [0, size - 1].
float Fold(Fill fill, float at, int64_t size) {
  if (fill == Fill::kConstant) return at;
  const float last = static_cast<float>(size - 1), length = static_cast<float>(size);
  if (size <= 1) return 0;
  const auto whole = [](float v) { return std::trunc(v); };
  if (fill == Fill::kReflect && at < 0) {
    at += 2 * length * whole(-at / (2 * length));
    at = at < -length ? at + 2 * length : -at - 1;
  } else if (fill == Fill::kReflect && at > last) {
    at -= 2 * length * whole(at / (2 * length));
    if (at >= length) at = 2 * length - at - 1;
  } else if (fill == Fill::kWrap && at < 0) {
    at += length * (whole(-at / last) + 1);
  } else if (fill == Fill::kWrap && at > last) {
    at -= length * whole(at / last);
  }
  return std::clamp(at, 0.0f, last);
}

template <class T>
struct Projection {
  const T* image;
  int64_t height, width, channels;
  T outside;

  T Read(int64_t y, int64_t x, int64_t c) const {
    if (y < 0 || y >= height || x < 0 || x >= width) return outside;
    return image[(y * width + x) * channels + c];
  }

  void Pixel(const ProjectionOptions& o, const float* t, float x, float y, T* to) const {
    const float k = t[6] * x + t[7] * y + 1;
    const float in_x = Fold(o.fill, (t[0] * x + t[1] * y + t[2]) / k, width);
    const float in_y = Fold(o.fill, (t[3] * x + t[4] * y + t[5]) / k, height);
    constexpr float kFar = 1e15f;
    if (k == 0 || !(std::abs(in_x) < kFar && std::abs(in_y) < kFar)) {
      std::fill_n(to, channels, outside);
      return;
    }
    if (!o.bilinear) {
      const int64_t row = std::lround(in_y), column = std::lround(in_x);
      for (int64_t c = 0; c < channels; ++c) to[c] = Read(row, column, c);
      return;
    }
    const float top = std::floor(in_y), left = std::floor(in_x);
    const int64_t row = static_cast<int64_t>(top), column = static_cast<int64_t>(left);
    const auto along_x = [&](int64_t r, int64_t c) {
      return (left + 1 - in_x) * static_cast<float>(Read(r, column, c)) +
             (in_x - left) * static_cast<float>(Read(r, column + 1, c));
    };
    for (int64_t c = 0; c < channels; ++c) {
      to[c] = PixelOf<T>((top + 1 - in_y) * along_x(row, c) + (in_y - top) * along_x(row + 1, c));
    }
  }
};

template <class T>
absl::Status Project(KernelContext& c, const ProjectionOptions& o) {
  const Tensor &images = c.input(0), &transforms = c.input(1);
  if (images.rank() != 4) {
    return InvalidArgument("Input images must have rank 4, but have shape ",
                           images.shape().ToString());
  }
  const int64_t batch = images.dim(0), count = transforms.rank() == 2 ? transforms.dim(0) : -1;
  if ((count != batch && count != 1) || transforms.dim(1) != 8) {
    return InvalidArgument("Input transform should be num_images x 8 or 1 x 8, but has shape ",
                           transforms.shape().ToString());
  }
  WEIR_ASSIGN_OR_RETURN(const Extent size, ReadExtent(c.input(2), "output shape", images));
  T outside = T(0);
  if (c.num_inputs() > 3) {
    WEIR_RETURN_IF_ERROR(CheckScalar(c.input(3), "fill_value"));
    outside = PixelOf<T>(c.input(3).scalar<float>());
  }
  const int64_t channels = images.dim(3);
  WEIR_ASSIGN_OR_RETURN(const Shape shape,
                        CheckedShape({batch, size.height, size.width, channels}));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  c.pool().ParallelFor(
      batch * size.height, 8.0 * static_cast<double>(size.width * channels),
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t b = row / size.height, y = row % size.height;
          const Projection<T> projection = {
              images.data<T>() + b * images.dim(1) * images.dim(2) * channels, images.dim(1),
              images.dim(2), channels, outside};
          const float* transform = transforms.data<float>() + (count == 1 ? 0 : 8 * b);
          for (int64_t x = 0; x < size.width; ++x) {
            projection.Pixel(o, transform, static_cast<float>(x), static_cast<float>(y),
                             out->data<T>() + (row * size.width + x) * channels);
          }
        }
      });
  return absl::OkStatus();
}

absl::StatusOr<ProjectionOptions> ReadOptions(const KernelInit& init) {
  const std::string interpolation = init.attr<std::string>("interpolation"),
                    mode = init.attr<std::string>("fill_mode");
  ProjectionOptions o;
  o.bilinear = interpolation == "BILINEAR";
  if (!o.bilinear && interpolation != "NEAREST") {
    return InvalidArgument("Invalid interpolation ", interpolation,
                           ". Supported types: NEAREST, BILINEAR");
  }
  if (mode == "REFLECT") {
    o.fill = Fill::kReflect;
  } else if (mode == "WRAP") {
    o.fill = Fill::kWrap;
  } else if (mode == "NEAREST") {
    o.fill = Fill::kNearest;
  } else if (mode != "CONSTANT") {
    return InvalidArgument("Invalid mode ", mode,
                           ". Supported types: REFLECT, WRAP, CONSTANT, NEAREST");
  }
  return o;
}

template <class... Ts>
void AddProjections(KernelRegistry* r, absl::string_view op, List<Ts...>) {
  (r->Add(op, kCpu, DataTypeOf<Ts>::value,
          [](const KernelInit& init) -> absl::StatusOr<Kernel> {
            WEIR_ASSIGN_OR_RETURN(const ProjectionOptions o, ReadOptions(init));
            return Kernel([o](KernelContext& c) { return Project<Ts>(c, o); });
          }),
   ...);
}

}  // namespace

void AddProjectionCpu(KernelRegistry* r) {
  using Types = List<uint8_t, int32_t, int64_t, half, bfloat16, float, double>;
  AddProjections(r, "ImageProjectiveTransformV2", Types{});
  AddProjections(r, "ImageProjectiveTransformV3", Types{});
}

}  // namespace weir
