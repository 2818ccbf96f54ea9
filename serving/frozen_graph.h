#ifndef WEIR_SERVING_FROZEN_GRAPH_H_
#define WEIR_SERVING_FROZEN_GRAPH_H_

#include <string>

#include "weir/session/model/saved_model.h"

namespace weir::serving {

// Loads the one frozen graph (`*.pb`) of a directory. Its only signature, "serving_default", takes
// the placeholders and returns the outputs of nodes that no other node uses; both have the names of
// their nodes, an output after the first "name:1". Returns NOT_FOUND if the directory has no such
// file, INVALID_ARGUMENT if it has several, or if the graph has no placeholder, no output, or a
// variable, whose value the file cannot have.
absl::StatusOr<LoadedModel> LoadFrozenGraph(const std::string& directory, SessionOptions options);

}  // namespace weir::serving

#endif  // WEIR_SERVING_FROZEN_GRAPH_H_
