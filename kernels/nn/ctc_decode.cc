#include "weir/kernels/nn/ctc_decode.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "weir/kernels/lib/arguments.h"

// Decodes a network's outputs per time step to a sequence of symbols: greedily (the best path,
// symbol by symbol), or by a beam search for the best sequences, which sums over the paths that
// represent them. See ctc.cc for paths and the sequences they represent.
namespace weir {

namespace {

struct DecodeSizes {
  int64_t time = 0, batch = 0;
  int classes = 0;
};

absl::StatusOr<DecodeSizes> ReadSizes(const KernelContext& c) {
  const Tensor &inputs = c.input(0), &lengths = c.input(1);
  if (inputs.rank() != 3) return InvalidArgument("inputs is not a 3-Tensor");
  if (inputs.num_elements() == 0) return InvalidArgument("inputs must not be empty");
  if (lengths.rank() != 1) return InvalidArgument("sequence_length is not a vector");
  if (lengths.dim(0) != inputs.dim(1)) {
    return FailedPrecondition("len(sequence_length) != batch_size.  len(sequence_length):  ",
                              lengths.dim(0), " batch_size: ", inputs.dim(1));
  }
  for (int64_t b = 0; b < lengths.dim(0); ++b) {
    if (lengths.data<int32_t>()[b] > inputs.dim(0))
      return FailedPrecondition("sequence_length(", b, ") <= ", inputs.dim(0));
  }
  if (inputs.dim(2) > std::numeric_limits<int>::max())
    return InvalidArgument("num_classes cannot exceed max int");
  return DecodeSizes{inputs.dim(0), inputs.dim(1), static_cast<int>(inputs.dim(2))};
}

// Returns sequence b of a result.
using Sequences = std::vector<std::vector<int>>;

// Outputs result `path` of `count` as a sparse matrix, whose three parts belong to three output
// lists.
absl::Status WriteSequences(KernelContext& c, const Sequences& sequences, int path, int count) {
  int64_t total = 0, longest = 0;
  for (const std::vector<int>& s : sequences) {
    total += static_cast<int64_t>(s.size());
    longest = std::max(longest, static_cast<int64_t>(s.size()));
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * indices, c.AllocateOutput(path, Shape({total, 2})));
  WEIR_ASSIGN_OR_RETURN(Tensor * values, c.AllocateOutput(count + path, Shape({total})));
  WEIR_ASSIGN_OR_RETURN(Tensor * shape, c.AllocateOutput(2 * count + path, Shape({2})));
  int64_t *index = indices->data<int64_t>(), *value = values->data<int64_t>();
  for (size_t b = 0; b < sequences.size(); ++b) {
    for (size_t t = 0; t < sequences[b].size(); ++t) {
      *index++ = static_cast<int64_t>(b);
      *index++ = static_cast<int64_t>(t);
      *value++ = sequences[b][t];
    }
  }
  shape->data<int64_t>()[0] = static_cast<int64_t>(sequences.size());
  shape->data<int64_t>()[1] = longest;
  return absl::OkStatus();
}

template <class T>
absl::Status RunGreedy(KernelContext& c, bool merge_repeated, int64_t blank_attr) {
  WEIR_ASSIGN_OR_RETURN(const DecodeSizes s, ReadSizes(c));
  const int64_t blank = blank_attr < 0 ? s.classes + blank_attr : blank_attr;
  if (blank < 0 || blank >= s.classes) {
    return InvalidArgument("blank_index expected to be between ", -s.classes, " and ",
                           s.classes - 1, " but was ", blank_attr);
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * score, c.AllocateOutput(3, Shape({s.batch, 1})));
  const T* const x = c.input_data<T>(0);
  Sequences sequences(s.batch);
  c.pool().ParallelFor(s.batch, 2.0 * s.time * s.classes, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      int64_t before = -1;
      T sum = 0;
      for (int64_t t = 0; t < c.input_data<int32_t>(1)[b]; ++t) {
        ThrowIfCancelled();
        const T* const row = x + (t * s.batch + b) * s.classes;
        const int64_t best = std::max_element(row, row + s.classes) - row;
        sum += -row[best];
        if (best != blank && !(merge_repeated && best == before))
          sequences[b].push_back(static_cast<int>(best));
        before = best;
      }
      score->data<T>()[b] = sum;
    }
  });
  return WriteSequences(c, sequences, 0, 1);
}

// Prefix beam search. Source: Graves, "Supervised sequence labeling with recurrent neural
// networks", 2012, section 7.5.
//
// The beam holds the most likely sequences so far. Each has two probabilities: of the paths that
// represent it and end in its last symbol, and of those that end in blank. A time step computes
//   p_label(l) = y(last of l) * (p_label(l) + (p_total, or p_blank if the symbol repeats)(l without
//                its last symbol))       p_blank(l) = y(blank) * p_total(l)
// and tries to extend every sequence by one symbol: the new sequence enters the beam if there is
// room or if it beats the worst one, which is removed. Sequences form a tree; a sequence removed
// from the beam remains as a node, because its extensions may still be in the beam. All
// probabilities are logarithms.
template <class T>
class BeamSearch {
 public:
  BeamSearch(int classes, int64_t width) : classes_(classes), blank_(classes - 1), width_(width) {
    Entry& root = entries_.emplace_back();
    root.now.total = root.now.blank = 0;
    leaves_.push_back(&root);
  }

  void Step(const T* logits) {
    T max = *std::max_element(logits, logits + classes_), sum = 0;
    for (int l = 0; l < classes_; ++l) sum += std::exp(logits[l] - max);
    const T norm = max + std::log(sum);
    std::vector<Entry*> branches = std::exchange(leaves_, {});
    std::stable_sort(branches.begin(), branches.end(), [this](const Entry* a, const Entry* b) {
      ThrowIfCancelledAt(++looked_at_);
      return Better(a, b);
    });
    for (Entry* e : branches) e->old = e->now;
    for (Entry* e : branches) {
      ThrowIfCancelledAt(++looked_at_);
      Update(*e, logits, norm);
      Push(e);
    }
    for (Entry* e : branches) {
      ThrowIfCancelledAt(++looked_at_);
      if (IsCandidate(e->old.total)) Grow(*e, logits, norm);
    }
  }

  // Returns the best `n` sequences and their log-probabilities.
  absl::Status Best(int n, bool merge_repeated, std::vector<std::vector<int>>* sequences,
                    std::vector<T>* scores) {
    if (n > width_) return InvalidArgument("requested more paths than the beam width.");
    if (n > static_cast<int64_t>(leaves_.size()))
      return InvalidArgument("Less leaves in the beam search than requested.");
    std::vector<Entry*> best = leaves_;
    std::stable_sort(best.begin(), best.end(), Better);
    for (int i = 0; i < n; ++i) {
      sequences->push_back(Spell(best[i], merge_repeated));
      scores->push_back(best[i]->now.total);
    }
    return absl::OkStatus();
  }

 private:
  static constexpr T kNone = -std::numeric_limits<T>::infinity();
  struct Probability {
    T total = kNone, blank = kNone, label = kNone;
  };
  struct Entry {
    Entry* parent = nullptr;
    int label = -1;
    Probability old, now;
    bool in_beam() const { return now.total != kNone; }
  };

  static bool Better(const Entry* a, const Entry* b) { return a->now.total > b->now.total; }
  static T LogSum(T a, T b) {
    if (a == kNone) return b;
    if (b == kNone) return a;
    return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b)));
  }

  // The front of the heap is the worst entry.
  void Push(Entry* e) {
    ThrowIfCancelledAt(++looked_at_);
    leaves_.push_back(e);
    std::push_heap(leaves_.begin(), leaves_.end(), Better);
  }
  bool full() const { return static_cast<int64_t>(leaves_.size()) >= width_; }
  bool IsCandidate(T total) const {
    return total > kNone && (!full() || total > leaves_.front()->now.total);
  }

  // Updates a sequence that was in the beam.
  void Update(Entry& e, const T* logits, T norm) {
    if (e.parent != nullptr) {
      if (e.parent->in_beam()) e.now.label = LogSum(e.now.label, Continued(*e.parent, e.label));
      e.now.label += logits[e.label] - norm;
    }
    e.now.blank = e.old.total + logits[blank_] - norm;
    e.now.total = LogSum(e.now.blank, e.now.label);
  }
  // Returns the probability of the paths that `label` can extend by a new symbol.
  static T Continued(const Entry& e, int label) {
    return label == e.label ? e.old.blank : e.old.total;
  }

  void Grow(Entry& e, const T* logits, T norm) {
    for (int label = 0; label < classes_; ++label) {
      if (label == blank_) continue;
      const auto it = children_.find({&e, label});
      Entry* child = it == children_.end() ? nullptr : it->second;
      if (child != nullptr && child->in_beam()) continue;
      const T total = logits[label] - norm + Continued(e, label);
      if (!IsCandidate(total)) continue;
      if (child == nullptr) {
        child = &entries_.emplace_back(Entry{&e, label});
        children_[{&e, label}] = child;
      }
      child->old = Probability();
      child->now = {.total = total, .blank = kNone, .label = total};
      if (full()) {
        std::pop_heap(leaves_.begin(), leaves_.end(), Better);
        leaves_.back()->now = Probability();
        leaves_.pop_back();
      }
      Push(child);
    }
  }

  static std::vector<int> Spell(const Entry* e, bool merge_repeated) {
    std::vector<int> labels;
    int after = -1;
    for (; e->parent != nullptr; e = e->parent) {
      if (!merge_repeated || e->label != after) labels.push_back(e->label);
      after = e->label;
    }
    std::reverse(labels.begin(), labels.end());
    return labels;
  }

  const int classes_, blank_;
  const int64_t width_;
  int64_t looked_at_ = 0;  // entries, reused
  std::deque<Entry> entries_;
  using Child = std::pair<const Entry*, int>;
  std::unordered_map<Child, Entry*, absl::Hash<Child>> children_;
  std::vector<Entry*> leaves_;
};

template <class T>
absl::Status RunBeamSearch(KernelContext& c, int64_t width, int paths, bool merge_repeated) {
  WEIR_ASSIGN_OR_RETURN(const DecodeSizes s, ReadSizes(c));
  if (paths > width) return InvalidArgument("requested more paths than the beam width.");
  std::vector<Sequences> best(paths, Sequences(s.batch));
  WEIR_ASSIGN_OR_RETURN(Tensor * scores, c.AllocateOutput(3 * paths, Shape({s.batch, paths})));
  std::vector<absl::Status> status(s.batch);
  const T* const x = c.input_data<T>(0);
  const double cost = 20.0 * s.time * s.classes * std::min<int64_t>(width, 100);
  c.pool().ParallelFor(s.batch, cost, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      BeamSearch<T> search(s.classes, width);
      for (int64_t t = 0; t < c.input_data<int32_t>(1)[b]; ++t) {
        ThrowIfCancelled();
        search.Step(x + (t * s.batch + b) * s.classes);
      }
      std::vector<std::vector<int>> sequences;
      std::vector<T> log_p;
      status[b] = search.Best(paths, merge_repeated, &sequences, &log_p);
      for (size_t p = 0; p < sequences.size(); ++p) {
        best[p][b] = std::move(sequences[p]);
        scores->data<T>()[b * paths + p] = log_p[p];
      }
    }
  });
  for (const absl::Status& one : status) WEIR_RETURN_IF_ERROR(one);
  for (int p = 0; p < paths; ++p) WEIR_RETURN_IF_ERROR(WriteSequences(c, best[p], p, paths));
  return absl::OkStatus();
}

template <class T>
absl::StatusOr<Kernel> MakeGreedy(const KernelInit& init) {
  const bool merge_repeated = init.attr<bool>("merge_repeated");
  const int64_t blank = init.attr<int64_t>("blank_index");
  return Kernel([=](KernelContext& c) { return RunGreedy<T>(c, merge_repeated, blank); });
}

template <class T>
absl::StatusOr<Kernel> MakeBeamSearch(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const int64_t width, NarrowAttr(init.node, "beam_width"));
  const int paths = static_cast<int>(init.attr<int64_t>("top_paths"));
  const bool merge_repeated = init.attr<bool>("merge_repeated");
  return Kernel(
      [=](KernelContext& c) { return RunBeamSearch<T>(c, width, paths, merge_repeated); });
}

}  // namespace

void AddCtcDecoders(KernelRegistry* r) {
  r->Add("CTCGreedyDecoder", kCpu, DT_FLOAT, MakeGreedy<float>);
  r->Add("CTCGreedyDecoder", kCpu, DT_DOUBLE, MakeGreedy<double>);
  r->Add("CTCBeamSearchDecoder", kCpu, DT_FLOAT, MakeBeamSearch<float>);
  r->Add("CTCBeamSearchDecoder", kCpu, DT_DOUBLE, MakeBeamSearch<double>);
}

}  // namespace weir
