#ifndef WEIR_KERNELS_CTC_DECODE_H_
#define WEIR_KERNELS_CTC_DECODE_H_

#include "weir/core/kernel.h"

namespace weir {

void AddCtcDecoders(KernelRegistry* r);  // ctc_decode.cc

}  // namespace weir

#endif  // WEIR_KERNELS_CTC_DECODE_H_
