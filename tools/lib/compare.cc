#include "weir/tools/lib/compare.h"

#include <algorithm>
#include <cmath>
#include <complex>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "weir/tools/lib/value_file.h"

namespace weir::tools {

namespace {

using Complex = std::complex<double>;

bool IsNaN(const Complex& z) { return std::isnan(z.real()) || std::isnan(z.imag()); }
bool IsFinite(const Complex& z) { return std::isfinite(z.real()) && std::isfinite(z.imag()); }

bool IsClose(const Complex& got, const Complex& want, const Tolerance& tolerance) {
  if (got == want || (IsNaN(got) && IsNaN(want))) return true;
  if (!IsFinite(got) || !IsFinite(want)) return false;
  return std::abs(got - want) <= tolerance.atol + tolerance.rtol * std::abs(want);
}

template <class T>
Complex Widened(const T& x) {
  if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, Complex>) {
    return Complex(x.real(), x.imag());
  } else {
    return Complex(static_cast<double>(x), 0);
  }
}

std::string Shown(const Complex& z) {
  return z.imag() == 0 ? absl::StrFormat("%.9g", z.real())
                       : absl::StrFormat("%.9g%+.9gj", z.real(), z.imag());
}
std::string Shown(const std::string& text) {
  return absl::StrCat("'", absl::CEscape(text.substr(0, 80)), "'");
}

// Returns "[1,2]" for element 5 of a [2,3] tensor.
std::string IndexOf(int64_t element, const Shape& shape) {
  std::vector<int64_t> index(shape.rank());
  for (int i = shape.rank() - 1; i >= 0; --i) {
    index[i] = element % shape.dim(i);
    element /= shape.dim(i);
  }
  return absl::StrCat("[", absl::StrJoin(index, ","), "]");
}

// Counts the elements that differ and records the first one.
class Mismatches {
 public:
  explicit Mismatches(const Shape& shape) : shape_(shape) {}

  template <class T>
  void Add(int64_t element, const T& got, const T& want) {
    if (count_++ > 0) return;
    first_ = absl::StrCat(IndexOf(element, shape_), " is ", Shown(got), ", recorded ", Shown(want));
  }
  void Measure(double difference) {
    if (std::isfinite(difference)) greatest_ = std::max(greatest_, difference);
  }
  std::string Text() const {
    if (count_ == 0) return "";
    std::string text =
        absl::StrCat(count_, " of ", shape_.num_elements(), " elements differ: ", first_);
    if (greatest_ > 0)
      absl::StrAppend(&text, absl::StrFormat(", greatest difference %.3g", greatest_));
    return text;
  }

 private:
  const Shape shape_;
  int64_t count_ = 0;
  double greatest_ = 0;
  std::string first_;
};

template <class T>
std::string CompareNumbers(const Tensor& got, const Tensor& want, const Tolerance& tolerance) {
  Mismatches mismatches(want.shape());
  const T *a = got.data<T>(), *b = want.data<T>();
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    if constexpr (std::is_integral_v<T>) {
      if (a[i] == b[i]) continue;
    } else {
      if (IsClose(Widened(a[i]), Widened(b[i]), tolerance)) continue;
    }
    mismatches.Add(i, Widened(a[i]), Widened(b[i]));
    mismatches.Measure(std::abs(Widened(a[i]) - Widened(b[i])));
  }
  return mismatches.Text();
}

// TensorFlow's Python returns a scalar string as NumPy's `bytes_`, which drops trailing zero bytes:
// a recorded string may lack zero bytes at its end (the summary of a histogram ends with such
// bytes).
bool LacksOnlyZeros(absl::string_view recorded, absl::string_view got) {
  return absl::ConsumePrefix(&got, recorded) && (recorded.empty() || recorded.back() != '\0') &&
         got.find_first_not_of('\0') == absl::string_view::npos;
}

std::string CompareStrings(const Tensor& got, const Tensor& want) {
  Mismatches mismatches(want.shape());
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    const std::string &a = got.data<std::string>()[i], &b = want.data<std::string>()[i];
    if (a != b && !(want.rank() == 0 && LacksOnlyZeros(b, a))) mismatches.Add(i, a, b);
  }
  return mismatches.Text();
}

Tolerance AtLeast(Tolerance tolerance, double least) {
  return {std::max(tolerance.rtol, least), std::max(tolerance.atol, least)};
}

}  // namespace

std::string CompareTensors(const Tensor& got, const Tensor& recorded, const Tolerance& tolerance) {
  const Tensor want = AsCarrier(recorded, got.dtype());
  if (got.dtype() != want.dtype() || got.shape() != want.shape()) {
    return absl::StrCat("got ", got.Description(), ", recorded ", recorded.Description());
  }
  if (want.dtype() == DT_STRING) return CompareStrings(got, want);
  if (got.dtype() == DT_HALF) return CompareNumbers<half>(got, want, AtLeast(tolerance, 2e-3));
  if (got.dtype() == DT_BFLOAT16) {
    return CompareNumbers<bfloat16>(got, want, AtLeast(tolerance, 1.6e-2));
  }
  std::string why;
  const bool known =
      DispatchType(got.dtype(),
                   List<float, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t,
                        uint32_t, uint64_t, bool, std::complex<float>, Complex>{},
                   [&]<class T>() { why = CompareNumbers<T>(got, want, tolerance); });
  if (!known && !IdenticalTensors(got, want))
    return absl::StrCat("elements differ in ", got.Description());
  return why;
}

}  // namespace weir::tools
