#include <utility>

#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/lib/math_internal.h"
#include "weir/ops/lib/registry.h"

// The parts of complex numbers.
namespace weir {

namespace {

Grads ComplexAbsGradient(GradContext& g) {
  const Output numerator = Complex(g.dy(), ZerosOf(g.dy())) * g.x();
  return {DivNoNan(numerator, Complex(g.y(), ZerosOf(g.y())))};
}
Grads ConjGradient(GradContext& g) { return {Conj(g.dy())}; }
Grads RealGradient(GradContext& g) { return {Complex(g.dy(), ScalarConst(g.dy(), 0))}; }
Grads ImagGradient(GradContext& g) { return {Complex(ScalarConst(g.dy(), 0), g.dy())}; }
Grads AngleGradient(GradContext& g) {
  const Output re = Real(g.x()), im = Imag(g.x());
  const Output inverse = Reciprocal(Complex(im, re));
  const Output dy = Complex(g.dy(), ScalarConst(g.dy(), 0));
  return {Negative(dy) * inverse};
}

Grads ComplexGradient(GradContext& g) {
  const Output re = Real(g.dy());
  return ReduceGradientArgs(g, re, Imag(g.dy()), /*shortcut=*/false);
}

}  // namespace

void AddComplexOps(OpRegistry* ops) {
  const auto part = [ops](absl::string_view op, absl::string_view in, absl::string_view out,
                          GradientFn gradient, absl::string_view doc) {
    ops->Add(OpSpec(op)
                 .In(in)
                 .Out(out)
                 .Attr("T: {complex64, complex128} = DT_COMPLEX64")
                 .Attr("Tout: {float, double} = DT_FLOAT")
                 .Elementwise()
                 .InferShape(SameShape)
                 .Gradient(std::move(gradient))
                 .Doc(doc));
  };
  part("ComplexAbs", "x: T", "y: Tout", ComplexAbsGradient,
       "Computes the absolute value of complex numbers elementwise.");
  part("Real", "input: T", "output: Tout", RealGradient,
       "Returns the real part of complex numbers, elementwise.");
  part("Imag", "input: T", "output: Tout", ImagGradient,
       "Returns the imaginary part of complex numbers, elementwise.");
  part("Angle", "input: T", "output: Tout", AngleGradient,
       "Returns the argument of complex numbers, in (-pi, pi], elementwise.");
  ops->Add(OpSpec("Conj")
               .In("input: T")
               .Out("output: T")
               .Attr("T: {complex64, complex128, variant} = DT_COMPLEX64")
               .Elementwise()
               .Involution()
               .InferShape(IdentityShape)
               .Gradient(ConjGradient)
               .Doc("Returns the complex conjugate, elementwise."));
  ops->Add(OpSpec("Complex")
               .In("real: T, imag: T")
               .Out("out: Tout")
               .Attr("T: {float, double} = DT_FLOAT")
               .Attr("Tout: {complex64, complex128} = DT_COMPLEX64")
               .Elementwise()
               .InferShape(BroadcastShape)
               .Gradient(ComplexGradient)
               .Doc("Returns complex numbers with the given real and imaginary parts."));
}

Output Conj(Output x, absl::string_view name) {
  const bool is_real = !IsComplex(x.dtype()) && x.dtype() != DT_VARIANT;
  return is_real ? x : Unary("Conj", x, name);
}

namespace {

Output ComplexPart(absl::string_view op, Output x, absl::string_view name) {
  return AddOp(op, {x}, {{"Tout", x.dtype() == DT_COMPLEX64 ? DT_FLOAT : DT_DOUBLE}}, name);
}

}  // namespace

Output Real(Output x, absl::string_view name) {
  return IsComplex(x.dtype()) ? ComplexPart("Real", x, name) : x;
}
Output Imag(Output x, absl::string_view name) {
  return IsComplex(x.dtype()) ? ComplexPart("Imag", x, name) : ZerosOf(x);
}
Output Angle(Output x, absl::string_view name) {
  return IsComplex(x.dtype()) ? ComplexPart("Angle", x, name) : ZerosOf(x);
}
Output Complex(Output real, Output imag, absl::string_view name) {
  return AddOp("Complex", {real, imag},
               {{"Tout", real.dtype() == DT_FLOAT ? DT_COMPLEX64 : DT_COMPLEX128}}, name);
}

}  // namespace weir
