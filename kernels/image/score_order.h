#ifndef WEIR_KERNELS_IMAGE_SCORE_ORDER_H_
#define WEIR_KERNELS_IMAGE_SCORE_ORDER_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "weir/core/tensor/cancellation.h"

namespace weir {

// Numbers of boxes in the order of falling scores, the lower number first where scores are equal.
// Sorts only as many as are asked for, in parts of growing size: the best of some thousand boxes
// usually suppress the others.
//
// A box is an integer whose high half falls as the score rises, and whose low half is its number.
class ScoreOrder {
 public:
  // Of n < 2^31 scores, those above `least`; not NaNs.
  template <class T>
  ScoreOrder(const T* scores, int64_t n, float least) {
    keys_.reserve(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
      const float score = static_cast<float>(scores[i]);
      if (score > least) keys_.push_back(KeyOf(score) << 32 | static_cast<uint32_t>(i));
    }
  }

  // Returns the next box; -1 if there is none.
  int64_t Next() {
    if (next_ == keys_.size()) return -1;
    if (next_ == sorted_) SortPart();
    return static_cast<int64_t>(keys_[next_++] & 0xffffffff);
  }

 private:
  // Adding 0 makes -0 equal to 0.
  static uint64_t KeyOf(float score) {
    const uint32_t bits = std::bit_cast<uint32_t>(score + 0.0f);
    return bits >> 31 != 0 ? bits : ~bits & 0x7fffffff;
  }

  void SortPart() {
    ThrowIfCancelled();
    const auto begin = keys_.begin() + static_cast<int64_t>(sorted_);
    sorted_ = std::min(keys_.size(), sorted_ + part_);
    const auto end = keys_.begin() + static_cast<int64_t>(sorted_);
    if (end != keys_.end()) std::nth_element(begin, end, keys_.end());
    std::sort(begin, end);
    part_ *= 2;
  }

  std::vector<uint64_t> keys_;
  size_t next_ = 0, sorted_ = 0, part_ = 256;
};

}  // namespace weir

#endif  // WEIR_KERNELS_IMAGE_SCORE_ORDER_H_
