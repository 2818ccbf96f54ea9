// Saver::RestoreLatest: the newest checkpoint, or the newest sound one.

#include "weir/session/model/restore_latest.h"

#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/bundle.h"
#include "weir/core/io/file.h"
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
using testing::WriteBytes;

class RestoreLatest : public ::testing::Test {
 protected:
  RestoreLatest() : dir_(MakeTempDirectory("restore_latest")), path_(dir_ + "/m") {
    v_ = Var(graph_, "v", {0});
    add_ = Operation(v_.AssignAdd({1.0}));
    saver_.emplace(*Saver::Create(graph_));
    session_.emplace(Start(graph_));
    Init(*session_, graph_);
    for (int step = 1; step <= 4; ++step) {
      EXPECT_TRUE(session_->Run(add_).ok());
      EXPECT_TRUE(saver_->Save(*session_, path_, {.global_step = step}).ok());
    }
    Init(*session_, graph_);
  }
  std::string DataOf(int step) const {
    return absl::StrCat(path_, "-", step, ".data-00000-of-00001");
  }
  void Damage(int step) {
    std::string bytes = ReadBytes(DataOf(step));
    bytes[0] ^= 1;
    WriteBytes(DataOf(step), bytes);
  }
  absl::StatusOr<std::string> Restore(bool skip_damaged) {
    return saver_->RestoreLatest(*session_, dir_, skip_damaged);
  }

  const std::string dir_, path_;
  Graph graph_;
  Variable v_;
  Operation add_;
  std::optional<Session> session_;
  std::optional<Saver> saver_;
};

TEST_F(RestoreLatest, IsTheNewest) {
  EXPECT_EQ(Restore(false).value_or(""), path_ + "-4");
  EXPECT_THAT(Value(*session_, v_), ElementsAre(4));
  EXPECT_EQ(saver_->last_checkpoints().size(), 4u);
}

TEST_F(RestoreLatest, DamageIsAnErrorUnlessItIsSkipped) {
  Damage(4);
  EXPECT_TRUE(absl::IsDataLoss(Restore(false).status()));
  EXPECT_THAT(Value(*session_, v_), ElementsAre(0));
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Restore(true).value_or(""), path_ + "-3");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("warning: the checkpoint " + path_ + "-4 is damaged and is skipped"));
  EXPECT_THAT(Value(*session_, v_), ElementsAre(3));
}

TEST_F(RestoreLatest, MissingAndShortFilesAreDamageToo) {
  ASSERT_TRUE(Files().Remove(path_ + "-4.index").ok());
  ASSERT_TRUE(Files().Remove(DataOf(3)).ok());
  WriteBytes(DataOf(2), "");
  EXPECT_EQ(Restore(true).value_or(""), path_ + "-1");
  EXPECT_THAT(Value(*session_, v_), ElementsAre(1));
}

TEST_F(RestoreLatest, SoundOnesOutlastTheDamaged) {
  Damage(4);
  Saver saver = *Saver::Create(graph_, {.max_to_keep = 2, .name = "again"});
  ASSERT_TRUE(saver.RestoreLatest(*session_, dir_, true).ok());
  ASSERT_TRUE(saver.Save(*session_, path_, {.global_step = 5}).ok());
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(path_ + "-3", path_ + "-5"));
}

TEST_F(RestoreLatest, AfterTheListedOnesComeOthersOfTheName) {
  ASSERT_TRUE(WriteCheckpointState(dir_, {.model_checkpoint_path = path_ + "-4"}).ok());
  const auto writer = *BundleWriter::Create(dir_ + "/other-9");
  ASSERT_TRUE(writer->Finish().ok());
  Damage(4);
  EXPECT_EQ(Restore(true).value_or(""), path_ + "-3");
}

TEST_F(RestoreLatest, ADamagedStateFileIsSkippedToo) {
  WriteBytes(dir_ + "/checkpoint", "model_checkpoint_path: \"m-");
  EXPECT_TRUE(absl::IsDataLoss(Restore(false).status()));
  EXPECT_EQ(Restore(true).value_or(""), path_ + "-4");
  ASSERT_TRUE(Files().Remove(dir_ + "/checkpoint").ok());
  EXPECT_TRUE(absl::IsNotFound(Restore(true).status()));
}

TEST_F(RestoreLatest, AnotherModelIsNoDamage) {
  Graph other;
  Var(other, "w", {0});
  Saver saver = *Saver::Create(other);
  Session session = Start(other);
  const auto restored = saver.RestoreLatest(session, dir_, true);
  EXPECT_TRUE(absl::IsNotFound(restored.status())) << restored.status();
  EXPECT_THAT(std::string(restored.status().message()), HasSubstr("Key w not found"));
}

TEST_F(RestoreLatest, WithoutASoundOneTheErrorIsOfTheNewest) {
  for (const int step : {1, 2, 3, 4}) Damage(step);
  const auto restored = Restore(true);
  EXPECT_TRUE(absl::IsDataLoss(restored.status()));
  EXPECT_THAT(std::string(restored.status().message()),
              ::testing::AllOf(HasSubstr("none of the 4 checkpoints"), HasSubstr(DataOf(4))));
}

}  // namespace
}  // namespace weir
