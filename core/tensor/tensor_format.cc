#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "weir/core/tensor/resource_handle.h"
#include "weir/core/tensor/tensor.h"
#include "weir/core/tensor/variant.h"

namespace weir {

namespace {

// Formats a tensor the way NumPy's str() formats an array with default options.
//
// Floating-point numbers have the fewest digits that identify the value uniquely in its own type,
// but at most 8 after the point (then rounded from the exact value). All elements of an array share
// one format: scientific if the largest magnitude reaches 10^min(8, decimal digits of the type),
// the smallest is below 10^-4, or their ratio exceeds 1000; otherwise positional. A first pass
// formats every element to find the widest integral part, fraction and exponent. The second pass
// pads fractions with zeros (scientific) or blanks (positional) so that the points align. Arrays
// above the threshold show three items at each end of each dimension, and only those determine the
// widths.
constexpr int kPrecision = 8;
constexpr int64_t kEdgeItems = 3;
constexpr int kLineWidth = 75;

enum class FloatType { kHalf, kFloat, kDouble };

// std::numeric_limits' digits10: the power of ten from which a type is formatted in scientific
// notation.
int DecimalDigits(FloatType type) {
  return type == FloatType::kHalf ? 3 : type == FloatType::kFloat ? 6 : 15;
}

double RoundTo(FloatType type, double x) {
  if (type == FloatType::kHalf) return half(static_cast<float>(x));
  return type == FloatType::kFloat ? static_cast<float>(x) : x;
}

// The decimal number d[0].d[1]d[2]... times ten to the exponent, without trailing zeros.
struct Digits {
  std::string digits;
  int exponent = 0;
};

Digits ParseScientific(absl::string_view text) {
  Digits out;
  const size_t e = text.find('e');
  for (const char c : text.substr(0, e)) {
    if (c != '.') out.digits += c;
  }
  while (out.digits.size() > 1 && out.digits.back() == '0') out.digits.pop_back();
  const char* exponent = text.data() + e + 1;
  if (*exponent == '+') ++exponent;
  std::from_chars(exponent, text.data() + text.size(), out.exponent);
  return out;
}

Digits RoundedDigits(double x, int precision) {
  char buf[64];
  const auto end =
      std::to_chars(buf, buf + sizeof(buf), x, std::chars_format::scientific, precision);
  return ParseScientific(absl::string_view(buf, end.ptr - buf));
}

bool IdentifiesHalf(const Digits& d, half wanted) {
  const int last_place = d.exponent - static_cast<int>(d.digits.size()) + 1;
  const std::string text = absl::StrCat(d.digits, "e", last_place);
  float value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return half(value) == wanted;
}

// The rounding interval of a power of two is wider above than below, so the next decimal above may
// identify it when the nearest does not.
Digits ShortestHalfDigits(double x) {
  const half wanted(static_cast<float>(x));
  for (int precision = 0;; ++precision) {
    const Digits nearest = RoundedDigits(x, precision);
    if (IdentifiesHalf(nearest, wanted)) return nearest;
    const double nudge = 0.4999 * std::pow(10.0, nearest.exponent - precision);
    const Digits above = RoundedDigits(x + nudge, precision);
    if (IdentifiesHalf(above, wanted)) return above;
  }
}

// Returns the fewest digits that identify the non-negative, finite x in its type.
Digits ShortestDigits(double x, FloatType type) {
  if (type == FloatType::kHalf) return ShortestHalfDigits(x);
  char buf[64];
  const auto end = type == FloatType::kFloat
                       ? std::to_chars(buf, buf + sizeof(buf), static_cast<float>(x),
                                       std::chars_format::scientific)
                       : std::to_chars(buf, buf + sizeof(buf), x, std::chars_format::scientific);
  return ParseScientific(absl::string_view(buf, end.ptr - buf));
}

absl::string_view SignOf(double x, bool plus) { return std::signbit(x) ? "-" : plus ? "+" : ""; }

// Formats "12.5", "-3.", "0.1": always with a point, and without trailing zeros.
std::string Positional(double x, FloatType type, int precision, bool plus) {
  const Digits d = ShortestDigits(std::fabs(x), type);
  const int fraction = std::max(0, static_cast<int>(d.digits.size()) - 1 - d.exponent);
  std::string text;
  if (fraction > precision) {
    char buf[400];
    const auto end =
        std::to_chars(buf, buf + sizeof(buf), std::fabs(x), std::chars_format::fixed, precision);
    text.assign(buf, end.ptr);
    text.erase(text.find_last_not_of('0') + 1);
  } else if (d.exponent < 0) {
    text = absl::StrCat("0.", std::string(-d.exponent - 1, '0'), d.digits);
  } else {
    const size_t integral = static_cast<size_t>(d.exponent) + 1;
    text = d.digits;
    if (text.size() < integral) text.append(integral - text.size(), '0');
    text.insert(integral, ".");
    if (d.digits == "0") text = "0.";
  }
  return absl::StrCat(SignOf(x, plus), text);
}

// Formats "1.25e+06" with at least `min_fraction` digits after the point and `exponent_digits`
// digits in the exponent.
std::string Scientific(double x, FloatType type, int precision, int min_fraction,
                       int exponent_digits, bool plus) {
  Digits d = ShortestDigits(std::fabs(x), type);
  if (static_cast<int>(d.digits.size()) - 1 > precision) d = RoundedDigits(std::fabs(x), precision);
  if (static_cast<int>(d.digits.size()) - 1 < min_fraction) {
    d = RoundedDigits(std::fabs(x), min_fraction);  // digits of the exact value, not zeros
  }
  std::string fraction = d.digits.substr(1);
  if (static_cast<int>(fraction.size()) < min_fraction) fraction.resize(min_fraction, '0');
  return absl::StrCat(SignOf(x, plus), d.digits.substr(0, 1), ".", fraction, "e",
                      d.exponent < 0 ? "-" : "+",
                      absl::StrFormat("%0*d", exponent_digits, std::abs(d.exponent)));
}

std::string PadLeft(absl::string_view text, int width) {
  const int missing = std::max(0, width - static_cast<int>(text.size()));
  return absl::StrCat(std::string(missing, ' '), text);
}

// The common format of the floating-point elements of one array.
class FloatFormat {
 public:
  FloatFormat(const std::vector<double>& values, FloatType type, bool plus)
      : type_(type), plus_(plus) {
    ChooseForm(values);
    bool any_finite = false, any_nonfinite = false, negative_infinity = plus;
    for (const double x : values) {
      if (!std::isfinite(x)) {
        any_nonfinite = true;
        negative_infinity = negative_infinity || (std::isinf(x) && x < 0);
        continue;
      }
      any_finite = true;
      Measure(x);
    }
    if (any_finite && scientific_) right_ = exponent_digits_ + 2 + fraction_;
    if (any_nonfinite) left_ = std::max(left_, 3 + (negative_infinity ? 1 : 0) - right_ - 1);
  }

  std::string operator()(double x) const {
    if (!std::isfinite(x)) {
      const absl::string_view sign = std::isnan(x) ? (plus_ ? "+" : "") : SignOf(x, plus_);
      return PadLeft(absl::StrCat(sign, std::isnan(x) ? "nan" : "inf"), left_ + right_ + 1);
    }
    if (scientific_) {
      const std::string text = Scientific(x, type_, fraction_, fraction_, exponent_digits_, plus_);
      return PadLeft(text,
                     static_cast<int>(text.size()) - static_cast<int>(text.find('.')) + left_);
    }
    std::string text = Positional(x, type_, kPrecision, plus_);
    const int point = static_cast<int>(text.find('.'));
    text.append(right_ - (static_cast<int>(text.size()) - point - 1), ' ');
    return PadLeft(text, left_ + 1 + right_);
  }

 private:
  // Compares in the array's own type, like NumPy.
  void ChooseForm(const std::vector<double>& values) {
    double largest = 0, smallest = std::numeric_limits<double>::infinity();
    for (const double x : values) {
      if (!std::isfinite(x) || x == 0) continue;
      largest = std::max(largest, std::fabs(x));
      smallest = std::min(smallest, std::fabs(x));
    }
    if (largest == 0) return;
    scientific_ = largest >= std::pow(10, std::min(8, DecimalDigits(type_))) ||
                  smallest < RoundTo(type_, 0.0001) || RoundTo(type_, largest / smallest) > 1000;
  }

  void Measure(double x) {
    const std::string text = scientific_ ? Scientific(x, type_, kPrecision, 0, 2, plus_)
                                         : Positional(x, type_, kPrecision, plus_);
    const size_t point = text.find('.');
    const size_t end = std::min(text.find('e'), text.size());
    left_ = std::max(left_, static_cast<int>(point));
    const int fraction = static_cast<int>(end - point) - 1;
    if (scientific_) {
      fraction_ = std::max(fraction_, fraction);
      exponent_digits_ = std::max(exponent_digits_, static_cast<int>(text.size() - end) - 2);
    } else {
      right_ = std::max(right_, fraction);
    }
  }

  FloatType type_;
  bool plus_;
  bool scientific_ = false;
  int left_ = 0, right_ = 0;  // columns before and after the point
  int fraction_ = 0, exponent_digits_ = 2;
};

// Formats a single number: scientific below 10^-4 and from 10^16 (double; less for other types),
// otherwise positional, with ".0" after an integer unless it is part of a complex number.
std::string ScalarFloat(double x, FloatType type, bool in_complex) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x < 0 ? "-inf" : "inf";
  constexpr int kMaxPrecision = 400;
  const double magnitude = std::fabs(x);
  const double limit = type == FloatType::kDouble ? 1e16 : std::pow(10, DecimalDigits(type));
  if (magnitude != 0 && (magnitude < 1e-4 || magnitude >= limit)) {
    std::string text = Scientific(x, type, kMaxPrecision, 0, 2, false);
    const size_t point = text.find('.');
    if (text[point + 1] == 'e') text.erase(point, 1);
    return text;
  }
  std::string text = Positional(x, type, kMaxPrecision, false);
  if (text.back() == '.') in_complex ? text.pop_back() : text.push_back('0');
  return text;
}

std::string ScalarComplex(double re, double im, FloatType type) {
  const std::string imaginary = ScalarFloat(im, type, true);
  if (re == 0 && !std::signbit(re)) return absl::StrCat(imaginary, "j");
  const bool signed_already = imaginary[0] == '-';
  return absl::StrCat("(", ScalarFloat(re, type, true), signed_already ? "" : "+", imaginary, "j)");
}

std::string BytesLiteral(const std::string& bytes) {
  const bool use_double =
      bytes.find('\'') != std::string::npos && bytes.find('"') == std::string::npos;
  const char quote = use_double ? '"' : '\'';
  std::string out = absl::StrCat("b", std::string(1, quote));
  for (const unsigned char c : bytes) {
    switch (c) {
      case '\t':
        out += "\\t";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\\':
        out += "\\\\";
        break;
      default:
        if (c == quote) {
          absl::StrAppend(&out, "\\", std::string(1, quote));
        } else if (c < 0x20 || c >= 0x7f) {
          absl::StrAppendFormat(&out, "\\x%02x", c);
        } else {
          out += static_cast<char>(c);
        }
    }
  }
  out += quote;
  return out;
}

// The layout of an 8-bit float: sign, exponent, mantissa. `finite_only` types have no infinities;
// those with a single NaN (0x80) have no negative zero either.
struct Float8Layout {
  int mantissa_bits, bias;
  bool finite_only, single_nan;
};

float Float8Value(uint8_t bits, const Float8Layout& layout) {
  const int magnitude = bits & 0x7f;
  const int mantissa = magnitude & ((1 << layout.mantissa_bits) - 1);
  const int exponent = magnitude >> layout.mantissa_bits;
  const float sign = bits & 0x80 ? -1.0f : 1.0f;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  if (layout.single_nan) {
    if (bits == 0x80) return nan;
  } else if (layout.finite_only) {
    if (magnitude == 0x7f) return nan;
  } else if (exponent == 0x7f >> layout.mantissa_bits) {
    return mantissa != 0 ? nan : sign * std::numeric_limits<float>::infinity();
  }
  const int leading = exponent == 0 ? 0 : 1 << layout.mantissa_bits;
  return sign * std::ldexp(static_cast<float>(leading + mantissa),
                           std::max(exponent, 1) - layout.bias - layout.mantissa_bits);
}

Float8Layout LayoutOf(DataType dtype) {
  switch (dtype) {
    case DT_FLOAT8_E4M3FN:
      return {3, 7, true, false};
    case DT_FLOAT8_E4M3FNUZ:
      return {3, 8, true, true};
    case DT_FLOAT8_E4M3B11FNUZ:
      return {3, 11, true, true};
    case DT_FLOAT8_E5M2FNUZ:
      return {2, 16, true, true};
    default:
      return {2, 15, false, false};
  }
}

using Format = std::function<std::string(int64_t)>;

// Formats element i of the tensor, aligned with the others at the indices `shown`.
template <class T>
Format RealFormat(const Tensor& t, const std::vector<int64_t>& shown, FloatType type) {
  const T* data = t.data<T>();
  if (t.rank() == 0) {
    return
        [data, type](int64_t i) { return ScalarFloat(static_cast<double>(data[i]), type, false); };
  }
  std::vector<double> values;
  for (const int64_t i : shown) values.push_back(static_cast<double>(data[i]));
  return [data, format = FloatFormat(values, type, false)](int64_t i) {
    return format(static_cast<double>(data[i]));
  };
}

template <class T>
Format ComplexFormat(const Tensor& t, const std::vector<int64_t>& shown, FloatType type) {
  const std::complex<T>* data = t.data<std::complex<T>>();
  if (t.rank() == 0) {
    return [data, type](int64_t i) { return ScalarComplex(data[i].real(), data[i].imag(), type); };
  }
  std::vector<double> re, im;
  for (const int64_t i : shown) {
    re.push_back(data[i].real());
    im.push_back(data[i].imag());
  }
  return
      [data, real = FloatFormat(re, type, false), imag = FloatFormat(im, type, true)](int64_t i) {
        std::string imaginary = imag(data[i].imag());
        imaginary.insert(imaginary.find_last_not_of(' ') + 1, "j");
        return real(data[i].real()) + imaginary;
      };
}

// Right-aligns the integers of one array.
Format Aligned(const std::vector<int64_t>& shown, Format unaligned) {
  size_t width = 0;
  for (const int64_t i : shown) width = std::max(width, unaligned(i).size());
  return [width, unaligned](int64_t i) { return PadLeft(unaligned(i), static_cast<int>(width)); };
}

template <class T>
Format IntegerFormat(const Tensor& t) {
  const T* data = t.data<T>();
  return [data](int64_t i) { return absl::StrCat(data[i]); };
}

template <class T>
Format StorageOnlyFormat(const Tensor& t) {
  const T* data = t.data<T>();
  return [data](int64_t i) { return absl::StrCat(static_cast<int>(data[i].value)); };
}

Format ObjectFormat(const Tensor& t) {
  if (t.dtype() == DT_STRING) {
    return [data = t.data<std::string>()](int64_t i) { return BytesLiteral(data[i]); };
  }
  if (t.dtype() == DT_RESOURCE) {
    return [data = t.data<ResourceHandle>()](int64_t i) {
      return absl::StrCat("<Resource ", data[i].container, "/", data[i].name, ">");
    };
  }
  return [data = t.data<Variant>()](int64_t i) {
    return absl::StrCat("<Variant ", data[i].type_name, ">");
  };
}

Format FormatFor(const Tensor& t, const std::vector<int64_t>& shown) {
  Format format;
  const auto integer = [&]<class T>() { format = Aligned(shown, IntegerFormat<T>(t)); };
  if (DispatchType(t.dtype(), Integers{}, integer)) return format;
  const auto quantized = [&]<class T>() { format = Aligned(shown, StorageOnlyFormat<T>(t)); };
  if (DispatchType(t.dtype(), List<qint8, quint8, qint16, quint16, qint32>{}, quantized)) {
    return format;
  }
  switch (t.dtype()) {
    case DT_HALF:
      return RealFormat<half>(t, shown, FloatType::kHalf);
    case DT_FLOAT:
      return RealFormat<float>(t, shown, FloatType::kFloat);
    case DT_DOUBLE:
      return RealFormat<double>(t, shown, FloatType::kDouble);
    case DT_COMPLEX64:
      return ComplexFormat<float>(t, shown, FloatType::kFloat);
    case DT_COMPLEX128:
      return ComplexFormat<double>(t, shown, FloatType::kDouble);
    case DT_BOOL: {
      const absl::string_view yes = t.rank() == 0 ? "True" : " True";
      return
          [data = t.data<bool>(), yes](int64_t i) { return std::string(data[i] ? yes : "False"); };
    }
    // Types that NumPy gets from an extension are formatted one by one, without alignment.
    case DT_BFLOAT16:
      return [data = t.data<bfloat16>()](int64_t i) {
        return absl::StrFormat("%g", static_cast<float>(data[i]));
      };
    // Only the low half of the byte is significant.
    case DT_INT4:
      return [data = t.data<int4>()](int64_t i) {
        return absl::StrCat(((data[i].value & 15) ^ 8) - 8);
      };
    case DT_UINT4:
      return [data = t.data<uint4>()](int64_t i) { return absl::StrCat(data[i].value & 15); };
    case DT_STRING:
    case DT_RESOURCE:
    case DT_VARIANT:
      return ObjectFormat(t);
    default:
      return [data = static_cast<const uint8_t*>(t.raw()), layout = LayoutOf(t.dtype())](
                 int64_t i) { return absl::StrFormat("%g", Float8Value(data[i], layout)); };
  }
}

// Visits the elements that are shown; writes brackets, line breaks and dots.
class ArrayPrinter {
 public:
  ArrayPrinter(const Tensor& t, bool summarize) : t_(t), summarize_(summarize) {
    strides_.assign(t.rank(), 1);
    for (int i = t.rank() - 2; i >= 0; --i) strides_[i] = strides_[i + 1] * t.dim(i + 1);
    Collect(0, 0);
    format_ = FormatFor(t, shown_);
  }

  std::string Print() const { return Print(0, 0, 1, kLineWidth); }

 private:
  bool Abridged(int axis) const { return summarize_ && t_.dim(axis) > 2 * kEdgeItems; }

  // Calls f(i) for the indices shown along an axis, and gap() for the elided ones.
  template <class F, class Gap>
  void ForEachShown(int axis, F f, Gap gap) const {
    const int64_t n = t_.dim(axis);
    for (int64_t i = 0; i < n; ++i) {
      if (Abridged(axis) && i == kEdgeItems) {
        gap();
        i = n - kEdgeItems;
      }
      f(i);
    }
  }

  void Collect(int axis, int64_t offset) {
    if (axis == t_.rank()) {
      shown_.push_back(offset);
      return;
    }
    ForEachShown(
        axis, [&](int64_t i) { Collect(axis + 1, offset + i * strides_[axis]); }, [] {});
  }

  std::string Print(int axis, int64_t offset, int indent, int width) const {
    if (axis == t_.rank()) return format_(offset);
    const std::string out = axis == t_.rank() - 1 ? PrintRow(axis, offset, indent, width)
                                                  : PrintRows(axis, offset, indent, width);
    return absl::StrCat("[", out.substr(indent), "]");
  }

  // Formats the last axis: elements side by side, wrapped at the line width.
  std::string PrintRow(int axis, int64_t offset, int indent, int width) const {
    const std::string margin(indent, ' ');
    std::string done, line = margin;
    const auto add = [&](absl::string_view word) {
      const bool fresh = line.size() <= margin.size();
      if (!fresh) line += ' ';
      if (!fresh && static_cast<int>(line.size() + word.size()) > width - 1) {
        line.erase(line.find_last_not_of(' ') + 1);
        absl::StrAppend(&done, line, "\n");
        line = margin;
      }
      absl::StrAppend(&line, word);
    };
    ForEachShown(
        axis, [&](int64_t i) { add(format_(offset + i)); }, [&] { add("..."); });
    return done + line;
  }

  std::string PrintRows(int axis, int64_t offset, int indent, int width) const {
    const std::string margin(indent, ' '), separator(t_.rank() - axis - 1, '\n');
    std::string out;
    const auto add = [&](absl::string_view text) {
      if (!out.empty()) out += separator;
      absl::StrAppend(&out, margin, text);
    };
    ForEachShown(
        axis,
        [&](int64_t i) {
          add(Print(axis + 1, offset + i * strides_[axis], indent + 1, width - 1));
        },
        [&] { add("..."); });
    return out;
  }

  const Tensor& t_;
  bool summarize_;
  std::vector<int64_t> strides_;
  std::vector<int64_t> shown_;
  Format format_;
};

}  // namespace

std::string Tensor::ToString(int64_t max_elements) const {
  if (!initialized()) return "<uninitialized tensor>";
  if (!host_accessible()) return absl::StrCat("<", Description(), " in device memory>");
  if (num_elements_ == 0) return "[]";
  return ArrayPrinter(*this, num_elements_ > max_elements).Print();
}

}  // namespace weir
