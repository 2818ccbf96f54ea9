#include <algorithm>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "weir/kernels/data/captured_function.h"
#include "weir/kernels/data/dataset_files.h"
#include "weir/kernels/data/dataset_prefetch.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"

// Datasets that apply functions to datasets. The "parallel" variants prefetch (dataset_prefetch.cc)
// and yield the same elements in the same order as the others, even if they are allowed to reorder.
// A function that changes state is still called by one thread at a time and in order, though ahead.
namespace weir {

namespace {

using IteratorPtr = std::unique_ptr<DatasetIterator>;
using Numbers = std::vector<int64_t>;

ElementFn MapOf(CapturedFunction f) {
  return [f = std::move(f)](const DatasetContext& x, const Tensors& element) {
    return f.Map(x, element);
  };
}

// Maps one by one. If the step ends during a call, the next step makes it again.
IteratorPtr Mapped(IteratorPtr in, ElementFn map) {
  return IteratorOf([in = std::move(in), map = std::move(map), element = std::optional<Tensors>()](
                        const DatasetContext& x) mutable -> MaybeElement {
    if (!element) {
      WEIR_ASSIGN_OR_RETURN(element, in->Next(x));
      if (!element) return std::nullopt;
    }
    MaybeElement mapped = map(x, *element);
    if (mapped.ok() || !HasEnded(x.step)) element.reset();
    return mapped;
  });
}

MaybeIterator MapIterator(IteratorPtr in, CapturedFunction f, const Numbers&) {
  return Mapped(std::move(in), MapOf(std::move(f)));
}

// Maps with up to `calls` calls at a time, as far as the function allows.
IteratorPtr MappedAhead(IteratorPtr in, const CapturedFunction& f, ElementFn map, int64_t calls) {
  if (f.function->state() != Function::State::kAny) {
    const bool draws = f.function->state() == Function::State::kRandomStreams;
    return PrefetchedMap(std::move(in), std::move(map), calls, draws);
  }
  return Prefetched(Mapped(std::move(in), std::move(map)), calls);
}

MaybeIterator ParallelMapIterator(IteratorPtr in, CapturedFunction f, const Numbers& n) {
  return MappedAhead(std::move(in), f, MapOf(f), n[0]);
}

MaybeIterator FilterIterator(IteratorPtr in, CapturedFunction f, const Numbers&) {
  return IteratorOf(
      [in = std::move(in), f = std::move(f)](const DatasetContext& x) -> MaybeElement {
        for (;;) {
          WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, in->Next(x));
          if (!element) return std::nullopt;
          WEIR_ASSIGN_OR_RETURN(const bool keep, f.Test(x, *element));
          if (keep) return element;
        }
      });
}

// Elements with an appended predicate value are computed ahead.
MaybeIterator ParallelFilterIterator(IteratorPtr in, CapturedFunction f, const Numbers& n) {
  const auto judge = [f](const DatasetContext& x, const Tensors& element) -> MaybeElement {
    WEIR_ASSIGN_OR_RETURN(const bool keep, f.Test(x, element));
    Tensors judged = element;
    judged.push_back(Tensor::Scalar(keep));
    return judged;
  };
  return IteratorOf(
      [in = MappedAhead(std::move(in), f, judge, n[0])](const DatasetContext& x) -> MaybeElement {
        for (;;) {
          WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, in->Next(x));
          if (!element) return std::nullopt;
          const bool keep = *element->back().data<bool>();
          element->pop_back();
          if (keep) return element;
        }
      });
}

MaybeIterator TakeWhileIterator(IteratorPtr in, CapturedFunction f, const Numbers&) {
  return IteratorOf([in = std::move(in), f = std::move(f),
                     over = false](const DatasetContext& x) mutable -> MaybeElement {
    if (over) return std::nullopt;
    WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, in->Next(x));
    if (!element) return std::nullopt;
    WEIR_ASSIGN_OR_RETURN(const bool goes_on, f.Test(x, *element));
    over = !goes_on;
    return goes_on ? MaybeElement(std::move(element)) : MaybeElement(std::nullopt);
  });
}

// Interleaving. There are `cycle` slots, each with the iterator of one input element. They are
// visited in turn, and each yields up to `block` elements per visit. When an iterator ends, its
// slot takes the next input element at the slot's next turn. With `ahead`, each iterator prefetches
// that many elements.
class Interleaver final : public DatasetIterator {
 public:
  Interleaver(IteratorPtr in, CapturedFunction f, int64_t cycle, int64_t block, int64_t ahead)
      : in_(std::move(in)), f_(std::move(f)), cycle_(cycle), block_(block), ahead_(ahead) {}

  MaybeElement Next(const DatasetContext& x) override {
    if (cycle_ < 0) cycle_ = std::max(1u, std::thread::hardware_concurrency());
    while (!ended_ || open_ > 0) {
      // Slots are created when they are first visited.
      if (at_ >= static_cast<int64_t>(slots_.size()) && !ended_) slots_.resize(at_ + 1);
      if (at_ >= static_cast<int64_t>(slots_.size())) taken_from_slot_ = at_ = 0;
      NestedIterator& slot = slots_[at_];
      if (slot.iterator != nullptr) {
        WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, slot.iterator->Next(x));
        if (element) {
          if (++taken_from_slot_ == block_) NextSlot();
          return element;
        }
        slot = NestedIterator();
        --open_;
        NextSlot();
      } else if (!ended_) {
        WEIR_RETURN_IF_ERROR(Open(x, &slot));
      } else {
        NextSlot();
      }
    }
    return std::nullopt;
  }

 private:
  void NextSlot() {
    taken_from_slot_ = 0;
    at_ = (at_ + 1) % cycle_;
  }

  absl::Status Open(const DatasetContext& x, NestedIterator* slot) {
    WEIR_ASSIGN_OR_RETURN(const std::optional<Tensors> element, in_->Next(x));
    ended_ = !element;
    if (ended_) return absl::OkStatus();
    WEIR_ASSIGN_OR_RETURN(const Tensors made, f_.Call(x, *element));
    WEIR_ASSIGN_OR_RETURN(*slot, IterateResult(made, "f"));
    if (ahead_ > 0) slot->iterator = Prefetched(std::move(slot->iterator), ahead_, pace_);
    ++open_;
    return absl::OkStatus();
  }

  IteratorPtr in_;
  const CapturedFunction f_;
  int64_t cycle_;
  const int64_t block_, ahead_;
  const std::shared_ptr<Pace> pace_ = std::make_shared<Pace>();
  std::vector<NestedIterator> slots_;
  int64_t at_ = 0, taken_from_slot_ = 0, open_ = 0;
  bool ended_ = false;
};

MaybeIterator FlatMapIterator(IteratorPtr in, CapturedFunction f, const Numbers&) {
  return std::make_unique<Interleaver>(std::move(in), std::move(f), 1, 0, 0);
}
MaybeIterator InterleaveIterator(IteratorPtr in, CapturedFunction f, const Numbers& n) {
  return std::make_unique<Interleaver>(std::move(in), std::move(f), n[0], n[1], 0);
}
// A slot need not prefetch beyond its next visit.
MaybeIterator ParallelInterleaveIterator(IteratorPtr in, CapturedFunction f, const Numbers& n) {
  constexpr int64_t kMostAhead = 64;
  return std::make_unique<Interleaver>(std::move(in), std::move(f), n[0], n[1],
                                       std::min(n[1], kMostAhead));
}

MaybeIterator MapAndBatchIterator(IteratorPtr in, CapturedFunction f, const Numbers& n) {
  return Batched(MappedAhead(std::move(in), f, MapOf(f), n[1]), n[0], n[2] != 0,
                 BatchError::kTakesWholeBatch);
}

// ---- kernels

using CheckNumbers = absl::Status (*)(const Numbers&);
using MakeIterator = MaybeIterator (*)(IteratorPtr, CapturedFunction, const Numbers&);
using MakeTraits = WrapTraits (*)(const CapturedFunction&, const Numbers&);

WrapTraits UnknownTraits(const CapturedFunction&, const Numbers&) { return {}; }
WrapTraits MapTraits(const CapturedFunction& f, const Numbers&) {
  WrapTraits traits = f.preserve_cardinality ? SameCardinality() : WrapTraits();
  traits.get = [f](const Dataset& in, const DatasetContext& x,
                   int64_t i) -> absl::StatusOr<Tensors> {
    WEIR_ASSIGN_OR_RETURN(const Tensors element, in.Get(x, i));
    return f.Call(x, element);
  };
  return traits;
}
WrapTraits MapAndBatchTraits(const CapturedFunction& f, const Numbers& n) {
  if (!f.preserve_cardinality) return {};
  return {.cardinality = BatchTraits(n[0], n[2] != 0).cardinality};
}

absl::Status Anything(const Numbers&) { return absl::OkStatus(); }
absl::Status CheckCalls(int64_t calls) {
  if (calls > 0 || calls == -1) return absl::OkStatus();
  return InvalidArgument("num_parallel_calls must be greater than zero.");
}
absl::Status CheckFirst(const Numbers& n) { return CheckCalls(n[0]); }
absl::Status CheckCycle(const Numbers& n) {
  if (n[0] <= 0 && n[0] != -1) return InvalidArgument("`cycle_length` must be > 0");
  if (n[1] <= 0) return InvalidArgument("`block_length` must be > 0");
  return absl::OkStatus();
}
// -1 (automatic) is valid for the later ops only.
absl::Status CheckBuffers(const Numbers& n, size_t first) {
  if (n[0] <= 0) return InvalidArgument("`cycle_length` must be > 0");
  WEIR_RETURN_IF_ERROR(CheckCycle(n));
  if (n[first] <= 0) return InvalidArgument("`buffer_output_elements` must be > 0");
  if (n[first + 1] < 0) return InvalidArgument("`prefetch_input_elements` must be >= 0");
  return absl::OkStatus();
}
absl::Status CheckSloppy(const Numbers& n) { return CheckBuffers(n, 3); }
absl::Status CheckLegacy(const Numbers& n) { return CheckBuffers(n, 2); }
absl::Status CheckCallsOfCycle(const Numbers& n) {
  const int64_t cycle = n[0], calls = n.back();
  WEIR_RETURN_IF_ERROR(CheckCycle(n));
  WEIR_RETURN_IF_ERROR(CheckCalls(calls));
  if (cycle == -1 || calls <= cycle) return absl::OkStatus();
  return InvalidArgument(
      "If `cycle_length` is set to a fixed value, `num_parallel_calls` must be either -1 or a "
      "value "
      "less than or equal to `cycle_length`. However, `num_parallel_calls` is ",
      calls, " and `cycle_length` is ", cycle);
}
absl::Status CheckAhead(const Numbers& n) {
  if (n[2] <= 0 && n[2] != -1) return InvalidArgument("`buffer_output_elements` must be > 0");
  if (n[3] < -1) return InvalidArgument("`prefetch_input_elements` must be >= 0");
  return CheckCallsOfCycle(n);
}
absl::Status CheckBatch(const Numbers& n) {
  if (n[0] <= 0) return InvalidArgument("batch_size must be greater than zero.");
  return CheckCalls(n[1]);
}

absl::StatusOr<CapturedFunction> FunctionOf(const KernelInit& init) {
  const auto policy = init.node.attr_or<std::string>("deterministic", "default");
  if (policy != "default" && policy != "true" && policy != "false")
    return InvalidArgument("Unrecognized determinism policy: ", policy);
  return CapturedFunctionOf(init, init.node.FindAttr("f") != nullptr ? "f" : "predicate");
}

absl::StatusOr<int64_t> Number(const Tensor& t, absl::string_view argument) {
  WEIR_RETURN_IF_ERROR(CheckRank(t, 0, argument));
  return t.dtype() == DT_BOOL ? static_cast<int64_t>(*t.data<bool>()) : t.IntAt(0);
}

// The inputs are a dataset, the function's captured arguments, and numbers.
template <MakeIterator kMake, CheckNumbers kCheck = Anything, MakeTraits kTraits = UnknownTraits>
absl::StatusOr<Kernel> MakeFunctional(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(CapturedFunction function, FunctionOf(init));
  const size_t num_captured = init.attr<DataTypes>("Targuments").size();
  return Kernel([function, num_captured](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const CapturedFunction f, WithCaptured(c, function, "other_arguments"));
    Numbers numbers;
    const std::vector<ArgSpec>& args = c.node().op().inputs();
    for (int i = 1 + static_cast<int>(num_captured); i < c.num_inputs(); ++i) {
      const std::string& name = args[2 + numbers.size()].name;
      WEIR_ASSIGN_OR_RETURN(numbers.emplace_back(), Number(c.input(i), name));
    }
    WEIR_RETURN_IF_ERROR(kCheck(numbers));
    const auto wrap = [f, numbers](IteratorPtr in) { return kMake(std::move(in), f, numbers); };
    return WrapDataset(c, wrap, kTraits(f, numbers));
  });
}

// A function of a state and an element, which returns the next state followed by its outputs.
struct StatefulFunction {
  CapturedFunction f = {};
  Tensors state = {};

  absl::StatusOr<Tensors> Next(const DatasetContext& x, const Tensors& element) {
    Tensors args = state;
    args.insert(args.end(), element.begin(), element.end());
    WEIR_ASSIGN_OR_RETURN(Tensors results, f.Call(x, args));
    if (results.size() < state.size())
      return InvalidArgument("The function returns ", results.size(), " values, fewer than the ",
                             state.size(), " of the state");
    const auto rest = results.begin() + static_cast<int64_t>(state.size());
    Tensors others(std::make_move_iterator(rest), std::make_move_iterator(results.end()));
    results.resize(state.size());
    state = std::move(results);
    return others;
  }
};

// The inputs are a dataset, the initial state, and the function's captured arguments.
template <absl::Status (*kRun)(KernelContext&, StatefulFunction, const ElementSpec&)>
absl::StatusOr<Kernel> MakeStateful(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(CapturedFunction function, FunctionOf(init));
  return Kernel([function, spec = ElementSpec::Of(init.node)](KernelContext& c) -> absl::Status {
    StatefulFunction stateful;
    WEIR_ASSIGN_OR_RETURN(stateful.f, WithCaptured(c, function, "other_arguments"));
    WEIR_ASSIGN_OR_RETURN(stateful.state, OwnInputs(c, "initial_state"));
    return kRun(c, std::move(stateful), spec);
  });
}

absl::Status ScanDataset(KernelContext& c, StatefulFunction first, const ElementSpec&) {
  const auto wrap = [first](IteratorPtr in) -> MaybeIterator {
    return IteratorOf(
        [in = std::move(in), function = first](const DatasetContext& x) mutable -> MaybeElement {
          WEIR_ASSIGN_OR_RETURN(const std::optional<Tensors> element, in->Next(x));
          if (!element) return std::nullopt;
          return function.Next(x, *element);
        });
  };
  return WrapDataset(c, wrap, first.f.preserve_cardinality ? SameCardinality() : WrapTraits());
}

absl::Status ReduceDataset(KernelContext& c, StatefulFunction function, const ElementSpec& spec) {
  WEIR_RETURN_IF_ERROR(ForEachElement(c, 0, [&](const DatasetContext& x, const Tensors& element) {
    return function.Next(x, element).status();
  }));
  WEIR_RETURN_IF_ERROR(spec.Check(function.state));
  for (int i = 0; i < c.num_outputs(); ++i) c.SetOutput(i, std::move(function.state[i]));
  return absl::OkStatus();
}

}  // namespace

void AddDatasetFunctionKernels(KernelRegistry* r) {
  r->Add("FilterDataset", kCpu, MakeFunctional<FilterIterator>);
  r->Add("FlatMapDataset", kCpu, MakeFunctional<FlatMapIterator>);
  r->Add("InterleaveDataset", kCpu, MakeFunctional<InterleaveIterator, CheckCycle>);
  for (const char* op : {"ExperimentalMapAndBatchDataset", "MapAndBatchDataset"})
    r->Add(op, kCpu, MakeFunctional<MapAndBatchIterator, CheckBatch, MapAndBatchTraits>);
  r->Add("MapDataset", kCpu, MakeFunctional<MapIterator, Anything, MapTraits>);
  r->Add("ParallelFilterDataset", kCpu, MakeFunctional<ParallelFilterIterator, CheckFirst>);
  r->Add("LegacyParallelInterleaveDatasetV2", kCpu,
         MakeFunctional<ParallelInterleaveIterator, CheckLegacy>);
  for (const char* op : {"ExperimentalParallelInterleaveDataset", "ParallelInterleaveDataset"})
    r->Add(op, kCpu, MakeFunctional<ParallelInterleaveIterator, CheckSloppy>);
  for (const char* op : {"ParallelInterleaveDatasetV2", "ParallelInterleaveDatasetV3"})
    r->Add(op, kCpu, MakeFunctional<ParallelInterleaveIterator, CheckCallsOfCycle>);
  r->Add("ParallelInterleaveDatasetV4", kCpu,
         MakeFunctional<ParallelInterleaveIterator, CheckAhead>);
  for (const char* op : {"ParallelMapDataset", "ParallelMapDatasetV2"})
    r->Add(op, kCpu, MakeFunctional<ParallelMapIterator, CheckFirst, MapTraits>);
  r->Add("ReduceDataset", kCpu, MakeStateful<ReduceDataset>);
  for (const char* op : {"ExperimentalScanDataset", "ScanDataset"})
    r->Add(op, kCpu, MakeStateful<ScanDataset>);
  for (const char* op : {"ExperimentalTakeWhileDataset", "TakeWhileDataset"})
    r->Add(op, kCpu, MakeFunctional<TakeWhileIterator>);
}

}  // namespace weir
