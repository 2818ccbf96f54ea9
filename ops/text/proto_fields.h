#ifndef WEIR_OPS_TEXT_PROTO_FIELDS_H_
#define WEIR_OPS_TEXT_PROTO_FIELDS_H_

#include <string>
#include <vector>

#include "weir/core/tensor/api.h"
#include "weir/ops/lib/array.h"

// Builders of ops that read and write serialized protobuf messages of any type.
namespace WEIR_API weir {

// Where the descriptor of a message type comes from: empty for TensorFlow's own messages, such as
// tensorflow.Example, the path of a file with a serialized FileDescriptorSet (protoc
// --descriptor_set_out --include_imports), or "bytes://" followed by one.
//
// A field's values have one of these types: double (double), float (float or double), int32, sint32
// and sfixed32 (int32 or int64), int64, sint64 and sfixed64 (int64), uint32 and fixed32 (uint32 or
// uint64), uint64 and fixed64 (uint64), bool (bool), enum (int32); strings, bytes, messages and
// groups are strings, messages in serialized form.

// Options of DecodeProto.
struct DecodeProtoOptions {
  std::string descriptor_source = {};     // see above
  std::string message_format = "binary";  // or "text"
  bool sanitize = false;  // parse each message first: checks all of it, and costs time
};
// What DecodeProto returns.
struct DecodedProto {
  Output sizes;    // int32, [shape of bytes..., number of fields]: the number of values
  Outputs values;  // per field, [shape of bytes..., largest number of values, at least 1]
};
// Returns the values of fields of the messages in a tensor of strings. What a message lacks has the
// default value of its field. DATA_LOSS for bytes that are no such message.
DecodedProto DecodeProto(Output bytes, absl::string_view message_type,
                         const std::vector<std::string>& field_names, const DataTypes& output_types,
                         const DecodeProtoOptions& options = {}, absl::string_view name = {});

// Serializes messages, [batch shape...], from the values of fields, [batch shape..., most values].
// sizes, int32, [batch shape..., number of fields], tells how many values each message has.
Output EncodeProto(Output sizes, const Outputs& values, const std::vector<std::string>& field_names,
                   absl::string_view message_type, const std::string& descriptor_source = {},
                   absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_TEXT_PROTO_FIELDS_H_
