#include <utility>

#include "weir/kernels/math/elementwise_kernels.h"
#include "weir/kernels/math/elementwise_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/math/mask_loops_cpu.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "hwy/contrib/math/math-inl.h"

// Comparisons inside a fused node, where all values have one type: the result is a mask with all
// bits of an element set or cleared. Cast of a mask, and Select, combine the bits of masks and
// elements, so that NaNs and signs of zeros are preserved. Graphs never contain these ops;
// session/passes/fuse_elementwise.cc lowers Equal, Less and similar ops, Cast and Select to them.
HWY_BEFORE_NAMESPACE();
namespace weir {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#include "weir/kernels/lib/vector_math-inl.h"

#include "weir/kernels/math/elementwise_loops-inl.h"

template <class M>
HWY_INLINE typename M::V MaskOf(typename M::Mask m) {
  return hn::VecFromMask(hn::DFromV<typename M::V>(), m);
}

struct MaskFunctor : Functor {
  static constexpr bool kStage = true;
  static constexpr bool kScalarLoops = true;
  using Types = List<float, double>;
};

struct MaskEqual : MaskFunctor {
  static constexpr char kOp[] = "_MaskEqual";
  template <class M>
  static HWY_INLINE typename M::V Apply(typename M::V x, typename M::V y) {
    return MaskOf<M>(hn::Eq(x, y));
  }
};
// Set if one is NaN, which Highway's Ne guarantees on some processors only.
struct MaskNotEqual : MaskFunctor {
  static constexpr char kOp[] = "_MaskNotEqual";
  template <class M>
  static HWY_INLINE typename M::V Apply(typename M::V x, typename M::V y) {
    return MaskOf<M>(hn::Not(hn::Eq(x, y)));
  }
};
struct MaskLess : MaskFunctor {
  static constexpr char kOp[] = "_MaskLess";
  template <class M>
  static HWY_INLINE typename M::V Apply(typename M::V x, typename M::V y) {
    return MaskOf<M>(hn::Lt(x, y));
  }
};
struct MaskLessEqual : MaskFunctor {
  static constexpr char kOp[] = "_MaskLessEqual";
  template <class M>
  static HWY_INLINE typename M::V Apply(typename M::V x, typename M::V y) {
    return MaskOf<M>(hn::Le(x, y));
  }
};
struct MaskGreater : MaskFunctor {
  static constexpr char kOp[] = "_MaskGreater";
  template <class M>
  static HWY_INLINE typename M::V Apply(typename M::V x, typename M::V y) {
    return MaskOf<M>(hn::Gt(x, y));
  }
};
struct MaskGreaterEqual : MaskFunctor {
  static constexpr char kOp[] = "_MaskGreaterEqual";
  template <class M>
  static HWY_INLINE typename M::V Apply(typename M::V x, typename M::V y) {
    return MaskOf<M>(hn::Ge(x, y));
  }
};
// 1 where the mask is set, otherwise 0.
struct MaskedOne : MaskFunctor {
  static constexpr char kOp[] = "_MaskedOne";
  template <class M>
  static HWY_INLINE typename M::V Apply(typename M::V mask) {
    return hn::And(mask, M::Num(1));
  }
};
// x where the mask is set, otherwise 0.
struct Masked : MaskFunctor {
  static constexpr char kOp[] = "_Masked";
  template <class M>
  static HWY_INLINE typename M::V Apply(typename M::V mask, typename M::V x) {
    return hn::And(mask, x);
  }
};
// 0 where the mask is set, otherwise x.
struct Unmasked : MaskFunctor {
  static constexpr char kOp[] = "_Unmasked";
  template <class M>
  static HWY_INLINE typename M::V Apply(typename M::V mask, typename M::V x) {
    return hn::AndNot(mask, x);
  }
};
// The nonzero one of a masked and an unmasked value.
struct Either : MaskFunctor {
  static constexpr char kOp[] = "_Either";
  template <class M>
  static HWY_INLINE typename M::V Apply(typename M::V x, typename M::V y) {
    return hn::Or(x, y);
  }
};

void AddMasks(LoopRegistry* t) {
  AddBinaryVectors(t, Functors<MaskEqual, MaskNotEqual, MaskLess, MaskLessEqual, MaskGreater,
                               MaskGreaterEqual, Masked, Unmasked, Either>());
  AddUnaryVectors(t, Functors<MaskedOne>());
}

}  // namespace HWY_NAMESPACE
}  // namespace weir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {

namespace {
HWY_EXPORT(AddMasks);
}  // namespace

void AddMaskLoops(LoopRegistry* t) { HWY_DYNAMIC_DISPATCH(AddMasks)(t); }

}  // namespace weir
#endif  // HWY_ONCE
