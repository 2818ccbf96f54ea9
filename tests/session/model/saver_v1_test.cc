#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/core/io/bundle.h"
#include "weir/core/io/file.h"
#include "weir/ops/data/io.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/session/model/meta_graph.h"
#include "weir/session/model/saver.h"
#include "weir/tests/io/test_files.h"
#include "weir/tests/session/lib/saver_testing.h"

// Savers that write checkpoints in format V1. saver_test.cc compares the nodes of a new one with
// TensorFlow's.
namespace weir {
namespace {

using ::testing::ElementsAre;
using testing::Init;
using testing::MakeTempDirectory;
using testing::Start;
using testing::Value;
using testing::Var;

// Also for the meta graph: a saver imported from it still writes V1.
TEST(SaverV1, KeepsAndRestoresItsCheckpoints) {
  for (const bool sharded : {false, true}) {
    const std::string dir = MakeTempDirectory("saver");
    {
      Graph g;
      Var(g, "a", {1, 2});
      const DeviceScope cpu(g, "/cpu:0");
      Var(g, "b", {3});
      Saver saver = *Saver::Create(g, {.max_to_keep = 2, .sharded = sharded, .write_version = 1});
      Session session = Start(g);
      Init(session, g);
      for (const int64_t step : {1, 2, 3}) {
        const auto saved = saver.Save(session, dir + "/m", {.global_step = step});
        ASSERT_TRUE(saved.ok()) << saved.status();
        EXPECT_EQ(*saved, absl::StrCat(dir, "/m-", step, sharded ? "-\?\?\?\?\?-of-00002" : ""));
      }
    }
    const std::vector<std::string> names = *Files().List(dir);
    if (sharded) {
      EXPECT_THAT(names,
                  ElementsAre("checkpoint", "m-2-00000-of-00002", "m-2-00001-of-00002", "m-2.meta",
                              "m-3-00000-of-00002", "m-3-00001-of-00002", "m-3.meta"));
    } else {
      EXPECT_THAT(names, ElementsAre("checkpoint", "m-2", "m-2.meta", "m-3", "m-3.meta"));
    }
    Graph g;
    const auto imported = ImportMetaGraphFile(g, dir + "/m-3.meta");
    ASSERT_TRUE(imported.ok()) << imported.status();
    Saver saver = Saver::FromDef(*imported->saver);
    EXPECT_EQ(saver.def().version, 1);
    Session session = Start(g);
    ASSERT_TRUE(saver.Restore(session, *LatestCheckpoint(dir)).ok());
    const auto again = saver.Save(session, dir + "/n");
    ASSERT_TRUE(again.ok()) << again.status();
    const auto reader = CheckpointReader::Open(*again);
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_TRUE(IdenticalTensors(*(*reader)->Read("a"), Tensor::Vector<float>({1, 2})));
    EXPECT_TRUE(IdenticalTensors(*(*reader)->Read("b"), Tensor::Vector<float>({3})));
  }
}

// The nodes of savers before 1.0: a reading node per variable.
TEST(SaverV1, NodesOfTheFirstTensorFlowSaveAndRestore) {
  const std::string path = MakeTempDirectory("saver") + "/m";
  Graph g({.use_resource = false});
  const Variable a = Var(g, "a", {1, 2}), b = Var(g, "b", {3});
  const Operation change = a.Assign(std::vector<float>{5, 6});
  const std::vector<std::string> names = {"a", "b"}, whole = {"", ""};
  const Output filename = Const(g, "model", "save/Const");
  const Operation save =
      SaveSlices(filename, Const(g, names), Const(g, whole), {a.handle(), b.handle()});
  const Output saved = WithDependencies({save}, filename, "save/control_dependency");
  std::vector<Operation> assigns;
  for (const Variable& v : {a, b}) {
    const Output value = AddOp("RestoreSlice", {filename, Const(g, v.op_name()), Const(g, "")},
                               {{"dt", DT_FLOAT}, {"preferred_shard", 0}});
    assigns.push_back(AddOp("Assign", {v.handle(), value}));
  }
  const Operation restored = Group(g, assigns, "save/restore_all");
  ASSERT_TRUE(g.status().ok()) << g.status();
  Saver saver = Saver::FromDef({.filename_tensor_name = filename.name(),
                                .save_tensor_name = saved.name(),
                                .restore_op_name = restored.name(),
                                .version = 0});
  Session session = Start(g);
  Init(session, g);
  ASSERT_TRUE(saver.Save(session, path).ok());
  ASSERT_TRUE(session.Run(change).ok());
  ASSERT_TRUE(saver.Restore(session, path).ok());
  EXPECT_THAT(Value(session, a), ElementsAre(1, 2));
  EXPECT_TRUE(RemoveCheckpoint(path, saver.def().version).ok());
  EXPECT_FALSE(Files().Exists(path));
}

}  // namespace
}  // namespace weir
