#include <type_traits>

#include "weir/kernels/lib/scalar_math.h"
#include "weir/kernels/math/row_steps.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/math/row_steps_cpu.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weir {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#include "weir/kernels/lib/vector_math-inl.h"

// VectorMath is of floating-point numbers.
template <class D>
struct IntegerVectors {
  using V = hn::Vec<D>;
  static HWY_INLINE V Add(V a, V b) { return hn::Add(a, b); }
  static HWY_INLINE V Mul(V a, V b) { return hn::Mul(a, b); }
  static HWY_INLINE V Max(V a, V b) { return hn::Max(a, b); }
  static HWY_INLINE V Min(V a, V b) { return hn::Min(a, b); }
};
template <class D>
using VectorsOf =
    std::conditional_t<hwy::IsFloat<hn::TFromD<D>>(), VectorMath<D>, IntegerVectors<D>>;

// Steps on vectors or numbers, as M says.
struct AddStep {
  template <class M>
  static HWY_INLINE typename M::V Apply(typename M::V a, typename M::V x) {
    return M::Add(a, x);
  }
};
struct MulStep {
  template <class M>
  static HWY_INLINE typename M::V Apply(typename M::V a, typename M::V x) {
    return M::Mul(a, x);
  }
};
struct MaxStep {
  template <class M>
  static HWY_INLINE typename M::V Apply(typename M::V a, typename M::V x) {
    return M::Max(a, x);
  }
};
struct MinStep {
  template <class M>
  static HWY_INLINE typename M::V Apply(typename M::V a, typename M::V x) {
    return M::Min(a, x);
  }
};

template <class F, class T>
void StepRow(void* accs, const void* xs, int64_t n) {
  const hn::ScalableTag<T> d;
  using Vectors = VectorsOf<hn::ScalableTag<T>>;
  T* const acc = static_cast<T*>(accs);
  const T* const x = static_cast<const T*>(xs);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto a = F::template Apply<Vectors>(hn::LoadU(d, acc + i), hn::LoadU(d, x + i));
    const auto b =
        F::template Apply<Vectors>(hn::LoadU(d, acc + i + lanes), hn::LoadU(d, x + i + lanes));
    hn::StoreU(a, d, acc + i);
    hn::StoreU(b, d, acc + i + lanes);
  }
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(F::template Apply<Vectors>(hn::LoadU(d, acc + i), hn::LoadU(d, x + i)), d, acc + i);
  for (; i < n; ++i) acc[i] = F::template Apply<ScalarMath<T>>(acc[i], x[i]);
}

template <class T>
RowStep StepOf(RowStepOp op) {
  switch (op) {
    case RowStepOp::kAdd:
      return StepRow<AddStep, T>;
    case RowStepOp::kMul:
      if constexpr (std::is_same_v<T, int64_t>)
        return nullptr;  // processors have no such vectors
      else
        return StepRow<MulStep, T>;
    case RowStepOp::kMax:
      return StepRow<MaxStep, T>;
    case RowStepOp::kMin:
      return StepRow<MinStep, T>;
  }
  return nullptr;
}

RowStep Find(RowStepOp op, DataType type) {
  switch (type) {
    case DT_FLOAT:
      return StepOf<float>(op);
    case DT_DOUBLE:
      return StepOf<double>(op);
    case DT_INT32:
      return StepOf<int32_t>(op);
    case DT_INT64:
      return StepOf<int64_t>(op);
    default:
      return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace weir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {

HWY_EXPORT(Find);

RowStep FindRowStep(RowStepOp op, DataType type) { return HWY_DYNAMIC_DISPATCH(Find)(op, type); }

}  // namespace weir
#endif  // HWY_ONCE
