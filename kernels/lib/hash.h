#ifndef WEIR_KERNELS_LIB_HASH_H_
#define WEIR_KERNELS_LIB_HASH_H_

#include <cstdint>
#include <utility>

#include "absl/strings/string_view.h"

// Hashes of bytes with values that graphs depend on: models are trained on the resulting buckets,
// so the values never change.
namespace weir {

// FarmHash's Fingerprint64.
uint64_t Fingerprint64(absl::string_view bytes);
// FarmHash's Fingerprint128: the low and the high word.
std::pair<uint64_t, uint64_t> Fingerprint128(absl::string_view bytes);
// MurmurHash64A, seeded as TensorFlow seeds it, or otherwise.
inline constexpr uint64_t kMurmurSeed = 0xDECAFCAFFE;
uint64_t MurmurHash64(absl::string_view bytes);
uint64_t SeededMurmurHash64(absl::string_view bytes, uint64_t seed);
// SipHash-2-4 under a key of 128 bits.
uint64_t SipHash(uint64_t key0, uint64_t key1, absl::string_view bytes);

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_HASH_H_
