#ifndef WEIR_CORE_IO_CODING_H_
#define WEIR_CORE_IO_CODING_H_

#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"

// Integer encodings in files: little-endian of fixed size, or varints (seven bits per byte, low
// bits first, as in protobuf). Getters consume the bytes at the front of `*in`; they return false
// and leave the outputs unspecified if there are too few.
namespace weir {

inline void PutFixed32(std::string* out, uint32_t v) {
  for (int i = 0; i < 4; ++i) out->push_back(static_cast<char>(v >> (8 * i)));
}
inline void PutFixed64(std::string* out, uint64_t v) {
  PutFixed32(out, static_cast<uint32_t>(v));
  PutFixed32(out, static_cast<uint32_t>(v >> 32));
}
inline void PutVarint64(std::string* out, uint64_t v) {
  for (; v >= 128; v >>= 7) out->push_back(static_cast<char>(v | 128));
  out->push_back(static_cast<char>(v));
}

// `p` points to 4 (8) bytes.
inline uint32_t LoadFixed32(const char* p) {
  uint32_t v = 0;
  for (int i = 0; i < 4; ++i) v |= static_cast<uint32_t>(static_cast<uint8_t>(p[i])) << (8 * i);
  return v;
}
inline uint64_t LoadFixed64(const char* p) {
  return LoadFixed32(p) | (static_cast<uint64_t>(LoadFixed32(p + 4)) << 32);
}

inline bool GetVarint64(absl::string_view* in, uint64_t* v) {
  *v = 0;
  for (int shift = 0; shift < 64 && !in->empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(in->front());
    if (shift == 63 && byte > 1) return false;
    in->remove_prefix(1);
    *v |= static_cast<uint64_t>(byte & 127) << shift;
    if (byte < 128) return true;
  }
  return false;
}
inline bool GetVarint32(absl::string_view* in, uint32_t* v) {
  uint64_t wide;
  if (!GetVarint64(in, &wide) || wide > UINT32_MAX) return false;
  *v = static_cast<uint32_t>(wide);
  return true;
}

}  // namespace weir

#endif  // WEIR_CORE_IO_CODING_H_
