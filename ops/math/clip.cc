#include "weir/ops/math/clip.h"

#include <algorithm>

#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array.h"

namespace weir {

namespace {

Output Values(const Grad& grad) { return grad.is_slices() ? grad.slices().values : grad.dense(); }

Grad WithValues(const Grad& grad, Output values) {
  if (!grad.is_slices()) return Grad(values);
  IndexedSlices slices = grad.slices();
  slices.values = values;
  return Grad(slices);
}

Output NamedIdentity(const Output& x, const NameScope& scope) {
  return AddOp("Identity", {x}, {}, scope.name());
}

Graph* GraphOf(const Grads& grads) {
  for (const Grad& grad : grads) {
    if (!grad.none()) return &grad.node()->graph();
  }
  return nullptr;
}

}  // namespace

// Takes the square root only where the sum is positive, because its gradient at 0 is infinite.
Output ClipByNorm(Output x, double clip_norm, const Ints* axes, absl::string_view name) {
  if (!x.valid()) return {};
  const NameScope scope(x.graph(), name.empty() ? "clip_by_norm" : name);
  clip_norm = std::max(clip_norm, 0.0);
  const Output squares = x * x;
  const Output sum =
      ReduceSum(squares, axes == nullptr ? Ints(AllAxes(x)) : *axes, /*keep_dims=*/true);
  const Output positive = sum > 0;
  const Output safe = Select(positive, sum, OnesLike(sum));
  const Output norm = Select(positive, Sqrt(safe), sum);
  const Output scaled = x * clip_norm;
  return NamedIdentity(scaled / Maximum(norm, clip_norm), scope);
}

Grad ClipByNorm(const Grad& grad, double clip_norm, absl::string_view name) {
  return grad.none() ? grad : WithValues(grad, ClipByNorm(Values(grad), clip_norm, nullptr, name));
}

Output GlobalNorm(const Grads& grads, absl::string_view name) {
  Graph* graph = GraphOf(grads);
  if (graph == nullptr) return {};
  const NameScope scope(*graph, name.empty() ? "global_norm" : name);
  Outputs halves;
  for (const Grad& grad : grads) {
    if (grad.none()) continue;
    const ColocateWith place(*graph, grad.node());
    halves.push_back(AddOp("L2Loss", {Values(grad)}));
  }
  const Output half = ReduceSum(Stack(halves));
  return Sqrt(half * ConstLike(half, 2), "global_norm");
}

// norm - norm is 0, or NaN if the norm is not finite.
ClippedGrads ClipByGlobalNorm(const Grads& grads, const TensorArg& clip_norm, Output use_norm,
                              absl::string_view name) {
  Graph* graph = GraphOf(grads);
  if (graph == nullptr) return {grads, use_norm};
  if (!use_norm.valid()) use_norm = GlobalNorm(grads, name);
  if (!use_norm.valid()) return {};
  const NameScope scope(*graph, name.empty() ? "clip_by_global_norm" : name);
  const Output inverse = 1.0 / use_norm;
  const Output one = ConstLike(use_norm, 1);
  const Output bound = Divide(one, clip_norm, "truediv");
  const Output finite = Multiply(clip_norm, Minimum(inverse, bound), "mul");
  const Output scale = finite + (use_norm - use_norm);
  ClippedGrads clipped{{}, use_norm};
  for (size_t i = 0; i < grads.size(); ++i) {
    if (grads[i].none()) {
      clipped.grads.push_back(grads[i]);
      continue;
    }
    const Output values = Values(grads[i]);
    const ColocateWith place(*graph, values.node);
    const Output scaled = values * Cast(scale, values.dtype());
    clipped.grads.push_back(WithValues(
        grads[i], AddOp("Identity", {scaled}, {}, absl::StrCat(scope.name(), "_", i, "/"))));
  }
  return clipped;
}

Output ClipByAverageNorm(Output x, double clip_norm, absl::string_view name) {
  if (!x.valid()) return {};
  const NameScope scope(x.graph(), name.empty() ? "clip_by_average_norm" : name);
  const Output count = Cast(Size(x), x.dtype());
  const Output inverse_norm = Rsqrt(ReduceSum(x * x));
  const Output one = ConstLike(x, 1);
  return NamedIdentity(x * clip_norm * Minimum(inverse_norm * count, one / clip_norm), scope);
}

}  // namespace weir
