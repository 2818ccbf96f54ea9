#include "weir/kernels/nn/softmax.h"
#include "weir/core/tensor/numeric_types.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/nn/softmax.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "hwy/contrib/math/math-inl.h"

// The kernel reads each row for its maximum, so that no exponential overflows; then writes exp(x -
// max) and accumulates the sum; then scales the result. The row stays in the L1 cache meanwhile.
// The tail after the last whole vector is loaded into a vector that is padded with neutral values.
// While the kernel computes exponentials it prefetches the next row, because processors do not
// prefetch across a page boundary.
HWY_BEFORE_NAMESPACE();
namespace weir::softmax {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#include "weir/kernels/lib/partial_vectors-inl.h"
#include "weir/kernels/lib/vector_math-inl.h"

template <class T>
struct Row {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  using M = VectorMath<D>;

  static HWY_INLINE int64_t Lanes() { return static_cast<int64_t>(hn::Lanes(D())); }

  static HWY_INLINE T Max(const T* x, int64_t n) {
    constexpr T kLow = -std::numeric_limits<T>::infinity();
    V best = hn::Set(D(), kLow), b1 = best, b2 = best, b3 = best;
    int64_t i = 0;
    for (; i + 4 * Lanes() <= n; i += 4 * Lanes()) {
      best = hn::Max(best, hn::LoadU(D(), x + i));
      b1 = hn::Max(b1, hn::LoadU(D(), x + i + Lanes()));
      b2 = hn::Max(b2, hn::LoadU(D(), x + i + 2 * Lanes()));
      b3 = hn::Max(b3, hn::LoadU(D(), x + i + 3 * Lanes()));
    }
    best = hn::Max(hn::Max(best, b1), hn::Max(b2, b3));
    for (; i + Lanes() <= n; i += Lanes()) best = hn::Max(best, hn::LoadU(D(), x + i));
    if (i < n) best = hn::Max(best, LoadPartial(D(), x + i, n - i, kLow));
    return hn::GetLane(hn::MaxOfLanes(D(), best));
  }

  // Returns the sum of exp(x - max). Each vector of exponentials is passed to use(exponential, x -
  // max, i, count) with the number of valid lanes. In a row with a NaN the maximum may be wrong,
  // but all results are NaN.
  template <class Use>
  static HWY_INLINE T SumOfExp(const T* x, T max, int64_t n, Use&& use) {
    const V shift = hn::Set(D(), max);
    V sum = hn::Zero(D());
    int64_t i = 0;
    for (; i + Lanes() <= n; i += Lanes()) {
      const V shifted = hn::Sub(hn::LoadU(D(), x + i), shift);
      const V e = M::ExpOfNegative(shifted);
      sum = hn::Add(sum, e);
      use(e, shifted, i, Lanes());
    }
    if (i < n) {
      const V shifted =
          hn::Sub(LoadPartial(D(), x + i, n - i, -std::numeric_limits<T>::infinity()), shift);
      const V e = M::ExpOfNegative(shifted);
      sum = hn::Add(sum, e);
      use(e, shifted, i, n - i);
    }
    return hn::GetLane(hn::SumOfLanes(D(), sum));
  }

  static HWY_INLINE void StoreSome(V v, T* y, int64_t count) {
    if (count == Lanes()) {
      hn::StoreU(v, D(), y);
    } else {
      StorePartial(D(), v, y, count);
    }
  }

  static HWY_INLINE void Scale(T* y, T factor, int64_t n) {
    const V f = hn::Set(D(), factor);
    int64_t i = 0;
    for (; i + Lanes() <= n; i += Lanes())
      hn::StoreU(hn::Mul(hn::LoadU(D(), y + i), f), D(), y + i);
    for (; i < n; ++i) y[i] *= factor;
  }

  static void Softmax(const T* x, T* y, int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
      const T max = Max(x, n);
      const T* const next = r + 1 < rows ? x + n : x;
      const T sum = SumOfExp(x, max, n, [y, next](V e, V, int64_t i, int64_t count) HWY_ATTR {
        hwy::Prefetch(next + i);
        StoreSome(e, y + i, count);
      });
      Scale(y, 1 / sum, n);
    }
  }

  // Writes rows of whole vectors with non-temporal stores: each row is written to memory while the
  // exponentials of the next one are computed. `buffer` holds two rows.
  static void SoftmaxNonTemporal(const T* x, T* y, int64_t rows, int64_t n, T* buffer) {
    T* now = buffer;
    T* last = buffer + n;
    V factor = hn::Zero(D());
    const auto write = [&](int64_t i) HWY_ATTR {
      hn::Stream(hn::Mul(hn::LoadU(D(), last + i), factor), D(), y - n + i);
    };
    for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
      const T max = Max(x, n);
      const T* const next = r + 1 < rows ? x + n : x;
      const T sum = SumOfExp(x, max, n, [&](V e, V, int64_t i, int64_t) HWY_ATTR {
        hwy::Prefetch(next + i);
        hn::StoreU(e, D(), now + i);
        if (r > 0) write(i);
      });
      factor = hn::Set(D(), 1 / sum);
      std::swap(now, last);
    }
    for (int64_t i = 0; i < n; i += Lanes()) write(i);
  }

  static void LogSoftmax(const T* x, T* y, int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
      const T max = Max(x, n);
      const T* const next = r + 1 < rows ? x + n : x;
      const auto fetch = [next](V, V, int64_t i, int64_t) HWY_ATTR { hwy::Prefetch(next + i); };
      const T log_sum = std::log(SumOfExp(x, max, n, fetch));
      const V shift = hn::Set(D(), max), rest = hn::Set(D(), log_sum);
      int64_t i = 0;
      for (; i + Lanes() <= n; i += Lanes()) {
        hn::StoreU(hn::Sub(hn::Sub(hn::LoadU(D(), x + i), shift), rest), D(), y + i);
      }
      for (; i < n; ++i) y[i] = (x[i] - max) - log_sum;
    }
  }

  static void CrossEntropy(const T* x, const T* labels, T* loss, T* y, int64_t n) {
    const T max = Max(x, n);
    V weighted = hn::Zero(D()), weights = hn::Zero(D());
    const T sum = SumOfExp(x, max, n, [&](V e, V shifted, int64_t i, int64_t count) HWY_ATTR {
      if (count == Lanes()) {
        const V label = hn::LoadU(D(), labels + i);
        weighted = hn::MulAdd(label, shifted, weighted);
        weights = hn::Add(weights, label);
      } else {
        const V label = LoadPartial(D(), labels + i, count, T(0));
        const V counted = LoadPartial(D(), x + i, count, max);
        weighted = hn::MulAdd(label, hn::Sub(counted, hn::Set(D(), max)), weighted);
        weights = hn::Add(weights, label);
      }
      StoreSome(e, y + i, count);
    });
    const T total = hn::GetLane(hn::SumOfLanes(D(), weights));
    *loss = total * std::log(sum) - hn::GetLane(hn::SumOfLanes(D(), weighted));
    // Where both sums are infinite, their difference hides an infinite loss.
    if (std::isnan(*loss)) *loss = SumOfLosses(x, labels, max, std::log(sum), n);
    const V factor = hn::Set(D(), 1 / sum);
    int64_t i = 0;
    for (; i + Lanes() <= n; i += Lanes()) {
      hn::StoreU(hn::MulSub(hn::LoadU(D(), y + i), factor, hn::LoadU(D(), labels + i)), D(), y + i);
    }
    for (; i < n; ++i) y[i] = y[i] * (1 / sum) - labels[i];
  }

  // The loss of a row as the sum of its classes' losses.
  static T SumOfLosses(const T* x, const T* labels, T max, T log_of_sum, int64_t n) {
    T loss = 0;
    for (int64_t i = 0; i < n; ++i) loss += labels[i] * (log_of_sum - (x[i] - max));
    return loss;
  }

  static void SparseCrossEntropy(const T* x, int64_t label, T* loss, T* y, int64_t n) {
    const T max = Max(x, n), shifted = x[label] - max;
    const T sum = SumOfExp(
        x, max, n, [y](V e, V, int64_t i, int64_t count) HWY_ATTR { StoreSome(e, y + i, count); });
    Scale(y, 1 / sum, n);
    y[label] -= 1;
    *loss = std::log(sum) - shifted;
  }

  static void FindParts(const T* x, const Parts<T>& to, int64_t rows, int64_t n) {
    T* y = to.y;
    for (int64_t r = 0; r < rows; ++r, x += n) {
      to.max[r] = Max(x, n);
      const T* const next = r + 1 < rows ? x + n : x;
      to.sum[r] = SumOfExp(x, to.max[r], n, [y, next](V e, V, int64_t i, int64_t count) HWY_ATTR {
        hwy::Prefetch(next + i);
        if (y != nullptr) StoreSome(e, y + i, count);
      });
      if (!std::isfinite(to.max[r]) || std::isnan(to.sum[r]))
        FindNonFiniteParts(x, {to.max + r, to.sum + r, y, to.finite}, n);
      if (y != nullptr) y += n;
    }
  }

  // For a row with a NaN or an infinity.
  static void FindNonFiniteParts(const T* x, const Parts<T>& to, int64_t n) {
    if (std::any_of(x, x + n, [](T v) { return std::isnan(v); }))
      *to.max = std::numeric_limits<T>::quiet_NaN();
    if (to.finite && !std::isfinite(*to.max)) *to.max = 0;
    *to.sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      const T e = std::exp(x[i] - *to.max);
      *to.sum += e;
      if (to.y != nullptr) to.y[i] = e;
    }
  }
};

void SoftmaxF32(const float* x, float* y, int64_t rows, int64_t n, float* buffer) {
  if (buffer == nullptr) return Row<float>::Softmax(x, y, rows, n);
  Row<float>::SoftmaxNonTemporal(x, y, rows, n, buffer);
}
void SoftmaxF64(const double* x, double* y, int64_t rows, int64_t n, double* buffer) {
  if (buffer == nullptr) return Row<double>::Softmax(x, y, rows, n);
  Row<double>::SoftmaxNonTemporal(x, y, rows, n, buffer);
}
void LogSoftmaxF32(const float* x, float* y, int64_t rows, int64_t n) {
  Row<float>::LogSoftmax(x, y, rows, n);
}
void LogSoftmaxF64(const double* x, double* y, int64_t rows, int64_t n) {
  Row<double>::LogSoftmax(x, y, rows, n);
}
void CrossEntropyF32(const float* x, const float* labels, float* loss, float* y, int64_t n) {
  Row<float>::CrossEntropy(x, labels, loss, y, n);
}
void CrossEntropyF64(const double* x, const double* labels, double* loss, double* y, int64_t n) {
  Row<double>::CrossEntropy(x, labels, loss, y, n);
}
void SparseCrossEntropyF32(const float* x, int64_t label, float* loss, float* y, int64_t n) {
  Row<float>::SparseCrossEntropy(x, label, loss, y, n);
}
void SparseCrossEntropyF64(const double* x, int64_t label, double* loss, double* y, int64_t n) {
  Row<double>::SparseCrossEntropy(x, label, loss, y, n);
}
void FindPartsF32(const float* x, const Parts<float>& to, int64_t rows, int64_t n) {
  Row<float>::FindParts(x, to, rows, n);
}
void FindPartsF64(const double* x, const Parts<double>& to, int64_t rows, int64_t n) {
  Row<double>::FindParts(x, to, rows, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace weir::softmax
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir::softmax {

HWY_EXPORT(SoftmaxF32);
HWY_EXPORT(SoftmaxF64);
HWY_EXPORT(LogSoftmaxF32);
HWY_EXPORT(LogSoftmaxF64);
HWY_EXPORT(CrossEntropyF32);
HWY_EXPORT(CrossEntropyF64);
HWY_EXPORT(SparseCrossEntropyF32);
HWY_EXPORT(SparseCrossEntropyF64);
HWY_EXPORT(FindPartsF32);
HWY_EXPORT(FindPartsF64);

void Softmax(const float* x, float* y, int64_t rows, int64_t n, float* buffer) {
  HWY_DYNAMIC_DISPATCH(SoftmaxF32)(x, y, rows, n, buffer);
}
void Softmax(const double* x, double* y, int64_t rows, int64_t n, double* buffer) {
  HWY_DYNAMIC_DISPATCH(SoftmaxF64)(x, y, rows, n, buffer);
}
void LogSoftmax(const float* x, float* y, int64_t rows, int64_t n) {
  HWY_DYNAMIC_DISPATCH(LogSoftmaxF32)(x, y, rows, n);
}
void LogSoftmax(const double* x, double* y, int64_t rows, int64_t n) {
  HWY_DYNAMIC_DISPATCH(LogSoftmaxF64)(x, y, rows, n);
}
void CrossEntropy(const float* x, const float* labels, float* loss, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(CrossEntropyF32)(x, labels, loss, y, n);
}
void CrossEntropy(const double* x, const double* labels, double* loss, double* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(CrossEntropyF64)(x, labels, loss, y, n);
}
void SparseCrossEntropy(const float* x, int64_t label, float* loss, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(SparseCrossEntropyF32)(x, label, loss, y, n);
}
void SparseCrossEntropy(const double* x, int64_t label, double* loss, double* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(SparseCrossEntropyF64)(x, label, loss, y, n);
}
void FindParts(const float* x, const Parts<float>& to, int64_t rows, int64_t n) {
  HWY_DYNAMIC_DISPATCH(FindPartsF32)(x, to, rows, n);
}
void FindParts(const double* x, const Parts<double>& to, int64_t rows, int64_t n) {
  HWY_DYNAMIC_DISPATCH(FindPartsF64)(x, to, rows, n);
}

}  // namespace weir::softmax
#endif  // HWY_ONCE
