#ifndef WEIR_ONNX_TENSOR_READER_H_
#define WEIR_ONNX_TENSOR_READER_H_

#include <map>
#include <memory>
#include <string>

#include "weir/core/io/file.h"
#include "weir/core/tensor/tensor.h"

namespace weir::proto::onnx {
class SparseTensorProto;
class TensorProto;
class TypeProto_Tensor;
}  // namespace weir::proto::onnx

namespace weir::onnx {

// Returns the dtype of an ONNX element type (TensorProto.DataType). UNIMPLEMENTED, with its name,
// for one that Weir does not have (float4e2m1, float8e8m0, int2 and others); INVALID_ARGUMENT for
// a number that ONNX does not have.
absl::StatusOr<DataType> DataTypeOfOnnx(int type);
// Returns the ONNX element type of a dtype; 0 (UNDEFINED) if there is none.
int OnnxTypeOf(DataType dtype);

// Returns the shape that a type declares: unknown rank if it declares none, -1 for a dimension
// without a number. INVALID_ARGUMENT for a negative dimension.
absl::StatusOr<Shape> ShapeOfType(const proto::onnx::TypeProto_Tensor& type);

// Reads the tensors of one model. The data of large ones may be in files beside the model, which
// are opened once. The bytes must be exactly those that the shape needs, so no tensor is larger
// than what it is read from. Not thread-safe.
class TensorReader {
 public:
  // `folder` is the one of the model, beyond which no file is read. Empty: a tensor with external
  // data is FAILED_PRECONDITION.
  explicit TensorReader(std::string folder) : folder_(std::move(folder)) {}

  // INVALID_ARGUMENT, with the tensor's name, for dimensions, types and amounts of data that do not
  // fit; also for a location that is absolute, has "..", or is a link out of the folder.
  absl::StatusOr<Tensor> Read(const proto::onnx::TensorProto& proto);
  // The same for a sparse tensor, which becomes dense. RESOURCE_EXHAUSTED for more than 256 MiB.
  absl::StatusOr<Tensor> ReadSparse(const proto::onnx::SparseTensorProto& proto);

 private:
  absl::StatusOr<Tensor> ReadExternal(const proto::onnx::TensorProto& proto, DataType dtype,
                                      const Shape& shape);
  absl::StatusOr<const ReadableFile*> Open(const std::string& location);

  std::string folder_;
  std::map<std::string, std::unique_ptr<ReadableFile>> files_;  // by location
};

}  // namespace weir::onnx

#endif  // WEIR_ONNX_TENSOR_READER_H_
