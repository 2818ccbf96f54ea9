#include "weir/rpc/lib/memory_reservation.h"

#include <atomic>
#include <chrono>

#include "weir/core/tensor/allocator.h"
#include "weir/core/tensor/host_memory.h"
#include "weir/core/tensor/system_memory.h"

namespace weir::rpc {

namespace {

// Asking the system how much memory is left takes as long as handling a message of this size.
constexpr int64_t kCheckedBytes = 1 << 20;

std::atomic<int64_t> reserved_by_all{0};

// Returns whether the system has this much memory, if need be without the cache of the allocator.
bool SystemHas(int64_t bytes) {
  if (bytes <= SystemBytesFree()) return true;
  return TrimHostMemory(std::chrono::milliseconds(0)) > 0 && bytes <= SystemBytesFree();
}

}  // namespace

MemoryReservation::~MemoryReservation() {
  reserved_by_all -= bytes_;
  ReleaseHostMemory(checked_bytes_);
  if (quota_ != nullptr) quota_->Release(charged_bytes_);
}

absl::Status MemoryReservation::Take(uint64_t bytes, absl::string_view what) {
  const int64_t added = static_cast<int64_t>(bytes) - bytes_;
  if (added <= 0) return absl::OkStatus();
  if (quota_ == nullptr) quota_ = MemoryQuota::ShareCurrent();
  if (quota_ != nullptr) {
    WEIR_RETURN_IF_ERROR(quota_->Charge(added, what));
    charged_bytes_ += added;
  }
  bytes_ += added;
  const int64_t all = reserved_by_all += added;
  if (added < kCheckedBytes) return absl::OkStatus();
  if (SystemHas(all) && ReserveHostMemory(added)) {
    checked_bytes_ += added;
    return absl::OkStatus();
  }
  const Allocator& host = ProcessAllocator();
  return absl::ResourceExhaustedError(
      absl::StrCat("OOM: ", what, " takes ", bytes, " bytes of memory. Other messages take ",
                   all - added, " bytes, tensors and these ", host.bytes_in_use(), ", and ",
                   host.bytes_free(), " bytes are left (weir serve --max-memory-mb)"));
}

}  // namespace weir::rpc
