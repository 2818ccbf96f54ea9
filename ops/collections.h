#ifndef WEIR_OPS_COLLECTIONS_H_
#define WEIR_OPS_COLLECTIONS_H_

// Names of the collections that Weir itself adds to or reads (TensorFlow's GraphKeys). Any other
// string is a valid collection name too.
namespace weir::collections {

inline constexpr char kGlobalVariables[] = "variables";
inline constexpr char kTrainableVariables[] = "trainable_variables";
inline constexpr char kLocalVariables[] = "local_variables";
inline constexpr char kModelVariables[] = "model_variables";
inline constexpr char kMetricVariables[] = "metric_variables";
inline constexpr char kMovingAverageVariables[] = "moving_average_variables";
inline constexpr char kTrainableResourceVariables[] = "trainable_resource_variables";
inline constexpr char kConcatenatedVariables[] = "concatenated_variables";
inline constexpr char kRegularizationLosses[] = "regularization_losses";
inline constexpr char kLosses[] = "losses";
inline constexpr char kWeights[] = "weights";
inline constexpr char kBiases[] = "biases";
inline constexpr char kActivations[] = "activations";
inline constexpr char kSummaries[] = "summaries";
inline constexpr char kSummaryOp[] = "summary_op";
inline constexpr char kQueueRunners[] = "queue_runners";
inline constexpr char kTableInitializers[] = "table_initializer";
inline constexpr char kAssetFilepaths[] = "asset_filepaths";
inline constexpr char kUpdateOps[] = "update_ops";
inline constexpr char kTrainOp[] = "train_op";
inline constexpr char kInitOp[] = "init_op";
inline constexpr char kLocalInitOp[] = "local_init_op";
inline constexpr char kReadyOp[] = "ready_op";
inline constexpr char kReadyForLocalInitOp[] = "ready_for_local_init_op";
inline constexpr char kGlobalStep[] = "global_step";
inline constexpr char kEvalStep[] = "eval_step";
inline constexpr char kSavers[] = "savers";
inline constexpr char kSaveableObjects[] = "saveable_objects";
inline constexpr char kResources[] = "resources";
inline constexpr char kLocalResources[] = "local_resources";
inline constexpr char kCondContext[] = "cond_context";
inline constexpr char kWhileContext[] = "while_context";
inline constexpr char kStreamingModelPorts[] = "streaming_model_ports";

}  // namespace weir::collections

#endif  // WEIR_OPS_COLLECTIONS_H_
