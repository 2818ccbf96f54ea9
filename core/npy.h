#ifndef WEIR_CORE_NPY_H_
#define WEIR_CORE_NPY_H_

#include <string>

#include "weir/core/tensor.h"

// Arrays in NumPy's .npy files (format versions 1, 2 and 3): one array a file, of a plain element
// type.
//
// NumPy has no bfloat16: by convention a file named *.bf16.npy holds its bits as uint16. Quantized
// integers, 8-bit floats and 4-bit integers are stored as integers of the same size, and come back
// as those.
namespace weir {

// Reads an array: either byte order, and Fortran order too (the elements are put in row-major
// order). DT_BFLOAT16 if the name ends in ".bf16.npy" and the elements are uint16. Errors name the
// file: INVALID_ARGUMENT for a malformed one, for one whose length is not what its header says, and
// for element types without a plain dtype (strings, records, objects).
absl::StatusOr<Tensor> ReadNpy(const std::string& path);
// The same from the bytes of a file; uint16 stays uint16.
absl::StatusOr<Tensor> ParseNpy(absl::string_view bytes);

// Writes a file that numpy.load reads, of version 1.0. INVALID_ARGUMENT for strings, resources and
// variants, and for a bfloat16 tensor whose file is not named *.bf16.npy.
absl::Status WriteNpy(const std::string& path, const Tensor& tensor);
absl::StatusOr<std::string> SerializeNpy(const Tensor& tensor);

}  // namespace weir

#endif  // WEIR_CORE_NPY_H_
