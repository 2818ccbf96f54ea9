// Datasets that choose, drop, check or divide elements. The elements are those of TensorFlow 2.21.

#include "weir/tests/kernels/data/dataset_test_util.h"

namespace weir {
namespace {

using ::testing::HasSubstr;

class DatasetChoiceTest : public DatasetTransformsTest {
 protected:
  Set Directed(const char* op, std::initializer_list<int64_t> selector, const Attrs& attrs = {}) {
    return Make(op, {Values(selector).handle, Outputs{Range(0, 3).handle, Range(10, 15).handle}},
                attrs);
  }
  Set Rebatch(std::initializer_list<int64_t> sizes, bool drop) {
    return Make("RebatchDatasetV2", {Batch(Range(0, 8), 3).handle, Numbers(sizes), Flag(drop)});
  }
};

TEST_F(DatasetChoiceTest, ASelectorDirectsWhereElementsComeFrom) {
  const auto selector = {int64_t{0}, int64_t{1}, int64_t{1}, int64_t{0}, int64_t{0}, int64_t{0},
                         int64_t{1}, int64_t{0}, int64_t{1}, int64_t{1}, int64_t{1}, int64_t{1}};
  for (const char* op : {"DirectedInterleaveDataset", "ExperimentalDirectedInterleaveDataset"})
    EXPECT_EQ(Elements(Directed(op, selector)), "0, 10, 11, 1, 2, 12, 13, 14, end");
  EXPECT_EQ(
      Elements(Directed("DirectedInterleaveDataset", selector, {{"stop_on_empty_dataset", true}})),
      "0, 10, 11, 1, 2, end");
  EXPECT_THAT(Elements(Directed("DirectedInterleaveDataset", {0, 5, 1})),
              ::testing::MatchesRegex(
                  "0, INVALID_ARGUMENT: .*Selector index out of range: 5 >= 2, 10, end"));
}

TEST_F(DatasetChoiceTest, TheFastestDatasetIsChosen) {
  for (const char* op : {"ChooseFastestDataset", "ExperimentalChooseFastestDataset"}) {
    const auto fastest = [&](int64_t size) {
      return Make(op, {Outputs{Range(0, 4).handle, Range(0, size).handle}},
                  {{"num_experiments", int64_t{2}}});
    };
    EXPECT_EQ(Elements(fastest(4)), "0, 1, 2, 3, end");
    EXPECT_EQ(Cardinality(fastest(4)), "4");
    EXPECT_THAT(Elements(fastest(5)), HasSubstr("must have compatible cardinalities. Input 1"));
  }
}

// Each branch doubles; the elements do not tell which branch made them.
TEST_F(DatasetChoiceTest, TheFastestBranchIsChosen) {
  const FunctionRef twice =
      Define({DT_INT64}, [](Graph&, const Outputs& a) { return Outputs{a[0] + a[0]}; });
  const auto branch = [&] {
    return Define({DT_VARIANT}, [&](Graph&, const Outputs& a) {
      return Outputs{
          AddOp("MapDataset", {a[0], Outputs()}, With(ElementAttrs({DT_INT64}), {{"f", twice}}))};
    });
  };
  const auto fastest = [&](int64_t numerator, int64_t denominator) {
    return Make("ChooseFastestBranchDataset",
                {Range(0, 9).handle, Number(numerator), Number(denominator), Outputs()},
                {{"num_elements_per_branch", int64_t{2}},
                 {"branches", std::vector<FunctionRef>{branch(), branch()}},
                 {"other_arguments_lengths", std::vector<int64_t>{0, 0}}});
  };
  EXPECT_EQ(Elements(fastest(1, 1)), "0, 2, 4, 6, 8, 10, 12, 14, 16, end");
  EXPECT_THAT(Elements(fastest(0, 1)), HasSubstr("`ratio_numerator` must be greater than zero."));
  EXPECT_THAT(Elements(fastest(1, 3)), HasSubstr("must be divisible by `ratio_denominator`"));
}

TEST_F(DatasetChoiceTest, RepeatedElementsAreDropped) {
  for (const char* op : {"UniqueDataset", "ExperimentalUniqueDataset"})
    EXPECT_EQ(Elements(Make(op, {Values({1, 1, 2, 3, 2, 1}).handle})), "1, 2, 3, end");
  const Set rows = Batch(Values({1, 2, 1, 2, 2, 1}), 2);
  EXPECT_EQ(Elements(Make("UniqueDataset", {rows.handle})), "[1 2], [2 1], end");
  EXPECT_THAT(Elements(Make("UniqueDataset", {Range(0, 3).handle}, {}, {DT_FLOAT})),
              HasSubstr("UniqueDataset only supports inputs with a single `tf.int32`"));
}

TEST_F(DatasetChoiceTest, ErrorsAreDropped) {
  const Set inverse = Inverse(Values({1, 0, 0, 2}));
  for (const char* op : {"IgnoreErrorsDataset", "ExperimentalIgnoreErrorsDataset"})
    EXPECT_EQ(Elements(Make(op, {inverse.handle})), "60, 30, end");
}

TEST_F(DatasetChoiceTest, AStatedCardinalityIsChecked) {
  const auto stated = [&](int64_t n) {
    return Make("AssertCardinalityDataset", {Range(0, 3).handle, Number(n)});
  };
  EXPECT_EQ(Elements(stated(3)), "0, 1, 2, end");
  EXPECT_THAT(Elements(stated(4), 4), HasSubstr("to contain 4 elements but contained only 3"));
  EXPECT_THAT(Elements(stated(1), 2), HasSubstr("to contain 1 element but contained at least 2"));
  EXPECT_THAT(Elements(stated(-1), 4), HasSubstr("an infinite number of elements but contained"));
  EXPECT_EQ(Cardinality(stated(4)), "4");
}

TEST_F(DatasetChoiceTest, BatchesAreSplit) {
  const Set batches = Batch(Range(0, 8), 4);
  const auto split = [&](const Set& set, int64_t parts) {
    return Elements(Make("RebatchDataset", {set.handle, Number(parts)}), 12);
  };
  EXPECT_EQ(split(batches, 1), "[0 1 2 3], [4 5 6 7], end");
  EXPECT_EQ(split(batches, 3), "[0 1], [2 3], [], [4 5], [6 7], [], end");
  EXPECT_EQ(split(batches, 5), "[0], [1], [2], [3], [], [4], [5], [6], [7], [], end");
  EXPECT_EQ(split(Batch(Range(0, 2), 2), int64_t{1} << 62),
            "[0], [1], [], [], [], [], [], [], [], "
            "[], [], []");
  EXPECT_EQ(Elements(Make("ExperimentalRebatchDataset", {batches.handle, Number(2)})),
            "[0 1], [2 3], [4 5], [6 7], end");
  EXPECT_THAT(split(Range(0, 2), 2), HasSubstr("All components must have at least one dimension"));
  EXPECT_THAT(split(batches, 0), HasSubstr("num_replicas must be greater than zero."));
}

TEST_F(DatasetChoiceTest, BatchesGetOtherSizes) {
  EXPECT_EQ(Elements(Rebatch({3}, false)), "[0 1 2], [3 4 5], [6 7], end");
  EXPECT_EQ(Elements(Rebatch({3}, true)), "[0 1 2], [3 4 5], end");
  EXPECT_EQ(Elements(Rebatch({1, 0, 2}, false)),
            "[0], [], [1 2], [3], [], [4 5], [6], [], [7], end");
  EXPECT_EQ(Elements(Rebatch({5, 1}, true)), "[0 1 2 3 4], [5], end");
  EXPECT_EQ(Elements(Rebatch({0}, false), 3), "[], [], []");
  EXPECT_THAT(Elements(Rebatch({-1}, false)), HasSubstr("must not be negative"));
  EXPECT_THAT(Elements(Rebatch({}, false)), HasSubstr("must not be empty"));
}

TEST_F(DatasetChoiceTest, WorkersShareElements) {
  const auto shard = [&](const char* op, int64_t workers, int64_t index, int64_t policy) {
    return Elements(Make(op, {Range(0, 7).handle, Number(workers), Number(index)},
                         {{"auto_shard_policy", policy}}));
  };
  EXPECT_EQ(shard("AutoShardDataset", 3, 1, 2), "1, 4, end");
  EXPECT_EQ(shard("ExperimentalAutoShardDataset", 3, 1, 2), "1, 4, end");
  EXPECT_EQ(shard("AutoShardDataset", 1, 0, 0), "0, 1, 2, 3, 4, 5, 6, end");
  EXPECT_EQ(shard("AutoShardDataset", 3, 1, 0), "1, 4, end") << "AUTO: there are no files";
  EXPECT_EQ(shard("AutoShardDataset", 7, 6, 2), "6, end");
  EXPECT_EQ(shard("AutoShardDataset", 9, 8, 2), "end");
  EXPECT_THAT(shard("AutoShardDataset", 9, 1, 2),
              HasSubstr("the dataset only has 7 file(s) or element(s)"));
  EXPECT_THAT(shard("AutoShardDataset", 3, 1, 1), HasSubstr("unshardable source")) << "FILE";
  EXPECT_THAT(shard("AutoShardDataset", 3, 1, 4), HasSubstr("auto_shard_policy is invalid"));
  EXPECT_THAT(shard("AutoShardDataset", 3, 3, 2), HasSubstr("index must be between 0 and 2"));
}

TEST_F(DatasetChoiceTest, AutomaticShardsOfFilesAreRefused) {
  const Output lines = AddOp(
      "TextLineDataset", {Const(g_, std::string("/lines")), Const(g_, std::string()), Number(0)});
  const Set shard =
      Make("AutoShardDataset", {lines, Number(2), Number(0)}, {{"auto_shard_policy", int64_t{0}}});
  EXPECT_THAT(Elements(shard), HasSubstr("UNIMPLEMENTED"));
}

TEST_F(DatasetChoiceTest, SleepEndsWithItsStep) {
  for (const char* op : {"SleepDataset", "ExperimentalSleepDataset"})
    EXPECT_EQ(Elements(Make(op, {Range(0, 2).handle, Number(1)})), "0, 1, end");
  const Set slow = Make("SleepDataset", {Range(0, 2).handle, Number(int64_t{1} << 50)});
  const Output element = AddOp("DatasetToSingleElement", {slow.handle}, ElementAttrs({DT_INT64}));
  Session session = *Session::Create(g_);
  RunOptions options;
  options.timeout = std::chrono::milliseconds(50);
  EXPECT_EQ(session.Run({}, {element}, {}, options).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST_F(DatasetChoiceTest, SparseTensorsHaveSlices) {
  const Output indices = Const(g_, Tensor::Of<int64_t>({3, 2}, {0, 1, 0, 2, 2, 0}));
  const Output values = Const(g_, Tensor::Vector({1.f, 2.f, 3.f}));
  const Set slices{AddOp("SparseTensorSliceDataset", {indices, values, Numbers({4, 3})}),
                   {DT_INT64, DT_FLOAT, DT_INT64}};
  EXPECT_EQ(Elements(slices),
            "[[1]\n [2]] ; [1. 2.] ; [3], [] ; [] ; [3], [[0]] ; [3.] ; [3], [] ; [] ; [3], end");
  EXPECT_EQ(Cardinality(slices), "4");
  const Output unordered = Const(g_, Tensor::Of<int64_t>({3, 2}, {1, 1, 0, 2, 2, 0}));
  EXPECT_THAT(Elements({AddOp("SparseTensorSliceDataset", {unordered, values, Numbers({4, 3})}),
                        {DT_INT64, DT_FLOAT, DT_INT64}}),
              HasSubstr("must be ordered in the batch dimension"));
  const Output both = Const(g_, Tensor::Of<int64_t>({3, 2}, {9, 1, 0, 2, 2, 0}));
  EXPECT_THAT(Elements({AddOp("SparseTensorSliceDataset", {both, values, Numbers({4, 3})}),
                        {DT_INT64, DT_FLOAT, DT_INT64}}),
              HasSubstr("UNIMPLEMENTED"));
  EXPECT_THAT(Elements({AddOp("SparseTensorSliceDataset", {indices, values, Numbers({2, 3})}),
                        {DT_INT64, DT_FLOAT, DT_INT64}}),
              HasSubstr("is not in [0, 2)"));
}

TEST_F(DatasetChoiceTest, DenseElementsMakeSparseBatches) {
  const FunctionRef fill = Define({DT_INT64}, [](Graph&, const Outputs& a) {
    return Outputs{AddOp("Fill", {Reshape(a[0], {1}), a[0]})};
  });
  const Set rows = Make("MapDataset", {Range(1, 4).handle, Outputs()}, {{"f", fill}});
  for (const char* op : {"DenseToSparseBatchDataset", "ExperimentalDenseToSparseBatchDataset"}) {
    const Set sparse = Make(op, {rows.handle, Number(2), Numbers({4})}, {}, {DT_VARIANT});
    const Output batch =
        AddOp("DatasetToSingleElement",
              {Make("TakeDataset", {sparse.handle, Number(1)}, {}, {DT_VARIANT}).handle},
              ElementAttrs({DT_VARIANT}));
    Node* const parts = AddNode("DeserializeSparse", {batch}, {{"dtype", DT_INT64}});
    EXPECT_EQ(Fetched(parts->output(0)), "[[0 0]\n [1 0]\n [1 1]] ; [1 2 2] ; [2 4]");
    EXPECT_EQ(Cardinality(Make(op, {Range(0, 3).handle, Number(2), Numbers({4})})), "2");
  }
  EXPECT_THAT(Elements(Make("DenseToSparseBatchDataset", {rows.handle, Number(3), Numbers({2})}, {},
                            {DT_VARIANT})),
              HasSubstr("is larger than the row shape"));
}

}  // namespace
}  // namespace weir
