#include "weir/tools/ckpt/hdf5_types.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace weir::tools {

namespace {

// The bits of a floating-point type, from the lowest: mantissa, exponent, sign.
struct FloatLayout {
  DataType dtype;
  size_t bytes, exponent_bits, mantissa_bits, bias;
};
constexpr FloatLayout kFloats[] = {{DT_HALF, 2, 5, 10, 15},
                                   {DT_BFLOAT16, 2, 8, 7, 127},
                                   {DT_FLOAT, 4, 8, 23, 127},
                                   {DT_DOUBLE, 8, 11, 52, 1023}};

struct IntegerLayout {
  DataType dtype;
  size_t bytes;
  H5T_sign_t sign;
};
constexpr IntegerLayout kIntegers[] = {{DT_INT8, 1, H5T_SGN_2},      {DT_INT16, 2, H5T_SGN_2},
                                       {DT_INT32, 4, H5T_SGN_2},     {DT_INT64, 8, H5T_SGN_2},
                                       {DT_UINT8, 1, H5T_SGN_NONE},  {DT_UINT16, 2, H5T_SGN_NONE},
                                       {DT_UINT32, 4, H5T_SGN_NONE}, {DT_UINT64, 8, H5T_SGN_NONE}};

constexpr size_t kByteBits = 8;

Hdf5Handle CopyType(hid_t type) { return {H5Tcopy(type), H5Tclose}; }

Hdf5Handle FloatType(const FloatLayout& layout) {
  Hdf5Handle type = CopyType(layout.bytes == sizeof(double) ? H5T_IEEE_F64LE : H5T_IEEE_F32LE);
  if (layout.bytes == 2) {
    H5Tset_fields(type.get(), layout.exponent_bits + layout.mantissa_bits, layout.mantissa_bits,
                  layout.exponent_bits, 0, layout.mantissa_bits);
    H5Tset_size(type.get(), layout.bytes);
    H5Tset_ebias(type.get(), layout.bias);
  }
  return type;
}

Hdf5Handle FloatType(DataType dtype) {
  for (const FloatLayout& layout : kFloats) {
    if (layout.dtype == dtype) return FloatType(layout);
  }
  return {};
}

Hdf5Handle IntegerType(const IntegerLayout& layout) {
  Hdf5Handle type = CopyType(H5T_STD_I8LE);
  H5Tset_precision(type.get(), kByteBits * layout.bytes);  // makes it larger, too
  H5Tset_sign(type.get(), layout.sign);
  return type;
}

// As h5py writes numpy.bool_.
Hdf5Handle BoolType() {
  Hdf5Handle type(H5Tenum_create(H5T_STD_I8LE), H5Tclose);
  const int8_t no = 0, yes = 1;
  H5Tenum_insert(type.get(), "FALSE", &no);
  H5Tenum_insert(type.get(), "TRUE", &yes);
  return type;
}

// As h5py writes numpy's complex numbers.
Hdf5Handle ComplexType(DataType part) {
  const Hdf5Handle number = FloatType(part);
  const size_t bytes = ElementSize(part);
  Hdf5Handle type(H5Tcreate(H5T_COMPOUND, 2 * bytes), H5Tclose);
  H5Tinsert(type.get(), "r", 0, number.get());
  H5Tinsert(type.get(), "i", bytes, number.get());
  return type;
}

bool FillsItsBytes(hid_t type) {
  return H5Tget_offset(type) == 0 && H5Tget_precision(type) == kByteBits * H5Tget_size(type);
}

DataType IntegerOf(hid_t type) {
  for (const IntegerLayout& layout : kIntegers) {
    if (FillsItsBytes(type) && layout.bytes == H5Tget_size(type) &&
        layout.sign == H5Tget_sign(type))
      return layout.dtype;
  }
  return DT_INVALID;
}

DataType FloatOf(hid_t type) {
  size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0;
  if (!FillsItsBytes(type) || H5Tget_norm(type) != H5T_NORM_IMPLIED ||
      H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) < 0)
    return DT_INVALID;
  for (const FloatLayout& layout : kFloats) {
    if (H5Tget_size(type) == layout.bytes && sign == kByteBits * layout.bytes - 1 &&
        exponent == layout.mantissa_bits && exponent_bits == layout.exponent_bits &&
        mantissa == 0 && mantissa_bits == layout.mantissa_bits && H5Tget_ebias(type) == layout.bias)
      return layout.dtype;
  }
  return DT_INVALID;
}

DataType EnumOf(hid_t type) {
  if (H5Tget_size(type) != 1 || H5Tget_nmembers(type) != 2) return DT_INVALID;
  for (unsigned i = 0; i < 2; ++i) {
    int8_t value = 0;
    if (H5Tget_member_value(type, i, &value) < 0 || value != static_cast<int8_t>(i))
      return DT_INVALID;
  }
  return DT_BOOL;
}

DataType ComplexOf(hid_t type) {
  if (H5Tget_nmembers(type) != 2) return DT_INVALID;
  DataType parts[2] = {DT_INVALID, DT_INVALID};
  for (unsigned i = 0; i < 2; ++i) {
    char* const name = H5Tget_member_name(type, i);
    const bool is_named = name != nullptr && std::strcmp(name, i == 0 ? "r" : "i") == 0;
    H5free_memory(name);
    const Hdf5Handle member(H5Tget_member_type(type, i), H5Tclose);
    if (!is_named || !member.ok() || H5Tget_class(member.get()) != H5T_FLOAT) return DT_INVALID;
    parts[i] = FloatOf(member.get());
  }
  if (parts[0] != parts[1]) return DT_INVALID;
  return parts[0] == DT_FLOAT ? DT_COMPLEX64 : parts[0] == DT_DOUBLE ? DT_COMPLEX128 : DT_INVALID;
}

}  // namespace

void SilenceHdf5Errors() { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

std::string LastHdf5Error() {
  std::string text;
  const auto take = [](unsigned n, const H5E_error2_t* error, void* out) -> herr_t {
    if (n == 0 && error->desc != nullptr) *static_cast<std::string*>(out) = error->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take, &text);
  return absl::StrCat("HDF5: ", text.empty() ? "unknown error" : text);
}

bool Hdf5Holds(DataType dtype) {
  const auto is_it = [&](const auto& layout) { return layout.dtype == dtype; };
  return dtype == DT_BOOL || IsComplex(dtype) ||
         std::any_of(std::begin(kIntegers), std::end(kIntegers), is_it) ||
         std::any_of(std::begin(kFloats), std::end(kFloats), is_it);
}

Hdf5Handle Hdf5FileType(DataType dtype) {
  if (dtype == DT_BOOL) return BoolType();
  if (dtype == DT_BFLOAT16) return {H5Tcreate(H5T_OPAQUE, ElementSize(dtype)), H5Tclose};
  if (dtype == DT_COMPLEX64) return ComplexType(DT_FLOAT);
  if (dtype == DT_COMPLEX128) return ComplexType(DT_DOUBLE);
  for (const IntegerLayout& layout : kIntegers) {
    if (layout.dtype == dtype) return IntegerType(layout);
  }
  return FloatType(dtype);
}

DataType DtypeOfHdf5(hid_t type, bool is_bfloat16) {
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return IntegerOf(type);
    case H5T_FLOAT:
      return FloatOf(type);
    case H5T_ENUM:
      return EnumOf(type);
    case H5T_COMPOUND:
      return ComplexOf(type);
    case H5T_OPAQUE:
      return is_bfloat16 && H5Tget_size(type) == 2 ? DT_BFLOAT16 : DT_INVALID;
    default:
      return DT_INVALID;
  }
}

Hdf5Handle Hdf5MemoryType(hid_t file_type, DataType dtype) {
  const H5T_class_t kind = H5Tget_class(file_type);
  if (kind == H5T_OPAQUE || kind == H5T_ENUM) return CopyType(file_type);
  return dtype == DT_BFLOAT16 ? FloatType(dtype) : Hdf5FileType(dtype);
}

// A range begins within a row of some dimension, goes on with whole rows, and ends within one. Each
// box is the largest that begins at the current element: some rows of the outermost dimension whose
// rows begin there and fit.
absl::Status ForEachBox(
    absl::Span<const int64_t> dims, uint64_t first, uint64_t count,
    absl::FunctionRef<absl::Status(const hsize_t* start, const hsize_t* size, uint64_t elements)>
        visit) {
  const size_t rank = dims.size();
  std::vector<uint64_t> stride(rank, 1);  // elements of a row
  for (size_t d = rank; d-- > 1;) stride[d - 1] = stride[d] * static_cast<uint64_t>(dims[d]);
  std::vector<hsize_t> start(rank), size(rank);
  for (const uint64_t end = first + count; first < end;) {
    size_t outer = 0;
    while (first % stride[outer] != 0 || end - first < stride[outer]) ++outer;
    for (size_t d = 0; d < rank; ++d) {
      const auto dim = static_cast<uint64_t>(dims[d]);
      start[d] = first / stride[d] % dim;
      size[d] = d < outer ? 1 : dim;
    }
    size[outer] = std::min<hsize_t>((end - first) / stride[outer], size[outer] - start[outer]);
    const uint64_t elements = size[outer] * stride[outer];
    WEIR_RETURN_IF_ERROR(visit(start.data(), size.data(), elements));
    first += elements;
  }
  return absl::OkStatus();
}

absl::Status TransferRange(
    hid_t dataset, absl::Span<const int64_t> dims, uint64_t first, uint64_t count,
    absl::FunctionRef<herr_t(hid_t memory, hid_t file, uint64_t offset)> transfer) {
  if (dims.empty()) {
    if (transfer(H5S_ALL, H5S_ALL, 0) >= 0) return absl::OkStatus();
    return DataLoss(LastHdf5Error());
  }
  const Hdf5Handle space(H5Dget_space(dataset), H5Sclose);
  uint64_t offset = 0;
  return ForEachBox(
      dims, first, count, [&](const hsize_t* start, const hsize_t* size, uint64_t elements) {
        const hsize_t flat = elements;
        const Hdf5Handle memory(H5Screate_simple(1, &flat, nullptr), H5Sclose);
        if (H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start, nullptr, size, nullptr) < 0 ||
            transfer(memory.get(), space.get(), offset) < 0)
          return DataLoss(LastHdf5Error());
        offset += elements;
        return absl::OkStatus();
      });
}

}  // namespace weir::tools
