#include "weir/kernels/data/byte_stream.h"

#include <zlib.h>

#include <algorithm>

#include "weir/core/io/coding.h"
#include "weir/core/io/crc32c.h"
#include "weir/core/tensor/cancellation.h"

namespace weir {

namespace {

constexpr size_t kBufferSize = size_t{1} << 18;

class PlainStream final : public ByteStream {
 public:
  explicit PlainStream(std::unique_ptr<ReadableFile> file) : file_(std::move(file)) {}

  absl::StatusOr<size_t> Read(size_t size, char* out) override {
    size_t done = 0;
    while (done < size) {
      ThrowIfCancelled();
      if (used_ == buffer_.size()) {
        WEIR_RETURN_IF_ERROR(Fill());
        if (buffer_.empty()) break;
      }
      const size_t n = std::min(size - done, buffer_.size() - used_);
      std::copy_n(buffer_.data() + used_, n, out + done);
      used_ += n;
      done += n;
    }
    return done;
  }

 private:
  absl::Status Fill() {
    buffer_.resize(kBufferSize);
    used_ = 0;
    const absl::StatusOr<size_t> got = file_->ReadSome(offset_, kBufferSize, buffer_.data());
    buffer_.resize(got.value_or(0));
    offset_ += buffer_.size();
    return got.status();
  }

  const std::unique_ptr<ReadableFile> file_;
  uint64_t offset_ = 0;
  std::string buffer_;
  size_t used_ = 0;
};

// A file may consist of several concatenated compressed streams, as gzip allows.
class InflatingStream final : public ByteStream {
 public:
  InflatingStream(std::string path, std::unique_ptr<ByteStream> from, bool is_gzip)
      : path_(std::move(path)), from_(std::move(from)) {
    inflateInit2(&z_, is_gzip ? MAX_WBITS + 16 : MAX_WBITS);
  }
  ~InflatingStream() override { inflateEnd(&z_); }
  InflatingStream(const InflatingStream&) = delete;
  InflatingStream& operator=(const InflatingStream&) = delete;

  absl::StatusOr<size_t> Read(size_t size, char* out) override {
    size_t done = 0;
    while (done < size) {
      ThrowIfCancelled();
      if (z_.avail_in == 0) WEIR_RETURN_IF_ERROR(Fill());
      if (z_.avail_in == 0 && between_streams_) break;
      if (z_.avail_in == 0) return DataLoss(path_, ": compressed data is truncated");
      const size_t room = std::min(size - done, size_t{1} << 30);
      z_.next_out = reinterpret_cast<Bytef*>(out + done);
      z_.avail_out = static_cast<uInt>(room);
      const int result = inflate(&z_, Z_NO_FLUSH);
      done += room - z_.avail_out;
      between_streams_ = result == Z_STREAM_END;
      if (between_streams_) {
        inflateReset(&z_);
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        return DataLoss(path_, ": decompression failed: ", z_.msg != nullptr ? z_.msg : "");
      }
    }
    return done;
  }

 private:
  absl::Status Fill() {
    buffer_.resize(kBufferSize);
    WEIR_ASSIGN_OR_RETURN(const size_t got, from_->Read(kBufferSize, buffer_.data()));
    z_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
    z_.avail_in = static_cast<uInt>(got);
    return absl::OkStatus();
  }

  const std::string path_;
  const std::unique_ptr<ByteStream> from_;
  z_stream z_ = {};
  bool between_streams_ = true;
  std::string buffer_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ByteStream>> ByteStream::Open(const std::string& path,
                                                             absl::string_view compression) {
  const bool is_gzip = compression == "GZIP";
  const bool is_plain = compression.empty() || compression == "NONE";
  if (!is_plain && !is_gzip && compression != "ZLIB")
    return InvalidArgument("Unsupported compression_type: ", compression);
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, Files().Open(path));
  std::unique_ptr<ByteStream> plain = std::make_unique<PlainStream>(std::move(file));
  if (is_plain) return plain;
  return std::make_unique<InflatingStream>(path, std::move(plain), is_gzip);
}

absl::StatusOr<std::string> ReadBytes(ByteStream& stream, uint64_t size) {
  std::string bytes;
  while (bytes.size() < size) {
    const size_t begin = bytes.size();
    const auto piece = static_cast<size_t>(std::min<uint64_t>(size - begin, size_t{1} << 24));
    bytes.resize(begin + piece);
    WEIR_ASSIGN_OR_RETURN(const size_t got, stream.Read(piece, bytes.data() + begin));
    bytes.resize(begin + got);
    if (got < piece) break;
  }
  return bytes;
}

absl::StatusOr<RecordStream> RecordStream::Open(const std::string& path,
                                                absl::string_view compression) {
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<ByteStream> bytes, ByteStream::Open(path, compression));
  return RecordStream(path, std::move(bytes));
}

// Reads `size` bytes followed by their checksum, or nothing at the end of the file.
absl::StatusOr<std::optional<std::string>> RecordStream::Checked(uint64_t size,
                                                                 absl::string_view what) {
  constexpr size_t kChecksum = 4;
  WEIR_ASSIGN_OR_RETURN(std::string bytes, ReadBytes(*bytes_, size + kChecksum));
  if (bytes.empty()) return std::nullopt;
  if (bytes.size() < size + kChecksum) return DataLoss(path_, ": truncated record at ", offset_);
  const uint32_t stored = LoadFixed32(bytes.data() + size);
  bytes.resize(size);
  if (stored == MaskCrc32c(Crc32c(bytes))) return bytes;
  return DataLoss(path_, ": corrupted record at ", offset_, ": checksum of the ", what,
                  " does not match");
}

absl::StatusOr<std::optional<std::string>> RecordStream::Next() {
  WEIR_ASSIGN_OR_RETURN(const std::optional<std::string> header,
                        Checked(sizeof(uint64_t), "length"));
  if (!header) return std::nullopt;
  const uint64_t size = LoadFixed64(header->data());
  if (size > INT64_MAX) return DataLoss(path_, ": corrupted record at ", offset_);
  WEIR_ASSIGN_OR_RETURN(std::optional<std::string> record, Checked(size, "record"));
  if (!record) return DataLoss(path_, ": truncated record at ", offset_);
  offset_ += 12 + size + 4;
  return record;
}

}  // namespace weir
