#include "weir/kernels/lib/line_reader.h"

namespace weir {

absl::StatusOr<LineReader> LineReader::Open(const std::string& path) {
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, Files().Open(path));
  return LineReader(std::move(file));
}

absl::StatusOr<bool> LineReader::Next(std::string* line) {
  constexpr size_t kBufferSize = size_t{1} << 18;
  line->clear();
  bool any = false;
  for (;;) {
    if (used_ == buffer_.size()) {
      buffer_.resize(kBufferSize);
      used_ = 0;
      const absl::StatusOr<size_t> got = file_->ReadSome(offset_, kBufferSize, buffer_.data());
      buffer_.resize(got.value_or(0));
      WEIR_RETURN_IF_ERROR(got.status());
      offset_ += *got;
      if (*got == 0) return any;
    }
    const char c = buffer_[used_++];
    if (c == '\n') return true;
    if (c == '\r') continue;
    line->push_back(c);
    any = true;
  }
}

}  // namespace weir
