#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "weir/core/io/file.h"
#include "weir/tools/ckpt/checkpoint_path.h"
#include "weir/tools/lib/command.h"
#include "weir/tools/lib/text_table.h"
#include "weir/tools/model/model_summary.h"
#include "weir/tools/run/run.h"

// weir model show|run: what a model is, and calls of its signatures and functions.
namespace weir::tools {

namespace {

using Json = nlohmann::ordered_json;

// ---- show

struct ShowOptions {
  std::string model;
  std::vector<std::string> tags;
  bool all = false, json = false;
};

// So many lines are shown of a long list.
constexpr size_t kMaxLines = 20;

std::string Text(const Json& value) { return value.is_string() ? value.get<std::string>() : ""; }

// Returns "float[?,2]"; "float" for an unknown rank.
std::string TypeText(const Json& value) {
  std::string text = Text(value["dtype"]);
  if (value["shape"].is_null()) return text;
  return absl::StrCat(text, Shape(value["shape"].get<std::vector<int64_t>>()).ToString());
}

std::string JoinTypes(const Json& values) {
  return absl::StrJoin(values, ", ", [](std::string* out, const Json& value) {
    absl::StrAppend(out, Text(value["name"]), ": ", TypeText(value));
    if (value.contains("default")) absl::StrAppend(out, " = ", Text(value["default"]));
  });
}

void PrintTitle(const std::string& title, Console& console) {
  console.out << "\n" << console.Paint(Style::kBold, title) << "\n";
}

void PrintHead(const Json& summary, Console& console) {
  console.out << console.Paint(Style::kBold, Text(summary["kind"])) << " " << Text(summary["file"])
              << "\n";
  std::vector<std::string> parts;
  if (!Text(summary["tensorflow"]).empty())
    parts.push_back("TensorFlow " + Text(summary["tensorflow"]));
  parts.push_back(absl::StrCat("producer ", summary["producer"].dump()));
  if (!summary["tags"].empty())
    parts.push_back(absl::StrCat(
        "tags ", absl::StrJoin(summary["tags"], ",",
                               [](std::string* out, const Json& tag) { out->append(Text(tag)); })));
  parts.push_back(absl::StrCat(summary["nodes"].dump(), " nodes"));
  parts.push_back(absl::StrCat(summary["library_functions"].dump(), " functions in its library"));
  console.out << absl::StrJoin(parts, ", ") << "\n"
              << summary["variables"]["count"] << " variables of "
              << HumanBytes(summary["variables"]["bytes"]);
  const Json& checkpoint = summary["checkpoint"];
  if (!checkpoint.is_null())
    console.out << ", checkpoint " << Text(checkpoint["prefix"]) << " with "
                << checkpoint["tensors"] << " tensors of " << HumanBytes(checkpoint["bytes"]);
  console.out << "\n";
  if (!summary["init_op"].is_null())
    console.out << "init op " << Text(summary["init_op"]) << ", run when the model is loaded\n";
}

void PrintSignatures(const Json& signatures, Console& console) {
  if (signatures.empty()) return;
  PrintTitle("Signatures", console);
  TextTable table({"signature", "", "name", "type", "default", "tensor"});
  for (const Json& signature : signatures) {
    std::string name = Text(signature["name"]);
    for (const char* const side : {"inputs", "outputs"}) {
      for (const Json& one : signature[side]) {
        table.Row({std::exchange(name, ""), side == std::string("inputs") ? "in" : "out",
                   Text(one["name"]), TypeText(one), Text(one.value("default", Json())),
                   Text(one["tensor"])});
      }
    }
    if (!name.empty()) table.Row({name, "", "", "", "", ""});
  }
  table.Print(console);
}

void PrintFunctions(const Json& functions, bool all, Console& console) {
  TextTable table({"function", "inputs", "results"});
  size_t shown = 0;
  for (const Json& function : functions) {
    if (!all && (function["private"] || shown == kMaxLines)) continue;
    ++shown;
    table.Row(
        {Text(function["name"]), JoinTypes(function["inputs"]), JoinTypes(function["results"])});
  }
  if (functions.empty()) return;
  PrintTitle("Functions", console);
  if (shown > 0) table.Print(console);
  if (shown < functions.size())
    console.out << functions.size() - shown << " more functions; --all lists them\n";
}

// Graphs without signatures: what can be fed and fetched.
void PrintEnds(const Json& summary, bool all, Console& console) {
  if (!summary.contains("ends")) return;
  PrintTitle("No signatures; what weir run can feed and fetch", console);
  TextTable table({"", "name", "type"});
  for (const Json& one : summary["placeholders"])
    table.Row({"feed", Text(one["name"]), TypeText(one)});
  size_t shown = 0;
  for (const Json& end : summary["ends"]) {
    if (!all && shown == kMaxLines) break;
    ++shown;
    table.Row({"fetch", Text(end), ""});
  }
  table.Print(console);
  if (shown < summary["ends"].size())
    console.out << summary["ends"].size() - shown << " more nodes; --all lists them\n";
}

void PrintAssets(const Json& assets, Console& console) {
  if (assets.empty()) return;
  PrintTitle("Assets", console);
  TextTable table({"file", ">bytes", "tensor"});
  for (const Json& asset : assets)
    table.Row({Text(asset["file"]),
               asset["bytes"].is_null() ? "not there" : WithCommas(asset["bytes"]),
               Text(asset["tensor"])});
  table.Print(console);
}

void PrintMissingOps(const Json& ops, Console& console) {
  if (ops.empty()) return;
  PrintTitle("Ops that are missing here; steps that need them fail", console);
  TextTable table({">nodes", ">in functions", "op", "missing"});
  for (const Json& op : ops)
    table.Row({op["nodes"].dump(), op["in_functions"].dump(), Text(op["op"]), Text(op["missing"])});
  table.Print(console);
}

absl::Status Show(const ShowOptions& options, Console& console) {
  WEIR_ASSIGN_OR_RETURN(const Json summary, SummarizeModel(options.model, options.tags));
  if (options.json) {
    console.out << summary.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
    return absl::OkStatus();
  }
  PrintHead(summary, console);
  PrintSignatures(summary["signatures"], console);
  PrintFunctions(summary["functions"], options.all, console);
  PrintEnds(summary, options.all, console);
  PrintAssets(summary["assets"], console);
  PrintMissingOps(summary["missing_ops"], console);
  return absl::OkStatus();
}

// ---- run

// The variables of a checkpoint's graph come from that checkpoint, unless another is named.
void RestoreOwnCheckpoint(RequestOptions* request) {
  if (!request->restore.checkpoint.empty()) return;
  const std::string graph = FindGraph(request->file);
  const absl::StatusOr<std::string> prefix = CheckpointPrefix(graph);
  if (prefix.ok() && *prefix + ".meta" == graph) request->restore.checkpoint = *prefix;
}

absl::Status Run(RunCommandOptions options, Console& console) {
  RestoreOwnCheckpoint(&options.request);
  return RunGraph(options, console);
}

void AddModelArgument(Command& command, std::string* model) {
  command
      .Argument("MODEL", model,
                "a SavedModel's folder, saved_model.pb or versions' folder; a checkpoint or its "
                ".meta; a GraphDef (binary, text or gzip); or an ONNX model")
      .Required();
}

void AddRunOf(Command& model) {
  auto options = std::make_shared<RunCommandOptions>();
  RequestOptions* const request = &options->request;
  request->calls_signature = true;
  Command run = model.Add(
      "run", "Call a signature, or a function that has none",
      "  weir model run export/1 --feed 'x=[[1, 2]]'\n"
      "  weir model run export/1 --signature encoder.encode --feed words=words.json --fetch "
      "output_0=codes.npy\n"
      "The signature is serving_default or the only one, unless --signature names another. Inputs "
      "with a default\n"
      "may be left out. weir model show lists signatures, functions and their inputs.");
  AddModelArgument(run, &request->file);
  run.Value("--signature", &request->signature,
            "the signature to call, or the function, by its name in the tree of objects")
      .Word("NAME");
  AddFeedOptions(run, request, "INPUT=VALUE");
  run.Repeated(
         "--fetch", &request->fetches,
         "an output to print, or to write to FILE (.npy, .npz, .csv, .json, .jsonl); repeatable; "
         "default: print all")
      .Word("OUTPUT[=FILE]");
  AddBatchOptions(run, request);
  run.Flag("--init", &request->initializes_tables,
           "run the initializers of tables that the model lists, with its assets fed; a "
           "SavedModel's init op runs without this");
  run.List("--tags", &request->model.tags, "select the meta graph of a SavedModel by its tags")
      .Word("TAG,...");
  AddStrictOption(run, &request->model.strict);
  AddRestoreOptions(run, &request->restore, "needed");
  run.Value("--threads", &request->model.session.num_threads,
            "number of threads; default: one per processor")
      .AtLeast(0);
  run.Do([options](Console& console) { return Finish(console, Run(*options, console)); });
}

}  // namespace

void AddModelCommand(Command& weir) {
  Command model = weir.Add("model", "Describe a model, and call its signatures and functions",
                           "  weir model show export/1");
  auto options = std::make_shared<ShowOptions>();
  Command show =
      model.Add("show", "Print signatures, functions, assets, variables and missing ops of a model",
                "  weir model show export/1\n"
                "  weir model show runs/model-500 --json");
  AddModelArgument(show, &options->model);
  show.List("--tags", &options->tags, "select the meta graph of a SavedModel by its tags")
      .Word("TAG,...");
  show.Flag("--all", &options->all, "list all functions, also those with private names");
  show.Flag("--json", &options->json, "print JSON");
  show.Do([options](Console& console) { return Finish(console, Show(*options, console)); });
  AddRunOf(model);
}

}  // namespace weir::tools
