#ifndef WEIR_OPS_PRINT_H_
#define WEIR_OPS_PRINT_H_

#include <iosfwd>

#include "weir/core/graph.h"
#include "weir/ops/variable.h"

// std::cout << v, of what programs print while they are written. Tensors, shapes and types have the
// form that they have in errors, variables the guide's: "<tf.Variable 'w:0' shape=(2,)
// dtype=float32>".
namespace weir {

std::ostream& operator<<(std::ostream& out, const Tensor& tensor);  // its values
std::ostream& operator<<(std::ostream& out, const Shape& shape);    // [2,3]
std::ostream& operator<<(std::ostream& out, DataType dtype);        // float
std::ostream& operator<<(std::ostream& out, const Output& output);  // what gives it, not a value
std::ostream& operator<<(std::ostream& out, const Variable& variable);

}  // namespace weir

#endif  // WEIR_OPS_PRINT_H_
