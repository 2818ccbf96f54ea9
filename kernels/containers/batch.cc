#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "weir/core/runtime/float_mode.h"
#include "weir/core/runtime/function.h"
#include "weir/core/tensor/exception.h"
#include "weir/core/tensor/memory_quota.h"
#include "weir/kernels/containers/batch.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/kernels/lib/waiter_queue.h"

// Batching: runs of one node in several steps wait for each other and are computed together. A task
// joins the open batch of its queue. A batch closes when the next task does not fit; it is due when
// it is full or its first task has waited for the timeout. The batcher's threads process due
// batches. Batch outputs all rows in the last step of the batch and none in the others, with an
// index that maps rows to steps; Unbatch uses the index to distribute the results. BatchFunction
// calls a function with all rows and outputs each step's own rows.
namespace weir {

absl::StatusOr<Tensor> ConcatRows(const std::vector<Tensor>& parts) {
  const Tensor& first = parts[0];
  Shape rows = first.shape();
  rows.set_dim(0, 0);
  for (const Tensor& part : parts) {
    bool fits = part.dtype() == first.dtype() && part.rank() == first.rank();
    for (int d = 1; fits && d < first.rank(); ++d) fits = part.dim(d) == first.dim(d);
    if (!fits) {
      return InvalidArgument("Tensors to be batched differ: ", first.Description(), " and ",
                             part.Description());
    }
    rows.set_dim(0, rows.dim(0) + part.dim(0));
  }
  WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape(rows.dims()));
  WEIR_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(HostAllocator(), first.dtype(), shape));
  int64_t at = 0;
  for (const Tensor& part : parts) {
    CopyElements(part.dtype(), part.raw(), ElementAt(out, at), part.num_elements());
    at += part.num_elements();
  }
  return out;
}

std::chrono::microseconds Micros(int64_t value, int64_t least) {
  const int64_t longest = std::chrono::microseconds(std::chrono::hours(24)).count();
  return std::chrono::microseconds(std::clamp(value, least, longest));
}

void JoinOrDetach(std::thread& thread) {
  if (thread.get_id() == std::this_thread::get_id()) {
    thread.detach();
  } else {
    thread.join();
  }
}

namespace {

using Clock = std::chrono::steady_clock;

struct BatchOptions {
  int threads = 1;
  int64_t max_batch_size = 0, max_enqueued_batches = 0;
  std::chrono::microseconds timeout{0};
  std::vector<int64_t> allowed_sizes;  // ascending
  bool splits = false;                 // tasks may exceed the largest allowed size

  static absl::StatusOr<BatchOptions> Of(const Node& node);
  // Returns the size to which a batch of this size is padded.
  int64_t PaddedSize(int64_t size) const {
    const auto it = std::lower_bound(allowed_sizes.begin(), allowed_sizes.end(), size);
    return it == allowed_sizes.end() ? size : *it;
  }
  int64_t LargestSize() const {
    return allowed_sizes.empty() ? max_batch_size : allowed_sizes.back();
  }
};

absl::StatusOr<BatchOptions> BatchOptions::Of(const Node& node) {
  constexpr int kMostThreads = 16;
  BatchOptions o;
  WEIR_ASSIGN_OR_RETURN(const int threads, NarrowAttr(node, "num_batch_threads"));
  if (threads <= 0 && node.op_name() == "Batch")
    return InvalidArgument("num_batch_threads must be positive; was ", threads);
  o.threads = std::clamp(threads, 1, kMostThreads);
  WEIR_ASSIGN_OR_RETURN(o.max_batch_size, NarrowAttr(node, "max_batch_size"));
  WEIR_ASSIGN_OR_RETURN(o.max_enqueued_batches, NarrowAttr(node, "max_enqueued_batches"));
  WEIR_ASSIGN_OR_RETURN(const int micros, NarrowAttr(node, "batch_timeout_micros"));
  o.timeout = Micros(micros, 0);
  o.allowed_sizes = node.attr<std::vector<int64_t>>("allowed_batch_sizes");
  o.splits = node.attr_or<bool>("enable_large_batch_splitting", false);
  if (o.max_batch_size <= 0)
    return InvalidArgument("max_batch_size must be positive; was ", o.max_batch_size);
  if (o.max_enqueued_batches <= 0)
    return InvalidArgument("max_enqueued_batches must be positive; was ", o.max_enqueued_batches);
  if (micros < 0) return InvalidArgument("batch_timeout_micros must be non-negative; was ", micros);
  for (size_t i = 0; i < o.allowed_sizes.size(); ++i) {
    if (o.allowed_sizes[i] <= (i == 0 ? 0 : o.allowed_sizes[i - 1]))
      return InvalidArgument("allowed_batch_sizes entries must be monotonically increasing");
  }
  if (!o.allowed_sizes.empty() && !o.splits && o.allowed_sizes.back() != o.max_batch_size)
    return InvalidArgument("final entry in allowed_batch_sizes must equal max_batch_size");
  return o;
}

struct Task;
using Batch = std::vector<std::unique_ptr<Task>>;
// Computes a batch: sets the outputs of every task, or fails them all.
using Process = std::function<absl::Status(const BatchOptions&, const Batch&)>;

// The rows that one step contributes to a batch.
struct Task {
  KernelContext& context;
  Kernel::Done done;
  const Process* process;
  Tensors inputs, captured;
  int64_t size = 0, id = 0;
  int64_t token = 0;  // of the cancellation callback
  std::shared_ptr<MemoryQuota> memory = MemoryQuota::ShareCurrent();  // of the step
};

void Finish(Task& task, const absl::Status& status) {
  if (task.context.cancellation() != nullptr) task.context.cancellation()->Unregister(task.token);
  task.done(status);
}

// State shared by the batcher and its threads, which may briefly outlive it.
class BatchQueues {
 public:
  explicit BatchQueues(BatchOptions options) : options_(std::move(options)) {}

  absl::Status Add(const std::string& queue, std::unique_ptr<Task>* task) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_) return absl::CancelledError("The batcher is closed");
    std::deque<OpenBatch>& batches = queues_[queue];
    const int64_t size = (*task)->size;
    if (batches.empty() || batches.back().size + size > options_.LargestSize()) {
      if (static_cast<int64_t>(batches.size()) >= options_.max_enqueued_batches) {
        return absl::UnavailableError(
            "The batch scheduling queue to which this task was submitted is full");
      }
      if (!batches.empty()) batches.back().due = Clock::now();
      batches.emplace_back();
      batches.back().due = Clock::now() + options_.timeout;
    }
    OpenBatch& open = batches.back();
    open.size += size;
    open.tasks.push_back(std::move(*task));
    if (open.size >= options_.LargestSize()) open.due = Clock::now();
    wake_.notify_one();
    return absl::OkStatus();
  }

  // Removes and returns the task if it is still queued.
  std::unique_ptr<Task> Remove(int64_t id) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto& [name, batches] : queues_) {
      for (OpenBatch& open : batches) {
        for (auto it = open.tasks.begin(); it != open.tasks.end(); ++it) {
          if ((*it)->id != id) continue;
          std::unique_ptr<Task> task = std::move(*it);
          open.size -= task->size;
          open.tasks.erase(it);
          return task;
        }
      }
    }
    return nullptr;
  }

  void Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!stopping_) {
      Clock::time_point due = Clock::time_point::max();
      Batch batch = PopDue(&due);
      if (!batch.empty()) {
        lock.unlock();
        Compute(batch);
        lock.lock();
      } else if (due == Clock::time_point::max()) {
        wake_.wait(lock);
      } else {
        wake_.wait_until(lock, due);
      }
    }
  }

  void Stop() {
    std::map<std::string, std::deque<OpenBatch>> left;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
      left = std::move(queues_);
      queues_.clear();
      wake_.notify_all();
    }
    for (auto& [name, batches] : left) {
      for (OpenBatch& open : batches) {
        for (const auto& task : open.tasks)
          Finish(*task, absl::CancelledError("The batcher is closed"));
      }
    }
  }

 private:
  struct OpenBatch {
    Batch tasks;
    int64_t size = 0;
    Clock::time_point due;
  };

  // The last step computes the batch, and its memory counts there.
  void Compute(const Batch& batch) {
    const Task& last = *batch.back();
    const ScopedMemoryQuota of_the_step(last.memory.get());
    const absl::Status status =
        CatchExceptions("Batching", [&] { return (*last.process)(options_, batch); });
    for (const auto& task : batch) Finish(*task, status);
  }

  // Returns a due batch. If there is none, returns an empty batch and lowers `next` to the time
  // when the next one is due.
  Batch PopDue(Clock::time_point* next) {
    const Clock::time_point now = Clock::now();
    for (auto& [name, batches] : queues_) {
      while (!batches.empty() && batches.front().due <= now) {
        Batch tasks = std::move(batches.front().tasks);
        batches.pop_front();
        if (!tasks.empty()) return tasks;
      }
      if (!batches.empty()) *next = std::min(*next, batches.front().due);
    }
    return {};
  }

  const BatchOptions options_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::map<std::string, std::deque<OpenBatch>> queues_;
  bool stopping_ = false;
};

class Batcher final : public Resource {
 public:
  Batcher(std::string name, BatchOptions options)
      : name_(std::move(name)),
        threads_wanted_(options.threads),
        queues_(std::make_shared<BatchQueues>(std::move(options))) {}
  ~Batcher() override {
    queues_->Stop();
    for (std::thread& thread : threads_) JoinOrDetach(thread);
  }

  std::string Describe() const override { return "batcher '" + name_ + "'"; }
  void Clear() override { queues_->Stop(); }

  // Calls the task's `done` when it is computed, cancelled or rejected.
  void Submit(const std::string& queue, std::unique_ptr<Task> task) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      task->id = static_cast<int64_t>(ids_() >> 1);
      while (static_cast<int>(threads_.size()) < threads_wanted_)
        threads_.emplace_back([queues = queues_, mode = FloatMode::Current()] {
          const ScopedFloatMode as_the_step(mode);
          queues->Work();
        });
    }
    Cancellation* cancellation = task->context.cancellation();
    const int64_t id = task->id;
    const auto cancel = [queues = queues_, id] {
      const std::unique_ptr<Task> task = queues->Remove(id);
      if (task != nullptr) Finish(*task, absl::CancelledError("Batching was cancelled"));
    };
    if (cancellation != nullptr && !cancellation->OnCancel(cancel, &task->token))
      return task->done(absl::CancelledError("Batching was cancelled"));
    const absl::Status added = queues_->Add(queue, &task);
    if (!added.ok()) return Finish(*task, added);
    if (cancellation != nullptr && cancellation->cancelled()) cancel();
  }

 private:
  const std::string name_;
  const int threads_wanted_;
  const std::shared_ptr<BatchQueues> queues_;
  std::mutex mutex_;
  std::mt19937_64 ids_{std::random_device()()};
  std::vector<std::thread> threads_;
};

// Concatenates input k of all tasks, padded with copies of the first row.
absl::StatusOr<Tensor> ConcatInput(const BatchOptions& options, const Batch& batch, size_t k) {
  std::vector<Tensor> parts;
  int64_t size = 0;
  for (const auto& task : batch) {
    if (task->inputs.size() != batch[0]->inputs.size())
      return InvalidArgument("Batching inputs must have equal number of edges");
    parts.push_back(task->inputs[k]);
    size += task->size;
  }
  const int64_t padding = options.PaddedSize(size) - size;
  if (padding > 0 && parts[0].dim(0) == 0) {
    return InvalidArgument("Cannot use an empty tensor with zero rows as padding when batching. ",
                           "(Input ", k, " got shape ", parts[0].shape().ToString(), ".)");
  }
  for (int64_t i = 0; i < padding; ++i) parts.push_back(parts[0].Slice(0, 1));
  return ConcatRows(parts);
}

// ---- Batch

absl::Status OutputToLastStep(const BatchOptions& options, const Batch& batch) {
  KernelContext& last = batch.back()->context;
  const auto num_inputs = static_cast<int>(batch[0]->inputs.size());
  for (int k = 0; k < num_inputs; ++k) {
    WEIR_ASSIGN_OR_RETURN(Tensor concatenated, ConcatInput(options, batch, static_cast<size_t>(k)));
    last.SetOutput(k, std::move(concatenated));
  }
  Tensor index = Tensor::Zeros(DT_INT64, Shape({static_cast<int64_t>(batch.size()), 3}));
  int64_t* row = index.data<int64_t>();
  int64_t at = 0;
  for (const auto& task : batch) {
    row[0] = task->id;
    row[1] = at;
    row[2] = at += task->size;
    row += 3;
    task->context.SetOutput(num_inputs + 1, Tensor::Scalar(task->id));
    if (task == batch.back()) continue;
    for (int k = 0; k < num_inputs; ++k) {
      Shape empty = task->inputs[k].shape();
      empty.set_dim(0, 0);
      task->context.SetOutput(k, Tensor::Zeros(task->inputs[k].dtype(), empty));
    }
    task->context.SetOutput(num_inputs, Tensor::Zeros(DT_INT64, Shape({0, 3})));
  }
  last.SetOutput(num_inputs, std::move(index));
  return absl::OkStatus();
}

// ---- BatchFunction

absl::Status CheckResults(const Tensors& results, int64_t size) {
  for (const Tensor& t : results) {
    if (t.rank() == 0) return FailedPrecondition("Batched output tensor has 0 dimensions");
    if (t.dim(0) != size) {
      return FailedPrecondition(
          "Batched output tensor's 0th dimension does not equal the sum of the 0th dimension sizes "
          "of the input tensors. 0th dimension size: ",
          t.dim(0), "; padded batch size: ", size);
    }
  }
  return absl::OkStatus();
}

// Splits a batch larger than the largest allowed size into calls of at most that size.
absl::StatusOr<Tensors> CallSplit(Function* function, const BatchOptions& options,
                                  const Task& caller, const Tensors& inputs) {
  const int64_t size = inputs[0].dim(0);
  std::vector<std::vector<Tensor>> parts;
  for (int64_t begin = 0; begin == 0 || begin < size;) {
    const int64_t end = std::min(size, begin + options.LargestSize());
    Tensors args, results;
    for (const Tensor& t : inputs) args.push_back(t.Slice(begin, end).DeepCopy());
    args.insert(args.end(), caller.captured.begin(), caller.captured.end());
    KernelContext& c = caller.context;
    WEIR_RETURN_IF_ERROR(function->Call(c.step(), c.node(), args, &results));
    WEIR_RETURN_IF_ERROR(CheckResults(results, end - begin));
    parts.resize(results.size());
    for (size_t k = 0; k < results.size(); ++k) parts[k].push_back(std::move(results[k]));
    if (end == begin) break;
    begin = end;
  }
  Tensors concatenated;
  for (const std::vector<Tensor>& pieces : parts) {
    WEIR_ASSIGN_OR_RETURN(concatenated.emplace_back(), ConcatRows(pieces));
  }
  return concatenated;
}

absl::Status CallFunction(Function* function, const BatchOptions& options, const Batch& batch) {
  Tensors inputs;
  for (size_t k = 0; k < batch[0]->inputs.size(); ++k) {
    WEIR_ASSIGN_OR_RETURN(inputs.emplace_back(), ConcatInput(options, batch, k));
  }
  WEIR_ASSIGN_OR_RETURN(const Tensors results, CallSplit(function, options, *batch.back(), inputs));
  int64_t at = 0;
  for (const auto& task : batch) {
    if (task->context.num_outputs() != static_cast<int>(results.size()))
      return Internal("Wrong number of batched output tensors");
    for (size_t k = 0; k < results.size(); ++k)
      task->context.SetOutput(static_cast<int>(k),
                              results[k].Slice(at, at + task->size).DeepCopy());
    at += task->size;
  }
  return absl::OkStatus();
}

// ---- common to both

absl::StatusOr<std::unique_ptr<Task>> NewTask(KernelContext& c, int num_inputs,
                                              const BatchOptions& options, const Process* process) {
  auto task = std::make_unique<Task>(Task{c, nullptr, process, {}, {}});
  for (int i = 0; i < c.num_inputs(); ++i) {
    WEIR_ASSIGN_OR_RETURN(Tensor owned, c.Own(c.input(i)));
    (i < num_inputs ? task->inputs : task->captured).push_back(std::move(owned));
  }
  for (const Tensor& t : task->inputs) {
    if (t.rank() == 0)
      return InvalidArgument("Batching input tensors must have at least one dimension");
    if (t.dim(0) != task->inputs[0].dim(0)) {
      return InvalidArgument(
          "Batching input tensors supplied in a given op invocation must have equal 0th-dimension "
          "size");
    }
  }
  task->size = task->inputs[0].dim(0);
  const int64_t most = options.splits ? options.max_batch_size : options.LargestSize();
  if (task->size > most) {
    return InvalidArgument("Task size ", task->size, " is larger than maximum input batch size ",
                           most);
  }
  return task;
}

// A step without rows does not wait. As in TensorFlow, its outputs are empty vectors whatever the
// input shapes.
absl::Status SetEmptyOutputs(KernelContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i)
    WEIR_RETURN_IF_ERROR(c.AllocateOutput(i, Shape({0})).status());
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeBatching(const KernelInit& init, size_t num_inputs, Process process) {
  WEIR_ASSIGN_OR_RETURN(const BatchOptions options, BatchOptions::Of(init.node));
  WEIR_ASSIGN_OR_RETURN(const ResourceName name, NameSharedByNode(init.node));
  auto batcher =
      name.SelectMap(init.resources).LookupOrCreate<Batcher>(name.container, name.name, [&] {
        return std::make_shared<Batcher>(name.name, options);
      });
  const auto shared = std::make_shared<const Process>(std::move(process));
  return Kernel([batcher, shared, options, num_inputs = static_cast<int>(num_inputs),
                 queue = init.attr<std::string>("batching_queue")](KernelContext& c,
                                                                   Kernel::Done done) -> void {
    absl::StatusOr<std::unique_ptr<Task>> task = NewTask(c, num_inputs, options, shared.get());
    if (!task.ok()) return done(task.status());
    if ((*task)->size == 0) return done(SetEmptyOutputs(c));
    (*task)->done = std::move(done);
    batcher->Submit(queue, *std::move(task));
  });
}

absl::StatusOr<Kernel> MakeBatch(const KernelInit& init) {
  return MakeBatching(init, init.attr<DataTypes>("T").size(), OutputToLastStep);
}

absl::StatusOr<Kernel> MakeBatchFunction(const KernelInit& init) {
  const auto ref = init.attr<FunctionRef>("f");
  WEIR_ASSIGN_OR_RETURN(Function * function, FindFunction(init, ref));
  const auto in = init.attr<DataTypes>("Tin");
  DataTypes args = in;
  for (const DataType t : init.attr<DataTypes>("Tcaptured")) args.push_back(t);
  if (function->arg_types() != args || function->result_types() != init.attr<DataTypes>("Tout")) {
    const size_t takes = function->arg_types().size(), passed = args.size();
    const std::string counts = takes == passed
                                   ? ""
                                   : absl::StrCat("Function takes ", takes, " argument(s) but ",
                                                  passed, " argument(s) were passed. ");
    return InvalidArgument(counts, "Function takes (", TypeList(function->arg_types()),
                           ") and returns (", TypeList(function->result_types()),
                           "), but was passed (", TypeList(args), ")");
  }
  for (const DataType t : in) {
    if (t == DT_RESOURCE) return InvalidArgument("BatchFunction cannot take resource inputs");
  }
  return MakeBatching(init, in.size(), [function](const BatchOptions& options, const Batch& batch) {
    return CallFunction(function, options, batch);
  });
}

}  // namespace

void AddBatchKernels(KernelRegistry* r) {
  r->Add("Batch", kCpu, MakeBatch);
  r->Add("BatchFunction", kCpu, MakeBatchFunction);
  AddUnbatchKernels(r);
}

}  // namespace weir
