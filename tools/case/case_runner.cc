#include "weir/tools/case/case_runner.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "weir/core/io/bundle.h"
#include "weir/core/io/crc32c.h"
#include "weir/core/io/file.h"
#include "weir/session/model/saver.h"
#include "weir/tools/case/case_collections.h"
#include "weir/tools/case/scratch.h"
#include "weir/tools/graph/model.h"
#include "weir/tools/lib/compare.h"
#include "weir/tools/lib/value_file.h"

namespace weir::tools {

namespace {

using Json = nlohmann::json;
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// Accessors for members of JSON objects. Each returns an empty value if the member has another
// type.
const Json& Member(const Json& object, const char* key) {
  static const Json* const kNone = new Json;
  const auto it = object.find(key);
  return it == object.end() ? *kNone : *it;
}
std::string StringMember(const Json& object, const char* key) {
  const Json& value = Member(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}
const Json& ObjectMember(const Json& object, const char* key) {
  static const Json* const kEmpty = new Json(Json::object());
  const Json& value = Member(object, key);
  return value.is_object() ? value : *kEmpty;
}
std::vector<std::string> StringsMember(const Json& object, const char* key) {
  std::vector<std::string> out;
  const Json& value = Member(object, key);
  if (!value.is_array()) return out;
  for (const Json& element : value) {
    if (element.is_string()) out.push_back(element.get<std::string>());
  }
  return out;
}
double NumberMember(const Json& object, const char* key, double fallback) {
  const Json& value = Member(object, key);
  return value.is_number() ? value.get<double>() : fallback;
}

// A step ready to run: its feeds by tensor name, and the recorded file to compare each result with.
struct PreparedStep {
  NamedTensors feeds;
  std::vector<std::string> targets, fetches;
  std::vector<std::pair<std::string, std::string>>
      expected;  // (name, file) of each fetch except the last ones
};

// Extends the checksum by the elements of a tensor.
uint32_t ExtendCrc32c(uint32_t crc, const Tensor& tensor) {
  if (tensor.dtype() != DT_STRING) return weir::ExtendCrc32c(crc, tensor.raw(), tensor.num_bytes());
  for (const std::string& s : tensor.flat<std::string>()) {
    const uint64_t size = s.size();
    crc = weir::ExtendCrc32c(weir::ExtendCrc32c(crc, &size, sizeof(size)), s);
  }
  return crc;
}

class CaseRun {
 public:
  CaseRun(std::string folder, const CaseOptions& options)
      : folder_(std::move(folder)), options_(options) {}

  CaseResult Run() {
    absl::Status status = ReadSpec();
    if (status.ok()) status = scratch_.Create();
    if (!status.ok()) {
      AddFailure(std::string(status.message()));
    } else if (StringMember(spec_, "layer") == "python") {
      result_.outcome = CaseResult::kSkipped;
      result_.why = "a Python-only check";
    } else {
      RunSpec();
    }
    return std::move(result_);
  }

 private:
  void AddFailure(std::string why) {
    if (result_.outcome == CaseResult::kFailed) {
      result_.more.push_back(std::move(why));
      return;
    }
    result_.outcome = CaseResult::kFailed;
    result_.why = std::move(why);
  }

  absl::Status ReadSpec() {
    WEIR_ASSIGN_OR_RETURN(const std::string text, ReadFile(JoinPath(folder_, "case.json")));
    spec_ = Json::parse(text, nullptr, false);
    if (!spec_.is_object()) return InvalidArgument("case.json is not a JSON object");
    return absl::OkStatus();
  }

  void RunSpec() {
    const absl::Status loaded = Load();
    if (const Json& error = ObjectMember(spec_, "load_error"); !error.empty()) {
      CheckError("load", loaded.ok() ? PrepareEverything() : loaded, error);
      return;
    }
    if (!loaded.ok()) {
      AddFailure(absl::StrCat("load: ", loaded.ToString()));
      return;
    }
    if (model_.file != nullptr) {
      for (std::string& why : CheckCollections(*model_.file, *model_.graph, spec_)) {
        AddFailure(std::move(why));
      }
    }
    const Json& steps = Member(spec_, "steps");
    for (size_t i = 0; steps.is_array() && i < steps.size(); ++i) {
      if (!RunStep(absl::StrCat("step ", i), steps[i])) return;
    }
  }

  // ---- loading

  absl::Status Load() {
    static constexpr std::pair<const char*, GraphFileKind> kKinds[] = {
        {"graph", GraphFileKind::kGraph},
        {"meta", GraphFileKind::kMetaGraph},
        {"saved_model", GraphFileKind::kSavedModel}};
    ModelOptions options;
    options.tags = StringsMember(spec_, "tags");
    options.session.num_threads = options_.num_threads;
    options.session.disable.insert(options_.disable.begin(), options_.disable.end());
    options.session.backends = options_.backends;
    for (const auto& [key, kind] : kKinds) {
      const std::string file = StringMember(spec_, key);
      if (file.empty()) continue;
      WEIR_ASSIGN_OR_RETURN(model_, LoadModel(kind, JoinPath(folder_, file), options));
    }
    return absl::OkStatus();  // a case may consist of a checkpoint only
  }

  // Prepares a step of all nodes, as the first run of a graph does before it runs anything.
  absl::Status PrepareEverything() {
    if (!model_.session) return absl::OkStatus();
    Outputs feeds;
    std::vector<Operation> targets;
    for (const auto& node : model_.graph->nodes()) {
      if (absl::StartsWith(node->op_name(), "Placeholder")) {
        feeds.push_back(node->output());
      } else {
        targets.emplace_back(node.get());
      }
    }
    return model_.session->Prepare(feeds, {}, targets).status();
  }

  // ---- steps

  // Returns false if the following steps cannot run.
  bool RunStep(const std::string& label, const Json& step) {
    if (StringMember(step, "layer") == "python") {
      result_.notes.push_back(label + " skipped: a Python-only check");
      return true;
    }
    PreparedStep prepared;
    const absl::StatusOr<Tensors> got = Member(step, "checkpoint").is_null()
                                            ? RunInSession(step, &prepared)
                                            : ReadCheckpoint(step, &prepared);
    if (!StringMember(step, "code").empty()) {
      CheckError(label, got.status(), step);
      return true;
    }
    if (!got.ok()) {
      AddFailure(absl::StrCat(label, ": ", got.status().ToString()));
      return false;
    }
    Tolerance tolerance;
    tolerance.rtol = NumberMember(step, "rtol", NumberMember(spec_, "rtol", tolerance.rtol));
    tolerance.atol = NumberMember(step, "atol", NumberMember(spec_, "atol", tolerance.atol));
    for (size_t i = 0; i < prepared.expected.size(); ++i) {
      const auto& [name, file] = prepared.expected[i];
      result_.bits = ExtendCrc32c(result_.bits, (*got)[i]);
      const absl::StatusOr<Tensor> want = ReadValueFile(JoinPath(folder_, file));
      std::string why = want.ok() ? CompareTensors((*got)[i], *want, tolerance)
                                  : std::string(want.status().message());
      if (!why.empty()) AddFailure(absl::StrCat(label, ": ", name, ": ", why));
    }
    return true;
  }

  void CheckError(const std::string& label, const absl::Status& status, const Json& recorded) {
    const std::string code = StringMember(recorded, "code");
    const std::string text = StringMember(recorded, "expect_error");
    if (status.ok()) {
      AddFailure(absl::StrCat(label, ": no error, recorded ", code));
    } else if (absl::StatusCodeToString(status.code()) != code) {
      AddFailure(absl::StrCat(label, ": recorded ", code, ", got ", status.ToString()));
    } else if (!absl::StrContains(status.message(), text)) {
      AddFailure(absl::StrCat(label, ": '", text, "' is not in: ", std::string(status.message())));
    }
  }

  absl::StatusOr<Tensors> RunInSession(const Json& step, PreparedStep* prepared) {
    if (!model_.session) return FailedPrecondition("the case has no graph");
    WEIR_RETURN_IF_ERROR(PrepareFeeds(step, prepared));
    WEIR_RETURN_IF_ERROR(PrepareSignature(step, prepared));
    WEIR_RETURN_IF_ERROR(PrepareSave(step, prepared));
    WEIR_RETURN_IF_ERROR(Restore(step));
    const auto repeat = static_cast<int64_t>(NumberMember(step, "repeat", 1));
    absl::StatusOr<Tensors> got;
    for (int64_t i = 0; i < repeat; ++i) {
      got = model_.session->Run(prepared->feeds, prepared->fetches, prepared->targets);
      if (!got.ok()) break;
    }
    return got;
  }

  absl::Status PrepareFeeds(const Json& step, PreparedStep* out) {
    for (const auto& [name, value] : ObjectMember(step, "feed").items()) {
      WEIR_RETURN_IF_ERROR(AddFeed(name, value, out));
    }
    for (const auto& [name, file] : ObjectMember(step, "fetch").items()) {
      AddFetch(name, name, file, out);
    }
    for (std::string& target : StringsMember(step, "target")) {
      out->targets.push_back(std::move(target));
    }
    return absl::OkStatus();
  }

  absl::Status PrepareSignature(const Json& step, PreparedStep* out) {
    const std::string key = StringMember(step, "signature");
    if (key.empty()) return absl::OkStatus();
    const auto found = model_.meta.signatures.find(key);
    if (found == model_.meta.signatures.end()) return NotFound("unknown signature '", key, "'");
    const Signature& signature = found->second;
    for (const auto& [name, value] : ObjectMember(step, "inputs").items()) {
      const auto tensor = signature.inputs.find(name);
      if (tensor == signature.inputs.end()) return NotFound("no input '", name, "' of ", key);
      WEIR_RETURN_IF_ERROR(AddFeed(tensor->second, value, out));
    }
    for (const auto& [name, file] : ObjectMember(step, "outputs").items()) {
      const auto tensor = signature.outputs.find(name);
      if (tensor == signature.outputs.end()) return NotFound("no output '", name, "' of ", key);
      AddFetch(tensor->second, "output " + name, file, out);
    }
    return absl::OkStatus();
  }

  absl::Status PrepareSave(const Json& step, PreparedStep* out) {
    const Json& save = Member(step, "save");
    if (save.is_null()) return absl::OkStatus();
    if (!model_.meta.saver) return FailedPrecondition("the meta graph has no SaverDef");
    const SaverDef& saver = *model_.meta.saver;
    out->fetches.push_back(saver.save_tensor_name);
    out->feeds.emplace_back(saver.filename_tensor_name,
                            Tensor::Scalar(PathOf(Json{{"scratch", save}})));
    return absl::OkStatus();
  }

  absl::Status Restore(const Json& step) {
    const Json& restore = Member(step, "restore");
    if (restore.is_null()) return absl::OkStatus();
    if (!model_.meta.saver) return FailedPrecondition("the meta graph has no SaverDef");
    return RestoreVariables(*model_.session, *model_.meta.saver, PathOf(restore));
  }

  absl::Status AddFeed(const std::string& name, const Json& value, PreparedStep* out) {
    if (value.is_object()) {
      out->feeds.emplace_back(name, Tensor::Scalar(PathOf(value)));
      return absl::OkStatus();
    }
    if (!value.is_string())
      return InvalidArgument("the feed of ", name, " is neither a file nor a path");
    WEIR_ASSIGN_OR_RETURN(const Tensor tensor,
                          ReadValueFile(JoinPath(folder_, value.get<std::string>())));
    const absl::StatusOr<Output> output = model_.graph->FindOutput(name);
    out->feeds.emplace_back(name, output.ok() ? AsCarrier(tensor, output->dtype()) : tensor);
    return absl::OkStatus();
  }

  static void AddFetch(const std::string& tensor, const std::string& label, const Json& file,
                       PreparedStep* out) {
    out->fetches.push_back(tensor);
    out->expected.emplace_back(label, file.is_string() ? file.get<std::string>() : "");
  }

  // "p" and {"path": "p"} are paths in the case's folder, {"scratch": "p"} in the scratch folder.
  std::string PathOf(const Json& value) const {
    if (value.is_string()) return JoinPath(folder_, value.get<std::string>());
    if (value.is_object() && value.contains("scratch")) {
      return JoinPath(scratch_.path(), StringMember(value, "scratch"));
    }
    return value.is_object() ? JoinPath(folder_, StringMember(value, "path")) : folder_;
  }

  absl::StatusOr<Tensors> ReadCheckpoint(const Json& step, PreparedStep* prepared) {
    WEIR_ASSIGN_OR_RETURN(const auto reader,
                          CheckpointReader::Open(PathOf(Member(step, "checkpoint"))));
    Tensors tensors;
    for (const auto& [name, file] : ObjectMember(step, "tensors").items()) {
      WEIR_ASSIGN_OR_RETURN(Tensor tensor, reader->Read(name));
      tensors.push_back(std::move(tensor));
      AddFetch(name, name, file, prepared);
    }
    return tensors;
  }

  const std::string folder_;
  const CaseOptions options_;
  Json spec_;
  ScratchFolder scratch_;
  Model model_;
  CaseResult result_;
};

constexpr int kMaxDepth = 8;

absl::Status FindIn(const std::string& folder, int depth, std::vector<std::string>* out) {
  if (Files().Exists(JoinPath(folder, "case.json"))) {
    out->push_back(folder);
    return absl::OkStatus();
  }
  if (depth == kMaxDepth) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> names, Files().List(folder));
  for (const std::string& name : names) {
    const std::string path = JoinPath(folder, name);
    if (Files().IsDirectory(path)) WEIR_RETURN_IF_ERROR(FindIn(path, depth + 1, out));
  }
  return absl::OkStatus();
}

}  // namespace

CaseResult RunCase(const std::string& folder, const CaseOptions& options) {
  return CaseRun(folder, options).Run();
}

absl::StatusOr<std::vector<std::string>> FindCases(const std::vector<std::string>& roots) {
  std::vector<std::string> out;
  for (const std::string& root : roots) {
    const size_t before = out.size();
    if (!Files().IsDirectory(root)) return NotFound("no such folder: ", root);
    WEIR_RETURN_IF_ERROR(FindIn(root, 0, &out));
    if (out.size() == before) return NotFound("no case.json in ", root, " or its subfolders");
  }
  return out;
}

}  // namespace weir::tools
