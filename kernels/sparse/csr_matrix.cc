#include "weir/kernels/sparse/csr_matrix.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "weir/core/tensor/variant.h"
#include "weir/kernels/lib/blocks.h"
#include "weir/kernels/lib/scalar_math.h"

namespace weir {

namespace {

constexpr char kTypeName[] = "tensorflow::CSRSparseMatrix";
constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

// TensorFlow's metadata is a struct of a bool, whether the matrix is valid, and the dtype.
std::string Metadata(DataType type) {
  std::string bytes(8, '\0');
  bytes[0] = 1;
  for (int i = 0; i < 4; ++i)
    bytes[4 + i] = static_cast<char>(static_cast<uint32_t>(type) >> 8 * i);
  return bytes;
}

bool IsElementType(DataType type) {
  return DispatchType(type, CsrTypes{}, []<class T>() {});
}

absl::Status Invalid(absl::string_view what) {
  return InvalidArgument("CSRSparseMatrix::Validate: ", what);
}

// Checks the pointers of all rows and batches, and the columns.
absl::Status CheckElements(const CsrMatrix& m) {
  const int64_t count = m.count(), batch = m.batch(), rows = m.rows();
  if (m.first(0) != 0 || m.first(batch) != count)
    return Invalid(absl::StrCat("batch_pointers must begin at 0 and end at ", count));
  for (int64_t b = 0; b < batch; ++b) {
    ThrowIfCancelledAt(b);
    if (m.first(b + 1) < m.first(b)) return Invalid("batch_pointers must not decrease");
    const int32_t* const row = m.row(b);
    if (row[0] != 0 || row[rows] != m.count_of(b))
      return Invalid(absl::StrCat("row_pointers must begin at 0 and end at ", m.count_of(b)));
    for (const auto [begin, end] : CancellableBlocks(rows)) {
      for (int64_t r = begin; r < end; ++r)
        if (row[r + 1] < row[r]) return Invalid("row_pointers must not decrease");
    }
  }
  const int32_t* const columns = m.columns.data<int32_t>();
  for (const auto [begin, end] : CancellableBlocks(count)) {
    for (int64_t i = begin; i < end; ++i) {
      if (columns[i] < 0 || columns[i] >= m.cols())
        return Invalid(absl::StrCat("column ", columns[i], " is not in [0, ", m.cols(), ")"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<CsrMatrix> Decode(const Tensors& parts) {
  if (parts.size() != 5) return Invalid(absl::StrCat("expected 5 tensors, got ", parts.size()));
  const Tensor& shape = parts[0];
  if (shape.dtype() != DT_INT64 || shape.rank() != 1 || shape.dim(0) < 2 || shape.dim(0) > 3) {
    return Invalid("dense_shape should be a 2- or 3- vector, but saw: " + shape.Description());
  }
  CsrMatrix m{ReadInts(shape), parts[1], parts[2], parts[3], parts[4]};
  for (const Tensor* t : {&m.batch_pointers, &m.row_pointers, &m.columns}) {
    if (t->dtype() != DT_INT32 || t->rank() != 1)
      return Invalid("pointers and columns must be vectors of int32, but saw: " + t->Description());
  }
  if (!IsElementType(m.values.dtype()) || m.values.rank() != 1)
    return Invalid("values must be a vector of numbers, but saw: " + m.values.Description());
  for (const int64_t extent : m.dims)
    if (extent < 0 || extent > kMost) return Invalid("an extent is out of range");
  if (m.batch_pointers.num_elements() != m.batch() + 1 ||
      m.row_pointers.num_elements() != m.batch() * (m.rows() + 1)) {
    return Invalid("the number of pointers does not match dense_shape");
  }
  if (m.columns.num_elements() != m.count()) return Invalid("size(col_indices) != size(values)");
  WEIR_RETURN_IF_ERROR(CheckElements(m));
  return m;
}

}  // namespace

absl::StatusOr<CsrMatrix> ReadCsr(const KernelContext& c, int i) {
  const Tensor& input = c.input(i);
  WEIR_RETURN_IF_ERROR(CheckRank(input, 0, c.node().op().inputs()[i].name));
  const Variant& variant = *input.data<Variant>();
  const Tensors* const parts = std::any_cast<Tensors>(&variant.value);
  if (variant.type_name != kTypeName || parts == nullptr) {
    return InvalidArgument("Could not retrieve Variant input ", i,
                           ": it is not a CSRSparseMatrix but '", variant.type_name, "'");
  }
  return Decode(*parts);
}

absl::StatusOr<CsrMatrix> ReadCsr(const KernelContext& c, int i, DataType type) {
  WEIR_ASSIGN_OR_RETURN(CsrMatrix matrix, ReadCsr(c, i));
  if (matrix.values.dtype() == type) return matrix;
  return InvalidArgument("dtype of ", c.node().op().inputs()[i].name,
                         " is not equal to 'type': asked for a CSRSparseMatrix of type ",
                         DataTypeName(type),
                         " but saw dtype: ", DataTypeName(matrix.values.dtype()));
}

absl::StatusOr<CsrMatrix> NewCsr(const Dims& dims) {
  CsrMatrix m{.dims = dims};
  if (m.batch() >= kMost) {
    return InvalidArgument("dense_shape batch_size must be < Int32Max, but the input value is ",
                           m.batch());
  }
  if (m.cols() > kMost) {
    return InvalidArgument("dense_shape columns must be <= Int32Max, but the input value is ",
                           m.cols());
  }
  if (m.rows() >= kMost || m.batch() * (m.rows() + 1) > kMost) {
    return InvalidArgument(
        "The csr row index size, computed based on the dense_shape, must be <= Int32Max, but is "
        "too "
        "large: ",
        m.batch(), " matrices of ", m.rows(), " rows");
  }
  WEIR_ASSIGN_OR_RETURN(m.batch_pointers,
                        Tensor::Allocate(HostAllocator(), DT_INT32, Shape({m.batch() + 1})));
  WEIR_ASSIGN_OR_RETURN(m.row_pointers, Tensor::Allocate(HostAllocator(), DT_INT32,
                                                         Shape({m.batch() * (m.rows() + 1)})));
  std::fill_n(m.batch_pointers.data<int32_t>(), m.batch_pointers.num_elements(), 0);
  std::fill_n(m.row_pointers.data<int32_t>(), m.row_pointers.num_elements(), 0);
  return m;
}

absl::Status AllocateElements(DataType type, CsrMatrix* matrix) {
  const Shape shape({matrix->first(matrix->batch())});
  WEIR_ASSIGN_OR_RETURN(matrix->columns, Tensor::Allocate(HostAllocator(), DT_INT32, shape));
  WEIR_ASSIGN_OR_RETURN(matrix->values, Tensor::Allocate(HostAllocator(), type, shape));
  return absl::OkStatus();
}

absl::Status OutputCsr(KernelContext& c, int i, const CsrMatrix& matrix) {
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(i, Shape()));
  Tensors parts = {Tensor::Vector<int64_t>(matrix.dims), matrix.batch_pointers, matrix.row_pointers,
                   matrix.columns, matrix.values};
  // The variant may outlive the step.
  for (Tensor& part : parts) {
    WEIR_ASSIGN_OR_RETURN(part, c.Own(part));
  }
  *out->data<Variant>() = {.type_name = kTypeName,
                           .metadata = Metadata(matrix.values.dtype()),
                           .value = std::move(parts)};
  return absl::OkStatus();
}

absl::StatusOr<CsrMatrix> TransposeCsr(const CsrMatrix& matrix, bool conjugate) {
  Dims dims = matrix.dims;
  std::swap(dims[dims.size() - 2], dims[dims.size() - 1]);
  WEIR_ASSIGN_OR_RETURN(CsrMatrix out, NewCsr(dims));
  out.batch_pointers = matrix.batch_pointers;
  WEIR_RETURN_IF_ERROR(AllocateElements(matrix.values.dtype(), &out));
  DispatchType(matrix.values.dtype(), CsrTypes{}, [&]<class T>() {
    for (int64_t b = 0; b < matrix.batch(); ++b) {
      const int32_t* const columns = matrix.columns_of(b);
      const T* const values = matrix.values_of<T>(b);
      // Counts the elements of each column, then places them. While the elements are placed,
      // ends[r] is where the next one of row r goes; afterwards it is where row r ends.
      int32_t* const ends = out.row(b) + 1;
      for (int64_t i = 0; i < matrix.count_of(b); ++i) {
        ThrowIfCancelledAt(i);
        ++ends[columns[i]];
      }
      int32_t begin = 0;
      for (int64_t r = 0; r < out.rows(); ++r) {
        ThrowIfCancelledAt(r);
        begin += std::exchange(ends[r], begin);
      }
      for (int64_t r = 0; r < matrix.rows(); ++r) {
        ThrowIfCancelledAt(r);
        for (int64_t i = matrix.row(b)[r]; i < matrix.row(b)[r + 1]; ++i) {
          const int64_t at = ends[columns[i]]++;
          out.columns_of(b)[at] = static_cast<int32_t>(r);
          out.values_of<T>(b)[at] = conjugate ? ScalarMath<T>::Conj(values[i]) : values[i];
        }
      }
    }
  });
  return out;
}

}  // namespace weir
