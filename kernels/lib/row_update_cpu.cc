#include "weir/kernels/lib/row_update.h"

#include <algorithm>
#include <complex>
#include <cstring>
#include <limits>

#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/scalar_math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/lib/row_update_cpu.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

// The types with long and hot rows; they are vectorized.
HWY_BEFORE_NAMESPACE();
namespace weir {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class V>
V Combine(RowOp op, V a, V b) {
  switch (op) {
    case RowOp::kAdd:
      return hn::Add(a, b);
    case RowOp::kSub:
      return hn::Sub(a, b);
    case RowOp::kMul:
      return hn::Mul(a, b);
    case RowOp::kDiv:
      return hn::Div(a, b);
    case RowOp::kMin:
      return hn::Min(a, b);
    case RowOp::kMax:
      return hn::Max(a, b);
    case RowOp::kUpdate:
      return b;
  }
  return b;
}

template <RowOp kOp, class T>
void VectorRow(T* to, const T* from, int64_t n, bool from_scalar) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> d1;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto scalar = hn::Set(d, from[0]);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(Combine(kOp, hn::LoadU(d, to + i), from_scalar ? scalar : hn::LoadU(d, from + i)), d,
               to + i);
  }
  for (; i < n; ++i) {
    hn::StoreU(Combine(kOp, hn::LoadU(d1, to + i), hn::Set(d1, from_scalar ? from[0] : from[i])),
               d1, to + i);
  }
}

template <class T>
void FloatRow(RowOp op, T* to, const T* from, int64_t n, bool from_scalar) {
  switch (op) {
    case RowOp::kAdd:
      return VectorRow<RowOp::kAdd>(to, from, n, from_scalar);
    case RowOp::kSub:
      return VectorRow<RowOp::kSub>(to, from, n, from_scalar);
    case RowOp::kMul:
      return VectorRow<RowOp::kMul>(to, from, n, from_scalar);
    case RowOp::kDiv:
      return VectorRow<RowOp::kDiv>(to, from, n, from_scalar);
    case RowOp::kMin:
      return VectorRow<RowOp::kMin>(to, from, n, from_scalar);
    case RowOp::kMax:
      return VectorRow<RowOp::kMax>(to, from, n, from_scalar);
    case RowOp::kUpdate:
      return;
  }
}

void Float32Row(RowOp op, float* to, const float* from, int64_t n, bool s) {
  FloatRow(op, to, from, n, s);
}
void Float64Row(RowOp op, double* to, const double* from, int64_t n, bool s) {
  FloatRow(op, to, from, n, s);
}

}  // namespace HWY_NAMESPACE
}  // namespace weir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {

HWY_EXPORT(Float32Row);
HWY_EXPORT(Float64Row);

namespace {

template <class T>
inline constexpr bool kIsComplex = false;
template <class T>
inline constexpr bool kIsComplex<std::complex<T>> = true;

// Signed integers wrap around, as in TensorFlow's compiled code, but without undefined behavior.
template <RowOp kOp, class T>
T Apply(T a, T b) {
  if constexpr (kOp == RowOp::kMin || kOp == RowOp::kMax) {
    if constexpr (kIsComplex<T>) {
      return a;
    } else {
      return kOp == RowOp::kMin ? (b < a ? b : a) : (a < b ? b : a);
    }
  } else if constexpr (std::is_integral_v<T> && kOp == RowOp::kDiv) {
    return b == 0 ? T{0} : ScalarMath<T>::Div(a, b);
  } else {
    return kOp == RowOp::kAdd   ? ScalarMath<T>::Add(a, b)
           : kOp == RowOp::kSub ? ScalarMath<T>::Sub(a, b)
           : kOp == RowOp::kMul ? ScalarMath<T>::Mul(a, b)
                                : ScalarMath<T>::Div(a, b);
  }
}

template <RowOp kOp, class T>
void PlainRow(T* to, const T* from, int64_t n, bool from_scalar) {
  for (int64_t i = 0; i < n; ++i) to[i] = Apply<kOp, T>(to[i], from[from_scalar ? 0 : i]);
}

template <class T>
void NumberRow(RowOp op, T* to, const T* from, int64_t n, bool from_scalar) {
  switch (op) {
    case RowOp::kAdd:
      return PlainRow<RowOp::kAdd>(to, from, n, from_scalar);
    case RowOp::kSub:
      return PlainRow<RowOp::kSub>(to, from, n, from_scalar);
    case RowOp::kMul:
      return PlainRow<RowOp::kMul>(to, from, n, from_scalar);
    case RowOp::kDiv:
      return PlainRow<RowOp::kDiv>(to, from, n, from_scalar);
    case RowOp::kMin:
      return PlainRow<RowOp::kMin>(to, from, n, from_scalar);
    case RowOp::kMax:
      return PlainRow<RowOp::kMax>(to, from, n, from_scalar);
    case RowOp::kUpdate:
      return;
  }
}

void UpdateRow(DataType type, void* to, const void* from, int64_t n, bool from_scalar) {
  if (type == DT_STRING) {
    auto* t = static_cast<std::string*>(to);
    const auto* f = static_cast<const std::string*>(from);
    for (int64_t i = 0; i < n; ++i) t[i] = f[from_scalar ? 0 : i];
    return;
  }
  const size_t size = ElementSize(type);
  if (!from_scalar) {
    std::memmove(to, from, static_cast<size_t>(n) * size);
    return;
  }
  DispatchSize(
      size, [&]<class U>() { std::fill_n(static_cast<U*>(to), n, *static_cast<const U*>(from)); });
}

}  // namespace

bool RowOpSupports(RowOp op, DataType type) {
  if (op == RowOp::kUpdate) return type != DT_RESOURCE && type != DT_VARIANT && type != DT_INVALID;
  if (IsComplex(type)) return op != RowOp::kMin && op != RowOp::kMax;
  return IsFloating(type) || IsInteger(type);
}

void CombineRow(RowOp op, DataType type, void* to, const void* from, int64_t n, bool from_scalar) {
  if (n <= 0) return;
  if (op == RowOp::kUpdate) return UpdateRow(type, to, from, n, from_scalar);
  if (type == DT_FLOAT) {
    HWY_DYNAMIC_DISPATCH(Float32Row)
    (op, static_cast<float*>(to), static_cast<const float*>(from), n, from_scalar);
  } else if (type == DT_DOUBLE) {
    HWY_DYNAMIC_DISPATCH(Float64Row)
    (op, static_cast<double*>(to), static_cast<const double*>(from), n, from_scalar);
  } else {
    DispatchType(type, Numbers{}, [&]<class T>() {
      NumberRow(op, static_cast<T*>(to), static_cast<const T*>(from), n, from_scalar);
    });
  }
}

absl::Status CheckDivisor(RowOp op, const Tensor& divisor) {
  if (op != RowOp::kDiv || !IsInteger(divisor.dtype())) return absl::OkStatus();
  for (int64_t i = 0; i < divisor.num_elements(); ++i) {
    if (divisor.IntAt(i) == 0) return InvalidArgument("Integer division by zero");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> RowIndices(const Tensor& indices, int64_t num_rows) {
  const int64_t n = indices.num_elements();
  std::vector<int64_t> rows(static_cast<size_t>(n));
  if (indices.dtype() == DT_INT32) {
    std::copy_n(indices.data<int32_t>(), n, rows.begin());
  } else {
    std::copy_n(indices.data<int64_t>(), n, rows.begin());
  }
  for (int64_t i = 0; i < n; ++i) {
    if (rows[i] < 0 || rows[i] >= num_rows) {
      return InvalidArgument("indices", PositionText(indices.shape(), i), " = ", rows[i],
                             " is not in [0, ", num_rows, ")");
    }
  }
  return rows;
}

namespace {

// Each thread owns the rows of `to` whose number modulo the number of threads is its own, and
// combines them in index order. So no two threads write to one row, and repeated rows are combined
// in order. Every thread scans all indices, which is cheap compared to a row's arithmetic.
void CombineAt(ThreadPool& pool, RowOp op, Tensor* to, const std::vector<int64_t>& places,
               int64_t place_scale, int64_t width, const Tensor& from, bool from_scalar) {
  const size_t size = ElementSize(to->dtype());
  const auto combine = [&](size_t i) {
    char* target =
        static_cast<char*>(to->raw()) + static_cast<size_t>(places[i] * place_scale) * size;
    const char* source = static_cast<const char*>(from.raw());
    if (!from_scalar) source += i * static_cast<size_t>(width) * size;
    CombineRow(op, to->dtype(), target, source, width, from_scalar);
  };
  constexpr int64_t kWorthThreads = 1 << 16;  // elements
  const int threads = pool.num_threads();
  if (threads <= 1 || static_cast<int64_t>(places.size()) * width < kWorthThreads || width < 8) {
    for (size_t i = 0; i < places.size(); ++i) combine(i);
    return;
  }
  const int64_t place_width = place_scale == 1 ? std::max<int64_t>(width, 1) : 1;
  pool.ForEach(threads, [&](int t) {
    for (size_t i = 0; i < places.size(); ++i) {
      if (places[i] / place_width % threads == t) combine(i);
    }
  });
}

}  // namespace

void CombineRows(ThreadPool& pool, RowOp op, Tensor* to, const std::vector<int64_t>& rows,
                 int64_t width, const Tensor& from, bool from_scalar) {
  if (width == 0 || rows.empty()) return;
  CombineAt(pool, op, to, rows, width, width, from, from_scalar);
}

void CombineSlices(ThreadPool& pool, RowOp op, Tensor* to, const std::vector<int64_t>& offsets,
                   int64_t width, const Tensor& from) {
  if (width == 0 || offsets.empty()) return;
  CombineAt(pool, op, to, offsets, /*place_scale=*/1, width, from, /*from_scalar=*/false);
}

absl::StatusOr<Shape> SlicesShape(const Tensor& indices, const Shape& shape) {
  if (indices.rank() < 1) return InvalidArgument("indices must be at least a vector, got shape []");
  const int64_t depth = indices.dim(-1);
  if (depth > shape.rank()) {
    return InvalidArgument("The inner dimension of indices, ", depth,
                           ", must be <= the rank of the variable, ", shape.rank());
  }
  return indices.shape().Sub(0, -1).Concatenate(shape.Sub(static_cast<int>(depth)));
}

absl::StatusOr<std::vector<int64_t>> SliceOffsets(const Tensor& indices, const Shape& shape,
                                                  int64_t* width, bool ignore_bad) {
  const int64_t depth = indices.dim(-1);
  *width = 1;
  for (int i = static_cast<int>(depth); i < shape.rank(); ++i) *width *= shape.dim(i);
  if (*width == 0 && depth == 0) return std::vector<int64_t>();
  int64_t count = 1;
  for (int i = 0; i + 1 < indices.rank(); ++i) count *= indices.dim(i);
  std::vector<int64_t> offsets(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = 0;
    bool inside = true;
    for (int64_t k = 0; k < depth; ++k) {
      const int64_t at = indices.IntAt(i * depth + k);
      inside = inside && at >= 0 && at < shape.dim(static_cast<int>(k));
      if (inside) offset = offset * shape.dim(static_cast<int>(k)) + at;
    }
    if (!inside && !ignore_bad) {
      std::vector<int64_t> at;
      for (int64_t k = 0; k < depth; ++k) at.push_back(indices.IntAt(i * depth + k));
      return InvalidArgument("indices", PositionText(indices.shape().Sub(0, -1), i), " = [",
                             absl::StrJoin(at, ", "), "] does not index into shape ",
                             shape.ToString());
    }
    offsets[static_cast<size_t>(i)] = inside ? offset * *width : -1;
  }
  return offsets;
}

}  // namespace weir
#endif  // HWY_ONCE
