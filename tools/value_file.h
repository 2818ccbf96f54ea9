#ifndef WEIR_TOOLS_VALUE_FILE_H_
#define WEIR_TOOLS_VALUE_FILE_H_

#include <string>

#include "weir/core/tensor.h"

// Tensors in files: .npy for plain types (.bf16.npy for bfloat16), and for strings .json of the
// form
//   {"dtype": "string", "shape": [2], "data_base64": ["YQ==", ""]}
namespace weir::tools {

// By the name's ending. Errors name the file.
absl::StatusOr<Tensor> ReadValueFile(const std::string& path);
absl::Status WriteValueFile(const std::string& path, const Tensor& tensor);

// A value as a user types it: the name of such a file; or JSON, a number, "text" or nested lists of
// these: "[[1, 2], [3, 4]]", which becomes a tensor of type `dtype`. INVALID_ARGUMENT for lists of
// unequal length and for numbers that `dtype` cannot hold.
absl::StatusOr<Tensor> ParseValue(const std::string& text, DataType dtype);

// A tensor of integers as the quantized type (or 8-bit float) `dtype` of the same element size, for
// .npy has none of those. Other tensors come back as they are.
Tensor AsCarrier(const Tensor& tensor, DataType dtype);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_VALUE_FILE_H_
