#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "weir/core/tensor/variant.h"
#include "weir/kernels/data/dataset_prefetch.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"

// Datasets of sparse tensors.
namespace weir {

namespace {

using IteratorPtr = std::unique_ptr<DatasetIterator>;

// ---- the slices of a sparse tensor along dimension 0: indices, values and shape of each

struct SparseRows {
  Tensor indices, values, shape;

  int64_t size() const { return *shape.data<int64_t>(); }
  int64_t row_of(int64_t entry) const {
    return indices.data<int64_t>()[entry * shape.num_elements()];
  }
  // Returns the slice of entries [begin, end), which are of one row.
  absl::StatusOr<Tensors> Slice(int64_t begin, int64_t end) const {
    const int64_t rank = shape.num_elements(), n = end - begin;
    WEIR_ASSIGN_OR_RETURN(Tensor rest,
                          Tensor::Allocate(HostAllocator(), DT_INT64, Shape({n, rank - 1})));
    const int64_t* from = indices.data<int64_t>() + begin * rank;
    int64_t* to = rest.data<int64_t>();
    for (int64_t i = 0; i < n; ++i, from += rank) to = std::copy(from + 1, from + rank, to);
    return Tensors{std::move(rest), values.Slice(begin, end).DeepCopy(),
                   shape.Slice(1, rank).DeepCopy()};
  }
};

absl::StatusOr<SparseRows> ReadSparse(const KernelContext& c) {
  const Tensor &indices = c.input(0), &values = c.input(1), &shape = c.input(2);
  const auto text = [](const Tensor& t) { return t.shape().ToString(); };
  if (indices.rank() != 2)
    return InvalidArgument("Input indices must be a matrix. Got: ", text(indices));
  if (values.rank() != 1)
    return InvalidArgument("Input values must be a vector. Got: ", text(values));
  if (shape.rank() != 1) return InvalidArgument("Input shape must be a vector. Got: ", text(shape));
  if (values.dim(0) != indices.dim(0)) {
    return InvalidArgument("Number of values must match first dimension of indices. Got ",
                           values.dim(0), " values, indices shape: ", text(indices));
  }
  if (shape.dim(0) != indices.dim(1)) {
    return InvalidArgument("Number of dimensions must match second dimension of indices. Got ",
                           shape.dim(0), " dimensions, indices shape: ", text(indices));
  }
  if (shape.num_elements() == 0)
    return InvalidArgument("The shape argument requires at least one element.");
  WEIR_RETURN_IF_ERROR(ReadShape(shape, "dense_shape").status());
  SparseRows rows;
  WEIR_ASSIGN_OR_RETURN(rows.indices, c.Own(indices));
  WEIR_ASSIGN_OR_RETURN(rows.values, c.Own(values));
  WEIR_ASSIGN_OR_RETURN(rows.shape, c.Own(shape));
  for (int64_t i = 1; i < values.dim(0); ++i) {
    if (rows.row_of(i) < rows.row_of(i - 1)) {
      return Unimplemented(
          "The SparseTensor must be ordered in the batch dimension; handling arbitrarily ordered "
          "input is not currently supported.");
    }
  }
  for (int64_t i = 0; i < values.dim(0); ++i) {
    const int64_t row = rows.row_of(i);
    if (row < 0 || row >= rows.size())
      return InvalidArgument("indices[", i, ",0] = ", row, " is not in [0, ", rows.size(), ")");
  }
  return rows;
}

absl::Status SparseTensorSliceDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const SparseRows rows, ReadSparse(c));
  const auto iterate = [rows] {
    return IteratorOf([rows, row = int64_t{0},
                       entry = int64_t{0}](const DatasetContext&) mutable -> MaybeElement {
      if (row == rows.size()) return std::nullopt;
      const int64_t begin = entry;
      while (entry < rows.values.dim(0) && rows.row_of(entry) == row) ++entry;
      ++row;
      WEIR_ASSIGN_OR_RETURN(Tensors slice, rows.Slice(begin, entry));
      return slice;
    });
  };
  c.SetOutput(0, DatasetTensor(DatasetOf(iterate, {.cardinality = rows.size()})));
  return absl::OkStatus();
}

// ---- batches of dense tensors as sparse ones

// Returns the dense shape of a batch: [batch size, row shape...], where an unknown dimension is as
// long as the longest element.
absl::StatusOr<Dims> BatchShape(const std::vector<Tensors>& elements, const Dims& row) {
  Dims shape = {static_cast<int64_t>(elements.size())};
  for (const int64_t d : row) shape.push_back(std::max<int64_t>(d, 0));
  for (const Tensors& element : elements) {
    if (element.size() != 1) {
      return InvalidArgument(
          "DenseToSparseBatchDataset only supports inputs with a single component.");
    }
    const Tensor& t = element[0];
    const std::string text = Shape(row).ToString();
    if (t.rank() != static_cast<int>(row.size())) {
      return InvalidArgument("Input element had shape (", t.shape().ToString(),
                             ") that is incompatible with the row shape (", text, ").");
    }
    for (int d = 0; d < t.rank(); ++d) {
      if (row[d] < 0) {
        shape[d + 1] = std::max(shape[d + 1], t.dim(d));
      } else if (t.dim(d) > row[d]) {
        return absl::DataLossError(absl::StrCat("Input element had shape (", t.shape().ToString(),
                                                ") that is larger than the row shape (", text,
                                                ")."));
      }
    }
  }
  return shape;
}

// Writes the index vectors of all elements of t, as row `i` of a batch.
int64_t* WriteIndices(const Tensor& t, int64_t i, int64_t* to) {
  const Dims strides = StridesOf(t.shape());
  for (int64_t k = 0; k < t.num_elements(); ++k) {
    *to++ = i;
    int64_t rest = k;
    for (const int64_t stride : strides) {
      *to++ = rest / stride;
      rest %= stride;
    }
  }
  return to;
}

// Returns the batch as a variant vector of indices, values and dense shape.
MaybeElement SparseBatch(const std::vector<Tensors>& elements, const Dims& row) {
  WEIR_ASSIGN_OR_RETURN(const Dims shape, BatchShape(elements, row));
  const auto rank = static_cast<int64_t>(shape.size());
  const DataType dtype = elements[0][0].dtype();
  int64_t total = 0;
  for (const Tensors& element : elements) {
    total += element[0].num_elements();
    if (element[0].dtype() == dtype) continue;
    return InvalidArgument("Input elements have types ", DataTypeName(dtype), " and ",
                           DataTypeName(element[0].dtype()));
  }
  WEIR_ASSIGN_OR_RETURN(const Shape of_indices, CheckedShape({total, rank}));
  WEIR_ASSIGN_OR_RETURN(Tensor indices, Tensor::Allocate(HostAllocator(), DT_INT64, of_indices));
  WEIR_ASSIGN_OR_RETURN(Tensor values, Tensor::Allocate(HostAllocator(), dtype, Shape({total})));
  int64_t* index = indices.data<int64_t>();
  int64_t at = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    const Tensor& t = elements[i][0];
    index = WriteIndices(t, static_cast<int64_t>(i), index);
    CopyElements(dtype, t.raw(), ElementAt(values, at), t.num_elements());
    at += t.num_elements();
  }
  Tensor batch(DT_VARIANT, Shape({3}));
  const Tensor parts[] = {indices, values, Tensor::Vector<int64_t>(shape)};
  for (int i = 0; i < 3; ++i) {
    batch.data<Variant>()[i] =
        Variant{.type_name = "tensorflow::Tensor", .metadata = "", .value = Tensors{parts[i]}};
  }
  return Tensors{std::move(batch)};
}

absl::Status DenseToSparseBatchDataset(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t size, ReadInt(c.input(1), "batch_size"));
  if (size <= 0) return InvalidArgument("Batch size must be greater than zero.");
  if (c.input(2).rank() != 1) return InvalidArgument("row_shape must be a vector");
  const Dims row = ReadInts(c.input(2));
  for (const int64_t d : row) {
    if (d < -1) return InvalidArgument("Dimension ", d, " of row_shape must be >= -1");
  }
  const auto wrap = [size, row](IteratorPtr in) {
    return IteratorOf([in = std::move(in), size, row, elements = std::vector<Tensors>()](
                          const DatasetContext& x) mutable -> MaybeElement {
      while (static_cast<int64_t>(elements.size()) < size) {
        WEIR_ASSIGN_OR_RETURN(std::optional<Tensors> element, in->Next(x));
        if (!element) break;
        elements.push_back(*std::move(element));
      }
      if (elements.empty()) return std::nullopt;
      return SparseBatch(std::exchange(elements, {}), row);
    });
  };
  return WrapDataset(c, wrap, {.cardinality = BatchTraits(size, false).cardinality});
}

}  // namespace

void AddDatasetSparseKernels(KernelRegistry* r) {
  for (const char* op : {"DenseToSparseBatchDataset", "ExperimentalDenseToSparseBatchDataset"})
    r->Add(op, kCpu, DenseToSparseBatchDataset);
  r->Add("SparseTensorSliceDataset", kCpu, SparseTensorSliceDataset);
}

}  // namespace weir
