#include "gmock/gmock.h"
#include "weir/core/graph/scope.h"
#include "weir/core/io/checkpoint_state.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/lib/math.h"
#include "weir/session/model/meta_graph.h"
#include "weir/session/model/saved_model.h"
#include "weir/tests/tools/lib/tools_testing.h"

namespace weir::tools {
namespace {

using ::testing::HasSubstr;

// BuildLine's graph and a checkpoint of w = [2, 3].
struct Line {
  const std::string folder = TestFolder();
  const std::string graph = WriteLine(folder), checkpoint = folder + "/model";

  Line() { EXPECT_EQ(Weir({"run", graph, "--init", "init", "--save", checkpoint}).status, kOk); }
};

TEST(GraphFreeze, WritesAGraphThatNeedsNoCheckpoint) {
  const Line line;
  for (const char* name : {"/frozen.pb", "/frozen.pbtxt"}) {
    const std::string frozen = line.folder + name;
    const CommandResult result = Weir({"graph", "freeze", line.graph, "--checkpoint",
                                       line.checkpoint, "--fetch", "y", "-o", frozen});
    EXPECT_EQ(result.status, kOk) << result.err;
    EXPECT_THAT(result.out, HasSubstr("1 variables as constants of 8 B"));
    const CommandResult run = Weir({"run", frozen, "--feed", "x=[[1, 10]]", "--fetch", "y"});
    EXPECT_EQ(run.status, kOk) << run.err;
    EXPECT_THAT(run.out, HasSubstr("30"));
    EXPECT_THAT(Weir({"graph", "ops", frozen}).out, ::testing::Not(HasSubstr("VarHandleOp")));
  }
}

TEST(GraphFreeze, AFolderDenotesItsNewestCheckpoint) {
  const Line line;
  ASSERT_TRUE(WriteCheckpointState(line.folder, {.model_checkpoint_path = line.checkpoint}).ok());
  const CommandResult result = Weir({"graph", "freeze", line.graph, "--checkpoint", line.folder,
                                     "--fetch", "y", "-o", line.folder + "/frozen.pb"});
  EXPECT_EQ(result.status, kOk) << result.err;
}

TEST(GraphFreeze, SetDecidesConditionals) {
  const std::string folder = TestFolder(), path = folder + "/g.pb";
  Graph g;
  const Output trains = Placeholder(g, DT_BOOL, {}, "trains");
  Variable w = MakeVariable(g, 1.f, {.name = "w"});
  const Outputs y = Cond(
      trains,
      [&] {
        const ControlDependencies after(g, {w.AssignAdd(1.f)});
        return Outputs{Identity(w.value())};
      },
      [&] { return Outputs{w.value() * 10.f}; });
  Identity(y[0], "y");
  GlobalVariablesInitializer(g);
  ASSERT_TRUE(g.status().ok()) << g.status();
  ASSERT_TRUE(WriteFileAtomically(path, SerializeGraph(g)).ok());
  ASSERT_EQ(Weir({"run", path, "--init", "init", "--save", folder + "/m"}).status, kOk);
  const std::vector<std::string> freeze = {"graph",         "freeze",  path, "--checkpoint",
                                           folder + "/m",   "--fetch", "y",  "-o",
                                           folder + "/f.pb"};
  EXPECT_THAT(Weir(freeze).err, HasSubstr("writes to a variable"));
  std::vector<std::string> set = freeze;
  set.insert(set.end(), {"--set", "trains=false"});
  const CommandResult result = Weir(set);
  ASSERT_EQ(result.status, kOk) << result.err;
  EXPECT_THAT(Weir({"run", folder + "/f.pb", "--fetch", "y"}).out, HasSubstr("10"));
  set.back() = "trains=1.5";
  EXPECT_EQ(Weir(set).status, kFailure);
}

// A graph with the weights [2, 3] as a constant.
std::string WriteFrozen(const std::string& folder) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {-1, 2}, "x");
  AddOp("MatMul", {x, Const(g, Tensor::Of<float>({2, 1}, {2, 3}), "w")}, {}, "y");
  EXPECT_TRUE(g.status().ok()) << g.status();
  const std::string path = folder + "/frozen.pb";
  EXPECT_TRUE(WriteFileAtomically(path, SerializeGraph(g)).ok());
  return path;
}

TEST(GraphUnfreeze, NeverLeavesACheckpointWithoutItsGraph) {
  const std::string folder = TestFolder(), out = folder + "/m";
  const std::vector<std::string> unfreeze = {"graph", "unfreeze", WriteFrozen(folder), "-o", out};
  {
    const auto lock = WriteLock::Acquire(out);  // so that the values cannot be written
    ASSERT_TRUE(lock.ok()) << lock.status();
    EXPECT_THAT(Weir(unfreeze).err, HasSubstr("is being written"));
  }
  EXPECT_TRUE(Files().Exists(out + ".meta"));
  EXPECT_FALSE(CheckpointExists(out));
  EXPECT_THAT(Weir(unfreeze).err, HasSubstr("--force"));
  std::vector<std::string> force = unfreeze;
  force.push_back("--force");
  ASSERT_EQ(Weir(force).status, kOk);
  EXPECT_TRUE(CheckpointExists(out));
  // What belongs to the checkpoint that is replaced.
  ASSERT_TRUE(WriteFileAtomically(MetricPath(out), "1").ok());
  ASSERT_EQ(Weir(force).status, kOk);
  EXPECT_TRUE(CheckpointExists(out));
  EXPECT_FALSE(Files().Exists(MetricPath(out)));
}

TEST(GraphFreeze, ReportsMissingInputs) {
  const Line line;
  const std::string frozen = line.folder + "/frozen.pb";
  const auto freeze = [&](const std::vector<std::string>& more) {
    std::vector<std::string> args = {"graph", "freeze", line.graph};
    args.insert(args.end(), more.begin(), more.end());
    const CommandResult result = Weir(args);
    EXPECT_EQ(result.status, kFailure);
    return result.err;
  };
  EXPECT_THAT(freeze({"--fetch", "y", "-o", frozen}), HasSubstr("FAILED_PRECONDITION"));
  EXPECT_THAT(freeze({"-o", frozen}), HasSubstr("pass --fetch"));
  EXPECT_THAT(freeze({"--fetch", "z", "-o", frozen}), HasSubstr("NOT_FOUND"));
  EXPECT_THAT(freeze({"--signature", "s", "-o", frozen}), HasSubstr("unknown signature 's'"));
  EXPECT_THAT(freeze({"--fetch", "y", "-o", line.graph}), HasSubstr("would overwrite the input"));
  for (const char* file : {".index", ".data-00000-of-00001"}) {
    EXPECT_THAT(
        freeze({"--checkpoint", line.checkpoint, "--fetch", "y", "-o", line.checkpoint + file}),
        HasSubstr("would overwrite the input"));
  }
  EXPECT_EQ(Weir({"ckpt", "verify", line.checkpoint}).status, kOk);
  EXPECT_FALSE(Files().Exists(frozen));
  EXPECT_EQ(Weir({"graph", "freeze", line.graph, "--fetch", "y"}).status, kUsage);
}

TEST(GraphExport, WritesASavedModelThatIsCalledByItsSignature) {
  const Line line;
  const std::string model = line.folder + "/export/1";
  const CommandResult result =
      Weir({"graph", "export", line.graph, "--checkpoint", line.checkpoint, "--input", "in=x",
            "--output", "out=y:0", "--new-tags", "serve,cpu", "-o", model});
  EXPECT_EQ(result.status, kOk) << result.err;
  EXPECT_THAT(result.out, HasSubstr("serving_default"));
  const auto loaded = LoadSavedModel(model, {"cpu", "serve"});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const CommandResult run =
      Weir({"run", model, "--signature", "serving_default", "--feed", "in=[[1, 10]]"});
  EXPECT_EQ(run.status, kOk) << run.err;
  EXPECT_THAT(run.out, HasSubstr("30"));

  // From the SavedModel: a second signature, and the frozen graph.
  const std::string second = line.folder + "/export/2", frozen = line.folder + "/frozen.pb";
  EXPECT_EQ(Weir({"graph", "export", model, "--signature", "double", "--input", "x=x", "--output",
                  "y=y", "--text", "-o", second})
                .status,
            kOk);
  const auto again = LoadSavedModel(second, {});
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->meta.signatures.size(), 2u);
  const CommandResult freeze =
      Weir({"graph", "freeze", model, "--signature", "serving_default", "-o", frozen});
  EXPECT_EQ(freeze.status, kOk) << freeze.err;
  EXPECT_THAT(freeze.out, HasSubstr("feed in as x:0\n  fetch out as y:0\n"));
  EXPECT_EQ(Weir({"graph", "freeze", model, "--signature", "serving_default", "-o",
                  model + "/saved_model.pb"})
                .status,
            kFailure);
  EXPECT_TRUE(LoadSavedModel(model, {}).ok()) << "it was not written over";
}

TEST(Graph, TagsAreThoseOfTheFile) {
  const Line line;
  const std::string meta = line.folder + "/line.meta", model = line.folder + "/model_of_tags";
  Graph g;
  BuildLine(g);
  ASSERT_TRUE(WriteMetaGraph(g, meta, {.tags = {"serve", "cpu"}}).ok());
  ASSERT_EQ(Weir({"graph", "export", line.graph, "--checkpoint", line.checkpoint, "--input", "in=x",
                  "--output", "out=y:0", "--new-tags", "serve,cpu", "-o", model})
                .status,
            kOk);
  for (const std::string& file : {meta, model}) {
    EXPECT_EQ(Weir({"graph", "ops", file}).status, kOk);
    EXPECT_EQ(Weir({"graph", "ops", file, "--tags", "cpu,serve"}).status, kOk);
    EXPECT_EQ(Weir({"run", file, "--tags", "cpu,serve", "--target", "w"}).status, kOk);
    for (const char* command : {"ops", "show"}) {
      const CommandResult other = Weir({"graph", command, file, "--tags", "serve"});
      EXPECT_EQ(other.status, kFailure) << command;
      EXPECT_THAT(other.err, HasSubstr("{ cpu, serve }"));
    }
    EXPECT_EQ(Weir({"run", file, "--tags", "serve", "--target", "w"}).status, kFailure);
  }
  EXPECT_THAT(Weir({"graph", "ops", line.graph, "--tags", "serve"}).err,
              HasSubstr("has the tags {}"));
  EXPECT_THAT(Weir({"run", line.graph, "--tags", "serve", "--target", "w"}).err,
              HasSubstr("has the tags {}"));
  const CommandResult diff = Weir({"graph", "diff", model, line.graph, "--tags", "serve,cpu"});
  EXPECT_THAT(diff.err, ::testing::Not(HasSubstr("NOT_FOUND")));
}

TEST(GraphExport, RejectsModelsThatCannotBeCalledOrLoaded) {
  const Line line;
  const auto fails = [&](std::vector<std::string> args) {
    const std::string model = line.folder + "/model_of_nobody";
    args.insert(args.begin(), {"graph", "export", line.graph, "-o", model});
    const CommandResult result = Weir(args);
    EXPECT_EQ(result.status, kFailure);
    EXPECT_FALSE(Files().Exists(model));
    return result.err;
  };
  const std::vector<std::string> call = {"--input", "in=x", "--output", "out=y"};
  EXPECT_THAT(fails(call), HasSubstr("FAILED_PRECONDITION")) << "no values";
  EXPECT_THAT(fails({}), HasSubstr("pass --input and --output"));
  EXPECT_THAT(fails({"--input", "x"}), HasSubstr("NAME=TENSOR"));
  EXPECT_THAT(fails({"--input", "in=none"}), HasSubstr("NOT_FOUND"));
  EXPECT_THAT(fails({"--input", "in=x"}), HasSubstr("pass --output"));
  EXPECT_THAT(fails({"--output", "y=y", "--output", "y=x"}), HasSubstr("specified twice"));
  EXPECT_THAT(fails({"--output", "out=y", "--init", "none"}), HasSubstr("no node 'none'"));
}

}  // namespace
}  // namespace weir::tools
