#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "weir/tests/fuzz/targets.h"

namespace weir::fuzz {

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::abort();
}

uint8_t Input::Byte() {
  if (bytes_.empty()) return 0;
  const auto byte = static_cast<uint8_t>(bytes_.front());
  bytes_.remove_prefix(1);
  return byte;
}

absl::string_view Input::NextBytes() {
  const size_t low = Byte(), high = Byte();
  const absl::string_view piece = bytes_.substr(0, std::min(low + 256 * high, bytes_.size()));
  bytes_.remove_prefix(piece.size());
  return piece;
}

absl::string_view Input::RemainingBytes() { return std::exchange(bytes_, absl::string_view()); }

}  // namespace weir::fuzz
