#ifndef WEIR_KERNELS_TRAINING_H_
#define WEIR_KERNELS_TRAINING_H_

#include <cmath>
#include <cstdint>

#include "weir/core/numeric_types.h"

// The mathematics of the optimizers' update rules, once for all: element by element, without memory
// or types.
//
// A rule is a struct template over M, which says what a value is and how to compute with it:
// UpdateMath<float> here, on the CPU vectors of the machine (training_cpu.cc), on a GPU the same
// UpdateMath. It is made from the step's scalars, and then applied to an element: operator()(grad,
// var, slots) changes var and the slots. The formulas are those of TensorFlow's training ops; which
// slot is which is said by UpdateRules() in ops/training.h. This header is read by nvcc too.
namespace weir {

// What one run of a rule is given besides tensors: its scalars in the order of the op's arguments,
// without the gradient.
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
  // One of three by the sign of s; `rest` if s is 0 or NaN.
  WEIR_HD static T BySign(T s, T positive, T negative, T rest) {
    return s > T(0) ? positive : s < T(0) ? negative : rest;
  }
  // x with the sign of s; s itself if it is 0 or NaN.
  WEIR_HD static T WithSign(T x, T s) { return BySign(s, x, -x, s); }
};

namespace functor {

#include "weir/kernels/training-inl.h"  // IWYU pragma: export

}  // namespace functor

}  // namespace weir

#endif  // WEIR_KERNELS_TRAINING_H_
