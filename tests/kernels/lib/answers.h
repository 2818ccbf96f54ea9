#ifndef WEIR_TESTS_KERNELS_LIB_ANSWERS_H_
#define WEIR_TESTS_KERNELS_LIB_ANSWERS_H_

#include <string>
#include <vector>

#include "weir/core/graph/graph.h"
#include "weir/core/tensor/tensor.h"

// Results computed by TensorFlow, from the files in golden/.
namespace weir {

struct Answer {
  std::string op;
  int line = 0;
  Attrs attrs;
  Tensors inputs, outputs;
};

// Reads the results in a file: a line "op NAME", followed by lines "attr NAME VALUES", "in TENSOR",
// "out TENSOR", where a tensor is "float32 2,3 1 2 3 4 5 6", "quint8 - 7" (a scalar), "complex64 1
// 2 -3" (two numbers for each element), "string 89504e47" or "strings 2 61 -".
std::vector<Answer> ReadAnswers(const std::string& path);

// Runs each op of the file and expects these results, of which there are some: floating-point
// numbers with this error relative to max(1, |expected|), all others exactly.
void ExpectAnswers(const std::string& path, size_t at_least, double tolerance);

// Returns the plain integer type as which a quantized type is stored, and other types unchanged.
DataType StoredAs(DataType type);

}  // namespace weir

#endif  // WEIR_TESTS_KERNELS_LIB_ANSWERS_H_
