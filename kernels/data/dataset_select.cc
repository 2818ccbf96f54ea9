#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "weir/kernels/data/captured_function.h"
#include "weir/kernels/data/dataset_prefetch.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"

// Datasets of some of a dataset's elements, and those that watch or delay its elements.
namespace weir {

namespace {

using IteratorPtr = std::unique_ptr<DatasetIterator>;

// ---- elements that differ from all before them

// Returns bytes that are equal for equal tensors alone.
std::string KeyOf(const Tensor& t) {
  std::string key = absl::StrCat(t.Description(), ":");
  if (t.dtype() != DT_STRING) {
    key.append(static_cast<const char*>(t.raw()), t.num_bytes());
    return key;
  }
  for (const std::string& s : t.flat<std::string>()) absl::StrAppend(&key, s.size(), ":", s);
  return key;
}

absl::Status UniqueDataset(KernelContext& c) {
  const auto types = c.node().attr<DataTypes>("output_types");
  if (types.size() != 1)
    return InvalidArgument("UniqueDataset only supports inputs with a single component.");
  if (types[0] != DT_INT32 && types[0] != DT_INT64 && types[0] != DT_STRING) {
    return InvalidArgument(
        "UniqueDataset only supports inputs with a single `tf.int32`, `tf.int64`, or `tf.string` "
        "component.");
  }
  const ElementSpec spec{.types = types, .shapes = {}};
  // The standard set survives an insertion that finds no memory, Abseil's does not.
  const auto wrap = [spec](IteratorPtr in) {
    return IteratorOf([in = std::move(in), spec, seen = std::unordered_set<std::string>()](
                          const DatasetContext& x) mutable -> MaybeElement {
      for (;;) {
        WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, in->Next(x));
        if (!element) return std::nullopt;
        WEIR_RETURN_IF_ERROR(spec.Check(*element));
        if (seen.insert(KeyOf((*element)[0])).second) return element;
      }
    });
  };
  return WrapDataset(c, wrap);
}

// ---- elements that are no errors

absl::Status IgnoreErrorsDataset(KernelContext& c) {
  const auto wrap = [](IteratorPtr in) {
    return IteratorOf([in = std::move(in)](const DatasetContext& x) -> MaybeElement {
      for (;;) {
        MaybeElement element = in->Next(x);
        if (element.ok() || HasEnded(x.step) ||
            element.status().code() == absl::StatusCode::kCancelled) {
          return element;
        }
      }
    });
  };
  return WrapDataset(c, wrap, SameCardinality());
}

// ---- as many elements as promised

std::string CountText(int64_t n) {
  if (n == DatasetTraits::kInfinite) return "an infinite number of elements";
  return absl::StrCat(n, n == 1 ? " element" : " elements");
}

absl::Status AssertCardinalityDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t cardinality, ReadInt(c.input(1), "cardinality"));
  WEIR_ASSIGN_OR_RETURN(const DatasetPtr input, DatasetIn(c.input(0)));
  DatasetTraits traits{.cardinality = cardinality, .options = input->traits().options};
  if (input->traits().get != nullptr)
    traits.get = [input](const DatasetContext& x, int64_t i) { return input->Get(x, i); };
  const auto iterate = [input, cardinality]() -> MaybeIterator {
    WEIR_ASSIGN_OR_RETURN(IteratorPtr in, input->Iterate());
    return IteratorOf([in = std::move(in), cardinality,
                       count = int64_t{0}](const DatasetContext& x) mutable -> MaybeElement {
      WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, in->Next(x));
      if (element) ++count;
      if (!element && count != cardinality) {
        return FailedPrecondition("Input dataset was expected to contain ", CountText(cardinality),
                                  " but contained only ", CountText(count), ".");
      }
      if (cardinality != DatasetTraits::kInfinite && count > cardinality) {
        return FailedPrecondition("Input dataset was expected to contain ", CountText(cardinality),
                                  " but contained at least ", CountText(count), ".");
      }
      return element;
    });
  };
  c.SetOutput(0, DatasetTensor(DatasetOf(iterate, std::move(traits))));
  return absl::OkStatus();
}

// ---- elements that take longer

// Waits, unless the step is cancelled or its deadline passes meanwhile.
absl::Status Sleep(const StepInfo& step, std::chrono::microseconds time) {
  std::mutex mutex;
  std::condition_variable changed;
  bool cancelled = false;
  int64_t token = 0;
  const auto cancel = [&] {
    const std::lock_guard<std::mutex> lock(mutex);
    cancelled = true;
    changed.notify_all();
  };
  if (step.cancellation != nullptr && !step.cancellation->OnCancel(cancel, &token))
    return step.cancellation->status();
  const auto now = std::chrono::steady_clock::now();
  auto until = now + time;
  if (step.deadline) until = std::min(until, *step.deadline);
  {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait_until(lock, until, [&] { return cancelled; });
  }
  if (step.cancellation != nullptr) step.cancellation->Unregister(token);
  if (cancelled) return step.cancellation->status();
  if (until < now + time)
    return absl::DeadlineExceededError("The step took longer than its time limit");
  return absl::OkStatus();
}

absl::Status SleepDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t time, ReadInt(c.input(1), "sleep_microseconds"));
  if (time < 0) return InvalidArgument("`sleep_microseconds` must be >= 0");
  constexpr int64_t kYear = int64_t{365} * 24 * 3600 * 1'000'000;
  const std::chrono::microseconds pause(std::min(time, kYear));
  const auto wrap = [pause](IteratorPtr in) {
    return IteratorOf([in = std::move(in), pause](const DatasetContext& x) -> MaybeElement {
      WEIR_RETURN_IF_ERROR(Sleep(x.step, pause));
      return in->Next(x);
    });
  };
  return WrapDataset(c, wrap, SameCardinality());
}

// ---- the elements of one worker

// Which elements a worker gets, by the attribute `auto_shard_policy`: TensorFlow's numbers.
enum class ShardPolicy : int64_t { kOff = -1, kAuto = 0, kFile = 1, kData = 2, kHint = 3 };

// The datasets whose files AUTO and FILE divide.
constexpr absl::string_view kFileReaders[] = {"FixedLengthRecordDataset",
                                              "FixedLengthRecordDatasetV2", "TFRecordDataset",
                                              "TFRecordDatasetV2", "TextLineDataset"};

// Every `workers`-th element, beginning at `index`. As in TensorFlow, a worker that has got its
// first element fails if another worker gets none.
class ShardIterator final : public DatasetIterator {
 public:
  ShardIterator(IteratorPtr in, int64_t workers, int64_t index)
      : in_(std::move(in)), workers_(workers), index_(index) {}

  MaybeElement Next(const DatasetContext& x) override {
    std::optional<Tensors> element;
    do {
      WEIR_ASSIGN_OR_RETURN(element, in_->Next(x));
      if (!element) return std::nullopt;
    } while (read_++ % workers_ != index_);
    for (; read_ < workers_; ++read_) {
      WEIR_ASSIGN_OR_RETURN(const std::optional<Tensors> other, in_->Next(x));
      if (!other) {
        return InvalidArgument(
            "Could not apply FILE based sharding: the dataset only has ", read_,
            " file(s) or element(s), which is not enough for the required ", workers_,
            " shards/workers. Set the auto sharding policy to OFF (-1), or use fewer workers.");
      }
    }
    return element;
  }

 private:
  const IteratorPtr in_;
  const int64_t workers_, index_;
  int64_t read_ = 0;
};

absl::Status AutoShardDataset(KernelContext& c, bool reads_files) {
  WEIR_ASSIGN_OR_RETURN(const int64_t workers, ReadInt(c.input(1), "num_workers"));
  WEIR_ASSIGN_OR_RETURN(const int64_t index, ReadInt(c.input(2), "index"));
  if (workers <= 0) return InvalidArgument("num_workers must be greater than zero.");
  if (index < 0 || index >= workers)
    return InvalidArgument("index must be between 0 and ", workers - 1);
  if (c.node().attr_or("num_replicas", int64_t{0}) < 0)
    return InvalidArgument("num_replicas should be >= 0");
  const auto policy = static_cast<ShardPolicy>(c.node().attr<int64_t>("auto_shard_policy"));
  if (policy < ShardPolicy::kOff || policy > ShardPolicy::kHint)
    return InvalidArgument("auto_shard_policy is invalid: ", static_cast<int64_t>(policy));
  if (policy == ShardPolicy::kOff || workers == 1) return SameDataset(c);
  if (policy == ShardPolicy::kFile && !reads_files) {
    return absl::NotFoundError(
        "Found an unshardable source dataset: the data set reads no files that auto_shard_policy "
        "FILE (1) could divide. Use DATA (2), which divides its elements, or OFF (-1).");
  }
  // AUTO divides the elements where there are no files to divide.
  if (policy != ShardPolicy::kData && (policy != ShardPolicy::kAuto || reads_files)) {
    return Unimplemented("auto_shard_policy ", static_cast<int64_t>(policy), " for ", workers,
                         " workers is not supported, because it divides the files that the data "
                         "set reads. Use DATA (2), which divides its elements, or OFF (-1).");
  }
  const auto wrap = [workers, index](IteratorPtr in) {
    return std::make_unique<ShardIterator>(std::move(in), workers, index);
  };
  return WrapDataset(c, wrap, {.cardinality = [=](int64_t n) {
                       return n / workers + (index < n % workers ? 1 : 0);
                     }});
}

absl::StatusOr<Kernel> MakeAutoShard(const KernelInit& init) {
  bool reads_files = false;
  const auto look = [&](const Node& node) {
    reads_files = reads_files || absl::c_linear_search(kFileReaders, node.op_name());
  };
  if (init.attr<int64_t>("auto_shard_policy") >= static_cast<int64_t>(ShardPolicy::kAuto))
    WEIR_RETURN_IF_ERROR(VisitNodesBehind(*init.node.input(0).node, init.functions, look));
  return Kernel([reads_files](KernelContext& c) { return AutoShardDataset(c, reads_files); });
}

}  // namespace

void AddDatasetSelectKernels(KernelRegistry* r) {
  r->Add("AssertCardinalityDataset", kCpu, AssertCardinalityDataset);
  for (const char* op : {"AutoShardDataset", "ExperimentalAutoShardDataset"})
    r->Add(op, kCpu, MakeAutoShard);
  for (const char* op : {"ExperimentalIgnoreErrorsDataset", "IgnoreErrorsDataset"})
    r->Add(op, kCpu, IgnoreErrorsDataset);
  for (const char* op : {"ExperimentalSleepDataset", "SleepDataset"})
    r->Add(op, kCpu, SleepDataset);
  for (const char* op : {"ExperimentalUniqueDataset", "UniqueDataset"})
    r->Add(op, kCpu, UniqueDataset);
}

}  // namespace weir
