#ifndef WEIR_OPS_LIB_COLLECTIONS_H_
#define WEIR_OPS_LIB_COLLECTIONS_H_

#include "weir/core/tensor/api.h"

// Names of the collections that Weir itself adds to or reads (TensorFlow's GraphKeys). Any other
// string is a valid collection name too.
namespace WEIR_API weir {
namespace collections {
// Variables, by what MakeVariable, GetVariable and layers make of them.

inline constexpr char kGlobalVariables[] = "variables";  // all that are saved by default
// Those that optimizers update.
inline constexpr char kTrainableVariables[] = "trainable_variables";
// GetLocalVariable: not saved, initialized by LocalVariablesInitializer.
inline constexpr char kLocalVariables[] = "local_variables";
// Those that inference needs; Weir adds none.
inline constexpr char kModelVariables[] = "model_variables";
inline constexpr char kMetricVariables[] = "metric_variables";  // of metrics: totals and counts
// Those with a moving average.
inline constexpr char kMovingAverageVariables[] = "moving_average_variables";
// Variables in meta graphs; Weir adds none.
inline constexpr char kTrainableResourceVariables[] = "trainable_resource_variables";
// Of partitioned variables; Weir adds none.
inline constexpr char kConcatenatedVariables[] = "concatenated_variables";
// Scalars that regularizers add.
inline constexpr char kRegularizationLosses[] = "regularization_losses";
inline constexpr char kLosses[] = "losses";            // scalars that the functions of losses.h add
inline constexpr char kWeights[] = "weights";          // of layers; Weir adds none
inline constexpr char kBiases[] = "biases";            // of layers; Weir adds none
inline constexpr char kActivations[] = "activations";  // of layers; Weir adds none
inline constexpr char kSummaries[] = "summaries";      // outputs of summary ops
// The merged summaries, as Scaffold takes them, one element.
inline constexpr char kSummaryOp[] = "summary_op";
// Objects that fill queues (queue_runner.h).
inline constexpr char kQueueRunners[] = "queue_runners";
// Operations that fill lookup tables.
inline constexpr char kTableInitializers[] = "table_initializer";
// Names of files that a SavedModel copies.
inline constexpr char kAssetFilepaths[] = "asset_filepaths";
// Operations to run after a step, such as those of batch normalization.
inline constexpr char kUpdateOps[] = "update_ops";
inline constexpr char kTrainOp[] = "train_op";           // the training step, one element
inline constexpr char kInitOp[] = "init_op";             // as Scaffold takes it, one element
inline constexpr char kLocalInitOp[] = "local_init_op";  // as Scaffold takes it, one element
inline constexpr char kReadyOp[] = "ready_op";           // as Scaffold takes it, one element
// As Scaffold takes it, one element.
inline constexpr char kReadyForLocalInitOp[] = "ready_for_local_init_op";
inline constexpr char kGlobalStep[] = "global_step";  // the variable that counts steps, one element
inline constexpr char kEvalStep[] = "eval_step";      // the counter of evaluations; Weir adds none
inline constexpr char kSavers[] = "savers";           // savers, one element
// What savers save besides variables; Weir adds none.
inline constexpr char kSaveableObjects[] = "saveable_objects";
inline constexpr char kResources[] = "resources";  // handles of resources; Weir adds none
// Handles of resources; Weir adds none.
inline constexpr char kLocalResources[] = "local_resources";
inline constexpr char kCondContext[] = "cond_context";    // conditionals of imported meta graphs
inline constexpr char kWhileContext[] = "while_context";  // loops of imported meta graphs
// In TensorFlow, of model ports; Weir adds none.
inline constexpr char kStreamingModelPorts[] = "streaming_model_ports";

}  // namespace collections
}  // namespace weir

#endif  // WEIR_OPS_LIB_COLLECTIONS_H_
