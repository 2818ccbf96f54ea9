#include "weir/ops/data/io.h"

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/bundle.h"
#include "weir/core/io/file.h"
#include "weir/core/io/function_library.h"
#include "weir/core/tensor/memory_quota.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/session.h"
#include "weir/tests/io/test_files.h"

// Gradients checked to order 1 by tests: Batch, Unbatch.

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MakeTempDirectory;
using testing::ReadBytes;
using testing::WriteBytes;

absl::StatusOr<Tensor> Fetch(const Graph& graph, Output fetch) {
  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(graph));
  WEIR_ASSIGN_OR_RETURN(const Tensors out, session.Run({fetch}));
  return out[0];
}

absl::Status RunOp(const Graph& graph, Operation target) {
  WEIR_ASSIGN_OR_RETURN(Session session, Session::Create(graph));
  return session.Run(target);
}

std::vector<std::string> Strings(const absl::StatusOr<Tensor>& t) {
  EXPECT_TRUE(t.ok()) << t.status();
  return t.ok() ? std::vector<std::string>(t->flat<std::string>().begin(),
                                           t->flat<std::string>().end())
                : std::vector<std::string>();
}

Operation SaveOne(Graph& g, const std::string& path, const std::string& slice,
                  const Tensor& value) {
  return SaveV2(Const(g, path), Const(g, std::vector<std::string>{"x"}),
                Const(g, std::vector<std::string>{slice}), {Const(g, value)});
}

Outputs RestoreOne(Graph& g, const std::string& path, const std::string& slice, DataType dtype) {
  return RestoreV2(Const(g, path), Const(g, std::vector<std::string>{"x"}),
                   Const(g, std::vector<std::string>{slice}), {dtype});
}

TEST(CheckpointOps, SaveAndRestoreWholesAndSlices) {
  const std::string path = MakeTempDirectory("ops") + "/m";
  const Tensor value = Tensor::Of<float>(Shape({2, 2}), {1, 2, 3, 4});
  Graph g;
  ASSERT_TRUE(RunOp(g, SaveOne(g, path, "", value)).ok());
  const Output whole = RestoreOne(g, path, "", DT_FLOAT)[0],
               row = RestoreOne(g, path, "2 2 1,1:-", DT_FLOAT)[0];
  EXPECT_EQ(row.shape(), Shape({1, 2}));
  EXPECT_TRUE(IdenticalTensors(*Fetch(g, whole), value));
  EXPECT_TRUE(IdenticalTensors(*Fetch(g, row), value.Slice(1, 2)));
  const Output v1 = AddOp("RestoreSlice", {Const(g, path), Const(g, "x"), Const(g, "2 2 0,1:-")},
                          {{"dt", DT_FLOAT}});
  EXPECT_TRUE(IdenticalTensors(*Fetch(g, v1), value.Slice(0, 1)));
}

TEST(CheckpointOps, ErrorsHaveTensorFlowsWords) {
  const std::string path = MakeTempDirectory("ops") + "/m";
  const Tensor value = Tensor::Of<float>(Shape({2, 2}), {1, 2, 3, 4});
  Graph g;
  ASSERT_TRUE(RunOp(g, SaveOne(g, path, "", value)).ok());
  const absl::Status dtype = Fetch(g, RestoreOne(g, path, "", DT_INT32)[0]).status();
  EXPECT_TRUE(absl::IsInvalidArgument(dtype));
  EXPECT_THAT(
      dtype.message(),
      HasSubstr("tensor_name = x; expected dtype int32 does not equal original dtype float"));
  const absl::Status shape = Fetch(g, RestoreOne(g, path, "3 2 0,1:-", DT_FLOAT)[0]).status();
  EXPECT_TRUE(absl::IsInvalidArgument(shape));
  EXPECT_THAT(shape.message(),
              HasSubstr("[3,2] does not match the shape stored in checkpoint: [2,2]"));
  EXPECT_TRUE(absl::IsNotFound(Fetch(g, RestoreOne(g, path + "x", "", DT_FLOAT)[0]).status()));
  const absl::Status slice = RunOp(g, SaveOne(g, path, "3 2 0,1:-", value));
  EXPECT_TRUE(absl::IsInvalidArgument(slice));
  EXPECT_THAT(slice.message(),
              HasSubstr("Slice in shape_and_slice specification does not match the shape"));
}

TEST(CheckpointOps, TheOlderFormatIsOneFile) {
  const std::string path = MakeTempDirectory("ops") + "/m";
  const Tensor value = Tensor::Of<float>(Shape({2, 2}), {1, 2, 3, 4});
  Graph g;
  const Output name = Const(g, std::vector<std::string>{"x"});
  Node* const whole = AddNode("Save", {Const(g, path), name, Outputs{Const(g, value)}}, {}, "");
  ASSERT_TRUE(g.status().ok()) << g.status();
  ASSERT_TRUE(RunOp(g, Operation(whole)).ok());
  EXPECT_TRUE(IdenticalTensors(*Fetch(g, RestoreOne(g, path, "", DT_FLOAT)[0]), value));
  const auto save = [&](const std::string& slice, const Tensor& part) {
    return RunOp(g, SaveSlices(Const(g, path), name, Const(g, std::vector<std::string>{slice}),
                               {Const(g, part)}));
  };
  ASSERT_TRUE(save("2 2 1,1:-", value.Slice(1, 2)).ok());
  EXPECT_TRUE(IdenticalTensors(*Fetch(g, RestoreOne(g, path, "2 2 1,1:-", DT_FLOAT)[0]),
                               value.Slice(1, 2)));
  const absl::Status slice = save("3 2 0,1:-", value);
  EXPECT_TRUE(absl::IsInvalidArgument(slice));
  EXPECT_THAT(slice.message(),
              HasSubstr("Slice in shape_and_slice specification does not match the shape"));
}

TEST(CheckpointOps, MergeJoinsShardsAndRemovesTheirDirectory) {
  const std::string path = MakeTempDirectory("ops") + "/m";
  Graph g;
  std::vector<std::string> parts;
  for (const char* name : {"a", "b"}) {
    parts.push_back(path + "_temp/" + name);
    ASSERT_TRUE(RunOp(g, SaveV2(Const(g, parts.back()), Const(g, std::vector<std::string>{name}),
                                Const(g, std::vector<std::string>{""}), {Const(g, 1.0f)}))
                    .ok());
  }
  ASSERT_TRUE(RunOp(g, MergeV2Checkpoints(Const(g, parts), Const(g, path))).ok());
  EXPECT_FALSE(Files().Exists(path + "_temp"));
  EXPECT_EQ((*CheckpointReader::Open(path))->List()->size(), 2u);
}

TEST(FileOps, NamesOfShards) {
  Graph g;
  EXPECT_THAT(Strings(Fetch(
                  g, ShardedFilename(Const(g, "p"), Const(g, int32_t{3}), Const(g, int32_t{12})))),
              ElementsAre("p-00003-of-00012"));
  EXPECT_THAT(Strings(Fetch(g, ShardedFilespec(Const(g, "p"), Const(g, int32_t{12})))),
              ElementsAre("p-\?\?\?\?\?-of-00012"));
}

TEST(FileOps, FilesAreWrittenReadAndFound) {
  const std::string dir = MakeTempDirectory("ops");
  Graph g;
  ASSERT_TRUE(RunOp(g, WriteFile(Const(g, dir + "/new/f1"), Const(g, "text"))).ok());
  WriteBytes(dir + "/new/f2", "");
  EXPECT_EQ(ReadBytes(dir + "/new/f1"), "text");
  EXPECT_THAT(Strings(Fetch(g, ReadFile(Const(g, dir + "/new/f1")))), ElementsAre("text"));
  EXPECT_TRUE(absl::IsNotFound(Fetch(g, ReadFile(Const(g, dir + "/none"))).status()));
  const std::vector<std::string> patterns = {dir + "/new/f?", dir + "/*/f1"};
  EXPECT_THAT(Strings(Fetch(g, MatchingFiles(Const(g, patterns)))),
              ElementsAre(dir + "/new/f1", dir + "/new/f1", dir + "/new/f2"));
}

TEST(StringOps, JoinTakesScalarsWithAnyShape) {
  Graph g;
  const Output names = Const(g, std::vector<std::string>{"a", "b"});
  const Output joined = StringJoin({Const(g, "x"), names, Const(g, "y")}, "-");
  EXPECT_EQ(joined.shape(), Shape({2}));
  EXPECT_THAT(Strings(Fetch(g, joined)), ElementsAre("x-a-y", "x-b-y"));
  EXPECT_FALSE(StringJoin({names, Const(g, std::vector<std::string>{"c"})}).valid());
  EXPECT_TRUE(absl::IsInvalidArgument(g.TakeStatus()));
}

TEST(StringOps, FullMatchMeansAllOfTheString) {
  Graph g;
  const Output texts = Const(g, std::vector<std::string>{"s3://a", "as3://a", "s3:/"});
  const auto matches = Fetch(g, StaticRegexFullMatch(texts, "^s3://.*"));
  ASSERT_TRUE(matches.ok()) << matches.status();
  EXPECT_THAT(matches->flat<bool>(), ElementsAre(true, false, false));
  const absl::Status bad = Fetch(g, StaticRegexFullMatch(texts, "(")).status();
  EXPECT_TRUE(absl::IsInvalidArgument(bad));
  EXPECT_THAT(std::string(bad.message()), HasSubstr("Invalid pattern: (, error: missing )"));
}

// TensorFlow's results; POSIX expressions differ in each.
TEST(StringOps, PatternsHaveTheSyntaxOfRe2) {
  using namespace std::string_literals;
  struct {
    std::string pattern, yes, no;
  } const cases[] = {{"\\d+", "12", "d"},
                     {"(?i)abc", "ABC", "abd"},
                     {"a.c", "a\0c"s, "a\nc"},
                     {"a\0b"s, "a\0b"s, "a"}};
  for (const auto& c : cases) {
    Graph g;
    const Output texts = Const(g, std::vector<std::string>{c.yes, c.no});
    const auto matches = Fetch(g, StaticRegexFullMatch(texts, c.pattern));
    ASSERT_TRUE(matches.ok()) << matches.status();
    EXPECT_TRUE(matches->data<bool>()[0]) << c.pattern;
    EXPECT_FALSE(matches->data<bool>()[1]) << c.pattern;
  }
  Graph g;
  const Output text = Const(g, std::vector<std::string>{"aa"});
  EXPECT_TRUE(absl::IsInvalidArgument(Fetch(g, StaticRegexFullMatch(text, "(a)\\1")).status()));
}

// ---- summaries and batches

TEST(SummaryWriterOps, WriteAFileOfEvents) {
  const std::string folder = MakeTempDirectory("events");
  Graph g;
  const Output writer = AddNode(g, "SummaryWriter", {})->output(0);
  const auto op = [&](const char* name, const std::vector<Output>& inputs) {
    std::vector<Arg> args = {writer};
    for (const Output& input : inputs) args.emplace_back(input);
    Node* node = AddNode(name, args);
    EXPECT_NE(node, nullptr) << g.status();
    return Operation(node);
  };
  const Output step = Const(g, int64_t{7}), tag = Const(g, "loss");
  const Operation create =
      op("CreateSummaryFileWriter",
         {Const(g, folder), Const(g, int32_t{10}), Const(g, int32_t{100000}), Const(g, "x")});
  const std::vector<Operation> writes = {
      op("WriteScalarSummary", {step, tag, Const(g, 1.5f)}),
      op("WriteHistogramSummary", {step, tag, Const(g, std::vector<float>{1, 2})}),
      op("WriteSummary", {step, Const(g, 2.5f), tag, Const(g, "")}),
      op("WriteRawProtoSummary", {step, Const(g, "")}),
      op("WriteGraphSummary", {step, Const(g, "")}),
      op("ImportEvent", {Const(g, "")}),
      op("WriteImageSummary", {step, tag, Const(g, Tensor::Zeros(DT_FLOAT, Shape({1, 2, 2, 1}))),
                               Const(g, Tensor::Vector<uint8_t>({255, 0, 0, 255}))}),
      op("WriteAudioSummary",
         {step, tag, Const(g, Tensor::Zeros(DT_FLOAT, Shape({1, 4}))), Const(g, 8000.f)})};
  Session session = *Session::Create(g);
  EXPECT_EQ(session.Run(writes[0]).code(), absl::StatusCode::kNotFound) << "there is no file yet";
  ASSERT_TRUE(session.Run(create).ok());
  for (const Operation& write : writes) {
    const absl::Status status = session.Run(write);
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_TRUE(session.Run(op("FlushSummaryWriter", {})).ok());
  EXPECT_TRUE(session.Run(op("CloseSummaryWriter", {})).ok());
  EXPECT_EQ(session.Run(writes[0]).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(session.Run(op("CreateSummaryDbWriter", {tag, tag, tag, tag})).code(),
            absl::StatusCode::kUnimplemented);
  const auto files = Files().List(folder);
  ASSERT_TRUE(files.ok());
  ASSERT_EQ(files->size(), 1u);
  const std::string bytes = ReadBytes(JoinPath(folder, (*files)[0]));
  EXPECT_THAT(bytes, HasSubstr("brain.Event:2"));
  EXPECT_THAT(bytes, HasSubstr("loss"));
  EXPECT_THAT(bytes, HasSubstr("PNG"));
  EXPECT_THAT(bytes, HasSubstr("WAVEfmt"));
}

// Batches rows until there are three, for a minute at most.
Node* BatchOfThree(const Output& x) {
  return AddNode("Batch", {Outputs{x}},
                 {{"num_batch_threads", 1},
                  {"max_batch_size", 3},
                  {"batch_timeout_micros", 60000000},
                  {"grad_timeout_micros", 60000000}});
}

TEST(BatchOps, RowsOfTwoStepsAreJoinedAndDealtOut) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {-1});
  Node* batch = BatchOfThree(x);
  ASSERT_NE(batch, nullptr) << g.status();
  const Output doubled = AddOp("AddV2", {batch->output(0), batch->output(0)});
  const Output mine = AddOp("Unbatch", {doubled, batch->output(1), batch->output(2)},
                            {{"timeout_micros", 60000000}});
  Session session = *Session::Create(g, {.num_threads = 2});
  Tensor first;
  std::thread other([&] { first = (*session.Run({{x, Tensor::Vector({1.f})}}, {mine}))[0]; });
  const auto second = session.Run({{x, Tensor::Vector({2.f, 3.f})}}, {mine});
  other.join();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(IdenticalTensors((*second)[0], Tensor::Vector({4.f, 6.f})));
  EXPECT_TRUE(IdenticalTensors(first, Tensor::Vector({2.f})));
  EXPECT_EQ(session.Run({{x, Tensor::Vector({1.f, 2.f, 3.f, 4.f})}}, {mine}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(BatchOps, FunctionsSeePaddedBatches) {
  Graph g;
  Graph body;
  const Output arg = Placeholder(body, DT_FLOAT, {-1});
  ASSERT_TRUE(DefineFunction(g, "twice", body, {arg}, {AddOp("AddV2", {arg, arg})}).ok());
  const Output x = Placeholder(g, DT_FLOAT, {-1});
  const Output y = AddOp("BatchFunction", {Outputs{x}, Outputs{}},
                         {{"f", FunctionRef{"twice", nullptr}},
                          {"num_batch_threads", 1},
                          {"max_batch_size", 4},
                          {"allowed_batch_sizes", std::vector<int64_t>{2, 4}},
                          {"batch_timeout_micros", 1000},
                          {"Tout", DataTypes{DT_FLOAT}}});
  Session session = *Session::Create(g);
  const auto out = session.Run({{x, Tensor::Vector({1.f, 2.f, 3.f})}}, {y});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_TRUE(IdenticalTensors((*out)[0], Tensor::Vector({2.f, 4.f, 6.f})));
}

// The threads of a batch work for its steps.
TEST(BatchOps, MemoryCountsForTheStep) {
  constexpr int64_t kMb = int64_t{1} << 20;
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {-1});
  const Output y = AddNode("Batch", {Outputs{x}},
                           {{"num_batch_threads", 1},
                            {"max_batch_size", 2 * kMb},
                            {"batch_timeout_micros", 1000},
                            {"grad_timeout_micros", 1000}})
                       ->output(0);
  const Tensor small(DT_FLOAT, Shape({1000})), large(DT_FLOAT, Shape({3 * kMb / 2}));
  Session session = *Session::Create(g);
  const auto quota = MemoryQuota::New(nullptr, "quota", 4 * kMb);
  const ScopedMemoryQuota scope(quota.get());
  EXPECT_TRUE(session.Run({{x, small}}, {y}).ok());
  const absl::Status status = session.Run({{x, large}}, {y}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
}

TEST(BatchOps, FunctionsMustAcceptTheArgumentTypes) {
  Graph g;
  Graph body;
  const Output a = Placeholder(body, DT_FLOAT), b = Placeholder(body, DT_FLOAT);
  ASSERT_TRUE(DefineFunction(g, "sum", body, {a, b}, {AddOp("AddV2", {a, b})}).ok());
  const Output y = AddOp("BatchFunction", {Outputs{Const(g, {1.f})}, Outputs{}},
                         {{"f", FunctionRef{"sum", nullptr}},
                          {"num_batch_threads", 1},
                          {"max_batch_size", 4},
                          {"batch_timeout_micros", 1000},
                          {"Tout", DataTypes{DT_FLOAT}}});
  EXPECT_THAT(Fetch(g, y).status().message(),
              HasSubstr("Function takes 2 argument(s) but 1 argument(s) were passed"));
}

TEST(BatchOps, GradientsOfPartsAreJoined) {
  Graph g;
  const Output whole = Const(g, std::vector<float>{1, 2}), id = Const(g, int64_t{5});
  const Output index = Const(g, Tensor::Of<int64_t>({1, 3}, {5, 0, 2}));
  const Output joined =
      AddOp("UnbatchGrad", {whole, index, Const(g, std::vector<float>{3, 4}), id});
  EXPECT_TRUE(IdenticalTensors(*Fetch(g, joined), Tensor::Vector({3.f, 4.f})));
}

// d sum(w x^2) / dx = 2 w x, through a batch that one step fills.
TEST(BatchOps, GradientsGoThroughABatch) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {3}), w = Const(g, std::vector<float>{1, 2, 3});
  Node* batch = BatchOfThree(x);
  ASSERT_NE(batch, nullptr) << g.status();
  const Output mine =
      AddOp("Unbatch", {Square(batch->output(0)), batch->output(1), batch->output(2)},
            {{"timeout_micros", 60000000}});
  const Output dx = Gradients({ReduceSum(w * mine)}, {x})[0].dense();
  ASSERT_TRUE(g.status().ok()) << g.status();
  Session session = *Session::Create(g, {.num_threads = 2});
  const auto out = session.Run({{x, Tensor::Vector({4.f, 5.f, 6.f})}}, {dx});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_TRUE(IdenticalTensors((*out)[0], Tensor::Vector({8.f, 20.f, 36.f})));
}

}  // namespace
}  // namespace weir
