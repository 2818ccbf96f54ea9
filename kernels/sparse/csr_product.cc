#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "weir/kernels/lib/accumulate.h"
#include "weir/kernels/lib/blocks.h"
#include "weir/kernels/lib/scalar_math.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/kernels/sparse/csr_matrix.h"

// Products of CSR matrices with dense matrices and with each other. A transposed factor is
// transposed first, so that all products are computed by rows.
namespace weir {

namespace {

// What is done to a factor.
struct Form {
  bool transpose = false, conjugate = false;
};

absl::StatusOr<Form> ReadForm(const KernelInit& init, const std::string& factor) {
  const bool transpose = init.attr<bool>("transpose_" + factor),
             adjoint = init.attr<bool>("adjoint_" + factor);
  if (transpose && adjoint) {
    return InvalidArgument("Only one of adjoint_", factor, " and transpose_", factor,
                           " may be true.");
  }
  return Form{transpose || adjoint, adjoint};
}

absl::StatusOr<CsrMatrix> ReadFactor(const KernelContext& c, int i, DataType type,
                                     const Form& form) {
  WEIR_ASSIGN_OR_RETURN(CsrMatrix m, ReadCsr(c, i, type));
  if (!form.transpose) return m;
  return TransposeCsr(m, form.conjugate);
}

// Copies each matrix of a batch, transposed, and conjugated if `conjugate`.
template <class T>
void TransposeDense(ThreadPool& pool, const T* from, int64_t batch, int64_t rows, int64_t cols,
                    bool conjugate, T* to) {
  pool.ParallelFor(batch * cols, static_cast<double>(rows), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const T* const column = from + k / cols * rows * cols + k % cols;
      for (int64_t r = 0; r < rows; ++r)
        to[k * rows + r] = conjugate ? ScalarMath<T>::Conj(column[r * cols]) : column[r * cols];
    }
  });
}

// ---- SparseMatrixMatMul

struct DenseProduct {
  Form left, right, result;

  absl::Status Check(const CsrMatrix& a, const Tensor& b) const {
    if (a.rank() != b.rank()) {
      return InvalidArgument("Ranks of a and b must match, saw: ", a.rank(), " vs. ", b.rank(),
                             ".");
    }
    if (b.rank() == 3 && a.batch() != b.dim(0)) {
      return InvalidArgument("Batch sizes of a and b must match, saw: ", a.batch(), " vs. ",
                             b.dim(0), ".");
    }
    if (a.cols() == b.dim(right.transpose ? -1 : -2)) return absl::OkStatus();
    return InvalidArgument(
        "Inner product dimensions of A and B do not agree.  Shapes are: ", Shape(a.dims).ToString(),
        left.transpose ? " (transposed)" : "", " vs. ", b.shape().ToString());
  }

  // Each row of the result is a sum of rows of B, in the order of the elements of A.
  template <class T>
  absl::Status Multiply(KernelContext& c, const CsrMatrix& x, const T* y, int64_t n, T* out) const {
    const int64_t rows = x.rows(),
                  cost = std::max<int64_t>(1, x.count() / std::max<int64_t>(1, rows));
    c.pool().ParallelFor(x.batch() * rows, static_cast<double>(n * cost),
                         [&](int64_t begin, int64_t end) {
                           for (int64_t k = begin; k < end; ++k) {
                             ThrowIfCancelledAt(k);
                             const int64_t b = k / rows, r = k % rows;
                             T* const to = out + k * n;
                             std::fill_n(to, n, T(0));
                             for (int64_t i = x.row(b)[r]; i < x.row(b)[r + 1]; ++i) {
                               const T factor = x.values_of<T>(b)[i];
                               const T* const from = y + (b * x.cols() + x.columns_of(b)[i]) * n;
                               for (int64_t j = 0; j < n; ++j)
                                 to[j] = Add(to[j], ScalarMath<T>::Mul(factor, from[j]));
                             }
                           }
                         });
    return absl::OkStatus();
  }

  template <class T>
  absl::Status Run(KernelContext& c) const {
    constexpr DataType kType = DataTypeOf<T>::value;
    WEIR_ASSIGN_OR_RETURN(const CsrMatrix x, ReadFactor(c, 0, kType, left));
    const Tensor& dense = c.input(1);
    WEIR_RETURN_IF_ERROR(Check(x, dense));
    const int64_t batch = x.batch(), m = x.rows(), n = dense.dim(right.transpose ? -2 : -1);
    Tensor y = dense;
    if (right.transpose) {
      WEIR_ASSIGN_OR_RETURN(y, c.AllocateTemp(kType, dense.shape()));
      TransposeDense(c.pool(), dense.data<T>(), batch, n, x.cols(), right.conjugate, y.data<T>());
    }
    Dims dims = x.dims;
    dims[dims.size() - 2] = result.transpose ? n : m;
    dims[dims.size() - 1] = result.transpose ? m : n;
    WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape(dims));
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, shape));
    T* const to = out->data<T>();
    if (result.transpose) {
      WEIR_ASSIGN_OR_RETURN(Tensor product, c.AllocateTemp(kType, shape));
      WEIR_RETURN_IF_ERROR(Multiply(c, x, y.data<T>(), n, product.data<T>()));
      TransposeDense(c.pool(), product.data<T>(), batch, m, n, result.conjugate, to);
      return absl::OkStatus();
    }
    WEIR_RETURN_IF_ERROR(Multiply(c, x, y.data<T>(), n, to));
    if (result.conjugate) {
      for (int64_t i = 0; i < out->num_elements(); ++i) to[i] = ScalarMath<T>::Conj(to[i]);
    }
    return absl::OkStatus();
  }
};

template <class T>
absl::StatusOr<Kernel> MakeDenseProduct(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const Form a, ReadForm(init, "a"));
  WEIR_ASSIGN_OR_RETURN(const Form b, ReadForm(init, "b"));
  const Form result{init.attr<bool>("transpose_output"), init.attr<bool>("conjugate_output")};
  return Kernel([product = DenseProduct{a, b, result}](KernelContext& c) -> absl::Status {
    return product.Run<T>(c);
  });
}

// ---- SparseMatrixSparseMatMul
//
// Row r of A B is the sum of the rows of B that the elements of row r of A select (Gustavson 1978).
// An accumulator has one sum for each column in which B has elements: a matrix may have far more
// columns than elements. A first pass counts the elements of each row, a second one computes them.
// Sums that are 0 are kept, as in TensorFlow.

// The rows of matrix b of a batch, with columns numbered by their position among those that have
// elements.
struct CompactColumns {
  std::vector<int32_t> names;    // the columns that have elements, in order
  std::vector<int32_t> numbers;  // for each element, the position of its column in `names`

  CompactColumns(const CsrMatrix& m, int64_t b)
      : names(m.columns_of(b), m.columns_of(b) + m.count_of(b)), numbers(names.size()) {
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    for (size_t i = 0; i < numbers.size(); ++i) {
      const auto at = std::lower_bound(names.begin(), names.end(), m.columns_of(b)[i]);
      numbers[i] = static_cast<int32_t>(at - names.begin());
    }
  }
};

// The columns of the current row: a list, and for each column the last row that listed it.
class RowColumns {
 public:
  explicit RowColumns(size_t columns) : listed_(columns, -1) {}

  void Begin(int64_t row) {
    row_ = row;
    list_.clear();
  }
  // Returns true if the column is new in this row.
  bool Insert(int32_t column) {
    if (listed_[column] == row_) return false;
    listed_[column] = row_;
    list_.push_back(column);
    return true;
  }
  std::vector<int32_t>& list() { return list_; }

 private:
  std::vector<int64_t> listed_;
  std::vector<int32_t> list_;
  int64_t row_ = -1;
};

// Calls f(element of A, element of B) for the pairs whose products are summed in row r.
template <class F>
void ForEachPair(const CsrMatrix& x, const CsrMatrix& y, int64_t b, int64_t r, const F& f) {
  for (int64_t i = x.row(b)[r]; i < x.row(b)[r + 1]; ++i) {
    ThrowIfCancelledAt(i);
    const int64_t k = x.columns_of(b)[i];
    for (int64_t j = y.row(b)[k]; j < y.row(b)[k + 1]; ++j) f(i, j);
  }
}

// Writes the pointers of rows of matrix b, from 0.
absl::Status CountRows(const CsrMatrix& x, const CsrMatrix& y, int64_t b,
                       const CompactColumns& columns, CsrMatrix* out) {
  RowColumns row(columns.names.size());
  int64_t count = 0;
  for (int64_t r = 0; r < x.rows(); ++r) {
    row.Begin(r);
    ForEachPair(x, y, b, r, [&](int64_t, int64_t j) { row.Insert(columns.numbers[j]); });
    count += static_cast<int64_t>(row.list().size());
    if (out->first(b) + count > std::numeric_limits<int32_t>::max())
      return InvalidArgument("the product has more than ", std::numeric_limits<int32_t>::max(),
                             " elements");
    out->row(b)[r + 1] = static_cast<int32_t>(count);
  }
  out->batch_pointers.data<int32_t>()[b + 1] = static_cast<int32_t>(out->first(b) + count);
  return absl::OkStatus();
}

template <class T>
void FillRows(const CsrMatrix& x, const CsrMatrix& y, int64_t b, const CompactColumns& columns,
              CsrMatrix* out) {
  RowColumns row(columns.names.size());
  std::vector<T> sums(columns.names.size());
  const T *const left = x.values_of<T>(b), *const right = y.values_of<T>(b);
  for (int64_t r = 0; r < x.rows(); ++r) {
    row.Begin(r);
    ForEachPair(x, y, b, r, [&](int64_t i, int64_t j) {
      const int32_t column = columns.numbers[j];
      const T product = ScalarMath<T>::Mul(left[i], right[j]);
      sums[column] = row.Insert(column) ? product : Add(sums[column], product);
    });
    std::sort(row.list().begin(), row.list().end());
    int64_t at = out->row(b)[r];
    for (const int32_t column : row.list()) {
      out->columns_of(b)[at] = columns.names[column];
      out->values_of<T>(b)[at++] = sums[column];
    }
  }
}

absl::Status CheckFactors(const CsrMatrix& x, const CsrMatrix& y) {
  if (x.rank() != y.rank() || x.batch() != y.batch()) {
    return InvalidArgument("Batch sizes of A and B do not agree.  Batch sizes are: ", x.batch(),
                           " vs. ", y.batch(), ", and ranks: ", x.rank(), " vs. ", y.rank());
  }
  if (x.cols() == y.rows()) return absl::OkStatus();
  return InvalidArgument("Inner product dimensions of A and B do not agree.  Shapes are: ",
                         Shape(x.dims).ToString(), " vs. ", Shape(y.dims).ToString());
}

template <class T>
absl::Status MultiplySparse(KernelContext& c, const Form& a, const Form& b) {
  WEIR_ASSIGN_OR_RETURN(const CsrMatrix x, ReadFactor(c, 0, DataTypeOf<T>::value, a));
  WEIR_ASSIGN_OR_RETURN(const CsrMatrix y, ReadFactor(c, 1, DataTypeOf<T>::value, b));
  WEIR_RETURN_IF_ERROR(CheckFactors(x, y));
  Dims dims = x.dims;
  dims.back() = y.cols();
  WEIR_ASSIGN_OR_RETURN(CsrMatrix out, NewCsr(dims));
  std::vector<CompactColumns> columns;
  for (int64_t i = 0; i < x.batch(); ++i) {
    columns.emplace_back(y, i);
    WEIR_RETURN_IF_ERROR(CountRows(x, y, i, columns.back(), &out));
  }
  WEIR_RETURN_IF_ERROR(AllocateElements(DataTypeOf<T>::value, &out));
  c.pool().ForEach(static_cast<int>(x.batch()),
                   [&](int i) { FillRows<T>(x, y, i, columns[i], &out); });
  return OutputCsr(c, 0, out);
}

template <class T>
absl::StatusOr<Kernel> MakeSparseProduct(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const Form a, ReadForm(init, "a"));
  WEIR_ASSIGN_OR_RETURN(const Form b, ReadForm(init, "b"));
  return Kernel([=](KernelContext& c) -> absl::Status { return MultiplySparse<T>(c, a, b); });
}

template <class... Ts>
void AddTyped(KernelRegistry* r, List<Ts...>) {
  (r->Add("SparseMatrixMatMul", kCpu, DataTypeOf<Ts>::value, MakeDenseProduct<Ts>), ...);
  (r->Add("SparseMatrixSparseMatMul", kCpu, TypeConstraints{{"type", DataTypeOf<Ts>::value}},
          MakeSparseProduct<Ts>),
   ...);
}

}  // namespace

void AddCsrProductKernels(KernelRegistry* r) { AddTyped(r, CsrTypes{}); }

}  // namespace weir
