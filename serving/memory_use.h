#ifndef WEIR_SERVING_MEMORY_USE_H_
#define WEIR_SERVING_MEMORY_USE_H_

#include <cstdint>

#include "weir/session/model/saved_model.h"

namespace weir::serving {

// Returns the bytes of the values of a model's variables, and of the constants of its graph and of
// its functions. Packed copies of weights, which kernels may keep, are not counted.
int64_t MemoryUse(const LoadedModel& model);

}  // namespace weir::serving

#endif  // WEIR_SERVING_MEMORY_USE_H_
