#include "weir/ops/data/parsing.h"

#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/registry.h"

namespace weir {

Output DecodeRaw(Output bytes, DataType out_type, bool little_endian, absl::string_view name) {
  return AddOp("DecodeRaw", {bytes}, {{"out_type", out_type}, {"little_endian", little_endian}},
               name);
}

Output DecodePaddedRaw(Output bytes, const Ints& length, DataType out_type, bool little_endian,
                       absl::string_view name) {
  if (!bytes.valid()) return {};
  Graph& g = bytes.graph();
  const NameScope scope(g, name.empty() ? "DecodePaddedRaw" : name);
  return AddOp("DecodePaddedRaw", {bytes, length.In(g, "fixed_length", DT_INT32)},
               {{"out_type", out_type}, {"little_endian", little_endian}}, scope.name());
}

Output DecodeCompressed(Output bytes, absl::string_view compression_type, absl::string_view name) {
  return AddOp("DecodeCompressed", {bytes}, {{"compression_type", compression_type}}, name);
}

Output SerializeTensor(Output x, absl::string_view name) {
  return AddOp("SerializeTensor", {x}, {}, name);
}

Output ParseTensor(Output serialized, DataType out_type, absl::string_view name) {
  return AddOp("ParseTensor", {serialized}, {{"out_type", out_type}}, name);
}

Outputs DecodeCsv(Output records, const Outputs& record_defaults, const DecodeCsvOptions& o,
                  absl::string_view name) {
  Node* node = AddNode("DecodeCSV", {records, record_defaults},
                       {{"field_delim", o.field_delim},
                        {"use_quote_delim", o.use_quote_delim},
                        {"na_value", o.na_value},
                        {"select_cols", o.select_cols}},
                       name);
  return AllOutputs(node, record_defaults.size());
}

Output DecodeJsonExample(Output json_examples, absl::string_view name) {
  return AddOp("DecodeJSONExample", {json_examples}, {}, name);
}

namespace {

// ---- shape functions

absl::Status DecodeRawShape(ShapeContext& c) {
  if (!c.input(0).has_rank()) return absl::OkStatus();
  c.set_output(0, c.input(0).Concatenate(Shape({Shape::kUnknown})));
  return absl::OkStatus();
}

absl::Status DecodePaddedRawShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  const std::optional<std::vector<int64_t>> length = KnownInts(c, 1);
  int64_t width = Shape::kUnknown;
  if (length.has_value() && length->size() == 1) {
    const auto size = static_cast<int64_t>(ElementSize(c.attr<DataType>("out_type")));
    if ((*length)[0] < 0 || (*length)[0] % size != 0) {
      return InvalidArgument("fixed_length (", (*length)[0],
                             ") must be a multiple of the size of out_type (", size, ")");
    }
    width = (*length)[0] / size;
  }
  if (c.input(0).has_rank()) c.set_output(0, c.input(0).Concatenate(Shape({width})));
  return absl::OkStatus();
}

absl::Status ParseTensorShape(ShapeContext& c) { return c.WithRank(0, 0).status(); }

absl::Status DecodeCsvShape(ShapeContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i) {
    WEIR_ASSIGN_OR_RETURN(const Shape fallback, c.WithRankAtMost(i, 1));
    if (fallback.rank() == 1 && fallback.dim(0) > 1) {
      return InvalidArgument(
          "Shape of a default must be a length-0 or length-1 vector, or a scalar.");
    }
  }
  c.set_all_outputs(c.input(0));
  return absl::OkStatus();
}

// ---- op definitions

void AddRawOps(OpRegistry* ops) {
  ops->Add(OpSpec("DecodeRaw")
               .In("bytes: string")
               .Out("output: out_type")
               .Attr("out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, "
                     "complex64, complex128, bool, bfloat16}")
               .Attr("little_endian: bool = true")
               .InferShape(DecodeRawShape)
               .NotDifferentiable()
               .Doc("Reinterprets the bytes of each string as elements of a tensor."));
  ops->Add(OpSpec("DecodePaddedRaw")
               .In("input_bytes: string, fixed_length: int32")
               .Out("output: out_type")
               .Attr("out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, "
                     "bfloat16}")
               .Attr("little_endian: bool = true")
               .InferShape(DecodePaddedRawShape)
               .NotDifferentiable()
               .Doc("Reinterprets the bytes of strings of any length, truncated or padded with "
                    "zeros, as elements of a tensor."));
  ops->Add(OpSpec("DecodeCompressed")
               .In("bytes: string")
               .Out("output: string")
               .Attr("compression_type: string = ''")
               .InferShape(SameShape)
               .NotDifferentiable()
               .Doc("Decompresses strings that were compressed with zlib or gzip."));
}

void AddTensorAndRecordOps(OpRegistry* ops) {
  ops->Add(OpSpec("ParseTensor")
               .In("serialized: string")
               .Out("output: out_type")
               .Attr("out_type: type")
               .InferShape(ParseTensorShape)
               .NotDifferentiable()
               .Doc("Parses a serialized TensorProto to a tensor."));
  ops->Add(OpSpec("SerializeTensor")
               .In("tensor: T")
               .Out("serialized: string")
               .Attr("T: type")
               .InferShape(ScalarShape)
               .NotDifferentiable()
               .Doc("Serializes a tensor to a TensorProto."));
  ops->Add(OpSpec("DecodeJSONExample")
               .In("json_examples: string")
               .Out("binary_examples: string")
               .InferShape(SameShape)
               .NotDifferentiable()
               .Doc("Converts Examples in JSON to their binary form."));
  ops->Add(OpSpec("DecodeCSV")
               .In("records: string, record_defaults: OUT_TYPE")
               .Out("output: OUT_TYPE")
               .Attr("OUT_TYPE: list({float, double, int32, int64, string}) >= 1")
               .Attr("field_delim: string = ','")
               .Attr("use_quote_delim: bool = true")
               .Attr("na_value: string = ''")
               .Attr("select_cols: list(int) = []")
               .InferShape(DecodeCsvShape)
               .NotDifferentiable()
               .Doc("Parses the fields of delimited records, one output per column."));
}

}  // namespace

void AddParsingOps(OpRegistry* ops) {
  AddRawOps(ops);
  AddTensorAndRecordOps(ops);
}

}  // namespace weir
