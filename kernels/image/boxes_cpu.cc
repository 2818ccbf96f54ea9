#include <algorithm>
#include <cstring>
#include <vector>

#include "weir/kernels/image/image.h"

// Rectangles drawn into images.
namespace weir {

namespace {

// The default colors: yellow, blue, red, lime, purple, olive, maroon, navy, aqua and fuchsia, in
// turn. Images of one channel use white.
constexpr float kPalette[][4] = {
    {1, 1, 0, 1},       {0, 0, 1, 1},    {1, 0, 0, 1},    {0, 1, 0, 1}, {0.5f, 0, 0.5f, 1},
    {0.5f, 0.5f, 0, 1}, {0.5f, 0, 0, 1}, {0, 0, 0.5f, 1}, {0, 1, 1, 1}, {1, 0, 1, 1}};

// Consecutive colors of `depth` numbers each.
absl::StatusOr<std::vector<float>> Colors(const KernelContext& c, int64_t depth) {
  std::vector<float> colors;
  if (c.num_inputs() > 2) {
    const Tensor& given = c.input(2);
    if (given.rank() != 2) {
      return InvalidArgument("colors must be a 2-D matrix, but have shape ",
                             given.shape().ToString());
    }
    if (given.dim(1) < depth) {
      return InvalidArgument("colors must have equal or more channels than the image provided: ",
                             given.shape().ToString());
    }
    for (int64_t i = 0; i < given.dim(0); ++i) {
      const float* color = given.data<float>() + i * given.dim(1);
      colors.insert(colors.end(), color, color + depth);
    }
  }
  if (!colors.empty()) return colors;
  for (const auto& color : kPalette) {
    colors.insert(colors.end(), color, color + depth);
    if (depth == 1) colors.back() = 1;
  }
  return colors;
}

// The image to draw into.
template <class T>
struct Canvas {
  T* pixels;
  int64_t height, width, depth;

  // Fills the part of the rectangle [y0, y1] x [x0, x1] that is inside the image.
  void Fill(int64_t y0, int64_t y1, int64_t x0, int64_t x1, const float* color) const {
    for (int64_t y = std::max<int64_t>(y0, 0); y <= std::min(y1, height - 1); ++y) {
      for (int64_t x = std::max<int64_t>(x0, 0); x <= std::min(x1, width - 1); ++x) {
        T* pixel = pixels + (y * width + x) * depth;
        for (int64_t c = 0; c < depth; ++c) pixel[c] = static_cast<T>(color[c]);
      }
    }
  }

  // Draws the four sides of a box given in relative coordinates. Draws nothing if the box is
  // inverted.
  void Outline(const float* box, const float* color) const {
    const auto row = [&](float v) { return IndexOf(v * static_cast<float>(height - 1)); };
    const auto column = [&](float v) { return IndexOf(v * static_cast<float>(width - 1)); };
    const int64_t y0 = row(box[0]), x0 = column(box[1]), y1 = row(box[2]), x1 = column(box[3]);
    if (y0 > y1 || x0 > x1) return;
    Fill(y0, y0, x0, x1, color);
    Fill(y1, y1, x0, x1, color);
    Fill(y0, y1, x0, x0, color);
    Fill(y0, y1, x1, x1, color);
  }
};

template <class T>
absl::Status DrawBoxes(KernelContext& c) {
  const Tensor &images = c.input(0), &boxes = c.input(1);
  if (images.rank() != 4) {
    return InvalidArgument("The rank of the images should be 4, but is ", images.rank());
  }
  if (boxes.rank() != 3) {
    return InvalidArgument("The rank of the boxes tensor should be 3, but is ", boxes.rank());
  }
  if (images.dim(0) != boxes.dim(0)) {
    return InvalidArgument("The batch sizes should be the same, but are ", images.dim(0), " and ",
                           boxes.dim(0));
  }
  const int64_t depth = images.dim(3);
  if (depth != 1 && depth != 3 && depth != 4) {
    return InvalidArgument("Channel depth should be either 1 (GRY), 3 (RGB), or 4 (RGBA), but is ",
                           depth);
  }
  if (boxes.dim(2) != 4) {
    return InvalidArgument("The size of the third dimension of the box must be 4. Received: ",
                           boxes.dim(2));
  }
  WEIR_ASSIGN_OR_RETURN(const std::vector<float> colors, Colors(c, depth));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, images.shape()));
  if (out->num_elements() == 0) return absl::OkStatus();
  std::memcpy(out->raw(), images.raw(), images.num_bytes());
  const int64_t num_colors = static_cast<int64_t>(colors.size()) / depth;
  Canvas<T> canvas = {out->data<T>(), images.dim(1), images.dim(2), depth};
  const float* box = boxes.data<float>();
  for (int64_t b = 0; b < images.dim(0); ++b) {
    ThrowIfCancelled();
    for (int64_t i = 0; i < boxes.dim(1); ++i, box += 4) {
      canvas.Outline(box, colors.data() + i % num_colors * depth);
    }
    canvas.pixels += canvas.height * canvas.width * depth;
  }
  return absl::OkStatus();
}

}  // namespace

void AddBoxesCpu(KernelRegistry* r) {
  for (const char* op : {"DrawBoundingBoxes", "DrawBoundingBoxesV2"}) {
    r->Add(op, kCpu, DT_FLOAT, DrawBoxes<float>);
    r->Add(op, kCpu, DT_HALF, DrawBoxes<half>);
  }
}

}  // namespace weir
