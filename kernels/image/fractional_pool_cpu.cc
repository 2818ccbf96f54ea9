#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "weir/kernels/image/image.h"
#include "weir/kernels/lib/accumulate.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/blocks.h"
#include "weir/kernels/lib/philox.h"

// Pooling by a fractional factor. Source: Graham, "Fractional max-pooling", 2014.
//
// A side of n pixels is divided into floor(n / ratio) cells of k or k + 1 pixels, k = floor(ratio),
// at random: the cells of a row are either shuffled, or ("pseudo random") end at ceil(alpha (i +
// u)) with a single random u. Rows and columns are divided independently, sequentially from one
// random stream. Overlapping cells share their borders. The borders of the cells are outputs of the
// op, and inputs of its gradients.
namespace weir {

namespace {

using Borders = std::vector<int64_t>;  // cell boundaries: begins, and the end

struct PoolingOptions {
  std::vector<float> ratios;
  bool pseudo_random = false, overlapping = false;
  int64_t seed = 0, seed2 = 0;

  static absl::StatusOr<PoolingOptions> Read(const KernelInit& init) {
    PoolingOptions o;
    o.ratios = init.attr<std::vector<float>>("pooling_ratio");
    o.pseudo_random = init.attr<bool>("pseudo_random");
    o.overlapping = init.attr<bool>("overlapping");
    o.seed = init.attr<int64_t>("seed");
    o.seed2 = init.attr<int64_t>("seed2");
    if (o.ratios.size() != 4) {
      return InvalidArgument("pooling_ratio field must specify 4 dimensions");
    }
    for (const float ratio : o.ratios) {
      if (!(ratio >= 1)) {
        return InvalidArgument("pooling_ratio cannot be smaller than 1, got: ", ratio);
      }
    }
    if (o.ratios[0] != 1 || o.ratios[3] != 1) {
      return Unimplemented(
          "Fractional pooling is not yet supported on the batch nor channel dimension.");
    }
    const bool seeded = o.seed != 0 || o.seed2 != 0;
    if (!init.attr<bool>("deterministic") && seeded) {
      return InvalidArgument("Both seed and seed2 should be 0 if deterministic is false.");
    }
    if (init.attr<bool>("deterministic") && !seeded) {
      std::random_device device;
      o.seed = device() + int64_t{1};
      o.seed2 = device();
    }
    return o;
  }

  // Reproducible across runs if seeds are given.
  Philox Stream() const {
    if (seed != 0 || seed2 != 0) {
      return Philox(static_cast<uint64_t>(seed), static_cast<uint64_t>(seed2));
    }
    std::random_device device;
    return Philox(device(), device());
  }
};

// Divides `length` pixels into `count` cells, with random blocks from the stream.
Borders Cut(int64_t length, int64_t count, bool pseudo_random, Philox* stream) {
  Borders cells(count, length / count);
  PhiloxWords words(*stream);
  if (pseudo_random) {
    stream->Skip(1);
    const double alpha = static_cast<double>(length) / static_cast<double>(count);
    const int64_t k = length / count;
    const double most = std::min((k + 2) / alpha - 1, (length + 1 - k) / alpha - (count - 1));
    const uint32_t high = words(), low = words();
    const double u = UnitDouble(high, low) * most;
    int64_t begin = 1;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t end =
          i + 1 == count
              ? length + 1
              : static_cast<int64_t>(std::ceil(alpha * (static_cast<double>(i + 1) + u)));
      cells[i] = end - begin;
      begin = end;
    }
  } else {
    stream->Skip(static_cast<uint64_t>((count + 3) / 4));
    for (int64_t i = 0; i < length % count; ++i) ++cells[i];
    for (int64_t i = 0; i + 1 < count; ++i) {
      std::swap(cells[i], cells[i + words() % static_cast<uint32_t>(count - i)]);
    }
  }
  Borders borders(count + 1, 0);
  std::partial_sum(cells.begin(), cells.end(), borders.begin() + 1);
  return borders;
}

// The cells of images, and the pixels that they contain.
struct Cells {
  int64_t batch, height, width, depth;  // of the images
  const int64_t *rows, *columns;        // boundaries
  int64_t num_rows, num_columns;        // numbers of cells
  bool overlapping;

  // Returns the pixels [first, second) of cell i of a side.
  std::pair<int64_t, int64_t> Range(const int64_t* borders, int64_t i, int64_t length) const {
    const int64_t end = borders[i + 1] + (overlapping ? 1 : 0);
    return {borders[i], std::min(end, length)};
  }
  // INVALID_ARGUMENT for cells that are empty or outside the images: the boundaries are untrusted
  // inputs.
  absl::Status Check() const {
    for (const auto& [borders, count, length] :
         {std::tuple(rows, num_rows, height), {columns, num_columns, width}}) {
      for (int64_t i = 0; i < count; ++i) {
        if (borders[i] >= length || borders[i + 1] <= borders[i]) {
          return InvalidArgument(
              "the values of a pooling sequence must increase, and lie in the image: cell ", i,
              " of ", length, " pixels is [", borders[i], ", ", borders[i + 1], ")");
        }
      }
    }
    return absl::OkStatus();
  }
  // Calls fn(first element of the cell, first element of the pixel, pixels of the cell) for every
  // pixel.
  template <class F>
  void ForEachPixel(const F& fn) const {
    int64_t cell = 0;
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t i = 0; i < num_rows; ++i) {
        ThrowIfCancelled();
        const auto [y0, y1] = Range(rows, i, height);
        for (int64_t j = 0; j < num_columns; ++j, cell += depth) {
          const auto [x0, x1] = Range(columns, j, width);
          const int64_t size = (y1 - y0) * (x1 - x0);
          for (int64_t y = y0; y < y1; ++y) {
            for (int64_t x = x0; x < x1; ++x) {
              fn(cell, ((b * height + y) * width + x) * depth, size);
            }
          }
        }
      }
    }
  }
};

absl::Status WriteBorders(KernelContext& c, int i, const Borders& borders) {
  WEIR_ASSIGN_OR_RETURN(Tensor * out,
                        c.AllocateOutput(i, Shape({static_cast<int64_t>(borders.size())})));
  std::copy(borders.begin(), borders.end(), out->data<int64_t>());
  return absl::OkStatus();
}

template <class T, bool average>
absl::Status Pool(KernelContext& c, const PoolingOptions& o) {
  const Tensor& in = c.input(0);
  if (in.rank() != 4) {
    return InvalidArgument("tensor_in must be 4-dimensional, but has shape ",
                           in.shape().ToString());
  }
  int64_t sizes[4];
  for (int i = 0; i < 4; ++i) {
    const float size = static_cast<float>(in.dim(i));
    if (size < o.ratios[i] || in.dim(i) > std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("Pooling ratio is higher than input dimension size for dimension ", i,
                             ". Input dim size: ", in.dim(i), " pooling ratio: ", o.ratios[i]);
    }
    sizes[i] = std::min(in.dim(i), static_cast<int64_t>(std::floor(size / o.ratios[i])));
  }
  Philox stream = o.Stream();
  const Borders rows = Cut(in.dim(1), sizes[1], o.pseudo_random, &stream);
  const Borders columns = Cut(in.dim(2), sizes[2], o.pseudo_random, &stream);
  const Cells cells = {in.dim(0),      in.dim(1), in.dim(2), in.dim(3),    rows.data(),
                       columns.data(), sizes[1],  sizes[2],  o.overlapping};
  WEIR_ASSIGN_OR_RETURN(Tensor * out,
                        c.AllocateOutput(0, Shape({sizes[0], sizes[1], sizes[2], sizes[3]})));
  WEIR_RETURN_IF_ERROR(WriteBorders(c, 1, rows));
  WEIR_RETURN_IF_ERROR(WriteBorders(c, 2, columns));
  const T* from = in.data<T>();
  T* to = out->data<T>();
  std::fill_n(to, out->num_elements(), average ? T(0) : std::numeric_limits<T>::lowest());
  std::vector<int64_t> counts(average ? out->num_elements() / in.dim(3) : 0);
  cells.ForEachPixel([&](int64_t cell, int64_t pixel, int64_t size) {
    if (average) counts[cell / cells.depth] = size;
    for (int64_t d = 0; d < cells.depth; ++d) {
      T& value = to[cell + d];
      value = average ? Add(value, from[pixel + d]) : std::max(value, from[pixel + d]);
    }
  });
  for (int64_t i = 0; average && i < out->num_elements(); ++i) {
    ThrowIfCancelledAt(i);
    to[i] /= static_cast<T>(counts[i / cells.depth]);
  }
  return absl::OkStatus();
}

// ---- gradients

absl::Status CheckSequence(const Tensor& borders, absl::string_view argument,
                           absl::string_view word) {
  WEIR_RETURN_IF_ERROR(CheckRank(borders, 1, argument));
  for (const int64_t border : borders.flat<int64_t>()) {
    if (border < 0) {
      return InvalidArgument(word, " sequence tensor values must not be negative, got ", border);
    }
  }
  return absl::OkStatus();
}

// `shape` is the images' shape; the boundaries are inputs `first` and first + 1.
absl::StatusOr<Cells> ReadCells(const KernelContext& c, const Shape& shape, int first,
                                const Tensor& grads, bool overlapping) {
  const Tensor &rows = c.input(first), &columns = c.input(first + 1);
  if (grads.rank() != 4) {
    return InvalidArgument("out_backprop must be 4-dimensional, but has shape ",
                           grads.shape().ToString());
  }
  WEIR_RETURN_IF_ERROR(CheckSequence(rows, "row_pooling_sequence", "Row"));
  WEIR_RETURN_IF_ERROR(CheckSequence(columns, "col_pooling_sequence", "Column"));
  if (rows.dim(0) != grads.dim(1) + 1 || columns.dim(0) != grads.dim(2) + 1) {
    return InvalidArgument("Given out_backprop shape ", grads.shape().ToString(),
                           ", the pooling sequences must have one element more than there are "
                           "rows and columns, but got ",
                           rows.dim(0), " and ", columns.dim(0));
  }
  if (shape.num_elements() == 0 || grads.num_elements() == 0) {
    return InvalidArgument("orig_input and out_backprop must not be empty, got ", shape.ToString(),
                           " and ", grads.shape().ToString());
  }
  if (shape.dim(0) != grads.dim(0) || shape.dim(3) != grads.dim(3)) {
    return InvalidArgument("batch and depth of ", shape.ToString(), " and ",
                           grads.shape().ToString(), " must be equal");
  }
  const Cells cells = {shape.dim(0), shape.dim(1),         shape.dim(2),
                       shape.dim(3), rows.data<int64_t>(), columns.data<int64_t>(),
                       grads.dim(1), grads.dim(2),         overlapping};
  WEIR_RETURN_IF_ERROR(cells.Check());
  return cells;
}

template <class T>
absl::Status MaxGradient(KernelContext& c, bool overlapping) {
  const Tensor &in = c.input(0), &pooled = c.input(1), &grads = c.input(2);
  if (in.rank() != 4 || pooled.rank() != 4) {
    return InvalidArgument("orig_input and orig_output should be tensors of rank 4, got ",
                           in.shape().ToString(), " and ", pooled.shape().ToString());
  }
  WEIR_ASSIGN_OR_RETURN(const Cells cells, ReadCells(c, in.shape(), 3, grads, overlapping));
  WEIR_RETURN_IF_ERROR(CheckShape(pooled, grads.shape(), "orig_output"));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, in.shape()));
  std::fill_n(out->data<T>(), out->num_elements(), T(0));
  std::vector<int64_t> maxima(grads.num_elements(), -1);
  const T* from = in.data<T>();
  cells.ForEachPixel([&](int64_t cell, int64_t pixel, int64_t) {
    for (int64_t d = 0; d < cells.depth; ++d) {
      int64_t& best = maxima[cell + d];
      if (best < 0 || from[best] < from[pixel + d]) best = pixel + d;
    }
  });
  for (const auto [begin, end] : CancellableBlocks(grads.num_elements())) {
    for (int64_t i = begin; i < end; ++i) {
      if (!(from[maxima[i]] == pooled.data<T>()[i])) {
        return InvalidArgument(
            "tensor_out_dup is not the same as tensor_out: orig_output is not the "
            "pooled orig_input");
      }
      T& to = out->data<T>()[maxima[i]];
      to = Add(to, grads.data<T>()[i]);
    }
  }
  return absl::OkStatus();
}

template <class T>
absl::Status AverageGradient(KernelContext& c, bool overlapping) {
  const Tensor& sizes = c.input(0);
  if (sizes.rank() != 1 || sizes.num_elements() != 4) {
    return InvalidArgument("original input tensor shape must be 1-dimensional and 4 elements");
  }
  WEIR_ASSIGN_OR_RETURN(const Shape shape, ReadShape(sizes, "orig_input_tensor_shape"));
  WEIR_ASSIGN_OR_RETURN(const Cells cells, ReadCells(c, shape, 2, c.input(1), overlapping));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  WEIR_ASSIGN_OR_RETURN(Tensor sums, c.AllocateTemp(DT_DOUBLE, shape));
  double* sum = sums.data<double>();
  std::fill_n(sum, sums.num_elements(), 0.0);
  const T* grad = c.input_data<T>(1);
  cells.ForEachPixel([&](int64_t cell, int64_t pixel, int64_t size) {
    for (int64_t d = 0; d < cells.depth; ++d) {
      sum[pixel + d] += static_cast<double>(grad[cell + d]) / static_cast<double>(size);
    }
  });
  std::transform(sum, sum + sums.num_elements(), out->data<T>(),
                 [](double v) { return static_cast<T>(v); });
  return absl::OkStatus();
}

KernelFactory Pooling(absl::Status (*run)(KernelContext&, const PoolingOptions&)) {
  return [run](const KernelInit& init) -> absl::StatusOr<Kernel> {
    WEIR_ASSIGN_OR_RETURN(const PoolingOptions o, PoolingOptions::Read(init));
    return Kernel([run, o](KernelContext& c) { return run(c, o); });
  };
}

KernelFactory Gradient(absl::Status (*run)(KernelContext&, bool)) {
  return [run](const KernelInit& init) -> absl::StatusOr<Kernel> {
    const bool overlapping = init.attr<bool>("overlapping");
    return Kernel([run, overlapping](KernelContext& c) { return run(c, overlapping); });
  };
}

template <class... Ts>
void AddForTypes(KernelRegistry* r, List<Ts...>) {
  (r->Add("FractionalMaxPool", kCpu, DataTypeOf<Ts>::value, Pooling(Pool<Ts, false>)), ...);
  (r->Add("FractionalAvgPool", kCpu, DataTypeOf<Ts>::value, Pooling(Pool<Ts, true>)), ...);
  (r->Add("FractionalMaxPoolGrad", kCpu, DataTypeOf<Ts>::value, Gradient(MaxGradient<Ts>)), ...);
  (r->Add("FractionalAvgPoolGrad", kCpu, DataTypeOf<Ts>::value, Gradient(AverageGradient<Ts>)),
   ...);
}

}  // namespace

void AddFractionalPoolCpu(KernelRegistry* r) {
  AddForTypes(r, List<float, double, int32_t, int64_t>{});
}

}  // namespace weir
