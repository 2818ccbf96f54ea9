#include "weir/session/plan/constant_values.h"

#include <cstring>

#include "absl/algorithm/container.h"

namespace weir {

namespace {

constexpr int64_t kMaxElements = 4096;

}  // namespace

std::optional<double> ValueOfAll(const Tensor& t) {
  if (t.num_elements() == 0 || t.num_elements() > kMaxElements) return std::nullopt;
  std::optional<double> value;
  DispatchType(t.dtype(), JoinLists<RealNumbers, List<bool>>(), [&]<class T>() {
    const T first = t.data<T>()[0];
    const auto is_first = [&first](const T& x) { return std::memcmp(&x, &first, sizeof(T)) == 0; };
    if (absl::c_all_of(t.flat<T>(), is_first)) value = static_cast<double>(first);
  });
  return value;
}

}  // namespace weir
