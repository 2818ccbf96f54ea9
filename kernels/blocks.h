#ifndef WEIR_KERNELS_BLOCKS_H_
#define WEIR_KERNELS_BLOCKS_H_

#include <algorithm>
#include <cstdint>

#include "weir/core/cancellation.h"

namespace weir {

// The iterations [0, n) of a serial loop in blocks of a thousand or so, with a look at the step's
// cancellation before each:
//
//   for (const auto [begin, end] : CancellableBlocks(n))
//     for (int64_t i = begin; i < end; ++i) sums[i] += x[i];
//
// For short bodies. ThrowIfCancelledAt in the body itself reads an atomic, across which the
// compiler keeps nothing in registers, and makes a loop with two exits, which it does not
// vectorize: counting into bins took twice as long with it.
class CancellableBlocks {
 public:
  struct Block {
    int64_t begin, end;
  };
  class Iterator {
   public:
    Iterator(int64_t begin, int64_t n) : begin_(begin), n_(n) {}
    Block operator*() const {
      ThrowIfCancelled();
      return {begin_, std::min(n_, begin_ + kIterations)};
    }
    Iterator& operator++() {
      begin_ += kIterations;
      return *this;
    }
    bool operator!=(const Iterator&) const { return begin_ < n_; }

   private:
    int64_t begin_;
    const int64_t n_;
  };

  explicit CancellableBlocks(int64_t n) : n_(n) {}
  Iterator begin() const { return {0, n_}; }
  Iterator end() const { return {n_, n_}; }

 private:
  static constexpr int64_t kIterations = 1024;
  const int64_t n_;
};

// sort(less), for a `sort` that orders n elements. Looks at the step's cancellation before, and
// where there are so many that sorting takes longer than some 10 ms, also within it: then each
// comparison takes a third more.
template <class Less, class F>
void SortCancellably(int64_t n, const Less& less, F&& sort) {
  constexpr int64_t kFew = int64_t{1} << 16;
  ThrowIfCancelled();
  if (n <= kFew) {
    sort(less);
    return;
  }
  int64_t compared = 0;
  sort([&](const auto& a, const auto& b) {
    ThrowIfCancelledAt(++compared);
    return less(a, b);
  });
}

}  // namespace weir

#endif  // WEIR_KERNELS_BLOCKS_H_
