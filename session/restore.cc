#include <algorithm>
#include <iterator>
#include <map>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/container/node_hash_map.h"
#include "weir/core/bundle.h"
#include "weir/session/saver.h"
#include "weir/session/uninitialized.h"
#include "weir/session/variable_use.h"

namespace weir {

// Restoring, all or nothing, and in the memory that the variables have. The restore op of a graph
// depends on one node that reads (RestoreV2), or on several if the saver is sharded, and each
// assignment runs as soon as its value is there: an error in the second node would come when the
// variables of the first are overwritten already, a shape that does not fit is found by the
// assignment itself, and all values are in memory twice, the read ones and those they replace.
//
// So the reading is taken out of the step. The inputs of the reading nodes (path, names, slices)
// are fetched, what the checkpoint's index says of the tensors is compared with the variables they
// flow to, and every byte is read and checked. Only then is anything written:
// - A value whose one way leads to a variable that nothing else touches here, and that has a value
//   of its shape in host memory that nobody shares, is only checked at first, in a small buffer,
//   and read a second time into that memory. Files are open since before the first reading, and a
//   file that a writer replaces stays what it was for who has it open; so the second reading finds
//   the same bytes unless the disk fails. Then the variable is left without a value, which every
//   use of it will say. Small values are kept instead, 32 MB of them at most.
// - Other values are kept, and the restore op runs with the outputs of the reading nodes fed; what
//   is left of the step are assignments that have been checked.
namespace {

bool Reads(const Node& node) {
  return node.op_name() == "RestoreV2" || node.op_name() == "RestoreSlice" ||
         node.op_name() == "Restore";
}

// The nodes that `target` depends on, itself included.
std::vector<Node*> NodesBefore(const Graph& graph, Node* target) {
  std::vector<Node*> nodes;
  std::vector<bool> seen(graph.num_nodes(), false);
  const auto visit = [&](Node* node) {
    if (!seen[node->id()]) nodes.push_back(node);
    seen[node->id()] = true;
  };
  visit(target);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = *nodes[i];
    for (const Output& input : node.inputs()) visit(input.node);
    for (Node* control : node.control_inputs()) visit(control);
  }
  return nodes;
}

// An assignment, and the shape in which the value reaches it.
struct Assignment {
  const Node* node = nullptr;
  Shape shape;
  bool stands_alone = false;  // to set the variable comes to the same
};

// One output of a reading node.
struct Wanted {
  Output output;
  std::string path, name, slice;
  Shape shape;
  absl::InlinedVector<Assignment, 1> assignments;  // that it flows to
  // The variable whose memory it is read into, and the assignment that this stands for; if null,
  // the value is read here.
  std::shared_ptr<VariableState> variable;
  const Node* assign = nullptr;
  bool keep = false;  // the value, although there is a variable
  Tensor value;
  absl::Status status;
};

absl::StatusOr<std::vector<Wanted>> ListWanted(Session& session, const std::vector<Node*>& readers,
                                               Output filename, const std::string& path) {
  if (readers.empty()) return std::vector<Wanted>();  // it restores without reading
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
      wanted.push_back({.output = node->output(k),
                        .path = in[0].scalar<std::string>(),
                        .name = in[1].data<std::string>()[k],
                        .slice = node->num_inputs() > 2 ? in[2].data<std::string>()[k] : ""});
    }
  }
  return wanted;
}

using Readers = std::map<std::string, std::unique_ptr<CheckpointReader>>;

// Opens the checkpoints, and looks up what they have.
absl::StatusOr<Readers> FindAll(std::vector<Wanted>* wanted) {
  Readers readers;
  for (Wanted& w : *wanted) {
    std::unique_ptr<CheckpointReader>& reader = readers[w.path];
    if (reader == nullptr) {
      WEIR_ASSIGN_OR_RETURN(reader, CheckpointReader::Open(w.path));
    }
    WEIR_ASSIGN_OR_RETURN(w.shape, ShapeInCheckpoint(*reader, w.name, w.slice, w.output.dtype()));
  }
  return readers;
}

// Calls fn(Wanted&) for each, on all threads; the first error.
template <class F>
absl::Status ForEach(Session& session, std::vector<Wanted>* wanted, const F& fn) {
  session.pool().ForEach(static_cast<int>(wanted->size()),
                         [&](int i) { (*wanted)[i].status = fn((*wanted)[i]); });
  for (const Wanted& w : *wanted) WEIR_RETURN_IF_ERROR(w.status);
  return absl::OkStatus();
}

// A restored value on its way to the variable it is for.
struct Flowing {
  Wanted* from = nullptr;
  Shape shape;
  bool only_way = false;  // it goes nowhere else
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
      " cannot take tensor ", value.from->name, " of the checkpoint; nothing was restored");
}

// What the nodes that run here do with one another's values. There may be a hundred thousand of
// them, so nothing here is looked up by name, and a variable's key is made once.
class Uses {
 public:
  Uses(const Graph& graph, const std::vector<Node*>& nodes)
      : first_(graph.num_nodes(), -1), awaited_(graph.num_nodes()), is_shared_(graph.num_nodes()) {
    int outputs = 0;
    for (const Node* node : nodes) {
      first_[node->id()] = outputs;
      outputs += node->num_outputs();
    }
    counts_.assign(outputs, 0);
    for (const Node* node : nodes) {
      for (const Output& input : node->inputs()) ++counts_[IndexOf(input)];
      if (IsVariable(*node)) AddVariable(*node);
      if (!node->control_inputs().empty() && node->op_name() != "NoOp") Await(*node);
    }
  }
  // Of all outputs of the nodes, without gaps.
  int IndexOf(const Output& value) const { return first_[value.node->id()] + value.index; }
  int num_outputs() const { return static_cast<int>(counts_.size()); }
  int Count(const Output& value) const { return counts_[IndexOf(value)]; }
  // The value is taken once, and nothing happens in between.
  bool IsOnlyStep(const Node& node) const {
    return node.control_inputs().empty() && !awaited_[node.id()] &&
           (node.num_outputs() == 0 || Count(node.output(0)) <= 1);
  }
  // The assignment is all that is done with its variable, and nobody waits for it but the restore
  // op.
  bool IsAlone(const Node& assign) const {
    const Node& target = *assign.input(0).node;
    return IsVariable(target) && IsOnlyStep(assign) && Count(assign.input(0)) == 1 &&
           !is_shared_[target.id()] && (assign.num_outputs() == 0 || Count(assign.output(0)) == 0);
  }
  const std::pair<std::string, std::string>& KeyOf(const Node& variable) const {
    return keys_.at(&variable);
  }

 private:
  void AddVariable(const Node& node) {
    const auto& key = keys_.emplace(&node, VariableKey(node)).first->second;
    const auto [first, is_new] = nodes_.emplace(key, &node);
    if (!is_new) is_shared_[node.id()] = is_shared_[first->second->id()] = true;
  }
  void Await(const Node& node) {
    std::vector<const Node*> stack = {&node};
    while (!stack.empty()) {
      const Node* const waiting = stack.back();
      stack.pop_back();
      for (const Node* control : waiting->control_inputs()) {
        if (!awaited_[control->id()] && control->op_name() == "NoOp") stack.push_back(control);
        awaited_[control->id()] = true;
      }
    }
  }

  std::vector<int> first_;       // by node: the index of its first output
  std::vector<int> counts_;      // by output
  std::vector<bool> awaited_;    // by control edges, perhaps of groups, to other nodes
  std::vector<bool> is_shared_;  // variables that another node is, too
  absl::node_hash_map<const Node*, std::pair<std::string, std::string>> keys_;
  absl::flat_hash_map<std::pair<absl::string_view, absl::string_view>, const Node*> nodes_;
};

// Follows the values to the assignments, and checks that they fit. Gives the names of the variables
// that are assigned to.
absl::StatusOr<absl::flat_hash_set<std::string>> FollowValues(const Graph& graph,
                                                              const std::vector<Node*>& nodes,
                                                              const Uses& uses,
                                                              std::vector<Wanted>* wanted) {
  const auto find = [&](absl::string_view op) { return graph.ops().Find(op); };
  const OpSpec *const reshape = find("Reshape"), *const identity = find("Identity"),
                      *const assign = find("Assign"),
                      *const assign_resource = find("AssignVariableOp");
  const auto passes = [&](const Node* node) {
    return &node->op() == identity || &node->op() == reshape;
  };
  std::vector<const Node*> takers;
  std::copy_if(nodes.begin(), nodes.end(), std::back_inserter(takers), [&](const Node* node) {
    return passes(node) || &node->op() == assign || &node->op() == assign_resource;
  });
  absl::flat_hash_set<std::string> variables;
  std::vector<Flowing> flowing(uses.num_outputs());
  for (Wanted& w : *wanted)
    flowing[uses.IndexOf(w.output)] = {&w, w.shape, uses.Count(w.output) == 1};
  std::vector<bool> seen(graph.num_nodes());
  // Those that were found last come first, as a rule; go round until nothing is new.
  std::reverse(takers.begin(), takers.end());
  for (bool again = true; again;) {
    again = false;
    for (const Node* node : takers) {
      const Flowing& found = flowing[uses.IndexOf(node->input(passes(node) ? 0 : 1))];
      if (found.from == nullptr || seen[node->id()]) continue;
      seen[node->id()] = true;
      Flowing value = found;
      if (!passes(node)) {
        WEIR_RETURN_IF_ERROR(CheckAssignment(*node, value));
        variables.insert(node->input(0).node->name());
        value.from->assignments.push_back(
            {node, value.shape, value.only_way && uses.IsAlone(*node)});
        continue;
      }
      value.only_way &= uses.IsOnlyStep(*node);
      if (&node->op() == reshape) {
        const Shape& target = node->output_shape(0);
        if (target.IsFullyDefined() && target.num_elements() != value.shape.num_elements()) {
          return InvalidArgument("tensor ", value.from->name, " of the checkpoint has shape ",
                                 value.shape.ToString(), ", which cannot be reshaped to ",
                                 target.ToString(), "; nothing was restored");
        }
        value.shape = target;
      }
      flowing[uses.IndexOf(node->output(0))] = std::move(value);
      again = true;
    }
  }
  return variables;
}

// The memory is the variable's alone, and has the value's shape. Needs the variable's mutex.
bool HasRoom(const VariableState& variable, const Wanted& w) {
  const Tensor& value = variable.value();
  return value.dtype() == w.output.dtype() && value.shape() == w.shape && value.host_accessible() &&
         value.OwnsBufferAlone();
}

// Chooses the values that are read into their variables' memory.
void ChooseMemory(Session& session, const Uses& uses, std::vector<Wanted>* wanted) {
  // Two readings of a small value take longer than memory for it.
  constexpr size_t kSmallBytes = size_t{1} << 16, kKeptBytes = size_t{1} << 25;
  size_t kept = 0;
  absl::flat_hash_set<const VariableState*> taken;
  for (Wanted& w : *wanted) {
    if (!w.slice.empty() || w.assignments.size() != 1) continue;
    if (w.assignments[0].shape != w.shape || !w.assignments[0].stands_alone) continue;
    const Node& assign = *w.assignments[0].node;
    const auto& [container, name] = uses.KeyOf(*assign.input(0).node);
    auto variable = session.resources().Lookup<VariableState>(container, name);
    if (variable == nullptr || !taken.insert(variable.get()).second) continue;
    const std::lock_guard<std::mutex> lock(variable->mutex());
    if (!HasRoom(*variable, w)) continue;
    const size_t bytes = variable->value().num_bytes();
    w.keep = bytes <= kSmallBytes && kept + bytes <= kKeptBytes;
    if (w.keep) kept += bytes;
    w.variable = std::move(variable);
    w.assign = &assign;
  }
}

// Gives the variable its value: the one that was kept, or the checkpoint's, read a second time.
absl::Status SetVariable(CheckpointReader& reader, Wanted& w) {
  VariableState& variable = *w.variable;
  const std::lock_guard<std::mutex> lock(variable.mutex());
  if (w.value.initialized()) {
    variable.Set(std::move(w.value));
    return absl::OkStatus();
  }
  absl::Status status;
  if (HasRoom(variable, w)) {
    Tensor memory = variable.value();
    status = reader.ReadInto(w.name, &memory);
  } else {  // somebody holds it since
    absl::StatusOr<Tensor> value = reader.Read(w.name);
    status = value.status();
    if (value.ok()) variable.Set(*std::move(value));
  }
  if (status.ok()) return status;
  variable.Set(Tensor());
  return Annotate(status, absl::StrCat(variable.Describe(), ", and perhaps others, has no value ",
                                       "any more, because the checkpoint could be read once and ",
                                       "not again"));
}

// What is left to run: the nodes that the restore op stands for, but for assignments that have been
// made.
std::vector<Operation> Remaining(Node* restore, const std::vector<Wanted>& wanted) {
  absl::flat_hash_set<const Node*> made, seen;
  for (const Wanted& w : wanted) {
    if (w.assign != nullptr) made.insert(w.assign);
  }
  std::vector<Operation> out;
  std::vector<Node*> stack = {restore};
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    if (made.contains(node) || !seen.insert(node).second) continue;
    if (node->op_name() == "NoOp") {
      stack.insert(stack.end(), node->control_inputs().begin(), node->control_inputs().end());
    } else {
      out.emplace_back(node);
    }
  }
  return out;
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
  const std::vector<Node*> nodes = NodesBefore(graph, restore);
  std::vector<Node*> readers;
  std::copy_if(nodes.begin(), nodes.end(), std::back_inserter(readers),
               [](const Node* node) { return Reads(*node); });
  WEIR_ASSIGN_OR_RETURN(std::vector<Wanted> wanted,
                        ListWanted(session, readers, filename, pattern));
  WEIR_ASSIGN_OR_RETURN(const Readers checkpoints, FindAll(&wanted));
  const Uses uses(graph, nodes);
  WEIR_ASSIGN_OR_RETURN(auto variables, FollowValues(graph, nodes, uses, &wanted));
  ChooseMemory(session, uses, &wanted);
  const auto read = [&](Wanted& w) -> absl::Status {
    CheckpointReader& reader = *checkpoints.at(w.path);
    if (w.variable == nullptr) {
      WEIR_ASSIGN_OR_RETURN(w.value, ReadFromCheckpoint(reader, w.name, w.slice, w.output.dtype()));
      return absl::OkStatus();
    }
    if (!w.keep) return reader.Check(w.name);
    WEIR_ASSIGN_OR_RETURN(w.value, reader.Read(w.name));
    return absl::OkStatus();
  };
  WEIR_RETURN_IF_ERROR(ForEach(session, &wanted, read));

  if (const std::vector<Operation> targets = Remaining(restore, wanted); !targets.empty()) {
    Feeds feeds = {{filename, Tensor::Scalar(pattern)}};
    for (Wanted& w : wanted) {
      if (w.variable == nullptr) feeds.emplace_back(w.output, std::move(w.value));
    }
    WEIR_RETURN_IF_ERROR(session.Run(feeds, {}, targets).status());
  }
  WEIR_RETURN_IF_ERROR(ForEach(session, &wanted, [&](Wanted& w) {
    if (w.variable == nullptr) return absl::OkStatus();
    return SetVariable(*checkpoints.at(w.path), w);
  }));
  RestoredCheckpoint::Of(session.resources())->Set(path, std::move(variables));
  return absl::OkStatus();
}

}  // namespace weir
