#include "weir/kernels/data/dataset.h"

#include <algorithm>
#include <limits>

#include "weir/core/tensor/variant.h"
#include "weir/kernels/data/captured_function.h"
#include "weir/kernels/data/dataset_prefetch.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"

// Common code of datasets, and the datasets made from tensors.
namespace weir {

absl::StatusOr<DatasetPtr> DatasetIn(const Tensor& value) {
  if (value.dtype() == DT_VARIANT && value.num_elements() == 1) {
    const auto* dataset = std::any_cast<DatasetPtr>(&value.data<Variant>()->value);
    if (dataset != nullptr && *dataset != nullptr) return *dataset;
  }
  return InvalidArgument(value.Description(), " does not hold a dataset");
}

absl::StatusOr<std::vector<DatasetPtr>> DatasetInputs(const KernelContext& c, int first,
                                                      int count) {
  std::vector<DatasetPtr> inputs;
  for (int i = first; i < first + count; ++i) {
    WEIR_ASSIGN_OR_RETURN(inputs.emplace_back(), DatasetIn(c.input(i)));
  }
  return inputs;
}

Tensor DatasetTensor(DatasetPtr dataset) {
  Variant variant;
  variant.type_name = "tensorflow::DatasetVariantWrapper";
  variant.value = std::move(dataset);
  return Tensor::Scalar(std::move(variant));
}

absl::Status SameDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(DatasetPtr input, DatasetIn(c.input(0)));
  c.SetOutput(0, DatasetTensor(std::move(input)));
  return absl::OkStatus();
}

ElementSpec ElementSpec::Of(const Node& node) {
  ElementSpec spec;
  spec.types = node.attr_or<DataTypes>("output_types", {});
  if (spec.types.empty()) spec.types = node.attr_or<DataTypes>("Toutput_types", {});
  spec.shapes = node.attr_or<std::vector<Shape>>("output_shapes", {});
  return spec;
}

absl::Status ElementSpec::Check(const Tensors& element) const {
  if (element.size() != types.size()) {
    return InvalidArgument("Number of components does not match: expected ", types.size(),
                           " types but got ", element.size(), ".");
  }
  for (size_t i = 0; i < element.size(); ++i) {
    if (element[i].dtype() != types[i]) {
      return InvalidArgument("Data type mismatch at component ", i, ": expected ",
                             DataTypeName(types[i]), " but got ", DataTypeName(element[i].dtype()),
                             ".");
    }
    if (i < shapes.size() && !shapes[i].IsCompatibleWith(element[i].shape())) {
      return InvalidArgument("Incompatible shapes at component ", i, ": expected ",
                             shapes[i].ToString(), " but got ", element[i].shape().ToString(), ".");
    }
  }
  return absl::OkStatus();
}

absl::Status HowItEnded(const StepInfo& step) {
  if (step.cancellation != nullptr && step.cancellation->cancelled())
    return step.cancellation->status();
  if (step.deadline && std::chrono::steady_clock::now() > *step.deadline)
    return absl::DeadlineExceededError("The step took longer than its time limit");
  return absl::OkStatus();
}

bool HasEnded(const StepInfo& step) { return !HowItEnded(step).ok(); }

absl::StatusOr<Tensors> Dataset::Get(const DatasetContext& context, int64_t index) const {
  if (traits_.get == nullptr)
    return Unimplemented("Random access is not implemented for this dataset.");
  if (!traits_.is_finite()) {
    const bool infinite = cardinality() == DatasetTraits::kInfinite;
    return FailedPrecondition("The dataset has ", infinite ? "infinite" : "unknown",
                              " cardinality, which does not support random access.");
  }
  if (index < 0 || index >= cardinality())
    return OutOfRange("Index out of range [0, ", cardinality(), "): ", index);
  return traits_.get(context, index);
}

DatasetPtr DatasetOf(std::function<MaybeIterator()> iterate, DatasetTraits traits) {
  class FunctionDataset final : public Dataset {
   public:
    FunctionDataset(std::function<MaybeIterator()> f, DatasetTraits traits)
        : Dataset(std::move(traits)), iterate_(std::move(f)) {}
    MaybeIterator Iterate() const override { return iterate_(); }

   private:
    const std::function<MaybeIterator()> iterate_;
  };
  return std::make_shared<FunctionDataset>(std::move(iterate), std::move(traits));
}

DatasetPtr DatasetOfElements(std::vector<Tensors> elements) {
  const auto all = std::make_shared<const std::vector<Tensors>>(std::move(elements));
  DatasetTraits traits{.cardinality = static_cast<int64_t>(all->size())};
  traits.get = [all](const DatasetContext&, int64_t i) -> absl::StatusOr<Tensors> {
    return (*all)[static_cast<size_t>(i)];
  };
  const auto iterate = [all] {
    return IteratorOf([all, next = size_t{0}](const DatasetContext&) mutable -> MaybeElement {
      if (next == all->size()) return std::nullopt;
      return (*all)[next++];
    });
  };
  return DatasetOf(iterate, std::move(traits));
}

absl::StatusOr<Tensors> StackElements(std::vector<Tensors> elements) {
  Tensors stacked;
  for (size_t k = 0; k < elements[0].size(); ++k) {
    const Tensor& first = elements[0][k];
    std::vector<int64_t> dims = {static_cast<int64_t>(elements.size())};
    dims.insert(dims.end(), first.shape().dims().begin(), first.shape().dims().end());
    WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape(dims));
    WEIR_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(HostAllocator(), first.dtype(), shape));
    for (size_t i = 0; i < elements.size(); ++i) {
      Tensor& part = elements[i][k];
      if (part.shape() != first.shape()) {
        return InvalidArgument("Cannot batch tensors with different shapes in component ", k,
                               ". First element had shape ", first.shape().ToString(),
                               " and element ", i, " had shape ", part.shape().ToString(), ".");
      }
      void* const to = ElementAt(out, static_cast<int64_t>(i) * first.num_elements());
      if (first.dtype() == DT_STRING && part.OwnsBufferAlone()) {
        auto* const strings = part.data<std::string>();
        std::move(strings, strings + part.num_elements(), static_cast<std::string*>(to));
      } else {
        CopyElements(first.dtype(), part.raw(), to, first.num_elements());
      }
    }
    stacked.push_back(std::move(out));
  }
  return stacked;
}

absl::Status WrapDataset(KernelContext& c, WrapIterator wrap, WrapTraits traits) {
  WEIR_ASSIGN_OR_RETURN(const DatasetPtr input, DatasetIn(c.input(0)));
  DatasetTraits result{.options = input->traits().options};
  if (traits.cardinality != nullptr) {
    const int64_t n = input->cardinality();
    result.cardinality = input->traits().is_finite() ? traits.cardinality(n) : n;
  }
  if (traits.get != nullptr && input->traits().get != nullptr) {
    result.get = [input, get = std::move(traits.get)](const DatasetContext& x, int64_t index) {
      return get(*input, x, index);
    };
  }
  const auto iterate = [input, wrap = std::move(wrap)]() -> MaybeIterator {
    WEIR_ASSIGN_OR_RETURN(std::unique_ptr<DatasetIterator> iterator, input->Iterate());
    return wrap(std::move(iterator));
  };
  c.SetOutput(0, DatasetTensor(DatasetOf(iterate, std::move(result))));
  return absl::OkStatus();
}

int64_t RepeatedCardinality(int64_t cardinality, int64_t count) {
  if (cardinality == 0 || count == 0) return 0;
  if (count < 0) return DatasetTraits::kInfinite;
  if (cardinality < 0) return cardinality;
  int64_t product = 0;
  if (!__builtin_mul_overflow(cardinality, count, &product)) return product;
  return std::numeric_limits<int64_t>::max();
}

WrapTraits SameCardinality() {
  return {.cardinality = [](int64_t n) { return n; }};
}

WrapTraits SameElements() {
  WrapTraits traits = SameCardinality();
  traits.get = [](const Dataset& in, const DatasetContext& x, int64_t index) {
    return in.Get(x, index);
  };
  return traits;
}

WrapTraits BatchTraits(int64_t size, bool drop_remainder) {
  WrapTraits traits;
  traits.cardinality = [=](int64_t n) {
    return n / size + (drop_remainder || n % size == 0 ? 0 : 1);
  };
  traits.get = [=](const Dataset& in, const DatasetContext& x,
                   int64_t index) -> absl::StatusOr<Tensors> {
    std::vector<Tensors> elements;
    const int64_t end = std::min(in.cardinality(), (index + 1) * size);
    for (int64_t i = index * size; i < end; ++i) {
      WEIR_ASSIGN_OR_RETURN(elements.emplace_back(), in.Get(x, i));
    }
    return StackElements(std::move(elements));
  };
  return traits;
}

namespace {

absl::Status TensorDataset(KernelContext& c) {
  std::vector<Tensors> elements(1);
  WEIR_ASSIGN_OR_RETURN(elements[0], OwnInputs(c, "components"));
  c.SetOutput(0, DatasetTensor(DatasetOfElements(std::move(elements))));
  return absl::OkStatus();
}

Tensors RowsAt(const Tensors& components, int64_t i) {
  Tensors rows;
  for (const Tensor& t : components) rows.push_back(t.Row(i).DeepCopy());
  return rows;
}

absl::Status TensorSliceDataset(KernelContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (c.input(i).rank() == 0)
      return InvalidArgument("All components must be at least 1-dimensional");
    if (c.input(i).dim(0) != c.input(0).dim(0))
      return InvalidArgument("All components must have the same size in the 0th dimension");
  }
  WEIR_ASSIGN_OR_RETURN(const Tensors components, OwnInputs(c, "components"));
  const int64_t size = components[0].dim(0);
  DatasetTraits traits{.cardinality = size};
  traits.get = [components](const DatasetContext&, int64_t i) -> absl::StatusOr<Tensors> {
    return RowsAt(components, i);
  };
  const auto iterate = [components, size] {
    return IteratorOf(
        [components, size, next = int64_t{0}](const DatasetContext&) mutable -> MaybeElement {
          if (next == size) return std::nullopt;
          return RowsAt(components, next++);
        });
  };
  c.SetOutput(0, DatasetTensor(DatasetOf(iterate, std::move(traits))));
  return absl::OkStatus();
}

// The elements of a list: component k of element i is input i * num_components + k.
absl::Status ListDataset(KernelContext& c) {
  const size_t components = c.node().attr<DataTypes>("output_types").size();
  WEIR_ASSIGN_OR_RETURN(const Tensors tensors, OwnInputs(c, "tensors"));
  std::vector<Tensors> elements;
  for (size_t i = 0; i + components <= tensors.size(); i += components)
    elements.emplace_back(tensors.begin() + i, tensors.begin() + i + components);
  c.SetOutput(0, DatasetTensor(DatasetOfElements(std::move(elements))));
  return absl::OkStatus();
}

absl::StatusOr<Tensor> NumberOf(DataType type, int64_t value) {
  using Types = JoinLists<Integers, List<float, double>>;
  Tensor t;
  const bool known =
      DispatchType(type, Types{}, [&]<class T>() { t = Tensor::Scalar(static_cast<T>(value)); });
  if (known) return t;
  return InvalidArgument("Unsupported data type: ", DataTypeName(type));
}

// The number of steps from start to stop, computed without overflow.
int64_t RangeSize(int64_t start, int64_t stop, int64_t step) {
  if (step > 0 ? start >= stop : start <= stop) return 0;
  const auto from = static_cast<uint64_t>(start), to = static_cast<uint64_t>(stop);
  const uint64_t distance = step > 0 ? to - from : from - to;
  const uint64_t by = step > 0 ? static_cast<uint64_t>(step) : -static_cast<uint64_t>(step);
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(std::min((distance - 1) / by + 1, kMost));
}

absl::Status RangeDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t start, ReadInt(c.input(0), "start"));
  WEIR_ASSIGN_OR_RETURN(const int64_t stop, ReadInt(c.input(1), "stop"));
  WEIR_ASSIGN_OR_RETURN(const int64_t step, ReadInt(c.input(2), "step"));
  if (step == 0) return InvalidArgument("step must be a non-zero integer.");
  const DataType type = c.node().attr<DataTypes>("output_types")[0];
  DatasetTraits traits{.cardinality = RangeSize(start, stop, step)};
  traits.get = [=](const DatasetContext&, int64_t i) -> absl::StatusOr<Tensors> {
    WEIR_ASSIGN_OR_RETURN(Tensor value, NumberOf(type, start + i * step));
    return Tensors{std::move(value)};
  };
  const auto iterate = [=] {
    return IteratorOf(
        [=, next = start, over = false](const DatasetContext&) mutable -> MaybeElement {
          if (over || (step > 0 ? next >= stop : next <= stop)) return std::nullopt;
          WEIR_ASSIGN_OR_RETURN(Tensor value, NumberOf(type, next));
          over = __builtin_add_overflow(next, step, &next);
          return Tensors{std::move(value)};
        });
  };
  c.SetOutput(0, DatasetTensor(DatasetOf(iterate, std::move(traits))));
  return absl::OkStatus();
}

}  // namespace

void AddDatasetSourceKernels(KernelRegistry* r) {
  r->Add("ListDataset", kCpu, ListDataset);
  r->Add("RangeDataset", kCpu, RangeDataset);
  r->Add("TensorDataset", kCpu, TensorDataset);
  r->Add("TensorSliceDataset", kCpu, TensorSliceDataset);
}

void AddDatasetKernels(KernelRegistry* r) {
  AddDatasetFileKernels(r);
  AddDatasetIteratorKernels(r);
  AddDatasetSourceKernels(r);
  AddDatasetTransformKernels(r);
  AddDatasetValueKernels(r);
}

}  // namespace weir
