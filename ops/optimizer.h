#ifndef WEIR_OPS_OPTIMIZER_H_
#define WEIR_OPS_OPTIMIZER_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "weir/core/gradient.h"
#include "weir/ops/gradients.h"
#include "weir/ops/variable.h"

// The base of the optimizers in optimizers.h, and of a user's own.
namespace weir {

struct GradAndVariable {
  Grad grad;  // none: the variable is left alone
  Variable variable;
};
using GradsAndVariables = std::vector<GradAndVariable>;

// When gradients are handed on: at once; once all inputs of an op have theirs; once all variables
// have theirs.
enum class GateGradients { kNone, kOp, kGraph };

struct ComputeGradientsOptions {
  // Default: the graph's trainable variables.
  std::optional<Variables> var_list = {};
  GateGradients gate_gradients = GateGradients::kOp;
  Aggregation aggregation = Aggregation::kAddN;
  bool colocate_gradients_with_ops = false;
  // The gradient of the loss itself; default ones.
  Grad grad_loss = {};
};

struct ApplyGradientsOptions {
  // Grows by one after the update.
  Variable global_step = {};
  // Of the scope and the returned op; default: the optimizer's name.
  std::string name = {};
};

struct MinimizeOptions {
  Variable global_step = {};
  std::optional<Variables> var_list = {};
  GateGradients gate_gradients = GateGradients::kOp;
  Aggregation aggregation = Aggregation::kAddN;
  bool colocate_gradients_with_ops = false;
  std::string name = {};
  Grad grad_loss = {};
};

// Builds the nodes of training steps. An optimizer is an object of the program, not of the graph:
// it holds its hyperparameters (numbers, or tensors such as a decaying learning rate) and remembers
// the slot variables it has made, so that a second ApplyGradients in the same graph shares them. It
// may serve several graphs. Not thread-safe.
//
// Nodes and variables have TensorFlow's names: for a variable "w" and an optimizer named "Adam" the
// slots are "w/Adam" and "w/Adam_1", the update is "Adam/update_w/ResourceApplyAdam", and the op
// returned is "Adam". It is added to the collection "train_op".
//
// Errors stick to the graph and give an invalid result: INVALID_ARGUMENT for a loss that is not
// floating-point, for no variables, and where no variable gets a gradient.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // ComputeGradients, then ApplyGradients. Run the op to make one step.
  Operation Minimize(const Output& loss, const MinimizeOptions& options = {});
  GradsAndVariables ComputeGradients(const Output& loss,
                                     const ComputeGradientsOptions& options = {});
  // Gradients may have been changed (clipped, say) since ComputeGradients, or come from elsewhere.
  Operation ApplyGradients(const GradsAndVariables& grads_and_variables,
                           const ApplyGradientsOptions& options = {});

  const std::string& name() const { return name_; }
  // The slot of that name ("momentum", "m") for a variable; invalid if there is none.
  Variable GetSlot(const Variable& variable, absl::string_view slot_name) const;
  std::vector<std::string> GetSlotNames() const;
  // The variables that the optimizer made in this graph, sorted by name.
  Variables variables(const Graph& graph) const;

 protected:
  Optimizer(std::string name, bool use_locking)
      : name_(std::move(name)), use_locking_(use_locking) {}

  // What a subclass gives. The order is: CreateSlots with no name scope of its own; Prepare in the
  // scope of the optimizer's name; for each variable one of the Apply functions, in the scope
  // "update_<variable>" and placed with it; Finish.
  virtual void CreateSlots(const Variables& /*variables*/) {}
  virtual void Prepare(Graph& /*graph*/) {}
  virtual Operation ApplyDense(const Output& grad, const Variable& variable) = 0;
  // No index comes twice.
  virtual Operation ApplySparse(const IndexedSlices& grad, const Variable& variable) = 0;
  // Indices may repeat. By default the rows of equal indices are summed first.
  virtual Operation ApplySparseDuplicateIndices(const IndexedSlices& grad,
                                                const Variable& variable);
  // One op that runs after all updates, named `name`.
  virtual Operation Finish(Graph& graph, const std::vector<Operation>& updates,
                           absl::string_view name);

  bool use_locking() const { return use_locking_; }
  // The slot, made if there is none: variable "<variable>/<op_name>", made unique. `initializer`
  // gets the variable's shape.
  Variable MakeSlot(const Variable& variable, absl::string_view slot_name,
                    absl::string_view op_name, const Initializer& initializer);
  // The same, filled with one value, whatever is known of the variable's shape.
  Variable MakeConstantSlot(const Variable& variable, absl::string_view slot_name,
                            absl::string_view op_name, double value);
  // A variable of the optimizer's own ("beta1_power"), one a graph, placed with `first` and of its
  // kind.
  Variable MakeNonSlot(absl::string_view name, const TensorArg& initial_value,
                       const Variable& first);
  Variable GetNonSlot(const Graph& graph, absl::string_view name) const;

 private:
  Operation Update(const GradAndVariable& item);
  Operation CountStep(Graph& graph, const std::vector<Operation>& updates,
                      const Variable& global_step, absl::string_view scope);

  const std::string name_;
  const bool use_locking_;
  std::map<std::string, std::map<const Node*, Variable>, std::less<>>
      slots_;  // by the variable's node
  std::map<std::pair<std::string, const Graph*>, Variable> non_slots_;
};

}  // namespace weir

#endif  // WEIR_OPS_OPTIMIZER_H_
