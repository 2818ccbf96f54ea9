#ifndef WEIR_SESSION_SAVER_H_
#define WEIR_SESSION_SAVER_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/checkpoint_state.h"
#include "weir/ops/saver.h"
#include "weir/session/session.h"

namespace weir {

struct SaverOptions {
  // What to save; by default all global variables of the graph.
  std::optional<Variables> variables = {};
  // Instead of `variables`: under names of your own, to restore from a checkpoint that has others.
  NamedVariables named = {};
  // Checkpoints kept; older ones are removed. 0: all.
  int max_to_keep = 5;
  // Besides those, one checkpoint is kept for each so many hours of training.
  double keep_checkpoint_every_n_hours = 10000;
  // Each device writes a file of its own.
  bool sharded = false;
  // Restore into variables of another shape that have as many elements.
  bool reshape = false;
  // "model-00000007" instead of "model-7".
  bool pad_step_number = false;
  // The state file has relative paths, so that the directory can be moved.
  bool save_relative_paths = false;
  // The format of checkpoints: 2, or 1 for programs of TensorFlow before 1.0. Restore reads either.
  int write_version = 2;
  // Unsynced, Save does not wait for the disk: the end of this process loses nothing, a power
  // failure may lose the newest checkpoints, and with max_to_keep the older ones are gone then.
  Durability durability = Durability::kSynced;
  // Name scope of the nodes.
  std::string name = "save";
};

struct SaveOptions {
  // Put after the path: "model-7".
  std::optional<int64_t> global_step = {};
  // The state file beside the checkpoint, which LatestCheckpoint reads.
  std::string latest_filename = "checkpoint";
  bool write_state = true;
  // Writes `path`.meta (of shards of V1 without "-?????-of-00002"), from which another program can
  // build the graph.
  bool write_meta_graph = true;
};

// Saves variables to checkpoints in TensorFlow's format and restores them, and keeps the newest
// few.
//
//   Saver saver = *Saver::Create(graph);                    // once, after all variables are made
//   saver.Save(session, "train/model", {.global_step = 100});
//   saver.Restore(session, *LatestCheckpoint("train"));     // instead of running initializers
//
// A checkpoint and its mention in the state file appear in one step each, the state file last, so
// that after a crash LatestCheckpoint names a complete checkpoint (after a power failure: unless
// the saver is unsynced). For one thread at a time.
class Saver {
 public:
  // Adds the nodes to the graph. INVALID_ARGUMENT if there is nothing to save, for two variables of
  // one name, and for one variable under two names.
  static absl::StatusOr<Saver> Create(Graph& graph, const SaverOptions& options = {});
  // A saver of a graph that has its nodes already (from ImportMetaGraph).
  static Saver FromDef(const SaverDef& def);

  // Writes a checkpoint; returns its path, which Restore takes: that of shards of V1 is a pattern,
  // "model-7-?????-of-00002". Then removes the oldest checkpoint,
  // if there are too many.
  //   INVALID_ARGUMENT     empty path, or one that is the state file's
  //   NOT_FOUND            the directory does not exist (path)
  //   FAILED_PRECONDITION  a variable has no value (name)
  absl::StatusOr<std::string> Save(Session& session, const std::string& path,
                                   const SaveOptions& options = {});

  // Gives all variables their values from a checkpoint; they need not be initialized before. All or
  // nothing: everything is read and checked before the first variable is written, so after an error
  // every variable is as it was. (If the disk fails after that, while values are read again into
  // their variables, those are left without a value: DATA_LOSS, with the name.)
  //   INVALID_ARGUMENT  empty path; a variable of another dtype or shape than stored (name, both)
  //   NOT_FOUND         no such checkpoint; "Key <name> not found in checkpoint"
  //   DATA_LOSS         damaged: file, tensor, offset, checksums
  absl::Status Restore(Session& session, const std::string& path) const;

  const SaverDef& def() const { return def_; }
  // Oldest first: those that this saver has written and not removed.
  std::vector<std::string> last_checkpoints() const;
  // Counts checkpoints of an earlier process in: oldest first; those that are not there are left
  // out. After a restart:
  //   saver.RecoverLastCheckpoints(ReadCheckpointState("train")->all_model_checkpoint_paths);
  void RecoverLastCheckpoints(const std::vector<std::string>& paths);

 private:
  struct Kept {
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
  std::vector<Kept> kept_;
  std::vector<Kept> to_remove_;
};

// A saver of all variables that the graph's nodes keep, each under its node's name: for graphs that
// came without their collections. Adds nodes, as Saver::Create does.
absl::StatusOr<SaverDef> AddSaverOfNodes(Graph& graph);

// What Saver::Restore does, for graphs with a SaverDef: reads all that the graph's restore nodes
// ask for, checks it against the variables, and then runs the restore op with the tensors fed.
absl::Status RestoreVariables(Session& session, const SaverDef& def, const std::string& path);

}  // namespace weir

#endif  // WEIR_SESSION_SAVER_H_
