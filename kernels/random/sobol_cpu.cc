#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/random/distributions.h"
#include "weir/kernels/random/sobol_numbers.h"

// Sobol sequences. Coordinate j of point n is the exclusive or of direction numbers of dimension j,
// those of the bits of the Gray code of n + 1 (Antonov and Saleev, 1979): point 0 is not the
// origin. So each point differs from the one before in a single direction number. The direction
// numbers follow from the initial ones and from a primitive polynomial (Bratley and Fox, "Algorithm
// 659", 1988).
namespace weir {

namespace {

constexpr int kBits = 31;  // of a coordinate: the index of a point is an int32

// Reads the packed initial numbers of one dimension after the other.
class PackedNumbers {
 public:
  uint32_t Bits(int count) {
    uint32_t value = 0;
    for (; count > 0; --count, ++at_) {
      const auto byte = static_cast<uint8_t>(packed_[at_ / 8]);
      value = value << 1 | (byte >> (7 - at_ % 8) & 1);
    }
    return value;
  }

 private:
  const absl::string_view packed_ = PackedSobolNumbers();
  size_t at_ = 0;
};

// The number of primitive polynomials of degree 1, 2, ... that the packed numbers contain.
constexpr int kPolynomials[] = {1,  1,   2,   2,   6,   6,    18,   16,   48,
                                60, 176, 144, 630, 756, 1800, 2048, 7710, 7775};

// Returns the direction numbers of the dimensions, kBits for each, as fractions of 2^kBits.
std::vector<uint32_t> DirectionNumbers(int64_t dimensions) {
  std::vector<uint32_t> all(static_cast<size_t>(dimensions * kBits));
  for (int k = 0; k < kBits; ++k) all[k] = uint32_t{1} << (kBits - 1 - k);
  PackedNumbers packed;
  int degree = 1, left = kPolynomials[0];
  for (int64_t d = 1; d < dimensions; ++d, --left) {
    if (left == 0) left = kPolynomials[degree++];
    const uint32_t inner = packed.Bits(degree - 1);
    uint32_t* const v = all.data() + d * kBits;
    for (int k = 0; k < degree; ++k) v[k] = (packed.Bits(k) << 1 | 1) << (kBits - 1 - k);
    for (int k = degree; k < kBits; ++k) {
      v[k] = v[k - degree] ^ v[k - degree] >> degree;
      for (int i = 1; i < degree; ++i) {
        if (inner >> (degree - 1 - i) & 1) v[k] ^= v[k - i];
      }
    }
  }
  return all;
}

struct SobolSize {
  int64_t dimensions, points, skip;
};

absl::StatusOr<SobolSize> ReadSize(const KernelContext& c) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  SobolSize size;
  WEIR_ASSIGN_OR_RETURN(size.dimensions, ReadInt(c.input(0), "dim"));
  WEIR_ASSIGN_OR_RETURN(size.points, ReadInt(c.input(1), "num_results"));
  WEIR_ASSIGN_OR_RETURN(size.skip, ReadInt(c.input(2), "skip"));
  if (size.dimensions < 1)
    return InvalidArgument("dim must be at least one, got ", size.dimensions);
  if (size.dimensions > kMaxSobolDimensions) {
    return InvalidArgument("dim must be at most ", kMaxSobolDimensions, ", got ", size.dimensions);
  }
  if (size.points < 1)
    return InvalidArgument("num_results must be at least one, got ", size.points);
  if (size.skip < 0) return InvalidArgument("skip must be non-negative, got ", size.skip);
  if (size.points >= kMost - size.skip) {
    return InvalidArgument("num_results+skip must be less than ", kMost, ", got ", size.points,
                           " and ", size.skip);
  }
  if (size.points >= kMost / size.dimensions) {
    return InvalidArgument("num_results*dim must be less than ", kMost, ", got ", size.points,
                           " and ", size.dimensions);
  }
  return size;
}

template <class T>
absl::Status SobolSample(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const SobolSize size, ReadSize(c));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape({size.points, size.dimensions})));
  const std::vector<uint32_t> directions = DirectionNumbers(size.dimensions);
  std::vector<uint32_t> point(static_cast<size_t>(size.dimensions));
  // Moves along direction number k.
  const auto move = [&](int k) {
    for (int64_t d = 0; d < size.dimensions; ++d) point[d] ^= directions[d * kBits + k];
  };
  const auto first = static_cast<uint32_t>(size.skip + 1);
  for (uint32_t gray = first ^ first >> 1; gray != 0; gray &= gray - 1)
    move(std::countr_zero(gray));
  constexpr T kUnit = T{1} / T{uint32_t{1} << kBits};
  T* to = out->data<T>();
  for (int64_t n = 0; n < size.points; ++n) {
    ThrowIfCancelledAt(n * size.dimensions);
    if (n > 0) move(std::countr_one(static_cast<uint32_t>(size.skip + n)));
    to = std::transform(point.begin(), point.end(), to,
                        [](uint32_t x) { return static_cast<T>(x) * kUnit; });
  }
  return absl::OkStatus();
}

}  // namespace

void AddSobolCpu(KernelRegistry* r) {
  r->Add("SobolSample", kCpu, {{"dtype", DT_FLOAT}}, SobolSample<float>);
  r->Add("SobolSample", kCpu, {{"dtype", DT_DOUBLE}}, SobolSample<double>);
}

}  // namespace weir
