#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/session.h"
#include "weir/tools/run/node_cost.h"

// A user's op with traits is treated as a built-in one: the elementwise op of
// examples/own_project is fused with its neighbors, and profiles count its operations.
namespace weir::tools {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;

void Snake(const void* x, void* y, int64_t n, double) {
  const float* const in = static_cast<const float*>(x);
  for (int64_t i = 0; i < n; ++i)
    static_cast<float*>(y)[i] = in[i] + std::sin(in[i]) * std::sin(in[i]);
}
void Hypotenuse(const void* x, const void* y, void* z, int64_t n, double scale) {
  const float *const a = static_cast<const float*>(x), *const b = static_cast<const float*>(y);
  for (int64_t i = 0; i < n; ++i)
    static_cast<float*>(z)[i] = static_cast<float>(scale) * std::hypot(a[i], b[i]);
}

class UserOps : public testing::Test {
 protected:
  UserOps() : ops_(&BuiltinOps()), kernels_(&BuiltinKernels()), g_(Register()) {}

  const OpRegistry& Register() {
    ops_.Add(OpSpec("Snake").In("x: float").Out("y: float").Elementwise().InferShape(SameShape));
    ops_.Add(OpSpec("Hypotenuse")
                 .In("x: float, y: float")
                 .Out("z: float")
                 .Attr("scale: float = 1.0")
                 .Elementwise()
                 .InferShape(MergedShape));
    kernels_.AddElementwise("Snake", {.type = DT_FLOAT, .unary = Snake, .cost_ns = 5});
    kernels_.AddElementwise("Hypotenuse",
                            {.type = DT_FLOAT, .binary = Hypotenuse, .attr = "scale"});
    return ops_;
  }

  Tensors Run(const Outputs& fetches, const Feeds& feeds, bool fuse,
              std::vector<NodeTrace>* trace) {
    SessionOptions options{.kernels = &kernels_};
    if (!fuse) options.disable = {"fusion"};
    Session session = *Session::Create(g_, options);
    auto out = session.Run(feeds, fetches, {}, {.trace = trace});
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? *out : Tensors(fetches.size());
  }

  OpRegistry ops_;
  KernelRegistry kernels_;
  Graph g_;
};

TEST_F(UserOps, AreFusedWithTheirNeighbors) {
  const Output x = Placeholder(g_, DT_FLOAT, {3000});
  const Output snake = AddOp("Snake", {x * 2.f});
  const Output y = Sqrt(AddOp("Hypotenuse", {snake, x}, {{"scale", 3.f}}) + 1.f);
  Tensor values(DT_FLOAT, {3000});
  for (int i = 0; i < 3000; ++i) values.data<float>()[i] = 0.01f * static_cast<float>(i) - 15;

  std::vector<NodeTrace> fused, single;
  const Tensors out = Run({y}, {{x, values}}, true, &fused);
  const Tensors expected = Run({y}, {{x, values}}, false, &single);
  EXPECT_THAT(fused,
              ElementsAre(Field(&NodeTrace::fused_ops,
                                ElementsAre("Mul", "Snake", "Hypotenuse", "AddV2", "Sqrt"))));
  EXPECT_THAT(single, Contains(Field(&NodeTrace::op, "Snake")));
  for (int i = 0; i < 3000; ++i) {
    EXPECT_EQ(out[0].data<float>()[i], expected[0].data<float>()[i]) << i;
    const float x2 = values.data<float>()[i] * 2, sine = std::sin(x2);
    EXPECT_NEAR(out[0].data<float>()[i],
                std::sqrt(3 * std::hypot(x2 + sine * sine, values.data<float>()[i]) + 1), 1e-4);
  }
}

// A user's function never takes the place of a built-in op of that name, nor the other way round.
TEST_F(UserOps, ReplaceBuiltInOnesInFusedNodes) {
  kernels_.AddElementwise("Exp", {.type = DT_FLOAT, .unary = Snake});
  const Output x = Placeholder(g_, DT_FLOAT, {4});
  const Output y = Sqrt(Exp(x) * 2.f);
  const Tensor values = Tensor::Vector<float>({0.5f, 1, 2, 3});
  std::vector<NodeTrace> trace;
  const Tensors out = Run({y}, {{x, values}}, true, &trace);
  const Tensors expected = Run({y}, {{x, values}}, false, nullptr);
  for (int i = 0; i < 4; ++i) {
    const float v = values.data<float>()[i], sine = std::sin(v);
    EXPECT_EQ(out[0].data<float>()[i], expected[0].data<float>()[i]);
    EXPECT_NEAR(out[0].data<float>()[i], std::sqrt(2 * (v + sine * sine)), 1e-5);
  }
}

TEST_F(UserOps, AreCosted) {
  const Output x = Placeholder(g_, DT_FLOAT, {3000});
  const Output y = AddOp("Snake", {x});
  std::vector<NodeTrace> trace;
  Run({y}, {{x, Tensor(DT_FLOAT, {3000})}}, true, &trace);
  ASSERT_EQ(trace.size(), 1u);
  const NodeCost cost = CostOf(trace[0], g_.FindNode(trace[0].node));
  EXPECT_TRUE(cost.knows_flops);
  EXPECT_EQ(cost.flops, 3000);
  EXPECT_EQ(cost.bytes, 2 * 3000 * sizeof(float));
}

// One op may have a function for each of several types; other types keep their kernels.
TEST_F(UserOps, AreChosenByType) {
  kernels_.AddElementwise("Exp", {.type = DT_FLOAT, .unary = Snake});
  const Output x = Placeholder(g_, DT_DOUBLE, {2}), y = Placeholder(g_, DT_FLOAT, {2});
  Session session = *Session::Create(g_, {.kernels = &kernels_});
  const auto out = session.Run(
      {{x, Tensor::Vector<double>({0, 1})}, {y, Tensor::Vector<float>({0, 1})}}, {Exp(x), Exp(y)});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_DOUBLE_EQ((*out)[0].data<double>()[1], std::exp(1.));
  EXPECT_FLOAT_EQ((*out)[1].data<float>()[1], 1 + std::sin(1.f) * std::sin(1.f));
}

// An op that checks its input is run, although it returns its input.
TEST_F(UserOps, WithChecksAreNotRemoved) {
  ops_.Add(OpSpec("CheckPositive")
               .In("x: float")
               .Out("y: float")
               .Moves(Movement::kIdentity)
               .Has(Effect::kChecks)
               .InferShape(SameShape));
  kernels_.Add(
      "CheckPositive", kCpu, +[](KernelContext& c) -> absl::Status {
        c.SetOutput(0, c.input(0));
        return c.input(0).scalar<float>() > 0 ? absl::OkStatus() : InvalidArgument("not positive");
      });
  const Output x = Placeholder(g_, DT_FLOAT, {});
  const Output y = AddOp("CheckPositive", {x}) * 2.f;
  Session session = *Session::Create(g_, {.kernels = &kernels_});
  EXPECT_TRUE(session.Run({{x, Tensor::Scalar(1.f)}}, {y}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(session.Run({{x, Tensor::Scalar(-1.f)}}, {y}).status()));
}

TEST_F(UserOps, RefuseOtherShapesAndTypes) {
  const Output x = Placeholder(g_, DT_FLOAT, Shape::UnknownRank()),
               y = Placeholder(g_, DT_FLOAT, Shape::UnknownRank());
  const Output z = AddOp("Hypotenuse", {x, y});
  Session session = *Session::Create(g_, {.kernels = &kernels_});
  const auto run = [&](const Tensor& a, const Tensor& b) {
    return session.Run({{x, a}, {y, b}}, {z});
  };
  const auto scalar = run(Tensor::Vector<float>({3, 6}), Tensor::Scalar(4.f));
  ASSERT_TRUE(scalar.ok()) << scalar.status();
  EXPECT_FLOAT_EQ((*scalar)[0].data<float>()[0], 5);
  EXPECT_FLOAT_EQ((*scalar)[0].data<float>()[1], std::hypot(6.f, 4.f));
  const auto refused = run(Tensor::Vector<float>({3, 6}), Tensor::Vector<float>({1, 2, 3}));
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status()));
  EXPECT_THAT(std::string(refused.status().message()), testing::HasSubstr("Incompatible shapes"));
}

}  // namespace
}  // namespace weir::tools
