#ifndef WEIR_KERNELS_BYTE_STREAM_H_
#define WEIR_KERNELS_BYTE_STREAM_H_

#include <memory>
#include <optional>
#include <string>

#include "weir/core/file.h"

namespace weir {

// The contents of a file, or what they are when decompressed, from front to back. For one thread at
// a time.
class ByteStream {
 public:
  // `compression` is "" (or "NONE"), "ZLIB" or "GZIP"; anything else is INVALID_ARGUMENT.
  static absl::StatusOr<std::unique_ptr<ByteStream>> Open(const std::string& path,
                                                          absl::string_view compression);
  virtual ~ByteStream() = default;
  // Up to `size` bytes; fewer only at the end. DATA_LOSS if they cannot be decompressed.
  virtual absl::StatusOr<size_t> Read(size_t size, char* out) = 0;
};

// The next `size` bytes, or fewer at the end: allocates no more than there is.
absl::StatusOr<std::string> ReadBytes(ByteStream& stream, uint64_t size);

// The records of a TFRecord file (core/record.h), compressed or not.
class RecordStream {
 public:
  static absl::StatusOr<RecordStream> Open(const std::string& path, absl::string_view compression);
  // The next record, or nothing at the end. DATA_LOSS for a checksum that does not fit, or a record
  // that is cut off.
  absl::StatusOr<std::optional<std::string>> Next();
  // Where the next record begins, decompressed.
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

#endif  // WEIR_KERNELS_BYTE_STREAM_H_
