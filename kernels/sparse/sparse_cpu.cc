#include <algorithm>
#include <utility>

#include "weir/kernels/lib/accumulate.h"
#include "weir/kernels/lib/blocks.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/kernels/sparse/csr_matrix.h"
#include "weir/kernels/sparse/sparse_kernels.h"
#include "weir/kernels/sparse/sparse_value.h"

// Conversions of sparse tensors of any element type: to dense tensors, to sorted order, to another
// shape, and to tensors without empty rows.
namespace weir {

namespace {

// ---- SparseToDense

// A scalar or vector of indices is a matrix of one column; a single value is broadcast to all
// indices.
absl::StatusOr<SparseValue> ReadToDense(const KernelContext& c) {
  const Tensor &indices = c.input(0), &shape = c.input(1), &values = c.input(2);
  if (indices.rank() > 2) {
    return InvalidArgument("sparse_indices should be a scalar, vector, or matrix, got shape ",
                           indices.shape().ToString());
  }
  const int64_t count = indices.rank() > 0 ? indices.dim(0) : 1;
  const int64_t rank = indices.rank() > 1 ? indices.dim(1) : 1;
  if (shape.rank() != 1) {
    return InvalidArgument("output_shape must be rank 1, got shape ", shape.shape().ToString());
  }
  if (shape.dim(0) != rank) {
    return InvalidArgument("output_shape has incorrect number of elements: ", shape.dim(0),
                           " should be: ", rank);
  }
  if (values.rank() != 0 && values.shape() != Shape({count})) {
    return InvalidArgument("sparse_values has incorrect shape ", values.shape().ToString(),
                           ", should be [] or [", count, "]");
  }
  if (c.input(3).rank() != 0) return InvalidArgument("default_value should be a scalar.");
  // The check sees as many values as indices; a single value is broadcast later.
  Tensor each = values;
  if (values.rank() == 0) {
    WEIR_ASSIGN_OR_RETURN(each, Tensor::Allocate(HostAllocator(), values.dtype(), Shape({count})));
    FillElements(c.pool(), values.dtype(), values.raw(), each.raw(), count);
  }
  return MakeSparse(indices.Reshaped(Shape({count, rank})), each, shape);
}

absl::Status ToDense(KernelContext& c, bool in_order) {
  WEIR_ASSIGN_OR_RETURN(const SparseValue x, ReadToDense(c));
  WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape(x.dims));
  if (in_order) {
    WEIR_RETURN_IF_ERROR(CheckIndices(x, true));
  } else if (!CheckIndices(x, false).ok()) {
    return InvalidArgument("Indices are not valid (out of bounds).  Shape: ", shape.ToString());
  }
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, shape));
  FillElements(c.pool(), out->dtype(), c.input(3).raw(), out->raw(), out->num_elements());
  if (x.count() == 0) return absl::OkStatus();
  const Dims strides = StridesOf(shape);
  std::vector<int64_t> at(x.count(), 0);
  for (const auto [begin, end] : CancellableBlocks(x.count())) {
    for (int64_t i = begin; i < end; ++i) {
      for (int d = 0; d < x.rank(); ++d) at[i] += x.row(i)[d] * strides[d];
    }
  }
  ScatterElements(x.values, at, *out);
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeToDense(const KernelInit& init) {
  const bool in_order = init.attr<bool>("validate_indices");
  return Kernel([in_order](KernelContext& c) -> absl::Status { return ToDense(c, in_order); });
}

// ---- SparseReorder

absl::Status Reorder(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const SparseValue x, ReadSparse(c, 0));
  return OutputSorted(c, x.indices.data<int64_t>(), x.rank(), x.values);
}

// ---- SparseReshape

// Returns the product of extents. Returns INVALID_ARGUMENT if it does not fit int64.
absl::StatusOr<int64_t> SizeOf(const Dims& dims) {
  int64_t size = 1;
  for (const int64_t d : dims) {
    if (d < 0) return InvalidArgument("Expected shape dimensions to be non-negative, got ", d);
    int64_t product;
    if (__builtin_mul_overflow(size, d, &product)) {
      return InvalidArgument("Encountered overflow when multiplying ", size, " with ", d);
    }
    size = product;
  }
  return size;
}

// Returns the target shape with its -1 resolved.
absl::StatusOr<Dims> ResolveTarget(const Dims& input, Dims target) {
  WEIR_ASSIGN_OR_RETURN(const int64_t size, SizeOf(input));
  int unknown = -1;
  Dims known;
  for (int d = 0; d < static_cast<int>(target.size()); ++d) {
    if (target[d] == -1) {
      if (unknown >= 0) {
        return InvalidArgument("only one output dimension may be -1, not both ", unknown, " and ",
                               d);
      }
      unknown = d;
    } else if (target[d] < 0) {
      return InvalidArgument("size ", d, " must be non-negative, not ", target[d]);
    } else {
      known.push_back(target[d]);
    }
  }
  WEIR_ASSIGN_OR_RETURN(const int64_t product, SizeOf(known));
  if (unknown >= 0) {
    if (product == 0) {
      return InvalidArgument(
          "reshape cannot infer the missing input size for an empty tensor unless all specified "
          "input sizes are non-zero");
    }
    if (size % product != 0) {
      return InvalidArgument("Input to reshape is a SparseTensor with ", size,
                             " dense values, but the requested shape requires a multiple of ",
                             product);
    }
    target[unknown] = size / product;
  } else if (product != size) {
    return InvalidArgument("Input to reshape is a tensor with ", size,
                           " dense values, but the requested shape has ", product);
  }
  return target;
}

// An index outside the input's shape maps to an arbitrary index, but is harmless: hence the
// unsigned sums.
void ReshapeRows(const int64_t* from, int64_t count, const Dims& from_dims, const Dims& to_dims,
                 int64_t* to) {
  const Dims from_strides = StridesOf(from_dims), to_strides = StridesOf(to_dims);
  const size_t from_rank = from_dims.size(), to_rank = to_dims.size();
  for (int64_t i = 0; i < count; ++i, from += from_rank, to += to_rank) {
    ThrowIfCancelledAt(i);
    uint64_t flat = 0;
    for (size_t d = 0; d < from_rank; ++d)
      flat += static_cast<uint64_t>(from[d]) * static_cast<uint64_t>(from_strides[d]);
    int64_t rest = static_cast<int64_t>(flat);
    for (size_t d = 0; d < to_rank; ++d) {
      to[d] = rest / to_strides[d];
      rest %= to_strides[d];
    }
  }
}

absl::Status ReshapeSparse(KernelContext& c) {
  const Tensor &indices = c.input(0), &shape = c.input(1), &target = c.input(2);
  if (indices.rank() != 2) {
    return InvalidArgument("Input indices should be a matrix but received shape ",
                           indices.shape().ToString());
  }
  if (shape.rank() != 1) {
    return InvalidArgument("Input shape should be a vector but received shape ",
                           shape.shape().ToString());
  }
  if (target.rank() != 1) {
    return InvalidArgument("Target shape should be a vector but received shape ",
                           target.shape().ToString());
  }
  if (indices.dim(1) != shape.dim(0)) {
    return InvalidArgument("Input tensor rank must match input shape length.");
  }
  const Dims from = ReadInts(shape);
  WEIR_ASSIGN_OR_RETURN(const Dims to, ResolveTarget(from, ReadInts(target)));
  const int64_t count = indices.dim(0), rank = static_cast<int64_t>(to.size());
  WEIR_RETURN_IF_ERROR(OutputInts(c, 1, to));
  if (from == to) {
    c.SetOutput(0, indices);
    return absl::OkStatus();
  }
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, Shape({count, rank})));
  if (count == 0) return absl::OkStatus();
  if (std::find(from.begin(), from.end(), 0) != from.end()) {
    return InvalidArgument("Input tensor has ", count,
                           " non zero elements but its shape or the output shape is empty");
  }
  ReshapeRows(indices.data<int64_t>(), count, from, to, out->data<int64_t>());
  return absl::OkStatus();
}

// ---- SparseFillEmptyRows

// Counts the elements of each row into `counts`.
absl::Status CountRows(const SparseValue& x, absl::Span<int64_t> counts) {
  const int64_t rows = x.dims[0], rank = x.rank();
  if (rows == 0 && x.count() > 0) {
    return InvalidArgument("Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = ",
                           x.count());
  }
  std::fill(counts.begin(), counts.end(), 0);
  const int64_t* const indices = x.indices.data<int64_t>();
  for (const auto [begin, end] : CancellableBlocks(x.count())) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = indices[i * rank];
      if (row < 0 || row >= rows)
        return InvalidArgument("indices(", i, ", 0) is invalid: ", row, " >= ", rows);
      ++counts[row];
    }
  }
  return absl::OkStatus();
}

// A ragged tensor has only the row number of each element, and the number of rows.
absl::StatusOr<SparseValue> ReadRows(const KernelContext& c, bool is_ragged) {
  if (!is_ragged) return ReadSparse(c, 0);
  const Tensor &rows = c.input(0), &count = c.input(2);
  if (rows.rank() != 1) {
    return InvalidArgument("value_rowids must be a vector, saw: ", rows.shape().ToString());
  }
  if (count.rank() != 0) {
    return InvalidArgument("nrows must be a scalar, saw: ", count.shape().ToString());
  }
  return MakeSparse(rows.Reshaped(Shape({rows.dim(0), 1})), c.input(1), count.Reshaped(Shape({1})));
}

// Elements are grouped by row, in their original order within a row; an empty row gets one element
// at its beginning.
template <bool kRagged>
absl::Status FillEmptyRows(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const SparseValue x, ReadRows(c, kRagged));
  if (c.input(3).rank() != 0) {
    return InvalidArgument("default_value must be a scalar, saw: ", c.input(3).shape().ToString());
  }
  if (x.rank() < 1) return InvalidArgument("Dense shape cannot be empty.");
  WEIR_ASSIGN_OR_RETURN(Tensor per_row, c.AllocateTemp(DT_INT64, Shape({x.dims[0]})));
  const absl::Span<int64_t> next = per_row.flat<int64_t>();  // first counts, then positions
  WEIR_RETURN_IF_ERROR(CountRows(x, next));
  const int64_t rank = x.rank(), total = x.count() + std::count(next.begin(), next.end(), 0);
  const Shape index_shape = kRagged ? Shape({total}) : Shape({total, rank});
  WEIR_ASSIGN_OR_RETURN(Tensor* const indices, c.AllocateOutput(0, index_shape));
  WEIR_ASSIGN_OR_RETURN(Tensor* const values, c.AllocateOutput(1, Shape({total})));
  WEIR_ASSIGN_OR_RETURN(Tensor* const is_empty, c.AllocateOutput(2, Shape({x.dims[0]})));
  WEIR_ASSIGN_OR_RETURN(Tensor* const places, c.AllocateOutput(3, Shape({x.count()})));
  int64_t* const to = indices->data<int64_t>();
  bool* const empty = is_empty->data<bool>();
  int64_t at = 0;
  for (size_t r = 0; r < next.size(); ++r) {
    const int64_t count = std::exchange(next[r], at);
    empty[r] = count == 0;
    if (count == 0) {
      std::fill_n(to + at * rank, rank, 0);
      to[at * rank] = static_cast<int64_t>(r);
      CopyElements(values->dtype(), c.input(3).raw(), ElementAt(*values, at), 1);
    }
    at += std::max<int64_t>(count, 1);
  }
  const int64_t* const from = x.indices.data<int64_t>();
  int64_t* const place_of = places->data<int64_t>();
  for (const auto [begin, end] : CancellableBlocks(x.count())) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t place = place_of[i] = next[from[i * rank]]++;
      for (int64_t d = 0; d < rank; ++d) to[place * rank + d] = from[i * rank + d];
    }
  }
  ScatterElements(x.values, places->flat<int64_t>(), *values);
  return absl::OkStatus();
}

template <class T>
absl::Status FillEmptyRowsGrad(KernelContext& c) {
  const Tensor &map = c.input(0), &grad = c.input(1);
  if (map.rank() != 1) {
    return InvalidArgument("reverse_index_map must be a vector, saw: ", map.shape().ToString());
  }
  if (grad.rank() != 1) {
    return InvalidArgument("grad_values must be a vector, saw: ", grad.shape().ToString());
  }
  const int64_t n = map.dim(0), full = grad.dim(0);
  std::vector<bool> visited(full, false);
  for (const int64_t at : map.flat<int64_t>()) {
    if (at < 0 || at >= full) {
      return InvalidArgument("Elements in reverse index must be in [0, ", full, ") but got ", at);
    }
    visited[at] = true;
  }
  WEIR_ASSIGN_OR_RETURN(Tensor* const d_values, c.AllocateOutput(0, Shape({n})));
  WEIR_ASSIGN_OR_RETURN(Tensor* const d_default, c.AllocateOutput(1, Shape()));
  GatherElements(grad, map.flat<int64_t>(), *d_values);
  Wide<T> sum(0);
  for (int64_t i = 0; i < full; ++i) {
    if (!visited[i]) sum = Add(sum, static_cast<Wide<T>>(grad.data<T>()[i]));
  }
  *d_default->data<T>() = static_cast<T>(sum);
  return absl::OkStatus();
}

template <class... Ts>
void AddFillEmptyRowsGrad(KernelRegistry* r, List<Ts...>) {
  for (const char* op : {"SparseFillEmptyRowsGrad", "RaggedFillEmptyRowsGrad"})
    (r->Add(op, kCpu, DataTypeOf<Ts>::value, FillEmptyRowsGrad<Ts>), ...);
}

}  // namespace

absl::Status OutputSorted(KernelContext& c, const int64_t* rows, int64_t rank,
                          const Tensor& values) {
  const int64_t count = values.num_elements();
  WEIR_ASSIGN_OR_RETURN(Tensor* const indices_out, c.AllocateOutput(0, Shape({count, rank})));
  WEIR_ASSIGN_OR_RETURN(Tensor* const values_out, c.AllocateOutput(1, Shape({count})));
  const std::vector<int64_t> order = SortedOrder(rows, count, rank);
  int64_t* to = indices_out->data<int64_t>();
  for (const auto [begin, end] : CancellableBlocks(count)) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t* const row = rows + order[i] * rank;
      for (int64_t d = 0; d < rank; ++d) *to++ = row[d];
    }
  }
  GatherElements(values, order, *values_out);
  return absl::OkStatus();
}

void AddSparseCpu(KernelRegistry* r) {
  AddCsrKernels(r);
  AddCsrProductKernels(r);
  AddCsrFactorizationKernels(r);
  r->Add("SparseToDense", kCpu, MakeToDense).HostArgs({"output_shape"});
  r->Add("SparseReorder", kCpu, Reorder);
  r->Add("SparseReshape", kCpu, ReshapeSparse).Aliases({0});
  r->Add("SparseFillEmptyRows", kCpu, FillEmptyRows<false>);
  r->Add("RaggedFillEmptyRows", kCpu, FillEmptyRows<true>);
  AddFillEmptyRowsGrad(r, Numbers{});
  AddSparsePartsCpu(r);
  AddCountCpu(r);
  AddSparseCrossCpu(r);
}

}  // namespace weir
