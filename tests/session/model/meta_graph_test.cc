// Meta graphs: parts of graphs, scopes, and models that resume training from their collections
// alone.

#include "weir/session/model/meta_graph.h"

#include <sstream>

#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/core/io/file.h"
#include "weir/core/io/graph_io.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/proto/control_flow.pb.h"
#include "weir/proto/meta_graph.pb.h"
#include "weir/proto/tensor.pb.h"
#include "weir/session/model/saver.h"
#include "weir/tests/io/test_files.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MakeTempDirectory;
using testing::ReadBytes;
using ::testing::SizeIs;

constexpr char kGolden[] = "tests/session/golden/";

proto::MetaGraphDef Golden(const std::string& name) {
  proto::MetaGraphDef def;
  EXPECT_TRUE(def.ParseFromString(ReadBytes(kGolden + name)));
  return def;
}

// ---- A model of TensorFlow 1's, described by its collections.

// As make_training_goldens.py creates them.
std::pair<Tensor, Tensor> Points() {
  Tensor x(DT_FLOAT, Shape({8, 3})), y(DT_FLOAT, Shape({8, 1}));
  for (int i = 0; i < 8; ++i) {
    float* row = x.data<float>() + 3 * i;
    for (int j = 0; j < 3; ++j) row[j] = static_cast<float>((3 * i + j) % 7 - 3) / 4;
    y.data<float>()[i] = row[0] * row[1] + row[2] / 2;
  }
  return {x, y};
}

class TrainedTest : public ::testing::TestWithParam<std::string> {};

TEST_P(TrainedTest, TrainsOnByItsCollections) {
  Graph g;
  const auto meta =
      ImportMetaGraphFile(g, absl::StrCat(kGolden, "trained.meta"), {.import_scope = GetParam()});
  ASSERT_TRUE(meta.ok()) << meta.status();
  EXPECT_EQ(meta->scope, GetParam());
  const Outputs inputs = g.collection_as<Output>("inputs");
  const Outputs losses = g.collection_as<Output>("losses");
  const std::vector<Operation> train = g.collection_as<Operation>("train_op");
  ASSERT_THAT(inputs, SizeIs(2));
  ASSERT_THAT(losses, SizeIs(1));
  ASSERT_THAT(train, SizeIs(1));
  const auto savers = g.collection_as<std::shared_ptr<CollectionObject>>("savers");
  ASSERT_THAT(savers, SizeIs(1));
  Session session = *Session::Create(g);
  Saver saver = Saver::FromDef(dynamic_cast<const SaverItem&>(*savers[0]).def);
  ASSERT_TRUE(saver.Restore(session, absl::StrCat(kGolden, "trained")).ok());
  const auto [x, y] = Points();
  std::istringstream golden(ReadBytes(absl::StrCat(kGolden, "trained_losses.txt")));
  for (int i = 0; i < 5; ++i) {
    const auto out = session.Run({{inputs[0], x}, {inputs[1], y}}, losses, train);
    ASSERT_TRUE(out.ok()) << out.status();
    float expected = -1;
    golden >> expected;
    EXPECT_NEAR((*out)[0].scalar<float>(), expected, 1e-6) << "step " << i;
  }
  const auto step = session.Run({GetGlobalStep(g).value()});
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ((*step)[0].scalar<int64_t>(), 8);
  EXPECT_EQ(MovingAverageVariables(g).size(), 1u);
}

TEST_P(TrainedTest, RestartsFromItsInitializer) {
  Graph g;
  ASSERT_TRUE(
      ImportMetaGraphFile(g, absl::StrCat(kGolden, "trained.meta"), {.import_scope = GetParam()})
          .ok());
  Session session = *Session::Create(g);
  EXPECT_TRUE(session.Run(g.collection_as<Operation>("init_op").at(0)).ok());
  const auto missing = session.Run({g.collection_as<Output>("ready_op").at(0)});
  ASSERT_TRUE(missing.ok()) << missing.status();
  EXPECT_EQ((*missing)[0].num_elements(), 0);
}

INSTANTIATE_TEST_SUITE_P(Scopes, TrainedTest, ::testing::Values("", "model"),
                         [](const auto& info) { return info.param.empty() ? "Root" : info.param; });

TEST(MetaGraph, TwoImportsUnderOneScopeDoNotMeet) {
  Graph g;
  const std::string path = absl::StrCat(kGolden, "tf_model.meta");
  const NameScope outer(g, "outer");
  const auto first = ImportMetaGraphFile(g, path, {.import_scope = "m"}),
             second = ImportMetaGraphFile(g, path, {.import_scope = "m"});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(first->scope, "outer/m");
  EXPECT_EQ(second->scope, "outer/m_1");
  EXPECT_EQ(second->saver->restore_op_name, "outer/m_1/save/restore_all");
  EXPECT_EQ(GlobalVariables(g).size(), 4u);
  EXPECT_TRUE(
      absl::IsAlreadyExists(ImportMetaGraphFile(g, path, {.import_scope = "outer/m/"}).status()));
}

// ---- Part of a graph.

// The program of make_training_goldens.py.
void BuildScoped(Graph& g) {
  const Output x = Placeholder(g, DT_FLOAT, {-1, 3}, "x");
  const Operation ready = NoOp(g, "ready");
  Output h;
  {
    const VariableScope scope(g, "hidden");
    const Variable w = GetVariable(g, "w", Shape({3, 2}),
                                   {.initializer = Zeros(), .use_resource = false}),
                   b = GetVariable(g, "b", Shape({2}),
                                   {.initializer = Zeros(), .use_resource = true});
    const ControlDependencies after(g, {ready});
    const DeviceScope cpu(g, "/cpu:0");
    const Output xw = MatMul(x, w, {.name = "xw"});
    const NameScope name(g, "h");
    h = AddOp("AddV2", {xw, b.value()}, {}, name.name());
  }
  const Output out = Identity(h, "out");
  for (const Output& each : {h, out}) g.AddToCollection("activations", each);
  g.AddToCollection("numbers", int64_t{7});
  ASSERT_TRUE(g.status().ok()) << g.status();
}

TEST(MetaGraph, APartOfAGraphIsWrittenAsTensorFlowDoes) {
  Graph g;
  BuildScoped(g);
  proto::MetaGraphDef ours, theirs = Golden("scoped.meta");
  ExportMetaGraph(g, {.clear_devices = true, .export_scope = "hidden"}, &ours);
  // TensorFlow does not mark control inputs as unbound, which an import needs to know.
  auto* unbound = ours.mutable_collection_def()->at("unbound_inputs").mutable_bytes_list();
  EXPECT_THAT(unbound->value(), ElementsAre("$unbound_inputs_x", "^$unbound_inputs_ready"));
  unbound->mutable_value()->RemoveLast();
  for (proto::MetaGraphDef* def : {&ours, &theirs}) {
    def->clear_meta_info_def();
    def->mutable_graph_def()->clear_versions();
    for (auto& node : *def->mutable_graph_def()->mutable_node()) {
      node.mutable_attr()->erase("_output_shapes");
      if (node.op() != "Const") continue;
      proto::TensorProto* value = node.mutable_attr()->at("value").mutable_tensor();
      TensorToProto(*TensorFromProto(*value), value);
    }
  }
  std::string difference;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&difference);
  EXPECT_TRUE(differencer.Compare(theirs, ours)) << difference;
}

TEST(MetaGraph, APartOfAGraphIsPutElsewhere) {
  Graph g;
  const Output features = Const(g, Shape({1, 3}), {1.f, 2.f, 3.f}, "features");
  const Operation go = NoOp(g, "go");
  ImportMetaGraphOptions options{.import_scope = "copy"};
  const proto::MetaGraphDef def = Golden("scoped.meta");
  const absl::Status unbound = ImportMetaGraph(g, def, options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(unbound));
  EXPECT_THAT(unbound.message(),
              AllOf(HasSubstr("Graph contains unbound inputs: "), HasSubstr("$unbound_inputs_x")));
  options.input_map = {{"$unbound_inputs_x", features},
                       {"^$unbound_inputs_ready", Output(go.node)}};
  const auto meta = ImportMetaGraph(g, def, options);
  ASSERT_TRUE(meta.ok()) << meta.status();
  EXPECT_TRUE(g.collection("unbound_inputs").empty());
  const Outputs activations = g.collection_as<Output>("activations");
  ASSERT_THAT(activations, SizeIs(1));
  EXPECT_EQ(activations[0].name(), "copy/h:0");
  Session session = *Session::Create(g);
  ASSERT_TRUE(session.Run(GlobalVariablesInitializer(g)).ok());
  const auto out = session.Run(activations);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[0].shape(), Shape({1, 2}));
}

TEST(MetaGraph, AScopeRoundTripsWithItsSaverAndSignatures) {
  const std::string path = MakeTempDirectory("meta") + "/m";
  Graph g;
  SaverDef inner;
  {
    const NameScope scope(g, "net");
    const Variable v = MakeVariable(g, {1.f, 2.f}, {.name = "v"});
    Multiply(v, 2.f, "y");
    const absl::StatusOr<Saver> saver = Saver::Create(g, {.variables = Variables{v}});
    ASSERT_TRUE(saver.ok()) << saver.status();
    inner = saver->def();
  }
  MakeVariable(g, 1.f, {.name = "outside"});
  for (const SaverDef& def : {inner, Saver::Create(g)->def()}) {
    g.AddToCollection("savers",
                      std::shared_ptr<CollectionObject>(std::make_shared<SaverItem>(def)));
  }
  ASSERT_TRUE(WriteMetaGraph(g, path + ".meta",
                             {.saver = inner,
                              .signatures = {{"double", {{}, {{"y", "net/y:0"}}, "run"}}},
                              .export_scope = "net/"})
                  .ok());
  Graph copy;
  const auto meta = ImportMetaGraphFile(copy, path + ".meta", {.import_scope = "other"});
  ASSERT_TRUE(meta.ok()) << meta.status();
  EXPECT_EQ(meta->signatures.at("double").outputs.at("y"), "other/y:0");
  EXPECT_EQ(meta->saver->filename_tensor_name, "other/save/Const:0");
  EXPECT_THAT(copy.collection("savers"), SizeIs(1)) << "that of the scope";
  ASSERT_THAT(GlobalVariables(copy), SizeIs(1));
  EXPECT_EQ(GlobalVariables(copy)[0].name(), "other/v:0");

  Session source = *Session::Create(g), target = *Session::Create(copy);
  ASSERT_TRUE(source.Run(GlobalVariablesInitializer(g)).ok());
  ASSERT_TRUE(Saver::FromDef(inner).Save(source, path).ok());
  ASSERT_TRUE(Saver::FromDef(*meta->saver).Restore(target, path).ok())
      << "names in files do not change with the scope";
  const auto y = target.Run({}, {"other/y:0"}, {});
  ASSERT_TRUE(y.ok()) << y.status();
  EXPECT_THAT((*y)[0].flat<float>(), ElementsAre(2, 4));
}

// As TensorFlow writes them: only some collections have a proto type.
TEST(MetaGraph, VariablesOfACollectionWithoutAProtoTypeAreWrittenByName) {
  for (const bool use_resource : {false, true}) {
    Graph g(GraphOptions{.use_resource = use_resource});
    const Variable v = MakeVariable(g, 1.0, {.name = "w"});
    g.AddToCollection("mine", v);
    g.AddToCollection("metric_variables", v);
    proto::MetaGraphDef def;
    ExportMetaGraph(g, {}, &def);
    const auto& collections = def.collection_def();
    EXPECT_EQ(collections.at("mine").node_list().value(0), "w:0");
    EXPECT_EQ(collections.at("metric_variables").bytes_list().value_size(), 1);
    Graph copy;
    ASSERT_TRUE(ImportMetaGraph(copy, def).ok());
    EXPECT_EQ(copy.collection_as<Output>("mine").at(0).name(), "w:0");
    EXPECT_EQ(copy.collection_as<Variable>("metric_variables").at(0).name(), "w:0");
  }
}

TEST(MetaGraph, ACollectionWithAnInvalidElementIsDropped) {
  Graph g;
  g.AddToCollection("tensors", Output());
  g.AddToCollection("operations", Operation());
  g.AddToCollection("objects", std::shared_ptr<CollectionObject>());
  g.AddToCollection("kept", std::string("text"));
  proto::MetaGraphDef def;
  std::vector<std::string> dropped;
  ExportMetaGraph(g, {}, &def, &dropped);
  EXPECT_EQ(def.collection_def().size(), 1u);
  EXPECT_THAT(dropped, ::testing::ElementsAre("objects", "operations", "tensors"));
}

TEST(MetaGraph, ContextsOfControlFlowTakeTheNewNames) {
  proto::CondContextDef context;
  context.set_context_name("net/cond/cond_text");
  context.set_pred_name("net/cond/pred_id:0");
  context.mutable_values_def()->add_values("net/cond/Switch:1");
  (*context.mutable_values_def()->mutable_external_values())["net/x:0"] = "net/cond/Switch:1";
  context.add_nested_contexts()->mutable_while_ctxt()->set_context_name("net/cond/while");
  Graph g;
  const NameScope scope(g, "net");
  Const(g, 1.f, "x");
  g.AddToCollection("cond_context", context.SerializeAsString());
  g.AddToCollection("words", std::string("net/word"));
  proto::MetaGraphDef def;
  ExportMetaGraph(g, {.export_scope = "net"}, &def);
  Graph copy;
  ASSERT_TRUE(ImportMetaGraph(copy, def, {.import_scope = "a"}).ok());
  EXPECT_EQ(copy.collection_as<std::string>("words"), std::vector<std::string>{"net/word"});
  ASSERT_TRUE(context.ParseFromString(copy.collection_as<std::string>("cond_context").at(0)));
  EXPECT_EQ(context.context_name(), "a/cond/cond_text");
  EXPECT_EQ(context.pred_name(), "a/cond/pred_id:0");
  EXPECT_EQ(context.values_def().values(0), "a/cond/Switch:1");
  EXPECT_EQ(context.values_def().external_values().at("a/x:0"), "a/cond/Switch:1");
  EXPECT_EQ(context.nested_contexts(0).while_ctxt().context_name(), "a/cond/while");
  ExportMetaGraph(g, {.export_scope = "elsewhere"}, &def);
  EXPECT_EQ(def.collection_def().count("cond_context"), 0u);
}

}  // namespace
}  // namespace weir
