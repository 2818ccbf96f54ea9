// Results are equal, bit for bit, with any number of threads, and a row's sum does not depend on
// the row's position.

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"
#include "weir/session/session.h"
#include "weir/tests/session/lib/random_values.h"
#include "weir/tests/session/lib/test_models.h"

namespace weir {
namespace {

constexpr int kThreads[] = {1, 2, 3, 4, 7};

Output Random(Graph& g, const Shape& shape) {
  std::mt19937 random(static_cast<uint32_t>(shape.num_elements()));
  return Const(g, UniformFloats(shape, random));
}

// Returns the fetches of the step with this number of threads. Constants are not folded.
Tensors RunOn(int threads, const Graph& g, const Outputs& ys, const Feeds& feeds = {},
              SessionOptions options = {}) {
  options.num_threads = threads;
  options.disable.insert("constant_folding");
  absl::StatusOr<Session> session = Session::Create(g, options);
  EXPECT_TRUE(session.ok()) << session.status();
  absl::StatusOr<Tensors> out = session->Run(feeds, ys);
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? *std::move(out) : Tensors();
}

struct Row {
  std::string name;
  std::function<Outputs(Graph&)> make;
};

void ExpectSameBits(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    Graph g;
    const Outputs ys = row.make(g);
    ASSERT_TRUE(g.status().ok()) << g.status();
    const Tensors want = RunOn(kThreads[0], g, ys);
    for (const int threads : kThreads) {
      EXPECT_EQ(Difference({RunOn(threads, g, ys)}, {want}, 0), "") << threads << " threads";
    }
  }
}

Outputs WithGradients(const Output& y, const Outputs& xs) {
  Outputs all = {y};
  for (const Output& dx : DenseGradients({Square(y)}, xs)) all.push_back(dx);
  return all;
}

TEST(Threads, ComputeIdenticalReductions) {
  std::vector<Row> rows;
  const std::vector<std::pair<Shape, std::vector<int64_t>>> cases = {
      {{1000003}, {0}},     {{3, 300007}, {1}}, {{37, 20011}, {1}},   {{701, 1783}, {0}},
      {{100003, 7}, {0}},   {{2003, 700}, {0}}, {{5, 4001, 61}, {1}}, {{61, 5, 4001}, {0, 2}},
      {{4001, 5, 61}, {0}}, {{333, 784}, {1}},  {{1, 500009}, {1}},   {{300, 1000, 3}, {0, 2}},
  };
  for (const auto& [shape, axes] : cases) {
    for (const bool fused : {false, true}) {
      rows.push_back({shape.ToString() + (fused ? " fused" : ""), [=](Graph& g) -> Outputs {
                        Output x = Random(g, shape);
                        if (fused) x = Square(x - 0.25f) * 1.5f;
                        return {ReduceSum(x, Ints(axes)), ReduceMean(x, Ints(axes)),
                                ReduceMax(x, Ints(axes)), ReduceProd(x + 0.5f, Ints(axes)),
                                Sqrt(ReduceSum(Exp(x), Ints(axes)))};
                      }});
    }
  }
  rows.push_back({"L2Loss", [](Graph& g) -> Outputs { return {L2Loss(Random(g, {1500007}))}; }});
  ExpectSameBits(rows);
}

TEST(Threads, ComputeIdenticalLayers) {
  struct Net {
    Shape image, filter;
    int64_t stride;
    bool depthwise = false;
  };
  std::vector<Row> rows;
  for (const Net& n : std::vector<Net>{{{32, 16, 16, 16}, {3, 3, 16, 16}, 1},
                                       {{21, 13, 17, 8}, {3, 3, 8, 24}, 2},
                                       {{1, 56, 56, 32}, {3, 3, 32, 32}, 1},
                                       {{2, 28, 28, 40}, {3, 3, 40, 32}, 1},
                                       {{3, 28, 28, 40}, {5, 5, 40, 32}, 1},
                                       {{1, 7, 7, 256}, {3, 3, 256, 256}, 1},
                                       {{17, 14, 14, 96}, {1, 1, 96, 64}, 1},
                                       {{16, 14, 14, 64}, {1, 1, 64, 96}, 2},
                                       {{1, 56, 56, 64}, {7, 7, 64, 3}, 2},
                                       {{9, 28, 28, 1}, {5, 5, 1, 32}, 1},
                                       {{7, 28, 28, 64}, {3, 3, 64, 1}, 1, true}}) {
    rows.push_back({n.image.ToString() + " by " + n.filter.ToString(), [=](Graph& g) {
                      const Output x = Random(g, n.image), f = Random(g, n.filter);
                      const ConvOptions options{.strides = {1, n.stride, n.stride, 1}};
                      return WithGradients(n.depthwise ? DepthwiseConv2dNative(x, f, options)
                                                       : Conv2D(x, f, options),
                                           {x, f});
                    }});
  }
  rows.push_back({"conv with bias and relu", [](Graph& g) -> Outputs {
                    const Output y = Conv2D(Random(g, {5, 30, 30, 16}), Random(g, {3, 3, 16, 64}));
                    return {Relu(BiasAdd(y, Random(g, {64})))};
                  }});
  for (const Shape& shape : {Shape({32, 32, 32, 16}), Shape({3, 57, 31, 24})}) {
    rows.push_back({"batch norm " + shape.ToString(), [=](Graph& g) -> Outputs {
                      const Output x = Random(g, shape), scale = Random(g, {shape.dim(3)}),
                                   offset = Random(g, {shape.dim(3)});
                      const FusedBatchNormResult norm = FusedBatchNorm(x, scale, offset);
                      Outputs all = WithGradients(norm.y, {x, scale, offset});
                      all.push_back(norm.batch_mean);
                      all.push_back(norm.batch_variance);
                      return all;
                    }});
  }
  rows.push_back({"bias", [](Graph& g) {
                    const Output b = Random(g, {33});
                    return WithGradients(BiasAdd(Random(g, {20011, 33}), b), {b});
                  }});
  rows.push_back({"softmax", [](Graph& g) {
                    const Output x = Random(g, {1003, 117});
                    return WithGradients(LogSoftmax(x), {x});
                  }});
  ExpectSameBits(rows);
}

TEST(Threads, ComputeIdenticalProducts) {
  std::vector<Row> rows;
  struct Size {
    int64_t m, n, k;
  };
  for (const Size& s : std::vector<Size>{{1, 512, 1784},
                                         {3, 1000, 777},
                                         {4, 3001, 500},
                                         {37, 129, 1111},
                                         {61, 700, 1300},
                                         {257, 301, 1025},
                                         {131, 33, 4099},
                                         {140, 2100, 2100}}) {
    for (int transposed = 0; transposed < 4; ++transposed) {
      rows.push_back({absl::StrCat(s.m, "x", s.n, "x", s.k, " ", transposed), [=](Graph& g) {
                        const bool a = (transposed & 1) != 0, b = (transposed & 2) != 0;
                        const Output x = Random(g, a ? Shape({s.k, s.m}) : Shape({s.m, s.k}));
                        const Output y = Random(g, b ? Shape({s.n, s.k}) : Shape({s.k, s.n}));
                        return Outputs{MatMul(x, y, {.transpose_a = a, .transpose_b = b})};
                      }});
    }
  }
  rows.push_back({"double", [](Graph& g) -> Outputs {
                    return {MatMul(Cast(Random(g, {203, 301}), DT_DOUBLE),
                                   Cast(Random(g, {301, 107}), DT_DOUBLE))};
                  }});
  // The addend may share the product's memory or not, depending on memory planning.
  rows.push_back({"with addends", [](Graph& g) -> Outputs {
                    const Output x = Random(g, {70, 900}), w = Random(g, {900, 130});
                    const Output z = Tanh(MatMul(x, w));
                    return {Relu(MatMul(x, w) + z), MatMul(x, w) + z + Random(g, {130}), z};
                  }});
  ExpectSameBits(rows);
}

TEST(Threads, ComputeIdenticalElements) {
  ExpectSameBits({{"functions",
                   [](Graph& g) -> Outputs {
                     const Output x = Random(g, {100003}), y = x * 3.0f + 4.0f;
                     return {Exp(x),      Tanh(x),   Sigmoid(x),   Erf(x),
                             Log(y),      Sin(x),    Cos(x),       Sqrt(y),
                             Rsqrt(y),    Pow(y, x), Softplus(x),  Elu(x),
                             x / y,       Log1p(y),  Expm1(x),     Square(x) * y + x,
                             Atan2(x, y), Lgamma(y), Reciprocal(y)};
                   }},
                  {"scans and segments", [](Graph& g) -> Outputs {
                     const Output x = Random(g, {30011, 37});
                     Tensor ids(DT_INT32, Shape({30011}));
                     for (int64_t i = 0; i < ids.num_elements(); ++i)
                       ids.SetIntAt(i, (i * 2654435761u >> 7) % 101);
                     return {Cumsum(x, 0), Cumsum(x, 1), UnsortedSegmentSum(x, Const(g, ids), 101)};
                   }}});
}

// Convolutions, batch norm, dropout, sparse gradients, Adam: batches large enough to be sliced.
TEST(Threads, TrainToTheSameBits) {
  Graph g;
  const TestModel model = AddConvNet(g);
  std::vector<Tensors> want;
  for (const int threads : kThreads) {
    absl::StatusOr<Session> session = Session::Create(g, {.num_threads = threads});
    ASSERT_TRUE(session.ok()) << session.status();
    const auto got = RunModel(*session, model, {700, 37, 701, 700});
    ASSERT_TRUE(got.ok()) << got.status();
    if (want.empty()) want = *got;
    EXPECT_EQ(Difference(*got, want, 0), "") << threads << " threads";
  }
}

TEST(Threads, SumEqualRowsAlikeAtAnyPosition) {
  for (const int64_t length : {3, 17, 100, 784, 1000, 1024, 1025, 3001, 300007}) {
    SCOPED_TRACE(length);
    const int64_t count = length > 10000 ? 3 : 167;
    Graph g;
    const Output x = Placeholder(g, DT_FLOAT, {-1, length}), y = Random(g, {length});
    const Outputs sums = {ReduceSum(Abs(x - y), {1}), ReduceMean(SquaredDifference(x, y), {1}),
                          ReduceSum(x, {1}), Sqrt(ReduceSum(Square(x), {1}) + 1e-6f),
                          ReduceSum(Exp(x) * 0.3f, {1}, /*keep_dims=*/true)};
    std::mt19937 random(static_cast<uint32_t>(length));
    const Tensor some = UniformFloats({count, length}, random);
    Tensor twice(DT_FLOAT, Shape({2 * count, length}));
    for (int i = 0; i < 2; ++i)
      std::memcpy(twice.data<float>() + i * count * length, some.raw(), some.num_bytes());
    for (const int threads : {1, 2, 7}) {
      const Tensors all = RunOn(threads, g, sums, {{x, twice}});
      for (size_t k = 0; k < sums.size(); ++k) {
        const float* const got = all[k].data<float>();
        EXPECT_EQ(std::memcmp(got, got + count, count * sizeof(float)), 0) << "sum " << k;
        for (const int64_t i : {int64_t{0}, count / 2, count - 1}) {
          const Tensors alone = RunOn(threads, g, {sums[k]}, {{x, some.Slice(i, i + 1)}});
          EXPECT_EQ(alone[0].data<float>()[0], got[i]) << "sum " << k << ", row " << i;
        }
      }
    }
  }
}

// 0.1 times the smallest normal number, as the step's kernels compute it on all threads.
TEST(Subnormals, CountAsZeroUnlessTheSessionKeepsThem) {
  constexpr float kSmallest = std::numeric_limits<float>::min();
  Tensor x(DT_FLOAT, Shape({300001}));
  for (float& v : x.flat<float>()) v = kSmallest;
  for (const bool flush : {true, false}) {
    for (const bool fold : {true, false}) {
      for (const int threads : kThreads) {
        Graph g;
        const Output fed = Placeholder(g, DT_FLOAT, {-1});
        const Outputs ys = {fed * 0.1f, Const(g, kSmallest) * 0.1f, Exp(fed * 0.0f - 90.f),
                            Cast(Cast(fed, DT_DOUBLE) * 0.1, DT_FLOAT) * 1e10f};
        SessionOptions options{.num_threads = threads, .flush_subnormals = flush};
        if (!fold) options.disable = {"constant_folding"};
        absl::StatusOr<Session> session = Session::Create(g, options);
        ASSERT_TRUE(session.ok()) << session.status();
        const absl::StatusOr<Tensors> out = session->Run(Feeds{{fed, x}}, ys);
        ASSERT_TRUE(out.ok()) << out.status();
        EXPECT_EQ((*out)[1].scalar<float>() == 0, flush);
        for (const size_t k : {0, 2, 3}) {
          int64_t zeros = 0;
          for (const float v : (*out)[k].flat<float>()) zeros += v == 0 ? 1 : 0;
          EXPECT_EQ(zeros, flush ? x.num_elements() : 0) << k << ", " << threads << " threads";
        }
      }
    }
  }
}

TEST(Subnormals, CreatedBetweenStepsPersist) {
  Graph g;
  const Output y = Const(g, 2.0f) * 3.0f;
  absl::StatusOr<Session> session = Session::Create(g);
  ASSERT_TRUE(session->Run(Outputs{y}).ok());
  volatile float smallest = std::numeric_limits<float>::min();
  volatile float tenth = smallest * 0.1f;
  EXPECT_GT(tenth, 0);
}

}  // namespace
}  // namespace weir
