#include "weir/kernels/summarize.h"

#include <charconv>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "weir/core/resource_handle.h"
#include "weir/core/variant.h"

namespace weir {

namespace {

// The shortest digits that read back as the same number, in the style of %g.
template <class T>
std::string ShortestNumber(T v) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof(text), v).ptr;
  return std::string(text, end);
}

template <class T>
std::string ElementText(const T& v) {
  if constexpr (std::is_same_v<T, bool>) {
    return v ? "1" : "0";
  } else if constexpr (std::is_same_v<T, std::string>) {
    return absl::CEscape(v);
  } else if constexpr (std::is_integral_v<T>) {
    return absl::StrCat(static_cast<int64_t>(v));
  } else if constexpr (std::is_same_v<T, std::complex<float>> ||
                       std::is_same_v<T, std::complex<double>>) {
    return absl::StrCat("(", ShortestNumber(v.real()), ",", ShortestNumber(v.imag()), ")");
  } else if constexpr (std::is_same_v<T, ResourceHandle>) {
    return absl::StrCat("<resource ", v.name, ">");
  } else if constexpr (std::is_same_v<T, Variant>) {
    return absl::StrCat("<variant ", v.type_name, ">");
  } else if constexpr (std::is_same_v<T, double>) {
    return ShortestNumber(v);
  } else {
    return ShortestNumber(static_cast<float>(v));
  }
}

template <class T>
class Writer {
 public:
  Writer(const Tensor& t, int64_t limit) : t_(t), limit_(limit) {}

  std::string Run() {
    if (t_.rank() == 0) {
      out_ = ElementText(t_.data<T>()[0]);
    } else {
      Dim(0);
      if (t_.num_elements() > limit_) out_ += "...";
    }
    return std::move(out_);
  }

 private:
  void Dim(int d) {
    const bool last = d == t_.rank() - 1;
    for (int64_t i = 0; i < t_.dim(d); ++i) {
      if (next_ >= limit_) {
        if (last && d != 0) out_ += "...";
        return;
      }
      if (last) {
        absl::StrAppend(&out_, i > 0 ? " " : "", ElementText(t_.data<T>()[next_++]));
      } else {
        out_ += "[";
        Dim(d + 1);
        out_ += "]";
      }
    }
  }

  const Tensor& t_;
  const int64_t limit_;
  int64_t next_ = 0;
  std::string out_;
};

using Printable = List<half, bfloat16, float, double, int8_t, int16_t, int32_t, int64_t, uint8_t,
                       uint16_t, uint32_t, uint64_t, std::complex<float>, std::complex<double>,
                       bool, std::string, ResourceHandle, Variant>;

}  // namespace

std::string Summarize(const Tensor& t, int64_t limit) {
  const int64_t shown = limit < 0 ? t.num_elements() : std::min(limit, t.num_elements());
  if (t.num_elements() == 0) return "";
  std::string out;
  if (!DispatchType(t.dtype(), Printable{}, [&]<class T>() { out = Writer<T>(t, shown).Run(); })) {
    out = t.Description();
  }
  return out;
}

}  // namespace weir
