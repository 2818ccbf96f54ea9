#include <algorithm>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/index_shuffle.h"
#include "weir/kernels/random/distributions.h"

// Random permutations of indices (index_shuffle.h).
namespace weir {

namespace {

// Returns element i of a vector, or its only element.
int64_t Value(const Tensor& t, int64_t i) { return t.IntAt(t.rank() == 0 ? 0 : i); }

absl::Status Run(KernelContext& c, int64_t rounds) {
  const Tensor &index = c.input(0), &seed = c.input(1), &max_index = c.input(2);
  const int64_t n =
      std::max({index.num_elements(), max_index.num_elements(), seed.num_elements() / 3});
  const auto fits = [n](const Tensor& t) {
    return t.rank() == 0 || (t.rank() == 1 && t.dim(0) == n);
  };
  if (!fits(index)) return InvalidArgument("Index must be a scalar or a vector of size ", n, ".");
  if (seed.shape() != Shape({3}) && seed.shape() != Shape({n, 3})) {
    return InvalidArgument("Seed must be a vector of size [3] or a matrix of size [", n,
                           ", 3] but got ", seed.shape().ToString(), ".");
  }
  if (!fits(max_index)) {
    return InvalidArgument("Maxval must be a scalar or a vector of the same size as index but got ",
                           max_index.shape().ToString());
  }
  const bool scalar = index.rank() == 0 && seed.rank() == 1 && max_index.rank() == 0;
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, scalar ? Shape() : Shape({n})));
  const bool is_signed = out->dtype() == DT_INT32 || out->dtype() == DT_INT64;
  for (int64_t i = 0; i < n; ++i) {
    ThrowIfCancelledAt(i);
    const int64_t x = Value(index, i), max = Value(max_index, i);
    if (is_signed && x < 0) return InvalidArgument("index must be >= 0 but was ", x);
    if (is_signed && max < 0) return InvalidArgument("max_index must be >= 0 but was ", max);
    const uint64_t from = static_cast<uint64_t>(x), last = static_cast<uint64_t>(max);
    if (last < from) return InvalidArgument("max_index must be >= index, but ", last, " < ", from);
    IndexShuffleSeed key;
    for (int k = 0; k < 3; ++k) {
      const int64_t word = seed.IntAt((seed.rank() == 1 ? 0 : 3 * i) + k);
      key[k] = static_cast<uint32_t>(static_cast<uint64_t>(word));
    }
    out->SetIntAt(i, static_cast<int64_t>(ShuffledIndex(from, key, last, rounds)));
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> Make(const KernelInit& init) {
  const int64_t rounds = init.attr<int64_t>("rounds");
  constexpr int64_t kMostRounds = 1024;
  if (rounds < 4 || rounds % 2 != 0 || rounds > kMostRounds) {
    return InvalidArgument("rounds must be even and in [4, ", kMostRounds, "], got ", rounds);
  }
  return Kernel([rounds](KernelContext& c) { return Run(c, rounds); });
}

}  // namespace

void AddIndexShuffleCpu(KernelRegistry* r) { r->Add("RandomIndexShuffle", kCpu, Make); }

}  // namespace weir
