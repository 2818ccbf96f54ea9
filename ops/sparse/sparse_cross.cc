#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/sparse/sparse_internal.h"

// Feature crosses.
namespace weir {

namespace {

// TensorFlow's default seed of feature crosses.
constexpr int64_t kDefaultHashKey = 0xDECAFCAFFE;

// The arguments shared by all cross ops. Features that are not strings are cast to int64.
struct CrossArgs {
  std::vector<Arg> args;
  bool only_texts = true;
};

CrossArgs CrossArgsOf(const FeatureColumns& columns) {
  CrossArgs out;
  Outputs indices, values, shapes, dense;
  const auto feature = [&out](const Output& x) {
    if (!x.valid() || x.dtype() == DT_STRING) return x;
    out.only_texts = false;
    return Cast(x, DT_INT64);
  };
  for (const SparseTensor& x : columns.sparse) {
    indices.push_back(x.indices);
    values.push_back(feature(x.values));
    shapes.push_back(x.dense_shape);
  }
  for (const Output& x : columns.dense) dense.push_back(feature(x));
  out.args = {indices, values, shapes, dense};
  return out;
}

Graph* GraphOf(const FeatureColumns& columns) {
  for (const SparseTensor& x : columns.sparse) {
    if (x.indices.valid()) return &x.indices.graph();
  }
  for (const Output& x : columns.dense) {
    if (x.valid()) return &x.graph();
  }
  return nullptr;
}

}  // namespace

SparseTensor SparseCross(const FeatureColumns& columns, absl::string_view separator,
                         absl::string_view name) {
  Graph* const graph = GraphOf(columns);
  if (graph == nullptr) return {};
  const Output sep = Const(*graph, std::string(separator));
  CrossArgs cross = CrossArgsOf(columns);
  cross.args.push_back(sep);
  return WrappedOutputs(AddNode("SparseCrossV2", cross.args, {}, name));
}

SparseTensor SparseCrossHashed(const FeatureColumns& columns, int64_t num_buckets,
                               std::optional<int64_t> hash_key, absl::string_view name) {
  const CrossArgs cross = CrossArgsOf(columns);
  return WrappedOutputs(AddNode("SparseCross", cross.args,
                                {{"hashed_output", true},
                                 {"num_buckets", num_buckets},
                                 {"hash_key", hash_key.value_or(kDefaultHashKey)},
                                 {"out_type", DT_INT64},
                                 {"internal_type", cross.only_texts ? DT_STRING : DT_INT64}},
                                name));
}

// ---- op definitions

namespace {

absl::Status CrossShape(ShapeContext& c) { return SetSparseOutputs(c, Shape::kUnknown, 2); }

OpSpec CrossSpec(absl::string_view op, absl::string_view more_inputs, absl::string_view values) {
  return OpSpec(op)
      .In(absl::StrCat("indices: N * int64, values: sparse_types, shapes: N * int64, "
                       "dense_inputs: dense_types",
                       more_inputs))
      .Out(absl::StrCat("output_indices: int64, output_values: ", values, ", output_shape: int64"))
      .Attr("N: int >= 0")
      .InferShape(CrossShape);
}

absl::Status RaggedCrossShape(ShapeContext& c) {
  const auto order = c.attr<std::string>("input_order");
  const auto ragged = c.attr<std::vector<DataType>>("ragged_values_types");
  const auto dense = c.attr<std::vector<DataType>>("dense_types");
  const auto sparse = c.attr<std::vector<DataType>>("sparse_values_types");
  if (ragged.size() + dense.size() + sparse.size() != order.size())
    return InvalidArgument("Invalid length for input_order");
  c.set_output(0, Shape({Shape::kUnknown}));
  const int splits = static_cast<int>(ragged.size());
  int64_t rows = Shape::kUnknown;
  if (splits > 0) {
    WEIR_ASSIGN_OR_RETURN(rows, VectorLength(c, splits));
  } else if (!dense.empty() && c.input(c.num_inputs() - 1).has_rank()) {
    WEIR_ASSIGN_OR_RETURN(const Shape last, c.WithRank(c.num_inputs() - 1, 2));
    WEIR_ASSIGN_OR_RETURN(rows, AddDims(last.dim(0), 1));
  }
  c.set_output(1, Shape({rows}));
  return absl::OkStatus();
}

constexpr char kSparseTypes[] = "sparse_types: list({int64, string}) >= 0";
constexpr char kDenseTypes[] = "dense_types: list({int64, string}) >= 0";

}  // namespace

void AddSparseCrossOps(OpRegistry* ops) {
  ops->Add(CrossSpec("SparseCross", "", "out_type")
               .Attr("hashed_output: bool")
               .Attr("num_buckets: int >= 0")
               .Attr("hash_key: int")
               .Attr(kSparseTypes)
               .Attr(kDenseTypes)
               .Attr("out_type: {int64, string}")
               .Attr("internal_type: {int64, string}")
               .Doc("Returns all combinations of one feature from each column, example by example: "
                    "strings joined by _X_, or hashes."));
  ops->Add(CrossSpec("SparseCrossV2", ", sep: string", "string")
               .Attr(kSparseTypes)
               .Attr(kDenseTypes)
               .Doc("Returns all combinations of one feature from each column, example by example, "
                    "as strings joined by `sep`."));
  ops->Add(CrossSpec("SparseCrossHashed", ", num_buckets: int64, strong_hash: bool, salt: int64",
                     "int64")
               .Attr(kSparseTypes)
               .Attr(kDenseTypes)
               .Doc("Returns hashes of all combinations of one feature from each column, example "
                    "by example. `strong_hash` selects a hash keyed by `salt`."));
  ops->Add(OpSpec("RaggedCross")
               .In("ragged_values: ragged_values_types, ragged_row_splits: ragged_splits_types, "
                   "sparse_indices: Nsparse * int64, sparse_values: sparse_values_types, "
                   "sparse_shape: Nsparse * int64, dense_inputs: dense_types")
               .Out("output_values: out_values_type, output_row_splits: out_row_splits_type")
               .Attr("Nsparse: int >= 0")
               .Attr("input_order: string")
               .Attr("hashed_output: bool")
               .Attr("num_buckets: int >= 0")
               .Attr("hash_key: int")
               .Attr("ragged_values_types: list({int64, string}) >= 0")
               .Attr("ragged_splits_types: list({int32, int64}) >= 0")
               .Attr("sparse_values_types: list({int64, string}) >= 0")
               .Attr("dense_types: list({int64, string}) >= 0")
               .Attr("out_values_type: {int64, string}")
               .Attr("out_row_splits_type: {int32, int64}")
               .InferShape(RaggedCrossShape)
               .NotDifferentiable()
               .Doc("Returns all combinations of one feature from each column as a ragged tensor. "
                    "`input_order` has a letter for each column: R, S or D for ragged, sparse and "
                    "dense ones."));
}

}  // namespace weir
