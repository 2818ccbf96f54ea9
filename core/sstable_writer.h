#ifndef WEIR_CORE_SSTABLE_WRITER_H_
#define WEIR_CORE_SSTABLE_WRITER_H_

#include <memory>

#include "weir/core/file.h"

namespace weir {

// Writes a sorted-string table, byte for byte as TensorFlow does: blocks of 256 KiB, no
// compression, no filters.
class SSTableWriter {
 public:
  // `file` outlives the writer, and is neither synced nor closed by it.
  explicit SSTableWriter(BufferedFile* file);
  ~SSTableWriter();
  SSTableWriter(const SSTableWriter&) = delete;
  SSTableWriter& operator=(const SSTableWriter&) = delete;

  // Keys come in strictly ascending order of their bytes; INVALID_ARGUMENT otherwise.
  absl::Status Add(absl::string_view key, absl::string_view value);
  // Writes what is left. The last call.
  absl::Status Finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir

#endif  // WEIR_CORE_SSTABLE_WRITER_H_
