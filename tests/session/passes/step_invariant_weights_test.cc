// Weights that kernels keep packed across steps, and constants that variables share: which inputs
// count as step-invariant, and that results reflect every change of a weight.

#include <atomic>
#include <cmath>
#include <limits>
#include <random>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/core/io/function_library.h"
#include "weir/ops/framework/function.h"
#include "weir/ops/framework/initializers.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"
#include "weir/session/session.h"
#include "weir/tests/session/lib/random_values.h"

namespace weir {
namespace {

using ::testing::ElementsAre;

Tensor Random(const Shape& shape, uint32_t seed) {
  std::mt19937 random(seed);
  return UniformFloats(shape, random);
}

void ExpectClose(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(got.shape(), want.shape());
  for (int64_t i = 0; i < want.num_elements(); ++i)
    ASSERT_NEAR(got.data<float>()[i], want.data<float>()[i], 1e-4) << "at " << i;
}

// ---- flags in plans

// Records which of its inputs are step-invariant.
class StepInvariantFlags : public testing::Test {
 protected:
  StepInvariantFlags() : ops_(&BuiltinOps()), kernels_(&BuiltinKernels()), g_(ops_) {
    ops_.Add(
        OpSpec("Ask").In("x: N * float").Out("y: int32").Attr("N: int").Stateful().Doc("Asks."));
    kernels_.Add("Ask", kCpu, [this](const KernelInit& init) -> absl::StatusOr<Kernel> {
      lasting_.clear();
      for (int i = 0; i < init.node.num_inputs(); ++i)
        lasting_.push_back(init.is_step_invariant(i));
      return Kernel([](KernelContext& c) -> absl::Status {
        c.SetOutput(0, Tensor::Scalar<int32_t>(0));
        return absl::OkStatus();
      });
    });
  }
  std::vector<bool> Ask(const Outputs& xs, const Feeds& feeds = {},
                        const std::vector<Operation>& besides = {}) {
    const Output y = NodeBuilder(g_, "Ask").InputList(xs).BuildOutput();
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    Session session = *Session::Create(g_, {.kernels = &kernels_});
    EXPECT_TRUE(session.Run({}, {}, {GlobalVariablesInitializer(g_)}).ok());
    const auto out = session.Run(feeds, {y}, besides);
    EXPECT_TRUE(out.ok()) << out.status();
    return lasting_;
  }

  OpRegistry ops_;
  KernelRegistry kernels_;
  Graph g_;
  std::vector<bool> lasting_;
};

TEST_F(StepInvariantFlags, SetForConstantsAndVariablesOnly) {
  const Output fed = Placeholder(g_, DT_FLOAT, {2}), constant = Const(g_, {1.f, 2.f}),
               folded = constant + constant;
  const Variable resource = GetVariable(g_, "resource", {2}, Zeros()),
                 ref = GetVariable(g_, "ref", {2}, {.initializer = Zeros(), .use_resource = false});
  const Tensor value = Tensor::Vector<float>({1, 2});
  EXPECT_THAT(Ask({constant, folded, Identity(resource.value()), resource.value(), ref.value(), fed,
                   resource.value() + 1.f},
                  {{fed, value}}),
              ElementsAre(true, true, true, true, true, false, false));
}

// Values that take long enough to compute are computed once.
TEST_F(StepInvariantFlags, SetForValuesComputedFromLargeVariables) {
  const Variable v = GetVariable(g_, "v", {500000}, Zeros());
  EXPECT_THAT(Ask({v.value() + 1.f}), ElementsAre(true));
}

TEST_F(StepInvariantFlags, NotSetForFedConstantsAndReads) {
  const Output constant = Const(g_, {1.f, 2.f});
  const Output read = GetVariable(g_, "v", {2}, Zeros()).value();
  const Tensor value = Tensor::Vector<float>({1, 2});
  EXPECT_THAT(Ask({constant, Identity(read)}, {{constant, value}, {read, value}}),
              ElementsAre(false, false));
}

TEST_F(StepInvariantFlags, NotSetInStepsThatWriteVariables) {
  const Variable v = GetVariable(g_, "v", {2}, Zeros()), w = GetVariable(g_, "w", {}, Zeros());
  const Output constant = Const(g_, {1.f, 2.f});
  EXPECT_THAT(Ask({v.value(), constant}, {}, {Operation{w.AssignAdd(1.f).node}}),
              ElementsAre(false, true));
}

TEST_F(StepInvariantFlags, SetForControlledConstants) {
  const Output x = Placeholder(g_, DT_FLOAT, {2});
  Output constant;
  {
    ControlDependencies after(g_, {x});
    constant = Const(g_, {1.f, 2.f});
  }
  EXPECT_THAT(Ask({constant}, {{x, Tensor::Vector<float>({1, 2})}}), ElementsAre(true));
}

// Another call may pass another variable, but usually does not: a kernel with a cache checks.
TEST_F(StepInvariantFlags, SetForVariablesPassedToAFunction) {
  Graph body(ops_);
  const Output handle = Placeholder(body, DT_RESOURCE);
  const Output read =
      NodeBuilder(body, "ReadVariableOp").Input(handle).Attr("dtype", DT_FLOAT).BuildOutput();
  const Output answer = NodeBuilder(body, "Ask").InputList({read, Const(body, 1.f)}).BuildOutput();
  ASSERT_TRUE(DefineFunction(g_, "f", body, {handle}, {answer}).ok());
  const Variable v = GetVariable(g_, "v", {2}, Zeros());
  const Output called = Call(g_, {"f", nullptr}, {v.handle()})[0];
  Session session = *Session::Create(g_, {.kernels = &kernels_});
  ASSERT_TRUE(session.Run({}, {}, {GlobalVariablesInitializer(g_)}).ok());
  const auto out = session.Run({called});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT(lasting_, ElementsAre(true, true));
}

// A fused node receives the flags of its own inputs: the product's, the bias, the addend.
TEST_F(StepInvariantFlags, SetForInputsOfFusedNodes) {
  std::vector<std::vector<bool>> asked;
  kernels_.Add("_FusedMatMul", kCpu, DT_FLOAT,
               [&](const KernelInit& init) -> absl::StatusOr<Kernel> {
                 asked.emplace_back();
                 for (int i = 0; i < init.node.num_inputs(); ++i)
                   asked.back().push_back(init.is_step_invariant(i));
                 return BuiltinKernels().Find(init.node, kCpu)->make(init);
               });
  const Output x = Placeholder(g_, DT_FLOAT, {4, 2});
  const Variable w = GetVariable(g_, "w", {2, 3}, Zeros());
  const Output y = BiasAdd(MatMul(x, w.value()), Const(g_, {1.f, 2.f, 3.f})),
               z = MatMul(x, Const(g_, Random({2, 3}, 1))) + y;
  Session session = *Session::Create(g_, {.kernels = &kernels_});
  ASSERT_TRUE(session.Run({}, {}, {GlobalVariablesInitializer(g_)}).ok());
  ASSERT_TRUE(session.Run({{x, Random({4, 2}, 2)}}, {z}).ok());
  // x w fuses the bias, the other product fuses what comes of it as an addend.
  EXPECT_THAT(asked, ::testing::UnorderedElementsAre(ElementsAre(false, true, true),
                                                     ElementsAre(false, true, false)));
}

// ---- caching in kernels

// y = x w, or a convolution of images x with w, where w is a variable; and the same with a fed w,
// which is never cached.
struct Model {
  explicit Model(const Shape& weight, const ConvOptions& options = {})
      : w(GetVariable(g, "w", weight, Zeros())),
        fed(Placeholder(g, DT_FLOAT, weight)),
        value(Placeholder(g, DT_FLOAT, weight)),
        read(w.value()),
        assign{w.Assign(value).node} {
    const int64_t in = weight.dim(-2);
    const auto apply = [&](const Output& a, const Output& b) {
      return weight.rank() == 2 ? MatMul(a, b) : Conv2D(a, b, options);
    };
    x = Placeholder(g, DT_FLOAT, weight.rank() == 2 ? Shape({-1, in}) : Shape({-1, 9, 9, in}));
    y = apply(x, read);
    y_of_fed = apply(x, fed);
  }
  Shape InputShape(int64_t batch) const {
    Shape shape({batch});
    for (int i = 1; i < x.shape().rank(); ++i) shape.AddDim(x.shape().dim(i));
    return shape;
  }
  Session Start() {
    EXPECT_TRUE(g.status().ok()) << g.status();
    return *Session::Create(g, {.num_threads = 2});
  }

  Graph g;
  Variable w;
  Output fed, value, read, x, y, y_of_fed;
  Operation assign;  // assigns value to w
};
const Shape kMatrix({96, 160}), kFilter({3, 3, 16, 32});

Tensor RunOne(Session& session, const Feeds& feeds, const Output& y) {
  const auto out = session.Run(feeds, {y});
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? (*out)[0] : Tensor(DT_FLOAT, {0});
}

void ExpectFollowsAssignments(const Shape& weight, const ConvOptions& options = {}) {
  Model m(weight, options);
  Session session = m.Start();
  for (uint32_t round = 0; round < 4; ++round) {
    const Tensor w = Random(m.fed.shape(), round);
    ASSERT_TRUE(session.Run({{m.value, w}}, {}, {m.assign}).ok());
    for (uint32_t step = 0; step < 3; ++step) {
      // Shapes alternate, and recur.
      const Tensor x = Random(m.InputShape(step == 1 ? 9 : 32), 10 + step);
      ExpectClose(RunOne(session, {{m.x, x}}, m.y),
                  RunOne(session, {{m.x, x}, {m.fed, w}}, m.y_of_fed));
    }
  }
}

TEST(StepInvariantWeights, ProductsFollowAssignments) { ExpectFollowsAssignments(kMatrix); }
TEST(StepInvariantWeights, ConvolutionsFollowAssignments) { ExpectFollowsAssignments(kFilter); }
TEST(StepInvariantWeights, TransformedFiltersFollowAssignments) {
  ExpectFollowsAssignments({3, 3, 64, 64});
}
TEST(StepInvariantWeights, FiltersThatSkipPixelsFollowAssignments) {
  for (const char* padding : {"SAME", "VALID"}) {
    ExpectFollowsAssignments({1, 1, 96, 40}, {.strides = {1, 2, 2, 1}, .padding = padding});
    ExpectFollowsAssignments({1, 1, 20, 72}, {.strides = {1, 3, 3, 1}, .padding = padding});
    ExpectFollowsAssignments({3, 3, 24, 40}, {.strides = {1, 2, 2, 1}, .padding = padding});
    ExpectFollowsAssignments({2, 5, 16, 17}, {.strides = {1, 2, 3, 1}, .padding = padding});
    ExpectFollowsAssignments(
        {1, 3, 16, 32}, {.strides = {1, 1, 2, 1}, .padding = padding, .dilations = {1, 2, 1, 1}});
    ExpectFollowsAssignments(
        {1, 3, 16, 32}, {.strides = {1, 2, 1, 1}, .padding = padding, .dilations = {1, 1, 2, 1}});
  }
  // Padding larger than the filters' reach.
  ExpectFollowsAssignments({3, 3, 16, 32}, {.strides = {1, 2, 2, 1},
                                            .padding = "EXPLICIT",
                                            .explicit_paddings = {0, 0, 4, 0, 1, 5, 0, 0}});
  // In several rounds.
  ExpectFollowsAssignments({3, 3, 200, 40}, {.strides = {1, 2, 2, 1}});
}
// Pixels outside the image are excluded rather than zero.
TEST(StepInvariantWeights, InfiniteWeightsThatSkipPixelsMakeNoNans) {
  Model m({3, 3, 16, 32}, {.strides = {1, 2, 2, 1}});
  Session session = m.Start();
  Tensor w = Random(m.fed.shape(), 1);
  w.data<float>()[0] = std::numeric_limits<float>::infinity();
  ASSERT_TRUE(session.Run({{m.value, w}}, {}, {m.assign}).ok());
  const Tensor y = RunOne(session, {{m.x, Random(m.InputShape(2), 2)}}, m.y);
  for (const float f : y.flat<float>()) EXPECT_FALSE(std::isnan(f));
}
TEST(StepInvariantWeights, SmallImagesFollowAssignments) {
  ExpectFollowsAssignments({1, 1, 320, 96});
}

// A variable that is updated in place, between steps that cache its packed form.
TEST(StepInvariantWeights, ProductsFollowUpdates) {
  Model m(kMatrix);
  const Operation update{m.w.AssignAdd(m.value).node};
  Session session = m.Start();
  Tensor w = Random(m.fed.shape(), 1);
  const Tensor delta = Random(m.fed.shape(), 2), x = Random(m.InputShape(32), 3);
  ASSERT_TRUE(session.Run({{m.value, w}}, {}, {m.assign}).ok());
  for (int round = 0; round < 4; ++round) {
    ExpectClose(RunOne(session, {{m.x, x}}, m.y),
                RunOne(session, {{m.x, x}, {m.fed, w}}, m.y_of_fed));
    ASSERT_TRUE(session.Run({{m.value, delta}}, {}, {update}).ok());
    for (int64_t i = 0; i < w.num_elements(); ++i) w.data<float>()[i] += delta.data<float>()[i];
  }
}

TEST(StepInvariantWeights, FedWeightsMayBeWrittenToBetweenSteps) {
  for (const Shape& weight : {kMatrix, kFilter}) {
    Model m(weight);
    Session session = m.Start();
    Tensor w = Random(m.fed.shape(), 1);
    const Tensor x = Random(m.InputShape(32), 2);
    ASSERT_TRUE(session.Run({{m.value, w}}, {}, {m.assign}).ok());
    for (int round = 0; round < 3; ++round) {
      const Tensor want = RunOne(session, {{m.x, x}, {m.fed, w.DeepCopy()}}, m.y_of_fed);
      ExpectClose(RunOne(session, {{m.x, x}, {m.read, w}}, m.y), want);
      for (float& f : w.flat<float>()) f = -2 * f;
    }
  }
}

// The first step packs the weight, later steps use the packed form: the results are equal bit for
// bit.
TEST(StepInvariantWeights, AllStepsRoundAlike) {
  for (const Shape& weight : {kMatrix, Shape({512, 512}), kFilter}) {
    Model m(weight);
    Session session = m.Start();
    ASSERT_TRUE(session.Run({{m.value, Random(m.fed.shape(), 1)}}, {}, {m.assign}).ok());
    for (const int64_t batch : {1, 8, 40, 1500}) {
      const Tensor x = Random(m.InputShape(batch), 2);
      const Tensor first = RunOne(session, {{m.x, x}}, m.y);
      for (int step = 0; step < 3; ++step)
        EXPECT_TRUE(IdenticalTensors(RunOne(session, {{m.x, x}}, m.y), first)) << batch;
    }
  }
}

// Each step sees one complete value.
TEST(StepInvariantWeights, ThreadsMayInferWhileAnotherAssigns) {
  Model m({64, 128});
  Session session = m.Start();
  const auto filled = [&](const Shape& shape, float f) {
    Tensor t(DT_FLOAT, shape);
    for (float& v : t.flat<float>()) v = f;
    return t;
  };
  ASSERT_TRUE(session.Run({{m.value, filled(m.fed.shape(), 1)}}, {}, {m.assign}).ok());
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      const Tensor x = filled(m.InputShape(8 + 8 * t), 1);
      while (!over) {
        const Tensor y = RunOne(session, {{m.x, x}}, m.y);
        if (y.num_elements() == 0) break;
        const float one = y.data<float>()[0];
        EXPECT_EQ(std::fmod(one, 64.f), 0) << one;
        const auto values = y.flat<float>();
        EXPECT_TRUE(std::all_of(values.begin(), values.end(), [&](float f) { return f == one; }));
      }
    });
  }
  for (int i = 1; i < 200; ++i) {
    const Tensor w = filled(m.fed.shape(), static_cast<float>(i % 5));
    EXPECT_TRUE(session.Run({{m.value, w}}, {}, {m.assign}).ok());
  }
  over = true;
  for (std::thread& t : threads) t.join();
}

// ---- variables initialized from constants

// Of either kind: resource or reference.
class SharedConstants : public testing::TestWithParam<bool> {
 protected:
  SharedConstants()
      : g_({.use_resource = GetParam()}),
        initial_(Const(g_, constant_)),
        v_(MakeVariable(initial_, {.name = "v"})),
        w_(MakeVariable(initial_, {.name = "w"})),
        update_(v_.AssignAdd(Const<float>(g_, {10, 20})).node),
        session_(*Session::Create(g_)) {
    EXPECT_TRUE(session_.Run({}, {}, {v_.initializer(), w_.initializer()}).ok());
  }
  Tensor Get(const Variable& v) { return RunOne(session_, {}, v); }
  static std::vector<float> ValuesOf(const Tensor& t) {
    return {t.flat<float>().begin(), t.flat<float>().end()};
  }

  const Tensor constant_ = Tensor::Vector<float>({1, 2});
  Graph g_;
  const Output initial_;
  const Variable v_, w_;
  const Operation update_;
  Session session_;
};

TEST_P(SharedConstants, HaveNoOwnMemoryUntilWritten) {
  EXPECT_TRUE(Get(v_).SharesBufferWith(constant_));
  EXPECT_TRUE(Get(w_).SharesBufferWith(constant_));
  ASSERT_TRUE(session_.Run(update_).ok());
  EXPECT_THAT(ValuesOf(Get(v_)), ElementsAre(11, 22));
  EXPECT_THAT(ValuesOf(Get(w_)), ElementsAre(1, 2));
  EXPECT_THAT(ValuesOf(constant_), ElementsAre(1, 2));
}

TEST_P(SharedConstants, AreCopiedToVariablesThatHaveMemory) {
  ASSERT_TRUE(session_.Run(update_).ok());
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(session_.Run(v_.initializer()).ok());
    EXPECT_FALSE(Get(v_).SharesBufferWith(constant_));
    EXPECT_THAT(ValuesOf(Get(v_)), ElementsAre(1, 2));
    ASSERT_TRUE(session_.Run(update_).ok());
    EXPECT_THAT(ValuesOf(Get(v_)), ElementsAre(11, 22));
  }
}

TEST_P(SharedConstants, DoNotShareFedTensors) {
  Tensor fed = Tensor::Vector<float>({3, 4});
  ASSERT_TRUE(session_.Run({{initial_, fed}}, {}, {v_.initializer()}).ok());
  fed.data<float>()[0] = 7;
  EXPECT_THAT(ValuesOf(Get(v_)), ElementsAre(3, 4));
}

INSTANTIATE_TEST_SUITE_P(Kinds, SharedConstants, testing::Bool(),
                         [](const auto& info) { return info.param ? "Resource" : "Reference"; });

}  // namespace
}  // namespace weir
