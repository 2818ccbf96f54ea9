#include "weir/tools/events/event_log.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "weir/core/io/file.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/io/record.h"
#include "weir/proto/event.pb.h"

namespace weir::tools {

namespace {

// The search stops at this depth, because a link may lead back to a parent.
constexpr int kMaxDepth = 8;

std::optional<double> ScalarOf(const proto::Summary::Value& value) {
  if (value.value_case() == proto::Summary::Value::kSimpleValue) return value.simple_value();
  if (value.value_case() != proto::Summary::Value::kTensor) return std::nullopt;
  const absl::StatusOr<Tensor> tensor = TensorFromProto(value.tensor());
  if (!tensor.ok() || tensor->num_elements() != 1) return std::nullopt;
  std::optional<double> scalar;
  DispatchType(tensor->dtype(), RealNumbers{},
               [&]<class T>() { scalar = static_cast<double>(tensor->scalar<T>()); });
  return scalar;
}

std::string KindOf(const proto::Summary::Value& value) {
  switch (value.value_case()) {
    case proto::Summary::Value::kSimpleValue:
      return "scalar";
    case proto::Summary::Value::kHisto:
      return "histogram";
    case proto::Summary::Value::kImage:
      return "image";
    case proto::Summary::Value::kAudio:
      return "audio";
    case proto::Summary::Value::kTensor:
      break;
    default:
      return "unknown";
  }
  const std::string& plugin = value.metadata().plugin_data().plugin_name();
  return plugin.empty() ? "tensor" : absl::StrCat("tensor (", plugin, ")");
}

class Collector {
 public:
  explicit Collector(EventLog* log) : log_(log) {}

  void ReadFile(const std::string& path) {
    absl::StatusOr<std::unique_ptr<RecordReader>> reader = RecordReader::Open(path);
    absl::Status status = reader.status();
    while (status.ok()) {
      absl::StatusOr<std::optional<std::string>> record = (*reader)->Next();
      status = record.status();
      if (!status.ok() || !record->has_value()) break;
      proto::Event event;
      if (event.ParseFromString(**record)) {
        Add(event);
      } else {
        status =
            DataLoss(path, ": the record before offset ", (*reader)->offset(), " is not an event");
      }
    }
    if (!status.ok()) log_->damage.push_back(std::string(status.message()));
  }

 private:
  void Add(const proto::Event& event) {
    if (log_->records++ == 0) log_->first_time = event.wall_time();
    log_->last_time = event.wall_time();
    switch (event.what_case()) {
      case proto::Event::kSummary:
        for (const proto::Summary::Value& value : event.summary().value()) AddValue(event, value);
        break;
      case proto::Event::kGraphDef:
        return Count("(graph)", "graph", event.step());
      case proto::Event::kMetaGraphDef:
        return Count("(meta graph)", "meta graph", event.step());
      case proto::Event::kTaggedRunMetadata:
        return Count(event.tagged_run_metadata().tag(), "run metadata", event.step());
      case proto::Event::kSessionLog:
        return Count("(session log)", "session log", event.step());
      default:
        break;
    }
  }

  void AddValue(const proto::Event& event, const proto::Summary::Value& value) {
    Count(value.tag(), KindOf(value), event.step());
    if (const std::optional<double> scalar = ScalarOf(value)) {
      log_->scalars[value.tag()].push_back({event.step(), event.wall_time(), *scalar});
    }
  }

  // The kind comes from the first record, because only that record has metadata.
  void Count(const std::string& tag, const std::string& kind, int64_t step) {
    TagSummary& summary = log_->tags[tag];
    if (summary.count++ == 0) {
      summary.kind = kind;
      summary.first_step = step;
    }
    summary.last_step = step;
  }

  EventLog* log_;
};

absl::Status ReadFolder(const std::string& path, int depth, std::vector<EventLog>* logs) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> names, Files().List(path));
  EventLog log;
  log.name = path;
  std::vector<std::string> folders;
  bool found = false;
  for (const std::string& name : names) {
    const std::string full = JoinPath(path, name);
    if (Files().IsDirectory(full)) {
      folders.push_back(full);
    } else if (absl::StrContains(name, "tfevents")) {
      Collector(&log).ReadFile(full);
      found = true;
    }
  }
  if (found) logs->push_back(std::move(log));
  if (depth == kMaxDepth) return absl::OkStatus();
  for (const std::string& folder : folders) {
    WEIR_RETURN_IF_ERROR(ReadFolder(folder, depth + 1, logs));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<EventLog>> ReadEventLogs(const std::string& path) {
  std::vector<EventLog> logs;
  if (Files().IsDirectory(path)) {
    WEIR_RETURN_IF_ERROR(ReadFolder(path, 0, &logs));
    if (logs.empty()) return NotFound("no event files (*tfevents*) in ", path);
    return logs;
  }
  if (!Files().Exists(path)) return NotFound("no such file or folder: ", path);
  EventLog log;
  log.name = path;
  Collector(&log).ReadFile(path);
  logs.push_back(std::move(log));
  return logs;
}

}  // namespace weir::tools
