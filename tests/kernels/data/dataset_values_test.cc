// What graphs learn of datasets without an iterator, elements as variants, iterators without names,
// and sparse elements. The values are those of TensorFlow 2.21.

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
  Set Unknown() { return Make("UniqueDataset", {Range(0, 6).handle}); }
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

TEST_F(DatasetValuesTest, AnonymousIteratorsLiveInTheirStep) {
  for (const char* op : {"AnonymousIterator", "AnonymousIteratorV2", "AnonymousIteratorV3"}) {
    const Output iterator = AddNode(g_, op, {}, ElementAttrs({DT_INT64}))->output(0);
    const Operation start(AddNode("MakeIterator", {Range(4, 9).handle, iterator}));
    const ControlDependencies after(g_, {start});
    EXPECT_EQ(Fetched(AddOp("IteratorGetNext", {iterator}, ElementAttrs({DT_INT64}))), "4") << op;
  }
}

TEST_F(DatasetValuesTest, ADeletedIteratorIsEmpty) {
  Node* const iterator = AddNode(g_, "AnonymousIteratorV2", {}, ElementAttrs({DT_INT64}));
  const Operation start(AddNode("MakeIterator", {Range(4, 9).handle, iterator->output(0)}));
  const ControlDependencies started(g_, {start});
  const Operation erase(AddNode("DeleteIterator", {iterator->output(0), iterator->output(1)}));
  const ControlDependencies erased(g_, {erase});
  EXPECT_THAT(Fetched(AddOp("IteratorGetNext", {iterator->output(0)}, ElementAttrs({DT_INT64}))),
              HasSubstr("GetNext() failed because the iterator has not been initialized"));
}

TEST_F(DatasetValuesTest, TheEndIsAnEmptyOptional) {
  const Attrs elements = ElementAttrs({DT_INT64});
  const Output iterator =
      AddNode(g_, "IteratorV2", {}, With(elements, {{"shared_name", ""}, {"container", ""}}))
          ->output(0);
  const Operation start(AddNode("MakeIterator", {Range(4, 5).handle, iterator}));
  const Output optional = AddOp("IteratorGetNextAsOptional", {iterator}, elements);
  const Output has = AddOp("OptionalHasValue", {optional});
  const Output device = AddOp("IteratorGetDevice", {iterator});
  const Output old_device = AddOp("ExperimentalIteratorGetDevice", {iterator});
  const Output model = AddOp("IteratorGetModelProto", {iterator});
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  Session session = *Session::Create(g_);
  EXPECT_EQ(session.Run({optional}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(session.Run({model}).status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(session.Run(start).ok());
  EXPECT_TRUE((*session.Run({has}))[0].scalar<bool>());
  EXPECT_FALSE((*session.Run({has}))[0].scalar<bool>());
  EXPECT_EQ(session.Run({model}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT((*session.Run({device}))[0].scalar<std::string>(), HasSubstr("CPU:0"));
  EXPECT_THAT((*session.Run({old_device}))[0].scalar<std::string>(), HasSubstr("CPU:0"));
}

class MultiDeviceIteratorTest : public DatasetValuesTest {
 protected:
  void Build(const char* op, const Attrs& names) {
    const std::vector<std::string> devices = {"/cpu:0", "/cpu:0"};
    iterator_ =
        AddNode(g_, op, {}, With(With(ElementAttrs({DT_INT64}), {{"devices", devices}}), names));
    start_ =
        AddOp("MultiDeviceIteratorInit", {Range(0, 5).handle, iterator_->output(0), Number(1)});
    shard_ = Placeholder(g_, DT_INT32);
    incarnation_ = Placeholder(g_, DT_INT64);
    next_ = AddOp("MultiDeviceIteratorGetNextFromShard",
                  {iterator_->output(0), shard_, incarnation_}, ElementAttrs({DT_INT64}));
  }
  std::string Next(Session& session, int shard, int64_t incarnation) {
    return Text(session.Run(
        {{shard_, Tensor::Scalar(shard)}, {incarnation_, Tensor::Scalar(incarnation)}}, {next_}));
  }

  Node* iterator_ = nullptr;
  Output start_, shard_, incarnation_, next_;
};

TEST_F(MultiDeviceIteratorTest, ElementsAreDealtInTurn) {
  Build("MultiDeviceIterator", {{"shared_name", ""}, {"container", ""}});
  const Output text = AddOp("MultiDeviceIteratorToStringHandle", {iterator_->output(0)});
  const Output found = AddOp("MultiDeviceIteratorFromStringHandle", {text});
  const Output by_text = AddOp("MultiDeviceIteratorGetNextFromShard", {found, shard_, incarnation_},
                               ElementAttrs({DT_INT64}));
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  Session session = *Session::Create(g_);
  EXPECT_THAT(Next(session, 0, 1), HasSubstr("has not been initialized"));
  ASSERT_EQ((*session.Run({start_}))[0].scalar<int64_t>(), 1);
  EXPECT_EQ(Next(session, 1, 1), "1");
  EXPECT_EQ(Next(session, 1, 1), "3");
  EXPECT_EQ(Next(session, 0, 1), "0");
  EXPECT_EQ(
      Text(session.Run({{shard_, Tensor::Scalar(0)}, {incarnation_, Tensor::Scalar(int64_t{1})}},
                       {by_text})),
      "2");
  EXPECT_EQ(Next(session, 0, 1), "4");
  EXPECT_EQ(Next(session, 1, 1), "end");
  EXPECT_THAT(Next(session, 0, 77), HasSubstr("Invalid incarnation id. Provided: 77; Expected: 1"));
  EXPECT_THAT(Next(session, 2, 1), HasSubstr("shard_num must be in [0, 2), not 2"));
  ASSERT_EQ((*session.Run({start_}))[0].scalar<int64_t>(), 2);
  EXPECT_EQ(Next(session, 0, 2), "0");
}

TEST_F(MultiDeviceIteratorTest, AnonymousOnesLiveInTheirStep) {
  for (const char* op : {"AnonymousMultiDeviceIterator", "AnonymousMultiDeviceIteratorV3"}) {
    Build(op, {});
    const Output next =
        AddOp("MultiDeviceIteratorGetNextFromShard", {iterator_->output(0), Const(g_, 1), start_},
              ElementAttrs({DT_INT64}));
    EXPECT_EQ(Fetched(next), "1") << op;
  }
  const Operation erase(AddNode(
      "DeleteMultiDeviceIterator",
      {iterator_->output(0), Outputs(),
       AddNode(g_, "AnonymousMultiDeviceIterator", {},
               With(ElementAttrs({DT_INT64}), {{"devices", std::vector<std::string>{"/cpu:0"}}}))
           ->output(1)}));
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  EXPECT_TRUE(Session::Create(g_)->Run(erase).ok());
}

TEST_F(DatasetValuesTest, SparseTensorsHaveSlices) {
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
  EXPECT_THAT(Elements({AddOp("SparseTensorSliceDataset", {indices, values, Numbers({2, 3})}),
                        {DT_INT64, DT_FLOAT, DT_INT64}}),
              HasSubstr("is not in [0, 2)"));
}

TEST_F(DatasetValuesTest, DenseElementsMakeSparseBatches) {
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

TEST_F(DatasetValuesTest, RowsAreFoundByTheirIndex) {
  const FunctionRef twice = Define({DT_INT64}, [](Graph& body, const Outputs& a) {
    return Outputs{AddOp("Fill", {Const(body, Tensor::Vector<int64_t>({2})), a[0]})};
  });
  const FunctionRef place = Define({DT_INT64}, [](Graph& body, const Outputs& a) {
    return Outputs{FloorDiv(a[0], In(body, 2)), FloorMod(a[0], In(body, 2))};
  });
  const Set rows =
      Make("IndexFlatMapDataset", {Range(0, 3).handle, Outputs(), Outputs(), Number(6)},
           {{"map_func", twice}, {"index_map_func", place}});
  EXPECT_EQ(Elements(rows), "0, 0, 1, 1, 2, 2, end");
  EXPECT_EQ(At(rows, 3), "1");
  EXPECT_EQ(Cardinality(rows), "6");
}

TEST_F(DatasetValuesTest, WeightsLimitTheElementsOfEachDataset) {
  const auto weight = [&](double w) { return Const(g_, Tensor::Scalar(w)); };
  const auto weighted = [&](double first) {
    return Make("WeightedFlatMapDataset",
                {Outputs{Range(0, 10).handle, Range(100, 110).handle, Range(200, 202).handle},
                 Outputs{weight(first), weight(.3), weight(.5)}});
  };
  EXPECT_EQ(Elements(weighted(.2)), "100, 200, 201, end");
  EXPECT_EQ(At(weighted(.2), 1), "200");
  EXPECT_EQ(Cardinality(weighted(.2)), "3");
  EXPECT_THAT(Elements(weighted(0)), HasSubstr("`weights` must be greater than 0.0. Input 0"));
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

TEST_F(DatasetValuesTest, MapDefunStacksResults) {
  const FunctionRef f = Define({DT_INT64, DT_INT64}, [](Graph&, const Outputs& a) {
    return Outputs{a[0] * a[1], Identity(a[1])};
  });
  const auto mapped = [&](const Output& rows, const Shape& shape) {
    return AddNode("MapDefun", {Outputs{rows}, Outputs{Number(10)}},
                   {{"f", f},
                    {"output_types", DataTypes{DT_INT64, DT_INT64}},
                    {"output_shapes", std::vector<Shape>{shape, Shape()}}});
  };
  const Output rows = Const(g_, Tensor::Of<int64_t>({3, 2}, {0, 1, 2, 3, 4, 5}));
  Node* const stacked = mapped(rows, Shape({2}));
  EXPECT_EQ(stacked->output(0).shape(), Shape({3, 2}));
  const std::string all = "[[ 0 10]\n [20 30]\n [40 50]] ; [10 10 10]";
  EXPECT_EQ(Fetched(stacked->output(0)), all);
  EXPECT_EQ(Fetched(mapped(rows, Shape::UnknownRank())->output(0)), all);
  EXPECT_THAT(Fetched(mapped(rows, Shape({3}))->output(0)),
              HasSubstr("Mismatch in function retval shape"));
}

}  // namespace
}  // namespace weir
