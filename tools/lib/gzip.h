#ifndef WEIR_TOOLS_LIB_GZIP_H_
#define WEIR_TOOLS_LIB_GZIP_H_

#include <string>

#include "weir/core/tensor/status.h"

// Files compressed by gzip.
namespace weir::tools {

inline constexpr size_t kMaxGunzipBytes = size_t{1} << 31;

// Whether bytes begin as such a file does.
bool IsGzip(absl::string_view bytes);

// Decompresses a file of one or more members. DATA_LOSS for a damaged or truncated file,
// RESOURCE_EXHAUSTED for more than kMaxGunzipBytes.
absl::StatusOr<std::string> Gunzip(absl::string_view bytes);

}  // namespace weir::tools

#endif  // WEIR_TOOLS_LIB_GZIP_H_
