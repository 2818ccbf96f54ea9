#ifndef WEIR_KERNELS_LIB_HIGHWAY_TARGETS_H_
#define WEIR_KERNELS_LIB_HIGHWAY_TARGETS_H_

// Selects the instruction sets that vector code is compiled for: AVX2, AVX-512, and a portable
// baseline. Include it before hwy/foreach_target.h. The sets in between are disabled, as each costs
// as much compile time as the others.
#if defined(__x86_64__) && !defined(HWY_DISABLED_TARGETS)
#include "hwy/detect_compiler_arch.h"
#define HWY_DISABLED_TARGETS ((1LL << 7) | (1LL << 11) | (1LL << 12))  // AVX3_DL, SSE4, SSSE3
#endif

#endif  // WEIR_KERNELS_LIB_HIGHWAY_TARGETS_H_
