#include "weir/ops/framework/variables.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/evaluate.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/while_loop.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/random/random.h"
#include "weir/proto/variable.pb.h"

namespace weir {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

void ExpectStatus(const absl::Status& status, absl::StatusCode code,
                  const std::vector<std::string>& parts) {
  EXPECT_EQ(status.code(), code) << status;
  for (const std::string& part : parts) EXPECT_THAT(std::string(status.message()), HasSubstr(part));
}

// Runs each test with both kinds of variables, in one session, with a graph that must remain
// without error.
class VariablesTest : public testing::TestWithParam<bool> {
 protected:
  VariablesTest() : g({.use_resource = GetParam()}) {}
  ~VariablesTest() override { EXPECT_TRUE(g.status().ok()) << g.status(); }

  void Initialize() { Run(GlobalVariablesInitializer(g)); }
  void Run(Operation op) {
    ASSERT_TRUE(g.status().ok()) << g.status();
    const absl::Status status = EvaluateTargets(g, {op}, &state);
    ASSERT_TRUE(status.ok()) << status;
  }
  absl::StatusOr<Tensor> Try(Output x) {
    if (!g.status().ok()) return g.status();
    WEIR_ASSIGN_OR_RETURN(Tensors out, Evaluate(g, {x}, &state));
    return out[0];
  }
  Tensor Value(Output x) {
    absl::StatusOr<Tensor> value = Try(x);
    EXPECT_TRUE(value.ok()) << value.status();
    return value.ok() ? *value : Tensor::Scalar(0.f);
  }
  std::vector<double> Doubles(Output x) {
    const Tensor value = Value(x);
    std::vector<double> out;
    DispatchType(value.dtype(), RealNumbers{}, [&]<class T>() {
      for (const T e : value.flat<T>()) out.push_back(static_cast<double>(e));
    });
    return out;
  }

  Graph g;
  ResourceMap state;
};
INSTANTIATE_TEST_SUITE_P(Kinds, VariablesTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Resource" : "Reference"; });

TEST_P(VariablesTest, HasTheOptionsItWasCreatedWith) {
  const NameScope scope(g, "n");
  const Variable v = MakeVariable(g, {1.0, 2.0},
                                  {.name = "w",
                                   .trainable = false,
                                   .synchronization = VariableSynchronization::kOnRead,
                                   .aggregation = VariableAggregation::kSum});
  EXPECT_EQ(v.name(), "n/w:0");
  EXPECT_EQ(v.op_name(), "n/w");
  EXPECT_EQ(v.dtype(), DT_FLOAT);
  EXPECT_EQ(v.shape(), Shape({2}));
  EXPECT_EQ(v.is_resource(), GetParam());
  EXPECT_FALSE(v.trainable());
  EXPECT_EQ(v.aggregation(), VariableAggregation::kSum);
  EXPECT_EQ(v.initializer().name(), "n/w/Assign");
  EXPECT_EQ(v.handle().node->name(), "n/w");
  EXPECT_EQ(FindVariable(g, v.handle().node), v);
}

TEST_P(VariablesTest, LiteralsHaveTensorFlowsTypes) {
  const auto type = [&](const Initializer& value) { return MakeVariable(g, value).dtype(); };
  EXPECT_EQ(type(1.5), DT_FLOAT);
  EXPECT_EQ(type(1), DT_INT32);
  EXPECT_EQ(type(int64_t{1} << 40), DT_INT64);
  EXPECT_EQ(type(true), DT_BOOL);
  EXPECT_EQ(type("text"), DT_STRING);
  EXPECT_EQ(type(std::complex<double>(1, 2)), DT_COMPLEX128);
  EXPECT_EQ(type({1, 2.5}), DT_FLOAT);
  EXPECT_EQ(type(std::vector<double>{1, 2}), DT_DOUBLE);
  EXPECT_EQ(type(Tensor::Scalar<half>(half(1.f))), DT_HALF);
  EXPECT_EQ(MakeVariable(g, {1, 2}, {.dtype = DT_BFLOAT16}).dtype(), DT_BFLOAT16);
}

TEST_P(VariablesTest, BadInitialValuesAreInvalid) {
  const auto expect = [&](const Initializer& value, const VariableOptions& options,
                          std::vector<std::string> parts) {
    EXPECT_FALSE(MakeVariable(g, value, options).valid());
    ExpectStatus(g.TakeStatus(), kInvalid, parts);
  };
  expect(Initializer(), {.name = "w"}, {"'w'", "initial_value must be specified"});
  expect(1.5, {.dtype = DT_INT32}, {"int32", "float"});
  expect(300, {.dtype = DT_INT8}, {"int8", "300"});
  expect(Literal{{1, 2}, {3}}, {}, {"[2]", "[1]"});
  expect(Const(g, 1.0f), {.dtype = DT_DOUBLE}, {"double", "float", "Const:0"});
  expect(Literal{1, 2}, {.shape = Shape({3})}, {"[2]", "[3]"});
  expect(1.0, {.trainable = true, .synchronization = VariableSynchronization::kOnRead},
         {"non-trainable"});
  expect(1.0, {.name = "w", .synchronization = static_cast<VariableSynchronization>(9)},
         {"9", "'w'"});
  expect(1.0, {.aggregation = static_cast<VariableAggregation>(7)}, {"7"});
  expect(1.0, {.name = "a b"}, {"a b"});
}

// Like errors of nodes, with the scope in which the loop's body is built.
TEST_P(VariablesTest, VariableOfALoopsTensorIsRejectedByItsFullName) {
  WhileLoop([](const Outputs& l) { return l[0] < 3; },
            [&](const Outputs& l) {
              MakeVariable(l[0] + 1, {.name = "q"});
              return Outputs{l[0] + 1};
            },
            {Const(g, 0)});
  ExpectStatus(g.TakeStatus(), kInvalid, {"Variable 'while/q': ", "pass a callable"});
}

TEST_P(VariablesTest, OnlyReferenceVariablesNeedAStaticShape) {
  const Output x = Placeholder(g, DT_FLOAT, {-1, 2}, "x");
  const Variable v = MakeVariable(g, x, {.name = "v"});
  EXPECT_EQ(v.valid(), GetParam());
  if (!GetParam())
    ExpectStatus(g.TakeStatus(), kInvalid, {"x:0", "initial_value must have a shape specified"});
}

TEST_P(VariablesTest, VariablesAreInTheRequestedCollections) {
  const Variable a = MakeVariable(g, 1.0, {.name = "a"});
  const Variable b = MakeVariable(g, 1.0, {.name = "b", .trainable = false});
  const Variable c = MakeVariable(g, 1.0, {.name = "c", .collections = {{"mine"}}});
  EXPECT_THAT(GlobalVariables(g), ElementsAre(a, b));
  EXPECT_THAT(TrainableVariables(g), ElementsAre(a, c));
  EXPECT_THAT(VariablesIn(g, "mine"), ElementsAre(c));
  EXPECT_THAT(GlobalVariables(g, "b"), ElementsAre(b));
}

TEST_P(VariablesTest, ActiveControlDependenciesDoNotAttach) {
  const Operation before = NoOp(g, "before");
  const ControlDependencies after(g, {before});
  const Variable v = MakeVariable(g, {1.0, 2.0});
  for (const auto& node : g.nodes()) EXPECT_TRUE(node->control_inputs().empty()) << node->name();
  EXPECT_EQ(v.read_value().node->control_inputs().empty(),
            GetParam());  // resource: on the read after the Identity
  const Output read = v.read_value();
  const Node* reader = GetParam() ? read.node->input(0).node : read.node;
  ASSERT_EQ(reader->control_inputs().size(), 1u);
}

TEST_P(VariablesTest, TextForm) {
  const std::string ref = GetParam() ? "" : "_ref";
  EXPECT_EQ(MakeVariable(g, {{1.0}, {2.0}}, {.name = "w"}).ToString(),
            "<tf.Variable 'w:0' shape=(2, 1) dtype=float32" + ref + ">");
  EXPECT_EQ(MakeVariable(g, {1, 2}, {.name = "i"}).ToString(),
            "<tf.Variable 'i:0' shape=(2,) dtype=int32" + ref + ">");
  const Output x = Placeholder(g, DT_STRING);
  EXPECT_EQ(MakeVariable(g, x, {.name = "s", .validate_shape = false}).ToString(),
            "<tf.Variable 's:0' shape=<unknown> dtype=string" + ref + ">");
}

TEST_P(VariablesTest, InitializesReadsAndWrites) {
  const Variable v = MakeVariable(g, {1.0, 2.0}, {.name = "v"});
  Initialize();
  EXPECT_THAT(Doubles(v), ElementsAre(1, 2));
  EXPECT_THAT(Doubles(v.AssignAdd({1, 2})), ElementsAre(2, 4));
  EXPECT_THAT(Doubles(v.AssignSub({0.5, 0.5})), ElementsAre(1.5, 3.5));
  EXPECT_THAT(Doubles(v.Assign({5, 6})), ElementsAre(5, 6));
  Run(v.Assign({7, 8}, {.read_value = false}));
  EXPECT_THAT(Doubles(v + v * 2.0f), ElementsAre(21, 24));
  Initialize();
  EXPECT_THAT(Doubles(v), ElementsAre(1, 2));
}

TEST_P(VariablesTest, ReadAfterAWriteSeesIt) {
  const Variable v = MakeVariable(g, 1.0);
  Initialize();
  const Output write = v.AssignAdd(1.0);
  const ControlDependencies after(g, {write});
  EXPECT_THAT(Doubles(v.read_value()), ElementsAre(2));
}

TEST_P(VariablesTest, ReadingWithoutAValueFailsWithItsName) {
  const Variable v = MakeVariable(g, 1.0, {.name = "lonely"});
  ExpectStatus(Try(v).status(), absl::StatusCode::kFailedPrecondition, {"lonely"});
  ExpectStatus(Try(v.AssignAdd(1.0)).status(), absl::StatusCode::kFailedPrecondition, {"lonely"});
}

TEST_P(VariablesTest, WritesOfTheWrongTypeOrShapeAreInvalid) {
  const Variable v = MakeVariable(g, {1, 2}, {.name = "v"});
  EXPECT_FALSE(v.Assign(1.5).valid());
  ExpectStatus(g.TakeStatus(), kInvalid, {"int32", "float"});
  EXPECT_FALSE(v.AssignAdd(Const(g, {1.f, 2.f})).valid());
  ExpectStatus(g.TakeStatus(), kInvalid, {"int32", "float"});
  EXPECT_FALSE(v.Assign({1, 2, 3}).valid());
  ExpectStatus(g.TakeStatus(), kInvalid, {"v:0", "(2,)", "(3,)"});
  EXPECT_FALSE(v.AssignSub({1, 2, 3}).valid());
  ExpectStatus(g.TakeStatus(), kInvalid, {"v:0", "(2,)", "(3,)"});
  Initialize();
  const Output x = Placeholder(g, DT_INT32);
  const auto out = Evaluate(g, {{x, Tensor::Vector<int32_t>({1, 2, 3})}}, {v.Assign(x)}, &state);
  ExpectStatus(out.status(), kInvalid, {"[2]", "[3]"});
  EXPECT_THAT(Doubles(v), ElementsAre(1, 2));
}

TEST_P(VariablesTest, ScattersRows) {
  const Variable v = MakeVariable(g, {{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}});
  Initialize();
  const IndexedSlices rows = {.values = Const<float>(g, Shape({2, 2}), {10, 20, 30, 40}),
                              .indices = Const<int32_t>(g, {2, 2})};
  EXPECT_THAT(Doubles(v.ScatterAdd(rows)), ElementsAre(1, 2, 3, 4, 45, 66));
  EXPECT_THAT(Doubles(v.ScatterSub(rows)), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(Doubles(v.ScatterMax(rows)), ElementsAre(1, 2, 3, 4, 30, 40));
  const Output indices = Const<int32_t>(g, Shape({2, 2}), {0, 1, 2, 0});
  EXPECT_THAT(Doubles(v.ScatterNdUpdate(indices, Const(g, {-1.f, -2.f}))),
              ElementsAre(1, -1, 3, 4, -2, 40));
  EXPECT_THAT(Doubles(v.SparseRead(Const<int32_t>(g, {1}))), ElementsAre(3, 4));
  EXPECT_THAT(Doubles(v.GatherNd(Const<int32_t>(g, Shape({1, 2}), {1, 1}))), ElementsAre(4));
}

TEST_P(VariablesTest, BatchScatterUpdateWorksRowByRow) {
  const Variable v = MakeVariable(g, {{1.0, 2.0}, {3.0, 4.0}});
  Initialize();
  const IndexedSlices rows = {.values = Const<float>(g, Shape({2, 1}), {10, 20}),
                              .indices = Const<int32_t>(g, Shape({2, 1}), {1, 0})};
  EXPECT_THAT(Doubles(v.BatchScatterUpdate(rows)), ElementsAre(1, 10, 20, 4));
}

TEST_P(VariablesTest, SlicesReadAndWrite) {
  const Variable v = MakeVariable(g, {{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}});
  Initialize();
  EXPECT_THAT(Doubles(v.Slice({1, Index::Range(0, 2)})), ElementsAre(4, 5));
  EXPECT_THAT(Doubles(v.Slice({Index::Ellipsis(), 0}).Assign({7, 8})),
              ElementsAre(7, 2, 3, 8, 5, 6));
}

TEST_P(VariablesTest, CountsUpToALimit) {
  const Variable v = MakeVariable(g, 0, {.name = "n"});
  Initialize();
  const Output count = v.CountUpTo(2);
  EXPECT_THAT(Doubles(count), ElementsAre(0));
  EXPECT_THAT(Doubles(count), ElementsAre(1));
  ExpectStatus(Try(count).status(), absl::StatusCode::kOutOfRange, {"Reached limit of 2"});
}

TEST_P(VariablesTest, ReportsUninitializedVariables) {
  const Variable a = MakeVariable(g, 1.0, {.name = "a"});
  GetLocalVariable(g, "b", {1}, {.initializer = Zeros()});
  const Output report = ReportUninitializedVariables(g);
  const auto names = [&] {
    const Tensor t = Value(report);
    const auto list = t.flat<std::string>();
    return std::vector<std::string>(list.begin(), list.end());
  };
  const Operation check = AssertVariablesInitialized(g);
  EXPECT_THAT(names(), ElementsAre("a", "b"));
  ExpectStatus(EvaluateTargets(g, {check}, &state), absl::StatusCode::kFailedPrecondition, {"a"});
  EXPECT_FALSE(Value(IsVariableInitialized(a)).scalar<bool>());
  Initialize();
  EXPECT_THAT(names(), ElementsAre("b"));
  EXPECT_TRUE(Value(IsVariableInitialized(a)).scalar<bool>());
  Run(LocalVariablesInitializer(g));
  EXPECT_THAT(names(), ElementsAre());
  Run(check);
  EXPECT_EQ(Value(ReportUninitializedVariables(g, Variables{})).shape(), Shape({0}));
}

TEST_P(VariablesTest, ShapedInitializerNeedsAShape) {
  EXPECT_EQ(MakeVariable(g, Zeros(), {.name = "z"}), Variable());
  ExpectStatus(g.TakeStatus(), kInvalid, {"Variable 'z'", "shape"});
  EXPECT_EQ(MakeVariable(g, Zeros(), {.shape = Shape({2}), .name = "z"}).shape(), Shape({2}));
  EXPECT_EQ(MakeVariable(g, Zeros(), {.shape = Shape()}).shape(), Shape());
}

// The dialect is RE2's: neither long names nor nested stars take exponential time or stack.
TEST_P(VariablesTest, FiltersOfAnyLengthTerminate) {
  const std::string name(50000, 'a');
  const Variable v = MakeVariable(g, 1.0f, {.name = name});
  EXPECT_THAT(GlobalVariables(g, "a*"), ElementsAre(v));
  EXPECT_THAT(GlobalVariables(g, "(a*)*c"), ElementsAre());
  EXPECT_THAT(GlobalVariables(g, "b"), ElementsAre());
  EXPECT_TRUE(g.status().ok()) << g.status();
}

TEST_P(VariablesTest, InvalidPatternIsAnError) {
  MakeVariable(g, 1.0f, {.name = "a"});
  for (const char* filter : {"(", "a(?=b)", "(a)\\1", "[", "*"}) {
    EXPECT_THAT(GlobalVariables(g, filter), ElementsAre());
    ExpectStatus(g.TakeStatus(), kInvalid, {filter, "variables"});
  }
}

TEST_P(VariablesTest, InitializersOfNoVariablesAreOps) {
  EXPECT_EQ(GlobalVariablesInitializer(g).name(), "init");
  EXPECT_EQ(LocalVariablesInitializer(g).name(), "init_1");
  EXPECT_FALSE(AssertVariablesInitialized(g).valid());
}

TEST_P(VariablesTest, GlobalStepIsCreatedOnce) {
  EXPECT_FALSE(GetGlobalStep(g).valid());
  const Variable step = GetOrCreateGlobalStep(g);
  EXPECT_EQ(step.name(), "global_step:0");
  EXPECT_EQ(step.dtype(), DT_INT64);
  EXPECT_FALSE(step.trainable());
  EXPECT_EQ(GetOrCreateGlobalStep(g), step);
  EXPECT_THAT(VariablesIn(g, "global_step"), ElementsAre(step));
  EXPECT_FALSE(CreateGlobalStep(g).valid());
  ExpectStatus(g.TakeStatus(), absl::StatusCode::kAlreadyExists, {"global_step"});
}

TEST_P(VariablesTest, SurvivesSerialization) {
  const VariableScope scope(g, "s");
  const Variable v = GetVariable(g, "v", {2}, {.trainable = false});
  proto::VariableDef def, again;
  ASSERT_TRUE(v.ToProto(&def));
  EXPECT_EQ(def.variable_name(), "s/v:0");
  EXPECT_EQ(def.initializer_name(), "s/v/Assign");
  EXPECT_EQ(def.snapshot_name(), GetParam() ? "s/v/Read/ReadVariableOp:0" : "s/v/read:0");
  EXPECT_EQ(def.initial_value_name(), "s/v/Initializer/random_uniform:0");
  EXPECT_EQ(def.is_resource(), GetParam());
  const int nodes = g.num_nodes();
  const absl::StatusOr<Variable> back = Variable::FromProto(g, def);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(g.num_nodes(), nodes);
  EXPECT_EQ(*back, v);
  EXPECT_EQ(back->shape(), v.shape());
  ASSERT_TRUE(back->ToProto(&again));
  EXPECT_EQ(again.SerializeAsString(), def.SerializeAsString());

  ASSERT_TRUE(v.ToProto(&def, "s"));
  EXPECT_EQ(def.variable_name(), "v:0");
  EXPECT_TRUE(Variable::FromProto(g, def, "s").ok());
  EXPECT_FALSE(v.ToProto(&again, "other"));
  ExpectStatus(Variable::FromProto(g, def, "other").status(), absl::StatusCode::kNotFound,
               {"other/v:0"});
}

TEST_P(VariablesTest, EmptyHandlesReturnNothing) {
  const Variable none;
  EXPECT_FALSE(none.value().valid());
  EXPECT_FALSE(none.Assign(1.0).valid());
  EXPECT_FALSE(none.AssignAdd(1.0).valid());
  EXPECT_FALSE(none.ScatterAdd({}).valid());
  EXPECT_FALSE(none.initialized_value().valid());
  EXPECT_FALSE(none.Slice({0}).Assign(1.0).valid());
  EXPECT_FALSE(MakeVariable(Output()).valid());
  EXPECT_EQ(none.name(), "");
}

TEST_P(VariablesTest, VariableAsInitialValueHasItsOwnStorage) {
  const Variable a = MakeVariable(g, {1.0, 2.0}, {.name = "a"});
  const Variable b = MakeVariable(g, [&] { return a.value() * 2.0f; }, {.name = "b"});
  Run(a.initializer());
  if (GetParam()) {  // a cond, which needs a session, guards a reference variable's value
    Run(b.initializer());
    Run(a.Assign({5.0, 6.0}));
    EXPECT_THAT(Doubles(b), ElementsAre(2, 4));
  }
}

TEST_P(VariablesTest, CachedVariablesAreReadOnce) {
  const Variable v = MakeVariable(g, 1.0, {.caching_device = "/cpu:0"});
  EXPECT_EQ(v.value(), v.value());
  EXPECT_EQ(v.value().node->device(), "/device:CPU:0");
}

TEST_P(VariablesTest, OperationsLiveWithTheVariable) {
  Variable v;
  {
    const DeviceScope ps(g, "/job:ps");
    v = MakeVariable(g, 1.0, {.name = "v"});
  }
  const DeviceScope worker(g, "/job:worker");
  EXPECT_EQ(v.handle().node->device(), "/job:ps");
  EXPECT_EQ(v.initializer().node->device(), "/job:ps");
  if (!GetParam()) {
    EXPECT_EQ(v.AssignAdd(1.0).node->device(), "/job:ps");
  }
}

TEST_P(VariablesTest, StaticShapesCanOnlyBecomeMoreSpecific) {
  const Output x = PlaceholderWithDefault(Const(g, {1.f, 2.f}), {-1});
  Variable v = MakeVariable(g, x, {.validate_shape = false});
  v.set_shape({2});
  EXPECT_EQ(v.shape(), Shape({2}));
  v.set_shape({3});
  ExpectStatus(g.TakeStatus(), kInvalid, {"set_shape"});
}

TEST(Literal, KeepsTheShapeOfNestedLists) {
  const auto tensor = Literal{{1, 2, 3}, {4, 5, 6}}.Make();
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->shape(), Shape({2, 3}));
  EXPECT_THAT(tensor->flat<int32_t>(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ((Literal{{"a"}, {"b"}}).Make()->shape(), Shape({2, 1}));
  EXPECT_FALSE((Literal{1, "a"}).Make().ok());
  EXPECT_FALSE(Literal(true).Make(DT_FLOAT).ok());
  EXPECT_EQ(Literal(uint64_t{1} << 63).Make(DT_UINT64)->scalar<uint64_t>(), uint64_t{1} << 63);
  EXPECT_FALSE(Literal(-1).Make(DT_UINT8).ok());
}

}  // namespace
}  // namespace weir
