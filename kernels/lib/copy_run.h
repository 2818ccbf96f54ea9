#ifndef WEIR_KERNELS_LIB_COPY_RUN_H_
#define WEIR_KERNELS_LIB_COPY_RUN_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace weir {

namespace internal {
void CopyVectors(const void* from, void* to, size_t bytes);
}  // namespace internal

// std::memcpy for runs of any length, in particular for many of them. The C library copies long
// runs by an instruction of the processor (rep movsb), which is five times slower than vectors if
// the destination is less than a cache line behind the source, up to a multiple of the page size:
// the processor then takes its loads for those of bytes that are about to be stored.
inline void CopyRun(const void* from, void* to, size_t bytes) {
  constexpr size_t kLong = 1024;
  constexpr uintptr_t kLine = 64, kPage = 4096;
  const uintptr_t behind =
      (reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from)) % kPage;
  if (bytes >= kLong && behind != 0 && behind < kLine)
    return internal::CopyVectors(from, to, bytes);
  std::memcpy(to, from, bytes);
}

}  // namespace weir

#endif  // WEIR_KERNELS_LIB_COPY_RUN_H_
