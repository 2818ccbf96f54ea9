#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/bin_counter.h"
#include "weir/kernels/lib/blocks.h"
#include "weir/kernels/lib/bound_search.h"
#include "weir/kernels/lib/registry.h"

// Binary search in sorted rows, selection by rank, and counting.
namespace weir {

namespace {

// ---- search in sorted rows

template <class T, class Index, bool kUpper>
absl::Status Bound(KernelContext& c) {
  const Tensor &sorted = c.input(0), &values = c.input(1);
  WEIR_RETURN_IF_ERROR(CheckRank(sorted, 2, "sorted_inputs"));
  WEIR_RETURN_IF_ERROR(CheckRank(values, 2, "values"));
  if (sorted.dim(0) != values.dim(0)) {
    return InvalidArgument("Leading dim_size of both tensors must match.");
  }
  const int64_t length = sorted.dim(1), columns = values.dim(1);
  if (length > std::numeric_limits<Index>::max()) {
    return InvalidArgument("trailing dim_size must less than INT_MAX for int32 output type, was ",
                           length);
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, values.shape()));
  const double cost = 5 * std::log2(static_cast<double>(length) + 2);
  c.pool().ParallelFor(values.num_elements(), cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin, last; i < end; i = last) {
      const int64_t row = i / columns;
      last = std::min(end, (row + 1) * columns);
      FindBounds<kUpper>(sorted.data<T>() + row * length, length, values.data<T>() + i, last - i,
                         output->data<Index>() + i);
    }
  });
  return absl::OkStatus();
}

// ---- selection

template <class T>
bool IsNan(const T& v) {
  if constexpr (std::is_integral_v<T>) {
    return false;
  } else {
    return std::isnan(static_cast<float>(v));
  }
}
// A total order that includes NaNs, which are larger than any number.
template <class T>
bool Less(const T& a, const T& b) {
  return a < b || (!IsNan(a) && IsNan(b));
}

template <class T>
absl::Status NthElement(KernelContext& c, bool reverse) {
  const Tensor& input = c.input(0);
  WEIR_RETURN_IF_ERROR(CheckRank(c.input(1), 0, "N"));
  WEIR_RETURN_IF_ERROR(CheckRankAtLeast(input, 1, "Input"));
  const int64_t n = c.input(1).IntAt(0), columns = input.dim(-1);
  if (n < 0) return InvalidArgument("n must be non-negative but is ", n);
  if (columns <= n) return InvalidArgument("Input must have last dimension > n = ", n);
  const int64_t place = reverse ? columns - n - 1 : n;
  WEIR_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, input.shape().Sub(0, -1)));
  const double cost = 5.0 * static_cast<double>(columns);
  c.pool().ParallelFor(output->num_elements(), cost, [&](int64_t begin, int64_t end) {
    std::vector<T> row(static_cast<size_t>(columns));
    for (int64_t r = begin; r < end; ++r) {
      std::copy_n(input.data<T>() + r * columns, columns, row.begin());
      SortCancellably(columns, Less<T>, [&](const auto& less) {
        std::nth_element(row.begin(), row.begin() + place, row.end(), less);
      });
      output->data<T>()[r] = row[static_cast<size_t>(place)];
    }
  });
  return absl::OkStatus();
}

template <class T>
absl::StatusOr<Kernel> MakeNthElement(const KernelInit& init) {
  const bool reverse = init.attr<bool>("reverse");
  return Kernel([reverse](KernelContext& c) -> absl::Status { return NthElement<T>(c, reverse); });
}

struct TopKOptions {
  int64_t k, dimension;
  bool largest;
};

// The result is exact, whatever recall is requested: values in order, and of equal values the
// first.
template <class T>
absl::Status ApproxTopK(KernelContext& c, const TopKOptions& o) {
  const Tensor& input = c.input(0);
  WEIR_RETURN_IF_ERROR(CheckRankAtLeast(input, 1, "input"));
  WEIR_ASSIGN_OR_RETURN(const int axis, ReadAxis(o.dimension, input.rank()));
  const int64_t n = input.dim(axis), k = o.k;
  if (n < k) return InvalidArgument("input must have at least k columns. Had ", n, ", needed ", k);
  if (n > std::numeric_limits<int32_t>::max()) return InvalidArgument("input is too long: ", n);
  Shape shape = input.shape();
  shape.set_dim(axis, k);
  WEIR_ASSIGN_OR_RETURN(Tensor * values, c.AllocateOutput(0, shape));
  WEIR_ASSIGN_OR_RETURN(Tensor * indices, c.AllocateOutput(1, shape));
  if (values->num_elements() == 0) return absl::OkStatus();
  const int64_t stride = input.shape().Sub(axis + 1).num_elements();
  const int64_t rows = input.num_elements() / n;
  c.pool().ParallelFor(rows, 10.0 * static_cast<double>(n), [&](int64_t begin, int64_t end) {
    std::vector<int32_t> order(static_cast<size_t>(n));
    for (int64_t r = begin; r < end; ++r) {
      const int64_t outer = r / stride, inner = r % stride;
      const T* const row = input.data<T>() + outer * n * stride + inner;
      std::iota(order.begin(), order.end(), 0);
      const auto comes_first = [&](int32_t a, int32_t b) {
        const T &x = row[a * stride], &y = row[b * stride];
        if (Less(x, y)) return !o.largest;
        if (Less(y, x)) return o.largest;
        return a < b;
      };
      SortCancellably(n, comes_first, [&](const auto& less) {
        std::partial_sort(order.begin(), order.begin() + k, order.end(), less);
      });
      for (int64_t i = 0; i < k; ++i) {
        const int64_t to = (outer * k + i) * stride + inner;
        values->data<T>()[to] = row[order[static_cast<size_t>(i)] * stride];
        indices->data<int32_t>()[to] = order[static_cast<size_t>(i)];
      }
    }
  });
  return absl::OkStatus();
}

template <class T>
absl::StatusOr<Kernel> MakeApproxTopK(const KernelInit& init) {
  const TopKOptions o = {init.attr<int64_t>("k"), init.attr<int64_t>("reduction_dimension"),
                         init.attr<bool>("is_max_k")};
  return Kernel([o](KernelContext& c) -> absl::Status { return ApproxTopK<T>(c, o); });
}

// ---- coordinates

template <class T>
absl::Status UnravelIndex(KernelContext& c) {
  const Tensor &indices = c.input(0), &dims = c.input(1);
  if (indices.rank() > 1) {
    return InvalidArgument("The indices can only be scalar or vector, got ",
                           indices.shape().ToString());
  }
  if (indices.num_elements() == 0) return InvalidArgument("received empty tensor indices");
  WEIR_RETURN_IF_ERROR(CheckRank(dims, 1, "dims"));
  const T* const extents = dims.data<T>();
  const int64_t rank = dims.dim(0), count = indices.num_elements();
  T size = 1;
  for (int64_t d = 0; d < rank; ++d) {
    if (extents[d] == 0) {
      return InvalidArgument(
          "Input dims cannot contain a dim of zero, but dims contains zero at index ", d);
    }
    if (extents[d] < 0) {
      return InvalidArgument("Input dims cannot be negative. Got dim = ", extents[d], " at index ",
                             d);
    }
    if (__builtin_mul_overflow(size, extents[d], &size)) {
      return InvalidArgument("Input dims product is causing integer overflow");
    }
  }
  Shape shape({rank});
  if (indices.rank() == 1) shape.AddDim(count);
  WEIR_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, shape));
  for (const auto [begin, end] : CancellableBlocks(count)) {
    for (int64_t i = begin; i < end; ++i) {
      T rest = indices.data<T>()[i];
      if (rest >= size) return InvalidArgument("index is out of bound as with dims");
      for (int64_t d = rank - 1; d >= 0; --d) {
        output->data<T>()[d * count + i] = rest % extents[d];
        rest /= extents[d];
      }
    }
  }
  return absl::OkStatus();
}

// ---- counting

// The arguments and the output of the three ops: rows of `size` bins.
template <class T, class Index>
class Bins {
 public:
  // Reads the arguments `size` and `weights` from these inputs, for `values` of this shape.
  absl::Status Read(const KernelContext& c, int size, int weights, const Shape& values) {
    if (c.input(size).rank() != 0) {
      return InvalidArgument("Shape must be rank 0 but is rank ", c.input(size).rank());
    }
    size_ = c.input(size).IntAt(0);
    if (size_ < 0) return InvalidArgument("size (", size_, ") must be non-negative");
    const Tensor& w = c.input(weights);
    if (w.num_elements() == 0) return absl::OkStatus();
    if (w.shape() != values) {
      return InvalidArgument(
          "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which case it acts "
          "as all weights equal to 1. Received ",
          w.shape().ToString());
    }
    weights_ = w.data<T>();
    return absl::OkStatus();
  }

  // Allocates the output: `rows` rows, or one row without that dimension.
  absl::Status Allocate(KernelContext& c, std::optional<int64_t> rows) {
    WEIR_ASSIGN_OR_RETURN(const Shape shape, rows.has_value()
                                                 ? CheckedShape(std::vector<int64_t>{*rows, size_})
                                                 : CheckedShape(std::vector<int64_t>{size_}));
    WEIR_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, shape));
    bins_ = output->data<T>();
    count_ = output->num_elements();
    return absl::OkStatus();
  }

  void Clear() { std::fill_n(bins_, count_, T(0)); }
  T* row(int64_t r) const { return bins_ + r * size_; }
  BinCounter<T, Index> Counter(bool binary) const { return {size_, weights_, binary}; }

 private:
  int64_t size_ = 0, count_ = 0;
  const T* weights_ = nullptr;
  T* bins_ = nullptr;
};

template <class Index>
absl::Status CheckNotNegative(const Tensor& values) {
  const Index* v = values.data<Index>();
  for (const auto [begin, end] : CancellableBlocks(values.num_elements())) {
    for (int64_t i = begin; i < end; ++i) {
      if (v[i] < 0) {
        return InvalidArgument("Input arr must be non-negative! Negative input value found: ",
                               v[i]);
      }
    }
  }
  return absl::OkStatus();
}

template <class T, class Index>
absl::Status DenseBincount(KernelContext& c, bool binary) {
  const Tensor& values = c.input(0);
  if (values.rank() > 2) {
    return InvalidArgument("Shape must be at most rank 2 but is rank ", values.rank());
  }
  Bins<T, Index> bins;
  WEIR_RETURN_IF_ERROR(bins.Read(c, 1, 2, values.shape()));
  const Index* const v = values.data<Index>();
  const BinCounter<T, Index> counter = bins.Counter(binary);
  if (values.rank() < 2) {
    WEIR_RETURN_IF_ERROR(bins.Allocate(c, std::nullopt));
    if (counter.CountAll(c.pool(), v, values.num_elements(), bins.row(0)) >= 0)
      return absl::OkStatus();
    return CheckNotNegative<Index>(values);
  }
  WEIR_RETURN_IF_ERROR(CheckNotNegative<Index>(values));
  WEIR_RETURN_IF_ERROR(bins.Allocate(c, values.dim(0)));
  bins.Clear();
  // Rows of bins are independent.
  const int64_t rows = values.dim(0), columns = values.dim(1);
  c.pool().ParallelFor(rows, 2.0 * static_cast<double>(columns), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      counter.Count(v, row * columns, (row + 1) * columns, bins.row(row));
  });
  return absl::OkStatus();
}

absl::Status CheckSparse(const Tensor& indices, const Tensor& values, const Tensor& shape) {
  WEIR_RETURN_IF_ERROR(CheckRank(indices, 2, "indices"));
  WEIR_RETURN_IF_ERROR(CheckRank(values, 1, "values"));
  WEIR_RETURN_IF_ERROR(CheckRank(shape, 1, "dense_shape"));
  if (shape.dim(0) == 0) return InvalidArgument("dense_shape must have at least one element");
  if (indices.dim(0) != values.dim(0) || indices.dim(1) != shape.dim(0)) {
    return InvalidArgument("indices of shape ", indices.shape().ToString(), " do not fit ",
                           values.dim(0), " values in ", shape.dim(0), " dimensions");
  }
  WEIR_RETURN_IF_ERROR(ReadShape(shape, "dense_shape").status());
  const int64_t* const at = indices.data<int64_t>();
  for (const auto [begin, end] : CancellableBlocks(indices.num_elements())) {
    for (int64_t i = begin; i < end; ++i) {
      if (at[i] < 0 || at[i] >= shape.data<int64_t>()[i % shape.dim(0)]) {
        return InvalidArgument("Sparse index tuple indices[", i / shape.dim(0),
                               ", :] is out of bounds");
      }
    }
  }
  return absl::OkStatus();
}

template <class T, class Index>
absl::Status SparseBincount(KernelContext& c, bool binary) {
  const Tensor &indices = c.input(0), &values = c.input(1), &shape = c.input(2);
  WEIR_RETURN_IF_ERROR(CheckSparse(indices, values, shape));
  Bins<T, Index> bins;
  WEIR_RETURN_IF_ERROR(bins.Read(c, 3, 4, values.shape()));
  const int64_t rank = shape.dim(0);
  if (rank == 1) WEIR_RETURN_IF_ERROR(CheckNotNegative<Index>(values));
  WEIR_RETURN_IF_ERROR(
      bins.Allocate(c, rank == 1 ? std::nullopt : std::optional(shape.data<int64_t>()[0])));
  const Index* const v = values.data<Index>();
  const int64_t* const at = indices.data<int64_t>();
  const int64_t count = values.num_elements();
  const BinCounter<T, Index> counter = bins.Counter(binary);
  if (rank == 1) {
    counter.CountAll(c.pool(), v, count, bins.row(0));
    return absl::OkStatus();
  }
  bins.Clear();
  for (int64_t i = 0, end; i < count; i = end) {
    for (end = i + 1; end < count && at[end * rank] == at[i * rank];) ++end;
    counter.Count(v, i, end, bins.row(at[i * rank]));
  }
  return absl::OkStatus();
}

template <class T, class Index>
absl::Status RaggedBincount(KernelContext& c, bool binary) {
  const Tensor &splits = c.input(0), &values = c.input(1);
  WEIR_RETURN_IF_ERROR(CheckRank(splits, 1, "splits"));
  const int64_t rows = splits.dim(0) - 1, count = values.num_elements();
  if (rows < 0) return InvalidArgument("Splits must be non-empty");
  const int64_t* const ends = splits.data<int64_t>();
  if (ends[0] != 0) return InvalidArgument("Splits must start with 0, not with ", ends[0]);
  if (ends[rows] != count) {
    return InvalidArgument("Splits must end with the number of values, got ", ends[rows],
                           " instead of ", count);
  }
  Bins<T, Index> bins;
  WEIR_RETURN_IF_ERROR(bins.Read(c, 2, 3, values.shape()));
  WEIR_RETURN_IF_ERROR(CheckNotNegative<Index>(values));
  WEIR_RETURN_IF_ERROR(bins.Allocate(c, rows));
  bins.Clear();
  const BinCounter<T, Index> counter = bins.Counter(binary);
  // The last split is greater than every i, so the search ends there whatever the other splits are.
  int64_t next = 0;
  for (int64_t i = 0, end; i < count; i = end) {
    while (i >= ends[next]) ++next;
    end = std::min(ends[next], count);
    counter.Count(values.data<Index>(), i, end, bins.row(next - 1));
  }
  return absl::OkStatus();
}

template <absl::Status (*kRun)(KernelContext&, bool)>
absl::StatusOr<Kernel> MakeBincount(const KernelInit& init) {
  const bool binary = init.attr<bool>("binary_output");
  return Kernel([binary](KernelContext& c) -> absl::Status { return kRun(c, binary); });
}

template <class Index, class... Ts>
void AddBincounts(KernelRegistry* r, List<Ts...>) {
  const auto add = [r]<class T>() {
    const TypeConstraints types = {{"T", DataTypeOf<T>::value}, {"Tidx", DataTypeOf<Index>::value}};
    r->Add("DenseBincount", kCpu, types, MakeBincount<DenseBincount<T, Index>>);
    r->Add("SparseBincount", kCpu, types, MakeBincount<SparseBincount<T, Index>>);
    r->Add("RaggedBincount", kCpu, types, MakeBincount<RaggedBincount<T, Index>>);
  };
  (add.template operator()<Ts>(), ...);
}

template <class... Ts>
void AddSearch(KernelRegistry* r, List<Ts...>) {
  const auto add = [r]<class T>(DataType type) {
    const TypeConstraints narrow = {{"T", type}, {"out_type", DT_INT32}};
    const TypeConstraints wide = {{"T", type}, {"out_type", DT_INT64}};
    r->Add("LowerBound", kCpu, narrow, Bound<T, int32_t, false>);
    r->Add("LowerBound", kCpu, wide, Bound<T, int64_t, false>);
    r->Add("UpperBound", kCpu, narrow, Bound<T, int32_t, true>);
    r->Add("UpperBound", kCpu, wide, Bound<T, int64_t, true>);
    r->Add("NthElement", kCpu, type, MakeNthElement<T>);
  };
  (add.template operator()<Ts>(DataTypeOf<Ts>::value), ...);
}

}  // namespace

void AddSearchCpu(KernelRegistry* r) {
  AddSearch(r, RealNumbers{});
  AddBincounts<int32_t>(r, List<int32_t, int64_t, float, double>{});
  AddBincounts<int64_t>(r, List<int32_t, int64_t, float, double>{});
  r->Add("UnravelIndex", kCpu, {{"Tidx", DT_INT32}}, UnravelIndex<int32_t>);
  r->Add("UnravelIndex", kCpu, {{"Tidx", DT_INT64}}, UnravelIndex<int64_t>);
  r->Add("ApproxTopK", kCpu, DT_HALF, MakeApproxTopK<half>);
  r->Add("ApproxTopK", kCpu, DT_BFLOAT16, MakeApproxTopK<bfloat16>);
  r->Add("ApproxTopK", kCpu, DT_FLOAT, MakeApproxTopK<float>);
}

}  // namespace weir
