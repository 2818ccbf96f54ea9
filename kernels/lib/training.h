#ifndef WEIR_KERNELS_LIB_TRAINING_H_
#define WEIR_KERNELS_LIB_TRAINING_H_

#include <cmath>
#include <cstdint>

#include "weir/core/tensor/api.h"
#include "weir/core/tensor/numeric_types.h"

// The mathematics of the optimizers' update rules: element by element, independent of memory and
// types.
//
// A rule is a struct template over M, which defines the value type and its arithmetic:
// UpdateMath<float> here, the machine's vectors on the CPU (training_cpu.cc), and UpdateMath on a
// GPU too. A rule is constructed from the op's scalars and then applied to each element:
// operator()(grad, var, slots) updates var and the slots. The formulas are those of TensorFlow's
// training ops; UpdateRules() in ops/train/training.h names the slots. nvcc reads this header too.
namespace WEIR_API weir {

// The non-tensor arguments of one application of a rule: its scalars in the order of the op's
// arguments, without the gradient.
struct UpdateScalars {
  double at[7] = {};
  int64_t global_step = 0;
  bool flag = false;  // use_nesterov, or multiply_linear_by_lr
  bool update_slots = true;
};

template <class T>
struct UpdateMath {
  using V = T;
  WEIR_HD static T Set(double x) { return static_cast<T>(x); }
  WEIR_HD static T Sqrt(T x) {
    using std::sqrt;
    return sqrt(x);
  }
  WEIR_HD static T Pow(T x, T y) {
    using std::pow;
    return pow(x, y);
  }
  WEIR_HD static T Abs(T x) { return x < T(0) ? -x : x; }
  WEIR_HD static T Max(T x, T y) { return x < y ? y : x; }
  WEIR_HD static T Min(T x, T y) { return y < x ? y : x; }
  // Selects by the sign of s; `rest` if s is 0 or NaN.
  WEIR_HD static T BySign(T s, T positive, T negative, T rest) {
    return s > T(0) ? positive : s < T(0) ? negative : rest;
  }
  // Returns x with the sign of s; s itself if it is 0 or NaN.
  WEIR_HD static T WithSign(T x, T s) { return BySign(s, x, -x, s); }
};

namespace functor {

#include "weir/kernels/lib/training-inl.h"  // IWYU pragma: export

}  // namespace functor

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_TRAINING_H_
