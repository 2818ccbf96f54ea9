// Graphs that are cut into the parts of two tasks return what they return whole, and never wait for
// each other.

#include <chrono>
#include <cstdlib>
#include <random>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/tests/session/lib/cut_graph.h"
#include "weir/tests/session/lib/random_models.h"
#include "weir/tests/session/lib/random_values.h"

namespace weir {
namespace {

constexpr std::chrono::seconds kTimeout(20);
constexpr int kNumSteps = 3;

// ---- random programs

// What new nodes may use. The token of a variable comes after all its accesses so far.
struct Values {
  Outputs scalars, vectors, tokens;
};

// Values computed from one another, accesses to variables in an order that control edges fix,
// further control edges, nested conditionals and while loops. The results depend on no order that
// the graph does not have.
class RandomProgram {
 public:
  RandomProgram(Graph& g, uint32_t seed) : g_(g), random_(seed) {}

  TestModel Make(int length) {
    Values v;
    v.scalars = {Placeholder(g_, DT_FLOAT, {}, "x")};
    v.vectors = {Placeholder(g_, DT_FLOAT, {kSize}, "y")};
    for (uint32_t i = 1 + Draw(3); i > 0; --i) {
      const Shape shape = Draw(2) ? Shape() : Shape({kSize});
      variables_.push_back(MakeVariable(g_, Const(g_, UniformFloats(shape, random_))));
      v.tokens.push_back(Const(g_, 0.f));
    }
    for (int i = 0; i < length; ++i) AddValue(&v, 0);
    TestModel model;
    if (!g_.status().ok()) return model;
    for (const Outputs* values : {&v.scalars, &v.vectors}) {
      for (size_t i = values->size() - std::min<size_t>(values->size(), 2); i < values->size(); ++i)
        if ((*values)[i].node->op_name() != "Placeholder")
          model.fetches.push_back((*values)[i].name());
    }
    for (const Output& token : v.tokens) model.targets.push_back(token.node->name());
    model.init = GlobalVariablesInitializer(g_).name();
    for (const Variable& variable : variables_) model.state.push_back(variable.read_value().name());
    model.feeds = [](int step, int64_t) {
      std::mt19937 random(static_cast<uint32_t>(step));
      return NamedTensors{{"x", UniformFloats({}, random)}, {"y", UniformFloats({kSize}, random)}};
    };
    return model;
  }

 private:
  static constexpr int64_t kSize = 4;
  static constexpr int kDeepest = 3;

  uint32_t Draw(uint32_t limit) { return static_cast<uint32_t>(random_()) % limit; }
  const Output& Any(const Outputs& values) {
    const auto n = static_cast<uint32_t>(values.size());
    return values[Draw(3) ? n - 1 - Draw(std::min(n, 3u)) : Draw(n)];
  }

  void AddValue(Values* v, int depth) {
    switch (Draw(depth == kDeepest ? 9 : 12)) {
      case 0:
      case 1:
      case 2:
        return v->scalars.push_back(Scalar(*v));
      case 3:
      case 4:
        return v->vectors.push_back(Vector(*v));
      case 5:
      case 6:
      case 7:
        return Access(v);
      case 8: {  // a control edge
        const Output before = Identity(Any(v->scalars)), value = Any(v->vectors);
        const ControlDependencies after(g_, {before});
        return v->vectors.push_back(Identity(value));
      }
      case 9:
        return Branch(v, depth);
      default:
        return Loop(v, depth);
    }
  }

  Output Scalar(const Values& v) {
    const Output x = Any(v.scalars), y = Any(v.scalars);
    switch (Draw(5)) {
      case 0:
        return Tanh(x + y);
      case 1:
        return x * 0.5f + y * 0.25f;
      case 2:
        return Sin(x - y + 0.3f);
      case 3:
        return ReduceMean(Any(v.vectors));
      default:
        return Maximum(x, y * 0.9f);
    }
  }

  Output Vector(const Values& v) {
    const Output x = Any(v.vectors), y = Any(v.vectors);
    switch (Draw(4)) {
      case 0:
        return Tanh(x + y);
      case 1:
        return x * Any(v.scalars);
      case 2:
        return Reverse(x, {0}) * 0.75f;
      default:
        return Maximum(x, y * 0.9f) + Any(v.scalars);
    }
  }

  // Reads or writes a variable, after all earlier accesses.
  void Access(Values* v) {
    const uint32_t i = Draw(static_cast<uint32_t>(variables_.size()));
    const Variable& variable = variables_[i];
    const bool is_scalar = variable.shape().rank() == 0;
    Outputs* const values = is_scalar ? &v->scalars : &v->vectors;
    const Output value = Tanh(Any(*values));
    Output result;
    {
      const ControlDependencies after(g_, {v->tokens[i]});
      switch (Draw(3)) {
        case 0:
          result = variable.Assign(value);
          break;
        case 1:
          result = variable.AssignAdd(value * 0.25f);
          break;
        default:
          result = variable.read_value();
      }
      result = Identity(result);
    }
    const ControlDependencies after(g_, {result});
    v->tokens[i] = Identity(Const(g_, 0.f));
    if (Draw(2)) values->push_back(Tanh(result));
  }

  Outputs Results(const Values& v) const {
    Outputs results = {Identity(v.scalars.back()), Identity(v.vectors.back())};
    for (const Output& token : v.tokens) results.push_back(Identity(token));
    return results;
  }

  // Takes over what a branch or a loop returns.
  static void Keep(const Outputs& results, Values* v) {
    if (results.empty()) return;
    v->scalars.push_back(results[0]);
    v->vectors.push_back(results[1]);
    v->tokens.assign(results.begin() + 2, results.end());
  }

  void Branch(Values* v, int depth) {
    const Output condition = Any(v->scalars) < Any(v->scalars) + 0.123f * (Draw(2) ? 1.f : -1.f);
    const auto branch = [&] {
      Values own = *v;
      for (Output& token : own.tokens) token = Identity(token);
      for (uint32_t i = Draw(4); i > 0; --i) AddValue(&own, depth + 1);
      return Results(own);
    };
    Keep(Cond(condition, branch, branch), v);
  }

  void Loop(Values* v, int depth) {
    const Output limit =
        Cast(Abs(Any(v->scalars)) * 3.f, DT_INT32) + Const(g_, static_cast<int32_t>(Draw(2)));
    const bool may_end_early = Draw(3) == 0;
    const auto condition = [&](const Outputs& own) {
      const Output goes_on = own.back() < Minimum(limit, 4);
      return may_end_early ? goes_on & (own[0] < 0.456f) : goes_on;
    };
    const auto body = [&](const Outputs& own) {
      Values inner = *v;
      Keep({own.begin(), own.end() - 1}, &inner);
      for (uint32_t i = 1 + Draw(5); i > 0; --i) AddValue(&inner, depth + 1);
      Outputs next = Results(inner);
      next.push_back(own.back() + 1);
      return next;
    };
    Outputs start = Results(*v);
    start.push_back(Const(g_, 0));
    Outputs last = WhileLoop(condition, body, start);
    if (!last.empty()) last.pop_back();
    Keep(last, v);
  }

  Graph& g_;
  std::mt19937 random_;
  std::vector<Variable> variables_;
};

// ---- comparison

void ExpectSameResults(const Graph& graph, const TestModel& model,
                       const CutGraph::PartFn& part_of) {
  SessionOptions options{.num_threads = 2};
  const auto cut = CutGraph::Create(graph, part_of, options);
  Session whole = *Session::Create(graph, options);
  ASSERT_TRUE(cut.ok()) << cut.status();
  std::vector<Tensors> want, got;
  const auto run = [&](const NamedTensors& feeds, const std::vector<std::string>& fetches,
                       const std::vector<std::string>& targets) {
    const auto expected = whole.Run(feeds, fetches, targets);
    ASSERT_TRUE(expected.ok()) << expected.status();
    const auto results = (*cut)->Run(feeds, fetches, targets, kTimeout);
    ASSERT_TRUE(results.ok()) << results.status();
    want.push_back(*expected);
    got.push_back(*results);
  };
  if (!model.init.empty()) {
    ASSERT_NO_FATAL_FAILURE(run({}, {}, {model.init}));
  }
  for (int step = 0; step < kNumSteps; ++step)
    ASSERT_NO_FATAL_FAILURE(run(model.feeds(step, 3), model.fetches, model.targets));
  if (!model.state.empty()) {
    ASSERT_NO_FATAL_FAILURE(run({}, model.state, {}));
  }
  EXPECT_EQ(Difference(got, want, 1e-5), "");
}

// In each iteration values go from a to b, back, and to b again: of the two that b receives, one
// depends on what it sends after the other.
TEST(CutGraph, AnIterationReceivesInAnyOrder) {
  for (const bool reversed : {false, true}) {
    Graph g;
    std::set<std::string> in_b;
    const auto on_b = [&](const Output& value) {
      in_b.insert(value.node->name());
      return value;
    };
    const Output times = Placeholder(g, DT_INT32, {}, "times");
    const auto body = [&](const Outputs& own) {
      const Output there = Cast(own[0], DT_FLOAT) * 2.f + own[1] * 0.f;
      const Output back = on_b(there + 1.f) * 3.f;
      const Output last = on_b(reversed ? there - back : back - there);
      return Outputs{own[0] + 1, own[1] + last};
    };
    const Outputs out = WhileLoop([&](const Outputs& own) { return own[0] < times; }, body,
                                  {Const(g, 0), Const(g, 0.f)});
    TestModel model;
    model.fetches = {out[1].name()};
    model.feeds = [](int step, int64_t) {
      return NamedTensors{{"times", Tensor::Scalar<int32_t>(3 * step)}};
    };
    ExpectSameResults(g, model, [&](const Node& n) { return in_b.contains(n.name()) ? 1 : 0; });
  }
}

// The other part does not have to wait for the whole of an inner loop.
TEST(CutGraph, AnOuterIterationGoesOnWhileAnInnerLoopReceives) {
  Graph g;
  std::set<std::string> in_b;
  const auto on_b = [&](const Output& value) {
    in_b.insert(value.node->name());
    return value;
  };
  const auto below = [](int32_t limit) {
    return [limit](const Outputs& own) { return own[0] < limit; };
  };
  const auto body = [&](const Outputs& own) {
    const Output there = on_b(own[1] + 1.f);
    const Output back = there * 2.f;
    const auto inner = [&](const Outputs& v) {
      const Output once = on_b(v[1] * 0.5f);
      return Outputs{v[0] + 1, on_b(Tanh(once + 1.f)) + back};
    };
    const Outputs last = WhileLoop(below(3), inner, {Const(g, 0), own[1]});
    return Outputs{own[0] + 1, last[1] - on_b(back + 0.5f)};
  };
  const Outputs out = WhileLoop(below(4), body, {Const(g, 0), Const(g, 0.25f)});
  TestModel model;
  model.fetches = {out[1].name()};
  model.feeds = [](int, int64_t) { return NamedTensors(); };
  ExpectSameResults(g, model, [&](const Node& n) { return in_b.contains(n.name()) ? 1 : 0; });
}

// True if some order of accesses to a variable is left to the runtime. The parts may then choose
// another one than the whole.
bool HasRaces(const Graph& graph, const TestModel& model) {
  Session session = *Session::Create(graph, {.forbid_races = true});
  std::vector<std::string> feeds;
  for (const auto& [name, value] : model.feeds(0, 3)) feeds.push_back(name);
  return !session.Prepare(feeds, model.fetches, model.targets).ok();
}

// The number of a test's environment variable.
uint32_t NumberFrom(const char* variable, uint32_t fallback) {
  const char* const text = std::getenv(variable);
  uint32_t number = fallback;
  if (text != nullptr) {
    EXPECT_TRUE(absl::SimpleAtoi(text, &number)) << variable;
  }
  return number;
}

// Runs 40 graphs, or for WEIR_CUT_SECONDS, from the seed WEIR_CUT_SEED on.
TEST(CutGraph, RandomGraphsReturnWhatTheyReturnWhole) {
  const uint32_t first = NumberFrom("WEIR_CUT_SEED", 0),
                 seconds = NumberFrom("WEIR_CUT_SECONDS", 0);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  const auto goes_on = [&](uint32_t seed) {
    return seconds == 0 ? seed < first + 40 : std::chrono::steady_clock::now() < end;
  };
  int num_graphs = 0;
  for (uint32_t seed = first; goes_on(seed) && !HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("WEIR_CUT_SEED=", seed));
    Graph graph(GraphOptions{.use_resource = seed % 3 != 0});
    const int length = 2 + static_cast<int>(seed % 17);
    const TestModel model = seed % 4 == 3 ? AddRandomControlFlow(graph, seed, length)
                                          : RandomProgram(graph, seed).Make(length);
    ASSERT_TRUE(graph.status().ok()) << graph.status();
    if (HasRaces(graph, model)) continue;
    std::mt19937 random(seed);
    ExpectSameResults(graph, model, [&](const Node&) { return static_cast<int>(random() % 2); });
    ++num_graphs;
  }
  EXPECT_GT(num_graphs, 0);
}

}  // namespace
}  // namespace weir
