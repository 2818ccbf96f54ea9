#include "weir/kernels/array/inplace.h"

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/scalar_math.h"
#include "weir/kernels/lib/strided_copy.h"

namespace weir {

namespace {

// How a row of v is combined into a row of y.
using RowFn = absl::Status (*)(DataType type, const void* v, void* y, int64_t count);

absl::Status Replace(DataType type, const void* v, void* y, int64_t count) {
  CopyElements(type, v, y, count);
  return absl::OkStatus();
}

template <bool kSubtract>
absl::Status Accumulate(DataType type, const void* v, void* y, int64_t count) {
  const bool found = DispatchType(type, Numbers{}, [&]<class T>() {
    const T* from = static_cast<const T*>(v);
    T* to = static_cast<T*>(y);
    for (int64_t i = 0; i < count; ++i) {
      if constexpr (std::is_integral_v<T>) {  // wraps around
        using U = std::make_unsigned_t<T>;
        const U a = static_cast<U>(to[i]), b = static_cast<U>(from[i]);
        to[i] = static_cast<T>(kSubtract ? a - b : a + b);
      } else {
        to[i] = kSubtract ? T(to[i] - from[i]) : T(to[i] + from[i]);
      }
    }
  });
  return found ? absl::OkStatus() : InvalidArgument("Unsupported data type: ", DataTypeName(type));
}

bool Overlap(const Tensor& a, const Tensor& b) {
  const auto begin = [](const Tensor& t) { return reinterpret_cast<uintptr_t>(t.raw()); };
  return begin(a) < begin(b) + b.num_bytes() && begin(b) < begin(a) + a.num_bytes();
}

absl::Status RunUpdate(KernelContext& c, RowFn row_fn) {
  const Tensor &x = c.input(0), &i = c.input(1), &v = c.input(2);
  if (i.rank() != 1) return InvalidArgument("i must be a vector. ", i.shape().ToString());
  if (x.rank() != v.rank()) {
    return InvalidArgument("x and v shape doesn't match (ranks differ): ", x.shape().ToString(),
                           " vs. ", v.shape().ToString());
  }
  if (x.rank() == 0) return InvalidArgument("x must have at least rank 1, is a scalar");
  for (int d = 1; d < x.rank(); ++d) {
    if (x.dim(d) == v.dim(d)) continue;
    return InvalidArgument("x and v shape doesn't match at index ", d, " : ", x.shape().ToString(),
                           " vs. ", v.shape().ToString());
  }
  if (i.dim(0) != v.dim(0)) {
    return InvalidArgument("i and x shape doesn't match at index 0: ", i.shape().ToString(),
                           " vs. ", v.shape().ToString());
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * y, c.AllocateOutput(0, x.shape()));
  if (y->raw() != x.raw()) CopyElements(x.dtype(), x.raw(), y->raw(), x.num_elements());
  if (x.num_elements() == 0 || v.num_elements() == 0) return absl::OkStatus();
  const int64_t rows = x.dim(0), count = x.num_elements() / rows;
  // x may be updated with itself or a view of itself.
  const Tensor from = Overlap(v, *y) ? v.DeepCopy() : v;
  for (int64_t k = 0; k < i.num_elements(); ++k) {
    const int64_t row = (i.data<int32_t>()[k] % rows + rows) % rows;
    WEIR_RETURN_IF_ERROR(
        row_fn(x.dtype(), ElementAt(from, k * count), ElementAt(*y, row * count), count));
  }
  return absl::OkStatus();
}

template <RowFn kRowFn>
absl::Status Update(KernelContext& c) {
  return RunUpdate(c, kRowFn);
}

absl::StatusOr<Kernel> MakeParallelConcat(const KernelInit& init) {
  const Shape shape = init.attr<Shape>("shape");
  return Kernel([shape](KernelContext& c) -> absl::Status {
    const int n = c.num_inputs();
    if (!shape.IsFullyDefined() || shape.rank() < 1 || shape.dim(0) != n) {
      return InvalidArgument("shape attr must have ", n, " rows, one a value: ", shape.ToString());
    }
    Shape part = shape;
    part.set_dim(0, 1);
    for (int k = 0; k < n; ++k) WEIR_RETURN_IF_ERROR(CheckShape(c.input(k), part, "value"));
    WEIR_ASSIGN_OR_RETURN(const Shape checked, CheckedShape(shape.dims()));
    WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, checked));
    const int64_t count = part.num_elements();
    for (int k = 0; k < n; ++k)
      CopyElements(out->dtype(), c.input(k).raw(), ElementAt(*out, k * count), count);
    return absl::OkStatus();
  });
}

}  // namespace

void AddInplaceCpu(KernelRegistry* r) {
  r->Add("InplaceUpdate", kCpu, Update<Replace>).InPlace({0});
  r->Add("InplaceAdd", kCpu, Update<Accumulate<false>>).InPlace({0});
  r->Add("InplaceSub", kCpu, Update<Accumulate<true>>).InPlace({0});
  r->Add("ParallelConcat", kCpu, MakeParallelConcat);
}

}  // namespace weir
