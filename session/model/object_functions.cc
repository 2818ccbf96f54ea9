#include "weir/session/model/object_functions.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "weir/core/io/function_library.h"
#include "weir/ops/data/io.h"
#include "weir/ops/framework/function.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/collections.h"
#include "weir/session/model/ancestors.h"
#include "weir/session/model/saved_model.h"

namespace weir {
namespace {

class FunctionMaker {
 public:
  FunctionMaker(const Graph& graph, const CapturedObjects& objects, Graph& out)
      : graph_(graph), objects_(objects), out_(out) {}

  absl::Status AddSignature(const std::string& key, const Signature& signature) {
    ObjectFunction method{.name = NewName(key)};
    FunctionPart part{.name = method.name};
    for (const auto& [name, tensor] : signature.inputs) {
      WEIR_ASSIGN_OR_RETURN(const Output input, FindTensor(key, name, tensor));
      part.inputs.emplace_back(name, input);
      method.inputs.push_back({name, BaseType(input.dtype()), input.shape()});
    }
    if (signature.outputs.empty())
      return InvalidArgument("signature '", key, "' has no output, which a function needs");
    for (const auto& [name, tensor] : signature.outputs) {
      WEIR_ASSIGN_OR_RETURN(const Output output, FindTensor(key, name, tensor));
      part.results.push_back(output);
      method.results.push_back({name, BaseType(output.dtype()), output.shape()});
    }
    WEIR_ASSIGN_OR_RETURN(method.captures, ExtractFunction(graph_, part, objects_.captured, out_));
    WEIR_ASSIGN_OR_RETURN(ObjectFunction wrapper, Wrap(key, method));
    Use(method.captures);
    functions_.signatures[key] = {std::move(method), std::move(wrapper)};
    return absl::OkStatus();
  }

  // Adds the functions of the tables that functions use. The initializer of one may use another.
  absl::Status AddTables(const Operation& init) {
    std::vector<const Node*> roots;
    if (init.valid()) {
      roots.push_back(init.node);
    } else {
      for (const Operation& each : graph_.collection_as<Operation>(collections::kTableInitializers))
        roots.push_back(each.node);
    }
    const absl::flat_hash_set<const Node*> initializing = Ancestors(roots);
    for (size_t i = 0; i < used_tables_.size(); ++i)
      WEIR_RETURN_IF_ERROR(AddTable(used_tables_[i], initializing));
    return absl::OkStatus();
  }

  ObjectFunctions Take() { return std::move(functions_); }

 private:
  // Returns a name that no function has, as TensorFlow names what it traces.
  std::string NewName(absl::string_view key) {
    std::string base = "__inference_";
    for (const char c : key) base += absl::ascii_isalnum(static_cast<unsigned char>(c)) ? c : '_';
    const auto name = [&] { return absl::StrCat(base, "_", counter_); };
    do {
      ++counter_;
    } while (out_.functions() != nullptr && out_.functions()->FindDef(name()) != nullptr);
    return name();
  }

  absl::StatusOr<Output> FindTensor(const std::string& key, const std::string& name,
                                    const std::string& tensor) const {
    absl::StatusOr<Output> found = graph_.FindOutput(tensor);
    if (found.ok()) return found;
    return InvalidArgument("signature '", key, "', '", name, "': ", tensor,
                           " is not a tensor, which a function takes and returns");
  }

  absl::StatusOr<ObjectFunction> Wrap(const std::string& key, const ObjectFunction& method) {
    ObjectFunction wrapper = method;
    wrapper.name = NewName(absl::StrCat("signature_wrapper_", key));
    Graph body(out_.ops());
    body.set_functions(out_.functions());
    Outputs args;
    for (const TensorType& input : method.inputs)
      args.push_back(Placeholder(body, input.dtype, input.shape));
    for (const Node* node : method.captures) {
      const DataType type = node->output_type(0);
      args.push_back(Placeholder(body, IsRef(type) ? DT_RESOURCE : type));
    }
    const Outputs results = Call(body, FunctionRef{method.name}, args);
    WEIR_RETURN_IF_ERROR(body.status());
    WEIR_RETURN_IF_ERROR(DefineFunction(out_, wrapper.name, body, args, results));
    return wrapper;
  }

  void Use(const std::vector<Node*>& captures) {
    for (Node* node : captures) {
      const auto& tables = objects_.tables;
      if (std::find(tables.begin(), tables.end(), node) != tables.end() &&
          used_.insert(node).second)
        used_tables_.push_back(node);
    }
  }

  absl::Status AddTable(Node* table, const absl::flat_hash_set<const Node*>& initializing) {
    ObjectFunctions::OfTable made;
    made.create = {.name = NewName("creator"), .results = {{"", DT_RESOURCE, Shape()}}};
    CapturedNodes others = objects_.captured;
    std::erase_if(others, [&](const auto& each) { return each.second == table; });
    WEIR_ASSIGN_OR_RETURN(
        made.create.captures,
        ExtractFunction(graph_, {.name = made.create.name, .results = {table->output()}}, others,
                        out_));
    if (!made.create.captures.empty()) {
      return Unimplemented(table->Label(), " is created from ", made.create.captures[0]->Label(),
                           ", which is an object too");
    }
    FunctionPart fill;
    for (const std::unique_ptr<Node>& node : graph_.nodes()) {
      if (initializing.contains(node.get()) && TakesHandle(*node, table))
        fill.effects.push_back(node.get());
    }
    if (!fill.effects.empty()) {
      made.initialize = {.name = NewName("initializer"), .results = {{"", DT_INT32, Shape()}}};
      fill.name = made.initialize.name;
      WEIR_ASSIGN_OR_RETURN(made.initialize.captures,
                            ExtractFunction(graph_, fill, objects_.captured, out_));
      Use(made.initialize.captures);
    }
    if (IsMutableTable(*table)) WEIR_RETURN_IF_ERROR(AddContents(table, &made));
    functions_.tables.emplace_back(table, std::move(made));
    return absl::OkStatus();
  }

  // Adds the functions by which TensorFlow reads and writes the contents of a table for
  // checkpoints.
  absl::Status AddContents(Node* table, ObjectFunctions::OfTable* made) {
    const DataType key_type = table->attr_or<DataType>("key_dtype", DT_INVALID);
    const DataType value_type = table->attr_or<DataType>("value_dtype", DT_INVALID);
    made->save = {.name = NewName("save_fn"),
                  .inputs = {{"checkpoint_key", DT_STRING, Shape()}},
                  .results = {{"", key_type}, {"", value_type}},
                  .captures = {table}};
    {
      Graph body(out_.ops());
      const Output key = Placeholder(body, DT_STRING, Shape(), "checkpoint_key");
      const Output handle = Placeholder(body, DT_RESOURCE, Shape(), "table");
      const Node* const contents =
          AddNode("LookupTableExportV2", {handle}, {{"Tkeys", key_type}, {"Tvalues", value_type}});
      WEIR_RETURN_IF_ERROR(body.status());
      const Output whole = Const(body, "");
      const auto suffixed = [&](const char* suffix) {
        return StringJoin({key, Const(body, suffix)});
      };
      WEIR_RETURN_IF_ERROR(
          DefineFunction(out_, made->save.name, body, {key, handle},
                         {suffixed("-keys"), whole, contents->output(0), suffixed("-values"),
                          Identity(whole), contents->output(1)}));
    }
    made->restore = {
        .name = NewName("restore_fn"),
        .inputs = {{"restored_tensors_0", key_type}, {"restored_tensors_1", value_type}},
        .results = {{"", DT_INT32, Shape()}},
        .captures = {table}};
    Graph body(out_.ops());
    const Output keys = Placeholder(body, key_type), values = Placeholder(body, value_type);
    const Output handle = Placeholder(body, DT_RESOURCE, Shape(), "table");
    const Operation import(AddNode("LookupTableImportV2", {handle, keys, values}));
    return DefineFunction(out_, made->restore.name, body, {keys, values, handle}, {Const(body, 1)},
                          {import});
  }

  bool TakesHandle(const Node& node, const Node* table) const {
    return std::any_of(node.inputs().begin(), node.inputs().end(), [&](const Output& input) {
      const auto found = objects_.captured.find(input.node);
      return found != objects_.captured.end() && found->second == table;
    });
  }

  const Graph& graph_;
  const CapturedObjects& objects_;
  Graph& out_;
  ObjectFunctions functions_;
  std::set<const Node*> used_;
  std::vector<Node*> used_tables_;
  int counter_ = 0;
};

}  // namespace

absl::StatusOr<ObjectFunctions> ExtractObjectFunctions(
    const Graph& graph, const CapturedObjects& objects,
    const std::map<std::string, Signature>& signatures, const Operation& init, Graph& out) {
  FunctionMaker maker(graph, objects, out);
  for (const auto& [key, signature] : signatures) {
    if (!IsLoaderSignature(key)) WEIR_RETURN_IF_ERROR(maker.AddSignature(key, signature));
  }
  WEIR_RETURN_IF_ERROR(maker.AddTables(init));
  return maker.Take();
}

}  // namespace weir
