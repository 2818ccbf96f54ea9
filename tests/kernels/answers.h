#ifndef WEIR_TESTS_KERNELS_ANSWERS_H_
#define WEIR_TESTS_KERNELS_ANSWERS_H_

#include <string>
#include <vector>

#include "weir/core/graph.h"
#include "weir/core/tensor.h"

// What TensorFlow answered, from the files in golden/.
namespace weir {

struct Answer {
  std::string op;
  int line = 0;
  Attrs attrs;
  Tensors inputs, outputs;
};

// The answers of a file: a line "op NAME", then lines "attr NAME VALUES", "in TENSOR", "out
// TENSOR", where a tensor is "float32 2,3 1 2 3 4 5 6", "quint8 - 7" (a scalar) or "string
// 89504e47".
std::vector<Answer> ReadAnswers(const std::string& path);

// The plain integer type that a quantized one is stored as; other types themselves.
DataType StoredAs(DataType type);

}  // namespace weir

#endif  // WEIR_TESTS_KERNELS_ANSWERS_H_
