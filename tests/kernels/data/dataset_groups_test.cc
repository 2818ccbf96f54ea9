// Windows, groups and generators. The elements are those of TensorFlow 2.21.

#include "weir/tests/kernels/data/dataset_test_util.h"

namespace weir {
namespace {

using ::testing::HasSubstr;

class DatasetGroupsTest : public DatasetTransformsTest {
 protected:
  // The key is sign * (n mod 3); a window has `size` elements, or 1 - key if that is 0.
  Set Grouped(const char* op, const Set& set, int64_t sign, int64_t size) {
    const FunctionRef key = Define({DT_INT64}, [sign](Graph& body, const Outputs& a) {
      return Outputs{FloorMod(a[0], In(body, 3)) * In(body, sign)};
    });
    const FunctionRef window = Define({DT_INT64}, [size](Graph& body, const Outputs& a) {
      return Outputs{size != 0 ? Identity(In(body, size)) : In(body, 1) - a[0]};
    });
    const DataTypes none;
    return Make(op, {set.handle, Outputs(), Outputs(), Outputs()},
                {{"key_func", key},
                 {"reduce_func", Batching({DT_INT64, DT_VARIANT})},
                 {"window_size_func", window},
                 {"Tkey_func_other_arguments", none},
                 {"Treduce_func_other_arguments", none},
                 {"Twindow_size_func_other_arguments", none}});
  }
  Set Window(const Set& set, int64_t size, int64_t shift, int64_t stride, bool drop) {
    return Make("WindowDataset",
                {set.handle, Number(size), Number(shift), Number(stride), Flag(drop)}, {},
                {DT_VARIANT});
  }
  std::string Windows(int64_t size, int64_t shift, int64_t stride, bool drop) {
    return Elements(
        FlatMap(Window(Range(0, 10), size, shift, stride, drop), Batching({DT_VARIANT})));
  }
  Set Slide(const char* op, int64_t size, int64_t shift, int64_t stride, const Attrs& attrs = {}) {
    return Make(op, {Range(0, 10).handle, Number(size), Number(shift), Number(stride)}, attrs);
  }
};

TEST_F(DatasetGroupsTest, WindowsAreDatasets) {
  EXPECT_EQ(Windows(3, 2, 1, false), "[0 1 2], [2 3 4], [4 5 6], [6 7 8], [8 9], end");
  EXPECT_EQ(Windows(3, 2, 1, true), "[0 1 2], [2 3 4], [4 5 6], [6 7 8], end");
  EXPECT_EQ(Windows(2, 4, 1, false), "[0 1], [4 5], [8 9], end");
  EXPECT_EQ(Windows(3, 1, 2, true), "[0 2 4], [1 3 5], [2 4 6], [3 5 7], [4 6 8], [5 7 9], end");
  EXPECT_EQ(Windows(2, 20, 1, false), "[0 1], end");
  EXPECT_EQ(Windows(20, 1, 1, true), "end");
}

TEST_F(DatasetGroupsTest, WindowsAreCounted) {
  EXPECT_EQ(Cardinality(Window(Range(0, 10), 3, 2, 1, false)), "5");
  EXPECT_EQ(Cardinality(Window(Range(0, 10), 3, 2, 1, true)), "4");
  EXPECT_EQ(Cardinality(Window(Range(0, 10), 20, 1, 1, true)), "0");
  EXPECT_EQ(Cardinality(Window(Repeat(Range(0, 10), -1), 3, 2, 1, true)), "-1");
}

// The error is returned with each window that its element belongs to.
TEST_F(DatasetGroupsTest, AnErrorIsAnElementOfItsWindows) {
  const Set windows = Window(Inverse(Values({1, 0, 2, 3, 4})), 2, 1, 1, true);
  const std::string all = Elements(FlatMap(windows, Batching({DT_VARIANT})));
  EXPECT_THAT(all, ::testing::MatchesRegex("INVALID_ARGUMENT: .*, INVALID_ARGUMENT: .*, "
                                           "\\[30 20\\], \\[20 15\\], end"));
}

TEST_F(DatasetGroupsTest, InvalidWindowsAreRefused) {
  EXPECT_THAT(Elements(Window(Range(0, 3), 0, 1, 1, true)),
              HasSubstr("Window size must be greater than zero."));
  EXPECT_THAT(Elements(Window(Range(0, 3), 1, 0, 1, true)),
              HasSubstr("Window shift must be greater than zero."));
  EXPECT_THAT(Elements(Window(Range(0, 3), 1, 1, 0, true)),
              HasSubstr("Window stride must be greater than zero."));
  constexpr int64_t kLarge = int64_t{1} << 40;
  EXPECT_THAT(Elements(Window(Range(0, 3), kLarge, 1, kLarge, true)),
              HasSubstr("Window target buffer size overflow"));
  EXPECT_EQ(Elements(Window(Range(0, 3), kLarge, 1, 1, true)), "end");
}

TEST_F(DatasetGroupsTest, SlidingWindowsAreBatches) {
  EXPECT_EQ(Elements(Slide("ExperimentalSlidingWindowDataset", 3, 2, 1)),
            "[0 1 2], [2 3 4], [4 5 6], [6 7 8], end");
  const Set whole = Slide("SlidingWindowDataset", 3, 2, 1, {{"drop_remainder", false}});
  EXPECT_EQ(Elements(whole), "[0 1 2], [2 3 4], [4 5 6], [6 7 8], [8 9], end");
  EXPECT_EQ(Cardinality(whole), "5");
  EXPECT_THAT(Elements(Slide("SlidingWindowDataset", 1, 1, 0)),
              HasSubstr("window_stride must be greater than zero."));
}

TEST_F(DatasetGroupsTest, AListIsAWindow) {
  const Outputs numbers = {Number(1), Number(2), Number(3), Number(4)};
  const DataTypes two = {DT_INT64, DT_INT64};
  EXPECT_EQ(Elements(Make("WindowOp", {numbers}, {}, two)), "1 ; 2, 3 ; 4, end");
  const Outputs odd = {Number(1), Number(2), Number(3)};
  EXPECT_THAT(Elements(Make("WindowOp", {odd}, {}, two)), HasSubstr("is not a multiple of"));
}

TEST_F(DatasetGroupsTest, GroupsAreFlushedWhenTheyAreFull) {
  EXPECT_EQ(Elements(Grouped("GroupByWindowDataset", Range(0, 10), 1, 2)),
            "[0 3], [1 4], [2 5], [6 9], [7], [8], end");
  EXPECT_EQ(Elements(Grouped("ExperimentalGroupByWindowDataset", Range(0, 12), -1, 0)),
            "[0], [3], [1 4], [6], [2 5 8], [9], [ 7 10], [11], end");
  const Set endless = Grouped("GroupByWindowDataset", Repeat(Range(0, 3), -1), 1, 2);
  EXPECT_EQ(Elements(endless, 4), "[0 0], [1 1], [2 2], [0 0]");
  EXPECT_EQ(Cardinality(endless), "-1");
}

TEST_F(DatasetGroupsTest, AGroupHasToHaveASize) {
  EXPECT_THAT(Elements(Grouped("GroupByWindowDataset", Range(0, 1), 1, -2)),
              HasSubstr("Window size must be greater than zero, but got -2."));
}

TEST_F(DatasetGroupsTest, GroupsAreReducedInTheOrderOfTheirKeys) {
  const FunctionRef key = Define({DT_INT64}, [](Graph& body, const Outputs& a) {
    return Outputs{In(body, 2) - FloorMod(a[0], In(body, 3))};
  });
  const FunctionRef init = Define(
      {DT_INT64}, [](Graph& body, const Outputs& a) { return Outputs{a[0] * In(body, 100)}; });
  const FunctionRef reduce =
      Define({DT_INT64, DT_INT64}, [](Graph&, const Outputs& a) { return Outputs{a[0] + a[1]}; });
  const FunctionRef finalize =
      Define({DT_INT64}, [](Graph&, const Outputs& a) { return Outputs{Identity(a[0])}; });
  const DataTypes none;
  for (const char* op : {"GroupByReducerDataset", "ExperimentalGroupByReducerDataset"}) {
    const Set reduced = Make(op, {Range(0, 10).handle, Outputs(), Outputs(), Outputs(), Outputs()},
                             {{"key_func", key},
                              {"init_func", init},
                              {"reduce_func", reduce},
                              {"finalize_func", finalize},
                              {"Tkey_func_other_arguments", none},
                              {"Tinit_func_other_arguments", none},
                              {"Treduce_func_other_arguments", none},
                              {"Tfinalize_func_other_arguments", none}});
    EXPECT_EQ(Elements(reduced), "15, 112, 218, end");
  }
}

// The state is an iterator over three numbers, whose end is that of the generator.
TEST_F(DatasetGroupsTest, AGeneratorEndsWithItsFunction) {
  const Attrs elements = ElementAttrs({DT_INT64});
  const FunctionRef init = Define({}, [&](Graph& body, const Outputs&) {
    const Output iterator = AddNode(body, "AnonymousIteratorV3", {}, elements)->output(0);
    const Output range = AddOp("RangeDataset", {In(body, 0), In(body, 3), In(body, 1)}, elements);
    Node* const start = AddNode("MakeIterator", {range, iterator});
    const ControlDependencies after(body, {Operation(start)});
    return Outputs{Identity(iterator)};
  });
  const FunctionRef next = Define({DT_RESOURCE}, [&](Graph&, const Outputs& a) {
    return Outputs{AddOp("IteratorGetNext", {a[0]}, elements)};
  });
  const FunctionRef finalize =
      Define({DT_RESOURCE}, [](Graph& body, const Outputs&) { return Outputs{In(body, 0)}; });
  const DataTypes none;
  const Set generated = Make("GeneratorDataset", {Outputs(), Outputs(), Outputs()},
                             {{"init_func", init},
                              {"next_func", next},
                              {"finalize_func", finalize},
                              {"Tinit_func_args", none},
                              {"Tnext_func_args", none},
                              {"Tfinalize_func_args", none}});
  EXPECT_EQ(Elements(generated), "0, 1, 2, end");
  EXPECT_EQ(Cardinality(generated), "-2");
}

}  // namespace
}  // namespace weir
