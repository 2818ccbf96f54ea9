#include "weir/kernels/lib/strided_copy.h"

#include <algorithm>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#include <xmmintrin.h>
#endif

#include "weir/core/tensor/resource_handle.h"
#include "weir/core/tensor/variant.h"
#include "weir/kernels/lib/copy_run.h"
#include "weir/kernels/lib/device_primitives.h"

namespace weir {

namespace {

using Objects = List<std::string, ResourceHandle, Variant>;

// Nanoseconds per isolated element (which needs a cache line of its own), and per byte of a
// contiguous run.
constexpr double kScatteredCost = 1.0;
constexpr double kByteCost = 0.05;
constexpr int64_t kTile = 16;
constexpr int64_t kLargeBytes = 8 << 20;

// Calls f.operator()<U>() with a type that is copied like dtype.
template <class F>
void DispatchCopyType(DataType dtype, F&& f) {
  if (IsPlain(dtype)) {
    DispatchSize(ElementSize(dtype), std::forward<F>(f));
  } else {
    DispatchType(dtype, Objects{}, std::forward<F>(f));
  }
}

// Writes the element at `value` n times, on the calling thread.
template <class T>
void FillLine(const T* value, T* to, int64_t n) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    FillElements(to, value, sizeof(T), n);
  } else {
    std::fill_n(to, n, *value);
  }
}

// The loop structure of a copy. First the grid is simplified: dimensions of extent 1 are removed,
// and adjacent dimensions that are contiguous on both sides are merged. The last dimension (of the
// destination) is then the inner loop: a run of bytes, a fill, or single elements. If the source is
// contiguous along another dimension (a transpose), the two are traversed together in square tiles,
// so that each fetched cache line is used completely while it is in the cache. The remaining outer
// dimensions are flattened to one index and split over the thread pool; a single run, and the tiles
// of one large transpose, are split as well.
//
// A transpose that is larger than the caches proceeds along the rows of the source, in bands of 16
// rows, so that memory is read in order, and uses non-temporal stores, which avoid reading the
// overwritten lines. Lines of the destination are written one after the other, each as a whole: if
// rows are a power of two apart, partially written lines evict each other from the processor's few
// write-combining buffers, and reach memory in pieces, at half the speed.
class Grid {
 public:
  explicit Grid(const StridedCopy& copy) {
    empty_ = std::find(copy.extents.begin(), copy.extents.end(), 0) != copy.extents.end();
    for (size_t i = 0; i < copy.extents.size() && !empty_; ++i) {
      const Dim d{copy.extents[i], copy.from_strides[i], copy.to_strides[i]};
      if (d.extent == 1) continue;
      if (!dims_.empty() && dims_.back().from == d.from * d.extent &&
          dims_.back().to == d.to * d.extent) {
        dims_.back() = {dims_.back().extent * d.extent, d.from, d.to};
      } else {
        dims_.push_back(d);
      }
    }
  }

  template <class T>
  void Run(ThreadPool& pool, const T* from, T* to) {
    if (empty_) return;
    if (dims_.empty()) {
      *to = *from;
      return;
    }
    inner_ = dims_.back();
    dims_.pop_back();
    FindTileDim();
    if (tiled_ && CanUseNonTemporal(pool, to)) {
      RunNonTemporal(pool, from, to);
    } else if (tiled_) {
      RunTiled(pool, from, to);
    } else if (dims_.empty() && inner_.to == 1) {
      const double cost = inner_.from == 1 ? kByteCost * sizeof(T) : kScatteredCost;
      pool.ParallelFor(
          inner_.extent, cost,
          [&](int64_t begin, int64_t end) {
            CopyLine(from + begin * inner_.from, to + begin, inner_.from, 1, end - begin);
          },
          64);
    } else {
      RunLines(pool, from, to);
    }
  }

 private:
  struct Dim {
    int64_t extent, from, to;
  };
  // A position in the outer dimensions, the last of which varies fastest.
  struct Position {
    Dims index;
    int64_t from = 0, to = 0;
  };

  int64_t OuterCount() const {
    int64_t n = 1;
    for (const Dim& d : dims_) n *= d.extent;
    return n;
  }

  Position At(int64_t flat) const {
    Position p;
    p.index.resize(dims_.size());
    for (size_t i = dims_.size(); i-- > 0;) {
      p.index[i] = flat % dims_[i].extent;
      flat /= dims_[i].extent;
      p.from += p.index[i] * dims_[i].from;
      p.to += p.index[i] * dims_[i].to;
    }
    return p;
  }

  void Advance(Position& p) const {
    for (size_t i = dims_.size(); i-- > 0;) {
      p.from += dims_[i].from;
      p.to += dims_[i].to;
      if (++p.index[i] < dims_[i].extent) return;
      p.from -= dims_[i].from * dims_[i].extent;
      p.to -= dims_[i].to * dims_[i].extent;
      p.index[i] = 0;
    }
  }

  // Finds the dimension along which the source is contiguous, if it is not the inner dimension and
  // both are long enough to tile.
  void FindTileDim() {
    if (inner_.to != 1 || inner_.from == 1 || inner_.from == 0 || inner_.extent < 4) return;
    for (size_t i = 0; i < dims_.size(); ++i) {
      if (dims_[i].from == 1 && dims_[i].extent >= 4) {
        tile_ = dims_[i];
        tiled_ = true;
        dims_.erase(dims_.begin() + i);
        return;
      }
    }
  }

  template <class T>
  static void CopyLine(const T* from, T* to, int64_t from_stride, int64_t to_stride, int64_t n) {
    if (from_stride == 1 && to_stride == 1) {
      if constexpr (std::is_trivially_copyable_v<T>) {
        if (n <= 8) {
          for (int64_t k = 0; k < n; ++k) to[k] = from[k];
        } else {
          CopyRun(from, to, static_cast<size_t>(n) * sizeof(T));
        }
      } else {
        std::copy_n(from, n, to);
      }
    } else if (from_stride == 0 && to_stride == 1) {
      FillLine(from, to, n);
    } else {
      for (int64_t k = 0; k < n; ++k) to[k * to_stride] = from[k * from_stride];
    }
  }

  template <class T>
  void RunLines(ThreadPool& pool, const T* from, T* to) const {
    const bool run = inner_.to == 1 && (inner_.from == 1 || inner_.from == 0);
    const double cost =
        3 + static_cast<double>(inner_.extent) * (run ? kByteCost * sizeof(T) : kScatteredCost);
    pool.ParallelFor(OuterCount(), cost, [&](int64_t begin, int64_t end) {
      Position p = At(begin);
      for (int64_t i = begin; i < end; ++i) {
        CopyLine(from + p.from, to + p.to, inner_.from, inner_.to, inner_.extent);
        Advance(p);
      }
    });
  }

  template <class T>
  void CopyTile(const T* from, T* to, int64_t rows, int64_t cols) const {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t k = 0; k < cols; ++k) to[r * tile_.to + k] = from[r + k * inner_.from];
    }
  }

  // Calls f(outer position, strip) for each of `strips` strips of every outer position, on the
  // pool's threads. Calls `done()` at the end on each thread that has participated.
  template <class F, class Done>
  void ForEachStrip(ThreadPool& pool, int64_t strips, double cost, F&& f, Done&& done) const {
    pool.ParallelFor(OuterCount() * strips, cost, [&](int64_t begin, int64_t end) {
      Position p = At(begin / strips);
      int64_t strip = begin % strips;
      for (int64_t i = begin; i < end; ++i) {
        f(p, strip);
        if (++strip == strips) {
          strip = 0;
          Advance(p);
        }
      }
      done();
    });
  }

  template <class T>
  void RunTiled(ThreadPool& pool, const T* from, T* to) const {
    const double cost =
        kScatteredCost * static_cast<double>(inner_.extent * std::min(kTile, tile_.extent));
    const auto copy = [&](const Position& p, int64_t strip) {
      const int64_t row = strip * kTile, rows = std::min(kTile, tile_.extent - row);
      for (int64_t col = 0; col < inner_.extent; col += kTile) {
        CopyTile(from + p.from + row + col * inner_.from, to + p.to + row * tile_.to + col, rows,
                 std::min(kTile, inner_.extent - col));
      }
    };
    ForEachStrip(pool, (tile_.extent + kTile - 1) / kTile, cost, copy, [] {});
  }

#ifdef __SSE2__
  template <class T>
  bool CanUseNonTemporal(const ThreadPool& pool, const T* to) const {
    constexpr int64_t kBytes = static_cast<int64_t>(sizeof(T));
    if constexpr (!std::is_trivially_copyable_v<T> || (kBytes != 4 && kBytes != 8)) return false;
    // Enough bands for all threads, and full tiles.
    if (tile_.extent < kTile || OuterCount() * (inner_.extent / kTile) < 4 * pool.num_threads())
      return false;
    bool aligned = reinterpret_cast<uintptr_t>(to) % 16 == 0 && tile_.to * kBytes % 16 == 0;
    for (const Dim& d : dims_) aligned &= d.to * kBytes % 16 == 0;
    return aligned && OuterCount() * inner_.extent * tile_.extent * kBytes >= kLargeBytes;
  }

  // Prefetches lines of the tile after the next. The hardware prefetcher tracks fewer rows than a
  // tile has.
  template <class T>
  void PrefetchTile(const T* in) const {
    for (int64_t k = 0; k < kTile; ++k)
      _mm_prefetch(reinterpret_cast<const char*>(in + k * inner_.from + 2 * kTile), _MM_HINT_T0);
  }

  // Transposes a whole tile, kTile lines of kTile elements, in registers, so that each line of the
  // destination is written completely.
  void CopyTileNonTemporal(const uint32_t* from, uint32_t* to) const {
    const float* in = reinterpret_cast<const float*>(from);
    PrefetchTile(in);
    for (int64_t r = 0; r < kTile; r += 4, in += 4) {
      __m128 v[kTile];
      for (int64_t k = 0; k < kTile; ++k) v[k] = _mm_loadu_ps(in + k * inner_.from);
      for (int64_t k = 0; k < kTile; k += 4) _MM_TRANSPOSE4_PS(v[k], v[k + 1], v[k + 2], v[k + 3]);
      for (int64_t i = 0; i < 4; ++i) {
        float* const line = reinterpret_cast<float*>(to + (r + i) * tile_.to);
        for (int64_t k = 0; k < kTile; k += 4) _mm_stream_ps(line + k, v[k + i]);
      }
    }
  }
  void CopyTileNonTemporal(const uint64_t* from, uint64_t* to) const {
    const double* in = reinterpret_cast<const double*>(from);
    PrefetchTile(in);
    for (int64_t r = 0; r < kTile; r += 2, in += 2) {
      __m128d v[kTile];
      for (int64_t k = 0; k < kTile; ++k) v[k] = _mm_loadu_pd(in + k * inner_.from);
      double* const line = reinterpret_cast<double*>(to + r * tile_.to);
      for (int64_t k = 0; k < kTile; k += 2)
        _mm_stream_pd(line + k, _mm_unpacklo_pd(v[k], v[k + 1]));
      for (int64_t k = 0; k < kTile; k += 2)
        _mm_stream_pd(line + tile_.to + k, _mm_unpackhi_pd(v[k], v[k + 1]));
    }
  }

  template <class T>
  void RunNonTemporal(ThreadPool& pool, const T* from, T* to) const {
    using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
    const double cost =
        kScatteredCost * static_cast<double>(tile_.extent * std::min(kTile, inner_.extent));
    const auto copy = [&](const Position& p, int64_t band) {
      const int64_t col = band * kTile, cols = std::min(kTile, inner_.extent - col);
      for (int64_t row = 0; row < tile_.extent; row += kTile) {
        const int64_t rows = std::min(kTile, tile_.extent - row);
        const T* const x = from + p.from + row + col * inner_.from;
        T* const y = to + p.to + row * tile_.to + col;
        if (rows == kTile && cols == kTile) {
          CopyTileNonTemporal(reinterpret_cast<const Bits*>(x), reinterpret_cast<Bits*>(y));
        } else {
          CopyTile(x, y, rows, cols);
        }
      }
    };
    ForEachStrip(pool, (inner_.extent + kTile - 1) / kTile, cost, copy, [] { _mm_sfence(); });
  }
#else
  template <class T>
  bool CanUseNonTemporal(const ThreadPool&, const T*) const {
    return false;
  }
  template <class T>
  void RunNonTemporal(ThreadPool&, const T*, T*) const {}
#endif

  absl::InlinedVector<Dim, 6> dims_;
  Dim inner_{}, tile_{};
  bool tiled_ = false, empty_ = false;
};

}  // namespace

void StridedCopy::Run(ThreadPool& pool, DataType dtype, const void* from, void* to) const {
  Grid grid(*this);
  DispatchCopyType(
      dtype, [&]<class T>() { grid.Run(pool, static_cast<const T*>(from), static_cast<T*>(to)); });
}

void StridedCopy::Run(const KernelContext& c, DataType dtype, const void* from, void* to) const {
  const DevicePrimitives* const device = PrimitivesFor(c, dtype);
  if (device == nullptr) return Run(c.pool(), dtype, from, to);
  device->Copy({ElementSize(dtype), extents, from_strides, to_strides, from, to});
}

Dims StridesOf(absl::Span<const int64_t> dims) {
  Dims strides(dims.size());
  uint64_t stride = 1;  // wraps around only for tensors without elements
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = static_cast<int64_t>(stride);
    stride *= static_cast<uint64_t>(dims[i]);
  }
  return strides;
}

void CopyElements(DataType dtype, const void* from, void* to, int64_t count) {
  if (count == 0) return;
  if (IsPlain(dtype)) {
    std::memcpy(to, from, static_cast<size_t>(count) * ElementSize(dtype));
    return;
  }
  DispatchType(dtype, Objects{}, [&]<class T>() {
    std::copy_n(static_cast<const T*>(from), count, static_cast<T*>(to));
  });
}

void FillElements(ThreadPool& pool, DataType dtype, const void* value, void* to, int64_t count) {
  DispatchCopyType(dtype, [&]<class T>() {
    const T element = *static_cast<const T*>(value);
    pool.ParallelFor(
        count, kByteCost * sizeof(T),
        [&](int64_t begin, int64_t end) {
          FillLine(&element, static_cast<T*>(to) + begin, end - begin);
        },
        64);
  });
}

void ClearElements(ThreadPool& pool, Tensor& t) {
  if (IsPlain(t.dtype())) {
    const int64_t bytes = static_cast<int64_t>(t.num_bytes());
    pool.ParallelFor(
        bytes, kByteCost,
        [&](int64_t begin, int64_t end) {
          std::memset(static_cast<char*>(t.raw()) + begin, 0, static_cast<size_t>(end - begin));
        },
        4096);
    return;
  }
  ClearElements(t, 0, t.num_elements());
}

void ClearElements(Tensor& t, int64_t begin, int64_t count) {
  if (IsPlain(t.dtype())) {
    std::memset(ElementAt(t, begin), 0, static_cast<size_t>(count) * ElementSize(t.dtype()));
    return;
  }
  DispatchType(t.dtype(), Objects{},
               [&]<class T>() { std::fill_n(t.data<T>() + begin, count, T()); });
}

void CopyElements(const KernelContext& c, DataType dtype, const void* from, void* to,
                  int64_t count) {
  StridedCopy copy;
  copy.AddDim(count, 1, 1);
  copy.Run(c, dtype, from, to);
}

void FillElements(const KernelContext& c, DataType dtype, const void* value, void* to,
                  int64_t count) {
  const DevicePrimitives* const device = PrimitivesFor(c, dtype);
  if (device == nullptr) return FillElements(c.pool(), dtype, value, to, count);
  device->Fill(ElementSize(dtype), value, to, count);
}

void ClearElements(const KernelContext& c, Tensor& t) {
  const DevicePrimitives* const device = PrimitivesFor(c, t.dtype());
  if (device == nullptr) return ClearElements(c.pool(), t);
  const uint8_t zero = 0;
  device->Fill(1, &zero, t.raw(), static_cast<int64_t>(t.num_bytes()));
}

absl::Status OutputRun(KernelContext& c, int i, const Tensor& input, int64_t begin,
                       const Shape& shape) {
  char* data = static_cast<char*>(const_cast<void*>(ElementAt(input, begin)));
  const bool aligned = reinterpret_cast<uintptr_t>(data) % Allocator::kAlignment == 0;
  if (aligned && input.buffer() && !input.buffer()->transient()) {
    c.SetOutput(i, Tensor(input.dtype(), shape, input.buffer(), data));
    return absl::OkStatus();
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(i, shape));
  if (out->raw() == data) return absl::OkStatus();  // a loop-carried value that did not change
  CopyElements(c, input.dtype(), data, out->raw(), out->num_elements());
  return absl::OkStatus();
}

}  // namespace weir
