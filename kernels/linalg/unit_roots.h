#ifndef WEIR_KERNELS_LINALG_UNIT_ROOTS_H_
#define WEIR_KERNELS_LINALG_UNIT_ROOTS_H_

#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>
#include <type_traits>
#include <vector>

namespace weir::fft {

// The n-th roots of unity, correctly rounded to T but for rare last bits.
//
// A root is the product of two entries of tables of about sqrt(n) / 2 entries, in a wider type: a
// table takes far fewer calls of sin and cos than there are roots, and the product's error vanishes
// in the rounding to T. The angle is first reduced to at most an eighth of a turn by quarter turns,
// in integers: roots at multiples of a quarter turn are exact, and those at equal distances from
// one have the same bits.
template <class T>
class UnitRoots {
 public:
  explicit UnitRoots(int64_t n) : n_(n) {
    while ((int64_t{1} << (2 * shift_)) < n / 2 + 1) ++shift_;
    const int64_t size = int64_t{1} << shift_;
    for (int64_t i = 0; i < size; ++i) low_.push_back(AtAngle(i));
    for (int64_t i = 0; i <= (n / 2) >> shift_; ++i) high_.push_back(AtAngle(i * size));
  }

  // Returns exp(-2 pi i k / n), for k in [0, n).
  std::complex<T> operator()(int64_t k) const {
    const int64_t quarters = (4 * k + n_ / 2) / n_;
    const int64_t rest = 4 * k - quarters * n_;  // of a turn of 4 n units
    const int64_t at = rest < 0 ? -rest : rest;
    const Number a = low_[static_cast<size_t>(at & ((int64_t{1} << shift_) - 1))];
    const Number b = high_[static_cast<size_t>(at >> shift_)];
    const T re = static_cast<T>(a.re * b.re - a.im * b.im);
    const T magnitude = static_cast<T>(a.re * b.im + a.im * b.re);
    const T im = rest < 0 ? magnitude : -magnitude;
    switch (quarters % 4) {
      case 0:
        return {re, im};
      case 1:
        return {im, -re};
      case 2:
        return {-re, -im};
      default:
        return {-im, re};
    }
  }

 private:
  using Wide = std::conditional_t<std::is_same_v<T, float>, double, long double>;
  struct Number {
    Wide re, im;
  };

  Number AtAngle(int64_t i) const {
    const Wide angle = std::numbers::pi_v<Wide> * static_cast<Wide>(i) / static_cast<Wide>(2 * n_);
    return {std::cos(angle), std::sin(angle)};
  }

  const int64_t n_;
  int shift_ = 0;
  std::vector<Number> low_, high_;
};

}  // namespace weir::fft

#endif  // WEIR_KERNELS_LINALG_UNIT_ROOTS_H_
