#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/nn/ctc_decode.h"

// Connectionist temporal classification: the loss of a network that emits, at every time step, a
// symbol or blank, when only the sequence of symbols is known. Source: Graves et al.,
// "Connectionist temporal classification", ICML 2006.
//
// A path assigns a symbol or blank to each time step. It represents the sequence that results from
// merging repeated symbols and then removing blanks. So a path moves through the extended sequence
// blank, l1, blank, l2, ..., blank: at each step it stays at its position, advances by one, or
// skips the blank between two different symbols. alpha(t, u) is the probability of all path
// prefixes that are at position u after step t, beta(t, u) that of all path suffixes from there to
// the end:
//   alpha(t, u) = y(t, u) * (alpha(t-1, u) + alpha(t-1, u-1) + [may skip to u] alpha(t-1, u-2))
//   beta(t, u) = beta'(t+1, u) + beta'(t+1, u+1) + [may skip to u+2] beta'(t+1, u+2),
//                where beta'(t, u) = y(t, u) beta(t, u)
// The loss is -log p, p = the sum of alpha at the last step over the last two positions, and its
// gradient with respect to the activations is y - (the share of p that passes the symbol at t). All
// of it is computed in log space. Without `merge`, a repeated symbol is two symbols: a path does
// not stay on one, and may skip between two equal ones.
namespace weir {

namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

double LogSum(double a, double b) {
  if (a == kNone) return b;
  if (b == kNone) return a;
  return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
}

struct CtcOptions {
  bool collapse = false;  // merge repeated labels in a preprocessing step
  bool merge = true;      // merge repeated symbols of a path
  bool ignore_longer =
      false;                 // sequences too short for their labels have loss 0 instead of an error
  bool blank_first = false;  // blank is class 0, otherwise the last class
};

// The alignment of one sequence: its extended labels, and the positions reachable at each time
// step.
class Aligner {
 public:
  Aligner(std::vector<int> places, int blank, bool merge, int64_t steps)
      : places_(std::move(places)), blank_(blank), merge_(merge), steps_(steps) {}

  int64_t count() const { return static_cast<int64_t>(places_.size()); }
  int64_t steps() const { return steps_; }
  int symbol(int64_t u) const { return places_[u]; }

  // log_y: steps x classes. Fills alpha, steps x count(), and returns log p.
  double Forward(const double* log_y, int64_t classes, double* alpha) const {
    std::fill_n(alpha, steps_ * count(), kNone);
    for (int64_t u = 0; u < std::min<int64_t>(2, count()); ++u) alpha[u] = log_y[symbol(u)];
    for (int64_t t = 1; t < steps_; ++t) {
      ThrowIfCancelled();
      const double* before = alpha + (t - 1) * count();
      for (int64_t u = Begin(t); u < End(t); ++u) {
        double sum = Stays(u) ? before[u] : kNone;
        if (u > 0) sum = LogSum(sum, before[u - 1]);
        if (SkipsTo(u)) sum = LogSum(sum, before[u - 2]);
        alpha[t * count() + u] = log_y[t * classes + symbol(u)] + sum;
      }
    }
    const double* last = alpha + (steps_ - 1) * count();
    return count() > 1 ? LogSum(last[count() - 1], last[count() - 2]) : last[0];
  }

  // Calls visit(t, log beta at t), from the last step to the first.
  template <class F>
  void Backward(const double* log_y, int64_t classes, const F& visit) const {
    std::vector<double> beta(count(), kNone), after(count());
    for (int64_t u = std::max<int64_t>(0, count() - 2); u < count(); ++u) beta[u] = 0;
    visit(steps_ - 1, beta);
    for (int64_t t = steps_ - 2; t >= 0; --t) {
      ThrowIfCancelled();
      for (int64_t u = 0; u < count(); ++u)
        after[u] = beta[u] + log_y[(t + 1) * classes + symbol(u)];
      std::fill(beta.begin(), beta.end(), kNone);
      for (int64_t u = Begin(t); u < End(t); ++u) {
        if (Stays(u)) beta[u] = after[u];
        if (u + 1 < count()) beta[u] = LogSum(beta[u], after[u + 1]);
        if (u + 2 < count() && SkipsTo(u + 2)) beta[u] = LogSum(beta[u], after[u + 2]);
      }
      visit(t, beta);
    }
  }

 private:
  bool Stays(int64_t u) const { return merge_ || places_[u] == blank_; }
  bool SkipsTo(int64_t u) const {
    return u > 1 && places_[u] != blank_ && !(merge_ && places_[u] == places_[u - 2]);
  }
  // The positions from which the end is reachable in time, and those reachable from the beginning.
  int64_t Begin(int64_t t) const { return std::max<int64_t>(0, count() - 2 * (steps_ - t)); }
  int64_t End(int64_t t) const { return std::min(count(), 2 * (t + 1)); }

  std::vector<int> places_;
  int blank_;
  bool merge_;
  int64_t steps_;
};

struct CtcSizes {
  int64_t time = 0, batch = 0, classes = 0;
};

absl::StatusOr<CtcSizes> ReadSizes(const KernelContext& c) {
  const Tensor &inputs = c.input(0), &lengths = c.input(3);
  if (inputs.rank() != 3) return InvalidArgument("inputs is not a 3-Tensor");
  if (lengths.rank() != 1) return InvalidArgument("sequence_length is not a vector");
  const CtcSizes s = {inputs.dim(0), inputs.dim(1), inputs.dim(2)};
  if (s.time == 0) return InvalidArgument("Max time or first dimension of input cannot be 0.");
  if (s.classes == 0 || s.classes > std::numeric_limits<int>::max())
    return InvalidArgument("num_classes must be in [1, 2^31), got ", s.classes);
  if (lengths.dim(0) != s.batch) {
    return InvalidArgument("len(sequence_length) != batch_size.  len(sequence_length):  ",
                           lengths.dim(0), " batch_size: ", s.batch);
  }
  if (s.batch == 0) return InvalidArgument("batch_size must not be 0");
  for (int64_t b = 0; b < s.batch; ++b) {
    const int32_t n = lengths.data<int32_t>()[b];
    if (n < 0) return InvalidArgument("seq_len(", b, ") < 0");
    if (n > s.time) return InvalidArgument("sequence_length(", b, ") <= ", s.time, ", got ", n);
  }
  return s;
}

using Labels = std::vector<std::vector<int>>;

// Returns the labels of each sequence, from the sparse tensor at inputs 1 and 2.
absl::StatusOr<Labels> ReadLabels(const KernelContext& c, int64_t batch) {
  const Tensor &indices = c.input(1), &values = c.input(2);
  if (indices.rank() != 2) return InvalidArgument("labels_indices is not a matrix");
  if (indices.dim(1) != 2) {
    return InvalidArgument("labels_indices second dimension must be 2. Received ", indices.dim(1));
  }
  if (values.rank() != 1) return InvalidArgument("labels_values is not a vector");
  if (indices.dim(0) != values.dim(0)) {
    return InvalidArgument(
        "labels_indices and labels_values must contain the same number of rows, but saw shapes: ",
        indices.shape().ToString(), " vs. ", values.shape().ToString());
  }
  Labels labels(batch);
  const int64_t* row = indices.data<int64_t>();
  for (int64_t i = 0; i < values.num_elements(); ++i, row += 2) {
    const bool inside = row[0] >= 0 && row[0] < batch && row[1] >= 0;
    if (!inside || (i > 0 && !std::lexicographical_compare(row - 2, row, row, row + 2))) {
      return InvalidArgument("label SparseTensor is not valid: indices[", i, "] = [", row[0], ",",
                             row[1], "] is ", inside ? "out of order" : "out of bounds");
    }
    labels[row[0]].push_back(values.data<int32_t>()[i]);
  }
  return labels;
}

// Returns the symbols of a sequence with blanks before, between and after them. A label of the last
// class or above ends the sequence.
absl::StatusOr<std::vector<int>> Extend(const std::vector<int>& labels, int64_t b, int64_t classes,
                                        const CtcOptions& o) {
  if (labels.empty()) return InvalidArgument("Labels length is zero in batch ", b);
  const int blank = o.blank_first ? 0 : static_cast<int>(classes) - 1;
  const int64_t end = o.blank_first ? classes : classes - 1;
  std::vector<int> places = {blank};
  bool ended = false;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (i > 0 && o.collapse && labels[i] == labels[i - 1]) continue;
    if (labels[i] < 0) {
      return InvalidArgument("All labels must be nonnegative integers, batch: ", b,
                             " label: ", labels[i]);
    }
    if (labels[i] >= end) {
      ended = true;
      continue;
    }
    if (ended) {
      return InvalidArgument(
          "Saw a non-null label (index >= num_classes - 1) following a null "
          "label, batch: ",
          b, " num_classes: ", classes);
    }
    places.push_back(labels[i]);
    places.push_back(blank);
  }
  return places;
}

// A sequence to compute: its index, and the offset of its alpha matrix.
struct Task {
  int64_t b;
  Aligner aligner;
  int64_t table;
};

absl::StatusOr<std::vector<Task>> MakeTasks(const Labels& labels, const CtcSizes& s,
                                            const int32_t* lengths, const CtcOptions& o) {
  const int blank = o.blank_first ? 0 : static_cast<int>(s.classes) - 1;
  std::vector<Task> tasks;
  int64_t table = 0;
  for (int64_t b = 0; b < s.batch; ++b) {
    WEIR_ASSIGN_OR_RETURN(std::vector<int> places, Extend(labels[b], b, s.classes, o));
    const bool too_long = static_cast<int64_t>(labels[b].size()) > lengths[b];
    if (too_long && !o.ignore_longer) {
      return InvalidArgument("Not enough time for target transition sequence (required: ",
                             labels[b].size(), ", available: ", lengths[b], ")", b,
                             "You can turn this error into a warning by using the flag "
                             "ignore_longer_outputs_than_inputs");
    }
    if (too_long || lengths[b] == 0) continue;
    tasks.push_back({b, Aligner(std::move(places), blank, o.merge, lengths[b]), table});
    table += lengths[b] * tasks.back().aligner.count();
  }
  return tasks;
}

// Computes the log-softmax of one sequence's activations.
template <class T>
std::vector<double> LogSoftmax(const T* x, const CtcSizes& s, int64_t b, int64_t steps) {
  std::vector<double> log_y(steps * s.classes);
  for (int64_t t = 0; t < steps; ++t) {
    ThrowIfCancelled();
    const T* const row = x + (t * s.batch + b) * s.classes;
    const double max = *std::max_element(row, row + s.classes);
    double sum = 0;
    for (int64_t l = 0; l < s.classes; ++l) sum += std::exp(row[l] - max);
    for (int64_t l = 0; l < s.classes; ++l) log_y[t * s.classes + l] = row[l] - max - std::log(sum);
  }
  return log_y;
}

// Computes the loss and gradient of one sequence. `gradient` must be zero-initialized.
template <class T>
void Solve(const Task& task, const CtcSizes& s, const T* x, double* alpha, T* loss, T* gradient) {
  const Aligner& aligner = task.aligner;
  const std::vector<double> log_y = LogSoftmax(x, s, task.b, aligner.steps());
  const double log_p = aligner.Forward(log_y.data(), s.classes, alpha);
  loss[task.b] = static_cast<T>(-log_p);
  std::vector<double> passed(s.classes);
  aligner.Backward(log_y.data(), s.classes, [&](int64_t t, const std::vector<double>& beta) {
    std::fill(passed.begin(), passed.end(), kNone);
    for (int64_t u = 0; u < aligner.count(); ++u) {
      double& sum = passed[aligner.symbol(u)];
      sum = LogSum(sum, alpha[t * aligner.count() + u] + beta[u]);
    }
    T* const row = gradient + (t * s.batch + task.b) * s.classes;
    for (int64_t l = 0; l < s.classes; ++l) {
      const double share = log_p == kNone ? 0 : std::exp(passed[l] - log_p);
      row[l] = static_cast<T>(std::exp(log_y[t * s.classes + l]) - share);
    }
  });
}

template <class T>
absl::Status RunLoss(KernelContext& c, const CtcOptions& o) {
  WEIR_ASSIGN_OR_RETURN(const CtcSizes s, ReadSizes(c));
  WEIR_ASSIGN_OR_RETURN(const Labels labels, ReadLabels(c, s.batch));
  WEIR_ASSIGN_OR_RETURN(const std::vector<Task> tasks,
                        MakeTasks(labels, s, c.input_data<int32_t>(3), o));
  WEIR_ASSIGN_OR_RETURN(Tensor * loss, c.AllocateOutput(0, Shape({s.batch})));
  WEIR_ASSIGN_OR_RETURN(Tensor * gradient, c.AllocateOutput(1, c.input(0).shape()));
  std::fill_n(loss->data<T>(), s.batch, T(0));
  std::fill_n(gradient->data<T>(), gradient->num_elements(), T(0));
  if (tasks.empty()) return absl::OkStatus();
  const Aligner& last = tasks.back().aligner;
  const int64_t cells = tasks.back().table + last.steps() * last.count();
  WEIR_ASSIGN_OR_RETURN(Tensor alpha, c.AllocateTemp(DT_DOUBLE, Shape({cells})));
  const int64_t count = static_cast<int64_t>(tasks.size());
  constexpr double kCellCost = 60, kClassCost = 40;
  const double cost = kCellCost * cells / count + kClassCost * s.time * s.classes;
  c.pool().ParallelFor(count, cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Solve(tasks[i], s, c.input_data<T>(0), alpha.data<double>() + tasks[i].table, loss->data<T>(),
            gradient->data<T>());
    }
  });
  return absl::OkStatus();
}

template <class T>
absl::StatusOr<Kernel> MakeLoss(const KernelInit& init) {
  CtcOptions o;
  o.collapse = init.attr<bool>("preprocess_collapse_repeated");
  o.merge = init.attr<bool>("ctc_merge_repeated");
  o.ignore_longer = init.attr<bool>("ignore_longer_outputs_than_inputs");
  o.blank_first = init.node.op_name() == "CTCLossV2";
  return Kernel([o](KernelContext& c) { return RunLoss<T>(c, o); });
}

}  // namespace

void AddCtcKernels(KernelRegistry* r) {
  r->Add("CTCLoss", kCpu, DT_FLOAT, MakeLoss<float>);
  r->Add("CTCLoss", kCpu, DT_DOUBLE, MakeLoss<double>);
  r->Add("CTCLossV2", kCpu, MakeLoss<float>);
  AddCtcDecoders(r);
}

}  // namespace weir
