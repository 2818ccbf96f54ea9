#ifndef WEIR_CORE_IO_SAVED_SLICE_H_
#define WEIR_CORE_IO_SAVED_SLICE_H_

#include <string>

#include "weir/core/io/bundle.h"

// The tensors that save nodes write: whole ones, and slices of partitioned variables.
namespace weir {

// Returns `tensor` as the slice of tensor `name` that `spec` describes, as in the input
// "shape_and_slices" of SaveV2 ("7 2 3,2:0,2"; empty: the whole tensor). INVALID_ARGUMENT if the
// text is malformed, or if the slice has another shape than `tensor`.
absl::StatusOr<SavedSlice> ParseSavedSlice(const std::string& name, const std::string& spec,
                                           const Tensor& tensor);

// Adds such a tensor to a bundle. Errors are those of ParseSavedSlice and BundleWriter.
absl::Status AddToBundle(BundleWriter& writer, const std::string& name, const std::string& spec,
                         const Tensor& tensor);

}  // namespace weir

#endif  // WEIR_CORE_IO_SAVED_SLICE_H_
