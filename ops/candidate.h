#ifndef WEIR_OPS_CANDIDATE_H_
#define WEIR_OPS_CANDIDATE_H_

#include <optional>

#include "weir/core/graph.h"

// Candidate sampling: a few classes drawn to stand for all the wrong ones.
namespace weir {

// The classes drawn [num_sampled] int64, and how often they and the true classes were to be
// expected among them.
struct Candidates {
  Output sampled, true_expected_count, sampled_expected_count;
};

struct CandidateOptions {
  int64_t num_true = 1;
  int64_t num_sampled = 1;
  bool unique = true;
  int64_t range_max = 1;  // classes are [0, range_max)
  std::optional<int64_t> seed;
};
// All classes are equally likely.
Candidates UniformCandidateSampler(Output true_classes, const CandidateOptions& options,
                                   absl::string_view name = {});
// For classes sorted by frequency: P(k) = log((k + 2) / (k + 1)) / log(range_max + 1).
Candidates LogUniformCandidateSampler(Output true_classes, const CandidateOptions& options,
                                      absl::string_view name = {});
// In proportion to how often a class was true so far.
Candidates LearnedUnigramCandidateSampler(Output true_classes, const CandidateOptions& options,
                                          absl::string_view name = {});

// Where true classes are among the sampled ones: row of true_classes, position in
// sampled_candidates, and -FLT_MAX to add to the logit.
struct AccidentalHits {
  Output indices, ids, weights;
};
AccidentalHits ComputeAccidentalHits(Output true_classes, Output sampled_candidates,
                                     int64_t num_true, absl::string_view name = {});

}  // namespace weir

#endif  // WEIR_OPS_CANDIDATE_H_
