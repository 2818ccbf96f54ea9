#include "weir/kernels/lib/scalar_math.h"
#include "weir/kernels/math/row_steps.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/math/row_steps_cpu.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace weir {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct AddStep {
  template <class V>
  static HWY_INLINE V Vector(V a, V x) {
    return hn::Add(a, x);
  }
  template <class T>
  static T Scalar(T a, T x) {
    return ScalarMath<T>::Add(a, x);
  }
};
struct MulStep {
  template <class V>
  static HWY_INLINE V Vector(V a, V x) {
    return hn::Mul(a, x);
  }
  template <class T>
  static T Scalar(T a, T x) {
    return ScalarMath<T>::Mul(a, x);
  }
};
// The hardware's max and min return the second operand if either is NaN.
struct MaxStep {
  template <class V>
  static HWY_INLINE V Vector(V a, V x) {
    if constexpr (hwy::IsFloat<hn::TFromV<V>>())
      return hn::IfThenElse(hn::Or(hn::Gt(a, x), hn::IsNaN(a)), a, x);
    else
      return hn::Max(a, x);
  }
  template <class T>
  static T Scalar(T a, T x) {
    return ScalarMath<T>::Max(a, x);
  }
};
struct MinStep {
  template <class V>
  static HWY_INLINE V Vector(V a, V x) {
    if constexpr (hwy::IsFloat<hn::TFromV<V>>())
      return hn::IfThenElse(hn::Or(hn::Lt(a, x), hn::IsNaN(a)), a, x);
    else
      return hn::Min(a, x);
  }
  template <class T>
  static T Scalar(T a, T x) {
    return ScalarMath<T>::Min(a, x);
  }
};

template <class F, class T>
void StepRow(void* accs, const void* xs, int64_t n) {
  const hn::ScalableTag<T> d;
  T* const acc = static_cast<T*>(accs);
  const T* const x = static_cast<const T*>(xs);
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    const auto a = F::Vector(hn::LoadU(d, acc + i), hn::LoadU(d, x + i));
    const auto b = F::Vector(hn::LoadU(d, acc + i + lanes), hn::LoadU(d, x + i + lanes));
    hn::StoreU(a, d, acc + i);
    hn::StoreU(b, d, acc + i + lanes);
  }
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(F::Vector(hn::LoadU(d, acc + i), hn::LoadU(d, x + i)), d, acc + i);
  for (; i < n; ++i) acc[i] = F::template Scalar<T>(acc[i], x[i]);
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
