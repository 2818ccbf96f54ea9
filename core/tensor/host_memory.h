#ifndef WEIR_CORE_TENSOR_HOST_MEMORY_H_
#define WEIR_CORE_TENSOR_HOST_MEMORY_H_

#include <chrono>
#include <cstdint>

// What a program tells the host allocator (allocator.h) about its other memory. Thread-safe.
namespace weir {

class Allocator;

// Returns the host allocator of the process, also where HostAllocator() returns a quota
// (memory_quota.h).
Allocator& ProcessAllocator();

// Counts memory that comes from elsewhere, such as the messages of a server, as in use by the host
// allocator. Returns false, and counts nothing, beyond the limit of SetHostMemoryLimit. Release
// what is counted.
bool ReserveHostMemory(int64_t bytes);
void ReleaseHostMemory(int64_t bytes);

// Returns cached blocks of the sizes that have not been used for that long to the system; zero: all
// blocks. Returns their bytes.
int64_t TrimHostMemory(std::chrono::milliseconds unused_for);

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_HOST_MEMORY_H_
