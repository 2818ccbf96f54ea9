#ifndef WEIR_KERNELS_LIB_TEXT_LINES_H_
#define WEIR_KERNELS_LIB_TEXT_LINES_H_

#include <string>
#include <vector>

#include "weir/core/tensor/status.h"

namespace weir {

// The lines of a file, without "\n" or "\r\n". The text after the last line ending is a line unless
// it is empty.
absl::StatusOr<std::vector<std::string>> ReadLines(const std::string& path);

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_TEXT_LINES_H_
