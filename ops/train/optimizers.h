#ifndef WEIR_OPS_TRAIN_OPTIMIZERS_H_
#define WEIR_OPS_TRAIN_OPTIMIZERS_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weir/core/tensor/api.h"
#include "weir/ops/train/optimizer.h"

// TensorFlow 1's optimizers (tf.train.*Optimizer). An optimizer is constructed with its
// hyperparameters and used through Optimizer:
//
//   Operation train = Adam(1e-3).Minimize(loss, {.global_step = step});
//
// A hyperparameter is a number or a tensor (a schedule, a placeholder). The documentation of the
// ops that they build contains the formulas (ops/train/training.cc).
//
// Options that all optimizers have: `name` is that of the name scope of the update, and the default
// name of the slots' scope. With `use_locking` the kernels hold the lock of a ref variable while
// they update it; for resource variables they always do.
namespace WEIR_API weir {

// One argument of an update rule: the name of its constant in the optimizer's scope (empty: one
// constant beside each update), and the op's argument that it is passed to.
struct Hyperparameter {
  std::string name;      // "learning_rate"
  std::string argument;  // "lr"
  TensorArg value;       // a number or a tensor
};

// A slot of an update rule.
struct SlotSpec {
  std::string name;      // the name for GetSlot
  std::string argument;  // the op's argument
  double initial = 0;    // of all elements
};

// An optimizer that builds one update op for each variable: (Resource)(Sparse)Apply<rule>. Most of
// the optimizers below are RuleOptimizers. It also gives access to rules that have no class
// (AdaMax, AddSign, PowerSign).
class RuleOptimizer : public Optimizer {
 public:
  // `name` is that of the scope and of the slots; `rule` is the op's name without its prefix:
  // "Momentum".
  RuleOptimizer(std::string name, std::string rule, std::vector<Hyperparameter> hyperparameters,
                std::vector<SlotSpec> slots, bool use_locking = false, bool use_nesterov = false);

 protected:
  void CreateSlots(const Variables& variables) override;
  void Prepare(Graph& graph) override;
  Operation ApplyDense(const Output& grad, const Variable& variable) override;
  Operation ApplySparse(const IndexedSlices& grad, const Variable& variable) override;
  // Returns the tensor for an argument of the op, cast to the variable's type.
  Output Get(absl::string_view argument, const Variable& variable) const;
  // The tensors that Prepare has built, by argument.
  using Tensors = std::map<std::string, Output, std::less<>>;
  const Tensors& tensors() const { return tensors_; }
  void set_tensors(Tensors tensors) { tensors_ = std::move(tensors); }

 private:
  virtual Output GlobalStep(const Variable& /*variable*/) const { return Output(); }
  Operation Apply(const Output& grad, const Output* indices, const Variable& variable);

  const std::string rule_;
  const std::vector<Hyperparameter> hyperparameters_;
  const std::vector<SlotSpec> slots_;
  const bool use_nesterov_;
  Tensors tensors_;
};

// Options of optimizers: see above for `name` and `use_locking`.
struct GradientDescentOptions {
  bool use_locking = false;
  std::string name = "GradientDescent";
};
// A sparse gradient is applied by a scatter to the variable's rows.
class GradientDescent : public RuleOptimizer {
 public:
  // The step is var -= learning_rate * grad.
  explicit GradientDescent(TensorArg learning_rate, GradientDescentOptions options = {});

 protected:
  Operation ApplySparseDuplicateIndices(const IndexedSlices& grad,
                                        const Variable& variable) override;
};

// With `use_nesterov`, the gradient at the position that the momentum leads to.
struct MomentumOptions {
  bool use_nesterov = false;
  bool use_locking = false;
  std::string name = "Momentum";
};
// accum = momentum * accum + grad; var -= learning_rate * accum. Slot "momentum".
class Momentum : public RuleOptimizer {
 public:
  // Both are numbers or scalar tensors.
  Momentum(TensorArg learning_rate, TensorArg momentum, MomentumOptions options = {});
};

// Options of Adagrad.
struct AdagradOptions {
  double initial_accumulator_value = 0.1;  // > 0
  bool use_locking = false;
  std::string name = "Adagrad";
};
// accum += grad^2; var -= learning_rate * grad / sqrt(accum) (Duchi et al. 2011). Slot
// "accumulator".
class Adagrad : public RuleOptimizer {
 public:
  // `learning_rate` is a number or a scalar tensor.
  explicit Adagrad(TensorArg learning_rate, AdagradOptions options = {});

 protected:
  void CreateSlots(const Variables& variables) override;

 private:
  const double initial_accumulator_value_;
};

// `rho` is the decay of both averages, and `epsilon` is added to them. `learning_rate` is a factor
// of the step.
struct AdadeltaOptions {
  TensorArg learning_rate = 0.001;
  TensorArg rho = 0.95;
  TensorArg epsilon = 1e-8;
  bool use_locking = false;
  std::string name = "Adadelta";
};
// Steps in proportion to the average of earlier updates (Zeiler 2012). Slots "accum" and
// "accum_update".
class Adadelta : public RuleOptimizer {
 public:
  // All hyperparameters are options.
  explicit Adadelta(AdadeltaOptions options = {});
};

// `decay` is that of the averages of gradients, `momentum` that of the step; `epsilon` is added to
// the mean square before the root. `centered` normalizes by the variance instead of the mean
// square.
struct RMSPropOptions {
  TensorArg decay = 0.9;
  TensorArg momentum = 0.0;
  TensorArg epsilon = 1e-10;
  bool use_locking = false;
  bool centered = false;
  std::string name = "RMSProp";
};
// Divides the gradient by the root of its decaying mean square (Tieleman and Hinton 2012). Slots
// "rms", "momentum" and, if centered, "mg".
class RMSProp : public RuleOptimizer {
 public:
  // `learning_rate` is a number or a scalar tensor.
  explicit RMSProp(TensorArg learning_rate, RMSPropOptions options = {});
};

// Options of Ftrl; the strengths are those of the penalties.
struct FtrlOptions {
  double learning_rate_power = -0.5;       // <= 0
  double initial_accumulator_value = 0.1;  // >= 0
  double l1_regularization_strength = 0;   // >= 0
  double l2_regularization_strength = 0;   // >= 0
  bool use_locking = false;
  std::string name = "Ftrl";
  std::string accum_name = {}, linear_name = {};    // default: the optimizer's name
  double l2_shrinkage_regularization_strength = 0;  // >= 0; the V2 ops are built if it is above 0
  double beta = 0;                                  // >= 0
};
// Follow the regularized leader (McMahan et al. 2013). Slots "accum" and "linear".
class Ftrl : public RuleOptimizer {
 public:
  // `learning_rate` is a number or a scalar tensor.
  explicit Ftrl(TensorArg learning_rate, FtrlOptions options = {});

 protected:
  void CreateSlots(const Variables& variables) override;
  void Prepare(Graph& graph) override;

 private:
  const TensorArg learning_rate_;
  const FtrlOptions options_;
};

// The strengths are >= 0: `l1_regularization_strength`, `l2_regularization_strength`.
struct ProximalOptions {
  double l1_regularization_strength = 0;
  double l2_regularization_strength = 0;
  bool use_locking = false;
  std::string name = "ProximalGradientDescent";
};
// Gradient descent, followed by the proximal step for both norms (Duchi and Singer 2009). No slots.
class ProximalGradientDescent : public RuleOptimizer {
 public:
  // `learning_rate` is a number or a scalar tensor.
  explicit ProximalGradientDescent(TensorArg learning_rate, ProximalOptions options = {});
};

// As ProximalOptions: `l1_regularization_strength`, `l2_regularization_strength`.
struct ProximalAdagradOptions {
  double initial_accumulator_value = 0.1;  // > 0
  double l1_regularization_strength = 0;
  double l2_regularization_strength = 0;
  bool use_locking = false;
  std::string name = "ProximalAdagrad";
};
// Adagrad with the proximal step. Slot "accumulator".
class ProximalAdagrad : public RuleOptimizer {
 public:
  // `learning_rate` is a number or a scalar tensor.
  explicit ProximalAdagrad(TensorArg learning_rate, ProximalAdagradOptions options = {});

 protected:
  void CreateSlots(const Variables& variables) override;

 private:
  const double initial_accumulator_value_;
};

// As ProximalOptions: `l1_regularization_strength`, `l2_regularization_strength`.
struct AdagradDAOptions {
  double initial_gradient_squared_accumulator_value = 0.1;  // > 0
  double l1_regularization_strength = 0;
  double l2_regularization_strength = 0;
  bool use_locking = false;
  std::string name = "AdagradDA";
};
// Recomputes the variable from the sums of all gradients in each step, so it needs the step's
// number: pass the same `global_step` to Minimize, which increments it.
class AdagradDA : public RuleOptimizer {
 public:
  // `global_step` is an int64 scalar.
  AdagradDA(TensorArg learning_rate, Variable global_step, AdagradDAOptions options = {});

 protected:
  void CreateSlots(const Variables& variables) override;
  void Prepare(Graph& graph) override;

 private:
  Output GlobalStep(const Variable& variable) const override;

  const Variable global_step_;
  const double initial_gradient_squared_accumulator_value_;
  Output step_on_worker_;
};

// `beta1` and `beta2` are the decays of the first and second moment; `epsilon` is added to the
// root.
struct AdamOptions {
  TensorArg beta1 = 0.9;
  TensorArg beta2 = 0.999;
  TensorArg epsilon = 1e-8;
  bool use_locking = false;
  std::string name = "Adam";
};
// A sparse gradient decays the moments of all rows, but adds to the sum of squares of its own rows
// only. As in TensorFlow, the cost is proportional to the size of the whole variable.
class Adam : public Optimizer {
 public:
  // `learning_rate` is a number or a scalar tensor.
  explicit Adam(TensorArg learning_rate = 0.001, AdamOptions options = {});

 protected:
  void CreateSlots(const Variables& variables) override;
  void Prepare(Graph& graph) override;
  Operation ApplyDense(const Output& grad, const Variable& variable) override;
  Operation ApplySparse(const IndexedSlices& grad, const Variable& variable) override;
  Operation Finish(Graph& graph, const std::vector<Operation>& updates,
                   absl::string_view name) override;

 private:
  Output Power(const Variable& variable, absl::string_view name) const;
  Output DecayAndScatter(const Variable& slot, const Output& decay, const Output& rows,
                         const Output& indices) const;

  const TensorArg learning_rate_;
  const AdamOptions options_;
  Output learning_rate_tensor_, beta1_, beta2_, epsilon_;
};

// As AdamOptions; `learning_rate`, `beta1`, `beta2` and `epsilon` are numbers or tensors.
struct AdamWOptions {
  TensorArg learning_rate = 0.001;
  TensorArg beta1 = 0.9;
  TensorArg beta2 = 0.999;
  TensorArg epsilon = 1e-8;
  // The variables to decay. Default: all.
  std::optional<Variables> decay_var_list = {};
  bool use_locking = false;
  std::string name = "AdamW";
};
// Adam with decoupled weight decay (Loshchilov and Hutter 2017): each step first subtracts
// weight_decay * var from the variable (not scaled by the learning rate), and then does Adam's
// update. With a sparse gradient only the rows that it updates decay.
class AdamW : public Adam {
 public:
  // `weight_decay` is a number or a scalar tensor.
  explicit AdamW(TensorArg weight_decay, AdamWOptions options = {});

 protected:
  void Prepare(Graph& graph) override;
  Operation ApplyDense(const Output& grad, const Variable& variable) override;
  Operation ApplySparse(const IndexedSlices& grad, const Variable& variable) override;

 private:
  bool Decays(const Variable& variable) const;

  const TensorArg weight_decay_;
  const std::optional<Variables> decay_var_list_;
  Output weight_decay_tensor_;
};

}  // namespace weir

#endif  // WEIR_OPS_TRAIN_OPTIMIZERS_H_
