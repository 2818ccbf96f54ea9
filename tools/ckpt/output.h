#ifndef WEIR_TOOLS_CKPT_OUTPUT_H_
#define WEIR_TOOLS_CKPT_OUTPUT_H_

#include <memory>
#include <string>
#include <vector>

#include "weir/core/io/bundle.h"
#include "weir/tools/lib/progress.h"

// The tensors of a new checkpoint, which are read, converted and written one after the other, each
// in pieces. So the memory does not depend on the size of the checkpoint.
namespace weir::tools {

// The size of the pieces in which tensors are read and written, in bytes: a multiple of the size of
// every element.
inline constexpr size_t kPieceBytes = size_t{1} << 20;

// A tensor of an existing checkpoint. The reader outlives it.
struct TensorSource {
  CheckpointReader* reader = nullptr;
  std::string name;
  DataType dtype = DT_INVALID;
};

// A tensor of a new checkpoint: its name, dtype and shape there, and where its elements come from.
// If there are several sources, the elements are the means of theirs (of floating-point types).
struct OutputTensor {
  std::string name;
  DataType dtype = DT_INVALID;
  Shape shape;
  std::vector<TensorSource> sources;
  // Values that are too large for the dtype become infinite instead of an error.
  bool allow_overflow = false;
};

// Returns the output tensor that has one tensor of a checkpoint as its source.
OutputTensor CopyOf(CheckpointReader& reader, const CheckpointTensor& tensor);

// An entry of a file's metadata, in formats that have some. `type` is the format's name of the
// value's type, and `json` the value. `gguf` is the type and value as in a GGUF file; empty if it
// is from another format.
struct MetadataEntry {
  std::string key, type, json, gguf = {};
};
using Metadata = std::vector<MetadataEntry>;

// A new checkpoint.
struct Output {
  std::vector<OutputTensor> tensors;  // sorted by name, without duplicates
  Metadata metadata;                  // written by the formats that have metadata
  bool quantize = false;              // GGUF: floating-point matrices are stored as Q8_0
  std::string like;                   // .keras: the model whose weights are replaced
};

// Returns the size of a tensor of plain type in bytes; 0 for strings.
int64_t BytesOf(DataType dtype, const Shape& shape);
// Returns the total size of the tensors of plain types.
int64_t BytesOf(const Output& output);

// Opens the elements of a tensor of plain type, converted to its dtype. A value that the dtype
// cannot hold is an OUT_OF_RANGE error of the stream, with the tensor's name.
absl::StatusOr<std::unique_ptr<TensorStream>> OpenStream(const OutputTensor& tensor);
// Returns the whole tensor, of any type.
absl::StatusOr<Tensor> ReadWhole(const OutputTensor& tensor);
// Passes the elements of a tensor of plain type to `write`, piece by piece.
absl::Status CopyElements(const OutputTensor& tensor,
                          absl::FunctionRef<absl::Status(absl::string_view piece)> write);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_CKPT_OUTPUT_H_
