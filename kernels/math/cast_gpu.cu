#include "weir/kernels/gpu/gpu_loops.h"
#include "weir/kernels/gpu/launch.h"
#include "weir/kernels/lib/scalar_math.h"
#include "weir/kernels/math/cast.h"
#include "weir/kernels/math/functor.h"

// Casts and AddN.
namespace weir::gpu {

namespace {

// Clears the low bits of the mantissa.
WEIR_HD inline float Truncated(float x, int dropped_bits) {
  return internal::FloatFromBits(internal::BitsFromFloat(x) & ~((uint32_t{1} << dropped_bits) - 1));
}
WEIR_HD inline double Truncated(double x, int dropped_bits) {
  const uint64_t mask = ~((uint64_t{1} << dropped_bits) - 1);
#ifdef __CUDA_ARCH__
  return __longlong_as_double(
      static_cast<long long>(static_cast<uint64_t>(__double_as_longlong(x)) & mask));
#else
  return std::bit_cast<double>(std::bit_cast<uint64_t>(x) & mask);
#endif
}

// 16-bit floats are converted through float.
template <class From, class To>
struct CastBody {
  const From* x;
  To* y;
  int dropped_bits;
  WEIR_HD void operator()(int64_t i) const {
    using In = Wide<From>;
    using Out = Wide<To>;
    In v = static_cast<In>(x[i]);
    if constexpr (std::is_floating_point_v<In>) {
      if (dropped_bits > 0) v = Truncated(v, dropped_bits);
    }
    y[i] = static_cast<To>(Convert<Out>(v));
  }
};

constexpr int kMaxTerms = 16;

template <class T>
struct AddBody {
  const T* xs[kMaxTerms];
  int count;
  T* out;
  WEIR_HD void operator()(int64_t i) const {
    using C = Wide<T>;
    C sum = static_cast<C>(xs[0][i]);
    for (int k = 1; k < count; ++k) sum = ScalarMath<C>::Add(sum, static_cast<C>(xs[k][i]));
    out[i] = static_cast<T>(sum);
  }
};

// The sum of the first terms is a term of the next pass. Each element reads all terms before it
// writes the result, which may alias a term. So one first pass into `out` covers all of a caller's
// in-place inputs: they are the first two.
template <class T>
void AddTerms(void* stream, const void* const* xs, int count, void* out, int64_t n) {
  AddBody<T> body{{}, 0, static_cast<T*>(out)};
  for (int k = 0; k < count; ++k) {
    body.xs[body.count++] = static_cast<const T*>(xs[k]);
    if (body.count < kMaxTerms && k + 1 < count) continue;
    ForEach(stream, n, body);
    body.xs[0] = body.out;
    body.count = 1;
  }
}

}  // namespace

bool Cast(void* stream, DataType from, DataType to, int dropped_bits, const void* x, void* y,
          int64_t n) {
  bool found = false;
  DispatchType(from, CastTypes(), [&]<class From>() {
    found = DispatchType(to, CastTypes(), [&]<class To>() {
      ForEach(stream, n,
              CastBody<From, To>{static_cast<const From*>(x), static_cast<To*>(y), dropped_bits});
    });
  });
  return found;
}

bool AddAll(void* stream, DataType type, const void* const* xs, int count, void* out, int64_t n) {
  return DispatchType(type, FloatsAndInt64(),
                      [&]<class T>() { AddTerms<T>(stream, xs, count, out, n); });
}

}  // namespace weir::gpu
