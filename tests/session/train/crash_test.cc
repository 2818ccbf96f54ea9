#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/core/io/bundle.h"
#include "weir/core/io/file.h"
#include "weir/ops/framework/variables.h"
#include "weir/session/model/saver.h"
#include "weir/tests/io/crashing_file_system.h"
#include "weir/tests/io/test_files.h"

// A training process that is killed at each of its writes in turn, and each time restarted from its
// last checkpoint.
namespace weir {
namespace {

using testing::CrashingFileSystem;
using testing::MakeTempDirectory;

constexpr int kElements = 100000;  // more than a buffer, so that it is written in pieces

// One run of the process: restores the newest checkpoint, and saves one after each of `steps`
// steps. Elements of `v` count the steps.
absl::Status Train(const std::string& dir, bool sharded, int steps) {
  Graph g;
  const Variable v = MakeVariable(g, Tensor::Zeros(DT_INT32, Shape({kElements})), {.name = "v"});
  Variable w;
  {
    const DeviceScope another(g, "/cpu:0");  // a shard of its own
    w = MakeVariable(g, Tensor::Zeros(DT_INT32, Shape({3})), {.name = "w"});
  }
  const std::vector<Operation> step = {v.AssignAdd(Ones(g, Shape({kElements}), DT_INT32)),
                                       w.AssignAdd(Ones(g, Shape({3}), DT_INT32))};
  const Operation init = GlobalVariablesInitializer(g);
  WEIR_ASSIGN_OR_RETURN(Saver saver, Saver::Create(g, {.max_to_keep = 2, .sharded = sharded}));
  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(g, {.num_threads = 1}));
  const absl::StatusOr<std::string> latest = LatestCheckpoint(dir);
  WEIR_RETURN_IF_ERROR(latest.ok() ? saver.Restore(session, *latest) : session.Run(init));
  if (latest.ok())
    saver.RecoverLastCheckpoints(ReadCheckpointState(dir)->all_model_checkpoint_paths);
  for (int i = 0; i < steps; ++i) {
    WEIR_RETURN_IF_ERROR(session.Run(Feeds{}, {}, step).status());
    WEIR_ASSIGN_OR_RETURN(const Tensors now, session.Run({w.value()}));
    WEIR_RETURN_IF_ERROR(
        saver.Save(session, dir + "/m", {.global_step = now[0].data<int32_t>()[0]}).status());
  }
  return absl::OkStatus();
}

// Returns the step of the newest checkpoint, which must be complete; -1 if none can be restored.
int StepOf(const std::string& dir) {
  const absl::StatusOr<std::string> latest = LatestCheckpoint(dir);
  if (!latest.ok()) return -1;
  const auto reader = CheckpointReader::Open(*latest);
  if (!reader.ok()) return -1;
  const auto v = (*reader)->Read("v"), w = (*reader)->Read("w");
  if (!v.ok() || !w.ok()) return -1;
  const int step = w->data<int32_t>()[0];
  for (const int32_t x : v->flat<int32_t>()) {
    if (x != step) return -1;
  }
  return *latest == absl::StrCat(dir, "/m-", step) ? step : -1;
}

// Returns the names in a directory, without those of the files of listed checkpoints.
std::vector<std::string> OtherFiles(const std::string& dir) {
  std::vector<std::string> others = *Files().List(dir);
  const std::vector<std::string> listed = ReadCheckpointState(dir)->all_model_checkpoint_paths;
  std::erase_if(others, [&](const std::string& name) {
    return name == "checkpoint" ||
           std::any_of(listed.begin(), listed.end(), [&](const std::string& path) {
             return name.starts_with(absl::StrCat(BaseName(path), "."));
           });
  });
  return others;
}

void KillAtEveryWrite(bool sharded) {
  const std::string dir = MakeTempDirectory("crash");
  int step = 0;
  bool finished = false;
  for (int operations = 0; !finished; ++operations) {
    const pid_t child = fork();
    if (child == 0) {
      CrashingFileSystem files(&Files(), operations);
      ScopedFileSystem scope(&files);
      const absl::Status status = Train(dir, sharded, 3);
      if (!status.ok()) fprintf(stderr, "%s\n", status.ToString().c_str());
      _exit(status.ok() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    finished = WIFEXITED(status);
    ASSERT_TRUE(finished ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGKILL) << operations;
    const int now = StepOf(dir);
    // Before the first checkpoint is complete there is none.
    ASSERT_TRUE(now >= step || (step == 0 && now == -1))
        << "killed after " << operations << " operations: step " << now;
    ASSERT_LE(now, step + 3);
    step = std::max(now, 0);
  }
  EXPECT_GT(step, 3);
  EXPECT_THAT(OtherFiles(dir), ::testing::IsEmpty());
}

TEST(Crash, AKillAtAnyWriteLosesAtMostTheStepBeingSaved) { KillAtEveryWrite(false); }

TEST(Crash, TheSameWithShards) { KillAtEveryWrite(true); }

}  // namespace
}  // namespace weir
