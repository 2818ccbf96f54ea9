#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/session.h"

// Outputs that nothing uses: kernels that cost per output do not compute them.
namespace weir {
namespace {

using ::testing::ElementsAre;

// Which outputs of the node of this op the step has computed.
std::vector<bool> ComputedOutputs(const std::vector<NodeTrace>& trace, const std::string& op) {
  std::vector<bool> computed;
  for (const NodeTrace& node : trace) {
    if (node.op != op) continue;
    for (const NodeTrace::Value& value : node.outputs)
      computed.push_back(value.dtype != DT_INVALID);
  }
  return computed;
}

TEST(UsedOutputs, AreTheOnlyOnesThatAreComputed) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {2, 3});
  const Outputs columns = Unstack(x, 1), halves = Split(x, 2, 0);
  Session session = *Session::Create(g, {.num_threads = 1});
  const Feeds feeds = {{x, Tensor::Of<float>(Shape({2, 3}), {1, 2, 3, 4, 5, 6})}};

  std::vector<NodeTrace> trace;
  const auto one = session.Run(feeds, {columns[2]}, {}, {.trace = &trace});
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_THAT((*one)[0].flat<float>(), ElementsAre(3, 6));
  EXPECT_THAT(ComputedOutputs(trace, "Unpack"), ElementsAre(false, false, true));

  // The same node in other steps.
  trace.clear();
  const auto others =
      session.Run(feeds, {columns[0], columns[1], halves[0]}, {}, {.trace = &trace});
  ASSERT_TRUE(others.ok()) << others.status();
  EXPECT_THAT((*others)[0].flat<float>(), ElementsAre(1, 4));
  EXPECT_THAT((*others)[1].flat<float>(), ElementsAre(2, 5));
  EXPECT_THAT((*others)[2].flat<float>(), ElementsAre(1, 2, 3));
  EXPECT_THAT(ComputedOutputs(trace, "Unpack"), ElementsAre(true, true, false));
  EXPECT_THAT(ComputedOutputs(trace, "Split"), ElementsAre(true, false));
}

// Arguments are checked although nothing is computed.
TEST(UsedOutputs, DoNotChangeErrors) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT);
  const Outputs columns = Unstack(x, 1, 3);
  Session session = *Session::Create(g, {});
  const absl::Status status =
      session.Run(Feeds{{x, Tensor::Zeros(DT_FLOAT, Shape({2, 4}))}}, {columns[0]}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
}

}  // namespace
}  // namespace weir
