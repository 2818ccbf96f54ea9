#include "weir/session/model/meta_graph.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "weir/core/graph/unknown_op.h"
#include "weir/core/io/file.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/io/proto_values.h"
#include "weir/core/io/text_proto.h"
#include "weir/ops/framework/flow_context.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/collections.h"
#include "weir/ops/train/queue_runner.h"
#include "weir/proto/meta_graph.pb.h"
#include "weir/proto/queue_runner.pb.h"
#include "weir/proto/variable.pb.h"
#include "weir/session/model/scoped_names.h"

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

SaverDef StripSaverScope(SaverDef def, absl::string_view prefix) {
  for (std::string* name : {&def.filename_tensor_name, &def.save_tensor_name, &def.restore_op_name})
    *name = StripScope(*name, prefix);
  return def;
}

// The outcome of exporting a collection item: exported, outside the export scope, or of another
// kind than the items that its collection holds so far.
enum class ExportResult { kExported, kOutOfScope, kIncompatible };

ExportResult SerializeText(const std::string& key, const std::string& text,
                           absl::string_view prefix, std::string* bytes) {
  *bytes = text;
  const bool is_context = IsContextCollection(key) && !prefix.empty();
  if (!is_context || ContextName(key, text).empty()) return ExportResult::kExported;
  if (!InScope(ContextName(key, text), prefix)) return ExportResult::kOutOfScope;
  *bytes =
      RenameContext(key, text, [&](const std::string& name) { return StripScope(name, prefix); });
  return ExportResult::kExported;
}

// Serializes an item that a bytes list stores.
ExportResult SerializeItem(const std::string& key, const CollectionItem& item,
                           absl::string_view prefix, std::string* bytes) {
  if (const auto* text = std::get_if<std::string>(&item))
    return SerializeText(key, *text, prefix, bytes);
  const auto* const held = std::get_if<std::shared_ptr<CollectionObject>>(&item);
  if (held == nullptr || *held == nullptr)
    return ExportResult::kIncompatible;  // an invalid tensor or operation
  const std::shared_ptr<CollectionObject>& object = *held;
  if (const auto context = std::dynamic_pointer_cast<FlowContext>(object))
    return SerializeText(key, context->Serialize(), prefix, bytes);
  if (auto variable = std::dynamic_pointer_cast<VariableInfo>(object)) {
    proto::VariableDef variable_def;
    if (!Variable(variable).ToProto(&variable_def, prefix)) return ExportResult::kOutOfScope;
    *bytes = variable_def.SerializeAsString();
    return ExportResult::kExported;
  }
  if (auto saver = std::dynamic_pointer_cast<SaverItem>(object)) {
    if (!InScope(saver->def.filename_tensor_name, prefix)) return ExportResult::kOutOfScope;
    proto::SaverDef saver_def;
    StripSaverScope(saver->def, prefix).ToProto(&saver_def);
    *bytes = saver_def.SerializeAsString();
    return ExportResult::kExported;
  }
  if (auto runner = std::dynamic_pointer_cast<QueueRunner>(object)) {
    if (!InScope(runner->queue_name, prefix)) return ExportResult::kOutOfScope;
    proto::QueueRunnerDef runner_def;
    runner->ToProto(&runner_def);
    ForEachName(&runner_def, [&](std::string* name) { *name = StripScope(*name, prefix); });
    *bytes = runner_def.SerializeAsString();
    return ExportResult::kExported;
  }
  return ExportResult::kIncompatible;
}

// Returns the name of the item in a node list, or "" if a node list cannot hold it. Variables are
// stored by name in collections for which TensorFlow has no proto type.
std::string NodeListName(absl::string_view key, const CollectionItem& item) {
  if (const auto* output = std::get_if<Output>(&item)) return output->name();
  if (const auto* operation = std::get_if<Operation>(&item)) return operation->name();
  const auto* object = std::get_if<std::shared_ptr<CollectionObject>>(&item);
  if (object == nullptr || HoldsVariables(key)) return "";
  const auto variable = std::dynamic_pointer_cast<VariableInfo>(*object);
  return variable == nullptr ? "" : variable->name();
}

ExportResult ExportItem(const std::string& key, const CollectionItem& item,
                        absl::string_view prefix, proto::CollectionDef* def) {
  using Kind = proto::CollectionDef::KindCase;
  const auto fits = [&](Kind kind) {
    return def->kind_case() == kind || def->kind_case() == proto::CollectionDef::KIND_NOT_SET;
  };
  if (const auto* number = std::get_if<int64_t>(&item)) {
    if (!fits(proto::CollectionDef::kInt64List)) return ExportResult::kIncompatible;
    def->mutable_int64_list()->add_value(*number);
    return ExportResult::kExported;
  }
  if (const auto* number = std::get_if<float>(&item)) {
    if (!fits(proto::CollectionDef::kFloatList)) return ExportResult::kIncompatible;
    def->mutable_float_list()->add_value(*number);
    return ExportResult::kExported;
  }
  if (const std::string name = NodeListName(key, item); !name.empty()) {
    if (!fits(proto::CollectionDef::kNodeList)) return ExportResult::kIncompatible;
    if (!InScope(name, prefix)) return ExportResult::kOutOfScope;
    def->mutable_node_list()->add_value(StripScope(name, prefix));
    return ExportResult::kExported;
  }
  if (!fits(proto::CollectionDef::kBytesList)) return ExportResult::kIncompatible;
  std::string bytes;
  const ExportResult put = SerializeItem(key, item, prefix, &bytes);
  if (put == ExportResult::kExported) def->mutable_bytes_list()->add_value(std::move(bytes));
  return put;
}

void ExportCollections(const Graph& graph, absl::string_view prefix, proto::MetaGraphDef* def,
                       std::vector<std::string>* dropped) {
  for (const std::string& key : graph.CollectionKeys()) {
    proto::CollectionDef collection;
    bool whole = true;
    for (const CollectionItem& item : graph.collection(key))
      whole = whole && ExportItem(key, item, prefix, &collection) != ExportResult::kIncompatible;
    if (!whole) {
      if (dropped != nullptr) dropped->push_back(key);
    } else if (collection.kind_case() != proto::CollectionDef::KIND_NOT_SET) {
      (*def->mutable_collection_def())[key] = std::move(collection);
    }
  }
}

// Keeps only the nodes of the scope, with the scope stripped from their names.
void RestrictToScope(absl::string_view prefix, proto::MetaGraphDef* def) {
  std::set<std::string> unbound;
  google::protobuf::RepeatedPtrField<proto::NodeDef> kept;
  for (proto::NodeDef& node : *def->mutable_graph_def()->mutable_node()) {
    if (!InScope(node.name(), prefix)) continue;
    StripScope(
        prefix, [&](const std::string& input) { unbound.insert(input); }, &node);
    *kept.Add() = std::move(node);
  }
  def->mutable_graph_def()->mutable_node()->Swap(&kept);
  if (unbound.empty()) return;
  auto* list = (*def->mutable_collection_def())[kUnboundInputs].mutable_bytes_list();
  for (const std::string& input : unbound) list->add_value(input);
}

void SignatureToProto(const Graph& graph, const Signature& signature, absl::string_view prefix,
                      proto::SignatureDef* def) {
  const auto fill = [&](const std::map<std::string, std::string>& from, auto* to) {
    for (const auto& [argument, name] : from) {
      proto::TensorInfo& info = (*to)[argument];
      info.set_name(StripScope(name, prefix));
      const absl::StatusOr<Output> output = graph.FindOutput(name);
      if (!output.ok()) {  // an operation
        info.mutable_tensor_shape()->set_unknown_rank(true);
        continue;
      }
      info.set_dtype(static_cast<proto::DataType>(output->dtype()));
      ShapeToProto(output->shape(), info.mutable_tensor_shape());
    }
  };
  fill(signature.inputs, def->mutable_inputs());
  fill(signature.outputs, def->mutable_outputs());
  for (const auto& [argument, value] : signature.defaults)
    TensorToProto(value, &(*def->mutable_defaults())[argument]);
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
  const std::string prefix = ScopePrefix(options.export_scope);
  ExportGraphDef(graph, def->mutable_graph_def());
  std::map<std::string, const OpSpec*> used;
  for (const std::unique_ptr<Node>& node : graph.nodes()) {
    if (InScope(node->name(), prefix) && !HasOpenOutputs(*node))
      used[node->op_name()] = &node->op();
  }
  for (const auto& [name, op] : used)
    OpToProto(*op, def->mutable_meta_info_def()->mutable_stripped_op_list()->add_op());
  for (const std::string& tag : options.tags) def->mutable_meta_info_def()->add_tags(tag);
  if (options.clear_devices) {
    for (proto::NodeDef& node : *def->mutable_graph_def()->mutable_node()) node.clear_device();
  }
  if (options.saver) StripSaverScope(*options.saver, prefix).ToProto(def->mutable_saver_def());
  for (const auto& [key, signature] : options.signatures) {
    SignatureToProto(graph, signature, prefix, &(*def->mutable_signature_def())[key]);
  }
  for (const auto& [tensor, file] : options.assets) {
    proto::AssetFileDef* asset = def->add_asset_file_def();
    asset->mutable_tensor_info()->set_name(StripScope(tensor, prefix));
    asset->set_filename(file);
  }
  ExportCollections(graph, prefix, def, dropped);
  if (!prefix.empty()) RestrictToScope(prefix, def);
}

std::string SerializeMetaGraph(const Graph& graph, const MetaGraphOptions& options,
                               std::vector<std::string>* dropped) {
  proto::MetaGraphDef def;
  ExportMetaGraph(graph, options, &def, dropped);
  return DeterministicBytes(def);
}

absl::Status WriteMetaGraph(const Graph& graph, const std::string& path,
                            const MetaGraphOptions& options, Durability durability) {
  proto::MetaGraphDef def;
  ExportMetaGraph(graph, options, &def);
  std::string bytes;
  if (IsText(path)) {
    bytes = PrintTextProto(def);
  } else if (!def.SerializeToString(&bytes)) {
    return InvalidArgument(path, ": the meta graph is too large to be serialized (2 GiB)");
  }
  return WriteFileAtomically(path, bytes, durability);
}

}  // namespace weir
