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

// The damage that a RecordStream has skipped. Offsets are those of the decompressed file.
struct RecordDamage {
  uint64_t begin = 0, end = 0;  // [begin, end) holds no intact record
  int64_t records = 0;          // damaged records whose lengths are intact; 0 if there are none
  bool is_torn_tail = false;    // the file ends within a record, and no record follows
};

// A reader of the records of a TFRecord file (core/io/record.h), optionally compressed.
class RecordStream {
 public:
  // A record of more than `max_record_bytes` is RESOURCE_EXHAUSTED, and no memory is allocated for
  // it. Without that limit, a record allocates as many bytes as the decompressed file has.
  static absl::StatusOr<RecordStream> Open(const std::string& path, absl::string_view compression,
                                           uint64_t max_record_bytes = INT64_MAX);
  // Returns the next record, or nothing at the end. DATA_LOSS if a checksum does not match or a
  // record is truncated; the offset does not advance then.
  absl::StatusOr<std::optional<std::string>> Next();
  // After DATA_LOSS of Next: skips to the next record whose length is intact, or to the end of the
  // file. Takes time in proportion to the bytes of the file. DATA_LOSS if the decompression failed,
  // after which nothing can be read.
  absl::StatusOr<RecordDamage> SkipDamage();
  // Skips bytes of the decompressed file, up to a record or beyond the end. INVALID_ARGUMENT for a
  // negative number. Not after an error.
  absl::Status Skip(int64_t size);
  // The offset of the next record in the decompressed file.
  uint64_t offset() const { return offset_; }

 private:
  RecordStream(std::string path, std::unique_ptr<ByteStream> bytes, uint64_t max_record_bytes)
      : path_(std::move(path)), bytes_(std::move(bytes)), max_record_bytes_(max_record_bytes) {}
  absl::StatusOr<std::string> Take(uint64_t size);
  void PutBack(const std::string& bytes);
  bool HasAhead(uint64_t size);
  bool IsHeader(size_t at) const;
  size_t FindHeader(size_t from);

  std::string path_;
  std::unique_ptr<ByteStream> bytes_;
  uint64_t max_record_bytes_;
  uint64_t offset_ = 0;
  absl::Status failed_;  // of the decompression
  // Bytes that a Next which failed has put back; those before ahead_used_ have been taken.
  std::string ahead_;
  size_t ahead_used_ = 0;
  uint64_t searched_ = 0;  // bytes of records in which SkipDamage has searched for others
};

}  // namespace weir

#endif  // WEIR_KERNELS_DATA_BYTE_STREAM_H_
