#ifndef WEIR_TOOLS_DATA_DATA_FILE_H_
#define WEIR_TOOLS_DATA_DATA_FILE_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "weir/core/tensor/status.h"

// The files that `weir data` reads: records, or text that stands for records.
namespace weir::tools {

// What a file is, which its contents tell.
enum class FileForm : uint8_t { kRecords, kJsonLines, kCsv };

struct DataFile {
  std::string path;
  FileForm form = FileForm::kRecords;
  std::string compression;  // "", "GZIP" or "ZLIB", which its contents tell too
  uint64_t bytes = 0;       // on disk
};

// Returns the files that paths, and patterns with *, ? and [...], name. NOT_FOUND, with the
// pattern, if there are none; INVALID_ARGUMENT for a folder. A file whose first bytes, plain or
// decompressed, are the length of a record is one of records; other text is JSON lines if it begins
// with a brace, and otherwise CSV; anything else counts as records, which are damaged then.
absl::StatusOr<std::vector<DataFile>> FindDataFiles(const std::vector<std::string>& patterns);

struct ReadOptions {
  uint64_t max_record_bytes = uint64_t{64} << 20;  // more are RESOURCE_EXHAUSTED
};

// Calls fn(line, number) for each line of a file of text, without its line end, until it returns
// false or an error; errors get the file and the number. Returns whether fn did not end the
// reading. RESOURCE_EXHAUSTED for a line of more than max_record_bytes.
absl::StatusOr<bool> ForEachLine(
    const DataFile& file, const ReadOptions& options,
    absl::FunctionRef<absl::StatusOr<bool>(const std::string&, int64_t)> fn);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_DATA_DATA_FILE_H_
