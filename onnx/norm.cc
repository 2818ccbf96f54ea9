#include <numeric>
#include <utility>

#include "weir/onnx/building.h"
#include "weir/onnx/importers.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"
#include "weir/ops/random/random.h"

// Normalizations, softmaxes and dropout.
namespace weir::onnx {

namespace {

std::vector<int64_t> AxesFrom(int first, int rank) {
  std::vector<int64_t> axes(rank - first);
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

// (x - mean) / sqrt(variance + epsilon), and the parts of it.
struct Normalized {
  Output y, mean, inverse_deviation;
};
Normalized Normalize(const Output& x, const std::vector<int64_t>& axes, double epsilon) {
  Normalized n;
  n.mean = ReduceMean(x, axes, true);
  const Output variance = ReduceMean(SquaredDifference(x, n.mean), axes, true);
  n.inverse_deviation = Rsqrt(Add(variance, ScalarLike(variance, epsilon)));
  n.y = Multiply(Subtract(x, n.mean), n.inverse_deviation);
  return n;
}

// The dtype that a normalization computes in: at least float, unless stash_type says otherwise.
absl::StatusOr<DataType> StashType(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const DataType stash, c.Type("stash_type", DT_FLOAT));
  return c.dtype(0) == DT_DOUBLE ? DT_DOUBLE : stash;
}

// ---- BatchNormalization

// Returns the batch's results and the new running statistics, which move toward those of the batch.
absl::Status TrainBatchNorm(NodeContext& c, int rank) {
  std::vector<int64_t> axes = AxesFrom(1, rank);
  axes[0] = 0;
  const Output x = c.in(0);
  const float momentum = c.Float("momentum", 0.9f);
  const MomentsResult batch = Moments(x, axes);
  const auto moved = [&](const Output& running, const Output& now) {
    const Output old = Multiply(running, ScalarLike(running, momentum));
    return Add(old, Multiply(Cast(now, running.dtype()), ScalarLike(running, 1 - momentum)));
  };
  const Output epsilon = ScalarLike(x, c.Float("epsilon", 1e-5f));
  const Output scale = Multiply(Cast(c.in(1), x.dtype()), Rsqrt(Add(batch.variance, epsilon)));
  const Output centered = Subtract(x, AlongAxis(batch.mean, 1, rank));
  const Output y = Add(Multiply(centered, AlongAxis(scale, 1, rank)),
                       AlongAxis(Cast(c.in(2), x.dtype()), 1, rank));
  return c.Return({y, moved(c.in(3), batch.mean), moved(c.in(4), batch.variance)});
}

absl::Status ImportBatchNormalization(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  if (rank < 2) return InvalidArgument("the input has rank ", rank, "; expected 2 or more");
  if (c.version() < 9 && c.Int("spatial", 1) == 0)
    return Unimplemented("statistics for each element (spatial = 0) are not supported");
  if (c.Int("training_mode", 0) != 0) return TrainBatchNorm(c, rank);
  if (c.wants(1)) return Unimplemented("the statistics of training are not supported in inference");
  c.Ignore("momentum");
  const Output x = c.in(0);
  const float epsilon = c.Float("epsilon", 1e-5f);
  const bool is_float = IsFloating(x.dtype()) && x.dtype() != DT_DOUBLE;
  if (rank == 4 && is_float && c.dtype(1) == DT_FLOAT && c.dtype(3) == DT_FLOAT) {
    return c.Return(FusedBatchNorm(x, c.in(1), c.in(2),
                                   {.mean = c.in(3),
                                    .variance = c.in(4),
                                    .epsilon = epsilon,
                                    .data_format = "NCHW",
                                    .is_training = false})
                        .y);
  }
  const Output inverse = Rsqrt(Add(c.in(4), ScalarLike(c.in(4), epsilon)));
  const Output scale = Multiply(Cast(c.in(1), inverse.dtype()), inverse);
  const Output shift =
      Subtract(Cast(c.in(2), scale.dtype()), Multiply(Cast(c.in(3), scale.dtype()), scale));
  return c.Return(Add(Multiply(x, AlongAxis(Cast(scale, x.dtype()), 1, rank)),
                      AlongAxis(Cast(shift, x.dtype()), 1, rank)));
}

// ---- normalizations of each example

absl::Status ImportInstanceNormalization(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  if (rank < 3) return InvalidArgument("the input has rank ", rank, "; expected 3 or more");
  const Normalized n = Normalize(c.in(0), AxesFrom(2, rank), c.Float("epsilon", 1e-5f));
  return c.Return(Add(Multiply(n.y, AlongAxis(c.in(1), 1, rank)), AlongAxis(c.in(2), 1, rank)));
}

absl::Status ImportLayerNormalization(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  WEIR_ASSIGN_OR_RETURN(const int axis, ResolveAxis(c.Int("axis", -1), rank));
  WEIR_ASSIGN_OR_RETURN(const DataType stash, StashType(c));
  const Normalized n =
      Normalize(Cast(c.in(0), stash), AxesFrom(axis, rank), c.Float("epsilon", 1e-5f));
  Output y = Multiply(Cast(n.y, c.dtype(0)), c.in(1));
  if (c.has(2)) y = Add(y, c.in(2));
  return c.Return({y, n.mean, n.inverse_deviation});
}

absl::Status ImportRmsNormalization(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  WEIR_ASSIGN_OR_RETURN(const int axis, ResolveAxis(c.Int("axis", -1), rank));
  WEIR_ASSIGN_OR_RETURN(const DataType stash, StashType(c));
  const Output x = Cast(c.in(0), stash);
  const Output mean = ReduceMean(Square(x), AxesFrom(axis, rank), true);
  const Output inverse = Rsqrt(Add(mean, ScalarLike(mean, c.Float("epsilon", 1e-5f))));
  return c.Return(Multiply(Cast(Multiply(x, inverse), c.dtype(0)), c.in(1)));
}

// Normalizes groups of channels. Scale and bias have one element for each channel, or before
// version 21 for each group.
absl::Status ImportGroupNormalization(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  WEIR_ASSIGN_OR_RETURN(const DataType stash, StashType(c));
  const int64_t groups = c.Int("num_groups", 0);
  const int64_t channels = c.shape(0).dim(1);
  if (rank < 3 || groups < 1 || channels < 0 || channels % groups != 0)
    return InvalidArgument("an input of the shape ", c.shape(0).ToString(), " cannot have ", groups,
                           " groups of channels");
  const Output x = Cast(c.in(0), stash);
  const Output grouped = Reshape(
      x, Stack({DimOf(x, 0), Const<int64_t>(c.graph(), groups), Const<int64_t>(c.graph(), -1)}));
  const Normalized n = Normalize(grouped, {2}, c.Float("epsilon", 1e-5f));
  const auto by_channel = [&](const Output& v) {
    if (c.version() >= 21) return AlongAxis(v, 1, rank);
    const Output repeated = Tile(ExpandDims(v, 1), {1, channels / groups});
    return AlongAxis(Reshape(repeated, {-1}), 1, rank);
  };
  const Output y = Cast(WithShape(Reshape(n.y, ShapeOf(x)), x.shape()), c.dtype(0));
  return c.Return(Add(Multiply(y, by_channel(c.in(1))), by_channel(c.in(2))));
}

absl::Status ImportMeanVarianceNormalization(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  WEIR_ASSIGN_OR_RETURN(const std::vector<int64_t> axes,
                        ResolveAxes(c.Ints("axes", {0, 2, 3}), rank));
  const Output x = c.in(0), mean = ReduceMean(x, axes, true);
  const Output square = ReduceMean(Square(x), axes, true);
  const Output deviation = Sqrt(Subtract(square, Square(mean)));
  const Output floor = Add(deviation, ScalarLike(deviation, 1e-9));
  return c.Return(RealDiv(Subtract(x, mean), floor));
}

// Zero where the norm is zero.
absl::Status ImportLpNormalization(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  WEIR_ASSIGN_OR_RETURN(const int axis, ResolveAxis(c.Int("axis", -1), rank));
  const int64_t p = c.Int("p", 2);
  if (p != 1 && p != 2) return InvalidArgument("p is ", p, "; expected 1 or 2");
  const Output x = c.in(0);
  const Output norm =
      p == 1 ? ReduceSum(Abs(x), axis, true) : Sqrt(ReduceSum(Square(x), axis, true));
  return c.Return(DivNoNan(x, norm));
}

// x / (bias + alpha / size * sum of x^2 over neighboring channels)^beta.
absl::Status ImportLrn(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  const int64_t size = c.Int("size", 0);
  if (rank < 2 || size < 1 || size > 1024)
    return InvalidArgument("expected a size from 1 to 1024 and an input with channels; they are ",
                           size, " and ", c.shape(0).ToString());
  const Output x = c.in(0), squares = Square(x);
  std::vector<std::pair<int64_t, int64_t>> paddings(rank, {0, 0});
  paddings[1] = {(size - 1) / 2, size / 2};
  std::vector<int64_t> flat;
  for (const auto& [before, after] : paddings) flat.insert(flat.end(), {before, after});
  const Output rows =
      Const(c.graph(), Tensor::Of<int64_t>(Shape({rank, 2}), absl::Span<const int64_t>(flat)));
  const Output padded = Pad(squares, rows);
  Output sum;
  for (int64_t i = 0; i < size; ++i) {
    const int64_t rest = size - 1 - i;
    const Output part = StridedSlice(
        padded, {Index::All(),
                 Index::Range(i, rest == 0 ? std::optional<int64_t>() : std::optional(-rest))});
    sum = sum.valid() ? Add(sum, part) : part;
  }
  const double alpha = c.Float("alpha", 1e-4f) / static_cast<double>(size);
  const Output scaled = Multiply(sum, ScalarLike(x, alpha));
  const Output base = Add(scaled, ScalarLike(x, c.Float("bias", 1.0f)));
  return c.Return(RealDiv(x, Pow(base, ScalarLike(x, c.Float("beta", 0.75f)))));
}

// ---- softmaxes

// Calls make(x, axis), on one axis since version 13. Before, all axes from the given one on are
// one.
template <class Make>
absl::Status OverAxis(NodeContext& c, const Make& make) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  const bool is_flat = c.version() < 13;
  const int64_t given = c.Int("axis", is_flat ? 1 : -1);
  const Output x = c.in(0);
  if (!is_flat || given == rank - 1 || given == -1) {
    WEIR_ASSIGN_OR_RETURN(const int axis, ResolveAxis(given, rank));
    return c.Return(SwapAxes(make(SwapAxes(x, axis, rank - 1)), axis, rank - 1));
  }
  if (given < -rank || given > rank)
    return InvalidArgument("axis ", given, " is out of range for an input of rank ", rank);
  const int64_t axis = given < 0 ? given + rank : given;
  const Output shape = ShapeOf(x);
  const Output rows = ReduceProd(StridedSlice(shape, {Index::Range(0, axis)}), 0);
  const Output matrix = Reshape(x, Stack({rows, Const<int64_t>(c.graph(), -1)}));
  return c.Return(WithShape(Reshape(make(matrix), shape), x.shape()));
}

absl::Status ImportSoftmax(NodeContext& c) {
  return OverAxis(c, [](const Output& x) { return Softmax(x); });
}

absl::Status ImportLogSoftmax(NodeContext& c) {
  return OverAxis(c, [](const Output& x) { return LogSoftmax(x); });
}

// One at the first maximum, and zero elsewhere.
absl::Status ImportHardmax(NodeContext& c) {
  return OverAxis(c, [](const Output& x) {
    const Output depth = Cast(DimOf(x, -1), DT_INT32);
    return OneHot(ArgMax(x, -1), depth, {.dtype = x.dtype()});
  });
}

// ---- Dropout

// Without training the input; the mask says that every element was kept.
absl::Status ImportDropout(NodeContext& c) {
  const Output x = c.in(0);
  c.Ignore("seed");
  if (c.version() < 12) c.Ignore("ratio");
  const std::optional<Tensor> mode = c.has(2) ? c.Constant(2) : std::nullopt;
  const bool is_inference = !c.has(2) || (mode && mode->dtype() == DT_BOOL &&
                                          mode->num_elements() == 1 && !mode->scalar<bool>());
  if (is_inference) return c.Return({Identity(x), c.wants(1) ? OnesLike(x, DT_BOOL) : Output()});
  const Output training = c.Scalar(2);
  const Output given = c.has(1) ? Cast(c.Scalar(1), DT_FLOAT) : Const<float>(c.graph(), 0.5f);
  const Output ratio = SelectV2(training, given, Const<float>(c.graph(), 0.0f));
  const Output uniform = RandomUniform(c.graph(), ShapeTensor(x));
  const Output mask = GreaterEqual(uniform, ratio);
  const Output scale =
      Cast(RealDiv(Const<float>(c.graph(), 1.0f), Subtract(Const<float>(c.graph(), 1.0f), ratio)),
           x.dtype());
  return c.Return({SelectV2(mask, Multiply(x, scale), ScalarLike(x, 0)), mask});
}

constexpr Importer kImporters[] = {
    {"BatchNormalization", 7, 5, 5, ImportBatchNormalization},
    {"Dropout", 7, 1, 3, ImportDropout},
    {"GroupNormalization", 18, 3, 3, ImportGroupNormalization},
    {"Hardmax", 7, 1, 1, ImportHardmax},
    {"InstanceNormalization", 7, 3, 3, ImportInstanceNormalization},
    {"LRN", 7, 1, 1, ImportLrn},
    {"LayerNormalization", 17, 2, 3, ImportLayerNormalization},
    {"LogSoftmax", 7, 1, 1, ImportLogSoftmax},
    {"LpNormalization", 7, 1, 1, ImportLpNormalization},
    {"MeanVarianceNormalization", 9, 1, 1, ImportMeanVarianceNormalization},
    {"RMSNormalization", 23, 2, 2, ImportRmsNormalization},
    {"Softmax", 7, 1, 1, ImportSoftmax},
};

}  // namespace

absl::Span<const Importer> NormImporters() { return kImporters; }

}  // namespace weir::onnx
