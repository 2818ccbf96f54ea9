#include "weir/ops/train/saver.h"

#include <algorithm>
#include <map>

#include "weir/core/graph/scope.h"
#include "weir/core/io/proto_values.h"
#include "weir/ops/data/io.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/mirrored_variable.h"
#include "weir/ops/framework/partitioned_variable.h"
#include "weir/ops/framework/state.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/math.h"
#include "weir/proto/saver.pb.h"

namespace weir {

void SaverDef::ToProto(proto::SaverDef* proto) const {
  proto->Clear();
  proto->set_filename_tensor_name(filename_tensor_name);
  proto->set_save_tensor_name(save_tensor_name);
  proto->set_restore_op_name(restore_op_name);
  proto->set_max_to_keep(max_to_keep);
  proto->set_sharded(sharded);
  proto->set_keep_checkpoint_every_n_hours(keep_checkpoint_every_n_hours);
  proto->set_version(static_cast<proto::SaverDef::CheckpointFormatVersion>(version));
}

std::string SaverDef::ToBytes() const {
  proto::SaverDef proto;
  ToProto(&proto);
  return DeterministicBytes(proto);
}

absl::StatusOr<SaverDef> SaverDef::FromBytes(absl::string_view bytes) {
  proto::SaverDef proto;
  WEIR_RETURN_IF_ERROR(ParseBytes(bytes, &proto));
  return FromProto(proto);
}

SaverDef SaverDef::FromProto(const proto::SaverDef& proto) {
  SaverDef def;
  def.filename_tensor_name = proto.filename_tensor_name();
  def.save_tensor_name = proto.save_tensor_name();
  def.restore_op_name = proto.restore_op_name();
  def.max_to_keep = proto.max_to_keep();
  def.sharded = proto.sharded();
  def.keep_checkpoint_every_n_hours = proto.keep_checkpoint_every_n_hours();
  def.version = proto.version();
  return def;
}

NamedVariables NameVariables(const Variables& variables) {
  NamedVariables named;
  for (const Variable& v : FlattenParts(variables)) {
    if (!v.valid()) continue;
    named.emplace_back(v.save_slice() ? v.save_slice()->full_name : v.op_name(), v);
  }
  return named;
}

namespace {

// The name of a partitioned variable is used for each of its parts.
NamedVariables NameParts(const NamedVariables& variables) {
  NamedVariables flat;
  for (const auto& [name, v] : variables) {
    for (const Variable& part : FlattenParts({v})) flat.emplace_back(name, part);
  }
  return flat;
}

absl::Status CheckNames(const NamedVariables& variables) {
  std::map<std::string, bool> whole;  // maps a name to whether it is a whole variable, not a slice
  std::map<const Node*, std::string> names;
  for (const auto& [name, v] : variables) {
    if (!v.valid()) return InvalidArgument("Saver: the variable for '", name, "' is invalid");
    const auto [before, is_new] = whole.emplace(name, !v.save_slice());
    if (!is_new && (before->second || !v.save_slice())) {
      return InvalidArgument("At least two variables have the same name: ", name);
    }
    if (!names.emplace(v.handle().node, name).second) {
      return InvalidArgument("The same saveable will be restored with two names: ", name, " and ",
                             names[v.handle().node], " for variable ", v.op_name());
    }
  }
  return absl::OkStatus();
}

// Adds the nodes of one saver while its name scope is open.
class SaverGraph {
 public:
  SaverGraph(Graph& graph, const SaverGraphOptions& options) : graph_(graph), options_(options) {}

  SaverDef Build(const NamedVariables& variables) {
    const Output path = Path();
    Output saved;
    Operation restored;
    if (options_.sharded) {
      const std::vector<NamedVariables> shards = ByDevice(variables);
      saved = SaveShards(path, shards);
      restored = RestoreShards(path, shards);
    } else {
      saved = Save(path, variables);
      restored = Group(graph_, Restore(path, variables), "restore_all");
    }
    SaverDef def;
    if (!path.valid() || !saved.valid() || !restored.valid())
      return def;  // the graph holds the error
    def.filename_tensor_name = path.name();
    def.save_tensor_name = saved.name();
    def.restore_op_name = restored.name();
    def.sharded = options_.sharded;
    def.version = options_.write_version;
    return def;
  }

 private:
  Output Path() {
    const NameScope scope(graph_, "filename");
    const Output fallback =
        PlaceholderWithDefault(Const(graph_, options_.filename, "input"), Shape(), scope.name());
    const NameScope outside(graph_, ParentOf(scope.name()));
    return PlaceholderWithDefault(fallback, Shape(), "Const");
  }

  // Returns "a/b/" for "a/b/c/".
  static std::string ParentOf(absl::string_view scope) {
    scope.remove_suffix(1);
    const size_t slash = scope.rfind('/');
    return slash == absl::string_view::npos ? "" : std::string(scope.substr(0, slash + 1));
  }

  bool v1() const { return options_.write_version == 1; }

  // Builds the vectors of names and slices that are inputs of SaveV2 and RestoreV2, in the scope of
  // the op.
  std::pair<Output, Output> Keys(const NamedVariables& variables,
                                 const char* slices_name = "shape_and_slices") {
    std::vector<std::string> names, slices;
    for (const auto& [name, v] : variables) {
      names.push_back(name);
      slices.push_back(v.save_slice() ? v.save_slice()->Spec() : "");
    }
    for (const SavedTable& table : options_.tables) {
      names.insert(names.end(), {table.name + "-keys", table.name + "-values"});
      slices.resize(names.size());
    }
    const Output names_node = Const(graph_, names, "tensor_names");
    return {names_node, Const(graph_, slices, slices_name)};
  }

  // Returns the input of SaveV2 for a variable: the reference itself, or the read that was built
  // with the variable. For a slice: a ref variable's shared read, or a new read on the host of its
  // device.
  Output Value(const Variable& v) {
    if (v.save_slice()) return v.is_resource() ? ReadOnHost(v) : v.value();
    if (v.synchronization() == VariableSynchronization::kOnRead && !v.replicas().empty())
      return v.value();
    if (!v.is_resource()) return v.handle();
    if (v.info()->snapshot.valid() && !v.info()->cached) return v.info()->snapshot;
    const DeviceScope device(graph_, v.device());
    return ReadVariableOp(v.handle(), v.dtype());
  }

  Output ReadOnHost(const Variable& v) {
    std::optional<DeviceScope> device;
    if (!v.device().empty()) device.emplace(graph_, v.device());
    const Output value = v.read_value();
    const DeviceScope host(graph_, "/device:CPU:0");
    return Identity(value);
  }

  // Returns the writing node, marked if it need not wait for the disk.
  Operation WithSyncAttr(Operation op) const {
    if (op.valid() && !options_.synced) graph_.SetAttr(op.node, "_synced", false);
    return op;
  }

  // Returns the path once all variables are saved there.
  Output Save(Output path, const NamedVariables& variables) {
    Outputs values;
    for (const auto& [name, v] : variables) values.push_back(Value(v));
    for (const SavedTable& table : options_.tables) {
      const Outputs contents =
          AllOutputs(AddNode("LookupTableExportV2", {table.handle},
                             {{"Tkeys", table.key_type}, {"Tvalues", table.value_type}}),
                     2);
      values.insert(values.end(), contents.begin(), contents.end());
    }
    Operation save;
    if (v1()) {
      const NameScope scope(graph_, "save");
      const auto [names, slices] = Keys(variables, "shapes_and_slices");
      save = WithSyncAttr(SaveSlices(path, names, slices, values, scope.name()));
    } else {
      const NameScope scope(graph_, "SaveV2");
      const auto [names, slices] = Keys(variables);
      save = WithSyncAttr(SaveV2(path, names, slices, values, scope.name()));
    }
    return WithDependencies({save}, path);
  }

  std::vector<Operation> Restore(Output path, const NamedVariables& variables) {
    Outputs values;
    {
      const DeviceScope device(graph_, "/device:CPU:0");
      const NameScope scope(graph_, "RestoreV2");
      const auto [names, slices] = Keys(variables);
      DataTypes dtypes;
      for (const auto& [name, v] : variables) dtypes.push_back(v.dtype());
      for (const SavedTable& table : options_.tables)
        dtypes.insert(dtypes.end(), {table.key_type, table.value_type});
      values = RestoreV2(path, names, slices, dtypes, scope.name());
    }
    std::vector<Operation> assigns;
    for (size_t i = 0; i < variables.size(); ++i) {
      const Variable& v = variables[i].second;
      if (v.replicas().empty()) {
        assigns.push_back(AssignTo(v, values[i]));
        continue;
      }
      const Output share = ReplicaShare(v, values[i]);
      for (const Variable& copy : v.replicas()) assigns.push_back(AssignTo(copy, share));
    }
    size_t next = variables.size();
    for (const SavedTable& table : options_.tables) {
      const Output keys = values[next++], contents = values[next++];
      assigns.emplace_back(AddNode("LookupTableImportV2", {table.handle, keys, contents}));
    }
    return assigns;
  }

  Operation AssignTo(const Variable& v, Output value) {
    if (options_.reshape && v.shape().IsFullyDefined()) value = Reshaped(value, v.shape());
    if (!v.is_resource()) {
      const ColocateWith colocation(graph_, Operation(v.handle().node));
      const bool validate = !options_.reshape && v.shape().IsFullyDefined();
      return AddOp("Assign", {v.handle(), value},
                   {{"use_locking", true}, {"validate_shape", validate}});
    }
    const DeviceScope device(graph_, v.device());
    return AssignVariableOp(v.handle(), Identity(value));
  }

  Output Reshaped(Output value, const Shape& shape) {
    const NameScope scope(graph_, "Reshape");
    std::vector<int32_t> dims(shape.dims().begin(), shape.dims().end());
    const Output target = Const(graph_, Tensor::Vector<int32_t>(dims), "shape");
    return AddOp("Reshape", {value, target}, {}, scope.name());
  }

  // Groups the variables in the order of device names.
  static std::vector<NamedVariables> ByDevice(const NamedVariables& variables) {
    std::map<std::string, NamedVariables> groups;
    for (const auto& item : variables) groups[item.second.device()].push_back(item);
    std::vector<NamedVariables> shards;
    for (auto& [device, group] : groups) shards.push_back(std::move(group));
    return shards;
  }

  // Returns the host of the shard's device.
  static std::string HostOf(const NamedVariables& shard) {
    absl::StatusOr<DeviceName> device = DeviceName::Parse(shard[0].second.device());
    if (!device.ok()) return "/device:CPU:0";
    device->type = "CPU";
    device->id = 0;
    return device->ToString();
  }

  // Returns the path to which the shards are written before they are merged: "<path>_temp/part", or
  // on object stores a name next to the path.
  Output TemporaryPath(Output path) {
    const DeviceScope device(graph_, "/device:CPU:*");
    const Output is_object_store = StaticRegexFullMatch(path, "^s3://.*");
    const Output object_suffix = Const(graph_, ".part"), file_suffix = Const(graph_, "_temp/part");
    return StringJoin({path, Select(is_object_store, object_suffix, file_suffix)});
  }

  // The shards of a V1 checkpoint remain separate files. Its path is a pattern of their names.
  Output SaveShards(Output path, const std::vector<NamedVariables>& shards) {
    const Output base = v1() ? path : TemporaryPath(path);
    const Output count = Const(graph_, static_cast<int32_t>(shards.size()), "num_shards");
    Outputs prefixes;
    std::vector<Operation> saved;
    for (size_t i = 0; i < shards.size(); ++i) {
      const DeviceScope device(graph_, v1() ? shards[i][0].second.device() : HostOf(shards[i]));
      Output prefix;
      {
        const NameScope scope(graph_, "ShardedFilename");
        const Output shard = Const(graph_, static_cast<int32_t>(i), "shard");
        prefix = ShardedFilename(base, shard, count, scope.name());
      }
      prefixes.push_back(prefix);
      saved.push_back(Save(prefix, shards[i]));
    }
    if (v1()) {
      const ControlDependencies after(graph_, saved);
      return ShardedFilespec(path, count);
    }
    const DeviceScope device(graph_, HostOf(shards.back()));
    return Merge(path, prefixes, saved);
  }

  Output Merge(Output path, const Outputs& prefixes, std::vector<Operation> saved) {
    Operation merge;
    {
      const NameScope scope(graph_, "MergeV2Checkpoints");
      Output list;
      {
        const ControlDependencies after(graph_, saved);
        list = Stack(prefixes, 0, "checkpoint_prefixes");
      }
      merge = WithSyncAttr(MergeV2Checkpoints(list, path, true, false, scope.name()));
    }
    saved.insert(saved.begin(), merge);
    const ControlDependencies after(graph_, saved);
    return Identity(path);
  }

  Operation RestoreShards(Output path, const std::vector<NamedVariables>& shards) {
    std::vector<Operation> restored;
    for (const NamedVariables& shard : shards) {
      const DeviceScope device(graph_, shard[0].second.device());
      restored.push_back(Group(graph_, Restore(path, shard), "restore_shard"));
    }
    return Group(graph_, restored, "restore_all");
  }

  Graph& graph_;
  const SaverGraphOptions& options_;
};

}  // namespace

absl::StatusOr<SaverDef> BuildSaverGraph(Graph& graph, NamedVariables variables,
                                         const SaverGraphOptions& options) {
  WEIR_RETURN_IF_ERROR(graph.status());
  variables = NameParts(variables);
  WEIR_RETURN_IF_ERROR(CheckNames(variables));
  if (variables.empty() && options.tables.empty()) return InvalidArgument("No variables to save");
  if (options.sharded && !options.tables.empty())
    return InvalidArgument("Saver: the contents of tables cannot be sharded");
  if (options.write_version != 1 && options.write_version != 2)
    return InvalidArgument("Unexpected write_version: ", options.write_version);
  std::stable_sort(variables.begin(), variables.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  const ClearControlDependencies clear(graph);
  const NameScope scope(graph, options.name);
  SaverDef def = SaverGraph(graph, options).Build(variables);
  WEIR_RETURN_IF_ERROR(graph.status());
  return def;
}

}  // namespace weir
