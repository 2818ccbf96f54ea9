#ifndef WEIR_RPC_LIB_READ_REQUEST_H_
#define WEIR_RPC_LIB_READ_REQUEST_H_

#include <grpcpp/support/byte_buffer.h>

#include "google/protobuf/arena.h"
#include "google/protobuf/message_lite.h"
#include "weir/core/tensor/status.h"
#include "weir/rpc/lib/memory_reservation.h"

namespace weir::rpc {

// A request that has been received, and the memory of its parsed message. Not thread-safe.
//
// Two bytes on the wire can be an empty message, which takes a hundred bytes or more in memory. So
// the size of the parsed message is computed from the bytes (request_size.h) before it is parsed.
// It may be 3 times the size of the bytes, so that a request takes 4 times its bytes at most, but
// always 64 MB. The memory that all requests take counts against the memory that is left for
// tensors.
class ParsedRequest {
 public:
  // `copies`: how many times the memory of the message is reserved, for what is made of it too.
  explicit ParsedRequest(uint64_t free_bytes, uint64_t copies = 1);
  ParsedRequest(const ParsedRequest&) = delete;
  ParsedRequest& operator=(const ParsedRequest&) = delete;

  // Parses `bytes`, and empties them. The message is valid as long as this object. Call once.
  // Returns RESOURCE_EXHAUSTED if the message is too large, INVALID_ARGUMENT if the bytes cannot be
  // parsed.
  template <class Message>
  absl::StatusOr<Message*> Parse(grpc::ByteBuffer* bytes) {
    auto* const message = google::protobuf::Arena::CreateMessage<Message>(&arena_);
    WEIR_RETURN_IF_ERROR(ParseInto(bytes, message));
    return message;
  }

 private:
  absl::Status ParseInto(grpc::ByteBuffer* bytes, google::protobuf::MessageLite* message);

  const uint64_t free_bytes_, copies_;
  google::protobuf::Arena arena_;
  MemoryReservation reservation_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_LIB_READ_REQUEST_H_
