#ifndef WEIR_KERNELS_STREAM_OPS_H_
#define WEIR_KERNELS_STREAM_OPS_H_

#include <cstddef>
#include <cstdint>

#include "weir/core/dtype.h"
#include "weir/kernels/philox.h"
#include "weir/kernels/row_update.h"
#include "weir/kernels/strided_copy.h"
#include "weir/kernels/training.h"

// Element operations for device-independent kernels whose device has a stream. Such kernels are
// written once: the host computes sizes and strides, and only the innermost loop is one of these
// functions (or a loop on the CPU). Each function enqueues on the stream (Device::stream) and
// returns; pointers refer to the device's memory unless noted otherwise. In a build without GPU
// kernels they are never called.
namespace weir {

// StridedCopy::Run for elements of `size` bytes.
void CopyOnStream(void* stream, const StridedCopy& copy, size_t size, const void* from, void* to);

// Fills `count` elements of `size` bytes with the one at `value`, which is in host memory and is
// read before this returns.
void FillOnStream(void* stream, size_t size, const void* value, void* to, int64_t count);

// to[i] = to[i] op from[i], for kUpdate, kAdd and kSub. Returns false if the type has no kernel.
bool CombineOnStream(void* stream, RowOp op, DataType type, void* to, const void* from,
                     int64_t count);

// Writes `count` samples of the distribution, as Samples() in philox.h makes them from the stream
// of words that starts at `start`.
void FillRandomOnStream(void* stream, RandomKind kind, DataType type, const Philox& start,
                        uint64_t low, uint64_t range, void* out, int64_t count);

// A gather of slices by index: params is [batch, outer, limit, inner], indices [batch, count], out
// [batch, outer, count, inner]. An index that is out of range reads zeros: the host does not wait
// to check it.
struct StreamGather {
  int64_t batch = 1, outer = 1, limit = 0, inner = 1, count = 0;
  size_t size = 0;  // bytes per element
  DataType index_type = DT_INT32;
  const void* params = nullptr;
  const void* indices = nullptr;
  void* out = nullptr;
};
void GatherOnStream(void* stream, const StreamGather& gather);

// One application of an update rule to `count` elements.
struct StreamUpdate {
  absl::string_view rule;  // name in UpdateRules()
  bool power = false;      // Ftrl with another power than -1/2
  DataType type = DT_FLOAT;
  int64_t count = 0;
  void* var = nullptr;
  void* slots[3] = {};
  const void* grad = nullptr;
  // The scalars; where scalars[i] is null, given.at[i] is used.
  const void* scalars[7] = {};
  const int64_t* global_step = nullptr;
  UpdateScalars given;
};
void UpdateOnStream(void* stream, const StreamUpdate& update);

}  // namespace weir

#endif  // WEIR_KERNELS_STREAM_OPS_H_
