#include "weir/kernels/lib/summarize.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "weir/core/tensor/resource_handle.h"
#include "weir/core/tensor/variant.h"
#include "weir/kernels/lib/string_util.h"

namespace weir {

namespace {

// Uses the number of digits that are always correct, or, if those do not identify the number, as
// many digits as do.
template <class T>
std::string RealText(T v) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*g", std::numeric_limits<T>::digits10, v);
  T read;
  if (!ParseNumber(text, &read) || (read != v && !std::isnan(v))) {
    std::snprintf(text, sizeof(text), "%.*g", std::numeric_limits<T>::max_digits10, v);
  }
  return text;
}

template <class T>
std::string ElementText(const T& v) {
  if constexpr (std::is_same_v<T, bool>) {
    return v ? "1" : "0";
  } else if constexpr (std::is_same_v<T, std::string>) {
    return absl::Utf8SafeCEscape(v);
  } else if constexpr (std::is_integral_v<T>) {
    return absl::StrCat(+v);
  } else if constexpr (std::is_same_v<T, std::complex<float>> ||
                       std::is_same_v<T, std::complex<double>>) {
    return absl::StrCat("(", RealText(v.real()), ",", RealText(v.imag()), ")");
  } else if constexpr (std::is_same_v<T, ResourceHandle>) {
    return absl::StrCat("<resource ", v.name, ">");
  } else if constexpr (std::is_same_v<T, Variant>) {
    return absl::StrCat("<variant ", v.type_name, ">");
  } else if constexpr (std::is_same_v<T, double>) {
    return RealText(v);
  } else {
    return RealText(static_cast<float>(v));
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

// Writes the separator between elements of dimension d: a space in the last one, otherwise as many
// line breaks as there are inner dimensions and the indentation of the open brackets.
void AppendGap(int d, int rank, std::string* out) {
  if (d < rank - 1) out->append(static_cast<size_t>(rank - d - 1), '\n');
  out->append(d < rank - 1 ? static_cast<size_t>(d) + 1 : 1, ' ');
}

// Writes the sub-tensor at dimension d whose first element is number `begin`.
template <class T>
void AppendEdges(const Tensor& t, int d, int64_t begin, int64_t edge, std::string* out) {
  if (d == t.rank()) {
    const std::string text = ElementText(t.data<T>()[begin]);
    absl::StrAppend(out, std::is_same_v<T, std::string> ? "\"" + text + "\"" : text);
    return;
  }
  const int64_t extent = t.dim(d), step = t.shape().Sub(d + 1).num_elements();
  const bool cut = extent > edge && extent - edge > edge;
  *out += "[";
  for (int64_t i = 0; i < extent; ++i) {
    if (i > 0 || edge == 0) AppendGap(d, t.rank(), out);
    if (cut && i == edge) {
      *out += "...";
      i = extent - edge - 1;
    } else {
      AppendEdges<T>(t, d + 1, begin + i * step, edge, out);
    }
  }
  *out += "]";
}

using Printable = JoinLists<Numbers, List<bool, std::string, ResourceHandle, Variant>>;

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

std::string SummarizeEdges(const Tensor& t, int64_t edge) {
  if (edge < 0 || edge > t.num_elements()) edge = t.num_elements();
  if (t.rank() == 0 && edge == 0) return "...";
  std::string out;
  if (!DispatchType(t.dtype(), Printable{},
                    [&]<class T>() { AppendEdges<T>(t, 0, 0, edge, &out); })) {
    out = t.Description();
  }
  return out;
}

}  // namespace weir
