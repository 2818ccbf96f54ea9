#include "weir/core/io/snappy.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "weir/core/io/coding.h"

namespace weir {
namespace {

// Consumes `count` bytes as a little-endian number.
bool GetLittleEndian(absl::string_view* in, size_t count, uint32_t* v) {
  if (in->size() < count) return false;
  *v = 0;
  for (size_t i = 0; i < count; ++i)
    *v |= static_cast<uint32_t>(static_cast<uint8_t>((*in)[i])) << (8 * i);
  in->remove_prefix(count);
  return true;
}

bool AppendLiteral(absl::string_view* in, uint8_t tag, size_t room, std::string* out) {
  uint32_t length = tag >> 2;  // minus one
  if (length >= 60 && !GetLittleEndian(in, length - 59, &length)) return false;
  const uint64_t count = uint64_t{length} + 1;
  if (count > in->size() || count > room) return false;
  out->append(in->data(), count);
  in->remove_prefix(count);
  return true;
}

bool AppendCopy(absl::string_view* in, uint8_t tag, size_t room, std::string* out) {
  const int kind = tag & 3;
  uint32_t offset, length = (tag >> 2) + 1;
  if (!GetLittleEndian(in, kind == 1 ? 1 : kind == 2 ? 2 : 4, &offset)) return false;
  if (kind == 1) {
    length = ((tag >> 2) & 7) + 4;
    offset |= static_cast<uint32_t>(tag >> 5) << 8;
  }
  if (offset == 0 || offset > out->size() || length > room) return false;
  // Copies byte by byte: source and destination may overlap.
  for (size_t from = out->size() - offset; length > 0; --length, ++from)
    out->push_back((*out)[from]);
  return true;
}

// The tag of a literal or a copy is in its two low bits.
constexpr int kLiteral = 0, kCopyWithOffset16 = 2;

void PutLiteral(absl::string_view bytes, std::string* out) {
  if (bytes.empty()) return;
  const auto length = static_cast<uint32_t>(bytes.size() - 1);
  if (length < 60) {
    out->push_back(static_cast<char>(length << 2 | kLiteral));
  } else {
    out->push_back(static_cast<char>(63 << 2 | kLiteral));  // a length of 4 bytes follows
    PutFixed32(out, length);
  }
  out->append(bytes.data(), bytes.size());
}

void PutCopy(size_t offset, size_t length, std::string* out) {
  constexpr size_t kMostLength = 64;
  for (; length > 0; length -= std::min(length, kMostLength)) {
    const size_t part = std::min(length, kMostLength);
    out->push_back(static_cast<char>((part - 1) << 2 | kCopyWithOffset16));
    out->push_back(static_cast<char>(offset));
    out->push_back(static_cast<char>(offset >> 8));
  }
}

}  // namespace

// Greedy matching, as the format's own library does it: a hash table of the last place of each four
// bytes; where the bytes at the place are equal, the match is extended as far as it goes.
std::string SnappyCompress(absl::string_view in) {
  constexpr size_t kLeastMatch = 4, kMostOffset = 65535;
  constexpr int kTableBits = 14;
  std::vector<uint32_t> table(size_t{1} << kTableBits, 0);
  std::string out;
  PutVarint64(&out, in.size());
  size_t literal = 0, at = 1;  // the first byte has nothing before it
  while (at + kLeastMatch <= in.size()) {
    const uint32_t four = LoadFixed32(in.data() + at);
    uint32_t& last = table[(four * 0x9E3779B1u) >> (32 - kTableBits)];
    const size_t place = last;
    last = static_cast<uint32_t>(at);
    if (at - place > kMostOffset || LoadFixed32(in.data() + place) != four) {
      ++at;
      continue;
    }
    size_t length = kLeastMatch;
    while (at + length < in.size() && in[place + length] == in[at + length]) ++length;
    PutLiteral(in.substr(literal, at - literal), &out);
    PutCopy(at - place, length, &out);
    at += length;
    literal = at;
  }
  PutLiteral(in.substr(std::min(literal, in.size())), &out);
  return out;
}

bool SnappyDecompress(absl::string_view in, std::string* out) {
  out->clear();
  const size_t most = in.size() * 64;
  uint32_t size;
  if (!GetVarint32(&in, &size) || size > most) return false;
  out->reserve(size);
  while (!in.empty()) {
    const auto tag = static_cast<uint8_t>(in.front());
    in.remove_prefix(1);
    const size_t room = size - out->size();
    if (!((tag & 3) == 0 ? AppendLiteral(&in, tag, room, out) : AppendCopy(&in, tag, room, out)))
      return false;
  }
  return out->size() == size;
}

}  // namespace weir
