#include "weir/kernels/gpu/gpu_loops.h"
#include "weir/kernels/gpu/launch.h"

// Copies elements of any type, selected by their size.
namespace weir::gpu {

namespace {

template <class U>
struct CopyBody {
  GridIndex<2> grid;
  const U* from;
  U* to;
  WEIR_HD void operator()(int64_t i) const {
    int64_t at[2];
    grid.Locate(i, at);
    to[at[1]] = from[at[0]];
  }
};

template <class U>
struct FillBody {
  U value;
  U* to;
  WEIR_HD void operator()(int64_t i) const { to[i] = value; }
};

template <class U>
struct RepeatBody {
  const U* from;
  U* to;
  WEIR_HD void operator()(int64_t i) const { to[i] = *from; }
};

template <class U>
struct ChooseBody {
  GridIndex<3> grid;
  const bool* condition;
  const U* x;
  const U* y;
  U* z;
  WEIR_HD void operator()(int64_t i) const {
    int64_t at[3];
    grid.Locate(i, at);
    z[i] = condition[at[0]] ? x[at[1]] : y[at[2]];
  }
};

template <class U, class Index>
struct GatherBody {
  GatherArgs a;
  WEIR_HD void operator()(int64_t i) const {
    const int64_t inner = i % a.inner, slice = i / a.inner;
    const int64_t k = slice % a.count, block = slice / a.count;  // block: index in batch * outer
    const int64_t index =
        static_cast<int64_t>(static_cast<const Index*>(a.indices)[block / a.outer * a.count + k]);
    const bool good = index >= 0 && index < a.limit;
    static_cast<U*>(a.out)[i] =
        good ? static_cast<const U*>(a.params)[(block * a.limit + index) * a.inner + inner] : U();
  }
};

template <class U, class Index>
struct OneHotBody {
  OneHotArgs a;
  WEIR_HD void operator()(int64_t i) const {
    const int64_t suffix = i % a.suffix, rest = i / a.suffix;
    const int64_t depth = rest % a.depth, prefix = rest / a.depth;
    const int64_t index =
        static_cast<int64_t>(static_cast<const Index*>(a.indices)[prefix * a.suffix + suffix]);
    static_cast<U*>(a.out)[i] = *static_cast<const U*>(index == depth ? a.on : a.off);
  }
};

}  // namespace

void CopyGrid(void* stream, size_t size, const GridIndex<2>& grid, const void* from, void* to) {
  DispatchSize(size, [&]<class U>() {
    ForEach(stream, grid.count,
            CopyBody<U>{grid, static_cast<const U*>(from), static_cast<U*>(to)});
  });
}

void Fill(void* stream, size_t size, const Bytes16& value, void* to, int64_t n) {
  DispatchSize(size, [&]<class U>() {
    if constexpr (sizeof(U) == sizeof(Bytes16)) {
      ForEach(stream, n, FillBody<U>{value, static_cast<U*>(to)});
    } else {
      ForEach(stream, n, FillBody<U>{static_cast<U>(value.lo), static_cast<U*>(to)});
    }
  });
}

void Repeat(void* stream, size_t size, const void* from, void* to, int64_t n) {
  DispatchSize(size, [&]<class U>() {
    ForEach(stream, n, RepeatBody<U>{static_cast<const U*>(from), static_cast<U*>(to)});
  });
}

void Choose(void* stream, size_t size, const GridIndex<3>& grid, const bool* condition,
            const void* x, const void* y, void* z) {
  DispatchSize(size, [&]<class U>() {
    ForEach(stream, grid.count,
            ChooseBody<U>{grid, condition, static_cast<const U*>(x), static_cast<const U*>(y),
                          static_cast<U*>(z)});
  });
}

void Gather(void* stream, size_t size, DataType index_type, const GatherArgs& args) {
  const int64_t n = args.batch * args.outer * args.count * args.inner;
  DispatchSize(size, [&]<class U>() {
    DispatchType(index_type, List<int16_t, int32_t, int64_t>(),
                 [&]<class Index>() { ForEach(stream, n, GatherBody<U, Index>{args}); });
  });
}

void OneHot(void* stream, size_t size, DataType index_type, const OneHotArgs& args) {
  const int64_t n = args.prefix * args.depth * args.suffix;
  DispatchSize(size, [&]<class U>() {
    DispatchType(index_type, List<uint8_t, int8_t, int32_t, int64_t>(),
                 [&]<class Index>() { ForEach(stream, n, OneHotBody<U, Index>{args}); });
  });
}

}  // namespace weir::gpu
