#include "weir/ops/quantize/quantize.h"

#include "weir/core/graph/gradient.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/op_costs.h"
#include "weir/ops/lib/registry.h"

namespace weir {

namespace {

Attrs FakeQuantAttrs(const FakeQuantOptions& o) {
  return {{"num_bits", o.num_bits}, {"narrow_range", o.narrow_range}};
}

// ---- shape functions

// Returns the shape of a range: a vector with one element per index of `axis`, or a scalar without
// an axis.
absl::StatusOr<Shape> RangeShape(ShapeContext& c, int64_t axis, int input, int first_range) {
  if (axis < -1) return InvalidArgument("axis should be at least -1, got ", axis);
  Shape range;
  if (axis >= 0) {
    if (axis >= Shape::kMaxRank) return InvalidArgument("axis is too big: ", axis);
    WEIR_ASSIGN_OR_RETURN(const Shape x, c.WithRankAtLeast(input, static_cast<int>(axis) + 1));
    range = Shape({x.has_rank() ? x.dim(static_cast<int>(axis)) : Shape::kUnknown});
  }
  for (int k = first_range; k < first_range + 2; ++k) {
    WEIR_ASSIGN_OR_RETURN(const Shape given, c.WithRank(k, range.rank()));
    WEIR_ASSIGN_OR_RETURN(range, range.MergeWith(given));
  }
  return range;
}

absl::Status QuantizeShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(Shape range, RangeShape(c, c.attr<int64_t>("axis"), 0, 1));
  // The range of a single channel is returned as a scalar.
  if (range.rank() == 1 && (range.dim(0) == 1 || range.dim(0) < 0)) range = Shape::UnknownRank();
  c.set_output(0, c.input(0));
  c.set_output(1, range);
  c.set_output(2, range);
  return absl::OkStatus();
}

absl::Status DequantizeShape(ShapeContext& c) {
  c.set_output(0, c.input(0));
  return RangeShape(c, c.attr<int64_t>("axis"), 0, 1).status();
}

absl::Status QuantizeAndDequantizeShape(ShapeContext& c) {
  c.set_output(0, c.input(0));
  return RangeShape(c, c.attr<int64_t>("axis"), 0, 1).status();
}

absl::Status QuantizeAndDequantizeV3Shape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(3, 0).status());
  return QuantizeAndDequantizeShape(c);
}

absl::Status QuantizeAndDequantizeGradShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape range, RangeShape(c, c.attr<int64_t>("axis"), 1, 2));
  WEIR_ASSIGN_OR_RETURN(const Shape x, c.input(0).MergeWith(c.input(1)));
  c.set_output(0, x);
  c.set_output(1, range);
  c.set_output(2, range);
  return absl::OkStatus();
}

// All inputs from 1 on are scalars. The first output has the shape of the first input; the last two
// outputs are the ends of a range.
absl::Status RequantizeShape(ShapeContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i) WEIR_RETURN_IF_ERROR(c.WithRank(i, 0).status());
  const int n = c.num_outputs();
  if (n == 3) c.set_output(0, c.input(0));
  c.set_output(n - 2, Shape());
  c.set_output(n - 1, Shape());
  return absl::OkStatus();
}

absl::Status FakeQuantArgsGradShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape x, c.input(0).MergeWith(c.input(1)));
  c.set_output(0, x);
  return absl::OkStatus();
}

// `first` is the index of the quantized input. The ends of the range follow it.
absl::StatusOr<Shape> FakeQuantRange(ShapeContext& c, int first, bool per_channel) {
  const Shape& x = c.input(first);
  if (per_channel) WEIR_RETURN_IF_ERROR(c.WithRankAtLeast(first, 1).status());
  Shape range;
  if (per_channel) range = Shape({x.has_rank() ? x.dim(-1) : Shape::kUnknown});
  for (int k = 1; k < 3; ++k) {
    WEIR_ASSIGN_OR_RETURN(const Shape given, c.WithRank(first + k, range.rank()));
    WEIR_ASSIGN_OR_RETURN(range, range.MergeWith(given));
  }
  return range;
}

template <bool kPerChannel>
absl::Status FakeQuantShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(FakeQuantRange(c, 0, kPerChannel).status());
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

template <bool kPerChannel>
absl::Status FakeQuantGradShape(ShapeContext& c) {
  if (kPerChannel) {
    WEIR_RETURN_IF_ERROR(c.WithRankAtLeast(0, 1).status());
    WEIR_RETURN_IF_ERROR(c.WithRankAtMost(0, 4).status());
  }
  WEIR_ASSIGN_OR_RETURN(const Shape range, FakeQuantRange(c, 1, kPerChannel));
  WEIR_ASSIGN_OR_RETURN(const Shape x, c.input(0).MergeWith(c.input(1)));
  c.set_output(0, x);
  c.set_output(1, range);
  c.set_output(2, range);
  return absl::OkStatus();
}

// ---- gradients

// Straight-through estimator: rounding counts as the identity.
Grads StraightThroughGradient(GradContext& g) { return {g.dy(0)}; }

Grads QuantizeAndDequantizeV4Gradient(GradContext& g) {
  const Outputs r =
      AllOutputs(AddNode("QuantizeAndDequantizeV4Grad", {g.dy(0), g.x(0), g.x(1), g.x(2)},
                         {{"axis", g.attr<int64_t>("axis")}}),
                 3);
  return {r[0], r[1], r[2]};
}

// Linear in the incoming gradient, with the same mask.
Grads QuantizeAndDequantizeV4GradGradient(GradContext& g) {
  return {AddOp("QuantizeAndDequantizeV4Grad", {g.dy(0), g.x(1), g.x(2), g.x(3)},
                {{"axis", g.attr<int64_t>("axis")}})};
}

Grads FakeQuantArgsGradient(GradContext& g) {
  return {AddOp("FakeQuantWithMinMaxArgsGradient", {g.dy(0), g.x(0)},
                {{"min", g.attr<float>("min")},
                 {"max", g.attr<float>("max")},
                 {"num_bits", g.attr<int64_t>("num_bits")},
                 {"narrow_range", g.attr<bool>("narrow_range")}})};
}

Grads FakeQuantVarsGradient(GradContext& g) {
  const std::string op = absl::StrCat(g.node().op_name(), "Gradient");
  const Outputs r = AllOutputs(AddNode(op, {g.dy(0), g.x(0), g.x(1), g.x(2)},
                                       {{"num_bits", g.attr<int64_t>("num_bits")},
                                        {"narrow_range", g.attr<bool>("narrow_range")}}),
                               3);
  return {r[0], r[1], r[2]};
}

// ---- op definitions

constexpr char kQuantized[] = "T: {qint8, quint8, qint32, qint16, quint16}";
constexpr char kInputTypes[] = "Tinput: {qint8, quint8, qint32, qint16, quint16}";
constexpr char kOutTypes[] = "out_type: {qint8, quint8, qint32, qint16, quint16}";
constexpr char kFloats[] = "T: {bfloat16, half, float, double}";
constexpr char kMode[] = "mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = 'MIN_COMBINED'";
constexpr char kRoundMode[] = "round_mode: {'HALF_TO_EVEN', 'HALF_UP'} = 'HALF_TO_EVEN'";

void AddQuantized(OpRegistry* ops) {
  ops->Add(OpSpec("QuantizeV2")
               .In("input: float, min_range: float, max_range: float")
               .Out("output: T, output_min: float, output_max: float")
               .Attr(kQuantized)
               .Attr(kMode)
               .Attr("round_mode: {'HALF_AWAY_FROM_ZERO', 'HALF_TO_EVEN'} = 'HALF_AWAY_FROM_ZERO'")
               .Attr("narrow_range: bool = false")
               .Attr("axis: int = -1")
               .Attr("ensure_minimum_range: float = 0.01")
               .InferShape(QuantizeShape)
               .Doc("Quantizes numbers of a range to the integers of T. Also returns the range "
                    "that was used, which contains 0."));
  ops->Add(OpSpec("Dequantize")
               .In("input: T, min_range: float, max_range: float")
               .Out("output: dtype")
               .Attr(kQuantized)
               .Attr(kMode)
               .Attr("narrow_range: bool = false")
               .Attr("axis: int = -1")
               .Attr("dtype: {bfloat16, float} = DT_FLOAT")
               .Flops(ElementwiseFlops)
               .InferShape(DequantizeShape)
               .Doc("Converts quantized integers back to the numbers of their range."));
  ops->Add(OpSpec("QuantizeDownAndShrinkRange")
               .In("input: Tinput, input_min: float, input_max: float")
               .Out("output: out_type, output_min: float, output_max: float")
               .Attr(kInputTypes)
               .Attr(kOutTypes)
               .InferShape(RequantizeShape)
               .Doc("Requantizes to the range that the numbers occupy."));
  ops->Add(OpSpec("Requantize")
               .In("input: Tinput, input_min: float, input_max: float, requested_output_min: "
                   "float, requested_output_max: float")
               .Out("output: out_type, output_min: float, output_max: float")
               .Attr(kInputTypes)
               .Attr(kOutTypes)
               .InferShape(RequantizeShape)
               .Doc("Converts quantized numbers to integers of another type and range."));
  ops->Add(OpSpec("RequantizationRange")
               .In("input: Tinput, input_min: float, input_max: float")
               .Out("output_min: float, output_max: float")
               .Attr(kInputTypes)
               .InferShape(RequantizeShape)
               .Doc("Computes the range that quantized numbers occupy."));
}

OpSpec RoundSpec(const char* name, const char* inputs) {
  OpSpec spec(name);
  spec.In(inputs).Out("output: T").Attr("signed_input: bool = true");
  return spec;
}

void AddQuantizeAndDequantize(OpRegistry* ops) {
  ops->Add(RoundSpec("QuantizeAndDequantize", "input: T")
               .Attr("num_bits: int = 8")
               .Attr("range_given: bool = false")
               .Attr("input_min: float = 0")
               .Attr("input_max: float = 0")
               .Attr(kFloats)
               .Deprecated(22, "QuantizeAndDequantizeV2 replaces it")
               .InferShape(SameShape)
               .Gradient(StraightThroughGradient)
               .Doc("Computes QuantizeAndDequantizeV2 with the range given by attributes."));
  for (const bool v4 : {false, true}) {
    ops->Add(RoundSpec(v4 ? "QuantizeAndDequantizeV4" : "QuantizeAndDequantizeV2",
                       "input: T, input_min: T, input_max: T")
                 .Attr("num_bits: int = 8")
                 .Attr("range_given: bool = false")
                 .Attr(kFloats)
                 .Attr(kRoundMode)
                 .Attr("narrow_range: bool = false")
                 .Attr("axis: int = -1")
                 .InferShape(QuantizeAndDequantizeShape)
                 .Gradient(v4 ? QuantizeAndDequantizeV4Gradient : StraightThroughGradient)
                 .Doc(v4 ? "Computes QuantizeAndDequantizeV2 with a gradient that is zero outside "
                           "the range."
                         : "Rounds numbers as if they were quantized to num_bits. The range is "
                           "given, or that of the input."));
  }
  ops->Add(
      RoundSpec("QuantizeAndDequantizeV3", "input: T, input_min: T, input_max: T, num_bits: int32")
          .Attr("range_given: bool = true")
          .Attr(kFloats)
          .Attr("narrow_range: bool = false")
          .Attr("axis: int = -1")
          .InferShape(QuantizeAndDequantizeV3Shape)
          .Gradient(StraightThroughGradient)
          .Doc("Computes QuantizeAndDequantizeV2 with the number of bits as an input."));
  ops->Add(OpSpec("QuantizeAndDequantizeV4Grad")
               .In("gradients: T, input: T, input_min: T, input_max: T")
               .Out("input_backprop: T, input_min_backprop: T, input_max_backprop: T")
               .Attr(kFloats)
               .Attr("axis: int = -1")
               .InferShape(QuantizeAndDequantizeGradShape)
               .Gradient(QuantizeAndDequantizeV4GradGradient)
               .Doc("Returns the gradients where the input is in the range, and zero gradients for "
                    "the range."));
}

void AddFakeQuant(OpRegistry* ops) {
  ops->Add(OpSpec("FakeQuantWithMinMaxArgs")
               .In("inputs: float")
               .Out("outputs: float")
               .Attr("min: float = -6")
               .Attr("max: float = 6")
               .Attr("num_bits: int = 8")
               .Attr("narrow_range: bool = false")
               .InferShape(SameShape)
               .Gradient(FakeQuantArgsGradient)
               .Doc("Clamps numbers to a range and rounds them to one of 2^num_bits values."));
  ops->Add(OpSpec("FakeQuantWithMinMaxArgsGradient")
               .In("gradients: float, inputs: float")
               .Out("backprops: float")
               .Attr("min: float = -6")
               .Attr("max: float = 6")
               .Attr("num_bits: int = 8")
               .Attr("narrow_range: bool = false")
               .InferShape(FakeQuantArgsGradShape)
               .NotDifferentiable()
               .Doc("Returns the gradients where the inputs are in the range, else 0."));
  for (const bool per_channel : {false, true}) {
    const std::string name =
        per_channel ? "FakeQuantWithMinMaxVarsPerChannel" : "FakeQuantWithMinMaxVars";
    ops->Add(
        OpSpec(name)
            .In("inputs: float, min: float, max: float")
            .Out("outputs: float")
            .Attr("num_bits: int = 8")
            .Attr("narrow_range: bool = false")
            .InferShape(per_channel ? FakeQuantShape<true> : FakeQuantShape<false>)
            .Gradient(FakeQuantVarsGradient)
            .Doc(absl::StrCat("Computes FakeQuantWithMinMaxArgs with the range given by inputs",
                              per_channel ? ", one range per index of the last dimension." : ".")));
    ops->Add(
        OpSpec(name + "Gradient")
            .In("gradients: float, inputs: float, min: float, max: float")
            .Out("backprops_wrt_input: float, backprop_wrt_min: float, backprop_wrt_max: float")
            .Attr("num_bits: int = 8")
            .Attr("narrow_range: bool = false")
            .InferShape(per_channel ? FakeQuantGradShape<true> : FakeQuantGradShape<false>)
            .NotDifferentiable()
            .Doc("Returns the gradients where the inputs are in the range. The gradients of the "
                 "inputs beyond an end of the range are summed to the gradient of that end."));
  }
}

}  // namespace

QuantizedTensor QuantizeV2(Output input, Output min_range, Output max_range, DataType type,
                           const QuantizeOptions& o, absl::string_view name) {
  const Outputs r = AllOutputs(AddNode("QuantizeV2", {input, min_range, max_range},
                                       {{"T", type},
                                        {"mode", o.mode},
                                        {"round_mode", o.round_mode},
                                        {"narrow_range", o.narrow_range},
                                        {"axis", o.axis},
                                        {"ensure_minimum_range", o.ensure_minimum_range}},
                                       name),
                               3);
  return {r[0], r[1], r[2]};
}

Output Dequantize(const QuantizedTensor& input, const QuantizeOptions& o, absl::string_view name) {
  return AddOp("Dequantize", {input.output, input.min, input.max},
               {{"mode", o.mode}, {"narrow_range", o.narrow_range}, {"axis", o.axis}}, name);
}

Output FakeQuantWithMinMaxArgs(Output inputs, float min, float max, const FakeQuantOptions& o,
                               absl::string_view name) {
  Attrs attrs = FakeQuantAttrs(o);
  attrs.insert(attrs.end(), {{"min", min}, {"max", max}});
  return AddOp("FakeQuantWithMinMaxArgs", {inputs}, attrs, name);
}
Output FakeQuantWithMinMaxVars(Output inputs, Output min, Output max, const FakeQuantOptions& o,
                               absl::string_view name) {
  return AddOp("FakeQuantWithMinMaxVars", {inputs, min, max}, FakeQuantAttrs(o), name);
}
Output FakeQuantWithMinMaxVarsPerChannel(Output inputs, Output min, Output max,
                                         const FakeQuantOptions& o, absl::string_view name) {
  return AddOp("FakeQuantWithMinMaxVarsPerChannel", {inputs, min, max}, FakeQuantAttrs(o), name);
}

void AddQuantizeOps(OpRegistry* ops) {
  AddQuantized(ops);
  AddQuantizeAndDequantize(ops);
  AddFakeQuant(ops);
}

}  // namespace weir
