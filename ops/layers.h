#ifndef WEIR_OPS_LAYERS_H_
#define WEIR_OPS_LAYERS_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weir/core/graph.h"
#include "weir/ops/array.h"
#include "weir/ops/initializers.h"
#include "weir/ops/math.h"
#include "weir/ops/variable.h"

// Layers, as TensorFlow 1's tf.layers: functions that make their variables as they go.
//
//   Output x = layers::Conv2D(images, 32, 3, {.activation = Relu});
//   x = layers::MaxPooling2D(x, 2, 2);
//   x = layers::BatchNormalization(x, {.training = true});
//   Output logits = layers::Dense(layers::Flatten(x), 10, {.name = "logits"});
//
// Variables are "<name>/kernel", "<name>/bias" and so on, in the variable scope around; without a
// name the layers are "conv2d", "conv2d_1", ... They come from GetVariable: scopes, reuse, custom
// getters and the scope's initializer, regularizer and partitioner apply. Nodes have TensorFlow's
// names. What regularizers give is in the collection "regularization_losses", what a batch
// normalization has to do after a step in "update_ops":
//
//   ControlDependencies after(g, g.collection_as<Operation>("update_ops"));
//   Operation train = Adam(1e-3).Minimize(losses::GetTotalLoss(g));
//
// Images are [batch, height, width, channels] ("channels_last"), or [batch, channels, height,
// width] with data_format "channels_first". Errors stick to the graph and give an invalid Output:
// INVALID_ARGUMENT for ranks and arguments that do not fit, and where a dimension that decides the
// shape of a variable is not static.
namespace weir::layers {

// What is done to a layer's outputs: Relu, Tanh, any function of a tensor; none by default.
class Activation {
 public:
  Activation() = default;
  Activation(Output (*function)(Output, absl::string_view))
      : function_([function](Output x) { return function(x, {}); }) {}
  template <class F, std::enable_if_t<std::is_invocable_r_v<Output, const F&, Output>, int> = 0>
  Activation(F function) : function_(std::move(function)) {}
  explicit operator bool() const { return static_cast<bool>(function_); }
  Output operator()(Output x) const { return function_(x); }

 private:
  std::function<Output(Output)> function_;
};

// Whether a layer behaves as in training: known now, or a bool scalar that decides in the step.
class Training {
 public:
  Training(bool training) : training_(training) {}
  Training(Output training) : tensor_(training) {}
  bool is_tensor() const { return tensor_.valid(); }
  const Output& tensor() const { return tensor_; }
  bool value() const { return training_; }

 private:
  Output tensor_;
  bool training_ = false;
};

// ---- regularizers: scalars that grow with a variable (or with the outputs of a layer)

// l1 * sum |x| + l2 * sum x^2 of a variable, or of a layer's outputs.
class NormRegularizer {
 public:
  NormRegularizer(double l1, double l2, bool from_zero) : l1_(l1), l2_(l2), from_zero_(from_zero) {}
  Output operator()(const Variable& w) const;
  Output operator()(const Output& x) const;

 private:
  double l1_, l2_;
  bool from_zero_;  // the sum starts with a constant, as TensorFlow's does for two norms
};
inline NormRegularizer L1Regularizer(double scale) { return {scale, 0, false}; }
inline NormRegularizer L2Regularizer(double scale) { return {0, scale, false}; }
inline NormRegularizer L1L2(double l1, double l2) { return {l1, l2, true}; }
// Of a layer's outputs; what it gives is divided by the batch size.
using ActivityRegularizer = std::function<Output(Output)>;

// ---- dense

struct DenseOptions {
  Activation activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = {};  // the scope's, or GlorotUniform
  Initializer bias_initializer = Zeros();
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  ActivityRegularizer activity_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  bool trainable = true;
  std::string name = {};
  std::optional<Reuse> reuse = {};
};
// activation(inputs . kernel + bias) over the last dimension; kernel [inputs, units].
Output Dense(Output inputs, int64_t units, const DenseOptions& options = {});

// ---- convolution. Sizes, strides and dilations are one number for all dimensions, or one for
// each.

struct ConvOptions {
  Ints strides = 1;
  std::string padding = "valid";  // or "same"
  std::string data_format = "channels_last";
  Ints dilation_rate = 1;
  Activation activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = {};  // the scope's, or GlorotUniform
  Initializer bias_initializer = Zeros();
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  ActivityRegularizer activity_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  bool trainable = true;
  std::string name = {};
  std::optional<Reuse> reuse = {};
};
// kernel [size..., channels, filters].
Output Conv1D(Output inputs, int64_t filters, const Ints& kernel_size,
              const ConvOptions& options = {});
Output Conv2D(Output inputs, int64_t filters, const Ints& kernel_size,
              const ConvOptions& options = {});
Output Conv3D(Output inputs, int64_t filters, const Ints& kernel_size,
              const ConvOptions& options = {});
// Upsampling: the gradient of a convolution with kernel [height, width, filters, channels]. No
// dilation.
Output Conv2DTranspose(Output inputs, int64_t filters, const Ints& kernel_size,
                       const ConvOptions& options = {});

struct SeparableConvOptions {
  Ints strides = 1;
  std::string padding = "valid";
  std::string data_format = "channels_last";
  Ints dilation_rate = 1;
  int64_t depth_multiplier = 1;
  Activation activation = {};
  bool use_bias = true;
  Initializer depthwise_initializer = {};  // the scope's, or GlorotUniform
  Initializer pointwise_initializer = {};
  Initializer bias_initializer = Zeros();
  Regularizer depthwise_regularizer = {};
  Regularizer pointwise_regularizer = {};
  Regularizer bias_regularizer = {};
  ActivityRegularizer activity_regularizer = {};
  Constraint depthwise_constraint = {};
  Constraint pointwise_constraint = {};
  Constraint bias_constraint = {};
  bool trainable = true;
  std::string name = {};
  std::optional<Reuse> reuse = {};
};
// A filter of its own for each channel, then a 1x1 convolution: variables "depthwise_kernel"
// [height, width, channels, multiplier] and "pointwise_kernel".
Output SeparableConv2D(Output inputs, int64_t filters, const Ints& kernel_size,
                       const SeparableConvOptions& options = {});
// The first half of it. The options for pointwise kernels play no part.
Output DepthwiseConv2D(Output inputs, const Ints& kernel_size,
                       const SeparableConvOptions& options = {});

// ---- normalization

struct BatchNormalizationOptions {
  int64_t axis = -1;  // of the channels
  double momentum = 0.99;
  double epsilon = 1e-3;
  bool center = true;  // adds "beta"
  bool scale = true;   // multiplies by "gamma"
  Initializer beta_initializer = Zeros();
  Initializer gamma_initializer = Ones();
  Initializer moving_mean_initializer = Zeros();
  Initializer moving_variance_initializer = Ones();
  Regularizer beta_regularizer = {};
  Regularizer gamma_regularizer = {};
  Constraint beta_constraint = {};
  Constraint gamma_constraint = {};
  // True: normalizes by the batch's mean and variance, and adds ops to "update_ops" that let
  // "moving_mean" and "moving_variance" follow these. False: normalizes by the moving ones.
  Training training = false;
  // False: "gamma" and "beta" are not trained, and nothing goes to "update_ops".
  bool trainable = true;
  // One op for images and volumes whose channels are first or last, where the type is not double.
  bool fused = true;
  std::string name = {};
  std::optional<Reuse> reuse = {};
};
// (inputs - mean) / sqrt(variance + epsilon) * gamma + beta.
Output BatchNormalization(Output inputs, const BatchNormalizationOptions& options = {});

// ---- without variables

struct DropoutOptions {
  // Decisions are made for this shape, and broadcast; -1: the inputs' dimension.
  std::optional<std::vector<int64_t>> noise_shape = {};
  std::optional<int64_t> seed = {};
  Training training = false;
  std::string name = {};
};
// In training: zero with probability `rate` (a number or a scalar tensor), else
// inputs / (1 - rate). Otherwise the inputs.
Output Dropout(Output inputs, const TensorArg& rate = 0.5, const DropoutOptions& options = {});

struct FlattenOptions {
  std::string data_format = "channels_last";
  std::string name = {};
};
// All dimensions but the first as one.
Output Flatten(Output inputs, const FlattenOptions& options = {});

struct PoolingOptions {
  std::string padding = "valid";
  std::string data_format = "channels_last";
  std::string name = {};
};
Output MaxPooling1D(Output inputs, const Ints& pool_size, const Ints& strides,
                    const PoolingOptions& options = {});
Output MaxPooling2D(Output inputs, const Ints& pool_size, const Ints& strides,
                    const PoolingOptions& options = {});
Output AveragePooling1D(Output inputs, const Ints& pool_size, const Ints& strides,
                        const PoolingOptions& options = {});
Output AveragePooling2D(Output inputs, const Ints& pool_size, const Ints& strides,
                        const PoolingOptions& options = {});

// ---- embedding

struct EmbeddingOptions {
  Initializer embeddings_initializer = RandomUniformInitializer(-0.05f, 0.05f);
  Regularizer embeddings_regularizer = {};
  Constraint embeddings_constraint = {};
  DataType dtype = DT_FLOAT;
  bool trainable = true;
  std::string name = {};
  std::optional<Reuse> reuse = {};
};
// Row inputs[i] of the variable "<name>/embeddings" [input_dim, output_dim] for each id.
Output Embedding(Output inputs, int64_t input_dim, int64_t output_dim,
                 const EmbeddingOptions& options = {});

}  // namespace weir::layers

#endif  // WEIR_OPS_LAYERS_H_
