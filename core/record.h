#ifndef WEIR_CORE_RECORD_H_
#define WEIR_CORE_RECORD_H_

#include <memory>
#include <optional>
#include <string>

#include "weir/core/file.h"

// TFRecord files: byte strings one after the other, each with its length and two checksums
// (docs/checkpoint_format.md). Event files are such files. Not compressed.
namespace weir {

// For one thread at a time. Destroying it flushes, but only Close tells of errors.
class RecordWriter {
 public:
  static absl::StatusOr<std::unique_ptr<RecordWriter>> Create(const std::string& path);
  absl::Status Append(absl::string_view record);
  // Hands everything to the operating system, where other processes see it.
  absl::Status Flush() { return file_.Flush(); }
  absl::Status Sync() { return file_.Sync(); }
  absl::Status Close() { return file_.Close(); }

 private:
  explicit RecordWriter(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}
  BufferedFile file_;
};

// For one thread at a time.
class RecordReader {
 public:
  static absl::StatusOr<std::unique_ptr<RecordReader>> Open(const std::string& path);
  // The next record, or nothing at the end of the file. DATA_LOSS with path and offset for a
  // checksum that does not fit or a record that is cut off; the place is kept then, so that a file
  // that is still being written can be read on (open it anew and Seek).
  absl::StatusOr<std::optional<std::string>> Next();
  // Where the next record begins.
  uint64_t offset() const { return offset_; }
  void Seek(uint64_t offset) { offset_ = offset; }

 private:
  explicit RecordReader(std::unique_ptr<ReadableFile> file) : file_(std::move(file)) {}
  absl::Status ReadBytes(uint64_t offset, size_t size, char* out);

  const std::unique_ptr<ReadableFile> file_;
  uint64_t offset_ = 0;
  std::string buffer_;  // bytes of the file from buffer_start_ on
  uint64_t buffer_start_ = 0;
};

}  // namespace weir

#endif  // WEIR_CORE_RECORD_H_
