#ifndef WEIR_CAPI_FUNCTION_DEF_H_
#define WEIR_CAPI_FUNCTION_DEF_H_

#include <cstdint>
#include <string>
#include <vector>

#include "weir/core/graph/graph.h"

// Functions that are made of a part of a graph, with the names that TensorFlow gives.
namespace weir::proto {
class FunctionDef;
}

namespace weir::capi {

// What TF_GraphToFunction takes.
struct FunctionArguments {
  std::string name, description;
  bool append_hash = false;
  std::vector<Node*> nodes;  // of the body
  Outputs inputs, outputs;
  const char* const* output_names = nullptr;  // null: those of the nodes
};

// Returns the function. INVALID_ARGUMENT for inputs that occur twice, and for inputs of nodes and
// outputs that come neither from the body nor from the inputs.
absl::StatusOr<proto::FunctionDef> MakeFunctionDef(const FunctionArguments& args,
                                                   const Graph& graph);

// Returns TensorFlow's hash of a function, from which programs make names that they save.
uint64_t FunctionDefHash(const proto::FunctionDef& def);

}  // namespace weir::capi

#endif  // WEIR_CAPI_FUNCTION_DEF_H_
