#include <algorithm>
#include <cmath>
#include <complex>

#include "absl/strings/str_join.h"
#include "weir/kernels/lib/accumulate.h"
#include "weir/kernels/lib/blocks.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/kernels/sparse/sparse_kernels.h"

// Arithmetic on the elements of sparse tensors.
namespace weir {

namespace {

// ---- SparseTensorDenseAdd

absl::Status CheckFits(const SparseValue& x, const Shape& dense) {
  if (x.rank() != dense.rank()) {
    return InvalidArgument("Two operands have different ranks; received: ", x.rank(), " and ",
                           dense.rank());
  }
  for (int d = 0; d < x.rank(); ++d) {
    if (x.dims[d] == dense.dim(d)) continue;
    return InvalidArgument("Dimension ", d,
                           " does not equal (no broadcasting is supported): sparse side ",
                           x.dims[d], " vs dense side ", dense.dim(d));
  }
  for (const auto [begin, end] : CancellableBlocks(x.count())) {
    for (int64_t i = begin; i < end; ++i) {
      for (int d = 0; d < x.rank(); ++d) {
        if (x.row(i)[d] >= 0 && x.row(i)[d] < x.dims[d]) continue;
        return InvalidArgument("Sparse tensor has an invalid index on dimension ", d,
                               ": a_indices(", i, ",", d, ") = ", x.row(i)[d],
                               ", dense tensor shape: ", dense.ToString());
      }
    }
  }
  return absl::OkStatus();
}

template <class T>
absl::Status AddToDense(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const SparseValue x, ReadSparse(c, 0));
  const Tensor& dense = c.input(3);
  WEIR_RETURN_IF_ERROR(CheckFits(x, dense.shape()));
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, dense.shape()));
  if (out->raw() != dense.raw())
    CopyElements(c, dense.dtype(), dense.raw(), out->raw(), dense.num_elements());
  const Dims strides = StridesOf(dense.shape());
  const T* const values = x.values.data<T>();
  for (const auto [begin, end] : CancellableBlocks(x.count())) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t at = 0;
      for (int d = 0; d < x.rank(); ++d) at += x.row(i)[d] * strides[d];
      T& sum = out->data<T>()[at];
      sum = Add(sum, values[i]);
    }
  }
  return absl::OkStatus();
}

// ---- SparseAdd, SparseSparseMaximum and SparseSparseMinimum

// Merges two lists of rows, which should be sorted, and calls f(i, j) for each row in order: i and
// j are its positions in the lists, or -1 in a list that lacks it.
template <class F>
void Merge(const SparseValue& a, const SparseValue& b, F&& f) {
  const int64_t rank = a.rank(), m = a.count(), n = b.count();
  const int64_t *x = a.row(0), *y = b.row(0);
  for (int64_t i = 0, j = 0, merged = 0; i < m || j < n; ++merged) {
    ThrowIfCancelledAt(merged);
    const int order = i == m ? 1 : j == n ? -1 : CompareRows(x, y, rank);
    f(order <= 0 ? i : -1, order >= 0 ? j : -1);
    if (order <= 0) ++i, x += rank;
    if (order >= 0) ++j, y += rank;
  }
}

absl::Status ReadPair(const KernelContext& c, SparseValue* a, SparseValue* b) {
  WEIR_ASSIGN_OR_RETURN(*a, ReadSparse(c, 0));
  WEIR_ASSIGN_OR_RETURN(*b, ReadSparse(c, 3));
  return CheckSameDims(*a, *b);
}

// Merges two tensors and writes the rows and values that are kept as outputs 0 and 1.
// combine(i, j, &value) returns whether the value of elements i and j (-1: missing) is kept.
// Merging twice, first to count, takes less time than lists that grow: their memory is new in every
// step.
template <class T, class F>
absl::Status OutputMerged(KernelContext& c, const SparseValue& a, const SparseValue& b,
                          F&& combine) {
  const int64_t rank = a.rank();
  int64_t count = 0;
  Merge(a, b, [&](int64_t i, int64_t j) {
    T value;
    count += combine(i, j, &value) ? 1 : 0;
  });
  WEIR_ASSIGN_OR_RETURN(Tensor* const indices, c.AllocateOutput(0, Shape({count, rank})));
  WEIR_ASSIGN_OR_RETURN(Tensor* const values, c.AllocateOutput(1, Shape({count})));
  int64_t* to = indices->data<int64_t>();
  T* out = values->data<T>();
  Merge(a, b, [&](int64_t i, int64_t j) {
    T value;
    if (!combine(i, j, &value)) return;
    const int64_t* const row = i >= 0 ? a.row(i) : b.row(j);
    for (int64_t d = 0; d < rank; ++d) *to++ = row[d];
    *out++ = value;
  });
  return absl::OkStatus();
}

// Small integers become int, which holds the magnitude of the lowest one.
template <class T>
auto Magnitude(T x) {
  if constexpr (ScalarMath<T>::kComplex || (std::is_integral_v<T> && sizeof(T) < sizeof(int)))
    return std::abs(x);
  else
    return ScalarMath<T>::Abs(x);
}

// The threshold applies only to sums of two elements; elements of only one tensor are kept.
template <class T, class Real>
absl::Status AddSparse(KernelContext& c) {
  SparseValue a, b;
  WEIR_RETURN_IF_ERROR(ReadPair(c, &a, &b));
  if (c.input(6).rank() != 0) {
    return InvalidArgument("The magnitude threshold must be a scalar: got shape ",
                           c.input(6).shape().ToString());
  }
  const Real threshold = *c.input_data<Real>(6);
  const T *const x = a.values.data<T>(), *const y = b.values.data<T>();
  const auto add = [=](int64_t i, int64_t j, T* sum) {
    *sum = i < 0 ? y[j] : j < 0 ? x[i] : Add(x[i], y[j]);
    return i < 0 || j < 0 || threshold <= Magnitude(*sum);
  };
  WEIR_RETURN_IF_ERROR(OutputMerged<T>(c, a, b, add));
  return OutputInts(c, 2, a.dims);
}

template <class T>
struct MaxOf {
  using Acc = Wide<T>;
  static T Apply(T a, T b) { return static_cast<T>(ScalarMath<Acc>::Max(Acc(a), Acc(b))); }
};
template <class T>
struct MinOf {
  using Acc = Wide<T>;
  static T Apply(T a, T b) { return static_cast<T>(ScalarMath<Acc>::Min(Acc(a), Acc(b))); }
};

// A missing element counts as zero.
template <class F, class T>
absl::Status CombineSparse(KernelContext& c) {
  SparseValue a, b;
  WEIR_RETURN_IF_ERROR(ReadPair(c, &a, &b));
  WEIR_RETURN_IF_ERROR(CheckBounds(a));
  WEIR_RETURN_IF_ERROR(CheckBounds(b));
  const T *const x = a.values.data<T>(), *const y = b.values.data<T>();
  return OutputMerged<T>(c, a, b, [=](int64_t i, int64_t j, T* value) {
    *value = F::Apply(i >= 0 ? x[i] : T(0), j >= 0 ? y[j] : T(0));
    return true;
  });
}

// ---- SparseAddGrad

// Rows of `part` that are in `sum` too get its elements of the gradient, the others zero. Both
// lists are sorted.
absl::Status OutputPartGradient(KernelContext& c, int output, const Tensor& part,
                                const Tensor& sum) {
  const int64_t rank = part.dim(1), count = part.dim(0);
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(output, Shape({count})));
  ClearElements(c.pool(), *out);
  const int64_t *x = part.data<int64_t>(), *y = sum.data<int64_t>();
  std::vector<int64_t> from, to;
  for (int64_t i = 0, k = 0; i < count && k < sum.dim(0);) {
    ThrowIfCancelled();
    const int order = CompareRows(x + i * rank, y + k * rank, rank);
    if (order == 0) {
      to.push_back(i);
      from.push_back(k);
    }
    if (order <= 0) ++i;
    if (order >= 0) ++k;
  }
  WEIR_ASSIGN_OR_RETURN(Tensor found,
                        c.AllocateTemp(out->dtype(), Shape({static_cast<int64_t>(to.size())})));
  GatherElements(c.input(0), from, found);
  ScatterElements(found, to, *out);
  return absl::OkStatus();
}

absl::Status AddGrad(KernelContext& c) {
  const Tensor &grad = c.input(0), &a = c.input(1), &b = c.input(2), &sum = c.input(3);
  for (const Tensor* t : {&a, &b, &sum}) {
    if (t->rank() == 2) continue;
    return InvalidArgument("Input indices should be matrices but received shape: ",
                           t->shape().ToString());
  }
  if (grad.rank() != 1) {
    return InvalidArgument("Input backprop_val_grad should be a vector but received shape: ",
                           grad.shape().ToString());
  }
  if (a.dim(1) != b.dim(1) || b.dim(1) != sum.dim(1)) {
    return InvalidArgument("The densified operands should have the same ndims; for A, B, sum got: ",
                           a.dim(1), ", ", b.dim(1), ", ", sum.dim(1));
  }
  if (grad.dim(0) != sum.dim(0)) {
    return InvalidArgument(
        "# elements of backprop_val_grad and # rows of sum_indices should match (#nnz of sum): "
        "got ",
        grad.dim(0), " and ", sum.dim(0));
  }
  WEIR_RETURN_IF_ERROR(OutputPartGradient(c, 0, a, sum));
  return OutputPartGradient(c, 1, b, sum);
}

// ---- SparseDenseCwiseAdd and similar ops

// Gathers the elements of a dense tensor, broadcast to the sparse one, at the positions of its
// elements.
absl::StatusOr<std::vector<int64_t>> GatherDense(const SparseValue& x, const Shape& dense) {
  const int lead = x.rank() - dense.rank();
  bool fits = lead >= 0;
  for (int d = 0; fits && d < dense.rank(); ++d)
    fits = dense.dim(d) == 1 || dense.dim(d) == x.dims[lead + d];
  if (!fits) {
    return InvalidArgument(
        "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: [",
        absl::StrJoin(x.dims, ","), "] vs. ", dense.ToString());
  }
  if (!CheckBounds(x).ok()) {
    return InvalidArgument(
        "Provided indices are out-of-bounds w.r.t. dense side with broadcasted shape");
  }
  const Dims strides = StridesOf(dense);
  std::vector<int64_t> places(x.count(), 0);
  for (const auto [begin, end] : CancellableBlocks(x.count())) {
    for (int64_t i = begin; i < end; ++i) {
      for (int d = 0; d < dense.rank(); ++d) {
        if (dense.dim(d) != 1) places[i] += x.row(i)[lead + d] * strides[d];
      }
    }
  }
  return places;
}

template <class T>
struct AddOf {
  static constexpr bool kDivides = false;
  static T Apply(T a, T b) { return Add(a, b); }
};
template <class T>
struct MulOf {
  static constexpr bool kDivides = false;
  static T Apply(T a, T b) {
    return static_cast<T>(ScalarMath<Wide<T>>::Mul(Wide<T>(a), Wide<T>(b)));
  }
};
template <class T>
struct DivOf {
  static constexpr bool kDivides = true;
  static T Apply(T a, T b) {
    return static_cast<T>(ScalarMath<Wide<T>>::Div(Wide<T>(a), Wide<T>(b)));
  }
};

template <class F, class T>
absl::Status SparseDenseCwise(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const SparseValue x, ReadSparse(c, 0));
  WEIR_ASSIGN_OR_RETURN(const std::vector<int64_t> places, GatherDense(x, c.input(3).shape()));
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, x.values.shape()));
  const T *const values = x.values.data<T>(), *const dense = c.input_data<T>(3);
  for (const auto [begin, end] : CancellableBlocks(x.count())) {
    for (int64_t i = begin; i < end; ++i) {
      const T y = dense[places[i]];
      if (F::kDivides && y == T(0)) {
        return InvalidArgument(
            "SparseDenseCwiseDiv cannot divide by zero, but input dense tensor contains zero");
      }
      out->data<T>()[i] = F::Apply(values[i], y);
    }
  }
  return absl::OkStatus();
}

// ---- SparseSoftmax

// Softmax over the present elements of each row of the last dimension. They are sorted.
template <class T>
absl::Status Softmax(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const SparseValue x, ReadSparse(c, 0));
  const int64_t rank = x.rank(), n = x.count();
  if (rank < 2) {
    return InvalidArgument("Input should have rank >= 2, but received shape of ", rank,
                           " dimensions");
  }
  WEIR_RETURN_IF_ERROR(CheckedShape(x.dims).status());
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, x.values.shape()));
  const std::vector<int64_t> order = SortedOrder(x.indices.data<int64_t>(), n, rank);
  const T* const values = x.values.data<T>();
  T* const y = out->data<T>();
  for (int64_t begin = 0, end; begin < n; begin = end) {
    ThrowIfCancelled();
    for (end = begin + 1; end < n; ++end) {
      if (CompareRows(x.row(order[begin]), x.row(order[end]), rank - 1) != 0) break;
    }
    Wide<T> largest = values[order[begin]], sum = 0;
    for (int64_t i = begin; i < end; ++i) largest = std::max<Wide<T>>(largest, values[order[i]]);
    for (int64_t i = begin; i < end; ++i) sum += std::exp(values[order[i]] - largest);
    for (int64_t i = begin; i < end; ++i)
      y[i] = static_cast<T>(std::exp(values[order[i]] - largest) / sum);
  }
  return absl::OkStatus();
}

// ---- registration

template <class T>
struct MagnitudeOf {
  using Type = T;
};
template <class T>
struct MagnitudeOf<std::complex<T>> {
  using Type = T;
};

template <class... Ts>
void AddSums(KernelRegistry* r, List<Ts...>) {
  (r->Add(
       "SparseAdd", kCpu,
       {{"T", DataTypeOf<Ts>::value}, {"Treal", DataTypeOf<typename MagnitudeOf<Ts>::Type>::value}},
       AddSparse<Ts, typename MagnitudeOf<Ts>::Type>),
   ...);
}

template <class... Ts>
void AddToDenseKernels(KernelRegistry* r, List<Ts...>) {
  (r->Add("SparseTensorDenseAdd", kCpu, DataTypeOf<Ts>::value, AddToDense<Ts>).InPlace({3}), ...);
}

template <class T>
void AddReal(KernelRegistry* r) {
  const DataType type = DataTypeOf<T>::value;
  r->Add("SparseSparseMaximum", kCpu, type, CombineSparse<MaxOf<T>, T>);
  r->Add("SparseSparseMinimum", kCpu, type, CombineSparse<MinOf<T>, T>);
  r->Add("SparseDenseCwiseAdd", kCpu, type, SparseDenseCwise<AddOf<T>, T>);
  r->Add("SparseDenseCwiseMul", kCpu, type, SparseDenseCwise<MulOf<T>, T>);
  r->Add("SparseDenseCwiseDiv", kCpu, type, SparseDenseCwise<DivOf<T>, T>);
}

template <class... Ts>
void AddReals(KernelRegistry* r, List<Ts...>) {
  (AddReal<Ts>(r), ...);
}

}  // namespace

void AddSparseMathCpu(KernelRegistry* r) {
  AddToDenseKernels(r, Numbers{});
  AddSums(r, JoinLists<List<float, double>, SignedIntegers, Complexes>{});
  r->Add("SparseAddGrad", kCpu, AddGrad);
  AddReals(r, RealNumbers{});
  r->Add("SparseSoftmax", kCpu, DT_HALF, Softmax<half>);
  r->Add("SparseSoftmax", kCpu, DT_FLOAT, Softmax<float>);
  r->Add("SparseSoftmax", kCpu, DT_DOUBLE, Softmax<double>);
  AddSparseReduceCpu(r);
  AddSparseMatMulCpu(r);
  AddEditDistanceCpu(r);
}

}  // namespace weir
