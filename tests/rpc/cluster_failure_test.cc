// What clients see when tasks of a cluster are killed, stopped and restarted: each task is a
// process, `weir serve`.

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/rpc/client.h"
#include "weir/session/session.h"
#include "weir/tests/rpc/cluster_processes.h"

namespace weir::rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr seconds kPeerTimeout(4);
// What a loaded machine may add to a time.
constexpr seconds kSlack(8);

class ClusterFailureTest : public ::testing::Test {
 protected:
  void SetUp() override {
    EnableGrpcTargets();
    cluster_.StartAll();
  }

  // A float scalar on a parameter server, with a step that adds 1 and reads, on the given worker.
  struct Variable {
    Output handle, next;
    Operation initialize;
  };
  Variable VariableOn(int ps, int worker) {
    Variable v;
    Output one;
    {
      const DeviceScope on(g_, absl::StrCat("/job:worker/task:", worker));
      one = Identity(Const(g_, 1.f)) * 1.f;
    }
    const DeviceScope on(g_, absl::StrCat("/job:ps/task:", ps));
    const std::string name = absl::StrCat("v", ps);
    v.handle =
        Output(AddNode(g_, "VarHandleOp", {},
                       {{"dtype", DT_FLOAT}, {"shape", Shape()}, {"shared_name", name}}, name),
               0);
    v.initialize = Operation(AddNode("AssignVariableOp", {v.handle, Const(g_, 0.f)}));
    Node* const add = AddNode("AssignAddVariableOp", {v.handle, one});
    const ControlDependencies after(g_, {Operation(add)});
    v.next = AddOp("ReadVariableOp", {v.handle}, {{"dtype", DT_FLOAT}});
    return v;
  }
  // A queue on a parameter server: what takes from it, on worker 0, and what adds to it.
  struct Queue {
    Output taken;
    Operation put;
  };
  Queue QueueOn(int ps) {
    Queue queue;
    Output handle, taken;
    {
      const DeviceScope on(g_, absl::StrCat("/job:ps/task:", ps));
      handle =
          Output(AddNode(g_, "FIFOQueueV2", {},
                         {{"component_types", DataTypes{DT_FLOAT}}, {"shared_name", "q"}}, "q"),
                 0);
      taken = Output(
          AddNode("QueueDequeueV2", {handle}, {{"component_types", DataTypes{DT_FLOAT}}}), 0);
      queue.put =
          Operation(AddNode("QueueEnqueueV2", {handle, std::vector<Output>{Const(g_, 7.f)}}));
    }
    queue.taken = taken + 1.f;  // on the master
    return queue;
  }

  Session Open(int worker) {
    auto session = Session::Create(g_, {.target = cluster_.target("worker", worker)});
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }

  // Runs steps until one fails.
  static absl::Status Train(Session& session, const Output& next, std::atomic<int>* steps) {
    for (;;) {
      const auto value = session.Run({next});
      if (!value.ok()) return value.status();
      ++*steps;
    }
  }
  // Waits until there are so many steps.
  static void WaitFor(const std::atomic<int>& steps, int count) {
    while (steps < count) std::this_thread::sleep_for(milliseconds(5));
  }
  // Repeats a step while it is UNAVAILABLE; at most for 15 s.
  static absl::Status AfterReconnect(Session& session, const Output& fetch) {
    absl::Status status;
    for (int i = 0; i < 150; ++i) {
      status = session.Run({fetch}).status();
      if (!absl::IsUnavailable(status)) break;
      std::this_thread::sleep_for(milliseconds(100));
    }
    return status;
  }

  weir::testing::ClusterProcesses cluster_{std::getenv("WEIR_SERVE"),
                                           {{"ps", 2}, {"worker", 2}},
                                           {absl::StrCat("--peer-timeout=", kPeerTimeout.count())}};
  Graph g_;
};

TEST_F(ClusterFailureTest, AKilledParameterServerNeverMixesWithItsState) {
  const Variable v0 = VariableOn(0, 0), v1 = VariableOn(1, 1);
  const Output both = v0.next + v1.next;
  Session session = Open(0);
  ASSERT_TRUE(session.Run(v0.initialize).ok());
  ASSERT_TRUE(session.Run(v1.initialize).ok());
  std::atomic<int> steps = 0;
  absl::Status lost;
  Clock::time_point ended;
  std::thread trainer([&] {
    lost = Train(session, both, &steps);
    ended = Clock::now();
  });
  WaitFor(steps, 5);
  const Clock::time_point killed = Clock::now();
  cluster_.Kill("ps", 1);
  trainer.join();
  EXPECT_LT(ended - killed, kSlack);
  EXPECT_TRUE(absl::IsUnavailable(lost)) << lost;
  EXPECT_THAT(lost.message(), HasSubstr("/job:ps/replica:0/task:1"));
  EXPECT_TRUE(absl::IsUnavailable(session.Run({v1.next}).status()));
  cluster_.Start("ps", 1);
  const absl::Status restarted = AfterReconnect(session, both);
  EXPECT_TRUE(absl::IsAborted(restarted)) << restarted;
  EXPECT_THAT(restarted.message(), HasSubstr("Session handle is not found"));
  EXPECT_THAT(restarted.message(),
              HasSubstr("Possibly this worker (\"/job:ps/replica:0/task:1\") just restarted."));
  for (const Output& fetch : {v1.next, both})
    EXPECT_TRUE(absl::IsAborted(session.Run({fetch}).status()));
  Session next = Open(0);
  const absl::Status empty = next.Run({v1.next}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(empty)) << empty;
  EXPECT_TRUE(next.Run({v0.next}).ok());  // the other has kept its state
}

TEST_F(ClusterFailureTest, AStoppedTaskEndsTheStepInTime) {
  const Variable v0 = VariableOn(0, 0), v1 = VariableOn(1, 1);
  const Output both = v0.next + v1.next;
  Session session = Open(0);
  ASSERT_TRUE(session.Run(v0.initialize).ok());
  ASSERT_TRUE(session.Run(v1.initialize).ok());
  ASSERT_TRUE(session.Run({both}).ok());
  for (const auto& [job, task] : {std::pair("ps", 1), std::pair("worker", 1)}) {
    cluster_.Signal(job, task, SIGSTOP);
    const Clock::time_point begin = Clock::now();
    const absl::Status status = session.Run({both}).status();
    const auto took = Clock::now() - begin;
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(status.message(),
                HasSubstr(absl::StrCat(" waits for /job:", job, "/replica:0/task:1 (")));
    EXPECT_THAT(status.message(), HasSubstr("which does not answer"));
    EXPECT_GE(took, kPeerTimeout);
    EXPECT_LT(took, kPeerTimeout + kSlack);
    cluster_.Signal(job, task, SIGCONT);
    const absl::Status again = AfterReconnect(session, both);
    EXPECT_TRUE(again.ok()) << again;
  }
}

// What a client waits for on another task may take longer than the time-out.
TEST_F(ClusterFailureTest, AHealthyTaskIsWaitedFor) {
  const Queue queue = QueueOn(1);
  Session session = Open(0);
  absl::StatusOr<Tensors> taken;
  std::thread waiter([&] { taken = session.Run({queue.taken}); });
  std::this_thread::sleep_for(3 * kPeerTimeout);
  ASSERT_TRUE(session.Run(queue.put).ok());
  waiter.join();
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ((*taken)[0].scalar<float>(), 8.f);
}

TEST_F(ClusterFailureTest, AKilledWorkerIsNamed) {
  const Variable v0 = VariableOn(0, 1);
  Session session = Open(0);
  ASSERT_TRUE(session.Run(v0.initialize).ok());
  std::atomic<int> steps = 0;
  absl::Status lost;
  std::thread trainer([&] { lost = Train(session, v0.next, &steps); });
  WaitFor(steps, 5);
  cluster_.Kill("worker", 1);
  trainer.join();
  EXPECT_TRUE(absl::IsUnavailable(lost)) << lost;
  EXPECT_THAT(lost.message(), HasSubstr("From /job:worker/replica:0/task:1:"));
  cluster_.Start("worker", 1);
  const absl::Status restarted = AfterReconnect(session, v0.next);
  EXPECT_TRUE(absl::IsAborted(restarted)) << restarted;
  Session next = Open(0);
  const auto value = next.Run({v0.next});
  ASSERT_TRUE(value.ok()) << value.status();
  // A step that ended with the worker may have added or not.
  EXPECT_GE((*value)[0].scalar<float>(), static_cast<float>(steps + 1));
}

TEST_F(ClusterFailureTest, AKilledMasterLeavesTheState) {
  const Variable v0 = VariableOn(0, 0);
  Session session = Open(0);
  ASSERT_TRUE(session.Run(v0.initialize).ok());
  ASSERT_TRUE(session.Run({v0.next}).ok());
  cluster_.Kill("worker", 0);
  const absl::Status lost = session.Run({v0.next}).status();
  EXPECT_TRUE(absl::IsUnavailable(lost)) << lost;
  cluster_.Start("worker", 0);
  const absl::Status restarted = AfterReconnect(session, v0.next);
  EXPECT_TRUE(absl::IsAborted(restarted)) << restarted;
  Session next = Open(0);
  const auto value = next.Run({v0.next});
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ((*value)[0].scalar<float>(), 2.f);
}

// While one call sends a new step to the tasks, others wait for it, but no longer than they want.
TEST_F(ClusterFailureTest, ACallThatFindsAStepInPreparationEndsInTime) {
  const Variable v1 = VariableOn(1, 0);
  Session session = Open(0);
  cluster_.Signal("ps", 1, SIGSTOP);
  absl::Status first;
  std::thread preparer([&] { first = session.Run({v1.next}).status(); });
  std::this_thread::sleep_for(milliseconds(300));
  RunOptions limited;
  limited.timeout = milliseconds(200);
  const Clock::time_point begin = Clock::now();
  const absl::Status second = session.Run({}, {v1.next}, {}, limited).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(second)) << second;
  EXPECT_LT(Clock::now() - begin, kPeerTimeout);
  preparer.join();
  EXPECT_TRUE(absl::IsUnavailable(first)) << first;
  EXPECT_THAT(first.message(), HasSubstr("(RegisterGraph)"));
  cluster_.Signal("ps", 1, SIGCONT);
}

// A session waits for tasks that are not up.
TEST_F(ClusterFailureTest, ANewSessionWaitsForALostTask) {
  const Variable v1 = VariableOn(1, 0);
  cluster_.Kill("ps", 1);
  const absl::Status late = Session::Create(g_, {.operation_timeout = milliseconds(500),
                                                 .target = cluster_.target("worker", 0)})
                                .status();
  EXPECT_TRUE(absl::IsUnavailable(late)) << late;  // the client says so of a late answer
  std::thread starter([&] {
    std::this_thread::sleep_for(milliseconds(500));
    cluster_.Start("ps", 1);
  });
  Session session = Open(0);
  starter.join();
  EXPECT_TRUE(session.Run(v1.initialize).ok());
}

}  // namespace
}  // namespace weir::rpc
