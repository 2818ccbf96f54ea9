#include <algorithm>
#include <numeric>

#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"
#include "weir/kernels/lib/variable_access.h"
#include "weir/ops/lib/strided_slice.h"

// Slices: reading a slice, its gradient, and assignment to a slice.
namespace weir {

namespace {

// Returns whether only dimension 0 is sliced (or none), so that the slice is contiguous.
bool IsRun(const Shape& in, absl::Span<const int64_t> size) {
  for (int i = 1; i < in.rank(); ++i) {
    if (size[i] != in.dim(i)) return false;
  }
  return true;
}

absl::Status Slice(KernelContext& c) {
  const Tensor &in = c.input(0), &begin_tensor = c.input(1), &size_tensor = c.input(2);
  if (begin_tensor.rank() != 1 || size_tensor.rank() != 1 ||
      begin_tensor.num_elements() != in.rank() || size_tensor.num_elements() != in.rank()) {
    return InvalidArgument("Expected begin and size arguments to be 1-D tensors of size ",
                           in.rank(), ", but got shapes ", begin_tensor.shape().ToString(), " and ",
                           size_tensor.shape().ToString(), " instead.");
  }
  const Dims begin = ReadInts(begin_tensor);
  Dims size = ReadInts(size_tensor);
  Shape out_shape;
  for (int i = 0; i < in.rank(); ++i) {
    const int64_t extent = in.dim(i);
    if (begin[i] < 0 || begin[i] > extent) {
      return InvalidArgument("Expected begin[", i, "] in [0, ", extent, "], but got ", begin[i]);
    }
    if (size[i] == -1) size[i] = extent - begin[i];
    if (size[i] < 0 || size[i] > extent - begin[i]) {
      return InvalidArgument("Expected size[", i, "] in [0, ", extent - begin[i], "], but got ",
                             size[i]);
    }
    out_shape.AddDim(size[i]);
  }
  if (out_shape.num_elements() == 0) return c.AllocateOutput(0, out_shape).status();
  const Dims strides = StridesOf(in.shape());
  const int64_t offset =
      std::inner_product(begin.begin(), begin.end(), strides.begin(), int64_t{0});
  if (in.rank() == 0 || IsRun(in.shape(), size)) return OutputRun(c, 0, in, offset, out_shape);
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, out_shape));
  StridedCopy copy{size, strides, StridesOf(out_shape)};
  copy.Run(c, in.dtype(), ElementAt(in, offset), out->raw());
  return absl::OkStatus();
}

// ---- strided slices

// Returns the slice that inputs first..first + 2 describe, of a tensor of this shape.
absl::StatusOr<ResolvedSlice> ReadSlice(KernelContext& c, int first, const Shape& shape,
                                        const StridedSliceOptions& masks) {
  for (int i = first; i < first + 3; ++i) {
    if (c.input(i).rank() != 1 || c.input(i).num_elements() != c.input(first).num_elements()) {
      return InvalidArgument(
          "Expected begin, end, and strides to be 1D equal size tensors, but got shapes ",
          c.input(first).shape().ToString(), ", ", c.input(first + 1).shape().ToString(), ", and ",
          c.input(first + 2).shape().ToString(), " instead.");
    }
  }
  const Dims begin = ReadInts(c.input(first)), end = ReadInts(c.input(first + 1)),
             strides = ReadInts(c.input(first + 2));
  return ResolveSlice(shape, absl::MakeConstSpan(begin), absl::MakeConstSpan(end), strides, masks);
}

// Returns the offset of the slice in a tensor with these strides, and multiplies them by the
// slice's.
int64_t ApplySlice(const ResolvedSlice& slice, Dims* strides) {
  int64_t offset = 0;
  for (size_t i = 0; i < strides->size(); ++i) {
    offset += slice.begin[i] * (*strides)[i];
    (*strides)[i] *= slice.stride[i];
  }
  return offset;
}

Dims SizesOf(const ResolvedSlice& slice) { return Dims(slice.size.begin(), slice.size.end()); }

absl::Status StridedSlice(KernelContext& c, const StridedSliceOptions& masks) {
  const Tensor& in = c.input(0);
  WEIR_ASSIGN_OR_RETURN(const ResolvedSlice slice, ReadSlice(c, 1, in.shape(), masks));
  if (slice.final_shape.num_elements() == 0) return c.AllocateOutput(0, slice.final_shape).status();
  Dims strides = StridesOf(in.shape());
  const bool unit =
      std::all_of(slice.stride.begin(), slice.stride.end(), [](int64_t s) { return s == 1; });
  const bool is_run = in.rank() == 0 || (unit && IsRun(in.shape(), slice.size));
  const int64_t offset = ApplySlice(slice, &strides);
  if (is_run) return OutputRun(c, 0, in, offset, slice.final_shape);
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, slice.final_shape));
  StridedCopy copy{SizesOf(slice), std::move(strides), StridesOf(slice.size)};
  copy.Run(c, in.dtype(), ElementAt(in, offset), out->raw());
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeStridedSlice(const KernelInit& init) {
  const StridedSliceOptions masks = SliceMasks(init.node);
  return Kernel([masks](KernelContext& c) -> absl::Status { return StridedSlice(c, masks); });
}

absl::Status StridedSliceGrad(KernelContext& c, const StridedSliceOptions& masks) {
  if (c.input(0).rank() != 1)
    return InvalidArgument("shape must be 1-D, got ", c.input(0).shape().ToString());
  WEIR_ASSIGN_OR_RETURN(const Shape shape, CheckedShape(ReadInts(c.input(0))));
  WEIR_ASSIGN_OR_RETURN(const ResolvedSlice slice, ReadSlice(c, 1, shape, masks));
  const Tensor& dy = c.input(4);
  if (dy.shape() != slice.final_shape) {
    return InvalidArgument("shape of dy was ", dy.shape().ToString(), " instead of ",
                           slice.final_shape.ToString());
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  ClearElements(c, *out);
  if (dy.num_elements() == 0) return absl::OkStatus();
  Dims strides = StridesOf(shape);
  const int64_t offset = ApplySlice(slice, &strides);
  StridedCopy copy{SizesOf(slice), StridesOf(slice.size), std::move(strides)};
  copy.Run(c, dy.dtype(), dy.raw(), ElementAt(*out, offset));
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeStridedSliceGrad(const KernelInit& init) {
  const StridedSliceOptions masks = SliceMasks(init.node);
  return Kernel([masks](KernelContext& c) -> absl::Status { return StridedSliceGrad(c, masks); });
}

// Writes `value`, broadcast to the slice's shape, to the slice of `target`. The value's dimensions
// are those of the final shape; the strides are mapped to the dimensions of the target, where new
// axes have none and single indices have extent 1.
absl::Status AssignSlice(KernelContext& c, const ResolvedSlice& slice, const Tensor& value,
                         Tensor* target) {
  const Shape& final_shape = slice.final_shape;
  if (final_shape.num_elements() == 0)
    return absl::OkStatus();  // whatever the value, as in TensorFlow
  absl::StatusOr<Shape> together = BroadcastShapes(value.shape(), final_shape);
  if (!together.ok() || *together != final_shape) {
    return InvalidArgument("the value of shape ", value.shape().ToString(),
                           " cannot be assigned to a slice of shape ", final_shape.ToString());
  }
  // Broadcasts the value to the final shape if necessary. Then the final shape and the sizes have
  // the same elements.
  Tensor full = value;
  if (value.shape() != final_shape) {
    WEIR_ASSIGN_OR_RETURN(full, c.AllocateTemp(value.dtype(), final_shape));
    const Dims own = StridesOf(value.shape());
    StridedCopy repeat;
    const Dims to = StridesOf(final_shape);
    for (int i = 0; i < final_shape.rank(); ++i) {
      const int from = i - (final_shape.rank() - value.rank());
      repeat.AddDim(final_shape.dim(i), from >= 0 && value.dim(from) != 1 ? own[from] : 0, to[i]);
    }
    repeat.Run(c, value.dtype(), value.raw(), full.raw());
  }
  Dims strides = StridesOf(target->shape());
  const int64_t offset = ApplySlice(slice, &strides);
  StridedCopy copy{SizesOf(slice), StridesOf(slice.size), std::move(strides)};
  copy.Run(c, full.dtype(), full.raw(), ElementAt(*target, offset));
  return absl::OkStatus();
}

absl::Status AssignToVariable(KernelContext& c, const StridedSliceOptions& masks, DataType dtype) {
  WEIR_ASSIGN_OR_RETURN(const LockedVariables locked, LockedVariables::Lock(c, 1, dtype));
  WEIR_RETURN_IF_ERROR(locked.CheckInitialized(c, 0));
  const Shape shape = locked[0].value().shape();
  WEIR_ASSIGN_OR_RETURN(const ResolvedSlice slice, ReadSlice(c, 1, shape, masks));
  WEIR_ASSIGN_OR_RETURN(Tensor * target, locked.Writable(c, 0));
  WEIR_RETURN_IF_ERROR(AssignSlice(c, slice, c.input(4), target));
  if (c.num_outputs() > 0) c.SetOutput(0, c.input(0));
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeSliceAssign(const KernelInit& init) {
  const StridedSliceOptions masks = SliceMasks(init.node);
  const DataType dtype = init.attr<DataType>("T");
  return Kernel([masks, dtype](KernelContext& c) -> absl::Status {
    return AssignToVariable(c, masks, dtype);
  });
}

absl::Status TensorSliceUpdate(KernelContext& c, const StridedSliceOptions& masks) {
  const Tensor& in = c.input(0);
  WEIR_ASSIGN_OR_RETURN(const ResolvedSlice slice, ReadSlice(c, 1, in.shape(), masks));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, in.shape()));
  if (out->raw() != in.raw()) CopyElements(c, in.dtype(), in.raw(), out->raw(), in.num_elements());
  return AssignSlice(c, slice, c.input(4), out);
}

absl::StatusOr<Kernel> MakeTensorSliceUpdate(const KernelInit& init) {
  const StridedSliceOptions masks = SliceMasks(init.node);
  return Kernel([masks](KernelContext& c) -> absl::Status { return TensorSliceUpdate(c, masks); });
}

}  // namespace

void AddSliceCpu(KernelRegistry* r) {
  const std::vector<std::string> bounds = {"begin", "end", "strides"};
  r->Add("Slice", kCpu, Slice).HostArgs({"begin", "size"});
  r->Add("StridedSlice", kCpu, MakeStridedSlice).HostArgs(bounds);
  r->Add("StridedSliceGrad", kCpu, MakeStridedSliceGrad)
      .HostArgs({"shape", "begin", "end", "strides"});
  r->Add("StridedSliceAssign", kCpu, MakeSliceAssign).HostArgs(bounds).Writes({0});
  r->Add("ResourceStridedSliceAssign", kCpu, MakeSliceAssign).HostArgs(bounds).Writes({0});
  r->Add("TensorStridedSliceUpdate", kCpu, MakeTensorSliceUpdate).HostArgs(bounds).InPlace({0});
}

}  // namespace weir
