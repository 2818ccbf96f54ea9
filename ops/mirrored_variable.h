#ifndef WEIR_OPS_MIRRORED_VARIABLE_H_
#define WEIR_OPS_MIRRORED_VARIABLE_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weir/core/scope.h"
#include "weir/ops/variable.h"

// Variables that several devices of one process have a copy of (what tf.distribute makes for its
// mirrored strategy).
//
// A mirrored variable is a Variable with replicas(): "w" on the first device, "w/replica_1" on the
// second, and so on. Two kinds, by VariableOptions::synchronization:
//   kAuto, kOnWrite  All copies are equal: a write goes to all of them.
//   kOnRead          Each replica writes its own copy; they are aggregated where the whole is read,
//                    and when it is saved. Not trainable.
// Code of one replica is built inside a ReplicaScope, what concerns them all outside:
//
//                        inside                              outside
//   value()              the replica's copy                  mirrored: the first copy;
//                                                            kOnRead: the aggregate
//   Assign(x), ...       mirrored: INVALID_ARGUMENT;         all copies; kOnRead with kSum: each
//   gets
//                        kOnRead: the replica's copy         its share, x / n (Assign only)
//   AssignPerReplica     INVALID_ARGUMENT                    mirrored: the aggregate of the values
//                                                            goes to all copies; kOnRead: each its
//                                                            own
//
// The aggregation is the variable's: the sum, the mean, or the first one. With kNone values that
// differ (are not the same tensor) are INVALID_ARGUMENT. Collections and checkpoints have the
// variable once, under its own name; its initializer and a restore give all copies the same value.
// What would reach one copy only (scatters, gradients, optimizers) is done on the replicas().
namespace weir {

// GetVariable and MakeVariable know nothing of it: the variable is made like MakeVariable's, a copy
// on each of the devices. INVALID_ARGUMENT for no devices, and for synchronization kNone.
Variable MakeMirroredVariable(Graph& graph, const Initializer& initial_value,
                              const std::vector<std::string>& devices,
                              const VariableOptions& options = {});

// While it lives, nodes are made for replica `replica`, on its device.
class ReplicaScope {
 public:
  ReplicaScope(Graph& graph, int replica, absl::string_view device);
  ~ReplicaScope();
  ReplicaScope(const ReplicaScope&) = delete;
  ReplicaScope& operator=(const ReplicaScope&) = delete;

 private:
  Graph& graph_;
  const std::optional<int> outer_;
  const DeviceScope device_;
};

// Writes one value from each replica; the value after that.
Output AssignPerReplica(const Variable& v, const std::vector<TensorArg>& values,
                        const WriteOptions& options = {});

// ---- for variable.cc, variable_writes.cc and saver.cc

// What reading `v` gives here; `read` reads a copy, or `v` itself where it has no replicas.
Output ReadReplicas(const Variable& v, const std::function<Output(const Variable&)>& read);
// What of a stored (or assigned) value each copy gets.
Output ReplicaShare(const Variable& v, const Output& value);
// `write` on what a write of `v` goes to here. The value after it, or (without read_value) an op.
using ReplicaWriter =
    std::function<Output(const Variable& copy, const TensorArg& value, const WriteOptions&)>;
Output WriteReplicas(const Variable& v, const TensorArg& value, const WriteOptions& options,
                     const ReplicaWriter& write, bool is_assign);

}  // namespace weir

#endif  // WEIR_OPS_MIRRORED_VARIABLE_H_
