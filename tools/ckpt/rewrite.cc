#include "weir/tools/ckpt/rewrite.h"

#include <re2/re2.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/escaping.h"
#include "weir/core/io/checkpoint_state.h"
#include "weir/core/io/file.h"
#include "weir/tools/ckpt/convert_elements.h"
#include "weir/tools/ckpt/keras_file.h"
#include "weir/tools/ckpt/npy_folder.h"
#include "weir/tools/ckpt/resume.h"
#include "weir/tools/lib/text_table.h"

namespace weir::tools {

namespace {

using Json = nlohmann::ordered_json;

absl::StatusOr<std::unique_ptr<RE2>> Pattern(const std::string& text) {
  if (text.empty()) return std::unique_ptr<RE2>();
  auto pattern = std::make_unique<RE2>(text, RE2::Quiet);
  if (!pattern->ok())
    return InvalidArgument("invalid regular expression '", text, "': ", pattern->error());
  return pattern;
}

// Refuses a target that exists. With --force it is replaced, but a folder only if it has nothing
// but array files.
absl::Status CheckTarget(const RewriteOptions& options, const CheckpointFormat& format) {
  if (options.out.empty()) return InvalidArgument("the output path is empty");
  const std::string& out = options.out;
  const bool exists = format.name == "v2" ? Files().Exists(out + ".index") : Files().Exists(out);
  if (!exists) return absl::OkStatus();
  const bool is_folder = Files().IsDirectory(out);
  if (!options.force) {
    return AlreadyExists(out, format.name == "v2" ? ".index" : "",
                         " exists; choose another output path, or replace it with --force");
  }
  if (format.name == "npy" ? is_folder && IsNpyFolder(out) : !is_folder) return absl::OkStatus();
  return FailedPrecondition(out, is_folder && format.name == "npy"
                                     ? " has other files than arrays; it is not replaced"
                                     : " is not replaced, because it is of another kind");
}

// Converts a type that the format lacks to the next wider one that it has.
absl::Status CheckType(const RewriteOptions& options, const CheckpointFormat& format,
                       OutputTensor* tensor) {
  DataType wider = tensor->dtype;
  while (wider != DT_INVALID && !format.holds(wider)) wider = WiderType(wider);
  if (wider == tensor->dtype) return absl::OkStatus();
  const absl::string_view fix =
      wider != DT_INVALID ? "convert it with --convert-types" : "exclude the tensor with --drop";
  if (wider == DT_INVALID || !options.convert_types) {
    return InvalidArgument("tensor '", absl::Utf8SafeCHexEscape(tensor->name), "': format ",
                           format.name, " has no type ", DataTypeName(tensor->dtype), "; ", fix,
                           wider != DT_INVALID ? absl::StrCat(", to ", DataTypeName(wider)) : "");
  }
  tensor->dtype = wider;
  return absl::OkStatus();
}

// Sets the model that a .keras file is like.
absl::Status ChooseModel(const RewriteOptions& options, const CheckpointFormat& format,
                         const std::vector<std::string>& inputs, Output* output) {
  if (format.name != "keras") {
    if (options.like.empty()) return absl::OkStatus();
    return InvalidArgument("--like is for format keras, not ", format.name);
  }
  output->like = options.like;
  for (const std::string& input : inputs) {
    const absl::StatusOr<CheckpointLocation> location = LocateCheckpoint(input);
    if (output->like.empty() && location.ok() && location->format == &format) output->like = input;
  }
  if (!output->like.empty()) return CheckNotOverwriting(options.out, output->like);
  return InvalidArgument(
      "a .keras file has the configuration of a model, which these weights lack; pass a model "
      "whose weights they replace with --like MODEL.keras, or write a .weights.h5 file");
}

std::vector<int64_t> DimsOf(const Shape& shape) {
  return {shape.dims().begin(), shape.dims().end()};
}

void PrintJson(const RewriteOptions& options, const CheckpointFormat& format, const Output& output,
               Console& console) {
  Json tensors = Json::array();
  for (const OutputTensor& tensor : output.tensors) {
    Json from = Json::array();
    for (const TensorSource& source : tensor.sources) from.push_back(source.name);
    tensors.push_back({{"name", tensor.name},
                       {"dtype", DataTypeName(tensor.dtype)},
                       {"shape", DimsOf(tensor.shape)},
                       {"from", std::move(from)}});
  }
  const Json json = {{"checkpoint", options.out},
                     {"format", std::string(format.name)},
                     {"dry_run", options.dry_run},
                     {"bytes", BytesOf(output)},
                     {"tensors", std::move(tensors)}};
  console.out << json.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
}

void PrintDryRun(const Output& output, Console& console) {
  TextTable table({"tensor", "dtype", "shape", "from"});
  for (const OutputTensor& tensor : output.tensors) {
    const TensorSource& source = tensor.sources[0];
    std::string from = tensor.sources.size() > 1
                           ? absl::StrCat("the mean of ", tensor.sources.size())
                       : source.name != tensor.name ? source.name
                                                    : "";
    if (source.dtype != tensor.dtype)
      absl::StrAppend(&from, from.empty() ? "" : ", ", DataTypeName(source.dtype));
    table.Row({tensor.name, DataTypeName(tensor.dtype), tensor.shape.ToString(), from});
  }
  table.Print(console);
}

}  // namespace

void AddForceOption(Command& command, RewriteOptions* options) {
  command.Flag("--force", &options->force, "replace an output that exists");
}

void AddRewriteOptions(Command& command, RewriteOptions* options) {
  static const auto* const kFormatHelp = new std::string(
      absl::StrCat("one of ", FormatNames(), "; default: by the ending of the output, or v2"));
  command.Value("--format", &options->format, kFormatHelp->c_str()).Word("FORMAT");
  command
      .Value("--like", &options->like,
             "format keras: the model whose configuration is kept and whose weights are replaced; "
             "default: the input")
      .Word("MODEL.keras");
  command.Flag("--convert-types", &options->convert_types,
               "convert types that the format lacks to the next wider type that it has");
  command.Flag("--dry-run", &options->dry_run, "print what would be written; write nothing");
  command.Flag("--json", &options->json, "print JSON");
}

void AddFilterOptions(Command& command, NameFilter* filter) {
  command.Value("--keep", &filter->keep, "only tensors whose names match").Word("REGEX");
  command.Value("--drop", &filter->drop, "exclude tensors whose names match").Word("REGEX");
}

absl::StatusOr<std::vector<CheckpointTensor>> Choose(const NameFilter& filter,
                                                     std::vector<CheckpointTensor> tensors) {
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<RE2> keep, Pattern(filter.keep));
  WEIR_ASSIGN_OR_RETURN(const std::unique_ptr<RE2> drop, Pattern(filter.drop));
  const size_t before = tensors.size();
  std::erase_if(tensors, [&](const CheckpointTensor& tensor) {
    return (keep != nullptr && !RE2::PartialMatch(tensor.name, *keep)) ||
           (drop != nullptr && RE2::PartialMatch(tensor.name, *drop));
  });
  if (!tensors.empty()) return tensors;
  return before == 0 ? NotFound("the checkpoint has no tensors")
                     : NotFound("--keep and --drop exclude all ", before, " tensors");
}

absl::StatusOr<DataType> FloatType(const std::string& text) {
  if (text.empty()) return DT_INVALID;
  const DataType dtype = DataTypeFromName(text);
  if (IsFloating(dtype) && !IsRef(dtype)) return dtype;
  return InvalidArgument("type ", text, ": expected float, double, half or bfloat16");
}

absl::Status AddOutput(OutputTensor tensor, OutputTensors* tensors) {
  const auto found = tensors->find(tensor.name);
  if (found != tensors->end()) {
    return InvalidArgument("tensors '", found->second.sources[0].name, "' and '",
                           tensor.sources[0].name, "' would both be named '", tensor.name,
                           "'; change --rename or --drop one of them");
  }
  const std::string name = tensor.name;
  tensors->emplace(name, std::move(tensor));
  return absl::OkStatus();
}

Output MakeOutput(OutputTensors tensors) {
  Output output;
  for (auto& [name, tensor] : tensors) output.tensors.push_back(std::move(tensor));
  return output;
}

absl::StatusOr<const CheckpointFormat*> CheckOutput(const RewriteOptions& options,
                                                    const std::vector<std::string>& inputs,
                                                    Output* output) {
  const CheckpointFormat* const format =
      options.format.empty() ? &FormatOfPath(options.out) : FindFormat(options.format);
  if (format == nullptr) {
    return InvalidArgument("unknown format '", options.format, "'; valid formats: ", FormatNames());
  }
  if (output->quantize && format->name != "gguf")
    return InvalidArgument("--quantize is for format gguf, not ", format->name);
  for (const std::string& input : inputs)
    WEIR_RETURN_IF_ERROR(CheckNotOverwriting(options.out, input));
  const absl::Status target = CheckTarget(options, *format);
  if (absl::IsAlreadyExists(target) && options.resume && !options.dry_run)
    RemoveJoinedParts(*format, options.out);
  WEIR_RETURN_IF_ERROR(target);
  for (OutputTensor& tensor : output->tensors) {
    WEIR_RETURN_IF_ERROR(format->check(tensor));
    WEIR_RETURN_IF_ERROR(CheckType(options, *format, &tensor));
  }
  WEIR_RETURN_IF_ERROR(ChooseModel(options, *format, inputs, output));
  if (!output->like.empty()) WEIR_RETURN_IF_ERROR(CheckKerasModel(*output));
  return format;
}

absl::Status Rewrite(const RewriteOptions& options, const std::vector<std::string>& inputs,
                     Output output, Console& console) {
  WEIR_ASSIGN_OR_RETURN(const CheckpointFormat* const format,
                        CheckOutput(options, inputs, &output));
  if (!options.dry_run) {
    const bool is_resumable = options.resume && CanResume(*format);
    if (options.resume && !is_resumable) {
      console.err << "weir: a file of format " << format->name
                  << " is written as a whole: after an interruption the conversion starts over\n";
    }
    ProgressBar progress(console, "Writing", "tensors", static_cast<double>(output.tensors.size()));
    WEIR_RETURN_IF_ERROR(is_resumable ? WriteResumable(*format, options.out, output, inputs.back(),
                                                       progress, console.err)
                                      : format->write(options.out, output, progress));
  }
  if (options.json) {
    PrintJson(options, *format, output, console);
    return absl::OkStatus();
  }
  if (options.dry_run) PrintDryRun(output, console);
  console.out << options.out << ": " << output.tensors.size() << " tensors, "
              << HumanBytes(BytesOf(output)) << (options.dry_run ? "; nothing was written" : "")
              << "\n";
  return absl::OkStatus();
}

}  // namespace weir::tools
