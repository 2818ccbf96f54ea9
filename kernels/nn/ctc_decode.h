#ifndef WEIR_KERNELS_NN_CTC_DECODE_H_
#define WEIR_KERNELS_NN_CTC_DECODE_H_

#include "weir/core/runtime/kernel.h"

namespace weir {

void AddCtcDecoders(KernelRegistry* r);  // ctc_decode.cc

}  // namespace weir

#endif  // WEIR_KERNELS_NN_CTC_DECODE_H_
