#include "gmock/gmock.h"
#include "weir/core/io/npy.h"
#include "weir/tests/tools/lib/tools_testing.h"
#include "weir/tools/lib/npz.h"
#include "weir/tools/run/feeds.h"
#include "weir/tools/run/results.h"

// tests/tools/run/feeds_test.py has feeds of all kinds, beside TensorFlow.
namespace weir::tools {
namespace {

using testing::HasSubstr;

// Runs y = x * [2, 3] of WriteLine's graph.
class RunWithFiles : public ::testing::Test {
 protected:
  CommandResult Run(std::vector<std::string> args) {
    args.insert(args.begin(), {"run", WriteLine(folder_), "--init", "init"});
    return Weir(args);
  }
  std::string Write(const std::string& name, absl::string_view contents) {
    const std::string path = JoinPath(folder_, name);
    EXPECT_TRUE(WriteFileAtomically(path, contents).ok());
    return path;
  }
  std::string Contents(const std::string& name) { return *ReadFile(JoinPath(folder_, name)); }

  const std::string folder_ = TestFolder();
};

TEST_F(RunWithFiles, AnArchiveWithoutANameFeedsTheInputsThatItNames) {
  const Tensor x = Tensor::Of<double>({1, 2}, {1, 10});
  const std::string npz = Write("in.npz", *SerializeNpz({{"x", x}, {"spare", x}}));
  const CommandResult run = Run({"--feed", npz, "--fetch", "y"});
  ASSERT_EQ(run.status, kOk) << run.err;
  EXPECT_THAT(run.out, HasSubstr("[[ 2. 30.]]"));
  EXPECT_THAT(run.err, HasSubstr("are not fed: spare"));
  const std::string other = Write("other.npz", *SerializeNpz({{"a", x}}));
  EXPECT_THAT(Run({"--feed", other, "--fetch", "y"}).err,
              HasSubstr("none of its values is named as an input; values: a; inputs: x"));
  EXPECT_THAT(Run({"--feed", npz, "--feed", "x=[[1, 2]]", "--fetch", "y"}).err,
              HasSubstr("--feed x: the tensor is fed twice"));
}

TEST_F(RunWithFiles, ErrorsNameTheFeedAndItsType) {
  const std::string csv = Write("x.csv", "1,2,3\n");
  EXPECT_THAT(Run({"--feed", "x=" + csv, "--fetch", "y"}).err,
              HasSubstr("--feed x (float[?,2]): " + csv + ": it has 1 lines of 3 fields"));
}

TEST_F(RunWithFiles, BatchesAreJoined) {
  const std::string csv = Write("x.csv", "1,1\n2,2\n3,3\n");
  const std::string out = JoinPath(folder_, "y.csv");
  const CommandResult run = Run({"--feed", "x=" + csv, "--batch", "2", "--fetch", "y=" + out});
  ASSERT_EQ(run.status, kOk) << run.err;
  EXPECT_EQ(Contents("y.csv"), "2.0,3.0\n4.0,6.0\n6.0,9.0\n");
  EXPECT_THAT(run.out, HasSubstr("2 steps"));
  EXPECT_THAT(Run({"--feed", "x=[[1, 2]]", "--batch", "2", "--fetch", "y"}).err,
              HasSubstr("no feed has rows"));
  EXPECT_THAT(Run({"--feed", "x=" + csv, "--batch", "2", "--repeat", "2", "--fetch", "y"}).err,
              HasSubstr("not both"));
}

TEST(CountRows, FilesHaveAsManyRows) {
  const auto rows_of = [](const std::vector<int64_t>& counts) {
    std::vector<FeedSource> feeds = {FeedSource::Of(Tensor::Scalar(1.f))};
    for (size_t i = 0; i < counts.size(); ++i) {
      const std::string path = JoinPath(TestFolder(), absl::StrCat("rows", i, ".npy"));
      EXPECT_TRUE(WriteNpy(path, Tensor::Zeros(DT_FLOAT, {counts[i], 2})).ok());
      feeds.push_back(*FeedSource::Read(path, {.dtype = DT_FLOAT}, true));
    }
    const absl::StatusOr<int64_t> rows = CountRows(feeds);
    return rows.ok() ? *rows : -1;
  };
  EXPECT_EQ(rows_of({3, 1, 3}), 3);
  EXPECT_EQ(rows_of({1, 3}), 3);
  EXPECT_EQ(rows_of({1, 0, 1}), 0);
  EXPECT_EQ(rows_of({3, 2}), -1);
  EXPECT_EQ(rows_of({0, 3}), -1);
  EXPECT_EQ(rows_of({3, 0}), -1);
}

TEST_F(RunWithFiles, OneFileTakesAllResults) {
  const std::string out = JoinPath(folder_, "out.jsonl");
  const CommandResult run = Run({"--feed", "x=[[1, 1], [2, 2]]", "--fetch", "y:0", "--fetch",
                                 "w/Read/ReadVariableOp", "--out", out});
  ASSERT_EQ(run.status, kOk) << run.err;
  EXPECT_EQ(Contents("out.jsonl"),
            "{\"y\": [2.0, 3.0], \"w/Read/ReadVariableOp\": 2.0}\n"
            "{\"y\": [4.0, 6.0], \"w/Read/ReadVariableOp\": 3.0}\n");
}

TEST(CheckResultFiles, TheNameSaysTheFormat) {
  EXPECT_TRUE(CheckResultFiles({{"a", ""}, {"b", "x.npz"}, {"c", "x.npz"}}).ok());
  EXPECT_THAT(CheckResultFiles({{"a", "x.bin"}}).message(), HasSubstr("ends in .npy"));
  EXPECT_THAT(CheckResultFiles({{"a", "x.npy"}, {"b", "x.npy"}}).message(),
              HasSubstr("a .npy file holds one value"));
}

TEST(ResultRows, ScalarsBecomeAVectorOfBatches) {
  ResultRows rows;
  rows.Add({Tensor::Scalar(1.f), Tensor::Vector<std::string>({"a"})});
  rows.Add({Tensor::Scalar(2.f), Tensor::Vector<std::string>({"b", "c"})});
  const auto joined = rows.Join({{"loss", ""}, {"name", ""}});
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_TRUE(IdenticalTensors((*joined)[0], Tensor::Vector<float>({1, 2})));
  EXPECT_TRUE(IdenticalTensors((*joined)[1], Tensor::Vector<std::string>({"a", "b", "c"})));
  const Tensor handle = Tensor::Zeros(DT_RESOURCE, {});
  ResultRows handles;
  handles.Add({handle});
  handles.Add({handle});
  EXPECT_EQ(handles.Join({{"v", ""}})->at(0).Description(), "resource[2]");
  ResultRows uneven;
  uneven.Add({Tensor::Zeros(DT_FLOAT, {1, 2})});
  uneven.Add({Tensor::Zeros(DT_FLOAT, {1, 3})});
  EXPECT_EQ(uneven.Join({{"y", ""}}).status().message(),
            "fetch y: a batch gives float[1,2], and another float[1,3], which cannot be joined");
}

TEST(ParsePixelRange, IsBlackAndWhite) {
  EXPECT_EQ(ParsePixelRange("")->white, 1);
  const auto range = ParsePixelRange("-1,1.5");
  ASSERT_TRUE(range.ok());
  EXPECT_EQ(range->black, -1);
  EXPECT_EQ(range->white, 1.5);
  for (const char* text : {"1", "a,b", "1,2,3"}) EXPECT_FALSE(ParsePixelRange(text).ok()) << text;
}

}  // namespace
}  // namespace weir::tools
