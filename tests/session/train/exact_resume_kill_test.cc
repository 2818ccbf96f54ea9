#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "gtest/gtest.h"
#include "weir/core/io/bundle.h"
#include "weir/core/io/file.h"
#include "weir/session/train/monitored_session.h"
#include "weir/tests/io/test_files.h"
#include "weir/tests/session/lib/resume_model.h"

// A training process that is killed at random moments and resumed ends with the bits of one that is
// not killed. WEIR_KILLS is the number of kills, over both kinds of saves; default 8.
namespace weir {
namespace {

using testing::MakeTempDirectory;
using testing::ResumeModel;

constexpr int kLastStep = 40;

// A process that trains to the last step, from where an earlier one was killed.
[[noreturn]] void TrainToTheEnd(const std::string& dir, SaveMode mode, int threads) {
  ResumeModel model({.seed = 7});
  const auto train = [&]() -> absl::Status {
    WEIR_ASSIGN_OR_RETURN(
        MonitoredSession session,
        MonitoredTrainingSession(model.graph, {.checkpoint_dir = dir,
                                               .hooks = {StopAtStep({.last_step = kLastStep})},
                                               .save_checkpoints = {.steps = 1},
                                               .save_mode = mode,
                                               .require_exact_resume = true,
                                               .log_step_count_steps = 0,
                                               .session = {.num_threads = threads}}));
    WEIR_ASSIGN_OR_RETURN(Session* const raw, session.session());
    WEIR_RETURN_IF_ERROR(raw->Run(model.start));
    while (!session.ShouldStop()) WEIR_RETURN_IF_ERROR(session.Run({}, {}, {model.train}).status());
    return session.Close();
  };
  const absl::Status status = train();
  if (!status.ok()) fprintf(stderr, "%s\n", status.ToString().c_str());
  _exit(status.ok() ? 0 : 1);
}

// Returns the weight in the last checkpoint.
absl::StatusOr<Tensor> FinalWeight(const std::string& dir) {
  WEIR_ASSIGN_OR_RETURN(const auto reader,
                        CheckpointReader::Open(absl::StrCat(dir, "/model.ckpt-", kLastStep)));
  return reader->Read("w");
}

int NumKills() {
  int kills = 0;
  const char* const set = std::getenv("WEIR_KILLS");
  return set != nullptr && absl::SimpleAtoi(set, &kills) ? kills : 8;
}

class ExactResumeKill : public ::testing::TestWithParam<SaveMode> {};

TEST_P(ExactResumeKill, KilledRunEndsWithTheBitsOfTheWholeRun) {
  const std::string whole = MakeTempDirectory("whole");
  const auto begin = std::chrono::steady_clock::now();
  pid_t child = fork();
  if (child == 0) TrainToTheEnd(whole, SaveMode::kSync, /*threads=*/2);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - begin);
  const absl::StatusOr<Tensor> expected = FinalWeight(whole);
  ASSERT_TRUE(expected.ok()) << expected.status();

  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  int kills = 0;
  while (kills < NumKills() / 2) {
    const std::string dir = MakeTempDirectory("killed");
    for (bool ended = false; !ended;) {
      const int threads = 1 + static_cast<int>(random() % 3);
      child = fork();
      if (child == 0) TrainToTheEnd(dir, GetParam(), threads);
      std::this_thread::sleep_for(std::chrono::microseconds(random() % took.count()));
      if (kills < NumKills() / 2) kill(child, SIGKILL);
      ASSERT_EQ(waitpid(child, &status, 0), child);
      ended = WIFEXITED(status);
      if (!ended) ++kills;
      ASSERT_TRUE(!ended || WEXITSTATUS(status) == 0) << status;
    }
    const absl::StatusOr<Tensor> weight = FinalWeight(dir);
    ASSERT_TRUE(weight.ok()) << weight.status();
    ASSERT_EQ(weight->ToString(), expected->ToString());
    ASSERT_EQ(memcmp(weight->raw(), expected->raw(), expected->num_bytes()), 0);
    const std::vector<std::string> names = *Files().List(dir);
    for (const std::string& name : names) EXPECT_FALSE(absl::StrContains(name, ".weir-")) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(SyncAndAsync, ExactResumeKill,
                         ::testing::Values(SaveMode::kSync, SaveMode::kAsync));

}  // namespace
}  // namespace weir
