#include "weir/tools/lib/file_contents.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "weir/core/io/npy.h"
#include "weir/core/io/record_frame.h"
#include "weir/tools/lib/csv.h"
#include "weir/tools/lib/gzip.h"
#include "weir/tools/lib/json_value.h"
#include "weir/tools/lib/npz.h"

namespace weir::tools {

namespace {

enum class Kind { kNpy, kNpz, kImage, kRecords, kCsv, kJson, kJsonLines, kOther };

bool IsRecord(absl::string_view bytes) {
  return bytes.size() >= kRecordHeaderBytes &&
         ChecksumAfter(bytes.data(), kRecordLengthBytes).matches();
}

bool EndsWithOneOf(absl::string_view name, std::initializer_list<const char*> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](const char* ending) { return absl::EndsWithIgnoreCase(name, ending); });
}

Kind KindOf(const FileContents& file, DataType dtype) {
  const absl::string_view bytes = file.bytes;
  if (absl::StartsWith(bytes, "\x93NUMPY")) return Kind::kNpy;
  if (absl::StartsWith(bytes, "PK\3\4") || absl::StartsWith(bytes, "PK\5\6")) return Kind::kNpz;
  if (IsImage(bytes)) return Kind::kImage;
  if (IsRecord(bytes)) return Kind::kRecords;
  const absl::string_view name = file.name;
  if (EndsWithOneOf(name, {".npy"})) return Kind::kNpy;
  if (EndsWithOneOf(name, {".npz"})) return Kind::kNpz;
  if (EndsWithOneOf(name, {".tfrecord", ".tfrecords"})) return Kind::kRecords;
  if (EndsWithOneOf(name, {".csv", ".tsv"})) return Kind::kCsv;
  if (EndsWithOneOf(name, {".json"})) return Kind::kJson;
  if (EndsWithOneOf(name, {".jsonl", ".ndjson"})) return Kind::kJsonLines;
  if (dtype != DT_STRING && EndsWithOneOf(name, {".txt"})) return Kind::kCsv;
  return Kind::kOther;
}

// The character between the fields: the first of these in the first line.
char SeparatorOf(absl::string_view text, DataType dtype) {
  const absl::string_view line = text.substr(0, text.find('\n'));
  for (const char c : {',', '\t', ';'}) {
    if (line.find(c) != absl::string_view::npos) return c;
  }
  return dtype == DT_STRING ? ',' : ' ';
}

// Replaces an unknown dimension so that the shape has this number of elements, if one does.
Shape FillUnknown(const Shape& shape, int64_t elements) {
  Shape known, full = shape;
  int unknown = -1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape.dim(i) == Shape::kUnknown) {
      unknown = i;
    } else {
      known.AddDim(shape.dim(i));
    }
  }
  const int64_t others = known.num_elements();
  if (unknown >= 0) full.set_dim(unknown, others == 0 ? 0 : elements / others);
  return full;
}

// Gives a matrix of lines and fields the dimensions that the tensor has.
absl::StatusOr<Tensor> FitRows(const Tensor& matrix, const Shape& shape) {
  if (!shape.has_rank() || shape.IsCompatibleWith(matrix.shape())) return matrix;
  const int64_t rows = matrix.dim(0), columns = matrix.dim(1);
  Shape fitted;
  if (shape.rank() == 1 && (columns == 1 || rows == 1)) {
    fitted = Shape({rows * columns});
  } else if (shape.rank() > 1) {
    fitted = FillUnknown(shape.Sub(1), columns);
    fitted.InsertDim(0, rows);
  }
  if (fitted.num_elements() != rows * columns || !shape.IsCompatibleWith(fitted)) {
    return InvalidArgument("it has ", rows, " lines of ", columns,
                           " fields, which do not fit the tensor's shape ", shape.ToString());
  }
  return matrix.Reshaped(fitted);
}

absl::StatusOr<Tensor> ParseRecords(absl::string_view bytes, const ValueSpec& spec) {
  if (spec.dtype != DT_STRING) {
    return InvalidArgument(
        "a TFRecord file holds strings, such as serialized examples, but the "
        "tensor is of type ",
        DataTypeName(spec.dtype));
  }
  std::vector<std::string> records;
  for (const absl::string_view all = bytes; !bytes.empty();) {
    const size_t offset = all.size() - bytes.size();
    if (!IsRecord(bytes)) {
      return DataLoss("corrupted record at ", offset,
                      bytes.size() < kRecordHeaderBytes ? ": it is truncated" : ": wrong checksum");
    }
    const uint64_t size = RecordLength(bytes.data());
    bytes.remove_prefix(kRecordHeaderBytes);
    if (bytes.size() < kRecordFooterBytes || bytes.size() - kRecordFooterBytes < size)
      return DataLoss("corrupted record at ", offset, ": it is truncated");
    if (!ChecksumAfter(bytes.data(), size).matches())
      return DataLoss("corrupted record at ", offset, ": wrong checksum");
    records.emplace_back(bytes.substr(0, size));
    bytes.remove_prefix(size + kRecordFooterBytes);
  }
  Tensor tensor(DT_STRING, {static_cast<int64_t>(records.size())});
  std::move(records.begin(), records.end(), tensor.data<std::string>());
  return spec.shape.IsScalar() && tensor.num_elements() == 1 ? tensor.Reshaped({}) : tensor;
}

absl::StatusOr<Tensor> ParseNpzMember(std::string bytes, const std::string& member,
                                      const ValueSpec& spec) {
  WEIR_ASSIGN_OR_RETURN(NpzReader npz, NpzReader::Open(std::move(bytes)));
  const std::vector<std::string> names = npz.names();
  if (!member.empty()) return npz.Read(member);
  for (const std::string& name : {spec.name, spec.name + ":0"}) {  // as a tensor's name
    if (npz.contains(name)) return npz.Read(name);
  }
  if (names.size() == 1) return npz.Read(names[0]);
  return NotFound("no array '", spec.name, "'; append :NAME, one of: ", absl::StrJoin(names, ", "));
}

absl::StatusOr<Tensor> ParseText(Kind kind, absl::string_view bytes, const std::string& member,
                                 const ValueSpec& spec) {
  const std::string& name = member.empty() ? spec.name : member;
  if (kind == Kind::kCsv) {
    WEIR_ASSIGN_OR_RETURN(const Tensor matrix,
                          ParseCsv(bytes, {.dtype = spec.dtype,
                                           .rounding = spec.rounding,
                                           .separator = SeparatorOf(bytes, spec.dtype),
                                           .column = name,
                                           .needs_column = !member.empty()}));
    return FitRows(matrix, spec.shape);
  }
  const JsonOptions options{.dtype = spec.dtype,
                            .rounding = spec.rounding,
                            .member = name,
                            .needs_member = !member.empty()};
  WEIR_ASSIGN_OR_RETURN(const Tensor value, kind == Kind::kJson ? ParseJson(bytes, options)
                                                                : ParseJsonLines(bytes, options));
  return FitString(value, spec.shape);
}

// Returns the shape that the elements have in memory.
absl::StatusOr<Shape> ShapeOfElements(int64_t elements, const Shape& shape) {
  if (!shape.has_rank()) return Shape({elements});
  const Shape full = FillUnknown(shape, elements);
  if (full.num_elements() == elements) return full;
  return InvalidArgument("its ", elements, " elements do not fit the tensor's shape ",
                         shape.ToString(),
                         full.IsFullyDefined() ? ""
                                               : ", of which only one dimension may be "
                                                 "unknown; give a .npy file");
}

absl::StatusOr<FileContents> Decompressed(const FileContents& file) {
  WEIR_ASSIGN_OR_RETURN(std::string bytes, Gunzip(file.bytes));
  absl::string_view name = file.name;
  absl::ConsumeSuffix(&name, ".gz");
  return FileContents{std::move(bytes), std::string(name)};
}

}  // namespace

Tensor FitString(const Tensor& value, const Shape& shape) {
  if (value.rank() != 0 || value.dtype() != DT_STRING) return value;
  Shape ones;
  for (int i = 0; i < shape.rank(); ++i) ones.AddDim(1);
  return shape.has_rank() && shape.IsCompatibleWith(ones) ? value.Reshaped(ones) : value;
}

Tensor AsCarrier(const Tensor& tensor, DataType dtype) {
  const bool carrier = IsQuantized(dtype) || dtype >= DT_FLOAT8_E5M2;
  if (!carrier || !IsInteger(tensor.dtype()) || ElementSize(dtype) != ElementSize(tensor.dtype())) {
    return tensor;
  }
  return tensor.BitcastTo(dtype);
}

absl::StatusOr<Tensor> ValueOfBytes(std::string bytes, const ValueSpec& spec) {
  if (spec.dtype == DT_STRING) return FitString(Tensor::Scalar(std::move(bytes)), spec.shape);
  const size_t size = ElementSize(spec.dtype);
  if (!IsPlain(spec.dtype)) {
    return InvalidArgument("bytes are no value of a tensor of type ", DataTypeName(spec.dtype));
  }
  if (bytes.size() % size != 0) {
    return InvalidArgument("its ", bytes.size(), " bytes are no multiple of the ", size,
                           " bytes of an element of type ", DataTypeName(spec.dtype));
  }
  WEIR_ASSIGN_OR_RETURN(const Shape shape,
                        ShapeOfElements(static_cast<int64_t>(bytes.size() / size), spec.shape));
  WEIR_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(HostAllocator(), spec.dtype, shape));
  if (!bytes.empty()) std::memcpy(tensor.raw(), bytes.data(), bytes.size());
  if (spec.dtype == DT_BOOL) {
    auto* const data = static_cast<char*>(tensor.raw());
    for (size_t i = 0; i < bytes.size(); ++i) data[i] = data[i] != 0;
  }
  return tensor;
}

namespace {

// Converts a value to the tensor's dtype.
absl::StatusOr<Tensor> ConvertTo(const Tensor& tensor, const ValueSpec& spec) {
  absl::StatusOr<Tensor> converted =
      ConvertTensor(AsCarrier(tensor, spec.dtype), spec.dtype, spec.rounding);
  if (converted.ok() || spec.rounding == Rounding::kAllowed ||
      !ConvertTensor(tensor, spec.dtype, Rounding::kAllowed).ok()) {
    return converted;
  }
  return InvalidArgument(converted.status().message(), "; --round allows rounding");
}

absl::StatusOr<Tensor> ParseKind(Kind kind, FileContents file, const std::string& member,
                                 const ValueSpec& spec) {
  const bool has_members =
      kind == Kind::kNpz || kind == Kind::kCsv || kind == Kind::kJson || kind == Kind::kJsonLines;
  if (!member.empty() && !has_members)
    return InvalidArgument("it has a single value, and no member '", member, "'");
  switch (kind) {
    case Kind::kNpy: {
      WEIR_ASSIGN_OR_RETURN(const Tensor array, ParseNpy(file.bytes));
      const bool is_bfloat16 = absl::EndsWith(file.name, ".bf16.npy") && array.dtype() == DT_UINT16;
      return ConvertTo(is_bfloat16 ? array.BitcastTo(DT_BFLOAT16) : array, spec);
    }
    case Kind::kNpz: {
      WEIR_ASSIGN_OR_RETURN(const Tensor array,
                            ParseNpzMember(std::move(file.bytes), member, spec));
      return ConvertTo(array, spec);
    }
    case Kind::kImage:
      if (spec.dtype == DT_STRING) return ValueOfBytes(std::move(file.bytes), spec);
      return DecodeImageFor(file.bytes, spec.dtype, spec.shape, spec.pixels);
    case Kind::kRecords:
      return ParseRecords(file.bytes, spec);
    case Kind::kOther:
      if (spec.dtype == DT_STRING) return ValueOfBytes(std::move(file.bytes), spec);
      return InvalidArgument(
          "its contents are no array (.npy, .npz), image, or TFRecord file, and its name does not "
          "end in .csv, .tsv, .txt, .json or .jsonl; @FILE reads bytes as elements of type ",
          DataTypeName(spec.dtype));
    default:
      return ParseText(kind, file.bytes, member, spec);
  }
}

}  // namespace

absl::StatusOr<Tensor> ParseContents(FileContents file, const std::string& member,
                                     const ValueSpec& spec) {
  const Kind kind = KindOf(file, spec.dtype);
  if (!IsGzip(file.bytes)) return ParseKind(kind, std::move(file), member, spec);
  WEIR_ASSIGN_OR_RETURN(FileContents plain, Decompressed(file));
  const Kind plain_kind = KindOf(plain, spec.dtype);
  // A string that is compressed stays as it is.
  const bool is_bytes = spec.dtype == DT_STRING && plain_kind == Kind::kOther;
  return ParseKind(plain_kind, std::move(is_bytes ? file : plain), member, spec);
}

absl::StatusOr<std::vector<std::string>> NamesInContents(FileContents file) {
  if (IsGzip(file.bytes)) {
    WEIR_ASSIGN_OR_RETURN(file, Decompressed(file));
  }
  std::vector<std::string> names;
  const Kind kind = KindOf(file, DT_FLOAT);
  if (kind == Kind::kNpz) {
    WEIR_ASSIGN_OR_RETURN(const NpzReader npz, NpzReader::Open(std::move(file.bytes)));
    names = npz.names();
  } else if (kind == Kind::kCsv) {
    WEIR_ASSIGN_OR_RETURN(names, CsvFields(file.bytes, SeparatorOf(file.bytes, DT_FLOAT)));
  } else if (kind == Kind::kJson) {
    names = JsonNames(file.bytes);
  } else if (kind == Kind::kJsonLines) {
    names = JsonLinesNames(file.bytes);
  }
  if (!names.empty()) return names;
  return InvalidArgument(
      "it has no named values: a .npz file, a .csv file whose first line has "
      "names, and JSON objects (.json, .jsonl) have");
}

}  // namespace weir::tools
