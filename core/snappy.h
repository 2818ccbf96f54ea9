#ifndef WEIR_CORE_SNAPPY_H_
#define WEIR_CORE_SNAPPY_H_

#include <string>

#include "absl/strings/string_view.h"

namespace weir {

// Unpacks a block compressed with Snappy, as old checkpoints have them (format: google/snappy,
// format_description.txt). False for malformed input. Memory is bounded by 64 times the input, the
// most the format can pack.
bool SnappyDecompress(absl::string_view in, std::string* out);

}  // namespace weir

#endif  // WEIR_CORE_SNAPPY_H_
