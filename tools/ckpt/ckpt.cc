#include <re2/re2.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/io/checkpoint_state.h"
#include "weir/core/io/file.h"
#include "weir/core/io/npy.h"
#include "weir/session/model/object_names.h"
#include "weir/session/model/saved_model.h"
#include "weir/tools/ckpt/ckpt.h"
#include "weir/tools/lib/text_table.h"

// weir ckpt: ls, show and verify inspect checkpoints without a graph; convert and repair write new
// ones.
namespace weir::tools {

namespace {

// Returns the newest checkpoint that a state file names.
absl::StatusOr<std::string> NewestCheckpoint(const std::string& folder, const std::string& state,
                                             std::ostream* notes) {
  WEIR_ASSIGN_OR_RETURN(const std::string found, LatestCheckpoint(folder, state));
  WEIR_ASSIGN_OR_RETURN(const CheckpointState read, ReadCheckpointState(folder, state));
  if (notes != nullptr && found != read.model_checkpoint_path) {
    *notes << "weir: " << JoinPath(folder, state) << " names " << read.model_checkpoint_path
           << ", which is not there; using " << found << "\n";
  }
  return found;
}

// Returns the newest checkpoint in a folder, or the checkpoint of a SavedModel.
absl::StatusOr<std::string> CheckpointInFolder(const std::string& folder, std::ostream* notes) {
  for (const std::string& parent : {folder, FindSavedModel(folder)}) {
    for (const char* const prefix : {"variables/variables", "variables"}) {
      const std::string variables = JoinPath(parent, prefix);
      if (Files().Exists(variables + ".index")) return variables;
    }
  }
  return NewestCheckpoint(folder, "checkpoint", notes);
}

// Returns "m-7" for "m-7.index", "m-7.meta" and "m-7.data-00000-of-00001" if checkpoint m-7 exists.
std::string PrefixOfFile(const std::string& path) {
  static const RE2* const ending = new RE2("(.+)\\.(index|meta|data-\\d{5,}-of-\\d{5,})");
  std::string prefix;
  if (!RE2::FullMatch(path, *ending, &prefix)) return path;
  return !Files().Exists(path + ".index") && CheckpointExists(prefix) ? prefix : path;
}

}  // namespace

absl::StatusOr<std::string> CheckpointPrefix(const std::string& path, std::ostream* notes) {
  if (path.empty()) return InvalidArgument("the checkpoint path is empty");
  if (Files().Exists(path + ".index")) return path;
  const std::string model = FindSavedModel(path);
  if (Files().IsDirectory(path)) return CheckpointInFolder(path, notes);
  if (model != path) return CheckpointInFolder(model, notes);
  const std::string name(BaseName(path));
  if (name == "checkpoint" && ReadCheckpointState(DirectoryOf(path), name).ok())
    return NewestCheckpoint(DirectoryOf(path), name, notes);
  return PrefixOfFile(path);
}

absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenCheckpoint(const std::string& path,
                                                                 std::ostream* notes) {
  WEIR_ASSIGN_OR_RETURN(const std::string prefix, CheckpointPrefix(path, notes));
  return CheckpointReader::Open(prefix);
}

void Progress::Add(const Tensor& tensor) {
  ++done_;
  bytes_ += static_cast<int64_t>(tensor.num_bytes());
  if (!console_.color) return;
  console_.out << "\r\x1b[K" << done_ << " of " << num_tensors_ << " tensors, "
               << HumanBytes(bytes_) << std::flush;
}

Progress::~Progress() {
  if (console_.color && done_ > 0) console_.out << "\r\x1b[K" << std::flush;
}

namespace {

using Json = nlohmann::ordered_json;

struct CkptOptions {
  std::string prefix, tensor, slice, npy;
  bool json = false;
};

// ---- ls

std::vector<std::string> SliceTexts(const CheckpointTensor& tensor) {
  std::vector<std::string> out;
  for (const TensorSlice& slice : tensor.slices) out.push_back(slice.ToString());
  return out;
}

absl::Status Ls(const CkptOptions& options, Console& console) {
  WEIR_ASSIGN_OR_RETURN(auto reader, OpenCheckpoint(options.prefix, &console.err));
  WEIR_ASSIGN_OR_RETURN(const std::vector<CheckpointTensor> tensors, reader->List());
  WEIR_ASSIGN_OR_RETURN(auto full_names, FullNamesOf(*reader));  // of a checkpoint of objects
  TextTable table(
      {"tensor", "dtype", "shape", ">bytes", "?>parts", full_names.empty() ? "" : "full name"});
  Json json = Json::array();
  int64_t total = 0, elements = 0;
  for (const CheckpointTensor& tensor : tensors) {
    const int64_t count = tensor.shape.num_elements();
    const int64_t bytes =
        IsPlain(tensor.dtype) ? count * static_cast<int64_t>(ElementSize(tensor.dtype)) : 0;
    total += bytes;
    elements += count;
    table.Row({tensor.name, DataTypeName(tensor.dtype), tensor.shape.ToString(),
               IsPlain(tensor.dtype) ? WithCommas(bytes) : "",
               tensor.slices.empty() ? "" : absl::StrCat(tensor.slices.size()),
               full_names[tensor.name]});
    json.push_back(
        {{"name", tensor.name},
         {"dtype", DataTypeName(tensor.dtype)},
         {"shape", std::vector<int64_t>(tensor.shape.dims().begin(), tensor.shape.dims().end())},
         {"slices", SliceTexts(tensor)}});
    if (!full_names[tensor.name].empty()) json.back()["full_name"] = full_names[tensor.name];
  }
  if (options.json) {
    console.out << json.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
    return absl::OkStatus();
  }
  table.Print(console);
  console.out << tensors.size() << " tensors, " << WithCommas(elements) << " elements, "
              << HumanBytes(total) << "\n";
  return absl::OkStatus();
}

// ---- show

absl::StatusOr<Tensor> ReadTensor(const CkptOptions& options, Console& console) {
  WEIR_ASSIGN_OR_RETURN(auto reader, OpenCheckpoint(options.prefix, &console.err));
  if (options.slice.empty()) return reader->Read(options.tensor);
  WEIR_ASSIGN_OR_RETURN(const TensorSlice slice, TensorSlice::Parse(options.slice));
  return reader->ReadSlice(options.tensor, slice);
}

absl::Status Show(const CkptOptions& options, Console& console) {
  WEIR_ASSIGN_OR_RETURN(const Tensor tensor, ReadTensor(options, console));
  if (!options.npy.empty()) {
    WEIR_RETURN_IF_ERROR(WriteNpy(options.npy, tensor));
    console.out << tensor.Description() << " written to " << options.npy << "\n";
    return absl::OkStatus();
  }
  console.out << console.Paint(Style::kBold, options.tensor) << " "
              << console.Paint(Style::kDim, tensor.Description()) << "\n"
              << tensor.ToString() << "\n";
  return absl::OkStatus();
}

// ---- verify

Json ProblemToJson(const BundleProblem& problem) {
  return {{"file", problem.file},
          {"offset", problem.offset},
          {"size", problem.size},
          {"tensor", problem.name},
          {"message", problem.message}};
}

std::string ProblemToText(const BundleProblem& problem) {
  std::string where = problem.file;
  if (problem.size > 0) {
    absl::StrAppend(&where, " bytes [", problem.offset, ", ", problem.offset + problem.size, ")");
  }
  if (!problem.name.empty()) absl::StrAppend(&where, " tensor '", problem.name, "'");
  return absl::StrCat(where, ": ", problem.message);
}

absl::StatusOr<bool> Verify(const CkptOptions& options, Console& console) {
  WEIR_ASSIGN_OR_RETURN(const std::string prefix, CheckpointPrefix(options.prefix, &console.err));
  WEIR_ASSIGN_OR_RETURN(const BundleReport report, VerifyBundle(prefix));
  const bool sound = report.problems.empty();
  if (options.json) {
    Json problems = Json::array();
    for (const BundleProblem& problem : report.problems) problems.push_back(ProblemToJson(problem));
    const Json out = {{"checkpoint", prefix},
                      {"sound", sound},
                      {"tensors", report.tensors},
                      {"index_bytes", report.index_bytes},
                      {"data_bytes", report.data_bytes},
                      {"problems", std::move(problems)}};
    console.out << out.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
    return sound;
  }
  for (const BundleProblem& problem : report.problems) {
    console.out << console.Paint(Style::kBad, "DAMAGED ") << ProblemToText(problem) << "\n";
  }
  console.out << console.Paint(sound ? Style::kGood : Style::kBad, sound ? "OK" : "DAMAGED") << " "
              << prefix << ": " << report.tensors << " tensors, ";
  if (report.index_bytes > 0)
    console.out << WithCommas(report.index_bytes) << " bytes of index and ";
  console.out << WithCommas(report.data_bytes)
              << (report.index_bytes > 0 ? " of data are sound" : " bytes are sound");
  if (!sound) console.out << ", " << report.problems.size() << " problems";
  console.out << "\n";
  return sound;
}

int VerifyStatus(const CkptOptions& options, Console& console) {
  const absl::StatusOr<bool> sound = Verify(options, console);
  if (!sound.ok()) return Fail(console, sound.status());
  return *sound ? kOk : kFailure;
}

template <absl::Status (*kCommand)(const CkptOptions&, Console&)>
int StatusOf(const CkptOptions& options, Console& console) {
  return Finish(console, kCommand(options, console));
}

}  // namespace

void AddCkptCommand(Command& weir) {
  auto options = std::make_shared<CkptOptions>();
  Command ckpt = weir.Add("ckpt", "List, show, verify, convert and repair checkpoints",
                          "  weir ckpt verify runs/digits/model-500");
  const auto add = [&](const char* name, const char* description, const char* example,
                       int (*run)(const CkptOptions&, Console&)) {
    Command part = ckpt.Add(name, description, example);
    part.Argument(
            "CHECKPOINT", &options->prefix,
            "a prefix or one of the checkpoint's files; or a folder: its newest checkpoint, or a "
            "SavedModel's")
        .Required();
    part.Do([options, run](Console& console) { return run(*options, console); });
    return part;
  };

  Command ls = add("ls", "List the tensors", "  weir ckpt ls runs/digits", StatusOf<Ls>);
  ls.Flag("--json", &options->json, "print JSON");

  Command show =
      add("show", "Print a tensor or a slice of it",
          "  weir ckpt show runs/digits/model-500 hidden/w --slice 0,3:-", StatusOf<Show>);
  show.Argument("TENSOR", &options->tensor, "its name, as printed by weir ckpt ls").Required();
  show.Value("--slice", &options->slice,
             "start,length for each dimension, separated by ':'; '-' is a whole dimension")
      .Word("SLICE");
  show.Value("--npy", &options->npy, "write the tensor to this file, for numpy.load").Word("FILE");

  Command verify = add(
      "verify", "Check every byte of index and data and report damage (exit status 1 if damaged)",
      "  weir ckpt verify runs/digits/model-500", VerifyStatus);
  verify.Flag("--json", &options->json, "print JSON");
  AddConvertCommand(ckpt);
  AddRepairCommand(ckpt);
}

}  // namespace weir::tools
