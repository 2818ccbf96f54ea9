#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "weir/session/interval_reachability.h"
#include "weir/session/elementwise_nodes.h"

// Element-wise neighbors become one node, _FusedElementwise, whose kernel computes them tile by
// tile (kernels/tile_program.cc): memory is walked once, and a step has fewer nodes. A reduction
// that they go into, a mean of squares say, ends the node, which is a _FusedReduction then.
//
// The nodes are visited users first. A node joins the region of its users if all of them are in
// one: then its value is needed nowhere else, and the region can compute it. If they are in several
// regions and the node is cheap, each of these computes it, as long as none reads more for that and
// its value would not stay in a core's own cache: labels times a gradient are summed, and added to
// another gradient, and neither sum needs the products in memory. A node that others take as well
// may join too, and its value is one more result: Adam's moments go to their variables and into the
// weights. Otherwise it begins a region of its own, whose result it is. A reduction begins a
// region, and that has no other result. Or it joins a region that all its users are in, as long as
// no other has: that is then the end of the new one, what is done to the reduction's results, and
// what comes before the reduction joins from there on. An end takes other values too, so that the
// reduction would wait for these; it joins only where, as far as costs can tell, they are there
// before what is reduced.
//
// The region stands in the place of its last node, after everything that goes into it. So nothing
// that takes one of its other results may lead back into it: the activation of a layer, which the
// layer's gradient takes as well, cannot join that, since the loss lies between. Whoever takes a
// node's value is followed for a while (LeadsBack), with regions as the single nodes that they will
// be; who has not come to an end by then may lead back.
//
// All element-wise nodes of a region have one shape; a value of another shape, such as a vector
// that is added to every row, is an argument. So a Fill, Tile or BroadcastTo that only repeats, as
// the gradients of sums are spread out, need not be computed: its input is the argument. Nodes that
// wait for a control edge begin regions or stay as they are.
//
// A Cast or Select by a comparison of such values computes the comparison as well, as bits as wide
// as the elements (kernels/mask_loops_cpu.cc): in a region every value has one type. Gradients of
// maxima, of what is clipped and of what a condition has chosen are made of these.
//
// The kernel calls the same functions for the same elements as the kernels of the single nodes
// would, so results are equal bit for bit, but for the rounding of sums in a reduction.
namespace weir {

namespace {

// On small tensors a region saves dispatches only, and two of them do not pay for it.
constexpr int64_t kLarge = 1024;
constexpr size_t kFewestOfSmall = 3;
// Nodes and regions that LeadsBack looks at before it gives up. What is seen to end at all ends
// soon, at a variable or in what the step returns.
constexpr int kMostFollowed = 64;
// In region_of_: in no region, or in several.
constexpr int kNone = -1, kSeveral = -2;
// What an element costs at most of nodes after each other that several regions compute, and of a
// comparison, in nanoseconds.
constexpr float kCheap = 0.41f, kMaskCost = 0.1f;
// Bytes that stay in a core's cache: to compute them again costs more than to read them.
constexpr int64_t kCachedBytes = 3 << 19;

// Element-wise nodes, and what goes into them.
struct Part {
  Shape shape;                          // of all nodes
  IndexList nodes;                            // users before what they use
  size_t steps = 0;                     // that they are
  IndexList values;                           // nodes outside, output 0 of which is an argument so far
  std::vector<PlanValue> other_values;  // arguments that are other outputs

  size_t num_arguments() const { return values.size() + other_values.size(); }
};

struct Region : Part {
  int result = -1;     // the node: the first of the last part, or the reduction
  IndexList others;          // more results, of `nodes`
  int reduction = -1;  // what they go into, if anything
  int end = 0;         // what follows on that, among all ends; the first is empty
};

class ElementwiseFusion : public ElementwiseNodes {
 public:
  using ElementwiseNodes::ElementwiseNodes;

  void Run() {
    FindUsers();
    FindSuccessors();
    FindLoops();
    region_of_.assign(plan_.nodes.size(), kNone);
    for (int id = static_cast<int>(plan_.nodes.size()) - 1; id >= 0; --id) {
      if (IsReduction(id)) {
        if (!JoinEnd(id, RegionOfUsers(id))) BeginWithReduction(id);
      } else if (IsCompared(id)) {
        PlaceComparison(id);
      } else if (IsElementwise(id)) {
        const int region = RegionOfUsers(id);
        if ((region < 0 || !Join(id, region)) && !JoinEach(id) && !JoinAsResult(id)) Begin(id);
      }
    }
    for (const Region& region : regions_) {
      const IndexList repeats = RepeatsInto(region);
      const size_t nodes = region.nodes.size() + repeats.size() + ends_[region.end].nodes.size() +
                           (region.reduction >= 0 ? 1 : 0) + NumMasked(region);
      if (nodes >= (region.shape.num_elements() >= kLarge ? 2 : kFewestOfSmall))
        Fuse(region, repeats);
    }
    if (!moved_.empty()) TakeFromRegions();
    RemoveUntaken();
  }

 private:
  size_t NumMasked(const Part& part) const {
    return static_cast<size_t>(
        absl::c_count_if(part.nodes, [this](int id) { return MaskedOf(id) != nullptr; }));
  }

  // Its users compute it. What goes into it may join their region, if that is one.
  void PlaceComparison(int id) {
    const IndexList regions = RegionsOfUsers(id);
    if (regions.size() > 1) return PlaceInSeveral(id, regions);
    if (!regions.empty()) region_of_[id] = regions[0];
  }

  void PlaceInSeveral(int id, const IndexList& regions) {
    region_of_[id] = kSeveral;
    several_.emplace(id, Several{regions, CostOfSeveral(id)});
  }
  // Of an element of the node and of those that follow on it in several regions, in nanoseconds.
  float CostOfSeveral(int id) const {
    float behind = 0;
    for (const int user : users_[id]) {
      const auto it = several_.find(user);
      if (it != several_.end()) behind = std::max(behind, it->second.cost_ns);
    }
    const bool is_plain = MaskedOf(id) == nullptr && !IsCompared(id);
    return behind + (is_plain ? FusableOpOf(plan_.nodes[id])->cost : kMaskCost);
  }

  // None unless all users are in some.
  IndexList RegionsOfUsers(int id) const {
    IndexList regions;
    const auto add = [&regions](int region) {
      if (!absl::c_linear_search(regions, region)) regions.push_back(region);
    };
    if (uses_others_[id]) return regions;
    for (const int user : users_[id]) {
      if (user < 0 || region_of_[user] == kNone) return {};
      if (region_of_[user] != kSeveral) {
        add(region_of_[user]);
      } else {
        absl::c_for_each(several_.at(user).regions, add);
      }
    }
    return regions;
  }
  // kNone unless all users are in one.
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
    Reduce(id, &region);
  }

  // From now on the region's nodes are what goes into the reduction.
  void Reduce(int id, Region* region) const {
    static_cast<Part&>(*region) = Part();
    region->reduction = id;
    region->shape = ShapeOf(plan_.nodes[id].inputs[0]);
    region->values = {plan_.nodes[id].inputs[0].node};
  }

  bool JoinEnd(int id, int number) {
    if (number < 0) return false;
    Region& region = regions_[number];
    if (region.reduction >= 0 || !region.others.empty() || !MayJoin(id, region) ||
        region.num_arguments() + 1 >= kMostFusedArguments || !IsReadyFor(region, id)) {
      return false;
    }
    region_of_[id] = number;
    region.end = static_cast<int>(ends_.size());
    Part& end = ends_.emplace_back(std::move(static_cast<Part&>(region)));
    end.values.erase(absl::c_find(end.values, id));
    Reduce(id, &region);
    return true;
  }

  // What else the region takes is there before what the reduction takes.
  bool IsReadyFor(const Region& region, int reduction) {
    if (ready_.empty()) FindReady();
    const double ready = ready_[plan_.nodes[reduction].inputs[0].node];
    return absl::c_all_of(region.values,
                          [&](int v) { return v == reduction || ready_[v] <= ready; }) &&
           absl::c_all_of(region.other_values,
                          [&](const PlanValue& v) { return ready_[v.node] <= ready; });
  }

  // When values are there at the earliest, in nanoseconds.
  void FindReady() {
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
           region.steps + NumSteps(id) <= kMostFusedOps;
  }

  bool HasRoom(int id, const Region& region) const {
    const size_t most = kMostFusedArguments + (absl::c_linear_search(region.values, id) ? 1 : 0);
    return region.num_arguments() + ends_[region.end].num_arguments() +
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

  // Joins the regions of all its users, if these are several. Each takes one whole tensor for it at
  // most, as it did before.
  bool JoinEach(int id) {
    const IndexList regions = RegionsOfUsers(id);
    if (regions.size() < 2 || CostOfSeveral(id) > kCheap || BytesOf(id) <= kCachedBytes)
      return false;
    for (const int number : regions) {
      const Region& region = regions_[number];
      if (!absl::c_linear_search(region.values, id) || !MayJoin(id, region) || !HasRoom(id, region))
        return false;
      const auto is_whole = [&](const PlanValue& v) {
        const PlanNode& n = plan_.nodes[v.node];
        const Shape& read = ShapeOf(v.output == 0 && Repeats(v.node, region) ? RepeatedBy(n) : v);
        return 2 * read.num_elements() > region.shape.num_elements();
      };
      if (absl::c_count_if(NewArguments(id, region), is_whole) > 1) return false;
    }
    for (const int number : regions) Join(id, number);
    PlaceInSeveral(id, regions);
    spared_.push_back(id);
    return true;
  }

  // Joins the region of some of its users. It would be dead with the region's other arguments, so
  // nothing may be.
  bool JoinAsResult(int id) {
    IndexList tried;
    for (const int user : successors_[id]) {
      const int number = region_of_[user];
      if (number < 0 || absl::c_linear_search(tried, number)) continue;
      tried.push_back(number);
      const Region& region = regions_[number];
      const int result = region.result;
      if (region.reduction >= 0 || region.others.size() + 1 >= kMostFusedResults ||
          plan_.nodes[result].may_be_dead || !MayJoin(id, region) || LeadsBack(id, number) ||
          !Join(id, number)) {
        continue;
      }
      regions_[number].others.push_back(id);
      descents_[plan_.nodes[result].loop + 1].Add(id, result);
      return true;
    }
    return false;
  }

  // Whether somebody outside of the region who takes the node's value, or waits for the node, may
  // come before something in the region. Other loops are not looked into: whoever takes what comes
  // out of one waits for all of it.
  bool LeadsBack(int id, int number) const {
    const int result = regions_[number].result, loop = plan_.nodes[result].loop;
    const IntervalReachability& descents = descents_[loop + 1];
    absl::flat_hash_set<int> seen;  // nodes, or the results of their regions
    std::vector<int> stack;
    const auto follow = [&](int node, int own_region) {
      for (const int next : successors_[node]) {
        if (region_of_[next] >= 0 && region_of_[next] == own_region) continue;
        const int unit = region_of_[next] < 0 ? next : regions_[region_of_[next]].result;
        if (descents.LowestAfter(next) <= result && seen.insert(unit).second) stack.push_back(unit);
      }
    };
    follow(id, number);
    while (!stack.empty()) {
      const int unit = stack.back(), region = region_of_[unit];
      const PlanNode& n = plan_.nodes[unit];
      stack.pop_back();
      if (region == number || n.loop != loop || n.value_loop != loop || seen.size() > kMostFollowed)
        return true;
      follow(unit, region);
      if (region < 0) continue;
      for (const int other : regions_[region].others) follow(other, region);
    }
    return false;
  }

  bool Repeats(int id, const Region& region) const {
    return ElementwiseNodes::Repeats(id, region.shape, plan_.nodes[region.result]);
  }

  // The arguments of a region whose input it can take instead: what is left tells how often the
  // input is repeated.
  IndexList RepeatsInto(const Region& region) const {
    IndexList repeats;
    for (const int value : region.values) {
      if (Repeats(value, region) && BroadcastsEverywhere(value, region)) repeats.push_back(value);
    }
    while (!repeats.empty() && ShapeWithout(repeats, region) != region.shape) repeats.pop_back();
    return repeats;
  }

  // What the arguments broadcast to if some are what they repeat.
  Shape ShapeWithout(const IndexList& repeats, const Region& region) const {
    std::vector<PlanValue> arguments = ArgumentsOf(region);
    for (PlanValue& v : arguments) {
      if (v.output == 0 && absl::c_linear_search(repeats, v.node))
        v = RepeatedBy(plan_.nodes[v.node]);
    }
    return BroadcastOf(arguments);
  }

  bool BroadcastsEverywhere(int value, const Region& region) const {
    return absl::c_all_of(region.nodes, [&](int id) {
      return MaskedOf(id) != nullptr || FusableOpOf(plan_.nodes[id])->broadcasts ||
             !absl::c_linear_search(plan_.nodes[id].inputs, PlanValue{value, 0});
    });
  }

  // A loop is one unit of the order of nodes around it.
  void FindLoops() {
    const size_t count = plan_.loops.size();
    descents_.resize(count + 1);
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
        descents_[plan_.loops[l].parent + 1].Add(ends[l].first, ends[l].second);
    }
  }

  void FindSuccessors() {
    successors_.assign(plan_.nodes.size(), {});
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      const PlanNode& n = plan_.nodes[i];
      for (const PlanValue& v : n.inputs) successors_[v.node].push_back(static_cast<int>(i));
      for (const int control : n.controls) successors_[control].push_back(static_cast<int>(i));
    }
    // A loop waits for what its variables are to be that comes from outside.
    for (const PlanGraph::Carry& c : plan_.carries) {
      if (!plan_.IsInside(plan_.nodes[c.next.node].loop, plan_.nodes[c.carry].value_loop))
        successors_[c.next.node].push_back(c.carry);
    }
  }

  // What the node takes and the part has not taken so far.
  absl::InlinedVector<PlanValue, 3> NewArguments(int id, const Part& part) const {
    absl::InlinedVector<PlanValue, 3> added;
    for (const PlanValue& v : InputsOf(id)) {
      const bool is_taken = v.output == 0 ? absl::c_linear_search(part.values, v.node)
                                          : absl::c_linear_search(part.other_values, v);
      if (!is_taken && !absl::c_linear_search(added, v)) added.push_back(v);
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
    part->steps += NumSteps(id);
  }

  // What a node has of a part, in its attributes.
  struct Steps {
    std::vector<PlanValue> values;  // the arguments, then the nodes as they are computed
    std::vector<std::string> ops;
    std::vector<int64_t> operands;
    std::vector<float> params;

    int64_t IndexOf(const PlanValue& v) const { return absl::c_find(values, v) - values.begin(); }
    // Returns the result's index.
    int64_t Add(absl::string_view op, int64_t a, int64_t b, float param = 0) {
      ops.emplace_back(op);
      operands.insert(operands.end(), {a, b});
      params.push_back(param);
      values.emplace_back();
      return static_cast<int64_t>(values.size()) - 1;
    }
  };

  // `values` has the arguments.
  Steps StepsOf(const Part& part, std::vector<PlanValue> values) const {
    Steps s{.values = std::move(values)};
    for (auto id = part.nodes.rbegin(); id != part.nodes.rend(); ++id) {
      if (const Masked* const m = MaskedOf(*id)) {
        AddMasked(*m, &s);
      } else {
        const PlanNode& n = plan_.nodes[*id];
        const char* const param = FusableOpOf(n)->param;
        const float p = param == nullptr ? 0 : n.node->attr_or<float>(param, 0);
        int64_t first = s.IndexOf(n.inputs[0]);
        for (size_t step = 1; step <= NumSteps(*id); ++step)
          first = s.Add(StepOf(n), first, n.inputs.size() > 1 ? s.IndexOf(n.inputs[step]) : -1, p);
      }
      s.values.back() = {*id, 0};
    }
    return s;
  }

  void AddMasked(const Masked& m, Steps* s) const {
    const int64_t mask =
        s->Add(MaskStepOf(plan_.nodes[m.comparison]), s->IndexOf(m.x), s->IndexOf(m.y));
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

  void Fuse(const Region& region, const IndexList& repeats) {
    PlanNode& result = plan_.nodes[region.result];
    const DataType type = result.node->output_type(0);
    const bool reduces = region.reduction >= 0;
    std::vector<PlanValue> arguments = ArgumentsOf(region);
    const std::vector<PlanValue> end_arguments = ArgumentsOf(ends_[region.end]);
    Steps steps = StepsOf(region, arguments);
    std::vector<int64_t> others_of;  // steps
    std::vector<PlanValue> others;   // in their order
    for (size_t i = arguments.size(); i < steps.values.size(); ++i) {
      const PlanValue& v = steps.values[i];
      if (!absl::c_linear_search(region.others, v.node)) continue;
      others_of.push_back(static_cast<int64_t>(i - arguments.size()));
      others.push_back(v);
    }
    NodeBuilder builder(made(), reduces ? "_FusedReduction" : "_FusedElementwise");
    builder.Name(result.node->name())
        .InputList(Outputs(arguments.size(), MakePlaceholder(type)))
        .Attr("operands", steps.operands)
        .Attr("params", steps.params);
    if (reduces) {
      const PlanNode& reduction = plan_.nodes[region.reduction];
      const Tensor& axes = *ConstantOf(reduction.inputs[1]);
      std::vector<int64_t> list;
      for (int64_t i = 0; i < axes.num_elements(); ++i) list.push_back(axes.IntAt(i));
      std::vector<PlanValue> of_end = end_arguments;
      of_end.insert(of_end.begin(), {region.reduction, 0});
      const Steps end = StepsOf(ends_[region.end], std::move(of_end));
      builder.InputList(Outputs(end_arguments.size(), MakePlaceholder(type)))
          .Attr("end_operands", end.operands)
          .Attr("end_params", end.params)
          .Attr("axes", list)
          .Attr("keep_dims", reduction.node->attr_or<bool>("keep_dims", false));
      steps.ops.push_back(reduction.node->op_name());
      steps.ops.insert(steps.ops.end(), end.ops.begin(), end.ops.end());
    } else {
      builder.Attr("num_others", static_cast<int64_t>(others_of.size()))
          .Attr("others_of", others_of);
    }
    builder.Attr("fused_ops", steps.ops);
    Node* const node = builder.Build();
    if (!made().TakeStatus().ok() || node == nullptr) return;
    for (const int repeat : repeats)
      *absl::c_find(arguments, PlanValue{repeat, 0}) = RepeatedBy(plan_.nodes[repeat]);
    arguments.insert(arguments.end(), end_arguments.begin(), end_arguments.end());
    IndexList nodes = region.nodes;
    const IndexList& end_nodes = ends_[region.end].nodes;
    nodes.insert(nodes.end(), end_nodes.begin(), end_nodes.end());
    if (reduces) nodes.push_back(region.reduction);
    double cost_ns = 0;
    for (const int id : nodes) cost_ns += plan_.nodes[id].cost_ns;
    if (!Replace(region.result, *node, arguments)) return;
    for (const int id : nodes) {
      if (id != region.result && region_of_[id] != kSeveral) plan_.nodes[id].Remove();
    }
    result.cost_ns = cost_ns;
    spared_.insert(spared_.end(), repeats.begin(), repeats.end());
    for (const int id : nodes) {
      const Masked* const m = MaskedOf(id);
      if (m == nullptr) continue;
      spared_.push_back(m->comparison);
      spared_.insert(spared_.end(), m->spared.begin(), m->spared.end());
    }
    for (const PlanValue& other : others) {
      moved_[other.node] = {region.result, static_cast<int>(result.shapes.size())};
      result.shapes.push_back(region.shape);
    }
  }

  // Who takes a result of a region that was a node's value takes it from there.
  void TakeFromRegions() {
    const auto take = [&](PlanValue& v) {
      const auto it = moved_.find(v.node);
      if (it != moved_.end()) v = it->second;
    };
    const auto wait = [&](int& node) {
      const auto it = moved_.find(node);
      if (it != moved_.end()) node = it->second.node;
    };
    for (PlanNode& n : plan_.nodes) {
      absl::c_for_each(n.inputs, take);
      absl::c_for_each(n.controls, wait);
    }
    absl::c_for_each(plan_.fetches, take);
    absl::c_for_each(plan_.targets, wait);
    for (PlanGraph::Carry& c : plan_.carries) take(c.next);
  }

  // Those that regions compute themselves, or take the input of, and that nobody else takes.
  void RemoveUntaken() {
    if (spared_.empty()) return;
    std::vector<int> takers(plan_.nodes.size(), 0);
    const auto count = [&](const PlanNode& n, int by) {
      for (const PlanValue& v : n.inputs) takers[v.node] += by;
      for (const int control : n.controls) takers[control] += by;
    };
    for (const PlanNode& n : plan_.nodes) count(n, 1);
    for (const PlanValue& v : plan_.fetches) ++takers[v.node];
    for (const int target : plan_.targets) ++takers[target];
    for (const PlanGraph::Carry& c : plan_.carries) ++takers[c.next.node];
    absl::c_sort(spared_, std::greater<>());
    for (const int id : spared_) {
      PlanNode& n = plan_.nodes[id];
      if (n.removed || takers[id] > 0) continue;
      count(n, -1);
      n.Remove();
    }
  }

  std::vector<Region> regions_;
  std::vector<Part> ends_{1};
  std::vector<int> region_of_;  // by node; or kNone, kSeveral
  std::vector<int> spared_;     // nodes that RemoveUntaken looks at
  struct Several {
    IndexList regions;
    float cost_ns;
  };
  absl::flat_hash_map<int, Several> several_;  // by node, if that is in several regions
  std::vector<IndexList> successors_;                // by node: who takes a value of it or waits for it
  std::vector<IntervalReachability> descents_;  // by loop + 1: among the nodes that are directly in it
  std::vector<double> ready_;       // by node, as FindReady says; empty if nobody has asked
  absl::flat_hash_map<int, PlanValue> moved_;  // by node: the result of a region that it is now
};

}  // namespace

void FuseElementwise(PlanGraph& plan, const PlanEnvironment& env) {
  ElementwiseFusion(plan, env).Run();
}

}  // namespace weir
