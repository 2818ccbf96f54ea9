#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/tools/ckpt/ckpt.h"
#include "weir/tools/ckpt/rewrite.h"

// weir ckpt merge: one checkpoint with the tensors of several.
namespace weir::tools {

namespace {

struct MergeOptions {
  std::vector<std::string> in;
  std::string prefer;
  RewriteOptions rewrite;
};

// Adds the tensors of one checkpoint. Of two tensors of one name, --prefer chooses.
absl::Status AddCheckpoint(const MergeOptions& options, const OpenedCheckpoint& opened,
                           OutputTensors* outputs, std::map<std::string, std::string>* origins) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<CheckpointTensor> tensors, opened.reader->List());
  for (const CheckpointTensor& tensor : tensors) {
    const auto [origin, is_new] = origins->emplace(tensor.name, opened.path);
    if (!is_new && options.prefer.empty()) {
      return InvalidArgument("tensor '", tensor.name, "' is in ", origin->second, " and in ",
                             opened.path, "; choose one with --prefer first or --prefer last");
    }
    if (is_new || options.prefer == "last")
      (*outputs)[tensor.name] = CopyOf(*opened.reader, tensor);
  }
  return absl::OkStatus();
}

absl::Status Merge(const MergeOptions& options, Console& console) {
  if (!options.prefer.empty() && options.prefer != "first" && options.prefer != "last")
    return InvalidArgument("--prefer ", options.prefer, ": expected first or last");
  std::vector<OpenedCheckpoint> opened;
  std::vector<std::string> inputs = options.in;
  OutputTensors outputs;
  std::map<std::string, std::string> origins;
  for (const std::string& path : options.in) {
    WEIR_ASSIGN_OR_RETURN(OpenedCheckpoint each, OpenCheckpoint(path, &console.err));
    inputs.push_back(each.path);
    WEIR_RETURN_IF_ERROR(AddCheckpoint(options, each, &outputs, &origins));
    opened.push_back(std::move(each));
  }
  return Rewrite(options.rewrite, inputs, MakeOutput(std::move(outputs)), console);
}

}  // namespace

void AddMergeCommand(Command& ckpt) {
  auto options = std::make_shared<MergeOptions>();
  Command merge = ckpt.Add("merge", "Write one checkpoint with the tensors of several",
                           "  weir ckpt merge runs/encoder runs/head --out runs/model\n"
                           "  weir ckpt merge base fine_tuned --prefer last --out model");
  merge.Arguments("CHECKPOINT", &options->in, kCheckpointHelp).Required();
  merge.Value("--out,-o", &options->rewrite.out, "the prefix, file or folder to write")
      .Word("TO")
      .Required();
  merge
      .Value("--prefer", &options->prefer,
             "of tensors with one name, take that of the 'first' or 'last' checkpoint; default: an "
             "error")
      .Word("WHICH");
  AddForceOption(merge, &options->rewrite);
  AddRewriteOptions(merge, &options->rewrite);
  merge.Do([options](Console& console) { return Finish(console, Merge(*options, console)); });
}

}  // namespace weir::tools
