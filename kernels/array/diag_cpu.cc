#include <algorithm>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"

// Diagonals. Diagonal k of a matrix begins at row max(-k, 0), column max(k, 0), and advances by
// columns + 1 elements, so each one is a strided copy. A band of several is stored row by row from
// the highest k to the lowest. The rows have the length of the longest diagonal; shorter ones are
// aligned left or right according to `align`.
namespace weir {

namespace {

// A band of diagonals of matrices of one size.
struct Band {
  int64_t rows, cols, low, high;
  bool super_left, sub_left;  // alignment of shorter super- and subdiagonals

  int64_t begin_row(int64_t k) const { return std::max<int64_t>(-k, 0); }
  int64_t begin_col(int64_t k) const { return std::max<int64_t>(k, 0); }
  int64_t length(int64_t k) const { return std::min(rows - begin_row(k), cols - begin_col(k)); }
  int64_t max_length() const {
    return std::min(rows + std::min<int64_t>(high, 0), cols - std::max<int64_t>(low, 0));
  }
  int64_t count() const { return high - low + 1; }
  // Returns the offset of diagonal k among the stored ones.
  int64_t stored_at(int64_t k) const {
    const bool left = k >= 0 ? super_left : sub_left;
    return (high - k) * max_length() + (left ? 0 : max_length() - length(k));
  }
};

struct Alignment {
  bool super_left = true, sub_left = true;
};

// "RIGHT_LEFT": superdiagonals right, subdiagonals left. Ops before V3 have no such attribute and
// align left.
Alignment ReadAlignment(const KernelInit& init) {
  const std::string align = init.node.attr_or<std::string>("align", "LEFT_LEFT");
  return {align.compare(0, 4, "LEFT") == 0,
          align.size() > 4 && align.compare(align.size() - 4, 4, "LEFT") == 0};
}

absl::Status ReadOffsets(const Tensor& k, Band* band) {
  const Dims values = ReadInts(k);
  if (k.rank() > 1 || values.empty() || values.size() > 2) {
    return InvalidArgument(
        "diag_index must be a scalar or vector with one or two elements, received shape ",
        k.shape().ToString());
  }
  band->low = values.front();
  band->high = values.back();
  if (band->low > band->high) {
    return InvalidArgument("lower_diag_index must not be larger than upper_diag_index: ", band->low,
                           " > ", band->high);
  }
  return absl::OkStatus();
}

absl::Status CheckInMatrix(const Band& b) {
  const auto fits = [&](int64_t k) { return (-b.rows < k && k < b.cols) || k == 0; };
  if (fits(b.low) && fits(b.high)) return absl::OkStatus();
  return InvalidArgument("lower_diag_index and upper_diag_index must be between ", -b.rows, " and ",
                         b.cols, " (exclusive): ", b.low, ", ", b.high);
}

// Returns the band of the matrices in the last two dimensions of `shape`, at the offsets in `k`
// (null: the main diagonal).
absl::StatusOr<Band> ReadBand(const Shape& shape, const Tensor* k, Alignment align) {
  if (shape.rank() < 2)
    return InvalidArgument("input must be at least 2-dim, received shape: ", shape.ToString());
  Band band{shape.dim(-2), shape.dim(-1), 0, 0, align.super_left, align.sub_left};
  if (k != nullptr) WEIR_RETURN_IF_ERROR(ReadOffsets(*k, &band));
  WEIR_RETURN_IF_ERROR(CheckInMatrix(band));
  return band;
}

// Returns the shape of the stored diagonals of such matrices.
Shape StoredShape(const Shape& batch, const Band& band) {
  Shape shape = batch;
  if (band.count() > 1) shape.AddDim(band.count());
  shape.AddDim(band.max_length());
  return shape;
}

// Copies all diagonals of the band between matrices and stored diagonals.
void CopyBand(ThreadPool& pool, const Band& band, int64_t batch, DataType dtype, const Tensor& from,
              Tensor* to, bool to_matrix) {
  const int64_t matrix = band.rows * band.cols, stored = band.count() * band.max_length();
  for (int64_t k = band.low; k <= band.high; ++k) {
    if (band.length(k) <= 0) continue;  // beyond the corner: MatrixDiag may be given only padding
    const int64_t in_matrix = band.begin_row(k) * band.cols + band.begin_col(k),
                  in_stored = band.stored_at(k);
    StridedCopy copy;
    copy.AddDim(batch, to_matrix ? stored : matrix, to_matrix ? matrix : stored);
    copy.AddDim(band.length(k), to_matrix ? 1 : band.cols + 1, to_matrix ? band.cols + 1 : 1);
    copy.Run(pool, dtype, ElementAt(from, to_matrix ? in_stored : in_matrix),
             ElementAt(*to, to_matrix ? in_matrix : in_stored));
  }
}

absl::Status CheckDiagonal(const Tensor& diagonal) {
  if (diagonal.rank() > 0) return absl::OkStatus();
  return InvalidArgument("diagonal must be at least 1-dim, received shape: []");
}

absl::Status CheckPadding(const Tensor& padding) {
  if (padding.rank() == 0) return absl::OkStatus();
  return InvalidArgument("padding_value must be a scalar, got shape ", padding.shape().ToString());
}

// ---- MatrixDiag

// Returns the matrices' numbers of rows and columns: as requested, or the smallest that hold the
// diagonals.
absl::Status ReadMatrixSize(KernelContext& c, int64_t length, Band* band) {
  WEIR_ASSIGN_OR_RETURN(const int64_t rows, ReadInt(c.input(2), "num_rows"));
  WEIR_ASSIGN_OR_RETURN(const int64_t cols, ReadInt(c.input(3), "num_cols"));
  const int64_t least_rows = length - std::min<int64_t>(band->high, 0);
  const int64_t least_cols = length + std::max<int64_t>(band->low, 0);
  band->rows = rows == -1 ? (cols == -1 ? std::max(least_rows, least_cols) : least_rows) : rows;
  band->cols = cols == -1 ? (rows == -1 ? std::max(least_rows, least_cols) : least_cols) : cols;
  if (band->rows < least_rows)
    return InvalidArgument("The number of rows is too small: ", band->rows, " < ", least_rows);
  if (band->cols < least_cols) {
    return InvalidArgument("The number of columns is too small: ", band->cols, " < ", least_cols);
  }
  if (band->rows != least_rows && band->cols != least_cols) {
    return InvalidArgument(
        "The number of rows or columns is not consistent with the specified d_lower, d_upper, and ",
        "diagonal: ", band->rows, " by ", band->cols, " for diagonals of length ", length);
  }
  return absl::OkStatus();
}

absl::Status MatrixDiag(KernelContext& c, Alignment align) {
  const Tensor& in = c.input(0);
  WEIR_RETURN_IF_ERROR(CheckDiagonal(in));
  Band band{in.dim(-1), in.dim(-1), 0, 0, align.super_left, align.sub_left};
  const bool general = c.num_inputs() == 5;
  if (general) {
    WEIR_RETURN_IF_ERROR(ReadOffsets(c.input(1), &band));
    WEIR_RETURN_IF_ERROR(CheckPadding(c.input(4)));
    if (band.count() > 1 && (in.rank() < 2 || in.dim(-2) != band.count())) {
      return InvalidArgument(
          "The number of diagonals provided in the input does not match the lower_diag_index and ",
          "upper_diag_index range: shape ", in.shape().ToString(), " for ", band.count());
    }
    WEIR_RETURN_IF_ERROR(ReadMatrixSize(c, in.dim(-1), &band));
  }
  const Shape batch = in.shape().Sub(0, in.rank() - (band.count() > 1 ? 2 : 1));
  WEIR_ASSIGN_OR_RETURN(const Shape shape,
                        CheckedShape(batch.Concatenate(Shape({band.rows, band.cols})).dims()));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  if (general) {
    FillElements(c.pool(), in.dtype(), c.input(4).raw(), out->raw(), out->num_elements());
  } else {
    ClearElements(c.pool(), *out);
  }
  if (in.num_elements() > 0 && out->num_elements() > 0) {
    CopyBand(c.pool(), band, batch.num_elements(), in.dtype(), in, out, true);
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeMatrixDiag(const KernelInit& init) {
  const Alignment align = ReadAlignment(init);
  return Kernel([align](KernelContext& c) -> absl::Status { return MatrixDiag(c, align); });
}

// ---- MatrixDiagPart

absl::Status MatrixDiagPart(KernelContext& c, Alignment align) {
  const Tensor& in = c.input(0);
  const bool general = c.num_inputs() == 3;
  WEIR_ASSIGN_OR_RETURN(const Band band,
                        ReadBand(in.shape(), general ? &c.input(1) : nullptr, align));
  const Shape batch = in.shape().Sub(0, in.rank() - 2);
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, StoredShape(batch, band)));
  if (general) {
    if (c.input(2).num_elements() != 1) WEIR_RETURN_IF_ERROR(CheckPadding(c.input(2)));
    if (band.count() > 1) {
      FillElements(c.pool(), in.dtype(), c.input(2).raw(), out->raw(), out->num_elements());
    }
  }
  if (in.num_elements() > 0)
    CopyBand(c.pool(), band, batch.num_elements(), in.dtype(), in, out, false);
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeMatrixDiagPart(const KernelInit& init) {
  const Alignment align = ReadAlignment(init);
  return Kernel([align](KernelContext& c) -> absl::Status { return MatrixDiagPart(c, align); });
}

// ---- MatrixSetDiag

absl::Status MatrixSetDiag(KernelContext& c, Alignment align) {
  const Tensor &in = c.input(0), &diagonal = c.input(1);
  WEIR_ASSIGN_OR_RETURN(const Band band,
                        ReadBand(in.shape(), c.num_inputs() == 3 ? &c.input(2) : nullptr, align));
  WEIR_RETURN_IF_ERROR(CheckDiagonal(diagonal));
  const Shape batch = in.shape().Sub(0, in.rank() - 2);
  if (const Shape expected = StoredShape(batch, band); diagonal.shape() != expected) {
    return InvalidArgument(
        "Either first dimensions of diagonal don't match input.shape[:-2], or diagonal.shape[-1] ",
        "is not equal to the longest diagonal in the range: expected ", expected.ToString(),
        ", got ", diagonal.shape().ToString());
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, in.shape()));
  if (out->raw() != in.raw()) CopyElements(c, in.dtype(), in.raw(), out->raw(), in.num_elements());
  if (in.num_elements() > 0)
    CopyBand(c.pool(), band, batch.num_elements(), in.dtype(), diagonal, out, true);
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeMatrixSetDiag(const KernelInit& init) {
  const Alignment align = ReadAlignment(init);
  return Kernel([align](KernelContext& c) -> absl::Status { return MatrixSetDiag(c, align); });
}

// ---- MatrixBandPart

absl::Status MatrixBandPart(KernelContext& c) {
  const Tensor& in = c.input(0);
  WEIR_ASSIGN_OR_RETURN(const int64_t below, ReadInt(c.input(1), "num_lower"));
  WEIR_ASSIGN_OR_RETURN(const int64_t above, ReadInt(c.input(2), "num_upper"));
  if (in.rank() < 2)
    return InvalidArgument("input must be at least 2-dim, received shape: ", in.shape().ToString());
  const int64_t rows = in.dim(-2), cols = in.dim(-1);
  if (below > rows)
    return InvalidArgument("num_lower must be negative or less or equal to number of rows (", rows,
                           ") got: ", below);
  if (above > cols)
    return InvalidArgument("num_upper must be negative or less or equal to number of columns (",
                           cols, ") got: ", above);
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, in.shape()));
  if (in.num_elements() == 0) return absl::OkStatus();
  const int64_t lines = in.num_elements() / cols;
  c.pool().ParallelFor(
      lines, 10 + 0.2 * static_cast<double>(cols), [&](int64_t begin, int64_t end) {
        for (int64_t line = begin; line < end; ++line) {
          const int64_t row = line % rows, at = line * cols;
          const int64_t first = below < 0 ? 0 : std::clamp<int64_t>(row - below, 0, cols);
          const int64_t last = above < 0 ? cols : std::clamp<int64_t>(row + above + 1, first, cols);
          ClearElements(*out, at, first);
          if (out->raw() != in.raw())
            CopyElements(in.dtype(), ElementAt(in, at + first), ElementAt(*out, at + first),
                         last - first);
          ClearElements(*out, at + last, cols - last);
        }
      });
  return absl::OkStatus();
}

// ---- Diag and DiagPart

// With n elements on the diagonal, a tensor of twice the rank is an n by n matrix.
absl::Status Diag(KernelContext& c) {
  const Tensor& in = c.input(0);
  if (in.rank() < 1) return InvalidArgument("Input must be at least rank 1, got 0");
  WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape(in.shape().Concatenate(in.shape()).dims()));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  ClearElements(c.pool(), *out);
  const int64_t n = in.num_elements();
  StridedCopy copy;
  copy.AddDim(n, 1, n + 1);
  copy.Run(c.pool(), in.dtype(), in.raw(), out->raw());
  return absl::OkStatus();
}

absl::Status DiagPart(KernelContext& c) {
  const Tensor& in = c.input(0);
  const int half = in.rank() / 2;
  if (in.rank() == 0 || in.rank() % 2 != 0 || in.shape().Sub(0, half) != in.shape().Sub(half)) {
    return InvalidArgument(
        "The rank of the tensor should be even and positive, and the halves of its shape equal, "
        "got ",
        "shape ", in.shape().ToString());
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, in.shape().Sub(0, half)));
  const int64_t n = out->num_elements();
  StridedCopy copy;
  copy.AddDim(n, n + 1, 1);
  copy.Run(c.pool(), in.dtype(), in.raw(), out->raw());
  return absl::OkStatus();
}

}  // namespace

void AddDiagCpu(KernelRegistry* r) {
  const std::vector<std::string> sizes = {"k", "num_rows", "num_cols", "padding_value"};
  r->Add("Diag", kCpu, Diag);
  r->Add("DiagPart", kCpu, DiagPart);
  for (const char* op : {"MatrixDiag", "BatchMatrixDiag"}) r->Add(op, kCpu, MakeMatrixDiag);
  for (const char* op : {"MatrixDiagPart", "BatchMatrixDiagPart"})
    r->Add(op, kCpu, MakeMatrixDiagPart);
  for (const char* op : {"MatrixSetDiag", "BatchMatrixSetDiag"})
    r->Add(op, kCpu, MakeMatrixSetDiag).InPlace({0});
  for (const char* op : {"MatrixDiagV2", "MatrixDiagV3"})
    r->Add(op, kCpu, MakeMatrixDiag).HostArgs(sizes);
  for (const char* op : {"MatrixDiagPartV2", "MatrixDiagPartV3"}) {
    r->Add(op, kCpu, MakeMatrixDiagPart).HostArgs({"k", "padding_value"});
  }
  for (const char* op : {"MatrixSetDiagV2", "MatrixSetDiagV3"}) {
    r->Add(op, kCpu, MakeMatrixSetDiag).HostArgs({"k"}).InPlace({0});
  }
  for (const char* op : {"MatrixBandPart", "BatchMatrixBandPart"})
    r->Add(op, kCpu, MatrixBandPart).HostArgs({"num_lower", "num_upper"}).InPlace({0});
}

}  // namespace weir
