#include <algorithm>
#include <limits>

#include "weir/kernels/lib/blocks.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/kernels/sparse/sparse_kernels.h"

// Concatenates sparse tensors along a dimension, and splits them.
namespace weir {

namespace {

// ---- SparseConcat

// Returns the extents of the result. Returns INVALID_ARGUMENT if the tensors do not match.
absl::StatusOr<Dims> ConcatDims(const std::vector<SparseValue>& parts, int axis) {
  Dims dims = parts[0].dims;
  for (size_t k = 1; k < parts.size(); ++k) {
    const Dims& more = parts[k].dims;
    for (int d = 0; d < static_cast<int>(dims.size()); ++d) {
      if (d != axis) {
        if (more[d] == dims[d]) continue;
        return InvalidArgument("Input shapes must match: expected ", dims[d], " for dimension ", d,
                               " but got ", more[d], " at position ", k);
      }
      if (more[d] > std::numeric_limits<int64_t>::max() - dims[d]) {
        return InvalidArgument("the sum of dimension ", d, " does not fit int64");
      }
      dims[d] += more[d];
    }
  }
  return dims;
}

absl::StatusOr<int> ConcatAxis(const std::vector<SparseValue>& parts, int64_t axis) {
  const int rank = parts[0].rank();
  if (axis < -rank || axis >= rank) {
    return InvalidArgument("Concat dimension must be in range [", -rank, ", ", rank, "), got ",
                           axis);
  }
  for (size_t k = 1; k < parts.size(); ++k) {
    if (parts[k].rank() == rank) continue;
    return InvalidArgument("Ranks of all input tensors must match: expected ", rank, " but got ",
                           parts[k].rank(), " at position ", k);
  }
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

absl::Status ConcatSparse(KernelContext& c, int64_t attr_axis) {
  WEIR_ASSIGN_OR_RETURN(const std::vector<SparseValue> parts,
                        ReadSparseList(c, c.num_inputs() / 3));
  WEIR_ASSIGN_OR_RETURN(const int axis, ConcatAxis(parts, attr_axis));
  WEIR_ASSIGN_OR_RETURN(const Dims dims, ConcatDims(parts, axis));
  for (const SparseValue& part : parts) {
    if (!CheckedShape(part.dims).ok())
      return Internal("Encountered overflow from large input shape.");
  }
  const int64_t rank = static_cast<int64_t>(dims.size());
  int64_t count = 0;
  for (const SparseValue& part : parts) count += part.count();
  WEIR_ASSIGN_OR_RETURN(Tensor values, c.AllocateTemp(parts[0].values.dtype(), Shape({count})));
  std::vector<int64_t> rows(count * rank);
  int64_t at = 0, offset = 0;
  for (const SparseValue& part : parts) {
    ThrowIfCancelled();
    int64_t* const to = rows.data() + at * rank;
    std::copy_n(part.indices.data<int64_t>(), part.count() * rank, to);
    for (int64_t i = 0; i < part.count(); ++i) {
      int64_t& moved = to[i * rank + axis];  // an index is not validated
      moved = static_cast<int64_t>(static_cast<uint64_t>(moved) + static_cast<uint64_t>(offset));
    }
    CopyElements(values.dtype(), part.values.raw(), ElementAt(values, at), part.count());
    at += part.count();
    offset += part.dims[axis];
  }
  WEIR_RETURN_IF_ERROR(OutputSorted(c, rows.data(), rank, values));
  return OutputInts(c, 2, dims);
}

absl::StatusOr<Kernel> MakeConcat(const KernelInit& init) {
  const int64_t axis = init.attr<int64_t>("concat_dim");
  return Kernel([axis](KernelContext& c) -> absl::Status { return ConcatSparse(c, axis); });
}

// ---- SparseSplit

// The extent of a dimension split into `parts` parts; the first parts are longer by one if it does
// not divide evenly.
struct Cuts {
  int64_t parts, size, longer;
  int64_t begin(int64_t part) const { return part * size + std::min(part, longer); }
  int64_t PartOf(int64_t index) const {
    const int64_t in_longer = longer * (size + 1);
    return index < in_longer ? index / (size + 1) : longer + (index - in_longer) / size;
  }
};

// Writes elements `which` of x, moved by `offset` along the axis, as outputs `part` of the three
// lists.
absl::Status OutputPart(KernelContext& c, const SparseValue& x, absl::Span<const int64_t> which,
                        int axis, const Cuts& cuts, int64_t part) {
  const int64_t count = static_cast<int64_t>(which.size()), rank = x.rank();
  const int at = static_cast<int>(part), n = static_cast<int>(cuts.parts);
  WEIR_ASSIGN_OR_RETURN(Tensor* const indices, c.AllocateOutput(at, Shape({count, rank})));
  WEIR_ASSIGN_OR_RETURN(Tensor* const values, c.AllocateOutput(n + at, Shape({count})));
  int64_t* to = indices->data<int64_t>();
  for (const int64_t i : which) {
    std::copy_n(x.row(i), rank, to);
    to[axis] -= cuts.begin(part);
    to += rank;
  }
  GatherElements(x.values, which, *values);
  Dims dims = x.dims;
  dims[axis] = cuts.begin(part + 1) - cuts.begin(part);
  return OutputInts(c, 2 * n + at, dims);
}

absl::Status SplitSparse(KernelContext& c, int64_t num_split) {
  const Tensor& split_dim = c.input(0);
  if (split_dim.rank() != 0) {
    return InvalidArgument("Input axis should be a scalar but received shape ",
                           split_dim.shape().ToString());
  }
  WEIR_ASSIGN_OR_RETURN(const SparseValue x, ReadSparse(c, 1));
  const int64_t asked = split_dim.IntAt(0);
  const int rank = x.rank();
  if (asked < -rank || asked >= rank) {
    return InvalidArgument("Input axis should be in range [", -rank, ", ", rank, "), got ", asked);
  }
  const int axis = static_cast<int>(asked < 0 ? asked + rank : asked);
  const int64_t extent = x.dims[axis];
  if (num_split < 1 || num_split > extent) {
    return InvalidArgument("Input num_split should be between 1 and the splitting dimension size (",
                           extent, "), got ", num_split);
  }
  WEIR_RETURN_IF_ERROR(CheckBounds(x));
  const Cuts cuts{num_split, extent / num_split, extent % num_split};
  std::vector<std::vector<int64_t>> elements(num_split);
  for (int64_t i = 0; i < x.count(); ++i) elements[cuts.PartOf(x.row(i)[axis])].push_back(i);
  for (int64_t part = 0; part < num_split; ++part) {
    WEIR_RETURN_IF_ERROR(OutputPart(c, x, elements[part], axis, cuts, part));
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeSplit(const KernelInit& init) {
  const int64_t num_split = init.attr<int64_t>("num_split");
  return Kernel(
      [num_split](KernelContext& c) -> absl::Status { return SplitSparse(c, num_split); });
}

// ---- SparseSlice

absl::Status CheckLength(const Tensor& t, absl::string_view name, int64_t rank) {
  if (t.rank() != 1) {
    return InvalidArgument("Input ", name, " should be a vector but received shape ",
                           t.shape().ToString());
  }
  if (t.dim(0) == rank) return absl::OkStatus();
  return InvalidArgument("Expected ", name, " to be a vector of length ", rank, " but got length ",
                         t.dim(0));
}

absl::Status SliceSparse(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const SparseValue x, ReadSparse(c, 0));
  WEIR_RETURN_IF_ERROR(CheckedShape(x.dims).status());
  const int64_t rank = x.rank();
  WEIR_RETURN_IF_ERROR(CheckLength(c.input(3), "start", rank));
  WEIR_RETURN_IF_ERROR(CheckLength(c.input(4), "size", rank));
  const Dims start = ReadInts(c.input(3)), size = ReadInts(c.input(4));
  Dims limit = start, dims = x.dims;
  for (int64_t d = 0; d < rank; ++d) {
    if (size[d] < 0) return InvalidArgument("Expected a non-negative size, got ", size[d]);
    if (__builtin_add_overflow(start[d], size[d], &limit[d]))
      limit[d] = std::numeric_limits<int64_t>::max();
    const int64_t end = std::min(limit[d], x.dims[d]);
    dims[d] = end > start[d] ? end - start[d] : 0;
  }
  std::vector<int64_t> kept;
  for (const auto [begin, end] : CancellableBlocks(x.count())) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t* const row = x.row(i);
      bool inside = true;
      for (int64_t d = 0; d < rank; ++d) inside = inside && row[d] >= start[d] && row[d] < limit[d];
      if (inside) kept.push_back(i);
    }
  }
  const int64_t count = static_cast<int64_t>(kept.size());
  WEIR_ASSIGN_OR_RETURN(Tensor* const indices, c.AllocateOutput(0, Shape({count, rank})));
  WEIR_ASSIGN_OR_RETURN(Tensor* const values, c.AllocateOutput(1, Shape({count})));
  int64_t* to = indices->data<int64_t>();
  for (const int64_t i : kept) {
    for (int64_t d = 0; d < rank; ++d) *to++ = x.row(i)[d] - start[d];
  }
  GatherElements(x.values, kept, *values);
  return OutputInts(c, 2, dims);
}

// ---- SparseSliceGrad

absl::Status CheckMatrix(const Tensor& t, absl::string_view name) {
  if (t.rank() == 2) return absl::OkStatus();
  return InvalidArgument("Input ", name, " should be a matrix but received shape ",
                         t.shape().ToString());
}

// The elements of the slice are in the same order in both tensors.
absl::Status SliceGrad(KernelContext& c) {
  const Tensor &grad = c.input(0), &input = c.input(1), &start = c.input(2), &output = c.input(3);
  WEIR_RETURN_IF_ERROR(CheckMatrix(input, "input_indices"));
  WEIR_RETURN_IF_ERROR(CheckMatrix(output, "output_indices"));
  if (grad.rank() != 1) {
    return InvalidArgument("Input backprop_val_grad should be a vector but received shape ",
                           grad.shape().ToString());
  }
  const int64_t rank = input.dim(1), count = input.dim(0), kept = output.dim(0);
  if (output.dim(1) != rank) {
    return InvalidArgument("The input and output should have the same ndims: got: ", rank, " and ",
                           output.dim(1));
  }
  WEIR_RETURN_IF_ERROR(CheckLength(start, "input_start", rank));
  if (grad.dim(0) != kept) {
    return InvalidArgument(
        "# elements of backprop_val_grad and # rows of output_indices should match (#nnz of sum): "
        "got ",
        grad.dim(0), " and ", kept);
  }
  if (kept > count) {
    return InvalidArgument(
        "# rows of output_indices should be not greater than of input_indices, got ", kept, " and ",
        count);
  }
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, Shape({count})));
  ClearElements(c.pool(), *out);
  const Dims from = ReadInts(start);
  const int64_t *x = input.data<int64_t>(), *y = output.data<int64_t>();
  std::vector<int64_t> places;
  for (int64_t i = 0; i < count && static_cast<int64_t>(places.size()) < kept; ++i, x += rank) {
    ThrowIfCancelledAt(i);
    bool same = true;
    for (int64_t d = 0; d < rank; ++d) {
      same = same && static_cast<uint64_t>(x[d]) ==
                         static_cast<uint64_t>(y[d]) + static_cast<uint64_t>(from[d]);
    }
    if (!same) continue;
    places.push_back(i);
    y += rank;
  }
  if (static_cast<int64_t>(places.size()) != kept) {
    return Internal("Elements of backprop_val_grad aren't all propagated. Num elements:", kept,
                    ", used: ", places.size());
  }
  ScatterElements(grad, places, *out);
  return absl::OkStatus();
}

}  // namespace

void AddSparsePartsCpu(KernelRegistry* r) {
  r->Add("SparseConcat", kCpu, MakeConcat);
  r->Add("SparseSplit", kCpu, MakeSplit).HostArgs({"split_dim"});
  r->Add("SparseSlice", kCpu, SliceSparse);
  r->Add("SparseSliceGrad", kCpu, SliceGrad);
}

}  // namespace weir
