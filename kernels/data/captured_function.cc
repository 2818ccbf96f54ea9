#include "weir/kernels/data/captured_function.h"

#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "weir/core/io/function_library.h"

namespace weir {

absl::StatusOr<Tensors> CapturedFunction::Call(const DatasetContext& x, const Tensors& args) const {
  Tensors all = args, results;
  all.insert(all.end(), captured.begin(), captured.end());
  WEIR_RETURN_IF_ERROR(function->Call(x.step, x.caller, all, &results));
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

absl::StatusOr<CapturedFunction> CapturedFunctionOf(const KernelInit& init,
                                                    absl::string_view attr) {
  CapturedFunction f;
  WEIR_ASSIGN_OR_RETURN(f.function, FindFunction(init, init.attr<FunctionRef>(attr)));
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

namespace {

// Appends the functions that a node names.
void AddFunctions(const Node& node, std::vector<FunctionRef>* functions) {
  for (const auto& [name, value] : node.attrs()) {
    if (const auto* function = std::get_if<FunctionRef>(&value.value()))
      functions->push_back(*function);
    if (const auto* several = std::get_if<std::vector<FunctionRef>>(&value.value()))
      functions->insert(functions->end(), several->begin(), several->end());
  }
}

}  // namespace

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
  std::unordered_set<std::string> called;
  for (size_t i = 0; i < named.size(); ++i) {
    if (!called.insert(FunctionKey(named[i])).second) continue;
    WEIR_ASSIGN_OR_RETURN(const FunctionBody body, functions->MakeBody(named[i], ""));
    for (const auto& inner : body.graph->nodes()) visit_one(*inner);
  }
  return absl::OkStatus();
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
