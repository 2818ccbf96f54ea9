#include "weir/rpc/lib/read_request.h"

#include <grpcpp/support/proto_buffer_reader.h>

#include <algorithm>
#include <atomic>

#include "weir/core/tensor/allocator.h"
#include "weir/rpc/lib/request_size.h"

namespace weir::rpc {

namespace {

constexpr uint64_t kPerByte = 3;
// Asking the system how much memory is left takes as long as parsing a request of this size.
constexpr int64_t kCheckedBytes = 1 << 20;

// The memory of all parsed requests.
std::atomic<int64_t> reserved_by_all{0};

google::protobuf::ArenaOptions ArenaOptions() {
  google::protobuf::ArenaOptions options;
  options.start_block_size = 4 << 10;
  options.max_block_size = 64 << 10;
  return options;
}

}  // namespace

ParsedRequest::ParsedRequest(uint64_t free_bytes)
    : free_bytes_(free_bytes), arena_(ArenaOptions()) {}
ParsedRequest::~ParsedRequest() { reserved_by_all -= reserved_; }

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
  reserved_ = static_cast<int64_t>(size);
  const int64_t all = reserved_by_all += reserved_;
  if (reserved_ > kCheckedBytes) {
    const int64_t free = HostAllocator().bytes_free();
    if (all > free) {
      return absl::ResourceExhaustedError(
          absl::StrCat("The request of ", received, " bytes would take ", size,
                       " bytes of memory. The requests in progress take ", all - reserved_,
                       " bytes, tensors ", HostAllocator().bytes_in_use(), ", and ", free,
                       " are left (weir serve --max-memory-mb)"));
    }
  }
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
