#include "weir/tools/data/data_records.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "weir/kernels/data/byte_stream.h"
#include "weir/tools/data/record_csv.h"

namespace weir::tools {

namespace {

class FileReader {
 public:
  FileReader(const DataFile& file, const RecordOptions& options, RecordFunction fn)
      : options_(options), fn_(fn), record_{.file = file} {}

  // Returns false if the function ended the reading.
  absl::StatusOr<bool> Read() {
    switch (record_.file.form) {
      case FileForm::kRecords:
        return ReadStream();
      case FileForm::kJsonLines:
        return ForEachLine(record_.file, options_.read, [&](const std::string& line, int64_t) {
          if (absl::StripAsciiWhitespace(line).empty()) return absl::StatusOr<bool>(true);
          return Pass(RecordFromJson(line, options_.kinds));
        });
      default:
        return ForEachCsvRecord(record_.file, options_.read, options_.kinds,
                                [&](std::string record) { return Pass(std::move(record)); });
    }
  }

 private:
  absl::StatusOr<bool> Pass(absl::StatusOr<std::string> bytes) {
    WEIR_RETURN_IF_ERROR(bytes.status());
    record_.bytes = *std::move(bytes);
    const absl::StatusOr<bool> goes_on = fn_(record_);
    ++record_.index;
    return goes_on;
  }

  absl::StatusOr<bool> ReadStream() {
    WEIR_ASSIGN_OR_RETURN(RecordStream stream,
                          RecordStream::Open(record_.file.path, record_.file.compression,
                                             options_.read.max_record_bytes));
    for (;;) {
      record_.offset = stream.offset();
      absl::StatusOr<std::optional<std::string>> next = stream.Next();
      if (absl::IsDataLoss(next.status())) {
        if (options_.on_damage != nullptr && stream.SkipDamage().ok()) {
          options_.on_damage(next.status());
          continue;
        }
        return DataLoss(std::string(next.status().message()),
                        record_.index == 0 ? "; is it a TFRecord file?" : "", "; ", record_.index,
                        " intact records before; 'weir data verify' tells more");
      }
      WEIR_RETURN_IF_ERROR(NameLimit(next.status()));
      if (!next->has_value()) return true;
      WEIR_ASSIGN_OR_RETURN(const bool goes_on, Pass(**std::move(next)));
      if (!goes_on) return false;
    }
  }

  const RecordOptions& options_;
  const RecordFunction fn_;
  PlacedRecord record_;
};

}  // namespace

absl::Status NameLimit(const absl::Status& status) {
  if (!absl::IsResourceExhausted(status)) return status;
  return absl::ResourceExhaustedError(
      absl::StrCat(std::string(status.message()), "; --max-record-mb raises it"));
}

absl::Status ForEachRecord(const std::vector<DataFile>& files, const RecordOptions& options,
                           RecordFunction fn) {
  for (const DataFile& file : files) {
    WEIR_ASSIGN_OR_RETURN(const bool goes_on, FileReader(file, options, fn).Read());
    if (!goes_on) break;
  }
  return absl::OkStatus();
}

}  // namespace weir::tools
