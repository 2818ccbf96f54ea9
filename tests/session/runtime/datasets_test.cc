// Data sets and iterators: elements, their order, ends and errors.

#include <functional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/coding.h"
#include "weir/core/io/file.h"
#include "weir/core/io/function_library.h"
#include "weir/core/io/record.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/session/session.h"
#include "weir/tests/io/test_files.h"

namespace weir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class DatasetsTest : public ::testing::Test {
 protected:
  // A data set, and the types and shapes of its elements.
  struct Set {
    Output handle;
    DataTypes types;
    std::vector<Shape> shapes;
  };

  Output Number(int64_t n) { return Const(g_, Tensor::Scalar(n)); }
  static Attrs ElementAttrs(const Set& set) {
    return {{"output_types", set.types}, {"output_shapes", set.shapes}};
  }
  Set Range(int64_t start, int64_t stop, int64_t step = 1) {
    Set set{{}, {DT_INT64}, {Shape()}};
    set.handle =
        AddOp("RangeDataset", {Number(start), Number(stop), Number(step)}, ElementAttrs(set));
    return set;
  }
  Set Slices(const std::vector<Tensor>& tensors, const char* op = "TensorSliceDataset") {
    Set set;
    Outputs components;
    for (const Tensor& t : tensors) {
      components.push_back(Const(g_, t));
      set.types.push_back(t.dtype());
      set.shapes.push_back(Shape::UnknownRank());
    }
    set.handle =
        AddOp(op, {components}, {{"Toutput_types", set.types}, {"output_shapes", set.shapes}});
    return set;
  }
  // Applies an op whose result has the same kind of elements.
  Set By(const char* op, const Set& set, Outputs inputs, Attrs more = {}) {
    std::vector<Arg> args = {set.handle};
    for (const Output& input : inputs) args.emplace_back(input);
    Attrs attrs = ElementAttrs(set);
    attrs.insert(attrs.end(), more.begin(), more.end());
    return {AddOp(op, args, attrs), set.types, set.shapes};
  }
  Set Batch(const Set& set, int64_t size, bool drop = false) {
    return {AddOp("BatchDatasetV2", {set.handle, Number(size), Const(g_, drop)},
                  ElementAttrs({{}, set.types, Unknown(set)})),
            set.types, Unknown(set)};
  }
  static std::vector<Shape> Unknown(const Set& set) {
    return std::vector<Shape>(set.types.size(), Shape::UnknownRank());
  }
  FunctionRef Define(const std::string& name, const DataTypes& types,
                     const std::function<Outputs(Graph&, const Outputs&)>& build) {
    Graph body;
    Outputs args;
    for (const DataType type : types) args.push_back(Placeholder(body, type));
    EXPECT_TRUE(DefineFunction(g_, name, body, args, build(body, args)).ok());
    return FunctionRef{name, nullptr};
  }
  Set Map(const char* op, const Set& set, const char* attr, const FunctionRef& f,
          const Outputs& captured, DataTypes types) {
    Set out{{}, std::move(types), {}};
    out.shapes.assign(out.types.size(), Shape::UnknownRank());
    Attrs attrs = ElementAttrs(out);
    attrs.emplace_back(attr, f);
    out.handle = AddOp(op, {set.handle, captured}, attrs);
    return out;
  }

  struct Walk {
    Operation start;
    Outputs next;
  };
  Walk Iterate(const Set& set) {
    Attrs attrs = ElementAttrs(set);
    attrs.emplace_back("shared_name", "");
    attrs.emplace_back("container", "");
    const Output iterator = AddNode(g_, "IteratorV2", {}, attrs)->output(0);
    Walk walk;
    walk.start = Operation(AddNode("MakeIterator", {set.handle, iterator}));
    Node* next = AddNode("IteratorGetNext", {iterator}, ElementAttrs(set));
    for (int i = 0; i < next->num_outputs(); ++i) walk.next.push_back(next->output(i));
    return walk;
  }
  // Returns all elements, up to `limit`.
  std::vector<Tensors> Elements(const Set& set, size_t limit = 100) {
    const Walk walk = Iterate(set);
    EXPECT_TRUE(g_.status().ok()) << g_.status();
    Session session = *Session::Create(g_, {.num_threads = 2});
    const absl::Status started = session.Run(walk.start);
    EXPECT_TRUE(started.ok()) << started;
    std::vector<Tensors> all;
    while (started.ok() && all.size() < limit) {
      auto element = session.Run(walk.next);
      last_ = element.status();
      if (!element.ok()) break;
      all.push_back(*std::move(element));
    }
    return all;
  }
  std::vector<int64_t> Numbers(const Set& set, size_t limit = 100) {
    std::vector<int64_t> numbers;
    for (const Tensors& element : Elements(set, limit)) numbers.push_back(element[0].IntAt(0));
    return numbers;
  }

  Graph g_;
  absl::Status last_;
};

TEST_F(DatasetsTest, RangesEndOutOfRange) {
  EXPECT_THAT(Numbers(Range(2, 11, 3)), ElementsAre(2, 5, 8));
  EXPECT_EQ(last_.code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(last_.message(), HasSubstr("End of sequence"));
  EXPECT_THAT(Numbers(Range(3, 0, -1)), ElementsAre(3, 2, 1));
  EXPECT_THAT(Numbers(Range(3, 0)), ElementsAre());
}

TEST_F(DatasetsTest, SlicesAreRowsAndATensorIsOneElement) {
  const Tensor x = Tensor::Of<float>({2, 2}, {1, 2, 3, 4});
  const Tensor names = Tensor::Vector<std::string>({"a", "b"});
  const std::vector<Tensors> rows = Elements(Slices({x, names}));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_TRUE(IdenticalTensors(rows[1][0], Tensor::Vector({3.f, 4.f})));
  EXPECT_EQ(rows[1][1].scalar<std::string>(), "b");
  const std::vector<Tensors> whole = Elements(Slices({x}, "TensorDataset"));
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_TRUE(IdenticalTensors(whole[0][0], x));
}

TEST_F(DatasetsTest, FunctionsMapFilterAndFlatten) {
  const FunctionRef scale = Define("scale", {DT_INT64, DT_INT64}, [](Graph&, const Outputs& a) {
    return Outputs{a[0] * a[1], a[0]};
  });
  const Set scaled = Map("MapDataset", Range(1, 4), "f", scale, {Number(10)}, {DT_INT64, DT_INT64});
  EXPECT_THAT(Numbers(scaled), ElementsAre(10, 20, 30));
  const FunctionRef odd = Define("odd", {DT_INT64}, [](Graph& body, const Outputs& a) {
    const Output two = Const(body, Tensor::Scalar(int64_t{2}));
    return Outputs{NotEqual(FloorMod(a[0], two), Const(body, Tensor::Scalar(int64_t{0})))};
  });
  EXPECT_THAT(Numbers(Map("FilterDataset", Range(0, 6), "predicate", odd, {}, {DT_INT64})),
              ElementsAre(1, 3, 5));
  const FunctionRef below = Define("below", {DT_INT64}, [](Graph& body, const Outputs& a) {
    const Output zero = Const(body, Tensor::Scalar(int64_t{0}));
    const Output one = Const(body, Tensor::Scalar(int64_t{1}));
    return Outputs{AddOp(
        "RangeDataset", {zero, a[0], one},
        {{"output_types", DataTypes{DT_INT64}}, {"output_shapes", std::vector<Shape>{Shape()}}})};
  });
  EXPECT_THAT(Numbers(Map("FlatMapDataset", Range(0, 4), "f", below, {}, {DT_INT64})),
              ElementsAre(0, 0, 1, 0, 1, 2));
}

TEST_F(DatasetsTest, BatchesKeepOrDropTheRemainder) {
  const std::vector<Tensors> kept = Elements(Batch(Range(0, 5), 2));
  ASSERT_EQ(kept.size(), 3u);
  EXPECT_TRUE(IdenticalTensors(kept[1][0], Tensor::Vector<int64_t>({2, 3})));
  EXPECT_TRUE(IdenticalTensors(kept[2][0], Tensor::Vector<int64_t>({4})));
  EXPECT_EQ(Elements(Batch(Range(0, 5), 2, /*drop=*/true)).size(), 2u);
  EXPECT_EQ(Elements(Batch(Batch(Range(0, 6), 2), 3))[0][0].shape(), Shape({3, 2}));
  EXPECT_EQ(Elements(Batch(Batch(Range(0, 5), 2), 3)).size(), 0u) << "of different shapes";
  EXPECT_THAT(last_.message(), HasSubstr("Cannot batch tensors with different shapes"));
}

TEST_F(DatasetsTest, PaddedBatchesAreAsLongAsTheLongest) {
  const FunctionRef fill = Define("fill", {DT_INT64}, [](Graph&, const Outputs& a) {
    return Outputs{AddOp("Fill", {Reshape(a[0], {1}), a[0]})};
  });
  const Set rows = Map("MapDataset", Range(0, 4), "f", fill, {}, {DT_INT64});
  const auto padded = [&](int64_t length) {
    const Output handle =
        AddOp("PaddedBatchDatasetV2",
              {rows.handle, Number(2), Outputs{Const(g_, Tensor::Vector<int64_t>({length}))},
               Outputs{Number(-1)}, Const(g_, false)},
              {{"output_shapes", rows.shapes}});
    return Set{handle, rows.types, rows.shapes};
  };
  const std::vector<Tensors> batches = Elements(padded(-1));
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_TRUE(IdenticalTensors(batches[0][0], Tensor::Of<int64_t>({2, 1}, {-1, 1})));
  EXPECT_TRUE(IdenticalTensors(batches[1][0], Tensor::Of<int64_t>({2, 3}, {2, 2, -1, 3, 3, 3})));
  EXPECT_EQ(Elements(padded(4))[0][0].shape(), Shape({2, 4}));
  EXPECT_EQ(Elements(padded(2)).size(), 1u);
  EXPECT_EQ(last_.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(last_.message(), HasSubstr("Attempted to pad to a smaller size"));
}

TEST_F(DatasetsTest, TakeSkipRepeatConcatenateAndZip) {
  const Set three = Range(0, 3);
  EXPECT_THAT(Numbers(By("TakeDataset", three, {Number(2)})), ElementsAre(0, 1));
  EXPECT_THAT(Numbers(By("TakeDataset", three, {Number(-1)})), ElementsAre(0, 1, 2));
  EXPECT_THAT(Numbers(By("SkipDataset", three, {Number(2)})), ElementsAre(2));
  EXPECT_THAT(Numbers(By("SkipDataset", three, {Number(-1)})), ElementsAre());
  EXPECT_THAT(Numbers(By("RepeatDataset", three, {Number(2)})), ElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(Numbers(By("RepeatDataset", three, {Number(-1)}), 7),
              ElementsAre(0, 1, 2, 0, 1, 2, 0));
  EXPECT_THAT(Numbers(By("RepeatDataset", Range(0, 0), {Number(-1)})), ElementsAre());
  EXPECT_THAT(Numbers(By("ConcatenateDataset", three, {Range(7, 9).handle})),
              ElementsAre(0, 1, 2, 7, 8));
  const Set pair{AddOp("ZipDataset", {Outputs{three.handle, Range(5, 100).handle}},
                       {{"output_types", DataTypes{DT_INT64, DT_INT64}},
                        {"output_shapes", std::vector<Shape>(2)}}),
                 {DT_INT64, DT_INT64},
                 std::vector<Shape>(2)};
  const std::vector<Tensors> zipped = Elements(pair);
  ASSERT_EQ(zipped.size(), 3u);
  EXPECT_EQ(zipped[2][0].scalar<int64_t>(), 2);
  EXPECT_EQ(zipped[2][1].scalar<int64_t>(), 7);
  EXPECT_THAT(Numbers(By("PrefetchDataset", three, {Number(4)})), ElementsAre(0, 1, 2));
}

TEST_F(DatasetsTest, OlderAndParallelFormsReturnTheSameElements) {
  const Set three = Range(0, 3);
  EXPECT_THAT(Numbers(By("ModelDataset", three, {})), ElementsAre(0, 1, 2));
  EXPECT_THAT(Numbers(By("OptionsDataset", three, {}, {{"serialized_options", ""}})),
              ElementsAre(0, 1, 2));
  const FunctionRef square = Define(
      "square", {DT_INT64}, [](Graph&, const Outputs& a) { return Outputs{Multiply(a[0], a[0])}; });
  const auto mapped = [&](const char* op, const Output& calls) {
    Set out{{}, {DT_INT64}, {Shape()}};
    Attrs attrs = ElementAttrs(out);
    attrs.emplace_back("f", square);
    out.handle = AddOp(op, {three.handle, Outputs(), calls}, attrs);
    return Numbers(out);
  };
  EXPECT_THAT(mapped("ParallelMapDataset", Const(g_, 2)), ElementsAre(0, 1, 4));
  EXPECT_THAT(mapped("ParallelMapDatasetV2", Number(2)), ElementsAre(0, 1, 4));
  const Set padded{AddOp("PaddedBatchDataset",
                         {Slices({Tensor::Of<int64_t>({2, 1}, {5, 6})}).handle, Number(2),
                          Outputs{Const(g_, Tensor::Vector<int64_t>({2}))}, Outputs{Number(-1)}},
                         {{"output_shapes", std::vector<Shape>{Shape::UnknownRank()}}}),
                   {DT_INT64},
                   {Shape::UnknownRank()}};
  EXPECT_TRUE(
      IdenticalTensors(Elements(padded)[0][0], Tensor::Of<int64_t>({2, 2}, {5, -1, 6, -1})));
}

TEST_F(DatasetsTest, TensorFlow1IteratorsHaveStringHandles) {
  const Set three = Range(0, 3);
  Attrs attrs = ElementAttrs(three);
  attrs.emplace_back("shared_name", "");
  attrs.emplace_back("container", "");
  const Output iterator = AddNode(g_, "Iterator", {}, attrs)->output(0);
  const Operation start(AddNode("MakeIterator", {three.handle, iterator}));
  const Output found = AddOp("IteratorFromStringHandle",
                             {AddOp("IteratorToStringHandle", {iterator})}, ElementAttrs(three));
  const Output next = AddOp("IteratorGetNextSync", {found}, ElementAttrs(three));
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  Session session = *Session::Create(g_);
  ASSERT_TRUE(session.Run(start).ok());
  for (int64_t i = 0; i < 3; ++i) {
    const auto got = session.Run({next});
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ((*got)[0].scalar<int64_t>(), i);
  }
}

// The orders are those of TensorFlow 2.21 for the same seeds.
TEST_F(DatasetsTest, ShufflesAsTensorFlowDoes) {
  const auto shuffled = [&](int64_t buffer, int64_t seed, int64_t seed2, bool fresh) {
    return By("ShuffleDataset", Range(0, 10), {Number(buffer), Number(seed), Number(seed2)},
              {{"reshuffle_each_iteration", fresh}});
  };
  EXPECT_THAT(Numbers(By("RepeatDataset", shuffled(4, 1, 2, true), {Number(2)})),
              ElementsAre(0, 2, 1, 3, 5, 8, 6, 4, 7, 9, 3, 0, 2, 1, 4, 5, 6, 7, 9, 8));
  EXPECT_THAT(Numbers(By("RepeatDataset", shuffled(4, 1, 2, false), {Number(2)})),
              ElementsAre(3, 4, 1, 2, 7, 0, 5, 8, 9, 6, 3, 4, 1, 2, 7, 0, 5, 8, 9, 6));
  constexpr int64_t kUnknownCardinality = -2;
  EXPECT_THAT(Numbers(shuffled(kUnknownCardinality, 1, 2, true)),
              ElementsAre(2, 6, 1, 3, 9, 5, 0, 8, 7, 4));
  const Output dummy = AddNode(g_, "DummySeedGenerator", {})->output(0);
  EXPECT_THAT(Numbers(By("ShuffleDatasetV3", Range(0, 10),
                         {Number(int64_t{1} << 40), Number(7), Number(0), dummy})),
              ElementsAre(7, 3, 9, 0, 6, 1, 8, 2, 5, 4));
}

TEST_F(DatasetsTest, IteratorsRestartAndHaveStringHandles) {
  const Walk a = Iterate(Range(0, 3)), b = Iterate(Range(10, 13));
  const auto text_of = [&](const Walk& w) {
    return AddOp("IteratorToStringHandle", {w.next[0].node->input(0)});
  };
  const Output text_a = text_of(a), text_b = text_of(b);
  const Output text = Placeholder(g_, DT_STRING, {});
  const Output chosen = AddOp(
      "IteratorFromStringHandleV2", {text},
      {{"output_types", DataTypes{DT_INT64}}, {"output_shapes", std::vector<Shape>{Shape()}}});
  const Output next = AddOp(
      "IteratorGetNext", {chosen},
      {{"output_types", DataTypes{DT_INT64}}, {"output_shapes", std::vector<Shape>{Shape()}}});
  Session session = *Session::Create(g_);
  EXPECT_EQ(session.Run({a.next[0]}).status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(session.Run(a.start).ok());
  ASSERT_TRUE(session.Run(b.start).ok());
  const auto get = [&](const Output& fetch, const Feeds& feeds = {}) {
    return (*session.Run(feeds, {fetch}))[0].scalar<int64_t>();
  };
  const Tensor of_a = (*session.Run({text_a}))[0], of_b = (*session.Run({text_b}))[0];
  EXPECT_EQ(get(a.next[0]), 0);
  EXPECT_EQ(get(next, {{text, of_a}}), 1);
  EXPECT_EQ(get(next, {{text, of_b}}), 10);
  ASSERT_TRUE(session.Run(a.start).ok());
  EXPECT_EQ(get(a.next[0]), 0);
  EXPECT_EQ(session.Run({{text, Tensor::Scalar("nothing")}}, {next}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(DatasetsTest, AOneShotIteratorCallsItsFunctionOnce) {
  const FunctionRef make = Define("make", {}, [](Graph& body, const Outputs&) {
    const auto number = [&](int64_t n) { return Const(body, Tensor::Scalar(n)); };
    return Outputs{AddOp(
        "RangeDataset", {number(0), number(2), number(1)},
        {{"output_types", DataTypes{DT_INT64}}, {"output_shapes", std::vector<Shape>{Shape()}}})};
  });
  const Attrs elements = {{"output_types", DataTypes{DT_INT64}},
                          {"output_shapes", std::vector<Shape>{Shape()}}};
  Attrs attrs = elements;
  attrs.emplace_back("dataset_factory", make);
  const Output iterator = AddNode(g_, "OneShotIterator", {}, attrs)->output(0);
  const Output next = AddOp("IteratorGetNext", {iterator}, elements);
  Session session = *Session::Create(g_);
  EXPECT_EQ((*session.Run({next}))[0].scalar<int64_t>(), 0);
  EXPECT_EQ((*session.Run({next}))[0].scalar<int64_t>(), 1);
  EXPECT_EQ(session.Run({next}).status().code(), absl::StatusCode::kOutOfRange);
}

TEST_F(DatasetsTest, FilesYieldRecordsAndLines) {
  testing::MemoryFileSystem files;
  const ScopedFileSystem scope(&files);
  for (const char* path : {"/a", "/b"}) {
    auto writer = *RecordWriter::Create(path);
    ASSERT_TRUE(writer->Append(std::string(path) + "1").ok());
    ASSERT_TRUE(writer->Append(std::string(path) + "2").ok());
    ASSERT_TRUE(writer->Close().ok());
  }
  auto text = *files.Create("/t");
  ASSERT_TRUE(text->Append("one\r\ntwo\n\nlast").ok());
  ASSERT_TRUE(text->Close().ok());
  const auto strings = [&](const char* op, const std::vector<std::string>& names) {
    const Output handle = AddOp(
        op, {Const(g_, Tensor::Vector(absl::MakeConstSpan(names))), Const(g_, ""), Number(0)});
    std::vector<std::string> all;
    for (const Tensors& element : Elements({handle, {DT_STRING}, {Shape()}}))
      all.push_back(element[0].scalar<std::string>());
    return all;
  };
  EXPECT_THAT(strings("TFRecordDataset", {"/a", "/b"}), ElementsAre("/a1", "/a2", "/b1", "/b2"));
  EXPECT_THAT(strings("TextLineDataset", {"/t"}), ElementsAre("one", "two", "", "last"));
  EXPECT_THAT(strings("TFRecordDataset", {"/missing"}), ElementsAre());
  EXPECT_EQ(last_.code(), absl::StatusCode::kNotFound);
}

// An example with feature "k" of i % 4 integers, and "s" of one string, in alternating order.
std::string EncodedExample(int64_t i, bool broken) {
  const auto field = [](int number, const std::string& bytes) {
    std::string out(1, static_cast<char>(number << 3 | 2));
    PutVarint64(&out, bytes.size());
    return out + bytes;
  };
  std::string packed;
  for (int64_t k = 0; k < i % 4; ++k) PutVarint64(&packed, static_cast<uint64_t>(i + k));
  const std::string ints = field(3, field(1, packed));
  const std::string text = broken ? ints : field(1, field(1, "text " + std::to_string(i)));
  const std::string k = field(1, field(1, "k") + field(2, ints));
  const std::string s = field(1, field(1, "s") + field(2, text));
  const std::string skipped = field(1, field(1, "other") + field(2, text));
  return field(1, i % 3 == 0 ? k + s : s + (i % 2 == 0 ? skipped + k : k));
}

// Parts of a batch are parsed at the same time.
TEST_F(DatasetsTest, BatchesOfExamplesAreParsedInOrder) {
  constexpr int64_t kSize = 3000;
  const Output serialized = Placeholder(g_, DT_STRING);
  const Output none = Const(g_, Tensor::Vector<std::string>({}));
  const auto keys = [&](const char* key) { return Const(g_, Tensor::Vector<std::string>({key})); };
  Node* const parse = AddNode(g_, "ParseExampleV2",
                              {serialized, none, keys("k"), keys("s"), none,
                               Outputs{Const(g_, Tensor::Vector<std::string>({}))}},
                              {{"num_sparse", int64_t{1}},
                               {"sparse_types", DataTypes{DT_INT64}},
                               {"Tdense", DataTypes{DT_STRING}},
                               {"dense_shapes", std::vector<Shape>{Shape()}},
                               {"ragged_value_types", DataTypes{}},
                               {"ragged_split_types", DataTypes{}}});
  ASSERT_TRUE(g_.status().ok()) << g_.status();
  Outputs all;
  for (int i = 0; i < parse->num_outputs(); ++i) all.push_back(parse->output(i));
  ASSERT_EQ(all.size(), 4u);
  for (const int threads : {1, 2, 4}) {
    Session session = *Session::Create(g_, {.num_threads = threads});
    std::vector<std::string> batch;
    for (int64_t i = 0; i < kSize; ++i) batch.push_back(EncodedExample(i, false));
    const auto parsed =
        session.Run({{serialized, Tensor::Vector(absl::MakeConstSpan(batch))}}, all);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    int64_t at = 0;
    for (int64_t i = 0; i < kSize; ++i) {
      ASSERT_EQ((*parsed)[3].data<std::string>()[i], "text " + std::to_string(i));
      for (int64_t k = 0; k < i % 4; ++k, ++at) {
        ASSERT_EQ((*parsed)[0].data<int64_t>()[2 * at], i);
        ASSERT_EQ((*parsed)[0].data<int64_t>()[2 * at + 1], k);
        ASSERT_EQ((*parsed)[1].data<int64_t>()[at], i + k);
      }
    }
    EXPECT_EQ((*parsed)[1].num_elements(), at);
    for (const int64_t i : {700, 2900}) batch[i] = EncodedExample(i, /*broken=*/true);
    const absl::Status status =
        session.Run({{serialized, Tensor::Vector(absl::MakeConstSpan(batch))}}, all).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("Key: s, Index: 700.")) << threads;
  }
}

TEST_F(DatasetsTest, WrongElementsAndArgumentsAreErrors) {
  Set wrong = Range(0, 3);
  wrong.types = {DT_FLOAT};
  EXPECT_TRUE(Elements(wrong).empty());
  EXPECT_EQ(last_.code(), absl::StatusCode::kInvalidArgument);
  const Walk zero = Iterate(By("BatchDataset", Range(0, 3), {Number(0)}));
  Session session = *Session::Create(g_);
  EXPECT_THAT(session.Run(zero.start).message(), HasSubstr("Batch size must be greater"));
  EXPECT_EQ(session.Run(Iterate(Range(0, 3, 0)).start).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(DatasetsTest, PrefetchingKeepsTheOrderAndEndsWithTheSession) {
  const FunctionRef scale = Define("scale", {DT_INT64, DT_INT64},
                                   [](Graph&, const Outputs& a) { return Outputs{a[0] * a[1]}; });
  const auto ahead = [&](const char* op, const Set& set, const FunctionRef& f,
                         const Outputs& captured, const Outputs& numbers) {
    Attrs attrs = ElementAttrs(set);
    attrs.emplace_back("f", f);
    std::vector<Arg> args = {set.handle, captured};
    for (const Output& n : numbers) args.emplace_back(n);
    return Set{AddOp(op, args, attrs), set.types, set.shapes};
  };
  const Set mapped = ahead("ParallelMapDatasetV2", Range(0, 50), scale, {Number(3)}, {Number(4)});
  const std::vector<int64_t> all = Numbers(By("PrefetchDataset", mapped, {Number(5)}));
  ASSERT_EQ(all.size(), 50u);
  for (int64_t i = 0; i < 50; ++i) EXPECT_EQ(all[i], 3 * i);
  EXPECT_EQ(last_.code(), absl::StatusCode::kOutOfRange);
  // Many elements are being prepared when the session ends.
  EXPECT_EQ(Numbers(By("PrefetchDataset", mapped, {Number(1000)}), 2).size(), 2u);
  const Set batches = ahead("MapAndBatchDataset", Range(0, 5), scale, {Number(2)},
                            {Number(2), Number(3), Const(g_, false)});
  const std::vector<Tensors> rows = Elements(batches);
  EXPECT_TRUE(rows.empty()) << "the shapes promised are scalars";
  EXPECT_EQ(last_.code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(DatasetsTest, InterleavesDataSets) {
  const FunctionRef twice = Define("twice", {DT_INT64}, [](Graph& body, const Outputs& a) {
    const Output end = a[0] + Const(body, Tensor::Scalar(int64_t{3}));
    return Outputs{AddOp(
        "RangeDataset", {a[0], end, Const(body, Tensor::Scalar(int64_t{1}))},
        {{"output_types", DataTypes{DT_INT64}}, {"output_shapes", std::vector<Shape>{Shape()}}})};
  });
  const Set from = Range(0, 30, 10);
  for (const char* op : {"InterleaveDataset", "ParallelInterleaveDatasetV3"}) {
    Attrs attrs = ElementAttrs(from);
    attrs.emplace_back("f", twice);
    std::vector<Arg> args = {from.handle, Outputs{}, Number(2), Number(2)};
    if (op[0] == 'P') args.emplace_back(Number(2));
    EXPECT_THAT(Numbers({AddOp(op, args, attrs), from.types, from.shapes}),
                ElementsAre(0, 1, 10, 11, 2, 12, 20, 21, 22))
        << op;
  }
}

TEST_F(DatasetsTest, ScanTakeWhileShardUnbatchCacheAndHints) {
  const FunctionRef add = Define("add", {DT_INT64, DT_INT64}, [](Graph&, const Outputs& a) {
    return Outputs{a[0] + a[1], a[0]};
  });
  const Set five = Range(1, 6);
  Attrs attrs = ElementAttrs(five);
  attrs.emplace_back("f", add);
  const Set sums{AddOp("ScanDataset", {five.handle, Outputs{Number(100)}, Outputs{}}, attrs),
                 five.types, five.shapes};
  EXPECT_THAT(Numbers(sums), ElementsAre(100, 101, 103, 106, 110));
  const FunctionRef sum = Define("sum", {DT_INT64, DT_INT64},
                                 [](Graph&, const Outputs& a) { return Outputs{a[0] + a[1]}; });
  attrs.back().second = sum;
  const Output total =
      AddOp("ReduceDataset", {five.handle, Outputs{Number(100)}, Outputs{}}, attrs);
  EXPECT_EQ((*Session::Create(g_)->Run({total}))[0].IntAt(0), 115);
  const FunctionRef small = Define("small", {DT_INT64}, [](Graph& body, const Outputs& a) {
    return Outputs{AddOp("Less", {a[0], Const(body, Tensor::Scalar(int64_t{3}))})};
  });
  EXPECT_THAT(Numbers(Map("TakeWhileDataset", five, "predicate", small, {}, {DT_INT64})),
              ElementsAre(1, 2));
  EXPECT_THAT(Numbers(By("ShardDataset", five, {Number(2), Number(1)})), ElementsAre(2, 4));
  EXPECT_THAT(Numbers(By("UnbatchDataset", Batch(five, 2), {})), ElementsAre(1, 2, 3, 4, 5));
  const Set cached = By("CacheDataset", five, {Const(g_, "")});
  EXPECT_EQ(Numbers(By("RepeatDataset", cached, {Number(3)})).size(), 15u);
  for (const char* op : {"MaxIntraOpParallelismDataset", "PrivateThreadPoolDataset"})
    EXPECT_EQ(Numbers(By(op, five, {Number(2)})).size(), 5u) << op;
  EXPECT_EQ(Numbers(By("OptimizeDataset", five,
                       {Const(g_, Tensor::Vector<std::string>({"noop_elimination"}))}))
                .size(),
            5u);
}

TEST_F(DatasetsTest, HintsPassTheirInputThrough) {
  const Set three = Range(0, 3);
  const Output text = Const(g_, "name"), list = Const(g_, Tensor::Vector<std::string>({"a", "b"}));
  for (const char* op :
       {"FinalizeDataset", "NonSerializableDataset", "ExperimentalNonSerializableDataset"})
    EXPECT_THAT(Numbers(By(op, three, {})), ElementsAre(0, 1, 2)) << op;
  for (const char* op :
       {"RewriteDataset", "LatencyStatsDataset", "BytesProducedStatsDataset",
        "ExperimentalLatencyStatsDataset", "ExperimentalBytesProducedStatsDataset"})
    EXPECT_THAT(Numbers(By(op, three, {text})), ElementsAre(0, 1, 2)) << op;
  EXPECT_THAT(Numbers(By("OptimizeDatasetV2", three, {list, list, list})), ElementsAre(0, 1, 2));
  const struct {
    const char* op;
    Outputs inputs;
    const char* message;
  } wrong[] = {
      {"RewriteDataset", {list}, "rewrite_name must be a scalar"},
      {"LatencyStatsDataset", {list}, "tag must be a scalar"},
      {"OptimizeDatasetV2", {list, text, list}, "optimizations_disabled must be a vector"},
  };
  for (const auto& w : wrong) {
    Session session = *Session::Create(g_);
    const absl::Status status = session.Run({By(w.op, three, w.inputs).handle}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << w.op << ": " << status;
    EXPECT_THAT(status.message(), HasSubstr(w.message));
  }
}

}  // namespace
}  // namespace weir
