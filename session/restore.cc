#include <map>
#include <memory>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "weir/core/bundle.h"
#include "weir/session/saver.h"
#include "weir/session/uninitialized.h"

namespace weir {

// Restoring, all or nothing. The restore op of a graph depends on one node that reads (RestoreV2),
// or on several if the saver is sharded, and each assignment runs as soon as its value is there: an
// error in the second node would come when the variables of the first are overwritten already, and
// a shape that does not fit is found by the assignment itself.
//
// So the reading is taken out of the step. The inputs of the reading nodes (path, names, slices)
// are fetched, the tensors read here, and compared with the variables they flow to. Then the
// restore op runs with the outputs of the reading nodes fed; what is left of the step are
// assignments that have been checked. Each tensor is read once.
namespace {

bool Reads(const Node& node) {
  return node.op_name() == "RestoreV2" || node.op_name() == "RestoreSlice" ||
         node.op_name() == "Restore";
}

// The reading nodes that `target` depends on.
std::vector<Node*> ReadersBefore(Node* target) {
  std::vector<Node*> readers, stack = {target};
  absl::flat_hash_set<const Node*> seen = {target};
  const auto visit = [&](Node* node) {
    if (seen.insert(node).second) stack.push_back(node);
  };
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    if (Reads(*node)) readers.push_back(node);
    for (const Output& input : node->inputs()) visit(input.node);
    for (Node* control : node->control_inputs()) visit(control);
  }
  return readers;
}

// One output of a reading node.
struct Wanted {
  Output output;
  std::string path, name, slice;
  Tensor value;
  absl::Status status;
};

absl::StatusOr<std::vector<Wanted>> ListWanted(Session& session, const std::vector<Node*>& readers,
                                               Output filename, const std::string& path) {
  const Tensor fed = Tensor::Scalar(path);
  Outputs fetches;
  for (const Node* node : readers) {
    for (const Output& input : node->inputs()) {
      if (input != filename) fetches.push_back(input);
    }
  }
  WEIR_ASSIGN_OR_RETURN(const Tensors values, session.Run({{filename, fed}}, fetches));
  std::vector<Wanted> wanted;
  size_t next = 0;
  for (const Node* node : readers) {
    Tensors in;
    for (const Output& input : node->inputs()) {
      in.push_back(input == filename ? fed : values[next++]);
    }
    for (int i = 0; i < node->num_inputs(); ++i) {
      if (in[i].dtype() != DT_STRING ||
          in[i].num_elements() != (i == 0 ? 1 : node->num_outputs())) {
        return InvalidArgument(node->Label(), ": input ", i, " is ", in[i].Description(), " for ",
                               node->num_outputs(), " tensors");
      }
    }
    for (int k = 0; k < node->num_outputs(); ++k) {
      wanted.push_back({node->output(k), in[0].scalar<std::string>(), in[1].data<std::string>()[k],
                        node->num_inputs() > 2 ? in[2].data<std::string>()[k] : "", Tensor(),
                        absl::OkStatus()});
    }
  }
  return wanted;
}

absl::Status ReadAll(Session& session, std::vector<Wanted>* wanted) {
  std::map<std::string, std::unique_ptr<CheckpointReader>> readers;
  for (const Wanted& w : *wanted) {
    std::unique_ptr<CheckpointReader>& reader = readers[w.path];
    if (reader != nullptr) continue;
    WEIR_ASSIGN_OR_RETURN(reader, CheckpointReader::Open(w.path));
  }
  session.pool().ForEach(static_cast<int>(wanted->size()), [&](int i) {
    Wanted& w = (*wanted)[i];
    absl::StatusOr<Tensor> value =
        ReadFromCheckpoint(*readers[w.path], w.name, w.slice, w.output.dtype());
    w.status = value.status();
    if (value.ok()) w.value = *std::move(value);
  });
  for (const Wanted& w : *wanted) WEIR_RETURN_IF_ERROR(w.status);
  return absl::OkStatus();
}

// A restored value on its way to the variable it is for.
struct Flowing {
  std::string name;  // in the checkpoint
  Shape shape;
};

absl::Status CheckAssignment(const Node& assign, const Flowing& value) {
  const Output target = assign.input(0);
  Shape declared = target.shape();
  if (assign.op_name() == "AssignVariableOp") {
    const HandleData* handle = target.node->output_handle(target.index);
    declared = handle != nullptr ? handle->shape : Shape::UnknownRank();
  } else if (!assign.attr_or<bool>("validate_shape", true)) {
    return absl::OkStatus();
  }
  if (declared.IsCompatibleWith(value.shape)) return absl::OkStatus();
  return InvalidArgument(
      "Assign requires shapes of both tensors to match. lhs shape= ", declared.ToString(),
      " rhs shape= ", value.shape.ToString(), ": variable ", target.node->name(),
      " cannot take tensor ", value.name, " of the checkpoint; nothing was restored");
}

// Follows the values to the assignments. Returns the names of the variables.
absl::StatusOr<std::set<std::string>> CheckShapes(const Graph& graph,
                                                  const std::vector<Wanted>& wanted) {
  std::set<std::string> variables;
  absl::flat_hash_map<Output, Flowing> flowing;
  for (const Wanted& w : wanted) flowing[w.output] = {w.name, w.value.shape()};
  // Nodes are in no order after an import: go round until nothing is new.
  for (bool again = true; again;) {
    again = false;
    for (const std::unique_ptr<Node>& node : graph.nodes()) {
      const bool passes = node->op_name() == "Identity" || node->op_name() == "Reshape";
      const int from = passes ? 0 : 1;
      if ((!passes && node->op_name() != "Assign" && node->op_name() != "AssignVariableOp"))
        continue;
      const auto found = flowing.find(node->input(from));
      if (found == flowing.end()) continue;
      Flowing value = found->second;
      if (!passes) {
        WEIR_RETURN_IF_ERROR(CheckAssignment(*node, value));
        variables.insert(node->input(0).node->name());
        continue;
      }
      if (node->op_name() == "Reshape") {
        const Shape& target = node->output_shape(0);
        if (target.IsFullyDefined() && target.num_elements() != value.shape.num_elements()) {
          return InvalidArgument("tensor ", value.name, " of the checkpoint has shape ",
                                 value.shape.ToString(), ", which cannot be reshaped to ",
                                 target.ToString(), "; nothing was restored");
        }
        value.shape = target;
      }
      again |= flowing.emplace(node->output(0), std::move(value)).second;
    }
  }
  return variables;
}

}  // namespace

absl::Status RestoreVariables(Session& session, const SaverDef& def, const std::string& path) {
  if (path.empty()) return InvalidArgument("Can't load save_path when it is empty");
  std::string pattern = path;
  if (def.version < 2 && def.sharded && !CheckpointExists(pattern))
    pattern +=
        "-?????"
        "-of-?????";
  if (!CheckpointExists(pattern))
    return NotFound("The passed save_path is not a valid checkpoint: ", path);
  const Graph& graph = session.graph();
  WEIR_ASSIGN_OR_RETURN(const Output filename, graph.FindOutput(def.filename_tensor_name));
  Node* restore = graph.FindNode(def.restore_op_name);
  if (restore == nullptr)
    return NotFound("the graph has no restore op '", def.restore_op_name, "'");
  const std::vector<Node*> readers = ReadersBefore(restore);
  Feeds feeds = {{filename, Tensor::Scalar(pattern)}};
  std::set<std::string> variables;
  if (!readers.empty()) {
    WEIR_ASSIGN_OR_RETURN(std::vector<Wanted> wanted,
                          ListWanted(session, readers, filename, pattern));
    WEIR_RETURN_IF_ERROR(ReadAll(session, &wanted));
    WEIR_ASSIGN_OR_RETURN(variables, CheckShapes(graph, wanted));
    for (Wanted& w : wanted) feeds.emplace_back(w.output, std::move(w.value));
  }
  WEIR_RETURN_IF_ERROR(session.Run(feeds, {}, {Operation(restore)}).status());
  RestoredCheckpoint::Of(session.resources())->Set(path, std::move(variables));
  return absl::OkStatus();
}

}  // namespace weir
