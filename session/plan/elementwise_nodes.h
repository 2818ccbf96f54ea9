#ifndef WEIR_SESSION_PLAN_ELEMENTWISE_NODES_H_
#define WEIR_SESSION_PLAN_ELEMENTWISE_NODES_H_

#include <optional>
#include <string>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "weir/kernels/math/fused_elementwise.h"
#include "weir/session/plan/fusion.h"

namespace weir {

// A Cast or Select whose condition compares x and y; the fused op includes the comparison.
struct MaskedNode {
  int comparison;  // the node that compares
  PlanValue x, y;
  bool is_cast;
  // For a Select: its values where the comparison is true and where it is false. nullopt means
  // zero.
  std::optional<PlanValue> chosen = {}, other = {};
  IndexList zeros = {};  // nodes of zero tensors, which the fused op does not read
};

// The base class of passes that look for elementwise nodes: decides which nodes of a plan can be
// ops of a _FusedElementwise or the reduction of a _FusedReduction, and which values they take
// there, all of one type and of known shapes (fuse_elementwise.cc).
class ElementwiseNodes : public Fusion {
 public:
  using Fusion::Fusion;

 protected:
  // Records the Casts and Selects that it accepts, for the functions below.
  bool IsElementwise(int id);
  bool IsReduction(int id) const;
  // Null for all nodes but a Cast or Select that IsElementwise has accepted.
  const MaskedNode* FindMasked(int id) const;
  // True if the node is the comparison of such a Cast or Select.
  bool IsCompared(int id) const { return compared_.contains(id); }

  absl::InlinedVector<PlanValue, 3> InputsOf(int id) const;
  // How many ops of the fused node the node becomes, and which op, unless it is masked.
  size_t NumFusedOps(int id) const;
  static absl::string_view FusedOpOf(const PlanNode& n);
  static std::string FusedMaskOp(const PlanNode& comparison);
  // Returns the fusable op of the node; nullopt if it has none.
  std::optional<FusableOp> FusableOpOf(const PlanNode& n) const;

  // Returns the shape that the values broadcast to; of unknown rank if they do not broadcast.
  Shape BroadcastOf(absl::Span<const PlanValue> values) const;
  // True if the node only broadcasts one of its inputs to `shape`, and may be removed when its user
  // `user` broadcasts that input itself.
  bool IsBroadcast(int id, const Shape& shape, const PlanNode& user) const;
  // Returns that input.
  static PlanValue BroadcastInput(const PlanNode& n) { return n.inputs[n.traits().repeated_input]; }

 private:
  bool IsMasked(int id);

  // Keyed by the address of the op's name, which is in its OpSpec or is a literal; saves comparing
  // strings.
  using OpKey = std::tuple<const char*, size_t, DataType>;
  mutable absl::flat_hash_map<OpKey, std::optional<FusableOp>> fusable_ops_;
  absl::flat_hash_map<int, MaskedNode> masked_;  // by node
  absl::flat_hash_set<int> compared_;            // the comparisons of masked_
};

}  // namespace weir

#endif  // WEIR_SESSION_PLAN_ELEMENTWISE_NODES_H_
