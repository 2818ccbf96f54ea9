#include "weir/rpc/lib/memory_reservation.h"

#include <atomic>

#include "weir/core/tensor/allocator.h"

namespace weir::rpc {

namespace {

// Asking the system how much memory is left takes as long as handling a message of this size.
constexpr int64_t kCheckedBytes = 1 << 20;

std::atomic<int64_t> reserved_by_all{0};

}  // namespace

MemoryReservation::~MemoryReservation() { reserved_by_all -= bytes_; }

absl::Status MemoryReservation::Take(uint64_t bytes, absl::string_view what) {
  bytes_ = static_cast<int64_t>(bytes);
  const int64_t all = reserved_by_all += bytes_;
  if (bytes_ < kCheckedBytes) return absl::OkStatus();
  const int64_t left = HostAllocator().bytes_free();
  if (all <= left) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("OOM: ", what, " takes ", bytes, " bytes of memory. Other messages take ",
                   all - bytes_, " bytes, tensors ", HostAllocator().bytes_in_use(), ", and ", left,
                   " bytes are left (weir serve --max-memory-mb)"));
}

}  // namespace weir::rpc
