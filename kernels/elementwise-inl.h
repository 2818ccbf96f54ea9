// The math of elementwise ops. Each is a functor: a struct with
//   kOp       the name of the op,
//   Types     the element types that it supports (a List),
//   Apply<M>  the function of one or two values of type M::V, composed of the operations of M:
//             ScalarMath<T> for one element,
//             VectorMath<D> for a vector of floats or doubles,
// and optionally
//   kCost     nanoseconds per element if it is not memory-bound (default 0.2).
//
// A textual header without an include guard: kernels/elementwise.h includes it in namespace
// weir::functor for scalars (and CUDA), and each *_cpu.cc file includes it again inside each of
// Highway's target namespaces, because vector functions must be compiled for their target. 16-bit
// floats are computed in float.

// ---- one argument

struct Abs {
  static constexpr char kOp[] = "Abs";
  using Types = List<half, bfloat16, float, double, int8_t, int16_t, int32_t, int64_t>;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Abs(x);
  }
};
struct Neg {
  static constexpr char kOp[] = "Neg";
  using Types = SignedNumbers;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Neg(x);
  }
};
struct Sign {
  static constexpr char kOp[] = "Sign";
  using Types = SignedNumbers;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    if constexpr (M::kComplex) {
      const auto length = M::Abs(x);
      return length == M::Abs(M::Num(0)) ? M::Num(0) : x / length;
    } else {
      const typename M::V zero = M::Num(0);
      return M::If(M::Lt(zero, x), M::Num(1), M::If(M::Lt(x, zero), M::Num(-1), x));
    }
  }
};
struct Reciprocal {
  static constexpr char kOp[] = "Reciprocal";
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Div(M::Num(1), x);
  }
};
struct Inv : Reciprocal {
  static constexpr char kOp[] = "Inv";
};
struct Square {
  static constexpr char kOp[] = "Square";
  using Types = Numbers;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Mul(x, x);
  }
};
struct Sqrt {
  static constexpr char kOp[] = "Sqrt";
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Sqrt(x);
  }
};
struct Rsqrt {
  static constexpr char kOp[] = "Rsqrt";
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Div(M::Num(1), M::Sqrt(x));
  }
};
struct Floor {
  static constexpr char kOp[] = "Floor";
  using Types = Floats;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Floor(x);
  }
};
struct Ceil {
  static constexpr char kOp[] = "Ceil";
  using Types = Floats;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Ceil(x);
  }
};
struct Round {
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

struct Exp {
  static constexpr char kOp[] = "Exp";
  static constexpr double kCost = 0.5;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Exp(x);
  }
};
struct Expm1 {
  static constexpr char kOp[] = "Expm1";
  static constexpr double kCost = 0.7;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Expm1(x);
  }
};
struct Log {
  static constexpr char kOp[] = "Log";
  static constexpr double kCost = 0.6;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Log(x);
  }
};
struct Log1p {
  static constexpr char kOp[] = "Log1p";
  static constexpr double kCost = 0.7;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Log1p(x);
  }
};
struct Sin {
  static constexpr char kOp[] = "Sin";
  static constexpr double kCost = 0.6;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Sin(x);
  }
};
struct Cos {
  static constexpr char kOp[] = "Cos";
  static constexpr double kCost = 0.6;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Cos(x);
  }
};
struct Tan {
  static constexpr char kOp[] = "Tan";
  static constexpr double kCost = 1.2;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Tan(x);
  }
};
struct Asin {
  static constexpr char kOp[] = "Asin";
  static constexpr double kCost = 0.8;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Asin(x);
  }
};
struct Acos {
  static constexpr char kOp[] = "Acos";
  static constexpr double kCost = 0.8;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Acos(x);
  }
};
struct Atan {
  static constexpr char kOp[] = "Atan";
  static constexpr double kCost = 0.8;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Atan(x);
  }
};
struct Sinh {
  static constexpr char kOp[] = "Sinh";
  static constexpr double kCost = 0.8;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Sinh(x);
  }
};
struct Cosh {
  static constexpr char kOp[] = "Cosh";
  static constexpr double kCost = 0.8;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Cosh(x);
  }
};
struct Tanh {
  static constexpr char kOp[] = "Tanh";
  static constexpr double kCost = 0.8;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Tanh(x);
  }
};
struct Asinh {
  static constexpr char kOp[] = "Asinh";
  static constexpr double kCost = 1.2;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Asinh(x);
  }
};
struct Acosh {
  static constexpr char kOp[] = "Acosh";
  static constexpr double kCost = 1.2;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Acosh(x);
  }
};
struct Atanh {
  static constexpr char kOp[] = "Atanh";
  static constexpr double kCost = 1.0;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Atanh(x);
  }
};
struct Sigmoid {
  static constexpr char kOp[] = "Sigmoid";
  static constexpr double kCost = 0.7;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Div(M::Num(1), M::Add(M::Num(1), M::Exp(M::Neg(x))));
  }
};
struct Conj {
  static constexpr char kOp[] = "Conj";
  using Types = Complexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Conj(x);
  }
};

// ---- two arguments

struct Add {
  static constexpr char kOp[] = "Add";
  using Types = List<half, bfloat16, float, double, uint8_t, int8_t, int16_t, int32_t, int64_t,
                     std::complex<float>, std::complex<double>>;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x, typename M::V y) {
    return M::Add(x, y);
  }
};
struct AddV2 : Add {
  static constexpr char kOp[] = "AddV2";
  using Types = Numbers;
};
struct Sub {
  static constexpr char kOp[] = "Sub";
  using Types = Numbers;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x, typename M::V y) {
    return M::Sub(x, y);
  }
};
struct Mul {
  static constexpr char kOp[] = "Mul";
  using Types = Numbers;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x, typename M::V y) {
    return M::Mul(x, y);
  }
};
struct Div {
  static constexpr char kOp[] = "Div";
  using Types = Numbers;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x, typename M::V y) {
    return M::Div(x, y);
  }
};
struct RealDiv : Div {
  static constexpr char kOp[] = "RealDiv";
  using Types = FloatsAndComplexes;  // in integers it would be rounded
};
struct DivNoNan {
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
struct MulNoNan {
  static constexpr char kOp[] = "MulNoNan";
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x, typename M::V y) {
    return M::If(M::Eq(y, M::Num(0)), M::Num(0), M::Mul(x, y));
  }
};
struct Xlogy {
  static constexpr char kOp[] = "Xlogy";
  static constexpr double kCost = 0.8;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x, typename M::V y) {
    return M::If(M::Eq(x, M::Num(0)), M::Num(0), M::Mul(x, M::Log(y)));
  }
};
struct Xlog1py {
  static constexpr char kOp[] = "Xlog1py";
  static constexpr double kCost = 0.9;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x, typename M::V y) {
    return M::If(M::Eq(x, M::Num(0)), M::Num(0), M::Mul(x, M::Log1p(y)));
  }
};
struct Maximum {
  static constexpr char kOp[] = "Maximum";
  using Types = RealNumbers;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x, typename M::V y) {
    return M::Max(x, y);
  }
};
struct Minimum {
  static constexpr char kOp[] = "Minimum";
  using Types = RealNumbers;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x, typename M::V y) {
    return M::Min(x, y);
  }
};
struct SquaredDifference {
  static constexpr char kOp[] = "SquaredDifference";
  using Types = List<half, bfloat16, float, double, int32_t, int64_t, std::complex<float>,
                     std::complex<double>>;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x, typename M::V y) {
    const typename M::V d = M::Sub(x, y);
    return M::Mul(M::Conj(d), d);
  }
};
struct FloorDiv {
  static constexpr char kOp[] = "FloorDiv";
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
struct TruncateDiv {
  static constexpr char kOp[] = "TruncateDiv";
  using Types = RealNumbers;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x, typename M::V y) {
    if constexpr (M::kInteger)
      return M::Div(x, y);
    else
      return M::Trunc(M::Div(x, y));
  }
};
struct TruncateMod {
  static constexpr char kOp[] = "TruncateMod";
  static constexpr double kCost = 5;
  using Types = List<half, bfloat16, float, double, int32_t, int64_t>;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x, typename M::V y) {
    return M::Mod(x, y);
  }
};
struct Mod : TruncateMod {
  static constexpr char kOp[] = "Mod";
};
struct FloorMod {
  static constexpr char kOp[] = "FloorMod";
  static constexpr double kCost = 5;
  using Types = RealNumbers;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x, typename M::V y) {
    const typename M::V r = M::Mod(x, y), zero = M::Num(0);
    return r != zero && ((r < zero) != (y < zero)) ? M::Add(r, y) : r;
  }
};
struct Pow {
  static constexpr char kOp[] = "Pow";
  static constexpr double kCost = 10;
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

struct SigmoidGrad {
  static constexpr char kOp[] = "SigmoidGrad";
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V y, typename M::V dy) {
    return M::Mul(M::Mul(dy, y), M::Sub(M::Num(1), y));
  }
};
struct TanhGrad {
  static constexpr char kOp[] = "TanhGrad";
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V y, typename M::V dy) {
    return M::Mul(dy, M::Sub(M::Num(1), M::Mul(y, y)));
  }
};
struct SqrtGrad {
  static constexpr char kOp[] = "SqrtGrad";
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V y, typename M::V dy) {
    return M::Div(M::Mul(M::Num(0.5), dy), M::Conj(y));
  }
};
struct RsqrtGrad {
  static constexpr char kOp[] = "RsqrtGrad";
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V y, typename M::V dy) {
    const typename M::V c = M::Conj(y);
    return M::Mul(M::Mul(M::Num(-0.5), M::Mul(dy, c)), M::Mul(c, c));
  }
};
struct ReciprocalGrad {
  static constexpr char kOp[] = "ReciprocalGrad";
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V y, typename M::V dy) {
    const typename M::V c = M::Conj(y);
    return M::Mul(M::Neg(dy), M::Mul(c, c));
  }
};
struct InvGrad : ReciprocalGrad {
  static constexpr char kOp[] = "InvGrad";
};
