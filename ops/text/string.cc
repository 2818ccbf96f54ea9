#include "weir/ops/text/string.h"

#include "absl/strings/str_split.h"

#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/math_internal.h"
#include "weir/ops/lib/ranked_internal.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/text/text_internal.h"

// Strings: parts, splits, joins, conversions, hashes, regular expressions.
namespace weir {

// ---- shape functions

namespace {

// Output 0 has the shape of input 0; the other inputs are scalars.
absl::Status SameShapeScalars(ShapeContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i) WEIR_RETURN_IF_ERROR(c.WithRank(i, 0).status());
  return SameShape(c);
}

absl::Status FormatShape(ShapeContext& c) {
  const std::vector<std::string> parts =
      absl::StrSplit(c.attr<std::string>("template"), c.attr<std::string>("placeholder"));
  const int holes = static_cast<int>(parts.size()) - 1;
  if (holes != c.num_inputs()) {
    return InvalidArgument("num placeholders in template and num inputs must match: ", holes,
                           " vs. ", c.num_inputs());
  }
  return ScalarShape(c);
}

absl::Status SplitShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(0, 1).status());
  WEIR_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  c.set_output(0, Shape({Shape::kUnknown, 2}));
  c.set_output(1, Shape({Shape::kUnknown}));
  c.set_output(2, Shape({2}));
  return absl::OkStatus();
}

absl::Status SubstrShape(ShapeContext& c) {
  if (!c.input(1).IsCompatibleWith(c.input(2))) {
    return InvalidArgument("pos and len shapes must match: ", c.input(1).ToString(), " vs. ",
                           c.input(2).ToString());
  }
  return BroadcastShape(c);
}

absl::Status NGramsShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(0, 1).status());
  WEIR_ASSIGN_OR_RETURN(const Shape splits, c.WithRank(1, 1));
  c.set_output(0, Shape({Shape::kUnknown}));
  c.set_output(1, splits);
  return absl::OkStatus();
}

absl::Status ReduceJoinShape(ShapeContext& c) {
  const Shape& x = c.input(0);
  const std::optional<std::vector<int64_t>> axes = KnownInts(c, 1);
  const bool keep = c.attr<bool>("keep_dims");
  if (!x.has_rank()) return absl::OkStatus();
  if (!axes.has_value()) {
    if (keep) c.set_output(0, UnknownDims(x.rank()));
    return absl::OkStatus();
  }
  std::vector<bool> joined(static_cast<size_t>(x.rank()));
  for (const int64_t axis : *axes) {
    WEIR_ASSIGN_OR_RETURN(const int d, CheckedAxis(axis, x.rank()));
    joined[d] = true;
  }
  Shape out;
  for (int d = 0; d < x.rank(); ++d) {
    if (!joined[d] || keep) out.AddDim(joined[d] ? 1 : x.dim(d));
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status SegmentJoinShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(2, 0).status());
  const std::optional<std::vector<int64_t>> count = KnownInts(c, 2);
  const int64_t segments = count.has_value() && count->size() == 1 ? (*count)[0] : Shape::kUnknown;
  if (count.has_value() && segments < 0) {
    return InvalidArgument("Number of segments must be non-negative but got ", segments);
  }
  return SegmentsShape(c, segments);
}

absl::Status FingerprintShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape data, c.WithRankAtLeast(0, 1));
  WEIR_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  c.set_output(0, Shape({data.has_rank() ? data.dim(0) : Shape::kUnknown, 8}));
  return absl::OkStatus();
}

// The definition of an elementwise op on strings.
OpSpec ElementwiseSpec(const char* name, const char* in, const char* out, const char* doc) {
  OpSpec spec(name);
  spec.In(in).Out(out).InferShape(SameShapeScalars).NotDifferentiable().Doc(doc);
  return spec;
}

constexpr char kUnit[] = "unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'";

void AddPartOps(OpRegistry* ops) {
  ops->Add(ElementwiseSpec("StringLength", "input: string", "output: int32",
                           "Returns the number of bytes or characters of each string.")
               .Attr(kUnit));
  ops->Add(ElementwiseSpec("StringStrip", "input: string", "output: string",
                           "Strips leading and trailing whitespace from strings."));
  ops->Add(ElementwiseSpec("StringLower", "input: string", "output: string",
                           "Converts strings to lower case.")
               .Attr("encoding: string = ''"));
  ops->Add(ElementwiseSpec("StringUpper", "input: string", "output: string",
                           "Converts strings to upper case.")
               .Attr("encoding: string = ''"));
  ops->Add(OpSpec("Substr")
               .In("input: string, pos: T, len: T")
               .Out("output: string")
               .Attr("T: {int32, int64}")
               .Attr(kUnit)
               .InferShape(SubstrShape)
               .NotDifferentiable()
               .Doc("Returns a substring of each string, given by its position and length."));
}

void AddSplitOps(OpRegistry* ops) {
  ops->Add(OpSpec("StringSplit")
               .In("input: string, delimiter: string")
               .Out("indices: int64, values: string, shape: int64")
               .Attr("skip_empty: bool = true")
               .InferShape(SplitShape)
               .NotDifferentiable()
               .Doc("Splits each string of a vector into words at any of the delimiter's bytes. "
                    "Returns a sparse matrix."));
  ops->Add(OpSpec("StringSplitV2")
               .In("input: string, sep: string")
               .Out("indices: int64, values: string, shape: int64")
               .Attr("maxsplit: int = -1")
               .InferShape(SplitShape)
               .NotDifferentiable()
               .Doc("Splits each string of a vector into words like Python's str.split. Returns a "
                    "sparse matrix."));
  ops->Add(OpSpec("StringNGrams")
               .In("data: string, data_splits: Tsplits")
               .Out("ngrams: string, ngrams_splits: Tsplits")
               .Attr("separator: string")
               .Attr("ngram_widths: list(int) >= 0")
               .Attr("left_pad: string")
               .Attr("right_pad: string")
               .Attr("pad_width: int")
               .Attr("preserve_short_sequences: bool")
               .Attr("Tsplits: {int32, int64} = DT_INT64")
               .InferShape(NGramsShape)
               .NotDifferentiable()
               .Doc("Returns the n-grams of each row: sequences of neighboring strings, joined."));
}

void AddJoinOps(OpRegistry* ops) {
  ops->Add(OpSpec("ReduceJoin")
               .In("inputs: string, reduction_indices: int32")
               .Out("output: string")
               .Attr("keep_dims: bool = false")
               .Attr("separator: string = ''")
               .InferShape(Ranked("reduction_indices: <=1", ReduceJoinShape))
               .NotDifferentiable()
               .Doc("Joins strings over some dimensions."));
  ops->Add(OpSpec("UnsortedSegmentJoin")
               .In("inputs: string, segment_ids: Tindices, num_segments: Tnumsegments")
               .Out("output: string")
               .Attr("separator: string = ''")
               .Attr("Tindices: {int32, int64}")
               .Attr("Tnumsegments: {int32, int64} = DT_INT32")
               .InferShape(SegmentJoinShape)
               .NotDifferentiable()
               .Doc("Joins the strings that have the same segment id."));
}

void AddConversionOps(OpRegistry* ops) {
  ops->Add(
      ElementwiseSpec("AsString", "input: T", "output: string", "Converts each element to text.")
          .Attr("T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, "
                "uint32, uint64, complex64, complex128, bool, variant, string}")
          .Attr("precision: int = -1")
          .Attr("scientific: bool = false")
          .Attr("shortest: bool = false")
          .Attr("width: int = -1")
          .Attr("fill: string = ''"));
  ops->Add(OpSpec("StringFormat")
               .In("inputs: T")
               .Out("output: string")
               .Attr("T: list(type) >= 0")
               .Attr("template: string = '%s'")
               .Attr("placeholder: string = '%s'")
               .Attr("summarize: int = 3")
               .InferShape(FormatShape)
               .NotDifferentiable()
               .Doc("Formats a template, replacing its placeholders by tensors."));
  ops->Add(ElementwiseSpec("StringToNumber", "string_tensor: string", "output: out_type",
                           "Parses each string as a number.")
               .Attr("out_type: {float, double, int32, int64, uint32, uint64} = DT_FLOAT"));
  ops->Add(ElementwiseSpec("EncodeBase64", "input: string", "output: string",
                           "Encodes strings as URL-safe base64.")
               .Attr("pad: bool = false"));
  ops->Add(ElementwiseSpec("DecodeBase64", "input: string", "output: string",
                           "Decodes URL-safe base64."));
}

void AddHashOps(OpRegistry* ops) {
  constexpr char kBuckets[] = "num_buckets: int >= 1";
  ops->Add(ElementwiseSpec("StringToHashBucket", "string_tensor: string", "output: int64",
                           "Hashes each string to a bucket with MurmurHash.")
               .Attr(kBuckets));
  ops->Add(ElementwiseSpec("StringToHashBucketFast", "input: string", "output: int64",
                           "Hashes each string to a bucket with FarmHash.")
               .Attr(kBuckets));
  ops->Add(ElementwiseSpec("StringToHashBucketStrong", "input: string", "output: int64",
                           "Hashes each string to a bucket with SipHash under a key.")
               .Attr(kBuckets)
               .Attr("key: list(int)"));
  ops->Add(
      OpSpec("Fingerprint")
          .In("data: T, method: string")
          .Out("fingerprint: uint8")
          .Attr("T: type")
          .InferShape(FingerprintShape)
          .NotDifferentiable()
          .Doc("Computes a fingerprint of eight bytes for each row of a tensor with FarmHash."));
}

void AddRegexOps(OpRegistry* ops) {
  ops->Add(ElementwiseSpec("RegexFullMatch", "input: string, pattern: string", "output: bool",
                           "Returns whether each whole string matches a regular expression."));
  ops->Add(ElementwiseSpec("RegexReplace", "input: string, pattern: string, rewrite: string",
                           "output: string",
                           "Replaces the matches of a regular expression in strings.")
               .Attr("replace_global: bool = true"));
  ops->Add(ElementwiseSpec("StaticRegexReplace", "input: string", "output: string",
                           "Replaces the matches of a regular expression in strings.")
               .Attr("pattern: string")
               .Attr("rewrite: string")
               .Attr("replace_global: bool = true"));
}

}  // namespace

void AddStringOps(OpRegistry* ops) {
  AddPartOps(ops);
  AddSplitOps(ops);
  AddJoinOps(ops);
  AddConversionOps(ops);
  AddHashOps(ops);
  AddRegexOps(ops);
  AddProtoFieldOps(ops);
}

// ---- builders

namespace {

const char* UnitName(StringUnit unit) { return unit == StringUnit::kBytes ? "BYTE" : "UTF8_CHAR"; }

// A split inside its own scope, as Python's wrapper builds it.
SparseTensor Split(const char* op, Output x, absl::string_view delimiter, const Attrs& attrs,
                   absl::string_view name) {
  if (!x.valid()) return {};
  Graph& g = x.graph();
  const NameScope scope(g, name.empty() ? "StringSplit" : name);
  const Outputs r = AllOutputs(AddNode(op, {x, Const(g, std::string(delimiter))}, attrs), 3);
  return {r[0], r[1], r[2]};
}

}  // namespace

Output AsString(Output x, const AsStringOptions& o, absl::string_view name) {
  return AddOp("AsString", {x},
               {{"precision", o.precision},
                {"scientific", o.scientific},
                {"shortest", o.shortest},
                {"width", o.width},
                {"fill", o.fill}},
               name);
}

Output StringFormat(Graph& graph, absl::string_view text, const Outputs& tensors,
                    const StringFormatOptions& o, absl::string_view name) {
  Node* node = AddNode(
      graph, "StringFormat", {tensors},
      {{"template", text}, {"placeholder", o.placeholder}, {"summarize", o.summarize}}, name);
  return AllOutputs(node, 1)[0];
}

Output StringToNumber(Output x, DataType out_type, absl::string_view name) {
  return AddOp("StringToNumber", {x}, {{"out_type", out_type}}, name);
}

Output StringLength(Output x, StringUnit unit, absl::string_view name) {
  return AddOp("StringLength", {x}, {{"unit", UnitName(unit)}}, name);
}

Output Substr(Output x, const Ints& position, const Ints& length, StringUnit unit,
              absl::string_view name) {
  if (!x.valid()) return {};
  Graph& g = x.graph();
  const NameScope scope(g, name.empty() ? "Substr" : name);
  const Output from = position.In(g, "pos"), count = length.In(g, "len");
  return AddOp("Substr", {x, from, count}, {{"unit", UnitName(unit)}}, scope.name());
}

Output StringStrip(Output x, absl::string_view name) { return AddOp("StringStrip", {x}, {}, name); }

Output StringLower(Output x, absl::string_view encoding, absl::string_view name) {
  return AddOp("StringLower", {x}, {{"encoding", encoding}}, name);
}

Output StringUpper(Output x, absl::string_view encoding, absl::string_view name) {
  return AddOp("StringUpper", {x}, {{"encoding", encoding}}, name);
}

SparseTensor StringSplit(Output x, absl::string_view delimiter, bool skip_empty,
                         absl::string_view name) {
  return Split("StringSplit", x, delimiter, {{"skip_empty", skip_empty}}, name);
}

SparseTensor StringSplitV2(Output x, absl::string_view separator, int64_t limit,
                           absl::string_view name) {
  return Split("StringSplitV2", x, separator, {{"maxsplit", limit}}, name);
}

Output ReduceJoin(Output x, const Ints& axes, bool keep_dims, absl::string_view separator,
                  absl::string_view name) {
  if (!x.valid()) return {};
  Graph& g = x.graph();
  const NameScope outer(g, "ReduceJoin");
  const NameScope scope(g, name.empty() ? "ReduceJoin" : name);
  const Output dims = axes.In(g, "reduction_indices", DT_INT32);
  return AddOp("ReduceJoin", {x, dims}, {{"keep_dims", keep_dims}, {"separator", separator}},
               scope.name());
}

Output UnsortedSegmentJoin(Output x, Output segment_ids, const Ints& num_segments,
                           absl::string_view separator, absl::string_view name) {
  if (!x.valid()) return {};
  Graph& g = x.graph();
  const NameScope scope(g, name.empty() ? "UnsortedSegmentJoin" : name);
  const Output count = num_segments.In(g, "num_segments");
  return AddOp("UnsortedSegmentJoin", {x, segment_ids, count}, {{"separator", separator}},
               scope.name());
}

Output RegexReplace(Output x, absl::string_view pattern, absl::string_view rewrite,
                    bool replace_global, absl::string_view name) {
  return AddOp("StaticRegexReplace", {x},
               {{"pattern", pattern}, {"rewrite", rewrite}, {"replace_global", replace_global}},
               name);
}

Output StringToHashBucketFast(Output x, int64_t num_buckets, absl::string_view name) {
  return AddOp("StringToHashBucketFast", {x}, {{"num_buckets", num_buckets}}, name);
}

Output StringToHashBucketStrong(Output x, int64_t num_buckets, std::vector<int64_t> key,
                                absl::string_view name) {
  return AddOp("StringToHashBucketStrong", {x},
               {{"num_buckets", num_buckets}, {"key", std::move(key)}}, name);
}

Output EncodeBase64(Output x, bool pad, absl::string_view name) {
  return AddOp("EncodeBase64", {x}, {{"pad", pad}}, name);
}

Output DecodeBase64(Output x, absl::string_view name) {
  return AddOp("DecodeBase64", {x}, {}, name);
}

}  // namespace weir
