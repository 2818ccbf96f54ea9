#ifndef WEIR_SESSION_ELEMENTWISE_NODES_H_
#define WEIR_SESSION_ELEMENTWISE_NODES_H_

#include <optional>
#include <string>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "weir/kernels/fused_elementwise.h"
#include "weir/session/fusion.h"

namespace weir {

// A Cast or Select by a comparison of x and y, which computes the comparison as well.
struct Masked {
  int comparison;  // the node
  PlanValue x, y;
  bool is_cast;
  // Of a Select: what it takes, and where the comparison is false. None: zero.
  std::optional<PlanValue> chosen = {}, other = {};
  IndexList spared = {};  // nodes whose values are not taken: zeros, as tensors
};

// Which nodes of a plan can be steps of a _FusedElementwise, or the reduction of a _FusedReduction,
// and what they take there: values of one type, of known shapes (fuse_elementwise.cc).
class ElementwiseNodes : public Fusion {
 public:
  using Fusion::Fusion;

 protected:
  // What is found of a Cast or Select is kept: the following know of it.
  bool IsElementwise(int id);
  bool IsReduction(int id) const;
  // Null for others than a Cast or Select that IsElementwise has found.
  const Masked* MaskedOf(int id) const;
  // It is what one of these compares.
  bool IsCompared(int id) const { return compared_.contains(id); }

  absl::InlinedVector<PlanValue, 3> InputsOf(int id) const;
  // How many steps the node is, and which, unless it is masked.
  size_t NumSteps(int id) const;
  static absl::string_view StepOf(const PlanNode& n);
  static std::string MaskStepOf(const PlanNode& comparison);
  // Of the node's step; nothing if it cannot be one.
  std::optional<FusableOp> FusableOpOf(const PlanNode& n) const;

  // What the values broadcast to; of unknown rank if they do not.
  Shape BroadcastOf(absl::Span<const PlanValue> values) const;
  // Whether the node's result is one of its inputs, repeated along dimensions of one element; for a
  // node `user` that takes it, and has this shape.
  bool Repeats(int id, const Shape& shape, const PlanNode& user) const;
  // That input.
  static PlanValue RepeatedBy(const PlanNode& n) { return n.inputs[n.Is("Fill") ? 1 : 0]; }

 private:
  bool IsMasked(int id);

  // By the op's name, which lies in its OpSpec or is a literal, so that it need not be looked at.
  using OpKey = std::tuple<const char*, size_t, DataType>;
  mutable absl::flat_hash_map<OpKey, std::optional<FusableOp>> fusable_ops_;
  absl::flat_hash_map<int, Masked> masked_;  // by node
  absl::flat_hash_set<int> compared_;        // the comparisons of these
};

}  // namespace weir

#endif  // WEIR_SESSION_ELEMENTWISE_NODES_H_
