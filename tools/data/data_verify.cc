#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "weir/kernels/data/byte_stream.h"
#include "weir/tools/data/data.h"
#include "weir/tools/lib/progress.h"
#include "weir/tools/lib/text_table.h"

// weir data verify: the checksums of records, and what is intact beside damage.
namespace weir::tools {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxRegions = 100;  // that are listed for one file

// Damage between two intact records.
struct DamagedRegion {
  RecordDamage damage;
  int64_t records_before = 0;  // intact ones
  std::string message;
};

struct FileReport {
  int64_t records = 0;  // intact ones
  uint64_t bytes = 0;   // decompressed
  int64_t num_regions = 0;
  std::vector<DamagedRegion> regions;  // the first of them
  std::string ends_with;               // why the rest of the file cannot be read; usually empty

  bool sound() const { return num_regions == 0 && ends_with.empty(); }
};

void AddDamage(const RecordDamage& damage, const std::string& message, bool adjoins,
               FileReport* report) {
  if (adjoins && !report->regions.empty()) {  // the same region, unless it is not listed
    RecordDamage& last = report->regions.back().damage;
    if (last.end != damage.begin) return;
    last.end = damage.end;
    last.records += damage.records;
    last.is_torn_tail = damage.is_torn_tail;
    return;
  }
  ++report->num_regions;
  if (report->regions.size() < kMaxRegions)
    report->regions.push_back({damage, report->records, message});
}

absl::StatusOr<FileReport> VerifyFile(const DataFile& file, const ReadOptions& options) {
  if (file.form != FileForm::kRecords) {
    return InvalidArgument(file.path, " is a file of ", FileFormName(file.form),
                           ", not of records");
  }
  WEIR_ASSIGN_OR_RETURN(RecordStream stream,
                        RecordStream::Open(file.path, file.compression, options.max_record_bytes));
  FileReport report;
  bool adjoins = false;  // to damage
  for (;;) {
    const auto record = stream.Next();
    report.bytes = stream.offset();
    if (record.ok() && !record->has_value()) return report;
    if (record.ok()) {
      ++report.records;
      adjoins = false;
      continue;
    }
    if (!absl::IsDataLoss(record.status())) return NameLimit(record.status());
    const absl::StatusOr<RecordDamage> damage = stream.SkipDamage();
    if (!damage.ok()) {
      report.ends_with = std::string(damage.status().message());
      return report;
    }
    AddDamage(*damage, std::string(record.status().message()), adjoins, &report);
    adjoins = true;
  }
}

// ---- printing

Json ReportJson(const DataFile& file, const FileReport& report) {
  Json regions = Json::array();
  for (const DamagedRegion& region : report.regions) {
    regions.push_back({{"begin", region.damage.begin},
                       {"end", region.damage.end},
                       {"torn_tail", region.damage.is_torn_tail},
                       {"damaged_records", region.damage.records},
                       {"records_before", region.records_before},
                       {"message", region.message}});
  }
  Json json = {{"file", file.path},
               {"compression", file.compression},
               {"sound", report.sound()},
               {"records", report.records},
               {"bytes", report.bytes},
               {"num_regions", report.num_regions},
               {"regions", std::move(regions)}};
  if (!report.ends_with.empty()) json["unreadable_after"] = report.ends_with;
  return json;
}

std::string Number(uint64_t n) { return WithCommas(static_cast<int64_t>(n)); }

void PrintRegion(const DamagedRegion& region, Console& console) {
  const RecordDamage& damage = region.damage;
  console.out << "  " << console.Paint(Style::kBad, damage.is_torn_tail ? "torn tail" : "damaged")
              << " bytes [" << Number(damage.begin) << ", " << Number(damage.end) << "), after "
              << CountText(region.records_before, "intact record") << "\n    " << region.message
              << "\n";
}

void PrintReport(const DataFile& file, const FileReport& report, Console& console) {
  console.out << console.Paint(report.sound() ? Style::kGood : Style::kBad,
                               report.sound() ? "OK" : "DAMAGED")
              << " " << file.path << ": "
              << CountText(report.records, report.sound() ? "record" : "intact record") << ", "
              << Number(report.bytes) << " bytes";
  if (!file.compression.empty()) console.out << ", decompressed from " << file.compression;
  if (report.num_regions > 0)
    console.out << ", " << CountText(report.num_regions, "damaged region");
  console.out << "\n";
  for (const DamagedRegion& region : report.regions) PrintRegion(region, console);
  if (report.num_regions > static_cast<int64_t>(report.regions.size()))
    console.out << "  and others\n";
  if (!report.ends_with.empty())
    console.out << "  the rest cannot be read: " << report.ends_with << "\n";
}

absl::StatusOr<bool> Verify(const DataOptions& options, Console& console) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<DataFile> files, FindFiles(options));
  WEIR_ASSIGN_OR_RETURN(const RecordOptions reading, ReadingOf(options));
  Json json = Json::array();
  bool sound = true;
  for (const DataFile& file : files) {
    FileReport report;
    {
      const ProgressBar progress = ShowReading(console, file.path, static_cast<double>(file.bytes));
      WEIR_ASSIGN_OR_RETURN(report, VerifyFile(file, reading.read));
    }
    sound = sound && report.sound();
    if (options.json) {
      json.push_back(ReportJson(file, report));
    } else {
      PrintReport(file, report, console);
    }
  }
  if (options.json) console.out << json.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
  return sound;
}

int VerifyStatus(const DataOptions& options, Console& console) {
  const absl::StatusOr<bool> sound = Verify(options, console);
  if (!sound.ok()) return Fail(console, sound.status());
  return *sound ? kOk : kFailure;
}

}  // namespace

void AddDataVerifyCommand(Command& data) {
  auto options = std::make_shared<DataOptions>();
  Command verify =
      data.Add("verify", "Check all checksums and report damage (exit status 1 if damaged)",
               "  weir data verify 'train-*.tfrecord'");
  AddDataOptions(verify, options.get(), "print JSON");
  verify.Do([options](Console& console) { return VerifyStatus(*options, console); });
}

}  // namespace weir::tools
