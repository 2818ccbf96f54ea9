#include "weir/kernels/packed_weight_cache.h"

namespace weir {

bool PackedWeightCache::CanKeep(const Tensor& weight) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return uses_.pays() && weight.buffer() && !weight.buffer()->transient();
}

absl::StatusOr<Tensor> PackedWeightCache::Get(const Tensor& weight,
                                       const std::shared_ptr<const void>& layout,
                                       absl::FunctionRef<absl::StatusOr<Tensor>()> make) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (made_.initialized() && layout_ == layout && weight_.raw() == weight.raw() &&
        weight_.shape() == weight.shape()) {
      uses_.Use();
      return made_;
    }
  }
  WEIR_ASSIGN_OR_RETURN(Tensor made, make());
  if (!made.initialized()) return made;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (weight_.raw() != weight.raw()) uses_.Change();
  weight_ = made_ = Tensor();
  bytes_ = {};
  if (!uses_.pays()) return made;
  bytes_ = CacheBudget(static_cast<int64_t>(made.num_bytes()));
  if (bytes_.bytes() == 0) return made;  // the next run makes it again
  weight_ = weight;
  made_ = made;
  layout_ = layout;
  return made;
}

}  // namespace weir
