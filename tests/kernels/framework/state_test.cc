// Variables and scatters through their raw ops, of both kinds: values, sharing, and error texts.

#include <thread>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "weir/core/graph/graph.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/state.h"
#include "weir/ops/lib/array.h"
#include "weir/tests/evaluate.h"

namespace weir {
namespace {

// A variable of one kind or the other, and how to write and read it.
class StateTest : public testing::TestWithParam<bool> {
 protected:
  bool resource() const { return GetParam(); }
  Output Make(DataType dtype, const Shape& shape, const std::string& name = "v") {
    return resource() ? VarHandleOp(g_, dtype, shape, {.shared_name = name, .name = name})
                      : VariableV2(g_, dtype, shape, {.name = name});
  }
  Operation Assign(Output v, Tensor value, Attrs attrs = {}) {
    const Output c = Const(g_, std::move(value));
    return Operation(AddNode(resource() ? "AssignVariableOp" : "Assign", {v, c}, attrs));
  }
  Operation Update(absl::string_view op, Output v, Tensor delta) {
    const Output c = Const(g_, std::move(delta));
    return Operation(
        AddNode(resource() ? absl::StrCat(op, "VariableOp") : std::string(op), {v, c}));
  }
  Operation Scatter(absl::string_view op, Output v, Tensor indices, Tensor updates,
                    Attrs attrs = {}) {
    const Output i = Const(g_, std::move(indices)), u = Const(g_, std::move(updates));
    return Operation(AddNode(absl::StrCat(resource() ? "Resource" : "", op), {v, i, u}, attrs));
  }
  Output Read(Output v) {
    return resource() ? AddOp("ReadVariableOp", {v}, {{"dtype", v.node->attr<DataType>("dtype")}})
                      : AddOp("Identity", {v});
  }
  absl::Status Do(Operation op) {
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    return EvaluateTargets(g_, {op}, &resources_);
  }
  Tensor Get(Output fetch) {
    const absl::StatusOr<Tensors> result = Evaluate(g_, {fetch}, &resources_);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? (*result)[0] : Tensor();
  }
  void ExpectValue(Output v, const Tensor& expected) {
    const Tensor got = Get(Read(v));
    EXPECT_TRUE(IdenticalTensors(got, expected))
        << got.ToString() << " instead of " << expected.ToString();
  }
  static void ExpectError(const absl::Status& s, absl::StatusCode code,
                          std::vector<absl::string_view> parts) {
    EXPECT_EQ(s.code(), code) << s;
    for (const absl::string_view part : parts)
      EXPECT_TRUE(absl::StrContains(s.message(), part)) << s;
  }

  Graph g_;
  ResourceMap resources_;
};

using C = absl::StatusCode;

TEST_P(StateTest, HoldsWhatWasAssignedLast) {
  const Output v = Make(DT_FLOAT, {2});
  ASSERT_TRUE(Do(Assign(v, Tensor::Vector<float>({1, 2}))).ok());
  ExpectValue(v, Tensor::Vector<float>({1, 2}));
  ASSERT_TRUE(Do(Update("AssignAdd", v, Tensor::Vector<float>({10, 20}))).ok());
  ASSERT_TRUE(Do(Update("AssignSub", v, Tensor::Vector<float>({1, 1}))).ok());
  ExpectValue(v, Tensor::Vector<float>({10, 21}));
}

TEST_P(StateTest, HoldsStringsAndBools) {
  const Output s = Make(DT_STRING, {2}, "s"), b = Make(DT_BOOL, {1}, "b");
  const std::string text[] = {"one", "a string that is too long to be stored inline"};
  ASSERT_TRUE(Do(Assign(s, Tensor::Vector<std::string>(text))).ok());
  ASSERT_TRUE(Do(Assign(b, Tensor::Of<bool>({1}, {true}))).ok());
  EXPECT_EQ(Get(Read(s)).flat<std::string>()[1], text[1]);
  EXPECT_TRUE(Get(Read(b)).flat<bool>()[0]);
}

TEST_P(StateTest, AValueThatWasReadNeverChanges) {
  const Output v = Make(DT_FLOAT, {2});
  ASSERT_TRUE(Do(Assign(v, Tensor::Vector<float>({1, 2}))).ok());
  const Tensor before = Get(Read(v));
  ASSERT_TRUE(Do(Update("AssignAdd", v, Tensor::Vector<float>({1, 1}))).ok());
  ASSERT_TRUE(
      Do(Scatter("ScatterUpdate", v, Tensor::Vector<int32_t>({0}), Tensor::Vector<float>({9})))
          .ok());
  EXPECT_TRUE(IdenticalTensors(before, Tensor::Vector<float>({1, 2})));
  ExpectValue(v, Tensor::Vector<float>({9, 3}));
}

TEST_P(StateTest, UninitializedVariableIsNamed) {
  const Output v = Make(DT_FLOAT, {2}, "forgotten");
  const absl::StatusOr<Tensors> read = Evaluate(g_, {Read(v)}, &resources_);
  ExpectError(read.status(), C::kFailedPrecondition, {"forgotten", "initialized"});
  ExpectError(Do(Update("AssignAdd", v, Tensor::Vector<float>({1, 1}))), C::kFailedPrecondition,
              {"forgotten"});
  ExpectError(
      Do(Scatter("ScatterAdd", v, Tensor::Vector<int32_t>({0}), Tensor::Vector<float>({1}))),
      C::kFailedPrecondition, {"forgotten"});
  const Output is = AddOp(resource() ? "VarIsInitializedOp" : "IsVariableInitialized", {v});
  EXPECT_FALSE(Get(is).scalar<bool>());
  ASSERT_TRUE(Do(Assign(v, Tensor::Vector<float>({1, 2}))).ok());
  EXPECT_TRUE(Get(is).scalar<bool>());
}

TEST_P(StateTest, RejectsAnotherShape) {
  const Output v = Make(DT_FLOAT, Shape::UnknownRank());
  const Output any = Placeholder(g_, DT_FLOAT);
  Node* add =
      resource() ? AddNode("AssignAddVariableOp", {v, any}) : AddNode("AssignAdd", {v, any});
  ASSERT_TRUE(Do(Assign(v, Tensor::Vector<float>({1, 2}))).ok());
  const absl::StatusOr<Tensors> result =
      resource() ? [&] {
        const ControlDependencies after(g_, {Operation(add)});
        return Evaluate(g_, {{any, Tensor::Vector<float>({1})}}, {AddOp("Identity", {Const(g_, 1.f)})}, &resources_);
      }()
                 : Evaluate(g_, {{any, Tensor::Vector<float>({1})}}, {Output(add)}, &resources_);
  ExpectError(result.status(), C::kInvalidArgument, {"[2]", "[1]"});
  ExpectValue(v, Tensor::Vector<float>({1, 2}));
}

TEST_P(StateTest, CountsUpToItsLimit) {
  const Output v = Make(DT_INT64, {});
  ASSERT_TRUE(Do(Assign(v, Tensor::Scalar<int64_t>(0))).ok());
  const Output count = resource() ? AddOp("ResourceCountUpTo", {v}, {{"limit", 2}, {"T", DT_INT64}})
                                  : AddOp("CountUpTo", {v}, {{"limit", 2}});
  EXPECT_EQ(Get(count).scalar<int64_t>(), 0);
  EXPECT_EQ(Get(count).scalar<int64_t>(), 1);
  ExpectError(Evaluate(g_, {count}, &resources_).status(), C::kOutOfRange, {"Reached limit of 2"});
  ExpectValue(v, Tensor::Scalar<int64_t>(2));
}

TEST_P(StateTest, HandlesOfOneNameShareAVariable) {
  const auto handle = [&](const char* node, DataType dtype) {
    return resource()
               ? VarHandleOp(g_, dtype, {2}, {.container = "c", .shared_name = "s", .name = node})
               : VariableV2(g_, dtype, {2}, {.container = "c", .shared_name = "s", .name = node});
  };
  const Output a = handle("a", DT_FLOAT), b = handle("b", DT_FLOAT),
               other = handle("other", DT_INT32);
  ASSERT_TRUE(Do(Assign(a, Tensor::Vector<float>({1, 2}))).ok());
  ExpectValue(b, Tensor::Vector<float>({1, 2}));
  ExpectError(Evaluate(g_, {Read(other)}, &resources_).status(), C::kInvalidArgument,
              {"float", "int32", "s"});
}

TEST_P(StateTest, ScattersRowsWithEveryOperation) {
  struct Row {
    const char* op;
    std::vector<float> expected;
  };
  for (const Row& row : {Row{"ScatterAdd", {1, 2, 13, 24}}, Row{"ScatterSub", {1, 2, -7, -16}},
                         Row{"ScatterMul", {1, 2, 30, 80}}, Row{"ScatterDiv", {1, 2, 0.3f, 0.2f}},
                         Row{"ScatterMin", {1, 2, 3, 4}}, Row{"ScatterMax", {1, 2, 10, 20}},
                         Row{"ScatterUpdate", {1, 2, 10, 20}}}) {
    const Output v = Make(DT_FLOAT, {2, 2}, row.op);
    ASSERT_TRUE(Do(Assign(v, Tensor::Of<float>({2, 2}, {1, 2, 3, 4}))).ok());
    const absl::Status done =
        Do(Scatter(row.op, v, Tensor::Vector<int64_t>({1}), Tensor::Of<float>({1, 2}, {10, 20})));
    ASSERT_TRUE(done.ok()) << row.op << done;
    ExpectValue(v, Tensor::Of<float>({2, 2}, row.expected));
  }
}

TEST_P(StateTest, ScattersScalarsAndRepeatedRows) {
  const Output v = Make(DT_INT32, {3});
  ASSERT_TRUE(Do(Assign(v, Tensor::Vector<int32_t>({1, 2, 3}))).ok());
  ASSERT_TRUE(
      Do(Scatter("ScatterAdd", v, Tensor::Vector<int32_t>({0, 2, 0}), Tensor::Scalar<int32_t>(10)))
          .ok());
  ExpectValue(v, Tensor::Vector<int32_t>({21, 2, 13}));
}

TEST_P(StateTest, ScattersManyRowsOnAllThreads) {
  constexpr int kRows = 64, kWidth = 40, kUpdates = 4096;
  const Output v = Make(DT_FLOAT, {kRows, kWidth});
  ASSERT_TRUE(Do(Assign(v, Tensor::Zeros(DT_FLOAT, {kRows, kWidth}))).ok());
  Tensor indices(DT_INT32, {kUpdates}), updates(DT_FLOAT, {kUpdates, kWidth}),
      sum = Tensor::Zeros(DT_FLOAT, {kRows, kWidth});
  for (int i = 0; i < kUpdates; ++i) {
    const int row = (i * 37 + i / 64) % kRows;
    indices.data<int32_t>()[i] = row;
    for (int k = 0; k < kWidth; ++k) {
      updates.data<float>()[i * kWidth + k] = static_cast<float>(i % 8 + k);
      sum.data<float>()[row * kWidth + k] += static_cast<float>(i % 8 + k);
    }
  }
  ASSERT_TRUE(Do(Scatter("ScatterAdd", v, indices, updates)).ok());
  ExpectValue(v, sum);
}

TEST_P(StateTest, ScattersNothingIfAnIndexIsOutOfRange) {
  const Output v = Make(DT_FLOAT, {3});
  ASSERT_TRUE(Do(Assign(v, Tensor::Vector<float>({1, 2, 3}))).ok());
  const Operation scatter =
      Scatter("ScatterAdd", v, Tensor::Vector<int32_t>({0, 7}), Tensor::Vector<float>({1, 1}));
  ExpectError(Do(scatter), C::kInvalidArgument, {"indices[1] = 7 is not in [0, 3)"});
  ExpectError(
      Do(Scatter("ScatterSub", v, Tensor::Vector<int32_t>({-1}), Tensor::Vector<float>({1}))),
      C::kInvalidArgument, {"indices[0] = -1 is not in [0, 3)"});
  ExpectValue(v, Tensor::Vector<float>({1, 2, 3}));
}

TEST_P(StateTest, RejectsIntegerDivisionByZero) {
  const Output v = Make(DT_INT32, {2});
  ASSERT_TRUE(Do(Assign(v, Tensor::Vector<int32_t>({6, 8}))).ok());
  ExpectError(Do(Scatter("ScatterDiv", v, Tensor::Vector<int32_t>({0, 1}),
                         Tensor::Vector<int32_t>({2, 0}))),
              C::kInvalidArgument, {"Integer division by zero"});
  ExpectValue(v, Tensor::Vector<int32_t>({6, 8}));
}

TEST_P(StateTest, ScattersSlicesByVectorsOfIndices) {
  const Output v = Make(DT_FLOAT, {2, 3});
  ASSERT_TRUE(Do(Assign(v, Tensor::Of<float>({2, 3}, {1, 2, 3, 4, 5, 6}))).ok());
  ASSERT_TRUE(Do(Scatter("ScatterNdAdd", v, Tensor::Of<int32_t>({2, 2}, {0, 1, 1, 2}),
                         Tensor::Vector<float>({10, 20})))
                  .ok());
  ExpectValue(v, Tensor::Of<float>({2, 3}, {1, 12, 3, 4, 5, 26}));
  ASSERT_TRUE(Do(Scatter("ScatterNdUpdate", v, Tensor::Of<int32_t>({1, 1}, {1}),
                         Tensor::Of<float>({1, 3}, {7, 8, 9})))
                  .ok());
  ExpectValue(v, Tensor::Of<float>({2, 3}, {1, 12, 3, 7, 8, 9}));
  ExpectError(Do(Scatter("ScatterNdSub", v, Tensor::Of<int32_t>({1, 2}, {1, 3}),
                         Tensor::Vector<float>({1}))),
              C::kInvalidArgument, {"indices[0] = [1, 3] does not index into shape [2,3]"});
}

TEST_P(StateTest, ScattersSlicesWithEveryOperation) {
  struct Row {
    const char* op;
    std::vector<float> expected;
  };
  for (const Row& row : {Row{"ScatterNdAdd", {1, 12, 3, -6}}, Row{"ScatterNdSub", {1, -8, 3, 14}},
                         Row{"ScatterNdMin", {1, 2, 3, -10}}, Row{"ScatterNdMax", {1, 10, 3, 4}},
                         Row{"ScatterNdUpdate", {1, 10, 3, -10}}}) {
    const Output v = Make(DT_FLOAT, {2, 2}, row.op);
    ASSERT_TRUE(Do(Assign(v, Tensor::Of<float>({2, 2}, {1, 2, 3, 4}))).ok());
    const absl::Status done = Do(Scatter(row.op, v, Tensor::Of<int32_t>({2, 2}, {0, 1, 1, 1}),
                                         Tensor::Vector<float>({10, -10})));
    ASSERT_TRUE(done.ok()) << row.op << done;
    ExpectValue(v, Tensor::Of<float>({2, 2}, row.expected));
  }
}

TEST_P(StateTest, SkipsSlicesOutOfRangeIfRequested) {
  const Output v = Make(DT_FLOAT, {3});
  ASSERT_TRUE(Do(Assign(v, Tensor::Vector<float>({1, 2, 3}))).ok());
  const Tensor indices = Tensor::Of<int32_t>({3, 1}, {0, 9, 2});
  const Tensor updates = Tensor::Vector<float>({10, 20, 30});
  ASSERT_TRUE(
      Do(Scatter("ScatterNdAdd", v, indices, updates, {{"bad_indices_policy", "IGNORE"}})).ok());
  ExpectValue(v, Tensor::Vector<float>({11, 2, 33}));
  ExpectError(Do(Scatter("ScatterNdAdd", v, indices, updates, {{"bad_indices_policy", "ERROR"}})),
              C::kInvalidArgument, {"does not index into shape [3]"});
  ExpectError(Do(Scatter("ScatterNdAdd", v, indices, updates, {{"bad_indices_policy", "NCHW"}})),
              C::kInvalidArgument, {"Unknown bad indices handling attribute: NCHW"});
}

TEST_P(StateTest, DividesByZeroInReferencesOnly) {
  const Output v = Make(DT_FLOAT, {2});
  ASSERT_TRUE(Do(Assign(v, Tensor::Vector<float>({1, 2}))).ok());
  const absl::Status divided =
      Do(Scatter("ScatterDiv", v, Tensor::Vector<int32_t>({0}), Tensor::Vector<float>({0})));
  if (resource()) {
    ExpectError(divided, C::kInvalidArgument, {"updates must not contain 0"});
  } else {
    EXPECT_TRUE(divided.ok()) << divided;
  }
}

INSTANTIATE_TEST_SUITE_P(BothKinds, StateTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Resource" : "Reference"; });

// ---- ops of one kind only

TEST(ReferenceVariable, ChangesItsShapeWithoutValidateShape) {
  Graph g;
  const Output v = VariableV2(g, DT_FLOAT, {2}, {.name = "v"});
  const Output longer = Const<float>(g, {1, 2, 3});
  const Output free = AddOp("Assign", {v, longer}, {{"validate_shape", false}});
  const auto result = Evaluate(g, {free});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ((*result)[0].shape(), Shape({3}));
  EXPECT_EQ(free.shape(), Shape({3}));
}

TEST(ReferenceVariable, WritersForwardTheReference) {
  Graph g;
  const Output v = VariableV2(g, DT_FLOAT, {1}, {.name = "v"});
  const Output one = Const<float>(g, {1});
  const Output twice =
      AddOp("AssignAdd", {AddOp("AssignAdd", {AddOp("Assign", {v, one}), one}), one});
  const auto result = Evaluate(g, {twice});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ((*result)[0].flat<float>()[0], 3);
}

TEST(ResourceVariable, GathersRowsAndSlices) {
  Graph g;
  const Output v = VarHandleOp(g, DT_FLOAT, {2, 3}, {.shared_name = "v", .name = "v"});
  const Output start = Const<float>(g, {2, 3}, {1, 2, 3, 4, 5, 6});
  const Operation init = AssignVariableOp(v, start);
  const Output rows = ResourceGather(v, Const<int32_t>(g, {2, 1}, {1, 0}), DT_FLOAT);
  const Output element = ResourceGatherNd(v, Const<int64_t>(g, {1, 2}, {1, 2}), DT_FLOAT);
  const Output batched =
      ResourceGather(v, Const<int32_t>(g, {2, 1}, {2, 0}), DT_FLOAT, /*batch_dims=*/1);
  const Output outside = ResourceGather(v, Const<int32_t>(g, {2}), DT_FLOAT);
  EXPECT_EQ(rows.shape(), Shape({2, 1, 3}));
  EXPECT_EQ(batched.shape(), Shape({2, 1}));
  ResourceMap resources;
  ASSERT_TRUE(EvaluateTargets(g, {init}, &resources).ok());
  const auto result = Evaluate(g, {rows, element, batched, VariableShape(v, DT_INT64)}, &resources);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(IdenticalTensors((*result)[0], Tensor::Of<float>({2, 1, 3}, {4, 5, 6, 1, 2, 3})));
  EXPECT_EQ((*result)[1].flat<float>()[0], 6);
  EXPECT_TRUE(IdenticalTensors((*result)[2], Tensor::Of<float>({2, 1}, {3, 4})));
  EXPECT_TRUE(IdenticalTensors((*result)[3], Tensor::Vector<int64_t>({2, 3})));
  const absl::Status bad = Evaluate(g, {outside}, &resources).status();
  EXPECT_TRUE(absl::StrContains(bad.message(), "indices[0] = 2 is not in [0, 2)")) << bad;
}

TEST(ResourceVariable, LosesItsValueWhenDestroyed) {
  Graph g;
  const Output v = VarHandleOp(g, DT_FLOAT, {1}, {.shared_name = "v", .name = "v"});
  const Operation init = AssignVariableOp(v, Const<float>(g, {1}));
  const Operation destroy = DestroyResourceOp(v);
  ResourceMap resources;
  ASSERT_TRUE(EvaluateTargets(g, {init}, &resources).ok());
  ASSERT_TRUE(EvaluateTargets(g, {destroy}, &resources).ok());
  EXPECT_EQ(Evaluate(g, {ReadVariableOp(v, DT_FLOAT)}, &resources).status().code(),
            C::kFailedPrecondition);
}

TEST(ResourceVariable, RejectsWrongTypesWhenTheGraphIsBuilt) {
  Graph g;
  const Output v = VarHandleOp(g, DT_FLOAT, {1}, {.name = "v"});
  ReadVariableOp(v, DT_INT32);
  EXPECT_EQ(g.status().code(), C::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(g.status().message(), "Expected float got int32")) << g.status();
}

TEST(ResourceVariable, ConcurrentUpdatesAllCount) {
  Graph g;
  const Output v = VarHandleOp(g, DT_INT64, {3}, {.shared_name = "v", .name = "v"});
  const Operation init = AssignVariableOp(v, Const<int64_t>(g, {0, 0, 0}));
  const Operation add = AssignAddVariableOp(v, Const<int64_t>(g, {1, 2, 3}));
  const Output read = ReadVariableOp(v, DT_INT64);
  ResourceMap resources;
  ASSERT_TRUE(EvaluateTargets(g, {init}, &resources).ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        EXPECT_TRUE(EvaluateTargets(g, {add}, &resources).ok());
        const auto seen = Evaluate(g, {read}, &resources);
        ASSERT_TRUE(seen.ok());
        const auto flat = (*seen)[0].flat<int64_t>();
        EXPECT_EQ(flat[1], 2 * flat[0]);  // whole updates only
        EXPECT_EQ(flat[2], 3 * flat[0]);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ((*Evaluate(g, {read}, &resources))[0].flat<int64_t>()[0], 200);
}

TEST(ResourceVariables, SelectWorksOnHandles) {
  for (const char* op : {"Select", "SelectV2"}) {
    Graph g;
    const Output a = VarHandleOp(g, DT_FLOAT, Shape(), {.shared_name = "a"}),
                 b = VarHandleOp(g, DT_FLOAT, Shape(), {.shared_name = "b"});
    const Output first = Placeholder(g, DT_BOOL, Shape());
    const Output value = ReadVariableOp(AddOp(op, {first, a, b}), DT_FLOAT);
    ResourceMap resources;
    ASSERT_TRUE(EvaluateTargets(g,
                                {AssignVariableOp(a, Const(g, 1.f), false),
                                 AssignVariableOp(b, Const(g, 2.f), false)},
                                &resources)
                    .ok());
    for (const bool choice : {true, false}) {
      const auto out = Evaluate(g, {{first, Tensor::Scalar(choice)}}, {value}, &resources);
      ASSERT_TRUE(out.ok()) << out.status();
      EXPECT_EQ((*out)[0].scalar<float>(), choice ? 1 : 2);
    }
  }
}

}  // namespace
}  // namespace weir
