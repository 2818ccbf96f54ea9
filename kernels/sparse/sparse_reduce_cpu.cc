#include <algorithm>

#include "weir/kernels/lib/accumulate.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/kernels/sparse/sparse_kernels.h"

// Sums and maxima of sparse tensors over some of their dimensions. Only present elements count: a
// maximum of negative ones is negative, and of none 0.
namespace weir {

namespace {

template <class T>
struct Sum {
  using Acc = Wide<T>;
  static Acc Step(Acc a, Acc x) { return Add(a, x); }
};
template <class T>
struct Max {
  using Acc = Wide<T>;
  static Acc Step(Acc a, Acc x) { return ScalarMath<Acc>::Max(a, x); }
};

// The reduced dimensions.
struct Reduction {
  std::vector<bool> reduced;
  bool keep_dims;

  // Returns the extents (or an index) of the result, from those of the input.
  template <class Dim>
  Dims Kept(const Dim* dims, int64_t in_place_of_reduced) const {
    Dims kept;
    for (size_t d = 0; d < reduced.size(); ++d) {
      if (!reduced[d])
        kept.push_back(dims[d]);
      else if (keep_dims)
        kept.push_back(in_place_of_reduced);
    }
    return kept;
  }
};

absl::StatusOr<Reduction> ReadReduction(const Tensor& axes, int rank, bool keep_dims) {
  if (axes.rank() > 1) {
    return InvalidArgument("Expected reduction_axes to be a scalar or a vector; got shape: ",
                           axes.shape().ToString());
  }
  Reduction r{std::vector<bool>(rank, false), keep_dims};
  for (const int64_t axis : ReadInts(axes)) {
    if (axis < -rank || axis >= rank) {
      return InvalidArgument("Invalid reduction dimension ", axis, ", for input with ", rank,
                             " dimensions.");
    }
    r.reduced[axis < 0 ? axis + rank : axis] = true;
  }
  return r;
}

template <class F, class T>
absl::Status ReduceToDense(KernelContext& c, const SparseValue& x, const Reduction& r) {
  using Acc = typename F::Acc;
  WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape(r.Kept(x.dims.data(), 1)));
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, shape));
  const int64_t size = shape.num_elements();
  WEIR_ASSIGN_OR_RETURN(Tensor sums, c.AllocateTemp(DataTypeOf<Acc>::value, shape));
  WEIR_ASSIGN_OR_RETURN(Tensor found, c.AllocateTemp(DT_BOOL, shape));
  ClearElements(c.pool(), sums);
  ClearElements(c.pool(), found);
  Acc* const acc = sums.data<Acc>();
  bool* const has = found.data<bool>();
  const T* const values = x.values.data<T>();
  for (int64_t i = 0; i < x.count(); ++i) {
    ThrowIfCancelledAt(i);
    const Dims index = r.Kept(x.row(i), 0);
    int64_t at = 0;
    for (int d = 0; d < shape.rank(); ++d) {
      if (index[d] < 0 || index[d] >= shape.dim(d)) {
        return Internal("Obtained a write index of ", index[d],
                        " which is outside of bounds of [0, ", shape.dim(d), ")");
      }
      at = at * shape.dim(d) + index[d];
    }
    const Acc v = static_cast<Acc>(values[i]);
    acc[at] = has[at] ? F::Step(acc[at], v) : v;
    has[at] = true;
  }
  for (int64_t i = 0; i < size; ++i) out->data<T>()[i] = static_cast<T>(acc[i]);
  return absl::OkStatus();
}

template <class F, class T>
absl::Status ReduceToSparse(KernelContext& c, const SparseValue& x, const Reduction& r) {
  using Acc = typename F::Acc;
  const Dims dims = r.Kept(x.dims.data(), 1);
  const int64_t rank = static_cast<int64_t>(dims.size());
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < x.count(); ++i) {
    ThrowIfCancelledAt(i);
    const Dims row = r.Kept(x.row(i), 0);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  std::vector<int64_t> result_rows;
  std::vector<T> results;
  const std::vector<int64_t> order = SortedOrder(rows.data(), x.count(), rank);
  const T* const values = x.values.data<T>();
  for (int64_t begin = 0, end; begin < x.count(); begin = end) {
    ThrowIfCancelled();
    const int64_t* const row = rows.data() + order[begin] * rank;
    Acc acc = static_cast<Acc>(values[order[begin]]);
    for (end = begin + 1; end < x.count(); ++end) {
      if (CompareRows(row, rows.data() + order[end] * rank, rank) != 0) break;
      acc = F::Step(acc, static_cast<Acc>(values[order[end]]));
    }
    result_rows.insert(result_rows.end(), row, row + rank);
    results.push_back(static_cast<T>(acc));
  }
  const int64_t count = static_cast<int64_t>(results.size());
  WEIR_RETURN_IF_ERROR(OutputRows(c, 0, result_rows, count, rank));
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(1, Shape({count})));
  std::copy(results.begin(), results.end(), out->data<T>());
  return OutputInts(c, 2, dims);
}

template <class F, class T>
absl::StatusOr<Kernel> MakeReduce(const KernelInit& init) {
  const bool keep_dims = init.attr<bool>("keep_dims");
  const bool to_sparse = init.node.num_outputs() == 3;
  return Kernel([keep_dims, to_sparse](KernelContext& c) -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(const SparseValue x, ReadSparse(c, 0));
    WEIR_RETURN_IF_ERROR(CheckedShape(x.dims).status());
    WEIR_ASSIGN_OR_RETURN(const Reduction r, ReadReduction(c.input(3), x.rank(), keep_dims));
    return to_sparse ? ReduceToSparse<F, T>(c, x, r) : ReduceToDense<F, T>(c, x, r);
  });
}

template <template <class> class F, class... Ts>
void AddReductions(KernelRegistry* r, const std::string& op, List<Ts...>) {
  for (const char* suffix : {"", "Sparse"}) {
    (r->Add(op + suffix, kCpu, DataTypeOf<Ts>::value, MakeReduce<F<Ts>, Ts>)
         .HostArgs({"reduction_axes"}),
     ...);
  }
}

}  // namespace

void AddSparseReduceCpu(KernelRegistry* r) {
  AddReductions<Sum>(r, "SparseReduceSum", Numbers{});
  AddReductions<Max>(r, "SparseReduceMax", RealNumbers{});
}

}  // namespace weir
