#include "weir/ops/framework/mirrored_variable.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/state.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/random/random.h"
#include "weir/tests/evaluate.h"

namespace weir {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Aggregation = VariableAggregation;
constexpr auto kOnRead = VariableSynchronization::kOnRead;

std::vector<std::string> Names(const Variables& variables) {
  std::vector<std::string> names;
  for (const Variable& v : variables) names.push_back(v.name());
  return names;
}

class MirroredVariables : public testing::TestWithParam<bool> {
 protected:
  MirroredVariables() : g({.use_resource = GetParam()}) {}
  ~MirroredVariables() override { EXPECT_TRUE(g.status().ok()) << g.status(); }

  Variable Make(const Initializer& value, const VariableOptions& options = {}) {
    VariableOptions named = options;
    if (named.name.empty()) named.name = "w";
    return MakeMirroredVariable(g, value, {"/cpu:0", "/cpu:1"}, named);
  }
  // Built for one replica.
  Output In(int replica, const std::function<Output()>& build) {
    const ReplicaScope scope(g, replica, absl::StrCat("/cpu:", replica));
    return build();
  }
  std::vector<float> Values(Output x) {
    EXPECT_TRUE(g.status().ok()) << g.status();
    const absl::StatusOr<Tensors> out = Evaluate(g, {x}, &state);
    EXPECT_TRUE(out.ok()) << out.status();
    if (!out.ok()) return {};
    return {(*out)[0].flat<float>().begin(), (*out)[0].flat<float>().end()};
  }
  // The first element of each copy.
  std::vector<float> Copies(const Variable& v) {
    std::vector<float> values;
    for (const Variable& copy : v.replicas()) values.push_back(Values(copy)[0]);
    return values;
  }
  void Initialize() {
    ASSERT_TRUE(EvaluateTargets(g, {GlobalVariablesInitializer(g)}, &state).ok());
  }
  void ExpectInvalid(const std::string& part) {
    const absl::Status status = g.TakeStatus();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
    EXPECT_THAT(std::string(status.message()), HasSubstr("w"));
  }

  Graph g;
  ResourceMap state;
};
INSTANTIATE_TEST_SUITE_P(Kinds, MirroredVariables, testing::Bool(),
                         [](const auto& info) { return info.param ? "Resource" : "Ref"; });

TEST_P(MirroredVariables, EachDeviceHasACopyAndCollectionsHaveTheVariableOnce) {
  const Variable w = Make({1.0, 2.0});
  EXPECT_EQ(w.name(), "w:0");
  EXPECT_THAT(Names(w.replicas()), ElementsAre("w:0", "w/replica_1:0"));
  EXPECT_EQ(w.replicas()[0].device(), "/device:CPU:0");
  EXPECT_EQ(w.replicas()[1].device(), "/device:CPU:1");
  EXPECT_THAT(Names(GlobalVariables(g)), ElementsAre("w:0"));
  EXPECT_THAT(Names(TrainableVariables(g)), ElementsAre("w:0"));
  EXPECT_EQ(GlobalVariables(g)[0], w);
  EXPECT_EQ(FindVariable(g, w.handle().node), w);
  EXPECT_NE(w, w.replicas()[0]);
  EXPECT_TRUE(w.replicas()[1].trainable());
}

TEST_P(MirroredVariables, CopiesStartEqualEvenIfRandom) {
  const Variable w = Make([this] { return RandomUniform(g, {1}); });
  const Output ready = w.is_initialized();
  ASSERT_FALSE((*Evaluate(g, {ready}, &state))[0].scalar<bool>());
  Initialize();
  ASSERT_TRUE((*Evaluate(g, {ready}, &state))[0].scalar<bool>());
  EXPECT_THAT(Copies(w), Each(Values(w)[0]));
}

TEST_P(MirroredVariables, WritesReachAllCopies) {
  const Variable w = Make({1.0});
  const Output set = w.Assign({5.0}), add = w.AssignAdd({2.0});
  const Operation only = w.AssignSub({1.0}, {.read_value = false});
  Initialize();
  EXPECT_THAT(Values(set), ElementsAre(5));
  EXPECT_THAT(Copies(w), ElementsAre(5, 5));
  EXPECT_THAT(Values(add), ElementsAre(7));
  EXPECT_THAT(Copies(w), ElementsAre(7, 7));
  EXPECT_TRUE(EvaluateTargets(g, {only}, &state).ok());
  EXPECT_THAT(Copies(w), ElementsAre(6, 6));
}

TEST_P(MirroredVariables, ReadsUseTheLocalCopy) {
  const Variable w = Make({1.0});
  const Output change = w.replicas()[1].Assign({9.0});
  const Output outside = Identity(w);
  const Output first = In(0, [&] { return Identity(w); });
  const Output second = In(1, [&] { return Identity(w.read_value()); });
  Initialize();
  Values(change);
  EXPECT_THAT(Values(outside), ElementsAre(1));
  EXPECT_THAT(Values(first), ElementsAre(1));
  EXPECT_THAT(Values(second), ElementsAre(9));
}

TEST_P(MirroredVariables, ValuesOfReplicasAreAggregated) {
  const struct {
    Aggregation aggregation;
    float want;
  } rows[] = {
      {Aggregation::kSum, 10}, {Aggregation::kMean, 5}, {Aggregation::kOnlyFirstReplica, 8}};
  for (const auto& row : rows) {
    const Variable w = Make({1.0}, {.aggregation = row.aggregation});
    const Output written = AssignPerReplica(w, {{8.0}, {2.0}});
    Initialize();
    EXPECT_THAT(Values(written), ElementsAre(row.want));
    EXPECT_THAT(Copies(w), Each(row.want));
  }
}

TEST_P(MirroredVariables, WithoutAggregationValuesMustBeTheSame) {
  const Variable w = Make({1.0});
  EXPECT_FALSE(AssignPerReplica(w, {{8.0}, {2.0}}).valid());
  ExpectInvalid("You must specify an aggregation method");
  const Output same = Const(g, {3.f});
  const Output written = AssignPerReplica(w, {same, same});
  Initialize();
  EXPECT_THAT(Values(written), ElementsAre(3));
  EXPECT_THAT(Copies(w), ElementsAre(3, 3));
}

TEST_P(MirroredVariables, ImpossibleOptionsAreInvalid) {
  const Variable w = Make({1.0});
  EXPECT_FALSE(In(1, [&] { return w.Assign({2.0}); }).valid());
  ExpectInvalid("cannot be written inside a replica");
  EXPECT_FALSE(In(2, [&] { return w.value(); }).valid());
  ExpectInvalid("no copy for replica 2");
  EXPECT_FALSE(AssignPerReplica(w, {{8.0}}).valid());
  ExpectInvalid("2 replicas, but 1 values");
  EXPECT_FALSE(In(0, [&] { return AssignPerReplica(w, {{8.0}, {8.0}}); }).valid());
  ExpectInvalid("outside of the replicas");
  EXPECT_FALSE(
      w.ScatterAdd({.values = Const(g, {1.f}), .indices = Const<int32_t>(g, {0})}).valid());
  ExpectInvalid("apply it to its replicas()");
  EXPECT_FALSE(MakeMirroredVariable(g, {1.0}, {}, {.name = "w"}).valid());
  ExpectInvalid("at least one device is required");
  EXPECT_FALSE(Make({1.0}, {.synchronization = VariableSynchronization::kNone}).valid());
  ExpectInvalid("kNone is not supported");
  EXPECT_FALSE(Make({1.0}, {.trainable = true, .synchronization = kOnRead}).valid());
  ExpectInvalid("non-trainable");
}

TEST_P(MirroredVariables, OnReadReplicasWriteTheirOwnCopyAndReadsAggregate) {
  const struct {
    Aggregation aggregation;
    float want, share;
  } rows[] = {{Aggregation::kSum, 12, 3},
              {Aggregation::kMean, 6, 6},
              {Aggregation::kOnlyFirstReplica, 4, 6}};
  for (const auto& row : rows) {
    const Variable w = Make({1.0}, {.synchronization = kOnRead, .aggregation = row.aggregation});
    EXPECT_FALSE(w.trainable());
    const Output first = In(0, [&] { return w.AssignAdd({3.0}); });
    const Output second = In(1, [&] { return w.Assign({8.0}); });
    const Output local = In(1, [&] { return Identity(w); });
    const Output whole = Identity(w);
    const Output set = w.Assign({6.0});
    Initialize();
    EXPECT_THAT(Values(first), ElementsAre(4));
    EXPECT_THAT(Values(second), ElementsAre(8));
    EXPECT_THAT(Values(local), ElementsAre(8));
    EXPECT_THAT(Values(whole), ElementsAre(row.want));
    EXPECT_THAT(Values(set), ElementsAre(6)) << "whatever was written is read";
    EXPECT_THAT(Copies(w), Each(row.share));
  }
}

TEST_P(MirroredVariables, OnReadWithoutAggregationHasNoAggregatedValue) {
  const Variable w = Make({1.0}, {.synchronization = kOnRead});
  EXPECT_FALSE(w.value().valid());
  ExpectInvalid("You must specify an aggregation method");
  EXPECT_FALSE(w.Assign({1.0}).valid());
  ExpectInvalid("other than kNone");
  EXPECT_FALSE(w.AssignAdd({1.0}).valid());
  ExpectInvalid("only Assign");
  const Output written = AssignPerReplica(w, {{3.0}, {4.0}}, {.read_value = false});
  Initialize();
  EXPECT_TRUE(EvaluateTargets(g, {written}, &state).ok());
  EXPECT_THAT(Copies(w), ElementsAre(3, 4));
}

}  // namespace
}  // namespace weir
