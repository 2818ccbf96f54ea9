#ifndef WEIR_KERNELS_TEXT_FIXED_NOTATION_H_
#define WEIR_KERNELS_TEXT_FIXED_NOTATION_H_

#include <string>

namespace weir {

// The maximum number of decimals that PrintFixed prints.
inline constexpr int kMaxFixedDecimals = 18;

// Replaces `text` with what printf prints for the format "%.*f" and `decimals`, which is between 0
// and kMaxFixedDecimals. Returns false, and leaves the text alone, for infinity, NaN, and numbers
// that are too large: 2^53, or 2^63 after multiplication by 10^decimals.
bool PrintFixed(double value, int decimals, std::string* text);

}  // namespace weir

#endif  // WEIR_KERNELS_TEXT_FIXED_NOTATION_H_
