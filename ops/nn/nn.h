#ifndef WEIR_OPS_NN_NN_H_
#define WEIR_OPS_NN_NN_H_

#include <optional>
#include <string>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/lib/array.h"

// Builders of neural-network ops: TensorFlow's nn. Each adds the nodes that the Python function (or
// the op) of that name adds, with the same names. The last argument is the node's name. Images are
// [batch, height, width, channels] ("NHWC"), or [batch, channels, height, width] with data_format
// "NCHW"; filters are [height, width, in, out] in both layouts. Errors are recorded in the graph
// and return an invalid Output.
namespace WEIR_API weir {

class Variable;  // ops/framework/variable.h

// ---- elementwise activations

Output Relu(Output features, absl::string_view name = {});   // max(x, 0)
Output Relu6(Output features, absl::string_view name = {});  // min(max(x, 0), 6)
Output Elu(Output features, absl::string_view name = {});    // x < 0 ? exp(x) - 1 : x
Output Selu(Output features, absl::string_view name = {});   // Klambauer et al. 2017: scaled Elu
Output LeakyRelu(Output features, float alpha = 0.2f,
                 absl::string_view name = {});                  // max(x, alpha * x)
Output Softplus(Output features, absl::string_view name = {});  // log(1 + exp(x))
Output Softsign(Output features, absl::string_view name = {});  // x / (1 + |x|)

// ---- biases and norms

// Returns value + bias, with one bias per channel (the last dimension, or dimension 1 for "NCHW").
// `value` has rank 2 or more.
Output BiasAdd(Output value, Output bias, absl::string_view data_format = "NHWC",
               absl::string_view name = {});
// Returns matmul(x, weights) + biases in the scope "xw_plus_b".
Output XwPlusB(Output x, Output weights, Output biases, absl::string_view name = {});
// Returns sum(t * t) / 2.
Output L2Loss(Output t, absl::string_view name = {});
// Returns x / sqrt(max(sum(x * x), epsilon)), where the sum is over `axes`.
Output L2Normalize(Output x, const Ints& axes, double epsilon = 1e-12, absl::string_view name = {});

// What Moments returns, each with the shape of x without `axes`, or with size 1 there.
struct MomentsResult {
  Output mean, variance;  // floating-point, in the dtype of x
};
// Returns the mean and the (biased) variance over `axes`. Half precision is computed in float.
MomentsResult Moments(Output x, const std::vector<int64_t>& axes, bool keep_dims = false,
                      absl::string_view name = {});
// Returns (x - mean) / sqrt(variance + epsilon) * scale + offset, composed of elementwise ops.
// Offset and scale may be invalid, and are then left out.
Output BatchNormalization(Output x, Output mean, Output variance, Output offset, Output scale,
                          double variance_epsilon, absl::string_view name = {});

// Options of FusedBatchNorm: `epsilon` is added to the variance, `data_format` is "NHWC" or "NCHW",
// `is_training` normalizes by the moments of the batch, and `exponential_avg_factor` is the weight
// of those in the running values that are returned.
struct FusedBatchNormOptions {
  // Required for inference. For training with a factor other than 1 they are the running values.
  Output mean = {}, variance = {};
  double epsilon = 0.001;
  std::string data_format = "NHWC";
  bool is_training = true;
  double exponential_avg_factor = 1.0;
};
// What FusedBatchNorm returns.
struct FusedBatchNormResult {
  // Vectors over the channels; in inference, the running values.
  Output y, batch_mean, batch_variance;
};
// Batch normalization of a 4-D tensor (5-D with "NDHWC" and "NCDHW") over all dimensions but the
// channels, in one op (FusedBatchNormV3). scale, offset and all results except y are float vectors.
// batch_variance is the unbiased variance.
FusedBatchNormResult FusedBatchNorm(Output x, Output scale, Output offset,
                                    const FusedBatchNormOptions& options = {},
                                    absl::string_view name = {});

// Options of LocalResponseNormalization.
struct LrnOptions {
  int64_t depth_radius = 5;                // channels on each side
  float bias = 1, alpha = 1, beta = 0.5f;  // see the formula
};
// Returns x / (bias + alpha * sum of x^2 over the channels within depth_radius) ^ beta, for a 4-D
// NHWC tensor.
Output LocalResponseNormalization(Output x, const LrnOptions& options = {},
                                  absl::string_view name = {});

// ---- convolution

// Options of convolutions. `strides` and `dilations` have one number per dimension of the images,
// in the order of `data_format`; they are 1 for batch and channels.
struct ConvOptions {
  std::vector<int64_t> strides = {1, 1, 1, 1};
  std::string padding = "SAME";  // SAME, VALID or EXPLICIT
  // For EXPLICIT: pixels before and after each dimension, in the order of data_format.
  std::vector<int64_t> explicit_paddings = {};
  std::string data_format = "NHWC";
  std::vector<int64_t> dilations = {1, 1, 1, 1};
};
// Computes the cross-correlation of a batch of images with filters. If the filter has fewer input
// channels than the images, the input and output channels are divided into groups.
Output Conv2D(Output input, Output filter, const ConvOptions& options = {},
              absl::string_view name = {});
// The gradients of Conv2D. `input_sizes` and `filter_sizes` are shapes as int32 vectors.
Output Conv2DBackpropInput(Output input_sizes, Output filter, Output out_backprop,
                           const ConvOptions& options = {}, absl::string_view name = {});
Output Conv2DBackpropFilter(Output input, Output filter_sizes, Output out_backprop,
                            const ConvOptions& options = {}, absl::string_view name = {});
// The gradient of a convolution, used as an upsampling layer. The filter is [height, width, out,
// in].
Output Conv2DTranspose(Output value, Output filter, const Ints& output_shape,
                       const ConvOptions& options = {}, absl::string_view name = {});
// Convolves each channel with its own filter. The filter is [height, width, channels, multiplier].
Output DepthwiseConv2dNative(Output input, Output filter, const ConvOptions& options = {},
                             absl::string_view name = {});
// Convolution in three dimensions: strides and dilations have five elements, data_format is "NDHWC"
// or "NCDHW".
Output Conv3D(Output input, Output filter, const ConvOptions& options, absl::string_view name = {});

// ---- pooling

// Options of pooling. `ksize` (the windows) and `strides` have one number per dimension of the
// images, in the order of `data_format`; `padding` is SAME, VALID, or for MaxPool EXPLICIT.
struct PoolOptions {
  std::vector<int64_t> ksize;
  std::vector<int64_t> strides;
  std::string padding = "SAME";
  std::vector<int64_t> explicit_paddings = {};  // MaxPool only
  std::string data_format = "NHWC";
};
// Returns the maximum of each window.
Output MaxPool(Output input, const PoolOptions& options, absl::string_view name = {});
// Padding is not counted: the mean is over the elements of the window that are inside the image.
Output AvgPool(Output value, const PoolOptions& options, absl::string_view name = {});
struct MaxPoolWithArgmaxResult {
  Output output, argmax;  // argmax: int32 or int64, in the shape of output
};
// Also returns the position of each maximum: (y * width + x) * channels + channel, plus the batch's
// offset if requested. NHWC only.
MaxPoolWithArgmaxResult MaxPoolWithArgmax(Output input, const PoolOptions& options,
                                          DataType targmax = DT_INT64,
                                          bool include_batch_in_index = false,
                                          absl::string_view name = {});

// ---- softmax and losses

// Softmax returns exp(x) / sum(exp(x)) along the last dimension, LogSoftmax its logarithm.
Output Softmax(Output logits, absl::string_view name = {});
Output LogSoftmax(Output logits, absl::string_view name = {});

// `loss` is a vector over the batch; `backprop` has the shape of the logits.
struct CrossEntropyResult {
  Output loss, backprop;
};
// The op itself: logits are [batch, classes], loss is [batch], and backprop is the gradient of the
// loss with respect to the logits.
CrossEntropyResult SoftmaxCrossEntropyWithLogits(Output features, Output labels,
                                                 absl::string_view name = {});
CrossEntropyResult SparseSoftmaxCrossEntropyWithLogits(Output features, Output labels,
                                                       absl::string_view name = {});

// The loss as TensorFlow's nn function composes it, with the shape of the logits without the last
// dimension. Labels are class numbers (int32 or int64); a label outside [0, classes) is
// INVALID_ARGUMENT at run time.
Output SparseSoftmaxCrossEntropy(Output logits, Output labels, absl::string_view name = {});
// Labels are distributions over the classes. The gradient also flows to the labels
// (softmax_cross_entropy_with_logits_v2).
Output SoftmaxCrossEntropy(Output logits, Output labels, absl::string_view name = {});
// Returns -labels * log(sigmoid(x)) - (1 - labels) * log(1 - sigmoid(x)) elementwise.
Output SigmoidCrossEntropy(Output logits, Output labels, absl::string_view name = {});

// ---- dropout, embeddings

struct DropoutOptions {
  std::optional<Ints> noise_shape = {};  // the shape of the random mask, which is broadcast
  std::optional<int64_t> seed = {};      // of the op; unset: by the graph's seed
};
// Sets an element to zero with probability `rate`, and otherwise to x / (1 - rate), which preserves
// the expected value. Returns x for a rate of 0. INVALID_ARGUMENT for a rate outside [0, 1).
Output Dropout(Output x, double rate, const DropoutOptions& options = {},
               absl::string_view name = {});
// The same with the rate given as a scalar tensor.
Output Dropout(Output x, Output rate, const DropoutOptions& options = {},
               absl::string_view name = {});

// One embedding table, or several that form one: tensors, ref variables, handles of resource
// variables, or variables. A lookup does not read a whole variable. The parts of a partitioned
// variable are the tables (it must be partitioned along axis 0).
struct EmbeddingTables {
  // A tensor, or a variable that is not read.
  EmbeddingTables(const Output& table) : tables{table} {}
  EmbeddingTables(const Outputs& all) : tables(all) {}
  EmbeddingTables(const Variable& variable);
  EmbeddingTables(const std::vector<Variable>& variables);
  Outputs tables;  // each [rows, ...], with equal dimensions after the first
};
// Determines in which of n tables, and in which row of it, an id is stored.
enum class PartitionStrategy {
  kMod,  // table id % n, row id / n
  kDiv,  // contiguous ranges of ids of equal size; the first tables have one more if needed
};
// Options of EmbeddingLookup.
struct EmbeddingLookupOptions {
  PartitionStrategy partition_strategy = PartitionStrategy::kMod;  // ignored for one table
  // Rows with a larger L2 norm are scaled down to it.
  std::optional<double> max_norm = {};
};
// Returns one row for each id (int32 or int64): the shape is that of `ids` followed by that of a
// row. The gradient with respect to a table is sparse (IndexedSlices). Note: the layout of a
// partitioned variable is that of kDiv. With kMod, TensorFlow's default, lookups of row i are
// consistent, but use a different row of the variable.
Output EmbeddingLookup(const EmbeddingTables& params, Output ids,
                       const EmbeddingLookupOptions& options = {}, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_NN_NN_H_
