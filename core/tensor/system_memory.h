#ifndef WEIR_CORE_TENSOR_SYSTEM_MEMORY_H_
#define WEIR_CORE_TENSOR_SYSTEM_MEMORY_H_

#include <cstdint>

// How much memory the system, the process's container and its own limits leave. Nothing here
// allocates, so it can be asked when there is no memory.
namespace weir {

// Returns the smallest limit on the memory of this process in bytes: RLIMIT_AS, RLIMIT_DATA, and
// the limits of its cgroup and of the cgroups around it (version 1 or 2). INT64_MAX if there is
// none.
int64_t ProcessMemoryLimit();

// What memory is for. A reserve of 256 MiB, or an eighth of ProcessMemoryLimit() or a thirty-second
// of the machine's memory if that is less, is kept from what can be refused, because libraries such
// as gRPC end the process when they get no memory.
enum class MemoryUse {
  kTensors,  // tensors and whole messages: may take none of the reserve
  kSmall,    // small pieces, such as the strings of a kernel: may take half of it
};

// Returns the bytes that the process can still get for this use; at least 0. Where a number is
// unknown, such as in a sandbox, it limits nothing. Takes some tens of microseconds.
int64_t SystemBytesFree(MemoryUse use = MemoryUse::kTensors);

// Returns the physical memory that the process holds; 0 if it is unknown.
int64_t ResidentBytes();

}  // namespace weir

#endif  // WEIR_CORE_TENSOR_SYSTEM_MEMORY_H_
