#include "weir/serving/batching.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <utility>

#include "absl/strings/str_join.h"
#include "weir/core/tensor/exception.h"
#include "weir/core/tensor/mutex.h"
#include "weir/serving/batch_call.h"
#include "weir/serving/batch_queue.h"
#include "weir/serving/batch_tensors.h"

// What happens to a call:
//
//   1. Run checks it against the signature. What the signature refuses goes to the servable alone,
//      which reports it; it never becomes part of a batch.
//   2. Its rows become one part, or several of at most max_batch_size rows. The parts join the
//      queue's group of calls with the same outputs and the same dimensions (BatchQueue). A call
//      that finds nothing waiting, and need not wait for others, runs on its own thread instead.
//   3. A thread takes a batch of parts, and copies their rows into one tensor for each input: the
//      only copy. From then on, a caller may leave (BatchCall), and the step is cancelled when all
//      have left. A part that is alone in its batch is not copied.
//   4. The results are slices that share the memory of the step's results. Those of a call with
//      several parts are copied together by its caller.
//   5. If the step fails, or one large call would make padding too large, each half of the batch is
//      a batch of its own. So a call that fails costs its mates time, but not their results.
namespace weir::serving {

namespace {

using Clock = std::chrono::steady_clock;

absl::Status CheckBatched(absl::string_view kind, const std::string& name, const TensorInfo& info) {
  const auto refuse = [&](absl::string_view why) {
    return FailedPrecondition("calls of this signature cannot be batched: its ", kind, " '", name,
                              "' ", why, " (tensor '", info.tensor, "', ", DataTypeName(info.dtype),
                              " ", info.shape.ToString(),
                              "); serve the model without batching, or ",
                              "export it with a first dimension of unknown size");
  };
  if (info.dtype != DT_STRING && !IsPlain(info.dtype)) return refuse("holds handles");
  if (info.shape.rank() == 0) return refuse("is a scalar");
  if (info.shape.rank() > 0 && info.shape.dim(0) != Shape::kUnknown)
    return refuse("has a first dimension of fixed size");
  return absl::OkStatus();
}

std::vector<int64_t> SizesOf(const BatchingOptions& options) {
  if (!options.allowed_batch_sizes.empty()) return options.allowed_batch_sizes;
  std::vector<int64_t> sizes;
  for (int64_t size = 1; size < options.max_batch_size; size *= 2) sizes.push_back(size);
  sizes.push_back(options.max_batch_size);
  return sizes;
}

// Whether a step might succeed with fewer of the calls.
bool IsOfSomeCalls(const absl::Status& error) {
  return !absl::IsCancelled(error) && !absl::IsDeadlineExceeded(error) &&
         !absl::IsUnavailable(error);
}

// Counts a call, for its lifetime.
class CallCounter {
 public:
  CallCounter(Mutex& mutex, CondVar& none, int& calls) : mutex_(mutex), none_(none), calls_(calls) {
    const MutexLock lock(mutex_);
    ++calls_;
  }
  ~CallCounter() {
    const MutexLock lock(mutex_);
    if (--calls_ == 0) none_.NotifyAll();
  }
  CallCounter(const CallCounter&) = delete;
  CallCounter& operator=(const CallCounter&) = delete;

 private:
  Mutex& mutex_;
  CondVar& none_;
  int& calls_;
};

}  // namespace

struct Batcher::Impl {
  Impl(const Servable& servable, std::string signature, const BatchingOptions& options);
  ~Impl();

  bool Accepts(const NamedTensors& inputs, const std::vector<std::string>& outputs) const;
  std::string GroupOf(const NamedTensors& inputs, const std::vector<std::string>& outputs) const;
  absl::StatusOr<int64_t> CountRows(const NamedTensors& inputs) const;
  int64_t PaddedSize(int64_t rows) const;

  absl::StatusOr<NamedTensors> RunQueued(const NamedTensors& inputs, int64_t rows,
                                         const std::vector<std::string>& outputs,
                                         const RunOptions& options, Priority priority);
  absl::StatusOr<NamedTensors> Merge(std::vector<NamedTensors> results, int64_t rows) const;
  void RunBatch(const BatchParts& batch);
  void RunShared(const BatchParts& parts, absl::Span<const RowRange> ranges, int64_t rows);
  void RunHalves(const BatchParts& parts);
  absl::StatusOr<NamedTensors> RunAlone(const RowRange& range,
                                        const std::vector<std::string>& outputs,
                                        const RunOptions& options) const;
  absl::StatusOr<NamedTensors> RunStep(const NamedTensors& inputs, int64_t rows,
                                       const std::vector<std::string>& outputs,
                                       const RunOptions& options) const;

  const Servable& servable;
  const std::string signature;
  const BatchingOptions options;
  const std::vector<int64_t> sizes;     // that batches are padded to
  std::atomic<bool> lonely{false};      // the last batch that a thread ran had one part
  absl::Status status;                  // why nothing can be batched, or OK
  const SignatureInfo* info = nullptr;  // null: the servable has no such signature
  Mutex mutex = {};
  CondVar no_calls = {};
  int calls ABSL_GUARDED_BY(mutex) = 0;
  std::optional<BatchQueue> queue = {};  // without a value if nothing can be batched
};

Batcher::Impl::Impl(const Servable& servable, std::string name, const BatchingOptions& options)
    : servable(servable),
      signature(name.empty() ? "serving_default" : std::move(name)),
      options(options),
      sizes(SizesOf(options)),
      status(CheckBatchingOptions(options)) {
  const auto found = servable.signatures().find(signature);
  if (found == servable.signatures().end()) return;
  info = &found->second;
  if (status.ok()) status = Batcher::CheckSignature(*info);
  if (!status.ok()) return;
  queue.emplace(options, [this](const BatchParts& batch) {
    lonely = batch.size() == 1;
    RunBatch(batch);
  });
}

Batcher::Impl::~Impl() {
  if (queue.has_value()) queue->Close();
  const MutexLock lock(mutex);
  while (calls > 0) no_calls.Wait(mutex);
}

// Whether the signature has these inputs and outputs.
bool Batcher::Impl::Accepts(const NamedTensors& inputs,
                            const std::vector<std::string>& outputs) const {
  if (inputs.size() != info->inputs.size()) return false;
  for (const auto& [name, tensor] : inputs) {
    const auto input = info->inputs.find(name);
    if (input == info->inputs.end() || input->second.dtype != tensor.dtype() ||
        !input->second.shape.IsCompatibleWith(tensor.shape()))
      return false;
  }
  std::set<absl::string_view> seen;
  for (const std::string& output : outputs) {
    if (info->outputs.count(output) == 0 || !seen.insert(output).second) return false;
  }
  return true;
}

absl::StatusOr<int64_t> Batcher::Impl::CountRows(const NamedTensors& inputs) const {
  int64_t rows = -1;
  for (const auto& [name, tensor] : inputs) {
    if (tensor.rank() == 0) {
      return InvalidArgument("Batching Run() input tensors must have at least one dimension; '",
                             name, "' is a scalar");
    }
    if (rows >= 0 && tensor.dim(0) != rows) {
      return InvalidArgument("Batching Run() input tensors must have equal 0th-dimension size; '",
                             name, "' has shape ", tensor.shape().ToString(), ", but '",
                             inputs.begin()->first, "' has ", rows, " rows");
    }
    rows = tensor.dim(0);
  }
  if (options.max_call_rows > 0 && rows > options.max_call_rows) {
    return InvalidArgument("Task size ", rows, " is larger than maximum input batch size ",
                           options.max_call_rows, "; split the call");
  }
  return rows;
}

// Calls of one group may share a batch.
std::string Batcher::Impl::GroupOf(const NamedTensors& inputs,
                                   const std::vector<std::string>& outputs) const {
  std::string group;
  for (const auto& [name, tensor] : inputs) {
    absl::StrAppend(&group, tensor.rank(), ":");
    if (options.pad_variable_length_inputs) continue;
    for (int i = 1; i < tensor.rank(); ++i) absl::StrAppend(&group, tensor.dim(i), ",");
  }
  std::vector<std::string> sorted = outputs;
  std::sort(sorted.begin(), sorted.end());
  for (const std::string& output : sorted) absl::StrAppend(&group, output.size(), ":", output);
  return group;
}

int64_t Batcher::Impl::PaddedSize(int64_t rows) const {
  const auto next = std::lower_bound(sizes.begin(), sizes.end(), rows);
  return next == sizes.end() ? rows : *next;
}

absl::StatusOr<NamedTensors> Batcher::Impl::RunQueued(const NamedTensors& inputs, int64_t rows,
                                                      const std::vector<std::string>& outputs,
                                                      const RunOptions& run_options,
                                                      Priority priority) {
  const int64_t num_parts = (rows - 1) / options.max_batch_size + 1;
  const auto call = std::make_shared<BatchCall>(inputs, outputs, num_parts, run_options);
  // A call with a deadline waits for others for at most half of its time.
  const Clock::time_point now = Clock::now();
  Clock::time_point due = now + options.batch_timeout;
  if (call->deadline().has_value()) due = std::min(due, now + (*call->deadline() - now) / 2);
  BatchParts parts;
  for (int64_t i = 0; i < num_parts; ++i) {
    const int64_t begin = i * options.max_batch_size;
    const int64_t end = std::min(begin + options.max_batch_size, rows);
    parts.push_back(
        std::make_shared<BatchPart>(BatchPart{call, static_cast<int>(i), begin, end, due}));
  }
  const std::string group = GroupOf(inputs, outputs);
  WEIR_RETURN_IF_ERROR(queue->Add(group, priority, parts));
  absl::StatusOr<std::vector<NamedTensors>> results = call->Wait();
  if (results.ok()) return Merge(*std::move(results), rows);
  queue->Remove(group, priority, parts);
  return results.status();
}

// Joins the results of the parts of a call.
absl::StatusOr<NamedTensors> Batcher::Impl::Merge(std::vector<NamedTensors> results,
                                                  int64_t rows) const {
  if (results.size() == 1) return std::move(results[0]);
  std::vector<RowRange> ranges;
  for (size_t i = 0; i < results.size(); ++i) {
    const int64_t begin = static_cast<int64_t>(i) * options.max_batch_size;
    ranges.push_back({&results[i], 0, std::min(options.max_batch_size, rows - begin)});
    for (const auto& [name, tensor] : results[i]) {
      Shape first = results[0].at(name).shape(), shape = tensor.shape();
      const bool same_rank = first.rank() == shape.rank();
      first.set_dim(0, Shape::kUnknown);
      if (same_rank && (options.pad_variable_length_inputs || first.IsCompatibleWith(shape)))
        continue;
      return FailedPrecondition("output '", name, "' has shape ", shape.ToString(), " in one part ",
                                "of the call, and ", first.ToString(),
                                " in another; calls of more ", "than max_batch_size (",
                                options.max_batch_size, ") rows need results of one shape");
    }
  }
  return CatchExceptions("Joining the results", [&] { return JoinRows(ranges, rows); });
}

// Runs parts that a thread has taken from the queue.
void Batcher::Impl::RunBatch(const BatchParts& batch) {
  BatchParts parts;
  std::vector<RowRange> ranges;
  int64_t rows = 0;
  for (const auto& part : batch) {
    if (!part->call->Pin()) continue;
    parts.push_back(part);
    ranges.push_back({&part->call->inputs(), part->begin, part->end});
    rows += part->rows();
  }
  if (parts.size() == 1) {
    BatchCall& call = *parts[0]->call;
    const absl::StatusOr<RunOptions> step_options = call.StepOptions();
    call.Finish(parts[0]->index, step_options.ok()
                                     ? RunAlone(ranges[0], call.outputs(), *step_options)
                                     : step_options.status());
    call.Unpin();
  } else if (!parts.empty()) {
    RunShared(parts, ranges, rows);
  }
}

void Batcher::Impl::RunShared(const BatchParts& parts, absl::Span<const RowRange> ranges,
                              int64_t rows) {
  constexpr double kMaxPadding = 4, kFreePadding = 1 << 20;
  const JoinedBytes bytes = BytesOf(ranges, rows);
  const bool too_much = bytes.joined > kMaxPadding * bytes.separate + kFreePadding;
  absl::StatusOr<NamedTensors> result;
  if (!too_much) {
    result = CatchExceptions("Joining the inputs of a batch",
                             [&] { return JoinRows(ranges, PaddedSize(rows)); });
  }
  const auto step = std::make_shared<SharedStep>(static_cast<int>(parts.size()));
  for (const auto& part : parts) part->call->Unpin(step);
  if (too_much) return RunHalves(parts);
  if (result.ok()) {
    result = RunStep(*result, PaddedSize(rows), parts[0]->call->outputs(),
                     {.cancellation = &step->cancellation});
  }
  if (!result.ok() && IsOfSomeCalls(result.status())) return RunHalves(parts);
  int64_t begin = 0;
  for (const auto& part : parts) {
    const int64_t end = begin + part->rows();
    part->call->Finish(part->index, CatchExceptions("Splitting a batch", [&] {
                         return result.ok() ? SliceRows(*result, begin, end) : result;
                       }));
    begin = end;
  }
}

void Batcher::Impl::RunHalves(const BatchParts& parts) {
  const auto middle = parts.begin() + static_cast<std::ptrdiff_t>(parts.size() / 2);
  RunBatch(BatchParts(parts.begin(), middle));
  RunBatch(BatchParts(middle, parts.end()));
}

// Runs rows of one call in a step of their own.
absl::StatusOr<NamedTensors> Batcher::Impl::RunAlone(const RowRange& range,
                                                     const std::vector<std::string>& outputs,
                                                     const RunOptions& run_options) const {
  return CatchExceptions("Running a batch", [&]() -> absl::StatusOr<NamedTensors> {
    const int64_t rows = range.end - range.begin, padded = PaddedSize(rows);
    if (padded == rows)
      return RunStep(SliceRows(*range.tensors, range.begin, range.end), rows, outputs, run_options);
    WEIR_ASSIGN_OR_RETURN(const NamedTensors inputs, JoinRows({range}, padded));
    WEIR_ASSIGN_OR_RETURN(const NamedTensors result, RunStep(inputs, padded, outputs, run_options));
    return SliceRows(result, 0, rows);
  });
}

// Runs a step of `rows` rows, and checks that the results have as many.
absl::StatusOr<NamedTensors> Batcher::Impl::RunStep(const NamedTensors& inputs, int64_t rows,
                                                    const std::vector<std::string>& outputs,
                                                    const RunOptions& run_options) const {
  WEIR_ASSIGN_OR_RETURN(NamedTensors results,
                        servable.Run(signature, inputs, outputs, run_options));
  for (const auto& [name, tensor] : results) {
    if (tensor.rank() > 0 && tensor.dim(0) == rows) continue;
    return FailedPrecondition(
        "output '", name, "' of a batch of ", rows, " rows has shape ", tensor.shape().ToString(),
        tensor.rank() == 0 ? ": Batched output tensor has 0 dimensions"
                           : ": Batched output tensor's 0th dimension does not equal the sum of "
                             "the 0th dimension sizes of the input tensors",
        "; serve the model without batching");
  }
  return results;
}

absl::Status Batcher::CheckSignature(const SignatureInfo& signature) {
  if (signature.inputs.empty())
    return FailedPrecondition("calls of this signature cannot be batched: it has no inputs");
  for (const auto& [name, info] : signature.inputs)
    WEIR_RETURN_IF_ERROR(CheckBatched("input", name, info));
  for (const auto& [name, info] : signature.outputs)
    WEIR_RETURN_IF_ERROR(CheckBatched("output", name, info));
  return absl::OkStatus();
}

Batcher::Batcher(const Servable& servable, std::string signature, const BatchingOptions& options)
    : impl_(std::make_unique<Impl>(servable, std::move(signature), options)) {}
Batcher::~Batcher() = default;

absl::Status Batcher::WarmUp(const NamedTensors& inputs, const std::vector<std::string>& outputs) {
  Impl& impl = *impl_;
  WEIR_RETURN_IF_ERROR(Run(inputs, outputs).status());
  if (!impl.Accepts(inputs, outputs) || impl.CountRows(inputs).value_or(0) == 0)
    return absl::OkStatus();
  for (const int64_t size : impl.options.allowed_batch_sizes) {
    WEIR_ASSIGN_OR_RETURN(const NamedTensors rows, CatchExceptions("Warming up a model", [&] {
                            return JoinRows({{&inputs, 0, 1}}, size);
                          }));
    WEIR_RETURN_IF_ERROR(impl.RunStep(rows, size, outputs, {}).status());
  }
  return absl::OkStatus();
}

int64_t Batcher::waiting_rows() const {
  return impl_->queue.has_value() ? impl_->queue->waiting_rows() : 0;
}

absl::StatusOr<NamedTensors> Batcher::Run(const NamedTensors& inputs,
                                          const std::vector<std::string>& outputs,
                                          const RunOptions& options, Priority priority) {
  Impl& impl = *impl_;
  const CallCounter counter(impl.mutex, impl.no_calls, impl.calls);
  WEIR_RETURN_IF_ERROR(impl.status);
  if (impl.info == nullptr || options.trace != nullptr || !impl.Accepts(inputs, outputs))
    return impl.servable.Run(impl.signature, inputs, outputs, options);
  WEIR_ASSIGN_OR_RETURN(const int64_t rows, impl.CountRows(inputs));
  if (rows == 0) return impl.servable.Run(impl.signature, inputs, outputs, options);
  const bool waits = impl.options.batch_timeout.count() > 0 && !impl.lonely;
  if (!waits && rows <= impl.options.max_batch_size && impl.queue->TryBegin()) {
    const auto result = impl.RunAlone({&inputs, 0, rows}, outputs, options);
    impl.queue->End();
    return result;
  }
  return impl.RunQueued(inputs, rows, outputs, options, priority);
}

}  // namespace weir::serving
