#ifndef WEIR_KERNELS_LIB_STRING_UTIL_H_
#define WEIR_KERNELS_LIB_STRING_UTIL_H_

#include <string>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "weir/core/runtime/kernel.h"

// Shared code of the kernels for strings.
namespace weir {

// The parts of AddStringKernels, one source file each.
void AddStringJoinKernels(KernelRegistry* r);    // string_join.cc
void AddStringSplitKernels(KernelRegistry* r);   // string_split.cc
void AddStringFormatKernels(KernelRegistry* r);  // string_format.cc

// Computes output 0, which has the shape of input 0: element k is fn(element k of input 0), a T or
// a StatusOr<T>.
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

// Parses all of `text` as a number, with optional white space around it and an optional sign. Real
// numbers may be hexadecimal, infinite or NaN; a number that is too large for the type becomes
// infinite. Returns false if the text is not a number or, for integers, does not fit. For float,
// double, and integers of 32 and 64 bits.
template <class T>
bool ParseNumber(absl::string_view text, T* value);

// Returns true for a UTF-8 continuation byte.
inline bool IsTrailByte(char c) { return (static_cast<uint8_t>(c) & 0xC0) == 0x80; }

// Reads the attribute "unit": true for UTF-8 characters, false for bytes.
inline bool CountsCharacters(const KernelInit& init) {
  return init.attr<std::string>("unit") == "UTF8_CHAR";
}

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_STRING_UTIL_H_
