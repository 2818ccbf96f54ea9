// Which checkpoints a Saver keeps: the best ones, those of a run that was killed, and what PlanSave
// says of them.

#include <cmath>
#include <optional>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/file.h"
#include "weir/ops/framework/variables.h"
#include "weir/session/model/interrupted_saves.h"
#include "weir/session/model/saver.h"
#include "weir/tests/io/test_files.h"
#include "weir/tests/session/lib/saver_testing.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using testing::Init;
using ::testing::IsEmpty;
using testing::MakeTempDirectory;
using testing::Start;
using ::testing::UnorderedElementsAre;
using testing::Var;

class SaverRetention : public ::testing::Test {
 protected:
  SaverRetention() : dir_(MakeTempDirectory("saver_retention")), path_(dir_ + "/m") {
    Var(graph_, "v", {1});
  }

  void Open(const SaverOptions& options) {
    auto saver = Saver::Create(graph_, options);
    ASSERT_TRUE(saver.ok()) << saver.status();
    saver_.emplace(*std::move(saver));
    session_.emplace(Start(graph_));
    Init(*session_, graph_);
  }
  SaveOptions Options(int64_t step, std::optional<double> metric = {}) {
    return {.global_step = step, .mode = mode_, .metric = metric};
  }
  void Save(int64_t step, std::optional<double> metric = {}) {
    const auto saved = saver_->Save(*session_, path_, Options(step, metric));
    ASSERT_TRUE(saved.ok()) << saved.status();
    ASSERT_TRUE(saver_->Wait().ok());
  }
  // Returns the names of the checkpoints whose files exist.
  std::vector<std::string> Present() const {
    std::set<std::string> names;
    const std::vector<std::string> files = *Files().List(dir_);
    for (const std::string& file : files) {
      if (file != "checkpoint") names.insert(file.substr(0, file.find('.')));
    }
    return {names.begin(), names.end()};
  }
  // Returns what the plan removes.
  static std::vector<std::string> Removed(const std::vector<RetainedCheckpoint>& plan) {
    std::vector<std::string> names;
    for (const RetainedCheckpoint& each : plan) {
      if (!each.is_kept()) names.emplace_back(BaseName(each.prefix));
    }
    return names;
  }

  const std::string dir_, path_;
  SaveMode mode_ = SaveMode::kSync;
  Graph graph_;
  std::optional<Session> session_;
  std::optional<Saver> saver_;
};

TEST_F(SaverRetention, KeepsTheBest) {
  for (const SaveMode mode : {SaveMode::kSync, SaveMode::kAsync}) {
    mode_ = mode;
    for (const Better better : {Better::kHigher, Better::kLower}) {
      Open({.max_to_keep = 1,
            .keep_best = 2,
            .better = better,
            .name = absl::StrCat("save", static_cast<int>(mode), static_cast<int>(better))});
      int step = 0;
      for (const double metric : {0.5, 0.9, 0.1, std::nan(""), 0.7, 0.6}) Save(++step, metric);
      Save(++step);
      if (better == Better::kHigher) {
        EXPECT_THAT(Present(), ElementsAre("m-2", "m-5", "m-7"));
      } else {
        EXPECT_THAT(Present(), ElementsAre("m-1", "m-3", "m-7"));
      }
      EXPECT_EQ(ReadCheckpointState(dir_)->all_model_checkpoint_paths, saver_->last_checkpoints());
      for (const std::string& path : saver_->last_checkpoints())
        ASSERT_TRUE(RemoveCheckpoint(path).ok());
      EXPECT_THAT(*Files().List(dir_), ElementsAre("checkpoint")) << "metrics are removed too";
    }
  }
}

TEST_F(SaverRetention, OfEqualMetricsTheNewestIsTheBest) {
  Open({.max_to_keep = 1, .keep_best = 1});
  Save(1, 0.5);
  Save(2, 0.5);
  Save(3);
  EXPECT_THAT(Present(), ElementsAre("m-2", "m-3"));
}

TEST_F(SaverRetention, ANewProcessKnowsTheMetrics) {
  Open({.max_to_keep = 1, .keep_best = 1});
  Save(1, 0.9);
  Save(2, 0.3);
  Open({.max_to_keep = 1, .keep_best = 1, .name = "again"});
  ASSERT_EQ(saver_->RestoreLatest(*session_, dir_).value_or(""), path_ + "-2");
  Save(3, 0.4);
  EXPECT_THAT(Present(), ElementsAre("m-1", "m-3"));
  EXPECT_EQ(ReadMetric(path_ + "-1"), 0.9);
}

TEST_F(SaverRetention, APeriodGoesOnInANewProcess) {
  Open({.max_to_keep = 1, .keep_checkpoint_every_n_hours = 1e-9});
  Save(1);
  Save(2);
  EXPECT_THAT(Present(), ElementsAre("m-1", "m-2"));
  EXPECT_GT(ReadCheckpointState(dir_)->last_preserved_timestamp, 0);
  Open({.max_to_keep = 1, .keep_checkpoint_every_n_hours = 1, .name = "again"});
  ASSERT_TRUE(saver_->RestoreLatest(*session_, dir_).ok());
  Save(3);
  EXPECT_THAT(Present(), ElementsAre("m-1", "m-3")) << "m-1 is younger than an hour";
  CheckpointState state = *ReadCheckpointState(dir_);
  state.last_preserved_timestamp -= 2 * 3600;
  ASSERT_TRUE(WriteCheckpointState(dir_, state).ok());
  Open({.max_to_keep = 1, .keep_checkpoint_every_n_hours = 1, .name = "third"});
  ASSERT_TRUE(saver_->RestoreLatest(*session_, dir_).ok());
  Save(4);
  EXPECT_THAT(Present(), ElementsAre("m-1", "m-3", "m-4"));
}

TEST_F(SaverRetention, ThePlanIsWhatTheSaveDoes) {
  Open({.max_to_keep = 2, .keep_best = 1});
  Save(1, 0.9);
  Save(2, 0.1);
  Save(3, 0.2);
  ASSERT_TRUE(WriteFileAtomically(PinPath(path_ + "-2"), "demo\n").ok());
  Save(4, 0.3);
  ASSERT_TRUE(Files().Remove(PinPath(path_ + "-2")).ok());
  const std::vector<std::string> before = *Files().List(dir_);
  const std::vector<RetainedCheckpoint> plan = saver_->PlanSave(path_, Options(5, 0.8));
  EXPECT_EQ(*Files().List(dir_), before);
  std::vector<std::string> reasons;
  for (const RetainedCheckpoint& each : plan) reasons.push_back(each.reason);
  EXPECT_THAT(reasons, ElementsAre("newest 2", "newest 2", "old", "best 1: 0.9"));
  EXPECT_THAT(Removed(plan), ElementsAre("m-3"));
  Save(5, 0.8);
  EXPECT_THAT(Present(), ElementsAre("m-1", "m-2", "m-4", "m-5"));
  EXPECT_THAT(Removed(saver_->PlanSave(path_, Options(6, 1))), ElementsAre("m-4", "m-1"));
  EXPECT_THAT(Removed(saver_->PlanSave(path_, Options(5))), IsEmpty()) << "it is replaced";
}

// ---- What killed processes have left.

// Leaves the mark that a process leaves that is killed while it saves or removes a checkpoint.
void LeaveMark(const std::string& prefix) {
  testing::WriteBytes(prefix + ".checkpoint.weir-save", "");
}

TEST_F(SaverRetention, RemainsOfAnInterruptedSaveAreRemoved) {
  Open({.max_to_keep = 3});
  Save(1);
  testing::WriteBytes(path_ + "-2.data-00000-of-00001", "half");
  ASSERT_TRUE(Files().MakeDirectory(path_ + "-2_temp").ok());
  testing::WriteBytes(path_ + "-2_temp/part-00000-of-00001.data-00000-of-00001", "half");
  LeaveMark(path_ + "-2");
  testing::WriteBytes(dir_ + "/n-2.data-00000-of-00001", "of somebody else");
  testing::WriteBytes(path_ + "-4.data-00000-of-00001", "not marked");
  Save(3);
  EXPECT_THAT(Present(), ElementsAre("m-1", "m-3", "m-4", "n-2"));
}

TEST_F(SaverRetention, AnUnlistedCheckpointOfAKilledProcessCounts) {
  Open({.max_to_keep = 2});
  for (const int step : {1, 2, 3}) {
    ASSERT_TRUE(saver_->Save(*session_, path_, {.global_step = step, .write_state = false}).ok());
  }
  LeaveMark(path_ + "-1");
  ASSERT_TRUE(Files().MakeDirectory(path_ + "-1_temp").ok());
  LeaveMark(path_ + "-2");
  ASSERT_TRUE(WriteFileAtomically(PinPath(path_ + "-2"), "demo\n").ok());
  Save(4);
  EXPECT_THAT(saver_->last_checkpoints(), ElementsAre(path_ + "-1", path_ + "-4"));
  EXPECT_FALSE(Files().Exists(path_ + "-1_temp"));
  Save(5);
  EXPECT_THAT(Present(), ElementsAre("m-2", "m-3", "m-4", "m-5"));
}

TEST_F(SaverRetention, ACheckpointStaysMarkedWhenItsFinderIsKilledToo) {
  Open({.max_to_keep = 1});
  ASSERT_TRUE(saver_->Save(*session_, path_, {.global_step = 1, .write_state = false}).ok());
  LeaveMark(path_ + "-1");
  for (int kill = 0; kill < 2; ++kill) {  // found, and neither listed nor removed
    const std::vector<InterruptedSave> found = FinishInterruptedSaves(path_, "checkpoint", {});
    ASSERT_EQ(found.size(), 1) << kill;
    EXPECT_EQ(found[0].prefix, path_ + "-1");
    EXPECT_TRUE(FinishInterruptedSaves(path_, "checkpoint", {}).empty()) << "its finder lives";
  }
  Save(2);
  EXPECT_THAT(Present(), ElementsAre("m-2"));
}

TEST_F(SaverRetention, ListedMarkedAndForeignMarksChangeNothing) {
  Open({.max_to_keep = 5});
  Save(1);
  LeaveMark(path_ + "-1");
  ASSERT_TRUE(
      saver_->Save(*session_, dir_ + "/other", {.global_step = 2, .write_state = false}).ok());
  LeaveMark(dir_ + "/other-2");
  testing::WriteBytes(path_ + "-3.data-00000-of-00001", "being written");
  const auto alive = SaveMark::Create(path_ + "-3", "checkpoint");
  ASSERT_TRUE(alive.ok());
  Open({.max_to_keep = 5, .name = "again"});
  Save(4);
  EXPECT_THAT(saver_->last_checkpoints(), ElementsAre(path_ + "-4"));
  EXPECT_THAT(Present(), UnorderedElementsAre("m-1", "m-3", "m-4", "other-2"));
  EXPECT_TRUE(absl::IsAborted(saver_->Save(*session_, path_, Options(3)).status()));
}

}  // namespace
}  // namespace weir
