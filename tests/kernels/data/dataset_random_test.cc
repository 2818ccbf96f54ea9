// Datasets in random order and of random numbers. The elements are those of TensorFlow 2.21 for the
// same seeds.

#include "weir/tests/kernels/data/dataset_test_util.h"

namespace weir {
namespace {

using ::testing::HasSubstr;

class DatasetRandomTest : public DatasetTransformsTest {
 protected:
  Set ShuffleAndRepeat(const Set& set, int64_t buffer, int64_t count, bool fresh = true) {
    return Make("ShuffleAndRepeatDataset",
                {set.handle, Number(buffer), Number(1), Number(2), Number(count)},
                {{"reshuffle_each_iteration", fresh}});
  }
  Output Generator(const char* op = "AnonymousSeedGenerator") {
    std::vector<Arg> args = {Number(3), Number(4)};
    if (absl::string_view(op) == "AnonymousSeedGenerator") args.emplace_back(Flag(true));
    return AddNode(g_, op, args)->output(0);
  }
  Output Dummy() { return AddNode(g_, "DummySeedGenerator", {})->output(0); }
  Set Take(const Set& set, int64_t count) {
    return Make("TakeDataset", {set.handle, Number(count)});
  }
  Set GlobalShuffle(const Set& set, bool fresh) {
    return Make("GlobalShuffleDataset", {set.handle, Number(1), Number(2), Dummy()},
                {{"reshuffle_each_iteration", fresh}});
  }
};

TEST_F(DatasetRandomTest, ShuffledEpochsFollowEachOther) {
  const Set five = Range(0, 5);
  EXPECT_EQ(Elements(ShuffleAndRepeat(five, 4, 2)), "0, 2, 1, 3, 4, 3, 0, 4, 1, 2, end");
  EXPECT_EQ(Elements(ShuffleAndRepeat(five, 4, 2, false)), "3, 4, 2, 1, 0, 3, 4, 2, 1, 0, end");
  EXPECT_EQ(Elements(ShuffleAndRepeat(five, 20, 3)),
            "2, 0, 1, 3, 4, 1, 3, 4, 0, 2, 2, 0, 3, 4, 1, end");
  EXPECT_EQ(Elements(ShuffleAndRepeat(five, 2, -1), 20),
            "0, 2, 1, 3, 4, 1, 0, 2, 3, 4, 0, 2, 3, 4, 1, 0, 1, 2, 4, 3");
  EXPECT_EQ(Elements(ShuffleAndRepeat(five, 3, 4)),
            "1, 3, 2, 0, 4, 1, 3, 4, 0, 2, 1, 3, 0, 4, 2, 0, 2, 3, 4, 1, end");
  EXPECT_EQ(Elements(ShuffleAndRepeat(Range(0, 2), 100, 10)),
            "0, 1, 1, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 1, 0, 1, 0, 1, 0, end");
}

TEST_F(DatasetRandomTest, ABufferWithoutLimitHoldsOneEpoch) {
  constexpr int64_t kUnknownCardinality = -2;
  EXPECT_EQ(Elements(ShuffleAndRepeat(Range(0, 5), kUnknownCardinality, 3)),
            "2, 0, 1, 3, 4, 1, 3, 4, 0, 2, 2, 0, 3, 4, 1, end");
}

TEST_F(DatasetRandomTest, NothingRepeatedIsNothing) {
  EXPECT_EQ(Elements(ShuffleAndRepeat(Range(0, 0), 4, -1)), "end");
  EXPECT_EQ(Elements(ShuffleAndRepeat(Range(0, 0), 4, int64_t{1} << 60)), "end");
}

TEST_F(DatasetRandomTest, InvalidShufflesAreRefused) {
  EXPECT_THAT(Elements(ShuffleAndRepeat(Range(0, 5), 4, 0)),
              HasSubstr("count must be greater than zero or equal to -1."));
  EXPECT_THAT(Elements(ShuffleAndRepeat(Range(0, 5), 0, 1)),
              HasSubstr("buffer_size must be greater than zero"));
}

TEST_F(DatasetRandomTest, SeedGeneratorsAreShared) {
  const Set v2 = Make("ShuffleDatasetV2", {Range(0, 8).handle, Number(4), Generator()});
  EXPECT_EQ(Elements(v2), "1, 2, 3, 4, 5, 0, 7, 6, end");
  const Set v3 =
      Make("ShuffleDatasetV3", {Range(0, 5).handle, Number(4), Number(9), Number(9), Generator()});
  EXPECT_EQ(Elements(Repeat(v3, 2)), "1, 2, 0, 4, 3, 3, 4, 0, 2, 1, end");
  const Set repeated =
      Make("ShuffleAndRepeatDatasetV2", {Range(0, 5).handle, Number(4), Number(9), Number(9),
                                         Number(2), Generator("AnonymousRandomSeedGenerator")});
  EXPECT_EQ(Elements(repeated), "1, 2, 0, 4, 3, 3, 4, 0, 2, 1, end");
}

TEST_F(DatasetRandomTest, GeneratorsAreDeleted) {
  const std::pair<const char*, const char*> pairs[] = {
      {"AnonymousSeedGenerator", "DeleteSeedGenerator"},
      {"AnonymousRandomSeedGenerator", "DeleteRandomSeedGenerator"}};
  for (const auto& [make, erase_op] : pairs) {
    const Output handle = Generator(make);
    const Operation erase(AddNode(erase_op, {handle, handle.node->output(1)}));
    ASSERT_TRUE(g_.status().ok()) << g_.status();
    EXPECT_TRUE(Session::Create(g_)->Run(erase).ok());
  }
}

TEST_F(DatasetRandomTest, RandomNumbersRepeatUnlessToldOtherwise) {
  for (const char* op : {"RandomDataset", "ExperimentalRandomDataset"}) {
    const Set random = Make(op, {Number(3), Number(4)});
    EXPECT_EQ(Elements(random, 4), "1995848961, 2377083460, 192503441, 2649255194");
    EXPECT_EQ(Elements(Repeat(Take(random, 2), 2)),
              "1995848961, 2377083460, 1995848961, 2377083460, end");
    EXPECT_EQ(Cardinality(random), "-1");
  }
  const Set fresh = Make("RandomDatasetV2", {Number(3), Number(4), Dummy()},
                         {{"rerandomize_each_iteration", true}});
  EXPECT_EQ(Elements(Repeat(Take(fresh, 2), 2)),
            "1138331117, 168407181, 2689513579, 368471435, end");
  const Set shared = Make("RandomDatasetV2", {Number(0), Number(0), Generator()});
  EXPECT_EQ(Elements(Take(shared, 2)), "1138331117, 168407181, end");
}

TEST_F(DatasetRandomTest, SamplesAreKept) {
  const Output rate = Const(g_, Tensor::Scalar(0.3f));
  EXPECT_EQ(Elements(Make("SamplingDataset", {Range(0, 20).handle, rate, Number(1), Number(2)})),
            "2, 3, 5, 7, 9, 11, 12, end");
}

TEST_F(DatasetRandomTest, GlobalShufflesNeedNoBuffer) {
  EXPECT_EQ(Elements(GlobalShuffle(Range(0, 10), true)), "3, 4, 5, 9, 0, 8, 1, 7, 2, 6, end");
  EXPECT_EQ(Elements(GlobalShuffle(Range(0, 10), false)), "7, 6, 8, 0, 5, 2, 4, 3, 1, 9, end");
  EXPECT_EQ(Elements(Repeat(GlobalShuffle(Range(0, 5), true), 2)),
            "3, 4, 2, 1, 0, 1, 4, 3, 0, 2, end");
  EXPECT_THAT(Elements(GlobalShuffle(Repeat(Range(0, 5), -1), true)),
              HasSubstr("non-empty finite cardinality. Got cardinality -1"));
  EXPECT_THAT(Elements(GlobalShuffle(Make("UniqueDataset", {Range(0, 5).handle}), true)),
              HasSubstr("non-empty finite cardinality. Got cardinality -2"));
}

TEST_F(DatasetRandomTest, ShufflesAllowRandomAccess) {
  const Set shuffled =
      Make("ShuffleDataset", {Range(0, 6).handle, Number(3), Number(1), Number(2)});
  std::string all;
  for (int64_t i = 0; i < 6; ++i) all += At(shuffled, i) + " ";
  EXPECT_EQ(all, "5 1 4 0 3 2 ");
  // A permutation that does not fit into memory is refused.
  const Set large =
      Make("ShuffleDataset", {Range(0, int64_t{1} << 45).handle, Number(3), Number(1), Number(2)});
  EXPECT_THAT(At(large, 0), HasSubstr("RESOURCE_EXHAUSTED"));
}

TEST_F(DatasetRandomTest, RowsAreFoundByTheirIndex) {
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

TEST_F(DatasetRandomTest, WeightsLimitTheElementsOfEachDataset) {
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

}  // namespace
}  // namespace weir
