#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "weir/core/io/file.h"
#include "weir/kernels/data/byte_stream.h"
#include "weir/tools/data/data.h"
#include "weir/tools/data/record_csv.h"
#include "weir/tools/data/record_statistics.h"
#include "weir/tools/lib/progress.h"

// weir data convert: records to JSON lines and CSV, and back.
namespace weir::tools {

namespace {

struct ConvertOptions : DataOptions {
  std::string out, to, compress;
  bool skip_damage = false;
};

// What is written, and how.
struct Output {
  FileForm form = FileForm::kRecords;
  std::string compression;
};

absl::StatusOr<Output> OutputOf(const ConvertOptions& options) {
  Output output;
  absl::string_view name = options.out;
  if (absl::ConsumeSuffix(&name, ".gz")) output.compression = "GZIP";
  if (absl::ConsumeSuffix(&name, ".zlib")) output.compression = "ZLIB";
  if (!options.compress.empty()) {
    if (options.compress != "gzip" && options.compress != "zlib" && options.compress != "none") {
      return InvalidArgument("unknown compression '", options.compress,
                             "'; valid names: gzip, zlib, none");
    }
    output.compression = options.compress == "gzip"   ? "GZIP"
                         : options.compress == "zlib" ? "ZLIB"
                                                      : "";
  }
  const std::string to = options.to.empty() ? std::string(name) : "." + options.to;
  static constexpr std::pair<const char*, FileForm> kEndings[] = {
      {".tfrecord", FileForm::kRecords},
      {".tfrecords", FileForm::kRecords},
      {".jsonl", FileForm::kJsonLines},
      {".ndjson", FileForm::kJsonLines},
      {".csv", FileForm::kCsv}};
  for (const auto& [ending, form] : kEndings) {
    if (!absl::EndsWith(to, ending)) continue;
    output.form = form;
    return output;
  }
  return InvalidArgument(options.to.empty() ? options.out : "--to " + options.to,
                         ": the form is not clear; name the file .tfrecord, .jsonl or .csv, or "
                         "give --to tfrecord, jsonl or csv");
}

// A file that appears with all its contents, or not at all.
class AtomicFile {
 public:
  static absl::StatusOr<std::unique_ptr<AtomicFile>> Create(const std::string& path,
                                                            const std::string& compression) {
    auto file = std::unique_ptr<AtomicFile>(new AtomicFile(path));
    WEIR_ASSIGN_OR_RETURN(file->sink_, ByteSink::Create(file->temporary_.path(), compression));
    return file;
  }
  ByteSink& sink() { return *sink_; }
  absl::Status Finish() {
    WEIR_RETURN_IF_ERROR(sink_->Finish());
    WEIR_RETURN_IF_ERROR(Files().Rename(temporary_.path(), path_));
    temporary_.SetRenamed();
    return Files().SyncDirectory(DirectoryOf(path_));
  }

 private:
  explicit AtomicFile(const std::string& path) : path_(path), temporary_(path) {}

  const std::string path_;
  TemporaryFile temporary_;
  std::unique_ptr<ByteSink> sink_;
};

// The columns of CSV: the features of all records.
absl::StatusOr<std::vector<CsvColumn>> ColumnsOf(const std::vector<DataFile>& files,
                                                 const RecordOptions& reading) {
  RecordStatistics all;
  WEIR_RETURN_IF_ERROR(
      ForEachRecord(files, reading, [&all](const PlacedRecord& r) -> absl::StatusOr<bool> {
        WEIR_RETURN_IF_ERROR(all.Add(r.bytes));
        return true;
      }));
  if (all.records() > all.records(RecordKind::kExample)) {
    return InvalidArgument("CSV holds Examples only, and ",
                           all.records() - all.records(RecordKind::kExample),
                           " records are something else; convert to JSON lines");
  }
  std::vector<CsvColumn> columns;
  for (const auto& [key, feature] : all.features()) columns.push_back({key.second, feature.kind()});
  if (columns.empty()) return InvalidArgument("there are no features, which CSV needs for columns");
  return columns;
}

class Converter {
 public:
  Converter(std::vector<DataFile> files, RecordOptions reading, Output output)
      : files_(std::move(files)), reading_(std::move(reading)), output_(std::move(output)) {}

  // Returns the number of records written.
  absl::StatusOr<int64_t> Convert(const std::string& path) {
    WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file,
                          AtomicFile::Create(path, output_.compression));
    if (output_.form == FileForm::kCsv) {
      RecordOptions first = reading_;
      if (first.on_damage != nullptr) first.on_damage = [](const absl::Status&) {};
      WEIR_ASSIGN_OR_RETURN(columns_, ColumnsOf(files_, first));
      WEIR_ASSIGN_OR_RETURN(const std::string header, CsvHeader(columns_));
      WEIR_RETURN_IF_ERROR(file->sink().Append(header + "\n"));
    }
    int64_t count = 0;
    const auto write = [&](const PlacedRecord& record) -> absl::StatusOr<bool> {
      ++count;
      const absl::Status status = Write(record, file->sink());
      if (status.ok()) return true;
      return Annotate(status, absl::StrCat(record.file.path, ", record ", record.index));
    };
    WEIR_RETURN_IF_ERROR(ForEachRecord(files_, reading_, write));
    WEIR_RETURN_IF_ERROR(file->Finish());
    return count;
  }

  // The features of records that were read from text.
  const RecordStatistics& from_text() const { return from_text_; }

 private:
  absl::Status Write(const PlacedRecord& record, ByteSink& sink) {
    if (output_.form == FileForm::kCsv) {
      WEIR_ASSIGN_OR_RETURN(const std::string row, CsvFromRecord(columns_, record.bytes));
      return sink.Append(row + "\n");
    }
    if (output_.form == FileForm::kJsonLines)
      return sink.Append(JsonFromRecord(record.bytes) + "\n");
    if (record.file.form == FileForm::kJsonLines)
      WEIR_RETURN_IF_ERROR(from_text_.Add(record.bytes));
    return AppendRecord(sink, record.bytes);
  }

  const std::vector<DataFile> files_;
  const RecordOptions reading_;
  const Output output_;
  std::vector<CsvColumn> columns_;
  RecordStatistics from_text_;
};

// Says which features JSON has made integers here and floats there.
void ReportMixedKinds(const RecordStatistics& records, Console& console) {
  for (const auto& [key, feature] : records.features()) {
    const auto lists = [&](FeatureKind kind) { return feature.lists[static_cast<size_t>(kind)]; };
    if (lists(FeatureKind::kInt64) == 0 || lists(FeatureKind::kFloat) == 0) continue;
    const std::string name = ShownText(key.second);
    console.err << "weir: feature '" << name << "' has lists of int64 and of float; --kind '"
                << name << "=float' makes all of them floats\n";
  }
}

absl::Status Convert(const ConvertOptions& options, Console& console) {
  WEIR_ASSIGN_OR_RETURN(const Output output, OutputOf(options));
  WEIR_ASSIGN_OR_RETURN(const std::vector<DataFile> files, FindFiles(options));
  WEIR_ASSIGN_OR_RETURN(RecordOptions reading, ReadingOf(options));
  for (const DataFile& file : files)
    WEIR_RETURN_IF_ERROR(CheckNotOverwriting(options.out, file.path));
  if (options.skip_damage) {
    reading.on_damage = [&console](const absl::Status& status) {
      console.err << "weir: skipped: " << std::string(status.message()) << "\n";
    };
  }
  Converter converter(files, std::move(reading), output);
  int64_t count = 0;
  {
    const int passes = output.form == FileForm::kCsv ? 2 : 1;
    const ProgressBar progress = ShowReadingOf(files, console, passes);
    WEIR_ASSIGN_OR_RETURN(count, converter.Convert(options.out));
  }
  ReportMixedKinds(converter.from_text(), console);
  if (options.json) {
    console.out << nlohmann::ordered_json{{"file", options.out},
                                          {"form", FileFormName(output.form)},
                                          {"compression", output.compression},
                                          {"records", count}}
                       .dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)
                << "\n";
  } else {
    console.out << CountText(count, "record") << " written to " << options.out << "\n";
  }
  return absl::OkStatus();
}

}  // namespace

void AddDataConvertCommand(Command& data) {
  auto options = std::make_shared<ConvertOptions>();
  Command convert =
      data.Add("convert", "Convert records to JSON lines or CSV, and these to records",
               "  weir data convert 'train-*.tfrecord' -o train.jsonl.gz");
  AddDataOptions(convert, options.get(), "print JSON");
  AddKindOption(convert, options.get());
  convert.Value("--out,-o", &options->out, "the file to write; it replaces one that exists")
      .Word("FILE")
      .Required();
  convert.Value("--to", &options->to, "tfrecord, jsonl or csv; default: as the file's name ends")
      .Word("FORM");
  convert
      .Value("--compress", &options->compress,
             "gzip, zlib or none; default: gzip if the file's name ends in .gz")
      .Word("NAME");
  convert.Flag("--skip-damage", &options->skip_damage,
               "leave out damaged records instead of failing");
  convert.Do([options](Console& console) { return Finish(console, Convert(*options, console)); });
}

}  // namespace weir::tools
