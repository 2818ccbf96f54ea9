// The subcommands of `weir ckpt` that write a new checkpoint: what it has, and that it appears as a
// whole or not at all.

#include <nlohmann/json.hpp>

#include "weir/core/io/npy.h"
#include "weir/tests/tools/ckpt/ckpt_testing.h"

namespace weir::tools {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class WeirCkptWrite : public WeirCkpt {
 protected:
  std::string WriteOne(const std::string& name, const std::string& tensor_name,
                       const Tensor& tensor) const {
    const auto writer = BundleWriter::Create(At(name));
    EXPECT_TRUE((*writer)->Add(tensor_name, tensor).ok());
    EXPECT_TRUE((*writer)->Finish().ok());
    return At(name);
  }
  std::vector<std::string> Listing() const { return *Files().List(folder_); }
};

using WeirCkptTarget = WeirCkptWrite;
using WeirCkptTypes = WeirCkptWrite;
using WeirCkptRename = WeirCkptWrite;
using WeirCkptDrop = WeirCkptWrite;
using WeirCkptCast = WeirCkptWrite;
using WeirCkptMerge = WeirCkptWrite;
using WeirCkptSplit = WeirCkptWrite;
using WeirCkptAverage = WeirCkptWrite;

TEST_F(WeirCkptTarget, AnExistingOneIsReplacedOnlyByForce) {
  const std::string other = Write("other", 2);
  EXPECT_THAT(Error({"ckpt", "convert", model_, other}),
              AllOf(HasSubstr("ALREADY_EXISTS"), HasSubstr("--force")));
  EXPECT_EQ(Read(other, "hidden/b").data<float>()[0], 2);
  MustDo({"ckpt", "convert", model_, other, "--force"});
  ExpectSame(other);
  MustDo({"ckpt", "convert", model_, At("arrays"), "--format", "npy"});
  MustDo(
      {"ckpt", "convert", other, At("arrays"), "--format", "npy", "--drop", "hidden", "--force"});
  EXPECT_THAT(*Files().List(At("arrays")), ElementsAre("step.npy", "words.json"));
}

TEST_F(WeirCkptTarget, AFolderWithOtherFilesIsNeverReplaced) {
  ASSERT_TRUE(MakeDirectories(At("home/deep")).ok());
  ASSERT_TRUE(WriteFileAtomically(At("home/deep/letter.txt"), "x").ok());
  EXPECT_THAT(Error({"ckpt", "convert", model_, At("home"), "--format", "npy", "--force"}),
              HasSubstr("other files than arrays"));
  EXPECT_EQ(*ReadFile(At("home/deep/letter.txt")), "x");
}

TEST_F(WeirCkptTarget, ADryRunWritesNothing) {
  const std::vector<std::string> before = Listing();
  const CommandResult result = Weir(
      {"ckpt", "convert", model_, At("out"), "--rename", "step=s", "--dtype", "half", "--dry-run"});
  EXPECT_EQ(result.status, kOk) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("hidden/b       half    [3]    float"),
                                HasSubstr("nothing was written")));
  EXPECT_EQ(Listing(), before);
  const json plan =
      json::parse(Weir({"ckpt", "drop", model_, At("out"), "hidden", "--dry-run", "--json"}).out);
  EXPECT_EQ(plan["dry_run"], true);
  EXPECT_EQ(plan["tensors"].size(), 2u);
  EXPECT_EQ(Listing(), before);
}

TEST_F(WeirCkptTarget, AFailureLeavesNothing) {
  const std::string prefix = WriteOne("evil", "z/../w", Tensor::Scalar(1.f));
  MustDo({"ckpt", "merge", model_, prefix, "--out", At("both")});
  std::vector<std::string> before = Listing();
  Error({"ckpt", "convert", At("both"), At("arrays"), "--format", "npy"});
  EXPECT_EQ(Listing(), before);
  Damage(DataOf(At("both")), 20);
  for (const char* format : {"npy", "v2", "v1"}) {
    EXPECT_THAT(Error({"ckpt", "convert", At("both"), At("x"), "--format", format, "--drop", "z"}),
                HasSubstr("DATA_LOSS"));
    EXPECT_EQ(Listing(), before) << format;
  }
}

TEST_F(WeirCkptTypes, ALackingTypeIsConvertedOnlyOnRequest) {
  const std::string prefix = WriteOne("q", "t", Tensor(DT_QINT8, Shape({0})));
  EXPECT_THAT(Error({"ckpt", "convert", prefix, At("out"), "--format", "npy"}),
              AllOf(HasSubstr("has no type qint8"), HasSubstr("--convert-types, to int8")));
  MustDo({"ckpt", "convert", prefix, At("out"), "--format", "npy", "--convert-types"});
  EXPECT_EQ(ReadNpy(At("out/t.npy"))->dtype(), DT_INT8);
  const std::string narrow =
      WriteOne("b", "t", Tensor::Vector<bfloat16>({bfloat16(1.5f), bfloat16(-3.f)}));
  MustDo({"ckpt", "convert", narrow, At("v1"), "--format", "v1", "--convert-types"});
  EXPECT_TRUE(IdenticalTensors(Read(At("v1"), "t"), Tensor::Vector<float>({1.5f, -3})));
}

TEST_F(WeirCkptTypes, Float8ValuesAreExact) {
  Tensor all(DT_FLOAT8_E4M3FN, {256});
  for (int i = 0; i < 256; ++i) static_cast<uint8_t*>(all.raw())[i] = static_cast<uint8_t>(i);
  MustDo({"ckpt", "convert", WriteOne("f8", "t", all), At("out"), "--format", "npy",
          "--convert-types"});
  const Tensor halves = *ReadNpy(At("out/t.npy"));
  ASSERT_EQ(halves.dtype(), DT_HALF);
  const auto at = [&](int i) { return static_cast<float>(halves.data<half>()[i]); };
  EXPECT_EQ(at(0), 0.f);
  EXPECT_EQ(at(1), 0x1p-9f);
  EXPECT_EQ(at(0x08), 0x1p-6f);
  EXPECT_EQ(at(0x38), 1.f);
  EXPECT_EQ(at(0x7e), 448.f);
  EXPECT_EQ(at(0xfe), -448.f);
  EXPECT_NE(at(0x7f), at(0x7f)) << "NaN";
}

TEST_F(WeirCkptRename, RulesAndMapsGiveNames) {
  MustDo({"ckpt", "rename", model_, At("rules"), "^hidden/(.)=dense/\\1", "step=global_step"});
  EXPECT_THAT(NamesIn(At("rules")),
              ElementsAre("dense/b", "dense/b/Adam", "dense/w", "global_step", "words"));
  EXPECT_TRUE(IdenticalTensors(Read(At("rules"), "dense/w"), Read(model_, "hidden/w")));
  ASSERT_TRUE(WriteFileAtomically(At("map.txt"), "# names\n\nstep\twords\nwords step\n").ok());
  MustDo({"ckpt", "rename", model_, At("swapped"), "--map", At("map.txt")});
  EXPECT_TRUE(IdenticalTensors(Read(At("swapped"), "words"), Read(model_, "step")));
  ASSERT_TRUE(WriteFileAtomically(At("map.json"), R"({"step": "a b"})").ok());
  MustDo({"ckpt", "rename", model_, At("json"), "--map", At("map.json")});
  EXPECT_TRUE(IdenticalTensors(Read(At("json"), "a b"), Read(model_, "step")));
}

TEST_F(WeirCkptRename, MistakesAreErrors) {
  EXPECT_THAT(Error({"ckpt", "rename", model_, At("x")}), HasSubstr("--map"));
  EXPECT_THAT(Error({"ckpt", "rename", model_, At("x"), "nothing=x"}), HasSubstr("none of the 5"));
  ASSERT_TRUE(WriteFileAtomically(At("map"), "nothing x\n").ok());
  EXPECT_THAT(Error({"ckpt", "rename", model_, At("x"), "--map", At("map")}),
              HasSubstr("Key nothing not found"));
  ASSERT_TRUE(WriteFileAtomically(At("map"), "step a b\n").ok());
  EXPECT_THAT(Error({"ckpt", "rename", model_, At("x"), "--map", At("map")}), HasSubstr("line 1"));
  ASSERT_TRUE(WriteFileAtomically(At("map"), "step words\n").ok());
  EXPECT_THAT(Error({"ckpt", "rename", model_, At("x"), "--map", At("map")}),
              HasSubstr("would both be named 'words'"));
}

TEST_F(WeirCkptDrop, MatchesAreMissing) {
  MustDo({"ckpt", "drop", model_, At("out"), "Adam$", "^words$"});
  EXPECT_THAT(NamesIn(At("out")), ElementsAre("hidden/b", "hidden/w", "step"));
  EXPECT_THAT(Error({"ckpt", "drop", model_, At("x"), "Adam", "nothing"}),
              HasSubstr("no tensor matches 'nothing'"));
  EXPECT_THAT(Error({"ckpt", "drop", model_, At("x"), ".*"}), HasSubstr("no tensor would remain"));
}

TEST_F(WeirCkptCast, ChosenFloatsAreRounded) {
  MustDo({"ckpt", "cast", model_, At("out"), "bfloat16", "--only", "/b"});
  EXPECT_EQ(Read(At("out"), "hidden/b").dtype(), DT_BFLOAT16);
  EXPECT_EQ(static_cast<float>(Read(At("out"), "hidden/b").data<bfloat16>()[2]), 3.140625f);
  EXPECT_EQ(Read(At("out"), "hidden/w").dtype(), DT_FLOAT);
  EXPECT_THAT(Error({"ckpt", "cast", model_, At("x"), "int32"}), HasSubstr("half or bfloat16"));
}

TEST_F(WeirCkptCast, OverflowIsAnErrorUnlessAllowed) {
  const std::string prefix = WriteOne("large", "t", Tensor::Vector<float>({1, 70000}));
  EXPECT_THAT(Error({"ckpt", "cast", prefix, At("x"), "half"}),
              HasSubstr("element 1, of type float, is too large for half"));
  EXPECT_FALSE(Files().Exists(At("x.index")));
  MustDo({"ckpt", "cast", prefix, At("x"), "half", "--allow-overflow"});
  EXPECT_EQ(Read(At("x"), "t").data<half>()[1].bits, 0x7c00);
}

TEST_F(WeirCkptMerge, HasTheTensorsOfAll) {
  const std::string other = WriteOne("other", "extra", Tensor::Scalar(7.f));
  MustDo({"ckpt", "merge", model_, other, "--out", At("out")});
  EXPECT_EQ(NamesIn(At("out")).size(), 6u);
  EXPECT_EQ(Read(At("out"), "extra").scalar<float>(), 7);
}

TEST_F(WeirCkptMerge, ACommonNameNeedsAChoice) {
  const std::string other = WriteOne("other", "step", Tensor::Scalar<int64_t>(9));
  EXPECT_THAT(Error({"ckpt", "merge", model_, other, "--out", At("out")}),
              AllOf(HasSubstr("'step' is in"), HasSubstr("--prefer")));
  MustDo({"ckpt", "merge", model_, other, "--prefer", "first", "--out", At("first")});
  EXPECT_EQ(Read(At("first"), "step").scalar<int64_t>(), 500);
  MustDo({"ckpt", "merge", model_, other, "--prefer", "last", "--out", At("last")});
  EXPECT_EQ(Read(At("last"), "step").scalar<int64_t>(), 9);
  EXPECT_THAT(Error({"ckpt", "merge", model_, other, "--prefer", "last", "--out", other}),
              HasSubstr("choose another output path"));
}

TEST_F(WeirCkptSplit, PartsTogetherAreTheWhole) {
  MustDo({"ckpt", "split", model_, At("parts"), "--part", "hidden=^hidden", "--rest", "rest"});
  EXPECT_THAT(NamesIn(At("parts/hidden")), ElementsAre("hidden/b", "hidden/b/Adam", "hidden/w"));
  EXPECT_THAT(NamesIn(At("parts/rest")), ElementsAre("step", "words"));
  MustDo({"ckpt", "merge", At("parts/hidden"), At("parts/rest"), "--out", At("out")});
  ExpectSame(At("out"));
  MustDo({"ckpt", "split", model_, At("sizes"), "--max-bytes", "30"});
  EXPECT_THAT(NamesIn(At("sizes/part-00000")), ElementsAre("hidden/b", "hidden/b/Adam"));
  EXPECT_THAT(NamesIn(At("sizes/part-00001")), ElementsAre("hidden/w"));
  EXPECT_THAT(NamesIn(At("sizes/part-00002")), ElementsAre("step", "words"));
}

TEST_F(WeirCkptSplit, EachPartHasTheFormatOfItsName) {
  MustDo({"ckpt", "split", model_, At("parts"), "--part", "hidden.npz=^hidden", "--rest", "rest"});
  EXPECT_THAT(Weir({"ckpt", "verify", At("parts/hidden.npz")}).out, HasSubstr("3 tensors"));
  EXPECT_THAT(NamesIn(At("parts/rest")), ElementsAre("step", "words"));
}

TEST_F(WeirCkptSplit, MistakesLeaveNothing) {
  EXPECT_THAT(Error({"ckpt", "split", model_, At("parts"), "--part", "hidden=^hidden"}),
              HasSubstr("matches no --part"));
  EXPECT_THAT(Error({"ckpt", "split", model_, At("parts"), "--part", "../x=."}),
              HasSubstr("is not a valid file name"));
  EXPECT_THAT(Error({"ckpt", "split", model_, At("parts")}), HasSubstr("either"));
  Damage(DataOf(model_), 0);
  Error({"ckpt", "split", model_, At("parts"), "--part", "step=step", "--rest", "rest"});
  EXPECT_FALSE(Files().Exists(At("parts")));
}

TEST_F(WeirCkptAverage, FloatsAreMeansAndOthersAreTheLast) {
  const std::string three = Write("three", 3), five = Write("five", 5);
  MustDo({"ckpt", "average", model_, three, five, "--out", At("mean")});
  EXPECT_EQ(Read(At("mean"), "hidden/b").data<float>()[0], 3);
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(Read(At("mean"), "hidden/w").data<float>()[i], 3 * static_cast<float>(i));
  EXPECT_EQ(Read(At("mean"), "step").scalar<int64_t>(), 500);
  EXPECT_TRUE(IdenticalTensors(Read(At("mean"), "words"), Read(model_, "words")));
}

TEST_F(WeirCkptAverage, MeansAreComputedInDouble) {
  const auto write = [&](const char* name, float x) {
    return WriteOne(name, "t", Tensor::Vector<half>({half(x)}));
  };
  MustDo({"ckpt", "average", write("a", 60000), write("b", 60000), write("c", 30000), "--out",
          At("mean")});
  EXPECT_EQ(static_cast<float>(Read(At("mean"), "t").data<half>()[0]), 49984);  // 50000, to even
}

TEST_F(WeirCkptAverage, StructuresMustAgree) {
  const std::string a = WriteOne("a", "t", Tensor::Vector<float>({1})),
                    b = WriteOne("b", "t", Tensor::Vector<float>({1, 2}));
  EXPECT_THAT(Error({"ckpt", "average", a, b, "--out", At("x")}), HasSubstr("is float[1] in"));
  EXPECT_THAT(Error({"ckpt", "average", a, model_, "--out", At("x")}), HasSubstr("not found"));
  EXPECT_THAT(Error({"ckpt", "average", a, "--out", At("x")}), HasSubstr("at least two"));
  const std::string one = WriteOne("one", "n", Tensor::Scalar<int32_t>(1)),
                    two = WriteOne("two", "n", Tensor::Scalar<int32_t>(2));
  EXPECT_THAT(Error({"ckpt", "average", one, two, "--strict", "--out", At("x")}),
              HasSubstr("differs between"));
  MustDo({"ckpt", "average", one, two, "--out", At("last")});
  EXPECT_EQ(Read(At("last"), "n").scalar<int32_t>(), 2);
}

}  // namespace
}  // namespace weir::tools
