#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weir/kernels/data/captured_function.h"
#include "weir/kernels/data/dataset_prefetch.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"

// Datasets that take their elements from one of several datasets at a time.
namespace weir {

namespace {

using IteratorPtr = std::unique_ptr<DatasetIterator>;

absl::StatusOr<std::vector<IteratorPtr>> IterateAll(const std::vector<DatasetPtr>& datasets) {
  std::vector<IteratorPtr> all;
  for (const DatasetPtr& dataset : datasets) {
    WEIR_ASSIGN_OR_RETURN(all.emplace_back(), dataset->Iterate());
  }
  return all;
}

// The elements of a selector are the indices of the datasets that the next elements come from. An
// index of a dataset that has ended is passed over, or ends the sequence.
class DirectedInterleaver final : public DatasetIterator {
 public:
  DirectedInterleaver(IteratorPtr selector, std::vector<IteratorPtr> inputs, bool stop_on_empty)
      : selector_(std::move(selector)),
        inputs_(std::move(inputs)),
        stop_on_empty_(stop_on_empty),
        active_(inputs_.size()) {}

  MaybeElement Next(const DatasetContext& x) override {
    while (active_ > 0) {
      if (selected_ < 0) {
        WEIR_ASSIGN_OR_RETURN(selected_, Select(x));
        if (selected_ < 0) break;
      }
      IteratorPtr& input = inputs_[static_cast<size_t>(selected_)];
      if (input != nullptr) {
        MaybeElement element = input->Next(x);
        if (!element.ok() && HasEnded(x.step)) return element;  // the next step reads it again
        selected_ = -1;
        if (!element.ok() || *element) return element;
        if (stop_on_empty_) break;
        input = nullptr;
        --active_;
      }
      selected_ = -1;
    }
    active_ = 0;
    return std::nullopt;
  }

 private:
  // Returns the index of the next dataset; -1 at the end.
  absl::StatusOr<int64_t> Select(const DatasetContext& x) {
    WEIR_ASSIGN_OR_RETURN(const std::optional<Tensors> element, selector_->Next(x));
    if (!element) return -1;
    if (element->size() != 1 || (*element)[0].dtype() != DT_INT64 ||
        (*element)[0].num_elements() != 1) {
      return InvalidArgument("The selector input must be a dataset of scalar int64 elements.");
    }
    const int64_t index = *(*element)[0].data<int64_t>();
    const auto size = static_cast<int64_t>(inputs_.size());
    if (index < 0 || index >= size)
      return InvalidArgument("Selector index out of range: ", index, " >= ", size);
    return index;
  }

  const IteratorPtr selector_;
  std::vector<IteratorPtr> inputs_;
  const bool stop_on_empty_;
  size_t active_;          // datasets that have not ended
  int64_t selected_ = -1;  // the dataset to read from; -1: the selector's next
};

absl::Status DirectedInterleaveDataset(KernelContext& c) {
  const bool stop = c.node().attr_or("stop_on_empty_dataset", false);
  WEIR_ASSIGN_OR_RETURN(const DatasetPtr selector, DatasetIn(c.input(0)));
  WEIR_ASSIGN_OR_RETURN(const std::vector<DatasetPtr> inputs,
                        DatasetInputs(c, 1, c.num_inputs() - 1));
  const bool endless = std::any_of(inputs.begin(), inputs.end(), [](const DatasetPtr& input) {
    return input->cardinality() == DatasetTraits::kInfinite;
  });
  DatasetTraits traits;
  if (endless) traits.cardinality = DatasetTraits::kInfinite;
  const auto iterate = [selector, inputs, stop]() -> MaybeIterator {
    WEIR_ASSIGN_OR_RETURN(IteratorPtr in, selector->Iterate());
    WEIR_ASSIGN_OR_RETURN(std::vector<IteratorPtr> all, IterateAll(inputs));
    return std::make_unique<DirectedInterleaver>(std::move(in), std::move(all), stop);
  };
  c.SetOutput(0, DatasetTensor(DatasetOf(iterate, std::move(traits))));
  return absl::OkStatus();
}

// The times that the elements of each of several datasets took, and the fastest one: that with the
// lowest 90th percentile, or the last of those that tie.
class Race {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Race(size_t size) : times_(size), dropped_(size) {}

  void Report(size_t i, Clock::duration time) {
    if (times_[i].size() < kMostTimes) times_[i].push_back(time);
  }
  // Dataset i, which is not the first, can no longer win.
  void Drop(size_t i) { dropped_[i] = true; }
  size_t Fastest() {
    size_t fastest = 0;
    std::optional<Clock::duration> best;
    for (size_t i = 0; i < times_.size(); ++i) {
      if (dropped_[i]) continue;
      const Clock::duration time = Percentile(&times_[i]);
      if (best && time > *best) continue;
      best = time;
      fastest = i;
    }
    return fastest;
  }

 private:
  static constexpr size_t kMostTimes = 4096;

  static Clock::duration Percentile(std::vector<Clock::duration>* times) {
    if (times->empty()) return {};
    const size_t at = (times->size() - 1) * 9 / 10;
    std::nth_element(times->begin(), times->begin() + at, times->end());
    return (*times)[at];
  }

  std::vector<std::vector<Clock::duration>> times_;
  std::vector<bool> dropped_;
};

// All datasets have the same elements. The first `experiments` elements are read from each of them,
// the following ones from the fastest.
class FastestIterator final : public DatasetIterator {
 public:
  FastestIterator(std::vector<IteratorPtr> inputs, int64_t experiments)
      : inputs_(std::move(inputs)), experiments_(experiments), race_(inputs_.size()) {}

  MaybeElement Next(const DatasetContext& x) override {
    if (experiments_ <= 0) return inputs_[fastest_]->Next(x);
    MaybeElement first = Time(x, 0);
    if (!first.ok() && HasEnded(x.step)) return first;
    // An error of another dataset is that of the first one too; but a dataset whose element the end
    // of the step has cut short lags behind.
    for (size_t i = 1; i < inputs_.size(); ++i) {
      if (!Time(x, i).ok() && HasEnded(x.step)) race_.Drop(i);
    }
    if (--experiments_ == 0) {
      fastest_ = race_.Fastest();
    }
    return first;
  }

 private:
  MaybeElement Time(const DatasetContext& x, size_t i) {
    const auto begin = Race::Clock::now();
    MaybeElement element = inputs_[i]->Next(x);
    race_.Report(i, Race::Clock::now() - begin);
    return element;
  }

  std::vector<IteratorPtr> inputs_;
  int64_t experiments_;
  Race race_;
  size_t fastest_ = 0;
};

// Returns the cardinality that is known of any of the datasets. INVALID_ARGUMENT if two differ.
absl::StatusOr<int64_t> CommonCardinality(const std::vector<DatasetPtr>& inputs) {
  int64_t common = DatasetTraits::kUnknown;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int64_t n = inputs[i]->cardinality();
    if (n == DatasetTraits::kUnknown || n == common) continue;
    if (common != DatasetTraits::kUnknown) {
      return InvalidArgument(
          "All inputs to ChooseFastestDataset must have compatible cardinalities. Input ", i,
          " has cardinality: ", n, ", while all prior inputs have cardinality: ", common, ".");
    }
    common = n;
  }
  return common;
}

absl::Status ChooseFastestDataset(KernelContext& c) {
  const auto experiments = c.node().attr<int64_t>("num_experiments");
  WEIR_ASSIGN_OR_RETURN(const std::vector<DatasetPtr> inputs, DatasetInputs(c, 0, c.num_inputs()));
  DatasetTraits traits;
  WEIR_ASSIGN_OR_RETURN(traits.cardinality, CommonCardinality(inputs));
  const auto iterate = [inputs, experiments]() -> MaybeIterator {
    WEIR_ASSIGN_OR_RETURN(std::vector<IteratorPtr> all, IterateAll(inputs));
    return std::make_unique<FastestIterator>(std::move(all), experiments);
  };
  c.SetOutput(0, DatasetTensor(DatasetOf(iterate, std::move(traits))));
  return absl::OkStatus();
}

// ---- functions of which each makes the same dataset of the input

struct Branches {
  std::vector<CapturedFunction> functions;
  int64_t experiments = 0;  // elements of the output from each branch before one is chosen
  int64_t taken = 0;        // the elements of the input that these are made of
};

// Each branch in turn makes its elements of the next elements of the input; then the fastest branch
// makes the rest.
class BranchIterator final : public DatasetIterator {
 public:
  BranchIterator(IteratorPtr in, Branches branches)
      : in_(std::move(in)), branches_(std::move(branches)), race_(branches_.functions.size()) {}

  MaybeElement Next(const DatasetContext& x) override {
    const bool racing = branch_ < branches_.functions.size();
    if (current_.iterator == nullptr) {
      const size_t branch = racing ? branch_ : race_.Fastest();
      WEIR_RETURN_IF_ERROR(Begin(x, branches_.functions[branch], racing ? branches_.taken : -1));
    }
    if (!racing) return current_.iterator->Next(x);
    const auto begin = Race::Clock::now();
    MaybeElement element = current_.iterator->Next(x);
    if (!element.ok() && HasEnded(x.step)) return element;
    // The first element may take longer than the others: a function is compiled.
    if (experiment_ > 0) race_.Report(branch_, Race::Clock::now() - begin);
    if (++experiment_ >= branches_.experiments) {
      experiment_ = 0;
      ++branch_;
      current_ = NestedIterator();
    }
    return element;
  }

 private:
  // Calls a branch with a dataset of the next `count` elements of the input; -1: of all.
  absl::Status Begin(const DatasetContext& x, const CapturedFunction& branch, int64_t count) {
    const auto iterate = [in = in_, count,
                          used = std::make_shared<bool>(false)]() -> MaybeIterator {
      if (std::exchange(*used, true)) {
        return InvalidArgument(
            "Cannot create more than one WrapperIterator per WrapperDataset. Make sure the "
            "branches to ChooseFastestDataset do not expect the input to repeat.");
      }
      return IteratorOf([in, left = count](const DatasetContext& x) mutable -> MaybeElement {
        if (left == 0) return std::nullopt;
        if (left > 0) --left;
        return in->Next(x);
      });
    };
    WEIR_ASSIGN_OR_RETURN(const Tensors made, branch.Call(x, {DatasetTensor(DatasetOf(iterate))}));
    WEIR_ASSIGN_OR_RETURN(current_, IterateResult(made, "branches"));
    return absl::OkStatus();
  }

  const std::shared_ptr<DatasetIterator> in_;
  const Branches branches_;
  Race race_;
  NestedIterator current_;
  size_t branch_ = 0;
  int64_t experiment_ = 0;
};

// Gives each branch its part of the captured arguments.
absl::Status CaptureParts(const KernelContext& c, const std::vector<int64_t>& lengths,
                          std::vector<CapturedFunction>* functions) {
  WEIR_ASSIGN_OR_RETURN(const Tensors all, OwnInputs(c, "other_arguments"));
  size_t begin = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 0 || static_cast<uint64_t>(lengths[i]) > all.size() - begin) {
      return InvalidArgument("other_arguments_lengths[", i, "] = ", lengths[i],
                             " does not fit the ", all.size(), " arguments of all branches");
    }
    const size_t end = begin + static_cast<size_t>(lengths[i]);
    (*functions)[i].captured.assign(all.begin() + begin, all.begin() + end);
    begin = end;
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeChooseFastestBranch(const KernelInit& init) {
  Branches branches;
  for (const FunctionRef& ref : init.attr<std::vector<FunctionRef>>("branches")) {
    CapturedFunction& f = branches.functions.emplace_back();
    WEIR_ASSIGN_OR_RETURN(f.function, FindFunction(init, ref));
  }
  const auto lengths = init.attr<std::vector<int64_t>>("other_arguments_lengths");
  if (lengths.size() != branches.functions.size())
    return InvalidArgument("branches and other_arguments_lengths must have the same length.");
  branches.experiments = init.attr<int64_t>("num_elements_per_branch");
  return Kernel([branches, lengths](KernelContext& c) -> absl::Status {
    Branches all = branches;
    WEIR_ASSIGN_OR_RETURN(const int64_t numerator, ReadInt(c.input(1), "ratio_numerator"));
    WEIR_ASSIGN_OR_RETURN(const int64_t denominator, ReadInt(c.input(2), "ratio_denominator"));
    if (numerator <= 0) return InvalidArgument("`ratio_numerator` must be greater than zero.");
    if (denominator <= 0) return InvalidArgument("`ratio_denominator` must be greater than zero.");
    if (all.experiments % denominator != 0) {
      return InvalidArgument("`num_elements_per_branch` must be divisible by `ratio_denominator`.");
    }
    if (__builtin_mul_overflow(all.experiments / denominator, numerator, &all.taken))
      return InvalidArgument("`ratio_numerator` is too large: ", numerator);
    WEIR_RETURN_IF_ERROR(CaptureParts(c, lengths, &all.functions));
    const double ratio = static_cast<double>(numerator) / static_cast<double>(denominator);
    WrapTraits traits;
    traits.cardinality = [ratio](int64_t n) {
      constexpr double kMost = 9e18;
      return static_cast<int64_t>(std::min(static_cast<double>(n) * ratio, kMost));
    };
    const auto wrap = [all](IteratorPtr in) -> MaybeIterator {
      return std::make_unique<BranchIterator>(std::move(in), all);
    };
    return WrapDataset(c, wrap, std::move(traits));
  });
}

}  // namespace

void AddDatasetChoiceKernels(KernelRegistry* r) {
  r->Add("ChooseFastestBranchDataset", kCpu, MakeChooseFastestBranch);
  for (const char* op : {"ChooseFastestDataset", "ExperimentalChooseFastestDataset"})
    r->Add(op, kCpu, ChooseFastestDataset);
  for (const char* op : {"DirectedInterleaveDataset", "ExperimentalDirectedInterleaveDataset"})
    r->Add(op, kCpu, DirectedInterleaveDataset);
}

}  // namespace weir
