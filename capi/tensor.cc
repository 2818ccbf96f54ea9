#include <algorithm>
#include <cstdint>
#include <cstring>

#include "weir/capi/objects.h"
#include "weir/core/io/graph_io.h"

namespace weir::capi {

absl::StatusOr<DataType> TypeOf(TF_DataType type) {
  const auto wide = static_cast<int64_t>(type);
  const auto known = static_cast<DataType>(wide);
  if (wide < 0 || wide > UINT8_MAX || !IsKnown(known) || known == DT_INVALID)
    return InvalidArgument("unknown data type ", wide);
  return known;
}

absl::StatusOr<Shape> ShapeOf(const int64_t* dims, int num_dims) {
  if (num_dims < 0) return Shape::UnknownRank();
  if (dims == nullptr && num_dims > 0) return InvalidArgument("the dimensions are null");
  return Shape::Make(absl::MakeConstSpan(dims, num_dims));
}

namespace {

// What the memory of a caller is given back to.
struct Release {
  void (*deallocator)(void* data, size_t len, void* arg);
  void* data;
  size_t len;
  void* arg;

  void Call() const {
    if (deallocator != nullptr) deallocator(data, len, arg);
  }
};

// Checks what the elements need, and returns the type and shape.
absl::StatusOr<std::pair<DataType, Shape>> Checked(TF_DataType type, const int64_t* dims,
                                                   int num_dims, size_t len) {
  WEIR_ASSIGN_OR_RETURN(const DataType dtype, TypeOf(type));
  if (num_dims < 0) return InvalidArgument("the number of dimensions is ", num_dims);
  WEIR_ASSIGN_OR_RETURN(Shape shape, ShapeOf(dims, num_dims));
  if (IsRef(dtype) || !shape.IsFullyDefined())
    return InvalidArgument("a tensor has no ", DataTypeName(dtype), shape.ToString());
  const size_t size = dtype == DT_STRING ? sizeof(TF_TString)
                      : IsPlain(dtype)   ? ElementSize(dtype)
                                         : 0;
  if (size == 0) return InvalidArgument("no tensor of ", DataTypeName(dtype), " can be made");
  const auto count = static_cast<size_t>(shape.num_elements());
  if (count > len / size) {
    return InvalidArgument(DataTypeName(dtype), shape.ToString(), " needs ", count, " * ", size,
                           " bytes, not ", len);
  }
  return std::pair(dtype, std::move(shape));
}

TF_Tensor* Make(const std::pair<DataType, Shape>& type, BufferPtr buffer, void* data, size_t len) {
  auto* const tensor = new TF_Tensor{
      .dtype = type.first, .shape = type.second, .buffer = buffer, .data = data, .num_bytes = len};
  if (type.first != DT_STRING)
    tensor->value = Tensor(type.first, type.second, std::move(buffer), data);
  return tensor;
}

TF_Tensor* Allocated(const std::pair<DataType, Shape>& type, size_t len) {
  if (len > static_cast<size_t>(INT64_MAX)) return nullptr;
  BufferPtr buffer(Buffer::New(HostAllocator(), DT_UINT8, static_cast<int64_t>(len)));
  if (!buffer) return nullptr;
  void* const data = buffer->data();
  if (type.first == DT_STRING && len > 0) std::memset(data, 0, len);
  return Make(type, std::move(buffer), data, len);
}

// Strings of a value, which are freed with the last tensor that has them.
struct OwnedStrings {
  explicit OwnedStrings(size_t count) : strings(count) {}
  ~OwnedStrings() {
    for (TF_TString& string : strings) TF_StringDealloc(&string);
  }
  std::vector<TF_TString> strings;
};

TF_Tensor* NewStrings(const Tensor& value) {
  const auto elements = value.flat<std::string>();
  auto* const owned = new OwnedStrings(elements.size());
  for (size_t i = 0; i < elements.size(); ++i)
    TF_StringCopy(&owned->strings[i], elements[i].data(), elements[i].size());
  const size_t len = elements.size() * sizeof(TF_TString);
  BufferPtr buffer(Buffer::Wrap(
      owned->strings.data(), len, nullptr,
      [](void* arg) { delete static_cast<OwnedStrings*>(arg); }, owned));
  return Make({DT_STRING, value.shape()}, std::move(buffer), owned->strings.data(), len);
}

}  // namespace

absl::StatusOr<Tensor> ValueOf(const TF_Tensor* tensor) {
  if (tensor == nullptr) return InvalidArgument("a tensor is null");
  if (tensor->dtype != DT_STRING) return tensor->value;
  WEIR_ASSIGN_OR_RETURN(Tensor value, Tensor::Allocate(HostAllocator(), DT_STRING, tensor->shape));
  const auto* const strings = static_cast<const TF_TString*>(tensor->data);
  auto elements = value.flat<std::string>();
  for (size_t i = 0; i < elements.size(); ++i) {
    const size_t size = TF_StringGetSize(&strings[i]);
    if (size > 0) elements[i].assign(TF_StringGetDataPointer(&strings[i]), size);
  }
  return value;
}

absl::StatusOr<TF_Tensor*> NewTensor(Tensor value) {
  if (!value.initialized()) return InvalidArgument("the value is not initialized");
  if (value.dtype() == DT_STRING) return NewStrings(value);
  if (!value.buffer() || !value.host_accessible()) value = value.DeepCopy();
  // A resource or a variant has no bytes, but can be fed.
  const bool is_plain = IsPlain(value.dtype());
  return new TF_Tensor{.dtype = value.dtype(),
                       .shape = value.shape(),
                       .data = is_plain ? value.raw() : nullptr,
                       .num_bytes = is_plain ? value.num_bytes() : 0,
                       .value = std::move(value)};
}

}  // namespace weir::capi

using weir::capi::HaveAll;
using weir::capi::LogMisuse;
using weir::capi::SetStatus;

size_t TF_DataTypeSize(TF_DataType dt) {
  if (dt == TF_INT2 || dt == TF_UINT2) return 1;  // no kernel has them
  const auto type = weir::capi::TypeOf(dt);
  return type.ok() && weir::IsPlain(*type) && !weir::IsRef(*type) ? weir::ElementSize(*type) : 0;
}

TF_Tensor* TF_NewTensor(TF_DataType type, const int64_t* dims, int num_dims, void* data, size_t len,
                        void (*deallocator)(void* data, size_t len, void* arg),
                        void* deallocator_arg) {
  const weir::capi::Release release{deallocator, data, len, deallocator_arg};
  auto checked = weir::capi::Checked(type, dims, num_dims, len);
  if (checked.ok() && data == nullptr && len > 0)
    checked = weir::InvalidArgument("the elements are null");
  if (!checked.ok()) {
    LogMisuse("TF_NewTensor", checked.status().message());
    release.Call();
    return nullptr;
  }
  // TensorFlow copies what is not aligned for vectors, and gives it back at once. Weir's kernels
  // read elements at any address of their type: only what is cheaper to copy than to share is
  // copied.
  constexpr size_t kSmall = 4096;
  const size_t own =
      checked->first == weir::DT_STRING ? alignof(TF_TString) : weir::ElementSize(checked->first);
  const size_t alignment =
      len <= kSmall && checked->first != weir::DT_STRING ? TF_TensorDefaultAlignment() : own;
  if (reinterpret_cast<uintptr_t>(data) % alignment != 0) {
    TF_Tensor* const copy = weir::capi::Allocated(*checked, len);
    if (copy != nullptr) std::memcpy(copy->data, data, len);
    release.Call();
    return copy;
  }
  weir::BufferPtr buffer(weir::Buffer::Wrap(
      data, len, nullptr,
      [](void* arg) {
        const std::unique_ptr<weir::capi::Release> owned(static_cast<weir::capi::Release*>(arg));
        owned->Call();
      },
      new weir::capi::Release(release)));
  return weir::capi::Make(*checked, std::move(buffer), data, len);
}

TF_Tensor* TF_AllocateTensor(TF_DataType type, const int64_t* dims, int num_dims, size_t len) {
  const auto checked = weir::capi::Checked(type, dims, num_dims, len);
  TF_Tensor* const tensor = checked.ok() ? weir::capi::Allocated(*checked, len) : nullptr;
  if (tensor == nullptr)
    LogMisuse("TF_AllocateTensor", checked.ok() ? "out of memory" : checked.status().message());
  return tensor;
}

size_t TF_TensorDefaultAlignment(void) { return 64; }

void TF_TensorFromProto(const TF_Buffer* from, TF_Tensor* to, TF_Status* status) {
  if (!HaveAll("TF_TensorFromProto", {from, to}, status)) return;
  const auto run = [&]() -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(weir::Tensor value, weir::TensorFromBytes(weir::capi::BytesOf(from)));
    WEIR_ASSIGN_OR_RETURN(TF_Tensor* const tensor, weir::capi::NewTensor(std::move(value)));
    *to = std::move(*tensor);
    delete tensor;
    return absl::OkStatus();
  };
  SetStatus(status, run());
}

TF_Tensor* TF_TensorMaybeMove(TF_Tensor* tensor) {
  if (!HaveAll("TF_TensorMaybeMove", {tensor})) return nullptr;
  constexpr int kOwn = 2;  // of the buffer: by `buffer` and by `value`
  // Memory of a caller, which has no allocator, is given back to its deallocator.
  const bool is_own =
      tensor->buffer && tensor->buffer->allocator() != nullptr && tensor->buffer->holders() <= kOwn;
  return is_own ? tensor : nullptr;
}

void TF_DeleteTensor(TF_Tensor* tensor) { delete tensor; }

TF_DataType TF_TensorType(const TF_Tensor* tensor) {
  return static_cast<TF_DataType>(HaveAll("TF_TensorType", {tensor}) ? tensor->dtype
                                                                     : weir::DT_INVALID);
}

int TF_NumDims(const TF_Tensor* tensor) {
  return HaveAll("TF_NumDims", {tensor}) ? tensor->shape.rank() : -1;
}

int64_t TF_Dim(const TF_Tensor* tensor, int dim_index) {
  if (!HaveAll("TF_Dim", {tensor})) return -1;
  if (dim_index >= 0 && dim_index < tensor->shape.rank()) return tensor->shape.dim(dim_index);
  LogMisuse("TF_Dim", absl::StrCat(tensor->shape.ToString(), " has no dimension ", dim_index));
  return -1;
}

size_t TF_TensorByteSize(const TF_Tensor* tensor) {
  return HaveAll("TF_TensorByteSize", {tensor}) ? tensor->num_bytes : 0;
}

void* TF_TensorData(const TF_Tensor* tensor) {
  return HaveAll("TF_TensorData", {tensor}) ? tensor->data : nullptr;
}

int64_t TF_TensorElementCount(const TF_Tensor* tensor) {
  return HaveAll("TF_TensorElementCount", {tensor}) ? tensor->shape.num_elements() : -1;
}

void TF_SetShape(TF_Tensor* tensor, const int64_t* dims, int num_dims) {
  if (!HaveAll("TF_SetShape", {tensor})) return;
  const auto shape = weir::capi::ShapeOf(dims, std::max(num_dims, 0));
  if (num_dims < 0 || !shape.ok() || !shape->IsFullyDefined() ||
      shape->num_elements() != tensor->shape.num_elements()) {
    return LogMisuse("TF_SetShape",
                     absl::StrCat("no shape for the elements of ", tensor->shape.ToString()));
  }
  tensor->shape = *shape;
  if (tensor->value.initialized())
    tensor->value =
        weir::Tensor(tensor->dtype, *shape, tensor->value.buffer(), tensor->value.raw());
}

void TF_TensorBitcastFrom(const TF_Tensor* from, TF_DataType type, TF_Tensor* to,
                          const int64_t* new_dims, int num_new_dims, TF_Status* status) {
  if (!HaveAll("TF_TensorBitcastFrom", {from, to}, status)) return;
  const auto run = [&]() -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const weir::DataType dtype, weir::capi::TypeOf(type));
    if (dtype != from->dtype && !(weir::IsPlain(dtype) && weir::IsPlain(from->dtype))) {
      return weir::InvalidArgument("cannot bitcast ", weir::DataTypeName(from->dtype), " to ",
                                   weir::DataTypeName(dtype));
    }
    WEIR_ASSIGN_OR_RETURN(const auto checked,
                          weir::capi::Checked(type, new_dims, num_new_dims, from->num_bytes));
    const size_t size =
        dtype == weir::DT_STRING ? sizeof(TF_TString) : weir::ElementSize(checked.first);
    if (static_cast<size_t>(checked.second.num_elements()) * size != from->num_bytes) {
      return weir::InvalidArgument("cannot bitcast ", from->num_bytes, " bytes to ",
                                   weir::DataTypeName(dtype), checked.second.ToString());
    }
    weir::BufferPtr buffer = from->buffer ? from->buffer : from->value.buffer();
    const std::unique_ptr<TF_Tensor> shared(
        weir::capi::Make(checked, std::move(buffer), from->data, from->num_bytes));
    *to = *shared;
    return absl::OkStatus();
  };
  SetStatus(status, run());
}

TF_Bool TF_TensorIsAligned(const TF_Tensor* tensor) {
  if (!HaveAll("TF_TensorIsAligned", {tensor})) return 0;
  return reinterpret_cast<uintptr_t>(tensor->data) % weir::Allocator::kAlignment == 0;
}
