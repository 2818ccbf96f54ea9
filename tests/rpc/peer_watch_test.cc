#include "weir/rpc/cluster/peer_watch.h"

#include <atomic>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weir::rpc {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr milliseconds kTimeout(400);

class PeerWatchTest : public testing::Test {
 protected:
  // The task answers with this.
  void Answer(absl::StatusOr<uint64_t> answer) {
    watch_ = std::make_shared<PeerWatch>(
        timer_, kTimeout,
        [this, answer](const PeerTask&, milliseconds limit, const PeerWatch::Answered& answered) {
          ++probes_;
          const bool is_silent = absl::IsDeadlineExceeded(answer.status());
          timer_.At(Timer::Clock::now() + (is_silent ? limit : milliseconds(0)),
                    [answered, answer] { answered(answer); });
        });
  }

  // A wait, whose end is noted.
  struct Wait {
    absl::Notification ended;
    absl::Status why;
    int64_t call = 0;
  };
  void Begin(Wait& wait, int64_t step_id, const std::string& what, bool is_edge,
             uint64_t incarnation = 7) {
    wait.call = watch_->Begin({.task = {"/job:ps/replica:0/task:1", "10.0.0.1:2222"},
                               .incarnation = incarnation,
                               .step_id = step_id,
                               .what = what,
                               .is_edge = is_edge,
                               .end = [&wait](const absl::Status& why) {
                                 wait.why = why;
                                 wait.ended.Notify();
                               }});
  }

  Timer timer_;
  std::atomic<int> probes_ = 0;
  std::shared_ptr<PeerWatch> watch_;
};

TEST_F(PeerWatchTest, ATaskThatDoesNotAnswerEndsItsWaits) {
  Answer(absl::DeadlineExceededError("no answer"));
  const auto begin = Timer::Clock::now();
  Wait run, first, second, of_another_step;
  Begin(run, 812, "RunGraph", false);
  Begin(first, 812, "edge_14_w/read", true);
  Begin(second, 812, "edge_14_w/read", true);
  Begin(of_another_step, 813, "edge_3_b", true);
  for (Wait* wait : {&run, &first, &second, &of_another_step}) wait->ended.WaitForNotification();
  const auto took = Timer::Clock::now() - begin;
  EXPECT_GE(took, kTimeout - milliseconds(1));
  EXPECT_LT(took, 2 * kTimeout);
  EXPECT_TRUE(absl::IsUnavailable(run.why)) << run.why;
  EXPECT_THAT(run.why.message(),
              HasSubstr("step 812 waits for /job:ps/replica:0/task:1 (edge_14_w/read and 2 others) "
                        "for "));
  EXPECT_EQ(first.why, run.why);
  EXPECT_THAT(of_another_step.why.message(),
              HasSubstr("step 813 waits for /job:ps/replica:0/task:1 (edge_3_b) for "));
}

TEST_F(PeerWatchTest, ATaskThatAnswersIsWaitedFor) {
  Answer(7);
  Wait wait;
  Begin(wait, 1, "edge_1_x", true);
  EXPECT_FALSE(wait.ended.WaitForNotificationWithTimeout(absl::FromChrono(4 * kTimeout)));
  EXPECT_GE(probes_, 4);
  watch_->End(wait.call);
}

TEST_F(PeerWatchTest, ATaskThatRefusesTheQuestionIsThere) {
  Answer(absl::UnauthenticatedError("who are you?"));
  Wait wait;
  Begin(wait, 1, "edge_1_x", true);
  EXPECT_FALSE(wait.ended.WaitForNotificationWithTimeout(absl::FromChrono(3 * kTimeout)));
  watch_->End(wait.call);
}

TEST_F(PeerWatchTest, ARestartedTaskEndsTheWaitsForTheOneBefore) {
  Answer(8);
  Wait before, of_any, now;
  Begin(before, 1, "edge_1_x", true, 7);
  Begin(of_any, 1, "RunGraph", false, 0);
  Begin(now, 2, "edge_1_x", true, 8);
  before.ended.WaitForNotification();
  EXPECT_TRUE(absl::IsAborted(before.why)) << before.why;
  EXPECT_THAT(before.why.message(), HasSubstr("/job:ps/replica:0/task:1"));
  EXPECT_THAT(before.why.message(), HasSubstr("was restarted"));
  EXPECT_FALSE(now.ended.WaitForNotificationWithTimeout(absl::FromChrono(2 * kTimeout)));
  EXPECT_FALSE(of_any.ended.HasBeenNotified());
  for (const Wait* wait : {&of_any, &now}) watch_->End(wait->call);
}

TEST_F(PeerWatchTest, WithoutATimeOutNothingIsAsked) {
  watch_ = std::make_shared<PeerWatch>(
      timer_, milliseconds(0),
      [this](const PeerTask&, milliseconds, const PeerWatch::Answered&) { ++probes_; });
  Wait wait;
  Begin(wait, 1, "edge_1_x", true);
  EXPECT_FALSE(wait.ended.WaitForNotificationWithTimeout(absl::Milliseconds(300)));
  EXPECT_EQ(probes_, 0);
  watch_->End(wait.call);
}

}  // namespace
}  // namespace weir::rpc
