#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "weir/onnx/building.h"
#include "weir/onnx/importers.h"
#include "weir/ops/lib/math.h"

// Resize and Upsample, axis by axis. Each element of the result is a sum of a few elements of the
// input, the taps: 1 for nearest, 2 for linear, 4 for cubic. A vector over the axis has the
// position of each element in the input, from which the indices and the weights of the taps follow.
// Taps beyond the ends take the element at the end.
namespace weir::onnx {

namespace {

// One axis: the sizes before and after, and their quotient, as scalars of double.
struct ResizedAxis {
  int axis = 0;
  Output in, out, scale;
};

struct ResizeOptions {
  std::string mode, coordinates, nearest;
  double cubic_a = -0.75;
  bool excludes_outside = false;
};

Output Double(Graph& graph, double value) { return Const<double>(graph, value); }

// ---- the axes and their sizes

absl::StatusOr<std::vector<int>> AxesOf(NodeContext& c, int rank) {
  std::vector<int64_t> given = c.Ints("axes");
  if (given.empty()) {
    for (int i = 0; i < rank; ++i) given.push_back(i);
  }
  WEIR_ASSIGN_OR_RETURN(given, ResolveAxes(given, rank));
  return std::vector<int>(given.begin(), given.end());
}

// Whether a constant leaves the axis as it is: a scale of 1, or the size that the axis has.
bool IsUnchanged(const std::optional<Tensor>& scales, const std::optional<Tensor>& sizes, int i,
                 int64_t size) {
  if (scales && scales->dtype() == DT_FLOAT && i < scales->num_elements())
    return scales->data<float>()[i] == 1;
  return sizes && IsInteger(sizes->dtype()) && i < sizes->num_elements() && size >= 0 &&
         sizes->IntAt(i) == size;
}

// One factor for all axes: the smallest or the largest with which a result fits its sizes.
Output CommonScale(const Output& x, const Output& sizes, const std::vector<int>& axes,
                   bool is_smallest) {
  Outputs factors;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Output size = StridedSlice(sizes, {Index(static_cast<int64_t>(i))});
    factors.push_back(RealDiv(Cast(size, DT_DOUBLE), Cast(DimOf(x, axes[i]), DT_DOUBLE)));
  }
  const Output all = Stack(factors);
  return is_smallest ? ReduceMin(all, 0) : ReduceMax(all, 0);
}

absl::StatusOr<std::vector<ResizedAxis>> ResizedAxesOf(NodeContext& c, const Output& scales,
                                                       const Output& sizes, int rank) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(c, rank));
  const std::string policy = c.String("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    return InvalidArgument("keep_aspect_ratio_policy is '", policy, "'");
  const Output x = c.in(0);
  Output common;
  if (sizes.valid() && policy != "stretch")
    common = CommonScale(x, sizes, axes, policy == "not_larger");
  std::vector<ResizedAxis> out;
  const std::optional<Tensor> known_scales = ConstantOf(scales), known_sizes = ConstantOf(sizes);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int at = static_cast<int>(i);
    if (policy == "stretch" && IsUnchanged(known_scales, known_sizes, at, x.dim(axes[i]))) continue;
    ResizedAxis a{.axis = axes[i], .in = Cast(DimOf(x, axes[i]), DT_DOUBLE)};
    if (sizes.valid() && !common.valid()) {
      a.out = Cast(StridedSlice(sizes, {Index(at)}), DT_DOUBLE);
      a.scale = RealDiv(a.out, a.in);
    } else {
      a.scale = common.valid() ? common : Cast(StridedSlice(scales, {Index(at)}), DT_DOUBLE);
      const Output size = Multiply(a.in, a.scale);
      a.out = Floor(common.valid() ? Add(size, Double(c.graph(), 0.5)) : size);
    }
    out.push_back(a);
  }
  return out;
}

// ---- positions and taps

absl::StatusOr<Output> PositionsOf(const ResizedAxis& a, const std::string& mode) {
  Graph& g = a.in.graph();
  const Output half = Double(g, 0.5), zero = Double(g, 0), one = Double(g, 1);
  const Output index = Range(zero, a.out, one);
  const Output centered = Subtract(RealDiv(Add(index, half), a.scale), half);
  if (mode == "half_pixel") return centered;
  if (mode == "asymmetric") return RealDiv(index, a.scale);
  if (mode == "tf_half_pixel_for_nn") return RealDiv(Add(index, half), a.scale);
  if (mode == "pytorch_half_pixel")
    return SelectV2(Greater(a.out, one), centered, ZerosLike(centered));
  if (mode == "align_corners") {
    // ONNX takes the size before it is rounded down.
    const Output size = Multiply(a.in, a.scale);
    const Output step = DivNoNan(Subtract(a.in, one), Subtract(size, one));
    return Multiply(index, step);
  }
  if (mode == "half_pixel_symmetric") {
    const Output adjustment = RealDiv(a.out, Multiply(a.scale, a.in));
    const Output center = Multiply(a.in, half);
    return Add(Multiply(center, Subtract(one, adjustment)), centered);
  }
  return Unimplemented("coordinate_transformation_mode '", mode, "' is not supported");
}

absl::StatusOr<Output> NearestOf(const Output& position, const std::string& mode) {
  const Output half = Double(position.graph(), 0.5);
  if (mode == "round_prefer_floor") return Ceil(Subtract(position, half));
  if (mode == "round_prefer_ceil") return Floor(Add(position, half));
  if (mode == "floor") return Floor(position);
  if (mode == "ceil") return Ceil(position);
  return InvalidArgument("nearest_mode is '", mode, "'");
}

// The weights of the taps floor - 1 to floor + 2, at t in [0, 1) between floor and floor + 1: Keys'
// cubic convolution, with its parameter a.
Outputs CubicWeights(const Output& t, double a) {
  Graph& g = t.graph();
  const auto near = [&](const Output& d) {  // ((a + 2) d - (a + 3)) d d + 1, for d up to 1
    const Output inner = Subtract(Multiply(Double(g, a + 2), d), Double(g, a + 3));
    return Add(Multiply(Multiply(inner, d), d), Double(g, 1));
  };
  const auto far = [&](const Output& d) {  // ((a d - 5 a) d + 8 a) d - 4 a, for d up to 2
    const Output first = Subtract(Multiply(Double(g, a), d), Double(g, 5 * a));
    const Output second = Add(Multiply(first, d), Double(g, 8 * a));
    return Subtract(Multiply(second, d), Double(g, 4 * a));
  };
  const Output one = Double(g, 1), rest = Subtract(one, t);
  return {far(Add(t, one)), near(t), near(rest), far(Add(rest, one))};
}

Output Interpolate(const Output& x, const ResizedAxis& a, const Output& position,
                   const ResizeOptions& o, int rank) {
  Graph& g = x.graph();
  const Output floor = Floor(position), t = Subtract(position, floor);
  const Output zero = Double(g, 0), last = Subtract(a.in, Double(g, 1));
  const bool is_cubic = o.mode == "cubic";
  Outputs weights = is_cubic ? CubicWeights(t, o.cubic_a) : Outputs{Subtract(Double(g, 1), t), t};
  Outputs indices;
  for (size_t i = 0; i < weights.size(); ++i)
    indices.push_back(Add(floor, Double(g, static_cast<double>(i) - (is_cubic ? 1 : 0))));
  if (o.excludes_outside) {
    Output sum;
    for (size_t i = 0; i < weights.size(); ++i) {
      const Output is_inside =
          LogicalAnd(GreaterEqual(indices[i], zero), LessEqual(indices[i], last));
      weights[i] = SelectV2(is_inside, weights[i], zero);
      sum = sum.valid() ? Add(sum, weights[i]) : weights[i];
    }
    for (Output& weight : weights) weight = RealDiv(weight, sum);
  }
  Output y;
  for (size_t i = 0; i < weights.size(); ++i) {
    const Output index = Cast(Maximum(zero, Minimum(indices[i], last)), DT_INT64);
    const Output weight = AlongAxis(Cast(weights[i], x.dtype()), a.axis, rank);
    const Output part = Multiply(Gather(x, index, {.axis = a.axis}), weight);
    y = y.valid() ? Add(y, part) : part;
  }
  return y;
}

absl::Status Resized(NodeContext& c, const Output& scales, const Output& sizes,
                     const ResizeOptions& o) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  if (o.mode != "nearest" && o.mode != "linear" && o.mode != "cubic")
    return InvalidArgument("mode is '", o.mode, "'; expected nearest, linear or cubic");
  WEIR_ASSIGN_OR_RETURN(const std::vector<ResizedAxis> axes, ResizedAxesOf(c, scales, sizes, rank));
  const bool is_nearest = o.mode == "nearest";
  Output x = is_nearest || IsFloating(c.dtype(0)) ? c.in(0) : Cast(c.in(0), DT_FLOAT);
  for (const ResizedAxis& a : axes) {
    WEIR_ASSIGN_OR_RETURN(const Output position, PositionsOf(a, o.coordinates));
    if (!is_nearest) {
      x = Interpolate(x, a, position, o, rank);
      continue;
    }
    WEIR_ASSIGN_OR_RETURN(const Output nearest, NearestOf(position, o.nearest));
    const Output last = Subtract(a.in, Double(c.graph(), 1));
    const Output inside = Maximum(Double(c.graph(), 0), Minimum(nearest, last));
    x = Gather(x, Cast(inside, DT_INT64), {.axis = a.axis});
  }
  return c.Return(Cast(x, c.dtype(0)));
}

absl::Status ImportResize(NodeContext& c) {
  ResizeOptions o{.mode = c.String("mode", "nearest")};
  if (c.version() < 11) {
    o.coordinates = "asymmetric";
    o.nearest = "floor";
    return Resized(c, c.in(1), Output(), o);
  }
  o.coordinates = c.String("coordinate_transformation_mode", "half_pixel");
  o.nearest = c.String("nearest_mode", "round_prefer_floor");
  o.cubic_a = c.Float("cubic_coeff_a", -0.75f);
  o.excludes_outside = c.Int("exclude_outside", 0) != 0;
  c.Ignore("extrapolation_value");  // of tf_crop_and_resize only
  if (c.Int("antialias", 0) != 0) return Unimplemented("antialias is not supported");
  const bool has_sizes = c.has(3);
  if (!has_sizes && !c.has(2)) return InvalidArgument("scales and sizes are missing");
  return Resized(c, has_sizes ? Output() : c.in(2), has_sizes ? c.in(3) : Output(), o);
}

absl::Status ImportUpsample(NodeContext& c) {
  const Output scales = c.version() < 9 ? Const<float>(c.graph(), c.Floats("scales")) : c.in(1);
  if (!scales.valid()) return InvalidArgument("scales are missing");
  return Resized(
      c, scales, Output(),
      {.mode = c.String("mode", "nearest"), .coordinates = "asymmetric", .nearest = "floor"});
}

constexpr Importer kImporters[] = {
    {"Resize", 10, 1, 4, ImportResize},
    {"Upsample", 7, 1, 2, ImportUpsample, 9},
};

}  // namespace

absl::Span<const Importer> ResizeImporters() { return kImporters; }

}  // namespace weir::onnx
