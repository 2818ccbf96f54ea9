#ifndef WEIR_KERNELS_LIB_BLOCKS_H_
#define WEIR_KERNELS_LIB_BLOCKS_H_

#include <algorithm>
#include <cstdint>

#include "weir/core/tensor/cancellation.h"

namespace weir {

// The iterations [0, n) of a serial loop in blocks of about a thousand, with a cancellation check
// before each block:
//
//   for (const auto [begin, end] : CancellableBlocks(n))
//     for (int64_t i = begin; i < end; ++i) sums[i] += x[i];
//
// For short bodies. ThrowIfCancelledAt in the body itself reads an atomic, which keeps the compiler
// from holding values in registers, and gives the loop a second exit, which prevents vectorization:
// bin counting took twice as long with it.
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

// Calls fn(i) for every i in [0, n); fn may access only elements i. Runs in blocks of constant
// length: GCC at -O2 vectorizes no other loop (a comparison of floats takes 0.1 ns per element
// instead of 0.46).
template <class Fn>
void ForEachInBlocks(int64_t n, Fn fn) {
  constexpr int64_t kBlock = 64;
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
#pragma GCC ivdep
    for (int64_t k = 0; k < kBlock; ++k) fn(i + k);
  }
  for (; i < n; ++i) fn(i);
}

// Calls sort(less), where `sort` orders n elements. Checks for cancellation before sorting. If
// sorting n elements takes longer than about 10 ms, also checks during sorting; each comparison is
// then a third slower.
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

#endif  // WEIR_KERNELS_LIB_BLOCKS_H_
