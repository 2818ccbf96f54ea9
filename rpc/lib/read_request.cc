#include "weir/rpc/lib/read_request.h"

#include <grpcpp/support/proto_buffer_reader.h>

#include <algorithm>

#include "weir/rpc/lib/request_size.h"

namespace weir::rpc {

namespace {

constexpr uint64_t kPerByte = 3;
google::protobuf::ArenaOptions ArenaOptions() {
  google::protobuf::ArenaOptions options;
  options.start_block_size = 4 << 10;
  options.max_block_size = 64 << 10;
  return options;
}

}  // namespace

ParsedRequest::ParsedRequest(uint64_t free_bytes, uint64_t copies)
    : free_bytes_(free_bytes), copies_(copies), arena_(ArenaOptions()) {}

absl::Status ParsedRequest::ParseInto(grpc::ByteBuffer* bytes,
                                      google::protobuf::MessageLite* message) {
  const uint64_t received = bytes->Length();
  uint64_t size = 0;
  {
    grpc::ProtoBufferReader reader(bytes);
    if (!reader.status().ok()) return InvalidArgument("Cannot read the request");
    WEIR_ASSIGN_OR_RETURN(size, ParsedSize(&reader, *message));
  }
  if (size > std::max(free_bytes_, kPerByte * received)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "The request of ", received, " bytes would take ", size,
        " bytes of memory, since it consists of small messages. A request may take ", kPerByte,
        " times its size, or ", free_bytes_, " bytes (weir serve --max-request-mb)"));
  }
  WEIR_RETURN_IF_ERROR(
      reservation_.Take(copies_ * size, absl::StrCat("the request of ", received, " bytes")));
  bool is_parsed = false;
  {
    grpc::ProtoBufferReader reader(bytes);
    is_parsed = reader.status().ok() && message->ParseFromZeroCopyStream(&reader);
  }
  bytes->Clear();
  if (!is_parsed) return InvalidArgument("Cannot parse the request as ", message->GetTypeName());
  return absl::OkStatus();
}

}  // namespace weir::rpc
