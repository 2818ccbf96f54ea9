#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/quantize/quantize.h"
#include "weir/tests/evaluate.h"

// Gradients checked to order 1 by tests: FakeQuantWithMinMaxVars.

namespace weir {

namespace {

Tensor Sample() {
  return Tensor::Vector<float>(
      {-3.2f, -2, -1.5f, -0.5f, -0.25f, 0, 0.1f, 0.5f, 1, 1.25f, 2, 2.5f, 7});
}

int64_t IntOf(const Tensor& t, int64_t i) {
  int64_t value = 0;
  DispatchType(t.dtype(), List<qint8, quint8, qint16, quint16, qint32>{},
               [&]<class T>() { value = t.data<T>()[i].value; });
  return value;
}

// TensorFlow 2.21's results for the sample and the range [-2, 2.5].
struct Golden {
  DataType type;
  const char* mode;
  const char* round_mode;
  bool narrow;
  std::vector<int64_t> values;
  float min, max;
};

const std::vector<Golden>& Goldens() {
  const char *const kAway = "HALF_AWAY_FROM_ZERO", *const kEven = "HALF_TO_EVEN";
  static const auto* const goldens = new std::vector<Golden>{
      {DT_QINT8,
       "MIN_COMBINED",
       kAway,
       false,
       {-128, -128, -100, -43, -29, -15, -9, 14, 42, 56, 99, 127, 127},
       -2.0f,
       2.5f},
      {DT_QINT8,
       "MIN_FIRST",
       kAway,
       false,
       {-128, -128, -100, -43, -29, -15, -9, 13, 42, 56, 98, 127, 127},
       -2.0f,
       2.5f},
      {DT_QINT8,
       "SCALED",
       kAway,
       true,
       {-127, -102, -76, -25, -13, 0, 5, 25, 51, 64, 102, 127, 127},
       -2.5f,
       2.5f},
      {DT_QINT8,
       "SCALED",
       kEven,
       false,
       {-128, -102, -76, -25, -13, 0, 5, 25, 51, 64, 102, 127, 127},
       -2.51968503f,
       2.5f},
      {DT_QUINT8,
       "MIN_COMBINED",
       kAway,
       false,
       {0, 0, 28, 85, 99, 113, 119, 142, 170, 184, 227, 255, 255},
       -2.0f,
       2.5f},
      {DT_QUINT8,
       "MIN_FIRST",
       kAway,
       false,
       {0, 0, 28, 85, 99, 113, 119, 142, 170, 184, 227, 255, 255},
       -2.0f,
       2.5f},
      {DT_QUINT8,
       "SCALED",
       kAway,
       true,
       {1, 1, 1, 1, 1, 1, 10, 51, 102, 128, 204, 255, 255},
       0.00980392192f,
       2.5f},
      {DT_QINT16,
       "MIN_COMBINED",
       kAway,
       false,
       {-32768, -32768, -25486, -10923, -7282, -3641, -2185, 3640, 10922, 14563, 25485, 32767,
        32767},
       -2.0f,
       2.5f},
      {DT_QINT16,
       "MIN_FIRST",
       kAway,
       false,
       {-32768, -32768, -25486, -10923, -7282, -3641, -2185, 3641, 10922, 14563, 25486, 32767,
        32767},
       -2.0f,
       2.5f},
      {DT_QINT16,
       "SCALED",
       kEven,
       false,
       {-32768, -26214, -19660, -6553, -3277, 0, 1311, 6553, 13107, 16384, 26214, 32767, 32767},
       -2.50007629f,
       2.5f},
      {DT_QUINT16,
       "MIN_COMBINED",
       kAway,
       false,
       {0, 0, 7282, 21845, 25486, 29127, 30583, 36408, 43690, 47331, 58253, 65535, 65535},
       -2.0f,
       2.5f},
      {DT_QUINT16,
       "MIN_FIRST",
       kAway,
       false,
       {0, 0, 7282, 21845, 25486, 29127, 30583, 36409, 43690, 47331, 58254, 65535, 65535},
       -2.0f,
       2.5f},
      {DT_QUINT16,
       "SCALED",
       kEven,
       false,
       {0, 0, 0, 0, 0, 0, 2621, 13107, 26214, 32768, 52428, 65535, 65535},
       0.0f,
       2.5f},
      {DT_QINT32,
       "MIN_COMBINED",
       kAway,
       false,
       {INT32_MIN, INT32_MIN, -1670265088, -715827840, -477218560, -238609280, -143165696,
        238609408, 715827968, 954437120, 1670265088, INT32_MIN, INT32_MIN},
       -2.0f,
       2.5f},
      {DT_QINT32,
       "MIN_FIRST",
       kAway,
       false,
       {INT32_MIN, INT32_MIN, -1670265088, -715827840, -477218560, -238609280, -143165568,
        238609312, 715827904, 954437248, 1670265088, 2147483520, 2147483520},
       -2.0f,
       2.5f},
      {DT_QINT32,
       "SCALED",
       kAway,
       true,
       {INT32_MIN, -1717986944, -1288490240, -429496736, -214748368, 0, 85899352, 429496736,
        858993472, 1073741824, 1717986944, INT32_MIN, INT32_MIN},
       -2.5f,
       2.5f},
  };
  return *goldens;
}

TEST(Quantize, MatchesTensorFlow) {
  for (const Golden& row : Goldens()) {
    SCOPED_TRACE(testing::Message() << DataTypeName(row.type) << " " << row.mode);
    const absl::StatusOr<Tensors> out =
        RunFed("QuantizeV2", {Sample(), Tensor::Scalar(-2.0f), Tensor::Scalar(2.5f)},
               {{"T", row.type},
                {"mode", row.mode},
                {"round_mode", row.round_mode},
                {"narrow_range", row.narrow}});
    ASSERT_TRUE(out.ok()) << out.status();
    for (int64_t i = 0; i < 13; ++i) EXPECT_EQ(IntOf((*out)[0], i), row.values[i]) << i;
    EXPECT_FLOAT_EQ((*out)[1].scalar<float>(), row.min);
    EXPECT_FLOAT_EQ((*out)[2].scalar<float>(), row.max);
  }
}

TEST(Quantize, DequantizeApproximatesTheInput) {
  for (const Golden& row : Goldens()) {
    SCOPED_TRACE(testing::Message() << DataTypeName(row.type) << " " << row.mode);
    Graph g;
    const QuantizeOptions options = {
        .mode = row.mode, .round_mode = row.round_mode, .narrow_range = row.narrow};
    const QuantizedTensor q =
        QuantizeV2(Const(g, Sample()), Const(g, -2.0f), Const(g, 2.5f), row.type, options);
    const absl::StatusOr<Tensors> out = Evaluate(g, {Dequantize(q, options)});
    ASSERT_TRUE(out.ok()) << out.status();
    const double bits = 8.0 * static_cast<double>(ElementSize(row.type));
    const double step = (row.max - row.min) / (std::exp2(bits) - 1);
    // The extremes are separate: there a 32-bit integer wraps around, as it does in TensorFlow.
    for (int64_t i = 1; i < 11; ++i) {
      const float x = std::max(Sample().data<float>()[i], row.min);
      EXPECT_NEAR((*out)[0].data<float>()[i], x, 1.01 * step + 1e-6) << i;
    }
  }
}

TEST(Quantize, SupportsChannelsAndBfloat16) {
  Graph g;
  const Output x = Const(g, Tensor::Of<float>({2, 2}, {0.5f, 5, 1, 10}));
  const Output min = Const<float>(g, {0, 0}), max = Const<float>(g, {1, 10});
  const QuantizedTensor q = QuantizeV2(x, min, max, DT_QUINT8, {.axis = 1});
  const Output back =
      AddOp("Dequantize", {q.output, q.min, q.max}, {{"axis", 1}, {"dtype", DT_BFLOAT16}});
  const absl::StatusOr<Tensors> out = Evaluate(g, {q.output, back});
  ASSERT_TRUE(out.ok()) << out.status();
  for (const auto& [i, want] : {std::pair(0, 128), {1, 128}, {2, 255}, {3, 255}})
    EXPECT_EQ(IntOf((*out)[0], i), want) << i;
  EXPECT_NEAR(float((*out)[1].data<bfloat16>()[1]), 5.02f, 0.02f);
}

// The sample as 32-bit integers of a range.
TEST(Quantize, RequantizeMatchesTensorFlow) {
  const auto q32 = [](std::initializer_list<int32_t> values) {
    return Tensor::Vector<int32_t>(values).BitcastTo(DT_QINT32);
  };
  const Tensor x = q32({INT32_MIN, -1000000000, -5, 0, 7, 123456789, INT32_MAX});
  const Tensor min = Tensor::Scalar(-3.0f), max = Tensor::Scalar(5.0f);
  const Attrs types = {{"Tinput", DT_QINT32}, {"out_type", DT_QUINT8}};
  const absl::StatusOr<Tensors> shrunk = RunFed("QuantizeDownAndShrinkRange", {x, min, max}, types);
  const absl::StatusOr<Tensors> chosen =
      RunFed("Requantize", {x, min, max, Tensor::Scalar(-1.0f), Tensor::Scalar(2.0f)}, types);
  const absl::StatusOr<Tensors> range = RunFed("RequantizationRange", {x, min, max});
  ASSERT_TRUE(shrunk.ok() && chosen.ok() && range.ok())
      << shrunk.status() << chosen.status() << range.status();
  const int64_t down[] = {0, 68, 127, 128, 128, 135, 255},
                asked[] = {0, 12, 170, 170, 170, 190, 255};
  for (int64_t i = 0; i < 7; ++i) {
    EXPECT_EQ(IntOf((*shrunk)[0], i), down[i]) << i;
    EXPECT_EQ(IntOf((*chosen)[0], i), asked[i]) << i;
  }
  for (const Tensor* t : {&(*shrunk)[1], &(*range)[0]}) EXPECT_EQ(t->scalar<float>(), -3);
  for (const Tensor* t : {&(*shrunk)[2], &(*range)[1]}) EXPECT_EQ(t->scalar<float>(), 5);
  struct Signed {
    float min, max;
    int64_t values[7];
  };
  for (const Signed& want : {Signed{-1, 2, {-128, -116, 42, 42, 42, 62, 127}},
                             Signed{-3, 5, {-128, -59, 0, 0, 0, 7, 127}},
                             Signed{0, 1, {-128, -128, 127, 127, 127, 127, 127}},
                             Signed{-2, 0, {-128, 17, 127, 127, 127, 127, 127}}}) {
    const absl::StatusOr<Tensors> got =
        RunFed("Requantize", {x, min, max, Tensor::Scalar(want.min), Tensor::Scalar(want.max)},
               {{"Tinput", DT_QINT32}, {"out_type", DT_QINT8}});
    ASSERT_TRUE(got.ok()) << got.status();
    for (int64_t i = 0; i < 7; ++i) EXPECT_EQ(IntOf((*got)[0], i), want.values[i]) << i;
    EXPECT_EQ((*got)[1].scalar<float>(), want.min);
    EXPECT_EQ((*got)[2].scalar<float>(), want.max);
  }
  EXPECT_EQ(RunFed("Requantize", {x, min, max, Tensor::Scalar(1.0f), Tensor::Scalar(2.0f)}, types)
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

// In a graph whose version is old enough for the op.
TEST(Quantize, FirstVersionHasTheRangeInAttributes) {
  Graph g;
  g.versions().producer = 21;
  const Output x = Const(g, Sample());
  const Output first = AddOp("QuantizeAndDequantize", {x},
                             {{"range_given", true}, {"input_min", -2.0f}, {"input_max", 2.5f}});
  const Output second = AddOp("QuantizeAndDequantizeV2", {x, Const(g, -2.0f), Const(g, 2.5f)},
                              {{"range_given", true}});
  ASSERT_TRUE(g.status().ok()) << g.status();
  const absl::StatusOr<Tensors> out = Evaluate(g, {first, second});
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_TRUE(IdenticalTensors((*out)[0], (*out)[1]));
}

TEST(Quantize, GradientsFlowToTheRange) {
  Graph g;
  const Output x = Const(g, Sample()), min = Const(g, -1.0f), max = Const(g, 2.0f);
  const Output y = FakeQuantWithMinMaxVars(x, min, max);
  const Outputs grads = DenseGradients({y}, {x, min, max});
  ASSERT_TRUE(g.status().ok()) << g.status();
  const absl::StatusOr<Tensors> out = Evaluate(g, grads);
  ASSERT_TRUE(out.ok()) << out.status();
  EXPECT_EQ((*out)[1].scalar<float>(), 3);
  EXPECT_EQ((*out)[2].scalar<float>(), 2);
  EXPECT_EQ((*out)[0].data<float>()[2], 0);
  EXPECT_EQ((*out)[0].data<float>()[3], 1);
}

TEST(Quantize, RejectsInvalidRanges) {
  const Tensor x = Sample(), one = Tensor::Scalar(1.0f), two = Tensor::Scalar(2.0f);
  const Tensor pair = Tensor::Vector<float>({1, 2});
  const struct {
    const char* op;
    Tensors inputs;
    Attrs attrs;
  } rows[] = {
      {"QuantizeV2", {x, two, one}, {{"T", DT_QINT8}}},
      {"QuantizeV2", {x, pair, pair}, {{"T", DT_QINT8}}},
      {"QuantizeV2", {x, pair, pair}, {{"T", DT_QINT8}, {"axis", 0}}},
      {"QuantizeV2", {x, pair, pair}, {{"T", DT_QINT8}, {"axis", 3}}},
      {"QuantizeV2", {x, one, two}, {{"T", DT_QINT8}, {"round_mode", "HALF_TO_EVEN"}}},
      {"QuantizeAndDequantizeV2", {x, two, one}, {{"range_given", true}}},
      {"QuantizeAndDequantizeV2", {x, one, two}, {{"num_bits", 63}}},
      {"QuantizeAndDequantizeV2", {x, one, two}, {{"axis", 1}}},
      {"FakeQuantWithMinMaxArgs", {x}, {{"num_bits", 1}}},
      {"FakeQuantWithMinMaxArgs", {x}, {{"min", 2.0f}, {"max", 1.0f}}},
      {"FakeQuantWithMinMaxVars", {x, pair, two}, {}},
      {"FakeQuantWithMinMaxVarsPerChannel", {x, pair, pair}, {}},
      {"FakeQuantWithMinMaxVarsGradient", {pair, x, one, two}, {}},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(RunFed(row.op, row.inputs, row.attrs).status().code(),
              absl::StatusCode::kInvalidArgument)
        << row.op;
  }
}

}  // namespace

}  // namespace weir
