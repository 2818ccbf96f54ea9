#ifndef WEIR_OPS_TRAIN_OPTIMIZER_H_
#define WEIR_OPS_TRAIN_OPTIMIZER_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/graph/gradient.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/framework/gradients.h"
#include "weir/ops/framework/variable.h"

// The base class of the optimizers in optimizers.h and of user-defined ones.
namespace WEIR_API weir {

// A gradient, and the variable that it is of.
struct GradAndVariable {
  Grad grad;          // invalid: the variable is not updated
  Variable variable;  // of the graph that the gradient is in
};
// In the order of the variables.
using GradsAndVariables = std::vector<GradAndVariable>;

// When gradients are passed on: immediately; once all inputs of an op have their gradients; or once
// all variables have their gradients.
enum class GateGradients { kNone, kOp, kGraph };

// Options of Optimizer::ComputeGradients.
struct ComputeGradientsOptions {
  // Default: the graph's trainable variables.
  std::optional<Variables> var_list = {};
  GateGradients gate_gradients = GateGradients::kOp;
  // How gradients of several uses of a tensor are added.
  Aggregation aggregation = Aggregation::kAddN;
  bool colocate_gradients_with_ops = false;  // requests the device of the op for its gradient
  // The gradient of the loss itself; default ones.
  Grad grad_loss = {};
};

// Options of Optimizer::ApplyGradients.
struct ApplyGradientsOptions {
  // Incremented by one after the update.
  Variable global_step = {};
  // The name of the scope and of the returned op. Default: the optimizer's name.
  std::string name = {};
};

// Options of Optimizer::Minimize: `global_step` and `name` as in ApplyGradientsOptions; `var_list`,
// `gate_gradients`, `aggregation`, `colocate_gradients_with_ops` and `grad_loss` as in
// ComputeGradientsOptions.
struct MinimizeOptions {
  Variable global_step = {};
  std::optional<Variables> var_list = {};
  GateGradients gate_gradients = GateGradients::kOp;
  Aggregation aggregation = Aggregation::kAddN;
  bool colocate_gradients_with_ops = false;
  std::string name = {};
  Grad grad_loss = {};
};

// Builds the nodes of training steps. An optimizer is an object of the program, not of the graph.
// It holds its hyperparameters (numbers, or tensors such as a decaying learning rate) and the slot
// variables that it has created, so that a second ApplyGradients in the same graph shares them. One
// optimizer can be used with several graphs. Not thread-safe.
//
// Nodes and variables have TensorFlow's names: for a variable "w" and an optimizer named "Adam" the
// slots are "w/Adam" and "w/Adam_1", the update is "Adam/update_w/ResourceApplyAdam", and the
// returned op is "Adam". The op is added to the collection "train_op".
//
// Errors are recorded in the graph and return an invalid result: INVALID_ARGUMENT if the loss is
// not floating-point, if there are no variables, and if no variable has a gradient.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Calls ComputeGradients and ApplyGradients. Run the returned op to do one training step.
  Operation Minimize(const Output& loss, const MinimizeOptions& options = {});
  // Returns the gradient of the loss with respect to each variable; none where the loss does not
  // depend on it.
  GradsAndVariables ComputeGradients(const Output& loss,
                                     const ComputeGradientsOptions& options = {});
  // Applies gradients from ComputeGradients, which may have been modified (for example clipped), or
  // from elsewhere.
  Operation ApplyGradients(const GradsAndVariables& grads_and_variables,
                           const ApplyGradientsOptions& options = {});

  // The name of the scope of updates.
  const std::string& name() const { return name_; }
  // The slot of that name ("momentum", "m") for a variable; invalid if there is none.
  Variable GetSlot(const Variable& variable, absl::string_view slot_name) const;
  // The names that GetSlot takes, sorted.
  std::vector<std::string> GetSlotNames() const;
  // The variables that the optimizer has created in this graph, sorted by name.
  Variables variables(const Graph& graph) const;

 protected:
  // `name` as in the options of the optimizers.
  Optimizer(std::string name, bool use_locking)
      : name_(std::move(name)), use_locking_(use_locking) {}

  // The functions that a subclass overrides. They are called in this order: CreateSlots without a
  // name scope of its own; Prepare in the scope of the optimizer's name; one of the Apply functions
  // per variable, in the scope "update_<variable>" and colocated with it; Finish.
  virtual void CreateSlots(const Variables& /*variables*/) {}
  virtual void Prepare(Graph& /*graph*/) {}
  virtual Operation ApplyDense(const Output& grad, const Variable& variable) = 0;
  // The indices are unique.
  virtual Operation ApplySparse(const IndexedSlices& grad, const Variable& variable) = 0;
  // The indices may repeat. By default the rows of equal indices are summed first.
  virtual Operation ApplySparseDuplicateIndices(const IndexedSlices& grad,
                                                const Variable& variable);
  // Returns one op named `name` that runs after all updates.
  virtual Operation Finish(Graph& graph, const std::vector<Operation>& updates,
                           absl::string_view name);

  // The option of that name (optimizers.h).
  bool use_locking() const { return use_locking_; }
  // Returns the slot, and creates it if it does not exist: the variable "<variable>/<op_name>",
  // made unique. `initializer` is called with the variable's shape.
  Variable MakeSlot(const Variable& variable, absl::string_view slot_name,
                    absl::string_view op_name, const Initializer& initializer);
  // Does the same for a slot filled with one value, whether or not the variable's shape is known.
  Variable MakeConstantSlot(const Variable& variable, absl::string_view slot_name,
                            absl::string_view op_name, double value);
  // Returns a variable of the optimizer itself ("beta1_power"), one per graph, colocated with
  // `first` and of its kind.
  Variable MakeNonSlot(absl::string_view name, const TensorArg& initial_value,
                       const Variable& first);
  // Returns that variable; invalid if there is none.
  Variable GetNonSlot(const Graph& graph, absl::string_view name) const;

 private:
  Operation Update(const GradAndVariable& item);
  Operation CountStep(Graph& graph, const std::vector<Operation>& updates,
                      const Variable& global_step, absl::string_view scope);

  const std::string name_;
  const bool use_locking_;
  std::map<std::string, std::map<const Node*, Variable>, std::less<>>
      slots_;  // keyed by the variable's node
  std::map<std::pair<std::string, const Graph*>, Variable> non_slots_;
};

}  // namespace weir

#endif  // WEIR_OPS_TRAIN_OPTIMIZER_H_
