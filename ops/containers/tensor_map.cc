#include "weir/core/graph/gradient.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/containers/composite_variant_internal.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/registry.h"

namespace weir {

namespace {

absl::Status MapShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(0, 0).status());
  return ScalarShape(c);
}

absl::Status ValueShape(ShapeContext& c) { return c.WithRank(0, 0).status(); }

// The gradient of a map has the keys that were looked up.
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

// Gradients for this key that were meant for other maps added to this one are dropped. Such sums
// occur in the gradient of a gradient.
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
  AddCompositeVariantOps(ops);
  ops->Add(OpSpec("EmptyTensorMap")
               .Out("handle: variant")
               .InferShape(ScalarShape)
               .NotDifferentiable()
               .Doc("Returns an empty map."));
  ops->Add(OpSpec("TensorMapSize")
               .In("input_handle: variant")
               .Out("size: int32")
               .InferShape(MapShape)
               .NotDifferentiable()
               .Doc("Returns the number of keys of a map."));
  ops->Add(OpSpec("TensorMapLookup")
               .In("input_handle: variant, key: key_dtype")
               .Out("value: value_dtype")
               .Attr("key_dtype: type")
               .Attr("value_dtype: type")
               .InferShape(ValueShape)
               .Gradient(LookupGradient)
               .Doc("Returns the value of a key, which must exist."));
  ops->Add(OpSpec("TensorMapInsert")
               .In("input_handle: variant, key: key_dtype, value: value_dtype")
               .Out("output_handle: variant")
               .Attr("key_dtype: type")
               .Attr("value_dtype: type")
               .InferShape(MapShape)
               .Gradient(InsertGradient)
               .Doc("Returns the map with the value of a key inserted or replaced."));
  ops->Add(OpSpec("TensorMapErase")
               .In("input_handle: variant, key: key_dtype")
               .Out("output_handle: variant")
               .Attr("key_dtype: type")
               .Attr("value_dtype: type")
               .InferShape(MapShape)
               .Gradient(EraseGradient)
               .Doc("Returns the map without a key, which must exist."));
  ops->Add(OpSpec("TensorMapHasKey")
               .In("input_handle: variant, key: key_dtype")
               .Out("has_key: bool")
               .Attr("key_dtype: type")
               .InferShape(MapShape)
               .NotDifferentiable()
               .Doc("Returns true if a map has a key."));
  ops->Add(
      OpSpec("TensorMapStackKeys")
          .In("input_handle: variant")
          .Out("keys: key_dtype")
          .Attr("key_dtype: type")
          .InferShape(ValueShape)
          .NotDifferentiable()
          .Doc(
              "Stacks all keys of a map, which have the same shape, along a new first dimension."));
}

}  // namespace weir
