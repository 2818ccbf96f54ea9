#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/blocks.h"
#include "weir/kernels/lib/pieces.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/scalar_math.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/kernels/math/row_steps.h"
#include "weir/kernels/math/segments.h"

// Rows of a tensor combined by segment. A row is a run of `width` elements (a slice of the first
// dimension). With sorted ids each segment is a range of rows. With unsorted ids the rows are
// combined in order, and the columns are split over threads.
namespace weir {

namespace {

template <class T>
struct SumRows {
  using Acc = Wide<T>;
  static constexpr RowStepOp kStep = RowStepOp::kAdd;
  static constexpr bool kScales = false;  // whether Scaled changes the combination of n rows
  static Acc Neutral() { return Acc(0); }
  static Acc Step(Acc a, Acc x) { return ScalarMath<Acc>::Add(a, x); }
  static Acc Scaled(Acc a, int64_t) { return a; }
};
template <class T>
struct MeanRows : SumRows<T> {
  using Acc = Wide<T>;
  static constexpr bool kScales = true;
  static Acc Scaled(Acc a, int64_t n) {
    using Whole = std::conditional_t<std::is_signed_v<Acc>, int64_t, uint64_t>;
    if constexpr (std::is_integral_v<Acc>)
      return static_cast<Acc>(static_cast<Whole>(a) / static_cast<Whole>(n));
    else if constexpr (ScalarMath<Acc>::kComplex)
      return a / static_cast<typename Acc::value_type>(n);
    else
      return a / static_cast<Acc>(n);
  }
};
template <class T>
struct SqrtNRows : SumRows<T> {
  using Acc = Wide<T>;
  static constexpr bool kScales = true;
  static Acc Scaled(Acc a, int64_t n) {
    return static_cast<Acc>(a / std::sqrt(static_cast<double>(n)));
  }
};
template <class T>
struct ProdRows : SumRows<T> {
  using Acc = Wide<T>;
  static constexpr RowStepOp kStep = RowStepOp::kMul;
  static Acc Neutral() { return Acc(1); }
  static Acc Step(Acc a, Acc x) { return ScalarMath<Acc>::Mul(a, x); }
};
template <class T>
struct MaxRows : SumRows<T> {
  using Acc = Wide<T>;
  static constexpr RowStepOp kStep = RowStepOp::kMax;
  static Acc Neutral() {
    return std::is_same_v<T, half>       ? Acc(-65504)
           : std::is_same_v<T, bfloat16> ? Acc(-3.38953139e38f)
                                         : std::numeric_limits<Acc>::lowest();
  }
  static Acc Step(Acc a, Acc x) { return ScalarMath<Acc>::Max(a, x); }
};
template <class T>
struct MinRows : SumRows<T> {
  using Acc = Wide<T>;
  static constexpr RowStepOp kStep = RowStepOp::kMin;
  static Acc Neutral() {
    return std::is_same_v<T, half>       ? Acc(65504)
           : std::is_same_v<T, bfloat16> ? Acc(3.38953139e38f)
                                         : std::numeric_limits<Acc>::max();
  }
  static Acc Step(Acc a, Acc x) { return ScalarMath<Acc>::Min(a, x); }
};

int64_t IdOf(const Tensor& ids, int64_t i) { return ids.IntAt(i); }

// The first row of each segment: of segments 0 ... count - 1, and the end of the last one.
struct Segments {
  std::vector<int64_t> first;
  int64_t count = 0;
};

// Returns the last id plus one; the last id is the largest if they are sorted.
absl::StatusOr<int64_t> CountSegments(const Tensor& ids) {
  const int64_t n = ids.num_elements(), last = n == 0 ? -1 : IdOf(ids, n - 1);
  if (n > 0 && (last < 0 || last == INT64_MAX)) {
    return InvalidArgument("segment ids must be >= 0 and < ", INT64_MAX, ", but the last is ",
                           last);
  }
  return last + 1;
}

absl::Status CheckSorted(const Tensor& ids, int64_t count) {
  const int64_t n = ids.num_elements();
  for (const auto [begin, end] : CancellableBlocks(n)) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t id = IdOf(ids, i), next = i + 1 < n ? IdOf(ids, i + 1) : id;
      if (next < id)
        return InvalidArgument("segment ids are not increasing: ", id, " is followed by ", next);
      if (id < 0 || id >= count) {
        return InvalidArgument("Segment id ", id, " out of range [0, ", count,
                               "), possibly because 'segment_ids' input is not sorted.");
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Segments> SortedSegments(const Tensor& ids, int64_t count) {
  WEIR_RETURN_IF_ERROR(CheckSorted(ids, count));
  const int64_t n = ids.num_elements();
  // Ids without rows use memory too; the allocator has bounded their number before this is called.
  Segments out{.count = count};
  out.first.resize(count + 1);
  int64_t row = 0;
  for (const auto [begin, end] : CancellableBlocks(count)) {
    for (int64_t s = begin; s < end; ++s) {
      out.first[s] = row;
      while (row < n && IdOf(ids, row) == s) ++row;
    }
  }
  out.first[count] = n;
  return out;
}

// Combines rows with accumulators: with the vector loop, if there is one, in long rows.
template <class F, class T>
class Stepper {
 public:
  using Acc = typename F::Acc;
  void Run(Acc* acc, const T* x, int64_t n) const {
    if (vectors_ != nullptr && n >= kLong) return vectors_(acc, x, n);
    for (int64_t i = 0; i < n; ++i) acc[i] = F::Step(acc[i], static_cast<Acc>(x[i]));
  }

 private:
  static constexpr int64_t kLong = 16;
  const RowStep vectors_ =
      std::is_same_v<Acc, T> ? FindRowStep(F::kStep, DataTypeOf<T>::value) : nullptr;
};

// A function that combines rows [first, last) of the list into `out`, or writes `fill` if there are
// none. places[i] is the row of the data for row i of the list; null means row i itself.
using Combine = void (*)(const void* data, int64_t width, int64_t first, int64_t last,
                         const int64_t* places, float fill, void* out);
template <class F, class T>
void CombineRows(const void* data, int64_t width, int64_t first, int64_t last,
                 const int64_t* places, float fill, void* out) {
  using Acc = typename F::Acc;
  T* const y = static_cast<T*>(out);
  if (first == last) {
    std::fill_n(y, width, static_cast<T>(fill));
    return;
  }
  const auto row = [&](int64_t r) {
    return static_cast<const T*>(data) + (places == nullptr ? r : places[r]) * width;
  };
  // Rows are added up in the output itself, or in a buffer of a wider type.
  constexpr bool kDirect = std::is_same_v<Acc, T>;
  constexpr int64_t kBlock = 2048;
  Acc buffer[kDirect ? 1 : kBlock];
  const Stepper<F, T> step;
  for (int64_t j = 0; j < width; j += kBlock) {
    const int64_t m = std::min(kBlock, width - j);
    Acc* acc = buffer;
    if constexpr (kDirect) acc = y + j;
    std::copy_n(row(first) + j, m, acc);
    for (const auto [begin, end] : CancellableBlocks(last - first - 1)) {
      for (int64_t r = first + 1 + begin; r < first + 1 + end; ++r) step.Run(acc, row(r) + j, m);
    }
    if constexpr (!kDirect || F::kScales) {
      for (int64_t i = 0; i < m; ++i) y[j + i] = static_cast<T>(F::Scaled(acc[i], last - first));
    }
  }
}

// Combines each segment of the output `out`, which is not empty.
absl::Status CombineSegments(KernelContext& c, const Tensor& ids, int64_t count,
                             const int64_t* places, Combine combine, float fill, Tensor* out) {
  WEIR_ASSIGN_OR_RETURN(const Segments segments, SortedSegments(ids, count));
  const Tensor& data = c.input(0);
  const int64_t width = WidthOf(data.shape(), 1);
  const size_t row_bytes = static_cast<size_t>(width) * ElementSize(data.dtype());
  char* const y = static_cast<char*>(out->raw());
  const double cost = 10 + static_cast<double>(ids.num_elements() * width) /
                               std::max<double>(1, static_cast<double>(count));
  c.pool().ParallelFor(count, cost, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      combine(data.raw(), width, segments.first[s], segments.first[s + 1], places, fill,
              y + static_cast<size_t>(s) * row_bytes);
    }
  });
  return absl::OkStatus();
}

// ---- SegmentSum and similar ops

absl::Status RunSegment(KernelContext& c, Combine combine, float fill) {
  const Tensor &data = c.input(0), &ids = c.input(1);
  if (ids.rank() != 1)
    return InvalidArgument("segment_ids should be a vector, but has shape ",
                           ids.shape().ToString());
  if (data.rank() < 1 || data.dim(0) != ids.dim(0)) {
    return InvalidArgument(
        "segment_ids should be the same size as dimension 0 of input; shapes are ",
        ids.shape().ToString(), " and ", data.shape().ToString());
  }
  WEIR_ASSIGN_OR_RETURN(const int64_t count, CountSegments(ids));
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, RowsShape(data.shape(), count)));
  if (out->num_elements() == 0) return CheckSorted(ids, count);
  return CombineSegments(c, ids, count, nullptr, combine, fill, out);
}

template <template <class> class F, class... Ts>
void AddSegments(KernelRegistry* r, const char* op, float fill, List<Ts...>) {
  const auto make = [fill](Combine combine) -> KernelFactory {
    return [=](const KernelInit&) -> absl::StatusOr<Kernel> {
      return Kernel([=](KernelContext& c) { return RunSegment(c, combine, fill); });
    };
  };
  (r->Add(op, kCpu, DataTypeOf<Ts>::value, make(CombineRows<F<Ts>, Ts>)), ...);
}

// ---- UnsortedSegmentSum and similar ops

struct UnsortedRows {
  const void* data = nullptr;
  void* out = nullptr;
  int64_t rows = 0, width = 0, count = 0;
  const Tensor& ids;  // below `count`; rows with negative ids are skipped
};
// A function that combines columns [begin, end) of all segments.
using CombineColumns = void (*)(const UnsortedRows& u, int64_t begin, int64_t end);
template <class F, class T>
void CombineUnsorted(const UnsortedRows& u, int64_t begin, int64_t end) {
  using Acc = typename F::Acc;
  const T* const x = static_cast<const T*>(u.data) + begin;
  T* const y = static_cast<T*>(u.out) + begin;
  const int64_t m = end - begin;
  const Stepper<F, T> step;
  if constexpr (std::is_same_v<Acc, T>) {
    for (int64_t s = 0; s < u.count; ++s) std::fill_n(y + s * u.width, m, F::Neutral());
    for (const auto [begin, end] : CancellableBlocks(u.rows)) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t s = IdOf(u.ids, r);
        if (s < 0) continue;
        step.Run(y + s * u.width, x + r * u.width, m);
      }
    }
  } else {
    std::vector<Acc> acc(u.count * m, F::Neutral());
    for (const auto [begin, end] : CancellableBlocks(u.rows)) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t s = IdOf(u.ids, r);
        if (s < 0) continue;
        step.Run(acc.data() + s * m, x + r * u.width, m);
      }
    }
    for (const auto [begin, end] : CancellableBlocks(u.count)) {
      for (int64_t s = begin; s < end; ++s) {
        for (int64_t i = 0; i < m; ++i) y[s * u.width + i] = static_cast<T>(acc[s * m + i]);
      }
    }
  }
}

absl::Status RunUnsorted(KernelContext& c, CombineColumns combine) {
  const Tensor &data = c.input(0), &ids = c.input(1), &num = c.input(2);
  if (num.rank() != 0)
    return InvalidArgument("num_segments should be a scalar, not shape ", num.shape().ToString());
  const int64_t count = num.IntAt(0);
  if (count < 0) return InvalidArgument("num_segments must be non-negative, but got: ", count);
  if (ids.rank() > data.rank() || data.shape().Sub(0, ids.rank()) != ids.shape()) {
    return InvalidArgument("data.shape = ", data.shape().ToString(),
                           " does not start with segment_ids.shape = ", ids.shape().ToString());
  }
  const int64_t rows = ids.num_elements(), width = WidthOf(data.shape(), ids.rank());
  for (const auto [begin, end] : CancellableBlocks(rows)) {
    for (int64_t i = begin; i < end; ++i) {
      if (IdOf(ids, i) >= count) {
        return InvalidArgument("segment_ids", PositionText(ids.shape(), i), " = ", IdOf(ids, i),
                               " is out of range [0, ", count, ")");
      }
    }
  }
  WEIR_ASSIGN_OR_RETURN(Tensor* const out,
                        c.AllocateOutput(0, RowsShape(data.shape(), count, ids.rank())));
  const UnsortedRows all{data.raw(), out->raw(), rows, width, count, ids};
  c.pool().ParallelFor(
      width, static_cast<double>(rows + count),
      [&](int64_t begin, int64_t end) { combine(all, begin, end); },
      MinColumnsPerPiece(width, c.pool().num_threads(), /*least=*/16));
  return absl::OkStatus();
}

template <template <class> class F, class... Ts>
void AddUnsorted(KernelRegistry* r, const char* op, List<Ts...>) {
  const auto make = [](CombineColumns combine) -> KernelFactory {
    return [=](const KernelInit&) -> absl::StatusOr<Kernel> {
      return Kernel([=](KernelContext& c) { return RunUnsorted(c, combine); });
    };
  };
  (r->Add(op, kCpu, DataTypeOf<Ts>::value, make(CombineUnsorted<F<Ts>, Ts>))
       .HostArgs({"num_segments"}),
   ...);
}

// ---- SparseSegmentSum and similar ops

// Returns the number of segments, which input 3 holds if present.
absl::StatusOr<int64_t> ReadCount(const KernelContext& c, const Tensor& ids) {
  if (c.num_inputs() < 4) {
    const int64_t limit = c.input(1).dtype() == DT_INT32 ? INT32_MAX : INT64_MAX;
    const int64_t rows = ids.num_elements();
    if (rows > 0 && IdOf(ids, rows - 1) >= limit) {
      return InvalidArgument("Last segment id must be < kintmax, got ", IdOf(ids, rows - 1),
                             " limit ", limit);
    }
    return CountSegments(ids);
  }
  if (c.input(3).rank() != 0) {
    return InvalidArgument("num_segments should be a scalar, not shape ",
                           c.input(3).shape().ToString());
  }
  const int64_t count = c.input(3).IntAt(0), n = ids.num_elements();
  if (count < 0) return InvalidArgument("num_segments must be non-negative, but got: ", count);
  if (n > 0 && IdOf(ids, n - 1) >= count) {
    return InvalidArgument("segment ids must be < num_segments, but the last is ", IdOf(ids, n - 1),
                           " and num_segments ", count);
  }
  return count;
}

absl::Status RunSparse(KernelContext& c, Combine combine) {
  const Tensor &data = c.input(0), &indices = c.input(1), &ids = c.input(2);
  WEIR_RETURN_IF_ERROR(CheckSparseSegments(data, indices, ids));
  const int64_t n = ids.num_elements();
  WEIR_ASSIGN_OR_RETURN(const int64_t count, ReadCount(c, ids));
  // The output is allocated first, because the ids may require so much memory that no index is
  // valid.
  WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape(RowsShape(data.shape(), count).dims()));
  std::vector<int64_t> places(n);
  for (const auto [begin, end] : CancellableBlocks(n)) {
    for (int64_t i = begin; i < end; ++i) {
      places[i] = IdOf(indices, i);
      if (places[i] < 0 || places[i] >= data.dim(0)) {
        return InvalidArgument("Bad: indices[", i, "] == ", places[i], " out of range [0, ",
                               data.dim(0), ")");
      }
    }
  }
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, shape));
  if (out->num_elements() == 0) return CheckSorted(ids, count);
  return CombineSegments(c, ids, count, places.data(), combine, 0, out);
}

template <template <class> class F, class... Ts>
void AddSparse(KernelRegistry* r, const std::string& op, List<Ts...>) {
  const auto make = [](Combine combine) -> KernelFactory {
    return [=](const KernelInit&) -> absl::StatusOr<Kernel> {
      return Kernel([=](KernelContext& c) { return RunSparse(c, combine); });
    };
  };
  for (const char* suffix : {"", "WithNumSegments"}) {
    (r->Add(op + suffix, kCpu, DataTypeOf<Ts>::value, make(CombineRows<F<Ts>, Ts>))
         .HostArgs({"num_segments"}),
     ...);
  }
}

}  // namespace

void AddSegmentCpu(KernelRegistry* r) {
  AddSegments<SumRows>(r, "SegmentSum", 0, Numbers{});
  AddSegments<MeanRows>(r, "SegmentMean", 0, Numbers{});
  AddSegments<ProdRows>(r, "SegmentProd", 1, Numbers{});
  AddSegments<MaxRows>(r, "SegmentMax", 0, RealNumbers{});
  AddSegments<MinRows>(r, "SegmentMin", 0, RealNumbers{});
  AddUnsorted<SumRows>(r, "UnsortedSegmentSum", Numbers{});
  AddUnsorted<ProdRows>(r, "UnsortedSegmentProd", Numbers{});
  AddUnsorted<MaxRows>(r, "UnsortedSegmentMax", RealNumbers{});
  AddUnsorted<MinRows>(r, "UnsortedSegmentMin", RealNumbers{});
  AddSparse<SumRows>(r, "SparseSegmentSum", RealNumbers{});
  AddSparse<MeanRows>(r, "SparseSegmentMean", Floats{});
  AddSparse<SqrtNRows>(r, "SparseSegmentSqrtN", Floats{});
  AddSparseSegmentGradCpu(r);
}

}  // namespace weir
