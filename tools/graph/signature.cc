#include "weir/tools/graph/signature.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "weir/core/graph/closest_names.h"
#include "weir/tools/lib/value_file.h"

namespace weir::tools {

namespace {

constexpr char kDefault[] = "serving_default";

// Returns the names, those like `name` first.
std::vector<std::string> NearestFirst(const std::string& name,
                                      const std::vector<std::string>& names) {
  std::vector<std::string> sorted = ClosestNames(name, names);
  for (const std::string& each : names) {
    if (std::find(sorted.begin(), sorted.end(), each) == sorted.end()) sorted.push_back(each);
  }
  return sorted;
}

// Returns "float[?,2]"; "float" for an unknown rank.
std::string DescribeType(DataType dtype, const Shape& shape) {
  return absl::StrCat(DataTypeName(dtype), shape.has_rank() ? shape.ToString() : "");
}

// Signatures that run an op while a model is loaded or trained are not called.
bool IsCallable(const std::string& name, const Signature& signature) {
  return !IsLoaderSignature(name) && !signature.outputs.empty();
}

std::vector<std::string> SignatureNames(const Model& model) {
  std::vector<std::string> names;
  for (const auto& [name, signature] : model.meta.signatures) {
    if (IsCallable(name, signature)) names.push_back(name);
  }
  return names;
}

std::vector<std::string> FunctionNames(const Model& model) {
  std::vector<std::string> names;
  for (const SavedFunction& function : model.functions) {
    if (std::find(names.begin(), names.end(), function.name) == names.end())
      names.push_back(function.name);
  }
  return names;
}

std::vector<const SavedFunction*> TracesOf(const Model& model, absl::string_view name) {
  std::vector<const SavedFunction*> traces;
  for (const SavedFunction& function : model.functions) {
    if (function.name == name) traces.push_back(&function);
  }
  return traces;
}

// Returns the traces that a name denotes: all for "f", one for "f[1]".
std::vector<const SavedFunction*> FindTraces(const Model& model, absl::string_view name) {
  std::vector<const SavedFunction*> traces = TracesOf(model, name);
  size_t number = 0;
  const size_t bracket = name.rfind('[');
  if (!traces.empty() || bracket == name.npos || !absl::EndsWith(name, "]") ||
      !absl::SimpleAtoi(name.substr(bracket + 1, name.size() - bracket - 2), &number))
    return traces;
  traces = TracesOf(model, name.substr(0, bracket));
  if (number >= traces.size()) return {};
  return {traces[number]};
}

// Returns true if each input has a value that fits its dtype and shape, and nothing else is fed.
bool Accepts(const SavedFunction& function, const std::vector<std::string>& feeds) {
  std::set<std::string> fed;
  for (const std::string& feed : feeds) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(feed, absl::MaxSplits('=', 1));
    const auto input = std::find_if(function.inputs.begin(), function.inputs.end(),
                                    [&](const auto& each) { return each.name == parts.first; });
    if (input == function.inputs.end() || !fed.insert(input->name).second) return false;
    const absl::StatusOr<Tensor> value = ParseValue(
        parts.second, {.dtype = input->dtype, .shape = input->shape, .name = input->name});
    if (!value.ok() || !input->shape.IsCompatibleWith(value->shape())) return false;
  }
  return std::all_of(function.inputs.begin(), function.inputs.end(), [&](const auto& input) {
    return input.default_value || fed.contains(input.name);
  });
}

absl::StatusOr<const SavedFunction*> ChooseTrace(const std::vector<const SavedFunction*>& traces,
                                                 const std::vector<std::string>& feeds) {
  if (traces.size() == 1) return traces[0];
  std::vector<std::string> texts;
  for (const SavedFunction* trace : traces) {
    if (Accepts(*trace, feeds)) return trace;
    texts.push_back(absl::StrCat("[", texts.size(), "] ", Describe(*trace)));
  }
  return InvalidArgument("no trace of function '", traces[0]->name,
                         "' accepts these inputs: ", absl::StrJoin(texts, "; "), "; name one as ",
                         traces[0]->name, "[0]");
}

std::string DescribeSignatures(const Model& model, const std::vector<std::string>& names) {
  std::vector<std::string> texts;
  for (const std::string& name : names)
    texts.push_back(Describe(name, model.meta.signatures.at(name), model));
  return texts.empty() ? "none" : absl::StrJoin(texts, "; ");
}

// Returns the signatures and the functions, those like `name` first.
std::string Choices(const Model& model, const std::string& name) {
  std::string text = DescribeSignatures(model, NearestFirst(name, SignatureNames(model)));
  std::vector<std::string> functions;
  for (const std::string& each : NearestFirst(name, FunctionNames(model)))
    functions.push_back(Describe(*TracesOf(model, each)[0]));
  if (!functions.empty()) absl::StrAppend(&text, "; functions: ", absl::StrJoin(functions, "; "));
  return text;
}

absl::StatusOr<std::string> DefaultName(const Model& model) {
  const std::vector<std::string> signatures = SignatureNames(model);
  if (std::find(signatures.begin(), signatures.end(), kDefault) != signatures.end())
    return std::string(kDefault);
  if (signatures.size() == 1) return signatures[0];
  const std::vector<std::string> functions = FunctionNames(model);
  if (signatures.empty() && functions.size() == 1) return functions[0];
  if (signatures.empty() && functions.empty()) {
    return FailedPrecondition(
        "the model has no signatures and no functions; use weir run with --feed and --fetch");
  }
  return InvalidArgument(
      "the model has no signature '", kDefault,
      "'; select what to call with --signature; signatures: ", Choices(model, kDefault));
}

// Joins "name: type" of arguments.
template <class Map, class TypeOf>
std::string JoinArguments(const Map& names, const TypeOf& type_of) {
  return absl::StrJoin(names, ", ", [&](std::string* out, const auto& each) {
    absl::StrAppend(out, each.first, ": ", type_of(each.second));
  });
}

std::string DescribeTensor(const std::string& tensor, const Model& model) {
  const auto declared = model.meta.declared.find(tensor);
  if (declared == model.meta.declared.end()) return "?";
  return DescribeType(declared->second.dtype, declared->second.shape);
}

}  // namespace

std::string Describe(const std::string& name, const Signature& signature, const Model& model) {
  const auto keys = [](std::string* out, const auto& each) { out->append(each.first); };
  return absl::StrCat(
      name, "(",
      JoinArguments(signature.inputs,
                    [&](const std::string& tensor) { return DescribeTensor(tensor, model); }),
      ") -> ", absl::StrJoin(signature.outputs, ", ", keys));
}

std::string Describe(const SavedFunction& function) {
  const auto input = [](std::string* out, const SavedFunction::Value& value) {
    absl::StrAppend(out, value.name, ": ", DescribeType(value.dtype, value.shape));
  };
  const auto result = [](std::string* out, const SavedFunction::Value& value) {
    out->append(value.name);
  };
  return absl::StrCat(function.name, "(", absl::StrJoin(function.inputs, ", ", input), ") -> ",
                      absl::StrJoin(function.results, ", ", result));
}

absl::StatusOr<Output> FindTensor(const Model& model, const ChosenSignature* chosen,
                                  const std::string& side, const std::string& name) {
  if (chosen == nullptr) return model.graph->FindOutput(name);
  const std::map<std::string, std::string>& tensors =
      side == "input" ? chosen->signature.inputs : chosen->signature.outputs;
  if (const auto found = tensors.find(name); found != tensors.end())
    return model.graph->FindOutput(found->second);
  absl::StatusOr<Output> in_graph = model.graph->FindOutput(name);
  if (in_graph.ok()) return in_graph;
  std::vector<std::string> names, texts;
  for (const auto& [each, tensor] : tensors) names.push_back(each);
  for (const std::string& each : NearestFirst(name, names))
    texts.push_back(absl::StrCat(each, ": ", DescribeTensor(tensors.at(each), model)));
  return NotFound("signature '", chosen->name, "' has no ", side, " '", name, "'; its ", side,
                  "s: ", texts.empty() ? "none" : absl::StrJoin(texts, ", "));
}

absl::Status MissingInputs(const ChosenSignature& chosen,
                           const std::map<std::string, std::string>& inputs, const Model& model) {
  return InvalidArgument(
      "signature '", chosen.name, "' has no value for ",
      JoinArguments(inputs,
                    [&](const std::string& tensor) { return DescribeTensor(tensor, model); }),
      "; pass --feed ", inputs.begin()->first, "=VALUE");
}

absl::StatusOr<ChosenSignature> ChooseSignature(Model& model, const std::string& name,
                                                const std::vector<std::string>& feeds) {
  ChosenSignature chosen = {.name = name};
  if (name.empty()) {
    WEIR_ASSIGN_OR_RETURN(chosen.name, DefaultName(model));
  }
  const auto signature = model.meta.signatures.find(chosen.name);
  if (signature != model.meta.signatures.end()) {
    chosen.signature = signature->second;
    return chosen;
  }
  const std::vector<const SavedFunction*> traces = FindTraces(model, chosen.name);
  if (traces.empty()) {
    return NotFound("unknown signature '", name, "'; valid signatures: ", Choices(model, name));
  }
  WEIR_ASSIGN_OR_RETURN(const SavedFunction* const function, ChooseTrace(traces, feeds));
  WEIR_RETURN_IF_ERROR(model.session->Extend([&]() -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(chosen.signature, CallSavedFunction(*model.graph, *function));
    return absl::OkStatus();
  }));
  for (const SavedFunction::Value& input : function->inputs)
    model.meta.declared[chosen.signature.inputs.at(input.name)] = {input.dtype, input.shape};
  return chosen;
}

}  // namespace weir::tools
