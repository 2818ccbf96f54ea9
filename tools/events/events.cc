#include "weir/tools/events/events.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "weir/core/io/file.h"
#include "weir/tools/lib/command.h"
#include "weir/tools/lib/text_table.h"
#include "weir/tools/lib/text_width.h"

// weir events ls|plot|values: shows on the terminal what TensorBoard would show.
namespace weir::tools {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::chrono::milliseconds kPollInterval{500};

// True if each of the paths exists: a folder may get event files later.
bool HasFolders(const std::vector<std::string>& paths) {
  return std::all_of(paths.begin(), paths.end(),
                     [](const std::string& path) { return Files().Exists(path); });
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
      for (const ScalarPoint& p : scalars->second) points.push_back({p.step, p.value, p.wall_time});
    }
    tags.push_back(std::move(entry));
  }
  return {{"run", log.name}, {"records", log.records}, {"damage", log.damage}, {"tags", tags}};
}

void PrintLog(const EventLog& log, Console& console) {
  const std::string& run = log.label == "." ? log.name : log.label;
  console.out << console.Paint(Style::kBold, Printable(run, console.unicode)) << "  "
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
  return ShowEvents(options, console, [&](const std::vector<EventLog>& logs) {
    Json json = Json::array();
    for (const EventLog& log : logs) {
      if (options.json) {
        json.push_back(LogToJson(log));
      } else {
        if (&log != &logs.front()) console.out << "\n";
        PrintLog(log, console);
      }
    }
    if (options.json)
      console.out << json.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
    return absl::OkStatus();
  });
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

// Returns the tags of each chart.
std::vector<std::vector<std::string>> ChartsOf(const std::vector<std::string>& tags,
                                               const EventsOptions& options) {
  if (options.together) return {tags};
  std::vector<std::vector<std::string>> charts;
  for (const std::string& tag : tags) charts.push_back({tag});
  return charts;
}

void DrawCharts(const std::vector<std::vector<std::string>>& charts,
                const std::vector<EventLog>& logs, const EventsOptions& options, Console& console) {
  ChartOptions chart;
  chart.width = options.width > 0 ? options.width : std::min(console.width, 100);
  chart.height = options.height;
  chart.log_y = options.log;
  chart.x_title = "step";
  if (options.follow && console.fits) console.out << "\x1b[H\x1b[J";  // in place of the last ones
  for (const std::vector<std::string>& tags : charts) {
    if (&tags != &charts.front()) console.out << "\n";
    chart.title = absl::StrJoin(tags, ", ");
    DrawChart(LinesOf(tags, logs, options), chart, console);
  }
}

int Plot(const EventsOptions& options, Console& console) {
  if (!options.html.empty()) {
    const absl::Status status = CheckCanCreate("--html", options.html);
    if (!status.ok()) return Fail(console, status);
  }
  return ShowEvents(options, console, [&](const std::vector<EventLog>& logs) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> tags, ChosenTags(options, logs));
    const std::vector<std::vector<std::string>> charts = ChartsOf(tags, options);
    if (options.html.empty()) {
      DrawCharts(charts, logs, options, console);
      return absl::OkStatus();
    }
    WEIR_RETURN_IF_ERROR(WriteFileAtomically(options.html, EventsPage(charts, logs, options)));
    console.out << "Wrote " << options.html << ": " << charts.size() << " charts of " << logs.size()
                << " runs\n";
    return absl::OkStatus();
  });
}

}  // namespace

bool ReportDamage(const std::vector<EventLog>& logs, Console& console) {
  bool damaged = false;
  for (const EventLog& log : logs) {
    for (const auto* const texts : {&log.damage, &log.torn}) {
      for (const std::string& text : *texts) console.err << "weir: " << text << "\n";
      damaged |= !texts->empty();
    }
  }
  return damaged;
}

absl::StatusOr<std::vector<std::string>> ChosenTags(const EventsOptions& options,
                                                    const std::vector<EventLog>& logs) {
  std::set<std::string> known;
  for (const EventLog& log : logs) {
    for (const auto& [tag, points] : log.scalars) known.insert(tag);
  }
  std::vector<std::string> chosen;
  if (options.tags.empty()) chosen.assign(known.begin(), known.end());
  for (const std::string& tag : options.tags) {
    if (known.count(tag) > 0) chosen.push_back(tag);
  }
  if (!chosen.empty()) return chosen;
  return NotFound(options.tags.empty() ? "no scalar tags" : "no scalars with the tags ",
                  absl::StrJoin(options.tags, ", "), "; 'weir events ls' lists all tags");
}

std::vector<ChartLine> LinesOf(const std::vector<std::string>& tags,
                               const std::vector<EventLog>& logs, const EventsOptions& options) {
  std::vector<ChartLine> lines;
  for (const std::string& tag : tags) {
    for (const EventLog& log : logs) {
      const auto scalars = log.scalars.find(tag);
      if (scalars == log.scalars.end()) continue;
      const std::string name = logs.size() == 1  ? tag
                               : tags.size() > 1 ? absl::StrCat(log.label, " ", tag)
                                                 : log.label;
      const size_t color = tags.size() > 1 ? lines.size() : static_cast<size_t>(&log - logs.data());
      lines.push_back({name, Smoothed(scalars->second, options.smooth), static_cast<int>(color)});
    }
  }
  return lines;
}

int ShowEvents(const EventsOptions& options, Console& console,
               const std::function<absl::Status(const std::vector<EventLog>&)>& show) {
  EventReader reader(options.paths);
  std::set<std::string> reported;  // damage, while following
  int64_t shown = -1;
  do {
    absl::Status status = reader.Read();
    int64_t records = 0;
    for (const EventLog& log : reader.logs()) records += log.records;
    const bool is_new = records > shown && (records > 0 || !options.follow);
    if (status.ok() && is_new) {
      status = show(reader.logs());
      console.out.flush();
      shown = records;
    }
    const bool waits = options.follow && absl::IsNotFound(status) && HasFolders(options.paths);
    if (!status.ok() && !waits) return Fail(console, status);
    if (!options.follow) break;
    for (const EventLog& log : reader.logs()) {
      for (const std::string& text : log.damage) {
        if (reported.insert(text).second) console.err << "weir: " << text << "\n";
      }
    }
    std::this_thread::sleep_for(kPollInterval);
  } while (console.out.good());
  return ReportDamage(reader.logs(), console) ? kFailure : kOk;
}

void AddEventsCommand(Command& weir) {
  auto options = std::make_shared<EventsOptions>();
  Command events = weir.Add("events", "List, plot and print the event files of training runs",
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
  const auto add_tags = [&](Command& part) {
    part.List("--tag", &options->tags, "only these tags; default: all scalars").Word("TAG,...");
  };
  const auto add_follow = [&](Command& part) {
    part.Flag("--follow", &options->follow,
              "continue with what is written later, until the program is interrupted");
  };
  Command ls = add("ls", "List the tags", "  weir events ls runs/digits", Ls);
  ls.Flag("--json", &options->json,
          "print JSON, including all scalar values as [step, value, wall time]");

  Command plot = add("plot", "Plot scalars over steps: one chart per tag, one line per run",
                     "  weir events plot runs/digits --tag loss,accuracy --smooth 0.8", Plot);
  add_tags(plot);
  plot.Value("--smooth", &options->smooth, "smoothing weight, as in TensorBoard").Range(0, 0.9999);
  plot.Flag("--together", &options->together, "plot all tags in one chart");
  plot.Flag("--log", &options->log, "use a logarithmic scale");
  plot.Value("--width", &options->width,
             "chart width in columns; default: the terminal's width, at most 100")
      .Range(30, 1000);
  plot.Value("--height", &options->height, "chart height in lines").Range(7, 200);
  plot.Value("--html", &options->html, "write the charts to this file, a page for a browser")
      .Word("FILE");
  add_follow(plot);

  Command values = add("values", "Print scalars with their steps and times",
                       "  weir events values runs/digits --tag loss --csv > loss.csv", PrintValues);
  add_tags(values);
  values.Flag("--csv", &options->csv, "print CSV: run,tag,step,wall_time,value");
  values.Flag("--json", &options->json, "print JSON, one object a line");
  add_follow(values);
}

}  // namespace weir::tools
