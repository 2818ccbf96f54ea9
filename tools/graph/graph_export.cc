#include "weir/tools/graph/graph_export.h"

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "weir/core/io/file.h"
#include "weir/core/io/graph_io.h"
#include "weir/session/model/freeze.h"
#include "weir/session/model/saved_model.h"
#include "weir/session/plan/variable_use.h"
#include "weir/tools/ckpt/checkpoint_path.h"
#include "weir/tools/graph/model.h"
#include "weir/tools/graph/signature.h"
#include "weir/tools/lib/progress.h"
#include "weir/tools/lib/text_table.h"
#include "weir/tools/lib/value_file.h"

// weir graph freeze|export: writes a model with the values of its variables for inference: a graph
// of constants in one file, or a SavedModel.
namespace weir::tools {

namespace {

struct ExportOptions {
  std::string file, out, signature, init;
  RestoreFlags restore;
  std::vector<std::string> fetches, targets, inputs, outputs, values, tags, new_tags = {"serve"};
  bool clear_devices = false, text = false, strict = false, objects = false;
};

// `mode`: the default of --restore.
void AddModelOptions(Command& command, ExportOptions* options, const char* mode) {
  AddGraphArgument(command, &options->file);
  AddRestoreOptions(command, &options->restore, mode);
  command.List("--tags", &options->tags, "select the meta graph of a SavedModel by its tags")
      .Word("TAG,...");
  AddStrictOption(command, &options->strict);
  command.Flag("--clear-devices", &options->clear_devices, "remove the device from every node");
}

// Checks that the output does not overwrite an input: the graph's file, or the folder of a
// SavedModel, or the checkpoint's files.
absl::Status CheckPreservesInputs(const ExportOptions& options, GraphFileKind kind) {
  WEIR_RETURN_IF_ERROR(CheckOutsideInput(options.out, options.file, kind));
  if (options.restore.checkpoint.empty()) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(const std::string prefix, CheckpointPrefix(options.restore.checkpoint));
  WEIR_RETURN_IF_ERROR(CheckNotOverwriting(options.out, prefix));
  WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> shards, MatchFiles(prefix + ".data-*"));
  for (const std::string& file : shards)
    WEIR_RETURN_IF_ERROR(CheckNotOverwriting(options.out, file));
  return CheckNotOverwriting(options.out, prefix + ".index");
}

// The bytes of the variables' values.
double ValueBytes(const ExportOptions& options) {
  if (options.restore.checkpoint.empty())
    return CheckpointBytes(JoinPath(FindGraph(options.file), "variables/variables"));
  const absl::StatusOr<std::string> prefix = CheckpointPrefix(options.restore.checkpoint);
  return prefix.ok() ? CheckpointBytes(*prefix) : 0;
}

absl::StatusOr<Model> Load(GraphFileKind kind, const ExportOptions& options, Console& console) {
  WEIR_RETURN_IF_ERROR(CheckPreservesInputs(options, kind));
  const ProgressBar progress = ShowReading(console, options.file, ValueBytes(options));
  return LoadModel(kind, options.file, {.tags = options.tags, .strict = options.strict});
}

// Restores the checkpoint, if there is one.
absl::Status Restore(const ExportOptions& options, std::vector<Operation> needed, Model& model,
                     Console& console) {
  if (options.restore.checkpoint.empty()) return absl::OkStatus();
  const ProgressBar progress =
      ShowReading(console, options.restore.checkpoint, ValueBytes(options));
  return RestoreModel(model, options.restore, std::move(needed), console.err);
}

// Returns the names of the signatures that users call, without those that a loader runs.
std::string NamesOf(const std::map<std::string, Signature>& signatures) {
  std::vector<std::string> names;
  for (const auto& [name, signature] : signatures) {
    if (!IsLoaderSignature(name)) names.push_back(name);
  }
  return absl::StrJoin(names, ", ");
}

// ---- freeze

// Returns the signature, or the function, that is frozen; one without names if none is requested.
absl::StatusOr<Signature> FindSignature(const ExportOptions& options, Model& model) {
  if (options.signature.empty()) return Signature();
  WEIR_ASSIGN_OR_RETURN(ChosenSignature chosen, ChooseSignature(model, options.signature, {}));
  return std::move(chosen.signature);
}

absl::StatusOr<Outputs> FindFetches(const ExportOptions& options, const Signature& signature,
                                    const Model& model) {
  std::vector<std::string> names = options.fetches;
  for (const auto& [result, tensor] : signature.outputs) names.push_back(tensor);
  if (names.empty()) {
    return InvalidArgument(
        "nothing to freeze: pass --fetch or --signature",
        model.meta.signatures.empty() ? "" : " with one of: ", NamesOf(model.meta.signatures));
  }
  Outputs wanted;
  for (const std::string& name : names) {
    WEIR_ASSIGN_OR_RETURN(const Output output, model.graph->FindOutput(name));
    wanted.push_back(output);
  }
  return wanted;
}

absl::Status Freeze(const ExportOptions& options, Console& console) {
  WEIR_RETURN_IF_ERROR(CheckCanCreate("--out", options.out));
  WEIR_ASSIGN_OR_RETURN(const GraphFileKind kind, GraphFileKindOf(options.file, options.tags));
  WEIR_ASSIGN_OR_RETURN(Model model, Load(kind, options, console));
  WEIR_ASSIGN_OR_RETURN(const Signature signature, FindSignature(options, model));
  WEIR_ASSIGN_OR_RETURN(const Outputs wanted, FindFetches(options, signature, model));
  FreezeOptions how{.clear_devices = options.clear_devices};
  for (const std::string& target : options.targets) {
    WEIR_ASSIGN_OR_RETURN(const Operation operation, FindOperation(*model.graph, target));
    how.targets.push_back(operation);
  }
  for (const std::string& set : options.values) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(set, absl::MaxSplits('=', 1));
    if (parts.second.empty())
      return InvalidArgument("--set ", set, ": expected TENSOR=VALUE, such as phase_train=false");
    WEIR_ASSIGN_OR_RETURN(const Output output, model.graph->FindOutput(parts.first));
    WEIR_ASSIGN_OR_RETURN(Tensor value, ParseValue(parts.second, {.dtype = output.dtype()}));
    how.values.emplace_back(output, std::move(value));
  }
  if (kind == GraphFileKind::kSavedModel) {  // its initializers read the files of this copy
    WEIR_ASSIGN_OR_RETURN(const Feeds assets,
                          AssetFeeds(FindGraph(options.file), *model.graph, model.meta));
    how.values.insert(how.values.end(), assets.begin(), assets.end());
  }
  std::vector<Operation> needed = how.targets;
  for (const Output& output : wanted) needed.emplace_back(output);
  WEIR_RETURN_IF_ERROR(Restore(options, std::move(needed), model, console));
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> frozen,
                        FreezeGraph(*model.session, wanted, how));
  {
    const ProgressBar progress = ShowWriting(console, options.out, ValueBytes(options));
    WEIR_RETURN_IF_ERROR(WriteGraphFile(*frozen, options.out));
  }
  int variables = 0, tables = 0;
  int64_t bytes = 0;
  for (const auto& node : frozen->nodes()) {
    tables += absl::StrContains(node->op_name(), "HashTable") ? 1 : 0;
    const Node* const old = model.graph->FindNode(node->name());
    if (old == nullptr || !IsVariable(*old)) continue;
    ++variables;
    bytes += static_cast<int64_t>(node->attr<Tensor>("value").num_bytes());
  }
  console.out << "Wrote " << options.out << ": " << frozen->num_nodes() << " of "
              << model.graph->num_nodes() << " nodes, " << variables
              << " variables as constants of " << HumanBytes(bytes) << "\n";
  if (tables > 0 && how.targets.empty()) {
    console.out << "The graph has " << tables
                << " lookup tables but no node that fills them; --target NODE keeps that node\n";
  }
  for (const auto& [argument, tensor] : signature.inputs)
    console.out << "  feed " << argument << " as " << tensor << "\n";
  for (const auto& [result, tensor] : signature.outputs)
    console.out << "  fetch " << result << " as " << tensor << "\n";
  return absl::OkStatus();
}

// ---- export

// Splits "scores=y:0".
absl::StatusOr<std::map<std::string, Output>> ParseNamedTensors(
    const std::vector<std::string>& texts, const char* option, const Graph& graph) {
  std::map<std::string, Output> named;
  for (const std::string& text : texts) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
    if (parts.first.empty() || parts.second.empty())
      return InvalidArgument(option, " ", text, ": expected NAME=TENSOR, such as scores=y:0");
    WEIR_ASSIGN_OR_RETURN(const Output tensor, graph.FindOutput(parts.second));
    if (!named.emplace(parts.first, tensor).second)
      return InvalidArgument(option, " ", parts.first, " is specified twice");
  }
  return named;
}

absl::Status Export(const ExportOptions& options, Console& console) {
  WEIR_ASSIGN_OR_RETURN(const GraphFileKind kind, GraphFileKindOf(options.file, options.tags));
  WEIR_ASSIGN_OR_RETURN(Model model, Load(kind, options, console));
  WEIR_RETURN_IF_ERROR(Restore(options, {}, model, console));
  std::map<std::string, Signature> signatures = model.meta.signatures;
  if (!options.inputs.empty() || !options.outputs.empty()) {
    WEIR_ASSIGN_OR_RETURN(const auto inputs,
                          ParseNamedTensors(options.inputs, "--input", *model.graph));
    WEIR_ASSIGN_OR_RETURN(const auto outputs,
                          ParseNamedTensors(options.outputs, "--output", *model.graph));
    if (outputs.empty()) return InvalidArgument("a signature needs an output: pass --output");
    const std::string& name = options.signature;
    signatures[name.empty() ? "serving_default" : name] = PredictSignature(inputs, outputs);
  }
  if (signatures.empty())
    return InvalidArgument("the model has no signature: pass --input and --output");
  SavedModelOptions saved{.tags = options.new_tags,
                          .clear_devices = options.clear_devices,
                          .objects = options.objects,
                          .trainable = model.trainable,
                          .as_text = options.text};
  if (!options.init.empty()) {
    WEIR_ASSIGN_OR_RETURN(saved.init_op, FindOperation(*model.graph, options.init));
  }
  // A V1 saver can restore checkpoints but cannot be part of a SavedModel.
  if (model.meta.saver && model.meta.saver->version >= 2) saved.saver = model.meta.saver;
  if (Files().IsDirectory(FindGraph(options.file))) {
    WEIR_ASSIGN_OR_RETURN(saved.assets, AssetFiles(FindGraph(options.file), model.meta));
  }
  {
    const ProgressBar progress = ShowWriting(console, options.out, ValueBytes(options));
    WEIR_RETURN_IF_ERROR(
        WriteSavedModel(*model.session, *model.graph, options.out, signatures, saved));
  }
  console.out << "Wrote " << options.out << ", a SavedModel with the signatures "
              << NamesOf(signatures) << "\n";
  return absl::OkStatus();
}

}  // namespace

void AddFreezeCommand(Command& graph) {
  auto options = std::make_shared<ExportOptions>();
  Command freeze = graph.Add(
      "freeze", "Write the subgraph of some tensors, with constants in place of variables",
      "  weir graph freeze model.meta --checkpoint runs/model-500 --fetch logits -o model.pb\n"
      "  weir graph freeze saved_model_dir --signature serving_default -o model.pb");
  AddModelOptions(freeze, options.get(), "needed");
  freeze.Repeated("--fetch", &options->fetches, "keep this tensor computable; repeatable")
      .Word("TENSOR");
  freeze
      .Value("--signature", &options->signature,
             "keep the outputs of this signature, or of the function of this name that has none")
      .Word("NAME");
  freeze
      .Repeated("--target", &options->targets,
                "also keep this node, such as one that fills lookup tables; repeatable")
      .Word("NODE");
  freeze
      .Repeated("--set", &options->values,
                "fix a tensor to a value for good, such as phase_train=false; repeatable")
      .Word("TENSOR=VALUE");
  freeze
      .Value("--out,-o", &options->out,
             "the GraphDef to write; text format if the name ends in .pbtxt")
      .Word("FILE")
      .Required();
  freeze.Do([options](Console& console) { return Finish(console, Freeze(*options, console)); });
}

void AddExportCommand(Command& graph) {
  auto options = std::make_shared<ExportOptions>();
  Command command = graph.Add(
      "export", "Write a SavedModel",
      "  weir graph export model.meta --checkpoint runs/model-500 --input images=x --output "
      "scores=y -o export/1");
  AddModelOptions(command, options.get(), "strict");
  command
      .Repeated("--input", &options->inputs, "an input of the signature and its tensor; repeatable")
      .Word("NAME=TENSOR");
  command
      .Repeated("--output", &options->outputs,
                "an output of the signature and its tensor; repeatable")
      .Word("NAME=TENSOR");
  command
      .Value("--signature", &options->signature,
             "name of the new signature, added to those of the model; default: serving_default")
      .Word("NAME");
  command
      .Value("--init", &options->init,
             "a node that runs whenever the model is loaded, such as one that fills lookup tables")
      .Word("NODE");
  command.List("--new-tags", &options->new_tags, "tags of the new SavedModel; default: serve")
      .Word("TAG,...");
  command.Flag("--objects", &options->objects,
               "write the objects of TensorFlow 2, so that tf.saved_model.load returns variables "
               "to train and functions to call");
  command.Flag("--text", &options->text, "write text format (saved_model.pbtxt)");
  command.Value("--out,-o", &options->out, "the folder to create").Word("FOLDER").Required();
  command.Do([options](Console& console) { return Finish(console, Export(*options, console)); });
}

}  // namespace weir::tools
