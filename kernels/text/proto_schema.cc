#include "weir/kernels/text/proto_schema.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "weir/core/io/file.h"
#include "weir/core/io/proto_values.h"
#include "weir/core/tensor/status.h"

namespace weir {

namespace {

namespace pb = google::protobuf;
using pb::FieldDescriptor;

class FirstError final : public pb::DescriptorPool::ErrorCollector {
 public:
  void AddError(const std::string&, const std::string& element, const pb::Message*, ErrorLocation,
                const std::string& message) override {
    if (text_.empty()) text_ = absl::StrCat(element, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// A pool compares each range of numbers with the other ranges and with the fields, and each file
// visits the chain of those that it imports publicly. Returns how many such steps it may take.
int64_t PoolSteps(const pb::EnumDescriptorProto& type) {
  const int64_t ranges = type.reserved_range_size();
  return ranges * (ranges + type.value_size());
}

int64_t PoolSteps(const pb::DescriptorProto& type) {
  const int64_t ranges = int64_t{type.extension_range_size()} + type.reserved_range_size();
  int64_t steps = ranges * (ranges + type.field_size());
  for (const auto& inner : type.nested_type()) steps += PoolSteps(inner);
  for (const auto& inner : type.enum_type()) steps += PoolSteps(inner);
  return steps;
}

int64_t PoolSteps(const pb::FileDescriptorSet& files) {
  int64_t steps = 0;
  for (const pb::FileDescriptorProto& file : files.file()) {
    steps += int64_t{file.public_dependency_size()} * files.file_size();
    for (const auto& type : file.message_type()) steps += PoolSteps(type);
    for (const auto& type : file.enum_type()) steps += PoolSteps(type);
  }
  return steps;
}

absl::StatusOr<std::shared_ptr<const pb::DescriptorPool>> PoolOf(absl::string_view serialized,
                                                                 absl::string_view source) {
  pb::FileDescriptorSet files;
  if (!ParseBytes(serialized, &files).ok()) {
    return InvalidArgument("Source does not represent serialized file descriptor set proto: ",
                           source);
  }
  constexpr int64_t kMostSteps = 10'000'000;
  if (const int64_t steps = PoolSteps(files); steps > kMostSteps) {
    return absl::ResourceExhaustedError(
        absl::StrCat("The ranges of numbers and the public imports of ", source, " take ", steps,
                     " steps to check, more than ", kMostSteps, "; use fewer of them"));
  }
  auto pool = std::make_shared<pb::DescriptorPool>();
  for (const pb::FileDescriptorProto& file : files.file()) {
    FirstError error;
    if (pool->BuildFileCollectingErrors(file, &error) == nullptr) {
      return InvalidArgument("Failed to load FileDescriptorProto ", file.name(), ": ",
                             error.text());
    }
  }
  return pool;
}

// Reads the file of a descriptor source. As in TensorFlow, what is no file is no source.
absl::StatusOr<std::string> ReadSource(const std::string& path) {
  absl::StatusOr<std::string> bytes = ReadFile(path);
  if (bytes.ok() || absl::IsPermissionDenied(bytes.status())) return bytes;
  return InvalidArgument(
      "Source does not represent serialized file descriptor set proto: '", path,
      "' is neither local://, nor bytes:// and a FileDescriptorSet, nor a file: ",
      bytes.status().message());
}

}  // namespace

absl::StatusOr<MessageType> FindMessageType(const std::string& source, const std::string& name) {
  constexpr absl::string_view kLocal = "local://", kBytes = "bytes://", kPackage = "tensorflow.";
  MessageType type;
  if (source.empty() || source == kLocal) {
    const std::string local = absl::StartsWith(name, kPackage)
                                  ? absl::StrCat("weir.proto.", absl::StripPrefix(name, kPackage))
                                  : name;
    type.descriptor = pb::DescriptorPool::generated_pool()->FindMessageTypeByName(local);
  } else if (absl::StartsWith(source, kBytes)) {
    WEIR_ASSIGN_OR_RETURN(type.pool, PoolOf(absl::StripPrefix(source, kBytes), kBytes));
  } else {
    WEIR_ASSIGN_OR_RETURN(const std::string bytes, ReadSource(source));
    WEIR_ASSIGN_OR_RETURN(type.pool, PoolOf(bytes, source));
  }
  if (type.pool != nullptr) type.descriptor = type.pool->FindMessageTypeByName(name);
  if (type.descriptor == nullptr)
    return InvalidArgument("No descriptor found for message type ", name);
  return type;
}

absl::StatusOr<std::vector<ProtoField>> FindProtoFields(const MessageType& type,
                                                        const std::vector<std::string>& names,
                                                        bool extensions) {
  std::vector<ProtoField> fields;
  for (size_t i = 0; i < names.size(); ++i) {
    const FieldDescriptor* field = type.descriptor->FindFieldByName(names[i]);
    if (field == nullptr && extensions) {
      field = type.descriptor->file()->pool()->FindExtensionByName(names[i]);
      if (field != nullptr && field->containing_type() != type.descriptor) field = nullptr;
    }
    if (field == nullptr) {
      return InvalidArgument("Unknown field: ", names[i], " in message type ",
                             type.descriptor->full_name());
    }
    fields.push_back({field, i});
  }
  std::stable_sort(fields.begin(), fields.end(), [](const ProtoField& a, const ProtoField& b) {
    return a.descriptor->number() < b.descriptor->number();
  });
  return fields;
}

bool FieldFitsType(const FieldDescriptor& field, DataType dtype) {
  switch (field.type()) {
    case FieldDescriptor::TYPE_DOUBLE:
      return dtype == DT_DOUBLE;
    case FieldDescriptor::TYPE_FLOAT:
      return dtype == DT_FLOAT || dtype == DT_DOUBLE;
    case FieldDescriptor::TYPE_INT64:
    case FieldDescriptor::TYPE_SINT64:
    case FieldDescriptor::TYPE_SFIXED64:
      return dtype == DT_INT64;
    case FieldDescriptor::TYPE_UINT64:
    case FieldDescriptor::TYPE_FIXED64:
      return dtype == DT_UINT64;
    case FieldDescriptor::TYPE_INT32:
    case FieldDescriptor::TYPE_SINT32:
    case FieldDescriptor::TYPE_SFIXED32:
      return dtype == DT_INT32 || dtype == DT_INT64;
    case FieldDescriptor::TYPE_UINT32:
    case FieldDescriptor::TYPE_FIXED32:
      return dtype == DT_UINT32 || dtype == DT_UINT64;
    case FieldDescriptor::TYPE_BOOL:
      return dtype == DT_BOOL;
    case FieldDescriptor::TYPE_ENUM:
      return dtype == DT_INT32;
    case FieldDescriptor::TYPE_STRING:
    case FieldDescriptor::TYPE_BYTES:
    case FieldDescriptor::TYPE_MESSAGE:
    case FieldDescriptor::TYPE_GROUP:
      return dtype == DT_STRING;
  }
  return false;
}

}  // namespace weir
