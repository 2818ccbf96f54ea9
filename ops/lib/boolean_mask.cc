#include "weir/ops/lib/boolean_mask.h"

#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array.h"

namespace weir {

// Flattens the masked dimensions into one and keeps the others.
Output BooleanMask(Output values, Output mask, absl::string_view name) {
  if (!values.valid() || !mask.valid()) return {};
  Graph& g = values.graph();
  const int64_t rank = mask.shape().rank();
  if (rank < 1) {
    g.Fail(InvalidArgument("Number of mask dimensions must be specified, and not 0: mask ",
                           mask.name(), " has shape ", mask.shape().ToString()));
    return {};
  }
  const NameScope scope(g, name);
  const auto shape_part = [&](const Index& part) {
    return StridedSlice(ShapeTensor(values), {part});
  };
  const Output masked = shape_part(Index::Range(0, rank));
  const Output axis = Const(g, {int32_t{0}}, "Prod/reduction_indices");
  const Output size = AddOp("Prod", {masked, axis}, {}, absl::StrCat(scope.name(), "Prod/"));
  const Output before = shape_part(Index::Range(std::nullopt, 0));
  const Output after = shape_part(Index::Range(rank, std::nullopt));
  Output shape;
  {
    const NameScope concat(g, "concat");
    const Output middle = AddOp("Pack", {Outputs{size}}, {}, "values_1");
    const Output dim = Const(g, int32_t{0}, "axis");
    shape = AddOp("ConcatV2", {Outputs{before, middle, after}, dim}, {}, concat.name());
  }
  const Output flat = AddOp("Reshape", {values, shape});
  const Output flat_mask = Reshape(mask, {-1});
  return Gather(flat, Squeeze(Where(flat_mask), {1}));
}

}  // namespace weir
