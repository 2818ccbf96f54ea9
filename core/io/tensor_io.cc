#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "weir/core/io/coding.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/io/proto_values.h"
#include "weir/core/tensor/repeated_tensor.h"
#include "weir/core/tensor/resource_handle.h"
#include "weir/core/tensor/variant.h"
#include "weir/proto/tensor.pb.h"

namespace weir {

namespace {

absl::Status Malformed(DataType dtype, const Shape& shape, absl::string_view what) {
  return InvalidArgument("Cannot parse tensor from proto: ", DataTypeName(dtype), shape.ToString(),
                         ": ", what);
}

// Adapters for the typed value fields of TensorProto. Each holds one kind of number; Value(i)
// returns element i as its C++ type.
template <class T, class Field>
struct NumberField {
  const Field& field;
  int64_t size() const { return field.size(); }
  T Value(int64_t i) const { return static_cast<T>(field.Get(static_cast<int>(i))); }
};

// Types whose bits are stored in an int32.
template <class T, class Field>
struct BitsField {
  const Field& field;
  int64_t size() const { return field.size(); }
  T Value(int64_t i) const {
    T value;
    value.bits = static_cast<uint16_t>(field.Get(static_cast<int>(i)));
    return value;
  }
};

template <class T, class Field>
struct StorageOnlyField {
  const Field& field;
  int64_t size() const { return field.size(); }
  T Value(int64_t i) const {
    return T{static_cast<decltype(T::value)>(field.Get(static_cast<int>(i)))};
  }
};

// Real and imaginary parts alternate.
template <class T, class Field>
struct ComplexField {
  const Field& field;
  int64_t size() const { return field.size() / 2; }
  std::complex<T> Value(int64_t i) const {
    return {field.Get(static_cast<int>(2 * i)), field.Get(static_cast<int>(2 * i + 1))};
  }
};

template <class T>
struct BytesField {
  const std::string& bytes;
  int64_t size() const { return static_cast<int64_t>(bytes.size()); }
  T Value(int64_t i) const { return T{static_cast<uint8_t>(bytes[i])}; }
};

// Calls f.operator()<T>(field) with the field that holds values of `dtype`. Returns false if the
// type is not a number.
template <class F>
bool DispatchField(DataType dtype, const proto::TensorProto& p, F&& f) {
  const auto number = [&]<class T>(const auto& field) {
    f.template operator()<T>(NumberField<T, std::decay_t<decltype(field)>>{field});
    return true;
  };
  const auto storage_only = [&]<class T>(const auto& field) {
    f.template operator()<T>(StorageOnlyField<T, std::decay_t<decltype(field)>>{field});
    return true;
  };
  const auto bits = [&]<class T>(const auto& field) {
    f.template operator()<T>(BitsField<T, std::decay_t<decltype(field)>>{field});
    return true;
  };
  const auto complex = [&]<class T>(const auto& field) {
    f.template operator()<std::complex<T>>(ComplexField<T, std::decay_t<decltype(field)>>{field});
    return true;
  };
  const auto bytes = [&]<class T>() {
    f.template operator()<T>(BytesField<T>{p.float8_val()});
    return true;
  };
  switch (dtype) {
    case DT_FLOAT:
      return number.template operator()<float>(p.float_val());
    case DT_DOUBLE:
      return number.template operator()<double>(p.double_val());
    case DT_INT8:
      return number.template operator()<int8_t>(p.int_val());
    case DT_INT16:
      return number.template operator()<int16_t>(p.int_val());
    case DT_INT32:
      return number.template operator()<int32_t>(p.int_val());
    case DT_INT64:
      return number.template operator()<int64_t>(p.int64_val());
    case DT_UINT8:
      return number.template operator()<uint8_t>(p.int_val());
    case DT_UINT16:
      return number.template operator()<uint16_t>(p.int_val());
    case DT_UINT32:
      return number.template operator()<uint32_t>(p.uint32_val());
    case DT_UINT64:
      return number.template operator()<uint64_t>(p.uint64_val());
    case DT_BOOL:
      return number.template operator()<bool>(p.bool_val());
    case DT_QINT8:
      return storage_only.template operator()<qint8>(p.int_val());
    case DT_QUINT8:
      return storage_only.template operator()<quint8>(p.int_val());
    case DT_QINT16:
      return storage_only.template operator()<qint16>(p.int_val());
    case DT_QUINT16:
      return storage_only.template operator()<quint16>(p.int_val());
    case DT_QINT32:
      return storage_only.template operator()<qint32>(p.int_val());
    case DT_INT4:
      return storage_only.template operator()<int4>(p.int_val());
    case DT_UINT4:
      return storage_only.template operator()<uint4>(p.int_val());
    case DT_HALF:
      return bits.template operator()<half>(p.half_val());
    case DT_BFLOAT16:
      return bits.template operator()<bfloat16>(p.half_val());
    case DT_COMPLEX64:
      return complex.template operator()<float>(p.scomplex_val());
    case DT_COMPLEX128:
      return complex.template operator()<double>(p.dcomplex_val());
    case DT_FLOAT8_E5M2:
      return bytes.template operator()<float8_e5m2>();
    case DT_FLOAT8_E4M3FN:
      return bytes.template operator()<float8_e4m3fn>();
    case DT_FLOAT8_E4M3FNUZ:
      return bytes.template operator()<float8_e4m3fnuz>();
    case DT_FLOAT8_E4M3B11FNUZ:
      return bytes.template operator()<float8_e4m3b11fnuz>();
    case DT_FLOAT8_E5M2FNUZ:
      return bytes.template operator()<float8_e5m2fnuz>();
    default:
      return false;
  }
}

// Copies the field's values; the last one repeats, and an empty field means zeros.
template <class T, class Field>
void FillFromField(const Field& field, Tensor* t) {
  const absl::Span<T> out = t->flat<T>();
  const int64_t given = std::min<int64_t>(field.size(), t->num_elements());
  for (int64_t i = 0; i < given; ++i) out[i] = field.Value(i);
  std::fill(out.begin() + given, out.end(), given == 0 ? T{} : out[given - 1]);
}

// Reads a varint of at most 32 bits. Returns false at the end of the bytes.
bool ReadVarint(absl::string_view* in, uint32_t* out) {
  uint64_t value = 0;
  for (int shift = 0; shift < 35 && !in->empty(); shift += 7) {
    const uint8_t byte = static_cast<uint8_t>(in->front());
    in->remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) {
      *out = static_cast<uint32_t>(value);
      return value <= UINT32_MAX;
    }
  }
  return false;
}

// Reads the content of a tensor of objects: the lengths of all elements in bytes, then all their
// bytes. Calls `read(i, bytes)` for each.
template <class Read>
absl::Status ParseElements(const Tensor& t, absl::string_view content, Read read) {
  std::vector<uint32_t> lengths(t.num_elements());
  uint64_t total = 0;
  for (uint32_t& length : lengths) {
    if (!ReadVarint(&content, &length)) {
      return Malformed(t.dtype(), t.shape(), "tensor_content ends within the lengths");
    }
    total += length;
  }
  if (total != content.size()) {
    return Malformed(
        t.dtype(), t.shape(),
        absl::StrCat("tensor_content has ", content.size(), " bytes of elements, not ", total));
  }
  int64_t i = 0;
  for (const uint32_t length : lengths) {
    WEIR_RETURN_IF_ERROR(read(i++, content.substr(0, length)));
    content.remove_prefix(length);
  }
  return absl::OkStatus();
}

// What is left of the limits while a tensor is read.
struct Limits {
  int64_t* budget;  // see proto_values.h
  int depth = 0;    // of variants in variants; each is read, and freed, recursively
};
constexpr int kMaxVariantDepth = 64;

absl::StatusOr<Tensor> FromProto(const proto::TensorProto& proto, Limits limits,
                                 std::string* content);

absl::Status ParseVariant(const proto::VariantTensorDataProto& from, Limits limits, Variant* to) {
  if (++limits.depth > kMaxVariantDepth)
    return InvalidArgument("variants are nested more than ", kMaxVariantDepth, " levels deep");
  VariantParts parts;
  parts.metadata = from.metadata();
  for (const proto::TensorProto& part : from.tensors()) {
    WEIR_ASSIGN_OR_RETURN(parts.tensors.emplace_back(), FromProto(part, limits, nullptr));
  }
  WEIR_ASSIGN_OR_RETURN(*to, JoinVariant(from.type_name(), std::move(parts)));
  return absl::OkStatus();
}

absl::Status ParseContent(const std::string& content, Limits limits, Tensor* t) {
  if (t->dtype() == DT_STRING) {
    return ParseElements(*t, content, [t](int64_t i, absl::string_view bytes) {
      t->data<std::string>()[i].assign(bytes.data(), bytes.size());
      return absl::OkStatus();
    });
  }
  if (t->dtype() == DT_VARIANT) {
    return ParseElements(*t, content, [&](int64_t i, absl::string_view bytes) {
      proto::VariantTensorDataProto from;
      if (!from.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
        return Malformed(t->dtype(), t->shape(), absl::StrCat("element ", i, " is no variant"));
      return ParseVariant(from, limits, &t->data<Variant>()[i]);
    });
  }
  if (!IsPlain(t->dtype()) || content.size() != t->num_bytes()) {
    return Malformed(
        t->dtype(), t->shape(),
        absl::StrCat("tensor_content has ", content.size(), " bytes, not ", t->num_bytes()));
  }
  if (t->dtype() == DT_BOOL) {  // a byte other than 0 and 1 is not a valid C++ bool
    std::transform(content.begin(), content.end(), t->data<bool>(), [](char c) { return c != 0; });
  } else if (!content.empty()) {
    std::memcpy(t->raw(), content.data(), content.size());
  }
  return absl::OkStatus();
}

// Returns the minimum size on the wire, in bytes, of a message with an explicit value for each
// element.
int64_t MinExplicitBytes(const proto::TensorProto& proto, DataType dtype) {
  if (!proto.tensor_content().empty()) return static_cast<int64_t>(proto.tensor_content().size());
  int64_t elements = 0;
  DispatchField(dtype, proto, [&]<class T>(const auto& field) { elements = field.size(); });
  if (dtype == DT_STRING) elements = proto.string_val_size();
  if (dtype == DT_RESOURCE) elements = proto.resource_handle_val_size();
  if (dtype == DT_VARIANT) elements = proto.variant_val_size();
  return elements * static_cast<int64_t>(ElementSize(dtype));
}

// Returns true if several elements share one value, or none, which means zero.
bool IsRepeatedValue(const proto::TensorProto& proto, DataType dtype, const Shape& shape) {
  return IsPlain(dtype) && proto.tensor_content().empty() && shape.num_elements() > 1 &&
         MinExplicitBytes(proto, dtype) <= static_cast<int64_t>(ElementSize(dtype));
}

absl::Status ChargeExpansion(const proto::TensorProto& proto, DataType dtype, const Shape& shape,
                             int64_t* budget) {
  const int64_t element = static_cast<int64_t>(ElementSize(dtype));
  int64_t bytes = 0;
  if (__builtin_mul_overflow(shape.num_elements(), element, &bytes)) {
    return Malformed(dtype, shape, "too many bytes");
  }
  const int64_t extra = bytes - MinExplicitBytes(proto, dtype);
  if (extra <= 0) return absl::OkStatus();
  if (extra > *budget) {
    return absl::ResourceExhaustedError(
        absl::StrCat("Tensor ", DataTypeName(dtype), shape.ToString(), " would take ", bytes,
                     " bytes, most of them repetitions of one value; the limit is ",
                     kExpansionBudget, " bytes in all"));
  }
  *budget -= extra;
  return absl::OkStatus();
}

absl::Status ParseObjects(const proto::TensorProto& proto, Limits limits, Tensor* t) {
  const int64_t n = t->num_elements();
  if (t->dtype() == DT_STRING) {
    const int64_t given = std::min<int64_t>(n, proto.string_val_size());
    std::string* out = t->data<std::string>();
    for (int64_t i = 0; i < given; ++i) out[i] = proto.string_val(static_cast<int>(i));
    if (given == 0 || given == n) return absl::OkStatus();
    const int64_t repeated = static_cast<int64_t>(out[given - 1].size());
    if (repeated > 0 && n - given > *limits.budget / repeated) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "Tensor ", t->Description(), " repeats a string of ", repeated, " bytes too often"));
    }
    *limits.budget -= (n - given) * repeated;
    std::fill(out + given, out + n, out[given - 1]);
  } else if (t->dtype() == DT_RESOURCE) {
    for (int64_t i = 0; i < std::min<int64_t>(n, proto.resource_handle_val_size()); ++i) {
      const proto::ResourceHandleProto& from = proto.resource_handle_val(static_cast<int>(i));
      ResourceHandle& handle = t->data<ResourceHandle>()[i];
      handle.device = from.device();
      handle.container = from.container();
      handle.name = from.name();
    }
  } else {
    for (int64_t i = 0; i < std::min<int64_t>(n, proto.variant_val_size()); ++i) {
      WEIR_RETURN_IF_ERROR(
          ParseVariant(proto.variant_val(static_cast<int>(i)), limits, &t->data<Variant>()[i]));
    }
  }
  return absl::OkStatus();
}

// Python's make_tensor_proto stores these as raw bytes if there is more than one element.
bool WritesContent(DataType dtype) {
  return IsPlain(dtype) && !IsComplex(dtype) && dtype != DT_BOOL && dtype != DT_UINT16 &&
         dtype != DT_INT4 && dtype != DT_UINT4;
}

void WriteNumbers(const Tensor& t, proto::TensorProto* p) {
  const auto append = [&]<class T>(auto* field, auto convert) {
    field->Reserve(static_cast<int>(t.num_elements()));
    for (const T& x : t.flat<T>()) field->Add(convert(x));
  };
  const auto same = [](auto x) { return x; };
  const auto value = [](auto x) { return x.value; };
  const auto bits = [](auto x) { return static_cast<int32_t>(x.bits); };
  const auto complex = [&]<class T>(auto* field) {
    for (const std::complex<T>& x : t.flat<std::complex<T>>()) {
      field->Add(x.real());
      field->Add(x.imag());
    }
  };
  switch (t.dtype()) {
    case DT_FLOAT:
      return append.template operator()<float>(p->mutable_float_val(), same);
    case DT_DOUBLE:
      return append.template operator()<double>(p->mutable_double_val(), same);
    case DT_INT8:
      return append.template operator()<int8_t>(p->mutable_int_val(), same);
    case DT_INT16:
      return append.template operator()<int16_t>(p->mutable_int_val(), same);
    case DT_INT32:
      return append.template operator()<int32_t>(p->mutable_int_val(), same);
    case DT_INT64:
      return append.template operator()<int64_t>(p->mutable_int64_val(), same);
    case DT_UINT8:
      return append.template operator()<uint8_t>(p->mutable_int_val(), same);
    case DT_UINT16:
      return append.template operator()<uint16_t>(p->mutable_int_val(), same);
    case DT_UINT32:
      return append.template operator()<uint32_t>(p->mutable_uint32_val(), same);
    case DT_UINT64:
      return append.template operator()<uint64_t>(p->mutable_uint64_val(), same);
    case DT_BOOL:
      return append.template operator()<bool>(p->mutable_bool_val(), same);
    case DT_QINT8:
      return append.template operator()<qint8>(p->mutable_int_val(), value);
    case DT_QUINT8:
      return append.template operator()<quint8>(p->mutable_int_val(), value);
    case DT_QINT16:
      return append.template operator()<qint16>(p->mutable_int_val(), value);
    case DT_QUINT16:
      return append.template operator()<quint16>(p->mutable_int_val(), value);
    case DT_QINT32:
      return append.template operator()<qint32>(p->mutable_int_val(), value);
    case DT_INT4:
      return append.template operator()<int4>(p->mutable_int_val(), value);
    case DT_UINT4:
      return append.template operator()<uint4>(p->mutable_int_val(), value);
    case DT_HALF:
      return append.template operator()<half>(p->mutable_half_val(), bits);
    case DT_BFLOAT16:
      return append.template operator()<bfloat16>(p->mutable_half_val(), bits);
    case DT_COMPLEX64:
      return complex.template operator()<float>(p->mutable_scomplex_val());
    case DT_COMPLEX128:
      return complex.template operator()<double>(p->mutable_dcomplex_val());
    default:  // the 8-bit floats
      p->set_float8_val(t.raw(), t.num_bytes());
  }
}

void WriteVariant(const Variant& variant, proto::VariantTensorDataProto* out) {
  VariantParts parts = SplitVariant(variant);
  out->set_type_name(variant.type_name);
  out->set_metadata(std::move(parts.metadata));
  for (const Tensor& part : parts.tensors) TensorToProtoFields(part, out->add_tensors());
}

// The format of ParseElements.
std::string VariantContent(const Tensor& t) {
  std::string lengths, elements;
  for (const Variant& variant : t.flat<Variant>()) {
    proto::VariantTensorDataProto element;
    WriteVariant(variant, &element);
    const size_t before = elements.size();
    element.AppendToString(&elements);
    PutVarint64(&lengths, elements.size() - before);
  }
  return lengths + elements;
}

void WriteObjects(const Tensor& t, proto::TensorProto* p) {
  if (t.dtype() == DT_STRING) {
    for (const std::string& s : t.flat<std::string>()) p->add_string_val(s);
  } else if (t.dtype() == DT_RESOURCE) {
    for (const ResourceHandle& handle : t.flat<ResourceHandle>()) {
      proto::ResourceHandleProto* out = p->add_resource_handle_val();
      out->set_device(handle.device);
      out->set_container(handle.container);
      out->set_name(handle.name);
    }
  } else {
    for (const Variant& variant : t.flat<Variant>()) WriteVariant(variant, p->add_variant_val());
  }
}

}  // namespace

absl::StatusOr<Shape> ShapeFromProto(const proto::TensorShapeProto& proto) {
  if (proto.unknown_rank()) {
    if (proto.dim_size() == 0) return Shape::UnknownRank();
    return InvalidArgument("An unknown shape must not have any dimensions set.");
  }
  absl::InlinedVector<int64_t, 6> dims;
  for (const auto& dim : proto.dim()) dims.push_back(dim.size());
  return Shape::Make(dims);
}

void ShapeToProto(const Shape& shape, proto::TensorShapeProto* proto) {
  proto->Clear();
  proto->set_unknown_rank(!shape.has_rank());
  for (const int64_t d : shape.dims()) proto->add_dim()->set_size(d);
}

namespace {

// From this size on, a copy costs more than the lost 64-byte alignment costs kernels.
constexpr size_t kMinAdoptedBytes = 1 << 16;

Tensor AdoptContent(DataType dtype, const Shape& shape, std::string* content) {
  auto* bytes = new std::string(std::move(*content));
  const auto release = [](void* taken) { delete static_cast<std::string*>(taken); };
  BufferPtr buffer(Buffer::Wrap(bytes->data(), bytes->size(), nullptr, release, bytes));
  return Tensor(dtype, shape, std::move(buffer), bytes->data());
}

// `content` (may be null) is the tensor_content; the tensor takes ownership of it if that pays off.
absl::StatusOr<Tensor> FromProto(const proto::TensorProto& proto, Limits limits,
                                 std::string* content) {
  const DataType dtype = static_cast<DataType>(proto.dtype());
  if (proto.dtype() < 0 || proto.dtype() >= kRefOffset || !IsKnown(dtype)) {
    return InvalidArgument("Cannot parse tensor from proto: invalid dtype ",
                           static_cast<int>(proto.dtype()));
  }
  absl::StatusOr<Shape> shape = ShapeFromProto(proto.tensor_shape());
  if (!shape.ok()) return Annotate(shape.status(), "Cannot parse tensor from proto");
  if (!shape->IsFullyDefined()) {
    return Malformed(dtype, *shape, "the shape of a tensor must be fully defined");
  }
  if (!proto.tensor_content().empty() && IsPlain(dtype) &&
      static_cast<uint64_t>(shape->num_elements()) > proto.tensor_content().size()) {
    return Malformed(
        dtype, *shape,
        absl::StrCat("tensor_content has only ", proto.tensor_content().size(), " bytes"));
  }
  WEIR_RETURN_IF_ERROR(ChargeExpansion(proto, dtype, *shape, limits.budget));
  if (content != nullptr && content->size() >= kMinAdoptedBytes && IsPlain(dtype) &&
      dtype != DT_BOOL &&
      content->size() == static_cast<size_t>(shape->num_elements()) * ElementSize(dtype)) {
    return AdoptContent(dtype, *shape, content);
  }
  if (IsRepeatedValue(proto, dtype, *shape)) {
    Tensor value(dtype, Shape());
    const auto read = [&value]<class T>(const auto& field) { FillFromField<T>(field, &value); };
    if (DispatchField(dtype, proto, read)) return RepeatedTensor(value, *shape);
  }
  WEIR_ASSIGN_OR_RETURN(Tensor t, Tensor::Allocate(HostAllocator(), dtype, *shape));
  if (!proto.tensor_content().empty()) {
    WEIR_RETURN_IF_ERROR(ParseContent(proto.tensor_content(), limits, &t));
    return t;
  }
  const auto fill = [&t]<class T>(const auto& field) { FillFromField<T>(field, &t); };
  if (!DispatchField(dtype, proto, fill)) WEIR_RETURN_IF_ERROR(ParseObjects(proto, limits, &t));
  return t;
}

}  // namespace

absl::StatusOr<Tensor> TensorFromProto(const proto::TensorProto& proto, int64_t* budget) {
  return FromProto(proto, {budget}, nullptr);
}

absl::StatusOr<Tensor> TensorFromProto(const proto::TensorProto& proto) {
  int64_t budget = kExpansionBudget;
  return FromProto(proto, {&budget}, nullptr);
}

absl::StatusOr<Tensor> TensorFromProto(proto::TensorProto&& proto) {
  int64_t budget = kExpansionBudget;
  return FromProto(proto, {&budget}, proto.mutable_tensor_content());
}

namespace {

void Write(const Tensor& tensor, bool content, proto::TensorProto* proto) {
  proto->Clear();
  proto->set_dtype(static_cast<proto::DataType>(tensor.dtype()));
  ShapeToProto(tensor.shape(), proto->mutable_tensor_shape());
  if (tensor.num_elements() == 0) return;
  if (content && tensor.dtype() == DT_VARIANT) {
    proto->set_tensor_content(VariantContent(tensor));
  } else if (!IsPlain(tensor.dtype())) {
    WriteObjects(tensor, proto);
  } else if (content) {
    proto->set_tensor_content(tensor.raw(), tensor.num_bytes());
  } else {
    WriteNumbers(tensor, proto);
  }
}

}  // namespace

void TensorToProto(const Tensor& tensor, proto::TensorProto* proto) {
  Write(tensor, tensor.num_elements() > 1 && WritesContent(tensor.dtype()), proto);
}

void TensorToProtoContent(const Tensor& tensor, proto::TensorProto* proto) {
  Write(tensor, /*content=*/true, proto);
}

void TensorToProtoFields(const Tensor& tensor, proto::TensorProto* proto) {
  Write(tensor, /*content=*/false, proto);
}

}  // namespace weir
