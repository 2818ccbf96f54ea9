#include "weir/tools/events/event_log.h"

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

// Adds events to a log.
class Collector {
 public:
  explicit Collector(EventLog* log) : log_(log) {}

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

 private:
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

}  // namespace

absl::Status EventReader::Read() {
  for (const std::string& path : paths_) {
    if (Files().IsDirectory(path)) {
      WEIR_ASSIGN_OR_RETURN(const int found, Search(path, path, 0));
      if (found == 0) return NotFound("no event files (*tfevents*) in ", path);
    } else if (Files().Exists(path)) {
      AddFile(path, path, path);
    } else {
      return NotFound("no such file or folder: ", path);
    }
  }
  for (EventLog& log : logs_) {
    log.damage.clear();
    log.torn.clear();
  }
  for (auto& [path, file] : files_) {
    if (file.damage.empty()) ReadFile(path, file);
    if (!file.damage.empty()) logs_[file.log].damage.push_back(file.damage);
    if (!file.torn.empty()) logs_[file.log].torn.push_back(file.torn);
  }
  return absl::OkStatus();
}

absl::StatusOr<int> EventReader::Search(const std::string& folder, const std::string& root,
                                        int depth) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> names, Files().List(folder));
  const std::string label = folder == root ? "." : folder.substr(JoinPath(root, "x").size() - 1);
  std::vector<std::string> folders;
  int found = 0;
  for (const std::string& name : names) {
    const std::string full = JoinPath(folder, name);
    if (Files().IsDirectory(full)) {
      folders.push_back(full);
    } else if (absl::StrContains(name, "tfevents")) {
      AddFile(full, folder, paths_.size() > 1 ? folder : label);
      ++found;
    }
  }
  if (depth == kMaxDepth) return found;
  for (const std::string& one : folders) {
    WEIR_ASSIGN_OR_RETURN(const int below, Search(one, root, depth + 1));
    found += below;
  }
  return found;
}

void EventReader::AddFile(const std::string& path, const std::string& run,
                          const std::string& label) {
  const auto [at, is_new] = runs_.emplace(run, logs_.size());
  if (is_new) {
    logs_.emplace_back();
    logs_.back().name = run;
    logs_.back().label = label;
  }
  files_.emplace(path, File{at->second});
}

void EventReader::ReadFile(const std::string& path, File& file) {
  file.torn.clear();
  absl::StatusOr<std::unique_ptr<RecordReader>> reader = RecordReader::Open(path);
  absl::Status status = reader.status();
  if (reader.ok()) (*reader)->Seek(file.offset);
  Collector collector(&logs_[file.log]);
  while (status.ok()) {
    absl::StatusOr<std::optional<std::string>> record = (*reader)->Next();
    status = record.status();
    if (!status.ok() || !record->has_value()) break;
    file.offset = (*reader)->offset();
    proto::Event event;
    if (event.ParseFromString(**record)) {
      collector.Add(event);
    } else {
      status = DataLoss(path, ": the record before offset ", file.offset, " is not an event");
    }
  }
  if (status.ok()) return;
  const bool torn = absl::StrContains(status.message(), ": truncated");
  (torn ? file.torn : file.damage) = std::string(status.message());
}

}  // namespace weir::tools
