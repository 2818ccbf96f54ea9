#include "weir/ops/text/string.h"

#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/math_internal.h"
#include "weir/ops/lib/registry.h"

// Unicode: transcoding, code points, scripts.
namespace weir {

namespace {

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

}  // namespace

void AddUnicodeOps(OpRegistry* ops) {
  OpSpec transcode("UnicodeTranscode");
  transcode.In("input: string")
      .Out("output: string")
      .Attr("input_encoding: string")
      .Attr(kOutputEncoding)
      .InferShape(SameShape)
      .NotDifferentiable()
      .Doc("Transcodes strings to another encoding.");
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
  ops->Add(OpSpec("UnicodeScript")
               .In("input: int32")
               .Out("output: int32")
               .InferShape(SameShape)
               .NotDifferentiable()
               .Doc("Returns the script of each code point as an ICU script code."));
}

Output UnicodeTranscode(Output x, absl::string_view input_encoding,
                        absl::string_view output_encoding, const UnicodeOptions& o,
                        absl::string_view name) {
  return AddOp("UnicodeTranscode", {x},
               {{"input_encoding", input_encoding},
                {"output_encoding", output_encoding},
                {"errors", o.errors},
                {"replacement_char", o.replacement_char},
                {"replace_control_characters", o.replace_control_characters}},
               name);
}

UnicodeDecodeResult UnicodeDecodeWithOffsets(Output x, absl::string_view input_encoding,
                                             const UnicodeOptions& o, absl::string_view name) {
  const Outputs r =
      AllOutputs(AddNode("UnicodeDecodeWithOffsets", {x},
                         {{"input_encoding", input_encoding},
                          {"errors", o.errors},
                          {"replacement_char", o.replacement_char},
                          {"replace_control_characters", o.replace_control_characters}},
                         name),
                 3);
  return {r[0], r[1], r[2]};
}

Output UnicodeEncode(Output char_values, Output row_splits, absl::string_view output_encoding,
                     const UnicodeOptions& o, absl::string_view name) {
  return AddOp("UnicodeEncode", {char_values, row_splits},
               {{"errors", o.errors},
                {"output_encoding", output_encoding},
                {"replacement_char", o.replacement_char}},
               name);
}

Output UnicodeScript(Output x, absl::string_view name) {
  return AddOp("UnicodeScript", {x}, {}, name);
}

}  // namespace weir
