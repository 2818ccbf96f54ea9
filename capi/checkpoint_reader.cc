#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow/c/c_api_experimental.h"
#include "weir/capi/objects.h"
#include "weir/core/io/bundle.h"

// Checkpoints, read without a graph.

struct TF_CheckpointReader {
  std::vector<weir::CheckpointTensor> tensors;  // by name
  weir::Mutex mutex;
  std::unique_ptr<weir::CheckpointReader> reader ABSL_GUARDED_BY(mutex);
};

namespace weir::capi {

namespace {

absl::StatusOr<std::unique_ptr<TF_CheckpointReader>> Open(const char* prefix) {
  auto opened = std::make_unique<TF_CheckpointReader>();
  const MutexLock lock(opened->mutex);
  WEIR_ASSIGN_OR_RETURN(opened->reader, CheckpointReader::Open(prefix));
  WEIR_ASSIGN_OR_RETURN(opened->tensors, opened->reader->List());
  return opened;
}

// Returns null if there is no such tensor.
const CheckpointTensor* Find(const TF_CheckpointReader& reader, absl::string_view name) {
  const auto found = std::lower_bound(
      reader.tensors.begin(), reader.tensors.end(), name,
      [](const CheckpointTensor& tensor, absl::string_view n) { return tensor.name < n; });
  return found != reader.tensors.end() && found->name == name ? &*found : nullptr;
}

absl::Status NoTensor(const char* name) {
  return NotFound("Key ", name, " not found in checkpoint");
}

}  // namespace

}  // namespace weir::capi

using weir::capi::Find;
using weir::capi::HaveAll;
using weir::capi::LogMisuse;
using weir::capi::SetStatus;

TF_CheckpointReader* TF_NewCheckpointReader(const char* filename, TF_Status* status) {
  if (!HaveAll("TF_NewCheckpointReader", {filename}, status)) return nullptr;
  auto opened = weir::capi::Open(filename);
  SetStatus(status, opened.status());
  return opened.ok() ? opened->release() : nullptr;
}

void TF_DeleteCheckpointReader(TF_CheckpointReader* reader) { delete reader; }

int TF_CheckpointReaderHasTensor(TF_CheckpointReader* reader, const char* name) {
  return HaveAll("TF_CheckpointReaderHasTensor", {reader, name}) && Find(*reader, name) != nullptr;
}

int TF_CheckpointReaderSize(TF_CheckpointReader* reader) {
  if (!HaveAll("TF_CheckpointReaderSize", {reader})) return 0;
  return static_cast<int>(reader->tensors.size());
}

const char* TF_CheckpointReaderGetVariable(TF_CheckpointReader* reader, int index) {
  if (!HaveAll("TF_CheckpointReaderGetVariable", {reader})) return nullptr;
  if (index >= 0 && index < static_cast<int>(reader->tensors.size()))
    return reader->tensors[index].name.c_str();
  LogMisuse("TF_CheckpointReaderGetVariable",
            absl::StrCat("there is no tensor ", index, " among ", reader->tensors.size()));
  return nullptr;
}

TF_DataType TF_CheckpointReaderGetVariableDataType(TF_CheckpointReader* reader, const char* name) {
  const weir::CheckpointTensor* found = nullptr;
  if (HaveAll("TF_CheckpointReaderGetVariableDataType", {reader, name}))
    found = Find(*reader, name);
  return static_cast<TF_DataType>(found == nullptr ? weir::DT_INVALID : found->dtype);
}

int TF_CheckpointReaderGetVariableNumDims(TF_CheckpointReader* reader, const char* name) {
  if (!HaveAll("TF_CheckpointReaderGetVariableNumDims", {reader, name})) return -1;
  const weir::CheckpointTensor* const found = Find(*reader, name);
  return found == nullptr ? -1 : found->shape.rank();
}

void TF_CheckpointReaderGetVariableShape(TF_CheckpointReader* reader, const char* name,
                                         int64_t* dims, int num_dims, TF_Status* status) {
  if (!HaveAll("TF_CheckpointReaderGetVariableShape", {reader, name}, status)) return;
  const weir::CheckpointTensor* const found = Find(*reader, name);
  if (found == nullptr) return SetStatus(status, weir::capi::NoTensor(name));
  const int count = std::min(num_dims, found->shape.rank());
  if (dims == nullptr && count > 0)
    return SetStatus(status, weir::InvalidArgument("the array for ", count, " dimensions is null"));
  for (int i = 0; i < count; ++i) dims[i] = found->shape.dim(i);
  SetStatus(status, absl::OkStatus());
}

TF_Tensor* TF_CheckpointReaderGetTensor(TF_CheckpointReader* reader, const char* name,
                                        TF_Status* status) {
  if (!HaveAll("TF_CheckpointReaderGetTensor", {reader, name}, status)) return nullptr;
  const auto read = [&]() -> absl::StatusOr<TF_Tensor*> {
    if (Find(*reader, name) == nullptr) return weir::capi::NoTensor(name);
    const weir::MutexLock lock(reader->mutex);
    WEIR_ASSIGN_OR_RETURN(weir::Tensor value, reader->reader->Read(name));
    return weir::capi::NewTensor(std::move(value));
  };
  const absl::StatusOr<TF_Tensor*> tensor = read();
  SetStatus(status, tensor.status());
  return tensor.ok() ? *tensor : nullptr;
}
