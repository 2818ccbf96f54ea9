#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "weir/core/io/file.h"
#include "weir/core/io/function_library.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/io/proto_values.h"
#include "weir/core/io/text_proto.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/collections.h"
#include "weir/ops/train/queue_runner.h"
#include "weir/proto/meta_graph.pb.h"
#include "weir/proto/queue_runner.pb.h"
#include "weir/proto/saved_object_graph.pb.h"
#include "weir/proto/variable.pb.h"
#include "weir/session/model/meta_graph.h"
#include "weir/session/model/scoped_names.h"

namespace weir {
namespace {

SaverDef AddSaverScope(SaverDef def, absl::string_view prefix) {
  for (std::string* name : {&def.filename_tensor_name, &def.save_tensor_name, &def.restore_op_name})
    *name = AddScope(*name, prefix);
  return def;
}

class CollectionImporter {
 public:
  CollectionImporter(Graph& graph, std::string prefix)
      : graph_(graph), prefix_(std::move(prefix)) {}

  void Import(const std::string& key, const proto::CollectionDef& def) {
    switch (def.kind_case()) {
      case proto::CollectionDef::kNodeList:
        return ImportNodes(key, def.node_list());
      case proto::CollectionDef::kBytesList:
        return HoldsVariables(key) ? ImportVariables(key, def.bytes_list())
                                   : ImportBytes(key, def.bytes_list());
      case proto::CollectionDef::kInt64List:
        for (const int64_t value : def.int64_list().value()) graph_.AddToCollection(key, value);
        return;
      case proto::CollectionDef::kFloatList:
        for (const float value : def.float_list().value()) graph_.AddToCollection(key, value);
        return;
      default:
        return;  // Any: of types unknown to Weir
    }
  }

 private:
  void ImportNodes(const std::string& key, const proto::CollectionDef::NodeList& list) {
    for (const std::string& name : list.value()) {
      const std::string full = prefix_ + name;
      if (absl::StrContains(name, ':')) {
        const absl::StatusOr<Output> output = graph_.FindOutput(full);
        if (output.ok()) {
          graph_.AddToCollection(key, *output);
        } else {
          SkipElement(key, output.status().message());
        }
      } else if (Node* node = graph_.FindNode(full); node != nullptr) {
        graph_.AddToCollection(key, Operation(node));
      } else {
        SkipElement(key, absl::StrCat("the graph has no node '", full, "'"));
      }
    }
  }

  // Collections are metadata: the graph is complete without them.
  static void SkipElement(const std::string& key, absl::string_view why) {
    std::fprintf(stderr, "weir: skipping an element of collection '%s': %.*s\n", key.c_str(),
                 static_cast<int>(why.size()), why.data());
  }

  void ImportVariables(const std::string& key, const proto::CollectionDef::BytesList& list) {
    for (const std::string& bytes : list.value()) {
      proto::VariableDef def;
      if (!def.ParseFromString(bytes)) {
        SkipElement(key, "a malformed VariableDef");
        continue;
      }
      std::shared_ptr<VariableInfo>& info = variables_[def.variable_name()];
      if (info == nullptr) {
        const absl::StatusOr<Variable> variable = Variable::FromProto(graph_, def, prefix_);
        if (!variable.ok()) {
          SkipElement(key, variable.status().message());
          continue;
        }
        info = variable->info();
      }
      // Old writers do not store it in the definition.
      if (key == collections::kTrainableVariables) info->trainable = true;
      graph_.AddToCollection(key, std::shared_ptr<CollectionObject>(info));
    }
  }

  void ImportQueueRunner(const std::string& bytes) {
    const std::string key = collections::kQueueRunners;
    proto::QueueRunnerDef def;
    if (!def.ParseFromString(bytes)) return SkipElement(key, "a malformed QueueRunnerDef");
    ForEachName(&def, [&](std::string* name) { *name = AddScope(*name, prefix_); });
    const auto runner = QueueRunner::FromProto(graph_, def);
    if (!runner.ok()) return SkipElement(key, runner.status().message());
    graph_.AddToCollection(key, std::shared_ptr<CollectionObject>(*runner));
  }

  void ImportBytes(const std::string& key, const proto::CollectionDef::BytesList& list) {
    const auto rename = [&](const std::string& name) { return AddScope(name, prefix_); };
    for (const std::string& bytes : list.value()) {
      proto::SaverDef saver;
      if (key == collections::kSavers && saver.ParseFromString(bytes)) {
        graph_.AddToCollection(key, std::shared_ptr<CollectionObject>(std::make_shared<SaverItem>(
                                        AddSaverScope(SaverDef::FromProto(saver), prefix_))));
      } else if (key == collections::kQueueRunners) {
        ImportQueueRunner(bytes);
      } else if (IsContextCollection(key) && !ContextName(key, bytes).empty()) {
        graph_.AddToCollection(key, RenameContext(key, bytes, rename));
      } else {
        graph_.AddToCollection(key, bytes);
      }
    }
  }

  Graph& graph_;
  const std::string prefix_;
  std::map<std::string, std::shared_ptr<VariableInfo>> variables_;
};

// Adds the tensors of a signature. A malformed shape is an unknown one.
void AddTensors(const google::protobuf::Map<std::string, proto::TensorInfo>& from,
                const std::string& prefix, std::map<std::string, std::string>* to,
                MetaGraph* meta) {
  for (const auto& [argument, info] : from) {
    (*to)[argument] = prefix + info.name();
    const absl::StatusOr<Shape> shape = ShapeFromProto(info.tensor_shape());
    meta->declared[prefix + info.name()] = {static_cast<DataType>(info.dtype()),
                                            shape.ok() ? *shape : Shape::UnknownRank()};
  }
}

absl::StatusOr<MetaGraph> Describe(const proto::MetaGraphDef& def, const std::string& prefix) {
  MetaGraph meta;
  meta.scope = prefix.substr(0, prefix.empty() ? 0 : prefix.size() - 1);
  if (def.has_saver_def()) meta.saver = AddSaverScope(SaverDef::FromProto(def.saver_def()), prefix);
  for (const auto& [key, from] : def.signature_def()) {
    Signature& to = meta.signatures[key];
    AddTensors(from.inputs(), prefix, &to.inputs, &meta);
    AddTensors(from.outputs(), prefix, &to.outputs, &meta);
    for (const auto& [argument, value] : from.defaults()) {
      absl::StatusOr<Tensor> tensor = TensorFromProto(value);
      if (!tensor.ok()) {
        return Annotate(tensor.status(),
                        absl::StrCat("default of '", argument, "' in signature '", key, "'"));
      }
      to.defaults[argument] = *std::move(tensor);
    }
    to.method_name = from.method_name();
  }
  meta.tags.assign(def.meta_info_def().tags().begin(), def.meta_info_def().tags().end());
  const auto add_asset = [&](const proto::AssetFileDef& asset) {
    meta.assets[prefix + asset.tensor_info().name()] = asset.filename();
  };
  for (const auto& asset : def.asset_file_def()) add_asset(asset);
  // TensorFlow 1 stored them in a collection.
  const auto collection = def.collection_def().find("saved_model_assets");
  if (collection == def.collection_def().end()) return meta;
  for (const auto& any : collection->second.any_list().value()) {
    proto::AssetFileDef asset;
    if (asset.ParseFromString(any.value())) add_asset(asset);
  }
  return meta;
}

// Returns the scope of the imported nodes: inside the current name scope, under a name that no
// other import uses. A name that ends in '/' is used unchanged.
std::string ImportPrefix(Graph& graph, const std::string& scope) {
  if (scope.empty() || absl::EndsWith(scope, "/"))
    return scope.empty() ? graph.name_scope() : ScopePrefix(scope);
  return graph.UniqueName(absl::StrCat(graph.name_scope(), scope), /*mark=*/false) + "/";
}

// Checks that every unbound input of a partial graph has a tensor in the input map.
absl::Status CheckUnbound(const proto::GraphDef& def, const std::map<std::string, Output>& given) {
  std::set<std::string> missing;
  for (const proto::NodeDef& node : def.node()) {
    for (const std::string& input : node.input()) {
      if (absl::StartsWith(absl::StripPrefix(input, "^"), kUnboundPrefix) &&
          given.find(input) == given.end())
        missing.insert(input);
    }
  }
  if (missing.empty()) return absl::OkStatus();
  return InvalidArgument("Graph contains unbound inputs: ", absl::StrJoin(missing, ","),
                         ". Must provide these inputs through input_map.");
}

// Appends, for each value in a nest, whether it is a tensor. The nest has the depth that the parser
// of protocol buffers allows.
void AddLeaves(const proto::StructuredValue& value, std::vector<bool>* is_tensor) {
  if (value.has_list_value()) {
    for (const auto& one : value.list_value().values()) AddLeaves(one, is_tensor);
  } else if (value.has_tuple_value()) {
    for (const auto& one : value.tuple_value().values()) AddLeaves(one, is_tensor);
  } else {
    is_tensor->push_back(!value.has_none_value());
  }
}

// Returns what the functions of a SavedModel have captured, without those that refer to an object
// that is not there.
std::map<std::string, FunctionCaptures, std::less<>> CapturesOf(
    const proto::SavedObjectGraph& objects) {
  std::map<std::string, FunctionCaptures, std::less<>> all;
  for (const auto& [name, function] : objects.concrete_functions()) {
    const auto is_there = [&](int id) { return id >= 0 && id < objects.nodes_size(); };
    if (!absl::c_all_of(function.bound_inputs(), is_there)) continue;
    FunctionCaptures& captures = all[name];
    for (const int id : function.bound_inputs()) {
      const proto::SavedObject& object = objects.nodes(id);
      if (object.has_captured_tensor()) {
        const proto::CapturedTensor& tensor = object.captured_tensor();
        captures.values.push_back({tensor.concrete_function(), tensor.name()});
      } else {
        captures.values.push_back({"", "", id});
      }
    }
    AddLeaves(function.output_signature(), &captures.is_tensor);
  }
  return all;
}

}  // namespace

absl::StatusOr<MetaGraph> ImportMetaGraph(Graph& graph, const proto::MetaGraphDef& def,
                                          const ImportMetaGraphOptions& options) {
  WEIR_RETURN_IF_ERROR(CheckUnbound(def.graph_def(), options.input_map));
  const std::string prefix = ImportPrefix(graph, options.import_scope);
  ImportOptions import;
  import.prefix = prefix;
  import.input_map = options.input_map;
  import.unknown = options.unknown;
  import.op_list = def.meta_info_def().stripped_op_list().SerializeAsString();
  if (options.clear_devices) {
    proto::GraphDef cleared = def.graph_def();
    for (proto::NodeDef& node : *cleared.mutable_node()) node.clear_device();
    WEIR_RETURN_IF_ERROR(ImportGraphDef(graph, cleared, import).status());
  } else {
    WEIR_RETURN_IF_ERROR(ImportGraphDef(graph, def.graph_def(), import).status());
  }
  if (graph.functions() != nullptr && def.has_object_graph_def())
    graph.set_functions(
        FunctionLibrary::WithCaptures(*graph.functions(), CapturesOf(def.object_graph_def())));
  CollectionImporter collections(graph, prefix);
  std::map<std::string, const proto::CollectionDef*> sorted;
  for (const auto& [key, collection] : def.collection_def()) {
    if (key != kUnboundInputs) sorted[key] = &collection;
  }
  for (const auto& [key, collection] : sorted) collections.Import(key, *collection);
  return Describe(def, prefix);
}

absl::StatusOr<MetaGraph> ImportMetaGraphFile(Graph& graph, const std::string& path,
                                              const ImportMetaGraphOptions& options) {
  WEIR_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  proto::MetaGraphDef def;
  if ((absl::EndsWith(path, ".pbtxt") || absl::EndsWith(path, ".txt"))) {
    const absl::Status parsed = ParseTextProto(bytes, path, &def);
    if (!parsed.ok()) return DataLoss(parsed.message());
  } else if (!def.ParseFromString(bytes)) {
    return DataLoss(path, ": not a MetaGraphDef, or damaged");
  }
  absl::StatusOr<MetaGraph> meta = ImportMetaGraph(graph, def, options);
  if (!meta.ok()) return Annotate(meta.status(), path);
  return meta;
}

absl::StatusOr<MetaGraph> ImportMetaGraph(Graph& graph, absl::string_view bytes,
                                          const ImportMetaGraphOptions& options) {
  proto::MetaGraphDef def;
  WEIR_RETURN_IF_ERROR(ParseBytes(bytes, &def));
  return ImportMetaGraph(graph, def, options);
}

}  // namespace weir
