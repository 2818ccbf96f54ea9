#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "weir/session/passes/elementwise_regions.h"
#include "weir/session/passes/passes.h"

// Fuses elementwise neighbors into one node, _FusedElementwise, whose kernel computes them tile by
// tile (kernels/math/tile_program.cc): memory is traversed once, and a step has fewer nodes. A
// reduction of their result, a mean of squares for example, ends the node, which is then a
// _FusedReduction. elementwise_regions.cc says which nodes are fused.
//
// A Cast or Select by a comparison of such values computes the comparison as well, as a mask as
// wide as the elements (kernels/math/mask_loops_cpu.cc): in a region all values have one type.
// Gradients of maxima, of clipping and of selections consist of these.
//
// The kernel calls the same functions for the same elements as the kernels of the single nodes
// would, so results are equal bit for bit, except for the rounding of sums in a reduction.
namespace weir {

namespace {

// On small tensors a region only saves dispatches, and a region of two nodes is not worth it.
constexpr int64_t kLargeElements = 1024;
constexpr size_t kMinNodesIfSmall = 3;

class ElementwiseFusion : public ElementwiseRegions {
 public:
  using ElementwiseRegions::ElementwiseRegions;

  void Run() {
    Find();
    for (const Region& region : regions()) {
      const IndexList broadcasts = FoldableBroadcasts(region);
      const size_t nodes = region.nodes.size() + broadcasts.size() +
                           epilogues()[region.epilogue].nodes.size() +
                           (region.reduction >= 0 ? 1 : 0) + NumMasked(region);
      if (nodes >= (region.shape.num_elements() >= kLargeElements ? 2 : kMinNodesIfSmall))
        Fuse(region, broadcasts);
    }
    if (!region_results_.empty()) RedirectToRegions();
    // Nodes that regions recompute, or whose input they read instead.
    removable_.insert(removable_.end(), recomputed().begin(), recomputed().end());
    if (!removable_.empty()) plan_.EraseUnused(std::move(removable_));
  }

 private:
  size_t NumMasked(const Part& part) const {
    return static_cast<size_t>(
        absl::c_count_if(part.nodes, [this](int id) { return FindMasked(id) != nullptr; }));
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

  void Fuse(const Region& region, const IndexList& broadcasts) {
    PlanNode& result = plan_.nodes[region.result];
    const DataType type = result.node->output_type(0);
    const bool reduces = region.reduction >= 0;
    std::vector<PlanValue> arguments = ArgumentsOf(region);
    const std::vector<PlanValue> epilogue_arguments = ArgumentsOf(epilogues()[region.epilogue]);
    Program program = ProgramOf(region, arguments);
    std::vector<int64_t> others_of;  // indices of ops
    std::vector<PlanValue> others;   // the nodes of these, in the same order
    for (size_t i = arguments.size(); i < program.values.size(); ++i) {
      const PlanValue& v = program.values[i];
      if (!absl::c_linear_search(region.others, v.node)) continue;
      others_of.push_back(static_cast<int64_t>(i - arguments.size()));
      others.push_back(v);
    }
    if (!AreWithinFusedLimits(arguments.size(), program.operands, others_of)) return;
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
      const size_t num_end_arguments = epilogue_values.size();
      const Program end = ProgramOf(epilogues()[region.epilogue], std::move(epilogue_values));
      if (!AreWithinFusedLimits(num_end_arguments, end.operands, {})) return;
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
    const IndexList& epilogue_nodes = epilogues()[region.epilogue].nodes;
    nodes.insert(nodes.end(), epilogue_nodes.begin(), epilogue_nodes.end());
    if (reduces) nodes.push_back(region.reduction);
    double cost_ns = 0;
    for (const int id : nodes) cost_ns += plan_.nodes[id].cost_ns;
    if (!Replace(region.result, *node, arguments)) return;
    for (const int id : nodes) {
      if (id != region.result && !IsInSeveral(id)) plan_.Fuse(id);
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
    plan_.ForEachUse([this](PlanValue& v) {
      const auto it = region_results_.find(v.node);
      if (it != region_results_.end()) v = it->second;
    });
    plan_.ForEachWait([this](int& node) {
      const auto it = region_results_.find(node);
      if (it != region_results_.end()) node = it->second.node;
    });
  }

  std::vector<int> removable_;  // candidates for PlanGraph::EraseUnused
  absl::flat_hash_map<int, PlanValue>
      region_results_;  // by node: the result of a region that replaces it
};

}  // namespace

void FuseElementwise(PlanGraph& plan, const PlanEnvironment& env) {
  ElementwiseFusion(plan, env).Run();
}

}  // namespace weir
