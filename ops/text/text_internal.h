#ifndef WEIR_OPS_TEXT_TEXT_INTERNAL_H_
#define WEIR_OPS_TEXT_TEXT_INTERNAL_H_

#include "weir/core/graph/op.h"

namespace weir {

// The part of AddStringOps with serialized messages.
void AddProtoFieldOps(OpRegistry* ops);  // proto_fields.cc

}  // namespace weir

#endif  // WEIR_OPS_TEXT_TEXT_INTERNAL_H_
