// Functions of graphs: calls, branches, loops, recursion, state, gradients, errors.

#include "weir/ops/framework/function.h"

#include <functional>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/core/io/function_library.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/io/text_proto.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"
#include "weir/proto/graph.pb.h"
#include "weir/session/session.h"
#include "weir/tests/session/lib/test_functions.h"

// Gradients checked to order 2 by tests: PartitionedCall.

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using Builder = std::function<Outputs(Graph&, const Outputs&)>;

class FunctionsTest : public ::testing::Test {
 protected:
  FunctionRef Define(const std::string& name, const DataTypes& types, const Builder& build,
                     Graph* to = nullptr) {
    return DefineFrom(to == nullptr ? g_ : *to, name, types, build);
  }
  FunctionRef DefineSquare(const std::string& name = "square") {
    return Define(name, {DT_FLOAT}, [](Graph&, const Outputs& x) { return Outputs{x[0] * x[0]}; });
  }
  absl::StatusOr<Tensors> Try(const Outputs& fetches, const Feeds& feeds = {},
                              const RunOptions& options = {}) {
    if (!g_.status().ok()) return g_.status();
    Session session = *Session::Create(g_, {.num_threads = 2});
    return session.Run(feeds, fetches, {}, options);
  }
  Tensors Run(const Outputs& fetches, const Feeds& feeds = {}) {
    auto out = Try(fetches, feeds);
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? *std::move(out) : Tensors(fetches.size(), Tensor::Scalar(0.f));
  }
  float RunFloat(const Output& fetch, const Feeds& feeds = {}) {
    return Run({fetch}, feeds)[0].scalar<float>();
  }
  static std::vector<float> Floats(const Tensor& t) {
    return {t.flat<float>().begin(), t.flat<float>().end()};
  }

  Graph g_;
};

TEST_F(FunctionsTest, ACallRunsTheFunction) {
  const FunctionRef square = DefineSquare();
  const Output x = Placeholder(g_, DT_FLOAT);
  const Output y = Call(g_, square, {x})[0];
  EXPECT_EQ(y.node->op_name(), "PartitionedCall");
  EXPECT_THAT(Floats(Run({y}, {{x, Tensor::Vector({1.f, 2.f, 3.f})}})[0]), ElementsAre(1, 4, 9));
  EXPECT_EQ(RunFloat(y, {{x, Tensor::Scalar(5.f)}}), 25);
}

TEST_F(FunctionsTest, FunctionsCallFunctions) {
  DefineSquare();
  const FunctionRef fourth = Define("fourth", {DT_FLOAT}, [](Graph& body, const Outputs& x) {
    return Call(body, {"square", nullptr}, Call(body, {"square", nullptr}, x));
  });
  EXPECT_EQ(RunFloat(Call(g_, fourth, {Const(g_, 3.f)})[0]), 81);
}

TEST_F(FunctionsTest, AResultMayBeAnArgumentOrRepeated) {
  const FunctionRef f = Define("f", {DT_FLOAT, DT_INT32}, [](Graph&, const Outputs& x) {
    const Output twice = x[0] + x[0];
    return Outputs{x[1], twice, x[0], twice};
  });
  const Tensors r = Run(Call(g_, f, {Const(g_, {1.f, 2.f}) * 3.f, Const(g_, 7)}));
  EXPECT_EQ(r[0].scalar<int32_t>(), 7);
  EXPECT_THAT(Floats(r[1]), ElementsAre(6, 12));
  EXPECT_THAT(Floats(r[2]), ElementsAre(3, 6));
  EXPECT_THAT(Floats(r[3]), ElementsAre(6, 12));
}

// The form that TensorFlow's critical sections have.
TEST_F(FunctionsTest, NodesMayHaveControlEdgesFromArguments) {
  const FunctionRef f = Define("f", {DT_FLOAT, DT_FLOAT}, [](Graph& body, const Outputs& x) {
    const ControlDependencies after(body, {x[1]});
    return Outputs{x[0] * x[0]};
  });
  const Output x = Const(g_, 3.f);
  EXPECT_EQ(Run({Call(g_, f, {x, x})[0]})[0].scalar<float>(), 9);
  const Output not_inlined = FunctionalIf(Const(g_, true), {x, x}, f, f)[0];
  EXPECT_EQ(Run({not_inlined})[0].scalar<float>(), 9);
}

TEST_F(FunctionsTest, IfTakesNumbersStringsAndLists) {
  const FunctionRef square = DefineSquare();
  const FunctionRef negate = Define(
      "negate", {DT_FLOAT}, [](Graph&, const Outputs& x) { return Outputs{Negative(x[0])}; });
  const auto choose = [&](const Tensor& cond) {
    const Output c = Placeholder(g_, cond.dtype());
    return RunFloat(FunctionalIf(c, {Const(g_, 3.f)}, square, negate)[0], {{c, cond}});
  };
  EXPECT_EQ(choose(Tensor::Scalar(true)), 9);
  EXPECT_EQ(choose(Tensor::Scalar(false)), -3);
  EXPECT_EQ(choose(Tensor::Scalar(int64_t{-2})), 9);
  EXPECT_EQ(choose(Tensor::Scalar(0.f)), -3);
  EXPECT_EQ(choose(Tensor::Scalar("")), -3);
  EXPECT_EQ(choose(Tensor::Scalar("false")), 9);
  EXPECT_EQ(choose(Tensor::Vector({0.f})), 9);
  EXPECT_EQ(choose(Tensor::Zeros(DT_FLOAT, Shape({0}))), -3);
}

TEST_F(FunctionsTest, CaseTakesTheLastBranchForOtherIndices) {
  std::vector<FunctionRef> branches;
  for (int i = 0; i < 3; ++i) {
    branches.push_back(Define(absl::StrCat("b", i), {DT_FLOAT}, [i](Graph&, const Outputs& x) {
      return Outputs{x[0] + static_cast<float>(i)};
    }));
  }
  const Output index = Placeholder(g_, DT_INT32, {});
  const Output y = FunctionalCase(index, {Const(g_, 10.f)}, branches)[0];
  for (const auto& [i, want] : {std::pair(0, 10), {1, 11}, {2, 12}, {3, 12}, {-1, 12}})
    EXPECT_EQ(RunFloat(y, {{index, Tensor::Scalar<int32_t>(i)}}), want) << i;
}

TEST_F(FunctionsTest, WhileRunsAsLongAsItsConditionHolds) {
  const DataTypes types = {DT_INT32, DT_FLOAT};
  const FunctionRef cond =
      Define("cond", types, [](Graph&, const Outputs& v) { return Outputs{v[0] < 10}; });
  const FunctionRef body = Define("body", types, [](Graph&, const Outputs& v) {
    return Outputs{v[0] + 1, v[1] * 2.f};
  });
  const Output start = Placeholder(g_, DT_INT32, {});
  const Outputs out = FunctionalWhile({start, Const(g_, 1.f)}, cond, body);
  for (const auto& [from, want] : {std::pair(0, 1024.f), {9, 2.f}, {10, 1.f}, {99, 1.f}})
    EXPECT_EQ(RunFloat(out[1], {{start, Tensor::Scalar<int32_t>(from)}}), want) << from;
}

TEST_F(FunctionsTest, LoopsMayChangeShapes) {
  const DataTypes types = {DT_INT32, DT_FLOAT};
  const FunctionRef cond =
      Define("cond", types, [](Graph&, const Outputs& v) { return Outputs{v[0] < 40}; });
  const FunctionRef body = Define("body", types, [](Graph&, const Outputs& v) {
    return Outputs{v[0] + 1, Concat({v[1], Reshape(Cast(v[0], DT_FLOAT), {1})}, 0)};
  });
  const Outputs out = FunctionalWhile({Const(g_, 0), Const(g_, {-1.f})}, cond, body);
  const Tensors r = Run({out[1], ReduceSum(out[1])});
  EXPECT_EQ(r[0].shape(), Shape({41}));
  EXPECT_EQ(r[1].scalar<float>(), 40 * 39 / 2 - 1);
}

TEST_F(FunctionsTest, ForCountsUpAndDown) {
  const FunctionRef add = Define("add", {DT_INT32, DT_FLOAT}, [](Graph&, const Outputs& v) {
    return Outputs{v[1] * 10.f + Cast(v[0], DT_FLOAT)};
  });
  const auto run = [&](int start, int limit, int delta) {
    return Try(
        FunctionalFor(Const(g_, start), Const(g_, limit), Const(g_, delta), {Const(g_, 0.f)}, add));
  };
  EXPECT_EQ((*run(1, 4, 1))[0].scalar<float>(), 123);
  EXPECT_EQ((*run(9, 2, -3))[0].scalar<float>(), 963);
  EXPECT_EQ((*run(3, 3, 0))[0].scalar<float>(), 0);
  for (const auto& status : {run(1, 4, 0).status(), run(1, 4, -1).status(), run(4, 1, 1).status()})
    EXPECT_THAT(status.message(), HasSubstr("Invalid start/limit/delta")) << status;
}

TEST_F(FunctionsTest, RecursionWorksAndIsLimited) {
  // f(n) = n <= 0 ? 0 : n + f(n - 1), the call under a Switch.
  const FunctionRef recurse{"sum", nullptr};
  Define("sum", {DT_FLOAT}, [](Graph& body, const Outputs& x) {
    const Outputs out = Cond(
        Greater(x[0], Const(body, 0.f)),
        [&] {
          Node* call = AddNode(body, "PartitionedCall", {Outputs{x[0] - 1.f}},
                               {{"Tout", DataTypes{DT_FLOAT}}, {"f", FunctionRef{"sum", nullptr}}});
          return Outputs{x[0] + call->output(0)};
        },
        [&] { return Outputs{Const(body, 0.f)}; });
    return out;
  });
  Define("endless", {DT_FLOAT}, [](Graph& body, const Outputs& x) {
    Node* call =
        AddNode(body, "PartitionedCall", {Outputs{x[0]}},
                {{"Tout", DataTypes{DT_FLOAT}}, {"f", FunctionRef{"endless", nullptr}}}, "again");
    return Outputs{call->output(0)};
  });
  EXPECT_EQ(RunFloat(Call(g_, recurse, {Const(g_, 100.f)})[0]), 5050);
  const auto endless = Try(Call(g_, {"endless", nullptr}, {Const(g_, 1.f)}, "start"));
  EXPECT_EQ(endless.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(endless.status().message(), AllOf(HasSubstr("'endless' seems to recurse without end"),
                                                HasSubstr("start/again/again/"),
                                                HasSubstr("/.../again/"), HasSubstr("nested")));
  EXPECT_LT(endless.status().message().size(), 500);
}

TEST_F(FunctionsTest, CapturedVariablesAreReadAndWritten) {
  const Variable v = MakeVariable(Const(g_, 1.f), {.name = "v"});
  const FunctionRef add = Define("add", {DT_RESOURCE, DT_FLOAT}, [](Graph& body, const Outputs& a) {
    Node* update = AddNode("AssignAddVariableOp", {a[0], a[1]});
    const ControlDependencies after(body, {Operation(update)});
    return Outputs{AddOp("ReadVariableOp", {a[0]}, {{"dtype", DT_FLOAT}})};
  });
  const Output y = Call(g_, add, {v.handle(), Const(g_, 2.f)})[0];
  EXPECT_EQ(y.node->op_name(), "StatefulPartitionedCall");
  Session session = *Session::Create(g_, {.num_threads = 2});
  const auto early = session.Run({y});
  EXPECT_EQ(early.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(early.status().message(), HasSubstr("v"));
  ASSERT_TRUE(session.Run(v.initializer()).ok());
  EXPECT_EQ((*session.Run({y}))[0].scalar<float>(), 3);
  EXPECT_EQ((*session.Run({y}))[0].scalar<float>(), 5);
  EXPECT_EQ((*session.Run({v.value()}))[0].scalar<float>(), 5);
  ASSERT_TRUE(session.Run(Operation(y.node)).ok()) << "run for its effect alone";
  EXPECT_EQ((*session.Run({v.value()}))[0].scalar<float>(), 7);
}

// Kernels of a body keep weights packed from call to call. They must notice every write to the
// variable, whether weights stay for many calls or change before each.
TEST_F(FunctionsTest, WeightsOfAFunctionMayChange) {
  const auto pattern = [](const Shape& shape, int seed) {
    Tensor t(DT_FLOAT, shape);
    for (int64_t i = 0; i < t.num_elements(); ++i)
      t.data<float>()[i] = static_cast<float>((i * 7 + seed) % 5 - 2);  // no sum is rounded
    return t;
  };
  const Shape filter_shape({3, 3, 8, 16}), matrix_shape({16, 64});
  const Output filter_fed = Placeholder(g_, DT_FLOAT, filter_shape),
               matrix_fed = Placeholder(g_, DT_FLOAT, matrix_shape);
  const Variable filter = MakeVariable(filter_fed, {.name = "filter"});
  const Variable matrix = MakeVariable(matrix_fed, {.name = "matrix"});
  const Output image = Const(g_, pattern({1, 6, 6, 8}, 1));
  const auto layers = [](const Output& x, const Output& f, const Output& m) {
    return MatMul(Reshape(Conv2D(x, f), {-1, 16}), m);
  };
  const FunctionRef net =
      Define("net", {DT_FLOAT, DT_RESOURCE, DT_RESOURCE}, [&](Graph&, const Outputs& a) {
        const auto read = [](const Output& handle) {
          return AddOp("ReadVariableOp", {handle}, {{"dtype", DT_FLOAT}});
        };
        return Outputs{layers(a[0], read(a[1]), read(a[2]))};
      });
  const Output called = Call(g_, net, {image, filter.handle(), matrix.handle()})[0];
  const Output want = layers(image, filter_fed, matrix_fed);
  Session session = *Session::Create(g_, {.num_threads = 2});
  int seed = 0;
  for (const int runs : {5, 1, 1, 1, 1, 1, 1, 1, 1, 5}) {
    const Feeds feeds = {{filter_fed, pattern(filter_shape, ++seed)},
                         {matrix_fed, pattern(matrix_shape, seed + 3)}};
    ASSERT_TRUE(session.Run(feeds, Outputs{}, {filter.initializer(), matrix.initializer()}).ok());
    const Tensor expected = (*session.Run(feeds, {want}))[0];
    for (int run = 0; run < runs; ++run) {
      const absl::StatusOr<Tensors> got = session.Run({called});
      ASSERT_TRUE(got.ok()) << got.status();
      EXPECT_TRUE(IdenticalTensors((*got)[0], expected)) << "weights " << seed << ", run " << run;
    }
  }
}

TEST_F(FunctionsTest, EffectsRunEvenIfNoResultNeedsThem) {
  const Variable v = MakeVariable(Const(g_, 1.f), {.name = "v"});
  const FunctionRef f = Define("f", {DT_RESOURCE, DT_FLOAT}, [](Graph& body, const Outputs& a) {
    AddNode("AssignAddVariableOp", {a[0], a[1]});
    return Outputs{Negative(a[1])};
  });
  const Output y = Call(g_, f, {v.handle(), Const(g_, 2.f)})[0];
  Session session = *Session::Create(g_);
  ASSERT_TRUE(session.Run(v.initializer()).ok());
  EXPECT_EQ((*session.Run({y}))[0].scalar<float>(), -2);
  EXPECT_EQ((*session.Run({v.value()}))[0].scalar<float>(), 3);
}

TEST_F(FunctionsTest, ErrorsNameTheirCallers) {
  const FunctionRef check = Define("check", {DT_FLOAT}, [](Graph&, const Outputs& x) {
    return Outputs{AddOp("CheckNumerics", {x[0]}, {{"message", "bad"}}, "number")};
  });
  const FunctionRef outer = Define("outer", {DT_FLOAT}, [&](Graph& body, const Outputs& x) {
    return Call(body, check, x, "inner_call");
  });
  const Output x = Placeholder(g_, DT_FLOAT);
  const auto out = Try({Call(g_, outer, {x}, "outer_call")[0]},
                       {{x, Tensor::Scalar(std::numeric_limits<float>::infinity())}});
  EXPECT_EQ(out.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(out.status().message(),
              AllOf(HasSubstr("CheckNumerics (node outer_call/inner_call/number)"),
                    Not(HasSubstr("PartitionedCall"))));
  EXPECT_THAT(out.status().ToString(), Not(HasSubstr("in_function"))) << "no payload is left";
}

TEST_F(FunctionsTest, InvalidCallsAreErrors) {
  const FunctionRef square = DefineSquare();
  const auto call = [&](const std::string& f, const DataType in, const DataType out) {
    Node* node = AddNode(g_, "PartitionedCall", {Outputs{Placeholder(g_, in)}},
                         {{"Tout", DataTypes{out}}, {"f", FunctionRef{f, nullptr}}});
    return Try({node->output(0)}, {{node->input(0), Tensor::Zeros(in, {})}}).status();
  };
  EXPECT_THAT(call("nowhere", DT_FLOAT, DT_FLOAT).message(),
              HasSubstr("Failed to find function \"nowhere\" in function library"));
  EXPECT_EQ(call("nowhere", DT_FLOAT, DT_FLOAT).code(), absl::StatusCode::kInvalidArgument);
  const Output x = Placeholder(g_, DT_FLOAT), chosen = Placeholder(g_, DT_BOOL);
  const Output branch = AddNode(g_, "If", {chosen, Outputs{x}},
                                {{"Tout", DataTypes{DT_FLOAT}},
                                 {"then_branch", FunctionRef{"nowhere", nullptr}},
                                 {"else_branch", square}})
                            ->output(0);
  const absl::Status missing =
      Try({branch}, {{chosen, Tensor::Scalar(true)}, {x, Tensor::Scalar(1.f)}}).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound) << missing;
  EXPECT_THAT(missing.message(), HasSubstr("Function nowhere is not defined."));
  EXPECT_THAT(call("square", DT_INT32, DT_FLOAT).message(),
              HasSubstr("Expects arg[0] to be float but int32 is provided"));
  EXPECT_EQ(call("square", DT_INT32, DT_FLOAT).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(call("square", DT_FLOAT, DT_INT32).message(),
              HasSubstr("Expect 0-th output is of type int32 but get float"));
  EXPECT_EQ(call("square", DT_FLOAT, DT_INT32).code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(call("square", DT_FLOAT, DT_FLOAT).ok());
  EXPECT_FALSE(Call(g_, {"unknown", nullptr}, {}).size());
  EXPECT_THAT(g_.TakeStatus().message(), HasSubstr("unknown"));
}

TEST_F(FunctionsTest, AnUntakenBranchIsNotCalled) {
  const FunctionRef square = DefineSquare();
  const FunctionRef bad = Define("bad", {DT_FLOAT}, [](Graph& body, const Outputs& x) {
    return Outputs{AddOp("CheckNumerics", {x[0] / 0.f}, {{"message", "called"}})};
  });
  const Output pred = Placeholder(g_, DT_BOOL, {});
  const Output y = Cond(
      pred, [&] { return Call(g_, square, {Const(g_, 2.f)})[0]; },
      [&] { return Call(g_, bad, {Const(g_, 2.f)})[0]; });
  EXPECT_EQ(RunFloat(y, {{pred, Tensor::Scalar(true)}}), 4);
  EXPECT_THAT(Try({y}, {{pred, Tensor::Scalar(false)}}).status().message(), HasSubstr("called"));
  const Output z = FunctionalIf(pred, {Const(g_, 2.f)}, square, bad)[0];
  EXPECT_EQ(RunFloat(z, {{pred, Tensor::Scalar(true)}}), 4);
}

TEST_F(FunctionsTest, AnEndlessLoopEndsAtTheTimeLimit) {
  const FunctionRef yes = Define(
      "yes", {DT_FLOAT}, [](Graph& body, const Outputs&) { return Outputs{Const(body, true)}; });
  const FunctionRef same =
      Define("same", {DT_FLOAT}, [](Graph&, const Outputs& x) { return Outputs{x[0]}; });
  const Output y = FunctionalWhile({Const(g_, 1.f)}, yes, same)[0];
  const auto out = Try({y}, {}, {.timeout = std::chrono::milliseconds(50)});
  EXPECT_EQ(out.status().code(), absl::StatusCode::kDeadlineExceeded) << out.status();
}

TEST_F(FunctionsTest, ClosingTheSessionEndsALoop) {
  const FunctionRef cond = Define(
      "cond", {DT_FLOAT}, [](Graph&, const Outputs& x) { return Outputs{Less(x[0], x[0] + 1.f)}; });
  const FunctionRef same =
      Define("same", {DT_FLOAT}, [](Graph&, const Outputs& x) { return Outputs{Negative(x[0])}; });
  const Output y = FunctionalWhile({Const(g_, 1.f)}, cond, same)[0];
  Session session = *Session::Create(g_, {.num_threads = 2});
  absl::Status status;
  std::thread runner([&] { status = session.Run({y}).status(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  session.Close();
  runner.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
}

TEST_F(FunctionsTest, ConcurrentStepsCallAFunction) {
  const FunctionRef square = DefineSquare();
  const Output x = Placeholder(g_, DT_FLOAT);
  const Output y = Call(g_, square, Call(g_, square, {x}))[0];
  Session session = *Session::Create(g_, {.num_threads = 2});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const std::vector<float> twos(t + i % 20, 2.f);
        const auto out = session.Run({{x, Tensor::Vector(absl::MakeConstSpan(twos))}}, {y});
        ASSERT_TRUE(out.ok()) << out.status();
        for (const float value : (*out)[0].flat<float>()) EXPECT_EQ(value, 16);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(FunctionsTest, ResetDiscardsPlansOfBodies) {
  const FunctionRef f = Define("f", {DT_FLOAT}, [](Graph& body, const Outputs& x) {
    const Output handle = AddNode(body, "VarHandleOp", {},
                                  {{"dtype", DT_FLOAT}, {"shape", Shape()}, {"shared_name", "v"}})
                              ->output(0);
    Node* assign = AddNode("AssignVariableOp", {handle, x[0]});
    const ControlDependencies after(body, {Operation(assign)});
    return Outputs{AddOp("ReadVariableOp", {handle}, {{"dtype", DT_FLOAT}})};
  });
  const Output x = Placeholder(g_, DT_FLOAT, {});
  const Output y = Call(g_, f, {x})[0];
  Session session = *Session::Create(g_);
  EXPECT_EQ((*session.Run({{x, Tensor::Scalar(2.f)}}, {y}))[0].scalar<float>(), 2);
  session.Reset();
  EXPECT_EQ((*session.Run({{x, Tensor::Scalar(3.f)}}, {y}))[0].scalar<float>(), 3);
  EXPECT_EQ(session.resources().All<VariableState>().size(), 1u);
}

// ---- gradients

TEST_F(FunctionsTest, TheGradientOfACallIsThatOfTheFunction) {
  const FunctionRef f = Define("f", {DT_FLOAT, DT_FLOAT}, [](Graph&, const Outputs& x) {
    return Outputs{x[0] * x[0] * x[1], Sin(x[1])};
  });
  const Output x = Const(g_, 3.f), y = Const(g_, 2.f);
  const Outputs out = Call(g_, f, {x, y});
  const Outputs dx = DenseGradients({out[0] + out[1]}, {x, y});
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  const Tensors r = Run(dx);
  EXPECT_FLOAT_EQ(r[0].scalar<float>(), 2 * 3 * 2);
  EXPECT_FLOAT_EQ(r[1].scalar<float>(), 9 + std::cos(2.f));
}

TEST_F(FunctionsTest, TheGradientOfAFunctionCalledByItsName) {
  DefineSquare();
  proto::GraphDef def;
  ASSERT_TRUE(ParseTextProto("node { name: 'y' op: 'square' input: 'x' }", "test", &def).ok());
  const Output x = Const(g_, 3.f);
  const auto y = ImportGraphDef(g_, def, {.input_map = {{"x", x}}, .return_elements = {"y:0"}});
  ASSERT_TRUE(y.ok()) << y.status();
  const Output dx = DenseGradients({(*y)[0]}, {x})[0];
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  EXPECT_EQ(RunFloat(dx), 6);
}

TEST_F(FunctionsTest, SecondDerivativesGoThroughTheGradientFunction) {
  const FunctionRef cube = Define(
      "cube", {DT_FLOAT}, [](Graph&, const Outputs& x) { return Outputs{x[0] * x[0] * x[0]}; });
  const Output x = Const(g_, 2.f);
  const Output y = Call(g_, cube, {x})[0];
  const Output dy = DenseGradients({y}, {x})[0];
  const Output ddy = DenseGradients({dy}, {x})[0];
  const Output dddy = DenseGradients({ddy}, {x})[0];
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  EXPECT_FLOAT_EQ(RunFloat(dy), 12);
  EXPECT_FLOAT_EQ(RunFloat(ddy), 12);
  EXPECT_FLOAT_EQ(RunFloat(dddy), 6);
}

TEST_F(FunctionsTest, BranchesHaveGradients) {
  const FunctionRef square = DefineSquare();
  const FunctionRef triple =
      Define("triple", {DT_FLOAT}, [](Graph&, const Outputs& x) { return Outputs{x[0] * 3.f}; });
  const Output x = Const(g_, 5.f);
  const Output pred = Placeholder(g_, DT_BOOL, {}), index = Placeholder(g_, DT_INT32, {});
  const Output a = DenseGradients({FunctionalIf(pred, {x}, square, triple)[0]}, {x})[0];
  const Output b = DenseGradients({FunctionalCase(index, {x}, {triple, square})[0]}, {x})[0];
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  EXPECT_EQ(RunFloat(a, {{pred, Tensor::Scalar(true)}}), 10);
  EXPECT_EQ(RunFloat(a, {{pred, Tensor::Scalar(false)}}), 3);
  EXPECT_EQ(RunFloat(b, {{index, Tensor::Scalar<int32_t>(0)}}), 3);
  EXPECT_EQ(RunFloat(b, {{index, Tensor::Scalar<int32_t>(1)}}), 10);
}

TEST_F(FunctionsTest, TheGradientReachesACapturedVariable) {
  const Variable w = MakeVariable(Const(g_, {2.f, 3.f}), {.name = "w"});
  const FunctionRef f = Define("f", {DT_RESOURCE, DT_FLOAT}, [](Graph&, const Outputs& a) {
    const Output value = AddOp("ReadVariableOp", {a[0]}, {{"dtype", DT_FLOAT}});
    return Outputs{ReduceSum(value * value * a[1])};
  });
  const Output y = Call(g_, f, {w.handle(), Const(g_, 10.f)})[0];
  const Output dw = DenseGradients({y}, {w})[0];
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  Session session = *Session::Create(g_);
  ASSERT_TRUE(session.Run(w.initializer()).ok());
  EXPECT_THAT(Floats((*session.Run({dw}))[0]), ElementsAre(40, 60));
}

// Returns the gradient of the function `forward` at 3; the library declares `backward` as its
// gradient.
absl::StatusOr<Tensors> RunGradientBy(const Graph& g, const std::string& forward,
                                      const std::string& backward) {
  proto::GraphDef def;
  ExportGraphDef(g, &def);
  auto* gradient = def.mutable_library()->add_gradient();
  gradient->set_function_name(forward);
  gradient->set_gradient_func(backward);
  Graph again;
  WEIR_RETURN_IF_ERROR(ImportGraphDef(again, def).status());
  const Output x = Const(again, 3.f);
  const Output dx = DenseGradients({Call(again, FunctionRef{forward, nullptr}, {x})[0]}, {x})[0];
  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(again));
  return session.Run({dx});
}

TEST_F(FunctionsTest, GradientFunctionsOfTheLibraryTakePrecedence) {
  DefineSquare();
  const DataTypes types = {DT_FLOAT, DT_FLOAT};
  Define("own", types, [](Graph&, const Outputs& a) { return Outputs{a[1] * 1000.f}; });
  Define("two", types, [](Graph&, const Outputs& a) { return a; });
  EXPECT_EQ((*RunGradientBy(g_, "square", "own"))[0].scalar<float>(), 1000);
  EXPECT_THAT(std::string(RunGradientBy(g_, "square", "two").status().message()),
              HasSubstr("SymGrad expects to return 1 tensor(s), but get 2 tensor(s) instead"));
}

// ---- other forms of calls

TEST_F(FunctionsTest, CallsEqualInlinedFunctions) {
  const auto step = [](const Outputs& v) {
    return Outputs{v[0] + 1, Tanh(v[1] * 1.5f + Cast(v[0], DT_FLOAT) * 0.1f)};
  };
  const auto goes_on = [](const Outputs& v) { return v[0] < 17; };
  const DataTypes types = {DT_INT32, DT_FLOAT};
  const FunctionRef cond =
      Define("cond", types, [&](Graph&, const Outputs& v) { return Outputs{goes_on(v)}; });
  const FunctionRef body = Define("body", types, [&](Graph&, const Outputs& v) { return step(v); });
  const Output x = Placeholder(g_, DT_FLOAT);
  const Output called = FunctionalWhile({Const(g_, 0), x}, cond, body)[1];
  const Output inlined = WhileLoop([&](const Outputs& v) { return goes_on(v); },
                                   [&](const Outputs& v) { return step(v); }, {Const(g_, 0), x})[1];
  const Tensor fed = Tensor::Vector({-0.5f, 0.f, 0.25f, 3.f});
  for (const char* off : {"", "constant_folding", "plan_memory", "partition_tasks"}) {
    SessionOptions options{.num_threads = 2};
    if (*off != '\0') options.disable.insert(off);
    Session session = *Session::Create(g_, options);
    const auto out = session.Run({{x, fed}}, {called, inlined});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_TRUE(IdenticalTensors((*out)[0], (*out)[1])) << off;
  }
}

// ---- declarations of libraries

TEST_F(FunctionsTest, AttributesOfAFunctionReachItsNodes) {
  proto::GraphDef def;
  ASSERT_TRUE(ParseTextProto(R"(
    node { name: "x" op: "Const" attr { key: "dtype" value { type: DT_INT64 } }
      attr { key: "value" value { tensor { dtype: DT_INT64 tensor_shape { } int64_val: 20 } } } }
    node { name: "direct" op: "Sum3" input: "x" input: "x" input: "x"
      attr { key: "T" value { type: DT_INT64 } } attr { key: "n" value { i: 3 } } }
    node { name: "call" op: "PartitionedCall" input: "x" input: "x"
      attr { key: "Tin" value { list { type: DT_INT64 type: DT_INT64 } } }
      attr { key: "Tout" value { list { type: DT_INT64 type: DT_INT64 } } }
      attr { key: "f" value { func { name: "Sum3"
        attr { key: "T" value { type: DT_INT64 } } attr { key: "n" value { i: 2 } } } } } }
    library { function {
      signature { name: "Sum3"
        input_arg { name: "xs" type_attr: "T" number_attr: "n" }
        output_arg { name: "sum" type_attr: "T" } output_arg { name: "first" type_attr: "T" }
        attr { name: "T" type: "type" } attr { name: "n" type: "int" } }
      node_def { name: "add" op: "AddN" input: "xs" attr { key: "T" value { placeholder: "T" } }
        attr { key: "N" value { placeholder: "n" } }
        attr { key: "_class" value { list { s: "loc:@elsewhere" } } } }
      ret { key: "sum" value: "add:sum:0" } ret { key: "first" value: "xs:0" } } })",
                             "test", &def)
                  .ok());
  ASSERT_TRUE(ImportGraphDef(g_, def).ok());
  const Tensors r =
      Run({*g_.FindOutput("direct:0"), *g_.FindOutput("call:0"), *g_.FindOutput("call:1")});
  EXPECT_EQ(r[0].scalar<int64_t>(), 60);
  EXPECT_EQ(r[1].scalar<int64_t>(), 40);
  EXPECT_EQ(r[2].scalar<int64_t>(), 20);
}

TEST_F(FunctionsTest, MalformedFunctionsAreErrorsOfTheirCalls) {
  const auto run = [](const std::string& body) {
    proto::GraphDef def;
    EXPECT_TRUE(ParseTextProto(absl::StrCat(R"(
      node { name: "x" op: "Const" attr { key: "dtype" value { type: DT_FLOAT } }
        attr { key: "value" value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: 2 } } } }
      node { name: "y" op: "F" input: "x" }
      library { function { signature { name: "F" input_arg { name: "a" type: DT_FLOAT }
        output_arg { name: "b" type: DT_FLOAT } } )",
                                            body, " } }"),
                               "test", &def)
                    .ok());
    Graph g;
    const auto imported = ImportGraphDef(g, def);
    EXPECT_TRUE(imported.ok()) << imported.status();
    Session session = *Session::Create(g);
    return session.Run({*g.FindOutput("y:0")}).status();
  };
  const std::string neg =
      "node_def { name: 'n' op: 'Neg' input: 'a' attr { key: 'T' value { type: DT_FLOAT } } } ";
  EXPECT_TRUE(run(neg + "ret { key: 'b' value: 'n:y:0' }").ok());
  for (
      const auto& [body, words] : std::vector<std::pair<std::string, std::string>>{
          {neg, "Return value 'b' is missing"},
          {neg + "ret { key: 'b' value: 'n:y:1' }", "'n:y:1' is not found"},
          {neg + "ret { key: 'b' value: 'm:y:0' }", "'m:y:0' is not found"},
          {"node_def { name: 'n' op: 'Neg' input: 'z' } ret { key: 'b' value: 'a' }",
           "input 'z' is not found"},
          {"node_def { name: 'n' op: 'Neg' input: 'a' attr { key: 'T' value { placeholder: 'U' } } "
           "} ret { key: 'b' value: 'n:y:0' }",
           "attr 'U'"},
          {"node_def { name: 'n' op: 'Cast' input: 'a' attr { key: 'SrcT' value { type: DT_FLOAT } "
           "} attr { key: 'DstT' value { type: DT_INT32 } } } ret { key: 'b' value: 'n:y:0' }",
           "is int32 but the signature says float"},
          {neg + "ret { key: 'b' value: 'n:y:0' } control_ret { key: 'c' value: 'gone' }",
           "'gone'"}}) {
    const absl::Status status = run(body);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(status.message(), AllOf(HasSubstr(words), HasSubstr("'F'")));
  }
}

TEST_F(FunctionsTest, FunctionsOfOneNameMustBeEqual) {
  DefineSquare("f");
  proto::GraphDef same;
  ExportGraphDef(g_, &same);
  EXPECT_TRUE(ImportGraphDef(g_, same).ok());
  Graph other;
  Define(
      "f", {DT_FLOAT}, [](Graph&, const Outputs& x) { return Outputs{Negative(x[0])}; }, &other);
  proto::GraphDef different;
  ExportGraphDef(other, &different);
  EXPECT_THAT(ImportGraphDef(g_, different).status().message(),
              HasSubstr("a different function with the same name already exists"));
}

TEST_F(FunctionsTest, ExportedFunctionsAreImported) {
  const FunctionRef square = DefineSquare();
  Call(g_, square, {Const(g_, 4.f)}, "y");
  Graph again;
  proto::GraphDef def;
  ExportGraphDef(g_, &def);
  ASSERT_TRUE(ImportGraphDef(again, def).ok());
  EXPECT_EQ(SerializeGraph(again), SerializeGraph(g_));
  Session session = *Session::Create(again);
  EXPECT_EQ((*session.Run({*again.FindOutput("y:0")}))[0].scalar<float>(), 16);
}

// ---- small ops

TEST_F(FunctionsTest, ARemoteCallGoesToALocalDevice) {
  const FunctionRef square = DefineSquare();
  const auto call = [&](const char* target) {
    Node* node = AddNode("RemoteCall", {Const(g_, target), Outputs{Const(g_, 3.f)}},
                         {{"Tout", DataTypes{DT_FLOAT}}, {"f", square}});
    return Try({node->output(0)});
  };
  EXPECT_EQ((*call("/job:localhost/replica:0/task:0/device:CPU:0"))[0].scalar<float>(), 9);
  EXPECT_EQ((*call("/cpu:0"))[0].scalar<float>(), 9);
  EXPECT_EQ(call("/job:worker/task:3/cpu:0").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(FunctionsTest, FakeParametersAreZerosAndDevicesHaveIndices) {
  const Output fake =
      AddNode(g_, "FakeParam", {}, {{"dtype", DT_FLOAT}, {"shape", Shape({2, -1})}})->output(0);
  EXPECT_EQ(Run({fake})[0].shape(), Shape({2, 0}));
  const auto index = [&](const std::vector<std::string>& names) {
    return Run({AddNode(g_, "DeviceIndex", {}, {{"device_names", names}})->output(0)})[0]
        .scalar<int32_t>();
  };
  EXPECT_EQ(index({"GPU", "CPU"}), 1);
  EXPECT_EQ(index({"TPU"}), 1);
  EXPECT_EQ(index({"CPU"}), 0);
  const Output is_true = AddOp("ToBool", {Const(g_, {1, 2, 3})});
  EXPECT_TRUE(Run({is_true})[0].scalar<bool>());
}

}  // namespace
}  // namespace weir
