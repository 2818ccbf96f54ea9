#ifndef WEIR_KERNELS_QUANTIZE_FAKE_QUANT_LOOPS_H_
#define WEIR_KERNELS_QUANTIZE_FAKE_QUANT_LOOPS_H_

#include <cstdint>
#include <vector>

// The loops of fake quantization (fake_quant_cpu.cc), by vectors.
namespace weir {

// A range of numbers whose quantization points are (k - zero) * scale.
struct FakeQuantRange {
  bool empty = false;  // min and max are 0: all results are 0, all gradients pass
  float min = 0, max = 0, scale = 0, inverse = 0, zero = 0;
};

// The ranges of channels that alternate in memory, or the only range. They are repeated until they
// fill vectors, so that few channels take no more time than many.
class FakeQuantRanges {
 public:
  explicit FakeQuantRanges(const std::vector<FakeQuantRange>& channels);

  int64_t channels() const { return channels_; }
  // The number of ranges in each array, a multiple of channels(). Some more can be read.
  int64_t period() const { return period_; }
  const float* min() const { return At(0); }
  const float* max() const { return At(1); }
  const float* scale() const { return At(2); }
  const float* inverse() const { return At(3); }
  const float* zero() const { return At(4); }
  const float* empty() const { return At(5); }  // 1 or 0

 private:
  static constexpr int kFields = 6;
  static constexpr int64_t kPadding = 64;

  const float* At(int field) const { return numbers_.data() + field * (period_ + kPadding); }

  int64_t channels_, period_;
  std::vector<float> numbers_;
};

// All are for elements [begin, end) of tensors, of which element 0 is of channel 0.

// Rounds x to quantization points. `divides` by the scale instead of multiplying by its inverse,
// which differs in the last bit. x and y may be the same.
void RoundToPoints(const FakeQuantRanges& ranges, bool divides, const float* x, float* y,
                   int64_t begin, int64_t end);
// dx is dy where x is in its range, otherwise 0 (NaN if dy is not finite).
void PassInRange(const FakeQuantRanges& ranges, const float* dy, const float* x, float* dx,
                 int64_t begin, int64_t end);
// Adds dy to `below` where x is less than its range, and to `above` where x is greater. These have
// period() elements; element i adds to i modulo period().
void AddOutOfRange(const FakeQuantRanges& ranges, const float* dy, const float* x, int64_t begin,
                   int64_t end, double* below, double* above);

}  // namespace weir

#endif  // WEIR_KERNELS_QUANTIZE_FAKE_QUANT_LOOPS_H_
