#include "weir/ops/framework/mirrored_variable.h"

#include <algorithm>
#include <utility>

#include "weir/ops/framework/gradient_util.h"
#include "weir/ops/framework/variable_store.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/collections.h"
#include "weir/ops/lib/math.h"

namespace weir {

namespace {

// The replica for which nodes of a graph are currently built.
struct CurrentReplica {
  std::optional<int> index;
};

bool IsOnRead(const Variable& v) { return v.synchronization() == VariableSynchronization::kOnRead; }

Output Fail(const Variable& v, absl::string_view why) {
  v.graph().Fail(InvalidArgument("Mirrored variable '", v.name(), "': ", why));
  return {};
}

// The copy that belongs to the current replica scope. Invalid outside of a replica scope, and (with
// an error) if the variable has no copy for the replica.
struct CurrentCopy {
  bool inside = false;
  Variable copy;
};
CurrentCopy FindCurrentCopy(const Variable& v) {
  const std::optional<int> index = v.graph().Extension<CurrentReplica>().index;
  if (!index) return {};
  if (*index >= 0 && *index < static_cast<int>(v.replicas().size()))
    return {true, v.replicas()[*index]};
  Fail(v, absl::StrCat("no copy for replica ", *index, "; the number of copies is ",
                       v.replicas().size()));
  return {true, {}};
}

// Aggregates the replicas' values into one tensor.
Output Aggregate(const Variable& v, const Outputs& values) {
  switch (v.aggregation()) {
    case VariableAggregation::kSum:
      return AddN(values);
    case VariableAggregation::kMean:
      return Cast(Divide(AddN(values), static_cast<double>(values.size())), v.dtype());
    case VariableAggregation::kOnlyFirstReplica:
      return values[0];
    case VariableAggregation::kNone:
      break;
  }
  if (!IsOnRead(v) && std::equal(values.begin() + 1, values.end(), values.begin()))
    return values[0];
  return Fail(v,
              "You must specify an aggregation method (VariableOptions::aggregation) where values "
              "of replicas are combined");
}

// Returns the results of the writes of all copies as one.
Output GroupWrites(const Variable& v, const Outputs& written, bool read_value) {
  if (std::any_of(written.begin(), written.end(), [](const Output& o) { return !o.valid(); }))
    return {};
  const Operation all = GroupOps(v.graph(), std::vector<Operation>(written.begin(), written.end()));
  if (!read_value || !all.valid()) return all.node;
  const ControlDependencies after(v.graph(), {all});
  return v.read_value();
}

}  // namespace

Variable MakeMirroredVariable(Graph& graph, const Initializer& initial_value,
                              const std::vector<std::string>& devices,
                              const VariableOptions& options) {
  if (devices.empty() || options.synchronization == VariableSynchronization::kNone) {
    graph.Fail(InvalidArgument("Mirrored variable '", options.name, "': ",
                               devices.empty() ? "at least one device is required"
                                               : "synchronization kNone is not supported"));
    return {};
  }
  graph.Extension<CurrentReplica>();  // exists before steps read it, possibly at the same time
  const bool on_read = options.synchronization == VariableSynchronization::kOnRead;
  const bool trainable = options.trainable.value_or(!on_read);
  VariableOptions each = options;
  each.collections.emplace();             // the collections hold the whole variable
  each.trainable = on_read && trainable;  // MakeVariable reports an error for this combination
  Variables copies;
  std::vector<Operation> initializers;
  for (size_t i = 0; i < devices.size(); ++i) {
    const DeviceScope device(graph, devices[i]);
    Initializer start = initial_value;
    if (i > 0) {
      each.name = absl::StrCat(copies[0].op_name(), "/replica_", i, "/");
      each.shape = copies[0].shape();
      start = [first = copies[0]] { return Identity(first.initial_value()); };
    }
    copies.push_back(MakeVariable(graph, start, each));
    if (!copies.back().valid()) return {};
    copies.back().info()->trainable = trainable;
    initializers.push_back(copies.back().initializer());
  }
  auto info = std::make_shared<VariableInfo>(*copies[0].info());
  {
    const ClearControlDependencies no_controls(graph);
    const NameScope root(graph, "");
    info->initializer = GroupOps(graph, initializers, absl::StrCat(info->op, "/init"));
  }
  info->replicas = std::move(copies);
  VariableStore::Of(graph).by_storage[info->handle.node] = info;
  std::vector<std::string> lists =
      options.collections.value_or(std::vector<std::string>{collections::kGlobalVariables});
  if (trainable) lists.emplace_back(collections::kTrainableVariables);
  const std::shared_ptr<CollectionObject> item = info;
  graph.AddToCollections(lists, item);
  return Variable(std::move(info));
}

ReplicaScope::ReplicaScope(Graph& graph, int replica, absl::string_view device)
    : graph_(graph),
      outer_(std::exchange(graph.Extension<CurrentReplica>().index, replica)),
      device_(graph, device) {}

ReplicaScope::~ReplicaScope() { graph_.Extension<CurrentReplica>().index = outer_; }

bool InReplicaScope(Graph& graph) { return graph.Extension<CurrentReplica>().index.has_value(); }

Output ReadReplicas(const Variable& v, const std::function<Output(const Variable&)>& read) {
  if (!v.valid()) return {};
  if (v.replicas().empty()) return read(v);
  const CurrentCopy here = FindCurrentCopy(v);
  if (here.inside) return here.copy.valid() ? read(here.copy) : Output();
  if (!IsOnRead(v)) return read(v.replicas()[0]);
  Outputs values;
  for (const Variable& copy : v.replicas()) values.push_back(read(copy));
  return Aggregate(v, values);
}

Output ReplicaShare(const Variable& v, const Output& value) {
  if (!IsOnRead(v) || v.aggregation() != VariableAggregation::kSum) return value;
  return Cast(Divide(value, static_cast<double>(v.replicas().size())), v.dtype());
}

Output WriteReplicas(const Variable& v, const TensorArg& value, const WriteOptions& options,
                     const ReplicaWriter& write, bool is_assign) {
  const CurrentCopy here = FindCurrentCopy(v);
  if (here.inside) {
    if (!here.copy.valid()) return {};
    if (IsOnRead(v)) return write(here.copy, value, options);
    return Fail(v,
                "cannot be written inside a replica; use AssignPerReplica outside of the replicas");
  }
  if (IsOnRead(v) && !is_assign) {
    return Fail(
        v, "outside of the replicas, a variable with synchronization kOnRead supports only Assign");
  }
  if (IsOnRead(v) && v.aggregation() == VariableAggregation::kNone) {
    return Fail(v, "Assign outside of the replicas requires an aggregation other than kNone");
  }
  const Output whole = value.In(v.graph(), v.dtype());
  if (!whole.valid()) return {};
  const Output share = ReplicaShare(v, whole);
  Outputs written;
  for (const Variable& copy : v.replicas()) written.push_back(write(copy, share, options));
  return GroupWrites(v, written, options.read_value);
}

Output AssignPerReplica(const Variable& v, const std::vector<TensorArg>& values,
                        const WriteOptions& options) {
  if (!v.valid()) return {};
  if (values.size() != v.replicas().size()) {
    return Fail(v, absl::StrCat("it has ", v.replicas().size(), " replicas, but ", values.size(),
                                " values are given"));
  }
  if (FindCurrentCopy(v).inside)
    return Fail(v, "AssignPerReplica must be called outside of the replicas");
  Outputs tensors, written;
  for (const TensorArg& value : values) {
    tensors.push_back(value.In(v.graph(), v.dtype()));
    if (!tensors.back().valid()) return {};
  }
  if (!IsOnRead(v)) {
    const Output one = Aggregate(v, tensors);
    if (!one.valid()) return {};
    std::fill(tensors.begin(), tensors.end(), one);
  }
  for (size_t i = 0; i < tensors.size(); ++i)
    written.push_back(v.replicas()[i].Assign(tensors[i], options));
  return GroupWrites(v, written, options.read_value);
}

}  // namespace weir
