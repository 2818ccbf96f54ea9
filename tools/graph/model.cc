#include "weir/tools/graph/model.h"

#include <utility>

#include "weir/core/io/graph_io.h"
#include "weir/proto/meta_graph.pb.h"
#include "weir/session/model/saver.h"
#include "weir/tools/ckpt/ckpt.h"

namespace weir::tools {

namespace {

absl::StatusOr<Model> LoadSaved(const std::string& path, const ModelOptions& options) {
  if (!options.device.empty()) {
    return Unimplemented("--device does not apply to a SavedModel, whose nodes keep their devices");
  }
  WEIR_ASSIGN_OR_RETURN(LoadedModel loaded, LoadSavedModel(path, options.tags, options.session));
  Model model;
  model.graph = std::move(loaded.graph);
  model.meta = std::move(loaded.meta);
  model.session = std::move(loaded.session);
  return model;
}

absl::StatusOr<SaverDef> SaverOf(Model& model) {
  if (model.meta.saver) return *model.meta.saver;
  SaverDef def;
  if (model.graph->FindNode("save/restore_all") != nullptr &&
      model.graph->FindNode("save/Const") != nullptr) {
    def.filename_tensor_name = "save/Const:0";
    def.restore_op_name = "save/restore_all";
    def.save_tensor_name = "save/control_dependency:0";
    return def;
  }
  return AddSaverOfNodes(*model.graph);
}

}  // namespace

absl::StatusOr<Model> LoadModel(GraphFileKind kind, const std::string& path,
                                const ModelOptions& options) {
  if (kind == GraphFileKind::kSavedModel) return LoadSaved(path, options);
  Model model;
  model.graph = std::make_unique<Graph>();
  if (kind == GraphFileKind::kGraph) {
    WEIR_RETURN_IF_ERROR(CheckTags(path, options.tags, {}));
    WEIR_RETURN_IF_ERROR(ImportGraphFile(*model.graph, path).status());
  } else {
    auto file = std::make_shared<proto::MetaGraphDef>();
    WEIR_RETURN_IF_ERROR(ReadAnyGraph(path, options.tags, file.get()).status());
    WEIR_ASSIGN_OR_RETURN(model.meta, ImportMetaGraph(*model.graph, *file));
    model.file = std::move(file);
  }
  for (const auto& node : model.graph->nodes()) {
    if (!options.device.empty() && node->device().empty()) {
      model.graph->SetDevice(node.get(), options.device);
    }
  }
  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(*model.graph, options.session));
  model.session = std::make_unique<Session>(std::move(session));
  return model;
}

void AddCheckpointOption(Command& command, std::string* checkpoint) {
  command
      .Value("--checkpoint", checkpoint,
             "restore the variables from this checkpoint, or from the newest one in a folder")
      .Word("PREFIX");
}

absl::StatusOr<Operation> FindOperation(const Graph& graph, const std::string& name) {
  Node* const node = graph.FindNode(name);
  if (node == nullptr) return NotFound("The graph has no node '", name, "'");
  return Operation(node);
}

absl::Status RestoreModel(Model& model, const std::string& path) {
  WEIR_ASSIGN_OR_RETURN(const std::string prefix, CheckpointPrefix(path));
  WEIR_ASSIGN_OR_RETURN(const SaverDef def, SaverOf(model));
  return RestoreVariables(*model.session, def, prefix);
}

absl::Status SaveModel(Model& model, const std::string& prefix) {
  WEIR_ASSIGN_OR_RETURN(const SaverDef def, SaverOf(model));
  Saver saver = Saver::FromDef(def);
  // The folder may contain the checkpoints of a training run: do not touch its state file.
  return saver.Save(*model.session, prefix, {.write_state = false, .write_meta_graph = false})
      .status();
}

}  // namespace weir::tools
