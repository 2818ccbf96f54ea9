#include <vector>

#include "weir/kernels/lib/broadcast.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/linalg/blas.h"
#include "weir/kernels/linalg/linalg.h"

// Linear systems with a triangular matrix, given in full or as its bands. The outer dimensions of
// the matrices and the right-hand sides broadcast. The columns of a right-hand side are
// independent: they are solved in panels, on several threads, in place in the result, whose rows
// are those that vectors run along.
namespace weir {

namespace {

struct Options {
  bool lower, adjoint;
};

// Columns [first, first + count) of n x k right-hand sides `b` and of their solutions `x`.
template <class T>
struct Panel {
  static constexpr int64_t kWidth = 128;

  const T* b;
  T* x;
  int64_t n, k, first, count;

  const T* b_row(int64_t i) const { return b + i * k + first; }
  T* x_row(int64_t i) const { return x + i * k + first; }
};

// Returns the matrix of `from` for each matrix of the result.
std::vector<int64_t> MatrixIndices(const Shape& from, const Shape& batch) {
  const Shape* const shapes[] = {&from};
  std::vector<int64_t> all(static_cast<size_t>(from.num_elements()));
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  std::vector<int64_t> taken(static_cast<size_t>(batch.num_elements()));
  Broadcast(batch, shapes)
      .Gather(0, all.data(), sizeof(int64_t), 0, batch.num_elements(), taken.data());
  return taken;
}

// Computes output 0 for these arguments; solve(matrix, panel) solves a part of one system, which
// takes `cost` nanoseconds per column.
template <class T, class F>
absl::Status SolveBroadcast(KernelContext& c, double cost, const F& solve) {
  const Tensor &matrix = c.input(0), &rhs = c.input(1);
  if (matrix.dim(-1) != rhs.dim(-2)) {
    return InvalidArgument("In[0] mismatch In[1] shape: ", matrix.dim(-1), " vs. ", rhs.dim(-2),
                           ": ", matrix.shape().ToString(), " ", rhs.shape().ToString());
  }
  const Shape matrices = BatchOf(matrix), sides = BatchOf(rhs);
  const absl::StatusOr<Shape> batch = BroadcastShapes(matrices, sides);
  if (!batch.ok()) {
    return InvalidArgument("In[0] and In[1] must have compatible batch dimensions: ",
                           matrix.shape().ToString(), " vs. ", rhs.shape().ToString());
  }
  const int64_t n = rhs.dim(-2), k = rhs.dim(-1), size = matrix.dim(-2) * n;
  WEIR_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, batch->Concatenate({n, k})));
  if (output->num_elements() == 0) return absl::OkStatus();
  const std::vector<int64_t> a = MatrixIndices(matrices, *batch), b = MatrixIndices(sides, *batch);
  const int64_t panels = (k + Panel<T>::kWidth - 1) / Panel<T>::kWidth;
  const int64_t widest = std::min(k, Panel<T>::kWidth);
  c.pool().ParallelFor(
      batch->num_elements() * panels, 1000 + cost * static_cast<double>(widest),
      [&](int64_t begin, int64_t end) {
        for (; begin < end; ++begin) {
          const int64_t i = begin / panels, first = begin % panels * widest;
          const size_t at = static_cast<size_t>(i);
          solve(matrix.data<T>() + a[at] * size,
                Panel<T>{rhs.data<T>() + b[at] * n * k, output->data<T>() + i * n * k, n, k, first,
                         std::min(widest, k - first)});
        }
      });
  return absl::OkStatus();
}

// Reversing rows and columns makes an upper matrix a lower one.
template <class T>
void SolvePanel(const Options& o, const T* matrix, const Panel<T>& p) {
  for (int64_t i = 0; i < p.n; ++i) std::copy_n(p.b_row(i), p.count, p.x_row(i));
  blas::View<T> t{const_cast<T*>(matrix), p.n, 1}, x{p.x_row(0), p.k, 1};
  if (o.adjoint) {
    t = t.Transposed();
    t.conjugate = true;
  }
  if (o.lower == o.adjoint) {
    t = t.RowsReversed(p.n).ColumnsReversed(p.n);
    x = x.RowsReversed(p.n);
  }
  blas::SolveLower(p.n, p.count, t, /*unit=*/false, x);
}

template <class T>
absl::Status SolveTriangular(KernelContext& c, const Options& o) {
  const Tensor &matrix = c.input(0), &rhs = c.input(1);
  WEIR_RETURN_IF_ERROR(CheckMatrices(matrix, "In[0]"));
  WEIR_RETURN_IF_ERROR(CheckMatrices(rhs, "In[1]"));
  const int64_t n = matrix.dim(-1);
  if (matrix.dim(-2) != n) {
    return InvalidArgument("In[0] matrices in the last dimensions must be square (", n,
                           " =/= ", matrix.dim(-2), ")");
  }
  return SolveBroadcast<T>(c, static_cast<double>(n * n),
                           [&](const T* a, const Panel<T>& p) { SolvePanel(o, a, p); });
}

// A triangular matrix by its diagonals, each a row of n. In a lower matrix the main diagonal is
// first and element i of row d is A(i, i - d); in an upper matrix it is last and element i of row d
// is A(i, i + bands - 1 - d). The elements outside the matrix are not read.
template <class T>
struct Banded {
  const T* rows;
  int64_t bands, n;
  bool lower;

  T at(int64_t i, int64_t j) const {
    return lower ? rows[(i - j) * n + i] : rows[(bands - 1 - (j - i)) * n + i];
  }
  bool is_singular() const {
    const T* diagonal = rows + (lower ? 0 : (bands - 1) * n);
    return std::find(diagonal, diagonal + n, T(0)) != diagonal + n;
  }
};

// Solves x A = b by substitution, from the end that has one unknown: row i needs the rows of x
// whose number differs from i by less than the number of bands.
template <class T>
void Substitute(const Banded<T>& a, bool adjoint, const Panel<T>& p) {
  const bool forwards = a.lower != adjoint;
  for (int64_t step = 0; step < a.n; ++step) {
    ThrowIfCancelled();
    const int64_t i = forwards ? step : a.n - 1 - step;
    const int64_t first = forwards ? std::max<int64_t>(0, i - a.bands + 1) : i + 1;
    const int64_t last = forwards ? i : std::min(a.n, i + a.bands);
    T* const to = p.x_row(i);
    std::copy_n(p.b_row(i), p.count, to);
    for (int64_t j = first; j < last; ++j) {
      const T factor = adjoint ? Conjugate(a.at(j, i)) : a.at(i, j);
      const T* const known = p.x_row(j);
      for (int64_t column = 0; column < p.count; ++column) to[column] -= factor * known[column];
    }
    const T pivot = adjoint ? Conjugate(a.at(i, i)) : a.at(i, i);
    for (int64_t column = 0; column < p.count; ++column) to[column] /= pivot;
  }
}

template <class T>
absl::Status SolveBanded(KernelContext& c, const Options& o) {
  const Tensor& matrix = c.input(0);
  for (int i = 0; i < 2; ++i) {
    const Tensor& t = c.input(i);
    if (t.rank() < 2) return InvalidArgument("In[", i, "] ndims must be >= 2: ", t.rank());
    if (t.num_elements() == 0) {
      return InvalidArgument("In[", i, "] must not be an empty tensor: ", t.shape().ToString());
    }
  }
  const int64_t bands = matrix.dim(-2), n = matrix.dim(-1);
  if (bands > n) {
    return InvalidArgument("Number of bands ", bands, " cannot exceed the size of the matrix ", n);
  }
  // As in TensorFlow, only the first matrix is checked: a zero pivot of another one is a divisor.
  if (Banded<T>{matrix.data<T>(), bands, n, o.lower}.is_singular())
    return InvalidArgument("Input matrix is not invertible.");
  return SolveBroadcast<T>(c, static_cast<double>(bands * n),
                           [&](const T* rows, const Panel<T>& p) {
                             Substitute(Banded<T>{rows, bands, n, o.lower}, o.adjoint, p);
                           });
}

template <absl::Status (*kSolve)(KernelContext&, const Options&)>
absl::StatusOr<Kernel> MakeSolve(const KernelInit& init) {
  const Options o = {init.attr<bool>("lower"), init.attr<bool>("adjoint")};
  return Kernel([o](KernelContext& c) -> absl::Status { return kSolve(c, o); });
}

}  // namespace

void AddTriangularKernels(KernelRegistry* r) {
  ForTypes(RealAndComplex{}, [r]<class T>(DataType type) {
    for (const char* op : {"MatrixTriangularSolve", "BatchMatrixTriangularSolve"}) {
      r->Add(op, kCpu, type, MakeSolve<SolveTriangular<T>>);
    }
    r->Add("BandedTriangularSolve", kCpu, type, MakeSolve<SolveBanded<T>>);
  });
}

}  // namespace weir
