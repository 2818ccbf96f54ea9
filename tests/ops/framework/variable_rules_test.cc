// Rules of variables, scopes and collections that no other test covers. tests/variable_rules.txt
// lists all rules and their tests.

#include <thread>
#include <type_traits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/core/io/graph_io.h"
#include "weir/core/tensor/allocator.h"
#include "weir/ops/framework/cond.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/state.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/random/random.h"
#include "weir/ops/train/optimizers.h"
#include "weir/proto/graph.pb.h"
#include "weir/proto/variable.pb.h"
#include "weir/session/session.h"

namespace weir {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Names(const Variables& variables) {
  std::vector<std::string> names;
  for (const Variable& v : variables) names.push_back(v.name());
  return names;
}

// Runs each test with both kinds of variables, in a graph that must remain without error, and one
// session of it.
class VariableRules : public testing::TestWithParam<bool> {
 protected:
  VariableRules() : g({.use_resource = GetParam()}) {}
  ~VariableRules() override { EXPECT_TRUE(g.status().ok()) << g.status(); }

  Session& session() {
    if (!session_) {
      EXPECT_TRUE(g.status().ok()) << g.status();
      session_.emplace(*Session::Create(g));
    }
    return *session_;
  }
  void Initialize() { Run(GlobalVariablesInitializer(g)); }
  void Run(Operation op) {
    const absl::Status status = session().Run(op);
    EXPECT_TRUE(status.ok()) << status;
  }
  Tensor Value(Output x, const Feeds& feeds = {}) {
    const absl::StatusOr<Tensors> out = session().Run(feeds, {x});
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? (*out)[0] : Tensor::Zeros(x.dtype(), {});
  }
  std::vector<double> Values(Output x, const Feeds& feeds = {}) {
    const Tensor value = Value(x, feeds);
    std::vector<double> out;
    DispatchType(value.dtype(), RealNumbers{}, [&]<class T>() {
      for (const T e : value.flat<T>()) out.push_back(static_cast<double>(e));
    });
    return out;
  }
  void ExpectError(absl::StatusCode code, const std::string& part) {
    const absl::Status status = g.TakeStatus();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }

  Graph g;
  std::optional<Session> session_;
};
INSTANTIATE_TEST_SUITE_P(Kinds, VariableRules, testing::Bool(),
                         [](const auto& info) { return info.param ? "Resource" : "Reference"; });

// ---- creation

TEST_P(VariableRules, KindComesFromArgumentThenScopeThenGraph) {
  const bool kind = GetParam();
  EXPECT_EQ(MakeVariable(g, 1.0).is_resource(), kind);
  EXPECT_EQ(GetVariable(g, "v", {1}).is_resource(), kind);
  EXPECT_EQ(MakeVariable(g, 1.0, {.use_resource = !kind}).is_resource(), !kind);
  const VariableScope scope(g, "s", {.use_resource = !kind});
  const VariableScope inner(g, "inner");
  EXPECT_EQ(GetVariable(g, "v", {1}).is_resource(), !kind);
  EXPECT_EQ(GetVariable(g, "w", {1}, {.use_resource = kind}).is_resource(), kind);
}

TEST_P(VariableRules, ShapeMayBeLessSpecificThanTheInitialValues) {
  const Variable row = MakeVariable(g, {1.0, 2.0}, {.shape = Shape({-1})});
  EXPECT_EQ(row.shape(), Shape({-1}));
  const Variable any = MakeVariable(g, {1.0, 2.0}, {.shape = Shape::UnknownRank()});
  EXPECT_FALSE(any.shape().has_rank());
  EXPECT_EQ(any.dtype(), DT_FLOAT);
  Initialize();
  EXPECT_THAT(Values(row), ElementsAre(1, 2));
  EXPECT_THAT(Values(any), ElementsAre(1, 2));
}

TEST_P(VariableRules, StoredShapeChangesIfTheDeclaredOneAllows) {
  const Variable v = GetParam() ? MakeVariable(g, {1.0, 2.0}, {.shape = Shape({-1})})
                                : MakeVariable(g, {1.0, 2.0}, {.validate_shape = false});
  Initialize();
  Run(v.Assign({3.0, 4.0, 5.0}, {.read_value = false, .validate_shape = GetParam()}));
  EXPECT_THAT(Values(v), ElementsAre(3, 4, 5));
}

TEST_P(VariableRules, WithoutValidationTheShapeMayBeUnknown) {
  const Output x = Placeholder(g, DT_FLOAT);
  const Variable v = MakeVariable(g, x, {.name = "v", .validate_shape = false});
  EXPECT_FALSE(v.shape().has_rank());
  EXPECT_FALSE(v.initializer().node->attr<bool>("validate_shape"));
  const Feeds feeds = {{x, Tensor::Vector<float>({1, 2, 3})}};
  ASSERT_TRUE(session().Run(feeds, {}, {v.initializer()}).ok());
  EXPECT_THAT(Values(v), ElementsAre(1, 2, 3));
}

TEST_P(VariableRules, CallableIsCalledOnceWithoutControlsAndLivesWithTheVariable) {
  int calls = 0;
  Output made;
  const Operation before = NoOp(g, "before");
  const DeviceScope cpu(g, "/cpu:0");
  const ControlDependencies after(g, {before});
  const Variable v = MakeVariable(g,
                                  [&] {
                                    ++calls;
                                    return made = Const(g, {1.5f}, "made");
                                  },
                                  {.name = "v"});
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(made.node->control_inputs().empty());
  EXPECT_EQ(v.initial_value(), made);
  EXPECT_EQ(v.device(), "/device:CPU:0");
  EXPECT_THAT(made.node->colocations(), ElementsAre("v"));
  EXPECT_EQ(v.dtype(), DT_FLOAT);
  EXPECT_FALSE(
      MakeVariable(g, [&] { return Const(g, 1); }, {.name = "w", .dtype = DT_FLOAT}).valid());
  ExpectError(absl::StatusCode::kInvalidArgument, "int32");
}

TEST_P(VariableRules, ControlDependenciesDoNotAttachToACachedRead) {
  const Operation before = NoOp(g, "before");
  const ControlDependencies after(g, {before});
  const Variable v = MakeVariable(g, 1.0, {.caching_device = "/cpu:0"});
  EXPECT_TRUE(v.value().valid());
  for (const auto& node : g.nodes()) EXPECT_TRUE(node->control_inputs().empty()) << node->name();
}

TEST_P(VariableRules, NamesAreUniqueInTheNameScope) {
  EXPECT_EQ(MakeVariable(g, 1.0).name(), "Variable:0");
  EXPECT_EQ(MakeVariable(g, 1.0).name(), "Variable_1:0");
  const NameScope scope(g, "n");
  EXPECT_EQ(MakeVariable(g, 1.0, {.name = "w"}).name(), "n/w:0");
  EXPECT_EQ(MakeVariable(g, 1.0, {.name = "w"}).name(), "n/w_1:0");
}

TEST_P(VariableRules, VariableAsInitialValueIsCopiedInOneRun) {
  const Variable a = MakeVariable(g, {1.0, 2.0}, {.name = "a"});
  const Variable b = MakeVariable(g, a, {.name = "b"});
  const Operation change = b.Assign({5.0, 6.0});
  Initialize();
  EXPECT_THAT(Values(b), ElementsAre(1, 2));
  Run(change);
  EXPECT_THAT(Values(a), ElementsAre(1, 2));
  EXPECT_THAT(Values(b), ElementsAre(5, 6));
}

// ---- GetVariable and scopes

TEST_P(VariableRules, GetVariableDefaults) {
  const Variable f = GetVariable(g, "f", {2});
  EXPECT_EQ(f.dtype(), DT_FLOAT);
  EXPECT_EQ(f.initial_value().name(), "f/Initializer/random_uniform:0");
  Initialize();
  for (const DataType dtype : {DT_INT32, DT_UINT8, DT_INT64}) {
    const Variable v = GetVariable(g, DataTypeName(dtype), {2}, {.dtype = dtype});
    Run(v.initializer());
    EXPECT_THAT(Values(v), ElementsAre(0, 0));
  }
  const Variable b = GetVariable(g, "b", {2}, {.dtype = DT_BOOL});
  const Variable s = GetVariable(g, "s", {2}, {.dtype = DT_STRING});
  Run(b.initializer());
  Run(s.initializer());
  EXPECT_THAT(Value(b).flat<bool>(), Each(false));
  EXPECT_THAT(Value(s).flat<std::string>(), Each(""));
}

TEST_P(VariableRules, ShapeComesFromATensorLiteralOrCallable) {
  EXPECT_EQ(GetVariable(g, "literal", {.initializer = Literal{1, 2}}).shape(), Shape({2}));
  EXPECT_EQ(GetVariable(g, "tensor", {.initializer = Const(g, {1.f})}).shape(), Shape({1}));
  const auto three = [this] { return Const(g, {1.f, 2.f, 3.f}); };
  EXPECT_EQ(GetVariable(g, "callable", {.initializer = three}).shape(), Shape({3}));
}

TEST_P(VariableRules, RegularizerIsCalledOnceAtCreation) {
  int calls = 0;
  const auto regularizer = [&calls](const Variable& v) {
    return ++calls == 1 ? ReduceSum(v.value()) : Output();
  };
  GetVariable(g, "v", {1}, {.regularizer = regularizer});
  {
    const VariableScope again(g, "", Reuse::kReuse);
    GetVariable(g, "v", {1}, {.regularizer = regularizer});
  }
  EXPECT_EQ(calls, 1);
  GetVariable(g, "nothing", {1}, {.regularizer = regularizer});
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(g.collection(collections::kRegularizationLosses).size(), 1u);
}

TEST_P(VariableRules, OriginalNameScopeIsOpenedAgain) {
  { const NameScope taken(g, "foo"); }
  const VariableScopeRef foo = VariableScope(g, "foo").scope();
  EXPECT_EQ(foo->original_name_scope, "foo_1/");
  {
    const VariableScope scope(g, foo, {.auxiliary_name_scope = false});
    EXPECT_EQ(g.name_scope(), "");
    EXPECT_EQ(GetVariable(g, "v", {1}).name(), "foo/v:0");
    const NameScope ops(g, scope.original_name_scope());
    EXPECT_EQ(Const(g, 1.f, "c").name(), "foo_1/c:0");
  }
  const VariableScope plain(g, "plain", {.auxiliary_name_scope = false});
  EXPECT_EQ(Const(g, 1.f, "c").name(), "c:0");
}

TEST_P(VariableRules, CachingDeviceIsInherited) {
  const VariableScope outer(g, "a", {.caching_device = "/cpu:0"});
  const VariableScope inner(g, "b");
  const Variable v = GetVariable(g, "v", {1});
  EXPECT_EQ(v.value(), v.value());
  EXPECT_EQ(v.value().node->device(), "/device:CPU:0");
}

TEST_P(VariableRules, RootScopeIsEmptyAndBelongsToItsGraph) {
  Graph other;
  const VariableScope scope(g, "a", {.reuse = Reuse::kAuto, .dtype = DT_DOUBLE});
  EXPECT_EQ(CurrentVariableScope(g)->name, "a");
  const VariableScopeRef root = CurrentVariableScope(other);
  EXPECT_EQ(root->name, "");
  EXPECT_EQ(root->reuse, Reuse::kCreate);
  EXPECT_EQ(root->dtype, DT_FLOAT);
}

// ---- collections

struct Note : CollectionObject {
  explicit Note(std::string text) : text(std::move(text)) {}
  std::string text;
};

TEST_P(VariableRules, CollectionsHoldAnythingUnderAnyName) {
  const Variable v = MakeVariable(g, 1.0, {.name = "v"});
  const std::shared_ptr<CollectionObject> note = std::make_shared<Note>("hello");
  const char* key = "any name, even this one";
  for (const CollectionItem& item :
       {CollectionItem(int64_t{3}), CollectionItem(2.5f), CollectionItem(std::string("text")),
        CollectionItem(v.value()), CollectionItem(v.initializer()), CollectionItem(note),
        CollectionItem(note)}) {
    g.AddToCollection(key, item);
  }
  EXPECT_EQ(g.collection(key).size(), 7u);
  const auto back = std::get<std::shared_ptr<CollectionObject>>(g.collection(key)[5]);
  EXPECT_EQ(static_cast<const Note&>(*back).text, "hello");
  EXPECT_EQ(g.collection(key, ".*").size(), 2u) << "a tensor and an op; the rest has no name";
  EXPECT_TRUE(g.collection("never used").empty());
  EXPECT_THAT(g.CollectionKeys(), testing::Not(testing::Contains("never used")));
}

TEST_P(VariableRules, CollectionIsACopyAndIsReplacedAsAWhole) {
  g.AddToCollection("n", int64_t{1});
  std::vector<CollectionItem> items = g.collection("n");
  items.push_back(int64_t{2});
  EXPECT_EQ(g.collection("n").size(), 1u);
  g.SetCollection("n", items);
  EXPECT_EQ(g.collection_as<int64_t>("n"), (std::vector<int64_t>{1, 2}));
  g.SetCollection("made", {});
  EXPECT_THAT(g.CollectionKeys(), testing::Contains("made"));
}

TEST_P(VariableRules, CollectionHoldsTheVariableNotAReadOfIt) {
  const Variable v = MakeVariable(g, 1.0, {.name = "v"}), w = MakeVariable(g, 2.0, {.name = "w"});
  const size_t nodes = g.nodes().size();
  g.AddToCollection("mine", v);
  g.AddToCollections({"mine", "others"}, w);
  g.AddToCollection("mine", w + 1.f);
  g.SetCollection("set", {v, w});
  EXPECT_THAT(g.collection_as<Variable>("mine"), ElementsAre(v, w));
  EXPECT_THAT(g.collection_as<Variable>("set"), ElementsAre(v, w));
  EXPECT_THAT(VariablesIn(g, "mine", "w"), ElementsAre(w));
  EXPECT_EQ(g.collection_as<Output>("mine").size(), 1u);
  EXPECT_EQ(g.nodes().size() - nodes, GetParam() ? 3u : 2u) << "only those of the sum";
}

TEST_P(VariableRules, InvalidVariableInACollectionHasNoName) {
  g.AddToCollection("mine", Variable());
  EXPECT_EQ(g.collection("mine").size(), 1u);
  EXPECT_TRUE(g.collection("mine", ".*").empty());
  EXPECT_TRUE(g.collection_as<Variable>("mine").empty());
}

TEST_P(VariableRules, LiveCollectionIsTheListItself) {
  std::vector<CollectionItem>& live = g.LiveCollection("n");
  EXPECT_THAT(g.CollectionKeys(), testing::Contains("n"));
  live.push_back(int64_t{1});
  g.AddToCollection("n", int64_t{2});
  g.AddToCollection("a", int64_t{3});
  EXPECT_EQ(live.size(), 2u);
  live.erase(live.begin());
  EXPECT_EQ(g.collection_as<int64_t>("n"), std::vector<int64_t>{2});
  g.SetCollection("n", {int64_t{5}, int64_t{6}});
  EXPECT_EQ(live.size(), 2u);
  g.ClearCollection("n");
  EXPECT_THAT(g.CollectionKeys(), testing::Not(testing::Contains("n")));
  live.push_back(int64_t{7});  // no longer the graph's
  EXPECT_TRUE(g.collection("n").empty());
}

TEST_P(VariableRules, TrainableLocalVariablesAreReported) {
  ::testing::internal::CaptureStderr();
  const Variable v =
      MakeVariable(g, 1.0, {.name = "v", .collections = {{collections::kLocalVariables}}});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("'v'"));
  EXPECT_TRUE(v.trainable());
  EXPECT_THAT(TrainableVariables(g), ElementsAre(v));
  EXPECT_TRUE(GlobalVariables(g).empty());
}

TEST_P(VariableRules, ListsOfVariablesAreCollections) {
  const auto make = [this](const char* name, const char* key) {
    return MakeVariable(g, 1.0, {.name = name, .trainable = false, .collections = {{key}}});
  };
  make("a/local", collections::kLocalVariables);
  make("a/model", collections::kModelVariables);
  make("a/average", collections::kMovingAverageVariables);
  make("a/metric", collections::kMetricVariables);
  make("a/global", collections::kGlobalVariables);
  make("b/global", collections::kGlobalVariables);
  EXPECT_THAT(Names(LocalVariables(g)), ElementsAre("a/local:0"));
  EXPECT_THAT(Names(ModelVariables(g)), ElementsAre("a/model:0"));
  EXPECT_THAT(Names(MovingAverageVariables(g)), ElementsAre("a/average:0"));
  EXPECT_THAT(Names(MetricVariables(g)), ElementsAre("a/metric:0"));
  EXPECT_THAT(Names(GlobalVariables(g)), ElementsAre("a/global:0", "b/global:0"));
  EXPECT_THAT(Names(GlobalVariables(g, "b/")), ElementsAre("b/global:0"));
  EXPECT_TRUE(GlobalVariables(g, "global").empty()) << "the pattern is anchored at the start";
  EXPECT_TRUE(TrainableVariables(g).empty());
}

TEST_P(VariableRules, CollectionsMayBeUsedFromManyThreads) {
  constexpr int kThreads = 4, kItems = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < kItems; ++i) {
        g.AddToCollection("n", int64_t{i});
        EXPECT_FALSE(g.collection("n").empty());
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(g.collection("n").size(), static_cast<size_t>(kThreads * kItems));
}

// ---- initialization, reading

TEST_P(VariableRules, AnyAssignmentInitializes) {
  const Variable v = MakeVariable(g, {1.0, 2.0}, {.name = "v"});
  const Output report = ReportUninitializedVariables(g);
  const Operation write = v.Assign({3.0, 4.0}, {.read_value = false});
  EXPECT_EQ(Value(report).num_elements(), 1);
  Run(write);
  EXPECT_EQ(Value(report).num_elements(), 0);
  EXPECT_THAT(Values(v), ElementsAre(3, 4));
}

TEST_P(VariableRules, InitializersOfAnImportedGraphRunInDependencyOrder) {
  const Variable a = GetVariable(g, "a", {4}, RandomUniformInitializer());
  const Variable b = MakeVariable(g, [&] { return a * 2.f; }, {.name = "b"});
  VariablesInitializer(g, {b, a});
  ReduceSum(b - a * 2.f);
  proto::GraphDef def;
  ExportGraphDef(g, &def);
  Graph imported;
  ASSERT_TRUE(ImportGraphDef(imported, def).ok());
  EXPECT_TRUE(GlobalVariables(imported).empty()) << "nodes are all there is";
  Session other = *Session::Create(imported);
  ASSERT_TRUE(other.Run({}, {}, {"init"}).ok());
  EXPECT_EQ((*other.Run({}, {"Sum:0"}, {}))[0].scalar<float>(), 0);
}

TEST_P(VariableRules, ReferencesShareOneReadAndResourcesAddANewOne) {
  const Variable v = MakeVariable(g, {1.0, 2.0}, {.name = "v"});
  const NameScope reader(g, "reader");
  if (GetParam()) {
    EXPECT_EQ(v.value().name(), "reader/ReadVariableOp:0");
    EXPECT_EQ(v.value().name(), "reader/ReadVariableOp_1:0");
  } else {
    EXPECT_EQ(v.value().name(), "v/read:0");
    EXPECT_EQ(v.value(), v.value());
  }
  EXPECT_NE(v.read_value(), v.read_value());
}

TEST_P(VariableRules, FunctionsOfTheValueDoNotChangeTheVariable) {
  const Variable v = MakeVariable(g, {{1.0, 5.0}, {4.0, 2.0}}, {.name = "v"});
  const Output flat = Reshape(v, {4}), largest = ArgMax(v, 1);
  EXPECT_EQ(flat.shape(), Shape({4}));
  EXPECT_EQ(v.shape(), Shape({2, 2}));
  Initialize();
  EXPECT_THAT(Values(flat), ElementsAre(1, 5, 4, 2));
  EXPECT_THAT(Values(largest), ElementsAre(1, 0));
  EXPECT_EQ(Value(v).shape(), Shape({2, 2}));
}

template <class T>
concept HasLength = requires(const T& v) {
  v.size();
};
template <class T>
concept IsARange = requires(const T& v) {
  v.begin();
};

TEST_P(VariableRules, HandlesHaveNoTruthLengthOrIteration) {
  static_assert(!std::is_convertible_v<Variable, bool>);
  static_assert(!HasLength<Variable> && !IsARange<Variable>);
  static_assert(!HasLength<Output> && !IsARange<Output>);
}

TEST_P(VariableRules, EqualityOfHandlesIsIdentity) {
  const Variable a = MakeVariable(g, 1.0, {.name = "a"}), b = MakeVariable(g, 1.0, {.name = "b"});
  const Variable copy = a;
  EXPECT_TRUE(a == copy);
  EXPECT_TRUE(a != b);
  const int nodes = g.num_nodes();
  EXPECT_FALSE(a == b);
  EXPECT_EQ(g.num_nodes(), nodes);
  const Output equal = Equal(a, b);
  Initialize();
  EXPECT_TRUE(Value(equal).scalar<bool>());
}

// ---- writing

TEST_P(VariableRules, WritesFromManyThreadsAreNotTorn) {
  constexpr int kSize = 1000, kThreads = 3, kRounds = 100;
  const Variable v = MakeVariable(g, Tensor::Zeros(DT_FLOAT, {kSize}), {.name = "v"});
  const Variable sum = MakeVariable(g, 0.0, {.name = "sum"});
  const Output x = Placeholder(g, DT_FLOAT, {});
  const Operation fill = v.Assign(Fill({kSize}, x), {.read_value = false});
  const Operation add = sum.AssignAdd(1.0, {.use_locking = true, .read_value = false});
  const Output value = v.value();
  Initialize();
  std::vector<std::thread> threads;
  for (int t = 1; t <= kThreads; ++t) {
    threads.emplace_back([&, t] {
      const Feeds mine = {{x, Tensor::Scalar(static_cast<float>(t))}};
      for (int i = 0; i < kRounds; ++i) {
        EXPECT_TRUE(session().Run(mine, {}, {fill, add}).ok());
        const Tensor seen = (*session().Run({value}))[0];
        for (const float e : seen.flat<float>()) {
          if (e < 1 || e > kThreads || e != static_cast<int>(e)) ADD_FAILURE() << e;
        }
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_THAT(Values(sum), ElementsAre(kThreads * kRounds));
}

TEST_P(VariableRules, PredicateIsReadBeforeItsBranchWrites) {
  const Variable v = MakeVariable(g, true, {.name = "v"});
  const Output flip = Cond(
      v, [&] { return Identity(v.Assign(false)); }, [&] { return Identity(v.Assign(true)); });
  Initialize();
  for (const bool expected : {false, true, false, true}) {
    EXPECT_EQ(Value(flip).scalar<bool>(), expected);
    EXPECT_EQ(Value(v).scalar<bool>(), expected);
  }
}

TEST_P(VariableRules, WritesAcceptOptionsAndReturnTheNewValue) {
  const Variable v = MakeVariable(g, {1.0, 2.0}, {.name = "v"});
  const Output add = v.AssignAdd({1.0, 1.0}, {.use_locking = true, .name = "mine"});
  const Output twice = add * 2.f;
  const Operation only = v.AssignSub({1.0, 1.0}, {.read_value = false});
  if (!GetParam()) {
    EXPECT_EQ(add.node->name(), "mine");
    EXPECT_TRUE(add.node->attr<bool>("use_locking"));
    EXPECT_FALSE(only.node->attr<bool>("use_locking"));
  }
  Initialize();
  EXPECT_THAT(Values(twice), ElementsAre(4, 6));
  Run(only);
  Run(Operation(add));
  EXPECT_THAT(Values(v), ElementsAre(2, 3));
}

TEST_P(VariableRules, SlicesAreWrittenAsInNumPy) {
  const Variable v = MakeVariable(g, {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}, {.name = "v"});
  const Output strided = v.Slice({Index::Range(1, 6, 2)}).Assign({20.0, 40.0, 60.0});
  const Output one = v.Slice({-1}).Assign(7.0);
  const Output raised = v.Slice({Index::NewAxis(), Index::Ellipsis(), Index::Range(0, 2)})
                            .Assign(Tensor::Of<float>({1, 2}, {8, 9}));
  Initialize();
  EXPECT_THAT(Values(strided), ElementsAre(1, 20, 3, 40, 5, 60));
  EXPECT_THAT(Values(one), ElementsAre(1, 20, 3, 40, 5, 7));
  EXPECT_THAT(Values(raised), ElementsAre(8, 9, 3, 40, 5, 7));
}

TEST_P(VariableRules, BuffersAreReusedUnlessTheyAreRead) {
  const Variable v = MakeVariable(g, Tensor::Zeros(DT_FLOAT, {1000}), {.name = "v"});
  const Output x = Placeholder(g, DT_FLOAT, {1000});
  const Operation add = v.AssignAdd(x, {.read_value = false});
  const Output value = v.value();
  Initialize();
  Tensor ones(DT_FLOAT, {1000});
  std::fill_n(ones.data<float>(), 1000, 1.f);
  const Feeds feeds = {{x, ones}};
  ASSERT_TRUE(session().Run(feeds, {}, {add}).ok());  // no longer shares the constant's buffer
  const float* at = Value(value).data<float>();
  ASSERT_TRUE(session().Run(feeds, {}, {add}).ok());
  const Tensor held = Value(value);
  EXPECT_EQ(held.data<float>(), at) << "written in place";
  ASSERT_TRUE(session().Run(feeds, {}, {add}).ok());
  EXPECT_THAT(held.flat<float>(), Each(2));
  EXPECT_NE(Value(value).data<float>(), at);
  EXPECT_THAT(Values(value), Each(3));
}

// ---- operators

TEST_P(VariableRules, OperatorsAddTheOpsOfTheTable) {
  const Variable v = MakeVariable(g, {{7.0, -7.0}, {1.0, 2.0}}, {.name = "v"});
  const Variable n = MakeVariable(g, {7, -7}, {.name = "n"});
  const Variable b = MakeVariable(g, {true, false}, {.name = "b"});
  const Output t = Const(g, {2.f, 2.f});
  const std::pair<Output, const char*> rows[] = {
      {v + t, "AddV2"},
      {t - v, "Sub"},
      {2.f * v, "Mul"},
      {v / 2.f, "RealDiv"},
      {FloorDiv(v, t), "FloorDiv"},
      {v % t, "FloorMod"},
      {Pow(v, t), "Pow"},
      {v < t, "Less"},
      {v <= 1.f, "LessEqual"},
      {v > v, "Greater"},
      {1.f >= v, "GreaterEqual"},
      {b & b, "LogicalAnd"},
      {b | b, "LogicalOr"},
      {n & n, "BitwiseAnd"},
      {n | n, "BitwiseOr"},
      {n ^ n, "BitwiseXor"},
      {MatMul(v, v), "MatMul"},
      {-v.value(), "Neg"},
      {Abs(v), "Abs"},
      {LogicalNot(b), "LogicalNot"},
      {v.Slice({0}), "StridedSlice"},
  };
  for (const auto& [result, op] : rows) {
    ASSERT_TRUE(result.valid()) << op << ": " << g.status();
    EXPECT_EQ(result.node->op_name(), op);
  }
  const Output quotient = n / 2;
  EXPECT_EQ(quotient.node->op_name(), "RealDiv");
  EXPECT_EQ(quotient.dtype(), DT_DOUBLE);
  const Output both = b ^ b, rest = n % 3, row = v + t, down = FloorDiv(n, 2);
  Initialize();
  EXPECT_THAT(Values(quotient), ElementsAre(3.5, -3.5));
  EXPECT_THAT(Values(down), ElementsAre(3, -4));
  EXPECT_THAT(Values(rest), ElementsAre(1, 2)) << "the sign of the divisor";
  EXPECT_THAT(Values(row), ElementsAre(9, -5, 3, 4)) << "the vector is broadcast";
  EXPECT_THAT(Value(both).flat<bool>(), Each(false));
}

// ---- options

TEST_P(VariableRules, OnReadVariablesAreNotTrainable) {
  EXPECT_TRUE(MakeVariable(g, 1.0).trainable());
  const VariableSynchronization on_read = VariableSynchronization::kOnRead;
  EXPECT_FALSE(MakeVariable(g, 1.0, {.synchronization = on_read}).trainable());
  EXPECT_EQ(static_cast<int>(VariableSynchronization::kAuto), 0);
  EXPECT_EQ(static_cast<int>(VariableSynchronization::kNone), 1);
  EXPECT_EQ(static_cast<int>(VariableSynchronization::kOnWrite), 2);
  EXPECT_EQ(static_cast<int>(on_read), 3);
  EXPECT_EQ(static_cast<int>(VariableAggregation::kNone), 0);
  EXPECT_EQ(static_cast<int>(VariableAggregation::kSum), 1);
  EXPECT_EQ(static_cast<int>(VariableAggregation::kMean), 2);
  EXPECT_EQ(static_cast<int>(VariableAggregation::kOnlyFirstReplica), 3);
}

TEST_P(VariableRules, PropertiesAreReadable) {
  const DeviceScope cpu(g, "/cpu:0");
  const Variable v =
      MakeVariable(g, {1.0, 2.0}, {.name = "v", .constraint = [](Output x) { return Abs(x); }});
  EXPECT_EQ(v.name(), "v:0");
  EXPECT_EQ(v.handle().node->name(), "v");
  EXPECT_EQ(v.device(), "/device:CPU:0");
  EXPECT_EQ(&v.graph(), &g);
  EXPECT_EQ(v.initializer().name(), "v/Assign");
  EXPECT_EQ(v.initial_value().node->op_name(), "Const");
  EXPECT_EQ(v.synchronization(), VariableSynchronization::kAuto);
  EXPECT_EQ(v.aggregation(), VariableAggregation::kNone);
  EXPECT_EQ(v.constraint()(v).node->op_name(), "Abs");
}

TEST_P(VariableRules, ProtosKeepOptionsButNoFunctions) {
  const auto synchronization = VariableSynchronization::kOnWrite;
  const auto aggregation = VariableAggregation::kMean;
  const Variable v = MakeVariable(g, {1.0, 2.0},
                                  {.name = "v",
                                   .trainable = false,
                                   .constraint = [](Output x) { return Abs(x); },
                                   .synchronization = synchronization,
                                   .aggregation = aggregation});
  proto::VariableDef def, again;
  ASSERT_TRUE(v.ToProto(&def));
  proto::GraphDef graph;
  ExportGraphDef(g, &graph);
  Graph imported;
  ASSERT_TRUE(ImportGraphDef(imported, graph, {.prefix = "in"}).ok());
  const absl::StatusOr<Variable> back = Variable::FromProto(imported, def, "in");
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->name(), "in/v:0");
  EXPECT_EQ(back->is_resource(), GetParam());
  EXPECT_FALSE(back->trainable());
  EXPECT_EQ(back->synchronization(), synchronization);
  EXPECT_EQ(back->aggregation(), aggregation);
  EXPECT_FALSE(back->constraint());
  ASSERT_TRUE(back->ToProto(&again, "in"));
  EXPECT_EQ(again.SerializeAsString(), def.SerializeAsString());
}

TEST_P(VariableRules, SlotsAreGlobalVariablesAndNotTrainable) {
  const Variable v = MakeVariable(g, {1.0, 2.0}, {.name = "v"});
  Adam(0.1).Minimize(ReduceSum(v * v));
  EXPECT_THAT(Names(GlobalVariables(g)),
              testing::UnorderedElementsAre("v:0", "beta1_power:0", "beta2_power:0", "v/Adam:0",
                                            "v/Adam_1:0"));
  EXPECT_THAT(TrainableVariables(g), ElementsAre(v));
}

// ---- sessions, lifecycle

TEST_P(VariableRules, FetchingNothingIsLegal) {
  const absl::StatusOr<Tensors> out = session().Run(Feeds{}, Outputs{});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_TRUE(out->empty());
}

TEST_P(VariableRules, StateBelongsToTheSessionAndIsFreedWithIt) {
  constexpr int64_t kElements = 1 << 20, kBytes = 4 * kElements;
  const Output x = Placeholder(g, DT_FLOAT, {kElements});
  const Variable v = MakeVariable(g, x, {.name = "v"});
  const Output first = v.Slice({0});
  const int64_t before = HostAllocator().bytes_in_use();
  const auto held = [before] { return HostAllocator().bytes_in_use() - before; };
  const auto initialize = [&](Session& session) {
    const Feeds feeds = {{x, Tensor::Zeros(DT_FLOAT, {kElements})}};
    return session.Run(feeds, {}, {v.initializer()}).status();
  };
  {
    Session one = *Session::Create(g), two = *Session::Create(g);
    ASSERT_TRUE(initialize(one).ok());
    EXPECT_GE(held(), kBytes);
    EXPECT_LT(held(), 2 * kBytes);
    EXPECT_TRUE(absl::IsFailedPrecondition(two.Run({first}).status())) << "its own state";
    const Variable handle = v;  // holds no memory and keeps none alive
    one.Reset();
    EXPECT_LT(held(), kBytes);
    EXPECT_TRUE(absl::IsFailedPrecondition(one.Run({first}).status()));
    ASSERT_TRUE(initialize(one).ok());
    EXPECT_GE(held(), kBytes);
  }
  EXPECT_LT(held(), kBytes);
}

TEST_P(VariableRules, HandlesThatOutliveTheirGraphAreInvalid) {
  Variable v, parts;
  {
    Graph gone({.use_resource = GetParam()});
    v = MakeVariable(gone, {1.0, 2.0}, {.name = "v"});
    parts = GetVariable(gone, "parts", {4}, {.partitioner = FixedSizePartitioner(2)});
    EXPECT_TRUE(v.valid() && parts.valid());
  }
  const Variable here = MakeVariable(g, {3.0, 4.0}, {.name = "here"});
  for (const Variable& stale : {v, parts}) {
    EXPECT_FALSE(stale.valid());
    for (const Output& made :
         {stale.value(), stale.read_value(), stale.initialized_value(), stale.is_initialized(),
          stale.Assign({5.0, 6.0}), stale.AssignAdd({1.0, 1.0}), Output(stale * 2.f)}) {
      EXPECT_FALSE(made.valid());
    }
    EXPECT_TRUE(absl::IsFailedPrecondition(session().Run({stale}).status()));
  }
  EXPECT_TRUE(g.status().ok());
  EXPECT_FALSE((here + v.initial_value()).valid());
  ExpectError(absl::StatusCode::kFailedPrecondition, "belongs to a destroyed graph");
  here.Assign(v);
  ExpectError(absl::StatusCode::kFailedPrecondition, "belongs to a destroyed graph");
}

TEST_P(VariableRules, EachThreadHasItsOwnCurrentScope) {
  const VariableScope a(g, "a", {.initializer = Ones()});
  std::thread([this] {
    EXPECT_EQ(CurrentVariableScope(g)->name, "");
    EXPECT_EQ(GetVariable(g, "v", {2}, Zeros()).name(), "v:0");
    const VariableScope b(g, "b");
    EXPECT_EQ(GetVariable(g, "v", {2}, Zeros()).name(), "b/v:0");
  }).join();
  EXPECT_EQ(CurrentVariableScope(g)->name, "a");
  EXPECT_EQ(GetVariable(g, "v", {2}).name(), "a/v:0");
  EXPECT_THAT(Names(GlobalVariables(g)), ElementsAre("v:0", "b/v:0", "a/v:0"));
}

TEST_P(VariableRules, ExpectedShapeIsIgnored) {
  const Variable v = MakeVariable(g, {1.0, 2.0}, {.name = "v", .expected_shape = Shape({7})});
  EXPECT_EQ(v.shape(), Shape({2}));
}

TEST_P(VariableRules, FetchedValueOutlivesItsSession) {
  const Variable v = MakeVariable(g, {1.0, 2.0}, {.name = "v"});
  Initialize();
  const Tensor value = Value(v);
  session_.reset();
  EXPECT_THAT(value.flat<float>(), ElementsAre(1, 2));
}

}  // namespace
}  // namespace weir
