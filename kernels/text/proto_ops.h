#ifndef WEIR_KERNELS_TEXT_PROTO_OPS_H_
#define WEIR_KERNELS_TEXT_PROTO_OPS_H_

#include "weir/core/runtime/kernel.h"

namespace weir {

// The parts of AddStringKernels that read and write serialized messages.
void AddDecodeProtoKernels(KernelRegistry* r);  // decode_proto.cc
void AddEncodeProtoKernels(KernelRegistry* r);  // encode_proto.cc

}  // namespace weir

#endif  // WEIR_KERNELS_TEXT_PROTO_OPS_H_
