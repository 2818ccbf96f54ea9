#include <cstdint>
#include <cstring>

#include "weir/kernels/fill_shapes.h"
#include "weir/kernels/gpu_kernels.h"
#include "weir/kernels/stream_ops.h"

// The GPU implementation of kernels/stream_ops.h (for kernels shared by all devices), and the GPU
// kernels that read tensor values on the device: filling and one-hot rows.
namespace weir {

namespace {

// Copies dimensions [first, rank). If they do not fit one launch, the host loops over the first
// one.
void CopyDims(void* stream, const StridedCopy& copy, size_t first, size_t size, const char* from,
              char* to) {
  GridIndex<2> grid;
  bool fits = true;
  for (size_t i = first; i < copy.extents.size() && fits; ++i)
    fits = grid.Add(copy.extents[i], {copy.from_strides[i], copy.to_strides[i]});
  if (fits) return gpu::CopyGrid(stream, size, grid, from, to);
  const int64_t bytes = static_cast<int64_t>(size);
  for (int64_t i = 0; i < copy.extents[first]; ++i) {
    CopyDims(stream, copy, first + 1, size, from + i * copy.from_strides[first] * bytes,
             to + i * copy.to_strides[first] * bytes);
  }
}

}  // namespace

void CopyOnStream(void* stream, const StridedCopy& copy, size_t size, const void* from, void* to) {
  CopyDims(stream, copy, 0, size, static_cast<const char*>(from), static_cast<char*>(to));
}

void FillOnStream(void* stream, size_t size, const void* value, void* to, int64_t count) {
  Bytes16 bits{0, 0};
  std::memcpy(&bits, value, size);
  if (bits.lo == 0 &&
      bits.hi == 0) {  // zeros of all element sizes have the same bits: use the widest size
    const uintptr_t address = reinterpret_cast<uintptr_t>(to);
    while (size < sizeof(bits) && count % 2 == 0 && address % (2 * size) == 0) {
      size *= 2;
      count /= 2;
    }
  }
  gpu::Fill(stream, size, bits, to, count);
}

void FillRandomOnStream(void* stream, RandomKind kind, DataType type, const Philox& start,
                        uint64_t low, uint64_t range, void* out, int64_t count) {
  gpu::Random(stream, kind, type, start, low, range, out, count);
}

void GatherOnStream(void* stream, const StreamGather& g) {
  gpu::Gather(stream, g.size, g.index_type,
              {g.batch, g.outer, g.limit, g.inner, g.count, g.params, g.indices, g.out});
}

void UpdateOnStream(void* stream, const StreamUpdate& update) {
  gpu::UpdateArgs args;
  args.var = update.var;
  args.grad = update.grad;
  args.global_step = update.global_step;
  args.given = update.given;
  for (int i = 0; i < 3; ++i) args.slots[i] = update.slots[i];
  for (int i = 0; i < 7; ++i) args.scalars[i] = update.scalars[i];
  gpu::Update(stream, update.rule, update.power, update.type, args, update.count);
}

namespace gpu {

namespace {

absl::Status RunFill(KernelContext& c) {
  WEIR_ASSIGN_OR_RETURN(const Shape shape, ShapeOfFill(c));
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, shape));
  Repeat(c.device().stream(), ElementSize(out->dtype()), c.input(1).raw(), out->raw(),
         out->num_elements());
  return absl::OkStatus();
}

absl::Status RunOneHot(KernelContext& c, int64_t axis) {
  WEIR_ASSIGN_OR_RETURN(const OneHotLayout layout, MakeOneHotLayout(c, axis));
  WEIR_ASSIGN_OR_RETURN(Tensor* const out, c.AllocateOutput(0, layout.out));
  const Tensor &indices = c.input(0), &on = c.input(2), &off = c.input(3);
  OneHot(
      c.device().stream(), ElementSize(out->dtype()), indices.dtype(),
      {layout.outer, layout.depth, layout.inner, indices.raw(), on.raw(), off.raw(), out->raw()});
  return absl::OkStatus();
}

absl::StatusOr<Kernel> MakeOneHot(const KernelInit& init) {
  const int64_t axis = init.attr<int64_t>("axis");
  return Kernel([axis](KernelContext& c) { return RunOneHot(c, axis); });
}

}  // namespace

}  // namespace gpu

void AddArrayGpu(KernelRegistry* r) {
  for (int t = DT_FLOAT; t <= DT_UINT64; ++t) {
    const DataType type = static_cast<DataType>(t);
    if (!IsPlain(type) || type == DT_INT32) continue;
    r->Add("Fill", kGpu, type, gpu::RunFill).HostArgs({"dims"});
    r->Add("OneHot", kGpu, type, gpu::MakeOneHot).HostArgs({"depth"});
  }
}

}  // namespace weir
