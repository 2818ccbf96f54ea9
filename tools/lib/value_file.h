#ifndef WEIR_TOOLS_LIB_VALUE_FILE_H_
#define WEIR_TOOLS_LIB_VALUE_FILE_H_

#include <string>

#include "weir/core/tensor/tensor.h"

// Tensors in files: .npy for plain types (.bf16.npy for bfloat16), and .json for strings, in the
// form
//   {"dtype": "string", "shape": [2], "data_base64": ["YQ==", ""]}
namespace weir::tools {

// The file's extension selects the format. Errors name the file.
absl::StatusOr<Tensor> ReadValueFile(const std::string& path);
absl::Status WriteValueFile(const std::string& path, const Tensor& tensor);

// Parses a value from the command line: the name of such a file, or JSON: a number, "text" or
// nested lists of these, such as "[[1, 2], [3, 4]]". Returns a tensor of type `dtype`.
// INVALID_ARGUMENT for lists of unequal length and for numbers that `dtype` cannot represent.
absl::StatusOr<Tensor> ParseValue(const std::string& text, DataType dtype);

// Reinterprets a tensor of integers as the quantized type (or 8-bit float) `dtype` of the same
// element size, because .npy has none of these types. Returns other tensors unchanged.
Tensor AsCarrier(const Tensor& tensor, DataType dtype);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_LIB_VALUE_FILE_H_
