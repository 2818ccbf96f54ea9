#include "weir/ops/framework/gradients.h"

#include <chrono>
#include <cmath>
#include <map>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/state.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/math/clip.h"
#include "weir/ops/train/moving_averages.h"
#include "weir/ops/train/schedules.h"
#include "weir/tests/evaluate.h"

namespace weir {
namespace {

std::vector<float> Floats(const Graph& g, const Output& fetch, ResourceMap* resources = nullptr) {
  EXPECT_TRUE(g.status().ok()) << g.status();
  const absl::StatusOr<Tensors> result = Evaluate(g, {fetch}, resources);
  if (!result.ok()) {
    ADD_FAILURE() << result.status();
    return {};
  }
  const auto flat = (*result)[0].flat<float>();
  return {flat.begin(), flat.end()};
}

using V = std::vector<float>;

TEST(Gradients, OfAProductAreTheOtherFactor) {
  Graph g;
  const Output x = Const<float>(g, {1, 2, 3}), y = Const<float>(g, {4, 5, 6});
  const Grads grads = Gradients({x * y}, {x, y});
  EXPECT_EQ(Floats(g, grads[0].dense()), (V{4, 5, 6}));
  EXPECT_EQ(Floats(g, grads[1].dense()), (V{1, 2, 3}));
}

TEST(Gradients, AreBuiltInTheirScopeWithTensorFlowsNames) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {2}, "x");
  const Output y = Multiply(x, x, "y");
  const Grads first = Gradients({y}, {x});
  EXPECT_NE(g.FindNode("gradients/Shape"), nullptr);
  EXPECT_NE(g.FindNode("gradients/grad_ys_0/Const"), nullptr);
  ASSERT_NE(g.FindNode("gradients/grad_ys_0"), nullptr);
  EXPECT_EQ(g.FindNode("gradients/grad_ys_0")->op_name(), "Fill");
  EXPECT_NE(g.FindNode("gradients/y_grad/Mul"), nullptr);
  ASSERT_EQ(first[0].dense().node->name(), "gradients/AddN");
  EXPECT_EQ(first[0].dense().node->colocations(),
            (std::vector<std::string>{"gradients/y_grad/Mul"}));
  EXPECT_EQ(Gradients({y}, {x})[0].dense().node->name(), "gradients_1/AddN");
}

TEST(Gradients, OfSegmentsNameTheirOnesLikeTensorFlow) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {-1, 3}, "x"), ids = Placeholder(g, DT_INT32, {-1});
  const Output mean = SegmentMean(x, ids), sum = UnsortedSegmentSum(x, ids, Const<int32_t>(g, 4));
  Gradients({mean, sum}, {x});
  ASSERT_TRUE(g.status().ok()) << g.status();
  for (const char* name :
       {"SegmentMean_grad/ones", "SegmentMean_grad/ones/Const", "SegmentMean_grad/ones_1",
        "SegmentMean_grad/ones_1/Const", "UnsortedSegmentSum_grad/ones/packed",
        "UnsortedSegmentSum_grad/ones", "UnsortedSegmentSum_grad/ones/Const"}) {
    EXPECT_NE(g.FindNode(absl::StrCat("gradients/", name)), nullptr) << name;
  }
}

TEST(Gradients, OfAnXThatYDoesNotDependOnAreNone) {
  Graph g;
  const Output x = Const(g, 1.f), other = Const<float>(g, {1, 2});
  EXPECT_TRUE(Gradients({x * x}, {other})[0].none());
  const Grads zeros =
      Gradients({x * x}, {other}, {.unconnected_gradients = UnconnectedGradients::kZero});
  EXPECT_EQ(Floats(g, zeros[0].dense()), (V{0, 0}));
}

TEST(Gradients, StopAtIntegersAndAtStopGradient) {
  Graph g;
  const Output x = Const(g, 3.f);
  const Output through_int = Cast(Cast(x, DT_INT32), DT_FLOAT);
  EXPECT_TRUE(Gradients({through_int}, {x})[0].none());
  EXPECT_TRUE(Gradients({StopGradient(x * x)}, {x})[0].none());
  EXPECT_EQ(Floats(g, Gradients({StopGradient(x) * x}, {x})[0].dense()), (V{3}));
}

TEST(Gradients, TreatStopGradientsAsConstants) {
  Graph g;
  const Output x = Const(g, 2.f);
  const Output square = x * x;
  const Output y = square * x;
  EXPECT_EQ(Floats(g, Gradients({y}, {x})[0].dense()), (V{12}));
  EXPECT_EQ(Floats(g, Gradients({y}, {x}, {.stop_gradients = {square}})[0].dense()), (V{4}));
}

TEST(Gradients, ReachAnXThatDependsOnAnotherX) {
  Graph g;
  const Output x = Const(g, 3.f);
  const Output middle = x * x;
  const Output y = 2.f * middle;
  const Grads grads = Gradients({y}, {x, middle});
  EXPECT_EQ(Floats(g, grads[0].dense()), (V{12}));
  EXPECT_EQ(Floats(g, grads[1].dense()), (V{2}));
}

TEST(Gradients, SumOverSeveralYsWeightedByGradYs) {
  Graph g;
  const Output x = Const(g, 2.f);
  const Output a = 3.f * x, b = x * x;
  EXPECT_EQ(Floats(g, Gradients({a, b}, {x})[0].dense()), (V{7}));
  const Grads weighted = Gradients({a, b}, {x}, {.grad_ys = {Grad(Const(g, 10.f)), Grad()}});
  EXPECT_EQ(Floats(g, weighted[0].dense()), (V{34}));
}

TEST(Gradients, OfGradientsAreSecondDerivatives) {
  Graph g;
  const Output x = Const(g, 0.5f);
  const Output first = Gradients({x * x * x}, {x})[0].dense();
  const Output second = Gradients({first}, {x})[0].dense();
  EXPECT_NEAR(Floats(g, second)[0], 3.f, 1e-6f);
  const Output tanh2 = Gradients({Gradients({Tanh(x)}, {x})[0].dense()}, {x})[0].dense();
  const double t = std::tanh(0.5);
  EXPECT_NEAR(Floats(g, tanh2)[0], -2 * t * (1 - t * t), 1e-6);
}

TEST(Gradients, AreZerosForUnusedOutputs) {
  Graph g;
  const Output x = Const<float>(g, {2, 3}, {1, 2, 3, 4, 5, 6});
  const Outputs parts = Split(x, 3, 1);
  const Grads grads = Gradients({Square(parts[1])}, {x});
  EXPECT_EQ(Floats(g, grads[0].dense()), (V{0, 4, 0, 0, 10, 0}));
}

TEST(Gradients, CanBeAddedPairwiseAndGated) {
  Graph g;
  const Output x = Const(g, 2.f, "x");
  const Output y = x * x * x + x + x;
  const Grads grads =
      Gradients({y}, {x}, {.gate_gradients = true, .aggregation = Aggregation::kTree});
  EXPECT_EQ(Floats(g, grads[0].dense()), (V{14}));
  EXPECT_NE(g.FindNode("gradients/x_gradient_sum/AddN_1"), nullptr);
  EXPECT_NE(g.FindNode("gradients/mul_grad/tuple/group_deps"), nullptr);
}

TEST(Gradients, AreColocatedWithTheirOpsOnRequest) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {2}, "x");
  const Output y = Multiply(x, x, "y");
  Gradients({y}, {x}, {.colocate_gradients_with_ops = true});
  ASSERT_TRUE(g.status().ok()) << g.status();
  for (const char* name : {"gradients/Shape", "gradients/grad_ys_0", "gradients/y_grad/Mul"}) {
    ASSERT_NE(g.FindNode(name), nullptr) << name;
    EXPECT_EQ(g.FindNode(name)->colocations(), (std::vector<std::string>{"y"})) << name;
  }
}

// ---- variables

TEST(Gradients, FlowThroughEveryReadOfAVariable) {
  for (const bool resource : {false, true}) {
    Graph g(GraphOptions{.use_resource = resource});
    const Variable w = GetVariable(g, "w", {.initializer = Initializer({1.0, 2.0})});
    const Output y = w.value() * w.value() + 3.f * w.read_value();
    const Grads grads = Gradients({y}, {w});
    const Operation init = GlobalVariablesInitializer(g);
    ResourceMap resources;
    ASSERT_TRUE(EvaluateTargets(g, {init}, &resources).ok());
    EXPECT_EQ(Floats(g, grads[0].dense(), &resources), (V{5, 7}));
  }
}

TEST(Gradients, AcceptOneReadOfAVariable) {
  Graph g;
  const Variable w = GetVariable(g, "w", {.initializer = Initializer({2.0})});
  const Output read = w.value(), other = w.value();
  const Grads grads = Gradients({read * other}, {read});
  const Operation init = GlobalVariablesInitializer(g);
  ResourceMap resources;
  ASSERT_TRUE(EvaluateTargets(g, {init}, &resources).ok());
  EXPECT_EQ(Floats(g, grads[0].dense(), &resources), (V{2}));
}

TEST(Gradients, OfAGatheredVariableAreIndexedSlices) {
  for (const bool resource : {false, true}) {
    Graph g(GraphOptions{.use_resource = resource});
    const Variable w = GetVariable(
        g, "w", {.initializer = Initializer(Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6}))});
    const Output a = w.SparseRead(Const<int32_t>(g, {2, 0})),
                 b = w.SparseRead(Const<int32_t>(g, {2}));
    const Operation init = GlobalVariablesInitializer(g);
    const Grads grads = Gradients({a, b * b}, {w});
    ASSERT_TRUE(g.status().ok()) << g.status();
    ASSERT_TRUE(grads[0].is_slices());
    const Output dense = DenseGradient(grads[0]);
    ResourceMap resources;
    ASSERT_TRUE(EvaluateTargets(g, {init}, &resources).ok());
    EXPECT_EQ(Floats(g, dense, &resources), (V{1, 1, 0, 0, 11, 13}));
  }
}

TEST(Gradients, OfSparseSegmentsAreIndexedSlicesOnRequest) {
  Graph g;
  const Output x = Const<float>(g, {1, 2, 3, 4}), at = Const<int32_t>(g, {3, 0, 3}),
               ids = Const<int32_t>(g, {0, 0, 1});
  const Output data = Reshape(x, {4, 1});
  const Output y = AddOp("SparseSegmentSum", {data, at, ids}, {{"sparse_gradient", true}}, "sums");
  const Grads grads = Gradients({ReduceSum(Square(y))}, {data});
  ASSERT_TRUE(g.status().ok()) << g.status();
  ASSERT_TRUE(grads[0].is_slices());
  EXPECT_EQ(grads[0].slices().values.node->op_name(), "SparseSegmentSumGradV2");
  // The sums are 4 + 1 and 4; row 3 is in both.
  EXPECT_EQ(Floats(g, grads[0].slices().values), (V{10, 18}));
  EXPECT_EQ(Floats(g, Cast(grads[0].slices().indices, DT_FLOAT)), (V{0, 3}));
  EXPECT_EQ(Floats(g, Cast(grads[0].slices().dense_shape, DT_FLOAT)), (V{4, 1}));
}

TEST(Gradients, IndexedSlicesAndDensePartsAddUpToADenseTensor) {
  Graph g;
  const Variable w =
      GetVariable(g, "w", {.initializer = Initializer(Tensor::Of<float>({2, 1}, {1, 2}))});
  const Output y =
      ReduceSum(w.SparseRead(Const<int32_t>(g, {1, 1}))) + ReduceSum(w.value() * w.value());
  const Grads grads = Gradients({y}, {w});
  const Operation init = GlobalVariablesInitializer(g);
  ASSERT_TRUE(g.status().ok()) << g.status();
  EXPECT_FALSE(grads[0].is_slices());
  ResourceMap resources;
  ASSERT_TRUE(EvaluateTargets(g, {init}, &resources).ok());
  EXPECT_EQ(Floats(g, grads[0].dense(), &resources), (V{2, 6}));
}

// ---- errors

TEST(Gradients, NameTheOpWithoutRuleAndThePathToIt) {
  OpRegistry ops(&BuiltinOps());
  ops.Add(OpSpec("Opaque").In("x: float").Out("y: float"));
  Graph g(ops);
  const Output x = Const(g, 1.f, "start");
  const Output y = Square(AddOp("Opaque", {x}, {}, "wall"), "end");
  EXPECT_TRUE(Gradients({y}, {x})[0].none());
  EXPECT_EQ(g.status().code(), absl::StatusCode::kUnimplemented);
  for (const char* part :
       {"No gradient defined for operation 'wall' (op type: Opaque)", "end", "start"}) {
    EXPECT_TRUE(absl::StrContains(g.status().message(), part)) << g.status();
  }
}

// TensorFlow neither has a gradient rule for these nor marks them as not differentiable.
TEST(Gradients, ReportOpsThatTensorFlowHasNoRuleFor) {
  const auto status_of = [](auto make) {
    Graph g;
    const Output x = Placeholder(g, DT_FLOAT, {4}, "x");
    const Output y = make(g, x);
    EXPECT_TRUE(g.status().ok()) << g.status();
    EXPECT_TRUE(Gradients({y}, {x})[0].none());
    return g.status();
  };
  const auto update = [](const char* op) {
    return [op](Graph& g, Output x) {
      const Output ref = VariableV2(g, DT_FLOAT, {4}), at = Const<int32_t>(g, {0, 1, 2, 3});
      return AddOp(op, {ref, at, x});
    };
  };
  const std::map<std::string, absl::Status> results = {
      {"Unique", status_of([](Graph&, Output x) { return AddOp("Unique", {x}); })},
      {"ListDiff", status_of([](Graph&, Output x) { return ListDiff(x, x).out; })},
      {"ScatterUpdate", status_of(update("ScatterUpdate"))},
      {"ScatterMax", status_of(update("ScatterMax"))},
      {"ApplyGradientDescent", status_of([](Graph& g, Output x) {
         return AddOp("ApplyGradientDescent", {VariableV2(g, DT_FLOAT, {4}), Const(g, 0.5f), x});
       })},
      {"StridedSliceAssign", status_of([](Graph& g, Output x) {
         const Output zero = Const<int32_t>(g, {0}), four = Const<int32_t>(g, {4}),
                      one = Const<int32_t>(g, {1});
         return AddOp("StridedSliceAssign", {VariableV2(g, DT_FLOAT, {4}), zero, four, one, x});
       })},
  };
  for (const auto& [op, status] : results) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << op;
    EXPECT_TRUE(absl::StrContains(status.message(), "No gradient defined for operation")) << op;
  }
  EXPECT_TRUE(status_of(update("ScatterAdd")).ok());
}

// A value inside a loop has a different value in each iteration.
TEST(Gradients, RejectValuesInsideALoop) {
  Graph g;
  const Output x = Const(g, 1.f, "x");
  const Output enter = Enter(x, "loop");
  const MergeResult merge = Merge({enter, enter});
  const Output again =
      LoopCond(Less(merge.output, Enter(Const(g, 10.f), "loop", {.is_constant = true})));
  const SwitchResult sides = Switch(merge.output, again);
  const Output body = Square(sides.on_true, "body");
  ASSERT_TRUE(g.SetInput(merge.output.node, 1, NextIteration(body)).ok());
  EXPECT_TRUE(Gradients({body}, {x})[0].none());
  EXPECT_EQ(g.status().code(), absl::StatusCode::kUnimplemented) << g.status();
}

TEST(Gradients, RejectWrongGradYs) {
  for (const int mistake : {0, 1, 2}) {
    Graph g;
    const Output x = Const(g, 1.f);
    if (mistake == 0) Gradients({x}, {x}, {.grad_ys = {Grad(x), Grad(x)}});
    if (mistake == 1) Gradients({x}, {x}, {.grad_ys = {Grad(Const(g, "text"))}});
    if (mistake == 2) Gradients({Const(g, "text")}, {x});
    EXPECT_EQ(g.status().code(), absl::StatusCode::kInvalidArgument) << mistake;
  }
}

TEST(Gradients, RejectAnotherGraph) {
  Graph g, other;
  Gradients({Const(g, 1.f)}, {Const(other, 1.f)});
  EXPECT_EQ(g.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Gradients, OfALongChainTakeLinearTimeWithoutRecursion) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {2}, "x");
  Output y = x;
  constexpr int kLength = 100000;
  for (int i = 0; i < kLength; ++i) y = AddOp("Neg", {y});
  const auto start = std::chrono::steady_clock::now();
  const Grads grads = Gradients({y}, {x});
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ASSERT_TRUE(g.status().ok()) << g.status();
  EXPECT_FALSE(grads[0].none());
  EXPECT_GE(g.num_nodes(), 2 * kLength);
#ifndef WEIR_SANITIZED
  EXPECT_LT(seconds, 10) << "quadratic?";
#endif
  std::printf("gradients of %d nodes: %.0f ms\n", kLength, seconds * 1e3);
}

// ---- clipping

TEST(Clip, ByNormDoesNotChangeShortVectors) {
  Graph g;
  const Output x = Const<float>(g, {3, 4});
  EXPECT_EQ(Floats(g, ClipByNorm(x, 10)), (V{3, 4}));
  const V clipped = Floats(g, ClipByNorm(x, 1));
  EXPECT_NEAR(clipped[0], 0.6f, 1e-6f);
  EXPECT_NEAR(clipped[1], 0.8f, 1e-6f);
  EXPECT_EQ(Floats(g, ClipByNorm(Const<float>(g, {0, 0}), 1)), (V{0, 0}));
}

TEST(Clip, ByGlobalNormScalesAllTogetherAndKeepsIndexedSlices) {
  Graph g;
  const Output a = Const<float>(g, {3, 0}), rows = Const<float>(g, {1, 1}, {4});
  const Output ids = Const<int32_t>(g, {7});
  const ClippedGrads clipped =
      ClipByGlobalNorm({Grad(a), Grad(), Grad(IndexedSlices{rows, ids, {}})}, 2.5);
  EXPECT_NEAR(Floats(g, clipped.global_norm)[0], 5.f, 1e-5f);
  EXPECT_NEAR(Floats(g, clipped.grads[0].dense())[0], 1.5f, 1e-6f);
  EXPECT_TRUE(clipped.grads[1].none());
  ASSERT_TRUE(clipped.grads[2].is_slices());
  EXPECT_EQ(clipped.grads[2].slices().indices, ids);
  EXPECT_NEAR(Floats(g, clipped.grads[2].slices().values)[0], 2.f, 1e-6f);
}

TEST(Clip, ByAnInfiniteGlobalNormReturnsNan) {
  Graph g;
  const Output a = Const<float>(g, {INFINITY, 1});
  const ClippedGrads clipped = ClipByGlobalNorm({Grad(a)}, 1.0);
  EXPECT_TRUE(std::isnan(Floats(g, clipped.grads[0].dense())[1]));
}

// ---- schedules

float RateAt(const std::function<Output(Output)>& schedule, int64_t step) {
  Graph g;
  return Floats(g, schedule(Const(g, step)))[0];
}

TEST(Schedules, FollowTheirFormulas) {
  const auto exponential = [](Output s) { return ExponentialDecay(0.1, s, 10, 0.5); };
  EXPECT_NEAR(RateAt(exponential, 5), 0.1 * std::sqrt(0.5), 1e-7);
  const auto stairs = [](Output s) {
    return ExponentialDecay(0.1, s, 10, 0.5, {.staircase = true});
  };
  EXPECT_NEAR(RateAt(stairs, 19), 0.05, 1e-7);
  EXPECT_NEAR(RateAt([](Output s) { return NaturalExpDecay(0.1, s, 10, 0.5); }, 5),
              0.1 * std::exp(-0.25), 1e-7);
  EXPECT_NEAR(RateAt([](Output s) { return InverseTimeDecay(0.1, s, 10, 0.5); }, 5), 0.1 / 1.25,
              1e-7);
  const auto polynomial = [](Output s) {
    return PolynomialDecay(0.1, s, 10, {.end_learning_rate = 0.01, .power = 2.0});
  };
  EXPECT_NEAR(RateAt(polynomial, 5), 0.09 * 0.25 + 0.01, 1e-7);
  EXPECT_NEAR(RateAt(polynomial, 50), 0.01, 1e-7);
  const auto cycle = [](Output s) {
    return PolynomialDecay(0.1, s, 10, {.end_learning_rate = 0.0, .cycle = true});
  };
  EXPECT_NEAR(RateAt(cycle, 15), 0.1 * 0.25, 1e-7);
  EXPECT_NEAR(RateAt(cycle, 0), 0.1, 1e-7);
  EXPECT_NEAR(RateAt([](Output s) { return CosineDecay(0.1, s, 10, {.alpha = 0.1}); }, 5),
              0.1 * (0.45 + 0.1), 1e-7);
  const auto linear_cosine = [](Output s) { return LinearCosineDecay(0.1, s, 10); };
  EXPECT_NEAR(RateAt(linear_cosine, 5), 0.1 * (0.5 * 0.5 + 0.001), 1e-7);
  const auto restarts = [](Output s) { return CosineDecayRestarts(0.1, s, 10, {.m_mul = 0.5}); };
  EXPECT_NEAR(RateAt(restarts, 5), 0.05, 1e-7);
  EXPECT_NEAR(RateAt(restarts, 20), 0.025,
              1e-6);  // the middle of the second period, whose height is half
}

TEST(Schedules, PiecewiseConstantChangesAfterItsBoundaries) {
  const auto schedule = [](Output s) { return PiecewiseConstant(s, {10, 20}, {1.0, 0.5, 0.25}); };
  EXPECT_EQ(RateAt(schedule, 0), 1.f);
  EXPECT_EQ(RateAt(schedule, 10), 1.f);
  EXPECT_EQ(RateAt(schedule, 11), 0.5f);
  EXPECT_EQ(RateAt(schedule, 21), 0.25f);
  Graph typed;
  const Tensor one = Tensor::Scalar(1.0), half_one = Tensor::Scalar(0.5);
  EXPECT_EQ(PiecewiseConstant(Const(typed, int64_t{1}), {10}, {one, half_one}).dtype(), DT_DOUBLE);
  Graph g;
  PiecewiseConstant(Const(g, int64_t{1}), {10, 5}, {1.0, 0.5, 0.25});
  EXPECT_EQ(g.status().code(), absl::StatusCode::kInvalidArgument);
}

// ---- moving averages

TEST(MovingAverages, FollowVariables) {
  for (const bool resource : {false, true}) {
    Graph g(GraphOptions{.use_resource = resource});
    const Variable w = GetVariable(g, "w", {.initializer = Initializer({10.0})});
    ExponentialMovingAverage ema(0.75);
    const Operation update = ema.Apply({w});
    const Output change = w.Assign({2.0});
    // The average's own initializer selects the value or the initial value with a cond, which
    // Evaluate does not support.
    const Output start = ema.Average(w).Assign({10.0});
    ASSERT_TRUE(g.status().ok()) << g.status();
    EXPECT_EQ(ema.Average(w).name(), "w/ExponentialMovingAverage:0");
    EXPECT_EQ(MovingAverageVariables(g).size(), 1u);
    ResourceMap resources;
    ASSERT_TRUE(EvaluateTargets(g, {Operation(start)}, &resources).ok());
    EXPECT_EQ(ema.Average(w).initial_value().node->op_name(), "Merge");
    ASSERT_TRUE(EvaluateTargets(g, {Operation(change)}, &resources).ok());
    ASSERT_TRUE(EvaluateTargets(g, {update}, &resources).ok());
    EXPECT_EQ(Floats(g, ema.Average(w).value(), &resources), (V{8}));
    const auto names = ema.VariablesToRestore(g);
    ASSERT_EQ(names.count("w/ExponentialMovingAverage"), 1u);
    EXPECT_EQ(names.at("w/ExponentialMovingAverage"), w);
    EXPECT_EQ(names.count("w"), 0u);
  }
}

TEST(MovingAverages, AreFasterAtFirstWithNumUpdates) {
  Graph g;
  const Variable w = GetVariable(g, "w", {.initializer = Initializer({0.0})});
  ExponentialMovingAverage ema(0.999, {.num_updates = TensorArg(0)});
  const Operation update = ema.Apply({w});
  const Output change = w.Assign({1.0}), start = ema.Average(w).Assign({0.0});
  ASSERT_TRUE(g.status().ok()) << g.status();
  ResourceMap resources;
  ASSERT_TRUE(EvaluateTargets(g, {Operation(start)}, &resources).ok());
  ASSERT_TRUE(EvaluateTargets(g, {Operation(change)}, &resources).ok());
  ASSERT_TRUE(EvaluateTargets(g, {update}, &resources).ok());
  EXPECT_NEAR(Floats(g, ema.Average(w).value(), &resources)[0], 0.9f, 1e-6f);
}

TEST(MovingAverages, OfTensorsAreDebiasedOnRequest) {
  Graph g;
  const Output x = Const<float>(g, {4}, "x");
  ExponentialMovingAverage ema(0.9, {.zero_debias = true});
  const Operation update = ema.ApplyToTensors({x});
  const Operation init = GlobalVariablesInitializer(g);
  ASSERT_TRUE(g.status().ok()) << g.status();
  ResourceMap resources;
  ASSERT_TRUE(EvaluateTargets(g, {init}, &resources).ok());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(EvaluateTargets(g, {update}, &resources).ok());
    EXPECT_NEAR(Floats(g, ema.Average(x).value(), &resources)[0], 4.f, 1e-5f);
  }
}

}  // namespace
}  // namespace weir
