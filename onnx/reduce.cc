#include <numeric>
#include <utility>

#include "weir/onnx/building.h"
#include "weir/onnx/importers.h"
#include "weir/ops/lib/math.h"

// Reductions, and what is like them: ArgMax, CumSum.
namespace weir::onnx {

namespace {

using Reduce = Output (*)(const Output& x, const Ints& axes, bool keep_dims);

// The axes of a reduction: an attribute, or from a version on an input; all if there are none.
struct Axes {
  Ints axes;
  bool reduces = true;  // false: without axes, the node returns its input
};

absl::StatusOr<Axes> AxesOf(NodeContext& c, int rank) {
  const int input_since = c.op() == "ReduceSum" ? 13 : 18;
  std::vector<int64_t> all(rank);
  std::iota(all.begin(), all.end(), 0);
  const bool is_noop = c.version() >= input_since && c.Int("noop_with_empty_axes", 0) != 0;
  std::vector<int64_t> given;
  if (c.version() < input_since) {
    given = c.Ints("axes");
  } else if (c.has(1)) {
    const std::optional<std::vector<int64_t>> constant = c.ConstantInts(1);
    if (!constant && !c.shape(1).IsFullyDefined())
      return Unimplemented("the number of axes is not known while the graph is built");
    if (!constant && c.shape(1).num_elements() > 0) return Axes{.axes = weir::Ints(c.in(1))};
    if (constant) given = *constant;
  }
  if (given.empty()) return Axes{.axes = all, .reduces = !is_noop};
  WEIR_ASSIGN_OR_RETURN(given, ResolveAxes(given, rank));
  return Axes{.axes = given};
}

// The result for a reduction over no axes is the elementwise part of the operator.
template <Reduce kReduce>
absl::Status ImportReduce(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  WEIR_ASSIGN_OR_RETURN(const Axes axes, AxesOf(c, rank));
  const bool keep_dims = c.Int("keepdims", 1) != 0;
  const Ints over = axes.reduces ? axes.axes : weir::Ints(std::vector<int64_t>());
  return c.Return(kReduce(c.in(0), over, keep_dims));
}

Output Sum(const Output& x, const Ints& axes, bool keep) { return ReduceSum(x, axes, keep); }
Output Mean(const Output& x, const Ints& axes, bool keep) { return ReduceMean(x, axes, keep); }
Output Prod(const Output& x, const Ints& axes, bool keep) { return ReduceProd(x, axes, keep); }

Output Max(const Output& x, const Ints& axes, bool keep) {
  return x.dtype() == DT_BOOL ? ReduceAny(x, axes, keep) : ReduceMax(x, axes, keep);
}
Output Min(const Output& x, const Ints& axes, bool keep) {
  return x.dtype() == DT_BOOL ? ReduceAll(x, axes, keep) : ReduceMin(x, axes, keep);
}
Output L1(const Output& x, const Ints& axes, bool keep) { return ReduceSum(Abs(x), axes, keep); }
Output SumSquare(const Output& x, const Ints& axes, bool keep) {
  return ReduceSum(Square(x), axes, keep);
}

// Functions of real numbers, for integers too: computed in double, and rounded toward zero.
template <class Make>
Output InFloat(const Output& x, const Make& make) {
  if (!IsInteger(x.dtype())) return make(x);
  return Cast(make(Cast(x, DT_DOUBLE)), x.dtype());
}

Output L2(const Output& x, const Ints& axes, bool keep) {
  return InFloat(x, [&](const Output& f) { return Sqrt(ReduceSum(Square(f), axes, keep)); });
}
Output LogSum(const Output& x, const Ints& axes, bool keep) {
  return InFloat(x, [&](const Output& f) { return Log(ReduceSum(f, axes, keep)); });
}
Output LogSumExp(const Output& x, const Ints& axes, bool keep) {
  return InFloat(x, [&](const Output& f) { return ReduceLogsumexp(f, axes, keep); });
}

// The position of the first extreme, or by option that of the last one: the first one of the
// reversed tensor, counted from the end.
template <Output (*kArg)(Output, const Ints&, DataType, absl::string_view)>
absl::Status ImportArg(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  WEIR_ASSIGN_OR_RETURN(const int axis, ResolveAxis(c.Int("axis", 0), rank));
  const bool is_last = c.Int("select_last_index", 0) != 0;
  const Output x = is_last ? Reverse(c.in(0), {axis}) : c.in(0);
  Output position = kArg(x, axis, DT_INT64, {});
  if (is_last) {
    const Output last = Subtract(DimOf(x, axis), Const<int64_t>(c.graph(), 1));
    position = Subtract(last, position);
  }
  return c.Return(c.Int("keepdims", 1) != 0 ? ExpandDims(position, axis) : position);
}

template <Output (*kCumulate)(Output, const Ints&, const CumulativeOptions&, absl::string_view)>
absl::Status ImportCumulative(NodeContext& c) {
  const Output axis = c.Scalar(1);
  return c.Return(kCumulate(
      c.in(0), axis, {.exclusive = c.Int("exclusive", 0) != 0, .reverse = c.Int("reverse", 0) != 0},
      {}));
}

constexpr Importer kImporters[] = {
    {"ArgMax", 7, 1, 1, ImportArg<ArgMax>},
    {"ArgMin", 7, 1, 1, ImportArg<ArgMin>},
    {"CumProd", 26, 2, 2, ImportCumulative<Cumprod>},
    {"CumSum", 11, 2, 2, ImportCumulative<Cumsum>},
    {"ReduceL1", 7, 1, 2, ImportReduce<L1>},
    {"ReduceL2", 7, 1, 2, ImportReduce<L2>},
    {"ReduceLogSum", 7, 1, 2, ImportReduce<LogSum>},
    {"ReduceLogSumExp", 7, 1, 2, ImportReduce<LogSumExp>},
    {"ReduceMax", 7, 1, 2, ImportReduce<Max>},
    {"ReduceMean", 7, 1, 2, ImportReduce<Mean>},
    {"ReduceMin", 7, 1, 2, ImportReduce<Min>},
    {"ReduceProd", 7, 1, 2, ImportReduce<Prod>},
    {"ReduceSum", 7, 1, 2, ImportReduce<Sum>},
    {"ReduceSumSquare", 7, 1, 2, ImportReduce<SumSquare>},
};

}  // namespace

absl::Span<const Importer> ReduceImporters() { return kImporters; }

}  // namespace weir::onnx
