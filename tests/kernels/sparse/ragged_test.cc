#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/tensor/variant.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/sparse/ragged.h"
#include "weir/tests/evaluate.h"
#include "weir/tests/kernels/lib/vectors.h"

// Gradients checked to order 1 by tests: RaggedTensorFromVariant, RaggedTensorToVariant.

// Ragged tensors in variants, and rejected arguments.
namespace weir {

namespace {

using pick::F32;
using pick::I64;
using testing::ElementsAre;
using testing::HasSubstr;

Output ToVariant(const RaggedTensor& x, bool batched) {
  return AddOp("RaggedTensorToVariant", {x.nested_splits, x.values}, {{"batched_input", batched}});
}
RaggedTensor FromVariant(Output encoded, int64_t inner, int64_t outer) {
  Node* const node = AddNode("RaggedTensorFromVariant", {encoded},
                             {{"input_ragged_rank", inner},
                              {"output_ragged_rank", outer},
                              {"Tvalues", DT_FLOAT},
                              {"Tsplits", DT_INT64}});
  if (node == nullptr) return {};
  RaggedTensor x;
  for (int k = 0; k < outer; ++k) x.nested_splits.push_back(node->output(k));
  x.values = node->output(static_cast<int>(outer));
  return x;
}

RaggedTensor TwoLevels(Graph& g) {
  return {{Const(g, I64({0, 1, 3})), Const(g, I64({0, 2, 2, 5}))}, Const(g, F32({1, 2, 3, 4, 5}))};
}

// Splits and values.
Tensors RunRagged(const Graph& g, const RaggedTensor& x) {
  EXPECT_TRUE(g.status().ok()) << g.status();
  Outputs fetches = x.nested_splits;
  fetches.push_back(x.values);
  const absl::StatusOr<Tensors> got = Evaluate(g, fetches);
  EXPECT_TRUE(got.ok()) << got.status();
  return got.ok() ? *got : Tensors(fetches.size());
}

void ExpectTwoLevels(const Tensors& got) {
  EXPECT_TRUE(IdenticalTensors(got[0], I64({0, 1, 3})));
  EXPECT_TRUE(IdenticalTensors(got[1], I64({0, 2, 2, 5})));
  EXPECT_TRUE(IdenticalTensors(got[2], F32({1, 2, 3, 4, 5})));
}

TEST(RaggedVariant, RoundTripsWholeAndRowByRow) {
  Graph g;
  const RaggedTensor x = TwoLevels(g);
  ExpectTwoLevels(RunRagged(g, FromVariant(ToVariant(x, false), 2, 2)));
  const Output rows = ToVariant(x, true);
  EXPECT_EQ(rows.shape().ToString(), "[2]");
  ExpectTwoLevels(RunRagged(g, FromVariant(rows, 1, 2)));
  ExpectTwoLevels(RunRagged(g, FromVariant(rows, -1, 2)));
}

TEST(RaggedVariant, DimensionsOfTheVariantBecomeRagged) {
  Graph g;
  const RaggedTensor x = {{Const(g, I64({0, 2, 2, 5}))}, Const(g, F32({1, 2, 3, 4, 5}))};
  const Output one = ToVariant(x, false);
  const Tensors got = RunRagged(g, FromVariant(Reshape(Stack({one, one}), {2, 1}), 1, 3));
  EXPECT_THAT(got[0].flat<int64_t>(), ElementsAre(0, 1, 2));
  EXPECT_THAT(got[1].flat<int64_t>(), ElementsAre(0, 3, 6));
  EXPECT_THAT(got[2].flat<int64_t>(), ElementsAre(0, 2, 2, 5, 7, 7, 10));
  EXPECT_THAT(got[3].flat<float>(), ElementsAre(1, 2, 3, 4, 5, 1, 2, 3, 4, 5));
}

TEST(RaggedVariant, DenseAndEmptyTensors) {
  Graph g;
  const RaggedTensor x = {{}, Const(g, Tensor::Of<float>({2, 2}, {1, 2, 3, 4}))};
  Tensors got = RunRagged(g, FromVariant(ToVariant(x, true), 0, 1));
  EXPECT_THAT(got[0].flat<int64_t>(), ElementsAre(0, 2, 4));
  EXPECT_THAT(got[1].flat<float>(), ElementsAre(1, 2, 3, 4));
  const RaggedTensor none = {{Const(g, I64({0}))}, Const(g, F32({}))};
  got = RunRagged(g, FromVariant(ToVariant(none, true), 0, 1));
  EXPECT_THAT(got[0].flat<int64_t>(), ElementsAre(0));
  EXPECT_EQ(got[1].num_elements(), 0);
}

TEST(RaggedVariant, PassesGradients) {
  for (const bool batched : {false, true}) {
    Graph g;
    const RaggedTensor x = TwoLevels(g);
    const RaggedTensor back = FromVariant(ToVariant(x, batched), batched ? 1 : 2, 2);
    const Outputs grads = DenseGradients({Square(back.values)}, {x.values});
    ASSERT_TRUE(g.status().ok()) << g.status();
    const absl::StatusOr<Tensors> got = Evaluate(g, grads);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_THAT((*got)[0].flat<float>(), ElementsAre(2, 4, 6, 8, 10));
  }
}

TEST(Ragged, RejectsInvalidSplits) {
  const Tensor five = F32({1, 2, 3, 4, 5}), all = Tensor::Scalar<int64_t>(-1);
  const Tensor zero = Tensor::Scalar(0.f), first = I64({0}), ids = I64({0, 0, 5});
  const std::vector<std::string> splits = {"ROW_SPLITS"};
  const std::vector<std::string> rowids = {"FIRST_DIM_SIZE", "VALUE_ROWIDS"};
  const auto to_tensor = [&](Tensors partitions, const std::vector<std::string>& types,
                             const Tensor& values, const Tensor& default_value) {
    Graph g;
    Outputs in;
    for (const Tensor& t : partitions) in.push_back(Const(g, t));
    const Output out = AddOp("RaggedTensorToTensor",
                             {Const(g, all), Const(g, values), Const(g, default_value), in},
                             {{"row_partition_types", types}});
    if (!g.status().ok()) return g.status();
    return Evaluate(g, {out}).status();
  };
  const Tensor two = Tensor::Scalar<int64_t>(2);
  const struct {
    absl::Status status;
    const char* message;
  } rows[] = {
      {to_tensor({I64({0, 3, 1})}, splits, five, zero), "Invalid row split size"},
      {to_tensor({I64({1, 5})}, splits, five, zero), "Invalid row split size"},
      {to_tensor({I64({0, 3, 9})}, splits, five, zero), "rows of values"},
      {to_tensor({I64({0, int64_t{1} << 60})}, splits, five, zero), ""},
      {to_tensor({I64({})}, splits, five, zero), "at least one element"},
      {to_tensor({two, ids}, rowids, five, zero), "which is not less than 2"},
      {to_tensor({two, I64({-1, 0})}, rowids, five, zero), "which is not less than 2"},
      {to_tensor({I64({0, 0})}, {"VALUE_ROWIDS"}, five, zero), "Cannot handle VALUE_ROWIDS"},
      {to_tensor({I64({0, 5})}, {"SOMETHING"}, five, zero), "Unknown string"},
      {to_tensor({I64({0, 5})}, splits, five, F32({1})), "must be less than"},
      {RunFed("RaggedGather", {I64({0, 2, 9}), five, first}, {{"OUTPUT_RAGGED_RANK", int64_t{1}}},
              1)
           .status(),
       "must not point past values"},
      {RunFed("RaggedGather", {I64({0, 4, 2}), five, first}, {{"OUTPUT_RAGGED_RANK", int64_t{1}}},
              1)
           .status(),
       "must be sorted"},
      {RunFed("RaggedGather", {I64({0, 2}), five, I64({1})}, {{"OUTPUT_RAGGED_RANK", int64_t{1}}},
              1)
           .status(),
       "is not in [0, 1)"},
      {RunFed("RaggedRange", {I64({0}), I64({5}), I64({0})}).status(), "Requires delta != 0"},
      {RunFed("RaggedRange", {I64({0, 1}), I64({5, 6, 7}), I64({1})}).status(),
       "must have the same shape"},
      {RunFed("RaggedRange", {F32({0}), F32({INFINITY}), F32({1})}).status(),
       "Requires ((limit - start) / delta)"},
      {RunFed("RaggedTensorToVariant", {I64({0, 9}), five}, {{"batched_input", true}}, 1).status(),
       "must be the number of ragged values"},
      {RunFed("RaggedTensorToVariant", {I64({0, 4, 2}), five}, {{"batched_input", true}}, 1)
           .status(),
       "monotonically increasing"},
  };
  for (const auto& row : rows) {
    const bool too_large =
        row.message[0] == 0 && row.status.code() == absl::StatusCode::kResourceExhausted;
    EXPECT_TRUE(row.status.code() == absl::StatusCode::kInvalidArgument || too_large)
        << row.message << ": " << row.status;
    EXPECT_THAT(std::string(row.status.message()), HasSubstr(row.message));
  }
}

TEST(RaggedVariant, RejectsOtherVariants) {
  const Tensor other =
      Tensor::Scalar(Variant{.type_name = "Something", .metadata = "", .value = {}});
  const Attrs attrs = {{"input_ragged_rank", int64_t{0}},
                       {"output_ragged_rank", int64_t{0}},
                       {"Tvalues", DT_FLOAT},
                       {"Tsplits", DT_INT64}};
  const absl::Status status = RunFed("RaggedTensorFromVariant", {other}, attrs).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("doesn't hold a RaggedTensorVariant"));
}

}  // namespace

}  // namespace weir
