#ifndef WEIR_OPS_FRAMEWORK_MIRRORED_VARIABLE_H_
#define WEIR_OPS_FRAMEWORK_MIRRORED_VARIABLE_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weir/core/graph/scope.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/framework/variable.h"

// Variables that have a copy on each of several devices of one process (the variables that
// tf.distribute creates for its mirrored strategy).
//
// A mirrored variable is a Variable with replicas(): "w" on the first device, "w/replica_1" on the
// second, and so on. VariableOptions::synchronization selects one of two kinds:
//   kAuto, kOnWrite  All copies are equal: a write updates all of them.
//   kOnRead          Each replica writes its own copy. The copies are aggregated when the whole
//                    variable is read or saved. Not trainable.
// Code of one replica is built inside a ReplicaScope, code that concerns all replicas outside of
// it:
//
//                        inside                              outside
//   value()              the replica's copy                  mirrored: the first copy;
//                                                            kOnRead: the aggregate
//   Assign(x), ...       mirrored: INVALID_ARGUMENT;         all copies; kOnRead with kSum: each
//                        kOnRead: the replica's copy         copy gets its share, x / n (Assign
//                                                            only)
//   AssignPerReplica     INVALID_ARGUMENT                    mirrored: the aggregate of the values
//                                                            is written to all copies; kOnRead:
//                                                            each value to its own copy
//
// The variable determines the aggregation: the sum, the mean, or the first replica's value. With
// kNone, values that differ (are not the same tensor) are INVALID_ARGUMENT. Collections and
// checkpoints contain the variable once, under its own name. Its initializer and a restore set all
// copies to the same value. Operations that would update one copy only (scatters, gradients,
// optimizers) apply to the replicas().
namespace WEIR_API weir {

// Makes a variable as MakeVariable does, with a copy on each of the devices. INVALID_ARGUMENT if
// there are no devices, and for synchronization kNone. GetVariable and MakeVariable do not return
// mirrored variables.
Variable MakeMirroredVariable(Graph& graph, const Initializer& initial_value,
                              const std::vector<std::string>& devices,
                              const VariableOptions& options = {});

// While it is alive, nodes are built for replica `replica`, on its device.
class ReplicaScope {
 public:
  // `graph` outlives the scope; `replica` counts from 0.
  ReplicaScope(Graph& graph, int replica, absl::string_view device);
  ~ReplicaScope();
  ReplicaScope(const ReplicaScope&) = delete;
  ReplicaScope& operator=(const ReplicaScope&) = delete;

 private:
  Graph& graph_;
  const std::optional<int> outer_;
  const DeviceScope device_;
};

// Writes one value from each replica. Returns the value after the write.
Output AssignPerReplica(const Variable& v, const std::vector<TensorArg>& values,
                        const WriteOptions& options = {});

// ---- for variable.cc, variable_writes.cc, saver.cc and session.cc

// True where nodes are built for one replica.
bool InReplicaScope(Graph& graph);
// Returns the result of reading `v` in the current scope. `read` reads a copy, or `v` itself if it
// has no replicas.
Output ReadReplicas(const Variable& v, const std::function<Output(const Variable&)>& read);
// Returns the part of a stored (or assigned) value that each copy receives.
Output ReplicaShare(const Variable& v, const Output& value);
// Calls `write` for the variables that a write of `v` updates in the current scope. Returns the
// value after the write, or (without read_value) an op.
using ReplicaWriter =
    std::function<Output(const Variable& copy, const TensorArg& value, const WriteOptions&)>;
Output WriteReplicas(const Variable& v, const TensorArg& value, const WriteOptions& options,
                     const ReplicaWriter& write, bool is_assign);

}  // namespace weir

#endif  // WEIR_OPS_FRAMEWORK_MIRRORED_VARIABLE_H_
