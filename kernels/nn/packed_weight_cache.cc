#include "weir/kernels/nn/packed_weight_cache.h"

namespace weir {

bool PackedWeightCache::CanCache(const Tensor& weight) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return reuse_.pays() && weight.buffer() && !weight.buffer()->transient();
}

absl::StatusOr<Tensor> PackedWeightCache::Get(const Tensor& weight,
                                              const std::shared_ptr<const void>& layout,
                                              absl::FunctionRef<absl::StatusOr<Tensor>()> make) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (value_.initialized() && layout_ == layout && weight_.raw() == weight.raw() &&
        weight_.shape() == weight.shape()) {
      reuse_.RecordReuse();
      return value_;
    }
  }
  WEIR_ASSIGN_OR_RETURN(Tensor value, make());
  if (!value.initialized()) return value;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (weight_.raw() != weight.raw()) reuse_.RecordNewValue();
  weight_ = value_ = Tensor();
  budget_ = {};
  if (!reuse_.pays()) return value;
  budget_ = CacheBudget(static_cast<int64_t>(value.num_bytes()));
  if (budget_.bytes() == 0) return value;  // the next run computes it again
  weight_ = weight;
  value_ = value;
  layout_ = layout;
  return value;
}

}  // namespace weir
