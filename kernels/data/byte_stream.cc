#include "weir/kernels/data/byte_stream.h"

#include <zlib.h>

#include <algorithm>

#include "weir/core/io/coding.h"
#include "weir/core/io/snappy.h"
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

// Snappy blocks. The length of one allocates no more than the file has left.
class SnappyStream final : public ByteStream {
 public:
  SnappyStream(std::string path, std::unique_ptr<ByteStream> from)
      : path_(std::move(path)), from_(std::move(from)) {}

  absl::StatusOr<size_t> Read(size_t size, char* out) override {
    size_t done = 0;
    while (done < size) {
      ThrowIfCancelled();
      if (used_ == block_.size()) {
        WEIR_ASSIGN_OR_RETURN(const bool more, Fill());
        if (!more) break;
      }
      const size_t n = std::min(size - done, block_.size() - used_);
      std::copy_n(block_.data() + used_, n, out + done);
      used_ += n;
      done += n;
    }
    return done;
  }

 private:
  absl::StatusOr<bool> Fill() {
    constexpr size_t kLength = 4;
    char header[kLength];
    WEIR_ASSIGN_OR_RETURN(const size_t got, from_->Read(kLength, header));
    if (got == 0) return false;
    if (got < kLength) return DataLoss(path_, ": compressed data is truncated");
    std::reverse(header, header + kLength);
    const uint32_t size = LoadFixed32(header);
    WEIR_ASSIGN_OR_RETURN(const std::string packed, ReadBytes(*from_, size));
    if (packed.size() < size) return DataLoss(path_, ": compressed data is truncated");
    used_ = 0;
    if (!SnappyDecompress(packed, &block_)) return DataLoss(path_, ": decompression failed");
    return true;
  }

  const std::string path_;
  const std::unique_ptr<ByteStream> from_;
  std::string block_;
  size_t used_ = 0;
};

class PlainSink final : public ByteSink {
 public:
  explicit PlainSink(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}
  absl::Status Append(absl::string_view bytes) override { return file_.Append(bytes); }
  absl::Status Finish() override {
    absl::Status status = file_.Sync();
    status.Update(file_.Close());
    return status;
  }

 private:
  BufferedFile file_;
};

class DeflatingSink final : public ByteSink {
 public:
  DeflatingSink(std::unique_ptr<ByteSink> to, bool is_gzip) : to_(std::move(to)) {
    constexpr int kMemoryLevel = 8;  // zlib's default
    deflateInit2(&z_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, is_gzip ? MAX_WBITS + 16 : MAX_WBITS,
                 kMemoryLevel, Z_DEFAULT_STRATEGY);
  }
  ~DeflatingSink() override { deflateEnd(&z_); }
  DeflatingSink(const DeflatingSink&) = delete;
  DeflatingSink& operator=(const DeflatingSink&) = delete;

  absl::Status Append(absl::string_view bytes) override {
    constexpr size_t kPiece = size_t{1} << 30;
    for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kPiece)))
      WEIR_RETURN_IF_ERROR(Deflate(bytes.substr(0, kPiece), Z_NO_FLUSH));
    return absl::OkStatus();
  }
  absl::Status Finish() override {
    WEIR_RETURN_IF_ERROR(Deflate({}, Z_FINISH));
    return to_->Finish();
  }

 private:
  absl::Status Deflate(absl::string_view bytes, int flush) {
    z_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    z_.avail_in = static_cast<uInt>(bytes.size());
    do {
      z_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
      z_.avail_out = static_cast<uInt>(buffer_.size());
      deflate(&z_, flush);
      WEIR_RETURN_IF_ERROR(
          to_->Append(absl::string_view(buffer_).substr(0, buffer_.size() - z_.avail_out)));
    } while (z_.avail_out == 0);
    return absl::OkStatus();
  }

  const std::unique_ptr<ByteSink> to_;
  std::string buffer_ = std::string(kBufferSize, '\0');
  z_stream z_ = {};
};

class SnappySink final : public ByteSink {
 public:
  explicit SnappySink(std::unique_ptr<ByteSink> to) : to_(std::move(to)) {}
  absl::Status Append(absl::string_view bytes) override {
    while (!bytes.empty()) {
      const size_t n = std::min(bytes.size(), kBufferSize - block_.size());
      block_.append(bytes.data(), n);
      bytes.remove_prefix(n);
      if (block_.size() == kBufferSize) WEIR_RETURN_IF_ERROR(Flush());
    }
    return absl::OkStatus();
  }
  absl::Status Finish() override {
    if (!block_.empty()) WEIR_RETURN_IF_ERROR(Flush());
    return to_->Finish();
  }

 private:
  absl::Status Flush() {
    const std::string packed = SnappyCompress(block_);
    block_.clear();
    std::string length;
    PutFixed32(&length, static_cast<uint32_t>(packed.size()));
    std::reverse(length.begin(), length.end());
    WEIR_RETURN_IF_ERROR(to_->Append(length));
    return to_->Append(packed);
  }

  const std::unique_ptr<ByteSink> to_;
  std::string block_;
};

enum class Compression { kNone, kZlib, kGzip, kSnappy };

absl::StatusOr<Compression> CompressionOf(absl::string_view name) {
  if (name.empty() || name == "NONE") return Compression::kNone;
  if (name == "ZLIB") return Compression::kZlib;
  if (name == "GZIP") return Compression::kGzip;
  if (name == "SNAPPY") return Compression::kSnappy;
  return InvalidArgument("Unsupported compression_type: ", name);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ByteStream>> ByteStream::Open(const std::string& path,
                                                             absl::string_view compression) {
  WEIR_ASSIGN_OR_RETURN(const Compression kind, CompressionOf(compression));
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, Files().Open(path));
  std::unique_ptr<ByteStream> plain = std::make_unique<PlainStream>(std::move(file));
  if (kind == Compression::kNone) return plain;
  if (kind == Compression::kSnappy) return std::make_unique<SnappyStream>(path, std::move(plain));
  return std::make_unique<InflatingStream>(path, std::move(plain), kind == Compression::kGzip);
}

absl::StatusOr<std::unique_ptr<ByteSink>> ByteSink::Create(const std::string& path,
                                                           absl::string_view compression) {
  WEIR_ASSIGN_OR_RETURN(const Compression kind, CompressionOf(compression));
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, Files().Create(path));
  std::unique_ptr<ByteSink> plain = std::make_unique<PlainSink>(std::move(file));
  if (kind == Compression::kNone) return plain;
  if (kind == Compression::kSnappy) return std::make_unique<SnappySink>(std::move(plain));
  return std::make_unique<DeflatingSink>(std::move(plain), kind == Compression::kGzip);
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

absl::StatusOr<uint64_t> SkipBytes(ByteStream& stream, uint64_t size) {
  std::string piece(std::min<uint64_t>(size, kBufferSize), '\0');
  uint64_t skipped = 0;
  while (skipped < size) {
    const auto wanted = static_cast<size_t>(std::min<uint64_t>(size - skipped, piece.size()));
    WEIR_ASSIGN_OR_RETURN(const size_t got, stream.Read(wanted, piece.data()));
    skipped += got;
    if (got < wanted) break;
  }
  return skipped;
}

}  // namespace weir
