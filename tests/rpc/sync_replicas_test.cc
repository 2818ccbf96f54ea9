// Workers that train one model together (session/train/sync_replicas.h), on a cluster of servers in
// this process. The losses are those that make_sync_replicas_losses.py prints with TensorFlow.

#include "weir/session/train/sync_replicas.h"

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/device_setter.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"
#include "weir/ops/train/optimizers.h"
#include "weir/session/train/monitored_session.h"
#include "weir/tests/rpc/local_cluster.h"

namespace weir::rpc {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;

// A worker's graph and its session.
class Worker {
 public:
  Worker(int index, const SyncReplicasOptions& options, bool use_resource)
      : index_(index), graph_({.use_resource = use_resource}) {
    const DeviceScope setter(
        graph_, ReplicaDeviceSetter(
                    {.ps_tasks = 2, .worker_device = absl::StrCat("/job:worker/task:", index)}));
    const Variable w = GetVariable(graph_, "w", {3}, Zeros()),
                   table = GetVariable(graph_, "table", {4, 2}, Ones());
    step_ = GetOrCreateGlobalStep(graph_);
    x_ = Placeholder(graph_, DT_FLOAT, {3});
    ids_ = Placeholder(graph_, DT_INT32, {2});
    const Output rows = EmbeddingLookup(table, ids_);
    loss_ = ReduceSum(Square(w - x_)) + 0.5f * ReduceSum(Square(rows));
    sync_ =
        std::make_unique<SyncReplicasOptimizer>(std::make_unique<GradientDescent>(0.1), options);
    train_ = sync_->Minimize(loss_, {.global_step = step_});
  }

  absl::Status Open(const std::string& target, std::optional<int> num_tokens = {}) {
    const bool is_chief = index_ == 0;
    auto session =
        MonitoredTrainingSession(graph_, {.hooks = {sync_->MakeSessionHook(is_chief, num_tokens)},
                                          .session = {.target = target},
                                          .is_chief = is_chief,
                                          .recheck_interval = std::chrono::milliseconds(20)});
    WEIR_RETURN_IF_ERROR(session.status());
    session_.emplace(*std::move(session));
    return absl::OkStatus();
  }

  // Runs a training step, and returns the loss before it.
  absl::StatusOr<float> Train(int round) {
    const auto k = static_cast<float>(index_);
    const Feeds feeds = {{x_, Tensor::Vector<float>({static_cast<float>(round) + k, 1, k / 2})},
                         {ids_, Tensor::Vector<int32_t>({index_, 3})}};
    WEIR_ASSIGN_OR_RETURN(const Tensors out, session_->Run(feeds, {loss_}, {train_}));
    return out[0].scalar<float>();
  }

  int64_t GlobalStep() {
    const auto out = (*session_->session())->Run({step_});
    return out.ok() ? (*out)[0].scalar<int64_t>() : -1;
  }
  MonitoredSession& session() { return *session_; }
  Graph& graph() { return graph_; }
  SyncReplicasOptimizer& sync() { return *sync_; }

 private:
  const int index_;
  Graph graph_;
  Variable step_;
  Output x_, ids_, loss_;
  Operation train_;
  std::unique_ptr<SyncReplicasOptimizer> sync_;
  std::optional<MonitoredSession> session_;
};

// The workers of a cluster, the first of which complete an update in each round; the backups then
// come too late.
class SyncReplicas : public ::testing::TestWithParam<bool> {
 protected:
  void Open(const SyncReplicasOptions& options, std::optional<int> num_tokens) {
    aggregate_ = options.replicas_to_aggregate;
    const int total = options.total_num_replicas > 0 ? options.total_num_replicas : aggregate_;
    cluster_ = std::make_unique<LocalCluster>(2, total);
    for (int i = 0; i < total; ++i) {
      workers_.push_back(std::make_unique<Worker>(i, options, GetParam()));
      const absl::Status opened = workers_[i]->Open(cluster_->target(i), num_tokens);
      ASSERT_TRUE(opened.ok()) << opened;
    }
  }

  std::vector<float> Round(int round) {
    std::vector<float> losses(workers_.size());
    const size_t first = std::min<size_t>(aggregate_, workers_.size());
    Together(0, first, round, &losses);
    Together(first, workers_.size(), round, &losses);
    return losses;
  }

  void Together(size_t begin, size_t end, int round, std::vector<float>* losses) {
    std::vector<std::thread> threads;
    for (size_t i = begin; i < end; ++i) {
      threads.emplace_back([this, i, round, losses] {
        const auto loss = workers_[i]->Train(round);
        EXPECT_TRUE(loss.ok()) << loss.status();
        (*losses)[i] = loss.value_or(-1);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  int aggregate_ = 0;
  std::unique_ptr<LocalCluster> cluster_;
  std::vector<std::unique_ptr<Worker>> workers_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, SyncReplicas, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Resource" : "Ref"; });

auto Near(float value) { return FloatNear(value, 2e-5f * value); }

TEST_P(SyncReplicas, AnUpdateAppliesTheMeanOfAllWorkers) {
  Open({.replicas_to_aggregate = 2}, 0);
  EXPECT_THAT(Round(0), ElementsAre(Near(3), Near(4.25)));
  EXPECT_THAT(Round(1), ElementsAre(Near(3.0725), Near(6.0725)));
  EXPECT_THAT(Round(2), ElementsAre(Near(4.3543), Near(8.754299)));
  EXPECT_THAT(Round(3), ElementsAre(Near(6.162326), Near(11.682327)));
  EXPECT_EQ(workers_[1]->GlobalStep(), 4);
}

TEST_P(SyncReplicas, TheGradientOfALateBackupIsDropped) {
  Open({.replicas_to_aggregate = 2, .total_num_replicas = 3}, 0);
  EXPECT_THAT(Round(0), ElementsAre(Near(3), Near(4.25), Near(6.9625)));
  EXPECT_THAT(Round(1), ElementsAre(Near(3.0725), Near(6.0725), Near(9.7582)));
  EXPECT_THAT(Round(2), ElementsAre(Near(4.3543), Near(8.754299), Near(12.778885)));
  EXPECT_THAT(Round(3), ElementsAre(Near(6.162326), Near(11.682327), Near(15.697012)));
  EXPECT_EQ(workers_[2]->GlobalStep(), 4);
}

TEST_P(SyncReplicas, OneWorkerComputesAllGradientsOfAnUpdate) {
  Open({.replicas_to_aggregate = 2, .total_num_replicas = 1}, 1);
  const float losses[] = {3, 4, 5.87, 10.670001, 13.4182, 21.2582};
  for (int round = 0; round < 6; ++round)
    EXPECT_THAT(Round(round), ElementsAre(Near(losses[round]))) << "round " << round;
  EXPECT_EQ(workers_[0]->GlobalStep(), 3);
}

TEST_P(SyncReplicas, TheEndOfTheChiefIsThatOfWorkersThatWait) {
  Open({.replicas_to_aggregate = 2}, 0);
  Round(0);
  absl::Status ended;
  std::thread waiter([&] { ended = workers_[1]->Train(1).status(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const absl::Status closed = workers_[0]->session().Close();
  EXPECT_TRUE(closed.ok()) << closed;
  waiter.join();
  EXPECT_TRUE(absl::IsOutOfRange(ended)) << ended;
  EXPECT_TRUE(workers_[1]->session().ShouldStop());
}

TEST_P(SyncReplicas, ALostServerIsReplacedAndTrainingGoesOn) {
  Open({.replicas_to_aggregate = 2}, 0);
  Round(0);
  Round(1);
  for (const int ps : {1, 0}) {
    cluster_->Stop({"ps", ps});
    std::thread restart([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      cluster_->Start({"ps", ps});
    });
    Round(0);  // no checkpoint: the chief initializes the variables
    restart.join();
    Round(1);
    EXPECT_GE(workers_[0]->GlobalStep(), 1);
  }
}

TEST(SyncReplicasErrors, AreRecordedInTheGraph) {
  const auto error = [](const SyncReplicasOptions& options, bool with_step, bool twice) {
    Graph g;
    const Variable w = GetVariable(g, "w", {3}, Zeros());
    SyncReplicasOptimizer sync(std::make_unique<GradientDescent>(0.1), options);
    const Variable step = with_step ? CreateGlobalStep(g) : Variable();
    const Output loss = ReduceSum(w);
    sync.Minimize(loss, {.global_step = step});
    if (twice) sync.Minimize(loss, {.global_step = step});
    return g.status();
  };
  EXPECT_TRUE(error({}, true, false).ok());
  EXPECT_THAT(error({}, false, false).message(), HasSubstr("Global step is required"));
  EXPECT_THAT(error({}, true, true).message(), HasSubstr("was called before"));
  EXPECT_THAT(error({.replicas_to_aggregate = 0}, true, false).message(),
              HasSubstr("must be positive"));
}

TEST(SyncReplicasErrors, TooFewTokens) {
  Worker worker(0, {.replicas_to_aggregate = 3, .total_num_replicas = 1}, true);
  EXPECT_FALSE(worker.sync().InitTokensOp(1).valid());
  EXPECT_THAT(worker.graph().status().message(), HasSubstr("1 (given) vs 2 (needed)"));
}

TEST(SyncReplicasErrors, AHookBeforeApplyGradients) {
  Graph g;
  CreateGlobalStep(g);
  SyncReplicasOptimizer sync(std::make_unique<GradientDescent>(0.1));
  const auto session = MonitoredTrainingSession(g, {.hooks = {sync.MakeSessionHook(true)}});
  EXPECT_TRUE(absl::IsFailedPrecondition(session.status())) << session.status();
}

}  // namespace
}  // namespace weir::rpc
