#include "weir/tools/lib/element_text.h"

#include <charconv>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace weir::tools {

namespace {

using Reals = JoinLists<RealNumbers, List<bool>>;

template <class T>
void AppendValue(T value, std::string* out) {
  if constexpr (std::is_same_v<T, bool>) {
    out->append(value ? "true" : "false");
  } else if constexpr (kContains<T, NarrowFloats>) {
    AppendValue(static_cast<float>(value), out);
  } else if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(value)) return out->append("NaN"), void();
    if (std::isinf(value)) return out->append(value < 0 ? "-Infinity" : "Infinity"), void();
    char digits[64];
    const char* const end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    const absl::string_view text(digits, static_cast<size_t>(end - digits));
    absl::StrAppend(out, text, text.find_first_of(".e") == absl::string_view::npos ? ".0" : "");
  } else {
    absl::StrAppend(out, +value);
  }
}

}  // namespace

bool HasTextForm(DataType dtype) {
  return dtype == DT_STRING || DispatchType(dtype, Reals{}, []<class T>() {});
}

void AppendNumber(const Tensor& tensor, int64_t i, std::string* out) {
  DispatchType(tensor.dtype(), Reals{}, [&]<class T>() { AppendValue(tensor.data<T>()[i], out); });
}

bool ParseNumber(absl::string_view text, TextNumber* out) {
  int64_t whole;
  uint64_t large;
  double real;
  if (absl::SimpleAtoi(text, &whole)) {
    *out = {static_cast<long double>(whole), true};
  } else if (absl::SimpleAtoi(text, &large)) {
    *out = {static_cast<long double>(large), true};
  } else if (absl::SimpleAtod(text, &real)) {
    *out = {real, false};
  } else {
    return false;
  }
  return true;
}

}  // namespace weir::tools
