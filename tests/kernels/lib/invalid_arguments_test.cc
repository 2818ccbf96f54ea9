#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/lib/array.h"
#include "weir/tests/evaluate.h"

// Calls that TensorFlow 2.21 rejects, found by tests/interop/invalid_arguments.py, with its status
// code and key words.
namespace weir {

namespace {

using testing::HasSubstr;

struct RejectedCall {
  const char* op;
  Tensors inputs;
  Attrs attrs;
  absl::StatusCode code;
  const char* words;
  size_t list = 0;
};

Tensor Floats(std::vector<int64_t> dims) {
  Tensor t(DT_FLOAT, Shape(dims));
  for (int64_t i = 0; i < t.num_elements(); ++i) t.data<float>()[i] = static_cast<float>(i);
  return t;
}

// A vector of one element where TensorFlow requires a scalar.
template <class T>
Tensor One(T value) {
  return Tensor::Scalar(value).Reshaped(Shape({1}));
}
Tensor OneText(const char* text) { return Tensor::Scalar(std::string(text)).Reshaped(Shape({1})); }
Tensor Text(const char* text) { return Tensor::Scalar(std::string(text)); }
Tensor Texts(std::vector<int64_t> dims) {
  Tensor t(DT_STRING, Shape(dims));
  for (int64_t i = 0; i < t.num_elements(); ++i) t.data<std::string>()[i] = "hello";
  return t;
}
Tensor Ints(std::vector<int64_t> dims) {
  Tensor t(DT_INT32, Shape(dims));
  for (int64_t i = 0; i < t.num_elements(); ++i) t.data<int32_t>()[i] = 1;
  return t;
}

void ExpectRejected(const std::vector<RejectedCall>& rows) {
  for (const RejectedCall& row : rows) {
    const auto result = RunFed(row.op, row.inputs, row.attrs, row.list);
    EXPECT_EQ(result.status().code(), row.code) << row.op << ": " << result.status();
    EXPECT_THAT(std::string(result.status().message()), HasSubstr(row.words)) << row.op;
  }
}

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(InvalidArguments, VectorOfOneElementIsNotAScalar) {
  const Tensor zero = Tensor::Scalar<int32_t>(0), two = Tensor::Scalar<int32_t>(2);
  const Tensor half = Tensor::Scalar(0.5f);
  ExpectRejected({
      {"ArgMax", {Floats({3, 2}), One<int32_t>(1)}, {}, kInvalid, "dim must be a scalar"},
      {"ArgMin", {Floats({3, 2}), One<int32_t>(1)}, {}, kInvalid, "dim must be a scalar"},
      {"Cumsum", {Floats({3}), One<int32_t>(0)}, {}, kInvalid, "axis must be a scalar"},
      {"Cumprod", {Floats({3}), One<int32_t>(0)}, {}, kInvalid, "axis must be a scalar"},
      {"LinSpace", {One(0.f), half, two}, {}, kInvalid, "start must be a scalar"},
      {"LinSpace", {half, One(0.f), two}, {}, kInvalid, "stop must be a scalar"},
      {"LinSpace", {half, half, One<int32_t>(2)}, {}, kInvalid, "num must be a scalar"},
      {"OneHot", {zero, One<int32_t>(2), half, half}, {}, kInvalid, "depth must be a scalar"},
      {"OneHot", {zero, two, One(1.f), half}, {}, kInvalid, "on_value"},
      {"OneHot", {zero, two, half, One(1.f)}, {}, kInvalid, "off_value"},
      {"TopKV2", {Floats({3}), One<int32_t>(1)}, {}, kInvalid, "k must be"},
      {"MatrixBandPart",
       {Floats({2, 2}), One<int64_t>(0), Tensor::Scalar<int64_t>(0)},
       {},
       kInvalid,
       "num_lower must be"},
      {"MatrixBandPart",
       {Floats({2, 2}), Tensor::Scalar<int64_t>(0), One<int64_t>(0)},
       {},
       kInvalid,
       "num_upper must be"},
      {"PadV2",
       {Floats({1}), Ints({1, 2}), One(1.f)},
       {},
       kInvalid,
       "constant_values must be a scalar"},
      {"GatherV2", {Floats({3}), zero, One<int32_t>(0)}, {}, kInvalid, "axis must be"},
      {"Split",
       {One<int32_t>(0), Floats({2})},
       {{"num_split", int64_t{2}}},
       kInvalid,
       "split_dim must be a scalar"},
      {"ScalarSummary",
       {Text("a"), One(1.f)},
       {},
       kInvalid,
       "tags and values are not the same shape"},
      {"ScalarSummary",
       {OneText("a"), half},
       {},
       kInvalid,
       "tags and values are not the same shape"},
      {"HistogramSummary", {OneText("a"), Floats({2})}, {}, kInvalid, "tags must be scalar"},
      {"RegexFullMatch", {Text("a"), OneText("a")}, {}, kInvalid, "Pattern must be"},
      {"RegexReplace", {Text("a"), Text("a"), OneText("a")}, {}, kInvalid, "Rewrite must be"},
      {"Switch",
       {half, Tensor::Scalar(true).Reshaped(Shape({1}))},
       {},
       kInvalid,
       "must be a scalar"},
  });
}

// TensorFlow accepts these for scalars, in contrast to other arguments.
TEST(InvalidArguments, SomeArgumentsMayBeVectorsOfOneElement) {
  EXPECT_TRUE(RunFed("ExpandDims", {Floats({3}), One<int32_t>(0)}).ok());
  EXPECT_TRUE(RunFed("ConcatV2", {Floats({2}), Floats({3}), One<int32_t>(0)}, {}, 2).ok());
  EXPECT_TRUE(RunFed("Range", {One<int32_t>(0), One<int32_t>(4), One<int32_t>(2)}).ok());
  EXPECT_TRUE(RunFed("UniqueV2", {Floats({2, 2}), One<int32_t>(0)}).ok());
}

TEST(InvalidArguments, NarrowAttributesHaveThirtyTwoBits) {
  constexpr int64_t kWide = int64_t{1} << 40;
  const Tensor half = Tensor::Scalar(0.5f);
  ExpectRejected({
      {"StringFormat",
       {half},
       {{"template", "%s"}, {"summarize", kWide}},
       kInvalid,
       "Attr summarize has value 1099511627776 out of range for an int32",
       1},
      {"StridedSlice",
       {Floats({3}), Ints({1}), Ints({1}), Ints({1})},
       {{"end_mask", kWide}},
       kInvalid,
       "Attr end_mask has value 1099511627776 out of range for an int32"},
      {"StringSplitV2",
       {Texts({1}), Text("l")},
       {{"maxsplit", kWide}},
       kInvalid,
       "Attr maxsplit has value 1099511627776 out of range for an int32"},
      {"LRN",
       {Floats({1, 1, 1, 2})},
       {{"depth_radius", int64_t{2147483647}}},
       kInvalid,
       "larger than int max"},
  });
}

TEST(InvalidArguments, ContainerNamesAreValidated) {
  const Attrs queue = {{"component_types", DataTypes{DT_FLOAT}}};
  for (const char* good : {"", "a", "A.b-c_d/1", ".a", "0"}) {
    Attrs attrs = queue;
    attrs.emplace_back("container", good);
    EXPECT_TRUE(RunFed("FIFOQueueV2", {}, attrs).ok()) << good;
  }
  for (const char* bad : {"-1", "/a", "_a", "a b", "a:b"}) {
    Attrs attrs = queue;
    attrs.emplace_back("container", bad);
    ExpectRejected(
        {{"FIFOQueueV2", {}, attrs, kInvalid, "container contains invalid characters: "}});
  }
}

TEST(InvalidArguments, UnusedArgumentsAreValidated) {
  const Tensor seed = Ints({3}), none = Tensor::Of<int32_t>({2}, {0, 2});
  ExpectRejected({
      {"StatelessRandomNormal", {none, seed}, {}, kInvalid, "seed must have shape [2], not [3]"},
      {"FusedBatchNorm",
       {Floats({1, 2, 2, 2}), Floats({2}), Floats({2}), Floats({5, 5}), Floats({2})},
       {},
       kInvalid,
       "estimated_mean must be 1-dimensional"},
      {"MaxPoolWithArgmax",
       {Floats({0, 4, 4, 1})},
       {{"ksize", std::vector<int64_t>{1, 2, 2, 1}},
        {"strides", std::vector<int64_t>{1, 2, 2, 1}},
        {"padding", "SAME"}},
       kInvalid,
       "tensor_in must not be empty"},
      {"UniqueV2", {Floats({2, 2}), Ints({1, 1})}, {}, kInvalid, "axis expects a 1D vector"},
      {"QuantizeAndDequantizeV2",
       {Floats({2}), Tensor::Scalar(std::numeric_limits<float>::quiet_NaN()), Tensor::Scalar(1.0f)},
       {{"range_given", true}},
       kInvalid,
       "Invalid range"},
      {"RangeDataset",
       {One<int64_t>(0), Tensor::Scalar<int64_t>(3), Tensor::Scalar<int64_t>(1)},
       {{"output_types", DataTypes{DT_INT64}}, {"output_shapes", std::vector<Shape>{Shape()}}},
       kInvalid,
       "start must be a scalar"},
  });
}

TEST(InvalidArguments, ShardNamesRequireScalars) {
  const Tensor zero = Tensor::Scalar<int32_t>(0), two = Tensor::Scalar<int32_t>(2);
  ExpectRejected({
      {"ShardedFilename", {OneText("a"), zero, two}, {}, kInvalid, "basename must be a scalar"},
      {"ShardedFilename",
       {Text("a"), One<int32_t>(0), two},
       {},
       kInvalid,
       "shard must be a scalar"},
      {"ShardedFilename",
       {Text("a"), zero, One<int32_t>(2)},
       {},
       kInvalid,
       "num_shards must be a scalar"},
      {"ShardedFilespec", {OneText("a"), two}, {}, kInvalid, "basename must be a scalar"},
      {"ShardedFilespec",
       {Text("a"), One<int32_t>(2)},
       {},
       kInvalid,
       "num_shards must be a scalar"},
  });
}

// Types that an attribute allows but no kernel supports.
TEST(InvalidArguments, NonIntegerShapesAreRejected) {
  for (const Tensor& shape : {Tensor::Of<bool>({2}, {true, true}), Floats({2})}) {
    Graph g;
    AddOp("NonDeterministicInts", {Const(g, shape)});
    EXPECT_EQ(g.status().code(), kInvalid);
    EXPECT_THAT(std::string(g.status().message()), HasSubstr("must be int32 or int64"));
  }
}

TEST(InvalidArguments, MaxPool3DGradOfTwoTypesIsRejected) {
  const Tensor x(DT_HALF, Shape({1, 2, 2, 2, 1}));
  ExpectRejected({{"MaxPool3DGrad",
                   {x, x, Floats({1, 2, 2, 2, 1})},
                   {{"ksize", std::vector<int64_t>{1, 1, 1, 1, 1}},
                    {"strides", std::vector<int64_t>{1, 1, 1, 1, 1}},
                    {"padding", std::string("VALID")}},
                   kInvalid,
                   "No OpKernel was registered"}});
}

TEST(InvalidArguments, SubstrBroadcastsMatricesAtMost) {
  ExpectRejected({
      {"Substr",
       {Texts({2, 2, 2}), Ints({1, 2, 2}), Ints({1, 2, 2})},
       {},
       absl::StatusCode::kUnimplemented,
       "Substr broadcast not implemented for 3 dimensions"},
      {"Substr",
       {Text("hello"), Ints({1, 1, 1, 1, 1, 1, 1, 1, 1}), Ints({1, 1, 1, 1, 1, 1, 1, 1, 1})},
       {},
       absl::StatusCode::kUnimplemented,
       "Substr broadcast not implemented for 9 dimensions"},
  });
  EXPECT_TRUE(RunFed("Substr", {Texts({2, 2, 2}), Ints({}), Ints({})}).ok());
  EXPECT_TRUE(RunFed("Substr", {Texts({2, 1, 2}), Ints({2, 1, 2}), Ints({2, 1, 2})}).ok());
  EXPECT_TRUE(RunFed("Substr", {Texts({2}), Ints({2, 2}), Ints({2, 2})}).ok());
}

TEST(InvalidArguments, LstmCellWithoutRowsIsRejected) {
  ExpectRejected({{"LSTMBlockCell",
                   {Floats({0, 1}), Floats({0, 1}), Floats({0, 1}), Floats({2, 4}), Floats({1}),
                    Floats({1}), Floats({1}), Floats({4})},
                   {},
                   kInvalid,
                   "cs_prev_tensor is empty, has shape: "}});
}

TEST(InvalidArguments, UnusedLstmPeepholesMustBeVectors) {
  ExpectRejected({{"LSTMBlockCell",
                   {Floats({2, 3}), Floats({2, 1}), Floats({2, 1}), Floats({4, 4}), Floats({1, 1}),
                    Floats({1}), Floats({1}), Floats({4})},
                   {},
                   kInvalid,
                   "wci_tensor must be rank 1 but is rank 2"}});
}

// Shapes that are known, so that shape inference validates them.
TEST(InvalidArguments, ShapeInferenceRejectsOversizedWindows) {
  const Attrs window = {{"ksize", std::vector<int64_t>{1, 2, 2, 1}},
                        {"strides", std::vector<int64_t>{1, 2, 2, 1}},
                        {"padding", "VALID"}};
  const Attrs strides = {{"strides", std::vector<int64_t>{1, 2, 2, 1}}, {"padding", "VALID"}};
  for (const char* op : {"MaxPool", "AvgPool", "MaxPoolWithArgmax"}) {
    Graph g;
    AddOp(op, {Const(g, Floats({1, 1, 4, 1}))}, window);
    EXPECT_EQ(g.status().code(), kInvalid) << op;
    EXPECT_THAT(std::string(g.status().message()),
                HasSubstr("Negative dimension size caused by subtracting 2 from 1"));
  }
  for (const char* op : {"Conv2D", "DepthwiseConv2dNative"}) {
    Graph g;
    AddOp(op, {Const(g, Floats({1, 1, 4, 1})), Const(g, Floats({2, 2, 1, 1}))}, strides);
    EXPECT_EQ(g.status().code(), kInvalid) << op;
    EXPECT_THAT(std::string(g.status().message()),
                HasSubstr("Negative dimension size caused by subtracting 2 from 1"));
  }
  const auto fed = RunFed("AvgPool", {Floats({1, 1, 4, 1})}, window);
  ASSERT_TRUE(fed.ok()) << fed.status();
  EXPECT_EQ((*fed)[0].shape(), Shape({1, 0, 2, 1}));
}

TEST(InvalidArguments, ShapeInferenceRejects) {
  struct Row {
    const char* op;
    Tensors inputs;
    Attrs attrs;
    absl::StatusCode code;
    const char* words;
  };
  for (const Row& row : std::vector<Row>{
           {"BiasAdd",
            {Floats({3, 5}), Floats({5})},
            {{"data_format", "NCHW"}},
            kInvalid,
            "Shape must be at least rank 3 but is rank 2"},
           {"BiasAddGrad",
            {Floats({3, 5})},
            {{"data_format", "NCHW"}},
            kInvalid,
            "Shape must be at least rank 3 but is rank 2"},
           {"Enter",
            {Floats({1})},
            {{"frame_name", "loop"}, {"parallel_iterations", int64_t{1} << 40}},
            kInvalid,
            "Attr parallel_iterations has value 1099511627776 out of range for an int32"},
           {"ApproxTopK",
            {Floats({2, 4})},
            {{"k", int64_t{3}}, {"recall_target", -1.f}},
            kInvalid,
            "Invalid recall target: -1"},
           {"ExtractImagePatches",
            {Floats({2, 5, 6, 3})},
            {{"ksizes", std::vector<int64_t>{int64_t{1} << 40, 3, 2, 1}},
             {"strides", std::vector<int64_t>{1, 2, 3, 1}},
             {"rates", std::vector<int64_t>{1, 1, 1, 1}},
             {"padding", "VALID"}},
            kInvalid,
            "Attr ksizes has value 1099511627776 out of range for an int32"},
           {"ExtractImagePatches",
            {Floats({2, 5, 6, 3})},
            {{"ksizes", std::vector<int64_t>{1, 3, 2, 1}},
             {"strides", std::vector<int64_t>{1, 2, 3, 1}},
             {"rates", std::vector<int64_t>{1, 0, 1, 1}},
             {"padding", "VALID"}},
            absl::StatusCode::kOutOfRange,
            "rates is out of range"},
       }) {
    Graph g;
    NodeBuilder builder(g, row.op);
    for (const Tensor& t : row.inputs) builder.Input(Const(g, t));
    for (const auto& [name, value] : row.attrs) builder.Attr(name, value);
    builder.Build();
    EXPECT_EQ(g.status().code(), row.code) << row.op << ": " << g.status();
    EXPECT_THAT(std::string(g.status().message()), HasSubstr(row.words)) << row.op;
  }
}

TEST(InvalidArguments, PoolingReportsTheBatchStrideFirst) {
  const std::vector<int64_t> window = {1, 2, 2, 1};
  ExpectRejected({
      {"MaxPool",
       {Floats({2, 5, 2, 6})},
       {{"ksize", window}, {"strides", std::vector<int64_t>{-1, 1, 1, 1}}, {"padding", "VALID"}},
       absl::StatusCode::kUnimplemented,
       "Pooling is not yet supported on the batch dimension."},
      {"AvgPool",
       {Floats({2, 5, 2, 6})},
       {{"ksize", window},
        {"strides", std::vector<int64_t>{int64_t{1} << 40, 1, 1, 1}},
        {"padding", "VALID"}},
       kInvalid,
       "Attr strides has value 1099511627776 out of range for an int32"},
  });
}

TEST(InvalidArguments, OptionsAndElementsOutOfRange) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  ExpectRejected({
      {"AsString",
       {Floats({2})},
       {{"width", int64_t{1} << 40}},
       kInvalid,
       "Attr width has value 1099511627776 out of range for an int32"},
      {"MatchingFiles",
       {Texts({2, 1})},
       {},
       kInvalid,
       "Input patterns tensor must be scalar or vector, but had shape: [2,1]"},
      {"HistogramFixedWidth",
       {Tensor::Of<float>({2}, {1, nan}), Tensor::Of<float>({2}, {0, 5}),
        Tensor::Scalar<int32_t>(5)},
       {},
       kInvalid,
       "Histogram values must not contain NaN"},
      {"GatherNd",
       {Floats({0, 4}), Ints({2, 0})},
       {},
       kInvalid,
       "Requested more than 0 entries, but params is empty."},
      {"Bincount",
       {Ints({4}), Tensor::Scalar<int32_t>(1), Ints({2})},
       {},
       kInvalid,
       "Input indices and weights must have the same size"},
      {"IteratorFromStringHandle",
       {Text("x")},
       {{"output_types", DataTypes{DT_INT64, DT_INT64}},
        {"output_shapes", std::vector<Shape>{Shape()}}},
       kInvalid,
       "must have the same length"},
      {"Batch",
       {Floats({3})},
       {{"num_batch_threads", int64_t{0}},
        {"max_batch_size", int64_t{3}},
        {"batch_timeout_micros", int64_t{1}},
        {"grad_timeout_micros", int64_t{1}}},
       kInvalid,
       "num_batch_threads must be positive; was 0",
       1},
      {"Batch",
       {Floats({3})},
       {{"num_batch_threads", int64_t{1}},
        {"max_batch_size", int64_t{3}},
        {"batch_timeout_micros", int64_t{-1}},
        {"grad_timeout_micros", int64_t{1}}},
       kInvalid,
       "batch_timeout_micros must be non-negative; was -1",
       1},
  });
  EXPECT_TRUE(RunFed("Bincount", {Ints({2, 1}), Tensor::Scalar<int32_t>(2), Ints({2})}).ok());
}

// TensorFlow detects a NaN pivot only if it is the first one.
TEST(InvalidArguments, MatricesWhoseFirstPivotIsNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor first = Tensor::Of<double>({2, 2}, {nan, 0, 0, 1});
  const Tensor second = Tensor::Of<double>({2, 2}, {1, 0, 0, nan});
  ExpectRejected({
      {"Lu", {first}, {}, kInvalid, "Input is not invertible."},
      {"MatrixInverse", {first}, {}, kInvalid, "Input is not invertible."},
      {"MatrixSolve", {first, second}, {}, kInvalid, "Input matrix is not invertible."},
  });
  for (const char* op : {"Lu", "MatrixInverse"}) EXPECT_TRUE(RunFed(op, {second}).ok()) << op;
}

absl::Status StagePart(const Tensor& key, int32_t index, int64_t memory_limit) {
  Graph g;
  NodeBuilder builder(g, "MapStage");
  builder.Input(Const(g, key)).Input(Const(g, Tensor::Of<int32_t>({1}, {index})));
  builder.InputList({Const(g, Floats({1}))});
  builder.Attr("dtypes", DataTypes{DT_FLOAT, DT_FLOAT}).Attr("memory_limit", memory_limit);
  const Operation stage = builder.Build();
  ResourceMap resources;
  return g.status().ok() ? EvaluateTargets(g, {stage}, &resources) : g.TakeStatus();
}

TEST(InvalidArguments, StagingChecksTheMemoryLimitBeforeTheIndices) {
  EXPECT_EQ(StagePart(One<int64_t>(3), -1, 2).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(StagePart(One<int64_t>(3), -1, 0).code(), kInvalid);
  EXPECT_EQ(StagePart(Tensor::Of<int64_t>({2}, {1, 2}), 0, 0).code(), kInvalid);
  EXPECT_TRUE(StagePart(One<int64_t>(3), 0, 0).ok());
}

TEST(InvalidArguments, TemporaryVariablesAreDestroyedByName) {
  Graph g;
  NodeBuilder make(g, "TemporaryVariable");
  make.Attr("shape", Shape({1})).Attr("dtype", DT_FLOAT);
  const Output made = make.Build()->output(0);
  const Output gone = AddOp("DestroyTemporaryVariable", {made}, {{"var_name", ""}});
  const absl::Status status = Evaluate(g, {gone}).status();
  EXPECT_EQ(status.code(), kInvalid) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("Missing var_name attribute"));
}

TEST(UnusualArguments, EmptyBatchesDoNotWait) {
  const auto batch = RunFed("Batch", {Floats({0, 3})},
                            {{"num_batch_threads", int64_t{1}},
                             {"max_batch_size", int64_t{3}},
                             {"batch_timeout_micros", int64_t{60000000}},
                             {"grad_timeout_micros", int64_t{1}}},
                            1);
  ASSERT_TRUE(batch.ok()) << batch.status();
  for (const Tensor& t : *batch) EXPECT_EQ(t.shape(), Shape({0}));
}

TEST(UnusualArguments, DifferenceEqualToTheToleranceIsApproximatelyEqual) {
  const auto equal =
      RunFed("ApproximateEqual", {Tensor::Scalar(2.f), Tensor::Scalar(3.f)}, {{"tolerance", 1.f}});
  ASSERT_TRUE(equal.ok()) << equal.status();
  EXPECT_TRUE(*(*equal)[0].data<bool>());
}

TEST(UnusualArguments, DiagonalPaddingMayBeAVector) {
  const Tensor x = Floats({2, 4}), k = Tensor::Scalar<int32_t>(0);
  for (const char* op : {"MatrixDiagPartV2", "MatrixDiagPartV3"}) {
    EXPECT_TRUE(RunFed(op, {x, k, One(0.f)}).ok()) << op;
    ExpectRejected({{op, {x, k, Floats({2})}, {}, kInvalid, "padding_value must be a scalar"}});
  }
}

TEST(UnusualArguments, ScalarIsAShapeOfOneDimension) {
  const auto filled = RunFed("Fill", {Tensor::Scalar<int32_t>(3), Tensor::Scalar(1.f)});
  ASSERT_TRUE(filled.ok()) << filled.status();
  EXPECT_EQ((*filled)[0].shape(), Shape({3}));
  const auto reshaped = RunFed("Reshape", {Floats({2, 2}), Tensor::Scalar<int32_t>(-1)});
  ASSERT_TRUE(reshaped.ok()) << reshaped.status();
  EXPECT_EQ((*reshaped)[0].shape(), Shape({4}));
}

TEST(InvalidArguments, GuaranteeConstRejectsResources) {
  ExpectRejected({{"GuaranteeConst",
                   {Tensor::Scalar(ResourceHandle())},
                   {},
                   kInvalid,
                   "Input tensor cannot be a resource variable handle."}});
}

TEST(Determinant, InfinitiesAndIntermediateOverflow) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  struct Row {
    std::vector<double> matrix;
    double determinant, sign, log;
  };
  for (const Row& row : std::vector<Row>{{{kInf, 1, 1, 1}, kInf, 1, kInf},
                                         {{1, kInf, 1, 1}, -kInf, -1, kInf},
                                         {{kInf, 0, 0, kInf}, kInf, 1, kInf},
                                         {{0, kInf, 1, 1}, -kInf, -1, kInf},
                                         {{-kInf, 1, 2, 3}, -kInf, -1, kInf},
                                         {{1, 2, kInf, 3}, -kInf, -1, kInf},
                                         {{0, 0, 0, 0}, 0, 0, -kInf},
                                         {{2, 0, 0, 3}, 6, 1, std::log(6)}}) {
    Tensor m(DT_DOUBLE, Shape({2, 2}));
    std::copy(row.matrix.begin(), row.matrix.end(), m.data<double>());
    const auto plain = RunFed("MatrixDeterminant", {m});
    const auto log = RunFed("LogMatrixDeterminant", {m});
    ASSERT_TRUE(plain.ok() && log.ok());
    const std::string text = m.ToString();
    EXPECT_DOUBLE_EQ(*(*plain)[0].data<double>(), row.determinant) << text;
    EXPECT_DOUBLE_EQ(*(*log)[0].data<double>(), row.sign) << text;
    EXPECT_DOUBLE_EQ(*(*log)[1].data<double>(), row.log) << text;
  }
  Tensor wide(DT_DOUBLE, Shape({3, 3}));
  std::fill_n(wide.data<double>(), 9, 0.0);
  for (const auto& [at, value] : {std::pair(0, 1e200), {4, 1e200}, {8, 1e-300}})
    wide.data<double>()[at] = value;
  const auto product = RunFed("MatrixDeterminant", {wide});
  ASSERT_TRUE(product.ok());
  EXPECT_NEAR(*(*product)[0].data<double>() / 1e100, 1, 1e-10);
}

TEST(InvalidArguments, UnsignedSeedsAreRejected) {
  const Tensor seed = Tensor::Of<uint64_t>({2}, {1, 2});
  ExpectRejected({{"StatelessRandomUniformFullInt",
                   {Ints({2}), seed},
                   {{"dtype", DT_INT32}},
                   kInvalid,
                   "Invalid seed type: uint64"}});
}

TEST(InvalidArguments, SeedsAreValidatedWithoutDraws) {
  ExpectRejected({{"StatelessRandomPoisson",
                   {Tensor::Of<int32_t>({1}, {0}), Tensor::Scalar<int32_t>(1), Floats({0})},
                   {{"dtype", DT_FLOAT}},
                   kInvalid,
                   "seed must have shape [2], not []"}});
}

TEST(InvalidArguments, SetsValidateIndices) {
  const Tensor indices = Tensor::Of<int64_t>({1, 2}, {0, 5}),
               shape = Tensor::Of<int64_t>({2}, {2, 3});
  ExpectRejected({{"SetSize",
                   {indices, Ints({1}), shape},
                   {{"validate_indices", false}},
                   absl::StatusCode::kInternal,
                   "is out of bounds"},
                  {"SetSize", {indices, Ints({1}), shape}, {}, kInvalid, "is out of bounds"}});
}

TEST(InvalidArguments, SegmentIdsOfRowsWithoutElementsAreSortedToo) {
  const Tensor rows = Floats({3, 0}), fall = Tensor::Of<int32_t>({3}, {0, 2, 1}),
               below = Tensor::Of<int32_t>({3}, {-1, 0, 1}), four = Tensor::Scalar<int32_t>(4);
  ExpectRejected({
      {"SegmentSum", {rows, fall}, {}, kInvalid, "segment ids are not increasing"},
      {"SegmentMean", {rows, below}, {}, kInvalid, "Segment id -1 out of range"},
      {"SparseSegmentSum", {rows, Ints({3}), fall}, {}, kInvalid, "segment ids are not increasing"},
      {"SparseSegmentSumWithNumSegments",
       {rows, Ints({3}), fall, four},
       {},
       kInvalid,
       "segment ids are not increasing"},
  });
}

TEST(InvalidArguments, SparseSliceSizeOverflowIsRejected) {
  const Tensor dims = Tensor::Of<int64_t>({2}, {int64_t{1} << 62, 7});
  const Tensor zero = Tensor::Of<int64_t>({2}, {0, 0}), two = Tensor::Of<int64_t>({2}, {2, 2});
  ExpectRejected({{"SparseSlice",
                   {Tensor::Of<int64_t>({1, 2}, {0, 1}), Floats({1}), dims, zero, two},
                   {},
                   kInvalid,
                   ""}});
}

TEST(InvalidArguments, ScaleAndTranslateValidatesUnusedNumbers) {
  const Tensor image = Floats({0, 2, 2, 1}), size = Tensor::Of<int32_t>({2}, {2, 2}),
               pair = Tensor::Of<float>({2}, {1, 1});
  ExpectRejected({
      {"ScaleAndTranslate", {image, size, pair, One(1.f)}, {}, kInvalid, "1-dimensional"},
      {"ScaleAndTranslateGrad",
       {image, image, pair, Tensor::Scalar(1.f)},
       {},
       kInvalid,
       "1-dimensional"},
  });
}

// Mask bits beyond the last index.
TEST(InvalidArguments, StridedSliceAllowsAtMostOneEllipsis) {
  const Tensor one = Ints({1});
  for (const int64_t mask : {3, 6, -1}) {
    ExpectRejected({{"StridedSlice",
                     {Floats({3}), one, Tensor::Of<int32_t>({1}, {2}), one},
                     {{"ellipsis_mask", mask}},
                     kInvalid,
                     "Multiple ellipses in slice spec not allowed"}});
  }
}

// Errors of RaggedTensorToTensor's shape function about row partitions.
TEST(InvalidArguments, RowPartitionsMatchTheirTypes) {
  using Types = std::vector<std::string>;
  const Tensor splits = Tensor::Of<int64_t>({3}, {0, 1, 3}), size = Tensor::Scalar<int64_t>(2);
  struct Row {
    Types types;
    Tensors partitions;
    const char* words;
  };
  for (const Row& row : std::vector<Row>{
           {{"ROW_SPLITS"}, {size}, "Row partition must be a vector."},
           {{"ROW_SPLITS"}, {splits.Reshaped(Shape({1, 3}))}, "Row partition must be a vector."},
           {{"FIRST_DIM_SIZE", "VALUE_ROWIDS"},
            {splits, splits},
            "FIRST_DIM_SIZE must be a scalar."},
           {{"ROW_SPLITS", "FIRST_DIM_SIZE"}, {splits, size}, "FIRST_DIM_SIZE must be first"},
           {{"ROW_SPLITS"}, {splits, splits}, "Number of row partition tensors (2)"}}) {
    Graph g;
    Outputs partitions;
    for (const Tensor& t : row.partitions) partitions.push_back(Const(g, t));
    AddOp("RaggedTensorToTensor",
          {Const(g, int64_t{-1}), Const(g, Floats({3})), Const(g, 0.f), partitions},
          {{"row_partition_types", row.types}});
    EXPECT_EQ(g.status().code(), kInvalid) << row.words;
    EXPECT_THAT(std::string(g.status().message()), HasSubstr(row.words));
  }
}

TEST(InvalidArguments, QuantizedConvolutionsHaveNoGroups) {
  const Tensor zero = Tensor::Scalar(0.f), one = Tensor::Scalar(1.f);
  ExpectRejected({{"QuantizedConv2D",
                   {Tensor(DT_QUINT8, Shape({1, 2, 2, 2})), Tensor(DT_QUINT8, Shape({1, 1, 1, 2})),
                    zero, one, zero, one},
                   {{"strides", std::vector<int64_t>{1, 1, 1, 1}}, {"padding", "VALID"}},
                   kInvalid,
                   "input and filter must have the same depth: 2 vs 1"}});
}

TEST(UnusualArguments, FourierTransformsOfEmptyInputsAreZero) {
  const auto line = RunFed("RFFT", {Floats({1, 6, 0}), Tensor::Of<int32_t>({1}, {6})});
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ((*line)[0].shape(), Shape({1, 6, 4}));
  EXPECT_EQ((*line)[0].data<std::complex<float>>()[23], std::complex<float>());
  const auto plane = RunFed("RFFT2D", {Floats({0, 5}), Tensor::Of<int32_t>({2}, {3, 5})});
  ASSERT_TRUE(plane.ok()) << plane.status();
  EXPECT_EQ((*plane)[0].shape(), Shape({3, 3}));
}

TEST(InvalidArguments, DatasetsValidateThreadCountsAndPaddedShapes) {
  const Attrs out = {{"output_types", DataTypes{DT_INT64}},
                     {"output_shapes", std::vector<Shape>{Shape::UnknownRank()}}};
  const auto status_of = [&](const char* op, const auto& inputs_after, Attrs attrs) {
    Graph g;
    const auto number = [&](int64_t n) { return Const(g, n); };
    const Output range = AddOp("RangeDataset", {number(0), number(3), number(1)}, out);
    const Output data = AddOp(op, inputs_after(g, range), attrs);
    return Evaluate(g, {data}).status();
  };
  const absl::Status threads = status_of(
      "PrivateThreadPoolDataset",
      [](Graph& g, const Output& in) {
        return std::vector<Arg>{in, Const(g, int64_t{65536})};
      },
      out);
  EXPECT_EQ(threads.code(), kInvalid);
  EXPECT_THAT(std::string(threads.message()), HasSubstr("`num_threads` must be < 65536"));
  const absl::Status padded = status_of("PaddedBatchDataset",
                                        [](Graph& g, const Output& in) {
                                          return std::vector<Arg>{in, Const(g, int64_t{2}),
                                                                  Outputs{Const<int64_t>(g, {-2})},
                                                                  Outputs{Const(g, int64_t{0})}};
                                        },
                                        {out[1]});
  EXPECT_EQ(padded.code(), kInvalid);
  EXPECT_THAT(std::string(padded.message()), HasSubstr("Dimension -2 must be >= -1"));
  const absl::Status large =
      status_of("PaddedBatchDataset",
                [](Graph& g, const Output& in) {
                  return std::vector<Arg>{in, Const(g, int64_t{2}),
                                          Outputs{Const<int64_t>(g, {int64_t{1} << 62, 4, -1})},
                                          Outputs{Const(g, int64_t{0})}};
                },
                {out[1]});
  EXPECT_EQ(large.code(), kInvalid);
  EXPECT_THAT(std::string(large.message()), HasSubstr("has too many elements"));
}

// Errors of the parsing ops' shape functions about keys, types and names.
TEST(InvalidArguments, ParsedFeaturesHaveOneTypeAndOneKeyEach) {
  const std::vector<Shape> no_shapes;
  const auto refused = [&](const char* op, const auto& inputs, const Attrs& attrs) {
    Graph g;
    AddNode(g, op, inputs(g), attrs);
    return g.status();
  };
  const auto texts = [](Graph& g, std::vector<int64_t> dims) { return Const(g, Texts(dims)); };
  const absl::Status split =
      refused("ParseExampleV2",
              [&](Graph& g) {
                return std::vector<Arg>{texts(g, {1}), texts(g, {0}), texts(g, {0}),
                                        texts(g, {0}), texts(g, {1}), Outputs()};
              },
              {{"num_sparse", int64_t{0}},
               {"sparse_types", DataTypes()},
               {"ragged_value_types", DataTypes{DT_INT64}},
               {"ragged_split_types", DataTypes()},
               {"dense_shapes", no_shapes}});
  EXPECT_EQ(split.code(), kInvalid);
  EXPECT_THAT(std::string(split.message()),
              HasSubstr("len(ragged_keys) != len(ragged_split_types)"));
  const absl::Status counts =
      refused("ParseExampleV2",
              [&](Graph& g) {
                return std::vector<Arg>{texts(g, {1}), texts(g, {0}), texts(g, {0}),
                                        texts(g, {0}), texts(g, {0}), Outputs()};
              },
              {{"num_sparse", int64_t{0}},
               {"sparse_types", DataTypes{DT_INT64}},
               {"ragged_value_types", DataTypes()},
               {"ragged_split_types", DataTypes()},
               {"dense_shapes", no_shapes}});
  EXPECT_EQ(counts.code(), kInvalid);
  EXPECT_THAT(std::string(counts.message()), HasSubstr("len(sparse_keys) != len(sparse_types)"));
  const absl::Status single = refused("ParseSingleExample",
                                      [&](Graph& g) {
                                        return std::vector<Arg>{texts(g, {}), Outputs()};
                                      },
                                      {{"num_sparse", int64_t{1}},
                                       {"sparse_keys", std::vector<std::string>()},
                                       {"dense_keys", std::vector<std::string>()},
                                       {"sparse_types", DataTypes{DT_INT64}},
                                       {"dense_shapes", no_shapes}});
  EXPECT_EQ(single.code(), kInvalid);
  EXPECT_THAT(std::string(single.message()), HasSubstr("len(sparse_keys) != len(sparse_types)"));
  const absl::Status lists = refused(
      "ParseSequenceExampleV2",
      [&](Graph& g) {
        return std::vector<Arg>{texts(g, {1}), texts(g, {0}), texts(g, {0}),
                                texts(g, {0}), texts(g, {0}), texts(g, {0}),
                                texts(g, {0}), texts(g, {0}), Const(g, Tensor(DT_BOOL, Shape({0}))),
                                Outputs()};
      },
      {{"feature_list_dense_types", DataTypes{DT_FLOAT}},
       {"feature_list_dense_shapes", std::vector<Shape>{Shape({2})}}});
  EXPECT_EQ(lists.code(), kInvalid);
  EXPECT_THAT(
      std::string(lists.message()),
      HasSubstr("num_feature_list_dense (0) must match the size of feature_list_dense_types (1)"));
  const absl::Status keys =
      refused("ParseSequenceExample",
              [&](Graph& g) {
                return std::vector<Arg>{texts(g, {1}), texts(g, {0}), Outputs()};
              },
              {{"Ncontext_dense", int64_t{2}},
               {"feature_list_dense_missing_assumed_empty", std::vector<std::string>()},
               {"context_sparse_keys", std::vector<std::string>()},
               {"context_dense_keys", std::vector<std::string>()},
               {"feature_list_sparse_keys", std::vector<std::string>()},
               {"feature_list_dense_keys", std::vector<std::string>()}});
  EXPECT_EQ(keys.code(), kInvalid);
  EXPECT_THAT(std::string(keys.message()),
              HasSubstr("num_context_dense (2) must match the size of context_dense_keys (0)"));
}

TEST(InvalidArguments, SparseReductionSizeOverflowIsRejected) {
  const Tensor dims = Tensor::Of<int64_t>({2}, {9, int64_t{1} << 62});
  for (const char* op : {"SparseReduceSum", "SparseReduceMaxSparse"}) {
    ExpectRejected({{op,
                     {Tensor::Of<int64_t>({1, 2}, {0, 1}), Floats({1}), dims, Ints({1})},
                     {},
                     kInvalid,
                     ""}});
  }
}

TEST(InvalidArguments, SparseConcatSizeOverflowIsRejected) {
  Graph g;
  const Output indices = Const(g, Tensor::Of<int64_t>({1, 2}, {0, 1})),
               values = Const(g, Floats({1})),
               large = Const(g, Tensor::Of<int64_t>({2}, {int64_t{1} << 62, 3})),
               small = Const(g, Tensor::Of<int64_t>({2}, {4, 3}));
  const Outputs rows = {indices, indices}, elements = {values, values}, shapes = {large, small};
  const Output joined =
      AddOp("SparseConcat", {rows, elements, shapes}, {{"concat_dim", int64_t{0}}});
  ASSERT_TRUE(joined.valid()) << g.status();
  const absl::Status status = Evaluate(g, {joined}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("Encountered overflow from large input shape."));
}

TEST(InvalidArguments, SparseSegmentsAreCountedByTheTypeOfTheIndices) {
  const Tensor last = Tensor::Of<int32_t>({1}, {std::numeric_limits<int32_t>::max()});
  ExpectRejected({{"SparseSegmentSum",
                   {Floats({2, 3}), Tensor::Of<int32_t>({1}, {0}), last},
                   {},
                   kInvalid,
                   "Last segment id must be < kintmax, got 2147483647"}});
}

TEST(InvalidArguments, SlicesOfSparseTensorsHaveNoMoreElementsThanThese) {
  const Tensor one = Tensor::Of<int64_t>({1, 1}, {0}), two = Tensor::Of<int64_t>({2, 1}, {0, 1});
  ExpectRejected({{"SparseSliceGrad",
                   {Floats({2}), one, Tensor::Of<int64_t>({1}, {0}), two},
                   {},
                   kInvalid,
                   "should be not greater than of input_indices, got 2 and 1"}});
}

TEST(InvalidArguments, RaggedGatherRejectsScalarSplits) {
  ExpectRejected({{"RaggedGather",
                   {Tensor::Scalar<int64_t>(0), Floats({3}), Ints({1})},
                   {{"OUTPUT_RAGGED_RANK", int64_t{1}}},
                   kInvalid,
                   "Split tensors must not be scalars",
                   1}});
}

TEST(InvalidArguments, RaggedSplitsMayNotBeEmpty) {
  const Tensor none(DT_INT64, Shape({0}));
  ExpectRejected({
      {"RaggedGather",
       {none, Floats({3}), Ints({0})},
       {{"OUTPUT_RAGGED_RANK", int64_t{1}}},
       kInvalid,
       "Ragged splits may not be empty",
       1},
      {"RaggedTensorToVariantGradient",
       {Tensor(DT_VARIANT, Shape({0})), none, Tensor::Of<int32_t>({1}, {0})},
       {{"Tvalues", DT_FLOAT}},
       kInvalid,
       "ragged splits must have at least one splits, but is empty"},
  });
}

TEST(InvalidArguments, DecodedRaggedTensorsHaveTheRankOfTheVariant) {
  Graph g;
  const Output encoded = AddOp("RaggedTensorToVariant", {Outputs(), Const(g, Floats({2, 2}))},
                               {{"batched_input", true}});
  AddNode("RaggedTensorFromVariant", {encoded},
          {{"input_ragged_rank", int64_t{3}},
           {"output_ragged_rank", int64_t{1}},
           {"Tvalues", DT_FLOAT},
           {"Tsplits", DT_INT64}});
  EXPECT_EQ(g.status().code(), kInvalid);
  EXPECT_THAT(std::string(g.status().message()), HasSubstr("Shape must be rank -2 but is rank 1"));
}

TEST(InvalidArguments, AxesOfQuantizedConcatAreScalars) {
  for (const bool axis_first : {true, false}) {
    Graph g;
    const Output axis = Placeholder(g, DT_INT32), low = Const(g, 0.f), high = Const(g, 1.f),
                 part = Const(g, Tensor(DT_QUINT8, Shape({1, 2})));
    const Outputs parts = {part, part}, lows = {low, low}, highs = {high, high};
    const Output joined = axis_first ? AddOp("QuantizedConcat", {axis, parts, lows, highs})
                                     : AddOp("QuantizedConcatV2", {parts, axis, lows, highs});
    ASSERT_TRUE(joined.valid()) << g.status();
    const absl::Status status = Evaluate(g, {{axis, One<int32_t>(1)}}, {joined}).status();
    EXPECT_EQ(status.code(), kInvalid);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("Concat dim tensor should be a scalar integer, but got shape [1]"));
  }
}

// A tensor with one element is rounded separately, whatever its rank.
TEST(UnusualArguments, QuantizedAddOfOneElement) {
  Tensor x(DT_QUINT8, Shape({2, 3})), one(DT_QUINT8, Shape({1, 1, 1}));
  const uint8_t values[] = {155, 70, 89, 107, 138, 185};
  std::copy_n(values, 6, static_cast<uint8_t*>(x.raw()));
  *static_cast<uint8_t*>(one.raw()) = 255;
  const auto sum = RunFed("QuantizedAdd", {x, one, Tensor::Scalar(-1.f), Tensor::Scalar(1.f),
                                           Tensor::Scalar(0.f), Tensor::Scalar(6.f)});
  ASSERT_TRUE(sum.ok()) << sum.status();
  const int32_t expected[] = {135972, 121352, 124620, 127716, 133048, 141132};
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(static_cast<const int32_t*>((*sum)[0].raw())[i], expected[i]);
}

// The range is looked at before the classes.
TEST(InvalidArguments, SmallRangesHaveNoUniqueSamples) {
  ExpectRejected({{"UniformCandidateSampler",
                   {Tensor::Of<int64_t>({2, 1}, {1, 2})},
                   {{"num_true", 1}, {"num_sampled", 3}, {"range_max", 2}, {"unique", true}},
                   kInvalid,
                   "range is too small"}});
}

TEST(InvalidArguments, NothingHasNoRangePerChannel) {
  ExpectRejected({{"RequantizationRangePerChannel",
                   {Tensor(DT_QINT32, Shape({2, 0, 2, 3})), Floats({3}), Floats({3})},
                   {{"clip_value_max", 0.25f}},
                   kInvalid,
                   "input must not be empty"},
                  {"RequantizationRangePerChannel",
                   {Tensor(DT_QINT32, Shape({1, 3, 4, 0})), Floats({3}), Floats({3})},
                   {{"clip_value_max", 0.25f}},
                   kInvalid,
                   "input must not be empty"}});
}

}  // namespace

}  // namespace weir
