// Data sets of files, functions with captured tensors, iterators, and errors while a graph is
// built. dataset_goldens_test.cc compares the others with TensorFlow.
#include "weir/ops/data/dataset.h"

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/record.h"
#include "weir/ops/data/iterator.h"
#include "weir/ops/framework/state.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/math.h"
#include "weir/session/session.h"

namespace weir {
namespace {

using testing::HasSubstr;

// Returns a path of this test that is not there.
std::string NewPath(const std::string& name) {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  return absl::StrCat(testing::TempDir(), "/dataset_", test->name(), "_", getpid(), "_", name);
}

std::string WriteText(const std::string& name, const std::string& text) {
  const std::string path = NewPath(name);
  std::ofstream(path) << text;
  return path;
}

class DatasetTest : public testing::Test {
 protected:
  // Returns the elements as text: components are separated by spaces, elements by commas.
  static std::string Read(const Dataset& dataset) {
    if (!dataset.variant().valid()) return "invalid";
    Graph& g = dataset.variant().graph();
    const Iterator iterator = MakeInitializableIterator(dataset);
    const Outputs next = iterator.GetNext();
    if (!g.status().ok()) return std::string(g.status().message());
    Session session = *Session::Create(g, {.num_threads = 2});
    const absl::Status started = session.Run(iterator.initializer());
    if (!started.ok()) return std::string(started.message());
    std::vector<std::string> elements;
    for (int i = 0; i < 30; ++i) {
      const absl::StatusOr<Tensors> element = session.Run(next);
      if (absl::IsOutOfRange(element.status())) break;
      if (!element.ok()) return std::string(element.status().message());
      std::vector<std::string> components;
      for (const Tensor& t : *element) components.push_back(t.ToString());
      elements.push_back(absl::StrJoin(components, " "));
    }
    return absl::StrJoin(elements, ", ");
  }

  // Expects the graph to have an error that contains `text`, and the data set to be invalid.
  void ExpectError(const Dataset& dataset, const std::string& text) {
    EXPECT_FALSE(dataset.variant().valid());
    const absl::Status status = g_.TakeStatus();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }

  Dataset Numbers(int64_t n) { return Dataset::Range(g_, n); }
  // What Read returns for elements of one component.
  static std::string Text(const Tensors& elements) {
    std::vector<std::string> texts;
    for (const Tensor& element : elements) texts.push_back(element.ToString());
    return absl::StrJoin(texts, ", ");
  }

  Graph g_;
};

// ---- files

TEST_F(DatasetTest, ReadsLinesOfAllFiles) {
  const std::string a = WriteText("a", "one\ntwo\n"), b = WriteText("b", "three\n");
  const Output files = Const<std::string>(g_, {a, b});
  const std::string lines = Read(Dataset::TextLines(g_, files));
  EXPECT_EQ(lines, Text({Tensor::Scalar("one"), Tensor::Scalar("two"), Tensor::Scalar("three")}));
}

TEST_F(DatasetTest, ReadsRecordsOfSeveralFilesInTurn) {
  std::vector<std::string> paths;
  for (const char* name : {"a", "b"}) {
    paths.push_back(NewPath(name));
    auto writer = *RecordWriter::Create(paths.back());
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(writer->Append(absl::StrCat(name, i)).ok());
    ASSERT_TRUE(writer->Close().ok());
  }
  const std::string records =
      Read(Dataset::TfRecords(g_, Const(g_, paths), {.num_parallel_reads = 2}));
  EXPECT_EQ(records, Text({Tensor::Scalar("a0"), Tensor::Scalar("b0"), Tensor::Scalar("a1"),
                           Tensor::Scalar("b1")}));
}

TEST_F(DatasetTest, ReadsRecordsOfFixedLength) {
  const std::string path = WriteText("a", "HxxyyF");
  EXPECT_EQ(Read(Dataset::FixedLengthRecords(g_, path, 2, 1, 1)),
            Text({Tensor::Scalar("xx"), Tensor::Scalar("yy")}));
}

TEST_F(DatasetTest, ReadsColumnsOfCsvFiles) {
  const std::string path = WriteText("a", "x,y,z\n1,p,2.5\n3,,4.5\n");
  const Output required = Const(g_, Tensor(DT_INT32, Shape({0})));
  const Dataset rows = Dataset::Csv(g_, path, {required, Const(g_, "none")},
                                    {.header = true, .select_cols = {0, 1}});
  EXPECT_EQ(rows.types(), (DataTypes{DT_INT32, DT_STRING}));
  const std::string one = Text({Tensor::Scalar(1)}), three = Text({Tensor::Scalar(3)});
  EXPECT_EQ(Read(rows), absl::StrCat(one, " ", Text({Tensor::Scalar("p")}), ", ", three, " ",
                                     Text({Tensor::Scalar("none")})));
}

TEST_F(DatasetTest, ListsFilesInOrder) {
  WriteText("b.list", "");
  WriteText("a.list", "");
  const Output pattern = Const(g_, NewPath("?.list"));
  const std::string names = Read(Dataset::ListFiles(g_, pattern, /*shuffle=*/false));
  EXPECT_THAT(names, testing::MatchesRegex(".*a\\.list.*, .*b\\.list.*"));
}

TEST_F(DatasetTest, ListingNoFilesNamesThePattern) {
  EXPECT_THAT(Read(Dataset::ListFiles(g_, "/missing/*.x", false)),
              HasSubstr("No files matched pattern: /missing/*.x"));
}

TEST_F(DatasetTest, LoadsWhatWasSaved) {
  const std::string path = NewPath("saved");
  const Dataset numbers = Numbers(3);
  const Operation save = numbers.Save(path, "GZIP");
  const Dataset loaded = Dataset::Load(g_, path, numbers.element_spec(), "GZIP");
  {
    Session session = *Session::Create(g_);
    const absl::Status saved = session.Run(save);
    ASSERT_TRUE(saved.ok()) << saved;
  }
  EXPECT_EQ(Read(loaded), Read(Numbers(3)));
}

TEST_F(DatasetTest, SnapshotReturnsTheSameElementsFromItsFiles) {
  const std::string path = NewPath("snapshot");
  // Random numbers differ from run to run, unless they come from the files.
  Graph again;
  const std::string first = Read(Dataset::Random(g_).Take(4).Snapshot(path));
  EXPECT_EQ(Read(Dataset::Random(again).Take(4).Snapshot(path)), first);
}

TEST_F(DatasetTest, ParsesExamplesInTheOrderOfTheirKeys) {
  const Output json =
      Const<std::string>(g_, {R"({"features": {"feature": {"b": {"floatList": {"value": [2.5]}},
                                        "a": {"int64List": {"value": [7]}}}}})"});
  const Dataset parsed = Dataset::FromTensors({DecodeJsonExample(json)})
                             .ParseExample({{.key = "b", .dtype = DT_FLOAT, .shape = Shape({1})}},
                                           {{.key = "a", .dtype = DT_INT64}});
  EXPECT_EQ(parsed.types(), (DataTypes{DT_VARIANT, DT_FLOAT}));
  EXPECT_EQ(parsed.shapes()[1], Shape({1, 1}));
  const Dataset values = parsed.Map([](const Outputs& e) {
    return Outputs{DeserializeSparse(e[0], DT_INT64).values, e[1]};
  });
  EXPECT_EQ(Read(values), absl::StrCat(Text({Tensor::Vector<int64_t>({7})}), " ",
                                       Text({Tensor::Of<float>({1, 1}, {2.5f})})));
}

// ---- functions

TEST_F(DatasetTest, CapturedTensorsAreComputedWhenTheIteratorStarts) {
  const Output factor = Placeholder(g_, DT_INT64, Shape());
  const Dataset scaled = Numbers(3).Map(
      [](const Outputs& args) { return Outputs{args[0] * args[1]}; }, {.captured = {factor}});
  const Iterator iterator = MakeInitializableIterator(scaled);
  const Outputs next = iterator.GetNext();
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  Session session = *Session::Create(g_);
  for (const int64_t f : {2, 5}) {
    ASSERT_TRUE(
        session.Run({{factor, Tensor::Scalar(f)}}, Outputs{}, {iterator.initializer()}).ok());
    for (int64_t i = 0; i < 3; ++i) {
      const absl::StatusOr<Tensors> value = session.Run(next);
      ASSERT_TRUE(value.ok()) << value.status();
      EXPECT_EQ((*value)[0].scalar<int64_t>(), i * f);
    }
  }
}

TEST_F(DatasetTest, CapturedVariableIsReadForEachElement) {
  const Variable v = MakeVariable(g_, int64_t{10});
  const Dataset sums = Numbers(4).Map(
      [](const Outputs& args) { return Outputs{args[0] + ReadVariableOp(args[1], DT_INT64)}; },
      {.captured = {v.handle()}});
  const Iterator iterator = MakeInitializableIterator(sums);
  const Outputs next = iterator.GetNext();
  const Operation change(v.AssignAdd(int64_t{100}));
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  Session session = *Session::Create(g_);
  ASSERT_TRUE(session.Run(v.initializer()).ok());
  ASSERT_TRUE(session.Run(iterator.initializer()).ok());
  EXPECT_EQ((*session.Run(next))[0].scalar<int64_t>(), 10);
  ASSERT_TRUE(session.Run(change).ok());
  EXPECT_EQ((*session.Run(next))[0].scalar<int64_t>(), 111);
}

TEST_F(DatasetTest, ScanKeepsAStateThatGrows) {
  const Output none = Const(g_, Tensor(DT_INT64, Shape({0})));
  const Dataset grown = Numbers(3).Scan({none}, [](const Outputs& state, const Outputs& e) {
    const Output more = Concat({state[0], ExpandDims(e[0], 0)}, 0);
    return std::pair<Outputs, Outputs>({more}, {ReduceSum(more)});
  });
  EXPECT_EQ(Read(grown), Text({Tensor::Scalar(int64_t{0}), Tensor::Scalar(int64_t{1}),
                               Tensor::Scalar(int64_t{3})}));
}

TEST_F(DatasetTest, PadsBatchesToTheBoundaryOfTheirBucket) {
  const auto lengths = [&](std::initializer_list<int64_t> n) {
    return Dataset::FromTensorSlices({Const<int64_t>(g_, n)}).Map([](const Outputs& e) {
      return Outputs{Fill(ExpandDims(e[0], 0), e[0])};
    });
  };
  const KeyFn length = [](const Outputs& e) { return Size(e[0]); };
  const BucketOptions padded = {.pad_to_bucket_boundary = true};
  EXPECT_EQ(Read(lengths({1, 2}).BucketBySequenceLength(length, {4, 9}, {2, 2, 2}, padded)),
            Tensor::Of<int64_t>({2, 3}, {1, 0, 0, 2, 2, 0}).ToString());
  EXPECT_THAT(Read(lengths({4}).BucketBySequenceLength(length, {4}, {1, 1}, padded)),
              HasSubstr("elements must have length < max(bucket_boundaries)"));
}

TEST_F(DatasetTest, RebatchesRows) {
  EXPECT_EQ(Read(Numbers(5).Batch(4).Rebatch({3, 1})),
            Text({Tensor::Vector<int64_t>({0, 1, 2}), Tensor::Vector<int64_t>({3}),
                  Tensor::Vector<int64_t>({4})}));
}

TEST_F(DatasetTest, ShapesOfBatchesAreKnown) {
  EXPECT_EQ(Numbers(5).Batch(4).shapes()[0], Shape({-1}));
  EXPECT_EQ(Numbers(5).Batch(4, /*drop_remainder=*/true).shapes()[0], Shape({4}));
  const Dataset ones = Dataset::FromTensors({Const(g_, {1.0f, 1.0f})});
  EXPECT_EQ(ones.Batch(4).Unbatch().shapes()[0], Shape({2}));
  EXPECT_EQ(MakeInitializableIterator(ones.Repeat()).GetNext()[0].shape(), Shape({2}));
}

// ---- iterators

TEST_F(DatasetTest, StringHandleSelectsTheIterator) {
  const Iterator ones = MakeOneShotIterator(Numbers(2)),
                 tens = MakeOneShotIterator(Dataset::Range(g_, 10, 12));
  const Output name = Placeholder(g_, DT_STRING, Shape());
  const Iterator either = Iterator::FromStringHandle(name, ones.element_spec());
  const Outputs next = either.GetNext();
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  Session session = *Session::Create(g_);
  const Tensors names = *session.Run({ones.string_handle(), tens.string_handle()});
  EXPECT_EQ((*session.Run({{name, names[1]}}, next))[0].scalar<int64_t>(), 10);
  EXPECT_EQ((*session.Run({{name, names[0]}}, next))[0].scalar<int64_t>(), 0);
  EXPECT_EQ((*session.Run({{name, names[1]}}, next))[0].scalar<int64_t>(), 11);
}

TEST_F(DatasetTest, OneShotIteratorHoldsFunctionsAndNestedDataSets) {
  const Dataset squares = Numbers(3).FlatMap([](const Outputs& e) {
    return Dataset::Range(e[0].graph(), e[0]).Map([](const Outputs& x) {
      return Outputs{x[0] * x[0]};
    });
  });
  const Outputs next = MakeOneShotIterator(squares.Batch(3)).GetNext();
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  Session session = *Session::Create(g_);
  EXPECT_EQ((*session.Run(next))[0].ToString(), Tensor::Vector<int64_t>({0, 0, 1}).ToString());
  EXPECT_EQ(session.Run(next).status().code(), absl::StatusCode::kOutOfRange);
}

TEST_F(DatasetTest, OneShotIteratorRejectsState) {
  const Output fed = Placeholder(g_, DT_INT64, Shape(), "fed");
  MakeOneShotIterator(Dataset::Range(g_, fed));
  ExpectError({}, "Cannot capture a placeholder by value: fed (Placeholder)");
  const Variable v = MakeVariable(g_, int64_t{3}, {.name = "v"});
  MakeOneShotIterator(Dataset::Range(g_, v.value()));
  ExpectError({}, "Cannot capture a stateful node by value: v (VarHandleOp)");
}

TEST_F(DatasetTest, IteratorRejectsAnotherStructure) {
  const Iterator iterator = Iterator::FromStructure(g_, {{DT_FLOAT}, {Shape()}});
  EXPECT_FALSE(iterator.MakeInitializer(Numbers(3)).valid());
  ExpectError({}, "Expected output types (float)");
}

// ---- errors

TEST_F(DatasetTest, SourcesRejectWrongRanks) {
  ExpectError(Dataset::FromTensorSlices({Const(g_, 1)}), "is a scalar");
  ExpectError(Dataset::FromTensorSlices({Const(g_, {1, 2}), Const(g_, {1, 2, 3})}),
              "Dimensions 2 and 3 are not compatible");
  ExpectError(Dataset::FromVariant(Const(g_, 1), {{DT_INT64}, {Shape()}}),
              "expected a variant scalar, got int32");
  ExpectError(Dataset::FromVariant(Numbers(1).variant(), {}), "0 types and 0 shapes");
  ExpectError(Dataset::TfRecords(g_, "a", {.num_parallel_reads = 0}), "must be at least 1");
}

TEST_F(DatasetTest, FunctionsMustReturnTheRightTensors) {
  const Dataset numbers = Numbers(3);
  ExpectError(numbers.Map(nullptr), "the function is empty");
  ExpectError(numbers.Map([](const Outputs&) { return Outputs(); }), "at least one tensor");
  ExpectError(numbers.Map([](const Outputs&) { return Outputs{Output()}; }), "an invalid tensor");
  const Output outside = Const(g_, 1, "outside");
  ExpectError(numbers.Map([&](const Outputs&) { return Outputs{outside}; }),
              "outside:0, a tensor from outside of it; list such tensors in `captured`");
  ExpectError(numbers.Map([](const Outputs& e) { return Outputs{MatMul(e[0], e[0])}; }),
              "Dataset_map_lambda");
  ExpectError(numbers.Map([](const Outputs& e) { return e; }, {.captured = {Output()}}),
              "a captured tensor is invalid");
  ExpectError(numbers.Filter([](const Outputs& e) { return e[0]; }),
              "the function must return a bool scalar tensor, but it returns int64");
  ExpectError(numbers.GroupByWindow([](const Outputs& e) { return Cast(e[0], DT_FLOAT); },
                                    [](const Output&, const Dataset& d) { return d; }, 2),
              "must return a int64 scalar");
  const auto changed = [](const Outputs& s, const Outputs&) {
    return std::pair<Outputs, Outputs>({Cast(s[0], DT_FLOAT)}, {s[0]});
  };
  ExpectError(numbers.Scan({Const(g_, int64_t{0})}, changed),
              "must match the initial state. Expected (int64); got (float, int64)");
}

TEST_F(DatasetTest, TransformationsRejectOtherElements) {
  const Dataset numbers = Numbers(3);
  const Dataset texts = Dataset::FromTensors({Const(g_, "a")});
  ExpectError(numbers.Concatenate(texts), "has elements of types (int64)");
  ExpectError(Dataset::SampleFromDatasets({numbers, texts}), "Incompatible input datasets");
  ExpectError(Dataset::SampleFromDatasets({numbers, numbers}, {1.0f}), "1 weights for 2 data sets");
  ExpectError(Dataset::ChooseFromDatasets({numbers}, texts), "choices must be int64 scalars");
  ExpectError(numbers.Unbatch(), "Cannot unbatch an input with scalar components");
  ExpectError(numbers.Rebatch(2), "elements must be batches");
  ExpectError(Dataset::Zip({numbers, texts}).Unique(), "elements are (int64, string)");
  ExpectError(numbers.ParseExample({{.key = "a", .dtype = DT_FLOAT}}, {}),
              "should be a dataset of vectors of strings");
  ExpectError(numbers.PaddedBatch(2, {.padded_shapes = {{Shape({2})}}}),
              "The padded shape [2] is not compatible with the shape []");
  ExpectError(numbers.PaddedBatch(2, {.padding_values = {Const(g_, 1.0f)}}),
              "must be a int64 scalar");
  ExpectError(numbers.BucketBySequenceLength([](const Outputs& e) { return e[0]; }, {3}, {2}),
              "1 sizes and 1 boundaries");
  ExpectError(numbers.Take(Const(g_, 1.0f)), "float");
}

}  // namespace
}  // namespace weir
