#include "weir/ops/string.h"
#include "weir/ops/ranked_internal.h"

#include "absl/strings/str_split.h"
#include "weir/ops/array_internal.h"
#include "weir/ops/math_internal.h"
#include "weir/ops/registry.h"

namespace weir {

namespace {

// ---- shape functions

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

absl::Status UnicodeEncodeShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(0, 1).status());
  WEIR_ASSIGN_OR_RETURN(const int64_t splits, VectorLength(c, 1));
  if (splits == 0) return InvalidArgument("Input_splits should contain elements");
  c.set_output(0, Shape({splits < 0 ? Shape::kUnknown : splits - 1}));
  return absl::OkStatus();
}

absl::Status UnicodeDecodeShape(ShapeContext& c) {
  const int64_t strings = c.input(0).num_elements();
  c.set_all_outputs(Shape({Shape::kUnknown}));
  c.set_output(0, Shape({strings < 0 ? Shape::kUnknown : strings + 1}));
  return absl::OkStatus();
}

// ---- op definitions

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

constexpr char kOutputEncoding[] = "output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}";
constexpr char kReplacement[] = "replacement_char: int = 65533";
constexpr char kSplits[] = "Tsplits: {int32, int64} = DT_INT64";

// Adds the attributes of ops that decode text in some encoding.
OpSpec& ErrorAttrs(OpSpec& spec) {
  return spec.Attr("errors: {'strict', 'replace', 'ignore'} = 'replace'")
      .Attr(kReplacement)
      .Attr("replace_control_characters: bool = false");
}

OpSpec DecodeSpec(const char* name, const char* outputs, const char* doc) {
  OpSpec spec(name);
  spec.In("input: string").Out(outputs).Attr("input_encoding: string");
  ErrorAttrs(spec).Attr(kSplits).InferShape(UnicodeDecodeShape).NotDifferentiable().Doc(doc);
  return spec;
}

void AddUnicodeOps(OpRegistry* ops) {
  OpSpec transcode = ElementwiseSpec("UnicodeTranscode", "input: string", "output: string",
                                     "Transcodes strings to another encoding.");
  transcode.Attr("input_encoding: string").Attr(kOutputEncoding);
  ops->Add(ErrorAttrs(transcode));
  ops->Add(DecodeSpec("UnicodeDecode", "row_splits: Tsplits, char_values: int32",
                      "Decodes strings to code points. Returns the code points of all strings, and "
                      "the row splits that delimit the strings."));
  ops->Add(DecodeSpec(
      "UnicodeDecodeWithOffsets",
      "row_splits: Tsplits, char_values: int32, char_to_byte_starts: int64",
      "Decodes strings to code points. Returns the code points of all strings, the row splits that "
      "delimit the strings, and the byte offset of each code point in its string."));
  ops->Add(OpSpec("UnicodeEncode")
               .In("input_values: int32, input_splits: Tsplits")
               .Out("output: string")
               .Attr("errors: {'ignore', 'replace', 'strict'} = 'replace'")
               .Attr(kOutputEncoding)
               .Attr(kReplacement)
               .Attr(kSplits)
               .InferShape(UnicodeEncodeShape)
               .NotDifferentiable()
               .Doc("Encodes rows of code points to strings."));
  ops->Add(ElementwiseSpec("UnicodeScript", "input: int32", "output: int32",
                           "Returns the script of each code point as an ICU script code."));
}

}  // namespace

void AddStringOps(OpRegistry* ops) {
  AddPartOps(ops);
  AddSplitOps(ops);
  AddJoinOps(ops);
  AddConversionOps(ops);
  AddHashOps(ops);
  AddRegexOps(ops);
  AddUnicodeOps(ops);
}

}  // namespace weir
