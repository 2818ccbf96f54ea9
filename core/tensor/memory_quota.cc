#include "weir/core/tensor/memory_quota.h"

#include <algorithm>
#include <limits>
#include <new>

#include "weir/core/tensor/cancellation.h"
#include "weir/core/tensor/host_memory.h"

namespace weir {

thread_local constinit MemoryQuota* MemoryQuota::current_ = nullptr;

std::shared_ptr<MemoryQuota> MemoryQuota::New(std::shared_ptr<MemoryQuota> outer, std::string name,
                                              int64_t limit) {
  return {new MemoryQuota(std::move(outer), std::move(name), limit),
          [](MemoryQuota* quota) { quota->Unref(); }};
}

std::shared_ptr<MemoryQuota> MemoryQuota::Share() {
  Ref();
  return {this, [](MemoryQuota* quota) { quota->Unref(); }};
}

std::shared_ptr<MemoryQuota> MemoryQuota::ShareCurrent() {
  return current_ == nullptr ? nullptr : current_->Share();
}

void MemoryQuota::Unref() {
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

int64_t MemoryQuota::OwnLeft() const {
  const int64_t limit = limit_.load(std::memory_order_relaxed);
  return limit == 0 ? std::numeric_limits<int64_t>::max() : std::max<int64_t>(0, limit - held());
}

const MemoryQuota& MemoryQuota::Tightest() const {
  const MemoryQuota* tightest = this;
  for (const MemoryQuota* q = outer_.get(); q != nullptr; q = q->outer_.get()) {
    if (q->OwnLeft() < tightest->OwnLeft()) tightest = q;
  }
  return *tightest;
}

int64_t MemoryQuota::left() const { return Tightest().OwnLeft(); }

bool MemoryQuota::Reserve(int64_t bytes) {
  for (MemoryQuota* q = this; q != nullptr; q = q->outer_.get()) {
    const int64_t before = q->held_.fetch_add(bytes, std::memory_order_relaxed);
    const int64_t limit = q->limit_.load(std::memory_order_relaxed);
    if (limit == 0 || before <= limit - bytes) continue;
    for (MemoryQuota* counted = this;; counted = counted->outer_.get()) {
      counted->held_.fetch_sub(bytes, std::memory_order_relaxed);
      if (counted == q) return false;
    }
  }
  return true;
}

void MemoryQuota::Release(int64_t bytes) {
  for (MemoryQuota* q = this; q != nullptr; q = q->outer_.get())
    q->held_.fetch_sub(bytes, std::memory_order_relaxed);
}

absl::Status MemoryQuota::Charge(int64_t bytes, absl::string_view what) {
  if (Reserve(bytes)) return absl::OkStatus();
  const MemoryQuota& quota = Tightest();
  return absl::ResourceExhaustedError(
      absl::StrCat("OOM: ", what, " takes ", bytes, " bytes of memory, but ", quota.name_,
                   " holds ", quota.held(), " and may take only ", quota.OwnLeft(), " more"));
}

absl::string_view MemoryQuota::name() const {
  const MemoryQuota& quota = Tightest();
  return quota.OwnLeft() < ProcessAllocator().bytes_free() ? quota.name_
                                                           : ProcessAllocator().name();
}

int64_t MemoryQuota::bytes_in_use() const {
  const MemoryQuota& quota = Tightest();
  return quota.OwnLeft() < ProcessAllocator().bytes_free() ? quota.held()
                                                           : ProcessAllocator().bytes_in_use();
}

int64_t MemoryQuota::bytes_free() const {
  return std::min(left(), ProcessAllocator().bytes_free());
}

void* MemoryQuota::Allocate(size_t bytes) {
  constexpr size_t kMaxBytes = size_t{1} << 47;
  const int64_t counted = static_cast<int64_t>(bytes) + kBytesPerBlock;
  if (bytes > kMaxBytes || !Reserve(counted)) return nullptr;
  void* const data = ProcessAllocator().Allocate(bytes);
  if (data == nullptr) {
    Release(counted);
  } else {
    Ref();
  }
  return data;
}

void MemoryQuota::Deallocate(void* data, size_t bytes) {
  if (data == nullptr) return;
  if (num_strings_.load(std::memory_order_relaxed) > 0) SetStrings(data, 0).IgnoreError();
  ProcessAllocator().Deallocate(data, bytes);
  Release(static_cast<int64_t>(bytes) + kBytesPerBlock);
  Unref();
}

absl::Status MemoryQuota::SetStrings(const void* data, int64_t bytes) {
  const MutexLock lock(mutex_);
  auto found = strings_.find(data);
  if (found == strings_.end()) {
    if (bytes == 0) return absl::OkStatus();
    found = strings_.emplace(data, 0).first;
  }
  const int64_t more = bytes - found->second;
  if (more < 0) Release(-more);
  const absl::Status status =
      more > 0 ? Charge(more, "what the strings of a tensor hold") : absl::OkStatus();
  if (status.ok()) found->second = bytes;
  if (found->second == 0) strings_.erase(found);
  num_strings_.store(strings_.size(), std::memory_order_relaxed);
  return status;
}

absl::Status MemoryQuota::ChargeStrings(const Tensor& tensor) {
  // The buffer's header counts what short strings hold. A few kilobytes are not worth the table.
  constexpr int64_t kMinBytes = 4 << 10;
  static const size_t kInline = std::string().capacity();
  if (tensor.dtype() != DT_STRING || !tensor.buffer()) return absl::OkStatus();
  auto* const quota = dynamic_cast<MemoryQuota*>(tensor.buffer()->allocator());
  const Buffer& buffer = *tensor.buffer().get();
  if (quota == nullptr || tensor.num_bytes() != buffer.size()) return absl::OkStatus();
  int64_t bytes = 0;
  for (const std::string& text : tensor.flat<std::string>()) {
    if (text.capacity() > kInline) bytes += static_cast<int64_t>(text.capacity()) + 1;
  }
  if (bytes < kMinBytes) bytes = 0;
  if (bytes == 0 && quota->num_strings_.load(std::memory_order_relaxed) == 0)
    return absl::OkStatus();
  const ScopedCancellation none(nullptr);  // the table does not expect operator new to refuse
  return quota->SetStrings(buffer.data(), bytes);
}

absl::StatusOr<Tensor> MemoryQuota::Adopt(Tensor tensor) {
  if (!tensor.buffer() || tensor.buffer()->allocator() != nullptr) return tensor;
  struct Adopted {
    Tensor tensor;
    std::shared_ptr<MemoryQuota> quota;
    int64_t bytes;
  };
  const auto bytes = static_cast<int64_t>(tensor.num_bytes());
  WEIR_RETURN_IF_ERROR(Charge(bytes, "a fed tensor"));
  const auto release = [](void* arg) {
    auto* const adopted = static_cast<Adopted*>(arg);
    adopted->tensor = Tensor();
    adopted->quota->Release(adopted->bytes);
    delete adopted;
  };
  auto* const adopted = new Adopted{std::move(tensor), Share(), bytes};
  Tensor& inner = adopted->tensor;
  BufferPtr buffer(
      Buffer::Wrap(inner.raw(), static_cast<size_t>(bytes), nullptr, release, adopted));
  return Tensor(inner.dtype(), inner.shape(), std::move(buffer), inner.raw());
}

}  // namespace weir
