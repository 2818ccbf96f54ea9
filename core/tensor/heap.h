#ifndef WEIR_CORE_TENSOR_HEAP_H_
#define WEIR_CORE_TENSOR_HEAP_H_

#include <cstddef>

// A limit on what steps take on the C++ heap: strings, tables of kernels. A program that replaces
// operator new (weir-serve) asks MayAllocate and throws std::bad_alloc, which ends the step with
// RESOURCE_EXHAUSTED, while there is still memory for the libraries that cannot do without.
namespace weir {

// Returns whether the calling thread may take `bytes` more. Asks the system after every 4 MiB, and
// lets the host allocator give up its cache first. Always true outside of kernels
// (ScopedCancellation), because other code need not survive an exception of operator new: growing
// one of Abseil's hash tables does not. Thread-safe; never allocates.
bool MayAllocate(size_t bytes);

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_HEAP_H_
