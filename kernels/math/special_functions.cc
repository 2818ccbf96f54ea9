#include "weir/kernels/math/special_functions.h"

#include <cmath>
#include <limits>

// Sources: Abramowitz and Stegun, Handbook of Mathematical Functions: 6.3.6 and 6.3.18 (digamma's
// recurrence and asymptotic series), 6.4.10 (polygamma by zeta), 6.5.29 (the series of the
// incomplete gamma function), 6.5.31 (its continued fraction, evaluated by Lentz's method); the
// zeta function by Euler-Maclaurin summation, 23.1.30 with 23.2.
namespace weir {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

// B_2k / (2k)!
constexpr double kBernoulliOverFactorial[] = {
    1.0 / 12,
    -1.0 / 720,
    1.0 / 30240,
    -1.0 / 1209600,
    1.0 / 47900160,
    -691.0 / 1307674368000,
    1.0 / 74724249600,
    -3617.0 / 10670622842880000,
    43867.0 / 5109094217170944000,
    -174611.0 / 802857662698291200000.0,
};

// x^a e^-x / gamma(a)
double Prefix(double a, double x) { return std::exp(a * std::log(x) - x - Lgamma(a)); }

// P(a, x) = prefix * sum of x^n / (a (a + 1) ... (a + n))
double IgammaSeries(double a, double x) {
  double term = 1 / a, sum = term;
  for (int n = 1; n < 10000 && term > sum * kEpsilon; ++n) {
    term *= x / (a + n);
    sum += term;
  }
  return Prefix(a, x) * sum;
}

// Q(a, x) = prefix / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / ...))
double IgammacFraction(double a, double x) {
  constexpr double kTiny = 1e-300;
  double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, h = d;
  for (int n = 1; n < 10000; ++n) {
    const double an = -n * (n - a);
    b += 2;
    d = an * d + b;
    if (std::abs(d) < kTiny) d = kTiny;
    c = b + an / c;
    if (std::abs(c) < kTiny) c = kTiny;
    d = 1 / d;
    const double step = d * c;
    h *= step;
    if (std::abs(step - 1) < kEpsilon) break;
  }
  return Prefix(a, x) * h;
}

bool IgammaIsDefined(double a, double x) { return a > 0 && x >= 0; }

}  // namespace

double Lgamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

double Digamma(double x) {
  if (std::isnan(x) || x == -kInf) return kNan;
  double result = 0;
  if (x <= 0) {
    if (x == std::floor(x)) return kNan;
    // Reflection: psi(x) = psi(1 - x) - pi / tan(pi x)
    result = -M_PI / std::tan(M_PI * (x - std::nearbyint(x)));  // exact near 0 too
    x = 1 - x;
  }
  for (; x < 10; x += 1) result -= 1 / x;
  if (x == kInf) return kInf;
  const double z = 1 / (x * x);
  const double series =
      z * (1.0 / 12 -
           z * (1.0 / 120 -
                z * (1.0 / 252 -
                     z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z * (1.0 / 12)))))));
  return result + std::log(x) - 0.5 / x - series;
}

double Zeta(double x, double q) {
  if (x == 1) return kInf;
  if (!(x > 1) || std::isnan(q)) return kNan;
  if (q <= 0) {
    if (q == std::floor(q)) return kInf;
    if (x != std::floor(x)) return kNan;  // a power of a negative number
  }
  double sum = 0, base = q;
  for (int n = 0; n < 12 || base <= 9; ++n, base += 1) {
    if (n > 100000) return kNan;
    const double term = std::pow(base, -x);
    sum += term;
    if (base > 0 && term < sum * kEpsilon / 4) return sum;
  }
  // The rest of the sum, from `base` on.
  const double power = std::pow(base, -x);
  sum += power * base / (x - 1) + power / 2;
  double factor = x * power / base;
  for (int k = 0; k < 10; ++k) {
    const double term = kBernoulliOverFactorial[k] * factor;
    sum += term;
    if (std::abs(term) < std::abs(sum) * kEpsilon) break;
    factor *= (x + 2 * k + 1) * (x + 2 * k + 2) / (base * base);
  }
  return sum;
}

double Polygamma(double n, double x) {
  if (n < 0 || n != std::floor(n)) return kNan;
  if (n == 0) return Digamma(x);
  const double factorial = std::exp(Lgamma(n + 1)), zeta = Zeta(n + 1, x);
  return std::fmod(n, 2) == 0 ? -factorial * zeta : factorial * zeta;
}

double Igamma(double a, double x) {
  if (!IgammaIsDefined(a, x)) return kNan;
  if (x == 0) return 0;
  if (x == kInf) return 1;
  return x < a + 1 ? IgammaSeries(a, x) : 1 - IgammacFraction(a, x);
}

double Igammac(double a, double x) {
  if (!IgammaIsDefined(a, x)) return kNan;
  if (x == 0) return 1;
  if (x == kInf) return 0;
  return x < a + 1 ? 1 - IgammaSeries(a, x) : IgammacFraction(a, x);
}

// The series of P differentiated term by term: the derivative of x^(a+n) e^-x / gamma(a + n + 1) is
// the term itself times log(x) - psi(a + n + 1).
double IgammaGradA(double a, double x) {
  if (!IgammaIsDefined(a, x)) return kNan;
  if (x == 0 || x == kInf) return 0;
  const double log_x = std::log(x);
  double term = Prefix(a, x) / a, psi = Digamma(a + 1), sum = term * (log_x - psi);
  double largest = std::abs(sum);
  for (int n = 1; n < 100000; ++n) {
    psi += 1 / (a + n);
    term *= x / (a + n);
    const double add = term * (log_x - psi);
    sum += add;
    largest = std::max(largest, std::abs(add));
    if (n > x && std::abs(add) < largest * kEpsilon * 1e-2) break;
  }
  return sum;
}

}  // namespace weir
