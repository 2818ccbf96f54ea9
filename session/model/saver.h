#ifndef WEIR_SESSION_MODEL_SAVER_H_
#define WEIR_SESSION_MODEL_SAVER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/io/checkpoint_state.h"
#include "weir/core/io/retention.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/train/saver.h"
#include "weir/session/session.h"

namespace WEIR_API weir {

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
  // In addition, keeps this many of the checkpoints with the best SaveOptions::metric; of equal
  // ones the newest. They stay in last_checkpoints() and in the state file.
  int keep_best = 0;
  Better better = Better::kHigher;  // which metrics are the best
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

// When Saver::Save returns.
enum class SaveMode : uint8_t {
  kSync,         // once the checkpoint is written
  kAsync,        // once the values are taken: see Saver; waits for the checkpoint being written
  kAsyncOrSkip,  // same, but does nothing while a checkpoint is being written
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
  SaveMode mode = SaveMode::kSync;
  // How good the model is. It is stored beside the checkpoint (retention.h), for
  // SaverOptions::keep_best and `weir ckpt gc --best`. NaN is never among the best.
  std::optional<double> metric = {};
  // Also saves, at the same instant, what else a run needs to resume with the same bits, to
  // `path`.resume: see resume_state.h and ResumeExactly. Format V2. No step may be running. Prints
  // a warning, once, that names what cannot be saved.
  bool exact_resume = false;
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
// the saver is unsynced). What a killed process or a failed save has left (format V2), the next
// save to the same path removes; a complete checkpoint among it counts as the oldest one of that
// saver.
//
// With SaveMode::kAsync, Save takes the values of all variables in one step and returns; a thread
// of the saver writes them while training goes on. The values share the memory of the variables. A
// variable that a step writes meanwhile is copied first, so that one save needs at most one copy of
// the variables; it is freed as the values are written. Checkpoints are written in the order of the
// calls, one at a time. The next Save or Wait returns the error of the writing.
//
// Movable. Not thread-safe. The session may be closed while a checkpoint is being written.
class Saver {
 public:
  // Adds the save and restore nodes to the graph. Returns INVALID_ARGUMENT if there is nothing to
  // save, if two variables have the same name, or if one variable has two names.
  static absl::StatusOr<Saver> Create(Graph& graph, const SaverOptions& options = {});
  // Creates a saver for a graph that already has the nodes (from ImportMetaGraph).
  static Saver FromDef(const SaverDef& def);

  Saver(Saver&&) noexcept;
  Saver& operator=(Saver&&) noexcept;
  // Waits for the checkpoint being written; ignores its error.
  ~Saver();

  // Writes a checkpoint and returns its path, which Restore accepts: for V1 shards a pattern,
  // "model-7-?????-of-00002". Then removes the oldest checkpoint, if there are too many. Returns an
  // empty path if SaveMode::kAsyncOrSkip skipped the save. If writing the previous checkpoint has
  // failed, returns that error and saves nothing.
  //   INVALID_ARGUMENT     empty path, the path of the state file, or, if the state file is
  //                        written, one that is not UTF-8
  //   NOT_FOUND            the directory does not exist (path)
  //   FAILED_PRECONDITION  a variable has no value (name)
  //   ABORTED              another saver is saving to this path
  //   UNIMPLEMENTED        not SaveMode::kSync, or exact_resume, and format V1 or a session on a
  //                        server
  absl::StatusOr<std::string> Save(Session& session, const std::string& path,
                                   const SaveOptions& options = {});

  // Waits until the checkpoint being written, if any, is complete and named by the state file.
  // Returns the error of writing it, once.
  absl::Status Wait();
  // Returns true while a checkpoint is being written.
  bool is_saving() const;
  // Returns what a Save with these arguments would decide about last_checkpoints() and the new
  // checkpoint, newest first, without changing anything: what it would remove, and why the others
  // stay. Waits for the checkpoint being written.
  std::vector<RetainedCheckpoint> PlanSave(const std::string& path,
                                           const SaveOptions& options = {}) const;

  // Sets all variables to the values in a checkpoint; they need not be initialized before. Waits
  // for the checkpoint being written. All or nothing: everything is read and checked before the
  // first variable is written, so after an error every variable is unchanged. (If the disk fails
  // after that, while values are read again into their variables, those are left without a value:
  // DATA_LOSS, with the name.)
  //   INVALID_ARGUMENT  empty path; a variable of another dtype or shape than stored (name, both)
  //   NOT_FOUND         no such checkpoint; "Key <name> not found in checkpoint"
  //   DATA_LOSS         damaged: file, tensor, offset, checksums
  absl::Status Restore(Session& session, const std::string& path) const;

  // Restores the newest checkpoint that the state file in `directory` names, and replaces the
  // checkpoints of this saver by those that the file lists, as RecoverLastCheckpoints does. Returns
  // the path. Waits for the checkpoint being written.
  //
  // With `skip_damaged`, goes on to the next older checkpoint if one is damaged (files are missing,
  // too short, or have a wrong checksum), and prints a warning; after the listed ones, to others in
  // the directory with the same name before the last '-'. A checkpoint of another model is not
  // damaged: its error is returned.
  //   NOT_FOUND  no state file
  //   DATA_LOSS  the state file, or (with `skip_damaged`) every checkpoint is damaged
  absl::StatusOr<std::string> RestoreLatest(Session& session, const std::string& directory,
                                            bool skip_damaged = false);

  // How a graph's nodes save and restore, for a meta graph.
  const SaverDef& def() const;
  // Returns the checkpoints that this saver has written and not removed, oldest first. Waits for
  // the one being written.
  std::vector<std::string> last_checkpoints() const;
  // Adds checkpoints of an earlier process to those of this saver, oldest first; paths that do not
  // exist, or that no state file can name, are skipped. After a restart:
  //   saver.RecoverLastCheckpoints(ReadCheckpointState("train")->all_model_checkpoint_paths);
  void RecoverLastCheckpoints(const std::vector<std::string>& paths);

 private:
  struct Impl;
  explicit Saver(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;  // its address is known to the writing thread
};

// Creates a saver for all variables that nodes of the graph define, each under its node's name: for
// graphs that were imported without their collections. `keys` has the names in the checkpoint of
// variables that have others there. `tables` are saved too. Adds nodes, as Saver::Create does.
absl::StatusOr<SaverDef> AddSaverOfNodes(Graph& graph,
                                         const std::map<std::string, std::string>& keys = {},
                                         std::vector<SavedTable> tables = {});

// Restores as Saver::Restore does, for graphs with a SaverDef: reads everything that the graph's
// restore nodes request, checks it against the variables, and then runs the restore op with the
// tensors fed.
absl::Status RestoreVariables(Session& session, const SaverDef& def, const std::string& path);

}  // namespace weir

#endif  // WEIR_SESSION_MODEL_SAVER_H_
