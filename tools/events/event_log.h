#ifndef WEIR_TOOLS_EVENTS_EVENT_LOG_H_
#define WEIR_TOOLS_EVENTS_EVENT_LOG_H_

#include <map>
#include <string>
#include <vector>

#include "weir/core/tensor/status.h"

namespace weir::tools {

struct ScalarPoint {
  int64_t step = 0;
  double wall_time = 0, value = 0;
};

// The records of a tag. The kind is "scalar", "histogram", "image", "audio", "tensor (text)",
// "graph", ...
struct TagSummary {
  std::string kind;
  int64_t count = 0, first_step = 0, last_step = 0;
};

// One run: the event files of one folder, in the order of their names, which begin with the time.
struct EventLog {
  std::string name;  // the folder or file
  int64_t records = 0;
  double first_time = 0, last_time = 0;  // seconds since 1970
  std::map<std::string, TagSummary> tags;
  std::map<std::string, std::vector<ScalarPoint>> scalars;  // in the order written
  std::vector<std::string> damage;  // unreadable records; the rest of such a file is missing
};

// Reads an event file, or all event files in and below a folder (one run per folder). NOT_FOUND if
// there are none.
absl::StatusOr<std::vector<EventLog>> ReadEventLogs(const std::string& path);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_EVENTS_EVENT_LOG_H_
