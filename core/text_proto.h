#ifndef WEIR_CORE_TEXT_PROTO_H_
#define WEIR_CORE_TEXT_PROTO_H_

#include <string>

#include "weir/core/status.h"

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

// Protobuf messages as text: graphs in .pbtxt files, the `checkpoint` file beside checkpoints.
namespace weir {

struct TextProtoOptions {
  // Fields that the message does not have are skipped, as newer writers may have put them there.
  bool allow_unknown_fields = false;
};

// Reads the whole text into `message`. INVALID_ARGUMENT with the line and column of the first
// mistake; `source` (a file name) stands in front of the message. Text nested more than 100 deep is
// a mistake, as it is in the binary form; so are strings that are not UTF-8.
absl::Status ParseTextProto(const std::string& text, absl::string_view source,
                            google::protobuf::Message* message,
                            const TextProtoOptions& options = {});

// The same bytes as TensorFlow writes.
std::string PrintTextProto(const google::protobuf::Message& message);

}  // namespace weir

#endif  // WEIR_CORE_TEXT_PROTO_H_
