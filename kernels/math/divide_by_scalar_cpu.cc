#include "weir/kernels/math/divide_by_scalar.h"

#include <bit>
#include <cstdint>
#include <type_traits>

#include "weir/kernels/math/elementwise_kernels.h"

// Integers divided by one number: x // 7, x % 7. A division takes the processor 10 to 20 cycles; a
// multiplication by the reciprocal takes one (Granlund and Montgomery, "Division by invariant
// integers using multiplication", 1994).
//
// Let T have N bits, and let 2^(l - 1) < |d| <= 2^l. With k = N - 1 + l and m = ceil(2^k / |d|),
// the product m |d| exceeds 2^k by e < |d| <= 2^l, and so n m / 2^k exceeds n / |d| by n e / (2^k
// |d|), which for n <= 2^(N - 1) is less than 1 / |d|: not enough to reach the next integer. So
// floor(n / |d|) = n m >> k, exactly, for all absolute values n of T. m has N bits, and the product
// 2 N.
//
// Quotients that are rounded down need no correction: for negative a, floor(a / b) = ~(~a / b),
// where ~a = -1 - a is not negative.
namespace weir {

namespace {

template <class T>
class Divisor {
 public:
  using U = std::make_unsigned_t<T>;

  explicit Divisor(T d) : is_negative_(d < 0), size_(is_negative_ ? U(0) - U(d) : U(d)) {
    const int bits = std::bit_width(static_cast<U>(size_ - 1));  // l
    shift_ = kBits - 1 + bits;
    factor_ = static_cast<U>(((Product(1) << shift_) + size_ - 1) / size_);
  }

  T Floor(T x) const {
    // The dividend whose divisor is positive, and whether that is negative: all bits set, or none.
    const U a = is_negative_ ? U(0) - U(x) : U(x);
    const U negative = U(0) - U(is_negative_ ? x > 0 : x < 0);
    return static_cast<T>(negative ^ Quotient(a ^ negative));
  }
  T Truncate(T x) const {
    const U negative = U(0) - U(x < 0), flips = U(0) - U((x < 0) != is_negative_);
    return static_cast<T>((Quotient((U(x) ^ negative) - negative) ^ flips) - flips);
  }
  // The remainders of these.
  T FloorMod(T x) const { return Remainder(x, Floor(x)); }
  T TruncateMod(T x) const { return Remainder(x, Truncate(x)); }

 private:
  static constexpr int kBits = 8 * sizeof(T);
  using Product = std::conditional_t<sizeof(T) == 4, uint64_t, unsigned __int128>;

  U Quotient(U n) const { return static_cast<U>(Product(n) * factor_ >> shift_); }
  T Remainder(T x, T quotient) const {
    const U product = U(quotient) * (is_negative_ ? U(0) - size_ : size_);
    return static_cast<T>(U(x) - product);
  }

  bool is_negative_;
  U size_;
  int shift_;
  U factor_;
};

template <class T, T (Divisor<T>::*kDivide)(T) const>
void ScalarDivisorLoop(const BinaryLoop&, const void* xs, const void* ys, void* zs, int64_t n,
                       double) {
  const T* const x = static_cast<const T*>(xs);
  T* const z = static_cast<T*>(zs);
  const Divisor<T> divisor(*static_cast<const T*>(ys));
  ForEachInBlocks(n, [&](int64_t i) { z[i] = (divisor.*kDivide)(x[i]); });
}

template <class T>
void Add(LoopRegistry* t) {
  const auto set = [t](const char* op, BinaryLoop::Fn run) {
    t->FindBinary(op, DataTypeOf<T>::value)->scalar_second = run;
  };
  set("FloorDiv", ScalarDivisorLoop<T, &Divisor<T>::Floor>);
  set("FloorMod", ScalarDivisorLoop<T, &Divisor<T>::FloorMod>);
  for (const char* op : {"Div", "TruncateDiv"})
    set(op, ScalarDivisorLoop<T, &Divisor<T>::Truncate>);
  for (const char* op : {"Mod", "TruncateMod"})
    set(op, ScalarDivisorLoop<T, &Divisor<T>::TruncateMod>);
}

}  // namespace

void AddScalarDivisors(LoopRegistry* t) {
  Add<int32_t>(t);
  Add<int64_t>(t);
}

}  // namespace weir
