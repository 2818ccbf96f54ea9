#include <atomic>
#include <random>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/framework/initializers.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/session.h"
#include "weir/tests/session/lib/random_values.h"

// Optimizers and averages that are decomposed into small ops and assigned.
namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

// Parameter: resource variables, or reference variables.
class FuseUpdates : public testing::TestWithParam<bool> {
 protected:
  FuseUpdates() : g_(GraphOptions{.use_resource = GetParam()}) {}

  Variable NewVariable(absl::string_view name, const Shape& shape = {40, 50}, double value = 0.5) {
    return GetVariable(g_, name, shape, Constant(value));
  }
  Output Input(const Shape& shape) {
    const Output x = Placeholder(g_, DT_FLOAT, shape);
    feeds_.emplace_back(x, UniformFloats(shape, random_, -2, 2));
    return x;
  }
  Session Start(std::set<std::string> disable = {}) {
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    Session session = *Session::Create(g_, {.num_threads = 2, .disable = std::move(disable)});
    EXPECT_TRUE(session.Run(GlobalVariablesInitializer(g_)).ok());
    return session;
  }
  // Returns the ops of a step, which is run three times. Checks that the fetches, and the variables
  // afterward, equal those without fusion.
  std::map<std::string, int> OpsFor(const Operation& target, const Outputs& fetches = {}) {
    GlobalVariablesInitializer(g_);
    Outputs values;
    for (const Variable& v : GlobalVariables(g_)) values.push_back(v.read_value());
    Session session = Start(), plain = Start({"fusion"});
    std::vector<NodeTrace> trace;
    for (int i = 0; i < 3; ++i) {
      trace.clear();
      const auto got = session.Run(feeds_, fetches, {target}, {.trace = &trace});
      const auto want = plain.Run(feeds_, fetches, {target});
      EXPECT_TRUE(got.ok()) << got.status();
      EXPECT_TRUE(want.ok()) << want.status();
      if (!got.ok() || !want.ok()) return {};
      for (size_t k = 0; k < fetches.size(); ++k)
        EXPECT_TRUE(IdenticalTensors((*got)[k], (*want)[k])) << "fetch " << k;
    }
    const Tensors got = *session.Run(values), want = *plain.Run(values);
    for (size_t k = 0; k < values.size(); ++k)
      EXPECT_TRUE(IdenticalTensors(got[k], want[k])) << values[k].name();
    std::map<std::string, int> ops;
    for (const NodeTrace& node : trace) ++ops[node.op];
    return ops;
  }
  static auto IsUpdate() {
    return AllOf(Contains(Pair("_FusedUpdate", 1)),
                 Not(Contains(Key(testing::AnyOf("Assign", "AssignVariableOp")))));
  }

  Graph g_;
  Feeds feeds_;
  std::mt19937 random_{5};
};

INSTANTIATE_TEST_SUITE_P(Kinds, FuseUpdates, testing::Bool(), [](const auto& kind) {
  return std::string(kind.param ? "Resources" : "References");
});

// An optimizer as language models write it, with weight decay.
TEST_P(FuseUpdates, AdamIsOneNode) {
  const Variable w = NewVariable("w"), m = NewVariable("m", {40, 50}, 0),
                 v = NewVariable("v", {40, 50}, 0);
  const Output gradient = Input({40, 50}) * Tanh(w.value());
  const Output new_m = m.value() * 0.9f + gradient * 0.1f;
  const Output new_v = v.value() * 0.999f + Square(gradient) * 0.001f;
  const Output update = new_m / (Sqrt(new_v) + 1e-6f) + w.value() * 0.01f;
  const Operation train = Group(g_, {Operation(w.Assign(w.value() - update * 0.001f)),
                                     Operation(m.Assign(new_m)), Operation(v.Assign(new_v))});
  EXPECT_THAT(OpsFor(train), IsUpdate());
}

// The loss uses values that a region computes, and the gradients use only their shape, which is
// known before the region has run.
TEST_P(FuseUpdates, GradientsUseTheShapeOfALoss) {
  const Variable w = NewVariable("w", {50}), average = NewVariable("average");
  const Output x = Placeholder(g_, DT_FLOAT, {-1, 50}), value = w.value();
  feeds_.emplace_back(x, UniformFloats({40, 50}, random_));
  const Operation averaged(average.Assign(average.value() * 0.9f + x * 0.1f));
  const Output loss = ReduceMean(ReduceSum(Square(Maximum(x, value) * 0.5f), {1}));
  const Output gradient = DenseGradients({loss}, {value})[0];
  const Operation train = Group(g_, {averaged, Operation(w.AssignSub(gradient * 0.1f))});
  EXPECT_THAT(OpsFor(train, {loss}), IsUpdate());
}

TEST_P(FuseUpdates, AnAverageIsUpdatedInPlace) {
  const Variable average = NewVariable("average");
  const Output x = Input({40, 50});
  const Operation update(average.Assign(average.value() * 0.9f + x * 0.1f));
  EXPECT_THAT(OpsFor(update), IsUpdate());
  Session session = Start();
  const Tensor before = (*session.Run({average.read_value()}))[0];
  const Tensor kept = before.DeepCopy();
  ASSERT_TRUE(session.Run(feeds_, {}, {update}).ok());
  EXPECT_TRUE(IdenticalTensors(before, kept)) << "a value that was read has changed";
}

// Variables that the node reads itself, and one whose value other nodes use before it.
TEST_P(FuseUpdates, UpdatesAreInPlaceUnlessShared) {
  const Variable w = NewVariable("w"), m = NewVariable("m", {40, 50}, 0);
  const Output x = Input({40, 50}), value = w.value(), old = m.read_value();
  const Output gradient = x * Cumsum(value, 1);
  const Output new_m = m.value() * 0.9f + gradient * 0.1f;
  const Operation train =
      Group(g_, {Operation(w.Assign(value - new_m * 0.001f)), Operation(m.Assign(new_m))});
  EXPECT_THAT(OpsFor(train), IsUpdate());
  const Output of_w = w.read_value();
  Session session = Start();
  const auto places = [&] {
    const Tensors values = *session.Run({of_w, old});
    return std::vector<const void*>{values[0].raw(), values[1].raw()};
  };
  ASSERT_TRUE(session.Run(feeds_, {}, {train})
                  .ok());  // the variables no longer share memory with their initial values
  const std::vector<const void*> before = places();
  ASSERT_TRUE(session.Run(feeds_, {}, {train}).ok());
  EXPECT_EQ(places(), before);
  const Tensor kept = (*session.Run({of_w}))[0];
  ASSERT_TRUE(session.Run(feeds_, {}, {train}).ok());
  EXPECT_NE(places()[0], before[0]);
  EXPECT_EQ(places()[1], before[1]);
}

TEST_P(FuseUpdates, ManyReadsOfOneVariable) {
  const Variable w = NewVariable("w");
  const Output x = Input({40, 50}), shared = w.value();
  const Output step = w.value() * 0.01f + Tanh(w.value()) * x + Square(shared);
  const Operation train(w.Assign(w.value() - step));
  EXPECT_THAT(OpsFor(train), IsUpdate());
  // The old value is fetched too.
  EXPECT_THAT(OpsFor(train, {Cumsum(shared, 1), shared}), IsUpdate());
}

// A value that was read earlier does not change.
TEST_P(FuseUpdates, EarlierReadsAreUnchanged) {
  const Variable average = NewVariable("average");
  const Output x = Input({40, 50}), old = Identity(average.read_value());
  Operation update;
  {
    const ControlDependencies after(g_, {old});
    update = Operation(average.Assign(average.value() * 0.9f + x * 0.1f));
  }
  Output seen;
  {
    const ControlDependencies after(g_, {update});
    seen = average.read_value();
  }
  EXPECT_THAT(OpsFor(update, {old, seen}), Contains(Key("_FusedUpdate")));
}

TEST_P(FuseUpdates, ControlInputsOfAssignsRunBefore) {
  const Variable average = NewVariable("average"), steps = NewVariable("steps", {}, 0);
  const Output x = Input({40, 50}) + average.value() * 0.5f;
  Operation update;
  {
    const ControlDependencies after(g_, {steps.AssignAdd(1.f)});
    update = Operation(average.Assign(x));
  }
  Output counted;
  {
    const ControlDependencies after(g_, {update});
    counted = steps.read_value();
  }
  EXPECT_THAT(OpsFor(update, {counted}), Contains(Key("_FusedUpdate")));
}

TEST_P(FuseUpdates, UpdatesThatAreNotFused) {
  const Variable a = NewVariable("a"), b = NewVariable("b");
  const Output x = Input({40, 50});
  const auto expect_not_fused = [&](const Operation& target, const Outputs& fetches,
                                    const char* why) {
    EXPECT_THAT(OpsFor(target, fetches), Not(Contains(Key("_FusedUpdate")))) << why;
  };
  const Output value = a.value(), next = value * 0.9f + x * 0.1f;
  const Operation assign(a.Assign(next));
  expect_not_fused(assign, {next}, "the value is fetched");
  expect_not_fused(Group(g_, {assign, Operation(b.AssignAdd(next * 1.f))}), {},
                   "another node uses it");
  expect_not_fused(Operation(a.Assign(x * 0.9f + Square(x))), {},
                   "the variable is not an argument");
  expect_not_fused(Operation(a.Assign(b.value() * 0.9f + Square(x))), {}, "another variable is");
  Operation twice;
  {
    const ControlDependencies after(g_, {a.Assign(a.value() * 0.5f + x)});
    twice = Operation(a.Assign(x * 2.f));
  }
  expect_not_fused(twice, {}, "it is assigned twice");
  // Each depends on the other's result: the second assignment runs after the first.
  const Output step = a.value() * 0.5f + x, both = step + b.value() * 0.5f;
  const Output first = a.Assign(step);
  Operation second;
  {
    const ControlDependencies after(g_, {first});
    second = Operation(b.Assign(both));
  }
  expect_not_fused(second, {}, "one assignment depends on the other");
}

// A chain of updates, each of which runs after the one before it.
TEST_P(FuseUpdates, ConsecutiveUpdates) {
  const Variable a = NewVariable("a"), b = NewVariable("b");
  const Output x = Input({40, 50});
  const Operation first(b.Assign(b.value() * 0.5f + x));
  Operation second;
  {
    const ControlDependencies after(g_, {first});
    second = Operation(a.Assign(a.value() * 0.25f + x));
  }
  Output seen;
  {
    const ControlDependencies after(g_, {second});
    seen = b.read_value();
  }
  EXPECT_THAT(OpsFor(second, {seen}), Contains(Pair("_FusedUpdate", 2)));
}

// A read that comes after one of the assignments, and before the other.
TEST_P(FuseUpdates, ReadsBetweenTwoAssignments) {
  const Variable m = NewVariable("m"), w = NewVariable("w");
  const Output x = Input({40, 50}), new_m = m.value() * 0.9f + x * 0.1f;
  const Operation assign_m(m.Assign(new_m)), assign_w(w.Assign(w.value() - new_m * 0.01f));
  Output seen;
  {
    const ControlDependencies after(g_, {assign_m});
    seen = w.read_value();
  }
  OpsFor(assign_w, {seen});
  // Two updates, each of a weight that other nodes have read.
  const Output a = m.value(), b = w.value(), used = Cumsum(a, 0) + Cumsum(b, 0);
  const Operation next_a(m.Assign(a * 0.9f + x)), next_b(w.Assign(b * 0.9f - x));
  Output between;
  {
    const ControlDependencies after(g_, {next_b});
    between = m.read_value();
  }
  OpsFor(Group(g_, {next_a, next_b}), {used, between});
}

// Values that only seem to be the variable's value.
TEST_P(FuseUpdates, OtherValuesAreNotTheVariables) {
  const Variable v = NewVariable("v"), other = NewVariable("other", {40, 50}, 0.25);
  const Output x = Input({40, 50}), read = v.value();
  // The last value of a loop whose initial value is the variable's value.
  const Output last = WhileLoop([&](const Outputs& at) { return at[0] < 3; },
                                [&](const Outputs& at) {
                                  return Outputs{at[0] + 1, Cumsum(at[1], 1) * 0.1f};
                                },
                                {Const(g_, 0), read})[1];
  OpsFor(Operation(v.Assign(read + (last - read) * 0.5f)));
  const Outputs both = IdentityN({v.value(), other.value()});
  OpsFor(Operation(v.Assign(both[0] * 0.9f + both[1] * 0.1f)));
  // A slice of it that begins at its first element.
  const Output row = Slice(v.read_value(), {0, 0}, {1, 50});
  const Output sum = x * 0.5f + row;
  OpsFor(Group(g_, {Operation(v.Assign(sum)), Operation(other.Assign(other.value() + sum * 2.f))}));
}

TEST_P(FuseUpdates, AnUninitializedVariableIsNamed) {
  const Variable average = NewVariable("average");
  const Output x = Input({40, 50});
  const Operation update(average.Assign(average.value() * 0.9f + x * 0.1f));
  Session session = *Session::Create(g_);
  const absl::Status status = session.Run(feeds_, {}, {update}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("uninitialized"), HasSubstr("average (its initializer is")));
}

// No reader sees a partial update.
TEST_P(FuseUpdates, ConcurrentReadersSeeWholeUpdates) {
  const Variable count = NewVariable("count", {300, 1000}, 0);
  const Operation update(count.Assign(count.value() * 1.f + 1.f));
  const Output value = count.read_value();
  Session session = Start();
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop) {
      const Tensor seen = (*session.Run({value}))[0];
      const auto all = seen.flat<float>();
      EXPECT_THAT(all, Each(all[0]));
    }
  });
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(session.Run(update).ok());
  stop = true;
  reader.join();
  EXPECT_EQ((*session.Run({value}))[0].data<float>()[7], 200);
}

}  // namespace
}  // namespace weir
