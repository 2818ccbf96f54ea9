#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "weir/kernels/lib/blocks.h"
#include "weir/kernels/lib/scalar_math.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/kernels/sparse/csr_matrix.h"
#include "weir/kernels/sparse/sparse_value.h"

// Conversions between CSR matrices, sparse tensors and dense tensors; parts and transposes.
namespace weir {

namespace {

// ---- from indices

// Makes a matrix with the element values[i] at the indices in row i of `at`. The indices are in
// range, and their rows must be in order; TensorFlow returns another matrix if they are not.
absl::StatusOr<CsrMatrix> FromIndices(const int64_t* at, const Tensor& values, const Dims& dims) {
  WEIR_ASSIGN_OR_RETURN(CsrMatrix m, NewCsr(dims));
  const int64_t count = values.num_elements(), rank = m.rank();
  if (count > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("values number of elements must be <= Int32Max, but the input value is ",
                           count);
  }
  WEIR_ASSIGN_OR_RETURN(m.columns, Tensor::Allocate(HostAllocator(), DT_INT32, Shape({count})));
  m.values = values;
  int32_t* const ends = m.batch_pointers.data<int32_t>() + 1;
  int64_t previous = 0;
  for (const auto [begin, end] : CancellableBlocks(count)) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t* const p = at + i * rank;
      const int64_t b = rank == 3 ? p[0] : 0, row = p[rank - 2], place = b * m.rows() + row;
      if (place < previous) {
        return InvalidArgument("indices must be in order of their rows, but indices[", i,
                               "] is out of order; SparseReorder sorts them");
      }
      previous = place;
      ++ends[b];
      ++m.row(b)[row + 1];
      m.columns.data<int32_t>()[i] = static_cast<int32_t>(p[rank - 1]);
    }
  }
  std::partial_sum(ends, ends + m.batch(), ends);
  for (int64_t b = 0; b < m.batch(); ++b) {
    ThrowIfCancelledAt(b);
    std::partial_sum(m.row(b), m.row(b) + m.rows() + 1, m.row(b));
  }
  return m;
}

absl::Status FromSparse(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const SparseValue x, ReadSparse(c, 0));
  if (x.rank() != 2 && x.rank() != 3) {
    return InvalidArgument("SparseTensor must have rank 2 or 3; but indices has rank: ", x.rank());
  }
  WEIR_RETURN_IF_ERROR(CheckBounds(x));
  WEIR_ASSIGN_OR_RETURN(const CsrMatrix m, FromIndices(x.row(0), x.values, x.dims));
  return OutputCsr(c, 0, m);
}

absl::Status FromDense(KernelContext& c) {
  const Tensor &dense = c.input(0), &indices = c.input(1);
  const int rank = dense.rank();
  if (rank != 2 && rank != 3) {
    return InvalidArgument("params must have rank == 2 or 3; but saw shape: ",
                           dense.shape().ToString());
  }
  if (indices.rank() != 2) {
    return InvalidArgument("indices must be a matrix, but saw shape: ", indices.shape().ToString());
  }
  if (indices.dim(1) != rank) {
    return InvalidArgument("indices.shape[1] must be equal to the rank of params, but saw: ",
                           indices.dim(1), " vs. ", rank);
  }
  const int64_t count = indices.dim(0);
  const Dims strides = StridesOf(dense.shape());
  std::vector<int64_t> places(count, 0);
  for (int64_t i = 0; i < count; ++i) {
    ThrowIfCancelledAt(i);
    const int64_t* const p = indices.data<int64_t>() + i * rank;
    for (int d = 0; d < rank; ++d) {
      if (p[d] < 0 || p[d] >= dense.dim(d)) {
        return InvalidArgument("indices[", i, "] does not index into param shape ",
                               dense.shape().ToString(), ": index ", p[d], " of dimension ", d);
      }
      places[i] += p[d] * strides[d];
    }
  }
  WEIR_ASSIGN_OR_RETURN(Tensor values,
                        Tensor::Allocate(HostAllocator(), dense.dtype(), Shape({count})));
  GatherElements(dense, places, values);
  const Dims dims(dense.shape().dims().begin(), dense.shape().dims().end());
  WEIR_ASSIGN_OR_RETURN(const CsrMatrix m, FromIndices(indices.data<int64_t>(), values, dims));
  return OutputCsr(c, 0, m);
}

// ---- to other forms

// Calls f(batch, row, element) for all elements in order.
template <class F>
void ForEachElement(const CsrMatrix& m, const F& f) {
  for (int64_t b = 0; b < m.batch(); ++b) {
    for (int64_t r = 0; r < m.rows(); ++r) {
      ThrowIfCancelledAt(r);
      for (int64_t i = m.row(b)[r]; i < m.row(b)[r + 1]; ++i) f(b, r, m.first(b) + i);
    }
  }
}

// If several elements are at one place, the last one is written.
template <class T>
absl::Status ToDense(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const CsrMatrix m, ReadCsr(c, 0, DataTypeOf<T>::value));
  WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape(m.dims));
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, shape));
  ClearElements(c, *out);
  const int32_t* const columns = m.columns.data<int32_t>();
  const T* const values = m.values.data<T>();
  ForEachElement(m, [&, to = out->data<T>()](int64_t b, int64_t r, int64_t i) {
    to[(b * m.rows() + r) * m.cols() + columns[i]] = values[i];
  });
  return absl::OkStatus();
}

template <class T>
absl::Status ToSparse(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const CsrMatrix m, ReadCsr(c, 0, DataTypeOf<T>::value));
  const int64_t rank = m.rank();
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, Shape({m.count(), rank})));
  const int32_t* const columns = m.columns.data<int32_t>();
  ForEachElement(m, [&, to = out->data<int64_t>()](int64_t b, int64_t r, int64_t i) {
    int64_t* const row = to + i * rank;
    row[0] = b;
    row[rank - 2] = r;
    row[rank - 1] = columns[i];
  });
  c.SetOutput(1, m.values);
  return OutputInts(c, 2, m.dims);
}

template <class T>
absl::Status Components(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const CsrMatrix m, ReadCsr(c, 0, DataTypeOf<T>::value));
  const Tensor& index = c.input(1);
  if (index.rank() != 0) {
    return InvalidArgument("index should be a scalar, but saw: ", index.Description());
  }
  const int64_t b = index.scalar<int32_t>();
  if (b < 0 || b >= m.batch()) {
    return InvalidArgument("index (", b, ") not in [0, ", m.batch(), ")");
  }
  const int64_t rows = m.rows() + 1, first = m.first(b);
  WEIR_RETURN_IF_ERROR(OutputRun(c, 0, m.row_pointers, b * rows, Shape({rows})));
  WEIR_RETURN_IF_ERROR(OutputRun(c, 1, m.columns, first, Shape({m.count_of(b)})));
  return OutputRun(c, 2, m.values, first, Shape({m.count_of(b)}));
}

absl::Status CountElements(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const CsrMatrix m, ReadCsr(c, 0));
  WEIR_ASSIGN_OR_RETURN(Tensor* const out,
                        c.AllocateOutput(0, m.rank() == 3 ? Shape({m.batch()}) : Shape()));
  for (int64_t b = 0; b < m.batch(); ++b)
    out->data<int32_t>()[b] = static_cast<int32_t>(m.count_of(b));
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeTranspose(const KernelInit& init) {
  const auto type = init.attr<DataType>("type");
  const bool conjugate = init.attr<bool>("conjugate");
  return Kernel([=](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const CsrMatrix m, ReadCsr(c, 0, type));
    WEIR_ASSIGN_OR_RETURN(const CsrMatrix out, TransposeCsr(m, conjugate));
    return OutputCsr(c, 0, out);
  });
}

// Conj of a variant: the only one that it is defined for is a CSR matrix.
absl::Status Conjugate(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(CsrMatrix m, ReadCsr(c, 0));
  const Tensor values = m.values;
  WEIR_ASSIGN_OR_RETURN(m.values,
                        Tensor::Allocate(HostAllocator(), values.dtype(), values.shape()));
  DispatchType(values.dtype(), CsrTypes{}, [&]<class T>() {
    const T* const from = values.data<T>();
    T* const to = m.values.data<T>();
    c.pool().ParallelFor(values.num_elements(), 0.5, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = ScalarMath<T>::Conj(from[i]);
    });
  });
  return OutputCsr(c, 0, m);
}

template <class... Ts>
void AddTyped(KernelRegistry* r, List<Ts...>) {
  const auto type = [](DataType t) { return TypeConstraints{{"type", t}}; };
  (r->Add("CSRSparseMatrixToDense", kCpu, type(DataTypeOf<Ts>::value), ToDense<Ts>), ...);
  (r->Add("CSRSparseMatrixToSparseTensor", kCpu, type(DataTypeOf<Ts>::value), ToSparse<Ts>), ...);
  (r->Add("CSRSparseMatrixComponents", kCpu, type(DataTypeOf<Ts>::value), Components<Ts>), ...);
  (r->Add("SparseMatrixTranspose", kCpu, type(DataTypeOf<Ts>::value), MakeTranspose), ...);
  (r->Add("SparseTensorToCSRSparseMatrix", kCpu, DataTypeOf<Ts>::value, FromSparse), ...);
  (r->Add("DenseToCSRSparseMatrix", kCpu, DataTypeOf<Ts>::value, FromDense), ...);
}

}  // namespace

void AddCsrKernels(KernelRegistry* r) {
  AddTyped(r, CsrTypes{});
  r->Add("SparseMatrixNNZ", kCpu, CountElements);
  r->Add("Conj", kCpu, DT_VARIANT, Conjugate);
}

}  // namespace weir
