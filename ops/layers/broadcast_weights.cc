#include "weir/ops/layers/broadcast_weights.h"

#include "weir/core/graph/scope.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/sparse/sets.h"

namespace weir {

namespace {

constexpr char kCannotBroadcast[] = "weights can not be broadcast to values.";

// An argument of the check: the tensor, its shape and its rank.
struct ShapedTensor {
  Output tensor, shape, rank;
};

ShapedTensor WithShapeAndRank(Graph& g, const TensorArg& value, absl::string_view name) {
  const NameScope scope(g, name);
  ShapedTensor m;
  m.tensor = value.In(g, DT_INVALID, scope.name());
  m.shape = ShapeTensor(m.tensor, DT_INT32, "shape");
  m.rank = Rank(m.tensor, "rank");
  return m;
}

// Checks the static shapes. Returns a NoOp if the weights are broadcastable, or an empty Operation
// if the static shapes do not decide it.
absl::StatusOr<Operation> CheckStatically(Graph& g, const Output& weights, const Output& values) {
  const Shape &w = weights.shape(), &v = values.shape();
  if (!w.has_rank() || !v.has_rank()) return Operation();
  if (w.rank() == 0) return NoOp(g, "static_scalar_check_success");
  if (w.rank() != v.rank()) {
    return InvalidArgument(kCannotBroadcast, " values.rank=", v.rank(), ". weights.rank=", w.rank(),
                           ". values.shape=", v.ToString(), ". weights.shape=", w.ToString(),
                           ". Received weights=", weights.name(), ", values=", values.name());
  }
  if (!w.IsFullyDefined() || !v.IsFullyDefined()) return Operation();
  for (int i = 0; i < v.rank(); ++i) {
    if (w.dim(i) == 1 || w.dim(i) == v.dim(i)) continue;
    return InvalidArgument(kCannotBroadcast, " Mismatch at dim ", i,
                           ". values.shape=", v.ToString(), ", weights.shape=", w.ToString(),
                           ". Received weights=", weights.name(), ", values=", values.name());
  }
  return NoOp(g, "static_dims_check_success");
}

// Returns whether each dimension of the weights is 1 or equal to that of the values.
Output HasValidDims(Graph& g, const Output& weights_shape, const Output& values_shape) {
  const NameScope scope(g, "has_invalid_dims");
  const Output values_2d = ExpandDims(values_shape, -1);
  const Output ones = OnesLike(values_2d);
  const Output valid = Concat({values_2d, ones}, 1);
  const Output weights_2d = ExpandDims(weights_shape, -1);
  const SparseTensor invalid = SetDifference(weights_2d, valid);
  const Output count = Size(invalid.values, DT_INT32, "num_invalid_dims");
  return Equal(0, count, scope.name());
}

Output HasValidNonscalarShape(Graph& g, const ShapedTensor& weights, const ShapedTensor& values) {
  const NameScope scope(g, "has_valid_nonscalar_shape");
  const Output same_rank = Equal(values.rank, weights.rank, "is_same_rank");
  return Cond(
      same_rank, [&] { return HasValidDims(g, weights.shape, values.shape); },
      [&] { return same_rank; }, scope.name());
}

Operation CheckAtRunTime(Graph& g, const ShapedTensor& weights, const ShapedTensor& values,
                         const std::string& scope) {
  const Output is_scalar = Equal(0, weights.rank, "is_scalar");
  const Output valid = Cond(
      is_scalar, [&] { return is_scalar; },
      [&] { return HasValidNonscalarShape(g, weights, values); }, "is_valid_shape");
  const std::vector<TensorArg> data = {kCannotBroadcast, "weights.shape=", weights.tensor.name(),
                                       weights.shape,    "values.shape=",  values.tensor.name(),
                                       values.shape,     "is_scalar=",     is_scalar};
  return AssertThat(valid, data, scope);
}

}  // namespace

Operation AssertBroadcastable(const TensorArg& weights, Output values) {
  if (!values.valid()) return {};
  Graph& g = values.graph();
  const NameScope scope(g, "assert_broadcastable");
  const ShapedTensor w = WithShapeAndRank(g, weights, "weights");
  const ShapedTensor v = WithShapeAndRank(g, values, "values");
  if (!w.tensor.valid()) return {};
  const absl::StatusOr<Operation> known = CheckStatically(g, w.tensor, v.tensor);
  if (!known.ok()) {
    g.Fail(known.status());
    return {};
  }
  return known->valid() ? *known : CheckAtRunTime(g, w, v, scope.name());
}

Output BroadcastWeights(Output weights, Output values) {
  if (!weights.valid() || !values.valid()) return {};
  Graph& g = values.graph();
  const NameScope scope(g, "broadcast_weights");
  if (weights.shape().IsFullyDefined() && weights.shape() == values.shape()) return weights;
  const Operation check = AssertBroadcastable(weights, values);
  if (!check.valid()) return {};
  const ControlDependencies after(g, {check});
  return Multiply(weights, OnesLike(values), scope.name());
}

Output CastArg(Graph& graph, const TensorArg& value, DataType dtype) {
  if (!value.is_literal()) return value.output().valid() ? Cast(value.output(), dtype) : Output();
  const NameScope scope(graph, "Cast");
  // An untyped integer literal becomes int32 if int32 can represent it, as in Python.
  const Literal& literal = value.literal();
  const absl::StatusOr<Tensor> own = literal.Make();
  const bool is_int = literal.untyped() && own.ok() && own->dtype() == DT_INT64;
  const bool is_small = is_int && literal.Make(DT_INT32).ok();
  const Output x = value.In(graph, is_small ? DT_INT32 : DT_INVALID, "x");
  return x.valid() ? Cast(x, dtype, scope.name()) : Output();
}

bool CheckCompatible(const Output& a, const Output& b) {
  if (!a.valid() || !b.valid()) return false;
  if (a.shape().IsCompatibleWith(b.shape())) return true;
  a.graph().Fail(InvalidArgument("Shapes ", a.shape().ToString(), " and ", b.shape().ToString(),
                                 " are incompatible: ", a.name(), " and ", b.name()));
  return false;
}

LabelsAndPredictions RemoveSqueezableDimensions(Output labels, Output predictions,
                                                int expected_rank_diff) {
  if (!labels.valid() || !predictions.valid()) return {};
  Graph& g = labels.graph();
  const NameScope scope(g, "remove_squeezable_dimensions");
  const Shape &l = labels.shape(), &p = predictions.shape();
  const auto may_end_in_1 = [](const Shape& s) {
    return !s.has_rank() || (s.rank() > 0 && (s.dim(-1) == 1 || s.dim(-1) < 0));
  };
  const bool squeeze_predictions = may_end_in_1(p), squeeze_labels = may_end_in_1(l);
  if (l.has_rank() && p.has_rank()) {
    const int diff = p.rank() - l.rank();
    if (diff == expected_rank_diff + 1 && squeeze_predictions) {
      predictions = Squeeze(predictions, {-1});
    } else if (diff == expected_rank_diff - 1 && squeeze_labels) {
      labels = Squeeze(labels, {-1});
    }
    return {labels, predictions};
  }
  const Output predictions_rank = Rank(predictions);
  const Output diff = predictions_rank - Rank(labels);
  const auto squeezed_if = [&](const Output& x, int wanted) {
    return Cond(
        Equal(wanted, diff), [&] { return Squeeze(x, {-1}); }, [&] { return x; });
  };
  const Output given = predictions;
  if (squeeze_predictions) predictions = squeezed_if(given, expected_rank_diff + 1);
  if (squeeze_labels) labels = squeezed_if(labels, expected_rank_diff - 1);
  return {labels, predictions};
}

}  // namespace weir
