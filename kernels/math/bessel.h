#ifndef WEIR_KERNELS_MATH_BESSEL_H_
#define WEIR_KERNELS_MATH_BESSEL_H_

// Bessel functions, integrals of elementary functions and the incomplete beta function in double
// precision, accurate to a few units in the last place except near zeros. NaN outside the domain.
// No global state: thread-safe.
namespace weir {

// The modified Bessel functions of order 0 and 1, of the first (I) and second kind (K). The forms
// with e are scaled: exp(-|x|) I(x) and exp(x) K(x). K is infinite for x <= 0.
double BesselI0(double x);
double BesselI1(double x);
double BesselI0e(double x);
double BesselI1e(double x);
double BesselK0(double x);
double BesselK1(double x);
double BesselK0e(double x);
double BesselK1e(double x);
// The Bessel functions of the first (J) and second kind (Y). Y is -infinity for x <= 0.
double BesselJ0(double x);
double BesselJ1(double x);
double BesselY0(double x);
double BesselY1(double x);

// Dawson's integral, exp(-x^2) times the integral of exp(t^2) from 0 to x.
double Dawsn(double x);
// The exponential integral Ei(x) for x >= 0.
double Expint(double x);
// The integrals of cos(pi t^2 / 2) and sin(pi t^2 / 2) from 0 to x.
double FresnelCos(double x);
double FresnelSin(double x);
// Spence's integral of -log(t) / (t - 1) from 1 to x >= 0: the dilogarithm of 1 - x.
double Spence(double x);
// The regularized incomplete beta function for a, b > 0 and x in [0, 1].
double Betainc(double a, double b, double x);

}  // namespace weir

#endif  // WEIR_KERNELS_MATH_BESSEL_H_
