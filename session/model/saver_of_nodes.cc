#include <memory>
#include <utility>

#include "weir/ops/framework/variables.h"
#include "weir/session/model/saver.h"
#include "weir/session/plan/variable_use.h"

namespace weir {
namespace {

// Returns a handle to a node that stores a variable, with a read of its own.
Variable HandleOf(Node* storage) {
  auto info = std::make_shared<VariableInfo>();
  info->op = storage->name();
  info->handle = storage->output();
  info->is_resource = !IsRef(storage->output_type(0));
  info->dtype = storage->attr_or<DataType>("dtype", DT_INVALID);
  info->shape = storage->attr_or<Shape>("shape", Shape::UnknownRank());
  if (!info->is_resource)
    info->snapshot = AddOp("Identity", {info->handle}, {}, info->op + "/read");
  return Variable(std::move(info));
}

}  // namespace

absl::StatusOr<SaverDef> AddSaverOfNodes(Graph& graph,
                                         const std::map<std::string, std::string>& keys,
                                         std::vector<SavedTable> tables) {
  Variables variables;
  for (int i = 0, n = graph.num_nodes(); i < n; ++i) {
    Node* node = graph.nodes()[i].get();
    if (IsVariable(*node)) variables.push_back(HandleOf(node));
  }
  NamedVariables named = NameVariables(variables);
  for (auto& [name, variable] : named) {
    if (const auto key = keys.find(name); key != keys.end()) name = key->second;
  }
  SaverGraphOptions options;
  options.tables = std::move(tables);
  return BuildSaverGraph(graph, std::move(named), options);
}

}  // namespace weir
