#include "weir/ops/linalg/fit.h"

#include <algorithm>

#include "weir/core/graph/gradient.h"
#include "weir/core/graph/scope.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/math_internal.h"
#include "weir/ops/lib/registry.h"

namespace weir {

Neighbors NearestNeighbors(Output points, Output centers, const Ints& k, absl::string_view name) {
  if (!points.valid()) return {};
  const NameScope scope(points.graph(), name.empty() ? "NearestNeighbors" : name);
  const Output count = k.In(points.graph(), "k", DT_INT64);
  const Outputs y =
      AllOutputs(AddNode("NearestNeighbors", {points, centers, count}, {}, scope.name()), 2);
  return {y[0], y[1]};
}

Output KmeansPlusPlusInitialization(Output points, const Ints& count, const Ints& seed,
                                    const Ints& retries, absl::string_view name) {
  if (!points.valid()) return {};
  Graph& g = points.graph();
  const NameScope scope(g, name.empty() ? "KmeansPlusPlusInitialization" : name);
  return AddOp("KmeansPlusPlusInitialization",
               {points, count.In(g, "num_to_sample", DT_INT64), seed.In(g, "seed", DT_INT64),
                retries.In(g, "num_retries_per_sample", DT_INT64)},
               {}, scope.name());
}

Output Kmc2ChainInitialization(Output distances, const Ints& seed, absl::string_view name) {
  if (!distances.valid()) return {};
  Graph& g = distances.graph();
  const NameScope scope(g, name.empty() ? "KMC2ChainInitialization" : name);
  return AddOp("KMC2ChainInitialization", {distances, seed.In(g, "seed", DT_INT64)}, {},
               scope.name());
}

Output IsotonicRegression(Output x, absl::string_view name) {
  if (!x.valid()) return {};
  const DataType type = x.dtype();
  const bool narrow = type == DT_INT8 || type == DT_INT16;
  const DataType out = IsFloating(type) ? type : narrow ? DT_FLOAT : DT_DOUBLE;
  return AddOp("IsotonicRegression", {x}, {{"output_dtype", out}}, name);
}

namespace {

// ---- shape functions

absl::Status NearestNeighborsShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape points, c.WithRank(0, 2));
  WEIR_ASSIGN_OR_RETURN(const Shape centers, c.WithRank(1, 2));
  WEIR_RETURN_IF_ERROR(MergeDims(points.dim(1), centers.dim(1)).status());
  WEIR_RETURN_IF_ERROR(c.WithRank(2, 0).status());
  int64_t k = Shape::kUnknown;
  const std::optional<std::vector<int64_t>> given = KnownInts(c, 2);
  if (given && given->size() == 1 && centers.dim(0) >= 0)
    k = std::clamp<int64_t>((*given)[0], 0, centers.dim(0));
  for (int i = 0; i < 2; ++i) c.set_output(i, Shape({points.dim(0), k}));
  return absl::OkStatus();
}

absl::Status KmeansShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape points, c.WithRank(0, 2));
  for (int i = 1; i < 4; ++i) WEIR_RETURN_IF_ERROR(c.WithRank(i, 0).status());
  const std::optional<std::vector<int64_t>> given = KnownInts(c, 1);
  const bool known = given && given->size() == 1 && (*given)[0] > 0;
  c.set_output(0, Shape({known ? (*given)[0] : Shape::kUnknown, points.dim(1)}));
  return absl::OkStatus();
}

absl::Status ChainShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(0, 1).status());
  WEIR_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  return ScalarShape(c);
}

// ---- gradients

// Every element of a segment is the mean of the input's segment, so each input element gets the
// mean of the gradient's segment. Segment ids are distinct across rows: each row reserves as many
// ids as it has elements.
Grads IsotonicRegressionGradient(GradContext& g) {
  Graph& graph = g.graph();
  const Output dy = g.dy(0), segments = g.y(1);
  if (segments.shape().rank() == 0) return {dy};
  const Output shape = ShapeVector(segments);
  const Output length = StridedSlice(shape, {Index(-1)});
  const Output rows = ProdOp(StridedSlice(shape, {Index::Range(0, -1)}), 0);
  const Output first = ExpandDims(MulOp(RangeOp(graph, 0, rows, 1), length), 1);
  const Output ids =
      Reshape(AddV2Op(Reshape(segments, Stack({rows, length}, 0)), first), {int64_t{-1}});
  const Output flat = Reshape(dy, {int64_t{-1}}), count = Size(dy);
  const auto in_segment = [&](const Output& x) {
    return Gather(UnsortedSegmentSumOp(x, ids, count), ids);
  };
  const Output means = Divide(in_segment(flat), in_segment(OnesLike(flat)));
  return {Reshape(means, ShapeVector(dy))};
}

}  // namespace

void AddFitOps(OpRegistry* ops) {
  ops->Add(OpSpec("NearestNeighbors")
               .In("points: float, centers: float, k: int64")
               .Out("nearest_center_indices: int64, nearest_center_distances: float")
               .InferShape(NearestNeighborsShape)
               .Doc("Returns the k nearest centers of each point, and the squared distances."));
  ops->Add(OpSpec("KmeansPlusPlusInitialization")
               .In("points: float, num_to_sample: int64, seed: int64, num_retries_per_sample: "
                   "int64")
               .Out("samples: float")
               .InferShape(KmeansShape)
               .Doc("Selects points as initial centers for k-means with k-means++, which prefers "
                    "points far from each other."));
  ops->Add(OpSpec("KMC2ChainInitialization")
               .In("distances: float, seed: int64")
               .Out("index: int64")
               .InferShape(ChainShape)
               .Doc("Returns the final state of a Markov chain over squared distances, which "
                    "approximates one draw of k-means++ (k-MC2)."));
  ops->Add(OpSpec("IsotonicRegression")
               .In("input: T")
               .Out("output: output_dtype, segments: int32")
               .Attr("T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, "
                     "uint32, uint64}")
               .Attr("output_dtype: {half, bfloat16, float, double} = DT_FLOAT")
               .InferShape(SameShape)
               .Gradient(IsotonicRegressionGradient)
               .Doc("Returns the nearest non-increasing sequence for each row. Segments are the "
                    "runs of equal values, which are the means of the input's segments."));
}

}  // namespace weir
