// Gradients through loops and branches, compared with central differences.

#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/graph_io.h"
#include "weir/ops/containers/tensor_array.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/proto/graph.pb.h"
#include "weir/session/session.h"
#include "weir/tests/session/lib/gradient_check.h"
#include "weir/tests/session/lib/test_models.h"

// Gradients checked to order 1 by tests: Enter, Exit, Merge, NextIteration, Switch.

namespace weir {
namespace {

using ::testing::HasSubstr;

class LoopGradientsTest : public GradientCheckTest {
 protected:
  Outputs Repeat(int times, const LoopBodyFn& body, const Outputs& vars,
                 WhileOptions options = {}) {
    const Outputs out = RepeatedBody(g_, Const(g_, times), body, vars, options);
    return out.empty() ? Outputs(vars.size()) : out;
  }
};

TEST_F(LoopGradientsTest, OfAPower) {
  Check({{3}, {3}}, [&](const Outputs& x) {
    return Repeat(4, [&](const Outputs& v) { return Outputs{v[0] * x[1]}; }, {x[0]})[0];
  });
}

TEST_F(LoopGradientsTest, OfALoopThatIsNotEntered) {
  Check({{3}}, [&](const Outputs& x) {
    return Repeat(0, [&](const Outputs& v) { return Outputs{Sin(v[0])}; }, {x[0]})[0];
  });
}

TEST_F(LoopGradientsTest, OfShapesKnownOnlyWhenRun) {
  const auto program = [&](const Outputs& x) {
    return Repeat(3,
                  [&](const Outputs& v) {
                    return Outputs{Tanh(v[0]) * x[1], v[1] + v[0]};
                  },
                  {x[0], x[0]})[1];
  };
  Check({{2, 3}, {3}}, program, {.static_shapes = false});
}

TEST_F(LoopGradientsTest, OfVariablesThatChangePlaces) {
  Check({{2}, {2}, {2}}, [&](const Outputs& x) {
    const Outputs r = Repeat(
        5,
        [](const Outputs& v) {
          return Outputs{v[1], v[2] * v[0], Sin(v[0])};
        },
        x);
    return r[0] * r[1];
  });
}

// Only one of two variables is used afterward; one is replaced in every iteration.
TEST_F(LoopGradientsTest, OfVariablesThatDoNotDependOnThemselves) {
  Check({{2}, {2}}, [&](const Outputs& x) {
    return Repeat(
        3,
        [&](const Outputs& v) {
          return Outputs{v[0] * v[1], x[1] * x[1]};
        },
        x)[0];
  });
}

TEST_F(LoopGradientsTest, OfNestedLoops) {
  Check({{2}, {2}}, [&](const Outputs& x) {
    return Repeat(
        3,
        [&](const Outputs& v) {
          const Outputs inner =
              Repeat(2, [&](const Outputs& w) { return Outputs{Sin(w[0]) * v[0] * x[1]}; }, {v[0]});
          return Outputs{inner[0] + v[0]};
        },
        {x[0]})[0];
  });
}

// The inner loop runs one more iteration in each iteration of the outer one.
TEST_F(LoopGradientsTest, OfNestedLoopsOfDifferentLengths) {
  Check({{2}}, [&](const Outputs& x) {
    const Outputs r = WhileLoop([&](const Outputs& v) { return v[0] < 4; },
                                [&](const Outputs& v) {
                                  const Outputs inner =
                                      WhileLoop([&](const Outputs& w) { return w[0] < v[0]; },
                                                [&](const Outputs& w) {
                                                  return Outputs{w[0] + 1, Cos(w[1]) * v[1]};
                                                },
                                                {Const(g_, 0), v[1]});
                                  return Outputs{v[0] + 1, inner[1]};
                                },
                                {Const(g_, 0), x[0]});
    return r[1];
  });
}

TEST_F(LoopGradientsTest, OfBranches) {
  for (const bool side : {false, true}) {
    Check({{3}, {3}}, [&](const Outputs& x) {
      return Cond(
          Const(g_, side), [&] { return x[0] * x[1]; }, [&] { return Sin(x[0]) + x[1]; });
    });
  }
}

TEST_F(LoopGradientsTest, OfBranchesInALoop) {
  Check({{}, {}}, [&](const Outputs& x) {
    return Repeat(5,
                  [&](const Outputs& v) {
                    return Outputs{Cond(
                        v[0] > 0.5, [&] { return Sin(v[0]) * x[1]; },
                        [&] { return Exp(v[0]) + v[0] * v[0]; })};
                  },
                  {x[0]})[0];
  });
}

TEST_F(LoopGradientsTest, OfBranchesInBranchesInALoop) {
  Check({{}, {}}, [&](const Outputs& x) {
    return Repeat(6,
                  [&](const Outputs& v) {
                    return Outputs{Cond(
                        v[0] > 0.5,
                        [&] {
                          return Cond(
                              v[0] > 0.8, [&] { return v[0] * x[1]; },
                              [&] { return Cos(v[0]) * v[0]; });
                        },
                        [&] { return Exp(v[0]) + x[1]; })};
                  },
                  {x[0]})[0];
  });
}

TEST_F(LoopGradientsTest, OfALoopInABranch) {
  for (const bool side : {false, true}) {
    Check({{2}}, [&](const Outputs& x) {
      return Cond(
          Const(g_, side),
          [&] {
            return Repeat(3, [&](const Outputs& v) { return Outputs{Sin(v[0]) * x[0]}; },
                          {x[0]})[0];
          },
          [&] { return x[0] * 3.0; });
    });
  }
}

TEST_F(LoopGradientsTest, OfALoopInABranchInALoop) {
  Check({{}}, [&](const Outputs& x) {
    return Repeat(4,
                  [&](const Outputs& v) {
                    return Outputs{Cond(
                        v[0] > 0.5,
                        [&] {
                          return Repeat(2, [&](const Outputs& w) { return Outputs{w[0] * v[0]}; },
                                        {v[0]})[0];
                        },
                        [&] { return v[0] + 0.4; })};
                  },
                  {x[0]})[0];
  });
}

TEST_F(LoopGradientsTest, OfRowsThatAreGathered) {
  Check({{4, 2}}, [&](const Outputs& x) {
    return Repeat(3,
                  [&](const Outputs& v) {
                    return Outputs{v[0] * Gather(x[0], Const(g_, {1, 3, 1}))};
                  },
                  {Ones(g_, {3, 2}, DT_DOUBLE)})[0];
  });
}

TEST_F(LoopGradientsTest, OfVariables) {
  const Variable w = MakeVariable(g_, Tensor::Vector<double>({1.5, -0.5}), {.name = "w"});
  const Output y = Repeat(3, [&](const Outputs& v) { return Outputs{v[0] * w.value()}; },
                          {Ones(g_, {2}, DT_DOUBLE)})[0];
  const Outputs grad = DenseGradients({y}, {w});
  const Operation init = GlobalVariablesInitializer(g_);
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  Session session = *Session::Create(g_);
  ASSERT_TRUE(session.Run(Feeds{}, Outputs{}, {init}).ok());
  const auto out = session.Run(Feeds{}, grad);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_DOUBLE_EQ((*out)[0].flat<double>()[0], 3 * 1.5 * 1.5);
  EXPECT_DOUBLE_EQ((*out)[0].flat<double>()[1], 3 * 0.5 * 0.5);
}

TEST_F(LoopGradientsTest, OfTensorArrayElements) {
  Check({{4, 2}, {2}}, [&](const Outputs& x) {
    const TensorArray rows = TensorArray(g_, DT_DOUBLE, 4).Unstack(x[0]);
    const TensorArray out(g_, DT_DOUBLE, 4);
    const Outputs r =
        WhileLoop([](const Outputs& v) { return v[0] < 4; },
                  [&](const Outputs& v) {
                    const Output b = Sin(v[1] * rows.Read(v[0])) + x[1];
                    return Outputs{v[0] + 1, b, out.WithFlow(v[2]).Write(v[0], b).flow()};
                  },
                  {Const(g_, 0), x[1], out.flow()});
    return out.WithFlow(r[2]).Stack();
  });
}

TEST_F(LoopGradientsTest, OfTensorArraysThatAreSplitAndJoined) {
  Check({{5, 2}}, [&](const Outputs& x) {
    const TensorArray parts =
        TensorArray(g_, DT_DOUBLE, 3, {.infer_shape = false}).Split(x[0], {2, 0, 3});
    return Exp(parts.Concat());
  });
}

// A value that is read twice has the sum of both gradients; a value that is not read has zeros.
TEST_F(LoopGradientsTest, OfElementsReadTwiceOrNever) {
  Check({{3, 2}}, [&](const Outputs& x) {
    const TensorArray a = TensorArray(g_, DT_DOUBLE, 3, {.clear_after_read = false}).Unstack(x[0]);
    return a.Read(1) * Sin(a.Read(1)) + a.Gather({2, 1});
  });
}

TEST_F(LoopGradientsTest, OfListsOfTensors) {
  Check({{3, 2}, {2}}, [&](const Outputs& x) {
    const Output shape = Const(g_, {2});
    Output list = AddOp("TensorListFromTensor", {x[0], shape});
    list = AddOp("TensorListSetItem", {list, Const(g_, 1), Sin(x[1])});
    list = AddOp("TensorListPushBack", {list, x[1]});
    const Output item =
        AddOp("TensorListGetItem", {list, Const(g_, 2), shape}, {{"element_dtype", DT_DOUBLE}});
    Node* pop = AddNode("TensorListPopBack", {list, shape}, {{"element_dtype", DT_DOUBLE}});
    const Output rest =
        AddOp("TensorListStack", {Output(pop, 0), shape}, {{"element_dtype", DT_DOUBLE}});
    return rest * item * Output(pop, 1);
  });
}

// Loops and branches of an imported graph are recognized from its nodes.
TEST_F(LoopGradientsTest, OfImportedLoops) {
  const Output x = Placeholder(g_, DT_DOUBLE, {}, "x"), w = Placeholder(g_, DT_DOUBLE, {}, "w");
  const Output y = Repeat(
      4,
      [&](const Outputs& v) {
        const Outputs inner =
            Repeat(2, [&](const Outputs& u) { return Outputs{Sin(u[0]) * v[0] * w}; }, {v[0]});
        return Outputs{Cond(
            v[0] > 0.2, [&] { return inner[0] * w; }, [&] { return Exp(v[0]) + v[0] * inner[0]; })};
      },
      {x})[0];
  Identity(y, "y");
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  proto::GraphDef def;
  ExportGraphDef(g_, &def);
  Graph read;
  const auto imported = ImportGraphDef(read, def);
  ASSERT_TRUE(imported.ok()) << imported.status();
  const auto grads_of = [](Graph& g) {
    const Outputs xs = {*g.FindOutput("x"), *g.FindOutput("w")};
    const Outputs grads = DenseGradients({*g.FindOutput("y")}, xs);
    EXPECT_TRUE(g.status().ok()) << g.status();
    Session session = *Session::Create(g);
    const auto out =
        session.Run({{xs[0], Tensor::Scalar(0.7)}, {xs[1], Tensor::Scalar(1.3)}}, grads);
    EXPECT_TRUE(out.ok()) << out.status();
    std::vector<double> values;
    for (const Tensor& t : out.ok() ? *out : Tensors()) values.push_back(t.scalar<double>());
    return values;
  };
  const std::vector<double> built = grads_of(g_), found = grads_of(read);
  ASSERT_EQ(built.size(), 2u);
  ASSERT_EQ(found.size(), 2u);
  for (int i = 0; i < 2; ++i) EXPECT_DOUBLE_EQ(found[i], built[i]);
}

// Each gradient call has its own backward loop.
TEST_F(LoopGradientsTest, OfSeveralCalls) {
  const Output x = Const<double>(g_, 3.0), w = Const<double>(g_, 2.0);
  const TensorArray out(g_, DT_DOUBLE, 2);
  const Outputs r =
      WhileLoop([](const Outputs& v) { return v[0] < 2; },
                [&](const Outputs& v) {
                  const Output next = v[1] * w;
                  return Outputs{v[0] + 1, next, out.WithFlow(v[2]).Write(v[0], next).flow()};
                },
                {Const(g_, 0), x, out.flow()});
  const Output y = out.WithFlow(r[2]).Stack();
  const Outputs first = DenseGradients({y}, {x, w});
  const Outputs second = DenseGradients({y * y, r[1]}, {x, w});
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  Session session = *Session::Create(g_);
  const auto values = session.Run({first[0], first[1], second[0], second[1]});
  ASSERT_TRUE(values.ok()) << values.status();
  const std::vector<double> want = {2 + 4,  // of x w + x w^2
                                    3 + 12,
                                    2 * 3 * 4 + 2 * 3 * 16 + 4,  // of x^2 w^2 + x^2 w^4 + x w^2
                                    2 * 9 * 2 + 4 * 9 * 8 + 2 * 3 * 2};
  for (int i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ((*values)[i].scalar<double>(), want[i]) << i;
}

TEST_F(LoopGradientsTest, RejectsSecondOrderGradients) {
  const Output x = Placeholder(g_, DT_FLOAT, {});
  const Output y = Repeat(3, [&](const Outputs& v) { return Outputs{v[0] * v[0]}; }, {x})[0];
  const Outputs first = DenseGradients({y * y}, {x});
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  Gradients(first, {x});
  EXPECT_TRUE(absl::IsUnimplemented(g_.status())) << g_.status();
  EXPECT_THAT(g_.TakeStatus().message(), HasSubstr("Second-order gradient for while loops"));
}

}  // namespace
}  // namespace weir
