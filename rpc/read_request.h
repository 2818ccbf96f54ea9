#ifndef WEIR_RPC_READ_REQUEST_H_
#define WEIR_RPC_READ_REQUEST_H_

#include <grpcpp/support/byte_buffer.h>

#include "google/protobuf/arena.h"
#include "google/protobuf/message_lite.h"
#include "weir/core/tensor/status.h"

namespace weir::rpc {

// Options of the arena that holds a request and all its submessages.
google::protobuf::ArenaOptions RequestArena();

// Parses a request into `message`, which is in `arena`, and empties `bytes`.
//
// Two bytes on the wire can be an empty message, which takes a hundred bytes or more in memory. So
// the memory of the parsed message is limited to 16 bytes per received byte plus 32 MB; more is
// RESOURCE_EXHAUSTED. Returns INVALID_ARGUMENT if the bytes cannot be parsed.
absl::Status ReadRequest(grpc::ByteBuffer* bytes, const google::protobuf::Arena& arena,
                         google::protobuf::MessageLite* message);

}  // namespace weir::rpc

#endif  // WEIR_RPC_READ_REQUEST_H_
