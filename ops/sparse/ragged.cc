#include "weir/ops/sparse/ragged.h"

#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/boolean_mask.h"
#include "weir/ops/lib/math_internal.h"
#include "weir/ops/lib/ranked_internal.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/sparse/sparse_internal.h"

namespace weir {

// ---- builders

RaggedTensor RaggedRange(Output starts, Output limits, Output deltas, DataType row_splits_dtype,
                         absl::string_view name) {
  const Outputs r = AllOutputs(
      AddNode("RaggedRange", {starts, limits, deltas}, {{"Tsplits", row_splits_dtype}}, name), 2);
  return {{r[0]}, r[1]};
}

Output RaggedToTensor(const RaggedTensor& x, Output default_value, const std::optional<Ints>& shape,
                      absl::string_view name) {
  if (!x.values.valid()) return {};
  Graph& g = x.values.graph();
  const NameScope scope(g, name.empty() ? "RaggedToTensor" : name);
  if (!default_value.valid()) default_value = Zeros(g, Shape(), x.values.dtype());
  const Output to = shape.value_or(Ints(-1)).In(g, "Const", DT_INT64);
  const std::vector<std::string> types(x.nested_splits.size(), "ROW_SPLITS");
  return AddOp("RaggedTensorToTensor", {to, x.values, default_value, x.nested_splits},
               {{"row_partition_types", types}});
}

SparseTensor RaggedToSparse(const RaggedTensor& x, absl::string_view name) {
  if (!x.values.valid()) return {};
  const NameScope scope(x.values.graph(), name.empty() ? "RaggedToSparse" : name);
  const SparseTensor r =
      SparseOutputs(AddNode("RaggedTensorToSparse", {x.nested_splits, x.values}));
  return MakeSparseTensor(r.indices, r.values, r.dense_shape);
}

RaggedTensor RaggedGather(const RaggedTensor& params, Output indices, absl::string_view name) {
  if (!indices.valid()) return {Outputs(params.nested_splits.size()), Output()};
  const size_t depth = params.nested_splits.size() + std::max(indices.shape().rank(), 0) - 1;
  Node* const node = AddNode("RaggedGather", {params.nested_splits, params.values, indices},
                             {{"OUTPUT_RAGGED_RANK", static_cast<int64_t>(depth)}}, name);
  Outputs r = AllOutputs(node, depth + 1);
  const Output values = r.back();
  r.pop_back();
  return {std::move(r), values};
}

namespace {

constexpr char kFirstDimSize[] = "FIRST_DIM_SIZE";

// ---- shape functions

absl::Status ToSparseShape(ShapeContext& c) {
  const int depth = c.num_inputs() - 1;
  for (int k = 0; k < depth; ++k) WEIR_RETURN_IF_ERROR(c.WithRank(k, 1).status());
  WEIR_ASSIGN_OR_RETURN(const Shape values, c.WithRankAtLeast(depth, 1));
  const int64_t rank = values.has_rank() ? depth + values.rank() : Shape::kUnknown;
  return SetSparseOutputs(c, values.num_elements(), rank);
}

absl::Status RangeShape(ShapeContext& c) {
  int64_t rows = Shape::kUnknown;
  bool all_scalars = true;
  for (int i = 0; i < 3; ++i) {
    WEIR_ASSIGN_OR_RETURN(const Shape shape, c.WithRankAtMost(i, 1));
    if (shape.rank() == 1) {
      WEIR_ASSIGN_OR_RETURN(rows, MergeDims(rows, shape.dim(0)));
    }
    all_scalars = all_scalars && shape.rank() == 0;
  }
  WEIR_ASSIGN_OR_RETURN(const int64_t splits, AddDims(all_scalars ? 1 : rows, 1));
  c.set_output(0, Shape({splits}));
  c.set_output(1, UnknownDims(1));
  return absl::OkStatus();
}

absl::Status GatherShape(ShapeContext& c) {
  const int depth = c.num_inputs() - 2, splits = c.num_outputs() - 1;
  for (int k = 0; k < depth; ++k) WEIR_RETURN_IF_ERROR(c.WithRank(k, 1).status());
  WEIR_ASSIGN_OR_RETURN(const Shape values, c.WithRankAtLeast(depth, 1));
  WEIR_RETURN_IF_ERROR(c.WithRank(depth + 1, splits - depth + 1).status());
  for (int k = 0; k < splits; ++k) c.set_output(k, UnknownDims(1));
  if (values.has_rank()) c.set_output(splits, Shape({Shape::kUnknown}).Concatenate(values.Sub(1)));
  return absl::OkStatus();
}

absl::Status CheckPartitions(const ShapeContext& c, const std::vector<std::string>& types) {
  constexpr int kFirst = 3;
  const int count = c.num_inputs() - kFirst;
  if (static_cast<int>(types.size()) != count) {
    return InvalidArgument("Number of row partition tensors (", count,
                           ") does not equal the number of row partition types(", types.size(),
                           ").");
  }
  for (int k = 0; k < count; ++k) {
    const bool is_size = types[k] == kFirstDimSize;
    if (is_size && k > 0) return InvalidArgument(kFirstDimSize, " must be first");
    const Shape& partition = c.input(kFirst + k);
    if (!partition.has_rank() || partition.rank() == (is_size ? 0 : 1)) continue;
    return is_size ? InvalidArgument(kFirstDimSize, " must be a scalar.")
                   : InvalidArgument("Row partition must be a vector.");
  }
  return absl::OkStatus();
}

absl::Status ToTensorShape(ShapeContext& c) {
  const auto types = c.attr<std::vector<std::string>>("row_partition_types");
  if (types.empty()) return InvalidArgument("No row_partition_types given.");
  WEIR_RETURN_IF_ERROR(CheckPartitions(c, types));
  const int depth = static_cast<int>(types.size()) - (types[0] == kFirstDimSize ? 1 : 0);
  const Shape& values = c.input(1);
  Shape shape = Shape::UnknownRank();
  if (c.input(0).rank() == 1) {
    WEIR_ASSIGN_OR_RETURN(shape, c.InputAsShape(0));
    if (!shape.has_rank() && c.input(0).dim(0) >= 0) shape = UnknownDims(c.input(0).dim(0));
  }
  if (values.has_rank()) {
    Shape of_values = UnknownDims(depth + 1);
    if (values.rank() > 0) of_values = of_values.Concatenate(values.Sub(1));
    WEIR_ASSIGN_OR_RETURN(shape, shape.MergeWith(of_values));
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status ToVariantShape(ShapeContext& c) {
  const int depth = c.num_inputs() - 1;
  for (int k = 0; k < depth; ++k) WEIR_RETURN_IF_ERROR(c.WithRank(k, 1).status());
  if (!c.attr<bool>("batched_input")) {
    c.set_output(0, Shape());
  } else if (depth > 0) {
    const int64_t splits = c.input(0).dim(0);
    c.set_output(0, Shape({splits > 0 ? splits - 1 : Shape::kUnknown}));
  } else {
    WEIR_ASSIGN_OR_RETURN(const Shape values, c.WithRankAtLeast(0, 1));
    c.set_output(0, Shape({values.dim(0)}));
  }
  return absl::OkStatus();
}

absl::Status FromVariantShape(ShapeContext& c) {
  const int splits = c.num_outputs() - 1;
  const int64_t inner = c.attr<int64_t>("input_ragged_rank");
  if (inner >= 0 && splits >= inner) {
    WEIR_RETURN_IF_ERROR(c.WithRank(0, splits - static_cast<int>(inner)).status());
  } else if (inner >= 0 && c.input(0).has_rank()) {
    return InvalidArgument("Shape must be rank ", splits - inner, " but is rank ",
                           c.input(0).rank());
  }
  for (int k = 0; k < splits; ++k) c.set_output(k, UnknownDims(1));
  return absl::OkStatus();
}

absl::Status VariantGradientShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(Shape shape, RequestedShape(c, 2));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

absl::Status FillEmptyRowsShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape rows, c.WithRank(0, 1));
  WEIR_ASSIGN_OR_RETURN(const Shape values, c.WithRank(1, 1));
  WEIR_RETURN_IF_ERROR(c.WithRank(2, 0).status());
  WEIR_RETURN_IF_ERROR(c.WithRank(3, 0).status());
  WEIR_ASSIGN_OR_RETURN(const int64_t count, MergeDims(rows.dim(0), values.dim(0)));
  const auto nrows = KnownInts(c, 2);
  c.set_all_outputs(UnknownDims(1));
  if (nrows.has_value() && (*nrows)[0] >= 0) c.set_output(2, Shape({(*nrows)[0]}));
  c.set_output(3, Shape({count}));
  return absl::OkStatus();
}

// ---- gradients

Grads ToSparseGradient(GradContext& g) {
  Grads out(g.num_inputs());
  out.back() = Reshape(g.dy(1), ShapeVector(g.x(g.num_inputs() - 1)));
  return out;
}

// Returns rank(value) not counting leading dimensions of 1.
Ints RankWithoutLeadingOnes(const Output& value) {
  const Shape& shape = value.shape();
  int ones = 0;
  while (shape.has_rank() && ones < shape.rank() && shape.dim(ones) == 1) ++ones;
  const bool is_static =
      shape.has_rank() && (ones == shape.rank() || shape.dim(ones) != Shape::kUnknown);
  if (is_static) return shape.rank() - ones;
  const Output is_one = Cast(Equal(ShapeVector(value), 1), DT_INT32);
  const Output leading = ReduceSum(Cumprod(is_one));
  return Rank(value) - leading;
}

// Packs the indices of the values into a tensor in the same way as the values, so that each element
// says where it comes from. -1 marks the default value.
Grads ToTensorGradient(GradContext& g) {
  const Output values = g.x(1), value = g.x(2);
  const auto types = g.attr<std::vector<std::string>>("row_partition_types");
  const int64_t depth =
      static_cast<int64_t>(types.size()) - (!types.empty() && types[0] == kFirstDimSize ? 1 : 0);
  const Output shape = ShapeVector(values);
  Outputs partitions;
  for (int i = 3; i < g.num_inputs(); ++i) partitions.push_back(g.x(i));
  const Output to = StridedSlice(ShapeVector(g.dy()), {Index::Range(std::nullopt, 1 + depth)});
  const Output rows = Range(g.graph(), 0, StridedSlice(shape, {Index(0)}), 1);
  Node* const places = AddNode(
      "RaggedTensorToTensor",
      {to, rows, Const(g.graph(), int32_t{-1}, "RaggedTensorToTensor/default_value"), partitions},
      {{"row_partition_types", types}});
  if (places == nullptr) return Grads(g.num_inputs());
  const Output at = places->output(), mask = NotEqual(at, -1);
  Grads out(g.num_inputs());
  out[1] = IndexedSlices{
      .values = BooleanMask(g.dy(), mask), .indices = BooleanMask(at, mask), .dense_shape = shape};
  const Output defaults = BooleanMask(g.dy(), LogicalNot(mask));
  const Ints rank = RankWithoutLeadingOnes(value);
  const Output extra = rank.is_tensor() ? Rank(defaults) - rank.tensor()
                                        : Rank(defaults) - static_cast<int32_t>(rank.values()[0]);
  const Output sum = ReduceSum(defaults, Range(g.graph(), 0, extra, 1));
  out[2] = Reshape(sum, ShapeVector(value));
  return out;
}

Grads FromVariantGradient(GradContext& g) {
  const int depth = g.node().num_outputs() - 1, rank = g.x(0).shape().rank();
  if (rank > 1) {
    g.graph().Fail(InvalidArgument(
        "Unable to compute gradient: RaggedTensorToVariant can currently only generate 0D or 1D "
        "output."));
    return {Grad()};
  }
  Outputs splits;
  for (int k = 0; k < depth; ++k) splits.push_back(g.y(k));
  Attrs attrs = {{"batched_input", rank == 1 || (rank < 0 && depth > 0)}};
  return {AddOp("RaggedTensorToVariant", {splits, g.dy(depth)}, attrs)};
}

Grads ToVariantGradient(GradContext& g) {
  const int depth = g.num_inputs() - 1;
  const Output values = g.x(depth);
  const Output splits =
      depth > 0 ? g.x(0) : Const(g.graph(), int64_t{0}, "RaggedTensorToVariantGradient/row_splits");
  Grads out(g.num_inputs());
  out[depth] = AddOp("RaggedTensorToVariantGradient", {g.dy(), splits, ShapeVector(values)},
                     {{"Tvalues", values.dtype()}});
  return out;
}

// Returns the splits of the outermost dimension, counted in rows of the values.
Output FlatSplits(GradContext& g, int depth) {
  Output splits = g.x(0);
  for (int k = 1; k < depth; ++k) splits = Gather(g.x(k), splits);
  return splits;
}

// Returns the rows of the values that the indices select, in output order.
Grads RaggedGatherGradient(GradContext& g) {
  const int depth = g.num_inputs() - 2;
  const Output values = g.x(depth);
  const Output splits = FlatSplits(g, depth), indices = Reshape(g.x(depth + 1), {-1});
  const Output starts = Gather(splits, indices);
  const Output limits = Gather(StridedSlice(splits, {Index::Range(1, std::nullopt)}), indices);
  if (!starts.valid() || !limits.valid()) return {};
  const Output rows = RaggedRange(starts, limits, ConstLike(starts, 1), splits.dtype(), {}).values;
  Grads out(g.num_inputs());
  out[depth] = IndexedSlices{.values = g.dy(g.node().num_outputs() - 1),
                             .indices = rows,
                             .dense_shape = ShapeVector(values)};
  return out;
}

Grads FillEmptyRowsGradient(GradContext& g) {
  Node* const node = AddNode("RaggedFillEmptyRowsGrad", {g.y(3), g.dy(1)});
  if (node == nullptr) return {};
  return {Grad(), node->output(0), Grad(), node->output(1)};
}

// ---- op definitions

constexpr char kTsplits[] = "Tsplits: {int32, int64} = DT_INT64";

void AddFillOps(OpRegistry* ops) {
  ops->Add(OpSpec("RaggedFillEmptyRows")
               .In("value_rowids: int64, values: T, nrows: int64, default_value: T")
               .Out("output_value_rowids: int64, output_values: T, empty_row_indicator: bool, "
                    "reverse_index_map: int64")
               .Attr("T: type")
               .InferShape(FillEmptyRowsShape)
               .Gradient(FillEmptyRowsGradient)
               .Doc("Adds a default value to each row that has no element. Also returns which rows "
                    "those are, and the new positions of the elements."));
  ops->Add(OpSpec("RaggedFillEmptyRowsGrad")
               .In("reverse_index_map: int64, grad_values: T")
               .Out("d_values: T, d_default_value: T")
               .Attr("T: type")
               .InferShape(FillEmptyRowsGradShape)
               .Doc("Computes the gradient of RaggedFillEmptyRows with respect to the values and "
                    "the default value."));
}

void AddVariantOps(OpRegistry* ops) {
  ops->Add(OpSpec("RaggedTensorToVariant")
               .In("rt_nested_splits: RAGGED_RANK * Tsplits, rt_dense_values: Tvalues")
               .Out("encoded_ragged: variant")
               .Attr("RAGGED_RANK: int >= 0")
               .Attr("Tvalues: type")
               .Attr(kTsplits)
               .Attr("batched_input: bool")
               .InferShape(Ranked("rt_dense_values: >=1", ToVariantShape))
               .Gradient(ToVariantGradient)
               .Doc("Encodes a ragged tensor as a variant, or each of its rows as one."));
  ops->Add(OpSpec("RaggedTensorFromVariant")
               .In("encoded_ragged: variant")
               .Out("output_nested_splits: output_ragged_rank * Tsplits, "
                    "output_dense_values: Tvalues")
               .Attr("input_ragged_rank: int >= -1")
               .Attr("output_ragged_rank: int >= 0")
               .Attr("Tvalues: type")
               .Attr(kTsplits)
               .InferShape(FromVariantShape)
               .Gradient(FromVariantGradient)
               .Doc("Decodes the ragged tensors in a tensor of variants and stacks them."));
  ops->Add(OpSpec("RaggedTensorToVariantGradient")
               .In("encoded_ragged_grad: variant, row_splits: Tsplits, dense_values_shape: int32")
               .Out("dense_values_grad: Tvalues")
               .Attr("Tvalues: type")
               .Attr(kTsplits)
               .InferShape(VariantGradientShape)
               .Doc("Computes the gradient of RaggedTensorToVariant with respect to the values."));
}

}  // namespace

void AddRaggedOps(OpRegistry* ops) {
  ops->Add(OpSpec("RaggedRange")
               .In("starts: T, limits: T, deltas: T")
               .Out("rt_nested_splits: Tsplits, rt_dense_values: T")
               .Attr("T: {bfloat16, float, double, int32, int64} = DT_INT32")
               .Attr(kTsplits)
               .InferShape(RangeShape)
               .Doc("Returns a ragged tensor of sequences of numbers. Each row has its own start, "
                    "limit and delta."));
  ops->Add(OpSpec("RaggedGather")
               .In("params_nested_splits: PARAMS_RAGGED_RANK * Tsplits, "
                   "params_dense_values: Tvalues, indices: Tindices")
               .Out("output_nested_splits: OUTPUT_RAGGED_RANK * Tsplits, "
                    "output_dense_values: Tvalues")
               .Attr("Tvalues: type")
               .Attr("Tindices: {int32, int64}")
               .Attr(kTsplits)
               .Attr("PARAMS_RAGGED_RANK: int >= 1")
               .Attr("OUTPUT_RAGGED_RANK: int >= 0")
               .InferShape(GatherShape)
               .Gradient(RaggedGatherGradient)
               .Doc("Gathers rows of a ragged tensor by their indices."));
  ops->Add(OpSpec("RaggedTensorToSparse")
               .In("rt_nested_splits: RAGGED_RANK * Tsplits, rt_dense_values: T")
               .Out("sparse_indices: int64, sparse_values: T, sparse_dense_shape: int64")
               .Attr("RAGGED_RANK: int >= 1")
               .Attr("T: type")
               .Attr(kTsplits)
               .InferShape(ToSparseShape)
               .Gradient(ToSparseGradient)
               .Doc("Converts a ragged tensor to a sparse tensor."));
  ops->Add(OpSpec("RaggedTensorToTensor")
               .In("shape: Tshape, values: T, default_value: T, "
                   "row_partition_tensors: num_row_partition_tensors * Tindex")
               .Out("result: T")
               .Attr("T: type")
               .Attr("Tindex: {int64, int32}")
               .Attr("Tshape: {int64, int32}")
               .Attr("num_row_partition_tensors: int >= 1")
               .Attr("row_partition_types: list(string)")
               .InferShape(ToTensorShape)
               .Gradient(ToTensorGradient)
               .Doc("Converts a ragged tensor to a dense tensor whose rows are truncated or padded "
                    "with a default value."));
  AddFillOps(ops);
  AddVariantOps(ops);
}

}  // namespace weir
