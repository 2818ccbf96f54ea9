#include "absl/strings/str_cat.h"
#include "weir/ops/data/dataset_build_internal.h"
#include "weir/ops/lib/array_internal.h"

// Data sets that call functions of their elements.
namespace weir {

Dataset Dataset::Map(const ElementFn& fn, const ParallelOptions& options) const {
  if (!variant_.valid()) return {};
  Graph& graph = variant_.graph();
  const auto f = TraceFunction(graph, "Dataset_map_lambda", spec_, options.captured, fn);
  if (!f) return {};
  if (f->results.types.empty()) {
    graph.Fail(InvalidArgument("Map: the function must return at least one tensor"));
    return {};
  }
  if (!options.num_parallel_calls) {
    return AddDataset("MapDataset", {variant_, options.captured}, f->results, {{"f", f->ref}});
  }
  const Output calls = options.num_parallel_calls->In(graph, "num_parallel_calls", DT_INT64);
  return AddDataset("ParallelMapDatasetV2", {variant_, options.captured, calls}, f->results,
                    {{"f", f->ref}, {"deterministic", DeterminismAttr(options.deterministic)}});
}

Dataset Dataset::Filter(const PredicateFn& predicate, const Outputs& captured) const {
  if (!variant_.valid()) return {};
  const auto f = TraceScalarFunction(variant_.graph(), "Dataset_filter_lambda", spec_, captured,
                                     DT_BOOL, predicate);
  if (!f) return {};
  return AddDataset("FilterDataset", {variant_, captured}, spec_, {{"predicate", f->ref}});
}

Dataset Dataset::TakeWhile(const PredicateFn& predicate, const Outputs& captured) const {
  if (!variant_.valid()) return {};
  const auto f = TraceScalarFunction(variant_.graph(), "Dataset_take_while_lambda", spec_, captured,
                                     DT_BOOL, predicate);
  if (!f) return {};
  return AddDataset("TakeWhileDataset", {variant_, captured}, spec_, {{"predicate", f->ref}});
}

Dataset Dataset::FlatMap(const DatasetFn& fn, const Outputs& captured) const {
  if (!variant_.valid()) return {};
  const auto f =
      TraceDatasetFunction(variant_.graph(), "Dataset_flat_map_lambda", spec_, captured, fn);
  if (!f) return {};
  return AddDataset("FlatMapDataset", {variant_, captured}, f->results, {{"f", f->ref}});
}

Dataset Dataset::Interleave(const DatasetFn& fn, const InterleaveOptions& options) const {
  if (!variant_.valid()) return {};
  Graph& graph = variant_.graph();
  const auto f =
      TraceDatasetFunction(graph, "Dataset_interleave_lambda", spec_, options.captured, fn);
  if (!f) return {};
  const Output cycle = options.cycle_length.In(graph, "cycle_length", DT_INT64);
  const Output block = options.block_length.In(graph, "block_length", DT_INT64);
  if (!options.num_parallel_calls) {
    return AddDataset("InterleaveDataset", {variant_, options.captured, cycle, block}, f->results,
                      {{"f", f->ref}});
  }
  const Output ahead = Const(graph, kAutotune, "buffer_output_elements");
  const Output inputs = Const(graph, kAutotune, "prefetch_input_elements");
  const Output calls = options.num_parallel_calls->In(graph, "num_parallel_calls", DT_INT64);
  return AddDataset("ParallelInterleaveDatasetV4",
                    {variant_, options.captured, cycle, block, ahead, inputs, calls}, f->results,
                    {{"f", f->ref}, {"deterministic", DeterminismAttr(options.deterministic)}});
}

namespace {

// A function of a state and an element, and the state that it takes and returns.
struct StateFunction {
  TracedFunction f;
  ElementSpec state;
};

// Traces a function whose first results are the new state. Where the new state has another shape
// than the state, traces it again for a state whose shape is less specific.
std::optional<StateFunction> TraceStateFunction(absl::string_view name, const Dataset& dataset,
                                                const Outputs& initial, const Outputs& captured,
                                                const ElementFn& fn) {
  Graph& graph = dataset.variant().graph();
  StateFunction traced;
  for (const Output& component : initial) {
    traced.state.types.push_back(component.dtype());
    traced.state.shapes.push_back(component.shape());
  }
  while (true) {
    ElementSpec spec = traced.state;
    const ElementSpec& element = dataset.element_spec();
    spec.types.insert(spec.types.end(), element.types.begin(), element.types.end());
    spec.shapes.insert(spec.shapes.end(), element.shapes.begin(), element.shapes.end());
    const auto f = TraceFunction(graph, name, spec, captured, fn);
    if (!f) return std::nullopt;
    traced.f = *f;
    const ElementSpec& results = traced.f.results;
    bool is_stable = true, same_types = results.types.size() >= initial.size();
    for (size_t i = 0; same_types && i < initial.size(); ++i) {
      same_types = results.types[i] == traced.state.types[i];
      const Shape common = CommonShape(traced.state.shapes[i], results.shapes[i]);
      is_stable = is_stable && common == traced.state.shapes[i];
      traced.state.shapes[i] = common;
    }
    if (!same_types) {
      graph.Fail(InvalidArgument(name,
                                 ": The element types for the new state must match the "
                                 "initial state. Expected ",
                                 TypesText(traced.state.types), "; got ",
                                 TypesText(results.types)));
      return std::nullopt;
    }
    if (is_stable) return traced;
  }
}

Outputs Slice(const Outputs& list, size_t begin, size_t end) {
  return {list.begin() + static_cast<std::ptrdiff_t>(begin),
          list.begin() + static_cast<std::ptrdiff_t>(end)};
}

}  // namespace

Dataset Dataset::Scan(const Outputs& initial_state, const StatefulFn& fn,
                      const Outputs& captured) const {
  if (!variant_.valid() || !AllValidOutputs(initial_state)) return {};
  const size_t states = initial_state.size();
  size_t new_states = states;
  ElementFn flat;
  if (fn != nullptr) {
    flat = [&](const Outputs& args) {
      auto [state, results] = fn(Slice(args, 0, states), Slice(args, states, args.size()));
      new_states = state.size();
      state.insert(state.end(), results.begin(), results.end());
      return state;
    };
  }
  const auto traced =
      TraceStateFunction("Dataset_scan_lambda", *this, initial_state, captured, flat);
  if (!traced) return {};
  const ElementSpec& all = traced->f.results;
  if (new_states != states || all.types.size() == states) {
    variant_.graph().Fail(InvalidArgument(
        "Scan: the function returned a state of ", new_states, " tensors and ",
        all.types.size() - new_states, " results; expected ", states, ", and at least one result"));
    return {};
  }
  const auto first = static_cast<std::ptrdiff_t>(states);
  return AddDataset("ScanDataset", {variant_, initial_state, captured},
                    {{all.types.begin() + first, all.types.end()},
                     {all.shapes.begin() + first, all.shapes.end()}},
                    {{"f", traced->f.ref}, {"preserve_cardinality", true}});
}

Outputs Dataset::Reduce(const Outputs& initial_state, const ElementFn& fn,
                        const Outputs& captured) const {
  const size_t count = initial_state.size();
  if (!variant_.valid() || !AllValidOutputs(initial_state)) return Outputs(count);
  const auto traced = TraceStateFunction("reduce_lambda", *this, initial_state, captured, fn);
  if (!traced) return Outputs(count);
  if (traced->f.results.types.size() != count) {
    variant_.graph().Fail(InvalidArgument("Reduce: the function returned ",
                                          traced->f.results.types.size(), " tensors; expected the ",
                                          count, " of the state"));
    return Outputs(count);
  }
  return AllOutputs(AddNode("ReduceDataset", {variant_, initial_state, captured},
                            ElementAttrs(traced->state, {{"f", traced->f.ref}})),
                    count);
}

}  // namespace weir
