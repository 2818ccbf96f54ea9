#ifndef WEIR_SESSION_PASSES_ELEMENTWISE_REGIONS_H_
#define WEIR_SESSION_PASSES_ELEMENTWISE_REGIONS_H_

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "weir/session/plan/elementwise_nodes.h"
#include "weir/session/plan/external_waits.h"
#include "weir/session/plan/interval_reachability.h"

namespace weir {

// Elementwise nodes and their arguments.
struct Part {
  Shape shape;                          // of all nodes
  IndexList nodes;                      // users before the nodes they use
  size_t num_ops = 0;                   // ops of the fused node that the nodes become
  IndexList values;                     // nodes outside whose output 0 is an argument so far
  std::vector<PlanValue> other_values;  // arguments that are other outputs

  size_t num_arguments() const { return values.size() + other_values.size(); }
};

struct Region : Part {
  int result = -1;     // the node: the first one of the last part, or the reduction
  IndexList others;    // additional results, among `nodes`
  int reduction = -1;  // the reduction of their result, if any
  int epilogue = 0;    // index into epilogues(); the first of these is empty
};

// Finds regions of elementwise nodes that one fused node can compute; elementwise_regions.cc says
// which nodes join a region. Changes nothing.
class ElementwiseRegions : public ElementwiseNodes {
 public:
  ElementwiseRegions(PlanGraph& plan, const PlanEnvironment& env);

  void Find();
  const std::vector<Region>& regions() const { return regions_; }
  const std::vector<Part>& epilogues() const { return epilogues_; }
  // Nodes that regions recompute: they are not needed if nothing else uses them.
  const std::vector<int>& recomputed() const { return recomputed_; }
  // True for a node that several regions compute.
  bool IsInSeveral(int id) const { return region_of_[id] == kSeveral; }

  static std::vector<PlanValue> ArgumentsOf(const Part& part);
  // Returns the arguments of the region which only broadcast their input, and which that input can
  // replace: the remaining arguments determine the shape of the result.
  IndexList FoldableBroadcasts(const Region& region) const;

 private:
  // Values of region_of_: in no region, or in several.
  static constexpr int kNone = -1, kSeveral = -2;

  void AssignComparison(int id);
  void AssignToRegions(int id, const IndexList& regions);
  float RecomputeCost(int id) const;
  IndexList RegionsOfUsers(int id) const;
  int RegionOfUsers(int id) const;
  void Begin(int id);
  void BeginWithReduction(int id);
  void BeginReduction(int id, Region* region) const;
  bool JoinAsEpilogue(int id, int number);
  bool IsReadyBefore(const Region& region, int reduction);
  void EstimateReadyTimes();
  bool MayJoin(int id, const Region& region) const;
  bool HasRoom(int id, const Region& region) const;
  bool Join(int id, int number);
  int64_t BytesOf(int id) const;
  bool JoinRegionsOfAllUsers(int id);
  bool JoinAsResult(int id);
  bool MayCreateCycle(int id, int number) const;
  bool IsBroadcast(int id, const Region& region) const;
  void AddLoopsToReachability();
  bool IsSuccessor(const PlanUse& use, int node) const;
  absl::InlinedVector<PlanValue, 3> NewArguments(int id, const Part& part) const;
  void AddNode(int id, Part* part) const;
  Shape ShapeWithout(const IndexList& broadcasts, const Region& region) const;
  bool AllUsersBroadcast(int value, const Region& region) const;

  const PlanUses plan_uses_;
  const ExternalWaits external_waits_;
  std::vector<Region> regions_;
  std::vector<Part> epilogues_{1};
  std::vector<int> region_of_;  // by node; or kNone, kSeveral
  std::vector<int> recomputed_;
  struct MultiRegionNode {
    IndexList regions;
    float cost_ns;
  };
  absl::flat_hash_map<int, MultiRegionNode> multi_region_;  // by node, if it is in several regions
  std::vector<IntervalReachability>
      reachability_;           // by loop + 1: among the nodes directly in that loop
  std::vector<double> ready_;  // by node, see EstimateReadyTimes; empty until first needed
};

}  // namespace weir

#endif  // WEIR_SESSION_PASSES_ELEMENTWISE_REGIONS_H_
