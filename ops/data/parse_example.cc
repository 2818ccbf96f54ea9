#include <algorithm>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/data/dataset_build_internal.h"
#include "weir/ops/data/parsing.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/ranked_internal.h"
#include "weir/ops/lib/registry.h"

namespace weir {

namespace {

// The values for examples that lack a feature, built as Python's wrapper builds them.
Output DefaultOf(Graph& g, const FixedLenFeature& f) {
  if (!f.default_value.initialized()) return Const(g, Tensor(f.dtype, Shape({0})));
  std::string name = "key_" + f.key;
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && !absl::StrContains("_.-/", c))
      c = '_';
  }
  const Output value = Const(g, f.default_value, name);
  // The value that pads rows is a scalar.
  return f.shape.IsFullyDefined() ? Reshape(value, Ints(f.shape)) : value;
}

template <class Feature>
std::vector<std::string> KeysOf(const std::vector<Feature>& features) {
  std::vector<std::string> keys;
  for (const Feature& f : features) keys.push_back(f.key);
  return keys;
}

}  // namespace

ParsedExamples ParseExample(Output serialized, const std::vector<FixedLenFeature>& dense,
                            const std::vector<VarLenFeature>& sparse, absl::string_view name) {
  ParsedExamples parsed;
  if (!serialized.valid()) {
    parsed.dense.resize(dense.size());
    parsed.sparse.resize(sparse.size());
    return parsed;
  }
  Graph& g = serialized.graph();
  const NameScope outer(g, name.empty() ? "ParseExample" : name);
  Outputs defaults;
  std::vector<Shape> shapes;
  DataTypes dense_types, sparse_types;
  for (const FixedLenFeature& f : dense) {
    defaults.push_back(DefaultOf(g, f));
    shapes.push_back(f.shape);
    dense_types.push_back(f.dtype);
  }
  for (const VarLenFeature& f : sparse) sparse_types.push_back(f.dtype);
  const NameScope scope(g, "ParseExampleV2");
  const auto keys = [&](const std::vector<std::string>& values, absl::string_view arg) {
    return Const(g, Tensor::Vector<std::string>(values), arg);
  };
  const Output names = keys({}, "names"), sparse_keys = keys(KeysOf(sparse), "sparse_keys"),
               dense_keys = keys(KeysOf(dense), "dense_keys"),
               ragged_keys = keys({}, "ragged_keys");
  const size_t s = sparse.size();
  const Outputs r = AllOutputs(
      AddNode("ParseExampleV2", {serialized, names, sparse_keys, dense_keys, ragged_keys, defaults},
              {{"Tdense", dense_types},
               {"num_sparse", static_cast<int64_t>(s)},
               {"sparse_types", sparse_types},
               {"ragged_value_types", DataTypes()},
               {"ragged_split_types", DataTypes()},
               {"dense_shapes", shapes}},
              scope.name()),
      3 * s + dense.size());
  for (size_t i = 0; i < s; ++i) parsed.sparse.push_back({r[i], r[s + i], r[2 * s + i]});
  parsed.dense.assign(r.begin() + static_cast<int64_t>(3 * s), r.end());
  return parsed;
}

Dataset Dataset::ParseExample(const std::vector<FixedLenFeature>& dense,
                              const std::vector<VarLenFeature>& sparse,
                              const Ints& num_parallel_calls,
                              std::optional<bool> deterministic) const {
  if (!variant_.valid()) return {};
  Graph& g = variant_.graph();
  if (types() != DataTypes{DT_STRING} || !shapes()[0].IsCompatibleWith(UnknownDims(1))) {
    g.Fail(InvalidArgument(
        "ParseExample: Input dataset should be a dataset of vectors of strings, "
        "but its elements are ",
        TypesText(types()), " of shape ", shapes()[0].ToString(), "; batch them first"));
    return {};
  }
  // Features are in the order of their keys, as TensorFlow sorts them.
  const auto by_key = [](const auto& a, const auto& b) { return a.key < b.key; };
  std::vector<FixedLenFeature> fixed = dense;
  std::vector<VarLenFeature> variable = sparse;
  std::sort(fixed.begin(), fixed.end(), by_key);
  std::sort(variable.begin(), variable.end(), by_key);
  const int64_t batch = shapes()[0].has_rank() ? shapes()[0].dim(0) : Shape::kUnknown;
  Outputs defaults;
  std::vector<Shape> dense_shapes;
  DataTypes sparse_types;
  std::map<std::string, std::pair<DataType, Shape>> components;
  for (const FixedLenFeature& f : fixed) {
    defaults.push_back(DefaultOf(g, f));
    dense_shapes.push_back(f.shape);
    components[f.key] = {f.dtype, BatchedShapes({f.shape}, batch)[0]};
  }
  for (const VarLenFeature& f : variable) {
    sparse_types.push_back(f.dtype);
    components[f.key] = {DT_VARIANT, Shape::UnknownRank()};
  }
  ElementSpec spec;
  for (const auto& [key, component] : components) {
    spec.types.push_back(component.first);
    spec.shapes.push_back(component.second);
  }
  const NodeScope scope(g, {}, "ParseExampleDatasetV2");
  const Output calls = num_parallel_calls.In(g, "num_parallel_calls", DT_INT64);
  return FromVariant(AddOp("ParseExampleDatasetV2", {variant_, calls, defaults},
                           ElementAttrs(spec, {{"sparse_keys", KeysOf(variable)},
                                               {"dense_keys", KeysOf(fixed)},
                                               {"sparse_types", sparse_types},
                                               {"dense_shapes", dense_shapes},
                                               {"deterministic", DeterminismAttr(deterministic)}}),
                           scope.name()),
                     spec);
}

namespace {

// ---- shape functions

// Checks that counts and keys of features, where these are attributes, match the types.
absl::Status CheckTypeCounts(const ShapeContext& c, const std::string& prefix) {
  const Node& node = c.node();
  for (const char* const kind : {"sparse", "dense"}) {
    const std::string features = absl::StrCat(prefix, kind);
    const auto [first, last] = node.OutputRange(absl::StrCat(features, "_values"));
    const int64_t types = last - first;
    const AttrValue* const attr = node.FindAttr(features + "_keys");
    const auto* const keys = attr == nullptr ? nullptr : attr->get_if<std::vector<std::string>>();
    const int64_t num_keys = attr == nullptr   ? types
                             : keys == nullptr ? 0  // an empty list
                                               : static_cast<int64_t>(keys->size());
    const auto named = node.attr_or<int64_t>("num_" + features, types);
    const auto count = node.attr_or<int64_t>("N" + features, named);
    if (count == types && num_keys == types) continue;
    if (prefix.empty())
      return InvalidArgument("len(", features, "_keys) != len(", features, "_types)");
    return InvalidArgument("num_", features, " (", count, ") must match the size of ", features,
                           "_types (", types, ")");
  }
  return absl::OkStatus();
}

// Sets the output shapes of one set of features; `prefix` is the prefix of their names. `batch` is
// the shape of the batch of examples. Sequence features have one more dimension, for their frames.
absl::Status SetOutputs(ShapeContext& c, const std::string& prefix, const Shape& batch,
                        bool is_sequence) {
  WEIR_RETURN_IF_ERROR(CheckTypeCounts(c, prefix));
  const auto each = [&](const char* name, const Shape& shape) {
    const auto [first, last] = c.node().OutputRange(prefix + name);
    for (int i = first; i < last; ++i) c.set_output(i, shape);
  };
  const auto count = [&](const char* types) {
    return c.node().attr_or<DataTypes>(prefix + types, {}).size();
  };
  if (count("ragged_value_types") != count("ragged_split_types"))
    return InvalidArgument("len(", prefix, "ragged_keys) != len(", prefix, "ragged_split_types)");
  const int64_t rank = batch.has_rank() ? batch.rank() + (is_sequence ? 2 : 1) : Shape::kUnknown;
  const Shape vector({Shape::kUnknown});
  each("sparse_indices", Shape({Shape::kUnknown, rank}));
  each("sparse_values", vector);
  each("sparse_shapes", Shape({rank}));
  const auto shapes =
      c.node().attr_or<std::vector<Shape>>(prefix + "dense_shapes", std::vector<Shape>());
  const auto [first, last] = c.node().OutputRange(prefix + "dense_values");
  if (shapes.size() != static_cast<size_t>(last - first)) {
    return InvalidArgument("len(", prefix, "dense_keys) != len(", prefix, "dense_shapes)");
  }
  const Shape rows = !batch.has_rank() ? batch : is_sequence ? batch.Concatenate(vector) : batch;
  for (int i = first; i < last; ++i) {
    const Shape& row = shapes[i - first];
    if (rows.has_rank() && row.has_rank()) c.set_output(i, rows.Concatenate(row));
  }
  each("dense_lengths", batch);
  each("ragged_values", vector);
  // A single example has no row splits.
  const int64_t examples = batch.rank() == 1 ? batch.dim(0) : Shape::kUnknown;
  const Shape splits({examples < 0 ? Shape::kUnknown : examples + 1});
  each("ragged_row_splits", splits);
  each("ragged_outer_splits", splits);
  each("ragged_inner_splits", vector);
  return absl::OkStatus();
}

// The shape of the batch of examples, whose rank is between kMinRank and kMaxRank: 0, 1, or either.
template <int kMinRank, int kMaxRank>
absl::StatusOr<Shape> BatchShape(ShapeContext& c) {
  if constexpr (kMinRank == kMaxRank) return c.WithRank(0, kMaxRank);
  return c.WithRankAtMost(0, kMaxRank);
}

template <int kMinRank, int kMaxRank>
absl::Status ParseShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape batch, (BatchShape<kMinRank, kMaxRank>(c)));
  return SetOutputs(c, "", batch, false);
}

// Checks that the number of keys, where keys are attributes, matches the other attributes.
absl::Status CheckKeyCounts(const ShapeContext& c) {
  for (const char* const kind :
       {"context_sparse", "context_dense", "feature_list_sparse", "feature_list_dense"}) {
    const std::string keys_name = absl::StrCat(kind, "_keys"), count_name = absl::StrCat("N", kind);
    const std::vector<std::string> none;
    const auto keys = c.node().attr_or<std::vector<std::string>>(keys_name, none);
    const auto count = c.node().attr_or<int64_t>(count_name, 0);
    if (count == static_cast<int64_t>(keys.size())) continue;
    return InvalidArgument("num_", kind, " (", count, ") must match the size of ", keys_name, " (",
                           keys.size(), ")");
  }
  return absl::OkStatus();
}

template <int kMinRank, int kMaxRank>
absl::Status ParseSequenceShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape batch, (BatchShape<kMinRank, kMaxRank>(c)));
  WEIR_RETURN_IF_ERROR(SetOutputs(c, "context_", batch, false));
  return SetOutputs(c, "feature_list_", batch, true);
}

// ---- op definitions

#define WEIR_EXAMPLE_TYPES "list({float, int64, string}) >= 0"
#define WEIR_SPLIT_TYPES "list({int32, int64}) >= 0"

void AddParseExamples(OpRegistry* ops) {
  ops->Add(OpSpec("ParseExample")
               .In("serialized: string, names: string, sparse_keys: Nsparse * string, "
                   "dense_keys: Ndense * string, dense_defaults: Tdense")
               .Out("sparse_indices: Nsparse * int64, sparse_values: sparse_types, "
                    "sparse_shapes: Nsparse * int64, dense_values: Tdense")
               .Attr("Nsparse: int >= 0")
               .Attr("Ndense: int >= 0")
               .Attr("sparse_types: " WEIR_EXAMPLE_TYPES)
               .Attr("Tdense: " WEIR_EXAMPLE_TYPES)
               .Attr("dense_shapes: list(shape) >= 0")
               .InferShape(Ranked("names: 1", ParseShape<1, 1>))
               .NotDifferentiable()
               .Doc("Parses the features of a vector of serialized Examples."));
  ops->Add(OpSpec("ParseExampleV2")
               .In("serialized: string, names: string, sparse_keys: string, dense_keys: string, "
                   "ragged_keys: string, dense_defaults: Tdense")
               .Out("sparse_indices: num_sparse * int64, sparse_values: sparse_types, "
                    "sparse_shapes: num_sparse * int64, dense_values: Tdense, "
                    "ragged_values: ragged_value_types, ragged_row_splits: ragged_split_types")
               .Attr("Tdense: " WEIR_EXAMPLE_TYPES)
               .Attr("num_sparse: int >= 0")
               .Attr("sparse_types: " WEIR_EXAMPLE_TYPES)
               .Attr("ragged_value_types: " WEIR_EXAMPLE_TYPES)
               .Attr("ragged_split_types: " WEIR_SPLIT_TYPES)
               .Attr("dense_shapes: list(shape) >= 0")
               .InferShape(Ranked("names: <=1", ParseShape<0, 1>))
               .NotDifferentiable()
               .Doc("Parses the features of serialized Examples, a vector or a scalar."));
}

void AddParseSingleExample(OpRegistry* ops) {
  ops->Add(OpSpec("ParseSingleExample")
               .In("serialized: string, dense_defaults: Tdense")
               .Out("sparse_indices: num_sparse * int64, sparse_values: sparse_types, "
                    "sparse_shapes: num_sparse * int64, dense_values: Tdense")
               .Attr("num_sparse: int >= 0")
               .Attr("sparse_keys: list(string) >= 0")
               .Attr("dense_keys: list(string) >= 0")
               .Attr("sparse_types: " WEIR_EXAMPLE_TYPES)
               .Attr("Tdense: " WEIR_EXAMPLE_TYPES)
               .Attr("dense_shapes: list(shape) >= 0")
               .InferShape(ParseShape<0, 0>)
               .NotDifferentiable()
               .Doc("Parses the features of one serialized Example."));
}

void AddParseSequenceExample(OpRegistry* ops) {
  ops->Add(OpSpec("ParseSequenceExample")
               .In("serialized: string, debug_name: string, "
                   "context_dense_defaults: Tcontext_dense")
               .Out("context_sparse_indices: Ncontext_sparse * int64, "
                    "context_sparse_values: context_sparse_types, "
                    "context_sparse_shapes: Ncontext_sparse * int64, "
                    "context_dense_values: Tcontext_dense, "
                    "feature_list_sparse_indices: Nfeature_list_sparse * int64, "
                    "feature_list_sparse_values: feature_list_sparse_types, "
                    "feature_list_sparse_shapes: Nfeature_list_sparse * int64, "
                    "feature_list_dense_values: feature_list_dense_types, "
                    "feature_list_dense_lengths: Nfeature_list_dense * int64")
               .Attr("feature_list_dense_missing_assumed_empty: list(string) >= 0")
               .Attr("context_sparse_keys: list(string) >= 0")
               .Attr("context_dense_keys: list(string) >= 0")
               .Attr("feature_list_sparse_keys: list(string) >= 0")
               .Attr("feature_list_dense_keys: list(string) >= 0")
               .Attr("Ncontext_sparse: int >= 0 = 0")
               .Attr("Ncontext_dense: int >= 0 = 0")
               .Attr("Nfeature_list_sparse: int >= 0 = 0")
               .Attr("Nfeature_list_dense: int >= 0 = 0")
               .Attr("context_sparse_types: " WEIR_EXAMPLE_TYPES " = []")
               .Attr("Tcontext_dense: " WEIR_EXAMPLE_TYPES " = []")
               .Attr("feature_list_dense_types: " WEIR_EXAMPLE_TYPES " = []")
               .Attr("context_dense_shapes: list(shape) >= 0 = []")
               .Attr("feature_list_sparse_types: " WEIR_EXAMPLE_TYPES " = []")
               .Attr("feature_list_dense_shapes: list(shape) >= 0 = []")
               .InferShape(Ranked("debug_name: 1",
                                  [](ShapeContext& c) -> absl::Status {
                                    WEIR_RETURN_IF_ERROR(CheckKeyCounts(c));
                                    return ParseSequenceShape<1, 1>(c);
                                  }))
               .NotDifferentiable()
               .Doc("Parses the features of a vector of serialized SequenceExamples."));
}

void AddParseSequenceExampleV2(OpRegistry* ops) {
  ops->Add(OpSpec("ParseSequenceExampleV2")
               .In("serialized: string, debug_name: string, context_sparse_keys: string, "
                   "context_dense_keys: string, context_ragged_keys: string, "
                   "feature_list_sparse_keys: string, feature_list_dense_keys: string, "
                   "feature_list_ragged_keys: string, "
                   "feature_list_dense_missing_assumed_empty: bool, "
                   "context_dense_defaults: Tcontext_dense")
               .Out("context_sparse_indices: Ncontext_sparse * int64, "
                    "context_sparse_values: context_sparse_types, "
                    "context_sparse_shapes: Ncontext_sparse * int64, "
                    "context_dense_values: Tcontext_dense, "
                    "context_ragged_values: context_ragged_value_types, "
                    "context_ragged_row_splits: context_ragged_split_types, "
                    "feature_list_sparse_indices: Nfeature_list_sparse * int64, "
                    "feature_list_sparse_values: feature_list_sparse_types, "
                    "feature_list_sparse_shapes: Nfeature_list_sparse * int64, "
                    "feature_list_dense_values: feature_list_dense_types, "
                    "feature_list_dense_lengths: Nfeature_list_dense * int64, "
                    "feature_list_ragged_values: feature_list_ragged_value_types, "
                    "feature_list_ragged_outer_splits: feature_list_ragged_split_types, "
                    "feature_list_ragged_inner_splits: feature_list_ragged_split_types")
               .Attr("Ncontext_sparse: int >= 0 = 0")
               .Attr("Tcontext_dense: " WEIR_EXAMPLE_TYPES " = []")
               .Attr("context_sparse_types: " WEIR_EXAMPLE_TYPES " = []")
               .Attr("context_ragged_value_types: " WEIR_EXAMPLE_TYPES " = []")
               .Attr("context_ragged_split_types: " WEIR_SPLIT_TYPES " = []")
               .Attr("context_dense_shapes: list(shape) >= 0 = []")
               .Attr("Nfeature_list_sparse: int >= 0 = 0")
               .Attr("Nfeature_list_dense: int >= 0 = 0")
               .Attr("feature_list_dense_types: " WEIR_EXAMPLE_TYPES " = []")
               .Attr("feature_list_sparse_types: " WEIR_EXAMPLE_TYPES " = []")
               .Attr("feature_list_ragged_value_types: " WEIR_EXAMPLE_TYPES " = []")
               .Attr("feature_list_ragged_split_types: " WEIR_SPLIT_TYPES " = []")
               .Attr("feature_list_dense_shapes: list(shape) >= 0 = []")
               .InferShape(Ranked("debug_name: <=1", ParseSequenceShape<0, 1>))
               .NotDifferentiable()
               .Doc("Parses the features of serialized SequenceExamples, a vector or a scalar."));
}

void AddParseSingleSequenceExample(OpRegistry* ops) {
  ops->Add(OpSpec("ParseSingleSequenceExample")
               .In("serialized: string, feature_list_dense_missing_assumed_empty: string, "
                   "context_sparse_keys: Ncontext_sparse * string, "
                   "context_dense_keys: Ncontext_dense * string, "
                   "feature_list_sparse_keys: Nfeature_list_sparse * string, "
                   "feature_list_dense_keys: Nfeature_list_dense * string, "
                   "context_dense_defaults: Tcontext_dense, debug_name: string")
               .Out("context_sparse_indices: Ncontext_sparse * int64, "
                    "context_sparse_values: context_sparse_types, "
                    "context_sparse_shapes: Ncontext_sparse * int64, "
                    "context_dense_values: Tcontext_dense, "
                    "feature_list_sparse_indices: Nfeature_list_sparse * int64, "
                    "feature_list_sparse_values: feature_list_sparse_types, "
                    "feature_list_sparse_shapes: Nfeature_list_sparse * int64, "
                    "feature_list_dense_values: feature_list_dense_types")
               .Attr("Ncontext_sparse: int >= 0 = 0")
               .Attr("Ncontext_dense: int >= 0 = 0")
               .Attr("Nfeature_list_sparse: int >= 0 = 0")
               .Attr("Nfeature_list_dense: int >= 0 = 0")
               .Attr("context_sparse_types: " WEIR_EXAMPLE_TYPES " = []")
               .Attr("Tcontext_dense: " WEIR_EXAMPLE_TYPES " = []")
               .Attr("feature_list_dense_types: " WEIR_EXAMPLE_TYPES " = []")
               .Attr("context_dense_shapes: list(shape) >= 0 = []")
               .Attr("feature_list_sparse_types: " WEIR_EXAMPLE_TYPES " = []")
               .Attr("feature_list_dense_shapes: list(shape) >= 0 = []")
               .InferShape(
                   Ranked("feature_list_dense_missing_assumed_empty: 1", ParseSequenceShape<0, 0>))
               .NotDifferentiable()
               .Doc("Parses the features of one serialized SequenceExample."));
}

#undef WEIR_EXAMPLE_TYPES
#undef WEIR_SPLIT_TYPES

}  // namespace

void AddParseExampleOps(OpRegistry* ops) {
  AddParseExamples(ops);
  AddParseSingleExample(ops);
  AddParseSequenceExample(ops);
  AddParseSequenceExampleV2(ops);
  AddParseSingleSequenceExample(ops);
}

}  // namespace weir
