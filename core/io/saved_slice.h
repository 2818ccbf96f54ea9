#ifndef WEIR_CORE_IO_SAVED_SLICE_H_
#define WEIR_CORE_IO_SAVED_SLICE_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "weir/core/graph/graph.h"
#include "weir/core/io/bundle.h"

// The tensors that save nodes write: whole ones, and slices of partitioned variables.
namespace weir {

// Returns `tensor` as the slice of tensor `name` that `spec` describes, as in the input
// "shape_and_slices" of SaveV2 ("7 2 3,2:0,2"; empty: the whole tensor). INVALID_ARGUMENT if the
// text is malformed, or if the slice has another shape than `tensor`.
absl::StatusOr<SavedSlice> ParseSavedSlice(const std::string& name, const std::string& spec,
                                           const Tensor& tensor);

// Writes a checkpoint of such tensors, as SaveV2 does, and lets go of each once it is written. The
// pool, if any, computes checksums. Errors are those of ParseSavedSlice and BundleWriter.
absl::Status WriteSavedTensors(const std::string& prefix, absl::Span<const std::string> names,
                               absl::Span<const std::string> specs, std::vector<Tensor> values,
                               Durability durability, ThreadPool* pool = nullptr);

// Merges checkpoints, as MergeV2Checkpoints does that deletes old folders: those of the parts that
// have no other files are removed. Errors are those of MergeBundles.
absl::Status MergeSavedParts(absl::Span<const std::string> parts, const std::string& prefix,
                             bool allow_missing, Durability durability);

// Returns whether what a save node writes must survive a power failure: unless it has the attribute
// `_synced` = false, which Saver sets (ops/train/saver.h).
Durability DurabilityOf(const Node& node);

}  // namespace weir

#endif  // WEIR_CORE_IO_SAVED_SLICE_H_
