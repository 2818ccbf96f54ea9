#ifndef WEIR_KERNELS_STREAM_OPS_H_
#define WEIR_KERNELS_STREAM_OPS_H_

#include <cstddef>
#include <cstdint>

#include "weir/core/dtype.h"
#include "weir/kernels/philox.h"
#include "weir/kernels/row_update.h"
#include "weir/kernels/strided_copy.h"
#include "weir/kernels/training.h"

// What kernels that know no device do to elements when their device has a stream: they are written
// once, with the host computing sizes and strides, and only the innermost loop is one of these
// (else a loop on the CPU). Each enqueues on the stream (Device::stream) and returns; pointers are
// to the device's memory unless said otherwise. In a build without GPU kernels they are never
// called.
namespace weir {

// StridedCopy::Run for elements of `size` bytes.
void CopyOnStream(void* stream, const StridedCopy& copy, size_t size, const void* from, void* to);

// `count` elements of `size` bytes, all as the one at `value`, which is in host memory and is read
// before this returns.
void FillOnStream(void* stream, size_t size, const void* value, void* to, int64_t count);

// to[i] = to[i] op from[i], for kUpdate, kAdd and kSub. False if the type has no kernel.
bool CombineOnStream(void* stream, RowOp op, DataType type, void* to, const void* from,
                     int64_t count);

// `count` samples of the distribution, as Samples() in philox.h makes them from the stream of words
// that starts at `start`.
void FillRandomOnStream(void* stream, RandomKind kind, DataType type, const Philox& start,
                        uint64_t low, uint64_t range, void* out, int64_t count);

// Slices by index: params is [batch, outer, limit, inner], indices [batch, count], out [batch,
// outer, count, inner]. An index out of range gives zeros: nobody waits to check it.
struct StreamGather {
  int64_t batch = 1, outer = 1, limit = 0, inner = 1, count = 0;
  size_t size = 0;  // of an element
  DataType index_type = DT_INT32;
  const void* params = nullptr;
  const void* indices = nullptr;
  void* out = nullptr;
};
void GatherOnStream(void* stream, const StreamGather& gather);

// One run of an update rule over `count` elements.
struct StreamUpdate {
  absl::string_view rule;  // name in UpdateRules()
  bool power = false;      // Ftrl with another power than -1/2
  DataType type = DT_FLOAT;
  int64_t count = 0;
  void* var = nullptr;
  void* slots[3] = {};
  const void* grad = nullptr;
  // The scalars: where scalars[i] is null, given.at[i] counts.
  const void* scalars[7] = {};
  const int64_t* global_step = nullptr;
  UpdateScalars given;
};
void UpdateOnStream(void* stream, const StreamUpdate& update);

}  // namespace weir

#endif  // WEIR_KERNELS_STREAM_OPS_H_
