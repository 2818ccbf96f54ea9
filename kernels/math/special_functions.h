#ifndef WEIR_KERNELS_MATH_SPECIAL_FUNCTIONS_H_
#define WEIR_KERNELS_MATH_SPECIAL_FUNCTIONS_H_

// Special functions in double precision, with a relative error of about 1e-13 except near a zero.
// They return NaN where they are undefined. No global state: thread-safe.
namespace weir {

// log |gamma(x)|; infinity at 0 and the negative integers.
double Lgamma(double x);
// The derivative of lgamma; NaN at 0 and the negative integers.
double Digamma(double x);
// The Hurwitz zeta function, the sum of (q + n)^-x over n >= 0, for x >= 1 (infinity at 1).
double Zeta(double x, double q);
// The n-th derivative of the digamma function, for an integer n >= 0.
double Polygamma(double n, double x);
// The regularized incomplete gamma functions P(a, x) and Q(a, x) = 1 - P(a, x) for a > 0, x >= 0,
// and dP/da.
double Igamma(double a, double x);
double Igammac(double a, double x);
double IgammaGradA(double a, double x);

}  // namespace weir

#endif  // WEIR_KERNELS_MATH_SPECIAL_FUNCTIONS_H_
