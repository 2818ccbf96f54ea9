#include "weir/tools/case/case_collections.h"

#include <nlohmann/json.hpp>

#include "weir/ops/framework/variables.h"
#include "weir/proto/meta_graph.pb.h"
#include "weir/proto/variable.pb.h"
#include "weir/session/model/meta_graph.h"

namespace weir::tools {

namespace {

using Json = nlohmann::json;

template <class Repeated>
Json ListOf(const Repeated& values) {
  Json out = Json::array();
  for (const auto& value : values) out.push_back(value);
  return out;
}

Json ToJson(const proto::VariableDef& def) {
  Json out = {
      {"variable_name", def.variable_name()}, {"initializer_name", def.initializer_name()},
      {"snapshot_name", def.snapshot_name()}, {"initial_value_name", def.initial_value_name()},
      {"is_resource", def.is_resource()},     {"trainable", def.trainable()}};
  if (def.has_save_slice_info_def()) {
    const proto::SaveSliceInfoDef& slice = def.save_slice_info_def();
    out["slice"] = {{"full_name", slice.full_name()},
                    {"full_shape", ListOf(slice.full_shape())},
                    {"var_offset", ListOf(slice.var_offset())},
                    {"var_shape", ListOf(slice.var_shape())}};
  }
  return out;
}

// Returns the VariableDefs of a collection, or null if an element is not a VariableDef.
Json VariableDefsOf(const proto::CollectionDef& collection) {
  if (collection.kind_case() != proto::CollectionDef::kBytesList) return nullptr;
  Json out = Json::array();
  for (const std::string& bytes : collection.bytes_list().value()) {
    proto::VariableDef def;
    if (!def.ParseFromString(bytes) || def.variable_name().empty() ||
        def.initializer_name().empty()) {
      return nullptr;
    }
    out.push_back(ToJson(def));
  }
  return out;
}

// Returns the names of a list of nodes, or the kind and length of any other list.
Json Summary(const proto::CollectionDef& collection) {
  switch (collection.kind_case()) {
    case proto::CollectionDef::kNodeList:
      return ListOf(collection.node_list().value());
    case proto::CollectionDef::kBytesList:
      return {{"bytes_list", collection.bytes_list().value_size()}};
    case proto::CollectionDef::kInt64List:
      return {{"int64_list", collection.int64_list().value_size()}};
    case proto::CollectionDef::kFloatList:
      return {{"float_list", collection.float_list().value_size()}};
    case proto::CollectionDef::kAnyList:
      return {{"any_list", collection.any_list().value_size()}};
    default:
      return nullptr;
  }
}

// Returns the fields of VariableDefs that an import must preserve. An import derives `trainable`
// from the collections, because old files do not contain it.
Json WithoutTrainable(Json defs) {
  for (Json& def : defs) def.erase("trainable");
  return defs;
}

// Returns the variables that the import created for a collection.
Json ImportedVariables(const Graph& graph, const std::string& key) {
  Json out = Json::array();
  for (const Variable& variable : VariablesIn(graph, key)) {
    proto::VariableDef def;
    if (variable.ToProto(&def)) out.push_back(ToJson(def));
  }
  return out;
}

}  // namespace

std::vector<std::string> CheckCollections(const proto::MetaGraphDef& meta, const Graph& graph,
                                          const Json& spec) {
  Json variables = Json::object(), collections = Json::object();
  for (const auto& [key, collection] : meta.collection_def()) {
    if (Json defs = VariableDefsOf(collection); !defs.is_null()) variables[key] = std::move(defs);
    if (Json summary = Summary(collection); !summary.is_null())
      collections[key] = std::move(summary);
  }
  std::vector<std::string> complaints;
  if (spec.contains("variable_defs")) {
    const Json& want = spec["variable_defs"];
    if (variables != want) complaints.push_back("variable_defs: the file has " + variables.dump());
    for (const auto& [key, defs] : want.items()) {
      const Json imported = HoldsVariables(key) ? ImportedVariables(graph, key) : defs;
      if (WithoutTrainable(imported) != WithoutTrainable(defs)) {
        complaints.push_back("variable_defs: imported as '" + key + "': " + imported.dump());
      }
    }
  }
  if (spec.contains("collections") && collections != spec["collections"]) {
    complaints.push_back("collections: the file has " + collections.dump());
  }
  return complaints;
}

}  // namespace weir::tools
