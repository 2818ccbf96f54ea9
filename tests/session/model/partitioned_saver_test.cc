// Checkpoints of partitioned variables: any partitioning can be restored into any other.

#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/core/io/bundle.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/train/optimizers.h"
#include "weir/session/model/meta_graph.h"
#include "weir/session/model/saver.h"
#include "weir/tests/io/test_files.h"

namespace weir {
namespace {

using ::testing::FloatNear;
using ::testing::HasSubstr;
using testing::MakeTempDirectory;
using ::testing::Pointwise;
using testing::ReadBytes;

constexpr char kGolden[] = "tests/session/golden/tf_parts";

// The values of the checkpoint that TensorFlow wrote (golden/make_saver_goldens.py).
Tensor Rows() {
  Tensor t(DT_FLOAT, {7, 3});
  for (int i = 0; i < 21; ++i) t.data<float>()[i] = static_cast<float>(i) / 8;
  return t;
}
Tensor Columns() {
  Tensor t(DT_DOUBLE, {2, 7});
  for (int i = 0; i < 14; ++i) t.data<double>()[i] = i * 3;
  return t;
}

// Both variables of the checkpoint, with this many parts; 0: unpartitioned.
struct Model {
  Model(int64_t row_parts, int64_t column_parts, bool resource, bool ones = false)
      : graph({.use_resource = resource}) {
    const auto make = [&](const char* name, const Tensor& value, int64_t parts, int axis) {
      VariableOptions options = {.initializer = ones ? Ones() : Initializer(value),
                                 .dtype = value.dtype()};
      if (ones || parts > 0) options.shape = value.shape();
      if (parts > 0) options.partitioner = FixedSizePartitioner(parts, axis);
      return GetVariable(graph, name, options);
    };
    rows = make("rows", Rows(), row_parts, 0);
    columns = make("columns", Columns(), column_parts, 1);
  }
  Session Start() {
    absl::StatusOr<Session> session = Session::Create(graph);
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }
  Saver MakeSaver(const SaverOptions& options = {}) {
    absl::StatusOr<Saver> saver = Saver::Create(graph, options);
    EXPECT_TRUE(saver.ok()) << saver.status();
    return *std::move(saver);
  }
  void ExpectRestored(Session& session) const {
    const auto values = session.Run({rows.value(), columns.value()});
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_TRUE(IdenticalTensors((*values)[0], Rows()));
    EXPECT_TRUE(IdenticalTensors((*values)[1], Columns()));
  }

  Graph graph;
  Variable rows, columns;
};

// Saves the values in four and three parts.
std::string SaveParts(bool resource, const SaverOptions& options = {}) {
  const std::string path = MakeTempDirectory("parts") + "/m";
  Model model(4, 3, resource);
  Saver saver = model.MakeSaver(options);
  Session session = model.Start();
  EXPECT_TRUE(session.Run(GlobalVariablesInitializer(model.graph)).ok());
  const auto saved = saver.Save(session, path);
  EXPECT_TRUE(saved.ok()) << saved.status();
  return path;
}

class PartitionedSaver : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Kinds, PartitionedSaver, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Resource" : "Ref"; });

TEST_P(PartitionedSaver, AnyDivisionIsReadIntoAnyOtherBitForBit) {
  for (const bool sharded : {false, true}) {
    const std::string path = SaveParts(GetParam(), {.sharded = sharded});
    for (const int64_t parts : {0, 1, 2, 3, 4, 7}) {
      Model model(parts, parts, GetParam(), /*ones=*/true);
      Saver saver = model.MakeSaver();
      Session session = model.Start();
      const absl::Status status = saver.Restore(session, path);
      ASSERT_TRUE(status.ok()) << status;
      model.ExpectRestored(session);
    }
  }
}

TEST_P(PartitionedSaver, UnpartitionedVariablesAreRestoredIntoParts) {
  const std::string path = MakeTempDirectory("parts") + "/m";
  {
    Model model(0, 0, GetParam());
    Saver saver = model.MakeSaver();
    Session session = model.Start();
    ASSERT_TRUE(session.Run(GlobalVariablesInitializer(model.graph)).ok());
    ASSERT_TRUE(saver.Save(session, path).ok());
  }
  Model model(4, 2, GetParam(), /*ones=*/true);
  Saver saver = model.MakeSaver();
  Session session = model.Start();
  ASSERT_TRUE(saver.Restore(session, path).ok());
  model.ExpectRestored(session);
}

TEST_P(PartitionedSaver, WritesTheBytesOfTensorFlow) {
  const std::string path = SaveParts(GetParam());
  for (const char* suffix : {".index", ".data-00000-of-00001"})
    EXPECT_EQ(ReadBytes(path + suffix), ReadBytes(absl::StrCat(kGolden, suffix))) << suffix;
  EXPECT_TRUE(VerifyBundle(path)->problems.empty());
}

TEST_P(PartitionedSaver, RestoresTensorFlowsCheckpoints) {
  for (const int64_t parts : {0, 1, 2, 7}) {
    Model model(parts, parts, GetParam(), /*ones=*/true);
    Saver saver = model.MakeSaver();
    Session session = model.Start();
    const absl::Status status = saver.Restore(session, kGolden);
    ASSERT_TRUE(status.ok()) << status;
    model.ExpectRestored(session);
  }
}

TEST_P(PartitionedSaver, NameOfAMapCoversAllParts) {
  const std::string path = MakeTempDirectory("parts") + "/m";
  Model model(4, 0, GetParam());
  Saver saver = model.MakeSaver({.named = {{"renamed", model.rows}}});
  Session session = model.Start();
  ASSERT_TRUE(session.Run(GlobalVariablesInitializer(model.graph)).ok());
  ASSERT_TRUE(saver.Save(session, path).ok());
  const auto reader = CheckpointReader::Open(path);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_FALSE((*reader)->Find("rows").ok());
  ASSERT_TRUE((*reader)->Find("renamed").ok());
  EXPECT_EQ((*reader)->Find("renamed")->slices.size(), 4u);
  EXPECT_TRUE(IdenticalTensors(*(*reader)->Read("renamed"), Rows()));
  // A list of variables may contain the partitioned variable as a whole.
  Saver listed = model.MakeSaver({.variables = Variables{model.rows}});
  ASSERT_TRUE(listed.Save(session, path).ok());
  EXPECT_EQ((*CheckpointReader::Open(path))->Find("rows")->slices.size(), 4u);
}

TEST_P(PartitionedSaver, OtherFullShapeIsInvalidAndLeavesAllPartsAsTheyWere) {
  const std::string path = SaveParts(GetParam());
  Graph g({.use_resource = GetParam()});
  const Variable rows = GetVariable(
      g, "rows", {8, 3}, {.initializer = Ones(), .partitioner = FixedSizePartitioner(2)});
  Saver saver = *Saver::Create(g);
  Session session = *Session::Create(g);
  ASSERT_TRUE(session.Run(GlobalVariablesInitializer(g)).ok());
  const absl::Status status = saver.Restore(session, path);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("rows"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("[8,3]"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("[7,3]"));
  const auto values = session.Run({ReduceSum(rows)});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_EQ((*values)[0].scalar<float>(), 24);
}

TEST_P(PartitionedSaver, SlotsOfPartsAreSlicesToo) {
  const std::string path = MakeTempDirectory("parts") + "/m";
  const auto train = [](Model& model) {
    return Adam(0.5).Minimize(ReduceSum(model.rows * model.rows),
                              {.var_list = Variables{model.rows}});
  };
  Tensor want;
  {
    Model model(4, 0, GetParam());
    const Operation step = train(model);
    Saver saver = model.MakeSaver();
    Session session = model.Start();
    ASSERT_TRUE(session.Run(GlobalVariablesInitializer(model.graph)).ok());
    ASSERT_TRUE(session.Run(step).ok());
    ASSERT_TRUE(saver.Save(session, path).ok());
    ASSERT_TRUE(session.Run(step).ok());
    want = (*session.Run({model.rows.value()}))[0];
  }
  EXPECT_EQ((*CheckpointReader::Open(path))->Find("rows/Adam_1")->slices.size(), 4u);
  for (const int64_t parts : {0, 3}) {  // training continues with identical results
    Model model(parts, 0, GetParam(), /*ones=*/true);
    const Operation step = train(model);
    Saver saver = model.MakeSaver();
    Session session = model.Start();
    const absl::Status status = saver.Restore(session, path);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(session.Run(step).ok());
    const Tensor got = (*session.Run({model.rows.value()}))[0];
    EXPECT_THAT(got.flat<float>(), Pointwise(FloatNear(1e-6f), want.flat<float>())) << parts;
  }
}

TEST_P(PartitionedSaver, ImportedGraphsStillSaveSlices) {
  const std::string path = MakeTempDirectory("parts") + "/m";
  {
    Model model(4, 3, GetParam());
    ASSERT_TRUE(WriteMetaGraph(model.graph, path + ".meta").ok());
  }
  for (const char* scope : {"", "copy"}) {
    Graph g;
    ASSERT_TRUE(ImportMetaGraphFile(g, path + ".meta", {.import_scope = scope}).ok());
    Saver saver = *Saver::Create(g);
    Session session = *Session::Create(g);
    ASSERT_TRUE(session.Run(GlobalVariablesInitializer(g)).ok());
    ASSERT_TRUE(saver.Save(session, path).ok());
    const auto reader = CheckpointReader::Open(path);
    ASSERT_TRUE(reader.ok()) << reader.status();
    const std::string name = absl::StrCat(scope, *scope == 0 ? "" : "/", "rows");
    ASSERT_TRUE((*reader)->Find(name).ok()) << name;
    EXPECT_EQ((*reader)->Find(name)->slices.size(), 4u);
    EXPECT_TRUE(IdenticalTensors(*(*reader)->Read(name), Rows()));
  }
}

}  // namespace
}  // namespace weir
