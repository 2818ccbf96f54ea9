// Saver with SaveMode::kAsync: what is saved is the state at the call, whatever runs meanwhile.

#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/core/io/bundle.h"
#include "weir/core/io/file_posix.h"
#include "weir/core/tensor/mutex.h"
#include "weir/ops/framework/variables.h"
#include "weir/session/model/saver.h"
#include "weir/tests/io/test_files.h"
#include "weir/tests/session/lib/saver_testing.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Init;
using testing::MakeTempDirectory;
using testing::ReadBytes;
using testing::Start;
using testing::Value;
using testing::Var;

// A disk on which no data file can be created while it is held, and, once it is full, none at all.
class HeldDisk final : public PosixFileSystem {
 public:
  ~HeldDisk() override { Release(); }
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(const std::string& path) override {
    if (path.find(".data-") == std::string::npos) return PosixFileSystem::Create(path);
    {
      const MutexLock lock(mutex_);
      while (held_) changed_.Wait(mutex_);
    }
    if (is_full) return absl::ResourceExhaustedError(path + ": the disk is full");
    return PosixFileSystem::Create(path);
  }
  void Hold() {
    const MutexLock lock(mutex_);
    held_ = true;
  }
  void Release() {
    const MutexLock lock(mutex_);
    held_ = false;
    changed_.NotifyAll();
  }
  std::atomic<bool> is_full{false};

 private:
  Mutex mutex_;
  CondVar changed_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
};

class AsyncSaver : public ::testing::TestWithParam<bool> {
 protected:
  AsyncSaver()
      : dir_(MakeTempDirectory("async_saver")),
        path_(dir_ + "/m"),
        graph_({.use_resource = GetParam()}) {
    v_ = Var(graph_, "v", {1, 2});
    {
      const DeviceScope another(graph_, "/cpu:0");  // a shard of its own
      w_ = Var(graph_, "w", {10});
    }
    add_ = {Operation(v_.AssignAdd({1.0, 1.0})), Operation(w_.AssignAdd({1.0}))};
  }

  void Open(const SaverOptions& options = {}) {
    auto saver = Saver::Create(graph_, options);
    ASSERT_TRUE(saver.ok()) << saver.status();
    saver_.emplace(*std::move(saver));
    session_.emplace(Start(graph_));
    Init(*session_, graph_);
  }
  void Step() { ASSERT_TRUE(session_->Run(Feeds{}, {}, add_).ok()); }
  absl::StatusOr<std::string> Save(int64_t step, SaveMode mode = SaveMode::kAsync) {
    return saver_->Save(*session_, path_, {.global_step = step, .mode = mode});
  }
  static std::vector<float> Saved(const std::string& prefix, const std::string& name) {
    const auto reader = CheckpointReader::Open(prefix);
    if (!reader.ok()) return {};
    const auto tensor = (*reader)->Read(name);
    if (!tensor.ok()) return {};
    return {tensor->flat<float>().begin(), tensor->flat<float>().end()};
  }

  HeldDisk disk_;
  const ScopedFileSystem scope_{&disk_};
  const std::string dir_, path_;
  Graph graph_;
  Variable v_, w_;
  std::vector<Operation> add_;
  std::optional<Session> session_;
  std::optional<Saver> saver_;  // is destroyed first: its thread uses the disk
};

INSTANTIATE_TEST_SUITE_P(BothKinds, AsyncSaver, ::testing::Bool());

TEST_P(AsyncSaver, SavesTheValuesAtTheCallWhileStepsRun) {
  Open();
  disk_.Hold();
  EXPECT_EQ(Save(0).value_or(""), path_ + "-0");
  EXPECT_TRUE(saver_->is_saving());
  for (int i = 0; i < 3; ++i) Step();
  EXPECT_FALSE(Files().Exists(dir_ + "/checkpoint")) << "the state file comes last";
  disk_.Release();
  ASSERT_TRUE(saver_->Wait().ok());
  EXPECT_FALSE(saver_->is_saving());
  EXPECT_THAT(Saved(path_ + "-0", "v"), ElementsAre(1, 2));
  EXPECT_THAT(Saved(path_ + "-0", "w"), ElementsAre(10));
  EXPECT_THAT(Value(*session_, v_), ElementsAre(4, 5));
  EXPECT_EQ(LatestCheckpoint(dir_).value_or(""), path_ + "-0");
}

TEST_P(AsyncSaver, TheFilesAreThoseOfASynchronousSave) {
  for (const bool sharded : {false, true}) {
    Open({.sharded = sharded, .name = sharded ? "sharded" : "whole"});
    std::map<std::string, std::string> files[2];
    for (const SaveMode mode : {SaveMode::kSync, SaveMode::kAsync}) {
      ASSERT_TRUE(saver_->Save(*session_, path_, {.mode = mode}).ok());
      ASSERT_TRUE(saver_->Wait().ok());
      const std::vector<std::string> names = *Files().List(dir_);
      for (const std::string& name : names) {
        // The order of maps in a meta graph is not fixed.
        files[mode == SaveMode::kAsync][name] =
            name == "m.meta" ? "" : ReadBytes(dir_ + "/" + name);
        ASSERT_TRUE(Files().Remove(dir_ + "/" + name).ok());
      }
    }
    EXPECT_EQ(files[0].size(), sharded ? 5u : 4u);
    EXPECT_EQ(files[0], files[1]) << sharded;
  }
}

TEST_P(AsyncSaver, TheNextSaveWaitsOrIsSkipped) {
  Open({.max_to_keep = 2});
  disk_.Hold();
  ASSERT_TRUE(Save(1).ok());
  Step();
  EXPECT_EQ(Save(2, SaveMode::kAsyncOrSkip).value_or("error"), "");
  std::thread releaser([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    disk_.Release();
  });
  EXPECT_EQ(Save(3).value_or(""), path_ + "-3");
  releaser.join();
  Step();
  ASSERT_TRUE(Save(4, SaveMode::kSync).ok());
  EXPECT_EQ(Save(5, SaveMode::kAsyncOrSkip).value_or(""), path_ + "-5");
  EXPECT_THAT(saver_->last_checkpoints(), ElementsAre(path_ + "-4", path_ + "-5"));
  EXPECT_THAT(Saved(path_ + "-4", "v"), ElementsAre(3, 4));
  EXPECT_FALSE(Files().Exists(path_ + "-3.index"));
}

TEST_P(AsyncSaver, AnErrorReachesTheNextSaveOrWaitOnce) {
  Open();
  ASSERT_TRUE(Save(1).ok());
  ASSERT_TRUE(saver_->Wait().ok());
  for (const bool by_wait : {false, true}) {
    disk_.is_full = true;
    ASSERT_TRUE(Save(2).ok());
    while (saver_->is_saving()) std::this_thread::yield();
    disk_.is_full = false;
    const absl::Status error = by_wait ? saver_->Wait() : Save(3).status();
    EXPECT_TRUE(absl::IsResourceExhausted(error)) << error;
    EXPECT_TRUE(saver_->Wait().ok());
  }
  EXPECT_EQ(LatestCheckpoint(dir_).value_or(""), path_ + "-1");
  EXPECT_EQ(Save(3).value_or(""), path_ + "-3");
  ASSERT_TRUE(saver_->Wait().ok());
  EXPECT_THAT(*Files().List(dir_),
              ElementsAre("checkpoint", "m-1.data-00000-of-00001", "m-1.index", "m-1.meta",
                          "m-3.data-00000-of-00001", "m-3.index", "m-3.meta"));
}

TEST_P(AsyncSaver, TheDestructorWaitsAndTheSessionMayBeGone) {
  Open();
  disk_.Hold();
  ASSERT_TRUE(Save(7).ok());
  session_.reset();
  disk_.Release();
  saver_.reset();
  EXPECT_THAT(Saved(LatestCheckpoint(dir_).value_or(""), "v"), ElementsAre(1, 2));
}

TEST_P(AsyncSaver, RestoreLatestWaitsForTheCheckpointBeingWritten) {
  Open();
  ASSERT_TRUE(Save(1).ok());
  Step();
  ASSERT_TRUE(Save(2).ok());
  Step();
  EXPECT_EQ(saver_->RestoreLatest(*session_, dir_).value_or(""), path_ + "-2");
  EXPECT_THAT(Value(*session_, v_), ElementsAre(2, 3));
}

TEST_P(AsyncSaver, RestoreWaitsForTheCheckpointBeingWritten) {
  Open();
  disk_.Hold();
  const std::string saved = Save(1).value_or("");
  Step();
  std::thread releaser([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    disk_.Release();
  });
  const absl::Status restored = saver_->Restore(*session_, saved);
  releaser.join();
  EXPECT_TRUE(restored.ok()) << restored;
  EXPECT_THAT(Value(*session_, v_), ElementsAre(1, 2));
}

TEST_P(AsyncSaver, AVariableWithoutAValueIsNamed) {
  Open();
  Session empty = Start(graph_);
  const auto saved = saver_->Save(empty, path_, {.mode = SaveMode::kAsync});
  EXPECT_TRUE(absl::IsFailedPrecondition(saved.status())) << saved.status();
  EXPECT_THAT(std::string(saved.status().message()), HasSubstr("v"));
  EXPECT_THAT(*Files().List(dir_), ElementsAre());
}

TEST_P(AsyncSaver, TheOldFormatIsRefused) {
  Open({.write_version = 1});
  const auto saved = Save(1);
  EXPECT_TRUE(absl::IsUnimplemented(saved.status())) << saved.status();
  EXPECT_THAT(std::string(saved.status().message()), HasSubstr("kSync"));
}

}  // namespace
}  // namespace weir
