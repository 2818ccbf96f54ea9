#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "weir/core/io/file.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/io/record.h"
#include "weir/kernels/data/summary_writer.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/waiter_queue.h"
#include "weir/proto/event.pb.h"
#include "weir/proto/graph.pb.h"
#include "weir/proto/summary.pb.h"

// Summary writers: graphs that write their own event files, as TensorFlow 2's summaries do. A
// writer is a resource without a file until CreateSummaryFileWriter has run, and again after Close.
namespace weir {

namespace {

using Clock = std::chrono::steady_clock;

proto::Event NewEvent() {
  proto::Event event;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  event.set_wall_time(std::chrono::duration<double>(now).count());
  return event;
}

class SummaryWriterState final : public Resource {
 public:
  explicit SummaryWriterState(std::string name) : name_(std::move(name)) {}

  std::string Describe() const override { return "summary writer '" + name_ + "'"; }
  void Clear() override { Close().IgnoreError(); }

  struct Options {
    std::string folder, suffix;
    int64_t max_queue = 0;  // events buffered before they are written to the file
    std::chrono::milliseconds flush_period{0};
  };

  // Does nothing if the writer already has a file.
  absl::Status Open(const Options& options) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (file_ != nullptr) return absl::OkStatus();
    WEIR_RETURN_IF_ERROR(MakeDirectories(options.folder));
    char host[256] = "localhost";
    gethostname(host, sizeof(host) - 1);
    proto::Event first = NewEvent();
    // The process id and the number distinguish writers that are created in the same second.
    const std::string name = absl::StrFormat(
        "events.out.tfevents.%010d.%s.%d.%d%s%s", static_cast<int64_t>(first.wall_time()), host,
        getpid(), number_++, absl::StartsWith(options.suffix, ".") ? "" : ".", options.suffix);
    first.set_file_version("brain.Event:2");
    first.mutable_source_metadata()->set_writer("weir.kernels.summary_writer");
    WEIR_ASSIGN_OR_RETURN(std::unique_ptr<RecordWriter> file,
                          RecordWriter::Create(JoinPath(options.folder, name)));
    WEIR_RETURN_IF_ERROR(file->Append(first.SerializeAsString()));
    WEIR_RETURN_IF_ERROR(file->Flush());
    file_ = std::move(file);
    options_ = options;
    waiting_ = 0;
    last_flush_ = Clock::now();
    return absl::OkStatus();
  }

  absl::Status Write(const proto::Event& event) {
    const std::lock_guard<std::mutex> lock(mutex_);
    WEIR_RETURN_IF_ERROR(CheckOpen());
    WEIR_RETURN_IF_ERROR(file_->Append(event.SerializeAsString()));
    ++waiting_;
    if (waiting_ <= options_.max_queue && Clock::now() - last_flush_ <= options_.flush_period)
      return absl::OkStatus();
    return FlushLocked();
  }

  absl::Status Flush() {
    const std::lock_guard<std::mutex> lock(mutex_);
    WEIR_RETURN_IF_ERROR(CheckOpen());
    return FlushLocked();
  }

  absl::Status Close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    WEIR_RETURN_IF_ERROR(CheckOpen());
    const std::unique_ptr<RecordWriter> file = std::move(file_);
    return file->Close();
  }

 private:
  absl::Status CheckOpen() const {
    if (file_ != nullptr) return absl::OkStatus();
    return NotFound("Resource ", name_,
                    " does not exist: the summary writer has no file. Run its "
                    "CreateSummaryFileWriter first");
  }
  absl::Status FlushLocked() {
    waiting_ = 0;
    last_flush_ = Clock::now();
    return file_->Flush();
  }

  const std::string name_;
  std::mutex mutex_;
  std::unique_ptr<RecordWriter> file_;
  Options options_;
  int64_t waiting_ = 0, number_ = 0;
  Clock::time_point last_flush_;
};

absl::StatusOr<Kernel> MakeSummaryWriter(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const ResourceName name, NameSharedByNode(init.node));
  const auto writer = name.SelectMap(init.resources)
                          .LookupOrCreate<SummaryWriterState>(name.container, name.name, [&] {
                            return std::make_shared<SummaryWriterState>(name.name);
                          });
  return Kernel::Constant(HandleTo(init.device, name, writer));
}

absl::Status CreateFile(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const auto writer, c.resource<SummaryWriterState>(0));
  SummaryWriterState::Options options;
  WEIR_ASSIGN_OR_RETURN(options.folder, ReadString(c.input(1), "logdir"));
  WEIR_ASSIGN_OR_RETURN(options.max_queue, ReadInt(c.input(2), "max_queue"));
  WEIR_ASSIGN_OR_RETURN(const int64_t millis, ReadInt(c.input(3), "flush_millis"));
  WEIR_ASSIGN_OR_RETURN(options.suffix, ReadString(c.input(4), "filename_suffix"));
  options.flush_period = std::chrono::milliseconds(millis);
  return writer->Open(options);
}

absl::Status CreateDatabase(KernelContext&) {
  return Unimplemented("Summaries are not written to databases: use CreateSummaryFileWriter");
}

template <absl::Status (SummaryWriterState::*kCall)()>
absl::Status Call(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const auto writer, c.resource<SummaryWriterState>(0));
  return (*writer.*kCall)();
}

// Writes an event for the step at input 1.
absl::Status WriteEvent(KernelContext& c, proto::Event event) {
  WEIR_ASSIGN_OR_RETURN(const auto writer, c.resource<SummaryWriterState>(0));
  WEIR_ASSIGN_OR_RETURN(const int64_t step, ReadOneInt(c.input(1), "step"));
  event.set_step(step);
  return writer->Write(event);
}

absl::Status WriteTensor(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const std::string tag, ReadOneString(c.input(3), "tag"));
  WEIR_ASSIGN_OR_RETURN(const std::string metadata, ReadOneString(c.input(4), "summary_metadata"));
  proto::Summary summary;
  proto::Summary::Value* value = summary.add_value();
  value->set_tag(tag);
  TensorToProtoContent(c.input(2), value->mutable_tensor());
  if (!metadata.empty() && !value->mutable_metadata()->ParseFromString(metadata))
    return InvalidArgument("summary_metadata is not a serialized SummaryMetadata");
  return WriteSummaryEvent(c, summary);
}

absl::Status WriteRawProto(KernelContext& c) {
  WEIR_RETURN_IF_ERROR(CheckRank(c.input(1), 0, "step"));
  proto::Summary summary;
  int64_t i = 0;
  for (const std::string& bytes : c.input(2).flat<std::string>()) {
    if (!summary.MergeFromString(bytes)) {
      return absl::DataLossError(
          absl::StrCat("Bad tf.compat.v1.Summary binary proto tensor string at index ", i));
    }
    ++i;
  }
  return WriteSummaryEvent(c, summary);
}

absl::Status WriteGraph(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const std::string bytes, ReadOneString(c.input(2), "tensor"));
  if (!proto::GraphDef().ParseFromString(bytes))
    return absl::DataLossError("Bad tf.GraphDef binary proto tensor string");
  proto::Event event = NewEvent();
  event.set_graph_def(bytes);
  return WriteEvent(c, std::move(event));
}

absl::Status ImportEvent(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const auto writer, c.resource<SummaryWriterState>(0));
  WEIR_ASSIGN_OR_RETURN(const std::string bytes, ReadOneString(c.input(1), "event"));
  proto::Event event;
  if (!event.ParseFromString(bytes))
    return absl::DataLossError("Bad tf.Event binary proto tensor string");
  return writer->Write(event);
}

}  // namespace

absl::Status WriteSummaryEvent(KernelContext& ctx, const proto::Summary& summary) {
  proto::Event event = NewEvent();
  *event.mutable_summary() = summary;
  return WriteEvent(ctx, std::move(event));
}

void AddSummaryWriterKernels(KernelRegistry* r) {
  r->Add("CloseSummaryWriter", kCpu, Call<&SummaryWriterState::Close>);
  r->Add("CreateSummaryDbWriter", kCpu, CreateDatabase);
  r->Add("CreateSummaryFileWriter", kCpu, CreateFile);
  r->Add("FlushSummaryWriter", kCpu, Call<&SummaryWriterState::Flush>);
  r->Add("ImportEvent", kCpu, ImportEvent);
  r->Add("SummaryWriter", kCpu, MakeSummaryWriter);
  r->Add("WriteGraphSummary", kCpu, WriteGraph);
  r->Add("WriteRawProtoSummary", kCpu, WriteRawProto);
  r->Add("WriteSummary", kCpu, WriteTensor);
}

}  // namespace weir
