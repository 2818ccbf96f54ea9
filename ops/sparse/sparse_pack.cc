#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/ranked_internal.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/sparse/sparse_internal.h"

// Sparse tensors serialized into dense ones, stored under handles, and accumulated over steps.
namespace weir {

namespace {

template <int kRank>
absl::Status PackedShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(SparseRank(c, 0).status());
  c.set_output(0, kRank == 1 ? Shape({3}) : Shape({Shape::kUnknown, 3}));
  return absl::OkStatus();
}

// A tensor of handles with `kRank` dimensions of unknown extent.
template <int kRank>
absl::Status HandlesShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(SparseRank(c, 0).status());
  c.set_output(0, UnknownDims(kRank));
  return absl::OkStatus();
}

constexpr char kSparseInput[] = "sparse_indices: int64, sparse_values: T, sparse_shape: int64";
constexpr char kSparseOutput[] = "sparse_indices: int64, sparse_values: dtype, sparse_shape: int64";

OpSpec SerializeSpec(absl::string_view op, ShapeFn shape, absl::string_view doc) {
  return OpSpec(op)
      .In(kSparseInput)
      .Out("serialized_sparse: out_type")
      .Attr("T: type")
      .Attr("out_type: {string, variant} = DT_STRING")
      .InferShape(std::move(shape))
      .Doc(doc);
}

OpSpec MapSpec(absl::string_view op, absl::string_view in, absl::string_view out,
               absl::string_view type, ShapeFn shape, absl::string_view doc) {
  return OpSpec(op)
      .In(in)
      .Out(out)
      .Attr(type)
      .Attr("container: string = ''")
      .Attr("shared_name: string = ''")
      .Stateful()
      .InferShape(std::move(shape))
      .Doc(doc);
}

}  // namespace

void AddSparsePackOps(OpRegistry* ops) {
  ops->Add(SerializeSpec("SerializeSparse", PackedShape<1>,
                         "Serializes a sparse tensor to three strings or variants."));
  ops->Add(SerializeSpec(
      "SerializeManySparse", PackedShape<2>,
      "Serializes each row of a sparse tensor's first dimension to three strings or variants."));
  ops->Add(OpSpec("DeserializeSparse")
               .In("serialized_sparse: Tserialized")
               .Out(kSparseOutput)
               .Attr("dtype: type")
               .Attr("Tserialized: {string, variant} = DT_STRING")
               .InferShape(Ranked("serialized_sparse: >=1", AnySparseOutputs))
               .Doc("Deserializes the sparse tensors of SerializeSparse and stacks them along the "
                    "dimensions of the input but the last."));
  ops->Add(OpSpec("DeserializeManySparse")
               .In("serialized_sparse: string")
               .Out(kSparseOutput)
               .Attr("dtype: type")
               .InferShape(Ranked("serialized_sparse: 2", AnySparseOutputs))
               .Doc("Deserializes and concatenates the rows of SerializeManySparse."));
  ops->Add(MapSpec("AddSparseToTensorsMap", kSparseInput, "sparse_handle: int64", "T: type",
                   HandlesShape<0>, "Stores a sparse tensor in a map and returns its handle."));
  ops->Add(MapSpec(
      "AddManySparseToTensorsMap", kSparseInput, "sparse_handles: int64", "T: type",
      HandlesShape<1>,
      "Stores each row of a sparse tensor's first dimension in a map and returns the handles."));
  ops->Add(
      MapSpec("TakeManySparseFromTensorsMap", "sparse_handles: int64", kSparseOutput, "dtype: type",
              Ranked("sparse_handles: 1", AnySparseOutputs),
              "Removes the sparse tensors with the given handles from their map and stacks them."));
}

// ---- builders

Output SerializeSparse(const SparseTensor& x, DataType out_type, absl::string_view name) {
  return AddOp("SerializeSparse", {x.indices, x.values, x.dense_shape}, {{"out_type", out_type}},
               name);
}
Output SerializeManySparse(const SparseTensor& x, DataType out_type, absl::string_view name) {
  return AddOp("SerializeManySparse", {x.indices, x.values, x.dense_shape},
               {{"out_type", out_type}}, name);
}
SparseTensor DeserializeSparse(Output serialized, DataType dtype, absl::string_view name) {
  return WrappedOutputs(AddNode("DeserializeSparse", {serialized}, {{"dtype", dtype}}, name));
}
SparseTensor DeserializeManySparse(Output serialized, DataType dtype, absl::string_view name) {
  return WrappedOutputs(AddNode("DeserializeManySparse", {serialized}, {{"dtype", dtype}}, name));
}

SparseConditionalAccumulator::SparseConditionalAccumulator(
    Graph& graph, DataType dtype, const ConditionalAccumulatorOptions& options,
    absl::string_view name)
    : dtype_(dtype) {
  const bool mean = options.reduction == ConditionalAccumulatorOptions::Reduction::kMean;
  handle_ = Output(AddNode(graph, "SparseConditionalAccumulator", {},
                           {{"dtype", dtype},
                            {"shape", options.shape},
                            {"shared_name", options.shared_name},
                            {"container", graph.context().container},
                            {"reduction_type", mean ? "MEAN" : "SUM"}},
                           name.empty() ? "sparse_conditional_accumulator" : name));
}

Operation SparseConditionalAccumulator::ApplyGradient(const IndexedSlices& gradient,
                                                      Output local_step, absl::string_view name) {
  if (!handle_.valid() || !gradient.indices.valid()) return {};
  const bool has_shape = gradient.dense_shape.valid();
  const Output indices = Cast(gradient.indices, DT_INT64);
  const Output shape = has_shape ? Cast(gradient.dense_shape, DT_INT64)
                                 : Const(handle_.graph(), Tensor(DT_INT64, Shape({0})), "Cast");
  const ColocateWith place(handle_.graph(), handle_.node);
  return Operation(AddNode("SparseAccumulatorApplyGradient",
                           {handle_, local_step, indices, gradient.values, shape},
                           {{"has_known_shape", has_shape}}, name));
}

IndexedSlices SparseConditionalAccumulator::TakeGradient(Output num_required,
                                                         absl::string_view name) {
  if (!handle_.valid()) return {};
  const ColocateWith place(handle_.graph(), handle_.node);
  const Outputs r = AllOutputs(
      AddNode("SparseAccumulatorTakeGradient", {handle_, num_required}, {{"dtype", dtype_}}, name),
      3);
  return {.values = r[1], .indices = r[0], .dense_shape = r[2]};
}

Output SparseConditionalAccumulator::NumAccumulated(absl::string_view name) {
  if (!handle_.valid()) return {};
  const std::string fallback = absl::StrCat(handle_.node->name(), "_NumAccumulated");
  const ColocateWith place(handle_.graph(), handle_.node);
  return AddOp("AccumulatorNumAccumulated", {handle_}, {},
               name.empty() ? absl::string_view(fallback) : name);
}

Operation SparseConditionalAccumulator::SetGlobalStep(Output step, absl::string_view name) {
  if (!handle_.valid()) return {};
  const ColocateWith place(handle_.graph(), handle_.node);
  return Operation(AddNode("AccumulatorSetGlobalStep", {handle_, step}, {}, name));
}

}  // namespace weir
