#ifndef WEIR_KERNELS_LIB_DEVICE_PRIMITIVES_H_
#define WEIR_KERNELS_LIB_DEVICE_PRIMITIVES_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "weir/core/runtime/kernel.h"
#include "weir/core/tensor/api.h"
#include "weir/kernels/lib/philox.h"
#include "weir/kernels/lib/training.h"

namespace WEIR_API weir {

// The element loops of kernels that are shared by all devices. Such a kernel is written once: it
// checks its arguments and computes sizes and strides on the host, and only the innermost loop
// belongs to the device. A device returns its loops from Device::primitives(), and its backend
// registers the kernels with AddSharedKernels (kernels/lib/backend.h).
//
// All pointers are to the device's memory unless noted otherwise. A device with a stream enqueues
// and returns; temporary memory may be freed as soon as a function has returned. Thread-safe.
class DevicePrimitives {
 public:
  virtual ~DevicePrimitives() = default;

  // A copy between two grids of elements of `size` bytes (1, 2, 4, 8 or 16). For every index vector
  // i below `extents`:
  //   to[sum of i * to_strides] = from[sum of i * from_strides].
  // Strides are in elements. Those of the source may be zero, and either may be negative. The grids
  // do not overlap, except where an element is copied onto itself.
  struct CopyArgs {
    size_t size = 0;
    absl::Span<const int64_t> extents, from_strides, to_strides;  // of one length: the rank
    const void* from = nullptr;                                   // the element at i = 0
    void* to = nullptr;                                           // the same
  };
  // Copies; cannot fail.
  virtual void Copy(const CopyArgs& args) const = 0;

  // Fills `count` elements of `size` bytes with the one at `value`, which is in host memory and is
  // read before this returns.
  virtual void Fill(size_t size, const void* value, void* to, int64_t count) const = 0;

  // to[i] = to[i] + from[i], and to[i] - from[i]. Return false if there is no loop for the type.
  virtual bool Add(DataType type, void* to, const void* from, int64_t count) const = 0;
  virtual bool Subtract(DataType type, void* to, const void* from, int64_t count) const = 0;

  // A gather of slices by index: params is [batch, outer, limit, inner], indices [batch, count],
  // out [batch, outer, count, inner]. An index that is out of range reads zeros: the host does not
  // wait to check it.
  struct GatherArgs {
    int64_t batch = 1, outer = 1, limit = 0, inner = 1, count = 0;  // the extents above
    size_t size = 0;                                                // bytes per element
    DataType index_type = DT_INT32;                                 // or DT_INT64
    const void* params = nullptr;                                   // contiguous
    const void* indices = nullptr;                                  // contiguous
    void* out = nullptr;                                            // contiguous
  };
  // Gathers; cannot fail.
  virtual void Gather(const GatherArgs& args) const = 0;

  // `count` samples of a distribution, as Samples() in philox.h makes them from the stream of words
  // that starts at `start`; `low` and `range` are those of IntegerSamples. For
  // AddSharedRandomKernels; by default UNIMPLEMENTED.
  struct RandomArgs {
    RandomKind kind = RandomKind::kUniform;  // the distribution
    DataType type = DT_FLOAT;                // of the samples
    Philox start;
    uint64_t low = 0, range = 0;
    void* out = nullptr;  // contiguous
    int64_t count = 0;
  };
  // Writes the samples.
  virtual absl::Status FillRandom(const RandomArgs& args) const;

  // One application of an update rule to `count` elements. For AddSharedUpdateKernels; by default
  // UNIMPLEMENTED.
  struct UpdateArgs {
    absl::string_view rule;    // name in UpdateRules()
    bool power = false;        // Ftrl with another power than -1/2
    DataType type = DT_FLOAT;  // of all tensors
    int64_t count = 0;
    void* var = nullptr;         // updated
    void* slots[3] = {};         // updated; null beyond those that the rule has
    const void* grad = nullptr;  // read
    // The scalars; where scalars[i] is null, given.at[i] is used.
    const void* scalars[7] = {};
    const int64_t* global_step = nullptr;
    UpdateScalars given;
  };
  // Applies the rule.
  virtual absl::Status Update(const UpdateArgs& args) const;
};

// Returns the loops of the kernel's device for elements of this type, or null: the elements are in
// host memory, for the CPU's own loops.
inline const DevicePrimitives* PrimitivesFor(const KernelContext& c, DataType dtype) {
  return IsPlain(dtype) ? c.device().primitives() : nullptr;
}

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_DEVICE_PRIMITIVES_H_
