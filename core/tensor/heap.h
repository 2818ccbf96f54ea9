#ifndef WEIR_CORE_TENSOR_HEAP_H_
#define WEIR_CORE_TENSOR_HEAP_H_

#include <cstddef>

// A limit on what steps take on the C++ heap: strings, tables of kernels. A program that replaces
// operator new (weir-serve) asks MayAllocate and throws std::bad_alloc, which ends the step with
// RESOURCE_EXHAUSTED, while there is still memory for the libraries that cannot do without.
namespace weir {

// Returns whether the calling thread may take `bytes` more. After every 4 MiB, asks the system,
// which may let the host allocator give up its cache, and the quota of the thread (memory_quota.h),
// for all that the thread holds since its last CountHeapAnew. Always true outside of kernels
// (ScopedCancellation), because other code need not survive an exception of operator new: growing
// one of Abseil's hash tables does not. Thread-safe; never allocates.
bool MayAllocate(size_t bytes);
// Notes that the calling thread has freed so much.
void NoteFreed(size_t bytes);
// Forgets what the calling thread has taken so far: it is counted elsewhere, or is another step's.
void CountHeapAnew();

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_HEAP_H_
