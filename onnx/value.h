#ifndef WEIR_ONNX_VALUE_H_
#define WEIR_ONNX_VALUE_H_

#include <memory>
#include <vector>

#include "weir/core/graph/output.h"

namespace weir::onnx {

struct Value;
// The elements of a sequence. Their number is known while the graph is built.
struct Sequence {
  DataType dtype = DT_INVALID;  // of the elements
  std::vector<Value> elements;
};

// What a name of an ONNX graph stands for: a tensor, a sequence, or an optional that is empty. An
// optional with an element is that element. Cheap to copy.
struct Value {
  Value() = default;
  Value(const Output& tensor) : tensor(tensor) {}
  Value(Sequence elements) : sequence(std::make_shared<const Sequence>(std::move(elements))) {}
  bool is_tensor() const { return tensor.valid(); }
  bool is_sequence() const { return sequence != nullptr; }

  Output tensor;                             // invalid for the others
  std::shared_ptr<const Sequence> sequence;  // null for the others
  bool is_empty_optional = false;
};
using Values = std::vector<Value>;

}  // namespace weir::onnx

#endif  // WEIR_ONNX_VALUE_H_
