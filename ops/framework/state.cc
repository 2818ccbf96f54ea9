#include "weir/ops/framework/state.h"
#include "weir/ops/lib/ranked_internal.h"

#include <algorithm>

#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/registry.h"

namespace weir {

Output VarHandleOp(Graph& graph, DataType dtype, const Shape& shape,
                   const VariableOpOptions& options) {
  Node* node = AddNode(graph, "VarHandleOp", {},
                       {{"container", options.container},
                        {"shared_name", options.shared_name},
                        {"dtype", dtype},
                        {"shape", shape}},
                       options.name);
  return node == nullptr ? Output() : Output(node);
}

Output VariableV2(Graph& graph, DataType dtype, const Shape& shape,
                  const VariableOpOptions& options) {
  Node* node = AddNode(graph, "VariableV2", {},
                       {{"shape", shape},
                        {"dtype", dtype},
                        {"container", options.container},
                        {"shared_name", options.shared_name}},
                       options.name);
  return node == nullptr ? Output() : Output(node);
}

Output ReadVariableOp(Output resource, DataType dtype, absl::string_view name) {
  return AddOp("ReadVariableOp", {resource}, {{"dtype", dtype}}, name);
}

Output VarIsInitializedOp(Output resource, absl::string_view name) {
  return AddOp("VarIsInitializedOp", {resource}, {}, name);
}

Output VariableShape(Output resource, DataType out_type, absl::string_view name) {
  return AddOp("VariableShape", {resource}, {{"out_type", out_type}}, name);
}

Output StaticVariableShape(Output resource, DataType out_type) {
  if (!resource.valid()) return Output();
  const HandleData* handle = resource.handle_data();
  if (handle == nullptr || !handle->shape.IsFullyDefined())
    return VariableShape(resource, out_type);
  const auto dims = handle->shape.dims();
  if (out_type == DT_INT64) return Const(resource.graph(), Tensor::Vector<int64_t>(dims));
  const std::vector<int32_t> narrow(dims.begin(), dims.end());
  return Const(resource.graph(), Tensor::Vector<int32_t>(narrow));
}

Operation AssignVariableOp(Output resource, Output value, bool validate_shape,
                           absl::string_view name) {
  return AddNode("AssignVariableOp", {resource, value}, {{"validate_shape", validate_shape}}, name);
}

Operation AssignAddVariableOp(Output resource, Output value, absl::string_view name) {
  return AddNode("AssignAddVariableOp", {resource, value}, {}, name);
}

Operation AssignSubVariableOp(Output resource, Output value, absl::string_view name) {
  return AddNode("AssignSubVariableOp", {resource, value}, {}, name);
}

Operation DestroyResourceOp(Output resource, bool ignore_lookup_error, absl::string_view name) {
  return AddNode("DestroyResourceOp", {resource}, {{"ignore_lookup_error", ignore_lookup_error}},
                 name);
}

Output ResourceGather(Output resource, Output indices, DataType dtype, int64_t batch_dims,
                      absl::string_view name) {
  return AddOp("ResourceGather", {resource, indices},
               {{"batch_dims", batch_dims}, {"dtype", dtype}}, name);
}

Output ResourceGatherNd(Output resource, Output indices, DataType dtype, absl::string_view name) {
  return AddOp("ResourceGatherNd", {resource, indices}, {{"dtype", dtype}}, name);
}

Operation ResourceScatter(absl::string_view op, Output resource, Output indices, Output updates,
                          absl::string_view name) {
  return AddNode(absl::StrCat("ResourceScatter", op), {resource, indices, updates}, {}, name);
}

Output Scatter(absl::string_view op, Output ref, Output indices, Output updates, bool use_locking,
               absl::string_view name) {
  return AddOp(absl::StrCat("Scatter", op), {ref, indices, updates}, {{"use_locking", use_locking}},
               name);
}

Output IsVariableInitializedOp(Output ref, absl::string_view name) {
  return AddOp("IsVariableInitialized", {ref}, {}, name);
}

namespace {

constexpr char kNumbers[] = "T: numbertype";
constexpr char kNumberDtype[] = "dtype: numbertype";
constexpr char kIndices[] = "Tindices: {int32, int64}";

absl::Status CheckScalar(ShapeContext& c, int i) { return c.WithRank(i, 0).status(); }

absl::Status VariableV2Rule(ShapeContext& c) {
  c.set_output(0, c.attr<Shape>("shape"));
  return absl::OkStatus();
}

// In the old op, [] also meant "unknown".
absl::Status VariableRule(ShapeContext& c) {
  const Shape shape = c.attr<Shape>("shape");
  c.set_output(0, shape.IsScalar() ? Shape::UnknownRank() : shape);
  return absl::OkStatus();
}

absl::Status VarHandleRule(ShapeContext& c) {
  c.set_output(0, Shape());
  c.set_output_handle(0, {c.attr<DataType>("dtype"), c.attr<Shape>("shape")});
  return absl::OkStatus();
}

absl::Status CheckHandleType(const ShapeContext& c, absl::string_view doing) {
  const HandleData* handle = c.handle(0);
  const AttrValue* attr = c.node().FindAttr("dtype");
  if (handle == nullptr || handle->dtype == DT_INVALID || attr == nullptr) return absl::OkStatus();
  const DataType expected = *attr->get_if<DataType>();
  if (handle->dtype == expected) return absl::OkStatus();
  return InvalidArgument("Trying to ", doing, " variable with wrong dtype. Expected ",
                         DataTypeName(handle->dtype), " got ", DataTypeName(expected));
}

absl::Status ReadVariableRule(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(CheckScalar(c, 0));
  WEIR_RETURN_IF_ERROR(CheckHandleType(c, "read"));
  if (c.handle(0) != nullptr) c.set_output(0, c.handle(0)->shape);
  return absl::OkStatus();
}

absl::Status AssignVariableRule(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(CheckScalar(c, 0));
  WEIR_RETURN_IF_ERROR(CheckHandleType(c, "assign to"));
  if (c.handle(0) == nullptr) return absl::OkStatus();
  return c.handle(0)->shape.MergeWith(c.input(1)).status();
}

absl::Status VariableShapeRule(ShapeContext& c) {
  const HandleData* handle = c.handle(0);
  c.set_output(0, Shape({handle == nullptr ? Shape::kUnknown : handle->shape.rank()}));
  return absl::OkStatus();
}

Shape HandleShape(const ShapeContext& c) {
  return c.handle(0) == nullptr ? Shape::UnknownRank() : c.handle(0)->shape;
}

absl::Status ResourceGatherRule(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(CheckHandleType(c, "read"));
  const Shape params = HandleShape(c);
  const Shape& indices = c.input(1);
  if (!params.has_rank() || !indices.has_rank()) return absl::OkStatus();
  if (params.rank() < 1) return InvalidArgument("Shape must be at least rank 1 but is rank 0");
  const int64_t batch_dims = c.attr<int64_t>("batch_dims");
  if (batch_dims < 0 || batch_dims > indices.rank() || batch_dims >= params.rank()) {
    return InvalidArgument("batch_dims ", batch_dims,
                           " must be in [0, rank of indices], and less than the rank of ",
                           "the variable, ", params.rank());
  }
  const Shape batch = params.Sub(0, static_cast<int>(batch_dims));
  c.set_output(0, batch.Concatenate(indices.Sub(static_cast<int>(batch_dims)))
                      .Concatenate(params.Sub(static_cast<int>(batch_dims) + 1)));
  return absl::OkStatus();
}

absl::Status ResourceGatherNdRule(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(CheckHandleType(c, "read"));
  const Shape params = HandleShape(c);
  WEIR_ASSIGN_OR_RETURN(const Shape indices, c.WithRankAtLeast(1, 1));
  if (!params.has_rank() || !indices.has_rank() || indices.dim(-1) < 0) return absl::OkStatus();
  if (indices.dim(-1) > params.rank()) {
    return InvalidArgument("indices.shape[-1] must be <= params.rank, but saw indices shape: ",
                           indices.ToString(), " and params shape: ", params.ToString());
  }
  c.set_output(0, indices.Sub(0, -1).Concatenate(params.Sub(static_cast<int>(indices.dim(-1)))));
  return absl::OkStatus();
}

// updates is a scalar, or has the shape of indices followed by the shape of a row.
absl::Status CheckScatterShapes(const Shape& params, const Shape& indices, const Shape& updates) {
  if (!params.has_rank() || !indices.has_rank() || updates.IsScalar()) return absl::OkStatus();
  if (params.rank() < 1) return InvalidArgument("Shape must be at least rank 1 but is rank 0");
  return indices.Concatenate(params.Sub(1)).MergeWith(updates).status();
}

absl::Status ScatterRule(ShapeContext& c) {
  c.set_output(0, c.input(0));
  return CheckScatterShapes(c.input(0), c.input(1), c.input(2));
}

absl::Status ResourceScatterRule(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(CheckHandleType(c, "update"));
  return CheckScatterShapes(HandleShape(c), c.input(1), c.input(2));
}

absl::Status CheckScatterNdShapes(const Shape& params, const Shape& indices, const Shape& updates) {
  if (indices.has_rank() && indices.rank() < 1) {
    return InvalidArgument("Shape must be at least rank 1 but is rank 0");
  }
  if (!params.has_rank() || !indices.has_rank() || indices.dim(-1) < 0) return absl::OkStatus();
  const int64_t depth = indices.dim(-1);
  if (depth > params.rank()) {
    return InvalidArgument(params.rank() == 0 ? "Output must be at least 1-D. " : "",
                           "The inner dimension of indices, ", depth,
                           ", must be <= the rank of the variable, ", params.rank());
  }
  return indices.Sub(0, -1)
      .Concatenate(params.Sub(static_cast<int>(depth)))
      .MergeWith(updates)
      .status();
}

absl::Status ScatterNdRule(ShapeContext& c) {
  c.set_output(0, c.input(0));
  return CheckScatterNdShapes(c.input(0), c.input(1), c.input(2));
}

absl::Status ResourceScatterNdRule(ShapeContext& c) {
  return CheckScatterNdShapes(HandleShape(c), c.input(1), c.input(2));
}

absl::Status AssignRule(ShapeContext& c) {
  if (!c.attr<bool>("validate_shape")) {
    c.set_output(0, c.input(1));
    return absl::OkStatus();
  }
  WEIR_ASSIGN_OR_RETURN(Shape merged, c.input(0).MergeWith(c.input(1)));
  c.set_output(0, std::move(merged));
  return absl::OkStatus();
}

absl::Status CountUpToRule(ShapeContext& c) {
  c.set_output(0, Shape());
  return CheckScalar(c, 0);
}

Grads ReadVariableGradient(GradContext& g) { return {g.dy_grad()}; }

Grads ResourceGatherGradient(GradContext& g) {
  if (g.attr<int64_t>("batch_dims") != 0) {
    g.graph().Fail(Unimplemented("The gradient of ", g.node().Label(),
                                 " with batch_dims > 0 is not defined; gather ",
                                 "from the variable's value instead"));
    return {};
  }
  const Output shape = StaticVariableShape(g.x(0));
  const Output size = ExpandDims(Size(g.x(1)), 0);
  const Output row = StridedSlice(shape, {Index::Range(1, std::nullopt)});
  const Output values = Reshape(g.dy(), Concat({size, row}, 0));
  const Output indices = Reshape(g.x(1), size);
  return {Grad(IndexedSlices{values, indices, shape}), Grad()};
}

Grads ResourceGatherNdGradient(GradContext& g) {
  const Output indices = g.x(1);
  const Output shape = StaticVariableShape(g.x(0), indices.dtype());
  if (indices.shape().rank() == 2 && indices.dim(-1) == 1) {
    return {Grad(IndexedSlices{g.dy(), Squeeze(indices, {-1}), shape}), Grad()};
  }
  return {Grad(ScatterNd(indices, g.dy(), shape)), Grad()};
}

void AddResourceVariables(OpRegistry* ops) {
  ops->Add(OpSpec("VarHandleOp")
               .Out("resource: resource")
               .Attr("container: string = ''")
               .Attr("shared_name: string = ''")
               .Attr("debug_name: string = ''")
               .Attr("dtype: type")
               .Attr("shape: shape")
               .Attr("allowed_devices: list(string) = []")
               .Stateful()
               .Uses(VariableUse::kDeclares)
               .InferShape(VarHandleRule)
               .Doc("Returns a handle to a variable that is shared by container and name."));
  ops->Add(
      OpSpec("ReadVariableOp")
          .In("resource: resource")
          .Out("value: dtype")
          .Attr("dtype: type")
          .Stateful()
          .Moves(Movement::kStored)
          .Uses(VariableUse::kReads)
          .InferShape(ReadVariableRule)
          .Gradient(ReadVariableGradient)
          .Doc("Returns a snapshot of the value of a variable. Later writes do not change it."));
  ops->Add(OpSpec("VarIsInitializedOp")
               .In("resource: resource")
               .Out("is_initialized: bool")
               .Stateful()
               .Uses(VariableUse::kTests)
               .InferShape(ScalarShape)
               .NotDifferentiable()
               .Doc("Returns whether the variable is initialized."));
  ops->Add(OpSpec("VariableShape")
               .In("input: resource")
               .Out("output: out_type")
               .Attr("out_type: {int32, int64} = DT_INT32")
               .Stateful()
               .Moves(Movement::kReadsShape)
               .Uses(VariableUse::kReadsShape)
               .InferShape(VariableShapeRule)
               .NotDifferentiable()
               .Doc("Returns the shape of the variable's value."));
  ops->Add(OpSpec("DestroyResourceOp")
               .In("resource: resource")
               .Attr("ignore_lookup_error: bool = true")
               .Stateful()
               .Uses(VariableUse::kDestroys)
               .InferShape(NoOutputs)
               .Doc("Destroys the resource and frees its memory."));
  ops->Add(OpSpec("AssignVariableOp")
               .In("resource: resource, value: dtype")
               .Attr("dtype: type")
               .Attr("validate_shape: bool = false")
               .Stateful()
               .Uses(VariableUse::kReplaces)
               .InferShape(AssignVariableRule)
               .Doc("Assigns `value` to the variable."));
  for (const char* name : {"AssignAddVariableOp", "AssignSubVariableOp"}) {
    ops->Add(OpSpec(name)
                 .In("resource: resource, value: dtype")
                 .Attr("dtype: type")
                 .Stateful()
                 .Uses(VariableUse::kUpdates)
                 .InferShape(AssignVariableRule)
                 .Doc("Adds `value` to the variable, or subtracts it, elementwise."));
  }
  ops->Add(OpSpec("ResourceGather")
               .In("resource: resource, indices: Tindices")
               .Out("output: dtype")
               .Attr("batch_dims: int = 0")
               .Attr("validate_indices: bool = true")
               .Attr("dtype: type")
               .Attr(kIndices)
               .Stateful()
               .Moves(Movement::kGather)
               .Uses(VariableUse::kReadsPart)
               .InferShape(ResourceGatherRule)
               .Gradient(ResourceGatherGradient)
               .Doc("Gathers rows of a variable."));
  ops->Add(OpSpec("ResourceGatherNd")
               .In("resource: resource, indices: Tindices")
               .Out("output: dtype")
               .Attr("dtype: type")
               .Attr(kIndices)
               .Stateful()
               .Moves(Movement::kGather)
               .Uses(VariableUse::kReadsPart)
               .InferShape(ResourceGatherNdRule)
               .Gradient(ResourceGatherNdGradient)
               .Doc("Gathers elements or slices of a variable, addressed by the vectors along the "
                    "last axis of `indices`."));
  ops->Add(OpSpec("ResourceCountUpTo")
               .In("resource: resource")
               .Out("output: T")
               .Attr("limit: int")
               .Attr("T: {int32, int64}")
               .Stateful()
               .Uses(VariableUse::kUpdates)
               .InferShape(CountUpToRule)
               .Doc("Returns the variable's value and then increments it by one. OUT_OF_RANGE at "
                    "the limit."));
}

void AddResourceScatters(OpRegistry* ops) {
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Min", "Max", "Update"}) {
    ops->Add(OpSpec(absl::StrCat("ResourceScatter", op))
                 .In("resource: resource, indices: Tindices, updates: dtype")
                 .Attr(absl::string_view(op) == "Update" ? "dtype: type" : kNumberDtype)
                 .Attr(kIndices)
                 .Stateful()
                 .Uses(VariableUse::kUpdates)
                 .InferShape(ResourceScatterRule)
                 .Doc("Combines row indices[i] of the variable with updates[i]."));
  }
  for (const char* op : {"Add", "Sub", "Max", "Min", "Update"}) {
    ops->Add(OpSpec(absl::StrCat("ResourceScatterNd", op))
                 .In("ref: resource, indices: Tindices, updates: T")
                 .Attr("T: type")
                 .Attr(kIndices)
                 .Attr("use_locking: bool = true")
                 .Attr("bad_indices_policy: string = ''")
                 .Stateful()
                 .Uses(VariableUse::kUpdates)
                 .InferShape(Ranked("updates: >=1", ResourceScatterNdRule))
                 .Doc("Combines slices of the variable, addressed by vectors of indices, with "
                      "`updates`."));
  }
}

void AddReferenceVariables(OpRegistry* ops) {
  const auto variable = [](absl::string_view name) {
    return OpSpec(name)
        .Out("ref: Ref(dtype)")
        .Attr("shape: shape")
        .Attr("dtype: type")
        .Attr("container: string = ''")
        .Attr("shared_name: string = ''")
        .Stateful()
        .Uses(VariableUse::kDeclares)
        .Doc("Returns a reference to a variable that is shared by container and name.");
  };
  ops->Add(variable("VariableV2").InferShape(VariableV2Rule));
  ops->Add(variable("Variable").InferShape(VariableRule));
  ops->Add(OpSpec("IsVariableInitialized")
               .In("ref: Ref(dtype)")
               .Out("is_initialized: bool")
               .Attr("dtype: type")
               .AllowsUninitializedInput()
               .Uses(VariableUse::kTests)
               .InferShape(ScalarShape)
               .Doc("Returns whether the variable is initialized."));
  ops->Add(OpSpec("Assign")
               .In("ref: Ref(T), value: T")
               .Out("output_ref: Ref(T)")
               .Attr("T: type")
               .Attr("validate_shape: bool = true")
               .Attr("use_locking: bool = true")
               .AllowsUninitializedInput()
               .Uses(VariableUse::kReplaces)
               .InferShape(AssignRule)
               .NotDifferentiable()
               .Doc("Assigns `value` to the variable."));
  for (const char* name : {"AssignAdd", "AssignSub"}) {
    ops->Add(OpSpec(name)
                 .In("ref: Ref(T), value: T")
                 .Out("output_ref: Ref(T)")
                 .Attr(kNumbers)
                 .Attr("use_locking: bool = false")
                 .Uses(VariableUse::kUpdates)
                 .InferShape(MergedShape)
                 .NotDifferentiable()
                 .Doc("Adds `value` to the variable, or subtracts it, elementwise."));
  }
  ops->Add(OpSpec("CountUpTo")
               .In("ref: Ref(T)")
               .Out("output: T")
               .Attr("limit: int")
               .Attr("T: {int32, int64}")
               .Uses(VariableUse::kUpdates)
               .InferShape(CountUpToRule)
               .Doc("Returns the variable's value and then increments it by one. OUT_OF_RANGE at "
                    "the limit."));
}

// As in TensorFlow: some of these ops are declared not differentiable, the others declare nothing.
void NoGradientOf(OpSpec* op, std::initializer_list<absl::string_view> kinds,
                  absl::string_view kind) {
  if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) op->NotDifferentiable();
}

void AddReferenceScatters(OpRegistry* ops) {
  for (const absl::string_view kind : {"Add", "Sub", "Mul", "Div", "Min", "Max", "Update"}) {
    const bool compares = kind == "Min" || kind == "Max";
    OpSpec op(absl::StrCat("Scatter", kind));
    op.In("ref: Ref(T), indices: Tindices, updates: T")
        .Out("output_ref: Ref(T)")
        .Attr(kind == "Update" ? "T: type"
              : compares       ? "T: {half, bfloat16, float, double, int32, int64}"
                               : kNumbers)
        .Attr(kIndices)
        .Attr(kind == "Update" ? "use_locking: bool = true" : "use_locking: bool = false")
        .Uses(VariableUse::kUpdates)
        .InferShape(ScatterRule)
        .Doc("Combines row indices[i] of the variable with updates[i].");
    NoGradientOf(&op, {"Add", "Sub", "Mul", "Div"}, kind);
    ops->Add(std::move(op));
  }
  for (const absl::string_view kind : {"Add", "Sub", "Max", "Min", "Update"}) {
    OpSpec op(absl::StrCat("ScatterNd", kind));
    op.In("ref: Ref(T), indices: Tindices, updates: T")
        .Out("output_ref: Ref(T)")
        .Attr(kind == "Update" ? "T: type" : kNumbers)
        .Attr(kIndices)
        .Attr(kind == "Update" ? "use_locking: bool = true" : "use_locking: bool = false")
        .Attr("bad_indices_policy: string = ''")
        .Uses(VariableUse::kUpdates)
        .InferShape(ScatterNdRule)
        .Doc("Combines slices of the variable, addressed by vectors of indices, with `updates`.");
    NoGradientOf(&op, {"Add", "Sub", "Update"}, kind);
    ops->Add(std::move(op));
  }
}

}  // namespace

void AddStateOps(OpRegistry* ops) {
  AddResourceVariables(ops);
  AddResourceScatters(ops);
  AddReferenceVariables(ops);
  AddReferenceScatters(ops);
}

}  // namespace weir
