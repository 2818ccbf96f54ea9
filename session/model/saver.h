#ifndef WEIR_SESSION_MODEL_SAVER_H_
#define WEIR_SESSION_MODEL_SAVER_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/io/checkpoint_state.h"
#include "weir/ops/train/saver.h"
#include "weir/session/session.h"

namespace weir {

// What a Saver saves, and how many checkpoints it keeps.
struct SaverOptions {
  // The variables to save; by default all global variables of the graph.
  std::optional<Variables> variables = {};
  // Replaces `variables`: variables by checkpoint name, to restore from a checkpoint with other
  // names.
  NamedVariables named = {};
  // The number of checkpoints to keep; older ones are removed, unless they are pinned (PinPath in
  // checkpoint_state.h). 0: all.
  int max_to_keep = 5;
  // In addition, keeps one checkpoint for every period of this many hours of training.
  double keep_checkpoint_every_n_hours = 10000;
  // Each device writes a separate file.
  bool sharded = false;
  // Allows restoring into variables of another shape with the same number of elements.
  bool reshape = false;
  // Names checkpoints "model-00000007" instead of "model-7".
  bool pad_step_number = false;
  // Writes relative paths to the state file, so that the directory can be moved.
  bool save_relative_paths = false;
  // The format of checkpoints: 2, or 1 for programs with TensorFlow before 1.0. Restore reads both.
  int write_version = 2;
  // If unsynced, Save does not wait for the disk. Nothing is lost if the process dies; a power
  // failure may lose the newest checkpoints, and with max_to_keep the older ones have been removed
  // by then.
  Durability durability = Durability::kSynced;
  // The name scope of the nodes.
  std::string name = "save";
};

// Options of Saver::Save.
struct SaveOptions {
  // Appended to the path: "model-7".
  std::optional<int64_t> global_step = {};
  // Writes the state file beside the checkpoint, which LatestCheckpoint reads. A checkpoint without
  // one, as in TensorFlow, is not among last_checkpoints(): it is never removed, and removes none.
  std::string latest_filename = "checkpoint";
  bool write_state = true;
  // Writes `path`.meta (for V1 shards without "-?????-of-00002"), from which another program can
  // build the graph.
  bool write_meta_graph = true;
};

// Saves variables to checkpoints in TensorFlow's format, restores them, and keeps the newest few
// checkpoints.
//
//   Saver saver = *Saver::Create(graph);                 // once, after creating all variables
//   saver.Save(session, "train/model", {.global_step = 100});
//   saver.Restore(session, *LatestCheckpoint("train"));  // instead of running initializers
//
// A checkpoint and its entry in the state file are each written atomically, the state file last, so
// that after a crash LatestCheckpoint returns a complete checkpoint (after a power failure, unless
// the saver is unsynced). Not thread-safe.
class Saver {
 public:
  // Adds the save and restore nodes to the graph. Returns INVALID_ARGUMENT if there is nothing to
  // save, if two variables have the same name, or if one variable has two names.
  static absl::StatusOr<Saver> Create(Graph& graph, const SaverOptions& options = {});
  // Creates a saver for a graph that already has the nodes (from ImportMetaGraph).
  static Saver FromDef(const SaverDef& def);

  // Writes a checkpoint and returns its path, which Restore accepts: for V1 shards a pattern,
  // "model-7-?????-of-00002". Then removes the oldest checkpoint, if there are too many.
  //   INVALID_ARGUMENT     empty path, the path of the state file, or, if the state file is
  //                        written, one that is not UTF-8
  //   NOT_FOUND            the directory does not exist (path)
  //   FAILED_PRECONDITION  a variable has no value (name)
  absl::StatusOr<std::string> Save(Session& session, const std::string& path,
                                   const SaveOptions& options = {});

  // Sets all variables to the values in a checkpoint; they need not be initialized before. All or
  // nothing: everything is read and checked before the first variable is written, so after an error
  // every variable is unchanged. (If the disk fails after that, while values are read again into
  // their variables, those are left without a value: DATA_LOSS, with the name.)
  //   INVALID_ARGUMENT  empty path; a variable of another dtype or shape than stored (name, both)
  //   NOT_FOUND         no such checkpoint; "Key <name> not found in checkpoint"
  //   DATA_LOSS         damaged: file, tensor, offset, checksums
  absl::Status Restore(Session& session, const std::string& path) const;

  // How a graph's nodes save and restore, for a meta graph.
  const SaverDef& def() const { return def_; }
  // Returns the checkpoints that this saver has written and not removed, oldest first.
  std::vector<std::string> last_checkpoints() const;
  // Adds checkpoints of an earlier process to those of this saver, oldest first; paths that do not
  // exist, or that no state file can name, are skipped. After a restart:
  //   saver.RecoverLastCheckpoints(ReadCheckpointState("train")->all_model_checkpoint_paths);
  void RecoverLastCheckpoints(const std::vector<std::string>& paths);

 private:
  struct SavedCheckpoint {
    std::string path;
    double time;  // seconds since 1970
  };
  explicit Saver(SaverDef def);
  void Record(const std::string& path);
  absl::Status WriteState(const std::string& path, const SaveOptions& options) const;
  absl::Status RemoveOldest();

  SaverDef def_;
  bool pad_step_number_ = false;
  bool save_relative_paths_ = false;
  Durability durability_ = Durability::kSynced;
  double keep_seconds_ = 0, next_kept_ = 0;
  std::vector<SavedCheckpoint> checkpoints_;
  std::vector<SavedCheckpoint> to_remove_;
};

// Creates a saver for all variables that nodes of the graph define, each under its node's name: for
// graphs that were imported without their collections. Adds nodes, as Saver::Create does.
absl::StatusOr<SaverDef> AddSaverOfNodes(Graph& graph);

// Restores as Saver::Restore does, for graphs with a SaverDef: reads everything that the graph's
// restore nodes request, checks it against the variables, and then runs the restore op with the
// tensors fed.
absl::Status RestoreVariables(Session& session, const SaverDef& def, const std::string& path);

}  // namespace weir

#endif  // WEIR_SESSION_MODEL_SAVER_H_
