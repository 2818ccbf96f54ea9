#ifndef WEIR_RPC_LIB_MEMORY_RESERVATION_H_
#define WEIR_RPC_LIB_MEMORY_RESERVATION_H_

#include <cstdint>
#include <memory>

#include "weir/core/tensor/memory_quota.h"
#include "weir/core/tensor/status.h"

namespace weir::rpc {

// Memory that a message, or what is made of it, is going to take, checked and counted before it is
// taken: gRPC ends the process when it gets no memory. All reservations together are limited to
// what tensors leave of the host's memory, so messages count like tensors, also for the quota of
// the thread (core/tensor/memory_quota.h). Not thread-safe.
class MemoryReservation {
 public:
  MemoryReservation() = default;
  // Releases the memory.
  ~MemoryReservation();
  MemoryReservation(const MemoryReservation&) = delete;
  MemoryReservation& operator=(const MemoryReservation&) = delete;

  // Reserves `bytes` in all for `what` ("the response"); less than before is ignored. Returns
  // RESOURCE_EXHAUSTED, with what asked for how much, what is in use and what is left, if there is
  // not enough. Of the memory of the process, messages of less than a megabyte are only counted.
  absl::Status Take(uint64_t bytes, absl::string_view what);

 private:
  int64_t bytes_ = 0;
  int64_t checked_bytes_ = 0;  // also counted by the host allocator
  int64_t charged_bytes_ = 0;  // and by this quota, that of the first Take with one
  std::shared_ptr<MemoryQuota> quota_;
};

}  // namespace weir::rpc

#endif  // WEIR_RPC_LIB_MEMORY_RESERVATION_H_
