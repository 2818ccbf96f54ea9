#ifndef WEIR_KERNELS_DATASET_AHEAD_H_
#define WEIR_KERNELS_DATASET_AHEAD_H_

#include <functional>
#include <memory>

#include "weir/kernels/dataset.h"

// What data sets share that are made from data sets.
namespace weir {

// Output 0 is the data set whose iterators are wrap(iterator of the data set at input 0).
using WrapIterator = std::function<MaybeIterator(std::unique_ptr<DatasetIterator>)>;
absl::Status WrapDataset(KernelContext& c, WrapIterator wrap);

// What is made of an element; nothing ends the sequence.
using ElementFn = std::function<MaybeElement(const DatasetContext&, const Tensors&)>;
// The same elements, of which up to `buffer_size` are read before they are asked for, on the
// session's threads; as many as there are threads if it is negative.
std::unique_ptr<DatasetIterator> Prefetched(std::unique_ptr<DatasetIterator> input,
                                            int64_t buffer_size);
// What f makes of the elements, in their order; up to `calls` of it are made before they are asked
// for, several at once.
std::unique_ptr<DatasetIterator> MappedAhead(std::unique_ptr<DatasetIterator> input, ElementFn f,
                                             int64_t calls);

// `size` elements of the input in one, stacked; fewer at the end, unless they are dropped
// (dataset_batches.cc).
std::unique_ptr<DatasetIterator> Batched(std::unique_ptr<DatasetIterator> input, int64_t size,
                                         bool drop_remainder);

void AddDatasetBatchKernels(KernelRegistry* r);     // dataset_batches.cc
void AddDatasetFunctionKernels(KernelRegistry* r);  // dataset_functions.cc

}  // namespace weir

#endif  // WEIR_KERNELS_DATASET_AHEAD_H_
