// Models of TensorFlow 2's objects, read again by Weir. tests/interop/object_export_test.py loads
// such models with TensorFlow.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/bundle.h"
#include "weir/ops/containers/table.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/proto/meta_graph.pb.h"
#include "weir/session/model/object_names.h"
#include "weir/session/model/saved_model.h"
#include "weir/tests/io/test_files.h"
#include "weir/tests/session/lib/saver_testing.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Init;
using testing::MakeTempDirectory;
using ::testing::Pair;
using testing::Start;

// y = w x + b with the variables "net/w", "net/b", which is not trained, and "net/w/slot", whose
// name has that of another variable as its scope.
class ObjectExport : public ::testing::TestWithParam<bool> {
 protected:
  ObjectExport() : directory_(MakeTempDirectory("objects") + "/1") {
    w_ = Make("net/w", 2, true);
    b_ = Make("net/b", 3, false);
    slot_ = Make("net/w/slot", 5, false);
    y_ = Add(Multiply(x_, w_.value()), b_.value(), "y");
  }

  Variable Make(const std::string& name, float value, bool trainable) {
    return MakeVariable(graph_, Tensor::Vector<float>({value, value}),
                        {.name = name, .trainable = trainable, .use_resource = GetParam()});
  }

  absl::Status Write(const std::map<std::string, Signature>& signatures) {
    Session session = Start(graph_);
    Init(session, graph_);
    return WriteSavedModel(session, graph_, directory_, signatures, {.objects = true});
  }

  std::map<std::string, Signature> Affine() const {
    return {{"affine", PredictSignature({{"x", x_}}, {{"y", y_}})}};
  }

  const std::string directory_;
  Graph graph_;
  Output x_ = Placeholder(graph_, DT_FLOAT, {2}, "x");
  Variable w_, b_, slot_;
  Output y_;
};

INSTANTIATE_TEST_SUITE_P(Variables, ObjectExport, ::testing::Bool());

TEST_P(ObjectExport, IsLoadedWithItsSignatureAndItsMethod) {
  ASSERT_TRUE(Write(Affine()).ok());
  auto model = LoadSavedModel(directory_, {"serve"});
  ASSERT_TRUE(model.ok()) << model.status();
  Signature called = model->meta.signatures.at("affine");
  for (const bool as_method : {false, true}) {
    if (as_method) {
      ASSERT_EQ(model->functions.size(), 1u);
      EXPECT_EQ(model->functions[0].name, "affine");
      const absl::Status added = model->session->Extend([&]() -> absl::Status {
        WEIR_ASSIGN_OR_RETURN(called, CallSavedFunction(*model->graph, model->functions[0]));
        return absl::OkStatus();
      });
      ASSERT_TRUE(added.ok()) << added;
    }
    const auto y = model->session->Run({{called.inputs.at("x"), Tensor::Vector<float>({1, 2})}},
                                       {called.outputs.at("y")}, {});
    ASSERT_TRUE(y.ok()) << y.status();
    EXPECT_THAT((*y)[0].flat<float>(), ElementsAre(5, 7));
  }
  EXPECT_THAT(model->trainable, ElementsAre("net/w"));
}

TEST_P(ObjectExport, NamesVariablesByTheirPaths) {
  ASSERT_TRUE(Write(Affine()).ok());
  const auto reader = CheckpointReader::Open(directory_ + "/variables/variables");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_THAT(*FullNamesOf(**reader),
              ElementsAre(Pair("net/b/.ATTRIBUTES/VARIABLE_VALUE", "net/b"),
                          Pair("net/w/.ATTRIBUTES/VARIABLE_VALUE", "net/w"),
                          Pair("variables/2/.ATTRIBUTES/VARIABLE_VALUE", "net/w/slot")));
  EXPECT_THAT((*reader)->Read("variables/2/.ATTRIBUTES/VARIABLE_VALUE")->flat<float>(),
              ElementsAre(5, 5));
}

TEST_P(ObjectExport, OfAMissingInputNamesThePlaceholder) {
  const absl::Status status = Write({{"f", PredictSignature({}, {{"y", y_}})}});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("depends on x (Placeholder), which is not one of its inputs"));
  EXPECT_FALSE(Files().Exists(directory_));
}

TEST_P(ObjectExport, OfAnIntermediateInputLeavesOutWhatIsBeforeIt) {
  const Output product = y_.node->input(0);
  ASSERT_TRUE(Write({{"add", PredictSignature({{"product", product}}, {{"y", y_}})}}).ok());
  auto model = LoadSavedModel(directory_, {});
  ASSERT_TRUE(model.ok()) << model.status();
  const Signature& add = model->meta.signatures.at("add");
  const auto y = model->session->Run({{add.inputs.at("product"), Tensor::Vector<float>({1, 2})}},
                                     {add.outputs.at("y")}, {});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_THAT((*y)[0].flat<float>(), ElementsAre(4, 5));
}

TEST_P(ObjectExport, OfAWriteKeepsItForResourceVariablesOnly) {
  const Output sum = w_.AssignAdd(x_);
  const absl::Status status = Write({{"add", PredictSignature({{"x", x_}}, {{"sum", sum}})}});
  if (!GetParam()) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("writes to a reference variable"));
    return;
  }
  ASSERT_TRUE(status.ok()) << status;
  auto model = LoadSavedModel(directory_, {});
  ASSERT_TRUE(model.ok()) << model.status();
  const Signature& add = model->meta.signatures.at("add");
  for (const float value : {3.f, 4.f}) {
    const auto got = model->session->Run({{add.inputs.at("x"), Tensor::Vector<float>({1, 1})}},
                                         {add.outputs.at("sum")}, {});
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_THAT((*got)[0].flat<float>(), ElementsAre(value, value));
  }
}

TEST_P(ObjectExport, WithoutAnOutputIsRejected) {
  const absl::Status status = Write({{"f", Signature{.inputs = {{"x", "x:0"}}}}});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("signature 'f' has no output"));
}

TEST(ObjectExportOfTables, KeepsTheContentsOfMutableTables) {
  const std::string directory = MakeTempDirectory("objects_of_tables") + "/1";
  Graph graph;
  const Output words = Placeholder(graph, DT_STRING, {-1}, "words");
  const MutableHashTable table(DT_STRING, Const(graph, int64_t{-1}), "rows");
  const Output rows = Identity(table.Lookup(words), "found");
  const Operation insert =
      table.Insert(Const<std::string>(graph, {"one", "six"}), Const<int64_t>(graph, {1, 6}));
  {
    Session session = Start(graph);
    ASSERT_TRUE(session.Run(insert).ok());
    const absl::Status written = WriteSavedModel(
        session, graph, directory,
        {{"look", PredictSignature({{"words", words}}, {{"rows", rows}})}}, {.objects = true});
    ASSERT_TRUE(written.ok()) << written;
  }
  const auto reader = CheckpointReader::Open(directory + "/variables/variables");
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_THAT((*reader)->Read("tables/0/.ATTRIBUTES/table-keys")->flat<std::string>(),
              ElementsAre("one", "six"));
  EXPECT_THAT((*reader)->Read("tables/0/.ATTRIBUTES/table-values")->flat<int64_t>(),
              ElementsAre(1, 6));
  auto model = LoadSavedModel(directory, {"serve"});
  ASSERT_TRUE(model.ok()) << model.status();
  const Signature& look = model->meta.signatures.at("look");
  const auto got =
      model->session->Run({{look.inputs.at("words"), Tensor::Vector<std::string>({"six", "two"})}},
                          {look.outputs.at("rows")}, {});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_THAT((*got)[0].flat<int64_t>(), ElementsAre(6, -1));
}

}  // namespace
}  // namespace weir
