#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "weir/core/io/graph_io.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/lib/array.h"
#include "weir/proto/graph.pb.h"
#include "weir/session/passes/passes.h"
#include "weir/session/session.h"
#include "weir/tests/evaluate.h"
#include "weir/tests/session/lib/random_models.h"
#include "weir/tests/session/lib/test_models.h"

// Results do not depend on how a graph is run: on optimizations, on threads, on the shapes that the
// session has run before, on whether the graph was serialized and imported. Every sum is
// accumulated in the same order on any number of threads, so results are equal bit for bit there.
namespace weir {
namespace {

// The tolerance after 20 training steps in single precision.
constexpr double kRounding = 2e-5;

struct NamedModel {
  std::string name;
  std::function<TestModel(Graph&)> add;
};

// Sanitized steps take ten times as long: every fourth random model.
#ifdef WEIR_SANITIZED
constexpr uint32_t kSeedStep = 4;
#else
constexpr uint32_t kSeedStep = 1;
#endif

std::vector<NamedModel> Models() {
  std::vector<NamedModel> models = {{"MLP", AddMlp},
                                    {"conv net", AddConvNet},
                                    {"branches", AddBranches},
                                    {"loops", AddLoops},
                                    {"functions", AddFunctions}};
  for (uint32_t seed = 100; seed < 140; seed += kSeedStep) {
    models.push_back({absl::StrCat("random ops ", seed), [seed](Graph& g) {
                        return AddRandomOps(g, seed, 10 + static_cast<int>(seed % 60));
                      }});
  }
  for (uint32_t seed = 0; seed < 12; seed += kSeedStep) {
    models.push_back({absl::StrCat("random training ", seed), [seed](Graph& g) {
                        return AddRandomTraining(g, seed, 2 + 3 * static_cast<int>(seed));
                      }});
    models.push_back({absl::StrCat("random control flow ", seed), [seed](Graph& g) {
                        return AddRandomControlFlow(g, seed, 1 + static_cast<int>(seed));
                      }});
    models.push_back({absl::StrCat("random tensors ", seed), [seed](Graph& g) {
                        return AddRandomTensors(g, seed, 4 * static_cast<int>(seed));
                      }});
  }
  return models;
}

// Batch sizes that stay, that change all the time, and more of them than a session keeps plans for.
std::vector<std::vector<int64_t>> BatchSequences() {
  std::vector<int64_t> many;
  for (int64_t i = 0; i < 22; ++i) many.push_back(1 + i % 21);
  return {{8, 8, 8, 8, 8, 8}, {8, 3, 8, 1, 3, 8, 2}, many};
}

std::vector<Tensors> MustRun(const Graph& g, const TestModel& model,
                             const std::vector<int64_t>& batches, SessionOptions options) {
  if (options.num_threads == 0) options.num_threads = 2;
  absl::StatusOr<Session> session = Session::Create(g, std::move(options));
  EXPECT_TRUE(session.ok()) << session.status();
  auto out = RunModel(*session, model, batches);
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? *std::move(out) : std::vector<Tensors>();
}

class Equivalence : public ::testing::TestWithParam<bool> {
 protected:
  // Calls check(model, graph, batches, results with the default options).
  void ForEachModel(
      const std::function<void(const TestModel&, const Graph&, const std::vector<int64_t>&,
                               const std::vector<Tensors>&)>& check) const {
    for (const NamedModel& named : Models()) {
      SCOPED_TRACE(named.name);
      Graph g(GraphOptions{.use_resource = GetParam()});
      const TestModel model = named.add(g);
      ASSERT_TRUE(g.status().ok()) << g.status();
      for (const std::vector<int64_t>& batches : BatchSequences())
        check(model, g, batches, MustRun(g, model, batches, {}));
    }
  }
};

TEST_P(Equivalence, OfEachOptimization) {
  std::vector<std::set<std::string>> exact;  // fusion changes the rounding; the others do not
  std::vector<std::string> fusions;
  std::set<std::string> all;
  const auto is_fusion = [](const std::string& name) {
    return absl::c_any_of(Passes(), [&](const Pass& pass) {
      return pass.group == "fusion" && (pass.name == name || pass.group == name);
    });
  };
  for (const std::string& name : OptimizationNames()) {
    if (is_fusion(name)) {
      fusions.push_back(name);
    } else {
      exact.push_back({name});
      if (name != "tile_batch" && name != "fast_algorithms" && name != "cache_step_invariants")
        all.insert(name);
    }
  }
  exact.push_back({"structure_loops", "plan_memory"});
  exact.push_back(all);
  ForEachModel([&](const TestModel& model, const Graph& g, const std::vector<int64_t>& batches,
                   const std::vector<Tensors>& want) {
    const std::vector<Tensors> unfused = MustRun(g, model, batches, {.disable = {"fusion"}});
    for (const std::set<std::string>& disable : exact) {
      std::set<std::string> also = disable;
      also.insert("fusion");
      const std::vector<Tensors> got = MustRun(g, model, batches, {.disable = also});
      EXPECT_EQ(Difference(got, unfused, 0), "") << "without " << *disable.begin();
    }
    for (const std::string& name : fusions) {
      const std::vector<Tensors> got = MustRun(g, model, batches, {.disable = {name}});
      EXPECT_EQ(Difference(got, want, kRounding), "") << "without " << name;
    }
  });
}

// Folding factors into filters and faster algorithms change the rounding.
TEST_P(Equivalence, OfConvNetsForEachOptimization) {
  for (uint32_t seed = 0; seed < 40; seed += kSeedStep) {
    SCOPED_TRACE(seed);
    Graph g(GraphOptions{.use_resource = GetParam()});
    const TestModel model = AddRandomConvNet(g, seed, 1 + static_cast<int>(seed % 10));
    ASSERT_TRUE(g.status().ok()) << g.status();
    const std::vector<Tensors> want = MustRun(g, model, {3, 9, 9}, {});
    for (const char* name :
         {"tile_batch", "fast_algorithms", "fusion", "cache_step_invariants", "plan_memory"}) {
      const std::vector<Tensors> got = MustRun(g, model, {3, 9, 9}, {.disable = {name}});
      EXPECT_EQ(Difference(got, want, kRounding), "") << "without " << name;
    }
  }
}

TEST_P(Equivalence, OfAnyNumberOfThreads) {
  ForEachModel([&](const TestModel& model, const Graph& g, const std::vector<int64_t>& batches,
                   const std::vector<Tensors>& want) {
    for (const int threads : {1, 3, 4, 7}) {
      const std::vector<Tensors> got = MustRun(g, model, batches, {.num_threads = threads});
      EXPECT_EQ(Difference(got, want, 0), "") << threads << " threads";
    }
  });
}

TEST_P(Equivalence, OfTheSameRunTwice) {
  ForEachModel([&](const TestModel& model, const Graph& g, const std::vector<int64_t>& batches,
                   const std::vector<Tensors>& want) {
    EXPECT_EQ(Difference(MustRun(g, model, batches, {}), want, 0), "");
  });
}

// A step of a session that has run other shapes equals the step of a new session.
TEST_P(Equivalence, OfSessionsThatHaveRunOtherShapes) {
  for (uint32_t seed = 100; seed < 110; ++seed) {
    Graph g(GraphOptions{.use_resource = GetParam()});
    const TestModel model = AddRandomOps(g, seed, 40);
    for (const std::vector<int64_t>& batches : BatchSequences()) {
      const std::vector<Tensors> all = MustRun(g, model, batches, {});
      ASSERT_EQ(all.size(), batches.size());
      for (size_t i = 0; i < batches.size(); ++i) {
        absl::StatusOr<Session> fresh = Session::Create(g, {.num_threads = 2});
        ASSERT_TRUE(fresh.ok()) << fresh.status();
        const auto one =
            fresh->Run(model.feeds(static_cast<int>(i), batches[i]), model.fetches, {});
        ASSERT_TRUE(one.ok()) << one.status();
        EXPECT_EQ(Difference({*one}, {all[i]}, 0), "") << "seed " << seed << ", step " << i;
      }
    }
  }
}

TEST_P(Equivalence, OfASerializedGraph) {
  ForEachModel([&](const TestModel& model, const Graph& g, const std::vector<int64_t>& batches,
                   const std::vector<Tensors>& want) {
    proto::GraphDef def;
    ExportGraphDef(g, &def);
    Graph copy;
    const auto imported = ImportGraphDef(copy, def);
    ASSERT_TRUE(imported.ok()) << imported.status();
    // The nodes of the copy have other indices, on which the choices of fusion depend.
    EXPECT_EQ(Difference(MustRun(copy, model, batches, {}), want, kRounding), "");
    const SessionOptions plain{.disable = {"fusion"}};
    EXPECT_EQ(
        Difference(MustRun(copy, model, batches, plain), MustRun(g, model, batches, plain), 0), "");
  });
}

// Compares with the kernels run one by one, without a plan.
TEST_P(Equivalence, OfKernelsRunOneByOne) {
  Graph g(GraphOptions{.use_resource = GetParam()});
  const TestModel model = AddMlp(g);
  const Output trained = WithDependencies({Operation(g.FindNode(model.targets[0]))}, Const(g, 0.f));
  const std::vector<int64_t> batches = {8, 3, 8, 8};
  const std::vector<Tensors> got = MustRun(g, model, batches, {});
  const auto named = [&](const std::string& name) { return *g.FindOutput(name); };

  ResourceMap resources;
  ASSERT_TRUE(EvaluateTargets(g, {Operation(g.FindNode(model.init))}, &resources).ok());
  std::vector<Tensors> want;
  for (size_t i = 0; i < batches.size(); ++i) {
    std::vector<std::pair<Output, Tensor>> feeds;
    for (const auto& [name, value] : model.feeds(static_cast<int>(i), batches[i]))
      feeds.emplace_back(named(name), value);
    const auto loss = Evaluate(g, feeds, {named(model.fetches[0])}, &resources);
    ASSERT_TRUE(loss.ok()) << loss.status();
    want.push_back(*loss);
    ASSERT_TRUE(Evaluate(g, feeds, {trained}, &resources).ok());
  }
  Outputs state;
  for (const std::string& name : model.state) state.push_back(named(name));
  const auto last = Evaluate(g, state, &resources);
  ASSERT_TRUE(last.ok()) << last.status();
  want.push_back(*last);
  EXPECT_EQ(Difference(got, want, kRounding), "");
}

INSTANTIATE_TEST_SUITE_P(Variables, Equivalence, ::testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "Resource" : "Reference");
});

}  // namespace
}  // namespace weir
