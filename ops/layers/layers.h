#ifndef WEIR_OPS_LAYERS_LAYERS_H_
#define WEIR_OPS_LAYERS_LAYERS_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/framework/initializers.h"
#include "weir/ops/framework/variable.h"
#include "weir/ops/lib/array.h"
#include "weir/ops/lib/math.h"

// Layers, as in TensorFlow 1's tf.layers: functions that create their variables.
//
//   Output x = layers::Conv2D(images, 32, 3, {.activation = Relu});
//   x = layers::MaxPooling2D(x, 2, 2);
//   x = layers::BatchNormalization(x, {.training = true});
//   Output logits = layers::Dense(layers::Flatten(x), 10, {.name = "logits"});
//
// Variables are named "<name>/kernel", "<name>/bias" and so on, in the current variable scope; the
// default names of the layers are "conv2d", "conv2d_1", ... They are created with GetVariable, so
// scopes, reuse, custom getters and the scope's initializer, regularizer and partitioner apply.
// Nodes have TensorFlow's names. Regularization losses are added to the collection
// "regularization_losses", and the updates that a batch normalization runs after a step to
// "update_ops":
//
//   ControlDependencies after(g, g.collection_as<Operation>("update_ops"));
//   Operation train = Adam(1e-3).Minimize(losses::GetTotalLoss(g));
//
// Images are [batch, height, width, channels] ("channels_last"), or [batch, channels, height,
// width] with data_format "channels_first". An error is recorded in the graph, and the layer
// returns an invalid Output: INVALID_ARGUMENT for invalid ranks and arguments, and if a dimension
// that determines the shape of a variable is not static.
//
// Options that several layers have:
//
// clang-format off
//   name, reuse         `name` replaces the default name of the layer's variable scope; `reuse` says whether
//                       variables are created or shared (unset: as the enclosing scope says)
//   activation          `activation` is applied to the outputs
//   use_bias            `use_bias` adds a bias for each unit or channel
//   trainable           `trainable` adds the variables to "trainable_variables"
//   initializers        `..._initializer` is the initial value of the variable; an unset one is the scope's, or else
//                       GlorotUniform
//   regularizers        `..._regularizer` is a term of the variable that is added to "regularization_losses";
//                       `activity_regularizer` is one of the outputs
//   constraints         `..._constraint` is what optimizers apply to the variable after each update
//   padding             `padding` is "valid" (windows lie inside the image), or "same" (the image is padded with zeros,
//                       and the output has its size divided by the stride)
//   data_format         `data_format` is the order of the dimensions, as above
//   strides,            `strides` and `dilation_rate` are in pixels
//   dilation_rate
// clang-format on
namespace WEIR_API weir {
namespace layers {

// The function applied to a layer's outputs: Relu, Tanh, or any function of a tensor; none by
// default.
class Activation {
 public:
  Activation() = default;
  // A function with a name argument, such as Relu, and any callable from Output to Output, which is
  // copied.
  Activation(Output (*function)(Output, absl::string_view))
      : function_([function](Output x) { return function(x, {}); }) {}
  template <class F, std::enable_if_t<std::is_invocable_r_v<Output, const F&, Output>, int> = 0>
  Activation(F function) : function_(std::move(function)) {}
  explicit operator bool() const { return static_cast<bool>(function_); }
  // Applies the function, which is set.
  Output operator()(Output x) const { return function_(x); }

 private:
  std::function<Output(Output)> function_;
};

// Whether a layer runs in training mode: a constant, or a bool scalar that the step evaluates.
class Training {
 public:
  // A constant; and a bool scalar of the graph.
  Training(bool training) : training_(training) {}
  Training(Output training) : tensor_(training) {}
  // Which of the two it is, and its value.
  bool is_tensor() const { return tensor_.valid(); }
  const Output& tensor() const { return tensor_; }
  bool value() const { return training_; }

 private:
  Output tensor_;
  bool training_ = false;
};

// ---- regularizers: scalar penalties on a variable (or on the outputs of a layer)

// Computes l1 * sum |x| + l2 * sum x^2 of a variable or of a layer's outputs.
class NormRegularizer {
 public:
  // The functions below make one.
  NormRegularizer(double l1, double l2, bool from_zero) : l1_(l1), l2_(l2), from_zero_(from_zero) {}
  // Return the penalty, a scalar. A partitioned variable is read in parts.
  Output operator()(const Variable& w) const;
  Output operator()(const Output& x) const;

 private:
  double l1_, l2_;
  bool from_zero_;  // starts the sum with a constant, as TensorFlow does for two norms
};
// L1: scale * sum |x|. L2: scale * sum x^2. L1L2: both.
inline NormRegularizer L1Regularizer(double scale) { return {scale, 0, false}; }
inline NormRegularizer L2Regularizer(double scale) { return {0, scale, false}; }
inline NormRegularizer L1L2(double l1, double l2) { return {l1, l2, true}; }
// A regularizer of a layer's outputs. Its result is divided by the batch size.
using ActivityRegularizer = std::function<Output(Output)>;

// ---- dense

// Options of Dense.
struct DenseOptions {
  Activation activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = {};  // default: the scope's, or GlorotUniform
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
// Computes activation(inputs . kernel + bias) over the last dimension. The kernel is [inputs,
// units].
Output Dense(Output inputs, int64_t units, const DenseOptions& options = {});

// ---- convolution. Sizes, strides and dilations are one number for all dimensions, or one for
// each.

// Options of Conv1D to Conv3D and Conv2DTranspose.
struct ConvOptions {
  Ints strides = 1;
  std::string padding = "valid";  // or "same"
  std::string data_format = "channels_last";
  Ints dilation_rate = 1;
  Activation activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = {};  // default: the scope's, or GlorotUniform
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
// Convolution over one, two or three dimensions. The kernel is [size..., channels, filters]; the
// result has `filters` channels.
Output Conv1D(Output inputs, int64_t filters, const Ints& kernel_size,
              const ConvOptions& options = {});
Output Conv2D(Output inputs, int64_t filters, const Ints& kernel_size,
              const ConvOptions& options = {});
Output Conv3D(Output inputs, int64_t filters, const Ints& kernel_size,
              const ConvOptions& options = {});
// Transposed convolution: the gradient of a convolution, with kernel [height, width, filters,
// channels]. Dilation is not supported.
Output Conv2DTranspose(Output inputs, int64_t filters, const Ints& kernel_size,
                       const ConvOptions& options = {});

// Options of SeparableConv2D and DepthwiseConv2D. `depth_multiplier` is the number of outputs of
// the depthwise convolution for each channel.
struct SeparableConvOptions {
  Ints strides = 1;
  std::string padding = "valid";
  std::string data_format = "channels_last";
  Ints dilation_rate = 1;
  int64_t depth_multiplier = 1;
  Activation activation = {};
  bool use_bias = true;
  Initializer depthwise_initializer = {};  // default: the scope's, or GlorotUniform
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
// Separable convolution: a depthwise convolution followed by a 1x1 convolution. The variables are
// "depthwise_kernel" [height, width, channels, multiplier] and "pointwise_kernel".
Output SeparableConv2D(Output inputs, int64_t filters, const Ints& kernel_size,
                       const SeparableConvOptions& options = {});
// Depthwise convolution only. The options for pointwise kernels are ignored.
Output DepthwiseConv2D(Output inputs, const Ints& kernel_size,
                       const SeparableConvOptions& options = {});

// ---- normalization

// Options of BatchNormalization. `momentum` is the factor by which the moving mean and variance
// decay in a step; `epsilon` is added to the variance.
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
  // If true, normalizes by the batch's mean and variance, and adds ops to "update_ops" that update
  // "moving_mean" and "moving_variance". If false, normalizes by the moving mean and variance.
  Training training = false;
  // If false, "gamma" and "beta" are not trained, and nothing is added to "update_ops".
  bool trainable = true;
  // Uses one fused op for images and volumes whose channels are the first or last dimension, unless
  // the dtype is double.
  bool fused = true;
  std::string name = {};
  std::optional<Reuse> reuse = {};
};
// Computes (inputs - mean) / sqrt(variance + epsilon) * gamma + beta.
Output BatchNormalization(Output inputs, const BatchNormalizationOptions& options = {});

// ---- without variables

struct DropoutOptions {
  // The shape of the random mask, which is broadcast to the inputs; -1 means the inputs' dimension.
  std::optional<std::vector<int64_t>> noise_shape = {};
  std::optional<int64_t> seed = {};
  Training training = false;
  std::string name = {};
};
// In training mode, returns zero with probability `rate` (a number or a scalar tensor) and inputs /
// (1 - rate) otherwise. In inference mode, returns the inputs.
Output Dropout(Output inputs, const TensorArg& rate = 0.5, const DropoutOptions& options = {});

// Options of Flatten.
struct FlattenOptions {
  std::string data_format = "channels_last";
  std::string name = {};
};
// Merges all dimensions but the first.
Output Flatten(Output inputs, const FlattenOptions& options = {});

// Options of the pooling layers.
struct PoolingOptions {
  std::string padding = "valid";
  std::string data_format = "channels_last";
  std::string name = {};
};
// Return the maximum, or the mean, of each window of `pool_size` pixels; windows are `strides`
// apart. Padding counts in neither.
Output MaxPooling1D(Output inputs, const Ints& pool_size, const Ints& strides,
                    const PoolingOptions& options = {});
Output MaxPooling2D(Output inputs, const Ints& pool_size, const Ints& strides,
                    const PoolingOptions& options = {});
Output AveragePooling1D(Output inputs, const Ints& pool_size, const Ints& strides,
                        const PoolingOptions& options = {});
Output AveragePooling2D(Output inputs, const Ints& pool_size, const Ints& strides,
                        const PoolingOptions& options = {});

// ---- embedding

// Options of Embedding. `dtype` is that of the variable and of the result.
struct EmbeddingOptions {
  Initializer embeddings_initializer = RandomUniformInitializer(-0.05f, 0.05f);
  Regularizer embeddings_regularizer = {};
  Constraint embeddings_constraint = {};
  DataType dtype = DT_FLOAT;
  bool trainable = true;
  std::string name = {};
  std::optional<Reuse> reuse = {};
};
// Returns row inputs[i] of the variable "<name>/embeddings" [input_dim, output_dim] for each id.
Output Embedding(Output inputs, int64_t input_dim, int64_t output_dim,
                 const EmbeddingOptions& options = {});

}  // namespace layers
}  // namespace weir

#endif  // WEIR_OPS_LAYERS_LAYERS_H_
