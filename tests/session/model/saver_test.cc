#include "weir/session/model/saver.h"

#include <thread>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/core/io/bundle.h"
#include "weir/core/io/file.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/model/saved_model.h"
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

constexpr char kGolden[] = "tests/session/golden/";

Saver MakeSaver(Graph& graph, const SaverOptions& options = {}) {
  absl::StatusOr<Saver> saver = Saver::Create(graph, options);
  EXPECT_TRUE(saver.ok()) << saver.status();
  return *std::move(saver);
}

// ---- The nodes.

std::string NodeLines(const Graph& graph) {
  std::string lines;
  for (const auto& node : graph.nodes()) {
    if (node->name().compare(0, 5, "save/") != 0) continue;
    std::vector<std::string> inputs, places;
    for (const Output& in : node->inputs()) {
      inputs.push_back(in.index == 0 ? in.node->name()
                                     : absl::StrCat(in.node->name(), ":", in.index));
    }
    for (const Node* control : node->control_inputs()) inputs.push_back("^" + control->name());
    for (const std::string& place : node->colocations()) places.push_back("loc:@" + place);
    const auto or_dash = [](std::string text) { return text.empty() ? "-" : text; };
    absl::StrAppend(&lines, node->name(), " ", node->op_name(), " ",
                    or_dash(absl::StrJoin(inputs, ",")), " ", or_dash(node->device()), " ",
                    or_dash(absl::StrJoin(places, ",")), "\n");
  }
  return lines;
}

class SaverNodes : public ::testing::TestWithParam<const char*> {};

TEST_P(SaverNodes, AreTensorFlows) {
  const std::string kind = GetParam();
  const bool sharded = kind == "sharded" || kind == "v1_sharded";
  Graph g({.use_resource = kind == "resource" || kind == "reshape" || kind == "v1_sharded"});
  {
    const DeviceScope cpu(g, "/cpu:0");
    GetVariable(g, "b", Shape({2}));
  }
  {
    const DeviceScope cpu(g, sharded ? "/cpu:1" : "/cpu:0");
    GetVariable(g, "a", Shape({3, 2}), {.dtype = DT_DOUBLE});
  }
  GetVariable(g, "c", Shape(), {.initializer = Zeros(), .dtype = DT_INT32});
  MakeSaver(g, {.sharded = sharded,
                .reshape = kind == "reshape",
                .write_version = kind.compare(0, 2, "v1") == 0 ? 1 : 2});
  ASSERT_TRUE(g.status().ok()) << g.status();
  EXPECT_EQ(NodeLines(g), ReadBytes(absl::StrCat(kGolden, "saver_", kind, ".txt")));
}

INSTANTIATE_TEST_SUITE_P(All, SaverNodes,
                         ::testing::Values("ref", "resource", "sharded", "reshape", "v1",
                                           "v1_sharded"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Saver, DefNamesItsNodes) {
  Graph g;
  Var(g, "v", {1});
  EXPECT_EQ(MakeSaver(g).def().filename_tensor_name, "save/Const:0");
  const SaverDef def = MakeSaver(g, {.max_to_keep = 3, .sharded = true}).def();
  EXPECT_EQ(def.save_tensor_name, "save_1/Identity:0");
  EXPECT_EQ(def.restore_op_name, "save_1/restore_all");
  EXPECT_EQ(def.max_to_keep, 3);
}

TEST(Saver, RejectsEmptyAndAmbiguousVariableLists) {
  Graph g;
  EXPECT_THAT(Saver::Create(g).status().message(), HasSubstr("No variables to save"));
  const Variable a = Var(g, "a", {1}), b = Var(g, "b", {1});
  const absl::Status twice = Saver::Create(g, {.variables = Variables{a, b, a}}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(twice));
  EXPECT_THAT(twice.message(), HasSubstr("same name: a"));
  const absl::Status two_names = Saver::Create(g, {.named = {{"x", a}, {"y", a}}}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(two_names));
  EXPECT_THAT(two_names.message(), HasSubstr("two names: y"));
  EXPECT_TRUE(absl::IsInvalidArgument(Saver::Create(g, {.named = {{"x", a}, {"x", b}}}).status()));
}

// ---- Saving and restoring.

class SaverKinds : public ::testing::TestWithParam<std::tuple<bool, bool>> {};

TEST_P(SaverKinds, ANewSessionHasTheValuesAfterRestore) {
  const auto [resource, sharded] = GetParam();
  const std::string path = MakeTempDirectory("saver") + "/m";
  for (const bool restoring : {false, true}) {
    Graph g({.use_resource = resource});
    const Variable a = Var(g, "a", {1, 2}), b = Var(g, "b", {3});
    const Output change = a.Assign(std::vector<float>{5, 6});
    Saver saver = MakeSaver(g, {.sharded = sharded});
    Session session = Start(g);
    if (restoring) {
      ASSERT_TRUE(saver.Restore(session, path).ok());
      EXPECT_THAT(Value(session, a), ElementsAre(5, 6));
      EXPECT_THAT(Value(session, b), ElementsAre(3));
    } else {
      Init(session, g);
      ASSERT_TRUE(session.Run({change}).ok());
      const auto saved = saver.Save(session, path);
      ASSERT_TRUE(saved.ok()) << saved.status();
      EXPECT_EQ(*saved, path);
      EXPECT_TRUE(VerifyBundle(path)->problems.empty());
      EXPECT_FALSE(Files().Exists(path + "_temp"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SaverKinds, ::testing::Combine(::testing::Bool(), ::testing::Bool()));

TEST(Saver, WritesTheBytesOfTensorFlow) {
  const std::string path = MakeTempDirectory("saver") + "/m";
  Graph g;
  MakeVariable(g, Tensor::Of<float>(Shape({2, 1}), {1, 2}), {.name = "w"});
  Var(g, "b", {0.5f});
  Saver saver = MakeSaver(g);
  Session session = Start(g);
  Init(session, g);
  ASSERT_TRUE(saver.Save(session, path).ok());
  for (const char* suffix : {".index", ".data-00000-of-00001"}) {
    EXPECT_EQ(ReadBytes(path + suffix), ReadBytes(absl::StrCat(kGolden, "tf_model", suffix)))
        << suffix;
  }
}

TEST(Saver, ShardsAreWrittenADeviceEach) {
  const std::string path = MakeTempDirectory("saver") + "/m";
  Graph g;
  const Variable a = Var(g, "a", {1, 2});
  Variable b;
  {
    const DeviceScope cpu(g, "/cpu:0");
    b = Var(g, "b", {3});
  }
  Saver saver = MakeSaver(g, {.sharded = true});
  Session session = Start(g);
  Init(session, g);
  ASSERT_TRUE(saver.Save(session, path).ok());
  EXPECT_TRUE(Files().Exists(path + ".data-00001-of-00002"));
  EXPECT_TRUE(VerifyBundle(path)->problems.empty());
}

TEST(Saver, RestoresByOtherNamesAndOnlyItsVariables) {
  const std::string path = MakeTempDirectory("saver") + "/m";
  {
    Graph g;
    Var(g, "old/a", {1, 2});
    Var(g, "old/b", {3});
    Saver saver = MakeSaver(g);
    Session session = Start(g);
    Init(session, g);
    ASSERT_TRUE(saver.Save(session, path).ok());
  }
  Graph g;
  const Variable a = Var(g, "new/a", {0, 0}), c = Var(g, "c", {9});
  Saver saver = MakeSaver(g, {.named = {{"old/a", a}}});
  Session session = Start(g);
  Init(session, g);
  ASSERT_TRUE(saver.Restore(session, path).ok());
  EXPECT_THAT(Value(session, a), ElementsAre(1, 2));
  EXPECT_THAT(Value(session, c), ElementsAre(9));
}

TEST(Saver, SaveErrorsNameTheCause) {
  const std::string dir = MakeTempDirectory("saver");
  Graph g;
  Var(g, "v", {1});
  Saver saver = MakeSaver(g);
  Session session = Start(g);
  const absl::Status uninitialized = saver.Save(session, dir + "/m").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(uninitialized)) << uninitialized;
  EXPECT_THAT(uninitialized.message(), HasSubstr("v"));
  EXPECT_FALSE(Files().Exists(dir + "/checkpoint"));
  Init(session, g);
  EXPECT_TRUE(absl::IsInvalidArgument(saver.Save(session, "").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(saver.Save(session, dir + "/checkpoint").status()));
  for (const char* directory : {"/", "/.", "/.."})
    EXPECT_TRUE(absl::IsInvalidArgument(saver.Save(session, dir + directory).status()))
        << directory;
  EXPECT_TRUE(absl::IsInvalidArgument(saver.Save(session, dir + std::string("/a\0b", 4)).status()));
  for (const char* own : {"m.index", "m.meta", "m.data-00000-of-00001"}) {
    EXPECT_TRUE(
        absl::IsInvalidArgument(saver.Save(session, dir + "/m", {.latest_filename = own}).status()))
        << own;
  }
  for (const char* bytes : {"\xff", "a\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(saver.Save(session, dir + "/" + bytes).status())) << bytes;
  }
  EXPECT_THAT(*Files().List(dir), ::testing::IsEmpty());
  const absl::Status missing = saver.Save(session, dir + "/no/m").status();
  EXPECT_TRUE(absl::IsNotFound(missing));
  EXPECT_THAT(missing.message(), HasSubstr(dir + "/no/m"));
}

TEST(Saver, AnyNameWithoutAStateFile) {
  const std::string dir = MakeTempDirectory("saver");
  Graph g;
  Var(g, "v", {1});
  Saver saver = MakeSaver(g);
  Session session = Start(g);
  Init(session, g);
  ASSERT_TRUE(saver.Save(session, dir + "/\xff", {.write_state = false}).ok());
  EXPECT_TRUE(saver.Restore(session, dir + "/\xff").ok());
  const std::string greek = dir + "/\xce\xbc\xf0\x9f\x98\x80";
  ASSERT_TRUE(saver.Save(session, greek).ok());
  EXPECT_EQ(*LatestCheckpoint(dir), greek);
  saver.RecoverLastCheckpoints({dir + "/\xff", greek});
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(greek));
}

TEST(Saver, KeepsCheckpointsWithoutAStateFile) {
  const std::string dir = MakeTempDirectory("saver");
  Graph g;
  Var(g, "v", {1});
  Saver saver = MakeSaver(g, {.max_to_keep = 1});
  Session session = Start(g);
  Init(session, g);
  ASSERT_TRUE(saver.Save(session, dir + "/recorded").ok());
  for (const char* name : {"/a", "/b", "/c"})
    ASSERT_TRUE(saver.Save(session, dir + name, {.write_state = false}).ok());
  for (const char* name : {"/recorded", "/a", "/b", "/c"})
    EXPECT_TRUE(saver.Restore(session, dir + name).ok()) << name;
  EXPECT_THAT(saver.last_checkpoints(), ElementsAre(dir + "/recorded"));
}

// ---- All or nothing.

// Two shards: `a` without a device, `b` on the CPU; saved as {1, 2} and {3}, then set to {7, 8} and
// {9}.
class RestoreFails : public ::testing::Test {
 protected:
  RestoreFails() : path_(MakeTempDirectory("saver") + "/m") {
    a_ = Var(g_, "a", {1, 2});
    const DeviceScope cpu(g_, "/cpu:0");
    b_ = Var(g_, "b", {3});
    saver_.emplace(MakeSaver(g_, {.sharded = true}));
    const std::vector<Operation> change = {a_.Assign(std::vector<float>{7, 8}),
                                           b_.Assign(std::vector<float>{9})};
    session_.emplace(Start(g_));
    Init(*session_, g_);
    EXPECT_TRUE(saver_->Save(*session_, path_).ok());
    EXPECT_TRUE(session_->Run(Feeds{}, {}, change).ok());
  }

  absl::Status Restore(const std::string& path) {
    const absl::Status status = saver_->Restore(*session_, path);
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(Value(*session_, a_), ElementsAre(7, 8));
    EXPECT_THAT(Value(*session_, b_), ElementsAre(9));
    return status;
  }

  // Writes a checkpoint of these tensors.
  std::string Write(const std::vector<std::pair<std::string, Tensor>>& rows) {
    const auto writer = *BundleWriter::Create(path_ + "x");
    for (const auto& [name, tensor] : rows) EXPECT_TRUE(writer->Add(name, tensor).ok());
    EXPECT_TRUE(writer->Finish().ok());
    return path_ + "x";
  }

  const std::string path_;
  Graph g_;
  Variable a_, b_;
  std::optional<Saver> saver_;
  std::optional<Session> session_;
};

TEST_F(RestoreFails, OnADamagedShard) {
  for (const char* shard : {".data-00000-of-00002", ".data-00001-of-00002"}) {
    const std::string sound = ReadBytes(path_ + shard);
    std::string bytes = sound;
    bytes[1] ^= 1;
    WriteBytes(path_ + shard, bytes);
    const absl::Status status = Restore(path_);
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr(shard));
    ASSERT_TRUE(Files().Remove(path_ + shard).ok());
    EXPECT_TRUE(absl::IsNotFound(Restore(path_)));
    WriteBytes(path_ + shard, sound);
  }
  EXPECT_TRUE(saver_->Restore(*session_, path_).ok());
  EXPECT_THAT(Value(*session_, a_), ElementsAre(1, 2));
}

TEST_F(RestoreFails, OnAMissingKey) {
  const absl::Status status = Restore(Write({{"a", Tensor::Vector<float>({1, 2})}}));
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(status.message(), HasSubstr("Key b not found in checkpoint"));
}

TEST_F(RestoreFails, OnAnotherShape) {
  const absl::Status status = Restore(
      Write({{"a", Tensor::Vector<float>({1, 2})}, {"b", Tensor::Vector<float>({1, 2, 3})}}));
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(status.message(), HasSubstr("lhs shape= [1] rhs shape= [3]"));
  EXPECT_THAT(status.message(), HasSubstr("variable b"));
}

TEST_F(RestoreFails, OnAnotherDtype) {
  const absl::Status status =
      Restore(Write({{"a", Tensor::Vector<float>({1, 2})}, {"b", Tensor::Vector<double>({1})}}));
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(
      status.message(),
      HasSubstr("tensor_name = b; expected dtype float does not equal original dtype double"));
}

TEST_F(RestoreFails, WithoutACheckpoint) {
  EXPECT_TRUE(absl::IsNotFound(Restore(path_ + "none")));
  EXPECT_TRUE(absl::IsInvalidArgument(Restore("")));
}

TEST(Saver, ReshapeNeedsTheElementCountOnly) {
  const std::string path = MakeTempDirectory("saver") + "/m";
  for (const bool resource : {false, true}) {
    Graph g({.use_resource = resource});
    const Variable v = MakeVariable(g, Tensor::Zeros(DT_FLOAT, Shape({2, 3})), {.name = "v"});
    Saver saver = MakeSaver(g, {.reshape = true});
    Session session = Start(g);
    for (const int64_t count : {6, 5}) {
      const auto writer = *BundleWriter::Create(path);
      Tensor stored(DT_FLOAT, Shape({count}));
      for (int64_t i = 0; i < count; ++i) stored.data<float>()[i] = static_cast<float>(i);
      ASSERT_TRUE(writer->Add("v", stored).ok());
      ASSERT_TRUE(writer->Finish().ok());
      const absl::Status status = saver.Restore(session, path);
      EXPECT_EQ(status.ok(), count == 6) << status;
      EXPECT_THAT(Value(session, v), ElementsAre(0, 1, 2, 3, 4, 5));
    }
  }
}

// ---- Retention of checkpoints.

class Retention : public ::testing::Test {
 protected:
  Retention() : dir_(MakeTempDirectory("saver")) { v_ = Var(g_, "v", {1}); }

  void SaveSteps(const SaverOptions& options, int steps) {
    saver_.emplace(MakeSaver(g_, options));
    Session session = Start(g_);
    Init(session, g_);
    for (int step = 1; step <= steps; ++step) {
      const auto saved = saver_->Save(session, dir_ + "/m", {.global_step = step});
      ASSERT_TRUE(saved.ok()) << saved.status();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  std::vector<std::string> Indexes() {
    std::vector<std::string> found;
    const std::vector<std::string> names = *Files().List(dir_);
    for (const std::string& name : names) {
      if (name.find(".index") != std::string::npos) found.push_back(name);
    }
    return found;
  }

  const std::string dir_;
  Graph g_;
  Variable v_;
  std::optional<Saver> saver_;
};

TEST_F(Retention, TheOldestAreRemovedWithAllTheirFiles) {
  SaveSteps({.max_to_keep = 2}, 4);
  EXPECT_THAT(*Files().List(dir_),
              ElementsAre("checkpoint", "m-3.data-00000-of-00001", "m-3.index", "m-3.meta",
                          "m-4.data-00000-of-00001", "m-4.index", "m-4.meta"));
  const auto state = ReadCheckpointState(dir_);
  EXPECT_EQ(state->model_checkpoint_path, dir_ + "/m-4");
  EXPECT_THAT(state->all_model_checkpoint_paths, ElementsAre(dir_ + "/m-3", dir_ + "/m-4"));
  EXPECT_THAT(saver_->last_checkpoints(), ElementsAre(dir_ + "/m-3", dir_ + "/m-4"));
  EXPECT_EQ(*LatestCheckpoint(dir_), dir_ + "/m-4");
}

TEST_F(Retention, ZeroKeepsAllAndListsThem) {
  SaveSteps({.max_to_keep = 0}, 7);
  EXPECT_EQ(Indexes().size(), 7u);
  EXPECT_EQ(ReadCheckpointState(dir_)->all_model_checkpoint_paths.size(), 7u);
}

TEST_F(Retention, OneOfEachPeriodStays) {
  SaveSteps({.max_to_keep = 1, .keep_checkpoint_every_n_hours = 1e-9}, 4);
  EXPECT_EQ(Indexes().size(), 4u) << "every one is the first of its period";
  EXPECT_THAT(saver_->last_checkpoints(), ElementsAre(dir_ + "/m-4"));
}

TEST_F(Retention, PinnedOnesStay) {
  ASSERT_TRUE(WriteFileAtomically(PinPath(dir_ + "/m-1"), "best\n").ok());
  SaveSteps({.max_to_keep = 1}, 3);
  EXPECT_THAT(Indexes(), ElementsAre("m-1.index", "m-3.index"));
  EXPECT_THAT(saver_->last_checkpoints(), ElementsAre(dir_ + "/m-3"));
}

TEST_F(Retention, StepsArePaddedAndPathsRelativeIfRequested) {
  SaveSteps({.pad_step_number = true, .save_relative_paths = true}, 2);
  EXPECT_THAT(Indexes(), ElementsAre("m-00000001.index", "m-00000002.index"));
  EXPECT_THAT(ReadBytes(dir_ + "/checkpoint"),
              HasSubstr("model_checkpoint_path: \"m-00000002\"\n"));
  EXPECT_EQ(*LatestCheckpoint(dir_), dir_ + "/m-00000002");
}

TEST_F(Retention, ANewProcessManagesExistingCheckpoints) {
  SaveSteps({.max_to_keep = 2}, 2);
  Session session = Start(g_);
  Init(session, g_);
  Saver next = Saver::FromDef(saver_->def());
  next.RecoverLastCheckpoints(ReadCheckpointState(dir_)->all_model_checkpoint_paths);
  ASSERT_TRUE(next.Save(session, dir_ + "/m", {.global_step = 3}).ok());
  EXPECT_THAT(Indexes(), ElementsAre("m-2.index", "m-3.index"));
}

TEST_F(Retention, SavingOverACheckpointCountsOnce) {
  saver_.emplace(MakeSaver(g_));
  Session session = Start(g_);
  Init(session, g_);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(saver_->Save(session, dir_ + "/m").ok());
  EXPECT_THAT(saver_->last_checkpoints(), ElementsAre(dir_ + "/m"));
}

// ---- Meta graphs and SavedModels.

TEST(MetaGraph, AModelRoundTripsWithItsCollectionsAndSaver) {
  const std::string path = MakeTempDirectory("saver") + "/m";
  {
    Graph g;
    const Variable v = Var(g, "v", {1, 2});
    const Output y = Multiply(v, 2.f, "y");
    g.AddToCollection("losses", y);
    g.AddToCollection("train_op", Operation(y));
    g.AddToCollection("numbers", int64_t{7});
    g.AddToCollection("words", std::string("seven"));
    g.AddToCollection("mixed", int64_t{7});
    g.AddToCollection("mixed", std::string("seven"));
    Saver saver = MakeSaver(g);
    Session session = Start(g);
    Init(session, g);
    ASSERT_TRUE(saver.Save(session, path).ok());
  }
  for (const std::string scope : {"", "in"}) {
    const std::string prefix = scope.empty() ? "" : scope + "/";
    Graph g;
    const auto meta = ImportMetaGraphFile(g, path + ".meta", {.import_scope = scope});
    ASSERT_TRUE(meta.ok()) << meta.status();
    ASSERT_EQ(GlobalVariables(g).size(), 1u);
    ASSERT_EQ(TrainableVariables(g).size(), 1u);
    EXPECT_EQ(GlobalVariables(g)[0].name(), prefix + "v:0");
    EXPECT_EQ(g.collection_as<Output>("losses")[0].name(), prefix + "y:0");
    EXPECT_EQ(g.collection_as<Operation>("train_op")[0].name(), prefix + "y");
    EXPECT_EQ(g.collection_as<int64_t>("numbers"), std::vector<int64_t>{7});
    EXPECT_EQ(g.collection_as<std::string>("words"), std::vector<std::string>{"seven"});
    EXPECT_TRUE(g.collection("mixed").empty());
    ASSERT_TRUE(meta->saver.has_value());
    Session session = Start(g);
    ASSERT_TRUE(Saver::FromDef(*meta->saver).Restore(session, path).ok());
    const auto y = session.Run({}, {prefix + "y:0"}, {});
    ASSERT_TRUE(y.ok()) << y.status();
    EXPECT_THAT((*y)[0].flat<float>(), ElementsAre(2, 4));
  }
}

TEST(MetaGraph, DamagedFilesAreDataLoss) {
  const std::string path = MakeTempDirectory("saver") + "/m.meta";
  WriteBytes(path, "\xff\xff\xff nonsense");
  Graph g;
  EXPECT_TRUE(absl::IsDataLoss(ImportMetaGraphFile(g, path).status()));
  EXPECT_TRUE(absl::IsNotFound(ImportMetaGraphFile(g, path + "x").status()));
}

TEST(MetaGraph, TensorFlowsModelIsReadAndRestored) {
  Graph g;
  const auto meta = ImportMetaGraphFile(g, absl::StrCat(kGolden, "tf_model.meta"));
  ASSERT_TRUE(meta.ok()) << meta.status();
  EXPECT_EQ(GlobalVariables(g).size(), 2u);
  EXPECT_EQ(g.collection_as<int64_t>("numbers"), std::vector<int64_t>{7});
  Session session = Start(g);
  ASSERT_TRUE(
      Saver::FromDef(*meta->saver).Restore(session, absl::StrCat(kGolden, "tf_model")).ok());
  const auto y = session.Run({{"x:0", Tensor::Of<float>(Shape({1, 2}), {10, 100})}}, {"y:0"}, {});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_THAT((*y)[0].flat<float>(), ElementsAre(210.5f));
}

TEST(SavedModel, IsLoadedByItsTagsAndRunByItsSignature) {
  const std::string dir = absl::StrCat(kGolden, "saved_model");
  const auto model = LoadSavedModel(dir, {"serve"});
  ASSERT_TRUE(model.ok()) << model.status();
  const Signature& serving = model->meta.signatures.at("serving_default");
  EXPECT_EQ(serving.method_name, "tensorflow/serving/predict");
  const auto y =
      model->session->Run({{serving.inputs.at("x"), Tensor::Of<float>(Shape({1, 2}), {10, 100})}},
                          {serving.outputs.at("y")}, {});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_THAT((*y)[0].flat<float>(), ElementsAre(210.5f));
  EXPECT_TRUE(LoadSavedModel(dir, {}).ok());
  const absl::Status tags = LoadSavedModel(dir, {"train"}).status();
  EXPECT_TRUE(absl::IsNotFound(tags));
  EXPECT_THAT(tags.message(), HasSubstr("{ serve }"));
  EXPECT_TRUE(absl::IsNotFound(LoadSavedModel("/none", {}).status()));
}

}  // namespace
}  // namespace weir
