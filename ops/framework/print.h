#ifndef WEIR_OPS_FRAMEWORK_PRINT_H_
#define WEIR_OPS_FRAMEWORK_PRINT_H_

#include <iosfwd>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/api.h"
#include "weir/ops/framework/variable.h"

// std::ostream output of tensors, shapes, types, outputs and variables, for debugging. Tensors,
// shapes and types are printed as in error messages; variables as in TensorFlow's guide:
// "<tf.Variable 'w:0' shape=(2,) dtype=float32>".
namespace WEIR_API weir {

std::ostream& operator<<(std::ostream& out, const Tensor& tensor);  // its values
std::ostream& operator<<(std::ostream& out, const Shape& shape);    // [2,3]
std::ostream& operator<<(std::ostream& out, DataType dtype);        // float
std::ostream& operator<<(std::ostream& out,
                         const Output& output);  // the node's output, not a value
// The variable's name, shape and dtype, not a value.
std::ostream& operator<<(std::ostream& out, const Variable& variable);

}  // namespace weir

#endif  // WEIR_OPS_FRAMEWORK_PRINT_H_
