#ifndef WEIR_KERNELS_COMPARE_H_
#define WEIR_KERNELS_COMPARE_H_

#include <limits>

#include "weir/core/numeric_types.h"

// Functors with bool results, for kernels of all devices.
namespace weir::compare {

struct Less {
  template <class T>
  WEIR_HD static bool Apply(T x, T y) {
    return x < y;
  }
};
struct LessEqual {
  template <class T>
  WEIR_HD static bool Apply(T x, T y) {
    return x <= y;
  }
};
struct Greater {
  template <class T>
  WEIR_HD static bool Apply(T x, T y) {
    return x > y;
  }
};
struct GreaterEqual {
  template <class T>
  WEIR_HD static bool Apply(T x, T y) {
    return x >= y;
  }
};
struct Equal {
  template <class T>
  WEIR_HD static bool Apply(T x, T y) {
    return x == y;
  }
};
struct NotEqual {
  template <class T>
  WEIR_HD static bool Apply(T x, T y) {
    return x != y;
  }
};
struct LogicalAnd {
  WEIR_HD static bool Apply(bool x, bool y) { return x & y; }
};
struct LogicalOr {
  WEIR_HD static bool Apply(bool x, bool y) { return x | y; }
};
struct LogicalNot {
  WEIR_HD static bool Apply(bool x) { return !x; }
};
struct IsNan {
  template <class T>
  WEIR_HD static bool Apply(T x) {
    return x != x;
  }
};
struct IsInf {
  template <class T>
  WEIR_HD static bool Apply(T x) {
    return (x < 0 ? -x : x) == std::numeric_limits<T>::infinity();
  }
};
struct IsFinite {
  template <class T>
  WEIR_HD static bool Apply(T x) {
    return (x < 0 ? -x : x) < std::numeric_limits<T>::infinity();
  }
};

}  // namespace weir::compare

#endif  // WEIR_KERNELS_COMPARE_H_
