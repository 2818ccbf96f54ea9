#include "weir/ops/data/dataset_build_internal.h"

#include "absl/strings/str_cat.h"
#include "weir/core/io/function_library.h"
#include "weir/ops/lib/array_internal.h"

// What the builders of data sets have in common, and how a C++ function becomes one of the graph.
//
// The function is called on placeholders of a graph of its own. That graph becomes a FunctionDef as
// TensorFlow's tf.function makes it: each result is an Identity, and stateful nodes are control
// outputs, so that they run even if no result depends on them. The function's own graph starts with
// the library and the seed of the outer graph; what the library gains there, such as the functions
// of an inner data set, is added to the outer library together with the new function. Numbering
// functions by the size of the library makes names unique, since the inner functions come first.
namespace weir {

Attrs ElementAttrs(const ElementSpec& spec, Attrs more) {
  more.emplace_back("output_types", spec.types);
  more.emplace_back("output_shapes", spec.shapes);
  return more;
}

Dataset AddDataset(absl::string_view op, absl::Span<const Arg> args, const ElementSpec& spec,
                   Attrs attrs) {
  return Dataset::FromVariant(AddOp(op, args, ElementAttrs(spec, std::move(attrs))), spec);
}

std::pair<Output, Output> SeedTensors(Graph& graph, std::optional<int64_t> seed) {
  const bool is_seeded = seed || graph.seed();
  const auto [seed1, seed2] = graph.NextSeed(seed);
  const Output first = Const(graph, seed1, "seed");
  if (!is_seeded) return {first, Const(graph, seed2, "seed2")};
  // TensorFlow replaces two zeros, which would mean that there is no seed, here again.
  const NameScope scope(graph, "seed2");
  const Output second = Const(graph, seed2);
  const Output is_zero = Equal(first, 0);
  const Output both = LogicalAnd(is_zero, Equal(second, 0));
  constexpr int64_t kMaxSeed = (int64_t{1} << 31) - 1;
  return {first, SelectV2(both, Const(graph, kMaxSeed), second, scope.name())};
}

const char* DeterminismAttr(const std::optional<bool>& deterministic) {
  if (!deterministic) return "default";
  return *deterministic ? "true" : "false";
}

std::vector<Shape> BatchedShapes(const std::vector<Shape>& shapes, int64_t batch) {
  std::vector<Shape> batched = shapes;
  for (Shape& shape : batched) {
    if (shape.has_rank()) shape.InsertDim(0, batch);
  }
  return batched;
}

int64_t LiteralValue(const Ints& number) {
  return !number.is_tensor() && number.values().size() == 1 ? number.values()[0] : -1;
}

std::string TypesText(const DataTypes& types) {
  std::string text;
  for (const DataType type : types)
    absl::StrAppend(&text, text.empty() ? "" : ", ", DataTypeName(type));
  return absl::StrCat("(", text, ")");
}

bool AllValidOutputs(const Outputs& tensors) {
  for (const Output& tensor : tensors) {
    if (!tensor.valid()) return false;
  }
  return !tensors.empty();
}

bool AllValid(const std::vector<Dataset>& datasets) {
  for (const Dataset& dataset : datasets) {
    if (!dataset.variant().valid()) return false;
  }
  return !datasets.empty();
}

std::optional<ElementSpec> CommonSpec(absl::string_view method,
                                      const std::vector<Dataset>& datasets) {
  if (!AllValid(datasets)) return std::nullopt;
  ElementSpec common = datasets[0].element_spec();
  for (const Dataset& dataset : datasets) {
    if (dataset.types() != common.types) {
      dataset.variant().graph().Fail(InvalidArgument(
          method, ": Incompatible input datasets: ", datasets[0].variant().name(),
          " has elements of types ", TypesText(common.types), ", and ", dataset.variant().name(),
          " of ", TypesText(dataset.types()), ". All must have the same types"));
      return std::nullopt;
    }
    for (size_t i = 0; i < common.shapes.size(); ++i)
      common.shapes[i] = CommonShape(common.shapes[i], dataset.shapes()[i]);
  }
  return common;
}

Dataset ReplicateOnSplit(const Dataset& dataset) {
  if (!dataset.variant().valid()) return {};
  Graph& graph = dataset.variant().graph();
  const NodeScope scope(graph, {}, "RewriteDataset");
  const Output rewrite = Const(graph, "replicate_on_split", "rewrite_name");
  const ElementSpec& spec = dataset.element_spec();
  return Dataset::FromVariant(
      AddOp("RewriteDataset", {dataset.variant(), rewrite}, ElementAttrs(spec), scope.name()),
      spec);
}

namespace {

Outputs MakeArguments(Graph& body, const ElementSpec& spec, const Outputs& captured) {
  Outputs args;
  for (size_t i = 0; i < spec.types.size(); ++i)
    args.push_back(Placeholder(body, spec.types[i], spec.shapes[i], absl::StrCat("args_", i)));
  for (size_t i = 0; i < captured.size(); ++i) {
    args.push_back(
        Placeholder(body, captured[i].dtype(), captured[i].shape(), absl::StrCat("captured_", i)));
  }
  return args;
}

// Returns an error unless the function's results are tensors of its graph.
absl::Status CheckResults(const Graph& body, const Outputs& results) {
  WEIR_RETURN_IF_ERROR(body.status());
  for (const Output& result : results) {
    if (!result.valid()) return InvalidArgument("the function returned an invalid tensor");
    if (&result.graph() != &body) {
      return InvalidArgument("the function returned ", result.name(),
                             ", a tensor from outside of it; list such tensors in `captured`");
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::optional<TracedFunction> TraceFunction(Graph& graph, absl::string_view name,
                                            const ElementSpec& spec, const Outputs& captured,
                                            const ElementFn& build) {
  if (!graph.status().ok()) return std::nullopt;
  if (build == nullptr) {
    graph.Fail(InvalidArgument(name, ": the function is empty"));
    return std::nullopt;
  }
  for (const Output& tensor : captured) {
    if (tensor.valid()) continue;
    graph.Fail(InvalidArgument(name, ": a captured tensor is invalid"));
    return std::nullopt;
  }
  Graph body(graph.ops(), graph.options());
  body.versions() = graph.versions();
  body.set_functions(graph.functions());
  body.set_seed(graph.seed());
  const Outputs args = MakeArguments(body, spec, captured);
  const Outputs built = build(args);
  absl::Status status = CheckResults(body, built);
  TracedFunction traced;
  Outputs results;
  std::vector<Operation> effects;
  if (status.ok()) {
    for (const Output& result : built) results.push_back(Identity(result));
    for (const Output& result : results) {
      traced.results.types.push_back(result.dtype());
      traced.results.shapes.push_back(result.shape());
    }
    for (const auto& node : body.nodes()) {
      if (node->op().stateful()) effects.emplace_back(node.get());
    }
    const auto& library = body.functions();
    traced.ref.name =
        absl::StrCat("__inference_", name, "_", library == nullptr ? 0 : library->Names().size());
    traced.ref.attrs = std::make_shared<AttrMap>(AttrMap{{"_tf_data_function", AttrValue(true)}});
    status = DefineFunction(graph, traced.ref.name, body, args, results, effects);
  }
  if (!status.ok()) {
    graph.Fail(Annotate(status, name));
    return std::nullopt;
  }
  return traced;
}

std::optional<TracedFunction> TraceDatasetFunction(Graph& graph, absl::string_view name,
                                                   const ElementSpec& spec, const Outputs& captured,
                                                   const DatasetFn& build) {
  ElementSpec elements;
  ElementFn fn;
  if (build != nullptr) {
    fn = [&](const Outputs& args) {
      const Dataset dataset = build(args);
      elements = dataset.element_spec();
      return Outputs{dataset.variant()};
    };
  }
  std::optional<TracedFunction> traced = TraceFunction(graph, name, spec, captured, fn);
  if (traced) traced->results = elements;
  return traced;
}

std::optional<TracedFunction> TraceScalarFunction(Graph& graph, absl::string_view name,
                                                  const ElementSpec& spec, const Outputs& captured,
                                                  DataType result, const KeyFn& build) {
  ElementFn fn;
  if (build != nullptr) fn = [&](const Outputs& args) { return Outputs{build(args)}; };
  std::optional<TracedFunction> traced = TraceFunction(graph, name, spec, captured, fn);
  if (!traced) return std::nullopt;
  const DataType type = traced->results.types[0];
  const Shape& shape = traced->results.shapes[0];
  if (type == result && shape.IsCompatibleWith(Shape())) return traced;
  graph.Fail(InvalidArgument(name, ": the function must return a ", DataTypeName(result),
                             " scalar tensor, but it returns ", DataTypeName(type), " of shape ",
                             shape.ToString()));
  return std::nullopt;
}

}  // namespace weir
