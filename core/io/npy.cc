#include "weir/core/io/npy.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "weir/core/io/coding.h"
#include "weir/core/io/file.h"

namespace weir {

namespace {

// The format: the magic string, two version bytes, the header length (two bytes in version 1, four
// in later versions), the header, and the elements. The header is a Python dictionary in ASCII
// (UTF-8 in version 3), padded with blanks so that the elements start at a multiple of 64:
//   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
constexpr absl::string_view kMagic("\x93NUMPY", 6);
constexpr size_t kAlignment = 64;

struct ElementType {
  absl::string_view code;
  DataType dtype;
};
constexpr ElementType kElementTypes[] = {
    {"b1", DT_BOOL},      {"i1", DT_INT8},       {"i2", DT_INT16},  {"i4", DT_INT32},
    {"i8", DT_INT64},     {"u1", DT_UINT8},      {"u2", DT_UINT16}, {"u4", DT_UINT32},
    {"u8", DT_UINT64},    {"f2", DT_HALF},       {"f4", DT_FLOAT},  {"f8", DT_DOUBLE},
    {"c8", DT_COMPLEX64}, {"c16", DT_COMPLEX128}};

// Parses the header's dictionary: three known keys, in any order.
class HeaderParser {
 public:
  explicit HeaderParser(absl::string_view text) : text_(text) {}

  absl::StatusOr<NpyHeader> Parse() {
    NpyHeader header;
    bool seen[3] = {};
    if (!Consume("{")) return Bad();
    while (!Consume("}")) {
      std::string key;
      if (!ParseString(&key) || !Consume(":")) return Bad();
      const int which = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : -1;
      if (which < 0 || seen[which])
        return InvalidArgument("its header has the unknown or duplicate key '", key, "'");
      seen[which] = true;
      WEIR_RETURN_IF_ERROR(ParseValue(which, &header));
      if (!Consume(",") && !Peek('}')) return Bad();
    }
    SkipBlanks();
    if (!text_.empty() || !(seen[0] && seen[1] && seen[2])) return Bad();
    return header;
  }

 private:
  static absl::Status Bad() {
    return InvalidArgument("its header is not a dictionary of descr, fortran_order and shape");
  }

  absl::Status ParseValue(int which, NpyHeader* header) {
    if (which == 0) return ParseType(header);
    if (which == 2) return ParseShape(&header->shape);
    header->fortran_order = Consume("True");
    return header->fortran_order || Consume("False") ? absl::OkStatus() : Bad();
  }

  absl::Status ParseType(NpyHeader* header) {
    if (Peek('[')) return InvalidArgument("it holds records, which are not supported");
    std::string text;
    if (!ParseString(&text) || text.empty()) return Bad();
    absl::string_view code = text;
    const char order = code.front();
    if (absl::StrContains("<>=|", absl::string_view(&order, 1))) code.remove_prefix(1);
    if (code == "?") code = "b1";
    for (const ElementType& type : kElementTypes) {
      if (type.code == code) header->dtype = type.dtype;
    }
    if (int64_t length = 0; (absl::StartsWith(code, "S") || absl::StartsWith(code, "U")) &&
                            absl::SimpleAtoi(code.substr(1), &length) && length > 0 &&
                            length <= std::numeric_limits<int32_t>::max()) {
      header->dtype = DT_STRING;
      header->is_unicode = code[0] == 'U';
      header->text_bytes = static_cast<size_t>(length) * (header->is_unicode ? 4 : 1);
    }
    if (header->dtype == DT_INVALID) {
      return InvalidArgument("its element type '", text, "' has no plain dtype");
    }
    header->big_endian = order == '>';
    return absl::OkStatus();
  }

  absl::Status ParseShape(Shape* shape) {
    std::vector<int64_t> dims;
    if (!Consume("(")) return Bad();
    while (!Consume(")")) {
      size_t digits = 0;
      SkipBlanks();
      while (digits < text_.size() && absl::ascii_isdigit(text_[digits])) ++digits;
      int64_t extent = 0;
      if (!absl::SimpleAtoi(text_.substr(0, digits), &extent)) return Bad();
      text_.remove_prefix(digits);
      dims.push_back(extent);
      if (!Consume(",") && !Peek(')')) return Bad();
    }
    WEIR_ASSIGN_OR_RETURN(*shape, Shape::Make(dims));
    return absl::OkStatus();
  }

  bool ParseString(std::string* out) {
    SkipBlanks();
    if (text_.empty() || (text_[0] != '\'' && text_[0] != '"')) return false;
    const size_t end = text_.find(text_[0], 1);
    if (end == absl::string_view::npos) return false;
    *out = std::string(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return true;
  }

  void SkipBlanks() { text_ = absl::StripLeadingAsciiWhitespace(text_); }
  bool Consume(absl::string_view token) {
    SkipBlanks();
    return absl::ConsumePrefix(&text_, token);
  }
  bool Peek(char c) {
    SkipBlanks();
    return !text_.empty() && text_[0] == c;
  }

  absl::string_view text_;
};

// Where the dictionary is in a file.
struct HeaderRange {
  size_t begin, size;
};

// Needs only the bytes before the dictionary.
absl::StatusOr<HeaderRange> FindHeader(absl::string_view bytes) {
  const size_t fixed = kMagic.size() + 2;
  if (!absl::StartsWith(bytes, kMagic) || bytes.size() < fixed + 2) {
    return InvalidArgument("it is not a .npy file");
  }
  const uint8_t major = bytes.at(kMagic.size());
  if (major < 1 || major > 3) {
    return InvalidArgument("its format version is ", major, "; 1, 2 and 3 are known");
  }
  const size_t width = major == 1 ? 2 : 4;
  if (bytes.size() < fixed + width) return InvalidArgument("it is truncated within the header");
  size_t length = 0;
  for (size_t i = 0; i < width; ++i) {
    length |= static_cast<size_t>(static_cast<uint8_t>(bytes[fixed + i])) << (8 * i);
  }
  return HeaderRange{fixed + width, length};
}

// Returns the size of the numbers that make up an element: a complex number consists of two.
size_t NumberSize(DataType dtype) {
  return IsComplex(dtype) ? ElementSize(dtype) / 2 : ElementSize(dtype);
}

void SwapBytes(size_t size, char* data, size_t bytes) {
  for (size_t i = 0; i < bytes; i += size) std::reverse(data + i, data + i + size);
}

// Converts elements from column-major to row-major order.
void CopyFromFortranOrder(const char* from, const Shape& shape, size_t size, char* to) {
  const int rank = shape.rank();
  std::vector<int64_t> stride(rank, 1), index(rank, 0);
  for (int i = 1; i < rank; ++i) stride[i] = stride[i - 1] * shape.dim(i - 1);
  int64_t at = 0;
  for (int64_t n = shape.num_elements(); n > 0; --n, to += size) {
    std::memcpy(to, from + at * size, size);
    for (int i = rank - 1; i >= 0; --i) {
      at += stride[i];
      if (++index[i] < shape.dim(i)) break;
      at -= index[i] * stride[i];
      index[i] = 0;
    }
  }
}

// Appends a code point in UTF-8. Returns false for what is none.
bool AppendUtf8(uint32_t c, std::string* out) {
  constexpr uint32_t kTwoBytes = 0x80, kThreeBytes = 0x800, kFourBytes = 0x10000, kEnd = 0x110000;
  constexpr uint32_t kFirstSurrogate = 0xd800, kPastSurrogates = 0xe000;
  if (c >= kEnd || (c >= kFirstSurrogate && c < kPastSurrogates)) return false;
  const auto rest = [&](int shift) { out->push_back(static_cast<char>(0x80 | (c >> shift & 63))); };
  if (c < kTwoBytes) {
    out->push_back(static_cast<char>(c));
    return true;
  }
  if (c < kThreeBytes) {
    out->push_back(static_cast<char>(0xc0 | c >> 6));
  } else if (c < kFourBytes) {
    out->push_back(static_cast<char>(0xe0 | c >> 12));
  } else {
    out->push_back(static_cast<char>(0xf0 | c >> 18));
    rest(12);
  }
  if (c >= kThreeBytes) rest(6);
  rest(0);
  return true;
}

// Returns a string without the zeros at its end.
absl::StatusOr<std::string> DecodeText(std::string bytes, const NpyHeader& header) {
  if (header.is_unicode) {
    if (header.big_endian) SwapBytes(sizeof(uint32_t), bytes.data(), bytes.size());
    std::string text;
    for (size_t i = 0; i < bytes.size(); i += sizeof(uint32_t)) {
      if (!AppendUtf8(LoadFixed32(bytes.data() + i), &text))
        return InvalidArgument("a string holds what is no character");
    }
    bytes = std::move(text);
  }
  bytes.resize(bytes.find_last_not_of('\0') + 1);
  return bytes;
}

absl::StatusOr<Tensor> ParseStrings(const NpyHeader& header, absl::string_view bytes) {
  const size_t size = header.text_bytes;
  const auto elements = static_cast<size_t>(header.shape.num_elements());
  std::string in_order;
  if (header.fortran_order && elements > 0) {
    in_order.resize(bytes.size());
    CopyFromFortranOrder(bytes.data(), header.shape, size, in_order.data());
    bytes = in_order;
  }
  WEIR_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(HostAllocator(), DT_STRING, header.shape));
  for (size_t i = 0; i < elements; ++i) {
    WEIR_ASSIGN_OR_RETURN(tensor.data<std::string>()[i],
                          DecodeText(std::string(bytes.substr(i * size, size)), header));
  }
  return tensor;
}

// Returns an element type as a header describes it: "<f4", "|S5".
std::string DescriptionOf(DataType dtype, size_t text_bytes) {
  if (dtype == DT_STRING) return absl::StrCat("|S", text_bytes);
  absl::string_view code;
  for (const ElementType& type : kElementTypes) {
    if (type.dtype == dtype) code = type.code;
  }
  const size_t size = ElementSize(dtype);
  const char* const order = size == 1 ? "|" : "<";
  if (!code.empty()) return absl::StrCat(order, code);
  // The remaining types are storage-only types of an integer, and bfloat16.
  const bool is_signed =
      dtype == DT_QINT8 || dtype == DT_QINT16 || dtype == DT_QINT32 || dtype == DT_INT4;
  return absl::StrCat(order, is_signed ? "i" : "u", size);
}

// Returns the header of a file, with all that stands before it.
std::string HeaderText(const std::string& description, const Shape& shape) {
  std::string header =
      absl::StrCat("{'descr': '", description, "', 'fortran_order': False, 'shape': (",
                   absl::StrJoin(shape.dims(), ", "), shape.rank() == 1 ? ",), }" : "), }");
  const size_t fixed = kMagic.size() + 4;
  header.resize((fixed + header.size() + kAlignment) / kAlignment * kAlignment - fixed, ' ');
  header.back() = '\n';
  std::string out(kMagic);
  out.append(
      {1, 0, static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)});
  return out + header;
}

constexpr uint64_t kMaxTextBytes = uint64_t{1} << 31;

absl::StatusOr<std::string> SerializeStrings(const Tensor& tensor) {
  size_t longest = 1;  // NumPy has no strings of length zero
  for (const std::string& text : tensor.flat<std::string>()) {
    if (!text.empty() && text.back() == '\0')
      return InvalidArgument("a string ends in a zero byte, which a .npy file cannot hold");
    longest = std::max(longest, text.size());
  }
  const auto elements = static_cast<uint64_t>(tensor.num_elements());
  if (elements > kMaxTextBytes / longest) {
    return absl::ResourceExhaustedError(
        absl::StrCat(elements, " strings of up to ", longest, " bytes would take more than ",
                     kMaxTextBytes, " bytes in a .npy file, where all are as long as the longest"));
  }
  std::string out = HeaderText(DescriptionOf(DT_STRING, longest), tensor.shape());
  for (const std::string& text : tensor.flat<std::string>()) {
    out.append(text).append(longest - text.size(), '\0');
  }
  return out;
}

uint64_t ElementBytes(const NpyHeader& header) {
  return header.dtype == DT_STRING ? header.text_bytes : ElementSize(header.dtype);
}

absl::Status CheckSize(const NpyHeader& header, uint64_t bytes) {
  const uint64_t size = ElementBytes(header);
  const auto elements = static_cast<uint64_t>(header.shape.num_elements());
  if (bytes / size == elements && bytes % size == 0) return absl::OkStatus();
  if (header.dtype == DT_STRING) {
    return InvalidArgument("its header says ", elements, " strings of ", size, " bytes, but ",
                           bytes, " bytes follow");
  }
  return InvalidArgument("its header says ", DataTypeName(header.dtype), header.shape.ToString(),
                         ", but ", bytes, " bytes of elements follow");
}

}  // namespace

absl::StatusOr<size_t> NpyHeaderBytes(absl::string_view bytes) {
  WEIR_ASSIGN_OR_RETURN(const HeaderRange range, FindHeader(bytes));
  return range.begin + range.size;
}

absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view bytes) {
  WEIR_ASSIGN_OR_RETURN(const HeaderRange range, FindHeader(bytes));
  if (bytes.size() - range.begin < range.size)
    return InvalidArgument("it is truncated within the header");
  WEIR_ASSIGN_OR_RETURN(NpyHeader header,
                        HeaderParser(bytes.substr(range.begin, range.size)).Parse());
  header.header_bytes = range.begin + range.size;
  return header;
}

void DecodeNpyElements(const NpyHeader& header, char* data, size_t size) {
  if (header.big_endian) SwapBytes(NumberSize(header.dtype), data, size);
  if (header.dtype == DT_BOOL) {
    for (size_t i = 0; i < size; ++i) data[i] = data[i] != 0;
  }
}

absl::StatusOr<Tensor> ParseNpy(absl::string_view bytes) {
  WEIR_ASSIGN_OR_RETURN(const NpyHeader header, ParseNpyHeader(bytes));
  bytes.remove_prefix(header.header_bytes);
  WEIR_RETURN_IF_ERROR(CheckSize(header, bytes.size()));
  if (header.dtype == DT_STRING) return ParseStrings(header, bytes);
  WEIR_ASSIGN_OR_RETURN(Tensor tensor,
                        Tensor::Allocate(HostAllocator(), header.dtype, header.shape));
  auto* data = static_cast<char*>(tensor.raw());
  if (bytes.empty()) return tensor;
  if (header.fortran_order) {
    CopyFromFortranOrder(bytes.data(), header.shape, ElementSize(header.dtype), data);
  } else {
    std::memcpy(data, bytes.data(), bytes.size());
  }
  DecodeNpyElements(header, data, bytes.size());
  return tensor;
}

absl::Status CheckNpySize(absl::string_view head, uint64_t file_bytes) {
  WEIR_ASSIGN_OR_RETURN(const NpyHeader header, ParseNpyHeader(head));
  return CheckSize(header, file_bytes - header.header_bytes);
}

absl::StatusOr<Tensor> ReadNpy(const std::string& path) {
  WEIR_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  absl::StatusOr<Tensor> tensor = ParseNpy(bytes);
  if (!tensor.ok()) return Annotate(tensor.status(), path);
  if (absl::EndsWith(path, ".bf16.npy") && tensor->dtype() == DT_UINT16) {
    return tensor->BitcastTo(DT_BFLOAT16);
  }
  return tensor;
}

std::string SerializeNpyHeader(DataType dtype, const Shape& shape) {
  return HeaderText(DescriptionOf(dtype, 0), shape);
}

absl::StatusOr<std::string> SerializeNpy(const Tensor& tensor) {
  if (tensor.dtype() == DT_STRING) return SerializeStrings(tensor);
  if (!IsPlain(tensor.dtype())) {
    return InvalidArgument("A ", DataTypeName(tensor.dtype()),
                           " tensor cannot be stored as a .npy array: only numbers, booleans and "
                           "strings are supported");
  }
  std::string out = SerializeNpyHeader(tensor.dtype(), tensor.shape());
  if (tensor.num_elements() > 0) {
    out.append(static_cast<const char*>(tensor.raw()), tensor.num_bytes());
  }
  return out;
}

absl::Status WriteNpy(const std::string& path, const Tensor& tensor) {
  if (tensor.dtype() == DT_BFLOAT16 && !absl::EndsWith(path, ".bf16.npy")) {
    return InvalidArgument(path, ": NumPy has no bfloat16; its bits go to a file named *.bf16.npy");
  }
  WEIR_ASSIGN_OR_RETURN(const std::string bytes, SerializeNpy(tensor));
  return WriteFileAtomically(path, bytes);
}

}  // namespace weir
