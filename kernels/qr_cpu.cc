#include <cmath>
#include <complex>
#include <vector>

#include "weir/kernels/registry.h"

namespace weir {

namespace {

template <class T>
T Conjugate(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    return x;
  } else {
    return std::conj(x);
  }
}

// Q R = A by Householder's reflections. Source: Golub and Van Loan, "Matrix Computations",
// section 5.2.
//
// Reflection k, H = I - tau v v*, turns the part of column k from the diagonal down into (beta, 0,
// ..., 0); it changes nothing above row k. v has a 1 in front, the rest of it is kept in the place
// of the zeros it makes, as LAPACK does. beta is real, and of the sign that avoids cancellation in
// c - beta. R is what remains of A; Q is the product of the adjoint reflections, multiplied out
// onto the first columns of the identity from the last to the first, so that column j is touched by
// reflections up to j only.
template <class T>
class Householder {
 public:
  // `a`, m x n by rows, is overwritten.
  Householder(T* a, int64_t m, int64_t n) : a_(a), m_(m), n_(n), tau_(std::min(m, n)) {
    for (int64_t k = 0; k < static_cast<int64_t>(tau_.size()); ++k) {
      Reflect(k);
      for (int64_t j = k + 1; j < n; ++j) Apply(k, tau_[k], a + j, n);
    }
  }

  void WriteR(int64_t rows, T* r) const {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < n_; ++j) r[i * n_ + j] = j >= i ? a_[i * n_ + j] : T(0);
    }
  }

  void WriteQ(int64_t columns, T* q) const {
    for (int64_t i = 0; i < m_ * columns; ++i) q[i] = T(0);
    for (int64_t i = 0; i < columns; ++i) q[i * columns + i] = T(1);
    for (int64_t k = static_cast<int64_t>(tau_.size()) - 1; k >= 0; --k) {
      for (int64_t j = k; j < columns; ++j) Apply(k, Conjugate(tau_[k]), q + j, columns);
    }
  }

 private:
  void Reflect(int64_t k) {
    const auto at = [&](int64_t i) -> T& { return a_[i * n_ + k]; };
    auto tail = std::norm(T(0));
    for (int64_t i = k + 1; i < m_; ++i) tail += std::norm(at(i));
    const T c = at(k);
    if (tail == 0 && std::imag(c) == 0) return;  // tau is 0
    auto beta = std::sqrt(std::norm(c) + tail);
    if (std::real(c) >= 0) beta = -beta;
    for (int64_t i = k + 1; i < m_; ++i) at(i) /= c - T(beta);
    tau_[k] = Conjugate((T(beta) - c) / T(beta));
    at(k) = T(beta);
  }

  // Reflection k, with this tau, on a column with elements `stride` apart.
  void Apply(int64_t k, T tau, T* column, int64_t stride) const {
    T dot = column[k * stride];
    for (int64_t i = k + 1; i < m_; ++i) dot += Conjugate(a_[i * n_ + k]) * column[i * stride];
    dot *= tau;
    column[k * stride] -= dot;
    for (int64_t i = k + 1; i < m_; ++i) column[i * stride] -= a_[i * n_ + k] * dot;
  }

  T* a_;
  const int64_t m_, n_;
  std::vector<T> tau_;
};

// Half computes in float.
template <class T>
using Compute = std::conditional_t<std::is_same_v<T, half>, float, T>;

template <class T>
void Factor(const T* in, int64_t m, int64_t n, int64_t inner, T* q, T* r) {
  using C = Compute<T>;
  std::vector<C> a(in, in + m * n), out(std::max(m * inner, inner * n));
  const Householder<C> qr(a.data(), m, n);
  qr.WriteQ(inner, out.data());
  std::copy_n(out.begin(), m * inner, q);
  qr.WriteR(inner, out.data());
  std::copy_n(out.begin(), inner * n, r);
}

template <class T>
absl::StatusOr<Kernel> MakeQr(const KernelInit& init) {
  const bool full = init.attr<bool>("full_matrices");
  return Kernel([full](KernelContext& c) -> absl::Status {
    const Tensor& input = c.input(0);
    if (input.rank() < 2) {
      return InvalidArgument("Input must have rank >= 2, got shape ", input.shape().ToString());
    }
    const int64_t m = input.dim(-2), n = input.dim(-1), inner = full ? m : std::min(m, n);
    const Shape batch = input.shape().Sub(0, -2);
    WEIR_ASSIGN_OR_RETURN(Tensor * q, c.AllocateOutput(0, batch.Concatenate({m, inner})));
    WEIR_ASSIGN_OR_RETURN(Tensor * r, c.AllocateOutput(1, batch.Concatenate({inner, n})));
    const double cost = 4.0 * static_cast<double>(m * n) * static_cast<double>(inner);
    c.pool().ParallelFor(batch.num_elements(), cost, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        Factor(input.data<T>() + b * m * n, m, n, inner, q->data<T>() + b * m * inner,
               r->data<T>() + b * inner * n);
      }
    });
    return absl::OkStatus();
  });
}

template <class... Ts>
void AddQr(KernelRegistry* r, List<Ts...>) {
  (r->Add("Qr", kCpu, DataTypeOf<Ts>::value, MakeQr<Ts>), ...);
}

}  // namespace

void AddLinalgCpu(KernelRegistry* r) {
  AddQr(r, List<half, float, double, std::complex<float>, std::complex<double>>{});
}

}  // namespace weir
