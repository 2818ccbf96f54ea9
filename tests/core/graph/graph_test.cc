#include "weir/core/graph/graph.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/tests/core/graph/test_ops.h"

namespace weir {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// ---- names

TEST(NodeBuilder, NamesAreUniqueIgnoringCase) {
  Graph g(TestOps());
  const auto name = [&g](absl::string_view wanted) {
    return NodeBuilder(g, "NoOp").Name(wanted).Build()->name();
  };
  EXPECT_EQ(name(""), "NoOp");
  EXPECT_EQ(name(""), "NoOp_1");
  EXPECT_EQ(name("noop"), "noop_2");
  EXPECT_EQ(name("a_1"), "a_1");
  EXPECT_EQ(name("a"), "a");
  EXPECT_EQ(name("a"), "a_2");
  EXPECT_EQ(name("Ab_1"), "Ab_1");
  EXPECT_EQ(name("ab_1"), "ab_1_1");
}

// As in TensorFlow: the value of a partitioned variable "w" is named "w" although "w/part_0"
// exists.
TEST(NodeBuilder, AScopeInANameIsNotTakenUnlessItWasOpened) {
  Graph g(TestOps());
  NodeBuilder(g, "NoOp").Name("x/y/z").Build();
  EXPECT_EQ(NodeBuilder(g, "NoOp").Name("x").Build()->name(), "x");
  EXPECT_EQ(g.UniqueName("x/y"), "x/y");
  { const NameScope scope(g, "a/b"); }
  EXPECT_EQ(g.UniqueName("a"), "a");
  EXPECT_EQ(g.UniqueName("a/b"), "a/b_1");
}

TEST(NodeBuilder, NameThatEndsInASlashIsFinal) {
  Graph g(TestOps());
  {
    NameScope scope(g, "layer");
    EXPECT_EQ(NodeBuilder(g, "NoOp").Name(scope.name()).Build()->name(), "layer");
    EXPECT_EQ(NodeBuilder(g, "NoOp").Name("layer").Build()->name(), "layer/layer");
  }
  EXPECT_EQ(NodeBuilder(g, "NoOp").Name("layer/").Build(), nullptr);
  EXPECT_THAT(g.TakeStatus().message(), HasSubstr("Duplicate node name in graph: 'layer'"));
  EXPECT_EQ(NodeBuilder(g, "NoOp").Name("other/").Build()->name(), "other");
  EXPECT_EQ(NodeBuilder(g, "NoOp").Name("other").Build()->name(), "other_1");
}

TEST(NodeBuilder, RefusesNamesOutsideThePattern) {
  for (const char* name : {"bad name", "_x", "-x", "/x", "x!", "\xc3\xa9", "x:0", "^x"}) {
    Graph g(TestOps());
    EXPECT_EQ(NodeBuilder(g, "NoOp").Name(name).Build(), nullptr) << name;
    EXPECT_EQ(g.status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
  Graph g(TestOps());
  for (const char* name : {".x", "0", "a.b\\c>d-e_f", "A/_b"}) {
    EXPECT_NE(NodeBuilder(g, "NoOp").Name(name).Build(), nullptr) << name;
  }
}

TEST(NodeBuilder, AFailedNodeReservesNoName) {
  Graph g(TestOps());
  EXPECT_EQ(NodeBuilder(g, "MatMul").Name("m").Build(), nullptr);
  EXPECT_FALSE(g.TakeStatus().ok());
  EXPECT_EQ(NodeBuilder(g, "NoOp").Name("m").Build()->name(), "m");
}

// ---- arguments and attributes

TEST(NodeBuilder, TypesComeFromTheInputs) {
  Graph g(TestOps());
  const Output x = Placeholder(g, DT_FLOAT, Shape({2, 3}));
  const Output w = Placeholder(g, DT_FLOAT, Shape({3, 4}));
  const Output y = AddOp("MatMul", {x, w}, {{"transpose_b", false}}, "y");
  ASSERT_TRUE(y.valid()) << g.status();
  EXPECT_EQ(y.node->attr<DataType>("T"), DT_FLOAT);
  EXPECT_EQ(y.node->attr<bool>("transpose_a"), false);
  EXPECT_EQ(y.dtype(), DT_FLOAT);
  EXPECT_EQ(y.shape(), Shape({2, 4}));
  EXPECT_EQ(y.node->Label(), "y (MatMul)");
}

TEST(NodeBuilder, DisagreeingTypesNameBothArguments) {
  Graph g(TestOps());
  const Output x = Placeholder(g, DT_FLOAT, Shape({2, 3}));
  const Output w = Placeholder(g, DT_DOUBLE, Shape({3, 4}));
  EXPECT_FALSE(AddOp("MatMul", {x, w}, {}, "y").valid());
  EXPECT_EQ(g.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      g.status().message(),
      AllOf(
          HasSubstr("Input 'b' of 'MatMul' Op has type float64 that does not match type float32 of "
                    "argument 'a'."),
          HasSubstr("y (MatMul)"), HasSubstr("float[2,3], double[3,4]")));
}

TEST(NodeBuilder, MessagesOfWrongArguments) {
  const struct {
    std::function<void(Graph&, Output f, Output i)> build;
    const char* message;
  } kCases[] = {
      {[](Graph& g, Output f, Output) {
         AddOp("Sum", {f, f});
       },
       "Value passed to parameter 'reduction_indices' has DataType float32 not in list of allowed "
       "values: int32, int64"},
      {[](Graph& g, Output f, Output) {
         AddOp("Split", {f, f}, {{"num_split", 2}});
       },
       "Input 'split_dim' of 'Split' Op has type float32 that does not match expected type of "
       "int32."},
      {[](Graph& g, Output f, Output i) {
         AddOp("AddN", {Outputs{f, i}});
       },
       "Tensors in list passed to 'inputs' of 'AddN' Op have types [float32, int32] that don't all "
       "match."},
      {[](Graph& g, Output f, Output) {
         AddOp("AddN", {Outputs{f, f}}, {{"N", 3}});
       },
       "List argument 'inputs' to 'AddN' Op with length 2 must match length 3."},
      {[](Graph& g, Output f, Output) { AddOp("AddN", {f}); },
       "Expected list for 'inputs' argument to 'AddN' Op"},
      {[](Graph& g, Output f, Output) { AddOp("Identity", {Outputs{f}}); },
       "Expected single tensor for 'input' argument to 'Identity' Op"},
      {[](Graph& g, Output f, Output) { AddOp("MatMul", {f}); }, "Op takes 2 arguments, but got 1"},
      {[](Graph& g, Output f, Output) {
         AddOp("Identity", {f}, {{"T", DT_INT32}});
       },
       "Input 'input' of 'Identity' Op has type float32 that does not match expected type of "
       "int32."},
      {[](Graph& g, Output f, Output) {
         AddOp("IdentityN", {Outputs{f}}, {{"T", DataTypes{DT_INT32}}});
       },
       "Input 'input' of 'IdentityN' Op has type list of float32 that does not match type list "
       "int32."},
      {[](Graph& g, Output f, Output) {
         AddOp("Assign", {f, f});
       },
       "Input 'ref' of 'Assign' Op requires l-value input"},
      {[](Graph& g, Output f, Output) {
         AddOp("Identity", {f}, {{"axis", 1}});
       },
       "mentions attr 'axis' not in Op<Identity("},
      {[](Graph& g, Output f, Output) {
         AddOp("MatMul", {f, f}, {{"transpose_a", "no"}});
       },
       "AttrValue had value with type 'string' when 'bool' expected for attr 'transpose_a'"},
      {[](Graph& g, Output f, Output) {
         AddOp("Split", {Placeholder(g, DT_INT32, Shape()), f});
       },
       "missing attr 'num_split' from Op<Split("},
      {[](Graph& g, Output f, Output) {
         AddOp("Split", {Placeholder(g, DT_INT32, Shape()), f}, {{"num_split", -1}});
       },
       "Value for attr 'num_split' of -1 must be at least minimum 1"},
      {[](Graph& g, Output f, Output) { AddOp("Identity", {Output(f.node, 5)}); },
       "does not have output 5"},
      {[](Graph& g, Output f, Output) {
         AddOp("Add", {f, Output()});
       },
       "Input 'y' of 'Add' Op is an invalid Output"},
  };
  for (const auto& c : kCases) {
    Graph g(TestOps());
    const Output f = Placeholder(g, DT_FLOAT, Shape({2, 2})),
                 i = Placeholder(g, DT_INT32, Shape({2}));
    ASSERT_TRUE(f.valid() && i.valid());
    c.build(g, f, i);
    EXPECT_THAT(g.status().message(), HasSubstr(c.message));
  }
}

TEST(NodeBuilder, OutputsThatANodeDoesNotHaveFailTheGraph) {
  const std::function<void(const Output&)> uses[] = {
      [](const Output& o) { EXPECT_EQ(o.dtype(), DT_INVALID); },
      [](const Output& o) { EXPECT_FALSE(o.is_ref()); },
      [](const Output& o) { EXPECT_FALSE(o.shape().has_rank()); },
      [](const Output& o) { EXPECT_EQ(o.dim(0), Shape::kUnknown); },
      [](const Output& o) { EXPECT_EQ(o.handle_data(), nullptr); },
      [](const Output& o) { EXPECT_FALSE(AddOp("Identity", {o}).valid()); },
      [](const Output& o) {
        EXPECT_FALSE(AddOp("AddN", {Outputs{o, o}}).valid());
      },
  };
  for (const auto& use : uses) {
    for (const int index : {-1, 1, 7}) {
      Graph g(TestOps());
      use(Output(Placeholder(g, DT_FLOAT, Shape({2}), "x").node, index));
      EXPECT_TRUE(absl::IsInvalidArgument(g.status())) << g.status();
      EXPECT_THAT(g.status().message(), HasSubstr("x (Placeholder)"));
      EXPECT_THAT(g.status().message(), HasSubstr(absl::StrCat("does not have output ", index)));
    }
  }
}

TEST(Graph, SetInputAndRefineShapeCheckTheIndex) {
  Graph g(TestOps());
  const Output x = Placeholder(g, DT_FLOAT, Shape({2})), y = AddOp("Identity", {x});
  EXPECT_TRUE(absl::IsInvalidArgument(g.SetInput(y.node, 0, Output(x.node, 1))));
  EXPECT_TRUE(absl::IsInvalidArgument(g.RefineShape(Output(x.node, -1), Shape({2}))));
  EXPECT_TRUE(g.status().ok()) << g.status();
}

TEST(NodeBuilder, HugeOutputCountsAreRefused) {
  Graph g(TestOps());
  const Output f = Placeholder(g, DT_FLOAT, Shape({2})), i = Placeholder(g, DT_INT32, Shape());
  EXPECT_FALSE(AddOp("Split", {i, f}, {{"num_split", int64_t{1} << 40}}).valid());
  EXPECT_THAT(g.status().message(), HasSubstr("num_split"));
}

// Reusing the attributes and types of the op's last node must give the same result as building in a
// graph without other nodes.
TEST(NodeBuilder, ReuseFromTheLastNodeGivesTheSameNode) {
  struct Built {
    const char* op;
    std::vector<NamedAttr> attrs;
    std::vector<NamedAttr> scoped = {};
  };
  const Tensor one = Tensor::Scalar(1.f), pair = Tensor::Vector<int32_t>({1, 2});
  const std::vector<Built> sequence = {
      {"Placeholder", {{"dtype", DT_FLOAT}}},
      {"Placeholder", {{"dtype", DT_FLOAT}, {"shape", Shape({2})}}},
      {"Placeholder", {{"dtype", DT_FLOAT}, {"shape", Shape({3, 4})}}},
      {"Placeholder", {{"dtype", DT_INT32}, {"shape", Shape({3, 4})}}},
      {"Placeholder", {{"shape", Shape({5})}, {"dtype", DT_INT32}}},
      {"Placeholder", {{"shape", Shape()}, {"dtype", DT_INT32}}},
      {"Const", {{"value", one}, {"dtype", DT_FLOAT}}},
      {"Const", {{"value", pair}, {"dtype", DT_INT32}}},
      {"Const", {{"value", Tensor::Scalar<int32_t>(7)}, {"dtype", DT_INT32}}},
      {"VariableV2", {{"shape", Shape({2})}, {"dtype", DT_FLOAT}, {"shared_name", "a"}}},
      {"VariableV2", {{"shape", Shape({2})}, {"dtype", DT_FLOAT}, {"shared_name", "b"}}},
      {"VariableV2", {{"shape", Shape({2})}, {"dtype", DT_FLOAT}, {"shared_name", "b"}}},
      {"Const", {{"value", one}, {"dtype", DT_FLOAT}}, {{"_x", 1}}},
      {"Const", {{"value", one}, {"dtype", DT_FLOAT}}, {{"_x", 2}}},
      {"Const", {{"value", pair}, {"dtype", DT_INT32}}, {{"_x", 2}, {"dtype", DT_FLOAT}}},
      {"Const", {{"value", one}, {"dtype", DT_FLOAT}}, {{"_x", "text"}, {"dtype", DT_INT32}}},
      {"Const", {{"value", one}}, {{"dtype", DT_FLOAT}}},
      {"Const", {{"value", one}, {"dtype", DT_FLOAT}}},
  };
  const auto build = [](Graph& g, const Built& built) {
    std::vector<std::unique_ptr<AttrScope>> scopes;
    for (const auto& [name, value] : built.scoped)
      scopes.push_back(std::make_unique<AttrScope>(g, name, value));
    Node* const node = AddNode(g, built.op, {}, built.attrs, "n");
    while (!scopes.empty()) scopes.pop_back();  // innermost first
    return node;
  };
  Graph all(TestOps());
  for (size_t i = 0; i < sequence.size(); ++i) {
    SCOPED_TRACE(i);
    Graph alone(TestOps());
    const Node* const want = build(alone, sequence[i]);
    const Node* const got = build(all, sequence[i]);
    ASSERT_NE(want, nullptr) << alone.status();
    ASSERT_NE(got, nullptr) << all.status();
    EXPECT_TRUE(got->attrs() == want->attrs());
    EXPECT_EQ(got->output_type(0), want->output_type(0));
    EXPECT_EQ(got->output_shape(0), want->output_shape(0));
  }
}

TEST(NodeBuilder, ChecksValuesThatDifferFromTheLastNode) {
  Graph g(TestOps());
  ASSERT_NE(AddNode(g, "Placeholder", {}, {{"dtype", DT_FLOAT}, {"shape", Shape({2})}}, ""),
            nullptr);
  EXPECT_EQ(AddNode(g, "Placeholder", {}, {{"dtype", DT_FLOAT}, {"shape", "[2]"}}, ""), nullptr);
  EXPECT_THAT(std::string(g.status().message()), HasSubstr("'shape' expected for attr 'shape'"));
}

TEST(NodeBuilder, AMissingValueIsNotTakenFromTheLastNode) {
  Graph g(TestOps());
  const Tensor one = Tensor::Scalar(1.f);
  ASSERT_NE(AddNode(g, "Const", {}, {{"value", one}, {"dtype", DT_FLOAT}}, ""), nullptr);
  EXPECT_EQ(AddNode(g, "Const", {}, {{"value", AttrValue()}, {"dtype", DT_FLOAT}}, ""), nullptr);
  EXPECT_THAT(std::string(g.status().message()), HasSubstr("'tensor' expected for attr 'value'"));
}

TEST(NodeBuilder, UnknownOpIsNotFound) {
  Graph g(TestOps());
  EXPECT_EQ(AddNode(g, "Relu9000", {}), nullptr);
  EXPECT_EQ(g.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(g.status().message(), HasSubstr("Op type not registered 'Relu9000'"));
}

TEST(NodeBuilder, DeprecatedOpsAreForOldGraphs) {
  Graph g(TestOps());
  const Output x = Placeholder(g, DT_FLOAT, Shape());
  EXPECT_FALSE(AddOp("OldAdd", {x, x}).valid());
  EXPECT_EQ(g.TakeStatus().code(), absl::StatusCode::kUnimplemented);
  g.versions().producer = 8;
  EXPECT_TRUE(AddOp("OldAdd", {x, x}).valid());
}

TEST(NodeBuilder, ListArgumentsHaveRanges) {
  Graph g(TestOps());
  const Output f = Placeholder(g, DT_FLOAT, Shape({2})), i = Placeholder(g, DT_INT32, Shape());
  Node* n = AddNode("IdentityN", {Outputs{f, i, f}});
  ASSERT_NE(n, nullptr);
  EXPECT_EQ(n->attr<DataTypes>("T"), (DataTypes{DT_FLOAT, DT_INT32, DT_FLOAT}));
  EXPECT_EQ(n->num_outputs(), 3);
  EXPECT_EQ(n->output_type(1), DT_INT32);
  Node* split = AddNode("Split", {i, f}, {{"num_split", 3}});
  EXPECT_EQ(split->InputRange("value"), std::make_pair(1, 2));
  EXPECT_EQ(split->OutputRange("output"), std::make_pair(0, 3));
  EXPECT_EQ(split->OutputRange("other"), std::make_pair(0, 0));
  EXPECT_EQ(AddOp("AddN", {Outputs{f, f, f}}).node->attr<int64_t>("N"), 3);
}

TEST(NodeBuilder, ReferencesPassWhereTheSignatureRequiresThem) {
  Graph g(TestOps());
  const Output v =
      NodeBuilder(g, "VariableV2").Attr("dtype", DT_FLOAT).Attr("shape", Shape({2})).BuildOutput();
  ASSERT_TRUE(v.valid());
  EXPECT_TRUE(v.is_ref());
  EXPECT_EQ(v.dtype(), DT_FLOAT);
  const Output value = Placeholder(g, DT_FLOAT, Shape({2}));
  const Output assigned = AddOp("Assign", {v, value});
  ASSERT_TRUE(assigned.valid()) << g.status();
  EXPECT_TRUE(IsRef(assigned.node->input_type(0)));
  EXPECT_FALSE(IsRef(assigned.node->input_type(1)));
  const Output read = AddOp("Identity", {v});
  EXPECT_FALSE(IsRef(read.node->input_type(0)));
  EXPECT_FALSE(read.is_ref());
}

// ---- errors and the lifetime of a graph

TEST(Graph, TheFirstErrorSticks) {
  Graph g(TestOps());
  const Output x = Placeholder(g, DT_FLOAT, Shape({2, 3}));
  const Output bad = AddOp("MatMul", {x, x}, {}, "first");
  EXPECT_FALSE(bad.valid());
  EXPECT_FALSE(AddOp("Identity", {bad}, {}, "second").valid());
  EXPECT_FALSE(AddOp("Nope", {x}, {}, "third").valid());
  EXPECT_EQ(g.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(g.status().message(), AllOf(HasSubstr("Dimensions must be equal, but are 3 and 2"),
                                          HasSubstr("first (MatMul)"), HasSubstr("[2,3], [2,3]")));
  EXPECT_EQ(g.num_nodes(), 1);
}

TEST(Graph, FinalizedRefusesNodes) {
  Graph g(TestOps());
  g.Finalize();
  EXPECT_EQ(AddNode(g, "NoOp", {}), nullptr);
  EXPECT_EQ(g.status(),
            absl::FailedPreconditionError("Graph is finalized and cannot be modified."));
}

TEST(Graph, NodesOfAnotherGraphAreRefused) {
  Graph g(TestOps()), other(TestOps());
  const Output x = Placeholder(g, DT_FLOAT, Shape()), y = Placeholder(other, DT_FLOAT, Shape());
  EXPECT_FALSE(AddOp("Add", {x, y}).valid());
  EXPECT_THAT(g.status().message(), HasSubstr("must be from the same graph"));
  EXPECT_FALSE(g.AddControlInput(x.node, y.node).ok());
}

TEST(Graph, HandlesToADestroyedGraphAreInvalid) {
  Output x;
  Operation op;
  {
    Graph gone(TestOps());
    x = Placeholder(gone, DT_FLOAT, Shape(), "x");
    op = x;
    EXPECT_TRUE(x.valid() && op.valid());
  }
  // New nodes may be allocated at the same addresses.
  Graph g(TestOps());
  for (int i = 0; i < 200; ++i) Placeholder(g, DT_INT32, Shape({2}));
  EXPECT_FALSE(x.valid() || op.valid());
  EXPECT_TRUE(x.expired() && op.expired());
  EXPECT_EQ(x.name(), "");
  EXPECT_EQ(x.dtype(), DT_INVALID);
  EXPECT_FALSE(x.shape().has_rank());
  EXPECT_FALSE(AddOp("Identity", {x}).valid()) << "there is no graph to store the error";
  EXPECT_TRUE(g.status().ok());
  EXPECT_EQ(NodeBuilder(g, "Identity").Input(x).Build(), nullptr);
  EXPECT_EQ(g.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(g.status().message(), HasSubstr("belongs to a destroyed graph"));
  EXPECT_FALSE(Output().expired());
}

// Sessions rely on this; see Session.ANodeThatHasRunMayNotChange.
TEST(Graph, RecordsChangesOfNodesThatMayHaveRun) {
  Graph g(TestOps());
  const Output x = Placeholder(g, DT_FLOAT, Shape(), "x"), y = Placeholder(g, DT_FLOAT, Shape());
  const Output i = AddOp("Identity", {x});
  g.SetAttr(i.node, "_a", 1);
  EXPECT_TRUE(g.changes().empty());
  g.KeepChanges();
  const Output later = AddOp("Identity", {x});
  g.SetAttr(later.node, "_a", 1);
  EXPECT_TRUE(g.changes().empty());
  g.SetAttr(i.node, "_a", 2);
  EXPECT_TRUE(g.SetInput(i.node, 0, y).ok());
  EXPECT_TRUE(g.AddControlInput(i.node, x.node).ok());
  EXPECT_TRUE(g.AddControlInput(i.node, x.node).ok()) << "changes nothing";
  g.SetDevice(i.node, "/cpu:0");
  std::vector<std::string> done;
  for (const Graph::Change& change : g.changes()) {
    EXPECT_EQ(change.node, i.node);
    done.push_back(change.what);
  }
  EXPECT_THAT(done, ElementsAre("setting attribute", "updating input tensor",
                                "adding control input", "setting device"));
}

TEST(NodeBuilder, ANodeIsNamedAfterItsFirstUser) {
  Graph g(TestOps());
  const Output c = Placeholder(g, DT_FLOAT, Shape());
  const auto read = [&] {
    return NodeBuilder(g, "Identity").Name("Read").Input(c).NamedAfterUser().BuildOutput();
  };
  const Output x = read(), y = read(), z = read();
  EXPECT_EQ(y.name(), "Read_1:0");
  const Output sum = AddOp("Add", {x, y}, {}, "add");
  EXPECT_EQ(x.name(), "add/Read:0");
  EXPECT_EQ(y.name(), "add/Read_1:0");
  EXPECT_EQ(z.name(), "Read:0") << "as if there had been no others";
  EXPECT_EQ(*g.FindOutput("add/Read_1"), y);
  EXPECT_EQ(*g.FindOutput("Read"), z);
  AddOp("Add", {x, sum}, {}, "late");
  EXPECT_EQ(x.name(), "add/Read:0");
  const Output in_scope = read();
  {
    const NameScope scope(g, "f");
    const NameScope inner(g, "g");
    AddOp("Identity", {in_scope});
  }
  EXPECT_EQ(in_scope.name(), "f/Read:0") << "the outermost scope since then";
  const NameScope scope(g, "h");
  g.NameHere(z);
  EXPECT_EQ(z.name(), "h/Read:0");
  EXPECT_EQ(g.FindNode("Read"), nullptr);
  AddOp("Identity", {read()});
  EXPECT_NE(g.FindNode("h/Identity/Read"), nullptr);
  EXPECT_TRUE(g.status().ok());
}

TEST(Graph, FindOutputByName) {
  Graph g(TestOps());
  const Output x = Placeholder(g, DT_FLOAT, Shape(), "x");
  EXPECT_EQ(*g.FindOutput("x:0"), x);
  EXPECT_EQ(*g.FindOutput("x"), x);
  EXPECT_EQ(g.FindOutput("y:0").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(g.FindOutput("x:1").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(g.FindNode("x"), x.node);
  EXPECT_EQ(g.FindNode("y"), nullptr);
}

TEST(Graph, SetInputChecksTypes) {
  Graph g(TestOps());
  const Output x = Placeholder(g, DT_FLOAT, Shape()), i = Placeholder(g, DT_INT32, Shape());
  const Output y = AddOp("Identity", {x});
  EXPECT_EQ(g.SetInput(y.node, 0, i).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(g.SetInput(y.node, 1, x).code(), absl::StatusCode::kOutOfRange);
  const Output z = Placeholder(g, DT_FLOAT, Shape({1}));
  EXPECT_TRUE(g.SetInput(y.node, 0, z).ok());
  EXPECT_EQ(y.node->input(0), z);
}

TEST(Graph, SeedsFollowTensorFlow) {
  Graph g(TestOps());
  using Seeds = std::pair<int64_t, int64_t>;
  EXPECT_EQ(g.NextSeed(std::nullopt), Seeds(0, 0));
  EXPECT_EQ(g.NextSeed(7), Seeds(87654321, 7));
  g.set_seed(0);
  EXPECT_EQ(g.NextSeed(std::nullopt), Seeds(0, (int64_t{1} << 31) - 1));
  EXPECT_EQ(g.NextSeed(std::nullopt), Seeds(0, 1));
  EXPECT_EQ(g.NextSeed(5), Seeds(0, 5));
}

TEST(Graph, CollectionsKeepOrderAndFilterByScope) {
  Graph g(TestOps());
  const Output x = Placeholder(g, DT_FLOAT, Shape(), "a/x"),
               y = Placeholder(g, DT_FLOAT, Shape(), "b/y");
  g.AddToCollection("losses", x);
  g.AddToCollection("losses", y);
  g.AddToCollections({"steps", "losses", "steps"}, int64_t{3});
  EXPECT_THAT(g.collection_as<Output>("losses"), ElementsAre(x, y));
  EXPECT_EQ(g.collection("losses").size(), 3u);
  EXPECT_EQ(g.collection("losses", "a").size(), 1u);
  EXPECT_EQ(g.collection("losses", ".*y").size(), 1u);
  EXPECT_EQ(g.collection("steps").size(), 1u);
  EXPECT_THAT(g.CollectionKeys(), ElementsAre("losses", "steps"));
  g.ClearCollection("losses");
  EXPECT_TRUE(g.collection("losses").empty());
}

TEST(Graph, AThousandNodesWithOneNameAreFast) {
  Graph g(TestOps());
  constexpr int kNodes = 20000;
  for (int i = 0; i < kNodes; ++i) ASSERT_NE(NodeBuilder(g, "NoOp").Build(), nullptr);
  EXPECT_EQ(g.nodes().back()->name(), "NoOp_19999");
}

}  // namespace
}  // namespace weir
