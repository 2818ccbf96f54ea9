#include "weir/kernels/stream_ops.h"

// Stubs for a build without GPU kernels, in which no device has a stream.
namespace weir {

void CopyOnStream(void*, const StridedCopy&, size_t, const void*, void*) {}
void FillOnStream(void*, size_t, const void*, void*, int64_t) {}
bool CombineOnStream(void*, RowOp, DataType, void*, const void*, int64_t) { return false; }
void FillRandomOnStream(void*, RandomKind, DataType, const Philox&, uint64_t, uint64_t, void*,
                        int64_t) {}
void GatherOnStream(void*, const StreamGather&) {}
void UpdateOnStream(void*, const StreamUpdate&) {}

}  // namespace weir
