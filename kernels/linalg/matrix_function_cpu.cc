#include <vector>

#include "weir/kernels/lib/registry.h"
#include "weir/kernels/linalg/linalg.h"

// Square roots, logarithms and exponentials of matrices.
//
// For the first two, A = Z T Z* with Z unitary and T upper triangular (Schur form), and f(A) = Z
// f(T) Z*. Source: Higham, "Functions of Matrices" (2008).
//
// Square root (algorithm 6.3): R R = T determines R from its diagonal, the principal square roots
// of T's, upward in each column. The logarithm (algorithm 11.9, with a fixed degree) takes square
// roots until T is near the identity, using log T = 2^k log T^(1/2^k). There it evaluates the Pade
// approximant of degree 7 of log(I + X), which is Gauss' quadrature of the integral of X (I +
// tX)^-1 over t in [0, 1]: seven triangular systems. For |X| < 0.26 that is exact to double
// precision. Finally the diagonal is replaced by the logarithms of T's.
namespace weir {

namespace {

template <class C>
ColumnMajorMatrix<C> SquareRootOfTriangular(const ColumnMajorMatrix<C>& t) {
  const int64_t n = t.rows;
  ColumnMajorMatrix<C> r(n, n);
  for (int64_t j = 0; j < n; ++j) {
    ThrowIfCancelled();
    r(j, j) = std::sqrt(t(j, j));
    for (int64_t i = j - 1; i >= 0; --i) {
      C rest = t(i, j);
      for (int64_t k = i + 1; k < j; ++k) rest -= r(i, k) * r(k, j);
      r(i, j) = rest / (r(i, i) + r(j, j));
    }
  }
  return r;
}

// The 1-norm of t - I: the largest sum of absolute values in a column.
template <class C>
double DistanceFromIdentity(const ColumnMajorMatrix<C>& t) {
  double largest = 0;
  for (int64_t j = 0; j < t.columns; ++j) {
    double sum = 0;
    for (int64_t i = 0; i < t.rows; ++i) sum += std::abs(t(i, j) - C(i == j ? 1 : 0));
    largest = std::max(largest, sum);
  }
  return largest;
}

// log(I + X) for a small upper triangular X.
template <class C>
ColumnMajorMatrix<C> LogNearIdentity(const ColumnMajorMatrix<C>& x) {
  // Nodes and weights of Gauss-Legendre quadrature on [0, 1].
  static constexpr double kNodes[] = {0.5,
                                      0.29707742431130142,
                                      0.70292257568869858,
                                      0.12923440720030278,
                                      0.87076559279969722,
                                      0.025446043828620738,
                                      0.97455395617137926};
  static constexpr double kWeights[] = {
      0.20897959183673470, 0.19091502525255946,  0.19091502525255946, 0.13985269574463832,
      0.13985269574463832, 0.064742483084434851, 0.064742483084434851};
  using Real = lapack::Real<C>;
  const int n = static_cast<int>(x.rows);
  ColumnMajorMatrix<C> sum(n, n);
  for (int k = 0; k < 7; ++k) {
    ColumnMajorMatrix<C> left(n, n), term = x;
    for (size_t i = 0; i < x.elements.size(); ++i) {
      left.elements[i] = Real(kNodes[k]) * x.elements[i];
    }
    for (int64_t i = 0; i < n; ++i) left(i, i) += C(1);
    lapack::TriangularSolve(lapack::Triangle::kUpper, lapack::Form::kPlain, n, n, left.data(),
                            term.data());
    for (size_t i = 0; i < x.elements.size(); ++i) {
      sum.elements[i] += Real(kWeights[k]) * term.elements[i];
    }
  }
  return sum;
}

template <class C>
ColumnMajorMatrix<C> LogOfTriangular(const ColumnMajorMatrix<C>& t) {
  constexpr int kMostRoots = 100;
  ColumnMajorMatrix<C> root = t;
  int roots = 0;
  while (DistanceFromIdentity(root) > 0.25 && roots < kMostRoots) {
    root = SquareRootOfTriangular(root);
    ++roots;
  }
  for (int64_t i = 0; i < t.rows; ++i) root(i, i) -= C(1);
  ColumnMajorMatrix<C> log = LogNearIdentity(root);
  for (C& x : log.elements) x *= static_cast<lapack::Real<C>>(std::ldexp(1.0, roots));
  for (int64_t i = 0; i < t.rows; ++i) log(i, i) = std::log(t(i, i));
  return log;
}

// Returns f(a); NaN where the Schur form does not exist (NaN, infinity), or a is singular.
template <class C, class F>
ColumnMajorMatrix<C> FunctionOf(const ColumnMajorMatrix<C>& a, const F& of_triangular) {
  const int n = static_cast<int>(a.rows);
  ColumnMajorMatrix<C> t = a, z(n, n), product(n, n), result(n, n);
  bool regular = AllFinite(a) && lapack::Schur(n, t.data(), z.data()) == 0;
  for (int64_t i = 0; regular && i < n; ++i) regular = t(i, i) != C(0);
  if (!regular) {
    std::fill(result.elements.begin(), result.elements.end(), NotANumber<C>());
    return result;
  }
  const ColumnMajorMatrix<C> f = of_triangular(t);
  using lapack::Form;
  lapack::Multiply(Form::kPlain, Form::kPlain, n, n, n, z.data(), f.data(), product.data());
  lapack::Multiply(Form::kPlain, Form::kAdjoint, n, n, n, product.data(), z.data(), result.data());
  return result;
}

// The square root of a row-major matrix in `from`. A real matrix with negative eigenvalues has no
// real square root: NaN.
template <class T>
void WriteSquareRoot(const T* from, int64_t n, T* to) {
  using Real = lapack::Real<T>;
  using C = std::complex<Real>;
  const ColumnMajorMatrix<C> root =
      FunctionOf(ColumnMajorMatrix<C>(from, n, n), SquareRootOfTriangular<C>);
  if constexpr (std::is_same_v<T, C>) {
    root.Write(to);
  } else {
    Real largest = 0, imaginary = 0;
    for (const C& x : root.elements) {
      largest = std::max(largest, std::abs(x));
      imaginary = std::max(imaginary, std::abs(x.imag()));
    }
    const bool real = imaginary <= std::sqrt(std::numeric_limits<Real>::epsilon()) * largest;
    for (int64_t i = 0; i < n * n; ++i) {
      to[i] = real ? root(i / n, i % n).real() : NotANumber<Real>();
    }
  }
}

// The exponential of a row-major matrix: exp A = (exp 2^-s A)^(2^s), where s makes the norm small
// enough for the Pade approximant of degree 13. Source: Higham, "The scaling and squaring method
// for the matrix exponential revisited" (2005), algorithm 2.3. NaN if the matrix is not finite.
template <class T>
class Exponential {
 public:
  using Matrix = ColumnMajorMatrix<T>;

  explicit Exponential(int64_t n) : n_(static_cast<int>(n)) {}

  Matrix Of(Matrix a) const {
    Matrix result(n_, n_);
    int squarings = 0;
    if (AllFinite(a)) {
      std::frexp(OneNorm(a) / kLargestNorm, &squarings);
      squarings = std::clamp(squarings, 0, kMostSquarings);
      for (T& x : a.elements) x *= static_cast<lapack::Real<T>>(std::ldexp(1.0, -squarings));
    }
    if (!AllFinite(a) || !Approximate(a, &result)) {
      std::fill(result.elements.begin(), result.elements.end(), NotANumber<T>());
      return result;
    }
    for (int i = 0; i < squarings; ++i) {
      ThrowIfCancelled();
      result = Product(result, result);
    }
    return result;
  }

 private:
  static constexpr double kLargestNorm = 5.371920351148152;
  static constexpr int kMostSquarings = 1100;  // of the largest double

  static double OneNorm(const Matrix& a) {
    double largest = 0;
    for (int64_t j = 0; j < a.columns; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < a.rows; ++i) sum += std::abs(a(i, j));
      largest = std::max(largest, sum);
    }
    return largest;
  }
  Matrix Product(const Matrix& a, const Matrix& b) const {
    Matrix out(n_, n_);
    lapack::Multiply(lapack::Form::kPlain, lapack::Form::kPlain, n_, n_, n_, a.data(), b.data(),
                     out.data());
    return out;
  }
  // Returns c0 I + c1 a + c2 b + c3 c.
  Matrix Sum(double c0, double c1, const Matrix& a, double c2, const Matrix& b, double c3,
             const Matrix& c) const {
    using Real = lapack::Real<T>;
    Matrix out(n_, n_);
    for (size_t i = 0; i < out.elements.size(); ++i) {
      out.elements[i] =
          Real(c1) * a.elements[i] + Real(c2) * b.elements[i] + Real(c3) * c.elements[i];
    }
    for (int64_t i = 0; i < n_; ++i) out(i, i) += Real(c0);
    return out;
  }
  // The approximant is (V - U)^-1 (V + U), with U odd and V even in a. False if V - U is singular.
  bool Approximate(const Matrix& a, Matrix* result) const {
    // Divided by the last, so that float represents them well.
    static constexpr double kB[] = {64764752532480000.,
                                    32382376266240000.,
                                    7771770303897600.,
                                    1187353796428800.,
                                    129060195264000.,
                                    10559470521600.,
                                    670442572800.,
                                    33522128640.,
                                    1323241920.,
                                    40840800.,
                                    960960.,
                                    16380.,
                                    182.,
                                    1.};
    const auto b = [](int i) { return kB[i] / kB[0]; };
    const Matrix a2 = Product(a, a), a4 = Product(a2, a2), a6 = Product(a2, a4);
    Matrix odd = Product(a6, Sum(0, b(13), a6, b(11), a4, b(9), a2));
    const Matrix low_odd = Sum(b(1), b(7), a6, b(5), a4, b(3), a2);
    Matrix even = Product(a6, Sum(0, b(12), a6, b(10), a4, b(8), a2));
    const Matrix low_even = Sum(b(0), b(6), a6, b(4), a4, b(2), a2);
    for (size_t i = 0; i < odd.elements.size(); ++i) {
      odd.elements[i] += low_odd.elements[i];
      even.elements[i] += low_even.elements[i];
    }
    odd = Product(a, odd);
    Matrix difference = even;
    *result = even;
    for (size_t i = 0; i < odd.elements.size(); ++i) {
      difference.elements[i] -= odd.elements[i];
      result->elements[i] += odd.elements[i];
    }
    std::vector<int> pivots(n_);
    if (lapack::LuFactor(n_, difference.data(), pivots.data()) != 0) return false;
    lapack::LuSolve(lapack::Form::kPlain, n_, n_, difference.data(), pivots.data(), result->data());
    return true;
  }

  const int n_;
};

template <class T>
void WriteExponential(const T* from, int64_t n, T* to) {
  using C = Compute<T>;
  Exponential<C>(n).Of(ColumnMajorMatrix<C>(from, n, n)).Write(to);
}

template <class C>
void WriteLogarithm(const C* from, int64_t n, C* to) {
  FunctionOf(ColumnMajorMatrix<C>(from, n, n), LogOfTriangular<C>).Write(to);
}

template <class T, void (*kWrite)(const T*, int64_t, T*)>
absl::Status Apply(KernelContext& c) {
  const Tensor& input = c.input(0);
  WEIR_RETURN_IF_ERROR(CheckSquare(input));
  WEIR_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, input.shape()));
  if (output->num_elements() == 0) return absl::OkStatus();
  const int64_t n = input.dim(-1), size = n * n;
  return ForEachMatrix(c, input.num_elements() / size, 30 * CubicCost(n, n), [&](int64_t b) {
    kWrite(input.data<T>() + b * size, n, output->data<T>() + b * size);
    return absl::OkStatus();
  });
}

}  // namespace

void AddMatrixFunctionKernels(KernelRegistry* r) {
  ForTypes(RealAndComplex{}, [r]<class T>(DataType type) {
    r->Add("MatrixSquareRoot", kCpu, type, Apply<T, WriteSquareRoot<T>>);
    r->Add("MatrixExponential", kCpu, type, Apply<T, WriteExponential<T>>);
  });
  ForTypes(Complexes{}, [r]<class T>(DataType type) {
    r->Add("MatrixLogarithm", kCpu, type, Apply<T, WriteLogarithm<T>>);
  });
}

}  // namespace weir
