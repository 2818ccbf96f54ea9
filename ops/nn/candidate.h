#ifndef WEIR_OPS_NN_CANDIDATE_H_
#define WEIR_OPS_NN_CANDIDATE_H_

#include <optional>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"

// Candidate sampling: draws a few classes that represent all negative classes.
namespace WEIR_API weir {

// The sampled classes [num_sampled] int64, and the expected counts of the sampled and of the true
// classes in the sample.
struct Candidates {
  // `true_expected_count` is float, in the shape of true_classes, and `sampled_expected_count`
  // float [num_sampled].
  Output sampled, true_expected_count, sampled_expected_count;
};

// Options of the samplers. `num_true` is the number of true classes per example, `num_sampled` that
// of samples for the whole batch; `unique` samples have no repetitions (then num_sampled is at most
// range_max); `seed` is the op's.
struct CandidateOptions {
  int64_t num_true = 1;
  int64_t num_sampled = 1;
  bool unique = true;
  int64_t range_max = 1;  // classes are [0, range_max)
  std::optional<int64_t> seed;
};
// Samples classes from a uniform distribution.
Candidates UniformCandidateSampler(Output true_classes, const CandidateOptions& options,
                                   absl::string_view name = {});
// Samples from a log-uniform distribution, for classes sorted by decreasing frequency: P(k) =
// log((k + 2) / (k + 1)) / log(range_max + 1).
Candidates LogUniformCandidateSampler(Output true_classes, const CandidateOptions& options,
                                      absl::string_view name = {});
// Samples in proportion to how often each class has been a true class so far.
Candidates LearnedUnigramCandidateSampler(Output true_classes, const CandidateOptions& options,
                                          absl::string_view name = {});

// Returns the accidental hits, which are the true classes among the sampled ones: the row of
// true_classes, the position in sampled_candidates, and -FLT_MAX to add to the logit.
struct AccidentalHits {
  Output indices, ids, weights;  // [hits]: int32, int64 and float
};
// `true_classes` is [batch, num_true] int64.
AccidentalHits ComputeAccidentalHits(Output true_classes, Output sampled_candidates,
                                     int64_t num_true, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_NN_CANDIDATE_H_
