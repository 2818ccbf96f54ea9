#ifndef WEIR_KERNELS_KEPT_WEIGHT_H_
#define WEIR_KERNELS_KEPT_WEIGHT_H_

#include <memory>
#include <mutex>

#include "absl/functional/function_ref.h"
#include "weir/core/status.h"
#include "weir/core/tensor.h"
#include "weir/kernels/kept_bytes.h"

namespace weir {

// What a kernel has made of a weight that lasts from step to step (KernelInit::lasting_inputs),
// packed or transformed, for as long as the same tensor comes. The weight is held meanwhile, so
// that nobody writes to it. Thread-safe.
class KeptWeight {
 public:
  // What `make` makes of `weight` for `layout` (null: whatever), or made of it before. It is kept
  // if there is room (KeptBytes) and `make` gave something: it may give a tensor without a value.
  // `make` is called without a lock, by several threads perhaps.
  absl::StatusOr<Tensor> Get(const Tensor& weight, const std::shared_ptr<const void>& layout,
                             absl::FunctionRef<absl::StatusOr<Tensor>()> make);
  // Whether it can be kept, which memory of a step's arena cannot, having no owners, and whether
  // that pays.
  bool CanKeep(const Tensor& weight);

 private:
  std::mutex mutex_;
  KeptBytes bytes_;
  KeptUses uses_;
  Tensor weight_, made_;
  std::shared_ptr<const void> layout_;  // held: a pointer that is freed may come again
};

}  // namespace weir

#endif  // WEIR_KERNELS_KEPT_WEIGHT_H_
