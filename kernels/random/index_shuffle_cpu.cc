#include <algorithm>
#include <cmath>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/random/distributions.h"

// Computes the position of an index in a random permutation of [0, max_index] without materializing
// the permutation. Sources: Beaulieu et al., "The SIMON and SPECK families of lightweight block
// ciphers", 2013; Black and Rogaway, "Ciphers with arbitrary finite domains", 2002.
//
// The index is encrypted with a block cipher whose block has just enough bits (16 at least), and
// encrypted again while the result exceeds max_index: since a cipher permutes its blocks, this
// terminates and permutes the indices. The cipher is SIMON with words of half a block and few
// rounds; the seed is its key.
namespace weir {

namespace {

using Seed = std::array<uint32_t, 3>;

// The cipher with words of `bits` bits.
class Simon {
 public:
  Simon(int bits, const Seed& seed, int64_t rounds)
      : bits_(bits), mask_(bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1) {
    keys_.assign(seed.begin(), seed.end());
    for (uint64_t& key : keys_) key &= mask_;
    uint64_t z = 0x7369f885192c0ef5u & mask_;
    for (int64_t i = 3; i < rounds; ++i, z >>= 1) {
      const uint64_t last = keys_[i - 1];
      keys_.push_back((0xfffffffcu & mask_) ^ (z & 1) ^ keys_[i - 3] ^ Rotate(last, bits_ - 3) ^
                      Rotate(last, bits_ - 4));
    }
  }

  uint64_t Encrypt(uint64_t block) const {
    uint64_t left = block >> bits_ & mask_, right = block & mask_;
    for (size_t i = 0; i + 1 < keys_.size(); i += 2) {
      left ^= Mix(right) ^ keys_[i];
      right ^= Mix(left) ^ keys_[i + 1];
    }
    return left << bits_ | right;
  }

 private:
  uint64_t Rotate(uint64_t x, int by) const { return (x << by | x >> (bits_ - by)) & mask_; }
  uint64_t Mix(uint64_t x) const { return (Rotate(x, 1) & Rotate(x, 8)) ^ Rotate(x, 2); }

  int bits_;
  uint64_t mask_;
  std::vector<uint64_t> keys_;
};

uint64_t ShuffledIndex(uint64_t index, const Seed& seed, uint64_t max_index, int64_t rounds) {
  if (max_index == 0) return 0;
  int block = static_cast<int>(std::ceil(std::log2(static_cast<double>(max_index))));
  block = std::max(block + block % 2, 16);
  const Simon cipher(block / 2, seed, rounds);
  do {
    index = cipher.Encrypt(index);
  } while (index > max_index);
  return index;
}

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
    Seed key;
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
