#ifndef WEIR_TOOLS_DATA_RECORD_JSON_H_
#define WEIR_TOOLS_DATA_RECORD_JSON_H_

#include <map>
#include <string>

#include "weir/tools/data/example_record.h"

// Records as lines of JSON. An Example is an object of its features, as in TensorFlow Serving's
// REST API:
//
//   {"label": [3], "score": [0.5, 1.0], "name": ["cat"], "image": [{"b64": "/9j/4AA="}]}
//
//   int64   numbers without a point or an exponent; true and false are 1 and 0
//   float   numbers with one, NaN, Infinity, -Infinity
//   bytes   strings, or {"b64": "..."} for bytes that are not UTF-8
//
// A SequenceExample is {"context": {"id": [7]}, "feature_lists": {"words": [["a"], ["b", "c"]]}},
// with a list for each frame. A list may be an object that names its kind, such as {"float_list":
// [1, 2]}; an empty list has to be. A feature without a list is null. Any other record is the
// object
// {"b64": "..."} itself.
namespace weir::tools {

// The kinds that features are given, by their names, whatever their values look like.
using FeatureKinds = std::map<std::string, FeatureKind>;

// Returns a record as one line without a line end. Reading it gives an equal message: a record of
// which the form above cannot say everything (NaNs with other bits than usual, an empty map of
// features that is written) is written as {"b64": "..."}.
std::string JsonFromRecord(absl::string_view record);

// Returns the record of a line. A feature may also be one value instead of a list, and an Example
// what protobuf's JsonFormat writes ({"features": {"feature": ...}}). Integers in a list of floats
// are floats, if that loses nothing; floats are rounded to 32 bits. INVALID_ARGUMENT for other
// text, with the feature; numbers out of range; names that occur twice; and more than 100,000
// features.
absl::StatusOr<std::string> RecordFromJson(absl::string_view line, const FeatureKinds& kinds = {});

// Whether the form above says everything about a message.
bool HasExactJson(const proto::SequenceExample& message, RecordKind kind);
// Appends the values of a feature, as a list.
void AppendValues(const proto::Feature& feature, std::string* out);
// Parses a list of values, of the kind given unless that is kNone.
absl::Status ValuesFromJson(absl::string_view text, FeatureKind kind, proto::Feature* feature);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_DATA_RECORD_JSON_H_
