#ifndef WEIR_KERNELS_LINALG_LINALG_H_
#define WEIR_KERNELS_LINALG_LINALG_H_

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <mutex>
#include <type_traits>
#include <vector>

#include "weir/core/runtime/kernel.h"
#include "weir/kernels/linalg/lapack.h"

// Helpers of linear algebra kernels. Tensors hold batches of row-major matrices in the last two
// dimensions; LAPACK's matrices are column-major.
namespace weir {

// Half is computed in float.
template <class T>
using Compute = std::conditional_t<std::is_same_v<T, half>, float, T>;

template <class T>
T Conjugate(T x) {
  if constexpr (std::is_same_v<T, lapack::Real<T>>) {
    return x;
  } else {
    return std::conj(x);
  }
}

// A column-major matrix.
template <class T>
struct ColumnMajorMatrix {
  ColumnMajorMatrix(int64_t m, int64_t n)
      : rows(m), columns(n), elements(static_cast<size_t>(m * n)) {}
  // Convert from and to row-major; types may differ like half and float.
  template <class In>
  ColumnMajorMatrix(const In* from, int64_t m, int64_t n) : ColumnMajorMatrix(m, n) {
    ForTiles([&](int64_t i, int64_t j) { (*this)(i, j) = static_cast<T>(from[i * n + j]); });
  }
  template <class Out>
  void Write(Out* to) const {
    ForTiles([&](int64_t i, int64_t j) { to[i * columns + j] = static_cast<Out>((*this)(i, j)); });
  }
  template <class Out>
  void WriteAdjoint(Out* to) const {
    for (int64_t j = 0; j < columns; ++j) {
      for (int64_t i = 0; i < rows; ++i) {
        to[j * rows + i] = static_cast<Out>(Conjugate((*this)(i, j)));
      }
    }
  }

  T* data() { return elements.data(); }
  const T* data() const { return elements.data(); }
  T& operator()(int64_t i, int64_t j) { return elements[static_cast<size_t>(j * rows + i)]; }
  const T& operator()(int64_t i, int64_t j) const {
    return elements[static_cast<size_t>(j * rows + i)];
  }

  int64_t rows, columns;
  std::vector<T> elements;

 private:
  // Calls f(i, j) for all elements, by tiles of which the cache holds all rows and columns.
  template <class F>
  void ForTiles(const F& f) const {
    constexpr int64_t kTile = 16;
    for (int64_t i = 0; i < rows; i += kTile) {
      const int64_t below = std::min(rows, i + kTile);
      for (int64_t j = 0; j < columns; j += kTile) {
        const int64_t right = std::min(columns, j + kTile);
        for (int64_t r = i; r < below; ++r) {
          for (int64_t c = j; c < right; ++c) f(r, c);
        }
      }
    }
  }
};

template <class T>
bool AllFinite(const ColumnMajorMatrix<T>& a) {
  return std::all_of(a.elements.begin(), a.elements.end(), [](const T& x) {
    return std::isfinite(std::real(x)) && std::isfinite(std::imag(x));
  });
}
template <class T>
T NotANumber() {
  const auto nan = std::numeric_limits<lapack::Real<T>>::quiet_NaN();
  if constexpr (std::is_same_v<T, lapack::Real<T>>) {
    return nan;
  } else {
    return T(nan, nan);
  }
}

// Returns an error unless t holds (square) matrices within the limits of LAPACK's 32-bit sizes.
absl::Status CheckMatrices(const Tensor& t, absl::string_view argument = "Input");
absl::Status CheckSquare(const Tensor& t,
                         absl::string_view message = "Input matrix must be square.");
// Returns an error unless a and b have the same batch dimensions.
absl::Status CheckSameBatch(const Tensor& a, const Tensor& b);

inline Shape BatchOf(const Tensor& t) { return t.shape().Sub(0, -2); }

// Runs compute(b) for each matrix of a batch, in parallel; `cost` is the estimated time of one in
// nanoseconds. Returns an arbitrary one of the errors.
template <class F>
absl::Status ForEachMatrix(KernelContext& c, int64_t count, double cost, const F& compute) {
  std::mutex mutex;
  absl::Status failure;
  c.pool().ParallelFor(count, cost, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      absl::Status status = compute(b);
      if (status.ok()) continue;
      const std::lock_guard<std::mutex> lock(mutex);
      failure.Update(std::move(status));
      return;
    }
  });
  return failure;
}
// Estimates the time of work that is cubic in the sides of a matrix.
inline double CubicCost(int64_t m, int64_t n) {
  return 1000 + 1.0 * static_cast<double>(m * n) * static_cast<double>(std::min(m, n));
}

// The parts of AddLinalgCpu, each in its own source file.
void AddEigenKernels(KernelRegistry* r);           // eigen_cpu.cc
void AddSolveKernels(KernelRegistry* r);           // solve_cpu.cc
void AddTriangularKernels(KernelRegistry* r);      // triangular_cpu.cc
void AddTridiagonalKernels(KernelRegistry* r);     // tridiagonal_cpu.cc
void AddMatrixFunctionKernels(KernelRegistry* r);  // matrix_function_cpu.cc

using RealAndComplex = JoinLists<List<float, double>, Complexes>;

// Adds a kernel of `op` for each type of a list: add.operator()<T>(type).
template <class... Ts, class F>
void ForTypes(List<Ts...>, const F& add) {
  (add.template operator()<Ts>(DataTypeOf<Ts>::value), ...);
}

}  // namespace weir

#endif  // WEIR_KERNELS_LINALG_LINALG_H_
