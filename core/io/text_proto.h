#ifndef WEIR_CORE_IO_TEXT_PROTO_H_
#define WEIR_CORE_IO_TEXT_PROTO_H_

#include <string>

#include "weir/core/tensor/api.h"
#include "weir/core/tensor/status.h"

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

// Protobuf text format: graphs in .pbtxt files, the `checkpoint` file of checkpoint directories.
namespace WEIR_API weir {

// How text is parsed.
struct TextProtoOptions {
  // Skips fields that the message does not have, which newer writers may have added.
  bool allow_unknown_fields = false;
};

// Parses text into `message`. Returns INVALID_ARGUMENT with `source` (a file name) and the line and
// column of the first mistake. Text nested more than 100 deep is a mistake, as in the binary
// format; so are strings that are not UTF-8.
absl::Status ParseTextProto(const std::string& text, absl::string_view source,
                            google::protobuf::Message* message,
                            const TextProtoOptions& options = {});

// Returns the same bytes as TensorFlow.
std::string PrintTextProto(const google::protobuf::Message& message);

}  // namespace weir

#endif  // WEIR_CORE_IO_TEXT_PROTO_H_
