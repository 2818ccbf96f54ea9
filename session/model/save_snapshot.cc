#include "weir/session/model/save_snapshot.h"

#include <algorithm>
#include <utility>

#include "weir/core/io/saved_slice.h"
#include "weir/session/model/ancestors.h"

namespace weir {
namespace {

// SaveV2 has the inputs prefix, names, slices, and the tensors.
constexpr int kFirstValue = 3;

// The nodes of a graph that write.
struct SaveNodes {
  std::vector<const Node*> savers;
  const Node* merger = nullptr;
};

absl::StatusOr<SaveNodes> FindSaveNodes(const Graph& graph, const SaverDef& def) {
  WEIR_ASSIGN_OR_RETURN(const Output saved, graph.FindOutput(def.save_tensor_name));
  SaveNodes nodes;
  for (const Node* node : Ancestors({saved.node})) {
    if (node->op_name() == "SaveV2") nodes.savers.push_back(node);
    if (node->op_name() == "MergeV2Checkpoints") nodes.merger = node;
  }
  if (nodes.savers.empty() || (nodes.savers.size() > 1 && nodes.merger == nullptr)) {
    return Unimplemented(def.save_tensor_name,
                         " does not write a checkpoint in format V2: save with SaveMode::kSync");
  }
  std::sort(nodes.savers.begin(), nodes.savers.end(),
            [](const Node* a, const Node* b) { return a->id() < b->id(); });
  return nodes;
}

absl::StatusOr<std::vector<std::string>> Strings(const Node& node, int input, const Tensor& value) {
  const int count = node.num_inputs() - kFirstValue;
  if (value.dtype() != DT_STRING || value.num_elements() != (input == 0 ? 1 : count)) {
    return InvalidArgument(node.Label(), ": input ", input, " is ", value.Description(), " for ",
                           count, " tensors");
  }
  const auto strings = value.flat<std::string>();
  return std::vector<std::string>(strings.begin(), strings.end());
}

}  // namespace

absl::StatusOr<SaveSnapshot> SaveSnapshot::Take(Session& session, const SaverDef& def,
                                                const std::string& path) {
  if (session.devices().empty())
    return Unimplemented("a session on a server saves with SaveMode::kSync only");
  const Graph& graph = session.graph();
  WEIR_ASSIGN_OR_RETURN(const SaveNodes nodes, FindSaveNodes(graph, def));
  WEIR_ASSIGN_OR_RETURN(const Output filename, graph.FindOutput(def.filename_tensor_name));
  // A fed tensor cannot be fetched as well.
  Outputs fetches;
  for (const Node* node : nodes.savers) {
    for (const Output& input : node->inputs()) {
      if (input != filename) fetches.push_back(input);
    }
  }
  const Tensor path_value = Tensor::Scalar(path);
  WEIR_ASSIGN_OR_RETURN(Tensors fetched, session.Run({{filename, path_value}}, fetches));
  SaveSnapshot snapshot;
  size_t next = 0;
  for (const Node* node : nodes.savers) {
    Tensors inputs;
    for (const Output& input : node->inputs())
      inputs.push_back(input == filename ? path_value : std::move(fetched[next++]));
    Part& part = snapshot.parts_.emplace_back();
    part.durability = DurabilityOf(*node);
    WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> prefix, Strings(*node, 0, inputs[0]));
    part.prefix = prefix[0];
    WEIR_ASSIGN_OR_RETURN(part.names, Strings(*node, 1, inputs[1]));
    WEIR_ASSIGN_OR_RETURN(part.specs, Strings(*node, 2, inputs[2]));
    part.values.assign(std::make_move_iterator(inputs.begin() + kFirstValue),
                       std::make_move_iterator(inputs.end()));
  }
  if (nodes.merger != nullptr) {
    snapshot.merged_ = path;
    snapshot.durability_ = DurabilityOf(*nodes.merger);
  }
  return snapshot;
}

absl::Status SaveSnapshot::Write() {
  std::vector<std::string> prefixes;
  for (Part& part : parts_) {
    WEIR_RETURN_IF_ERROR(WriteSavedTensors(part.prefix, part.names, part.specs,
                                           std::move(part.values), part.durability));
    prefixes.push_back(std::move(part.prefix));
  }
  if (merged_.empty()) return absl::OkStatus();
  return MergeSavedParts(prefixes, merged_, /*allow_missing=*/false, durability_);
}

}  // namespace weir
