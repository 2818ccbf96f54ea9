#include "weir/kernels/nn/channel_ops.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/nn/channel_ops.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

// Column sums process blocks of columns whose accumulators stay in registers across the rows. Sums
// of long columns are accumulated in segments, so that small addends are not lost in large sums.
HWY_BEFORE_NAMESPACE();
namespace weir::channel_ops::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kStretch = 512;

template <class T>
using Tag = hn::ScalableTag<T>;
template <class T>
HWY_INLINE int64_t LanesOf() {
  return static_cast<int64_t>(hn::Lanes(Tag<T>()));
}

template <class T>
HWY_INLINE void AddRowT(const T* x, const T* bias, T* y, int64_t rows, int64_t cols) {
  const Tag<T> d;
  const int64_t lanes = LanesOf<T>();
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    int64_t c = 0;
    for (; c + lanes <= cols; c += lanes)
      hn::StoreU(hn::Add(hn::LoadU(d, x + c), hn::LoadU(d, bias + c)), d, y + c);
    for (; c < cols; ++c) y[c] = x[c] + bias[c];
  }
}
void AddRowF32(const float* x, const float* b, float* y, int64_t rows, int64_t cols) {
  AddRowT(x, b, y, rows, cols);
}
void AddRowF64(const double* x, const double* b, double* y, int64_t rows, int64_t cols) {
  AddRowT(x, b, y, rows, cols);
}

template <class T>
HWY_INLINE void AddStretch(const T* x, int64_t rows, int64_t cols, T* sums) {
  const Tag<T> d;
  const int64_t lanes = LanesOf<T>();
  int64_t c = 0;
  for (; c + 4 * lanes <= cols; c += 4 * lanes) {
    auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
    const T* p = x + c;
    for (int64_t r = 0; r < rows; ++r, p += cols) {
      s0 = hn::Add(s0, hn::LoadU(d, p));
      s1 = hn::Add(s1, hn::LoadU(d, p + lanes));
      s2 = hn::Add(s2, hn::LoadU(d, p + 2 * lanes));
      s3 = hn::Add(s3, hn::LoadU(d, p + 3 * lanes));
    }
    hn::StoreU(hn::Add(hn::LoadU(d, sums + c), s0), d, sums + c);
    hn::StoreU(hn::Add(hn::LoadU(d, sums + c + lanes), s1), d, sums + c + lanes);
    hn::StoreU(hn::Add(hn::LoadU(d, sums + c + 2 * lanes), s2), d, sums + c + 2 * lanes);
    hn::StoreU(hn::Add(hn::LoadU(d, sums + c + 3 * lanes), s3), d, sums + c + 3 * lanes);
  }
  for (; c + lanes <= cols; c += lanes) {
    auto s = hn::Zero(d);
    for (int64_t r = 0; r < rows; ++r) s = hn::Add(s, hn::LoadU(d, x + r * cols + c));
    hn::StoreU(hn::Add(hn::LoadU(d, sums + c), s), d, sums + c);
  }
  for (; c < cols; ++c) {
    T s = 0;
    for (int64_t r = 0; r < rows; ++r) s += x[r * cols + c];
    sums[c] += s;
  }
}

// Narrow rows are processed several at a time, as one row of several vectors.
template <class T>
HWY_INLINE void AddColumnsT(const T* x, int64_t rows, int64_t cols, T* sums) {
  constexpr int64_t kWide = 256;
  const int64_t fold = cols < 4 * LanesOf<T>() && cols > 0 ? kWide / cols : 1;
  if (fold > 1 && rows >= 2 * fold) {
    T wide[kWide] = {};
    const int64_t folded = rows / fold;
    for (int64_t r = 0; r < folded; r += kStretch) {
      AddStretch(x + r * fold * cols, std::min(kStretch, folded - r), fold * cols, wide);
    }
    for (int64_t i = 0; i < fold * cols; ++i) sums[i % cols] += wide[i];
    x += folded * fold * cols;
    rows -= folded * fold;
  }
  for (int64_t r = 0; r < rows; r += kStretch)
    AddStretch(x + r * cols, std::min(kStretch, rows - r), cols, sums);
}
void AddColumnsF32(const float* x, int64_t rows, int64_t cols, float* sums) {
  AddColumnsT(x, rows, cols, sums);
}
void AddColumnsF64(const double* x, int64_t rows, int64_t cols, double* sums) {
  AddColumnsT(x, rows, cols, sums);
}

template <class T>
HWY_INLINE double SumOfSquaresT(const T* x, int64_t n) {
  const Tag<T> d;
  const int64_t lanes = LanesOf<T>();
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += 8 * kStretch) {
    const int64_t end = std::min(n, begin + 8 * kStretch);
    auto s0 = hn::Zero(d), s1 = hn::Zero(d);
    int64_t i = begin;
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      const auto a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + i + lanes);
      s0 = hn::MulAdd(a, a, s0);
      s1 = hn::MulAdd(b, b, s1);
    }
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1))));
    for (; i < end; ++i) total += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  }
  return total;
}
double SumOfSquaresF32(const float* x, int64_t n) { return SumOfSquaresT(x, n); }
double SumOfSquaresF64(const double* x, int64_t n) { return SumOfSquaresT(x, n); }

// A single lane, for tails shorter than a vector.
using One = hn::CappedTag<float, 1>;

// Calls block(d, c) for the columns: full vectors first, then a tail loop over single elements.
template <class F>
HWY_INLINE void ForEachColumn(int64_t cols, F&& block) {
  const Tag<float> d;
  const int64_t lanes = LanesOf<float>();
  int64_t c = 0;
  for (; c + lanes <= cols; c += lanes) block(d, c);
  for (; c < cols; ++c) block(One(), c);
}

void AddMomentsF32(const float* x, const float* shift, int64_t rows, int64_t cols, float* sums,
                   float* squares) {
  for (int64_t begin = 0; begin < rows; begin += kStretch) {
    const int64_t count = std::min(kStretch, rows - begin);
    ForEachColumn(cols, [&](auto d, int64_t c) HWY_ATTR {
      const auto k = hn::LoadU(d, shift + c);
      auto s = hn::Zero(d), q = hn::Zero(d);
      const float* p = x + begin * cols + c;
      for (int64_t r = 0; r < count; ++r, p += cols) {
        const auto v = hn::Sub(hn::LoadU(d, p), k);
        s = hn::Add(s, v);
        q = hn::MulAdd(v, v, q);
      }
      hn::StoreU(hn::Add(hn::LoadU(d, sums + c), s), d, sums + c);
      hn::StoreU(hn::Add(hn::LoadU(d, squares + c), q), d, squares + c);
    });
  }
}

void AddProductsF32(const float* dy, const float* x, const float* mean, int64_t rows, int64_t cols,
                    float* sums, float* products) {
  for (int64_t begin = 0; begin < rows; begin += kStretch) {
    const int64_t count = std::min(kStretch, rows - begin);
    ForEachColumn(cols, [&](auto d, int64_t c) HWY_ATTR {
      const auto m = hn::LoadU(d, mean + c);
      auto s = hn::Zero(d), q = hn::Zero(d);
      int64_t at = begin * cols + c;
      for (int64_t r = 0; r < count; ++r, at += cols) {
        const auto g = hn::LoadU(d, dy + at);
        s = hn::Add(s, g);
        q = hn::MulAdd(g, hn::Sub(hn::LoadU(d, x + at), m), q);
      }
      hn::StoreU(hn::Add(hn::LoadU(d, sums + c), s), d, sums + c);
      hn::StoreU(hn::Add(hn::LoadU(d, products + c), q), d, products + c);
    });
  }
}

void ScaleRowsF32(const float* x, const float* factor, const float* term, float* y, int64_t rows,
                  int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, x += cols, y += cols) {
    ForEachColumn(cols, [&](auto d, int64_t c) HWY_ATTR {
      hn::StoreU(hn::MulAdd(hn::LoadU(d, x + c), hn::LoadU(d, factor + c), hn::LoadU(d, term + c)),
                 d, y + c);
    });
  }
}

void CombineRowsF32(const float* dy, const float* x, const float* a, const float* b, const float* t,
                    float* dx, int64_t rows, int64_t cols) {
  for (int64_t r = 0; r < rows; ++r, dy += cols, x += cols, dx += cols) {
    ForEachColumn(cols, [&](auto d, int64_t c) HWY_ATTR {
      const auto rest = hn::MulAdd(hn::LoadU(d, x + c), hn::LoadU(d, b + c), hn::LoadU(d, t + c));
      hn::StoreU(hn::MulAdd(hn::LoadU(d, dy + c), hn::LoadU(d, a + c), rest), d, dx + c);
    });
  }
}

}  // namespace weir::channel_ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir::channel_ops {

HWY_EXPORT(AddRowF32);
HWY_EXPORT(AddRowF64);
HWY_EXPORT(AddColumnsF32);
HWY_EXPORT(AddColumnsF64);
HWY_EXPORT(SumOfSquaresF32);
HWY_EXPORT(SumOfSquaresF64);
HWY_EXPORT(AddMomentsF32);
HWY_EXPORT(AddProductsF32);
HWY_EXPORT(ScaleRowsF32);
HWY_EXPORT(CombineRowsF32);

void AddRow(const float* x, const float* bias, float* y, int64_t rows, int64_t cols) {
  HWY_DYNAMIC_DISPATCH(AddRowF32)(x, bias, y, rows, cols);
}
void AddRow(const double* x, const double* bias, double* y, int64_t rows, int64_t cols) {
  HWY_DYNAMIC_DISPATCH(AddRowF64)(x, bias, y, rows, cols);
}
void AddColumns(const float* x, int64_t rows, int64_t cols, float* sums) {
  HWY_DYNAMIC_DISPATCH(AddColumnsF32)(x, rows, cols, sums);
}
void AddColumns(const double* x, int64_t rows, int64_t cols, double* sums) {
  HWY_DYNAMIC_DISPATCH(AddColumnsF64)(x, rows, cols, sums);
}
double SumOfSquares(const float* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(SumOfSquaresF32)(x, n);
}
double SumOfSquares(const double* x, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(SumOfSquaresF64)(x, n);
}
void AddMoments(const float* x, const float* shift, int64_t rows, int64_t cols, float* sums,
                float* squares) {
  HWY_DYNAMIC_DISPATCH(AddMomentsF32)(x, shift, rows, cols, sums, squares);
}
void AddProducts(const float* dy, const float* x, const float* mean, int64_t rows, int64_t cols,
                 float* sums, float* products) {
  HWY_DYNAMIC_DISPATCH(AddProductsF32)(dy, x, mean, rows, cols, sums, products);
}
void ScaleRows(const float* x, const float* factor, const float* term, float* y, int64_t rows,
               int64_t cols) {
  HWY_DYNAMIC_DISPATCH(ScaleRowsF32)(x, factor, term, y, rows, cols);
}
void CombineRows(const float* dy, const float* x, const float* a, const float* b, const float* d,
                 float* dx, int64_t rows, int64_t cols) {
  HWY_DYNAMIC_DISPATCH(CombineRowsF32)(dy, x, a, b, d, dx, rows, cols);
}

}  // namespace weir::channel_ops
#endif  // HWY_ONCE
