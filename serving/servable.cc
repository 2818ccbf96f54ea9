#include "weir/serving/servable.h"

#include <set>
#include <utility>

#include "weir/core/io/checkpoint_state.h"
#include "weir/core/io/file.h"
#include "weir/core/tensor/mutex.h"
#include "weir/serving/frozen_graph.h"
#include "weir/serving/memory_use.h"
#include "weir/serving/shown_name.h"
#include "weir/serving/warm_up.h"
#include "weir/session/plan/variable_use.h"

namespace weir::serving {
namespace {

constexpr char kDefaultSignature[] = "serving_default";
// Clients choose the outputs, so there may be more sets of them than steps are worth keeping.
constexpr size_t kMaxSteps = 256;

// Clients choose the inputs, so a message shows some of many.
constexpr int kMaxShown = 20;

template <class Names, class NameOf>
std::string Joined(const Names& names, const NameOf& name_of) {
  std::string out;
  int count = 0;
  for (const auto& name : names) {
    if (count == kMaxShown) return absl::StrCat(out, ",...");
    absl::StrAppend(&out, count++ > 0 ? "," : "", ShownName(name_of(name)));
  }
  return out;
}

// "a,b".
template <class Map>
std::string Keys(const Map& map) {
  return Joined(map, [](const auto& entry) { return absl::string_view(entry.first); });
}

std::string Shown(const std::set<std::string>& names) {
  return Joined(names, [](const std::string& name) { return absl::string_view(name); });
}

// LoadSavedModel takes a SavedModel without variables/ for one without variables. Here that is a
// copy that has not been completed: every call of it would fail.
absl::Status CheckVariablesArePresent(const std::string& directory, const LoadedModel& model) {
  const std::string prefix = JoinPath(directory, "variables/variables");
  if (!model.meta.saver || CheckpointExists(prefix)) return absl::OkStatus();
  for (const auto& node : model.graph->nodes()) {
    if (!IsVariable(*node)) continue;
    return NotFound("the values of the variables are missing: there is no ", prefix,
                    ".index, but the model has variable ", node->Label());
  }
  return absl::OkStatus();
}

absl::StatusOr<LoadedModel> LoadModel(const std::string& directory,
                                      const ServableOptions& options) {
  if (!HoldsSavedModel(directory)) return LoadFrozenGraph(directory, options.session);
  WEIR_ASSIGN_OR_RETURN(LoadedModel model,
                        LoadSavedModel(directory, options.tags, options.session));
  WEIR_RETURN_IF_ERROR(CheckVariablesArePresent(directory, model));
  return model;
}

// One of the signatures, with its tensors.
struct Callable {
  absl::Status status;                                      // why it cannot be called, or OK
  std::map<std::string, Output> inputs = {}, outputs = {};  // as in SignatureInfo
};

}  // namespace

struct Servable::Impl {
  Impl(std::string name, int64_t version, LoadedModel model)
      : name(std::move(name)), version(version), model(std::move(model)) {}

  const std::string name;
  const int64_t version;
  const LoadedModel model;
  std::map<std::string, SignatureInfo> signatures = {};
  std::map<std::string, Callable> callables = {};
  int64_t memory_bytes = 0;
  using StepKey = std::pair<std::string, std::vector<std::string>>;  // signature, outputs
  mutable SharedMutex mutex = {};
  mutable std::map<StepKey, Step> steps ABSL_GUARDED_BY(mutex) = {};

  void AddSignatures();
  absl::Status AddTensors(const std::map<std::string, std::string>& from,
                          std::map<std::string, TensorInfo>* to,
                          std::map<std::string, Output>* outputs) const;
  absl::StatusOr<const SignatureInfo*> FindSignature(const std::string& signature) const;
  absl::StatusOr<std::vector<std::string>> ChooseOutputs(
      const SignatureInfo& info, const std::vector<std::string>& outputs) const;
  absl::StatusOr<Step> StepFor(const std::string& signature,
                               const std::vector<std::string>& outputs) const;
};

// Adds the tensors of one side of a signature, and returns the first error.
absl::Status Servable::Impl::AddTensors(const std::map<std::string, std::string>& from,
                                        std::map<std::string, TensorInfo>* to,
                                        std::map<std::string, Output>* outputs) const {
  absl::Status status;
  for (const auto& [argument, tensor] : from) {
    const auto declared = model.meta.declared.find(tensor);
    TensorInfo info{tensor, DT_INVALID, Shape::UnknownRank()};
    if (declared != model.meta.declared.end()) info.shape = declared->second.shape;
    const absl::StatusOr<Output> output = model.graph->FindOutput(tensor);
    if (output.ok()) {
      info.dtype = BaseType(output->dtype());
      const absl::StatusOr<Shape> merged = output->shape().MergeWith(info.shape);
      info.shape = merged.ok() ? *merged : output->shape();
      (*outputs)[argument] = *output;
      // A client that knew a handle could reach state that is not its own.
      if (info.dtype == DT_RESOURCE || info.dtype == DT_VARIANT) {
        status.Update(Unimplemented("'", argument, "' is of type ", DataTypeName(info.dtype),
                                    ", which clients cannot send or receive"));
      }
    } else if (tensor.empty()) {
      status.Update(
          Unimplemented("'", argument, "' is a sparse or composite tensor; export dense tensors"));
    } else {
      status.Update(Annotate(output.status(), absl::StrCat("'", argument, "'")));
    }
    (*to)[argument] = std::move(info);
  }
  return status;
}

// A signature with a tensor that the graph does not have fails when it is called, as in TensorFlow:
// others of the model may be sound.
void Servable::Impl::AddSignatures() {
  for (const auto& [key, signature] : model.meta.signatures) {
    SignatureInfo& info = signatures[key];
    Callable& callable = callables[key];
    info.method_name = signature.method_name;
    info.defaults = signature.defaults;
    callable.status = AddTensors(signature.inputs, &info.inputs, &callable.inputs);
    callable.status.Update(AddTensors(signature.outputs, &info.outputs, &callable.outputs));
    callable.status = Annotate(callable.status, absl::StrCat("signature '", key, "'"));
  }
}

absl::StatusOr<std::shared_ptr<const Servable>> Servable::Load(const std::string& name,
                                                               int64_t version,
                                                               const std::string& directory,
                                                               const ServableOptions& options) {
  WEIR_ASSIGN_OR_RETURN(LoadedModel model, LoadModel(directory, options));
  auto impl = std::make_unique<Impl>(name, version, std::move(model));
  impl->AddSignatures();
  impl->memory_bytes = MemoryUse(impl->model);
  const std::shared_ptr<const Servable> servable(new Servable(std::move(impl)));
  const auto call = [&](const std::string& signature, const NamedTensors& inputs,
                        const std::vector<std::string>& outputs) {
    return servable->Run(signature, inputs, outputs).status();
  };
  if (options.warm_up) WEIR_RETURN_IF_ERROR(WarmUp(directory, call));
  return servable;
}

Servable::Servable(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Servable::~Servable() = default;

const std::string& Servable::name() const { return impl_->name; }
int64_t Servable::version() const { return impl_->version; }
int64_t Servable::memory_bytes() const { return impl_->memory_bytes; }
const std::map<std::string, SignatureInfo>& Servable::signatures() const {
  return impl_->signatures;
}

absl::StatusOr<const SignatureInfo*> Servable::Impl::FindSignature(
    const std::string& signature) const {
  const auto found = signatures.find(signature);
  if (found != signatures.end()) return &found->second;
  return FailedPrecondition("Serving signature key \"", ShownName(signature),
                            "\" not found. Model ", ShownName(name), ", version ", version,
                            ", has: ", Keys(signatures));
}

namespace {

// Checks that the inputs are those of the signature.
absl::Status CheckNames(const SignatureInfo& info, const NamedTensors& inputs) {
  std::set<std::string> extra, missing;
  for (const auto& [argument, value] : inputs) {
    if (info.inputs.count(argument) == 0) extra.insert(argument);
  }
  for (const auto& [argument, tensor] : info.inputs) {
    if (inputs.count(argument) == 0 && info.defaults.count(argument) == 0) missing.insert(argument);
  }
  if (extra.empty() && missing.empty()) return absl::OkStatus();
  return InvalidArgument("input size does not match signature: ", inputs.size(),
                         "!=", info.inputs.size(), " len({", Keys(inputs), "}) != len({",
                         Keys(info.inputs), "}). Sent extra: {", Shown(extra),
                         "}. Missing but required: {", Shown(missing), "}.");
}

// Returns the values of a call in the order of the signature's inputs.
absl::StatusOr<Tensors> FeedsOf(const SignatureInfo& info, const NamedTensors& inputs) {
  WEIR_RETURN_IF_ERROR(CheckNames(info, inputs));
  Tensors feeds;
  for (const auto& [argument, tensor] : info.inputs) {
    const auto input = inputs.find(argument);
    const Tensor& value = input != inputs.end() ? input->second : info.defaults.at(argument);
    if (value.dtype() != tensor.dtype) {
      return InvalidArgument("input '", argument, "': Expects arg[", feeds.size(), "] to be ",
                             DataTypeName(tensor.dtype), " but ", DataTypeName(value.dtype()),
                             " is provided");
    }
    feeds.push_back(value);
  }
  return feeds;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> Servable::Impl::ChooseOutputs(
    const SignatureInfo& info, const std::vector<std::string>& outputs) const {
  std::vector<std::string> chosen;
  if (outputs.empty()) {
    for (const auto& [result, tensor] : info.outputs) chosen.push_back(result);
    return chosen;
  }
  std::set<std::string> seen;
  for (const std::string& result : outputs) {
    if (info.outputs.count(result) == 0) {
      return InvalidArgument("output tensor alias not found in signature: ", ShownName(result),
                             " Outputs expected to be in the set {", Keys(info.outputs), "}.");
    }
    if (!seen.insert(result).second)
      return InvalidArgument("duplicate output tensor alias: ", result);
  }
  chosen.assign(seen.begin(), seen.end());
  return chosen;
}

absl::StatusOr<Step> Servable::Impl::StepFor(const std::string& signature,
                                             const std::vector<std::string>& outputs) const {
  const StepKey key(signature, outputs);
  {
    const ReaderLock lock(mutex);
    const auto found = steps.find(key);
    if (found != steps.end()) return found->second;
  }
  const Callable& callable = callables.at(signature);
  WEIR_RETURN_IF_ERROR(callable.status);
  Outputs feeds, fetches;
  for (const auto& [argument, input] : callable.inputs) feeds.push_back(input);
  for (const std::string& result : outputs) fetches.push_back(callable.outputs.at(result));
  WEIR_ASSIGN_OR_RETURN(Step step, model.session->Prepare(feeds, fetches));
  const WriterLock lock(mutex);
  if (steps.size() < kMaxSteps) steps.emplace(key, step);
  return step;
}

absl::StatusOr<NamedTensors> Servable::Run(const std::string& signature, const NamedTensors& inputs,
                                           const std::vector<std::string>& outputs,
                                           const RunOptions& options) const {
  const std::string key = signature.empty() ? kDefaultSignature : signature;
  WEIR_ASSIGN_OR_RETURN(const SignatureInfo* info, impl_->FindSignature(key));
  WEIR_RETURN_IF_ERROR(impl_->callables.at(key).status);
  WEIR_ASSIGN_OR_RETURN(const Tensors feeds, FeedsOf(*info, inputs));
  WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> chosen,
                        impl_->ChooseOutputs(*info, outputs));
  WEIR_ASSIGN_OR_RETURN(const Step step, impl_->StepFor(key, chosen));
  Tensors values;
  WEIR_RETURN_IF_ERROR(step.Run(feeds, &values, options));
  NamedTensors results;
  for (size_t i = 0; i < chosen.size(); ++i) results.emplace(chosen[i], std::move(values[i]));
  return results;
}

}  // namespace weir::serving
