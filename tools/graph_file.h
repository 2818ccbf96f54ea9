#ifndef WEIR_TOOLS_GRAPH_FILE_H_
#define WEIR_TOOLS_GRAPH_FILE_H_

#include <string>
#include <vector>

#include "weir/core/status.h"

// Graphs in whatever file they come: a GraphDef (graph.pb, or .pbtxt as text), a MetaGraphDef
// (model.meta, likewise), or the folder of a SavedModel.
namespace weir::proto {
class MetaGraphDef;
}  // namespace weir::proto

namespace weir::tools {

class Command;
// Declares GRAPH: such a file.
void AddGraphArgument(Command& command, std::string* file);

enum class GraphFileKind { kGraph, kMetaGraph, kSavedModel };

// What the file is, by its contents. INVALID_ARGUMENT if it is none of them, saying why.
absl::StatusOr<GraphFileKind> GraphFileKindOf(const std::string& path);

// The message as it is in the file: nothing is imported, so unknown ops are no error. A GraphDef
// comes as the graph of a MetaGraphDef that is empty otherwise. Of a SavedModel: the meta graph
// with exactly these tags, or the only one if `tags` is empty.
absl::StatusOr<GraphFileKind> ReadAnyGraph(const std::string& path,
                                           const std::vector<std::string>& tags,
                                           proto::MetaGraphDef* meta);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_GRAPH_FILE_H_
