#include "weir/core/gradient.h"
#include "weir/core/shape_context.h"
#include "weir/ops/array.h"
#include "weir/ops/cond.h"
#include "weir/ops/registry.h"

namespace weir {

namespace {

absl::Status MapShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(0, 0).status());
  return ScalarShape(c);
}

absl::Status ValueShape(ShapeContext& c) { return c.WithRank(0, 0).status(); }

// The gradient of a map has the keys that something was looked up with.
Grads LookupGradient(GradContext& g) {
  Node* empty = AddNode(g.graph(), "EmptyTensorMap", {});
  if (empty == nullptr) return {};
  return {AddOp("TensorMapInsert", {Output(empty), g.x(1), g.dy(0)})};
}

Grads InsertGradient(GradContext& g) {
  const Output dmap = g.dy(0), key = g.x(1), value = g.x(2);
  const DataType value_dtype = value.dtype();
  const Output has_key = AddOp("TensorMapHasKey", {dmap, key});
  if (!has_key.valid()) return {};
  const Outputs grads = Cond(
      has_key,
      [&] {
        return Outputs{AddOp("TensorMapLookup", {dmap, key}, {{"value_dtype", value_dtype}}),
                       AddOp("TensorMapErase", {dmap, key}, {{"value_dtype", value_dtype}})};
      },
      [&] {
        return Outputs{ZerosLike(value), dmap};
      });
  if (grads.empty()) return {};
  return {grads[1], Grad(), grads[0]};
}

// What came for the key was for other maps that were added to this one: the gradient of a gradient
// has such sums.
Grads EraseGradient(GradContext& g) {
  const Output dmap = g.dy(0), key = g.x(1);
  const DataType value_dtype = g.attr<DataType>("value_dtype");
  const Output has_key = AddOp("TensorMapHasKey", {dmap, key});
  if (!has_key.valid()) return {};
  const Outputs rest = Cond(
      has_key,
      [&] {
        return Outputs{AddOp("TensorMapErase", {dmap, key}, {{"value_dtype", value_dtype}})};
      },
      [&] { return Outputs{dmap}; });
  if (rest.empty()) return {};
  return {rest[0], Grad()};
}

}  // namespace

void AddTensorMapOps(OpRegistry* ops) {
  ops->Add(OpSpec("EmptyTensorMap")
               .Out("handle: variant")
               .InferShape(ScalarShape)
               .NotDifferentiable()
               .Doc("A map without keys."));
  ops->Add(OpSpec("TensorMapSize")
               .In("input_handle: variant")
               .Out("size: int32")
               .InferShape(MapShape)
               .NotDifferentiable()
               .Doc("How many keys a map has."));
  ops->Add(OpSpec("TensorMapLookup")
               .In("input_handle: variant, key: key_dtype")
               .Out("value: value_dtype")
               .Attr("key_dtype: type")
               .Attr("value_dtype: type")
               .InferShape(ValueShape)
               .Gradient(LookupGradient)
               .Doc("The value of a key, which must be there."));
  ops->Add(OpSpec("TensorMapInsert")
               .In("input_handle: variant, key: key_dtype, value: value_dtype")
               .Out("output_handle: variant")
               .Attr("key_dtype: type")
               .Attr("value_dtype: type")
               .InferShape(MapShape)
               .Gradient(InsertGradient)
               .Doc("The map with another value, or the first, for a key."));
  ops->Add(OpSpec("TensorMapErase")
               .In("input_handle: variant, key: key_dtype")
               .Out("output_handle: variant")
               .Attr("key_dtype: type")
               .Attr("value_dtype: type")
               .InferShape(MapShape)
               .Gradient(EraseGradient)
               .Doc("The map without a key, which must be there."));
  ops->Add(OpSpec("TensorMapHasKey")
               .In("input_handle: variant, key: key_dtype")
               .Out("has_key: bool")
               .Attr("key_dtype: type")
               .InferShape(MapShape)
               .NotDifferentiable()
               .Doc("True if a map has a key."));
  ops->Add(OpSpec("TensorMapStackKeys")
               .In("input_handle: variant")
               .Out("keys: key_dtype")
               .Attr("key_dtype: type")
               .InferShape(ValueShape)
               .NotDifferentiable()
               .Doc("All keys of a map, which are of one shape, along a new first dimension."));
}

}  // namespace weir
