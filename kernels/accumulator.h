#ifndef WEIR_KERNELS_ACCUMULATOR_H_
#define WEIR_KERNELS_ACCUMULATOR_H_

#include <list>
#include <mutex>

#include "weir/core/kernel.h"

namespace weir {

// The state of a conditional accumulator: a sum of gradients, how many they are, a step below which
// gradients are stale, and those who wait for enough of them. A gradient and the sum are some
// tensors, which those who derive from this make sense of. Thread-safe.
class AccumulatorState : public Resource {
 public:
  using Taken = std::function<void(absl::StatusOr<Tensors>)>;

  AccumulatorState(std::string name, DataType dtype, Shape shape, bool mean)
      : name_(std::move(name)), dtype_(dtype), shape_(std::move(shape)), mean_(mean) {}

  std::string Describe() const override { return "accumulator '" + name_ + "'"; }
  // Forgets the sum; those who wait get CANCELLED.
  void Clear() override;
  const std::string& name() const { return name_; }
  DataType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }

  // Adds a gradient, or drops it if it is stale. INVALID_ARGUMENT for another shape than the
  // accumulator's or the sum's.
  absl::Status Apply(int64_t local_step, const Tensors& gradient);
  // Calls `done` with the mean or sum once `required` gradients are there, in the order of the
  // calls; or with the reason for giving up when `cancellation` is cancelled. After it the sum is
  // empty, and the step one further.
  void Take(int64_t required, Cancellation* cancellation, Taken done);
  int64_t count();
  void SetStep(int64_t step);

 protected:
  // The following are called one at a time. The first gradient after the sum was taken or forgotten
  // is the sum, a copy of it; others are added to it.
  virtual absl::Status Add(const Tensors& gradient, bool is_first) = 0;
  // The sum of `count` gradients, or their mean; nothing of it need be kept.
  virtual absl::StatusOr<Tensors> TakeSum(int64_t count, bool mean) = 0;
  virtual void Forget() = 0;

 private:
  struct Waiter {
    int64_t id, required, token;
    Cancellation* cancellation;
    Taken done;
  };
  using Ready = std::vector<std::pair<Waiter, absl::StatusOr<Tensors>>>;

  // Those at the head of the queue who can be served now, with what they get. Needs the lock.
  Ready Serve();
  static void Finish(Ready ready);
  void GiveUp(int64_t id, const absl::Status& why);

  const std::string name_;
  const DataType dtype_;
  const Shape shape_;
  const bool mean_;
  std::mutex mutex_;
  int64_t count_ = 0, step_ = 0, next_id_ = 0;
  std::list<Waiter> waiters_;
};

// One tensor.
class DenseAccumulator final : public AccumulatorState {
 public:
  using AccumulatorState::AccumulatorState;

 private:
  absl::Status Add(const Tensors& gradient, bool is_first) override;
  absl::StatusOr<Tensors> TakeSum(int64_t count, bool mean) override;
  void Forget() override { sum_ = Tensor(); }

  Tensor sum_;
};

// Some rows of a tensor: their numbers, in order, their values, and (empty: not known) the tensor's
// shape. A row's mean is over the gradients that had it.
class SparseAccumulator final : public AccumulatorState {
 public:
  using AccumulatorState::AccumulatorState;

 private:
  absl::Status Add(const Tensors& gradient, bool is_first) override;
  absl::StatusOr<Tensors> TakeSum(int64_t count, bool mean) override;
  void Forget() override;
  absl::Status Check(const Tensors& gradient, bool is_first) const;

  std::vector<int64_t> rows_, counts_;
  Tensor sum_;
};

// A kernel that makes (or finds) the accumulator of a node and gives a handle to it.
template <class Accumulator>
absl::StatusOr<Kernel> MakeAccumulator(const KernelInit& init);
// One whose outputs are what an accumulator gives.
template <class Accumulator>
absl::StatusOr<Kernel> MakeTakeGradient(const KernelInit& init);

// n elements: to[i] += from[i], and gradient[i] /= count.
void AddGradient(DataType type, const void* from, void* to, int64_t n);
void DivideGradient(DataType type, int64_t count, void* gradient, int64_t n);

void AddSparseAccumulatorKernels(KernelRegistry* r);  // sparse_accumulator.cc

}  // namespace weir

#endif  // WEIR_KERNELS_ACCUMULATOR_H_
