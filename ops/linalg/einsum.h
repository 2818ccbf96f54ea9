#ifndef WEIR_OPS_LINALG_EINSUM_H_
#define WEIR_OPS_LINALG_EINSUM_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "weir/core/tensor/api.h"
#include "weir/core/tensor/shape.h"

// The equation of an Einsum, used by its shape function, its gradient and its kernel.
namespace WEIR_API weir {

// A subscript "ab...c": labels with at most one ellipsis.
struct EinsumSubscript {
  std::string before, after;  // the ellipsis; without one, all labels are in `before`
  bool ellipsis = false;      // whether there is one
  // As in the equation: "ab...c".
  std::string ToString() const { return before + (ellipsis ? "..." : "") + after; }
};

// A parsed equation.
struct EinsumEquation {
  std::vector<EinsumSubscript> inputs;  // one or two
  EinsumSubscript output;               // of the result
  std::string text;                     // as given

  // Returns INVALID_ARGUMENT if the equation is malformed or has a different number of inputs.
  static absl::StatusOr<EinsumEquation> Parse(absl::string_view equation, int num_inputs);
};

// The label of every dimension, and the size of every label's dimension. A named label is its
// character. The dimensions of ellipses are right-aligned, as in any broadcast, and have labels of
// their own: kEllipsis is the last one, kEllipsis + 1 the one before it.
struct EinsumLabels {
  static constexpr int kEllipsis = 256;       // the label of an ellipsis' last dimension
  std::vector<std::vector<int>> inputs;       // a label for each dimension of each argument
  std::vector<int> output;                    // a label for each dimension
  absl::flat_hash_map<int, int64_t> extents;  // -1 if unknown
  // The shape of the result; -1 for unknown extents.
  Shape OutputShape() const;

  // Returns INVALID_ARGUMENT if the shapes do not match the equation or each other. All shapes must
  // have a known rank.
  static absl::StatusOr<EinsumLabels> Match(const EinsumEquation& equation,
                                            absl::Span<const Shape> shapes);
};

}  // namespace weir

#endif  // WEIR_OPS_LINALG_EINSUM_H_
