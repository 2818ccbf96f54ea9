#include "weir/session/passes/elementwise_regions.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"

// Which elementwise nodes one fused node computes.
//
// The pass visits users before the nodes they use. A node joins the region of its users if all of
// them are in one region: its value is then needed nowhere else, and the region can compute it. If
// they are in several regions and the node is cheap, each of these recomputes it, provided that no
// region reads more memory for it and that the value would not stay in a core's own cache: labels
// times a gradient are summed, and added to another gradient, and neither sum needs the products in
// memory. A node that also has users outside may join a region too, and its value becomes an
// additional result: Adam's moments are stored in their variables and also update the weights.
// Otherwise the node begins a region of its own, whose result it is. A reduction begins a region,
// which has no other result. Or it joins a region that contains all its users and has no reduction
// yet: the nodes of that region then become the epilogue of the reduction, and the inputs of the
// reduction join the region from there on. An epilogue has other arguments too, which the reduction
// would have to wait for; so the reduction joins only if, as far as the cost model can tell, these
// are ready before its own input.
//
// The region replaces its last node and runs after all its arguments. So no user of one of its
// other results may be an ancestor of a node in the region: the activation of a layer, which the
// gradient of the layer uses as well, cannot join the gradient's region, since the loss is between
// them. The pass follows the users of a node's value for a limited number of nodes
// (MayCreateCycle), treating each region as the single node that it will be; if the search does not
// end within the limit, a cycle is assumed. Nor may a result have to wait for something outside of
// the step that only the others depend on (external_waits.h).
//
// All elementwise nodes of a region have one shape; a value of another shape, such as a vector
// that is added to every row, is an argument. So a Fill, Tile or BroadcastTo that only broadcasts,
// as in the gradients of sums, need not be computed: its input becomes the argument. Nodes with
// control inputs begin regions or are not fused.
namespace weir {

namespace {

// Limit of the nodes and regions that MayCreateCycle visits. Most searches that end at all end
// soon, at a variable or at a fetch of the step.
constexpr int kMaxVisited = 64;
// Nanoseconds per element: the highest cost of consecutive nodes that several regions recompute,
// and the cost of a comparison.
constexpr float kMaxRecomputeNs = 0.41f, kMaskCost = 0.1f;
// Bytes that stay in a core's cache: recomputing them costs more than reading them.
constexpr int64_t kCachedBytes = 3 << 19;

}  // namespace

ElementwiseRegions::ElementwiseRegions(PlanGraph& plan, const PlanEnvironment& env)
    : ElementwiseNodes(plan, env), plan_uses_(plan), external_waits_(plan) {}

void ElementwiseRegions::Find() {
  AddLoopsToReachability();
  region_of_.assign(plan_.nodes.size(), kNone);
  for (int id = static_cast<int>(plan_.nodes.size()) - 1; id >= 0; --id) {
    if (IsReduction(id)) {
      if (!JoinAsEpilogue(id, RegionOfUsers(id))) BeginWithReduction(id);
    } else if (IsCompared(id)) {
      AssignComparison(id);
    } else if (IsElementwise(id)) {
      const int region = RegionOfUsers(id);
      if ((region < 0 || !Join(id, region)) && !JoinRegionsOfAllUsers(id) && !JoinAsResult(id))
        Begin(id);
    }
  }
}

// Assigns a comparison to the regions of its users, which compute it. Its inputs may join that
// region if there is only one.
void ElementwiseRegions::AssignComparison(int id) {
  const IndexList regions = RegionsOfUsers(id);
  if (regions.size() > 1) return AssignToRegions(id, regions);
  if (!regions.empty()) region_of_[id] = regions[0];
}

void ElementwiseRegions::AssignToRegions(int id, const IndexList& regions) {
  region_of_[id] = kSeveral;
  multi_region_.emplace(id, MultiRegionNode{regions, RecomputeCost(id)});
}

// Returns the cost per element, in nanoseconds, of the node and of the nodes after it that
// several regions recompute.
float ElementwiseRegions::RecomputeCost(int id) const {
  float users_cost = 0;
  for (const PlanUse& use : plan_uses_.Of(id)) {
    const auto it = multi_region_.find(use.user);
    if (it != multi_region_.end()) users_cost = std::max(users_cost, it->second.cost_ns);
  }
  const bool is_plain = FindMasked(id) == nullptr && !IsCompared(id);
  return users_cost + (is_plain ? FusableOpOf(plan_.nodes[id])->cost : kMaskCost);
}

// Returns the regions of all users; none if some user is in no region.
IndexList ElementwiseRegions::RegionsOfUsers(int id) const {
  IndexList regions;
  const auto add = [&regions](int region) {
    if (!absl::c_linear_search(regions, region)) regions.push_back(region);
  };
  for (const PlanUse& use : plan_uses_.Of(id)) {
    if (!use.is_input() || use.output != 0 || region_of_[use.user] == kNone) return {};
    if (region_of_[use.user] != kSeveral) {
      add(region_of_[use.user]);
    } else {
      absl::c_for_each(multi_region_.at(use.user).regions, add);
    }
  }
  return regions;
}

// Returns kNone unless all users are in one region.
int ElementwiseRegions::RegionOfUsers(int id) const {
  const IndexList regions = RegionsOfUsers(id);
  return regions.size() == 1 ? regions[0] : kNone;
}

void ElementwiseRegions::Begin(int id) {
  region_of_[id] = static_cast<int>(regions_.size());
  Region& region = regions_.emplace_back();
  region.result = id;
  region.shape = plan_.nodes[id].shapes[0];
  AddNode(id, &region);
}

void ElementwiseRegions::BeginWithReduction(int id) {
  region_of_[id] = static_cast<int>(regions_.size());
  Region& region = regions_.emplace_back();
  region.result = id;
  BeginReduction(id, &region);
}

// Makes the inputs of the reduction the new nodes of the region.
void ElementwiseRegions::BeginReduction(int id, Region* region) const {
  static_cast<Part&>(*region) = Part();
  region->reduction = id;
  region->shape = ShapeOf(plan_.nodes[id].inputs[0]);
  region->values = {plan_.nodes[id].inputs[0].node};
}

bool ElementwiseRegions::JoinAsEpilogue(int id, int number) {
  if (number < 0) return false;
  Region& region = regions_[number];
  if (region.reduction >= 0 || !region.others.empty() || !MayJoin(id, region) ||
      region.num_arguments() + 1 >= kMaxFusedArguments || !IsReadyBefore(region, id)) {
    return false;
  }
  region_of_[id] = number;
  region.epilogue = static_cast<int>(epilogues_.size());
  Part& end = epilogues_.emplace_back(std::move(static_cast<Part&>(region)));
  end.values.erase(absl::c_find(end.values, id));
  BeginReduction(id, &region);
  return true;
}

// True if the other arguments of the region are ready before the input of the reduction.
bool ElementwiseRegions::IsReadyBefore(const Region& region, int reduction) {
  if (ready_.empty()) EstimateReadyTimes();
  const double ready = ready_[plan_.nodes[reduction].inputs[0].node];
  return absl::c_all_of(region.values,
                        [&](int v) { return v == reduction || ready_[v] <= ready; }) &&
         absl::c_all_of(region.other_values,
                        [&](const PlanValue& v) { return ready_[v.node] <= ready; });
}

// Estimates the earliest time at which each value is ready, in nanoseconds.
void ElementwiseRegions::EstimateReadyTimes() {
  ready_.assign(plan_.nodes.size(), 0);
  for (size_t i = 0; i < plan_.nodes.size(); ++i) {
    const PlanNode& n = plan_.nodes[i];
    for (const PlanValue& v : n.inputs) ready_[i] = std::max(ready_[i], ready_[v.node]);
    for (const int control : n.controls) ready_[i] = std::max(ready_[i], ready_[control]);
    ready_[i] += n.cost_ns;
  }
}

bool ElementwiseRegions::MayJoin(int id, const Region& region) const {
  const PlanNode &n = plan_.nodes[id], &result = plan_.nodes[region.result];
  return n.shapes[0] == region.shape && n.runs_with(result) &&
         n.node->output_type(0) == result.node->output_type(0) &&
         region.num_ops + NumFusedOps(id) <= kMaxFusedOps &&
         absl::c_all_of(region.others,
                        [&](int other) { return external_waits_.MayOrder(id, other); });
}

bool ElementwiseRegions::HasRoom(int id, const Region& region) const {
  const size_t most = kMaxFusedArguments + (absl::c_linear_search(region.values, id) ? 1 : 0);
  return region.num_arguments() + epilogues_[region.epilogue].num_arguments() +
             NewArguments(id, region).size() <=
         most;
}

bool ElementwiseRegions::Join(int id, int number) {
  Region& region = regions_[number];
  if (!MayJoin(id, region) || !HasRoom(id, region)) return false;
  const auto argument = absl::c_find(region.values, id);
  if (argument != region.values.end()) region.values.erase(argument);
  AddNode(id, &region);
  region_of_[id] = number;
  return true;
}

int64_t ElementwiseRegions::BytesOf(int id) const {
  const PlanNode& n = plan_.nodes[id];
  return n.shapes[0].num_elements() * static_cast<int64_t>(ElementSize(n.type(0)));
}

// Adds the node to the regions of all its users, if there are several. Each of them reads at most
// one full-size tensor for it, as before.
bool ElementwiseRegions::JoinRegionsOfAllUsers(int id) {
  const IndexList regions = RegionsOfUsers(id);
  if (regions.size() < 2 || RecomputeCost(id) > kMaxRecomputeNs || BytesOf(id) <= kCachedBytes)
    return false;
  for (const int number : regions) {
    const Region& region = regions_[number];
    if (!absl::c_linear_search(region.values, id) || !MayJoin(id, region) || !HasRoom(id, region))
      return false;
    const auto is_whole = [&](const PlanValue& v) {
      const PlanNode& n = plan_.nodes[v.node];
      const Shape& read =
          ShapeOf(v.output == 0 && IsBroadcast(v.node, region) ? BroadcastInput(n) : v);
      return 2 * read.num_elements() > region.shape.num_elements();
    };
    if (absl::c_count_if(NewArguments(id, region), is_whole) > 1) return false;
  }
  for (const int number : regions) Join(id, number);
  AssignToRegions(id, regions);
  recomputed_.push_back(id);
  return true;
}

// Adds the node to the region of some of its users. It would be dead whenever another argument of
// the region is dead, so the region must not be able to be dead.
bool ElementwiseRegions::JoinAsResult(int id) {
  IndexList tried;
  for (const PlanUse& use : plan_uses_.Of(id)) {
    const int number = IsSuccessor(use, id) ? region_of_[use.user] : kNone;
    if (number < 0 || absl::c_linear_search(tried, number)) continue;
    tried.push_back(number);
    const Region& region = regions_[number];
    const int result = region.result;
    if (region.reduction >= 0 || region.others.size() + 1 >= kMaxFusedResults ||
        plan_.nodes[result].may_be_dead || !external_waits_.MayOrder(result, id) ||
        !MayJoin(id, region) || MayCreateCycle(id, number) || !Join(id, number)) {
      continue;
    }
    regions_[number].others.push_back(id);
    reachability_[plan_.nodes[result].loop + 1].Add(id, result);
    return true;
  }
  return false;
}

// Returns whether a user of the node outside of the region, by value or control edge, may be an
// ancestor of a node in the region. The search does not enter other loops: a user of an output of
// a loop depends on the whole loop.
bool ElementwiseRegions::MayCreateCycle(int id, int number) const {
  const int result = regions_[number].result, loop = plan_.nodes[result].loop;
  const IntervalReachability& reachability = reachability_[loop + 1];
  absl::flat_hash_set<int> visited;  // nodes, or the results of their regions
  std::vector<int> stack;
  const auto follow = [&](int node, int own_region) {
    for (const PlanUse& use : plan_uses_.Of(node)) {
      if (!IsSuccessor(use, node)) continue;
      const int next = use.user;
      if (region_of_[next] >= 0 && region_of_[next] == own_region) continue;
      const int unit = region_of_[next] < 0 ? next : regions_[region_of_[next]].result;
      if (reachability.LowestAfter(next) <= result && visited.insert(unit).second)
        stack.push_back(unit);
    }
  };
  follow(id, number);
  while (!stack.empty()) {
    const int unit = stack.back(), region = region_of_[unit];
    const PlanNode& n = plan_.nodes[unit];
    stack.pop_back();
    if (region == number || n.loop != loop || n.value_loop != loop || visited.size() > kMaxVisited)
      return true;
    follow(unit, region);
    if (region < 0) continue;
    for (const int other : regions_[region].others) follow(other, region);
  }
  return false;
}

bool ElementwiseRegions::IsBroadcast(int id, const Region& region) const {
  return ElementwiseNodes::IsBroadcast(id, region.shape, plan_.nodes[region.result]);
}

IndexList ElementwiseRegions::FoldableBroadcasts(const Region& region) const {
  IndexList broadcasts;
  for (const int value : region.values) {
    if (IsBroadcast(value, region) && AllUsersBroadcast(value, region)) broadcasts.push_back(value);
  }
  while (!broadcasts.empty() && ShapeWithout(broadcasts, region) != region.shape)
    broadcasts.pop_back();
  return broadcasts;
}

// Returns the shape that the arguments broadcast to if the inputs of `broadcasts` replace these.
Shape ElementwiseRegions::ShapeWithout(const IndexList& broadcasts, const Region& region) const {
  std::vector<PlanValue> arguments = ArgumentsOf(region);
  for (PlanValue& v : arguments) {
    if (v.output == 0 && absl::c_linear_search(broadcasts, v.node))
      v = BroadcastInput(plan_.nodes[v.node]);
  }
  return BroadcastOf(arguments);
}

bool ElementwiseRegions::AllUsersBroadcast(int value, const Region& region) const {
  return absl::c_all_of(region.nodes, [&](int id) {
    return FindMasked(id) != nullptr || FusableOpOf(plan_.nodes[id])->broadcasts ||
           !absl::c_linear_search(plan_.nodes[id].inputs, PlanValue{value, 0});
  });
}

// Adds each loop as an interval to the order of nodes around it: it is one unit there.
void ElementwiseRegions::AddLoopsToReachability() {
  const size_t count = plan_.loops.size();
  reachability_.resize(count + 1);
  if (count == 0) return;
  std::vector<std::pair<int, int>> ends(count, {-1, -1});  // first and last node
  for (int i = 0; i < static_cast<int>(plan_.nodes.size()); ++i) {
    for (const int of : {plan_.nodes[i].loop, plan_.nodes[i].value_loop}) {
      for (int l = of; l >= 0; l = plan_.loops[l].parent) {
        if (ends[l].first < 0) ends[l].first = i;
        ends[l].second = i;
      }
    }
  }
  for (size_t l = 0; l < count; ++l) {
    if (ends[l].first >= 0)
      reachability_[plan_.loops[l].parent + 1].Add(ends[l].first, ends[l].second);
  }
}

// True if the user comes after the node: it takes its value, waits for it, or is a variable of a
// loop that takes its next value from outside of the loop.
bool ElementwiseRegions::IsSuccessor(const PlanUse& use, int node) const {
  return use.is_edge() ||
         (use.kind == PlanUse::Kind::kCarry &&
          !plan_.IsInside(plan_.nodes[node].loop, plan_.nodes[use.user].value_loop));
}

// Returns the inputs of the node that are not arguments of the part so far.
absl::InlinedVector<PlanValue, 3> ElementwiseRegions::NewArguments(int id, const Part& part) const {
  absl::InlinedVector<PlanValue, 3> added;
  for (const PlanValue& v : InputsOf(id)) {
    const bool is_known = v.output == 0 ? absl::c_linear_search(part.values, v.node)
                                        : absl::c_linear_search(part.other_values, v);
    if (!is_known && !absl::c_linear_search(added, v)) added.push_back(v);
  }
  return added;
}

void ElementwiseRegions::AddNode(int id, Part* part) const {
  for (const PlanValue& v : NewArguments(id, *part)) {
    if (v.output == 0) {
      part->values.push_back(v.node);
    } else {
      part->other_values.push_back(v);
    }
  }
  part->nodes.push_back(id);
  part->num_ops += NumFusedOps(id);
}

std::vector<PlanValue> ElementwiseRegions::ArgumentsOf(const Part& part) {
  std::vector<PlanValue> arguments;
  for (const int node : part.values) arguments.push_back({node, 0});
  arguments.insert(arguments.end(), part.other_values.begin(), part.other_values.end());
  return arguments;
}

}  // namespace weir
