// Algorithms that round differently from the definition: that they are used, that their results
// agree with the definition, and that values which are not finite appear where the definition has
// them.

#include <cmath>
#include <limits>
#include <random>

#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"
#include "weir/session/session.h"
#include "weir/tests/session/lib/random_values.h"

namespace weir {
namespace {

Tensor Random(const Shape& shape, uint32_t seed) {
  std::mt19937 random(seed);
  return UniformFloats(shape, random);
}

Tensor MustRun(const Graph& g, const Feeds& feeds, const Output& y, const SessionOptions& options) {
  EXPECT_TRUE(g.status().ok()) << g.status();
  Session session = *Session::Create(g, options);
  const auto out = session.Run(feeds, {y});
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? (*out)[0] : Tensor(DT_FLOAT, {0});
}

struct Geometry {
  const char* label;
  Shape images, filter;
  ConvOptions options = {};
};

const std::vector<Geometry>& Geometries() {
  static const auto* const all = new std::vector<Geometry>{
      {"even", {2, 16, 16, 64}, {3, 3, 64, 64}},
      {"odd", {3, 15, 17, 64}, {3, 3, 64, 96}},
      {"valid", {2, 17, 16, 64}, {3, 3, 64, 64}, {.padding = "VALID"}},
      {"an image smaller than its filter", {1, 7, 7, 256}, {3, 3, 256, 272}},
      {"flat", {2, 5, 61, 64}, {3, 3, 64, 64}},
      {"three panels", {2, 16, 16, 80}, {3, 3, 80, 48}},
      {"pieces of unequal height", {1, 22, 23, 64}, {3, 3, 64, 64}},
      {"half a panel", {2, 16, 16, 64}, {3, 3, 64, 80}},
      {"half a panel of narrow vectors", {2, 16, 16, 64}, {3, 3, 64, 72}},
      {"explicit",
       {2, 13, 18, 64},
       {3, 3, 64, 64},
       {.padding = "EXPLICIT", .explicit_paddings = {0, 0, 3, 0, 1, 4, 0, 0}}},
      {"channels first", {2, 64, 14, 15}, {3, 3, 64, 64}, {.data_format = "NCHW"}},
  };
  return *all;
}

// Checks that the difference is within the rounding of sums of `products` products.
void ExpectClose(const Tensor& got, const Tensor& want, double products) {
  ASSERT_EQ(got.shape(), want.shape());
  const double allowed = 3e-6 * std::sqrt(products);
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    ASSERT_NEAR(got.data<float>()[i], want.data<double>()[i], allowed) << "at " << i;
  }
}

// Computes y(x, w) with and without fast algorithms, with one and more threads, and in double.
void Check(const Tensor& x, const Tensor& w, double products,
           const std::function<Output(const Output&, const Output&)>& y) {
  const auto run = [&](const SessionOptions& options, DataType type, bool constant) {
    Graph g;
    const Output xs = Placeholder(g, DT_FLOAT, x.shape());
    const Output ws = constant ? Const(g, w) : Placeholder(g, DT_FLOAT, w.shape());
    const Feeds feeds = constant ? Feeds{{xs, x}} : Feeds{{xs, x}, {ws, w}};
    return MustRun(g, feeds, y(Cast(xs, type), Cast(ws, type)), options);
  };
  const Tensor want = run({.num_threads = 2}, DT_DOUBLE, false);
  const Tensor slow = run({.num_threads = 2, .disable = {"fast_algorithms"}}, DT_FLOAT, true);
  ExpectClose(slow, want, products);
  for (const int threads : {1, 2, 3}) {
    for (const bool constant : {false, true}) {
      const Tensor fast = run({.num_threads = threads}, DT_FLOAT, constant);
      ExpectClose(fast, want, products);
      // With vectors of 16 elements, the number of channels must be a multiple of 16.
      if (constant && w.shape().dim(3) % 16 == 0) {
        EXPECT_FALSE(IdenticalTensors(fast, slow)) << "the fast algorithm was not used";
      }
    }
  }
}

TEST(FastConvolution, Forward) {
  for (const Geometry& g : Geometries()) {
    SCOPED_TRACE(g.label);
    Check(Random(g.images, 1), Random(g.filter, 2), 9.0 * g.filter.dim(2),
          [&](const Output& x, const Output& w) { return Conv2D(x, w, g.options); });
  }
}

TEST(FastConvolution, GradientForTheInput) {
  for (const Geometry& g : Geometries()) {
    SCOPED_TRACE(g.label);
    Graph graph;
    const Output y = Conv2D(Placeholder(graph, DT_FLOAT, g.images),
                            Placeholder(graph, DT_FLOAT, g.filter), g.options);
    std::vector<int32_t> sizes(g.images.dims().begin(), g.images.dims().end());
    Check(Random(y.shape(), 1), Random(g.filter, 2), 9.0 * g.filter.dim(3),
          [&](const Output& dy, const Output& w) {
            return Conv2DBackpropInput(Const(dy.graph(), Tensor::Vector<int32_t>(sizes)), w, dy,
                                       g.options);
          });
  }
}

TEST(FastConvolution, FusesEpilogues) {
  for (const Geometry& g : Geometries()) {
    if (g.options.data_format == "NCHW") continue;
    SCOPED_TRACE(g.label);
    Check(Random(g.images, 1), Random(g.filter, 2), 9.0 * g.filter.dim(2),
          [&](const Output& x, const Output& w) {
            const Output y = Conv2D(x, w, g.options);
            const Tensor bias = Random({g.filter.dim(3)}, 3), addend = Random(y.shape(), 4);
            Graph& graph = x.graph();
            const auto constant = [&](const Tensor& t) { return Cast(Const(graph, t), x.dtype()); };
            return Relu(BiasAdd(y, constant(bias)) + constant(addend));
          });
  }
}

// An infinity minus an infinity is NaN: where there is an infinity, the kernel follows the
// definition.
TEST(FastConvolution, NonFiniteValuesMatchTheDefinition) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const float odd : {kInf, -kInf, std::numeric_limits<float>::quiet_NaN()}) {
    for (const bool in_filter : {false, true}) {
      Tensor x = Random({2, 16, 16, 64}, 1), w = Random({3, 3, 64, 64}, 2);
      Tensor& spoiled = in_filter ? w : x;
      spoiled.data<float>()[spoiled.num_elements() / 2 + 7] = odd;
      Graph g;
      const Output xs = Placeholder(g, DT_FLOAT, x.shape());
      const Output y = Conv2D(xs, Const(g, w));
      const Tensor got = MustRun(g, {{xs, x}}, y, {.num_threads = 2});
      const Tensor want =
          MustRun(g, {{xs, x}}, y, {.num_threads = 2, .disable = {"fast_algorithms"}});
      int64_t finite = 0;
      for (int64_t i = 0; i < want.num_elements(); ++i) {
        const float a = got.data<float>()[i], b = want.data<float>()[i];
        finite += std::isfinite(b);
        ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << a << " and " << b << " at " << i;
      }
      EXPECT_GT(finite, want.num_elements() / 2);
    }
  }
}

}  // namespace
}  // namespace weir
