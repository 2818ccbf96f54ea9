#ifndef WEIR_CORE_IO_PROTO_FILE_H_
#define WEIR_CORE_IO_PROTO_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "weir/core/tensor/status.h"

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

// Files that hold one protobuf message, as people pass them: binary or text, plain or compressed by
// gzip. The contents tell the form, whatever the name of the file says.
namespace weir {

enum class ProtoForm : uint8_t { kBinary, kText, kGzip };

// As many bytes of a file tell its form.
inline constexpr size_t kProtoHeadBytes = 512;

// Returns the form of a file that begins with `head`. Text is UTF-8 and has no control characters
// other than white space. The tags and lengths of a serialized graph are neither: one stands among
// the first bytes of any message whose fields are messages.
ProtoForm ProtoFormOf(absl::string_view head);

// Reads a file, and decompresses it if it is compressed by gzip. RESOURCE_EXHAUSTED if there are
// 2 GiB or more, which no message has.
absl::StatusOr<std::string> ReadProtoFile(const std::string& path);

// Parses a message in binary or text. INVALID_ARGUMENT, with `source` (a file name).
absl::Status ParseProto(const std::string& bytes, absl::string_view source,
                        google::protobuf::Message* message);

}  // namespace weir

#endif  // WEIR_CORE_IO_PROTO_FILE_H_
