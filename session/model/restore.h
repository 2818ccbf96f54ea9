#ifndef WEIR_SESSION_MODEL_RESTORE_H_
#define WEIR_SESSION_MODEL_RESTORE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"
#include "weir/core/tensor/status.h"
#include "weir/ops/train/saver.h"

namespace WEIR_API weir {

class Session;

// Which of the variables that a saver names are restored. A step that needs a variable that is
// neither restored nor initialized fails with FAILED_PRECONDITION: nothing is ever zero instead.
enum class RestoreMode : uint8_t {
  kStrict,     // all; each must be in the checkpoint
  kNeeded,     // those that `RestoreOptions::needed` depends on; each must be in the checkpoint
  kAvailable,  // those that are in the checkpoint with a dtype and a shape that fit
};

// How variables are restored.
struct RestoreOptions {
  // Which variables.
  RestoreMode mode = RestoreMode::kStrict;
  // What the program is going to run.
  std::vector<Operation> needed = {};
  // Returns the key that is read instead of one of the saver's: for variables that were renamed, or
  // for the moving averages of weights. None: the same.
  std::function<std::string(const std::string& key)> rename = nullptr;
};

// What a restore did. All lists have keys of the checkpoint, after renaming.
struct RestoreReport {
  // A key that is not restored.
  struct Fault {
    std::string key;     // that the saver names, renamed
    std::string reason;  // or the name that is like the key's, for one that is missing
  };
  // A name that the saver has for a tensor whose key in the checkpoint is another.
  struct FullName {
    std::string name, key;  // the saver's, and the checkpoint's
  };
  std::vector<std::string> restored;    // that are now the values of variables
  std::vector<FullName> by_full_name;   // of these, by their names in a checkpoint of objects
  std::vector<Fault> missing;           // not in the checkpoint
  std::vector<Fault> mismatched;        // of another dtype or shape
  std::vector<std::string> not_needed;  // for RestoreMode::kNeeded
  std::vector<std::string> unexpected;  // in the checkpoint, but nothing of the saver's
};

// Restores variables for a graph with a SaverDef, all or nothing, as Saver::Restore does. In a
// checkpoint of objects, which TensorFlow 2 writes, a name of the saver that is no key denotes the
// variable with that full name; INVALID_ARGUMENT if there are several. Returns Saver::Restore's
// errors; one for missing tensors names at most 21 of them, one for a tensor that does not fit
// only that. `report`, if not null, names them also on such an error.
absl::Status RestoreVariables(Session& session, const SaverDef& def, const std::string& path,
                              const RestoreOptions& options, RestoreReport* report = nullptr);

}  // namespace weir

#endif  // WEIR_SESSION_MODEL_RESTORE_H_
