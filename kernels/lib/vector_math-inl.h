// The operations of functors for Highway vectors of floats or doubles, the counterpart of
// ScalarMath. A textual header without a guard, included inside each of Highway's target namespaces
// after "hwy/contrib/math/math-inl.h", where `hn` is hwy::HWY_NAMESPACE. Its includer includes
// weir/core/tensor/numeric_types.h.
//
// Highway's elementary functions are accurate to 4 units in the last place on the ranges they are
// designed for, and wrong outside: log(0) and log(inf), exp of NaN, sine of large arguments. Exp
// and Log are corrected with comparisons, because their special values are common (masks of -inf,
// counts of 0). The others compute out-of-range lanes one by one with the C library. Exp and tanh
// of floats are our own, in half the time: within 1 and 5 units in the last place; so is log1p
// around 0, within 1.

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
  // The hardware's max and min return the second operand if either is NaN.
  static HWY_INLINE V Max(V a, V b) { return If(IsNan(a), a, If(hn::Gt(a, b), a, b)); }
  static HWY_INLINE V Min(V a, V b) { return If(IsNan(a), a, If(hn::Lt(a, b), a, b)); }
  static HWY_INLINE V Sqrt(V x) { return hn::Sqrt(x); }
  static HWY_INLINE V Floor(V x) { return hn::Floor(x); }
  static HWY_INLINE V Ceil(V x) { return hn::Ceil(x); }
  static HWY_INLINE V Trunc(V x) { return hn::Trunc(x); }
  static HWY_INLINE V Round(V x) { return hn::Round(x); }
  static HWY_INLINE V Conj(V x) { return x; }

  // Floats: the nearest number of type N, half or bfloat16, ties to even.
  template <class N>
  static HWY_INLINE V RoundTo(V x) {
    if constexpr (std::is_same_v<N, bfloat16>) {
      return If(IsNan(x), x, DropBits<16>(x));
    } else {
      // Halves below 2^-14 are multiples of 2^-24, as floats from 1/2 to 1 are.
      const V size = Abs(x), tiny = hn::Sub(hn::Add(size, Num(0.5)), Num(0.5));
      const V y = If(hn::Lt(size, Num(0x1p-14)), hn::CopySign(tiny, x), DropBits<13>(x));
      const V bounded = If(hn::Ge(size, Num(65520)), hn::CopySign(Num(kInf), x), y);
      return If(IsNan(x), x, bounded);
    }
  }

  static HWY_INLINE V Exp(V x) {
    if constexpr (!kDouble) {
      // Splits the exponent into halves, so that the power of two is a float wherever the result
      // is.
      const Mask usual = hn::And(hn::Ge(x, Num(-86.6)), hn::Le(x, Num(88.72)));
      const V half = ExpByPowers(x, 126), y = hn::Add(half, half);
      return HWY_LIKELY(hn::AllTrue(D(), usual)) ? y : If(usual, y, ExpOfAny(x));
    } else {
      return ExpOfAny(x);
    }
  }
  // For vectors with no lane above 0. Floats: 0 from -87.3 down, where the result would soon be
  // subnormal.
  static HWY_INLINE V ExpOfNegative(V x) {
    if constexpr (kDouble) {
      return ExpOfAny(x);
    } else {
      return hn::IfThenZeroElse(hn::Lt(x, Num(-87.3)), ExpByPowers(x, 127));
    }
  }
  // Above 706 Highway's double overflows early: there e^x = e^(x - 64 log 2) * 2^64.
  static HWY_INLINE V ExpOfAny(V x) {
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
    if constexpr (kDouble) {
      return Log1pOfAny(x);
    } else {
      const Mask usual = hn::And(hn::Ge(x, Num(-0.5)), hn::Le(x, Num(1)));
      const V y = Log1pByQuotient(x);
      return HWY_LIKELY(hn::AllTrue(D(), usual)) ? y : If(usual, y, Log1pOfAny(x));
    }
  }
  static HWY_INLINE V Log1pOfAny(V x) {
    const V minus_one = Num(-1), inf = Num(kInf);
    V y = hn::Log1p(D(), x);
    y = If(hn::Eq(x, minus_one), hn::Neg(inf), y);
    y = If(hn::Eq(x, inf), inf, y);
    return If(hn::Ge(x, minus_one), y, Num(kNan));
  }
  static HWY_INLINE V Expm1(V x) {
    return FixSpecialLanes(x, InRange(x, kDouble ? 700 : 85), hn::Expm1(D(), x),
                           [](T v) { return std::expm1(v); });
  }
  static HWY_INLINE V Sin(V x) {
    return FixSpecialLanes(x, InRange(x, 30000), hn::Sin(D(), x), [](T v) { return std::sin(v); });
  }
  static HWY_INLINE V Cos(V x) {
    return FixSpecialLanes(x, InRange(x, 30000), hn::Cos(D(), x), [](T v) { return std::cos(v); });
  }
  static HWY_INLINE V Tan(V x) {
    const V y = hn::Div(hn::Sin(D(), x), hn::Cos(D(), x));
    return FixSpecialLanes(x, InRange(x, 30000), y, [](T v) { return std::tan(v); });
  }
  static HWY_INLINE V Asin(V x) { return If(InRange(x, 1), hn::Asin(D(), x), Num(kNan)); }
  static HWY_INLINE V Acos(V x) { return If(InRange(x, 1), hn::Acos(D(), x), Num(kNan)); }
  static HWY_INLINE V Atan(V x) { return If(IsNan(x), x, hn::Atan(D(), x)); }
  static HWY_INLINE V Sinh(V x) {
    return FixSpecialLanes(x, InRange(x, kDouble ? 700 : 85), hn::Sinh(D(), x),
                           [](T v) { return std::sinh(v); });
  }
  static HWY_INLINE V Cosh(V x) {
    const V e = hn::Exp(D(), hn::Abs(x)), y = hn::Mul(Num(0.5), hn::Add(e, hn::Div(Num(1), e)));
    return FixSpecialLanes(x, InRange(x, kDouble ? 700 : 85), y, [](T v) { return std::cosh(v); });
  }
  // Floats: a quotient of polynomials in x^2, fitted to a relative error of 2e-8 up to 9, where
  // tanh rounds to 1.
  static HWY_INLINE V Tanh(V x) {
    if constexpr (kDouble) {
      return If(IsNan(x), x, hn::Tanh(D(), x));
    } else {
      const V bounded = hn::Max(hn::Min(x, Num(9.1)), Num(-9.1)), z = hn::Mul(bounded, bounded);
      V p = Num(1.3354966785e-8), q = Num(7.7766899977e-7);
      p = hn::MulAdd(p, z, Num(2.0609325719e-5));
      q = hn::MulAdd(q, z, Num(3.2856599752e-4));
      p = hn::MulAdd(p, z, Num(3.4956039696e-3));
      q = hn::MulAdd(q, z, Num(2.5877043613e-2));
      p = hn::MulAdd(p, z, Num(0.13381039355));
      q = hn::MulAdd(q, z, Num(0.46714354976));
      p = hn::MulAdd(p, z, Num(1));
      q = hn::MulAdd(q, z, Num(1));
      const V y = hn::Div(hn::Mul(bounded, p), q);
      return If(IsNan(x), x, hn::Max(hn::Min(y, Num(1)), Num(-1)));
    }
  }
  static HWY_INLINE V Asinh(V x) {
    return FixSpecialLanes(x, InRange(x, 1e15), hn::Asinh(D(), x),
                           [](T v) { return std::asinh(v); });
  }
  static HWY_INLINE V Acosh(V x) {
    const Mask usual = hn::And(hn::Ge(x, Num(1)), hn::Le(x, Num(1e15)));
    return FixSpecialLanes(x, usual, hn::Acosh(D(), x), [](T v) { return std::acosh(v); });
  }
  static HWY_INLINE V Atanh(V x) {
    return FixSpecialLanes(x, hn::Lt(hn::Abs(x), Num(1)), hn::Atanh(D(), x),
                           [](T v) { return std::atanh(v); });
  }

 private:
  // Rounds to a float whose lowest bits are 0.
  template <int kBits>
  static HWY_INLINE V DropBits(V x) {
    const hn::RebindToUnsigned<D> du;
    const auto bits = hn::BitCast(du, x);
    const auto odd = hn::And(hn::ShiftRight<kBits>(bits), hn::Set(du, 1));
    const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, (1u << (kBits - 1)) - 1)));
    return hn::BitCast(D(), hn::ShiftLeft<kBits>(hn::ShiftRight<kBits>(rounded)));
  }

  static constexpr double kInf = std::numeric_limits<double>::infinity();
  static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

  // Floats: e^x times 2^(bias - 127). x = n log 2 + r, and e^r = 1 + r + r^2 q(r), with a q that
  // was fitted to a relative error of 3e-9 for |r| <= log(2) / 2. Adding 1.5 * 2^23 rounds x / log
  // 2 to n, and leaves n + bias in the lowest bits, from which it is shifted to a float's exponent.
  static HWY_INLINE V ExpByPowers(V x, double bias) {
    const V shift = Num(12582912 + bias);
    const V shifted = hn::MulAdd(x, Num(1.44269504088896341), shift), n = hn::Sub(shifted, shift);
    const auto bits = hn::BitCast(hn::RebindToUnsigned<D>(), shifted);
    const V power = hn::BitCast(D(), hn::ShiftLeft<23>(bits));
    // log 2 in two parts, the first with few bits: n times it is exact.
    const V near = hn::MulAdd(n, Num(-0.693145751953125), x);
    const V r = hn::MulAdd(n, Num(-1.42860676533018704e-6), near);
    V q = Num(1.3814602e-3);
    q = hn::MulAdd(q, r, Num(8.368716e-3));
    q = hn::MulAdd(q, r, Num(4.166839e-2));
    q = hn::MulAdd(q, r, Num(0.16666521));
    q = hn::MulAdd(q, r, Num(0.49999994));
    return hn::Mul(hn::Add(hn::MulAdd(q, hn::Mul(r, r), r), Num(1)), power);
  }

  // Floats from -1/2 to 1, as softplus and cross entropies use for e^-|x|: log(1 + x) = 2 atanh z
  // with z = x / (2 + x), which is 2 z + z^3 q(z^2), and 2 z = x - x z. The q was fitted to a
  // relative error of 5e-9.
  static HWY_INLINE V Log1pByQuotient(V x) {
    const V z = hn::Div(x, hn::Add(x, Num(2))), t = hn::Mul(z, z);
    V q = Num(0.28011987);
    q = hn::MulAdd(q, t, Num(0.280018052));
    q = hn::MulAdd(q, t, Num(0.400215272));
    q = hn::MulAdd(q, t, Num(0.666664163));
    return hn::MulAdd(z, hn::MulSub(q, t, x), x);
  }

  static HWY_INLINE Mask InRange(V x, double limit) { return hn::Le(hn::Abs(x), Num(limit)); }

  // Returns `fast` in lanes where `usual` is set; in other lanes the slow function of that lane of
  // x.
  template <class Slow>
  static HWY_INLINE V FixSpecialLanes(V x, Mask usual, V fast, Slow slow) {
    if (HWY_LIKELY(hn::AllTrue(D(), usual))) return fast;
    return ComputeLanesOneByOne(x, usual, fast, slow);
  }
  template <class Slow>
  static HWY_NOINLINE V ComputeLanesOneByOne(V x, Mask usual, V fast, Slow slow) {
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
