#ifndef WEIR_CORE_IO_SSTABLE_WRITER_H_
#define WEIR_CORE_IO_SSTABLE_WRITER_H_

#include <memory>

#include "weir/core/io/file.h"

namespace weir {

// Writes an SSTable, byte for byte like TensorFlow: blocks of 256 KiB, no compression, no filters.
class SSTableWriter {
 public:
  // `file` outlives the writer, which neither syncs nor closes it.
  explicit SSTableWriter(BufferedFile* file);
  ~SSTableWriter();
  SSTableWriter(const SSTableWriter&) = delete;
  SSTableWriter& operator=(const SSTableWriter&) = delete;

  // Adds an entry. Keys must be in strictly ascending byte order; otherwise INVALID_ARGUMENT.
  absl::Status Add(absl::string_view key, absl::string_view value);
  // Writes the remaining data. No other call may follow.
  absl::Status Finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir

#endif  // WEIR_CORE_IO_SSTABLE_WRITER_H_
