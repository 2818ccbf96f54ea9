#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/tools/ckpt/ckpt.h"
#include "weir/tools/ckpt/rewrite.h"
#include "weir/tools/lib/rename_rules.h"

// weir ckpt convert: converts a checkpoint to another format, and renames tensors or changes their
// types on the way.
namespace weir::tools {

namespace {

struct ConvertOptions {
  std::string in, dtype;
  NameFilter filter;
  std::vector<std::string> renames;
  bool allow_overflow = false, quantize = false;
  RewriteOptions rewrite;
};

absl::Status Convert(const ConvertOptions& options, Console& console) {
  WEIR_ASSIGN_OR_RETURN(const DataType dtype, FloatType(options.dtype));
  WEIR_ASSIGN_OR_RETURN(const RenameRules renames, RenameRules::Parse(options.renames));
  WEIR_ASSIGN_OR_RETURN(OpenedCheckpoint opened, OpenCheckpoint(options.in, &console.err));
  WEIR_ASSIGN_OR_RETURN(std::vector<CheckpointTensor> tensors, opened.reader->List());
  WEIR_ASSIGN_OR_RETURN(tensors, Choose(options.filter, std::move(tensors)));
  OutputTensors outputs;
  for (const CheckpointTensor& tensor : tensors) {
    OutputTensor output = CopyOf(*opened.reader, tensor);
    output.name = renames.Apply(tensor.name);
    if (dtype != DT_INVALID && IsFloating(tensor.dtype)) output.dtype = dtype;
    output.allow_overflow = options.allow_overflow;
    WEIR_RETURN_IF_ERROR(AddOutput(std::move(output), &outputs));
  }
  Output output = MakeOutput(std::move(outputs));
  output.metadata = std::move(opened.metadata);
  output.quantize = options.quantize;
  return Rewrite(options.rewrite, {options.in, opened.path}, std::move(output), console);
}

}  // namespace

void AddConvertCommand(Command& ckpt) {
  auto options = std::make_shared<ConvertOptions>();
  Command convert = ckpt.Add(
      "convert", "Convert a checkpoint or a folder of .npy files to another format",
      "  weir ckpt convert old/model.ckpt-500 new/model-500          # V1 to V2, shards to one "
      "file\n"
      "  weir ckpt convert runs/digits weights --format npy          # for numpy.load\n"
      "  weir ckpt convert weights runs/model --rename '^encoder/=bert/' --drop 'Adam|beta'\n"
      "  weir ckpt convert runs/model small/model --dtype bfloat16\n"
      "  weir ckpt convert runs/model new.keras --like old.keras     # the weights of a model");
  convert.Argument("FROM", &options->in, kCheckpointHelp).Required();
  convert.Argument("TO", &options->rewrite.out, "the prefix, file or folder to write").Required();
  AddFilterOptions(convert, &options->filter);
  convert
      .Repeated("--rename", &options->renames,
                "replace each match of REGEX in a name with TEXT; \\1 is the first group; "
                "repeatable")
      .Word("REGEX=TEXT");
  convert
      .Value("--dtype", &options->dtype,
             "convert floating-point tensors to this type: half, bfloat16, ...")
      .Word("TYPE");
  convert.Flag("--allow-overflow", &options->allow_overflow,
               "values that are too large for the type become infinite");
  convert.Flag(
      "--quantize", &options->quantize,
      "GGUF: write floating-point matrices as Q8_0 where rows have a multiple of 32 elements");
  convert.Flag("--resume", &options->rewrite.resume,
               "write in parts, and go on from those that an interrupted run has written (formats "
               "v2 and npy; the others start over)");
  AddForceOption(convert, &options->rewrite);
  AddRewriteOptions(convert, &options->rewrite);
  convert.Do([options](Console& console) { return Finish(console, Convert(*options, console)); });
}

}  // namespace weir::tools
