#include <cmath>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/linalg/linalg.h"

// Linear systems, inverses and determinants by LU decomposition; least squares.
namespace weir {

namespace {

using lapack::Form;

// An LU decomposition.
template <class T>
struct Factors {
  explicit Factors(ColumnMajorMatrix<T> a)
      : lu(std::move(a)), pivots(static_cast<size_t>(lu.rows)) {
    singular = lapack::LuFactor(static_cast<int>(lu.rows), lu.data(), pivots.data()) != 0;
  }
  // TensorFlow's test: the smallest pivot is positive. A NaN is never the smallest pivot, unless it
  // is the first one.
  bool is_invertible() const {
    return !singular && !(lu.rows > 0 && std::isnan(std::abs(lu(0, 0))));
  }
  ColumnMajorMatrix<T> lu;
  std::vector<int> pivots;
  bool singular;
};

// Checks that both inputs form a matrix equation: equal outer dimensions, and as many rows.
absl::Status CheckSystem(const Tensor& matrix, const Tensor& rhs) {
  WEIR_RETURN_IF_ERROR(CheckMatrices(matrix, "Input tensor 0"));
  WEIR_RETURN_IF_ERROR(CheckSameBatch(matrix, rhs));
  if (matrix.dim(-2) != rhs.dim(-2)) {
    return InvalidArgument("Input matrix and rhs are incompatible. Shapes are ",
                           matrix.shape().ToString(), " and ", rhs.shape().ToString());
  }
  return CheckMatrices(rhs, "Input tensor 1");
}

template <class T>
absl::StatusOr<Kernel> MakeMatrixSolve(const KernelInit& init) {
  const Form form = init.attr<bool>("adjoint") ? Form::kAdjoint : Form::kPlain;
  return Kernel([form](KernelContext& c) -> absl::Status {
    const Tensor &matrix = c.input(0), &rhs = c.input(1);
    WEIR_RETURN_IF_ERROR(CheckSquare(matrix, "First input (lhs) must be a square matrix."));
    WEIR_RETURN_IF_ERROR(CheckSystem(matrix, rhs));
    WEIR_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, rhs.shape()));
    if (output->num_elements() == 0) return absl::OkStatus();
    const int64_t n = rhs.dim(-2), k = rhs.dim(-1), count = rhs.num_elements() / (n * k);
    return ForEachMatrix(
        c, count, CubicCost(n, n) + CubicCost(n, k), [&](int64_t b) -> absl::Status {
          const Factors<T> a(ColumnMajorMatrix<T>(matrix.data<T>() + b * n * n, n, n));
          if (!a.is_invertible()) return InvalidArgument("Input matrix is not invertible.");
          ColumnMajorMatrix<T> x(rhs.data<T>() + b * n * k, n, k);
          lapack::LuSolve(form, static_cast<int>(n), static_cast<int>(k), a.lu.data(),
                          a.pivots.data(), x.data());
          x.Write(output->data<T>() + b * n * k);
          return absl::OkStatus();
        });
  });
}

// The inverse or its adjoint. LAPACK inverts the factors, which takes two thirds of the operations
// of a solution for the identity matrix, but wins only from some size on.
template <class T>
ColumnMajorMatrix<T> Inverse(Form form, Factors<T> a) {
  constexpr int64_t kLarge = 128;
  const int64_t rows = a.lu.rows;
  const int n = static_cast<int>(rows);
  if (rows >= kLarge && form == Form::kPlain) {
    lapack::LuInverse(n, a.lu.data(), a.pivots.data());
    return std::move(a.lu);
  }
  ColumnMajorMatrix<T> x(rows, rows);
  for (int64_t i = 0; i < rows; ++i) x(i, i) = T(1);
  lapack::LuSolve(form, n, n, a.lu.data(), a.pivots.data(), x.data());
  return x;
}

template <class T>
absl::StatusOr<Kernel> MakeMatrixInverse(const KernelInit& init) {
  const Form form = init.attr<bool>("adjoint") ? Form::kAdjoint : Form::kPlain;
  return Kernel([form](KernelContext& c) -> absl::Status {
    using C = Compute<T>;
    const Tensor& input = c.input(0);
    WEIR_RETURN_IF_ERROR(CheckSquare(input));
    WEIR_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, input.shape()));
    if (output->num_elements() == 0) return absl::OkStatus();
    const int64_t n = input.dim(-1), size = n * n;
    return ForEachMatrix(c, input.num_elements() / size, 3 * CubicCost(n, n),
                         [&](int64_t b) -> absl::Status {
                           Factors<C> a(ColumnMajorMatrix<C>(input.data<T>() + b * size, n, n));
                           if (!a.is_invertible())
                             return InvalidArgument("Input is not invertible.");
                           const ColumnMajorMatrix<C> x = Inverse(form, std::move(a));
                           x.Write(output->data<T>() + b * size);
                           return absl::OkStatus();
                         });
  });
}

// A determinant as a factor of absolute value 1 (or 0) and the logarithm of its absolute value.
template <class T>
struct LogDeterminant {
  T sign;
  lapack::Real<T> log;
};
// x / |x|, for an infinite real x too.
template <class T>
T UnitOf(T x, lapack::Real<T> size) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isinf(x)) return std::copysign(T(1), x);
  }
  return x / size;
}
template <class T>
LogDeterminant<T> DeterminantOf(const Factors<T>& a) {
  LogDeterminant<T> d = {T(1), 0};
  for (int64_t i = 0; i < a.lu.rows; ++i) {
    const T x = a.lu(i, i);
    const lapack::Real<T> size = std::abs(x);
    d.sign *= size == 0 ? T(0) : UnitOf(x, size);
    if (a.pivots[static_cast<size_t>(i)] != i + 1) d.sign = -d.sign;
    d.log += std::log(size);
  }
  return d;
}

template <class T>
absl::Status MatrixDeterminant(KernelContext& c) {
  const Tensor& input = c.input(0);
  WEIR_RETURN_IF_ERROR(CheckSquare(input));
  const int64_t n = input.dim(-1), size = n * n;
  WEIR_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, BatchOf(input)));
  return ForEachMatrix(c, output->num_elements(), CubicCost(n, n), [&](int64_t b) {
    const Factors<T> a(ColumnMajorMatrix<T>(input.data<T>() + b * size, n, n));
    T product(1);
    for (int64_t i = 0; i < n; ++i) {
      product *= a.lu(i, i);
      if (a.pivots[static_cast<size_t>(i)] != i + 1) product = -product;
    }
    // A partial product may overflow although the whole product does not.
    if (!std::isnormal(std::abs(product))) {
      const LogDeterminant<T> d = DeterminantOf(a);
      product = d.sign * T(std::exp(d.log));
    }
    output->data<T>()[b] = product;
    return absl::OkStatus();
  });
}

template <class T>
absl::Status LogMatrixDeterminant(KernelContext& c) {
  const Tensor& input = c.input(0);
  WEIR_RETURN_IF_ERROR(CheckSquare(input));
  const int64_t n = input.dim(-1), size = n * n;
  WEIR_ASSIGN_OR_RETURN(Tensor * sign, c.AllocateOutput(0, BatchOf(input)));
  WEIR_ASSIGN_OR_RETURN(Tensor * log, c.AllocateOutput(1, BatchOf(input)));
  return ForEachMatrix(c, sign->num_elements(), CubicCost(n, n), [&](int64_t b) {
    const auto d =
        DeterminantOf(Factors<T>(ColumnMajorMatrix<T>(input.data<T>() + b * size, n, n)));
    sign->data<T>()[b] = d.sign;
    log->data<T>()[b] = T(d.log);
    return absl::OkStatus();
  });
}

// ---- least squares

// With G = A* A + r I, the x that minimizes |A x - b|^2 + r |x|^2 is G^-1 A* b; if A has fewer rows
// than columns, it is A* G^-1 b with G = A A* + r I (and for r = 0 the minimum-norm solution of the
// system). G^-1 comes from the Cholesky decomposition, which fails if A is far from full rank.
template <class T>
absl::Status NormalEquations(const ColumnMajorMatrix<T>& a, double r, const ColumnMajorMatrix<T>& b,
                             ColumnMajorMatrix<T>* x) {
  const int m = static_cast<int>(a.rows), n = static_cast<int>(a.columns);
  const int k = static_cast<int>(b.columns), inner = std::min(m, n), outer = std::max(m, n);
  const bool tall = m >= n;
  ColumnMajorMatrix<T> g(inner, inner);
  lapack::Multiply(tall ? Form::kAdjoint : Form::kPlain, tall ? Form::kPlain : Form::kAdjoint,
                   inner, inner, outer, a.data(), a.data(), g.data());
  for (int64_t i = 0; i < inner; ++i) g(i, i) += T(static_cast<lapack::Real<T>>(r));
  if (lapack::CholeskyFactor(inner, g.data()) != 0) {
    return InvalidArgument(
        "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide a "
        "larger l2_regularizer > 0.");
  }
  ColumnMajorMatrix<T> y = b;
  if (tall) {
    y = ColumnMajorMatrix<T>(n, k);
    lapack::Multiply(Form::kAdjoint, Form::kPlain, n, k, m, a.data(), b.data(), y.data());
  }
  lapack::TriangularSolve(lapack::Triangle::kLower, Form::kPlain, inner, k, g.data(), y.data());
  lapack::TriangularSolve(lapack::Triangle::kLower, Form::kAdjoint, inner, k, g.data(), y.data());
  if (tall) {
    *x = std::move(y);
  } else {
    lapack::Multiply(Form::kAdjoint, Form::kPlain, n, k, m, a.data(), y.data(), x->data());
  }
  return absl::OkStatus();
}

template <class T>
void CompleteLeastSquares(ColumnMajorMatrix<T> a, const ColumnMajorMatrix<T>& b,
                          ColumnMajorMatrix<T>* x) {
  ColumnMajorMatrix<T> tall(std::max(a.rows, a.columns), b.columns);
  if (!AllFinite(a) || !AllFinite(b)) {
    std::fill(x->elements.begin(), x->elements.end(), NotANumber<T>());
    return;
  }
  for (int64_t j = 0; j < b.columns; ++j) {
    for (int64_t i = 0; i < b.rows; ++i) tall(i, j) = b(i, j);
  }
  lapack::LeastSquares(static_cast<int>(a.rows), static_cast<int>(a.columns),
                       static_cast<int>(b.columns), a.data(), tall.data());
  for (int64_t j = 0; j < x->columns; ++j) {
    for (int64_t i = 0; i < x->rows; ++i) (*x)(i, j) = tall(i, j);
  }
}

template <class T>
absl::Status MatrixSolveLs(KernelContext& c, bool fast) {
  const Tensor &matrix = c.input(0), &rhs = c.input(1);
  WEIR_RETURN_IF_ERROR(CheckSystem(matrix, rhs));
  WEIR_RETURN_IF_ERROR(CheckRank(c.input(2), 0, "l2_regularizer"));
  const double regularizer = c.input(2).data<double>()[0];
  if (!(regularizer >= 0)) return InvalidArgument("l2_regularizer must be >= 0.");
  const int64_t m = matrix.dim(-2), n = matrix.dim(-1), k = rhs.dim(-1);
  const Shape batch = BatchOf(matrix);
  WEIR_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, batch.Concatenate({n, k})));
  if (matrix.num_elements() == 0 || rhs.num_elements() == 0) {
    std::fill_n(output->data<T>(), output->num_elements(), T(0));
    return absl::OkStatus();
  }
  const double cost = 3 * CubicCost(m, n) + CubicCost(m, k);
  return ForEachMatrix(c, batch.num_elements(), cost, [&](int64_t b) -> absl::Status {
    const ColumnMajorMatrix<T> a(matrix.data<T>() + b * m * n, m, n),
        y(rhs.data<T>() + b * m * k, m, k);
    ColumnMajorMatrix<T> x(n, k);
    if (fast) {
      WEIR_RETURN_IF_ERROR(NormalEquations(a, regularizer, y, &x));
    } else {
      CompleteLeastSquares(a, y, &x);
    }
    x.Write(output->data<T>() + b * n * k);
    return absl::OkStatus();
  });
}

template <class T>
absl::StatusOr<Kernel> MakeMatrixSolveLs(const KernelInit& init) {
  const bool fast = init.attr<bool>("fast");
  return Kernel([fast](KernelContext& c) -> absl::Status { return MatrixSolveLs<T>(c, fast); });
}

}  // namespace

void AddSolveKernels(KernelRegistry* r) {
  ForTypes(RealAndComplex{}, [r]<class T>(DataType type) {
    for (const char* op : {"MatrixSolve", "BatchMatrixSolve"}) {
      r->Add(op, kCpu, type, MakeMatrixSolve<T>);
    }
    for (const char* op : {"MatrixSolveLs", "BatchMatrixSolveLs"}) {
      r->Add(op, kCpu, type, MakeMatrixSolveLs<T>);
    }
    for (const char* op : {"MatrixDeterminant", "BatchMatrixDeterminant"}) {
      r->Add(op, kCpu, type, MatrixDeterminant<T>);
    }
    r->Add("LogMatrixDeterminant", kCpu, type, LogMatrixDeterminant<T>);
  });
  ForTypes(JoinLists<List<half>, RealAndComplex>{}, [r]<class T>(DataType type) {
    for (const char* op : {"MatrixInverse", "BatchMatrixInverse"}) {
      r->Add(op, kCpu, type, MakeMatrixInverse<T>);
    }
  });
}

}  // namespace weir
