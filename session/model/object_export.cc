#include "weir/session/model/object_export.h"

#include <algorithm>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "weir/core/io/bundle.h"
#include "weir/core/io/function_library.h"
#include "weir/core/io/proto_values.h"
#include "weir/kernels/containers/lookup_table.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/function.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/proto/meta_graph.pb.h"
#include "weir/proto/trackable_object_graph.pb.h"
#include "weir/session/model/ancestors.h"
#include "weir/session/model/captured_objects.h"
#include "weir/session/model/constant_node.h"
#include "weir/session/model/needed_functions.h"
#include "weir/session/model/object_functions.h"
#include "weir/session/model/object_graph_builder.h"
#include "weir/session/model/object_names.h"
#include "weir/session/model/saver.h"
#include "weir/session/model/scoped_names.h"
#include "weir/session/model/variable_values.h"
#include "weir/session/plan/variable_use.h"

// A SavedModel of TensorFlow 2 has each thing twice: as objects with functions, which
// tf.saved_model.load builds, and as a graph, which TensorFlow 1 and servers run. The objects come
// first. Each signature becomes a function of its inputs and of what it captures: the handles of
// variables and tables, and the paths of assets. So does what creates and initializes each table.
// The graph then has one node for each variable, table and asset, and calls the same functions with
// them. The checkpoint names the variables by their paths in the tree of objects, and holds a
// description of the tree. The contents of a mutable table are there too, and functions that read
// and write them.
//
// The variables of a model are all attributes of the root by their names, "net/w" as
// `root.net.w`, and elements of the list `root.variables`. A variable whose name is taken, such as
// "w/Adam" beside "w", is in the list only.
namespace weir {
namespace {

using CalledBy = ObjectGraphBuilder::CalledBy;

constexpr char kMainOp[] = "saved_model_main_op";

// Returns whether Python code can use the text as the name of an argument or an attribute.
bool IsPythonName(absl::string_view text) {
  static const auto* const kKeywords = new absl::flat_hash_set<absl::string_view>(
      {"False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
       "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
       "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
       "or",    "pass",     "raise", "return", "self", "try",    "while",  "with",     "yield"});
  return !text.empty() && absl::ascii_isalpha(static_cast<unsigned char>(text[0])) &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_'; }) &&
         !kKeywords->contains(text);
}

class ObjectExporter {
 public:
  ObjectExporter(Session& session, const ObjectExportOptions& options)
      : session_(session), graph_(session.graph()), options_(options), out_(graph_.ops()) {
    out_.set_functions(graph_.functions());
    out_.versions() = graph_.versions();
  }

  absl::Status Export(const std::string& checkpoint, proto::MetaGraphDef* def) {
    WEIR_ASSIGN_OR_RETURN(objects_, FindCapturedObjects(graph_, options_.assets));
    WEIR_ASSIGN_OR_RETURN(functions_, ExtractObjectFunctions(graph_, objects_, options_.signatures,
                                                             options_.init_op, out_));
    FindVariables();
    proto::SavedObjectGraph saved;
    proto::TrackableObjectGraph tracked;
    ObjectGraphBuilder builder(&saved, &tracked);
    AddObjects(builder);
    WEIR_RETURN_IF_ERROR(WriteCheckpoint(checkpoint, tracked.SerializeAsString()));
    WEIR_RETURN_IF_ERROR(AddNodes());
    MetaGraphOptions meta{.signatures = AddCalls(),
                          .tags = options_.tags,
                          .assets = options_.assets,
                          .clear_devices = options_.clear_devices};
    if (!variables_.empty() || !table_keys_.empty()) {
      WEIR_ASSIGN_OR_RETURN(meta.saver, AddSaverOfNodes(out_, keys_, SavedTables()));
    }
    WEIR_RETURN_IF_ERROR(out_.status());
    ExportMetaGraph(out_, meta, def);
    *def->mutable_object_graph_def() = std::move(saved);
    DeclareShapes(def);
    FinishLibrary(def);
    return absl::OkStatus();
  }

 private:
  // ---- variables

  // Finds the variables to save: those in the graph's collections, those of the options, and those
  // that functions use.
  void FindVariables() {
    std::set<const Node*> saved, trainable;
    for (const Variable& variable : GlobalVariables(graph_)) Add(variable.handle().node, &saved);
    for (const Variable& variable : TrainableVariables(graph_))
      Add(variable.handle().node, &trainable);
    for (const std::string& name : options_.trainable) Add(graph_.FindNode(name), &trainable);
    saved.insert(trainable.begin(), trainable.end());
    ForEachFunction([&](const ObjectFunction& function) {
      saved.insert(function.captures.begin(), function.captures.end());
    });
    for (Node* variable : objects_.variables) {
      if (saved.count(variable) > 0) variables_.push_back(variable);
      if (trainable.count(variable) > 0) trainable_.insert(variable);
    }
  }

  // Adds the node that represents the variable; nothing for another node.
  void Add(const Node* variable, std::set<const Node*>* to) const {
    const auto found = objects_.captured.find(variable);
    if (found != objects_.captured.end()) to->insert(found->second);
  }

  template <class Visit>
  void ForEachFunction(const Visit& visit) const {
    for (const auto& [key, signature] : functions_.signatures) {
      visit(signature.method);
      visit(signature.wrapper);
    }
    for (const auto& [table, made] : functions_.tables) {
      for (const ObjectFunction* function :
           {&made.create, &made.initialize, &made.save, &made.restore}) {
        if (!function->name.empty()) visit(*function);
      }
    }
  }

  // ---- objects

  void AddObjects(ObjectGraphBuilder& builder) {
    // The names that a program expects of a model come before those of its variables.
    const int signatures = builder.AddUserObject("signature_map");
    builder.SetChild(0, "signatures", signatures);
    const auto add_list = [&](const char* name) {
      const int list = builder.AddUserObject("trackable_list_wrapper");
      builder.SetChild(0, name, list);
      return list;
    };
    const int all = add_list("variables"), trained = add_list("trainable_variables"),
              others = add_list("non_trainable_variables"), tables = add_list("tables"),
              assets = add_list("assets");
    for (const auto& [key, signature] : functions_.signatures) {
      const ObjectFunction& method = signature.method;
      const int wrapper = builder.AddBareFunction(signature.wrapper.name, signature.wrapper.inputs,
                                                  CalledBy::kKeyword);
      builder.SetChild(signatures, key, wrapper);
      if (IsMethod(key, method) && builder.Child(0, key) < 0)
        builder.SetChild(0, key, builder.AddFunction(method.name, method.inputs));
    }
    AddVariables(builder, all, trained, others);
    AddTables(builder, tables);
    int index = 0;
    for (Node* asset : objects_.assets) {
      numbers_[asset] = builder.AddAsset(index);
      builder.SetChild(assets, absl::StrCat(index++), numbers_[asset]);
    }
    DeclareFunctions(builder);
  }

  static bool IsMethod(const std::string& key, const ObjectFunction& method) {
    return IsPythonName(key) && absl::c_all_of(method.inputs, [](const TensorType& input) {
             return IsPythonName(input.name);
           });
  }

  // Adds the variables to the lists of all, of those to train, and of the others.
  void AddVariables(ObjectGraphBuilder& builder, int all, int trained, int others) {
    const std::set<const Node*> attributes = ChooseAttributes(builder);
    int count[2] = {0, 0};
    for (size_t i = 0; i < variables_.size(); ++i) {
      Node* const variable = variables_[i];
      const std::string& name = variable->name();
      const std::vector<std::string> parts =
          attributes.count(variable) > 0 ? absl::StrSplit(name, '/')
                                         : std::vector<std::string>{"variables", absl::StrCat(i)};
      std::string& key = keys_[name];
      for (const std::string& part : parts) absl::StrAppend(&key, EscapedObjectName(part), "/");
      absl::StrAppend(&key, kObjectAttributes, "/VARIABLE_VALUE");
      const bool is_trainable = trainable_.count(variable) > 0;
      const int number = numbers_[variable] =
          builder.AddVariable({name, variable->attr_or<DataType>("dtype", DT_INVALID),
                               variable->attr_or<Shape>("shape", Shape::UnknownRank())},
                              is_trainable, key);
      builder.SetChild(all, absl::StrCat(i), number);
      builder.SetChild(is_trainable ? trained : others, absl::StrCat(count[is_trainable]++),
                       number);
      if (attributes.count(variable) == 0) continue;
      int scope = 0;
      for (size_t k = 0; k + 1 < parts.size(); ++k) scope = Scope(builder, scope, parts[k]);
      builder.SetChild(scope, parts.back(), number);
    }
  }

  // Returns the object that is this attribute, which it adds if need be.
  static int Scope(ObjectGraphBuilder& builder, int parent, const std::string& name) {
    int child = builder.Child(parent, name);
    if (child >= 0) return child;
    child = builder.AddUserObject("_generic_user_object");
    builder.SetChild(parent, name, child);
    return child;
  }

  // Returns the variables that are attributes by their names: those whose names have no part that
  // another attribute of the root has, or another variable.
  std::set<const Node*> ChooseAttributes(const ObjectGraphBuilder& builder) const {
    std::map<std::string, const Node*> by_name;  // "w" comes before "w/Adam"
    for (const Node* variable : variables_) by_name[variable->name()] = variable;
    std::set<const Node*> chosen;
    absl::flat_hash_set<std::string> taken;
    for (const auto& [name, variable] : by_name) {
      const std::vector<std::string> parts = absl::StrSplit(name, '/');
      bool is_free = builder.Child(0, parts[0]) < 0;
      std::string path;
      for (const std::string& part : parts) {
        is_free = is_free && !part.empty() && part[0] != '_' && !taken.contains(path);
        absl::StrAppend(&path, path.empty() ? "" : "/", part);
      }
      if (!is_free) continue;
      taken.insert(name);
      chosen.insert(variable);
    }
    return chosen;
  }

  void AddTables(ObjectGraphBuilder& builder, int list) {
    int count = 0;
    for (const auto& [table, made] : functions_.tables) {
      const int number = numbers_[table] = builder.AddResource();
      const std::string name = absl::StrCat(count++);
      builder.SetChild(list, name, number);
      builder.SetChild(number, "_create_resource", builder.AddFunction(made.create.name, {}));
      if (!made.initialize.name.empty())
        builder.SetChild(number, "_initialize", builder.AddFunction(made.initialize.name, {}));
      if (made.save.name.empty()) continue;
      const std::string key = absl::StrCat("tables/", name, "/", kObjectAttributes, "/table");
      const int save =
          builder.AddBareFunction(made.save.name, made.save.inputs, CalledBy::kPosition);
      const int restore =
          builder.AddBareFunction(made.restore.name, made.restore.inputs, CalledBy::kPosition);
      builder.SetTableContents(number, save, restore, key);
      table_keys_.emplace_back(table, key);
    }
  }

  void DeclareFunctions(ObjectGraphBuilder& builder) const {
    std::set<std::string> wrappers, saves;
    for (const auto& [key, signature] : functions_.signatures)
      wrappers.insert(signature.wrapper.name);
    for (const auto& [table, made] : functions_.tables) saves.insert(made.save.name);
    ForEachFunction([&](const ObjectFunction& function) {
      std::vector<int> captures;
      for (Node* capture : function.captures) captures.push_back(numbers_.at(capture));
      if (saves.count(function.name) > 0) {
        builder.AddSaveFunction(function.name, function.inputs, function.results, captures);
        return;
      }
      builder.AddConcreteFunction(
          function.name, function.inputs, function.results, captures,
          wrappers.count(function.name) > 0 ? CalledBy::kKeyword : CalledBy::kPosition);
    });
  }

  // ---- the checkpoint

  absl::Status WriteCheckpoint(const std::string& path, std::string objects) const {
    WEIR_ASSIGN_OR_RETURN(const Tensors values, ReadVariables(session_, variables_));
    std::map<std::string, Tensor> sorted;
    for (size_t i = 0; i < values.size(); ++i) sorted[keys_.at(variables_[i]->name())] = values[i];
    WEIR_RETURN_IF_ERROR(AddTableContents(&sorted));
    sorted[kObjectGraphKey] = Tensor::Scalar(std::move(objects));
    WEIR_ASSIGN_OR_RETURN(const auto writer, BundleWriter::Create(path, options_.durability));
    for (const auto& [key, value] : sorted) WEIR_RETURN_IF_ERROR(writer->Add(key, value));
    return writer->Finish();
  }

  // Adds the contents of the mutable tables to what the checkpoint will hold.
  absl::Status AddTableContents(std::map<std::string, Tensor>* tensors) const {
    if (table_keys_.empty()) return absl::OkStatus();
    Outputs handles;
    for (const auto& [table, key] : table_keys_) handles.push_back(table->output());
    WEIR_ASSIGN_OR_RETURN(const Tensors values, session_.Run(handles));
    for (size_t i = 0; i < values.size(); ++i) {
      const auto& [node, key] = table_keys_[i];
      const auto table =
          std::dynamic_pointer_cast<LookupTable>(values[i].data<ResourceHandle>()->resource);
      if (table == nullptr) {
        return Unimplemented("Cannot read the table ", node->Label(),
                             ", whose contents are not in this process's memory");
      }
      WEIR_ASSIGN_OR_RETURN(auto contents, table->Export());
      (*tensors)[key + "-keys"] = std::move(contents.first);
      (*tensors)[key + "-values"] = std::move(contents.second);
    }
    return absl::OkStatus();
  }

  // ---- the graph

  // The tables that the graph saves, under the same keys.
  std::vector<SavedTable> SavedTables() const {
    std::vector<SavedTable> tables;
    for (const auto& [table, key] : table_keys_) {
      tables.push_back({key, out_.FindNode(table->name())->output(),
                        table->attr_or<DataType>("key_dtype", DT_INVALID),
                        table->attr_or<DataType>("value_dtype", DT_INVALID)});
    }
    return tables;
  }

  // Adds the nodes that hold state, under their own names.
  absl::Status AddNodes() {
    proto::GraphDef def;
    def.mutable_versions()->set_producer(graph_.versions().producer);
    for (const Node* variable : variables_) AddVariableNode(*variable, &def);
    std::vector<const Node*> tables;
    for (const auto& [table, made] : functions_.tables) tables.push_back(table);
    for (const Node* node : Ancestors(tables)) NodeToProto(*node, def.add_node());
    for (const auto& [tensor, file] : options_.assets) {
      proto::NodeDef& node = *def.add_node();
      node.set_name(graph_.FindOutput(tensor)->node->name());
      ReplaceByConst(Tensor::Scalar(file), &node);
    }
    for (proto::NodeDef& node : *def.mutable_node()) node.mutable_attr()->erase("_class");
    return ImportAndClear(out_, &def).status();
  }

  static void AddVariableNode(const Node& variable, proto::GraphDef* def) {
    proto::NodeDef& node = *def->add_node();
    node.set_name(variable.name());
    node.set_op("VarHandleOp");
    node.set_device(variable.device());
    const auto set = [&](const char* name, const AttrValue& value) {
      AttrToProto(value, &(*node.mutable_attr())[name]);
    };
    const auto [container, shared_name] = VariableKey(variable);
    set("dtype", AttrValue(variable.attr_or<DataType>("dtype", DT_INVALID)));
    set("shape", AttrValue(variable.attr_or<Shape>("shape", Shape::UnknownRank())));
    set("container", AttrValue(container));
    set("shared_name", AttrValue(shared_name));
  }

  // Adds a call of each signature, and of what initializes the tables. Returns the signatures.
  std::map<std::string, Signature> AddCalls() {
    const auto captures_of = [&](const ObjectFunction& function) {
      Outputs captures;
      for (const Node* node : function.captures)
        captures.push_back(out_.FindNode(node->name())->output());
      return captures;
    };
    std::map<std::string, Signature> signatures;
    for (const auto& [key, functions] : functions_.signatures) {
      const ObjectFunction& wrapper = functions.wrapper;
      const Signature& old = options_.signatures.at(key);
      Signature& signature = signatures[key];
      signature.method_name = old.method_name;
      signature.defaults = old.defaults;
      Outputs args;
      for (const TensorType& input : wrapper.inputs) {
        const std::string name = AsNodeName(absl::StrCat(key, "_", input.name));
        args.push_back(Placeholder(out_, input.dtype, input.shape, name));
        signature.inputs[input.name] = args.back().name();
      }
      for (const Output& capture : captures_of(wrapper)) args.push_back(capture);
      const Outputs results = Call(out_, FunctionRef{wrapper.name}, args);
      for (size_t i = 0; i < results.size(); ++i)
        signature.outputs[wrapper.results[i].name] = results[i].name();
    }
    std::vector<Operation> initializers;
    for (const auto& [table, made] : functions_.tables) {
      if (made.initialize.name.empty()) continue;
      const Outputs results =
          Call(out_, FunctionRef{made.initialize.name}, captures_of(made.initialize));
      if (!results.empty()) initializers.emplace_back(results[0]);
    }
    if (initializers.empty()) return signatures;
    const Operation init = Group(out_, initializers, "init_tables");
    signatures[kInitSignature].outputs[kInitSignature] = init.name();
    out_.AddToCollection(kMainOp, init);
    return signatures;
  }

  // Gives the signatures the shapes of their results, which the calls do not show.
  void DeclareShapes(proto::MetaGraphDef* def) const {
    for (const auto& [key, functions] : functions_.signatures) {
      auto& outputs = *(*def->mutable_signature_def())[key].mutable_outputs();
      for (const TensorType& result : functions.wrapper.results)
        ShapeToProto(result.shape, outputs[result.name].mutable_tensor_shape());
    }
  }

  // ---- the library

  // Sets what TensorFlow reads of the arguments. Tables that the loader of TensorFlow 2 creates
  // have names of their own: models in one process share what has one name.
  void FinishLibrary(proto::MetaGraphDef* def) const {
    std::map<std::string, const ObjectFunction*> functions;
    std::set<std::string> creators;
    std::vector<std::string> names;
    ForEachFunction([&](const ObjectFunction& function) {
      functions[function.name] = &function;
      names.push_back(function.name);
    });
    for (const auto& [table, made] : functions_.tables) creators.insert(made.create.name);
    RemoveUnneededFunctions(names, def->mutable_graph_def());
    for (auto& definition : *def->mutable_graph_def()->mutable_library()->mutable_function()) {
      for (proto::NodeDef& node : *definition.mutable_node_def()) {
        if (options_.clear_devices) node.clear_device();
      }
      const auto function = functions.find(definition.signature().name());
      if (function == functions.end()) continue;
      const std::vector<TensorType>& inputs = function->second->inputs;
      for (size_t i = 0; i < inputs.size(); ++i) {
        auto& attrs = *(*definition.mutable_arg_attr())[static_cast<uint32_t>(i)].mutable_attr();
        attrs[std::string("_user_specified_name")].set_s(inputs[i].name);
        ShapeToProto(inputs[i].shape, attrs["_output_shapes"].mutable_list()->add_shape());
      }
      if (creators.count(function->first) > 0) MakeNamesUnique(&definition);
    }
  }

  static void MakeNamesUnique(proto::FunctionDef* creator) {
    std::random_device random;
    const uint64_t number = static_cast<uint64_t>(random()) << 32 | random();
    for (proto::NodeDef& node : *creator->mutable_node_def()) {
      const auto name = node.mutable_attr()->find("shared_name");
      if (name != node.mutable_attr()->end())
        name->second.set_s(absl::StrCat(node.name(), "_", absl::Hex(number)));
    }
  }

  Session& session_;
  const Graph& graph_;
  const ObjectExportOptions& options_;
  Graph out_;
  CapturedObjects objects_;
  ObjectFunctions functions_;
  std::vector<Node*> variables_;
  std::set<const Node*> trainable_;
  std::map<std::string, std::string> keys_;  // of the checkpoint, by the name of the variable
  std::vector<std::pair<Node*, std::string>> table_keys_;  // of the mutable tables
  std::map<const Node*, int> numbers_;                     // of the objects
};

}  // namespace

absl::Status ExportObjects(Session& session, const ObjectExportOptions& options,
                           const std::string& checkpoint, proto::MetaGraphDef* def) {
  return ObjectExporter(session, options).Export(checkpoint, def);
}

}  // namespace weir
