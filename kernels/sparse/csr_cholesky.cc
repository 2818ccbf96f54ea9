#include <algorithm>
#include <cmath>
#include <eigen3/Eigen/OrderingMethods>
#include <eigen3/Eigen/SparseCore>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "weir/kernels/lib/blocks.h"
#include "weir/kernels/lib/scalar_math.h"
#include "weir/kernels/sparse/csr_matrix.h"

// Sparse Cholesky factors of CSR matrices, and orderings of rows that keep the factors sparse.
//
// The factor L of the permuted matrix has elements where the elimination of earlier rows creates
// them. The elimination tree (Liu 1986) finds these places: the parent of column j is the first row
// below the diagonal in which column j of L has an element, and row k of L has elements in the
// columns on the paths from the columns of row k of the matrix up to k. A first pass builds the
// tree and counts the elements, so that the memory is known before it is allocated. A second pass
// computes row after row by substitution (the up-looking algorithm; Davis 2006): with the columns
// in ascending order, L[k, j] = x[j] / L[j, j], and then L[k, j] conj(L[r, j]) is subtracted from
// x[r] for the elements r of column j that earlier rows have written.
namespace weir {

namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

absl::Status CheckSquare(const CsrMatrix& m) {
  if (m.rows() == m.cols()) return absl::OkStatus();
  return InvalidArgument("sparse matrix must be square; got: ", m.rows(), " != ", m.cols());
}

// ---- SparseMatrixOrderingAMD

// Only the lower triangle is read.
absl::Status Order(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const CsrMatrix m, ReadCsr(c, 0));
  WEIR_RETURN_IF_ERROR(CheckSquare(m));
  const int64_t n = m.rows();
  const Shape shape = m.rank() == 3 ? Shape({m.batch(), n}) : Shape({n});
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, shape));
  // Eigen stores both triangles, with some room to grow, and indexes them with 32 bits.
  if (3 * m.count() + 2 * n > kMost)
    return InvalidArgument("the matrices have too many elements to be ordered: ", m.count());
  if (n == 0) return absl::OkStatus();
  for (int64_t b = 0; b < m.batch(); ++b) {
    ThrowIfCancelled();
    const int* const columns = m.columns_of(b);
    const Eigen::Map<const Eigen::SparseMatrix<int, Eigen::RowMajor>> pattern(
        n, n, m.count_of(b), m.row(b), columns, columns);
    Eigen::PermutationMatrix<Eigen::Dynamic, Eigen::Dynamic, int> order;
    Eigen::AMDOrdering<int>()(pattern.selfadjointView<Eigen::Lower>(), order);
    std::copy_n(order.indices().data(), n, out->data<int32_t>() + b * n);
  }
  return absl::OkStatus();
}

// ---- SparseMatrixSparseCholesky

// Returns the position of each row in the permutation: its inverse.
absl::StatusOr<std::vector<int32_t>> Positions(const int32_t* permutation, int64_t n) {
  std::vector<int32_t> positions(n, -1);
  for (int64_t i = 0; i < n; ++i) {
    const int32_t row = permutation[i];
    if (row < 0 || row >= n || positions[row] >= 0) {
      return InvalidArgument("permutation must have each of 0 to ", n - 1, " once, but element ", i,
                             " is ", row);
    }
    positions[row] = static_cast<int32_t>(i);
  }
  return positions;
}

// The lower triangle of a permuted matrix, by rows: row k has the elements [ends[k], ends[k + 1]).
template <class T>
struct LowerTriangle {
  std::vector<int32_t> ends, columns;
  std::vector<T> values;

  LowerTriangle(const CsrMatrix& m, int64_t b, const std::vector<int32_t>& positions)
      : ends(m.rows() + 2, 0) {
    ForEach(m, b, positions, [&](int32_t row, int32_t, T) { ++ends[row + 2]; });
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
    columns.resize(ends.back());
    values.resize(ends.back());
    ForEach(m, b, positions, [&](int32_t row, int32_t column, T value) {
      const int32_t at = ends[row + 1]++;
      columns[at] = column;
      values[at] = value;
    });
  }

  // Calls f(row, column, value) for the elements in the lower triangle of matrix b, at their
  // permuted places.
  template <class F>
  static void ForEach(const CsrMatrix& m, int64_t b, const std::vector<int32_t>& positions,
                      const F& f) {
    for (int64_t r = 0; r < m.rows(); ++r) {
      ThrowIfCancelledAt(r);
      for (int64_t i = m.row(b)[r]; i < m.row(b)[r + 1]; ++i) {
        const int64_t column = m.columns_of(b)[i];
        if (column > r) continue;
        const int32_t p = positions[r], q = positions[column];
        const T value = m.values_of<T>(b)[i];
        if (p >= q) {
          f(p, q, value);
        } else {
          f(q, p, ScalarMath<T>::Conj(value));
        }
      }
    }
  }
};

// The places of the elements of L, row after row.
class FactorPattern {
 public:
  explicit FactorPattern(int64_t n) : parents_(n, -1), reached_(n, -1) {}

  // Returns the columns left of the diagonal in which row k of L has elements, in order, and
  // extends the tree by row k of the matrix, which has elements in `columns`. To be called for k =
  // 0, 1, ...; the result is valid until the next call.
  const std::vector<int32_t>& Row(int32_t k, absl::Span<const int32_t> columns) {
    row_.clear();
    for (int32_t j : columns) {
      for (; j < k && reached_[j] != k; j = parents_[j]) {
        reached_[j] = k;
        row_.push_back(j);
        if (parents_[j] < 0) parents_[j] = k;
      }
    }
    std::sort(row_.begin(), row_.end());
    return row_;
  }

 private:
  std::vector<int32_t> parents_, reached_, row_;
};

template <class T>
class Cholesky {
 public:
  Cholesky(const CsrMatrix& m, int64_t b, const std::vector<int32_t>& positions)
      : n_(static_cast<int32_t>(m.rows())), lower_(m, b, positions), begins_(n_ + 1, 0) {}

  // Writes the pointers of rows of the factor, from 0, and returns the number of elements.
  absl::StatusOr<int64_t> CountRows(int32_t* pointers) {
    FactorPattern pattern(n_);
    int64_t count = 0;
    for (int32_t k = 0; k < n_; ++k) {
      ThrowIfCancelledAt(k);
      for (const int32_t j : pattern.Row(k, columns(k))) {
        ++begins_[j + 1];
        ++count;
      }
      if (++count > kMost) return InvalidArgument("the factor has more than ", kMost, " elements");
      pointers[k + 1] = static_cast<int32_t>(count);
    }
    return count;
  }

  // Writes columns and values; `pointers` are those of CountRows. Returns false if the matrix is
  // not positive definite.
  absl::StatusOr<bool> Fill(const int32_t* pointers, int32_t* out_columns, T* out_values) {
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    const Shape below({begins_.back()});
    WEIR_ASSIGN_OR_RETURN(Tensor rows, Tensor::Allocate(HostAllocator(), DT_INT32, below));
    WEIR_ASSIGN_OR_RETURN(Tensor values,
                          Tensor::Allocate(HostAllocator(), DataTypeOf<T>::value, below));
    std::vector<int32_t> ends = begins_;  // of the elements of each column that have been written
    std::vector<T> x(n_, T(0)), diagonal(n_);
    FactorPattern pattern(n_);
    for (int32_t k = 0; k < n_; ++k) {
      for (int32_t i = lower_.ends[k]; i < lower_.ends[k + 1]; ++i)
        x[lower_.columns[i]] += lower_.values[i];
      auto d = std::real(std::exchange(x[k], T(0)));
      int64_t at = pointers[k];
      for (const int32_t j : pattern.Row(k, columns(k))) {
        ThrowIfCancelledAt(at);
        const T element = std::exchange(x[j], T(0)) / diagonal[j];
        for (int32_t i = begins_[j]; i < ends[j]; ++i)
          x[rows.data<int32_t>()[i]] -= element * ScalarMath<T>::Conj(values.data<T>()[i]);
        d -= std::norm(element);
        rows.data<int32_t>()[ends[j]] = k;
        values.data<T>()[ends[j]++] = element;
        out_columns[at] = j;
        out_values[at++] = element;
      }
      if (d <= 0) return false;
      diagonal[k] = std::sqrt(d);
      out_columns[at] = k;
      out_values[at] = diagonal[k];
    }
    return true;
  }

 private:
  // The columns of row k of the matrix.
  absl::Span<const int32_t> columns(int32_t k) const {
    return absl::MakeSpan(lower_.columns)
        .subspan(lower_.ends[k], lower_.ends[k + 1] - lower_.ends[k]);
  }

  int32_t n_;
  LowerTriangle<T> lower_;
  std::vector<int32_t> begins_;  // where each column of L begins, without the diagonal
};

absl::Status CheckPermutation(const CsrMatrix& m, const Tensor& permutation) {
  if (permutation.rank() + 1 != m.rank()) {
    return InvalidArgument("sparse matrix must have the same rank as permutation; got: ", m.rank(),
                           " != ", permutation.rank(), " + 1.");
  }
  if (permutation.dim(-1) != m.rows()) {
    return InvalidArgument(
        "permutation must have the same number of elements in each batch as the number of rows in "
        "sparse matrix; got: ",
        permutation.dim(-1), " != ", m.rows());
  }
  if (m.rank() == 3 && permutation.dim(0) != m.batch()) {
    return InvalidArgument("permutation must have the same batch size as sparse matrix; got: ",
                           permutation.dim(0), " != ", m.batch());
  }
  return absl::OkStatus();
}

template <class T>
absl::Status Factor(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const CsrMatrix m, ReadCsr(c, 0, DataTypeOf<T>::value));
  WEIR_RETURN_IF_ERROR(CheckSquare(m));
  const Tensor& permutation = c.input(1);
  WEIR_RETURN_IF_ERROR(CheckPermutation(m, permutation));
  WEIR_ASSIGN_OR_RETURN(CsrMatrix out, NewCsr(m.dims));
  std::vector<Cholesky<T>> factors;
  for (int64_t b = 0; b < m.batch(); ++b) {
    WEIR_ASSIGN_OR_RETURN(const std::vector<int32_t> positions,
                          Positions(permutation.data<int32_t>() + b * m.rows(), m.rows()));
    factors.emplace_back(m, b, positions);
    WEIR_ASSIGN_OR_RETURN(const int64_t count, factors.back().CountRows(out.row(b)));
    if (out.first(b) + count > kMost)
      return InvalidArgument("the factors have more than ", kMost, " elements");
    out.batch_pointers.data<int32_t>()[b + 1] = static_cast<int32_t>(out.first(b) + count);
  }
  WEIR_RETURN_IF_ERROR(AllocateElements(DataTypeOf<T>::value, &out));
  for (int64_t b = 0; b < m.batch(); ++b) {
    WEIR_ASSIGN_OR_RETURN(const bool positive,
                          factors[b].Fill(out.row(b), out.columns_of(b), out.values_of<T>(b)));
    if (positive) continue;
    return InvalidArgument("Sparse Cholesky factorization failed for batch index ", b,
                           ". The input might not be valid.");
  }
  return OutputCsr(c, 0, out);
}

template <class... Ts>
void AddTyped(KernelRegistry* r, List<Ts...>) {
  (r->Add("SparseMatrixSparseCholesky", kCpu, TypeConstraints{{"type", DataTypeOf<Ts>::value}},
          Factor<Ts>),
   ...);
}

}  // namespace

void AddCsrFactorizationKernels(KernelRegistry* r) {
  r->Add("SparseMatrixOrderingAMD", kCpu, Order);
  AddTyped(r, CsrTypes{});
}

}  // namespace weir
