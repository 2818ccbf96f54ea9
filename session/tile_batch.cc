#include <algorithm>
#include <cassert>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "weir/session/fusion.h"
#include "weir/session/row_ops.h"
#include "weir/session/tiled_subplan.h"

// Layers of a network work on each image of a batch by itself. Run layer by layer, a batch of 16
// writes 77 MB for a layer and reads them back for the next one, from memory, while an image's
// share stays in the cache; and every layer ends with threads that wait for each other. So what
// lies between two values of a batch becomes one node, _TiledSubplan, that takes one slice of the
// batch after the other through all layers, a slice a thread (tiled_subplan.h). Of what a step then
// needs of memory only what goes in and what comes out grows with the batch. (Alwani et al.,
// "Fused-layer CNN accelerators", 2016, and the patches of MCUNetV2, Lin et al. 2021, go further
// and cut images.)
//
// Regions. A node belongs to one if it is a RowOp (row_ops.h), runs on the host once a step, and
// nothing but values ties it to others. Two such nodes are in the same region if one takes the
// other's value in an input that is cut, with as many rows. A region must be left for good: if a
// value goes from it to a node outside and from there back, as the mean over a batch that is taken
// from its rows does, then the region would have to wait for itself. So each node has a level, one
// more than those of the nodes whose regions have been left on some way to it, and only nodes of
// one level are joined. A node that waits, as one that takes from a queue does, may wait for
// another one of the step without any edge between them: only nodes that come after the same ones
// of these are joined.
//
// Plans with loops stay as they are, since edges that go round are cut in a plan, and levels would
// not see them; and steps that write to variables, since a region that reads one before and one
// after a write would have to be in two places.
//
// Slices. Weights are read anew for every slice, and those that do not last are packed anew. The
// rows of a slice are the fewest that make as many bytes as the weights have (kPacked times as
// many), so that this does not cost what the cache saves, and at least kSmallest, which is worth
// running a plan for; they divide the batch, so that there is one plan for all slices; and the
// slices come out even among the threads. Where that can't be had, where the values fit the caches
// anyway (kLargest), or where much of what is made is needed outside (training), the region stays
// as it is.
//
// The region is a plan of its own for the shapes of a slice, with Specialize and what comes after
// this pass. Constants are constants there, so batch norms are folded and filters are kept packed;
// other weights are fed, and said to last if they do. Each row is computed from the same numbers as
// before; products may add them in another order, because kernels choose how to block by size.
namespace weir {

namespace {

constexpr double kLargest = 16 << 20;  // bytes of values that are left to the caches
constexpr double kSmallest = 1 << 20;  // bytes of the values of a slice
constexpr double kPacked = 4;          // to read a weight and to pack it, in readings
constexpr int kMostWaiting = 64;       // nodes that wait
constexpr double kMostSlices = 1 << 30;
constexpr int64_t kMostTried = 65536;  // divisors of a batch

// Of what no machine holds, too.
double BytesOf(const Shape& shape, DataType type) {
  return static_cast<double>(shape.num_elements()) *
         static_cast<double>(ElementSize(BaseType(type)));
}

struct Region {
  struct Argument {
    PlanValue value;
    bool cut;
    friend bool operator<(const Argument& a, const Argument& b) {
      return std::tie(a.value.node, a.value.output, a.cut) <
             std::tie(b.value.node, b.value.output, b.cut);
    }
  };
  int64_t rows = 0;
  std::vector<int> nodes;        // in the order of the plan
  std::set<Argument> arguments;  // values from outside; constants too
  std::set<int> results;         // nodes whose values are used outside
};

class BatchTiling : public Fusion {
 public:
  using Fusion::Fusion;

  // True if the plan has changed.
  bool Run() {
    if (!plan_.loops.empty() || plan_.writes_state || !MayPay()) return false;
    if (absl::c_count_if(plan_.nodes, Waits) > kMostWaiting) return false;
    FindRowOps();
    FindRegions();
    FindTies();
    for (const Region& region : regions_) {
      const int64_t rows = RowsOfSlice(region);
      if (rows > 0) Replace(region, rows);
    }
    TakeResults();
    return !taken_.empty();
  }

 private:
  // ---- regions

  // Most graphs are done with here.
  bool MayPay() const {
    double bytes = 0;
    for (const PlanNode& n : plan_.nodes) {
      if (n.removed || n.shapes.empty() || !n.shapes[0].IsFullyDefined()) continue;
      bytes += BytesOf(n.shapes[0], n.type(0));
    }
    return bytes >= kLargest;
  }

  static bool Waits(const PlanNode& n) { return !n.removed && n.kernel.is_async(); }

  bool MaySlice(const PlanNode& n) const {
    if (!IsFusable(n) || n.may_be_dead || n.loop >= 0 || !n.controls.empty() || !n.kernel.run())
      return false;
    const Shape& y = n.shapes[0];
    if (!y.IsFullyDefined() || y.rank() == 0 || y.dim(0) < 2 || y.num_elements() == 0) return false;
    return absl::c_all_of(n.inputs, [&](const PlanValue& v) {
      const PlanNode& maker = plan_.nodes[v.node];
      return !maker.may_be_dead && IsPlain(maker.type(v.output)) && !IsRef(maker.type(v.output)) &&
             ShapeOf(v).num_elements() > 0;
    });
  }

  void FindRowOps() {
    ops_.resize(plan_.nodes.size());
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (!plan_.nodes[i].removed && MaySlice(plan_.nodes[i]))
        ops_[i] = FindRowOp(plan_, plan_.nodes[i]);
    }
    // Nodes that are waited for, or of which more than output 0 is used, are not cut.
    const auto use = [&](const PlanValue& v) {
      if (v.node >= 0 && v.output != 0) ops_[v.node].reset();
    };
    for (const PlanNode& n : plan_.nodes) {
      for (const int control : n.controls) ops_[control].reset();
      for (const PlanValue& v : n.inputs) use(v);
    }
    for (const PlanValue& v : plan_.fetches) use(v);
    for (const int target : plan_.targets) ops_[target].reset();
    for (const PlanGraph::Carry& c : plan_.carries) use(c.next);
  }

  // Input `k` of the node is a value of the same batch.
  bool IsJoined(int node, size_t k) const {
    const PlanNode& n = plan_.nodes[node];
    const int maker = n.inputs[k].node;
    return ops_[node] && ops_[maker] && ops_[node]->cut[k] &&
           n.shapes[0].dim(0) == plan_.nodes[maker].shapes[0].dim(0);
  }

  void FindRegions() {
    const int count = static_cast<int>(ops_.size());
    std::vector<int> level(count, 0), leader(count);
    std::vector<uint64_t> after(count, 0);  // which of the nodes that wait, a bit each
    int waiting = 0;
    const auto leader_of = [&](int i) {
      while (leader[i] != i) i = leader[i] = leader[leader[i]];
      return i;
    };
    for (int i = 0; i < count; ++i) {
      leader[i] = i;
      const PlanNode& n = plan_.nodes[i];
      if (Waits(n)) after[i] = uint64_t{1} << waiting++;
      for (const PlanValue& v : n.inputs) after[i] |= after[v.node];
      for (const int control : n.controls) after[i] |= after[control];
      const auto joined = [&](size_t k) {
        return IsJoined(i, k) && after[n.inputs[k].node] == after[i];
      };
      for (size_t k = 0; k < n.inputs.size(); ++k) {
        const int maker = n.inputs[k].node;
        level[i] = std::max(level[i], level[maker] + (ops_[maker] && !joined(k) ? 1 : 0));
      }
      for (const int control : n.controls) level[i] = std::max(level[i], level[control]);
      for (size_t k = 0; k < n.inputs.size(); ++k) {
        const int maker = n.inputs[k].node;
        if (joined(k) && level[maker] == level[i]) leader[leader_of(i)] = leader_of(maker);
      }
    }
    std::vector<int> led(count, -1);  // by leader: its region
    region_of_.assign(count, -1);
    for (int i = 0; i < count; ++i) {
      if (!ops_[i]) continue;
      int& number = led[leader_of(i)];
      if (number < 0) {
        number = static_cast<int>(regions_.size());
        regions_.push_back({.rows = plan_.nodes[i].shapes[0].dim(0)});
      }
      region_of_[i] = number;
      regions_[number].nodes.push_back(i);
    }
  }

  // What goes into and comes out of the regions.
  void FindTies() {
    const auto leave = [&](const PlanValue& v) {
      if (v.node >= 0 && region_of_[v.node] >= 0)
        regions_[region_of_[v.node]].results.insert(v.node);
    };
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      const PlanNode& n = plan_.nodes[i];
      for (size_t k = 0; k < n.inputs.size(); ++k) {
        const PlanValue& v = n.inputs[k];
        if (region_of_[i] >= 0 && region_of_[v.node] == region_of_[i]) continue;
        leave(v);
        if (region_of_[i] >= 0) regions_[region_of_[i]].arguments.insert({v, ops_[i]->cut[k]});
      }
    }
    for (const PlanValue& v : plan_.fetches) leave(v);
    for (const PlanGraph::Carry& c : plan_.carries) leave(c.next);
  }

  // 0 if the region is better left as it is.
  int64_t RowsOfSlice(const Region& region) const {
    double values = 0, results = 0, weights = 0;
    for (const int i : region.nodes) {
      const PlanNode& n = plan_.nodes[i];
      if (ops_[i]->makes_values) values += BytesOf(n.shapes[0], n.type(0));
    }
    for (const int i : region.results)
      results += BytesOf(plan_.nodes[i].shapes[0], plan_.nodes[i].type(0));
    for (const Region::Argument& a : region.arguments) {
      if (a.cut) continue;
      const bool step_invariant = ConstantOf(a.value) != nullptr || plan_.IsStepInvariant(a.value);
      weights += BytesOf(ShapeOf(a.value), TypeOf(a.value)) * (step_invariant ? 1 : kPacked);
    }
    if (values < kLargest || results > values / 4) return 0;
    // An even number, or many: by sizes alone, so that it is the same on any number of threads.
    const auto is_even = [](int64_t slices) { return slices % 2 == 0 || slices >= 9; };
    const auto most =
        static_cast<int64_t>(std::min(values / std::max(weights, kSmallest), kMostSlices));
    int64_t slices = 1;
    for (int64_t d = 1; d <= kMostTried && d <= region.rows / d; ++d) {
      if (region.rows % d != 0) continue;
      for (const int64_t number : {d, region.rows / d}) {
        if (number <= most && is_even(number)) slices = std::max(slices, number);
      }
    }
    return slices == 1 ? 0 : region.rows / slices;
  }

  // ---- the node of a region

  // The region for a slice. Its feeds are the arguments that are not constants there, which are
  // appended to `fed`.
  absl::StatusOr<PlanGraph> MakeInner(const Region& region, int64_t rows,
                                      std::vector<Region::Argument>* fed) const {
    Subplan inner(env_);
    std::map<Region::Argument, PlanValue> place_of_argument;
    std::map<int, int> place_of_node;
    for (const Region::Argument& argument : region.arguments) {
      const auto& [value, cut] = argument;
      const Tensor* const constant = cut ? nullptr : ConstantOf(value);
      if (constant != nullptr) {
        place_of_argument[argument] =
            inner.AddConstant(*constant, plan_.nodes[value.node].node->name());
        continue;
      }
      place_of_argument[argument] = inner.AddFeed(TypeOf(value), !cut && plan_.IsStepInvariant(value));
      fed->push_back(argument);
    }
    for (const int id : region.nodes) {
      const PlanNode& outer = plan_.nodes[id];
      absl::InlinedVector<PlanValue, 3> inputs;
      for (size_t k = 0; k < outer.inputs.size(); ++k) {
        const PlanValue& v = outer.inputs[k];
        if (k == 1 && ops_[id]->names_rows) {
          inputs.push_back(
              inner.AddConstant(ShapeOfSlice(id, rows), "slice/" + outer.node->name()));
        } else if (const auto inside = place_of_node.find(v.node); inside != place_of_node.end()) {
          inputs.push_back({inside->second, v.output});
        } else {
          inputs.push_back(place_of_argument.at({v, ops_[id]->cut[k]}));
        }
      }
      place_of_node[id] = inner.AddNode(outer, std::move(inputs));
    }
    for (const int result : region.results) inner.AddFetch({place_of_node.at(result), 0});
    return inner.Take();
  }

  DataType TypeOf(const PlanValue& v) const { return BaseType(plan_.nodes[v.node].type(v.output)); }

  // What a Reshape of the slice is given: its result's shape, with fewer rows.
  Tensor ShapeOfSlice(int id, int64_t rows) const {
    const PlanNode& n = plan_.nodes[id];
    Tensor shape(TypeOf(n.inputs[1]), Shape({n.shapes[0].rank()}));
    for (int d = 0; d < n.shapes[0].rank(); ++d)
      shape.SetIntAt(d, d == 0 ? rows : n.shapes[0].dim(d));
    return shape;
  }

  void Replace(const Region& region, int64_t rows) {
    std::vector<Region::Argument> fed;
    absl::StatusOr<PlanGraph> inner = MakeInner(region, rows, &fed);
    if (!inner.ok()) return;
    TiledSubplan::Layout layout{.rows = rows};
    std::vector<Shape> feed_shapes;
    DataTypes feed_types, result_types;
    absl::InlinedVector<PlanValue, 3> inputs;
    for (const auto& [value, cut] : fed) {
      inputs.push_back(value);
      layout.cut.push_back(cut);
      feed_types.push_back(TypeOf(value));
      feed_shapes.push_back(ShapeOf(value));
      if (cut) feed_shapes.back().set_dim(0, rows);
    }
    for (const int result : region.results) {
      layout.results.push_back(plan_.nodes[result].shapes[0]);
      result_types.push_back(TypeOf({result, 0}));
    }
    std::vector<std::string> ops;
    double cost_ns = 0;
    for (const int id : region.nodes) {
      ops.push_back(plan_.nodes[id].node->op_name());
      cost_ns += plan_.nodes[id].cost_ns;
    }
    const std::string& name = plan_.nodes[*region.results.rbegin()].node->name();
    const absl::StatusOr<std::shared_ptr<TiledSubplan>> step =
        TiledSubplan::Make(*std::move(inner), feed_shapes, env_, layout,
                         {TiledSubplan::Def().op, name, feed_types, result_types, std::move(ops)});
    assert(!absl::IsInternal(step.status()));  // a RowOp that is none
    if (!step.ok()) return;

    PlanNode n;
    n.node = &(*step)->node();
    n.device = env_.devices[0].get();
    n.def = &TiledSubplan::Def();
    n.inputs = std::move(inputs);
    n.shapes.assign(layout.results.begin(), layout.results.end());
    n.kernel = Kernel([step = *step](KernelContext& c) { return step->Run(c); });
    n.cost_ns = cost_ns;
    const int id = static_cast<int>(plan_.nodes.size());
    plan_.nodes.push_back(std::move(n));
    int output = 0;
    for (const int result : region.results) taken_[result] = {id, output++};
    for (const int node : region.nodes) plan_.nodes[node].Remove();
  }

  // Who uses a result of a region takes it from the region's node.
  void TakeResults() {
    const auto take = [&](PlanValue& v) {
      if (const auto it = taken_.find(v.node); it != taken_.end()) v = it->second;
    };
    for (PlanNode& n : plan_.nodes) {
      for (PlanValue& v : n.inputs) take(v);
    }
    for (PlanValue& v : plan_.fetches) take(v);
    for (PlanGraph::Carry& c : plan_.carries) take(c.next);
  }

  std::vector<std::optional<RowOp>> ops_;  // by node; nothing for those that are not cut
  std::vector<Region> regions_;
  std::vector<int> region_of_;                 // by node; -1: in none
  absl::flat_hash_map<int, PlanValue> taken_;  // by node: its value, of a region's node
};

}  // namespace

absl::Status TileBatch(PlanGraph& plan, const PlanEnvironment& env) {
  return BatchTiling(plan, env).Run() ? SortTopologically(plan) : absl::OkStatus();
}

}  // namespace weir
