#ifndef WEIR_CORE_IO_NPY_H_
#define WEIR_CORE_IO_NPY_H_

#include <string>

#include "weir/core/tensor/api.h"
#include "weir/core/tensor/tensor.h"

// NumPy's .npy files (format versions 1, 2 and 3). Each file holds one array of a plain element
// type.
//
// NumPy has no bfloat16: by convention, a file named *.bf16.npy holds the bits of bfloat16 values
// as uint16. Quantized integers, 8-bit floats and 4-bit integers are stored as integers of the same
// size, and are read back as such.
namespace WEIR_API weir {

// What the header of a file says of the elements that follow it.
struct NpyHeader {
  DataType dtype = DT_INVALID;  // of the tensor that is read: DT_STRING for texts
  Shape shape;                  // of the array
  size_t text_bytes = 0;        // of a string, which is padded with zeros
  bool is_unicode = false;      // its characters are code points of 32 bits
  bool big_endian = false;      // the order of bytes in a number
  bool fortran_order = false;   // the first dimension varies fastest
  size_t header_bytes = 0;      // where the elements begin in the file
};
// No header is longer, except those of records with many fields.
inline constexpr size_t kMaxNpyHeaderBytes = size_t{1} << 17;
// The first bytes of a file, which say how long its header is. No valid header is shorter.
inline constexpr size_t kNpyPreambleBytes = 12;
// Returns NpyHeader::header_bytes, given at least the first kNpyPreambleBytes of a file.
absl::StatusOr<size_t> NpyHeaderBytes(absl::string_view bytes);
// Parses the header at the beginning of a file, of which `bytes` is the first part. Returns
// INVALID_ARGUMENT as ReadNpy does, and if the header does not end within `bytes`.
absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view bytes);
// Converts elements of plain type, as a file stores them, to their in-memory representation: the
// order of bytes, and booleans.
void DecodeNpyElements(const NpyHeader& header, char* data, size_t size);
// Returns the header of a file of format version 1.0: elements of a plain type in row-major order.
std::string SerializeNpyHeader(DataType dtype, const Shape& shape);

// Reads an array of either byte order, and of Fortran order too (converted to row-major). The dtype
// is DT_BFLOAT16 if the name ends in ".bf16.npy" and the elements are uint16. NumPy's strings of
// characters (U, in UTF-8) and of bytes (S) become strings without the zeros at their ends. Returns
// INVALID_ARGUMENT, with the file name, for a malformed file, a file whose length contradicts its
// header, and other element types without a plain dtype (records, objects).
absl::StatusOr<Tensor> ReadNpy(const std::string& path);
// Same, from the bytes of a file; uint16 stays uint16.
absl::StatusOr<Tensor> ParseNpy(absl::string_view bytes);
// Returns INVALID_ARGUMENT unless a file of `file_bytes` bytes that begins with `head` has the size
// that its header says. For archives, whose directories may lie about sizes.
absl::Status CheckNpySize(absl::string_view head, uint64_t file_bytes);

// Writes a file, format version 1.0, that numpy.load reads. Strings become NumPy's strings of bytes
// (S), as long as the longest. Returns INVALID_ARGUMENT for resources and variants, for strings
// that end in a zero byte, which NumPy would drop, and for a bfloat16 tensor if the file is not
// named *.bf16.npy; RESOURCE_EXHAUSTED for strings that would take more than 2 GiB.
absl::Status WriteNpy(const std::string& path, const Tensor& tensor);
absl::StatusOr<std::string> SerializeNpy(const Tensor& tensor);

}  // namespace weir

#endif  // WEIR_CORE_IO_NPY_H_
