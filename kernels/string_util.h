#ifndef WEIR_KERNELS_STRING_UTIL_H_
#define WEIR_KERNELS_STRING_UTIL_H_

#include <string>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "weir/core/kernel.h"

// What the kernels for strings share.
namespace weir {

// The parts of AddStringKernels, a source file each.
void AddStringJoinKernels(KernelRegistry* r);    // string_join.cc
void AddStringSplitKernels(KernelRegistry* r);   // string_split.cc
void AddStringFormatKernels(KernelRegistry* r);  // string_format.cc

// Output 0 has the shape of input 0, and its element k is fn(element k of input 0): a T, or a
// StatusOr<T>.
template <class T, class F>
absl::Status MapStrings(KernelContext& c, F fn) {
  const Tensor& in = c.input(0);
  WEIR_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, in.shape()));
  const std::string* const from = in.data<std::string>();
  T* const to = out->data<T>();
  for (int64_t k = 0; k < in.num_elements(); ++k) {
    ThrowIfCancelledAt(k);
    if constexpr (std::is_same_v<decltype(fn(from[k])), absl::StatusOr<T>>) {
      WEIR_ASSIGN_OR_RETURN(to[k], fn(from[k]));
    } else {
      to[k] = fn(from[k]);
    }
  }
  return absl::OkStatus();
}

// The whole of `text` as a number, with white space around it and a sign if there are any. Real
// numbers may be hexadecimal, infinite or NaN; one too big for the type becomes infinite. False if
// it is no number or, for integers, does not fit. For float, double, and integers of 32 and 64
// bits.
template <class T>
bool ParseNumber(absl::string_view text, T* value);

// True for a byte that continues a character in UTF-8.
inline bool IsTrailByte(char c) { return (static_cast<uint8_t>(c) & 0xC0) == 0x80; }

// The attribute "unit": true if it is characters in UTF-8, false if bytes.
inline bool CountsCharacters(const KernelInit& init) {
  return init.attr<std::string>("unit") == "UTF8_CHAR";
}

}  // namespace weir

#endif  // WEIR_KERNELS_STRING_UTIL_H_
