// Compares weir::layers with the graphs of tf.layers (make_layer_goldens.py). The reference is
// tf_keras, which continues TensorFlow 1's layers. For channels-first images it adds transpositions
// on machines without a GPU; these are omitted here.

#include "weir/core/graph/scope.h"
#include "weir/ops/framework/variable_scope.h"
#include "weir/ops/layers/layers.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/nn/nn.h"
#include "weir/tests/ops/lib/goldens.h"

namespace weir {
namespace {

Output In(Graph& g, absl::string_view name, const Shape& shape, DataType dtype = DT_FLOAT) {
  return Placeholder(g, dtype, shape, name);
}

// A scope whose initializer is the script's glorot().
class Glorot {
 public:
  explicit Glorot(Graph& g)
      : scope_(g, CurrentVariableScope(g), VariableScopeOptions{.initializer = GlorotUniform(1)}) {}

 private:
  VariableScope scope_;
};

void Dense(Graph& g) {
  Output y = In(g, "x", {-1, 4});
  const Glorot glorot(g);
  y = layers::Dense(y, 3, {.activation = Relu});
  y = layers::Dense(y, 2, {.use_bias = false});
  y = layers::Dense(y, 5, {.trainable = false, .name = "named"});
  {
    const VariableScope outer(g, "outer");
    y = layers::Dense(y, 5);
    layers::Dense(y, 5, {.name = "shared"});
    layers::Dense(y, 5, {.name = "shared", .reuse = Reuse::kReuse});
  }
  const NameScope tower(g, "tower");
  layers::Dense(y, 2);
}

void DenseOfRank3(Graph& g) {
  const Glorot glorot(g);
  layers::Dense(In(g, "x", {2, 3, 4}), 5);
  layers::Dense(In(g, "open", {-1, 3, 4}), 5);
}

void Regularized(Graph& g) {
  const Output x = In(g, "x", {4, 4});
  const layers::NormRegularizer l1 = layers::L1Regularizer(0.1), l2 = layers::L2Regularizer(0.2);
  const Glorot glorot(g);
  for (const std::optional<Reuse> reuse : {std::optional<Reuse>(), {Reuse::kReuse}}) {
    layers::Dense(x, 3,
                  {.kernel_regularizer = l2, .bias_regularizer = l1, .name = "a", .reuse = reuse});
  }
  layers::Dense(x, 3, {.kernel_regularizer = layers::L1L2(0.1, 0.2)});
  layers::Dense(x, 3, {.activity_regularizer = l2});
  layers::Dense(In(g, "open", {-1, 4}), 3, {.activity_regularizer = l2});
}

void Partitioned(Graph& g) {
  const VariableScope scope(
      g, "p", {.initializer = GlorotUniform(1), .partitioner = FixedSizePartitioner(2)});
  const Output x =
      layers::Dense(In(g, "x", {-1, 4}), 3, {.kernel_regularizer = layers::L2Regularizer(0.2)});
  layers::BatchNormalization(x, {.training = true});
}

void Initializers(Graph& g) {
  layers::Dense(In(g, "x", {4, 4}, DT_DOUBLE), 3,
                {.kernel_initializer = Ones(), .bias_initializer = Constant(0.5)});
}

void Conv(Graph& g) {
  const Glorot glorot(g);
  layers::Conv1D(In(g, "line", {-1, 9, 2}), 4, 3, {.strides = 2, .activation = Relu});
  layers::Conv1D(In(g, "line_first", {2, 2, 9}), 4, 3, {.data_format = "channels_first"});
  const Output x = In(g, "x", {-1, 8, 8, 3});
  layers::Conv2D(x, 4, 3, {.padding = "same", .activation = Relu});
  layers::Conv2D(x, 4, {3, 2}, {.strides = {2, 1}, .use_bias = false});
  layers::Conv2D(In(g, "first", {-1, 3, 8, 8}), 4, 3, {.data_format = "channels_first"});
  layers::Conv3D(In(g, "cube", {2, 5, 5, 5, 2}), 3, 2);
}

void Dilated(Graph& g) {
  const Glorot glorot(g);
  layers::Conv2D(In(g, "x", {2, 8, 8, 3}), 4, 3, {.padding = "same", .dilation_rate = 2});
  layers::Conv2D(In(g, "open", {-1, 8, 8, 3}), 4, 3, {.dilation_rate = {1, 2}});
  layers::Conv1D(In(g, "line", {2, 9, 2}), 4, 3, {.dilation_rate = 2});
}

void Transposed(Graph& g) {
  const Glorot glorot(g);
  layers::Conv2DTranspose(In(g, "x", {2, 4, 4, 3}), 5, 3, {.strides = 2, .padding = "same"});
  layers::Conv2DTranspose(In(g, "open", {-1, 4, -1, 3}), 5, 3, {.strides = {2, 1}});
}

void Separable(Graph& g) {
  const Glorot glorot(g);
  const Output x = In(g, "x", {-1, 8, 8, 3});
  layers::SeparableConv2D(x, 4, 3, {.depth_multiplier = 2, .activation = Relu});
  layers::SeparableConv2D(x, 4, 3, {.strides = 2, .padding = "same", .use_bias = false});
  layers::SeparableConv2D(In(g, "fixed", {2, 8, 8, 3}), 4, 3, {.dilation_rate = 2});
}

void BatchNormalization(Graph& g) {
  const Output x = In(g, "x", {-1, 4});
  layers::BatchNormalization(x, {.training = true});
  layers::BatchNormalization(x);
  const Output image = In(g, "image", {-1, 5, 5, 4});
  layers::BatchNormalization(image, {.momentum = 0.9, .epsilon = 1e-4, .training = true});
  layers::BatchNormalization(image);
  layers::BatchNormalization(image, {.center = false, .scale = false, .training = true});
  layers::BatchNormalization(image, {.training = true, .trainable = false, .fused = false});
  layers::BatchNormalization(In(g, "first", {-1, 4, 5, 5}), {.axis = 1, .training = true});
  layers::BatchNormalization(In(g, "rank3", {2, 4, 5}), {.axis = 1, .training = true});
}

void BatchNormalizationByTensor(Graph& g) {
  const Output training = In(g, "training", Shape(), DT_BOOL);
  layers::BatchNormalization(In(g, "x", {-1, 4}), {.training = training});
  layers::BatchNormalization(In(g, "image", {-1, 5, 5, 4}), {.training = training});
}

void Dropout(Graph& g) {
  const Output x = In(g, "x", {-1, 4});
  layers::Dropout(x);
  layers::Dropout(x, 0.3, {.seed = 1, .training = true});
  layers::Dropout(x, 0.3, {.noise_shape = {{-1, 1}}, .seed = 1, .training = true});
  layers::Dropout(x, 0.3, {.seed = 1, .training = true, .name = "drop"});
  layers::Dropout(x, In(g, "rate", Shape()), {.seed = 1, .training = true});
}

void DropoutByTensor(Graph& g) {
  const Output x = In(g, "x", {-1, 4});
  layers::Dropout(x, 0.5, {.seed = 1, .training = In(g, "training", Shape(), DT_BOOL)});
}

void Flatten(Graph& g) {
  layers::Flatten(In(g, "x", {-1, 4, 3}));
  layers::Flatten(In(g, "y", {2, -1, 3}));
  layers::Flatten(In(g, "z", {-1, -1, 3}));
  layers::Flatten(In(g, "v", {-1}));
  layers::Flatten(In(g, "first", {-1, 4, 3, 2}),
                  {.data_format = "channels_first", .name = "named"});
}

void Pooling(Graph& g) {
  const Output x = In(g, "x", {-1, 8, 8, 3});
  layers::MaxPooling2D(x, 2, 2);
  layers::AveragePooling2D(x, {3, 2}, {2, 1}, {.padding = "same"});
  layers::MaxPooling2D(In(g, "first", {-1, 3, 8, 8}), 2, 2, {.data_format = "channels_first"});
  const Output line = In(g, "line", {-1, 8, 3});
  layers::MaxPooling1D(line, 2, 2);
  layers::AveragePooling1D(line, 3, 1, {.padding = "same", .name = "named"});
}

const GoldenProgram kPrograms[] = {
    {"layer_dense", Dense},
    {"layer_dense_of_rank_3", DenseOfRank3},
    {"layer_regularized", Regularized},
    {"layer_partitioned", Partitioned},
    {"layer_initializers", Initializers},
    {"layer_conv", Conv},
    {"layer_dilated", Dilated},
    {"layer_transposed", Transposed},
    {"layer_separable", Separable},
    {"layer_batch_normalization", BatchNormalization},
    {"layer_batch_normalization_by_tensor", BatchNormalizationByTensor},
    {"layer_dropout", Dropout},
    {"layer_dropout_by_tensor", DropoutByTensor},
    {"layer_flatten", Flatten},
    {"layer_pooling", Pooling},
};

INSTANTIATE_TEST_SUITE_P(Layers, GoldenTest, GoldensOf(kPrograms), GoldenName);

}  // namespace
}  // namespace weir
