#ifndef WEIR_KERNELS_DATA_DATASET_FILES_H_
#define WEIR_KERNELS_DATA_DATASET_FILES_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "weir/kernels/data/dataset.h"

// Helpers for datasets that read files sequentially, and for ops that read whole datasets.
namespace weir {

// Returns the next element of an open file, or nullopt at its end.
using FileElements = std::function<MaybeElement()>;
// Opens file `index` of a list.
using OpenElements = std::function<absl::StatusOr<FileElements>(size_t index)>;
// A dataset of the elements of `count` files, one after the other. A file is opened when the
// elements of the one before have been read. INVALID_ARGUMENT is an error of one element; after any
// other error, the rest of the file is skipped.
DatasetPtr FilesDataset(size_t count, OpenElements open);

// Calls fn for each element of the dataset at this input, as a part of the kernel's step, until it
// returns an error.
absl::Status ForEachElement(
    KernelContext& c, int input,
    absl::FunctionRef<absl::Status(const DatasetContext&, const Tensors&)> fn);

// Returns the strings of input `i`, a scalar or a vector. INVALID_ARGUMENT, with the argument's
// name, for another rank.
absl::StatusOr<std::vector<std::string>> ReadStrings(const KernelContext& c, int i);
// Returns a compression type: "", "ZLIB" or "GZIP". INVALID_ARGUMENT for others.
absl::StatusOr<std::string> ReadCompression(const KernelContext& c, int i);

// The other parts of AddDatasetFileKernels (dataset_files.cc).
void AddDatasetCacheKernels(KernelRegistry* r);     // dataset_cache.cc
void AddDatasetCsvKernels(KernelRegistry* r);       // dataset_csv.cc
void AddDatasetExampleKernels(KernelRegistry* r);   // dataset_examples.cc
void AddDatasetSaveKernels(KernelRegistry* r);      // dataset_save.cc
void AddDatasetSnapshotKernels(KernelRegistry* r);  // dataset_snapshot.cc
void AddDatasetSqlKernels(KernelRegistry* r);       // dataset_sql.cc
void AddDatasetTableKernels(KernelRegistry* r);     // dataset_table.cc

}  // namespace weir

#endif  // WEIR_KERNELS_DATA_DATASET_FILES_H_
