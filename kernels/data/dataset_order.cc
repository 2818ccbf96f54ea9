#include <algorithm>
#include <limits>
#include <mutex>
#include <random>
#include <utility>

#include "weir/kernels/data/dataset_prefetch.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/philox.h"
#include "weir/kernels/lib/registry.h"

// Datasets that reorder, repeat, drop or combine the elements of datasets.
namespace weir {

namespace {

using IteratorPtr = std::unique_ptr<DatasetIterator>;

absl::Status TakeDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t count, ReadInt(c.input(1), "count"));
  return WrapDataset(c, [count](IteratorPtr in) {
    return IteratorOf([in = std::move(in), count,
                       taken = int64_t{0}](const DatasetContext& x) mutable -> MaybeElement {
      if (count >= 0 && taken >= count) return std::nullopt;
      ++taken;
      return in->Next(x);
    });
  });
}

// A negative count skips everything.
absl::Status SkipDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t count, ReadInt(c.input(1), "count"));
  return WrapDataset(c, [count](IteratorPtr in) {
    return IteratorOf(
        [in = std::move(in), left = count](const DatasetContext& x) mutable -> MaybeElement {
          if (left < 0) return std::nullopt;
          for (; left > 0; --left) {
            WEIR_ASSIGN_OR_RETURN(const std::optional<Tensors> skipped, in->Next(x));
            if (!skipped) return std::nullopt;
          }
          return in->Next(x);
        });
  });
}

// A negative count repeats forever; an empty dataset stays empty even then.
absl::Status RepeatDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t count, ReadInt(c.input(1), "count"));
  WEIR_ASSIGN_OR_RETURN(const DatasetPtr input, DatasetIn(c.input(0)));
  c.SetOutput(
      0, DatasetTensor(DatasetOf([input, count] {
        return IteratorOf([input, count, round = int64_t{0}, any = true,
                           in = IteratorPtr()](const DatasetContext& x) mutable -> MaybeElement {
          while (any && (count < 0 || round < count)) {
            const bool first = in == nullptr;
            if (first) {
              WEIR_ASSIGN_OR_RETURN(in, input->Iterate());
            }
            WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, in->Next(x));
            if (element) return element;
            any = count >= 0 || !first;
            in = nullptr;
            ++round;
          }
          return std::nullopt;
        });
      })));
  return absl::OkStatus();
}

// Ends with the shortest input.
absl::Status ZipDataset(KernelContext& c) {
  std::vector<DatasetPtr> inputs;
  for (int i = 0; i < c.num_inputs(); ++i) {
    WEIR_ASSIGN_OR_RETURN(inputs.emplace_back(), DatasetIn(c.input(i)));
  }
  c.SetOutput(0, DatasetTensor(DatasetOf([inputs]() -> MaybeIterator {
                std::vector<IteratorPtr> all;
                for (const DatasetPtr& input : inputs) {
                  WEIR_ASSIGN_OR_RETURN(all.emplace_back(), input->Iterate());
                }
                return IteratorOf([all = std::move(all)](const DatasetContext& x) -> MaybeElement {
                  Tensors together;
                  for (const IteratorPtr& in : all) {
                    WEIR_ASSIGN_OR_RETURN(const std::optional<Tensors> element, in->Next(x));
                    if (!element) return std::nullopt;
                    together.insert(together.end(), element->begin(), element->end());
                  }
                  return together;
                });
              })));
  return absl::OkStatus();
}

absl::Status ConcatenateDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const DatasetPtr second, DatasetIn(c.input(1)));
  return WrapDataset(c, [second](IteratorPtr in) {
    return IteratorOf([in = std::move(in), second,
                       on_second = false](const DatasetContext& x) mutable -> MaybeElement {
      WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, in->Next(x));
      if (element || on_second) return element;
      WEIR_ASSIGN_OR_RETURN(in, second->Iterate());
      on_second = true;
      return in->Next(x);
    });
  });
}

// Hints that do not change the elements.
absl::Status SameDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetIn(c.input(0)));
  c.SetOutput(0, DatasetTensor(std::move(input)));
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeModel(const KernelInit& init) {
  for (const auto& [name, attr] :
       {std::pair("CPU", "cpu_budget"), std::pair("RAM", "ram_budget")}) {
    const auto budget = init.attr<int64_t>(attr);
    if (budget < 0) return InvalidArgument(name, " budget must be positive but is ", budget, ".");
  }
  return Kernel([](KernelContext& c) { return SameDataset(c); });
}

absl::Status ThreadsDataset(KernelContext& c) {
  const std::string& name = c.node().op().inputs()[1].name;
  WEIR_ASSIGN_OR_RETURN(const int64_t count, ReadInt(c.input(1), name));
  if (count < 0) return InvalidArgument("`", name, "` must be >= 0, not ", count);
  constexpr int64_t kThreadLimit = 65536;
  if (name == "num_threads" && count >= kThreadLimit)
    return InvalidArgument("`num_threads` must be < ", kThreadLimit, ", not ", count);
  return SameDataset(c);
}

// The arguments behind the dataset are hints of this rank.
template <int kRank>
absl::Status HintedDataset(KernelContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i) {
    const std::string& name = c.node().op().inputs()[static_cast<size_t>(i)].name;
    WEIR_RETURN_IF_ERROR(CheckRank(c.input(i), kRank, name));
  }
  return SameDataset(c);
}

// Shuffling. A ring buffer is filled with the next elements. One is drawn, the first of the
// remaining ones moves to its slot, and the buffer is refilled behind them. The random numbers are
// the words of a Philox stream, so the order equals TensorFlow's for the same two seeds. With
// reshuffling, each iterator has its own seeds, two words of a stream seeded by the dataset's
// seeds. Source: "Algorithm R" as a sliding window; the draw is `word % size`.
class Shuffler final : public DatasetIterator {
 public:
  Shuffler(IteratorPtr input, int64_t size, uint64_t seed, uint64_t seed2)
      : input_(std::move(input)), size_(size), words_(Philox(seed, seed2)) {}

  MaybeElement Next(const DatasetContext& x) override {
    while (input_ != nullptr && last_ - first_ < size_) {
      WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, input_->Next(x));
      if (!element) {
        input_ = nullptr;
        break;
      }
      At(last_++, /*grow=*/true) = *std::move(element);
    }
    if (first_ == last_) return std::nullopt;
    const int64_t offset = words_() % static_cast<uint64_t>(last_ - first_);
    Tensors drawn = std::move(At(first_ + offset));
    std::swap(At(first_ + offset), At(first_));
    ++first_;
    return drawn;
  }

 private:
  // The buffer grows only with the number of elements, whatever size is requested.
  Tensors& At(int64_t i, bool grow = false) {
    const auto place = static_cast<size_t>(i % size_);
    if (grow && place >= buffer_.size()) buffer_.resize(place + 1);
    return buffer_[place];
  }

  IteratorPtr input_;
  const int64_t size_;
  PhiloxWords words_;
  std::vector<Tensors> buffer_;
  int64_t first_ = 0, last_ = 0;
};

// Generates the seeds of successive iterators.
class SeedGenerator {
 public:
  SeedGenerator(uint64_t seed, uint64_t seed2, bool fresh)
      : seed_(seed), seed2_(seed2), fresh_(fresh), words_(Philox(seed, seed2)) {}
  std::pair<uint64_t, uint64_t> Next() {
    if (!fresh_) return {seed_, seed2_};
    const std::lock_guard<std::mutex> lock(mutex_);
    const uint64_t first = words_();
    return {first, words_()};
  }

 private:
  const uint64_t seed_, seed2_;
  const bool fresh_;
  std::mutex mutex_;
  PhiloxWords words_;
};

absl::Status ShuffleDataset(KernelContext& c) {
  constexpr int64_t kUnknownCardinality = -2;  // all elements
  WEIR_ASSIGN_OR_RETURN(int64_t size, ReadInt(c.input(1), "buffer_size"));
  WEIR_ASSIGN_OR_RETURN(int64_t seed, ReadInt(c.input(2), "seed"));
  WEIR_ASSIGN_OR_RETURN(int64_t seed2, ReadInt(c.input(3), "seed2"));
  if (size == kUnknownCardinality) size = std::numeric_limits<int64_t>::max();
  if (size <= 0)
    return InvalidArgument("buffer_size must be greater than zero or UNKNOWN_CARDINALITY");
  if (seed == 0 && seed2 == 0) {
    std::random_device random;
    seed = random();
    seed2 = random();
  }
  const auto seeds =
      std::make_shared<SeedGenerator>(seed, seed2, c.node().attr<bool>("reshuffle_each_iteration"));
  return WrapDataset(c, [size, seeds](IteratorPtr in) -> IteratorPtr {
    const auto [first, second] = seeds->Next();
    return std::make_unique<Shuffler>(std::move(in), size, first, second);
  });
}

// An empty handle: the dataset itself holds the seeds.
absl::Status DummySeedGenerator(KernelContext& c) {
  c.SetOutput(0, Tensor::Scalar(ResourceHandle()));
  return absl::OkStatus();
}

// Takes element `index` of every `num_shards` elements.
absl::Status ShardDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t num_shards, ReadInt(c.input(1), "num_shards"));
  WEIR_ASSIGN_OR_RETURN(const int64_t index, ReadInt(c.input(2), "index"));
  if (num_shards <= 0) {
    return InvalidArgument(
        "Number of shards must be greater than zero (currently num_shards = ", num_shards, ").");
  }
  if (index < 0 || index >= num_shards) {
    return InvalidArgument("Index must be between 0 and ", num_shards - 1,
                           " (currently index = ", index, ").");
  }
  return WrapDataset(c, [=](IteratorPtr in) {
    return IteratorOf(
        [=, in = std::move(in), at = int64_t{0}](const DatasetContext& x) mutable -> MaybeElement {
          for (;;) {
            WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, in->Next(x));
            if (!element) return std::nullopt;
            if (at++ % num_shards == index) return element;
          }
        });
  });
}

// The first iterator that reaches the end fills the cache; later ones read from it.
absl::Status CacheDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const std::string file, ReadString(c.input(1), "filename"));
  if (!file.empty()) return Unimplemented("caching elements in a file is not supported: ", file);
  struct Cache {
    std::mutex mutex;
    bool complete = false;
    std::vector<Tensors> elements;
  };
  return WrapDataset(c, [cache = std::make_shared<Cache>()](IteratorPtr in) {
    const std::lock_guard<std::mutex> lock(cache->mutex);
    return IteratorOf(
        [in = std::move(in), cache, complete = cache->complete, next = size_t{0},
         read = std::vector<Tensors>()](const DatasetContext& x) mutable -> MaybeElement {
          if (complete) {
            if (next >= cache->elements.size()) return std::nullopt;
            return cache->elements[next++];
          }
          WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, in->Next(x));
          if (element) {
            read.push_back(*element);
            return element;
          }
          const std::lock_guard<std::mutex> writes(cache->mutex);
          if (!cache->complete) cache->elements = std::move(read);
          cache->complete = complete = true;
          next = cache->elements.size();
          return std::nullopt;
        });
  });
}

absl::Status PrefetchDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t size, ReadInt(c.input(1), "buffer_size"));
  if (size < -1) return InvalidArgument("buffer_size must be >= 0 or set buffer_size to be -1");
  return WrapDataset(
      c, [size](IteratorPtr in) -> MaybeIterator { return Prefetched(std::move(in), size); });
}

}  // namespace

void AddDatasetTransformKernels(KernelRegistry* r) {
  AddDatasetBatchKernels(r);
  AddDatasetFunctionKernels(r);
  r->Add("CacheDataset", kCpu, CacheDataset);
  r->Add("ConcatenateDataset", kCpu, ConcatenateDataset);
  r->Add("DummySeedGenerator", kCpu, DummySeedGenerator);
  for (const char* op : {"ExperimentalNonSerializableDataset", "FinalizeDataset",
                         "NonSerializableDataset", "OptionsDataset"})
    r->Add(op, kCpu, SameDataset);
  for (const char* op :
       {"BytesProducedStatsDataset", "ExperimentalBytesProducedStatsDataset",
        "ExperimentalLatencyStatsDataset", "LatencyStatsDataset", "RewriteDataset"})
    r->Add(op, kCpu, HintedDataset<0>);
  r->Add("ModelDataset", kCpu, MakeModel);
  for (const char* op : {"MaxIntraOpParallelismDataset", "PrivateThreadPoolDataset"})
    r->Add(op, kCpu, ThreadsDataset);
  for (const char* op : {"OptimizeDataset", "OptimizeDatasetV2"})
    r->Add(op, kCpu, HintedDataset<1>);
  r->Add("PrefetchDataset", kCpu, PrefetchDataset);
  r->Add("RepeatDataset", kCpu, RepeatDataset);
  r->Add("ShardDataset", kCpu, ShardDataset);
  r->Add("ShuffleDataset", kCpu, ShuffleDataset);
  r->Add("ShuffleDatasetV3", kCpu, ShuffleDataset);
  r->Add("SkipDataset", kCpu, SkipDataset);
  r->Add("TakeDataset", kCpu, TakeDataset);
  r->Add("ZipDataset", kCpu, ZipDataset);
}

}  // namespace weir
