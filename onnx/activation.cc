#include "weir/onnx/building.h"
#include "weir/onnx/importers.h"
#include "weir/ops/lib/math.h"
#include "weir/ops/nn/nn.h"

// Activations. Those that TensorFlow has not are composed as their definitions say.
namespace weir::onnx {

namespace {

using Unary = Output (*)(Output, absl::string_view);

template <Unary kMake>
absl::Status ImportUnary(NodeContext& c) {
  return c.Return(kMake(c.in(0), {}));
}

absl::Status ImportRelu(NodeContext& c) { return c.Return(Relu(c.in(0))); }

absl::Status ImportLeakyRelu(NodeContext& c) {
  return c.Return(LeakyRelu(c.in(0), c.Float("alpha", 0.01f)));
}

// x where positive, else alpha (exp(x) - 1).
Output EluOf(const Output& x, double alpha) {
  if (alpha == 1) return Elu(x);
  const Output negative = Multiply(ScalarLike(x, alpha), Expm1(Minimum(x, ScalarLike(x, 0))));
  return Add(Relu(x), negative);
}

absl::Status ImportElu(NodeContext& c) { return c.Return(EluOf(c.in(0), c.Float("alpha", 1.0f))); }

absl::Status ImportSelu(NodeContext& c) {
  constexpr float kAlpha = 1.67326319217681884765625f, kGamma = 1.05070102214813232421875f;
  const float alpha = c.Float("alpha", kAlpha), gamma = c.Float("gamma", kGamma);
  const Output x = c.in(0);
  if (alpha == kAlpha && gamma == kGamma) return c.Return(Selu(x));
  return c.Return(Multiply(ScalarLike(x, gamma), EluOf(x, alpha)));
}

// max(0, x) + min(0, alpha (exp(x / alpha) - 1)).
absl::Status ImportCelu(NodeContext& c) {
  const Output x = c.in(0), alpha = ScalarLike(x, c.Float("alpha", 1.0f)), zero = ScalarLike(x, 0);
  const Output negative = Multiply(alpha, Expm1(RealDiv(Minimum(x, zero), alpha)));
  return c.Return(Add(Relu(x), negative));
}

absl::Status ImportPRelu(NodeContext& c) {
  const Output x = c.in(0), zero = ScalarLike(x, 0);
  return c.Return(SelectV2(Less(x, zero), Multiply(c.in(1), x), x));
}

absl::Status ImportThresholdedRelu(NodeContext& c) {
  const Output x = c.in(0), alpha = ScalarLike(x, c.Float("alpha", 1.0f));
  return c.Return(SelectV2(Greater(x, alpha), x, ScalarLike(x, 0)));
}

Output HardSigmoidOf(const Output& x, double alpha, double beta) {
  const Output line = Add(Multiply(x, ScalarLike(x, alpha)), ScalarLike(x, beta));
  return Maximum(ScalarLike(x, 0), Minimum(ScalarLike(x, 1), line));
}

absl::Status ImportHardSigmoid(NodeContext& c) {
  return c.Return(HardSigmoidOf(c.in(0), c.Float("alpha", 0.2f), c.Float("beta", 0.5f)));
}

absl::Status ImportHardSwish(NodeContext& c) {
  return c.Return(Multiply(c.in(0), HardSigmoidOf(c.in(0), 1.0 / 6, 0.5)));
}

absl::Status ImportSwish(NodeContext& c) {
  const Output x = c.in(0);
  const float alpha = c.Float("alpha", 1.0f);
  const Output scaled = alpha == 1 ? x : Multiply(ScalarLike(x, alpha), x);
  return c.Return(Multiply(x, Sigmoid(scaled)));
}

absl::Status ImportMish(NodeContext& c) {
  return c.Return(Multiply(c.in(0), Tanh(Softplus(c.in(0)))));
}

// x Phi(x), with the normal distribution by erf, or as Hendrycks and Gimpel approximate it by tanh.
absl::Status ImportGelu(NodeContext& c) {
  const Output x = c.in(0), half = ScalarLike(x, 0.5), one = ScalarLike(x, 1);
  const std::string approximate = c.String("approximate", "none");
  if (approximate == "none") {
    const Output erf = Erf(Multiply(x, ScalarLike(x, 0.70710678118654752440)));
    return c.Return(Multiply(Multiply(half, x), Add(erf, one)));
  }
  if (approximate != "tanh")
    return InvalidArgument("approximate is '", approximate, "'; expected none or tanh");
  const Output cube = Multiply(x, Multiply(x, x));
  const Output inner = Add(x, Multiply(ScalarLike(x, 0.044715), cube));
  const Output tanh = Tanh(Multiply(ScalarLike(x, 0.79788456080286535588), inner));
  return c.Return(Multiply(Multiply(half, x), Add(one, tanh)));
}

// x + bias below -lambd, x - bias above lambd, and 0 between.
absl::Status ImportShrink(NodeContext& c) {
  const Output x = c.in(0), zero = ScalarLike(x, 0);
  const float lambd = c.Float("lambd", 0.5f), bias = c.Float("bias", 0.0f);
  const Output wide = IsFloating(x.dtype()) ? x : Cast(x, DT_FLOAT);
  const Output low = Cast(Add(wide, ScalarLike(wide, bias)), x.dtype());
  const Output high = Cast(Subtract(wide, ScalarLike(wide, bias)), x.dtype());
  const Output is_low = Less(wide, ScalarLike(wide, -lambd));
  const Output is_high = Greater(wide, ScalarLike(wide, lambd));
  return c.Return(SelectV2(is_low, low, SelectV2(is_high, high, zero)));
}

constexpr Importer kImporters[] = {
    {"Celu", 12, 1, 1, ImportCelu},
    {"Elu", 7, 1, 1, ImportElu},
    {"Gelu", 20, 1, 1, ImportGelu},
    {"HardSigmoid", 7, 1, 1, ImportHardSigmoid},
    {"HardSwish", 14, 1, 1, ImportHardSwish},
    {"LeakyRelu", 7, 1, 1, ImportLeakyRelu},
    {"Mish", 18, 1, 1, ImportMish},
    {"PRelu", 7, 2, 2, ImportPRelu},
    {"Relu", 7, 1, 1, ImportRelu},
    {"Selu", 7, 1, 1, ImportSelu},
    {"Shrink", 9, 1, 1, ImportShrink},
    {"Sigmoid", 7, 1, 1, ImportUnary<Sigmoid>},
    {"Softplus", 7, 1, 1, ImportUnary<Softplus>},
    {"Softsign", 7, 1, 1, ImportUnary<Softsign>},
    {"Swish", 24, 1, 1, ImportSwish},
    {"ThresholdedRelu", 10, 1, 1, ImportThresholdedRelu},
};

}  // namespace

absl::Span<const Importer> ActivationImporters() { return kImporters; }

}  // namespace weir::onnx
