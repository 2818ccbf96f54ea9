#ifndef WEIR_TOOLS_LIB_VALUE_FILE_H_
#define WEIR_TOOLS_LIB_VALUE_FILE_H_

#include <cstdint>
#include <string>

#include "weir/core/tensor/tensor.h"

// Tensors in files: .npy for plain types (.bf16.npy for bfloat16), and .json for strings, in the
// form
//   {"dtype": "string", "shape": [2], "data_base64": ["YQ==", ""]}
namespace weir::tools {

// Whether a conversion may change a value.
enum class Rounding : uint8_t { kNever, kAllowed };

// The file's extension selects the format. Errors name the file.
absl::StatusOr<Tensor> ReadValueFile(const std::string& path);
absl::Status WriteValueFile(const std::string& path, const Tensor& tensor);

// Parses a value from the command line: the name of such a file, FILE.csv (lines of numbers or
// texts: a matrix), @FILE (a string: its bytes), or JSON: a number, "text" or nested lists of
// these, such as "[[1, 2], [3, 4]]". Returns a tensor of type `dtype`, converted to it if need be
// (ConvertTensor). INVALID_ARGUMENT for lists of unequal length and for numbers that `dtype` cannot
// represent.
absl::StatusOr<Tensor> ParseValue(const std::string& text, DataType dtype,
                                  Rounding rounding = Rounding::kNever);

// Converts numbers to another type of numbers. INVALID_ARGUMENT, with the first such element, if
// the type cannot represent it: for Rounding::kAllowed only if it is out of the type's range.
absl::StatusOr<Tensor> ConvertTensor(const Tensor& tensor, DataType dtype, Rounding rounding);

// Reinterprets a tensor of integers as the quantized type (or 8-bit float) `dtype` of the same
// element size, because .npy has none of these types. Returns other tensors unchanged.
Tensor AsCarrier(const Tensor& tensor, DataType dtype);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_LIB_VALUE_FILE_H_
