#include "weir/ops/framework/cond.h"
#include "weir/ops/layers/layers_internal.h"
#include "weir/ops/nn/nn.h"

namespace weir::layers {

namespace {

// Multiplies over the last dimension of inputs whose shape is not static: the other dimensions are
// flattened at run time and restored afterward. `kernel` is a matrix.
Output TensordotAtRunTime(const Output& x, const Output& kernel, const std::string& name) {
  Graph& g = x.graph();
  const int rank = x.shape().rank();
  std::vector<int32_t> outer(rank - 1);
  for (int i = 0; i < rank - 1; ++i) outer[i] = i;
  const Output axes = Const<int32_t>(g, {rank - 1}, "axes");
  const Output free = Const(g, outer, "free");
  const Output shape = ShapeTensor(x);
  const Output free_dims = Gather(shape, free);
  const Output summed_dims = Gather(shape, axes);
  const auto product = [&g](const Output& dims) {
    const Output all = Const<int32_t>(g, {0});
    return ReduceProd(dims, all);
  };
  const Output rows = product(free_dims);
  const Output columns = product(summed_dims);
  const Output order = Concat({free, axes}, 0);
  const Output flat = Stack({rows, columns});
  const Output matrix = Reshape(Transpose(x, order), flat);
  const Output result = MatMul(matrix, kernel);
  const Output units = Const<int32_t>(g, {static_cast<int32_t>(kernel.dim(1))});
  return Reshape(result, Concat({free_dims, units}, 0), name);
}

Output Product(const Layer& layer, const Output& x, const Variable& kernel) {
  Graph& g = layer.graph();
  const int rank = x.shape().rank();
  if (rank == 2) {
    return InScope(g, "MatMul", [&](const std::string& name) {
      return MatMul(x, kernel.value(), {.name = name});
    });
  }
  return InScope(g, "Tensordot", [&](const std::string& name) {
    const Output w = kernel.value();
    if (!x.shape().IsFullyDefined()) return TensordotAtRunTime(x, w, name);
    return Tensordot(x, w, {rank - 1}, {0}, name);
  });
}

}  // namespace

Output Dense(Output inputs, int64_t units, const DenseOptions& o) {
  if (!inputs.valid()) return {};
  Layer layer(inputs.graph(), o.name, "dense", o.reuse);
  if (!IsFloating(inputs.dtype()) && !IsComplex(inputs.dtype())) {
    return layer.Fail(
        absl::StrCat("A Dense layer can only be built with a floating-point dtype. Received: ",
                     "dtype=", DataTypeName(inputs.dtype())));
  }
  if (units <= 0) {
    return layer.Fail(absl::StrCat("Received an invalid value for `units`, expected a positive ",
                                   "integer. Received: units=", units));
  }
  if (inputs.shape().rank() < 2 || inputs.dim(-1) < 0) {
    return layer.Fail(absl::StrCat("The inputs to a Dense layer must have rank 2 or more, and the ",
                                   "last dimension should be defined. Full input shape received: ",
                                   inputs.shape().ToString()));
  }
  const DataType dtype = inputs.dtype();
  const Variable kernel = layer.AddWeight(
      "kernel", Shape({inputs.dim(-1), units}), dtype,
      {o.kernel_initializer, o.kernel_regularizer, o.kernel_constraint, o.trainable});
  Variable bias;
  if (o.use_bias) {
    bias =
        layer.AddWeight("bias", Shape({units}), dtype,
                        {o.bias_initializer, o.bias_regularizer, o.bias_constraint, o.trainable});
  }
  if (!kernel.valid() || (o.use_bias && !bias.valid())) return {};
  Output outputs = Product(layer, inputs, kernel);
  if (!outputs.valid()) return {};
  Shape shape = inputs.shape();
  shape.set_dim(shape.rank() - 1, units);
  layer.graph().Fail(layer.graph().RefineShape(outputs, shape));
  if (bias.valid()) outputs = layer.AddBias(outputs, bias, "NHWC");
  return layer.Finish(outputs, o.activation, o.activity_regularizer);
}

Output Flatten(Output inputs, const FlattenOptions& o) {
  if (!inputs.valid()) return {};
  Graph& g = inputs.graph();
  const Layer layer(g, o.name, "flatten");
  const int rank = inputs.shape().rank();
  if (rank == 0) return layer.Fail("expected min_ndim=1, found a scalar");
  if (o.data_format == "channels_first" && rank > 1) {
    std::vector<int64_t> order = {0};
    for (int i = 2; i < rank; ++i) order.push_back(i);
    order.push_back(1);
    inputs = Transpose(inputs, order);
  } else if (o.data_format != "channels_first" && o.data_format != "channels_last") {
    return layer.Fail(absl::StrCat("The `data_format` argument must be one of \"channels_first\", ",
                                   "\"channels_last\". Received: ", o.data_format));
  }
  if (!inputs.valid()) return {};
  if (rank == 1) return ExpandDims(inputs, 1);
  if (rank > 1) {
    const int64_t inner = inputs.shape().Sub(1).num_elements();
    const int64_t batch = inputs.dim(0);
    if (inner >= 0) return Reshape(inputs, Ints{-1, inner}.In(g, "Const"));
    if (batch >= 0) return Reshape(inputs, Ints{batch, -1}.In(g, "Const"));
  }
  const Output batch = StridedSlice(ShapeTensor(inputs), {0});
  return InScope(g, "Reshape", [&](const std::string& name) {
    const Output shape = InScope(g, "shape", [&](const std::string& inner) {
      return AddOp("Pack", {Outputs{batch, Const<int32_t>(g, -1, "1")}}, {}, inner);
    });
    return Reshape(inputs, shape, name);
  });
}

namespace {

// Returns the noise shape, with the inputs' dimensions in place of -1.
Output NoiseShape(const Output& x, const std::vector<int64_t>& wanted) {
  Graph& g = x.graph();
  const Output shape = ShapeTensor(x);
  Outputs dims(wanted.size());
  bool is_static = true;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] >= 0) continue;
    dims[i] = StridedSlice(shape, {static_cast<int64_t>(i)});
    is_static = false;
  }
  if (is_static) return Ints(wanted).In(g, "Const", DT_INT32);
  return InScope(g, "packed", [&](const std::string& name) {
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (!dims[i].valid()) dims[i] = Const(g, static_cast<int32_t>(wanted[i]), absl::StrCat(i));
    }
    return AddOp("Pack", {dims}, {}, name);
  });
}

// Returns the rate if it is a literal number.
std::optional<double> NumberOf(const TensorArg& rate) {
  if (!rate.is_literal() || !rate.literal().shape().IsScalar()) return std::nullopt;
  const absl::StatusOr<Tensor> number = rate.literal().Make(DT_DOUBLE);
  if (!number.ok()) return std::nullopt;
  return number->scalar<double>();
}

Output ApplyDropout(const Output& x, const TensorArg& rate, const DropoutOptions& o) {
  weir::DropoutOptions options{.seed = o.seed};
  if (o.noise_shape) options.noise_shape = NoiseShape(x, *o.noise_shape);
  if (const std::optional<double> number = NumberOf(rate))
    return weir::Dropout(x, *number, options);
  return weir::Dropout(x, rate.output(), options);
}

}  // namespace

Output Dropout(Output inputs, const TensorArg& rate, const DropoutOptions& o) {
  if (!inputs.valid()) return {};
  const Layer layer(inputs.graph(), o.name, "dropout");
  const std::optional<double> number = NumberOf(rate);
  if (rate.is_literal() && !(number && *number >= 0 && *number <= 1)) {
    return layer.Fail(absl::StrCat("Invalid value ", number ? absl::StrCat(*number) : "",
                                   " received for `rate`, expected a value between 0 and 1."));
  }
  if (o.noise_shape && inputs.shape().has_rank() &&
      static_cast<int>(o.noise_shape->size()) != inputs.shape().rank()) {
    return layer.Fail(absl::StrCat("`noise_shape` has ", o.noise_shape->size(),
                                   " dimensions, and the inputs have shape ",
                                   inputs.shape().ToString()));
  }
  if (number && *number == 0) return Identity(inputs);
  const auto kept = [&] { return Identity(inputs); };
  const auto dropped = [&] { return ApplyDropout(inputs, rate, o); };
  if (o.training.is_tensor()) return Cond(o.training.tensor(), dropped, kept);
  return o.training.value() ? dropped() : kept();
}

Output Embedding(Output inputs, int64_t input_dim, int64_t output_dim, const EmbeddingOptions& o) {
  if (!inputs.valid()) return {};
  Layer layer(inputs.graph(), o.name, "embedding", o.reuse);
  if (input_dim <= 0 || output_dim <= 0) {
    return layer.Fail(
        absl::StrCat("Both `input_dim` and `output_dim` should be positive, Received ",
                     "input_dim = ", input_dim, " and output_dim = ", output_dim));
  }
  if (inputs.dtype() != DT_INT32 && inputs.dtype() != DT_INT64) inputs = Cast(inputs, DT_INT32);
  const Variable embeddings = layer.AddWeight(
      "embeddings", Shape({input_dim, output_dim}), o.dtype,
      {o.embeddings_initializer, o.embeddings_regularizer, o.embeddings_constraint, o.trainable});
  if (!embeddings.valid()) return {};
  return EmbeddingLookup(embeddings, inputs);
}

}  // namespace weir::layers
