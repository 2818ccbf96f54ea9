#include "weir/ops/nn/candidate.h"

#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/array_internal.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/random/random_internal.h"

namespace weir {

namespace {

Candidates Sample(absl::string_view op, Output true_classes, const CandidateOptions& o,
                  absl::string_view name) {
  if (!true_classes.valid()) return {};
  const auto [seed, seed2] = true_classes.graph().NextSeed(o.seed);
  const Outputs r = AllOutputs(AddNode(op, {true_classes},
                                       {{"num_true", o.num_true},
                                        {"num_sampled", o.num_sampled},
                                        {"unique", o.unique},
                                        {"range_max", o.range_max},
                                        {"seed", seed},
                                        {"seed2", seed2}},
                                       name),
                               3);
  return {r[0], r[1], r[2]};
}

absl::Status SamplerShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape classes, c.WithRank(0, 2));
  const int64_t sampled = c.attr<int64_t>("num_sampled");
  c.set_output(0, Shape({sampled}));
  c.set_output(1, Shape({classes.dim(0), c.attr<int64_t>("num_true")}));
  c.set_output(2, Shape({sampled}));
  return absl::OkStatus();
}

absl::Status AccidentalHitsShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape classes, c.WithRank(0, 2));
  WEIR_RETURN_IF_ERROR(MergeDims(classes.dim(1), c.attr<int64_t>("num_true")).status());
  WEIR_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  c.set_all_outputs(Shape({Shape::kUnknown}));
  return absl::OkStatus();
}

OpSpec SamplerSpec(const char* name) {
  OpSpec spec(name);
  spec.In("true_classes: int64")
      .Out("sampled_candidates: int64, true_expected_count: float, sampled_expected_count: float")
      .Attr("num_true: int >= 1")
      .Attr("num_sampled: int >= 1")
      .Attr("unique: bool")
      .Stateful()
      .InferShape(SamplerShape);
  return spec;
}

void AddRangeSampler(OpRegistry* ops, const char* name, const char* doc) {
  ops->Add(SamplerSpec(name)
               .Attr("range_max: int >= 1")
               .Attr("seed: int = 0")
               .Attr("seed2: int = 0")
               .Doc(doc));
}

}  // namespace

Candidates UniformCandidateSampler(Output true_classes, const CandidateOptions& o,
                                   absl::string_view name) {
  return Sample("UniformCandidateSampler", true_classes, o, name);
}
Candidates LogUniformCandidateSampler(Output true_classes, const CandidateOptions& o,
                                      absl::string_view name) {
  return Sample("LogUniformCandidateSampler", true_classes, o, name);
}
Candidates LearnedUnigramCandidateSampler(Output true_classes, const CandidateOptions& o,
                                          absl::string_view name) {
  return Sample("LearnedUnigramCandidateSampler", true_classes, o, name);
}

AccidentalHits ComputeAccidentalHits(Output true_classes, Output sampled_candidates,
                                     int64_t num_true, absl::string_view name) {
  const Outputs r = AllOutputs(AddNode("ComputeAccidentalHits", {true_classes, sampled_candidates},
                                       {{"num_true", num_true}}, name),
                               3);
  return {r[0], r[1], r[2]};
}

void AddCandidateOps(OpRegistry* ops) {
  AddRangeSampler(ops, "UniformCandidateSampler",
                  "Samples negative classes from a uniform distribution.");
  AddRangeSampler(ops, "LogUniformCandidateSampler",
                  "Samples classes of [0, range_max) from a log-uniform distribution, which "
                  "prefers small ones: for classes sorted by decreasing frequency.");
  AddRangeSampler(ops, "LearnedUnigramCandidateSampler",
                  "Samples classes in proportion to how often they have been true classes so far.");
  AddRangeSampler(ops, "ThreadUnsafeUnigramCandidateSampler",
                  "The same as LearnedUnigramCandidateSampler.");
  ops->Add(SamplerSpec("FixedUnigramCandidateSampler")
               .Attr("range_max: int >= 1")
               .Attr("vocab_file: string = ''")
               .Attr("distortion: float = 1")
               .Attr("num_reserved_ids: int = 0")
               .Attr("num_shards: int >= 1 = 1")
               .Attr("shard: int >= 0 = 0")
               .Attr("unigrams: list(float) = []")
               .Attr("seed: int = 0")
               .Attr("seed2: int = 0")
               .Doc("Samples classes in proportion to weights, given or read from a file, to the "
                    "power of `distortion`."));
  ops->Add(SamplerSpec("AllCandidateSampler")
               .Attr("seed: int = 0")
               .Attr("seed2: int = 0")
               .Doc("Returns all classes. For testing."));
  ops->Add(OpSpec("ComputeAccidentalHits")
               .In("true_classes: int64, sampled_candidates: int64")
               .Out("indices: int32, ids: int64, weights: float")
               .Attr("num_true: int")
               .Attr("seed: int = 0")
               .Attr("seed2: int = 0")
               .InferShape(AccidentalHitsShape)
               .Doc("Returns the sampled classes that are true classes: row, position, and a "
                    "weight that masks the sample."));
}

}  // namespace weir
