#include <cmath>
#include <complex>
#include <iterator>
#include <limits>
#include <numeric>

#include "absl/container/flat_hash_map.h"
#include "weir/kernels/math/reduce.h"
#include "weir/kernels/math/reducers.h"
#include "weir/kernels/math/row_steps.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/math/reducers_cpu.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

// The reducers (kernels/math/reducers.h) on the CPU.
//
// A row of floats or doubles is summed in the order in which TensorFlow's kernels add (Eigen's
// InnerMostDimReducer with AVX's packets), so that sums and means agree with them bit for bit:
//
//   - a row of more than 1024 packets is halved, at a multiple of a packet, and both halves are
//     summed in this way: rounding errors of long sums grow with the logarithm of their length;
//   - in the remaining short rows, four packets accumulate every fourth packet each, as long as
//     four are left; they are added one after another, then the remaining packets;
//   - a packet is folded, its upper half onto its lower one, until one element is left;
//   - the elements after the last whole packet are summed separately, and that sum is added last.
//
// TensorFlow splits long rows into one piece per thread; kernels/math/reduce.cc splits them too, at
// other positions. Sums of squares have no such reference order: they are summed in float vectors
// over at most kBlock elements, and the blocks in double. Products are computed in double, in four
// vectors: one product alone would wait four cycles for the last one at each element.

#ifndef WEIR_KERNELS_REDUCERS_ONCE_
#define WEIR_KERNELS_REDUCERS_ONCE_
namespace weir {
// Reductions of contiguous floats or doubles, for the instruction set of this machine.
struct RowFunctions {
  double (*sum_f32)(const float*, int64_t);
  double (*sum_f64)(const double*, int64_t);
  double (*product_f32)(const float*, int64_t);
  double (*product_f64)(const double*, int64_t);
  double (*squares_f32)(const float*, int64_t);
  double (*squares_f64)(const double*, int64_t);
  float (*max_f32)(const float*, int64_t);
  double (*max_f64)(const double*, int64_t);
  float (*min_f32)(const float*, int64_t);
  double (*min_f64)(const double*, int64_t);
  // As Reducer::columns.
  void (*sum_columns_f32)(const float*, int64_t rows, int64_t stride, int64_t, double*);
  void (*product_columns_f32)(const float*, int64_t rows, int64_t stride, int64_t, double*);
  void (*squares_columns_f32)(const float*, int64_t rows, int64_t stride, int64_t, double*);
  void (*max_columns_f32)(const float*, int64_t rows, int64_t stride, int64_t, float*);
  void (*min_columns_f32)(const float*, int64_t rows, int64_t stride, int64_t, float*);
};
}  // namespace weir
#endif  // WEIR_KERNELS_REDUCERS_ONCE_

HWY_BEFORE_NAMESPACE();
namespace weir {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct SumOf {
  static constexpr double kNeutral = 0;
  template <class V>
  static HWY_INLINE V Step(V acc, V x) {
    return hn::Add(acc, x);
  }
  template <class V>
  static HWY_INLINE V Merge(V a, V b) {
    return hn::Add(a, b);
  }
  static double One(double acc, double x) { return acc + x; }
};
struct SquaresOf : SumOf {
  template <class V>
  static HWY_INLINE V Step(V acc, V x) {
    return hn::MulAdd(x, x, acc);
  }
  static double One(double acc, double x) { return acc + x * x; }
};
struct ProductOf {
  template <class V>
  static HWY_INLINE V Step(V acc, V x) {
    return hn::Mul(acc, x);
  }
  static double One(double acc, double x) { return acc * x; }
};
struct MaxOf {
  static constexpr double kNeutral = -std::numeric_limits<double>::infinity();
  template <class V>
  static HWY_INLINE V Step(V acc, V x) {
    // NaN propagates: an accumulator that is NaN is kept, and a NaN element is selected because no
    // comparison with it is true.
    return hn::IfThenElse(hn::Or(hn::Gt(acc, x), hn::IsNaN(acc)), acc, x);
  }
  template <class V>
  static HWY_INLINE V Merge(V a, V b) {
    return Step(a, b);
  }
  static double One(double acc, double x) { return acc > x || acc != acc ? acc : x; }
};
struct MinOf {
  static constexpr double kNeutral = std::numeric_limits<double>::infinity();
  template <class V>
  static HWY_INLINE V Step(V acc, V x) {
    return hn::IfThenElse(hn::Or(hn::Lt(acc, x), hn::IsNaN(acc)), acc, x);
  }
  template <class V>
  static HWY_INLINE V Merge(V a, V b) {
    return Step(a, b);
  }
  static double One(double acc, double x) { return acc < x || acc != acc ? acc : x; }
};

template <class T>
inline constexpr int64_t kPacket = 32 / sizeof(T);

// Sums every kPacket-th element of the first n elements, rounded down to whole packets.
template <class T>
void SumPackets(const T* x, int64_t n, T* HWY_RESTRICT sums) {
  constexpr int64_t kLanes = kPacket<T>;
  const hn::CappedTag<T, kLanes> d;
  int64_t i = 0;
  if constexpr (hn::MaxLanes(d) == kLanes) {
    auto p0 = hn::Zero(d), p1 = p0, p2 = p0, p3 = p0;
    for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
      p0 = hn::Add(p0, hn::LoadU(d, x + i));
      p1 = hn::Add(p1, hn::LoadU(d, x + i + kLanes));
      p2 = hn::Add(p2, hn::LoadU(d, x + i + 2 * kLanes));
      p3 = hn::Add(p3, hn::LoadU(d, x + i + 3 * kLanes));
    }
    p0 = hn::Add(hn::Add(hn::Add(p0, p1), p2), p3);
    for (; i + kLanes <= n; i += kLanes) p0 = hn::Add(p0, hn::LoadU(d, x + i));
    hn::StoreU(p0, d, sums);
  } else {
    T p[4][kLanes] = {};
    for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
      for (int64_t k = 0; k < 4 * kLanes; ++k) p[k / kLanes][k % kLanes] += x[i + k];
    }
    for (int64_t k = 0; k < kLanes; ++k) sums[k] = p[0][k] + p[1][k] + p[2][k] + p[3][k];
    for (; i + kLanes <= n; i += kLanes) {
      for (int64_t k = 0; k < kLanes; ++k) sums[k] += x[i + k];
    }
  }
}

template <class T>
T RowSum(const T* x, int64_t n) {
  constexpr int64_t kLanes = kPacket<T>, kLeaf = 1024 * kLanes;
  if (n > kLeaf) {
    const int64_t half = hwy::RoundUpTo((n + 1) / 2, kLanes);
    return RowSum(x, half) + RowSum(x + half, n - half);
  }
  T sums[kLanes], rest = 0;
  SumPackets(x, n, sums);
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t k = 0; k < half; ++k) sums[k] += sums[k + half];
  }
  for (int64_t i = n / kLanes * kLanes; i < n; ++i) rest += x[i];
  return rest + sums[0];
}
template <class T>
double WideRowSum(const T* x, int64_t n) {
  return RowSum(x, n);
}

template <class F, class T, class R>
R RowLoop(const T* x, int64_t n) {
  constexpr int64_t kBlock = 4096;
  const hn::ScalableTag<T> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  double total = F::kNeutral;
  HWY_ALIGN T parts[hn::MaxLanes(d)];
  int64_t i = 0;
  while (n - i >= lanes) {
    const int64_t end = std::min(n, i + kBlock);
    auto a0 = hn::Set(d, static_cast<T>(F::kNeutral)), a1 = a0, a2 = a0, a3 = a0;
    for (; i + 4 * lanes <= end; i += 4 * lanes) {
      a0 = F::Step(a0, hn::LoadU(d, x + i));
      a1 = F::Step(a1, hn::LoadU(d, x + i + lanes));
      a2 = F::Step(a2, hn::LoadU(d, x + i + 2 * lanes));
      a3 = F::Step(a3, hn::LoadU(d, x + i + 3 * lanes));
    }
    for (; i + lanes <= end; i += lanes) a0 = F::Step(a0, hn::LoadU(d, x + i));
    hn::Store(F::Merge(F::Merge(a0, a1), F::Merge(a2, a3)), d, parts);
    double block = F::kNeutral;
    for (int64_t k = 0; k < lanes; ++k) {
      if constexpr (std::is_base_of_v<SumOf, F>)
        block += parts[k];
      else
        block = F::One(block, parts[k]);
    }
    if constexpr (std::is_base_of_v<SumOf, F>)
      total += block;
    else
      total = F::One(total, block);
  }
  for (; i < n; ++i) total = F::One(total, x[i]);
  return static_cast<R>(total);
}

template <class T>
double RowProduct(const T* x, int64_t n) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<T, decltype(d)> narrow;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto load = [&](int64_t i) HWY_ATTR {
    if constexpr (sizeof(T) == 4) {
      return hn::PromoteTo(d, hn::LoadU(narrow, x + i));
    } else {
      return hn::LoadU(d, x + i);
    }
  };
  auto p0 = hn::Set(d, 1.0), p1 = p0, p2 = p0, p3 = p0;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    p0 = hn::Mul(p0, load(i));
    p1 = hn::Mul(p1, load(i + lanes));
    p2 = hn::Mul(p2, load(i + 2 * lanes));
    p3 = hn::Mul(p3, load(i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) p0 = hn::Mul(p0, load(i));
  HWY_ALIGN double parts[hn::MaxLanes(d)];
  hn::Store(hn::Mul(hn::Mul(p0, p1), hn::Mul(p2, p3)), d, parts);
  double product = 1;
  for (int64_t k = 0; k < lanes; ++k) product *= parts[k];
  for (; i < n; ++i) product *= x[i];
  return product;
}

// Accumulates kRows rows of floats into accumulators of type A.
template <class F, int kRows, class A>
HWY_INLINE void AddRows(const float* x, int64_t stride, int64_t n, A* acc) {
  const hn::ScalableTag<A> d;
  const hn::Rebind<float, decltype(d)> narrow;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto a = hn::LoadU(d, acc + i);
#pragma GCC unroll 8
    for (int k = 0; k < kRows; ++k) {
      const auto row = hn::LoadU(narrow, x + k * stride + i);
      if constexpr (std::is_same_v<A, double>)
        a = F::Step(a, hn::PromoteTo(d, row));
      else
        a = F::Step(a, row);
    }
    hn::StoreU(a, d, acc + i);
  }
  for (; i < n; ++i) {
    for (int k = 0; k < kRows; ++k) acc[i] = static_cast<A>(F::One(acc[i], x[k * stride + i]));
  }
}

// Accumulators are loaded and stored once per eight rows. Each accumulates the rows' elements in
// order, so the result is the same as for one row after another.
template <class F, class A>
void ColumnLoop(const float* x, int64_t rows, int64_t stride, int64_t n, A* acc) {
  int64_t k = 0;
  for (; k + 8 <= rows; k += 8) AddRows<F, 8>(x + k * stride, stride, n, acc);
  for (; k < rows; ++k) AddRows<F, 1>(x + k * stride, stride, n, acc);
}

void GetRowFunctions(RowFunctions* f) {
  *f = {WideRowSum<float>,
        WideRowSum<double>,
        RowProduct<float>,
        RowProduct<double>,
        RowLoop<SquaresOf, float, double>,
        RowLoop<SquaresOf, double, double>,
        RowLoop<MaxOf, float, float>,
        RowLoop<MaxOf, double, double>,
        RowLoop<MinOf, float, float>,
        RowLoop<MinOf, double, double>,
        ColumnLoop<SumOf, double>,
        ColumnLoop<ProductOf, double>,
        ColumnLoop<SquaresOf, double>,
        ColumnLoop<MaxOf, float>,
        ColumnLoop<MinOf, float>};
}

}  // namespace HWY_NAMESPACE
}  // namespace weir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {
namespace {

HWY_EXPORT(GetRowFunctions);

const RowFunctions& Rows() {
  static const RowFunctions functions = [] {
    RowFunctions f;
    HWY_DYNAMIC_DISPATCH(GetRowFunctions)(&f);
    return f;
  }();
  return functions;
}

// Maxima and minima of 32- and 64-bit integers are those of many accumulators at a time.
template <class F, class T>
inline constexpr bool kHasStep = (std::is_same_v<T, int32_t> ||
                                  std::is_same_v<T, int64_t>)&&(F::kRow == RowKind::kMax ||
                                                                F::kRow == RowKind::kMin);
template <class F, class T>
RowStep StepOf() {
  return FindRowStep(F::kRow == RowKind::kMax ? RowStepOp::kMax : RowStepOp::kMin,
                     DataTypeOf<T>::value);
}
constexpr int64_t kStepped = 256;  // elements from which on that pays
template <class F, class T>
T SteppedRow(const T* x, int64_t n) {
  const RowStep step = StepOf<F, T>();
  T acc[kStepped / 2];
  constexpr int64_t kAccs = std::size(acc);
  std::copy_n(x, kAccs, acc);
  int64_t i = kAccs;
  for (; i + kAccs <= n; i += kAccs) step(acc, x + i, kAccs);
  step(acc, x + i, n - i);
  return std::accumulate(acc + 1, acc + kAccs, acc[0], F::Merge);
}

// Reduces x[0 ... n) to one accumulator.
template <class F, class T>
typename F::Acc Row(const T* x, int64_t n) {
  if constexpr (std::is_same_v<T, float>) {
    if constexpr (F::kRow == RowKind::kSum) return Rows().sum_f32(x, n);
    if constexpr (F::kRow == RowKind::kProduct) return Rows().product_f32(x, n);
    if constexpr (F::kRow == RowKind::kSquares) return Rows().squares_f32(x, n);
    if constexpr (F::kRow == RowKind::kMax) return Rows().max_f32(x, n);
    if constexpr (F::kRow == RowKind::kMin) return Rows().min_f32(x, n);
  } else if constexpr (std::is_same_v<T, double>) {
    if constexpr (F::kRow == RowKind::kSum) return Rows().sum_f64(x, n);
    if constexpr (F::kRow == RowKind::kProduct) return Rows().product_f64(x, n);
    if constexpr (F::kRow == RowKind::kSquares) return Rows().squares_f64(x, n);
    if constexpr (F::kRow == RowKind::kMax) return Rows().max_f64(x, n);
    if constexpr (F::kRow == RowKind::kMin) return Rows().min_f64(x, n);
  }
  if constexpr (kHasStep<F, T>) {
    if (n >= kStepped) return SteppedRow<F>(x, n);
  }
  // Integers are exact in any order: four accumulators do not wait for each other.
  constexpr int64_t kParts = std::is_integral_v<T> ? 4 : 1;
  typename F::Acc acc[kParts];
  std::fill_n(acc, kParts, F::Neutral());
  int64_t i = 0;
  for (; i + kParts <= n; i += kParts) {
    for (int64_t k = 0; k < kParts; ++k) acc[k] = F::Merge(acc[k], F::Value(x[i + k]));
  }
  for (; i < n; ++i) acc[0] = F::Merge(acc[0], F::Value(x[i]));
  for (int64_t k = 1; k < kParts; ++k) acc[0] = F::Merge(acc[0], acc[k]);
  return acc[0];
}

// The vectorized loop over columns of floats.
template <class F>
constexpr auto Columns() {
  if constexpr (F::kRow == RowKind::kSum) return &RowFunctions::sum_columns_f32;
  if constexpr (F::kRow == RowKind::kProduct) return &RowFunctions::product_columns_f32;
  if constexpr (F::kRow == RowKind::kSquares) return &RowFunctions::squares_columns_f32;
  if constexpr (F::kRow == RowKind::kMax) return &RowFunctions::max_columns_f32;
  if constexpr (F::kRow == RowKind::kMin) return &RowFunctions::min_columns_f32;
}

template <class F, class T>
Reducer MakeReducer() {
  using Acc = typename F::Acc;
  Reducer r;
  r.in_size = r.out_size = sizeof(T);
  r.acc_size = sizeof(Acc);
  r.init = [](void* acc, int64_t n) { std::fill_n(static_cast<Acc*>(acc), n, F::Neutral()); };
  r.row = [](const void* x, int64_t n, void* acc) {
    Acc& a = *static_cast<Acc*>(acc);
    a = F::Merge(a, Row<F>(static_cast<const T*>(x), n));
  };
  r.columns = [](const void* xs, int64_t rows, int64_t stride, int64_t n, void* acc) {
    const T* x = static_cast<const T*>(xs);
    Acc* a = static_cast<Acc*>(acc);
    for (int64_t k = 0; k < rows; ++k, x += stride) {
      for (int64_t i = 0; i < n; ++i) a[i] = F::Merge(a[i], F::Value(x[i]));
    }
  };
  r.merge = [](const void* other, int64_t n, void* acc) {
    const Acc* x = static_cast<const Acc*>(other);
    Acc* a = static_cast<Acc*>(acc);
    for (int64_t i = 0; i < n; ++i) a[i] = F::Merge(a[i], x[i]);
  };
  r.finish = [](const void* acc, int64_t n, int64_t count, void* ys) {
    const Acc* a = static_cast<const Acc*>(acc);
    T* y = static_cast<T*>(ys);
    for (int64_t i = 0; i < n; ++i) y[i] = F::Result(a[i], count);
  };
  if constexpr (std::is_same_v<T, float>) {
    r.columns = [](const void* x, int64_t rows, int64_t stride, int64_t n, void* acc) {
      (Rows().*Columns<F>())(static_cast<const float*>(x), rows, stride, n, static_cast<Acc*>(acc));
    };
  }
  if constexpr (kHasStep<F, T>) {
    r.columns = [](const void* xs, int64_t rows, int64_t stride, int64_t n, void* acc) {
      const RowStep step = StepOf<F, T>();
      const T* x = static_cast<const T*>(xs);
      for (int64_t k = 0; k < rows; ++k, x += stride) step(acc, x, n);
    };
  }
  r.cost = sizeof(T) >= 8 ? 0.4f : 0.2f;
  const bool is_vectorized =
      std::is_same_v<T, float> || std::is_same_v<T, double> || kHasStep<F, T>;
  if (!is_vectorized) r.cost = 1;
  return r;
}

using ReducerMap = absl::flat_hash_map<std::pair<std::string, int>, Reducer>;

template <template <class> class F, class... Ts>
void AddReducers(ReducerMap* table, const char* op, List<Ts...>) {
  (table->emplace(std::pair<std::string, int>(op, DataTypeOf<Ts>::value), MakeReducer<F<Ts>, Ts>()),
   ...);
}

}  // namespace

const Reducer* FindReducer(absl::string_view op, DataType type) {
  static const ReducerMap* const table = [] {
    auto* t = new ReducerMap;
    AddReducers<SumReduction>(t, "Sum", Numbers{});
    AddReducers<MeanReduction>(t, "Mean", Numbers{});
    AddReducers<ProdReduction>(t, "Prod", Numbers{});
    AddReducers<NormReduction>(t, "EuclideanNorm", Numbers{});
    AddReducers<MaxReduction>(t, "Max", RealNumbers{});
    AddReducers<MinReduction>(t, "Min", RealNumbers{});
    t->emplace(std::pair<std::string, int>("All", DT_BOOL), MakeReducer<AllReduction, uint8_t>());
    t->emplace(std::pair<std::string, int>("Any", DT_BOOL), MakeReducer<AnyReduction, uint8_t>());
    return t;
  }();
  const auto it = table->find(std::pair<std::string, int>(std::string(op), type));
  return it == table->end() ? nullptr : &it->second;
}

}  // namespace weir
#endif  // HWY_ONCE
