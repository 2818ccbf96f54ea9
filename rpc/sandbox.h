#ifndef WEIR_RPC_SANDBOX_H_
#define WEIR_RPC_SANDBOX_H_

#include <cstdint>

#include "weir/core/tensor/status.h"

namespace weir::rpc {

// Limits of a process in a sandbox. Zero: none.
struct SandboxLimits {
  int64_t data_bytes = 0;   // of memory that the process can write to (RLIMIT_DATA)
  int64_t cpu_seconds = 0;  // of all its threads; the system ends a process that uses more
};

// Confines this process, with all its threads, to computing and to talking over the sockets that it
// has. From then on it cannot open, create, change or list files, open sockets, start processes or
// programs, signal or trace other processes, or change its identity or its limits. Such system
// calls return EPERM (seccomp). Besides, it has no core dumps, and cannot make files larger. There
// is no way back.
//
// Open what is needed before: libraries, devices, files in /proc. Returns INTERNAL if the system
// refuses the filter.
absl::Status EnterSandbox(const SandboxLimits& limits);

}  // namespace weir::rpc

#endif  // WEIR_RPC_SANDBOX_H_
