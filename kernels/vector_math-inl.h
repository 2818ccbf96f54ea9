// The operations of functors for Highway vectors of floats or doubles, the counterpart of
// ScalarMath. A textual header without a guard, included inside each of Highway's target namespaces
// after "hwy/contrib/math/math-inl.h", where `hn` is hwy::HWY_NAMESPACE.
//
// Highway's elementary functions are within 4 units in the last place on the ranges they are made
// for, and wrong outside: log(0) and log(inf), exp of NaN, sine of large arguments. Exp and Log are
// mended with comparisons, as their special values are common (masks of -inf, counts of 0). The
// others compute lanes out of range one by one with the C library.

template <class D>
struct VectorMath {
  using V = hn::Vec<D>;
  using Mask = hn::Mask<D>;
  using T = hn::TFromD<D>;
  static constexpr bool kComplex = false;
  static constexpr bool kInteger = false;
  static constexpr bool kDouble = sizeof(T) == 8;

  static HWY_INLINE V Num(double c) { return hn::Set(D(), static_cast<T>(c)); }
  static HWY_INLINE V If(Mask m, V a, V b) { return hn::IfThenElse(m, a, b); }
  static HWY_INLINE Mask Lt(V a, V b) { return hn::Lt(a, b); }
  static HWY_INLINE Mask Le(V a, V b) { return hn::Le(a, b); }
  static HWY_INLINE Mask Eq(V a, V b) { return hn::Eq(a, b); }
  static HWY_INLINE Mask IsNan(V x) { return hn::IsNaN(x); }
  static HWY_INLINE V Add(V a, V b) { return hn::Add(a, b); }
  static HWY_INLINE V Sub(V a, V b) { return hn::Sub(a, b); }
  static HWY_INLINE V Mul(V a, V b) { return hn::Mul(a, b); }
  static HWY_INLINE V Div(V a, V b) { return hn::Div(a, b); }
  static HWY_INLINE V Neg(V x) { return hn::Neg(x); }
  static HWY_INLINE V Abs(V x) { return hn::Abs(x); }
  // The hardware's max and min give the second operand if either is NaN.
  static HWY_INLINE V Max(V a, V b) { return If(IsNan(a), a, If(hn::Gt(a, b), a, b)); }
  static HWY_INLINE V Min(V a, V b) { return If(IsNan(a), a, If(hn::Lt(a, b), a, b)); }
  static HWY_INLINE V Sqrt(V x) { return hn::Sqrt(x); }
  static HWY_INLINE V Floor(V x) { return hn::Floor(x); }
  static HWY_INLINE V Ceil(V x) { return hn::Ceil(x); }
  static HWY_INLINE V Trunc(V x) { return hn::Trunc(x); }
  static HWY_INLINE V Round(V x) { return hn::Round(x); }
  static HWY_INLINE V Conj(V x) { return x; }

  // Beyond 706 Highway's double overflows early: there e^x = e^(x - 64 log 2) * 2^64.
  static HWY_INLINE V Exp(V x) {
    const V high = Num(kDouble ? 709.782712893384 : 88.72283905206835),
            low = Num(kDouble ? -746 : -104);
    V bounded = hn::Min(hn::Max(x, low), high), scale = Num(1);
    if constexpr (kDouble) {
      const Mask big = hn::Gt(bounded, Num(700));
      bounded = If(big, hn::Sub(bounded, Num(44.361419555836498)), bounded);
      scale = If(big, Num(18446744073709551616.0), scale);
    }
    const V y = hn::Mul(hn::Exp(D(), bounded), scale);
    return If(IsNan(x), x, If(hn::Gt(x, high), Num(kInf), If(hn::Lt(x, low), Num(0), y)));
  }
  static HWY_INLINE V Log(V x) {
    const V zero = Num(0), inf = Num(kInf);
    V y = hn::Log(D(), x);
    y = If(hn::Eq(x, zero), hn::Neg(inf), y);
    y = If(hn::Eq(x, inf), inf, y);
    return If(hn::Ge(x, zero), y, Num(kNan));
  }
  static HWY_INLINE V Log1p(V x) {
    const V minus_one = Num(-1), inf = Num(kInf);
    V y = hn::Log1p(D(), x);
    y = If(hn::Eq(x, minus_one), hn::Neg(inf), y);
    y = If(hn::Eq(x, inf), inf, y);
    return If(hn::Ge(x, minus_one), y, Num(kNan));
  }
  static HWY_INLINE V Expm1(V x) {
    return Mend(x, InRange(x, kDouble ? 700 : 85), hn::Expm1(D(), x),
                [](T v) { return std::expm1(v); });
  }
  static HWY_INLINE V Sin(V x) {
    return Mend(x, InRange(x, 30000), hn::Sin(D(), x), [](T v) { return std::sin(v); });
  }
  static HWY_INLINE V Cos(V x) {
    return Mend(x, InRange(x, 30000), hn::Cos(D(), x), [](T v) { return std::cos(v); });
  }
  static HWY_INLINE V Tan(V x) {
    const V y = hn::Div(hn::Sin(D(), x), hn::Cos(D(), x));
    return Mend(x, InRange(x, 30000), y, [](T v) { return std::tan(v); });
  }
  static HWY_INLINE V Asin(V x) { return If(InRange(x, 1), hn::Asin(D(), x), Num(kNan)); }
  static HWY_INLINE V Acos(V x) { return If(InRange(x, 1), hn::Acos(D(), x), Num(kNan)); }
  static HWY_INLINE V Atan(V x) { return If(IsNan(x), x, hn::Atan(D(), x)); }
  static HWY_INLINE V Sinh(V x) {
    return Mend(x, InRange(x, kDouble ? 700 : 85), hn::Sinh(D(), x),
                [](T v) { return std::sinh(v); });
  }
  static HWY_INLINE V Cosh(V x) {
    const V e = hn::Exp(D(), hn::Abs(x)), y = hn::Mul(Num(0.5), hn::Add(e, hn::Div(Num(1), e)));
    return Mend(x, InRange(x, kDouble ? 700 : 85), y, [](T v) { return std::cosh(v); });
  }
  static HWY_INLINE V Tanh(V x) { return If(IsNan(x), x, hn::Tanh(D(), x)); }
  static HWY_INLINE V Asinh(V x) {
    return Mend(x, InRange(x, 1e15), hn::Asinh(D(), x), [](T v) { return std::asinh(v); });
  }
  static HWY_INLINE V Acosh(V x) {
    const Mask usual = hn::And(hn::Ge(x, Num(1)), hn::Le(x, Num(1e15)));
    return Mend(x, usual, hn::Acosh(D(), x), [](T v) { return std::acosh(v); });
  }
  static HWY_INLINE V Atanh(V x) {
    return Mend(x, hn::Lt(hn::Abs(x), Num(1)), hn::Atanh(D(), x),
                [](T v) { return std::atanh(v); });
  }

 private:
  static constexpr double kInf = std::numeric_limits<double>::infinity();
  static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

  static HWY_INLINE Mask InRange(V x, double limit) { return hn::Le(hn::Abs(x), Num(limit)); }

  // `fast` where `usual`; elsewhere the slow function of that lane of x.
  template <class Slow>
  static HWY_INLINE V Mend(V x, Mask usual, V fast, Slow slow) {
    if (HWY_LIKELY(hn::AllTrue(D(), usual))) return fast;
    return MendLanes(x, usual, fast, slow);
  }
  template <class Slow>
  static HWY_NOINLINE V MendLanes(V x, Mask usual, V fast, Slow slow) {
    HWY_ALIGN T in[hn::MaxLanes(D())];
    HWY_ALIGN T out[hn::MaxLanes(D())];
    HWY_ALIGN T good[hn::MaxLanes(D())];
    hn::Store(x, D(), in);
    hn::Store(fast, D(), out);
    hn::Store(If(usual, Num(1), Num(0)), D(), good);
    for (size_t i = 0; i < hn::Lanes(D()); ++i) {
      if (good[i] == 0) out[i] = slow(in[i]);
    }
    return hn::Load(D(), out);
  }
};
