#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "weir/kernels/data/dataset_prefetch.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"

// Datasets that reorder, repeat, drop or combine the elements of datasets.
namespace weir {

namespace {

using IteratorPtr = std::unique_ptr<DatasetIterator>;

absl::Status TakeDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t count, ReadInt(c.input(1), "count"));
  WEIR_ASSIGN_OR_RETURN(const DatasetPtr input, DatasetIn(c.input(0)));
  DatasetTraits traits = input->traits();
  if (traits.get != nullptr)
    traits.get = [input](const DatasetContext& x, int64_t i) { return input->Get(x, i); };
  if (count >= 0 && traits.cardinality != DatasetTraits::kUnknown) {
    traits.cardinality = traits.is_finite() ? std::min(traits.cardinality, count) : count;
  }
  const auto iterate = [input, count]() -> MaybeIterator {
    WEIR_ASSIGN_OR_RETURN(IteratorPtr in, input->Iterate());
    return IteratorOf([in = std::move(in), count,
                       taken = int64_t{0}](const DatasetContext& x) mutable -> MaybeElement {
      if (count >= 0 && taken >= count) return std::nullopt;
      ++taken;
      return in->Next(x);
    });
  };
  c.SetOutput(0, DatasetTensor(DatasetOf(iterate, std::move(traits))));
  return absl::OkStatus();
}

// A negative count skips everything.
absl::Status SkipDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t count, ReadInt(c.input(1), "count"));
  WrapTraits traits;
  traits.cardinality = [count](int64_t n) { return count < 0 || count > n ? 0 : n - count; };
  traits.get = [count](const Dataset& in, const DatasetContext& x, int64_t i) {
    return in.Get(x, i + count);
  };
  const auto wrap = [count](IteratorPtr in) {
    return IteratorOf(
        [in = std::move(in), left = count](const DatasetContext& x) mutable -> MaybeElement {
          if (left < 0) return std::nullopt;
          for (; left > 0; --left) {
            WEIR_ASSIGN_OR_RETURN(const std::optional<Tensors> skipped, in->Next(x));
            if (!skipped) return std::nullopt;
          }
          return in->Next(x);
        });
  };
  return WrapDataset(c, wrap, std::move(traits));
}

// A negative count repeats forever; an empty dataset stays empty even then.
absl::Status RepeatDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t count, ReadInt(c.input(1), "count"));
  WEIR_ASSIGN_OR_RETURN(const DatasetPtr input, DatasetIn(c.input(0)));
  DatasetTraits traits{.options = input->traits().options};
  traits.cardinality = RepeatedCardinality(input->cardinality(), count);
  if (input->traits().get != nullptr) {
    traits.get = [input](const DatasetContext& x, int64_t i) {
      return input->Get(x, i % input->cardinality());
    };
  }
  const auto iterate = [input, count] {
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
  };
  c.SetOutput(0, DatasetTensor(DatasetOf(iterate, std::move(traits))));
  return absl::OkStatus();
}

// Returns the options of several inputs: messages whose bytes follow each other are merged.
std::string OptionsOf(const std::vector<DatasetPtr>& inputs) {
  std::string options;
  for (const DatasetPtr& input : inputs) options += input->traits().options;
  return options;
}

DatasetTraits ZippedTraits(const std::vector<DatasetPtr>& inputs) {
  DatasetTraits traits{.cardinality = DatasetTraits::kInfinite, .options = OptionsOf(inputs)};
  bool has_get = true;
  for (const DatasetPtr& input : inputs) {
    const int64_t n = input->cardinality();
    if (n == DatasetTraits::kUnknown) return {.options = std::move(traits.options)};
    if (n >= 0) traits.cardinality = traits.is_finite() ? std::min(traits.cardinality, n) : n;
    has_get = has_get && input->traits().get != nullptr;
  }
  if (!has_get) return traits;
  traits.get = [inputs](const DatasetContext& x, int64_t i) -> absl::StatusOr<Tensors> {
    Tensors together;
    for (const DatasetPtr& input : inputs) {
      WEIR_ASSIGN_OR_RETURN(const Tensors element, input->Get(x, i));
      together.insert(together.end(), element.begin(), element.end());
    }
    return together;
  };
  return traits;
}

// Ends with the shortest input.
absl::Status ZipDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<DatasetPtr> inputs, DatasetInputs(c, 0, c.num_inputs()));
  const auto iterate = [inputs]() -> MaybeIterator {
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
  };
  c.SetOutput(0, DatasetTensor(DatasetOf(iterate, ZippedTraits(inputs))));
  return absl::OkStatus();
}

DatasetTraits ConcatenatedTraits(const DatasetPtr& a, const DatasetPtr& b) {
  DatasetTraits traits{.options = OptionsOf({a, b})};
  const int64_t first = a->cardinality(), second = b->cardinality();
  if (first == DatasetTraits::kInfinite || second == DatasetTraits::kInfinite)
    traits.cardinality = DatasetTraits::kInfinite;
  if (first < 0 || second < 0) return traits;
  if (__builtin_add_overflow(first, second, &traits.cardinality))
    traits.cardinality = std::numeric_limits<int64_t>::max();
  if (a->traits().get == nullptr || b->traits().get == nullptr) return traits;
  traits.get = [=](const DatasetContext& x, int64_t i) {
    return i < first ? a->Get(x, i) : b->Get(x, i - first);
  };
  return traits;
}

absl::Status ConcatenateDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<DatasetPtr> inputs, DatasetInputs(c, 0, 2));
  const auto iterate = [inputs]() -> MaybeIterator {
    WEIR_ASSIGN_OR_RETURN(IteratorPtr first, inputs[0]->Iterate());
    return IteratorOf([in = std::move(first), inputs,
                       on_second = false](const DatasetContext& x) mutable -> MaybeElement {
      WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, in->Next(x));
      if (element || on_second) return element;
      WEIR_ASSIGN_OR_RETURN(in, inputs[1]->Iterate());
      on_second = true;
      return in->Next(x);
    });
  };
  c.SetOutput(0, DatasetTensor(DatasetOf(iterate, ConcatenatedTraits(inputs[0], inputs[1]))));
  return absl::OkStatus();
}

// Takes element `index` of every `num_shards` elements.
absl::Status ShardDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t num_shards, ReadInt(c.input(1), "num_shards"));
  WEIR_ASSIGN_OR_RETURN(const int64_t index, ReadInt(c.input(2), "index"));
  // tf.data.experimental.SHARD_HINT: what AutoShardDataset replaces, if there is one.
  constexpr int64_t kShardHint = -1;
  if (num_shards == kShardHint) return SameDataset(c);
  if (num_shards <= 0) {
    return InvalidArgument(
        "Number of shards must be greater than zero (currently num_shards = ", num_shards, ").");
  }
  if (index < 0 || index >= num_shards) {
    return InvalidArgument("Index must be between 0 and ", num_shards - 1,
                           " (currently index = ", index, ").");
  }
  WrapTraits traits;
  traits.cardinality = [=](int64_t n) { return n / num_shards + (index < n % num_shards ? 1 : 0); };
  traits.get = [=](const Dataset& in, const DatasetContext& x, int64_t i) {
    return in.Get(x, i * num_shards + index);
  };
  const auto wrap = [=](IteratorPtr in) {
    return IteratorOf(
        [=, in = std::move(in), at = int64_t{0}](const DatasetContext& x) mutable -> MaybeElement {
          for (;;) {
            WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, in->Next(x));
            if (!element) return std::nullopt;
            if (at++ % num_shards == index) return element;
          }
        });
  };
  return WrapDataset(c, wrap, std::move(traits));
}

absl::Status PrefetchDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t size, ReadInt(c.input(1), "buffer_size"));
  if (size < -1) return InvalidArgument("buffer_size must be >= 0 or set buffer_size to be -1");
  const auto wrap = [size](IteratorPtr in) -> MaybeIterator {
    return Prefetched(std::move(in), size);
  };
  return WrapDataset(c, wrap, SameElements());
}

}  // namespace

void AddDatasetTransformKernels(KernelRegistry* r) {
  AddDatasetBatchKernels(r);
  AddDatasetChoiceKernels(r);
  AddDatasetFunctionKernels(r);
  AddDatasetGroupKernels(r);
  AddDatasetHintKernels(r);
  AddDatasetIndexKernels(r);
  AddDatasetRandomKernels(r);
  AddDatasetRebatchKernels(r);
  AddDatasetSelectKernels(r);
  AddDatasetShuffleKernels(r);
  AddDatasetSparseKernels(r);
  AddDatasetWindowKernels(r);
  r->Add("ConcatenateDataset", kCpu, ConcatenateDataset);
  r->Add("PrefetchDataset", kCpu, PrefetchDataset);
  r->Add("RepeatDataset", kCpu, RepeatDataset);
  r->Add("ShardDataset", kCpu, ShardDataset);
  r->Add("SkipDataset", kCpu, SkipDataset);
  r->Add("TakeDataset", kCpu, TakeDataset);
  r->Add("ZipDataset", kCpu, ZipDataset);
}

}  // namespace weir
