#include "weir/kernels/train/sdca_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace weir {

namespace {

constexpr int kNewtonSteps = 10;  // it converges quadratically
constexpr double kInfinite = std::numeric_limits<double>::max();

// The curvature of the quadratic term.
double Curvature(const SdcaExample& e) { return e.partitions * e.norm * e.weight; }

// Dual variables of classes are between 0 and the label.
double ClampedDual(double dual, double label) {
  if (label * dual < 0) return 0;
  return label * dual > 1 ? label : dual;
}

class LogisticLoss final : public SdcaLoss {
 public:
  double UpdatedDual(const SdcaExample& e) const override {
    double x = 0;
    for (int i = 0; i < kNewtonSteps; ++i) {
      const double t = std::tanh(x);
      const double value =
          -2 * e.label * x - e.wx - Curvature(e) * (0.5 * (1 + t) / e.label - e.dual);
      const double slope = -2 * e.label - Curvature(e) * (1 - t * t) * 0.5 / e.label;
      x -= value / slope;
    }
    return 0.5 * (1 + std::tanh(x)) / e.label;
  }
  double Primal(const SdcaExample& e) const override {
    const double margin = e.label * e.wx;
    return (std::log1p(std::exp(-std::abs(margin))) + std::max(-margin, 0.0)) * e.weight;
  }
  double Dual(const SdcaExample& e) const override {
    const auto entropy = [](double p) { return p > 0 ? p * std::log(p) : 0; };
    const double p = e.dual * e.label;
    return (entropy(p) + entropy(1 - p)) * e.weight;
  }
  double Derivative(const SdcaExample& e) const override {
    const double margin = e.label * e.wx, tail = std::exp(-std::abs(margin));
    return -(margin > 0 ? tail : 1) / (1 + tail) * e.label * e.weight;
  }
  double Smoothness() const override { return 4; }
};

class SquaredLoss final : public SdcaLoss {
 public:
  absl::StatusOr<double> ConvertLabel(float label) const override { return double{label}; }
  double UpdatedDual(const SdcaExample& e) const override {
    return e.dual + (e.label - e.dual - e.wx) / (1 + Curvature(e));
  }
  double Primal(const SdcaExample& e) const override {
    return (e.wx - e.label) * (e.wx - e.label) * e.weight * 0.5;
  }
  double Dual(const SdcaExample& e) const override {
    return e.dual * (0.5 * e.dual - e.label) * e.weight;
  }
  double Derivative(const SdcaExample& e) const override { return (e.wx - e.label) * e.weight; }
  double Smoothness() const override { return 1; }
};

class HingeLoss final : public SdcaLoss {
 public:
  double UpdatedDual(const SdcaExample& e) const override {
    return ClampedDual(e.dual + (e.label - e.wx) / Curvature(e), e.label);
  }
  double Primal(const SdcaExample& e) const override {
    return std::max(0.0, 1 - e.label * e.wx) * e.weight;
  }
  double Dual(const SdcaExample& e) const override {
    const double p = e.dual * e.label;
    return p < 0 || p > 1 ? kInfinite : -p * e.weight;
  }
  double Derivative(const SdcaExample& e) const override {
    return e.label * e.wx < 1 ? -e.label * e.weight : 0;
  }
  double Smoothness() const override { return 0; }
};

// The hinge is a parabola where its margin is between 0 and 1.
class SmoothHingeLoss final : public SdcaLoss {
 public:
  double UpdatedDual(const SdcaExample& e) const override {
    return ClampedDual(e.dual + (e.label - e.wx - e.dual) / (Curvature(e) + 1), e.label);
  }
  double Primal(const SdcaExample& e) const override {
    const double margin = e.label * e.wx;
    if (margin >= 1) return 0;
    if (margin <= 0) return (0.5 - margin) * e.weight;
    return (1 - margin) * (1 - margin) * e.weight * 0.5;
  }
  double Dual(const SdcaExample& e) const override {
    const double p = e.dual * e.label;
    return p < 0 || p > 1 ? kInfinite : (-p + 0.5 * e.dual * e.dual) * e.weight;
  }
  double Derivative(const SdcaExample& e) const override {
    const double margin = e.label * e.wx;
    if (margin >= 1) return 0;
    return margin <= 0 ? -e.label : e.wx - e.label;
  }
  double Smoothness() const override { return 1; }
};

class PoissonLoss final : public SdcaLoss {
 public:
  absl::StatusOr<double> ConvertLabel(float label) const override {
    if (!(label < 0)) return double{label};
    return InvalidArgument(
        "Only non-negative labels can be used with the Poisson log loss. Found example with "
        "label: ",
        label);
  }
  double UpdatedDual(const SdcaExample& e) const override {
    double x = e.label > e.dual ? std::log(e.label - e.dual) : 0;
    for (int i = 0; i < kNewtonSteps; ++i) {
      const double rate = std::exp(x);
      x -= (x - e.wx - Curvature(e) * (e.label - e.dual - rate)) / (1 + Curvature(e) * rate);
    }
    return e.label - std::exp(x);
  }
  double Primal(const SdcaExample& e) const override {
    return (std::exp(e.wx) - e.wx * e.label) * e.weight;
  }
  double Dual(const SdcaExample& e) const override {
    const double rest = e.label - e.dual;
    if (rest < 0) return kInfinite;
    return rest == 0 ? 0 : rest * (std::log(rest) - 1) * e.weight;
  }
  double Derivative(const SdcaExample& e) const override {
    return (std::exp(e.wx) - e.label) * e.weight;
  }
  double Smoothness() const override { return 1; }
};

}  // namespace

absl::StatusOr<std::shared_ptr<const SdcaLoss>> SdcaLoss::Make(const std::string& name) {
  using Loss = std::shared_ptr<const SdcaLoss>;
  if (name == "logistic_loss") return Loss(std::make_shared<LogisticLoss>());
  if (name == "squared_loss") return Loss(std::make_shared<SquaredLoss>());
  if (name == "hinge_loss") return Loss(std::make_shared<HingeLoss>());
  if (name == "smooth_hinge_loss") return Loss(std::make_shared<SmoothHingeLoss>());
  if (name == "poisson_loss") return Loss(std::make_shared<PoissonLoss>());
  return InvalidArgument("Unsupported loss type: ", name);
}

// Classes are 0 and 1; their labels are -1 and 1.
absl::StatusOr<double> SdcaLoss::ConvertLabel(float label) const {
  if (label == 0) return -1.0;
  if (label == 1) return 1.0;
  return InvalidArgument(
      "Only labels of 0.0 or 1.0 are supported right now. Found example with label: ", label);
}

}  // namespace weir
