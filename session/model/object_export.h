#ifndef WEIR_SESSION_MODEL_OBJECT_EXPORT_H_
#define WEIR_SESSION_MODEL_OBJECT_EXPORT_H_

#include <map>
#include <string>
#include <vector>

#include "weir/session/model/saved_model.h"

namespace weir::proto {
class MetaGraphDef;
}

namespace weir {

// What becomes a model of objects.
struct ObjectExportOptions {
  std::map<std::string, Signature> signatures;
  Operation init_op;                          // or invalid
  std::vector<std::string> trainable;         // nodes of variables
  std::map<std::string, std::string> assets;  // tensor -> file, as in MetaGraph
  std::vector<std::string> tags;
  bool clear_devices = false;
  Durability durability = Durability::kSynced;
};

// Writes the meta graph of a SavedModel with TensorFlow 2's objects (SavedModelOptions::objects),
// and its checkpoint: the values of the session's variables. Errors are those of WriteSavedModel.
absl::Status ExportObjects(Session& session, const ObjectExportOptions& options,
                           const std::string& checkpoint, proto::MetaGraphDef* def);

}  // namespace weir

#endif  // WEIR_SESSION_MODEL_OBJECT_EXPORT_H_
