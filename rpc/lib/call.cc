#include "weir/rpc/lib/call.h"

#include <algorithm>
#include <atomic>
#include <random>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace weir::rpc {

namespace {

constexpr size_t kMaxIdBytes = 128;

uint64_t RandomNumber() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

bool IsLowerHex(absl::string_view text, size_t size) {
  return text.size() == size && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
         });
}

bool IsZero(absl::string_view hex) { return hex.find_first_not_of('0') == absl::string_view::npos; }

}  // namespace

std::string RequestId(absl::string_view given) {
  if (!given.empty() && given.size() <= kMaxIdBytes &&
      std::all_of(given.begin(), given.end(), [](char c) { return absl::ascii_isgraph(c); }))
    return std::string(given);
  static const uint64_t process = RandomNumber();
  static std::atomic<uint64_t> count{0};
  return absl::StrFormat("%016x-%x", process, ++count);
}

std::string Traceparent(absl::string_view given) {
  const std::vector<absl::string_view> parts = absl::StrSplit(given, '-');
  if (parts.size() < 4 || !IsLowerHex(parts[0], 2) || !IsLowerHex(parts[1], 32) ||
      !IsLowerHex(parts[2], 16) || !IsLowerHex(parts[3], 2))
    return "";
  // Later versions may have further parts; version ff does not exist.
  if (parts[0] == "ff" || (parts[0] == "00" && parts.size() > 4)) return "";
  if (IsZero(parts[1]) || IsZero(parts[2])) return "";
  return std::string(given.substr(0, 55));
}

absl::StatusOr<bool> IsLowPriority(absl::string_view given) {
  if (given == "low") return true;
  if (given.empty() || given == "high") return false;
  constexpr size_t kShown = 20;
  return InvalidArgument(kPriorityName, " is '", absl::CHexEscape(given.substr(0, kShown)),
                         "'; expected high or low");
}

}  // namespace weir::rpc
