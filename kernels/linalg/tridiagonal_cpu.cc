#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "weir/kernels/lib/registry.h"
#include "weir/kernels/linalg/linalg.h"

// Tridiagonal matrices, given as rows of n: the superdiagonal (its last element is unused), the
// diagonal, and the subdiagonal (its first element is unused).
namespace weir {

namespace {

template <class T>
struct Tridiagonal {
  const T *above, *on, *below;
  int64_t n;
};

// The right-hand sides of a system: k columns, row-major.
template <class T>
struct System {
  Tridiagonal<T> a;
  int64_t k;
  const T* b;
  T* x;
  T* row(int64_t i) const { return x + i * k; }
};

template <class T>
void AddRow(const T* from, T factor, int64_t k, T* to) {
  for (int64_t j = 0; j < k; ++j) to[j] += factor * from[j];
}

// Gaussian elimination without row exchanges (the Thomas algorithm). Returns false if a pivot is
// zero.
template <class T>
bool Eliminate(const System<T>& s) {
  const int64_t n = s.a.n, k = s.k;
  std::vector<T> upper(static_cast<size_t>(n));
  std::copy_n(s.b, n * k, s.x);
  T pivot = s.a.on[0];
  for (int64_t i = 0; i < n; ++i) {
    ThrowIfCancelledAt(i);
    if (i > 0) {
      pivot = s.a.on[i] - s.a.below[i] * upper[static_cast<size_t>(i - 1)];
      AddRow(s.row(i - 1), -s.a.below[i], k, s.row(i));
    }
    if (pivot == T(0)) return false;
    if (i + 1 < n) upper[static_cast<size_t>(i)] = s.a.above[i] / pivot;
    for (int64_t j = 0; j < k; ++j) s.row(i)[j] /= pivot;
  }
  for (int64_t i = n - 2; i >= 0; --i) {
    AddRow(s.row(i + 1), -upper[static_cast<size_t>(i)], k, s.row(i));
  }
  return true;
}

// The upper triangular factor after elimination with row exchanges: the diagonal and two
// superdiagonals.
template <class T>
struct Upper {
  explicit Upper(int64_t n) : d0(n), d1(n), d2(n) {}
  std::vector<T> d0, d1, d2;
};

// Gaussian elimination that may exchange a row with the next one. `scaled` compares the two
// candidates for a pivot relative to the sizes of their rows, as LAPACK's xLAGTF does; otherwise
// their absolute values are compared. The row operations are applied to x at the same time.
template <class T>
Upper<T> EliminateWithPivots(const System<T>& s, bool scaled) {
  const int64_t n = s.a.n, k = s.k;
  Upper<T> u(n);
  std::copy_n(s.b, n * k, s.x);
  u.d0[0] = s.a.on[0];
  if (n > 1) u.d1[0] = s.a.above[0];
  auto size = std::abs(u.d0[0]) + std::abs(u.d1[0]);
  for (int64_t i = 0; i + 1 < n; ++i) {
    ThrowIfCancelledAt(i);
    const T below = s.a.below[i + 1], on = s.a.on[i + 1],
            above = i + 2 < n ? s.a.above[i + 1] : T(0);
    const auto next_size = std::abs(below) + std::abs(on) + std::abs(above);
    const auto one = std::abs(u.d0[i]), two = std::abs(below);
    const bool keep = two == 0 || (scaled ? two * size <= one * next_size : two <= one);
    if (keep) {
      const T factor = two == 0 ? T(0) : below / u.d0[i];
      u.d0[i + 1] = on - factor * u.d1[i];
      u.d1[i + 1] = above;
      AddRow(s.row(i), -factor, k, s.row(i + 1));
      size = next_size;
      continue;
    }
    const T factor = u.d0[i] / below, was = u.d1[i];
    u.d0[i] = below;
    u.d1[i] = on;
    u.d2[i] = above;
    u.d0[i + 1] = was - factor * on;
    u.d1[i + 1] = -factor * above;
    std::swap_ranges(s.row(i), s.row(i) + k, s.row(i + 1));
    AddRow(s.row(i), -factor, k, s.row(i + 1));
  }
  return u;
}

// Solves U x = b, where x initially holds b, from the last row up; divide(i, row) divides by U(i,
// i).
template <class T, class F>
void SubstituteBack(const System<T>& s, const Upper<T>& u, const F& divide) {
  const int64_t n = s.a.n;
  for (int64_t i = n - 1; i >= 0; --i) {
    ThrowIfCancelledAt(i);
    if (i + 1 < n) AddRow(s.row(i + 1), -u.d1[i], s.k, s.row(i));
    if (i + 2 < n) AddRow(s.row(i + 2), -u.d2[i], s.k, s.row(i));
    divide(i, s.row(i));
  }
}

// Returns false if a pivot is zero.
template <class T>
bool SolveWithPivots(const System<T>& s) {
  const Upper<T> u = EliminateWithPivots(s, /*scaled=*/false);
  if (std::find(u.d0.begin(), u.d0.end(), T(0)) != u.d0.end()) return false;
  SubstituteBack(s, u, [&](int64_t i, T* row) {
    for (int64_t j = 0; j < s.k; ++j) row[j] /= u.d0[i];
  });
  return true;
}

// Solves a system that may be singular, by perturbing pivots that are too small, as inverse
// iteration requires, which looks for the huge solution. Source: LAPACK's xLAGTS with JOB = -1. A
// pivot p < 1 is moved away from zero, by `nudge` and then twice as much each time, until row / p
// cannot overflow. (If p is tiny but the row is even smaller, both are scaled up instead.)
template <class T>
void DividePerturbed(T pivot, lapack::Real<T> nudge, int64_t k, T* row) {
  using Real = lapack::Real<T>;
  constexpr Real kTiny = std::numeric_limits<Real>::min(), kHuge = 1 / kTiny;
  Real largest = 0;
  for (int64_t j = 0; j < k; ++j) largest = std::max(largest, std::abs(row[j]));
  nudge = std::copysign(std::max(nudge, kTiny), std::real(pivot));
  while (std::abs(pivot) < 1) {
    const Real size = std::abs(pivot);
    const bool may_overflow =
        size < kTiny ? size == 0 || largest * kTiny > size : largest > size * kHuge;
    if (may_overflow) {
      pivot += nudge;
      nudge *= 2;
      continue;
    }
    if (size < kTiny) {
      pivot *= kHuge;
      for (int64_t j = 0; j < k; ++j) row[j] *= kHuge;
    }
    break;
  }
  const T inverse = T(1) / pivot;
  for (int64_t j = 0; j < k; ++j) row[j] *= inverse;
}

template <class T>
void SolvePerturbed(const System<T>& s) {
  using Real = lapack::Real<T>;
  const Upper<T> u = EliminateWithPivots(s, /*scaled=*/true);
  Real largest = 0;
  for (const std::vector<T>* diagonal : {&u.d0, &u.d1, &u.d2}) {
    for (const T& x : *diagonal) largest = std::max(largest, std::abs(x));
  }
  const Real nudge = largest * std::numeric_limits<Real>::epsilon();
  SubstituteBack(s, u, [&](int64_t i, T* row) { DividePerturbed(u.d0[i], nudge, s.k, row); });
}

struct Options {
  bool pivoting, perturb;
};

absl::Status CheckTridiagonal(const Tensor& diagonals, const Tensor& rhs) {
  if (diagonals.rank() < 2) {
    return InvalidArgument("Input tensor 0 must have rank >= 2, got ", diagonals.rank());
  }
  WEIR_RETURN_IF_ERROR(CheckSameBatch(diagonals, rhs));
  if (diagonals.dim(-2) != 3) {
    return InvalidArgument("Expected diagonals to be provided as a matrix with 3 rows, got ",
                           diagonals.dim(-2), " rows.");
  }
  if (diagonals.dim(-1) != rhs.dim(-2)) {
    return InvalidArgument("Expected the same number of left-hand sides and right-hand sides, got ",
                           diagonals.dim(-1), " and ", rhs.dim(-2), ".");
  }
  return absl::OkStatus();
}

// NaN if the matrix is singular.
template <class T>
absl::Status TridiagonalSolve(KernelContext& c, const Options& o) {
  const Tensor &diagonals = c.input(0), &rhs = c.input(1);
  WEIR_RETURN_IF_ERROR(CheckTridiagonal(diagonals, rhs));
  WEIR_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, rhs.shape()));
  if (output->num_elements() == 0) return absl::OkStatus();
  const int64_t n = rhs.dim(-2), k = rhs.dim(-1), count = rhs.num_elements() / (n * k);
  return ForEachMatrix(c, count, 20.0 * static_cast<double>(n * k), [&](int64_t i) {
    const T* rows = diagonals.data<T>() + i * 3 * n;
    const System<T> s = {{rows, rows + n, rows + 2 * n, n},
                         k,
                         rhs.data<T>() + i * n * k,
                         output->data<T>() + i * n * k};
    if (o.perturb) {
      SolvePerturbed(s);
    } else if (!(o.pivoting ? SolveWithPivots(s) : Eliminate(s))) {
      std::fill_n(s.x, n * k, NotANumber<T>());
    }
    return absl::OkStatus();
  });
}

template <class T>
absl::StatusOr<Kernel> MakeTridiagonalSolve(const KernelInit& init) {
  const Options o = {init.attr<bool>("partial_pivoting"), init.attr<bool>("perturb_singular")};
  if (o.perturb && !o.pivoting) {
    return InvalidArgument("Setting perturb_singular requires also setting partial_pivoting.");
  }
  return Kernel([o](KernelContext& c) -> absl::Status { return TridiagonalSolve<T>(c, o); });
}

template <class T>
absl::Status TridiagonalMatMul(KernelContext& c) {
  const Tensor& rhs = c.input(3);
  if (rhs.rank() < 2)
    return InvalidArgument("Input tensor 3 must have rank >= 2, got ", rhs.rank());
  const int64_t n = rhs.dim(-2), k = rhs.dim(-1);
  static constexpr const char* kNames[] = {"superdiagonal", "main diagonal", "subdiagonal"};
  for (int i = 0; i < 3; ++i) {
    WEIR_RETURN_IF_ERROR(CheckSameBatch(c.input(i), rhs));
    if (c.input(i).dim(-2) != 1 || c.input(i).dim(-1) != n) {
      return InvalidArgument("Invalid ", kNames[i], " shape.");
    }
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, rhs.shape()));
  if (output->num_elements() == 0) return absl::OkStatus();
  const int64_t count = rhs.num_elements() / (n * k);
  return ForEachMatrix(c, count, 2.0 * static_cast<double>(n * k), [&](int64_t b) {
    const Tridiagonal<T> a = {c.input(0).data<T>() + b * n, c.input(1).data<T>() + b * n,
                              c.input(2).data<T>() + b * n, n};
    const T* x = rhs.data<T>() + b * n * k;
    T* y = output->data<T>() + b * n * k;
    std::fill_n(y, n * k, T(0));
    for (int64_t i = 0; i < n; ++i) {
      AddRow(x + i * k, a.on[i], k, y + i * k);
      if (i + 1 < n) AddRow(x + (i + 1) * k, a.above[i], k, y + i * k);
      if (i > 0) AddRow(x + (i - 1) * k, a.below[i], k, y + i * k);
    }
    return absl::OkStatus();
  });
}

}  // namespace

void AddTridiagonalKernels(KernelRegistry* r) {
  ForTypes(RealAndComplex{}, [r]<class T>(DataType type) {
    r->Add("TridiagonalSolve", kCpu, type, MakeTridiagonalSolve<T>);
    r->Add("TridiagonalMatMul", kCpu, type, TridiagonalMatMul<T>);
  });
}

}  // namespace weir
