#include <cmath>
#include <ctime>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "weir/tools/events/events.h"
#include "weir/tools/lib/text_table.h"

// weir events values: prints the scalars of runs for people, spreadsheets and programs.
namespace weir::tools {

namespace {

using Json = nlohmann::ordered_json;

struct Row {
  const EventLog& log;
  const std::string& tag;
  const ScalarPoint& point;
};

// "2026-01-31 12:00:00.123" in UTC.
std::string TimeText(double seconds) {
  if (!(std::abs(seconds) < 1e11)) return absl::StrFormat("%.17g", seconds);
  const auto whole = static_cast<time_t>(std::floor(seconds));
  std::tm parts{};
  gmtime_r(&whole, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%F %T", &parts);
  return absl::StrFormat("%s.%03d", text,
                         static_cast<int>((seconds - static_cast<double>(whole)) * 1000));
}

// A field of RFC 4180.
std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

// JSON has no numbers for these.
Json JsonNumber(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

// As many digits as the number, which is often a float, needs to be read back.
std::string NumberText(double value) {
  const bool is_float = static_cast<double>(static_cast<float>(value)) == value;
  return is_float ? absl::StrFormat("%.9g", value) : absl::StrFormat("%.17g", value);
}

// Prints rows as they come.
class ValuePrinter {
 public:
  ValuePrinter(const EventsOptions& options, Console& console)
      : options_(options), console_(console) {}

  void Print(const std::vector<Row>& rows) {
    if (options_.csv && !std::exchange(has_titles_, true))
      console_.out << "run,tag,step,wall_time,value\n";
    TextTable table({"?run", "tag", ">step", "time (UTC)", ">value"});
    for (const auto& [log, tag, point] : rows) {
      if (options_.csv) {
        console_.out << absl::StrFormat("%s,%s,%d,%.6f,%s\n", CsvField(log.name), CsvField(tag),
                                        point.step, point.wall_time, NumberText(point.value));
      } else if (options_.json) {
        const Json json = {{"run", log.name},
                           {"tag", tag},
                           {"step", point.step},
                           {"wall_time", JsonNumber(point.wall_time)},
                           {"value", JsonNumber(point.value)}};
        console_.out << json.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
      } else {
        table.Row({log.label, tag, absl::StrCat(point.step), TimeText(point.wall_time),
                   absl::StrFormat("%.6g", point.value)});
      }
    }
    if (!options_.csv && !options_.json) table.Print(console_);
  }

 private:
  const EventsOptions& options_;
  Console& console_;
  bool has_titles_ = false;
};

}  // namespace

int PrintValues(const EventsOptions& options, Console& console) {
  if (options.csv && options.json)
    return Fail(console, InvalidArgument("--csv and --json exclude each other"));
  ValuePrinter printer(options, console);
  std::map<std::pair<std::string, std::string>, size_t> printed;  // by run and tag
  return ShowEvents(options, console, [&](const std::vector<EventLog>& logs) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> tags, ChosenTags(options, logs));
    std::vector<Row> rows;
    for (const EventLog& log : logs) {
      for (const std::string& tag : tags) {
        const auto scalars = log.scalars.find(tag);
        if (scalars == log.scalars.end()) continue;
        size_t& count = printed[{log.name, tag}];
        for (; count < scalars->second.size(); ++count)
          rows.push_back({log, scalars->first, scalars->second[count]});
      }
    }
    if (!rows.empty()) printer.Print(rows);
    return absl::OkStatus();
  });
}

}  // namespace weir::tools
