#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "weir/core/io/proto_values.h"
#include "weir/ops/framework/variable.h"
#include "weir/ops/framework/variable_store.h"
#include "weir/proto/variable.pb.h"

namespace weir {

namespace {

// Ends with a slash, or is empty.
std::string ScopePrefix(absl::string_view scope) {
  return scope.empty() || absl::EndsWith(scope, "/") ? std::string(scope)
                                                     : absl::StrCat(scope, "/");
}

absl::StatusOr<Output> Find(const Graph& graph, absl::string_view prefix, absl::string_view name) {
  const absl::StatusOr<Output> found = graph.FindOutput(absl::StrCat(prefix, name));
  // A malformed tensor name is reported as missing too.
  return found.ok() ? found : NotFound(found.status().message());
}

absl::StatusOr<std::optional<SaveSliceInfo>> SliceFromProto(const proto::VariableDef& def) {
  if (!def.has_save_slice_info_def()) return std::optional<SaveSliceInfo>();
  const auto& from = def.save_slice_info_def();
  SaveSliceInfo info;
  info.full_name = from.full_name();
  info.full_shape.assign(from.full_shape().begin(), from.full_shape().end());
  info.var_offset.assign(from.var_offset().begin(), from.var_offset().end());
  info.var_shape.assign(from.var_shape().begin(), from.var_shape().end());
  const size_t rank = info.full_shape.size();
  if (info.var_offset.size() != rank || info.var_shape.size() != rank) {
    return InvalidArgument("VariableDef of ", def.variable_name(),
                           ": save_slice_info_def has shapes of different ranks");
  }
  return std::optional<SaveSliceInfo>(std::move(info));
}

}  // namespace

bool Variable::ToProto(proto::VariableDef* def, absl::string_view export_scope) const {
  const std::string prefix = ScopePrefix(export_scope);
  if (!this->valid() || is_partitioned() || !absl::StartsWith(info_->name(), prefix)) return false;
  const auto strip = [&](std::string name) { return std::string(absl::StripPrefix(name, prefix)); };
  def->Clear();
  def->set_variable_name(strip(info_->name()));
  if (info_->initial_value.valid()) def->set_initial_value_name(strip(info_->initial_value.name()));
  if (info_->initializer.valid()) def->set_initializer_name(strip(info_->initializer.name()));
  if (info_->snapshot.valid()) def->set_snapshot_name(strip(info_->snapshot.name()));
  def->set_is_resource(info_->is_resource);
  def->set_trainable(info_->trainable);
  def->set_synchronization(static_cast<proto::VariableSynchronization>(info_->synchronization));
  def->set_aggregation(static_cast<proto::VariableAggregation>(info_->aggregation));
  if (info_->save_slice) {
    auto* slice = def->mutable_save_slice_info_def();
    slice->set_full_name(strip(info_->save_slice->full_name));
    for (const int64_t d : info_->save_slice->full_shape) slice->add_full_shape(d);
    for (const int64_t d : info_->save_slice->var_offset) slice->add_var_offset(d);
    for (const int64_t d : info_->save_slice->var_shape) slice->add_var_shape(d);
  }
  return true;
}

absl::StatusOr<Variable> Variable::FromProto(Graph& graph, const proto::VariableDef& def,
                                             absl::string_view import_scope) {
  const std::string prefix = ScopePrefix(import_scope);
  auto info = std::make_shared<VariableInfo>();
  WEIR_ASSIGN_OR_RETURN(info->handle, Find(graph, prefix, def.variable_name()));
  const Node& storage = *info->handle.node;
  info->op = storage.name();
  info->is_resource = def.is_resource();
  info->dtype = storage.attr_or<DataType>("dtype", DT_INVALID);
  info->shape = storage.attr_or<Shape>("shape", Shape::UnknownRank());
  const DataType type = storage.output_type(info->handle.index);
  if (info->is_resource ? type != DT_RESOURCE : !IsRef(type)) {
    return InvalidArgument("VariableDef of ", def.variable_name(), ": ", storage.Label(),
                           " is not a ", info->is_resource ? "resource" : "reference", " variable");
  }
  if (info->dtype == DT_INVALID) info->dtype = BaseType(type);
  const std::string initializer = prefix + def.initializer_name();
  info->initializer = graph.FindNode(initializer);
  if (!info->initializer.valid()) {
    return NotFound("The name '", initializer, "' refers to an Operation not in the graph.");
  }
  if (!def.initial_value_name().empty()) {
    WEIR_ASSIGN_OR_RETURN(info->initial_value, Find(graph, prefix, def.initial_value_name()));
  }
  if (!def.snapshot_name().empty()) {
    WEIR_ASSIGN_OR_RETURN(info->snapshot, Find(graph, prefix, def.snapshot_name()));
    info->cached = info->is_resource && info->snapshot.node->op_name() != "ReadVariableOp";
  }
  info->trainable = def.trainable();
  info->synchronization = static_cast<VariableSynchronization>(def.synchronization());
  info->aggregation = static_cast<VariableAggregation>(def.aggregation());
  WEIR_ASSIGN_OR_RETURN(info->save_slice, SliceFromProto(def));
  if (info->save_slice) info->save_slice->full_name = prefix + info->save_slice->full_name;
  VariableStore::Of(graph).by_storage.try_emplace(&storage, info);
  return Variable(std::move(info));
}

std::optional<std::string> Variable::ToBytes(absl::string_view export_scope) const {
  proto::VariableDef def;
  if (!ToProto(&def, export_scope)) return std::nullopt;
  return DeterministicBytes(def);
}

absl::StatusOr<Variable> Variable::FromBytes(Graph& graph, absl::string_view bytes,
                                             absl::string_view import_scope) {
  proto::VariableDef def;
  WEIR_RETURN_IF_ERROR(ParseBytes(bytes, &def));
  return FromProto(graph, def, import_scope);
}

}  // namespace weir
