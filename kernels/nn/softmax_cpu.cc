#include <algorithm>
#include <vector>

#include "weir/kernels/lib/non_temporal.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/nn/image_operand.h"
#include "weir/kernels/nn/softmax.h"

namespace weir {
namespace {

constexpr double kNsPerLogit = 1.0;

template <class T>
absl::Status RunSoftmax(KernelContext& ctx, bool log) {
  using C = Wide<T>;
  const Tensor& logits = ctx.input(0);
  if (logits.rank() < 1)
    return InvalidArgument("logits must have >= 1 dimension, got ", logits.shape().ToString());
  WEIR_ASSIGN_OR_RETURN(Tensor * y, ctx.AllocateOutput(0, logits.shape()));
  if (y->num_elements() == 0) return absl::OkStatus();
  const int64_t n = logits.dim(-1), rows = logits.num_elements() / n;
  ImageOperand<T> x, result;
  WEIR_RETURN_IF_ERROR(x.Read(ctx, logits, false, 1, 1));
  WEIR_RETURN_IF_ERROR(result.Prepare(ctx, *y, false));
  const size_t row_bytes = static_cast<size_t>(n) * sizeof(C);
  const bool use_non_temporal = !log && x.data() != result.data() &&
                                row_bytes <= non_temporal::kTileBytes &&
                                non_temporal::Pays(static_cast<size_t>(rows) * row_bytes) &&
                                non_temporal::IsAligned(result.data(), row_bytes);
  ctx.pool().ParallelFor(rows, kNsPerLogit * n, [&](int64_t begin, int64_t end) {
    const C* from = x.data() + begin * n;
    C* to = result.data() + begin * n;
    alignas(64) C buffer[2 * non_temporal::kTileBytes / sizeof(C)];
    log ? softmax::LogSoftmax(from, to, end - begin, n)
        : softmax::Softmax(from, to, end - begin, n, use_non_temporal ? buffer : nullptr);
    if (use_non_temporal) non_temporal::Fence();
  });
  return result.Write(ctx, *y, false, 1, 1);
}

// x is not overwritten, because a row with non-finite values is read twice.
template <class T>
absl::Status RunParts(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  if (x.rank() < 1)
    return InvalidArgument("x must have >= 1 dimension, got ", x.shape().ToString());
  Shape kept = x.shape(), dropped = x.shape();
  kept.set_dim(x.rank() - 1, 1);
  dropped.RemoveDim(x.rank() - 1);
  const auto shape = [&](const char* keeps) -> const Shape& {
    return ctx.node().attr_or<bool>(keeps, false) ? kept : dropped;
  };
  softmax::Parts<T> to = {.y = nullptr, .finite = ctx.node().attr_or<bool>("finite", false)};
  WEIR_ASSIGN_OR_RETURN(Tensor* const sum, ctx.AllocateOutput(0, shape("keep_sum_dims")));
  WEIR_ASSIGN_OR_RETURN(Tensor* const max, ctx.AllocateOutput(1, shape("keep_max_dims")));
  to.sum = sum->data<T>();
  to.max = max->data<T>();
  if (ctx.num_outputs() > 2) {
    WEIR_ASSIGN_OR_RETURN(Tensor* const y, ctx.AllocateOutput(2, x.shape()));
    to.y = y->data<T>();
  }
  const int64_t n = x.dim(-1);
  const T* const from = x.data<T>();
  ctx.pool().ParallelFor(kept.num_elements(), kNsPerLogit * n, [&](int64_t begin, int64_t end) {
    softmax::FindParts(
        from + begin * n,
        {to.max + begin, to.sum + begin, to.y == nullptr ? nullptr : to.y + begin * n, to.finite},
        end - begin, n);
  });
  return absl::OkStatus();
}

// The matrices of a cross entropy, broadcast against each other. A vector is a row.
struct Matrices {
  int64_t rows = 0, classes = 0;
  bool logits_full = true, labels_full = true;
};

absl::StatusOr<Matrices> BroadcastMatrices(const Shape& logits, const Shape& labels) {
  const absl::StatusOr<Shape> both = BroadcastShapes(logits, labels);
  if (!both.ok()) {
    return InvalidArgument("logits and labels must be broadcastable: logits_size=",
                           logits.ToString(), " labels_size=", labels.ToString());
  }
  if (both->rank() != 2) {
    return InvalidArgument(
        "logits and labels must be either 2-dimensional, or broadcasted to be 2-dimensional");
  }
  return Matrices{both->dim(0), both->dim(1), logits == *both, labels == *both};
}

// Returns the tensor, broadcast to [rows, classes] if it does not have that shape yet.
template <class C>
absl::StatusOr<const C*> Expanded(KernelContext& ctx, const Tensor& t, const C* data,
                                  const Matrices& m, bool full, Tensor* temp) {
  if (full) return data;
  WEIR_ASSIGN_OR_RETURN(*temp, ctx.AllocateTemp(DataTypeOf<C>::value, Shape({m.rows, m.classes})));
  const int64_t cols = t.rank() == 0 ? 1 : t.dim(-1), rows = t.rank() == 2 ? t.dim(0) : 1;
  C* to = temp->data<C>();
  for (int64_t r = 0; r < m.rows; ++r) {
    const C* from = data + (rows == 1 ? 0 : r) * cols;
    for (int64_t c = 0; c < m.classes; ++c) *to++ = from[cols == 1 ? 0 : c];
  }
  return temp->data<C>();
}

template <class T>
absl::Status RunCrossEntropy(KernelContext& ctx) {
  using C = Wide<T>;
  const Tensor &features = ctx.input(0), &labels = ctx.input(1);
  WEIR_ASSIGN_OR_RETURN(const Matrices m, BroadcastMatrices(features.shape(), labels.shape()));
  WEIR_ASSIGN_OR_RETURN(Tensor * loss, ctx.AllocateOutput(0, Shape({m.rows})));
  WEIR_ASSIGN_OR_RETURN(Tensor * backprop, ctx.AllocateOutput(1, Shape({m.rows, m.classes})));
  if (m.rows == 0) return absl::OkStatus();
  if (m.classes == 0)
    return InvalidArgument("Must have at least one class, but got logits shape ",
                           features.shape().ToString());
  ImageOperand<T> x, l, loss_out, y;
  WEIR_RETURN_IF_ERROR(x.Read(ctx, features, false, 1, 1));
  WEIR_RETURN_IF_ERROR(l.Read(ctx, labels, false, 1, 1));
  WEIR_RETURN_IF_ERROR(loss_out.Prepare(ctx, *loss, false));
  WEIR_RETURN_IF_ERROR(y.Prepare(ctx, *backprop, false));
  Tensor x_temp, l_temp;
  WEIR_ASSIGN_OR_RETURN(const C* xs,
                        Expanded<C>(ctx, features, x.data(), m, m.logits_full, &x_temp));
  WEIR_ASSIGN_OR_RETURN(const C* ls, Expanded<C>(ctx, labels, l.data(), m, m.labels_full, &l_temp));
  ctx.pool().ParallelFor(m.rows, 1.2 * kNsPerLogit * m.classes, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t at = r * m.classes;
      softmax::CrossEntropy(xs + at, ls + at, loss_out.data() + r, y.data() + at, m.classes);
    }
  });
  WEIR_RETURN_IF_ERROR(loss_out.Write(ctx, *loss, false, 1, 1));
  return y.Write(ctx, *backprop, false, 1, 1);
}

template <class I>
absl::Status CheckLabels(const I* labels, int64_t n, int64_t classes) {
  for (int64_t i = 0; i < n; ++i) {
    if (labels[i] >= 0 && labels[i] < classes) continue;
    return InvalidArgument("Received a label value of ", labels[i],
                           " which is outside the valid range of [0, ", classes, "). It is label ",
                           i, " of ", n);
  }
  return absl::OkStatus();
}

template <class T, class I>
absl::Status RunSparseCrossEntropy(KernelContext& ctx) {
  const Tensor &features = ctx.input(0), &labels = ctx.input(1);
  WEIR_RETURN_IF_ERROR(softmax::CheckSparseLabels(features.shape(), labels.shape()));
  const int64_t rows = features.dim(0), classes = features.dim(1);
  const I* const at = labels.data<I>();
  WEIR_RETURN_IF_ERROR(CheckLabels(at, rows, classes));
  WEIR_ASSIGN_OR_RETURN(Tensor * loss, ctx.AllocateOutput(0, Shape({rows})));
  WEIR_ASSIGN_OR_RETURN(Tensor * backprop, ctx.AllocateOutput(1, features.shape()));
  ImageOperand<T> x, loss_out, y;
  WEIR_RETURN_IF_ERROR(x.Read(ctx, features, false, 1, 1));
  WEIR_RETURN_IF_ERROR(loss_out.Prepare(ctx, *loss, false));
  WEIR_RETURN_IF_ERROR(y.Prepare(ctx, *backprop, false));
  ctx.pool().ParallelFor(rows, kNsPerLogit * classes, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      softmax::SparseCrossEntropy(x.data() + r * classes, at[r], loss_out.data() + r,
                                  y.data() + r * classes, classes);
    }
  });
  WEIR_RETURN_IF_ERROR(loss_out.Write(ctx, *loss, false, 1, 1));
  return y.Write(ctx, *backprop, false, 1, 1);
}

template <class T>
void AddType(KernelRegistry* r) {
  const DataType type = DataTypeOf<T>::value;
  const auto add = [&](absl::string_view op, absl::Status (*run)(KernelContext&),
                       TypeConstraints types) -> KernelDef& {
    return r->Add(op, kCpu, std::move(types), run);
  };
  add("Softmax", +[](KernelContext& c) { return RunSoftmax<T>(c, false); }, {{"T", type}})
      .InPlace({0});
  add("LogSoftmax", +[](KernelContext& c) { return RunSoftmax<T>(c, true); }, {{"T", type}})
      .InPlace({0});
  add("SoftmaxCrossEntropyWithLogits", RunCrossEntropy<T>, {{"T", type}});
  add("SparseSoftmaxCrossEntropyWithLogits", RunSparseCrossEntropy<T, int32_t>,
      {{"T", type}, {"Tlabels", DT_INT32}});
  add("SparseSoftmaxCrossEntropyWithLogits", RunSparseCrossEntropy<T, int64_t>,
      {{"T", type}, {"Tlabels", DT_INT64}});
}

}  // namespace

absl::Status softmax::CheckSparseLabels(const Shape& logits, const Shape& labels) {
  if (logits.rank() != 2)
    return InvalidArgument("logits must be 2-D, but got shape ", logits.ToString());
  if (labels.rank() != 1)
    return InvalidArgument("labels must be 1-D, but got shape ", labels.ToString());
  if (labels.dim(0) != logits.dim(0)) {
    return InvalidArgument(
        "logits and labels must have the same first dimension, got logits shape ",
        logits.ToString(), " and labels shape ", labels.ToString());
  }
  if (logits.dim(1) == 0)
    return InvalidArgument("Must have at least one class, but got logits shape ",
                           logits.ToString());
  return absl::OkStatus();
}

void AddSoftmaxCpu(KernelRegistry* r) {
  AddType<half>(r);
  AddType<bfloat16>(r);
  AddType<float>(r);
  AddType<double>(r);
  r->Add("_SoftmaxParts", kCpu, DT_FLOAT, RunParts<float>);
  r->Add("_SoftmaxParts", kCpu, DT_DOUBLE, RunParts<double>);
}

}  // namespace weir
