#include "weir/kernels/linalg/fft_passes.h"

#include <algorithm>
#include <utility>

#include "weir/kernels/linalg/unit_roots.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/linalg/fft_passes.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

// Stockham's autosort algorithm (Cochran et al., "What is the fast Fourier transform?", 1967; Van
// Loan, "Computational frameworks for the fast Fourier transform", 1992, section 1.7), with
// decimation in frequency. A pass of radix r sees its input as an array [r][m][s], where s is the
// product of the radices of the passes before. For each p < m and q < s it transforms the r numbers
// [.][p][q], multiplies result j by exp(-2 pi i p j / (r m)), and stores it as [p][j][q] of an
// array [m][r][s]. The last pass leaves the frequencies in order: there is no bit reversal, and the
// passes alternate between two arrays.
//
// A vector holds the same number of several transforms, one in each lane, so every load, store and
// butterfly is of whole vectors for every radix and stride, and the twiddle factor is the same in
// all lanes. Columns of a matrix lie in memory in this way; rows are transposed when they are
// loaded and stored. Real and imaginary parts are in vectors of their own, so that a complex
// product takes no shuffles. An inverse transform is the conjugate of the transform of the
// conjugate.
HWY_BEFORE_NAMESPACE();
namespace weir::fft {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
#include "weir/kernels/lib/partial_vectors-inl.h"

template <class T>
struct Blocks {
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(D()));
  static constexpr int64_t kRow = 2 * kLanes;  // the values of a block's row

  // A complex number per lane.
  struct C {
    V re, im;
  };
  static HWY_INLINE C Add(C a, C b) { return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)}; }
  static HWY_INLINE C Sub(C a, C b) { return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)}; }
  // a - i b and a + i b
  static HWY_INLINE C SubI(C a, C b) { return {hn::Add(a.re, b.im), hn::Sub(a.im, b.re)}; }
  static HWY_INLINE C AddI(C a, C b) { return {hn::Sub(a.re, b.im), hn::Add(a.im, b.re)}; }
  static HWY_INLINE C Mul(C a, V re, V im) {
    return {hn::NegMulAdd(a.im, im, hn::Mul(a.re, re)), hn::MulAdd(a.im, re, hn::Mul(a.re, im))};
  }
  static HWY_INLINE C Mul(C a, const T* w) {
    return Mul(a, hn::Set(D(), w[0]), hn::Set(D(), w[1]));
  }
  static HWY_INLINE C Scale(C a, V s) { return {hn::Mul(a.re, s), hn::Mul(a.im, s)}; }
  // a + s b
  static HWY_INLINE C MulAdd(C a, V s, C b) {
    return {hn::MulAdd(s, b.re, a.re), hn::MulAdd(s, b.im, a.im)};
  }

  // ---- where passes load from and store to

  // A block in scratch memory: row i is the real parts of number i, then the imaginary parts.
  struct Rows {
    T* at;
    HWY_INLINE C Load(int64_t i) const {
      return {hn::Load(D(), at + i * kRow), hn::Load(D(), at + i * kRow + kLanes)};
    }
    HWY_INLINE void Store(int64_t i, C x) const {
      hn::Store(x.re, D(), at + i * kRow);
      hn::Store(x.im, D(), at + i * kRow + kLanes);
    }
  };

  // Whole vectors of pairs in memory.
  struct PairsFrom {
    explicit PairsFrom(const From<T>& f)
        : at(f.at), pitch(f.pitch), sign(hn::Set(D(), f.conjugate ? T(-0.0) : T(0))) {}
    HWY_INLINE C Load(int64_t i) const {
      C x;
      hn::LoadInterleaved2(D(), at + i * pitch, x.re, x.im);
      return {x.re, hn::Xor(x.im, sign)};
    }
    const T* at;
    int64_t pitch;
    V sign;
  };
  struct PairsTo {
    explicit PairsTo(const To<T>& t)
        : at(t.at), pitch(t.pitch), re(hn::Set(D(), t.re_scale)), im(hn::Set(D(), t.im_scale)) {}
    HWY_INLINE void Store(int64_t i, C x) const {
      hn::StoreInterleaved2(hn::Mul(x.re, re), hn::Mul(x.im, im), D(), at + i * pitch);
    }
    T* at;
    int64_t pitch;
    V re, im;
  };

  // A column of an array in the split format, multiplied by the same column of another one.
  struct SplitProduct {
    const T *at, *factors;
    int64_t pitch;
    HWY_INLINE C Load(int64_t i) const {
      const T *x = at + i * pitch, *w = factors + i * pitch;
      return Mul({hn::Load(D(), x), hn::Load(D(), x + kLanes)}, hn::Load(D(), w),
                 hn::Load(D(), w + kLanes));
    }
  };

  // ---- butterflies

  template <bool kTwiddled, class Out>
  static HWY_INLINE void Store(const Out& out, int64_t i, C x, const T* w) {
    if constexpr (kTwiddled) x = Mul(x, w);
    out.Store(i, x);
  }

  template <bool kTwiddled, class In, class Out>
  static HWY_INLINE void Radix2(const In& in, int64_t i, int64_t step, const Out& out, int64_t o,
                                int64_t s, const T* w) {
    const C x0 = in.Load(i), x1 = in.Load(i + step);
    out.Store(o, Add(x0, x1));
    Store<kTwiddled>(out, o + s, Sub(x0, x1), w);
  }

  template <bool kTwiddled, class In, class Out>
  static HWY_INLINE void Radix3(const In& in, int64_t i, int64_t step, const Out& out, int64_t o,
                                int64_t s, const T* w) {
    const V half = hn::Set(D(), T(-0.5)), sine = hn::Set(D(), T(0.86602540378443864676L));
    const C x0 = in.Load(i), x1 = in.Load(i + step), x2 = in.Load(i + 2 * step);
    const C sum = Add(x1, x2), difference = Scale(Sub(x1, x2), sine);
    const C middle = MulAdd(x0, half, sum);
    out.Store(o, Add(x0, sum));
    Store<kTwiddled>(out, o + s, SubI(middle, difference), w);
    Store<kTwiddled>(out, o + 2 * s, AddI(middle, difference), w + 2);
  }

  template <bool kTwiddled, class In, class Out>
  static HWY_INLINE void Radix4(const In& in, int64_t i, int64_t step, const Out& out, int64_t o,
                                int64_t s, const T* w) {
    const C x0 = in.Load(i), x1 = in.Load(i + step);
    const C x2 = in.Load(i + 2 * step), x3 = in.Load(i + 3 * step);
    const C a = Add(x0, x2), b = Sub(x0, x2), c = Add(x1, x3), d = Sub(x1, x3);
    out.Store(o, Add(a, c));
    Store<kTwiddled>(out, o + s, SubI(b, d), w);
    Store<kTwiddled>(out, o + 2 * s, Sub(a, c), w + 2);
    Store<kTwiddled>(out, o + 3 * s, AddI(b, d), w + 4);
  }

  template <bool kTwiddled, class In, class Out>
  static HWY_INLINE void Radix5(const In& in, int64_t i, int64_t step, const Out& out, int64_t o,
                                int64_t s, const T* w) {
    const V c1 = hn::Set(D(), T(0.30901699437494742410L)),
            s1 = hn::Set(D(), T(0.95105651629515357212L));
    const V c2 = hn::Set(D(), T(-0.80901699437494742410L)),
            s2 = hn::Set(D(), T(0.58778525229247312917L));
    const C x0 = in.Load(i), x1 = in.Load(i + step), x2 = in.Load(i + 2 * step);
    const C x3 = in.Load(i + 3 * step), x4 = in.Load(i + 4 * step);
    const C a1 = Add(x1, x4), b1 = Sub(x1, x4), a2 = Add(x2, x3), b2 = Sub(x2, x3);
    const C m1 = MulAdd(MulAdd(x0, c1, a1), c2, a2), m2 = MulAdd(MulAdd(x0, c2, a1), c1, a2);
    const C d1 = MulAdd(Scale(b1, s1), s2, b2);
    const C d2 = {hn::MulSub(s2, b1.re, hn::Mul(s1, b2.re)),
                  hn::MulSub(s2, b1.im, hn::Mul(s1, b2.im))};
    out.Store(o, Add(x0, Add(a1, a2)));
    Store<kTwiddled>(out, o + s, SubI(m1, d1), w);
    Store<kTwiddled>(out, o + 2 * s, SubI(m2, d2), w + 2);
    Store<kTwiddled>(out, o + 3 * s, AddI(m2, d2), w + 4);
    Store<kTwiddled>(out, o + 4 * s, AddI(m1, d1), w + 6);
  }

  // Two transforms of four numbers, of the even and the odd ones.
  template <bool kTwiddled, class In, class Out>
  static HWY_INLINE void Radix8(const In& in, int64_t i, int64_t step, const Out& out, int64_t o,
                                int64_t s, const T* w) {
    const V diagonal = hn::Set(D(), T(0.70710678118654752440L));
    const C x0 = in.Load(i), x4 = in.Load(i + 4 * step);
    const C x2 = in.Load(i + 2 * step), x6 = in.Load(i + 6 * step);
    const C a = Add(x0, x4), b = Sub(x0, x4), c = Add(x2, x6), d = Sub(x2, x6);
    const C e0 = Add(a, c), e2 = Sub(a, c), e1 = SubI(b, d), e3 = AddI(b, d);
    const C x1 = in.Load(i + step), x5 = in.Load(i + 5 * step);
    const C x3 = in.Load(i + 3 * step), x7 = in.Load(i + 7 * step);
    const C f = Add(x1, x5), g = Sub(x1, x5), h = Add(x3, x7), k = Sub(x3, x7);
    const C o0 = Add(f, h), o2 = Sub(f, h), p1 = SubI(g, k), p3 = AddI(g, k);
    const C o1 = Scale({hn::Add(p1.re, p1.im), hn::Sub(p1.im, p1.re)}, diagonal);
    const C o3 = Scale({hn::Sub(p3.im, p3.re), hn::Add(p3.im, p3.re)}, diagonal);  // less its sign
    out.Store(o, Add(e0, o0));
    Store<kTwiddled>(out, o + s, Add(e1, o1), w);
    Store<kTwiddled>(out, o + 2 * s, SubI(e2, o2), w + 2);
    Store<kTwiddled>(out, o + 3 * s, C{hn::Add(e3.re, o3.re), hn::Sub(e3.im, o3.im)}, w + 4);
    Store<kTwiddled>(out, o + 4 * s, Sub(e0, o0), w + 6);
    Store<kTwiddled>(out, o + 5 * s, Sub(e1, o1), w + 8);
    Store<kTwiddled>(out, o + 6 * s, AddI(e2, o2), w + 10);
    Store<kTwiddled>(out, o + 7 * s, C{hn::Sub(e3.re, o3.re), hn::Add(e3.im, o3.im)}, w + 12);
  }

  // Any odd radix. Numbers k and r - k have conjugate factors: their sum takes only the cosines,
  // and their difference only the sines, which makes a quarter of the products. Adding up the sums
  // of short runs halves the rounding errors of long sums.
  template <bool kTwiddled, class In, class Out>
  static HWY_INLINE void RadixOdd(int64_t r, const T* roots, T* scratch, const In& in, int64_t i,
                                  int64_t step, const Out& out, int64_t o, int64_t s, const T* w) {
    constexpr int64_t kRun = 8;
    const Rows parts = {scratch};
    const int64_t half = r / 2;
    const C zero = {hn::Zero(D()), hn::Zero(D())};
    const C x0 = in.Load(i);
    C total = x0;
    for (int64_t k = 1; k <= half;) {
      C sum = zero;
      for (const int64_t end = std::min(half + 1, k + kRun); k < end; ++k) {
        const C u = in.Load(i + k * step), v = in.Load(i + (r - k) * step);
        const C both = Add(u, v);
        parts.Store(k, both);
        parts.Store(r - k, Sub(u, v));
        sum = Add(sum, both);
      }
      total = Add(total, sum);
    }
    out.Store(o, total);
    for (int64_t j = 1; j <= half; ++j) {
      C even = x0, odd = zero;
      for (int64_t k = 1, at = j; k <= half;) {
        C cosines = zero, sines = zero;
        for (const int64_t end = std::min(half + 1, k + kRun); k < end; ++k) {
          cosines = MulAdd(cosines, hn::Set(D(), roots[2 * at]), parts.Load(k));
          sines = MulAdd(sines, hn::Set(D(), roots[2 * at + 1]), parts.Load(r - k));
          at += j;
          if (at >= r) at -= r;
        }
        even = Add(even, cosines);
        odd = Add(odd, sines);
      }
      Store<kTwiddled>(out, o + j * s, AddI(even, odd), w + 2 * (j - 1));
      Store<kTwiddled>(out, o + (r - j) * s, SubI(even, odd), w + 2 * (r - j - 1));
    }
  }

  template <bool kTwiddled, class In, class Out>
  static HWY_INLINE void Butterflies(const Passes<T>& f, const typename Passes<T>::Pass& pass,
                                     int64_t p, const In& in, const Out& out, T* scratch) {
    const int64_t r = pass.radix, s = pass.stride, step = f.n / r;
    const T* const w = f.factors.data() + pass.twiddles + 2 * (r - 1) * p;
    const int64_t i = p * s, o = p * r * s;
    switch (r) {
      case 2:
        for (int64_t q = 0; q < s; ++q) Radix2<kTwiddled>(in, i + q, step, out, o + q, s, w);
        return;
      case 3:
        for (int64_t q = 0; q < s; ++q) Radix3<kTwiddled>(in, i + q, step, out, o + q, s, w);
        return;
      case 4:
        for (int64_t q = 0; q < s; ++q) Radix4<kTwiddled>(in, i + q, step, out, o + q, s, w);
        return;
      case 5:
        for (int64_t q = 0; q < s; ++q) Radix5<kTwiddled>(in, i + q, step, out, o + q, s, w);
        return;
      case 8:
        for (int64_t q = 0; q < s; ++q) Radix8<kTwiddled>(in, i + q, step, out, o + q, s, w);
        return;
      default:
        for (int64_t q = 0; q < s; ++q) {
          RadixOdd<kTwiddled>(r, f.factors.data() + pass.roots, scratch, in, i + q, step, out,
                              o + q, s, w);
        }
    }
  }

  template <class In, class Out>
  static HWY_NOINLINE void RunPass(const Passes<T>& f, size_t index, const In& in, const Out& out,
                                   T* scratch) {
    const auto& pass = f.passes[index];
    const int64_t m = f.n / (pass.radix * pass.stride);
    Butterflies<false>(f, pass, 0, in, out, scratch);
    for (int64_t p = 1; p < m; ++p) Butterflies<true>(f, pass, p, in, out, scratch);
  }

  // ---- whole transforms

  // The two arrays of a block, and what RadixOdd needs.
  struct Scratch {
    Scratch(const Passes<T>& f, T* scratch)
        : a(scratch), b(a + (2 * f.n + 1) * kRow), radix(b + (2 * f.n + 1) * kRow) {}
    T *a, *b, *radix;
  };

  // Runs all passes but the last `left`, at least one. Returns where the result is.
  template <class In>
  static HWY_INLINE T* RunPasses(const Passes<T>& f, const In& in, const Scratch& scratch,
                                 size_t left = 0) {
    T *now = scratch.a, *other = scratch.b;
    if (f.passes.empty()) {
      for (int64_t i = 0; i < f.n; ++i) Rows{now}.Store(i, in.Load(i));
      return now;
    }
    RunPass(f, 0, in, Rows{now}, scratch.radix);
    for (size_t k = 1; k + left < f.passes.size(); ++k) {
      RunPass(f, k, Rows{now}, Rows{other}, scratch.radix);
      std::swap(now, other);
    }
    return now;
  }

  // Runs the passes from `in` to memory.
  template <class In>
  static HWY_INLINE void RunToPairs(const Passes<T>& f, const In& in, const To<T>& to,
                                    int64_t count, const Scratch& scratch) {
    const bool whole = count == kLanes && f.passes.size() > 1;
    T* const result = RunPasses(f, in, scratch, whole ? 1 : 0);
    if (whole) {
      RunPass(f, f.passes.size() - 1, Rows{result}, PairsTo(to), scratch.radix);
      return;
    }
    HWY_ALIGN T pairs[kRow];
    To<T> one = to;
    one.at = pairs;
    const PairsTo buffer(one);
    for (int64_t i = 0; i < f.n; ++i) {
      buffer.Store(0, Rows{result}.Load(i));
      std::copy_n(pairs, 2 * count, to.at + i * to.pitch);
    }
  }

  // Loads n numbers of up to kLanes columns; the lanes without a column are zero.
  static HWY_INLINE void LoadSomePairs(const From<T>& from, int64_t n, int64_t count, T* block) {
    const V sign = PairsFrom(from).sign;
    for (int64_t i = 0; i < n; ++i) {
      const T* const x = from.at + i * from.pitch;
      const V low = LoadPartial(D(), x, std::min(2 * count, kLanes), T(0));
      const V high = 2 * count > kLanes ? LoadPartial(D(), x + kLanes, 2 * count - kLanes, T(0))
                                        : hn::Zero(D());
      hn::Store(low, D(), block + i * kRow);
      hn::Store(high, D(), block + i * kRow + kLanes);
      C pairs;
      hn::LoadInterleaved2(D(), block + i * kRow, pairs.re, pairs.im);
      Rows{block}.Store(i, {pairs.re, hn::Xor(pairs.im, sign)});
    }
  }

  // ---- transposition, in squares of 128-bit vectors

  static constexpr int64_t kSquare = std::min<int64_t>(16 / sizeof(T), kLanes);
  using Q = hn::FixedTag<T, kSquare>;
  using VQ = hn::Vec<Q>;

  struct Square {
    VQ v0, v1, v2, v3;  // those from kSquare on are not used
  };

  static HWY_INLINE Square LoadSquare(const T* at) {
    return {hn::Load(Q(), at), hn::Load(Q(), at + (kSquare > 1 ? kRow : 0)),
            hn::Load(Q(), at + (kSquare > 2 ? 2 * kRow : 0)),
            hn::Load(Q(), at + (kSquare > 2 ? 3 * kRow : 0))};
  }
  static HWY_INLINE void StoreSquare(const Square& s, T* at, int64_t pitch) {
    hn::Store(s.v0, Q(), at);
    if constexpr (kSquare > 1) hn::Store(s.v1, Q(), at + pitch);
    if constexpr (kSquare > 2) hn::Store(s.v2, Q(), at + 2 * pitch);
    if constexpr (kSquare > 2) hn::Store(s.v3, Q(), at + 3 * pitch);
  }
  static HWY_INLINE Square Mul(const Square& s, VQ x) {
    return {hn::Mul(s.v0, x), hn::Mul(s.v1, x), hn::Mul(s.v2, x), hn::Mul(s.v3, x)};
  }

  static HWY_INLINE Square Transpose(const Square& s) {
#if HWY_TARGET != HWY_SCALAR  // with one lane there is nothing to do
    const Q q;
    if constexpr (kSquare == 2) {
      return {hn::InterleaveLower(q, s.v0, s.v1), hn::InterleaveUpper(q, s.v0, s.v1), s.v2, s.v3};
    } else {
      const VQ a = hn::InterleaveLower(q, s.v0, s.v2), b = hn::InterleaveUpper(q, s.v0, s.v2);
      const VQ c = hn::InterleaveLower(q, s.v1, s.v3), d = hn::InterleaveUpper(q, s.v1, s.v3);
      return {hn::InterleaveLower(q, a, c), hn::InterleaveUpper(q, a, c),
              hn::InterleaveLower(q, b, d), hn::InterleaveUpper(q, b, d)};
    }
#else
    return s;
#endif
  }

  // The real and imaginary parts of kSquare pairs of each of kSquare lines.
  static HWY_INLINE void LoadPairs(const T* at, int64_t pitch, Square* re, Square* im) {
    hn::LoadInterleaved2(Q(), at, re->v0, im->v0);
    hn::LoadInterleaved2(Q(), at + (kSquare > 1 ? pitch : 0), re->v1, im->v1);
    hn::LoadInterleaved2(Q(), at + (kSquare > 2 ? 2 * pitch : 0), re->v2, im->v2);
    hn::LoadInterleaved2(Q(), at + (kSquare > 2 ? 3 * pitch : 0), re->v3, im->v3);
  }
  static HWY_INLINE void StorePairs(const Square& re, const Square& im, T* at, int64_t pitch) {
    hn::StoreInterleaved2(re.v0, im.v0, Q(), at);
    if constexpr (kSquare > 1) hn::StoreInterleaved2(re.v1, im.v1, Q(), at + pitch);
    if constexpr (kSquare > 2) hn::StoreInterleaved2(re.v2, im.v2, Q(), at + 2 * pitch);
    if constexpr (kSquare > 2) hn::StoreInterleaved2(re.v3, im.v3, Q(), at + 3 * pitch);
  }

  // Loads n pairs of each of `count` rows.
  static void LoadRows(const From<T>& from, int64_t n, int64_t count, T* block) {
    if (count < kLanes) std::fill_n(block, n * kRow, T(0));
    const VQ sign = hn::Set(Q(), from.conjugate ? T(-1) : T(1));
    const int64_t squares = n / kSquare * kSquare, whole = count / kSquare * kSquare;
    for (int64_t row = 0; row < whole; row += kSquare) {
      for (int64_t i = 0; i < squares; i += kSquare) {
        Square re, im;
        LoadPairs(from.at + row * from.pitch + 2 * i, from.pitch, &re, &im);
        StoreSquare(Transpose(re), block + i * kRow + row, kRow);
        StoreSquare(Mul(Transpose(im), sign), block + i * kRow + kLanes + row, kRow);
      }
    }
    for (int64_t row = 0; row < count; ++row) {
      const T* const x = from.at + row * from.pitch;
      for (int64_t i = row < whole ? squares : 0; i < n; ++i) {
        block[i * kRow + row] = x[2 * i];
        block[i * kRow + kLanes + row] = from.conjugate ? -x[2 * i + 1] : x[2 * i + 1];
      }
    }
  }

  static void StoreRows(const T* block, int64_t n, int64_t count, const To<T>& to) {
    const VQ re_scale = hn::Set(Q(), to.re_scale), im_scale = hn::Set(Q(), to.im_scale);
    const int64_t squares = n / kSquare * kSquare, whole = count / kSquare * kSquare;
    for (int64_t row = 0; row < whole; row += kSquare) {
      for (int64_t i = 0; i < squares; i += kSquare) {
        const T* const x = block + i * kRow + row;
        StorePairs(Mul(Transpose(LoadSquare(x)), re_scale),
                   Mul(Transpose(LoadSquare(x + kLanes)), im_scale), to.at + row * to.pitch + 2 * i,
                   to.pitch);
      }
    }
    for (int64_t row = 0; row < count; ++row) {
      T* const y = to.at + row * to.pitch;
      for (int64_t i = row < whole ? squares : 0; i < n; ++i) {
        y[2 * i] = to.re_scale * block[i * kRow + row];
        y[2 * i + 1] = to.im_scale * block[i * kRow + kLanes + row];
      }
    }
  }

  // Stores column k of the block as row k of an array in the split format.
  static void StoreSplit(const T* block, int64_t n, int64_t count, const To<T>& to) {
    const int64_t squares = n / kSquare * kSquare, whole = count / kSquare * kSquare;
    const auto place = [](int64_t i) { return i / kLanes * kRow + i % kLanes; };
    for (int64_t i = 0; i < squares; i += kSquare) {
      for (int64_t row = 0; row < whole; row += kSquare) {
        const T* const x = block + i * kRow + row;
        T* const y = to.at + row * to.pitch + place(i);
        StoreSquare(Transpose(LoadSquare(x)), y, to.pitch);
        StoreSquare(Transpose(LoadSquare(x + kLanes)), y + kLanes, to.pitch);
      }
    }
    const int64_t padded = (n + kLanes - 1) / kLanes * kLanes;
    for (int64_t row = 0; row < count; ++row) {
      T* const y = to.at + row * to.pitch;
      for (int64_t i = row < whole ? squares : 0; i < padded; ++i) {
        y[place(i)] = i < n ? block[i * kRow + row] : 0;
        y[place(i) + kLanes] = i < n ? block[i * kRow + kLanes + row] : 0;
      }
    }
  }

  // ---- real transforms

  // 2h real numbers make h complex ones z[j] = x[2j] + i x[2j + 1] (Press et al., "Numerical
  // recipes", section 12.3). With their transform Z, w = exp(-2 pi i / (2h)), and Z[h] = Z[0],
  //
  //   X[k] = (Z[k] + conj Z[h - k]) / 2 - i w^k (Z[k] - conj Z[h - k]) / 2.
  //
  // X[h - k] is computed from the same two numbers. The conjugate of an inverse transform takes the
  // same steps from X to Z, less a factor of two. Numbers 0 and h have no imaginary parts, and the
  // callers convert them.
  static HWY_INLINE void Untangle(C* x, C* y, V re, V im) {
    const V half = hn::Set(D(), T(0.5));
    // Halved first, so that no sum exceeds what the result can.
    const C first = Scale(*x, half), mirrored = Scale({y->re, hn::Neg(y->im)}, half);
    const C even = Add(first, mirrored), odd = Mul(Sub(first, mirrored), re, im);
    const C sum = SubI(even, odd), difference = AddI(even, odd);
    *x = sum;
    *y = {difference.re, hn::Neg(difference.im)};
  }

  static void UntangleBlock(T* block, int64_t h, const T* halves) {
    const Rows rows = {block};
    for (int64_t k = 1; k <= h / 2; ++k) {
      C x = rows.Load(k), y = rows.Load(h - k);
      Untangle(&x, &y, hn::Set(D(), halves[2 * k]), hn::Set(D(), halves[2 * k + 1]));
      rows.Store(h - k, y);
      rows.Store(k, x);
    }
  }

  static void UntangleLine(T* line, int64_t h, const T* halves) {
    int64_t k = 1;
    for (; k + kLanes <= h - k - kLanes + 1; k += kLanes) {
      T* const at = line + 2 * (h - k - kLanes + 1);
      C x, y, w;
      hn::LoadInterleaved2(D(), line + 2 * k, x.re, x.im);
      hn::LoadInterleaved2(D(), at, y.re, y.im);
      hn::LoadInterleaved2(D(), halves + 2 * k, w.re, w.im);
      y = {hn::Reverse(D(), y.re), hn::Reverse(D(), y.im)};
      Untangle(&x, &y, w.re, w.im);
      hn::StoreInterleaved2(x.re, x.im, D(), line + 2 * k);
      hn::StoreInterleaved2(hn::Reverse(D(), y.re), hn::Reverse(D(), y.im), D(), at);
    }
    for (; k <= h / 2; ++k) {
      T *const p = line + 2 * k, *const q = line + 2 * (h - k);
      C x = {hn::Set(D(), p[0]), hn::Set(D(), p[1])}, y = {hn::Set(D(), q[0]), hn::Set(D(), q[1])};
      Untangle(&x, &y, hn::Set(D(), halves[2 * k]), hn::Set(D(), halves[2 * k + 1]));
      q[0] = hn::GetLane(y.re);
      q[1] = hn::GetLane(y.im);
      p[0] = hn::GetLane(x.re);
      p[1] = hn::GetLane(x.im);
    }
  }

  // ---- the functions of BlockFunctions

  static void RunRows(const RowTransform<T>& t, From<T> from, To<T> to, int64_t count, T* memory) {
    const Passes<T>& f = *t.passes;
    const Scratch scratch(f, memory);
    T* const in = scratch.b;
    const int64_t n = t.n, half = n / 2 + 1;
    if (t.kind == Kind::kComplex) {
      LoadRows(from, n, count, in);
      StoreRows(RunPasses(f, Rows{in}, scratch), n, count, to);
    } else if (t.kind == Kind::kFromReal && n % 2 == 0) {
      LoadRows(from, n / 2, count, in);
      T* const x = RunPasses(f, Rows{in}, scratch);
      UntangleBlock(x, n / 2, t.halves);
      const Rows rows = {x};
      const C first = rows.Load(0);
      rows.Store(0, {hn::Add(first.re, first.im), hn::Zero(D())});
      rows.Store(n / 2, {hn::Sub(first.re, first.im), hn::Zero(D())});
      StoreRows(x, half, count, to);
    } else if (t.kind == Kind::kFromReal) {
      LoadRealRows(from, n, count, in);
      StoreRows(RunPasses(f, Rows{in}, scratch), half, count, to);
    } else if (n % 2 == 0) {
      LoadRows(from, half, count, in);
      UntangleBlock(in, n / 2, t.halves);
      const V factor = hn::Set(D(), T(0.5));
      const V first = hn::Mul(hn::Load(D(), in), factor);
      const V last = hn::Mul(hn::Load(D(), in + n / 2 * kRow), factor);
      Rows{in}.Store(0, {hn::Add(first, last), hn::Sub(last, first)});
      StoreRows(RunPasses(f, Rows{in}, scratch), n / 2, count, to);
    } else {
      LoadRows(from, half, count, in);
      const Rows rows = {in};
      hn::Store(hn::Zero(D()), D(), in + kLanes);
      for (int64_t k = 1; k < half; ++k) {
        const C x = rows.Load(k);
        rows.Store(n - k, {x.re, hn::Neg(x.im)});
      }
      StoreRealRows(RunPasses(f, Rows{in}, scratch), n, count, to);
    }
  }

  static void LoadRealRows(const From<T>& from, int64_t n, int64_t count, T* block) {
    std::fill_n(block, n * kRow, T(0));
    for (int64_t row = 0; row < count; ++row) {
      for (int64_t i = 0; i < n; ++i) block[i * kRow + row] = from.at[row * from.pitch + i];
    }
  }

  static void StoreRealRows(const T* block, int64_t n, int64_t count, const To<T>& to) {
    for (int64_t row = 0; row < count; ++row) {
      for (int64_t i = 0; i < n; ++i) {
        to.at[row * to.pitch + i] = to.re_scale * block[i * kRow + row];
      }
    }
  }

  static void RunColumns(const Passes<T>& f, From<T> from, To<T> to, int64_t count, T* memory) {
    const Scratch scratch(f, memory);
    if (count == kLanes) {
      RunToPairs(f, PairsFrom(from), to, count, scratch);
    } else {
      LoadSomePairs(from, f.n, count, scratch.b);
      RunToPairs(f, Rows{scratch.b}, to, count, scratch);
    }
  }

  static void ColumnsToSplit(const Passes<T>& f, From<T> from, To<T> to, int64_t count, T* memory) {
    const Scratch scratch(f, memory);
    if (count == kLanes) {
      StoreSplit(RunPasses(f, PairsFrom(from), scratch), f.n, count, to);
    } else {
      LoadSomePairs(from, f.n, count, scratch.b);
      StoreSplit(RunPasses(f, Rows{scratch.b}, scratch), f.n, count, to);
    }
  }

  static void SplitToColumns(const Passes<T>& f, From<T> from, const T* twiddles, To<T> to,
                             int64_t count, T* memory) {
    RunToPairs(f, SplitProduct{from.at, twiddles, from.pitch}, to, count, Scratch(f, memory));
  }

  static void Multiply(From<T> from, const T* factors, To<T> to, int64_t n) {
    const PairsFrom x({from.at, 2, from.conjugate}), w({factors, 2});
    const PairsTo y({to.at, 2, to.re_scale, to.im_scale});
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      const C factor = w.Load(i);
      y.Store(i, Mul(x.Load(i), factor.re, factor.im));
    }
    for (; i < n; ++i) {
      const T re = from.at[2 * i], im = from.conjugate ? -from.at[2 * i + 1] : from.at[2 * i + 1];
      const T u = factors[2 * i], v = factors[2 * i + 1];
      to.at[2 * i] = to.re_scale * (re * u - im * v);
      to.at[2 * i + 1] = to.im_scale * (re * v + im * u);
    }
  }

  static void Fill(BlockFunctions<T>* f) {
    f->lanes = kLanes;
    f->rows = RunRows;
    f->columns = RunColumns;
    f->columns_to_split = ColumnsToSplit;
    f->split_to_columns = SplitToColumns;
    f->untangle = UntangleLine;
    f->multiply = Multiply;
  }
};

void FillFloat(BlockFunctions<float>* f) { Blocks<float>::Fill(f); }
void FillDouble(BlockFunctions<double>* f) { Blocks<double>::Fill(f); }

}  // namespace HWY_NAMESPACE
}  // namespace weir::fft
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir::fft {

namespace {

HWY_EXPORT(FillFloat);
HWY_EXPORT(FillDouble);

// Eights, a rest of two or four, and the odd prime factors in ascending order.
std::vector<int64_t> RadicesOf(int64_t n) {
  std::vector<int64_t> radices;
  int twos = 0;
  while (n % 2 == 0) {
    n /= 2;
    ++twos;
  }
  for (; twos > 4 || twos == 3; twos -= 3) radices.push_back(8);
  for (; twos >= 2; twos -= 2) radices.push_back(4);
  if (twos == 1) radices.push_back(2);
  for (int64_t p = 3; n > 1; p += 2) {
    if (p * p > n) p = n;
    for (; n % p == 0; n /= p) radices.push_back(p);
  }
  return radices;
}

}  // namespace

template <>
BlockFunctions<float>::BlockFunctions() {
  HWY_DYNAMIC_DISPATCH(FillFloat)(this);
}
template <>
BlockFunctions<double>::BlockFunctions() {
  HWY_DYNAMIC_DISPATCH(FillDouble)(this);
}

template <class T>
Passes<T>::Passes(int64_t length) : n(length) {
  const UnitRoots<T> root(n);
  const auto add = [&](int64_t k) {
    const std::complex<T> w = root(k);
    factors.push_back(w.real());
    factors.push_back(w.imag());
  };
  int64_t stride = 1;
  for (const int64_t r : RadicesOf(n)) {
    passes.push_back({r, stride, factors.size(), 0});
    for (int64_t p = 0; p < n / (r * stride); ++p) {
      for (int64_t j = 1; j < r; ++j) add(p * j * stride);
    }
    passes.back().roots = factors.size();
    for (int64_t j = 0; j < r; ++j) add(j * (n / r));
    stride *= r;
    largest_radix = std::max(largest_radix, r);
  }
}

template struct Passes<float>;
template struct Passes<double>;

}  // namespace weir::fft
#endif  // HWY_ONCE
