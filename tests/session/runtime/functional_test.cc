// Functions applied row by row.

#include "weir/ops/containers/functional.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/framework/variable_scope.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/dynamic_rnn.h"
#include "weir/session/session.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FunctionalTest : public ::testing::Test {
 protected:
  absl::StatusOr<Tensors> Try(const Outputs& fetches, const Feeds& feeds = {}) {
    if (!g_.status().ok()) return g_.status();
    Session session = *Session::Create(g_, {.num_threads = 2});
    return session.Run(feeds, fetches);
  }
  std::vector<float> Floats(const Output& fetch, const Feeds& feeds = {}) {
    const auto out = Try({fetch}, feeds);
    EXPECT_TRUE(out.ok()) << out.status();
    if (!out.ok()) return {};
    return {(*out)[0].flat<float>().begin(), (*out)[0].flat<float>().end()};
  }
  static Outputs Add(const Outputs& sum, const Outputs& row) { return {sum[0] + row[0]}; }

  Graph g_;
};

TEST_F(FunctionalTest, MapsEachRow) {
  const Output x = Const<float>(g_, {3, 2}, {1, 2, 3, 4, 5, 6});
  const Output scale = Const(g_, {10.f, 20.f, 30.f});
  const Outputs y = MapFn([](const Outputs& r) { return Outputs{r[0] * r[1], r[1]}; }, {x, scale});
  ASSERT_EQ(y.size(), 2u);
  EXPECT_EQ(y[0].dim(0), 3);
  EXPECT_THAT(Floats(y[0]), ElementsAre(10, 20, 60, 80, 150, 180));
  EXPECT_THAT(Floats(y[1]), ElementsAre(10, 20, 30));
  EXPECT_THAT(Floats(DenseGradients({y[0]}, {scale})[0]), ElementsAre(3, 7, 11));
}

TEST_F(FunctionalTest, MapsAnUnknownNumberOfRows) {
  const Output x = Placeholder(g_, DT_FLOAT, {-1});
  const Outputs y = MapFn([&](const Outputs& r) { return Outputs{Cast(r[0], DT_INT32)}; }, {x},
                          {.dtypes = DataTypes{DT_INT32}});
  const auto out = Try(y, {{x, Tensor::Vector<float>({1.5f, 2.5f, 3.5f, 4.5f})}});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT((*out)[0].flat<int32_t>(), ElementsAre(1, 2, 3, 4));
}

TEST_F(FunctionalTest, ScansFromAnInitializerOrTheFirstRow) {
  const Output x = Const(g_, {1.f, 2.f, 3.f, 4.f});
  const Output start = Const(g_, 10.f);
  EXPECT_THAT(Floats(Scan(Add, {x}, {start})[0]), ElementsAre(11, 13, 16, 20));
  EXPECT_THAT(Floats(Scan(Add, {x}, {})[0]), ElementsAre(1, 3, 6, 10));
  EXPECT_THAT(Floats(Scan(Add, {x}, {start}, {.reverse = true})[0]), ElementsAre(20, 19, 17, 14));
  EXPECT_THAT(Floats(Scan(Add, {x}, {}, {.reverse = true})[0]), ElementsAre(10, 9, 7, 4));
}

TEST_F(FunctionalTest, ScansOfUnknownLengthHaveGradients) {
  const Output x = Placeholder(g_, DT_FLOAT, {-1}), start = Const(g_, 1.f);
  const Output products = Scan(
      [](const Outputs& p, const Outputs& r) { return Outputs{p[0] * r[0]}; }, {x}, {start})[0];
  const Feeds feeds = {{x, Tensor::Vector<float>({2, 3, 4})}};
  EXPECT_THAT(Floats(products, feeds), ElementsAre(2, 6, 24));
  // 2 + 2 * 3 + 2 * 3 * 4 with respect to each factor
  EXPECT_THAT(Floats(DenseGradients({products}, {x})[0], feeds), ElementsAre(16, 10, 6));
}

TEST_F(FunctionalTest, CaseTakesTheFirstTruePredicate) {
  const Output n = Placeholder(g_, DT_INT32, {});
  const auto gives = [this](float value) {
    return [this, value] { return Outputs{Const(g_, value)}; };
  };
  const Outputs first = Case({{n < 10, gives(1)}, {n < 20, gives(2)}}, gives(3));
  const Outputs only =
      Case({{n < 10, gives(1)}, {n > 20, gives(2)}}, gives(3), {.exclusive = true});
  const Outputs both =
      Case({{n < 10, gives(1)}, {n < 20, gives(2)}}, gives(3), {.exclusive = true});
  for (const auto& [value, a, b] : {std::tuple(5, 1.f, 1.f), {15, 2.f, 3.f}, {25, 3.f, 2.f}}) {
    const Feeds feeds = {{n, Tensor::Scalar<int32_t>(value)}};
    EXPECT_THAT(Floats(first[0], feeds), ElementsAre(a));
    EXPECT_THAT(Floats(only[0], feeds), ElementsAre(b));
  }
  const absl::Status s = Try(both, {{n, Tensor::Scalar<int32_t>(5)}}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
  EXPECT_THAT(s.message(), HasSubstr("more than 1 conditions"));
}

TEST_F(FunctionalTest, RecurrentNetworksRunTheirCellOncePerStep) {
  const Output x = Const<float>(g_, {2, 3, 1}, {1, 2, 3, 4, 5, 6});
  const Output lengths = Const(g_, {3, 1}), zero = Zeros(g_, {2, 1});
  const RnnCell sums = [](const Output& input, const Outputs& state) {
    const Output sum = state[0] * 2.f + input;
    return RnnStep{sum, {sum}};
  };
  const RnnStep all = DynamicRnn(sums, x, {zero});
  EXPECT_THAT(Floats(all.output), ElementsAre(1, 4, 11, 4, 13, 32));
  EXPECT_THAT(Floats(all.state[0]), ElementsAre(11, 32));
  EXPECT_THAT(Floats(DenseGradients({all.state[0]}, {x})[0]), ElementsAre(4, 2, 1, 4, 2, 1));
  const RnnStep some = DynamicRnn(sums, x, {zero}, {.sequence_length = lengths});
  EXPECT_THAT(Floats(some.output), ElementsAre(1, 4, 11, 4, 0, 0));
  EXPECT_THAT(Floats(some.state[0]), ElementsAre(11, 4));
  EXPECT_THAT(Floats(DenseGradients({some.state[0]}, {x})[0]), ElementsAre(4, 2, 1, 1, 0, 0));
}

// The cell in a loop, and once more unrolled, with the same variables.
TEST_F(FunctionalTest, LstmCellsShareTheirVariables) {
  const Output x = Const<float>(g_, {1, 3, 2}, {1, -1, 0.5f, 2, -2, 1}), zero = Zeros(g_, {1, 4});
  const RnnCell cell = BasicLstmCell(4);
  const RnnStep looped = DynamicRnn(cell, x, {zero, zero});
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  RnnStep step{{}, {zero, zero}};
  {
    const VariableScope shared(g_, "rnn", Reuse::kReuse);
    for (int i = 0; i < 3; ++i) step = cell(StridedSlice(x, {Index::All(), i}), step.state);
  }
  const Operation init = GlobalVariablesInitializer(g_);
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  Session session = *Session::Create(g_);
  ASSERT_TRUE(session.Run(init).ok());
  const auto out = session.Run({looped.state[0], looped.state[1], step.state[0], step.state[1]});
  ASSERT_TRUE(out.ok()) << out.status();
  for (int k = 0; k < 4; ++k) {
    EXPECT_NEAR((*out)[0].flat<float>()[k], (*out)[2].flat<float>()[k], 1e-6);
    EXPECT_NEAR((*out)[1].flat<float>()[k], (*out)[3].flat<float>()[k], 1e-6);
  }
}

TEST_F(FunctionalTest, RejectsInvalidRows) {
  MapFn([](const Outputs& r) { return r; }, {Const(g_, 1.f)});
  EXPECT_THAT(g_.TakeStatus().message(), HasSubstr("1+ dimensional"));
  Scan(Add, {Const(g_, {1.f, 2.f}), Const(g_, {1.f})}, {Const(g_, 0.f)});
  EXPECT_THAT(g_.TakeStatus().message(), HasSubstr("not compatible"));
  MapFn([](const Outputs&) { return Outputs(); }, {Const(g_, {1.f})});
  EXPECT_THAT(g_.TakeStatus().message(), HasSubstr("returned 0 tensors"));
}

}  // namespace
}  // namespace weir
