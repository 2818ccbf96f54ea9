#include "weir/core/io/saved_slice.h"

#include <memory>
#include <set>
#include <utility>

#include "weir/core/io/file.h"

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

namespace {

absl::Status Add(BundleWriter& writer, const std::string& name, const std::string& spec,
                 const Tensor& tensor) {
  if (spec.empty()) return writer.Add(name, tensor);
  WEIR_ASSIGN_OR_RETURN(const SavedSlice s, ParseSavedSlice(name, spec, tensor));
  return writer.AddSlice(s.name, s.shape, s.slice, s.tensor);
}

}  // namespace

absl::Status WriteSavedTensors(const std::string& prefix, absl::Span<const std::string> names,
                               absl::Span<const std::string> specs, std::vector<Tensor> values,
                               Durability durability, ThreadPool* pool) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<BundleWriter> writer,
                        BundleWriter::Create(prefix, durability, pool));
  uint64_t bytes = 0;
  for (const Tensor& value : values) {
    if (IsPlain(value.dtype())) bytes += value.num_bytes();
  }
  writer->Reserve(bytes);
  for (size_t i = 0; i < values.size(); ++i) {
    const Tensor value = std::move(values[i]);
    WEIR_RETURN_IF_ERROR(Add(*writer, names[i], specs[i], value));
  }
  return writer->Finish();
}

absl::Status MergeSavedParts(absl::Span<const std::string> parts, const std::string& prefix,
                             bool allow_missing, Durability durability) {
  WEIR_RETURN_IF_ERROR(MergeBundles(parts, prefix, allow_missing, durability));
  std::set<std::string> folders;
  for (const std::string& part : parts) folders.insert(DirectoryOf(part));
  folders.erase(DirectoryOf(prefix));
  for (const std::string& folder : folders) Files().RemoveDirectory(folder).IgnoreError();
  return absl::OkStatus();
}

Durability DurabilityOf(const Node& node) {
  return node.attr_or("_synced", true) ? Durability::kSynced : Durability::kUnsynced;
}

}  // namespace weir
