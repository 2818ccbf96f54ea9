#ifndef WEIR_OPS_SAVER_H_
#define WEIR_OPS_SAVER_H_

#include <string>
#include <utility>
#include <vector>

#include "weir/ops/variable.h"

namespace weir::proto {
class SaverDef;
}

// The nodes that save and restore variables: the graph's half of Saver (session/saver.h).
namespace weir {

// What of a graph is needed to save and restore with it, and which checkpoints are kept: a SaverDef
// on the wire.
struct SaverDef {
  std::string filename_tensor_name;  // "save/Const:0": feed it with the path
  std::string save_tensor_name;  // "save/control_dependency:0": fetch it to save; gives the path
  std::string restore_op_name;   // "save/restore_all": run it to restore
  int max_to_keep = 5;
  bool sharded = false;
  float keep_checkpoint_every_n_hours = 10000;
  int version = 2;  // of the format of checkpoints; 1, or 0 in older graphs, is V1

  void ToProto(proto::SaverDef* proto) const;
  static SaverDef FromProto(const proto::SaverDef& proto);
  // The same with serialized bytes; INVALID_ARGUMENT for bytes that are no SaverDef.
  std::string ToBytes() const;
  static absl::StatusOr<SaverDef> FromBytes(absl::string_view bytes);
  friend bool operator==(const SaverDef&, const SaverDef&) = default;
};

// A saver in a collection ("savers").
struct SaverItem : public CollectionObject {
  explicit SaverItem(SaverDef d) : def(std::move(d)) {}
  SaverDef def;
};

struct SaverGraphOptions {
  // Each device writes a data file of its own, several at once.
  bool sharded = false;
  // Restored values need the element count of their variable only, and take its shape.
  bool reshape = false;
  // The format of checkpoints: 2, or 1 for programs of TensorFlow before 1.0.
  int write_version = 2;
  // Off: the nodes that write have the attribute `_synced`, false. Weir's kernels do not wait for
  // the disk then; other runtimes pass over it.
  bool synced = true;
  // The path where none is fed.
  std::string filename = "model";
  // The name scope.
  std::string name = "save";
};

// Names in checkpoints, and the variables that they are for. Parts of one partitioned variable
// share a name.
using NamedVariables = std::vector<std::pair<std::string, Variable>>;
// Under the names of their ops; parts of partitioned variables under the full name.
NamedVariables NameVariables(const Variables& variables);

// Adds the nodes: names, order and structure are TensorFlow's. Every variable is saved whole or as
// the slice it is. INVALID_ARGUMENT if there are no variables, for a name that two variables have,
// or a variable with two names.
absl::StatusOr<SaverDef> BuildSaverGraph(Graph& graph, NamedVariables variables,
                                         const SaverGraphOptions& options = {});

}  // namespace weir

#endif  // WEIR_OPS_SAVER_H_
