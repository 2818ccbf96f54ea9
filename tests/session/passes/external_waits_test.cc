// A step must never block, because of an order that its graph does not have, on something that the
// outside supplies only after the step has made progress. Here the outside is another step of the
// session.

#include <chrono>
#include <functional>
#include <thread>

#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/containers/queue.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/session.h"

namespace weir {
namespace {

// The step dequeues from `in`; an element that it enqueues to `out` comes back there, incremented
// by one. Parameters: the kind of variable, and whether the dequeuing part is built before the
// enqueuing part.
class ExternalWaitsTest : public ::testing::TestWithParam<std::tuple<bool, bool>> {
 protected:
  Output Taken() { return in_.Dequeue()[0]; }
  // Assigns 5 to the variable, then enqueues 7.
  Operation AssignAndEnqueue() {
    const ControlDependencies after(g_, {v_.Assign(5.f)});
    return out_.Enqueue({Const(g_, 7.f)});
  }
  // Runs both parts in one step and returns the value of the first; -1 if the step hangs.
  float Run(const std::function<Output()>& take) {
    Output taken;
    if (std::get<1>(GetParam())) taken = take();
    const Operation put = AssignAndEnqueue();
    if (!taken.valid()) taken = take();
    return Run(taken, put);
  }
  float Run(const Output& taken, const std::optional<Operation>& put) {
    const Operation answer = in_.Enqueue({out_.Dequeue()[0] + 1.f});
    const Operation init = GlobalVariablesInitializer(g_);
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    Session session = *Session::Create(g_, {.num_threads = 2});
    EXPECT_TRUE(session.Run(init).ok());
    const RunOptions limit{.timeout = std::chrono::seconds(20)};
    std::thread outside([&] { EXPECT_TRUE(session.Run(Feeds{}, {}, {answer}, limit).ok()); });
    std::vector<Operation> targets;
    if (put) targets.push_back(*put);
    const auto out = session.Run(Feeds{}, {taken}, targets, limit);
    EXPECT_TRUE(out.ok()) << out.status();
    outside.join();
    const auto now = session.Run({v_.read_value()});
    EXPECT_TRUE(now.ok() && (*now)[0].scalar<float>() == 5) << now.status();
    return out.ok() ? (*out)[0].scalar<float>() : -1;
  }

  Graph g_{GraphOptions{.use_resource = std::get<0>(GetParam())}};
  const Variable v_ = MakeVariable(g_, 1.f, {.name = "v"});
  const Queue in_ = Queue::Fifo(g_, 5, {DT_FLOAT}, {.shapes = {Shape()}});
  const Queue out_ = Queue::Fifo(g_, 5, {DT_FLOAT}, {.shapes = {Shape()}});
};

INSTANTIATE_TEST_SUITE_P(Kinds, ExternalWaitsTest,
                         ::testing::Combine(::testing::Bool(), ::testing::Bool()));

// The read comes first, though its user comes last.
TEST_P(ExternalWaitsTest, AWriterDoesNotWaitForAReaderThatDequeues) {
  EXPECT_EQ(Run([&] { return v_.value() + Taken(); }), 9);
}

TEST_P(ExternalWaitsTest, NorForOneThatDequeuesElsewhere) {
  EXPECT_EQ(Run([&] { return Reshape(v_.value(), Const(g_, {1})) * Sqrt(Taken() + 1.f); }), 3);
}

TEST_P(ExternalWaitsTest, NorForABranchThatDequeues) {
  EXPECT_EQ(Run([&] {
              const Output value = v_.value();
              return Cond(
                  Const(g_, true), [&] { return value + Taken(); }, [&] { return value * 1.f; });
            }),
            9);
}

TEST_P(ExternalWaitsTest, NorForALoopThatDequeues) {
  EXPECT_EQ(Run([&] {
              return WhileLoop([](const Outputs& in) { return in[0] < 1; },
                               [&](const Outputs& in) {
                                 return Outputs{in[0] + 1, in[1] + Taken()};
                               },
                               {Const(g_, 0), v_.value()})[1];
            }),
            9);
}

// Of two writes, the one that depends on fewer external waits comes first.
TEST_P(ExternalWaitsTest, NorForAnotherWriterThatDequeues) {
  EXPECT_EQ(Run([&] {
              const Output taken = Taken();
              const ControlDependencies after(g_, {v_.AssignAdd(taken * 0.f)});
              return Identity(taken);
            }),
            8);
}

// An iteration enqueues before it dequeues.
TEST_P(ExternalWaitsTest, AnIterationEnqueuesBeforeItDequeues) {
  const Outputs out = WhileLoop([](const Outputs& in) { return in[0] < 1; },
                                [&](const Outputs& in) {
                                  Output taken;
                                  if (std::get<1>(GetParam())) taken = v_.read_value() + Taken();
                                  const Operation put = AssignAndEnqueue();
                                  if (!taken.valid()) taken = v_.read_value() + Taken();
                                  const ControlDependencies after(g_, {put});
                                  return Outputs{in[0] + 1, Identity(taken)};
                                },
                                {Const(g_, 0), Const(g_, 0.f)});
  EXPECT_EQ(Run(out[1], std::nullopt), 9);
}

// An iteration takes two elements: the outside supplies one of them, and makes the other one of
// what the iteration enqueues after the first.
TEST_P(ExternalWaitsTest, AnIterationTakesElementsInAnyOrder) {
  const Queue given = Queue::Fifo(g_, 5, {DT_FLOAT}, {.shapes = {Shape()}});
  const Operation give = given.Enqueue({Const(g_, 1.f)});
  const Output out = WhileLoop([](const Outputs& in) { return in[0] < 1; },
                               [&](const Outputs& in) {
                                 Output taken;
                                 if (std::get<1>(GetParam())) taken = Taken();
                                 Operation put;
                                 {
                                   const ControlDependencies after(g_, {given.Dequeue()[0]});
                                   put = AssignAndEnqueue();
                                 }
                                 if (!taken.valid()) taken = Taken();
                                 const ControlDependencies after(g_, {put});
                                 return Outputs{in[0] + 1, Identity(taken)};
                               },
                               {Const(g_, 0), Const(g_, 0.f)})[1];
  EXPECT_EQ(Run(out, give), 8);
}

// Nodes that are fused must not wait for what only some of them need.
TEST_P(ExternalWaitsTest, AFusedResultDoesNotWaitForAnother) {
  const Output x = Square(ConstOf(g_, DT_FLOAT, 2.f) + v_.value());
  Operation put;
  {
    const ControlDependencies after(g_, {v_.Assign(x * 0.f + 5.f)});
    put = out_.Enqueue({Tanh(x * 0.f + 1.f) * 0.f + 7.f});
  }
  EXPECT_EQ(Run(Tanh(x) * 0.f + Taken() + x, put), 17);
}

// A writer that waits for an element anyway may also wait for a reader that waits for it: it then
// writes in place.
TEST_P(ExternalWaitsTest, AWriterWaitingForTheSameElementComesLast) {
  const Output x = Taken();
  const Operation put = AssignAndEnqueue();
  const Output seen = v_.value() * x;
  const Output written = v_.AssignAdd(x * 0.f);
  EXPECT_EQ(Run(seen + written * 0.f, put), 8);
}

}  // namespace
}  // namespace weir
