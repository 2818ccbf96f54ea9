#ifndef WEIR_TOOLS_LIB_VALUE_FILE_H_
#define WEIR_TOOLS_LIB_VALUE_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "weir/core/tensor/tensor.h"
#include "weir/tools/lib/file_contents.h"

// Tensors in files, and as the command line has them.
namespace weir::tools {

// Reads and writes a tensor without knowing its dtype: .npy (.bf16.npy for bfloat16), and .json for
// strings, in the form {"dtype": "string", "shape": [2], "data_base64": ["YQ==", ""]}. The name
// selects the format. Numbers can be written to .json too, as nested lists. Errors name the file.
absl::StatusOr<Tensor> ReadValueFile(const std::string& path);
absl::Status WriteValueFile(const std::string& path, const Tensor& tensor);

// Files have at most as many bytes.
inline constexpr uint64_t kMaxValueFileBytes = uint64_t{16} << 30;

// Returns the value that a text of the command line stands for:
//
//   1.5, "a", [[1, 2], [3, 4]]   JSON (json_value.h); nan and inf too
//   FILE                         a file; its contents say what it is, and for texts its name
//   FILE:MEMBER                  one of the named values in it
//   @FILE                        the bytes of a file: a string, or the elements of other dtypes, in
//                                row-major order and little-endian
//   FOLDER, 'DIR/*.png'          a batch of the files in it, or that match, in the order of names
//   @FOLDER                      the bytes of each
//
// Files are arrays of NumPy (.npy, .npz), text (.csv, .tsv, .txt, .json, .jsonl), images
// (image_value.h) and TFRecord files, whose records are strings; each may be compressed by gzip.
// For a tensor of strings, an image or another file is its bytes. Of the values in .npz, .json
// objects, .jsonl of objects, and .csv with a first line of names, spec.name selects one. The rows
// of a CSV file, and a single string, get the dimensions that the tensor has.
//
// Numbers are converted to the dtype (ConvertTensor). Errors name the file:
//
//   NOT_FOUND           no such file or member; the message lists the members
//   INVALID_ARGUMENT    a file or a text that is no value of the tensor
//   DATA_LOSS           a damaged file
//   RESOURCE_EXHAUSTED  more bytes than there is memory for, or kMaxValueFileBytes
absl::StatusOr<Tensor> ParseValue(const std::string& text, const ValueSpec& spec);

// Whether a text is a FILE or FILE:MEMBER that exists.
bool IsValueFile(const std::string& text);

// Returns the files of a FOLDER or a pattern, sorted; files whose names begin with '.' do not
// count. Empty for any other text, with a leading '@' too. INVALID_ARGUMENT if there are none.
absl::StatusOr<std::vector<std::string>> BatchFiles(const std::string& text);
// Reads files as the rows of a tensor, for the whole of which `spec` is. INVALID_ARGUMENT if they
// differ in shape. `as_bytes` reads the bytes of each.
absl::StatusOr<Tensor> ReadBatch(const std::vector<std::string>& files, bool as_bytes,
                                 const ValueSpec& spec);

// Returns the names of a file's values. INVALID_ARGUMENT if it is no file of named values.
absl::StatusOr<std::vector<std::string>> ValueNames(const std::string& path);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_LIB_VALUE_FILE_H_
