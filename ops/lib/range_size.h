#ifndef WEIR_OPS_LIB_RANGE_SIZE_H_
#define WEIR_OPS_LIB_RANGE_SIZE_H_

#include <cmath>
#include <limits>
#include <type_traits>

#include "weir/core/tensor/status.h"

namespace weir {

// Returns the number of elements of Range(start, limit, delta) of type T, for its shape function
// and its kernel. INVALID_ARGUMENT if delta is zero or points away from the limit.
template <class T>
absl::StatusOr<int64_t> RangeSize(T start, T limit, T delta) {
  if (delta == T(0)) return InvalidArgument("Requires delta != 0: ", static_cast<double>(delta));
  if (delta > T(0) ? start > limit : start < limit) {
    return InvalidArgument("Requires start ", delta > T(0) ? "<=" : ">=", " limit when delta ",
                           delta > T(0) ? ">" : "<", " 0: ", static_cast<double>(start), "/",
                           static_cast<double>(limit));
  }
  if constexpr (std::is_integral_v<T>) {
    // Distances are computed as unsigned numbers to avoid overflow.
    const uint64_t up = static_cast<uint64_t>(limit) - static_cast<uint64_t>(start);
    const uint64_t distance = delta > T(0) ? up : 0 - up;
    const uint64_t step =
        delta > T(0) ? static_cast<uint64_t>(delta) : 0 - static_cast<uint64_t>(delta);
    const uint64_t size = distance / step + (distance % step != 0 ? 1 : 0);
    if (size > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return InvalidArgument("Requires ((limit - start) / delta) <= int64 max");
    return static_cast<int64_t>(size);
  } else {
    // The quotient is rounded to T, as in TensorFlow, and determines the number of elements.
    const T steps = static_cast<T>(static_cast<T>(limit - start) / delta);
    const double size = std::ceil(std::abs(static_cast<double>(steps)));
    if (!(size < 9e18))
      return InvalidArgument("Requires ((limit - start) / delta) <= int64 max, but it is ", size);
    return static_cast<int64_t>(size);
  }
}

}  // namespace weir

#endif  // WEIR_OPS_LIB_RANGE_SIZE_H_
