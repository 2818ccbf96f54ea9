#ifndef WEIR_KERNELS_LIB_INTEGER_BITS_H_
#define WEIR_KERNELS_LIB_INTEGER_BITS_H_

#include <bit>
#include <cstdint>
#include <tuple>
#include <type_traits>

namespace weir {

// The unsigned integer of this many bytes: 1, 2, 4 or 8.
template <size_t kBytes>
using UnsignedOf = std::tuple_element_t<std::bit_width(kBytes) - 1,
                                        std::tuple<uint8_t, uint16_t, uint32_t, uint64_t>>;

namespace internal {
template <class T, bool is_integral>
struct IntegerBitsOf {
  using Type = T;
};
template <class T>
struct IntegerBitsOf<T, true> {
  using Type = UnsignedOf<sizeof(T)>;
};
}  // namespace internal

// For code that all integers (and bool) of one width can share: their bits. Any other type is
// itself.
template <class T>
using IntegerBits = typename internal::IntegerBitsOf<T, std::is_integral_v<T>>::Type;

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_INTEGER_BITS_H_
