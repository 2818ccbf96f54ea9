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
// around 0, within 1. Highway's odd functions lose the sign of -0, and its cosine of a double 0 is
// not 1. Highway has no error functions; ours are below Erf.

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
    return FixSpecialLanes(x, InRange(x, kDouble ? 700 : 85), hn::CopySign(hn::Expm1(D(), x), x),
                           [](T v) { return std::expm1(v); });
  }
  static HWY_INLINE V Sin(V x) {
    const V zero = hn::CopySign(Num(0), x);
    const V y = If(hn::Eq(x, Num(0)), zero, hn::Sin(D(), x));
    return FixSpecialLanes(x, InRange(x, 30000), y, [](T v) { return std::sin(v); });
  }
  static HWY_INLINE V Cos(V x) {
    V y = hn::Cos(D(), x);
    if constexpr (kDouble) y = If(hn::Eq(x, Num(0)), Num(1), y);
    return FixSpecialLanes(x, InRange(x, 30000), y, [](T v) { return std::cos(v); });
  }
  static HWY_INLINE V Tan(V x) {
    const V y = hn::Div(hn::Sin(D(), x), hn::Cos(D(), x));
    return FixSpecialLanes(x, InRange(x, 30000), If(hn::Eq(x, Num(0)), hn::CopySign(Num(0), x), y),
                           [](T v) { return std::tan(v); });
  }
  static HWY_INLINE V Asin(V x) { return If(InRange(x, 1), hn::Asin(D(), x), Num(kNan)); }
  static HWY_INLINE V Acos(V x) { return If(InRange(x, 1), hn::Acos(D(), x), Num(kNan)); }
  static HWY_INLINE V Atan(V x) { return If(IsNan(x), x, hn::Atan(D(), x)); }
  // The angle's octant leaves an arctangent of q <= 1, the smaller coordinate divided by the
  // larger, which is added to a multiple of pi/2 or subtracted from it. arctan q = q + q^3 p(q^2),
  // with a p whose maximum error is least, 4e-10 of the result for floats and 5e-18 for doubles.
  // The multiple of pi/2 has twice the digits of the type. Within 2 units in the last place.
  static HWY_INLINE V Atan2(V y, V x) {
    const V across = hn::Abs(x), up = hn::Abs(y);
    const Mask steep = hn::Gt(up, across), left = hn::Lt(hn::CopySign(Num(1), x), Num(0));
    const V shorter = If(steep, across, up), longer = If(steep, up, across);
    // 0 / 0 counts as 0 and inf / inf as 1, like IEEE 754's atan2. NaN stays NaN.
    const V equal = If(Eq(longer, Num(0)), Num(0), Num(1));
    const V q = If(Eq(shorter, longer), equal, hn::Div(shorter, longer)), z = hn::Mul(q, q);
    V p;
    if constexpr (kDouble) {
      p = Polynomial(z, 1.3219915473743196083e-5, -1.5210844273559324238e-4,
                     8.3107518630330623199e-4, -2.8842051895638031462e-3, 7.1950848562150126727e-3,
                     -0.013898503909568168867, 0.021982605198754479374, -0.029901966742384556479,
                     0.036640671670197415642, -0.042191154370285945172, 0.04722296748955058722,
                     -0.052535106061623616673, 0.058805259047181736736, -0.066664037097443566395,
                     0.076922797924352557776, -0.090909069984857327511, 0.11111111006733456043,
                     -0.14285714282563404699, 0.19999999999951220306, -0.33333333333333066457);
    } else {
      p = Polynomial(z, 1.1136318888e-3, -7.3171735428e-3, 0.022538206836, -0.044687994184,
                     0.067414592339, -0.088110310583, 0.11058207684, -0.14279830631, 0.19999670942,
                     -0.33333326895);
    }
    const V angle = hn::MulAdd(hn::Mul(q, z), p, q);
    const V turn = If(steep, Num(M_PI_2), If(left, Num(M_PI), Num(0)));
    const V rest = hn::Mul(turn, Num(kDouble ? 3.8981718325193756e-17 : -2.7827534378e-8));
    const V size = hn::Add(turn, hn::Add(rest, If(hn::Xor(steep, left), hn::Neg(angle), angle)));
    return hn::CopySign(size, y);
  }
  static HWY_INLINE V Sinh(V x) {
    // Highway halves small numbers on the way, and what it halves may become subnormal.
    const V y = If(hn::Lt(hn::Abs(x), Num(1e-9)), x, hn::Sinh(D(), x));
    return FixSpecialLanes(x, InRange(x, kDouble ? 700 : 85), y, [](T v) { return std::sinh(v); });
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
  // The error functions. The C library chooses one of many formulas by the argument's size; a
  // vector computes all that any of its lanes may need, so these are few and reach far.
  //
  // Up to 1, erf x = x + x q(x^2): the polynomial q begins with 0.128, so that the sum rounds about
  // as well as a single addition. Above 1, erf x = 1 - erfc x for doubles, and 1 - e^-g(x) for
  // floats, with a polynomial g whose error counts little, as erfc is small; from 4 on that is 1.
  // From 1/2 on, erfc x = e^-x^2 r / (1 + 2 x), with a polynomial r in (x - 4) / (x + 4), which
  // varies by a tenth only. A relative error of the result is an absolute one of the exponent, up
  // to 745. So x^2 is taken with twice the digits, and the lower ones, l, become a factor 1 - l.
  //
  // The polynomials have least maxima of the error, found by Lawson's iteration, below 5e-9
  // (floats) and 3e-18 (doubles) relative to the result. With rounding, Erf is within 1.5 units in
  // the last place, and Erfc within 4.5.
  static HWY_INLINE V Erf(V x) {
    const V size = hn::Abs(x);
    V far;
    if constexpr (kDouble) {
      far = hn::Sub(Num(1), ErfcOfLarge(size));
    } else {
      const V t = hn::Min(size, Num(4));
      const V g = Polynomial(t, -1.85539244956e-4, 2.93931422363e-3, -2.18043410948e-2,
                             0.103035727298, 0.638227130986, 1.12703940057, 3.53823889492e-4);
      far = hn::Sub(Num(1), ExpByPowers(hn::Neg(g), 127));
    }
    // False for NaN, which the polynomial passes on.
    return If(hn::Gt(size, Num(1)), hn::CopySign(far, x), ErfOfSmall(x));
  }
  static HWY_INLINE V Erfc(V x) {
    const V size = hn::Abs(x), large = ErfcOfLarge(size);
    const V far = If(hn::Lt(x, Num(0)), hn::Sub(Num(2), large), large);
    return If(hn::Gt(size, Num(0.5)), far, hn::Sub(Num(1), ErfOfSmall(x)));
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

  // Returns the polynomial with these coefficients, that of the highest power first.
  template <class... C>
  static HWY_INLINE V Polynomial(V x, double highest, C... others) {
    V y = Num(highest);
    ((y = hn::MulAdd(y, x, Num(others))), ...);
    return y;
  }

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

  // For |x| <= 1.
  static HWY_INLINE V ErfOfSmall(V x) {
    const V z = hn::Mul(x, x);
    V q;
    if constexpr (kDouble) {
      q = Polynomial(z, 5.9606467538134621803e-11, -1.1374931875741774976e-9,
                     1.4660322254414288812e-8, -1.635039521343067912e-7, 1.6461008377670960187e-6,
                     -1.4925595765603386218e-5, 1.2055331132666754686e-4, -8.5483269814171521006e-4,
                     5.2239776248282757192e-3, -2.686617064507785819e-2, 0.11283791670954884376,
                     -0.37612638903183748176, 0.12837916709551257377);
    } else {
      q = Polynomial(z, 7.88907443138e-5, -8.02082778142e-4, 5.18953382518e-3, -2.68544438096e-2,
                     0.11283600158, -0.376126271344, 0.128379165914);
    }
    return hn::MulAdd(x, q, x);
  }

  // erfc x for x >= 1/2. The power of two may be too small for the type, so it stays within bounds
  // until the end; subnormal results are rounded once.
  static HWY_INLINE V ErfcOfLarge(V x) {
    constexpr int kScale = kDouble ? 400 : 30;
    const V t = hn::Min(x, Num(kDouble ? 27.3 : 10.2)), square = hn::Mul(t, t);
    const V s = hn::Div(hn::Sub(t, Num(4)), hn::Add(t, Num(4)));
    V r;
    if constexpr (kDouble) {
      r = Polynomial(s, -1.0226275749019724638e-8, -1.2233590248438226269e-8,
                     1.0488017348886932807e-7, 6.7046559832239942264e-8, -8.214683883189595913e-7,
                     2.995363304886661065e-7, 5.7078126904565189391e-6, -0.000011224720430137198173,
                     -0.000024398597748569179339, 0.00015062249109149635637,
                     -0.00019925682653216090056, -0.00075777344777500881258,
                     0.0050319699963279799219, -0.0161977340383991337, 0.037167515535912664012,
                     -0.066330365813594742598, 0.093732834998424746026, -0.10103906603625437804,
                     0.068097054254691008729, 0.015379652102619039229, -0.13962111684056250256,
                     1.2329951186255525114);
    } else {
      r = Polynomial(s, 0.00527508228933, -0.0165726092523, 0.0369917291328, -0.0662629626371,
                     0.0937679389737, -0.101044205015, 0.0680945446015, 0.0153798055968,
                     -0.139621069188, 1.23299511772);
    }
    const V e = ExpByPowers(hn::Neg(square), (kDouble ? 1023 : 127) + kScale);
    const V exact = hn::NegMulAdd(e, SquareError(t, square), e);
    const V y = hn::Mul(exact, hn::Div(r, hn::Add(hn::Add(t, t), Num(1))));
    return hn::Mul(y, Num(kDouble ? 0x1p-400 : 0x1p-30));
  }
  // Returns x^2 - square, where `square` is x^2 rounded (Dekker 1971).
  static HWY_INLINE V SquareError(V x, V square) {
#if HWY_NATIVE_FMA
    return hn::MulSub(x, x, square);
#else
    constexpr int kBits = kDouble ? 27 : 12;
    const auto bits = hn::BitCast(hn::RebindToUnsigned<D>(), x);
    const V high = hn::BitCast(D(), hn::ShiftLeft<kBits>(hn::ShiftRight<kBits>(bits))),
            low = hn::Sub(x, high);
    const V cross = hn::Mul(high, low), known = hn::Sub(hn::Mul(high, high), square);
    return hn::MulAdd(low, low, hn::Add(known, hn::Add(cross, cross)));
#endif
  }

  // e^x times 2^(bias - 127), or 2^(bias - 1023) for doubles. x = n log 2 + r, and e^r = 1 + r +
  // r^2 q(r), with a q that was fitted for |r| <= log(2) / 2, to a relative error of 3e-9 (doubles:
  // 2e-18). Adding 1.5 * 2^23 (doubles: 2^52) rounds x / log 2 to n, and leaves n + bias in the
  // lowest bits, from which it is shifted to the exponent.
  static HWY_INLINE V ExpByPowers(V x, double bias) {
    const V shift = Num((kDouble ? 0x1.8p52 : 0x1.8p23) + bias);
    const V shifted = hn::MulAdd(x, Num(1.44269504088896341), shift), n = hn::Sub(shifted, shift);
    const auto bits = hn::BitCast(hn::RebindToUnsigned<D>(), shifted);
    const V power = hn::BitCast(D(), hn::ShiftLeft<(kDouble ? 52 : 23)>(bits));
    // log 2 in two parts, the first with few bits: n times it is exact.
    V r, q;
    if constexpr (kDouble) {
      const V near = hn::MulAdd(n, Num(-0.693147180369123816490), x);
      r = hn::MulAdd(n, Num(-1.90821492927058770002e-10), near);
      q = Polynomial(r, 2.0920492147345837078e-9, 2.5105310706302060541e-8,
                     2.7557256223252483136e-7, 2.7557255175359007023e-6, 2.4801587343841696637e-5,
                     1.9841269874997576352e-4, 1.3888888888875907559e-3, 8.3333333333260846359e-3,
                     4.1666666666666681515e-2, 0.16666666666666671028, 0.49999999999999999997);
    } else {
      const V near = hn::MulAdd(n, Num(-0.693145751953125), x);
      r = hn::MulAdd(n, Num(-1.42860676533018704e-6), near);
      q = Polynomial(r, 1.3814602e-3, 8.368716e-3, 4.166839e-2, 0.16666521, 0.49999994);
    }
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
};
