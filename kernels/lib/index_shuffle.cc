#include "weir/kernels/lib/index_shuffle.h"

#include <algorithm>
#include <cmath>
#include <vector>

// Sources: Beaulieu et al., "The SIMON and SPECK families of lightweight block
// ciphers", 2013; Black and Rogaway, "Ciphers with arbitrary finite domains", 2002.
//
// The index is encrypted with a block cipher whose block has just enough bits (16 at least), and
// encrypted again while the result exceeds max_index: since a cipher permutes its blocks, this
// terminates and permutes the indices. The cipher is SIMON with words of half a block and few
// rounds; the seed is its key.
namespace weir {

namespace {

// The cipher with words of `bits` bits.
class Simon {
 public:
  Simon(int bits, const IndexShuffleSeed& seed, int64_t rounds)
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

}  // namespace

uint64_t ShuffledIndex(uint64_t index, const IndexShuffleSeed& seed, uint64_t max_index,
                       int64_t rounds) {
  if (max_index == 0) return 0;
  int block = static_cast<int>(std::ceil(std::log2(static_cast<double>(max_index))));
  block = std::max(block + block % 2, 16);
  const Simon cipher(block / 2, seed, rounds);
  do {
    index = cipher.Encrypt(index);
  } while (index > max_index);
  return index;
}

}  // namespace weir
