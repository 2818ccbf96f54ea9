#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "weir/tests/evaluate.h"

// Rows combined by segment, and integers reduced, in vectors: against plain loops, for rows of all
// lengths, with NaNs, and with both zeros.
namespace weir {
namespace {

enum class How { kSum, kProd, kMax, kMin };
struct Named {
  const char* op;
  How how;
};
constexpr Named kOps[] = {
    {"Sum", How::kSum}, {"Prod", How::kProd}, {"Max", How::kMax}, {"Min", How::kMin}};

template <class T>
T Step(How how, T a, T x) {
  switch (how) {
    case How::kSum:
      return static_cast<T>(a + x);
    case How::kProd:
      return static_cast<T>(a * x);
    case How::kMax:
      return a > x || a != a ? a : x;
    case How::kMin:
      return a < x || a != a ? a : x;
  }
  return a;
}

template <class T>
T Start(How how) {
  switch (how) {
    case How::kSum:
      return T(0);
    case How::kProd:
      return T(1);
    case How::kMax:
      return std::numeric_limits<T>::lowest();
    case How::kMin:
      return std::numeric_limits<T>::max();
  }
  return T(0);
}

template <class T>
Tensor Data(int64_t rows, int64_t width) {
  Tensor t(DataTypeOf<T>::value, Shape({rows, width}));
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    T v = static_cast<T>(i * 7919 % 13 - 6);
    if constexpr (std::is_floating_point_v<T>) {
      if (i % 11 == 3) v = std::numeric_limits<T>::quiet_NaN();
      if (i % 13 == 5) v = T(-0.0);
    }
    t.data<T>()[i] = v;
  }
  return t;
}

// The ids need not be sorted; an id below 0 drops its row.
template <class T>
std::vector<T> Expected(How how, const Tensor& data, const std::vector<int32_t>& ids, int64_t count,
                        T fill) {
  const int64_t width = data.dim(1);
  std::vector<T> out(count * width, fill);
  std::vector<bool> has(count, false);
  for (size_t r = 0; r < ids.size(); ++r) {
    if (ids[r] < 0) continue;
    for (int64_t i = 0; i < width; ++i) {
      T& y = out[ids[r] * width + i];
      const T x = data.data<T>()[r * width + i];
      y = has[ids[r]] ? Step(how, y, x) : x;
    }
    has[ids[r]] = true;
  }
  return out;
}

// NaNs are equal, and the zeros are not.
template <class T>
void ExpectSame(const std::vector<T>& want, const Tensor& got) {
  ASSERT_EQ(static_cast<int64_t>(want.size()), got.num_elements());
  for (size_t i = 0; i < want.size(); ++i) {
    const T x = got.data<T>()[i];
    if (want[i] != want[i] && x != x) continue;
    ASSERT_EQ(std::memcmp(&want[i], &x, sizeof(T)), 0) << want[i] << " and " << x << " at " << i;
  }
}

template <class T>
void TestSegments(int64_t width) {
  SCOPED_TRACE(absl::StrCat(DataTypeName(DataTypeOf<T>::value), " rows of ", width));
  const std::vector<int32_t> sorted = {0, 0, 0, 2, 2, 3, 5, 5, 5, 5};
  const std::vector<int32_t> unsorted = {4, 1, -1, 1, 4, 0, 4, -7, 0, 1};
  const Tensor data = Data<T>(10, width);
  for (const auto& [name, how] : kOps) {
    SCOPED_TRACE(name);
    const auto out = RunFed(absl::StrCat("Segment", name), {data, Tensor::Vector<int32_t>(sorted)});
    ASSERT_TRUE(out.ok()) << out.status();
    ExpectSame(Expected<T>(how, data, sorted, 6, how == How::kProd ? T(1) : T(0)), (*out)[0]);
    const auto any = RunFed(absl::StrCat("UnsortedSegment", name),
                            {data, Tensor::Vector<int32_t>(unsorted), Tensor::Scalar<int32_t>(6)});
    ASSERT_TRUE(any.ok()) << any.status();
    std::vector<T> want = Expected<T>(how, data, unsorted, 6, Start<T>(how));
    if (how == How::kSum) {  // begins with 0, which makes -0 a 0
      for (T& x : want) x = x + T(0);
    }
    ExpectSame(want, (*any)[0]);
  }
}

TEST(Segments, RowsOfAllLengths) {
  for (const int64_t width :
       {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 130, 2047, 2049, 5000}) {
    TestSegments<float>(width);
    TestSegments<double>(width);
    TestSegments<int32_t>(width);
    TestSegments<int64_t>(width);
  }
}

template <class T>
void TestExtremes(int64_t rows, int64_t width) {
  SCOPED_TRACE(absl::StrCat(DataTypeName(DataTypeOf<T>::value), " ", rows, " x ", width));
  const Tensor data = Data<T>(rows, width);
  for (const auto& [name, how] : {kOps[2], kOps[3]}) {
    std::vector<T> all(1, data.data<T>()[0]), columns(data.data<T>(), data.data<T>() + width);
    for (int64_t i = 0; i < rows * width; ++i) {
      all[0] = Step(how, all[0], data.data<T>()[i]);
      columns[i % width] = Step(how, columns[i % width], data.data<T>()[i]);
    }
    const auto one = RunFed(name, {data, Tensor::Vector<int32_t>({0, 1})});
    ASSERT_TRUE(one.ok()) << one.status();
    ExpectSame(all, (*one)[0]);
    const auto each = RunFed(name, {data, Tensor::Scalar<int32_t>(0)});
    ASSERT_TRUE(each.ok()) << each.status();
    ExpectSame(columns, (*each)[0]);
  }
}

TEST(Reductions, ExtremesOfIntegers) {
  for (const int64_t width : {1, 3, 16, 17, 127, 255, 256, 257, 383, 1000}) {
    for (const int64_t rows : {1, 2, 50}) {
      TestExtremes<int32_t>(rows, width);
      TestExtremes<int64_t>(rows, width);
    }
  }
}

}  // namespace
}  // namespace weir
