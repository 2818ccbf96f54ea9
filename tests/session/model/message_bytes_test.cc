#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/function_library.h"
#include "weir/core/io/graph_io.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/train/queue_runner.h"
#include "weir/ops/train/saver.h"
#include "weir/proto/variable.pb.h"
#include "weir/session/model/meta_graph.h"
#include "weir/session/session.h"
#include "weir/tests/io/test_files.h"

// The interface for programs without protobuf's headers: for each function that takes a message
// there is one that takes its bytes.

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kNoMessage[] = "\x0a\xff";  // a length beyond the end

template <class T>
void IsRefused(const absl::StatusOr<T>& read, const char* type) {
  EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << read.status();
  EXPECT_THAT(std::string(read.status().message()),
              AllOf(HasSubstr("2 bytes"), HasSubstr(std::string("weir.proto.") + type)));
}

TEST(MessageBytes, VariablesAreTheSameHandlesAgain) {
  Graph g;
  const NameScope scope(g, "a");
  const Variable v = MakeVariable(g, {1.0, 2.0}, {.name = "v"});
  const int nodes = g.num_nodes();
  const auto again = Variable::FromBytes(g, *v.ToBytes());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, v);
  EXPECT_EQ(*Variable::FromBytes(g, *v.ToBytes("a"), "a"), v);
  EXPECT_EQ(g.num_nodes(), nodes);

  proto::VariableDef def, parsed;
  ASSERT_TRUE(v.ToProto(&def) && parsed.ParseFromString(*v.ToBytes()));
  EXPECT_EQ(parsed.ShortDebugString(), def.ShortDebugString());
}

TEST(MessageBytes, VariablesOutsideOfTheScopeHaveNone) {
  Graph g;
  EXPECT_EQ(MakeVariable(g, 1.0, {.name = "v"}).ToBytes("b"), std::nullopt);
  EXPECT_TRUE(absl::IsNotFound(
      Variable::FromBytes(g, *MakeVariable(g, 1.0).ToBytes(), "elsewhere").status()));
}

TEST(MessageBytes, MetaGraphsKeepVariablesAndSaver) {
  Graph g;
  const Variable v = MakeVariable(g, {1.0, 2.0}, {.name = "v"});
  const auto saver = BuildSaverGraph(g, NameVariables({v}));
  ASSERT_TRUE(saver.ok()) << saver.status();
  Graph copy;
  const auto meta = ImportMetaGraph(copy, SerializeMetaGraph(g, {.saver = *saver}));
  ASSERT_TRUE(meta.ok()) << meta.status();
  EXPECT_EQ(meta->saver, *saver);
  ASSERT_EQ(GlobalVariables(copy).size(), 1u);
  EXPECT_EQ(GlobalVariables(copy)[0].name(), "v:0");
  EXPECT_EQ(SerializeGraph(copy), SerializeGraph(g));
}

TEST(MessageBytes, SaversAndQueueRunners) {
  Graph g;
  const SaverDef def = {.filename_tensor_name = "a:0", .restore_op_name = "b", .max_to_keep = 7};
  EXPECT_EQ(*SaverDef::FromBytes(def.ToBytes()), def);
  const Queue queue = Queue::Fifo(g, 3, {DT_FLOAT});
  const auto runner = AddQueueRunner(queue, {queue.Enqueue({Const(g, 1.f)})});
  const auto again = QueueRunner::FromBytes(g, runner->ToBytes());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->queue_name, runner->queue_name);
  EXPECT_EQ((*again)->enqueue_ops, runner->enqueue_ops);
}

TEST(MessageBytes, ValuesOfGraphs) {
  const Tensor tensor = Tensor::Vector<float>({1, 2, 3});
  EXPECT_TRUE(IdenticalTensors(*TensorFromBytes(TensorToBytes(tensor)), tensor));
  EXPECT_EQ(*ShapeFromBytes(ShapeToBytes(Shape({-1, 3}))), Shape({-1, 3}));
  EXPECT_EQ(*AttrFromBytes(AttrToBytes(AttrValue(DT_FLOAT))), AttrValue(DT_FLOAT));
  EXPECT_THAT(OpToBytes(OpSpec("Mine").In("x: float")), HasSubstr("Mine"));
}

TEST(MessageBytes, FunctionLibraries) {
  Graph g, body;
  const Output x = Placeholder(body, DT_FLOAT);
  ASSERT_TRUE(DefineFunction(g, "f", body, {x}, {Identity(x)}).ok());
  const auto again = FunctionLibrary::Extend(nullptr, g.functions()->ToBytes());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->Names(), g.functions()->Names());
}

TEST(MessageBytes, BinaryAndTextFilesImportTheSameGraph) {
  Graph g;
  Const(g, 1.f);
  for (const char* name : {"/graph.pb", "/graph.pbtxt"}) {
    const std::string path = testing::MakeTempDirectory("bytes") + name;
    ASSERT_TRUE(WriteGraphFile(g, path).ok());
    const auto bytes = ReadGraphFile(path);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_EQ(*bytes, SerializeGraph(g)) << name;
  }
}

TEST(MessageBytes, RejectsMalformedMessages) {
  Graph g;
  IsRefused(Variable::FromBytes(g, kNoMessage), "VariableDef");
  IsRefused(ImportMetaGraph(g, kNoMessage), "MetaGraphDef");
  IsRefused(SaverDef::FromBytes(kNoMessage), "SaverDef");
  IsRefused(QueueRunner::FromBytes(g, kNoMessage), "QueueRunnerDef");
  IsRefused(TensorFromBytes(kNoMessage), "TensorProto");
  IsRefused(ShapeFromBytes(kNoMessage), "TensorShapeProto");
  IsRefused(AttrFromBytes(kNoMessage), "AttrValue");
  IsRefused(FunctionLibrary::Extend(nullptr, kNoMessage), "FunctionDefLibrary");
}

}  // namespace
}  // namespace weir
