#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/framework/mirrored_variable.h"
#include "weir/ops/framework/variables.h"
#include "weir/session/model/saver.h"
#include "weir/tests/io/test_files.h"

namespace weir {
namespace {

using ::testing::ElementsAre;

class MirroredSaver : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Kinds, MirroredSaver, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Resource" : "Ref"; });

TEST_P(MirroredSaver, CheckpointsHaveTheVariableOnceAndRestoreAllCopies) {
  Graph g({.use_resource = GetParam()});
  const auto make = [&g](const Initializer& value, const VariableOptions& options) {
    return MakeMirroredVariable(g, value, {"/cpu:0", "/cpu:1"}, options);
  };
  const Variable w = make({1.0}, {.name = "w"}),
                 sum = make({0.0}, {.name = "sum",
                                    .synchronization = VariableSynchronization::kOnRead,
                                    .aggregation = VariableAggregation::kSum});
  const Output set = w.Assign({5.0}), count = AssignPerReplica(sum, {{3.0}, {4.0}});
  absl::StatusOr<Saver> saver = Saver::Create(g);
  ASSERT_TRUE(saver.ok()) << saver.status();
  const Operation init = GlobalVariablesInitializer(g);
  absl::StatusOr<Session> session = Session::Create(g);
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(session->Run(init).ok());
  ASSERT_TRUE(session->Run({set, count}).ok());
  const std::string path = testing::MakeTempDirectory("mirrored") + "/m";
  const auto saved = saver->Save(*session, path);
  ASSERT_TRUE(saved.ok()) << saved.status();

  // A program without replicas reads the same file.
  Graph plain_graph;
  const Variable plain = MakeVariable(plain_graph, {0.0}, {.name = "w"});
  const Variable plain_sum = MakeVariable(plain_graph, {0.0}, {.name = "sum"});
  absl::StatusOr<Saver> plain_saver = Saver::Create(plain_graph);
  absl::StatusOr<Session> plain_session = Session::Create(plain_graph);
  ASSERT_TRUE(plain_saver->Restore(*plain_session, path).ok());
  const auto plain_values = plain_session->Run({plain.value(), plain_sum.value()});
  ASSERT_TRUE(plain_values.ok()) << plain_values.status();
  EXPECT_EQ((*plain_values)[0].data<float>()[0], 5);
  EXPECT_EQ((*plain_values)[1].data<float>()[0], 7);

  ASSERT_TRUE(session->Run(init).ok());
  ASSERT_TRUE(saver->Restore(*session, path).ok());
  std::vector<float> values;
  for (const Variable& v : {w, sum}) {
    for (const Variable& copy : v.replicas()) {
      const auto value = session->Run({copy.value()});
      ASSERT_TRUE(value.ok()) << value.status();
      values.push_back((*value)[0].data<float>()[0]);
    }
  }
  EXPECT_THAT(values, ElementsAre(5, 5, 3.5, 3.5));
}

// Fetches, also of aggregated copies and in a replica's scope, share one read.
TEST_P(MirroredSaver, FetchesAddNodesOnce) {
  Graph g({.use_resource = GetParam()});
  const std::vector<std::string> devices = {"/cpu:0", "/cpu:1"};
  const Variable w = MakeMirroredVariable(g, {1.0}, devices, {.name = "w"});
  const Variable sum = MakeMirroredVariable(g, {0.0}, devices,
                                            {.name = "sum",
                                             .synchronization = VariableSynchronization::kOnRead,
                                             .aggregation = VariableAggregation::kSum});
  const Output set = w.Assign({5.0}), count = AssignPerReplica(sum, {{3.0}, {4.0}});
  const Operation init = GlobalVariablesInitializer(g);
  Session session = *Session::Create(g);
  ASSERT_TRUE(session.Run(init).ok());
  ASSERT_TRUE(session.Run({set, count}).ok());
  int nodes = 0;
  for (int i = 0; i < 3; ++i) {
    const Tensors out = *session.Run({w, sum});
    EXPECT_EQ(out[0].flat<float>()[0], 5);
    EXPECT_EQ(out[1].flat<float>()[0], 7);
    const ReplicaScope scope(g, 1, devices[1]);
    EXPECT_EQ((*session.Run({sum}))[0].flat<float>()[0], 4);
    if (i == 0) nodes = g.num_nodes();
  }
  EXPECT_EQ(g.num_nodes(), nodes);
}

}  // namespace
}  // namespace weir
