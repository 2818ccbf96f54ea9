#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "weir/core/graph/signature.h"
#include "weir/core/graph/unknown_op.h"
#include "weir/core/io/function_library.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/io/proto_values.h"
#include "weir/proto/function.pb.h"
#include "weir/proto/graph.pb.h"

// Instantiation of a FunctionDef as a graph. In a function, input names refer to signatures: "x" is
// an argument, "call:output:2" is the third tensor of a node's output "output", and either without
// a number denotes all tensors of that name. Attributes of nodes may be placeholders for attributes
// of the function. The instantiation first builds a GraphDef, with `_Arg` nodes for the arguments
// and the function's nodes with their attributes and inputs substituted. The importer then checks
// everything else and builds the graph.
namespace weir {

namespace {

// The tensors denoted by one name.
struct Source {
  bool is_arg = false;
  int64_t first = 0;  // among the arguments, or among the node's outputs
  int64_t count = 0;
};

class Instantiation {
 public:
  Instantiation(const std::shared_ptr<const FunctionLibrary>& library, const FunctionRef& function,
                const OpRegistry& ops, const GraphVersions& versions, absl::string_view prefix)
      : library_(library), function_(function), ops_(ops), versions_(versions), prefix_(prefix) {}

  absl::StatusOr<FunctionBody> Run() {
    def_ = library_ == nullptr ? nullptr : library_->FindDef(function_.name);
    if (def_ == nullptr) return NotFound("Function ", function_.name, " is not defined.");
    absl::StatusOr<FunctionBody> body = Make();
    if (!body.ok()) {
      return Annotate(body.status(), absl::StrCat("In function '", function_.name, "'"));
    }
    return body;
  }

 private:
  absl::StatusOr<FunctionBody> Make() {
    WEIR_ASSIGN_OR_RETURN(op_, library_->FindOp(function_.name));
    WEIR_RETURN_IF_ERROR(BindAttrs());
    inputs_left_ = kMaxNodeArity + static_cast<int64_t>(def_->ByteSizeLong());
    WEIR_RETURN_IF_ERROR(AddArgs());
    for (const proto::NodeDef& node : def_->node_def()) WEIR_RETURN_IF_ERROR(DeclareNode(node));
    DeclareUnknownOutputs();
    for (const proto::NodeDef& node : def_->node_def()) {
      const absl::Status status = AddNode(node);
      if (!status.ok()) return Annotate(status, absl::StrCat("node '", node.name(), "'"));
    }
    graph_def_.mutable_versions()->set_producer(versions_.producer);
    body_.name = function_.name;
    body_.graph = std::make_unique<Graph>(ops_);
    body_.graph->set_functions(library_);
    ImportOptions options{.prefix = std::string(prefix_), .unknown = UnknownParts::kKeepQuietly};
    WEIR_ASSIGN_OR_RETURN(options.return_elements, ResultNames());
    WEIR_ASSIGN_OR_RETURN(body_.results, ImportGraphDef(*body_.graph, graph_def_, options));
    for (const std::string& arg : arg_names_)
      body_.args.emplace_back(body_.graph->FindNode(PrefixedName(arg)));
    body_.graph->Extension<FunctionOrigin>() = {function_.name, std::string(prefix_), body_.args};
    WEIR_RETURN_IF_ERROR(CheckResults());
    WEIR_RETURN_IF_ERROR(FindEffects());
    return std::move(body_);
  }

  absl::Status BindAttrs() {
    if (function_.attrs != nullptr) {
      for (const auto& [name, value] : *function_.attrs) {
        if (op_->FindAttr(name) != nullptr) attrs_.emplace(name, value);
      }
    }
    return CompleteAttrs(*op_, &attrs_);
  }

  absl::Status AddArgs() {
    WEIR_ASSIGN_OR_RETURN(const NodeTypes types,
                          ArgTypes(*op_, op_->inputs(), attrs_, kMaxNodeArity));
    for (const ArgSpec& arg : op_->inputs()) {
      const auto first = static_cast<int64_t>(arg_names_.size());
      const int64_t count = ArgLength(arg, attrs_);
      for (int64_t k = 0; k < count; ++k)
        arg_names_.push_back(IsListArg(arg) ? absl::StrCat(arg.name, "_", k) : arg.name);
      sources_[arg.name] = {true, first, count};
    }
    for (size_t i = 0; i < arg_names_.size(); ++i) {
      proto::NodeDef* node = graph_def_.add_node();
      node->set_name(arg_names_[i]);
      node->set_op("_Arg");
      AttrToProto(AttrValue(BaseType(types[i])), &(*node->mutable_attr())["T"]);
      AttrToProto(AttrValue(static_cast<int64_t>(i)), &(*node->mutable_attr())["index"]);
    }
    return absl::OkStatus();
  }

  // Returns null for an unknown op.
  absl::StatusOr<const OpSpec*> FindOp(const std::string& name) const {
    if (const OpSpec* op = ops_.Find(name)) return op;
    return library_->FindDef(name) != nullptr ? library_->FindOp(name) : ClientOps().Find(name);
  }

  // Adds the node, and maps the names of its results to output positions.
  absl::Status DeclareNode(const proto::NodeDef& node) {
    proto::NodeDef& made = *graph_def_.add_node();
    made = node;
    for (auto& [name, value] : *made.mutable_attr()) WEIR_RETURN_IF_ERROR(Substitute(&value));
    nodes_.insert(node.name());
    WEIR_ASSIGN_OR_RETURN(const OpSpec* op, FindOp(node.op()));
    if (op == nullptr) {
      unknown_nodes_.emplace(node.name(), 0);
      return absl::OkStatus();
    }
    AttrMap lengths;
    int64_t first = 0;
    for (const ArgSpec& arg : op->outputs()) {
      for (const std::string& name : {arg.number_attr, arg.type_list_attr}) {
        if (name.empty()) continue;
        const auto it = made.attr().find(name);
        const AttrSpec* spec = op->FindAttr(name);
        if (it != made.attr().end()) {
          WEIR_ASSIGN_OR_RETURN(lengths[name], AttrFromProto(it->second));
        } else if (spec != nullptr && spec->default_value) {
          lengths[name] = *spec->default_value;
        }
      }
      const int64_t count = ArgLength(arg, lengths);
      if (count < 0 || count > kMaxNodeArity) {
        return InvalidArgument("Node '", node.name(), "' has ", count, " outputs '", arg.name, "'");
      }
      sources_[absl::StrCat(node.name(), ":", arg.name)] = {false, first, count};
      first += count;
    }
    return absl::OkStatus();
  }

  // Assigns outputs to nodes with unknown ops: their results are those referenced by name, in the
  // order of first reference. (Only a process that has the op knows the actual positions.)
  void DeclareUnknownOutputs() {
    if (unknown_nodes_.empty()) return;
    std::vector<std::string> keys;
    const auto use = [&](absl::string_view text) {
      const std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
      if (parts.size() < 2 || !unknown_nodes_.contains(parts[0])) return;
      const std::string key = absl::StrCat(parts[0], ":", parts[1]);
      int64_t index = 0;
      if (parts.size() > 2 && (!absl::SimpleAtoi(parts[2], &index) || index < 0)) return;
      const auto [source, is_new] = sources_.try_emplace(key);
      if (is_new) keys.push_back(key);
      source->second.count = std::max(source->second.count, std::min(index + 1, kMaxNodeArity));
    };
    for (const proto::NodeDef& node : def_->node_def())
      for (const std::string& input : node.input()) use(input);
    for (const ArgSpec& arg : op_->outputs()) {
      if (const auto ret = def_->ret().find(arg.name); ret != def_->ret().end()) use(ret->second);
    }
    for (const std::string& key : keys) {
      int64_t& num_outputs = unknown_nodes_[key.substr(0, key.find(':'))];
      sources_[key].first = num_outputs;
      num_outputs += sources_[key].count;
    }
  }

  absl::Status Substitute(proto::AttrValue* value) const {
    if (value->value_case() == proto::AttrValue::kPlaceholder) {
      const auto bound = attrs_.find(value->placeholder());
      if (bound == attrs_.end()) {
        return InvalidArgument("Failed to bind the value of attr '", value->placeholder(),
                               "': the function has no such attribute");
      }
      AttrToProto(bound->second, value);
      return absl::OkStatus();
    }
    if (value->has_func()) return SubstituteIn(value->mutable_func());
    if (!value->has_list()) return absl::OkStatus();
    for (proto::NameAttrList& function : *value->mutable_list()->mutable_func())
      WEIR_RETURN_IF_ERROR(SubstituteIn(&function));
    return absl::OkStatus();
  }
  absl::Status SubstituteIn(proto::NameAttrList* function) const {
    for (auto& [name, value] : *function->mutable_attr()) WEIR_RETURN_IF_ERROR(Substitute(&value));
    return absl::OkStatus();
  }

  // Returns the graph's name for tensor k of a source named `key`.
  std::string TensorName(const std::string& key, const Source& source, int64_t k) const {
    if (source.is_arg) return arg_names_[source.first + k];
    return absl::StrCat(key.substr(0, key.rfind(':')), ":", source.first + k);
  }

  // Returns the tensors denoted by a name.
  absl::StatusOr<std::vector<std::string>> Resolve(const std::string& text) {
    std::string key = text;
    auto it = sources_.find(key);
    std::optional<int64_t> index;
    const size_t colon = text.rfind(':');
    int64_t number = 0;
    if (it == sources_.end() && colon != std::string::npos &&
        absl::SimpleAtoi(text.substr(colon + 1), &number)) {
      index = number;
      key = text.substr(0, colon);
      it = sources_.find(key);
    }
    if (it == sources_.end() || (index && (*index < 0 || *index >= it->second.count)))
      return InvalidArgument("input '", text, "' is not found");
    const Source& source = it->second;
    std::vector<std::string> tensors;
    const int64_t count = index ? 1 : source.count;
    if ((inputs_left_ -= count) < 0) return InvalidArgument("too many inputs");
    for (int64_t k = 0; k < count; ++k)
      tensors.push_back(TensorName(key, source, index.value_or(0) + k));
    return tensors;
  }

  absl::Status AddNode(const proto::NodeDef& node) {
    proto::NodeDef& made =
        *graph_def_.mutable_node(static_cast<int>(arg_names_.size()) + next_node_++);
    made.clear_input();
    for (const std::string& text : node.input()) {
      if (absl::StartsWith(text, "^")) {
        made.add_input(text);
        continue;
      }
      WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> tensors, Resolve(text));
      for (const std::string& tensor : tensors) made.add_input(tensor);
    }
    DropForeignColocations(&made);
    return absl::OkStatus();
  }

  // Drops colocation marks with nodes of the graph in which the function was defined.
  void DropForeignColocations(proto::NodeDef* node) const {
    const auto marks = node->mutable_attr()->find("_class");
    if (marks == node->mutable_attr()->end() || !marks->second.has_list()) return;
    auto* list = marks->second.mutable_list()->mutable_s();
    const auto foreign = [&](const std::string& mark) {
      absl::string_view name = mark;
      return absl::ConsumePrefix(&name, "loc:@") && !nodes_.contains(name) &&
             std::find(arg_names_.begin(), arg_names_.end(), name) == arg_names_.end();
    };
    list->erase(std::remove_if(list->begin(), list->end(), foreign), list->end());
  }

  std::string PrefixedName(absl::string_view name) const {
    return prefix_.empty() ? std::string(name) : absl::StrCat(prefix_, "/", name);
  }

  // Adds an Identity after an output of a node with an unknown op, to fix the output's type.
  std::string WithType(const std::string& tensor, DataType type) {
    const std::string node = tensor.substr(0, tensor.find(':'));
    if (!unknown_nodes_.contains(node)) return tensor;
    std::string name = absl::StrCat(node, "/result");
    while (!nodes_.insert(name).second) name += "_";
    proto::NodeDef* identity = graph_def_.add_node();
    identity->set_name(name);
    identity->set_op("Identity");
    identity->add_input(tensor);
    AttrToProto(AttrValue(BaseType(type)), &(*identity->mutable_attr())["T"]);
    return absl::StrCat(name, ":0");
  }

  // Returns the names of the results in the graph, without the prefix.
  absl::StatusOr<std::vector<std::string>> ResultNames() {
    WEIR_ASSIGN_OR_RETURN(const NodeTypes types,
                          ArgTypes(*op_, op_->outputs(), attrs_, kMaxNodeArity));
    std::vector<std::string> names;
    for (const ArgSpec& arg : op_->outputs()) {
      const auto ret = def_->ret().find(arg.name);
      if (ret == def_->ret().end())
        return InvalidArgument("Return value '", arg.name, "' is missing");
      absl::StatusOr<std::vector<std::string>> tensors = Resolve(ret->second);
      if (!tensors.ok())
        return Annotate(tensors.status(), absl::StrCat("return value '", arg.name, "'"));
      if (static_cast<int64_t>(tensors->size()) != ArgLength(arg, attrs_)) {
        return InvalidArgument("Return value '", arg.name, "' has ", tensors->size(),
                               " tensors instead of ", ArgLength(arg, attrs_));
      }
      for (const std::string& tensor : *tensors)
        names.push_back(WithType(tensor, types[names.size()]));
    }
    return names;
  }

  absl::Status CheckResults() const {
    WEIR_ASSIGN_OR_RETURN(const NodeTypes types,
                          ArgTypes(*op_, op_->outputs(), attrs_, kMaxNodeArity));
    size_t i = 0;
    for (const ArgSpec& arg : op_->outputs()) {
      for (int64_t k = 0; k < ArgLength(arg, attrs_); ++k, ++i) {
        const Output& value = body_.results[i];
        const DataType wanted = BaseType(types[i]);
        if (value.dtype() == wanted) continue;
        return InvalidArgument("Return value '", arg.name, "' is ", DataTypeName(value.dtype()),
                               " but the signature says ", DataTypeName(wanted));
      }
    }
    return absl::OkStatus();
  }

  absl::Status FindEffects() {
    absl::flat_hash_set<const Node*> listed;
    for (const auto& [name, node_name] : def_->control_ret()) {
      Node* node = body_.graph->FindNode(PrefixedName(node_name));
      if (node == nullptr)
        return InvalidArgument("Control return '", name, "' refers to an unknown node: '",
                               node_name, "'");
      if (listed.insert(node).second) body_.effects.emplace_back(node);
    }
    for (const auto& node : body_.graph->nodes()) {
      if (node->op().stateful() && listed.insert(node.get()).second)
        body_.effects.emplace_back(node.get());
    }
    const auto by_id = [](const Operation& a, const Operation& b) {
      return a.node->id() < b.node->id();
    };
    std::sort(body_.effects.begin(), body_.effects.end(), by_id);
    return absl::OkStatus();
  }

  const std::shared_ptr<const FunctionLibrary>& library_;
  const FunctionRef& function_;
  const OpRegistry& ops_;
  const GraphVersions& versions_;
  const absl::string_view prefix_;
  const proto::FunctionDef* def_ = nullptr;
  const OpSpec* op_ = nullptr;
  AttrMap attrs_;
  std::vector<std::string> arg_names_;
  absl::flat_hash_map<std::string, Source> sources_;
  absl::flat_hash_set<std::string> nodes_;
  // Nodes with unknown ops, and their number of outputs so far.
  absl::flat_hash_map<std::string, int64_t> unknown_nodes_;
  proto::GraphDef graph_def_;
  int next_node_ = 0;
  int64_t inputs_left_ = 0;
  FunctionBody body_;
};

}  // namespace

absl::StatusOr<FunctionBody> InstantiateFunction(
    const std::shared_ptr<const FunctionLibrary>& library, const FunctionRef& function,
    const OpRegistry& ops, const GraphVersions& versions, absl::string_view prefix) {
  return Instantiation(library, function, ops, versions, prefix).Run();
}

}  // namespace weir
