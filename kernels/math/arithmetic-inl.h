// Functors (kernels/math/elementwise.h) for arithmetic, most of which is no more expensive than
// memory access. A textual header without an include guard.

// ---- one argument

struct Abs : Functor {
  static constexpr char kOp[] = "Abs";
  static constexpr bool kStage = true;
  using Types = JoinLists<Floats, SignedIntegers>;
  using GpuTypes = FloatsAndInt64;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Abs(x);
  }
};
struct Neg : Functor {
  static constexpr char kOp[] = "Neg";
  static constexpr bool kStage = true;
  using Types = SignedNumbers;
  using GpuTypes = FloatsAndInt64;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Neg(x);
  }
};
struct Sign : Functor {
  static constexpr char kOp[] = "Sign";
  using Types = SignedNumbers;
  using GpuTypes = FloatsAndInt64;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    if constexpr (M::kComplex) {
      const auto length = M::Abs(x);
      return length == M::Abs(M::Num(0)) ? M::Num(0) : x / length;
    } else {
      // The sum is 0 for -0 too, and otherwise NaN.
      const typename M::V zero = M::Num(0);
      return M::If(M::Lt(zero, x), M::Num(1), M::If(M::Lt(x, zero), M::Num(-1), M::Add(x, zero)));
    }
  }
};
struct Reciprocal : Functor {
  static constexpr char kOp[] = "Reciprocal";
  static constexpr bool kStage = true;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Div(M::Num(1), x);
  }
};
struct Inv : Reciprocal {
  static constexpr char kOp[] = "Inv";
};
struct Square : Functor {
  static constexpr char kOp[] = "Square";
  static constexpr bool kStage = true;
  using Types = Numbers;
  using GpuTypes = FloatsAndInt64;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Mul(x, x);
  }
};
struct Sqrt : Functor {
  static constexpr char kOp[] = "Sqrt";
  static constexpr bool kStage = true;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Sqrt(x);
  }
};
struct Rsqrt : Functor {
  static constexpr char kOp[] = "Rsqrt";
  static constexpr bool kStage = true;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Div(M::Num(1), M::Sqrt(x));
  }
};
struct Floor : Functor {
  static constexpr char kOp[] = "Floor";
  using Types = Floats;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Floor(x);
  }
};
struct Ceil : Functor {
  static constexpr char kOp[] = "Ceil";
  using Types = Floats;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Ceil(x);
  }
};
struct Round : Functor {
  static constexpr char kOp[] = "Round";
  using Types = SignedNumbers;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Round(x);
  }
};
struct Rint : Round {
  static constexpr char kOp[] = "Rint";
  using Types = List<float, double>;  // TensorFlow has no others
};
struct Conj : Functor {
  static constexpr char kOp[] = "Conj";
  using Types = Complexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Conj(x);
  }
};

// ---- two arguments

struct Add : Functor {
  static constexpr char kOp[] = "Add";
  static constexpr bool kStage = true;
  static constexpr bool kScalarLoops = true;
  using Types = JoinLists<Floats, List<uint8_t>, SignedIntegers, Complexes>;
  // Variables of type int32 are incremented on the device.
  using GpuTypes = JoinLists<Floats, List<int32_t, int64_t>>;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x, typename M::V y) {
    return M::Add(x, y);
  }
};
struct AddV2 : Add {
  static constexpr char kOp[] = "AddV2";
  using Types = Numbers;
};
struct Sub : Functor {
  static constexpr char kOp[] = "Sub";
  static constexpr bool kStage = true;
  static constexpr bool kScalarLoops = true;
  using Types = Numbers;
  // Variables of type int32 are incremented on the device.
  using GpuTypes = JoinLists<Floats, List<int32_t, int64_t>>;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x, typename M::V y) {
    return M::Sub(x, y);
  }
};
struct Mul : Functor {
  static constexpr char kOp[] = "Mul";
  static constexpr bool kStage = true;
  static constexpr bool kScalarLoops = true;
  using Types = Numbers;
  using GpuTypes = FloatsAndInt64;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x, typename M::V y) {
    return M::Mul(x, y);
  }
};
struct Div : Functor {
  static constexpr char kOp[] = "Div";
  static constexpr IntegerDomain kSecondInput = IntegerDomain::kNonzero;
  using Types = Numbers;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x, typename M::V y) {
    return M::Div(x, y);
  }
};
struct RealDiv : Div {
  static constexpr char kOp[] = "RealDiv";
  static constexpr bool kStage = true;
  static constexpr bool kScalarLoops = true;
  using Types = FloatsAndComplexes;  // in integers it would be rounded
};
struct DivNoNan : Functor {
  static constexpr char kOp[] = "DivNoNan";
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x, typename M::V y) {
    return M::If(M::Eq(y, M::Num(0)), M::Num(0), M::Div(x, y));
  }
};
struct Xdivy : DivNoNan {
  static constexpr char kOp[] = "Xdivy";
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x, typename M::V y) {
    return M::If(M::Eq(x, M::Num(0)), M::Num(0), M::Div(x, y));
  }
};
struct MulNoNan : Functor {
  static constexpr char kOp[] = "MulNoNan";
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x, typename M::V y) {
    return M::If(M::Eq(y, M::Num(0)), M::Num(0), M::Mul(x, y));
  }
};
struct Maximum : Functor {
  static constexpr char kOp[] = "Maximum";
  static constexpr bool kStage = true;
  static constexpr bool kScalarLoops = true;
  using Types = RealNumbers;
  using GpuTypes = FloatsAndInt64;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x, typename M::V y) {
    return M::Max(x, y);
  }
};
struct Minimum : Functor {
  static constexpr char kOp[] = "Minimum";
  static constexpr bool kStage = true;
  static constexpr bool kScalarLoops = true;
  using Types = RealNumbers;
  using GpuTypes = FloatsAndInt64;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x, typename M::V y) {
    return M::Min(x, y);
  }
};
struct SquaredDifference : Functor {
  static constexpr char kOp[] = "SquaredDifference";
  static constexpr bool kRoundsSteps = true;
  static constexpr bool kStage = true;
  static constexpr bool kScalarLoops = true;
  using Types = JoinLists<Floats, List<int32_t, int64_t>, Complexes>;
  using GpuTypes = FloatsAndInt64;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x, typename M::V y) {
    const typename M::V d = M::Sub(x, y);
    return M::Mul(M::Conj(d), d);
  }
};
struct FloorDiv : Functor {
  static constexpr char kOp[] = "FloorDiv";
  static constexpr bool kRoundsSteps = true;
  static constexpr IntegerDomain kSecondInput = IntegerDomain::kNonzero;
  using Types = RealNumbers;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x, typename M::V y) {
    if constexpr (M::kInteger) {
      const typename M::V q = M::Div(x, y), zero = M::Num(0);
      const bool inexact = M::Mul(q, y) != x;
      return inexact && ((x < zero) != (y < zero)) ? M::Sub(q, M::Num(1)) : q;
    } else {
      return M::Floor(M::Div(x, y));
    }
  }
};
struct TruncateDiv : Functor {
  static constexpr char kOp[] = "TruncateDiv";
  static constexpr bool kRoundsSteps = true;
  static constexpr IntegerDomain kSecondInput = IntegerDomain::kNonzero;
  using Types = RealNumbers;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x, typename M::V y) {
    if constexpr (M::kInteger)
      return M::Div(x, y);
    else
      return M::Trunc(M::Div(x, y));
  }
};
struct TruncateMod : Functor {
  static constexpr char kOp[] = "TruncateMod";
  static constexpr double kCost = 5;
  static constexpr bool kVectorized = false;
  static constexpr IntegerDomain kSecondInput = IntegerDomain::kNonzero;
  using Types = JoinLists<Floats, List<int32_t, int64_t>>;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x, typename M::V y) {
    return M::Mod(x, y);
  }
};
struct Mod : TruncateMod {
  static constexpr char kOp[] = "Mod";
};
struct FloorMod : Functor {
  static constexpr char kOp[] = "FloorMod";
  static constexpr double kCost = 5;
  static constexpr bool kVectorized = false;
  static constexpr IntegerDomain kSecondInput = IntegerDomain::kNonzero;
  using Types = RealNumbers;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x, typename M::V y) {
    const typename M::V r = M::Mod(x, y), zero = M::Num(0);
    return r != zero && ((r < zero) != (y < zero)) ? M::Add(r, y) : r;
  }
};
struct Pow : Functor {
  static constexpr char kOp[] = "Pow";
  static constexpr double kCost = 10;
  static constexpr bool kVectorized = false;
  static constexpr IntegerDomain kSecondInput = IntegerDomain::kNonnegative;
  using Types = SignedNumbers;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x, typename M::V y) {
    if constexpr (M::kInteger) {
      typename M::V result = M::Num(1);
      for (; y > 0; y /= 2, x = M::Mul(x, x)) {
        if (y % 2 != 0) result = M::Mul(result, x);
      }
      return result;
    } else {
      return M::Pow(x, y);
    }
  }
};

// ---- gradients, as functions of y = f(x) and dy. For complex numbers, the first two are given a
// conjugated y, as TensorFlow's gradient functions do; the others conjugate it themselves.

struct SigmoidGrad : GradientFunctor {
  static constexpr char kOp[] = "SigmoidGrad";
  static constexpr bool kRoundsSteps = true;
  static constexpr bool kStage = true;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V y, typename M::V dy) {
    return M::Mul(dy, M::Mul(y, M::Sub(M::Num(1), y)));
  }
};
struct TanhGrad : GradientFunctor {
  static constexpr char kOp[] = "TanhGrad";
  static constexpr bool kRoundsSteps = true;
  static constexpr bool kStage = true;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V y, typename M::V dy) {
    return M::Mul(dy, M::Sub(M::Num(1), M::Mul(y, y)));
  }
};
// A gradient of 0 stays 0 where the slope is infinite or no number.
template <class M>
WEIR_HD typename M::V UnlessZero(typename M::V dy, typename M::V product) {
  return M::If(M::Eq(dy, M::Num(0)), M::Num(0), product);
}
struct SqrtGrad : GradientFunctor {
  static constexpr char kOp[] = "SqrtGrad";
  static constexpr bool kRoundsSteps = true;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V y, typename M::V dy) {
    return UnlessZero<M>(dy, M::Mul(dy, M::Div(M::Num(0.5), M::Conj(y))));
  }
};
struct RsqrtGrad : GradientFunctor {
  static constexpr char kOp[] = "RsqrtGrad";
  static constexpr bool kRoundsSteps = true;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V y, typename M::V dy) {
    const typename M::V c = M::Conj(y);
    return UnlessZero<M>(dy, M::Mul(M::Mul(dy, c), M::Mul(M::Num(-0.5), M::Mul(c, c))));
  }
};
struct ReciprocalGrad : GradientFunctor {
  static constexpr char kOp[] = "ReciprocalGrad";
  static constexpr bool kRoundsSteps = true;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V y, typename M::V dy) {
    const typename M::V c = M::Conj(y);
    return UnlessZero<M>(dy, M::Mul(M::Neg(dy), M::Mul(c, c)));
  }
};
struct InvGrad : ReciprocalGrad {
  static constexpr char kOp[] = "InvGrad";
};

using UnaryArithmetic =
    Functors<Abs, Neg, Sign, Reciprocal, Inv, Square, Sqrt, Rsqrt, Floor, Ceil, Round, Rint, Conj>;
using BinaryArithmetic =
    Functors<Add, AddV2, Sub, Mul, Div, RealDiv, DivNoNan, Xdivy, MulNoNan, Maximum, Minimum,
             SquaredDifference, FloorDiv, TruncateDiv, TruncateMod, Mod, FloorMod, Pow, SigmoidGrad,
             TanhGrad, SqrtGrad, RsqrtGrad, ReciprocalGrad, InvGrad>;
