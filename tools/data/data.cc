#include "weir/tools/data/data.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "weir/tools/lib/element_text.h"
#include "weir/tools/lib/text_table.h"
#include "weir/tools/lib/text_width.h"

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
  command.Flag("--json", &options->json, json);
}

void AddKindOption(Command& command, DataOptions* options) {
  command
      .Repeated("--kind", &options->kinds,
                "read a feature of JSON lines or CSV as bytes, float or int64")
      .Word("NAME=KIND");
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

std::string CountText(int64_t n, const std::string& what) {
  return absl::StrCat(WithCommas(n), " ", what, n == 1 ? "" : "s");
}

std::string ShownText(const std::string& text) {
  std::string json;
  AppendString(text, &json);
  const bool is_utf8 = absl::StartsWith(json, "\"");
  // U+0080 to U+009F are controls too, two bytes each.
  bool has_controls = false;
  for (size_t i = 0; i + 1 < text.size(); ++i)
    has_controls |= text[i] == '\xc2' && static_cast<unsigned char>(text[i + 1]) < 0xa0;
  return is_utf8 && !has_controls ? absl::Utf8SafeCEscape(text) : absl::CEscape(text);
}

std::string CutText(const std::string& text, size_t width) {
  constexpr absl::string_view kEllipsis = "...";
  if (Beginning(text, width).size() == text.size()) return text;
  const size_t room = std::max(width, kEllipsis.size()) - kEllipsis.size();
  return absl::StrCat(Beginning(text, room), kEllipsis);
}

size_t ColumnsLeft(size_t used, const Console& console) {
  constexpr size_t kLeast = 10;
  if (!console.fits) return std::numeric_limits<size_t>::max();
  const auto width = static_cast<size_t>(console.width);
  return width > used + kLeast ? width - used : kLeast;
}

uint64_t TotalBytes(const std::vector<DataFile>& files) {
  return std::accumulate(files.begin(), files.end(), uint64_t{0},
                         [](uint64_t sum, const DataFile& file) { return sum + file.bytes; });
}

ProgressBar ShowReadingOf(const std::vector<DataFile>& files, Console& console, int passes) {
  const std::string what =
      files.size() == 1 ? files[0].path : CountText(static_cast<int64_t>(files.size()), "file");
  return ShowReading(console, what, passes * static_cast<double>(TotalBytes(files)));
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
