#ifndef WEIR_CAPI_EAGER_HANDLE_H_
#define WEIR_CAPI_EAGER_HANDLE_H_

#include <atomic>
#include <utility>

#include "tensorflow/c/eager/c_api.h"
#include "weir/core/tensor/tensor.h"

// A tensor that exists, or that an op is still to compute. The pointers of clients and ops are
// counted references. Thread-safe.
struct TFE_TensorHandle {
  // A tensor that is still to be computed; and one that exists.
  explicit TFE_TensorHandle(weir::DataType type) : dtype_(type), state_(kPending) {}
  explicit TFE_TensorHandle(weir::Tensor value)
      : dtype_(value.dtype()), state_(kReady), value_(std::move(value)) {}

  // Adds a reference, and drops one. The last Unref deletes the handle.
  TFE_TensorHandle* Ref() {
    refs_.fetch_add(1, std::memory_order_relaxed);
    return this;
  }
  void Unref() {
    if (refs_.load(std::memory_order_acquire) == 1 ||
        refs_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      delete this;
  }
  // Whether somebody besides the caller holds a reference.
  bool is_shared() const { return refs_.load(std::memory_order_acquire) > 1; }

  weir::DataType dtype() const { return dtype_; }
  // Waits until the op has run, and returns its error.
  absl::Status Wait() const {
    state_.wait(kPending, std::memory_order_acquire);
    return state_.load(std::memory_order_acquire) == kReady ? absl::OkStatus() : error_;
  }
  // The tensor. Call Wait before.
  const weir::Tensor& value() const { return value_; }

  // Set what a pending handle waits for, once.
  void Set(weir::Tensor value) {
    value_ = std::move(value);
    Finish(kReady);
  }
  void Fail(absl::Status error) {
    error_ = std::move(error);
    Finish(kFailed);
  }
  // Moves the tensor out of a handle that nobody else holds. It then has an error.
  weir::Tensor Take() {
    weir::Tensor taken = std::move(value_);
    Fail(weir::FailedPrecondition("an earlier execution of the op has used up its input, whose ",
                                  "handle the program had deleted"));
    return taken;
  }

 private:
  enum State : int { kPending, kReady, kFailed };
  ~TFE_TensorHandle() = default;
  void Finish(State state) {
    state_.store(state, std::memory_order_release);
    state_.notify_all();
  }

  const weir::DataType dtype_;
  std::atomic<int> refs_{1};
  std::atomic<int> state_;
  weir::Tensor value_;
  absl::Status error_;
};

namespace weir::capi {

// The name of the only device.
inline constexpr char kCpuName[] = "/job:localhost/replica:0/task:0/device:CPU:0";

// Returns whether the handle is not null; sets the status to TensorFlow's error if it is.
bool IsHandle(absl::string_view function, const TFE_TensorHandle* handle, TF_Status* status);

}  // namespace weir::capi

#endif  // WEIR_CAPI_EAGER_HANDLE_H_
