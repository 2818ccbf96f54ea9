// What graphs learn of datasets without an iterator, elements as variants, hints, and old names of
// ops. The values are those of TensorFlow 2.21.

#include "weir/tests/kernels/data/dataset_test_util.h"

namespace weir {
namespace {

using ::testing::HasSubstr;

class DatasetValuesTest : public DatasetTransformsTest {
 protected:
  Set Counted(const char* op, const Set& set, int64_t n) {
    return Make(op, {set.handle, Number(n)});
  }
  Set Both(const char* op, const Set& a, const Set& b) { return Make(op, {a.handle, b.handle}); }
  Set Zip(const Set& a, const Set& b) {
    return Make("ZipDataset", {Outputs{a.handle, b.handle}}, {}, {DT_INT64, DT_INT64});
  }
  Set Map(const Set& set, bool preserve) {
    const FunctionRef square =
        Define({DT_INT64}, [](Graph&, const Outputs& a) { return Outputs{a[0] * a[0]}; });
    return Make("MapDataset", {set.handle, Outputs()},
                {{"f", square}, {"preserve_cardinality", preserve}});
  }
  // Elements that a predicate keeps.
  Set Unknown() {
    const FunctionRef keep = Define(
        {DT_INT64}, [](Graph& body, const Outputs& a) { return Outputs{Less(a[0], In(body, 3))}; });
    return Make("FilterDataset", {Range(0, 6).handle, Outputs()}, {{"predicate", keep}});
  }
  Set Endless() { return Repeat(Range(0, 6), -1); }
};

TEST_F(DatasetValuesTest, ElementsAreCountedWithoutComputingThem) {
  EXPECT_EQ(Cardinality(Range(2, 11, 4)), "3");
  EXPECT_EQ(
      Cardinality(Range(std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max())),
      "9223372036854775807");
  EXPECT_EQ(Cardinality(Unknown()), "-2");
  EXPECT_EQ(Cardinality(Endless()), "-1");
  EXPECT_EQ(Cardinality(Counted("SkipDataset", Endless(), -1)), "-1");
  EXPECT_EQ(Cardinality(Counted("SkipDataset", Range(0, 6), 4)), "2");
  EXPECT_EQ(Cardinality(Counted("TakeDataset", Endless(), 4)), "4");
  EXPECT_EQ(Cardinality(Counted("TakeDataset", Unknown(), 4)), "-2");
  EXPECT_EQ(Cardinality(Zip(Range(0, 6), Endless())), "6");
  EXPECT_EQ(Cardinality(Zip(Range(0, 6), Unknown())), "-2");
  EXPECT_EQ(Cardinality(Both("ConcatenateDataset", Endless(), Unknown())), "-1");
  EXPECT_EQ(Cardinality(Both("ConcatenateDataset", Range(0, 2), Range(0, 3))), "5");
  EXPECT_EQ(Cardinality(Repeat(Unknown(), 0)), "0");
  EXPECT_EQ(Cardinality(Make("ShardDataset", {Range(0, 7).handle, Number(3), Number(1)})), "2");
  EXPECT_EQ(Cardinality(Batch(Range(0, 7), 3)), "3");
  EXPECT_EQ(Cardinality(Map(Range(0, 7), true)), "7");
  EXPECT_EQ(Cardinality(Map(Range(0, 7), false)), "-2");
  for (const char* op : {"DatasetCardinality", "ExperimentalDatasetCardinality"})
    EXPECT_EQ(Fetched(AddOp(op, {Range(0, 7).handle})), "7");
}

TEST_F(DatasetValuesTest, ElementsHaveIndices) {
  EXPECT_EQ(Fetched(AddOp("GetElementAtIndex", {Range(3, 20, 5).handle, Number(0)},
                          ElementAttrs({DT_INT64}))),
            "3");
  EXPECT_EQ(At(Range(3, 20, 5), 3), "18");
  EXPECT_THAT(At(Range(3, 20, 5), 4), HasSubstr("end"));
  EXPECT_THAT(At(Range(3, 20, 5), -1), HasSubstr("end"));
  EXPECT_EQ(At(Values({4, 5, 6}), 1), "5");
  EXPECT_EQ(At(Batch(Range(0, 5), 2), 2), "[4]");
  EXPECT_EQ(At(Map(Range(0, 5), true), 3), "9");
  EXPECT_EQ(At(Repeat(Range(0, 3), 2), 4), "1");
  EXPECT_EQ(At(Make("ShardDataset", {Range(0, 7).handle, Number(3), Number(1)}), 1), "4");
  EXPECT_EQ(At(Make("ShardDataset", {Range(0, 7).handle, Number(-1), Number(1)}), 1), "1");
  EXPECT_EQ(At(Both("ConcatenateDataset", Range(0, 3), Range(5, 7)), 4), "6");
  EXPECT_EQ(At(Counted("SkipDataset", Range(0, 7), 3), 1), "4");
  EXPECT_EQ(At(Counted("TakeDataset", Range(0, 7), 3), 2), "2");
  EXPECT_EQ(At(Counted("TakeDataset", Range(0, 7), 3), 3), "end");
  EXPECT_EQ(At(Zip(Range(0, 3), Range(4, 9)), 2), "2 ; 6");
  EXPECT_EQ(At(Counted("PrefetchDataset", Range(0, 3), 1), 2), "2");
}

TEST_F(DatasetValuesTest, SomeDatasetsAreReadInOrderOnly) {
  EXPECT_THAT(At(Unknown(), 0), HasSubstr("Random access is not implemented"));
  EXPECT_THAT(At(Endless(), 0), HasSubstr("has infinite cardinality"));
  EXPECT_THAT(At(Counted("TakeDataset", Endless(), 5), 4), HasSubstr("has infinite cardinality"));
  EXPECT_THAT(At(Map(Range(0, 5), false), 3), HasSubstr("has unknown cardinality"));
}

TEST_F(DatasetValuesTest, ASingleElementIsReturned) {
  const auto single = [&](const Set& set) {
    return Fetched(AddOp("DatasetToSingleElement", {set.handle}, ElementAttrs(set.types)));
  };
  EXPECT_EQ(single(Range(5, 6)), "5");
  EXPECT_THAT(single(Range(5, 5)), HasSubstr("Dataset was empty."));
  EXPECT_THAT(single(Range(5, 7)), HasSubstr("Dataset had more than one element."));
}

TEST_F(DatasetValuesTest, OptionsAreKept) {
  const Set with = Make("OptionsDataset", {Range(0, 3).handle}, {{"serialized_options", "ab"}});
  EXPECT_EQ(Fetched(AddOp("GetOptions", {Batch(with, 2).handle})), "b'ab'");
  EXPECT_EQ(Fetched(AddOp("GetOptions", {Range(0, 3).handle})), "b''");
}

TEST_F(DatasetValuesTest, DatasetsAreWrapped) {
  const Output wrapped = AddOp("WrapDatasetVariant", {Range(0, 3).handle});
  EXPECT_EQ(Elements({AddOp("UnwrapDatasetVariant", {wrapped})}), "0, 1, 2, end");
  EXPECT_THAT(Fetched(AddOp("UnwrapDatasetVariant", {Range(0, 3).handle})),
              HasSubstr("Tensor must be a WrappedDataset variant object."));
}

TEST_F(DatasetValuesTest, ElementsAreCompressed) {
  const DataTypes types = {DT_INT64, DT_STRING};
  const Output text = Const(g_, Tensor::Vector<std::string>({"one", "", "three"}));
  const Output compressed = AddOp("CompressElement", {Outputs{Numbers({1, 2, 3}), text}});
  Node* const restored = AddNode("UncompressElement", {compressed}, ElementAttrs(types));
  EXPECT_EQ(Fetched(restored->output(0)), "[1 2 3] ; [b'one' b'' b'three']");
  EXPECT_THAT(Fetched(AddOp("UncompressElement", {Range(0, 3).handle}, ElementAttrs({DT_INT64}))),
              HasSubstr("Input does not contain a compressed element."));
  EXPECT_THAT(Fetched(AddOp("UncompressElement", {compressed}, ElementAttrs({DT_INT64}))),
              HasSubstr("Number of components does not match"));
}

TEST_F(DatasetValuesTest, ListsAreDatasets) {
  const DataTypes two = {DT_INT64, DT_INT64};
  const Outputs numbers = {Number(1), Number(2), Number(3), Number(4)};
  EXPECT_EQ(Elements(Make("ListDataset", {numbers}, {}, two)), "1 ; 2, 3 ; 4, end");
  const Outputs odd = {Number(1), Number(2), Number(3)};
  EXPECT_EQ(Elements(Make("ListDataset", {odd}, {}, two)), "1 ; 2, end");
}

TEST_F(DatasetValuesTest, BatchesAreMadeAhead) {
  const auto batches = [&](int64_t size, int64_t calls) {
    return Make("ParallelBatchDataset",
                {Range(0, 5).handle, Number(size), Number(calls), Flag(false)});
  };
  EXPECT_EQ(Elements(batches(2, 2)), "[0 1], [2 3], [4], end");
  EXPECT_EQ(Cardinality(batches(2, 2)), "3");
  EXPECT_THAT(Elements(batches(0, 2)), HasSubstr("Batch size must be greater than zero."));
  EXPECT_THAT(Elements(batches(2, 0)), HasSubstr("num_parallel_calls must be greater than zero."));
}

// Hints leave a dataset as it is.
TEST_F(DatasetValuesTest, HintsNameResources) {
  const Output pool =
      AddNode(g_, "ThreadPoolHandle", {}, {{"num_threads", int64_t{2}}, {"display_name", "pool"}})
          ->output(0);
  const Output old_pool = AddNode(g_, "ExperimentalThreadPoolHandle", {},
                                  {{"num_threads", int64_t{2}}, {"display_name", "pool"}})
                              ->output(0);
  EXPECT_EQ(Elements(Make("ThreadPoolDataset", {Range(0, 2).handle, pool})), "0, 1, end");
  EXPECT_EQ(Elements(Make("ExperimentalThreadPoolDataset", {Range(0, 2).handle, old_pool})),
            "0, 1, end");
  const auto threads = [&](int64_t count) {
    return Elements(
        Make("ThreadPoolDataset",
             {Range(0, 1).handle,
              AddNode(g_, "ThreadPoolHandle", {}, {{"num_threads", count}, {"display_name", ""}})
                  ->output(0)}));
  };
  EXPECT_EQ(threads(0), "0, end");
  EXPECT_THAT(threads(-1), HasSubstr("`num_threads` must be >= 0"));
  EXPECT_THAT(threads(65536), HasSubstr("`num_threads` must be < 65536"));
  EXPECT_THAT(threads(int64_t{1} << 40), HasSubstr("out of range for an int32"));
  const Output tag = Const(g_, "tag");
  for (const char* op :
       {"StatsAggregatorHandle", "StatsAggregatorHandleV2", "ExperimentalStatsAggregatorHandle"}) {
    const Output stats = AddNode(g_, op, {})->output(0);
    EXPECT_EQ(Elements(Make("SetStatsAggregatorDataset", {Range(0, 2).handle, stats, tag, tag})),
              "0, 1, end");
    EXPECT_EQ(Elements(Make("ExperimentalSetStatsAggregatorDataset",
                            {Range(0, 2).handle, stats, tag, tag})),
              "0, 1, end");
    EXPECT_EQ(Fetched(AddOp("StatsAggregatorSummary", {stats})), "b''");
    EXPECT_EQ(Fetched(AddOp("ExperimentalStatsAggregatorSummary", {stats})), "b''");
    const Operation writer(AddNode("StatsAggregatorSetSummaryWriter", {stats, stats}));
    EXPECT_TRUE(Session::Create(g_)->Run(writer).ok());
  }
  EXPECT_THAT(
      Elements(Make("ThreadPoolDataset",
                    {Range(0, 2).handle, AddNode(g_, "StatsAggregatorHandle", {})->output(0)})),
      HasSubstr("INVALID_ARGUMENT"));
  for (const char* op :
       {"ExperimentalMaxIntraOpParallelismDataset", "ExperimentalPrivateThreadPoolDataset"})
    EXPECT_EQ(Elements(Make(op, {Range(0, 2).handle, Number(1)})), "0, 1, end");
}

TEST_F(DatasetValuesTest, OldNamesOfFunctionalDatasets) {
  const FunctionRef square =
      Define({DT_INT64}, [](Graph&, const Outputs& a) { return Outputs{a[0] * a[0]}; });
  EXPECT_EQ(Elements(Make("ExperimentalMapAndBatchDataset",
                          {Range(0, 3).handle, Outputs(), Number(2), Number(1), Flag(false)},
                          {{"f", square}})),
            "[0 1], [4], end");
  const FunctionRef below = Define(
      {DT_INT64}, [](Graph& body, const Outputs& a) { return Outputs{Less(a[0], In(body, 2))}; });
  EXPECT_EQ(Elements(Make("ExperimentalTakeWhileDataset", {Range(0, 9).handle, Outputs()},
                          {{"predicate", below}})),
            "0, 1, end");
  const FunctionRef add = Define({DT_INT64, DT_INT64}, [](Graph&, const Outputs& a) {
    return Outputs{a[0] + a[1], a[0]};
  });
  EXPECT_EQ(Elements(Make("ExperimentalScanDataset",
                          {Range(0, 4).handle, Outputs{Number(0)}, Outputs()}, {{"f", add}})),
            "0, 0, 1, 3, end");
  const FunctionRef two = Define({DT_INT64}, [](Graph& body, const Outputs& a) {
    return Outputs{
        AddOp("RangeDataset", {a[0], a[0] + In(body, 2), In(body, 1)}, ElementAttrs({DT_INT64}))};
  });
  EXPECT_EQ(Elements(Make("ExperimentalParallelInterleaveDataset",
                          {Range(0, 2).handle, Outputs(), Number(2), Number(1), Flag(false),
                           Number(1), Number(1)},
                          {{"f", two}})),
            "0, 1, 1, 2, end");
  EXPECT_EQ(Elements(Make("ExperimentalUnbatchDataset", {Batch(Range(0, 3), 2).handle})),
            "0, 1, 2, end");
}

}  // namespace
}  // namespace weir
