#include "weir/kernels/nn/pool_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/nn/pool_rows.cc"
#include "weir/kernels/lib/highway_targets.h"

#include "hwy/foreach_target.h"
#include "weir/kernels/nn/pool-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weir::pool::HWY_NAMESPACE {

void RunFloat(PoolKind kind, const PoolShape& s, const PoolSlice& slice, const float* a,
              const float* b, float* out) {
  Run<Vectors<float>>(kind, s, slice, a, b, out);
}
void RunDouble(PoolKind kind, const PoolShape& s, const PoolSlice& slice, const double* a,
               const double* b, double* out) {
  Run<Vectors<double>>(kind, s, slice, a, b, out);
}

}  // namespace weir::pool::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weir {
namespace pool {

HWY_EXPORT(RunFloat);
HWY_EXPORT(RunDouble);

void RunVectors(PoolKind kind, const PoolShape& s, const PoolSlice& slice, const float* a,
                const float* b, float* out) {
  HWY_DYNAMIC_DISPATCH(RunFloat)(kind, s, slice, a, b, out);
}
void RunVectors(PoolKind kind, const PoolShape& s, const PoolSlice& slice, const double* a,
                const double* b, double* out) {
  HWY_DYNAMIC_DISPATCH(RunDouble)(kind, s, slice, a, b, out);
}

}  // namespace pool

template <class T>
void PoolRows(PoolKind kind, const PoolShape& s, const PoolSlice& slice, const T* a, const T* b,
              T* out) {
  if constexpr (std::is_floating_point_v<T>) {
    pool::RunVectors(kind, s, slice, a, b, out);
  } else {
    pool::HWY_NAMESPACE::Run<pool::HWY_NAMESPACE::OneLane<T>>(kind, s, slice, a, b, out);
  }
}

template void PoolRows(PoolKind, const PoolShape&, const PoolSlice&, const float*, const float*,
                       float*);
template void PoolRows(PoolKind, const PoolShape&, const PoolSlice&, const double*, const double*,
                       double*);
template void PoolRows(PoolKind, const PoolShape&, const PoolSlice&, const int8_t*, const int8_t*,
                       int8_t*);
template void PoolRows(PoolKind, const PoolShape&, const PoolSlice&, const int16_t*, const int16_t*,
                       int16_t*);
template void PoolRows(PoolKind, const PoolShape&, const PoolSlice&, const int32_t*, const int32_t*,
                       int32_t*);
template void PoolRows(PoolKind, const PoolShape&, const PoolSlice&, const int64_t*, const int64_t*,
                       int64_t*);
template void PoolRows(PoolKind, const PoolShape&, const PoolSlice&, const uint8_t*, const uint8_t*,
                       uint8_t*);
template void PoolRows(PoolKind, const PoolShape&, const PoolSlice&, const uint16_t*,
                       const uint16_t*, uint16_t*);
template void PoolRows(PoolKind, const PoolShape&, const PoolSlice&, const uint32_t*,
                       const uint32_t*, uint32_t*);
template void PoolRows(PoolKind, const PoolShape&, const PoolSlice&, const uint64_t*,
                       const uint64_t*, uint64_t*);

}  // namespace weir
#endif  // HWY_ONCE
