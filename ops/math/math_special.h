#ifndef WEIR_OPS_MATH_MATH_SPECIAL_H_
#define WEIR_OPS_MATH_MATH_SPECIAL_H_

#include "weir/core/graph/op.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/lib/math.h"

// Builders of elementwise special functions: TensorFlow's math.special. The last argument is the
// node's name.
namespace WEIR_API weir {

// The modified Bessel functions of order 0 and 1, of the first (I) and second kind (K). The
// functions with an `e` suffix are exponentially scaled: exp(-|x|) I(x) and exp(x) K(x).
Output BesselI0(Output x, absl::string_view name = {});
Output BesselI1(Output x, absl::string_view name = {});
Output BesselI0e(Output x, absl::string_view name = {});
Output BesselI1e(Output x, absl::string_view name = {});
Output BesselK0(Output x, absl::string_view name = {});
Output BesselK1(Output x, absl::string_view name = {});
Output BesselK0e(Output x, absl::string_view name = {});
Output BesselK1e(Output x, absl::string_view name = {});
// The Bessel functions of order 0 and 1, of the first (J) and second kind (Y).
Output BesselJ0(Output x, absl::string_view name = {});
Output BesselJ1(Output x, absl::string_view name = {});
Output BesselY0(Output x, absl::string_view name = {});
Output BesselY1(Output x, absl::string_view name = {});

// Dawson's integral: exp(-x^2) times the integral of exp(t^2) from 0 to x.
Output Dawsn(Output x, absl::string_view name = {});
// The exponential integral Ei.
Output Expint(Output x, absl::string_view name = {});
// The Fresnel integrals: the integrals of cos(pi t^2 / 2) and sin(pi t^2 / 2) from 0 to x.
Output FresnelCos(Output x, absl::string_view name = {});
Output FresnelSin(Output x, absl::string_view name = {});
// Spence's function: the dilogarithm of 1 - x.
Output Spence(Output x, absl::string_view name = {});
// The regularized incomplete beta function. The arguments have the same shape or are scalars.
Output Betainc(Output a, Output b, Output x, absl::string_view name = {});
// The next representable value after x1 in the direction of x2.
Output NextAfter(const Output& x1, const Output& x2, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_MATH_MATH_SPECIAL_H_
