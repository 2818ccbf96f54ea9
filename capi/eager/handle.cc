#include "weir/capi/eager/handle.h"

#include "tensorflow/c/eager/c_api_experimental.h"
#include "weir/capi/objects.h"

// Handles: their values, shapes and devices.

namespace weir::capi {

bool IsHandle(absl::string_view function, const TFE_TensorHandle* handle, TF_Status* status) {
  if (!HaveAll(function, {function.data()}, status)) return false;  // only the status may be null
  if (handle == nullptr) SetStatus(status, InvalidArgument("Invalid handle"));
  return handle != nullptr;
}

namespace {

// Returns `get` of the value, or `otherwise` with the error of the op.
template <class T, class GetFn>
T OfValue(absl::string_view function, TFE_TensorHandle* handle, TF_Status* status, T otherwise,
          GetFn get) {
  if (!IsHandle(function, handle, status)) return otherwise;
  const auto result = [&]() -> absl::StatusOr<T> {
    WEIR_RETURN_IF_ERROR(handle->Wait());
    return get(handle->value());
  }();
  SetStatus(status, result.status());
  return result.ok() ? *result : otherwise;
}

absl::StatusOr<int64_t> DimOf(const Tensor& value, int i) {
  if (i >= 0 && i < value.rank()) return value.dim(i);
  return OutOfRange(value.Description(), " has no dimension ", i);
}

TFE_TensorHandle* NewHandle(absl::string_view function, const TF_Tensor* tensor,
                            TF_Status* status) {
  if (!HaveAll(function, {tensor}, status)) return nullptr;
  absl::StatusOr<Tensor> value = ValueOf(tensor);
  SetStatus(status, value.status());
  return value.ok() ? new TFE_TensorHandle(*std::move(value)) : nullptr;
}

}  // namespace

}  // namespace weir::capi

struct TFE_TensorDebugInfo {
  weir::Shape shape;
};

using weir::Tensor;
using weir::capi::HaveAll;
using weir::capi::OfValue;
using weir::capi::SetStatus;

TFE_TensorHandle* TFE_NewTensorHandle(const TF_Tensor* t, TF_Status* status) {
  return weir::capi::NewHandle("TFE_NewTensorHandle", t, status);
}

TFE_TensorHandle* TFE_NewTensorHandleFromTensor(TFE_Context* ctx, TF_Tensor* t, TF_Status* status) {
  if (!HaveAll("TFE_NewTensorHandleFromTensor", {ctx}, status)) return nullptr;
  return weir::capi::NewHandle("TFE_NewTensorHandleFromTensor", t, status);
}

void TFE_DeleteTensorHandle(TFE_TensorHandle* h) {
  if (h != nullptr) h->Unref();
}

TF_DataType TFE_TensorHandleDataType(TFE_TensorHandle* h) {
  return HaveAll("TFE_TensorHandleDataType", {h}) ? static_cast<TF_DataType>(h->dtype())
                                                  : TF_DataType{};
}

int TFE_TensorHandleNumDims(TFE_TensorHandle* h, TF_Status* status) {
  return OfValue<int>("TFE_TensorHandleNumDims", h, status, -1,
                      [](const Tensor& value) { return value.rank(); });
}

int64_t TFE_TensorHandleNumElements(TFE_TensorHandle* h, TF_Status* status) {
  return OfValue<int64_t>("TFE_TensorHandleNumElements", h, status, -1,
                          [](const Tensor& value) { return value.num_elements(); });
}

int64_t TFE_TensorHandleDim(TFE_TensorHandle* h, int dim_index, TF_Status* status) {
  return OfValue<int64_t>("TFE_TensorHandleDim", h, status, -1,
                          [&](const Tensor& value) { return weir::capi::DimOf(value, dim_index); });
}

const char* TFE_TensorHandleDeviceName(TFE_TensorHandle* h, TF_Status* status) {
  if (!weir::capi::IsHandle("TFE_TensorHandleDeviceName", h, status)) return nullptr;
  SetStatus(status, absl::OkStatus());
  return weir::capi::kCpuName;
}

const char* TFE_TensorHandleBackingDeviceName(TFE_TensorHandle* h, TF_Status* status) {
  if (!weir::capi::IsHandle("TFE_TensorHandleBackingDeviceName", h, status)) return nullptr;
  SetStatus(status, absl::OkStatus());
  return weir::capi::kCpuName;
}

TFE_TensorHandle* TFE_TensorHandleCopySharingTensor(TFE_TensorHandle* h, TF_Status* status) {
  if (!weir::capi::IsHandle("TFE_TensorHandleCopySharingTensor", h, status)) return nullptr;
  SetStatus(status, absl::OkStatus());
  return h->Ref();
}

TF_Tensor* TFE_TensorHandleResolve(TFE_TensorHandle* h, TF_Status* status) {
  return OfValue<TF_Tensor*>("TFE_TensorHandleResolve", h, status, nullptr,
                             [](const Tensor& value) { return weir::capi::NewTensor(value); });
}

TFE_TensorDebugInfo* TFE_TensorHandleTensorDebugInfo(TFE_TensorHandle* h, TF_Status* status) {
  return OfValue<TFE_TensorDebugInfo*>(
      "TFE_TensorHandleTensorDebugInfo", h, status, nullptr,
      [](const Tensor& value) { return new TFE_TensorDebugInfo{value.shape()}; });
}

void TFE_DeleteTensorDebugInfo(TFE_TensorDebugInfo* debug_info) { delete debug_info; }

int TFE_TensorDebugInfoOnDeviceNumDims(TFE_TensorDebugInfo* debug_info) {
  return HaveAll("TFE_TensorDebugInfoOnDeviceNumDims", {debug_info}) ? debug_info->shape.rank()
                                                                     : -1;
}

int64_t TFE_TensorDebugInfoOnDeviceDim(TFE_TensorDebugInfo* debug_info, int dim_index) {
  if (!HaveAll("TFE_TensorDebugInfoOnDeviceDim", {debug_info})) return -1;
  const weir::Shape& shape = debug_info->shape;
  if (dim_index >= 0 && dim_index < shape.rank()) return shape.dim(dim_index);
  weir::capi::LogMisuse("TFE_TensorDebugInfoOnDeviceDim",
                        absl::StrCat(shape.ToString(), " has no dimension ", dim_index));
  return -1;
}

TF_Tensor* TFE_AllocateHostTensor(TFE_Context* ctx, TF_DataType dtype, const int64_t* dims,
                                  int num_dims, TF_Status* status) {
  if (!HaveAll("TFE_AllocateHostTensor", {ctx}, status)) return nullptr;
  const auto allocate = [&]() -> absl::StatusOr<TF_Tensor*> {
    if (num_dims < 0) return weir::InvalidArgument("the number of dimensions is ", num_dims);
    WEIR_ASSIGN_OR_RETURN(const weir::Shape shape, weir::capi::ShapeOf(dims, num_dims));
    const size_t size = dtype == TF_STRING ? sizeof(TF_TString) : TF_DataTypeSize(dtype);
    if (size == 0 || !shape.IsFullyDefined()) {
      return weir::InvalidArgument("Unsupported dtype: ", static_cast<int>(dtype),
                                   " or shape: ", shape.ToString());
    }
    const auto count = static_cast<size_t>(shape.num_elements());
    TF_Tensor* const tensor =
        count > SIZE_MAX / size ? nullptr : TF_AllocateTensor(dtype, dims, num_dims, count * size);
    if (tensor != nullptr) return tensor;
    return absl::ResourceExhaustedError(
        absl::StrCat("OOM when allocating a tensor of shape ", shape.ToString()));
  };
  const auto tensor = allocate();
  SetStatus(status, tensor.status());
  return tensor.ok() ? *tensor : nullptr;
}
