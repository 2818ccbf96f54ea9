#include "weir/session/model/resume_state.h"

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/checkpoint_state.h"
#include "weir/core/io/file.h"
#include "weir/ops/containers/queue.h"
#include "weir/ops/framework/variables.h"
#include "weir/session/train/monitored_session.h"
#include "weir/tests/io/test_files.h"
#include "weir/tests/session/lib/resume_model.h"

// Runs that are stopped and resumed in another session compute the bits of runs that were not. No
// seed is set, so that every run is different, unless it resumes.
namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::MakeTempDirectory;
using testing::ResumeModel;
using testing::ResumeParts;

// Runs `steps` steps, and returns the bytes of the weight after each.
std::vector<std::string> Train(MonitoredSession& session, const ResumeModel& model, int steps) {
  std::vector<std::string> weights;
  for (int i = 0; i < steps; ++i) {
    const absl::StatusOr<Tensors> out = session.Run({}, {model.changed}, {model.train});
    EXPECT_TRUE(out.ok()) << out.status();
    if (!out.ok()) break;
    weights.emplace_back(static_cast<const char*>((*out)[0].raw()), (*out)[0].num_bytes());
  }
  return weights;
}

absl::StatusOr<MonitoredSession> Start(ResumeModel& model, MonitoredSessionOptions options) {
  WEIR_ASSIGN_OR_RETURN(MonitoredSession session,
                        MonitoredSession::Create(model.graph, std::move(options)));
  if (model.start.valid()) {
    WEIR_ASSIGN_OR_RETURN(Session* const raw, session.session());
    WEIR_RETURN_IF_ERROR(raw->Run(model.start));
  }
  return session;
}

class ExactResumeTest : public ::testing::Test {
 protected:
  // Trains a model and saves it after every second step. Returns the weights.
  std::vector<std::string> TrainWhole(ResumeModel& model, int steps,
                                      SaveMode mode = SaveMode::kSync, int threads = 2) {
    absl::StatusOr<MonitoredSession> session = Start(
        model,
        {.hooks = {CheckpointSaver(
             {.directory = dir_, .period = {.steps = 2}, .mode = mode, .exact_resume = true})},
         .session = {.num_threads = threads}});
    EXPECT_TRUE(session.ok()) << session.status();
    std::vector<std::string> weights = Train(*session, model, steps);
    EXPECT_TRUE(session->Close().ok());
    return weights;
  }
  // Resumes from the checkpoint of a step, and trains `steps` steps.
  std::vector<std::string> Resume(ResumeModel& model, int from, int steps, int threads = 2) {
    absl::StatusOr<MonitoredSession> session =
        Start(model, {.checkpoint_path = Checkpoint(from),
                      .require_exact_resume = true,
                      .hooks = {CheckpointSaver(
                          {.directory = dir_, .period = {.steps = 1000000}, .exact_resume = true})},
                      .session = {.num_threads = threads}});
    EXPECT_TRUE(session.ok()) << session.status();
    if (!session.ok()) return {};
    return Train(*session, model, steps);
  }
  absl::Status TryResume(ResumeModel& model, int from, bool required = true) {
    return Start(model, {.checkpoint_path = Checkpoint(from),
                         .exact_resume = true,
                         .require_exact_resume = required})
        .status();
  }
  std::string Checkpoint(int step) const { return absl::StrCat(dir_, "/model.ckpt-", step); }
  static std::vector<std::string> From(const std::vector<std::string>& all, int first) {
    return {all.begin() + first, all.end()};
  }

  const std::string dir_ = MakeTempDirectory("exact_resume");
};

TEST_F(ExactResumeTest, ResumedRunHasTheBitsOfTheWholeRun) {
  ResumeModel model;
  const std::vector<std::string> whole = TrainWhole(model, 8);
  for (const int from : {2, 4, 6}) {
    ResumeModel again;
    EXPECT_EQ(Resume(again, from, 8 - from), From(whole, from)) << from;
  }
}

TEST_F(ExactResumeTest, EachPartResumesByItself) {
  const ResumeParts none = {
      .dropout = false, .dataset = false, .queue = false, .local_variable = false};
  std::vector<ResumeParts> all(4, none);
  all[0].dropout = all[1].dataset = all[2].queue = all[3].local_variable = true;
  for (size_t i = 0; i < all.size(); ++i) {
    ResumeModel model(all[i]), again(all[i]);
    const std::vector<std::string> whole = TrainWhole(model, 4);
    EXPECT_EQ(Resume(again, 2, 2), From(whole, 2)) << i;
  }
}

// The functions' random ops have the same names, and draw at the same time.
TEST_F(ExactResumeTest, FunctionsHaveRandomStreamsOfTheirOwn) {
  const ResumeParts parts = {.maps = 2};
  ResumeModel model(parts), again(parts);
  const std::vector<std::string> whole = TrainWhole(model, 6, SaveMode::kSync, /*threads=*/4);
  EXPECT_EQ(Resume(again, 4, 2, /*threads=*/4), From(whole, 4));
}

TEST_F(ExactResumeTest, NumberOfThreadsDoesNotMatter) {
  ResumeModel model;
  const std::vector<std::string> whole = TrainWhole(model, 6, SaveMode::kSync, /*threads=*/4);
  for (const int threads : {1, 4}) {
    ResumeModel again;
    EXPECT_EQ(Resume(again, 2, 4, threads), From(whole, 2)) << threads;
  }
}

TEST_F(ExactResumeTest, AsynchronousSavesTakeTheStateWithTheVariables) {
  ResumeModel model;
  const std::vector<std::string> whole = TrainWhole(model, 8, SaveMode::kAsync);
  ResumeModel again;
  EXPECT_EQ(Resume(again, 4, 4), From(whole, 4));
}

// The first save of a resumed run stores positions that no step has used yet.
TEST_F(ExactResumeTest, RunMayBeResumedTwiceFromOneStep) {
  ResumeModel model;
  const std::vector<std::string> whole = TrainWhole(model, 6);
  ResumeModel again, third;
  Resume(again, 2, 0);
  EXPECT_EQ(Resume(third, 2, 4), From(whole, 2));
}

TEST_F(ExactResumeTest, TrainingSessionResumes) {
  std::vector<std::string> weights[2];
  for (int run = 0; run < 2; ++run) {  // the first one ends without a last save
    ResumeModel model({.dataset = false});
    absl::StatusOr<MonitoredSession> session =
        MonitoredTrainingSession(model.graph, {.checkpoint_dir = dir_,
                                               .save_checkpoints = {.steps = 2},
                                               .exact_resume = true,
                                               .log_step_count_steps = 0});
    ASSERT_TRUE(session.ok()) << session.status();
    weights[run] = Train(*session, model, 3 - run * 2);
  }
  ASSERT_EQ(weights[0].size(), 3u);
  EXPECT_EQ(weights[1], From(weights[0], 2));
}

// ---- without the file, and with one that does not fit

TEST_F(ExactResumeTest, MissingFileIsNamed) {
  ResumeModel model;
  TrainWhole(model, 2);
  ASSERT_TRUE(Files().Remove(ResumePath(Checkpoint(2))).ok());
  ResumeModel again, third;
  const absl::Status required = TryResume(again, 2);
  EXPECT_EQ(required.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(required.message()),
              AllOf(HasSubstr("model.ckpt-2.resume is missing"), HasSubstr("queue 'waiting'"),
                    HasSubstr("iterator 'IteratorV2'"), HasSubstr("random stream 'dropout")));
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(TryResume(third, 2, /*required=*/false).ok());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("warning"), HasSubstr("queue 'waiting'")));
}

TEST_F(ExactResumeTest, FileOfAnotherCheckpointIsNotUsed) {
  ResumeModel model;
  TrainWhole(model, 4);
  const std::string bytes = *ReadFile(ResumePath(Checkpoint(4)));
  ASSERT_TRUE(WriteFileAtomically(ResumePath(Checkpoint(2)), bytes).ok());
  ResumeModel again;
  const absl::Status status = TryResume(again, 2);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("belongs to another checkpoint"));
}

TEST_F(ExactResumeTest, EveryChangedByteIsFound) {
  ResumeModel model;
  TrainWhole(model, 2);
  const std::string path = ResumePath(Checkpoint(2)), bytes = *ReadFile(path);
  const auto code = [&](const std::string& damaged) {
    EXPECT_TRUE(WriteFileAtomically(path, damaged, Durability::kUnsynced).ok());
    return ResumeState::Read(Checkpoint(2)).status().code();
  };
  for (size_t at = 0; at < bytes.size(); at += 7) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << at % 8));
    ASSERT_EQ(code(damaged), absl::StatusCode::kDataLoss) << at;
    ASSERT_EQ(code(bytes.substr(0, at)), absl::StatusCode::kDataLoss) << at;
  }
  EXPECT_EQ(code(bytes + "x"), absl::StatusCode::kDataLoss);
  EXPECT_EQ(code(bytes), absl::StatusCode::kOk);
}

TEST_F(ExactResumeTest, GraphMustHaveTheNodes) {
  ResumeModel model;
  TrainWhole(model, 2);
  ResumeModel other({.queue = false});
  const absl::Status status = TryResume(other, 2);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("model.ckpt-2.resume"), HasSubstr("waiting"),
                    HasSubstr("the graph has no such node")));
}

TEST_F(ExactResumeTest, DatasetMustHaveTheElements) {
  ResumeModel model;
  TrainWhole(model, 6);
  ResumeModel shorter({.elements = 0});
  absl::StatusOr<MonitoredSession> session =
      Start(shorter, {.checkpoint_path = Checkpoint(6), .exact_resume = true});
  ASSERT_TRUE(session.ok()) << session.status();
  const absl::Status status = session->Run({}, {shorter.changed}, {shorter.train}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("has fewer elements"));
}

// ---- what is saved

TEST_F(ExactResumeTest, FileIsRemovedWithItsCheckpoint) {
  ResumeModel model;
  TrainWhole(model, 14);  // the saver keeps five
  EXPECT_FALSE(Files().Exists(ResumePath(Checkpoint(2))));
  EXPECT_TRUE(Files().Exists(ResumePath(Checkpoint(14))));
  const std::vector<std::string> names = *Files().List(dir_);
  for (const std::string& name : names) {
    if (name.ends_with(".resume")) {
      EXPECT_TRUE(CheckpointExists(dir_ + "/" + name.substr(0, name.size() - 7))) << name;
    }
  }
}

TEST_F(ExactResumeTest, ClosedQueueStaysClosed) {
  Graph g;
  const Queue queue = Queue::Fifo(g, 10, {DT_STRING}, {}, "names");
  const Output text = Placeholder(g, DT_STRING);
  const Operation put = queue.Enqueue({text}), close = queue.Close();
  const Outputs next = queue.Dequeue();
  MakeVariable(g, 0.f, {.name = "v"});
  const Operation init = GlobalVariablesInitializer(g);
  Saver saver = *Saver::Create(g);
  Session first = *Session::Create(g), second = *Session::Create(g);
  ASSERT_TRUE(first.Run(init).ok());
  for (const char* name : {"a", "", "c"})
    ASSERT_TRUE(first.Run({{text, Tensor::Scalar<std::string>(name)}}, {}, {put}).ok());
  ASSERT_TRUE(first.Run(next).ok());
  ASSERT_TRUE(first.Run(close).ok());
  const std::string path = dir_ + "/m";
  ASSERT_TRUE(saver.Save(first, path, {.exact_resume = true}).ok());

  ASSERT_TRUE(saver.Restore(second, path).ok());
  ASSERT_TRUE(ResumeExactly(second, path, /*required=*/true).ok());
  for (const char* name : {"", "c"}) EXPECT_EQ((*second.Run(next))[0].scalar<std::string>(), name);
  EXPECT_EQ(second.Run(next).status().code(), absl::StatusCode::kOutOfRange);
}

TEST_F(ExactResumeTest, StateThatCannotBeSavedIsNamed) {
  Graph g;
  MakeVariable(g, 0.f, {.name = "v"});
  const Operation init = GlobalVariablesInitializer(g);
  AddNode(g, "Barrier", {}, {{"component_types", DataTypes{DT_FLOAT}}});
  Saver saver = *Saver::Create(g);
  Session session = *Session::Create(g);
  ASSERT_TRUE(session.Run(init).ok());
  ::testing::internal::CaptureStderr();
  const std::string path = dir_ + "/m";
  ASSERT_TRUE(saver.Save(session, path, {.exact_resume = true}).ok());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("Barrier"));
  const absl::Status status = ResumeExactly(session, path, /*required=*/true);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the elements of the barrier"));
  EXPECT_TRUE(ResumeExactly(session, path).ok());
}

TEST_F(ExactResumeTest, IteratorsThatDrawFromOneStreamAreNamed) {
  ResumeModel model({.local_variable = false});
  const Operation start = model.start;
  const Output second = ResumeModel::NextBatch(model.Iterate(model.dataset));
  const Operation init = GlobalVariablesInitializer(model.graph);
  const Saver saver = *Saver::Create(model.graph);
  Session session = *Session::Create(model.graph);
  ASSERT_TRUE(session.Run({}, {}, {init, start, model.start}).ok());
  const auto lost = [&] {
    return absl::StrJoin(ResumeState::Take(session, saver.def())->lost(), "; ");
  };
  ASSERT_TRUE(session.Run({second}).ok());
  EXPECT_EQ(lost(), "");
  ASSERT_TRUE(session.Run({}, {}, {model.train}).status().ok());
  EXPECT_THAT(lost(), HasSubstr("from which another iterator or function draws too"));
}

}  // namespace
}  // namespace weir
