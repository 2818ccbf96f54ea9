#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "weir/core/tensor/numeric_types.h"
#include "weir/tests/evaluate.h"

// NonMaxSuppression against two plain loops over boxes that are sorted by score: boxes of all
// kinds, also empty ones and NaNs, and scores that are equal.
namespace weir {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Boxes {
  std::vector<float> corners, scores;
  int64_t size() const { return static_cast<int64_t>(scores.size()); }
};

Boxes RandomBoxes(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform;
  Boxes boxes;
  for (int64_t i = 0; i < n; ++i) {
    const float y = uniform(random), x = uniform(random);
    const float height = 0.3f * uniform(random), width = 0.3f * uniform(random);
    std::vector<float> box = {y, x, y + height, x + width};
    if (i % 3 == 1) std::swap(box[0], box[2]);
    if (i % 5 == 1) std::swap(box[1], box[3]);
    if (i % 17 == 9) box[2] = box[0];
    if (i % 23 == 11) box[i % 4] = kNan;
    if (i % 19 == 7) box = {0, 0, 1, 1};
    boxes.corners.insert(boxes.corners.end(), box.begin(), box.end());
    float score = std::floor(uniform(random) * 40) / 20 - 1;
    if (i % 31 == 3) score = i % 2 == 0 ? 0.0f : -0.0f;
    if (i % 29 == 3) score = i % 2 == 0 ? kNan : std::numeric_limits<float>::infinity();
    boxes.scores.push_back(score);
  }
  return boxes;
}

float Overlap(const float* a, const float* b) {
  float area[2], common = 1;
  for (const auto& [box, i] : {std::pair(a, 0), std::pair(b, 1)}) {
    area[i] = (std::max(box[0], box[2]) - std::min(box[0], box[2])) *
              (std::max(box[1], box[3]) - std::min(box[1], box[3]));
  }
  if (area[0] <= 0 || area[1] <= 0) return 0;
  for (const int i : {0, 1}) {
    const float low = std::max(std::min(a[i], a[i + 2]), std::min(b[i], b[i + 2]));
    const float high = std::min(std::max(a[i], a[i + 2]), std::max(b[i], b[i + 2]));
    common *= std::max(high - low, 0.0f);
  }
  return common / (area[0] + area[1] - common);
}

template <class T>
std::vector<int32_t> Expected(const Boxes& boxes, size_t count, float overlap, float score) {
  std::vector<int32_t> order(boxes.scores.size()), chosen;
  std::iota(order.begin(), order.end(), 0);
  std::erase_if(order, [&](int32_t i) { return !(boxes.scores[i] > score); });
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return boxes.scores[a] > boxes.scores[b]; });
  for (const int32_t i : order) {
    if (chosen.size() == count) break;
    const bool is_suppressed = std::any_of(chosen.begin(), chosen.end(), [&](int32_t j) {
      const float both = Overlap(&boxes.corners[4 * i], &boxes.corners[4 * j]);
      return static_cast<float>(static_cast<T>(both)) > overlap;
    });
    if (!is_suppressed) chosen.push_back(i);
  }
  return chosen;
}

template <class T>
Tensor TensorOf(std::vector<float>* values, const Shape& shape) {
  Tensor t(DataTypeOf<T>::value, shape);
  for (size_t i = 0; i < values->size(); ++i) {
    t.data<T>()[i] = static_cast<T>((*values)[i]);
    (*values)[i] = static_cast<float>(t.data<T>()[i]);
  }
  return t;
}

template <class T>
void ExpectChoice(Boxes boxes, int32_t count, float overlap, float score) {
  SCOPED_TRACE(absl::StrCat(boxes.size(), " boxes, ", count, " ", overlap, " ", score));
  const auto scalar = [](float v) {
    Tensor t(DataTypeOf<T>::value, Shape());
    *t.data<T>() = static_cast<T>(v);
    return t;
  };
  const Tensor corners = TensorOf<T>(&boxes.corners, Shape({boxes.size(), 4}));
  const Tensor scores = TensorOf<T>(&boxes.scores, Shape({boxes.size()}));
  const absl::StatusOr<Tensors> got =
      RunFed("NonMaxSuppressionV3",
             {corners, scores, Tensor::Scalar<int32_t>(count), scalar(overlap), scalar(score)});
  ASSERT_TRUE(got.ok()) << got.status();
  const std::vector<int32_t> want =
      Expected<T>(boxes, count, static_cast<float>(static_cast<T>(overlap)),
                  static_cast<float>(static_cast<T>(score)));
  const absl::Span<const int32_t> indices = (*got)[0].flat<int32_t>();
  EXPECT_EQ(want, std::vector<int32_t>(indices.begin(), indices.end()));
}

TEST(NonMaxSuppression, ChoosesAsPlainLoops) {
  for (const int64_t n : {0, 1, 2, 15, 16, 17, 100, 1917}) {
    for (const float overlap : {0.0f, 0.3f, 0.6f, 1.0f}) {
      for (const float score : {-std::numeric_limits<float>::infinity(), -0.5f, 0.0f, 2.0f}) {
        ExpectChoice<float>(RandomBoxes(n, 3), 100, overlap, score);
        ExpectChoice<half>(RandomBoxes(n, 4), 100, overlap, score);
      }
    }
  }
  ExpectChoice<float>(RandomBoxes(3000, 5), 3000, 0.5f, -1);
  ExpectChoice<float>(RandomBoxes(300, 6), 0, 0.5f, -1);
  ExpectChoice<float>(RandomBoxes(300, 7), 1, 0.5f, -1);
}

}  // namespace
}  // namespace weir
