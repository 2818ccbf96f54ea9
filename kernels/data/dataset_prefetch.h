#ifndef WEIR_KERNELS_DATA_DATASET_PREFETCH_H_
#define WEIR_KERNELS_DATA_DATASET_PREFETCH_H_

#include <functional>
#include <memory>

#include "weir/kernels/data/dataset_ahead.h"

// Helpers for datasets made from datasets.
namespace weir {

// Sets output 0 to the dataset whose iterators are wrap(iterator of the dataset at input 0).
using WrapIterator = std::function<MaybeIterator(std::unique_ptr<DatasetIterator>)>;
// What the traits of the result are, given the input. The cardinality of an input that is not
// finite is passed on; null: kUnknown.
struct WrapTraits {
  std::function<int64_t(int64_t)> cardinality = nullptr;
  std::function<absl::StatusOr<Tensors>(const Dataset&, const DatasetContext&, int64_t)> get =
      nullptr;
};
absl::Status WrapDataset(KernelContext& c, WrapIterator wrap, WrapTraits traits = {});
// For results with the input's elements, in the same order.
WrapTraits SameElements();
// For results with as many elements as the input.
WrapTraits SameCardinality();
// For batches of the input's elements.
WrapTraits BatchTraits(int64_t size, bool drop_remainder);
// The cardinality of a dataset of this cardinality, repeated; a negative count: without end.
int64_t RepeatedCardinality(int64_t cardinality, int64_t count);

// Maps an element; nullopt ends the sequence.
using ElementFn = std::function<MaybeElement(const DatasetContext&, const Tensors&)>;
// Prefetches up to `buffer_size` elements on the session's threads, if an element takes long enough
// to be worth it; if it is negative, as many as there are threads, and no more bytes than
// kMostBytesAhead. Iterators of the same kind may share a `pace`; null: its own.
constexpr int64_t kMostBytesAhead = int64_t{256} << 20;
// The bytes of an element, with those of its strings.
int64_t ElementBytes(const Tensors& element);
std::unique_ptr<DatasetIterator> Prefetched(std::unique_ptr<DatasetIterator> input,
                                            int64_t buffer_size,
                                            std::shared_ptr<Pace> pace = nullptr);
// Maps elements with f, in order, with up to `calls` calls at the same time, and hardly more
// elements ahead of the consumer; negative: as many as there are threads. The consumer's thread
// makes calls too. Elements that do not take long are mapped one by one. With `draws`, the calls
// draw random numbers in their order (StepInfo::draws).
std::unique_ptr<DatasetIterator> PrefetchedMap(std::unique_ptr<DatasetIterator> input, ElementFn f,
                                               int64_t calls, bool draws = false);

// Where a sequence of batches goes on after an element that is an error: with the next element, or
// where the next batch would have begun.
enum class BatchError { kTakesElement, kTakesWholeBatch };
// Stacks `size` elements of the input into one. The last batch may be smaller, unless it is dropped
// (dataset_batches.cc).
std::unique_ptr<DatasetIterator> Batched(std::unique_ptr<DatasetIterator> input, int64_t size,
                                         bool drop_remainder,
                                         BatchError error = BatchError::kTakesElement);

void AddDatasetBatchKernels(KernelRegistry* r);     // dataset_batches.cc
void AddDatasetFunctionKernels(KernelRegistry* r);  // dataset_functions.cc

}  // namespace weir

#endif  // WEIR_KERNELS_DATA_DATASET_PREFETCH_H_
