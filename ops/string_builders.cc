#include "weir/core/scope.h"
#include "weir/ops/array_internal.h"
#include "weir/ops/string.h"

namespace weir {

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
