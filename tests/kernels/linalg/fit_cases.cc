#include <algorithm>
#include <cmath>
#include <numeric>

#include "weir/ops/linalg/fit.h"
#include "weir/tests/kernels/lib/recorded.h"

// Fits centers to points, and non-increasing sequences to numbers.
namespace weir {

namespace {

using namespace recorded;  // NOLINT: a vocabulary made for these tables

// ---- references

// Equidistant centers are ordered by index.
Tensors NeighborsReference(const Node&, const Tensors& in) {
  const std::vector<double> p = ToDoubles(in[0]), centers = ToDoubles(in[1]);
  const int64_t n = in[0].dim(0), dims = in[0].dim(1), count = in[1].dim(0);
  const int64_t k = std::min(count, in[2].IntAt(0));
  Tensor indices(DT_INT64, Shape({n, k})), distances(DT_DOUBLE, Shape({n, k}));
  for (int64_t i = 0; i < n; ++i) {
    std::vector<double> squares(static_cast<size_t>(count));
    for (int64_t j = 0; j < count; ++j) {
      for (int64_t d = 0; d < dims; ++d)
        squares[j] += std::pow(p[i * dims + d] - centers[j * dims + d], 2);
    }
    std::vector<int64_t> order(squares.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return squares[a] < squares[b]; });
    for (int64_t j = 0; j < k; ++j) {
      indices.SetIntAt(i * k + j, order[j]);
      distances.data<double>()[i * k + j] = squares[order[j]];
    }
  }
  return {indices, distances};
}

// The value at i is the minimum, over starts j <= i, of the maximum mean of x[j..k], k >= i. A
// segment begins where no mean that ends there is less than one that begins there.
Tensors IsotonicReference(const Node&, const Tensors& in) {
  const std::vector<double> x = ToDoubles(in[0]);
  const int64_t n = in[0].dim(-1);
  std::vector<double> y(x.size());
  Tensor segments(DT_INT32, in[0].shape());
  for (size_t first = 0; first < x.size(); first += n) {
    const auto mean = [&](int64_t from, int64_t to) {
      const double* const row = x.data() + first;
      return std::accumulate(row + from, row + to + 1, 0.0) / static_cast<double>(to - from + 1);
    };
    int64_t segment = 0;
    for (int64_t i = 0; i < n; ++i) {
      double least = 1e300, least_before = 1e300, greatest_after = -1e300;
      for (int64_t j = 0; j <= i; ++j) {
        double greatest = -1e300;
        for (int64_t k = i; k < n; ++k) greatest = std::max(greatest, mean(j, k));
        least = std::min(least, greatest);
        if (j < i) least_before = std::min(least_before, mean(j, i - 1));
      }
      for (int64_t k = i; k < n; ++k) greatest_after = std::max(greatest_after, mean(i, k));
      if (i > 0 && least_before >= greatest_after) ++segment;
      y[first + i] = least;
      segments.SetIntAt(static_cast<int64_t>(first) + i, segment);
    }
  }
  return {Doubles(in[0].shape(), y), segments};
}

// ---- rows

Tensor Points(std::initializer_list<float> values) {
  return Tensor::Of<float>({static_cast<int64_t>(values.size()) / 2, 2}, values);
}

// Two are equal.
Tensor Twelve() {
  return Points({0, 7, 3, 10, 6, 2, 9, 5, 1, 8, 4, 0, 7, 3, 10, 6, 2, 9, 5, 1, 8, 4, 0, 7});
}

OpCase Kmeans(const char* label, int64_t seed, int64_t count, int64_t retries,
              const Tensor& drawn) {
  return Row("KmeansPlusPlusInitialization", label,
             {Twelve(), Tensor::Scalar(count), Tensor::Scalar(seed), Tensor::Scalar(retries)},
             {drawn});
}

OpCase Chain(const char* label, int64_t seed, int64_t index) {
  return Row("KMC2ChainInitialization", label,
             {Tensor::Vector<float>({1, 2, 3, 1, 5, 2, 1, 4, 2, 1}), Tensor::Scalar(seed)},
             {Tensor::Scalar(index)});
}

OpCase Nearest(const char* label, const Shape& points, const Shape& centers, int64_t k) {
  return OpCase("NearestNeighbors")
      .Label(label)
      .Input(DT_FLOAT, points, {-4, 4})
      .Input(DT_FLOAT, centers, {-4, 4})
      .Input(Tensor::Scalar(k))
      .ToleranceFactor(20)
      .Reference(NeighborsReference);
}

OpCase Isotonic(const char* label, const Shape& shape, std::vector<DataType> types, DataType out) {
  return OpCase("IsotonicRegression")
      .Label(label)
      .Types(std::move(types))
      .Attr("output_dtype", out)
      .Input(shape, {-9, 9})
      .Reference(IsotonicReference);
}

std::vector<OpCase> FitCases() {
  const Tensor tied = Points({0, -5, -2, -2, 2, 4, -2, 0, 2, 1});
  const Tensor centers = Points({0, 0, 3, 3, -3, 1, 0, 0});
  return {
      Nearest("one", {50, 3}, {7, 3}, 1),
      Nearest("some", {50, 3}, {7, 3}, 4),
      Nearest("all", {5, 2}, {3, 2}, 9),
      Nearest("none", {5, 2}, {3, 2}, 0),
      Nearest("no_centers", {5, 2}, {0, 2}, 2),
      Nearest("no_dimensions", {5, 0}, {3, 0}, 2),
      Nearest("blocks", {300, 2}, {5000, 2}, 2),
      Row("NearestNeighbors", "ties", {tied, centers, Tensor::Scalar<int64_t>(2)},
          {Tensor::Of<int64_t>({5, 2}, {0, 3, 0, 3, 1, 0, 2, 0, 0, 1}),
           Points({25, 25, 8, 8, 2, 20, 2, 4, 5, 5})}),
      Chain("zero", 0, 7),
      Chain("one", 1, 7),
      Chain("seven", 7, 9),
      Chain("negative", -3, 7),
      Chain("large", int64_t{1} << 40, 4),
      Kmeans("one", 1, 1, 0, Points({1, 8})),
      Kmeans("plain", 7, 3, 0, Points({3, 10, 4, 0, 8, 4})),
      Kmeans("retries", 0, 4, 2, Points({5, 1, 0, 7, 9, 5, 3, 10})),
      Kmeans("as_many_as_good", -3, 5, -1, Points({5, 1, 2, 9, 8, 4, 0, 7, 9, 5})),
      Kmeans("all", 1, 12, 1,
             Points({1, 8, 7, 3, 4, 0, 10, 6, 3, 10, 0, 7, 2, 9, 8, 4, 5, 1, 6, 2, 9, 5, 0, 7})),
      Isotonic("float", {3, 17}, {DT_FLOAT}, DT_FLOAT),
      Isotonic("double", {2, 3, 7}, {DT_DOUBLE}, DT_DOUBLE),
      Isotonic("small_ints", {4, 9}, {DT_INT8, DT_INT16}, DT_FLOAT),
      Isotonic("ints", {4, 9}, {DT_INT32, DT_INT64}, DT_DOUBLE),
      Isotonic("vector", {8}, {DT_DOUBLE}, DT_DOUBLE),
      Isotonic("empty", {0, 3}, {DT_FLOAT}, DT_FLOAT),
      Isotonic("empty_rows", {3, 0}, {DT_DOUBLE}, DT_DOUBLE),
      Isotonic("half", {2, 1}, {DT_HALF}, DT_HALF),
      Isotonic("bfloat16", {2, 1}, {DT_BFLOAT16}, DT_BFLOAT16),
      Row("IsotonicRegression", "nan", {Tensor::Vector<float>({2, NAN, 1, 3})},
          {Tensor::Vector<float>({2, NAN, 2, 2}), Tensor::Vector<int32_t>({0, 1, 2, 2})}),
      Row("IsotonicRegression", "scalar", {Tensor::Scalar(2.0f)},
          {Tensor::Scalar(2.0f), Tensor::Scalar<int32_t>(0)}),
  };
}

TEST(Fit, RejectsMismatchedArguments) {
  const auto i64 = [](int64_t x) { return Tensor::Scalar(x); };
  const Tensor points = Twelve(), vector = Tensor::Vector<float>({1, 2}), pair = Longs({1, 2});
  const Tensor none = Tensor::Zeros(DT_FLOAT, Shape({0, 2}));
  const Tensor wide = Tensor::Zeros(DT_FLOAT, Shape({2, 3}));
  ExpectRejections({
      {"NearestNeighbors", {vector, points, i64(1)}, {}, "Input points should be a matrix."},
      {"NearestNeighbors", {points, vector, i64(1)}, {}, "Input centers should be a matrix."},
      {"NearestNeighbors", {points, points, pair}, {}, "Input k should be a scalar."},
      {"NearestNeighbors", {points, points, i64(-1)}, {}, "Expected k >= 0"},
      {"NearestNeighbors", {none, points, i64(1)}, {}, "Expected points.rows() > 0."},
      {"NearestNeighbors", {points, wide, i64(1)}, {}, "2 vs 3"},
      {"KmeansPlusPlusInitialization", {vector, i64(1), i64(1), i64(1)}, {}, "be a matrix."},
      {"KmeansPlusPlusInitialization", {points, pair, i64(1), i64(1)}, {}, "num_to_sample should"},
      {"KmeansPlusPlusInitialization", {points, i64(1), pair, i64(1)}, {}, "seed should be a"},
      {"KmeansPlusPlusInitialization", {points, i64(1), i64(1), pair}, {}, "per_sample should be"},
      {"KmeansPlusPlusInitialization", {none, i64(1), i64(1), i64(1)}, {}, "points.rows() > 0."},
      {"KmeansPlusPlusInitialization", {points, i64(0), i64(1), i64(1)}, {}, "num_to_sample > 0."},
      {"KmeansPlusPlusInitialization", {points, i64(13), i64(1), i64(1)}, {}, "13 vs 12."},
      {"KMC2ChainInitialization", {points, i64(1)}, {}, "Input distances should be a vector."},
      {"KMC2ChainInitialization", {vector, pair}, {}, "Input seed should be a scalar."},
      {"KMC2ChainInitialization", {Tensor::Zeros(DT_FLOAT, Shape({0})), i64(1)}, {}, "size() > 0"},
  });
}

// NaN distances end the draws too.
TEST(Fit, KmeansTerminatesForAllPoints) {
  for (const float bad : {NAN, INFINITY, 3e38f}) {
    Tensor points = Twelve();
    for (const int at : {0, 5, 17}) points.data<float>()[at] = bad;
    for (int64_t seed = 0; seed < 20; ++seed) {
      const auto y = RunFed(
          "KmeansPlusPlusInitialization",
          {points, Tensor::Scalar<int64_t>(12), Tensor::Scalar(seed), Tensor::Scalar<int64_t>(2)});
      EXPECT_TRUE(y.ok()) << y.status();
    }
  }
}

TEST(Fit, BuildersMatchTheOps) {
  Graph g;
  const Output points = Const(g, Twelve());
  const Neighbors near = NearestNeighbors(points, points, 1);
  const Output sampled = KmeansPlusPlusInitialization(points, 3, 7, 0);
  const Output index = Kmc2ChainInitialization(Const(g, Tensor::Vector<float>({1, 5, 2})), 1);
  const Output fitted = IsotonicRegression(Const(g, Tensor::Vector<int32_t>({1, 2, 1})));
  ASSERT_TRUE(g.status().ok()) << g.status();
  EXPECT_EQ(near.indices.shape(), Shape({12, 1}));
  EXPECT_EQ(sampled.shape(), Shape({3, 2}));
  const auto out = Evaluate(g, {near.indices, sampled, index, fitted});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].IntAt(11), 0);
  EXPECT_EQ((*out)[1].data<float>()[0], 3);
  EXPECT_EQ((*out)[3].data<double>()[0], 1.5);
}

INSTANTIATE_TEST_SUITE_P(Fit, OpSweepTest, testing::ValuesIn(FitCases()), OpCaseName);

}  // namespace

}  // namespace weir
