#include "weir/onnx/tensor_reader.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "weir/core/tensor/allocator.h"
#include "weir/proto/onnx.pb.h"

namespace weir::onnx {

namespace {

using proto::onnx::TensorProto;

// By TensorProto.DataType.
constexpr DataType kTypes[] = {DT_INVALID,
                               DT_FLOAT,
                               DT_UINT8,
                               DT_INT8,
                               DT_UINT16,
                               DT_INT16,
                               DT_INT32,
                               DT_INT64,
                               DT_STRING,
                               DT_BOOL,
                               DT_HALF,
                               DT_DOUBLE,
                               DT_UINT32,
                               DT_UINT64,
                               DT_COMPLEX64,
                               DT_COMPLEX128,
                               DT_BFLOAT16,
                               DT_FLOAT8_E4M3FN,
                               DT_FLOAT8_E4M3FNUZ,
                               DT_FLOAT8_E5M2,
                               DT_FLOAT8_E5M2FNUZ,
                               DT_UINT4,
                               DT_INT4};

constexpr int64_t kMaxSparseBytes = int64_t{256} << 20;

bool IsFourBits(DataType dtype) { return dtype == DT_INT4 || dtype == DT_UINT4; }

// The bytes of raw_data: two 4-bit numbers share one.
int64_t PackedBytes(DataType dtype, int64_t elements) {
  return IsFourBits(dtype) ? elements / 2 + elements % 2
                           : elements * static_cast<int64_t>(ElementSize(dtype));
}

// Spreads the 4-bit numbers in `packed`, the low half of a byte first, to one byte each.
void UnpackFourBits(const uint8_t* packed, Tensor* out) {
  uint8_t* const bytes = static_cast<uint8_t*>(out->raw());
  for (int64_t i = 0; i < out->num_elements(); ++i) {
    const uint8_t nibble = i % 2 == 0 ? packed[i / 2] & 15 : packed[i / 2] >> 4;
    const bool is_negative = out->dtype() == DT_INT4 && nibble >= 8;
    bytes[i] = is_negative ? nibble | 0xf0 : nibble;
  }
}

// Bytes of a file become elements: bools are 0 or 1.
void NormalizeBools(Tensor* tensor) {
  if (tensor->dtype() != DT_BOOL) return;
  uint8_t* const bytes = static_cast<uint8_t*>(tensor->raw());
  for (int64_t i = 0; i < tensor->num_elements(); ++i) bytes[i] = bytes[i] != 0;
}

absl::Status WrongAmount(absl::string_view what, int64_t have, int64_t needed) {
  return InvalidArgument("it has ", have, " ", what, ", and its shape needs ", needed);
}

absl::Status FillRaw(absl::string_view raw, Tensor* out) {
  const int64_t needed = PackedBytes(out->dtype(), out->num_elements());
  if (static_cast<int64_t>(raw.size()) != needed)
    return WrongAmount("bytes of raw data", static_cast<int64_t>(raw.size()), needed);
  if (IsFourBits(out->dtype())) {
    UnpackFourBits(reinterpret_cast<const uint8_t*>(raw.data()), out);
  } else if (!raw.empty()) {
    std::memcpy(out->raw(), raw.data(), raw.size());
    NormalizeBools(out);
  }
  return absl::OkStatus();
}

// Stores the numbers of a field as elements of type T.
template <class T, class Field>
absl::Status FillFrom(const Field& field, Tensor* out) {
  if (field.size() != out->num_elements())
    return WrongAmount("values", field.size(), out->num_elements());
  T* const elements = static_cast<T*>(out->raw());
  std::transform(field.begin(), field.end(), elements,
                 [](const auto& value) { return static_cast<T>(value); });
  return absl::OkStatus();
}

// Complex numbers are pairs of the field's numbers.
template <class T, class Field>
absl::Status FillComplex(const Field& field, Tensor* out) {
  if (field.size() % 2 != 0 || field.size() / 2 != out->num_elements())
    return WrongAmount("values", field.size(), 2 * out->num_elements());
  std::copy(field.begin(), field.end(), static_cast<T*>(out->raw()));
  return absl::OkStatus();
}

absl::Status FillFourBits(const TensorProto& proto, Tensor* out) {
  const int64_t needed = PackedBytes(out->dtype(), out->num_elements());
  if (proto.int32_data_size() != needed)
    return WrongAmount("values", proto.int32_data_size(), needed);
  const std::vector<uint8_t> packed(proto.int32_data().begin(), proto.int32_data().end());
  UnpackFourBits(packed.data(), out);
  return absl::OkStatus();
}

absl::Status FillStrings(const TensorProto& proto, Tensor* out) {
  if (proto.string_data_size() != out->num_elements())
    return WrongAmount("strings", proto.string_data_size(), out->num_elements());
  absl::c_copy(proto.string_data(), out->data<std::string>());
  return absl::OkStatus();
}

absl::Status FillFields(const TensorProto& proto, Tensor* out) {
  switch (out->dtype()) {
    case DT_FLOAT:
      return FillFrom<float>(proto.float_data(), out);
    case DT_DOUBLE:
      return FillFrom<double>(proto.double_data(), out);
    case DT_COMPLEX64:
      return FillComplex<float>(proto.float_data(), out);
    case DT_COMPLEX128:
      return FillComplex<double>(proto.double_data(), out);
    case DT_INT64:
      return FillFrom<int64_t>(proto.int64_data(), out);
    case DT_UINT64:
      return FillFrom<uint64_t>(proto.uint64_data(), out);
    case DT_UINT32:
      return FillFrom<uint32_t>(proto.uint64_data(), out);
    case DT_INT32:
      return FillFrom<int32_t>(proto.int32_data(), out);
    case DT_BOOL:
      return FillFrom<bool>(proto.int32_data(), out);
    case DT_STRING:
      return FillStrings(proto, out);
    case DT_INT4:
    case DT_UINT4:
      return FillFourBits(proto, out);
    default:  // integers and floats of 8 and 16 bits, as the bits that they are
      return ElementSize(out->dtype()) == 1 ? FillFrom<uint8_t>(proto.int32_data(), out)
                                            : FillFrom<uint16_t>(proto.int32_data(), out);
  }
}

// How many elements the data of the message can hold at most: a bound that is checked before memory
// is allocated.
int64_t MaxElements(const TensorProto& proto) {
  return static_cast<int64_t>(2 * proto.raw_data().size()) + 2 * int64_t{proto.int32_data_size()} +
         proto.float_data_size() + proto.int64_data_size() + proto.double_data_size() +
         proto.uint64_data_size() + proto.string_data_size();
}

bool IsNameInside(const std::string& name) {
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '/');
  return !name.empty() && name.find('\0') == std::string::npos &&
         absl::c_none_of(parts,
                         [](absl::string_view part) { return part.empty() || part == ".."; });
}

struct External {
  std::string location;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
};

absl::StatusOr<External> ExternalOf(const TensorProto& proto) {
  External out;
  for (const auto& entry : proto.external_data()) {
    uint64_t number = 0;
    const bool is_number = absl::SimpleAtoi(entry.value(), &number);
    if (entry.key() == "location") {
      out.location = entry.value();
    } else if (entry.key() == "offset" || entry.key() == "length") {
      if (!is_number)
        return InvalidArgument("its ", entry.key(), " '", absl::CHexEscape(entry.value()),
                               "' is not a number of bytes");
      if (entry.key() == "offset") out.offset = number;
      if (entry.key() == "length") out.length = number;
    }
  }
  if (!IsNameInside(out.location))
    return InvalidArgument("its data is at '", absl::CHexEscape(out.location),
                           "'; expected a file in the folder of the model");
  return out;
}

absl::StatusOr<Shape> ShapeOf(const TensorProto& proto) {
  const std::vector<int64_t> dims(proto.dims().begin(), proto.dims().end());
  if (absl::c_any_of(dims, [](int64_t dim) { return dim < 0; }))
    return InvalidArgument("it has a negative dimension");
  return Shape::Make(dims);
}

absl::StatusOr<std::vector<int64_t>> SparseIndices(const Tensor& indices, const Shape& shape,
                                                   int64_t count) {
  const int rank = shape.rank();
  const bool is_linear = indices.rank() == 1;
  if (indices.dtype() != DT_INT64 || indices.num_elements() != count * (is_linear ? 1 : rank))
    return InvalidArgument("its indices are ", indices.Description(), " for ", count, " values");
  std::vector<int64_t> out(count, 0);
  const int64_t* next = indices.data<int64_t>();
  for (int64_t& index : out) {
    for (int i = 0; i < (is_linear ? 1 : rank); ++i, ++next) {
      const int64_t limit = is_linear ? shape.num_elements() : shape.dim(i);
      if (*next < 0 || *next >= limit)
        return InvalidArgument("its index ", *next, " is out of range [0, ", limit, ")");
      index = is_linear ? *next : index * limit + *next;
    }
  }
  return out;
}

}  // namespace

absl::StatusOr<DataType> DataTypeOfOnnx(int type) {
  if (!proto::onnx::TensorProto_DataType_IsValid(type) || type == TensorProto::UNDEFINED)
    return InvalidArgument("ONNX has no element type ", type);
  if (type < static_cast<int>(std::size(kTypes))) return kTypes[type];
  return Unimplemented(
      "element type ",
      proto::onnx::TensorProto_DataType_Name(static_cast<TensorProto::DataType>(type)),
      " is not supported");
}

int OnnxTypeOf(DataType dtype) {
  const auto found = absl::c_find(kTypes, dtype);
  return found == std::end(kTypes) ? 0 : static_cast<int>(found - std::begin(kTypes));
}

absl::StatusOr<Shape> ShapeOfType(const proto::onnx::TypeProto_Tensor& type) {
  if (!type.has_shape()) return Shape::UnknownRank();
  std::vector<int64_t> dims;
  for (const auto& dim : type.shape().dim()) {
    if (dim.has_dim_value() && dim.dim_value() < 0)
      return InvalidArgument("dimension ", dims.size(), " is ", dim.dim_value());
    dims.push_back(dim.has_dim_value() ? dim.dim_value() : Shape::kUnknown);
  }
  return Shape::Make(dims);
}

absl::StatusOr<Tensor> TensorReader::Read(const TensorProto& proto) {
  const auto read = [&]() -> absl::StatusOr<Tensor> {
    WEIR_ASSIGN_OR_RETURN(const DataType dtype, DataTypeOfOnnx(proto.data_type()));
    WEIR_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(proto));
    if (proto.has_segment()) return Unimplemented("segments of tensors are not supported");
    if (proto.data_location() == TensorProto::EXTERNAL) return ReadExternal(proto, dtype, shape);
    if (shape.num_elements() > MaxElements(proto))
      return WrongAmount("values at most", MaxElements(proto), shape.num_elements());
    WEIR_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(HostAllocator(), dtype, shape));
    const bool is_raw = proto.has_raw_data() && dtype != DT_STRING;
    WEIR_RETURN_IF_ERROR(is_raw ? FillRaw(proto.raw_data(), &out) : FillFields(proto, &out));
    return out;
  };
  absl::StatusOr<Tensor> tensor = read();
  if (tensor.ok()) return tensor;
  return Annotate(tensor.status(), absl::StrCat("tensor '", absl::CHexEscape(proto.name()), "'"));
}

absl::StatusOr<Tensor> TensorReader::ReadExternal(const TensorProto& proto, DataType dtype,
                                                  const Shape& shape) {
  if (!IsPlain(dtype)) return InvalidArgument("strings cannot be in another file");
  WEIR_ASSIGN_OR_RETURN(const External external, ExternalOf(proto));
  WEIR_ASSIGN_OR_RETURN(const ReadableFile* const file, Open(external.location));
  if (shape.num_elements() > std::numeric_limits<int64_t>::max() / 16)
    return InvalidArgument("its shape ", shape.ToString(), " has too many elements");
  const uint64_t needed = PackedBytes(dtype, shape.num_elements());
  if (external.length && *external.length != needed)
    return WrongAmount("bytes", static_cast<int64_t>(*external.length), needed);
  if (external.offset > file->size() || needed > file->size() - external.offset) {
    return DataLoss(file->path(), " has ", file->size(), " bytes; the data is ", needed,
                    " bytes at ", external.offset);
  }
  WEIR_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(HostAllocator(), dtype, shape));
  if (!IsFourBits(dtype)) {
    WEIR_RETURN_IF_ERROR(file->Read(external.offset, needed, static_cast<char*>(out.raw())));
    NormalizeBools(&out);
    return out;
  }
  std::string packed(needed, '\0');
  WEIR_RETURN_IF_ERROR(file->Read(external.offset, needed, packed.data()));
  UnpackFourBits(reinterpret_cast<const uint8_t*>(packed.data()), &out);
  return out;
}

absl::StatusOr<const ReadableFile*> TensorReader::Open(const std::string& location) {
  namespace fs = std::filesystem;
  if (folder_.empty()) {
    return FailedPrecondition("its data is in the file '", location,
                              "'; read the model from its file, not from bytes");
  }
  std::unique_ptr<ReadableFile>& file = files_[location];
  if (file != nullptr) return file.get();
  const std::string path = JoinPath(folder_, location);
  std::error_code error;
  const fs::path root = fs::canonical(folder_, error), target = fs::canonical(path, error);
  const bool is_inside =
      error ||
      std::mismatch(root.begin(), root.end(), target.begin(), target.end()).first == root.end();
  if (!is_inside) return InvalidArgument(path, " is a link to ", target.string());
  WEIR_ASSIGN_OR_RETURN(file, Files().Open(path));
  return file.get();
}

absl::StatusOr<Tensor> TensorReader::ReadSparse(const proto::onnx::SparseTensorProto& proto) {
  const std::string name = absl::CHexEscape(proto.values().name());
  const auto read = [&]() -> absl::StatusOr<Tensor> {
    WEIR_ASSIGN_OR_RETURN(const Tensor values, Read(proto.values()));
    WEIR_ASSIGN_OR_RETURN(const Tensor indices, Read(proto.indices()));
    const std::vector<int64_t> dims(proto.dims().begin(), proto.dims().end());
    if (absl::c_any_of(dims, [](int64_t dim) { return dim < 0; }))
      return InvalidArgument("it has a negative dimension");
    WEIR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    if (!IsPlain(values.dtype())) return Unimplemented("sparse strings are not supported");
    const int64_t size = static_cast<int64_t>(ElementSize(values.dtype()));
    if (shape.num_elements() > kMaxSparseBytes / size)
      return absl::ResourceExhaustedError(
          absl::StrCat("as a dense tensor of shape ", shape.ToString(), " it is too large"));
    WEIR_ASSIGN_OR_RETURN(const std::vector<int64_t> positions,
                          SparseIndices(indices, shape, values.num_elements()));
    Tensor out = Tensor::Zeros(values.dtype(), shape);
    for (size_t i = 0; i < positions.size(); ++i) {
      std::memcpy(static_cast<char*>(out.raw()) + positions[i] * size,
                  static_cast<const char*>(values.raw()) + static_cast<int64_t>(i) * size, size);
    }
    return out;
  };
  absl::StatusOr<Tensor> tensor = read();
  if (tensor.ok()) return tensor;
  return Annotate(tensor.status(), absl::StrCat("sparse tensor '", name, "'"));
}

}  // namespace weir::onnx
