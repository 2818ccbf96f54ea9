#include "weir/session/model/unfreeze.h"

#include <fnmatch.h>

#include <functional>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "weir/core/import/edges.h"
#include "weir/core/io/function_library.h"
#include "weir/core/io/graph_io.h"
#include "weir/ops/lib/collections.h"
#include "weir/proto/meta_graph.pb.h"
#include "weir/proto/variable.pb.h"
#include "weir/session/model/constant_node.h"
#include "weir/session/model/meta_graph.h"
#include "weir/session/model/scoped_names.h"

// The new graph is the message of the old one. A constant "w" becomes four nodes, as a program that
// creates a variable adds them: the handle "w", the initial value, the assignment that initializes
// the variable, and a read. Consumers take the read in place of the constant, except that an
// Identity of the constant becomes a read itself: freezing makes an Identity of each read, so that
// a graph that was frozen gets its own nodes back.
namespace weir {
namespace {

constexpr int kMaxForwards = 100;  // between a constant and the op whose weight it is

// Ops with weights, and the inputs that take them.
struct WeightOp {
  absl::string_view op;
  std::vector<int> inputs;
  bool is_product = false;  // a vector that is added to the result is a weight
};

const std::vector<WeightOp>& WeightOps() {
  static const auto* const kOps = new std::vector<WeightOp>{{"MatMul", {0, 1}, true},
                                                            {"BatchMatMul", {0, 1}, true},
                                                            {"BatchMatMulV2", {0, 1}, true},
                                                            {"BatchMatMulV3", {0, 1}, true},
                                                            {"Einsum", {0, 1}, true},
                                                            {"SparseMatMul", {0, 1}, true},
                                                            {"SparseTensorDenseMatMul", {3}, true},
                                                            {"Conv2D", {1}, true},
                                                            {"Conv3D", {1}, true},
                                                            {"DepthwiseConv2dNative", {1}, true},
                                                            {"Conv2DBackpropInput", {1}, true},
                                                            {"Conv3DBackpropInputV2", {1}, true},
                                                            {"Dilation2D", {1}, true},
                                                            {"BiasAdd", {1}},
                                                            {"Gather", {0}},
                                                            {"GatherV2", {0}},
                                                            {"FusedBatchNorm", {1, 2}},
                                                            {"FusedBatchNormV2", {1, 2}},
                                                            {"FusedBatchNormV3", {1, 2}},
                                                            {"BlockLSTM", {4, 5, 6, 7, 8}},
                                                            {"BlockLSTMV2", {4, 5, 6, 7, 8}},
                                                            {"LSTMBlockCell", {3, 4, 5, 6, 7}},
                                                            {"GRUBlockCell", {2, 3, 4, 5}}};
  return *kOps;
}

const WeightOp* FindWeightOp(const Node& node) {
  for (const WeightOp& each : WeightOps()) {
    if (each.op == node.op_name()) return &each;
  }
  return nullptr;
}

// Returns the floating-point constant that is passed to a tensor; null for another tensor.
const Node* ConstantBehind(Output value) {
  for (int i = 0; i < kMaxForwards; ++i) {
    const Node* const node = value.node;
    if (node->op_name() == "Const")
      return IsFloating(node->output_type(0)) && node->control_inputs().empty() ? node : nullptr;
    const OpTraits& traits = node->op().traits();
    // What differs from branch to branch, from iteration to iteration, or from step to step.
    if (traits.control_flow == ControlFlow::kMerge || traits.placeholder ||
        node->op_name() == "PlaceholderWithDefault") {
      return nullptr;
    }
    if (node->num_inputs() == 0 || (!traits.forwards() && node->op_name() != "Transpose"))
      return nullptr;
    value = node->input(0);
  }
  return nullptr;
}

// Returns for each variable of a functional loop whether its body returns it unchanged.
std::vector<bool> InvariantVariables(const Node& loop, const FunctionCalls& calls) {
  const size_t skipped = calls.takes_index ? 1 : 0;
  std::vector<bool> invariant(loop.num_inputs() - calls.first_argument);
  const Graph& graph = loop.graph();
  const absl::StatusOr<FunctionBody> body =
      InstantiateFunction(graph.functions(), loop.attr<FunctionRef>(calls.functions.back()),
                          graph.ops(), graph.versions());
  if (!body.ok() || body->results.size() != invariant.size() ||
      body->args.size() != invariant.size() + skipped) {
    return invariant;
  }
  for (size_t i = 0; i < invariant.size(); ++i) {
    Output result = body->results[i];
    while (result.node->op_name() == "Identity" && result.node->control_inputs().empty())
      result = result.node->input(0);
    invariant[i] = result == body->args[i + skipped];
  }
  return invariant;
}

class WeightFinder {
 public:
  void Visit(const Node& node) {
    if (const WeightOp* op = FindWeightOp(node)) {
      for (const int i : op->inputs) {
        if (i < node.num_inputs()) Add(ConstantBehind(node.input(i)));
      }
    }
    if (node.op_name() == "Add" || node.op_name() == "AddV2") {
      for (const int i : {0, 1}) AddBias(node.input(i), node.input(1 - i));
    }
    const FunctionCalls* const calls = node.op().traits().calls;
    if (calls == nullptr) return;
    // What a loop changes from one iteration to the next is no weight.
    const std::vector<bool> invariant =
        calls->is_loop ? InvariantVariables(node, *calls) : std::vector<bool>();
    for (int i = calls->first_argument; i < node.num_inputs(); ++i) {
      if (!calls->is_loop || invariant[i - calls->first_argument])
        Add(ConstantBehind(node.input(i)));
    }
  }

  std::vector<const Node*> Take() { return std::move(weights_); }

 private:
  void AddBias(const Output& sum, const Output& bias) {
    const WeightOp* const op = FindWeightOp(*sum.node);
    if (op == nullptr || !op->is_product) return;
    const Node* const constant = ConstantBehind(bias);
    if (constant != nullptr && constant->output_shape(0).rank() == 1) Add(constant);
  }

  void Add(const Node* constant) {
    if (constant == nullptr || constant->output_shape(0).num_elements() <= 1) return;
    if (seen_.insert(constant).second) weights_.push_back(constant);
  }

  absl::flat_hash_set<const Node*> seen_;
  std::vector<const Node*> weights_;
};

absl::StatusOr<std::vector<const Node*>> Choose(const Graph& graph,
                                                const std::vector<std::string>& patterns) {
  if (patterns.empty()) {
    std::vector<const Node*> weights = WeightsOf(graph);
    if (!weights.empty()) return weights;
    return NotFound(
        "the graph has no constants that are weights of a product, a convolution or "
        "another layer: name those that become variables by patterns");
  }
  std::vector<const Node*> chosen;
  std::vector<bool> is_matched(patterns.size(), false);
  for (const std::unique_ptr<Node>& node : graph.nodes()) {
    if (node->op_name() != "Const" || ConstantBehind(node->output()) == nullptr) continue;
    bool matches = false;
    for (size_t i = 0; i < patterns.size(); ++i) {
      if (fnmatch(patterns[i].c_str(), node->name().c_str(), 0) != 0) continue;
      matches = is_matched[i] = true;
    }
    if (matches) chosen.push_back(node.get());
  }
  const auto missing = absl::c_find(is_matched, false);
  if (missing == is_matched.end()) return chosen;
  return NotFound("no floating-point constant has a name like '",
                  patterns[missing - is_matched.begin()], "'");
}

class Unfreezer {
 public:
  Unfreezer(const Graph& graph, const std::vector<const Node*>& constants,
            const UnfreezeOptions& options)
      : graph_(graph), options_(options) {
    ExportMetaGraph(graph, {}, &def_);
    for (const Node* constant : constants) constants_[constant->name()] = constant;
  }

  absl::StatusOr<std::unique_ptr<Graph>> Unfreeze() {
    std::map<std::string, const Tensor*> values;
    for (const auto& [output, value] : options_.values) values[output.node->name()] = &value;
    const int count = def_.graph_def().node_size();
    for (int i = 0; i < count; ++i) {
      proto::NodeDef* const node = def_.mutable_graph_def()->mutable_node(i);
      const auto value = values.find(node->name());
      if (value != values.end()) ReplaceByConst(*value->second, node);
      Rewrite(node);
    }
    RewriteNames();
    auto graph = std::make_unique<Graph>(graph_.ops());
    WEIR_RETURN_IF_ERROR(ImportMetaGraph(*graph, def_).status());
    return graph;
  }

 private:
  void Rewrite(proto::NodeDef* node) {
    if (const auto constant = constants_.find(node->name()); constant != constants_.end())
      return AddVariable(*constant->second, node);
    for (std::string& input : *node->mutable_input()) {
      const InputName name = ParseInputName(input);
      const auto constant = name.control ? constants_.end() : constants_.find(name.node);
      if (constant == constants_.end()) continue;
      if (node->op() == "Identity") {
        node->set_op("ReadVariableOp");
        node->mutable_attr()->erase("T");
        SetType(*constant->second, "dtype", node);
      } else {
        input = ReadName(constant->first);
      }
    }
  }

  // Collections and signatures name tensors: those of constants are now handles.
  void RewriteNames() {
    const auto rename = [this](std::string* tensor) {
      const InputName name = ParseInputName(*tensor);
      const auto constant = name.control ? constants_.end() : constants_.find(name.node);
      if (constant != constants_.end() && tensor->size() > name.node.size())
        *tensor = absl::StrCat(ReadName(constant->first), ":0");
    };
    for (auto& [key, collection] : *def_.mutable_collection_def()) {
      if (!collection.has_node_list()) continue;
      for (std::string& tensor : *collection.mutable_node_list()->mutable_value()) rename(&tensor);
    }
    if (options_.signatures == nullptr) return;
    for (auto& [key, signature] : *options_.signatures) {
      for (auto& [name, tensor] : signature.inputs) rename(&tensor);
      for (auto& [name, tensor] : signature.outputs) rename(&tensor);
    }
  }

  // Makes the constant the initial value of a variable with its name.
  void AddVariable(const Node& constant, proto::NodeDef* initial) {
    const std::string& name = constant.name();
    initial->set_name(NewName(name + "/Initializer/initial_value"));
    proto::NodeDef* const handle = AddNode(name, "VarHandleOp", constant);
    ShapeToProto(constant.output_shape(0), (*handle->mutable_attr())["shape"].mutable_shape());
    (*handle->mutable_attr())["shared_name"].set_s(name);
    proto::NodeDef* const assign = AddNode(NewName(name + "/Assign"), "AssignVariableOp", constant);
    assign->add_input(name);
    assign->add_input(initial->name());
    AddNode(ReadName(name), "ReadVariableOp", constant)->add_input(name);
    proto::VariableDef variable;
    variable.set_variable_name(name + ":0");
    variable.set_initializer_name(assign->name());
    variable.set_initial_value_name(initial->name() + ":0");
    variable.set_snapshot_name(ReadName(name) + ":0");
    variable.set_is_resource(true);
    variable.set_trainable(true);
    for (const char* key : {collections::kGlobalVariables, collections::kTrainableVariables})
      (*def_.mutable_collection_def())[key].mutable_bytes_list()->add_value(
          variable.SerializeAsString());
  }

  proto::NodeDef* AddNode(const std::string& name, const char* op, const Node& constant) {
    proto::NodeDef* const node = def_.mutable_graph_def()->add_node();
    node->set_name(name);
    node->set_op(op);
    node->set_device(constant.device());
    SetType(constant, "dtype", node);
    return node;
  }

  static void SetType(const Node& constant, const char* attr, proto::NodeDef* node) {
    (*node->mutable_attr())[attr].set_type(static_cast<proto::DataType>(constant.output_type(0)));
  }

  // Returns the name of the node that reads the variable.
  const std::string& ReadName(const std::string& variable) {
    std::string& name = reads_[variable];
    if (name.empty()) name = NewName(variable + "/Read/ReadVariableOp");
    return name;
  }

  std::string NewName(const std::string& base) {
    std::string name = UnusedName(base, [this](const std::string& candidate) {
      return graph_.FindNode(candidate) != nullptr || names_.contains(candidate);
    });
    names_.insert(name);
    return name;
  }

  const Graph& graph_;
  const UnfreezeOptions& options_;
  proto::MetaGraphDef def_;
  std::map<std::string, const Node*, std::less<>> constants_;
  std::map<std::string, std::string> reads_;
  absl::flat_hash_set<std::string> names_;  // of new nodes
};

}  // namespace

std::vector<const Node*> WeightsOf(const Graph& graph) {
  WeightFinder finder;
  for (const std::unique_ptr<Node>& node : graph.nodes()) finder.Visit(*node);
  return finder.Take();
}

absl::StatusOr<std::unique_ptr<Graph>> UnfreezeGraph(const Graph& graph,
                                                     const UnfreezeOptions& options) {
  WEIR_RETURN_IF_ERROR(graph.status());
  WEIR_ASSIGN_OR_RETURN(const std::vector<const Node*> constants, Choose(graph, options.patterns));
  return Unfreezer(graph, constants, options).Unfreeze();
}

}  // namespace weir
