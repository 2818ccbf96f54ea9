#ifndef WEIR_SESSION_MODEL_CAPTURED_OBJECTS_H_
#define WEIR_SESSION_MODEL_CAPTURED_OBJECTS_H_

#include <map>
#include <string>
#include <vector>

#include "weir/session/model/extract_function.h"

namespace weir {

// True for a table that steps find by its name. (An anonymous one belongs to the step that creates
// it.)
bool IsTable(const Node& node);

// True for a table whose contents steps may change.
bool IsMutableTable(const Node& node);

// The nodes of a graph that hold state, or stand for it, and become objects.
struct CapturedObjects {
  CapturedNodes captured;  // all of them, and the node that represents each
  // Those that represent one, in the order of the graph: variables, tables, and the strings that
  // name assets.
  std::vector<Node*> variables, tables, assets;
};

// Finds the variables, tables and assets of a graph. `assets` has the tensors that name asset
// files. The variable that holds the path of an asset, which TensorFlow 2 writes, is the asset.
absl::StatusOr<CapturedObjects> FindCapturedObjects(
    const Graph& graph, const std::map<std::string, std::string>& assets);

}  // namespace weir

#endif  // WEIR_SESSION_MODEL_CAPTURED_OBJECTS_H_
