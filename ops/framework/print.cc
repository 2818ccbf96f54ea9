#include "weir/ops/framework/print.h"

#include <ostream>

namespace weir {

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  return out << tensor.ToString();
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.ToString(); }

std::ostream& operator<<(std::ostream& out, DataType dtype) { return out << DataTypeName(dtype); }

std::ostream& operator<<(std::ostream& out, const Output& output) {
  if (output.node == nullptr) return out << "Tensor(invalid)";
  return out << "Tensor(\"" << output.name() << "\", shape=" << output.shape()
             << ", dtype=" << output.dtype() << ")";
}

std::ostream& operator<<(std::ostream& out, const Variable& variable) {
  return out << variable.ToString();
}

}  // namespace weir
