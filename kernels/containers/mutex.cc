#include <any>
#include <atomic>

#include "weir/core/tensor/variant.h"
#include "weir/kernels/containers/barrier.h"
#include "weir/kernels/lib/waiter_queue.h"

// Locks acquired by steps (critical sections). A lock is owned by a value: it is released when the
// value is consumed, or when its last reference is dropped.
namespace weir {

namespace {

class MutexState final : public WaitableResource {
 public:
  explicit MutexState(std::string name)
      : WaitableResource(/*lanes=*/1, /*in_order=*/true), name_(std::move(name)) {}

  std::string Describe() const override { return "mutex '" + name_ + "'"; }
  void Lock(Cancellation* cancellation, Done done) {
    const auto lock = [this]() -> std::optional<absl::Status> {
      if (locked_) return std::nullopt;
      locked_ = true;
      return absl::OkStatus();
    };
    Wait(0, {.attempt = lock,
             .roll_back = nullptr,
             .cancelled = "Lock acquisition cancelled.",
             .cancellation = cancellation,
             .done = std::move(done)});
  }
  void Unlock() {
    Change([this] { locked_ = false; });
  }

 private:
  void ResetState() override {}

  const std::string name_;
  bool locked_ = false;
};

class HeldLock {
 public:
  explicit HeldLock(std::shared_ptr<MutexState> mutex) : mutex_(std::move(mutex)) {}
  ~HeldLock() { Release(); }
  HeldLock(const HeldLock&) = delete;
  HeldLock& operator=(const HeldLock&) = delete;
  // Returns false if it is already released.
  bool Release() {
    if (released_.exchange(true)) return false;
    mutex_->Unlock();
    return true;
  }

 private:
  const std::shared_ptr<MutexState> mutex_;
  std::atomic<bool> released_{false};
};

absl::StatusOr<Kernel> MakeMutex(const KernelInit& init) {
  WEIR_ASSIGN_OR_RETURN(const ResourceName name, NameSharedByNode(init.node));
  const auto mutex =
      name.SelectMap(init.resources).LookupOrCreate<MutexState>(name.container, name.name, [&] {
        return std::make_shared<MutexState>(name.name);
      });
  return Kernel::Constant(HandleTo(init.device, name, mutex));
}

void Lock(KernelContext& c, Kernel::Done done) {
  const auto mutex = c.resource<MutexState>(0);
  if (!mutex.ok()) return done(mutex.status());
  (*mutex)->Lock(c.cancellation(), [&c, mutex = *mutex, done = std::move(done)](absl::Status s) {
    if (s.ok()) {
      Variant lock;
      lock.type_name = "weir::HeldLock";
      lock.value = std::make_shared<HeldLock>(mutex);
      c.SetOutput(0, Tensor::Scalar(std::move(lock)));
    }
    done(std::move(s));
  });
}

absl::StatusOr<Kernel> MakeLock(const KernelInit&) {
  return Kernel([](KernelContext& c, Kernel::Done done) -> void { Lock(c, std::move(done)); });
}

absl::Status ConsumeLock(KernelContext& c) {
  const Tensor& input = c.input(0);
  if (!input.shape().IsScalar()) {
    return InvalidArgument("Expected input to be a scalar, saw shape: ", input.shape().ToString());
  }
  const auto* lock = input.dtype() != DT_VARIANT
                         ? nullptr
                         : std::any_cast<std::shared_ptr<HeldLock>>(&input.scalar<Variant>().value);
  if (lock == nullptr) return InvalidArgument("Expected input to contain a lock");
  if (!(*lock)->Release()) return InvalidArgument("The lock has been consumed before");
  return absl::OkStatus();
}

}  // namespace

void AddMutexKernels(KernelRegistry* r) {
  r->Add("MutexV2", kCpu, MakeMutex);
  r->Add("MutexLock", kCpu, MakeLock);
  r->Add("ConsumeMutexLock", kCpu, ConsumeLock);
}

}  // namespace weir
