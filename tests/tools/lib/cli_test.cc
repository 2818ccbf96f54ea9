#include "weir/tools/lib/cli.h"

#include <ctime>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "weir/core/io/bundle.h"
#include "weir/core/io/event_writer.h"
#include "weir/core/io/npy.h"
#include "weir/session/model/saver.h"
#include "weir/tests/tools/lib/tools_testing.h"

namespace weir::tools {
namespace {

using nlohmann::json;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

TEST(Weir, InvalidUsageIsStatusTwo) {
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{},
                                             {"nonsense"},
                                             {"graph"},
                                             {"graph", "show"},
                                             {"run"},
                                             {"run", "g.pb", "--repeat", "0"},
                                             {"run", "g.pb", "--repeat", "99999999999999999999"},
                                             {"run", "g.pb", "--repeat", ""},
                                             {"run", "g.pb", "--timeout", ""},
                                             {"run", "g.pb", "--checkpoint", ""},
                                             {"help", "nonsense"},
                                             {"events", "plot", "x", "--smooth", "2"}}) {
    EXPECT_EQ(Weir(args).status, kUsage) << testing::PrintToString(args);
  }
}

TEST(Weir, AnUnknownCommandIsComparedWithTheKnown) {
  const CommandResult top = Weir({"grph", "show"});
  EXPECT_EQ(top.status, kUsage);
  EXPECT_EQ(top.err, "weir: unknown command 'grph'; did you mean 'graph'?\n");
  EXPECT_EQ(Weir({"ckpt", "verfy", "x"}).err,
            "weir: unknown command 'verfy'; did you mean 'verify'?\n");
  EXPECT_THAT(Weir({"nothing"}).err, HasSubstr("run 'weir help' for the list"));
}

TEST(Weir, MissingFilesAreStatusOneAndNamed) {
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"graph", "show", "missing.pb"},
                                             {"graph", "diff", "missing.pb", "b"},
                                             {"run", "missing.pb"},
                                             {"ckpt", "ls", "missing"},
                                             {"ckpt", "verify", "missing"},
                                             {"ckpt", "convert", "missing", "b"},
                                             {"ckpt", "repair", "missing", "b"},
                                             {"ckpt", "show", "missing", "w"},
                                             {"events", "ls", "missing"},
                                             {"events", "plot", "missing"},
                                             {"data", "count", "missing"},
                                             {"data", "show", "missing"},
                                             {"data", "verify", "missing"},
                                             {"case", "missing"}}) {
    const CommandResult result = Weir(args);
    EXPECT_EQ(result.status, kFailure) << testing::PrintToString(args);
    EXPECT_THAT(result.err, HasSubstr("missing")) << testing::PrintToString(args);
    EXPECT_EQ(result.out, "");
  }
}

TEST(Weir, EveryCommandHasHelpWithAnExample) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{},
                                             {"run"},
                                             {"profile"},
                                             {"graph"},
                                             {"graph", "show"},
                                             {"graph", "ops"},
                                             {"graph", "diff"},
                                             {"graph", "dot"},
                                             {"model"},
                                             {"model", "show"},
                                             {"model", "run"},
                                             {"ckpt"},
                                             {"ckpt", "ls"},
                                             {"ckpt", "show"},
                                             {"ckpt", "verify"},
                                             {"ckpt", "convert"},
                                             {"ckpt", "repair"},
                                             {"events"},
                                             {"events", "ls"},
                                             {"events", "plot"},
                                             {"events", "values"},
                                             {"data"},
                                             {"data", "count"},
                                             {"data", "schema"},
                                             {"data", "stats"},
                                             {"data", "show"},
                                             {"data", "head"},
                                             {"data", "verify"},
                                             {"data", "convert"},
                                             {"ops"},
                                             {"case"},
                                             {"help"},
                                             {"completion"}}) {
    std::vector<std::string> args = words;
    args.insert(args.begin(), "help");
    const CommandResult help = Weir(args);
    EXPECT_EQ(help.status, kOk);
    EXPECT_THAT(help.out, HasSubstr("Example:\n  weir ")) << testing::PrintToString(words);
  }
}

// ---- run

TEST(WeirRun, PrintsFetchesLikeNumPy) {
  const std::string graph = WriteLine(TestFolder());
  const CommandResult run =
      Weir({"run", graph, "--init", "init", "--feed", "x=[[1, 10], [0, 1]]", "--fetch", "y:0"});
  EXPECT_EQ(run.status, kOk) << run.err;
  EXPECT_EQ(run.out, "y:0 float[2,2]\n[[ 2. 30.]\n [ 0.  3.]]\n");
}

TEST(WeirRun, ReadsAndWritesArrays) {
  const std::string folder = TestFolder(), graph = WriteLine(folder);
  ASSERT_TRUE(WriteNpy(folder + "/x.npy", Tensor::Of<float>({1, 2}, {1, 1})).ok());
  const CommandResult run =
      Weir({"run", graph, "--init", "init", "--feed", "x:0=" + folder + "/x.npy", "--fetch",
            "y:0=" + folder + "/y.npy", "--fetch", "y"});
  EXPECT_EQ(run.status, kOk) << run.err;
  EXPECT_EQ(run.out, "y:0: float[1,2] written to " + folder + "/y.npy\ny float[1,2]\n[[2. 3.]]\n");
  const auto y = ReadNpy(folder + "/y.npy");
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_TRUE(IdenticalTensors(*y, Tensor::Of<float>({1, 2}, {2, 3})));
}

TEST(WeirRun, RepeatsAndTimes) {
  const std::string graph = WriteLine(TestFolder());
  const CommandResult run =
      Weir({"run", graph, "--init", "init", "--target", "double_w", "--repeat", "3"});
  EXPECT_EQ(run.status, kOk) << run.err;
  EXPECT_THAT(run.out, ContainsRegex("^3 steps in .* steps/s, .* a step, the fastest"));
}

TEST(WeirRun, TraceNamesEveryNodeItsDeviceAndTheEdges) {
  const std::string folder = TestFolder(), graph = WriteLine(folder);
  const CommandResult run = Weir({"run", graph, "--init", "init", "--feed", "x=[[1, 2]]", "--fetch",
                                  "y", "--trace", folder + "/t.json"});
  ASSERT_EQ(run.status, kOk) << run.err;
  const json trace = json::parse(*ReadFile(folder + "/t.json"));
  bool y = false, device = false;
  for (const json& event : trace["traceEvents"]) {
    y |= event["ph"] == "X" && event["name"] == "y" && event["cat"] == "Mul" && event["dur"] >= 0;
    device |=
        event["ph"] == "M" && absl::StrContains(event["args"]["name"].get<std::string>(), "CPU");
  }
  EXPECT_TRUE(y) << trace.dump(1);
  EXPECT_TRUE(device);
}

// A step that changes variables must not run in vain.
TEST(WeirRun, RefusesOutputsThatCannotBeWrittenBeforeTheStepRuns) {
  const std::string folder = TestFolder(), graph = WriteLine(folder), missing = folder + "/no/m";
  const auto refused = [&](std::vector<std::string> args) {
    args.insert(args.begin(), {"run", graph, "--init", "init", "--target", "double_w"});
    const CommandResult result = Weir(args);
    EXPECT_EQ(result.status, kFailure);
    EXPECT_EQ(result.out, "");
    return result.err;
  };
  EXPECT_EQ(refused({"--save", missing}), "weir: NOT_FOUND: --save " + missing +
                                              ": there is no folder " + folder +
                                              "/no; create it first\n");
  EXPECT_THAT(refused({"--trace", missing}), HasSubstr("--trace " + missing));
  EXPECT_THAT(refused({"--fetch", "y=" + missing + ".npy"}), HasSubstr("--fetch " + missing));
  EXPECT_THAT(refused({"--save", graph + "/m"}), HasSubstr("is not a folder"));
}

TEST(WeirRun, ErrorsNameTheCause) {
  const std::string graph = WriteLine(TestFolder());
  const auto error = [&](std::vector<std::string> args) {
    args.insert(args.begin(), {"run", graph});
    const CommandResult result = Weir(args);
    EXPECT_EQ(result.status, kFailure);
    return result.err;
  };
  EXPECT_THAT(error({}), HasSubstr("pass --fetch or --target"));
  EXPECT_THAT(error({"--fetch", "nowhere"}), HasSubstr("nowhere"));
  EXPECT_THAT(error({"--target", "nowhere"}), HasSubstr("no node 'nowhere'"));
  EXPECT_THAT(error({"--fetch", "y", "--feed", "x"}), HasSubstr("such as x:0=x.npy"));
  EXPECT_THAT(error({"--fetch", "y", "--feed", "x=[1, [2]]"}), HasSubstr("differ in depth"));
  EXPECT_THAT(error({"--fetch", "y=y.txt"}), HasSubstr(".npy"));
  EXPECT_THAT(error({"--fetch", "y", "--signature", "s"}), HasSubstr("unknown signature 's'"));
  EXPECT_THAT(error({"--fetch", "y", "--feed", "x=[[1, 2]]"}), HasSubstr("w"));  // not initialized
}

// ---- ckpt

std::string WriteCheckpoint(const std::string& folder) {
  auto writer = BundleWriter::Create(folder + "/model");
  EXPECT_TRUE(writer.ok()) << writer.status();
  EXPECT_TRUE((*writer)->Add("b", Tensor::Of<float>({2, 3}, {1, 2, 3, 4, 5, 6})).ok());
  EXPECT_TRUE((*writer)->Add("w", Tensor::Vector<float>({5, 7})).ok());
  EXPECT_TRUE((*writer)->Finish().ok());
  return folder + "/model";
}

TEST(WeirCkpt, ListsAndShows) {
  const std::string prefix = WriteCheckpoint(TestFolder());
  const CommandResult ls = Weir({"ckpt", "ls", prefix});
  EXPECT_EQ(ls.status, kOk) << ls.err;
  EXPECT_EQ(ls.out,
            "tensor  dtype  shape  bytes  parts\n"
            "b       float  [2,3]     24\n"
            "w       float  [2]        8\n"
            "2 tensors, 8 elements, 32 B\n");
  EXPECT_EQ(Weir({"ckpt", "show", prefix, "w"}).out, "w float[2]\n[5. 7.]\n");
  EXPECT_EQ(Weir({"ckpt", "show", prefix, "b", "--slice", "1,1:0,2"}).out,
            "b float[1,2]\n[[4. 5.]]\n");
  EXPECT_EQ(Weir({"ckpt", "show", prefix, "none"}).status, kFailure);
  EXPECT_EQ(Weir({"ckpt", "show", prefix, "b", "--slice", "7,1:-"}).status, kFailure);
  EXPECT_EQ(json::parse(Weir({"ckpt", "ls", prefix, "--json"}).out)[0]["shape"], (json{2, 3}));
}

TEST(WeirCkpt, VerifyNamesTheDamagedTensor) {
  const std::string prefix = WriteCheckpoint(TestFolder());
  const CommandResult sound = Weir({"ckpt", "verify", prefix});
  EXPECT_EQ(sound.status, kOk) << sound.out;
  EXPECT_THAT(sound.out, HasSubstr("2 tensors"));
  EXPECT_THAT(sound.out, HasSubstr("32 of data are sound"));

  const std::string file = prefix + ".data-00000-of-00001";
  std::string data = *ReadFile(file);
  data[25] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(file, data).ok());
  const CommandResult damaged = Weir({"ckpt", "verify", prefix});
  EXPECT_EQ(damaged.status, kFailure);
  EXPECT_THAT(damaged.out, HasSubstr("'w'"));
  EXPECT_THAT(damaged.out, Not(HasSubstr("'b'")));
  EXPECT_EQ(json::parse(Weir({"ckpt", "verify", prefix, "--json"}).out)["sound"], false);
}

TEST(WeirCkpt, AFolderDenotesItsNewestCheckpoint) {
  const std::string folder = TestFolder();
  WriteCheckpoint(folder);
  ASSERT_TRUE(
      WriteFileAtomically(folder + "/checkpoint", "model_checkpoint_path: \"model\"\n").ok());
  EXPECT_EQ(Weir({"ckpt", "show", folder, "w"}).out, "w float[2]\n[5. 7.]\n");
}

TEST(WeirRun, RestoresVariablesByNameWithoutASaver) {
  const std::string folder = TestFolder(), graph = WriteLine(folder),
                    prefix = WriteCheckpoint(folder);
  const CommandResult run =
      Weir({"run", graph, "--checkpoint", prefix, "--feed", "x=[[1, 1]]", "--fetch", "y"});
  EXPECT_EQ(run.status, kOk) << run.err;
  EXPECT_EQ(run.out, "y float[1,2]\n[[5. 7.]]\n");
}

TEST(WeirRun, SavesTrainedVariables) {
  const std::string folder = TestFolder(), graph = WriteLine(folder);
  const CommandResult run = Weir({"run", graph, "--init", "init", "--target", "double_w",
                                  "--repeat", "3", "--save", folder + "/trained"});
  EXPECT_EQ(run.status, kOk) << run.err;
  EXPECT_THAT(run.out, HasSubstr("Variables saved to " + folder + "/trained"));
  EXPECT_EQ(Weir({"ckpt", "show", folder + "/trained", "w"}).out, "w float[2]\n[ 8. 12.]\n");
  EXPECT_EQ(Weir({"run", graph, "--checkpoint", folder + "/trained", "--target", "double_w",
                  "--save", folder + "/more"})
                .status,
            kOk);
  EXPECT_EQ(Weir({"ckpt", "show", folder + "/more", "w"}).out, "w float[2]\n[10. 15.]\n");
}

TEST(WeirRun, SavesWithoutAStepToRun) {
  const std::string folder = TestFolder(), graph = WriteLine(folder);
  EXPECT_EQ(Weir({"run", graph, "--init", "init", "--save", folder + "/new"}).status, kOk);
  EXPECT_EQ(Weir({"ckpt", "show", folder + "/new", "w"}).out, "w float[2]\n[2. 3.]\n");
  const CommandResult without = Weir({"run", graph, "--save", folder + "/none"});
  EXPECT_EQ(without.status, kFailure);
  EXPECT_THAT(without.err, HasSubstr("w"));
}

// Saves under the names of the graph's own saver.
TEST(WeirRun, SavesByTheSaverOfTheGraph) {
  const std::string folder = TestFolder();
  Graph g;
  const Variable w = MakeVariable(g, Initializer{2.f, 3.f}, {.name = "w"});
  const Operation init = GlobalVariablesInitializer(g);
  ASSERT_TRUE(Saver::Create(g, {.named = {{"renamed", w}}}).ok());
  const std::string path = folder + "/graph.pb";
  ASSERT_TRUE(WriteFileAtomically(path, SerializeGraph(g)).ok());
  EXPECT_EQ(Weir({"run", path, "--init", init.name(), "--save", folder + "/m"}).err, "");
  EXPECT_EQ(Weir({"ckpt", "show", folder + "/m", "renamed"}).out, "renamed float[2]\n[2. 3.]\n");
}

// ---- events

std::string WriteEvents(const std::string& folder) {
  auto writer = EventWriter::Create(folder);
  EXPECT_TRUE(writer.ok()) << writer.status();
  for (int step = 0; step < 20; ++step) {
    EXPECT_TRUE((*writer)->AddScalar("loss", 1.f / (step + 1), step * 10).ok());
    EXPECT_TRUE((*writer)->AddScalar("accuracy", 0.05f * step, step * 10).ok());
  }
  EXPECT_TRUE((*writer)->Close().ok());
  return (*writer)->path();
}

TEST(WeirEvents, ListsTags) {
  const std::string folder = TestFolder();
  WriteEvents(folder);
  const CommandResult ls = Weir({"events", "ls", folder});
  EXPECT_EQ(ls.status, kOk) << ls.err;
  EXPECT_THAT(ls.out, ContainsRegex("loss +scalar +20 +0..190 +0.05"));
  const json parsed = json::parse(Weir({"events", "ls", folder, "--json"}).out);
  const json first_time = parsed[0]["tags"][1]["points"][3][2];
  EXPECT_NEAR(first_time.get<double>(), static_cast<double>(std::time(nullptr)), 600);
  EXPECT_EQ(parsed[0]["tags"][1]["points"][3], (json{30, 0.25, first_time}));
}

TEST(WeirEvents, PlotsOneChartPerTag) {
  const std::string folder = TestFolder();
  WriteEvents(folder);
  const CommandResult all = Weir({"events", "plot", folder});
  EXPECT_EQ(all.status, kOk) << all.err;
  EXPECT_THAT(all.out, HasSubstr("━ accuracy"));
  EXPECT_THAT(all.out, HasSubstr("━ loss  min 0.05 at 190  max 1 at 0  last 0.05 at 190"));
  const CommandResult one = Weir({"events", "plot", folder, "--tag", "loss", "--smooth", "0.5"});
  EXPECT_THAT(one.out, Not(HasSubstr("accuracy")));
  EXPECT_THAT(one.out, Not(HasSubstr("last 0.05 ")));
  EXPECT_EQ(Weir({"events", "plot", folder, "--tag", "nothing"}).status, kFailure);
}

TEST(WeirEvents, RunsAreApart) {
  const std::string folder = TestFolder();
  WriteEvents(folder + "/train");
  WriteEvents(folder + "/eval/top");
  const CommandResult ls = Weir({"events", "ls", folder});
  EXPECT_THAT(ls.out, ContainsRegex("^eval/top .*records"));
  EXPECT_THAT(ls.out, HasSubstr("\ntrain "));
  const CommandResult plot = Weir({"events", "plot", folder, "--tag", "loss"});
  EXPECT_THAT(plot.out, HasSubstr("a eval/top  min 0.05"));
  EXPECT_THAT(plot.out, HasSubstr("b train     min 0.05"));
  const CommandResult together = Weir({"events", "plot", folder, "--together"});
  EXPECT_THAT(together.out, HasSubstr("train accuracy"));
}

TEST(WeirEvents, WritesAPageThatNeedsNothingElse) {
  const std::string folder = TestFolder(), page = folder + "/page.html";
  WriteEvents(folder + "/a<b>&amp;");
  WriteEvents(folder + "/c");
  const CommandResult plot = Weir({"events", "plot", folder, "--html", page});
  EXPECT_EQ(plot.status, kOk) << plot.err;
  EXPECT_EQ(plot.out, "Wrote " + page + ": 2 charts of 2 runs\n");
  const std::string html = *ReadFile(page);
  EXPECT_THAT(html, HasSubstr("a&lt;b&gt;&amp;amp;"));
  EXPECT_THAT(html, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(html, HasSubstr("<svg"));
  for (const char* const outside : {"http", "<script", "<link", "src=", "url(", "@import"})
    EXPECT_THAT(html, Not(HasSubstr(outside)));
  EXPECT_EQ(Weir({"events", "plot", folder, "--html", folder + "/no/page.html"}).status, kFailure);
}

TEST(WeirEvents, ATruncatedFileIsReadUpToItsEnd) {
  const std::string folder = TestFolder(), path = WriteEvents(folder);
  const std::string bytes = *ReadFile(path);
  ASSERT_TRUE(WriteFileAtomically(path, bytes.substr(0, bytes.size() - 5)).ok());
  const CommandResult ls = Weir({"events", "ls", folder});
  EXPECT_EQ(ls.status, kFailure);
  EXPECT_THAT(ls.out, ContainsRegex("accuracy +scalar +19"));
  EXPECT_THAT(ls.err, HasSubstr("tfevents"));
}

// ---- graph, ops, case

TEST(WeirGraph, ShowsNodesWithShapes) {
  const std::string graph = WriteLine(TestFolder());
  const CommandResult show = Weir({"graph", "show", graph, "--name", "^y$"});
  EXPECT_EQ(show.status, kOk) << show.err;
  EXPECT_THAT(show.out, ContainsRegex("^y = Mul\\(x, ReadVariableOp\\) -> float\\[\\?,2\\]\n"));
  EXPECT_THAT(show.out, HasSubstr("1 of "));
  EXPECT_EQ(json::parse(Weir({"graph", "show", graph, "--json"}).out)["nodes"][0]["name"], "x");
  EXPECT_EQ(Weir({"graph", "show", graph, "--name", "("}).status, kFailure);
}

TEST(WeirGraph, DiffIsAnExitStatus) {
  const std::string folder = TestFolder(), graph = WriteLine(folder);
  EXPECT_EQ(Weir({"graph", "diff", graph, graph}).status, kOk);
  Graph g;
  BuildLine(g);
  AddOp("Neg", {g.FindNode("y")->output()}, {}, "z");
  ASSERT_TRUE(WriteFileAtomically(folder + "/more.pb", SerializeGraph(g)).ok());
  const CommandResult diff = Weir({"graph", "diff", graph, folder + "/more.pb"});
  EXPECT_EQ(diff.status, kFailure);
  EXPECT_EQ(diff.out, "+ z (Neg)\n0 nodes only in the first, 1 only in the second, 0 changed\n");
}

TEST(WeirGraph, UnknownOpsAreListed) {
  const std::string folder = TestFolder();
  ASSERT_TRUE(WriteFileAtomically(folder + "/g.pbtxt",
                                  "node { name: 'a' op: 'NoOp' } node { name: 'b' op: 'Fancy' }")
                  .ok());
  const CommandResult ops = Weir({"graph", "ops", folder + "/g.pbtxt"});
  EXPECT_EQ(ops.status, kFailure);
  EXPECT_THAT(ops.out, ContainsRegex("1 +0 +Fancy +unknown op"));
  EXPECT_THAT(ops.out, HasSubstr("2 ops, 1 of them not supported"));
  EXPECT_EQ(Weir({"graph", "ops", WriteLine(folder)}).status, kOk);
}

TEST(WeirGraph, FilesThatAreNotGraphsAreRejected) {
  const std::string folder = TestFolder();
  ASSERT_TRUE(WriteFileAtomically(folder + "/a.pb", std::string("\x0a\x03\x0a\x01z", 5)).ok());
  ASSERT_TRUE(WriteFileAtomically(folder + "/b.pbtxt", "node { nam: 'a' }").ok());
  EXPECT_THAT(Weir({"graph", "show", folder + "/a.pb"}).err, HasSubstr("neither a GraphDef"));
  EXPECT_THAT(Weir({"graph", "show", folder + "/b.pbtxt"}).err, HasSubstr("line 1, column 11: "));
  EXPECT_THAT(Weir({"graph", "show", folder}).err, HasSubstr("saved_model.pb"));
}

TEST(WeirOps, DescribesOneAndSuggestsNames) {
  const CommandResult matmul = Weir({"ops", "MatMul"});
  EXPECT_EQ(matmul.status, kOk);
  EXPECT_THAT(matmul.out, HasSubstr("MatMul(a: T, b: T) -> (product: T)"));
  EXPECT_THAT(matmul.out, ContainsRegex("gradient +yes"));
  const CommandResult typo = Weir({"ops", "MatMull"});
  EXPECT_EQ(typo.status, kFailure);
  EXPECT_THAT(typo.err, HasSubstr("MatMul"));
}

TEST(WeirOps, CoverageCountsAllOps) {
  const json coverage = json::parse(Weir({"ops", "--coverage", "--json"}).out);
  EXPECT_EQ(coverage.size(), BuiltinOps().All().size());
  for (const json& row : coverage) {
    EXPECT_TRUE(row["op"] != "NoOp" || row["cpu"] != "-");
  }
}

TEST(WeirCase, CountsAndExitStatus) {
  const std::string folder = TestFolder();
  for (const char* name : {"good", "bad", "python"})
    std::filesystem::create_directories(folder + "/" + name);
  WriteLine(folder + "/good");
  const auto write = [&](const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(folder + "/" + name + "/case.json", text).ok());
  };
  write("good", R"({"graph": "graph.pb", "steps": [{"target": ["init"]}]})");
  write("bad", R"({"graph": "graph.pb", "steps": []})");
  write("python", R"({"layer": "python", "steps": []})");
  const CommandResult all = Weir({"case", folder, "--jobs", "2"});
  EXPECT_EQ(all.status, kFailure);
  EXPECT_THAT(all.out, HasSubstr("FAIL " + folder + "/bad: load: NOT_FOUND"));
  EXPECT_THAT(all.out, HasSubstr("PASS " + folder + "/good\nSKIP " + folder + "/python: "));
  EXPECT_THAT(all.out, testing::EndsWith("\n1 passed, 1 failed, 1 skipped\n"));
  const CommandResult good = Weir({"case", folder + "/good"});
  EXPECT_EQ(good.status, kOk);
  EXPECT_THAT(good.out, testing::EndsWith("\n1 passed, 0 failed\n"));
  EXPECT_EQ(json::parse(Weir({"case", folder, "--json"}).out)["failed"], 1);
}

TEST(WeirRun, StopsAtTheTimeLimitAndNamesTheAwaitedResource) {
  Graph g;
  const Attrs types = {{"component_types", std::vector<DataType>{DT_FLOAT}}};
  const Output queue(AddNode(g, "FIFOQueueV2", {}, types, "files"));
  AddOp("QueueDequeueV2", {queue}, types, "y");
  const std::string path = TestFolder() + "/graph.pb";
  ASSERT_TRUE(WriteFileAtomically(path, SerializeGraph(g)).ok());
  const CommandResult late = Weir({"run", path, "--fetch", "y", "--timeout", "0.05"});
  EXPECT_EQ(late.status, kFailure);
  EXPECT_THAT(late.err, testing::HasSubstr("DEADLINE_EXCEEDED: QueueDequeueV2 (node y)"));
  EXPECT_THAT(late.err, testing::HasSubstr("waited for files (FIFOQueueV2)"));
  for (const char* const limit : {"-1", "0", "soon"})
    EXPECT_EQ(Weir({"run", path, "--fetch", "y", "--timeout", limit}).status, kUsage) << limit;
}

// Numbers that are invalid for every command are invalid usage.
TEST(Weir, NegativeNumbersAreInvalidUsage) {
  const std::string graph = WriteLine(TestFolder());
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"run", graph, "--fetch", "y", "--repeat", "-1"},
                                             {"run", graph, "--fetch", "y", "--threads", "-2"},
                                             {"profile", graph, "--fetch", "y", "--steps", "-3"},
                                             {"profile", graph, "--fetch", "y", "--top", "-1"},
                                             {"case", "folder", "--jobs", "-1"},
                                             {"case", "folder", "--threads", "-1"},
                                             {"case", "folder", "--limit", "-1"},
                                             {"events", "plot", "folder", "--width", "-5"}}) {
    const CommandResult result = Weir(args);
    EXPECT_EQ(result.status, kUsage) << args[0] << " " << args.back() << result.err;
  }
}

}  // namespace
}  // namespace weir::tools
