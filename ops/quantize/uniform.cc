#include "weir/ops/quantize/uniform.h"

#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/quantize/quantize_internal.h"
#include "weir/ops/quantize/uniform_convolution.h"

// Ops on uniformly quantized tensors.
namespace weir {

namespace {

// ---- shape functions

// Checks that the scales and zero points at inputs `first` and `first` + 1 are scalars, or have one
// element for each of `channels`.
absl::Status CheckChannels(ShapeContext& c, int first, int64_t channels) {
  WEIR_ASSIGN_OR_RETURN(const Shape scales, c.WithRankAtMost(first, 1));
  WEIR_ASSIGN_OR_RETURN(const Shape zero_points, c.WithRankAtMost(first + 1, 1));
  if (!scales.has_rank() || !zero_points.has_rank()) return absl::OkStatus();
  if (scales.rank() != zero_points.rank())
    return InvalidArgument("scales and zero_points must have same rank.");
  if (scales.rank() == 0) return absl::OkStatus();
  WEIR_RETURN_IF_ERROR(MergeDims(scales.dim(0), channels).status());
  return MergeDims(zero_points.dim(0), channels).status();
}

template <bool kHybrid>
absl::Status DotShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape lhs, c.WithRank(0, 2));
  WEIR_ASSIGN_OR_RETURN(const Shape rhs, c.WithRank(1, 2));
  WEIR_RETURN_IF_ERROR(MergeDims(lhs.dim(1), rhs.dim(0)).status());
  if (!kHybrid) {
    WEIR_RETURN_IF_ERROR(c.WithRank(2, 0).status());
    WEIR_RETURN_IF_ERROR(c.WithRank(3, 0).status());
    WEIR_RETURN_IF_ERROR(CheckChannels(c, 6, rhs.dim(1)));
  }
  WEIR_RETURN_IF_ERROR(CheckChannels(c, kHybrid ? 2 : 4, rhs.dim(1)));
  c.set_output(0, Shape({lhs.dim(0), rhs.dim(1)}));
  return absl::OkStatus();
}

template <bool kHybrid>
absl::Status ConvolutionShape(ShapeContext& c) {
  const Shape &lhs = c.input(0), &rhs = c.input(1);
  WEIR_ASSIGN_OR_RETURN(UniformConvolution conv, UniformConvolution::Read(c.node()));
  if (!kHybrid) {
    WEIR_RETURN_IF_ERROR(c.WithRank(2, 0).status());
    WEIR_RETURN_IF_ERROR(c.WithRank(3, 0).status());
  }
  if (lhs.has_rank() && rhs.has_rank() && lhs.rank() != rhs.rank()) {
    return InvalidArgument("lhs and rhs must have same rank. Given lhs and rhs of shapes: ",
                           lhs.ToString(), rhs.ToString());
  }
  if (!lhs.IsFullyDefined() || !rhs.IsFullyDefined()) {
    c.set_output(0, UnknownDims(lhs.has_rank() ? lhs.rank() : rhs.rank()));
    return absl::OkStatus();
  }
  WEIR_RETURN_IF_ERROR(conv.Complete(lhs, rhs));
  WEIR_ASSIGN_OR_RETURN(Shape out, conv.OutputShape(lhs, rhs));
  const int64_t channels = out.dim(static_cast<int>(conv.output.feature));
  WEIR_RETURN_IF_ERROR(CheckChannels(c, kHybrid ? 2 : 4, channels));
  if (!kHybrid) WEIR_RETURN_IF_ERROR(CheckChannels(c, 6, channels));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// ---- op definitions

// Adds the attributes of a quantization.
void AddRange(OpSpec* spec, absl::string_view prefix) {
  spec->Attr(absl::StrCat(prefix, "quantization_axis: int = -1"))
      .Attr(absl::StrCat(prefix, "quantization_min_val: int"))
      .Attr(absl::StrCat(prefix, "quantization_max_val: int"));
}

OpSpec WithRanges(OpSpec spec, std::initializer_list<absl::string_view> prefixes) {
  for (const absl::string_view prefix : prefixes) AddRange(&spec, prefix);
  return spec;
}

OpSpec Convolution(OpSpec spec) {
  spec.Attr("window_strides: list(int) = []")
      .Attr("padding: string")
      .Attr("explicit_padding: list(int) = []")
      .Attr("lhs_dilation: list(int) = []")
      .Attr("rhs_dilation: list(int) = []")
      .Attr("batch_group_count: int = 1")
      .Attr("feature_group_count: int = 1")
      .Attr("dimension_numbers: string = ''");
  return spec;
}

// The scales and zero points of both operands and the result.
constexpr char kThree[] =
    "lhs_scales: float, lhs_zero_points: int32, rhs_scales: float, rhs_zero_points: int32, "
    "output_scales: float, output_zero_points: int32";
constexpr char kHybrid[] = "lhs: Tlhs, rhs: Trhs, rhs_scales: float, rhs_zero_points: int32";

OpSpec Product(absl::string_view name) {
  return OpSpec(name)
      .In(absl::StrCat("lhs: Tin, rhs: Tin, ", kThree))
      .Out("output: Tout")
      .Attr("Tin: {qint8}")
      .Attr("Tout: {qint32}");
}
OpSpec HybridProduct(absl::string_view name) {
  return OpSpec(name)
      .In(kHybrid)
      .Out("output: Tout")
      .Attr("Tlhs: {float}")
      .Attr("Trhs: {qint8}")
      .Attr("Tout: {float}");
}

}  // namespace

void AddUniformOps(OpRegistry* ops) {
  ops->Add(WithRanges(OpSpec("UniformQuantize")
                          .In("input: Tin, scales: float, zero_points: int32")
                          .Out("output: Tout")
                          .Attr("Tin: {float}")
                          .Attr("Tout: {qint8, quint8, qint32}"),
                      {""})
               .InferShape(SameShape)
               .Doc("Quantizes floats: floor(input / scale + 0.5) + zero point, clamped."));
  ops->Add(WithRanges(OpSpec("UniformDequantize")
                          .In("input: Tin, scales: float, zero_points: int32")
                          .Out("output: Tout")
                          .Attr("Tin: {qint8, quint8, qint32}")
                          .Attr("Tout: {float}"),
                      {""})
               .InferShape(SameShape)
               .Doc("Converts uniformly quantized integers to floats: (input - zero point) * "
                    "scale."));
  ops->Add(WithRanges(OpSpec("UniformRequantize")
                          .In("input: Tin, input_scales: float, input_zero_points: int32, "
                              "output_scales: float, output_zero_points: int32")
                          .Out("output: Tout")
                          .Attr("Tin: {qint8, qint32}")
                          .Attr("Tout: {qint8, qint32}"),
                      {"input_", "output_"})
               .InferShape(SameShape)
               .Doc("Converts uniformly quantized integers to other scales and zero points."));
  ops->Add(WithRanges(OpSpec("UniformQuantizedAdd")
                          .In(absl::StrCat("lhs: T, rhs: T, ", kThree))
                          .Out("output: T"),
                      {"lhs_", "rhs_", "output_"})
               .Attr("T: {qint32}")
               .InferShape(BroadcastShape)
               .Doc("Adds uniformly quantized tensors, which broadcast."));
  ops->Add(WithRanges(OpSpec("UniformQuantizedClipByValue")
                          .In("operand: T, min: T, max: T, scales: float, zero_points: int32")
                          .Out("output: T")
                          .Attr("T: {qint32}"),
                      {""})
               .InferShape(SameShape)
               .Doc("Clamps uniformly quantized integers."));
  ops->Add(WithRanges(Product("UniformQuantizedDot"), {"lhs_", "rhs_", "output_"})
               .InferShape(DotShape<false>)
               .Doc("Multiplies uniformly quantized matrices."));
  ops->Add(WithRanges(HybridProduct("UniformQuantizedDotHybrid"), {"rhs_"})
               .InferShape(DotShape<true>)
               .Doc("Quantizes the rows of a float matrix and multiplies it by a uniformly "
                    "quantized matrix."));
  ops->Add(
      WithRanges(Convolution(Product("UniformQuantizedConvolution")), {"lhs_", "rhs_", "output_"})
          .InferShape(ConvolutionShape<false>)
          .Doc("Computes the convolution of uniformly quantized tensors."));
  ops->Add(WithRanges(Convolution(HybridProduct("UniformQuantizedConvolutionHybrid")), {"rhs_"})
               .InferShape(ConvolutionShape<true>)
               .Doc("Quantizes the images of a float batch and computes the convolution with a "
                    "uniformly quantized kernel."));
}

// ---- builders

namespace {

// The names of the attributes of a quantization.
struct RangeNames {
  const char *axis, *min, *max;
};
constexpr RangeNames kOnly = {"quantization_axis", "quantization_min_val", "quantization_max_val"};
constexpr RangeNames kInput = {"input_quantization_axis", "input_quantization_min_val",
                               "input_quantization_max_val"};
constexpr RangeNames kLhs = {"lhs_quantization_axis", "lhs_quantization_min_val",
                             "lhs_quantization_max_val"};
constexpr RangeNames kRhs = {"rhs_quantization_axis", "rhs_quantization_min_val",
                             "rhs_quantization_max_val"};
constexpr RangeNames kOutput = {"output_quantization_axis", "output_quantization_min_val",
                                "output_quantization_max_val"};

void AddRange(const UniformQuantization& q, const RangeNames& names, Attrs* attrs) {
  attrs->insert(attrs->end(),
                {{names.axis, q.axis}, {names.min, q.min_val}, {names.max, q.max_val}});
}
Attrs RangeAttrs(const UniformQuantization& q, const RangeNames& names) {
  Attrs attrs;
  AddRange(q, names, &attrs);
  return attrs;
}
Attrs RangeAttrs(const UniformQuantization& lhs, const UniformQuantization& rhs,
                 const UniformQuantization& output) {
  Attrs attrs = RangeAttrs(lhs, kLhs);
  AddRange(rhs, kRhs, &attrs);
  AddRange(output, kOutput, &attrs);
  return attrs;
}

void AddOptions(const UniformConvolutionOptions& o, Attrs* attrs) {
  attrs->insert(attrs->end(), {{"window_strides", o.window_strides},
                               {"padding", o.padding},
                               {"explicit_padding", o.explicit_padding},
                               {"lhs_dilation", o.lhs_dilation},
                               {"rhs_dilation", o.rhs_dilation},
                               {"batch_group_count", o.batch_group_count},
                               {"feature_group_count", o.feature_group_count},
                               {"dimension_numbers", o.dimension_numbers}});
}

}  // namespace

Output UniformQuantize(Output input, const UniformQuantization& q, DataType type,
                       absl::string_view name) {
  Attrs attrs = RangeAttrs(q, kOnly);
  attrs.emplace_back("Tout", type);
  return AddOp("UniformQuantize", {input, q.scales, q.zero_points}, attrs, name);
}
Output UniformDequantize(Output input, const UniformQuantization& q, absl::string_view name) {
  Attrs attrs = RangeAttrs(q, kOnly);
  attrs.emplace_back("Tout", DT_FLOAT);
  return AddOp("UniformDequantize", {input, q.scales, q.zero_points}, attrs, name);
}
Output UniformRequantize(Output input, const UniformQuantization& from,
                         const UniformQuantization& to, absl::string_view name) {
  Attrs attrs = RangeAttrs(from, kInput);
  AddRange(to, kOutput, &attrs);
  attrs.emplace_back("Tout", DT_QINT8);
  return AddOp("UniformRequantize",
               {input, from.scales, from.zero_points, to.scales, to.zero_points}, attrs, name);
}

Output UniformQuantizedAdd(Output lhs, const UniformQuantization& l, Output rhs,
                           const UniformQuantization& r, const UniformQuantization& o,
                           absl::string_view name) {
  return AddOp(
      "UniformQuantizedAdd",
      {lhs, rhs, l.scales, l.zero_points, r.scales, r.zero_points, o.scales, o.zero_points},
      RangeAttrs(l, r, o), name);
}
Output UniformQuantizedClipByValue(Output operand, Output min, Output max,
                                   const UniformQuantization& q, absl::string_view name) {
  return AddOp("UniformQuantizedClipByValue", {operand, min, max, q.scales, q.zero_points},
               RangeAttrs(q, kOnly), name);
}

Output UniformQuantizedDot(Output lhs, const UniformQuantization& l, Output rhs,
                           const UniformQuantization& r, const UniformQuantization& o,
                           absl::string_view name) {
  Attrs attrs = RangeAttrs(l, r, o);
  attrs.emplace_back("Tout", DT_QINT32);
  return AddOp(
      "UniformQuantizedDot",
      {lhs, rhs, l.scales, l.zero_points, r.scales, r.zero_points, o.scales, o.zero_points}, attrs,
      name);
}
Output UniformQuantizedDotHybrid(Output lhs, Output rhs, const UniformQuantization& r,
                                 absl::string_view name) {
  Attrs attrs = RangeAttrs(r, kRhs);
  attrs.emplace_back("Tout", DT_FLOAT);
  return AddOp("UniformQuantizedDotHybrid", {lhs, rhs, r.scales, r.zero_points}, attrs, name);
}

Output UniformQuantizedConvolution(Output lhs, const UniformQuantization& l, Output rhs,
                                   const UniformQuantization& r, const UniformQuantization& o,
                                   const UniformConvolutionOptions& options,
                                   absl::string_view name) {
  Attrs attrs = RangeAttrs(l, r, o);
  attrs.emplace_back("Tout", DT_QINT32);
  AddOptions(options, &attrs);
  return AddOp(
      "UniformQuantizedConvolution",
      {lhs, rhs, l.scales, l.zero_points, r.scales, r.zero_points, o.scales, o.zero_points}, attrs,
      name);
}
Output UniformQuantizedConvolutionHybrid(Output lhs, Output rhs, const UniformQuantization& r,
                                         const UniformConvolutionOptions& options,
                                         absl::string_view name) {
  Attrs attrs = RangeAttrs(r, kRhs);
  attrs.emplace_back("Tout", DT_FLOAT);
  AddOptions(options, &attrs);
  return AddOp("UniformQuantizedConvolutionHybrid", {lhs, rhs, r.scales, r.zero_points}, attrs,
               name);
}

}  // namespace weir
