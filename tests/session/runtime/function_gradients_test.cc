// Gradients through functions that a graph uses as calls, branches and loop bodies.

#include <cmath>

#include "gmock/gmock.h"
#include "weir/core/io/graph_io.h"
#include "weir/ops/framework/function.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/lib/math.h"
#include "weir/proto/graph.pb.h"
#include "weir/tests/session/lib/gradient_check.h"
#include "weir/tests/session/lib/test_functions.h"

// Gradients checked to order 1 by tests: Case, If, StatefulPartitionedCall, While.

// Gradients checked to order 2 by tests: For, StatelessCase, StatelessIf, StatelessWhile,
// SymbolicGradient.

namespace weir {
namespace {

using ::testing::HasSubstr;

using Builder = std::function<Outputs(Graph&, const Outputs&)>;

class FunctionGradientsTest : public GradientCheckTest {
 protected:
  FunctionRef Define(const DataTypes& types, const Builder& build) {
    return DefineIn(g_, types, build);
  }
  FunctionRef DefineIn(Graph& graph, const DataTypes& types, const Builder& build) {
    return DefineFrom(graph, absl::StrCat("f", count_++), types, build);
  }
  // vars = body(vars), `times` times.
  Outputs Repeat(Graph& graph, int times, const Outputs& vars, const Builder& body) {
    DataTypes types = {DT_INT32};
    for (const Output& v : vars) types.push_back(v.dtype());
    const FunctionRef below =
        DefineIn(graph, types, [&](Graph&, const Outputs& v) { return Outputs{v[0] < times}; });
    const FunctionRef next = DefineIn(graph, types, [&](Graph& b, const Outputs& v) {
      Outputs all = {v[0] + 1};
      for (const Output& o : body(b, {v.begin() + 1, v.end()})) all.push_back(o);
      return all;
    });
    Outputs all = {Const(graph, 0)};
    all.insert(all.end(), vars.begin(), vars.end());
    const Outputs out = FunctionalWhile(all, below, next);
    return out.empty() ? Outputs(vars.size()) : Outputs(out.begin() + 1, out.end());
  }

  int count_ = 0;
};

TEST_F(FunctionGradientsTest, OfAPower) {
  for (const int times : {0, 1, 4}) {
    Check({{3}, {3}},
          [&](const Outputs& x) {
            return Repeat(g_, times, x, [](Graph&, const Outputs& v) {
              return Outputs{v[0] * v[1], v[1]};
            })[0];
          },
          {.order = 2});
  }
}

TEST_F(FunctionGradientsTest, OfShapesKnownOnlyWhenRun) {
  Check({{2, 3}, {3}},
        [&](const Outputs& x) {
          return Repeat(g_, 3, {x[0], x[0], x[1]}, [](Graph&, const Outputs& v) {
            return Outputs{Tanh(v[0]) * v[2], v[1] + v[0], v[2]};
          })[1];
        },
        {.static_shapes = false, .order = 2});
}

TEST_F(FunctionGradientsTest, OfSwappedLoopVariables) {
  Check({{2}, {2}, {2}},
        [&](const Outputs& x) {
          const Outputs r = Repeat(g_, 5, x, [](Graph&, const Outputs& v) {
            return Outputs{v[1], v[2] * v[0], Sin(v[0])};
          });
          return r[0] * r[1];
        },
        {.order = 2});
}

TEST_F(FunctionGradientsTest, OfGrowingLoopVariables) {
  Check({{1, 2}, {2}},
        [&](const Outputs& x) {
          return Repeat(g_, 3, x, [](Graph&, const Outputs& v) {
            return Outputs{Concat({v[0] * v[1], Sin(v[0])}, 0), v[1]};
          })[0];
        },
        {.static_shapes = false});
}

TEST_F(FunctionGradientsTest, OfNestedLoops) {
  Check({{2}, {2}},
        [&](const Outputs& x) {
          return Repeat(g_, 3, x, [&](Graph& body, const Outputs& v) {
            const Outputs inner = Repeat(body, 2, {v[0], v[0], v[1]}, [](Graph&, const Outputs& w) {
              return Outputs{Sin(w[0]) * w[1] * w[2], w[1], w[2]};
            });
            return Outputs{inner[0] + v[0], v[1]};
          })[0];
        },
        {.order = 2});
}

TEST_F(FunctionGradientsTest, OfBranchesInLoopsAndLoopsInBranches) {
  Check({{}, {}},
        [&](const Outputs& x) {
          const DataTypes types = {DT_DOUBLE, DT_DOUBLE};
          const FunctionRef wave =
              Define(types, [](Graph&, const Outputs& v) { return Outputs{Sin(v[0]) * v[1]}; });
          const FunctionRef loop = Define(types, [&](Graph& body, const Outputs& v) {
            return Outputs{Repeat(body, 2, {v[0], v[1]}, [](Graph&, const Outputs& w) {
              return Outputs{w[0] * w[1] + 0.4, w[1]};
            })[0]};
          });
          return Repeat(g_, 4, x, [&](Graph&, const Outputs& v) {
            const Output taken = FunctionalIf(v[0] > 0.5, {v[0], v[1]}, wave, loop)[0];
            const Output index = Cast(v[0] > 0.3, DT_INT32);
            return Outputs{FunctionalCase(index, {taken, v[1]}, {loop, wave})[0], v[1]};
          })[0];
        },
        {.order = 2});
}

// A map over rows as TensorFlow 2 writes it: the loop reads the rows from a tensor list, and adds
// the results to another one.
TEST_F(FunctionGradientsTest, OfRowsInTensorLists) {
  Check({{3, 2}, {2}},
        [&](const Outputs& x) {
          const Output shape = Const(g_, {2});
          const Output rows = AddOp("TensorListFromTensor", {x[0], shape});
          const Output none =
              AddOp("TensorListReserve", {shape, Const(g_, 3)}, {{"element_dtype", DT_DOUBLE}});
          const Outputs r = Repeat(
              g_, 3, {Const(g_, 0), rows, none, x[1], x[1]}, [](Graph& body, const Outputs& v) {
                const Output row = AddOp("TensorListGetItem", {v[1], v[0], Const(body, {2})},
                                         {{"element_dtype", DT_DOUBLE}});
                const Output state = Sin(row * v[3]) + v[4];
                return Outputs{v[0] + 1, v[1], AddOp("TensorListSetItem", {v[2], v[0], state}),
                               state, v[4]};
              });
          return AddOp("TensorListStack", {r[2], shape}, {{"element_dtype", DT_DOUBLE}}) * r[3];
        },
        {.order = 2});
}

TEST_F(FunctionGradientsTest, OfCountedLoops) {
  const struct {
    int start, limit, delta;
  } cases[] = {{0, 4, 1}, {0, 5, 2}, {4, 0, -1}, {5, 0, -3}, {2, 2, 1}};
  for (const auto& c : cases) {
    Check({{2}, {2}},
          [&](const Outputs& x) {
            const FunctionRef body =
                Define({DT_INT32, DT_DOUBLE, DT_DOUBLE}, [](Graph&, const Outputs& v) {
                  return Outputs{Sin(v[1]) * v[2] + Cast(v[0], DT_DOUBLE) * v[1], v[2]};
                });
            return FunctionalFor(Const(g_, c.start), Const(g_, c.limit), Const(g_, c.delta), x,
                                 body)[0];
          },
          {.order = 2});
  }
}

TEST_F(FunctionGradientsTest, OfFunctionalLoopsInV1Loops) {
  Check({{2}, {2}}, [&](const Outputs& x) {
    const Outputs r = WhileLoop(
        [](const Outputs& v) { return v[0] < 3; },
        [&](const Outputs& v) {
          const Outputs inner = Repeat(g_, 2, {v[1], x[1]}, [](Graph&, const Outputs& w) {
            return Outputs{Sin(w[0]) * w[1], w[1]};
          });
          return Outputs{v[0] + 1, inner[0] + v[1]};
        },
        {Const(g_, 0), x[0]}, {.shape_invariants = std::vector<Shape>{{}, Shape::UnknownRank()}});
    return r[1];
  });
}

// d(x w^3) and d(x w^6) by w. The handle of w is a loop-carried value, in the second case of nested
// loops and a call, none of which knows the variable when its gradient is built.
TEST_F(FunctionGradientsTest, OfVariables) {
  const Variable w = MakeVariable(g_, Tensor::Scalar(1.5), {.name = "w"});
  const auto times_w = [](Graph&, const Outputs& v) {
    return Outputs{v[0] * AddOp("ReadVariableOp", {v[1]}, {{"dtype", DT_DOUBLE}}), v[1]};
  };
  const Output x = Const<double>(g_, 2.);
  const Output once = Repeat(g_, 3, {x, w.handle()}, times_w)[0];
  const Output twice = Repeat(g_, 2, {x, w.handle()}, [&](Graph& body, const Outputs& v) {
    const FunctionRef call = DefineIn(body, {DT_DOUBLE, DT_RESOURCE}, times_w);
    const Outputs inner = Repeat(body, 3, v, [&](Graph& in, const Outputs& u) {
      return Outputs{Call(in, call, u)[0], u[1]};
    });
    return Outputs{inner[0], v[1]};
  })[0];
  const FunctionRef read = Define({DT_DOUBLE, DT_RESOURCE}, [&](Graph& body, const Outputs& v) {
    return Outputs{times_w(body, v)[0]};
  });
  const Output chosen = FunctionalIf(Const(g_, true), {x, w.handle()}, read, read)[0] +
                        FunctionalCase(Const(g_, 1), {x, w.handle()}, {read, read})[0];
  const Outputs grads = DenseGradients({once}, {w}), more = DenseGradients({twice}, {w});
  const Outputs of_choice = DenseGradients({chosen}, {w});
  const Operation init = GlobalVariablesInitializer(g_);
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  Session session = *Session::Create(g_);
  ASSERT_TRUE(session.Run(init).ok());
  const auto out = session.Run({once, twice, grads[0], more[0], of_choice[0]});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_DOUBLE_EQ((*out)[0].scalar<double>(), 2 * std::pow(1.5, 3));
  EXPECT_DOUBLE_EQ((*out)[1].scalar<double>(), 2 * std::pow(1.5, 6));
  EXPECT_DOUBLE_EQ((*out)[2].scalar<double>(), 6 * std::pow(1.5, 2));
  EXPECT_NEAR((*out)[3].scalar<double>(), 12 * std::pow(1.5, 5), 1e-12);
  EXPECT_DOUBLE_EQ((*out)[4].scalar<double>(), 4);
}

// Strings and handles of tables are loop-carried without a gradient.
TEST_F(FunctionGradientsTest, IgnoreValuesWithoutGradients) {
  Check({{2}}, [&](const Outputs& x) {
    const Output table = Output(AddNode(g_, "MutableHashTableV2", {},
                                        {{"key_dtype", DT_INT64}, {"value_dtype", DT_DOUBLE}}));
    return Repeat(g_, 3, {x[0], Const(g_, "a"), table}, [](Graph& body, const Outputs& v) {
      return Outputs{Sin(v[0]), AddOp("StringJoin", {Outputs{v[1], Const(body, "b")}}), v[2]};
    })[0];
  });
}

TEST_F(FunctionGradientsTest, OfImportedLoops) {
  const Output x = Placeholder(g_, DT_DOUBLE, {}, "x");
  const Output y = Repeat(g_, 3, {x}, [&](Graph& body, const Outputs& v) {
    return Outputs{Repeat(body, 2, {v[0]},
                          [](Graph&, const Outputs& w) { return Outputs{Sin(w[0]) * w[0]}; })[0]};
  })[0];
  Identity(y, "y");
  Identity(DenseGradients({y}, {x})[0], "dx");
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  proto::GraphDef def;
  ExportGraphDef(g_, &def);
  Graph read;
  ASSERT_TRUE(ImportGraphDef(read, def).ok());
  const Output again = *read.FindOutput("x");
  const Output dx = DenseGradients({*read.FindOutput("y")}, {again})[0];
  ASSERT_TRUE(read.status().ok()) << read.status();
  Session session = *Session::Create(read);
  const auto out = session.Run({{again, Tensor::Scalar(1.3)}}, {dx, *read.FindOutput("dx")});
  ASSERT_TRUE(out.ok()) << out.status();
  double value = 1.3, slope = 1;
  for (int i = 0; i < 6; ++i) {
    slope *= std::cos(value) * value + std::sin(value);
    value *= std::sin(value);
  }
  EXPECT_NEAR((*out)[0].scalar<double>(), slope, 1e-12);
  EXPECT_NEAR((*out)[1].scalar<double>(), slope, 1e-12);
}

TEST_F(FunctionGradientsTest, AnInvalidBodyIsAnError) {
  const Output x = Const<double>(g_, 1.);
  const FunctionRef two = Define({DT_DOUBLE}, [](Graph&, const Outputs& v) {
    return Outputs{v[0], v[0]};
  });
  const FunctionRef cond =
      Define({DT_DOUBLE}, [](Graph&, const Outputs& v) { return Outputs{v[0] < 3.}; });
  DenseGradients(FunctionalWhile({x}, cond, two), {x});
  EXPECT_THAT(g_.TakeStatus().message(), HasSubstr("returns 2 results"));
}

}  // namespace
}  // namespace weir
