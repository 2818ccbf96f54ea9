#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "weir/core/file.h"
#include "weir/tools/chrome_trace.h"
#include "weir/tools/command.h"
#include "weir/tools/model.h"
#include "weir/tools/value_file.h"

// weir run: runs a step of a graph from a file.
namespace weir::tools {

namespace {

using Clock = std::chrono::steady_clock;

struct RunCommandOptions {
  std::string file, checkpoint, signature, trace;
  std::vector<std::string> feeds, fetches, targets, inits;
  ModelOptions model;
  int64_t repeat = 1;
};

// "x:0=x.npy" in two; the second part is empty if there is no '='.
std::pair<std::string, std::string> SplitAtEquals(const std::string& text) {
  return absl::StrSplit(text, absl::MaxSplits('=', 1));
}

// What to run, with names looked up.
struct Request {
  Outputs feeds, fetches;
  Tensors values;  // of the feeds
  std::vector<std::string> labels,
      files;  // of the fetches; a file is empty if the value is to be printed
  std::vector<Operation> targets;
};

class RequestBuilder {
 public:
  RequestBuilder(const Model& model, const RunCommandOptions& options)
      : model_(model), options_(options) {}

  absl::StatusOr<Request> Build() {
    if (!options_.signature.empty()) WEIR_RETURN_IF_ERROR(FindSignature());
    for (const std::string& feed : options_.feeds) WEIR_RETURN_IF_ERROR(AddFeed(feed));
    for (const std::string& fetch : options_.fetches) WEIR_RETURN_IF_ERROR(AddFetch(fetch));
    if (options_.fetches.empty() && signature_ != nullptr) {
      for (const auto& [name, tensor] : signature_->outputs) WEIR_RETURN_IF_ERROR(AddFetch(name));
    }
    for (const std::string& target : options_.targets) {
      WEIR_ASSIGN_OR_RETURN(Operation op, FindOperation(target));
      request_.targets.push_back(op);
    }
    if (request_.fetches.empty() && request_.targets.empty()) return NothingToRun();
    return std::move(request_);
  }

  absl::StatusOr<Operation> FindOperation(const std::string& name) const {
    Node* node = model_.graph->FindNode(name);
    if (node == nullptr) return NotFound("The graph has no node '", name, "'");
    return Operation(node);
  }

 private:
  absl::Status FindSignature() {
    const auto found = model_.meta.signatures.find(options_.signature);
    if (found == model_.meta.signatures.end()) {
      return NotFound("No signature '", options_.signature, "'; there are: ", Signatures());
    }
    signature_ = &found->second;
    return absl::OkStatus();
  }

  std::string Signatures() const {
    std::vector<std::string> texts;
    for (const auto& [name, signature] : model_.meta.signatures) {
      const auto keys =
          absl::PairFormatter([](std::string* out, const std::string& key) { out->append(key); },
                              "", [](std::string*, const std::string&) {});
      texts.push_back(absl::StrCat(name, "(", absl::StrJoin(signature.inputs, ", ", keys), ") -> ",
                                   absl::StrJoin(signature.outputs, ", ", keys)));
    }
    return texts.empty() ? "none" : absl::StrJoin(texts, "; ");
  }

  absl::Status NothingToRun() const {
    return InvalidArgument("Nothing to run: give --fetch or --target",
                           model_.meta.signatures.empty() ? "" : ", or --signature with one of: ",
                           model_.meta.signatures.empty() ? "" : Signatures());
  }

  absl::StatusOr<Output> FindTensor(const std::string& name, bool is_input) const {
    if (signature_ == nullptr) return model_.graph->FindOutput(name);
    const auto& names = is_input ? signature_->inputs : signature_->outputs;
    const auto found = names.find(name);
    return model_.graph->FindOutput(found == names.end() ? name : found->second);
  }

  absl::Status AddFeed(const std::string& text) {
    const auto [name, value] = SplitAtEquals(text);
    if (value.empty()) return InvalidArgument("--feed ", text, ": write it as x:0=x.npy");
    WEIR_ASSIGN_OR_RETURN(const Output tensor, FindTensor(name, true));
    WEIR_ASSIGN_OR_RETURN(Tensor parsed, ParseValue(value, tensor.dtype()));
    request_.feeds.push_back(tensor);
    request_.values.push_back(std::move(parsed));
    return absl::OkStatus();
  }

  absl::Status AddFetch(const std::string& text) {
    const auto [name, file] = SplitAtEquals(text);
    if (!file.empty() && !absl::EndsWith(file, ".npy") && !absl::EndsWith(file, ".json")) {
      return InvalidArgument("--fetch ", text, ": the file is a .npy, or a .json for strings");
    }
    WEIR_ASSIGN_OR_RETURN(const Output tensor, FindTensor(name, false));
    request_.fetches.push_back(tensor);
    request_.labels.push_back(name);
    request_.files.push_back(file);
    return absl::OkStatus();
  }

  const Model& model_;
  const RunCommandOptions& options_;
  const Signature* signature_ = nullptr;
  Request request_;
};

struct Timing {
  double total_s = 0, fastest_s = 0;
};

// Runs the step as often as asked; traces the last time.
absl::StatusOr<Timing> RunSteps(const Step& step, const Request& request, int64_t repeat,
                                std::vector<NodeTrace>* trace, Tensors* fetched) {
  Timing timing;
  for (int64_t i = 0; i < repeat; ++i) {
    RunOptions options;
    if (i + 1 == repeat) options.trace = trace;
    const Clock::time_point start = Clock::now();
    WEIR_RETURN_IF_ERROR(step.Run(request.values, fetched, options));
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    timing.total_s += seconds;
    timing.fastest_s = i == 0 ? seconds : std::min(timing.fastest_s, seconds);
  }
  return timing;
}

std::string Duration(double seconds) {
  return seconds < 1e-3 ? absl::StrFormat("%.3g us", seconds * 1e6)
                        : absl::StrFormat("%.3g ms", seconds * 1e3);
}

absl::Status PrintResults(const Request& request, const Tensors& fetched, Console& console) {
  for (size_t i = 0; i < fetched.size(); ++i) {
    const Tensor& value = fetched[i];
    if (!request.files[i].empty()) {
      WEIR_RETURN_IF_ERROR(WriteValueFile(request.files[i], value));
      console.out << request.labels[i] << ": " << value.Description() << " written to "
                  << request.files[i] << "\n";
    } else {
      console.out << console.Paint(Style::kBold, request.labels[i]) << " "
                  << console.Paint(Style::kDim, value.Description()) << "\n"
                  << value.ToString() << "\n";
    }
  }
  return absl::OkStatus();
}

absl::Status Run(const RunCommandOptions& options, Console& console) {
  WEIR_ASSIGN_OR_RETURN(const GraphFileKind kind, GraphFileKindOf(options.file));
  WEIR_ASSIGN_OR_RETURN(Model model, LoadModel(kind, options.file, options.model));
  RequestBuilder builder(model, options);
  WEIR_ASSIGN_OR_RETURN(const Request request, builder.Build());
  for (const std::string& init : options.inits) {
    WEIR_ASSIGN_OR_RETURN(const Operation op, builder.FindOperation(init));
    WEIR_RETURN_IF_ERROR(model.session->Run(op));
  }
  if (!options.checkpoint.empty()) WEIR_RETURN_IF_ERROR(RestoreModel(model, options.checkpoint));

  WEIR_ASSIGN_OR_RETURN(const Step step,
                        model.session->Prepare(request.feeds, request.fetches, request.targets));
  std::vector<NodeTrace> trace;
  Tensors fetched;
  WEIR_ASSIGN_OR_RETURN(
      const Timing timing,
      RunSteps(step, request, options.repeat, options.trace.empty() ? nullptr : &trace, &fetched));
  WEIR_RETURN_IF_ERROR(PrintResults(request, fetched, console));
  if (fetched.empty() && options.repeat == 1) {
    console.out << "Ran " << absl::StrJoin(options.targets, ", ") << " in "
                << Duration(timing.total_s) << "\n";
  }
  if (options.repeat > 1) {
    console.out << absl::StrFormat("%d steps in %.3g s: %.4g steps/s, %s a step, the fastest %s\n",
                                   options.repeat, timing.total_s, options.repeat / timing.total_s,
                                   Duration(timing.total_s / options.repeat),
                                   Duration(timing.fastest_s));
  }
  if (!options.trace.empty()) {
    WEIR_RETURN_IF_ERROR(WriteFileAtomically(options.trace, ChromeTrace(trace, *model.graph)));
    console.out << "Trace of " << trace.size() << " nodes written to " << options.trace
                << ": open it in ui.perfetto.dev or chrome://tracing\n";
  }
  return absl::OkStatus();
}

}  // namespace

void AddRunCommand(Command& weir) {
  auto options = std::make_shared<RunCommandOptions>();
  Command run = weir.Add(
      "run", "Run a graph: feed tensors, fetch tensors, time and trace steps",
      "  weir run model.meta --checkpoint runs/model-500 --feed x:0=x.npy --fetch y:0 --fetch "
      "p:0=p.npy\n"
      "  weir run saved_model_dir --signature serving_default --feed 'images=[[0, 1, 2]]'\n"
      "  weir run graph.pb --init init --target train --repeat 1000 --trace trace.json");
  run.Argument("GRAPH", &options->file,
               "a GraphDef or MetaGraphDef (.pb, .meta; .pbtxt as text), or a SavedModel's folder")
      .Required();
  run.Value("--checkpoint", &options->checkpoint, "restore the variables from this checkpoint")
      .Word("PREFIX");
  run.Repeated("--feed", &options->feeds,
               "a value for a tensor: FILE.npy, FILE.json with strings, or JSON; may be repeated")
      .Word("TENSOR=VALUE");
  run.Repeated("--fetch", &options->fetches,
               "a tensor to print, or to write to FILE.npy; may be repeated")
      .Word("TENSOR[=FILE]");
  run.Repeated("--target", &options->targets, "a node to run for its effect, in the same step")
      .Word("NODE");
  run.Repeated("--init", &options->inits, "a node to run once, before everything else")
      .Word("NODE");
  run.Value("--repeat", &options->repeat, "run the step so often, and time it").AtLeast(1);
  run.Value("--trace", &options->trace, "write a trace of the last step to this file").Word("FILE");
  run.Value("--signature", &options->signature,
            "feeds and fetches are named as in this signature; all outputs are fetched by default")
      .Word("NAME");
  run.List("--tags", &options->model.tags, "which meta graph of a SavedModel").Word("TAG,...");
  run.Value("--device", &options->model.device, "for nodes that ask for none, such as /gpu:0")
      .Word("DEVICE");
  run.Value("--threads", &options->model.session.num_threads, "default: one a processor")
      .AtLeast(0);
  run.Flag("--log-placement", &options->model.session.log_device_placement,
           "print where each node runs");
  run.Do([options](Console& console) {
    const absl::Status status = Run(*options, console);
    return status.ok() ? kOk : Fail(console, status);
  });
}

}  // namespace weir::tools
