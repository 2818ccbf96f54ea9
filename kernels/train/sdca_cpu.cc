#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/hash.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/variable_access.h"
#include "weir/kernels/random/unigram.h"
#include "weir/kernels/train/sdca_loss.h"

// Stochastic dual coordinate ascent for linear models. Each example has a dual variable; a step
// maximizes the dual objective in one of them and moves the weights along the features of the
// example. Source: Shalev-Shwartz and Zhang, "Stochastic dual coordinate ascent methods for
// regularized loss minimization", 2013. TensorFlow visits the examples in an unpredictable order;
// here they come as they are given, so that results have the same bits, or, if the op is adaptive,
// drawn in proportion to how far they are from their optimum.
namespace weir {

namespace {

struct SdcaOptions {
  std::shared_ptr<const SdcaLoss> loss;
  int sparse = 0, with_values = 0, dense = 0;  // groups of features
  int partitions = 1;
  bool adaptive = false;
  float l1 = 0, l2 = 0;

  double Shrink(double weight) const {
    const double rest = std::abs(weight) - double{l1} / double{l2};
    return rest > 0 ? std::copysign(rest, weight) : 0;
  }
};

// The weights of a group of features, and what the op adds to them.
struct GroupWeights {
  const float* weights = nullptr;
  float* deltas = nullptr;
};

// A group of features of which each example has few.
struct SparseGroup {
  const int64_t* features = nullptr;
  const float* values = nullptr;                  // null: 1
  std::vector<int64_t> begins;                    // of each example, and the end of the last
  std::unordered_map<int64_t, int64_t> position;  // of a feature, in the weights
  GroupWeights w;

  double value(int64_t i) const { return values == nullptr ? 1.0 : double{values[i]}; }
  int64_t at(int64_t i) const { return position.find(features[i])->second; }
};

struct DenseGroup {
  const float* rows = nullptr;
  int64_t width = 0;
  GroupWeights w;
};

// The inputs and outputs of one run.
class SdcaRun {
 public:
  SdcaRun(KernelContext& c, const SdcaOptions& o)
      : c_(c), o_(o), first_weight_(2 * o.sparse + o.with_values + o.dense) {}

  absl::Status Run() {
    WEIR_RETURN_IF_ERROR(ReadExamples());
    for (int i = 0; i < o_.sparse; ++i) WEIR_RETURN_IF_ERROR(ReadSparse(i));
    for (int i = 0; i < o_.dense; ++i) WEIR_RETURN_IF_ERROR(ReadDense(i));
    for (int64_t i = 0; i < count_; ++i) {
      WEIR_ASSIGN_OR_RETURN(const double norm, SquaredNorm(i));
      norms_.push_back(norm);
    }
    WEIR_ASSIGN_OR_RETURN(const std::vector<int64_t> order, Order());
    for (const int64_t example : order) {
      ThrowIfCancelled();
      WEIR_RETURN_IF_ERROR(Step(example));
    }
    return absl::OkStatus();
  }

 private:
  static constexpr int64_t kState = 4;  // dual variable, primal loss, dual loss, weight

  // Inputs 0 to first_weight_ - 1 are features; then come example weights and labels, the indices
  // and weights of sparse groups, the weights of dense groups, and the examples' state.
  absl::Status ReadExamples() {
    const Tensor &weights = c_.input(first_weight_), &labels = c_.input(first_weight_ + 1);
    const Tensor& state = c_.input(c_.num_inputs() - 1);
    count_ = weights.num_elements();
    if (labels.num_elements() != count_) {
      return InvalidArgument("Expected ", count_, " example labels but got ",
                             labels.num_elements());
    }
    if (state.rank() != 2)
      return InvalidArgument("example_state_data must be rank 2 but is rank ", state.rank());
    if (state.shape() != Shape({count_, kState})) {
      return InvalidArgument("Expected shape [", count_, ",4] for example_state_data, got ",
                             state.shape().ToString());
    }
    WEIR_ASSIGN_OR_RETURN(Tensor * out, c_.AllocateOutput(0, state.shape()));
    std::copy_n(state.data<float>(), state.num_elements(), out->data<float>());
    state_ = out->data<float>();
    return absl::OkStatus();
  }

  absl::StatusOr<GroupWeights> ReadWeights(int input, int output) {
    const Tensor& weights = c_.input(input);
    WEIR_ASSIGN_OR_RETURN(Tensor * deltas, c_.AllocateOutput(output, weights.shape()));
    std::fill_n(deltas->data<float>(), deltas->num_elements(), 0.0f);
    return GroupWeights{weights.data<float>(), deltas->data<float>()};
  }

  absl::Status ReadSparse(int i) {
    const Tensor &examples = c_.input(i), &features = c_.input(o_.sparse + i);
    const Tensor& known = c_.input(first_weight_ + 2 + i);
    const int weights = first_weight_ + 2 + o_.sparse + i;
    SparseGroup group;
    if (examples.num_elements() != features.num_elements()) {
      return InvalidArgument("Found mismatched example_indices and feature_indices ",
                             examples.shape().ToString(), " vs ", features.shape().ToString());
    }
    if (known.num_elements() != c_.input(weights).num_elements()) {
      return InvalidArgument("sparse_indices and sparse_weights must have the same length, got ",
                             known.num_elements(), " and ", c_.input(weights).num_elements());
    }
    group.features = features.data<int64_t>();
    if (i < o_.with_values) {
      const Tensor& values = c_.input(2 * o_.sparse + i);
      if (values.num_elements() != features.num_elements()) {
        return InvalidArgument("Found mismatched feature_indices and feature values ",
                               features.shape().ToString(), " vs ", values.shape().ToString());
      }
      group.values = values.data<float>();
    }
    for (int64_t k = 0; k < known.num_elements(); ++k) group.position[known.data<int64_t>()[k]] = k;
    // Elements that are not in the order of the examples are dropped, with all after them.
    int64_t at = 0;
    for (int64_t example = 0; example < count_; ++example) {
      group.begins.push_back(at);
      for (; at < examples.num_elements() && examples.data<int64_t>()[at] == example; ++at) {
        if (group.position.contains(group.features[at])) continue;
        return InvalidArgument("Found sparse feature indices out of valid range: ",
                               group.features[at]);
      }
    }
    group.begins.push_back(at);
    WEIR_ASSIGN_OR_RETURN(group.w, ReadWeights(weights, 1 + i));
    sparse_.push_back(std::move(group));
    return absl::OkStatus();
  }

  absl::Status ReadDense(int i) {
    const Tensor& features = c_.input(2 * o_.sparse + o_.with_values + i);
    const int weights = first_weight_ + 2 + 2 * o_.sparse + i;
    if (features.rank() != 2) {
      return InvalidArgument("Dense features at index ", i, " must be rank 2 but is rank ",
                             features.rank());
    }
    if (features.dim(0) < count_) {
      return InvalidArgument("Dense features at index ", i, " must have a row for each of the ",
                             count_, " examples, but have ", features.dim(0));
    }
    if (features.dim(1) > c_.input(weights).num_elements()) {
      return InvalidArgument("More dense features than we have parameters for: ", features.dim(1));
    }
    DenseGroup group = {features.data<float>(), features.dim(1), {}};
    WEIR_ASSIGN_OR_RETURN(group.w, ReadWeights(weights, 1 + o_.sparse + i));
    dense_.push_back(group);
    return absl::OkStatus();
  }

  // Calls f(value, weights, position) for each feature of an example.
  template <class F>
  void ForFeatures(int64_t example, const F& f) const {
    for (const SparseGroup& group : sparse_) {
      for (int64_t i = group.begins[example]; i < group.begins[example + 1]; ++i)
        f(group.value(i), group.w, group.at(i));
    }
    for (const DenseGroup& group : dense_) {
      const float* const row = group.rows + example * group.width;
      for (int64_t i = 0; i < group.width; ++i) f(double{row[i]}, group.w, i);
    }
  }

  absl::StatusOr<double> SquaredNorm(int64_t example) const {
    std::unordered_set<int64_t> seen;
    for (const SparseGroup& group : sparse_) {
      seen.clear();
      for (int64_t i = group.begins[example]; i < group.begins[example + 1]; ++i) {
        if (!seen.insert(group.features[i]).second)
          return InvalidArgument("Duplicate index in sparse vector.");
      }
    }
    double sum = 0;
    ForFeatures(example, [&](double x, const GroupWeights&, int64_t) { sum += x * x; });
    return sum;
  }

  // The prediction with the weights as they are now, or as they were given.
  double Predict(int64_t example, bool now) const {
    double sum = 0;
    ForFeatures(example, [&](double x, const GroupWeights& w, int64_t at) {
      const double delta = now ? double{w.deltas[at]} * o_.partitions : 0.0;
      sum += x * o_.Shrink(double{w.weights[at]} + delta);
    });
    return sum;
  }

  absl::StatusOr<SdcaExample> ExampleAt(int64_t i) const {
    SdcaExample e;
    e.partitions = o_.partitions;
    WEIR_ASSIGN_OR_RETURN(e.label,
                          o_.loss->ConvertLabel(c_.input_data<float>(first_weight_ + 1)[i]));
    e.weight = c_.input_data<float>(first_weight_)[i];
    e.dual = state_[kState * i];
    e.wx = Predict(i, true);
    e.norm = norms_[i] / double{o_.l2};
    return e;
  }

  absl::Status Step(int64_t i) {
    WEIR_ASSIGN_OR_RETURN(SdcaExample e, ExampleAt(i));
    const double dual = o_.loss->UpdatedDual(e);
    const double step = (dual - e.dual) * e.weight / double{o_.l2};
    ForFeatures(i, [&](double x, const GroupWeights& w, int64_t at) {
      w.deltas[at] = static_cast<float>(w.deltas[at] + x * step);
    });
    float* const state = state_ + kState * i;
    state[0] = static_cast<float>(dual);
    state[2] = static_cast<float>(o_.loss->Dual(e));
    e.wx = Predict(i, false);
    state[1] = static_cast<float>(o_.loss->Primal(e));
    state[3] = static_cast<float>(e.weight);
    return absl::OkStatus();
  }

  // The examples in the order of the steps: as many as there are.
  absl::StatusOr<std::vector<int64_t>> Order() const {
    std::vector<int64_t> order(count_);
    std::iota(order.begin(), order.end(), 0);
    if (!o_.adaptive || count_ == 0) return order;
    std::vector<float> chances;
    float total = 0;
    for (int64_t i = 0; i < count_; ++i) {
      WEIR_ASSIGN_OR_RETURN(SdcaExample e, ExampleAt(i));
      const double weight = std::exchange(e.weight, 1);
      const double gap = std::abs(e.dual + o_.loss->Derivative(e));
      chances.push_back(static_cast<float>(
          weight * std::sqrt(norms_[i] + double{o_.l2} * o_.loss->Smoothness()) * gap));
      total += chances.back();
    }
    if (!(total > 0) || !std::isfinite(total)) return order;
    return Drawn(chances);
  }

  // An example that was drawn k times is accepted again with probability 10^-k. The examples that
  // were never drawn follow while there is room, the most likely first.
  std::vector<int64_t> Drawn(const std::vector<float>& chances) const {
    const AliasSampler sampler(chances);
    PhiloxWords words{Philox(0, 0)};
    std::vector<int64_t> order, times(count_, 0), rest;
    for (int64_t missed = 0; static_cast<int64_t>(order.size()) < count_ && missed < count_;) {
      const int64_t drawn = sampler.Draw(words);
      if (UnitFloat(words()) > std::pow(0.1, static_cast<double>(times[drawn]))) {
        ++missed;
        continue;
      }
      ++times[drawn];
      order.push_back(drawn);
    }
    for (int64_t i = 0; i < count_; ++i) {
      if (times[i] == 0) rest.push_back(i);
    }
    std::stable_sort(rest.begin(), rest.end(),
                     [&](int64_t a, int64_t b) { return chances[a] > chances[b]; });
    const size_t room = static_cast<size_t>(count_) - order.size();
    order.insert(order.end(), rest.begin(),
                 rest.begin() + static_cast<std::ptrdiff_t>(std::min(room, rest.size())));
    return order;
  }

  KernelContext& c_;
  const SdcaOptions& o_;
  const int first_weight_;  // the input with the weights of examples
  int64_t count_ = 0;
  float* state_ = nullptr;
  std::vector<SparseGroup> sparse_;
  std::vector<DenseGroup> dense_;
  std::vector<double> norms_;
};

absl::StatusOr<Kernel> MakeSdca(const KernelInit& init) {
  SdcaOptions o;
  WEIR_ASSIGN_OR_RETURN(o.loss, SdcaLoss::Make(init.attr<std::string>("loss_type")));
  const bool is_v2 = init.node.op_name() == "SdcaOptimizerV2";
  o.adaptive = init.attr<bool>(is_v2 ? "adaptive" : "adaptative");
  WEIR_ASSIGN_OR_RETURN(o.sparse, NarrowAttr(init.node, "num_sparse_features"));
  WEIR_ASSIGN_OR_RETURN(o.with_values, NarrowAttr(init.node, "num_sparse_features_with_values"));
  WEIR_ASSIGN_OR_RETURN(o.dense, NarrowAttr(init.node, "num_dense_features"));
  WEIR_ASSIGN_OR_RETURN(o.partitions, NarrowAttr(init.node, "num_loss_partitions"));
  o.l1 = init.attr<float>("l1");
  o.l2 = init.attr<float>("l2");
  if (o.sparse + o.dense == 0) return InvalidArgument("Requires at least one feature to train.");
  return Kernel([o](KernelContext& c) { return SdcaRun(c, o).Run(); });
}

// The plan must know which inputs a kernel writes; a graph may have more than one may list.
constexpr int kMostVariables = 256;

absl::StatusOr<Kernel> MakeShrink(const KernelInit& init) {
  SdcaOptions o;
  if (init.node.num_inputs() > kMostVariables) {
    return Unimplemented("SdcaShrinkL1 of more than ", kMostVariables, " variables, got ",
                         init.node.num_inputs());
  }
  o.l1 = init.attr<float>("l1");
  o.l2 = init.attr<float>("l2");
  return Kernel([o](KernelContext& c) -> absl::Status {
    const int n = c.num_inputs();
    WEIR_ASSIGN_OR_RETURN(const LockedVariables variables, LockedVariables::Lock(c, n, DT_FLOAT));
    for (int i = 0; i < n; ++i) WEIR_RETURN_IF_ERROR(variables.CheckInitialized(c, i));
    for (int i = 0; i < n; ++i) {
      WEIR_ASSIGN_OR_RETURN(Tensor * weights, variables.Writable(c, i));
      for (float& w : weights->flat<float>()) w = static_cast<float>(o.Shrink(w));
    }
    return absl::OkStatus();
  });
}

// Two words for each string. The first is never 0 or 1, which tables use for empty places.
absl::Status Fprint(KernelContext& c) {
  const Tensor& input = c.input(0);
  if (input.rank() != 1)
    return InvalidArgument("Input must be a vector, got shape ", input.shape().ToString());
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape({input.dim(0), 2})));
  int64_t* to = out->data<int64_t>();
  for (const std::string& s : input.flat<std::string>()) {
    const auto [low, high] = Fingerprint128(s);
    *to++ = static_cast<int64_t>(low >= 2 ? low : low + ~uint64_t{1});
    *to++ = static_cast<int64_t>(high);
  }
  return absl::OkStatus();
}

}  // namespace

void AddSdcaKernels(KernelRegistry* r) {
  r->Add("SdcaOptimizer", kCpu, MakeSdca);
  r->Add("SdcaOptimizerV2", kCpu, MakeSdca);
  KernelDef& shrink = r->Add("SdcaShrinkL1", kCpu, MakeShrink);
  for (int i = 0; i < kMostVariables; ++i) shrink.writes.push_back(i);
  r->Add("SdcaFprint", kCpu, Fprint);
}

}  // namespace weir
