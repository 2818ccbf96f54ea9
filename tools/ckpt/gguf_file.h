#ifndef WEIR_TOOLS_CKPT_GGUF_FILE_H_
#define WEIR_TOOLS_CKPT_GGUF_FILE_H_

#include <memory>
#include <string>

#include "weir/tools/ckpt/output.h"

// GGUF files (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md), versions 2 and 3: the
// metadata, the list of tensors, and their elements, each aligned. There are no checksums. Shapes
// are stored innermost dimension first; here they are as everywhere, outermost first.
namespace weir::tools {

// Opens a file. Elements of types Q4_0, Q8_0, Q4_K and Q6_K are read as float. UNIMPLEMENTED, with
// the tensor, for other quantized types, and for big-endian files; DATA_LOSS for a malformed file.
absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenGguf(const std::string& path,
                                                           Metadata* metadata);

// See CheckpointFormat (formats.h). Floating-point matrices are written as Q8_0 if output.quantize
// is set and their rows have a multiple of 32 elements. Metadata of GGUF files are kept byte for
// byte, except for the alignment, which is 32; other metadata become texts.
bool IsGguf(const ReadableFile& file);
bool GgufHolds(DataType dtype);
absl::Status CheckGgufTensor(const OutputTensor& tensor);
absl::Status WriteGguf(const std::string& path, const Output& output, ProgressBar& progress);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CKPT_GGUF_FILE_H_
