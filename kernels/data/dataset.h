#ifndef WEIR_KERNELS_DATA_DATASET_H_
#define WEIR_KERNELS_DATA_DATASET_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/runtime/function.h"
#include "weir/core/runtime/kernel.h"

// Datasets: sequences of elements (each a list of tensors) that graphs describe by nested nodes,
// and iterators over them. A dataset is an immutable value, passed in a variant tensor; all state
// is in iterators.
namespace weir {

class AheadGroup;

// The step and node that request an element from an iterator; functions are called in this context.
struct DatasetContext {
  const StepInfo& step;
  const Node& caller;
  // What the requesting thread may help when it would have to wait (dataset_ahead.h): the iterators
  // upstream of the nearest one that this thread is an exclusive reader of.
  AheadGroup& ahead;
};

// OK while the step goes on; the error of one that was cancelled or is beyond its time limit.
absl::Status HowItEnded(const StepInfo& step);
// Whether the step was cancelled or is beyond its time limit: an error may only say so.
bool HasEnded(const StepInfo& step);

// Iterates over a dataset once. Not thread-safe.
class DatasetIterator {
 public:
  virtual ~DatasetIterator() = default;
  // Returns the next element, or nullopt at the end. After an error the iterator either has not
  // advanced or has advanced by one, and remains usable.
  virtual absl::StatusOr<std::optional<Tensors>> Next(const DatasetContext& context) = 0;
};

using MaybeElement = absl::StatusOr<std::optional<Tensors>>;
using MaybeIterator = absl::StatusOr<std::unique_ptr<DatasetIterator>>;

// What is known of a dataset without iterating over it.
struct DatasetTraits {
  // In place of a number of elements; TensorFlow's values.
  static constexpr int64_t kInfinite = -1;
  static constexpr int64_t kUnknown = -2;

  int64_t cardinality = kUnknown;  // the number of elements, kInfinite, or kUnknown
  // Returns the element at an index below the cardinality; empty if elements must be read in order.
  std::function<absl::StatusOr<Tensors>(const DatasetContext&, int64_t)> get = nullptr;
  std::string options = {};  // serialized tensorflow.data.Options

  bool is_finite() const { return cardinality >= 0; }
};

class Dataset {
 public:
  explicit Dataset(DatasetTraits traits) : traits_(std::move(traits)) {}
  virtual ~Dataset() = default;
  // The iterator may hold a reference to the dataset during its lifetime.
  virtual MaybeIterator Iterate() const = 0;

  const DatasetTraits& traits() const { return traits_; }
  int64_t cardinality() const { return traits_.cardinality; }
  // Returns element `index`. OUT_OF_RANGE if there is none; FAILED_PRECONDITION if the cardinality
  // is infinite or unknown; UNIMPLEMENTED if elements must be read in order.
  absl::StatusOr<Tensors> Get(const DatasetContext& context, int64_t index) const;

 private:
  const DatasetTraits traits_;
};
using DatasetPtr = std::shared_ptr<const Dataset>;

// A dataset made of two functions: one that creates an iterator, and the iterator's Next(). The
// iterator ends with its step, so code that skips or takes many elements need not check for
// cancellation.
template <class F>
std::unique_ptr<DatasetIterator> IteratorOf(F next) {
  class FunctionIterator final : public DatasetIterator {
   public:
    explicit FunctionIterator(F f) : next_(std::move(f)) {}
    MaybeElement Next(const DatasetContext& context) override {
      const Cancellation* const cancellation = context.step.cancellation;
      if (cancellation != nullptr && cancellation->cancelled()) return cancellation->status();
      return next_(context);
    }

   private:
    F next_;
  };
  return std::make_unique<FunctionIterator>(std::move(next));
}
DatasetPtr DatasetOf(std::function<MaybeIterator()> iterate, DatasetTraits traits = {});
// A dataset of these elements.
DatasetPtr DatasetOfElements(std::vector<Tensors> elements);

// Returns the dataset in a variant scalar. INVALID_ARGUMENT if it does not hold one.
absl::StatusOr<DatasetPtr> DatasetIn(const Tensor& value);
// Returns the datasets at inputs [first, first + count).
absl::StatusOr<std::vector<DatasetPtr>> DatasetInputs(const KernelContext& c, int first, int count);
Tensor DatasetTensor(DatasetPtr dataset);
// Returns the dataset of input 0 as output 0.
absl::Status SameDataset(KernelContext& c);

// The element types and shapes promised by the attributes `output_types` and `output_shapes`.
// INVALID_ARGUMENT if an element differs.
struct ElementSpec {
  DataTypes types;
  std::vector<Shape> shapes;

  static ElementSpec Of(const Node& node);
  absl::Status Check(const Tensors& element) const;
};

// Stacks elements along a new first dimension. Their components must have equal shapes and types.
// Moves strings that nobody else refers to.
absl::StatusOr<Tensors> StackElements(std::vector<Tensors> elements);

void AddDatasetChoiceKernels(KernelRegistry* r);        // dataset_choose.cc
void AddDatasetFileKernels(KernelRegistry* r);          // dataset_files.cc
void AddDatasetGroupKernels(KernelRegistry* r);         // dataset_groups.cc
void AddDatasetHintKernels(KernelRegistry* r);          // dataset_hints.cc
void AddDatasetIndexKernels(KernelRegistry* r);         // dataset_index.cc
void AddDatasetIteratorKernels(KernelRegistry* r);      // dataset_iterator.cc
void AddDatasetRandomKernels(KernelRegistry* r);        // dataset_random.cc
void AddDatasetRebatchKernels(KernelRegistry* r);       // dataset_rebatch.cc
void AddDatasetSelectKernels(KernelRegistry* r);        // dataset_select.cc
void AddDatasetShuffleKernels(KernelRegistry* r);       // dataset_shuffle.cc
void AddDatasetSourceKernels(KernelRegistry* r);        // dataset.cc
void AddDatasetSparseKernels(KernelRegistry* r);        // dataset_sparse.cc
void AddDatasetTransformKernels(KernelRegistry* r);     // dataset_order.cc
void AddDatasetValueKernels(KernelRegistry* r);         // dataset_values.cc
void AddDatasetWindowKernels(KernelRegistry* r);        // dataset_windows.cc
void AddMultiDeviceIteratorKernels(KernelRegistry* r);  // multi_device_iterator.cc

}  // namespace weir

#endif  // WEIR_KERNELS_DATA_DATASET_H_
