#include "weir/kernels/nn/padded_images.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/scalar_math.h"

namespace weir {

namespace {

// One side of the images: original, resized, and padded by mirroring.
struct Side {
  int64_t original = 0, resized = 0, before = 0, after = 0;
  int64_t padded() const { return before + resized + after; }
};

// The original pixels between which each padded pixel lies.
struct Positions {
  std::vector<int64_t> low, high;
  std::vector<float> fraction;
};

Positions PositionsOf(const Side& side, const PaddedImageOptions& o) {
  const bool corners = o.align_corners && side.resized > 1;
  const float scale =
      corners ? static_cast<float>(side.original - 1) / static_cast<float>(side.resized - 1)
              : static_cast<float>(side.original) / static_cast<float>(side.resized);
  Positions out;
  for (int64_t i = -side.before; i < side.resized + side.after; ++i) {
    int64_t at = i < 0 ? -i - 1 + o.offset : i;
    if (at >= side.resized) at = 2 * side.resized - 1 - o.offset - at;
    const float position = static_cast<float>(at) * scale;
    const auto low = std::min(static_cast<int64_t>(std::floor(position)), side.original - 1);
    out.low.push_back(low);
    out.high.push_back(std::min(static_cast<int64_t>(std::ceil(position)), side.original - 1));
    out.fraction.push_back(position - static_cast<float>(low));
  }
  return out;
}

absl::Status ReadSize(const Tensor& size, Side* rows, Side* columns) {
  if (size.rank() != 1 || size.num_elements() != 2) {
    return InvalidArgument("shape_t must be 1-dimensional and have two elements, but has shape ",
                           size.shape().ToString());
  }
  rows->resized = size.IntAt(0);
  columns->resized = size.IntAt(1);
  if (rows->resized <= 0 || columns->resized <= 0) {
    return InvalidArgument("output dimensions must be positive, got ", rows->resized, " by ",
                           columns->resized);
  }
  return absl::OkStatus();
}

absl::Status CheckPadding(int64_t before, int64_t after, int64_t size, int offset) {
  if (std::max(before, after) <= size - offset) return absl::OkStatus();
  return InvalidArgument("paddings must be ", offset == 0 ? "no greater than" : "less than",
                         " the dimension size: ", before, ", ", after, " for a size of ", size);
}

absl::Status ReadPaddings(const Tensor& paddings, int offset, Side* rows, Side* columns) {
  if (paddings.rank() != 2 || paddings.dim(1) != 2) {
    return InvalidArgument("paddings must be a matrix with 2 columns: ",
                           paddings.shape().ToString());
  }
  if (paddings.dim(0) != 4) {
    return InvalidArgument("The first dimension of paddings must be the rank of inputs: 4, but is ",
                           paddings.dim(0));
  }
  for (int64_t i = 0; i < 8; ++i) {
    if (paddings.IntAt(i) < 0)
      return InvalidArgument("Paddings must be non-negative, got ", paddings.IntAt(i));
  }
  for (const int64_t i : {0, 1, 6, 7}) {
    if (paddings.IntAt(i) == 0) continue;
    return InvalidArgument("Fused mirror padding only support spatial padding, not ",
                           i < 2 ? "batches" : "channels");
  }
  rows->before = paddings.IntAt(2);
  rows->after = paddings.IntAt(3);
  columns->before = paddings.IntAt(4);
  columns->after = paddings.IntAt(5);
  for (const Side* side : {rows, columns}) {
    WEIR_RETURN_IF_ERROR(CheckPadding(side->before, side->after, side->resized, offset));
  }
  return absl::OkStatus();
}

// Fills row y of image `image`.
template <class T>
void FillRow(const Tensor& images, int64_t image, int64_t y, const Positions& rows,
             const Positions& columns, T* to) {
  using W = Wide<T>;
  const int64_t width = images.dim(2), channels = images.dim(3);
  const auto line = [&](int64_t row) {
    return images.data<T>() + (image * images.dim(1) + row) * width * channels;
  };
  const T *const top = line(rows.low[y]), *const bottom = line(rows.high[y]);
  const auto y_part = static_cast<W>(rows.fraction[y]);
  for (size_t x = 0; x < columns.low.size(); ++x) {
    const int64_t left = columns.low[x] * channels, right = columns.high[x] * channels;
    const auto x_part = static_cast<W>(columns.fraction[x]);
    for (int64_t c = 0; c < channels; ++c) {
      const auto between = [&](const T* row) {
        const auto l = static_cast<W>(row[left + c]), r = static_cast<W>(row[right + c]);
        return l + (r - l) * x_part;
      };
      const W upper = between(top);
      *to++ = static_cast<T>(upper + (between(bottom) - upper) * y_part);
    }
  }
}

}  // namespace

PaddedImageOptions PaddedImageOptions::Read(const Node& node) {
  PaddedImageOptions o;
  o.resizes = node.op_name() == "FusedResizeAndPadConv2D";
  o.align_corners = node.attr_or<bool>("resize_align_corners", false);
  o.offset = node.attr<std::string>("mode") == "REFLECT" ? 1 : 0;
  return o;
}

template <class T>
absl::StatusOr<Tensor> ReadPaddedImages(KernelContext& ctx, const PaddedImageOptions& o) {
  const Tensor& images = ctx.input(0);
  if (images.rank() != 4) {
    return InvalidArgument("input must be 4-dimensional, but has shape ",
                           images.shape().ToString());
  }
  if (images.num_elements() == 0) return InvalidArgument("Input tensor can't be empty");
  Side rows{images.dim(1), images.dim(1)}, columns{images.dim(2), images.dim(2)};
  if (o.resizes) WEIR_RETURN_IF_ERROR(ReadSize(ctx.input(1), &rows, &columns));
  WEIR_RETURN_IF_ERROR(ReadPaddings(ctx.input(o.paddings_input()), o.offset, &rows, &columns));
  WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape({images.dim(0), rows.padded(),
                                                         columns.padded(), images.dim(3)}));
  WEIR_ASSIGN_OR_RETURN(Tensor out, ctx.AllocateTemp(images.dtype(), shape));
  const Positions y = PositionsOf(rows, o), x = PositionsOf(columns, o);
  const int64_t height = rows.padded(), row_size = columns.padded() * images.dim(3);
  ctx.pool().ParallelFor(
      images.dim(0) * height, 2.0 * static_cast<double>(row_size), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          FillRow(images, row / height, row % height, y, x, out.data<T>() + row * row_size);
        }
      });
  return out;
}

template absl::StatusOr<Tensor> ReadPaddedImages<half>(KernelContext&, const PaddedImageOptions&);
template absl::StatusOr<Tensor> ReadPaddedImages<bfloat16>(KernelContext&,
                                                           const PaddedImageOptions&);
template absl::StatusOr<Tensor> ReadPaddedImages<float>(KernelContext&, const PaddedImageOptions&);
template absl::StatusOr<Tensor> ReadPaddedImages<double>(KernelContext&, const PaddedImageOptions&);

}  // namespace weir
