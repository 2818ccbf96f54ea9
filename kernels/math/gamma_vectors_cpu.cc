#include "weir/kernels/math/special_vectors.h"

#include <cmath>
#include <limits>
#include <type_traits>

#include "weir/core/tensor/numeric_types.h"
#include "weir/kernels/math/special_functions.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/math/gamma_vectors_cpu.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "hwy/contrib/math/math-inl.h"

// The logarithm of the gamma function, for floats, and its derivative, by vectors of doubles. Both
// have asymptotic series for large arguments (Abramowitz and Stegun 6.1.41 and 6.3.18), and a
// recurrence that leads smaller arguments there:
//
//   log gamma(x) = log gamma(x + n) - log(x (x + 1) ... (x + n - 1))
//   psi(x) = psi(x + n) - (1 / x + 1 / (x + 1) + ... + 1 / (x + n - 1)).
//
// The incomplete gamma functions for floats have the formulas of special_functions.cc: the series
// of P where x < a + 1, otherwise the continued fraction of Q. A lane stops at its own last term,
// so that its result does not depend on its neighbors. The fraction is evaluated as a quotient by
// recurrences of its numerator and denominator, and divided every few steps only. The zeta function
// takes six powers and the rest of the sum by five terms of Euler-Maclaurin summation, whose error
// is below 1e-10 of the result: with r = x / q it is at most about (r / 2 pi)^10 e^(-6 r).
//
// In Lgamma and Digamma every lane takes as many steps as it needs, by masks, and the loop ends
// when the last one is done. A step only multiplies: the sum of reciprocals is kept as a fraction,
// with one division at the end. Near 1 and 2, where log gamma is 0, a difference of large terms has
// no digits left; there it is (x - 1) (x - 2) times a polynomial in x - 3/2, fitted to 2e-10.
// Arguments that are not positive, and NaN, take the scalar functions.
HWY_BEFORE_NAMESPACE();
namespace weir {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#include "weir/kernels/lib/vector_math-inl.h"

#include "weir/kernels/math/wide_vectors-inl.h"

// Where psi's series with seven terms has the digits of a double.
constexpr double kLargeForDigamma = 10;
// Where log gamma's series with six terms has those of a float.
constexpr double kLargeForLgamma = 4;
// Where it has those that the incomplete gamma functions need.
constexpr double kLargeForPrefix = 8;
// Of the terms and steps of the incomplete gamma functions.
constexpr double kPrecision = 1e-14;
constexpr int kMostSteps = 10000;
// Of the zeta function.
constexpr int kPowers = 6;

struct DigammaOfVector {
  static HWY_INLINE V Apply(V x) {
    V y = x, sum = M::Num(0), divisor = M::Num(1);  // of the fraction
    for (auto small = hn::Lt(y, M::Num(kLargeForDigamma)); !hn::AllFalse(D(), small);
         small = hn::Lt(y, M::Num(kLargeForDigamma))) {
      sum = M::If(small, hn::MulAdd(sum, y, divisor), sum);
      divisor = M::If(small, hn::Mul(divisor, y), divisor);
      y = M::If(small, hn::Add(hn::Max(y, M::Num(0)), M::Num(1)), y);
    }
    const V inverse = hn::Div(M::Num(1), y), z = hn::Mul(inverse, inverse);
    const V series = hn::Mul(z, M::Polynomial(z, 1.0 / 12, -691.0 / 32760, 1.0 / 132, -1.0 / 240,
                                              1.0 / 252, -1.0 / 120, 1.0 / 12));
    const V large = hn::Sub(hn::NegMulAdd(M::Num(0.5), inverse, M::Log(y)), series);
    return M::FixSpecialLanes(x, hn::Gt(x, M::Num(0)), hn::Sub(large, hn::Div(sum, divisor)),
                              [](double v) { return Digamma(v); });
  }
};

struct LgammaOfVector {
  static HWY_INLINE V Apply(V x) {
    const V distance = hn::Sub(x, M::Num(1.5));
    const auto is_near = hn::Le(hn::Abs(distance), M::Num(0.75));
    const auto usual = hn::And(hn::Gt(x, M::Num(0)), hn::Le(x, M::Num(0x1p128)));
    V result = Far(x, kLargeForLgamma);
    if (!hn::AllFalse(D(), is_near)) {
      const V quotient = M::Polynomial(
          distance, 0.00030187316839512738, -0.00042337377671384319, 4.0464938910255679e-5,
          -0.00018324153415124336, 0.00084086904367598581, -0.0012836754686522474,
          0.0018839433504634075, -0.0031831506510127455, 0.0054527691557923952,
          -0.0094291638545314166, 0.016796597118642589, -0.031308298134166908, 0.062911416339526294,
          -0.14595989882609734, 0.48312895046391132);
      const V roots = hn::Mul(hn::Sub(x, M::Num(1)), hn::Sub(x, M::Num(2)));
      result = M::If(is_near, hn::MulAdd(roots, quotient, M::Num(0)), result);  // not -0 at 1
    }
    return M::FixSpecialLanes(x, usual, result, [](double v) { return Lgamma(v); });
  }
  // By the series from `large` on, with an absolute error of large^-13 / 156 and rounding.
  static HWY_INLINE V Far(V x, double large) {
    V y = x, product = M::Num(1);
    for (auto small = hn::Lt(y, M::Num(large)); !hn::AllFalse(D(), small);
         small = hn::Lt(y, M::Num(large))) {
      product = M::If(small, hn::Mul(product, y), product);
      y = M::If(small, hn::Add(hn::Max(y, M::Num(0)), M::Num(1)), y);
    }
    const V inverse = hn::Div(M::Num(1), y), z = hn::Mul(inverse, inverse);
    const V series = hn::Mul(inverse, M::Polynomial(z, -691.0 / 360360, 1.0 / 1188, -1.0 / 1680,
                                                    1.0 / 1260, -1.0 / 360, 1.0 / 12));
    constexpr double kHalfLogTwoPi = 0.91893853320467274178;
    const V main = hn::MulSub(hn::Sub(y, M::Num(0.5)), M::Log(y), y);
    return hn::Sub(hn::Add(main, hn::Add(series, M::Num(kHalfLogTwoPi))), M::Log(product));
  }
};

// P(a, x) for x < a + 1 in lanes of `mask`, without the factor `Prefix`. Other lanes are undefined.
HWY_INLINE V SumOfSeries(V a, V x, hn::Mask<D> mask) {
  V n = a, term = M::Num(1), sum = term;
  for (int i = 0; i < kMostSteps && !hn::AllFalse(D(), mask); ++i) {
    n = hn::Add(n, M::Num(1));
    term = hn::Mul(term, hn::Div(x, n));
    sum = M::If(mask, hn::Add(sum, term), sum);
    mask = hn::And(mask, hn::Gt(term, hn::Mul(sum, M::Num(kPrecision))));
  }
  return hn::Div(sum, a);
}
// Q(a, x) for x >= a + 1, likewise: 1 / (b - 1 (1 - a) / (b + 2 - 2 (2 - a) / (b + 4 - ...))) with
// b = x + 1 - a.
HWY_INLINE V ValueOfFraction(V a, V x, hn::Mask<D> mask) {
  constexpr int kStepsPerDivision = 4;
  V b = hn::Add(hn::Sub(x, a), M::Num(1)), n = M::Num(0);
  V p = M::Num(1), q = b, last_p = M::Num(0), last_q = M::Num(1), value = hn::Div(p, q);
  for (int i = 0; i < kMostSteps && !hn::AllFalse(D(), mask); i += kStepsPerDivision) {
    for (int k = 0; k < kStepsPerDivision; ++k) {
      n = hn::Add(n, M::Num(1));
      b = hn::Add(b, M::Num(2));
      const V factor = hn::Mul(n, hn::Sub(a, n));
      const V next_p = hn::MulAdd(b, p, hn::Mul(factor, last_p));
      const V next_q = hn::MulAdd(b, q, hn::Mul(factor, last_q));
      last_p = p, last_q = q, p = next_p, q = next_q;
    }
    const V scale = hn::Div(M::Num(1), q);
    p = hn::Mul(p, scale), last_p = hn::Mul(last_p, scale), last_q = hn::Mul(last_q, scale);
    q = M::Num(1);
    const auto moves = hn::Gt(hn::Abs(hn::Sub(p, value)), hn::Mul(p, M::Num(kPrecision)));
    value = M::If(mask, p, value);
    mask = hn::And(mask, moves);
  }
  return value;
}

// P or Q of lanes within bounds that keep the number of steps and the digits lost small.
template <bool kUpper>
struct IncompleteGammaOfVector {
  static HWY_INLINE V Apply(V a, V x) {
    const V least = M::Num(0.05), most = M::Num(1e4);
    const auto usual = hn::And(hn::And(hn::Ge(a, least), hn::Le(a, most)),
                               hn::And(hn::Gt(x, M::Num(0)), hn::Le(x, most)));
    const auto by_series = hn::Lt(x, hn::Add(a, M::Num(1)));
    const auto lower = hn::And(usual, by_series), upper = hn::AndNot(by_series, usual);
    V value = M::Num(0);
    if (!hn::AllFalse(D(), lower)) value = SumOfSeries(a, x, lower);
    if (!hn::AllFalse(D(), upper)) value = M::If(by_series, value, ValueOfFraction(a, x, upper));
    // x^a e^-x / gamma(a)
    const V log_gamma = LgammaOfVector::Far(M::If(usual, a, M::Num(1)), kLargeForPrefix);
    const V exponent = hn::Sub(hn::MulSub(a, M::Log(x), x), log_gamma);
    value = hn::Mul(value, M::Exp(exponent));
    const V rest = hn::Sub(M::Num(1), value);
    const V result = kUpper ? M::If(by_series, rest, value) : M::If(by_series, value, rest);
    return FixSpecialPairs(a, x, usual, result, [](double s, double t) {
      return kUpper ? Igammac(s, t) : Igamma(s, t);
    });
  }
};

struct ZetaOfVector {
  static HWY_INLINE V Apply(V x, V q) {
    const auto usual = hn::And(hn::And(hn::Gt(x, M::Num(1)), hn::Le(x, M::Num(1e4))),
                               hn::And(hn::Gt(q, M::Num(0)), hn::Le(q, M::Num(1e30))));
    const auto power = [x](V base) HWY_ATTR { return M::Exp(hn::Neg(hn::Mul(x, M::Log(base)))); };
    V sum = power(q), base = q;
    for (int i = 1; i < kPowers; ++i) {
      base = hn::Add(base, M::Num(1));
      sum = hn::Add(sum, power(base));
    }
    base = hn::Add(base, M::Num(1));
    const V last = power(base), inverse = hn::Div(M::Num(1), base), z = hn::Mul(inverse, inverse);
    // B_2k / (2k)! x (x + 1) ... (x + 2k - 2) / base^(2k - 1), from the last term to the first.
    const auto two = [x](double k) HWY_ATTR {
      return hn::Mul(hn::Add(x, M::Num(k)), hn::Add(x, M::Num(k + 1)));
    };
    V terms = M::Num(1.0 / 47900160);
    terms = hn::MulAdd(hn::Mul(terms, two(7)), z, M::Num(-1.0 / 1209600));
    terms = hn::MulAdd(hn::Mul(terms, two(5)), z, M::Num(1.0 / 30240));
    terms = hn::MulAdd(hn::Mul(terms, two(3)), z, M::Num(-1.0 / 720));
    terms = hn::MulAdd(hn::Mul(terms, two(1)), z, M::Num(1.0 / 12));
    const V rest = hn::MulAdd(hn::Mul(terms, x), inverse, M::Num(0.5));
    const V integral = hn::Div(base, hn::Sub(x, M::Num(1)));
    sum = hn::MulAdd(last, hn::Add(rest, integral), sum);
    return FixSpecialPairs(x, q, usual, sum, [](double s, double t) { return Zeta(s, t); });
  }
};

void AddGammaLoopsOfTarget(LoopRegistry* t) {
  t->AddUnary("Digamma", DT_FLOAT, DT_FLOAT, WideUnaryLoop<DigammaOfVector, float>, 5);
  t->AddUnary("Digamma", DT_DOUBLE, DT_DOUBLE, WideUnaryLoop<DigammaOfVector, double>, 5);
  t->AddUnary("Lgamma", DT_FLOAT, DT_FLOAT, WideUnaryLoop<LgammaOfVector, float>, 5);
  t->AddBinary("Igamma", DT_FLOAT, DT_FLOAT, WideBinaryLoop<IncompleteGammaOfVector<false>, float>,
               30);
  t->AddBinary("Igammac", DT_FLOAT, DT_FLOAT, WideBinaryLoop<IncompleteGammaOfVector<true>, float>,
               30);
  t->AddBinary("Zeta", DT_FLOAT, DT_FLOAT, WideBinaryLoop<ZetaOfVector, float>, 20);
}

}  // namespace HWY_NAMESPACE
}  // namespace weir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {
namespace {
HWY_EXPORT(AddGammaLoopsOfTarget);
}  // namespace

void AddGammaVectors(LoopRegistry* t) { HWY_DYNAMIC_DISPATCH(AddGammaLoopsOfTarget)(t); }

}  // namespace weir
#endif  // HWY_ONCE
