#ifndef WEIR_KERNELS_TEXT_PROTO_SCHEMA_H_
#define WEIR_KERNELS_TEXT_PROTO_SCHEMA_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "weir/core/tensor/dtype.h"

namespace google::protobuf {
class Descriptor;
class DescriptorPool;
class FieldDescriptor;
}  // namespace google::protobuf

// The message types and fields that DecodeProtoV2 and EncodeProto name.
namespace weir {

struct MessageType {
  std::shared_ptr<const google::protobuf::DescriptorPool> pool;  // owns the descriptor, or null
  const google::protobuf::Descriptor* descriptor = nullptr;
};

// Returns a message type from a descriptor source: "local://" or empty, "bytes://" followed by a
// serialized FileDescriptorSet, or the path of a file that contains one. Local types are protobuf's
// own and TensorFlow's, those whose descriptors are in the program (proto/BUILD). INVALID_ARGUMENT
// if there is no such source or type, RESOURCE_EXHAUSTED if its descriptors take too long to check.
absl::StatusOr<MessageType> FindMessageType(const std::string& source, const std::string& name);

struct ProtoField {
  const google::protobuf::FieldDescriptor* descriptor;
  size_t index;  // of its name in the list
};

// Returns the fields in order of their numbers. With `extensions`, the full names of extensions are
// allowed too. INVALID_ARGUMENT for an unknown name.
absl::StatusOr<std::vector<ProtoField>> FindProtoFields(const MessageType& type,
                                                        const std::vector<std::string>& names,
                                                        bool extensions);

// Returns whether tensors of this type may hold the values of a field.
bool FieldFitsType(const google::protobuf::FieldDescriptor& field, DataType dtype);

}  // namespace weir

#endif  // WEIR_KERNELS_TEXT_PROTO_SCHEMA_H_
