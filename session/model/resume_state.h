#ifndef WEIR_SESSION_MODEL_RESUME_STATE_H_
#define WEIR_SESSION_MODEL_RESUME_STATE_H_

#include <string>
#include <vector>

#include "weir/core/io/file.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/train/saver.h"
#include "weir/session/session.h"

// Exact resume: a run that is killed and resumed computes the bits of one that was never broken. A
// checkpoint has variables only. What else steps depend on is stored in a file beside it, which
// TensorFlow ignores (docs/checkpoint_format.md): the positions of random streams and of iterators,
// the elements of queues, and the variables that the saver does not save.
//
//   saver.Save(session, "train/model", {.global_step = 100, .exact_resume = true});
//   ...
//   saver.Restore(session, checkpoint);
//   session.Run(init_local);                // initializers of local variables and of tables
//   ResumeExactly(session, checkpoint);     // before the first step
//
// A MonitoredSession does all of this by itself (TrainingSessionOptions::exact_resume).
//
// An iterator resumes by repeating: its first element takes as long as all that it had returned. So
// elements that had been prefetched are delivered again. Its dataset must have the same elements in
// the same order; a program initializes the iterator as before. The order of elements and of random
// numbers does not depend on the number of threads.
//
// What the file cannot hold is named in a warning: elements of barriers and staging areas,
// positions of readers, tables that steps change, what functions of datasets change besides random
// streams, and what queue runners are moving.
namespace WEIR_API weir {

struct ResumableKind;

// The state of a session besides the variables of a checkpoint. Independent of the session once it
// is taken. Not thread-safe.
class ResumeState {
 public:
  // Takes the state of the session, in which no step may be running. UNIMPLEMENTED for a session on
  // a server.
  static absl::StatusOr<ResumeState> Take(Session& session, const SaverDef& def);
  // What could not be taken, for people.
  const std::vector<std::string>& lost() const { return lost_; }

  // Writes ResumePath(prefix), atomically. The checkpoint `prefix` in format V2 must be complete:
  // the file belongs to it alone, even if another one gets its name.
  absl::Status Write(const std::string& prefix, Durability durability) const;
  // Reads this file. NOT_FOUND if there is none, FAILED_PRECONDITION if it belongs to another
  // checkpoint of that name, DATA_LOSS if it is damaged.
  static absl::StatusOr<ResumeState> Read(const std::string& prefix);

  // Puts the state into a session. INVALID_ARGUMENT, with the node, if the graph does not fit;
  // DATA_LOSS if a value does not.
  absl::Status Restore(Session& session) const;

 private:
  // The state of one resource, and the node that makes it.
  struct Item {
    std::string kind, node, op;   // no node: the resource belongs to a function
    std::string container, name;  // of the resource
    bool is_own = false;          // whether other sessions cannot see it
    Tensors values;
  };
  void TakeResources(Session& session);
  void TakeVariables(Session& session, const SaverDef& def);
  static absl::Status RestoreResource(Session& session, const ResumableKind* kind,
                                      const Item& item);
  static absl::Status CheckNode(const Graph& graph, const Item& item);

  std::vector<Item> items_;
  std::vector<std::string> lost_;
};

// Puts back what SaveOptions::exact_resume has stored beside a checkpoint. To be called when all
// variables have values, local ones too, and before the first step. If the file is missing or
// belongs to another checkpoint, or lacks something, prints a warning that says what is lost; with
// `required`, returns FAILED_PRECONDITION instead, and nothing is changed. Other errors are those
// of ResumeState.
absl::Status ResumeExactly(Session& session, const std::string& checkpoint, bool required = false);

}  // namespace weir

#endif  // WEIR_SESSION_MODEL_RESUME_STATE_H_
