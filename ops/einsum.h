#ifndef WEIR_OPS_EINSUM_H_
#define WEIR_OPS_EINSUM_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "weir/core/shape.h"

// The equation of an Einsum, for its shape rule, its gradient and its kernel.
namespace weir {

// "ab...c": labels, at most one ellipsis among them.
struct EinsumSubscript {
  std::string before, after;  // of the ellipsis; without one, all is in `before`
  bool ellipsis = false;
  std::string ToString() const { return before + (ellipsis ? "..." : "") + after; }
};

struct EinsumEquation {
  std::vector<EinsumSubscript> inputs;  // one or two
  EinsumSubscript output;
  std::string text;

  // INVALID_ARGUMENT for a malformed equation, or one for another number of inputs.
  static absl::StatusOr<EinsumEquation> Parse(absl::string_view equation, int num_inputs);
};

// The label of every dimension, and the extent of every label. Named labels are their characters;
// the dimensions of ellipses are aligned at their ends, as in any broadcast, and have labels of
// their own: kEllipsis is the last one, kEllipsis + 1 the one before it.
struct EinsumLabels {
  static constexpr int kEllipsis = 256;
  std::vector<std::vector<int>> inputs;
  std::vector<int> output;
  absl::flat_hash_map<int, int64_t> extents;  // -1 if not known
  Shape OutputShape() const;

  // INVALID_ARGUMENT for shapes that do not fit the equation or each other. All have a rank.
  static absl::StatusOr<EinsumLabels> Match(const EinsumEquation& equation,
                                            absl::Span<const Shape> shapes);
};

}  // namespace weir

#endif  // WEIR_OPS_EINSUM_H_
