#include <memory>
#include <string>
#include <vector>

#include "weir/core/io/checkpoint_state.h"
#include "weir/core/io/file.h"
#include "weir/ops/framework/variables.h"
#include "weir/session/model/saver.h"
#include "weir/session/model/unfreeze.h"
#include "weir/session/plan/variable_use.h"
#include "weir/tools/graph/graph_export.h"
#include "weir/tools/graph/model.h"
#include "weir/tools/lib/progress.h"
#include "weir/tools/lib/text_table.h"

// weir graph unfreeze: makes constants variables again, and writes them as a checkpoint with its
// graph, on which programs train.
namespace weir::tools {

namespace {

struct UnfreezeCommandOptions {
  std::string file, out;
  std::vector<std::string> variables, tags;
  bool force = false, strict = false;
};

absl::Status CheckIsNew(const UnfreezeCommandOptions& options) {
  for (const char* ending : {".meta", ".index"}) {
    const std::string file = options.out + ending;
    WEIR_RETURN_IF_ERROR(CheckCanCreate("--out", file));
    if (options.force || !Files().Exists(file)) continue;
    return AlreadyExists(file, " exists; choose another output path, or replace it with --force");
  }
  return absl::OkStatus();
}

absl::Status CheckHasNoVariables(const Model& model, const std::string& file) {
  for (const auto& node : model.graph->nodes()) {
    if (!IsVariable(*node)) continue;
    return InvalidArgument(file, " has variables, such as ", node->name(),
                           "; weir graph freeze makes them constants first");
  }
  return absl::OkStatus();
}

// Removes the checkpoint that is replaced, its index first: otherwise a crash could leave its
// values with the new graph.
absl::Status RemoveReplaced(const std::string& prefix) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<WriteLock> lock, WriteLock::Acquire(prefix));
  return RemoveCheckpoint(prefix);
}

// Writes the graph before the checkpoint, whose index is written last: a crash may leave a graph
// without a checkpoint, which nobody takes for one, but no checkpoint without its graph.
absl::Status Write(Session& session, Saver& saver, const MetaGraphOptions& meta,
                   const UnfreezeCommandOptions& options) {
  if (options.force) WEIR_RETURN_IF_ERROR(RemoveReplaced(options.out));
  WEIR_RETURN_IF_ERROR(WriteMetaGraph(session.graph(), options.out + ".meta", meta));
  return saver.Save(session, options.out, {.write_state = false, .write_meta_graph = false})
      .status();
}

absl::Status Unfreeze(const UnfreezeCommandOptions& options, Console& console) {
  WEIR_RETURN_IF_ERROR(CheckIsNew(options));
  WEIR_ASSIGN_OR_RETURN(const GraphFileKind kind, GraphFileKindOf(options.file, options.tags));
  WEIR_RETURN_IF_ERROR(CheckOutsideInput(options.out + ".meta", options.file, kind));
  WEIR_ASSIGN_OR_RETURN(
      Model model, LoadModel(kind, options.file, {.tags = options.tags, .strict = options.strict}));
  WEIR_RETURN_IF_ERROR(CheckHasNoVariables(model, options.file));
  UnfreezeOptions how{.patterns = options.variables, .signatures = &model.meta.signatures};
  if (kind == GraphFileKind::kSavedModel) {  // its initializers read the files of this copy
    WEIR_ASSIGN_OR_RETURN(how.values,
                          AssetFeeds(FindGraph(options.file), *model.graph, model.meta));
  }
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> graph, UnfreezeGraph(*model.graph, how));
  WEIR_ASSIGN_OR_RETURN(Saver saver, Saver::Create(*graph));
  const Operation init = GlobalVariablesInitializer(*graph);
  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(*graph));
  WEIR_RETURN_IF_ERROR(session.Run({}, {}, {init}).status());
  int64_t bytes = 0;
  const Variables variables = GlobalVariables(*graph);
  for (const Variable& variable : variables)
    bytes += variable.shape().num_elements() * static_cast<int64_t>(ElementSize(variable.dtype()));
  {
    const ProgressBar progress =
        ShowWriting(console, options.out, 2.0 * static_cast<double>(bytes));
    WEIR_RETURN_IF_ERROR(
        Write(session, saver,
              {.saver = saver.def(), .signatures = model.meta.signatures, .tags = model.meta.tags},
              options));
  }
  console.out << "Wrote " << options.out << ".meta and its checkpoint: " << variables.size()
              << " constants as variables of " << HumanBytes(bytes) << "\n";
  return absl::OkStatus();
}

}  // namespace

void AddUnfreezeCommand(Command& graph) {
  auto options = std::make_shared<UnfreezeCommandOptions>();
  Command command =
      graph.Add("unfreeze", "Write a graph with variables in place of constants, to train on",
                "  weir graph unfreeze model.pb -o runs/model-0\n"
                "  weir graph unfreeze model.pb --variable 'conv*/weights' -o runs/model-0\n"
                "Without --variable, the weights become variables: floating-point constants of\n"
                "more than one element that products, convolutions, gathers, biases, batch\n"
                "normalizations and functions take.");
  AddGraphArgument(command, &options->file);
  command
      .Repeated("--variable", &options->variables,
                "make the floating-point constants with such names variables; repeatable")
      .Word("PATTERN");
  command.List("--tags", &options->tags, "select the meta graph of a SavedModel by its tags")
      .Word("TAG,...");
  AddStrictOption(command, &options->strict);
  command.Flag("--force", &options->force, "replace an existing checkpoint: it is removed first");
  command.Value("--out,-o", &options->out, "the checkpoint to write, with its graph in PREFIX.meta")
      .Word("PREFIX")
      .Required();
  command.Do([options](Console& console) { return Finish(console, Unfreeze(*options, console)); });
}

}  // namespace weir::tools
