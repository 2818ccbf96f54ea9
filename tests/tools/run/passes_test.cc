#include <nlohmann/json.hpp>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/file.h"
#include "weir/core/io/graph_io.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"
#include "weir/proto/graph.pb.h"
#include "weir/session/passes/passes.h"
#include "weir/tests/tools/lib/tools_testing.h"

// The pass table seen from outside: weir passes, --disable and --dump-plan.
namespace weir::tools {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class PassesCommand : public testing::Test {
 protected:
  PassesCommand() : folder_(TestFolder()), graph_(folder_ + "/graph.pb") {
    Graph g;
    const Output x = Placeholder(g, DT_FLOAT, {-1, 8}, "x");
    const Output w = Const(g, Tensor(DT_FLOAT, {8, 4}), "w");
    Relu(BiasAdd(MatMul(x, w), Const(g, Tensor(DT_FLOAT, {4}))) * 1.f, "y");
    EXPECT_TRUE(WriteFileAtomically(graph_, SerializeGraph(g)).ok());
  }

  std::vector<std::string> Request(std::vector<std::string> args) const {
    for (const char* more : {"--feed", "x:0=[[1,2,3,4,5,6,7,8]]", "--fetch", "y:0"})
      args.emplace_back(more);
    args.insert(args.begin() + 1, graph_);
    return args;
  }

  // Netron shows a GraphDef whose nodes have different names, and inputs that exist.
  static void CheckGraph(const std::string& bytes, const std::string& file) {
    proto::GraphDef def;
    ASSERT_TRUE(def.ParseFromString(bytes)) << file;
    std::set<std::string> names;
    for (const proto::NodeDef& node : def.node()) {
      EXPECT_TRUE(names.insert(node.name()).second) << file << ": " << node.name();
      EXPECT_THAT(node.op(), Not(IsEmpty())) << file << ": " << node.name();
    }
    for (const proto::NodeDef& node : def.node()) {
      for (std::string input : node.input()) {
        if (input[0] == '^') input.erase(0, 1);
        EXPECT_THAT(names, Contains(input.substr(0, input.find(':')))) << file;
      }
    }
  }

  const std::string folder_, graph_;
};

// Every pass has a row, and what it reports adds up.
TEST_F(PassesCommand, ReportsWhatEachPassDid) {
  const CommandResult ran = Weir(Request({"passes", "--json"}));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const json passes = json::parse(ran.out);
  int nodes = 0, fused = 0;
  std::vector<std::string> names;
  for (const json& pass : passes) {
    nodes += pass["added"].get<int>() - pass["removed"].get<int>() - pass["fused"].get<int>();
    EXPECT_EQ(pass["nodes"].get<int>(), nodes) << pass["name"];
    EXPECT_GE(pass["ns"].get<int64_t>(), 0);
    fused += pass["fused"].get<int>();
    names.push_back(pass["name"]);
  }
  EXPECT_GE(fused, 2);  // the bias and the activation
  for (const Pass& pass : Passes()) {
    if (pass.by_default == nullptr) {
      EXPECT_THAT(names, Contains(std::string(pass.name)));
    }
  }
}

TEST_F(PassesCommand, SkipsDisabledPasses) {
  const CommandResult ran = Weir(Request({"passes", "--json", "--disable", "fusion"}));
  ASSERT_EQ(ran.status, 0) << ran.err;
  for (const json& pass : json::parse(ran.out)) {
    EXPECT_NE(pass["phase"], "fuse") << pass["name"];
    EXPECT_EQ(pass["fused"], 0) << pass["name"];
  }
}

TEST_F(PassesCommand, ListsThePassesWithoutAGraph) {
  const CommandResult ran = Weir({"passes"});
  EXPECT_EQ(ran.status, 0);
  for (const Pass& pass : Passes()) EXPECT_THAT(ran.out, HasSubstr(std::string(pass.name)));
  for (const PassSwitch& one : PassSwitches())
    EXPECT_THAT(ran.out, HasSubstr(std::string(one.name)));
}

TEST_F(PassesCommand, NamesTheClosestOptimizations) {
  const CommandResult ran = Weir(Request({"run", "--disable", "fuse_softmx"}));
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.err, HasSubstr("unknown optimization 'fuse_softmx'"));
  EXPECT_THAT(ran.err, HasSubstr("fuse_softmax"));
  EXPECT_THAT(ran.out, IsEmpty());
}

// Names of the release before still work.
TEST_F(PassesCommand, AcceptsDeprecatedNames) {
  for (const char* name : {"lasting_values", "needless_waits", "raised_loops", "unused_values",
                           "no_ops", "common_subexpressions"}) {
    const CommandResult ran = Weir(Request({"run", "--disable", name}));
    EXPECT_EQ(ran.status, 0) << ran.err;
  }
}

TEST_F(PassesCommand, DumpsThePlanAfterEachPass) {
  const std::string dump = folder_ + "/dump";
  const CommandResult ran = Weir(Request({"run", "--dump-plan", dump}));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const auto files = Files().List(dump);
  ASSERT_TRUE(files.ok());
  int graphs = 0;
  for (const std::string& file : *files) {
    const auto bytes = ReadFile(dump + "/" + file);
    ASSERT_TRUE(bytes.ok());
    EXPECT_THAT(*bytes, Not(IsEmpty())) << file;
    if (file.ends_with(".pb")) {
      ++graphs;
      CheckGraph(*bytes, file);
    }
    if (file.ends_with("fuse_epilogues.txt")) {
      EXPECT_THAT(*bytes, HasSubstr("_FusedMatMul("));
    }
    if (file.ends_with("01_prune.txt")) {
      EXPECT_THAT(*bytes, HasSubstr("BiasAdd("));
    }
  }
  EXPECT_GE(graphs, 20);
}

TEST_F(PassesCommand, RefusesAFolderThatCannotBeWritten) {
  const CommandResult ran = Weir(Request({"run", "--dump-plan", graph_}));
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.err, HasSubstr(graph_));
  EXPECT_THAT(ran.out, IsEmpty());
}

}  // namespace
}  // namespace weir::tools
