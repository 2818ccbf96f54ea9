#ifndef WEIR_TOOLS_EVENTS_EVENT_LOG_H_
#define WEIR_TOOLS_EVENTS_EVENT_LOG_H_

#include <map>
#include <string>
#include <utility>
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
  std::string name;   // the folder or file
  std::string label;  // the same for people: relative to the folder in which runs were searched
  int64_t records = 0;
  double first_time = 0, last_time = 0;  // seconds since 1970
  std::map<std::string, TagSummary> tags;
  std::map<std::string, std::vector<ScalarPoint>> scalars;  // in the order written
  std::vector<std::string> damage;  // unreadable records; the rest of such a file is missing
  // Files that end within a record: their writers were interrupted, or are still writing.
  std::vector<std::string> torn;
};

// Reads event files, and what is added to them later. Not thread-safe.
class EventReader {
 public:
  // Each path is an event file, or a folder: all event files in and below it, one run per folder.
  explicit EventReader(std::vector<std::string> paths) : paths_(std::move(paths)) {}

  // Reads all that is new since the last call: files, and records of known files. Returns NOT_FOUND
  // if a path does not exist, or is a folder without event files.
  absl::Status Read();

  // The runs; new ones are added at the end.
  const std::vector<EventLog>& logs() const { return logs_; }

 private:
  struct File {
    size_t log;                // index in logs_
    uint64_t offset = 0;       // of the first record that was not read
    std::string damage, torn;  // what is wrong at that offset; empty: nothing
  };
  // Adds the event files of a folder and of those below it, and returns their number. `root` is one
  // of paths_.
  absl::StatusOr<int> Search(const std::string& folder, const std::string& root, int depth);
  void AddFile(const std::string& path, const std::string& run, const std::string& label);
  void ReadFile(const std::string& path, File& file);

  const std::vector<std::string> paths_;
  std::vector<EventLog> logs_;
  std::map<std::string, size_t> runs_;  // indices in logs_ by name
  std::map<std::string, File> files_;
};

}  // namespace weir::tools

#endif  // WEIR_TOOLS_EVENTS_EVENT_LOG_H_
