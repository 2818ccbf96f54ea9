// Training on a cluster whose servers are tasks in this process.

#include "weir/rpc/cluster_server.h"

#include <atomic>
#include <filesystem>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/device_setter.h"
#include "weir/ops/framework/partitioner.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/train/optimizers.h"
#include "weir/session/train/monitored_session.h"
#include "weir/tests/io/test_files.h"
#include "weir/tests/rpc/local_cluster.h"

namespace weir::rpc {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MakeTempDirectory;

Graph::DeviceFn Setter(int worker, int ps_tasks) {
  return ReplicaDeviceSetter(
      {.ps_tasks = ps_tasks, .worker_device = absl::StrCat("/job:worker/task:", worker)});
}

// The worker of TensorFlow's guide to variables that trains with parameter servers.
class GuideWorker {
 public:
  explicit GuideWorker(int index) {
    const DeviceScope setter(g_, Setter(index, 2));
    const Variable v = GetVariable(g_, "v", {20, 20}, Zeros());
    const Variable w = GetVariable(g_, "w", {20}, Ones());
    step_ = GetOrCreateGlobalStep(g_);
    loss_ = ReduceSum(Square(v + w));
    train_ = GradientDescent(0.01).Minimize(loss_, {.global_step = step_});
    init_ = GlobalVariablesInitializer(g_);
  }

  // Returns the losses of three steps, and the global step after them.
  absl::StatusOr<std::vector<float>> Train(const std::string& target, bool initialize) {
    WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(g_, {.target = target}));
    if (initialize) WEIR_RETURN_IF_ERROR(session.Run(init_));
    std::vector<float> results;
    for (int i = 0; i < 3; ++i) {
      WEIR_ASSIGN_OR_RETURN(const Tensors loss, session.Run({loss_}));
      results.push_back(loss[0].scalar<float>());
      WEIR_RETURN_IF_ERROR(session.Run(train_));
    }
    WEIR_ASSIGN_OR_RETURN(const Tensors step, session.Run({step_}));
    results.push_back(static_cast<float>(step[0].scalar<int64_t>()));
    return results;
  }

 private:
  Graph g_;
  Variable step_;
  Output loss_;
  Operation train_, init_;
};

// The values are TensorFlow's. With variables of its own, the second worker would start anew.
TEST(ClusterServer, TheSecondWorkerGoesOnWhereTheFirstEnded) {
  const LocalCluster cluster(2, 2);
  const auto near = [](float value) { return ::testing::FloatNear(value, 1e-4f * value); };
  const auto first = GuideWorker(0).Train(cluster.target(0), true);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT(*first, ElementsAre(near(400), near(134.56f), near(45.266f), 3));
  const auto second = GuideWorker(1).Train(cluster.target(1), false);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_THAT(*second, ElementsAre(near(15.2275f), near(5.1225f), near(1.7232f), 6));
}

// Each step subtracts one from all elements of a variable in two parts, one on each server.
class PartsWorker {
 public:
  explicit PartsWorker(int index) : index_(index) {
    const DeviceScope setter(g_, Setter(index, 2));
    w_ = GetVariable(g_, "w", {6, 2},
                     {.initializer = Zeros(), .partitioner = FixedSizePartitioner(2)});
    step_ = GetOrCreateGlobalStep(g_);
    train_ = GradientDescent(1).Minimize(ReduceSum(w_), {.global_step = step_});
    value_ = Identity(w_);
  }

  absl::Status Open(const std::string& target, const std::string& directory,
                    int max_recoveries = 10) {
    auto session = MonitoredTrainingSession(g_, {.checkpoint_dir = directory,
                                                 .save_checkpoints = {.steps = 2},
                                                 .session = {.target = target},
                                                 .is_chief = index_ == 0,
                                                 .recheck_interval = std::chrono::milliseconds(20),
                                                 .max_recoveries = max_recoveries});
    WEIR_RETURN_IF_ERROR(session.status());
    session_.emplace(*std::move(session));
    return absl::OkStatus();
  }

  absl::Status TrainOnce() { return session_->Run(Feeds{}, {}, {train_}).status(); }
  void Train(int steps) {
    for (int i = 0; i < steps; ++i) {
      const absl::Status ran = TrainOnce();
      ASSERT_TRUE(ran.ok()) << ran;
    }
  }
  void ExpectStep(int64_t step) {
    const auto out = session_->Run(Feeds{}, {value_, step_.info()->snapshot});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[1].scalar<int64_t>(), step);
    const auto values = (*out)[0].flat<float>();
    EXPECT_THAT(std::vector<float>(values.begin(), values.end()), Each(-static_cast<float>(step)));
  }
  int64_t Step() {
    const auto out = session_->Run(Feeds{}, {step_.info()->snapshot});
    return out.ok() ? (*out)[0].scalar<int64_t>() : -1;
  }
  const Variable& w() const { return w_; }

 private:
  const int index_;
  Graph g_;
  Variable w_, step_;
  Operation train_;
  Output value_;
  std::optional<MonitoredSession> session_;
};

TEST(ClusterServer, PartsOfAVariableAreOnServersAndInShardsOfTheCheckpoint) {
  const LocalCluster cluster(2, 1);
  PartsWorker worker(0);
  EXPECT_EQ(worker.w().parts()[0].device(), "/job:ps/task:0");
  EXPECT_EQ(worker.w().parts()[1].device(), "/job:ps/task:1");
  const std::string directory = MakeTempDirectory("cluster");
  const absl::Status opened = worker.Open(cluster.target(0), directory);
  ASSERT_TRUE(opened.ok()) << opened;
  worker.Train(2);
  worker.ExpectStep(2);
  for (const char* shard : {".data-00000-of-00002", ".data-00001-of-00002"})
    EXPECT_TRUE(std::filesystem::exists(directory + "/model.ckpt-2" + shard)) << shard;
}

// The server that stayed has newer values than the checkpoint: they are not mixed with restored
// ones.
TEST(ClusterServer, AfterTheLossOfAServerTheChiefRestoresTheCheckpoint) {
  LocalCluster cluster(2, 2);
  PartsWorker chief(0), other(1);
  const std::string directory = MakeTempDirectory("cluster");
  ASSERT_TRUE(chief.Open(cluster.target(0), directory).ok());
  ASSERT_TRUE(other.Open(cluster.target(1), "").ok());
  chief.Train(3);
  other.Train(2);  // of the five steps, the checkpoint has two
  cluster.Stop({"ps", 0});
  std::thread restart([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    cluster.Start({"ps", 0});
  });
  chief.Train(1);
  restart.join();
  chief.ExpectStep(3);
  // The first attempt, with the lost session, may already change the part on the other server.
  other.Train(1);
  EXPECT_EQ(chief.Step(), 4);
}

TEST(ClusterServer, AServerThatDoesNotComeBackIsAnError) {
  LocalCluster cluster(2, 1);
  EnableGrpcTargets({.connect_timeout = std::chrono::seconds(2)});
  PartsWorker chief(0);
  const absl::Status opened =
      chief.Open(cluster.target(0), MakeTempDirectory("cluster"), /*max_recoveries=*/2);
  ASSERT_TRUE(opened.ok()) << opened;
  cluster.Stop({"ps", 1});
  const absl::Status lost = chief.TrainOnce();
  EXPECT_TRUE(absl::IsUnavailable(lost)) << lost;
  EnableGrpcTargets();
}

TEST(ClusterServer, ALostWorkerComesBack) {
  LocalCluster cluster(2, 2);
  PartsWorker chief(0), other(1);
  ASSERT_TRUE(chief.Open(cluster.target(0), MakeTempDirectory("cluster")).ok());
  ASSERT_TRUE(other.Open(cluster.target(1), "").ok());
  other.Train(1);
  cluster.Stop({"worker", 1});
  chief.Train(1);
  cluster.Start({"worker", 1});
  other.Train(1);
  chief.ExpectStep(3);
}

TEST(ClusterServer, ASessionWaitsOnlyForTheTasksThatItUses) {
  LocalCluster cluster(1, 2);
  cluster.Stop({"worker", 1});
  Graph g;
  const DeviceScope on_ps(g, "/job:ps/task:0");
  const Output x = Const(g, 3.f);
  const std::chrono::milliseconds limit(500);
  EnableGrpcTargets({.connect_timeout = limit});
  const auto blocked = Session::Create(g, {.target = cluster.target(0)});
  EXPECT_TRUE(absl::IsUnavailable(blocked.status())) << blocked.status();
  EnableGrpcTargets({.connect_timeout = limit, .device_filters = {"/job:ps"}});
  auto session = Session::Create(g, {.target = cluster.target(0)});
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_TRUE(session->Run({x}).ok());
  EnableGrpcTargets();
}

TEST(ClusterServer, ATaskOutsideOfTheClusterIsInvalid) {
  const ClusterSpec cluster = *ClusterSpec::Parse("ps|10.0.0.1:2222,worker|localhost:0");
  const absl::Status missing = StartTask(cluster, {"ps", 1}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(missing)) << missing;
  EXPECT_THAT(missing.message(), HasSubstr("ps (0), worker (0)"));
  EXPECT_THAT(StartTask(cluster, {"worker", 0}).status().message(), HasSubstr("needs a port"));
}

TEST(ClusterServer, JoinReturnsWhenTheServerDrains) {
  const auto server = Server::Start({});
  ASSERT_TRUE(server.ok()) << server.status();
  std::atomic<bool> has_returned{false};
  std::thread join([&] {
    (*server)->Join();
    has_returned = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(has_returned);
  (*server)->Drain(std::chrono::milliseconds(0));
  join.join();
}

TEST(ClusterServer, TheTasksOfEachJobHaveNumbers) {
  const auto cluster = ClusterSpec::Create({{"ps", {"a:1", "b:2"}}, {"worker", {"c:3"}}});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(cluster->AddressOf({"ps", 1}), "b:2");
  EXPECT_EQ(cluster->AddressOf({"ps", 2}), "");
  EXPECT_EQ(cluster->NumTasks("ps"), 2);
  EXPECT_EQ(cluster->NumTasks("chief"), 0);
  const absl::Status status = ClusterSpec::Create({{"ps", {"host"}}}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("HOST:PORT"));
}

TEST(ClusterServer, ListensWhereTheOthersExpectIt) {
  const ClusterSpec cluster = *ClusterSpec::Parse("ps|10.0.0.1:2222,worker|localhost:2223");
  ServerOptions ps, worker;
  ASSERT_TRUE(SetCluster(cluster, {"ps", 0}, &ps).ok());
  EXPECT_EQ(ps.address, "0.0.0.0");
  EXPECT_EQ(ps.port, 2222);
  ASSERT_TRUE(SetCluster(cluster, {"worker", 0}, &worker).ok());
  EXPECT_EQ(worker.address, "127.0.0.1");
  EXPECT_EQ(worker.port, 2223);
}

}  // namespace
}  // namespace weir::rpc
