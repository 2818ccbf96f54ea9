// Sessions on a GPU: models train as they do on the CPU, and every node of the step of
// examples/digits has a kernel.

#include <cstdio>
#include <map>
#include <random>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/examples/digits/network.h"
#include "weir/tests/gpu/test_gpu.h"
#include "weir/tests/session/lib/test_models.h"

namespace weir {
namespace {

using ::testing::UnorderedElementsAre;

class GpuSession : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (NewTestGpu(std::chrono::microseconds(0), &why) == nullptr) GTEST_SKIP() << why;
  }
};

Session Start(const Graph& graph, SessionOptions options) {
  absl::StatusOr<Session> session = Session::Create(graph, std::move(options));
  EXPECT_TRUE(session.ok()) << session.status();
  return *std::move(session);
}

// ---- models

// Nodes of a step by whether they ran on the GPU.
struct NodesByDevice {
  std::multiset<std::string> on_gpu, elsewhere;  // ops
};
NodesByDevice Count(const Session& session, const std::vector<NodeTrace>& trace) {
  NodesByDevice placed;
  for (const NodeTrace& t : trace) {
    const bool there = t.device == session.devices()[1]->text();
    (there ? placed.on_gpu : placed.elsewhere).insert(t.op);
  }
  return placed;
}

void ExpectLikeTheCpu(const std::function<TestModel(Graph&)>& add,
                      const std::vector<int64_t>& batches, size_t at_least, const char* name) {
  for (const bool resource : {true, false}) {
    SCOPED_TRACE(resource ? "resource variables" : "reference variables");
    Graph g(GraphOptions{.use_resource = resource});
    const TestModel model = add(g);
    ASSERT_TRUE(g.status().ok()) << g.status();
    Session cpu = Start(g, {.num_threads = 2});
    Session gpu = Start(g, WithTestGpu({.num_threads = 2}));
    const auto want = RunModel(cpu, model, batches), got = RunModel(gpu, model, batches);
    ASSERT_TRUE(want.ok()) << want.status();
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(Difference(*got, *want, 2e-4), "");

    std::vector<NodeTrace> trace;
    RunOptions options;
    options.trace = &trace;
    ASSERT_TRUE(gpu.Run(model.feeds(0, 4), model.fetches, model.targets, options).ok());
    const NodesByDevice placed = Count(gpu, trace);
    std::printf("%s: %zu of the %zu nodes of a step ran on %s\n", name, placed.on_gpu.size(),
                trace.size(), gpu.devices()[1]->Description().c_str());
    EXPECT_GE(placed.on_gpu.size(), at_least);
  }
}

TEST_F(GpuSession, TrainsAnMlpLikeTheCpu) {
  ExpectLikeTheCpu(AddMlp, std::vector<int64_t>(20, 16), 50, "MLP");
}

TEST_F(GpuSession, TrainsARecurrentNetLikeTheCpu) {
  ExpectLikeTheCpu(AddRecurrentNet, {4, 4, 4, 2, 4, 4}, 200, "recurrent net");
}

// Values of completed iterations stay on the GPU: the number of copies does not grow with the
// number of steps.
TEST_F(GpuSession, CopiesNothingInALoop) {
  Graph g;
  const TestModel model = AddRecurrentNet(g);
  Session gpu = Start(g, WithTestGpu({.num_threads = 2}));
  ASSERT_TRUE(gpu.Run({}, {}, {model.init}).ok());
  std::vector<NodeTrace> trace;
  RunOptions options;
  options.trace = &trace;
  ASSERT_TRUE(gpu.Run(model.feeds(0, 4), model.fetches, model.targets, options).ok());
  std::map<std::string, int> copies;
  for (const NodeTrace& t : trace) {
    if (t.op == "_Copy") ++copies[absl::StrCat(t.device, t.outputs[0].shape.ToString())];
  }
  for (const auto& [what, count] : copies) EXPECT_LE(count, 5) << what;
}

TEST_F(GpuSession, TakesBranchesLikeTheCpu) {
  ExpectLikeTheCpu(AddBranches, std::vector<int64_t>(12, 3), 8, "branches");
}

TEST_F(GpuSession, RunsRandomOpsLikeTheCpu) {
  for (uint32_t seed = 0; seed < 4; ++seed) {
    ExpectLikeTheCpu([seed](Graph& g) { return AddRandomOps(g, seed, 60); }, {4, 4, 1, 0, 7}, 10,
                     "random ops");
  }
}

// ---- the net of examples/digits

struct Batch {
  Tensor images, labels;
};
Batch MakeBatch(int step, int64_t n) {
  std::mt19937 random(static_cast<uint32_t>(step) + 1);
  Batch b{Tensor(DT_FLOAT, Shape({n, 8, 8, 1})), Tensor(DT_INT64, Shape({n}))};
  for (int64_t& label : b.labels.flat<int64_t>()) label = static_cast<int64_t>(random() % 10);
  for (int64_t i = 0; i < n * 64; ++i) {
    const int64_t label = b.labels.data<int64_t>()[i / 64];
    const float noise = static_cast<float>(random() % 1000) / 1000.f;
    b.images.data<float>()[i] = i % 64 / 6 == label ? 1.f : 0.4f * noise;
  }
  return b;
}

// The losses of the first steps, and the accuracy after the last.
std::vector<float> TrainDigits(Session& session, const digits::Network& net,
                               std::vector<NodeTrace>* trace) {
  std::vector<float> losses;
  const absl::Status init = session.Run(net.init);
  EXPECT_TRUE(init.ok()) << init;
  for (int step = 0; step < 12; ++step) {
    const Batch batch = MakeBatch(step, 32);
    RunOptions options;
    if (step == 11) options.trace = trace;
    const auto out = session.Run(
        {{net.image, batch.images}, {net.label, batch.labels}, {net.dropout, Tensor::Scalar(0.3f)}},
        {net.loss, net.accuracy}, {net.train}, options);
    EXPECT_TRUE(out.ok()) << out.status();
    if (!out.ok()) return losses;
    losses.push_back((*out)[0].scalar<float>());
  }
  return losses;
}

TEST_F(GpuSession, TrainsTheDigitsNetLikeTheCpu) {
  Graph g;
  g.set_seed(1);
  const digits::Network net = digits::BuildNetwork(g, 100);
  Session cpu = Start(g, {.num_threads = 2});
  Session gpu = Start(g, WithTestGpu({.num_threads = 2}));
  std::vector<NodeTrace> trace;
  const std::vector<float> want = TrainDigits(cpu, net, nullptr);
  const std::vector<float> got = TrainDigits(gpu, net, &trace);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], 2e-3f * (1 + want[i])) << "loss of step " << i;
  }
  EXPECT_LT(want.back(), 0.7f * want.front());

  const NodesByDevice placed = Count(gpu, trace);
  std::printf("digits: %zu of the %zu nodes of a training step ran on %s\n", placed.on_gpu.size(),
              trace.size(), gpu.devices()[1]->Description().c_str());
  EXPECT_GT(placed.on_gpu.size(), 60u);
  EXPECT_EQ(placed.on_gpu.count("Conv2D"), 2u);
  EXPECT_EQ(placed.on_gpu.count("Conv2DBackpropFilter"), 2u);
  EXPECT_EQ(placed.on_gpu.count("ResourceApplyAdam") + placed.on_gpu.count("ApplyAdam"), 8u);
}

// Returns the ops that the fetches and targets need and that have no GPU kernel.
std::set<std::string> WithoutGpuKernel(const std::vector<const Node*>& wanted) {
  std::set<const Node*> seen(wanted.begin(), wanted.end());
  std::vector<const Node*> open(seen.begin(), seen.end());
  std::set<std::string> missing;
  const auto visit = [&](const Node* node) {
    if (seen.insert(node).second) open.push_back(node);
  };
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (TestGpuKernels().Find(*node, kGpu) == nullptr) missing.insert(node->op_name());
    for (const Output& input : node->inputs()) visit(input.node);
    for (const Node* control : node->control_inputs()) visit(control);
  }
  EXPECT_GT(seen.size(), 10u);
  return missing;
}

// Needs only the registry, no GPU: it runs wherever it was built.
TEST(GpuCoverage, EveryNodeOfTheDigitsStepHasAKernel) {
  for (const bool resource : {true, false}) {
    SCOPED_TRACE(resource ? "resource variables" : "reference variables");
    Graph g(GraphOptions{.use_resource = resource});
    const digits::Network net = digits::BuildNetwork(g, 100);
    ASSERT_TRUE(g.status().ok()) << g.status();
    EXPECT_THAT(WithoutGpuKernel({net.train.node, net.loss.node, net.accuracy.node}),
                UnorderedElementsAre());
    EXPECT_THAT(WithoutGpuKernel({net.init.node, net.prediction.node}), UnorderedElementsAre());
    // Files, and the strings written to them, are on the host.
    EXPECT_THAT(WithoutGpuKernel({net.summaries.node}),
                UnorderedElementsAre("Const", "HistogramSummary", "MergeSummary", "ScalarSummary"));
  }
}

}  // namespace
}  // namespace weir
