#include <algorithm>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/kernels/linalg/matmul.h"

// A loop over time steps accumulates the gradient of its weight: each iteration computes a product
// x' y with as few rows as its batch, which reads and writes the whole sum. So _DeferMatMul
// collects the rows of x and of y, and multiplies when it has a few hundred of them: enough for the
// product to be compute-bound, and few enough to fit into the caches. _FinishMatMul multiplies the
// remaining rows after the loop. (session/passes/defer_matmuls.cc inserts both where they pay off.)
//
// The collected rows are loop-carried values like the sum: `left` and `right` hold x's and y's
// rows, those of successive steps below each other; the first `rows` are in use. Each output reuses
// the memory of its input, so an iteration copies only its own rows. If an input has another
// reference, as in the first iteration, the output is a copy.
namespace weir {

namespace {

struct DeferredMatMul {
  int64_t m = 0, n = 0, capacity = 0, rows = 0;
};

// The sizes of inputs 0 to 3.
absl::StatusOr<DeferredMatMul> ReadDeferredMatMul(const KernelContext& c) {
  const Tensor &sum = c.input(0), &left = c.input(1), &right = c.input(2), &rows = c.input(3);
  WEIR_RETURN_IF_ERROR(CheckRank(sum, 2, "sum"));
  WEIR_RETURN_IF_ERROR(CheckRank(left, 2, "left"));
  WEIR_RETURN_IF_ERROR(CheckRank(right, 2, "right"));
  WEIR_RETURN_IF_ERROR(CheckRank(rows, 0, "rows"));
  const DeferredMatMul d = {sum.dim(0), sum.dim(1), left.dim(0), rows.scalar<int64_t>()};
  if (left.dim(1) != d.m || right.dim(1) != d.n || right.dim(0) != d.capacity) {
    return InvalidArgument("left has shape ", left.shape().ToString(), " and right ",
                           right.shape().ToString(), ": their product does not have sum's shape ",
                           sum.shape().ToString());
  }
  if (d.rows < 0 || d.rows > d.capacity)
    return InvalidArgument("rows is ", d.rows, ", but left and right have ", d.capacity);
  return d;
}

absl::Status AddProduct(KernelContext& c, const DeferredMatMul& d, Tensor* sum) {
  return AddMatMul(c.pool(), {.m = d.m, .n = d.n, .k = d.rows, .transpose_a = true},
                   c.input_data<float>(1), c.input_data<float>(2), sum->data<float>());
}

// Allocates output k with the first rows of input k: in that input's memory if possible, but never
// in the memory of another of the first three inputs.
absl::StatusOr<Tensor*> ForwardOrCopy(KernelContext& c, int k, int64_t rows) {
  const Tensor& in = c.input(k);
  const void* const from = in.raw();
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(k, in.shape()));
  const auto aliases_input = [&](int i) { return i != k && c.input(i).raw() == out->raw(); };
  const bool collides = aliases_input(0) || aliases_input(1) || aliases_input(2);
  if (out->raw() == from && !collides) return out;
  if (collides) {
    WEIR_ASSIGN_OR_RETURN(Tensor own, c.AllocateTemp(in.dtype(), in.shape()));
    c.SetOutput(k, std::move(own));
  }
  CopyElements(in.dtype(), from, out->raw(), rows * in.dim(1));
  return out;
}

absl::Status Defer(KernelContext& c, int64_t most_rows) {
  WEIR_ASSIGN_OR_RETURN(DeferredMatMul d, ReadDeferredMatMul(c));
  const Tensor &x = c.input(4), &y = c.input(5);
  if (x.rank() != 2 || y.rank() != 2 || x.dim(0) != y.dim(0) || x.dim(1) != d.m ||
      y.dim(1) != d.n) {
    return InvalidArgument("x has shape ", x.shape().ToString(), " and y ", y.shape().ToString(),
                           ": their product does not have sum's shape ",
                           c.input(0).shape().ToString());
  }
  const int64_t more = x.dim(0);
  WEIR_ASSIGN_OR_RETURN(Tensor* const sum, ForwardOrCopy(c, 0, d.m));
  if (more > d.capacity - d.rows) {
    WEIR_RETURN_IF_ERROR(AddProduct(c, d, sum));
    d.rows = 0;
  }
  Tensor *left = nullptr, *right = nullptr;
  if (more <= d.capacity) {
    WEIR_ASSIGN_OR_RETURN(left, ForwardOrCopy(c, 1, d.rows));
    WEIR_ASSIGN_OR_RETURN(right, ForwardOrCopy(c, 2, d.rows));
  } else {
    const int64_t capacity = std::max(more, most_rows);
    WEIR_ASSIGN_OR_RETURN(const Shape of_x, CheckedShape({capacity, d.m}));
    WEIR_ASSIGN_OR_RETURN(const Shape of_y, CheckedShape({capacity, d.n}));
    WEIR_ASSIGN_OR_RETURN(left, c.AllocateOutput(1, of_x));
    WEIR_ASSIGN_OR_RETURN(right, c.AllocateOutput(2, of_y));
  }
  CopyElements(DT_FLOAT, x.raw(), left->data<float>() + d.rows * d.m, more * d.m);
  CopyElements(DT_FLOAT, y.raw(), right->data<float>() + d.rows * d.n, more * d.n);
  WEIR_ASSIGN_OR_RETURN(Tensor* const rows, c.AllocateOutput(3, {}));
  *rows->data<int64_t>() = d.rows + more;
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeDefer(const KernelInit& init) {
  const int64_t most_rows = init.attr<int64_t>("most_rows");
  return Kernel([most_rows](KernelContext& c) { return Defer(c, most_rows); });
}

absl::Status Finish(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const DeferredMatMul d, ReadDeferredMatMul(c));
  WEIR_ASSIGN_OR_RETURN(Tensor* const sum, ForwardOrCopy(c, 0, d.m));
  return AddProduct(c, d, sum);
}

}  // namespace

void AddDeferredMatMulKernels(KernelRegistry* r) {
  r->Add("_DeferMatMul", kCpu, MakeDefer).InPlace({0, 1, 2});
  r->Add("_FinishMatMul", kCpu, Finish).InPlace({0});
}

}  // namespace weir
