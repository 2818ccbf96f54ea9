// Functors (kernels/math/elementwise.h) for activation functions. A textual header without an
// include guard.

// The constants of self-normalizing networks (Klambauer et al. 2017): scale, and scale * alpha.
constexpr double kSeluScale = 1.0507009873554804934193349852946;
constexpr double kSeluScaleAlpha = 1.7580993408473768599402175208123;

// NaN propagates.
struct Relu : Functor {
  static constexpr char kOp[] = "Relu";
  static constexpr bool kStage = true;
  using Types = RealNumbers;
  using GpuTypes = FloatsAndInt64;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    const typename M::V zero = M::Num(0);
    return M::If(M::Lt(x, zero), zero, x);
  }
};
// As in TensorFlow, the gradient is multiplied by 0 or 1: an infinite one gives NaN where x is not
// positive.
struct ReluGrad : GradientFunctor {
  static constexpr char kOp[] = "ReluGrad";
  static constexpr bool kStage = true;
  using Types = RealNumbers;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V dy, typename M::V x) {
    return M::Mul(dy, M::If(M::Lt(M::Num(0), x), M::Num(1), M::Num(0)));
  }
};
struct Relu6 : Functor {
  static constexpr char kOp[] = "Relu6";
  static constexpr bool kStage = true;
  using Types = RealNumbers;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    const typename M::V zero = M::Num(0), six = M::Num(6);
    return M::If(M::Lt(x, zero), zero, M::If(M::Lt(six, x), six, x));
  }
};
struct Relu6Grad : GradientFunctor {
  static constexpr char kOp[] = "Relu6Grad";
  static constexpr bool kStage = true;
  using Types = RealNumbers;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V dy, typename M::V x) {
    const typename M::V zero = M::Num(0);
    return M::Mul(dy, M::If(M::Lt(zero, x), M::If(M::Lt(x, M::Num(6)), M::Num(1), zero), zero));
  }
};
// exp(x) - 1 where x is negative. It rounds to -1 below -80 in every type.
template <class M>
WEIR_HD typename M::V NegativeExpm1(typename M::V x) {
  return M::Expm1(M::Max(M::Min(x, M::Num(0)), M::Num(-80)));
}
struct Elu : Functor {
  static constexpr char kOp[] = "Elu";
  static constexpr bool kRoundsSteps = true;
  static constexpr double kCost = 0.8;
  using Types = Floats;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::If(M::Lt(x, M::Num(0)), NegativeExpm1<M>(x), x);
  }
};
struct EluGrad : GradientFunctor {
  static constexpr char kOp[] = "EluGrad";
  static constexpr bool kRoundsSteps = true;
  using Types = Floats;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V dy, typename M::V y) {
    return M::If(M::Lt(y, M::Num(0)), M::Mul(dy, M::Add(y, M::Num(1))), dy);
  }
};
struct Selu : Functor {
  static constexpr char kOp[] = "Selu";
  static constexpr bool kRoundsSteps = true;
  static constexpr double kCost = 0.8;
  using Types = Floats;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::If(M::Lt(x, M::Num(0)), M::Mul(M::Num(kSeluScaleAlpha), NegativeExpm1<M>(x)),
                 M::Mul(M::Num(kSeluScale), x));
  }
};
struct SeluGrad : GradientFunctor {
  static constexpr char kOp[] = "SeluGrad";
  static constexpr bool kRoundsSteps = true;
  using Types = Floats;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V dy, typename M::V y) {
    return M::Mul(
        dy, M::If(M::Lt(y, M::Num(0)), M::Add(y, M::Num(kSeluScaleAlpha)), M::Num(kSeluScale)));
  }
};
struct LeakyRelu : Functor {
  static constexpr char kOp[] = "LeakyRelu";
  static constexpr bool kRoundsSteps = true;
  static constexpr const char* kParam = "alpha";
  using Types = Floats;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x, typename M::V alpha) {
    return M::If(M::Lt(M::Num(0), x), x, M::Mul(alpha, x));
  }
};
struct LeakyReluGrad : GradientFunctor {
  static constexpr char kOp[] = "LeakyReluGrad";
  static constexpr bool kRoundsSteps = true;
  static constexpr const char* kParam = "alpha";
  using Types = Floats;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V dy, typename M::V x, typename M::V alpha) {
    return M::If(M::Lt(M::Num(0), x), dy, M::Mul(alpha, dy));
  }
};
struct Softplus : Functor {
  static constexpr char kOp[] = "Softplus";
  static constexpr bool kRoundsSteps = true;
  static constexpr double kCost = 1.2;
  using Types = Floats;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    if constexpr (requires { typename M::Narrow; }) {
      // TensorFlow's formula. Its threshold is -2 - log(epsilon), with Eigen's epsilons.
      const typename M::V e = M::Exp(x),
                          threshold = M::Num(std::is_same_v<typename M::Narrow, half> ? 7.0078125
                                                                                      : 2.84375);
      return M::If(M::Lt(threshold, x), x, M::If(M::Lt(x, M::Neg(threshold)), e, M::Log1p(e)));
    } else {
      // The argument is never positive: exp cannot overflow.
      return M::Add(M::Max(x, M::Num(0)), M::Log1p(M::Exp(M::Neg(M::Abs(x)))));
    }
  }
};
struct SoftplusGrad : GradientFunctor {
  static constexpr char kOp[] = "SoftplusGrad";
  static constexpr bool kRoundsSteps = true;
  static constexpr double kCost = 0.7;
  using Types = Floats;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V dy, typename M::V x) {
    return M::Div(dy, M::Add(M::Num(1), M::Exp(M::Neg(x))));
  }
};
struct Softsign : Functor {
  static constexpr char kOp[] = "Softsign";
  static constexpr bool kRoundsSteps = true;
  using Types = Floats;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V x) {
    return M::Div(x, M::Add(M::Num(1), M::Abs(x)));
  }
};
struct SoftsignGrad : GradientFunctor {
  static constexpr char kOp[] = "SoftsignGrad";
  static constexpr bool kRoundsSteps = true;
  using Types = Floats;
  template <class M>
  WEIR_HD static typename M::V Apply(typename M::V dy, typename M::V x) {
    const typename M::V d = M::Add(M::Num(1), M::Abs(x));
    return M::Div(dy, M::Mul(d, d));
  }
};

using UnaryActivations = Functors<Relu, Relu6, Elu, Selu, LeakyRelu, Softplus, Softsign>;
using BinaryActivations =
    Functors<ReluGrad, Relu6Grad, EluGrad, SeluGrad, LeakyReluGrad, SoftplusGrad, SoftsignGrad>;
