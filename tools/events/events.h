#ifndef WEIR_TOOLS_EVENTS_EVENTS_H_
#define WEIR_TOOLS_EVENTS_EVENTS_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "weir/tools/events/chart.h"
#include "weir/tools/events/event_log.h"

// What the parts of `weir events` share.
namespace weir::tools {

struct EventsOptions {
  std::vector<std::string> paths, tags;
  std::string html;  // the file that plot writes; empty: none
  double smooth = 0;
  int width = 0, height = 16;
  bool json = false, csv = false, together = false, log = false, follow = false;
};

// Prints damaged records. Returns true if there are any.
bool ReportDamage(const std::vector<EventLog>& logs, Console& console);

// Returns the scalar tags of all runs, or those of the requested tags that exist. NOT_FOUND if
// there is none.
absl::StatusOr<std::vector<std::string>> ChosenTags(const EventsOptions& options,
                                                    const std::vector<EventLog>& logs);

// The lines of the chart of some tags: one for each run that has them. Values are smoothed.
std::vector<ChartLine> LinesOf(const std::vector<std::string>& tags,
                               const std::vector<EventLog>& logs, const EventsOptions& options);

// The values that `weir events values` prints, as a table, CSV or JSON lines.
int PrintValues(const EventsOptions& options, Console& console);

// Returns a page with a chart for each list of tags.
std::string EventsPage(const std::vector<std::vector<std::string>>& charts,
                       const std::vector<EventLog>& logs, const EventsOptions& options);

// Calls `show` with what there is, and with --follow again whenever there is more, without end. A
// folder may then be empty at first. Returns the exit status.
int ShowEvents(const EventsOptions& options, Console& console,
               const std::function<absl::Status(const std::vector<EventLog>&)>& show);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_EVENTS_EVENTS_H_
