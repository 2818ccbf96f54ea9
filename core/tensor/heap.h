#ifndef WEIR_CORE_TENSOR_HEAP_H_
#define WEIR_CORE_TENSOR_HEAP_H_

#include <cstddef>
#include <cstdint>

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
// Forgets what the calling thread has taken so far: it is counted elsewhere.
void CountHeapAnew();

// Counts what the calling thread takes from zero for its lifetime: it works for another step, or
// runs a function within a kernel. Afterwards the count from before goes on.
class ScopedHeapCount {
 public:
  ScopedHeapCount();
  ~ScopedHeapCount();
  ScopedHeapCount(const ScopedHeapCount&) = delete;
  ScopedHeapCount& operator=(const ScopedHeapCount&) = delete;

 private:
  const int64_t before_;
};

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_HEAP_H_
