#include <atomic>

#include "weir/c_api.h"
#include "weir/capi/objects.h"

// Tensors with memory of the caller.

void weir_set_released(void* /*data*/, size_t /*length*/, void* released) {
  if (!weir::capi::HaveAll("weir_set_released", {released})) return;
  std::atomic_ref<int32_t>(*static_cast<int32_t*>(released)).store(1, std::memory_order_release);
}
