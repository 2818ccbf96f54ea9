// `weir ckpt pin` and `gc`: what is removed is what was printed, and never what is needed.

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "weir/core/io/checkpoint_state.h"
#include "weir/core/io/retention.h"
#include "weir/tests/tools/ckpt/ckpt_testing.h"

namespace weir::tools {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WeirCkptGc : public WeirCkpt {
 protected:
  // Writes m-1, m-2, ..., an hour apart, and a state file that names the last one.
  void WriteRun(int count) {
    CheckpointState state;
    for (int i = 1; i <= count; ++i) {
      const std::string prefix = Write("run/m-" + std::to_string(i), 1);
      SetTime(prefix + ".index", i - count);
      state.all_model_checkpoint_paths.push_back(prefix);
      state.all_model_checkpoint_timestamps.push_back(i);
      state.model_checkpoint_path = prefix;
    }
    ASSERT_TRUE(WriteCheckpointState(run_, state).ok());
  }
  // Sets the time of a file to `hours` after now.
  static void SetTime(const std::string& path, int hours) {
    std::filesystem::last_write_time(
        path, std::filesystem::file_time_type::clock::now() + std::chrono::hours(hours));
  }
  std::vector<std::string> Checkpoints() const {
    std::vector<std::string> names;
    const std::vector<std::string> files = *Files().List(run_);
    for (const std::string& name : files) {
      if (name.ends_with(".index")) names.push_back(name.substr(0, name.size() - 6));
    }
    return names;
  }

  const std::string run_ = At("run");
};

using WeirCkptPin = WeirCkptGc;

TEST_F(WeirCkptGc, KeepsTheNewest) {
  WriteRun(4);
  ASSERT_TRUE(WriteFileAtomically(run_ + "/m-1.meta", "graph").ok());
  const std::vector<std::string> before = *Files().List(run_);
  const CommandResult dry = Weir({"ckpt", "gc", run_, "--keep", "2", "--dry-run"});
  EXPECT_EQ(dry.status, kOk) << dry.err;
  EXPECT_THAT(dry.out, HasSubstr("2 checkpoints kept, 2 removed"));
  EXPECT_EQ(*Files().List(run_), before);
  MustDo({"ckpt", "gc", run_, "--keep", "2"});
  EXPECT_THAT(*Files().List(run_), ElementsAre("checkpoint", "m-3.data-00000-of-00001", "m-3.index",
                                               "m-4.data-00000-of-00001", "m-4.index"));
  const CheckpointState state = *ReadCheckpointState(run_);
  EXPECT_THAT(state.all_model_checkpoint_paths, ElementsAre(run_ + "/m-3", run_ + "/m-4"));
  EXPECT_THAT(state.all_model_checkpoint_timestamps, ElementsAre(3, 4));
}

TEST_F(WeirCkptGc, PinnedPeriodicAndNamedOnesStay) {
  WriteRun(7);
  CheckpointState state = *ReadCheckpointState(run_);
  state.model_checkpoint_path = run_ + "/m-2";
  state.all_model_checkpoint_paths = {run_ + "/m-2"};
  state.all_model_checkpoint_timestamps.clear();
  ASSERT_TRUE(WriteCheckpointState(run_, state).ok());
  MustDo({"ckpt", "pin", run_ + "/m-5", "--note", "best"});
  const json result =
      json::parse(Weir({"ckpt", "gc", run_, "--keep", "1", "--every-hours", "2.5", "--json"}).out);
  EXPECT_THAT(Checkpoints(), ElementsAre("m-1", "m-2", "m-4", "m-5", "m-7"));
  EXPECT_EQ(result["checkpoints"][2]["reason"], "pinned: best");
}

TEST_F(WeirCkptGc, TheBestByTheirMetricsStay) {
  WriteRun(5);
  for (const auto& [step, metric] : {std::pair{1, 0.5}, {2, 0.75}, {4, 0.25}})
    ASSERT_TRUE(WriteMetric(run_ + "/m-" + std::to_string(step), metric).ok());
  ASSERT_TRUE(WriteFileAtomically(MetricPath(run_ + "/m-3"), "no number").ok());
  const auto plan = [&](const std::vector<std::string>& more) {
    std::vector<std::string> args = {"ckpt", "gc", run_, "--keep", "1", "--dry-run", "--json"};
    args.insert(args.end(), more.begin(), more.end());
    return json::parse(Weir(args).out)["checkpoints"];
  };
  const json lower = plan({"--best", "1", "--lower"});
  EXPECT_EQ(lower[1]["reason"], "best 1: 0.25");
  EXPECT_EQ(lower[1]["metric"], 0.25);
  EXPECT_EQ(lower[2]["keep"], false);
  EXPECT_TRUE(lower[2]["metric"].is_null());
  MustDo({"ckpt", "gc", run_, "--keep", "1", "--best", "2"});
  EXPECT_THAT(Checkpoints(), ElementsAre("m-1", "m-2", "m-5"));
  EXPECT_FALSE(Files().Exists(MetricPath(run_ + "/m-4")));
}

TEST_F(WeirCkptGc, IncompleteOnesDoNotCount) {
  WriteRun(5);
  std::filesystem::resize_file(DataOf(run_ + "/m-4"), 10);
  ASSERT_TRUE(Files().Remove(DataOf(run_ + "/m-2")).ok());
  Damage(DataOf(run_ + "/m-3"), 0);
  MustDo({"ckpt", "gc", run_, "--keep", "2"});
  EXPECT_THAT(Checkpoints(), ElementsAre("m-3", "m-5")) << "a wrong checksum is not looked for";
  Write("run/m-6", 1);
  Damage(DataOf(run_ + "/m-6"), 0);
  MustDo({"ckpt", "gc", run_, "--keep", "2", "--verify"});
  EXPECT_THAT(Checkpoints(), ElementsAre("m-5", "m-6")) << "the newest may be repaired";
}

TEST_F(WeirCkptGc, AnIncompleteOneIsNotTheFirstOfItsPeriod) {
  WriteRun(3);
  MustDo({"ckpt", "pin", run_ + "/m-1"});
  ASSERT_TRUE(Files().Remove(DataOf(run_ + "/m-1")).ok());
  MustDo({"ckpt", "gc", run_, "--keep", "1", "--every-hours", "1.5"});
  EXPECT_THAT(Checkpoints(), ElementsAre("m-1", "m-2", "m-3"));
}

TEST_F(WeirCkptGc, WithoutACompleteOneNothingIsRemoved) {
  WriteRun(2);
  for (const char* name : {"m-1", "m-2"})
    ASSERT_TRUE(Files().Remove(DataOf(At("run/") + name)).ok());
  EXPECT_THAT(Error({"ckpt", "gc", run_}), HasSubstr("none of the 2 checkpoints is complete"));
  EXPECT_THAT(Checkpoints(), ElementsAre("m-1", "m-2"));
}

TEST_F(WeirCkptGc, SweepsWhatKilledSavesLeft) {
  WriteRun(1);
  const std::vector<std::string> leftovers = {
      run_ + "/m-2.data-00000-of-00001", run_ + "/m-2.index.weir-temp123", run_ + "/m-3.weir-lock"};
  for (const std::string& path : leftovers) ASSERT_TRUE(WriteFileAtomically(path, "x").ok());
  ASSERT_TRUE(MakeDirectories(run_ + "/m-4_temp").ok());
  ASSERT_TRUE(WriteFileAtomically(run_ + "/m-4_temp/part-00000-of-00002.index", "x").ok());
  const json dry = json::parse(Weir({"ckpt", "gc", run_, "--dry-run", "--json"}).out);
  EXPECT_EQ(dry["leftovers"].size(), 3u) << "parts of a sharded save may be in use";
  SetTime(run_ + "/m-4_temp/part-00000-of-00002.index", -2);
  MustDo({"ckpt", "gc", run_});
  EXPECT_THAT(*Files().List(run_),
              ElementsAre("checkpoint", "m-1.data-00000-of-00001", "m-1.index"));
}

TEST_F(WeirCkptGc, WhatIsBeingWrittenStays) {
  WriteRun(3);
  const auto writer = BundleWriter::Create(run_ + "/m-1");
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(WriteFileAtomically(run_ + "/m-9.data-00000-of-00001", "x").ok());
  const auto lock = WriteLock::Acquire(run_ + "/m-9");
  const CommandResult result = Weir({"ckpt", "gc", run_, "--keep", "1"});
  EXPECT_EQ(result.status, kOk) << result.err;
  EXPECT_THAT(result.out, HasSubstr("SKIPPED " + run_ + "/m-1: in use"));
  EXPECT_THAT(Checkpoints(), ElementsAre("m-1", "m-3"));
  EXPECT_TRUE(Files().Exists(run_ + "/m-9.data-00000-of-00001"));
  ASSERT_TRUE((*writer)->Add("t", Tensor::Scalar(1.f)).ok());
  EXPECT_TRUE((*writer)->Finish().ok());
}

TEST_F(WeirCkptPin, OnlyCompleteCheckpointsArePinned) {
  WriteRun(1);
  const std::string prefix = run_ + "/m-1";
  MustDo({"ckpt", "pin", prefix, "--dry-run"});
  EXPECT_FALSE(IsPinned(prefix));
  MustDo({"ckpt", "pin", run_});
  EXPECT_TRUE(IsPinned(prefix));
  MustDo({"ckpt", "pin", prefix, "--remove"});
  EXPECT_FALSE(IsPinned(prefix));
  EXPECT_THAT(Error({"ckpt", "pin", prefix, "--remove"}), HasSubstr("is not pinned"));
  EXPECT_THAT(Error({"ckpt", "pin", run_ + "/m-8"}), HasSubstr("NOT_FOUND"));
  ASSERT_TRUE(Files().Remove(DataOf(prefix)).ok());
  EXPECT_THAT(Error({"ckpt", "pin", prefix}), HasSubstr("NOT_FOUND"));
}

}  // namespace
}  // namespace weir::tools
