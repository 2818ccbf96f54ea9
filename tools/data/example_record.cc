#include "weir/tools/data/example_record.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <limits>

#include "weir/proto/example.pb.h"

namespace weir::tools {

namespace {

// Whether the message has only fields of its type.
template <class M>
bool IsKnown(const M& message) {
  return message.GetReflection()->GetUnknownFields(message).empty();
}

bool IsKnownFeature(const proto::Feature& feature) {
  return IsKnown(feature) && IsKnown(feature.bytes_list()) && IsKnown(feature.float_list()) &&
         IsKnown(feature.int64_list());
}

bool IsExample(const proto::SequenceExample& message) {
  if (!IsKnown(message) || !IsKnown(message.context()) || !IsKnown(message.feature_lists()))
    return false;
  const auto& context = message.context().feature();
  const auto& lists = message.feature_lists().feature_list();
  return std::all_of(context.begin(), context.end(),
                     [](const auto& entry) { return IsKnownFeature(entry.second); }) &&
         std::all_of(lists.begin(), lists.end(), [](const auto& entry) {
           const auto& frames = entry.second.feature();
           return IsKnown(entry.second) &&
                  std::all_of(frames.begin(), frames.end(), IsKnownFeature);
         });
}

}  // namespace

const char* RecordKindName(RecordKind kind) {
  static constexpr const char* kNames[] = {"Example", "SequenceExample", "other"};
  return kNames[static_cast<int>(kind)];
}

const char* FeatureKindName(FeatureKind kind) {
  static constexpr const char* kNames[] = {"none", "bytes", "float", "int64"};
  return kNames[static_cast<int>(kind)];
}

absl::StatusOr<FeatureKind> FeatureKindOf(absl::string_view name) {
  for (const FeatureKind kind : {FeatureKind::kBytes, FeatureKind::kFloat, FeatureKind::kInt64})
    if (name == FeatureKindName(kind)) return kind;
  return InvalidArgument("unknown kind '", name, "'; valid kinds: bytes, float, int64");
}

FeatureKind KindOf(const proto::Feature& feature) {
  return static_cast<FeatureKind>(feature.kind_case());
}

int64_t NumValues(const proto::Feature& feature) {
  return feature.bytes_list().value_size() + feature.float_list().value_size() +
         feature.int64_list().value_size();
}

RecordKind ParseExampleRecord(absl::string_view record, proto::SequenceExample* message) {
  const google::protobuf::LogSilencer silencer;  // bytes of other messages are no error
  const bool ok = record.size() <= std::numeric_limits<int>::max() &&
                  message->ParseFromArray(record.data(), static_cast<int>(record.size()));
  if (!ok || !IsExample(*message)) return RecordKind::kOther;
  return message->has_feature_lists() ? RecordKind::kSequenceExample : RecordKind::kExample;
}

std::string SerializeExampleRecord(const proto::SequenceExample& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream out(&stream);
    out.SetSerializationDeterministic(true);
    message.SerializeToCodedStream(&out);
  }
  return bytes;
}

}  // namespace weir::tools
