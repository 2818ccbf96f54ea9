#include "weir/session/model/freeze.h"

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/core/io/function_library.h"
#include "weir/core/io/graph_io.h"
#include "weir/ops/containers/table.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/framework/function.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/layers/layers.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/train/optimizers.h"
#include "weir/proto/graph.pb.h"
#include "weir/session/model/saved_model.h"
#include "weir/tests/session/lib/saver_testing.h"
#include "weir/tests/session/lib/test_functions.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Init;
using ::testing::IsEmpty;
using testing::Start;
using testing::Var;

// Ops of a graph that use variables.
std::vector<std::string> VariableOps(const Graph& graph) {
  std::vector<std::string> ops;
  for (const auto& node : graph.nodes()) {
    for (const char* part : {"Var", "Ref", "Resource", "Assign"}) {
      if (absl::StrContains(node->op_name(), part)) {
        ops.push_back(node->op_name());
        break;
      }
    }
  }
  return ops;
}

// Freezes the outputs, and expects the same values to the bit of the frozen graph, in a session
// without initialization.
std::unique_ptr<Graph> FreezeAndCompare(Session& session, const Feeds& feeds,
                                        const Outputs& outputs) {
  absl::StatusOr<std::unique_ptr<Graph>> frozen = FreezeGraph(session, outputs);
  EXPECT_TRUE(frozen.ok()) << frozen.status();
  if (!frozen.ok()) return nullptr;
  EXPECT_THAT(VariableOps(**frozen), IsEmpty());
  std::vector<std::pair<std::string, Tensor>> by_name;
  std::vector<std::string> names;
  for (const auto& [output, value] : feeds) by_name.emplace_back(output.name(), value);
  for (const Output& output : outputs) names.push_back(output.name());
  Session other = Start(**frozen);
  const auto want = session.Run(feeds, outputs), got = other.Run(by_name, names, {});
  EXPECT_TRUE(want.ok()) << want.status();
  EXPECT_TRUE(got.ok()) << got.status();
  if (want.ok() && got.ok()) {
    for (size_t i = 0; i < want->size(); ++i)
      EXPECT_TRUE(IdenticalTensors((*want)[i], (*got)[i])) << names[i];
  }
  return std::move(*frozen);
}

const Tensor kPoints = Tensor::Of<float>({2, 3}, {1, 2, 3, -4, 5, -6});

// Both kinds of variables.
class Freeze : public ::testing::TestWithParam<bool> {
 protected:
  Graph g_{{.use_resource = GetParam()}};
};
INSTANTIATE_TEST_SUITE_P(Kinds, Freeze, ::testing::Values(true, false),
                         [](const auto& info) { return info.param ? "resource" : "reference"; });

TEST_P(Freeze, KeepsNodesThatTheOutputsNeed) {
  const Output x = Placeholder(g_, DT_FLOAT, {-1, 3}, "x");
  const Output hidden = layers::Dense(x, 4, {.activation = Tanh, .name = "hidden"});
  const Output y = layers::Dense(hidden, 2, {.name = "out"});
  const Operation train = Adam(0.1).Minimize(ReduceMean(Square(y)));
  Session session = Start(g_);
  Init(session, g_);
  ASSERT_TRUE(session.Run({{x, kPoints}}, {}, {train}).ok());

  const std::unique_ptr<Graph> frozen = FreezeAndCompare(session, {{x, kPoints}}, {y, hidden});
  ASSERT_NE(frozen, nullptr);
  const Node* kernel = frozen->FindNode("hidden/kernel");
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->op_name(), "Const");
  EXPECT_EQ(frozen->FindNode("hidden/kernel/Adam"), nullptr);
  EXPECT_EQ(frozen->FindNode(y.node->name())->op_name(), y.node->op_name());
  EXPECT_LT(frozen->num_nodes(), 20);

  // Later steps change the variables, not the constants.
  const Tensor before = kernel->attr<Tensor>("value");
  const std::vector<float> was(before.flat<float>().begin(), before.flat<float>().end());
  ASSERT_TRUE(session.Run({{x, kPoints}}, {}, {train}).ok());
  EXPECT_TRUE(std::equal(was.begin(), was.end(), before.data<float>()));
}

TEST_P(Freeze, ReplacesAllKindsOfReads) {
  const Variable table =
      MakeVariable(g_, Tensor::Of<float>({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), {.name = "table"});
  const Output rows = Placeholder(g_, DT_INT32, {2}, "rows");
  Outputs outputs = {table.value() * 2.f, ShapeTensor(table), IsVariableInitialized(table)};
  if (GetParam()) {
    outputs.push_back(table.SparseRead(rows));
    outputs.push_back(table.GatherNd(Const(g_, Tensor::Of<int32_t>({1, 2}, {1, 0}))));
    outputs.push_back(AddOp("ResourceGather",
                            {table.handle(), Const(g_, Tensor::Of<int32_t>({2, 1}, {1, 0}))},
                            {{"dtype", DT_FLOAT}, {"batch_dims", 1}}));
    outputs.push_back(AddOp("VariableShape", {table.handle()}, {{"out_type", DT_INT64}}));
  }
  Session session = Start(g_);
  Init(session, g_);
  Feeds feeds;
  if (GetParam()) feeds = {{rows, Tensor::Vector<int32_t>({1, 1})}};
  FreezeAndCompare(session, feeds, outputs);
}

TEST_P(Freeze, ReplacesHandlesInLoopsAndConditionals) {
  const Variable w = Var(g_, "w", {1, 2, 3}), step = Var(g_, "step", {0.5, 0.5, 0.5});
  const Output n = Placeholder(g_, DT_INT32, {}, "n");
  const Output loop = WhileLoop([&](const Outputs& v) { return Less(v[0], n); },
                                [&](const Outputs& v) {
                                  return Outputs{v[0] + 1, v[1] * w.value() + step.value()};
                                },
                                {Const(g_, 0), Const(g_, {1.f, 1.f, 1.f})})[1];
  const Output branch = Cond(
      Greater(n, Const(g_, 2)), [&] { return w.value() * 10.f; },
      [&] { return w.value() + step.value(); });
  // Additional constants of a read are in the loop as well.
  const Output rows =
      WhileLoop([&](const Outputs& v) { return Less(v[0], n); },
                [&](const Outputs& v) {
                  return Outputs{v[0] + 1, v[1] + w.SparseRead(ExpandDims(v[0], 0))};
                },
                {Const(g_, 0), Const(g_, {1.f})})[1];
  Session session = Start(g_);
  Init(session, g_);
  for (const int count : {0, 3})
    FreezeAndCompare(session, {{n, Tensor::Scalar(int32_t{count})}}, {loop, branch, rows});
}

TEST_P(Freeze, RejectsNodesThatWriteToAVariable) {
  const Variable w = Var(g_, "w", {1});
  const Output updated = w.AssignAdd(Const(g_, {1.f}));
  Session session = Start(g_);
  Init(session, g_);
  const absl::Status status = FreezeGraph(session, {updated}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("writes to a variable"));
  const auto value = session.Run({w.value()});
  ASSERT_TRUE(value.ok());
  EXPECT_THAT((*value)[0].flat<float>(), ElementsAre(1)) << "it was not written to";
}

// The step of a counter that the result does not show: only control edges lead from it.
TEST_P(Freeze, LeavesOutWritesThatOnlyOrder) {
  const Variable w = Var(g_, "w", {1}), draws = Var(g_, "draws", {0});
  const Operation check = AddNode(g_, "NoOp", {}, {}, "check");
  const Output one = Const(g_, {1.f});
  Output write, y;
  {
    const ControlDependencies after(g_, {check});
    write = draws.AssignAdd(one);
  }
  {
    const ControlDependencies after(g_, {Operation(write.node)});
    y = w.value() * 2.f;
  }
  Session session = Start(g_);
  Init(session, g_);
  const std::unique_ptr<Graph> frozen = FreezeAndCompare(session, {}, {y});
  ASSERT_NE(frozen, nullptr);
  EXPECT_EQ(frozen->FindNode("draws"), nullptr);
  EXPECT_NE(frozen->FindNode("check"), nullptr) << "what the write waited for is still waited for";
}

TEST_P(Freeze, RejectsWritesThatAReadFollows) {
  const Variable w = Var(g_, "w", {1});
  const Output write = w.AssignAdd(Const(g_, {1.f}));
  Output y;
  {
    const ControlDependencies after(g_, {Operation(write.node)});
    y = w.value() * 2.f;
  }
  Session session = Start(g_);
  Init(session, g_);
  const absl::Status status = FreezeGraph(session, {y}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
}

// A constant that follows a write in a branch is in the branch by that alone.
TEST_P(Freeze, RejectsWritesInBranches) {
  const Variable n = Var(g_, "n", {0});
  const Output p = Placeholder(g_, DT_BOOL, {}, "p");
  const Output y = Cond(
      p,
      [&] {
        const ControlDependencies after(g_, {Operation(n.AssignAdd(Const(g_, {1.f})).node)});
        return Const(g_, 2.f);
      },
      [&] { return Const(g_, 3.f); });
  Session session = Start(g_);
  Init(session, g_);
  const absl::Status status = FreezeGraph(session, {y}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
}

// The next step reads what this one writes.
TEST_P(Freeze, RejectsWritesThatFollowARead) {
  const Variable w = Var(g_, "w", {1});
  const Output before = w.value() * 2.f, one = Const(g_, {1.f});
  Output write, y;
  {
    const ControlDependencies after(g_, {Operation(before.node)});
    write = w.AssignAdd(one);
  }
  {
    const ControlDependencies after(g_, {Operation(write.node)});
    y = Identity(before);
  }
  Session session = Start(g_);
  Init(session, g_);
  const absl::Status status = FreezeGraph(session, {y}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
}

TEST_P(Freeze, RequiresInitializedVariables) {
  const Variable w = Var(g_, "w", {1});
  Session session = Start(g_);
  const absl::Status status = FreezeGraph(session, {w.value() + 1.f}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("w"));
}

// A function whose argument is a variable's handle, as TensorFlow 2 writes them.
FunctionRef AddReader(Graph& g, const std::string& name, const DataTypes& types,
                      const std::function<Outputs(Graph&, const Outputs&)>& build) {
  return DefineFrom(g, name, types, build);
}
Output Read(const Output& handle) {
  return AddOp("ReadVariableOp", {handle}, {{"dtype", DT_FLOAT}});
}

TEST(FreezeFunctions, ReplacesHandlesInCallsBranchesAndLoops) {
  Graph g;
  const Variable w = Var(g, "w", {1, 2}), b = Var(g, "b", {10, 20});
  const Output x = Placeholder(g, DT_FLOAT, {2}, "x"), n = Placeholder(g, DT_INT32, {}, "n");
  const FunctionRef scale =
      AddReader(g, "scale", {DT_FLOAT, DT_RESOURCE},
                [](Graph&, const Outputs& args) { return Outputs{args[0] * Read(args[1])}; });
  const FunctionRef shift =
      AddReader(g, "shift", {DT_FLOAT, DT_RESOURCE},
                [](Graph&, const Outputs& args) { return Outputs{args[0] + Read(args[1])}; });
  // Calls another function with the handle that it was given.
  const FunctionRef outer =
      AddReader(g, "outer", {DT_FLOAT, DT_RESOURCE}, [&](Graph& body, const Outputs& args) {
        return Outputs{Call(body, scale, args)[0] + Read(args[1])};
      });
  const FunctionRef goes_on = AddReader(
      g, "goes_on", {DT_INT32, DT_FLOAT, DT_RESOURCE},
      [](Graph& body, const Outputs& args) { return Outputs{Greater(args[0], Const(body, 0))}; });
  const FunctionRef body =
      AddReader(g, "body", {DT_INT32, DT_FLOAT, DT_RESOURCE}, [](Graph&, const Outputs& args) {
        return Outputs{args[0] - 1, args[1] * Read(args[2]), args[2]};
      });
  const FunctionRef counted =
      AddReader(g, "counted", {DT_INT32, DT_FLOAT, DT_RESOURCE}, [](Graph&, const Outputs& args) {
        return Outputs{args[1] + Read(args[2]) * Cast(args[0], DT_FLOAT), args[2]};
      });
  const Outputs loop = FunctionalWhile({n, x, w.handle()}, goes_on, body);
  const Output zero = Const(g, 0), one = Const(g, 1);
  const Outputs outputs = {
      Call(g, outer, {x, w.handle()})[0],
      Call(g, outer, {x, b.handle()})[0],
      FunctionalIf(Greater(n, one), {x, b.handle()}, scale, shift)[0],
      FunctionalCase(n, {x, w.handle()}, {scale, shift, outer})[0],
      loop[1] + Read(loop[2]),
      FunctionalFor(zero, n, one, {x, b.handle()}, counted)[0],
  };
  Session session = Start(g);
  Init(session, g);
  const Tensor point = Tensor::Vector<float>({3, 4});
  for (const int count : {0, 1, 3}) {
    const std::unique_ptr<Graph> frozen =
        FreezeAndCompare(session, {{x, point}, {n, Tensor::Scalar(int32_t{count})}}, outputs);
    ASSERT_NE(frozen, nullptr);
    // Each function is frozen once, however often it is called; the functions of handles are
    // removed.
    EXPECT_THAT(frozen->functions()->Names(),
                ::testing::UnorderedElementsAre("scale_frozen", "shift_frozen", "outer_frozen",
                                                "goes_on_frozen", "body_frozen", "counted_frozen"));
  }
}

// A function of (x, variable) that adds 1 to the variable, and returns x after that: as it is, or
// plus what the variable was before.
FunctionRef AddCounter(Graph& g, const std::string& name, bool reads) {
  Graph body;
  const Output x = Placeholder(body, DT_FLOAT), handle = Placeholder(body, DT_RESOURCE);
  const Output result = reads ? x + Read(handle) : x;
  const Operation write = [&] {
    const ControlDependencies after(body, {Operation(result.node)});
    return AddNode(body, "AssignAddVariableOp", {handle, Const(body, {1.f})},
                   {{"dtype", DT_FLOAT}});
  }();
  const ControlDependencies after(body, {write});
  const absl::Status status =
      DefineFunction(g, name, body, {x, handle}, {Identity(result)}, {write});
  EXPECT_TRUE(status.ok()) << status;
  return FunctionRef{name, nullptr};
}

TEST(FreezeFunctions, LeavesOutWritesToVariablesThatNobodyReads) {
  Graph g;
  const Variable v = Var(g, "v", {5});
  const FunctionRef count = AddCounter(g, "count", false),
                    read_and_count = AddCounter(g, "read_and_count", true);
  const FunctionRef nested =
      AddReader(g, "nested", {DT_FLOAT, DT_RESOURCE},
                [&](Graph& body, const Outputs& args) { return Call(body, count, args); });
  const FunctionRef read =
      AddReader(g, "read", {DT_FLOAT, DT_RESOURCE},
                [](Graph&, const Outputs& args) { return Outputs{args[0] + Read(args[1])}; });
  const FunctionRef goes_on =
      AddReader(g, "goes_on", {DT_FLOAT, DT_RESOURCE}, [](Graph& body, const Outputs& args) {
        return Outputs{Reshape(Less(args[0], Const(body, {9.f})), {})};
      });
  const FunctionRef step =
      AddReader(g, "step", {DT_FLOAT, DT_RESOURCE}, [&](Graph& body, const Outputs& args) {
        return Outputs{Call(body, read_and_count, args)[0], args[1]};
      });
  const Output x = Const(g, {1.f});
  const Output counted = Call(g, count, {x, v.handle()})[0],
               deep = Call(g, nested, {x, v.handle()})[0];
  const std::vector<Outputs> rejected = {
      {counted, v.value() * 2.f},
      {deep, v.value() * 2.f},
      {Call(g, read, {counted, v.handle()})[0]},
      {Call(g, read_and_count, {x, v.handle()})[0]},
      {FunctionalIf(Const(g, true), {x, v.handle()}, count, read)[0]},
      {FunctionalWhile({x, v.handle()}, goes_on, step)[0]},
  };
  Session session = Start(g);
  Init(session, g);
  FreezeAndCompare(session, {}, {counted, deep});
  for (size_t i = 0; i < rejected.size(); ++i) {
    const absl::Status status = FreezeGraph(session, rejected[i]).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << i << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("writes to")) << i;
  }
}

TEST(FreezeFunctions, RejectsFunctionsThatCreateVariables) {
  Graph g;
  const FunctionRef f = DefineFrom(g, "f", {DT_FLOAT}, [](Graph& body, const Outputs& x) {
    const Output handle =
        AddNode(body, "VarHandleOp", {}, {{"dtype", DT_FLOAT}, {"shape", Shape({1})}}, "hidden")
            ->output();
    return Outputs{x[0] + Read(handle)};
  });
  const Output y = Call(g, f, {Const(g, {1.f})})[0];
  Session session = Start(g);
  const absl::Status status = FreezeGraph(session, {y}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("hidden"));
}

TEST(FreezeFunctions, RejectsDeeplyNestedFunctions) {
  Graph g;
  const Variable w = Var(g, "w", {1});
  FunctionRef f = AddReader(g, "f0", {DT_RESOURCE},
                            [](Graph&, const Outputs& args) { return Outputs{Read(args[0])}; });
  for (int i = 1; i < 120; ++i) {
    f = AddReader(g, absl::StrCat("f", i), {DT_RESOURCE},
                  [&](Graph& body, const Outputs& args) { return Call(body, f, args); });
  }
  const Output deep = Call(g, f, {w.handle()})[0];
  const Output shallow = Call(g, FunctionRef{"f90", nullptr}, {w.handle()})[0];
  Session session = Start(g);
  Init(session, g);
  EXPECT_EQ(FreezeGraph(session, {deep}).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_TRUE(FreezeGraph(session, {shallow}).ok());
}

// A chain of nodes that forward a handle, in reverse order in the file.
TEST(FreezeGraph, TakesLinearTimeForAnyOrderOfNodes) {
  constexpr int kNodes = 20000;
  Graph g;
  const Variable w = Var(g, "w", {5});
  Output handle = w.handle();
  for (int i = 0; i < kNodes; ++i) handle = Identity(handle, absl::StrCat("hand", i));
  AddOp("ReadVariableOp", {handle}, {{"dtype", DT_FLOAT}}, "value");
  proto::GraphDef def, reversed;
  ExportGraphDef(g, &def);
  for (int i = def.node_size(); i-- > 0;) *reversed.add_node() = def.node(i);
  Graph backward;
  ASSERT_TRUE(ImportGraphDef(backward, reversed).ok());
  Session session = Start(backward);
  ASSERT_TRUE(session.Run({}, {}, {"w/Assign"}).ok());
  const auto frozen = FreezeGraph(session, {*backward.FindOutput("value")});
  ASSERT_TRUE(frozen.ok()) << frozen.status();
  const auto values = Start(**frozen).Run({}, {"value"}, {});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT((*values)[0].flat<float>(), ElementsAre(5));
}

// A conditional whose predicate is a reference variable, and whose data are not.
TEST(FreezeGraph, APredicateIsAValue) {
  Graph g({.use_resource = false});
  const Variable flag = MakeVariable(g, true, {.name = "flag"});
  const Output x = Placeholder(g, DT_FLOAT, {1}, "x");
  const Outputs branches = {AddNode("Switch", {x, flag.handle()})->output(1)};
  Session session = Start(g);
  Init(session, g);
  FreezeAndCompare(session, {{x, Tensor::Vector<float>({3})}}, branches);
}

// A value fixes one of two conditionals whose values one Merge takes: it keeps those of the other.
TEST(FreezeGraph, AMergeForgetsDeadInputs) {
  for (const bool uses_index : {false, true}) {
    Graph g;
    const Output fixed = Placeholder(g, DT_BOOL, {}, "fixed");
    const Output chosen = Placeholder(g, DT_BOOL, {}, "chosen");
    const Output x = Placeholder(g, DT_FLOAT, {}, "x");
    const Node* outer = AddNode("Switch", {x, fixed});
    const Node* inner = AddNode("Switch", {outer->output(1), chosen});
    const Node* merge =
        AddNode("Merge", {std::vector<Output>{outer->output(0) * 2.f, inner->output(0) * 3.f,
                                              inner->output(1) * 4.f}});
    Output result = merge->output(0);
    if (uses_index) result = result + Cast(merge->output(1), DT_FLOAT);
    Session session = Start(g);
    const auto frozen = FreezeGraph(session, {result}, {.values = {{fixed, Tensor::Scalar(true)}}});
    ASSERT_TRUE(frozen.ok()) << frozen.status();
    Session other = Start(**frozen);
    for (const bool second : {false, true}) {
      const auto got = other.Run({{"x", Tensor::Scalar(1.f)}, {"chosen", Tensor::Scalar(second)}},
                                 {result.name()}, {});
      ASSERT_TRUE(got.ok()) << got.status();
      const float index = uses_index ? (second ? 2.f : 1.f) : 0.f;
      EXPECT_EQ((*got)[0].data<float>()[0], (second ? 4.f : 3.f) + index);
    }
  }
}

TEST(FreezeFunctions, SavedModelsOfTensorFlow2) {
  const auto model = LoadSavedModel("tests/session/golden/saved_model_tf2", {"serve"});
  ASSERT_TRUE(model.ok()) << model.status();
  const Signature& f = model->meta.signatures.at("serving_default");
  const absl::Status status =
      FreezeGraph(*model->session, {*model->graph->FindOutput(f.outputs.at("out"))}).status();
  // The model counts its calls.
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("writes to a variable"));
}

TEST(FreezeGraph, RejectsOutputsOfOtherGraphs) {
  Graph g, other;
  Session session = Start(g);
  EXPECT_EQ(FreezeGraph(session, {}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FreezeGraph(session, {Const(other, 1.f)}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FreezeGraph(session, {Output()}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(FreezeGraph, TargetsAreKept) {
  Graph g;
  const Output y = Var(g, "w", {1}).value() + 1.f;
  const Operation fill = AddNode(g, "NoOp", {}, {}, "fill");
  Session session = Start(g);
  Init(session, g);
  for (const bool keep : {false, true}) {
    FreezeOptions options;
    if (keep) options.targets = {fill};
    const auto frozen = FreezeGraph(session, {y}, options);
    ASSERT_TRUE(frozen.ok()) << frozen.status();
    EXPECT_EQ((*frozen)->FindNode("fill") != nullptr, keep);
  }
  Graph other;
  EXPECT_EQ(FreezeGraph(session, {y}, {.targets = {AddNode(other, "NoOp", {})}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(FreezeGraph, RejectsTablesWithEntriesThatNothingFills) {
  Graph g;
  MutableHashTable table(DT_STRING, Const(g, -1.f));
  const Output keys = Const(g, Tensor::Vector<std::string>({"a"}));
  const Operation fill = table.Insert(keys, Const(g, {2.f}));
  const Output found = table.Lookup(keys);
  Session session = Start(g);
  EXPECT_TRUE(FreezeGraph(session, {found}).ok()) << "it is empty";
  ASSERT_TRUE(session.Run({}, {}, {fill}).ok());
  const absl::Status status = FreezeGraph(session, {found}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("has 1 entries"));
  EXPECT_TRUE(FreezeGraph(session, {found}, {.targets = {fill}}).ok());
}

TEST(FreezeGraph, DevicesMayBeCleared) {
  Graph g;
  Output y;
  {
    const DeviceScope device(g, "/cpu:0");
    y = Var(g, "w", {1}).value() + 1.f;
  }
  Session session = Start(g);
  Init(session, g);
  for (const bool clear : {false, true}) {
    const auto frozen = FreezeGraph(session, {y}, {.clear_devices = clear});
    ASSERT_TRUE(frozen.ok()) << frozen.status();
    EXPECT_EQ((*frozen)->FindNode("w")->device().empty(), clear);
  }
}

}  // namespace
}  // namespace weir
