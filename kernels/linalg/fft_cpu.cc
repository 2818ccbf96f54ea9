#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/kernels/linalg/fft.h"

// Fourier transforms of the innermost dimensions.
namespace weir {

namespace {

using fft::Kind;
using fft::LineTransform;
using fft::Use;

// The kernel's constant settings.
struct Options {
  Kind kind;
  bool inverse;
  int rank;  // number of transformed dimensions; -1: the number of elements of input 1
};

// The transforms of the kernel's last runs, which its concurrent runs share. Keeps the last one,
// and a few before it while they are not large.
template <class T>
class TransformCache {
 public:
  using Shared = std::shared_ptr<const LineTransform<T>>;

  Shared Get(int64_t length, Kind kind, Use use) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = std::find_if(cache_.begin(), cache_.end(), [&](const Shared& t) {
      return t->length() == length && t->kind() == kind && t->use() == use;
    });
    const Shared wanted = found != cache_.end()
                              ? *found
                              : std::make_shared<const LineTransform<T>>(length, kind, use);
    if (found != cache_.end()) cache_.erase(found);
    cache_.insert(cache_.begin(), wanted);
    int64_t values = 0;
    size_t kept = 0;
    while (kept < cache_.size() && kept < kTransforms && values < kValues) {
      values += cache_[kept++]->size();
    }
    cache_.resize(kept);
    return wanted;
  }

 private:
  static constexpr size_t kTransforms = 8;
  static constexpr int64_t kValues = int64_t{1} << 22;

  std::mutex mutex_;
  std::vector<Shared> cache_;  // the last used one first
};

// The dimensions of one transform: those of input and output, and its lengths. For a transform to
// or from real numbers, the last dimension of the complex side has the first half of the
// frequencies; the others are their conjugates.
struct Grid {
  Dims in, out, lengths;
  Dims wanted;  // the corner of the input that is transformed
};

int64_t SizeOf(const Dims& dims) {
  int64_t n = 1;
  for (const int64_t d : dims) n *= d;
  return n;
}

int64_t HalfOf(int64_t n) { return n == 0 ? 0 : n / 2 + 1; }

// Returns the lengths in the integer vector at input 1; without one, those of the input itself.
absl::StatusOr<Dims> ReadLengths(const KernelContext& c, int rank) {
  Dims lengths;
  const Tensor& input = c.input(0);
  if (c.num_inputs() == 1) {
    for (int i = 0; i < rank; ++i) lengths.push_back(input.dim(i - rank));
    return lengths;
  }
  const Tensor& given = c.input(1);
  if (given.rank() != 1 || given.dim(0) != rank) {
    return InvalidArgument("fft_length must have shape [", rank, "], got ",
                           given.shape().ToString());
  }
  lengths = ReadInts(given);
  for (int i = 0; i < rank; ++i) {
    if (lengths[i] < 0) {
      return InvalidArgument("fft_length[", i, "] must >= 0, but got: ", lengths[i]);
    }
  }
  return lengths;
}

// Returns the number of axes of an *ND op. They must be the last axes in ascending order.
absl::StatusOr<int> ReadAxes(const KernelContext& c) {
  const Tensor &axes = c.input(2), &input = c.input(0);
  WEIR_RETURN_IF_ERROR(CheckRank(axes, 1, "axes"));
  const int64_t rank = axes.dim(0);
  if (rank == 0 || rank > input.rank()) {
    return InvalidArgument("Input must have rank of at least ", rank,
                           " but got: ", input.shape().ToString());
  }
  for (int64_t i = 0; i < rank; ++i) {
    WEIR_ASSIGN_OR_RETURN(const int axis, ReadAxis(axes.IntAt(i), input.rank()));
    if (axis != input.rank() - rank + i) {
      return InvalidArgument("axes must be successive and ascending, and the last axis -1.");
    }
  }
  return static_cast<int>(rank);
}

absl::StatusOr<Grid> GridOf(const KernelContext& c, const Options& o, int rank) {
  const Tensor& input = c.input(0);
  if (input.rank() < rank) {
    return InvalidArgument("Input must have rank of at least ", rank,
                           " but got: ", input.shape().ToString());
  }
  Grid grid;
  WEIR_ASSIGN_OR_RETURN(grid.lengths, ReadLengths(c, rank));
  grid.out = grid.lengths;
  grid.wanted = grid.lengths;
  if (o.kind == Kind::kFromReal) grid.out.back() = HalfOf(grid.lengths.back());
  if (o.kind == Kind::kToReal) grid.wanted.back() = HalfOf(grid.lengths.back());
  for (int i = 0; i < rank; ++i) {
    grid.in.push_back(input.dim(i - rank));
    // Fills outputs with zeros if the input is empty.
    if (grid.in[i] < grid.wanted[i] && grid.in[i] > 0) {
      return InvalidArgument("Input dimension ", input.rank() - rank + i,
                             " must have length of at least ", grid.wanted[i],
                             " but got: ", grid.in[i]);
    }
  }
  return grid;
}

// Copies the corners of `dims` of arrays of `grid.in` to an array of their own.
template <class T>
absl::StatusOr<Tensor> CopyCorners(KernelContext& c, const Grid& grid, int64_t batch) {
  const Tensor& input = c.input(0);
  WEIR_ASSIGN_OR_RETURN(Tensor corners,
                        c.AllocateTemp(input.dtype(), Shape({batch * SizeOf(grid.wanted)})));
  const Dims from = StridesOf(grid.in), to = StridesOf(grid.wanted);
  StridedCopy copy;
  copy.AddDim(batch, SizeOf(grid.in), SizeOf(grid.wanted));
  for (size_t d = 0; d < from.size(); ++d) copy.AddDim(grid.wanted[d], from[d], to[d]);
  copy.Run(c.pool(), input.dtype(), input.raw(), corners.raw());
  return corners;
}

// Transforms arrays of complex numbers along all dimensions but the last.
template <class T>
void TransformOuter(KernelContext& c, TransformCache<T>* cache, const Dims& dims, int64_t batch,
                    bool inverse, const T* in, T* out) {
  int64_t inner = SizeOf(dims);
  for (size_t d = 0; d + 1 < dims.size(); ++d) {
    inner /= dims[d];
    cache->Get(dims[d], Kind::kComplex, Use::kColumns)
        ->TransformColumns(c.pool(), in, out, batch, inner, inverse);
    batch *= dims[d];
    in = out;
  }
}

// Transforms rows and then the other dimensions in place; to real numbers, rows come last.
template <class T>
absl::Status Transform(KernelContext& c, const Options& o, TransformCache<T>* cache) {
  const Tensor& input = c.input(0);
  int rank = o.rank;
  if (rank < 0) {
    WEIR_ASSIGN_OR_RETURN(rank, ReadAxes(c));
  }
  WEIR_ASSIGN_OR_RETURN(const Grid grid, GridOf(c, o, rank));
  const Shape outer = input.shape().Sub(0, input.rank() - rank);
  WEIR_ASSIGN_OR_RETURN(
      Tensor * output,
      c.AllocateOutput(0, outer.Concatenate(Shape(absl::MakeConstSpan(grid.out)))));
  if (output->num_elements() == 0) return absl::OkStatus();
  if (input.num_elements() == 0) {
    ClearElements(c.pool(), *output);
    return absl::OkStatus();
  }
  const int64_t batch = outer.num_elements();
  const bool crops = rank > 1 && grid.in != grid.wanted;
  Tensor corners;
  if (crops) {
    WEIR_ASSIGN_OR_RETURN(corners, CopyCorners<T>(c, grid, batch));
  }
  const T* in = static_cast<const T*>(crops ? corners.raw() : input.raw());
  T* const out = static_cast<T*>(output->raw());
  const int64_t in_row = crops ? grid.wanted.back() : grid.in.back();
  const int64_t rows = batch * SizeOf(grid.lengths) / grid.lengths.back();
  const T scale = o.inverse ? 1 / static_cast<T>(SizeOf(grid.lengths)) : 1;
  const auto last = cache->Get(grid.lengths.back(), o.kind, Use::kRows);
  if (o.kind != Kind::kToReal) {
    last->TransformRows(c.pool(), in, o.kind == Kind::kFromReal ? in_row : 2 * in_row, out,
                        2 * grid.out.back(), rows, o.inverse, scale);
    TransformOuter<T>(c, cache, grid.out, batch, o.inverse, out, out);
    return absl::OkStatus();
  }
  Tensor columns;
  if (rank > 1) {
    WEIR_ASSIGN_OR_RETURN(columns, c.AllocateTemp(input.dtype(), Shape({rows * in_row})));
    T* const temp = static_cast<T*>(columns.raw());
    TransformOuter<T>(c, cache, grid.wanted, batch, /*inverse=*/true, in, temp);
    in = temp;
  }
  last->TransformRows(c.pool(), in, 2 * in_row, out, grid.out.back(), rows, /*inverse=*/true,
                      scale);
  return absl::OkStatus();
}

template <class T>
Kernel MakeTransform(const Options& o) {
  const auto cache = std::make_shared<TransformCache<T>>();
  return Kernel(
      [o, cache](KernelContext& c) -> absl::Status { return Transform<T>(c, o, cache.get()); });
}

void AddTransform(KernelRegistry* r, const std::string& op, const Options& o) {
  r->Add(op, kCpu, [o](const KernelInit& init) -> absl::StatusOr<Kernel> {
    // The Batch* ops have no type attributes.
    const DataType complex = init.node.attr_or<DataType>("Tcomplex", DT_COMPLEX64);
    const DataType real = complex == DT_COMPLEX128 ? DT_DOUBLE : DT_FLOAT;
    if (init.node.attr_or<DataType>("Treal", real) != real) {
      return InvalidArgument(
          "Wrong types for a real FFT: ", DataTypeName(init.attr<DataType>("Treal")), " and ",
          DataTypeName(complex));
    }
    return real == DT_DOUBLE ? MakeTransform<double>(o) : MakeTransform<float>(o);
  });
}

}  // namespace

void AddFftCpu(KernelRegistry* r) {
  for (const auto& [suffix, rank] :
       {std::pair<const char*, int>{"", 1}, {"2D", 2}, {"3D", 3}, {"ND", -1}}) {
    const std::string name = suffix;
    for (const bool inverse : {false, true}) {
      const Options o = {Kind::kComplex, inverse, rank};
      AddTransform(r, (inverse ? "IFFT" : "FFT") + name, o);
      if (rank > 0) AddTransform(r, (inverse ? "BatchIFFT" : "BatchFFT") + name, o);
    }
    AddTransform(r, "RFFT" + name, {Kind::kFromReal, false, rank});
    AddTransform(r, "IRFFT" + name, {Kind::kToReal, true, rank});
  }
}

}  // namespace weir
