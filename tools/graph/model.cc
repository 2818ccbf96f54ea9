#include "weir/tools/graph/model.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/strip.h"
#include "weir/core/io/bundle.h"
#include "weir/core/io/graph_io.h"
#include "weir/onnx/onnx_import.h"
#include "weir/proto/meta_graph.pb.h"
#include "weir/session/model/restore.h"
#include "weir/session/model/saver.h"
#include "weir/tools/ckpt/checkpoint_path.h"
#include "weir/tools/lib/command.h"
#include "weir/tools/lib/rename_rules.h"

namespace weir::tools {

namespace {

UnknownParts UnknownOf(const ModelOptions& options) {
  return options.strict ? UnknownParts::kReject : UnknownParts::kKeep;
}

absl::StatusOr<Model> LoadSaved(const std::string& path, const ModelOptions& options) {
  if (!options.device.empty()) {
    return Unimplemented("--device does not apply to a SavedModel, whose nodes keep their devices");
  }
  WEIR_ASSIGN_OR_RETURN(LoadedModel loaded,
                        LoadSavedModel(path, options.tags, options.session, UnknownOf(options)));
  Model model;
  model.graph = std::move(loaded.graph);
  model.meta = std::move(loaded.meta);
  model.functions = std::move(loaded.functions);
  model.trainable = std::move(loaded.trainable);
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

absl::StatusOr<Model> LoadModel(GraphFileKind kind, const std::string& given,
                                const ModelOptions& options) {
  const std::string path = FindGraph(given);
  if (kind == GraphFileKind::kSavedModel) return LoadSaved(path, options);
  Model model;
  model.graph = std::make_unique<Graph>();
  if (kind == GraphFileKind::kGraph) {
    WEIR_RETURN_IF_ERROR(CheckTags(path, options.tags, {}));
    WEIR_RETURN_IF_ERROR(
        ImportGraphFile(*model.graph, path, {.unknown = UnknownOf(options)}).status());
  } else if (kind == GraphFileKind::kOnnx) {
    WEIR_RETURN_IF_ERROR(CheckTags(path, options.tags, {}));
    WEIR_ASSIGN_OR_RETURN(model.meta, onnx::ImportOnnxFile(*model.graph, path));
  } else {
    auto file = std::make_shared<proto::MetaGraphDef>();
    WEIR_RETURN_IF_ERROR(ReadAnyGraph(path, options.tags, file.get()).status());
    WEIR_ASSIGN_OR_RETURN(model.meta,
                          ImportMetaGraph(*model.graph, *file, {.unknown = UnknownOf(options)}));
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

void AddStrictOption(Command& command, bool* strict) {
  command.Flag("--strict", strict,
               "reject a graph with ops or attributes that Weir does not know, as TensorFlow does");
}

void AddRestoreOptions(Command& command, RestoreFlags* flags, const char* mode) {
  flags->mode = mode;
  command
      .Value("--checkpoint", &flags->checkpoint,
             "restore the variables from this checkpoint, or from the newest one in a folder")
      .Word("PREFIX");
  command
      .Value("--restore", &flags->mode,
             "which variables: all of the saver's (strict), those that the run needs (needed), or "
             "those that are in the checkpoint and fit (available)")
      .Word("MODE");
  command.Flag("--ema", &flags->ema, "take the moving averages of variables that have one");
  command
      .Value("--ema-suffix", &flags->ema_suffix, "how the names of these averages end, after a /")
      .Word("SUFFIX");
  command
      .Repeated("--rename", &flags->renames,
                "read variables under other names: replace each match of the regular expression by "
                "the text, in which \\1 is its first group; repeatable")
      .Word("REGEX=TEXT");
}

absl::Status CheckOutsideInput(const std::string& out, const std::string& file,
                               GraphFileKind kind) {
  WEIR_RETURN_IF_ERROR(CheckNotOverwriting(out, FindGraph(file)));
  if (kind != GraphFileKind::kSavedModel) return absl::OkStatus();
  for (std::string above = DirectoryOf(out); above != "." && above != "/";
       above = DirectoryOf(above))
    WEIR_RETURN_IF_ERROR(CheckNotOverwriting(above, FindGraph(file)));
  return absl::OkStatus();
}

absl::StatusOr<Operation> FindOperation(const Graph& graph, const std::string& name) {
  Node* const node = graph.FindNode(name);
  if (node == nullptr) return NotFound("The graph has no node '", name, "'");
  return Operation(node);
}

namespace {

absl::StatusOr<RestoreMode> ModeOf(const std::string& text) {
  if (text == "strict") return RestoreMode::kStrict;
  if (text == "needed") return RestoreMode::kNeeded;
  if (text == "available") return RestoreMode::kAvailable;
  return InvalidArgument("--restore ", text, ": expected strict, needed or available");
}

void PrintFaults(const char* what, const std::vector<RestoreReport::Fault>& faults,
                 std::ostream& err) {
  for (const RestoreReport::Fault& fault : faults)
    err << "weir: " << what << ": " << fault.key << " " << fault.reason << "\n";
}

void PrintReport(const RestoreReport& report, std::ostream& err) {
  if (!report.by_full_name.empty()) {
    const RestoreReport::FullName& first = report.by_full_name[0];
    err << "weir: the checkpoint is one of objects; " << report.by_full_name.size()
        << " variables are read by their full names in it, " << first.name << " from " << first.key
        << "\n";
  }
  if (report.missing.empty() && report.mismatched.empty()) return;
  PrintFaults("not in the checkpoint", report.missing, err);
  PrintFaults("does not fit", report.mismatched, err);
  err << "weir: restored " << report.restored.size() << " tensors, not "
      << report.missing.size() + report.mismatched.size() << "; the checkpoint has "
      << report.unexpected.size() << " others\n";
}

}  // namespace

absl::Status RestoreModel(Model& model, const RestoreFlags& flags, std::vector<Operation> needed,
                          std::ostream& err) {
  WEIR_ASSIGN_OR_RETURN(const std::string prefix, CheckpointPrefix(flags.checkpoint, &err));
  WEIR_ASSIGN_OR_RETURN(const SaverDef def, SaverOf(model));
  RestoreOptions options{.needed = std::move(needed)};
  WEIR_ASSIGN_OR_RETURN(options.mode, ModeOf(flags.mode));
  WEIR_ASSIGN_OR_RETURN(const RenameRules renames, RenameRules::Parse(flags.renames));
  absl::flat_hash_set<std::string> averages;
  if (flags.ema) {
    WEIR_ASSIGN_OR_RETURN(const auto reader, CheckpointReader::Open(prefix));
    WEIR_ASSIGN_OR_RETURN(const std::vector<CheckpointTensor> tensors, reader->List());
    for (const CheckpointTensor& tensor : tensors) {
      absl::string_view name = tensor.name;
      if (absl::ConsumeSuffix(&name, "/" + flags.ema_suffix)) averages.emplace(name);
    }
    if (averages.empty())
      return NotFound("--ema: no tensor of ", prefix, " ends in /", flags.ema_suffix);
  }
  options.rename = [&](const std::string& key) {
    const std::string renamed = renames.Apply(key);
    return averages.contains(renamed) ? renamed + "/" + flags.ema_suffix : renamed;
  };
  RestoreReport report;
  WEIR_RETURN_IF_ERROR(RestoreVariables(*model.session, def, prefix, options, &report));
  PrintReport(report, err);
  return absl::OkStatus();
}

absl::Status SaveModel(Model& model, const std::string& prefix) {
  WEIR_ASSIGN_OR_RETURN(const SaverDef def, SaverOf(model));
  Saver saver = Saver::FromDef(def);
  // The folder may contain the checkpoints of a training run: do not touch its state file.
  return saver.Save(*model.session, prefix, {.write_state = false, .write_meta_graph = false})
      .status();
}

}  // namespace weir::tools
