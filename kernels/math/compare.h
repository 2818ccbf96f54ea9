#ifndef WEIR_KERNELS_MATH_COMPARE_H_
#define WEIR_KERNELS_MATH_COMPARE_H_

#include <limits>

#include "weir/core/tensor/numeric_types.h"
#include "weir/kernels/math/functor.h"

// Functors (kernels/math/functor.h) with bool results, for kernels of all devices. Apply(x),
// Apply(x, y) have plain elements as arguments.
namespace weir::compare {

struct Comparison : Functor {
  static constexpr double kCost = 0.3;
};
struct Order : Comparison {
  using Types = RealNumbers;
  using GpuTypes = FloatsAndInt64;
};
// Quantized values are equal if their bits are.
struct Equality : Comparison {
  using Types = JoinLists<Numbers, List<bool>, QuantizedNumbers>;
  using GpuTypes = JoinLists<FloatsAndInt64, List<bool>>;
};
struct Logical : Comparison {
  using Types = List<bool>;
  using GpuTypes = Types;
};
struct Classification : Comparison {
  using Types = Floats;
};

struct Less : Order {
  static constexpr char kOp[] = "Less";
  template <class T>
  WEIR_HD static bool Apply(T x, T y) {
    return x < y;
  }
};
struct LessEqual : Order {
  static constexpr char kOp[] = "LessEqual";
  template <class T>
  WEIR_HD static bool Apply(T x, T y) {
    return x <= y;
  }
};
struct Greater : Order {
  static constexpr char kOp[] = "Greater";
  template <class T>
  WEIR_HD static bool Apply(T x, T y) {
    return x > y;
  }
};
struct GreaterEqual : Order {
  static constexpr char kOp[] = "GreaterEqual";
  template <class T>
  WEIR_HD static bool Apply(T x, T y) {
    return x >= y;
  }
};
struct Equal : Equality {
  static constexpr char kOp[] = "Equal";
  template <class T>
  WEIR_HD static bool Apply(T x, T y) {
    return x == y;
  }
};
struct NotEqual : Equality {
  static constexpr char kOp[] = "NotEqual";
  template <class T>
  WEIR_HD static bool Apply(T x, T y) {
    return x != y;
  }
};
struct LogicalAnd : Logical {
  static constexpr char kOp[] = "LogicalAnd";
  WEIR_HD static bool Apply(bool x, bool y) { return x & y; }
};
struct LogicalOr : Logical {
  static constexpr char kOp[] = "LogicalOr";
  WEIR_HD static bool Apply(bool x, bool y) { return x | y; }
};
struct LogicalNot : Logical {
  static constexpr char kOp[] = "LogicalNot";
  WEIR_HD static bool Apply(bool x) { return !x; }
};
struct IsNan : Classification {
  static constexpr char kOp[] = "IsNan";
  template <class T>
  WEIR_HD static bool Apply(T x) {
    return x != x;
  }
};
struct IsInf : Classification {
  static constexpr char kOp[] = "IsInf";
  template <class T>
  WEIR_HD static bool Apply(T x) {
    return (x < 0 ? -x : x) == std::numeric_limits<T>::infinity();
  }
};
struct IsFinite : Classification {
  static constexpr char kOp[] = "IsFinite";
  template <class T>
  WEIR_HD static bool Apply(T x) {
    return (x < 0 ? -x : x) < std::numeric_limits<T>::infinity();
  }
};

using UnaryComparisons = Functors<LogicalNot, IsNan, IsInf, IsFinite>;
using BinaryComparisons =
    Functors<Less, LessEqual, Greater, GreaterEqual, Equal, NotEqual, LogicalAnd, LogicalOr>;

}  // namespace weir::compare

#endif  // WEIR_KERNELS_MATH_COMPARE_H_
