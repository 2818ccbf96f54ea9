#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/tools/ckpt/ckpt.h"
#include "weir/tools/ckpt/rewrite.h"

// weir ckpt average: the element-wise means of several checkpoints of one model. Floating-point
// tensors are averaged in double and rounded once. All others cannot be averaged: counters such as
// global_step differ between checkpoints of one run, and are taken from the last checkpoint; with
// --strict they must agree.
namespace weir::tools {

namespace {

struct AverageOptions {
  std::vector<std::string> in;
  bool strict = false;
  RewriteOptions rewrite;
};

// Returns the error unless a checkpoint has the same tensors as the first one.
absl::Status CheckSameTensors(const OpenedCheckpoint& first,
                              const std::vector<CheckpointTensor>& tensors,
                              const OpenedCheckpoint& other) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<CheckpointTensor> others, other.reader->List());
  for (const CheckpointTensor& tensor : others)
    WEIR_RETURN_IF_ERROR(first.reader->Find(tensor.name).status());
  for (const CheckpointTensor& tensor : tensors) {
    WEIR_ASSIGN_OR_RETURN(const CheckpointTensor found, other.reader->Find(tensor.name));
    if (found.dtype == tensor.dtype && found.shape == tensor.shape) continue;
    return InvalidArgument("tensor '", tensor.name, "' is ", DataTypeName(tensor.dtype),
                           tensor.shape.ToString(), " in ", first.path, ", but ",
                           DataTypeName(found.dtype), found.shape.ToString(), " in ", other.path);
  }
  return absl::OkStatus();
}

// Returns the error unless all checkpoints have the same elements.
absl::Status CheckAgrees(const CheckpointTensor& tensor,
                         const std::vector<OpenedCheckpoint>& opened) {
  WEIR_ASSIGN_OR_RETURN(const Tensor first, opened[0].reader->Read(tensor.name));
  for (size_t i = 1; i < opened.size(); ++i) {
    WEIR_ASSIGN_OR_RETURN(const Tensor other, opened[i].reader->Read(tensor.name));
    if (IdenticalTensors(first, other)) continue;
    return InvalidArgument("tensor '", tensor.name, "' of type ", DataTypeName(tensor.dtype),
                           " differs between ", opened[0].path, " and ", opened[i].path,
                           "; without --strict it is taken from the last checkpoint");
  }
  return absl::OkStatus();
}

absl::Status Average(const AverageOptions& options, Console& console) {
  if (options.in.size() < 2) return InvalidArgument("pass at least two checkpoints");
  std::vector<OpenedCheckpoint> opened;
  std::vector<std::string> inputs = options.in;
  for (const std::string& path : options.in) {
    WEIR_ASSIGN_OR_RETURN(OpenedCheckpoint each, OpenCheckpoint(path, &console.err));
    inputs.push_back(each.path);
    opened.push_back(std::move(each));
  }
  WEIR_ASSIGN_OR_RETURN(const std::vector<CheckpointTensor> tensors, opened[0].reader->List());
  for (const OpenedCheckpoint& each : opened)
    WEIR_RETURN_IF_ERROR(CheckSameTensors(opened[0], tensors, each));
  Output output;
  for (const CheckpointTensor& tensor : tensors) {
    OutputTensor mean = CopyOf(*opened.back().reader, tensor);
    if (IsFloating(tensor.dtype)) {
      mean.sources.clear();
      for (const OpenedCheckpoint& each : opened)
        mean.sources.push_back({each.reader.get(), tensor.name, tensor.dtype});
    } else if (options.strict) {
      WEIR_RETURN_IF_ERROR(CheckAgrees(tensor, opened));
    }
    output.tensors.push_back(std::move(mean));
  }
  return Rewrite(options.rewrite, inputs, std::move(output), console);
}

}  // namespace

void AddAverageCommand(Command& ckpt) {
  auto options = std::make_shared<AverageOptions>();
  Command average =
      ckpt.Add("average", "Write the means of several checkpoints of one model",
               "  weir ckpt average runs/model-800 runs/model-900 runs/model-1000 --out runs/mean");
  average.Arguments("CHECKPOINT", &options->in, kCheckpointHelp).Required();
  average.Value("--out,-o", &options->rewrite.out, "the prefix, file or folder to write")
      .Word("TO")
      .Required();
  average.Flag("--strict", &options->strict,
               "integers, booleans and texts must agree; otherwise they are the last checkpoint's");
  AddForceOption(average, &options->rewrite);
  AddRewriteOptions(average, &options->rewrite);
  average.Do([options](Console& console) { return Finish(console, Average(*options, console)); });
}

}  // namespace weir::tools
