#include "weir/tools/data/data_file.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "weir/core/io/file.h"
#include "weir/core/io/proto_file.h"
#include "weir/kernels/data/byte_stream.h"

namespace weir::tools {

namespace {

absl::StatusOr<std::string> ReadHead(const std::string& path, absl::string_view compression) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<ByteStream> stream,
                        ByteStream::Open(path, compression));
  return ReadBytes(*stream, kProtoHeadBytes);
}

// Whether a file begins with the length of a record. One that is too large has a length too.
bool BeginsWithRecord(const std::string& path, absl::string_view compression) {
  absl::StatusOr<RecordStream> stream =
      RecordStream::Open(path, compression, /*max_record_bytes=*/0);
  if (!stream.ok()) return false;
  const auto record = stream->Next();
  return absl::IsResourceExhausted(record.status()) || (record.ok() && record->has_value());
}

FileForm FormOf(absl::string_view head) {
  if (ProtoFormOf(head) != ProtoForm::kText) return FileForm::kRecords;
  const bool is_json = absl::StartsWith(absl::StripLeadingAsciiWhitespace(head), "{");
  return is_json ? FileForm::kJsonLines : FileForm::kCsv;
}

absl::StatusOr<DataFile> Identify(const std::string& path) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> opened, Files().Open(path));
  DataFile file{.path = path, .bytes = opened->size()};
  for (const char* const compression : {"", "GZIP", "ZLIB"}) {
    file.compression = compression;
    if (BeginsWithRecord(path, compression)) return file;
  }
  WEIR_ASSIGN_OR_RETURN(std::string head, ReadHead(path, ""));
  file.compression.clear();
  if (ProtoFormOf(head) == ProtoForm::kGzip) {
    file.compression = "GZIP";
    head = ReadHead(path, file.compression).value_or("");
  } else if (auto inflated = ReadHead(path, "ZLIB"); inflated.ok() && !head.empty()) {
    file.compression = "ZLIB";
    head = *std::move(inflated);
  }
  file.form = FormOf(head);
  return file;
}

absl::StatusOr<std::vector<std::string>> Match(const std::string& pattern) {
  if (Files().IsDirectory(pattern)) {
    return InvalidArgument(pattern, " is a folder; name its files, such as '",
                           JoinPath(pattern, "*.tfrecord"), "'");
  }
  if (Files().Exists(pattern)) return std::vector<std::string>{pattern};
  WEIR_ASSIGN_OR_RETURN(std::vector<std::string> paths, MatchFiles(pattern));
  paths.erase(std::remove_if(paths.begin(), paths.end(),
                             [](const std::string& path) { return Files().IsDirectory(path); }),
              paths.end());
  if (paths.empty()) return NotFound("no such file: ", pattern);
  return paths;
}

class LineSource {
 public:
  LineSource(ByteStream& stream, const DataFile& file, uint64_t max_bytes)
      : stream_(stream), file_(file), max_bytes_(max_bytes) {}

  // Returns false at the end. The text after the last line end is a line unless it is empty.
  absl::StatusOr<bool> Next(std::string* line) {
    line->clear();
    for (;;) {
      if (used_ == buffer_.size()) {
        constexpr size_t kBufferSize = size_t{1} << 18;
        WEIR_ASSIGN_OR_RETURN(buffer_, ReadBytes(stream_, kBufferSize));
        used_ = 0;
        if (buffer_.empty()) return !line->empty();
      }
      const size_t end = buffer_.find('\n', used_);
      const size_t size = std::min(end, buffer_.size()) - used_;
      if (line->size() + size > max_bytes_) {
        return absl::ResourceExhaustedError(absl::StrCat(file_.path, ": a line has more than ",
                                                         max_bytes_,
                                                         " bytes; --max-record-mb raises it"));
      }
      line->append(buffer_, used_, size);
      used_ += size;
      if (end == std::string::npos) continue;
      ++used_;
      if (absl::EndsWith(*line, "\r")) line->pop_back();
      return true;
    }
  }

 private:
  ByteStream& stream_;
  const DataFile& file_;
  const uint64_t max_bytes_;
  std::string buffer_;
  size_t used_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<DataFile>> FindDataFiles(const std::vector<std::string>& patterns) {
  std::vector<DataFile> files;
  for (const std::string& pattern : patterns) {
    WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> paths, Match(pattern));
    for (const std::string& path : paths) {
      WEIR_ASSIGN_OR_RETURN(DataFile file, Identify(path));
      files.push_back(std::move(file));
    }
  }
  return files;
}

absl::StatusOr<bool> ForEachLine(
    const DataFile& file, const ReadOptions& options,
    absl::FunctionRef<absl::StatusOr<bool>(const std::string&, int64_t)> fn) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<ByteStream> stream,
                        ByteStream::Open(file.path, file.compression));
  LineSource lines(*stream, file, options.max_record_bytes);
  std::string line;
  for (int64_t number = 1;; ++number) {
    WEIR_ASSIGN_OR_RETURN(const bool any, lines.Next(&line));
    if (!any) return true;
    const absl::StatusOr<bool> goes_on = fn(line, number);
    if (!goes_on.ok())
      return Annotate(goes_on.status(), absl::StrCat(file.path, ", line ", number));
    if (!*goes_on) return false;
  }
}

}  // namespace weir::tools
