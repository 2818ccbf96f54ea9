#include "weir/core/io/snappy.h"

#include <cstdint>

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

}  // namespace

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
