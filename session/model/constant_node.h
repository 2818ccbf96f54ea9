#ifndef WEIR_SESSION_MODEL_CONSTANT_NODE_H_
#define WEIR_SESSION_MODEL_CONSTANT_NODE_H_

#include "weir/core/tensor/tensor.h"

namespace weir::proto {
class NodeDef;
}

namespace weir {

// Replaces the node by a Const of this value, which keeps its name, its device and its control
// inputs.
void ReplaceByConst(const Tensor& value, proto::NodeDef* node);

}  // namespace weir

#endif  // WEIR_SESSION_MODEL_CONSTANT_NODE_H_
