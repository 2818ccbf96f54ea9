#include "weir/tools/run/machine_limits.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <vector>

#include "absl/functional/function_ref.h"
#include "hwy/aligned_allocator.h"
#include "hwy/cache_control.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tools/run/machine_limits.cc"

#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace weir::tools {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// a = b + s * c, with non-temporal stores to `a`. n is a multiple of 64.
void Triad(float* HWY_RESTRICT a, const float* HWY_RESTRICT b, const float* HWY_RESTRICT c, float s,
           size_t n) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, s);
  for (size_t i = 0; i < n; i += hn::Lanes(d))
    hn::Stream(hn::MulAdd(factor, hn::Load(d, c + i), hn::Load(d, b + i)), d, a + i);
  hwy::FlushStream();
}

// Runs twelve independent chains of fused multiply-adds: four cycles of latency times two units
// need eight, and sixteen registers hold twelve. Returns the number of operations.
double MultiplyAdd(float s, int64_t rounds, float* result) {
  const hn::ScalableTag<float> d;
  const auto m = hn::Set(d, s), c = hn::Set(d, 1 - s);
  auto x0 = m, x1 = m, x2 = m, x3 = m, x4 = m, x5 = m, x6 = m, x7 = m, x8 = m, x9 = m, x10 = m,
       x11 = m;
  for (int64_t i = 0; i < rounds; ++i) {
    x0 = hn::MulAdd(x0, m, c);
    x1 = hn::MulAdd(x1, m, c);
    x2 = hn::MulAdd(x2, m, c);
    x3 = hn::MulAdd(x3, m, c);
    x4 = hn::MulAdd(x4, m, c);
    x5 = hn::MulAdd(x5, m, c);
    x6 = hn::MulAdd(x6, m, c);
    x7 = hn::MulAdd(x7, m, c);
    x8 = hn::MulAdd(x8, m, c);
    x9 = hn::MulAdd(x9, m, c);
    x10 = hn::MulAdd(x10, m, c);
    x11 = hn::MulAdd(x11, m, c);
  }
  const auto low = hn::Add(hn::Add(hn::Add(x0, x1), hn::Add(x2, x3)), hn::Add(x4, x5));
  const auto high = hn::Add(hn::Add(hn::Add(x6, x7), hn::Add(x8, x9)), hn::Add(x10, x11));
  *result = hn::GetLane(hn::Add(low, high));
  return 2. * 12 * static_cast<double>(hn::Lanes(d)) * static_cast<double>(rounds);
}

}  // namespace HWY_NAMESPACE
}  // namespace weir::tools
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir::tools {
namespace {

HWY_EXPORT(Triad);
HWY_EXPORT(MultiplyAdd);

constexpr size_t kLine = 64;        // floats: a multiple of every vector length
constexpr size_t kPage = 4096 / 4;  // floats

// Returns the seconds of the fastest of `repeats` calls; stops early after 0.2 s in total.
double Fastest(int repeats, absl::FunctionRef<void()> call) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point first = Clock::now();
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < repeats; ++i) {
    const Clock::time_point start = Clock::now();
    call();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
    if (Clock::now() - first > std::chrono::milliseconds(200)) break;
  }
  return best;
}

size_t ArrayFloats() {
  const int64_t cache = std::max<int64_t>(0, sysconf(_SC_LEVEL3_CACHE_SIZE));
  return static_cast<size_t>(std::clamp<int64_t>(cache, 32 << 20, 128 << 20)) / sizeof(float);
}

absl::StatusOr<double> Bandwidth(ThreadPool& pool) {
  const size_t size = ArrayFloats(), pieces = static_cast<size_t>(pool.num_threads());
  const auto a = hwy::AllocateAligned<float>(size), b = hwy::AllocateAligned<float>(size),
             c = hwy::AllocateAligned<float>(size);
  if (a == nullptr || b == nullptr || c == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("OOM when allocating ", 3 * size * 4,
                                                     " bytes to measure the bandwidth of memory"));
  }
  const auto begin = [&](size_t piece) { return size / kLine * piece / pieces * kLine; };
  pool.ForEach(static_cast<int>(pieces),
               [&](int i) {  // touch each page so that the system allocates it
                 for (float* array : {a.get(), b.get(), c.get()}) {
                   for (size_t at = begin(i); at < begin(i + 1); at += kPage) array[at] = 0;
                 }
               });
  const double seconds = Fastest(5, [&] {
    pool.ForEach(static_cast<int>(pieces), [&](int i) {
      HWY_DYNAMIC_DISPATCH(Triad)
      (a.get() + begin(i), b.get() + begin(i), c.get() + begin(i), 0.5f, begin(i + 1) - begin(i));
    });
  });
  return 3. * static_cast<double>(size * sizeof(float)) / seconds;
}

double Peak(ThreadPool& pool) {
  const int pieces = pool.num_threads();
  std::vector<float> results(pieces);  // keeps the compiler from removing the computation
  std::vector<double> flops(pieces);
  const double seconds = Fastest(20, [&] {
    pool.ForEach(pieces, [&](int i) {
      flops[i] = HWY_DYNAMIC_DISPATCH(MultiplyAdd)(0.999f, 500000, &results[i]);
    });
  });
  double sum = 0;
  for (const double f : flops) sum += f;
  return sum / seconds;
}

}  // namespace

absl::StatusOr<MachineLimits> MeasureMachineLimits(ThreadPool& pool) {
  MachineLimits limits;
  limits.num_threads = pool.num_threads();
  WEIR_ASSIGN_OR_RETURN(limits.bytes_per_second, Bandwidth(pool));
  limits.flops_per_second = Peak(pool);
  return limits;
}

}  // namespace weir::tools
#endif  // HWY_ONCE
