#include <algorithm>
#include <cstdint>
#include <cstring>

#include "weir/kernels/gpu/gpu_loops.h"
#include "weir/kernels/gpu/gpu_primitives.h"

// The loops of the kernels that a GPU shares with other devices.
namespace weir {

namespace {

// Copies dimensions [first, rank). If they do not fit one launch, the host loops over the first
// one.
void CopyDims(void* stream, const DevicePrimitives::CopyArgs& args, size_t first, const char* from,
              char* to) {
  GridIndex<2> grid;
  bool fits = true;
  for (size_t i = first; i < args.extents.size() && fits; ++i)
    fits = grid.Add(args.extents[i], {args.from_strides[i], args.to_strides[i]});
  if (fits) return gpu::CopyGrid(stream, args.size, grid, from, to);
  const int64_t bytes = static_cast<int64_t>(args.size);
  for (int64_t i = 0; i < args.extents[first]; ++i) {
    CopyDims(stream, args, first + 1, from + i * args.from_strides[first] * bytes,
             to + i * args.to_strides[first] * bytes);
  }
}

}  // namespace

void GpuPrimitives::Copy(const CopyArgs& args) const {
  CopyDims(stream_, args, 0, static_cast<const char*>(args.from), static_cast<char*>(args.to));
}

void GpuPrimitives::Fill(size_t size, const void* value, void* to, int64_t count) const {
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
  gpu::Fill(stream_, size, bits, to, count);
}

bool GpuPrimitives::Combine(absl::string_view op, DataType type, void* to, const void* from,
                            int64_t count) const {
  const gpu::Binary run = gpu::FindBinary(op, type);
  if (run == nullptr) return false;
  run(stream_, DenseGrid<2>(count), to, from, to, 0);
  return true;
}

bool GpuPrimitives::Add(DataType type, void* to, const void* from, int64_t count) const {
  return Combine("AddV2", type, to, from, count);
}

bool GpuPrimitives::Subtract(DataType type, void* to, const void* from, int64_t count) const {
  return Combine("Sub", type, to, from, count);
}

void GpuPrimitives::Gather(const GatherArgs& g) const {
  gpu::Gather(stream_, g.size, g.index_type,
              {g.batch, g.outer, g.limit, g.inner, g.count, g.params, g.indices, g.out});
}

absl::Status GpuPrimitives::FillRandom(const RandomArgs& args) const {
  if (gpu::Random(stream_, args.kind, args.type, args.start, args.low, args.range, args.out,
                  args.count))
    return absl::OkStatus();
  return DevicePrimitives::FillRandom(args);
}

absl::Status GpuPrimitives::Update(const UpdateArgs& args) const {
  gpu::UpdateArgs update{
      .var = args.var, .grad = args.grad, .global_step = args.global_step, .given = args.given};
  std::copy(std::begin(args.slots), std::end(args.slots), update.slots);
  std::copy(std::begin(args.scalars), std::end(args.scalars), update.scalars);
  if (gpu::Update(stream_, args.rule, args.power, args.type, update, args.count))
    return absl::OkStatus();
  return DevicePrimitives::Update(args);
}

}  // namespace weir
