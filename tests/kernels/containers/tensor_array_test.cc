// TensorArrays: their contents, and errors in TensorFlow's words. Gradients and loops are in
// tests/session/runtime/loop_gradients_test.cc.

#include "weir/ops/containers/tensor_array.h"

#include "gmock/gmock.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/lib/math.h"
#include "weir/tests/kernels/lib/graph_fixture.h"

// Gradients checked to order 1 by tests: TensorArrayConcat, TensorArrayConcatV2,
// TensorArrayGather, TensorArrayGatherV2, TensorArrayRead, TensorArrayReadV2,
// TensorArrayScatter, TensorArrayScatterV2, TensorArraySplit, TensorArraySplitV2,
// TensorArrayWrite, TensorArrayWriteV2.

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TensorArrayTest : public GraphFixture {
 protected:
  // An op on an array whose shapes are unknown to the graph.
  Output Write(const TensorArray& a, const Output& index, const Output& value) {
    return AddOp("TensorArrayWriteV3", {a.handle(), index, value, a.flow()});
  }
  Output Read(const TensorArray& a, int index, DataType dtype = DT_FLOAT) {
    return AddOp("TensorArrayReadV3", {a.handle(), Const(g_, index), a.flow()}, {{"dtype", dtype}});
  }
};

TEST_F(TensorArrayTest, ReturnsWrittenValues) {
  TensorArray a(g_, DT_FLOAT, 3);
  a = a.Write(2, Const(g_, {1.f, 2.f}));
  a = a.Write(0, Const(g_, {3.f, 4.f}));
  a = a.Write(1, Const(g_, {5.f, 6.f}));
  EXPECT_EQ(a.element_shape(), Shape({2}));
  const Output all = a.Stack();
  EXPECT_EQ(all.shape(), Shape({3, 2}));
  EXPECT_THAT(Floats(all), ElementsAre(3, 4, 5, 6, 1, 2));
  EXPECT_THAT(Floats(a.Gather({2, 1})), ElementsAre(1, 2, 5, 6));
  EXPECT_THAT(Floats(a.Concat()), ElementsAre(3, 4, 5, 6, 1, 2));
  EXPECT_THAT(Floats(a.Read(1)), ElementsAre(5, 6));
}

TEST_F(TensorArrayTest, HoldsAnyType) {
  const TensorArray words =
      TensorArray(g_, DT_STRING, 2).Unstack(Const(g_, Tensor::Vector<std::string>({"a", "bc"})));
  EXPECT_EQ(Run(words.Read(1)).scalar<std::string>(), "bc");
  EXPECT_EQ(Run(words.Stack()).data<std::string>()[0], "a");
  const TensorArray bits =
      TensorArray(g_, DT_BOOL, 2).Unstack(Const(g_, Tensor::Vector<bool>({false, true})));
  EXPECT_TRUE(Run(bits.Read(1)).scalar<bool>());
}

TEST_F(TensorArrayTest, GrowsIfDynamic) {
  TensorArray a(g_, DT_FLOAT, 0, {.dynamic_size = true, .element_shape = Shape()});
  a = a.Write(4, Const(g_, 7.f));
  EXPECT_EQ(Run(a.Size()).scalar<int32_t>(), 5);
  EXPECT_THAT(Floats(a.Stack()), ElementsAre(0, 0, 0, 0, 7));
  TensorArray far(g_, DT_FLOAT, 0, {.dynamic_size = true});
  far = far.Write(2000000000, Const(g_, 7.f));
  EXPECT_EQ(Run(far.Size()).scalar<int32_t>(), 2000000001);
  EXPECT_EQ(Run(far.Read(2000000000)).scalar<float>(), 7);
}

TEST_F(TensorArrayTest, PartsMayBeOfDifferentLengths) {
  const TensorArray a = TensorArray(g_, DT_FLOAT, 3, {.infer_shape = false})
                            .Split(Const<float>(g_, {3, 1}, {1, 2, 3}), {2, 0, 1});
  EXPECT_EQ(Run(a.Read(0)).shape(), Shape({2, 1}));
  EXPECT_EQ(Run(a.Read(1)).shape(), Shape({0, 1}));
  Node* joined = a.Concat().node;
  EXPECT_THAT(Floats(joined->output(0)), ElementsAre(1, 2, 3));
  const Tensor lengths = Run(joined->output(1));
  EXPECT_THAT(lengths.flat<int64_t>(), ElementsAre(2, 0, 1));
}

TEST_F(TensorArrayTest, UnwrittenElementsAreZeroIfTheirShapeIsKnown) {
  EXPECT_THAT(Floats(TensorArray(g_, DT_FLOAT, 2, {.element_shape = Shape({2})}).Stack()),
              ElementsAre(0, 0, 0, 0));
  TensorArray a(g_, DT_FLOAT, 2);
  ExpectError(Read(a, 1), "element shape is not fully defined");
  a = a.Write(0, Const(g_, {1.f}));  // which determines the shape of all elements
  EXPECT_THAT(Floats(a.Read(1)), ElementsAre(0));
}

TEST_F(TensorArrayTest, EmptyArraysHaveAShapeIfItIsKnown) {
  const TensorArray a(g_, DT_FLOAT, 0, {.element_shape = Shape({3})});
  EXPECT_EQ(Run(a.Stack()).shape(), Shape({0, 3}));
  EXPECT_EQ(Run(a.Concat()).shape(), Shape({0}));
  const TensorArray unknown(g_, DT_FLOAT, 0);
  for (const Output& out : {unknown.Stack(), unknown.Concat()}) {
    const absl::Status s = Evaluate(g_, {out}).status();
    EXPECT_TRUE(absl::IsUnimplemented(s)) << s;
    EXPECT_THAT(s.message(), HasSubstr("TensorArray has size zero"));
  }
}

TEST_F(TensorArrayTest, ElementsAreWrittenOnceAndReadOnce) {
  const Output one = Const(g_, 1.f);
  const TensorArray once = TensorArray(g_, DT_FLOAT, 2).Write(0, one);
  ExpectError(once.Write(0, one).flow(),
              "TensorArray TensorArray_0: Could not write to TensorArray index 0 because it has "
              "already been written to");
  const Output first = once.Read(0);
  {
    const ControlDependencies after(g_, {first});
    ExpectError(once.Read(0), "twice because it was cleared after a previous read");
    ExpectError(once.Write(0, one).flow(), "it has already been read");
  }
  const TensorArray often = TensorArray(g_, DT_FLOAT, 1, {.clear_after_read = false}).Write(0, one);
  EXPECT_EQ(Run(often.Read(0) + often.Read(0)).scalar<float>(), 2);
}

TEST_F(TensorArrayTest, RejectsInvalidArguments) {
  const TensorArray a(g_, DT_FLOAT, 2);
  const Output zero = Const(g_, 0), one = Const(g_, 1.f);
  ExpectError(Write(a, Const(g_, 2), one), "array is not resizeable and size is: 2");
  ExpectError(Write(a, Const(g_, -1), one), "Tried to write to index -1");
  ExpectError(Read(a, 5), "Tried to read from index 5 but array size is: 2");
  ExpectError(Write(a, zero, zero),
              "TensorArray dtype is float but Op is trying to write dtype int32");
  ExpectError(Read(a.Write(0, one), 0, DT_INT32), "but Op requested dtype int32");
  const TensorArray pairs(g_, DT_FLOAT, 2, {.element_shape = Shape({2})});
  ExpectError(Write(pairs, zero, one),
              "incompatible with the TensorArray's inferred element shape");
  ExpectError(TensorArray(g_, DT_FLOAT, Const(g_, -3)).flow(), "Size should be >= 0");
  const Output rows = Const<float>(g_, {2, 1}, {1, 2});
  ExpectError(AddOp("TensorArrayScatterV3", {a.handle(), Const(g_, {0, 2}), rows, a.flow()}),
              "Max scatter index must be < array size (2 vs. 2)");
  ExpectError(AddOp("TensorArrayScatterV3", {a.handle(), Const(g_, {0}), rows, a.flow()}),
              "Expected len(indices) == values.shape[0], but saw: 1 vs. 2");
  ExpectError(a.Split(rows, {1}).flow(), "sum of lengths is 1");
  ExpectError(a.Split(rows, {2}).flow(), "TensorArray's size is not equal to the size of lengths");
  ExpectError(a.Split(rows, {3, -1}).flow(), "Expected lengths between 0 and 2");
  {
    const ControlDependencies after(g_, {a.Close()});
    ExpectError(Write(a, zero, one), "has already been closed");
  }
}

TEST_F(TensorArrayTest, ElementsOfDifferentShapesAreNotPacked) {
  TensorArray a(g_, DT_FLOAT, 2, {.infer_shape = false});
  a = a.Write(0, Const(g_, {1.f}));
  a = a.Write(1, Const(g_, {2.f, 3.f}));
  ExpectError(a.Stack(),
              "TensorArray has inconsistent shapes.  Index 0 has shape: [1] but index 1");
  EXPECT_THAT(Floats(a.Concat()), ElementsAre(1, 2, 3));
  TensorArray scalars(g_, DT_FLOAT, 1);
  scalars = scalars.Write(0, Const(g_, 1.f));
  ExpectError(
      AddOp("TensorArrayConcatV3", {scalars.handle(), scalars.flow()}, {{"dtype", DT_FLOAT}}),
      "Concat saw a scalar shape at index 0");
}

TEST_F(TensorArrayTest, BuildersRejectIncompatibleShapes) {
  const TensorArray a = TensorArray(g_, DT_FLOAT, 2).Write(0, Const(g_, {1.f}));
  EXPECT_FALSE(a.Write(1, Const(g_, {1.f, 2.f})).valid());
  EXPECT_THAT(g_.TakeStatus().message(),
              HasSubstr("Inconsistent shapes: saw [2] but expected [1]"));
}

TEST_F(TensorArrayTest, GradientsAccumulateWrites) {
  TensorArray a(g_, DT_FLOAT, 2);
  a = a.Write(0, Const(g_, {1.f, 2.f}));
  TensorArray d = a.Gradient("gradients", a.flow());
  d = d.Write(0, Const(g_, {1.f, 10.f}));
  d = d.Write(0, Const(g_, {2.f, 20.f}));
  EXPECT_THAT(Floats(d.Read(0)), ElementsAre(3, 30));
  // Another call of Gradients has its own sums.
  const TensorArray other = a.Gradient("gradients_1", d.flow());
  EXPECT_THAT(Floats(other.Read(0)), ElementsAre(0, 0));
  ExpectError(Write(d, Const(g_, 0), Const(g_, {1.f})), "Could not write to TensorArray index 0");
  const Output handle = AddOp("TensorArrayGradWithShape", {a.handle(), a.flow(), Const(g_, {3})},
                              {{"source", "more"}});
  EXPECT_EQ(Run(TensorArray(DT_FLOAT, handle, a.flow()).Read(0)).shape(), Shape({3, 2}));
}

// The gradient of the tensor has no more rows than the tensor.
TEST_F(TensorArrayTest, GradientOfSplitIgnoresOtherWrites) {
  const Output x = Const(g_, {1.f, 2.f, 3.f});
  TensorArray a(g_, DT_FLOAT, 3, {.dynamic_size = true, .infer_shape = false});
  a = a.Split(x, Const(g_, Tensor::Vector<int64_t>({1, 1, 1})));
  a = a.Write(3, Const(g_, {4.f}));
  const Output all = a.Concat();
  EXPECT_THAT(Floats(all), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(Floats(Gradients({all * all}, {x})[0].dense()), ElementsAre(2, 4, 6));
}

// The ops of graphs from 2016, whose handles are strings or references to strings. Their names end
// in nothing or "V2".
class LegacyTensorArrayTest : public TensorArrayTest,
                              public testing::WithParamInterface<const char*> {
 protected:
  LegacyTensorArrayTest() { g_.versions().producer = 10; }

  std::string Op(const std::string& op) const { return "TensorArray" + op + GetParam(); }
  // Its flow is arbitrary.
  TensorArray New(int size, std::initializer_list<NamedAttr> more = {}) {
    Attrs attrs{{"dtype", DT_FLOAT}};
    attrs.insert(attrs.end(), more);
    Node* array = AddNode(Op(""), {Const(g_, size)}, attrs);
    return TensorArray(DT_FLOAT, array->output(0), Const(g_, 0.f));
  }
};

TEST_P(LegacyTensorArrayTest, ReturnsWrittenValues) {
  TensorArray a = New(3).Write(2, Const(g_, {1.f, 2.f}));
  a = a.Scatter({0, 1}, Const<float>(g_, {2, 2}, {3, 4, 5, 6}));
  EXPECT_EQ(a.flow().node->op_name(), Op("Scatter"));
  EXPECT_THAT(Floats(a.Stack()), ElementsAre(3, 4, 5, 6, 1, 2));
  EXPECT_THAT(Floats(a.Gather({2, 1})), ElementsAre(1, 2, 5, 6));
  EXPECT_THAT(Floats(a.Concat()), ElementsAre(3, 4, 5, 6, 1, 2));
  EXPECT_THAT(Floats(a.Read(1)), ElementsAre(5, 6));
  EXPECT_EQ(Run(a.Size()).scalar<int32_t>(), 3);
  const TensorArray parts = New(2).Split(Const(g_, {1.f, 2.f, 3.f}), {2, 1});
  EXPECT_THAT(Floats(parts.Read(1)), ElementsAre(3));
  const ControlDependencies after(g_, {a.Close()});
  ExpectError(a.Size(), "has already been closed");
}

TEST_P(LegacyTensorArrayTest, HandlesAreStringsToOtherOps) {
  const TensorArray a = New(1, {{"tensor_array_name", "states"}});
  const Tensor text = Run(Identity(a.handle()));
  ASSERT_EQ(text.dtype(), DT_STRING);
  EXPECT_THAT(text.flat<std::string>(), ElementsAre("_tensor_arrays", "states"));
  const Output lengths = AddOp("StringLength", {a.handle()});
  EXPECT_THAT(Run(lengths).flat<int32_t>(), ElementsAre(14, 6));
}

TEST_P(LegacyTensorArrayTest, CopiesOfTheStringsAreNotHandles) {
  const Output text = Const(g_, Tensor::Vector<std::string>({"_tensor_arrays", "states"}));
  New(1, {{"tensor_array_name", "states"}});
  const Output flow = Const(g_, 0.f);
  const absl::Status s = Evaluate(g_, {AddOp("TensorArraySizeV2", {text, flow})}).status();
  EXPECT_TRUE(absl::IsNotFound(s)) << s;
  EXPECT_THAT(s.message(),
              HasSubstr("Container _tensor_arrays does not exist. (Could not find resource: "
                        "_tensor_arrays/states)"));
  ExpectError(AddOp("TensorArraySizeV2", {Const(g_, "states"), flow}),
              "Tensor array handle must be 2-element vector, but had shape: []");
}

TEST_P(LegacyTensorArrayTest, AnArrayOfHandlesStoresOnlyTheirText) {
  Node* node = AddNode(Op(""), {Const(g_, 1)}, {{"dtype", DT_STRING}, {"tensor_array_name", "a"}});
  const Output handle = node->output(0), flow = Const(g_, 0.f);
  const TensorArray itself = TensorArray(DT_STRING, handle, flow).Write(0, Identity(handle));
  const Output kept = itself.Read(0);
  EXPECT_THAT(Run(kept).flat<std::string>(), ElementsAre("_tensor_arrays", "a"));
  const absl::Status s = Evaluate(g_, {AddOp("TensorArraySizeV2", {kept, flow})}).status();
  EXPECT_TRUE(absl::IsNotFound(s)) << s;
}

TEST_P(LegacyTensorArrayTest, GradientsFlowThroughThem) {
  const Output x = Const(g_, {1.f, 2.f, 3.f});
  const TensorArray a = New(3).Unstack(x);
  const TensorArray parts = New(2).Split(x, {1, 2});
  const TensorArray whole = New(1).Write(0, x);
  const Output y = a.Read(2) * a.Read(0) + ReduceSum(a.Gather({1, 1})) +
                   ReduceSum(parts.Concat() * Const(g_, {10.f, 20.f, 30.f})) +
                   ReduceSum(whole.Read(0) * 100);
  const Outputs dx = DenseGradients({y}, {x});
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  EXPECT_THAT(Floats(dx[0]), ElementsAre(113, 122, 131));
}

INSTANTIATE_TEST_SUITE_P(Versions, LegacyTensorArrayTest, testing::Values("", "V2"));

TEST_F(TensorArrayTest, PacksAndUnpacksWithOpsFromBefore2016) {
  g_.versions().producer = 10;
  const Output flow = Const(g_, 0.f), rows = Const<float>(g_, {2, 2}, {1, 2, 3, 4});
  const Output array = AddOp("TensorArray", {Const(g_, 2)}, {{"dtype", DT_FLOAT}});
  const Output filled = AddOp("TensorArrayUnpack", {array, rows, flow});
  EXPECT_THAT(Floats(AddOp("TensorArrayPack", {array, filled}, {{"dtype", DT_FLOAT}})),
              ElementsAre(1, 2, 3, 4));
  const Output three = AddOp("TensorArray", {Const(g_, 3)}, {{"dtype", DT_FLOAT}});
  ExpectError(AddOp("TensorArrayUnpack", {three, rows, flow}),
              "Input value must have first dimension equal to the array size (2 vs. 3)");
}

TEST_F(TensorArrayTest, OfAnOutputThatANodeLacksFailsTheGraph) {
  const Output x = Const(g_, 1.f);
  EXPECT_FALSE(TensorArray(DT_FLOAT, Output(x.node, 9), x).Read(0).valid());
  EXPECT_THAT(std::string(g_.TakeStatus().message()), HasSubstr("does not have output 9"));
}

TEST_F(TensorArrayTest, RejectsReadingAnArrayLargerThanMemory) {
  TensorArray far(g_, DT_FLOAT, 0, {.dynamic_size = true, .element_shape = Shape({1})});
  far = far.Write(2000000000, Const(g_, {7.f}));
  const absl::Status s = Evaluate(g_, {far.Concat()}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(s)) << s;
}

}  // namespace
}  // namespace weir
