#include "weir/rpc/models/request_log.h"

#include <unistd.h>

#include <atomic>
#include <optional>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "weir/core/io/record.h"
#include "weir/proto/prediction_log.pb.h"

namespace weir::rpc {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::minutes kErrorPeriod{1};

}  // namespace

// The open files, by prefix. Used by one thread.
class RequestLog::Files {
 public:
  explicit Files(const RequestLogOptions& options) : options_(options) {}
  ~Files() {
    for (auto& [prefix, file] : files_) Report(Complete(file));
  }

  void Write(const std::vector<BackgroundWriter::Item>& items) {
    for (const BackgroundWriter::Item& item : items) {
      const absl::Status status = Append(item.key, item.data);
      if (!status.ok()) ++failed_;
      Report(status);
    }
    for (auto it = files_.begin(); it != files_.end();) {
      File& file = it->second;
      const bool is_done = file.bytes >= options_.max_file_bytes ||
                           Clock::now() - file.opened >= options_.max_file_age;
      const absl::Status status = is_done ? Complete(file) : file.writer->Flush();
      Report(status);
      it = is_done || !status.ok() ? files_.erase(it) : std::next(it);
    }
  }
  int64_t failed() const { return failed_; }

 private:
  struct File {
    std::unique_ptr<RecordWriter> writer;
    std::string path;  // of the complete file
    int64_t bytes = 0;
    Clock::time_point opened;
  };

  absl::Status Append(const std::string& prefix, const std::string& record) {
    auto it = files_.find(prefix);
    if (it == files_.end()) {
      const std::string time = absl::FormatTime("%Y%m%d-%H%M%S", absl::Now(), absl::UTCTimeZone());
      File file = {
          .path = absl::StrCat(prefix, ".", time, ".", getpid(), ".", ++count_, ".tfrecord"),
          .opened = Clock::now()};
      WEIR_ASSIGN_OR_RETURN(file.writer, RecordWriter::Create(file.path + ".open"));
      it = files_.emplace(prefix, std::move(file)).first;
    }
    absl::Status status = it->second.writer->Append(record);
    it->second.bytes += static_cast<int64_t>(record.size());
    // After an error, such as a full disk, the next record tries a new file.
    if (!status.ok()) files_.erase(it);
    return status;
  }

  static absl::Status Complete(File& file) {
    WEIR_RETURN_IF_ERROR(file.writer->Sync());
    WEIR_RETURN_IF_ERROR(file.writer->Close());
    WEIR_RETURN_IF_ERROR(weir::Files().Rename(file.path + ".open", file.path));
    return weir::Files().SyncDirectory(DirectoryOf(file.path));
  }

  void Report(const absl::Status& status) {
    if (status.ok()) return;
    const Clock::time_point now = Clock::now();
    if (reported_ && now - *reported_ < kErrorPeriod) return;
    reported_ = now;
    if (options_.on_error) options_.on_error(Annotate(status, "the log of requests"));
  }

  const RequestLogOptions options_;
  std::map<std::string, File> files_;
  int64_t count_ = 0;
  std::atomic<int64_t> failed_{0};
  std::optional<Clock::time_point> reported_;
};

RequestLog::RequestLog(const RequestLogOptions& options)
    : files_(std::make_unique<Files>(options)),
      writer_(std::make_unique<BackgroundWriter>(
          options.max_waiting_bytes,
          [files = files_.get()](const std::vector<BackgroundWriter::Item>& items) {
            files->Write(items);
          })) {}

RequestLog::~RequestLog() { writer_ = nullptr; }

void RequestLog::Configure(const std::vector<serving::ModelConfig>& models) {
  const MutexLock lock(mutex_);
  models_.clear();
  for (const serving::ModelConfig& model : models) {
    if (model.logging && model.logging->sampling_rate > 0)
      models_.emplace(model.name, *model.logging);
  }
}

bool RequestLog::Samples(const std::string& model) const {
  double rate = 0;
  {
    const MutexLock lock(mutex_);
    const auto it = models_.find(model);
    if (it == models_.end()) return false;
    rate = it->second.sampling_rate;
  }
  thread_local std::minstd_rand random{std::random_device()()};
  return std::uniform_real_distribution<double>()(random) < rate;
}

void RequestLog::Add(const std::string& model, proto::serving::PredictionLog* entry) {
  serving::RequestLogging logging;
  {
    const MutexLock lock(mutex_);
    const auto it = models_.find(model);
    if (it == models_.end()) return;
    logging = it->second;
  }
  proto::serving::LogMetadata& metadata = *entry->mutable_log_metadata();
  metadata.mutable_sampling_config()->set_sampling_rate(logging.sampling_rate);
  metadata.add_saved_model_tags("serve");
  metadata.set_timestamp_secs(absl::ToUnixSeconds(absl::Now()));
  writer_->Add({std::move(logging.filename_prefix), entry->SerializeAsString()});
}

int64_t RequestLog::dropped() const { return writer_->dropped() + files_->failed(); }

}  // namespace weir::rpc
