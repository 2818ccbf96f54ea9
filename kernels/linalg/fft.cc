#include "weir/kernels/linalg/fft.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <new>
#include <utility>

#include "weir/kernels/lib/blocks.h"
#include "weir/kernels/linalg/unit_roots.h"

namespace weir::fft {

namespace {

// Lines up to kShort are transformed in the lanes of vectors, several at a time. Up to
// kShortColumn, whose blocks stay in the L2 cache, columns always are, and rows if there are enough
// of them and the factors of a split would leave many lanes without a column. (Rows in lanes are
// transposed twice, and once if they are split.)
constexpr int64_t kShort = 144;
constexpr int64_t kShortColumn = 2048;
constexpr double kManyLanes = 1.1;  // times the columns
// A pass takes p n steps for a prime factor p of n: above this limit a convolution is faster.
constexpr int64_t kLargestFactor = 131;
// Above this number of values, rows are not expected to be in a cache. A split transform walks down
// columns, which processors do not foresee: a copy of the row, which they do, takes less time than
// the waits.
constexpr int64_t kCached = int64_t{1} << 18;
// From this length on, a transform is divided among threads.
constexpr int64_t kDivided = int64_t{1} << 16;

int64_t RoundUp(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

bool HasLargeFactor(int64_t n) {
  for (int64_t p = 2; p <= kLargestFactor; ++p) {
    while (n % p == 0) n /= p;
  }
  return n > 1;
}

// The number of lanes that the columns of both halves of a split take, of 2n columns.
double LanesOf(int64_t first, int64_t second, int64_t lanes) {
  return static_cast<double>(RoundUp(second, lanes) * first + RoundUp(first, lanes) * second);
}

// Returns the first factor of the best split of n: lanes without a column are few, and both factors
// are similar. A length that has no factors is its own.
int64_t FirstFactor(int64_t n, int64_t lanes) {
  int64_t best = n;
  double least = HUGE_VAL;
  for (int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    for (const int64_t first : {d, n / d}) {
      const double longer = static_cast<double>(n / d);
      const double cost = LanesOf(first, n / first, lanes) * (8 + std::log2(longer));
      if (cost < least) {
        least = cost;
        best = first;
      }
    }
  }
  return best;
}

// Returns a number of at least n for which a split is efficient.
int64_t ConvolutionLength(int64_t n) {
  int64_t best = int64_t{1} << 62;
  for (const int64_t odd : {1, 3, 5, 9, 15}) {
    int64_t m = 256 * odd;
    while (m < n) m *= 2;
    best = std::min(best, m);
  }
  return best;
}

template <class T>
void Append(std::complex<T> x, std::vector<T>* values) {
  values->push_back(x.real());
  values->push_back(x.imag());
}

// Returns memory that is aligned to vectors. Throws std::bad_alloc.
template <class T>
hwy::AlignedFreeUniquePtr<T[]> Allocate(int64_t size) {
  auto memory = hwy::AllocateAligned<T>(static_cast<size_t>(size));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

// Calls body(block, scratch) for each of `blocks`, on the threads of a pool if there is one.
template <class T, class F>
void ForBlocks(ThreadPool* pool, int64_t blocks, double cost, int64_t scratch_size, T* scratch,
               const F& body) {
  if (pool == nullptr) {
    for (int64_t b = 0; b < blocks; ++b) {
      ThrowIfCancelled();
      body(b, scratch);
    }
    return;
  }
  pool->ParallelFor(blocks, cost, [&](int64_t begin, int64_t end) {
    const auto own = Allocate<T>(scratch_size);
    for (int64_t b = begin; b < end; ++b) {
      ThrowIfCancelled();
      body(b, own.get());
    }
  });
}

// Nanoseconds of one transform of n numbers.
double CostOf(int64_t n) {
  const double points = static_cast<double>(n);
  return 0.2 * points * (2 + std::log2(points));
}

}  // namespace

template <class T>
ComplexTransform<T>::ComplexTransform(int64_t n, Use use) : n_(n) {
  if (HasLargeFactor(n)) {
    MakeChirp();
    return;
  }
  const bool splits = use == Use::kOneLine || n > (use == Use::kRows ? kShort : kShortColumn);
  if (splits) Split();
  const bool wastes = splits && LanesOf(first_->n, second_->n, run_.lanes) >
                                    kManyLanes * 2 * static_cast<double>(n);
  if (!splits || (use == Use::kRows && n <= kShortColumn && wastes)) {
    whole_ = std::make_unique<Passes<T>>(n);
  }
}

template <class T>
const Passes<T>* ComplexTransform<T>::InLanes(int64_t lines) const {
  return first_ == nullptr || lines >= run_.lanes / 2 ? whole_.get() : nullptr;
}

template <class T>
bool ComplexTransform<T>::divides() const {
  return n_ >= kDivided;
}

template <class T>
int64_t ComplexTransform<T>::pitch() const {
  return 2 * RoundUp(first_->n, run_.lanes);
}

template <class T>
int64_t ComplexTransform<T>::size() const {
  const int64_t kept = 2 * n_ + static_cast<int64_t>(chirp_.size() + transformed_chirp_.size());
  return convolution_ == nullptr ? kept : kept + convolution_->size();
}

template <class T>
int64_t ComplexTransform<T>::WorkSize() const {
  if (convolution_ != nullptr) {
    return static_cast<int64_t>(2 * transformed_chirp_.size()) + convolution_->WorkSize();
  }
  const int64_t in_lanes = whole_ == nullptr ? 0 : BlockScratch(*whole_, run_.lanes);
  if (first_ == nullptr) return in_lanes;
  return std::max(in_lanes, second_->n * pitch() + SplitScratch());
}

template <class T>
int64_t ComplexTransform<T>::SplitScratch() const {
  return std::max(BlockScratch(*first_, run_.lanes), BlockScratch(*second_, run_.lanes));
}

template <class T>
void ComplexTransform<T>::Run(ThreadPool* pool, From<T> in, To<T> out, T* work) const {
  if (!divides()) pool = nullptr;
  if (convolution_ != nullptr) {
    RunConvolution(pool, in, out, work);
  } else {
    RunSplit(pool, in, out, work);
  }
}

// The four-step algorithm (Gentleman and Sande, "Fast Fourier transforms: for fun and profit",
// 1966; Bailey, "FFTs in external or hierarchical memory", 1990). With n = n1 n2, j = n2 j1 + j2
// and k = k1 + n1 k2,
//
//   out[k] = sum over j2 of w2^(j2 k2) w^(j2 k1) (sum over j1 of w1^(j1 k1) in[j])
//
// where w, w1 and w2 are the roots of unity of orders n, n1 and n2. The inner sums are transforms
// of the columns of a matrix [n1][n2], the outer ones those of its transpose [n2][n1]. So one long
// transform becomes about 2 sqrt(n) short ones of columns, which lie in the lanes of vectors
// without being transposed, and whose blocks stay in the L1 cache (or L2, for a million numbers).
// The results of the first half are transposed on their way to memory, in the split format: the
// second half loads real and imaginary parts as they are.
template <class T>
void ComplexTransform<T>::Split() {
  const int64_t first = FirstFactor(n_, run_.lanes), second = n_ / first;
  first_ = std::make_unique<Passes<T>>(first);
  second_ = std::make_unique<Passes<T>>(second);
  const int64_t size = second * pitch();
  twiddles_ = Allocate<T>(size);
  std::fill_n(twiddles_.get(), size, T(0));
  const UnitRoots<T> root(n_);
  for (int64_t j = 0; j < second; ++j) {
    ThrowIfCancelled();
    for (int64_t k = 0; k < first; ++k) {
      const std::complex<T> w = root(j * k);
      T* const at =
          twiddles_.get() + j * pitch() + k / run_.lanes * 2 * run_.lanes + k % run_.lanes;
      at[0] = w.real();
      at[run_.lanes] = w.imag();
    }
  }
}

template <class T>
void ComplexTransform<T>::RunSplit(ThreadPool* pool, From<T> in, To<T> out, T* work) const {
  const int64_t lanes = run_.lanes, first = first_->n, second = second_->n;
  const int64_t scratch_size = SplitScratch();
  T *const split = work, *const scratch = work + second * pitch();
  const double cost = CostOf(n_) * static_cast<double>(lanes) / 2;
  ForBlocks(pool, RoundUp(second, lanes) / lanes, cost / static_cast<double>(second), scratch_size,
            scratch, [&](int64_t b, T* own) {
              const int64_t column = b * lanes;
              run_.columns_to_split(*first_, {in.at + 2 * column, 2 * second, in.conjugate},
                                    {split + column * pitch(), pitch()},
                                    std::min(lanes, second - column), own);
            });
  ForBlocks(pool, RoundUp(first, lanes) / lanes, cost / static_cast<double>(first), scratch_size,
            scratch, [&](int64_t b, T* own) {
              const int64_t column = b * lanes;
              run_.split_to_columns(*second_, {split + 2 * column, pitch()},
                                    twiddles_.get() + 2 * column,
                                    {out.at + 2 * column, 2 * first, out.re_scale, out.im_scale},
                                    std::min(lanes, first - column), own);
            });
}

// Bluestein's algorithm ("A linear filtering approach to the computation of discrete Fourier
// transform", 1970). Because 2jk = j^2 + k^2 - (k - j)^2, with the chirp c[j] = exp(-pi i j^2 / n)
//
//   out[k] = c[k] sum of (in[j] c[j]) conj(c[k - j]).
//
// This is a convolution, which three transforms of any length m >= 2n - 1 compute; the transform of
// conj(c), wrapped circularly and divided by m, is precomputed. j^2 is reduced modulo 2n as an
// integer, so that the roots stay exact for large n.
template <class T>
void ComplexTransform<T>::MakeChirp() {
  const int64_t m = ConvolutionLength(2 * n_ - 1);
  convolution_ = std::make_unique<ComplexTransform>(m, Use::kOneLine);
  const UnitRoots<T> root(2 * n_);
  std::vector<T> wrapped(static_cast<size_t>(2 * m));
  const T scale = 1 / static_cast<T>(m);
  for (int64_t j = 0; j < n_; ++j) {
    ThrowIfCancelledAt(j);
    const auto square = static_cast<unsigned __int128>(j) * static_cast<uint64_t>(j);
    const std::complex<T> c = root(static_cast<int64_t>(square % static_cast<uint64_t>(2 * n_)));
    Append(c, &chirp_);
    for (const int64_t at : {j, (m - j) % m}) {
      wrapped[static_cast<size_t>(2 * at)] = c.real() * scale;
      wrapped[static_cast<size_t>(2 * at + 1)] = -c.imag() * scale;
    }
  }
  transformed_chirp_.resize(wrapped.size());
  const auto work = Allocate<T>(convolution_->WorkSize());
  convolution_->Run(nullptr, {wrapped.data(), 0}, {transformed_chirp_.data(), 0}, work.get());
}

template <class T>
void ComplexTransform<T>::RunConvolution(ThreadPool* pool, From<T> in, To<T> out, T* work) const {
  const int64_t m = static_cast<int64_t>(transformed_chirp_.size()) / 2;
  T *const a = work, *const b = a + 2 * m, *const rest = b + 2 * m;
  const auto multiply = [&](From<T> x, const std::vector<T>& factors, To<T> y, int64_t n) {
    for (const auto [begin, end] : CancellableBlocks(n)) {
      run_.multiply({x.at + 2 * begin, 0, x.conjugate}, factors.data() + 2 * begin,
                    {y.at + 2 * begin, 0, y.re_scale, y.im_scale}, end - begin);
    }
  };
  multiply(in, chirp_, {a, 0}, n_);
  std::fill(a + 2 * n_, a + 2 * m, T(0));
  convolution_->Run(pool, {a, 0}, {b, 0}, rest);
  multiply({b, 0}, transformed_chirp_, {b, 0, 1, -1}, m);
  convolution_->Run(pool, {b, 0}, {a, 0}, rest);
  multiply({a, 0, true}, chirp_, out, n_);
}

template <class T>
LineTransform<T>::LineTransform(int64_t n, Kind kind, Use use)
    : n_(n), kind_(kind), use_(use), complex_(packs() ? n / 2 : n, use) {
  if (!packs()) return;
  const UnitRoots<T> root(n);
  for (int64_t k = 0; k <= n / 4; ++k) {
    ThrowIfCancelledAt(k);
    Append(root(k), &halves_);
  }
}

template <class T>
double LineTransform<T>::Cost() const {
  return CostOf(kind_ == Kind::kComplex ? n_ : n_ / 2 + 1);
}

template <class T>
int64_t LineTransform<T>::WorkSize() const {
  return (kind_ == Kind::kComplex ? 0 : 2 * LineSize()) + complex_.WorkSize();
}

// The values of a line of n + 1 complex numbers. What follows it is aligned to vectors.
template <class T>
int64_t LineTransform<T>::LineSize() const {
  return RoundUp(2 * n_ + 2, 2 * run_.lanes);
}

template <class T>
void LineTransform<T>::TransformRows(ThreadPool& pool, const T* in, int64_t in_pitch, T* out,
                                     int64_t out_pitch, int64_t rows, bool inverse, T scale) const {
  const bool conjugate = inverse || kind_ == Kind::kToReal;
  if (kind_ == Kind::kToReal && packs()) scale *= 2;
  const T im_scale = conjugate ? -scale : scale;
  const auto from = [&](int64_t row) { return From<T>{in + row * in_pitch, in_pitch, conjugate}; };
  const auto to = [&](int64_t row) {
    return To<T>{out + row * out_pitch, out_pitch, scale, im_scale};
  };
  const int64_t work_size = WorkSize();
  if (const Passes<T>* const passes = complex_.InLanes(rows)) {
    const int64_t lanes = run_.lanes;
    const RowTransform<T> transform = {kind_, n_, passes, halves_.data()};
    ForBlocks<T>(&pool, RoundUp(rows, lanes) / lanes, Cost() * static_cast<double>(lanes),
                 work_size, nullptr, [&](int64_t b, T* work) {
                   const int64_t row = b * lanes;
                   run_.rows(transform, from(row), to(row), std::min(lanes, rows - row), work);
                 });
  } else if (complex_.divides()) {
    const auto work = Allocate<T>(work_size);
    for (int64_t row = 0; row < rows; ++row) RunRow(&pool, from(row), to(row), work.get());
  } else {
    const int64_t values = kind_ == Kind::kFromReal ? n_ : 2 * n_;
    const bool copies = kind_ != Kind::kToReal && rows * values > kCached;
    ForBlocks<T>(&pool, rows, Cost(), work_size + (copies ? LineSize() : 0), nullptr,
                 [&](int64_t row, T* work) {
                   From<T> in_row = from(row);
                   if (copies) {
                     std::copy_n(in_row.at, values, work);
                     in_row.at = work;
                     work += LineSize();
                   }
                   RunRow(nullptr, in_row, to(row), work);
                 });
  }
}

template <class T>
void LineTransform<T>::RunRow(ThreadPool* pool, From<T> in, To<T> out, T* work) const {
  switch (kind_) {
    case Kind::kComplex:
      return complex_.Run(pool, in, out, work);
    case Kind::kFromReal:
      return FromReal(pool, in, out, work);
    case Kind::kToReal:
      return ToReal(pool, in, out, work);
  }
}

template <class T>
void LineTransform<T>::FromReal(ThreadPool* pool, From<T> in, To<T> out, T* work) const {
  T* const y = out.at;
  if (packs()) {
    const int64_t h = n_ / 2;
    complex_.Run(pool, in, out, work);
    run_.untangle(y, h, halves_.data());
    const T re = y[0], im = y[1];
    y[0] = re + im;
    y[2 * h] = re - im;
    y[1] = y[2 * h + 1] = 0;
    return;
  }
  const int64_t line = LineSize();
  T *const a = work, *const b = a + line;
  for (int64_t i = 0; i < n_; ++i) {
    ThrowIfCancelledAt(i);
    a[2 * i] = in.at[i];
    a[2 * i + 1] = 0;
  }
  complex_.Run(pool, {a, 0}, {b, 0, out.re_scale, out.im_scale}, b + line);
  std::copy_n(b, 2 * (n_ / 2 + 1), y);
}

template <class T>
void LineTransform<T>::ToReal(ThreadPool* pool, From<T> in, To<T> out, T* work) const {
  const int64_t half = n_ / 2 + 1, line = LineSize();
  T *const a = work, *const b = a + line;
  for (int64_t k = 0; k < half; ++k) {
    ThrowIfCancelledAt(k);
    a[2 * k] = in.at[2 * k];
    a[2 * k + 1] = -in.at[2 * k + 1];
  }
  if (packs()) {
    run_.untangle(a, n_ / 2, halves_.data());
    const T first = a[0] / 2, last = a[n_] / 2;
    a[0] = first + last;
    a[1] = last - first;
    complex_.Run(pool, {a, 0}, out, b + line);
    return;
  }
  a[1] = 0;
  for (int64_t k = 1; k < half; ++k) {
    a[2 * (n_ - k)] = a[2 * k];
    a[2 * (n_ - k) + 1] = -a[2 * k + 1];
  }
  complex_.Run(pool, {a, 0}, {b, 0, out.re_scale, out.im_scale}, b + line);
  for (int64_t i = 0; i < n_; ++i) out.at[i] = b[2 * i];
}

template <class T>
void LineTransform<T>::TransformColumns(ThreadPool& pool, const T* in, T* out, int64_t outer,
                                        int64_t inner, bool inverse) const {
  const int64_t lanes = run_.lanes, across = RoundUp(inner, lanes) / lanes;
  const Passes<T>* const passes = complex_.InLanes(inner);
  const int64_t lines = passes == nullptr ? 2 * GatheredSize(inner) : 0;
  const int64_t blocks = outer * across, work_size = lines + WorkSize();
  if (passes == nullptr && blocks == 1) {
    const auto work = Allocate<T>(work_size);
    return GatherColumns(&pool, in, out, inner, inner, inverse, work.get());
  }
  ForBlocks<T>(&pool, blocks, Cost() * static_cast<double>(lanes), work_size, nullptr,
               [&](int64_t b, T* work) {
                 const int64_t column = b % across * lanes;
                 const int64_t at = 2 * (b / across * n_ * inner + column);
                 const int64_t count = std::min(lanes, inner - column);
                 if (passes != nullptr) {
                   run_.columns(*passes, {in + at, 2 * inner, inverse},
                                {out + at, 2 * inner, 1, inverse ? T(-1) : T(1)}, count, work);
                 } else {
                   GatherColumns(nullptr, in + at, out + at, inner, count, inverse, work);
                 }
               });
}

// A multiple of the vectors' length, since they load what lies behind as aligned.
template <class T>
int64_t LineTransform<T>::GatheredSize(int64_t inner) const {
  const int64_t lanes = run_.lanes;
  return RoundUp(2 * n_ * std::min(lanes, inner), lanes);
}

// Long columns become lines of their own, several at a time, so that whole cache lines are used.
// The pool, if there is one, divides each line.
template <class T>
void LineTransform<T>::GatherColumns(ThreadPool* pool, const T* in, T* out, int64_t inner,
                                     int64_t count, bool inverse, T* work) const {
  const int64_t size = GatheredSize(inner);
  T *const a = work, *const b = a + size, *const rest = b + size;
  for (int64_t i = 0; i < n_; ++i) {
    ThrowIfCancelledAt(i);
    for (int64_t c = 0; c < count; ++c) {
      a[2 * (c * n_ + i)] = in[2 * (i * inner + c)];
      a[2 * (c * n_ + i) + 1] = in[2 * (i * inner + c) + 1];
    }
  }
  for (int64_t c = 0; c < count; ++c) {
    complex_.Run(pool, {a + 2 * c * n_, 0, inverse}, {b + 2 * c * n_, 0, 1, inverse ? T(-1) : T(1)},
                 rest);
  }
  for (int64_t i = 0; i < n_; ++i) {
    ThrowIfCancelledAt(i);
    for (int64_t c = 0; c < count; ++c) {
      out[2 * (i * inner + c)] = b[2 * (c * n_ + i)];
      out[2 * (i * inner + c) + 1] = b[2 * (c * n_ + i) + 1];
    }
  }
}

template class ComplexTransform<float>;
template class ComplexTransform<double>;
template class LineTransform<float>;
template class LineTransform<double>;

}  // namespace weir::fft
