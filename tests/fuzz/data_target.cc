#include "weir/proto/example.pb.h"
#include "weir/tests/fuzz/targets.h"
#include "weir/tests/io/test_files.h"
#include "weir/tools/data/data_records.h"
#include "weir/tools/data/record_csv.h"
#include "weir/tools/data/record_statistics.h"

// What `weir data` reads: the first byte selects a record, a line of JSON, or a file. What is
// accepted is written as JSON, and as CSV where that can express it, and reads back as an equal
// record.
namespace weir::fuzz {

namespace {

using namespace weir::tools;

constexpr char kPath[] = "/data";

std::vector<std::string> ReadFileOf(absl::string_view contents, FileForm form) {
  testing::MemoryFileSystem files;
  const ScopedFileSystem scope(&files);
  Require((*files.Create(kPath))->Append(contents).ok(), "a file is written");
  std::vector<std::string> records;
  RecordOptions options;
  options.read.max_record_bytes = 1 << 20;
  options.on_damage = [](const absl::Status& status) {
    Require(absl::IsDataLoss(status), "damage is a loss of data");
  };
  const DataFile file{.path = kPath, .form = form};
  const auto status = ForEachRecord({file}, options, [&](const PlacedRecord& record) {
    records.push_back(record.bytes);
    return absl::StatusOr<bool>(true);
  });
  const bool fails = form == FileForm::kRecords && !absl::IsResourceExhausted(status);
  Require(status.ok() || !fails, "damage is skipped");
  return records;
}

// Whether two records are the same message, or the same bytes of another one.
bool SameRecord(const std::string& a, const std::string& b) {
  proto::SequenceExample first, second;
  const RecordKind kind = ParseExampleRecord(a, &first);
  if (kind != ParseExampleRecord(b, &second)) return false;
  if (kind == RecordKind::kOther) return a == b;
  return SerializeExampleRecord(first) == SerializeExampleRecord(second);
}

void CheckRecord(const std::string& record) {
  const std::string line = JsonFromRecord(record);
  const auto from_json = RecordFromJson(line);
  Require(from_json.ok(), "a line that was written is read");
  Require(SameRecord(*from_json, record), "with the same features");
  RecordStatistics statistics(/*distinct_strings=*/4);
  Require(statistics.Add(record).ok() && statistics.records() == 1, "a record is counted");
  std::vector<CsvColumn> columns;
  for (const auto& [key, feature] : statistics.features())
    columns.push_back({key.second, feature.kind()});
  const auto header = CsvHeader(columns);
  const auto row = CsvFromRecord(columns, record);
  if (columns.empty() || !header.ok() || !row.ok()) return;
  const auto from_csv = ReadFileOf(absl::StrCat(*header, "\n", *row, "\n"), FileForm::kCsv);
  Require(from_csv.size() == 1 && SameRecord(from_csv[0], record), "a row reads back the same");
}

}  // namespace

void Examples(absl::string_view bytes) {
  Input in(bytes);
  const uint8_t selector = in.Byte() % 5;
  const std::string rest(in.RemainingBytes());
  if (selector == 0) return CheckRecord(rest);
  if (selector == 1) {
    const auto record = RecordFromJson(rest);
    if (record.ok()) CheckRecord(*record);
    return;
  }
  static constexpr FileForm kForms[] = {FileForm::kRecords, FileForm::kJsonLines, FileForm::kCsv};
  const FileForm form = kForms[selector - 2];
  for (const std::string& record : ReadFileOf(rest, form)) {
    proto::SequenceExample message;
    Require(form != FileForm::kCsv || ParseExampleRecord(record, &message) == RecordKind::kExample,
            "a row is an Example");
    CheckRecord(record);
  }
}

std::vector<Row> Rows() { return {{"examples", Examples, 4000}}; }

}  // namespace weir::fuzz
