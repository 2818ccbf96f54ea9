#include "weir/kernels/containers/stored_values.h"

#include <algorithm>

#include "weir/kernels/lib/device_primitives.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/kernels/math/elementwise_loops.h"

namespace weir {

namespace {

// Graphs may hold such values, and are read before the first kernel is made.
[[maybe_unused]] const bool registered = RegisterStoredValueCodecs();

}  // namespace

absl::StatusOr<std::string> MapKey(const Tensor& key) {
  std::string bytes = key.Description();
  if (key.dtype() == DT_STRING) {
    for (const std::string& text : key.flat<std::string>())
      absl::StrAppend(&bytes, ",", text.size(), ":", text);
    return bytes;
  }
  if (!IsPlain(key.dtype()))
    return InvalidArgument("a key of a TensorMap cannot be of type ", DataTypeName(key.dtype()));
  bytes.append(static_cast<const char*>(key.raw()), key.num_bytes());
  return bytes;
}

absl::StatusOr<int> NestingDepth(const Tensor& t) {
  if (t.dtype() != DT_VARIANT) return 0;
  int depth = 0;
  for (const Variant& v : t.flat<Variant>()) {
    if (const auto* list = VariantAs<TensorList>(v)) depth = std::max(depth, list->depth);
    if (const auto* map = VariantAs<TensorMap>(v)) depth = std::max(depth, map->depth);
    if (const auto* optional = VariantAs<Optional>(v)) depth = std::max(depth, optional->depth);
  }
  constexpr int kMaxDepth = 64;
  if (depth >= kMaxDepth)
    return InvalidArgument("variants are nested more than ", kMaxDepth, " levels deep");
  return depth;
}

absl::Status CheckRowIndices(const Tensor& indices, const Tensor& rows, absl::string_view name) {
  if (indices.rank() != 1) {
    return InvalidArgument("Expected indices to be a vector, but received shape: ",
                           indices.shape().ToString());
  }
  if (indices.num_elements() != rows.dim(0)) {
    return InvalidArgument("Expected len(indices) == ", name,
                           ".shape[0], but saw: ", indices.num_elements(), " vs. ", rows.dim(0));
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> NewTensor(DataType dtype, const Shape& shape) {
  return Tensor::Allocate(HostAllocator(), dtype, shape);
}

absl::StatusOr<Tensor> ZeroTensor(ThreadPool& pool, DataType dtype, const Shape& shape) {
  if (dtype == DT_RESOURCE || dtype == DT_VARIANT)
    return InvalidArgument("type ", DataTypeName(dtype), " has no zero value");
  WEIR_ASSIGN_OR_RETURN(Tensor t, NewTensor(dtype, shape));
  ClearElements(pool, t);
  return t;
}

absl::Status CheckRoomForTensors(int64_t count) {
  constexpr int64_t kBytesPerTensor =
      320;  // bytes: the handle, its buffer header, and an entry in a list
  constexpr int64_t kMinCheckedCount = 1 << 16;  // fewer than this need no query of the free memory
  if (count <= kMinCheckedCount || count <= HostAllocator().bytes_free() / kBytesPerTensor)
    return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      count, " tensors do not fit in memory, even if they are empty: ",
      HostAllocator().bytes_free(), " bytes are free by allocator ", HostAllocator().name()));
}

absl::StatusOr<Tensor> CopyRows(const Tensor& t, int64_t begin, int64_t end, const Shape& shape) {
  WEIR_ASSIGN_OR_RETURN(Tensor rows, NewTensor(t.dtype(), shape));
  const int64_t row = end > begin ? rows.num_elements() / (end - begin) : 0;
  CopyElements(t.dtype(), ElementAt(t, begin * row), rows.raw(), rows.num_elements());
  return rows;
}

namespace {

absl::StatusOr<TensorList> ZerosOfList(ThreadPool& pool, const TensorList& list) {
  TensorList zeros = list;
  WEIR_RETURN_IF_ERROR(list.elements.ForEach([&](int64_t i, const Tensor& element) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(Tensor zero, ZerosOf(pool, element));
    zeros.elements = std::move(zeros.elements).With(i, std::move(zero));
    return absl::OkStatus();
  }));
  return zeros;
}

absl::StatusOr<Optional> ZerosOfOptional(ThreadPool& pool, const Optional& optional) {
  Optional zeros = optional;
  for (Tensor& value : zeros.values) {
    WEIR_ASSIGN_OR_RETURN(value, ZerosOf(pool, value));
  }
  return zeros;
}

absl::StatusOr<TensorList> SumOfLists(ThreadPool& pool, const TensorList& a, const TensorList& b) {
  if (a.element_dtype != b.element_dtype) {
    return InvalidArgument("Trying to add two lists of tensors of different dtypes. One is ",
                           DataTypeName(a.element_dtype), " and the other is ",
                           DataTypeName(b.element_dtype));
  }
  if (a.elements.size() != b.elements.size()) {
    return InvalidArgument("Trying to add two lists of tensors with different lengths. One is ",
                           a.elements.size(), " and the other is ", b.elements.size());
  }
  const absl::StatusOr<Shape> shape = a.element_shape.MergeWith(b.element_shape);
  if (!shape.ok()) {
    return InvalidArgument(
        "Trying to add two lists of tensors with incompatible element shapes. One is ",
        a.element_shape.ToString(), " and the other is ", b.element_shape.ToString());
  }
  TensorList sum = a;
  sum.element_shape = *shape;
  sum.depth = std::max(a.depth, b.depth);
  WEIR_RETURN_IF_ERROR(b.elements.ForEach([&](int64_t i, const Tensor& element) -> absl::Status {
    const Tensor* other = a.elements.at(i);
    Tensor both = element;
    if (other != nullptr) {
      WEIR_ASSIGN_OR_RETURN(both, SumOf(pool, *other, element));
    }
    sum.elements = std::move(sum.elements).With(i, std::move(both));
    return absl::OkStatus();
  }));
  return sum;
}

// Entries that only one of the maps has are kept.
absl::StatusOr<TensorMap> SumOfMaps(ThreadPool& pool, const TensorMap& a, const TensorMap& b) {
  auto entries = std::make_shared<TensorMap::Entries>(*a.entries);
  for (const auto& [bytes, entry] : *b.entries) {
    const auto [it, is_new] = entries->try_emplace(bytes, entry);
    if (is_new) continue;
    WEIR_ASSIGN_OR_RETURN(it->second.value, SumOf(pool, it->second.value, entry.value));
  }
  TensorMap sum;
  sum.depth = std::max(a.depth, b.depth);
  sum.entries = std::move(entries);
  return sum;
}

absl::StatusOr<Optional> SumOfOptionals(ThreadPool& pool, const Optional& a, const Optional& b) {
  if (a.has_value != b.has_value || a.values.size() != b.values.size())
    return InvalidArgument("Cannot add optionals because one has a value and the other does not, ",
                           "or they have different numbers of components");
  Optional sum = a;
  sum.depth = std::max(a.depth, b.depth);
  for (size_t i = 0; i < sum.values.size(); ++i) {
    WEIR_ASSIGN_OR_RETURN(sum.values[i], SumOf(pool, a.values[i], b.values[i]));
  }
  return sum;
}

template <class T>
absl::StatusOr<Variant> AsVariant(absl::StatusOr<T> value) {
  if (!value.ok()) return value.status();
  Variant v;
  v.type_name = T::kTypeName;
  v.value = *std::move(value);
  return v;
}

absl::StatusOr<Variant> ZeroOf(ThreadPool& pool, const Variant& v) {
  if (const auto* list = VariantAs<TensorList>(v)) return AsVariant(ZerosOfList(pool, *list));
  if (const auto* o = VariantAs<Optional>(v)) return AsVariant(ZerosOfOptional(pool, *o));
  if (VariantAs<TensorMap>(v) != nullptr) return AsVariant(absl::StatusOr<TensorMap>(TensorMap()));
  return InvalidArgument("variant type '", v.type_name, "' has no zero value");
}

absl::StatusOr<Variant> Sum(ThreadPool& pool, const Variant& a, const Variant& b) {
  if (const auto* x = VariantAs<TensorList>(a), *y = VariantAs<TensorList>(b); x && y)
    return AsVariant(SumOfLists(pool, *x, *y));
  if (const auto* x = VariantAs<TensorMap>(a), *y = VariantAs<TensorMap>(b); x && y)
    return AsVariant(SumOfMaps(pool, *x, *y));
  if (const auto* x = VariantAs<Optional>(a), *y = VariantAs<Optional>(b); x && y)
    return AsVariant(SumOfOptionals(pool, *x, *y));
  return InvalidArgument("variants '", a.type_name, "' and '", b.type_name, "' cannot be added");
}

}  // namespace

absl::StatusOr<Tensor> ZerosOf(ThreadPool& pool, const Tensor& t) {
  if (t.dtype() != DT_VARIANT) return ZeroTensor(pool, t.dtype(), t.shape());
  WEIR_ASSIGN_OR_RETURN(Tensor zeros, NewTensor(DT_VARIANT, t.shape()));
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    WEIR_ASSIGN_OR_RETURN(zeros.data<Variant>()[i], ZeroOf(pool, t.data<Variant>()[i]));
  }
  return zeros;
}

absl::StatusOr<Tensor> SumOf(ThreadPool& pool, const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) {
    return InvalidArgument("cannot add ", a.Description(), " and ", b.Description());
  }
  WEIR_ASSIGN_OR_RETURN(Tensor sum, NewTensor(a.dtype(), a.shape()));
  if (a.dtype() == DT_VARIANT) {
    for (int64_t i = 0; i < a.num_elements(); ++i) {
      WEIR_ASSIGN_OR_RETURN(sum.data<Variant>()[i],
                            Sum(pool, a.data<Variant>()[i], b.data<Variant>()[i]));
    }
    return sum;
  }
  const BinaryLoop* add = ElementwiseLoops().FindBinary("AddV2", a.dtype());
  if (add == nullptr) return InvalidArgument("cannot add values of ", DataTypeName(a.dtype()));
  WEIR_RETURN_IF_ERROR(RunBinary(pool, *add, 0, a, b, &sum));
  return sum;
}

// ---- on the kernel's device

absl::StatusOr<Tensor> ZeroTensor(KernelContext& c, DataType dtype, const Shape& shape) {
  if (PrimitivesFor(c, dtype) == nullptr) return ZeroTensor(c.pool(), dtype, shape);
  WEIR_ASSIGN_OR_RETURN(Tensor zeros, c.AllocateTemp(dtype, shape));
  ClearElements(c, zeros);
  return zeros;
}

absl::StatusOr<Tensor> CopyRows(KernelContext& c, const Tensor& t, int64_t begin, int64_t end,
                                const Shape& shape) {
  if (PrimitivesFor(c, t.dtype()) == nullptr) return CopyRows(t, begin, end, shape);
  WEIR_ASSIGN_OR_RETURN(Tensor rows, c.AllocateTemp(t.dtype(), shape));
  const int64_t row = end > begin ? rows.num_elements() / (end - begin) : 0;
  CopyElements(c, t.dtype(), ElementAt(t, begin * row), rows.raw(), rows.num_elements());
  return rows;
}

absl::StatusOr<Tensor> SumOf(KernelContext& c, const Tensor& a, const Tensor& b) {
  const DevicePrimitives* const device = PrimitivesFor(c, a.dtype());
  if (device == nullptr) return SumOf(c.pool(), a, b);
  WEIR_ASSIGN_OR_RETURN(Tensor sum, c.AllocateTemp(a.dtype(), a.shape()));
  CopyElements(c, a.dtype(), a.raw(), sum.raw(), a.num_elements());
  if (device->Add(a.dtype(), sum.raw(), b.raw(), b.num_elements())) return sum;
  return Unimplemented("device ", c.device().text(), " cannot add values of type ",
                       DataTypeName(a.dtype()));
}

}  // namespace weir
