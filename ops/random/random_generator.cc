#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/ranked_internal.h"
#include "weir/ops/lib/registry.h"
#include "weir/ops/random/random_internal.h"

// Definitions of random ops that use a generator stored in a variable of three int64: two words of
// counter, and the key.
namespace weir {

namespace {

// The inputs are a generator, the number of its algorithm, and the shape.
absl::Status GeneratedShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  WEIR_ASSIGN_OR_RETURN(const Shape shape, c.InputAsShape(2));
  c.set_output(0, shape);
  return absl::OkStatus();
}

absl::Status TaggedGeneratorShape(ShapeContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape shape, c.InputAsShape(1));
  c.set_output(0, shape);
  return absl::OkStatus();
}

absl::Status SkipShape(ShapeContext& c) {
  WEIR_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  WEIR_RETURN_IF_ERROR(c.WithRank(2, 0).status());
  if (c.num_outputs() > 0) c.set_output(0, Shape({Shape::kUnknown}));
  return absl::OkStatus();
}

void AddGenerated(OpRegistry* ops, const char* name, const char* range, const char* type,
                  const char* doc) {
  OpSpec spec(name);
  spec.In("resource: resource, algorithm: int64, shape: shape_dtype");
  if (*range != 0) spec.In(range);
  ops->Add(spec.Out("output: dtype")
               .Attr(type)
               .Attr("shape_dtype: type = DT_INT64")
               .Stateful()
               .InferShape(Ranked("minval: 0, maxval: 0", GeneratedShape))
               .Doc(doc));
}

}  // namespace

void AddGeneratorOps(OpRegistry* ops) {
  constexpr char kFloat[] = "dtype: type = DT_FLOAT";
  AddGenerated(ops, "StatefulUniform", "", kFloat,
               "Draws numbers uniformly from [0, 1) with a generator in a variable.");
  AddGenerated(ops, "StatefulStandardNormalV2", "", kFloat,
               "Draws normally distributed numbers with a generator in a variable.");
  ops->Add(OpSpec("StatefulStandardNormal")
               .In("resource: resource, shape: shape_dtype")
               .Out("output: dtype")
               .Attr(kFloat)
               .Attr("shape_dtype: type = DT_INT64")
               .Stateful()
               .Deprecated(29, "Use StatefulStandardNormalV2 instead")
               .InferShape(TaggedGeneratorShape)
               .Doc("Draws normally distributed numbers with a generator in a variable that begins "
                    "with the number of its algorithm."));
  AddGenerated(ops, "StatefulTruncatedNormal", "", kFloat,
               "Draws normally distributed numbers within two standard deviations with a generator "
               "in a variable.");
  AddGenerated(ops, "StatefulUniformInt", "minval: dtype, maxval: dtype", "dtype: type = DT_INT64",
               "Draws integers uniformly from [minval, maxval) with a generator in a variable.");
  AddGenerated(
      ops, "StatefulUniformFullInt", "", "dtype: type = DT_UINT64",
      "Draws integers uniformly from all values of the type with a generator in a variable.");
  ops->Add(OpSpec("RngSkip")
               .In("resource: resource, algorithm: int64, delta: int64")
               .Stateful()
               .InferShape(SkipShape)
               .Doc("Advances a generator by the state that delta samples consume."));
  ops->Add(OpSpec("RngReadAndSkip")
               .In("resource: resource, alg: int32, delta: uint64")
               .Out("value: int64")
               .Stateful()
               .InferShape(SkipShape)
               .Doc("Advances a generator by the state that delta samples consume. Returns its "
                    "previous state."));
  ops->Add(OpSpec("NonDeterministicInts")
               .In("shape: shape_dtype")
               .Out("output: dtype")
               .Attr("dtype: type = DT_INT64")
               .Attr("shape_dtype: type = DT_INT64")
               .Stateful()
               .InferShape(Ranked("shape: 1", ShapeFromInput0))
               .Doc("Draws non-deterministic integers, which differ in each step."));
}

}  // namespace weir
