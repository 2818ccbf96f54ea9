#include "weir/session/train/queue_runner.h"

#include <atomic>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array.h"
#include "weir/proto/meta_graph.pb.h"
#include "weir/session/model/meta_graph.h"
#include "weir/session/train/monitored_session.h"

namespace weir {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ---- the coordinator

TEST(CoordinatorTest, ThreadsStopTogether) {
  Coordinator coordinator;
  std::atomic<int> rounds{0};
  for (int i = 0; i < 3; ++i) {
    coordinator.Start(absl::StrCat("worker", i), [&] {
      do {
        ++rounds;
        std::this_thread::sleep_for(milliseconds(1));
      } while (!coordinator.ShouldStop());
    });
  }
  EXPECT_FALSE(coordinator.WaitForStop(milliseconds(5)));
  coordinator.RequestStop();
  EXPECT_TRUE(coordinator.WaitForStop(milliseconds(0)));
  EXPECT_TRUE(coordinator.Join().ok());
  EXPECT_GE(rounds, 3);
}

TEST(CoordinatorTest, TheFirstErrorCountsAndTheEndOfInputIsNone) {
  Coordinator coordinator;
  coordinator.Start("fails", [&] { coordinator.RequestStop(InvalidArgument("first")); });
  coordinator.WaitForStop();
  coordinator.RequestStop(Internal("second"));
  EXPECT_EQ(coordinator.Join(), InvalidArgument("first"));
  coordinator.ClearStop();
  EXPECT_FALSE(coordinator.ShouldStop());
  coordinator.Start("ends", [&] { coordinator.RequestStop(OutOfRange("end")); });
  EXPECT_TRUE(coordinator.Join().ok());
  EXPECT_TRUE(coordinator.ShouldStop());
}

TEST(CoordinatorTest, TheDestructorWaitsForThreadsThatThreadsStart) {
  std::atomic<bool> late_ended{false};
  {
    Coordinator coordinator;
    coordinator.Start("starts another", [&] {
      coordinator.WaitForStop();
      coordinator.Start("late", [&] {
        std::this_thread::sleep_for(milliseconds(10));
        late_ended = true;
      });
    });
  }
  EXPECT_TRUE(late_ended);
}

TEST(CoordinatorTest, AnExceptionOfAThreadStopsTheOthers) {
  Coordinator coordinator;
  coordinator.Start("thrower", [] { throw 42; });
  coordinator.Start("other", [&] { coordinator.WaitForStop(); });
  const absl::Status status = coordinator.Join();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("thrower threw an exception"));
}

TEST(CoordinatorTest, ReportsThreadsThatDoNotStop) {
  std::atomic<bool> go{false};
  Coordinator coordinator;
  coordinator.Start("deaf", [&] {
    while (!go) std::this_thread::yield();
  });
  coordinator.Start("quick", [] {});
  coordinator.RequestStop();
  const absl::Status s = coordinator.Join(milliseconds(20));
  EXPECT_TRUE(absl::IsDeadlineExceeded(s)) << s;
  EXPECT_THAT(std::string(s.message()), HasSubstr("still running: deaf"));
  go = true;
  EXPECT_TRUE(coordinator.Join().ok());
}

// ---- queue runners

class QueueRunnerTest : public ::testing::Test {
 protected:
  QueueRunnerTest() : queue_(Queue::Fifo(g_, 5, {DT_INT64}, {.shapes = {Shape()}}, "numbers")) {}

  Graph g_;
  Queue queue_;
};

TEST_F(QueueRunnerTest, FillsAQueueUntilTheEndOfItsInput) {
  const Queue from = Queue::Fifo(g_, 100, {DT_INT64}, {.shapes = {Shape()}}, "from");
  const Operation put = from.EnqueueMany({Const<int64_t>(g_, {1, 2, 3, 4, 5, 6, 7, 8})});
  const Operation end = from.Close();
  AddQueueRunner(queue_, {queue_.Enqueue(from.Dequeue()), queue_.Enqueue(from.Dequeue())});
  const Output next = queue_.Dequeue()[0];
  Session session = *Session::Create(g_, {.num_threads = 3});
  ASSERT_TRUE(session.Run(put).ok());
  ASSERT_TRUE(session.Run(end).ok());
  Coordinator coordinator;
  ASSERT_TRUE(StartQueueRunners(session, coordinator).ok());
  int64_t sum = 0;
  for (int i = 0; i < 8; ++i) sum += (*session.Run({next}))[0].scalar<int64_t>();
  EXPECT_EQ(sum, 36);
  // Both runners have reached the end: the queue is closed.
  const auto more = session.Run({next});
  EXPECT_TRUE(absl::IsOutOfRange(more.status())) << more.status();
  coordinator.RequestStop();
  EXPECT_TRUE(coordinator.Join().ok());
}

TEST_F(QueueRunnerTest, StopCancelsPendingOperations) {
  AddQueueRunner(queue_, {queue_.Enqueue({Const(g_, int64_t{1})})});
  const Output size = queue_.Size();
  Session session = *Session::Create(g_, {.num_threads = 3});
  Coordinator coordinator;
  ASSERT_TRUE(StartQueueRunners(session, coordinator).ok());
  while ((*session.Run({size}))[0].scalar<int32_t>() < 5) std::this_thread::yield();
  coordinator.RequestStop();
  EXPECT_TRUE(coordinator.Join().ok());
}

TEST_F(QueueRunnerTest, AnErrorReachesTheCoordinatorAndStopsTheOthers) {
  const Output bad = Placeholder(g_, DT_INT64, Shape());
  AddQueueRunner(queue_, {queue_.Enqueue({bad}), queue_.Enqueue({Const(g_, int64_t{1})})});
  Session session = *Session::Create(g_, {.num_threads = 3});
  Coordinator coordinator;
  ASSERT_TRUE(StartQueueRunners(session, coordinator).ok());
  coordinator.WaitForStop();
  const absl::Status s = coordinator.Join();
  EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
  EXPECT_THAT(std::string(s.message()), HasSubstr("You must feed a value for placeholder"));
}

TEST_F(QueueRunnerTest, RunnersGoWithTheMetaGraph) {
  {
    const NameScope scope(g_, "in");
    const Queue q = Queue::Fifo(g_, 3, {DT_INT64}, {.shapes = {Shape()}});
    AddQueueRunner(q, {q.Enqueue({Const(g_, int64_t{7})})});
    (void)q.Dequeue("next");
  }
  proto::MetaGraphDef def;
  std::vector<std::string> dropped;
  ExportMetaGraph(g_, {.export_scope = "in"}, &def, &dropped);
  EXPECT_TRUE(dropped.empty());
  Graph copy;
  ASSERT_TRUE(ImportMetaGraph(copy, def, {.import_scope = "out"}).ok());
  using Object = std::shared_ptr<CollectionObject>;
  const auto objects = copy.collection_as<Object>(collections::kQueueRunners);
  ASSERT_EQ(objects.size(), 1);
  const auto runner = std::dynamic_pointer_cast<QueueRunner>(objects[0]);
  ASSERT_NE(runner, nullptr);
  EXPECT_EQ(runner->queue_name, "out/fifo_queue");
  EXPECT_EQ(runner->close_op.name(), "out/fifo_queue_Close");
  EXPECT_EQ(runner->cancel_op.name(), "out/fifo_queue_Close_1");
  EXPECT_THAT(runner->end_of_input, ElementsAre(absl::StatusCode::kOutOfRange));
  Session session = *Session::Create(copy);
  Coordinator coordinator;
  ASSERT_TRUE(StartQueueRunners(session, coordinator).ok());
  EXPECT_EQ((*session.Run({*copy.FindOutput("out/next")}))[0].scalar<int64_t>(), 7);
  coordinator.RequestStop();
  EXPECT_TRUE(coordinator.Join().ok());
}

// ---- in a monitored session

TEST_F(QueueRunnerTest, AMonitoredSessionStartsAndStopsThem) {
  AddQueueRunner(queue_, {queue_.Enqueue({Const(g_, int64_t{3})})});
  const Output next = queue_.Dequeue()[0];
  absl::StatusOr<MonitoredSession> session = MonitoredSession::Create(g_);
  ASSERT_TRUE(session.ok()) << session.status();
  for (int i = 0; i < 20; ++i) {
    const auto out = session->Run({}, {next});
    ASSERT_TRUE(out.ok()) << out.status();
    EXPECT_EQ((*out)[0].scalar<int64_t>(), 3);
  }
  EXPECT_FALSE(session->ShouldStop());
  EXPECT_TRUE(session->Close().ok());
}

TEST_F(QueueRunnerTest, TheirErrorIsTheErrorOfAMonitoredStep) {
  AddQueueRunner(queue_, {queue_.Enqueue({Placeholder(g_, DT_INT64, Shape())})});
  const Output next = queue_.Dequeue()[0];
  absl::StatusOr<MonitoredSession> session = MonitoredSession::Create(g_);
  ASSERT_TRUE(session.ok()) << session.status();
  const absl::Status s = session->Run({}, {next}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(s)) << s;
  EXPECT_THAT(std::string(s.message()), HasSubstr("You must feed a value for placeholder"));
  EXPECT_TRUE(session->ShouldStop());
}

}  // namespace
}  // namespace weir
