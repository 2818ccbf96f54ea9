// What people pass as a graph, and how its variables are restored.

#include <filesystem>

#include "gmock/gmock.h"
#include "weir/core/io/bundle.h"
#include "weir/core/io/text_proto.h"
#include "weir/ops/lib/math.h"
#include "weir/proto/graph.pb.h"
#include "weir/tests/tools/lib/tools_testing.h"

namespace weir::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(GraphFile, ContentsTellWhatItIs) {
  const std::string folder = TestFolder(), graph = WriteLine(folder);
  proto::GraphDef def;
  ASSERT_TRUE(def.ParseFromString(*ReadFile(graph)));
  ASSERT_TRUE(WriteFileAtomically(folder + "/text.pb", PrintTextProto(def)).ok());
  ASSERT_TRUE(WriteFileAtomically(folder + "/binary.pbtxt", *ReadFile(graph)).ok());
  const CommandResult plain = Weir({"graph", "ops", graph});
  EXPECT_EQ(plain.status, kOk) << plain.err;
  for (const char* name : {"/text.pb", "/binary.pbtxt"}) {
    EXPECT_EQ(Weir({"graph", "ops", folder + name}).out, plain.out) << name;
    EXPECT_EQ(
        Weir({"run", folder + name, "--init", "init", "--feed", "x=[[1, 10]]", "--fetch", "y"}).out,
        "y float[1,2]\n[[ 2. 30.]]\n")
        << name;
  }
}

TEST(GraphFile, ASavedModelIsFoundByItsFileAndAmongItsVersions) {
  const std::string folder = TestFolder(), graph = WriteLine(folder);
  for (const char* version : {"/base/9", "/base/10"}) {
    const CommandResult result = Weir({"graph", "export", graph, "--init", "init", "--input", "x=x",
                                       "--output", "y=y", "-o", folder + version});
    if (result.status != kOk) {  // its variables have no values
      ASSERT_EQ(Weir({"run", graph, "--init", "init", "--save", folder + "/m"}).status, kOk);
      const CommandResult again =
          Weir({"graph", "export", graph, "--checkpoint", folder + "/m", "--input", "x=x",
                "--output", "y=y", "-o", folder + version});
      ASSERT_EQ(again.status, kOk) << again.err;
    }
  }
  std::filesystem::create_directories(folder + "/base/11");  // still being copied
  for (const char* path : {"/base", "/base/10", "/base/10/saved_model.pb"}) {
    const CommandResult run =
        Weir({"run", folder + path, "--signature", "serving_default", "--feed", "x=[[1, 10]]"});
    EXPECT_THAT(run.out, HasSubstr("30")) << path << run.err;
    EXPECT_THAT(Weir({"ckpt", "ls", folder + path}).out, HasSubstr("1 tensors")) << path;
  }
  EXPECT_THAT(Weir({"graph", "ops", folder}).err,
              AllOf(HasSubstr("folder without saved_model.pb"),
                    HasSubstr("did you mean " + folder + "/graph.pb?")));
}

TEST(GraphFile, UnknownOpsAreRejectedByAStrictRun) {
  const std::string path = TestFolder() + "/g.pbtxt";
  ASSERT_TRUE(WriteFileAtomically(path,
                                  "node { name: 'x' op: 'Const'"
                                  " attr { key: 'dtype' value { type: DT_FLOAT } }"
                                  " attr { key: 'value' value { tensor { dtype: DT_FLOAT"
                                  " tensor_shape { } float_val: 2 } } } }"
                                  "node { name: 'p' op: 'NoSuchOp' input: 'x' }")
                  .ok());
  EXPECT_EQ(Weir({"run", path, "--fetch", "x"}).out, "x float[]\n2.0\n");
  EXPECT_THAT(Weir({"run", path, "--fetch", "x", "--strict"}).err,
              HasSubstr("Op type not registered 'NoSuchOp'"));
  EXPECT_EQ(Weir({"graph", "show", path}).status, kOk);
  EXPECT_EQ(Weir({"graph", "show", path, "--strict"}).status, kFailure);
  EXPECT_EQ(Weir({"graph", "freeze", path, "--fetch", "x", "--strict", "-o", path + ".pb"}).status,
            kFailure);
}

// A checkpoint with some of a graph's variables.
class Restore : public testing::Test {
 protected:
  Restore() : folder_(TestFolder()), path_(folder_ + "/g.pb") {
    Graph g;
    Variable w = MakeVariable(g, 1.f, {.name = "net/w"});
    Variable slot = MakeVariable(g, 2.f, {.name = "net/w/Adam"});
    Identity(w.value(), "y");
    Identity(w.value() + slot.value(), "z");
    GlobalVariablesInitializer(g);
    EXPECT_TRUE(g.status().ok()) << g.status();
    EXPECT_TRUE(WriteFileAtomically(path_, SerializeGraph(g)).ok());
  }
  std::string Write(const std::vector<std::pair<std::string, Tensor>>& tensors) const {
    const std::string prefix = folder_ + "/m";
    const auto writer = BundleWriter::Create(prefix);
    for (const auto& [name, value] : tensors) EXPECT_TRUE((*writer)->Add(name, value).ok());
    EXPECT_TRUE((*writer)->Finish().ok());
    return prefix;
  }
  CommandResult Run(const std::string& fetch, const std::vector<std::string>& more) const {
    std::vector<std::string> args = {"run",          path_,     "--checkpoint",
                                     folder_ + "/m", "--fetch", fetch};
    args.insert(args.end(), more.begin(), more.end());
    return Weir(args);
  }

  const std::string folder_, path_;
};

TEST_F(Restore, ByDefaultWhatTheRunNeeds) {
  Write({{"net/w", Tensor::Scalar(5.f)}});
  EXPECT_EQ(Run("y", {}).out, "y float[]\n5.0\n");
  EXPECT_THAT(Run("z", {}).err, HasSubstr("Key net/w/Adam not found in checkpoint"));
  EXPECT_THAT(Run("y", {"--restore", "strict"}).err, HasSubstr("Key net/w/Adam not found"));
  EXPECT_THAT(Run("y", {"--restore", "some"}).err,
              HasSubstr("expected strict, needed or available"));
}

TEST_F(Restore, AllThatIsMissingIsNamedWithWhatIsLikeIt) {
  Write({{"model/net/w", Tensor::Scalar(5.f)}, {"other", Tensor::Scalar(5.f)}});
  EXPECT_THAT(Run("z", {}).err,
              AllOf(HasSubstr("Key net/w not found"), HasSubstr("(did you mean model/net/w?)"),
                    HasSubstr("1 others are missing: net/w/Adam")));
}

TEST_F(Restore, WhatIsAvailableLeavesTheRestUninitialized) {
  Write({{"net/w", Tensor::Scalar(5.f)}, {"net/w/Adam", Tensor::Vector<float>({1, 2})}});
  const CommandResult run = Run("y", {"--restore", "available"});
  EXPECT_EQ(run.out, "y float[]\n5.0\n");
  EXPECT_THAT(run.err, AllOf(HasSubstr("does not fit: net/w/Adam"),
                             HasSubstr("restored 1 tensors, not 1; the checkpoint has 0 others")));
  EXPECT_THAT(Run("z", {"--restore", "available"}).err, HasSubstr("FAILED_PRECONDITION"));
  EXPECT_EQ(Run("z", {"--restore", "available", "--init", "init"}).out, "z float[]\n7.0\n");
}

TEST_F(Restore, ByRulesAndMovingAverages) {
  Write({{"model/w", Tensor::Scalar(5.f)},
         {"model/w/ExponentialMovingAverage", Tensor::Scalar(6.f)}});
  EXPECT_EQ(Run("y", {"--rename", "^net/=model/"}).out, "y float[]\n5.0\n");
  EXPECT_EQ(Run("y", {"--rename", "^net/=model/", "--ema"}).out, "y float[]\n6.0\n");
  EXPECT_THAT(Run("y", {"--ema", "--ema-suffix", "Mean"}).err, HasSubstr("no tensor of"));
  EXPECT_THAT(Run("y", {"--rename", "(=x"}).err, HasSubstr("--rename (=x"));
}

TEST_F(Restore, SavingNeedsAllVariables) {
  Write({{"net/w", Tensor::Scalar(5.f)}});
  EXPECT_THAT(Run("y", {"--save", folder_ + "/n"}).err, HasSubstr("Key net/w/Adam not found"));
}

}  // namespace
}  // namespace weir::tools
