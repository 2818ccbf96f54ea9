#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/quantize/quantize_internal.h"

// Definitions of convolutions and products of quantized tensors, fused with what follows them:
// TensorFlow has them for graphs that Intel's tools have quantized.
namespace weir {

namespace {

// Inputs `first` and `first` + 1 are the ends of the range of the filter: scalars, or vectors with
// one element for each channel. Returns the shape of both.
absl::StatusOr<Shape> FilterRange(ShapeContext& c, int first) {
  WEIR_ASSIGN_OR_RETURN(const Shape min, c.WithRankAtMost(first, 1));
  WEIR_ASSIGN_OR_RETURN(const Shape max, c.WithRankAtMost(first + 1, 1));
  return min.MergeWith(max);
}

// Inputs: image, filter, perhaps a bias; the ranges of image and filter; for requantized results
// their range; perhaps a summand, and its range.
absl::Status FusedConvShape(ShapeContext& c) {
  const std::string& name = c.node().op_name();
  const bool depthwise = absl::StrContains(name, "Depthwise");
  const int ranges = absl::StrContains(name, "WithBias") ? 3 : 2;
  const char* const plain = depthwise ? "DepthwiseConv2dNative" : "Conv2D";
  WEIR_RETURN_IF_ERROR(BuiltinOps().Find(plain)->shape_fn()(c));
  if (ranges == 3) WEIR_RETURN_IF_ERROR(c.WithRank(2, 1).status());
  for (const int i : {ranges, ranges + 1}) WEIR_RETURN_IF_ERROR(c.WithRank(i, 0).status());
  WEIR_ASSIGN_OR_RETURN(const Shape filter, FilterRange(c, ranges + 2));
  const bool requantizes = absl::StrContains(name, "Requantize");
  for (int i = ranges + 4; requantizes && i < ranges + 6; ++i)
    WEIR_RETURN_IF_ERROR(c.WithRank(i, 0).status());
  // Padding that the list states replaces that of the shape function.
  if (!c.node().attr_or<std::vector<int64_t>>("padding_list", {}).empty())
    c.set_output(0, UnknownDims(4));
  for (const int i : {1, 2}) c.set_output(i, requantizes ? Shape() : filter);
  return absl::OkStatus();
}

absl::Status FusedMatMulShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(BuiltinOps().Find("MatMul")->shape_fn()(c));
  WEIR_RETURN_IF_ERROR(c.WithRank(2, 1).status());
  for (int i = 3; i < c.num_inputs(); ++i) WEIR_RETURN_IF_ERROR(c.WithRank(i, 0).status());
  for (int i = 1; i < c.num_outputs(); ++i) c.set_output(i, Shape());
  return absl::OkStatus();
}

constexpr char kTypes[] = ": {qint8, quint8, qint32, qint16, quint16}";

// The bias and what follows: the parts of a name, and whether they have attribute padding_list.
struct Fused {
  const char* name;
  const char* bias;     // its type; empty: none
  const char* summand;  // its type; empty: none
  const char* result;   // the default of out_type
  bool padding_list;
};

void AddConv(OpRegistry* ops, const Fused& f) {
  const bool requantizes = absl::StrContains(f.name, "Requantize");
  std::string in = "input: Tinput, filter: Tfilter";
  if (*f.bias != 0) absl::StrAppend(&in, ", bias: ", f.bias);
  absl::StrAppend(&in, ", min_input: float, max_input: float, min_filter: float, ",
                  "max_filter: float");
  if (requantizes) {
    absl::StrAppend(&in, ", min_freezed_output: float, max_freezed_output: float");
  }
  if (*f.summand != 0) absl::StrAppend(&in, ", summand: ", f.summand);
  const bool quantized_summand = std::string(f.summand) == "Tsummand";
  if (quantized_summand) absl::StrAppend(&in, ", min_summand: float, max_summand: float");
  OpSpec spec(f.name);
  spec.In(in)
      .Out("output: out_type, min_output: float, max_output: float")
      .Attr(absl::StrCat("Tinput", kTypes))
      .Attr(absl::StrCat("Tfilter", kTypes));
  if (std::string(f.bias) == "Tbias") spec.Attr("Tbias: {float, qint32}");
  if (quantized_summand) spec.Attr(absl::StrCat("Tsummand", kTypes));
  spec.Attr(absl::StrCat("out_type", kTypes, " = ", f.result))
      .Attr("strides: list(int)")
      .Attr("padding: {'SAME', 'VALID'}")
      .Attr("dilations: list(int) = [1, 1, 1, 1]");
  if (f.padding_list) spec.Attr("padding_list: list(int) = []");
  ops->Add(spec.InferShape(FusedConvShape)
               .Doc("Computes the convolution of quantized images and filters, and what else its "
                    "name says, in this order: adds a bias, adds a summand, clamps negative "
                    "numbers to 0, and requantizes."));
}

void AddMatMul(OpRegistry* ops, absl::string_view suffix, const char* bias, const char* result) {
  const std::string name = absl::StrCat("QuantizedMatMulWithBias", suffix);
  const bool requantizes = absl::StrContains(suffix, "quantize");
  OpSpec spec(name);
  spec.In(absl::StrCat("a: T1, b: T2, bias: ", bias,
                       ", min_a: float, max_a: float, min_b: float, max_b: float",
                       requantizes ? ", min_freezed_output: float, max_freezed_output: float" : ""))
      .Out(absl::StrCat("out: Toutput", *result != 0 ? ", min_out: float, max_out: float" : ""))
      .Attr(absl::StrCat("T1", kTypes))
      .Attr(absl::StrCat("T2", kTypes));
  if (std::string(bias) == "Tbias") spec.Attr("Tbias: {float, qint32}");
  spec.Attr(*result != 0 ? absl::StrCat("Toutput", kTypes, " = ", result)
                         : std::string("Toutput: {float}"))
      .Attr("transpose_a: bool = false")
      .Attr("transpose_b: bool = false")
      .Attr("input_quant_mode: {'MIN_FIRST', 'SCALED'} = 'MIN_FIRST'");
  ops->Add(spec.InferShape(FusedMatMulShape)
               .Doc("Computes the product of quantized matrices, and what else its name says, in "
                    "this order: adds a bias, clamps negative numbers to 0, and requantizes."));
}

}  // namespace

void AddQuantizedFusedOps(OpRegistry* ops) {
  constexpr char k32[] = "DT_QINT32", kU8[] = "DT_QUINT8", k8[] = "DT_QINT8";
  const Fused convolutions[] = {
      {"QuantizedConv2DPerChannel", "", "", k32, false},
      {"QuantizedConv2DAndRelu", "", "", k32, true},
      {"QuantizedConv2DAndReluAndRequantize", "", "", kU8, true},
      {"QuantizedConv2DAndRequantize", "", "", k8, true},
      {"QuantizedConv2DWithBias", "float", "", k32, true},
      {"QuantizedConv2DWithBiasAndRelu", "float", "", k32, true},
      {"QuantizedConv2DWithBiasAndReluAndRequantize", "Tbias", "", kU8, true},
      {"QuantizedConv2DWithBiasAndRequantize", "Tbias", "", k8, true},
      {"QuantizedConv2DWithBiasSignedSumAndReluAndRequantize", "Tbias", "Tsummand", kU8, true},
      {"QuantizedConv2DWithBiasSumAndRelu", "float", "float", k32, true},
      {"QuantizedConv2DWithBiasSumAndReluAndRequantize", "Tbias", "Tsummand", kU8, true},
      {"QuantizedDepthwiseConv2D", "", "", k32, false},
      {"QuantizedDepthwiseConv2DWithBias", "float", "", k32, false},
      {"QuantizedDepthwiseConv2DWithBiasAndRelu", "float", "", k32, true},
      {"QuantizedDepthwiseConv2DWithBiasAndReluAndRequantize", "Tbias", "", kU8, true},
  };
  for (const Fused& f : convolutions) AddConv(ops, f);
  AddMatMul(ops, "", "Tbias", k32);
  AddMatMul(ops, "AndDequantize", "Tbias", "");
  AddMatMul(ops, "AndRelu", "float", k32);
  AddMatMul(ops, "AndReluAndRequantize", "Tbias", kU8);
  AddMatMul(ops, "AndRequantize", "Tbias", kU8);
}

}  // namespace weir
