#include "weir/tools/model/model_summary.h"

#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "weir/core/graph/op.h"
#include "weir/core/import/edges.h"
#include "weir/core/io/bundle.h"
#include "weir/core/io/file.h"
#include "weir/core/io/graph_io.h"
#include "weir/proto/meta_graph.pb.h"
#include "weir/session/model/object_names.h"
#include "weir/session/model/saved_function.h"
#include "weir/session/model/saved_model.h"
#include "weir/tools/ckpt/checkpoint_path.h"
#include "weir/tools/graph/graph_file.h"
#include "weir/tools/graph/op_use.h"

namespace weir::tools {

namespace {

using Json = nlohmann::ordered_json;

// ---- tensors

Json ShapeToJson(const Shape& shape) {
  if (!shape.has_rank()) return nullptr;
  return std::vector<int64_t>(shape.dims().begin(), shape.dims().end());
}

Json TypeToJson(const std::string& name, DataType dtype, const Shape& shape) {
  return {{"name", name}, {"dtype", DataTypeName(dtype)}, {"shape", ShapeToJson(shape)}};
}

Shape ShapeOrUnknown(const proto::TensorShapeProto& proto) {
  const absl::StatusOr<Shape> shape = ShapeFromProto(proto);
  return shape.ok() ? *shape : Shape::UnknownRank();
}

std::string NameOf(const proto::TensorInfo& info) {
  if (info.has_coo_sparse()) return absl::StrCat("sparse ", info.coo_sparse().values_tensor_name());
  if (info.has_composite_tensor()) return "composite";
  return info.name();
}

Json ArgumentsToJson(const google::protobuf::Map<std::string, proto::TensorInfo>& arguments,
                     const google::protobuf::Map<std::string, proto::TensorProto>& defaults) {
  const std::map<std::string, proto::TensorInfo> sorted(arguments.begin(), arguments.end());
  Json out = Json::array();
  for (const auto& [name, info] : sorted) {
    Json& one = out.emplace_back(
        TypeToJson(name, static_cast<DataType>(info.dtype()), ShapeOrUnknown(info.tensor_shape())));
    one["tensor"] = NameOf(info);
    const auto value = defaults.find(name);
    if (value == defaults.end()) continue;
    const absl::StatusOr<Tensor> tensor = TensorFromProto(value->second);
    one["default"] = tensor.ok() ? tensor->ToString() : "(unreadable)";
  }
  return out;
}

Json SignaturesToJson(const proto::MetaGraphDef& meta) {
  const std::map<std::string, proto::SignatureDef> sorted(meta.signature_def().begin(),
                                                          meta.signature_def().end());
  Json out = Json::array();
  for (const auto& [name, signature] : sorted) {
    if (IsLoaderSignature(name)) continue;
    out.push_back({{"name", name},
                   {"method", signature.method_name()},
                   {"inputs", ArgumentsToJson(signature.inputs(), signature.defaults())},
                   {"outputs", ArgumentsToJson(signature.outputs(), {})}});
  }
  return out;
}

// Returns the name of the op that runs when the model is loaded; null if there is none.
Json InitOpOf(const proto::MetaGraphDef& meta) {
  const auto signature = meta.signature_def().find(kInitSignature);
  if (signature != meta.signature_def().end()) {
    const auto output = signature->second.outputs().find(kInitSignature);
    if (output != signature->second.outputs().end()) return output->second.name();
  }
  for (const char* const key : {"saved_model_main_op", "legacy_init_op"}) {
    const auto ops = meta.collection_def().find(key);
    if (ops != meta.collection_def().end() && ops->second.node_list().value_size() > 0)
      return ops->second.node_list().value(0);
  }
  return nullptr;
}

// ---- functions

Json ValuesToJson(const std::vector<SavedFunction::Value>& values) {
  Json out = Json::array();
  for (const SavedFunction::Value& value : values) {
    Json& one = out.emplace_back(TypeToJson(value.name, value.dtype, value.shape));
    if (value.default_value) one["default"] = value.default_value->ToString();
  }
  return out;
}

// "__call__" and other methods with a meaning of their own are not private.
bool IsPrivate(const std::string& name) {
  const std::string dotted = "." + name;
  return absl::StrContains(dotted, "._") && !absl::EndsWith(dotted, ".__call__");
}

Json FunctionsToJson(const proto::MetaGraphDef& meta) {
  Json out = Json::array();
  const std::vector<SavedFunction> functions = SavedFunctionsOf(meta);
  std::map<std::string, int> traces, next;
  for (const SavedFunction& function : functions) ++traces[function.name];
  for (const SavedFunction& function : functions) {
    const std::string trace = absl::StrCat("[", next[function.name]++, "]");
    out.push_back({{"name", function.name + (traces[function.name] > 1 ? trace : "")},
                   {"private", IsPrivate(function.name)},
                   {"inputs", ValuesToJson(function.inputs)},
                   {"results", ValuesToJson(function.results)}});
  }
  return out;
}

// ---- graphs without signatures

Json PlaceholdersToJson(const proto::GraphDef& def) {
  Json out = Json::array();
  for (const proto::NodeDef& node : def.node()) {
    if (!absl::StartsWith(node.op(), "Placeholder")) continue;
    const auto dtype = node.attr().find("dtype"), shape = node.attr().find("shape");
    out.push_back(TypeToJson(
        node.name(),
        dtype == node.attr().end() ? DT_INVALID : static_cast<DataType>(dtype->second.type()),
        shape == node.attr().end() ? Shape::UnknownRank() : ShapeOrUnknown(shape->second.shape())));
  }
  return out;
}

// Returns the nodes with outputs that no other node takes.
Json EndsToJson(const proto::GraphDef& def) {
  std::set<std::string, std::less<>> used;
  for (const proto::NodeDef& node : def.node()) {
    for (const std::string& input : node.input()) used.emplace(ParseInputName(input).node);
  }
  Json out = Json::array();
  for (const proto::NodeDef& node : def.node()) {
    const OpSpec* const op = BuiltinOps().Find(node.op());
    const bool has_outputs = op == nullptr || !op->outputs().empty();
    if (has_outputs && !used.contains(node.name())) out.push_back(node.name());
  }
  return out;
}

// ---- state

struct Total {
  int64_t count = 0, bytes = 0;
  void Add(DataType dtype, const Shape& shape) {
    ++count;
    int64_t size = 0;  // a malformed shape may have more bytes than a number can count
    if (IsPlain(dtype) && shape.IsFullyDefined() &&
        !__builtin_mul_overflow(shape.num_elements(), ElementSize(dtype), &size) &&
        size <= std::numeric_limits<int64_t>::max() - bytes)
      bytes += size;
  }
};

// Counts the objects of a model of TensorFlow 2: its graph has more variables, for the paths of
// assets. Other graphs are counted by nodes.
Total VariablesOf(const proto::MetaGraphDef& meta) {
  Total total;
  for (const proto::SavedObject& object : meta.object_graph_def().nodes()) {
    if (object.has_variable())
      total.Add(static_cast<DataType>(object.variable().dtype()),
                ShapeOrUnknown(object.variable().shape()));
  }
  if (meta.has_object_graph_def()) return total;
  for (const proto::NodeDef& node : meta.graph_def().node()) {
    const OpSpec* const op = BuiltinOps().Find(node.op());
    if (op == nullptr || op->traits().variable_use != VariableUse::kDeclares) continue;
    const auto dtype = node.attr().find("dtype"), shape = node.attr().find("shape");
    if (dtype == node.attr().end() || shape == node.attr().end()) continue;
    total.Add(static_cast<DataType>(dtype->second.type()), ShapeOrUnknown(shape->second.shape()));
  }
  return total;
}

// Describes the checkpoint beside the graph: null if there is none, or if it cannot be read.
Json CheckpointToJson(const std::string& path) {
  const absl::StatusOr<std::string> prefix = CheckpointPrefix(path);
  if (!prefix.ok()) return nullptr;
  const auto reader = CheckpointReader::Open(*prefix);
  if (!reader.ok()) return nullptr;
  const absl::StatusOr<std::vector<CheckpointTensor>> tensors = (*reader)->List();
  if (!tensors.ok()) return nullptr;
  Total total;
  for (const CheckpointTensor& tensor : *tensors) {
    if (tensor.name != kObjectGraphKey) total.Add(tensor.dtype, tensor.shape);
  }
  return {{"prefix", *prefix}, {"tensors", total.count}, {"bytes", total.bytes}};
}

// The size of a file that is missing, or that no model may have as an asset, is null.
void AddAsset(const std::string& folder, const proto::AssetFileDef& asset, Json* assets) {
  const std::string& tensor = asset.tensor_info().name();
  const absl::StatusOr<std::string> path = AssetFile(folder, tensor, asset.filename());
  Json bytes = nullptr;
  if (path.ok()) {
    if (const auto file = Files().Open(*path); file.ok()) bytes = (*file)->size();
  }
  assets->push_back({{"file", asset.filename()}, {"bytes", std::move(bytes)}, {"tensor", tensor}});
}

Json AssetsToJson(const std::string& folder, const proto::MetaGraphDef& meta) {
  Json assets = Json::array();
  for (const proto::AssetFileDef& asset : meta.asset_file_def()) AddAsset(folder, asset, &assets);
  const auto old = meta.collection_def().find("saved_model_assets");
  if (old == meta.collection_def().end() || !assets.empty()) return assets;
  for (const auto& any : old->second.any_list().value()) {  // of TensorFlow 1
    proto::AssetFileDef asset;
    if (asset.ParseFromString(any.value())) AddAsset(folder, asset, &assets);
  }
  return assets;
}

Json MissingOpsToJson(const proto::GraphDef& def) {
  Json out = Json::array();
  for (const OpUse& use : CountOps(def)) {
    if (use.missing.empty()) continue;
    out.push_back({{"op", use.op},
                   {"nodes", use.nodes},
                   {"in_functions", use.in_functions},
                   {"missing", use.missing}});
  }
  return out;
}

const char* NameOf(GraphFileKind kind) {
  switch (kind) {
    case GraphFileKind::kSavedModel:
      return "SavedModel";
    case GraphFileKind::kMetaGraph:
      return "MetaGraph";
    case GraphFileKind::kGraph:
      return "GraphDef";
    case GraphFileKind::kOnnx:
      return "ONNX model";
  }
  return "";
}

}  // namespace

absl::StatusOr<Json> SummarizeModel(const std::string& path, const std::vector<std::string>& tags) {
  proto::MetaGraphDef meta;
  WEIR_ASSIGN_OR_RETURN(const GraphFileKind kind, ReadAnyGraph(path, tags, &meta));
  const std::string found = FindGraph(path);
  const proto::GraphDef& def = meta.graph_def();
  const auto& info = meta.meta_info_def();
  const Total variables = VariablesOf(meta);
  Json out = {{"kind", NameOf(kind)},
              {"file", found},
              {"tags", std::vector<std::string>(info.tags().begin(), info.tags().end())},
              {"tensorflow", info.tensorflow_version()},
              {"producer", def.versions().producer()},
              {"min_consumer", def.versions().min_consumer()},
              {"nodes", def.node_size()},
              {"library_functions", def.library().function_size()},
              {"init_op", InitOpOf(meta)},
              {"signatures", SignaturesToJson(meta)},
              {"functions", FunctionsToJson(meta)}};
  if (out["signatures"].empty() && out["functions"].empty()) {
    out["placeholders"] = PlaceholdersToJson(def);
    out["ends"] = EndsToJson(def);
  }
  out["assets"] = AssetsToJson(found, meta);
  out["variables"] = {{"count", variables.count}, {"bytes", variables.bytes}};
  out["checkpoint"] = kind == GraphFileKind::kGraph ? Json(nullptr) : CheckpointToJson(found);
  out["missing_ops"] = MissingOpsToJson(def);
  return out;
}

}  // namespace weir::tools
