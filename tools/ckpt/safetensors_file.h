#ifndef WEIR_TOOLS_CKPT_SAFETENSORS_FILE_H_
#define WEIR_TOOLS_CKPT_SAFETENSORS_FILE_H_

#include <memory>
#include <string>

#include "weir/tools/ckpt/output.h"

// The files of Hugging Face's safetensors (https://github.com/huggingface/safetensors): 8 bytes
// with the length of a JSON object, the object, and the elements of all tensors, little-endian and
// without gaps. The object maps names to dtype, shape and the range of bytes; "__metadata__" maps
// texts to texts. There are no checksums.
namespace weir::tools {

// Opens a file. DATA_LOSS if its header is malformed, or the ranges of the tensors overlap, leave
// gaps or contradict shapes or the file's size; UNIMPLEMENTED, with the tensor, for types without a
// dtype.
absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenSafetensors(const std::string& path,
                                                                  Metadata* metadata);

// See CheckpointFormat (formats.h).
bool SafetensorsHolds(DataType dtype);
absl::Status CheckSafetensor(const OutputTensor& tensor);
absl::Status WriteSafetensors(const std::string& path, const Output& output, ProgressBar& progress);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CKPT_SAFETENSORS_FILE_H_
