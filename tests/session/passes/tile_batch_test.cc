// Layers that run slice by slice: that they do, that results are those of whole batches, and which
// nodes are excluded.

#include <cmath>
#include <map>
#include <random>
#include <thread>

#include "absl/algorithm/container.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/containers/queue.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/initializers.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/image/image.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"
#include "weir/session/session.h"
#include "weir/tests/session/lib/random_values.h"

namespace weir {
namespace {

constexpr int64_t kImages = 12, kSide = 96, kChannels = 16;  // 7 MB per layer

Tensor Random(const Shape& shape, uint32_t seed) {
  std::mt19937 random(seed);
  return UniformFloats(shape, random);
}

Tensor Images(int64_t count = kImages) { return Random({count, kSide, kSide, kChannels}, 1); }

// Returns how often each op runs in a step; stores the step's results.
struct OpCounts {
  Tensors values;
  std::map<std::string, int> times;
};

// A reduction with fused elementwise nodes keeps its own name.
std::string OpOf(const NodeTrace& node) {
  return node.op == "_FusedReduction" ? node.fused_ops.back() : node.op;
}

OpCounts RunOnce(const Graph& g, const Feeds& feeds, const Outputs& ys,
                 const SessionOptions& options) {
  EXPECT_TRUE(g.status().ok()) << g.status();
  Session session = *Session::Create(g, options);
  std::vector<NodeTrace> trace;
  const absl::StatusOr<Tensors> out = session.Run(feeds, ys, {}, {.trace = &trace});
  EXPECT_TRUE(out.ok()) << out.status();
  OpCounts ran;
  if (out.ok()) ran.values = *out;
  for (const NodeTrace& node : trace) ++ran.times[OpOf(node)];
  return ran;
}

void ExpectNear(const Tensors& got, const Tensors& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t k = 0; k < want.size(); ++k) {
    ASSERT_EQ(got[k].shape(), want[k].shape());
    for (int64_t i = 0; i < want[k].num_elements(); ++i) {
      const float value = want[k].data<float>()[i];
      ASSERT_NEAR(got[k].data<float>()[i], value, 2e-5 + 1e-6 * std::abs(value))
          << "element " << i << " of fetch " << k;
    }
  }
}

const SessionOptions kWhole = {.num_threads = 2, .disable = {"tile_batch"}};

// Runs with and without slices; `times`: how often the op runs with slices.
void Check(const Graph& g, const Feeds& feeds, const Outputs& ys, const std::string& op, int times,
           int threads = 2) {
  const OpCounts whole = RunOnce(g, feeds, ys, kWhole);
  const OpCounts slices = RunOnce(g, feeds, ys, {.num_threads = threads});
  ExpectNear(slices.values, whole.values);
  EXPECT_EQ(slices.times.count(op) == 0 ? 0 : slices.times.at(op), times) << op;
  EXPECT_EQ(slices.times.count("_TiledSubplan"), 0) << "its nodes are traced";
}

Output Layer(const Output& x, const Output& filter) { return Relu(Conv2D(x, filter)); }

// 1x1 filters produce large values with little work, which matters under sanitizers.
Output Filter(Graph& g, uint32_t seed, Shape shape = {1, 1, kChannels, kChannels}) {
  return Const(g, Random(shape, seed));
}

// Three layers, and a classifier on top.
Output Classifier(const Output& x) {
  Graph& g = x.graph();
  Output y = Layer(x, Filter(g, 2, {3, 3, kChannels, kChannels}));
  y = y + Layer(y, Filter(g, 3));
  y = Layer(y, Filter(g, 4));
  y = ReduceMean(y, {1, 2});
  return Softmax(MatMul(y, Const(g, Random({kChannels, 10}, 5))));
}

TEST(BatchSlices, AreImages) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {-1, kSide, kSide, kChannels});
  const Output y = Classifier(x);
  for (const int threads : {1, 2, 3, 4})
    Check(g, {{x, Images()}}, {y}, "Mean", static_cast<int>(kImages), threads);
}

// Folded nodes release their inputs, and passes after this one visit them.
TEST(BatchSlices, WithFoldedNodes) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {-1, kSide, kSide, kChannels});
  const Output scores = Classifier(x), table = Const(g, Random({4, 10}, 6));
  const Output part = Slice(table, {1, 0}, {1, 10}), same = Identity(table);
  const Output y = scores * part + ReduceSum(same * 2.f, {0}, true);
  Check(g, {{x, Images()}}, {y}, "Mean", static_cast<int>(kImages));
}

TEST(BatchSlices, AreAsManyOnAnyNumberOfThreads) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {-1, kSide, kSide, kChannels});
  const Output y = Classifier(x);
  Check(g, {{x, Images(13)}}, {y}, "Mean", 13, 1);
  Check(g, {{x, Images(13)}}, {y}, "Mean", 13, 2);
  Check(g, {{x, Images(10)}}, {y}, "Mean", 10, 10);
  Check(g, {{x, Images(10)}}, {y}, "Mean", 10, 8);
  Check(g, {{x, Images(1)}}, {y}, "Mean", 1);
  Check(g, {{x, Images(2)}}, {y}, "Mean", 1);  // fits the caches
}

TEST(BatchSlices, HaveAsManyBytesAsWeights) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {-1, kSide, kSide, kChannels});
  Output y = Layer(Layer(Layer(x, Filter(g, 2)), Filter(g, 3)), Filter(g, 4));
  y = MatMul(ReduceMean(y, {1, 2}),
             Const(g, Random({kChannels, 100000}, 5)));  // 6.4 MB: three rows
  y = ReduceMax(y, {1});
  Check(g, {{x, Images()}}, {y}, "Max", 4);
  Check(g, {{x, Images()}}, {y}, "Max", 4, 1);
  Check(g, {{x, Images()}}, {y}, "Max", 4, 3);
}

TEST(BatchSlices, TakeAllRowOps) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {kImages, kSide, kSide, kChannels});
  Output y = Layer(x, Filter(g, 2));
  y = Pad(y, {{0, 0}, {1, 1}, {2, 0}, {0, 0}});
  y = DepthwiseConv2dNative(y, Const(g, Random({3, 3, kChannels, 1}, 6)), {.padding = "VALID"});
  const PoolOptions kHalves = {.ksize = {1, 2, 2, 1}, .strides = {1, 2, 2, 1}};
  const auto channel = [&](uint32_t seed) { return Const(g, Random({kChannels}, seed)); };
  y = FusedBatchNorm(y, channel(7), channel(8),
                     {.mean = channel(9), .variance = Square(channel(10)), .is_training = false})
          .y;
  y = Relu6(BiasAdd(y, channel(11)));
  y = LocalResponseNormalization(y);
  y = Concat({MaxPool(y, kHalves), AvgPool(y, kHalves)}, 3);
  y = ResizeBilinear(y, {kSide, kSide});
  y = Identity(Layer(y, Filter(g, 12, {3, 3, 2 * kChannels, kChannels})));
  y = Reshape(y, {kImages, kSide * kSide, kChannels});
  y = ReduceSum(y, {1}, /*keep_dims=*/true) / float{kSide * kSide};
  y = Squeeze(y, {1});
  y = Maximum(y * Const(g, Random({1, kChannels}, 13)), 0.1f);
  y = Softmax(y);
  const OpCounts ran = RunOnce(g, {{x, Images()}}, {y}, {.num_threads = 2});
  for (const auto& [op, times] : ran.times) EXPECT_EQ(times % kImages, 0) << op << " " << times;
  Check(g, {{x, Images()}}, {y}, "Softmax", static_cast<int>(kImages));
}

TEST(BatchSlices, EndWhereRowsMeet) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {-1, kSide, kSide, kChannels});
  const Output y = Layer(Layer(Layer(x, Filter(g, 2)), Filter(g, 3)), Filter(g, 4));
  const Output rows = ReduceMean(y, {1, 2});
  // A path leaves the layers through the mean of the batch and returns.
  const Output centered = rows - ReduceMean(rows, {0});
  const Output product = MatMul(centered, Const(g, Random({kChannels, 5}, 5)));
  Check(g, {{x, Images()}}, {product}, "Conv2D", 3 * static_cast<int>(kImages));
  Check(g, {{x, Images()}}, {product}, "MatMul", 1);
  // A row of one value is combined with all rows of another.
  const Output all = MatMul(rows, rows, {.transpose_b = true});
  Check(g, {{x, Images()}}, {all, product}, "Conv2D", 3 * static_cast<int>(kImages));
  Check(g, {{x, Images()}}, {all}, "MatMul", 1);
}

TEST(BatchSlices, HaveSeveralResults) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {-1, kSide, kSide, kChannels});
  const Output y = Layer(Layer(Layer(x, Filter(g, 2)), Filter(g, 3)), Filter(g, 4));
  const Output mean = ReduceMean(y, {1, 2}), most = ReduceMax(y, {1, 2});
  Check(g, {{x, Images()}}, {most, ReduceSum(mean, {0}), mean, most}, "Max",
        static_cast<int>(kImages));
}

TEST(BatchSlices, DoNotTileValuesUsedAsAWhole) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {-1, kSide, kSide, kChannels});
  const Output a = Layer(x, Filter(g, 2)), b = Layer(a, Filter(g, 3)), c = Layer(b, Filter(g, 4));
  Check(g, {{x, Images()}}, {a, b, ReduceMean(c, {1, 2})}, "Mean", 1);
}

TEST(BatchSlices, DoNotTileStepsWithLoopsOrWrites) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {-1, kSide, kSide, kChannels});
  const Output y = Classifier(x);
  // Values that enter a frame and leave it again.
  const Output back = Exit(Enter(ReduceMean(Layer(x, Filter(g, 6)), {1, 2}), "f"));
  Check(g, {{x, Images()}}, {y, MatMul(back, Const(g, Random({kChannels, 3}, 7)))}, "Mean", 2);

  const Variable count = GetVariable(g, "count", {}, Zeros());
  const Operation init = GlobalVariablesInitializer(g);
  ASSERT_TRUE(g.status().ok()) << g.status();
  Session session = *Session::Create(g, {.num_threads = 2});
  std::vector<NodeTrace> trace;
  ASSERT_TRUE(session.Run({{x, Images()}}, {y}, {init}, {.trace = &trace}).ok());
  EXPECT_EQ(absl::c_count_if(trace, [](const NodeTrace& n) { return OpOf(n) == "Mean"; }), 1);
}

// Weights in variables are fed to every slice, with their current values.
TEST(BatchSlices, SeeVariablesChange) {
  for (const bool resource : {false, true}) {
    Graph g(GraphOptions{.use_resource = resource});
    const Output x = Placeholder(g, DT_FLOAT, {-1, kSide, kSide, kChannels});
    const Variable w = GetVariable(g, "w", {1, 1, kChannels, kChannels}, Constant(0.01));
    const Output y = ReduceMean(Layer(Layer(Layer(x, w.value()), w.value()), Filter(g, 4)), {1, 2});
    const Output next = Placeholder(g, DT_FLOAT, {1, 1, kChannels, kChannels});
    const Operation assign(w.Assign(next).node);
    const Operation init = GlobalVariablesInitializer(g);
    ASSERT_TRUE(g.status().ok()) << g.status();
    Session whole = *Session::Create(g, kWhole), slices = *Session::Create(g, {.num_threads = 2});
    for (Session* session : {&whole, &slices}) ASSERT_TRUE(session->Run({}, {}, {init}).ok());
    for (uint32_t seed = 20; seed < 23; ++seed) {
      const Tensor filter = Random({1, 1, kChannels, kChannels}, seed);
      for (int repeat = 0; repeat < 2; ++repeat) {
        const auto want = whole.Run({{x, Images()}}, {y}), got = slices.Run({{x, Images()}}, {y});
        ASSERT_TRUE(want.ok() && got.ok()) << want.status() << got.status();
        ExpectNear(*got, *want);
      }
      for (Session* session : {&whole, &slices})
        ASSERT_TRUE(session->Run({{next, filter}}, {}, {assign}).ok());
    }
  }
}

TEST(BatchSlices, RunInManyStepsAtOnce) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {-1, kSide, kSide, kChannels});
  const Output y = Classifier(x);
  Session session = *Session::Create(g, {.num_threads = 2});
  const Tensors want = RunOnce(g, {{x, Images()}}, {y}, kWhole).values;
  std::vector<Tensors> got(3);
  std::vector<std::thread> callers;
  for (Tensors& out : got) {
    callers.emplace_back([&] {
      for (int i = 0; i < 3; ++i) out = session.Run({{x, Images()}}, {y}).value();
    });
  }
  for (std::thread& t : callers) t.join();
  for (const Tensors& out : got) ExpectNear(out, want);
}

// A slice is large enough to be worth running a plan for, however small a row is.
TEST(BatchSlices, AreNotSmall) {
  constexpr int64_t kRows = 1 << 20;
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {-1, 8});
  const Output y = ReduceMax(Softmax(x), {1});
  const OpCounts ran = RunOnce(g, {{x, Random({kRows, 8}, 1)}}, {y}, {.num_threads = 2});
  EXPECT_GT(ran.times.at("Softmax"), 1);
  EXPECT_LE(ran.times.at("Softmax"), 64);
}

// A dequeue waits for the enqueue of computed values, without an edge between them: a region around
// both would wait for itself.
TEST(BatchSlices, DoNotWaitForThemselves) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {kImages, kSide, kSide, kChannels});
  const Output y = Layer(Layer(Layer(x, Filter(g, 2)), Filter(g, 3)), Filter(g, 4));
  const Output rows = ReduceMean(y, {1, 2});
  const Queue queue = Queue::Fifo(g, 100, {DT_FLOAT}, {.shapes = {{kChannels}}});
  const Operation enqueue = queue.EnqueueMany({rows});
  const Output sum = Relu(rows) + queue.DequeueMany(static_cast<int32_t>(kImages))[0];
  ASSERT_TRUE(g.status().ok()) << g.status();
  Session session = *Session::Create(g, {.num_threads = 2});
  const absl::StatusOr<Tensors> out = session.Run({{x, Images()}}, {ReduceMax(sum, {1})}, {enqueue},
                                                  {.timeout = std::chrono::seconds(20)});
  EXPECT_TRUE(out.ok()) << out.status();
}

}  // namespace
}  // namespace weir
