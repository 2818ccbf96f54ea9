// SavedModels written by TensorFlow 2 and by Weir. tests/interop/saved_model_test.py loads the
// latter with TensorFlow.

#include "weir/session/model/saved_model.h"

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/graph_io.h"
#include "weir/ops/data/io.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/collections.h"
#include "weir/ops/lib/math.h"
#include "weir/proto/saved_model.pb.h"
#include "weir/session/model/saver.h"
#include "weir/tests/io/test_files.h"
#include "weir/tests/session/lib/saver_testing.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Init;
using testing::MakeTempDirectory;
using testing::Start;
using testing::Value;
using testing::Var;
using testing::WriteBytes;

constexpr char kModel[] = "tests/session/golden/saved_model_tf2";

absl::StatusOr<Tensors> Serve(const LoadedModel& model, const Tensor& x) {
  const Signature& signature = model.meta.signatures.at("serving_default");
  return model.session->Run({{signature.inputs.at("x"), x}},
                            {signature.outputs.at("out"), signature.outputs.at("calls")}, {});
}

TEST(SavedModel, OfTensorFlow2IsRestoredByItsFunctionAndKeepsItsState) {
  const auto model = LoadSavedModel(kModel, {"serve"});
  ASSERT_TRUE(model.ok()) << model.status();
  const auto first = Serve(*model, Tensor::Of<float>({2, 2}, {1, 2, 3, 4}));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT((*first)[0].flat<float>(), ElementsAre(82, 152));
  EXPECT_EQ((*first)[1].scalar<int64_t>(), 1);
  const auto second = Serve(*model, Tensor::Of<float>({1, 2}, {-1, -2}));
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_THAT((*second)[0].flat<float>(), ElementsAre(21));
  EXPECT_EQ((*second)[1].scalar<int64_t>(), 2);
}

TEST(SavedModel, OfTensorFlow2ReportsTheSourceOfAnError) {
  const auto model = LoadSavedModel(kModel, {});
  ASSERT_TRUE(model.ok()) << model.status();
  const absl::Status status = Serve(*model, Tensor::Of<float>({1, 3}, {1, 2, 3})).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_TRUE(Serve(*model, Tensor::Of<float>({1, 2}, {1, 2})).ok()) << "and goes on";
}

// y = w x, where w is 2 when the model is written.
struct Doubling {
  Graph g;
  Output x = Placeholder(g, DT_FLOAT, {-1}, "x");
  Variable w = Var(g, "w", {2});
  Output y = Multiply(x, w, "y");
  std::map<std::string, Signature> signatures = {
      {"serving_default", PredictSignature({{"in", x}}, {{"out", y}})}};
};

TEST(SavedModel, RoundTripsValuesSignaturesAndCollections) {
  Doubling model;
  Session session = Start(model.g);
  Init(session, model.g);
  const std::string directory = MakeTempDirectory("written") + "/models/1/";
  ASSERT_TRUE(WriteSavedModel(session, model.g, directory, model.signatures).ok());
  EXPECT_THAT(*Files().List(directory), ElementsAre("saved_model.pb", "variables"));

  const auto loaded = LoadSavedModel(directory, {"serve"});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const Signature& f = loaded->meta.signatures.at("serving_default");
  EXPECT_EQ(f.method_name, "tensorflow/serving/predict");
  EXPECT_EQ(f.inputs.at("in"), "x:0");
  const auto y = loaded->session->Run({{f.inputs.at("in"), Tensor::Vector<float>({1, 5})}},
                                      {f.outputs.at("out")}, {});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_THAT((*y)[0].flat<float>(), ElementsAre(2, 10));
  EXPECT_EQ(GlobalVariables(*loaded->graph).size(), 1u);
}

TEST(SavedModel, IsWrittenAgainAndAgainByOneSaver) {
  Doubling model;
  Session session = Start(model.g);
  Init(session, model.g);
  const SaverDef saver = Saver::Create(model.g)->def();
  const int nodes = model.g.num_nodes();
  const std::string directory = MakeTempDirectory("again");
  for (const char* version : {"/1", "/2"}) {
    const absl::Status written =
        WriteSavedModel(session, model.g, directory + version, model.signatures,
                        {.tags = {"serve", "gpu"}, .saver = saver, .as_text = true});
    ASSERT_TRUE(written.ok()) << written;
    EXPECT_TRUE(LoadSavedModel(directory + version, {"gpu", "serve"}).ok());
  }
  EXPECT_EQ(model.g.num_nodes(), nodes);
  EXPECT_TRUE(Files().Exists(directory + "/2/saved_model.pbtxt"));
}

TEST(SavedModel, RunsItsInitOpOnACopyOfItsAssets) {
  const std::string directory = MakeTempDirectory("assets");
  std::string files[2];
  for (int i : {0, 1}) {
    ASSERT_TRUE(MakeDirectories(absl::StrCat(directory, "/", i)).ok());
    files[i] = absl::StrCat(directory, "/", i, "/words.txt");
    WriteBytes(files[i], absl::StrCat("word ", i));
  }
  Graph g;
  const Output path = Const(g, Tensor::Scalar(files[0]), "path"),
               other = Const(g, Tensor::Scalar(files[1]), "other");
  for (const Output& file : {path, other}) g.AddToCollection(collections::kAssetFilepaths, file);
  const Variable words = MakeVariable(g, Tensor::Scalar(std::string()), {.name = "words"});
  const Operation read = words.Assign(ReadFile(path) + ReadFile(other)).node;
  Session session = Start(g);
  Init(session, g);
  const std::string model = directory + "/model";
  const absl::Status written = WriteSavedModel(session, g, model, {}, {.init_op = read});
  ASSERT_TRUE(written.ok()) << written;
  EXPECT_THAT(*Files().List(model + "/assets"), ElementsAre("words.txt", "words.txt_1"));

  for (const std::string& file : files) ASSERT_TRUE(Files().Remove(file).ok());
  const auto loaded = LoadSavedModel(model, {});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->graph->collection_as<Operation>("saved_model_main_op"),
            std::vector<Operation>{loaded->graph->FindNode(read.name())});
  const auto text = loaded->session->Run({}, {"words/Read/ReadVariableOp"}, {});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ((*text)[0].scalar<std::string>(), "word 0word 1");
}

// A model with one asset, "words.txt", whose contents are the value of its variable.
std::string WriteModelWithAsset(const std::string& directory) {
  WriteBytes(directory + "/words.txt", "words");
  Graph g;
  const Output path = Const(g, Tensor::Scalar(directory + "/words.txt"), "path");
  g.AddToCollection(collections::kAssetFilepaths, path);
  const Variable words = MakeVariable(g, Tensor::Scalar(std::string()), {.name = "words"});
  const Operation read = words.Assign(ReadFile(path)).node;
  Session session = Start(g);
  Init(session, g);
  EXPECT_TRUE(WriteSavedModel(session, g, directory + "/1", {}, {.init_op = read}).ok());
  return directory + "/1";
}

TEST(SavedModel, AssetsAreNamesInTheirDirectory) {
  const std::string directory = MakeTempDirectory("asset_names");
  const std::string model = WriteModelWithAsset(directory);
  const std::string written = testing::ReadBytes(model + "/saved_model.pb");
  for (const std::string name :
       {"../words.txt", "../../words.txt", "/etc/passwd", "a/../../../words.txt", ""}) {
    proto::SavedModel saved;
    ASSERT_TRUE(saved.ParseFromString(written));
    saved.mutable_meta_graphs(0)->mutable_asset_file_def(0)->set_filename(name);
    WriteBytes(model + "/saved_model.pb", saved.SerializeAsString());
    const absl::Status status = LoadSavedModel(model, {}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << name << ": " << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("asset '", name, "' of tensor path:0")));
    MetaGraph meta;
    meta.assets["path:0"] = name;
    EXPECT_EQ(AssetFiles(model, meta).status(), status) << "to be copied to another model";
  }
}

TEST(SavedModel, AssetsMayBeLinksInsideTheModel) {
  const std::string directory = MakeTempDirectory("asset_links");
  const std::string model = WriteModelWithAsset(directory), asset = model + "/assets/words.txt";
  WriteBytes(model + "/elsewhere.txt", "others");
  const auto link_to = [&](const std::string& target) {
    std::filesystem::remove(asset);
    std::filesystem::create_symlink(target, asset);
    return LoadSavedModel(model, {}).status();
  };
  EXPECT_TRUE(link_to("../elsewhere.txt").ok());
  for (const std::string& target : {directory + "/words.txt", std::string("../../words.txt")}) {
    const absl::Status status = link_to(target);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << target << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("is a link to "));
  }
  EXPECT_TRUE(absl::IsNotFound(link_to("nowhere")));
  std::filesystem::create_directory_symlink(model, directory + "/latest");
  EXPECT_TRUE(link_to("../elsewhere.txt").ok());
  EXPECT_TRUE(LoadSavedModel(directory + "/latest", {}).ok()) << "the model itself may be a link";
}

// The files named in the graph are those of the machine that wrote it.
TEST(SavedModel, IsWrittenAgainWithTheInitOpAndTheAssetsThatItHas) {
  const std::string directory = MakeTempDirectory("rewritten");
  const std::string file = directory + "/words.txt";
  WriteBytes(file, "words");
  Graph g;
  const Output path = Const(g, Tensor::Scalar(file), "path");
  g.AddToCollection(collections::kAssetFilepaths, path);
  const Variable words = MakeVariable(g, Tensor::Scalar(std::string()), {.name = "words"});
  const Operation read = words.Assign(ReadFile(path)).node;
  Session session = Start(g);
  Init(session, g);
  ASSERT_TRUE(WriteSavedModel(session, g, directory + "/1", {}, {.init_op = read}).ok());
  WriteBytes(file, "others");

  const auto first = LoadSavedModel(directory + "/1", {});
  ASSERT_TRUE(first.ok()) << first.status();
  const SavedModelOptions options{.saver = first->meta.saver,
                                  .assets = *AssetFiles(directory + "/1", first->meta)};
  const absl::Status written = WriteSavedModel(*first->session, *first->graph, directory + "/2",
                                               first->meta.signatures, options);
  ASSERT_TRUE(written.ok()) << written;
  const auto second = LoadSavedModel(directory + "/2", {});
  ASSERT_TRUE(second.ok()) << second.status();
  const auto text = second->session->Run({}, {"words/Read/ReadVariableOp"}, {});
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ((*text)[0].scalar<std::string>(), "words");
}

TEST(SavedModel, HasAllVariablesThatItsSignaturesNeed) {
  const std::string directory = MakeTempDirectory("needed");
  Doubling model;
  // Without its collections, as an imported graph.
  Graph bare;
  ASSERT_TRUE(ImportGraph(bare, SerializeGraph(model.g)).ok());
  Session session = Start(bare);
  ASSERT_TRUE(session.Run({}, {}, {"w/Assign"}).ok());
  const absl::Status written = WriteSavedModel(session, bare, directory + "/1", model.signatures);
  ASSERT_TRUE(written.ok()) << written;
  const auto loaded = LoadSavedModel(directory + "/1", {});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_TRUE(loaded->session->Run({{"x", Tensor::Vector<float>({1})}}, {"y"}, {}).ok());

  // With a saver of another variable, or of format V1.
  const Variable other = Var(model.g, "other", {1});
  const SaverDef partial = Saver::Create(model.g, {.variables = Variables{other}})->def();
  const SaverDef old = Saver::Create(model.g, {.write_version = 1})->def();
  Session full = Start(model.g);
  Init(full, model.g);
  const auto write = [&](const SaverDef& saver) {
    return WriteSavedModel(full, model.g, directory + "/2", model.signatures, {.saver = saver});
  };
  const absl::Status lacking = write(partial);
  EXPECT_EQ(lacking.code(), absl::StatusCode::kFailedPrecondition) << lacking;
  EXPECT_THAT(std::string(lacking.message()), HasSubstr("w (VarHandleOp)"));
  EXPECT_EQ(write(old).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(Files().Exists(directory + "/2"));
}

TEST(SavedModel, WithoutVariablesHasNone) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {}, "x");
  const Output y = x + 1.f;
  Session session = Start(g);
  const std::string directory = MakeTempDirectory("plain") + "/model";
  ASSERT_TRUE(
      WriteSavedModel(session, g, directory, {{"f", PredictSignature({{"x", x}}, {{"y", y}})}})
          .ok());
  EXPECT_THAT(*Files().List(directory), ElementsAre("saved_model.pb"));
  EXPECT_TRUE(LoadSavedModel(directory, {}).ok());
}

// After any error there is no directory that looks like a model, and no leftover beside it.
TEST(SavedModel, IsWrittenAtomically) {
  const std::string directory = MakeTempDirectory("refused");
  const std::string path = directory + "/model";
  Doubling model;
  Session session = Start(model.g);
  const auto write = [&] { return WriteSavedModel(session, model.g, path, model.signatures); };
  absl::Status status = write();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << "no value yet: " << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("w"));
  Init(session, model.g);

  Signature& f = model.signatures["serving_default"];
  f.outputs["nothing"] = "nothing:0";
  status = write();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("Signature 'serving_default'"));
  f.outputs.erase("nothing");

  const Output missing = Const(model.g, Tensor::Scalar(directory + "/none.txt"), "missing");
  model.g.AddToCollection(collections::kAssetFilepaths, missing);
  EXPECT_EQ(write().code(), absl::StatusCode::kNotFound);
  model.g.ClearCollection(collections::kAssetFilepaths);
  model.g.AddToCollection(collections::kAssetFilepaths, model.x);
  EXPECT_EQ(write().code(), absl::StatusCode::kInvalidArgument);
  model.g.ClearCollection(collections::kAssetFilepaths);
  Graph other;
  status = WriteSavedModel(session, other, path, {});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  status = WriteSavedModel(session, model.g, path, {}, {.init_op = Const(other, 1)});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_TRUE(Files().List(directory)->empty());

  WriteBytes(path, "a file");
  EXPECT_EQ(write().code(), absl::StatusCode::kAlreadyExists);
  ASSERT_TRUE(Files().Remove(path).ok());
  EXPECT_TRUE(write().ok());
  status = write();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists) << status;
  EXPECT_THAT(*Files().List(directory), ElementsAre("model"));
}

}  // namespace
}  // namespace weir
