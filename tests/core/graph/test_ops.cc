#include "weir/tests/core/graph/test_ops.h"

#include "weir/core/graph/shape_context.h"

namespace weir {

namespace {

absl::Status ConstShape(ShapeContext& c) {
  const Tensor value = c.attr<Tensor>("value");
  if (!value.initialized())
    return InvalidArgument(c.node().attr_or<std::string>("_value_error", "no value"));
  c.set_output(0, value.shape());
  return absl::OkStatus();
}

absl::Status AttrShape(ShapeContext& c) {
  c.set_output(0, c.attr<Shape>("shape"));
  return absl::OkStatus();
}

absl::Status MatMulShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape a, c.WithRank(0, 2));
  WEIR_ASSIGN_OR_RETURN(const Shape b, c.WithRank(1, 2));
  WEIR_RETURN_IF_ERROR(MergeDims(a.dim(1), b.dim(0)).status());
  c.set_output(0, Shape({a.dim(0), b.dim(1)}));
  return absl::OkStatus();
}

void AddPlainOps(OpRegistry* ops) {
  ops->Add(OpSpec("Const")
               .Out("output: dtype")
               .Attr("value: tensor")
               .Attr("dtype: type")
               .InferShape(ConstShape));
  ops->Add(OpSpec("Placeholder")
               .Out("output: dtype")
               .Attr("dtype: type")
               .Attr("shape: shape = {unknown_rank: true}")
               .InferShape(AttrShape));
  ops->Add(
      OpSpec("Identity").In("input: T").Out("output: T").Attr("T: type").InferShape(SameShape));
  ops->Add(OpSpec("IdentityN").In("input: T").Out("output: T").Attr("T: list(type) >= 1"));
  ops->Add(OpSpec("Add")
               .In("x: T, y: T")
               .Out("z: T")
               .Attr("T: {float, double, int32}")
               .InferShape(BroadcastShape));
  ops->Add(OpSpec("MatMul")
               .In("a: T, b: T")
               .Out("product: T")
               .Attr("transpose_a: bool = false")
               .Attr("transpose_b: bool = false")
               .Attr("T: {half, float, double, int32}")
               .InferShape(MatMulShape));
  ops->Add(
      OpSpec("AddN").In("inputs: N * T").Out("sum: T").Attr("N: int >= 1").Attr("T: numbertype"));
  ops->Add(OpSpec("Split")
               .In("split_dim: int32, value: T")
               .Out("output: num_split * T")
               .Attr("num_split: int >= 1")
               .Attr("T: type"));
  ops->Add(OpSpec("Sum")
               .In("input: T, reduction_indices: Tidx")
               .Out("output: T")
               .Attr("keep_dims: bool = false")
               .Attr("T: numbertype")
               .Attr("Tidx: {int32, int64} = DT_INT32"));
  ops->Add(OpSpec("NoOp"));
  ops->Add(OpSpec("OldAdd").In("x: T, y: T").Out("z: T").Attr("T: type").Deprecated(9, "Use Add"));
}

void AddStateOps(OpRegistry* ops) {
  ops->Add(OpSpec("VariableV2")
               .Out("ref: Ref(dtype)")
               .Attr("shape: shape")
               .Attr("dtype: type")
               .Attr("container: string = ''")
               .Attr("shared_name: string = ''")
               .Stateful()
               .InferShape(AttrShape));
  ops->Add(OpSpec("Assign")
               .In("ref: Ref(T), value: T")
               .Out("output_ref: Ref(T)")
               .Attr("T: type")
               .Attr("validate_shape: bool = true")
               .Attr("use_locking: bool = true")
               .AllowsUninitializedInput()
               .InferShape(SameShape));
  ops->Add(OpSpec("FIFOQueueV2")
               .Out("handle: resource")
               .Attr("component_types: list(type) >= 1")
               .Attr("shapes: list(shape) >= 0 = []")
               .Attr("capacity: int = -1")
               .Attr("container: string = ''")
               .Attr("shared_name: string = ''")
               .Stateful()
               .InferShape(ScalarShape));
}

void AddLoopOps(OpRegistry* ops) {
  ops->Add(OpSpec("Enter")
               .Flow(ControlFlow::kEnter)
               .In("data: T")
               .Out("output: T")
               .Attr("T: type")
               .Attr("frame_name: string")
               .Attr("is_constant: bool = false")
               .Attr("parallel_iterations: int = 10")
               .InferShape(SameShape));
  ops->Add(OpSpec("Merge")
               .Flow(ControlFlow::kMerge)
               .In("inputs: N * T")
               .Out("output: T, value_index: int32")
               .Attr("T: type")
               .Attr("N: int >= 1"));
  ops->Add(OpSpec("Switch")
               .Flow(ControlFlow::kSwitch)
               .In("data: T, pred: bool")
               .Out("output_false: T, output_true: T")
               .Attr("T: type"));
  ops->Add(OpSpec("NextIteration")
               .Flow(ControlFlow::kNextIteration)
               .In("data: T")
               .Out("output: T")
               .Attr("T: type")
               .InferShape(SameShape));
  ops->Add(OpSpec("LoopCond").Flow(ControlFlow::kLoopCond).In("input: bool").Out("output: bool"));
  ops->Add(OpSpec("Exit")
               .Flow(ControlFlow::kExit)
               .In("data: T")
               .Out("output: T")
               .Attr("T: type")
               .InferShape(SameShape));
}

const OpRegistry* MakeTestOps() {
  auto* ops = new OpRegistry;
  AddPlainOps(ops);
  AddStateOps(ops);
  AddLoopOps(ops);
  return ops;
}

}  // namespace

const OpRegistry& TestOps() {
  static const OpRegistry* const ops = MakeTestOps();
  return *ops;
}

Output Constant(Graph& graph, const Tensor& value, absl::string_view name) {
  return NodeBuilder(graph, "Const")
      .Name(name)
      .Attr("value", value)
      .Attr("dtype", value.dtype())
      .BuildOutput();
}

Output Placeholder(Graph& graph, DataType dtype, const Shape& shape, absl::string_view name) {
  return NodeBuilder(graph, "Placeholder")
      .Name(name)
      .Attr("dtype", dtype)
      .Attr("shape", shape)
      .BuildOutput();
}

}  // namespace weir
