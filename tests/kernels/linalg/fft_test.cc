#include <cmath>
#include <complex>

#include "gtest/gtest.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/linalg/fft.h"
#include "weir/tests/evaluate.h"
#include "weir/tests/kernels/lib/numeric_gradient.h"

// Gradients checked to order 2 by tests: FFT, FFT2D, FFT3D, IFFT, IFFT2D, IFFT3D, IRFFT,
// IRFFT2D, RFFT, RFFT2D.

namespace weir {
namespace {

Tensor I32(std::initializer_list<int32_t> values) { return Tensor::Vector<int32_t>(values); }

// A weighted sum of the real and imaginary parts.
Output PartsOf(const Output& z) { return WeightedSum(Real(z)) + 0.5 * WeightedSum(Imag(z)); }
Output FromParts(const Output& x) {
  return Complex(StridedSlice(x, {Index(0)}), StridedSlice(x, {Index(1)}));
}

// Squares, so that the second derivative is nonzero.
TEST(Fft, GradientsOfComplexTransforms) {
  const struct {
    Output (*transform)(Output x, absl::string_view name);
    Shape shape;
  } rows[] = {{Fft, {2, 2, 5}},    {Ifft, {2, 2, 5}},     {Fft2d, {2, 2, 3}},
              {Ifft2d, {2, 2, 3}}, {Fft3d, {2, 2, 3, 2}}, {Ifft3d, {2, 2, 3, 2}}};
  for (const auto& row : rows) {
    const auto loss = [&](Output x) { return PartsOf(Square(row.transform(FromParts(x), {}))); };
    ExpectGradient(loss, row.shape, 2);
  }
}

TEST(Fft, GradientsOfRealTransforms) {
  for (const int64_t n : {4, 5}) {
    SCOPED_TRACE(n);
    const int64_t half = n / 2 + 1;
    ExpectGradient([n](Output x) { return PartsOf(Square(Rfft(x, {n}))); }, {2, n}, 2);
    ExpectGradient([n](Output x) { return PartsOf(Square(Rfft2d(x, {3, n}))); }, {2, 3, n}, 2);
    ExpectGradient([n](Output x) { return WeightedSum(Square(Irfft(FromParts(x), {n}))); },
                   {2, 2, half}, 2);
    ExpectGradient(
        [n](Output x) {
          return WeightedSum(Square(Irfft2d(FromParts(x), {3, n})));
        },
        {2, 3, half}, 2);
  }
}

TEST(Fft, DeprecatedOpsRunInOldGraphs) {
  Graph g;
  g.versions().producer = 10;
  const Output x = Const<std::complex<float>>(g, {1, 1, 2}, {1, 3});
  Outputs all;
  for (const char* op :
       {"BatchFFT", "BatchFFT2D", "BatchFFT3D", "BatchIFFT", "BatchIFFT2D", "BatchIFFT3D"}) {
    all.push_back(AddOp(op, {x}));
  }
  ASSERT_TRUE(g.status().ok()) << g.status();
  const absl::StatusOr<Tensors> y = Evaluate(g, all);
  ASSERT_TRUE(y.ok()) << y.status();
  for (size_t i = 0; i < y->size(); ++i) {
    const float scale = i < 3 ? 1 : 0.5f;
    EXPECT_EQ((*y)[i].data<std::complex<float>>()[0], 4 * scale);
    EXPECT_EQ((*y)[i].data<std::complex<float>>()[1], -2 * scale);
  }
}

// Frequencies that a float can hold, though a sum on the way to them would not.
TEST(Fft, RealTransformsOfHugeNumbersAreFinite) {
  for (const int n : {4, 64, 4096}) {
    std::vector<float> x(n);
    x[0] = 3e38f;
    const auto y = RunFed("RFFT", {Tensor::Vector<float>(x), I32({n})});
    ASSERT_TRUE(y.ok()) << y.status();
    for (const std::complex<float> z : (*y)[0].flat<std::complex<float>>()) {
      EXPECT_EQ(z.real(), 3e38f) << n;
      EXPECT_EQ(z.imag(), 0) << n;
    }
    // The sum of both ends cancels in all others.
    std::vector<std::complex<float>> ends(n / 2 + 1);
    ends.front() = ends.back() = 3e38f;
    const auto back = RunFed("IRFFT", {Tensor::Vector<std::complex<float>>(ends), I32({n})});
    ASSERT_TRUE(back.ok()) << back.status();
    for (const float v : (*back)[0].flat<float>()) EXPECT_TRUE(std::isfinite(v)) << n;
  }
}

TEST(Fft, RejectsMismatchedArguments) {
  const Tensor x = Tensor::Vector<float>({1, 2, 3});
  const Tensor z = Tensor::Vector<std::complex<float>>({1, 2, 3});
  const struct {
    const char* op;
    Tensors inputs;
    const char* message;
  } rows[] = {
      {"FFT", {Tensor::Scalar(std::complex<float>(1))}, "must have rank of at least 1"},
      {"FFT2D", {z}, "must have rank of at least 2"},
      {"RFFT", {x, I32({4})}, "must have length of at least 4 but got: 3"},
      {"RFFT", {x, I32({-1})}, "must >= 0"},
      {"RFFT", {x, I32({2, 2})}, "fft_length must have shape [1]"},
      {"IRFFT", {z, I32({6})}, "must have length of at least 4 but got: 3"},
      {"FFTND", {z, I32({3}), I32({1})}, ""},
      {"FFTND", {z, I32({3, 3}), I32({0, 0})}, "rank of at least 2"},
      {"FFTND", {z, I32({3, 3}), I32({0})}, "fft_length must have shape"},
  };
  for (const auto& row : rows) {
    const absl::StatusOr<Tensors> y = RunFed(row.op, row.inputs);
    EXPECT_EQ(y.status().code(), absl::StatusCode::kInvalidArgument) << row.op;
    EXPECT_NE(y.status().message().find(row.message), std::string::npos) << y.status();
  }
  const auto mixed = RunFed("RFFT", {x, I32({2})}, {{"Tcomplex", DT_COMPLEX128}});
  EXPECT_EQ(mixed.status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace

}  // namespace weir
