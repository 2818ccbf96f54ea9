// Nodes that depend on step-invariant values alone: they run once, and again when a variable
// changes; factors are folded into convolutions; results equal those of the unoptimized graphs.

#include <cmath>
#include <map>
#include <random>
#include <thread>

#include "absl/algorithm/container.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/function.h"
#include "weir/ops/framework/state.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"
#include "weir/session/session.h"
#include "weir/tests/session/lib/random_values.h"
#include "weir/tests/session/lib/test_functions.h"

namespace weir {
namespace {

constexpr int64_t kIn = 8, kOut = 12;
constexpr int64_t kMany = 4000;  // large enough that caching is worth it

Tensor Random(const Shape& shape, uint32_t seed, float lowest = -1) {
  std::mt19937 random(seed);
  return UniformFloats(shape, random, lowest);
}

void ExpectNear(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(got.shape(), want.shape());
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    const float value = want.data<float>()[i];
    ASSERT_NEAR(got.data<float>()[i], value, 2e-5 + 1e-5 * std::abs(value)) << "element " << i;
  }
}

class CacheStepInvariants : public ::testing::Test {
 protected:
  Output NewVariable(const std::string& name, const Tensor& value) {
    variables_.push_back(MakeVariable(Const(g_, value), {.name = name}));
    return variables_.back().value();
  }
  Output NewVector(const std::string& name, uint32_t seed, int64_t count = kOut) {
    return NewVariable(name, Random({count}, seed, 0.1f));
  }
  // A batch norm as Keras decomposes it.
  Output BatchNorm(const Output& x, int64_t count = kOut) {
    const std::string name = absl::StrCat("bn", variables_.size());
    const Ints vector = {1, 1, 1, count};
    const Output gamma = NewVector(name + "/gamma", 11, count),
                 beta = NewVector(name + "/beta", 12, count),
                 mean = NewVector(name + "/mean", 13, count),
                 variance = NewVector(name + "/variance", 14, count);
    const Output factor = Reshape(Rsqrt(variance + 1e-3f) * gamma, vector);
    return x * factor + (Reshape(beta, vector) - Reshape(mean, vector) * factor);
  }
  Session NewSession(const std::set<std::string>& disable = {}) {
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    Session session = *Session::Create(g_, {.num_threads = 2, .disable = disable});
    const absl::Status s = session.Run({}, {}, {GlobalVariablesInitializer(g_)}).status();
    EXPECT_TRUE(s.ok()) << s;
    return session;
  }
  // Returns how often each op runs in a step.
  struct Ran {
    Tensor value;
    std::map<std::string, int> times;
    int of(const std::string& op) const { return times.contains(op) ? times.at(op) : 0; }
  };
  Ran Run(Session& session, const Output& y) {
    std::vector<NodeTrace> trace;
    const absl::StatusOr<Tensors> out = session.Run({{x_, image_}}, {y}, {}, {.trace = &trace});
    EXPECT_TRUE(out.ok()) << out.status();
    Ran ran;
    if (out.ok()) ran.value = (*out)[0];
    for (const NodeTrace& node : trace) ++ran.times[node.op];
    return ran;
  }
  Tensor Plain(const Output& y) {
    Session session = NewSession({"cache_step_invariants", "fusion"});
    return Run(session, y).value;
  }

  Graph g_;
  std::vector<Variable> variables_;
  const Tensor image_ = Random({2, 9, 9, kIn}, 1);
  const Output x_ = Placeholder(g_, DT_FLOAT, {-1, 9, 9, kIn});
};

TEST_F(CacheStepInvariants, CachesValuesOfVariables) {
  const Output w = NewVariable("w", Random({kMany, kIn}, 2));
  const Output y = MatMul(Reshape(x_, {-1, kIn}), Tanh(Transpose(w, {1, 0})));
  const Tensor want = Plain(y);
  Session session = NewSession();
  EXPECT_EQ(Run(session, y).of("Tanh"), 1);
  for (int step = 0; step < 3; ++step) {
    const Ran ran = Run(session, y);
    EXPECT_EQ(ran.of("Tanh") + ran.of("Transpose"), 0);
    EXPECT_EQ(ran.of("MatMul"), 1);
    ExpectNear(ran.value, want);
  }
  Session without = NewSession({"cache_step_invariants"});
  for (int step = 0; step < 2; ++step) EXPECT_EQ(Run(without, y).of("Tanh"), 1);
}

// Recomputing this costs less than comparing the variables.
TEST_F(CacheStepInvariants, CheapValuesAreNotCached) {
  const Output y = ReduceSum(x_) * Tanh(NewVector("little", 2));
  Session session = NewSession();
  for (int step = 0; step < 2; ++step) EXPECT_EQ(Run(session, y).of("Tanh"), 1);
}

TEST_F(CacheStepInvariants, RecomputesWhenAVariableChanges) {
  const Output w = NewVariable("w", Random({kIn, kMany}, 2));
  const Output y = MatMul(Reshape(x_, {-1, kIn}), Tanh(w));
  const Output fed = Placeholder(g_, DT_FLOAT, {kIn, kMany});
  const Operation assign = AssignVariableOp(variables_[0].handle(), fed);
  Session session = NewSession();
  uint32_t seed = 20;
  for (const int steps :
       {3, 1, 1, 1, 1, 1, 1, 1, 4}) {  // so many changes that caching is given up at last
    const Tensor value = Random({kIn, kMany}, ++seed);
    ASSERT_TRUE(session.Run({{fed, value}}, {}, {assign}).ok());
    Graph g;
    const Output want = MatMul(Reshape(Const(g, image_), {-1, kIn}), Tanh(Const(g, value)));
    const Tensor expected = (*Session::Create(g)->Run({want}))[0];
    for (int step = 0; step < steps; ++step) ExpectNear(Run(session, y).value, expected);
  }
}

// A step that writes to any variable caches nothing.
TEST_F(CacheStepInvariants, StepsThatWriteCacheNothing) {
  const Output w = NewVariable("w", Random({kIn, kMany}, 2));
  const Output y = ReduceSum(Tanh(w) + ReduceSum(x_));
  const Operation update =
      AssignAddVariableOp(variables_[0].handle(), Const(g_, Random({kIn, kMany}, 3)));
  Session session = NewSession();
  std::vector<float> seen;
  for (int step = 0; step < 3; ++step) {
    const auto out = session.Run({{x_, image_}}, {y}, {update});
    ASSERT_TRUE(out.ok()) << out.status();
    seen.push_back((*out)[0].scalar<float>());
    if (step > 0) {
      EXPECT_NE(seen[step], seen[step - 1]);
    }
  }
}

TEST_F(CacheStepInvariants, FoldsFactorsIntoConvolutions) {
  const Output filter = NewVariable("filter", Random({3, 3, kIn, kOut}, 3));
  const Output y = Relu6(BatchNorm(Conv2D(x_, filter)));
  const Tensor want = Plain(y);
  Session session = NewSession();
  ExpectNear(Run(session, y).value, want);
  const Ran ran = Run(session, y);
  ExpectNear(ran.value, want);
  EXPECT_EQ(ran.of("_FusedConv2D"), 1);
  EXPECT_EQ(ran.of("Mul") + ran.of("AddV2") + ran.of("Rsqrt") + ran.of("_FusedElementwise"), 0);
}

TEST_F(CacheStepInvariants, FoldsFactorsIntoDepthwiseConvolutions) {
  const Output filter = NewVariable("filter", Random({3, 3, kIn, 2}, 3));
  const Output y = Relu6(BatchNorm(DepthwiseConv2dNative(x_, filter), 2 * kIn));
  const Tensor want = Plain(y);
  Session session = NewSession();
  ExpectNear(Run(session, y).value, want);
  const Ran ran = Run(session, y);
  ExpectNear(ran.value, want);
  EXPECT_EQ(ran.of("_FusedDepthwiseConv2dNative"), 1);
  EXPECT_EQ(ran.of("Mul") + ran.of("AddV2") + ran.of("_FusedElementwise"), 0);
}

TEST_F(CacheStepInvariants, FoldsFusedBatchNormsOfVariables) {
  const Output filter = NewVariable("filter", Random({3, 3, kIn, kOut}, 3));
  const Output scale = NewVector("scale", 4), offset = NewVector("offset", 5);
  const FusedBatchNormOptions options = {
      .mean = NewVector("mean", 6), .variance = NewVector("variance", 7), .is_training = false};
  const Output y = Relu(FusedBatchNorm(Conv2D(x_, filter), scale, offset, options).y);
  const Tensor want = Plain(y);
  Session session = NewSession();
  ExpectNear(Run(session, y).value, want);
  const Ran ran = Run(session, y);
  ExpectNear(ran.value, want);
  EXPECT_EQ(ran.of("_FusedConv2D"), 1);
  EXPECT_EQ(ran.of("FusedBatchNormV3"), 0);
}

// In a frozen graph the factors are constants.
TEST_F(CacheStepInvariants, FoldsConstantFactors) {
  const Output filter = Const(g_, Random({1, 1, kIn, kOut}, 3));
  const Output y =
      Conv2D(x_, filter) * Const(g_, Random({kOut}, 4)) + Const(g_, Random({1, 1, 1, kOut}, 5));
  const Tensor want = Plain(y);
  Session session = NewSession();
  ExpectNear(Run(session, y).value, want);
  const Ran ran = Run(session, y);
  ExpectNear(ran.value, want);
  EXPECT_EQ(ran.of("_FusedConv2D"), 1);
  EXPECT_EQ(ran.of("Mul"), 0);
}

// The convolution's own value is needed, or the factor is not a vector of channels: nothing is
// folded.
TEST_F(CacheStepInvariants, OtherProductsAreNotFolded) {
  const Output filter = NewVariable("filter", Random({3, 3, kIn, kOut}, 3));
  const Output shared = Conv2D(x_, filter);
  const Output pixels = NewVariable("pixels", Random({9, 9, kOut}, 4));
  for (const Output& y : {shared * NewVector("a", 5) + ReduceSum(shared),
                          Conv2D(x_, filter) * pixels, Conv2D(x_, filter) * ReduceMean(x_)}) {
    const Tensor want = Plain(y);
    Session session = NewSession();
    for (int step = 0; step < 2; ++step) ExpectNear(Run(session, y).value, want);
  }
}

// A read that waits for a node which uses a cached value: one node for all cached values would
// depend on itself.
TEST_F(CacheStepInvariants, NodesWithControlInputsAreNotCached) {
  const Output a = Exp(NewVector("a", 2, kMany)), sum = ReduceSum(a) + ReduceSum(x_);
  const Variable late = MakeVariable(Const(g_, Random({kMany}, 3)), {.name = "late"});
  const Output b = NewVector("b", 4, kMany);
  Output read, passed;
  {
    const ControlDependencies after(g_, {sum});
    read = AddOp("ReadVariableOp", {late.handle()}, {{"dtype", DT_FLOAT}});
    passed = Identity(b);
  }
  const Output y = sum + Tanh(read) * a + Tanh(passed);
  const Tensor want = Plain(y);
  Session session = NewSession();
  for (int step = 0; step < 3; ++step) ExpectNear(Run(session, y).value, want);
}

// A fetched value is still computed, even if it has been folded into another.
TEST_F(CacheStepInvariants, FetchedValuesAreComputed) {
  const Output filter = NewVariable("filter", Random({3, 3, kIn, kOut}, 3));
  const Output conv = Conv2D(x_, filter), factor = Exp(NewVector("a", 5)), y = conv * factor;
  Session session = NewSession(), plain = NewSession({"cache_step_invariants", "fusion"});
  for (int step = 0; step < 2; ++step) {
    const auto got = session.Run({{x_, image_}}, {factor, conv, y});
    const auto want = plain.Run({{x_, image_}}, {factor, conv, y});
    ASSERT_TRUE(got.ok() && want.ok()) << got.status();
    for (int k = 0; k < 3; ++k) ExpectNear((*got)[k], (*want)[k]);
  }
}

TEST_F(CacheStepInvariants, CachesInFunctions) {
  NewVariable("filter", Random({3, 3, kIn, kOut}, 3));
  NewVector("gamma", 4);
  const FunctionRef f =
      DefineFrom(g_, "f", {DT_FLOAT, DT_RESOURCE, DT_RESOURCE}, [](Graph&, const Outputs& a) {
        const auto read = [](const Output& handle) {
          return AddOp("ReadVariableOp", {handle}, {{"dtype", DT_FLOAT}});
        };
        return Outputs{Conv2D(a[0], read(a[1])) * Exp(read(a[2]))};
      });
  const Output y = Call(g_, f, {x_, variables_[0].handle(), variables_[1].handle()})[0];
  const Tensor want = Plain(y);
  const Operation change = AssignVariableOp(variables_[1].handle(), Const(g_, Random({kOut}, 9)));
  Session session = NewSession();
  for (int step = 0; step < 3; ++step) ExpectNear(Run(session, y).value, want);
  Session plain = NewSession({"cache_step_invariants"});
  for (Session* s : {&session, &plain}) ASSERT_TRUE(s->Run({}, {}, {change}).ok());
  for (int step = 0; step < 2; ++step) ExpectNear(Run(session, y).value, Run(plain, y).value);
}

TEST_F(CacheStepInvariants, ConcurrentFirstSteps) {
  const Output filter = NewVariable("filter", Random({3, 3, kIn, kOut}, 3));
  const Output y = BatchNorm(Conv2D(x_, filter));
  const Tensor want = Plain(y);
  Session session = NewSession();
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int step = 0; step < 20; ++step) {
        const auto out = session.Run({{x_, image_}}, {y});
        ASSERT_TRUE(out.ok()) << out.status();
        ExpectNear((*out)[0], want);
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace weir
