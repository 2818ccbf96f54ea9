#ifndef WEIR_OPS_NN_H_
#define WEIR_OPS_NN_H_

#include <optional>
#include <string>
#include <vector>

#include "weir/core/graph.h"
#include "weir/ops/array.h"

// Builders of neural-network ops: TensorFlow's nn. Each adds the nodes that the Python function (or
// the op) of that name adds, under the same names; the last argument is the name. Images are
// [batch, height, width, channels] ("NHWC"), or [batch, channels, height, width] with data_format
// "NCHW"; filters are [height, width, in, out] in both. Errors stick to the graph, and give an
// invalid Output.
namespace weir {

class Variable;  // ops/variable.h

// ---- activations, element by element

Output Relu(Output features, absl::string_view name = {});   // max(x, 0)
Output Relu6(Output features, absl::string_view name = {});  // min(max(x, 0), 6)
Output Elu(Output features, absl::string_view name = {});    // x < 0 ? exp(x) - 1 : x
Output Selu(Output features, absl::string_view name = {});   // Klambauer et al. 2017: scaled Elu
Output LeakyRelu(Output features, float alpha = 0.2f,
                 absl::string_view name = {});                  // max(x, alpha * x)
Output Softplus(Output features, absl::string_view name = {});  // log(1 + exp(x))
Output Softsign(Output features, absl::string_view name = {});  // x / (1 + |x|)

// ---- biases and norms

// value + bias, one bias a channel (the last dimension, or dimension 1 for "NCHW"). `value` has
// rank 2 or more.
Output BiasAdd(Output value, Output bias, absl::string_view data_format = "NHWC",
               absl::string_view name = {});
// x . weights + biases: scope "xw_plus_b".
Output XwPlusB(Output x, Output weights, Output biases, absl::string_view name = {});
// sum(t * t) / 2
Output L2Loss(Output t, absl::string_view name = {});
// x / sqrt(max(sum(x * x), epsilon)), sums over `axes`.
Output L2Normalize(Output x, const Ints& axes, double epsilon = 1e-12, absl::string_view name = {});

struct MomentsResult {
  Output mean, variance;
};
// Mean and (biased) variance over `axes`. Half precision is computed in float.
MomentsResult Moments(Output x, const std::vector<int64_t>& axes, bool keep_dims = false,
                      absl::string_view name = {});
// (x - mean) / sqrt(variance + epsilon) * scale + offset, from simple ops; offset and scale may be
// invalid (left out).
Output BatchNormalization(Output x, Output mean, Output variance, Output offset, Output scale,
                          double variance_epsilon, absl::string_view name = {});

struct FusedBatchNormOptions {
  // Needed for inference; for training with a factor other than 1 they are the running values.
  Output mean = {}, variance = {};
  double epsilon = 0.001;
  std::string data_format = "NHWC";
  bool is_training = true;
  double exponential_avg_factor = 1.0;
};
struct FusedBatchNormResult {
  Output y, batch_mean, batch_variance;
};
// Batch normalization of a 4-D (5-D with "NDHWC" and "NCDHW") tensor over all but the channels in
// one op (FusedBatchNormV3). scale, offset and the results but y are float vectors. batch_variance
// is the unbiased one.
FusedBatchNormResult FusedBatchNorm(Output x, Output scale, Output offset,
                                    const FusedBatchNormOptions& options = {},
                                    absl::string_view name = {});

struct LrnOptions {
  int64_t depth_radius = 5;
  float bias = 1, alpha = 1, beta = 0.5f;
};
// x / (bias + alpha * sum of x^2 over the channels within depth_radius) ^ beta, of a 4-D NHWC
// tensor.
Output LocalResponseNormalization(Output x, const LrnOptions& options = {},
                                  absl::string_view name = {});

// ---- convolution

struct ConvOptions {
  std::vector<int64_t> strides = {1, 1, 1, 1};
  std::string padding = "SAME";  // SAME, VALID or EXPLICIT
  std::vector<int64_t> explicit_paddings =
      {};  // before and after each of the dimensions, in the order of data_format
  std::string data_format = "NHWC";
  std::vector<int64_t> dilations = {1, 1, 1, 1};
};
// Cross-correlation of a batch of images with filters. A filter of fewer input channels than the
// images divides these (and its output channels) into groups.
Output Conv2D(Output input, Output filter, const ConvOptions& options = {},
              absl::string_view name = {});
// Its gradients; `input_sizes` and `filter_sizes` are shapes as int32 vectors.
Output Conv2DBackpropInput(Output input_sizes, Output filter, Output out_backprop,
                           const ConvOptions& options = {}, absl::string_view name = {});
Output Conv2DBackpropFilter(Output input, Output filter_sizes, Output out_backprop,
                            const ConvOptions& options = {}, absl::string_view name = {});
// The gradient of a convolution, used as an upsampling layer; filter [height, width, out, in].
Output Conv2DTranspose(Output value, Output filter, const Ints& output_shape,
                       const ConvOptions& options = {}, absl::string_view name = {});
// A filter [height, width, channels, multiplier] of its own for each channel.
Output DepthwiseConv2dNative(Output input, Output filter, const ConvOptions& options = {},
                             absl::string_view name = {});
// The same in three dimensions: strides and dilations of five elements, "NDHWC" or "NCDHW".
Output Conv3D(Output input, Output filter, const ConvOptions& options, absl::string_view name = {});

// ---- pooling

struct PoolOptions {
  std::vector<int64_t> ksize;
  std::vector<int64_t> strides;
  std::string padding = "SAME";
  std::vector<int64_t> explicit_paddings = {};  // MaxPool only
  std::string data_format = "NHWC";
};
Output MaxPool(Output input, const PoolOptions& options, absl::string_view name = {});
// Padding does not count: the mean is over the elements that are there.
Output AvgPool(Output value, const PoolOptions& options, absl::string_view name = {});
struct MaxPoolWithArgmaxResult {
  Output output, argmax;
};
// Also where each maximum was: (y * width + x) * channels + channel, plus the batch's offset if
// asked for. NHWC only.
MaxPoolWithArgmaxResult MaxPoolWithArgmax(Output input, const PoolOptions& options,
                                          DataType targmax = DT_INT64,
                                          bool include_batch_in_index = false,
                                          absl::string_view name = {});

// ---- softmax and losses

// exp(x) / sum(exp(x)) along the last dimension, and its logarithm.
Output Softmax(Output logits, absl::string_view name = {});
Output LogSoftmax(Output logits, absl::string_view name = {});

struct CrossEntropyResult {
  Output loss, backprop;
};
// The ops themselves: logits [batch, classes]; loss is [batch], backprop its gradient with respect
// to the logits.
CrossEntropyResult SoftmaxCrossEntropyWithLogits(Output features, Output labels,
                                                 absl::string_view name = {});
CrossEntropyResult SparseSoftmaxCrossEntropyWithLogits(Output features, Output labels,
                                                       absl::string_view name = {});

// Losses as TensorFlow's nn functions compose them, of the shape of logits without the last
// dimension. Labels are class numbers (int32 or int64); one outside [0, classes) is
// INVALID_ARGUMENT when run.
Output SparseSoftmaxCrossEntropy(Output logits, Output labels, absl::string_view name = {});
// Labels are distributions over the classes; the gradient goes to them too
// (softmax_cross_entropy_with_logits_v2).
Output SoftmaxCrossEntropy(Output logits, Output labels, absl::string_view name = {});
// -labels * log(sigmoid(x)) - (1 - labels) * log(1 - sigmoid(x)), element by element.
Output SigmoidCrossEntropy(Output logits, Output labels, absl::string_view name = {});

// ---- dropout, embeddings

struct DropoutOptions {
  std::optional<Ints> noise_shape = {};  // decisions are made for this shape, and broadcast
  std::optional<int64_t> seed = {};
};
// Zero with probability `rate`, else x / (1 - rate), so that the expected value stays. A rate of 0
// returns x. INVALID_ARGUMENT for a rate outside [0, 1).
Output Dropout(Output x, double rate, const DropoutOptions& options = {},
               absl::string_view name = {});
// The rate is a scalar tensor.
Output Dropout(Output x, Output rate, const DropoutOptions& options = {},
               absl::string_view name = {});

// A table of embeddings, or several that make up one: tensors, references, resource variables'
// handles, or variables. A variable is not read as a whole; of a partitioned one the parts are the
// tables (it must be cut along axis 0).
struct EmbeddingTables {
  EmbeddingTables(const Output& table) : tables{table} {}
  EmbeddingTables(const Outputs& all) : tables(all) {}
  EmbeddingTables(const Variable& variable);
  EmbeddingTables(const std::vector<Variable>& variables);
  Outputs tables;
};
// Which of n tables has the row of an id, and where.
enum class PartitionStrategy {
  kMod,  // id % n; row id / n
  kDiv,  // ids lie in order, as many in each table; the first tables have one more, if need be
};
struct EmbeddingLookupOptions {
  PartitionStrategy partition_strategy = PartitionStrategy::kMod;
  // Rows of a greater L2 norm are scaled down to it.
  std::optional<double> max_norm = {};
};
// One row for each id (int32 or int64): the shape of `ids`, then a row's. The gradient with respect
// to a table is rows (IndexedSlices). Note that a partitioned variable is laid out as kDiv has it;
// with kMod, TensorFlow's default, row i is looked up consistently, but elsewhere.
Output EmbeddingLookup(const EmbeddingTables& params, Output ids,
                       const EmbeddingLookupOptions& options = {}, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_NN_H_
