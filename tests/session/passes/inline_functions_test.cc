// Function inlining: which functions are inlined, and that nothing else changes.

#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/core/io/function_library.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/function.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/framework/initializers.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/session.h"
#include "weir/tests/session/lib/test_functions.h"

namespace weir {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

using Builder = std::function<Outputs(Graph&, const Outputs&)>;

class InlineFunctions : public testing::Test {
 protected:
  FunctionRef Define(const std::string& name, const DataTypes& types, const Builder& build) {
    return DefineFrom(g_, name, types, build);
  }
  Output Input(const Shape& shape, float first = -0.5f) {
    Tensor t(DT_FLOAT, shape);
    for (int64_t i = 0; i < t.num_elements(); ++i)
      t.data<float>()[i] = first + 0.375f * static_cast<float>(i % 11);
    const Output x = Placeholder(g_, DT_FLOAT, shape);
    feeds_.emplace_back(x, t);
    return x;
  }
  Output Number(int n) {
    const Output x = Placeholder(g_, DT_INT32, {});
    feeds_.emplace_back(x, Tensor::Scalar<int32_t>(n));
    return x;
  }

  // Runs the step twice, in a new session.
  Tensors Run(const Outputs& ys, SessionOptions options,
              const std::vector<Operation>& targets = {}) {
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    options.num_threads = 2;
    Session session = *Session::Create(g_, std::move(options));
    if (init_.valid()) {
      EXPECT_TRUE(session.Run({}, {}, {init_}).ok());
    }
    Tensors out(ys.size());
    for (int step = 0; step < 2; ++step) {
      std::vector<NodeTrace> trace;
      auto got = session.Run(feeds_, ys, targets, {.trace = &trace});
      EXPECT_TRUE(got.ok()) << got.status();
      if (!got.ok()) return out;
      out = *std::move(got);
      ops_.clear();
      names_.clear();
      for (const NodeTrace& node : trace) {
        ops_.insert(node.op);
        names_.insert(node.node);
      }
    }
    return out;
  }

  // Results with and without inlining are equal bit for bit. ops_ has the ops that ran with
  // inlining.
  void Compare(const Outputs& ys, const std::vector<Operation>& targets = {}) {
    const Tensors want =
        Run(ys, {.disable = {"inline_functions", "fusion", "structure_loops"}}, targets);
    const std::vector<std::set<std::string>> ways = {
        {"fusion", "structure_loops"},
        {"fusion", "plan_memory"},
        {"fusion", "in_place"},
        {"fusion", "eliminate_common_subexpressions", "remove_no_ops", "prune_control_edges"},
        {"fusion"},
        {}};
    for (const std::set<std::string>& off : ways) {
      const Tensors got = Run(ys, {.disable = off}, targets);
      for (size_t i = 0; i < ys.size(); ++i) {
        EXPECT_TRUE(IdenticalTensors(got[i], want[i]))
            << "result " << i << " without " << ::testing::PrintToString(off) << ": "
            << got[i].ToString(20) << " instead of " << want[i].ToString(20);
      }
    }
  }
  bool Called() const {
    return absl::c_any_of(ops_, [](const std::string& op) {
      return absl::StrContains(op, "Call") || absl::EndsWith(op, "While");
    });
  }

  Graph g_;
  Feeds feeds_;
  Operation init_;
  std::set<std::string> ops_, names_;
};

const Builder& Below10() {
  static const auto* const below =
      new Builder([](Graph&, const Outputs& v) { return Outputs{v[0] < 10}; });
  return *below;
}

TEST_F(InlineFunctions, InlinesCalls) {
  Define("square", {DT_FLOAT}, [](Graph&, const Outputs& x) { return Outputs{x[0] * x[0]}; });
  const FunctionRef f = Define("f", {DT_FLOAT, DT_FLOAT}, [](Graph& body, const Outputs& x) {
    const Output squared = Call(body, {"square", nullptr}, {x[1]})[0];
    return Outputs{x[1], Tanh(squared), x[0], squared - x[0]};
  });
  const Output x = Input({3, 5}), y = Input({5}, 1);
  const Outputs first = Call(g_, f, {x, y}), second = Call(g_, f, {first[1], first[3]});
  Compare({first[0], first[1], first[2], first[3], second[1], second[2], second[3] * x});
  EXPECT_FALSE(Called());
  Run({first[3]}, {.disable = {"fusion"}});
  EXPECT_THAT(names_, Contains("PartitionedCall/PartitionedCall/mul"));
}

TEST_F(InlineFunctions, FunctionalLoopsAreStructured) {
  const DataTypes types = {DT_INT32, DT_FLOAT, DT_FLOAT, DT_FLOAT, DT_FLOAT};
  const FunctionRef cond = Define("cond", types, Below10());
  // The last variable is loop-invariant; the one before it takes the previous value of another.
  const FunctionRef body = Define("body", types, [](Graph&, const Outputs& v) {
    return Outputs{v[0] + 1, v[2], v[1] * 0.5f + v[4], v[1], Identity(v[4])};
  });
  const Output x = Input({4});
  for (const int from : {0, 7, 9, 10, 12}) {
    const Outputs out = FunctionalWhile({Number(from), x, x + 1.f, x * 2.f, x}, cond, body);
    Outputs ys = out;
    ys.push_back(out[1] + out[4]);
    Compare(ys);
    EXPECT_FALSE(Called()) << from;
  }
}

TEST_F(InlineFunctions, LoopsInLoopsAndInCalls) {
  const DataTypes types = {DT_INT32, DT_FLOAT, DT_INT32};
  const auto counts_to = [](Graph&, const Outputs& v) { return Outputs{v[0] < v[2]}; };
  Define("below", types, counts_to);
  Define("step", types, [](Graph&, const Outputs& v) {
    return Outputs{v[0] + 1, Sin(v[1]) * 1.5f, v[2]};
  });
  Define("outer", types, [](Graph& g, const Outputs& v) {
    const Outputs inner =
        FunctionalWhile({Const(g, 0), v[1], v[0]}, {"below", nullptr}, {"step", nullptr});
    return Outputs{v[0] + 1, inner[1] + 0.125f, v[2]};
  });
  const FunctionRef all = Define("all", {DT_FLOAT, DT_INT32}, [](Graph& g, const Outputs& v) {
    return FunctionalWhile({Const(g, 0), v[0], v[1]}, {"below", nullptr}, {"outer", nullptr});
  });
  const Output x = Input({7});
  for (const int n : {0, 1, 5}) {
    const Outputs out = Call(g_, all, {x, Number(n)});
    Compare({out[0], out[1], ReduceSum(out[1])});
    EXPECT_FALSE(Called());
  }
}

TEST_F(InlineFunctions, ShapesMayGrowAndConditionsMayBeAnyTruthyValue) {
  const DataTypes types = {DT_FLOAT, DT_FLOAT};
  const FunctionRef number =
      Define("number", types, [](Graph&, const Outputs& v) { return Outputs{v[0]}; });
  const FunctionRef elements = Define("elements", types, [](Graph& g, const Outputs& v) {
    const Output size = Reshape(Cast(v[0], DT_INT32), {1});
    return Outputs{AddNode("Slice", {v[1], Const(g, {0}), size})->output(0)};
  });
  const FunctionRef body = Define("body", types, [](Graph&, const Outputs& v) {
    return Outputs{v[0] - 1.f, Concat({v[1], v[1] * -0.5f}, 0)};
  });
  const Output count = Const(g_, 4.f) + 0.f * Input({}), x = Input({5});
  Compare(FunctionalWhile({count, x}, number, body));
  EXPECT_FALSE(Called());
  Compare(FunctionalWhile({count, x}, elements, body));
  EXPECT_FALSE(Called());
}

TEST_F(InlineFunctions, ALoopOverScalarsBecomesOneNode) {
  const DataTypes types = {DT_INT32, DT_FLOAT, DT_INT32};
  const FunctionRef cond = Define("cond", types, Below10());
  const FunctionRef body = Define("body", types, [](Graph&, const Outputs& v) {
    return Outputs{v[0] + 1, v[1] * 0.75f + 1.f, v[2] + 3};
  });
  const Outputs out = FunctionalWhile({Number(0), Input({}), Const(g_, 1)}, cond, body);
  Compare({out[1]});  // the last variable is unused
  EXPECT_THAT(ops_, Contains("_ScalarLoop"));
}

TEST_F(InlineFunctions, GradientsGoThroughCallsAndLoops) {
  const DataTypes types = {DT_INT32, DT_FLOAT, DT_FLOAT};
  const FunctionRef cond = Define("cond", types, Below10());
  const FunctionRef body = Define("body", types, [](Graph&, const Outputs& v) {
    return Outputs{v[0] + 1, Tanh(v[1] * v[2]), v[2]};
  });
  const Output x = Input({6}), w = Input({6}, 0.5f);
  const Output y = FunctionalWhile({Number(3), x, w}, cond, body)[1];
  Outputs all = DenseGradients({y}, {x, w});
  all.push_back(y);
  Compare(all);
  EXPECT_FALSE(Called());
}

// ---- effects

class InlinedEffects : public InlineFunctions {
 protected:
  // add(handle, x): adds x to the variable. read(handle): returns its value.
  void SetUp() override {
    v_ = GetVariable(g_, "v", {}, Zeros());
    Graph body;
    const Output handle = Placeholder(body, DT_RESOURCE), x = Placeholder(body, DT_FLOAT);
    const Operation add(NodeBuilder(body, "AssignAddVariableOp").Input(handle).Input(x).Build());
    ASSERT_TRUE(DefineFunction(g_, "add", body, {handle, x}, {x}, {add}).ok());
    Graph reading;
    const Output from = Placeholder(reading, DT_RESOURCE);
    const Output value =
        NodeBuilder(reading, "ReadVariableOp").Input(from).Attr("dtype", DT_FLOAT).BuildOutput();
    ASSERT_TRUE(DefineFunction(g_, "read", reading, {from}, {value}).ok());
    init_ = GlobalVariablesInitializer(g_);
  }
  Outputs Add(const Output& x) { return Call(g_, {"add", nullptr}, {v_.handle(), x}); }
  Output Read() { return Call(g_, {"read", nullptr}, {v_.handle()})[0]; }

  Variable v_;
};

TEST_F(InlinedEffects, ControlSuccessorsOfACallSeeItsEffects) {
  const Outputs added = Add(Input({}, 2));
  Output read;
  {
    const ControlDependencies after(g_, {added[0]});
    read = Read();
  }
  Compare({read});
  EXPECT_FALSE(Called());
  EXPECT_EQ(Run({read}, {})[0].scalar<float>(), 4);  // in the second step
}

TEST_F(InlinedEffects, ACallWaitsForItsControlInputs) {
  const Output before = v_.AssignAdd(Input({}, 10));
  Output read;
  Outputs added;
  {
    const ControlDependencies after(g_, {before});
    added = Add(Const(g_, 1.f));
  }
  {
    const ControlDependencies after(g_, {added[0]});
    read = Read();
  }
  Compare({read});
  EXPECT_FALSE(Called());
  EXPECT_EQ(Run({read}, {})[0].scalar<float>(), 22);
}

// The function's effects come after its arguments, whether it uses them or not.
TEST_F(InlinedEffects, WaitForAllArguments) {
  const auto define_read_beside = [&] {
    Graph body;
    const Output handle = Placeholder(body, DT_RESOURCE), x = Placeholder(body, DT_FLOAT);
    const Output value =
        NodeBuilder(body, "ReadVariableOp").Input(handle).Attr("dtype", DT_FLOAT).BuildOutput();
    return DefineFunction(g_, "read_beside", body, {handle, x}, {value});
  };
  ASSERT_TRUE(define_read_beside().ok());
  const Output written = v_.AssignAdd(Input({}, 10));
  const Output late = Reshape(written * 0.0f, {});
  const Output unused = Call(g_, {"read_beside", nullptr}, {v_.handle(), late})[0];
  const Outputs added = Call(g_, {"add", nullptr}, {v_.handle(), unused});  // doubles it
  const Output last = Call(g_, {"read_beside", nullptr}, {v_.handle(), added[0]})[0];
  Compare({unused, last});
  EXPECT_FALSE(Called());
  const Tensors got = Run({unused, last}, {});  // of the second step
  EXPECT_EQ(got[0].scalar<float>(), 30);
  EXPECT_EQ(got[1].scalar<float>(), 60);
}

TEST_F(InlinedEffects, OfALoopWaitForAllThatEnters) {
  const DataTypes types = {DT_INT32, DT_RESOURCE, DT_FLOAT, DT_FLOAT};
  const FunctionRef cond = Define("cond", types, Below10());
  Graph body;
  const Output i = Placeholder(body, DT_INT32), handle = Placeholder(body, DT_RESOURCE),
               unused = Placeholder(body, DT_FLOAT), sum = Placeholder(body, DT_FLOAT);
  const Output value =
      NodeBuilder(body, "ReadVariableOp").Input(handle).Attr("dtype", DT_FLOAT).BuildOutput();
  ASSERT_TRUE(DefineFunction(g_, "body", body, {i, handle, unused, sum},
                             {i + 1, handle, unused, sum + value})
                  .ok());
  const Output late = v_.Assign(Const(g_, 7.f)) * 0.0f;
  const Outputs loop =
      FunctionalWhile({Number(0), v_.handle(), late, Const(g_, 0.f)}, cond, {"body", nullptr});
  Compare({loop[3]});
  EXPECT_FALSE(Called());
  EXPECT_EQ(Run({loop[3]}, {})[0].scalar<float>(), 70);
}

// Also for a loop with a loop-invariant variable.
TEST_F(InlinedEffects, PrecedeUsersOfAnyResult) {
  const DataTypes types = {DT_INT32, DT_RESOURCE, DT_FLOAT};
  const FunctionRef cond = Define("cond", types, Below10());
  Graph body;
  body.set_functions(g_.functions());
  const Output i = Placeholder(body, DT_INT32), handle = Placeholder(body, DT_RESOURCE),
               kept = Placeholder(body, DT_FLOAT);
  const Outputs call = Call(body, {"add", nullptr}, {handle, Cast(i, DT_FLOAT)});
  ASSERT_TRUE(DefineFunction(g_, "body", body, {i, handle, kept}, {i + 1, handle, kept},
                             {Operation(call[0])})
                  .ok());
  Graph beside;
  const Output of = Placeholder(beside, DT_RESOURCE), x = Placeholder(beside, DT_FLOAT);
  const Output value =
      NodeBuilder(beside, "ReadVariableOp").Input(of).Attr("dtype", DT_FLOAT).BuildOutput();
  ASSERT_TRUE(DefineFunction(g_, "read_beside", beside, {of, x}, {value}).ok());
  const Outputs loop =
      FunctionalWhile({Number(0), v_.handle(), Input({}, 3)}, cond, {"body", nullptr});
  const Output read = Call(g_, {"read_beside", nullptr}, {v_.handle(), loop[2] * 2.0f})[0];
  Compare({read});
  EXPECT_FALSE(Called());
  EXPECT_EQ(Run({read}, {})[0].scalar<float>(), 90);
}

TEST_F(InlinedEffects, AreRunForACallThatIsOnlyATarget) {
  const Operation added(Add(Const(g_, 3.f))[0]);
  Session session = *Session::Create(g_, {.num_threads = 2});
  ASSERT_TRUE(session.Run({}, {}, {init_}).ok());
  for (int step = 0; step < 3; ++step) ASSERT_TRUE(session.Run({}, {}, {added}).ok());
  EXPECT_EQ((*session.Run({}, {v_.read_value()}))[0].scalar<float>(), 9);
}

TEST_F(InlinedEffects, OfEachIterationOfALoop) {
  const DataTypes types = {DT_INT32, DT_RESOURCE};
  const FunctionRef cond = Define("cond", types, Below10());
  Graph body;
  body.set_functions(g_.functions());
  const Output i = Placeholder(body, DT_INT32), handle = Placeholder(body, DT_RESOURCE);
  const Outputs call = Call(body, {"add", nullptr}, {handle, Cast(i, DT_FLOAT)});
  ASSERT_TRUE(
      DefineFunction(g_, "body", body, {i, handle}, {i + 1, handle}, {Operation(call[0])}).ok());
  const Output start = Number(0), before = v_.Assign(Const(g_, 100.f));
  Outputs loop;
  Output read;
  {
    const ControlDependencies after(g_, {before});
    loop = FunctionalWhile({start, v_.handle()}, cond, {"body", nullptr});
  }
  {
    const ControlDependencies after(g_, {loop[0]});
    read = Read();
  }
  Compare({read, loop[0]});
  EXPECT_FALSE(Called());
  EXPECT_EQ(Run({read}, {})[0].scalar<float>(), 145);
}

// ---- functions that are not inlined

TEST_F(InlineFunctions, StateThatIsKnownByAName) {
  Graph body;
  const Output x = Placeholder(body, DT_FLOAT);
  const Output queue =
      NodeBuilder(body, "FIFOQueueV2").Attr("component_types", DataTypes{DT_FLOAT}).BuildOutput();
  const Operation put(NodeBuilder(body, "QueueEnqueueV2").Input(queue).InputList({x}).Build());
  Output size;
  {
    const ControlDependencies after(body, {put});
    size = NodeBuilder(body, "QueueSizeV2").Input(queue).BuildOutput();
  }
  ASSERT_TRUE(DefineFunction(g_, "put", body, {x}, {size}, {put}).ok());
  const Output fed = Input({}), once = Call(g_, {"put", nullptr}, {fed})[0];
  Output twice;
  {
    const ControlDependencies after(g_, {once});
    twice = Call(g_, {"put", nullptr}, {fed})[0];
  }
  const Tensors sizes = Run({once, twice}, {});
  EXPECT_EQ(sizes[0].scalar<int32_t>(), 3);  // in the second step
  EXPECT_EQ(sizes[1].scalar<int32_t>(), 4);
  EXPECT_TRUE(Called());
}

TEST_F(InlineFunctions, BranchesOfOldControlFlow) {
  const FunctionRef f = Define("f", {DT_FLOAT}, [](Graph& g, const Outputs& x) {
    return Outputs{Cond(
        Greater(ReduceSum(x[0]), Const(g, 0.f)), [&] { return x[0] * 2.f; },
        [&] { return -x[0]; })};
  });
  Compare({Call(g_, f, {Input({3})})[0], Call(g_, f, {Input({3}, -9)})[0]});
  EXPECT_TRUE(Called());
}

TEST_F(InlineFunctions, ResultsThatWouldBeTooLarge) {
  constexpr int kLevels = 12, kOps = 10;  // at least 20 * 4,096 nodes
  Define("f0", {DT_FLOAT}, [](Graph&, const Outputs& x) {
    Output y = x[0];
    for (int i = 0; i < kOps; ++i) y = y * 0.5f + 1.f;
    return Outputs{y};
  });
  for (int level = 1; level <= kLevels; ++level) {
    Define(absl::StrCat("f", level), {DT_FLOAT}, [level](Graph& g, const Outputs& x) {
      const FunctionRef inner{absl::StrCat("f", level - 1), nullptr};
      return Call(g, inner, Call(g, inner, x));
    });
  }
  const Output y = Call(g_, {absl::StrCat("f", kLevels), nullptr}, {Input({})})[0];
  EXPECT_EQ(Run({y}, {})[0].scalar<float>(), 2);
  EXPECT_TRUE(Called());
}

// ---- errors

TEST_F(InlineFunctions, ErrorsNameTheCallerAndTheNode) {
  const FunctionRef f = Define("f", {DT_FLOAT, DT_FLOAT}, [](Graph&, const Outputs& x) {
    return Outputs{MatMul(x[0], x[1])};
  });
  const Output a = Placeholder(g_, DT_FLOAT), b = Placeholder(g_, DT_FLOAT);
  const Output y = Call(g_, f, {a, b})[0];
  Session session = *Session::Create(g_, {.num_threads = 2});
  const absl::Status status =
      session.Run({{a, Tensor::Zeros(DT_FLOAT, {2, 3})}, {b, Tensor::Zeros(DT_FLOAT, {2, 3})}}, {y})
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("PartitionedCall/MatMul"));
}

}  // namespace
}  // namespace weir
