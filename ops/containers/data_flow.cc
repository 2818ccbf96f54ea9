#include "weir/ops/containers/data_flow.h"

#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/registry.h"

namespace weir {

Outputs DynamicPartition(Output data, Output partitions, int64_t num_partitions,
                         absl::string_view name) {
  Node* n =
      AddNode("DynamicPartition", {data, partitions}, {{"num_partitions", num_partitions}}, name);
  return AllOutputs(n, std::max<int64_t>(num_partitions, 0));
}

Output DynamicStitch(const Outputs& indices, const Outputs& data, absl::string_view name) {
  return AddOp("DynamicStitch", {indices, data}, {}, name);
}

Output ParallelDynamicStitch(const Outputs& indices, const Outputs& data, absl::string_view name) {
  return AddOp("ParallelDynamicStitch", {indices, data}, {}, name);
}

ConditionalAccumulator::ConditionalAccumulator(Graph& graph, DataType dtype,
                                               const ConditionalAccumulatorOptions& options,
                                               absl::string_view name)
    : dtype_(dtype) {
  const char* op =
      options.use_resource ? "ResourceConditionalAccumulator" : "ConditionalAccumulator";
  handle_ = Output(AddNode(
      graph, op, {},
      {{"dtype", dtype},
       {"shape", options.shape},
       {"shared_name", options.shared_name},
       {"container", graph.context().container},
       {"reduction_type",
        options.reduction == ConditionalAccumulatorOptions::Reduction::kMean ? "MEAN" : "SUM"}},
      name.empty() ? "conditional_accumulator" : name));
}

std::string ConditionalAccumulator::Op(absl::string_view suffix) const {
  const bool is_resource = handle_.valid() && handle_.dtype() == DT_RESOURCE;
  return absl::StrCat(is_resource ? "ResourceAccumulator" : "Accumulator", suffix);
}

Operation ConditionalAccumulator::ApplyGradient(Output gradient, Output local_step,
                                                absl::string_view name) {
  return Operation(AddNode(Op("ApplyGradient"), {handle_, local_step, gradient}, {}, name));
}

Output ConditionalAccumulator::TakeGradient(Output num_required, absl::string_view name) {
  return AddOp(Op("TakeGradient"), {handle_, num_required}, {{"dtype", dtype_}}, name);
}

Output ConditionalAccumulator::NumAccumulated(absl::string_view name) {
  if (!handle_.valid()) return {};
  const std::string fallback = absl::StrCat(handle_.node->name(), "_NumAccumulated");
  return AddOp(Op("NumAccumulated"), {handle_}, {},
               name.empty() ? absl::string_view(fallback) : name);
}

Operation ConditionalAccumulator::SetGlobalStep(Output step, absl::string_view name) {
  return Operation(AddNode(Op("SetGlobalStep"), {handle_, step}, {}, name));
}

Output TemporaryVariable(Graph& graph, const Shape& shape, DataType dtype,
                         absl::string_view var_name, absl::string_view name) {
  return Output(AddNode(graph, "TemporaryVariable", {},
                        {{"shape", shape}, {"dtype", dtype}, {"var_name", var_name}}, name));
}

Output DestroyTemporaryVariable(Output ref, absl::string_view var_name, absl::string_view name) {
  return AddOp("DestroyTemporaryVariable", {ref}, {{"var_name", var_name}}, name);
}

namespace {

// ---- shape functions

bool StartsWith(const Shape& shape, const Shape& prefix) {
  return !shape.has_rank() || !prefix.has_rank() ||
         (shape.rank() >= prefix.rank() && shape.Sub(0, prefix.rank()).IsCompatibleWith(prefix));
}

absl::Status DynamicPartitionShape(ShapeContext& c) {
  const Shape &data = c.input(0), &partitions = c.input(1);
  if (!StartsWith(data, partitions)) {
    return InvalidArgument("data.shape must start with partitions.shape, got data.shape = ",
                           data.ToString(), ", partitions.shape = ", partitions.ToString());
  }
  if (!data.has_rank() || !partitions.has_rank()) return absl::OkStatus();
  c.set_all_outputs(Shape({Shape::kUnknown}).Concatenate(data.Sub(partitions.rank())));
  return absl::OkStatus();
}

absl::Status DynamicStitchShape(ShapeContext& c) {
  const int n = c.num_inputs() / 2;
  Shape tail = Shape::UnknownRank();
  int64_t highest = -1;
  bool all_known = true;
  for (int i = 0; i < n; ++i) {
    const Shape &indices = c.input(i), &data = c.input(n + i);
    if (!StartsWith(data, indices)) {
      return InvalidArgument("data[", i, "].shape = ", data.ToString(),
                             " does not start with indices[", i, "].shape = ", indices.ToString());
    }
    if (data.has_rank() && indices.has_rank()) {
      WEIR_ASSIGN_OR_RETURN(tail, tail.MergeWith(data.Sub(indices.rank())));
    }
    const auto values = KnownInts(c, i);
    all_known = all_known && values.has_value();
    for (int64_t v : values.value_or(std::vector<int64_t>())) highest = std::max(highest, v);
  }
  if (tail.has_rank())
    c.set_output(0, Shape({all_known ? highest + 1 : Shape::kUnknown}).Concatenate(tail));
  return absl::OkStatus();
}

// A handle of the reference-typed form is a vector of two strings: container and name.
absl::Status AccumulatorShape(ShapeContext& c) {
  c.set_output(0, c.node().output_type(0) == DT_RESOURCE ? Shape() : Shape({2}));
  return absl::OkStatus();
}

absl::Status ApplyShape(ShapeContext& c) { return c.WithRank(1, 0).status(); }

absl::Status TakeShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  return UnknownShape(c);
}

absl::Status TakeRowsShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  c.set_output(0, UnknownDims(1));
  c.set_output(2, UnknownDims(1));
  return absl::OkStatus();
}

OpSpec NewAccumulator(absl::string_view op, absl::string_view handle) {
  return OpSpec(op)
      .Out(handle)
      .Attr("dtype: numbertype")
      .Attr("shape: shape")
      .Attr("container: string = ''")
      .Attr("shared_name: string = ''")
      .Attr("reduction_type: {'MEAN', 'SUM'} = 'MEAN'")
      .Stateful()
      .InferShape(AccumulatorShape);
}

absl::Status TemporaryVariableShape(ShapeContext& c) {
  c.set_output(0, c.attr<Shape>("shape"));
  return absl::OkStatus();
}

// ---- gradients

// Partitions the indices of the slices like the slices themselves; stitching with these indices
// restores the order of the gradients.
Grads DynamicPartitionGradient(GradContext& g) {
  const int64_t n = g.attr<int64_t>("num_partitions");
  const Output prefix = ShapeTensor(g.x(1));
  const Output numbers = Reshape(RangeOp(g.graph(), 0, ProdOp(prefix, {0}), 1), prefix);
  Outputs dys;
  for (int i = 0; i < n; ++i) dys.push_back(g.dy(i));
  const Output whole = ParallelDynamicStitch(DynamicPartition(numbers, g.x(1), n), dys);
  return {Reshape(whole, ShapeTensor(g.x(0)))};
}

Grads DynamicStitchGradient(GradContext& g) {
  const int n = g.num_inputs() / 2;
  Grads out(n);
  for (int i = 0; i < n; ++i) out.push_back(Gather(g.dy(), g.x(i)));
  return out;
}

}  // namespace

void AddDataFlowOps(OpRegistry* ops) {
  ops->Add(OpSpec("DynamicPartition")
               .In("data: T, partitions: int32")
               .Out("outputs: num_partitions * T")
               .Attr("num_partitions: int >= 1")
               .Attr("T: type")
               .Moves(Movement::kRearrange)
               .InferShape(DynamicPartitionShape)
               .Gradient(DynamicPartitionGradient)
               .Doc("Partitions `data`: output p contains the slices whose entry in `partitions` "
                    "is p, in order."));
  ops->Add(OpSpec("DynamicStitch")
               .In("indices: N * int32, data: N * T")
               .Out("merged: T")
               .Attr("N: int >= 1")
               .Attr("T: type")
               .Moves(Movement::kRearrange)
               .InferShape(DynamicStitchShape)
               .Gradient(DynamicStitchGradient)
               .Doc("Returns a tensor whose row indices[m][i] is data[m][i]. The last of equal "
                    "indices wins."));
  ops->Add(OpSpec("ParallelDynamicStitch")
               .In("indices: N * int32, data: N * T")
               .Out("merged: T")
               .Attr("N: int >= 1")
               .Attr("T: type")
               .Moves(Movement::kRearrange)
               .InferShape(DynamicStitchShape)
               .Gradient(DynamicStitchGradient)
               .Doc("Returns a tensor whose row indices[m][i] is data[m][i]. Which of equal "
                    "indices wins is unspecified."));
  ops->Add(NewAccumulator("ConditionalAccumulator", "handle: Ref(string)")
               .Doc("Returns a handle to an accumulator of gradients over several steps. Stale "
                    "gradients are dropped."));
  ops->Add(OpSpec("AccumulatorApplyGradient")
               .In("handle: Ref(string), local_step: int64, gradient: dtype")
               .Attr("dtype: numbertype")
               .InferShape(ApplyShape)
               .Doc("Adds a gradient to an accumulator, unless its step is less than the "
                    "accumulator's."));
  ops->Add(OpSpec("AccumulatorNumAccumulated")
               .In("handle: Ref(string)")
               .Out("num_accumulated: int32")
               .InferShape(ScalarShape)
               .Doc("Returns the number of gradients added since the last TakeGradient."));
  ops->Add(OpSpec("AccumulatorSetGlobalStep")
               .In("handle: Ref(string), new_global_step: int64")
               .InferShape(ApplyShape)
               .Doc("Sets the step of the accumulator."));
  ops->Add(OpSpec("AccumulatorTakeGradient")
               .In("handle: Ref(string), num_required: int32")
               .Out("average: dtype")
               .Attr("dtype: numbertype")
               .Waits(WaitsFor::kValue)
               .InferShape(TakeShape)
               .Doc("Waits for `num_required` gradients and returns their mean (or sum). Resets "
                    "the accumulator and increments its step."));
  ops->Add(NewAccumulator("SparseConditionalAccumulator", "handle: Ref(string)")
               .Doc("Returns a handle to an accumulator of sparse gradients over several steps. "
                    "Stale gradients are dropped."));
  ops->Add(OpSpec("SparseAccumulatorApplyGradient")
               .In("handle: Ref(string), local_step: int64, gradient_indices: int64, "
                   "gradient_values: dtype, gradient_shape: int64")
               .Attr("dtype: numbertype")
               .Attr("has_known_shape: bool")
               .InferShape(ApplyShape)
               .Doc("Adds the rows of a sparse gradient, unless its step is less than the "
                    "accumulator's."));
  ops->Add(OpSpec("SparseAccumulatorTakeGradient")
               .In("handle: Ref(string), num_required: int32")
               .Out("indices: int64, values: dtype, shape: int64")
               .Attr("dtype: numbertype")
               .Waits(WaitsFor::kValue)
               .InferShape(TakeRowsShape)
               .Doc("Waits for `num_required` gradients and returns the mean (or sum) of each row "
                    "that occurs in them. Resets the accumulator and increments its step."));
  ops->Add(NewAccumulator("ResourceConditionalAccumulator", "handle: resource")
               .Doc("Returns a handle to an accumulator of gradients over several steps. Stale "
                    "gradients are dropped."));
  ops->Add(OpSpec("ResourceAccumulatorApplyGradient")
               .In("handle: resource, local_step: int64, gradient: dtype")
               .Attr("dtype: numbertype")
               .Stateful()
               .InferShape(ApplyShape)
               .Doc("Adds a gradient to an accumulator, unless its step is less than the "
                    "accumulator's."));
  ops->Add(OpSpec("ResourceAccumulatorNumAccumulated")
               .In("handle: resource")
               .Out("num_accumulated: int32")
               .Stateful()
               .InferShape(ScalarShape)
               .Doc("Returns the number of gradients added since the last TakeGradient."));
  ops->Add(OpSpec("ResourceAccumulatorSetGlobalStep")
               .In("handle: resource, new_global_step: int64")
               .Stateful()
               .InferShape(ApplyShape)
               .Doc("Sets the step of the accumulator."));
  ops->Add(OpSpec("ResourceAccumulatorTakeGradient")
               .In("handle: resource, num_required: int32")
               .Out("average: dtype")
               .Attr("dtype: numbertype")
               .Stateful()
               .Waits(WaitsFor::kValue)
               .InferShape(TakeShape)
               .Doc("Waits for `num_required` gradients and returns their mean (or sum). Resets "
                    "the accumulator and increments its step."));
  ops->Add(OpSpec("TemporaryVariable")
               .Out("ref: Ref(dtype)")
               .Attr("shape: shape")
               .Attr("dtype: type")
               .Attr("var_name: string = ''")
               .Stateful()
               .InferShape(TemporaryVariableShape)
               .Doc("Returns a reference to memory that exists until DestroyTemporaryVariable, "
                    "within one step."));
  ops->Add(OpSpec("DestroyTemporaryVariable")
               .In("ref: Ref(T)")
               .Out("value: T")
               .Attr("T: type")
               .Attr("var_name: string")
               .InferShape(IdentityShape)
               .Doc("Destroys a temporary variable and returns its last value."));
}

}  // namespace weir
