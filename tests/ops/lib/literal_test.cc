#include "weir/ops/lib/literal.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "weir/ops/framework/variables.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"
#include "weir/tests/evaluate.h"

// Numbers combined with tensors. The conversions and their result dtypes are those of TensorFlow
// 2.21 for the same programs, except that TensorFlow wraps integers that do not fit the type.
namespace weir {
namespace {

using testing::HasSubstr;
using complex64 = std::complex<float>;

constexpr int64_t kBig = 9007199254740993;  // 2^53 + 1: not representable as double

Tensor Value(const Output& x) {
  const absl::StatusOr<Tensors> values = Evaluate(x.graph(), {x});
  EXPECT_TRUE(values.ok()) << values.status();
  return values.ok() ? (*values)[0] : Tensor::Zeros(x.dtype(), {});
}

// Takes the graph's error so that the test can continue, and expects INVALID_ARGUMENT with both
// types.
void ExpectRefused(Graph& g, const Output& made, DataType wanted, DataType given) {
  EXPECT_TRUE(made == Output());
  const absl::Status status = g.TakeStatus();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("Expected " + DataTypeName(wanted)));
  EXPECT_THAT(std::string(status.message()), HasSubstr("of type '" + DataTypeName(given) + "'"));
}

TEST(Literal, FloatingNumberWithAnIntegerTensorIsRejected) {
  Graph g;
  const Output i = Const(g, int32_t{3});
  const double nan = std::nan("");
  ExpectRefused(g, i * 0.5, DT_INT32, DT_FLOAT);
  ExpectRefused(g, 0.5 * i, DT_INT32, DT_FLOAT);
  ExpectRefused(g, i * 2.0, DT_INT32, DT_FLOAT);
  ExpectRefused(g, i / 0.5, DT_INT32, DT_FLOAT);
  ExpectRefused(g, 1.0f / i, DT_INT32, DT_FLOAT);
  ExpectRefused(g, i + nan, DT_INT32, DT_FLOAT);
  ExpectRefused(g, i < 0.5, DT_INT32, DT_FLOAT);
  ExpectRefused(g, Pow(i, 0.5), DT_INT32, DT_FLOAT);
  ExpectRefused(g, Maximum(0.5, i), DT_INT32, DT_FLOAT);
  ExpectRefused(g, Equal(i, 3.0), DT_INT32, DT_FLOAT);
  ExpectRefused(g, ScalarMul(0.5, i), DT_INT32, DT_FLOAT);
  ExpectRefused(g, ClipByValue(i, 0, 2.5), DT_INT32, DT_FLOAT);
  ExpectRefused(g, SelectV2(Const(g, true), i, 0.5), DT_INT32, DT_FLOAT);
  ExpectRefused(g, PadV2(Reshape(i, {1}), {{1, 1}}, 0.5), DT_INT32, DT_FLOAT);
  ExpectRefused(g, OneHot(i, 5, {.on_value = 0.5, .dtype = DT_INT32}), DT_INT32, DT_FLOAT);
  ExpectRefused(g, ConstLike(i, 0.5), DT_INT32, DT_FLOAT);
}

TEST(Literal, FloatingNumberIsRejectedByIntegerVariables) {
  for (const bool use_resource : {true, false}) {
    Graph g;
    const Variable v = MakeVariable(g, 3, {.use_resource = use_resource});
    ExpectRefused(g, v * 0.5, DT_INT32, DT_FLOAT);
    ExpectRefused(g, v.Assign(2.0), DT_INT32, DT_FLOAT);
    ExpectRefused(g, v.AssignAdd(0.5), DT_INT32, DT_FLOAT);
    ExpectRefused(g, v.AssignSub({0.5}), DT_INT32, DT_FLOAT);
  }
}

TEST(Literal, OutOfRangeIntegerIsRejected) {
  Graph g;
  ExpectRefused(g, Const(g, uint8_t{1}) + 300, DT_UINT8, DT_INT32);
  ExpectRefused(g, Const(g, uint8_t{1}) + -1, DT_UINT8, DT_INT32);
  ExpectRefused(g, Const(g, int8_t{1}) < 128, DT_INT8, DT_INT32);
  ExpectRefused(g, Const(g, int32_t{1}) + kBig, DT_INT32, DT_INT64);
  ExpectRefused(g, Const(g, int64_t{1}) + UINT64_MAX, DT_INT64, DT_UINT64);
  ExpectRefused(g, BitwiseAnd(Const(g, uint16_t{1}), 65536), DT_UINT16, DT_INT32);
}

TEST(Literal, BoolAndTextDoNotConvert) {
  Graph g;
  ExpectRefused(g, Const(g, 1.0f) + true, DT_FLOAT, DT_BOOL);
  ExpectRefused(g, Const(g, 1) + true, DT_INT32, DT_BOOL);
  ExpectRefused(g, Equal(Const(g, true), 1), DT_BOOL, DT_INT32);
  ExpectRefused(g, Equal(Const(g, 1.0f), "one"), DT_FLOAT, DT_STRING);
  ExpectRefused(g, Equal(Const(g, "one"), 1), DT_STRING, DT_INT32);
  ExpectRefused(g, Const(g, 1.0f) * std::complex<double>(0, 1), DT_FLOAT, DT_COMPLEX128);
  EXPECT_TRUE(Value(Equal(Const(g, true), true)).scalar<bool>());
  EXPECT_EQ(Value(Const(g, "a") + "b").scalar<std::string>(), "ab");
}

TEST(Literal, LargeIntegersAreExact) {
  Graph g;
  EXPECT_EQ(Value(Const(g, int64_t{0}) + kBig).scalar<int64_t>(), kBig);
  EXPECT_EQ(Value(Const(g, uint64_t{0}) + UINT64_MAX).scalar<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(Value(Maximum(Const(g, INT64_MIN), INT64_MAX)).scalar<int64_t>(), INT64_MAX);
  EXPECT_TRUE(Value(Equal(Const(g, kBig), kBig)).scalar<bool>());
  EXPECT_FALSE(Value(Equal(Const(g, kBig), kBig - 1)).scalar<bool>());
  EXPECT_EQ(Value(SelectV2(Const(g, true), kBig, Const(g, int64_t{0}))).scalar<int64_t>(), kBig);
}

TEST(Literal, IntegersAreRoundedToFloatingAndComplexTypes) {
  Graph g;
  EXPECT_EQ(Value(Const(g, 0.0f) + 16777217).scalar<float>(), 16777216.0f);
  EXPECT_EQ(Value(Const<double>(g, 0) + kBig).scalar<double>(), 9007199254740992.0);
  EXPECT_EQ(static_cast<float>(Value(ConstOf(g, DT_HALF, 2049)).scalar<half>()), 2048.0f);
  EXPECT_TRUE(std::isinf(static_cast<float>(Value(ConstOf(g, DT_HALF, 70000)).scalar<half>())));
  EXPECT_EQ(static_cast<float>(Value(ConstOf(g, DT_BFLOAT16, 2049)).scalar<bfloat16>()), 2048.0f);
  EXPECT_EQ(Value(Const(g, complex64(0, 1)) + 2).scalar<complex64>(), complex64(2, 1));
  EXPECT_EQ(Value(Const(g, complex64(0, 1)) * 0.5).scalar<complex64>(), complex64(0, 0.5f));
}

TEST(Literal, ListsCombineWithTensors) {
  Graph g;
  const Tensor equal = Value(Equal(Const(g, {1, 3}), {1, 2}));
  EXPECT_THAT(equal.flat<bool>(), testing::ElementsAre(true, false));
  ExpectRefused(g, Equal(Const(g, {1, 3}), {1, 2.5}), DT_INT32, DT_FLOAT);
  const Tensor sum = Value(Const(g, {1.0f, 2.0f}) + std::vector<int32_t>{3, 4});
  EXPECT_THAT(sum.flat<float>(), testing::ElementsAre(4, 6));
}

TEST(Literal, ConstAndMakeVariableAgreeOnTheType) {
  Graph g;
  EXPECT_EQ(Const(g, 1.0).dtype(), DT_FLOAT);
  EXPECT_EQ(MakeVariable(g, 1.0).dtype(), DT_FLOAT);
  EXPECT_EQ(Const(g, {1.0, 2.0}).dtype(), DT_FLOAT);
  EXPECT_EQ(MakeVariable(g, {1.0, 2.0}).dtype(), DT_FLOAT);
  EXPECT_EQ(Const(g, 1).dtype(), MakeVariable(g, 1).dtype());
  EXPECT_EQ(Const(g, true).dtype(), MakeVariable(g, true).dtype());
  EXPECT_EQ(MakeVariable(g, int64_t{3}).dtype(), DT_INT64);
  EXPECT_EQ(MakeVariable(g, 3LL).dtype(), DT_INT64);
  EXPECT_EQ(MakeVariable(g, uint8_t{3}).dtype(), DT_UINT8);
  EXPECT_EQ(Const(g, int64_t{3}).dtype(), DT_INT64);
  EXPECT_EQ(MakeVariable(g, {1, 2}).dtype(), DT_INT32);
  EXPECT_EQ(Const<double>(g, 1.0).dtype(), DT_DOUBLE);
  EXPECT_EQ(Const(g, std::vector<double>{1}).dtype(), DT_DOUBLE);
  EXPECT_EQ(MakeVariable(g, std::vector<double>{1}).dtype(), DT_DOUBLE);
  EXPECT_EQ(MakeVariable(g, 1.0, {.dtype = DT_DOUBLE}).dtype(), DT_DOUBLE);
}

TEST(Literal, UnsetOptionsFitEveryType) {
  Graph g;
  const Tensor hot = Value(OneHot(Const(g, 1), 2, {.dtype = DT_BOOL}));
  EXPECT_THAT(hot.flat<bool>(), testing::ElementsAre(false, true));
  EXPECT_EQ(MatrixDiag(Const(g, {true})).dtype(), DT_BOOL);
  EXPECT_EQ(Value(CountNonzero(Const(g, {true, false}), 0)).scalar<int64_t>(), 1);
  EXPECT_TRUE(g.status().ok()) << g.status();
}

}  // namespace
}  // namespace weir
