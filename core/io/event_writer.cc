#include "weir/core/io/event_writer.h"

#include <unistd.h>

#include "absl/strings/str_format.h"
#include "weir/core/io/file.h"
#include "weir/proto/event.pb.h"

namespace weir {
namespace {

double Now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 && name[0] != '\0' ? name : "localhost";
}

}  // namespace

EventWriter::EventWriter(std::string path, std::unique_ptr<RecordWriter> records,
                         std::chrono::seconds flush_period)
    : path_(std::move(path)),
      flush_period_(flush_period),
      records_(std::move(records)),
      last_flush_(std::chrono::steady_clock::now()) {}

EventWriter::~EventWriter() = default;

absl::StatusOr<std::unique_ptr<EventWriter>> EventWriter::Create(
    const std::string& logdir, const EventWriterOptions& options) {
  WEIR_RETURN_IF_ERROR(MakeDirectories(logdir));
  const double now = Now();
  // A second writer created within the same second gets another name.
  std::string path;
  for (auto seconds = static_cast<int64_t>(now); path.empty() || Files().Exists(path); ++seconds) {
    path = JoinPath(logdir, absl::StrFormat("events.out.tfevents.%010d.%s%s", seconds, HostName(),
                                            options.filename_suffix));
  }
  WEIR_ASSIGN_OR_RETURN(std::unique_ptr<RecordWriter> records, RecordWriter::Create(path));
  proto::Event first;
  first.set_wall_time(now);
  first.set_file_version("brain.Event:2");
  first.mutable_source_metadata()->set_writer("weir.core.event_writer");
  WEIR_RETURN_IF_ERROR(records->Append(first.SerializeAsString()));
  WEIR_RETURN_IF_ERROR(records->Flush());
  return std::unique_ptr<EventWriter>(
      new EventWriter(path, std::move(records), options.flush_period));
}

template <class Fill>
absl::Status EventWriter::Add(int64_t step, Fill fill) {
  proto::Event event;
  event.set_wall_time(Now());
  event.set_step(step);
  const MutexLock lock(mutex_);
  WEIR_RETURN_IF_ERROR(fill(&event));
  WEIR_RETURN_IF_ERROR(records_->Append(event.SerializeAsString()));
  const auto now = std::chrono::steady_clock::now();
  if (now - last_flush_ < flush_period_) return absl::OkStatus();
  last_flush_ = now;
  return records_->Flush();
}

absl::Status EventWriter::AddSummary(absl::string_view summary, int64_t step) {
  return Add(step, [&](proto::Event* event) -> absl::Status {
    if (!event->mutable_summary()->ParseFromArray(summary.data(),
                                                  static_cast<int>(summary.size()))) {
      return InvalidArgument("cannot parse ", summary.size(), " bytes as a Summary");
    }
    mutex_.AssertHeld();
    for (proto::Summary::Value& value : *event->mutable_summary()->mutable_value()) {
      if (value.has_metadata() && !tags_with_metadata_.insert(value.tag()).second)
        value.clear_metadata();
    }
    return absl::OkStatus();
  });
}

absl::Status EventWriter::AddScalar(absl::string_view tag, float value, int64_t step) {
  return Add(step, [&](proto::Event* event) {
    proto::Summary::Value* out = event->mutable_summary()->add_value();
    out->set_tag(std::string(tag));
    out->set_simple_value(value);
    return absl::OkStatus();
  });
}

absl::Status EventWriter::AddGraph(absl::string_view graph_def, int64_t step) {
  return Add(step, [&](proto::Event* event) {
    event->set_graph_def(std::string(graph_def));
    return absl::OkStatus();
  });
}

absl::Status EventWriter::AddMetaGraph(absl::string_view meta_graph_def, int64_t step) {
  return Add(step, [&](proto::Event* event) {
    event->set_meta_graph_def(std::string(meta_graph_def));
    return absl::OkStatus();
  });
}

absl::Status EventWriter::AddRunMetadata(absl::string_view tag, absl::string_view run_metadata,
                                         int64_t step) {
  return Add(step, [&](proto::Event* event) {
    event->mutable_tagged_run_metadata()->set_tag(std::string(tag));
    event->mutable_tagged_run_metadata()->set_run_metadata(std::string(run_metadata));
    return absl::OkStatus();
  });
}

absl::Status EventWriter::Flush() {
  const MutexLock lock(mutex_);
  last_flush_ = std::chrono::steady_clock::now();
  return records_->Flush();
}

absl::Status EventWriter::Close() {
  const MutexLock lock(mutex_);
  return records_->Close();
}

}  // namespace weir
