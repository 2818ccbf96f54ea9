#ifndef WEIR_TOOLS_GRAPH_GRAPH_FILE_H_
#define WEIR_TOOLS_GRAPH_GRAPH_FILE_H_

#include <string>
#include <vector>

#include "weir/core/tensor/status.h"

// Reading graphs from whatever people pass: a GraphDef, a MetaGraphDef or a SavedModel, as binary,
// text or gzip, told by its contents; the folder of a SavedModel, or of its versions (the newest is
// read); a checkpoint with a .meta file; or an ONNX model, which is converted.
namespace weir::proto {
class MetaGraphDef;
}  // namespace weir::proto

namespace weir::tools {

class Command;
// Adds the argument GRAPH: such a file.
void AddGraphArgument(Command& command, std::string* file, bool required = true);

// Returns the path of the graph that a path denotes: a SavedModel's folder for one of its versions'
// folder, its saved_model.pb or its variables/; the .meta file for a checkpoint, one of its files,
// its state file or its folder. Returns any other path unchanged. The functions below do this.
std::string FindGraph(const std::string& path);

enum class GraphFileKind { kGraph, kMetaGraph, kSavedModel, kOnnx };

// Returns the kind of the file, from its contents. INVALID_ARGUMENT, with the reason, if it is none
// of them. `tags` as for ReadAnyGraph.
absl::StatusOr<GraphFileKind> GraphFileKindOf(const std::string& path,
                                              const std::vector<std::string>& tags = {});

// Returns NOT_FOUND unless `tags` is empty or has exactly the tags of the meta graph in this file.
// A GraphDef has none.
absl::Status CheckTags(const std::string& path, const std::vector<std::string>& tags,
                       const proto::MetaGraphDef& meta);

// Reads the message without importing it, so unknown ops are not an error. A GraphDef is returned
// as the graph of an otherwise empty MetaGraphDef, and an ONNX model as the graph that it becomes,
// with its signature; its operators must be known. For a SavedModel, returns the meta graph with
// exactly these tags, or the only one if `tags` is empty. Another file must have these tags too.
absl::StatusOr<GraphFileKind> ReadAnyGraph(const std::string& path,
                                           const std::vector<std::string>& tags,
                                           proto::MetaGraphDef* meta);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_GRAPH_GRAPH_FILE_H_
