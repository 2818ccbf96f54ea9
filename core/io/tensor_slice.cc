#include "weir/core/io/tensor_slice.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace weir {

absl::StatusOr<TensorSlice> TensorSlice::Parse(absl::string_view text) {
  TensorSlice slice;
  if (text.empty()) return slice;
  for (absl::string_view part : std::vector<absl::string_view>(absl::StrSplit(text, ':'))) {
    if (part == "-") {
      slice.extents.emplace_back();
      continue;
    }
    const std::vector<absl::string_view> numbers = absl::StrSplit(part, ',');
    Extent extent;
    if (numbers.size() != 2 || !absl::SimpleAtoi(numbers[0], &extent.start) ||
        !absl::SimpleAtoi(numbers[1], &extent.length) || extent.start < 0 || extent.length <= 0 ||
        extent.length > INT64_MAX - extent.start) {
      return InvalidArgument("Expected a pair of numbers or '-' but got '", part,
                             "': string = ", text);
    }
    slice.extents.push_back(extent);
  }
  return slice;
}

std::string TensorSlice::ToString() const {
  return absl::StrJoin(extents, ":", [](std::string* out, const Extent& e) {
    e.length == Extent::kAll ? absl::StrAppend(out, "-")
                             : absl::StrAppend(out, e.start, ",", e.length);
  });
}

absl::StatusOr<Shape> TensorSlice::ShapeIn(const Shape& full) const {
  if (full.rank() != static_cast<int>(extents.size())) {
    return InvalidArgument("Mismatching ranks: shape = ", full.ToString(),
                           ", slice = ", ToString());
  }
  Shape shape;
  for (int i = 0; i < full.rank(); ++i) {
    const Extent& e = extents[i];
    if (e.length == Extent::kAll && e.start == 0) {
      shape.AddDim(full.dim(i));
    } else if (e.start < 0 || e.length < 0 || e.start > full.dim(i) ||
               e.length > full.dim(i) - e.start) {
      return InvalidArgument("Extent in dimension ", i, " out of bounds: shape = ", full.ToString(),
                             ", slice = ", ToString());
    } else {
      shape.AddDim(e.length);
    }
  }
  return shape;
}

absl::StatusOr<ShapeAndSlice> ShapeAndSlice::Parse(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ' ');
  if (parts.size() < 2) {
    return InvalidArgument("Need least two elements in shape_and_slice specification: ", text);
  }
  std::vector<int64_t> dims;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    int64_t dim;
    if (!absl::SimpleAtoi(parts[i], &dim) || dim < 0) {
      return InvalidArgument("Non numerical dimension in shape_and_slice: ", text);
    }
    dims.push_back(dim);
  }
  ShapeAndSlice parsed;
  WEIR_ASSIGN_OR_RETURN(parsed.shape, Shape::Make(dims));
  WEIR_ASSIGN_OR_RETURN(parsed.slice, TensorSlice::Parse(parts.back()));
  WEIR_ASSIGN_OR_RETURN(parsed.slice_shape, parsed.slice.ShapeIn(parsed.shape));
  return parsed;
}

// ---- Keys. The encoding preserves order: keys compare as bytes like their parts. An unsigned
// number is its length in bytes followed by its bytes, most significant first. A string ends with
// 00 01; each 00 and ff in it is followed by an escape byte. A signed number of L bytes begins with
// L one bits (zero bits if negative) and the opposite bit, followed by the number in two's
// complement: 7 L - 1 bits and a sign.
namespace {

void PutUnsigned(std::string* out, uint64_t v) {
  int bytes = 0;
  for (uint64_t rest = v; rest != 0; rest >>= 8) ++bytes;
  out->push_back(static_cast<char>(bytes));
  while (--bytes >= 0) out->push_back(static_cast<char>(v >> (8 * bytes)));
}

bool GetUnsigned(absl::string_view* in, uint64_t* v) {
  if (in->empty()) return false;
  const auto bytes = static_cast<uint8_t>(in->front());
  if (bytes > 8 || in->size() < size_t{bytes} + 1) return false;
  *v = 0;
  for (int i = 1; i <= bytes; ++i) *v = (*v << 8) | static_cast<uint8_t>((*in)[i]);
  in->remove_prefix(size_t{bytes} + 1);
  return true;
}

void PutString(std::string* out, absl::string_view s) {
  for (const char c : s) {
    out->push_back(c);
    if (c == '\x00') out->push_back('\xff');
    if (c == '\xff') out->push_back('\x00');
  }
  out->append("\x00\x01", 2);
}

bool GetString(absl::string_view* in, std::string* s) {
  s->clear();
  for (size_t i = 0; i < in->size(); ++i) {
    const char c = (*in)[i];
    if (c == '\x00' || c == '\xff') {
      if (++i == in->size()) return false;
      const char mark = (*in)[i];
      if (c == '\x00' && mark == '\x01') {
        in->remove_prefix(i + 1);
        return true;
      }
      if (mark != static_cast<char>(~c)) return false;
    }
    s->push_back(c);
  }
  return false;
}

// L bytes hold the range [-2^(7L-1), 2^(7L-1)); 10 bytes hold every int64.
int SignedLength(int64_t v) {
  const uint64_t magnitude = v < 0 ? ~static_cast<uint64_t>(v) : static_cast<uint64_t>(v);
  int length = 1;
  while (length < 10 && (magnitude >> (7 * length - 1)) != 0) ++length;
  return length;
}

void PutSigned(std::string* out, int64_t v) {
  const int length = SignedLength(v);
  uint8_t bytes[10];
  const uint8_t fill = v < 0 ? 0xff : 0;
  for (int i = 0; i < length; ++i) {
    const int shift = 8 * (length - 1 - i);
    bytes[i] = shift < 64 ? static_cast<uint8_t>(v >> shift) : fill;
  }
  // The header inverts the leading bits, which equal the sign, in bytes 0 and 1.
  const uint32_t header = (0xffffu << (16 - length)) & 0xffffu;
  bytes[0] ^= static_cast<uint8_t>(header >> 8);
  if (length > 1) bytes[1] ^= static_cast<uint8_t>(header);
  out->append(reinterpret_cast<const char*>(bytes), length);
}

bool GetSigned(absl::string_view* in, int64_t* v) {
  if (in->empty()) return false;
  const auto first = static_cast<uint8_t>((*in)[0]);
  const bool negative = (first & 0x80) == 0;
  const uint8_t flip = negative ? 0xff : 0;
  // Counts the leading one bits after removing the sign.
  const uint32_t second = in->size() > 1 ? static_cast<uint8_t>((*in)[1]) ^ flip : 0;
  const uint32_t head = (static_cast<uint32_t>(first ^ flip) << 8) | second;
  int length = 0;
  while (length < 16 && (head & (0x8000u >> length)) != 0) ++length;
  if (length > 10 || in->size() < static_cast<size_t>(length)) return false;
  const uint32_t header = (0xffffu << (16 - length)) & 0xffffu;
  uint64_t bits = negative ? ~uint64_t{0} : 0;
  for (int i = 0; i < length; ++i) {
    uint8_t byte = static_cast<uint8_t>((*in)[i]);
    if (i < 2) byte ^= static_cast<uint8_t>(i == 0 ? header >> 8 : header);
    bits = (bits << 8) | byte;
  }
  in->remove_prefix(length);
  *v = static_cast<int64_t>(bits);
  return true;
}

}  // namespace

std::string EncodeSliceKey(absl::string_view name, const TensorSlice& slice) {
  std::string key;
  PutUnsigned(&key, 0);
  PutString(&key, name);
  PutUnsigned(&key, slice.extents.size());
  for (const TensorSlice::Extent& e : slice.extents) {
    PutSigned(&key, e.start);
    PutSigned(&key, e.length);
  }
  return key;
}

bool DecodeSliceKey(absl::string_view key, std::string* name, TensorSlice* slice) {
  uint64_t zero, rank;
  if (!GetUnsigned(&key, &zero) || zero != 0 || !GetString(&key, name) ||
      !GetUnsigned(&key, &rank) || rank > Shape::kMaxRank) {
    return false;
  }
  slice->extents.resize(rank);
  for (TensorSlice::Extent& e : slice->extents) {
    if (!GetSigned(&key, &e.start) || !GetSigned(&key, &e.length)) return false;
  }
  return key.empty();
}

// ---- Boxes.

int64_t Box::num_elements() const {
  int64_t n = 1;
  for (const int64_t s : size) n *= s;
  return n;
}

Box ResolveSlice(const TensorSlice& slice, const Shape& shape) {
  Box box;
  for (int i = 0; i < shape.rank(); ++i) {
    const TensorSlice::Extent& e = slice.extents[i];
    box.start.push_back(e.start);
    box.size.push_back(e.length == TensorSlice::Extent::kAll ? shape.dim(i) : e.length);
  }
  return box;
}

std::optional<Box> IntersectBoxes(const Box& a, const Box& b) {
  Box both;
  for (size_t i = 0; i < a.start.size(); ++i) {
    const int64_t start = std::max(a.start[i], b.start[i]);
    const int64_t end = std::min(a.start[i] + a.size[i], b.start[i] + b.size[i]);
    if (end <= start) return std::nullopt;
    both.start.push_back(start);
    both.size.push_back(end - start);
  }
  return both;
}

bool AreDisjoint(std::vector<Box> boxes) {
  if (boxes.size() < 2) return true;
  if (boxes[0].start.empty()) return false;  // scalars: all boxes contain the same element
  std::sort(boxes.begin(), boxes.end(),
            [](const Box& a, const Box& b) { return a.start < b.start; });
  for (size_t i = 0; i < boxes.size(); ++i) {
    const int64_t end = boxes[i].start[0] + boxes[i].size[0];
    for (size_t j = i + 1; j < boxes.size() && boxes[j].start[0] < end; ++j) {
      if (IntersectBoxes(boxes[i], boxes[j])) return false;
    }
  }
  return true;
}

namespace {

void CopyElements(const Tensor& from, int64_t from_at, Tensor* to, int64_t to_at, int64_t count) {
  if (from.dtype() == DT_STRING) {
    std::copy_n(from.data<std::string>() + from_at, count, to->data<std::string>() + to_at);
    return;
  }
  const size_t size = ElementSize(from.dtype());
  std::memcpy(static_cast<char*>(to->raw()) + to_at * size,
              static_cast<const char*>(from.raw()) + from_at * size, count * size);
}

}  // namespace

void CopyBox(const Tensor& from, const Box& from_box, const Box& part, const Box& to_box,
             Tensor* to) {
  const int rank = static_cast<int>(part.start.size());
  // Dimensions [outer, rank) are contiguous in both tensors: all but the first of them are copied
  // whole.
  int outer = std::max(rank - 1, 0);
  int64_t run = rank == 0 ? 1 : part.size[rank - 1];
  while (outer > 0 && from_box.size[outer] == part.size[outer] &&
         to_box.size[outer] == part.size[outer]) {
    run *= part.size[--outer];
  }
  // Iterates over the outer dimensions.
  std::vector<int64_t> at(rank, 0);
  const int64_t runs = run == 0 ? 0 : part.num_elements() / run;
  for (int64_t r = 0; r < runs; ++r) {
    int64_t from_at = 0, to_at = 0;
    for (int i = 0; i < rank; ++i) {
      from_at = from_at * from_box.size[i] + part.start[i] - from_box.start[i] + at[i];
      to_at = to_at * to_box.size[i] + part.start[i] - to_box.start[i] + at[i];
    }
    CopyElements(from, from_at, to, to_at, run);
    for (int i = outer - 1; i >= 0 && ++at[i] == part.size[i]; --i) at[i] = 0;
  }
}

}  // namespace weir
