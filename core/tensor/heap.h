#ifndef WEIR_CORE_TENSOR_HEAP_H_
#define WEIR_CORE_TENSOR_HEAP_H_

#include <cstddef>
#include <cstdint>
#include <string>

// A limit on what steps take on the C++ heap: strings, tables of kernels. A program that replaces
// operator new (weir-serve) asks MayAllocate and throws std::bad_alloc, which ends the step with
// RESOURCE_EXHAUSTED, while there is still memory for the libraries that cannot do without.
namespace weir {

// Returns whether the calling thread may take `bytes` more. After every 4 MiB, asks the system,
// which may let the host allocator give up its cache, and the quota of the thread (memory_quota.h),
// for all that the thread holds since its last CountHeapAnew. Always true outside of kernels, which
// a ScopedHeapCount and a ScopedCancellation surround, because other code need not survive an
// exception of operator new: growing one of Abseil's hash tables does not. Thread-safe; never
// allocates.
bool MayAllocate(size_t bytes);
// Note that the calling thread has allocated or freed so much. Both are told the same for a block.
// What it frees of others' counts for nothing: it never holds less than zero.
void NoteAllocated(size_t bytes);
void NoteFreed(size_t bytes);
// Forgets what the calling thread has taken so far: it is counted elsewhere.
void CountHeapAnew();
// If the last answer of MayAllocate that the calling thread got was no, returns for how many bytes
// and why, for an error message: ": 64 bytes, but ...".
std::string WhyNotAllocated();

// Counts what the calling thread takes from zero for its lifetime, and limits it: the thread works
// for a step, or runs a function within a kernel. Afterwards the count from before goes on.
class ScopedHeapCount {
 public:
  ScopedHeapCount();
  ~ScopedHeapCount();
  ScopedHeapCount(const ScopedHeapCount&) = delete;
  ScopedHeapCount& operator=(const ScopedHeapCount&) = delete;

 private:
  const int64_t taken_before_;
  const bool limited_before_;
};

// Lifts the limit for its lifetime, in code within a kernel that must not get an exception.
class ScopedUnlimitedHeap {
 public:
  ScopedUnlimitedHeap();
  ~ScopedUnlimitedHeap();
  ScopedUnlimitedHeap(const ScopedUnlimitedHeap&) = delete;
  ScopedUnlimitedHeap& operator=(const ScopedUnlimitedHeap&) = delete;

 private:
  const bool limited_before_;
};

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_HEAP_H_
