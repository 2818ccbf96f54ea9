#ifndef WEIR_SESSION_MODEL_SAVE_SNAPSHOT_H_
#define WEIR_SESSION_MODEL_SAVE_SNAPSHOT_H_

#include <string>
#include <vector>

#include "weir/core/io/file.h"
#include "weir/core/tensor/tensor.h"
#include "weir/ops/train/saver.h"
#include "weir/session/session.h"

namespace weir {

// What a save writes, taken at one instant, so that it can be written while steps change the
// variables. The values share the memory of the variables, which are copied when a step writes to
// them: all snapshots of one instant cost at most one copy of the variables. Values on another
// device are copied to the host. Not thread-safe; independent of the session once it is taken.
class SaveSnapshot {
 public:
  // Runs one step, which fetches what the save nodes of the graph would write to `path`.
  //   UNIMPLEMENTED        the graph does not save in format V2; the session is on a server
  //   FAILED_PRECONDITION  a variable has no value (name)
  static absl::StatusOr<SaveSnapshot> Take(Session& session, const SaverDef& def,
                                           const std::string& path);

  // Writes the checkpoint with the files that the graph's nodes would write, shards included.
  // Releases each value once it is written; to be called once.
  absl::Status Write();

 private:
  // What one node writes.
  struct Part {
    std::string prefix;
    Durability durability = Durability::kSynced;
    std::vector<std::string> names, specs;
    Tensors values;
  };

  std::vector<Part> parts_;
  std::string merged_;  // the prefix of the checkpoint that the parts become; empty: only one part
  Durability durability_ = Durability::kSynced;  // of the merged checkpoint
};

}  // namespace weir

#endif  // WEIR_SESSION_MODEL_SAVE_SNAPSHOT_H_
