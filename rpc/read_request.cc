#include "weir/rpc/read_request.h"

#include <grpcpp/support/proto_buffer_reader.h>

#include <algorithm>

namespace weir::rpc {

namespace {

// The number of bytes passed to the parser at a time; limits how far one chunk can exceed the
// memory bound.
constexpr int kChunk = 1 << 14;
constexpr uint64_t kBaseBytes = 32 << 20;
constexpr uint64_t kPerByte = 16;

// A stream that ends when the messages parsed from it take too much memory.
class BoundedStream final : public google::protobuf::io::ZeroCopyInputStream {
 public:
  BoundedStream(google::protobuf::io::ZeroCopyInputStream* in, const google::protobuf::Arena& arena)
      : in_(*in), arena_(arena) {}

  bool Next(const void** data, int* size) override {
    if (arena_.SpaceAllocated() > kBaseBytes + kPerByte * static_cast<uint64_t>(count_))
      is_too_large_ = true;
    if (is_too_large_ || (left_ == 0 && !Refill())) return false;
    *data = chunk_;
    *size = std::min(left_, kChunk);
    Advance(*size);
    return true;
  }
  void BackUp(int count) override { Advance(-count); }
  bool Skip(int count) override {
    while (count > 0) {
      if (left_ == 0 && !Refill()) return false;
      const int skipped = std::min(left_, count);
      Advance(skipped);
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
    chunk_ = static_cast<const char*>(data);
    return true;
  }
  void Advance(int count) {
    chunk_ += count;
    left_ -= count;
    count_ += count;
  }

  google::protobuf::io::ZeroCopyInputStream& in_;
  const google::protobuf::Arena& arena_;
  const char* chunk_ = nullptr;
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
    if (!reader.status().ok()) return InvalidArgument("Cannot read the request");
    BoundedStream stream(&reader, arena);
    parsed = message->ParseFromZeroCopyStream(&stream);
    is_too_large = stream.is_too_large();
  }
  const size_t size = bytes->Length();
  bytes->Clear();
  if (is_too_large) {
    return absl::ResourceExhaustedError(
        absl::StrCat("The request of ", size, " bytes takes more than ", kPerByte,
                     " times its size in memory: it consists of nearly empty messages"));
  }
  if (!parsed) return InvalidArgument("Cannot parse the request as ", message->GetTypeName());
  return absl::OkStatus();
}

}  // namespace weir::rpc
