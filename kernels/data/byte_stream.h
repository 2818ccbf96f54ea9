#ifndef WEIR_KERNELS_DATA_BYTE_STREAM_H_
#define WEIR_KERNELS_DATA_BYTE_STREAM_H_

#include <memory>
#include <optional>
#include <string>

#include "weir/core/io/file.h"

namespace weir {

// A sequential reader of a file, optionally decompressed. Not thread-safe.
class ByteStream {
 public:
  // `compression` is "" (or "NONE"), "ZLIB", "GZIP" or "SNAPPY" (blocks, each after its length in
  // four bytes, the high one first); other values are INVALID_ARGUMENT.
  static absl::StatusOr<std::unique_ptr<ByteStream>> Open(const std::string& path,
                                                          absl::string_view compression);
  virtual ~ByteStream() = default;
  // Reads up to `size` bytes; fewer only at the end. DATA_LOSS if decompression fails.
  virtual absl::StatusOr<size_t> Read(size_t size, char* out) = 0;
};

// Reads the next `size` bytes, or fewer at the end. Allocates no more than the file has left.
absl::StatusOr<std::string> ReadBytes(ByteStream& stream, uint64_t size);
// Skips `size` bytes, or fewer at the end. Returns the number skipped.
absl::StatusOr<uint64_t> SkipBytes(ByteStream& stream, uint64_t size);

// A sequential writer of a file, optionally compressed. Not thread-safe.
class ByteSink {
 public:
  // Creates the file, or truncates an existing one. Compressions as for ByteStream.
  static absl::StatusOr<std::unique_ptr<ByteSink>> Create(const std::string& path,
                                                          absl::string_view compression);
  virtual ~ByteSink() = default;
  virtual absl::Status Append(absl::string_view bytes) = 0;
  // Completes the file: it survives a power failure then. No other call may follow.
  virtual absl::Status Finish() = 0;
};

// Appends a record of a TFRecord file.
absl::Status AppendRecord(ByteSink& sink, absl::string_view record);

// A reader of the records of a TFRecord file (core/io/record.h), optionally compressed.
class RecordStream {
 public:
  static absl::StatusOr<RecordStream> Open(const std::string& path, absl::string_view compression);
  // Returns the next record, or nothing at the end. DATA_LOSS if a checksum does not match or a
  // record is truncated.
  absl::StatusOr<std::optional<std::string>> Next();
  // Skips bytes of the decompressed file, up to a record or beyond the end. INVALID_ARGUMENT for a
  // negative number.
  absl::Status Skip(int64_t size);
  // The offset of the next record in the decompressed file.
  uint64_t offset() const { return offset_; }

 private:
  RecordStream(std::string path, std::unique_ptr<ByteStream> bytes)
      : path_(std::move(path)), bytes_(std::move(bytes)) {}
  absl::StatusOr<std::optional<std::string>> Checked(uint64_t size, absl::string_view what);

  std::string path_;
  std::unique_ptr<ByteStream> bytes_;
  uint64_t offset_ = 0;
};

}  // namespace weir

#endif  // WEIR_KERNELS_DATA_BYTE_STREAM_H_
