#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/scalar_math.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/kernels/sparse/ragged.h"
#include "weir/kernels/sparse/sparse_kernels.h"

// Ragged tensors: rows of different lengths, stored consecutively in one tensor of values, and
// splits: the positions where the rows begin. Splits of splits make further ragged dimensions.
namespace weir {

namespace {

// ---- RaggedTensorToSparse

// Reads the splits of each ragged dimension, outermost first. Returns INVALID_ARGUMENT unless they
// ascend from 0 to the number of rows of the next dimension.
absl::StatusOr<std::vector<Dims>> ReadSplits(const KernelContext& c, int n, const Tensor& values) {
  std::vector<Dims> splits;
  for (int k = 0; k < n; ++k) {
    const Dims& s = splits.emplace_back(ReadInts(c.input(k)));
    if (s.empty()) return InvalidArgument("ragged splits may not be empty.");
    if (s[0] != 0) return InvalidArgument("First value of ragged splits must be 0.");
    for (size_t i = 1; i < s.size(); ++i) {
      if (s[i] >= s[i - 1]) continue;
      return InvalidArgument("Ragged splits should be non decreasing, but we got ", s[i - 1],
                             " followed by ", s[i]);
    }
  }
  for (int k = 0; k < n; ++k) {
    const int64_t rows = k + 1 < n           ? static_cast<int64_t>(splits[k + 1].size()) - 1
                         : values.rank() > 0 ? values.dim(0)
                                             : -1;
    if (splits[k].back() == rows) continue;
    return InvalidArgument(
        "Final value of ragged splits must match the length the corresponding ragged values.");
  }
  return splits;
}

// Returns the shape of the smallest dense tensor that contains all rows.
Dims DenseDims(const std::vector<Dims>& splits, const Tensor& values) {
  Dims dims = {static_cast<int64_t>(splits[0].size()) - 1};
  for (const Dims& s : splits) {
    int64_t longest = 0;
    for (size_t i = 1; i < s.size(); ++i) longest = std::max(longest, s[i] - s[i - 1]);
    dims.push_back(longest);
  }
  for (int d = 1; d < values.rank(); ++d) dims.push_back(values.dim(d));
  return dims;
}

absl::Status ToSparse(KernelContext& c) {
  const int n = c.num_inputs() - 1;
  const Tensor& values = c.input(n);
  WEIR_ASSIGN_OR_RETURN(const std::vector<Dims> splits, ReadSplits(c, n, values));
  const Dims dims = DenseDims(splits, values);
  const int64_t rank = static_cast<int64_t>(dims.size()), count = values.num_elements();
  const int64_t width = values.shape().Sub(1).num_elements();
  WEIR_ASSIGN_OR_RETURN(Tensor* const indices, c.AllocateOutput(0, Shape({count, rank})));
  WEIR_RETURN_IF_ERROR(OutputInts(c, 2, dims));
  c.SetOutput(1, values.Reshaped(Shape({count})));
  std::vector<size_t> row(n, 0);  // the element's row in each ragged dimension
  int64_t* to = indices->data<int64_t>();
  for (int64_t at = 0; at < count / std::max<int64_t>(width, 1); ++at) {
    ThrowIfCancelledAt(at);
    int64_t place = at;
    Dims index(n + 1);
    for (int k = n - 1; k >= 0; --k) {
      while (splits[k][row[k] + 1] <= place) ++row[k];
      index[k + 1] = place - splits[k][row[k]];
      place = static_cast<int64_t>(row[k]);
    }
    index[0] = place;
    for (int64_t inner = 0; inner < width; ++inner, to += rank) {
      std::copy(index.begin(), index.end(), to);
      int64_t rest = inner;
      for (int64_t d = rank - 1; d > n; --d) {
        to[d] = rest % dims[d];
        rest /= dims[d];
      }
    }
  }
  return absl::OkStatus();
}

// ---- RaggedRange

template <class T>
absl::StatusOr<int64_t> RangeSize(T start, T limit, T delta) {
  if (delta == T(0)) return InvalidArgument("Requires delta != 0");
  if ((delta > T(0) && limit < start) || (delta < T(0) && limit > start)) return 0;
  if constexpr (std::is_integral_v<T>) {
    // The difference of two numbers may overflow their type, but never the unsigned type.
    const bool up = delta > 0;
    const uint64_t distance = up ? static_cast<uint64_t>(limit) - static_cast<uint64_t>(start)
                                 : static_cast<uint64_t>(start) - static_cast<uint64_t>(limit);
    const uint64_t step = up ? static_cast<uint64_t>(delta) : 0 - static_cast<uint64_t>(delta);
    const uint64_t size = distance / step + (distance % step != 0 ? 1 : 0);
    if (size <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return static_cast<int64_t>(size);
  } else {
    // Computes each step in the type itself, as TensorFlow does.
    const T distance = static_cast<T>(Wide<T>(limit) - Wide<T>(start));
    const double size = std::ceil(
        std::abs(static_cast<double>(static_cast<T>(Wide<T>(distance) / Wide<T>(delta)))));
    if (size < static_cast<double>(std::numeric_limits<int64_t>::max()))
      return static_cast<int64_t>(size);
  }
  return InvalidArgument("Requires ((limit - start) / delta) <= ",
                         std::numeric_limits<int64_t>::max());
}

// Returns the number of ranges that the arguments describe; scalars are broadcast to all of them.
absl::StatusOr<int64_t> CountRanges(const KernelContext& c) {
  constexpr const char* kNames[] = {"starts", "limits", "deltas"};
  std::optional<int64_t> rows;
  for (int k = 0; k < 3; ++k) {
    const Tensor& t = c.input(k);
    if (t.rank() > 1) return InvalidArgument(kNames[k], " must be a scalar or vector");
    if (t.rank() == 0) continue;
    if (rows.value_or(t.dim(0)) != t.dim(0))
      return InvalidArgument("starts, limits, and deltas must have the same shape");
    rows = t.dim(0);
  }
  return rows.value_or(1);
}

template <class T, class S>
absl::Status Range(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const int64_t rows, CountRanges(c));
  const auto argument = [&c](int k, int64_t row) {
    return c.input_data<T>(k)[c.input(k).rank() == 0 ? 0 : row];
  };
  WEIR_ASSIGN_OR_RETURN(Tensor* const splits, c.AllocateOutput(0, Shape({rows + 1})));
  S* const ends = splits->data<S>();
  int64_t total = ends[0] = 0;
  for (int64_t r = 0; r < rows; ++r) {
    ThrowIfCancelledAt(r);
    WEIR_ASSIGN_OR_RETURN(const int64_t size,
                          RangeSize(argument(0, r), argument(1, r), argument(2, r)));
    if (__builtin_add_overflow(total, size, &total) || total > std::numeric_limits<S>::max()) {
      return InvalidArgument(
          "The total range size overflowed. Consider using int64 instead of int32 for "
          "row_splits_dtype.");
    }
    ends[r + 1] = static_cast<S>(total);
  }
  WEIR_ASSIGN_OR_RETURN(Tensor* const values, c.AllocateOutput(1, Shape({total})));
  T* to = values->data<T>();
  for (int64_t r = 0; r < rows; ++r) {
    ThrowIfCancelledAt(r);
    Wide<T> value = argument(0, r);
    const Wide<T> delta = argument(2, r);
    for (S i = ends[r]; i < ends[r + 1]; ++i) {
      *to++ = static_cast<T>(value);
      value = ScalarMath<Wide<T>>::Add(static_cast<Wide<T>>(static_cast<T>(value)), delta);
    }
  }
  return absl::OkStatus();
}

template <class... Ts>
void AddRanges(KernelRegistry* r, List<Ts...>) {
  (r->Add("RaggedRange", kCpu, {{"T", DataTypeOf<Ts>::value}, {"Tsplits", DT_INT32}},
          Range<Ts, int32_t>),
   ...);
  (r->Add("RaggedRange", kCpu, {{"T", DataTypeOf<Ts>::value}, {"Tsplits", DT_INT64}},
          Range<Ts, int64_t>),
   ...);
}

// ---- RaggedGather

// Checks that no row is out of range: there are splits, sorted, non-negative and at most `rows`.
absl::Status CheckSplits(const Dims& splits, int64_t rows) {
  if (splits.empty()) return InvalidArgument("Ragged splits may not be empty");
  for (size_t i = 0; i < splits.size(); ++i) {
    if (i > 0 && splits[i] < splits[i - 1]) return InvalidArgument("Ragged splits must be sorted");
    if (splits[i] < 0) return InvalidArgument("Ragged splits must be non-negative");
    if (splits[i] > rows) return InvalidArgument("Ragged splits must not point past values");
  }
  return absl::OkStatus();
}

struct Rows {
  int64_t begin, end;
};

// Writes the splits of the concatenation of these runs of rows to output i.
absl::Status OutputRunSplits(KernelContext& c, int i, const Dims& splits,
                             const std::vector<Rows>& runs) {
  int64_t count = 1, end = 0;
  for (const Rows& run : runs) count += run.end - run.begin;
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(i, Shape({count})));
  out->SetIntAt(0, 0);
  int64_t at = 1;
  for (const Rows& run : runs) {
    for (int64_t r = run.begin; r < run.end; ++r) {
      end += splits[r + 1] - splits[r];
      out->SetIntAt(at++, end);
    }
  }
  return absl::OkStatus();
}

// Reads the splits of RaggedGather's params. Returns INVALID_ARGUMENT if a row is out of range.
absl::StatusOr<std::vector<Dims>> ReadParams(const KernelContext& c, int ragged) {
  const Tensor& values = c.input(ragged);
  if (values.rank() == 0) return InvalidArgument("params.rank must be nonzero");
  std::vector<Dims> splits;
  for (int k = 0; k < ragged; ++k) {
    if (c.input(k).rank() == 0) return InvalidArgument("Split tensors must not be scalars");
    splits.push_back(ReadInts(c.input(k)));
  }
  for (int k = 0; k < ragged; ++k) {
    const int64_t rows =
        k + 1 < ragged ? static_cast<int64_t>(splits[k + 1].size()) - 1 : values.dim(0);
    WEIR_RETURN_IF_ERROR(CheckSplits(splits[k], rows));
  }
  return splits;
}

// Reads the rows to gather; indices are less than `limit`. The dimensions of the indices except the
// last become regular row splits.
absl::StatusOr<std::vector<Rows>> ReadIndices(KernelContext& c, const Tensor& indices,
                                              int64_t limit) {
  int64_t rows = 1;
  for (int d = 0; d + 1 < indices.rank(); ++d) {
    rows *= indices.dim(d);
    WEIR_ASSIGN_OR_RETURN(Tensor* const regular, c.AllocateOutput(d, Shape({rows + 1})));
    for (int64_t i = 0; i <= rows; ++i) regular->SetIntAt(i, i * indices.dim(d + 1));
  }
  std::vector<Rows> runs;
  for (const int64_t i : ReadInts(indices)) {
    if (i < 0 || i >= limit)
      return InvalidArgument("indices[", runs.size(), "] = ", i, " is not in [0, ", limit, ")");
    runs.push_back({i, i + 1});
  }
  return runs;
}

// Writes the concatenation of these runs of rows of the values to output i.
absl::Status OutputRuns(KernelContext& c, int i, const Tensor& values,
                        const std::vector<Rows>& runs) {
  Shape shape = values.shape();
  int64_t total = 0;
  for (const Rows& run : runs) total += run.end - run.begin;
  shape.set_dim(0, total);
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(i, shape));
  const int64_t width = values.shape().Sub(1).num_elements();
  int64_t at = 0;
  for (const Rows& run : runs) {
    const int64_t n = (run.end - run.begin) * width;
    CopyElements(values.dtype(), ElementAt(values, run.begin * width), ElementAt(*out, at), n);
    at += n;
  }
  return absl::OkStatus();
}

// Gathers the rows that the indices name. They become rows of the next dimension, and so on down to
// the values.
absl::Status Gather(KernelContext& c) {
  const int ragged = c.num_inputs() - 2, last = c.num_outputs() - 1;
  const Tensor& indices = c.input(ragged + 1);
  WEIR_ASSIGN_OR_RETURN(const std::vector<Dims> splits, ReadParams(c, ragged));
  if (last != ragged + indices.rank() - 1) {
    return InvalidArgument("OUTPUT_RAGGED_RANK must be PARAMS_RAGGED_RANK + indices.rank - 1, ",
                           ragged + indices.rank() - 1, ", but is ", last);
  }
  WEIR_ASSIGN_OR_RETURN(std::vector<Rows> runs,
                        ReadIndices(c, indices, static_cast<int64_t>(splits[0].size()) - 1));
  const int first = indices.rank() - 1;  // -1: a scalar index removes the outermost dimension
  for (int k = 0; k < ragged; ++k) {
    if (first + k >= 0) WEIR_RETURN_IF_ERROR(OutputRunSplits(c, first + k, splits[k], runs));
    for (Rows& run : runs) run = {splits[k][run.begin], splits[k][run.end]};
  }
  return OutputRuns(c, last, c.input(ragged), runs);
}

}  // namespace

void AddRaggedKernels(KernelRegistry* r) {
  r->Add("RaggedTensorToSparse", kCpu, ToSparse);
  r->Add("RaggedGather", kCpu, Gather);
  AddRanges(r, List<bfloat16, float, double, int32_t, int64_t>{});
  AddRaggedCrossCpu(r);
  AddRaggedToTensorCpu(r);
  AddRaggedVariantKernels(r);
}

}  // namespace weir
