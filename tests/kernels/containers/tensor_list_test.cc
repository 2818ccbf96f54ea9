// Lists, maps and optionals: values in variants. Gradients are in
// tests/session/runtime/loop_gradients_test.cc.

#include "gmock/gmock.h"
#include "weir/kernels/containers/stored_values.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/tests/kernels/lib/graph_fixture.h"

namespace weir {
namespace {

using ::testing::ElementsAre;

class VariantsTest : public GraphFixture {
 protected:
  Output Any() { return Const(g_, -1); }
  Output Empty(const Output& shape, int most = -1, DataType dtype = DT_FLOAT) {
    return AddOp("EmptyTensorList", {shape, Const(g_, most)}, {{"element_dtype", dtype}});
  }
  Output Reserve(const Output& shape, int size) {
    return AddOp("TensorListReserve", {shape, Const(g_, size)}, {{"element_dtype", DT_FLOAT}});
  }
  Output FromRows(const Output& rows) { return AddOp("TensorListFromTensor", {rows, Any()}); }
  Output Push(const Output& list, const Output& value) {
    return AddOp("TensorListPushBack", {list, value});
  }
  Node* Pop(const Output& list, DataType dtype = DT_FLOAT) {
    return AddNode("TensorListPopBack", {list, Any()}, {{"element_dtype", dtype}});
  }
  Output Get(const Output& list, int i, DataType dtype = DT_FLOAT) {
    return AddOp("TensorListGetItem", {list, Const(g_, i), Any()}, {{"element_dtype", dtype}});
  }
  Output Set(const Output& list, int i, const Output& value, bool resize = false) {
    return AddOp("TensorListSetItem", {list, Const(g_, i), value},
                 {{"resize_if_index_out_of_bounds", resize}});
  }
  Output Stack(const Output& list, const Output& shape, int size = -1) {
    return AddOp("TensorListStack", {list, shape},
                 {{"element_dtype", DT_FLOAT}, {"num_elements", size}});
  }
  Output Stack(const Output& list) { return Stack(list, Any()); }
  Output Length(const Output& list) { return AddOp("TensorListLength", {list}); }
  Node* Concat(const Output& list, const Output& shape, const std::vector<int64_t>& leading) {
    return AddNode("TensorListConcatV2", {list, shape, Const(g_, leading)},
                   {{"element_dtype", DT_FLOAT}});
  }
};

TEST_F(VariantsTest, StackRejectsElementsOfAnotherShapeThanRequested) {
  const Output list = Push(Empty(Any()), Const<float>(g_, {1, 2}));
  for (const std::vector<int32_t>& shape : {std::vector<int32_t>{}, {1}, {1 << 20}}) {
    const absl::Status status =
        Evaluate(g_, {Stack(list, Const(g_, Tensor::Vector<int32_t>(shape)))}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << shape.size();
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("during merge"));
  }
}

TEST_F(VariantsTest, FirstConcatIgnoresTheFirstDimension) {
  const Output list = Push(Empty(Any()), Const(g_, Tensor::Of<float>({1, 2}, {1, 2})));
  const Node* joined = AddNode("TensorListConcat", {list},
                               {{"element_dtype", DT_FLOAT}, {"element_shape", Shape({5, 2})}});
  const auto rows = Evaluate(g_, {joined->output(0)});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ((*rows)[0].shape(), Shape({1, 2}));
}

TEST_F(VariantsTest, SequencesReuseUnsharedBranches) {
  TensorSequence a = TensorSequence().Resized(300);
  for (int i = 0; i < 300; ++i) a = std::move(a).With(i, Tensor::Scalar<int32_t>(i));
  const TensorSequence before = a;
  a = std::move(a).With(7, Tensor::Scalar<int32_t>(70));
  a = std::move(a).With(8, Tensor::Scalar<int32_t>(80));
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(before.at(i)->scalar<int32_t>(), i);
    ASSERT_EQ(a.at(i)->scalar<int32_t>(), i == 7 ? 70 : i == 8 ? 80 : i);
  }
}

TEST_F(VariantsTest, SequencesShareUnchangedBranches) {
  TensorSequence a;
  std::vector<TensorSequence> versions;
  for (int i = 0; i < 1000; ++i) {
    a = a.Resized(i + 1).With(i, Tensor::Scalar<int32_t>(i));
    versions.push_back(a);
  }
  for (const int size : {1, 16, 17, 256, 257, 1000}) {
    const TensorSequence& s = versions[size - 1];
    ASSERT_EQ(s.size(), size);
    for (int i = 0; i < size; ++i) EXPECT_EQ(s.at(i)->scalar<int32_t>(), i);
    EXPECT_EQ(s.at(size), nullptr);
  }
  TensorSequence cut = a.Resized(300).Resized(1000);
  EXPECT_EQ(cut.at(299)->scalar<int32_t>(), 299);
  EXPECT_EQ(cut.at(300), nullptr);
  EXPECT_EQ(a.at(300)->scalar<int32_t>(), 300);
  const TensorSequence wide =
      TensorSequence().Resized(int64_t{1} << 40).With((int64_t{1} << 40) - 1, Tensor::Scalar(1.f));
  int64_t met = 0;
  EXPECT_TRUE(wide.ForEach([&met](int64_t i, const Tensor&) {
                    EXPECT_EQ(i, (int64_t{1} << 40) - 1);
                    ++met;
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_EQ(met, 1);
}

TEST_F(VariantsTest, ListsGrowAndShrinkAtTheirEnd) {
  const Output one = Push(Empty(Any()), Const(g_, {1.f, 2.f}));
  const Output two = Push(one, Const(g_, {3.f, 4.f}));
  EXPECT_THAT(Floats(Stack(two)), ElementsAre(1, 2, 3, 4));
  Node* pop = Pop(two);
  EXPECT_THAT(Floats(Output(pop, 1)), ElementsAre(3, 4));
  EXPECT_THAT(Floats(Stack(Output(pop, 0))), ElementsAre(1, 2));
  EXPECT_EQ(Run(Length(two)).scalar<int32_t>(), 2);  // as before
  ExpectError(Output(Pop(Empty(Any())), 1), "Trying to pop from an empty list.");
  ExpectError(Push(Push(Empty(Any(), 1), Const(g_, 1.f)), Const(g_, 1.f)),
              "Tried to push item into a full list");
  ExpectError(Push(Empty(Const(g_, {3})), Const(g_, {1.f})),
              "Tried to append a tensor with incompatible shape to a list");
  ExpectError(Push(Empty(Any()), Const(g_, 1)), "op elements int32 but list elements float");
}

TEST_F(VariantsTest, ElementsThatAreNotSetAreZero) {
  const Output list = Set(Reserve(Const(g_, {2}), 3), 1, Const(g_, {5.f, 6.f}));
  EXPECT_THAT(Floats(Stack(list)), ElementsAre(0, 0, 5, 6, 0, 0));
  EXPECT_THAT(Floats(Get(list, 0)), ElementsAre(0, 0));
  EXPECT_THAT(Floats(Get(Set(Reserve(Any(), 2), 1, Const(g_, {5.f})), 0)), ElementsAre(0));
  ExpectError(Get(Reserve(Any(), 2), 0), "element_shape is not fully defined");
  ExpectError(Stack(Reserve(Any(), 2)), "only contains uninitialized tensors");
  ExpectError(Stack(Empty(Any())), "empty list with non-fully-defined element_shape");
  EXPECT_EQ(Run(Stack(Empty(Any()), Const(g_, {4}))).shape(), Shape({0, 4}));
  ExpectError(Stack(list, Any(), 4), "expected a list with 4 elements but got a list with 3");
  EXPECT_EQ(Run(Length(Reserve(Any(), 2000000000))).scalar<int32_t>(), 2000000000);
  ExpectError(Reserve(Any(), -1), "must be a non negative number");
}

TEST_F(VariantsTest, ElementsAreReadAndReplacedByIndex) {
  const Output list = FromRows(Const<float>(g_, {3, 1}, {1, 2, 3}));
  EXPECT_THAT(Floats(Get(Set(list, 2, Const(g_, {7.f})), 2)), ElementsAre(7));
  EXPECT_THAT(Floats(Get(list, 2)), ElementsAre(3));
  ExpectError(Get(list, 3), "Trying to access element 3 in a list with 3 elements.");
  ExpectError(Get(list, -1), "Trying to access element -1");
  ExpectError(Set(list, 3, Const(g_, {7.f})), "Trying to modify element 3 in a list with 3");
  EXPECT_EQ(Run(Length(Set(list, 5, Const(g_, {7.f}), true))).scalar<int32_t>(), 6);
  ExpectError(Get(list, 0, DT_INT32), "op elements int32 but list elements float");
  const auto gathered = [&](std::vector<int32_t> at) {
    return AddOp("TensorListGather", {list, Const(g_, at), Any()}, {{"element_dtype", DT_FLOAT}});
  };
  EXPECT_THAT(Floats(gathered({2, 0, 2})), ElementsAre(3, 1, 3));
  ExpectError(gathered({0, 3}), "Trying to gather element 3 in a list with 3 elements.");
}

TEST_F(VariantsTest, ListsAreBuiltFromRowsByIndex) {
  const Output rows = Const<float>(g_, {2, 1}, {1, 2}), at = Const(g_, {3, 1});
  EXPECT_THAT(Floats(Stack(AddOp("TensorListScatter", {rows, at, Any()}))),
              ElementsAre(0, 2, 0, 1));
  const auto scatter = [&](int size) {
    return AddOp("TensorListScatterV2", {rows, at, Any(), Const(g_, size)});
  };
  EXPECT_THAT(Floats(Stack(scatter(5))), ElementsAre(0, 2, 0, 1, 0));
  ExpectError(scatter(3), "Trying to scatter at index 3 in list with size 3");
  const Output into =
      AddOp("TensorListScatterIntoExistingList", {scatter(-1), rows, Const(g_, {0, 4})});
  EXPECT_THAT(Floats(Stack(into)), ElementsAre(1, 2, 0, 1, 2));
  ExpectError(AddOp("TensorListScatter", {rows, Const(g_, {0, -1}), Any()}),
              "must all be non-negative");
  const Output resized = AddOp("TensorListResize", {into, Const(g_, 2)});
  EXPECT_THAT(Floats(Stack(resized)), ElementsAre(1, 2));
  const Output both =
      AddOp("TensorListConcatLists", {resized, into}, {{"element_dtype", DT_FLOAT}});
  EXPECT_THAT(Floats(Stack(both)), ElementsAre(1, 2, 1, 2, 0, 1, 2));
}

TEST_F(VariantsTest, ListsAreSplitAndConcatenated) {
  const Output t = Const<float>(g_, {4, 1}, {1, 2, 3, 4});
  const auto split = [&](const std::vector<int64_t>& lengths) {
    return AddOp("TensorListSplit", {t, Any(), Const(g_, lengths)});
  };
  const Output parts = split({1, 0, 3});
  EXPECT_THAT(Floats(Get(parts, 2)), ElementsAre(2, 3, 4));
  Node* joined = Concat(parts, Any(), {});
  EXPECT_THAT(Floats(Output(joined, 0)), ElementsAre(1, 2, 3, 4));
  const Tensor lengths = Run(Output(joined, 1));
  EXPECT_THAT(lengths.flat<int64_t>(), ElementsAre(1, 0, 3));
  Node* first = AddNode("TensorListConcat", {parts}, {{"element_dtype", DT_FLOAT}});
  EXPECT_THAT(Floats(Output(first, 0)), ElementsAre(1, 2, 3, 4));
  ExpectError(split({1, 2}), "Unused values in tensor. Length of tensor: 4 Values used: 3");
  ExpectError(split({5}), "Attempting to slice");
  ExpectError(split({-1}), "Invalid value in lengths: -1");
  const Output missing = Set(Reserve(Const(g_, {-1, 1}), 2), 1, t);
  EXPECT_THAT(Floats(Output(Concat(missing, Any(), {2, 0}), 0)), ElementsAre(0, 0, 1, 2, 3, 4));
  ExpectError(Output(Concat(Set(Reserve(Any(), 1), 0, Const(g_, 1.f)), Any(), {}), 0),
              "Concat saw a scalar shape at index 0");
  const Output mixed = Set(Set(Reserve(Any(), 2), 0, t), 1, Const(g_, std::vector<float>{1, 2}));
  ExpectError(Output(Concat(mixed, Any(), {}), 0), "Incompatible ranks during merge: ");
}

TEST_F(VariantsTest, ShapesOfElements) {
  const auto shape_of = [&](const Output& list) {
    return Run(AddOp("TensorListElementShape", {list}, {{"shape_type", DT_INT64}}));
  };
  EXPECT_EQ(shape_of(Empty(Any())).scalar<int64_t>(), -1);
  EXPECT_THAT(shape_of(Empty(Const(g_, {-1, 2}))).flat<int64_t>(), ElementsAre(-1, 2));
  const Output unknown = PlaceholderWithDefault(Const(g_, 3), Shape::UnknownRank());
  ExpectError(Empty(unknown), "The only valid scalar shape tensor is the fully unknown shape");
  Graph other;
  AddOp("EmptyTensorList", {Const(other, 3), Const(other, -1)}, {{"element_dtype", DT_FLOAT}});
  EXPECT_THAT(std::string(other.status().message()), testing::HasSubstr("that is not '-1': 3"));
}

TEST_F(VariantsTest, ListsAreAddedElementByElement) {
  const Output a = FromRows(Const<float>(g_, {2, 1}, {1, 2}));
  const Output b = Set(Reserve(Any(), 2), 1, Const(g_, {10.f}));
  EXPECT_THAT(Floats(Stack(AddN({a, b, a}))), ElementsAre(2, 14));
  EXPECT_THAT(Floats(Stack(AddOp("ZerosLike", {a}))), ElementsAre(0, 0));
  const Output nested = Push(Empty(Any(), -1, DT_VARIANT), a);
  const Output doubled = AddN({nested, nested});
  EXPECT_THAT(Floats(Stack(Get(doubled, 0, DT_VARIANT))), ElementsAre(2, 4));
  ExpectError(AddN({a, Reserve(Any(), 3)}), "lists of tensors with different lengths");
  ExpectError(AddN({a, AddOp("OptionalFromValue", {Outputs{Const(g_, 1.f)}})}), "cannot be added");
}

TEST_F(VariantsTest, BatchesOfListsGrowTogether) {
  const Output lists =
      AddOp("Pack", {Outputs{Empty(Any()), FromRows(Const<float>(g_, {1, 1}, {5}))}});
  const Output more = AddOp("TensorListPushBackBatch", {lists, Const<float>(g_, {2, 1}, {1, 2})});
  EXPECT_THAT(Floats(Stack(StridedSlice(more, {0}))), ElementsAre(1));
  EXPECT_THAT(Floats(Stack(StridedSlice(more, {1}))), ElementsAre(5, 2));
}

TEST_F(VariantsTest, NestingIsLimited) {
  Output list = Empty(Any());
  for (int i = 0; i < 70; ++i) list = Push(Empty(Any(), -1, DT_VARIANT), list);
  ExpectError(list, "nested more than");
}

TEST_F(VariantsTest, MapsFindValuesByKey) {
  const Output key = Const(g_, "a"), other = Const(g_, {1, 2});
  Output map = Output(AddNode(g_, "EmptyTensorMap", {}));
  const auto insert = [](const Output& m, const Output& k, const Output& v) {
    return AddOp("TensorMapInsert", {m, k, v});
  };
  const auto lookup = [](const Output& m, const Output& k, DataType dtype) {
    return AddOp("TensorMapLookup", {m, k}, {{"value_dtype", dtype}});
  };
  map = insert(insert(map, key, Const(g_, 1.f)), other, Const(g_, {2.f, 3.f}));
  EXPECT_EQ(Run(AddOp("TensorMapSize", {map})).scalar<int32_t>(), 2);
  EXPECT_THAT(Floats(lookup(map, other, DT_FLOAT)), ElementsAre(2, 3));
  EXPECT_TRUE(Run(AddOp("TensorMapHasKey", {map, key})).scalar<bool>());
  EXPECT_FALSE(Run(AddOp("TensorMapHasKey", {map, Const(g_, "b")})).scalar<bool>());
  EXPECT_THAT(Floats(lookup(insert(map, key, Const(g_, 7.f)), key, DT_FLOAT)), ElementsAre(7));
  const Output erased = AddOp("TensorMapErase", {map, other}, {{"value_dtype", DT_FLOAT}});
  EXPECT_EQ(Run(AddOp("TensorMapSize", {erased})).scalar<int32_t>(), 1);
  const Output keys = AddOp("TensorMapStackKeys", {erased}, {{"key_dtype", DT_STRING}});
  EXPECT_EQ(Run(keys).data<std::string>()[0], "a");
  ExpectError(lookup(erased, other, DT_FLOAT), "Trying to lookup non-existent key");
  ExpectError(AddOp("TensorMapErase", {erased, other}, {{"value_dtype", DT_FLOAT}}),
              "Trying to erase non-existent item");
  ExpectError(lookup(map, key, DT_INT32), "requests a value of type int32");
  ExpectError(AddOp("TensorMapSize", {Empty(Any())}), "Input handle is not a map");
  ExpectError(Length(map), "Input handle is not a list");
}

TEST_F(VariantsTest, OptionalsHoldValuesOrNone) {
  const Output some = AddOp("OptionalFromValue", {Outputs{Const(g_, 1.f), Const(g_, "a")}});
  const Output none = Output(AddNode(g_, "OptionalNone", {}));
  EXPECT_TRUE(Run(AddOp("OptionalHasValue", {some})).scalar<bool>());
  EXPECT_FALSE(Run(AddOp("OptionalHasValue", {none})).scalar<bool>());
  const auto values = [](const Output& optional, DataTypes types, std::vector<Shape> shapes) {
    return AddNode("OptionalGetValue", {optional},
                   {{"output_types", types}, {"output_shapes", shapes}});
  };
  Node* got = values(some, {DT_FLOAT, DT_STRING}, {Shape(), Shape()});
  EXPECT_EQ(Run(Output(got, 0)).scalar<float>(), 1);
  EXPECT_EQ(Run(Output(got, 1)).scalar<std::string>(), "a");
  ExpectError(Output(values(none, {DT_FLOAT}, {Shape()})), "does not have a value");
  ExpectError(Output(values(some, {DT_FLOAT}, {Shape()})), "has 2 components, expected 1");
  ExpectError(Output(values(some, {DT_INT32, DT_STRING}, {Shape(), Shape()})), "expected type");
  ExpectError(Output(values(some, {DT_FLOAT, DT_STRING}, {Shape({2}), Shape()})), "expected shape");
}

TEST_F(VariantsTest, GradientsOfOptionals) {
  const Output x = Const(g_, 3.f);
  const Output optional = AddOp("OptionalFromValue", {Outputs{x * 2.f}});
  Node* got = AddNode(
      "OptionalGetValue", {optional},
      {{"output_types", DataTypes{DT_FLOAT}}, {"output_shapes", std::vector<Shape>{Shape()}}});
  EXPECT_EQ(Floats(DenseGradients({Output(got)}, {x})[0])[0], 2);
}

}  // namespace
}  // namespace weir
