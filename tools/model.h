#ifndef WEIR_TOOLS_MODEL_H_
#define WEIR_TOOLS_MODEL_H_

#include <memory>
#include <string>
#include <vector>

#include "weir/session/saved_model.h"
#include "weir/session/session.h"
#include "weir/tools/graph_file.h"

namespace weir::tools {

// A graph from a file in a session of its own, and what the file says besides of how to use it.
struct Model {
  std::shared_ptr<const proto::MetaGraphDef> file;  // of a MetaGraphDef's file only
  std::unique_ptr<Graph> graph;
  MetaGraph meta;
  std::unique_ptr<Session> session;  // of a SavedModel: restored and initialized
};

struct ModelOptions {
  std::vector<std::string> tags;  // of a SavedModel
  std::string device;             // for nodes that ask for none; not for a SavedModel
  SessionOptions session;
};

absl::StatusOr<Model> LoadModel(GraphFileKind kind, const std::string& path,
                                const ModelOptions& options = {});

// Declares --checkpoint, whose value RestoreModel takes.
void AddCheckpointOption(Command& command, std::string* checkpoint);
// NOT_FOUND if the graph has no such node.
absl::StatusOr<Operation> FindOperation(const Graph& graph, const std::string& name);

// Gives the variables the values of a checkpoint, or of the newest in a folder: by the model's
// saver, or (of a GraphDef) by the saver whose nodes are in the scope "save"; else all variables
// that the graph has, by name.
absl::Status RestoreModel(Model& model, const std::string& path);

// Writes the values of the variables to a checkpoint, by the same saver.
absl::Status SaveModel(Model& model, const std::string& prefix);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_MODEL_H_
