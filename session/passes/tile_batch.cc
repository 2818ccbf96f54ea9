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
#include "weir/session/passes/passes.h"
#include "weir/session/passes/tiled_subplan.h"
#include "weir/session/plan/fusion.h"
#include "weir/session/plan/row_ops.h"

// Layers of a network process each image of a batch independently. Run layer by layer, a batch of
// 16 writes 77 MB per layer to memory and reads them back for the next layer, while the data of one
// image fit the cache; and every layer ends with a barrier. So the nodes between two values of a
// batch become one node, _TiledSubplan, which runs one slice of the batch after the other through
// all layers, one slice per thread (tiled_subplan.h). Then only the region's inputs and outputs
// need memory proportional to the batch. (Alwani et al., "Fused-layer CNN accelerators", 2016, and
// the patches of MCUNetV2, Lin et al. 2021, go further and tile images.)
//
// Regions. A node can belong to a region if it is a RowOp (row_ops.h), runs on the host once per
// step, and has only data edges. Two such nodes are in the same region if one uses the other's
// value in an input that is sliced, with the same number of rows. A path must not leave a region
// and return to it: a value that goes from the region to a node outside and back, such as the mean
// over a batch that is subtracted from its rows, would make the region depend on itself. So each
// node has a level, one more than those of the nodes whose regions have been left on some path to
// it, and only nodes of one level are joined. An asynchronous node, such as a dequeue, may wait for
// another node of the step without an edge between them: only nodes that come after the same
// asynchronous nodes are joined.
//
// Plans with loops are left unchanged, since back edges are cut in a plan, and levels would not see
// them; so are steps that write variables, since a region that reads one variable before and
// another one after a write would have to run at two times.
//
// Slices. Weights are read again for every slice, and those that are not step-invariant are packed
// again. A slice has the fewest rows whose values have as many bytes as the weights (kPackingCost
// times as many, if they are packed), so that this does not cost more than the cache saves, and at
// least kMinSliceBytes bytes, which is worth running a plan for. The number of rows divides the
// batch, so that all slices share one plan, and the slices distribute evenly over the threads. The
// region is left unchanged if there is no such number, if the values fit the caches anyway
// (kMinRegionBytes), or if a large part of its values is used outside (training).
//
// The region is compiled as a subplan for the shapes of a slice, by Specialize and the passes that
// follow this one. Constants remain constants in it, so batch norms are folded and packed filters
// are cached; other weights are fed, and marked as step-invariant if they are. Each row is computed
// from the same numbers as before; matrix products may accumulate in another order, because kernels
// choose their blocking by size.
namespace weir {

namespace {

constexpr double kMinRegionBytes = 16
                                   << 20;   // regions with fewer bytes of values are left unchanged
constexpr double kMinSliceBytes = 1 << 20;  // smallest slice, in bytes of values
constexpr double kPackingCost = 4;  // cost of reading and packing a weight, relative to reading it
constexpr int kMaxAsyncNodes = 64;  // asynchronous nodes
constexpr double kMaxSlices = 1 << 30;
constexpr int64_t kMaxDivisor = 65536;  // largest divisor of a batch that is tried

// In floating point, so that implausibly large shapes do not overflow.
double BytesOf(const Shape& shape, DataType type) {
  return static_cast<double>(shape.num_elements()) *
         static_cast<double>(ElementSize(BaseType(type)));
}

struct Region {
  struct Argument {
    PlanValue value;
    bool sliced;
    friend bool operator<(const Argument& a, const Argument& b) {
      return std::tie(a.value.node, a.value.output, a.sliced) <
             std::tie(b.value.node, b.value.output, b.sliced);
    }
  };
  int64_t rows = 0;
  std::vector<int> nodes;        // in the order of the plan
  std::set<Argument> arguments;  // values from outside, including constants
  std::set<int> results;         // nodes whose values are used outside
};

class BatchTiling : public Fusion {
 public:
  using Fusion::Fusion;

  // Returns true if the plan has changed.
  bool Run() {
    if (!plan_.loops.empty() || plan_.writes_state || !IsWorthwhile()) return false;
    if (absl::c_count_if(plan_.nodes, IsAsync) > kMaxAsyncNodes) return false;
    FindRowOps();
    FindRegions();
    FindArgumentsAndResults();
    for (const Region& region : regions_) {
      const int64_t rows = RowsOfSlice(region);
      if (rows > 0) Replace(region, rows);
    }
    RedirectResults();
    return !replacements_.empty();
  }

 private:
  // ---- regions

  // An early exit for most graphs.
  bool IsWorthwhile() const {
    double bytes = 0;
    for (const PlanNode& n : plan_.nodes) {
      if (n.removed || n.shapes.empty() || !n.shapes[0].IsFullyDefined()) continue;
      bytes += BytesOf(n.shapes[0], n.type(0));
    }
    return bytes >= kMinRegionBytes;
  }

  static bool IsAsync(const PlanNode& n) { return !n.removed && n.kernel.is_async(); }

  bool MaySlice(const PlanNode& n) const {
    if (!IsFusable(n) || n.may_be_dead || n.loop >= 0 || !n.controls.empty() || n.kernel.is_async())
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
    // Nodes that something waits for, or with uses of outputs other than output 0, are not sliced.
    plan_.ForEachUse([this](const PlanValue& v) {
      if (v.output != 0) ops_[v.node].reset();
    });
    plan_.ForEachWait([this](int node) { ops_[node].reset(); });
  }

  // Returns true if input `k` of the node is a value of the same batch.
  bool SharesBatch(int node, size_t k) const {
    const PlanNode& n = plan_.nodes[node];
    const int maker = n.inputs[k].node;
    return ops_[node] && ops_[maker] && ops_[node]->sliced[k] &&
           n.shapes[0].dim(0) == plan_.nodes[maker].shapes[0].dim(0);
  }

  void FindRegions() {
    const int count = static_cast<int>(ops_.size());
    std::vector<int> level(count, 0), leader(count);
    std::vector<uint64_t> async_before(
        count,
        0);  // by node: the asynchronous nodes before it, as a bit set
    int num_async = 0;
    const auto leader_of = [&](int i) {
      while (leader[i] != i) i = leader[i] = leader[leader[i]];
      return i;
    };
    for (int i = 0; i < count; ++i) {
      leader[i] = i;
      const PlanNode& n = plan_.nodes[i];
      if (IsAsync(n)) async_before[i] = uint64_t{1} << num_async++;
      for (const PlanValue& v : n.inputs) async_before[i] |= async_before[v.node];
      for (const int control : n.controls) async_before[i] |= async_before[control];
      const auto in_batch = [&](size_t k) {
        return SharesBatch(i, k) && async_before[n.inputs[k].node] == async_before[i];
      };
      for (size_t k = 0; k < n.inputs.size(); ++k) {
        const int maker = n.inputs[k].node;
        level[i] = std::max(level[i], level[maker] + (ops_[maker] && !in_batch(k) ? 1 : 0));
      }
      for (const int control : n.controls) level[i] = std::max(level[i], level[control]);
      for (size_t k = 0; k < n.inputs.size(); ++k) {
        const int maker = n.inputs[k].node;
        if (in_batch(k) && level[maker] == level[i]) leader[leader_of(i)] = leader_of(maker);
      }
    }
    std::vector<int> region_of_leader(count, -1);  // by leader: its region
    region_of_.assign(count, -1);
    for (int i = 0; i < count; ++i) {
      if (!ops_[i]) continue;
      int& number = region_of_leader[leader_of(i)];
      if (number < 0) {
        number = static_cast<int>(regions_.size());
        regions_.push_back({.rows = plan_.nodes[i].shapes[0].dim(0)});
      }
      region_of_[i] = number;
      regions_[number].nodes.push_back(i);
    }
  }

  // Finds the arguments and results of the regions.
  void FindArgumentsAndResults() {
    const auto add_result = [&](const PlanValue& v) {
      if (v.node >= 0 && region_of_[v.node] >= 0)
        regions_[region_of_[v.node]].results.insert(v.node);
    };
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      const PlanNode& n = plan_.nodes[i];
      for (size_t k = 0; k < n.inputs.size(); ++k) {
        const PlanValue& v = n.inputs[k];
        if (region_of_[i] >= 0 && region_of_[v.node] == region_of_[i]) continue;
        add_result(v);
        if (region_of_[i] >= 0) regions_[region_of_[i]].arguments.insert({v, ops_[i]->sliced[k]});
      }
    }
    for (const PlanValue& v : plan_.fetches) add_result(v);
    for (const PlanGraph::Carry& c : plan_.carries) add_result(c.next);
  }

  // Returns the number of rows of a slice; 0 to leave the region unchanged.
  int64_t RowsOfSlice(const Region& region) const {
    double values = 0, results = 0, weights = 0;
    for (const int i : region.nodes) {
      const PlanNode& n = plan_.nodes[i];
      if (ops_[i]->makes_values) values += BytesOf(n.shapes[0], n.type(0));
    }
    for (const int i : region.results)
      results += BytesOf(plan_.nodes[i].shapes[0], plan_.nodes[i].type(0));
    for (const Region::Argument& a : region.arguments) {
      if (a.sliced) continue;
      const bool step_invariant = ConstantOf(a.value) != nullptr || plan_.IsStepInvariant(a.value);
      weights += BytesOf(ShapeOf(a.value), TypeOf(a.value)) * (step_invariant ? 1 : kPackingCost);
    }
    if (values < kMinRegionBytes || results > values / 4) return 0;
    // An even number of slices, or a large one. It depends on sizes only, so that it is the same
    // for any number of threads.
    const auto is_even = [](int64_t slices) { return slices % 2 == 0 || slices >= 9; };
    const auto most =
        static_cast<int64_t>(std::min(values / std::max(weights, kMinSliceBytes), kMaxSlices));
    int64_t slices = 1;
    for (int64_t d = 1; d <= kMaxDivisor && d <= region.rows / d; ++d) {
      if (region.rows % d != 0) continue;
      for (const int64_t number : {d, region.rows / d}) {
        if (number <= most && is_even(number)) slices = std::max(slices, number);
      }
    }
    return slices == 1 ? 0 : region.rows / slices;
  }

  // ---- the node of a region

  // Returns the region as a subplan for one slice. Its feeds are the arguments that are not
  // constants in the subplan; they are appended to `fed`.
  absl::StatusOr<PlanGraph> BuildSubplan(const Region& region, int64_t rows,
                                         std::vector<Region::Argument>* fed) const {
    Subplan subplan(env_);
    std::map<Region::Argument, PlanValue> argument_values;
    std::map<int, int> inner_nodes;
    for (const Region::Argument& argument : region.arguments) {
      const auto& [value, sliced] = argument;
      const Tensor* const constant = sliced ? nullptr : ConstantOf(value);
      if (constant != nullptr) {
        argument_values[argument] =
            subplan.AddConstant(*constant, plan_.nodes[value.node].node->name());
        continue;
      }
      argument_values[argument] =
          subplan.AddFeed(TypeOf(value), !sliced && plan_.IsStepInvariant(value));
      fed->push_back(argument);
    }
    for (const int id : region.nodes) {
      const PlanNode& outer = plan_.nodes[id];
      absl::InlinedVector<PlanValue, 3> inputs;
      for (size_t k = 0; k < outer.inputs.size(); ++k) {
        const PlanValue& v = outer.inputs[k];
        if (k == 1 && ops_[id]->has_shape_input) {
          inputs.push_back(
              subplan.AddConstant(ShapeOfSlice(id, rows), "slice/" + outer.node->name()));
        } else if (const auto inside = inner_nodes.find(v.node); inside != inner_nodes.end()) {
          inputs.push_back({inside->second, v.output});
        } else {
          inputs.push_back(argument_values.at({v, ops_[id]->sliced[k]}));
        }
      }
      inner_nodes[id] = subplan.AddNode(outer, std::move(inputs));
    }
    for (const int result : region.results) subplan.AddFetch({inner_nodes.at(result), 0});
    return subplan.Take();
  }

  DataType TypeOf(const PlanValue& v) const { return BaseType(plan_.nodes[v.node].type(v.output)); }

  // Returns the shape argument of a Reshape of the slice: its result's shape, with fewer rows.
  Tensor ShapeOfSlice(int id, int64_t rows) const {
    const PlanNode& n = plan_.nodes[id];
    Tensor shape(TypeOf(n.inputs[1]), Shape({n.shapes[0].rank()}));
    for (int d = 0; d < n.shapes[0].rank(); ++d)
      shape.SetIntAt(d, d == 0 ? rows : n.shapes[0].dim(d));
    return shape;
  }

  void Replace(const Region& region, int64_t rows) {
    std::vector<Region::Argument> fed;
    absl::StatusOr<PlanGraph> subplan = BuildSubplan(region, rows, &fed);
    if (!subplan.ok()) return;
    TiledSubplan::Layout layout{.rows = rows};
    std::vector<Shape> feed_shapes;
    DataTypes feed_types, result_types;
    absl::InlinedVector<PlanValue, 3> inputs;
    for (const auto& [value, sliced] : fed) {
      inputs.push_back(value);
      layout.sliced.push_back(sliced);
      feed_types.push_back(TypeOf(value));
      feed_shapes.push_back(ShapeOf(value));
      if (sliced) feed_shapes.back().set_dim(0, rows);
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
    const absl::StatusOr<std::shared_ptr<TiledSubplan>> step = TiledSubplan::Make(
        *std::move(subplan), feed_shapes, env_, layout,
        {TiledSubplan::Def().op, name, feed_types, result_types, std::move(ops)});
    assert(!absl::IsInternal(step.status()));  // a wrongly classified RowOp
    if (!step.ok()) return;

    PlanNode n;
    n.node = &(*step)->node();
    n.device = env_.devices[0].get();
    n.def = &TiledSubplan::Def();
    n.inputs = std::move(inputs);
    n.shapes.assign(layout.results.begin(), layout.results.end());
    n.kernel = Kernel([step = *step](KernelContext& c) { return step->Run(c); });
    n.cost_ns = cost_ns;
    const int id = plan_.Insert(std::move(n));
    int output = 0;
    for (const int result : region.results) replacements_[result] = {id, output++};
    for (const int node : region.nodes) plan_.Fuse(node);
  }

  // Redirects users of a region's results to the region's node.
  void RedirectResults() {
    plan_.ForEachUse([&](PlanValue& v) {
      if (const auto it = replacements_.find(v.node); it != replacements_.end()) v = it->second;
    });
  }

  std::vector<std::optional<RowOp>> ops_;  // by node; empty for nodes that are not sliced
  std::vector<Region> regions_;
  std::vector<int> region_of_;  // by node; -1: in no region
  absl::flat_hash_map<int, PlanValue>
      replacements_;  // by node: the output of a region's node that replaces it
};

}  // namespace

absl::Status TileBatch(PlanGraph& plan, const PlanEnvironment& env) {
  return BatchTiling(plan, env).Run() ? SortTopologically(plan) : absl::OkStatus();
}

}  // namespace weir
