#include "weir/tools/ckpt/gguf_blocks.h"

#include <algorithm>
#include <cmath>

namespace weir::tools {

namespace {

constexpr int64_t kSuperBlock = 256;  // elements of a block of the "K" types

// The bits of a half that a block stores little-endian.
float HalfAt(const uint8_t* bytes) {
  half value;
  value.bits = static_cast<uint16_t>(bytes[0] | bytes[1] << 8);
  return value;
}

const uint8_t* Bytes(const char* block) { return reinterpret_cast<const uint8_t*>(block); }

// The scale, and 32 signed bytes.
void DecodeQ8(const char* block, float* out) {
  const float scale = HalfAt(Bytes(block));
  for (int i = 0; i < kQ8Block; ++i) out[i] = scale * static_cast<int8_t>(block[2 + i]);
}

// The scale, and 32 numbers of four bits, less 8: the low halves of 16 bytes, then the high ones.
void DecodeQ4(const char* block, float* out) {
  const uint8_t* const in = Bytes(block);
  const float scale = HalfAt(in);
  for (int i = 0; i < 16; ++i) {
    out[i] = scale * static_cast<float>((in[2 + i] & 15) - 8);
    out[i + 16] = scale * static_cast<float>((in[2 + i] >> 4) - 8);
  }
}

// Eight sub-blocks of 32 numbers of four bits, q. An element is d * s * q - m * o, where s and o
// are a sub-block's scale and offset, of six bits each: in 12 bytes, the first four of each are the
// low bits of a byte, and the others have their upper two bits in the upper bits of these.
void DecodeQ4K(const char* block, float* out) {
  const uint8_t* const in = Bytes(block);
  const float d = HalfAt(in), m = HalfAt(in + 2);
  const uint8_t* const scales = in + 4;
  const uint8_t* quants = in + 16;
  for (int sub = 0; sub < 8; ++sub) {
    int scale, offset;
    if (sub < 4) {
      scale = scales[sub] & 63;
      offset = scales[sub + 4] & 63;
    } else {
      scale = (scales[sub + 4] & 15) | (scales[sub - 4] >> 6) << 4;
      offset = scales[sub + 4] >> 4 | (scales[sub] >> 6) << 4;
    }
    const float by = d * static_cast<float>(scale), less = m * static_cast<float>(offset);
    const int shift = sub % 2 * 4;
    for (int i = 0; i < 32; ++i) *out++ = by * static_cast<float>((quants[i] >> shift) & 15) - less;
    if (sub % 2 == 1) quants += 32;
  }
}

// Sixteen sub-blocks of 16 numbers of six bits, less 32, each with a signed scale. Of 128 elements
// the lower four bits are in 64 bytes, and the upper two in 32: element 32 * k + i has its lower
// bits in byte 32 * (k % 2) + i, and its upper ones in byte i, at bit 2 * k.
void DecodeQ6K(const char* block, float* out) {
  const uint8_t *low = Bytes(block), *high = low + 128;
  const char* scales = block + 192;
  const float d = HalfAt(Bytes(block) + 208);
  for (int part = 0; part < 2; ++part, low += 64, high += 32, scales += 8, out += 128) {
    for (int k = 0; k < 4; ++k) {
      for (int i = 0; i < 32; ++i) {
        const int lower = (low[k % 2 * 32 + i] >> (k / 2 * 4)) & 15;
        const int upper = (high[i] >> (2 * k)) & 3;
        const int q = (lower | upper << 4) - 32;
        const auto scale = static_cast<float>(static_cast<int8_t>(scales[2 * k + i / 16]));
        out[32 * k + i] = d * scale * static_cast<float>(q);
      }
    }
  }
}

constexpr GgufType kTypes[] = {
    {0, "F32", DT_FLOAT, 1, 4},
    {1, "F16", DT_HALF, 1, 2},
    {2, "Q4_0", DT_FLOAT, 32, 18, DecodeQ4},
    {3, "Q4_1", DT_INVALID},
    {6, "Q5_0", DT_INVALID},
    {7, "Q5_1", DT_INVALID},
    {8, "Q8_0", DT_FLOAT, kQ8Block, 34, DecodeQ8},
    {9, "Q8_1", DT_INVALID},
    {10, "Q2_K", DT_INVALID},
    {11, "Q3_K", DT_INVALID},
    {12, "Q4_K", DT_FLOAT, kSuperBlock, 144, DecodeQ4K},
    {13, "Q5_K", DT_INVALID},
    {14, "Q6_K", DT_FLOAT, kSuperBlock, 210, DecodeQ6K},
    {15, "Q8_K", DT_INVALID},
    {16, "IQ2_XXS", DT_INVALID},
    {17, "IQ2_XS", DT_INVALID},
    {18, "IQ3_XXS", DT_INVALID},
    {19, "IQ1_S", DT_INVALID},
    {20, "IQ4_NL", DT_INVALID},
    {21, "IQ3_S", DT_INVALID},
    {22, "IQ2_S", DT_INVALID},
    {23, "IQ4_XS", DT_INVALID},
    {24, "I8", DT_INT8, 1, 1},
    {25, "I16", DT_INT16, 1, 2},
    {26, "I32", DT_INT32, 1, 4},
    {27, "I64", DT_INT64, 1, 8},
    {28, "F64", DT_DOUBLE, 1, 8},
    {29, "IQ1_M", DT_INVALID},
    {30, "BF16", DT_BFLOAT16, 1, 2},
    {34, "TQ1_0", DT_INVALID},
    {35, "TQ2_0", DT_INVALID},
};

}  // namespace

const GgufType* FindGgufType(uint32_t code) {
  const auto* const found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                         [&](const GgufType& type) { return type.code == code; });
  return found == std::end(kTypes) ? nullptr : found;
}

const GgufType* GgufTypeOf(DataType dtype) {
  const auto* const found =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const GgufType& type) {
        return type.dtype == dtype && type.block == 1 && type.block_bytes > 0;
      });
  return found == std::end(kTypes) ? nullptr : found;
}

const GgufType& GgufQ8() {
  constexpr uint32_t kCode = 8;
  return *FindGgufType(kCode);
}

void EncodeQ8(const float* values, char* block) {
  constexpr float kLargest = 127;
  float greatest = 0;
  for (int i = 0; i < kQ8Block; ++i) greatest = std::max(greatest, std::abs(values[i]));
  const float scale = greatest / kLargest;
  const float inverse = scale == 0 ? 0 : 1 / scale;
  const uint16_t bits = half(scale).bits;
  block[0] = static_cast<char>(bits & 0xff);
  block[1] = static_cast<char>(bits >> 8);
  for (int i = 0; i < kQ8Block; ++i)
    block[2 + i] = static_cast<char>(static_cast<int>(std::round(values[i] * inverse)));
}

}  // namespace weir::tools
