#include <algorithm>
#include <utility>
#include <vector>

#include "weir/kernels/data/captured_function.h"
#include "weir/kernels/data/dataset_prefetch.h"
#include "weir/kernels/data/dataset_random.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/index_shuffle.h"
#include "weir/kernels/lib/registry.h"

// Datasets that know where each of their elements comes from, so that all of them can be shuffled
// without a buffer.
namespace weir {

namespace {

using IteratorPtr = std::unique_ptr<DatasetIterator>;

// ---- a random permutation of all elements

// The seed of the permutation: three words of the generator's; the fourth is drawn, not used.
IndexShuffleSeed NextPermutation(SeedGenerator& generator) {
  const StreamSeeds first = generator.Next(), second = generator.Next();
  return {static_cast<uint32_t>(first.first), static_cast<uint32_t>(first.second),
          static_cast<uint32_t>(second.first)};
}

absl::Status GlobalShuffleDataset(KernelContext& c) {
  constexpr int64_t kRounds = 8;
  WEIR_ASSIGN_OR_RETURN(const DatasetPtr input, DatasetIn(c.input(0)));
  const int64_t n = input->cardinality();
  if (n <= 0) {
    return InvalidArgument(
        "`global_shuffle` requires the input dataset to have a non-empty finite cardinality. Got "
        "cardinality ",
        n);
  }
  if (input->traits().get == nullptr) {
    return FailedPrecondition(
        "`global_shuffle` requires all upstream transformations be compatible with random access.");
  }
  WEIR_ASSIGN_OR_RETURN(const StreamSeeds seeds, StreamSeeds::Read(c, 1));
  const auto generator =
      SeedGeneratorOf(c, 3, seeds, c.node().attr<bool>("reshuffle_each_iteration"));
  DatasetTraits traits{.cardinality = n, .options = input->traits().options};
  const auto iterate = [input, generator, n] {
    return IteratorOf([input, seed = NextPermutation(*generator), n,
                       next = int64_t{0}](const DatasetContext& x) mutable -> MaybeElement {
      if (next == n) return std::nullopt;
      const auto index = static_cast<uint64_t>(next);
      absl::StatusOr<Tensors> element = input->Get(
          x,
          static_cast<int64_t>(ShuffledIndex(index, seed, static_cast<uint64_t>(n - 1), kRounds)));
      if (!element.ok() && HasEnded(x.step)) return element.status();
      ++next;
      WEIR_RETURN_IF_ERROR(element.status());
      return *std::move(element);
    });
  };
  c.SetOutput(0, DatasetTensor(DatasetOf(iterate, std::move(traits))));
  return absl::OkStatus();
}

// ---- parts of elements, which a function of the index finds

struct FlatMapFunctions {
  CapturedFunction map;    // of an element: the tensors that are sliced
  CapturedFunction index;  // of an index in the result: an element's index, and an offset in it
};

struct FlatPosition {
  int64_t element = 0, offset = 0;
};

absl::StatusOr<FlatPosition> PositionOf(const CapturedFunction& f, const DatasetContext& x,
                                        int64_t index) {
  WEIR_ASSIGN_OR_RETURN(const Tensors results, f.Call(x, {Tensor::Scalar(index)}));
  const auto is_number = [](const Tensor& t) {
    const DataType d = t.dtype();
    return t.num_elements() == 1 &&
           (d == DT_INT32 || d == DT_INT64 || d == DT_UINT32 || d == DT_UINT64);
  };
  if (results.size() != 2 || !std::all_of(results.begin(), results.end(), is_number)) {
    return InvalidArgument(
        "The `index_map_fn` for `index_flat_map` is expected to return two int32/int64 values "
        "representing the element index and an offset within the element. Got: ",
        results.size(), " values");
  }
  return FlatPosition{results[0].IntAt(0), results[1].IntAt(0)};
}

// Returns row `offset` of each tensor; scalars belong to all rows.
absl::StatusOr<Tensors> RowsAt(const Tensors& tensors, int64_t offset) {
  Tensors rows;
  for (const Tensor& t : tensors) {
    if (t.rank() == 0) {
      rows.push_back(t);
    } else if (offset < 0 || offset >= t.dim(0)) {
      return InvalidArgument("The offset ", offset, " that `index_map_fn` returns is not in [0, ",
                             t.dim(0), ")");
    } else {
      rows.push_back(t.Row(offset).DeepCopy());
    }
  }
  return rows;
}

class IndexFlatMapper final : public DatasetIterator {
 public:
  IndexFlatMapper(IteratorPtr in, FlatMapFunctions f) : in_(std::move(in)), f_(std::move(f)) {}

  MaybeElement Next(const DatasetContext& x) override {
    WEIR_ASSIGN_OR_RETURN(const FlatPosition at, PositionOf(f_.index, x, next_));
    if (at.element > element_ || tensors_.empty()) {
      WEIR_ASSIGN_OR_RETURN(const std::optional<Tensors> element, in_->Next(x));
      if (!element) return std::nullopt;
      WEIR_ASSIGN_OR_RETURN(tensors_, f_.map.Call(x, *element));
      element_ = at.element;
    }
    ++next_;
    WEIR_ASSIGN_OR_RETURN(Tensors rows, RowsAt(tensors_, at.offset));
    return rows;
  }

 private:
  const IteratorPtr in_;
  const FlatMapFunctions f_;
  Tensors tensors_;  // of the input's last element
  int64_t element_ = 0, next_ = 0;
};

absl::StatusOr<Kernel> MakeIndexFlatMap(const KernelInit& init) {
  FlatMapFunctions f;
  WEIR_ASSIGN_OR_RETURN(f.map, CapturedFunctionOf(init, "map_func"));
  WEIR_ASSIGN_OR_RETURN(f.index, CapturedFunctionOf(init, "index_map_func"));
  return Kernel([functions = f](KernelContext& c) -> absl::Status {
    FlatMapFunctions f;
    WEIR_ASSIGN_OR_RETURN(f.map, WithCaptured(c, functions.map, "map_func_other_args"));
    WEIR_ASSIGN_OR_RETURN(f.index, WithCaptured(c, functions.index, "index_map_func_other_args"));
    WEIR_ASSIGN_OR_RETURN(const DatasetPtr input, DatasetIn(c.input(0)));
    DatasetTraits traits{.options = input->traits().options};
    WEIR_ASSIGN_OR_RETURN(traits.cardinality,
                          ReadInt(c.input(c.num_inputs() - 1), "output_cardinality"));
    if (input->traits().get != nullptr) {
      traits.get = [input, f](const DatasetContext& x, int64_t i) -> absl::StatusOr<Tensors> {
        WEIR_ASSIGN_OR_RETURN(const FlatPosition at, PositionOf(f.index, x, i));
        WEIR_ASSIGN_OR_RETURN(const Tensors element, input->Get(x, at.element));
        WEIR_ASSIGN_OR_RETURN(const Tensors mapped, f.map.Call(x, element));
        return RowsAt(mapped, at.offset);
      };
    }
    const auto iterate = [input, f]() -> MaybeIterator {
      WEIR_ASSIGN_OR_RETURN(IteratorPtr in, input->Iterate());
      return std::make_unique<IndexFlatMapper>(std::move(in), f);
    };
    c.SetOutput(0, DatasetTensor(DatasetOf(iterate, std::move(traits))));
    return absl::OkStatus();
  });
}

// ---- the first elements of several datasets, in proportion to weights

// Returns how many elements come from each dataset: as many as the weights allow until the first
// one is exhausted.
absl::StatusOr<std::vector<int64_t>> WeightedCounts(const std::vector<DatasetPtr>& inputs,
                                                    const std::vector<double>& weights) {
  const double largest = *std::max_element(weights.begin(), weights.end());
  size_t scarce = 0;
  double least = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const double scaled = static_cast<double>(inputs[i]->cardinality()) * weights[i] / largest;
    if (i > 0 && scaled >= least) continue;
    scarce = i;
    least = scaled;
  }
  std::vector<int64_t> counts;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const double count = least * weights[i] / weights[scarce];
    const int64_t available = inputs[i]->cardinality();
    if (!(count < static_cast<double>(available) + 1)) {
      return InvalidArgument("Input ", i, " needs to have at least ", count,
                             " elements. It only has ", available, " elements.");
    }
    counts.push_back(static_cast<int64_t>(count));
  }
  return counts;
}

absl::StatusOr<std::vector<double>> ReadWeights(const KernelContext& c, int first) {
  std::vector<double> weights;
  for (int i = first; i < c.num_inputs(); ++i) {
    WEIR_ASSIGN_OR_RETURN(const double weight, ReadReal(c.input(i), "weights"));
    if (!(weight > 0)) {
      return InvalidArgument("`weights` must be greater than 0.0. Input ", i - first,
                             " has a weight of ", weight);
    }
    weights.push_back(weight);
  }
  return weights;
}

absl::Status WeightedFlatMapDataset(KernelContext& c) {
  const auto n = static_cast<int>(c.node().attr<int64_t>("N"));
  WEIR_ASSIGN_OR_RETURN(const std::vector<DatasetPtr> inputs, DatasetInputs(c, 0, n));
  if (c.num_inputs() != 2 * n) {
    return InvalidArgument(
        "`input_datasets` and `weights` of the WeightedFlatMap must have the "
        "same size. Got ",
        n, " datasets and ", c.num_inputs() - n, " weights.");
  }
  for (int i = 0; i < n; ++i) {
    if (inputs[i]->traits().is_finite()) continue;
    const bool infinite = inputs[i]->cardinality() == DatasetTraits::kInfinite;
    return InvalidArgument("Cardinalities of the inputs must be known. Input ", i, " has ",
                           infinite ? "INFINITE" : "UNKNOWN", " cardinality.");
  }
  WEIR_ASSIGN_OR_RETURN(const std::vector<double> weights, ReadWeights(c, n));
  WEIR_ASSIGN_OR_RETURN(const std::vector<int64_t> counts, WeightedCounts(inputs, weights));
  DatasetTraits traits{.cardinality = 0};
  bool has_get = true;
  for (int i = 0; i < n; ++i) {
    if (__builtin_add_overflow(traits.cardinality, counts[i], &traits.cardinality))
      return InvalidArgument("The inputs have too many elements");
    has_get = has_get && inputs[i]->traits().get != nullptr;
  }
  if (has_get) {
    traits.get = [inputs, counts](const DatasetContext& x, int64_t index) {
      size_t i = 0;
      for (; index >= counts[i]; ++i) index -= counts[i];
      return inputs[i]->Get(x, index);
    };
  }
  const auto iterate = [inputs, counts] {
    return IteratorOf([inputs, counts, at = size_t{0}, taken = int64_t{0},
                       in = IteratorPtr()](const DatasetContext& x) mutable -> MaybeElement {
      while (at < inputs.size() && taken == counts[at]) {
        in = nullptr;
        taken = 0;
        ++at;
      }
      if (at == inputs.size()) return std::nullopt;
      if (in == nullptr) {
        WEIR_ASSIGN_OR_RETURN(in, inputs[at]->Iterate());
      }
      WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, in->Next(x));
      ++taken;
      return element;
    });
  };
  c.SetOutput(0, DatasetTensor(DatasetOf(iterate, std::move(traits))));
  return absl::OkStatus();
}

}  // namespace

void AddDatasetIndexKernels(KernelRegistry* r) {
  r->Add("GlobalShuffleDataset", kCpu, GlobalShuffleDataset);
  r->Add("IndexFlatMapDataset", kCpu, MakeIndexFlatMap);
  r->Add("WeightedFlatMapDataset", kCpu, WeightedFlatMapDataset);
}

}  // namespace weir
