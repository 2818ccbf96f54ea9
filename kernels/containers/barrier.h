#ifndef WEIR_KERNELS_CONTAINERS_BARRIER_H_
#define WEIR_KERNELS_CONTAINERS_BARRIER_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "weir/kernels/containers/queue.h"

namespace weir {

// Assembles tuples whose components arrive separately under the tuple's key. Complete tuples move
// to a queue, ordered by when their keys were first seen. Thread-safe.
class BarrierState final : public Resource {
 public:
  using Done = WaitableResource::Done;

  BarrierState(std::string name, DataTypes types, std::vector<Shape> shapes);

  std::string Describe() const override { return "barrier '" + name_ + "'"; }
  void Clear() override;
  const DataTypes& types() const { return types_; }
  const std::vector<Shape>& shapes() const { return shapes_; }

  // Inserts the rows of `values` as component `component` of the tuples with these keys.
  void InsertMany(const Tensor& keys, int64_t component, const Tensor& values,
                  Cancellation* cancellation, Done done);
  // Takes complete tuples: their numbers, keys, and a batch of each component.
  void TakeMany(int64_t count, bool allow_fewer, Cancellation* cancellation,
                QueueState::TakeCallback done);
  // Rejects new keys from now on; with `cancel_pending`, also further components of known keys.
  absl::Status Close(bool cancel_pending);
  int64_t ready_size() { return ready_->size(); }
  int64_t incomplete_size();

 private:
  struct Incomplete {
    int64_t number = 0;
    Tensors components;  // missing components are uninitialized tensors
  };

  // Appends tuples that became complete to `complete`, even if it returns an error.
  absl::Status Insert(const Tensor& keys, int64_t component, const Tensor& values,
                      std::vector<Tensors>* complete);
  absl::Status InsertOne(const std::string& key, int64_t i, int64_t component, Tensor value,
                         bool* is_new, std::vector<Tensors>* complete);
  std::string State() const;
  // Call without the lock.
  void CloseQueue(bool cancel_pending);

  const std::string name_;
  const DataTypes types_;
  const std::vector<Shape> shapes_;
  const std::shared_ptr<QueueState> ready_;
  std::mutex mutex_;
  std::map<std::string, Incomplete> incomplete_;
  int64_t next_number_ = INT64_MIN;
  bool closed_ = false, cancelled_ = false;
};

// Registers the mutex part of AddBarrierKernels.
void AddMutexKernels(KernelRegistry* r);  // mutex.cc

}  // namespace weir

#endif  // WEIR_KERNELS_CONTAINERS_BARRIER_H_
