#ifndef WEIR_RPC_READ_REQUEST_H_
#define WEIR_RPC_READ_REQUEST_H_

#include <grpcpp/support/byte_buffer.h>

#include "google/protobuf/arena.h"
#include "google/protobuf/message_lite.h"
#include "weir/core/status.h"

namespace weir::rpc {

// Where a request lies, and all messages in it.
google::protobuf::ArenaOptions RequestArena();

// Parses a request into `message`, which lies in `arena`, and empties `bytes`.
//
// Two bytes on the wire can be an empty message, which takes a hundred in memory or more. What the
// messages take is therefore bounded by what has arrived: 16 bytes for each byte, and 32 MB. Beyond
// it, RESOURCE_EXHAUSTED. INVALID_ARGUMENT for bytes that are no such message.
absl::Status ReadRequest(grpc::ByteBuffer* bytes, const google::protobuf::Arena& arena,
                         google::protobuf::MessageLite* message);

}  // namespace weir::rpc

#endif  // WEIR_RPC_READ_REQUEST_H_
