#ifndef WEIR_KERNELS_DATASET_H_
#define WEIR_KERNELS_DATASET_H_

#include <functional>
#include <memory>
#include <optional>

#include "weir/core/function.h"
#include "weir/core/kernel.h"

// Data sets: sequences of elements (each a few tensors) that graphs describe by nodes, one around
// the other, and iterators that walk through them. A data set is an immutable value, passed about
// in a variant; all state is in iterators.
namespace weir {

// On whose behalf an iterator is asked for an element: what functions are called within.
struct DatasetContext {
  const StepInfo& step;
  const Node& caller;
};

// Walks through a data set once. For one thread at a time.
class DatasetIterator {
 public:
  virtual ~DatasetIterator() = default;
  // The next element, or nothing at the end. After an error the iterator stays where it was or one
  // further, and may be asked again.
  virtual absl::StatusOr<std::optional<Tensors>> Next(const DatasetContext& context) = 0;
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  // The iterator may need the data set as long as it lives.
  virtual absl::StatusOr<std::unique_ptr<DatasetIterator>> Iterate() const = 0;
};
using DatasetPtr = std::shared_ptr<const Dataset>;

// Both as functions: what comes next, and what makes an iterator. The iterator ends with its step:
// what skips elements, or takes many, need not look for that.
using MaybeElement = absl::StatusOr<std::optional<Tensors>>;
using MaybeIterator = absl::StatusOr<std::unique_ptr<DatasetIterator>>;
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
DatasetPtr DatasetOf(std::function<MaybeIterator()> iterate);

// The data set in a variant scalar; INVALID_ARGUMENT if there is none in it.
absl::StatusOr<DatasetPtr> DatasetIn(const Tensor& value);
Tensor DatasetTensor(DatasetPtr dataset);

// What an `output_types` and `output_shapes` promise of elements: INVALID_ARGUMENT if an element is
// otherwise.
struct ElementSpec {
  DataTypes types;
  std::vector<Shape> shapes;

  static ElementSpec Of(const Node& node);
  absl::Status Check(const Tensors& element) const;
};

// Elements stacked to one with a new first dimension; all of one shape and type each.
absl::StatusOr<Tensors> StackElements(const std::vector<Tensors>& elements);

void AddDatasetFileKernels(KernelRegistry* r);       // dataset_files.cc
void AddDatasetIteratorKernels(KernelRegistry* r);   // dataset_iterator.cc
void AddDatasetSourceKernels(KernelRegistry* r);     // dataset.cc
void AddDatasetTransformKernels(KernelRegistry* r);  // dataset_transforms.cc

}  // namespace weir

#endif  // WEIR_KERNELS_DATASET_H_
