#ifndef WEIR_KERNELS_CONTAINERS_ACCUMULATOR_H_
#define WEIR_KERNELS_CONTAINERS_ACCUMULATOR_H_

#include <list>
#include <mutex>

#include "weir/core/runtime/kernel.h"

namespace weir {

// The state of a conditional accumulator: a sum of gradients, their number, the step below which a
// gradient is stale, and a queue of callers that wait for enough gradients. The derived classes
// define which tensors represent a gradient and the sum. Thread-safe.
class AccumulatorState : public Resource {
 public:
  using TakeDone = std::function<void(absl::StatusOr<Tensors>)>;

  AccumulatorState(std::string name, DataType dtype, Shape shape, bool mean)
      : name_(std::move(name)), dtype_(dtype), shape_(std::move(shape)), mean_(mean) {}

  std::string Describe() const override { return "accumulator '" + name_ + "'"; }
  // Clears the sum. Waiting callers get CANCELLED.
  void Clear() override;
  const std::string& name() const { return name_; }
  DataType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }

  // Adds a gradient, or drops it if it is stale. Returns INVALID_ARGUMENT if its shape differs from
  // the accumulator's or the sum's.
  absl::Status Apply(int64_t local_step, const Tensors& gradient);
  // Calls `done` with the mean or sum once `required` gradients have arrived, or with the
  // cancellation's status when `cancellation` is cancelled. Callers are served in order. Serving
  // one empties the sum and increments the step.
  void Take(int64_t required, Cancellation* cancellation, TakeDone done);
  int64_t count();
  void SetStep(int64_t step);

 protected:
  // The calls of the following functions are serialized. The first gradient after the sum was taken
  // or cleared is copied to the sum; later gradients are added to it.
  virtual absl::Status Add(const Tensors& gradient, bool is_first) = 0;
  // Returns the sum of `count` gradients, or their mean. May move the sum out.
  virtual absl::StatusOr<Tensors> TakeSum(int64_t count, bool mean) = 0;
  virtual void ClearSum() = 0;

 private:
  struct Waiter {
    int64_t id, required, token;
    Cancellation* cancellation;
    TakeDone done;
  };
  using Ready = std::vector<std::pair<Waiter, absl::StatusOr<Tensors>>>;

  // Pops the waiters at the head of the queue that can be served now, with their results. Requires
  // the lock.
  Ready PopReady();
  static void Finish(Ready ready);
  void CancelWaiter(int64_t id, const absl::Status& why);

  const std::string name_;
  const DataType dtype_;
  const Shape shape_;
  const bool mean_;
  std::mutex mutex_;
  int64_t count_ = 0, step_ = 0, next_id_ = 0;
  std::list<Waiter> waiters_;
};

// An accumulator of one dense tensor.
class DenseAccumulator final : public AccumulatorState {
 public:
  using AccumulatorState::AccumulatorState;

 private:
  absl::Status Add(const Tensors& gradient, bool is_first) override;
  absl::StatusOr<Tensors> TakeSum(int64_t count, bool mean) override;
  void ClearSum() override { sum_ = Tensor(); }

  Tensor sum_;
};

// An accumulator of sparse rows (IndexedSlices): ascending row indices, the rows' values and the
// tensor's dense shape (empty if unknown). A row's mean is over the gradients that contain the row.
class SparseAccumulator final : public AccumulatorState {
 public:
  using AccumulatorState::AccumulatorState;

 private:
  absl::Status Add(const Tensors& gradient, bool is_first) override;
  absl::StatusOr<Tensors> TakeSum(int64_t count, bool mean) override;
  void ClearSum() override;
  absl::Status Check(const Tensors& gradient, bool is_first) const;

  std::vector<int64_t> rows_, counts_;
  Tensor sum_;
};

// Returns a kernel that creates or finds the accumulator of a node and outputs a handle to it.
template <class Accumulator>
absl::StatusOr<Kernel> MakeAccumulator(const KernelInit& init);
// Returns a kernel whose outputs are the tensors taken from an accumulator.
template <class Accumulator>
absl::StatusOr<Kernel> MakeTakeGradient(const KernelInit& init);

// For n elements: to[i] += from[i], and gradient[i] /= count.
void AddGradient(DataType type, const void* from, void* to, int64_t n);
void DivideGradient(DataType type, int64_t count, void* gradient, int64_t n);

void AddSparseAccumulatorKernels(KernelRegistry* r);  // sparse_accumulator.cc

}  // namespace weir

#endif  // WEIR_KERNELS_CONTAINERS_ACCUMULATOR_H_
