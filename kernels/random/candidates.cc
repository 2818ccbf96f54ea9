#include <algorithm>
#include <cfloat>
#include <cmath>
#include <functional>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/random/distributions.h"
#include "weir/kernels/random/random_stream.h"
#include "weir/kernels/random/unigram.h"

// Candidate sampling: draws a few classes to represent the negative classes of a softmax over many,
// and computes how often each was expected to be drawn.
namespace weir {

namespace {

// A distribution of classes over [0, range). Thread-safe.
class ClassSampler {
 public:
  explicit ClassSampler(int64_t range) : range_(range) {}
  virtual ~ClassSampler() = default;
  int64_t range() const { return range_; }
  virtual int64_t Draw(PhiloxWords& words) const = 0;
  virtual float Probability(int64_t value) const = 0;
  // Informs the sampler of the true classes of this batch.
  virtual void Learn(absl::Span<const int64_t>) {}

 private:
  const int64_t range_;
};

class UniformSampler : public ClassSampler {
 public:
  explicit UniformSampler(int64_t range)
      : ClassSampler(range), probability_(static_cast<float>(1.0 / static_cast<double>(range))) {}
  int64_t Draw(PhiloxWords& words) const override {
    return static_cast<int64_t>(UnbiasedUniform<uint64_t>(words, static_cast<uint64_t>(range())));
  }
  float Probability(int64_t) const override { return probability_; }

 private:
  const float probability_;
};

// For classes sorted by decreasing frequency: P(k) = log((k + 2) / (k + 1)) / log(range + 1).
class LogUniformSampler : public ClassSampler {
 public:
  explicit LogUniformSampler(int64_t range)
      : ClassSampler(range), log_range_(std::log1p(static_cast<double>(range))) {}
  int64_t Draw(PhiloxWords& words) const override {
    const uint32_t high = words(), low = words();
    constexpr double kLimit = 9223372036854774784.0;  // the largest double below 2^63
    const double value = std::min(std::exp(UnitDouble(high, low) * log_range_), kLimit);
    return (static_cast<int64_t>(value) - 1) % range();
  }
  float Probability(int64_t value) const override {
    const double k = static_cast<double>(value);
    return static_cast<float>(std::log((k + 2.0) / (k + 1.0)) / log_range_);
  }

 private:
  const double log_range_;
};

// Draws in proportion to how often a class was a true class so far, plus one.
class LearnedSampler : public ClassSampler {
 public:
  explicit LearnedSampler(int64_t range) : ClassSampler(range), counts_(range) {}
  int64_t Draw(PhiloxWords& words) const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return counts_.Pick(words);
  }
  float Probability(int64_t value) const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return static_cast<float>(counts_.weight(value)) / static_cast<float>(counts_.total());
  }
  void Learn(absl::Span<const int64_t> values) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const int64_t value : values) {
      if (counts_.total() == std::numeric_limits<int32_t>::max()) return;
      counts_.Increment(value);
    }
  }

 private:
  mutable std::mutex mutex_;
  CountedClasses counts_;
};

class FixedSampler : public ClassSampler {
 public:
  explicit FixedSampler(UnigramWeights weights)
      : ClassSampler(static_cast<int64_t>(weights.weights.size())),
        weights_(std::move(weights)),
        table_(weights_.weights) {}
  int64_t Draw(PhiloxWords& words) const override { return table_.Draw(words); }
  float Probability(int64_t value) const override {
    if (value < 0 || value >= range()) return 0;
    return static_cast<float>(weights_.weights[value] / weights_.total);
  }

 private:
  const UnigramWeights weights_;
  const AliasSampler table_;
};

// The statistics of a learned sampler belong to the session.
struct SamplerState : Resource {
  explicit SamplerState(std::string name, int64_t range)
      : name(std::move(name)), sampler(std::make_shared<LearnedSampler>(range)) {}
  std::string Describe() const override { return "candidate sampler of '" + name + "'"; }
  const std::string name;
  const std::shared_ptr<ClassSampler> sampler;
};

struct SamplerOptions {
  int64_t num_true = 1, num_sampled = 1;
  bool unique = true;
};

// Returns the expected number of times that a class of probability p is drawn. If classes are
// redrawn until they are unique, returns the probability that the class is among them after `tries`
// tries.
float ExpectedCount(float p, int64_t drawn, int64_t tries) {
  if (tries == drawn) return p * static_cast<float>(drawn);
  return -std::expm1(static_cast<float>(tries) * std::log1p(-p));
}

// Fills `out` and returns the number of tries.
absl::StatusOr<int64_t> DrawClasses(const ClassSampler& sampler, bool unique, PhiloxWords& words,
                                    absl::Span<int64_t> out) {
  if (!unique) {
    for (int64_t& value : out) {
      ThrowIfCancelled();
      value = sampler.Draw(words);
    }
    return static_cast<int64_t>(out.size());
  }
  std::unordered_set<int64_t> used;
  int64_t tries = 0;
  for (size_t picked = 0; picked < out.size(); ++tries) {
    if (tries == std::numeric_limits<int32_t>::max())
      return Internal("no unique candidates after ", tries, " tries");
    ThrowIfCancelledAt(tries);
    const int64_t value = sampler.Draw(words);
    if (used.insert(value).second) out[picked++] = value;
  }
  return tries;
}

// Returns input 0 after it and the options are validated for a range of classes.
absl::StatusOr<absl::Span<const int64_t>> TrueClasses(const KernelContext& c,
                                                      const SamplerOptions& o, int64_t range) {
  const Tensor& classes = c.input(0);
  if (classes.rank() != 2) return InvalidArgument("true_classes must be a matrix");
  if (classes.dim(1) != o.num_true) {
    return InvalidArgument("true_classes must have num_true columns, expected: ", o.num_true,
                           " was: ", classes.dim(1));
  }
  if (o.unique && o.num_sampled > range) return InvalidArgument("Sampler's range is too small.");
  for (const int64_t value : classes.flat<int64_t>()) {
    if (value >= 0 && value < range) continue;
    return InvalidArgument("`true_candidate` out of range [0, ", range, "), received ", value);
  }
  return classes.flat<int64_t>();
}

absl::Status RunSampler(KernelContext& c, const SamplerOptions& o, ClassSampler& sampler,
                        RandomStream& streams) {
  WEIR_ASSIGN_OR_RETURN(const absl::Span<const int64_t> classes,
                        TrueClasses(c, o, sampler.range()));
  WEIR_ASSIGN_OR_RETURN(Tensor * sampled, c.AllocateOutput(0, Shape({o.num_sampled})));
  WEIR_ASSIGN_OR_RETURN(Tensor * true_counts, c.AllocateOutput(1, c.input(0).shape()));
  WEIR_ASSIGN_OR_RETURN(Tensor * sampled_counts, c.AllocateOutput(2, Shape({o.num_sampled})));
  constexpr uint64_t kWords = 2048;  // per sample, as in TensorFlow
  PhiloxWords words(streams.Reserve(kWords * static_cast<uint64_t>(o.num_sampled) / 4, c.step()));
  const absl::Span<int64_t> out = sampled->flat<int64_t>();
  WEIR_ASSIGN_OR_RETURN(const int64_t tries, DrawClasses(sampler, o.unique, words, out));
  const auto count = [&](int64_t value) {
    return ExpectedCount(sampler.Probability(value), o.num_sampled, tries);
  };
  std::transform(out.begin(), out.end(), sampled_counts->data<float>(), count);
  std::transform(classes.begin(), classes.end(), true_counts->data<float>(), count);
  sampler.Learn(classes);
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<ClassSampler>> MakeClassSampler(const KernelInit& init) {
  const absl::string_view op = init.node.op_name();
  const int64_t range = init.attr<int64_t>("range_max");
  if (op == "UniformCandidateSampler") return std::make_shared<UniformSampler>(range);
  if (op == "LogUniformCandidateSampler") return std::make_shared<LogUniformSampler>(range);
  if (op == "FixedUnigramCandidateSampler") {
    WEIR_ASSIGN_OR_RETURN(UnigramWeights weights, UnigramWeights::Read(init));
    return std::make_shared<FixedSampler>(std::move(weights));
  }
  if (range >= std::numeric_limits<int32_t>::max())
    return InvalidArgument("range_max must be below 2^31 - 1, got ", range);
  constexpr char kContainer[] = "candidate samplers";
  const std::string& name = init.node.name();
  return init.resources
      .LookupOrCreate<SamplerState>(kContainer, name,
                                    [&] { return std::make_shared<SamplerState>(name, range); })
      ->sampler;
}

absl::StatusOr<Kernel> MakeSampler(const KernelInit& init) {
  SamplerOptions o;
  WEIR_ASSIGN_OR_RETURN(o.num_true, NarrowAttr(init.node, "num_true"));
  WEIR_ASSIGN_OR_RETURN(o.num_sampled, NarrowAttr(init.node, "num_sampled"));
  o.unique = init.attr<bool>("unique");
  WEIR_ASSIGN_OR_RETURN(const std::shared_ptr<ClassSampler> sampler, MakeClassSampler(init));
  return Kernel([o, sampler, stream = RandomStream::Of(init)](KernelContext& c) {
    return RunSampler(c, o, *sampler, *stream);
  });
}

// AllCandidateSampler draws nothing: it outputs every class once.
absl::StatusOr<Kernel> MakeAllSampler(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const int64_t num_true, NarrowAttr(init.node, "num_true"));
  WEIR_ASSIGN_OR_RETURN(const int64_t range, NarrowAttr(init.node, "num_sampled"));
  return Kernel([=](KernelContext& c) -> absl::Status {
    const SamplerOptions all = {.num_true = num_true, .num_sampled = range};
    WEIR_RETURN_IF_ERROR(TrueClasses(c, all, range).status());
    const Shape shapes[] = {Shape({range}), c.input(0).shape(), Shape({range})};
    WEIR_ASSIGN_OR_RETURN(Tensor * sampled, c.AllocateOutput(0, shapes[0]));
    for (int64_t i = 0; i < range; ++i) sampled->data<int64_t>()[i] = i;
    for (int k = 1; k < 3; ++k) {
      WEIR_ASSIGN_OR_RETURN(Tensor * counts, c.AllocateOutput(k, shapes[k]));
      std::fill_n(counts->data<float>(), counts->num_elements(), 1.0f);
    }
    return absl::OkStatus();
  });
}

// Finds true classes that were also sampled. Outputs the row, the position among the samples, and a
// weight that cancels the sample's contribution.
absl::Status RunAccidentalHits(KernelContext& c, int64_t num_true) {
  const Tensor &classes = c.input(0), &sampled = c.input(1);
  if (classes.rank() != 2 || classes.dim(1) != num_true)
    return InvalidArgument("true_candidates must be a batch_size * num_true matrix");
  if (sampled.rank() != 1) {
    return InvalidArgument(
        "sampled_candidates must be a vector, which is typically an output from CandidateSampler");
  }
  std::unordered_map<int64_t, int64_t> positions;
  for (int64_t i = 0; i < sampled.num_elements(); ++i) positions[sampled.data<int64_t>()[i]] = i;
  std::vector<int32_t> rows;
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < classes.num_elements(); ++i) {
    const auto it = positions.find(classes.data<int64_t>()[i]);
    if (it == positions.end()) continue;
    rows.push_back(static_cast<int32_t>(i / num_true));
    ids.push_back(it->second);
  }
  const Shape shape({static_cast<int64_t>(ids.size())});
  WEIR_ASSIGN_OR_RETURN(Tensor * indices, c.AllocateOutput(0, shape));
  WEIR_ASSIGN_OR_RETURN(Tensor * positions_out, c.AllocateOutput(1, shape));
  WEIR_ASSIGN_OR_RETURN(Tensor * weights, c.AllocateOutput(2, shape));
  std::copy(rows.begin(), rows.end(), indices->data<int32_t>());
  std::copy(ids.begin(), ids.end(), positions_out->data<int64_t>());
  std::fill_n(weights->data<float>(), weights->num_elements(), -FLT_MAX);
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeAccidentalHits(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const int64_t num_true, NarrowAttr(init.node, "num_true"));
  return Kernel([num_true](KernelContext& c) { return RunAccidentalHits(c, num_true); });
}

}  // namespace

void AddCandidateSamplers(KernelRegistry* r) {
  for (const char* op :
       {"UniformCandidateSampler", "LogUniformCandidateSampler", "LearnedUnigramCandidateSampler",
        "ThreadUnsafeUnigramCandidateSampler", "FixedUnigramCandidateSampler"}) {
    r->Add(op, kCpu, MakeSampler);
  }
  r->Add("AllCandidateSampler", kCpu, MakeAllSampler);
  r->Add("ComputeAccidentalHits", kCpu, MakeAccidentalHits);
}

}  // namespace weir
