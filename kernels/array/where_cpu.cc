#include "weir/kernels/array/where.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/integer_bits.h"
#include "weir/kernels/lib/scalar_math.h"

// Two passes over blocks of elements, both on all threads. The first one writes the truth values as
// bits, 64 to a word, and counts those of each block; running sums of the counts are the rows where
// the blocks' results begin. The second one reads only the bits, from one set bit to the next:
// there is no branch on the value of an element, which for half true ones in random order would be
// mispredicted every other time (Lemire, "Really fast bitset decoding", 2019).
namespace weir {
namespace {

using Tested = JoinLists<List<bool>, Numbers>;

constexpr int64_t kWordsPerBlock = 64, kBlock = 64 * kWordsPerBlock;

template <class T>
bool IsTrue(const T& v) {
  if constexpr (kIsNarrowFloat<T>) {
    return static_cast<float>(v) != 0;
  } else {
    return v != T(0);
  }
}

// Bit i tells whether x[i] is true, for i < n <= 64.
template <class T>
uint64_t TruthBits(const T* x, int64_t n) {
  uint64_t bits = 0;
  for (int64_t i = 0; i < n; ++i) bits |= uint64_t{IsTrue(x[i])} << i;
  return bits;
}
// Eight bytes at a time: the uppermost bit of each byte becomes whether the byte is not zero, and a
// multiplication moves these bits next to each other.
uint64_t TruthBits(const uint8_t* x, int64_t n) {
  constexpr uint64_t kLow = 0x7f7f7f7f7f7f7f7f;
  uint64_t bits = 0;
  for (int64_t i = 0; i < n; i += 8) {
    uint64_t v = 0;
    for (int64_t k = 0; k < std::min<int64_t>(8, n - i); ++k) v |= uint64_t{x[i + k]} << (8 * k);
    const uint64_t ones = (((v & kLow) + kLow) | v) >> 7 & 0x0101010101010101;
    bits |= (ones * 0x0102040810204080 >> 56) << i;
  }
  return bits;
}

// Calls f(i) for each set bit i of the words, which begin with bit `first`.
template <class F>
void ForEachBit(const uint64_t* words, int64_t count, int64_t first, F&& f) {
  for (int64_t w = 0; w < count; ++w) {
    for (uint64_t bits = words[w]; bits != 0; bits &= bits - 1)
      f(first + 64 * w + std::countr_zero(bits));
  }
}

// Writes index vectors of increasing elements.
class IndexWriter {
 public:
  IndexWriter(const Shape& shape, int64_t first, int64_t* to)
      : shape_(shape), last_(shape.rank() - 1), index_(shape.rank(), 0), to_(to) {
    line_ = first - first % shape.dim(last_);
    int64_t rest = first / shape.dim(last_);
    for (int d = last_ - 1; d >= 0; --d) {
      index_[d] = rest % shape.dim(d);
      rest /= shape.dim(d);
    }
  }
  void Write(int64_t i) {
    while (i - line_ >= shape_.dim(last_)) NextLine();
    to_ = std::copy_n(index_.data(), last_, to_);
    *to_++ = i - line_;
  }

 private:
  void NextLine() {
    line_ += shape_.dim(last_);
    for (int d = last_ - 1; d >= 0 && ++index_[d] == shape_.dim(d); --d) index_[d] = 0;
  }

  const Shape& shape_;
  const int last_;  // the dimension along which a line of elements lies
  Dims index_;      // of the line, in all other dimensions
  int64_t line_;    // its first element
  int64_t* to_;
};

template <class T>
absl::Status Where(KernelContext& c) {
  const Tensor& in = c.input(0);
  const T* x = static_cast<const T*>(in.raw());
  const int64_t n = in.num_elements(), blocks = (n + kBlock - 1) / kBlock;
  std::vector<uint64_t> words(static_cast<size_t>((n + 63) / 64));
  const auto words_of = [&](int64_t block) {
    return std::min(kWordsPerBlock, static_cast<int64_t>(words.size()) - block * kWordsPerBlock);
  };
  std::vector<int64_t> rows(static_cast<size_t>(blocks));
  c.pool().ParallelFor(blocks, 1.0 * kBlock, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      int64_t count = 0;
      for (int64_t w = b * kWordsPerBlock, k = words_of(b); k > 0; ++w, --k) {
        words[w] = TruthBits(x + 64 * w, std::min<int64_t>(64, n - 64 * w));
        count += std::popcount(words[w]);
      }
      rows[b] = count;
    }
  });
  int64_t count = 0;
  for (int64_t& row : rows) count += std::exchange(row, count);
  const int rank = in.rank();
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape({count, rank})));
  if (out->num_elements() == 0) return absl::OkStatus();
  int64_t* const to = out->data<int64_t>();
  c.pool().ParallelFor(blocks, 1.0 * kBlock, [&](int64_t begin, int64_t end) {
    const uint64_t* const from = words.data() + begin * kWordsPerBlock;
    const int64_t some = (end - begin - 1) * kWordsPerBlock + words_of(end - 1);
    if (rank == 1) {
      int64_t* at = to + rows[begin];
      ForEachBit(from, some, begin * kBlock, [&](int64_t i) { *at++ = i; });
    } else {
      IndexWriter writer(in.shape(), begin * kBlock, to + rows[begin] * rank);
      ForEachBit(from, some, begin * kBlock, [&](int64_t i) { writer.Write(i); });
    }
  });
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Kernel> MakeWhere(const KernelInit& init) {
  const DataType type = init.attr<DataType>("T");
  Kernel kernel;
  if (!DispatchType(type, Tested{}, [&]<class T>() { kernel = Kernel(&Where<IntegerBits<T>>); })) {
    return Unimplemented("elements of type ", DataTypeName(type), " have no truth value");
  }
  return kernel;
}

}  // namespace weir
