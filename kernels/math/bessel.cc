#include "weir/kernels/math/bessel.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weir {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kEuler = 0.57721566490153286061;

// Modified Bessel functions of order v = 0 or 1, without tables of coefficients. Sources: Olver et
// al., "NIST Handbook of Mathematical Functions" (2010), chapter 10; Trefethen and Weideman, "The
// exponentially convergent trapezoidal rule" (2014). All sums but one have only positive terms, so
// there is no cancellation.
//
// I: for x < 20 the power series (10.25.2), scaled by exp(-x); above, the asymptotic series
// (10.40.1), whose smallest term is about exp(-2x).
//
// K: for x <= 1 the series (10.31.2) with the logarithm; above, the integral (10.32.9)
//   exp(x) K(x) = integral of exp(-x (cosh t - 1)) cosh(v t) over t > 0
// by the trapezoidal rule. For such a function, analytic in a strip and of doubly exponential
// decay, the error is about exp(-2 pi d / h) for a strip of width d and steps of h.
double SeriesI(int order, double x) {
  const double q = x * x / 4;
  double term = order == 0 ? 1 : x / 2, sum = term;
  for (int k = 1; term > sum * 1e-17; ++k) {
    term *= q / (static_cast<double>(k) * (k + order));
    sum += term;
  }
  return sum;
}

double AsymptoticI(int order, double x) {
  double term = 1, sum = 1;
  for (int k = 1; k < 40; ++k) {
    const double odd = 2 * k - 1;
    term *= (odd * odd - 4 * order * order) / (8 * x * k);
    sum += term;
    if (std::abs(term) < 1e-17 * sum) break;
  }
  return sum / std::sqrt(2 * M_PI * x);
}

// For x >= 0.
double ScaledI(int order, double x) {
  if (x < 20) return SeriesI(order, x) * std::exp(-x);
  return AsymptoticI(order, x);
}

// exp(x) may overflow where the product does not.
double UnscaledI(int order, double x) {
  if (x < 20) return SeriesI(order, x);
  if (x > 800) return kInfinity;
  const double half = std::exp(x / 2);
  return AsymptoticI(order, x) * half * half;
}

double SeriesK(int order, double x) {
  const double q = x * x / 4, log = std::log(x / 2) + kEuler;
  if (order == 0) {
    double term = 1, harmonic = 0, sum = -log;
    for (int k = 1; k < 20; ++k) {
      term *= q / (static_cast<double>(k) * k);
      harmonic += 1.0 / k;
      sum += term * (harmonic - log);
    }
    return sum;
  }
  // psi(k + 1) + psi(k + 2) = 2 (harmonic(k) - gamma) + 1 / (k + 1).
  double term = x / 2, harmonic = 0, sum = 0;
  for (int k = 0; k < 20; ++k) {
    if (k > 0) {
      term *= q / (static_cast<double>(k) * (k + 1));
      harmonic += 1.0 / k;
    }
    sum += term * (log - harmonic - 0.5 / (k + 1));
  }
  return 1 / x + sum;
}

double ScaledK(int order, double x) {
  if (x <= 1) return SeriesK(order, x) * std::exp(x);
  // The step size follows the width of the integrand, 1 / sqrt(x), up to the limit set by its strip
  // of analyticity.
  const double h = std::min(0.125, 0.5 / std::sqrt(x));
  double sum = 0.5;
  for (int k = 1;; ++k) {
    const double t = k * h, s = std::sinh(t / 2), exponent = 2 * x * s * s;
    if (exponent > 40) break;
    sum += std::exp(-exponent) * (order == 0 ? 1 : std::cosh(t));
  }
  return sum * h;
}

double OfPositive(double x, double (*f)(int, double), int order, double at_most_zero) {
  if (std::isnan(x)) return x;
  if (x <= 0) return at_most_zero;
  return x == kInfinity ? 0 : f(order, x);
}

double UnscaledK(int order, double x) {
  if (x <= 1) return SeriesK(order, x);
  return ScaledK(order, x) * std::exp(-x);
}

double OddIn(double x, double of_absolute) { return std::copysign(of_absolute, x); }

}  // namespace

double BesselI0(double x) { return std::isnan(x) ? x : UnscaledI(0, std::abs(x)); }
double BesselI1(double x) { return std::isnan(x) ? x : OddIn(x, UnscaledI(1, std::abs(x))); }
double BesselI0e(double x) { return std::isnan(x) ? x : ScaledI(0, std::abs(x)); }
double BesselI1e(double x) { return std::isnan(x) ? x : OddIn(x, ScaledI(1, std::abs(x))); }
double BesselK0(double x) { return OfPositive(x, UnscaledK, 0, kInfinity); }
double BesselK1(double x) { return OfPositive(x, UnscaledK, 1, kInfinity); }
double BesselK0e(double x) { return OfPositive(x, ScaledK, 0, kInfinity); }
double BesselK1e(double x) { return OfPositive(x, ScaledK, 1, kInfinity); }

// The C library provides these.
double BesselJ0(double x) { return ::j0(x); }
double BesselJ1(double x) { return ::j1(x); }
double BesselY0(double x) { return x <= 0 ? -kInfinity : ::y0(x); }
double BesselY1(double x) { return x <= 0 ? -kInfinity : ::y1(x); }

// Rybicki's method ("Dawson's integral and the sampling theorem", 1989): with steps of h, and n0 h
// the even multiple nearest to x,
//   D(x) = 1/sqrt(pi) sum over odd n of exp(-(x - n h)^2) / n,
// exact to exp(-(pi / 2h)^2), here 1e-17. Near 0, where terms cancel, it uses the power series x -
// 2/3 x^3 + 4/15 x^5 - ...; for large x, where only the tail of the sum contributes, the asymptotic
// series.
double Dawsn(double x) {
  const double a = std::abs(x);
  if (std::isnan(x)) return x;
  if (a < 0.5) {
    double term = x, sum = x;
    for (int k = 1; k < 30; ++k) {
      term *= -2 * x * x / (2 * k + 1);
      sum += term;
    }
    return sum;
  }
  if (a > 12) {
    const double q = 1 / (2 * a * a);
    double term = 1, sum = 1;
    for (int k = 1; k < 20; ++k) {
      term *= (2 * k - 1) * q;
      sum += term;
    }
    return OddIn(x, sum / a / 2);
  }
  constexpr double kStep = 0.25;
  const double center = 2 * std::round(a / (2 * kStep));
  double sum = 0;
  for (int k = -27; k <= 27; k += 2) {
    const double n = center + k, distance = a - n * kStep;
    sum += std::exp(-distance * distance) / n;
  }
  return OddIn(x, sum / std::sqrt(M_PI));
}

// The power series gamma + log x + sum of x^k / (k k!); from 40 on, the asymptotic series exp(x) /
// x times the sum of k! / x^k, up to its smallest term.
double Expint(double x) {
  if (std::isnan(x) || x < 0) return kNaN;
  if (x == 0) return -kInfinity;
  if (x == kInfinity) return x;
  double term = 1, sum = 0;
  if (x < 40) {
    for (int k = 1; k < 200; ++k) {
      term *= x / k;
      sum += term / k;
      if (term < sum * 1e-18) break;
    }
    return kEuler + std::log(x) + sum;
  }
  sum = 1;
  for (int k = 1; k < x; ++k) {
    term *= k / x;
    sum += term;
    if (term < 1e-17) break;
  }
  const double half = std::exp(x / 2);
  return half * (sum / x) * half;
}

namespace {

// Fresnel's integrals: power series for small x, otherwise the auxiliary functions f and g (NIST
// Handbook, 7.7.10 and 7.7.11),
//   C(x) = 1/2 + f sin(pi x^2 / 2) - g cos(pi x^2 / 2),
//   S(x) = 1/2 - f cos(pi x^2 / 2) - g sin(pi x^2 / 2).
// With t = u^2, f and g are integrals of exp(-pi x^2 u^2 / 2) times 1 and u^2, over 1 + u^4, on the
// whole line. The trapezoidal rule computes them to 1e-17 with steps of 0.1, which the poles at
// distance 1/sqrt(2) require, or less where the exponential is narrow.
struct Fresnel {
  double cosine, sine;
};

Fresnel SeriesFresnel(double x) {
  const double z = M_PI / 2 * x * x;
  double term = x;
  Fresnel sum = {x, 0};
  for (int k = 1; k < 40; ++k) {
    term *= z / k;
    const double part = (k / 2 % 2 == 0 ? term : -term) / (2 * k + 1);
    (k % 2 == 0 ? sum.cosine : sum.sine) += part;
  }
  return sum;
}

Fresnel FresnelOf(double x) {
  if (x < 1.5) return SeriesFresnel(x);
  // x^2 modulo 4 without rounding: pi x^2 / 2 must be accurate to the last digit.
  const double square = x * x, rest = std::fma(x, x, -square);
  const double angle = M_PI / 2 * (std::fmod(square, 4) + rest);
  const double h = std::min(0.1, 0.4 / x), scale = M_PI / 2 * square;
  double f = 0.5, g = 0;
  for (int k = 1; k < 100; ++k) {
    const double u = k * h, q = u * u, weight = std::exp(-scale * q) / (1 + q * q);
    f += weight;
    g += weight * q;
    if (scale * q > 40) break;
  }
  f *= h * M_SQRT2 / M_PI;
  g *= h * M_SQRT2 / M_PI;
  const double s = std::sin(angle), c = std::cos(angle);
  return {0.5 + f * s - g * c, 0.5 - f * c - g * s};
}

}  // namespace

double FresnelCos(double x) {
  if (std::isnan(x)) return x;
  return OddIn(x, std::abs(x) > 1e150 ? 0.5 : FresnelOf(std::abs(x)).cosine);
}
double FresnelSin(double x) {
  if (std::isnan(x)) return x;
  return OddIn(x, std::abs(x) > 1e150 ? 0.5 : FresnelOf(std::abs(x)).sine);
}

// The dilogarithm Li2(1 - x). With u = -log x, Debye's form
//   Li2(1 - x) = u - u^2/4 + sum of B(2k) u^(2k+1) / (2k+1)!  (B: Bernoulli numbers)
// converges like (u / 2 pi)^2k; the reflections Li2(z) + Li2(1-z) = pi^2/6 - log z log(1-z) and
// Li2(1-x) + Li2(1-1/x) = -log(x)^2/2 map every x to [1/2, 2]. Source: Lewin, "Polylogarithms and
// associated functions" (1981).
double Spence(double x) {
  if (std::isnan(x) || x < 0) return kNaN;
  if (x == 0) return M_PI * M_PI / 6;
  if (x == kInfinity) return -kInfinity;
  if (x > 2) {
    const double log = std::log(x);
    return -Spence(1 / x) - log * log / 2;
  }
  if (x < 0.5) return M_PI * M_PI / 6 - std::log(x) * std::log1p(-x) - Spence(1 - x);
  // B(2k) / (2k + 1)!
  static constexpr double kCoefficients[] = {1.0 / 36,
                                             -1.0 / 3600,
                                             1.0 / 211680,
                                             -1.0 / 10886400,
                                             1.0 / 526901760,
                                             -4.0647616451442255e-11,
                                             8.9216910204564526e-13,
                                             -1.9939295860721076e-14,
                                             4.5189800296199182e-16};
  const double u = -std::log(x), q = u * u;
  double power = u, sum = u - q / 4;
  for (const double c : kCoefficients) {
    power *= q;
    sum += c * power;
  }
  return sum;
}

namespace {

// Evaluates the continued fraction of the incomplete beta function (NIST Handbook, 8.17.22) by
// Lentz's method. It converges quickly for x < (a + 1) / (a + b + 2).
double BetaFraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300;
  const auto nonzero = [](double v) { return std::abs(v) < kTiny ? kTiny : v; };
  double c = 1, d = 1 / nonzero(1 - (a + b) * x / (a + 1)), product = d;
  const int most = 500 + static_cast<int>(std::min(1e6, 5 * std::sqrt(std::max(a, b))));
  for (int m = 1; m < most; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / nonzero(1 + even * d);
    c = nonzero(1 + even / c);
    product *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / nonzero(1 + odd * d);
    c = nonzero(1 + odd / c);
    product *= d * c;
    if (std::abs(d * c - 1) < 1e-16) break;
  }
  return product;
}

// lgamma(y) - (y - 1/2) log y + y - log(2 pi) / 2 for y >= 8, by Stirling's series.
double StirlingRest(double y) {
  const double q = 1 / (y * y);
  return (1.0 / 12 -
          q * (1.0 / 360 - q * (1.0 / 1260 -
                                q * (1.0 / 1680 -
                                     q * (1.0 / 1188 - q * (691.0 / 360360 - q * (1.0 / 156))))))) /
         y;
}

// log(1 + t) - t, accurate for small t too.
double Log1pMinus(double t) {
  if (std::abs(t) > 0.3) return std::log1p(t) - t;
  double power = t, sum = 0;
  for (int k = 2; k < 60; ++k) {
    power *= -t;
    sum += power / k;
    if (std::abs(power) < 1e-18 * std::abs(sum)) break;
  }
  return sum;
}

// x^a (1 - x)^b / B(a, b). Where a and b are large, the logarithms of the factors would cancel.
// With s = a + b, the result is the exponential of a (log(xs/a)) + b (log((1-x)s/b)), both near 0
// where it matters, times the remainder of Stirling's formula.
double BetaPower(double a, double b, double x) {
  if (std::min(a, b) < 8) {
    int sign;
    const double log_beta = ::lgamma_r(a, &sign) + ::lgamma_r(b, &sign) - ::lgamma_r(a + b, &sign);
    return std::exp(a * std::log(x) + b * std::log1p(-x) - log_beta);
  }
  const double s = a + b, difference = x * s - a;
  const double exponent = a * Log1pMinus(difference / a) + b * Log1pMinus(-difference / b);
  const double rest = StirlingRest(s) - StirlingRest(a) - StirlingRest(b);
  return std::exp(exponent + rest) * std::sqrt(a / s * b / (2 * M_PI));
}

}  // namespace

double Betainc(double a, double b, double x) {
  if (!(a > 0 && b > 0 && x >= 0 && x <= 1) || a == kInfinity || b == kInfinity) return kNaN;
  if (x == 0 || x == 1) return x;
  if (x < (a + 1) / (a + b + 2)) return BetaPower(a, b, x) * BetaFraction(a, b, x) / a;
  return 1 - BetaPower(b, a, 1 - x) * BetaFraction(b, a, 1 - x) / b;
}

}  // namespace weir
