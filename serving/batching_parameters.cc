#include <utility>

#include "weir/proto/session_bundle_config.pb.h"
#include "weir/serving/batching.h"
#include "weir/serving/text_config.h"

namespace weir::serving {

namespace {

constexpr int64_t kMaxRows = (int64_t{1} << 31) - 1;
constexpr int64_t kMaxThreads = 1024;
constexpr int64_t kMaxTimeoutMicros = 3'600'000'000;

// What is wrong with a field, or OK.
struct Mistake {
  absl::Status status = {};
  std::string field = {};
  int index = 0;  // of the value in a repeated field
};

template <class... Text>
Mistake Wrong(const std::string& field, int index, const Text&... text) {
  return {InvalidArgument(text...), field, index};
}

Mistake CheckRange(const std::string& field, int64_t value, int64_t min, int64_t max) {
  if (value >= min && value <= max) return {};
  return Wrong(field, 0, field, " is ", value, "; expected a number from ", min, " to ", max);
}

Mistake CheckSizes(const std::vector<int64_t>& sizes, int64_t max_batch_size) {
  constexpr char kField[] = "allowed_batch_sizes";
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > (i == 0 ? 0 : sizes[i - 1])) continue;
    return Wrong(kField, static_cast<int>(i), kField, " entries must be monotonically increasing, ",
                 "beginning with 1 or more; entry ", i, " is ", sizes[i]);
  }
  if (sizes.empty() || sizes.back() == max_batch_size) return {};
  return Wrong(kField, static_cast<int>(sizes.size()) - 1, "Last entry in ", kField,
               " must match the size of a full batch; last entry was ", sizes.back(), "; expected ",
               max_batch_size);
}

Mistake CheckOptions(const BatchingOptions& options) {
  const int64_t timeout = options.batch_timeout.count();
  for (Mistake mistake : {
           CheckRange("max_batch_size", options.max_batch_size, 1, kMaxRows),
           CheckRange("batch_timeout_micros", timeout, 0, kMaxTimeoutMicros),
           CheckRange("max_enqueued_batches", options.max_enqueued_batches, 1, kMaxRows),
           CheckRange("num_batch_threads", options.num_batch_threads, 0, kMaxThreads),
           CheckRange("max_call_rows", options.max_call_rows, 0, kMaxRows),
           CheckSizes(options.allowed_batch_sizes, options.max_batch_size),
       }) {
    if (!mistake.status.ok()) return mistake;
  }
  return {};
}

// Sets the rows of a batch and of a call.
Mistake ReadSizes(const proto::serving::BatchingParameters& from, BatchingOptions* options) {
  constexpr char kField[] = "max_execution_batch_size";
  const bool splits =
      !from.has_enable_large_batch_splitting() || from.enable_large_batch_splitting().value();
  if (from.has_max_batch_size()) options->max_batch_size = from.max_batch_size().value();
  const int64_t max_batch_size = options->max_batch_size;
  if (!splits) options->max_call_rows = max_batch_size;
  if (!from.has_max_execution_batch_size()) return {};
  if (!splits)
    return Wrong(kField, 0, kField, " has no effect without enable_large_batch_splitting");
  options->max_batch_size = from.max_execution_batch_size().value();
  options->max_call_rows = max_batch_size;
  return CheckRange(kField, options->max_batch_size, 1, max_batch_size);
}

Mistake ReadParameters(const proto::serving::BatchingParameters& from, BatchingOptions* options) {
  if (Mistake mistake = ReadSizes(from, options); !mistake.status.ok()) return mistake;
  if (from.has_batch_timeout_micros())
    options->batch_timeout = std::chrono::microseconds(from.batch_timeout_micros().value());
  if (from.has_max_enqueued_batches())
    options->max_enqueued_batches = from.max_enqueued_batches().value();
  if (from.has_num_batch_threads()) {
    const int64_t threads = from.num_batch_threads().value();
    Mistake mistake = CheckRange("num_batch_threads", threads, 1, kMaxThreads);
    if (!mistake.status.ok()) return mistake;
    options->num_batch_threads = static_cast<int>(threads);
  }
  options->allowed_batch_sizes.assign(from.allowed_batch_sizes().begin(),
                                      from.allowed_batch_sizes().end());
  options->pad_variable_length_inputs = from.pad_variable_length_inputs();
  return CheckOptions(*options);
}

}  // namespace

absl::Status CheckBatchingOptions(const BatchingOptions& options) {
  return CheckOptions(options).status;
}

absl::StatusOr<BatchingOptions> ParseBatchingOptions(absl::string_view text) {
  proto::serving::BatchingParameters parameters;
  WEIR_ASSIGN_OR_RETURN(const TextConfig source, TextConfig::Parse(text, &parameters));
  BatchingOptions options;
  const Mistake mistake = ReadParameters(parameters, &options);
  if (mistake.status.ok()) return options;
  const int line = source.Line({{mistake.field, mistake.index}});
  return Annotate(mistake.status, absl::StrCat("line ", line));
}

}  // namespace weir::serving
