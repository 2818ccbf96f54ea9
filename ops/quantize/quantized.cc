#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/ranked_internal.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/quantize/quantize.h"
#include "weir/ops/quantize/quantize_internal.h"

// Definitions of ops on quantized tensors. Each tensor is accompanied by the ends of its range.
namespace weir {

namespace {

// ---- shape functions

// Checks that the inputs from `first_range` on are ends of ranges, and sets all outputs but the
// first to scalars, which are ends of ranges.
absl::Status RangesAreScalars(ShapeContext& c, int first_range) {
  for (int i = first_range; i < c.num_inputs(); ++i)
    WEIR_RETURN_IF_ERROR(c.WithRank(i, 0).status());
  for (int i = 1; i < c.num_outputs(); ++i) c.set_output(i, Shape());
  return absl::OkStatus();
}

// The shape function of the op of that name on unquantized numbers, whose inputs come first.
ShapeFn ShapeOf(const char* op, int inputs) {
  return [=](ShapeContext& c) -> absl::Status {
    WEIR_RETURN_IF_ERROR(BuiltinOps().Find(op)->shape_fn()(c));
    return RangesAreScalars(c, inputs);
  };
}

absl::Status UnaryShape(ShapeContext& c) {
  c.set_output(0, c.input(0));
  return RangesAreScalars(c, 1);
}

absl::Status BinaryShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(BroadcastShape(c));
  return RangesAreScalars(c, 2);
}

template <bool kAxisFirst>
absl::Status ConcatShape(ShapeContext& c) {
  const int n = (c.num_inputs() - 1) / 3, first = kAxisFirst ? 1 : 0;
  WEIR_RETURN_IF_ERROR(ConcatenatedShape(c, first, first + n, kAxisFirst ? 0 : n));
  return RangesAreScalars(c, n + 1);
}

// The ends of the range may be vectors of one element.
absl::Status ReshapeShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(BuiltinOps().Find("Reshape")->shape_fn()(c));
  return RangesAreScalars(c, c.num_inputs());
}

absl::Status BatchNormShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(Shape x, c.WithRank(0, 4));
  int64_t depth = x.dim(3);
  for (int i = 3; i < c.num_inputs(); i += 3) {
    WEIR_ASSIGN_OR_RETURN(const Shape vector, c.WithRank(i, 1));
    WEIR_ASSIGN_OR_RETURN(depth, MergeDims(depth, vector.dim(0)));
  }
  x.set_dim(3, depth);
  c.set_output(0, x);
  return RangesAreScalars(c, c.num_inputs());
}

absl::Status InstanceNormShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(0, 4).status());
  return UnaryShape(c);
}

// Per-channel ranges: vectors at inputs 1 and 2.
absl::Status PerChannelShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(0, 4).status());
  for (const int i : {1, 2}) WEIR_RETURN_IF_ERROR(c.WithRankAtMost(i, 1).status());
  for (int i = 3; i < c.num_inputs(); ++i) WEIR_RETURN_IF_ERROR(c.WithRank(i, 0).status());
  c.set_all_outputs(Shape());
  if (c.num_outputs() == 3) c.set_output(0, c.input(0));
  return absl::OkStatus();
}

// ---- op definitions

constexpr char kTypes[] = ": {qint8, quint8, qint32, qint16, quint16}";

OpSpec Spec(const char* name, const std::string& in, const std::string& out,
            const std::vector<std::string>& types, ShapeFn shape, const char* doc) {
  OpSpec spec(name);
  spec.In(in).Out(out);
  for (const std::string& type : types) {
    const size_t end = type.find(' ');  // "T1", or "Toutput = DT_QINT32"
    spec.Attr(absl::StrCat(type.substr(0, end), kTypes,
                           end == std::string::npos ? "" : type.substr(end)));
  }
  spec.InferShape(std::move(shape)).Doc(doc);
  return spec;
}

std::string Ends(const std::string& a) {
  return absl::StrCat("min_", a, ": float, max_", a, ": float");
}
std::string Ends(const std::string& a, const std::string& b) {
  return absl::StrCat(Ends(a), ", ", Ends(b));
}

void AddArithmetic(OpRegistry* ops) {
  const std::vector<std::string> types = {"T1", "T2", "Toutput = DT_QINT32"};
  ops->Add(Spec("QuantizedMatMul", "a: T1, b: T2, " + Ends("a", "b"),
                "out: Toutput, " + Ends("out"), types, ShapeOf("MatMul", 2),
                "Computes MatMul of quantized matrices. The range of the result contains every "
                "possible sum.")
               .Attr("transpose_a: bool = false")
               .Attr("transpose_b: bool = false")
               .Attr(absl::StrCat("Tactivation", kTypes, " = DT_QUINT8")));
  for (const bool add : {true, false}) {
    ops->Add(Spec(add ? "QuantizedAdd" : "QuantizedMul", "x: T1, y: T2, " + Ends("x", "y"),
                  "z: Toutput, " + Ends("z"), types, BinaryShape,
                  add ? "Computes x + y of quantized tensors, which broadcast."
                      : "Computes x * y of quantized tensors, which broadcast."));
  }
  ops->Add(Spec("QuantizedConv2D", "input: Tinput, filter: Tfilter, " + Ends("input", "filter"),
                "output: out_type, " + Ends("output"),
                {"Tinput", "Tfilter", "out_type = DT_QINT32"}, ShapeOf("Conv2D", 2),
                "Computes Conv2D of quantized images and filters. Padding elements represent 0.")
               .Attr("strides: list(int)")
               .Attr("padding: {'SAME', 'VALID'}")
               .Attr("dilations: list(int) = [1, 1, 1, 1]"));
  ops->Add(Spec("QuantizedBiasAdd", "input: T1, bias: T2, " + Ends("input", "bias"),
                "output: out_type, " + Ends("out"), {"T1", "T2", "out_type"}, ShapeOf("BiasAdd", 2),
                "Computes BiasAdd of quantized tensors along the last dimension."));
  for (const std::string limit : {"", "6", "X"}) {
    const std::string value = limit == "X" ? "max_value: float, " : "";
    ops->Add(Spec(absl::StrCat("QuantizedRelu", limit).c_str(),
                  absl::StrCat("features: Tinput, ", value, Ends("features")),
                  "activations: out_type, " + Ends("activations"),
                  {"Tinput", "out_type = DT_QUINT8"}, UnaryShape,
                  limit.empty() ? "Computes Relu of quantized numbers. The range is unchanged."
                  : limit == "6"
                      ? "Computes Relu6 of quantized numbers. The range is unchanged."
                      : "Clamps quantized numbers to [0, max_value]. The range is unchanged."));
  }
}

void AddImages(OpRegistry* ops) {
  for (const bool max : {true, false}) {
    ops->Add(Spec(max ? "QuantizedMaxPool" : "QuantizedAvgPool", "input: T, " + Ends("input"),
                  "output: T, " + Ends("output"), {"T"}, ShapeOf(max ? "MaxPool" : "AvgPool", 1),
                  max ? "Computes MaxPool of quantized images."
                      : "Computes AvgPool of quantized images.")
                 .Attr("ksize: list(int)")
                 .Attr("strides: list(int)")
                 .Attr("padding: {'SAME', 'VALID'}"));
  }
  ops->Add(OpSpec("QuantizedResizeBilinear")
               .In("images: T, size: int32, min: float, max: float")
               .Out("resized_images: T, out_min: float, out_max: float")
               .Attr("T: {quint8, qint32, float}")
               .Attr("align_corners: bool = false")
               .Attr("half_pixel_centers: bool = false")
               .InferShape(ShapeOf("ResizeBilinear", 2))
               .Doc("Computes ResizeBilinear of quantized images in fixed-point arithmetic."));
  const auto triple = [](const std::string& x) {
    return absl::StrCat(x, ": Tinput, ", x, "_min: float, ", x, "_max: float");
  };
  ops->Add(Spec("QuantizedBatchNormWithGlobalNormalization",
                absl::StrJoin(
                    {triple("t"), triple("m"), triple("v"), triple("beta"), triple("gamma")}, ", "),
                "result: out_type, result_min: float, result_max: float", {"Tinput", "out_type"},
                BatchNormShape,
                "Normalizes quantized images by the means and variances of the channels in "
                "fixed-point arithmetic.")
               .Attr("variance_epsilon: float")
               .Attr("scale_after_normalization: bool"));
  ops->Add(Spec("QuantizedInstanceNorm", "x: T, x_min: float, x_max: float",
                "y: T, y_min: float, y_max: float", {"T"}, InstanceNormShape,
                "Normalizes each channel of each quantized image to mean 0 and variance 1.")
               .Attr("output_range_given: bool = false")
               .Attr("given_y_min: float = 0")
               .Attr("given_y_max: float = 0")
               .Attr("variance_epsilon: float = 1e-05")
               .Attr("min_separation: float = 0.001"));
}

void AddShapes(OpRegistry* ops) {
  const char* const out = "output: T, output_min: float, output_max: float";
  const char* const ends = "input_mins: N * float, input_maxes: N * float";
  const char* const doc =
      "Concatenates quantized tensors along a dimension. The range of the result contains the "
      "ranges of all inputs.";
  ops->Add(OpSpec("QuantizedConcat")
               .In(absl::StrCat("concat_dim: int32, values: N * T, ", ends))
               .Out(out)
               .Attr("N: int >= 2")
               .Attr("T: type")
               .InferShape(ConcatShape<true>)
               .Doc(doc));
  ops->Add(OpSpec("QuantizedConcatV2")
               .In(absl::StrCat("values: N * T, axis: Tidx, ", ends))
               .Out(out)
               .Attr("N: int >= 2")
               .Attr("T: type")
               .Attr("Tidx: {int32, int64} = DT_INT32")
               .InferShape(ConcatShape<false>)
               .Doc(doc));
  ops->Add(OpSpec("QuantizedReshape")
               .In("tensor: T, shape: Tshape, input_min: float, input_max: float")
               .Out(out)
               .Attr("T: type")
               .Attr("Tshape: {int32, int64} = DT_INT32")
               .InferShape(Ranked("shape: 1, input_min: 0, input_max: 0", ReshapeShape))
               .Doc("Reshapes a quantized tensor."));
}

void AddPerChannel(OpRegistry* ops) {
  const std::string in = "input: T, input_min: float, input_max: float";
  constexpr char kVectors[] = "input_min: 1, input_max: 1";
  ops->Add(Spec("RequantizePerChannel",
                in + ", requested_output_min: float, requested_output_max: float",
                "output: out_type, output_min: float, output_max: float",
                {"T = DT_QINT32", "out_type = DT_QUINT8"}, Ranked(kVectors, PerChannelShape),
                "Computes Requantize with one range per channel of the input."));
  ops->Add(Spec("RequantizationRangePerChannel", in, "output_min: float, output_max: float",
                {"T = DT_QINT32"}, Ranked(kVectors, PerChannelShape),
                "Computes the range that quantized numbers with one range per channel occupy, "
                "limited to clip_value_max.")
               .Attr("clip_value_max: float"));
}

}  // namespace

void AddQuantizedOps(OpRegistry* ops) {
  AddQuantizedFusedOps(ops);
  AddUniformOps(ops);
  AddArithmetic(ops);
  AddImages(ops);
  AddShapes(ops);
  AddPerChannel(ops);
}

}  // namespace weir
