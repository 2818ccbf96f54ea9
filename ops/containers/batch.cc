#include "absl/strings/str_cat.h"
#include "weir/core/graph/gradient.h"
#include "weir/core/graph/shape_context.h"
#include "weir/ops/lib/ranked_internal.h"
#include "weir/ops/lib/registry.h"

namespace weir {

namespace {

// Returns the shape with its first dimension unknown.
Shape AnyRows(const Shape& shape) {
  if (!shape.has_rank() || shape.rank() == 0) return Shape::UnknownRank();
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims[0] = Shape::kUnknown;
  return Shape(dims);
}

absl::Status BatchShape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) {
    WEIR_RETURN_IF_ERROR(c.WithRankAtLeast(i, 1).status());
    c.set_output(i, AnyRows(c.input(i)));
  }
  c.set_output(c.num_inputs(), Shape({Shape::kUnknown, 3}));
  c.set_output(c.num_inputs() + 1, Shape());
  return absl::OkStatus();
}

absl::Status UnbatchShape(ShapeContext& c) {
  c.set_output(0, AnyRows(c.input(0)));
  return absl::OkStatus();
}

absl::Status UnbatchGradShape(ShapeContext& c) {
  if (c.input(2).has_rank())
    c.set_output(0, Shape(std::vector<int64_t>(c.input(2).rank(), Shape::kUnknown)));
  return absl::OkStatus();
}

Grads BatchGradient(GradContext& g) {
  const int n = g.node().num_inputs();
  Grads grads;
  for (int i = 0; i < n; ++i) {
    grads.push_back(
        AddOp("Unbatch", {g.dy(i), g.y(n), g.y(n + 1)},
              {{"timeout_micros", g.attr<int64_t>("grad_timeout_micros")},
               {"shared_name", absl::StrCat("batch_gradient_", g.node().name(), "_", i)}}));
  }
  return grads;
}

Grads UnbatchGradient(GradContext& g) {
  return {AddOp("UnbatchGrad", {g.x(0), g.x(1), g.dy(0), g.x(2)},
                {{"shared_name", absl::StrCat("unbatch_gradient_", g.node().name())}}),
          {},
          {}};
}

OpSpec Named(OpSpec& op) {
  return op.Attr("container: string = ''").Attr("shared_name: string = ''");
}

void AddBatchFunction(OpRegistry* ops) {
  OpSpec op("BatchFunction");
  op.In("in_tensors: Tin, captured_tensors: Tcaptured")
      .Out("out_tensors: Tout")
      .Attr("f: func")
      .Attr("num_batch_threads: int")
      .Attr("max_batch_size: int")
      .Attr("batch_timeout_micros: int")
      .Attr("max_enqueued_batches: int = 10")
      .Attr("allowed_batch_sizes: list(int) = []");
  ops->Add(
      Named(op)
          .Attr("batching_queue: string = ''")
          .Attr("low_priority_max_batch_size: int = 0")
          .Attr("low_priority_batch_timeout_micros: int = 0")
          .Attr("low_priority_allowed_batch_sizes: list(int) = []")
          .Attr("low_priority_max_enqueued_batches: int = 0")
          .Attr("mixed_priority_policy: {'low_priority_padding_with_max_batch_size', "
                "'low_priority_padding_with_next_allowed_batch_size', 'priority_isolation', "
                "'priority_merge'} = 'low_priority_padding_with_max_batch_size'")
          .Attr("batch_padding_policy: {'PAD_UP', 'BATCH_DOWN', "
                "'MINIMIZE_TPU_COST_PER_REQUEST'} = 'PAD_UP'")
          .Attr("Tin: list(type) >= 1")
          .Attr("Tcaptured: list(type) >= 0")
          .Attr("Tout: list(type) >= 1")
          .Attr("enable_large_batch_splitting: bool = false")
          .Stateful()
          .InferShape(UnknownShape)
          .NotDifferentiable()
          .Doc("Batches the rows that several steps provide within a time window, calls a function "
               "once on the batch, and returns each step its own rows of the results."));
}

}  // namespace

void AddBatchOps(OpRegistry* ops) {
  OpSpec batch("Batch");
  batch.In("in_tensors: T")
      .Out("batched_tensors: T, batch_index: int64, id: int64")
      .Attr("num_batch_threads: int")
      .Attr("max_batch_size: int")
      .Attr("max_enqueued_batches: int = 10")
      .Attr("batch_timeout_micros: int")
      .Attr("allowed_batch_sizes: list(int) = []")
      .Attr("grad_timeout_micros: int");
  ops->Add(
      Named(batch)
          .Attr("batching_queue: string = ''")
          .Attr("T: list(type) >= 1")
          .Stateful()
          .InferShape(BatchShape)
          .Gradient(BatchGradient)
          .Doc("Batches the rows that several steps provide within a time window. One of the steps "
               "gets the whole batch and an index of its rows; the others get empty tensors."));
  AddBatchFunction(ops);
  OpSpec unbatch("Unbatch");
  unbatch.In("batched_tensor: T, batch_index: int64, id: int64")
      .Out("unbatched_tensor: T")
      .Attr("timeout_micros: int");
  ops->Add(Named(unbatch)
               .Attr("T: type")
               .Stateful()
               .InferShape(Ranked("batched_tensor: >=1", UnbatchShape))
               .Gradient(UnbatchGradient)
               .Doc("Distributes a processed batch: the step with this id gets its rows."));
  OpSpec grad("UnbatchGrad");
  grad.In("original_input: T, batch_index: int64, grad: T, id: int64").Out("batched_grad: T");
  ops->Add(Named(grad)
               .Attr("T: type")
               .Stateful()
               .InferShape(UnbatchGradShape)
               .NotDifferentiable()
               .Doc("Concatenates the gradients of the parts of a batch, for the step that had the "
                    "whole batch."));
}

}  // namespace weir
