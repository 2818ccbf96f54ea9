#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "weir/tools/data/data.h"
#include "weir/tools/data/record_statistics.h"
#include "weir/tools/lib/element_text.h"
#include "weir/tools/lib/progress.h"
#include "weir/tools/lib/text_table.h"
#include "weir/tools/lib/text_width.h"

// weir data count, schema and stats: what the records of files have in common.
namespace weir::tools {

namespace {

using Json = nlohmann::ordered_json;
using Key = RecordStatistics::Key;

struct SummaryOptions : DataOptions {
  int64_t distinct = 1000;
};

void Print(const Json& json, Console& console) {
  console.out << json.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
}

// ---- count

absl::Status Count(const SummaryOptions& options, Console& console) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<DataFile> files, FindFiles(options));
  WEIR_ASSIGN_OR_RETURN(const RecordOptions reading, ReadingOf(options));
  TextTable table({"file", "form", "compression", ">records", ">bytes"});
  Json json = Json::array();
  int64_t total = 0;
  {
    const ProgressBar progress = ShowReadingOf(files, console);
    for (const DataFile& file : files) {
      int64_t count = 0;
      WEIR_RETURN_IF_ERROR(ForEachRecord({file}, reading, [&count](const PlacedRecord&) {
        ++count;
        return absl::StatusOr<bool>(true);
      }));
      total += count;
      table.Row({file.path, FileFormName(file.form),
                 file.compression.empty() ? "none" : file.compression, WithCommas(count),
                 WithCommas(static_cast<int64_t>(file.bytes))});
      json.push_back({{"file", file.path},
                      {"form", FileFormName(file.form)},
                      {"compression", file.compression},
                      {"records", count},
                      {"bytes", file.bytes}});
    }
  }
  if (options.json) {
    Print({{"files", std::move(json)}, {"records", total}, {"bytes", TotalBytes(files)}}, console);
    return absl::OkStatus();
  }
  table.Print(console);
  console.out << CountText(total, "record") << " in "
              << CountText(static_cast<int64_t>(files.size()), "file") << ", "
              << HumanBytes(static_cast<int64_t>(TotalBytes(files))) << "\n";
  return absl::OkStatus();
}

// ---- what schema and stats print

std::string RangeText(const ValueRange<int64_t>& range) {
  if (range.empty()) return "";
  if (range.least == range.greatest) return WithCommas(range.least);
  return absl::StrCat(WithCommas(range.least), "..", WithCommas(range.greatest));
}

Json RangeJson(const ValueRange<int64_t>& range) {
  if (range.empty()) return nullptr;
  return {{"min", range.least}, {"max", range.greatest}};
}

std::string KindText(const FeatureStatistics& feature) {
  std::vector<std::string> kinds;
  for (int i = 0; i < kNumFeatureKinds; ++i)
    if (feature.lists[i] > 0) kinds.push_back(FeatureKindName(static_cast<FeatureKind>(i)));
  return absl::StrJoin(kinds, ", ");
}

int64_t MissingIn(const RecordStatistics& all, const FeatureStatistics& feature) {
  return all.records() - all.records(RecordKind::kOther) - feature.records;
}

void PrintTotals(const RecordStatistics& all, size_t num_files, Console& console) {
  std::vector<std::string> kinds;
  for (const RecordKind kind :
       {RecordKind::kExample, RecordKind::kSequenceExample, RecordKind::kOther}) {
    if (all.records(kind) > 0) kinds.push_back(CountText(all.records(kind), RecordKindName(kind)));
  }
  console.out << console.Paint(Style::kBold, CountText(all.records(), "record")) << " in "
              << CountText(static_cast<int64_t>(num_files), "file") << ", "
              << HumanBytes(all.bytes());
  if (!kinds.empty()) console.out << ": " << absl::StrJoin(kinds, ", ");
  console.out << "\n";
}

Json TotalsJson(const RecordStatistics& all, const std::vector<DataFile>& files) {
  Json names = Json::array();
  for (const DataFile& file : files) names.push_back(file.path);
  return {{"files", std::move(names)},
          {"records", all.records()},
          {"bytes", all.bytes()},
          {"examples", all.records(RecordKind::kExample)},
          {"sequence_examples", all.records(RecordKind::kSequenceExample)},
          {"other", all.records(RecordKind::kOther)},
          {"features", Json::array()}};
}

Json SchemaJson(const RecordStatistics& all, const Key& key, const FeatureStatistics& feature) {
  Json kinds = Json::object();
  for (int i = 0; i < kNumFeatureKinds; ++i)
    if (feature.lists[i] > 0)
      kinds[FeatureKindName(static_cast<FeatureKind>(i))] = feature.lists[i];
  Json json = {{"name", key.second},
               {"sequence", key.first},
               {"kind", FeatureKindName(feature.kind())},
               {"kinds", std::move(kinds)},
               {"present", feature.records},
               {"missing", MissingIn(all, feature)},
               {"length", RangeJson(feature.length)}};
  if (key.first) json["frames"] = RangeJson(feature.frames);
  return json;
}

absl::Status Collect(const SummaryOptions& options, const std::vector<DataFile>& files,
                     Console& console, RecordStatistics* all) {
  WEIR_ASSIGN_OR_RETURN(const RecordOptions reading, ReadingOf(options));
  const ProgressBar progress = ShowReadingOf(files, console);
  return ForEachRecord(files, reading, [all](const PlacedRecord& record) -> absl::StatusOr<bool> {
    WEIR_RETURN_IF_ERROR(all->Add(record.bytes));
    return true;
  });
}

// ---- schema

absl::Status Schema(const SummaryOptions& options, Console& console) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<DataFile> files, FindFiles(options));
  RecordStatistics all;
  WEIR_RETURN_IF_ERROR(Collect(options, files, console, &all));
  std::vector<std::string> titles = {"feature", "kind", ">present", ">missing", ">values"};
  const bool has_frames = all.records(RecordKind::kSequenceExample) > 0;
  if (has_frames) titles.push_back(">frames");
  TextTable table(titles);
  Json json = TotalsJson(all, files);
  for (const auto& [key, feature] : all.features()) {
    json["features"].push_back(SchemaJson(all, key, feature));
    std::vector<std::string> row = {ShownText(key.second), KindText(feature),
                                    WithCommas(feature.records),
                                    WithCommas(MissingIn(all, feature)), RangeText(feature.length)};
    if (has_frames) row.push_back(RangeText(feature.frames));
    table.Row(std::move(row));
  }
  if (options.json) {
    Print(json, console);
    return absl::OkStatus();
  }
  PrintTotals(all, files.size(), console);
  if (!all.features().empty()) table.Print(console);
  return absl::OkStatus();
}

// ---- stats

double Mean(const FeatureStatistics& f) {
  const bool is_integer = f.kind() == FeatureKind::kInt64;
  const double sum = is_integer ? static_cast<double>(f.integer_sum) : f.float_sum;
  return sum / static_cast<double>(is_integer ? f.num_values() : f.finite);
}

// The distinct strings, those that occur most first.
std::vector<std::pair<std::string, int64_t>> MostFrequent(const DistinctStrings& strings) {
  std::vector<std::pair<std::string, int64_t>> all(strings.counts().begin(),
                                                   strings.counts().end());
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  return all;
}

Json ValuesJson(const FeatureStatistics& f) {
  Json json = {{"values", f.num_values()}};
  if (f.kind() == FeatureKind::kInt64 && !f.integers.empty())
    json.update({{"min", f.integers.least}, {"max", f.integers.greatest}, {"mean", Mean(f)}});
  if (f.kind() == FeatureKind::kFloat) {
    if (!f.floats.empty()) json.update({{"min", f.floats.least}, {"max", f.floats.greatest}});
    if (f.finite > 0) json["mean"] = Mean(f);
    json.update({{"nan", f.nans}, {"infinite", f.infinities}});
  }
  if (f.kind() != FeatureKind::kBytes || f.bytes.empty()) return json;
  json["bytes"] = RangeJson(f.bytes);
  json["bytes"]["mean"] = static_cast<double>(f.byte_sum) / static_cast<double>(f.num_values());
  json["distinct"] = f.strings.size();
  json["distinct_is_complete"] = f.strings.is_complete();
  Json& strings = json["strings"] = Json::array();
  for (const auto& [value, count] : MostFrequent(f.strings)) {
    std::string text;
    AppendString(value, &text);
    strings.push_back({{"value", Json::parse(text)}, {"count", count}});
  }
  return json;
}

// "cat 512, dog 488"; nothing if all are different.
std::string StringsText(const DistinctStrings& strings) {
  constexpr size_t kShown = 3, kLongest = 24;
  std::vector<std::string> shown;
  for (const auto& [value, count] : MostFrequent(strings)) {
    if (shown.size() == kShown || count == 1) break;
    shown.push_back(absl::StrCat(CutText(ShownText(value), kLongest), " ", WithCommas(count)));
  }
  return absl::StrJoin(shown, ", ");
}

// A number in few columns.
std::string IntegerText(int64_t value) {
  constexpr size_t kLongest = 12;
  const std::string text = absl::StrCat(value);
  return text.size() <= kLongest ? text : absl::StrFormat("%.6g", static_cast<double>(value));
}

std::string RealText(double value) { return absl::StrFormat("%.6g", value); }

std::vector<std::string> NumberRow(const RecordStatistics& all, const Key& key,
                                   const FeatureStatistics& f) {
  std::vector<std::string> row = {ShownText(key.second), KindText(f), WithCommas(MissingIn(all, f)),
                                  WithCommas(f.num_values())};
  const bool is_integer = f.kind() == FeatureKind::kInt64;
  if (is_integer && !f.integers.empty()) {
    row.insert(row.end(), {IntegerText(f.integers.least), RealText(Mean(f)),
                           IntegerText(f.integers.greatest)});
  } else if (!is_integer && !f.floats.empty()) {
    row.insert(row.end(), {RealText(f.floats.least), f.finite > 0 ? RealText(Mean(f)) : "",
                           RealText(f.floats.greatest)});
  } else {
    row.insert(row.end(), {"", "", ""});
  }
  row.push_back(f.nans == 0 ? "" : WithCommas(f.nans));
  return row;
}

std::vector<std::string> StringRow(const RecordStatistics& all, const Key& key,
                                   const FeatureStatistics& f) {
  const double mean = static_cast<double>(f.byte_sum) / static_cast<double>(f.num_values());
  return {ShownText(key.second),
          WithCommas(MissingIn(all, f)),
          WithCommas(f.num_values()),
          RangeText(f.bytes),
          f.bytes.empty() ? "" : RealText(mean),
          absl::StrCat(f.strings.is_complete() ? "" : ">",
                       WithCommas(static_cast<int64_t>(f.strings.size()))),
          StringsText(f.strings)};
}

// Prints rows whose last cells get what the others leave of the width.
void PrintStrings(std::vector<std::vector<std::string>> rows, Console& console) {
  const std::vector<std::string> titles = {"feature", ">missing",  ">values",   ">bytes",
                                           ">mean",   ">distinct", "most often"};
  constexpr size_t kGap = 2;
  size_t used = 0;
  for (size_t i = 0; i + 1 < titles.size(); ++i) {
    size_t widest = TextWidth(titles[i]);
    for (const auto& row : rows) widest = std::max(widest, TextWidth(row[i]));
    used += widest + kGap;
  }
  TextTable table(titles);
  for (auto& row : rows) {
    row.back() = CutText(row.back(), ColumnsLeft(used, console));
    table.Row(std::move(row));
  }
  table.Print(console);
}

absl::Status Stats(const SummaryOptions& options, Console& console) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<DataFile> files, FindFiles(options));
  RecordStatistics all(static_cast<size_t>(options.distinct));
  WEIR_RETURN_IF_ERROR(Collect(options, files, console, &all));
  TextTable numbers({"feature", "kind", ">missing", ">values", ">min", ">mean", ">max", ">NaN"});
  bool has_numbers = false;
  std::vector<std::vector<std::string>> strings;
  Json json = TotalsJson(all, files);
  for (const auto& [key, f] : all.features()) {
    json["features"].push_back(SchemaJson(all, key, f));
    json["features"].back().update(ValuesJson(f));
    if (f.kind() == FeatureKind::kBytes) {
      strings.push_back(StringRow(all, key, f));
    } else {
      has_numbers = true;
      numbers.Row(NumberRow(all, key, f));
    }
  }
  if (options.json) {
    Print(json, console);
    return absl::OkStatus();
  }
  PrintTotals(all, files.size(), console);
  if (has_numbers) numbers.Print(console);
  if (has_numbers && !strings.empty()) console.out << "\n";
  if (!strings.empty()) PrintStrings(std::move(strings), console);
  return absl::OkStatus();
}

}  // namespace

void AddDataSummaryCommands(Command& data) {
  auto options = std::make_shared<SummaryOptions>();
  const auto add = [&](const char* name, const char* description, const char* example,
                       absl::Status (*run)(const SummaryOptions&, Console&)) {
    Command part = data.Add(name, description, example);
    AddDataOptions(part, options.get(), "print JSON");
    AddKindOption(part, options.get());
    part.Do([options, run](Console& console) { return Finish(console, run(*options, console)); });
    return part;
  };
  add("count", "Count the records", "  weir data count 'train-*.tfrecord'", Count);
  add("schema", "Infer the features of Examples: kinds, lengths, in how many records",
      "  weir data schema train.tfrecord.gz", Schema);
  Command stats = add("stats", "Print the ranges, means and distinct strings of each feature",
                      "  weir data stats train.tfrecord", Stats);
  stats.Value("--distinct", &options->distinct, "remember so many distinct strings of each feature")
      .Range(1, 1'000'000);
}

}  // namespace weir::tools
