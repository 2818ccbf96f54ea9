#ifndef WEIR_ONNX_ONNX_IMPORT_H_
#define WEIR_ONNX_ONNX_IMPORT_H_

#include <string>

#include "weir/core/graph/graph.h"
#include "weir/session/model/meta_graph.h"

// ONNX models (https://onnx.ai, IR versions 3 to 14, operator sets 7 to 28) as graphs of
// TensorFlow's ops, which sessions run, optimizers train and savers save like any others.
// docs/onnx.md lists the operators.
namespace weir::onnx {

// How a model is added to a graph.
struct ImportOptions {
  // The floating-point initializers of the model's main graph become variables, with the
  // initializer as the initial value, except scalars. All are trainable but the running statistics
  // of batch normalizations. Otherwise all initializers are constants.
  bool as_variables = false;
  // The folder with the files to which a model may move its large tensors; none is read outside of
  // it. ImportOnnxFile uses the folder of the model. Empty: such a model is FAILED_PRECONDITION.
  std::string data_folder = {};
};

// Adds a model's nodes to the graph, in the current scope. A value named "/conv/Conv_output" gives
// nodes named "conv/Conv_output": characters that TensorFlow's names lack become '_'. The inputs
// are placeholders, and the outputs identities, of the ONNX names; an input that has an initializer
// is a constant. The result has one signature, "serving_default", with the ONNX names of inputs and
// outputs, and what the model declares of their types and shapes.
//
// The arithmetic is ONNX's: where TensorFlow's op differs, several nodes compute the result.
//
// clang-format off
//   INVALID_ARGUMENT    bytes that are no ONNX model; nodes out of order; a tensor whose data does
//                       not fit its shape; attributes, types and shapes that the operator rejects
//   UNIMPLEMENTED       an operator, a version, a type or an attribute that Weir does not have;
//                       the message names the node, the operator and the version of its set
//   NOT_FOUND           external data that is missing
// clang-format on
//
// After an error the graph has the error, and the nodes added so far.
absl::StatusOr<MetaGraph> ImportOnnx(Graph& graph, absl::string_view bytes,
                                     const ImportOptions& options = {});
// The same for a file, and the files with its tensors. Also returns errors of reading.
absl::StatusOr<MetaGraph> ImportOnnxFile(Graph& graph, const std::string& path,
                                         ImportOptions options = {});

// Returns true for bytes with the fields of an ONNX model: an IR version, a graph, and the version
// of an operator set. No other message that Weir reads has these. The fields are not parsed.
bool LooksLikeOnnx(absl::string_view bytes);

}  // namespace weir::onnx

#endif  // WEIR_ONNX_ONNX_IMPORT_H_
