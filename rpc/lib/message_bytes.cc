#include "weir/rpc/lib/message_bytes.h"

#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/slice.h>

namespace weir::rpc {

grpc::ByteBuffer ToBytes(const google::protobuf::MessageLite& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

bool FromBytes(const grpc::ByteBuffer& bytes, google::protobuf::MessageLite* message) {
  grpc::ByteBuffer read = bytes;  // shares the slices; the reader takes a buffer that is not const
  grpc::ProtoBufferReader reader(&read);
  return reader.status().ok() && message->ParseFromZeroCopyStream(&reader);
}

}  // namespace weir::rpc
