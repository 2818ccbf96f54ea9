#ifndef WEIR_TOOLS_CKPT_GGUF_METADATA_H_
#define WEIR_TOOLS_CKPT_GGUF_METADATA_H_

#include <string>

#include "weir/core/io/file.h"
#include "weir/tools/ckpt/array_reader.h"
#include "weir/tools/ckpt/output.h"

namespace weir::tools {

// Reads the parts of a GGUF file one after the other, little-endian. After an error, which is
// DATA_LOSS with the path, every call returns it.
class GgufCursor {
 public:
  explicit GgufCursor(const ReadableFile& file)
      : file_(file), bytes_(*FileStream::Open(file, 0, file.size()), file.size()) {}

  // Return 0 or an empty text after an error.
  uint32_t Fixed32();
  uint64_t Fixed64();
  std::string Text();
  // Reads `size` bytes. A size beyond the end of the file is an error before anything is allocated.
  std::string Bytes(uint64_t size);

  // The bytes that remain, and the position in the file.
  uint64_t left() const { return file_.size() - position_; }
  uint64_t position() const { return position_; }
  const absl::Status& status() const { return status_; }
  // Sets the error, unless there is one.
  void Fail(const absl::Status& status);

 private:
  const ReadableFile& file_;
  ReadAheadStream bytes_;
  uint64_t position_ = 0;
  absl::Status status_;
};

// Reads one entry: its key, type and value. Arrays may be nested four deep.
MetadataEntry ReadGgufMetadata(GgufCursor* cursor);

// Returns the bytes of an entry with its key: as they were, or as a text.
std::string SerializeGgufMetadata(const MetadataEntry& entry);
// Appends a text as GGUF stores it: 8 bytes with its length, and its bytes.
void PutGgufText(std::string* out, absl::string_view text);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CKPT_GGUF_METADATA_H_
