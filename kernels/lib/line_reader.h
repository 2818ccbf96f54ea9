#ifndef WEIR_KERNELS_LIB_LINE_READER_H_
#define WEIR_KERNELS_LIB_LINE_READER_H_

#include <memory>
#include <string>
#include <utility>

#include "weir/core/io/file.h"

namespace weir {

// Reads a text file line by line. Not thread-safe.
class LineReader {
 public:
  static absl::StatusOr<LineReader> Open(const std::string& path);
  // Reads the next line without line end and carriage returns; returns false at the end of the
  // file. The last line may lack a line end, unless it is empty.
  absl::StatusOr<bool> Next(std::string* line);

 private:
  explicit LineReader(std::unique_ptr<ReadableFile> file) : file_(std::move(file)) {}

  std::unique_ptr<ReadableFile> file_;
  uint64_t offset_ = 0;  // file offset after the buffer
  std::string buffer_;
  size_t used_ = 0;  // bytes in the buffer
};

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_LINE_READER_H_
