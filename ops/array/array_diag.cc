#include "weir/ops/lib/array.h"

#include <algorithm>

#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/registry.h"

// Diagonals and bands of matrices.
namespace weir {

// ---- shape functions

namespace {

absl::Status DiagShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape d, c.WithRankAtLeast(0, 1));
  if (d.has_rank()) c.set_output(0, d.Concatenate(d));
  return absl::OkStatus();
}

absl::Status DiagPartShape(ShapeContext& c) {
  const Shape& in = c.input(0);
  if (!in.has_rank()) return absl::OkStatus();
  if (in.rank() == 0 || in.rank() % 2 != 0) {
    return InvalidArgument("Input must have even and non-zero rank, input rank is ", in.rank());
  }
  absl::StatusOr<Shape> half = in.Sub(0, in.rank() / 2).MergeWith(in.Sub(in.rank() / 2));
  if (!half.ok()) return InvalidArgument("the halves of shape ", in.ToString(), " must be equal");
  c.set_output(0, *std::move(half));
  return absl::OkStatus();
}

absl::Status MatrixDiagShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(Shape out, c.WithRankAtLeast(0, 1));
  if (!out.has_rank()) return absl::OkStatus();
  out.AddDim(out.dim(-1));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status MatrixDiagPartShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape in, c.WithRankAtLeast(0, 2));
  if (!in.has_rank()) return absl::OkStatus();
  const int64_t rows = in.dim(-2), cols = in.dim(-1);
  Shape out = in.Sub(0, in.rank() - 2);
  out.AddDim(rows < 0 || cols < 0 ? Shape::kUnknown : std::min(rows, cols));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// Returns the band of diagonals {lowest, highest} that input `i` specifies, or nullopt if it is
// unknown.
absl::StatusOr<std::optional<std::pair<int64_t, int64_t>>> KnownBand(ShapeContext& c, int i) {
  using Band = std::optional<std::pair<int64_t, int64_t>>;
  WEIR_RETURN_IF_ERROR(c.WithRankAtMost(i, 1).status());
  const auto k = KnownInts(c, i);
  if (!k.has_value()) return Band();
  if (k->empty() || k->size() > 2) {
    return InvalidArgument(
        "diag_index must be a scalar or vector with one or two elements, received ", k->size(),
        " elements.");
  }
  if (k->front() > k->back()) {
    return InvalidArgument("lower_diag_index is greater than upper_diag_index: ", k->front(), " > ",
                           k->back());
  }
  return Band(std::in_place, k->front(), k->back());
}

// Returns the length of the longest diagonal in a band of a matrix.
absl::StatusOr<int64_t> BandLength(int64_t rows, int64_t cols, int64_t low, int64_t high) {
  if (rows < 0 || cols < 0) return Shape::kUnknown;
  const bool fits = (low > -rows && high < cols) || (low == 0 && high == 0);
  if (!fits) {
    return InvalidArgument("lower_diag_index and upper_diag_index must be within the matrix of ",
                           rows, " by ", cols, ", but are ", low, " and ", high);
  }
  return std::min(rows + std::min<int64_t>(high, 0), cols - std::max<int64_t>(low, 0));
}

absl::Status MatrixDiagV2Shape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape diagonal, c.WithRankAtLeast(0, 1));
  for (int i = 2; i < 5; ++i) WEIR_RETURN_IF_ERROR(c.WithRank(i, 0).status());
  WEIR_ASSIGN_OR_RETURN(const auto band, KnownBand(c, 1));
  if (!diagonal.has_rank() || !band.has_value()) return absl::OkStatus();
  const bool many = band->first < band->second;
  if (many && diagonal.rank() < 2) {
    return InvalidArgument(
        "diagonal must be at least 2-dim for a band of several diagonals, received shape: ",
        diagonal.ToString());
  }
  const auto num_rows = KnownInts(c, 2), num_cols = KnownInts(c, 3);
  Shape out = diagonal.Sub(0, diagonal.rank() - (many ? 2 : 1));
  int64_t rows = Shape::kUnknown, cols = Shape::kUnknown;
  if (num_rows.has_value() && num_cols.has_value() && diagonal.dim(-1) >= 0) {
    rows = num_rows->front();
    cols = num_cols->front();
    WEIR_ASSIGN_OR_RETURN(const int64_t least_rows,
                          AddDims(diagonal.dim(-1), std::max<int64_t>(-band->second, 0)));
    WEIR_ASSIGN_OR_RETURN(const int64_t least_cols,
                          AddDims(diagonal.dim(-1), std::max<int64_t>(band->first, 0)));
    if (rows == -1 && cols == -1) {
      rows = cols = std::max(least_rows, least_cols);
    } else if (rows == -1) {
      rows = least_rows;
    } else if (cols == -1) {
      cols = least_cols;
    }
    if (rows < least_rows)
      return InvalidArgument("num_rows is too small: ", rows, " < ", least_rows);
    if (cols < least_cols)
      return InvalidArgument("num_cols is too small: ", cols, " < ", least_cols);
  }
  out.AddDim(rows);
  out.AddDim(cols);
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status MatrixDiagPartV2Shape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape in, c.WithRankAtLeast(0, 2));
  WEIR_RETURN_IF_ERROR(c.WithRank(2, 0).status());
  WEIR_ASSIGN_OR_RETURN(const auto band, KnownBand(c, 1));
  if (!in.has_rank() || !band.has_value()) return absl::OkStatus();
  WEIR_ASSIGN_OR_RETURN(const int64_t length,
                        BandLength(in.dim(-2), in.dim(-1), band->first, band->second));
  Shape out = in.Sub(0, in.rank() - 2);
  if (band->second > band->first) out.AddDim(band->second - band->first + 1);
  out.AddDim(length);
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

absl::Status CheckDiagonal(const Shape& in, const Shape& diagonal, int64_t low, int64_t high) {
  WEIR_ASSIGN_OR_RETURN(const int64_t length, BandLength(in.dim(-2), in.dim(-1), low, high));
  Shape expected = in.Sub(0, in.rank() - 2);
  if (high > low) expected.AddDim(high - low + 1);
  expected.AddDim(length);
  if (!diagonal.IsCompatibleWith(expected)) {
    return InvalidArgument("diagonal must have shape ", expected.ToString(),
                           " for a matrix of shape ", in.ToString(), ", but has ",
                           diagonal.ToString());
  }
  return absl::OkStatus();
}

absl::Status MatrixSetDiagShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape in, c.WithRankAtLeast(0, 2));
  WEIR_ASSIGN_OR_RETURN(const Shape diagonal, c.WithRankAtLeast(1, 1));
  if (in.has_rank() && diagonal.has_rank()) WEIR_RETURN_IF_ERROR(CheckDiagonal(in, diagonal, 0, 0));
  c.set_output(0, in);
  return absl::OkStatus();
}

absl::Status MatrixSetDiagV2Shape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape in, c.WithRankAtLeast(0, 2));
  WEIR_ASSIGN_OR_RETURN(const Shape diagonal, c.WithRankAtLeast(1, 1));
  WEIR_ASSIGN_OR_RETURN(const auto band, KnownBand(c, 2));
  if (in.has_rank() && diagonal.has_rank() && band.has_value()) {
    WEIR_RETURN_IF_ERROR(CheckDiagonal(in, diagonal, band->first, band->second));
  }
  c.set_output(0, in);
  return absl::OkStatus();
}

absl::Status MatrixBandPartShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape in, c.WithRankAtLeast(0, 2));
  c.set_output(0, in);
  return absl::OkStatus();
}

// ---- gradients

std::string Align(GradContext& g) { return g.node().attr_or<std::string>("align", "RIGHT_LEFT"); }

Grads DiagGradient(GradContext& g) { return {DiagPart(g.dy())}; }
Grads DiagPartGradient(GradContext& g) { return {Diag(g.dy())}; }
Grads MatrixDiagGradient(GradContext& g) { return {MatrixDiagPart(g.dy())}; }

Grads MatrixDiagV2Gradient(GradContext& g) {
  const std::string align = g.node().op_name() == "MatrixDiagV2" ? "LEFT_LEFT" : Align(g);
  return {MatrixDiagPart(g.dy(), {.k = g.x(1), .align = align})};
}

Grads MatrixDiagPartGradient(GradContext& g) {
  const Shape& in = g.x(0).shape();
  if (in.has_rank() && in.dim(-1) >= 0 && in.dim(-1) == in.dim(-2)) return {MatrixDiag(g.dy())};
  return {MatrixSetDiag(ZerosLike(g.x(0)), g.dy())};
}

Grads MatrixDiagPartV2Gradient(GradContext& g) {
  const std::string align = g.node().op_name() == "MatrixDiagPartV2" ? "LEFT_LEFT" : Align(g);
  const Shape& in = g.x(0).shape();
  if (in.has_rank() && in.dim(-1) >= 0 && in.dim(-2) >= 0) {
    return {MatrixDiag(
        g.dy(), {.k = g.x(1), .num_rows = in.dim(-2), .num_cols = in.dim(-1), .align = align})};
  }
  return {MatrixSetDiag(ZerosLike(g.x(0)), g.dy(), {.k = g.x(1), .align = align})};
}

// Returns dy with zeros on the diagonals that were set, and those diagonals of dy.
Grads SetDiagGradients(GradContext& g, const MatrixDiagOptions& options) {
  const Output zeros = ZerosLike(g.x(1));
  return {MatrixSetDiag(g.dy(), zeros, options), MatrixDiagPart(g.dy(), options)};
}

Grads MatrixSetDiagGradient(GradContext& g) { return SetDiagGradients(g, {}); }

Grads MatrixSetDiagV2Gradient(GradContext& g) {
  const std::string align = g.node().op_name() == "MatrixSetDiagV2" ? "LEFT_LEFT" : Align(g);
  return SetDiagGradients(g, {.k = g.x(2), .align = align});
}

Grads MatrixBandPartGradient(GradContext& g) { return {MatrixBandPart(g.dy(), g.x(1), g.x(2))}; }

// The names of these ops in the graphs of TensorFlow before 1.0. They have no gradient.
void AddBatchDiagOps(OpRegistry* ops) {
  const auto spec = [](absl::string_view name) {
    OpSpec out(absl::StrCat("Batch", name));
    out.Attr("T: type").Deprecated(14, absl::StrCat("Use ", name));
    return out;
  };
  ops->Add(spec("MatrixBandPart")
               .In("input: T, num_lower: int64, num_upper: int64")
               .Out("band: T")
               .InferShape(MatrixBandPartShape)
               .Doc("MatrixBandPart in old graphs."));
  ops->Add(spec("MatrixDiag")
               .In("diagonal: T")
               .Out("output: T")
               .InferShape(MatrixDiagShape)
               .Doc("MatrixDiag in old graphs."));
  ops->Add(spec("MatrixDiagPart")
               .In("input: T")
               .Out("diagonal: T")
               .InferShape(MatrixDiagPartShape)
               .Doc("MatrixDiagPart in old graphs."));
  ops->Add(spec("MatrixSetDiag")
               .In("input: T, diagonal: T")
               .Out("output: T")
               .InferShape(MatrixSetDiagShape)
               .Doc("MatrixSetDiag in old graphs."));
}

}  // namespace

void AddArrayDiagOps(OpRegistry* ops) {
  ops->Add(OpSpec("Diag")
               .In("diagonal: T")
               .Out("output: T")
               .Attr("T: {bfloat16, half, float, double, int32, int64, complex64, complex128}")
               .InferShape(DiagShape)
               .Gradient(DiagGradient)
               .Doc("Returns a tensor of twice the rank with `diagonal` on its diagonal and zeros "
                    "elsewhere."));
  ops->Add(OpSpec("DiagPart")
               .In("input: T")
               .Out("diagonal: T")
               .Attr("T: {bfloat16, half, float, double, int32, int64, complex64, complex128}")
               .InferShape(DiagPartShape)
               .Gradient(DiagPartGradient)
               .Doc("Returns the diagonal of a tensor whose shape is the same shape twice."));
  ops->Add(
      OpSpec("MatrixDiag")
          .In("diagonal: T")
          .Out("output: T")
          .Attr("T: type")
          .InferShape(MatrixDiagShape)
          .Gradient(MatrixDiagGradient)
          .Doc(
              "Returns square matrices with the last dimension of `diagonal` on their diagonals."));
  ops->Add(OpSpec("MatrixDiagV2")
               .In("diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T")
               .Out("output: T")
               .Attr("T: type")
               .InferShape(MatrixDiagV2Shape)
               .Gradient(MatrixDiagV2Gradient)
               .Doc("Returns matrices with `diagonal` on diagonals k (or k[0] to k[1]), aligned "
                    "left, and `padding_value` elsewhere."));
  ops->Add(
      OpSpec("MatrixDiagV3")
          .In("diagonal: T, k: int32, num_rows: int32, num_cols: int32, padding_value: T")
          .Out("output: T")
          .Attr("T: type")
          .Attr("align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'")
          .InferShape(MatrixDiagV2Shape)
          .Gradient(MatrixDiagV2Gradient)
          .Doc("Returns matrices with `diagonal` on diagonals k (or k[0] to k[1]) and "
               "`padding_value` elsewhere. `align` specifies the alignment of shorter diagonals "
               "(of superdiagonals, then of subdiagonals)."));
  ops->Add(OpSpec("MatrixDiagPart")
               .In("input: T")
               .Out("diagonal: T")
               .Attr("T: type")
               .Moves(Movement::kRearrange)
               .InferShape(MatrixDiagPartShape)
               .Gradient(MatrixDiagPartGradient)
               .Doc("Returns the diagonals of matrices."));
  ops->Add(OpSpec("MatrixDiagPartV2")
               .In("input: T, k: int32, padding_value: T")
               .Out("diagonal: T")
               .Attr("T: type")
               .InferShape(MatrixDiagPartV2Shape)
               .Gradient(MatrixDiagPartV2Gradient)
               .Doc("Returns diagonals k (or k[0] to k[1], highest first) of matrices. Shorter "
                    "diagonals are aligned left and padded with `padding_value`."));
  ops->Add(
      OpSpec("MatrixDiagPartV3")
          .In("input: T, k: int32, padding_value: T")
          .Out("diagonal: T")
          .Attr("T: type")
          .Attr("align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'")
          .InferShape(MatrixDiagPartV2Shape)
          .Gradient(MatrixDiagPartV2Gradient)
          .Doc("Returns diagonals k (or k[0] to k[1], highest first) of matrices. Shorter "
               "diagonals are aligned as `align` specifies and padded with `padding_value`."));
  ops->Add(OpSpec("MatrixSetDiag")
               .In("input: T, diagonal: T")
               .Out("output: T")
               .Attr("T: type")
               .InferShape(MatrixSetDiagShape)
               .Gradient(MatrixSetDiagGradient)
               .Doc("Replaces the diagonals of matrices."));
  ops->Add(OpSpec("MatrixSetDiagV2")
               .In("input: T, diagonal: T, k: int32")
               .Out("output: T")
               .Attr("T: type")
               .InferShape(MatrixSetDiagV2Shape)
               .Gradient(MatrixSetDiagV2Gradient)
               .Doc("Replaces diagonals k (or k[0] to k[1]) of matrices. The new diagonals are "
                    "aligned left."));
  ops->Add(
      OpSpec("MatrixSetDiagV3")
          .In("input: T, diagonal: T, k: int32")
          .Out("output: T")
          .Attr("T: type")
          .Attr("align: {'LEFT_RIGHT', 'RIGHT_LEFT', 'LEFT_LEFT', 'RIGHT_RIGHT'} = 'RIGHT_LEFT'")
          .InferShape(MatrixSetDiagV2Shape)
          .Gradient(MatrixSetDiagV2Gradient)
          .Doc("Replaces diagonals k (or k[0] to k[1]) of matrices. The new diagonals are aligned "
               "as `align` specifies."));
  ops->Add(OpSpec("MatrixBandPart")
               .In("input: T, num_lower: Tindex, num_upper: Tindex")
               .Out("band: T")
               .Attr("T: type")
               .Attr("Tindex: {int32, int64} = DT_INT64")
               .InferShape(MatrixBandPartShape)
               .Gradient(MatrixBandPartGradient)
               .Doc("Sets everything outside `num_lower` subdiagonals and `num_upper` "
                    "superdiagonals to zero. A negative number keeps all."));
  AddBatchDiagOps(ops);
}

// ---- builders

Output Diag(Output diagonal, absl::string_view name) { return AddOp("Diag", {diagonal}, {}, name); }
Output DiagPart(Output x, absl::string_view name) { return AddOp("DiagPart", {x}, {}, name); }

Output MatrixDiag(Output diagonal, const MatrixDiagOptions& options, absl::string_view name) {
  if (!diagonal.valid()) return {};
  Graph& g = diagonal.graph();
  NodeScope scope(g, name, "diag");
  const Output k = options.k.In(g, "k"), rows = options.num_rows.In(g, "num_rows");
  const Output cols = options.num_cols.In(g, "num_cols");
  const Output padding =
      OptionValue(g, diagonal.dtype(), options.padding_value, 0, "padding_value");
  return AddOp("MatrixDiagV3", {diagonal, k, rows, cols, padding}, {{"align", options.align}},
               scope.name());
}

Output MatrixDiagPart(Output x, const MatrixDiagOptions& options, absl::string_view name) {
  if (!x.valid()) return {};
  Graph& g = x.graph();
  NodeScope scope(g, name, "diag_part");
  const Output k = options.k.In(g, "k");
  const Output padding = OptionValue(g, x.dtype(), options.padding_value, 0, "padding_value");
  return AddOp("MatrixDiagPartV3", {x, k, padding}, {{"align", options.align}}, scope.name());
}

Output MatrixSetDiag(Output x, Output diagonal, const MatrixDiagOptions& options,
                     absl::string_view name) {
  if (!x.valid()) return {};
  NodeScope scope(x.graph(), name, "set_diag");
  return AddOp("MatrixSetDiagV3", {x, diagonal, options.k.In(x.graph(), "k")},
               {{"align", options.align}}, scope.name());
}

Output MatrixBandPart(Output x, const Ints& num_lower, const Ints& num_upper,
                      absl::string_view name) {
  return WithTwoInts("MatrixBandPart", x, "num_lower", num_lower, "num_upper", num_upper, name,
                     true);
}

}  // namespace weir
