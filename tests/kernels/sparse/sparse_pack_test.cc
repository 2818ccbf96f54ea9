#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/core/graph/scope.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/sparse/sparse.h"
#include "weir/tests/evaluate.h"
#include "weir/tests/kernels/lib/vectors.h"

// Sparse tensors that are packed, stored in maps, and accumulated over steps; rejected arguments.
namespace weir {

namespace {

using pick::F32;
using pick::I64;
using testing::ElementsAre;
using testing::HasSubstr;

Tensor Pairs(std::initializer_list<int64_t> values) {
  return Tensor::Of<int64_t>(Shape({static_cast<int64_t>(values.size()) / 2, 2}), values);
}

SparseTensor Constant(Graph& g, const Tensor& indices, const Tensor& values, const Tensor& shape) {
  return {Const(g, indices), Const(g, values), Const(g, shape)};
}
SparseTensor Small(Graph& g) {
  return Constant(g, Pairs({0, 1, 0, 2, 2, 2}), F32({1, 2, -3}), I64({3, 3}));
}

// Indices, values and shape.
Tensors RunSparse(const Graph& g, const SparseTensor& x, ResourceMap* resources = nullptr) {
  EXPECT_TRUE(g.status().ok()) << g.status();
  const absl::StatusOr<Tensors> got = Evaluate(g, {x.indices, x.values, x.dense_shape}, resources);
  EXPECT_TRUE(got.ok()) << got.status();
  return got.ok() ? *got : Tensors(3);
}

TEST(Serialize, BytesMatchTensorFlow) {
  Graph g;
  const Output text = SerializeSparse(Constant(g, Pairs({0, 1}), F32({1}), I64({2, 3})));
  const absl::StatusOr<Tensors> got = Evaluate(g, {text});
  ASSERT_TRUE(got.ok()) << got.status();
  const auto bytes = [](absl::string_view s) { return std::string(s); };
  EXPECT_EQ((*got)[0].data<std::string>()[0],
            bytes({"\x08\x09\x12\x08\x12\x02\x08\x01\x12\x02\x08\x02\"\x10"
                   "\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0",
                   30}));
  EXPECT_EQ((*got)[0].data<std::string>()[1],
            bytes({"\x08\x01\x12\x04\x12\x02\x08\x01\"\x04\0\0\x80?", 14}));
}

TEST(Serialize, RoundTripsAsStringAndAsVariant) {
  for (const DataType type : {DT_STRING, DT_VARIANT}) {
    Graph g;
    const SparseTensor x = Small(g);
    const SparseTensor whole = DeserializeSparse(SerializeSparse(x, type), DT_FLOAT);
    const SparseTensor rows = DeserializeSparse(SerializeManySparse(x, type), DT_FLOAT);
    for (const SparseTensor& back : {whole, rows}) {
      const Tensors got = RunSparse(g, back);
      EXPECT_TRUE(IdenticalTensors(got[0], Pairs({0, 1, 0, 2, 2, 2})));
      EXPECT_TRUE(IdenticalTensors(got[1], F32({1, 2, -3})));
      EXPECT_TRUE(IdenticalTensors(got[2], I64({3, 3})));
    }
  }
}

TEST(Serialize, StacksSeveralDimensions) {
  Graph g;
  const Output a = SerializeSparse(Constant(g, Pairs({0, 1}), F32({1}), I64({2, 3})));
  const Output b = SerializeSparse(Constant(g, Pairs({0, 4}), F32({9}), I64({1, 5})));
  Tensors got = RunSparse(g, DeserializeManySparse(Stack({a, b}), DT_FLOAT));
  EXPECT_THAT(got[0].flat<int64_t>(), ElementsAre(0, 0, 1, 1, 0, 4));
  EXPECT_THAT(got[1].flat<float>(), ElementsAre(1, 9));
  EXPECT_THAT(got[2].flat<int64_t>(), ElementsAre(2, 2, 5));
  got = RunSparse(g, DeserializeSparse(Reshape(Stack({a, b}), {2, 1, 3}), DT_FLOAT));
  EXPECT_THAT(got[0].flat<int64_t>(), ElementsAre(0, 0, 0, 1, 1, 0, 0, 4));
  EXPECT_THAT(got[2].flat<int64_t>(), ElementsAre(2, 1, 2, 5));
}

TEST(Serialize, PreservesStrings) {
  Graph g;
  const Tensor words = Tensor::Vector<std::string>({"", "two words"});
  const SparseTensor x = Constant(g, Pairs({0, 0, 1, 1}), words, I64({2, 2}));
  EXPECT_TRUE(
      IdenticalTensors(RunSparse(g, DeserializeSparse(SerializeSparse(x), DT_STRING))[1], words));
}

TEST(Deserialize, RejectsInvalidSparseTensors) {
  const Tensor garbage = Tensor::Vector<std::string>({"x", "y", "z"});
  const struct {
    const char* op;
    Tensor input;
    const char* message;
  } rows[] = {
      {"DeserializeSparse", garbage, ""},
      {"DeserializeSparse", Tensor::Vector<std::string>({"x", "y"}), "3 as the last dimension"},
      {"DeserializeManySparse", Tensor(DT_STRING, Shape({0, 3})), "at least 1 serialized tensor"},
      {"DeserializeSparse", Tensor::Scalar("x"), "3 as the last dimension"},
  };
  for (const auto& row : rows) {
    const absl::StatusOr<Tensors> got = RunFed(row.op, {row.input}, {{"dtype", DT_FLOAT}});
    EXPECT_EQ(got.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(got.status().message()), HasSubstr(row.message));
  }
  Graph g;
  const SparseTensor other = DeserializeSparse(SerializeSparse(Small(g)), DT_INT32);
  const absl::StatusOr<Tensors> got = Evaluate(g, {other.values});
  EXPECT_THAT(std::string(got.status().message()),
              HasSubstr("Requested SparseTensor of type int32"));
}

TEST(TensorsMap, ReturnsEachTensorOnce) {
  Graph g;
  ResourceMap resources;
  const SparseTensor x = Small(g);
  const Attrs shared = {{"shared_name", "map"}};
  const Output many =
      AddOp("AddManySparseToTensorsMap", {x.indices, x.values, x.dense_shape}, shared);
  const Output one = AddOp("AddSparseToTensorsMap", {x.indices, x.values, x.dense_shape}, shared);
  const Output handles = Placeholder(g, DT_INT64);
  Node* const take = AddNode("TakeManySparseFromTensorsMap", {handles},
                             {{"shared_name", "map"}, {"dtype", DT_FLOAT}});
  ASSERT_TRUE(g.status().ok()) << g.status();
  absl::StatusOr<Tensors> got = Evaluate(g, {many}, &resources);
  ASSERT_TRUE(got.ok()) << got.status();
  const Tensor rows = (*got)[0];
  EXPECT_THAT(rows.flat<int64_t>(), ElementsAre(0, 2, 1));  // non-empty rows come first
  const Outputs parts = {take->output(0), take->output(1), take->output(2)};
  got = Evaluate(g, {{handles, rows}}, parts, &resources);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(IdenticalTensors((*got)[0], Pairs({0, 1, 0, 2, 2, 2})));
  EXPECT_TRUE(IdenticalTensors((*got)[1], F32({1, 2, -3})));
  EXPECT_TRUE(IdenticalTensors((*got)[2], I64({3, 3})));
  got = Evaluate(g, {{handles, rows}}, parts, &resources);
  EXPECT_EQ(got.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(got.status().message()), HasSubstr("Unable to find SparseTensor: 0"));
  got = Evaluate(g, {one}, &resources);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got)[0].scalar<int64_t>(), 3);
  got = Evaluate(g, {{handles, I64({3})}}, {take->output(2)}, &resources);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(IdenticalTensors((*got)[0], I64({1, 3, 3})));
}

TEST(SparseAccumulator, AveragesEachRowOverItsGradients) {
  Graph g;
  ResourceMap resources;
  SparseConditionalAccumulator sum(g, DT_FLOAT, {.shape = {3, 2}});
  const Output zero = Const(g, int64_t{0}), shape = Const(g, I64({3, 2}));
  const auto rows = [](std::initializer_list<float> v) {
    return Tensor::Of<float>(Shape({static_cast<int64_t>(v.size()) / 2, 2}), v);
  };
  const Operation first = sum.ApplyGradient({.values = Const(g, rows({1, 2, 3, 4})),
                                             .indices = Const(g, I64({0, 2})),
                                             .dense_shape = shape},
                                            zero);
  const Operation second =
      sum.ApplyGradient({.values = Const(g, rows({10, 20})), .indices = Const(g, I64({0}))}, zero);
  const IndexedSlices mean = sum.TakeGradient(Const(g, 2));
  const Output count = sum.NumAccumulated();
  ASSERT_TRUE(g.status().ok()) << g.status();
  ASSERT_TRUE(EvaluateTargets(g, {first, second}, &resources).ok());
  absl::StatusOr<Tensors> got =
      Evaluate(g, {mean.indices, mean.values, mean.dense_shape}, &resources);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(IdenticalTensors((*got)[0], I64({0, 2})));
  EXPECT_TRUE(IdenticalTensors((*got)[1], rows({5.5, 11, 3, 4})));
  EXPECT_TRUE(IdenticalTensors((*got)[2], I64({3, 2})));
  ASSERT_TRUE(EvaluateTargets(g, {first}, &resources).ok());  // stale now
  got = Evaluate(g, {count}, &resources);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got)[0].scalar<int32_t>(), 0);
}

TEST(SparseAccumulator, RejectsIncompatibleRows) {
  const Tensor two = Tensor::Of<float>({1, 2}, {1, 2}),
               three = Tensor::Of<float>({1, 3}, {1, 2, 3});
  const struct {
    Tensor indices, values;
    std::optional<Tensor> shape;
    const char* message;
  } rows[] = {{I64({5}), two, std::nullopt, "index of slice 0 exceeded limits"},
              {I64({0}), three, std::nullopt, "expected values dim 1 to be 2"},
              {I64({0, 1}), two, std::nullopt, "Expected 2 non-empty input values"},
              {I64({0}), F32({1}), std::nullopt, "expected values rank at least 2"},
              {I64({0}), two, I64({4, 2}), "expected shape dim 0 to be 3"},
              {I64({0}), two, I64({3}), "expected shape rank at least 2"}};
  for (const auto& row : rows) {
    Graph g;
    SparseConditionalAccumulator sum(g, DT_FLOAT, {.shape = {3, 2}});
    const Operation apply =
        sum.ApplyGradient({.values = Const(g, row.values),
                           .indices = Const(g, row.indices),
                           .dense_shape = row.shape ? Const(g, *row.shape) : Output()},
                          Const(g, int64_t{0}));
    ASSERT_TRUE(g.status().ok()) << g.status();
    const absl::Status status = EvaluateTargets(g, {apply}, nullptr);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(row.message));
  }
}

TEST(SparseMatMul, HasTheGradientOfMatMul) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      Graph g;
      const Output a = Const(g, Tensor::Of<float>({2, 2}, {1, 2, 3, 4}));
      const Output b = Const(g, Tensor::Of<float>({2, 2}, {5, -6, 7, 8}));
      const Output w = Const(g, Tensor::Of<float>({2, 2}, {1, -2, 3, 5}));
      const Output plain = MatMul(a, b, {.transpose_a = ta, .transpose_b = tb});
      const Output sparse =
          AddOp("SparseMatMul", {a, b},
                {{"transpose_a", ta}, {"transpose_b", tb}, {"a_is_sparse", true}});
      Outputs all = DenseGradients({plain * w}, {a, b});
      const Outputs more = DenseGradients({sparse * w}, {a, b});
      all.insert(all.end(), more.begin(), more.end());
      ASSERT_TRUE(g.status().ok()) << g.status();
      const absl::StatusOr<Tensors> got = Evaluate(g, all);
      ASSERT_TRUE(got.ok()) << got.status();
      EXPECT_TRUE(IdenticalTensors((*got)[0], (*got)[2]));
      EXPECT_TRUE(IdenticalTensors((*got)[1], (*got)[3]));
    }
  }
}

// Malformed arguments, and a part of TensorFlow's message.
TEST(Sparse, RejectsIncompatibleArguments) {
  const Tensor one = F32({1}), two = F32({1, 2}), at = Pairs({0, 1}), shape = I64({2, 3});
  const Tensor dense = Tensor::Of<float>({2, 3}, {1, 1, 1, 1, 1, 1}), zero = Tensor::Scalar(0.f);
  const Tensor huge = I64({int64_t{1} << 40, int64_t{1} << 40});
  const Tensor outside = Pairs({0, 9}), axis = Tensor::Scalar<int32_t>(1);
  const struct {
    const char* op;
    Tensors inputs;
    Attrs attrs;
    const char* message;
  } rows[] = {
      {"SparseToDense", {I64({0, 5}), I64({3}), two, zero}, {}, "is out of bounds"},
      {"SparseToDense", {I64({1, 0}), I64({3}), two, zero}, {}, "is out of order"},
      {"SparseToDense", {I64({1, 1}), I64({3}), two, zero}, {}, "is repeated"},
      {"SparseToDense",
       {I64({0, -1}), I64({3}), two, zero},
       {{"validate_indices", false}},
       "Indices are not valid"},
      {"SparseToDense", {at, I64({3}), one, zero}, {}, "incorrect number of elements"},
      {"SparseToDense", {I64({0}), I64({3}), two, zero}, {}, "sparse_values has incorrect shape"},
      {"SparseToDense", {I64({0}), I64({-3}), one, zero}, {}, "-3"},
      {"SparseToDense", {I64({0}), I64({3}), one, one}, {}, "default_value should be a scalar"},
      {"SparseToDense", {at, huge, one, zero}, {}, ""},
      {"SparseReorder", {at, two, shape}, {}, "indices (1) and values (2) do not match"},
      {"SparseReorder", {at, one, I64({2, -3})}, {}, "non-negative"},
      {"SparseReorder", {at, one, I64({2, 3, 4})}, {}, "do not match"},
      {"SparseReshape", {at, shape, I64({5, -1})}, {}, "requires a multiple of 5"},
      {"SparseReshape", {at, shape, I64({5, 2})}, {}, "the requested shape has 10"},
      {"SparseReshape", {at, shape, I64({-1, -1})}, {}, "only one output dimension"},
      {"SparseReshape", {at, huge, I64({-1})}, {}, "overflow"},
      {"SparseReshape", {at, I64({0, 3}), I64({-1, 0})}, {}, "cannot infer"},
      {"SparseReshape", {at, I64({0, 3}), I64({0})}, {}, "empty"},
      {"SparseFillEmptyRows", {Pairs({9, 2}), one, shape, zero}, {}, "is invalid: 9 >= 2"},
      {"SparseFillEmptyRows", {at, one, I64({0, 3}), zero}, {}, "dense_shape[0] = 0"},
      {"SparseFillEmptyRows", {at, one, shape, one}, {}, "default_value must be a scalar"},
      {"SparseFillEmptyRowsGrad", {I64({2, 9}), two}, {}, "must be in [0, 2)"},
      {"SparseSplit",
       {Tensor::Scalar<int64_t>(1), outside, one, shape},
       {{"num_split", int64_t{2}}},
       "is out of bounds"},
      {"SparseSplit",
       {Tensor::Scalar<int64_t>(2), at, one, shape},
       {{"num_split", int64_t{2}}},
       "should be in range"},
      {"SparseSplit",
       {Tensor::Scalar<int64_t>(1), at, one, shape},
       {{"num_split", int64_t{4}}},
       "num_split should be between 1"},
      {"SparseSlice", {at, one, shape, I64({0, 0}), I64({-1, 1})}, {}, "non-negative size"},
      {"SparseSlice", {at, one, shape, I64({0}), I64({1})}, {}, "vector of length 2"},
      {"SparseSliceGrad", {two, at, I64({0, 0}), at}, {}, "should match"},
      {"SparseTensorDenseAdd", {outside, one, shape, dense}, {}, "invalid index on dimension 1"},
      {"SparseTensorDenseAdd", {at, one, I64({2, 4}), dense}, {}, "does not equal"},
      {"SparseTensorDenseAdd", {at, one, shape, one}, {}, "different ranks"},
      {"SparseTensorDenseMatMul", {Pairs({0, 5}), one, shape, dense}, {}, "inner dimension"},
      {"SparseTensorDenseMatMul", {Pairs({0, 5}), one, I64({3, 2}), dense}, {}, "k (5)"},
      {"SparseTensorDenseMatMul", {Pairs({-1, 1}), one, I64({3, 2}), dense}, {}, "m (-1)"},
      {"SparseTensorDenseMatMul", {Pairs({}), F32({}), I64({-3, 2}), dense}, {}, ""},
      {"SparseAdd", {at, one, shape, at, one, I64({2, 4}), zero}, {}, "shapes do not match"},
      {"SparseAdd", {at, one, shape, at, one, shape, one}, {}, "threshold must be a scalar"},
      {"SparseAddGrad", {two, at, at, at}, {}, "should match"},
      {"SparseSparseMaximum", {outside, one, shape, at, one, shape}, {}, "is out of bounds"},
      {"SparseDenseCwiseMul", {outside, one, shape, zero}, {}, "out-of-bounds"},
      {"SparseDenseCwiseMul", {at, one, shape, two}, {}, "broadcasts dense to sparse only"},
      {"SparseDenseCwiseDiv",
       {at, Tensor::Vector<int32_t>({1}), shape, Tensor::Scalar<int32_t>(0)},
       {},
       "cannot divide by zero"},
      {"SparseSoftmax", {Tensor::Of<int64_t>({1, 1}, {0}), one, I64({3})}, {}, "rank >= 2"},
      {"SparseSoftmax", {at, one, huge}, {}, "Encountered overflow when multiplying"},
      {"SparseReduceSum", {at, one, shape, Tensor::Scalar<int32_t>(2)}, {}, "reduction dimension"},
      {"SparseReduceSum", {at, one, huge, Tensor::Vector<int32_t>({})}, {}, ""},
      {"SparseReduceMaxSparse",
       {at, two, shape, axis},
       {},
       "Dimensions 1 and 2 are not compatible"},
      {"EditDistance", {at, one, huge, at, one, huge}, {}, ""},
      {"SerializeManySparse", {Pairs({2, 1, 0, 2}), two, I64({3, 3})}, {}, "out of order"},
      {"SerializeManySparse", {Pairs({0, 1, 9, 2}), two, I64({3, 3})}, {}, "out of bounds"},
      {"AddManySparseToTensorsMap",
       {Tensor::Of<int64_t>({1, 1}, {0}), one, I64({3})},
       {},
       "should be > 1"},
      {"RaggedTensorToSparse", {I64({1, 2}), two}, {}, "First value of ragged splits"},
      {"RaggedTensorToSparse", {I64({0, 2, 1}), one}, {}, "non decreasing"},
      {"RaggedTensorToSparse", {I64({0, 3}), one}, {}, "must match the length"},
      {"RaggedTensorToSparse", {I64({}), one}, {}, "may not be empty"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.op);
    const bool ragged = absl::string_view(row.op).substr(0, 6) == "Ragged";
    const absl::StatusOr<Tensors> got = RunFed(row.op, row.inputs, row.attrs, ragged ? 1 : 0);
    const absl::StatusCode code = got.status().code();
    const bool too_large = row.message[0] == 0 && code == absl::StatusCode::kResourceExhausted;
    EXPECT_TRUE(code == absl::StatusCode::kInvalidArgument || too_large)
        << row.message << ": " << got.status();
    EXPECT_THAT(std::string(got.status().message()), HasSubstr(row.message));
  }
}

// The magnitude of the lowest number is no number of its type.
TEST(SparseAdd, KeepsTheLowestInteger) {
  const Tensor at = Tensor::Of<int64_t>({1, 2}, {0, 1}), dims = Tensor::Vector<int64_t>({2, 3});
  const Tensor x = Tensor::Vector<int16_t>({-32767}), y = Tensor::Vector<int16_t>({-1});
  const auto sum =
      RunFed("SparseAdd", {at, x, dims, at, y, dims, Tensor::Scalar<int16_t>(32767)}, {}, 0);
  ASSERT_TRUE(sum.ok()) << sum.status();
  ASSERT_EQ((*sum)[1].num_elements(), 1);
  EXPECT_EQ((*sum)[1].data<int16_t>()[0], -32768);
}

}  // namespace

}  // namespace weir
