#ifndef WEIR_KERNELS_DATA_DATASET_PREFETCH_H_
#define WEIR_KERNELS_DATA_DATASET_PREFETCH_H_

#include <functional>
#include <memory>

#include "weir/kernels/data/dataset.h"

// Helpers for datasets made from datasets.
namespace weir {

// Sets output 0 to the dataset whose iterators are wrap(iterator of the dataset at input 0).
using WrapIterator = std::function<MaybeIterator(std::unique_ptr<DatasetIterator>)>;
absl::Status WrapDataset(KernelContext& c, WrapIterator wrap);

// Maps an element; nullopt ends the sequence.
using ElementFn = std::function<MaybeElement(const DatasetContext&, const Tensors&)>;
// Prefetches up to `buffer_size` elements on the session's threads; if it is negative, as many as
// there are threads.
std::unique_ptr<DatasetIterator> Prefetched(std::unique_ptr<DatasetIterator> input,
                                            int64_t buffer_size);
// Maps elements with f, in order, with up to `calls` concurrent calls ahead of the consumer.
std::unique_ptr<DatasetIterator> PrefetchedMap(std::unique_ptr<DatasetIterator> input, ElementFn f,
                                               int64_t calls);

// Stacks `size` elements of the input into one. The last batch may be smaller, unless it is dropped
// (dataset_batches.cc).
std::unique_ptr<DatasetIterator> Batched(std::unique_ptr<DatasetIterator> input, int64_t size,
                                         bool drop_remainder);

void AddDatasetBatchKernels(KernelRegistry* r);     // dataset_batches.cc
void AddDatasetFunctionKernels(KernelRegistry* r);  // dataset_functions.cc

}  // namespace weir

#endif  // WEIR_KERNELS_DATA_DATASET_PREFETCH_H_
