#ifndef WEIR_SESSION_TRAIN_SYNC_REPLICAS_H_
#define WEIR_SESSION_TRAIN_SYNC_REPLICAS_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weir/core/tensor/api.h"
#include "weir/ops/train/moving_averages.h"
#include "weir/ops/train/optimizer.h"
#include "weir/session/train/hook.h"

namespace WEIR_API weir {

// Options of SyncReplicasOptimizer.
struct SyncReplicasOptions {
  // The number of gradients of each variable that one update averages; at least 1.
  int replicas_to_aggregate = 1;
  // The number of workers; 0: replicas_to_aggregate. With more workers than gradients in an update,
  // some are backups: the gradients of the slowest come too late and are dropped. With fewer
  // workers, each computes several gradients for an update.
  int total_num_replicas = 0;
  // If set, these averages of `variables_to_average` follow each update. Must outlive the call of
  // ApplyGradients.
  ExponentialMovingAverage* variable_averages = nullptr;
  Variables variables_to_average = {};
  std::string name = "sync_replicas";  // of the scope of the accumulators
};

// Synchronous training by workers that share variables on parameter servers
// (tf.train.SyncReplicasOptimizer): an update applies the mean of several workers' gradients. Every
// worker builds the same graph with the optimizer that applies the mean:
//
//   SyncReplicasOptimizer optimizer(std::make_unique<Adam>(1e-3), {.replicas_to_aggregate = 3});
//   Operation train = optimizer.Minimize(loss, {.global_step = step});
//   WEIR_ASSIGN_OR_RETURN(MonitoredSession session, MonitoredTrainingSession(graph, {
//       .hooks = {optimizer.MakeSessionHook(is_chief)}, .is_chief = is_chief}));
//
// Nodes have TensorFlow's names and devices. Each gradient goes to an accumulator on the variable's
// device. The accumulator drops a gradient that was computed before the last update: its own step
// is compared with the worker's "sync_rep_local_step", a local variable. The chief waits until all
// accumulators have enough gradients, applies their means, increments the global step, and puts the
// new step into the queue "sync_token_q", on the device of the global step, once for each worker.
// `train` passes on the gradients and then takes a token from the queue, so a worker waits there
// for the update.
//
// An object of the program, not of the graph, like the optimizer inside. Errors are recorded in the
// graph, and the result is then invalid. Not thread-safe.
class SyncReplicasOptimizer {
 public:
  // `optimizer` applies the means.
  explicit SyncReplicasOptimizer(std::unique_ptr<Optimizer> optimizer,
                                 SyncReplicasOptions options = {});
  ~SyncReplicasOptimizer();

  // Do what those of Optimizer do (optimizer.h); the `name` of the options is not used.
  // ApplyGradients returns the operation that a worker runs. INVALID_ARGUMENT without a global
  // step, without variables, or for numbers of replicas below 1; FAILED_PRECONDITION if called
  // again.
  Operation Minimize(const Output& loss, const MinimizeOptions& options);
  GradsAndVariables ComputeGradients(const Output& loss,
                                     const ComputeGradientsOptions& options = {});
  Operation ApplyGradients(const GradsAndVariables& grads_and_variables,
                           const ApplyGradientsOptions& options);
  // The optimizer that applies the means, with its slots.
  const Optimizer& optimizer() const { return *optimizer_; }

  // Adds the op that puts the first tokens into the queue; the chief runs it. `num_tokens` is at
  // least replicas_to_aggregate - total_num_replicas (INVALID_ARGUMENT if it is not), by default
  // replicas_to_aggregate. With 0, every worker waits for the first update. Invalid before
  // ApplyGradients.
  Operation InitTokensOp(std::optional<int> num_tokens = {});
  // Returns the hook for a worker's monitored session. It initializes the local step. The chief's
  // also sets the accumulators' steps, adds the first tokens, runs the updates on a thread of the
  // session, and closes the queue at the end: workers that wait for a token then get OUT_OF_RANGE,
  // with which their training ends too. `num_tokens` as in InitTokensOp. Call it after
  // ApplyGradients; otherwise the session is FAILED_PRECONDITION.
  std::shared_ptr<SessionHook> MakeSessionHook(bool is_chief, std::optional<int> num_tokens = {});

 private:
  struct Nodes;
  absl::Status Check(const GradsAndVariables& items, const Variable& global_step) const;
  void AddLocalStep(Graph& graph);
  Operation Accumulate(const GradAndVariable& item, Grad* mean);
  Operation Synchronize(Graph& graph, const Operation& update,
                        const std::vector<Operation>& accumulated);
  Operation EnqueueTokens(Graph& graph, int count);

  const std::unique_ptr<Optimizer> optimizer_;
  SyncReplicasOptions options_;
  std::unique_ptr<Nodes> nodes_;  // null before ApplyGradients
};

}  // namespace weir

#endif  // WEIR_SESSION_TRAIN_SYNC_REPLICAS_H_
