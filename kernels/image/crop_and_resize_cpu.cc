#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "weir/core/tensor/cancellation.h"
#include "weir/kernels/image/bilinear_rows.h"
#include "weir/kernels/image/image.h"
#include "weir/kernels/image/image_rows.h"
#include "weir/kernels/lib/arguments.h"

// Crops image regions and resizes them to one size (the region pooling of Mask R-CNN, He et al.,
// 2017), and computes the gradients. A box is [y1, x1, y2, x2] in normalized coordinates, relative
// to the image's size minus one pixel, so that 0 and 1 are the centers of the outermost pixels.
// Samples outside the image get the extrapolation value. With y2 < y1 the crop is flipped.
namespace weir {

namespace {

// The position of one row (column) of a crop in the image.
struct Sample {
  bool inside = false;
  int64_t low = 0, high = 0, nearest = 0;
  float fraction = 0;  // interpolation weight from low to high
};

// Returns the rows (columns) of a crop of `crop` pixels between `begin` and `end` along a side of
// `size`.
std::vector<Sample> SampleSide(float begin, float end, int64_t crop, int64_t size) {
  const float last = static_cast<float>(size - 1);
  const float scale = crop > 1 ? (end - begin) * last / static_cast<float>(crop - 1) : 0;
  std::vector<Sample> samples(crop);
  for (int64_t i = 0; i < crop; ++i) {
    const float at = crop > 1 ? begin * last + static_cast<float>(i) * scale
                              : static_cast<float>(0.5 * (begin + end) * last);
    Sample& s = samples[i];
    s.inside = at >= 0 && at <= last;
    if (!s.inside) continue;
    s.low = static_cast<int64_t>(std::floor(at));
    s.high = static_cast<int64_t>(std::ceil(at));
    s.nearest = static_cast<int64_t>(std::round(at));
    s.fraction = at - static_cast<float>(s.low);
  }
  return samples;
}

// The boxes, the indices of their images, and the sizes of both.
struct Crops {
  int64_t batch, height, width, depth;     // of the images
  int64_t count, crop_height, crop_width;  // of the crops
  const float* boxes;
  const int32_t* indices;

  int64_t row() const { return width * depth; }  // elements of an image's row
  // Returns the element of pixel (y, x) of box b's image.
  int64_t At(int64_t b, int64_t y, int64_t x) const {
    return ((indices[b] * height + y) * width + x) * depth;
  }
  std::vector<Sample> Rows(int64_t b) const {
    return SampleSide(boxes[4 * b], boxes[4 * b + 2], crop_height, height);
  }
  std::vector<Sample> Columns(int64_t b) const {
    return SampleSide(boxes[4 * b + 1], boxes[4 * b + 3], crop_width, width);
  }
};

// Validates the inputs that all three kernels have: boxes at input `first`, followed by their image
// indices.
absl::Status ReadBoxes(const KernelContext& c, int first, Crops* crops) {
  const Tensor &boxes = c.input(first), &indices = c.input(first + 1);
  if (boxes.rank() != 2) {
    return InvalidArgument("boxes must be 2-D, got: ", boxes.shape().ToString());
  }
  if (boxes.dim(1) != 4 && boxes.num_elements() + indices.num_elements() > 0) {
    return InvalidArgument("boxes must have 4 columns, but have shape ", boxes.shape().ToString());
  }
  if (indices.rank() != 1) {
    return InvalidArgument("box_index must be 1-D (box_indices must be rank 1 but is shape ",
                           indices.shape().ToString(), ")");
  }
  if (indices.dim(0) != boxes.dim(0)) {
    return InvalidArgument("box_index has incompatible shape: ", indices.dim(0), " for ",
                           boxes.dim(0), " boxes");
  }
  if (crops->height <= 0 || crops->width <= 0) {
    return InvalidArgument("image dimensions must be positive");
  }
  if (crops->crop_height <= 0 || crops->crop_width <= 0) {
    return InvalidArgument("crop (grads) dimensions must be positive");
  }
  crops->count = boxes.dim(0);
  crops->boxes = boxes.data<float>();
  crops->indices = indices.data<int32_t>();
  for (int64_t i = 0; i < crops->count; ++i) {
    if (crops->indices[i] < 0 || crops->indices[i] >= crops->batch) {
      return OutOfRange("box_index has values outside [0, batch_size): ", crops->indices[i]);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRank4(const Tensor& t, absl::string_view argument) {
  if (t.rank() == 4) return absl::OkStatus();
  return InvalidArgument(argument, " must be 4-D, but has shape ", t.shape().ToString());
}

// `grads` (one per crop pixel) must match the boxes.
absl::Status CheckGrads(const Tensor& grads, const Crops& crops) {
  if (grads.dim(0) != crops.count) {
    return InvalidArgument("boxes and grads have incompatible shape: ", crops.count, " boxes, ",
                           grads.shape().ToString());
  }
  if (grads.dim(3) != crops.depth) {
    return InvalidArgument("image_size and grads are incompatible (image, grads depth differ): ",
                           crops.depth, " and ", grads.dim(3));
  }
  return absl::OkStatus();
}

struct CropOptions {
  bool bilinear = true;
  float outside = 0;
};

// The columns of a crop that are inside the image are consecutive: positions increase or decrease.
struct Inside {
  int64_t begin = 0, end = 0;
};
Inside InsideOf(const std::vector<Sample>& samples) {
  const auto inside = [](const Sample& s) { return s.inside; };
  const auto begin = std::find_if(samples.begin(), samples.end(), inside);
  const auto end = std::find_if_not(begin, samples.end(), inside);
  return {begin - samples.begin(), end - samples.begin()};
}

// Returns the interpolation of the columns that are inside the image.
Lerp LerpOf(const std::vector<Sample>& columns, const Inside& inside) {
  Lerp lerp;
  for (int64_t x = inside.begin; x < inside.end; ++x) {
    lerp.Add(columns[x].low, columns[x].high, columns[x].fraction);
  }
  return lerp;
}

// Computes the rows of one crop.
template <class T>
class Cropper {
 public:
  Cropper(const Crops& k, const CropOptions& options, const T* images, int64_t b)
      : k_(k),
        options_(options),
        image_(images + k.At(b, 0, 0)),
        rows_(k.Rows(b)),
        columns_(k.Columns(b)),
        inside_(InsideOf(columns_)) {
    if (inside_.begin == inside_.end || !options.bilinear) return;
    bilinear_.emplace(LerpOf(columns_, inside_), k.depth, images + k.batch * k.height * k.row(),
                      false);
  }

  void Run(int64_t y, float* to) {
    const Sample& row = rows_[y];
    const Inside inside = row.inside ? inside_ : Inside();
    float* const begin = to + inside.begin * k_.depth;
    float* const end = to + inside.end * k_.depth;
    std::fill(to, begin, options_.outside);
    std::fill(end, to + k_.crop_width * k_.depth, options_.outside);
    if (begin == end) return;
    if (options_.bilinear) {
      bilinear_->Interpolate(image_ + row.low * k_.row(), image_ + row.high * k_.row(),
                             row.fraction, begin);
      return;
    }
    const T* const from = image_ + row.nearest * k_.row();
    for (int64_t x = inside.begin; x < inside.end; ++x) {
      const T* const pixel = from + columns_[x].nearest * k_.depth;
      std::transform(pixel, pixel + k_.depth, to + x * k_.depth,
                     [](T v) { return static_cast<float>(v); });
    }
  }

 private:
  const Crops& k_;
  const CropOptions& options_;
  const T* const image_;
  const std::vector<Sample> rows_, columns_;
  const Inside inside_;
  std::optional<BilinearRows<T>> bilinear_;
};

template <class T>
absl::Status CropAndResize(KernelContext& c, const CropOptions& options) {
  const Tensor& image = c.input(0);
  WEIR_RETURN_IF_ERROR(CheckRank4(image, "input image"));
  WEIR_ASSIGN_OR_RETURN(const Extent size, ReadExtent(c.input(3), "crop_size", image));
  Crops k = {image.dim(0), image.dim(1), image.dim(2), image.dim(3), 0, size.height, size.width};
  WEIR_RETURN_IF_ERROR(ReadBoxes(c, 1, &k));
  for (int64_t i = 0; i < 4 * k.count; ++i) {
    if (!std::isfinite(k.boxes[i])) {
      return InvalidArgument("Boxes contains at least one element that is not finite");
    }
  }
  WEIR_ASSIGN_OR_RETURN(const Shape shape,
                        CheckedShape({k.count, k.crop_height, k.crop_width, k.depth}));
  WEIR_ASSIGN_OR_RETURN(Tensor * crops, c.AllocateOutput(0, shape));
  if (crops->num_elements() == 0) return absl::OkStatus();
  const T* const pixels = image.data<T>();
  const int64_t row = k.crop_width * k.depth;
  c.pool().ParallelFor(k.count * k.crop_height, 0.5 * static_cast<double>(row),
                       [&](int64_t begin, int64_t end) {
                         for (int64_t r = begin; r < end;) {
                           ThrowIfCancelled();
                           const int64_t b = r / k.crop_height;
                           Cropper<T> cropper(k, options, pixels, b);
                           for (; r < std::min(end, (b + 1) * k.crop_height); ++r) {
                             cropper.Run(r % k.crop_height, crops->data<float>() + r * row);
                           }
                         }
                       });
  return absl::OkStatus();
}

// Adds the gradients of one box's crop to rows [begin, end) of its image. `grads` and `image` begin
// at those of the box.
template <class T>
class CropScatter {
 public:
  CropScatter(const Crops& k, const CropOptions& options, int64_t b)
      : k_(k),
        options_(options),
        rows_(k.Rows(b)),
        columns_(k.Columns(b)),
        inside_(InsideOf(columns_)),
        lerp_(LerpOf(columns_, inside_)) {}

  void Run(const float* grads, T* image, int64_t begin, int64_t end) const {
    for (size_t i = 0; i < rows_.size(); ++i) {
      const Sample& y = rows_[i];
      if (!y.inside) continue;
      const float* const from = grads + (i * k_.crop_width + inside_.begin) * k_.depth;
      const auto add = [&](int64_t row, float weight) {
        if (row >= begin && row < end) AddRow(from, weight, image + row * k_.row());
      };
      if (options_.bilinear) {
        add(y.low, 1 - y.fraction);
        add(y.high, y.fraction);
      } else {
        add(y.nearest, 1);
      }
    }
  }

 private:
  void AddRow(const float* grads, float weight, T* row) const {
    if constexpr (std::is_same_v<T, float>) {
      if (options_.bilinear) {
        return image_rows::AddToColumns(lerp_, k_.depth, grads, weight, row);
      }
    }
    for (int64_t x = inside_.begin; x < inside_.end; ++x, grads += k_.depth) {
      const Sample& column = columns_[x];
      if (options_.bilinear) {
        AddPixel(grads, weight * (1 - column.fraction), row + column.low * k_.depth);
        AddPixel(grads, weight * column.fraction, row + column.high * k_.depth);
      } else {
        AddPixel(grads, 1, row + column.nearest * k_.depth);
      }
    }
  }

  void AddPixel(const float* grad, float weight, T* to) const {
    for (int64_t d = 0; d < k_.depth; ++d) to[d] += static_cast<T>(weight * grad[d]);
  }

  const Crops& k_;
  const CropOptions& options_;
  const std::vector<Sample> rows_, columns_;
  const Inside inside_;
  const Lerp lerp_;
};

// Boxes may overlap. Threads divide the rows of the images, and each goes through the boxes in
// order, so an element's sum is always the same.
template <class T>
absl::Status GradImage(KernelContext& c, const CropOptions& options) {
  const Tensor &grads = c.input(0), &size = c.input(3);
  WEIR_RETURN_IF_ERROR(CheckRank4(grads, "grads image"));
  if (size.rank() != 1 || size.num_elements() != 4) {
    return InvalidArgument("image_size must have 4 elements (and be 1-D), but has shape ",
                           size.shape().ToString());
  }
  Crops k = {size.IntAt(0), size.IntAt(1), size.IntAt(2), size.IntAt(3), 0,
             grads.dim(1),  grads.dim(2)};
  WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape({k.batch, k.height, k.width, k.depth}));
  WEIR_RETURN_IF_ERROR(ReadBoxes(c, 1, &k));
  WEIR_RETURN_IF_ERROR(CheckGrads(grads, k));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  const int64_t crop = k.crop_height * k.crop_width * k.depth;
  const double cost = 0.1 * static_cast<double>(k.row()) +
                      static_cast<double>(k.count * crop) / static_cast<double>(k.batch * k.height);
  c.pool().ParallelFor(k.batch * k.height, cost, [&](int64_t begin, int64_t end) {
    std::fill(out->data<T>() + begin * k.row(), out->data<T>() + end * k.row(), T(0));
    for (int64_t b = 0; b < k.count; ++b) {
      ThrowIfCancelled();
      const int64_t first = k.indices[b] * k.height;
      if (first >= end || first + k.height <= begin) continue;
      CropScatter<T>(k, options, b)
          .Run(grads.data<float>() + b * crop, out->data<T>() + first * k.row(), begin - first,
               end - first);
    }
  });
  return absl::OkStatus();
}

// The derivatives of pixel i's coordinate with respect to the begin and end of a side, times the
// derivative of the value.
void AddToSide(float by, int64_t i, int64_t crop, int64_t size, float* begin, float* end) {
  const float last = static_cast<float>(size - 1);
  const float share = crop > 1 ? static_cast<float>(i) / static_cast<float>(crop - 1) : 0.5f;
  *begin += by * last * (1 - share);
  *end += by * last * share;
}

template <class T>
absl::Status GradBoxes(KernelContext& c, const CropOptions&) {
  const Tensor &grads = c.input(0), &image = c.input(1);
  WEIR_RETURN_IF_ERROR(CheckRank4(grads, "grads image"));
  WEIR_RETURN_IF_ERROR(CheckRank4(image, "input image"));
  Crops k = {image.dim(0), image.dim(1), image.dim(2), image.dim(3), 0, grads.dim(1), grads.dim(2)};
  WEIR_RETURN_IF_ERROR(ReadBoxes(c, 2, &k));
  WEIR_RETURN_IF_ERROR(CheckGrads(grads, k));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape({k.count, 4})));
  std::fill_n(out->data<float>(), out->num_elements(), 0.0f);
  const T* pixels = image.data<T>();
  const float* grad = grads.data<float>();
  for (int64_t b = 0; b < k.count; ++b) {
    const std::vector<Sample> rows = k.Rows(b), columns = k.Columns(b);
    float* box = out->data<float>() + 4 * b;
    for (int64_t i = 0; i < k.crop_height; ++i) {
      for (int64_t j = 0; j < k.crop_width; ++j, grad += k.depth) {
        const Sample &y = rows[i], &x = columns[j];
        if (!y.inside || !x.inside) continue;
        const T *top_left = pixels + k.At(b, y.low, x.low),
                *top_right = pixels + k.At(b, y.low, x.high),
                *bottom_left = pixels + k.At(b, y.high, x.low),
                *bottom_right = pixels + k.At(b, y.high, x.high);
        float along_y = 0, along_x = 0;
        for (int64_t d = 0; d < k.depth; ++d) {
          const float tl = static_cast<float>(top_left[d]), tr = static_cast<float>(top_right[d]),
                      bl = static_cast<float>(bottom_left[d]),
                      br = static_cast<float>(bottom_right[d]);
          along_y += grad[d] * ((1 - x.fraction) * (bl - tl) + x.fraction * (br - tr));
          along_x += grad[d] * ((1 - y.fraction) * (tr - tl) + y.fraction * (br - bl));
        }
        AddToSide(along_y, i, k.crop_height, k.height, &box[0], &box[2]);
        AddToSide(along_x, j, k.crop_width, k.width, &box[1], &box[3]);
      }
    }
  }
  return absl::OkStatus();
}

KernelFactory WithOptions(absl::Status (*run)(KernelContext&, const CropOptions&)) {
  return [run](const KernelInit& init) -> absl::StatusOr<Kernel> {
    const CropOptions options = {init.attr<std::string>("method") == "bilinear",
                                 init.node.attr_or<float>("extrapolation_value", 0)};
    return Kernel([run, options](KernelContext& c) { return run(c, options); });
  };
}

template <class... Ts>
void AddForImages(KernelRegistry* r, List<Ts...>) {
  (r->Add("CropAndResize", kCpu, DataTypeOf<Ts>::value, WithOptions(CropAndResize<Ts>)), ...);
  (r->Add("CropAndResizeGradBoxes", kCpu, DataTypeOf<Ts>::value, WithOptions(GradBoxes<Ts>)), ...);
}
template <class... Ts>
void AddForGradients(KernelRegistry* r, List<Ts...>) {
  (r->Add("CropAndResizeGradImage", kCpu, DataTypeOf<Ts>::value, WithOptions(GradImage<Ts>)), ...);
}

}  // namespace

void AddCropAndResizeCpu(KernelRegistry* r) {
  AddForImages(r,
               List<uint8_t, uint16_t, int8_t, int16_t, int32_t, int64_t, half, float, double>{});
  AddForGradients(r, List<half, float, double>{});
}

}  // namespace weir
