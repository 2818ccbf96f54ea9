#include "weir/tools/run/request.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "weir/ops/lib/collections.h"
#include "weir/tools/graph/signature.h"

namespace weir::tools {

namespace {

// Splits "x:0=x.npy"; the second part is empty if there is no '='.
std::pair<std::string, std::string> SplitAtEquals(const std::string& text) {
  return absl::StrSplit(text, absl::MaxSplits('=', 1));
}

class RequestBuilder {
 public:
  RequestBuilder(Model& model, const RequestOptions& options, std::ostream& err)
      : model_(model), options_(options), err_(err) {}

  absl::StatusOr<Request> Build() {
    if (!options_.signature.empty() || options_.calls_signature) {
      WEIR_ASSIGN_OR_RETURN(chosen_, ChooseSignature(model_, options_.signature, options_.feeds));
    }
    WEIR_RETURN_IF_ERROR(AddFeeds());
    if (chosen_) WEIR_RETURN_IF_ERROR(AddDefaults());
    for (const std::string& fetch : options_.fetches) WEIR_RETURN_IF_ERROR(AddFetch(fetch));
    if (options_.fetches.empty() && chosen_) {
      for (const auto& [name, tensor] : chosen_->signature.outputs)
        WEIR_RETURN_IF_ERROR(AddFetch(name));
    }
    WEIR_RETURN_IF_ERROR(CheckResultFiles(request_.results));
    for (const std::string& target : options_.targets) {
      WEIR_ASSIGN_OR_RETURN(Operation op, FindOperation(*model_.graph, target));
      request_.targets.push_back(op);
    }
    if (request_.empty() && options_.save.empty()) return NothingToRun();
    return std::move(request_);
  }

 private:
  absl::Status NothingToRun() const {
    std::vector<std::string> texts;
    for (const auto& [name, signature] : model_.meta.signatures)
      texts.push_back(Describe(name, signature, model_));
    return InvalidArgument(
        "nothing to run: pass --fetch or --target",
        texts.empty() ? "" : ", or --signature with one of: ", absl::StrJoin(texts, "; "));
  }

  // Feeds the inputs that have a default and no value. What is called needs all others.
  absl::Status AddDefaults() {
    const Signature& signature = chosen_->signature;
    std::map<std::string, std::string> missing;
    for (const auto& [name, tensor] : signature.inputs) {
      const absl::StatusOr<Output> input = model_.graph->FindOutput(tensor);
      if (!input.ok()) {
        if (!options_.calls_signature) continue;
        return Annotate(input.status(),
                        absl::StrCat("input '", name, "' of signature '", chosen_->name, "'"));
      }
      if (std::find(request_.feeds.begin(), request_.feeds.end(), *input) != request_.feeds.end())
        continue;
      const auto value = signature.defaults.find(name);
      if (value == signature.defaults.end()) {
        missing[name] = tensor;
      } else {
        Feed(*input, FeedSource::Of(value->second));
      }
    }
    if (missing.empty() || !options_.calls_signature) return absl::OkStatus();
    return MissingInputs(*chosen_, missing, model_);
  }

  absl::Status AddFeeds() {
    FeedOptions options{.feeds = options_.feeds,
                        .rounding = options_.round ? Rounding::kAllowed : Rounding::kNever,
                        .by_rows = options_.batch > 0};
    WEIR_ASSIGN_OR_RETURN(options.pixels, ParsePixelRange(options_.pixels));
    WEIR_ASSIGN_OR_RETURN(std::vector<NamedFeed> feeds, ReadFeeds(model_, chosen(), options, err_));
    for (NamedFeed& feed : feeds) Feed(feed.tensor, std::move(feed.source));
    return absl::OkStatus();
  }

  const ChosenSignature* chosen() const { return chosen_ ? &*chosen_ : nullptr; }

  void Feed(const Output& tensor, FeedSource source) {
    request_.feeds.push_back(tensor);
    if (options_.batch == 0) request_.values.push_back(source.whole());
    request_.sources.push_back(std::move(source));
  }

  absl::Status AddFetch(const std::string& text) {
    auto [name, file] = SplitAtEquals(text);
    if (file.empty()) file = options_.out;
    WEIR_ASSIGN_OR_RETURN(const Output tensor, FindTensor(model_, chosen(), "output", name));
    request_.fetches.push_back(tensor);
    request_.results.push_back({name, file});
    return absl::OkStatus();
  }

  Model& model_;
  const RequestOptions& options_;
  std::ostream& err_;
  std::optional<ChosenSignature> chosen_;
  Request request_;
};

std::vector<Operation> NeededBy(const Request& request) {
  std::vector<Operation> needed = request.targets;
  for (const Output& fetch : request.fetches) needed.emplace_back(fetch);
  return needed;
}

// Returns the nodes to run once: those that are named, and the initializers of tables.
absl::StatusOr<std::vector<Operation>> InitOps(const Model& model, const RequestOptions& options) {
  std::vector<Operation> ops;
  for (const std::string& init : options.inits) {
    WEIR_ASSIGN_OR_RETURN(ops.emplace_back(), FindOperation(*model.graph, init));
  }
  if (!options.initializes_tables) return ops;
  for (const Operation& op : model.graph->collection_as<Operation>(collections::kTableInitializers))
    ops.push_back(op);
  return ops;
}

// A checkpoint that is written needs all variables.
RestoreFlags RestoreOf(const RequestOptions& options) {
  RestoreFlags flags = options.restore;
  if (!options.save.empty() && flags.mode == "needed") flags.mode = "strict";
  return flags;
}

}  // namespace

absl::StatusOr<PreparedRequest> PrepareRequest(const RequestOptions& options, std::ostream& err) {
  PreparedRequest out;
  WEIR_ASSIGN_OR_RETURN(const GraphFileKind kind,
                        GraphFileKindOf(options.file, options.model.tags));
  ModelOptions model = options.model;
  model.session.disable.insert(options.disable.begin(), options.disable.end());
  if (options.records_passes || !options.dump_plan.empty()) {
    WEIR_ASSIGN_OR_RETURN(out.passes, PassRecorder::Create(options.dump_plan));
    model.session.on_pass = [passes = out.passes](const PassReport& report) {
      passes->Add(report);
    };
  }
  WEIR_ASSIGN_OR_RETURN(out.model, LoadModel(kind, options.file, model));
  RequestBuilder builder(out.model, options, err);
  WEIR_ASSIGN_OR_RETURN(out.request, builder.Build());
  if (!options.inits.empty() || options.initializes_tables) {
    WEIR_ASSIGN_OR_RETURN(const Feeds assets, kind == GraphFileKind::kSavedModel
                                                  ? AssetFeeds(FindGraph(options.file),
                                                               *out.model.graph, out.model.meta)
                                                  : Feeds());
    WEIR_ASSIGN_OR_RETURN(const std::vector<Operation> inits, InitOps(out.model, options));
    for (const Operation& init : inits)
      WEIR_RETURN_IF_ERROR(out.model.session->Run(assets, {}, {init}).status());
  }
  if (!options.restore.checkpoint.empty())
    WEIR_RETURN_IF_ERROR(RestoreModel(out.model, RestoreOf(options), NeededBy(out.request), err));
  if (out.request.empty()) return out;
  if (out.passes != nullptr) out.passes->Start();
  WEIR_ASSIGN_OR_RETURN(out.step, out.model.session->Prepare(out.request.feeds, out.request.fetches,
                                                             out.request.targets));
  return out;
}

void AddFeedOptions(Command& command, RequestOptions* options, const char* word) {
  command
      .Repeated("--feed", &options->feeds,
                "feed a tensor: VALUE is JSON, or a FILE (.npy, .npz, .csv, .json, .jsonl, an "
                "image, TFRecords), FILE:MEMBER, @FILE (its bytes), or a FOLDER or 'PATTERN' (a "
                "batch of files); FILE.npz without a name feeds the inputs that its arrays are "
                "named after; repeatable")
      .Word(word);
  command.Flag("--round", &options->round,
               "round fed numbers that the tensor's type cannot represent");
  command
      .Value("--pixels", &options->pixels,
             "values of black and white in images that are fed to floating-point tensors; default: "
             "0,1")
      .Word("BLACK,WHITE");
}

void AddBatchOptions(Command& command, RequestOptions* options) {
  command
      .Value("--out", &options->out,
             "write the fetched tensors that name no file to this one (.npz, .csv, .jsonl)")
      .Word("FILE");
  command
      .Value("--batch", &options->batch,
             "feed N rows of the files at a time, and join what the steps fetch")
      .AtLeast(1);
}

void AddRequestOptions(Command& command, RequestOptions* options, const char* fetch_word,
                       const char* fetch_help, bool needs_graph) {
  AddGraphArgument(command, &options->file, needs_graph);
  AddRestoreOptions(command, &options->restore, "needed");
  AddFeedOptions(command, options, "TENSOR=VALUE");
  command.Repeated("--fetch", &options->fetches, fetch_help).Word(fetch_word);
  command
      .Repeated("--target", &options->targets,
                "run this node for its side effects, in the same step; repeatable")
      .Word("NODE");
  command
      .Repeated("--init", &options->inits, "run this node once, before everything else; repeatable")
      .Word("NODE");
  command
      .Value("--signature", &options->signature,
             "name feeds and fetches as in this signature; default: fetch all its outputs")
      .Word("NAME");
  command.List("--tags", &options->model.tags, "select the meta graph of a SavedModel by its tags")
      .Word("TAG,...");
  AddStrictOption(command, &options->model.strict);
  command
      .Value("--device", &options->model.device,
             "the device of nodes that request none, such as /gpu:0")
      .Word("DEVICE");
  command
      .Value("--threads", &options->model.session.num_threads,
             "number of threads; default: one per processor")
      .AtLeast(0);
  command
      .Repeated("--disable", &options->disable,
                "disable an optimization, or a group such as fusion; weir passes lists them; "
                "repeatable")
      .Word("NAME");
  command
      .Value("--dump-plan", &options->dump_plan,
             "write the plan after each pass to this folder, as text and for Netron")
      .Word("DIR");
}

}  // namespace weir::tools
