#include "weir/kernels/math/reduce.h"

#include <algorithm>
#include <numeric>

#include "absl/container/inlined_vector.h"
#include "weir/kernels/lib/pieces.h"
#include "weir/kernels/lib/registry.h"

// After merging, the dimensions alternate between kept (K) and reduced (R). Whatever their number,
// memory is read in address order. The innermost dimension is a contiguous run, which accumulates
// either into one accumulator (if it is reduced: `row`) or into as many adjacent accumulators as it
// has elements (if it is kept: `columns`).
//
//   ... K R   the results are split over threads; each accumulates its rows.
//   ... R K   likewise, but a result is a whole run of accumulators.
//
// Threads split the outer kept dimensions if there are enough of them. Otherwise (a sum over
// everything, or over the rows of a matrix) they split the reduced dimensions into pieces. In both
// cases long sums are accumulated in such pieces, so results depend on sizes alone.
namespace weir {

namespace {

int64_t Product(const std::vector<int64_t>& v) {
  return std::accumulate(v.begin(), v.end(), int64_t{1}, std::multiplies<int64_t>());
}

// The dimensions outside the innermost run, split into kept and reduced ones, with their strides in
// elements.
struct Loops {
  std::vector<int64_t> kept, kept_strides, reduced, reduced_strides;
  int64_t run = 1;  // contiguous elements
  bool run_is_reduced = true;
  int64_t kept_count = 1, reduced_count = 1;
};

Loops MakeLoops(const ReductionLayout& layout) {
  Loops loops;
  const int n = static_cast<int>(layout.dims.size());
  int64_t stride = 1;
  for (int i = n - 1; i >= 0; --i) {
    const bool reduced = layout.first_is_reduced == (i % 2 == 0);
    if (i == n - 1) {
      loops.run = layout.dims[i];
      loops.run_is_reduced = reduced;
    } else {
      (reduced ? loops.reduced : loops.kept)
          .insert((reduced ? loops.reduced : loops.kept).begin(), layout.dims[i]);
      auto& strides = reduced ? loops.reduced_strides : loops.kept_strides;
      strides.insert(strides.begin(), stride);
    }
    stride *= layout.dims[i];
  }
  loops.kept_count = Product(loops.kept);
  loops.reduced_count = Product(loops.reduced);
  return loops;
}

int64_t OffsetOf(int64_t index, const std::vector<int64_t>& dims,
                 const std::vector<int64_t>& strides) {
  int64_t offset = 0;
  for (int i = static_cast<int>(dims.size()) - 1; i >= 0; --i) {
    offset += index % dims[i] * strides[i];
    index /= dims[i];
  }
  return offset;
}

// Accumulates reduced positions [begin, end) of the kept position at `base` into acc; of a kept run
// only [from, from + width).
void Accumulate(const Reducer& r, const Loops& loops, const char* base, int64_t begin, int64_t end,
                int64_t from, int64_t width, void* acc) {
  const int64_t inner = loops.reduced.empty() ? 1 : loops.reduced.back();
  const int64_t stride = loops.reduced.empty() ? 0 : loops.reduced_strides.back();
  for (int64_t k = begin; k < end;) {
    const char* x = base + (OffsetOf(k, loops.reduced, loops.reduced_strides) + from) * r.in_size;
    const int64_t rows = std::min(end - k, inner - k % inner);
    k += rows;
    if (!loops.run_is_reduced) {
      r.columns(x, rows, stride, width, acc);
      continue;
    }
    for (int64_t i = 0; i < rows; ++i) r.row(x + i * stride * r.in_size, loops.run, acc);
  }
}

// Accumulators, on the stack if they are few.
using Accumulators = absl::InlinedVector<char, 512>;

// The computation of one result, or of a kept run of results. The reduced dimensions are split into
// `pieces`, each with its own accumulators, which are merged in order; for a single row, the run
// itself is split. The split depends on the elements of one result, not on the number of results,
// so a row's sum does not depend on its position in the tensor. Only the columns of a matrix are
// split by the total size.
struct ResultReduction {
  const Reducer& r;
  const Loops& loops;
  int64_t count;
  const char* x;
  char* y;
  int64_t width = loops.run_is_reduced ? 1 : loops.run;
  int64_t length =
      loops.reduced_count == 1 && loops.run_is_reduced ? loops.run : loops.reduced_count;
  int64_t pieces =
      NumPiecesForWork(r.cost * static_cast<double>(count) * static_cast<double>(width),
                       std::min(length, kMaxPieces));

  int64_t acc_bytes() const { return width * static_cast<int64_t>(r.acc_size); }
  // Initializes the accumulators and accumulates piece p of result (or run) k.
  void ReducePiece(int64_t k, int64_t p, char* acc) const {
    const char* const from = x + OffsetOf(k, loops.kept, loops.kept_strides) * r.in_size;
    const int64_t begin = length * p / pieces, end = length * (p + 1) / pieces;
    r.init(acc, width);
    if (loops.reduced_count == 1 && loops.run_is_reduced) {
      r.row(from + begin * r.in_size, end - begin, acc);
    } else {
      Accumulate(r, loops, from, begin, end, 0, width, acc);
    }
  }
  void Finish(int64_t k, const char* acc) const {
    r.finish(acc, width, count, y + k * width * r.out_size);
  }
};

// Splits the results over threads.
void ReduceKept(ThreadPool& pool, const ResultReduction& g) {
  const double cost = g.r.cost * static_cast<double>(g.count) * static_cast<double>(g.width);
  pool.ParallelFor(g.loops.kept_count, cost, [&](int64_t begin, int64_t end) {
    alignas(16) Accumulators acc(2 * g.acc_bytes());
    char* const next = acc.data() + g.acc_bytes();
    for (int64_t k = begin; k < end; ++k) {
      g.ReducePiece(k, 0, acc.data());
      for (int64_t p = 1; p < g.pieces; ++p) {
        g.ReducePiece(k, p, next);
        g.r.merge(next, g.width, acc.data());
      }
      g.Finish(k, acc.data());
    }
  });
}

// For few results with long sums: splits the pieces over threads.
void ReducePieces(ThreadPool& pool, const ResultReduction& g) {
  std::vector<char> partial(g.pieces * g.acc_bytes());
  for (int64_t k = 0; k < g.loops.kept_count; ++k) {
    pool.ForEach(static_cast<int>(g.pieces),
                 [&](int p) { g.ReducePiece(k, p, partial.data() + p * g.acc_bytes()); });
    for (int64_t p = 1; p < g.pieces; ++p)
      g.r.merge(partial.data() + p * g.acc_bytes(), g.width, partial.data());
    g.Finish(k, partial.data());
  }
}

// For the sum of a matrix's rows: splits the columns over threads.
void ReduceColumns(ThreadPool& pool, const Reducer& r, const Loops& loops, int64_t count,
                   const char* x, char* y) {
  const double cost = r.cost * static_cast<double>(count);
  pool.ParallelFor(
      loops.run, cost,
      [&](int64_t begin, int64_t end) {
        Accumulators acc((end - begin) * r.acc_size);
        r.init(acc.data(), end - begin);
        Accumulate(r, loops, x, 0, loops.reduced_count, begin, end - begin, acc.data());
        r.finish(acc.data(), end - begin, count, y + begin * r.out_size);
      },
      /*align=*/64);
}

}  // namespace

absl::StatusOr<ReductionLayout> MakeReductionLayout(const Shape& x, const Tensor& axes,
                                                    bool keep_dims) {
  if (axes.rank() > 1) {
    return InvalidArgument("The reduction axes must be a scalar or a vector, but have shape ",
                           axes.shape().ToString());
  }
  absl::InlinedVector<bool, 8> reduced(x.rank(), false);
  for (int64_t i = 0; i < axes.num_elements(); ++i) {
    const int64_t a = axes.IntAt(i);
    if (a < -x.rank() || a >= x.rank()) {
      return InvalidArgument("Invalid reduction dimension (", a, " for input with ", x.rank(),
                             " dimension(s)");
    }
    const int64_t axis = a < 0 ? a + x.rank() : a;
    if (reduced[axis]) {
      return InvalidArgument("Invalid reduction arguments: Axes contains duplicate dimension: ",
                             axis);
    }
    reduced[axis] = true;
  }
  ReductionLayout layout;
  bool last_reduced = false;
  for (int i = 0; i < x.rank(); ++i) {
    const int64_t extent = x.dim(i);
    if (reduced[i]) layout.count *= extent;
    if (!reduced[i]) layout.out.AddDim(extent);
    if (reduced[i] && keep_dims) layout.out.AddDim(1);
    if (extent == 1) continue;
    if (layout.dims.empty()) {
      layout.first_is_reduced = reduced[i];
      layout.dims.push_back(extent);
    } else if (reduced[i] == last_reduced) {
      layout.dims.back() *= extent;
    } else {
      layout.dims.push_back(extent);
    }
    last_reduced = reduced[i];
  }
  return layout;
}

void Reduce(ThreadPool& pool, const Reducer& r, const ReductionLayout& layout, const void* x,
            void* y) {
  const char* const in = static_cast<const char*>(x);
  char* const out = static_cast<char*>(y);
  const int64_t results = layout.out.num_elements();
  if (results == 0) return;
  if (layout.dims.empty() || layout.count == 0) {
    // Each result has one element, or none.
    constexpr int64_t kPiece = 1024;
    Accumulators acc(std::min(kPiece, results) * r.acc_size);
    for (int64_t i = 0; i < results; i += kPiece) {
      const int64_t n = std::min(kPiece, results - i);
      r.init(acc.data(), n);
      if (layout.count != 0) r.columns(in + i * r.in_size, 1, 0, n, acc.data());
      r.finish(acc.data(), n, layout.count, out + i * r.out_size);
    }
    return;
  }
  const Loops loops = MakeLoops(layout);
  constexpr int64_t kManyColumns = 512, kManyResults = 16;
  if (loops.kept_count == 1 && !loops.run_is_reduced && loops.run >= kManyColumns)
    return ReduceColumns(pool, r, loops, layout.count, in, out);
  const ResultReduction task{r, loops, layout.count, in, out};
  if (task.pieces == 1 || loops.kept_count >= kManyResults || pool.num_threads() == 1)
    return ReduceKept(pool, task);
  ReducePieces(pool, task);
}

namespace {

struct ReductionKernel {
  const Reducer* reducer;
  bool keep_dims;

  absl::Status operator()(KernelContext& c) const {
    const Tensor &x = c.input(0), &axes = c.input(1);
    WEIR_ASSIGN_OR_RETURN(const ReductionLayout layout,
                          MakeReductionLayout(x.shape(), axes, keep_dims));
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, layout.out));
    Reduce(c.pool(), *reducer, layout, x.raw(), out->raw());
    return absl::OkStatus();
  }
};

}  // namespace

void AddReduceCpu(KernelRegistry* r) {
  for (const char* op : {"Sum", "Mean", "Prod", "Max", "Min", "EuclideanNorm", "All", "Any"}) {
    for (int t = DT_FLOAT; t <= DT_UINT64; ++t) {
      const DataType type = static_cast<DataType>(t);
      const Reducer* reducer = FindReducer(op, type);
      if (reducer == nullptr) continue;
      const bool typed = type != DT_BOOL;
      r->Add(op, kCpu, typed ? TypeConstraints{{"T", type}} : TypeConstraints{},
             [reducer](const KernelInit& init) -> absl::StatusOr<Kernel> {
               return Kernel(ReductionKernel{reducer, init.attr<bool>("keep_dims")});
             })
          .HostArgs({"reduction_indices"});
    }
  }
}

}  // namespace weir
