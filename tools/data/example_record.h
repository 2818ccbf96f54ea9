#ifndef WEIR_TOOLS_DATA_EXAMPLE_RECORD_H_
#define WEIR_TOOLS_DATA_EXAMPLE_RECORD_H_

#include <cstdint>
#include <string>

#include "weir/core/tensor/status.h"

namespace weir::proto {
class Feature;
class SequenceExample;
}  // namespace weir::proto

// Records that are tf.Examples, as messages.
namespace weir::tools {

enum class RecordKind : uint8_t { kExample, kSequenceExample, kOther };
// "Example", "SequenceExample", "other".
const char* RecordKindName(RecordKind kind);

// The lists of a feature, with the numbers of their fields. kNone is a feature without a list.
enum class FeatureKind : uint8_t { kNone, kBytes, kFloat, kInt64 };
inline constexpr int kNumFeatureKinds = 4;
// "none", "bytes", "float", "int64".
const char* FeatureKindName(FeatureKind kind);
// INVALID_ARGUMENT for a name that is not "bytes", "float" or "int64".
absl::StatusOr<FeatureKind> FeatureKindOf(absl::string_view name);

FeatureKind KindOf(const proto::Feature& feature);
int64_t NumValues(const proto::Feature& feature);

// Parses a record. An Example is parsed as a SequenceExample that has only a context, whose bytes
// are the same. Bytes with fields that neither has are kOther: those of another message, or no
// message at all.
RecordKind ParseExampleRecord(absl::string_view record, proto::SequenceExample* message);
// The bytes of a message, with its features in the order of their names.
std::string SerializeExampleRecord(const proto::SequenceExample& message);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_DATA_EXAMPLE_RECORD_H_
