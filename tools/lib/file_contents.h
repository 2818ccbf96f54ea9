#ifndef WEIR_TOOLS_LIB_FILE_CONTENTS_H_
#define WEIR_TOOLS_LIB_FILE_CONTENTS_H_

#include <string>
#include <vector>

#include "weir/core/tensor/convert.h"
#include "weir/core/tensor/tensor.h"
#include "weir/tools/lib/image_value.h"

// The contents of files as values of tensors: what value_file.h reads, from memory.
namespace weir::tools {

// What a value is read for.
struct ValueSpec {
  DataType dtype = DT_FLOAT;
  Shape shape = Shape::UnknownRank();  // of the tensor, as far as it is known
  std::string name = {};               // selects one of a file's named values
  Rounding rounding = Rounding::kNever;
  PixelRange pixels = {};
};

// The bytes of a file, and its name, which tells what a text is.
struct FileContents {
  std::string bytes, name;
};

// Returns the value in a file. `member` is the named value that is asked for; empty: spec.name if
// the file has it, or its only value. Errors are those of ParseValue, without the file's name.
absl::StatusOr<Tensor> ParseContents(FileContents file, const std::string& member,
                                     const ValueSpec& spec);

// Returns the names of the values in a file. INVALID_ARGUMENT if it is no file of named values.
absl::StatusOr<std::vector<std::string>> NamesInContents(FileContents file);

// Returns the value that consists of these bytes: a string, or elements in memory's order.
// INVALID_ARGUMENT if they are not as many as the shape needs. (One unknown dimension follows from
// their number; a tensor of unknown rank is a vector.)
absl::StatusOr<Tensor> ValueOfBytes(std::string bytes, const ValueSpec& spec);

// Gives a single string the dimensions of 1 that the tensor has. Returns other values unchanged.
Tensor FitString(const Tensor& value, const Shape& shape);

// Reinterprets a tensor of integers as the quantized type (or 8-bit float) `dtype` of the same
// element size, because .npy has none of these types. Returns other tensors unchanged.
Tensor AsCarrier(const Tensor& tensor, DataType dtype);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_LIB_FILE_CONTENTS_H_
