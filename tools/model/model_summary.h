#ifndef WEIR_TOOLS_MODEL_MODEL_SUMMARY_H_
#define WEIR_TOOLS_MODEL_MODEL_SUMMARY_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "weir/core/tensor/status.h"

namespace weir::tools {

// Describes the model that a path denotes (ReadAnyGraph), without running it:
//
//   kind           "SavedModel", "MetaGraph", "GraphDef" or "ONNX model"; file: what was read
//   tags, tensorflow, producer, min_consumer, nodes, library_functions, init_op
//   signatures     [{name, method, inputs, outputs}], with [{name, dtype, shape, tensor, default}]
//   functions      [{name, private, inputs, results}]: of the objects of a model of TensorFlow 2;
//                  "f[1]" for the second trace of several; "private" if a name on the way to it
//                  begins with '_'
//   placeholders, ends   of a graph without signatures: what can be fed, and what no node uses
//   assets         [{file, bytes, tensor}]
//   variables      {count, bytes}; checkpoint: {prefix, tensors, bytes}, or null
//   missing_ops    [{op, nodes, in_functions, missing}]
//
// A shape is a list with -1 for an unknown dimension, or null. Errors are those of ReadAnyGraph.
absl::StatusOr<nlohmann::ordered_json> SummarizeModel(const std::string& path,
                                                      const std::vector<std::string>& tags);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_MODEL_MODEL_SUMMARY_H_
