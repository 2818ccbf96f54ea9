#include "weir/ops/sparse/sparse_count.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/lib/array.h"
#include "weir/tests/evaluate.h"
#include "weir/tests/kernels/lib/answers.h"
#include "weir/tests/kernels/lib/recorded.h"

// Counts as sparse tensors, compared with TensorFlow's.
namespace weir {
namespace {

TEST(Count, MatchesTensorFlow) {
  ExpectAnswers("tests/kernels/golden/count_answers.txt", 60, 1e-6);
}

TEST(Count, RejectsWhatDoesNotMatch) {
  const Tensor numbers = Tensor::Vector<int64_t>({1, 2, 3});
  const Tensor none = Tensor::Zeros(DT_FLOAT, Shape({0}));
  const Tensor two = Tensor::Vector<float>({1, 2});
  const Tensor at = Tensor::Of<int64_t>({3, 1}, {0, 1, 2}), outside = Tensor::Vector<int64_t>({2});
  const Attrs counts = {{"binary_output", false}};
  recorded::ExpectRejections({
      {"DenseCountSparseOutput", {numbers, two}, counts, "must have the same shape"},
      {"DenseCountSparseOutput", {Tensor::Scalar<int64_t>(1), none}, counts, "1 or 2-dimensional"},
      {"DenseCountSparseOutput",
       {Tensor::Zeros(DT_INT64, Shape({0, 2})), none},
       counts,
       "dimension cannot be 0"},
      {"SparseCountSparseOutput", {at, numbers, outside, none}, counts, "Invalid index value at 2"},
      {"SparseCountSparseOutput",
       {at, numbers, Tensor::Vector<int64_t>({3}), two},
       counts,
       "must have the same shape"},
      {"RaggedCountSparseOutput",
       {Tensor::Vector<int64_t>({0}), numbers, none},
       counts,
       "at least 2 elements"},
      {"RaggedCountSparseOutput",
       {Tensor::Vector<int64_t>({1, 3}), numbers, none},
       counts,
       "Splits must start with 0, not with 1"},
      {"RaggedCountSparseOutput",
       {Tensor::Vector<int64_t>({0, 2}), numbers, none},
       counts,
       "Splits must end with the number of values"},
      {"RaggedCountSparseOutput",
       {Tensor::Vector<int64_t>({0, 9, 3}), numbers, none},
       counts,
       "Splits must not decrease"},
  });
}

// The limits are not those of 32 bits.
TEST(Count, LengthsMayBeLarge) {
  Graph g;
  const int64_t large = int64_t{1} << 40;
  const Output numbers = Const(g, Tensor::Vector<int64_t>({large - 1, large, 3}));
  const SparseTensor counts =
      DenseCountSparseOutput(numbers, Const(g, Tensor::Zeros(DT_INT32, {0})), {.maxlength = large});
  const auto out = Evaluate(g, {counts.indices, counts.dense_shape});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT((*out)[0].flat<int64_t>(), testing::ElementsAre(3, large - 1));
  EXPECT_THAT((*out)[1].flat<int64_t>(), testing::ElementsAre(large));
}

// The extents of a sparse tensor cost nothing.
TEST(Count, AHugeSparseTensorNeedsLittleMemory) {
  Graph g;
  const SparseTensor x = {Const(g, Tensor::Of<int64_t>({1, 2}, {2000000000, 7})),
                          Const(g, Tensor::Vector<int64_t>({4})),
                          Const(g, Tensor::Vector<int64_t>({2000000001, 8}))};
  const SparseTensor counts = SparseCountSparseOutput(x, Const(g, Tensor::Zeros(DT_INT32, {0})));
  const auto out = Evaluate(g, {counts.indices, counts.values, counts.dense_shape});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT((*out)[0].flat<int64_t>(), testing::ElementsAre(2000000000, 4));
  EXPECT_THAT((*out)[1].flat<int32_t>(), testing::ElementsAre(1));
  EXPECT_THAT((*out)[2].flat<int64_t>(), testing::ElementsAre(2000000001, 5));
}

// ---- RaggedCross

struct RaggedCrossCall {
  std::string order = "RDS";
  bool hashed = false;
  Tensor splits = Tensor::Vector<int32_t>({0, 2, 3});
  Tensor matrix = Tensor::Of<std::string>({2, 2}, {"x", "y", "z", "w"});
};

absl::StatusOr<Tensors> RunCross(const RaggedCrossCall& call) {
  Graph g;
  NodeBuilder builder(g, "RaggedCross");
  builder.InputList({Const(g, Tensor::Vector<int64_t>({10, 20, 30}))})
      .InputList({Const(g, call.splits)})
      .InputList({Const(g, Tensor::Of<int64_t>({3, 2}, {0, 0, 1, 0, 1, 1}))})
      .InputList({Const(g, Tensor::Vector<std::string>({"a", "b", "c"}))})
      .InputList({Const(g, Tensor::Vector<int64_t>({2, 2}))})
      .InputList({Const(g, call.matrix)});
  builder.Attr("input_order", call.order)
      .Attr("hashed_output", call.hashed)
      .Attr("num_buckets", 100)
      .Attr("hash_key", int64_t{956888297470})
      .Attr("out_values_type", call.hashed ? DT_INT64 : DT_STRING)
      .Attr("out_row_splits_type", DT_INT32);
  Node* const node = builder.Build();
  if (node == nullptr) return g.status();
  return Evaluate(g, {node->output(0), node->output(1)});
}

TEST(RaggedCross, JoinsTheFeaturesOfEachExample) {
  const auto out = RunCross({});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT((*out)[0].flat<std::string>(),
              testing::ElementsAre("10_X_x_X_a", "10_X_y_X_a", "20_X_x_X_a", "20_X_y_X_a",
                                   "30_X_z_X_b", "30_X_z_X_c", "30_X_w_X_b", "30_X_w_X_c"));
  EXPECT_THAT((*out)[1].flat<int32_t>(), testing::ElementsAre(0, 4, 8));
}

// TensorFlow 2.21's buckets.
TEST(RaggedCross, HashesTheFeaturesOfEachExample) {
  const auto out = RunCross({.order = "SRD", .hashed = true});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_THAT((*out)[0].flat<int64_t>(), testing::ElementsAre(21, 50, 33, 39, 33, 38, 39, 37));
}

TEST(RaggedCross, RejectsInputsThatDoNotMatch) {
  const auto words = [](const RaggedCrossCall& call) {
    return std::string(RunCross(call).status().message());
  };
  EXPECT_THAT(words({.order = "RD"}), testing::HasSubstr("Invalid length for input_order"));
  EXPECT_THAT(words({.order = "RRS"}), testing::HasSubstr("Unexpected input_order value"));
  EXPECT_THAT(words({.splits = Tensor::Vector<int32_t>({0, 3})}),
              testing::HasSubstr("same batch dimension size"));
  EXPECT_THAT(words({.splits = Tensor::Vector<int32_t>({0, 3, 2})}),
              testing::HasSubstr("monotonically increasing"));
  EXPECT_THAT(words({.matrix = Tensor::Vector<std::string>({"x", "y"})}),
              testing::HasSubstr("only supports inputs with rank=2"));
}

}  // namespace
}  // namespace weir
