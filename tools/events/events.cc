#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "weir/tools/events/chart.h"
#include "weir/tools/events/event_log.h"
#include "weir/tools/lib/command.h"
#include "weir/tools/lib/text_table.h"

// weir events ls|plot: shows on the terminal what TensorBoard would show.
namespace weir::tools {

namespace {

using Json = nlohmann::ordered_json;

struct EventsOptions {
  std::vector<std::string> paths, tags;
  double smooth = 0;
  int width = 0, height = 16;
  bool json = false, together = false, log = false;
};

absl::StatusOr<std::vector<EventLog>> ReadAll(const EventsOptions& options) {
  std::vector<EventLog> logs;
  for (const std::string& path : options.paths) {
    WEIR_ASSIGN_OR_RETURN(std::vector<EventLog> more, ReadEventLogs(path));
    std::move(more.begin(), more.end(), std::back_inserter(logs));
  }
  return logs;
}

// Prints damaged records. Returns true if there are any.
bool ReportDamage(const std::vector<EventLog>& logs, Console& console) {
  bool damaged = false;
  for (const EventLog& log : logs) {
    for (const std::string& text : log.damage) {
      console.err << "weir: " << text << "\n";
      damaged = true;
    }
  }
  return damaged;
}

// ---- ls

Json LogToJson(const EventLog& log) {
  Json tags = Json::array();
  for (const auto& [name, tag] : log.tags) {
    Json entry = {{"tag", name},
                  {"kind", tag.kind},
                  {"count", tag.count},
                  {"first_step", tag.first_step},
                  {"last_step", tag.last_step}};
    if (const auto scalars = log.scalars.find(name); scalars != log.scalars.end()) {
      Json& points = entry["points"] = Json::array();
      for (const ScalarPoint& p : scalars->second) points.push_back({p.step, p.value});
    }
    tags.push_back(std::move(entry));
  }
  return {{"run", log.name}, {"records", log.records}, {"damage", log.damage}, {"tags", tags}};
}

void PrintLog(const EventLog& log, Console& console) {
  console.out << console.Paint(Style::kBold, log.name) << "  "
              << console.Paint(Style::kDim, absl::StrFormat("%d records over %.0f s", log.records,
                                                            log.last_time - log.first_time))
              << "\n";
  TextTable table({"tag", "kind", "?>records", ">steps", ">last value"});
  for (const auto& [name, tag] : log.tags) {
    const auto scalars = log.scalars.find(name);
    table.Row(
        {name, tag.kind, absl::StrCat(tag.count), absl::StrCat(tag.first_step, "..", tag.last_step),
         scalars == log.scalars.end() ? ""
                                      : absl::StrFormat("%.6g", scalars->second.back().value)});
  }
  table.Print(console);
}

int Ls(const EventsOptions& options, Console& console) {
  const auto logs = ReadAll(options);
  if (!logs.ok()) return Fail(console, logs.status());
  Json json = Json::array();
  for (const EventLog& log : *logs) {
    if (options.json) {
      json.push_back(LogToJson(log));
    } else {
      PrintLog(log, console);
    }
  }
  if (options.json) {
    console.out << json.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
  }
  return ReportDamage(*logs, console) ? kFailure : kOk;
}

// ---- plot

// TensorBoard's exponential moving average with bias correction: the average does not start at
// zero.
std::vector<std::pair<double, double>> Smoothed(const std::vector<ScalarPoint>& points,
                                                double weight) {
  std::vector<std::pair<double, double>> out;
  double sum = 0, weights = 0;
  for (const ScalarPoint& p : points) {
    if (std::isfinite(p.value)) {
      sum = weight * sum + (1 - weight) * p.value;
      weights = weight * weights + (1 - weight);
    }
    out.emplace_back(static_cast<double>(p.step), std::isfinite(p.value) ? sum / weights : p.value);
  }
  return out;
}

// Returns the scalar tags of all runs, or those of the requested tags that exist.
std::vector<std::string> ChosenTags(const EventsOptions& options,
                                    const std::vector<EventLog>& logs) {
  std::set<std::string> known;
  for (const EventLog& log : logs) {
    for (const auto& [tag, points] : log.scalars) known.insert(tag);
  }
  if (options.tags.empty()) return std::vector<std::string>(known.begin(), known.end());
  std::vector<std::string> chosen;
  for (const std::string& tag : options.tags) {
    if (known.count(tag) > 0) chosen.push_back(tag);
  }
  return chosen;
}

std::vector<ChartLine> LinesOf(const std::string& tag, const std::vector<EventLog>& logs,
                               const EventsOptions& options) {
  std::vector<ChartLine> lines;
  for (const EventLog& log : logs) {
    const auto scalars = log.scalars.find(tag);
    if (scalars == log.scalars.end()) continue;
    const std::string name = logs.size() == 1   ? tag
                             : options.together ? log.name + " " + tag
                                                : log.name;
    lines.push_back({name, Smoothed(scalars->second, options.smooth)});
  }
  return lines;
}

int Plot(const EventsOptions& options, Console& console) {
  const auto logs = ReadAll(options);
  if (!logs.ok()) return Fail(console, logs.status());
  const bool damaged = ReportDamage(*logs, console);
  const std::vector<std::string> tags = ChosenTags(options, *logs);
  if (tags.empty()) {
    return Fail(console,
                NotFound(options.tags.empty() ? "no scalar tags" : "no scalars with the tags ",
                         absl::StrJoin(options.tags, ", "), "; 'weir events ls' lists all tags"));
  }
  ChartOptions chart;
  chart.width = options.width > 0 ? options.width : std::min(console.width, 100);
  chart.height = options.height;
  chart.log_y = options.log;
  chart.x_title = "step";
  std::vector<ChartLine> all;
  for (const std::string& tag : tags) {
    std::vector<ChartLine> lines = LinesOf(tag, *logs, options);
    if (options.together) {
      std::move(lines.begin(), lines.end(), std::back_inserter(all));
      continue;
    }
    chart.title = tag;
    DrawChart(lines, chart, console);
    if (tag != tags.back()) console.out << "\n";
  }
  if (options.together) {
    chart.title = absl::StrJoin(tags, ", ");
    DrawChart(all, chart, console);
  }
  return damaged ? kFailure : kOk;
}

}  // namespace

void AddEventsCommand(Command& weir) {
  auto options = std::make_shared<EventsOptions>();
  Command events = weir.Add("events", "List and plot the event files of training runs",
                            "  weir events plot runs/digits --tag loss --smooth 0.8");
  const auto add = [&](const char* name, const char* description, const char* example,
                       int (*run)(const EventsOptions&, Console&)) {
    Command part = events.Add(name, description, example);
    part.Arguments("PATH", &options->paths,
                   "event files, or folders that contain event files (searched recursively)")
        .Required();
    part.Do([options, run](Console& console) { return run(*options, console); });
    return part;
  };
  Command ls = add("ls", "List the tags", "  weir events ls runs/digits", Ls);
  ls.Flag("--json", &options->json, "print JSON, including all scalar values");

  Command plot = add("plot", "Plot scalars over steps: one chart per tag, one line per run",
                     "  weir events plot runs/digits --tag loss,accuracy --smooth 0.8", Plot);
  plot.List("--tag", &options->tags, "tags to plot; default: all scalars").Word("TAG,...");
  plot.Value("--smooth", &options->smooth, "smoothing weight, as in TensorBoard").Range(0, 0.9999);
  plot.Flag("--together", &options->together, "plot all tags in one chart");
  plot.Flag("--log", &options->log, "use a logarithmic scale");
  plot.Value("--width", &options->width,
             "chart width in columns; default: the terminal's width, at most 100")
      .Range(30, 1000);
  plot.Value("--height", &options->height, "chart height in lines").Range(7, 200);
}

}  // namespace weir::tools
