#ifndef WEIR_KERNELS_PACKED_WEIGHT_CACHE_H_
#define WEIR_KERNELS_PACKED_WEIGHT_CACHE_H_

#include <memory>
#include <mutex>

#include "absl/functional/function_ref.h"
#include "weir/core/status.h"
#include "weir/core/tensor.h"
#include "weir/kernels/cache_budget.h"

namespace weir {

// What a kernel has made of a weight that is step-invariant from step to step (KernelInit::step_invariant_inputs),
// packed or transformed, for as long as the same tensor comes. The weight is held meanwhile, so
// that nobody writes to it. Thread-safe.
class PackedWeightCache {
 public:
  // What `make` makes of `weight` for `layout` (null: whatever), or made of it before. It is kept
  // if there is room (CacheBudget) and `make` gave something: it may give a tensor without a value.
  // `make` is called without a lock, by several threads perhaps.
  absl::StatusOr<Tensor> Get(const Tensor& weight, const std::shared_ptr<const void>& layout,
                             absl::FunctionRef<absl::StatusOr<Tensor>()> make);
  // Whether it can be kept, which memory of a step's arena cannot, having no owners, and whether
  // that pays.
  bool CanKeep(const Tensor& weight);

 private:
  std::mutex mutex_;
  CacheBudget bytes_;
  ReuseTracker uses_;
  Tensor weight_, made_;
  std::shared_ptr<const void> layout_;  // held: a pointer that is freed may come again
};

}  // namespace weir

#endif  // WEIR_KERNELS_PACKED_WEIGHT_CACHE_H_
