#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/session.h"

// Powers with constant exponents: the ops that a traced step runs instead, and what they return.
namespace weir {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class ReduceStrength : public testing::Test {
 protected:
  // Returns how often each op runs, without fusion; stores the value of y in value_.
  std::map<std::string, int> OpsFor(const Output& y, std::set<std::string> disable = {}) {
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    disable.insert("fusion");
    Session session = *Session::Create(g_, {.disable = std::move(disable)});
    std::vector<NodeTrace> trace;
    const auto out = session.Run(feeds_, {y}, {}, {.trace = &trace});
    EXPECT_TRUE(out.ok()) << out.status();
    if (out.ok()) value_ = (*out)[0];
    std::map<std::string, int> ops;
    for (const NodeTrace& node : trace) ++ops[node.op];
    return ops;
  }
  Output Input(const Tensor& value) {
    const Output x = Placeholder(g_, value.dtype(), value.shape());
    feeds_.emplace_back(x, value);
    return x;
  }

  Graph g_;
  Feeds feeds_;
  Tensor value_;
};

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST_F(ReduceStrength, EachExponentHasItsOps) {
  const Tensor fed = Tensor::Vector<float>(
      {0.5f, 1.7f, 3, 1e-9f, 1e9f, 3e-20f, 1e19f, 7e-7f, 2e12f, 1, 0, kInf, NAN});
  const Output x = Input(fed);
  const std::pair<float, std::map<std::string, int>> expected[] = {
      {0, {{"OnesLike", 1}}}, {1, {}},
      {2, {{"Square", 1}}},   {3, {{"Square", 1}, {"Mul", 1}}},
      {4, {{"Square", 2}}},   {0.5, {{"Sqrt", 1}}},
      {-0.5, {{"Rsqrt", 1}}}, {-1, {{"Reciprocal", 1}}},
      {5, {{"Pow", 1}}},      {-2, {{"Reciprocal", 1}, {"Square", 1}}},
      {0.25, {{"Pow", 1}}},
  };
  for (const auto& [exponent, ops] : expected) {
    EXPECT_EQ(OpsFor(Pow(x, exponent)), ops) << exponent;
    for (int64_t i = 0; i < fed.num_elements(); ++i) {
      const float base = fed.data<float>()[i], got = value_.data<float>()[i];
      const double want = static_cast<float>(std::pow(static_cast<double>(base), exponent));
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(got)) << exponent;
      } else if (std::isinf(want) || want == 0) {
        EXPECT_EQ(got, want) << base << " " << exponent;
      } else if (std::abs(want) >= std::numeric_limits<float>::min()) {  // sessions flush others
        EXPECT_NEAR(got / want, 1, 2.4e-7) << base << " " << exponent;
      }
    }
  }
}

TEST_F(ReduceStrength, IsTurnedOffByName) {
  const Output x = Input(Tensor::Vector<float>({2, 3}));
  EXPECT_THAT(OpsFor(Pow(x, 3.f), {"reduce_strength"}), ElementsAre(Pair("Pow", 1)));
  EXPECT_EQ(value_.flat<float>()[1], 27);
}

TEST_F(ReduceStrength, ExponentsOfOneValueThatDoNotBroadcastX) {
  const Output row = Input(Tensor::Vector<float>({2, 3}));
  EXPECT_THAT(OpsFor(Pow(row, Const(g_, {2.f, 2.f}))), ElementsAre(Pair("Square", 1)));
  EXPECT_THAT(OpsFor(Pow(row, Const(g_, {2.f, 3.f}))), ElementsAre(Pair("Pow", 1)));
  EXPECT_EQ(value_.flat<float>()[1], 27);
  const Output number = Input(Tensor::Scalar(3.f));
  EXPECT_THAT(OpsFor(Pow(number, Const(g_, {2.f, 2.f}))), ElementsAre(Pair("Pow", 1)));
  EXPECT_EQ(value_.shape(), Shape({2}));
  EXPECT_EQ(value_.flat<float>()[1], 9);
}

TEST_F(ReduceStrength, OtherTypes) {
  const Output i = Input(Tensor::Vector<int32_t>({-3, 70000}));
  EXPECT_THAT(OpsFor(Pow(i, 3)), UnorderedElementsAre(Pair("Square", 1), Pair("Mul", 1)));
  EXPECT_EQ(value_.flat<int32_t>()[0], -27);
  EXPECT_EQ(value_.flat<int32_t>()[1], static_cast<int32_t>(343000000000000u));
  const Output d = Input(Tensor::Vector<double>({-3}));
  EXPECT_THAT(OpsFor(Pow(d, 4.)), ElementsAre(Pair("Square", 2)));
  EXPECT_EQ(value_.flat<double>()[0], 81);
  // A 16-bit float is rounded no more often than in TensorFlow.
  const Output h = Input(Tensor::Vector<half>({half(3.f)}));
  EXPECT_THAT(OpsFor(Pow(h, Const(g_, half(4.f)))), ElementsAre(Pair("Pow", 1)));
  EXPECT_THAT(OpsFor(Pow(h, Const(g_, half(2.f)))), ElementsAre(Pair("Square", 1)));
  EXPECT_EQ(static_cast<float>(value_.flat<half>()[0]), 9);
}

// The gradient of x^3 is 3 x^2: both powers share the square.
TEST_F(ReduceStrength, GradientsShareTheSquare) {
  const Output x = Input(Tensor::Vector<float>({2, 3}));
  const Output y = Pow(x, 3.f), dx = DenseGradients({y}, {x})[0];
  const std::map<std::string, int> ops = OpsFor(y + dx);
  EXPECT_THAT(ops, Contains(Pair("Square", 1)));
  EXPECT_THAT(ops, Not(Contains(Pair("Pow", testing::_))));
  EXPECT_EQ(value_.flat<float>()[0], 8 + 12);
  EXPECT_EQ(value_.flat<float>()[1], 27 + 27);
}

TEST_F(ReduceStrength, InBranchesAndLoops) {
  const Output x = Input(Tensor::Scalar(2.f));
  const Output branch = Cond(
      Greater(x, 0.f), [&] { return Pow(x, 3.f); }, [&] { return Pow(x, 2.f) + 1.f; });
  const Outputs loop =
      WhileLoop([](const Outputs& v) { return Less(v[0], 100.f); },
                [](const Outputs& v) { return Outputs{Pow(v[0], 3.f) + 1.f}; }, {x});
  OpsFor(branch + loop[0]);
  EXPECT_EQ(value_.scalar<float>(), 8 + 730);
  feeds_[0].second = Tensor::Scalar(-3.f);
  OpsFor(branch);
  EXPECT_EQ(value_.scalar<float>(), 10);
}

}  // namespace
}  // namespace weir
