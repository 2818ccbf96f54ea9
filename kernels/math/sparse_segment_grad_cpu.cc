#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>
#include <vector>

#include "weir/kernels/lib/blocks.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/scalar_math.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/kernels/math/row_steps.h"
#include "weir/kernels/math/segments.h"

// The gradients of SparseSegmentSum and similar ops: row ids[i] of the gradient, divided as in the
// forward op, is added to row indices[i] of the result. The first version of the ops has a row for
// each row of the gathered table. The second version has only the rows that occur in `indices`, in
// increasing order, and returns their numbers.
namespace weir {

namespace {

enum class Scale { kNone, kMean, kSqrtN };

std::vector<int64_t> ToVector(const Tensor& t) {
  const int64_t n = t.num_elements();
  if (t.dtype() == DT_INT32) return {t.data<int32_t>(), t.data<int32_t>() + n};
  return {t.data<int64_t>(), t.data<int64_t>() + n};
}

// Replaces each row number by its rank among those that occur, and returns those, in order.
//
// Where a table has few rows for each number, ranks are found in a bitmap of the rows, with the
// number of ones before each of its words: linear in both, without the mispredicted branches of
// sorting and searching. For larger tables, clearing the bitmap takes longer, and it too much
// memory.
class RankedRows {
 public:
  static bool Pays(int64_t num_numbers, int64_t table_rows) {
    constexpr int64_t kMostRowsPerNumber = 1024, kMostRows = int64_t{1} << 26;
    return table_rows <= std::min(kMostRowsPerNumber * num_numbers, kMostRows);
  }

  RankedRows(const std::vector<int64_t>& numbers, int64_t table_rows)
      : words_(static_cast<size_t>(table_rows / 64 + 1)) {
    for (const auto [begin, end] : CancellableBlocks(Size(numbers))) {
      for (int64_t i = begin; i < end; ++i) words_[numbers[i] / 64].bits |= Bit(numbers[i]);
    }
    for (const auto [begin, end] : CancellableBlocks(Size(words_))) {
      for (int64_t i = begin; i < end; ++i) {
        words_[i].before = count_;
        if (words_[i].bits != 0) count_ += std::popcount(words_[i].bits);
      }
    }
  }

  std::vector<int64_t> List() const {
    std::vector<int64_t> list;
    list.reserve(static_cast<size_t>(count_));
    for (const auto [begin, end] : CancellableBlocks(Size(words_))) {
      for (int64_t i = begin; i < end; ++i) {
        for (uint64_t bits = words_[i].bits; bits != 0; bits &= bits - 1)
          list.push_back(i * 64 + std::countr_zero(bits));
      }
    }
    return list;
  }

  int64_t RankOf(int64_t number) const {
    const Word& word = words_[number / 64];
    return word.before + std::popcount(word.bits & (Bit(number) - 1));
  }

 private:
  struct Word {
    uint64_t bits = 0;
    int64_t before = 0;
  };
  template <class T>
  static int64_t Size(const std::vector<T>& v) {
    return static_cast<int64_t>(v.size());
  }
  static uint64_t Bit(int64_t number) { return uint64_t{1} << (number % 64); }

  std::vector<Word> words_;
  int64_t count_ = 0;
};

std::vector<int64_t> ReplaceByRanks(std::vector<int64_t>* numbers, int64_t table_rows) {
  const int64_t n = static_cast<int64_t>(numbers->size());
  if (RankedRows::Pays(n, table_rows)) {
    const RankedRows ranked(*numbers, table_rows);
    for (int64_t& number : *numbers) number = ranked.RankOf(number);
    return ranked.List();
  }
  std::vector<int64_t> present = *numbers;
  SortCancellably(n, std::less<>(),
                  [&](const auto& less) { std::sort(present.begin(), present.end(), less); });
  present.erase(std::unique(present.begin(), present.end()), present.end());
  for (const auto [begin, end] : CancellableBlocks(n)) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t& number = (*numbers)[i];
      number = std::lower_bound(present.begin(), present.end(), number) - present.begin();
    }
  }
  return present;
}

// The destinations of the gradient's rows: row i of the list goes to places[i] of `rows` rows.
struct Scattered {
  int64_t rows = 0;
  std::vector<int64_t> places;
};

absl::StatusOr<Scattered> ScatterRows(KernelContext& c, const Tensor& indices, int64_t rows,
                                      bool only_present) {
  Scattered out{.rows = rows, .places = ToVector(indices)};
  for (const int64_t place : out.places) {
    if (place < 0 || place >= rows)
      return InvalidArgument("Index ", place, " out of range [0, ", rows, ").");
  }
  if (!only_present) return out;
  const std::vector<int64_t> present = ReplaceByRanks(&out.places, rows);
  out.rows = static_cast<int64_t>(present.size());
  WEIR_ASSIGN_OR_RETURN(Tensor* const which, c.AllocateOutput(1, Shape({out.rows})));
  if (which->dtype() == DT_INT32) {
    std::copy(present.begin(), present.end(), which->data<int32_t>());
  } else {
    std::copy(present.begin(), present.end(), which->data<int64_t>());
  }
  return out;
}

// Returns the factor of each segment's row.
absl::StatusOr<std::vector<double>> Factors(const std::vector<int64_t>& ids, int64_t segments,
                                            Scale scale) {
  std::vector<double> factors(static_cast<size_t>(segments), 0);
  for (const int64_t s : ids) {
    if (s < 0 || s >= segments)
      return InvalidArgument("Segment id ", s, " out of range [0, ", segments, ").");
    ++factors[s];
  }
  for (double& size : factors) {
    size = scale == Scale::kNone ? 1 : scale == Scale::kMean ? 1 / size : 1 / std::sqrt(size);
  }
  return factors;
}

// Adds rows of T to sums of type Wide<T>.
template <class T>
class RowAdder {
 public:
  using Acc = Wide<T>;
  explicit RowAdder(int64_t width) : width_(width), scaled_(static_cast<size_t>(width)) {}

  void Add(const T* x, double factor, Acc* sums) {
    if constexpr (kDirect) {
      if (factor == 1) return Add(x, sums);
    }
    for (int64_t j = 0; j < width_; ++j)
      scaled_[j] = static_cast<Acc>(factor) * static_cast<Acc>(x[j]);
    Add(scaled_.data(), sums);
  }

 private:
  static constexpr bool kDirect = std::is_same_v<Acc, T>;
  static constexpr int64_t kLong = 8;

  void Add(const Acc* x, Acc* sums) const {
    if (vectors_ != nullptr && width_ >= kLong) return vectors_(sums, x, width_);
    for (int64_t j = 0; j < width_; ++j) sums[j] += x[j];
  }

  const int64_t width_;
  const RowStep vectors_ = FindRowStep(RowStepOp::kAdd, DataTypeOf<Acc>::value);
  std::vector<Acc> scaled_;
};

template <class T>
absl::Status RunSparseGrad(KernelContext& c, Scale scale) {
  using Acc = Wide<T>;
  const Tensor &grad = c.input(0), &indices = c.input(1);
  WEIR_RETURN_IF_ERROR(CheckSparseSegments(grad, indices, c.input(2)));
  if (c.input(3).rank() != 0) return InvalidArgument("output_dim0 should be a scalar");
  const std::vector<int64_t> ids = ToVector(c.input(2));
  const int64_t dense_rows = c.input(3).IntAt(0), segments = grad.dim(0);
  if (dense_rows < 0)
    return InvalidArgument("output_dim0 must be non-negative, but got ", dense_rows);
  if (!ids.empty() && ids.back() >= segments) {
    return InvalidArgument("Invalid number of segments: the last segment id is ", ids.back(),
                           ", but the gradient has ", segments, " rows");
  }
  WEIR_ASSIGN_OR_RETURN(const std::vector<double> factors, Factors(ids, segments, scale));
  WEIR_ASSIGN_OR_RETURN(const Scattered scattered,
                        ScatterRows(c, indices, dense_rows, c.num_outputs() == 2));
  WEIR_ASSIGN_OR_RETURN(Tensor* const out,
                        c.AllocateOutput(0, RowsShape(grad.shape(), scattered.rows)));
  ClearElements(c.pool(), *out);
  if (ids.empty() || out->num_elements() == 0) return absl::OkStatus();
  // Sums are in the output itself, or in a buffer of a wider type.
  constexpr bool kDirect = std::is_same_v<Acc, T>;
  const int64_t width = WidthOf(grad.shape(), 1);
  std::vector<Acc> buffer(kDirect ? 0 : scattered.rows * width, Acc(0));
  Acc* sums = buffer.data();
  if constexpr (kDirect) sums = out->data<T>();
  RowAdder<T> adder(width);
  for (const auto [begin, end] : CancellableBlocks(static_cast<int64_t>(ids.size()))) {
    for (int64_t i = begin; i < end; ++i) {
      adder.Add(grad.data<T>() + ids[i] * width, factors[ids[i]],
                sums + scattered.places[i] * width);
    }
  }
  if constexpr (!kDirect) {
    T* const y = out->data<T>();
    for (size_t i = 0; i < buffer.size(); ++i) y[i] = static_cast<T>(buffer[i]);
  }
  return absl::OkStatus();
}

template <class... Ts>
void AddSparseGrad(KernelRegistry* r, const std::string& op, Scale scale, List<Ts...>) {
  const auto make = []<class T>(Scale s) -> KernelFactory {
    return [s](const KernelInit&) -> absl::StatusOr<Kernel> {
      return Kernel([s](KernelContext& c) { return RunSparseGrad<T>(c, s); });
    };
  };
  (r->Add(op, kCpu, DataTypeOf<Ts>::value, make.template operator()<Ts>(scale))
       .HostArgs({"output_dim0"}),
   ...);
  (r->Add(op + "V2", kCpu, DataTypeOf<Ts>::value, make.template operator()<Ts>(scale))
       .HostArgs({"dense_output_dim0"}),
   ...);
}

}  // namespace

absl::Status CheckSparseSegments(const Tensor& data, const Tensor& indices, const Tensor& ids) {
  if (indices.rank() != 1)
    return InvalidArgument("indices should be a vector, but has shape ",
                           indices.shape().ToString());
  if (ids.rank() != 1)
    return InvalidArgument("segment_ids should be a vector, but has shape ",
                           ids.shape().ToString());
  if (indices.dim(0) != ids.dim(0)) {
    return InvalidArgument("segment_ids and indices should have same size, but have ", ids.dim(0),
                           " and ", indices.dim(0));
  }
  if (data.rank() < 1) return InvalidArgument("data must be at least rank 1");
  return absl::OkStatus();
}

void AddSparseSegmentGradCpu(KernelRegistry* r) {
  AddSparseGrad(r, "SparseSegmentSumGrad", Scale::kNone, Floats{});
  AddSparseGrad(r, "SparseSegmentMeanGrad", Scale::kMean, Floats{});
  AddSparseGrad(r, "SparseSegmentSqrtNGrad", Scale::kSqrtN, Floats{});
}

}  // namespace weir
