#include <algorithm>
#include <complex>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "weir/kernels/linalg/lapack.h"

// The routines of BLAS that kernels/linalg/fortran_blas.cc provides, against their definitions.
extern "C" {

#define WEIR_DECLARE(T, p)                                                                        \
  void p##gemv_(const char*, const int*, const int*, const T*, const T*, const int*, const T*,    \
                const int*, const T*, T*, const int*, size_t);                                    \
  void p##gemm_(const char*, const char*, const int*, const int*, const int*, const T*, const T*, \
                const int*, const T*, const int*, const T*, T*, const int*, size_t, size_t);      \
  void p##trsm_(const char*, const char*, const char*, const char*, const int*, const int*,       \
                const T*, const T*, const int*, T*, const int*, size_t, size_t, size_t, size_t);  \
  void p##trmm_(const char*, const char*, const char*, const char*, const int*, const int*,       \
                const T*, const T*, const int*, T*, const int*, size_t, size_t, size_t, size_t);

#define WEIR_DECLARE_SYMMETRIC(T, R, symv, syrk, syr2k)                                           \
  void symv##_(const char*, const int*, const T*, const T*, const int*, const T*, const int*,     \
               const T*, T*, const int*, size_t);                                                 \
  void syrk##_(const char*, const char*, const int*, const int*, const R*, const T*, const int*,  \
               const R*, T*, const int*, size_t, size_t);                                         \
  void syr2k##_(const char*, const char*, const int*, const int*, const T*, const T*, const int*, \
                const T*, const int*, const R*, T*, const int*, size_t, size_t);

#define WEIR_DECLARE_GER(T, ger)                                                                \
  void ger##_(const int*, const int*, const T*, const T*, const int*, const T*, const int*, T*, \
              const int*);

WEIR_DECLARE(float, s)
WEIR_DECLARE(double, d)
WEIR_DECLARE(std::complex<float>, c)
WEIR_DECLARE(std::complex<double>, z)
WEIR_DECLARE_SYMMETRIC(float, float, ssymv, ssyrk, ssyr2k)
WEIR_DECLARE_SYMMETRIC(double, double, dsymv, dsyrk, dsyr2k)
WEIR_DECLARE_SYMMETRIC(std::complex<float>, float, chemv, cherk, cher2k)
WEIR_DECLARE_SYMMETRIC(std::complex<double>, double, zhemv, zherk, zher2k)
WEIR_DECLARE_GER(float, sger)
WEIR_DECLARE_GER(double, dger)
WEIR_DECLARE_GER(std::complex<float>, cgeru)
WEIR_DECLARE_GER(std::complex<float>, cgerc)
WEIR_DECLARE_GER(std::complex<double>, zgeru)
WEIR_DECLARE_GER(std::complex<double>, zgerc)

}  // extern "C"

namespace weir {
namespace {

template <class T>
struct Blas;
#define WEIR_BLAS(T, p, he, geru_name, gerc_name) \
  template <>                                     \
  struct Blas<T> {                                \
    static constexpr auto gemv = p##gemv_;        \
    static constexpr auto gemm = p##gemm_;        \
    static constexpr auto trsm = p##trsm_;        \
    static constexpr auto trmm = p##trmm_;        \
    static constexpr auto symv = he##mv_;         \
    static constexpr auto syrk = he##rk_;         \
    static constexpr auto syr2k = he##r2k_;       \
    static constexpr auto geru = geru_name;       \
    static constexpr auto gerc = gerc_name;       \
  };
WEIR_BLAS(float, s, ssy, sger_, sger_)
WEIR_BLAS(double, d, dsy, dger_, dger_)
WEIR_BLAS(std::complex<float>, c, che, cgeru_, cgerc_)
WEIR_BLAS(std::complex<double>, z, zhe, zgeru_, zgerc_)

template <class T>
T Conj(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    return x;
  } else {
    return std::conj(x);
  }
}
template <class T>
T Number(double re, double im) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(re);
  } else {
    return T(static_cast<lapack::Real<T>>(re), static_cast<lapack::Real<T>>(im));
  }
}

// A column-major matrix with a gap after each column, which must not change.
template <class T>
struct Matrix {
  static constexpr int kGap = 3;
  Matrix(int m, int n, uint32_t seed) : rows(m), columns(n), step(m + kGap), all(step * n + 1) {
    for (T& x : all) {
      const auto next = [&seed] {
        seed = seed * 1664525u + 1013904223u;
        return static_cast<double>(seed >> 8) / (1 << 23) - 1;
      };
      const double re = next(), im = next();
      x = Number<T>(re, im);
    }
  }
  T& operator()(int i, int j) { return all[static_cast<size_t>(j * step + i)]; }
  const T& operator()(int i, int j) const { return all[static_cast<size_t>(j * step + i)]; }
  const T* data() const { return all.data(); }
  T* data() { return all.data(); }

  int rows, columns, step;
  std::vector<T> all;
};

// op(a)(i, j).
template <class T>
T At(char form, const Matrix<T>& a, int i, int j) {
  return form == 'N' ? a(i, j) : form == 'T' ? a(j, i) : Conj(a(j, i));
}

// All elements of both, gaps included, agree up to the rounding of sums of `terms` numbers.
template <class T>
void ExpectNear(const Matrix<T>& a, const Matrix<T>& b, int terms) {
  const double bound =
      8 * (terms + 4) * static_cast<double>(std::numeric_limits<lapack::Real<T>>::epsilon());
  for (size_t i = 0; i < a.all.size(); ++i) {
    ASSERT_LE(std::abs(a.all[i] - b.all[i]), bound) << "column " << i / static_cast<size_t>(a.step)
                                                    << " row " << i % static_cast<size_t>(a.step);
  }
}

template <class T>
class BlasTest : public testing::Test {};
using Types = testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(BlasTest, Types);

constexpr char kForms[] = {'N', 'T', 'C'};
const int kSizes[] = {0, 1, 2, 3, 5, 8, 13, 16, 17, 33, 70};

TYPED_TEST(BlasTest, Gemm) {
  using T = TypeParam;
  const T alpha = Number<T>(0.5, -0.25), beta = Number<T>(-0.75, 0.5);
  struct Sizes {
    int m, n, k;
  };
  std::vector<Sizes> all = {{97, 13, 300}, {200, 1030, 3}, {1, 40, 270}, {40, 1, 270}};
  for (int m : kSizes) {
    for (int n : {1, 2, 3, 4, 5, 7, 9, 12, 13, 25}) {
      for (int k : {0, 1, 3, 8, 40}) all.push_back({m, n, k});
    }
  }
  for (const auto& [m, n, k] : all) {
    for (const char form_a : kForms) {
      for (const char form_b : kForms) {
        SCOPED_TRACE(testing::Message() << form_a << form_b << " " << m << " " << n << " " << k);
        const Matrix<T> a = form_a == 'N' ? Matrix<T>(m, k, 1) : Matrix<T>(k, m, 1);
        const Matrix<T> b = form_b == 'N' ? Matrix<T>(k, n, 2) : Matrix<T>(n, k, 2);
        Matrix<T> c(m, n, 3), expected = c;
        for (int i = 0; i < m; ++i) {
          for (int j = 0; j < n; ++j) {
            T sum(0);
            for (int p = 0; p < k; ++p) sum += At(form_a, a, i, p) * At(form_b, b, p, j);
            expected(i, j) = alpha * sum + beta * c(i, j);
          }
        }
        Blas<T>::gemm(&form_a, &form_b, &m, &n, &k, &alpha, a.data(), &a.step, b.data(), &b.step,
                      &beta, c.data(), &c.step, 1, 1);
        ExpectNear(c, expected, k);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TYPED_TEST(BlasTest, GemmOverwritesNaNIfBetaIsZero) {
  using T = TypeParam;
  const T one(1), zero(0);
  const int m = 21, n = 5, k = 2;
  const Matrix<T> a(m, k, 1), b(k, n, 2);
  Matrix<T> c(m, n, 3);
  std::fill(c.all.begin(), c.all.end(), T(std::numeric_limits<lapack::Real<T>>::quiet_NaN()));
  Blas<T>::gemm("N", "N", &m, &n, &k, &one, a.data(), &a.step, b.data(), &b.step, &zero, c.data(),
                &c.step, 1, 1);
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < m; ++i) {
      EXPECT_LE(std::abs(c(i, j) - a(i, 0) * b(0, j) - a(i, 1) * b(1, j)), 1e-6);
    }
  }
}

// Vectors with strides, forwards and backwards: element i of a vector of n.
template <class T>
T& Element(std::vector<T>& x, int n, int stride, int i) {
  return x[static_cast<size_t>(stride > 0 ? i * stride : (i - n + 1) * stride)];
}

TYPED_TEST(BlasTest, GemvAndGer) {
  using T = TypeParam;
  const T alpha = Number<T>(0.5, -0.25), beta = Number<T>(-0.75, 0.5);
  for (const int m : kSizes) {
    for (const int n : {1, 2, 4, 7, 18}) {
      for (const int x_stride : {1, 3, -2}) {
        for (const int y_stride : {1, 2, -1}) {
          SCOPED_TRACE(testing::Message() << m << " " << n << " " << x_stride << " " << y_stride);
          for (const char form : kForms) {
            const Matrix<T> a(m, n, 1);
            const int in = form == 'N' ? n : m, out = form == 'N' ? m : n;
            std::vector<T> x = Matrix<T>(in * 3, 1, 2).all;
            Matrix<T> y(out * 2, 1, 3), expected = y;
            for (int i = 0; i < out && m > 0; ++i) {
              T sum(0);
              for (int j = 0; j < in; ++j) {
                sum += At(form, a, i, j) * Element(x, in, x_stride, j);
              }
              T& to = Element(expected.all, out, y_stride, i);
              to = alpha * sum + beta * to;
            }
            Blas<T>::gemv(&form, &m, &n, &alpha, a.data(), &a.step, x.data(), &x_stride, &beta,
                          y.data(), &y_stride, 1);
            ExpectNear(y, expected, in);
          }
          for (const bool conjugate : {false, true}) {
            std::vector<T> x = Matrix<T>(m * 3, 1, 2).all, y = Matrix<T>(n * 3, 1, 3).all;
            Matrix<T> a(m, n, 1), expected = a;
            for (int i = 0; i < m; ++i) {
              for (int j = 0; j < n; ++j) {
                const T right = Element(y, n, y_stride, j);
                expected(i, j) +=
                    alpha * Element(x, m, x_stride, i) * (conjugate ? Conj(right) : right);
              }
            }
            (conjugate ? Blas<T>::gerc : Blas<T>::geru)(&m, &n, &alpha, x.data(), &x_stride,
                                                        y.data(), &y_stride, a.data(), &a.step);
            ExpectNear(a, expected, 1);
          }
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

// Triangular matrices with a strong diagonal; the other triangle is not read.
TYPED_TEST(BlasTest, TrmmAndTrsm) {
  using T = TypeParam;
  const T alpha = Number<T>(0.5, -0.25);
  const T nan(std::numeric_limits<lapack::Real<T>>::quiet_NaN());
  for (const int order : kSizes) {
    for (const int other : {1, 2, 3, 19, 70}) {
      for (const char side : {'L', 'R'}) {
        for (const char triangle : {'L', 'U'}) {
          for (const char form : kForms) {
            for (const char diagonal : {'N', 'U'}) {
              SCOPED_TRACE(testing::Message()
                           << side << triangle << form << diagonal << " " << order << " " << other);
              const int m = side == 'L' ? order : other, n = side == 'L' ? other : order;
              Matrix<T> a(order, order, 1), full = a;
              for (int j = 0; j < order; ++j) {
                for (int i = 0; i < order; ++i) {
                  a(i, j) *= T(lapack::Real<T>(1) / static_cast<lapack::Real<T>>(order));
                  full(i, j) = a(i, j);
                  if (i == j) full(i, j) = a(i, j) = a(i, j) + T(2);
                  if (i == j && diagonal == 'U') {
                    full(i, j) = T(1);
                    a(i, j) = nan;
                  }
                  if (triangle == 'L' ? i < j : i > j) {
                    full(i, j) = T(0);
                    a(i, j) = nan;
                  }
                }
              }
              const Matrix<T> b(m, n, 2);
              Matrix<T> product = b, expected = b;
              for (int i = 0; i < m; ++i) {
                for (int j = 0; j < n; ++j) {
                  T sum(0);
                  for (int p = 0; p < order; ++p) {
                    sum += side == 'L' ? At(form, full, i, p) * b(p, j)
                                       : b(i, p) * At(form, full, p, j);
                  }
                  expected(i, j) = alpha * sum;
                }
              }
              Blas<T>::trmm(&side, &triangle, &form, &diagonal, &m, &n, &alpha, a.data(), &a.step,
                            product.data(), &product.step, 1, 1, 1, 1);
              ExpectNear(product, expected, order);
              const T inverse = T(1) / alpha;
              Blas<T>::trsm(&side, &triangle, &form, &diagonal, &m, &n, &inverse, a.data(), &a.step,
                            product.data(), &product.step, 1, 1, 1, 1);
              ExpectNear(product, b, 4 * order);
              if (testing::Test::HasFatalFailure()) return;
            }
          }
        }
      }
    }
  }
}

TYPED_TEST(BlasTest, SelfAdjoint) {
  using T = TypeParam;
  using R = lapack::Real<T>;
  const T alpha = Number<T>(0.5, -0.25);
  const R real_alpha = R(0.5), beta = R(-0.75);
  const T nan(std::numeric_limits<R>::quiet_NaN());
  for (const int n : kSizes) {
    for (const char triangle : {'L', 'U'}) {
      const auto is_read = [triangle](int i, int j) { return triangle == 'L' ? i >= j : i <= j; };
      for (const int stride : {1, 2, -3}) {
        SCOPED_TRACE(testing::Message() << triangle << n << " " << stride);
        Matrix<T> a(n, n, 1), full = a;
        for (int j = 0; j < n; ++j) {
          for (int i = 0; i < n; ++i) {
            full(i, j) = is_read(i, j) ? a(i, j) : Conj(a(j, i));
            if (i == j) full(i, i) = T(std::real(a(i, i)));
          }
        }
        for (int j = 0; j < n; ++j) {
          for (int i = 0; i < n; ++i) a(i, j) = is_read(i, j) ? a(i, j) : nan;
        }
        std::vector<T> x = Matrix<T>(n * 3, 1, 2).all;
        Matrix<T> y(n * 3, 1, 3), expected = y;
        const T scale(beta);
        for (int i = 0; i < n; ++i) {
          T sum(0);
          for (int j = 0; j < n; ++j) sum += full(i, j) * Element(x, n, stride, j);
          T& to = Element(expected.all, n, stride, i);
          to = alpha * sum + scale * to;
        }
        Blas<T>::symv(&triangle, &n, &alpha, a.data(), &a.step, x.data(), &stride, &scale, y.data(),
                      &stride, 1);
        ExpectNear(y, expected, n);
      }
      for (const int k : {0, 1, 2, 9, 40}) {
        for (const char form : {'N', std::is_floating_point_v<T> ? 'T' : 'C'}) {
          SCOPED_TRACE(testing::Message() << triangle << form << " " << n << " " << k);
          const Matrix<T> a = form == 'N' ? Matrix<T>(n, k, 1) : Matrix<T>(k, n, 1);
          const Matrix<T> b = form == 'N' ? Matrix<T>(n, k, 2) : Matrix<T>(k, n, 2);
          Matrix<T> one(n, n, 3);
          for (int i = 0; i < n; ++i) one(i, i) = T(std::real(one(i, i)));
          Matrix<T> two = one, expected_one = one, expected_two = one;
          for (int j = 0; j < n; ++j) {
            for (int i = 0; i < n; ++i) {
              if (!is_read(i, j)) continue;
              T square(0), both(0);
              for (int p = 0; p < k; ++p) {
                const T ai = At(form, a, i, p), aj = At(form, a, j, p);
                const T bi = At(form, b, i, p), bj = At(form, b, j, p);
                square += ai * Conj(aj);
                both += alpha * ai * Conj(bj) + Conj(alpha) * bi * Conj(aj);
              }
              expected_one(i, j) = T(real_alpha) * square + T(beta) * one(i, j);
              expected_two(i, j) = both + T(beta) * one(i, j);
            }
          }
          Blas<T>::syrk(&triangle, &form, &n, &k, &real_alpha, a.data(), &a.step, &beta, one.data(),
                        &one.step, 1, 1);
          ExpectNear(one, expected_one, k);
          Blas<T>::syr2k(&triangle, &form, &n, &k, &alpha, a.data(), &a.step, b.data(), &b.step,
                         &beta, two.data(), &two.step, 1, 1);
          ExpectNear(two, expected_two, 2 * k);
          for (int i = 0; i < n; ++i) EXPECT_EQ(std::imag(two(i, i)), 0);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

}  // namespace
}  // namespace weir
