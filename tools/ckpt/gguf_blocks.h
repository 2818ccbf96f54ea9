#ifndef WEIR_TOOLS_CKPT_GGUF_BLOCKS_H_
#define WEIR_TOOLS_CKPT_GGUF_BLOCKS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "weir/core/tensor/dtype.h"

// The element types of GGUF files (https://github.com/ggml-org/ggml, docs/gguf.md and ggml-quants),
// and the blocks in which quantized ones are stored. A block has a row's next elements, with one
// scale for all of them and, in the "K" types, one for each 16 or 32.
namespace weir::tools {

// What is known of a type.
struct GgufType {
  uint32_t code;             // in files
  absl::string_view name;    // ggml's
  DataType dtype;            // of the elements that are read; DT_INVALID if the type is not read
  int64_t block = 1;         // elements in a block
  uint64_t block_bytes = 0;  // bytes of a block
  void (*decode)(const char* block, float* out) = nullptr;  // null for plain types
};

// Returns the type with this code; null if there is none.
const GgufType* FindGgufType(uint32_t code);
// Returns the plain type for a dtype; null if GGUF has none.
const GgufType* GgufTypeOf(DataType dtype);

// Q8_0: 32 elements as 8-bit integers, with one scale.
inline constexpr int64_t kQ8Block = 32;
inline constexpr float kMaxQ8 = 127 * 65504.f;  // the scale is a half
const GgufType& GgufQ8();
// Encodes 32 elements in GgufQ8().block_bytes bytes, as ggml does: the scale is the greatest
// magnitude divided by 127, and quotients are rounded half away from zero. No magnitude is greater
// than kMaxQ8.
void EncodeQ8(const float* values, char* block);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CKPT_GGUF_BLOCKS_H_
