#include "weir/ops/lib/array.h"

#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/lib/shape_values.h"

// Ops that return their input, perhaps checked or with other types.
namespace weir {

// ---- shape functions

namespace {

absl::Status IdentityNShape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) WEIR_RETURN_IF_ERROR(PassShape(c, i, i));
  return absl::OkStatus();
}

absl::Status EnsureShapeShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(Shape merged, c.input(0).MergeWith(c.attr<Shape>("shape")));
  c.set_output(0, std::move(merged));
  return absl::OkStatus();
}

absl::Status BitcastShape(ShapeContext& c) {
  Shape shape = c.input(0);
  const int64_t from = ElementSize(c.attr<DataType>("T")),
                to = ElementSize(c.attr<DataType>("type"));
  if (!shape.has_rank()) return absl::OkStatus();
  if (from < to) {
    if (shape.rank() == 0) {
      return InvalidArgument("Cannot bitcast a scalar of type ",
                             DataTypeName(c.attr<DataType>("T")), " to the larger type ",
                             DataTypeName(c.attr<DataType>("type")));
    }
    if (shape.dim(-1) >= 0 && shape.dim(-1) != to / from) {
      return InvalidArgument("Cannot bitcast: the last dimension of ", shape.ToString(),
                             " must be ", to / from);
    }
    shape.RemoveDim(shape.rank() - 1);
  } else if (from > to) {
    shape.AddDim(from / to);
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// ---- gradients

Grads PreventGradientGradient(GradContext& g) {
  g.graph().Fail(InvalidArgument("Gradient explicitly disabled at ", g.node().Label(),
                                 ". Reason: ", g.attr<std::string>("message")));
  return {};
}

Grads EnsureShapeGradient(GradContext& g) { return {g.dy()}; }

Grads CheckNumericsGradient(GradContext& g) {
  const std::string message =
      absl::StrCat("Not a number (NaN) or infinity (Inf) values detected in gradient. ",
                   g.attr<std::string>("message"));
  return {AddOp(g.node().op_name(), {g.dy()}, {{"message", message}})};
}

// What TensorFlow's debugger inserts into graphs. Its watch lists mean nothing here.
void AddDebugIdentities(OpRegistry* ops) {
  for (const char* op : {"Copy", "CopyHost"}) {
    ops->Add(OpSpec(op)
                 .In("input: T")
                 .Out("output: T")
                 .Attr("T: type")
                 .Attr("tensor_name: string = ''")
                 .Attr("debug_ops_spec: list(string) = []")
                 .AllowsUninitializedInput()
                 .Moves(Movement::kIdentity)
                 .InferShape(IdentityShape)
                 .Doc("Returns a copy of the input. TensorFlow's debugger inserts it."));
  }
  ops->Add(OpSpec("DebugGradientIdentity")
               .In("input: T")
               .Out("output: T")
               .Attr("T: type")
               .AllowsUninitializedInput()
               .Moves(Movement::kIdentity)
               .InferShape(IdentityShape)
               .Gradient(PassGradient)
               .Doc("Returns the input. TensorFlow's debugger inserts it to watch a gradient."));
}

}  // namespace

void AddArrayIdentityOps(OpRegistry* ops) {
  AddDebugIdentities(ops);
  ops->Add(OpSpec("Identity")
               .In("input: T")
               .Out("output: T")
               .Attr("T: type")
               .Moves(Movement::kIdentity)
               .Rows(RowRule::kChannels)
               .ShapeValue(ForwardedShapeValue)
               .InferShape(IdentityShape)
               .Gradient(PassGradient)
               .Doc("Returns the input unchanged."));
  ops->Add(OpSpec("IdentityN")
               .In("input: T")
               .Out("output: T")
               .Attr("T: list(type) >= 1")
               .Moves(Movement::kIdentity)
               .InferShape(IdentityNShape)
               .Gradient(PassAllGradients)
               .Doc("Returns the inputs unchanged."));
  ops->Add(OpSpec("Snapshot")
               .In("input: T")
               .Out("output: T")
               .Attr("T: type")
               .Moves(Movement::kIdentity)
               .InferShape(SameShape)
               .Doc("Returns a copy of the input."));
  ops->Add(OpSpec("StopGradient")
               .In("input: T")
               .Out("output: T")
               .Attr("T: type")
               .Moves(Movement::kIdentity)
               .InferShape(SameShape)
               .NotDifferentiable()
               .Doc("Returns the input and stops the gradient."));
  ops->Add(OpSpec("PreventGradient")
               .In("input: T")
               .Out("output: T")
               .Attr("T: type")
               .Attr("message: string = ''")
               .Moves(Movement::kIdentity)
               .InferShape(SameShape)
               .Gradient(PreventGradientGradient)
               .Doc("Returns the input. Differentiating through it is an error that contains "
                    "`message`."));
  ops->Add(OpSpec("GuaranteeConst")
               .In("input: T")
               .Out("output: T")
               .Attr("T: type")
               .Stateful()
               .InferShape(IdentityShape)
               .Doc("Returns the input, with a promise that it is the same in every run."));
  ops->Add(OpSpec("DeepCopy")
               .In("x: T")
               .Out("y: T")
               .Attr("T: type")
               .Stateful()
               .Moves(Movement::kRearrange)
               .InferShape(SameShape)
               .Doc("Returns a copy of the input that shares no memory with it."));
  ops->Add(OpSpec("EnsureShape")
               .In("input: T")
               .Out("output: T")
               .Attr("shape: shape")
               .Attr("T: type")
               .Moves(Movement::kForward)
               .Has(Effect::kChecks)
               .InferShape(EnsureShapeShape)
               .Gradient(EnsureShapeGradient)
               .Doc("Returns the input. Fails at run time if its shape does not match `shape`."));
  ops->Add(OpSpec("CheckNumerics")
               .In("tensor: T")
               .Out("output: T")
               .Attr("T: {bfloat16, half, float, double}")
               .Attr("message: string")
               .Stateful()
               .Elementwise()
               .Has(Effect::kChecks)
               .InferShape(SameShape)
               .Gradient(CheckNumericsGradient)
               .Doc("Returns the input. Fails with INVALID_ARGUMENT and `message` if it contains a "
                    "NaN or an infinity."));
  ops->Add(OpSpec("CheckNumericsV2")
               .In("tensor: T")
               .Out("output: T")
               .Attr("T: {bfloat16, half, float, double}")
               .Attr("message: string")
               .Stateful()
               .InferShape(SameShape)
               .Gradient(CheckNumericsGradient)
               .Doc("Returns the input. Fails with INVALID_ARGUMENT and `message` if it contains a "
                    "NaN or an infinity; distinguishes -Inf and +Inf."));
  ops->Add(
      OpSpec("Bitcast")
          .In("input: T")
          .Out("output: type")
          .Attr(
              "T: {bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, "
              "uint64, int8, int16, complex64, complex128, qint8, quint8, qint16, quint16, qint32}")
          .Attr(
              "type: {bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, "
              "uint64, int8, int16, complex64, complex128, qint8, quint8, qint16, quint16, qint32}")
          .Moves(Movement::kForward)
          .InferShape(BitcastShape)
          .Doc("Reinterprets the bits of the input as another type. If the element sizes differ, "
               "the last dimension is added, removed or scaled."));
}

// ---- builders

Output Identity(Output x, absl::string_view name) { return AddOp("Identity", {x}, {}, name); }

Outputs IdentityN(const Outputs& xs, absl::string_view name) {
  return AllOutputs(AddNode("IdentityN", {xs}, {}, name), xs.size());
}

Output Snapshot(Output x, absl::string_view name) { return AddOp("Snapshot", {x}, {}, name); }
Output DeepCopy(Output x, absl::string_view name) { return AddOp("DeepCopy", {x}, {}, name); }
Output StopGradient(Output x, absl::string_view name) {
  return AddOp("StopGradient", {x}, {}, name);
}

Output PreventGradient(Output x, absl::string_view message, absl::string_view name) {
  return AddOp("PreventGradient", {x}, {{"message", message}}, name);
}

Output GuaranteeConst(Output x, absl::string_view name) {
  return AddOp("GuaranteeConst", {x}, {}, name);
}

Output EnsureShape(Output x, const Shape& shape, absl::string_view name) {
  return AddOp("EnsureShape", {x}, {{"shape", shape}}, name);
}

Output CheckNumerics(Output x, absl::string_view message, absl::string_view name) {
  return AddOp("CheckNumerics", {x}, {{"message", message}}, name);
}

Output Bitcast(Output x, DataType type, absl::string_view name) {
  return AddOp("Bitcast", {x}, {{"type", type}}, name);
}

}  // namespace weir
