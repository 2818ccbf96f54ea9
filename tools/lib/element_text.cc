#include "weir/tools/lib/element_text.h"

#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace weir::tools {

namespace {

using Reals = JoinLists<RealNumbers, List<bool>>;

// Two numbers that a double tells apart may be the same float, and a reader may parse a double
// first. The shortest digits of a float then read back as its neighbor in rare cases; nine digits
// never do.
template <class T>
void AppendReal(T value, std::string* out) {
  if (std::isnan(value)) return out->append("NaN"), void();
  if (std::isinf(value)) return out->append(value < 0 ? "-Infinity" : "Infinity"), void();
  std::array<char, 64> digits;
  char *const begin = digits.data(), *const limit = begin + digits.size();
  char* end = std::to_chars(begin, limit, value).ptr;
  if constexpr (std::is_same_v<T, float>) {
    constexpr int kEnoughDigits = 8;  // after the first one
    double read = 0;
    if (!absl::SimpleAtod({begin, static_cast<size_t>(end - begin)}, &read) ||
        static_cast<float>(read) != value)
      end = std::to_chars(begin, limit, value, std::chars_format::scientific, kEnoughDigits).ptr;
  }
  const absl::string_view text(begin, static_cast<size_t>(end - begin));
  absl::StrAppend(out, text, text.find_first_of(".e") == text.npos ? ".0" : "");
}

template <class T>
void AppendValue(T value, std::string* out) {
  if constexpr (std::is_same_v<T, bool>) {
    out->append(value ? "true" : "false");
  } else if constexpr (kContains<T, NarrowFloats>) {
    AppendFloat(static_cast<float>(value), out);
  } else if constexpr (std::is_floating_point_v<T>) {
    AppendReal(value, out);
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

void AppendFloat(float value, std::string* out) { AppendReal(value, out); }

void AppendString(const std::string& text, std::string* out) {
  try {  // nlohmann reports what is not UTF-8 by an exception
    out->append(nlohmann::json(text).dump());
  } catch (const nlohmann::json::type_error&) {
    absl::StrAppend(out, R"({"b64": ")", absl::Base64Escape(text), R"("})");
  }
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
