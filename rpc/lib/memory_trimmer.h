#ifndef WEIR_RPC_LIB_MEMORY_TRIMMER_H_
#define WEIR_RPC_LIB_MEMORY_TRIMMER_H_

#include <chrono>
#include <cstdint>

namespace weir::rpc {

// Returns memory that nobody uses to the system: what the host allocator has cached, and what the C
// library keeps between blocks in use. Steps that go on soon keep theirs, because touching new
// memory costs more than using it again. Not thread-safe.
class MemoryTrimmer {
 public:
  // Call about once per second. Returns at once unless much has been freed.
  void Trim();

 private:
  std::chrono::steady_clock::time_point checked_at_;
  // The least resident memory of the process, and the least that the C library had free, since the
  // last trim.
  int64_t resident_ = 0, free_ = 0;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_LIB_MEMORY_TRIMMER_H_
