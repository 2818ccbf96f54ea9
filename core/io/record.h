#ifndef WEIR_CORE_IO_RECORD_H_
#define WEIR_CORE_IO_RECORD_H_

#include <memory>
#include <optional>
#include <string>

#include "weir/core/io/file.h"
#include "weir/core/tensor/api.h"

// TFRecord files: sequences of byte strings, each with its length and two checksums
// (docs/checkpoint_format.md). Event files have this format. Compression is not supported.
namespace WEIR_API weir {

// Writes records. Not thread-safe. The destructor flushes, but only Close reports errors.
class RecordWriter {
 public:
  // Creates the file, or truncates an existing one.
  static absl::StatusOr<std::unique_ptr<RecordWriter>> Create(const std::string& path);
  // Adds a record of any bytes.
  absl::Status Append(absl::string_view record);
  // Hands all buffered data to the operating system, which makes it visible to other processes.
  absl::Status Flush() { return file_.Flush(); }
  // Flushes and waits until the data would survive a power failure; flushes and closes the file,
  // once.
  absl::Status Sync() { return file_.Sync(); }
  absl::Status Close() { return file_.Close(); }

 private:
  explicit RecordWriter(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}
  BufferedFile file_;
};

// Reads records. Not thread-safe.
class RecordReader {
 public:
  // Opens a file at its first record. NOT_FOUND if there is none.
  static absl::StatusOr<std::unique_ptr<RecordReader>> Open(const std::string& path);
  // Returns the next record, or nullopt at the end of the file. Returns DATA_LOSS with path and
  // offset for a wrong checksum or a truncated record. The offset does not advance then, so that a
  // file still being written can be read further (open it again and Seek).
  absl::StatusOr<std::optional<std::string>> Next();
  // The offset of the next record.
  uint64_t offset() const { return offset_; }
  // Continues at `offset`, which is that of a record.
  void Seek(uint64_t offset) { offset_ = offset; }

 private:
  explicit RecordReader(std::unique_ptr<ReadableFile> file) : file_(std::move(file)) {}
  absl::Status ReadBytes(uint64_t offset, size_t size, char* out);

  const std::unique_ptr<ReadableFile> file_;
  uint64_t offset_ = 0;
  std::string buffer_;  // bytes of the file, starting at buffer_start_
  uint64_t buffer_start_ = 0;
};

}  // namespace weir

#endif  // WEIR_CORE_IO_RECORD_H_
