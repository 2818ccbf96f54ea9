#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <random>
#include <set>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/core/io/file.h"
#include "weir/ops/framework/variables.h"
#include "weir/session/model/saver.h"
#include "weir/tests/io/test_files.h"

// A training process that is killed at random moments, mostly while it saves: afterward the newest
// checkpoint is restored, and the next save leaves nothing but what the saver keeps. WEIR_KILLS is
// the number of kills, over all kinds of saves; default 20.
namespace weir {
namespace {

using testing::MakeTempDirectory;

constexpr int kElements = 200000;
constexpr int kKinds = 4;

// How a process saves.
struct Kind {
  SaveMode mode;
  bool sharded;
};

// A run of the process: restores the newest checkpoint, and saves after every step. Elements of `v`
// count the steps. The names of checkpoints contain the number of the run, so that no run
// overwrites what another one has left.
class Trainer {
 public:
  Trainer(const std::string& dir, Kind kind, int run) : dir_(dir), kind_(kind), run_(run) {}

  absl::Status Start() {
    v_ = MakeVariable(graph_, Tensor::Zeros(DT_INT32, Shape({kElements})), {.name = "v"});
    {
      const DeviceScope another(graph_, "/cpu:0");  // a shard of its own
      w_ = MakeVariable(graph_, Tensor::Zeros(DT_INT32, Shape({3})), {.name = "w"});
    }
    step_ = {v_.AssignAdd(Ones(graph_, Shape({kElements}), DT_INT32)),
             w_.AssignAdd(Ones(graph_, Shape({3}), DT_INT32))};
    const Operation init = GlobalVariablesInitializer(graph_);
    WEIR_ASSIGN_OR_RETURN(
        Saver saver,
        Saver::Create(graph_, {.max_to_keep = 2, .keep_best = 1, .sharded = kind_.sharded}));
    saver_.emplace(std::move(saver));
    WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(graph_, {.num_threads = 1}));
    session_.emplace(std::move(session));
    if (!Files().Exists(dir_ + "/checkpoint")) return session_->Run(init);
    return saver_->RestoreLatest(*session_, dir_).status();
  }

  // Returns the number of steps that the variables have seen.
  absl::StatusOr<int> Steps() {
    WEIR_ASSIGN_OR_RETURN(const Tensors now, session_->Run({v_, w_}));
    const int steps = now[1].data<int32_t>()[0];
    for (const int32_t x : now[0].flat<int32_t>()) {
      if (x != steps) return DataLoss("v has ", x, " beside ", steps);
    }
    return steps;
  }

  absl::Status StepAndSave() {
    WEIR_RETURN_IF_ERROR(session_->Run(Feeds{}, {}, step_).status());
    WEIR_ASSIGN_OR_RETURN(const Tensors now, session_->Run({w_}));
    const int step = now[0].data<int32_t>()[0];
    const double metric = step * 7 % 11;
    constexpr int64_t kMaxRuns = 10000;
    const int64_t number = step * kMaxRuns + run_;
    return saver_
        ->Save(*session_, dir_ + "/m",
               {.global_step = number, .mode = kind_.mode, .metric = metric})
        .status();
  }

  // Checks that the directory has the files of the saver's checkpoints, and no others. A process
  // that is killed just after a checkpoint is complete leaves it without what is written last.
  absl::Status CheckFiles() {
    WEIR_RETURN_IF_ERROR(saver_->Wait());
    std::set<std::string> expected = {"checkpoint"}, optional;
    const int shards = kind_.sharded ? 2 : 1;
    for (const std::string& path : saver_->last_checkpoints()) {
      const std::string name(BaseName(path));
      expected.insert(name + ".index");
      for (const char* end : {".meta", ".metric"}) optional.insert(name + end);
      for (int i = 0; i < shards; ++i)
        expected.insert(absl::StrCat(name, ".data-0000", i, "-of-0000", shards));
    }
    WEIR_ASSIGN_OR_RETURN(const std::vector<std::string> files, Files().List(dir_));
    std::set<std::string> found(files.begin(), files.end());
    for (const std::string& name : optional) found.erase(name);
    if (found == expected) return absl::OkStatus();
    return DataLoss("files: ", absl::StrJoin(files, " "),
                    "; expected: ", absl::StrJoin(expected, " "));
  }

 private:
  const std::string dir_;
  const Kind kind_;
  const int run_;
  Graph graph_;
  Variable v_, w_;
  std::vector<Operation> step_;
  std::optional<Session> session_;
  std::optional<Saver> saver_;
};

// Ends a child process.
[[noreturn]] void Exit(const absl::Status& status) {
  if (!status.ok()) fprintf(stderr, "%s\n", status.ToString().c_str());
  _exit(status.ok() ? 0 : 1);
}

// A child process: saves until it is killed. Tells the parent when it begins to.
[[noreturn]] void TrainForever(const std::string& dir, Kind kind, int run, int ready) {
  Trainer trainer(dir, kind, run);
  absl::Status status = trainer.Start();
  if (status.ok() && write(ready, "r", 1) != 1) status = Internal("the parent is gone");
  while (status.ok()) status = trainer.StepAndSave();
  Exit(status);
}

// A child process: restores what a killed one has left, and saves once. Tells the parent the number
// of steps restored.
[[noreturn]] void RestoreAndSave(const std::string& dir, Kind kind, int run, int pipe) {
  Trainer trainer(dir, kind, run);
  absl::Status status = trainer.Start();
  if (status.ok()) {
    const absl::StatusOr<int> steps = trainer.Steps();
    status = steps.status();
    if (steps.ok() && write(pipe, &*steps, sizeof(int)) != sizeof(int))
      status = Internal("the parent is gone");
  }
  if (status.ok()) status = trainer.StepAndSave();
  if (status.ok()) status = trainer.CheckFiles();
  Exit(status);
}

// Forks a child that calls run(descriptor) and does not return.
template <class Run>
pid_t Fork(const Run& run, int* from_child) {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    run(ends[1]);
  }
  close(ends[1]);
  *from_child = ends[0];
  return child;
}

int NumKills() {
  int kills = 0;
  const char* const set = std::getenv("WEIR_KILLS");
  return set != nullptr && absl::SimpleAtoi(set, &kills) ? kills : 20;
}

class Kill : public ::testing::TestWithParam<int> {};

TEST_P(Kill, LeavesTheNewestCheckpointAndNothingElse) {
  const Kind kind = {GetParam() / 2 == 0 ? SaveMode::kSync : SaveMode::kAsync, GetParam() % 2 != 0};
  const std::string dir = MakeTempDirectory("kill");
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  constexpr int kMaxMicroseconds = 40000;
  int last = 0;
  for (int kill_number = 0; kill_number < (NumKills() + kKinds - 1) / kKinds; ++kill_number) {
    SCOPED_TRACE(absl::StrCat("seed ", seed, ", kill ", kill_number));
    int pipe = -1;
    const pid_t trainer =
        Fork([&](int fd) { TrainForever(dir, kind, 2 * kill_number, fd); }, &pipe);
    char ready = 0;
    ASSERT_EQ(read(pipe, &ready, 1), 1);
    close(pipe);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % kMaxMicroseconds));
    kill(trainer, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(trainer, &status, 0), trainer);
    ASSERT_TRUE(WIFSIGNALED(status)) << status;
    const pid_t checker =
        Fork([&](int fd) { RestoreAndSave(dir, kind, 2 * kill_number + 1, fd); }, &pipe);
    int steps = -1;
    ASSERT_EQ(read(pipe, &steps, sizeof steps), static_cast<ssize_t>(sizeof steps));
    close(pipe);
    ASSERT_EQ(waitpid(checker, &status, 0), checker);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    ASSERT_GE(steps, last);
    last = steps + 1;
  }
  EXPECT_GT(last, 0);
}

INSTANTIATE_TEST_SUITE_P(SyncAndAsyncWholeAndSharded, Kill, ::testing::Range(0, kKinds));

}  // namespace
}  // namespace weir
