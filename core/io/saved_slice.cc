#include "weir/core/io/saved_slice.h"

namespace weir {

absl::StatusOr<SavedSlice> ParseSavedSlice(const std::string& name, const std::string& spec,
                                           const Tensor& tensor) {
  if (spec.empty())
    return SavedSlice{name, tensor.shape(), TensorSlice::Full(tensor.rank()), tensor};
  WEIR_ASSIGN_OR_RETURN(const ShapeAndSlice parsed, ShapeAndSlice::Parse(spec));
  if (parsed.slice_shape != tensor.shape()) {
    return InvalidArgument(
        "Slice in shape_and_slice specification does not match the shape of the tensor to save: ",
        spec, ", tensor ", name, ": ", tensor.shape().ToString());
  }
  return SavedSlice{name, parsed.shape, parsed.slice, tensor};
}

absl::Status AddToBundle(BundleWriter& writer, const std::string& name, const std::string& spec,
                         const Tensor& tensor) {
  if (spec.empty()) return writer.Add(name, tensor);
  WEIR_ASSIGN_OR_RETURN(const SavedSlice s, ParseSavedSlice(name, spec, tensor));
  return writer.AddSlice(s.name, s.shape, s.slice, s.tensor);
}

}  // namespace weir
