#include "weir/kernels/lib/text_lines.h"

#include "weir/core/io/file.h"

namespace weir {

absl::StatusOr<std::vector<std::string>> ReadLines(const std::string& path) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, Files().Open(path));
  std::string text(file->size(), '\0');
  WEIR_RETURN_IF_ERROR(file->Read(0, text.size(), text.data()));
  std::vector<std::string> lines;
  absl::string_view rest = text;
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    absl::string_view line = rest.substr(0, end);
    rest = end == absl::string_view::npos ? absl::string_view() : rest.substr(end + 1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    lines.emplace_back(line);
  }
  return lines;
}

}  // namespace weir
