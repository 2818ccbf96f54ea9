#include "weir/session/meta_graph.h"

#include <algorithm>
#include <cstdio>

#include "absl/strings/match.h"
#include "weir/core/file.h"
#include "weir/core/graph_io.h"
#include "weir/core/text_proto.h"
#include "weir/ops/collections.h"
#include "weir/ops/variables.h"
#include "weir/proto/meta_graph.pb.h"
#include "weir/proto/variable.pb.h"

namespace weir {
namespace {

bool IsText(absl::string_view path) {
  return absl::EndsWith(path, ".pbtxt") || absl::EndsWith(path, ".txt");
}

constexpr const char* kVariableCollections[] = {
    collections::kGlobalVariables, collections::kTrainableVariables,
    collections::kLocalVariables,  collections::kModelVariables,
    collections::kMetricVariables, collections::kMovingAverageVariables,
    collections::kGlobalStep,      collections::kTrainableResourceVariables};

// ---- Export.

// One item of a collection; false if it does not go with what the collection has so far.
bool ItemToProto(const CollectionItem& item, proto::CollectionDef* def) {
  const auto fits = [&](proto::CollectionDef::KindCase kind) {
    return def->kind_case() == kind || def->kind_case() == proto::CollectionDef::KIND_NOT_SET;
  };
  if (const auto* number = std::get_if<int64_t>(&item)) {
    if (!fits(proto::CollectionDef::kInt64List)) return false;
    def->mutable_int64_list()->add_value(*number);
    return true;
  }
  if (const auto* number = std::get_if<float>(&item)) {
    if (!fits(proto::CollectionDef::kFloatList)) return false;
    def->mutable_float_list()->add_value(*number);
    return true;
  }
  const auto* output = std::get_if<Output>(&item);
  const auto* operation = std::get_if<Operation>(&item);
  if (output != nullptr || operation != nullptr) {
    if (!fits(proto::CollectionDef::kNodeList)) return false;
    def->mutable_node_list()->add_value(output != nullptr ? output->name() : operation->name());
    return true;
  }
  if (!fits(proto::CollectionDef::kBytesList)) return false;
  if (const auto* text = std::get_if<std::string>(&item)) {
    def->mutable_bytes_list()->add_value(*text);
    return true;
  }
  const auto& object = std::get<std::shared_ptr<CollectionObject>>(item);
  if (auto variable = std::dynamic_pointer_cast<VariableInfo>(object)) {
    proto::VariableDef variable_def;
    if (!Variable(variable).ToProto(&variable_def)) return false;
    def->mutable_bytes_list()->add_value(variable_def.SerializeAsString());
    return true;
  }
  if (auto saver = std::dynamic_pointer_cast<SaverItem>(object)) {
    proto::SaverDef saver_def;
    saver->def.ToProto(&saver_def);
    def->mutable_bytes_list()->add_value(saver_def.SerializeAsString());
    return true;
  }
  return false;
}

void ExportCollections(const Graph& graph, proto::MetaGraphDef* def,
                       std::vector<std::string>* dropped) {
  for (const std::string& key : graph.CollectionKeys()) {
    proto::CollectionDef collection;
    const std::vector<CollectionItem> items = graph.collection(key);
    if (items.empty()) continue;
    if (std::all_of(items.begin(), items.end(),
                    [&](const auto& item) { return ItemToProto(item, &collection); })) {
      (*def->mutable_collection_def())[key] = std::move(collection);
    } else if (dropped != nullptr) {
      dropped->push_back(key);
    }
  }
}

void SignatureToProto(const Graph& graph, const Signature& signature, proto::SignatureDef* def) {
  const auto fill = [&](const std::map<std::string, std::string>& from, auto* to) {
    for (const auto& [argument, name] : from) {
      proto::TensorInfo& info = (*to)[argument];
      info.set_name(name);
      const absl::StatusOr<Output> output = graph.FindOutput(name);
      if (!output.ok()) continue;
      info.set_dtype(static_cast<proto::DataType>(output->dtype()));
      ShapeToProto(output->shape(), info.mutable_tensor_shape());
    }
  };
  fill(signature.inputs, def->mutable_inputs());
  fill(signature.outputs, def->mutable_outputs());
  def->set_method_name(signature.method_name);
}

}  // namespace

bool HoldsVariables(absl::string_view collection) {
  return std::any_of(std::begin(kVariableCollections), std::end(kVariableCollections),
                     [&](const char* each) { return collection == each; });
}

void ExportMetaGraph(const Graph& graph, const MetaGraphOptions& options, proto::MetaGraphDef* def,
                     std::vector<std::string>* dropped) {
  def->Clear();
  ExportGraphDef(graph, def->mutable_graph_def());
  std::map<std::string, const OpSpec*> used;
  for (const std::unique_ptr<Node>& node : graph.nodes()) used[node->op_name()] = &node->op();
  for (const auto& [name, op] : used)
    OpToProto(*op, def->mutable_meta_info_def()->mutable_stripped_op_list()->add_op());
  for (const std::string& tag : options.tags) def->mutable_meta_info_def()->add_tags(tag);
  if (options.clear_devices) {
    for (proto::NodeDef& node : *def->mutable_graph_def()->mutable_node()) node.clear_device();
  }
  if (options.saver) options.saver->ToProto(def->mutable_saver_def());
  for (const auto& [key, signature] : options.signatures) {
    SignatureToProto(graph, signature, &(*def->mutable_signature_def())[key]);
  }
  ExportCollections(graph, def, dropped);
}

absl::Status WriteMetaGraph(const Graph& graph, const std::string& path,
                            const MetaGraphOptions& options) {
  proto::MetaGraphDef def;
  ExportMetaGraph(graph, options, &def);
  std::string bytes;
  if (IsText(path)) {
    bytes = PrintTextProto(def);
  } else if (!def.SerializeToString(&bytes)) {
    return InvalidArgument(path, ": the meta graph is too large to be serialised (2 GiB)");
  }
  return WriteFileAtomically(path, bytes);
}

// ---- Import.
namespace {

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
        return;  // Any: of types that Weir does not know
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
          LeaveOut(key, output.status().message());
        }
      } else if (Node* node = graph_.FindNode(full); node != nullptr) {
        graph_.AddToCollection(key, Operation(node));
      } else {
        LeaveOut(key, absl::StrCat("the graph has no node '", full, "'"));
      }
    }
  }

  // Collections are remarks on the graph, which is whole without them.
  static void LeaveOut(const std::string& key, absl::string_view why) {
    std::fprintf(stderr, "weir: an element of collection '%s' is left out: %.*s\n", key.c_str(),
                 static_cast<int>(why.size()), why.data());
  }

  void ImportVariables(const std::string& key, const proto::CollectionDef::BytesList& list) {
    for (const std::string& bytes : list.value()) {
      proto::VariableDef def;
      if (!def.ParseFromString(bytes)) {
        LeaveOut(key, "a malformed VariableDef");
        continue;
      }
      std::shared_ptr<VariableInfo>& info = variables_[def.variable_name()];
      if (info == nullptr) {
        const absl::StatusOr<Variable> variable = Variable::FromProto(graph_, def, prefix_);
        if (!variable.ok()) {
          LeaveOut(key, variable.status().message());
          continue;
        }
        info = variable->info();
      }
      // Old writers do not say it in the definition.
      if (key == collections::kTrainableVariables) info->trainable = true;
      graph_.AddToCollection(key, std::shared_ptr<CollectionObject>(info));
    }
  }

  void ImportBytes(const std::string& key, const proto::CollectionDef::BytesList& list) {
    for (const std::string& bytes : list.value()) {
      proto::SaverDef saver;
      if (key == collections::kSavers && saver.ParseFromString(bytes)) {
        graph_.AddToCollection(key, std::shared_ptr<CollectionObject>(
                                        std::make_shared<SaverItem>(SaverDef::FromProto(saver))));
      } else {
        graph_.AddToCollection(key, bytes);
      }
    }
  }

  Graph& graph_;
  const std::string prefix_;
  std::map<std::string, std::shared_ptr<VariableInfo>> variables_;
};

MetaGraph Describe(const proto::MetaGraphDef& def, const std::string& prefix) {
  MetaGraph meta;
  if (def.has_saver_def()) {
    meta.saver = SaverDef::FromProto(def.saver_def());
    for (std::string* name : {&meta.saver->filename_tensor_name, &meta.saver->save_tensor_name,
                              &meta.saver->restore_op_name}) {
      *name = prefix + *name;
    }
  }
  for (const auto& [key, from] : def.signature_def()) {
    Signature& to = meta.signatures[key];
    for (const auto& [argument, info] : from.inputs()) to.inputs[argument] = prefix + info.name();
    for (const auto& [argument, info] : from.outputs()) to.outputs[argument] = prefix + info.name();
    to.method_name = from.method_name();
  }
  meta.tags.assign(def.meta_info_def().tags().begin(), def.meta_info_def().tags().end());
  for (const auto& asset : def.asset_file_def())
    meta.assets[prefix + asset.tensor_info().name()] = asset.filename();
  return meta;
}

}  // namespace

absl::StatusOr<MetaGraph> ImportMetaGraph(Graph& graph, const proto::MetaGraphDef& def,
                                          const ImportMetaGraphOptions& options) {
  ImportOptions import;
  import.prefix = options.import_scope;
  const std::string prefix = options.import_scope.empty() ? "" : options.import_scope + "/";
  if (options.clear_devices) {
    proto::GraphDef cleared = def.graph_def();
    for (proto::NodeDef& node : *cleared.mutable_node()) node.clear_device();
    WEIR_RETURN_IF_ERROR(ImportGraphDef(graph, cleared, import).status());
  } else {
    WEIR_RETURN_IF_ERROR(ImportGraphDef(graph, def.graph_def(), import).status());
  }
  CollectionImporter collections(graph, prefix);
  std::map<std::string, const proto::CollectionDef*> sorted;
  for (const auto& [key, collection] : def.collection_def()) sorted[key] = &collection;
  for (const auto& [key, collection] : sorted) collections.Import(key, *collection);
  return Describe(def, prefix);
}

absl::StatusOr<MetaGraph> ImportMetaGraphFile(Graph& graph, const std::string& path,
                                              const ImportMetaGraphOptions& options) {
  WEIR_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  proto::MetaGraphDef def;
  if (IsText(path)) {
    const absl::Status parsed = ParseTextProto(bytes, path, &def);
    if (!parsed.ok()) return DataLoss(parsed.message());
  } else if (!def.ParseFromString(bytes)) {
    return DataLoss(path, ": not a MetaGraphDef, or damaged");
  }
  absl::StatusOr<MetaGraph> meta = ImportMetaGraph(graph, def, options);
  if (!meta.ok()) return Annotate(meta.status(), path);
  return meta;
}

}  // namespace weir
