#include "weir/rpc/read_request.h"

#include <grpcpp/support/proto_buffer_reader.h>

#include <algorithm>

namespace weir::rpc {

namespace {

// How much is handed to the parser at a time: what one piece may take beyond the bound is small.
constexpr int kPiece = 1 << 14;
constexpr uint64_t kFree = 32 << 20;
constexpr uint64_t kPerByte = 16;

// A stream that ends when the messages made of it take too much memory.
class BoundedStream final : public google::protobuf::io::ZeroCopyInputStream {
 public:
  BoundedStream(google::protobuf::io::ZeroCopyInputStream* in, const google::protobuf::Arena& arena)
      : in_(*in), arena_(arena) {}

  bool Next(const void** data, int* size) override {
    if (arena_.SpaceAllocated() > kFree + kPerByte * static_cast<uint64_t>(count_))
      is_too_large_ = true;
    if (is_too_large_ || (left_ == 0 && !Refill())) return false;
    *data = piece_;
    *size = std::min(left_, kPiece);
    Take(*size);
    return true;
  }
  void BackUp(int count) override { Take(-count); }
  bool Skip(int count) override {
    while (count > 0) {
      if (left_ == 0 && !Refill()) return false;
      const int skipped = std::min(left_, count);
      Take(skipped);
      count -= skipped;
    }
    return true;
  }
  int64_t ByteCount() const override { return count_; }
  bool is_too_large() const { return is_too_large_; }

 private:
  bool Refill() {
    const void* data = nullptr;
    while (left_ == 0) {
      if (!in_.Next(&data, &left_)) return false;
    }
    piece_ = static_cast<const char*>(data);
    return true;
  }
  void Take(int count) {
    piece_ += count;
    left_ -= count;
    count_ += count;
  }

  google::protobuf::io::ZeroCopyInputStream& in_;
  const google::protobuf::Arena& arena_;
  const char* piece_ = nullptr;
  int left_ = 0;
  int64_t count_ = 0;
  bool is_too_large_ = false;
};

}  // namespace

google::protobuf::ArenaOptions RequestArena() {
  google::protobuf::ArenaOptions options;
  options.start_block_size = 4 << 10;
  options.max_block_size = 64 << 10;
  return options;
}

absl::Status ReadRequest(grpc::ByteBuffer* bytes, const google::protobuf::Arena& arena,
                         google::protobuf::MessageLite* message) {
  bool parsed = false, is_too_large = false;
  {
    grpc::ProtoBufferReader reader(bytes);
    if (!reader.status().ok()) return InvalidArgument("The request cannot be read");
    BoundedStream stream(&reader, arena);
    parsed = message->ParseFromZeroCopyStream(&stream);
    is_too_large = stream.is_too_large();
  }
  const size_t size = bytes->Length();
  bytes->Clear();
  if (is_too_large) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "The request of ", size, " bytes takes more than ", kPerByte,
        " times as much memory: it consists of messages that have next to nothing in them"));
  }
  if (!parsed) return InvalidArgument("The request is no ", message->GetTypeName());
  return absl::OkStatus();
}

}  // namespace weir::rpc
