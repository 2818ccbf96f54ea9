#include <algorithm>
#include <cmath>
#include <complex>
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

using Number = std::complex<double>;

// The kernel's constant settings.
enum class Kind { kComplex, kFromReal, kToReal };
struct Options {
  Kind kind;
  bool inverse;
  int rank;  // number of transformed dimensions; -1: the number of elements of input 1
};

// The transforms of a run, one per dimension, cached for the next run.
class TransformCache {
 public:
  std::vector<std::shared_ptr<const FourierTransform>> Get(const Dims& lengths, bool inverse) {
    const std::lock_guard<std::mutex> lock(mutex_);
    cache_.resize(lengths.size());
    for (size_t i = 0; i < lengths.size(); ++i) {
      if (cache_[i] == nullptr || cache_[i]->length() != lengths[i]) {
        cache_[i] = std::make_shared<const FourierTransform>(lengths[i], inverse);
      }
    }
    return cache_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<const FourierTransform>> cache_;
};

// The dimensions of one transform: those of input and output, and its lengths. For a transform to
// or from real numbers, the last dimension of the complex side has the first half of the
// frequencies; the others are their conjugates.
struct Grid {
  Dims in, out, lengths;
  int64_t size(const Dims& dims) const {
    int64_t n = 1;
    for (const int64_t d : dims) n *= d;
    return n;
  }
};

int64_t HalfOf(int64_t n) { return n == 0 ? 0 : n / 2 + 1; }

// TransformCache the arrays of a range of batch elements sequentially, on one thread.
class Worker {
 public:
  Worker(const Options& options, const Grid& grid,
         const std::vector<std::shared_ptr<const FourierTransform>>& transforms)
      : options_(options), grid_(grid) {
    for (const auto& t : transforms) lines_.push_back(*t);
    // The working array: all frequencies, or half of them.
    dims_ = grid.lengths;
    if (options.kind != Kind::kComplex) dims_.back() = HalfOf(grid.lengths.back());
    array_.resize(static_cast<size_t>(grid.size(dims_)));
    int64_t longest = 1;
    for (const int64_t n : grid.lengths) longest = std::max(longest, n);
    line_.resize(static_cast<size_t>(longest));
    result_.resize(static_cast<size_t>(longest));
  }

  template <class In, class Out>
  void Run(const In* in, Out* out) {
    const int last = static_cast<int>(dims_.size()) - 1;
    Load(in);
    if constexpr (!std::is_floating_point_v<In> && !std::is_floating_point_v<Out>) {
      for (int d = 0; d <= last; ++d) TransformAlong(d);
      Store(out);
    } else if constexpr (std::is_floating_point_v<In>) {
      for (int d = 0; d < last; ++d) TransformAlong(d);
      Store(out);
    } else {
      for (int d = 0; d < last; ++d) TransformAlong(d);
      StoreReal(out);
    }
  }

 private:
  // Calls row() with the offsets of each row in the array and in a tensor with these dimensions;
  // the array is a corner of the tensor.
  template <class F>
  void ForEachRow(const Dims& tensor_dims, const F& row) const {
    const size_t outer = dims_.size() - 1;
    Dims index(outer, 0);
    const int64_t rows = array_.empty() ? 0 : static_cast<int64_t>(array_.size()) / dims_.back();
    for (int64_t r = 0; r < rows; ++r) {
      ThrowIfCancelled();
      int64_t at = 0;
      for (size_t d = 0; d < outer; ++d) at = at * tensor_dims[d] + index[d];
      row(r * dims_.back(), at * tensor_dims.back());
      for (size_t d = outer; d-- > 0;) {
        if (++index[d] < dims_[d]) break;
        index[d] = 0;
      }
    }
  }

  template <class T>
  void Load(const std::complex<T>* in) {
    ForEachRow(grid_.in, [&](int64_t to, int64_t from) {
      for (int64_t i = 0; i < dims_.back(); ++i) array_[to + i] = Number(in[from + i]);
    });
  }
  // TransformCache real rows while loading them.
  template <class T>
  void Load(const T* in) {
    const int64_t n = grid_.lengths.back();
    ForEachRow(grid_.in, [&](int64_t to, int64_t from) {
      for (int64_t i = 0; i < n; ++i) line_[i] = Number(in[from + i]);
      lines_.back().Run(line_.data(), result_.data());
      std::copy_n(result_.begin(), dims_.back(), array_.begin() + to);
    });
  }

  double Scale() const {
    return options_.inverse ? 1 / static_cast<double>(grid_.size(grid_.lengths)) : 1;
  }
  template <class T>
  void Store(std::complex<T>* out) const {
    const double scale = Scale();
    for (size_t i = 0; i < array_.size(); ++i) out[i] = std::complex<T>(array_[i] * scale);
  }
  // Completes half a row of frequencies with the conjugates, transforms it, and stores the real
  // part.
  template <class T>
  void StoreReal(T* out) {
    const double scale = Scale();
    const int64_t n = grid_.lengths.back();
    ForEachRow(grid_.out, [&](int64_t from, int64_t to) {
      for (int64_t i = 0; i < dims_.back(); ++i) line_[i] = array_[from + i];
      for (int64_t i = dims_.back(); i < n; ++i) line_[i] = std::conj(line_[n - i]);
      lines_.back().Run(line_.data(), result_.data());
      for (int64_t i = 0; i < n; ++i) out[to + i] = static_cast<T>(result_[i].real() * scale);
    });
  }

  void TransformAlong(int d) {
    const int64_t n = dims_[d];
    int64_t stride = 1;
    for (size_t i = static_cast<size_t>(d) + 1; i < dims_.size(); ++i) stride *= dims_[i];
    const int64_t count = static_cast<int64_t>(array_.size()) / n;
    for (int64_t k = 0; k < count; ++k) {
      ThrowIfCancelled();
      Number* at = array_.data() + k / stride * stride * n + k % stride;
      for (int64_t i = 0; i < n; ++i) line_[i] = at[i * stride];
      lines_[d].Run(line_.data(), result_.data());
      for (int64_t i = 0; i < n; ++i) at[i * stride] = result_[i];
    }
  }

  const Options options_;
  const Grid& grid_;
  Dims dims_;
  std::vector<FourierTransform> lines_;
  std::vector<Number> array_, line_, result_;
};

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
  Dims wanted = grid.lengths;
  if (o.kind == Kind::kFromReal) grid.out.back() = HalfOf(grid.lengths.back());
  if (o.kind == Kind::kToReal) wanted.back() = HalfOf(grid.lengths.back());
  for (int i = 0; i < rank; ++i) {
    grid.in.push_back(input.dim(i - rank));
    // Fills outputs with zeros if the input is empty.
    if (grid.in[i] < wanted[i] && grid.in[i] > 0) {
      return InvalidArgument("Input dimension ", input.rank() - rank + i,
                             " must have length of at least ", wanted[i], " but got: ", grid.in[i]);
    }
  }
  return grid;
}

template <class In, class Out>
absl::Status Transform(KernelContext& c, const Options& o, TransformCache* transforms) {
  const Tensor& input = c.input(0);
  int rank = o.rank;
  if (rank < 0) {
    WEIR_ASSIGN_OR_RETURN(rank, ReadAxes(c));
  }
  WEIR_ASSIGN_OR_RETURN(const Grid grid, GridOf(c, o, rank));
  const Shape batch = input.shape().Sub(0, input.rank() - rank);
  WEIR_ASSIGN_OR_RETURN(
      Tensor * output,
      c.AllocateOutput(0, batch.Concatenate(Shape(absl::MakeConstSpan(grid.out)))));
  if (output->num_elements() == 0) return absl::OkStatus();
  if (input.num_elements() == 0) {
    ClearElements(c.pool(), *output);
    return absl::OkStatus();
  }
  const auto kept = transforms->Get(grid.lengths, o.inverse);
  const int64_t in_size = grid.size(grid.in), out_size = grid.size(grid.out);
  const double points = static_cast<double>(grid.size(grid.lengths));
  const double cost = 10 * points * (1 + std::log2(points));
  c.pool().ParallelFor(batch.num_elements(), cost, [&](int64_t begin, int64_t end) {
    Worker worker(o, grid, kept);
    for (int64_t b = begin; b < end; ++b) {
      worker.Run(input.data<In>() + b * in_size, output->data<Out>() + b * out_size);
    }
  });
  return absl::OkStatus();
}

template <class In, class Out>
Kernel MakeTransform(const Options& o) {
  const auto transforms = std::make_shared<TransformCache>();
  return Kernel([o, transforms](KernelContext& c) -> absl::Status {
    return Transform<In, Out>(c, o, transforms.get());
  });
}

template <class T>
Kernel MakeOfPrecision(const Options& o) {
  switch (o.kind) {
    case Kind::kComplex:
      return MakeTransform<std::complex<T>, std::complex<T>>(o);
    case Kind::kFromReal:
      return MakeTransform<T, std::complex<T>>(o);
    case Kind::kToReal:
      return MakeTransform<std::complex<T>, T>(o);
  }
  return {};
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
    return real == DT_DOUBLE ? MakeOfPrecision<double>(o) : MakeOfPrecision<float>(o);
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
