#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "weir/core/tensor/cancellation.h"
#include "weir/kernels/image/image.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/philox.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/kernels/random/random_stream.h"

// Samples parts of images: at random positions (with TensorFlow's numbers for the same seeds), or
// at given ones with noise outside the image.
namespace weir {

namespace {

// Returns an unbiased integer in [0, n): rejects words that would favor small ones.
uint32_t UniformBelow(PhiloxWords& words, uint32_t n) {
  if ((n & (n - 1)) == 0) return words() & (n - 1);
  const uint32_t rejected = ~uint32_t{0} % n + 1;
  uint32_t word = words();
  while (word < rejected) word = words();
  return word % n;
}

// ---- SampleDistortedBoundingBox

struct Box {
  int64_t x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  float Area() const { return static_cast<float>((x1 - x0) * (y1 - y0)); }
  Box Intersection(const Box& o) const {
    const Box b = {std::max(x0, o.x0), std::max(y0, o.y0), std::min(x1, o.x1), std::min(y1, o.y1)};
    return b.x0 > b.x1 || b.y0 > b.y1 ? Box() : b;
  }
};

struct SampleOptions {
  std::vector<float> aspect_ratios, areas;  // lowest and highest
  int64_t attempts = 0;
  float min_covered = 0;  // if it is an attribute
  bool whole_image_without_boxes = false;

  absl::Status Check() const {
    if (aspect_ratios.size() != 2) {
      return InvalidArgument("Aspect ratio range field must specify 2 dimensions");
    }
    if (!(aspect_ratios[0] > 0 && aspect_ratios[1] > 0)) {
      return InvalidArgument("Aspect ratio range must be non-negative: [", aspect_ratios[0], ", ",
                             aspect_ratios[1], "]");
    }
    if (areas.size() != 2) return InvalidArgument("Area range field must specify 2 dimensions");
    if (!(areas[0] > 0 && areas[1] > 0 && areas[0] <= 1 && areas[1] <= 1)) {
      return InvalidArgument("Area range must be non-negative and less then or equal to 1.0: [",
                             areas[0], ", ", areas[1], "]");
    }
    if (attempts <= 0 || attempts > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("Max attempts must be non-negative and an int32: ", attempts);
    }
    return absl::OkStatus();
  }
};

// Draws the size of a crop with about this aspect ratio and an area within the range. Returns false
// if the draw yields none.
bool DrawSides(const SampleOptions& o, const Box& image, float ratio, PhiloxWords& words,
               int64_t* width, int64_t* height) {
  const float image_width = static_cast<float>(image.x1),
              image_height = static_cast<float>(image.y1);
  const float smallest = o.areas[0] * image_width * image_height,
              largest = o.areas[1] * image_width * image_height;
  if (image.x1 <= 0 || image.y1 <= 0 || o.areas[0] > o.areas[1]) return false;
  const auto wide = [&](int64_t h) { return std::lrint(static_cast<float>(h) * ratio); };
  int64_t h = std::lrint(std::sqrt(smallest / ratio)),
          most = std::lrint(std::sqrt(largest / ratio));
  if (wide(most) > image.x1) {
    most = static_cast<int64_t>((image_width + 0.5 - 0.0000001f) / ratio);
    if (wide(most) > image.x1) --most;
  }
  most = std::min(most, image.y1);
  h = std::min(h, most);
  if (h < most) h += UniformBelow(words, static_cast<uint32_t>(most - h + 1));
  if (static_cast<float>(wide(h) * h) < smallest) ++h;
  if (static_cast<float>(wide(h) * h) > largest) --h;
  const int64_t w = wide(h);
  const float area = static_cast<float>(w * h);
  *width = w;
  *height = h;
  return area >= smallest && area <= largest && w <= image.x1 && h <= image.y1 && w > 0 && h > 0;
}

bool Covers(const Box& crop, float min_covered, const std::vector<Box>& objects) {
  if (crop.Area() < 1) return false;
  return std::any_of(objects.begin(), objects.end(), [&](const Box& object) {
    return object.Area() >= 1 && crop.Intersection(object).Area() / object.Area() >= min_covered;
  });
}

// The whole image if all attempts fail.
Box DrawCrop(const SampleOptions& o, const Box& image, float min_covered,
             const std::vector<Box>& objects, PhiloxWords& words) {
  for (int64_t i = 0; i < o.attempts; ++i) {
    ThrowIfCancelledAt(i);
    const float ratio =
        UnitFloat(words()) * (o.aspect_ratios[1] - o.aspect_ratios[0]) + o.aspect_ratios[0];
    int64_t width = 0, height = 0;
    if (!DrawSides(o, image, ratio, words, &width, &height)) continue;
    Box crop;
    if (height < image.y1) {
      crop.y0 = UniformBelow(words, static_cast<uint32_t>(image.y1 - height));
    }
    if (width < image.x1) crop.x0 = UniformBelow(words, static_cast<uint32_t>(image.x1 - width));
    crop.x1 = crop.x0 + width;
    crop.y1 = crop.y0 + height;
    if (Covers(crop, min_covered, objects)) return crop;
  }
  return image;
}

absl::StatusOr<std::vector<Box>> ReadObjects(const SampleOptions& o, const Tensor& boxes,
                                             const Box& image) {
  if (boxes.rank() != 3) {
    return InvalidArgument("input boxes must be 3-dimensional [batch, num_boxes, coords]: ",
                           boxes.shape().ToString());
  }
  if (boxes.dim(2) != 4) {
    return InvalidArgument("bounding boxes must have shape [4] or [*, 4], got ",
                           boxes.shape().ToString());
  }
  std::vector<Box> objects;
  const float height = static_cast<float>(image.y1), width = static_cast<float>(image.x1);
  for (int64_t i = 0; i < boxes.num_elements(); i += 4) {
    const float* box = boxes.data<float>() + i;
    for (int k = 0; k < 4; ++k) {
      if (!(box[k] >= 0 && box[k] <= 1)) {
        return InvalidArgument("All bounding box coordinates must be in [0.0, 1.0]: ", box[k]);
      }
    }
    objects.push_back({IndexOf(box[1] * width), IndexOf(box[0] * height), IndexOf(box[3] * width),
                       IndexOf(box[2] * height)});
  }
  if (objects.empty()) {
    if (!o.whole_image_without_boxes) {
      return InvalidArgument(
          "No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes if "
          "you wish to not provide any bounding boxes.");
    }
    objects.push_back(image);
  }
  return objects;
}

absl::Status WriteCrop(KernelContext& c, const Box& image, const Box& crop) {
  WEIR_ASSIGN_OR_RETURN(Tensor * begin, c.AllocateOutput(0, Shape({3})));
  WEIR_ASSIGN_OR_RETURN(Tensor * size, c.AllocateOutput(1, Shape({3})));
  WEIR_ASSIGN_OR_RETURN(Tensor * box, c.AllocateOutput(2, Shape({1, 1, 4})));
  const int64_t begins[] = {crop.y0, crop.x0, 0},
                sizes[] = {crop.y1 - crop.y0, crop.x1 - crop.x0, -1};
  for (int i = 0; i < 3; ++i) {
    begin->SetIntAt(i, begins[i]);
    size->SetIntAt(i, sizes[i]);
  }
  const int64_t corners[] = {crop.y0, crop.x0, crop.y1, crop.x1};
  for (int i = 0; i < 4; ++i) {
    box->data<float>()[i] =
        static_cast<float>(corners[i]) / static_cast<float>(i % 2 == 0 ? image.y1 : image.x1);
  }
  return absl::OkStatus();
}

absl::Status SampleBox(KernelContext& c, const SampleOptions& o, const Philox& stream) {
  const Tensor& sizes = c.input(0);
  if (sizes.rank() != 1 || sizes.dim(0) != 3) {
    return InvalidArgument(
        "image_size must be 1-dimensional and contain 3 elements, but has shape ",
        sizes.shape().ToString());
  }
  const Box image = {0, 0, sizes.IntAt(1), sizes.IntAt(0)};
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (image.x1 < 0 || image.y1 < 0 || image.x1 >= kMost || image.y1 >= kMost) {
    return InvalidArgument("image height (width) cannot be >= int32 max, but they are ", image.y1,
                           " and ", image.x1);
  }
  float min_covered = o.min_covered;
  if (c.num_inputs() > 2) {
    WEIR_RETURN_IF_ERROR(CheckScalar(c.input(2), "min_object_covered"));
    min_covered = c.input(2).scalar<float>();
  }
  if (!(min_covered >= 0)) {
    return InvalidArgument("Min object covered must be non-negative: ", min_covered);
  }
  WEIR_ASSIGN_OR_RETURN(const std::vector<Box> objects, ReadObjects(o, c.input(1), image));
  PhiloxWords words(stream);
  return WriteCrop(c, image, DrawCrop(o, image, min_covered, objects, words));
}

absl::StatusOr<Kernel> MakeSampleBox(const KernelInit& init) {
  SampleOptions o;
  o.aspect_ratios = init.attr<std::vector<float>>("aspect_ratio_range");
  o.areas = init.attr<std::vector<float>>("area_range");
  o.attempts = init.attr<int64_t>("max_attempts");
  o.min_covered = init.node.attr_or<float>("min_object_covered", 0);
  o.whole_image_without_boxes = init.attr<bool>("use_image_if_no_bounding_boxes");
  WEIR_RETURN_IF_ERROR(o.Check());
  if (init.node.op_name() == "StatelessSampleDistortedBoundingBox") {
    return Kernel([o](KernelContext& c) -> absl::Status {
      WEIR_ASSIGN_OR_RETURN(const Philox stream, SeedInput(c, 3));
      return SampleBox(c, o, stream);
    });
  }
  return Kernel([o, stream = RandomStream::Of(init)](KernelContext& c) {
    return SampleBox(c, o, stream->Reserve(static_cast<uint64_t>(o.attempts), c.step()));
  });
}

// ---- RandomCrop

absl::Status RandomCrop(KernelContext& c, RandomStream& stream) {
  const Tensor &image = c.input(0), &size = c.input(1);
  if (image.rank() != 3) {
    return InvalidArgument("input must be 3-dimensional, but has shape ", image.shape().ToString());
  }
  if (size.rank() != 1 || size.num_elements() != 2) {
    return InvalidArgument("size must be 1-dimensional and have two elements, but has shape ",
                           size.shape().ToString());
  }
  const int64_t height = size.IntAt(0), width = size.IntAt(1);
  WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape({height, width, image.dim(2)}));
  if (image.dim(1) < width || image.dim(0) < height) {
    return FailedPrecondition("width and height must be >= target_width and target_height: ",
                              image.dim(1), " x ", image.dim(0), " and ", width, " x ", height);
  }
  PhiloxWords words(stream.Reserve(1, c.step()));
  int64_t x = 0, y = 0;
  if (image.dim(1) > width) x = words() % static_cast<uint32_t>(image.dim(1) - width + 1);
  if (image.dim(0) > height) y = words() % static_cast<uint32_t>(image.dim(0) - height + 1);
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  const int64_t channels = image.dim(2), row = image.dim(1) * channels;
  StridedCopy copy;
  copy.AddDim(height, row, width * channels);
  copy.AddDim(width * channels, 1, 1);
  copy.Run(c.pool(), image.dtype(), ElementAt(image, y * row + x * channels), out->raw());
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeRandomCrop(const KernelInit& init) {
  return Kernel(
      [stream = RandomStream::Of(init)](KernelContext& c) { return RandomCrop(c, *stream); });
}

// ---- ExtractGlimpse

enum class Noise { kUniform, kGaussian, kZero };

struct GlimpseOptions {
  bool first_version = false, centered = true, normalized = true;
  Noise noise = Noise::kUniform;

  // Returns the begin of a glimpse of `size` pixels along a side of the image. Version 2 no longer
  // shifts by half the glimpse, except for coordinates that are both normalized and centered.
  int64_t Begin(float offset, int64_t side, int64_t size) const {
    const float length = static_cast<float>(side), half = static_cast<float>(size) / 2;
    if (normalized) offset *= length;
    if (first_version || normalized) {
      if (centered) offset = offset / 2 + length / 2;
      if (first_version || centered) offset -= half;
    } else if (centered) {
      offset += length / 2;
    }
    constexpr float kFar = 1e15f;
    return static_cast<int64_t>(std::isnan(offset) ? kFar : std::clamp(offset, -kFar, kFar));
  }
};

// Fills `to` with noise that resembles the image: in its range, or with each channel's mean and
// deviation.
void FillNoise(Noise kind, const float* image, int64_t pixels, int64_t channels, PhiloxWords& words,
               float* to, int64_t count) {
  std::fill_n(to, count, 0.0f);
  if (kind == Noise::kZero || pixels * channels == 0) return;
  const bool uniform = kind == Noise::kUniform;
  for (int64_t k = 0; k < (uniform ? 1 : channels); ++k) {
    double sum = 0, squares = 0;
    float low = image[k], high = image[k];
    const int64_t step = uniform ? 1 : channels, end = pixels * channels;
    for (int64_t i = k; i < end; i += step) {
      low = std::min(low, image[i]);
      high = std::max(high, image[i]);
      sum += image[i];
      squares += static_cast<double>(image[i]) * image[i];
    }
    const double mean = sum / static_cast<double>(pixels);
    const float deviation = static_cast<float>(
        std::sqrt(std::max(0.0, squares / static_cast<double>(pixels) - mean * mean)));
    for (int64_t i = k; i < count; i += step) {
      if (uniform) {
        to[i] = low + UnitFloat(words()) * (high - low);
      } else {
        const uint32_t a = words(), b = words();
        float pair[2];
        NormalPair(a, b, pair);
        to[i] = std::max(low, std::min(high, static_cast<float>(mean) + deviation * pair[0]));
      }
    }
  }
}

// Copies the part of the glimpse starting at (y0, x0) that is inside the image.
void CopyGlimpse(const float* image, int64_t rows, int64_t columns, int64_t channels, int64_t y0,
                 int64_t x0, int64_t height, int64_t width, float* to) {
  const int64_t x_begin = std::max<int64_t>(0, -x0), x_end = std::min(width, columns - x0);
  if (x_begin >= x_end) return;
  for (int64_t y = std::max<int64_t>(0, -y0); y < std::min(height, rows - y0); ++y) {
    const float* from = image + ((y + y0) * columns + x_begin + x0) * channels;
    std::copy_n(from, (x_end - x_begin) * channels, to + (y * width + x_begin) * channels);
  }
}

absl::Status ExtractGlimpse(KernelContext& c, const GlimpseOptions& o, RandomStream& stream) {
  const Tensor &images = c.input(0), &size = c.input(1), &offsets = c.input(2);
  if (images.rank() != 4) {
    return InvalidArgument("input must be 4-dimensional (batch_size, height, width, depth), not ",
                           images.shape().ToString());
  }
  if (size.rank() != 1 || size.dim(0) != 2) {
    return InvalidArgument("input must be a vector of size 2 (height, width), not ",
                           size.shape().ToString());
  }
  const int64_t height = size.IntAt(0), width = size.IntAt(1), channels = images.dim(3);
  WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape({images.dim(0), height, width, channels}));
  if (offsets.rank() != 2 || offsets.dim(0) != images.dim(0) || offsets.dim(1) != 2) {
    return InvalidArgument(
        "offsets must be a matrix: first dimension should be batch, second "
        "dimension should be of size 2 (y,x), but the shape is ",
        offsets.shape().ToString());
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  const int64_t rows = images.dim(1), columns = images.dim(2), count = height * width * channels;
  PhiloxWords words(stream.Reserve(static_cast<uint64_t>(out->num_elements()), c.step()));
  for (int64_t b = 0; b < images.dim(0); ++b) {
    ThrowIfCancelled();
    const float* image = images.data<float>() + b * rows * columns * channels;
    float* to = out->data<float>() + b * count;
    const int64_t y = o.Begin(offsets.data<float>()[2 * b], rows, height);
    const int64_t x = o.Begin(offsets.data<float>()[2 * b + 1], columns, width);
    if (y < 0 || x < 0 || y + height > rows || x + width > columns) {
      FillNoise(o.noise, image, rows * columns, channels, words, to, count);
    }
    CopyGlimpse(image, rows, columns, channels, y, x, height, width, to);
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeGlimpse(const KernelInit& init) {
  GlimpseOptions o;
  o.first_version = init.node.op_name() == "ExtractGlimpse";
  o.centered = init.attr<bool>("centered");
  o.normalized = init.attr<bool>("normalized");
  const bool uniform = init.attr<bool>("uniform_noise");
  const std::string noise = init.attr<std::string>("noise");
  if (uniform && !noise.empty() && noise != "uniform") {
    return InvalidArgument("The uniform_noise and noise could not be specified at the same time");
  }
  if (noise == "uniform" || (noise.empty() && uniform)) {
    o.noise = Noise::kUniform;
  } else if (noise == "gaussian" || noise.empty()) {
    o.noise = Noise::kGaussian;
  } else if (noise == "zero") {
    o.noise = Noise::kZero;
  } else {
    return InvalidArgument("The noise could only be uniform, gaussian, or zero, got ", noise);
  }
  // The op has no seed, so its noise is not reproducible.
  const auto stream = RandomStream::Named(init.resources, RandomStream::NameOf(init.node), [] {
    std::random_device device;
    return Philox(device(), device());
  });
  return Kernel([o, stream](KernelContext& c) { return ExtractGlimpse(c, o, *stream); });
}

}  // namespace

void AddImageSamplingCpu(KernelRegistry* r) {
  for (const char* op : {"SampleDistortedBoundingBox", "SampleDistortedBoundingBoxV2",
                         "StatelessSampleDistortedBoundingBox"}) {
    r->Add(op, kCpu, MakeSampleBox);
  }
  r->Add("RandomCrop", kCpu, MakeRandomCrop);
  for (const char* op : {"ExtractGlimpse", "ExtractGlimpseV2"}) r->Add(op, kCpu, MakeGlimpse);
}

}  // namespace weir
