#include <utility>

#include "absl/algorithm/container.h"
#include "weir/onnx/building.h"
#include "weir/onnx/importers.h"
#include "weir/ops/lib/math.h"

// Pad. Every mode but constant gathers, axis by axis, the elements that the padding repeats. So the
// padding may be of any size, and negative: it then removes elements.
namespace weir::onnx {

namespace {

// The elements before and after each axis, as vectors of int64.
struct Paddings {
  Output before, after;
  std::optional<std::vector<int64_t>> known;  // all of them, first those before
};

// Spreads the paddings of some axes to all, with zeros for the others.
Output SpreadToAxes(const Output& values, const Output& axes, int rank) {
  const Output zeros = Const<int64_t>(values.graph(), std::vector<int64_t>(rank, 0));
  const Output wide = Reshape(Cast(axes, DT_INT64), {-1});
  const Output at = PositiveIndices(wide, Const<int64_t>(values.graph(), rank));
  return TensorScatterUpdate(zeros, ExpandDims(at, 1), values);
}

absl::StatusOr<Paddings> PaddingsOf(NodeContext& c, int rank) {
  Paddings p;
  Output pads;
  if (c.version() < 11) {
    p.known = c.Ints("pads");
    pads = Const<int64_t>(c.graph(), *p.known);
  } else {
    if (!c.has(1)) return InvalidArgument("input 1, the pads, is missing");
    pads = Cast(c.in(1), DT_INT64);
    p.known = c.ConstantInts(1);
  }
  if (c.has(3)) {
    const Output halves = Reshape(pads, {2, -1});
    p.before = SpreadToAxes(StridedSlice(halves, {Index(0)}), c.in(3), rank);
    p.after = SpreadToAxes(StridedSlice(halves, {Index(1)}), c.in(3), rank);
    const std::optional<std::vector<int64_t>> axes = c.ConstantInts(3);
    if (!p.known || !axes || p.known->size() != 2 * axes->size()) {
      p.known = std::nullopt;
      return p;
    }
    std::vector<int64_t> all(2 * rank, 0);
    for (size_t i = 0; i < axes->size(); ++i) {
      WEIR_ASSIGN_OR_RETURN(const int axis, ResolveAxis((*axes)[i], rank));
      all[axis] = (*p.known)[i];
      all[axis + rank] = (*p.known)[i + axes->size()];
    }
    p.known = std::move(all);
    return p;
  }
  if (p.known && static_cast<int>(p.known->size()) != 2 * rank)
    return InvalidArgument("there are ", p.known->size(), " pads; expected ", 2 * rank);
  p.before = StridedSlice(pads, {Index::Range(0, rank)});
  p.after = StridedSlice(pads, {Index::Range(rank, 2 * rank)});
  return p;
}

// Which elements of an axis of this size a padded axis repeats, for positions that may be outside.
Output SourceIndices(const Output& positions, const Output& size, const std::string& mode) {
  Graph& graph = positions.graph();
  const Output zero = Const<int64_t>(graph, 0), one = Const<int64_t>(graph, 1);
  const Output last = Subtract(size, one);
  if (mode == "edge") return Maximum(zero, Minimum(positions, last));
  if (mode == "wrap") return FloorMod(positions, size);
  // A mirror at each end, whose elements are not repeated: the pattern has a period.
  const Output period = Maximum(Multiply(last, Const<int64_t>(graph, 2)), one);
  const Output phase = FloorMod(positions, period);
  return SelectV2(Less(phase, size), phase, Subtract(period, phase));
}

Output GatherPadded(Output x, const Paddings& p, const std::string& mode, int rank) {
  Graph& graph = x.graph();
  for (int i = 0; i < rank; ++i) {
    if (p.known && (*p.known)[i] == 0 && (*p.known)[i + rank] == 0) continue;
    const Output size = DimOf(x, i);
    const Output before = StridedSlice(p.before, {Index(i)});
    const Output after = StridedSlice(p.after, {Index(i)});
    const Output positions = Range(Negative(before), Add(size, after), Const<int64_t>(graph, 1));
    x = Gather(x, SourceIndices(positions, size, mode), {.axis = i});
  }
  return x;
}

Output PadByValue(const Output& x, const Paddings& p, const Output& value, int rank) {
  const bool only_adds = p.known && absl::c_all_of(*p.known, [](int64_t n) { return n >= 0; });
  if (only_adds) {
    std::vector<int64_t> rows;
    for (int i = 0; i < rank; ++i) rows.insert(rows.end(), {(*p.known)[i], (*p.known)[i + rank]});
    return PadV2(
        x, Const(x.graph(), Tensor::Of<int64_t>(Shape({rank, 2}), absl::Span<const int64_t>(rows))),
        value);
  }
  const Output zero = Const<int64_t>(x.graph(), 0);
  const Output before = Maximum(p.before, zero), after = Maximum(p.after, zero);
  const Output padded = PadV2(x, Stack({before, after}, 1), value);
  const Output begin = Maximum(Negative(p.before), zero);
  const Output size = Add(ShapeOf(x), Add(p.before, p.after));
  return WithRank(Slice(padded, begin, size), rank);
}

absl::Status ImportPad(NodeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int rank, c.Rank(0));
  const std::string mode = c.String("mode", "constant");
  WEIR_ASSIGN_OR_RETURN(const Paddings paddings, PaddingsOf(c, rank));
  if (mode != "constant") {
    if (mode != "reflect" && mode != "edge" && mode != "wrap")
      return InvalidArgument("mode is '", mode, "'; expected constant, reflect, edge or wrap");
    return c.Return(WithRank(GatherPadded(c.in(0), paddings, mode, rank), rank));
  }
  Output value = c.has(2) && c.version() >= 11 ? c.Scalar(2) : Output();
  if (!value.valid() && c.dtype(0) == DT_STRING) return Unimplemented("strings are not padded");
  if (!value.valid()) value = ScalarLike(c.in(0), c.version() < 11 ? c.Float("value", 0) : 0);
  return c.Return(PadByValue(c.in(0), paddings, value, rank));
}

constexpr Importer kImporters[] = {
    {"Pad", 7, 1, 4, ImportPad},
};

}  // namespace

absl::Span<const Importer> PadImporters() { return kImporters; }

}  // namespace weir::onnx
