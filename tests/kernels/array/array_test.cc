#include "weir/ops/lib/array.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/io/graph_io.h"
#include "weir/ops/containers/data_flow.h"
#include "weir/ops/framework/control_flow.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/framework/state.h"
#include "weir/ops/lib/math.h"
#include "weir/proto/graph.pb.h"
#include "weir/tests/evaluate.h"

// Gradients checked to order 1 by tests: PreventGradient.

namespace weir {

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Tensor I32(std::initializer_list<int32_t> values) { return Tensor::Vector<int32_t>(values); }
Tensor F32(std::initializer_list<float> values) { return Tensor::Vector<float>(values); }

std::vector<std::string> NamesOf(const Graph& g) {
  std::vector<std::string> names;
  for (const auto& n : g.nodes()) names.push_back(n->op_name() + " " + n->name());
  return names;
}

// A kernel's error for inputs that are not known to be invalid at graph construction.
struct BadInput {
  const char* op;
  Tensors inputs;
  Attrs attrs;
  const char* message;
  bool list_first = false;
};

Tensor Ones(const Shape& shape) {
  Tensor t = Tensor::Zeros(DT_FLOAT, shape);
  for (float& v : t.flat<float>()) v = 1;
  return t;
}

std::vector<BadInput> BadShapes() {
  const Tensor m = Ones({2, 3}), v = Ones({4}), s = Tensor::Scalar(1.0f);
  return {
      {"Reshape", {m, I32({4, -1})}, {}, "requires a multiple of 4"},
      {"Reshape", {m, I32({-1, -1})}, {}, "Only one input size may be -1"},
      {"Reshape", {m, I32({7})}, {}, "6 values, but the requested shape has 7"},
      {"Reshape", {m, I32({-2, 3})}, {}, "must be non-negative"},
      {"Reshape", {Ones({6}), I32({-1, 0})}, {}, "6 values, but the requested shape has 0"},
      {"Reshape",
       {m, Tensor::Vector<int64_t>({int64_t{1} << 40, int64_t{1} << 40})},
       {},
       "too many elements"},
      {"ExpandDims",
       {m, Tensor::Scalar<int32_t>(4)},
       {},
       "Tried to expand dim index 4 for tensor with 2 dimensions"},
      {"ExpandDims", {m, I32({0, 1})}, {}, "scalar"},
      {"Squeeze",
       {m},
       {{"squeeze_dims", std::vector<int64_t>{1}}},
       "expected a dimension of 1, got 3"},
      {"Squeeze", {m}, {{"squeeze_dims", std::vector<int64_t>{5}}}, "squeeze dim index 5"},
      {"Fill", {I32({-1}), s}, {}, "fully defined"},
      {"Fill", {I32({2}), v}, {}, "value must represent a scalar"},
      {"BroadcastTo", {m, I32({2, 4})}, {}, "Incompatible shapes: [2,3] vs. [2,4]"},
      {"BroadcastTo", {m, I32({3})}, {}, "Incompatible shapes"},
      {"BroadcastArgs", {I32({2}), I32({3})}, {}, "Incompatible shapes: [2] vs. [3]"},
      {"BroadcastGradientArgs",
       {I32({2, 2}), I32({3, 2})},
       {},
       "Incompatible shapes: [2,2] vs. [3,2]"},
      {"Bitcast", {Ones({3})}, {{"type", DT_DOUBLE}}, "must be 2"},
      {"EnsureShape",
       {m},
       {{"shape", Shape({3, 3})}},
       "is not compatible with expected shape [3,3]"},
      {"Slice", {m, I32({0, 4}), I32({1, 1})}, {}, "Expected begin[1] in [0, 3], but got 4"},
      {"Slice", {m, I32({0, 1}), I32({1, 3})}, {}, "Expected size[1] in [0, 2], but got 3"},
      {"Slice", {m, I32({0}), I32({1})}, {}, "1-D tensors of size 2"},
      {"StridedSlice", {m, I32({0}), I32({1}), I32({0})}, {}, "strides[0] must be non-zero"},
      {"StridedSlice",
       {m, I32({2}), I32({3}), I32({1})},
       {{"shrink_axis_mask", 1}},
       "slice index 2 of dimension 0 out of bounds"},
      {"StridedSlice",
       {m, I32({0, 0, 0}), I32({1, 1, 1}), I32({1, 1, 1})},
       {},
       "input has only 2 dims"},
      {"StridedSlice",
       {m, I32({0, 0}), I32({1, 1}), I32({1, 1})},
       {{"ellipsis_mask", 3}},
       "Multiple ellipses"},
      {"StridedSlice", {m, I32({0, 0}), I32({1}), I32({1})}, {}, "1D equal size tensors"},
      {"StridedSliceGrad", {I32({4}), I32({0}), I32({2}), I32({1}), v}, {}, "instead of [2]"},
      {"TensorStridedSliceUpdate",
       {v, I32({0}), I32({2}), I32({1}), Ones({3})},
       {},
       "cannot be assigned to a slice"},
  };
}

std::vector<BadInput> BadJoins() {
  const Tensor m = Ones({2, 3}), v = Ones({4}), zero = Tensor::Scalar<int32_t>(0),
               nine = Tensor::Scalar<int32_t>(9);
  return {
      {"ConcatV2", {m, Ones({2, 4}), zero}, {}, "Dimension 1 in both shapes must be equal", true},
      {"ConcatV2", {m, v, zero}, {}, "Ranks of all input tensors should match", true},
      {"ConcatV2", {m, m, nine}, {}, "in the range [-2, 2), but got 9", true},
      {"Split", {zero, Ones({5})}, {{"num_split", 2}}, "evenly divide the split dimension"},
      {"Split", {nine, v}, {{"num_split", 2}}, "axis 9 must be in the range [-1, 1)"},
      {"SplitV", {v, I32({3, 3}), zero}, {{"num_split", 2}}, "split_dim exactly"},
      {"SplitV", {v, I32({1, 1}), zero}, {{"num_split", 2}}, "are left over"},
      {"SplitV", {v, I32({-1, -1}), zero}, {{"num_split", 2}}, "size_splits[1] = -1"},
      {"Unpack", {m}, {{"num", 5}}, "must equal 5"},
      {"Tile", {m, I32({1})}, {}, "vector of length 2"},
      {"Tile", {m, I32({1, -1})}, {}, "Expected multiples[1] >= 0"},
      {"Tile", {m, Tensor::Vector<int64_t>({int64_t{1} << 62, 4})}, {}, ""},
      {"Transpose", {m, I32({0, 0})}, {}, "0 is duplicated"},
      {"Transpose", {m, I32({0, 2})}, {}, "2 is out of range"},
      {"Transpose", {m, I32({0})}, {}, "expects a vector of size 2"},
      {"InvertPermutation", {I32({0, 2})}, {}, "2 is not between 0 and 2"},
      {"InvertPermutation", {I32({0, 0})}, {}, "0 is duplicated"},
      {"ReverseV2", {m, I32({0, -2})}, {}, "specified more than once"},
      {"ReverseV2", {m, I32({2})}, {}, "out of valid range"},
      {"Reverse", {m, Tensor::Vector<bool>({true})}, {}, "length equal to input rank"},
      {"ReverseSequence", {m, Tensor::Vector<int64_t>({4, 0})}, {{"seq_dim", 1}}, "seq_lens has 4"},
      {"ReverseSequence",
       {m, Tensor::Vector<int64_t>({1})},
       {{"seq_dim", 1}},
       "Length of seq_lens"},
      {"Roll", {v, I32({1, 2}), I32({0})}, {}, "same size"},
      {"Pad", {v, Tensor::Of<int32_t>({1, 2}, {-1, 0})}, {}, "Paddings must be non-negative"},
      {"Pad", {v, Tensor::Of<int32_t>({2, 1}, {1, 0})}, {}, "matrix with 2 columns"},
      {"MirrorPad",
       {v, Tensor::Of<int32_t>({1, 2}, {4, 0})},
       {{"mode", "REFLECT"}},
       "paddings must be less than"},
      {"MirrorPad",
       {v, Tensor::Of<int32_t>({1, 2}, {5, 0})},
       {{"mode", "SYMMETRIC"}},
       "no greater than"},
      {"MirrorPadGrad",
       {v, Tensor::Of<int32_t>({1, 2}, {3, 3})},
       {{"mode", "SYMMETRIC"}},
       "Total paddings"},
      {"SpaceToBatchND",
       {m, I32({2}), Tensor::Of<int32_t>({1, 2}, {0, 0})},
       {},
       "is not divisible by block_shape[0]=2"},
      {"SpaceToBatchND",
       {m, I32({0}), Tensor::Of<int32_t>({1, 2}, {0, 0})},
       {},
       "must be positive"},
      {"BatchToSpaceND",
       {m, I32({3}), Tensor::Of<int32_t>({1, 2}, {0, 0})},
       {},
       "not divisible by product"},
      {"BatchToSpaceND",
       {m, I32({2}), Tensor::Of<int32_t>({1, 2}, {4, 4})},
       {},
       "must be non-negative"},
      {"SpaceToDepth",
       {Ones({1, 3, 4, 1})},
       {{"block_size", 2}},
       "should be divisible by block_size"},
      {"DepthToSpace", {Ones({1, 2, 2, 3})}, {{"block_size", 2}}, "should be divisible by: 4"},
      {"DepthToSpace", {m}, {{"block_size", 2}}, "Input rank should be 4"},
  };
}

std::vector<BadInput> BadIndices() {
  const Tensor m = Ones({2, 3}), v = Ones({4}), zero = Tensor::Scalar<int32_t>(0),
               nine = Tensor::Scalar<int32_t>(9);
  const Tensor pairs = Tensor::Of<int32_t>({1, 2}, {1, 7});
  return {
      {"GatherV2", {v, I32({1, 4}), zero}, {}, "indices[1] = 4 is not in [0, 4)"},
      {"GatherV2",
       {v, Tensor::Of<int32_t>({1, 2}, {0, -1}), zero},
       {},
       "indices[0,1] = -1 is not in [0, 4)"},
      {"GatherV2", {Ones({3, 0}), I32({3}), zero}, {}, "indices[0] = 3 is not in [0, 3)"},
      {"GatherV2", {v, I32({1}), nine}, {}, "Expected axis in the range [-1, 1), but got 9"},
      {"GatherV2", {m, I32({0}), zero}, {{"batch_dims", 1}}, "must be less than or equal to axis"},
      {"Gather", {v, I32({9})}, {}, "indices[0] = 9 is not in [0, 4)"},
      {"GatherNd", {m, pairs}, {}, "indices[0] = [1, 7] does not index into param shape [2,3]"},
      {"GatherNd",
       {v, Tensor::Of<int32_t>({1, 2, 1}, {0, 7})},
       {},
       "indices[0,1] = [7] does not index into param shape [4]"},
      {"GatherNd", {v, I32({7})}, {}, "indices = [7] does not index into"},
      {"GatherNd", {v, pairs}, {}, "index innermost dimension length must be <= params rank"},
      {"ScatterNd", {pairs, Ones({1}), I32({2, 3})}, {}, "does not index into shape [2,3]"},
      {"ScatterNd", {pairs, Ones({2}), I32({2, 9})}, {}, "Must have updates.shape"},
      {"ScatterNd", {pairs, Ones({1}), I32({-2, 9})}, {}, "negative dimension"},
      {"TensorScatterUpdate", {m, pairs, Ones({1})}, {}, "does not index into shape"},
      {"OneHot",
       {I32({0}), Tensor::Scalar<int32_t>(-1), Ones({}), Ones({})},
       {},
       "depth must be non-negative"},
      {"Unique", {m}, {}, "expects a 1D vector"},
      {"ListDiff", {m, v}, {}, "x should be a 1D vector"},
      {"TopKV2", {v, nine}, {}, "Had 4, needed 9"},
      {"TopKV2", {v, Tensor::Scalar<int32_t>(-1)}, {}, "Need k >= 0"},
      {"InTopKV2", {m, I32({0}), zero}, {}, "must match length of targets"},
      {"DiagPart", {m}, {}, "halves of its shape equal"},
      {"MatrixDiagPart", {v}, {}, "at least 2-dim"},
      {"MatrixDiagPartV3", {m, nine, Ones({})}, {}, "must be between"},
      {"MatrixDiagPartV3", {m, I32({1, 0}), Ones({})}, {}, "must not be larger"},
      {"MatrixDiagV3", {v, I32({0, 1}), zero, zero, Ones({})}, {}, "number of diagonals provided"},
      {"MatrixDiagV3",
       {v, zero, Tensor::Scalar<int32_t>(2), nine, Ones({})},
       {},
       "number of rows is too small"},
      {"MatrixSetDiagV3", {m, v, zero}, {}, "expected [2], got [4]"},
      {"MatrixSetDiagV3", {m, Ones({}), zero}, {}, "diagonal must be at least 1-dim"},
      {"MatrixBandPart", {m, nine, nine}, {}, "num_lower must be"},
      {"DynamicPartition",
       {v, I32({0, 1, 2, 0})},
       {{"num_partitions", 2}},
       "partitions[2] = 2 is not in [0, 2)"},
      {"DynamicPartition",
       {v, I32({0})},
       {{"num_partitions", 2}},
       "must start with partitions.shape"},
      {"DynamicPartition", {v, nine}, {{"num_partitions", 2}}, "partitions = 9 is not in [0, 2)"},
      {"DynamicPartition",
       {m, Tensor::Of<int32_t>({2, 3}, {0, 1, 1, 0, 0, 9})},
       {{"num_partitions", 2}},
       "partitions[1,2] = 9 is not in [0, 2)"},
  };
}

std::vector<BadInput> BadSegments() {
  const Tensor m = Ones({2, 3}), row = Ones({1, 3}), ten = Tensor::Scalar<int32_t>(10);
  const Tensor far = Tensor::Vector<int64_t>({(int64_t{1} << 62) - 1});
  return {
      {"SegmentSum", {m, I32({0, -1})}, {}, "segment ids must be >= 0"},
      {"SegmentSum", {row, Tensor::Vector<int64_t>({INT64_MAX})}, {}, "segment ids must be >= 0"},
      {"SegmentSum", {row, far}, {}, "Encountered overflow when multiplying"},
      {"SegmentSum",
       {m, I32({-1, 0})},
       {},
       "Segment id -1 out of range [0, 1), possibly because 'segment_ids' input is not sorted."},
      {"SegmentSum", {Ones({4, 1}), I32({0, 1, 2, 0})}, {}, "Segment id 1 out of range [0, 1)"},
      {"SegmentSum", {Ones({4, 1}), I32({0, 2, 1, 2})}, {}, "segment ids are not increasing"},
      {"SegmentSum", {m, I32({0})}, {}, "segment_ids should be the same size"},
      {"UnsortedSegmentSum",
       {row, Tensor::Of<int32_t>({1, 3}, {0, 1, 2}), Tensor::Scalar<int32_t>(2)},
       {},
       "segment_ids[0,2] = 2 is out of range [0, 2)"},
      {"UnsortedSegmentSum",
       {row, I32({0}), Tensor::Scalar<int64_t>(INT64_MAX)},
       {},
       "Encountered overflow when multiplying 9223372036854775807 with 3"},
      {"SparseSegmentSum", {m, I32({0, 1}), I32({0, -1})}, {}, "segment ids must be >= 0"},
      {"SparseSegmentSum", {m, far, far}, {}, "Encountered overflow when multiplying"},
      {"SparseSegmentSumWithNumSegments",
       {m, I32({0, 1}), I32({0, 10}), ten},
       {},
       "segment ids must be < num_segments"},
      {"SparseSegmentSumGrad",
       {m, I32({0, 1}), I32({0, 2}), ten},
       {},
       "Invalid number of segments"},
  };
}

std::vector<BadInput> BadArguments() {
  const Tensor m = Ones({2, 3}), none = Tensor::Vector<int32_t>({});
  const Tensor image = Ones({1, 2, 2, 3}), huge = I32({1879048192, 1879048192});
  const Tensor borders = Tensor::Vector<int64_t>({0, 1, 2}),
               before = Tensor::Vector<int64_t>({-1, 1, 2});
  return {
      {"ReverseSequence", {m, I32({1, 1})}, {{"seq_dim", 0}}, "batch_dim == seq_dim == 0"},
      {"ReverseSequence",
       {m, I32({1, 1})},
       {{"seq_dim", 5}},
       "seq_dim 5 and batch_dim 0 must be two different dimensions"},
      {"SplitV",
       {m, I32({1, 1}), none},
       {{"num_split", 2}},
       "split_dim must be a scalar, but has shape [0]: it must have exactly one element"},
      {"ImageProjectiveTransformV2",
       {image, Ones({1, 8}), huge},
       {{"interpolation", "NEAREST"}},
       "Encountered overflow when multiplying"},
      {"ResizeNearestNeighborGrad", {image, huge}, {}, "Encountered overflow when multiplying"},
      {"ResizeNearestNeighborGrad", {image, I32({1 << 25, 1})}, {}, "must be at most 2^24"},
      {"FractionalMaxPoolGrad",
       {image, image, image, borders, Tensor::Scalar<int64_t>(0)},
       {},
       "col_pooling_sequence must be a vector"},
      {"FractionalAvgPoolGrad",
       {Tensor::Vector<int64_t>({1, 2, 2, 3}), image, before, borders},
       {},
       "Row sequence tensor values must not be negative"},
      {"Eig", {Ones({2, 2})}, {{"Tout", DT_COMPLEX128}}, "Invalid output dtype complex128"},
      {"LoadAndRemapMatrix",
       {Tensor::Scalar("a"), Tensor::Scalar("b"), Tensor::Scalar<int64_t>(0),
        Tensor::Vector<int64_t>({0}), Ones({0})},
       {{"num_rows", 1}, {"num_cols", 1}},
       "The `row_remapping` tensor must be 1-D, got a tensor of shape []"},
      {"StagePeek", {none}, {{"dtypes", DataTypes{DT_FLOAT}}}, "index must be scalar"},
      {"MapPeek",
       {Tensor::Vector<int64_t>({1, 2}), none},
       {{"dtypes", DataTypes{DT_FLOAT}}},
       "key must be an int64 scalar"},
      {"MutableHashTableOfTensors",
       {},
       {{"key_dtype", DT_STRING}, {"value_dtype", DT_INT64}, {"value_shape", Shape({1, 2})}},
       "Default value must be a vector, got shape [1,2]"},
  };
}

class BadInputTest : public testing::TestWithParam<BadInput> {};

TEST_P(BadInputTest, IsAnInvalidArgumentWithAReason) {
  const BadInput& bad = GetParam();
  const size_t list = bad.list_first ? bad.inputs.size() - 1 : 0;
  const absl::Status status = RunFed(bad.op, bad.inputs, bad.attrs, list).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument)
      << bad.op << ": " << status.ToString();
  EXPECT_THAT(std::string(status.message()), HasSubstr(bad.message)) << bad.op;
}

std::string OpName(const testing::TestParamInfo<BadInput>& info) {
  return std::string(info.param.op) + "_" + std::to_string(info.index);
}
INSTANTIATE_TEST_SUITE_P(Shapes, BadInputTest, testing::ValuesIn(BadShapes()), OpName);
INSTANTIATE_TEST_SUITE_P(Joins, BadInputTest, testing::ValuesIn(BadJoins()), OpName);
INSTANTIATE_TEST_SUITE_P(Indices, BadInputTest, testing::ValuesIn(BadIndices()), OpName);
INSTANTIATE_TEST_SUITE_P(Segments, BadInputTest, testing::ValuesIn(BadSegments()), OpName);
INSTANTIATE_TEST_SUITE_P(Arguments, BadInputTest, testing::ValuesIn(BadArguments()), OpName);

}  // namespace

// ---- execution

TEST(Kernels, TypeWithoutAKernelIsAnInvalidArgument) {
  for (const DataType type : DataTypesOf(NarrowFloats())) {
    const absl::Status status = RunFed("Rint", {Tensor::Zeros(type, Shape({2}))}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("No OpKernel was registered to support Op 'Rint'"));
  }
}

// Errors that TensorFlow's shape functions do not detect, so that TensorFlow reports them at run
// time.
TEST(Kernels, KernelsRejectWhatShapeFunctionsAccept) {
  Graph g;
  const Output m = Const(g, Ones({2, 3})), one = Const(g, F32({1}));
  const Output at = Const(g, Tensor::Of<int64_t>({1, 1}, {0})),
               pair = Const(g, Tensor::Of<int64_t>({1, 2}, {0, 0}));
  const Output shape = Const(g, Tensor::Vector<int64_t>({2})),
               sides = Const(g, Tensor::Vector<int64_t>({2, 3}));
  const std::pair<Output, const char*> rows[] = {
      {AddOp("SegmentSum", {m, Const(g, I32({0}))}), "segment_ids should be the same size"},
      {AddOp("SparseReduceSum", {pair, one, sides, Const(g, -3)}),
       "Invalid reduction dimension -3"},
      {Output(AddNode("SparseSparseMaximum", {at, one, shape, pair, one, sides}), 0),
       "Operands do not have the same ranks"},
      {Output(AddNode("SparseSparseMaximum", {at, one, shape, pair, one, shape}), 0),
       "Index rank (2) and shape rank (1) do not match"},
  };
  ASSERT_TRUE(g.status().ok()) << g.status();
  for (const auto& [y, message] : rows)
    EXPECT_THAT(std::string(Evaluate(g, {y}).status().message()), HasSubstr(message));
}

TEST(Array, AScalarPlaceholderOfAnOldGraphMayHaveAnyShape) {
  for (const int producer : {21, 22}) {
    proto::GraphDef def;
    def.mutable_versions()->set_producer(producer);
    proto::NodeDef& x = *def.add_node();
    x.set_name("x");
    x.set_op("Placeholder");
    (*x.mutable_attr())["dtype"].set_type(proto::DT_FLOAT);
    (*x.mutable_attr())["shape"].mutable_shape();
    Graph g;
    ASSERT_TRUE(ImportGraphDef(g, def).ok());
    EXPECT_EQ(g.nodes()[0]->output_shape(0).has_rank(), producer == 22);
  }
}

TEST(Array, AnUnfedPlaceholderIsNamed) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {-1, 3}, "image");
  const absl::Status status = Evaluate(g, {x}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(status.message()),
      HasSubstr(
          "You must feed a value for placeholder tensor 'image' with dtype float and shape [?,3]"));
}

TEST(Array, CheckNumericsReportsTheKindOfFault) {
  const float inf = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(
      std::string(
          RunFed("CheckNumerics", {F32({1, nan})}, {{"message", "loss"}}).status().message()),
      HasSubstr("loss : Tensor had NaN values"));
  EXPECT_THAT(
      std::string(
          RunFed("CheckNumericsV2", {F32({-inf, nan})}, {{"message", "loss"}}).status().message()),
      HasSubstr("loss : Tensor had -Inf and NaN values"));
}

// As in TensorFlow, an empty batch retains its other dimensions.
TEST(Array, ReshapeInfersADimensionOfAnEmptyTensor) {
  const auto shape = [](const Shape& from, std::vector<int32_t> to) {
    Graph g;
    const Output x = Placeholder(g, DT_FLOAT, from), sizes = Placeholder(g, DT_INT32, {-1});
    const Tensor dims = Tensor::Vector<int32_t>(to);
    const auto got = Evaluate(g, {{x, Ones(from)}, {sizes, dims}}, {Reshape(x, sizes)});
    return got.ok() ? (*got)[0].shape().ToString() : std::string(got.status().message());
  };
  EXPECT_EQ(shape({0}, {-1, 0}), "[1,0]");
  EXPECT_EQ(shape({0, 6}, {0, -1, 3}), "[0,2,3]");
  EXPECT_EQ(shape({0, 6}, {0, -1, 4}), "[0,1,4]");
  EXPECT_EQ(shape({0, 4}, {-1, 2}), "[0,2]");
  EXPECT_EQ(shape({0, 6}, {0, -1}), "[0,6]");
}

TEST(Array, ReshapesAndRowSlicesShareTheFedMemory) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {32, 16});
  const Outputs parts = Split(x, 2);
  const Tensor fed = Ones({32, 16});
  const Outputs fetches = {Reshape(x, {-1}), ExpandDims(x, 0), StopGradient(x),
                           Slice(x, {16, 0}, {8, -1}), parts[1]};
  const absl::StatusOr<Tensors> got = Evaluate(g, {{x, fed}}, fetches);
  ASSERT_TRUE(got.ok()) << got.status();
  for (const Tensor& t : *got) EXPECT_TRUE(t.SharesBufferWith(fed));
  EXPECT_EQ((*got)[4].raw(), fed.data<float>() + 16 * 16);
}

TEST(Array, AnUnalignedSliceIsCopied) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {8});
  const Tensor fed = Ones({8});
  const absl::StatusOr<Tensors> got = Evaluate(g, {{x, fed}}, {Slice(x, {1}, {3})});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_FALSE((*got)[0].SharesBufferWith(fed));
  EXPECT_EQ(reinterpret_cast<uintptr_t>((*got)[0].raw()) % Allocator::kAlignment, 0);
}

TEST(Array, SliceAssignmentsWriteTheVariableAndLeaveEarlierReadsAlone) {
  Graph g;
  ResourceMap resources;
  const Output v = VarHandleOp(g, DT_FLOAT, {4});
  const Operation init = AssignVariableOp(v, Const(g, {1.f, 2.f, 3.f, 4.f}));
  const Output zero = Const(g, {1}), end = Const(g, {3}), one = Const(g, {1});
  const Node* assign = AddNode("ResourceStridedSliceAssign", {v, zero, end, one, Const(g, 9.f)});
  const Output read = ReadVariableOp(v, DT_FLOAT);
  ASSERT_TRUE(g.status().ok()) << g.status();
  ASSERT_TRUE(EvaluateTargets(g, {init}, &resources).ok());
  const absl::StatusOr<Tensors> before = Evaluate(g, {read}, &resources);
  ASSERT_TRUE(before.ok()) << before.status();
  const absl::Status assigned =
      EvaluateTargets(g, {Operation(const_cast<Node*>(assign))}, &resources);
  ASSERT_TRUE(assigned.ok()) << assigned;
  const absl::StatusOr<Tensors> after = Evaluate(g, {read}, &resources);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_THAT((*before)[0].flat<float>(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT((*after)[0].flat<float>(), ElementsAre(1, 9, 9, 4));
}

TEST(Array, ASliceOfAReferenceVariableIsAssigned) {
  Graph g;
  ResourceMap resources;
  const Output ref = VariableV2(g, DT_FLOAT, {2, 2});
  const Output init = AddOp("Assign", {ref, Const<float>(g, {2, 2}, {1, 2, 3, 4})});
  const Output begin = Const(g, {0, 1}), end = Const(g, {0, 2}), one = Const(g, {1, 1});
  const Output assigned = AddOp("StridedSliceAssign", {ref, begin, end, one, Const(g, {8.f, 9.f})},
                                {{"begin_mask", 1}, {"end_mask", 1}, {"shrink_axis_mask", 2}});
  ASSERT_TRUE(g.status().ok()) << g.status();
  EXPECT_TRUE(assigned.is_ref());
  ASSERT_TRUE(EvaluateTargets(g, {init}, &resources).ok());
  const absl::StatusOr<Tensors> got = Evaluate(g, {Identity(assigned)}, &resources);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_THAT((*got)[0].flat<float>(), ElementsAre(1, 8, 3, 9));
}

TEST(Array, AMinusZeroEqualsZeroAndANanEqualsNothing) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Graph g;
  const absl::StatusOr<Tensors> got = Evaluate(g, {Unique(Const(g, {0.f, -0.f, nan, nan})).idx});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_THAT((*got)[0].flat<int32_t>(), ElementsAre(0, 0, 1, 2));
}

// As in TensorFlow, for indices that occur twice.
TEST(Array, StringsScatteredToTheSameIndexAreConcatenated) {
  Graph g;
  const Output out =
      AddOp("ScatterNd",
            {Const(g, Tensor::Of<int32_t>({4, 1}, {4, 3, 3, 7})),
             Const(g, Tensor::Vector<std::string>({"a", "b", "c", "d"})), Const(g, I32({8}))});
  const auto values = Evaluate(g, {out});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT((*values)[0].flat<std::string>(), ElementsAre("", "", "", "bc", "a", "", "", "d"));
}

TEST(Array, QuantizedNumbersAreCastAsIntegers) {
  Graph g;
  const Output x = Const(g, I32({-3, 100}));
  for (const DataType type : DataTypesOf(QuantizedNumbers())) {
    const Output back = Cast(Cast(x, type), DT_FLOAT);
    const auto values = Evaluate(g, {back});
    ASSERT_TRUE(values.ok()) << values.status();
    const bool is_signed = type != DT_QUINT8 && type != DT_QUINT16;
    const float first = is_signed ? -3 : type == DT_QUINT8 ? 253 : 65533;
    EXPECT_THAT((*values)[0].flat<float>(), ElementsAre(first, 100)) << DataTypeName(type);
  }
}

// A diagonal beyond the corner of the matrix has no elements, only padding among those given.
TEST(Array, MatrixDiagAcceptsDiagonalsOutsideTheMatrix) {
  Graph g;
  const Output scalar = Const(g, 3);
  const Output out = AddOp("MatrixDiagV3",
                           {Const(g, Tensor::Of<float>({4, 3}, {9, 9, 9,  //
                                                                5, 9, 9,  //
                                                                3, 4, 9,  //
                                                                1, 2, 6})),
                            Const(g, I32({0, 3})), scalar, scalar, Const(g, 0.f)},
                           {{"align", "LEFT_LEFT"}});
  const auto values = Evaluate(g, {out});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT((*values)[0].flat<float>(), ElementsAre(1, 3, 5, 0, 2, 4, 0, 0, 6));
}

TEST(Array, MatMulOperandsMayBeNarrowerThanTheResult) {
  Graph g;
  const Output x = Const(g, Tensor::Of<int8_t>({1, 2, 2}, {100, 100, -1, 2}));
  const Output y = Cast(Const(g, Tensor::Of<float>({1, 2, 1}, {3, 0.5f})), DT_BFLOAT16);
  const Output narrow = AddOp("BatchMatMulV3", {x, x}, {{"Tout", DT_INT32}});
  const Output mixed = AddOp("BatchMatMulV3", {x, y}, {{"Tout", DT_BFLOAT16}});
  const auto values = Evaluate(g, {narrow, Cast(mixed, DT_FLOAT)});
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT((*values)[0].flat<int32_t>(), ElementsAre(9900, 10200, -102, -96));
  EXPECT_THAT((*values)[1].flat<float>(), ElementsAre(350, -2));
}

TEST(Array, UniqueAlongAnAxisComparesWholeSlices) {
  Graph g;
  const Output x = Const<int32_t>(g, {2, 4}, {1, 2, 1, 2, 3, 4, 3, 5}),
               axis = Const<int64_t>(g, {1});
  Node* n = AddNode("UniqueWithCountsV2", {x, axis});
  ASSERT_NE(n, nullptr) << g.status();
  const absl::StatusOr<Tensors> got = Evaluate(g, {n->output(0), n->output(1), n->output(2)});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_THAT((*got)[0].flat<int32_t>(), ElementsAre(1, 2, 2, 3, 4, 5));
  EXPECT_THAT((*got)[1].flat<int32_t>(), ElementsAre(0, 1, 0, 2));
  EXPECT_THAT((*got)[2].flat<int32_t>(), ElementsAre(2, 1, 1));
}

// Ops that are only allowed in graphs of older versions.
TEST(Array, DeprecatedOpsRunInOldGraphs) {
  Graph g;
  g.versions().producer = 2;
  const Output x = Const<float>(g, {2, 2}, {4, 1, 2, 3});
  const Output sum = AddOp("TileGrad", {x, Const(g, {1, 2})});
  Node* top = AddNode("TopK", {x}, {{"k", 1}});
  ASSERT_TRUE(g.status().ok()) << g.status();
  const absl::StatusOr<Tensors> got = Evaluate(g, {sum, top->output(0), top->output(1)});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_THAT((*got)[0].flat<float>(), ElementsAre(5, 5));
  EXPECT_THAT((*got)[1].flat<float>(), ElementsAre(4, 3));
  EXPECT_THAT((*got)[2].flat<int32_t>(), ElementsAre(0, 1));
}

// ---- graph construction

TEST(ArrayBuilders, NameTheirNodesAsPythonDoes) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {-1, 3}, "x");
  StridedSlice(x, {0});
  Zeros(g, {2, 3});
  Zeros(g, {2000, 3}, DT_FLOAT, "q");
  ZerosLike(x);
  OnesLike(x);
  Concat({x, x}, 1);
  Gather(x, {0, 1});
  Transpose(x);
  ShapeTensor(Const(g, {1.f, 2.f}));
  EXPECT_TRUE(g.status().ok()) << g.status();
  EXPECT_THAT(
      NamesOf(g),
      ElementsAre("Placeholder x", "Const strided_slice/stack", "Const strided_slice/stack_1",
                  "Const strided_slice/stack_2", "StridedSlice strided_slice", "Const zeros",
                  "Const q/shape_as_tensor", "Const q/Const", "Fill q", "ZerosLike zeros_like",
                  "Shape ones_like/Shape", "Const ones_like/Const", "Fill ones_like",
                  "Const concat/axis", "ConcatV2 concat", "Const GatherV2/indices",
                  "Const GatherV2/axis", "GatherV2 GatherV2", "Const transpose/perm",
                  "Transpose transpose", "Const Const", "Const Shape"));
}

TEST(ArrayBuilders, IndexingWithTensorsPacksThem) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {4, 5}, "x"), i = Placeholder(g, DT_INT32, {}, "i");
  const Output y = StridedSlice(x, {i, Index::Range(1, std::nullopt, 2)});
  ASSERT_TRUE(g.status().ok()) << g.status();
  EXPECT_EQ(y.shape().ToString(), "[?]");
  EXPECT_NE(g.FindNode("strided_slice/stack/1"), nullptr);
  EXPECT_EQ(g.FindNode("strided_slice/stack")->op_name(), "Pack");
  EXPECT_EQ(g.FindNode("strided_slice/stack_2")->op_name(), "Const");
  Tensor fed = Tensor::Zeros(DT_FLOAT, {4, 5});
  for (int k = 0; k < 20; ++k) fed.data<float>()[k] = static_cast<float>(k);
  const absl::StatusOr<Tensors> got =
      Evaluate(g, {{x, fed}, {i, Tensor::Scalar<int32_t>(-2)}}, {y});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_THAT((*got)[0].flat<float>(), ElementsAre(11, 13));
}

TEST(ArrayBuilders, ConstantsTakeTheTypeOfTheOtherOperand) {
  Graph g;
  const Output half_x = Placeholder(g, DT_HALF, {}), int_x = Placeholder(g, DT_INT64, {});
  EXPECT_EQ(ConstLike(half_x, 0.5).dtype(), DT_HALF);
  EXPECT_EQ(ConstLike(int_x, 3).node->attr<Tensor>("value").scalar<int64_t>(), 3);
  EXPECT_EQ(Ints(int64_t{1} << 40).In(g, "big").dtype(), DT_INT64);
  EXPECT_EQ(Ints({1, 2}).In(g, "small").dtype(), DT_INT32);
  EXPECT_FALSE(ConstOf(g, DT_STRING, 1).valid());
  EXPECT_FALSE(g.TakeStatus().ok());
}

TEST(ArrayShapes, FollowFromConstants) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {-1, 6}), any = Placeholder(g, DT_FLOAT),
               n = Placeholder(g, DT_INT32, {});
  EXPECT_EQ(Reshape(x, {-1, 2, 3}).shape().ToString(), "[?,2,3]");
  EXPECT_EQ(Reshape(Placeholder(g, DT_FLOAT, {4, 6}), {8, -1}).shape().ToString(), "[8,3]");
  EXPECT_EQ(
      StridedSlice(x, {Index::All(), Index::Range(1, 5, 2), Index::NewAxis()}).shape().ToString(),
      "[?,2,1]");
  EXPECT_EQ(StridedSlice(x, {Index::Between({}, n), 0}).shape().ToString(), "[?]");
  EXPECT_EQ(Slice(x, {0, 2}, {-1, 3}).shape().ToString(), "[?,3]");
  EXPECT_EQ(Concat({x, x}, -1).shape().ToString(), "[?,12]");
  EXPECT_EQ(Concat({x, x}, n).shape().ToString(), "[?,?]");
  EXPECT_EQ(Transpose(x).shape().ToString(), "[6,?]");
  EXPECT_EQ(Transpose(x, Placeholder(g, DT_INT32, {2})).shape().ToString(), "[?,?]");
  EXPECT_EQ(Pad(x, {{0, 1}, {2, 2}}).shape().ToString(), "[?,10]");
  EXPECT_EQ(Tile(x, {2, 2}).shape().ToString(), "[?,12]");
  EXPECT_EQ(Gather(x, {1, 2, 3}, {.axis = 1}).shape().ToString(), "[?,3]");
  EXPECT_EQ(OneHot(Placeholder(g, DT_INT32, {-1}), 10).shape().ToString(), "[?,10]");
  EXPECT_EQ(Unstack(x, 1).size(), 6u);
  EXPECT_EQ(Stack({x, x}, 1).shape().ToString(), "[?,2,6]");
  EXPECT_EQ(Squeeze(Placeholder(g, DT_FLOAT, {1, -1, 1}), {0}).shape().ToString(), "[?,1]");
  EXPECT_EQ(Where(x).shape().ToString(), "[?,2]");
  EXPECT_EQ(TopK(x, 2).values.shape().ToString(), "[?,2]");
  EXPECT_EQ(EnsureShape(any, {2, -1}).shape().ToString(), "[2,?]");
  EXPECT_FALSE(Fill(n, Const(g, 0.f)).valid());
  EXPECT_FALSE(g.TakeStatus().ok());
  EXPECT_EQ(Fill(Placeholder(g, DT_INT32, {2}), Const(g, 0.f)).shape().ToString(), "[?,?]");
  EXPECT_TRUE(g.status().ok()) << g.status();
}

TEST(ArrayShapes, RejectInvalidArguments) {
  const std::vector<std::function<Output(Graph&, Output)>> mistakes = {
      [](Graph& g, Output x) { return Reshape(x, {5}); },
      [](Graph& g, Output x) { return StridedSlice(x, {7}); },
      [](Graph& g, Output x) {
        return Concat({x, Placeholder(g, DT_FLOAT, {2, 2})}, 0);
      },
      [](Graph& g, Output x) {
        return Transpose(x, {0, 0});
      },
      [](Graph& g, Output x) { return Squeeze(x, {0}); },
      [](Graph& g, Output x) { return Gather(x, {0}, {.axis = 2}); },
      [](Graph& g, Output x) { return Split(x, 2, 1)[0]; },
      [](Graph& g, Output x) { return TopK(x, 4).values; },
      [](Graph& g, Output x) {
        return Pad(x, {{1, 1}});
      },
  };
  for (size_t i = 0; i < mistakes.size(); ++i) {
    Graph g;
    EXPECT_FALSE(mistakes[i](g, Placeholder(g, DT_FLOAT, {2, 3})).valid()) << "mistake " << i;
    EXPECT_EQ(g.status().code(), absl::StatusCode::kInvalidArgument)
        << "mistake " << i << ": " << g.status();
  }
}

// ---- gradients

TEST(ArrayGradients, OfAGatherAreIndexedSlices) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {-1, 3}), i = Placeholder(g, DT_INT32, {-1});
  const Grads grads = Gradients({Gather(x, i)}, Outputs{x});
  ASSERT_TRUE(g.status().ok()) << g.status();
  ASSERT_TRUE(grads[0].is_slices());
  EXPECT_EQ(grads[0].slices().values.node->name(), "gradients/GatherV2_grad/Reshape");
  EXPECT_EQ(grads[0].slices().indices.node->name(), "gradients/GatherV2_grad/Reshape_1");
}

TEST(ArrayGradients, OfIndexedSlicesThroughAConcatAreIndexedSlices) {
  Graph g;
  const Output a = Placeholder(g, DT_FLOAT, {2, 2}, "a"), b = Placeholder(g, DT_FLOAT, {3, 2}, "b");
  const Output y = Gather(Concat({a, b}, 0), {4, 0, 1, 4});
  const Grads grads = Gradients({y}, Outputs{a, b});
  ASSERT_TRUE(g.status().ok()) << g.status();
  ASSERT_TRUE(grads[0].is_slices());
  ASSERT_TRUE(grads[1].is_slices());
  const Outputs fetches = {grads[0].slices().indices, grads[1].slices().indices,
                           DenseGradient(grads[1])};
  const absl::StatusOr<Tensors> got = Evaluate(g, {{a, Ones({2, 2})}, {b, Ones({3, 2})}}, fetches);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_THAT((*got)[0].flat<int32_t>(), ElementsAre(0, 1));
  EXPECT_THAT((*got)[1].flat<int32_t>(), ElementsAre(2, 2));
  EXPECT_THAT((*got)[2].flat<float>(), ElementsAre(0, 0, 0, 0, 2, 2));
}

TEST(ArrayGradients, OfIndexedSlicesThroughAConcatOfColumnsAreIndexedSlices) {
  Graph g;
  const Output a = Placeholder(g, DT_FLOAT, {3, 2}, "a"), b = Placeholder(g, DT_FLOAT, {3, 1}, "b");
  const Output y = Gather(Concat({a, b}, 1), {2, 0, 2});
  const Grads grads = Gradients({y}, Outputs{a, b});
  ASSERT_TRUE(g.status().ok()) << g.status();
  ASSERT_TRUE(grads[1].is_slices());
  const absl::StatusOr<Tensors> got = Evaluate(g, {{a, Ones({3, 2})}, {b, Ones({3, 1})}},
                                               {DenseGradient(grads[0]), DenseGradient(grads[1])});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_THAT((*got)[0].flat<float>(), ElementsAre(1, 1, 0, 0, 2, 2));
  EXPECT_THAT((*got)[1].flat<float>(), ElementsAre(1, 0, 2));
}

TEST(ArrayGradients, StopAtStopGradientAndFailAtPreventGradient) {
  Graph g;
  const Output x = Placeholder(g, DT_FLOAT, {2});
  EXPECT_FALSE(DenseGradients({StopGradient(x)}, Outputs{x})[0].valid());
  EXPECT_TRUE(g.status().ok()) << g.status();
  DenseGradients({PreventGradient(x, "not twice")}, Outputs{x});
  EXPECT_THAT(std::string(g.status().message()), HasSubstr("not twice"));
}

}  // namespace weir
