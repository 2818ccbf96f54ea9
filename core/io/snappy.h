#ifndef WEIR_CORE_IO_SNAPPY_H_
#define WEIR_CORE_IO_SNAPPY_H_

#include <string>

#include "absl/strings/string_view.h"

namespace weir {

// Decompresses a Snappy block, as found in old checkpoints (format: google/snappy,
// format_description.txt). Returns false for malformed input. Memory is bounded by 64 times the
// input, the maximum compression ratio of the format.
bool SnappyDecompress(absl::string_view in, std::string* out);

// Returns a Snappy block of `in`, which has less than 4 GiB. It has at most a sixth more bytes than
// `in`, and a few.
std::string SnappyCompress(absl::string_view in);

}  // namespace weir

#endif  // WEIR_CORE_IO_SNAPPY_H_
