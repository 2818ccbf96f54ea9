#ifndef WEIR_KERNELS_GPU_GPU_PRIMITIVES_H_
#define WEIR_KERNELS_GPU_GPU_PRIMITIVES_H_

#include "weir/kernels/lib/device_primitives.h"

namespace weir {

// The element loops of a GPU: they enqueue kernels on its stream.
class GpuPrimitives final : public DevicePrimitives {
 public:
  explicit GpuPrimitives(void* stream) : stream_(stream) {}

  void Copy(const CopyArgs& args) const override;
  void Fill(size_t size, const void* value, void* to, int64_t count) const override;
  bool Add(DataType type, void* to, const void* from, int64_t count) const override;
  bool Subtract(DataType type, void* to, const void* from, int64_t count) const override;
  void Gather(const GatherArgs& args) const override;
  absl::Status FillRandom(const RandomArgs& args) const override;
  absl::Status Update(const UpdateArgs& args) const override;

 private:
  bool Combine(absl::string_view op, DataType type, void* to, const void* from,
               int64_t count) const;

  void* const stream_;
};

}  // namespace weir

#endif  // WEIR_KERNELS_GPU_GPU_PRIMITIVES_H_
