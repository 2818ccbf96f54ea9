#include <bit>

#include "weir/core/io/coding.h"
#include "weir/ops/data/parsing.h"
#include "weir/tests/kernels/lib/recorded.h"

// Parses serialized examples that this file encodes, and compares with TensorFlow 2.21's results.
namespace weir {

namespace {

using namespace recorded;  // NOLINT: a vocabulary made for these tables

// ---- the wire format of examples

// Encodes field `number` of a message, of type bytes.
std::string In(int number, const std::string& bytes) {
  std::string out(1, static_cast<char>(number << 3 | 2));
  PutVarint64(&out, bytes.size());
  return out + bytes;
}
std::string Ints(std::initializer_list<int64_t> values) {
  std::string packed;
  for (const int64_t v : values) PutVarint64(&packed, static_cast<uint64_t>(v));
  return In(3, values.size() == 0 ? "" : In(1, packed));
}
// Not packed, as written by old encoders.
std::string LooseInts(std::initializer_list<int64_t> values) {
  std::string list;
  for (const int64_t v : values) {
    list.push_back(1 << 3);
    PutVarint64(&list, static_cast<uint64_t>(v));
  }
  return In(3, list);
}
std::string Floats(std::initializer_list<float> values) {
  std::string packed;
  for (const float v : values) PutFixed32(&packed, std::bit_cast<uint32_t>(v));
  return In(2, In(1, packed));
}
std::string LooseFloats(std::initializer_list<float> values) {
  std::string list;
  for (const float v : values) {
    list.push_back(1 << 3 | 5);
    PutFixed32(&list, std::bit_cast<uint32_t>(v));
  }
  return In(2, list);
}
std::string Bytes(std::initializer_list<std::string> values) {
  std::string list;
  for (const std::string& v : values) list += In(1, v);
  return In(1, list);
}
// A FeatureList.
std::string Frames(std::initializer_list<std::string> features) {
  std::string list;
  for (const std::string& f : features) list += In(1, f);
  return list;
}
using Named = std::initializer_list<std::pair<const char*, std::string>>;
std::string Map(Named entries) {
  std::string map;
  for (const auto& [key, value] : entries) map += In(1, In(1, key) + In(2, value));
  return map;
}
std::string Example(Named features) { return In(1, Map(features)); }
std::string Sequence(Named context, Named lists) { return In(1, Map(context)) + In(2, Map(lists)); }

std::string First() {
  return Example({{"d", Floats({1, 2})},
                  {"v", Ints({1, 2, 3, 4})},
                  {"s", Bytes({"a"})},
                  {"r", Ints({7, -8})}});
}
std::string Second() {
  return Example({{"d", LooseFloats({3, 4})}, {"s", Bytes({"b", ""})}, {"r", Ints({})}});
}
std::string Third() { return Example({{"v", LooseInts({5, 6})}, {"r", Ints({9})}}); }

Tensor Batch() { return Strings({First(), Second(), Third()}); }

// ---- Examples

const DataTypes kDense = {DT_FLOAT, DT_INT64};
const std::vector<Shape> kDenseShapes = {Shape({2}), Shape({Shape::kUnknown, 2})};

Tensors Defaults() { return {Tensor::Vector<float>({9, 9}), Longs({-1})}; }

// dense d and v, sparse s, ragged r.
OpCase V2(absl::string_view label, const Tensor& serialized, const Tensors& outputs) {
  return Row("ParseExampleV2", label,
             {serialized, Strings({}), Strings({"s"}), Strings({"d", "v"}), Strings({"r"})},
             outputs,
             {{"num_sparse", 1},
              {"sparse_types", DataTypes{DT_STRING}},
              {"Tdense", kDense},
              {"ragged_value_types", DataTypes{DT_INT64}},
              {"ragged_split_types", DataTypes{DT_INT32}},
              {"dense_shapes", kDenseShapes}},
             Defaults());
}

Tensor Splits(std::initializer_list<int32_t> values) { return Tensor::Vector<int32_t>(values); }

Tensors BatchDense() {
  return {Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 9, 9}),
          Tensor::Of<int64_t>({3, 2, 2}, {1, 2, 3, 4, -1, -1, -1, -1, 5, 6, -1, -1})};
}

std::vector<OpCase> ExampleCases() {
  const Tensor s_indices = Pairs({0, 0, 1, 0, 1, 1}), s_values = Strings({"a", "b", ""});
  const Tensors dense = BatchDense();
  const Tensor one_d = Tensor::Vector<float>({1, 2}),
               one_v = Tensor::Of<int64_t>({2, 2}, {1, 2, 3, 4}),
               one_index = Tensor::Of<int64_t>({1, 1}, {0});
  std::vector<OpCase> rows;
  rows.push_back(V2("batch", Batch(),
                    {s_indices, s_values, Longs({3, 2}), dense[0], dense[1], Longs({7, -8, 9}),
                     Splits({0, 2, 2, 3})}));
  rows.push_back(
      V2("one", Tensor::Scalar(First()),
         {one_index, Strings({"a"}), Longs({1}), one_d, one_v, Longs({7, -8}), Splits({})}));
  rows.push_back(
      V2("one_that_lacks_some", Tensor::Scalar(Third()),
         {Tensor(DT_INT64, {0, 1}), Strings({}), Longs({0}), Tensor::Vector<float>({9, 9}),
          Tensor::Of<int64_t>({1, 2}, {5, 6}), Longs({9}), Splits({})}));
  rows.push_back(V2("none", Strings({}),
                    {Pairs({}), Strings({}), Longs({0, 0}), Tensor(DT_FLOAT, {0, 2}),
                     Tensor(DT_INT64, {0, 0, 2}), Longs({}), Splits({0})}));
  // Two concatenated messages are merged: the later value wins.
  rows.push_back(
      V2("merged", Strings({First() + Second()}),
         {Pairs({0, 0, 0, 1}), Strings({"b", ""}), Longs({1, 2}), Tensor::Of<float>({1, 2}, {3, 4}),
          Tensor::Of<int64_t>({1, 2, 2}, {1, 2, 3, 4}), Longs({}), Splits({0, 0})}));
  // Unknown field numbers are skipped.
  rows.push_back(
      V2("others", Strings({std::string("xx") + First()}),
         {Pairs({0, 0}), Strings({"a"}), Longs({1, 1}), Tensor::Of<float>({1, 2}, {1, 2}),
          Tensor::Of<int64_t>({1, 2, 2}, {1, 2, 3, 4}), Longs({7, -8}), Splits({0, 2})}));
  OpCase v1("ParseExample");
  v1.Input(Batch())
      .Input(Strings({}))
      .GivenList({Tensor::Scalar("s"), Tensor::Scalar("r")})
      .GivenList({Tensor::Scalar("d"), Tensor::Scalar("v")})
      .GivenList(Defaults())
      .Attr("sparse_types", DataTypes{DT_STRING, DT_INT64})
      .Attr("dense_shapes", kDenseShapes)
      .ShapesDependOnValues()
      .Reference([=](const Node&, const Tensors&) -> Tensors {
        return {s_indices,     Pairs({0, 0, 0, 1, 2, 0}),
                s_values,      Longs({7, -8, 9}),
                Longs({3, 2}), Longs({3, 2}),
                dense[0],      dense[1]};
      });
  rows.push_back(v1);
  rows.push_back(Row("ParseSingleExample", "", {Tensor::Scalar(First())},
                     {one_index, Strings({"a"}), Longs({1}), one_d, one_v},
                     {{"num_sparse", 1},
                      {"sparse_keys", std::vector<std::string>{"s"}},
                      {"dense_keys", std::vector<std::string>{"d", "v"}},
                      {"sparse_types", DataTypes{DT_STRING}},
                      {"dense_shapes", kDenseShapes}},
                     Defaults()));
  return rows;
}

// ---- SequenceExamples

std::string LongSequence() {
  return Sequence({{"cd", Ints({1, 2})}, {"cs", Bytes({"x"})}, {"cr", Floats({0.5})}},
                  {{"fd", Frames({Floats({1, 2}), Floats({3, 4})})},
                   {"fs", Frames({Ints({1}), Ints({}), Ints({2, 3})})},
                   {"fr", Frames({Bytes({"p"}), Bytes({"q", "r"})})}});
}
std::string ShortSequence() {
  return Sequence({{"cs", Bytes({"y", "z"})}}, {{"fd", Frames({Floats({5, 6})})}, {"fr", ""}});
}

// The part common to the three ops.
Attrs SequenceAttrs() {
  return {{"context_sparse_types", DataTypes{DT_STRING}},
          {"context_dense_shapes", std::vector<Shape>{Shape({2})}},
          {"feature_list_dense_types", DataTypes{DT_FLOAT}},
          {"feature_list_sparse_types", DataTypes{DT_INT64}},
          {"feature_list_dense_shapes", std::vector<Shape>{Shape({2})}}};
}

Attrs Also(Attrs attrs, const Attrs& more) {
  attrs.insert(attrs.end(), more.begin(), more.end());
  return attrs;
}

OpCase SequenceV2(absl::string_view label, const Tensor& serialized, const Tensors& outputs) {
  return Row("ParseSequenceExampleV2", label,
             {serialized, Strings({}), Strings({"cs"}), Strings({"cd"}), Strings({"cr"}),
              Strings({"fs"}), Strings({"fd"}), Strings({"fr"}), Tensor::Vector<bool>({true})},
             outputs,
             Also(SequenceAttrs(), {{"Ncontext_sparse", 1},
                                    {"Tcontext_dense", DataTypes{DT_INT64}},
                                    {"context_ragged_value_types", DataTypes{DT_FLOAT}},
                                    {"context_ragged_split_types", DataTypes{DT_INT64}},
                                    {"Nfeature_list_sparse", 1},
                                    {"Nfeature_list_dense", 1},
                                    {"feature_list_ragged_value_types", DataTypes{DT_STRING}},
                                    {"feature_list_ragged_split_types", DataTypes{DT_INT32}}}),
             {Longs({8, 9})});
}

std::vector<OpCase> SequenceCases() {
  const Tensor batch = Strings({LongSequence(), ShortSequence()});
  const Tensor cs_values = Strings({"x", "y", "z"}), cs_indices = Pairs({0, 0, 1, 0, 1, 1}),
               cd = Tensor::Of<int64_t>({2, 2}, {1, 2, 8, 9}), fs_values = Longs({1, 2, 3}),
               fs_indices = Tensor::Of<int64_t>({3, 3}, {0, 0, 0, 0, 2, 0, 0, 2, 1}),
               fd = Tensor::Of<float>({2, 2, 2}, {1, 2, 3, 4, 5, 6, 0, 0});
  const Tensor one_index = Tensor::Of<int64_t>({1, 1}, {0}), one_x = Strings({"x"}),
               one_cd = Longs({1, 2}), one_fs = Pairs({0, 0, 2, 0, 2, 1}),
               one_fd = Tensor::Of<float>({2, 2}, {1, 2, 3, 4});
  std::vector<OpCase> rows;
  rows.push_back(
      SequenceV2("batch", batch,
                 {cs_indices, cs_values, Longs({2, 2}), cd, Tensor::Vector<float>({0.5}),
                  Longs({0, 1, 1}), fs_indices, fs_values, Longs({2, 3, 2}), fd, Longs({2, 1}),
                  Strings({"p", "q", "r"}), Splits({0, 2, 2}), Splits({0, 1, 3})}));
  rows.push_back(
      SequenceV2("one", Tensor::Scalar(LongSequence()),
                 {one_index, one_x, Longs({1}), one_cd, Tensor::Vector<float>({0.5}), Longs({}),
                  one_fs, fs_values, Longs({3, 2}), one_fd, Tensor::Scalar<int64_t>(2),
                  Strings({"p", "q", "r"}), Splits({}), Splits({0, 1, 3})}));
  rows.push_back(SequenceV2("missing", Strings({ShortSequence(), ""}),
                            {Pairs({0, 0, 0, 1}), Strings({"y", "z"}), Longs({2, 2}),
                             Tensor::Of<int64_t>({2, 2}, {8, 9, 8, 9}), Tensor::Vector<float>({}),
                             Longs({0, 0, 0}), Tensor(DT_INT64, {0, 3}), Longs({}),
                             Longs({2, 0, 0}), Tensor::Of<float>({2, 1, 2}, {5, 6, 0, 0}),
                             Longs({1, 0}), Strings({}), Splits({0, 0, 0}), Splits({0})}));
  const auto names = [](const char* name) { return std::vector<std::string>{name}; };
  rows.push_back(
      Row("ParseSequenceExample", "", {batch, Strings({})},
          {cs_indices, cs_values, Longs({2, 2}), cd, fs_indices, fs_values, Longs({2, 3, 2}), fd,
           Longs({2, 1})},
          Also(SequenceAttrs(), {{"feature_list_dense_missing_assumed_empty", names("fd")},
                                 {"context_sparse_keys", names("cs")},
                                 {"context_dense_keys", names("cd")},
                                 {"feature_list_sparse_keys", names("fs")},
                                 {"feature_list_dense_keys", names("fd")},
                                 {"Ncontext_sparse", 1},
                                 {"Ncontext_dense", 1},
                                 {"Nfeature_list_sparse", 1},
                                 {"Nfeature_list_dense", 1}}),
          {Longs({8, 9})}));
  OpCase single("ParseSingleSequenceExample");
  single.Input(Tensor::Scalar(LongSequence()))
      .Input(Strings({}))
      .GivenList({Tensor::Scalar("cs")})
      .GivenList({Tensor::Scalar("cd")})
      .GivenList({Tensor::Scalar("fs")})
      .GivenList({Tensor::Scalar("fd")})
      .GivenList({Longs({8, 9})})
      .Input(Tensor::Scalar(""))
      .ShapesDependOnValues()
      .Reference([=](const Node&, const Tensors&) -> Tensors {
        return {one_index, one_x, Longs({1}), one_cd, one_fs, fs_values, Longs({3, 2}), one_fd};
      });
  for (const auto& [name, value] : SequenceAttrs()) single.Attr(name, value);
  rows.push_back(single);
  return rows;
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Examples, OpSweepTest, testing::ValuesIn(ExampleCases()), OpCaseName);
INSTANTIATE_TEST_SUITE_P(Sequences, OpSweepTest, testing::ValuesIn(SequenceCases()), OpCaseName);

namespace {

// Returns ParseExample's error message for a batch; "" if it succeeds.
std::string ErrorMessage(const Tensor& serialized, const std::vector<FixedLenFeature>& dense,
                         const std::vector<VarLenFeature>& sparse = {}) {
  Graph g;
  const Output bytes = Placeholder(g, DT_STRING);
  ParsedExamples parsed = ParseExample(bytes, dense, sparse);
  Outputs fetches = parsed.dense;
  for (const SparseTensor& s : parsed.sparse) fetches.push_back(s.values);
  if (!g.status().ok()) return std::string(g.status().message());
  const absl::StatusOr<Tensors> out = Evaluate(g, {{bytes, serialized}}, fetches);
  EXPECT_TRUE(out.ok() || absl::IsInvalidArgument(out.status())) << out.status();
  return std::string(out.status().message());
}

TEST(Examples, RejectMismatchedArguments) {
  const FixedLenFeature d = {"d", DT_FLOAT, Shape({2}), {}};
  const FixedLenFeature v = {"v", DT_INT64, Shape({Shape::kUnknown, 2}),
                             Tensor::Scalar<int64_t>(0)};
  const struct {
    std::string example;
    std::vector<FixedLenFeature> dense;
    std::vector<VarLenFeature> sparse;
    const char* message;
  } rows[] = {
      {First(), {d}, {{"s", DT_STRING}}, ""},
      {Example({{"d", Ints({1})}}),
       {d},
       {},
       "Name: <unknown>, Key: d, Index: 0.  Data types don't"},
      {Example({{"d", Floats({1})}}),
       {d},
       {},
       "Number of float values != expected.  Values size: 1"},
      {Example({{"v", Ints({1})}}), {v}, {}, "is not a multiple of stride length. Saw 1 values"},
      {Third(), {d}, {}, "Feature: d (data type: float) is required but could not be found."},
      {Example({{"s", Ints({1})}}),
       {},
       {{"s", DT_STRING}},
       "Expected type: string, Actual type: int64"},
      {First().substr(0, First().size() - 3), {d}, {}, "Could not parse example input"},
      {"\x0f", {d}, {}, "Could not parse example input"},
      {Example({{"d", In(2, In(1, "abc"))}}), {d}, {}, "Can't parse serialized Example."},
      {Example({{"v", In(3, In(1, "\xff"))}}), {v}, {}, "Can't parse serialized Example."},
      {Example({{"d", "\x0a"}}), {d}, {}, "Can't parse serialized Example."},
      {First(), {{"d", DT_FLOAT, Shape({2, Shape::kUnknown}), {}}}, {}, "unknown inner dimensions"},
      {First(),
       {{"d", DT_FLOAT, Shape({Shape::kUnknown}), {}}},
       {},
       "must contain a single element"},
  };
  for (const auto& row : rows) {
    const std::string got = ErrorMessage(Strings({row.example}), row.dense, row.sparse);
    EXPECT_EQ(got.empty(), *row.message == 0) << got;
    EXPECT_NE(got.find(row.message), std::string::npos) << row.message << "\n" << got;
  }
  EXPECT_NE(ErrorMessage(Strings({1, 1}, {First()}), {d}).find("scalar or vector"),
            std::string::npos);
}

TEST(Examples, DefaultsReplaceMissingFeatures) {
  Graph g;
  const ParsedExamples parsed =
      ParseExample(Const(g, Batch()), {{"d", DT_FLOAT, Shape({2}), Tensor::Vector<float>({9, 9})}},
                   {{"s", DT_STRING}, {"r", DT_INT64}});
  ASSERT_TRUE(g.status().ok()) << g.status();
  EXPECT_EQ(parsed.dense[0].shape(), Shape({3, 2}));
  EXPECT_EQ(parsed.dense[0].node->name(), "ParseExample/ParseExampleV2");
  const absl::StatusOr<Tensors> out =
      Evaluate(g, {parsed.dense[0], parsed.sparse[1].values, parsed.sparse[0].dense_shape});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_TRUE(IdenticalTensors((*out)[0], BatchDense()[0]));
  EXPECT_TRUE(IdenticalTensors((*out)[1], Longs({7, -8, 9})));
  EXPECT_TRUE(IdenticalTensors((*out)[2], Longs({3, 2})));
}

TEST(Sequences, RejectMismatchedArguments) {
  const struct {
    std::string example;
    bool may_miss;
    const char* message;
  } rows[] = {
      {Sequence({}, {}), true, ""},
      {Sequence({}, {}), false,
       "Feature list 'f' is required but could not be found.  Did you mean"},
      {Sequence({}, {{"f", Frames({Floats({1, 2}), Ints({1})})}}), true,
       "Feature list: f, Index: 1.  Data types don't"},
      {Sequence({}, {{"f", Frames({Floats({1})})}}), true,
       "Key: f, Index: 0.  Number of float values != expected.  values size: 1 but output shape: "
       "[2]"},
      {Sequence({}, {{"f", "\x0a\x05"}}), true, "Error in sequence feature"},
      {"\x12\x01", true, "Invalid protocol message input"},
  };
  for (const auto& row : rows) {
    Graph g;
    const Output bytes = Placeholder(g, DT_STRING), none = Const(g, Strings({}));
    Node* node = AddNode("ParseSequenceExampleV2",
                         {bytes, none, none, none, none, none, Const(g, Strings({"f"})), none,
                          Const(g, Tensor::Vector<bool>({row.may_miss})), Outputs{}},
                         {{"Nfeature_list_dense", 1},
                          {"feature_list_dense_types", DataTypes{DT_FLOAT}},
                          {"feature_list_dense_shapes", std::vector<Shape>{Shape({2})}}});
    ASSERT_NE(node, nullptr) << g.status();
    const absl::StatusOr<Tensors> out =
        Evaluate(g, {{bytes, Strings({row.example})}}, {node->output(0)});
    EXPECT_EQ(out.ok(), *row.message == 0) << out.status();
    EXPECT_NE(out.status().message().find(row.message), std::string::npos) << out.status();
  }
}

}  // namespace

}  // namespace weir
