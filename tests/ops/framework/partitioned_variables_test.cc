#include <cmath>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/framework/state.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"
#include "weir/ops/train/moving_averages.h"
#include "weir/ops/train/optimizers.h"
#include "weir/proto/variable.pb.h"
#include "weir/session/session.h"
#include "weir/tests/evaluate.h"

namespace weir {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Counts = std::vector<int64_t>;

void ExpectInvalid(Graph& g, const std::vector<std::string>& parts,
                   absl::StatusCode code = absl::StatusCode::kInvalidArgument) {
  const absl::Status status = g.TakeStatus();
  EXPECT_EQ(status.code(), code) << status;
  for (const std::string& part : parts) EXPECT_THAT(std::string(status.message()), HasSubstr(part));
}

// Returns 0, 1, 2, ... in this shape.
Tensor Iota(const Shape& shape) {
  Tensor t(DT_FLOAT, shape);
  std::iota(t.data<float>(), t.data<float>() + t.num_elements(), 0.f);
  return t;
}

std::vector<std::string> Names(const Variables& variables) {
  std::vector<std::string> names;
  for (const Variable& v : variables) names.push_back(v.name());
  return names;
}

// Returns the given partitions for any shape.
Partitioner Always(Counts counts) {
  return [counts](const Shape&, DataType) { return counts; };
}

// Runs each test with both kinds of variables, in one session, and checks that the graph ends
// without an error.
class PartitionedVariables : public testing::TestWithParam<bool> {
 protected:
  PartitionedVariables() : g({.use_resource = GetParam()}) {}
  ~PartitionedVariables() override { EXPECT_TRUE(g.status().ok()) << g.status(); }

  // 0, 1, 2, ... in parts along an axis.
  Variable Make(absl::string_view name, const Shape& shape, int64_t parts, int axis = 0) {
    return GetVariable(
        g, name, shape,
        {.initializer = Iota(shape), .partitioner = FixedSizePartitioner(parts, axis)});
  }
  absl::Status Run(Operation op) {
    WEIR_RETURN_IF_ERROR(g.status());
    return EvaluateTargets(g, {op}, &state);
  }
  void Initialize() { ASSERT_TRUE(Run(GlobalVariablesInitializer(g)).ok()) << g.status(); }
  absl::StatusOr<Tensor> Try(Output x, const std::vector<std::pair<Output, Tensor>>& feeds = {}) {
    WEIR_RETURN_IF_ERROR(g.status());
    WEIR_ASSIGN_OR_RETURN(const Tensors out, Evaluate(g, feeds, {x}, &state));
    return out[0];
  }
  std::vector<float> Values(Output x, const std::vector<std::pair<Output, Tensor>>& feeds = {}) {
    const absl::StatusOr<Tensor> value = Try(x, feeds);
    EXPECT_TRUE(value.ok()) << value.status();
    if (!value.ok()) return {};
    return {value->flat<float>().begin(), value->flat<float>().end()};
  }

  Graph g;
  ResourceMap state;
};
INSTANTIATE_TEST_SUITE_P(Kinds, PartitionedVariables, testing::Bool(),
                         [](const auto& info) { return info.param ? "Resource" : "Ref"; });

// ---- 12.1: valid results of a partitioner

TEST_P(PartitionedVariables, ImpossibleCountsAreInvalid) {
  const struct {
    Shape shape;
    Counts counts;
    std::vector<std::string> message;
  } rows[] = {
      {{7, 2}, {3}, {"does not match the Variable's rank", "[3] vs. [7,2]"}},
      {{7, 2}, {3, 0}, {"zero partitions for some axes: [3, 0]"}},
      {{7, 2}, {-1, 1}, {"zero partitions for some axes: [-1, 1]"}},
      {{7, 2}, {3, 2}, {"Can only slice a variable along one dimension", "[7,2]", "[3, 2]"}},
      {{3, 2}, {4, 1}, {"offset=3, shape=3", "var_offset=[3, 0]", "full_shape=[3, 2]"}},
      {{3, 0}, {1, 1}, {"offset=0, shape=0", "full_shape=[3, 0]"}},
  };
  for (const auto& row : rows) {
    EXPECT_FALSE(GetVariable(g, "w", row.shape, {.partitioner = Always(row.counts)}).valid());
    ExpectInvalid(g, row.message);
    EXPECT_EQ(g.num_nodes(), 0);
  }
}

TEST_P(PartitionedVariables, ErrorOfAPartitionerIsReported) {
  const auto refuse = [](const Shape&, DataType) -> absl::StatusOr<Counts> {
    return FailedPrecondition("not today");
  };
  GetVariable(g, "w", {7, 2}, {.partitioner = refuse});
  ExpectInvalid(g, {"not today"}, absl::StatusCode::kFailedPrecondition);
}

TEST_P(PartitionedVariables, ShapeMustBeFullyDefined) {
  GetVariable(g, "w", {-1, 2}, {.partitioner = FixedSizePartitioner(2)});
  ExpectInvalid(g, {"Shape of a new partitioned variable must be fully defined", "[?,2]"});
}

TEST_P(PartitionedVariables, ScalarIsNotPartitioned) {
  const Variable w = GetVariable(g, "w", Shape(), {.partitioner = FixedSizePartitioner(2)});
  EXPECT_FALSE(w.is_partitioned());
  EXPECT_EQ(w.name(), "w:0");
}

// ---- 12.2: the parts

TEST_P(PartitionedVariables, PartsDifferByOneRowAndLargerOnesComeFirst) {
  const Variable w = Make("w", {7, 2}, 3);
  EXPECT_THAT(Names(w.parts()), ElementsAre("w/part_0:0", "w/part_1:0", "w/part_2:0"));
  std::vector<std::string> shapes, slices;
  for (const Variable& part : w.parts()) {
    shapes.push_back(part.shape().ToString());
    ASSERT_TRUE(part.save_slice().has_value());
    EXPECT_EQ(part.save_slice()->full_name, "w");
    EXPECT_EQ(part.save_slice()->full_shape, Counts({7, 2}));
    slices.push_back(part.save_slice()->Spec());
  }
  EXPECT_THAT(shapes, ElementsAre("[3,2]", "[2,2]", "[2,2]"));
  EXPECT_THAT(slices, ElementsAre("7 2 0,3:0,2", "7 2 3,2:0,2", "7 2 5,2:0,2"));
}

TEST_P(PartitionedVariables, PartsKeepTheirSliceInProtos) {
  const Variable w = Make("w", {7, 2}, 3);
  proto::VariableDef def;
  ASSERT_TRUE(w.parts()[1].ToProto(&def));
  EXPECT_EQ(def.save_slice_info_def().full_name(), "w");
  const absl::StatusOr<Variable> again = Variable::FromProto(g, def);
  ASSERT_TRUE(again.ok()) << again.status();
  ASSERT_TRUE(again->save_slice().has_value());
  EXPECT_EQ(again->save_slice()->Spec(), "7 2 3,2:0,2");
  EXPECT_FALSE(w.ToProto(&def)) << "the whole has no wire form";
}

// ---- 12.3: the object

TEST_P(PartitionedVariables, ObjectHasThePlainNameAndTheFullShape) {
  const VariableScope scope(g, "s");
  const Variable w = Make("w", {7, 2}, 3);
  EXPECT_EQ(w.name(), "s/w");
  EXPECT_EQ(w.op_name(), "s/w");
  EXPECT_EQ(w.shape(), Shape({7, 2}));
  EXPECT_EQ(w.dtype(), DT_FLOAT);
  EXPECT_TRUE(w.trainable());
  EXPECT_EQ(w.is_resource(), GetParam());
  EXPECT_EQ(&w.graph(), &g);
  EXPECT_EQ(w.partitions(), Counts({3, 1}));
  EXPECT_FALSE(w.handle().valid());
  EXPECT_EQ(w.ToString(), std::string("<tf.PartitionedVariable 's/w' shape=(7, 2) dtype=float32") +
                              (GetParam() ? "" : "_ref") + " parts=3>");
  Variable(w.parts()[0]).set_shape({3, -1});
  Variable(w).set_shape({7, -1});
  const Variable other = Make("other", {7, 2}, 3);
  EXPECT_EQ(w, Variable(w));
  EXPECT_NE(w, other);
  EXPECT_NE(w, w.parts()[0]);
  EXPECT_THAT(w.parts()[0].parts(), IsEmpty());
}

TEST_P(PartitionedVariables, ValueConcatenatesThePartsAlongTheirAxis) {
  const Variable rows = Make("rows", {5, 3}, 2), columns = Make("columns", {2, 7}, 3, 1);
  const Variable one = Make("one", {4}, 1);
  const Output sum = ReduceSum(rows * 2.0f);
  Initialize();
  for (const Variable& v : {rows, columns, one}) {
    EXPECT_TRUE(IdenticalTensors(*Try(v), Iota(v.shape()))) << v.name();
    EXPECT_TRUE(IdenticalTensors(*Try(v.read_value()), Iota(v.shape()))) << v.name();
  }
  EXPECT_THAT(Values(columns.parts()[1]), ElementsAre(3, 4, 10, 11));
  EXPECT_THAT(Values(sum), ElementsAre(210));
}

TEST_P(PartitionedVariables, ReadValueSeesWritesOfItsControlDependencies) {
  const Variable w = Make("w", {3}, 2);
  const Output more = w.AssignAdd({10.0, 10.0, 10.0});
  Output after;
  {
    const ControlDependencies order(g, {more});
    after = w.read_value();
  }
  Initialize();
  EXPECT_THAT(Values(after), ElementsAre(10, 11, 12));
}

TEST_P(PartitionedVariables, CollectionsListTheParts) {
  const Variable w = Make("w", {3}, 2);
  const Variable v = GetLocalVariable(
      g, "v", {4}, {.initializer = Zeros(), .partitioner = FixedSizePartitioner(2)});
  EXPECT_THAT(Names(GlobalVariables(g)), ElementsAre("w/part_0:0", "w/part_1:0"));
  EXPECT_THAT(Names(TrainableVariables(g)), ElementsAre("w/part_0:0", "w/part_1:0"));
  EXPECT_THAT(Names(LocalVariables(g)), ElementsAre("v/part_0:0", "v/part_1:0"));
}

TEST_P(PartitionedVariables, AssignAcceptsAFullValue) {
  const Variable w = Make("w", {5}, 2);
  const Output set = w.Assign({5.0, 6.0, 7.0, 8.0, 9.0});
  const Output add = w.AssignAdd(Const(g, {1.f, 1.f, 1.f, 1.f, 2.f}));
  const Output sub = w.AssignSub({1, 2, 3, 4, 5}, {.use_locking = true});
  const Operation only_set = w.Assign({0, 0, 0, 0, 1}, {.read_value = false});
  const Output locked = Assign(w, {1, 1, 1, 1, 1});
  Initialize();
  EXPECT_THAT(Values(set), ElementsAre(5, 6, 7, 8, 9));
  EXPECT_THAT(Values(add), ElementsAre(6, 7, 8, 9, 11));
  EXPECT_THAT(Values(sub), ElementsAre(5, 5, 5, 5, 6));
  EXPECT_THAT(Values(w), ElementsAre(5, 5, 5, 5, 6));
  EXPECT_TRUE(Run(only_set).ok());
  EXPECT_THAT(Values(w), ElementsAre(0, 0, 0, 0, 1));
  EXPECT_THAT(Values(locked), Each(1));
}

TEST_P(PartitionedVariables, AssignAcceptsOneValuePerPart) {
  const Variable w = Make("w", {5}, 2), plain = MakeVariable(g, {1.0}, {.name = "plain"});
  const Outputs set = w.AssignParts({{5.0, 6.0, 7.0}, {8.0, 9.0}});
  const Outputs add = w.AssignAddParts({{1, 1, 1}, {2, 2}});
  const Outputs sub = w.AssignSubParts({{1, 1, 1}, {0, 0}}, {.read_value = false});
  const Outputs alone = plain.AssignParts({{3.0}});
  ASSERT_EQ(set.size(), 2u);
  Initialize();
  EXPECT_THAT(Values(set[0]), ElementsAre(5, 6, 7));
  EXPECT_THAT(Values(w), ElementsAre(5, 6, 7, 3, 4)) << "the other part was not run";
  EXPECT_THAT(Values(set[1]), ElementsAre(8, 9));
  EXPECT_THAT(Values(add[1]), ElementsAre(10, 11));
  EXPECT_TRUE(Run(sub[0]).ok());
  EXPECT_THAT(Values(w), ElementsAre(4, 5, 6, 10, 11));
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_THAT(Values(alone[0]), ElementsAre(3));
}

TEST_P(PartitionedVariables, IncompatibleValuesAreInvalid) {
  const Variable w = Make("w", {5}, 2);
  EXPECT_FALSE(w.Assign({1.0, 2.0}).valid());
  ExpectInvalid(g, {"to variable w ", "(5,)", "(2,)"});
  EXPECT_FALSE(w.AssignAdd(Const<int32_t>(g, {1, 2, 3, 4, 5})).valid());
  ExpectInvalid(g, {"int32", "float"});
  EXPECT_THAT(w.AssignParts({{1.0, 2.0, 3.0}}), ElementsAre(Output(), Output()));
  ExpectInvalid(g, {"'w'", "2 parts", "1 values"});
  w.AssignParts({{1.0, 2.0}, {3.0, 4.0}});
  ExpectInvalid(g, {"to variable w/part_0:0 ", "(3,)", "(2,)"});
  Variable(w).set_shape({4});
  ExpectInvalid(g, {"w", "[5]", "[4]"});
}

TEST_P(PartitionedVariables, OperationsOnASingleBufferAreInvalid) {
  const Variable w = Make("w", {5, 2}, 2);
  const Output i = Const<int32_t>(g, {1}), row = Const<float>(g, Shape({1, 2}), {1, 2});
  const IndexedSlices rows = {.values = row, .indices = i};
  const std::vector<std::pair<std::string, std::function<Output()>>> calls = {
      {"ScatterAdd", [&] { return w.ScatterAdd(rows); }},
      {"ScatterUpdate", [&] { return w.ScatterUpdate(rows); }},
      {"ScatterNdAdd", [&] { return w.ScatterNdAdd(i, row); }},
      {"BatchScatterUpdate", [&] { return w.BatchScatterUpdate(rows); }},
      {"CountUpTo", [&] { return w.CountUpTo(3); }},
      {"Assign of a slice",
       [&] {
         return w.Slice({0}).Assign({1.0, 2.0});
       }},
      {"SparseRead", [&] { return w.SparseRead(i); }},
      {"GatherNd", [&] { return w.GatherNd(i); }},
      {"Gradients", [&] { return DenseGradients({row}, {w})[0]; }},
      {"ApplyGradients",
       [&] {
         return GradientDescent(0.1).ApplyGradients({{Grad(row), w}}).node;
       }},
  };
  for (const auto& [op, call] : calls) {
    EXPECT_FALSE(call().valid()) << op;
    ExpectInvalid(g, {op, "partitioned variable 'w'", "[5,2]", "2 parts", "parts()"});
  }
  EXPECT_TRUE(Output(w.Slice({0})).valid()) << "reading a slice of the value is fine";
}

TEST_P(PartitionedVariables, InitializersOfThePartsFormTheInitializer) {
  const Variable w = Make("w", {5}, 2), v = Make("v", {4}, 2);
  const Output ready = w.is_initialized();
  const Operation init = w.initializer();
  EXPECT_EQ(w.initializer(), init);
  EXPECT_EQ(init.name(), "w/init");
  const Operation some = VariablesInitializer(g, {v}, "some");
  ASSERT_EQ(some.node->control_inputs().size(), 2u);
  const Output missing = ReportUninitializedVariables(g, Variables{w, v});
  EXPECT_FALSE(Try(ready)->scalar<bool>());
  EXPECT_EQ(Try(missing)->num_elements(), 4);
  EXPECT_TRUE(Run(w.parts()[0].initializer()).ok());
  EXPECT_FALSE(Try(ready)->scalar<bool>()) << "one part has no value yet";
  EXPECT_TRUE(Run(init).ok());
  EXPECT_TRUE(Try(ready)->scalar<bool>());
  EXPECT_EQ(Try(missing)->num_elements(), 2);
}

TEST_P(PartitionedVariables, InitialValuesOfOtherVariablesMayReadIt) {
  const Variable w = Make("w", {5}, 2);
  const Variable copy = MakeVariable(g, w, {.name = "copy"});
  const Variable safe = MakeVariable(g, [&] { return w.initialized_value(); }, {.name = "safe"});
  const Operation init = GlobalVariablesInitializer(g);
  absl::StatusOr<Session> session = Session::Create(g);
  ASSERT_TRUE(session.ok()) << session.status();
  ASSERT_TRUE(session->Run(init).ok()) << "all in one step";
  const auto values = session->Run({copy.value(), safe.value()});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_TRUE(IdenticalTensors((*values)[0], Iota({5})));
  EXPECT_TRUE(IdenticalTensors((*values)[1], Iota({5})));
}

// ---- 12.4: sharing

TEST_P(PartitionedVariables, SharedWithTheSameCountsOrWithoutAPartitioner) {
  const Variable w = Make("w", {7, 2}, 3);
  const Partitioner three = FixedSizePartitioner(3);
  EXPECT_EQ(GetVariable(g, "w", {7, 2}, {.partitioner = three, .reuse = Reuse::kReuse}), w);
  EXPECT_EQ(GetVariable(g, "w", {7, 2}, {.partitioner = three, .reuse = Reuse::kAuto}), w);
  EXPECT_EQ(GetVariable(g, "w", {7, 2}, {.reuse = Reuse::kReuse}), w);
  EXPECT_EQ(GetVariable(g, "w", {.reuse = Reuse::kReuse}), w);
  EXPECT_EQ(GetVariable(g, "w/part_1", {2, 2}, {.reuse = Reuse::kReuse}), w.parts()[1]);
}

TEST_P(PartitionedVariables, OtherCountsShapeOrTypeCannotBeShared) {
  Make("w", {7, 2}, 3);
  const Partitioner three = FixedSizePartitioner(3);
  GetVariable(g, "w", {7, 2}, {.partitioner = FixedSizePartitioner(2), .reuse = Reuse::kReuse});
  ExpectInvalid(g, {"partitioned variable w", "[2, 1]", "[3, 1]"});
  GetVariable(g, "w", {8, 2}, {.partitioner = three, .reuse = Reuse::kAuto});
  ExpectInvalid(g, {"partitioned variable w", "[8,2]", "[7,2]"});
  GetVariable(g, "w", {8, 2}, {.reuse = Reuse::kReuse});
  ExpectInvalid(g, {"partitioned variable w", "[8,2]", "[7,2]"});
  GetVariable(g, "w", {7, 2}, {.dtype = DT_INT32, .partitioner = three, .reuse = Reuse::kReuse});
  ExpectInvalid(g, {"partitioned variable w", "int32", "float"});
}

TEST_P(PartitionedVariables, CreatingAgainWithoutReuseAlreadyExists) {
  const int line = __LINE__ + 1;
  GetVariable(g, "w", {7, 2}, {.partitioner = FixedSizePartitioner(3)});
  GetVariable(g, "w", {7, 2}, {.partitioner = FixedSizePartitioner(3)});
  ExpectInvalid(g, {"Partitioned variable with name w already exists", absl::StrCat(":", line)},
                absl::StatusCode::kAlreadyExists);
}

TEST_P(PartitionedVariables, ReusingAnAbsentVariableIsNotFound) {
  GetVariable(g, "w", {7, 2}, {.partitioner = FixedSizePartitioner(3), .reuse = Reuse::kReuse});
  ExpectInvalid(g, {"PartitionedVariable w does not exist", "AUTO_REUSE"},
                absl::StatusCode::kNotFound);
}

TEST_P(PartitionedVariables, WholeAndPartitionedVariablesOfOneNameConflict) {
  Make("w", {7, 2}, 3);
  GetVariable(g, "v", {7, 2});
  for (const Reuse reuse : {Reuse::kCreate, Reuse::kAuto}) {
    GetVariable(g, "w", {7, 2}, {.reuse = reuse});
    ExpectInvalid(g, {"No partitioner was provided", "w/part_0"});
  }
  for (const Reuse reuse : {Reuse::kCreate, Reuse::kAuto, Reuse::kReuse}) {
    GetVariable(g, "v", {7, 2}, {.partitioner = FixedSizePartitioner(3), .reuse = reuse});
    ExpectInvalid(g, {"A partitioner was provided", "unpartitioned version", "v"});
  }
}

TEST_P(PartitionedVariables, PartsCreatedOneByOneMustAllExist) {
  GetVariable(g, "w/part_0", {2}, Zeros());
  GetVariable(g, "w/part_1", {2}, Zeros());
  const auto get = [&](int64_t parts) {
    return GetVariable(g, "w", {6},
                       {.partitioner = FixedSizePartitioner(parts), .reuse = Reuse::kAuto});
  };
  EXPECT_FALSE(get(3).valid());
  ExpectInvalid(g, {"different partitioning", "3 shards", "w/part_2 was not"});
  EXPECT_FALSE(get(1).valid());
  ExpectInvalid(g, {"different partitioning", "1 shards", "extra shard w/part_1"});
  EXPECT_FALSE(get(2).valid());
  ExpectInvalid(g, {"w/part_0", "[3]", "[2]"});
}

TEST_P(PartitionedVariables, PartitionerIsInheritedAndAnExplicitOneWins) {
  const VariableScope outer(g, "outer", {.partitioner = FixedSizePartitioner(2)});
  EXPECT_EQ(GetVariable(g, "a", {6}).partitions(), Counts({2}));
  EXPECT_EQ(GetVariable(g, "b", {6}, {.partitioner = FixedSizePartitioner(3)}).partitions(),
            Counts({3}));
  {
    const VariableScope inner(g, "inner");
    EXPECT_EQ(GetVariable(g, "c", {6}).partitions(), Counts({2}));
    const VariableScope innermost(g, "innermost", {.partitioner = FixedSizePartitioner(6)});
    EXPECT_EQ(GetVariable(g, "d", {6}).partitions(), Counts({6}));
  }
  EXPECT_EQ(CreateGlobalStep(g).partitions(), Counts()) << "a scalar";
  EXPECT_FALSE(MakeVariable(g, {1.0, 2.0}).is_partitioned());
}

TEST_P(PartitionedVariables, CustomGetterIsCalledOnceForTheWhole) {
  std::vector<std::string> asked;
  const CustomGetter getter = [&](const VariableGetter& next, Graph& graph, absl::string_view name,
                                  const VariableOptions& options) {
    asked.emplace_back(name);
    EXPECT_TRUE(options.partitioner);
    return next(graph, name, options);
  };
  const VariableScope scope(g, "s",
                            {.custom_getter = getter, .partitioner = FixedSizePartitioner(2)});
  EXPECT_TRUE(GetVariable(g, "w", {4}).is_partitioned());
  EXPECT_THAT(asked, ElementsAre("s/w"));
}

TEST_P(PartitionedVariables, CreatorsAndRegularizersSeeEachPart) {
  std::vector<std::string> made, regularized;
  const VariableCreatorScope creators(
      g, [&](const VariableMaker& next, Graph& graph, const Initializer& value,
             const VariableOptions& options) {
        made.push_back(options.name);
        return next(graph, value, options);
      });
  GetVariable(g, "w", {4},
              {.regularizer =
                   [&](Output x) {
                     regularized.push_back(x.shape().ToString());
                     return ReduceSum(x);
                   },
               .partitioner = FixedSizePartitioner(2)});
  EXPECT_THAT(made, ElementsAre("w/part_0", "w/part_1"));
  EXPECT_THAT(regularized, ElementsAre("[2]", "[2]"));
  EXPECT_EQ(g.collection("regularization_losses").size(), 2u);
}

// ---- 12.6: initializers

TEST_P(PartitionedVariables, InitializersGetTheFullShapeAndTheOffset) {
  std::vector<std::string> asked;
  GetVariable(g, "w", {5, 4},
              {.initializer =
                   [&](const InitializerArgs& a) {
                     EXPECT_NE(a.partition, nullptr);
                     asked.push_back(absl::StrCat(
                         a.shape.ToString(), " of ", a.partition->full_shape.ToString(), " at ",
                         a.partition->offset[0], ",", a.partition->offset[1]));
                     return Zeros(a.graph, a.shape, a.dtype);
                   },
               .partitioner = FixedSizePartitioner(2)});
  EXPECT_THAT(asked, ElementsAre("[3,4] of [5,4] at 0,0", "[2,4] of [5,4] at 3,0"));
}

TEST_P(PartitionedVariables, FansUseTheFullShape) {
  GetVariable(g, "w", {4, 6}, {.partitioner = FixedSizePartitioner(2)});
  const Node* max = g.FindNode("w/part_1/Initializer/random_uniform/max");
  ASSERT_NE(max, nullptr);
  EXPECT_FLOAT_EQ(max->attr<Tensor>("value").scalar<float>(), 0.7745967f);  // sqrt(6 / 10)
}

TEST_P(PartitionedVariables, IdentityMatrixIsPartitioned) {
  const Variable w = GetVariable(
      g, "w", {3, 4}, {.initializer = Identity(2.0f), .partitioner = FixedSizePartitioner(2, 1)});
  Initialize();
  EXPECT_THAT(Values(w), ElementsAre(2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2, 0));
}

TEST_P(PartitionedVariables, InitialTensorsHaveTheFullShape) {
  const Partitioner two = FixedSizePartitioner(2);
  const Output whole = Const<double>(g, Shape({3}), {1, 2, 3}, "whole");
  const Variable v = GetVariable(g, "v", {.initializer = whole, .partitioner = two});
  EXPECT_EQ(v.shape(), Shape({3}));
  EXPECT_EQ(v.dtype(), DT_DOUBLE);
  GetVariable(g, "w", {4}, {.initializer = whole, .partitioner = two});
  ExpectInvalid(g, {"w", "[4]", "[3]"});
  GetVariable(g, "w", {3}, {.initializer = [&] { return whole; }, .partitioner = two});
  ExpectInvalid(g, {"w", "initializer without arguments"});
}

TEST_P(PartitionedVariables, ControlDependenciesDoNotAttachToParts) {
  const ControlDependencies after(g, {Placeholder(g, DT_FLOAT, {}, "x")});
  Make("w", {4}, 2);
  for (const auto& node : g.nodes()) EXPECT_THAT(node->control_inputs(), IsEmpty()) << node->name();
}

// ---- 16: training

TEST_P(PartitionedVariables, OptimizersTrainThePartsAndTheirSlotsAreSlices) {
  const VariableScope scope(g, "s", {.partitioner = FixedSizePartitioner(2)});
  const Variable w = Make("w", {5, 2}, 2);
  Adam adam(0.1);
  const Operation train = adam.Minimize(ReduceSum(w * w), {.var_list = Variables{w}});
  ASSERT_TRUE(g.status().ok()) << g.status();
  EXPECT_THAT(Names(adam.variables(g)),
              ElementsAre("s/beta1_power:0", "s/beta2_power:0", "s/s/w/part_0/Adam:0",
                          "s/s/w/part_0/Adam_1:0", "s/s/w/part_1/Adam:0", "s/s/w/part_1/Adam_1:0"));
  const Variable slot = adam.GetSlot(w.parts()[1], "v");
  ASSERT_TRUE(slot.valid() && slot.save_slice());
  EXPECT_EQ(slot.save_slice()->full_name, "s/s/w/Adam_1");
  EXPECT_EQ(slot.save_slice()->Spec(), "5 2 3,2:0,2");
  Initialize();
  ASSERT_TRUE(Run(train).ok());
  // Adam's first update is the learning rate times the negated sign of the gradient.
  const std::vector<float> after = Values(w);
  for (int i = 0; i < 10; ++i) EXPECT_NEAR(after[i], i == 0 ? 0 : i - 0.1, 1e-4);
}

TEST_P(PartitionedVariables, MovingAveragesTrackTheParts) {
  const Variable w = Make("w", {3}, 2);
  ExponentialMovingAverage average(0.5);
  const Operation update = average.Apply({w});
  ASSERT_TRUE(update.valid()) << g.status();
  const Variable shadow = average.Average(w.parts()[0]);
  ASSERT_TRUE(shadow.valid());
  EXPECT_EQ(shadow.name(), "w/part_0/ExponentialMovingAverage:0");
  EXPECT_EQ(shadow.save_slice()->full_name, "w/ExponentialMovingAverage");
}

TEST_P(PartitionedVariables, MovingAveragesAreWrittenIntoTheWhole) {
  const Variable w = Make("w", {3}, 2);
  const Output update =
      AssignMovingAverage(w, Const(g, {10.f, 11.f, 12.f}), 0.5, /*zero_debias=*/false);
  Initialize();
  EXPECT_THAT(Values(update), ElementsAre(5, 6, 7));
}

// ---- embeddings

class PartitionedEmbeddings : public PartitionedVariables {};
INSTANTIATE_TEST_SUITE_P(Kinds, PartitionedEmbeddings, testing::Bool(),
                         [](const auto& info) { return info.param ? "Resource" : "Ref"; });

TEST_P(PartitionedEmbeddings, DivLooksUpRowsOfTheWhole) {
  const Variable w = Make("w", {7, 2}, 3);
  const Output ids = Placeholder(g, DT_INT64, {2, 4}, "ids");
  const Output rows = EmbeddingLookup(w, ids, {.partition_strategy = PartitionStrategy::kDiv});
  EXPECT_EQ(rows.shape(), Shape({2, 4, 2}));
  Initialize();
  const Tensor some = Tensor::Of<int64_t>({2, 4}, {0, 1, 2, 3, 4, 5, 6, 0});
  EXPECT_THAT(Values(rows, {{ids, some}}),
              ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 0, 1));
}

TEST_P(PartitionedEmbeddings, ModDistributesIdsInTurn) {
  const Variable w = Make("w", {7, 2}, 3);  // rows 0 1 2 | 3 4 | 5 6
  const Output ids = Const<int32_t>(g, {0, 1, 2, 3, 4, 5, 6});
  const Output rows = EmbeddingLookup(w, ids);
  Initialize();
  EXPECT_THAT(Values(rows), ElementsAre(0, 1, 6, 7, 10, 11, 2, 3, 8, 9, 12, 13, 4, 5));
}

TEST_P(PartitionedEmbeddings, IdOutsideTheTableIsInvalid) {
  const Variable w = Make("w", {7, 2}, 3);
  Initialize();
  for (const auto strategy : {PartitionStrategy::kMod, PartitionStrategy::kDiv}) {
    for (const int32_t id : {-8, 7, 1000}) {
      const Output rows =
          EmbeddingLookup(w, Const<int32_t>(g, {id}), {.partition_strategy = strategy});
      EXPECT_EQ(Try(rows).status().code(), absl::StatusCode::kInvalidArgument) << id;
    }
  }
}

TEST_P(PartitionedEmbeddings, RowsAreClippedToTheMaximalNorm) {
  const Variable parts = Make("parts", {4, 2}, 2);
  const Variable whole = MakeVariable(g, Iota({4, 2}), {.name = "whole"});
  const Output ids = Const<int32_t>(g, {0, 1, 3});
  Initialize();
  const std::vector<float> want = {0,
                                   1,
                                   2 * 2 / std::sqrt(13.f),
                                   3 * 2 / std::sqrt(13.f),
                                   6 * 2 / std::sqrt(85.f),
                                   7 * 2 / std::sqrt(85.f)};
  const EmbeddingLookupOptions options = {.partition_strategy = PartitionStrategy::kDiv,
                                          .max_norm = 2};
  for (const Variable& v : {parts, whole})
    EXPECT_THAT(Values(EmbeddingLookup(v, ids, options)),
                testing::Pointwise(testing::FloatEq(), want));
}

TEST_P(PartitionedEmbeddings, OnlyRowsThatWereLookedUpAreTrained) {
  const Variable w = Make("w", {5, 2}, 2);
  const Output rows = EmbeddingLookup(w, Const<int32_t>(g, {4, 1, 4}),
                                      {.partition_strategy = PartitionStrategy::kDiv});
  const Output scale = Const<float>(g, Shape({3, 1}), {1, 10, 100});
  const Grads grads = Gradients({ReduceSum(rows * scale)}, w.parts());
  ASSERT_EQ(grads.size(), 2u);
  EXPECT_TRUE(grads[0].is_slices() && grads[1].is_slices());
  const Operation train = GradientDescent(1.0).Minimize(ReduceSum(rows * scale));
  Initialize();
  ASSERT_TRUE(Run(train).ok()) << g.status();
  EXPECT_THAT(Values(w), ElementsAre(0, 1, -8, -7, 4, 5, 6, 7, -93, -92));
}

TEST_P(PartitionedEmbeddings, TablesOfOtherKindsAreAccepted) {
  const Variable a = MakeVariable(g, Iota({2, 2}), {.name = "a"});
  const Variable b = MakeVariable(g, Iota({1, 2}), {.name = "b"});
  const Output ids = Const<int32_t>(g, {2, 0});
  const EmbeddingLookupOptions div = {.partition_strategy = PartitionStrategy::kDiv};
  const Output of_variables = EmbeddingLookup(Variables{a, b}, ids, div);
  const Output of_tensors = EmbeddingLookup(Outputs{a, b}, ids, div);
  const Output of_one = EmbeddingLookup(Output(a), ids % 2);
  Initialize();
  EXPECT_THAT(Values(of_variables), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(Values(of_tensors), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(Values(of_one), ElementsAre(0, 1, 0, 1));
}

TEST_P(PartitionedEmbeddings, ImpossibleTablesAreInvalid) {
  const Output ids = Const<int32_t>(g, {0});
  EXPECT_FALSE(EmbeddingLookup(Outputs(), ids).valid());
  ExpectInvalid(g, {"Need at least one param"});
  EXPECT_FALSE(EmbeddingLookup(Make("w", {2, 6}, 3, 1), ids).valid());
  ExpectInvalid(g, {"partitioned variable 'w'", "[2,6]", "not partitioned along axis 0"});
  const Output narrow = Placeholder(g, DT_FLOAT, {2, 2}), wide = Placeholder(g, DT_FLOAT, {2, 3});
  EXPECT_FALSE(EmbeddingLookup(Outputs{narrow, wide}, ids).valid());
  ExpectInvalid(g, {"EmbeddingLookup", "[2]", "[3]"});
  EXPECT_FALSE(EmbeddingLookup(Placeholder(g, DT_FLOAT, {}), ids).valid());
  ExpectInvalid(g, {"scalar"});
}

// ---- 12.5: predefined partitioners; the counts are TensorFlow's

TEST(Partitioners, MatchTensorFlow) {
  const struct {
    Partitioner partitioner;
    Shape shape;
    DataType dtype;
    Counts want;
  } rows[] = {
      {FixedSizePartitioner(3), {8, 4}, DT_FLOAT, {3, 1}},
      {FixedSizePartitioner(10), {8, 4}, DT_FLOAT, {8, 1}},
      {FixedSizePartitioner(3, 1), {8, 4}, DT_FLOAT, {1, 3}},
      {FixedSizePartitioner(3, -1), {8, 4, 5}, DT_FLOAT, {1, 1, 3}},
      {VariableAxisSizePartitioner(16), {8, 4}, DT_FLOAT, {8, 1}},
      {VariableAxisSizePartitioner(32), {8, 4}, DT_FLOAT, {4, 1}},
      {VariableAxisSizePartitioner(48), {8, 4}, DT_FLOAT, {3, 1}},
      {VariableAxisSizePartitioner(1), {8, 4}, DT_FLOAT, {8, 1}},
      {VariableAxisSizePartitioner(1 << 20), {8, 4}, DT_FLOAT, {1, 1}},
      {VariableAxisSizePartitioner(64, 1), {8, 4}, DT_DOUBLE, {1, 4}},
      {VariableAxisSizePartitioner(64, -1), {8, 4}, DT_FLOAT, {1, 2}},
      {VariableAxisSizePartitioner(64), {8, 4}, DT_STRING, {8, 1}},
      {VariableAxisSizePartitioner(64, 0, 4), {8, 4}, DT_STRING, {2, 1}},
      {VariableAxisSizePartitioner(16, 0, 16, 5), {8, 4}, DT_FLOAT, {5, 1}},
      {VariableAxisSizePartitioner(65536),
       {int64_t{1} << 40, 1024},
       DT_FLOAT,
       {int64_t{1} << 36, 1}},
      {MinMaxVariablePartitioner(4, 0, 16), {8, 4}, DT_FLOAT, {4, 1}},
      {MinMaxVariablePartitioner(100, 0, 16), {8, 4}, DT_FLOAT, {8, 1}},
      {MinMaxVariablePartitioner(100, 0, 50), {8, 4}, DT_FLOAT, {3, 1}},
      {MinMaxVariablePartitioner(4), {8, 4}, DT_FLOAT, {1, 1}},
      {MinMaxVariablePartitioner(), {1 << 20, 4}, DT_FLOAT, {1, 1}},
      {MinMaxVariablePartitioner(100), {1 << 18, 4}, DT_FLOAT, {16, 1}},
      {MinMaxVariablePartitioner(100, 1, 16), {8, 4}, DT_FLOAT, {1, 4}},
      {MinMaxVariablePartitioner(100, 0, 256, 8), {8, 4}, DT_STRING, {1, 1}},
      {MinMaxVariablePartitioner(100, 0, 100, 16), {8, 4}, DT_STRING, {6, 1}},
  };
  int i = 0;
  for (const auto& row : rows) {
    const auto counts = row.partitioner(row.shape, row.dtype);
    ASSERT_TRUE(counts.ok()) << counts.status();
    EXPECT_EQ(*counts, row.want) << "row " << i;
    ++i;
  }
}

TEST(Partitioners, ImpossibleArgumentsAreInvalid) {
  const struct {
    Partitioner partitioner;
    std::string message;
  } rows[] = {
      {FixedSizePartitioner(2, 2), "along axis 2 when shape is only [8,4]"},
      {MinMaxVariablePartitioner(2, -3), "along axis -3 when shape is only [8,4]"},
      {VariableAxisSizePartitioner(0), "max_shard_bytes and bytes_per_string_element must be"},
      {VariableAxisSizePartitioner(8, 0, 0), "bytes_per_string_element is 0"},
      {VariableAxisSizePartitioner(8, 0, 16, 0), "max_shards must be positive"},
      {MinMaxVariablePartitioner(2, 0, 0), "min_slice_size is 0"},
  };
  for (const auto& row : rows) {
    const absl::Status status = row.partitioner({8, 4}, DT_FLOAT).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(row.message));
  }
  // An empty list of parts is rejected when a variable is created.
  EXPECT_EQ(*FixedSizePartitioner(0)({8, 4}, DT_FLOAT), Counts({0, 1}));
  EXPECT_EQ(*VariableAxisSizePartitioner(8)({0, 4}, DT_FLOAT), Counts({0, 1}));
}

}  // namespace
}  // namespace weir
