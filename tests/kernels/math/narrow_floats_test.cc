#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "weir/tests/evaluate.h"

// Element-wise ops of 16-bit floats have TensorFlow's bits: each step of a composite function is
// rounded, and halves below 2^-14 are numbers. The results are those of
// TensorFlow 2.21 for whole vectors; it computes the rest of a tensor in another order.
namespace weir {
namespace {

template <class T>
Tensor Of(const std::vector<float>& values) {
  Tensor t(DataTypeOf<T>::value, Shape({static_cast<int64_t>(values.size())}));
  for (size_t i = 0; i < values.size(); ++i) t.data<T>()[i] = T(values[i]);
  return t;
}

template <class T>
void ExpectBits(const char* op, const std::vector<float>& x, const std::vector<float>& y,
                const std::vector<uint16_t>& want) {
  const absl::StatusOr<Tensors> got = RunFed(op, {Of<T>(x), Of<T>(y)});
  ASSERT_TRUE(got.ok()) << op << ": " << got.status();
  const T* const bits = (*got)[0].template data<T>();
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(bits[i].bits, want[i]) << op << " of element " << i;
  }
}

template <class T>
void ExpectBits(const char* op, const std::vector<float>& x, const std::vector<uint16_t>& want) {
  const absl::StatusOr<Tensors> got = RunFed(op, {Of<T>(x)});
  ASSERT_TRUE(got.ok()) << op << ": " << got.status();
  const T* const bits = (*got)[0].template data<T>();
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(bits[i].bits, want[i]) << op << " of " << x[i];
  }
}

// Numbers for which a single rounding of the result gives other bits, and ends of ranges.
TEST(NarrowFloats, StepsOfActivationsAreRounded) {
  const std::vector<float> x = {0.0005f, -0.0005f, -1.384765625f, -3.1f, 4.95f,  6.9f,
                                7.1f,    -7.1f,    -20.0f,        11.2f, 100.0f, -100.0f};
  ExpectBits<half>("Sigmoid", x,
                   {0x3801, 0x37ff, 0x326a, 0x2986, 0x3bf2, 0x3bfe, 0x3bfe, 0x12be, 0x0000, 0x3c00,
                    0x3c00, 0x0000});
  ExpectBits<half>("Softplus", x,
                   {0x398d, 0x398b, 0x3327, 0x29a5, 0x44f5, 0x46e6, 0x471a, 0x12c0, 0x0000, 0x499a,
                    0x5640, 0x0000});
  ExpectBits<half>("Elu", x,
                   {0x1019, 0x9000, 0xb9ff, 0xbba4, 0x44f3, 0x46e6, 0x471a, 0xbbfe, 0xbc00, 0x499a,
                    0x5640, 0xbc00});
  ExpectBits<half>("Selu", x,
                   {0x104e, 0x9308, 0xbd45, 0xbeb7, 0x4533, 0x4740, 0x4776, 0xbf06, 0xbf08, 0x49e3,
                    0x5691, 0xbf08});
  ExpectBits<bfloat16>("Sigmoid", x,
                       {0x3f00, 0x3f00, 0x3e4d, 0x3d32, 0x3f7e, 0x3f80, 0x3f80, 0x3a5a, 0x310e,
                        0x3f80, 0x3f80, 0x0000});
  ExpectBits<bfloat16>("Softplus", x,
                       {0x3f31, 0x3f31, 0x3e64, 0x3d3a, 0x409e, 0x40dd, 0x40e3, 0x3a5a, 0x310e,
                        0x4133, 0x42c8, 0x0000});
  ExpectBits<bfloat16>("Elu", x,
                       {0x3a03, 0x0000, 0xbf40, 0xbf74, 0x409e, 0x40dd, 0x40e3, 0xbf80, 0xbf80,
                        0x4133, 0x42c8, 0xbf80});
  ExpectBits<bfloat16>("Selu", x,
                       {0x3a09, 0x0000, 0xbfa9, 0xbfd6, 0x40a5, 0x40e7, 0x40ee, 0xbfe1, 0xbfe1,
                        0x413b, 0x42d1, 0xbfe1});
}

TEST(NarrowFloats, StepsAreRounded) {
  const std::vector<float> x = {0.3f, 1.7f, -2.3f, 0.9f, 0.55f},
                           y = {0.7f, 0.11f, 1.3f, 0.45f, 3.7f};
  ExpectBits<half>("SquaredDifference", x, y, {0x3120, 0x410e, 0x4a7c, 0x327b, 0x48f5});
  ExpectBits<half>("FloorDiv", x, y, {0x0000, 0x4b80, 0xc000, 0x4000, 0x0000});
  ExpectBits<half>("TruncateDiv", x, y, {0x0000, 0x4b80, 0xbc00, 0x4000, 0x0000});
  ExpectBits<half>("SigmoidGrad", x, y, {0x30b5, 0xb031, 0xc8ef, 0x2930, 0x3b54});
  ExpectBits<half>("TanhGrad", x, y, {0x3919, 0xb2a7, 0xc594, 0x2d78, 0x412a});
  ExpectBits<half>("SqrtGrad", x, y, {0x3cab, 0x2824, 0xb485, 0x3400, 0x42ba});
  ExpectBits<half>("RsqrtGrad", x, y, {0xa0d7, 0xb453, 0x47ea, 0xb140, 0xb4eb});
  ExpectBits<half>("ReciprocalGrad", x, y, {0xac09, 0xb516, 0xc6e1, 0xb5d5, 0xbc79});
  ExpectBits<half>("InvGrad", x, y, {0xac09, 0xb516, 0xc6e1, 0xb5d5, 0xbc79});
  ExpectBits<half>("Xlogy", x, y, {0xaed8, 0xc381, 0xb8d4, 0xb9c0, 0x39c1});
  ExpectBits<half>("Xlog1py", x, y, {0x3119, 0x31ae, 0xbfab, 0x355a, 0x3acf});
  ExpectBits<half>("EluGrad", x, y, {0x34cd, 0x3ecd, 0xc09a, 0x3b33, 0x3866});
  ExpectBits<half>("SeluGrad", x, y, {0x350b, 0x3f25, 0xc0d6, 0x3b91, 0x389f});
  ExpectBits<half>("LeakyReluGrad", x, y, {0x34cd, 0x3ecd, 0xc09a, 0x3b33, 0x3866});
  ExpectBits<half>("SoftplusGrad", x, y, {0x326b, 0x3b2c, 0xbf3c, 0x3865, 0x384b});
  ExpectBits<half>("SoftsignGrad", x, y, {0x2ea5, 0x3d85, 0xb6f4, 0x36d8, 0x2660});
  ExpectBits<bfloat16>("SquaredDifference", x, y, {0x3e23, 0x4023, 0x414f, 0x3e4f, 0x411f});
  ExpectBits<bfloat16>("FloorDiv", x, y, {0x0000, 0x4170, 0xc000, 0x4000, 0x0000});
  ExpectBits<bfloat16>("TruncateDiv", x, y, {0x0000, 0x4170, 0xbf80, 0x4000, 0x0000});
  ExpectBits<bfloat16>("SigmoidGrad", x, y, {0x3e16, 0xbe06, 0xc11d, 0x3d28, 0x3f6a});
  ExpectBits<bfloat16>("TanhGrad", x, y, {0x3f23, 0xbe56, 0xc0b2, 0x3db0, 0x4025});
  ExpectBits<bfloat16>("SqrtGrad", x, y, {0x3f95, 0x3d04, 0xbe91, 0x3e7f, 0x4057});
  ExpectBits<bfloat16>("RsqrtGrad", x, y, {0xbc1b, 0xbe8c, 0x40fc, 0xbe27, 0xbe9f});
  ExpectBits<bfloat16>("ReciprocalGrad", x, y, {0xbd81, 0xbea3, 0xc0db, 0xbeba, 0xbf8f});
  ExpectBits<bfloat16>("InvGrad", x, y, {0xbd81, 0xbea3, 0xc0db, 0xbeba, 0xbf8f});
  ExpectBits<bfloat16>("Xlogy", x, y, {0xbddc, 0xc070, 0xbf19, 0xbf38, 0x3f39});
  ExpectBits<bfloat16>("Xlog1py", x, y, {0x3e24, 0x3e35, 0xbff5, 0x3eab, 0x3f5a});
  ExpectBits<bfloat16>("EluGrad", x, y, {0x3e9a, 0x3fda, 0xc013, 0x3f66, 0x3f0d});
  ExpectBits<bfloat16>("SeluGrad", x, y, {0x3ea1, 0x3fe4, 0xc01a, 0x3f71, 0x3f14});
  ExpectBits<bfloat16>("LeakyReluGrad", x, y, {0x3e9a, 0x3fda, 0xc013, 0x3f66, 0x3f0d});
  ExpectBits<bfloat16>("SoftplusGrad", x, y, {0x3e4d, 0x3f67, 0xbfe7, 0x3f0c, 0x3f0a});
  ExpectBits<bfloat16>("SoftsignGrad", x, y, {0x3dd4, 0x3fb1, 0xbedf, 0x3eda, 0x3ccd});
}

TEST(NarrowFloats, SubnormalHalvesAreNotFlushed) {
  const float tiny = 0x1p-24f;
  ExpectBits<half>("Add", {tiny, 0x1p-15f}, {tiny, -tiny}, {0x0002, 0x01ff});
  ExpectBits<half>("Maximum", {tiny, -tiny}, {0, -1}, {0x0001, 0x8001});
  ExpectBits<half>("RealDiv", {1023 * tiny, 1}, {1, -32768}, {0x03ff, 0x8200});
}

// The order of the steps decides what becomes 0 or infinite on the way.
TEST(NarrowFloats, GradientsOfRootsHaveTensorFlowsOrder) {
  ExpectBits<half>("SqrtGrad", {0, 0x1.b6p-17f}, {0x1p-24f, 0x1p-24f}, {0x7c00, 0x18ad});
  ExpectBits<half>("RsqrtGrad", {13.1484375f, 0.0002f}, {0x1p-24f, 1}, {0x8464, 0x8000});
}

TEST(NarrowFloats, SinhKeepsTheSmallestNumbers) {
  ExpectBits<bfloat16>("Sinh", {0x1.fp-126f, -0x1p-126f}, {0x00f8, 0x8080});
}

TEST(NarrowFloats, GradientOfZeroStaysZero) {
  for (const char* op : {"SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad"}) {
    const auto got = RunFed(
        op, {Tensor::Vector<float>({0, INFINITY, NAN, 2}), Tensor::Vector<float>({0, 0, 0, 0})});
    ASSERT_TRUE(got.ok()) << op << ": " << got.status();
    for (int i = 0; i < 4; ++i) EXPECT_EQ((*got)[0].data<float>()[i], 0) << op << " " << i;
  }
}

}  // namespace
}  // namespace weir
