#include <algorithm>
#include <cstring>
#include <limits>

#include "weir/core/tensor/resource_handle.h"
#include "weir/core/tensor/variant.h"
#include "weir/kernels/lib/arguments.h"
#include "weir/kernels/lib/device_primitives.h"
#include "weir/kernels/lib/registry.h"
#include "weir/kernels/lib/strided_copy.h"

// Gathers slices by index. Indices are validated in the same pass that uses them, so that they are
// read only once. An out-of-range index stops the kernel and is reported with its position and
// value.
namespace weir {

namespace {

// The layout of the slices: params is [batch, outer, limit, inner], indices [batch, count], the
// result [batch, outer, count, inner].
struct GatherGrid {
  int64_t batch, outer, limit, inner, count;
};

constexpr int64_t kFirstBad = std::numeric_limits<int64_t>::max();

void KeepSmallest(std::atomic<int64_t>* smallest, int64_t value) {
  int64_t seen = smallest->load();
  while (value < seen && !smallest->compare_exchange_weak(seen, value)) {
  }
}

template <class T>
void CopySlice(const T* from, int64_t n, T* to) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    std::memcpy(static_cast<void*>(to), from, static_cast<size_t>(n) * sizeof(T));
  } else {
    std::copy_n(from, n, to);
  }
}

// Copies the slices that n indices select among `limit` ones. Stops at an out-of-range index;
// returns the number of slices copied.
template <class Index, class T>
int64_t GatherRun(const T* params, int64_t limit, int64_t inner, const Index* indices, int64_t n,
                  T* out) {
  const auto in_range = [&](int64_t i) {
    return static_cast<uint64_t>(static_cast<int64_t>(indices[i])) < static_cast<uint64_t>(limit);
  };
  if (inner == 1) {
    for (int64_t i = 0; i < n; ++i) {
      if (!in_range(i)) return i;
      out[i] = params[indices[i]];
    }
    return n;
  }
  for (int64_t i = 0; i < n; ++i) {
    if (!in_range(i)) return i;
    CopySlice(params + static_cast<int64_t>(indices[i]) * inner, inner, out + i * inner);
  }
  return n;
}

// Copies the slices; returns the position of an out-of-range index, or -1.
template <class Index, class T>
int64_t GatherSlices(ThreadPool& pool, const GatherGrid& g, const T* params, const Index* indices,
                     T* out) {
  std::atomic<int64_t> bad{kFirstBad};
  const double cost = 2 + 0.1 * static_cast<double>(g.inner) * sizeof(T);
  pool.ParallelFor(g.batch * g.outer * g.count, cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end;) {
      const int64_t block = i / g.count, k = i % g.count, n = std::min(g.count - k, end - i);
      const int64_t position = block / g.outer * g.count + k;
      const int64_t copied = GatherRun(params + block * g.limit * g.inner, g.limit, g.inner,
                                       indices + position, n, out + i * g.inner);
      if (copied < n) {
        KeepSmallest(&bad, position + copied);
        return;
      }
      i += n;
    }
  });
  return bad == kFirstBad ? -1 : bad.load();
}

// Calls f.operator()<Index, T>() with the type of the indices, and one that is copied like the
// elements.
template <class F>
void DispatchGather(DataType indices, DataType elements, F&& f) {
  DispatchType(indices, List<int16_t, int32_t, int64_t>{}, [&]<class Index>() {
    const auto run = [&]<class T>() { f.template operator()<Index, T>(); };
    if (IsPlain(elements)) {
      DispatchSize(ElementSize(elements), run);
    } else {
      DispatchType(elements, List<std::string, ResourceHandle, Variant>{}, run);
    }
  });
}

absl::Status Gather(KernelContext& c, int axis, int batch_dims) {
  const Tensor &params = c.input(0), &indices = c.input(1);
  Shape shape = params.shape().Sub(0, axis);
  for (int i = batch_dims; i < indices.rank(); ++i) shape.AddDim(indices.dim(i));
  for (int i = axis + 1; i < params.rank(); ++i) shape.AddDim(params.dim(i));
  WEIR_ASSIGN_OR_RETURN(shape, CheckedShape(shape.dims()));
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  if (indices.num_elements() == 0) return absl::OkStatus();
  // An out-of-range index is an error even if there is nothing to copy.
  GatherGrid g{1, 1, params.dim(axis), 0, indices.num_elements()};
  if (out->num_elements() > 0) {
    g.inner = g.count = 1;
    for (int i = 0; i < batch_dims; ++i) g.batch *= params.dim(i);
    for (int i = batch_dims; i < axis; ++i) g.outer *= params.dim(i);
    for (int i = axis + 1; i < params.rank(); ++i) g.inner *= params.dim(i);
    for (int i = batch_dims; i < indices.rank(); ++i) g.count *= indices.dim(i);
  }
  if (const DevicePrimitives* const device = c.device().primitives()) {
    device->Gather({.batch = g.batch,
                    .outer = g.outer,
                    .limit = g.limit,
                    .inner = g.inner,
                    .count = g.count,
                    .size = ElementSize(params.dtype()),
                    .index_type = indices.dtype(),
                    .params = params.raw(),
                    .indices = indices.raw(),
                    .out = out->raw()});
    return absl::OkStatus();
  }
  int64_t bad = -1;
  DispatchGather(indices.dtype(), params.dtype(), [&]<class Index, class T>() {
    bad = GatherSlices(c.pool(), g, static_cast<const T*>(params.raw()), indices.data<Index>(),
                       static_cast<T*>(out->raw()));
  });
  if (bad < 0) return absl::OkStatus();
  return InvalidArgument("indices", PositionText(indices.shape(), bad), " = ", indices.IntAt(bad),
                         " is not in [0, ", params.dim(axis), ")");
}

absl::Status GatherRows(KernelContext& c) {
  if (c.input(0).rank() == 0) return InvalidArgument("params must be at least 1 dimensional");
  return Gather(c, 0, 0);
}

absl::Status GatherV2(KernelContext& c, int64_t batch_dims) {
  const Tensor &params = c.input(0), &indices = c.input(1);
  if (params.rank() == 0) return InvalidArgument("params must be at least 1 dimensional");
  WEIR_ASSIGN_OR_RETURN(const int64_t named, ReadInt(c.input(2), "axis"));
  if (named < -params.rank() || named >= params.rank()) {
    return InvalidArgument("Expected axis in the range [", -params.rank(), ", ", params.rank(),
                           "), but got ", named);
  }
  const int axis = static_cast<int>(named < 0 ? named + params.rank() : named);
  if (batch_dims < -indices.rank() || batch_dims > indices.rank()) {
    return InvalidArgument("Expected batch_dims in the range [", -indices.rank(), ", ",
                           indices.rank(), "], but got ", batch_dims);
  }
  const int batches = static_cast<int>(batch_dims < 0 ? batch_dims + indices.rank() : batch_dims);
  if (batches > axis) {
    return InvalidArgument("batch_dims (", batches, ") must be less than or equal to axis (", axis,
                           ").");
  }
  for (int i = 0; i < batches; ++i) {
    if (params.dim(i) != indices.dim(i)) {
      return InvalidArgument("params.shape[", i, "]: ", params.dim(i),
                             " should be equal to indices.shape[", i, "]: ", indices.dim(i));
    }
  }
  return Gather(c, axis, batches);
}

absl::StatusOr<Kernel> MakeGatherV2(const KernelInit& init) {
  const int64_t batch_dims = init.attr<int64_t>("batch_dims");
  return Kernel([batch_dims](KernelContext& c) -> absl::Status { return GatherV2(c, batch_dims); });
}

// ---- GatherNd

// The layout of the slices: params begins with dimensions `dims` of these strides, a row of the
// indices has one for each, and `inner` elements make up a slice.
struct GatherNdGrid {
  Dims dims, strides;
  int64_t rows, inner;
};

// Converts each row of the indices to the offset of a slice, with validation, and copies the slice.
// Returns the first row with an out-of-range index, or kFirstBad; other rows are copied.
template <class Index, class T>
int64_t GatherNdSlices(ThreadPool& pool, const GatherNdGrid& g, const T* params,
                       const Index* indices, T* out) {
  std::atomic<int64_t> bad{kFirstBad};
  const int64_t depth = static_cast<int64_t>(g.dims.size()), inner = g.inner;
  const double cost =
      5 + 2.0 * static_cast<double>(depth) + 0.1 * static_cast<double>(inner) * sizeof(T);
  pool.ParallelFor(g.rows, cost, [&](int64_t begin, int64_t end) {
    const int64_t *const dims = g.dims.data(), *const strides = g.strides.data();
    for (int64_t r = begin; r < end; ++r) {
      const Index* const row = indices + r * depth;
      uint64_t offset = 0;  // wraps around if an index is out of range
      bool is_bad = false;
      for (int64_t d = 0; d < depth; ++d) {
        const uint64_t index = static_cast<uint64_t>(static_cast<int64_t>(row[d]));
        is_bad |= index >= static_cast<uint64_t>(dims[d]);
        offset += index * static_cast<uint64_t>(strides[d]);
      }
      if (is_bad) {
        KeepSmallest(&bad, r);
      } else if (inner == 1) {
        out[r] = params[offset];
      } else {
        CopySlice(params + offset, inner, out + r * inner);
      }
    }
  });
  return bad.load();
}

absl::Status GatherNd(KernelContext& c, bool ignore_bad) {
  const Tensor &params = c.input(0), &indices = c.input(1);
  if (params.rank() == 0) return InvalidArgument("params must be at least a vector");
  if (indices.rank() == 0) return InvalidArgument("indices must be at least a vector");
  const int depth = static_cast<int>(std::min<int64_t>(indices.dim(-1), params.rank() + 1));
  if (depth > params.rank()) {
    return InvalidArgument("index innermost dimension length must be <= params rank; saw: ",
                           indices.dim(-1), " vs. ", params.rank());
  }
  Shape shape = indices.shape().Sub(0, indices.rank() - 1);
  const bool wants_slices = std::count(shape.dims().begin(), shape.dims().end(), 0) == 0;
  for (int i = depth; i < params.rank(); ++i) shape.AddDim(params.dim(i));
  WEIR_ASSIGN_OR_RETURN(shape, CheckedShape(shape.dims()));
  if (wants_slices && params.num_elements() == 0) {
    return InvalidArgument("Requested more than 0 entries, but params is empty.  Params shape: ",
                           params.shape().ToString());
  }
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
  if (out->num_elements() == 0) return absl::OkStatus();
  if (ignore_bad) ClearElements(c.pool(), *out);
  int64_t rows = 1;
  for (int i = 0; i < indices.rank() - 1; ++i) rows *= indices.dim(i);
  const Dims strides = StridesOf(params.shape());
  const GatherNdGrid g{Dims(params.shape().dims().begin(), params.shape().dims().begin() + depth),
                       Dims(strides.begin(), strides.begin() + depth), rows,
                       out->num_elements() / rows};
  int64_t bad = kFirstBad;
  DispatchGather(indices.dtype(), params.dtype(), [&]<class Index, class T>() {
    bad = GatherNdSlices(c.pool(), g, static_cast<const T*>(params.raw()), indices.data<Index>(),
                         static_cast<T*>(out->raw()));
  });
  if (bad == kFirstBad || ignore_bad) return absl::OkStatus();
  std::string row;
  for (int d = 0; d < depth; ++d)
    absl::StrAppend(&row, d > 0 ? ", " : "", indices.IntAt(bad * depth + d));
  return InvalidArgument("indices", PositionText(indices.shape().Sub(0, -1), bad), " = [", row,
                         "] does not index into param shape ", params.shape().ToString());
}

absl::StatusOr<Kernel> MakeGatherNd(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const bool ignore_bad, IgnoresBadIndices(init.node));
  return Kernel([ignore_bad](KernelContext& c) -> absl::Status { return GatherNd(c, ignore_bad); });
}

}  // namespace

void AddGatherCpu(KernelRegistry* r) {
  r->Add("Gather", kCpu, GatherRows);
  r->Add("GatherV2", kCpu, MakeGatherV2).HostArgs({"axis"});
  r->Add("GatherNd", kCpu, MakeGatherNd);
}

}  // namespace weir
