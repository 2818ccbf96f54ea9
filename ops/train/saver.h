#ifndef WEIR_OPS_TRAIN_SAVER_H_
#define WEIR_OPS_TRAIN_SAVER_H_

#include <string>
#include <utility>
#include <vector>

#include "weir/core/tensor/api.h"
#include "weir/ops/framework/variable.h"

namespace weir::proto {
class SaverDef;
}

// The nodes that save and restore variables: the graph side of Saver (session/model/saver.h).
namespace WEIR_API weir {

// The names of the nodes that save and restore a graph's variables, and the retention policy of
// checkpoints. Its wire format is SaverDef.
struct SaverDef {
  std::string filename_tensor_name;  // "save/Const:0": feed it with the path
  std::string
      save_tensor_name;  // "save/control_dependency:0": fetch it to save; its value is the path
  std::string restore_op_name;                  // "save/restore_all": run it to restore
  int max_to_keep = 5;                          // checkpoints that are kept; 0: all
  bool sharded = false;                         // one file per device
  float keep_checkpoint_every_n_hours = 10000;  // one checkpoint per so many hours is kept forever
  int version = 2;  // version of the checkpoint format; 1, or 0 in older graphs, is V1

  // Conversion to and from messages.
  void ToProto(proto::SaverDef* proto) const;
  static SaverDef FromProto(const proto::SaverDef& proto);
  // Conversion to and from serialized bytes. INVALID_ARGUMENT for bytes that are not a SaverDef.
  std::string ToBytes() const;
  static absl::StatusOr<SaverDef> FromBytes(absl::string_view bytes);
  friend bool operator==(const SaverDef&, const SaverDef&) = default;
};

// A saver in a collection ("savers").
struct SaverItem : public CollectionObject {
  // Creates the item.
  explicit SaverItem(SaverDef d) : def(std::move(d)) {}
  SaverDef def;  // as exported with the collection
};

// A mutable table whose contents are saved, as TensorFlow does: the tensors `<name>-keys` and
// `<name>-values`.
struct SavedTable {
  std::string name;                                         // in the checkpoint
  Output handle;                                            // the table's resource
  DataType key_type = DT_INVALID, value_type = DT_INVALID;  // of the table
};

// How BuildSaverGraph saves and restores.
struct SaverGraphOptions {
  // Each device writes its own data file, several of them in parallel.
  bool sharded = false;
  // Restored values need to match only the element count of their variable, and are reshaped to it.
  bool reshape = false;
  // The version of the checkpoint format: 2, or 1 for programs of TensorFlow before 1.0.
  int write_version = 2;
  // If false, the writing nodes have the attribute `_synced` = false, and Weir's kernels do not
  // wait for the disk. Other runtimes ignore the attribute.
  bool synced = true;
  // The default path if none is fed.
  std::string filename = "model";
  // The name scope.
  std::string name = "save";
  // Tables to save beside the variables. Restoring one replaces its contents. Not with `sharded`.
  std::vector<SavedTable> tables = {};
};

// Names in checkpoints and their variables. Parts of one partitioned variable have the same name.
using NamedVariables = std::vector<std::pair<std::string, Variable>>;
// Names variables after their ops, and parts of partitioned variables after the whole variable.
NamedVariables NameVariables(const Variables& variables);

// Adds the nodes. Their names, order and structure are TensorFlow's. Every variable is saved whole
// or as the slice that it is. INVALID_ARGUMENT if there are no variables and no tables, if two
// variables have the same name, if one variable has two names, or for sharded tables.
absl::StatusOr<SaverDef> BuildSaverGraph(Graph& graph, NamedVariables variables,
                                         const SaverGraphOptions& options = {});

}  // namespace weir

#endif  // WEIR_OPS_TRAIN_SAVER_H_
