#include "weir/core/io/checkpoint_state.h"

#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/file.h"
#include "weir/tests/io/test_files.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MakeTempDirectory;
using testing::MemoryFileSystem;
using testing::ReadBytes;
using testing::WriteBytes;

TEST(CheckpointState, MatchesTensorFlowsBytes) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.MakeDirectory("/train").ok());
  {
    ScopedFileSystem scope(&files);
    ASSERT_TRUE(WriteCheckpointState("/train",
                                     {.model_checkpoint_path = "/train/m \"2\"",
                                      .all_model_checkpoint_paths = {"/m-1", "/train/m \"2\""}},
                                     true)
                    .ok());
  }
  EXPECT_EQ(*files.Contents("/train/checkpoint"),
            ReadBytes("tests/io/golden/state_made_relative.txt"));

  const std::string dir = MakeTempDirectory("state");
  ASSERT_EQ(chdir(dir.c_str()), 0);
  ASSERT_TRUE(MakeDirectories("train").ok());
  ASSERT_TRUE(
      WriteCheckpointState("train", {.model_checkpoint_path = "train/m-2",
                                     .all_model_checkpoint_paths = {"train/m-1", "train/m-2"}})
          .ok());
  EXPECT_EQ(ReadBytes("train/checkpoint"),
            "model_checkpoint_path: \"m-2\"\nall_model_checkpoint_paths: \"m-1\"\n"
            "all_model_checkpoint_paths: \"m-2\"\n");
  const auto state = ReadCheckpointState("train");
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->model_checkpoint_path, "train/m-2");
  EXPECT_THAT(state->all_model_checkpoint_paths, ElementsAre("train/m-1", "train/m-2"));
}

TEST(CheckpointState, TheNewestIsAppendedToTheList) {
  const std::string dir = MakeTempDirectory("state");
  ASSERT_TRUE(WriteCheckpointState(dir, {.model_checkpoint_path = dir + "/b",
                                         .all_model_checkpoint_paths = {dir + "/a"}})
                  .ok());
  EXPECT_THAT(ReadCheckpointState(dir)->all_model_checkpoint_paths,
              ElementsAre(dir + "/a", dir + "/b"));
}

TEST(CheckpointState, TimestampsAreForAllPathsOrNone) {
  const std::string dir = MakeTempDirectory("state");
  CheckpointState state{.model_checkpoint_path = dir + "/a",
                        .all_model_checkpoint_timestamps = {1.5},
                        .last_preserved_timestamp = 2};
  ASSERT_TRUE(WriteCheckpointState(dir, state).ok());
  EXPECT_THAT(ReadCheckpointState(dir)->all_model_checkpoint_timestamps, ElementsAre(1.5));
  EXPECT_EQ(ReadCheckpointState(dir)->last_preserved_timestamp, 2);
  state.all_model_checkpoint_timestamps = {1, 2, 3};
  EXPECT_TRUE(absl::IsInvalidArgument(WriteCheckpointState(dir, state)));
}

// Otherwise the change would bring back the state from before the saver's.
TEST(CheckpointState, ASaverWaitsWhileTheStateIsChanged) {
  const std::string dir = MakeTempDirectory("state");
  ASSERT_TRUE(WriteCheckpointState(dir, {.model_checkpoint_path = dir + "/m-2",
                                         .all_model_checkpoint_paths = {dir + "/m-1"}})
                  .ok());
  std::thread saver;
  absl::Status saved;
  const absl::Status changed = ChangeCheckpointState(dir, [&](CheckpointState* state) {
    saver = std::thread(
        [&] { saved = WriteCheckpointState(dir, {.model_checkpoint_path = dir + "/m-3"}); });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    state->all_model_checkpoint_paths.erase(state->all_model_checkpoint_paths.begin());
    return true;
  });
  saver.join();
  EXPECT_TRUE(changed.ok()) << changed;
  EXPECT_TRUE(saved.ok()) << saved;
  EXPECT_EQ(ReadCheckpointState(dir)->model_checkpoint_path, dir + "/m-3");
  EXPECT_THAT(*Files().List(dir), ElementsAre("checkpoint")) << "no lock is left";
}

TEST(CheckpointState, AChangeOfNothingLeavesTheFile) {
  const std::string dir = MakeTempDirectory("state");
  const auto nothing = [](CheckpointState*) { return false; };
  EXPECT_TRUE(absl::IsNotFound(ChangeCheckpointState(dir, nothing)));
  const std::string text = "model_checkpoint_path: \"a\"  # as written by hand\n";
  WriteBytes(dir + "/checkpoint", text);
  EXPECT_TRUE(ChangeCheckpointState(dir, nothing).ok());
  EXPECT_EQ(ReadBytes(dir + "/checkpoint"), text);
}

TEST(LatestCheckpoint, IsTheNewestExistingCheckpoint) {
  const std::string dir = MakeTempDirectory("state");
  EXPECT_TRUE(absl::IsNotFound(LatestCheckpoint(dir).status()));
  ASSERT_TRUE(WriteCheckpointState(dir, {.model_checkpoint_path = dir + "/m-1"}).ok());
  EXPECT_THAT(LatestCheckpoint(dir).status().message(), HasSubstr("m-1"));
  WriteBytes(dir + "/m-1.index", "");
  EXPECT_EQ(*LatestCheckpoint(dir), dir + "/m-1");
}

TEST(LatestCheckpoint, IsFoundInAMovedDirectory) {
  const std::string dir = MakeTempDirectory("state");
  ASSERT_TRUE(WriteCheckpointState(dir, {.model_checkpoint_path = "/gone/m-2"}).ok());
  WriteBytes(dir + "/m-1.index", "");
  const absl::Status missing = LatestCheckpoint(dir).status();
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_THAT(missing.message(), HasSubstr("/gone/m-2, which is not there; these are: " + dir));
  WriteBytes(dir + "/m-2.index", "");
  EXPECT_EQ(*LatestCheckpoint(dir), dir + "/m-2");
}

TEST(CheckpointState, TextThatCannotBeParsedIsDataLossWithTheLine) {
  const std::string dir = MakeTempDirectory("state");
  WriteBytes(dir + "/checkpoint", "model_checkpoint_path: \"a\"\nnonsense");
  const auto state = ReadCheckpointState(dir);
  EXPECT_TRUE(absl::IsDataLoss(state.status()));
  EXPECT_THAT(state.status().message(), HasSubstr("line 2"));
  WriteBytes(dir + "/checkpoint", "");
  EXPECT_TRUE(absl::IsDataLoss(ReadCheckpointState(dir).status()));
}

}  // namespace
}  // namespace weir
