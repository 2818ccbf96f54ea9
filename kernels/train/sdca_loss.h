#ifndef WEIR_KERNELS_TRAIN_SDCA_LOSS_H_
#define WEIR_KERNELS_TRAIN_SDCA_LOSS_H_

#include <memory>
#include <string>

#include "weir/core/tensor/status.h"

namespace weir {

// What a loss of stochastic dual coordinate ascent is given of an example. Labels are converted.
struct SdcaExample {
  int partitions = 1;  // of the loss, over workers
  double label = 0, weight = 0;
  double dual = 0;  // its dual variable
  double wx = 0;    // the prediction
  double norm = 0;  // the squared norm of its features, divided by l2
};

// A loss, with its conjugate. Formulas: Shalev-Shwartz and Zhang, "Stochastic dual coordinate
// ascent methods for regularized loss minimization", 2013, with the weights of Ma et al., "Adding
// vs. averaging in distributed primal-dual optimization", 2015.
class SdcaLoss {
 public:
  // The loss of this name: "logistic_loss", "squared_loss", "hinge_loss", "smooth_hinge_loss" or
  // "poisson_loss"; otherwise INVALID_ARGUMENT.
  static absl::StatusOr<std::shared_ptr<const SdcaLoss>> Make(const std::string& name);
  virtual ~SdcaLoss() = default;

  // Returns the label that the other functions expect. INVALID_ARGUMENT if the loss does not have
  // such labels.
  virtual absl::StatusOr<double> ConvertLabel(float label) const;
  // The dual variable that maximizes the objective while the others stay as they are.
  virtual double UpdatedDual(const SdcaExample& e) const = 0;
  // The loss of the example, that of its dual, and the derivative of the loss with respect to wx.
  virtual double Primal(const SdcaExample& e) const = 0;
  virtual double Dual(const SdcaExample& e) const = 0;
  virtual double Derivative(const SdcaExample& e) const = 0;
  // Of the derivative.
  virtual double Smoothness() const = 0;
};

}  // namespace weir

#endif  // WEIR_KERNELS_TRAIN_SDCA_LOSS_H_
