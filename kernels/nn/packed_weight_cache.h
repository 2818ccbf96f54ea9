#ifndef WEIR_KERNELS_NN_PACKED_WEIGHT_CACHE_H_
#define WEIR_KERNELS_NN_PACKED_WEIGHT_CACHE_H_

#include <memory>
#include <mutex>

#include "absl/functional/function_ref.h"
#include "weir/core/tensor/status.h"
#include "weir/core/tensor/tensor.h"
#include "weir/kernels/linalg/cache_budget.h"

namespace weir {

// A cache of the packed or transformed form of a step-invariant weight
// (KernelInit::step_invariant_inputs), valid while the kernel is given the same tensor. The cache
// holds a reference to the weight, which prevents writes to it. Thread-safe.
class PackedWeightCache {
 public:
  // Returns the cached result of `make` for `weight` and `layout` (null: any), or calls `make`. The
  // result is cached if there is room (CacheBudget) and it is initialized; `make` may return an
  // uninitialized tensor. `make` is called without a lock, possibly by several threads.
  absl::StatusOr<Tensor> Get(const Tensor& weight, const std::shared_ptr<const void>& layout,
                             absl::FunctionRef<absl::StatusOr<Tensor>()> make);
  // Returns whether the weight can be cached and caching pays. Memory of a step's arena is not
  // ref-counted and cannot be cached.
  bool CanCache(const Tensor& weight);

 private:
  std::mutex mutex_;
  CacheBudget budget_;
  ReuseTracker reuse_;
  Tensor weight_, value_;
  std::shared_ptr<const void> layout_;  // owned: a freed address could be reused
};

}  // namespace weir

#endif  // WEIR_KERNELS_NN_PACKED_WEIGHT_CACHE_H_
