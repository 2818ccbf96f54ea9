#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array.h"
#include "weir/tests/evaluate.h"
#include "weir/tests/kernels/lib/answers.h"
#include "weir/tests/kernels/lib/recorded.h"

// Random choices from a key and a counter ("StatelessShuffle", "StochasticCastToInt"): the draws
// are TensorFlow's.
namespace weir {
namespace {

TEST(Draws, MatchTensorFlow) { ExpectAnswers("tests/kernels/golden/draws_answers.txt", 20, 0); }

TEST(Draws, RejectKeysAndAlgorithms) {
  const Tensor x = Tensor::Vector<float>({1.5f, 2.5f});
  const Tensor key = Tensor::Vector<uint64_t>({1}), counter = Tensor::Vector<uint64_t>({0, 0});
  const Tensor philox = Tensor::Scalar<int32_t>(1);
  const Attrs to_int = {{"Tout", DT_INT32}};
  recorded::ExpectRejections({
      {"StatelessShuffle",
       {x, key, counter, Tensor::Scalar<int32_t>(7)},
       {},
       "Unsupported algorithm"},
      {"StatelessShuffle", {x, counter, counter, philox}, {}, "key must have shape [1]"},
      {"StochasticCastToInt", {x, key, key, philox}, to_int, "at least 2 elements"},
  });
}

// The number of the algorithm is in the variable, and not an input.
TEST(Draws, StatefulStandardNormalIsThatOfVersionTwo) {
  std::vector<Tensor> drawn, states;
  for (const bool tagged : {true, false}) {
    Graph g;
    g.versions().producer = 28;
    const std::vector<int64_t> state =
        tagged ? std::vector<int64_t>{1, 5, 0, 42} : std::vector<int64_t>{5, 0, 42};
    const Output handle = Output(
        AddNode(g, "VarHandleOp", {}, {{"dtype", DT_INT64}, {"shape", Shape::UnknownRank()}}));
    Node* const assign =
        AddNode("AssignVariableOp", {handle, Const(g, Tensor::Vector<int64_t>(state))});
    const Output shape = Const(g, Tensor::Vector<int64_t>({7}));
    const Output numbers =
        tagged ? AddOp("StatefulStandardNormal", {handle, shape})
               : AddOp("StatefulStandardNormalV2", {handle, Const(g, int64_t{1}), shape});
    ASSERT_TRUE(g.status().ok()) << g.status();
    ResourceMap resources;
    ASSERT_TRUE(EvaluateTargets(g, {Operation(assign)}, &resources).ok());
    const auto out = Evaluate(g, {numbers}, &resources);
    ASSERT_TRUE(out.ok()) << out.status();
    drawn.push_back((*out)[0]);
    const auto after =
        Evaluate(g, {AddOp("ReadVariableOp", {handle}, {{"dtype", DT_INT64}})}, &resources);
    ASSERT_TRUE(after.ok()) << after.status();
    states.push_back((*after)[0]);
  }
  EXPECT_THAT(drawn[0].flat<float>(), testing::ElementsAreArray(drawn[1].flat<float>()));
  EXPECT_THAT(states[0].flat<int64_t>().subspan(1),
              testing::ElementsAreArray(states[1].flat<int64_t>()));
  EXPECT_NE(states[1].data<int64_t>()[0], 5);
}

}  // namespace
}  // namespace weir
