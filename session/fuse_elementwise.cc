#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "weir/session/elementwise_nodes.h"
#include "weir/session/interval_reachability.h"
#include "weir/session/passes.h"

// Fuses element-wise neighbors into one node, _FusedElementwise, whose kernel computes them tile by
// tile (kernels/tile_program.cc): memory is traversed once, and a step has fewer nodes. A reduction
// of their result, a mean of squares for example, ends the node, which is then a _FusedReduction.
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
// end within the limit, a cycle is assumed.
//
// All element-wise nodes of a region have one shape; a value of another shape, such as a vector
// that is added to every row, is an argument. So a Fill, Tile or BroadcastTo that only broadcasts,
// as in the gradients of sums, need not be computed: its input becomes the argument. Nodes with
// control inputs begin regions or are not fused.
//
// A Cast or Select by a comparison of such values computes the comparison as well, as a mask as
// wide as the elements (kernels/mask_loops_cpu.cc): in a region all values have one type. Gradients
// of maxima, of clipping and of selections consist of these.
//
// The kernel calls the same functions for the same elements as the kernels of the single nodes
// would, so results are equal bit for bit, except for the rounding of sums in a reduction.
namespace weir {

namespace {

// On small tensors a region only saves dispatches, and a region of two nodes is not worth it.
constexpr int64_t kLargeElements = 1024;
constexpr size_t kMinNodesIfSmall = 3;
// Limit of the nodes and regions that MayCreateCycle visits. Most searches that end at all end
// soon, at a variable or at a fetch of the step.
constexpr int kMaxVisited = 64;
// Values of region_of_: in no region, or in several.
constexpr int kNone = -1, kSeveral = -2;
// Nanoseconds per element: the highest cost of consecutive nodes that several regions recompute,
// and the cost of a comparison.
constexpr float kMaxRecomputeNs = 0.41f, kMaskCost = 0.1f;
// Bytes that stay in a core's cache: recomputing them costs more than reading them.
constexpr int64_t kCachedBytes = 3 << 19;

// Element-wise nodes and their arguments.
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
  int epilogue = 0;    // index into epilogues_; the first of these is empty
};

class ElementwiseFusion : public ElementwiseNodes {
 public:
  using ElementwiseNodes::ElementwiseNodes;

  void Run() {
    FindUsers();
    FindSuccessors();
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
    for (const Region& region : regions_) {
      const IndexList broadcasts = FoldableBroadcasts(region);
      const size_t nodes = region.nodes.size() + broadcasts.size() +
                           epilogues_[region.epilogue].nodes.size() +
                           (region.reduction >= 0 ? 1 : 0) + NumMasked(region);
      if (nodes >= (region.shape.num_elements() >= kLargeElements ? 2 : kMinNodesIfSmall))
        Fuse(region, broadcasts);
    }
    if (!region_results_.empty()) RedirectToRegions();
    RemoveUnused();
  }

 private:
  size_t NumMasked(const Part& part) const {
    return static_cast<size_t>(
        absl::c_count_if(part.nodes, [this](int id) { return FindMasked(id) != nullptr; }));
  }

  // Assigns a comparison to the regions of its users, which compute it. Its inputs may join that
  // region if there is only one.
  void AssignComparison(int id) {
    const IndexList regions = RegionsOfUsers(id);
    if (regions.size() > 1) return AssignToRegions(id, regions);
    if (!regions.empty()) region_of_[id] = regions[0];
  }

  void AssignToRegions(int id, const IndexList& regions) {
    region_of_[id] = kSeveral;
    multi_region_.emplace(id, MultiRegionNode{regions, RecomputeCost(id)});
  }
  // Returns the cost per element, in nanoseconds, of the node and of the nodes after it that
  // several regions recompute.
  float RecomputeCost(int id) const {
    float users_cost = 0;
    for (const int user : users_[id]) {
      const auto it = multi_region_.find(user);
      if (it != multi_region_.end()) users_cost = std::max(users_cost, it->second.cost_ns);
    }
    const bool is_plain = FindMasked(id) == nullptr && !IsCompared(id);
    return users_cost + (is_plain ? FusableOpOf(plan_.nodes[id])->cost : kMaskCost);
  }

  // Returns the regions of all users; none if some user is in no region.
  IndexList RegionsOfUsers(int id) const {
    IndexList regions;
    const auto add = [&regions](int region) {
      if (!absl::c_linear_search(regions, region)) regions.push_back(region);
    };
    if (other_outputs_used_[id]) return regions;
    for (const int user : users_[id]) {
      if (user < 0 || region_of_[user] == kNone) return {};
      if (region_of_[user] != kSeveral) {
        add(region_of_[user]);
      } else {
        absl::c_for_each(multi_region_.at(user).regions, add);
      }
    }
    return regions;
  }
  // Returns kNone unless all users are in one region.
  int RegionOfUsers(int id) const {
    const IndexList regions = RegionsOfUsers(id);
    return regions.size() == 1 ? regions[0] : kNone;
  }

  void Begin(int id) {
    region_of_[id] = static_cast<int>(regions_.size());
    Region& region = regions_.emplace_back();
    region.result = id;
    region.shape = plan_.nodes[id].shapes[0];
    AddNode(id, &region);
  }

  void BeginWithReduction(int id) {
    region_of_[id] = static_cast<int>(regions_.size());
    Region& region = regions_.emplace_back();
    region.result = id;
    BeginReduction(id, &region);
  }

  // Makes the inputs of the reduction the new nodes of the region.
  void BeginReduction(int id, Region* region) const {
    static_cast<Part&>(*region) = Part();
    region->reduction = id;
    region->shape = ShapeOf(plan_.nodes[id].inputs[0]);
    region->values = {plan_.nodes[id].inputs[0].node};
  }

  bool JoinAsEpilogue(int id, int number) {
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
  bool IsReadyBefore(const Region& region, int reduction) {
    if (ready_.empty()) EstimateReadyTimes();
    const double ready = ready_[plan_.nodes[reduction].inputs[0].node];
    return absl::c_all_of(region.values,
                          [&](int v) { return v == reduction || ready_[v] <= ready; }) &&
           absl::c_all_of(region.other_values,
                          [&](const PlanValue& v) { return ready_[v.node] <= ready; });
  }

  // Estimates the earliest time at which each value is ready, in nanoseconds.
  void EstimateReadyTimes() {
    ready_.assign(plan_.nodes.size(), 0);
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      const PlanNode& n = plan_.nodes[i];
      for (const PlanValue& v : n.inputs) ready_[i] = std::max(ready_[i], ready_[v.node]);
      for (const int control : n.controls) ready_[i] = std::max(ready_[i], ready_[control]);
      ready_[i] += n.cost_ns;
    }
  }

  bool MayJoin(int id, const Region& region) const {
    const PlanNode &n = plan_.nodes[id], &result = plan_.nodes[region.result];
    return n.shapes[0] == region.shape && n.runs_with(result) &&
           n.node->output_type(0) == result.node->output_type(0) &&
           region.num_ops + NumFusedOps(id) <= kMaxFusedOps;
  }

  bool HasRoom(int id, const Region& region) const {
    const size_t most = kMaxFusedArguments + (absl::c_linear_search(region.values, id) ? 1 : 0);
    return region.num_arguments() + epilogues_[region.epilogue].num_arguments() +
               NewArguments(id, region).size() <=
           most;
  }

  bool Join(int id, int number) {
    Region& region = regions_[number];
    if (!MayJoin(id, region) || !HasRoom(id, region)) return false;
    const auto argument = absl::c_find(region.values, id);
    if (argument != region.values.end()) region.values.erase(argument);
    AddNode(id, &region);
    region_of_[id] = number;
    return true;
  }

  int64_t BytesOf(int id) const {
    const PlanNode& n = plan_.nodes[id];
    return n.shapes[0].num_elements() * static_cast<int64_t>(ElementSize(n.type(0)));
  }

  // Adds the node to the regions of all its users, if there are several. Each of them reads at most
  // one full-size tensor for it, as before.
  bool JoinRegionsOfAllUsers(int id) {
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
    removable_.push_back(id);
    return true;
  }

  // Adds the node to the region of some of its users. It would be dead whenever another argument of
  // the region is dead, so the region must not be able to be dead.
  bool JoinAsResult(int id) {
    IndexList tried;
    for (const int user : successors_[id]) {
      const int number = region_of_[user];
      if (number < 0 || absl::c_linear_search(tried, number)) continue;
      tried.push_back(number);
      const Region& region = regions_[number];
      const int result = region.result;
      if (region.reduction >= 0 || region.others.size() + 1 >= kMaxFusedResults ||
          plan_.nodes[result].may_be_dead || !MayJoin(id, region) || MayCreateCycle(id, number) ||
          !Join(id, number)) {
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
  bool MayCreateCycle(int id, int number) const {
    const int result = regions_[number].result, loop = plan_.nodes[result].loop;
    const IntervalReachability& reachability = reachability_[loop + 1];
    absl::flat_hash_set<int> visited;  // nodes, or the results of their regions
    std::vector<int> stack;
    const auto follow = [&](int node, int own_region) {
      for (const int next : successors_[node]) {
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
      if (region == number || n.loop != loop || n.value_loop != loop ||
          visited.size() > kMaxVisited)
        return true;
      follow(unit, region);
      if (region < 0) continue;
      for (const int other : regions_[region].others) follow(other, region);
    }
    return false;
  }

  bool IsBroadcast(int id, const Region& region) const {
    return ElementwiseNodes::IsBroadcast(id, region.shape, plan_.nodes[region.result]);
  }

  // Returns the arguments of the region which only broadcast their input, and which that input can
  // replace: the remaining arguments determine the shape of the result.
  IndexList FoldableBroadcasts(const Region& region) const {
    IndexList broadcasts;
    for (const int value : region.values) {
      if (IsBroadcast(value, region) && AllUsersBroadcast(value, region))
        broadcasts.push_back(value);
    }
    while (!broadcasts.empty() && ShapeWithout(broadcasts, region) != region.shape)
      broadcasts.pop_back();
    return broadcasts;
  }

  // Returns the shape that the arguments broadcast to if the inputs of `broadcasts` replace these.
  Shape ShapeWithout(const IndexList& broadcasts, const Region& region) const {
    std::vector<PlanValue> arguments = ArgumentsOf(region);
    for (PlanValue& v : arguments) {
      if (v.output == 0 && absl::c_linear_search(broadcasts, v.node))
        v = BroadcastInput(plan_.nodes[v.node]);
    }
    return BroadcastOf(arguments);
  }

  bool AllUsersBroadcast(int value, const Region& region) const {
    return absl::c_all_of(region.nodes, [&](int id) {
      return FindMasked(id) != nullptr || FusableOpOf(plan_.nodes[id])->broadcasts ||
             !absl::c_linear_search(plan_.nodes[id].inputs, PlanValue{value, 0});
    });
  }

  // Adds each loop as an interval to the order of nodes around it: it is one unit there.
  void AddLoopsToReachability() {
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

  void FindSuccessors() {
    successors_.assign(plan_.nodes.size(), {});
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      const PlanNode& n = plan_.nodes[i];
      for (const PlanValue& v : n.inputs) successors_[v.node].push_back(static_cast<int>(i));
      for (const int control : n.controls) successors_[control].push_back(static_cast<int>(i));
    }
    // A loop depends on next values of its variables that come from outside of it.
    for (const PlanGraph::Carry& c : plan_.carries) {
      if (!plan_.IsInside(plan_.nodes[c.next.node].loop, plan_.nodes[c.carry].value_loop))
        successors_[c.next.node].push_back(c.carry);
    }
  }

  // Returns the inputs of the node that are not arguments of the part so far.
  absl::InlinedVector<PlanValue, 3> NewArguments(int id, const Part& part) const {
    absl::InlinedVector<PlanValue, 3> added;
    for (const PlanValue& v : InputsOf(id)) {
      const bool is_known = v.output == 0 ? absl::c_linear_search(part.values, v.node)
                                          : absl::c_linear_search(part.other_values, v);
      if (!is_known && !absl::c_linear_search(added, v)) added.push_back(v);
    }
    return added;
  }

  void AddNode(int id, Part* part) const {
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

  // The attributes of a fused node that describe a part.
  struct Program {
    std::vector<PlanValue>
        values;  // the arguments, then the values in the order in which they are computed
    std::vector<std::string> ops;
    std::vector<int64_t> operands;
    std::vector<float> params;

    int64_t IndexOf(const PlanValue& v) const { return absl::c_find(values, v) - values.begin(); }
    // Returns the index of the result.
    int64_t Add(absl::string_view op, int64_t a, int64_t b, float param = 0) {
      ops.emplace_back(op);
      operands.insert(operands.end(), {a, b});
      params.push_back(param);
      values.emplace_back();
      return static_cast<int64_t>(values.size()) - 1;
    }
  };

  // On entry `values` contains the arguments.
  Program ProgramOf(const Part& part, std::vector<PlanValue> values) const {
    Program s{.values = std::move(values)};
    for (auto id = part.nodes.rbegin(); id != part.nodes.rend(); ++id) {
      if (const MaskedNode* const m = FindMasked(*id)) {
        AddMasked(*m, &s);
      } else {
        const PlanNode& n = plan_.nodes[*id];
        const char* const param = FusableOpOf(n)->param;
        const float p = param == nullptr ? 0 : n.node->attr_or<float>(param, 0);
        int64_t first = s.IndexOf(n.inputs[0]);
        for (size_t k = 1; k <= NumFusedOps(*id); ++k)
          first = s.Add(FusedOpOf(n), first, n.inputs.size() > 1 ? s.IndexOf(n.inputs[k]) : -1, p);
      }
      s.values.back() = {*id, 0};
    }
    return s;
  }

  void AddMasked(const MaskedNode& m, Program* s) const {
    const int64_t mask =
        s->Add(FusedMaskOp(plan_.nodes[m.comparison]), s->IndexOf(m.x), s->IndexOf(m.y));
    if (m.is_cast) {
      s->Add("_MaskedOne", mask, -1);
      return;
    }
    const int64_t chosen = m.chosen ? s->Add("_Masked", mask, s->IndexOf(*m.chosen)) : -1;
    const int64_t other = m.other ? s->Add("_Unmasked", mask, s->IndexOf(*m.other)) : -1;
    if (m.chosen && m.other) s->Add("_Either", chosen, other);
  }

  static std::vector<PlanValue> ArgumentsOf(const Part& part) {
    std::vector<PlanValue> arguments;
    for (const int node : part.values) arguments.push_back({node, 0});
    arguments.insert(arguments.end(), part.other_values.begin(), part.other_values.end());
    return arguments;
  }

  void Fuse(const Region& region, const IndexList& broadcasts) {
    PlanNode& result = plan_.nodes[region.result];
    const DataType type = result.node->output_type(0);
    const bool reduces = region.reduction >= 0;
    std::vector<PlanValue> arguments = ArgumentsOf(region);
    const std::vector<PlanValue> epilogue_arguments = ArgumentsOf(epilogues_[region.epilogue]);
    Program program = ProgramOf(region, arguments);
    std::vector<int64_t> others_of;  // indices of ops
    std::vector<PlanValue> others;   // the nodes of these, in the same order
    for (size_t i = arguments.size(); i < program.values.size(); ++i) {
      const PlanValue& v = program.values[i];
      if (!absl::c_linear_search(region.others, v.node)) continue;
      others_of.push_back(static_cast<int64_t>(i - arguments.size()));
      others.push_back(v);
    }
    NodeBuilder builder(internal_graph(), reduces ? "_FusedReduction" : "_FusedElementwise");
    builder.Name(result.node->name())
        .InputList(Outputs(arguments.size(), MakePlaceholder(type)))
        .Attr("operands", program.operands)
        .Attr("params", program.params);
    if (reduces) {
      const PlanNode& reduction = plan_.nodes[region.reduction];
      const Tensor& axes = *ConstantOf(reduction.inputs[1]);
      std::vector<int64_t> list;
      for (int64_t i = 0; i < axes.num_elements(); ++i) list.push_back(axes.IntAt(i));
      std::vector<PlanValue> epilogue_values = epilogue_arguments;
      epilogue_values.insert(epilogue_values.begin(), {region.reduction, 0});
      const Program end = ProgramOf(epilogues_[region.epilogue], std::move(epilogue_values));
      builder.InputList(Outputs(epilogue_arguments.size(), MakePlaceholder(type)))
          .Attr("end_operands", end.operands)
          .Attr("end_params", end.params)
          .Attr("axes", list)
          .Attr("keep_dims", reduction.node->attr_or<bool>("keep_dims", false));
      program.ops.push_back(reduction.node->op_name());
      program.ops.insert(program.ops.end(), end.ops.begin(), end.ops.end());
    } else {
      builder.Attr("num_others", static_cast<int64_t>(others_of.size()))
          .Attr("others_of", others_of);
    }
    builder.Attr("fused_ops", program.ops);
    Node* const node = builder.Build();
    if (!internal_graph().TakeStatus().ok() || node == nullptr) return;
    for (const int broadcast : broadcasts)
      *absl::c_find(arguments, PlanValue{broadcast, 0}) = BroadcastInput(plan_.nodes[broadcast]);
    arguments.insert(arguments.end(), epilogue_arguments.begin(), epilogue_arguments.end());
    IndexList nodes = region.nodes;
    const IndexList& epilogue_nodes = epilogues_[region.epilogue].nodes;
    nodes.insert(nodes.end(), epilogue_nodes.begin(), epilogue_nodes.end());
    if (reduces) nodes.push_back(region.reduction);
    double cost_ns = 0;
    for (const int id : nodes) cost_ns += plan_.nodes[id].cost_ns;
    if (!Replace(region.result, *node, arguments)) return;
    for (const int id : nodes) {
      if (id != region.result && region_of_[id] != kSeveral) plan_.Fuse(id);
    }
    result.cost_ns = cost_ns;
    removable_.insert(removable_.end(), broadcasts.begin(), broadcasts.end());
    for (const int id : nodes) {
      const MaskedNode* const m = FindMasked(id);
      if (m == nullptr) continue;
      removable_.push_back(m->comparison);
      removable_.insert(removable_.end(), m->zeros.begin(), m->zeros.end());
    }
    for (const PlanValue& other : others) {
      region_results_[other.node] = {region.result, static_cast<int>(result.shapes.size())};
      result.shapes.push_back(region.shape);
    }
  }

  // Redirects users of a node whose value has become a result of a region to that result.
  void RedirectToRegions() {
    const auto take = [&](PlanValue& v) {
      const auto it = region_results_.find(v.node);
      if (it != region_results_.end()) v = it->second;
    };
    const auto wait = [&](int& node) {
      const auto it = region_results_.find(node);
      if (it != region_results_.end()) node = it->second.node;
    };
    for (PlanNode& n : plan_.nodes) {
      absl::c_for_each(n.inputs, take);
      absl::c_for_each(n.controls, wait);
    }
    absl::c_for_each(plan_.fetches, take);
    absl::c_for_each(plan_.targets, wait);
    for (PlanGraph::Carry& c : plan_.carries) take(c.next);
  }

  // Removes nodes that regions recompute, or whose input they read instead, if they have no other
  // users.
  void RemoveUnused() {
    if (removable_.empty()) return;
    std::vector<int> num_uses(plan_.nodes.size(), 0);
    const auto count = [&](const PlanNode& n, int by) {
      for (const PlanValue& v : n.inputs) num_uses[v.node] += by;
      for (const int control : n.controls) num_uses[control] += by;
    };
    for (const PlanNode& n : plan_.nodes) count(n, 1);
    for (const PlanValue& v : plan_.fetches) ++num_uses[v.node];
    for (const int target : plan_.targets) ++num_uses[target];
    for (const PlanGraph::Carry& c : plan_.carries) ++num_uses[c.next.node];
    absl::c_sort(removable_, std::greater<>());
    for (const int id : removable_) {
      PlanNode& n = plan_.nodes[id];
      if (n.removed || num_uses[id] > 0) continue;
      count(n, -1);
      plan_.Remove(id);
    }
  }

  std::vector<Region> regions_;
  std::vector<Part> epilogues_{1};
  std::vector<int> region_of_;  // by node; or kNone, kSeveral
  std::vector<int> removable_;  // candidates for RemoveUnused
  struct MultiRegionNode {
    IndexList regions;
    float cost_ns;
  };
  absl::flat_hash_map<int, MultiRegionNode> multi_region_;  // by node, if it is in several regions
  std::vector<IndexList> successors_;  // by node: its users, by value or control edge
  std::vector<IntervalReachability>
      reachability_;           // by loop + 1: among the nodes directly in that loop
  std::vector<double> ready_;  // by node, see EstimateReadyTimes; empty until first needed
  absl::flat_hash_map<int, PlanValue>
      region_results_;  // by node: the result of a region that replaces it
};

}  // namespace

void FuseElementwise(PlanGraph& plan, const PlanEnvironment& env) {
  ElementwiseFusion(plan, env).Run();
}

}  // namespace weir
