#include "weir/tools/data/data.h"

#include <numeric>
#include <utility>

// weir data: looks into files of records, and converts them to and from text.
namespace weir::tools {

void AddDataOptions(Command& command, DataOptions* options, const char* json) {
  command
      .Arguments("PATH", &options->paths,
                 "files of records, JSON lines or CSV, also compressed by gzip or zlib; patterns "
                 "with *, ? and [...]")
      .Required();
  command
      .Value("--max-record-mb", &options->max_record_mb,
             "refuse records of more megabytes, before memory is allocated for them")
      .Range(1, 1 << 20);
  command
      .Repeated("--kind", &options->kinds,
                "read a feature of JSON lines or CSV as bytes, float or int64")
      .Word("NAME=KIND");
  if (json != nullptr) command.Flag("--json", &options->json, json);
}

absl::StatusOr<std::vector<DataFile>> FindFiles(const DataOptions& options) {
  return FindDataFiles(options.paths);
}

absl::StatusOr<RecordOptions> ReadingOf(const DataOptions& options) {
  RecordOptions reading;
  reading.read.max_record_bytes = static_cast<uint64_t>(options.max_record_mb) << 20;
  for (const std::string& text : options.kinds) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos)
      return InvalidArgument("--kind ", text, " is not of the form NAME=KIND");
    WEIR_ASSIGN_OR_RETURN(reading.kinds[text.substr(0, equals)],
                          FeatureKindOf(text.substr(equals + 1)));
  }
  return reading;
}

const char* FileFormName(FileForm form) {
  static constexpr const char* kNames[] = {"records", "JSON lines", "CSV"};
  return kNames[static_cast<int>(form)];
}

uint64_t TotalBytes(const std::vector<DataFile>& files) {
  return std::accumulate(files.begin(), files.end(), uint64_t{0},
                         [](uint64_t sum, const DataFile& file) { return sum + file.bytes; });
}

void AddDataCommand(Command& weir) {
  Command data = weir.Add("data", "Look into TFRecord files, verify and convert them",
                          "  weir data schema 'train-*.tfrecord'");
  AddDataSummaryCommands(data);
  AddDataShowCommands(data);
  AddDataVerifyCommand(data);
  AddDataConvertCommand(data);
}

}  // namespace weir::tools
