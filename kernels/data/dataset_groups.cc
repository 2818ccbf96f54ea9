#include <map>
#include <utility>
#include <vector>

#include "weir/kernels/data/captured_function.h"
#include "weir/kernels/data/dataset_prefetch.h"
#include "weir/kernels/lib/registry.h"

// Datasets that call several functions: those that group elements by a key, and one that is made of
// functions alone.
namespace weir {

namespace {

using IteratorPtr = std::unique_ptr<DatasetIterator>;

// Grouping by windows. An element joins the group of its key. A group that has as many elements as
// the window of its key, or that is left at the end, becomes a dataset; the reduce function makes
// another dataset of it, whose elements come next. Groups that are left come in the order of their
// keys.
struct WindowFunctions {
  CapturedFunction key, reduce, window_size;
};

class WindowGrouper final : public DatasetIterator {
 public:
  WindowGrouper(IteratorPtr in, WindowFunctions f) : in_(std::move(in)), f_(std::move(f)) {}

  MaybeElement Next(const DatasetContext& x) override {
    for (;;) {
      if (flushed_.iterator != nullptr) {
        WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, flushed_.iterator->Next(x));
        if (element) return element;
        flushed_ = NestedIterator();
        groups_.erase(flushed_key_);
      }
      while (in_ != nullptr && flushed_.iterator == nullptr) {
        WEIR_RETURN_IF_ERROR(ReadOne(x));
      }
      if (flushed_.iterator != nullptr) continue;
      if (groups_.empty()) return std::nullopt;
      WEIR_RETURN_IF_ERROR(Flush(x, groups_.begin()->first));
    }
  }

 private:
  // Adds the next element to its group, and begins to flush the group if it is complete.
  absl::Status ReadOne(const DatasetContext& x) {
    WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, in_->Next(x));
    if (!element) {
      in_ = nullptr;
      return absl::OkStatus();
    }
    WEIR_ASSIGN_OR_RETURN(const int64_t key, f_.key.Number(x, *element, "key_func"));
    auto size = sizes_.find(key);
    if (size == sizes_.end()) {
      WEIR_ASSIGN_OR_RETURN(const int64_t n,
                            f_.window_size.Number(x, {Tensor::Scalar(key)}, "window_size_func"));
      if (n <= 0) return InvalidArgument("Window size must be greater than zero, but got ", n, ".");
      size = sizes_.emplace(key, n).first;
    }
    std::vector<Tensors>& group = groups_[key];
    group.push_back(*std::move(element));
    return static_cast<int64_t>(group.size()) < size->second ? absl::OkStatus() : Flush(x, key);
  }

  absl::Status Flush(const DatasetContext& x, int64_t key) {
    const Tensor group = DatasetTensor(DatasetOfElements(groups_[key]));
    WEIR_ASSIGN_OR_RETURN(const Tensors results, f_.reduce.Call(x, {Tensor::Scalar(key), group}));
    WEIR_ASSIGN_OR_RETURN(flushed_, IterateResult(results, "reduce_func"));
    flushed_key_ = key;
    return absl::OkStatus();
  }

  IteratorPtr in_;  // null at the end
  const WindowFunctions f_;
  std::map<int64_t, std::vector<Tensors>> groups_;
  std::map<int64_t, int64_t> sizes_;  // of the windows, by key
  NestedIterator flushed_;
  int64_t flushed_key_ = 0;
};

absl::StatusOr<Kernel> MakeGroupByWindow(const KernelInit& init) {
  WindowFunctions f;
  WEIR_ASSIGN_OR_RETURN(f.key, CapturedFunctionOf(init, "key_func"));
  WEIR_ASSIGN_OR_RETURN(f.reduce, CapturedFunctionOf(init, "reduce_func"));
  WEIR_ASSIGN_OR_RETURN(f.window_size, CapturedFunctionOf(init, "window_size_func"));
  return Kernel([functions = f](KernelContext& c) -> absl::Status {
    WindowFunctions f;
    WEIR_ASSIGN_OR_RETURN(f.key, WithCaptured(c, functions.key, "key_func_other_arguments"));
    WEIR_ASSIGN_OR_RETURN(f.reduce,
                          WithCaptured(c, functions.reduce, "reduce_func_other_arguments"));
    WEIR_ASSIGN_OR_RETURN(
        f.window_size, WithCaptured(c, functions.window_size, "window_size_func_other_arguments"));
    const auto wrap = [f](IteratorPtr in) -> MaybeIterator {
      return std::make_unique<WindowGrouper>(std::move(in), f);
    };
    return WrapDataset(c, wrap, {.cardinality = [](int64_t) { return DatasetTraits::kUnknown; }});
  });
}

// Grouping by reducers. Each key has a state, which the initial function makes of the key, and to
// which the reduce function adds each element of the key. At the end the final function makes an
// element of each state, in the order of the keys.
struct ReducerFunctions {
  CapturedFunction key, init, reduce, finalize;
};

class Reducer final : public DatasetIterator {
 public:
  Reducer(IteratorPtr in, ReducerFunctions f) : in_(std::move(in)), f_(std::move(f)) {}

  MaybeElement Next(const DatasetContext& x) override {
    while (in_ != nullptr) {
      WEIR_ASSIGN_OR_RETURN(const std::optional<Tensors> element, in_->Next(x));
      if (element) {
        WEIR_RETURN_IF_ERROR(Add(x, *element));
      } else {
        in_ = nullptr;
      }
    }
    if (states_.empty()) return std::nullopt;
    const auto first = states_.begin();
    absl::StatusOr<Tensors> result = f_.finalize.Call(x, first->second);
    if (!result.ok() && HasEnded(x.step)) return result.status();
    states_.erase(first);
    WEIR_RETURN_IF_ERROR(result.status());
    return *std::move(result);
  }

 private:
  absl::Status Add(const DatasetContext& x, const Tensors& element) {
    WEIR_ASSIGN_OR_RETURN(const int64_t key, f_.key.Number(x, element, "key_func"));
    auto state = states_.find(key);
    if (state == states_.end()) {
      WEIR_ASSIGN_OR_RETURN(Tensors first, f_.init.Call(x, {Tensor::Scalar(key)}));
      state = states_.emplace(key, std::move(first)).first;
    }
    Tensors args = state->second;
    args.insert(args.end(), element.begin(), element.end());
    WEIR_ASSIGN_OR_RETURN(state->second, f_.reduce.Call(x, args));
    return absl::OkStatus();
  }

  IteratorPtr in_;  // null at the end
  const ReducerFunctions f_;
  std::map<int64_t, Tensors> states_;
};

absl::StatusOr<Kernel> MakeGroupByReducer(const KernelInit& init) {
  ReducerFunctions f;
  WEIR_ASSIGN_OR_RETURN(f.key, CapturedFunctionOf(init, "key_func"));
  WEIR_ASSIGN_OR_RETURN(f.init, CapturedFunctionOf(init, "init_func"));
  WEIR_ASSIGN_OR_RETURN(f.reduce, CapturedFunctionOf(init, "reduce_func"));
  WEIR_ASSIGN_OR_RETURN(f.finalize, CapturedFunctionOf(init, "finalize_func"));
  return Kernel([functions = f](KernelContext& c) -> absl::Status {
    ReducerFunctions f;
    WEIR_ASSIGN_OR_RETURN(f.key, WithCaptured(c, functions.key, "key_func_other_arguments"));
    WEIR_ASSIGN_OR_RETURN(f.init, WithCaptured(c, functions.init, "init_func_other_arguments"));
    WEIR_ASSIGN_OR_RETURN(f.reduce,
                          WithCaptured(c, functions.reduce, "reduce_func_other_arguments"));
    WEIR_ASSIGN_OR_RETURN(f.finalize,
                          WithCaptured(c, functions.finalize, "finalize_func_other_arguments"));
    const auto wrap = [f](IteratorPtr in) -> MaybeIterator {
      return std::make_unique<Reducer>(std::move(in), f);
    };
    return WrapDataset(c, wrap);
  });
}

// A dataset made of functions: the first makes a state, the second returns the next element until
// it fails with OUT_OF_RANGE, and the last one is called then. An iterator that is not read to its
// end does not call it: there is no step to call it in.
struct GeneratorFunctions {
  CapturedFunction init, next, finalize;
};

class Generator final : public DatasetIterator {
 public:
  explicit Generator(GeneratorFunctions f) : f_(std::move(f)) {}

  MaybeElement Next(const DatasetContext& x) override {
    if (over_) return std::nullopt;
    if (!state_) {
      WEIR_ASSIGN_OR_RETURN(state_, f_.init.Call(x, {}));
    }
    WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, f_.next.Map(x, *state_));
    if (element) return element;
    WEIR_RETURN_IF_ERROR(f_.finalize.Call(x, *state_).status());
    over_ = true;
    return std::nullopt;
  }

 private:
  const GeneratorFunctions f_;
  std::optional<Tensors> state_;
  bool over_ = false;
};

absl::StatusOr<Kernel> MakeGenerator(const KernelInit& init) {
  GeneratorFunctions f;
  WEIR_ASSIGN_OR_RETURN(f.init, CapturedFunctionOf(init, "init_func"));
  WEIR_ASSIGN_OR_RETURN(f.next, CapturedFunctionOf(init, "next_func"));
  WEIR_ASSIGN_OR_RETURN(f.finalize, CapturedFunctionOf(init, "finalize_func"));
  return Kernel([functions = f](KernelContext& c) -> absl::Status {
    GeneratorFunctions f;
    WEIR_ASSIGN_OR_RETURN(f.init, WithCaptured(c, functions.init, "init_func_other_args"));
    WEIR_ASSIGN_OR_RETURN(f.next, WithCaptured(c, functions.next, "next_func_other_args"));
    WEIR_ASSIGN_OR_RETURN(f.finalize,
                          WithCaptured(c, functions.finalize, "finalize_func_other_args"));
    const auto iterate = [f]() -> MaybeIterator { return std::make_unique<Generator>(f); };
    c.SetOutput(0, DatasetTensor(DatasetOf(iterate)));
    return absl::OkStatus();
  });
}

}  // namespace

void AddDatasetGroupKernels(KernelRegistry* r) {
  r->Add("GeneratorDataset", kCpu, MakeGenerator);
  for (const char* op : {"ExperimentalGroupByReducerDataset", "GroupByReducerDataset"})
    r->Add(op, kCpu, MakeGroupByReducer);
  for (const char* op : {"ExperimentalGroupByWindowDataset", "GroupByWindowDataset"})
    r->Add(op, kCpu, MakeGroupByWindow);
}

}  // namespace weir
