#include <algorithm>
#include <limits>

#include "weir/core/graph/scope.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/lib/math_internal.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/lib/shape_values.h"

// Conversions: Cast and Bucketize.
namespace weir {

namespace {

Grads CastGradient(GradContext& g) {
  const DataType from = g.x().dtype(), to = g.y().dtype();
  const auto differentiable = [](DataType t) { return IsFloating(t) || IsComplex(t); };
  if (!differentiable(from) || !differentiable(to)) return {};
  return {AddOp("Cast", {g.dy()}, {{"DstT", from}})};
}

}  // namespace

void AddCastOps(OpRegistry* ops) {
  ops->Add(OpSpec("Cast")
               .In("x: SrcT")
               .Out("y: DstT")
               .Attr("SrcT: type")
               .Attr("DstT: type")
               .Attr("Truncate: bool = false")
               .Elementwise()
               .ShapeValue(ForwardedShapeValue)
               .InferShape(SameShape)
               .Gradient(CastGradient)
               .Doc("Casts x to another type. Conversion of floating-point numbers to integers "
                    "drops the fraction. With Truncate, conversion to a narrower floating-point "
                    "type drops mantissa bits instead of rounding."));
  ops->Add(OpSpec("Bucketize")
               .In("input: T")
               .Out("output: int32")
               .Attr("T: {int32, int64, float, double}")
               .Attr("boundaries: list(float)")
               .Elementwise()
               .InferShape(SameShape)
               .Doc("Returns for each element its bucket: the number of boundaries (in ascending "
                    "order) that are not greater than it."));
}

Output Cast(Output x, DataType dtype, absl::string_view name) {
  if (!x.valid() || x.dtype() == dtype) return x;
  return AddOp("Cast", {x}, {{"DstT", dtype}}, name);
}

namespace {

// The range of a dtype as doubles. The ranges of floating-point types and 64-bit integers are not
// exact, and need not be.
std::pair<double, double> RangeOf(DataType t) {
  std::pair<double, double> range{0, 0};
  DispatchType(t, RealNumbers{}, [&]<class T>() {
    range = {static_cast<double>(std::numeric_limits<T>::lowest()),
             static_cast<double>(std::numeric_limits<T>::max())};
  });
  if (t == DT_HALF) range = {-65504, 65504};
  if (t == DT_BFLOAT16) range = {-3.3895313892515355e38, 3.3895313892515355e38};
  return range;
}

}  // namespace

Output SaturateCast(Output x, DataType dtype, absl::string_view name) {
  if (!x.valid()) return {};
  NameScope scope(x.graph(), name);
  const auto [in_low, in_high] = RangeOf(x.dtype());
  const auto [out_low, out_high] = RangeOf(dtype);
  Output value = x;
  if (in_low < out_low || in_high > out_high) {
    value = ClipByValue(value, std::max(in_low, out_low), std::min(in_high, out_high), "clamp");
  }
  return Cast(value, dtype, scope.name());
}

Output Bucketize(Output x, std::vector<float> boundaries, absl::string_view name) {
  return AddOp("Bucketize", {x}, {{"boundaries", std::move(boundaries)}}, name);
}

}  // namespace weir
