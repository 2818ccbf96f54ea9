#include "weir/rpc/lib/response_limit.h"

#include <algorithm>

namespace weir::rpc {

namespace {

constexpr uint64_t kMostBytes = (uint64_t{1} << 31) - 1024;

}  // namespace

ResponseLimit::ResponseLimit(int64_t bytes)
    : bytes_(bytes == 0 ? kMostBytes : std::min(kMostBytes, static_cast<uint64_t>(bytes))) {}

absl::Status ResponseLimit::Check(uint64_t bytes, absl::string_view what) const {
  if (bytes <= bytes_) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(what, " takes ", bytes,
                                                   " bytes, but a response is limited to ", bytes_,
                                                   " bytes (weir serve --max-response-mb)"));
}

}  // namespace weir::rpc
