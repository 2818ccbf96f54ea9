#include "weir/kernels/data/captured_function.h"

#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "weir/core/io/function_library.h"
#include "weir/kernels/data/iterator_state.h"

namespace weir {

absl::StatusOr<Tensors> CapturedFunction::Call(const DatasetContext& x, const Tensors& args) const {
  Tensors all = args, results;
  all.insert(all.end(), captured.begin(), captured.end());
  IteratorPosition* const position = IteratorPosition::Current();
  if (position == nullptr || function->state() == Function::State::kNone) {
    WEIR_RETURN_IF_ERROR(function->Call(x.step, x.caller, all, &results));
    return results;
  }
  if (!changes.empty()) position->NoteChange(changes);
  NotedDraws draws(*position, *function, x.step.draws);
  StepInfo step = x.step;
  step.draws = &draws;
  WEIR_RETURN_IF_ERROR(function->Call(step, x.caller, all, &results));
  return results;
}

MaybeElement CapturedFunction::Map(const DatasetContext& x, const Tensors& element) const {
  absl::StatusOr<Tensors> results = Call(x, element);
  if (results.ok()) return *std::move(results);
  if (results.status().code() != absl::StatusCode::kOutOfRange) return results.status();
  if (!preserve_cardinality) return std::nullopt;
  return InvalidArgument("Function invocation produced OutOfRangeError: ",
                         std::string(results.status().message()));
}

absl::StatusOr<bool> CapturedFunction::Test(const DatasetContext& x, const Tensors& element) const {
  WEIR_ASSIGN_OR_RETURN(const Tensors keep, Call(x, element));
  if (keep.size() != 1 || keep[0].dtype() != DT_BOOL || keep[0].num_elements() != 1)
    return InvalidArgument("The predicate must return a scalar bool.");
  return *keep[0].data<bool>();
}

absl::StatusOr<int64_t> CapturedFunction::Number(const DatasetContext& x, const Tensors& args,
                                                 absl::string_view attr) const {
  WEIR_ASSIGN_OR_RETURN(const Tensors results, Call(x, args));
  if (results.size() != 1 || results[0].dtype() != DT_INT64 || results[0].num_elements() != 1)
    return InvalidArgument("`", attr, "` must return a scalar int64.");
  return *results[0].data<int64_t>();
}

namespace {

// Whether what the node changes is more than the position of its random stream.
bool ChangesOtherState(const Node& node) {
  const OpTraits& traits = node.op().traits();
  if (traits.effect == Effect::kMutates || traits.writes_variables()) return true;
  return node.op().stateful() && traits.effect == Effect::kByState &&
         traits.variable_use == VariableUse::kNone &&
         traits.container.kind == ContainerUse::Kind::kNone && traits.calls == nullptr;
}

// Appends the functions that a node names.
void AddFunctions(const Node& node, std::vector<FunctionRef>* functions) {
  if (node.op().is_function())
    functions->push_back({node.op_name(), std::make_shared<AttrMap>(node.attrs())});
  for (const auto& [name, value] : node.attrs()) {
    if (const auto* function = std::get_if<FunctionRef>(&value.value()))
      functions->push_back(*function);
    if (const auto* several = std::get_if<std::vector<FunctionRef>>(&value.value()))
      functions->insert(functions->end(), several->begin(), several->end());
  }
}

// Visits the nodes of these functions, and of those that they name.
absl::Status VisitFunctions(std::vector<FunctionRef> named, Functions& functions,
                            absl::FunctionRef<void(const Node&)> visit) {
  std::unordered_set<std::string> called;
  for (size_t i = 0; i < named.size(); ++i) {
    if (!called.insert(FunctionKey(named[i])).second) continue;
    WEIR_ASSIGN_OR_RETURN(const FunctionBody body, functions.MakeBody(named[i], ""));
    for (const auto& node : body.graph->nodes()) {
      visit(*node);
      AddFunctions(*node, &named);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CapturedFunction> CapturedFunctionOf(const KernelInit& init,
                                                    absl::string_view attr) {
  CapturedFunction f;
  const auto function = init.attr<FunctionRef>(attr);
  WEIR_ASSIGN_OR_RETURN(f.function, FindFunction(init, function));
  if (f.function->state() == Function::State::kAny) {
    const auto look = [&](const Node& node) {
      if (!f.changes.empty() || !ChangesOtherState(node)) return;
      f.changes = absl::StrCat(node.Label(), " in the function '", function.name, "' of ",
                               init.node.Label());
    };
    WEIR_RETURN_IF_ERROR(VisitFunctions({function}, *init.functions, look));
  }
  f.preserve_cardinality = init.node.attr_or<bool>("preserve_cardinality", false);
  return f;
}

absl::StatusOr<Tensors> OwnInputs(const KernelContext& c, absl::string_view argument) {
  const auto [first, last] = c.node().InputRange(argument);
  Tensors inputs;
  for (int i = first; i < last; ++i) {
    WEIR_ASSIGN_OR_RETURN(inputs.emplace_back(), c.Own(c.input(i)));
  }
  return inputs;
}

absl::StatusOr<CapturedFunction> WithCaptured(const KernelContext& c, CapturedFunction f,
                                              absl::string_view argument) {
  WEIR_ASSIGN_OR_RETURN(f.captured, OwnInputs(c, argument));
  return f;
}

absl::Status VisitNodesBehind(const Node& node, Functions* functions,
                              absl::FunctionRef<void(const Node&)> visit) {
  std::vector<FunctionRef> named;
  const auto visit_one = [&](const Node& one) {
    visit(one);
    if (functions != nullptr) AddFunctions(one, &named);
  };
  std::unordered_set<const Node*> seen;
  std::vector<std::pair<const Node*, bool>> stack = {{&node, false}};
  while (!stack.empty()) {
    const auto [next, inputs_done] = stack.back();
    stack.pop_back();
    if (inputs_done) {
      visit_one(*next);
      continue;
    }
    if (!seen.insert(next).second) continue;
    stack.emplace_back(next, true);
    for (const Output& input : next->inputs()) stack.emplace_back(input.node, false);
  }
  if (functions == nullptr) return absl::OkStatus();
  return VisitFunctions(std::move(named), *functions, visit);
}

absl::StatusOr<NestedIterator> IterateOver(DatasetPtr dataset) {
  NestedIterator nested;
  WEIR_ASSIGN_OR_RETURN(nested.iterator, dataset->Iterate());
  nested.dataset = std::move(dataset);
  return nested;
}

absl::StatusOr<NestedIterator> IterateResult(const Tensors& results, absl::string_view attr) {
  if (results.size() != 1 || results[0].dtype() != DT_VARIANT || results[0].rank() != 0)
    return InvalidArgument("`", attr, "` must return a single scalar of dtype DT_VARIANT.");
  WEIR_ASSIGN_OR_RETURN(DatasetPtr dataset, DatasetIn(results[0]));
  return IterateOver(std::move(dataset));
}

}  // namespace weir
