// Functors (kernels/math/elementwise.h) for elementary functions. A textual header without an
// include guard.

// ---- one argument

struct Exp : Functor {
  static constexpr char kOp[] = "Exp";
  static constexpr double kCost = 0.5;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Exp(x);
  }
};
struct Expm1 : Functor {
  static constexpr char kOp[] = "Expm1";
  static constexpr double kCost = 0.7;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Expm1(x);
  }
};
struct Log : Functor {
  static constexpr char kOp[] = "Log";
  static constexpr double kCost = 0.6;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Log(x);
  }
};
struct Log1p : Functor {
  static constexpr char kOp[] = "Log1p";
  static constexpr double kCost = 0.7;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Log1p(x);
  }
};
struct Sin : Functor {
  static constexpr char kOp[] = "Sin";
  static constexpr double kCost = 0.6;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Sin(x);
  }
};
struct Cos : Functor {
  static constexpr char kOp[] = "Cos";
  static constexpr double kCost = 0.6;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Cos(x);
  }
};
struct Tan : Functor {
  static constexpr char kOp[] = "Tan";
  static constexpr double kCost = 1.2;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Tan(x);
  }
};
struct Asin : Functor {
  static constexpr char kOp[] = "Asin";
  static constexpr double kCost = 0.8;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Asin(x);
  }
};
struct Acos : Functor {
  static constexpr char kOp[] = "Acos";
  static constexpr double kCost = 0.8;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Acos(x);
  }
};
struct Atan : Functor {
  static constexpr char kOp[] = "Atan";
  static constexpr double kCost = 0.8;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Atan(x);
  }
};
struct Sinh : Functor {
  static constexpr char kOp[] = "Sinh";
  static constexpr double kCost = 0.8;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Sinh(x);
  }
};
struct Cosh : Functor {
  static constexpr char kOp[] = "Cosh";
  static constexpr double kCost = 0.8;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Cosh(x);
  }
};
struct Tanh : Functor {
  static constexpr char kOp[] = "Tanh";
  static constexpr bool kStage = true;
  static constexpr double kCost = 0.8;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Tanh(x);
  }
};
struct Asinh : Functor {
  static constexpr char kOp[] = "Asinh";
  static constexpr double kCost = 1.2;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Asinh(x);
  }
};
struct Acosh : Functor {
  static constexpr char kOp[] = "Acosh";
  static constexpr double kCost = 1.2;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Acosh(x);
  }
};
struct Atanh : Functor {
  static constexpr char kOp[] = "Atanh";
  static constexpr double kCost = 1.0;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Atanh(x);
  }
};
struct Sigmoid : Functor {
  static constexpr char kOp[] = "Sigmoid";
  static constexpr bool kRoundsSteps = true;
  static constexpr double kCost = 0.7;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    const typename M::V one = M::Num(1);
    if constexpr (requires { typename M::Narrow; }) {
      const typename M::V e = M::Exp(x);  // as in TensorFlow, which rounds it
      return M::If(M::Eq(e, M::Num(HUGE_VAL)), one, M::Div(e, M::Add(one, e)));
    } else {
      return M::Div(one, M::Add(one, M::Exp(M::Neg(x))));
    }
  }
};
struct Erf : Functor {
  static constexpr char kOp[] = "Erf";
  static constexpr bool kStage = true;
  static constexpr double kCost = 0.8;
  using Types = Floats;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Erf(x);
  }
};
struct Erfc : Functor {
  static constexpr char kOp[] = "Erfc";
  static constexpr double kCost = 1.2;
  using Types = Floats;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Erfc(x);
  }
};

// ---- two arguments

struct Atan2 : Functor {
  static constexpr char kOp[] = "Atan2";
  static constexpr double kCost = 0.8;
  using Types = Floats;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V y, typename M::V x) {
    return M::Atan2(y, x);
  }
};
struct Xlogy : Functor {
  static constexpr char kOp[] = "Xlogy";
  static constexpr bool kRoundsSteps = true;
  static constexpr double kCost = 0.8;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x, typename M::V y) {
    return M::If(M::Eq(x, M::Num(0)), M::Num(0), M::Mul(x, M::Log(y)));
  }
};
struct Xlog1py : Functor {
  static constexpr char kOp[] = "Xlog1py";
  static constexpr bool kRoundsSteps = true;
  static constexpr double kCost = 0.9;
  using Types = FloatsAndComplexes;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x, typename M::V y) {
    return M::If(M::Eq(x, M::Num(0)), M::Num(0), M::Mul(x, M::Log1p(y)));
  }
};

using UnaryTranscendentals = Functors<Exp, Expm1, Log, Log1p, Sin, Cos, Tan, Asin, Acos, Atan, Sinh,
                                      Cosh, Tanh, Asinh, Acosh, Atanh, Sigmoid, Erf, Erfc>;
using BinaryTranscendentals = Functors<Atan2, Xlogy, Xlog1py>;
