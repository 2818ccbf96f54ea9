#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/bundle.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/random/random.h"
#include "weir/session/model/saver.h"
#include "weir/tests/io/test_files.h"
#include "weir/tests/session/lib/late_device.h"
#include "weir/tests/session/lib/test_models.h"
#include "weir/tools/case/case_runner.h"

// Steps on an accelerator return what the CPU returns. The accelerator is the simulated one, whose
// kernels are the CPU's. So results are equal to the last bit, and every difference comes from a
// value that was read too early, written too late, or read from the wrong memory.
namespace weir {
namespace {

using ::testing::ElementsAre;

Session Start(const Graph& graph, SessionOptions options) {
  absl::StatusOr<Session> session = Session::Create(graph, std::move(options));
  EXPECT_TRUE(session.ok()) << session.status();
  return *std::move(session);
}

template <class T>
std::vector<T> Values(const Tensor& t) {
  return std::vector<T>(t.flat<T>().begin(), t.flat<T>().end());
}

Tensors MustRun(Session& session, const Feeds& feeds, const Outputs& fetches) {
  absl::StatusOr<Tensors> out = session.Run(feeds, fetches);
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? *std::move(out) : Tensors(fetches.size(), Tensor::Scalar(0.f));
}

// ---- models

struct Placed {
  int nodes = 0, on_accelerator = 0;
};

// Returns the nodes of one step of the model, by device.
Placed CountNodes(Session& session, const TestModel& model) {
  std::vector<NodeTrace> trace;
  RunOptions options;
  options.trace = &trace;
  const auto out = session.Run(model.feeds(0, 4), model.fetches, model.targets, options);
  EXPECT_TRUE(out.ok()) << out.status();
  Placed placed{.nodes = static_cast<int>(trace.size())};
  for (const NodeTrace& t : trace)
    placed.on_accelerator += t.device == LateDeviceOf(session).text() ? 1 : 0;
  return placed;
}

void ExpectLikeTheCpu(const std::function<TestModel(Graph&)>& add, bool use_resource,
                      const std::vector<int64_t>& batches, const char* name, int at_least) {
  Graph g(GraphOptions{.use_resource = use_resource});
  const TestModel model = add(g);
  ASSERT_TRUE(g.status().ok()) << g.status();
  Session cpu = Start(g, {.num_threads = 2});
  Session late = Start(g, WithLateDevices({.num_threads = 2}));
  const auto want = RunModel(cpu, model, batches), got = RunModel(late, model, batches);
  ASSERT_TRUE(want.ok()) << want.status();
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(Difference(*got, *want, 0), "");

  const LateDevice& device = LateDeviceOf(late);
  const std::map<std::string, int> runs = device.runs();
  int64_t kernels = 0;
  for (const auto& [node, count] : runs) kernels += count;
  const Placed placed = CountNodes(late, model);
  std::printf(
      "%s, %s variables: %d of the %d nodes of a step ran on %s; in %zu steps its stream ran %zu "
      "nodes %lld times, %lld copies in, %lld out\n",
      name, use_resource ? "resource" : "reference", placed.on_accelerator, placed.nodes,
      device.text().c_str(), batches.size(), runs.size(), static_cast<long long>(kernels),
      static_cast<long long>(device.copies_in()), static_cast<long long>(device.copies_out()));
  EXPECT_GE(placed.on_accelerator, at_least);
  EXPECT_GE(kernels, static_cast<int64_t>(batches.size()) * at_least / 2);
}

TEST(Accelerator, TrainsAConvNetLikeTheCpu) {
  for (const bool resource : {true, false})
    ExpectLikeTheCpu(AddConvNet, resource, {8, 8, 8, 5, 8, 5, 8, 8}, "conv net", 100);
}

TEST(Accelerator, TrainsAnMlpLikeTheCpu) {
  for (const bool resource : {true, false})
    ExpectLikeTheCpu(AddMlp, resource, std::vector<int64_t>(20, 16), "MLP", 60);
}

TEST(Accelerator, TakesBranchesLikeTheCpu) {
  for (const bool resource : {true, false})
    ExpectLikeTheCpu(AddBranches, resource, std::vector<int64_t>(12, 3), "branches", 8);
}

TEST(Accelerator, RunsLoopsLikeTheCpu) {
  for (const bool resource : {true, false})
    ExpectLikeTheCpu(AddLoops, resource, std::vector<int64_t>(10, 3), "loops", 20);
}

TEST(Accelerator, RunsRandomOpsLikeTheCpu) {
  for (uint32_t seed = 0; seed < 6; ++seed) {
    const auto add = [seed](Graph& g) { return AddRandomOps(g, seed, 60); };
    ExpectLikeTheCpu(add, true, {4, 4, 1, 0, 7}, "random ops", 20);
  }
}

TEST(Accelerator, DependsOnNoOptimization) {
  Graph g;
  const TestModel model = AddConvNet(g);
  const std::vector<int64_t> batches = {4, 4, 4};
  Session cpu = Start(g, {.num_threads = 2});
  const auto want = RunModel(cpu, model, batches);
  ASSERT_TRUE(want.ok()) << want.status();
  for (const std::set<std::string>& disable : std::vector<std::set<std::string>>{
           {"constant_folding"},
           {"plan_memory"},
           {"in_place"},
           {"partition_tasks"},
           {"reduce_waits"},
           {"constant_folding", "plan_memory", "in_place", "partition_tasks", "reduce_waits"}}) {
    Session late = Start(g, WithLateDevices({.num_threads = 2, .disable = disable}));
    const auto got = RunModel(late, model, batches);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(Difference(*got, *want, 0), "") << *disable.begin();
  }
}

// ---- feeds and fetches

TEST(Accelerator, FeedsAndFetchesCrossDevices) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {-1}), n = Placeholder(g, DT_INT64, {});
  const Output b = Placeholder(g, DT_BOOL, {2}), h = Placeholder(g, DT_HALF, {1});
  const Output doubled = x * 2.f, constant = Const(g, {1, 2, 3});
  Session session = Start(g, WithLateDevices());
  const Feeds feeds = {{x, Tensor::Vector<float>({1, 2})},
                       {n, Tensor::Scalar<int64_t>(5)},
                       {b, Tensor::Vector<bool>({true, false})},
                       {h, Tensor::Vector<half>({half(0.5f)})}};
  const Tensors out = MustRun(session, feeds,
                              {doubled, Identity(x), n + int64_t{1}, LogicalNot(b), h + h, constant,
                               ShapeTensor(doubled, DT_INT32, {}, false)});
  for (const Tensor& t : out) EXPECT_TRUE(t.host_accessible());
  EXPECT_THAT(Values<float>(out[0]), ElementsAre(2, 4));
  EXPECT_THAT(Values<float>(out[1]), ElementsAre(1, 2));
  EXPECT_EQ(out[2].scalar<int64_t>(), 6);
  EXPECT_THAT(Values<bool>(out[3]), ElementsAre(false, true));
  EXPECT_EQ(static_cast<float>(out[4].scalar<half>()), 1);
  EXPECT_THAT(Values<int32_t>(out[5]), ElementsAre(1, 2, 3));
  EXPECT_THAT(Values<int32_t>(out[6]), ElementsAre(2));
  const Tensors empty = MustRun(session, {{x, Tensor(DT_FLOAT, Shape({0}))}}, {doubled});
  EXPECT_EQ(empty[0].num_elements(), 0);
}

// A feed has the type of the output that it replaces, not of the node's first output.
TEST(Accelerator, FeedsOfAnyOutputOfANode) {
  Graph g;
  const UniqueResult unique = Unique(Const(g, {3.f, 3.f, 4.f}));
  const Output doubled = unique.idx * 2;
  Session session = Start(g, WithLateDevices());
  EXPECT_THAT(Values<int32_t>(MustRun(session, {}, {doubled})[0]), ElementsAre(0, 0, 2));
  const Tensors out =
      MustRun(session, {{unique.idx, Tensor::Vector<int32_t>({7, 8, 9})}}, {doubled});
  EXPECT_THAT(Values<int32_t>(out[0]), ElementsAre(14, 16, 18));
}

TEST(Accelerator, ShapesMayDependOnValues) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {-1});
  const Output positive = Where(Greater(x, 0.f));
  const Output picked = GatherNd(x, positive) * 10.f, sum = ReduceSum(picked);
  Session session = Start(g, WithLateDevices());
  const Tensors out =
      MustRun(session, {{x, Tensor::Vector<float>({1, -2, 3})}}, {positive, picked, sum});
  EXPECT_THAT(Values<int64_t>(out[0]), ElementsAre(0, 2));
  EXPECT_THAT(Values<float>(out[1]), ElementsAre(10, 30));
  EXPECT_EQ(out[2].scalar<float>(), 40);
}

TEST(Accelerator, DrawsTheSameRandomNumbers) {
  Graph g;
  g.set_seed(3);
  const Outputs draws = {RandomUniform(g, {5, 7}), RandomNormal(g, {300}),
                         RandomShuffle(Range(g, 0, 20)), TruncatedNormal(g, {3, 3})};
  Session cpu = Start(g, {}), late = Start(g, WithLateDevices());
  for (int i = 0; i < 3; ++i) {
    const Tensors want = MustRun(cpu, {}, draws), got = MustRun(late, {}, draws);
    for (size_t k = 0; k < draws.size(); ++k) EXPECT_TRUE(IdenticalTensors(got[k], want[k])) << k;
  }
}

// ---- variables

TEST(Accelerator, FetchedVariablesNeverChange) {
  for (const bool resource : {true, false}) {
    Graph g(GraphOptions{.use_resource = resource});
    const Variable v = GetVariable(g, "v", {1000}, Zeros());
    const Operation init = GlobalVariablesInitializer(g);
    const Output value = v.value(), add = v.AssignAdd(Ones(g, {1000}));
    Session session = Start(g, WithLateDevices({.num_threads = 2}));
    ASSERT_TRUE(session.Run(init).ok());
    std::vector<Tensor> seen;
    for (int i = 0; i < 20; ++i) {  // the read comes first, see docs/how_a_run_works.md
      const auto out = session.Run({}, {value}, {Operation(add)});
      ASSERT_TRUE(out.ok()) << out.status();
      seen.push_back((*out)[0]);
    }
    for (int i = 0; i < 20; ++i) {
      EXPECT_THAT(Values<float>(seen[i]), ::testing::Each(static_cast<float>(i)));
    }
  }
}

TEST(Accelerator, ConcurrentUpdatesAreAllApplied) {
  Graph g;
  const Variable v = GetVariable(g, "v", {64}, Zeros());
  const Operation init = GlobalVariablesInitializer(g);
  const Output x = Placeholder(g, DT_FLOAT, {64});
  const Output add = v.AssignAdd(x * 2.f);
  const Output value = v.value();
  Session session = Start(g, WithLateDevices({.num_threads = 2}));
  ASSERT_TRUE(session.Run(init).ok());
  Tensor ones(DT_FLOAT, Shape({64}));
  std::fill_n(ones.data<float>(), 64, 1.f);
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) {
        const auto out = session.Run({{x, ones}}, {value}, {Operation(add)});
        // A snapshot: every element includes the same updates.
        if (!out.ok()) {
          ++failures;
          continue;
        }
        const std::vector<float> now = Values<float>((*out)[0]);
        if (std::adjacent_find(now.begin(), now.end(), std::not_equal_to<>()) != now.end())
          ++failures;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(failures, 0);
  EXPECT_THAT(Values<float>(MustRun(session, {}, {value})[0]), ::testing::Each(200));
}

TEST(Accelerator, SavesAndRestoresItsVariables) {
  Graph g;
  const TestModel model = AddConvNet(g);
  absl::StatusOr<Saver> saver = Saver::Create(g);
  ASSERT_TRUE(saver.ok()) << saver.status();
  Session late = Start(g, WithLateDevices({.num_threads = 2})), cpu = Start(g, {});
  ASSERT_TRUE(RunModel(late, model, {4, 4, 4}).ok());
  const auto path = saver->Save(late, testing::MakeTempDirectory("accelerator") + "/model");
  ASSERT_TRUE(path.ok()) << path.status();
  Session again = Start(g, WithLateDevices());
  for (Session* other : {&cpu, &again}) {
    const absl::Status restored = saver->Restore(*other, *path);
    ASSERT_TRUE(restored.ok()) << restored;
    const auto want = late.Run({}, model.state, {}), got = other->Run({}, model.state, {});
    ASSERT_TRUE(want.ok() && got.ok()) << got.status();
    EXPECT_EQ(Difference({*got}, {*want}, 0), "");
  }
}

// ---- several devices

TEST(Accelerator, CopiesBetweenTwoAcceleratorsAndTheCpu) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {-1});
  const auto on = [&](const char* device, const std::function<Output()>& make) {
    DeviceScope scope(g, device);
    return make();
  };
  const Output a = on("/gpu:0", [&] { return x + 1.f; });
  const Output b = on("/gpu:1", [&] { return a * 10.f; });
  const Output c = on("/cpu:0", [&] { return b - 3.f; });
  const Output d = on("/gpu:0", [&] { return c + b; });
  Session session = Start(g, WithLateDevices({.num_threads = 2}, 2));
  for (int i = 0; i < 10; ++i) {
    const float f = static_cast<float>(i);
    const Tensors out = MustRun(session, {{x, Tensor::Vector<float>({f, 0})}}, {d, a});
    EXPECT_THAT(Values<float>(out[0]), ElementsAre(20 * (f + 1) - 3, 17));
    EXPECT_THAT(Values<float>(out[1]), ElementsAre(f + 1, 1));
  }
  EXPECT_GT(LateDeviceOf(session, 0).runs().size(), 0u);
  EXPECT_GT(LateDeviceOf(session, 1).runs().size(), 0u);
  // b is copied to the host once, for two users.
  EXPECT_EQ(LateDeviceOf(session, 1).copies_out(), 10);
}

// ---- recorded cases

TEST(Accelerator, PassesRecordedCases) {
  const char* root = std::getenv("WEIR_CASES");
  if (root == nullptr || access(root, R_OK) != 0)
    GTEST_SKIP() << "WEIR_CASES must name the folder of the recorded cases";
  const std::string base = root;
  auto folders =
      tools::FindCases({base + "/variables", base + "/training/mlp_adam_0",
                        base + "/training/embedding_adam_0", base + "/training/regression_linear"});
  ASSERT_TRUE(folders.ok()) << folders.status();
  int passed = 0;
  for (const std::string& folder : *folders) {
    const tools::CaseResult result =
        tools::RunCase(folder, {.num_threads = 2, .backends = WithLateDevices().backends});
    EXPECT_NE(result.outcome, tools::CaseResult::kFailed) << folder << ": " << result.why;
    passed += result.outcome == tools::CaseResult::kPassed ? 1 : 0;
  }
  std::printf("%d recorded cases passed on the accelerator\n", passed);
}

}  // namespace
}  // namespace weir
