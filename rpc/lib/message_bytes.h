#ifndef WEIR_RPC_LIB_MESSAGE_BYTES_H_
#define WEIR_RPC_LIB_MESSAGE_BYTES_H_

#include <grpcpp/support/byte_buffer.h>

#include "google/protobuf/message_lite.h"

namespace weir::rpc {

// Messages as gRPC carries them, for calls whose requests and responses are bytes.
grpc::ByteBuffer ToBytes(const google::protobuf::MessageLite& message);
// Returns false if the bytes are not such a message.
bool FromBytes(const grpc::ByteBuffer& bytes, google::protobuf::MessageLite* message);

}  // namespace weir::rpc

#endif  // WEIR_RPC_LIB_MESSAGE_BYTES_H_
