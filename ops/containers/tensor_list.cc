#include <algorithm>

#include "weir/core/graph/gradient.h"
#include "weir/core/graph/scope.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/ranked_internal.h"
#include "weir/ops/lib/registry.h"

namespace weir {

namespace {

// ---- shape functions

absl::Status ListShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(0, 0).status());
  return ScalarShape(c);
}

// Returns the element shape given by input i as far as it is known: a vector, or the scalar -1,
// whose value must be known.
absl::StatusOr<Shape> ElementShape(ShapeContext& c, int i) {
  if (c.input(i).rank() == 1) return c.InputAsShape(i);
  WEIR_RETURN_IF_ERROR(c.WithRankAtMost(i, 1).status());
  if (!c.input(i).has_rank()) return Shape::UnknownRank();
  const Tensor* scalar = c.input_value(i);
  if (scalar == nullptr) {
    return InvalidArgument(
        "Received a shape scalar with unknown static value.  A static value of '-1' is required to "
        "represent an unknown shape.");
  }
  if (scalar->IntAt(0) == -1) return Shape::UnknownRank();
  return InvalidArgument("Received an invalid shape scalar with a static value that is not '-1': ",
                         scalar->IntAt(0));
}

// The shape function of an op that creates a list and takes its element shape at input `kInput`.
template <int kInput>
absl::Status NewListShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(ElementShape(c, kInput).status());
  return ScalarShape(c);
}

absl::Status StackShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(0, 0).status());
  WEIR_ASSIGN_OR_RETURN(const Shape element, ElementShape(c, 1));
  const int64_t count = std::max<int64_t>(c.attr<int64_t>("num_elements"), Shape::kUnknown);
  if (element.has_rank()) c.set_output(0, Shape({count}).Concatenate(element));
  return absl::OkStatus();
}

absl::Status GatherShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(0, 0).status());
  WEIR_ASSIGN_OR_RETURN(const Shape element, ElementShape(c, 2));
  if (element.has_rank()) c.set_output(0, Shape({-1}).Concatenate(element));
  return absl::OkStatus();
}

absl::Status GetItemShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(0, 0).status());
  WEIR_ASSIGN_OR_RETURN(Shape element, ElementShape(c, 2));
  c.set_output(0, std::move(element));
  return absl::OkStatus();
}

absl::Status PopShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(0, 0).status());
  c.set_output(0, Shape());
  WEIR_RETURN_IF_ERROR(c.WithRankAtMost(1, 1).status());
  if (c.input(1).rank() != 1) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(Shape element, c.InputAsShape(1));
  c.set_output(1, std::move(element));
  return absl::OkStatus();
}

absl::Status BatchShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(Shape batch, c.WithRank(0, 1));
  c.set_output(0, std::move(batch));
  return absl::OkStatus();
}

absl::Status OutputConcatShape(ShapeContext& c, const Shape& element) {
  if (element.rank() > 0) c.set_output(0, Shape({-1}).Concatenate(element.Sub(1)));
  c.set_output(1, Shape({-1}));
  return absl::OkStatus();
}

absl::Status ConcatShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(0, 0).status());
  return OutputConcatShape(c, c.attr<Shape>("element_shape"));
}

absl::Status ConcatV2Shape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(0, 0).status());
  WEIR_ASSIGN_OR_RETURN(const Shape element, ElementShape(c, 1));
  return OutputConcatShape(c, element);
}

absl::Status ElementShapeShape(ShapeContext& c) { return c.WithRank(0, 0).status(); }

// ---- nodes used by gradients

Output ShapeOf(const Output& list) {
  return AddOp("TensorListElementShape", {list}, {{"shape_type", DT_INT32}});
}

Output LengthOf(const Output& list) { return AddOp("TensorListLength", {list}); }

Output ReserveLike(const Output& list, const Output& shape, const Output& size, DataType dtype) {
  return list.valid() && shape.valid()
             ? AddOp("TensorListReserve", {shape, size}, {{"element_dtype", dtype}})
             : Output();
}

// Returns the shape of the rows of t.
Output RowShape(const Output& t) { return Slice(ShapeTensor(t), {1}, {-1}); }

Output GetRows(const Output& list, const Output& indices, const Output& like) {
  return AddOp("TensorListGather", {list, indices, RowShape(like)},
               {{"element_dtype", like.dtype()}});
}

// ---- gradients

Grads PushBackGradient(GradContext& g) {
  Node* pop = AddNode("TensorListPopBack", {g.dy(0), ShapeTensor(g.x(1))},
                      {{"element_dtype", g.attr<DataType>("element_dtype")}});
  if (pop == nullptr) return {};
  return {pop->output(0), pop->output(1)};
}

Output EmptyLike(const Output& list, DataType dtype) {
  const Output shape = ShapeOf(list);
  if (!shape.valid()) return {};
  const NameScope scope(list.graph(), "EmptyTensorList");
  return AddOp("EmptyTensorList", {shape, Ints(-1).In(list.graph(), "max_num_elements")},
               {{"element_dtype", dtype}}, scope.name());
}

Grads PopBackGradient(GradContext& g) {
  Output dlist = g.dy(0), delement = g.dy(1);
  if (!dlist.valid()) dlist = EmptyLike(g.y(0), g.y(1).dtype());
  if (!delement.valid()) delement = ZerosLike(g.y(1));
  return {AddOp("TensorListPushBack", {dlist, delement})};
}

// Converts a shape to the input of an op that takes an element shape: a constant beside the op if
// the shape is static, with -1 for unknown extents.
Output StaticShape(const Shape& shape, Graph& graph) {
  if (!shape.has_rank()) return Ints(-1).In(graph, "element_shape", DT_INT32);
  return Ints(shape).In(graph, "element_shape", DT_INT32);
}

Grads StackGradient(GradContext& g) {
  const Output dy = g.dy(0);
  if (!dy.valid()) return {};
  const Shape element = dy.shape().rank() > 0 ? dy.shape().Sub(1) : Shape::UnknownRank();
  const NameScope scope(g.graph(), "TensorListFromTensor");
  return {AddOp("TensorListFromTensor", {dy, StaticShape(element, g.graph())}, {}, scope.name())};
}

Grads ConcatGradient(GradContext& g) {
  return {AddOp("TensorListSplit", {g.dy(0), ShapeOf(g.x(0)), g.y(1)})};
}

Grads SplitGradient(GradContext& g) {
  const Output rest = RowShape(g.x(0));
  if (!rest.valid()) return {};
  const Output shape = Concat({Ints({-1}).In(g.graph(), "concat/values_0"), rest}, 0);
  return {
      AddOp("TensorListConcatV2", {g.dy(0), shape, g.x(2)}, {{"element_dtype", g.x(0).dtype()}})};
}

Grads FromTensorGradient(GradContext& g) {
  const Output t = g.x(0);
  const Output dlist = g.dy(0).valid() ? g.dy(0) : EmptyLike(g.y(0), t.dtype());
  const int64_t rows = t.shape().rank() > 0 ? t.dim(0) : -1;
  return {AddOp("TensorListStack", {dlist, RowShape(t)},
                {{"element_dtype", t.dtype()}, {"num_elements", rows}})};
}

Grads GetItemGradient(GradContext& g) {
  const Output dy = g.dy(0), list = g.x(0);
  const Output size = LengthOf(list), shape = ShapeOf(list);
  return {AddOp("TensorListSetItem", {ReserveLike(list, shape, size, dy.dtype()), g.x(1), dy})};
}

Grads SetItemGradient(GradContext& g) {
  const Output dlist = g.dy(0), index = g.x(1), item = g.x(2);
  Output rest = AddOp("TensorListSetItem", {dlist, index, ZerosLike(item)});
  const Output ditem = AddOp("TensorListGetItem", {dlist, index, ShapeTensor(item)},
                             {{"element_dtype", item.dtype()}});
  if (g.attr<bool>("resize_if_index_out_of_bounds"))
    rest = AddOp("TensorListResize", {rest, LengthOf(g.x(0))});
  return {rest, Grad(), ditem};
}

Grads ResizeGradient(GradContext& g) {
  return {AddOp("TensorListResize", {g.dy(0), LengthOf(g.x(0))})};
}

Grads GatherGradient(GradContext& g) {
  const Output dy = g.dy(0), list = g.x(0);
  const Output shape = ShapeOf(list), size = LengthOf(list);
  return {AddOp("TensorListScatterIntoExistingList",
                {ReserveLike(list, shape, size, dy.dtype()), dy, g.x(1)})};
}

Grads ScatterGradient(GradContext& g) { return {GetRows(g.dy(0), g.x(1), g.x(0))}; }

Grads ScatterIntoExistingGradient(GradContext& g) {
  const Output dlist = g.dy(0), t = g.x(1), indices = g.x(2);
  const Output dt = GetRows(dlist, indices, t);
  return {AddOp("TensorListScatterIntoExistingList", {dlist, ZerosLike(t), indices}), dt};
}

}  // namespace

void AddTensorListOps(OpRegistry* ops) {
  const auto list_op = [](const char* name, const char* in, const char* out) {
    return OpSpec(name).In(in).Out(out).Attr("element_dtype: type");
  };
  constexpr char kShapeType[] = "shape_type: {int32, int64}";
  ops->Add(list_op("EmptyTensorList", "element_shape: shape_type, max_num_elements: int32",
                   "handle: variant")
               .Attr(kShapeType)
               .Uses({.kind = ContainerUse::Kind::kMakes, .type = ContainerUse::Type::kList})
               .InferShape(NewListShape<0>)
               .Doc("Returns an empty list for tensors that are compatible with `element_shape`."));
  ops->Add(list_op("TensorListReserve", "element_shape: shape_type, num_elements: int32",
                   "handle: variant")
               .Attr(kShapeType)
               .Uses({.kind = ContainerUse::Kind::kMakes, .type = ContainerUse::Type::kList})
               .InferShape(NewListShape<0>)
               .Doc("Returns a list of num_elements uninitialized elements."));
  ops->Add(
      list_op("TensorListPushBack", "input_handle: variant, tensor: element_dtype",
              "output_handle: variant")
          .Uses({.kind = ContainerUse::Kind::kPuts, .type = ContainerUse::Type::kList, .value = 1})
          .InferShape(ScalarShape)
          .Gradient(PushBackGradient)
          .Doc("Returns the list with an element appended."));
  ops->Add(list_op("TensorListPushBackBatch", "input_handles: variant, tensor: element_dtype",
                   "output_handles: variant")
               .InferShape(Ranked("tensor: >=1", BatchShape))
               .NotDifferentiable()
               .Doc("Appends a row of `tensor` to each list of a batch."));
  ops->Add(list_op("TensorListPopBack", "input_handle: variant, element_shape: int32",
                   "output_handle: variant, tensor: element_dtype")
               .Uses({.kind = ContainerUse::Kind::kTakes, .type = ContainerUse::Type::kList})
               .InferShape(PopShape)
               .Gradient(PopBackGradient)
               .Doc("Returns the list without its last element, and that element."));
  ops->Add(OpSpec("TensorListLength")
               .In("input_handle: variant")
               .Out("length: int32")
               .InferShape(ListShape)
               .NotDifferentiable()
               .Doc("Returns the number of elements of a list."));
  ops->Add(OpSpec("TensorListElementShape")
               .In("input_handle: variant")
               .Out("element_shape: shape_type")
               .Attr(kShapeType)
               .InferShape(ElementShapeShape)
               .NotDifferentiable()
               .Doc("Returns the shape with which all elements of a list are compatible; the "
                    "scalar -1 for any shape."));
  ops->Add(list_op("TensorListGetItem",
                   "input_handle: variant, index: int32, element_shape: Tshape",
                   "item: element_dtype")
               .Attr("Tshape: {int32, int64} = DT_INT32")
               .Uses({.kind = ContainerUse::Kind::kTakes, .type = ContainerUse::Type::kList})
               .InferShape(GetItemShape)
               .Gradient(GetItemGradient)
               .Doc("Returns an element of a list, or zeros if it is uninitialized."));
  ops->Add(
      list_op("TensorListSetItem", "input_handle: variant, index: int32, item: element_dtype",
              "output_handle: variant")
          .Attr("resize_if_index_out_of_bounds: bool = false")
          .Uses({.kind = ContainerUse::Kind::kPuts, .type = ContainerUse::Type::kList, .value = 2})
          .InferShape(ListShape)
          .Gradient(SetItemGradient)
          .Doc("Returns the list with the element at an index replaced."));
  ops->Add(list_op("TensorListStack", "input_handle: variant, element_shape: int32",
                   "tensor: element_dtype")
               .Attr("num_elements: int = -1")
               .InferShape(StackShape)
               .Gradient(StackGradient)
               .Doc("Stacks all elements of a list along a new first dimension."));
  ops->Add(list_op("TensorListFromTensor", "tensor: element_dtype, element_shape: shape_type",
                   "output_handle: variant")
               .Attr(kShapeType)
               .Uses({.kind = ContainerUse::Kind::kPutsRows,
                      .type = ContainerUse::Type::kList,
                      .value = 0})
               .InferShape(NewListShape<1>)
               .Gradient(FromTensorGradient)
               .Doc("Returns the list of the rows of a tensor."));
  ops->Add(list_op("TensorListGather",
                   "input_handle: variant, indices: int32, element_shape: int32",
                   "values: element_dtype")
               .InferShape(GatherShape)
               .Gradient(GatherGradient)
               .Doc("Gathers elements of a list and stacks them along a new first dimension."));
  ops->Add(list_op("TensorListScatter",
                   "tensor: element_dtype, indices: int32, element_shape: shape_type",
                   "output_handle: variant")
               .Attr(kShapeType)
               .InferShape(NewListShape<2>)
               .Gradient(ScatterGradient)
               .Doc("Returns a list with the rows of a tensor at the given indices, just long "
                    "enough for them."));
  ops->Add(list_op("TensorListScatterV2",
                   "tensor: element_dtype, indices: int32, element_shape: shape_type, "
                   "num_elements: int32",
                   "output_handle: variant")
               .Attr(kShapeType)
               .InferShape(NewListShape<2>)
               .Gradient(ScatterGradient)
               .Doc("Returns a list of num_elements elements with the rows of a tensor at the "
                    "given indices."));
  ops->Add(list_op("TensorListScatterIntoExistingList",
                   "input_handle: variant, tensor: element_dtype, indices: int32",
                   "output_handle: variant")
               .InferShape(Ranked("tensor: >=1, indices: 1", ScalarShape))
               .Gradient(ScatterIntoExistingGradient)
               .Doc("Returns the list with the rows of a tensor written at the given indices."));
  ops->Add(
      list_op("TensorListConcat", "input_handle: variant", "tensor: element_dtype, lengths: int64")
          .Attr("element_shape: shape = {unknown_rank: true}")
          .InferShape(ConcatShape)
          .Gradient(ConcatGradient)
          .Doc("Concatenates all elements of a list along their first dimension."));
  ops->Add(list_op("TensorListConcatV2",
                   "input_handle: variant, element_shape: shape_type, leading_dims: int64",
                   "tensor: element_dtype, lengths: int64")
               .Attr(kShapeType)
               .InferShape(ConcatV2Shape)
               .Gradient(ConcatGradient)
               .Doc("Computes TensorListConcat with the leading extents of uninitialized elements "
                    "given."));
  ops->Add(list_op("TensorListSplit",
                   "tensor: element_dtype, element_shape: shape_type, lengths: int64",
                   "output_handle: variant")
               .Attr(kShapeType)
               .InferShape(Ranked("tensor: >=1, lengths: 1", NewListShape<1>))
               .Gradient(SplitGradient)
               .Doc("Splits a tensor by lengths along its first dimension into a list."));
  ops->Add(OpSpec("TensorListResize")
               .In("input_handle: variant, size: int32")
               .Out("output_handle: variant")
               .Uses({.kind = ContainerUse::Kind::kObserves, .type = ContainerUse::Type::kList})
               .InferShape(Ranked("size: 0", ScalarShape))
               .Gradient(ResizeGradient)
               .Doc("Truncates the list, or appends uninitialized elements."));
  ops->Add(list_op("TensorListConcatLists", "input_a: variant, input_b: variant", "output: variant")
               .InferShape(SameShape)
               .NotDifferentiable()
               .Doc("Concatenates two lists."));
}

}  // namespace weir
