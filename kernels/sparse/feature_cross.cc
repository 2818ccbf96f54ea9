#include "weir/kernels/sparse/feature_cross.h"

#include <algorithm>
#include <limits>

#include "weir/core/tensor/cancellation.h"
#include "weir/kernels/lib/hash.h"

namespace weir {

ValueRun CrossColumn::Of(int64_t example) const {
  if (is_dense) return {example, example * values.dim(1), values.dim(1)};
  const auto it = std::lower_bound(runs.begin(), runs.end(), example,
                                   [](const ValueRun& r, int64_t e) { return r.example < e; });
  return it != runs.end() && it->example == example ? *it : ValueRun{example, 0, 0};
}

std::vector<ValueRun> RunsOf(const SparseValue& x) {
  std::vector<ValueRun> runs;
  for (int64_t begin = 0, end; begin < x.count(); begin = end) {
    const int64_t example = x.row(begin)[0];
    if (example >= x.dims[0] || example < (runs.empty() ? 0 : runs.back().example)) break;
    for (end = begin; end < x.count() && x.row(end)[0] == example;) ++end;
    runs.push_back({example, begin, end - begin});
  }
  return runs;
}

absl::StatusOr<std::vector<ValueRun>> CountCrosses(const CrossColumns& in) {
  std::vector<ValueRun> crosses;
  int64_t total = 0;
  const auto count = [&](int64_t example) {
    int64_t product = 1;
    for (const CrossColumn& column : in.columns) {
      if (__builtin_mul_overflow(product, column.Of(example).count, &product)) return false;
    }
    if (product > 0) crosses.push_back({example, total, product});
    return !__builtin_add_overflow(total, product, &total);
  };
  bool fits = true;
  if (!in.columns.empty() && !in.columns[0].is_dense) {
    for (const ValueRun& run : in.columns[0].runs) {
      ThrowIfCancelledAt(run.example);
      fits = fits && count(run.example);
    }
  } else if (!in.columns.empty()) {
    for (int64_t e = 0; e < in.examples && fits; ++e) {
      ThrowIfCancelledAt(e);
      fits = count(e);
    }
  }
  if (!fits) return absl::ResourceExhaustedError("the number of crosses overflows int64");
  return crosses;
}

// ---- hashes

namespace {

uint64_t ShiftMix(uint64_t x) { return x ^ (x >> 47); }

}  // namespace

// Combines two fingerprints: MurmurHash64A's step and finalization (A. Appleby), as FarmHash's
// authors recommend.
uint64_t Concatenated(uint64_t a, uint64_t b) {
  constexpr uint64_t kMul = 0xc6a4a7935bd1e995u;
  uint64_t h = ((a ^ kMul) ^ (ShiftMix(b * kMul) * kMul)) * kMul;
  h = ShiftMix(h) * kMul;
  return ShiftMix(h);
}

int64_t Bucket(uint64_t hash, int64_t num_buckets) {
  const int64_t buckets = num_buckets > 0 ? num_buckets : std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(hash % static_cast<uint64_t>(buckets));
}

uint64_t FeatureHash::Of(const CrossColumn& column, int64_t at) const {
  if (column.values.dtype() == DT_STRING) return OfBytes(column.values.data<std::string>()[at]);
  const int64_t* const number = column.values.data<int64_t>() + at;
  if (!keyed || (column.is_dense && !strong)) return static_cast<uint64_t>(*number);
  return OfBytes(absl::string_view(reinterpret_cast<const char*>(number), 4));
}

uint64_t FeatureHash::OfBytes(absl::string_view bytes) const {
  return strong ? SipHash(key[0], key[1], bytes) : Fingerprint64(bytes);
}

}  // namespace weir
