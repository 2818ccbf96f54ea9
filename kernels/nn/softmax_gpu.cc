#include <algorithm>

#include "weir/kernels/gpu/gpu_kernels.h"
#include "weir/kernels/nn/softmax.h"

// Softmax and its losses on a GPU. A row is computed in steps: its maximum (a reduction), the
// exponentials of the differences from it, their sum (a reduction), and the result from both. So
// rows of any length keep the GPU busy. Exponentials and sums are float for 16-bit floats.
namespace weir {

namespace gpu {

namespace {

DataType ComputedType(DataType type) { return type == DT_DOUBLE ? DT_DOUBLE : DT_FLOAT; }

// Temporary tensors, which are alive only while the kernel enqueues.
struct Temporaries {
  Tensor max, exps, sums;
};

// Computes maxima, exponentials and their sums. In args, type, rows, n and logits are set.
absl::Status Prepare(KernelContext& c, SoftmaxArgs* args, Temporaries* temp) {
  const DataType type = args->type, computed = ComputedType(type);
  const Reducer* const max = FindReducer("Max", type);
  const Reducer* const sum = FindReducer("Sum", computed);
  WEIR_ASSIGN_OR_RETURN(temp->max, c.AllocateTemp(type, Shape({args->rows})));
  WEIR_ASSIGN_OR_RETURN(temp->exps, c.AllocateTemp(computed, Shape({args->rows, args->n})));
  WEIR_ASSIGN_OR_RETURN(temp->sums, c.AllocateTemp(computed, Shape({args->rows})));
  args->max = temp->max.raw();
  args->exps = temp->exps.raw();
  args->sums = temp->sums.raw();
  WEIR_RETURN_IF_ERROR(ReduceRows(c, *max, args->rows, args->n, args->logits, temp->max.raw()));
  SoftmaxExps(c.device().stream(), *args);
  return ReduceRows(c, *sum, args->rows, args->n, temp->exps.raw(), temp->sums.raw());
}

absl::Status RunSoftmax(KernelContext& c, bool log) {
  const Tensor& logits = c.input(0);
  if (logits.rank() < 1)
    return InvalidArgument("logits must have >= 1 dimension, got ", logits.shape().ToString());
  WEIR_ASSIGN_OR_RETURN(Tensor* const y, c.AllocateOutput(0, logits.shape()));
  if (y->num_elements() == 0) return absl::OkStatus();
  const int64_t n = logits.dim(-1);
  SoftmaxArgs args{.type = logits.dtype(),
                   .rows = logits.num_elements() / n,
                   .n = n,
                   .logits = logits.raw(),
                   .out = y->raw()};
  Temporaries temp;
  WEIR_RETURN_IF_ERROR(Prepare(c, &args, &temp));
  log ? SoftmaxLogs(c.device().stream(), args) : SoftmaxNormalize(c.device().stream(), args);
  return absl::OkStatus();
}

absl::Status RunSparseCrossEntropy(KernelContext& c) {
  const Tensor &features = c.input(0), &labels = c.input(1);
  WEIR_RETURN_IF_ERROR(softmax::CheckSparseLabels(features.shape(), labels.shape()));
  const int64_t rows = features.dim(0), classes = features.dim(1);
  WEIR_ASSIGN_OR_RETURN(Tensor* const loss, c.AllocateOutput(0, Shape({rows})));
  WEIR_ASSIGN_OR_RETURN(Tensor* const backprop, c.AllocateOutput(1, features.shape()));
  if (rows == 0) return absl::OkStatus();
  SoftmaxArgs args{.type = features.dtype(),
                   .label_type = labels.dtype(),
                   .rows = rows,
                   .n = classes,
                   .logits = features.raw(),
                   .labels = labels.raw(),
                   .loss = loss->raw(),
                   .out = backprop->raw()};
  Temporaries temp;
  WEIR_RETURN_IF_ERROR(Prepare(c, &args, &temp));
  SparseCrossEntropy(c.device().stream(), args);
  return absl::OkStatus();
}

// Returns the tensor itself, or its expansion in `temp` if it is broadcast.
absl::StatusOr<const void*> Expanded(KernelContext& c, const Tensor& t, const Shape& shape,
                                     Tensor* temp) {
  if (t.shape() == shape) return t.raw();
  WEIR_ASSIGN_OR_RETURN(*temp, c.AllocateTemp(t.dtype(), shape));
  const Shape* const shapes[] = {&t.shape(), &shape};
  WEIR_ASSIGN_OR_RETURN(const GridIndex<2> grid, BroadcastGrid<2>(shape, shapes));
  CopyGrid(c.device().stream(), ElementSize(t.dtype()), grid, t.raw(), temp->raw());
  return temp->raw();
}

absl::Status RunCrossEntropy(KernelContext& c) {
  const Tensor &features = c.input(0), &labels = c.input(1);
  const absl::StatusOr<Shape> both = BroadcastShapes(features.shape(), labels.shape());
  if (!both.ok()) {
    return InvalidArgument("logits and labels must be broadcastable: logits_size=",
                           features.shape().ToString(), " labels_size=", labels.shape().ToString());
  }
  if (both->rank() != 2) {
    return InvalidArgument(
        "logits and labels must be either 2-dimensional, or broadcasted to be 2-dimensional");
  }
  const int64_t rows = both->dim(0), classes = both->dim(1);
  WEIR_ASSIGN_OR_RETURN(Tensor* const loss, c.AllocateOutput(0, Shape({rows})));
  WEIR_ASSIGN_OR_RETURN(Tensor* const backprop, c.AllocateOutput(1, *both));
  if (rows == 0) return absl::OkStatus();
  if (classes == 0) {
    return InvalidArgument("Must have at least one class, but got logits shape ",
                           features.shape().ToString());
  }
  const DataType type = features.dtype(), computed = ComputedType(type);
  Tensor x_temp, l_temp, terms;
  SoftmaxArgs args{.type = type, .rows = rows, .n = classes, .out = backprop->raw()};
  WEIR_ASSIGN_OR_RETURN(args.logits, Expanded(c, features, *both, &x_temp));
  WEIR_ASSIGN_OR_RETURN(args.labels, Expanded(c, labels, *both, &l_temp));
  WEIR_ASSIGN_OR_RETURN(terms, c.AllocateTemp(computed, *both));
  args.loss = terms.raw();
  Temporaries temp;
  WEIR_RETURN_IF_ERROR(Prepare(c, &args, &temp));
  CrossEntropyTerms(c.device().stream(), args);
  const Reducer& sum = *FindReducer("Sum", computed);
  if (type == computed) return ReduceRows(c, sum, rows, classes, terms.raw(), loss->raw());
  WEIR_ASSIGN_OR_RETURN(Tensor sums, c.AllocateTemp(computed, Shape({rows})));
  WEIR_RETURN_IF_ERROR(ReduceRows(c, sum, rows, classes, terms.raw(), sums.raw()));
  Cast(c.device().stream(), computed, type, 0, sums.raw(), loss->raw(), rows);
  return absl::OkStatus();
}

template <class Run>
KernelFactory Factory(Run run) {
  return [run](const KernelInit&) -> absl::StatusOr<Kernel> { return Kernel(run); };
}

}  // namespace

}  // namespace gpu

void AddSoftmaxGpu(KernelRegistry* r) {
  for (const DataType type : DataTypesOf(Floats())) {
    r->Add("Softmax", kGpu, type,
           gpu::Factory([](KernelContext& c) { return gpu::RunSoftmax(c, false); }))
        .InPlace({0});
    r->Add("LogSoftmax", kGpu, type,
           gpu::Factory([](KernelContext& c) { return gpu::RunSoftmax(c, true); }))
        .InPlace({0});
    r->Add("SoftmaxCrossEntropyWithLogits", kGpu, type, gpu::Factory(gpu::RunCrossEntropy));
    for (const DataType label : {DT_INT32, DT_INT64}) {
      r->Add("SparseSoftmaxCrossEntropyWithLogits", kGpu,
             TypeConstraints{{"T", type}, {"Tlabels", label}},
             gpu::Factory(gpu::RunSparseCrossEntropy));
    }
  }
}

}  // namespace weir
