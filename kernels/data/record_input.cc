#include <algorithm>
#include <mutex>
#include <random>

#include "absl/strings/str_split.h"
#include "weir/kernels/data/byte_stream.h"
#include "weir/kernels/data/reader.h"

// RecordInput: the records of all files that match, in random order, epoch after epoch. Files are
// read in random order, and records are drawn from a buffer of `file_buffer_size`; each epoch
// returns every record once. (TensorFlow reads with several threads, in an order that no seed
// determines; here the seed determines it.)
namespace weir {

namespace {

struct RecordInputOptions {
  std::string pattern, compression;
  uint64_t seed;
  double shift_ratio;
  size_t buffer_size;
};

class RecordInputState final : public Resource {
 public:
  explicit RecordInputState(RecordInputOptions options)
      : options_(std::move(options)), random_(options_.seed) {}

  std::string Describe() const override { return "records of '" + options_.pattern + "'"; }

  absl::Status Next(std::string* record) {
    const std::lock_guard<std::mutex> lock(mutex_);
    WEIR_RETURN_IF_ERROR(Fill());
    if (buffer_.empty()) {
      WEIR_RETURN_IF_ERROR(BeginEpoch());
      WEIR_RETURN_IF_ERROR(Fill());
    }
    if (buffer_.empty()) return OutOfRange("The files at ", options_.pattern, " have no records");
    std::swap(buffer_[random_() % buffer_.size()], buffer_.back());
    *record = std::move(buffer_.back());
    buffer_.pop_back();
    return absl::OkStatus();
  }

 private:
  absl::Status BeginEpoch() {
    files_.clear();
    for (const absl::string_view pattern : absl::StrSplit(options_.pattern, ',')) {
      WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> matched,
                            MatchFiles(std::string(pattern)));
      files_.insert(files_.end(), matched.begin(), matched.end());
    }
    if (files_.empty()) return NotFound("Found no files at ", options_.pattern);
    std::shuffle(files_.begin(), files_.end(), random_);
    if (options_.shift_ratio >= 0 && options_.shift_ratio < 1) {
      const auto shift =
          static_cast<ptrdiff_t>(options_.shift_ratio * static_cast<double>(files_.size()));
      std::rotate(files_.begin(), files_.begin() + shift, files_.end());
    }
    next_file_ = 0;
    return absl::OkStatus();
  }

  // Reads until the buffer is full or the epoch ends.
  absl::Status Fill() {
    while (buffer_.size() < options_.buffer_size) {
      if (!stream_ && next_file_ == files_.size()) break;
      if (!stream_) {
        WEIR_ASSIGN_OR_RETURN(RecordStream stream,
                              RecordStream::Open(files_[next_file_++], options_.compression));
        stream_.emplace(std::move(stream));
      }
      WEIR_ASSIGN_OR_RETURN(std::optional<std::string> record, stream_->Next());
      if (record) {
        buffer_.push_back(*std::move(record));
      } else {
        stream_.reset();
      }
    }
    return absl::OkStatus();
  }

  const RecordInputOptions options_;
  std::mutex mutex_;
  std::mt19937_64 random_;
  std::vector<std::string> files_, buffer_;
  size_t next_file_ = 0;
  std::optional<RecordStream> stream_;
};

absl::StatusOr<Kernel> MakeRecordInput(const KernelInit& init) {
  const auto parallelism = init.attr<int64_t>("file_parallelism");
  const auto batch_size = init.attr<int64_t>("batch_size");
  if (parallelism < 0) return InvalidArgument("file_parallelism should >= 0, got ", parallelism);
  if (batch_size < 0)
    return InvalidArgument("batch_size must be non-negative but got ", batch_size);
  RecordInputOptions options;
  options.pattern = init.attr<std::string>("file_pattern");
  options.compression = init.attr<std::string>("compression_type");
  options.seed = static_cast<uint64_t>(init.attr<int64_t>("file_random_seed"));
  options.shift_ratio = init.attr<float>("file_shuffle_shift_ratio");
  options.buffer_size =
      static_cast<size_t>(std::max<int64_t>(init.attr<int64_t>("file_buffer_size"), 1));
  const auto state = init.resources.LookupOrCreate<RecordInputState>(
      "", init.node.name(), [&] { return std::make_shared<RecordInputState>(options); });
  return Kernel([batch_size, state](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(Tensor * records, c.AllocateOutput(0, Shape({batch_size})));
    for (std::string& record : records->flat<std::string>())
      WEIR_RETURN_IF_ERROR(state->Next(&record));
    return absl::OkStatus();
  });
}

}  // namespace

void AddRecordInputKernel(KernelRegistry* r) { r->Add("RecordInput", kCpu, MakeRecordInput); }

}  // namespace weir
