#include "weir/kernels/linalg/matmul.h"

#include <omp.h>

#include <algorithm>
#include <complex>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "weir/core/tensor/cancellation.h"
#include "weir/kernels/lib/broadcast.h"
#include "weir/kernels/lib/pieces.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/scalar_math.h"
#include "weir/kernels/linalg/dnnl.h"
#include "weir/kernels/linalg/dnnl_status.h"
#include "weir/kernels/linalg/epilogue.h"
#include "weir/kernels/linalg/gemm.h"
#include "weir/kernels/linalg/matmul_bfloat16.h"
#include "weir/kernels/math/cast.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/linalg/matmul_cpu.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

// Nearly all float products are packed and computed by our own GEMM (gemm.h). Large ones use
// oneDNN, which is called single-threaded on pieces that the pool's threads process: oneDNN's own
// threads would compete with ours, and both would be slow. 16-bit floats are first widened to
// float, except for bfloat16 products that the processor supports natively (matmul_bfloat16.h).
//
// Other types are computed here. For double, four rows of B at a time are scaled and added to a row
// of C, so that the inner loop accesses contiguous memory; for the others, one row.
HWY_BEFORE_NAMESPACE();
namespace weir {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// c[0 ... n) += sum over i < 4 of a[i] * b[i * ldb ...]
HWY_INLINE void AddFourRows(const double* a, const double* b, int64_t ldb, double* c, int64_t n) {
  const hn::ScalableTag<double> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto a0 = hn::Set(d, a[0]), a1 = hn::Set(d, a[1]), a2 = hn::Set(d, a[2]),
             a3 = hn::Set(d, a[3]);
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    auto v = hn::LoadU(d, c + j);
    v = hn::MulAdd(a0, hn::LoadU(d, b + j), v);
    v = hn::MulAdd(a1, hn::LoadU(d, b + ldb + j), v);
    v = hn::MulAdd(a2, hn::LoadU(d, b + 2 * ldb + j), v);
    v = hn::MulAdd(a3, hn::LoadU(d, b + 3 * ldb + j), v);
    hn::StoreU(v, d, c + j);
  }
  for (; j < n; ++j)
    c[j] += a[0] * b[j] + a[1] * b[ldb + j] + a[2] * b[2 * ldb + j] + a[3] * b[3 * ldb + j];
}

HWY_INLINE void AddOneRow(double a, const double* b, double* c, int64_t n) {
  const hn::ScalableTag<double> d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto v = hn::Set(d, a);
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes)
    hn::StoreU(hn::MulAdd(v, hn::LoadU(d, b + j), hn::LoadU(d, c + j)), d, c + j);
  for (; j < n; ++j) c[j] += a * b[j];
}

// Computes rows [begin, end) of C = A B, none transposed. Blocks of B of 128 KB are used for all
// rows while they are in the cache.
void DoubleRows(const double* a, const double* b, double* c, int64_t begin, int64_t end, int64_t n,
                int64_t k) {
  constexpr int64_t kColumns = 256, kDepth = 64;
  for (int64_t i = begin; i < end; ++i) std::fill_n(c + i * n, n, 0.0);
  for (int64_t p = 0; p < k; p += kDepth) {
    const int64_t p_end = std::min(k, p + kDepth);
    for (int64_t j = 0; j < n; j += kColumns) {
      const int64_t width = std::min(kColumns, n - j);
      for (int64_t i = begin; i < end; ++i) {
        double* const row = c + i * n + j;
        int64_t q = p;
        for (; q + 4 <= p_end; q += 4) AddFourRows(a + i * k + q, b + q * n + j, n, row, width);
        for (; q < p_end; ++q) AddOneRow(a[i * k + q], b + q * n + j, row, width);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace weir
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {
namespace {

HWY_EXPORT(DoubleRows);

template <class T>
T Conjugated(T x, bool conjugate) {
  if constexpr (ScalarMath<T>::kComplex)
    return conjugate ? std::conj(x) : x;
  else
    return x;
}

template <class T>
T Product(T x, T y) {
  // Not operator*, which handles infinities and is slow.
  if constexpr (ScalarMath<T>::kComplex) {
    return {x.real() * y.real() - x.imag() * y.imag(), x.real() * y.imag() + x.imag() * y.real()};
  } else {
    return ScalarMath<T>::Mul(x, y);
  }
}

template <class T>
void Rows(const T* a, const T* b, T* c, int64_t begin, int64_t end, int64_t n, int64_t k) {
  if constexpr (std::is_same_v<T, double>) {
    HWY_DYNAMIC_DISPATCH(DoubleRows)(a, b, c, begin, end, n, k);
  } else {
    for (int64_t i = begin; i < end; ++i) {
      T* const row = c + i * n;
      std::fill_n(row, n, T(0));
      for (int64_t p = 0; p < k; ++p) {
        const T factor = a[i * k + p];
        const T* const other = b + p * n;
        for (int64_t j = 0; j < n; ++j)
          row[j] = ScalarMath<T>::Add(row[j], Product(factor, other[j]));
      }
    }
  }
}

// Returns op(x): transposed and conjugated as the flags say. Works in blocks, so that both sides
// stay in the cache.
template <class T>
std::vector<T> ApplyOp(const T* x, int64_t rows, int64_t columns, bool transposed, bool conjugate) {
  std::vector<T> out(rows * columns);
  constexpr int64_t kBlock = 16;
  if (!transposed) {
    for (int64_t i = 0; i < rows * columns; ++i) out[i] = Conjugated(x[i], conjugate);
    return out;
  }
  for (int64_t i = 0; i < rows; i += kBlock) {
    for (int64_t j = 0; j < columns; j += kBlock) {
      for (int64_t r = i; r < std::min(rows, i + kBlock); ++r) {
        for (int64_t s = j; s < std::min(columns, j + kBlock); ++s)
          out[r * columns + s] = Conjugated(x[s * rows + r], conjugate);
      }
    }
  }
  return out;
}

template <class T>
void PlainMatMul(ThreadPool& pool, const MatMulArgs& m, const T* a, const T* b, T* c) {
  std::vector<T> straight_a, straight_b;
  const bool conjugates = ScalarMath<T>::kComplex;
  if (m.transpose_a || (conjugates && m.conjugate_a)) {
    straight_a = ApplyOp(a, m.m, m.k, m.transpose_a, m.conjugate_a);
    a = straight_a.data();
  }
  if (m.transpose_b || (conjugates && m.conjugate_b)) {
    straight_b = ApplyOp(b, m.k, m.n, m.transpose_b, m.conjugate_b);
    b = straight_b.data();
  }
  const double cost = (sizeof(T) > 8 ? 1.0 : 0.15) * static_cast<double>(m.n * m.k);
  pool.ParallelFor(m.m, cost,
                   [&](int64_t begin, int64_t end) { Rows(a, b, c, begin, end, m.n, m.k); });
}

// Computes one piece of a float product on this thread, added to beta times C.
dnnl_status_t Sgemm(const MatMulArgs& g, const float* a, int64_t lda, const float* b, int64_t ldb,
                    float* c, int64_t ldc, int64_t m, int64_t n, float beta) {
  const int saved = omp_get_max_threads();
  if (saved != 1) omp_set_num_threads(1);
  const dnnl_status_t status = dnnl::sgemm(g.transpose_a ? 'T' : 'N', g.transpose_b ? 'T' : 'N', m,
                                           n, g.k, 1.0f, a, lda, b, ldb, beta, c, ldc);
  if (saved != 1) omp_set_num_threads(saved);
  return status;
}

struct PieceGrid {
  int64_t rows = 1, columns = 1;
};

// Every piece packs the rows of A and the columns of B that it needs: among all splits into the
// useful number of pieces, chooses the one that packs least. With two pieces per thread, threads
// that become free late can still help with a long product.
PieceGrid SplitProduct(const MatMulArgs& g, int threads) {
  constexpr int64_t kMinRows = 32, kMinColumns = 64;
  const double m = static_cast<double>(g.m), n = static_cast<double>(g.n);
  const int64_t pieces = ProductPieces(g, threads);
  PieceGrid best;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t rows = 1; rows <= std::min(pieces, std::max<int64_t>(1, g.m / kMinRows)); ++rows) {
    const int64_t columns =
        std::min((pieces + rows - 1) / rows, std::max<int64_t>(1, g.n / kMinColumns));
    // Fewer pieces than wanted leave threads idle, which costs more than packing.
    const double packed = (static_cast<double>(columns) * m + static_cast<double>(rows) * n) *
                          (rows * columns < std::min<int64_t>(pieces, threads) ? 1e6 : 1);
    if (packed < least) {
      least = packed;
      best = {rows, columns};
    }
  }
  return best;
}

// The row strides of the stored A, B and C.
struct Strides {
  int64_t a, b, c;
};
Strides StridesOf(const MatMulArgs& g) {
  return {g.transpose_a ? g.m : g.k, g.transpose_b ? g.k : g.n, g.n};
}

// A block of the result: rows [row, row + rows) of op(A) times columns [column, column + columns)
// of op(B).
struct Piece {
  int64_t row, column, rows, columns;
  template <class T>
  const T* Left(const MatMulArgs& g, const T* a) const {
    return a + (g.transpose_a ? row : row * g.k);
  }
  template <class T>
  const T* Right(const MatMulArgs& g, const T* b) const {
    return b + (g.transpose_b ? column * g.k : column);
  }
};

// Our own GEMM accumulates each element in the same order regardless of the split, so the split may
// depend on the number of threads. A library's split is for this fixed number.
constexpr int kLibraryThreads = 4;

// Calls run(piece), which returns a status, for the pieces of a product split for `threads`
// threads, on the threads of the pool.
template <class F>
absl::Status ForEachPiece(ThreadPool& pool, const MatMulArgs& g, int threads, F&& run) {
  const PieceGrid grid = SplitProduct(g, threads);
  // Boundaries at whole vectors, so that only the last piece has a tail.
  const auto edge = [](int64_t size, int64_t parts, int64_t i) {
    return i == parts ? size : size * i / parts / 16 * 16;
  };
  FirstError failure;
  pool.ForEach(static_cast<int>(grid.rows * grid.columns), [&](int i) {
    const int64_t row = i / grid.columns, column = i % grid.columns;
    const int64_t top = edge(g.m, grid.rows, row), left = edge(g.n, grid.columns, column);
    failure.Note(run(Piece{top, left, edge(g.m, grid.rows, row + 1) - top,
                           edge(g.n, grid.columns, column + 1) - left}));
  });
  return failure.status();
}

// Calls run(strip), which returns a status, for strips of the piece's rows. A call of a library
// cannot be cancelled, so each strip takes about a fifth of a second at most, and this checks for
// cancellation before each of them.
template <class F>
absl::Status ForEachStrip(const MatMulArgs& g, const Piece& p, F&& run) {
  constexpr double kProductsPerStrip = 8e9;
  constexpr int64_t kLeastRows = 64;  // with fewer, packing B again takes too long
  const double rows =
      kProductsPerStrip / (static_cast<double>(p.columns) * static_cast<double>(g.k));
  const int64_t high = std::max(kLeastRows, static_cast<int64_t>(std::min(rows, 1e9)) / 16 * 16);
  for (int64_t row = 0; row < p.rows; row += high) {
    ThrowIfCancelled();
    WEIR_RETURN_IF_ERROR(
        run(Piece{p.row + row, p.column, std::min(high, p.rows - row), p.columns}));
  }
  return absl::OkStatus();
}

// Too small for oneDNN's overhead, and for looking up a packed B.
bool IsSmall(const MatMulArgs& g) {
  constexpr double kSmallProduct = 32 * 32 * 32;
  return static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k) <=
         kSmallProduct;
}

constexpr int64_t kManyRows = 128, kMostElements = int64_t{4} << 20;

// Whether to pack all of B, with all threads, before the product: if many rows use it.
bool PacksFirst(const MatMulArgs& g) {
  constexpr int64_t kLeastDepth = 32;
  return g.m >= kManyRows && g.n >= gemm::PanelColumns() && g.k >= kLeastDepth &&
         g.k <= kMostElements / g.n;
}

// For other products the threads process pieces. Our own GEMM is at least as fast as oneDNN 2.6,
// and needs no code generation, which takes 20 ms of a program's first step. But for many rows and
// matrices larger than the caches, oneDNN's blocking is better, if the library is available.
bool UsesOwnGemm(const MatMulArgs& g) {
  return g.m < kManyRows || g.k <= kMostElements / g.n || !dnnl::IsThere();
}
// Products with fewer rows are bound by reading B.
constexpr int64_t kFewRows = 5;

// Returns the strided view of a stored matrix.
gemm::Matrix AsMatrix(const float* data, int64_t stride, bool transposed) {
  return {data, transposed ? 1 : stride, transposed ? stride : 1};
}

// Packs B one block at a time: as deep as products are split anyway, and small enough to stay in
// the L2 cache beside A. Shallow blocks have many columns, since A is packed again for each block.
absl::Status PackAndMultiplyPiece(const MatMulArgs& g, const Piece& p, const float* a,
                                  const float* b, bool adds,
                                  const std::optional<gemm::Epilogue>& end, float* c) {
  constexpr int64_t kDepth = 512, kFewestColumns = 64, kBlockFloats = 32 << 10;
  const Strides strides = StridesOf(g);
  const gemm::Matrix left = AsMatrix(p.Left(g, a), strides.a, g.transpose_a);
  const gemm::Matrix right = AsMatrix(p.Right(g, b), strides.b, g.transpose_b);
  const int64_t depth = std::min(g.k, kDepth);
  const int64_t wide = std::min(
      p.columns, std::max(kFewestColumns, kBlockFloats / depth / kFewestColumns * kFewestColumns));
  const int64_t block_floats = gemm::Panels(wide) * gemm::PanelColumns() * depth;
  const int64_t floats = block_floats + gemm::ScratchFloats(left, p.rows, depth);
  // For a small product, allocation would take longer than the multiplications.
  constexpr int64_t kFewFloats = 4096;
  alignas(64) float few[kFewFloats];
  float* block = few;
  Tensor memory;
  if (floats > kFewFloats) {
    WEIR_ASSIGN_OR_RETURN(memory, Tensor::Allocate(HostAllocator(), DT_FLOAT, Shape({floats})));
    block = memory.data<float>();
  }
  float* const result = c + p.row * strides.c + p.column;
  for (int64_t j = 0; j < p.columns; j += wide) {
    const int64_t columns = std::min(wide, p.columns - j);
    for (int64_t k = 0; k < g.k; k += depth) {
      const int64_t deep = std::min(depth, g.k - k);
      const gemm::Epilogue finish =
          k + deep == g.k && end ? end->At(p.column + j) : gemm::Epilogue();
      gemm::PackAndMultiply({left.data + k * left.column, left.row, left.column}, p.rows, deep,
                            {right.data + k * right.row, right.row, right.column}, j, columns,
                            block, adds || k > 0, result + j, strides.c, block + block_floats,
                            finish);
    }
  }
  return absl::OkStatus();
}

// Computes a piece by our own GEMM.
absl::Status MultiplyPiece(const MatMulArgs& g, const Piece& p, const float* a, const float* b,
                           float* c, bool adds, const ProductEpilogue& end) {
  if (p.rows >= kFewRows) {
    WEIR_RETURN_IF_ERROR(PackAndMultiplyPiece(g, p, a, b, adds, end.tiles, c));
    if (end.tiles) return absl::OkStatus();
  } else {
    const Strides strides = StridesOf(g);
    gemm::MultiplyFewRows(AsMatrix(p.Left(g, a), strides.a, g.transpose_a), p.rows, g.k,
                          AsMatrix(p.Right(g, b), strides.b, g.transpose_b), p.columns, adds,
                          c + p.row * g.n + p.column, g.n);
  }
  end.blocks(p.row, p.column, p.rows, p.columns);
  return absl::OkStatus();
}

// Products of few rows are split along the depth, into contiguous rows of B, and the partial sums
// are added. If short rows were split by columns, each thread would read the same part of every
// row: with a power-of-two stride, these parts map to half of the cache's sets, so that a layer of
// 784x512 was always evicted before the next step. The number of pieces, and therefore the
// rounding, depends only on the sizes.
bool SplitsByDepth(const MatMulArgs& g) {
  constexpr int64_t kShortestRow = 5, kShortRow = 2048;  // of B
  return g.m < kFewRows && !g.transpose_b && g.n >= kShortestRow && g.n <= kShortRow;
}

absl::Status MultiplyByDepth(ThreadPool& pool, const MatMulArgs& g, const float* a, const float* b,
                             float* c, bool adds, const ProductEpilogue& end) {
  constexpr int64_t kPieceFloats = 100'000, kMaxPieces = 16;
  const int64_t pieces = std::clamp<int64_t>(g.n * g.k / kPieceFloats / 2 * 2, 2, kMaxPieces);
  const int64_t size = g.m * g.n;
  WEIR_ASSIGN_OR_RETURN(Tensor sums,
                        Tensor::Allocate(HostAllocator(), DT_FLOAT, Shape({pieces, size})));
  const Strides strides = StridesOf(g);
  const gemm::Matrix left = AsMatrix(a, strides.a, g.transpose_a);
  pool.ForEach(static_cast<int>(pieces), [&](int i) {
    const int64_t k = g.k * i / pieces, depth = g.k * (i + 1) / pieces - k;
    gemm::MultiplyFewRows({left.data + k * left.column, left.row, left.column}, g.m, depth,
                          {b + k * strides.b, strides.b, 1}, g.n, /*adds=*/false,
                          sums.data<float>() + i * size, g.n);
  });
  for (int64_t i = 0; i < pieces; ++i) {
    const float* const sum = sums.data<float>() + i * size;
    if (i == 0 && !adds) {
      std::copy_n(sum, size, c);
    } else {
      for (int64_t j = 0; j < size; ++j) c[j] += sum[j];
    }
  }
  end.blocks(0, 0, g.m, g.n);
  return absl::OkStatus();
}

// With `adds`, accumulates into C.
absl::Status FloatMatMul(ThreadPool& pool, const MatMulArgs& g, const float* a, const float* b,
                         float* c, const ProductEpilogue& end, bool adds = false) {
  if (IsSmall(g)) return MultiplyPiece(g, {0, 0, g.m, g.n}, a, b, c, adds, end);
  if (PacksFirst(g)) {
    WEIR_ASSIGN_OR_RETURN(const Tensor panels, PackB(pool, g, b));
    return MultiplyPacked(pool, g, a, panels, c, adds, end);
  }
  if (SplitsByDepth(g) && ProductPieces(g, 2) > 1)
    return MultiplyByDepth(pool, g, a, b, c, adds, end);
  const bool ours = UsesOwnGemm(g);
  const Strides strides = StridesOf(g);
  const int threads = ours ? pool.num_threads() : kLibraryThreads;
  return ForEachPiece(pool, g, threads, [&](const Piece& p) {
    if (ours) return MultiplyPiece(g, p, a, b, c, adds, end);
    return ForEachStrip(g, p, [&](const Piece& strip) {
      const dnnl_status_t status = Sgemm(g, strip.Left(g, a), strides.a, strip.Right(g, b),
                                         strides.b, c + strip.row * g.n + strip.column, strides.c,
                                         strip.rows, strip.columns, adds ? 1.f : 0.f);
      end.blocks(strip.row, strip.column, strip.rows, strip.columns);
      return DnnlStatus(status, "multiply matrices");
    });
  });
}

// Uses the allocator, which reuses memory: the first touch of fresh pages takes longer than the
// conversion.
template <class T>
absl::StatusOr<Tensor> Widened(ThreadPool& pool, const T* x, int64_t n) {
  WEIR_ASSIGN_OR_RETURN(Tensor wide, Tensor::Allocate(HostAllocator(), DT_FLOAT, Shape({n})));
  float* const out = wide.data<float>();
  pool.ParallelFor(n, 0.5, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) out[i] = x[i];
  });
  return wide;
}

// Whether the product is large enough for oneDNN's code generation.
bool MultipliesBfloat16(const MatMulArgs& g) {
  constexpr double kLeastFlops = 1 << 22;
  return static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k) >=
             kLeastFlops &&
         HasBfloat16Products();
}

template <class T>
absl::Status NarrowMatMul(ThreadPool& pool, const MatMulArgs& g, const T* a, const T* b, T* c) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    if (MultipliesBfloat16(g)) {
      const Strides strides = StridesOf(g);
      return ForEachPiece(pool, g, kLibraryThreads, [&](const Piece& p) {
        return ForEachStrip(g, p, [&](const Piece& strip) {
          return MultiplyBfloat16({strip.rows, strip.columns, g.k, g.transpose_a, g.transpose_b,
                                   strides.a, strides.b, strides.c},
                                  strip.Left(g, a), strip.Right(g, b),
                                  c + strip.row * g.n + strip.column);
        });
      });
    }
  }
  WEIR_ASSIGN_OR_RETURN(const Tensor wide_a, Widened(pool, a, g.m * g.k));
  WEIR_ASSIGN_OR_RETURN(const Tensor wide_b, Widened(pool, b, g.k * g.n));
  WEIR_ASSIGN_OR_RETURN(Tensor wide_c,
                        Tensor::Allocate(HostAllocator(), DT_FLOAT, Shape({g.m * g.n})));
  float* const product = wide_c.data<float>();
  WEIR_RETURN_IF_ERROR(
      FloatMatMul(pool, g, wide_a.data<float>(), wide_b.data<float>(), product, {}));
  pool.ParallelFor(g.m * g.n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) c[i] = T(product[i]);
  });
  return absl::OkStatus();
}

}  // namespace

int64_t ProductPieces(const MatMulArgs& g, int threads) {
  constexpr double kNsPerProduct = 0.0115, kNsPerElement = 0.1, kMinPieceNs = 12e3, kLongNs = 150e3;
  const double size = static_cast<double>(g.n) * static_cast<double>(g.k);
  // With few rows, the product is bound by reading the other matrix.
  const double ns = std::max(kNsPerProduct * static_cast<double>(g.m), kNsPerElement) * size;
  // With three pieces for two threads, one thread has twice as much to do.
  if (ns >= kLongNs * 2 * threads && threads > 1) return 2 * threads;
  return static_cast<int64_t>(std::clamp(ns / kMinPieceNs, 1.0, 1.0 * threads));
}

absl::Status RunMatMul(ThreadPool& pool, DataType type, const MatMulArgs& g, const void* a,
                       const void* b, void* c) {
  absl::Status status;
  if (g.m == 0 || g.n == 0) return status;
  const bool found = DispatchType(type, MatMulTypes{}, [&]<class T>() {
    const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
    T* const z = static_cast<T*>(c);
    if (g.k == 0) {
      std::fill_n(z, g.m * g.n, T(0.0f));
    } else if constexpr (std::is_same_v<T, float>) {
      status = FloatMatMul(pool, g, x, y, z, {});
    } else if constexpr (kIsNarrowFloat<T>) {
      status = NarrowMatMul(pool, g, x, y, z);
    } else {
      PlainMatMul(pool, g, x, y, z);
    }
  });
  if (!found)
    return Unimplemented("matrices of type ", DataTypeName(type), " cannot be multiplied");
  return status;
}

absl::Status AddMatMul(ThreadPool& pool, const MatMulArgs& g, const float* a, const float* b,
                       float* c) {
  if (g.m == 0 || g.n == 0 || g.k == 0) return absl::OkStatus();
  return FloatMatMul(pool, g, a, b, c, {}, /*adds=*/true);
}

namespace {

struct MatMulKernel {
  DataType type;
  bool transpose_a, transpose_b;
  std::shared_ptr<PackedMatMul> packed;  // null if B is not known to recur

  absl::Status operator()(KernelContext& c) const {
    const Tensor &a = c.input(0), &b = c.input(1);
    WEIR_ASSIGN_OR_RETURN(const MatMulArgs args,
                          MatMulOf(a.shape(), b.shape(), transpose_a, transpose_b));
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, Shape({args.m, args.n})));
    if (packed != nullptr && args.m * args.n * args.k > 0 && !IsSmall(args)) {
      WEIR_ASSIGN_OR_RETURN(const bool done,
                            packed->Run(c.pool(), c.step().step_id, args, a.data<float>(), b,
                                        out->data<float>(), /*adds=*/false, {}));
      if (done) return absl::OkStatus();
    }
    return RunMatMul(c.pool(), type, args, a.raw(), b.raw(), out->raw());
  }
};

struct FusedMatMulKernel {
  Epilogue epilogue;
  bool transpose_a, transpose_b;
  std::shared_ptr<PackedMatMul> packed;  // null if B is not known to recur

  absl::Status operator()(KernelContext& c) const {
    const Tensor &a = c.input(0), &b = c.input(1);
    WEIR_ASSIGN_OR_RETURN(const MatMulArgs args,
                          MatMulOf(a.shape(), b.shape(), transpose_a, transpose_b));
    const Shape shape({args.m, args.n});
    WEIR_ASSIGN_OR_RETURN(Epilogue::Operands operands, epilogue.ReadOperands(c, shape, args.n));
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, shape));
    if (out->num_elements() == 0) return absl::OkStatus();
    float* const result = out->data<float>();
    Tensor kept_bias, kept_addend;
    if (operands.bias == result) {
      WEIR_ASSIGN_OR_RETURN(kept_bias,
                            Epilogue::PreserveOperand(c, Shape({args.n}), &operands.bias));
    }
    // The product is accumulated into the addend, wherever it is stored: the order of additions
    // must not depend on the step's memory plan.
    const bool accumulates = operands.addend != nullptr && args.k > 0;
    if (accumulates) {
      const float* const addend = std::exchange(operands.addend, nullptr);
      if (addend != result) {
        c.pool().ParallelFor(out->num_elements(), 0.2, [&](int64_t begin, int64_t end) {
          std::copy(addend + begin, addend + end, result + begin);
        });
      }
    } else if (operands.addend == result) {
      WEIR_ASSIGN_OR_RETURN(kept_addend, Epilogue::PreserveOperand(c, shape, &operands.addend));
    }
    const auto finish = [&](int64_t i, int64_t j, int64_t rows, int64_t columns) {
      Epilogue::Operands block = operands;
      if (block.bias != nullptr) block.bias += j;
      if (block.addend != nullptr) block.addend += i * args.n + j;
      epilogue.Apply(result + i * args.n + j, block, rows, columns, args.n);
    };
    if (args.k == 0) {
      std::fill_n(result, args.m * args.n, 0.f);
      finish(0, 0, args.m, args.n);
      return absl::OkStatus();
    }
    ProductEpilogue end = {.blocks = finish};
    if (operands.addend == nullptr) end.tiles = epilogue.AsGemmEpilogue(operands);
    if (packed != nullptr && !IsSmall(args)) {
      WEIR_ASSIGN_OR_RETURN(
          const bool done, packed->Run(c.pool(), c.step().step_id, args, a.data<float>(), b, result,
                                       accumulates, end));
      if (done) return absl::OkStatus();
    }
    return FloatMatMul(c.pool(), args, a.data<float>(), b.data<float>(), result, end, accumulates);
  }
};

std::shared_ptr<PackedMatMul> MakePacked(const KernelInit& init) {
  if (init.node.attr_or<bool>("_in_loop", false))
    return std::make_shared<PackedMatMul>(PackedMatMul::Weight::kInLoop);
  return init.is_step_invariant(1) && init.input_shapes[1].IsFullyDefined()
             ? std::make_shared<PackedMatMul>(PackedMatMul::Weight::kStepInvariant)
             : nullptr;
}

absl::StatusOr<Kernel> MakeFused(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const Epilogue epilogue, Epilogue::Read(init.node));
  return Kernel(FusedMatMulKernel{epilogue, init.attr<bool>("transpose_a"),
                                  init.attr<bool>("transpose_b"), MakePacked(init)});
}

// Multiplies the matrices in the last two dimensions, one product per element of the broadcast
// leading ones. Many small products are distributed to the threads as a whole; few large ones are
// each split among the threads.
struct BatchMatMulKernel {
  DataType type;
  bool adj_x, adj_y, broadcasts;

  absl::Status operator()(KernelContext& c) const {
    const Tensor &x = c.input(0), &y = c.input(1);
    WEIR_ASSIGN_OR_RETURN(const BatchMatMulArgs args,
                          BatchMatMulOf(x.shape(), y.shape(), adj_x, adj_y, broadcasts));
    WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, args.out));
    if (out->num_elements() == 0) return absl::OkStatus();
    if (x.dtype() == type && y.dtype() == type) return RunBatch(c.pool(), args, x, y, out);
    WEIR_ASSIGN_OR_RETURN(const Tensor a, Converted(c, x));
    WEIR_ASSIGN_OR_RETURN(const Tensor b, Converted(c, y));
    return RunBatch(c.pool(), args, a, b, out);
  }

  // The factors of BatchMatMulV3 may have narrower types than the product, and different ones.
  absl::StatusOr<Tensor> Converted(KernelContext& c, const Tensor& factor) const {
    if (factor.dtype() == type) return factor;
    WEIR_ASSIGN_OR_RETURN(Tensor converted, c.AllocateTemp(type, factor.shape()));
    WEIR_RETURN_IF_ERROR(ConvertElements(c.pool(), factor, &converted));
    return converted;
  }

  absl::Status RunBatch(ThreadPool& pool, const BatchMatMulArgs& shapes, const Tensor& x,
                        const Tensor& y, Tensor* out) const {
    const MatMulArgs& args = shapes.one;
    // The matrices of x and of y that form matrix i of the result.
    const int64_t count = shapes.batch.num_elements();
    std::vector<int64_t> at_x(count), at_y(count);
    const Shape* const batches[] = {&shapes.batch_x, &shapes.batch_y};
    const Broadcast layout(shapes.batch, batches);
    const auto spread = [&](int k, const Shape& from, std::vector<int64_t>* at) {
      std::vector<int64_t> positions(from.num_elements());
      for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int64_t>(i);
      layout.Gather(k, positions.data(), sizeof(int64_t), 0, count, at->data());
    };
    spread(0, shapes.batch_x, &at_x);
    spread(1, shapes.batch_y, &at_y);
    const int64_t size = static_cast<int64_t>(ElementSize(type));
    FirstError failure;
    const auto one = [&](int64_t i) {
      failure.Note(RunMatMul(pool, type, args,
                             static_cast<const char*>(x.raw()) + at_x[i] * args.m * args.k * size,
                             static_cast<const char*>(y.raw()) + at_y[i] * args.k * args.n * size,
                             static_cast<char*>(out->raw()) + i * args.m * args.n * size));
    };
    const double cost =
        100 + 0.03 * static_cast<double>(args.m * args.n) * static_cast<double>(args.k);
    if (count < 2 * pool.num_threads()) {
      for (int64_t i = 0; i < count; ++i) one(i);
    } else {
      pool.ParallelFor(count, cost, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) one(i);
      });
    }
    return failure.status();
  }
};

// The number of multiplications times the time of one; unknown extents count as 64.
double MatMulCost(const KernelInit& init) {
  double product = 0.03;
  const auto extent = [](const Shape& s, int i) {
    return static_cast<double>(s.dim(i) < 0 ? 64 : s.dim(i));
  };
  const Shape &a = init.input_shapes[0], &b = init.input_shapes[1];
  if (a.rank() < 2 || b.rank() < 2) return 10000;
  for (int i = 0; i < a.rank(); ++i) product *= extent(a, i);
  const bool transposed =
      init.node.attr_or<bool>("transpose_b", false) || init.node.attr_or<bool>("adj_y", false);
  return 300 + product * extent(b, transposed ? -2 : -1);
}

template <class... Ts>
void AddTypes(KernelRegistry* r, List<Ts...>) {
  for (const DataType type : {DataTypeOf<Ts>::value...}) {
    r->Add("MatMul", kCpu, type, [type](const KernelInit& init) -> absl::StatusOr<Kernel> {
       return Kernel(MatMulKernel{type, init.attr<bool>("transpose_a"),
                                  init.attr<bool>("transpose_b"),
                                  type == DT_FLOAT ? MakePacked(init) : nullptr});
     }).Cost(MatMulCost);
    for (const auto& [op, type_attr] :
         {std::pair("BatchMatMul", "T"), {"BatchMatMulV2", "T"}, {"BatchMatMulV3", "Tout"}}) {
      const bool broadcasts = op[11] != '\0';
      r->Add(op, kCpu, TypeConstraints{{type_attr, type}},
             [=](const KernelInit& init) -> absl::StatusOr<Kernel> {
               return Kernel(BatchMatMulKernel{type, init.attr<bool>("adj_x"),
                                               init.attr<bool>("adj_y"), broadcasts});
             })
          .Cost(MatMulCost);
    }
  }
}

}  // namespace

void AddMatMulCpu(KernelRegistry* r) {
  AddTypes(r, MatMulTypes{});
  r->Add("_FusedMatMul", kCpu, DT_FLOAT, MakeFused).InPlace({2, 3}).Cost(MatMulCost);
}

}  // namespace weir
#endif  // HWY_ONCE
