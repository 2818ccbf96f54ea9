#include "weir/ops/framework/initializers.h"

#include <algorithm>
#include <cmath>

#include "weir/core/graph/scope.h"
#include "weir/core/tensor/repeated_tensor.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/random/random.h"

namespace weir {

namespace {

Initializer Uniform(double min, double max, Seed seed) {
  return [=](const InitializerArgs& a) {
    // The default range [0, 1) contains no integer but zero.
    if (IsInteger(a.dtype) && min == 0 && max == 1) {
      a.graph.Fail(
          InvalidArgument("RandomUniformInitializer: Must specify maxval for integer "
                          "dtype ",
                          DataTypeName(a.dtype)));
      return Output();
    }
    return RandomUniform(a.graph, a.shape,
                         {.min = min, .max = max, .dtype = a.dtype, .seed = seed});
  };
}

bool CheckFloating(const InitializerArgs& a, absl::string_view what) {
  if (IsFloating(a.dtype)) return true;
  a.graph.Fail(InvalidArgument("Initializer ", what, ": Expected floating point type, got ",
                               DataTypeName(a.dtype)));
  return false;
}

// Returns the full variable's shape if only a part of it is initialized.
const Shape& ScalingShape(const InitializerArgs& a) {
  return a.partition ? a.partition->full_shape : a.shape;
}

struct Fans {
  double in = 1, out = 1;
};

Fans ComputeFans(const Shape& shape) {
  if (shape.rank() == 0) return {};
  if (shape.rank() == 1)
    return {static_cast<double>(shape.dim(0)), static_cast<double>(shape.dim(0))};
  double receptive_field = 1;
  for (int i = 0; i < shape.rank() - 2; ++i) receptive_field *= static_cast<double>(shape.dim(i));
  return {shape.dim(-2) * receptive_field, shape.dim(-1) * receptive_field};
}

// Fills `shape` in row-major order and repeats the last value. INVALID_ARGUMENT if there are more
// values than elements.
absl::StatusOr<Tensor> FillWithRepetition(const Tensor& values, const Shape& shape) {
  const int64_t given = values.num_elements(), wanted = shape.num_elements();
  if (given == wanted) return values.Reshaped(shape);
  if (given > wanted) {
    return InvalidArgument("Too many elements provided. Takes at most ", wanted, ", but got ",
                           given, ".");
  }
  if (given == 0) return InvalidArgument("Constant: no value for ", wanted, " elements");
  if (given == 1 && IsPlain(values.dtype())) return RepeatedTensor(values.Reshaped(Shape()), shape);
  WEIR_ASSIGN_OR_RETURN(Tensor out, Tensor::Allocate(HostAllocator(), values.dtype(), shape));
  if (values.dtype() == DT_STRING) {
    const std::string* from = values.data<std::string>();
    for (int64_t i = 0; i < wanted; ++i) out.data<std::string>()[i] = from[std::min(i, given - 1)];
  } else {
    const int64_t size = static_cast<int64_t>(ElementSize(values.dtype()));
    char* to = static_cast<char*>(out.raw());
    std::copy_n(static_cast<const char*>(values.raw()), given * size, to);
    RepeatElement(to + (given - 1) * size, static_cast<size_t>(size), to + given * size,
                  wanted - given);
  }
  return out;
}

Output MakeConstant(const InitializerArgs& a, const Literal& value, bool verify_shape) {
  absl::StatusOr<Tensor> values = value.Make(a.dtype);
  if (values.ok() && verify_shape && values->shape() != a.shape) {
    values = InvalidArgument("Expected Tensor's shape: ", a.shape.ToString(), ", but got ",
                             values->shape().ToString(), ".");
  }
  if (values.ok()) values = FillWithRepetition(*values, a.shape);
  if (values.ok()) return Const(a.graph, *std::move(values));
  a.graph.Fail(values.status());
  return {};
}

// Returns gain * Q, where Q R = A is the QR decomposition of a random matrix A and the diagonal of
// R is made positive, so that Q is uniformly distributed. Source: Saxe et al., "Exact solutions to
// the nonlinear dynamics of learning in deep linear neural networks", 2014.
Output MakeOrthogonal(const InitializerArgs& a, float gain, Seed seed) {
  if (!CheckFloating(a, "Orthogonal")) return {};
  Graph& g = a.graph;
  if (a.shape.rank() < 2) {
    g.Fail(InvalidArgument(
        "The tensor to initialize must be at least two-dimensional, but its shape is ",
        a.shape.ToString()));
    return {};
  }
  int64_t rows = 1;
  for (int i = 0; i + 1 < a.shape.rank(); ++i) rows *= a.shape.dim(i);
  const int64_t columns = a.shape.dim(-1);
  const Output random = RandomNormal(g, {std::max(rows, columns), std::min(rows, columns)},
                                     {.dtype = a.dtype, .seed = seed});
  if (!random.valid()) return {};
  Node* qr = AddNode("Qr", {random}, {{"full_matrices", false}});
  if (qr == nullptr) return {};
  const Output sign = AddOp("Sign", {AddOp("DiagPart", {qr->output(1)})});
  Output q = AddOp("Mul", {qr->output(0), sign}, {}, "mul");
  if (rows < columns) {
    const NameScope scope(g, "matrix_transpose");
    q = Transpose(q, {1, 0}, "transpose");
  }
  q = Reshape(q, a.shape);
  const NameScope scope(g, "mul");
  return AddOp("Mul", {ConstOf(g, a.dtype, gain, "x"), q}, {}, scope.name());
}

// A part of a partitioned matrix is sliced from the whole matrix.
Output MakeIdentity(const InitializerArgs& a, float gain) {
  if (!CheckFloating(a, "Identity")) return {};
  Graph& g = a.graph;
  const Shape& full = ScalingShape(a);
  if (full.rank() != 2) {
    g.Fail(InvalidArgument(
        "Identity matrix initializer can only be used for 2D matrices, not for shape ",
        full.ToString()));
    return {};
  }
  const int64_t rows = full.dim(0), columns = full.dim(1);
  Output eye;
  {
    const NameScope scope(g, "eye");
    const Output ones = Ones(g, {std::min(rows, columns)}, a.dtype);
    eye = rows == columns ? MatrixDiag(ones, {}, "diag")
                          : MatrixSetDiag(Zeros(g, full, a.dtype), ones, {}, "set_diag");
  }
  if (a.partition) eye = Slice(eye, Ints(a.partition->offset), Ints(a.shape));
  const NameScope scope(g, "mul");
  return AddOp("Mul", {ConstOf(g, a.dtype, gain, "x"), eye}, {}, scope.name());
}

// The standard deviation of a standard normal distribution truncated at two standard deviations;
// source: TensorFlow.
constexpr double kTruncatedDeviation = .87962566103423978;

Output MakeScaled(const InitializerArgs& a, const VarianceScalingOptions& o) {
  using Options = VarianceScalingOptions;
  if (!CheckFloating(a, "VarianceScaling")) return {};
  if (!(o.scale > 0)) {
    a.graph.Fail(InvalidArgument("VarianceScaling: `scale` must be positive float, got ", o.scale));
    return {};
  }
  const Fans fans = ComputeFans(ScalingShape(a));
  const double n = o.mode == Options::kFanIn    ? fans.in
                   : o.mode == Options::kFanOut ? fans.out
                                                : (fans.in + fans.out) / 2;
  const double variance = o.scale / std::max(1., n);
  switch (o.distribution) {
    case Options::kTruncatedNormal:
      return TruncatedNormal(
          a.graph, a.shape,
          {.stddev = std::sqrt(variance) / kTruncatedDeviation, .dtype = a.dtype, .seed = o.seed});
    case Options::kUntruncatedNormal:
      return RandomNormal(a.graph, a.shape,
                          {.stddev = std::sqrt(variance), .dtype = a.dtype, .seed = o.seed});
    case Options::kUniform:
      break;
  }
  const double limit = std::sqrt(3 * variance);
  return RandomUniform(a.graph, a.shape,
                       {.min = -limit, .max = limit, .dtype = a.dtype, .seed = o.seed});
}

}  // namespace

Initializer Zeros() {
  return [](const InitializerArgs& a) { return Zeros(a.graph, a.shape, a.dtype); };
}

Initializer Ones() {
  return [](const InitializerArgs& a) { return Ones(a.graph, a.shape, a.dtype); };
}

Initializer Constant(Literal value, bool verify_shape) {
  return [=](const InitializerArgs& a) { return MakeConstant(a, value, verify_shape); };
}

Initializer RandomUniformInitializer(float min, float max, Seed seed) {
  return Uniform(min, max, seed);
}

Initializer RandomNormalInitializer(float mean, float stddev, Seed seed) {
  return [=](const InitializerArgs& a) {
    if (!CheckFloating(a, "RandomNormal")) return Output();
    return RandomNormal(a.graph, a.shape,
                        {.mean = mean, .stddev = stddev, .dtype = a.dtype, .seed = seed});
  };
}

Initializer TruncatedNormalInitializer(float mean, float stddev, Seed seed) {
  return [=](const InitializerArgs& a) {
    if (!CheckFloating(a, "TruncatedNormal")) return Output();
    return TruncatedNormal(a.graph, a.shape,
                           {.mean = mean, .stddev = stddev, .dtype = a.dtype, .seed = seed});
  };
}

Initializer UniformUnitScaling(float factor, Seed seed) {
  return [=](const InitializerArgs& a) {
    if (!CheckFloating(a, "UniformUnitScaling")) return Output();
    const Shape& shape = ScalingShape(a);
    double input_size = 1;
    for (int i = 0; i + 1 < shape.rank(); ++i) input_size *= static_cast<double>(shape.dim(i));
    const double limit = std::sqrt(3 / std::max(input_size, 1.)) * factor;
    return RandomUniform(a.graph, a.shape,
                         {.min = -limit, .max = limit, .dtype = a.dtype, .seed = seed});
  };
}

Initializer VarianceScaling(const VarianceScalingOptions& options) {
  return [=](const InitializerArgs& a) { return MakeScaled(a, options); };
}

namespace {

using Scaling = VarianceScalingOptions;

Initializer Scaled(double scale, Scaling::Mode mode, Scaling::Distribution distribution,
                   Seed seed) {
  return VarianceScaling(
      {.scale = scale, .mode = mode, .distribution = distribution, .seed = seed});
}

}  // namespace

Initializer GlorotUniform(Seed seed) {
  return Scaled(1, Scaling::kFanAvg, Scaling::kUniform, seed);
}
Initializer GlorotNormal(Seed seed) {
  return Scaled(1, Scaling::kFanAvg, Scaling::kTruncatedNormal, seed);
}
Initializer HeUniform(Seed seed) { return Scaled(2, Scaling::kFanIn, Scaling::kUniform, seed); }
Initializer HeNormal(Seed seed) {
  return Scaled(2, Scaling::kFanIn, Scaling::kTruncatedNormal, seed);
}
Initializer LecunUniform(Seed seed) { return Scaled(1, Scaling::kFanIn, Scaling::kUniform, seed); }
Initializer LecunNormal(Seed seed) {
  return Scaled(1, Scaling::kFanIn, Scaling::kTruncatedNormal, seed);
}

Initializer Orthogonal(float gain, Seed seed) {
  return [=](const InitializerArgs& a) { return MakeOrthogonal(a, gain, seed); };
}

Initializer Identity(float gain) {
  return [=](const InitializerArgs& a) { return MakeIdentity(a, gain); };
}

}  // namespace weir
