#ifndef WEIR_KERNELS_IMAGE_BOX_SET_H_
#define WEIR_KERNELS_IMAGE_BOX_SET_H_

#include <algorithm>
#include <cstdint>
#include <vector>

namespace weir {

// A rectangle with ordered corners.
struct Box {
  float low_y = 0, low_x = 0, high_y = 0, high_x = 0, area = 0;

  // y, x of one corner, and y, x of the opposite one.
  template <class T>
  static Box OfCorners(const T* corners) {
    const float y0 = static_cast<float>(corners[0]), x0 = static_cast<float>(corners[1]);
    const float y1 = static_cast<float>(corners[2]), x1 = static_cast<float>(corners[3]);
    Box box = {std::min(y0, y1), std::min(x0, x1), std::max(y0, y1), std::max(x0, x1)};
    box.area = (box.high_y - box.low_y) * (box.high_x - box.low_x);
    return box;
  }
};

// The area of the intersection over that of the union; 0 if a box is empty.
inline float Overlap(const Box& a, const Box& b) {
  if (a.area <= 0 || b.area <= 0) return 0;
  const float height = std::max(std::min(a.high_y, b.high_y) - std::max(a.low_y, b.low_y), 0.0f);
  const float width = std::max(std::min(a.high_x, b.high_x) - std::max(a.low_x, b.low_x), 0.0f);
  const float common = height * width;
  return common / (a.area + b.area - common);
}

// A list of boxes that others are compared with, by vectors.
class BoxSet {
 public:
  void Add(const Box& box);
  // True if Overlap(box, b) > threshold for any box b of the set; the same bits decide. The
  // threshold is at least 0.
  bool HasOverlap(const Box& box, float threshold) const;

  // Some boxes, by coordinate. Those that are missing are empty.
  struct Block {
    static constexpr int kBoxes = 16;
    float low_y[kBoxes], low_x[kBoxes], high_y[kBoxes], high_x[kBoxes], area[kBoxes];
  };

 private:
  std::vector<Block> blocks_;
  int64_t count_ = 0;
};

}  // namespace weir

#endif  // WEIR_KERNELS_IMAGE_BOX_SET_H_
