// weir model, on models of TensorFlow 1 and 2 (tests/session/golden).

#include <filesystem>
#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "weir/core/io/text_proto.h"
#include "weir/proto/graph.pb.h"
#include "weir/proto/meta_graph.pb.h"
#include "weir/proto/saved_model.pb.h"
#include "weir/tests/tools/lib/tools_testing.h"

namespace weir::tools {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A copy without links of a model with an asset: Bazel links each file.
std::string CopyOfModel(const std::string& folder) {
  const std::string copy = ::testing::TempDir() + "/" + std::string(BaseName(folder));
  std::filesystem::copy(folder, copy, std::filesystem::copy_options::recursive);
  return copy;
}
const std::string kFunctions = CopyOfModel("tests/session/golden/saved_model_functions");
const std::string kOneSignature = "tests/session/golden/saved_model_tf2";

std::string Error(const std::vector<std::string>& args) {
  const CommandResult result = Weir(args);
  EXPECT_EQ(result.status, kFailure) << result.out;
  return result.err;
}

json Show(const std::string& path) {
  const CommandResult shown = Weir({"model", "show", path, "--json"});
  EXPECT_EQ(shown.status, kOk) << shown.err;
  return json::parse(shown.out, nullptr, false);
}

// ---- show

TEST(ModelShow, DescribesASavedModelOfTensorFlow2) {
  const json model = Show(kFunctions);
  EXPECT_EQ(model["kind"], "SavedModel");
  EXPECT_EQ(model["tags"], json({"serve"}));
  EXPECT_EQ(model["tensorflow"], "2.21.0");
  EXPECT_GT(model["producer"], 1000);
  EXPECT_EQ(model["variables"], json({{"count", 3}, {"bytes", 28}}));
  EXPECT_EQ(model["checkpoint"]["tensors"], 3);
  EXPECT_EQ(model["assets"][0]["file"], "animals.txt");
  EXPECT_EQ(model["assets"][0]["bytes"], 13);
  EXPECT_EQ(model["missing_ops"], json::array());
  ASSERT_EQ(model["signatures"].size(), 1u);
  EXPECT_EQ(model["signatures"][0]["name"], "power");
  EXPECT_EQ(model["signatures"][0]["inputs"][1],
            json({{"name", "x"}, {"dtype", "float"}, {"shape", {-1}}, {"tensor", "power_x:0"}}));
  ASSERT_EQ(model["functions"].size(), 7u);
  EXPECT_EQ(model["functions"][2]["name"], "look");
  EXPECT_EQ(model["functions"][2]["inputs"][0]["dtype"], "string");
  EXPECT_EQ(model["functions"][3]["name"], "poly[0]");
  EXPECT_EQ(model["functions"][5]["inputs"][1]["default"], "2.0");
}

TEST(ModelShow, LooksAtNoFileOutsideOfTheModel) {
  const std::string model = TestFolder() + "/model", file = model + "/saved_model.pb";
  std::filesystem::copy(kFunctions, model, std::filesystem::copy_options::recursive);
  const std::string written = *ReadFile(file);
  for (const char* const name : {"/etc/passwd", "../saved_model.pb"}) {
    proto::SavedModel saved;
    ASSERT_TRUE(saved.ParseFromString(written));
    saved.mutable_meta_graphs(0)->mutable_asset_file_def(0)->set_filename(name);
    ASSERT_TRUE(WriteFileAtomically(file, saved.SerializeAsString()).ok());
    const json asset = Show(model)["assets"][0];
    EXPECT_EQ(asset["file"], name);
    EXPECT_EQ(asset["bytes"], nullptr);
  }
}

TEST(ModelShow, PrintsTables) {
  const CommandResult shown = Weir({"model", "show", kFunctions});
  EXPECT_EQ(shown.status, kOk) << shown.err;
  EXPECT_THAT(shown.out, StartsWith("SavedModel " + kFunctions + "\nTensorFlow 2.21.0, producer"));
  EXPECT_THAT(shown.out, AllOf(HasSubstr("3 variables of 28 B"), HasSubstr("x: float[?,2]"),
                               HasSubstr("power: float[] = 2.0"), HasSubstr("animals.txt")));
}

// A SavedModel, its versions' folder, its file and its checkpoint are the same model; so are a
// checkpoint, its files, its folder and its .meta.
TEST(ModelShow, TakesWhatPeoplePass) {
  const std::string folder = TestFolder(), graph = WriteLine(folder);
  std::filesystem::create_directories(folder + "/base");
  std::filesystem::copy(kOneSignature, folder + "/base/3",
                        std::filesystem::copy_options::recursive);
  for (const char* path : {"/base", "/base/3", "/base/3/saved_model.pb", "/base/3/variables"})
    EXPECT_EQ(Show(folder + path)["signatures"][0]["name"], "serving_default") << path;

  std::filesystem::create_directories(folder + "/run");
  for (const char* file : {"tf_model.meta", "tf_model.index", "tf_model.data-00000-of-00001"})
    std::filesystem::copy("tests/session/golden/" + std::string(file), folder + "/run/" + file);
  ASSERT_TRUE(
      WriteFileAtomically(folder + "/run/checkpoint", "model_checkpoint_path: \"tf_model\"\n")
          .ok());
  const json meta = Show(folder + "/run/tf_model.meta");
  EXPECT_EQ(meta["kind"], "MetaGraph");
  EXPECT_EQ(meta["checkpoint"]["prefix"], folder + "/run/tf_model");
  for (const char* path : {"/run", "/run/tf_model", "/run/tf_model.index", "/run/checkpoint"})
    EXPECT_EQ(Show(folder + path), meta) << path;

  const json line = Show(graph);
  EXPECT_EQ(line["kind"], "GraphDef");
  EXPECT_EQ(line["placeholders"][0]["name"], "x");
  EXPECT_THAT(line["ends"], testing::Contains("y"));
  EXPECT_EQ(line["variables"], json({{"count", 1}, {"bytes", 8}}));
}

TEST(ModelShow, CountsTheOpsThatAreMissing) {
  const std::string folder = TestFolder();
  proto::GraphDef def;
  ASSERT_TRUE(ParseTextProto(R"pb(
                               node {
                                 name: "x"
                                 op: "Placeholder"
                                 attr {
                                   key: "dtype"
                                   value { type: DT_FLOAT }
                                 }
                               }
                               node { name: "a" op: "FancyOp" input: "x" }
                               node { name: "b" op: "FancyOp" input: "a" }
                             )pb",
                             "graph", &def)
                  .ok());
  ASSERT_TRUE(WriteFileAtomically(folder + "/g.pb", def.SerializeAsString()).ok());
  EXPECT_EQ(
      Show(folder + "/g.pb")["missing_ops"],
      json::array(
          {{{"op", "FancyOp"}, {"nodes", 2}, {"in_functions", 0}, {"missing", "unknown op"}}}));
  EXPECT_THAT(Weir({"model", "show", folder + "/g.pb"}).out, HasSubstr("unknown op"));
}

TEST(ModelShow, DescribesAGraphThatCannotBeImported) {
  const std::string folder = TestFolder();
  proto::GraphDef def;
  proto::NodeDef& node = *def.add_node();
  node.set_name("x");
  node.set_op("Identity");
  node.add_input("");
  proto::NodeDef& variable = *def.add_node();  // of 2^64 bytes
  variable.set_name("v");
  variable.set_op("VarHandleOp");
  (*variable.mutable_attr())["dtype"].set_type(proto::DT_FLOAT);
  (*variable.mutable_attr())["shape"].mutable_shape()->add_dim()->set_size(int64_t{1} << 62);
  ASSERT_TRUE(WriteFileAtomically(folder + "/g.pb", def.SerializeAsString()).ok());
  const json model = Show(folder + "/g.pb");
  EXPECT_EQ(model["ends"], json({"x", "v"}));
  EXPECT_EQ(model["variables"], json({{"count", 1}, {"bytes", 0}}));
}

TEST(ModelShow, RejectsWhatIsNoModel) {
  const std::string folder = TestFolder();
  ASSERT_TRUE(WriteFileAtomically(folder + "/junk", "junk").ok());
  EXPECT_THAT(Error({"model", "show", folder + "/junk"}), HasSubstr(folder + "/junk"));
  EXPECT_THAT(Error({"model", "show", folder + "/none"}), HasSubstr("NOT_FOUND"));
  EXPECT_THAT(Error({"model", "show", kOneSignature, "--tags", "train"}),
              AllOf(HasSubstr("{ serve }"), HasSubstr("--tags")));
}

// ---- run

std::string Output(const std::vector<std::string>& args) {
  std::vector<std::string> all = {"model", "run"};
  all.insert(all.end(), args.begin(), args.end());
  const CommandResult result = Weir(all);
  EXPECT_EQ(result.status, kOk) << result.err;
  return result.out;
}

TEST(ModelRun, CallsTheDefaultSignature) {
  EXPECT_EQ(Output({kOneSignature, "--feed", "x=[[1, 2], [3, 4]]"}),
            "calls int64[]\n1\nout float[2]\n[ 82. 152.]\n");
  EXPECT_EQ(Output({kOneSignature, "--feed", "x=[[1, 2]]", "--fetch", "out"}),
            "out float[1]\n[82.]\n");
}

TEST(ModelRun, CallsFunctionsThatHaveNoSignature) {
  EXPECT_EQ(Output({kFunctions, "--signature", "affine", "--feed", "x=[[1, 1]]"}),
            "part float[1,2]\n[[0.5  0.25]]\ny float[1,2]\n[[14. 26.]]\n");
  EXPECT_EQ(Output({kFunctions, "--signature", "look", "--feed", "words=[\"bird\", \"fish\"]"}),
            "output_0 int64[2]\n[ 2 -1]\n");
  EXPECT_EQ(Output({kFunctions, "--signature", "scale.times", "--feed", "x=[2]"}),
            "output_0 float[1]\n[6.]\n");
}

TEST(ModelRun, ChoosesTheTraceThatAcceptsTheInputs) {
  const auto poly = [](const std::string& name, const std::string& x) {
    return Output({kFunctions, "--signature", name, "--feed", x, "--fetch", "output_0"});
  };
  EXPECT_EQ(poly("poly", "x=[1, 2]"), "output_0 float[2]\n[2. 4.]\n");
  EXPECT_EQ(poly("poly", "x=3"), "output_0 int32[]\n6\n");
  EXPECT_EQ(poly("poly[1]", "x=3"), "output_0 int32[]\n6\n");
  EXPECT_THAT(
      Error({"model", "run", kFunctions, "--signature", "poly", "--feed", "x=[1, 2, 3]"}),
      AllOf(HasSubstr("no trace of function 'poly' accepts"), HasSubstr("[1] poly(x: int32[])")));
  EXPECT_THAT(Error({"model", "run", kFunctions, "--signature", "poly[2]", "--feed", "x=3"}),
              HasSubstr("unknown signature 'poly[2]'"));
}

TEST(ModelRun, TakesDefaults) {
  EXPECT_EQ(Output({kFunctions, "--signature", "power", "--feed", "x=[3]", "--feed", "power=3"}),
            "result float[1]\n[27.]\n");
  // The signature of this model has no defaults, but one that has needs no value.
  const std::string folder = TestFolder() + "/model";
  std::filesystem::copy(kFunctions, folder, std::filesystem::copy_options::recursive);
  proto::SavedModel saved;
  ASSERT_TRUE(saved.ParseFromString(*ReadFile(folder + "/saved_model.pb")));
  TensorToProto(Tensor::Scalar(2.f),
                &(*(*saved.mutable_meta_graphs(0)->mutable_signature_def())["power"]
                       .mutable_defaults())["power"]);
  ASSERT_TRUE(WriteFileAtomically(folder + "/saved_model.pb", saved.SerializeAsString()).ok());
  EXPECT_EQ(Output({folder, "--feed", "x=[3]"}), "result float[1]\n[9.]\n");
  EXPECT_EQ(Output({folder, "--feed", "x=[3]", "--feed", "power=1"}), "result float[1]\n[3.]\n");
  EXPECT_EQ(Show(folder)["signatures"][0]["inputs"][0]["default"], "2.0");
}

TEST(ModelRun, ListsTheNamesThatAreRightNearestFirst) {
  EXPECT_THAT(Error({"model", "run", kFunctions, "--signature", "afine", "--feed", "x=[[1, 1]]"}),
              AllOf(HasSubstr("unknown signature 'afine'"), HasSubstr("power("),
                    HasSubstr("functions: affine(x: float[?,2]) -> part, y; ")));
  EXPECT_THAT(Error({"model", "run", kFunctions, "--feed", "pwer=1", "--feed", "x=[1]"}),
              HasSubstr("has no input 'pwer'; its inputs: power: float[], x: float[?]"));
  EXPECT_THAT(
      Error({"model", "run", kFunctions, "--feed", "power=1", "--feed", "x=[1]", "--fetch", "z"}),
      HasSubstr("has no output 'z'; its outputs: result: float[?]"));
  EXPECT_THAT(Error({"model", "run", kOneSignature}),
              HasSubstr("'serving_default' has no value for x: float[?,2]; pass --feed x=VALUE"));
  EXPECT_THAT(Error({"model", "run", kOneSignature, "--feed", "x=[[\"a\", \"b\"]]"}),
              HasSubstr("float"));
}

TEST(ModelRun, GraphsWithoutSignaturesAreForWeirRun) {
  EXPECT_THAT(Error({"model", "run", WriteLine(TestFolder())}),
              AllOf(HasSubstr("no signatures and no functions"), HasSubstr("weir run")));
}

}  // namespace
}  // namespace weir::tools
