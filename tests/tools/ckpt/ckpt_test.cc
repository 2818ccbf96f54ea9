// `weir ckpt convert` and `repair`: the output contains the expected tensors for all formats, and
// no tensor is lost silently.

#include <nlohmann/json.hpp>

#include "weir/core/io/checkpoint_state.h"
#include "weir/core/io/npy.h"
#include "weir/tests/tools/ckpt/ckpt_testing.h"

namespace weir::tools {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

using WeirCkptConvert = WeirCkpt;
using WeirCkptRepair = WeirCkpt;

TEST_F(WeirCkptConvert, ConvertsThroughAllFormatsAndBack) {
  MustDo({"ckpt", "convert", model_, At("v1"), "--format", "v1"});
  ExpectSame(At("v1"));
  MustDo({"ckpt", "convert", At("v1"), At("arrays"), "--format", "npy"});
  EXPECT_TRUE(IdenticalTensors(*ReadNpy(At("arrays/hidden/w.npy")), Read(model_, "hidden/w")));
  MustDo({"ckpt", "convert", At("arrays"), At("v2")});
  ExpectSame(At("v2"));
  EXPECT_EQ(Weir({"ckpt", "verify", At("v2")}).status, kOk);
}

TEST_F(WeirCkptConvert, ChoosesAndRenames) {
  MustDo({"ckpt", "convert", model_, At("out"), "--drop", "Adam", "--keep", "^hidden|step",
          "--rename", "^hidden/(.)=dense/\\1/value", "--rename", "step=global_step"});
  EXPECT_THAT(NamesIn(At("out")), ElementsAre("dense/b/value", "dense/w/value", "global_step"));
  EXPECT_TRUE(IdenticalTensors(Read(At("out"), "dense/w/value"), Read(model_, "hidden/w")));
}

TEST_F(WeirCkptConvert, RoundsFloatsToAnotherType) {
  MustDo({"ckpt", "convert", model_, At("half"), "--dtype", "half"});
  EXPECT_EQ(Read(At("half"), "hidden/b").dtype(), DT_HALF);
  EXPECT_EQ(static_cast<float>(Read(At("half"), "hidden/b").data<half>()[2]), 3.140625f);
  EXPECT_EQ(Read(At("half"), "step").dtype(), DT_INT64);
  MustDo({"ckpt", "convert", At("half"), At("arrays"), "--dtype", "bfloat16", "--format", "npy"});
  EXPECT_EQ(ReadNpy(At("arrays/hidden/b.bf16.npy"))->dtype(), DT_BFLOAT16);
}

TEST_F(WeirCkptConvert, RejectsConversionsThatLoseTensors) {
  EXPECT_THAT(Error({"ckpt", "convert", model_, model_}), HasSubstr("choose another output path"));
  ExpectSame(model_);
  EXPECT_THAT(Error({"ckpt", "convert", model_, At("x"), "--rename", "^.*$=same"}),
              HasSubstr("would both be named 'same'"));
  EXPECT_THAT(Error({"ckpt", "convert", model_, At("x"), "--keep", "nothing"}),
              HasSubstr("exclude all 5 tensors"));
  EXPECT_THAT(Error({"ckpt", "convert", model_, At("x"), "--rename", "(=x"}),
              HasSubstr("invalid regular expression"));
  EXPECT_THAT(Error({"ckpt", "convert", model_, At("x"), "--rename", "x=\\3"}), HasSubstr("\\3"));
  EXPECT_THAT(Error({"ckpt", "convert", model_, At("x"), "--dtype", "int32"}),
              HasSubstr("half or bfloat16"));
  EXPECT_THAT(Error({"ckpt", "convert", model_, At("x"), "--format", "v3"}), HasSubstr("v1"));
  EXPECT_FALSE(Files().Exists(At("x.index")));
}

TEST_F(WeirCkptConvert, NamesCannotEscapeTheFolder) {
  for (const char* name : {"../w", "a/../../w", "/w", "a//w", "."}) {
    const std::string prefix = At("evil");
    const auto writer = BundleWriter::Create(prefix);
    ASSERT_TRUE((*writer)->Add(name, Tensor::Scalar(1.f)).ok());
    ASSERT_TRUE((*writer)->Finish().ok());
    EXPECT_THAT(Error({"ckpt", "convert", prefix, At("arrays"), "--format", "npy"}),
                HasSubstr("is not a valid file name"))
        << name;
  }
  EXPECT_FALSE(Files().Exists(At("w.npy")));
}

TEST_F(WeirCkptConvert, FollowsNoLinksAndNeverOverwritesItsInput) {
  MustDo({"ckpt", "convert", model_, At("arrays"), "--format", "npy"});
  std::filesystem::create_directory_symlink(At("arrays"), At("arrays/hidden/again"));
  MustDo({"ckpt", "convert", At("arrays"), At("v2")});
  ExpectSame(At("v2"));
  EXPECT_THAT(
      Error({"ckpt", "convert", At("arrays"), At("x/../arrays/"), "--format", "npy", "--force"}),
      HasSubstr("choose another output path"));
}

TEST_F(WeirCkptConvert, TwoFilesOfOneTensorAreNamed) {
  MustDo({"ckpt", "convert", model_, At("arrays"), "--format", "npy"});
  ASSERT_TRUE(WriteFileAtomically(At("arrays/step.json"), "{}").ok());
  EXPECT_THAT(Error({"ckpt", "convert", At("arrays"), At("v2")}), HasSubstr("two files"));
}

TEST_F(WeirCkptRepair, KeepsIntactTensorsAndReportsLostOnes) {
  Damage(DataOf(model_), 0);
  const CommandResult result = Weir({"ckpt", "repair", model_, At("out")});
  EXPECT_EQ(result.status, kFailure) << result.err;
  EXPECT_THAT(result.out, HasSubstr("LOST  hidden/b: pass a checkpoint that has it with --from"));
  EXPECT_THAT(NamesIn(At("out")), ElementsAre("hidden/b/Adam", "hidden/w", "step", "words"));
  EXPECT_EQ(Weir({"ckpt", "verify", At("out")}).status, kOk);
}

TEST_F(WeirCkptRepair, TakesOnlyLostTensorsFromAnother) {
  const std::string older = Write("older", 10);
  Damage(DataOf(model_), 0);
  const CommandResult result = Weir({"ckpt", "repair", model_, At("out"), "--from", older});
  EXPECT_EQ(result.status, kOk) << result.err << result.out;
  EXPECT_THAT(result.out, HasSubstr("TAKEN hidden/b from " + older));
  EXPECT_TRUE(IdenticalTensors(Read(At("out"), "hidden/b"), Read(older, "hidden/b")));
  EXPECT_EQ(Read(At("out"), "hidden/w").data<float>()[7], 7);
}

TEST_F(WeirCkptRepair, DonorMustMatchAndBeIntact) {
  const auto writer = BundleWriter::Create(At("other"));
  ASSERT_TRUE((*writer)->Add("hidden/b", Tensor::Vector<float>({1, 2})).ok());
  ASSERT_TRUE((*writer)->Finish().ok());
  const std::string older = Write("older", 10);
  Damage(DataOf(older), 0);
  Damage(DataOf(model_), 0);
  const CommandResult result =
      Weir({"ckpt", "repair", model_, At("out"), "--from", At("other"), "--from", older});
  EXPECT_EQ(result.status, kFailure);
  EXPECT_THAT(result.out, HasSubstr("has float[2], expected float[3]"));
  EXPECT_THAT(result.out, HasSubstr("Checksum does not match"));
}

// The single block of a small index contains all names. Names that are still readable belong to
// this checkpoint if another checkpoint confirms them.
TEST_F(WeirCkptRepair, RecoversNamesOfADamagedIndexThatADonorConfirms) {
  const std::string older = Write("older", 10);
  const std::string index = *ReadFile(model_ + ".index");
  Damage(model_ + ".index", index.find("step") + 6);
  EXPECT_THAT(Error({"ckpt", "repair", model_, At("out")}), HasSubstr("--from"));
  const json result =
      json::parse(Weir({"ckpt", "repair", model_, At("out"), "--from", older, "--json"}).out);
  EXPECT_EQ(result["lost"].size(), 0u);
  EXPECT_EQ(result["index_is_sound"], false);
  EXPECT_FALSE(result["taken"].contains("hidden/b"));
  EXPECT_TRUE(result["taken"].contains("step"));
  EXPECT_EQ(Read(At("out"), "hidden/b").data<float>()[0], 1);
  EXPECT_EQ(NamesIn(At("out")), NamesIn(older));
}

TEST_F(WeirCkptRepair, NeverOverwritesItsInputs) {
  const std::string older = Write("older", 10);
  EXPECT_THAT(Error({"ckpt", "repair", model_, model_}), HasSubstr("choose another output path"));
  EXPECT_THAT(Error({"ckpt", "repair", model_, older, "--from", older}),
              HasSubstr("choose another output path"));
}

// Users pass a name from a listing of the folder as a checkpoint.
TEST_F(WeirCkpt, FilesOfACheckpointDenoteIt) {
  const std::string wanted = Weir({"ckpt", "ls", model_}).out;
  ASSERT_THAT(wanted, HasSubstr("hidden/w"));
  ASSERT_TRUE(WriteFileAtomically(model_ + ".meta", "graph").ok());
  CheckpointState state;
  state.model_checkpoint_path = model_;
  ASSERT_TRUE(WriteCheckpointState(folder_, state).ok());
  for (const char* const ending : {".index", ".meta", ".data-00000-of-00001"}) {
    const CommandResult listed = Weir({"ckpt", "ls", model_ + ending});
    EXPECT_EQ(listed.status, kOk) << listed.err;
    EXPECT_EQ(listed.out, wanted) << ending;
    EXPECT_EQ(Weir({"ckpt", "verify", model_ + ending}).status, kOk);
  }
  EXPECT_EQ(Weir({"ckpt", "ls", At("checkpoint")}).out, wanted);
  EXPECT_EQ(Weir({"ckpt", "ls", folder_}).out, wanted);
}

TEST_F(WeirCkpt, ASavedModelDenotesItsVariables) {
  const std::string wanted = Weir({"ckpt", "ls", model_}).out;
  ASSERT_TRUE(MakeDirectories(At("export/variables")).ok());
  Write("export/variables/variables", 1);
  for (const char* const path : {"export", "export/variables", "export/variables/variables"})
    EXPECT_EQ(Weir({"ckpt", "ls", At(path)}).out, wanted) << path;
}

TEST_F(WeirCkpt, InvalidCheckpointErrorsNameTheFix) {
  EXPECT_THAT(Error({"ckpt", "ls", ""}), HasSubstr("INVALID_ARGUMENT"));
  EXPECT_THAT(Error({"ckpt", "ls", At("nothing.index")}), HasSubstr("NOT_FOUND"));
  EXPECT_THAT(Error({"ckpt", "ls", folder_}), HasSubstr("NOT_FOUND"));
  // An index that is not next to its checkpoint: the library reports the error.
  const absl::Status index = CheckpointReader::Open(model_ + ".index").status();
  EXPECT_TRUE(absl::IsInvalidArgument(index)) << index;
  EXPECT_THAT(std::string(index.message()),
              AllOf(HasSubstr("use its prefix instead: "), EndsWith("/model")));
}

TEST_F(WeirCkpt, VerifyFindsDamageInV1) {
  MustDo({"ckpt", "convert", model_, At("v1"), "--format", "v1"});
  const CommandResult sound = Weir({"ckpt", "verify", At("v1")});
  EXPECT_EQ(sound.status, kOk) << sound.out;
  const std::string bytes = *ReadFile(At("v1"));
  EXPECT_THAT(sound.out,
              HasSubstr(": 5 tensors, " + std::to_string(bytes.size()) + " bytes are sound"));
  for (size_t at = 0; at < bytes.size(); at += 7) {
    ASSERT_TRUE(WriteFileAtomically(At("v1"), bytes).ok());
    Damage(At("v1"), at);
    const CommandResult damaged = Weir({"ckpt", "verify", At("v1")});
    EXPECT_EQ(damaged.status, kFailure) << at << damaged.out;
    EXPECT_THAT(damaged.out, HasSubstr("DAMAGED")) << at;
  }
}

TEST_F(WeirCkpt, AMovedFolderIsReadWithANote) {
  ASSERT_TRUE(
      WriteFileAtomically(At("checkpoint"), "model_checkpoint_path: \"/gone/model\"\n").ok());
  for (const std::string& path : {folder_, At("checkpoint")}) {
    const CommandResult list = Weir({"ckpt", "ls", path});
    EXPECT_THAT(list.out, HasSubstr("5 tensors"));
    EXPECT_EQ(list.err, "weir: " + At("checkpoint") +
                            " names /gone/model, which is not there; using " + model_ + "\n");
  }
}

}  // namespace
}  // namespace weir::tools
