#ifndef WEIR_KERNELS_ACCUMULATOR_H_
#define WEIR_KERNELS_ACCUMULATOR_H_

#include <list>
#include <mutex>

#include "weir/core/kernel.h"

namespace weir {

// The state of a ConditionalAccumulator: a sum of gradients, how many they are, a step below which
// gradients are stale, and those who wait for enough of them. Thread-safe.
class AccumulatorState : public Resource {
 public:
  AccumulatorState(std::string name, DataType dtype, Shape shape, bool mean)
      : name_(std::move(name)), dtype_(dtype), shape_(std::move(shape)), mean_(mean) {}

  std::string Describe() const override { return "accumulator '" + name_ + "'"; }
  // Forgets the sum; those who wait get CANCELLED.
  void Clear() override;
  DataType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }

  // Adds a gradient, or drops it if it is stale. INVALID_ARGUMENT for another shape than the
  // accumulator's or the sum's.
  absl::Status Apply(int64_t local_step, const Tensor& gradient);
  // Calls `done` with the mean or sum once `required` gradients are there, in the order of the
  // calls; or with the reason for giving up when `cancellation` is cancelled. After it the sum is
  // empty, and the step one further.
  void Take(int64_t required, Cancellation* cancellation,
            std::function<void(absl::StatusOr<Tensor>)> done);
  int64_t count();
  void SetStep(int64_t step);

 private:
  struct Waiter {
    int64_t id, required, token;
    Cancellation* cancellation;
    std::function<void(absl::StatusOr<Tensor>)> done;
  };
  using Ready = std::vector<std::pair<Waiter, absl::StatusOr<Tensor>>>;

  // Those at the head of the queue who can be served now, with what they get. Needs the lock.
  Ready Serve();
  absl::StatusOr<Tensor> TakeSum();
  static void Finish(Ready ready);
  void GiveUp(int64_t id, const absl::Status& why);

  const std::string name_;
  const DataType dtype_;
  const Shape shape_;
  const bool mean_;
  std::mutex mutex_;
  Tensor sum_;
  int64_t count_ = 0, step_ = 0, next_id_ = 0;
  std::list<Waiter> waiters_;
};

}  // namespace weir

#endif  // WEIR_KERNELS_ACCUMULATOR_H_
