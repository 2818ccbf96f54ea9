#ifndef WEIR_TESTS_ONNX_NODE_CASE_H_
#define WEIR_TESTS_ONNX_NODE_CASE_H_

#include <string>
#include <vector>

#include "weir/core/tensor/status.h"

namespace weir::onnx {

// A test of onnx.backend.test: a model, and values of its inputs with the outputs that it must
// give. All are serialized messages.
struct NodeCase {
  std::string name;                  // "test_relu"
  std::string op;                    // of the model's last node
  std::string model;                 // a ModelProto
  std::vector<std::string> inputs;   // TensorProtos; a SequenceProto or OptionalProto is not read
  std::vector<std::string> outputs;  // the same
};

// Reads a folder as onnx's data generator writes it: model.onnx, and test_data_set_0/ with
// input_0.pb and so on.
absl::StatusOr<NodeCase> ReadNodeCase(const std::string& folder);

// Cases in one record file, and its reader.
absl::Status WriteNodeCases(const std::vector<NodeCase>& cases, const std::string& path);
absl::StatusOr<std::vector<NodeCase>> ReadNodeCases(const std::string& path);

// Imports the model, runs it and compares the outputs: types and shapes are equal, numbers are
// within 1e-7 plus 1e-3 of the expected one, as in onnx's own tests. UNIMPLEMENTED if the model
// needs what Weir does not import; DATA_LOSS, with the first wrong element, for a wrong result.
absl::Status RunNodeCase(const NodeCase& node_case);

}  // namespace weir::onnx

#endif  // WEIR_TESTS_ONNX_NODE_CASE_H_
