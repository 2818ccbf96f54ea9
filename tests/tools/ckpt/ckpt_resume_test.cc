// `weir ckpt convert --resume`: an interrupted conversion goes on from what was written.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "weir/tests/tools/ckpt/ckpt_testing.h"

namespace weir::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class WeirCkptResume : public WeirCkpt {
 protected:
  // Writes a checkpoint of 12 tensors of 1 MiB each, which are as many parts.
  std::string WriteLarge(const std::string& name, float factor) const {
    const auto writer = BundleWriter::Create(At(name));
    for (int t = 0; t < kTensors; ++t) {
      Tensor tensor(DT_FLOAT, {1 << 18});
      for (int i = 0; i < 1 << 18; ++i)
        tensor.data<float>()[i] = factor * static_cast<float>(i + t);
      EXPECT_TRUE((*writer)->Add(absl::StrCat("t", 10 + t), tensor).ok());
    }
    EXPECT_TRUE((*writer)->Finish().ok());
    return At(name);
  }
  // Runs a conversion in a process that is killed after a time. Returns whether it was.
  static bool RunAndKill(const std::vector<std::string>& args, std::chrono::milliseconds after) {
    const pid_t child = fork();
    if (child == 0) _exit(Weir(args).status);
    std::this_thread::sleep_for(after);
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status);
  }
  static constexpr int kTensors = 12;
};

TEST_F(WeirCkptResume, KilledConversionsGoOn) {
  const std::string large = WriteLarge("large", 1);
  for (const std::string format : {"v2", "npy"}) {
    const std::vector<std::string> args = {"ckpt",     "convert", large,     At("out." + format),
                                           "--format", format,    "--resume"};
    int kills = 0;
    const std::string out = At("out." + format + (format == "v2" ? ".index" : ""));
    while (RunAndKill(args, std::chrono::milliseconds(20 + 15 * kills)) && ++kills < 200) {
      if (Files().Exists(out)) break;  // only the removal of the parts was missing
    }
    EXPECT_GT(kills, 0);
    EXPECT_LT(kills, 200);
    EXPECT_EQ(Weir({"ckpt", "diff", large, At("out." + format)}).status, kOk);
    EXPECT_THAT(Error(args), HasSubstr("exists"));
    EXPECT_FALSE(Files().Exists(At("out." + format + ".weir-resume")));
  }
}

// The last tensor of the input is damaged: the others are written, and kept.
TEST_F(WeirCkptResume, OnlyMissingAndChangedPartsAreWritten) {
  const std::string large = WriteLarge("large", 1);
  const std::string sound = *ReadFile(DataOf(large));
  const auto time = std::filesystem::last_write_time(DataOf(large));
  const auto put = [&](const std::string& bytes) {
    ASSERT_TRUE(WriteFileAtomically(DataOf(large), bytes).ok());
    std::filesystem::last_write_time(DataOf(large), time);
  };
  std::string damaged = sound;
  damaged.back() ^= 1;
  put(damaged);
  const std::vector<std::string> args = {"ckpt", "convert", large, At("out"), "--resume"};
  EXPECT_THAT(Error(args), AllOf(HasSubstr("DATA_LOSS"), HasSubstr("repeat the command")));
  EXPECT_FALSE(Files().Exists(At("out.index")));
  put(sound);
  Damage(At("out.weir-resume/part-00003.data-00000-of-00001"), 5000);
  const CommandResult result = Weir(args);
  EXPECT_EQ(result.status, kOk) << result.err;
  EXPECT_THAT(result.err, HasSubstr("10 of 12 parts are written"));
  EXPECT_EQ(Weir({"ckpt", "diff", large, At("out")}).status, kOk);
  EXPECT_EQ(Weir({"ckpt", "verify", At("out")}).status, kOk);
}

TEST_F(WeirCkptResume, PartsOfSomethingElseAreNotUsed) {
  const std::string large = WriteLarge("large", 1);
  std::string damaged = *ReadFile(DataOf(large));
  damaged.back() ^= 1;
  ASSERT_TRUE(WriteFileAtomically(DataOf(large), damaged).ok());
  const std::vector<std::string> args = {"ckpt", "convert", large, At("out"), "--resume"};
  Error(args);
  WriteLarge("large", 2);
  const CommandResult result = Weir(args);
  EXPECT_EQ(result.status, kOk) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr("starting over"), Not(HasSubstr("going on"))));
  EXPECT_EQ(Weir({"ckpt", "diff", large, At("out")}).status, kOk);
}

TEST_F(WeirCkptResume, OtherFormatsSayThatTheyStartOver) {
  const CommandResult result =
      Weir({"ckpt", "convert", model_, At("f.npz"), "--drop", "words", "--resume"});
  EXPECT_EQ(result.status, kOk);
  EXPECT_THAT(result.err, AllOf(HasSubstr("npz"), HasSubstr("starts over")));
}

}  // namespace
}  // namespace weir::tools
