#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "weir/kernels/fused_elementwise.h"
#include "weir/session/fusion.h"

// Element-wise neighbours become one node, _FusedElementwise, whose kernel computes them tile by
// tile (kernels/tile_program.cc): memory is walked once, and a step has fewer nodes. A reduction
// that they go into, a mean of squares say, ends the node, which is a _FusedReduction then.
//
// The nodes are visited users first. A node joins the region of its users if all of them are in
// one: then its value is needed nowhere else, and the region can compute it. Otherwise it begins a
// region of its own, whose result it is. So no value is computed twice, and the region stands in
// the place of its last node, after everything that goes into it. A reduction always begins one.
// All element-wise nodes of a region have one shape; a value of another shape, such as a vector
// that is added to every row, is an argument. Nodes that wait for a control edge, or that are
// waited for or fetched, begin regions or stay as they are.
//
// The kernel calls the same functions for the same elements as the kernels of the single nodes
// would, so results are equal bit for bit, but for the rounding of sums in a reduction.
namespace weir {

namespace {

// On small tensors a region saves dispatches only, and two of them do not pay for it.
constexpr int64_t kLarge = 1024;
constexpr size_t kFewestOfSmall = 3;

struct Region {
  int result = -1;  // the node: the first of `nodes`, or a reduction that they go into
  bool reduces = false;
  Shape shape;                    // of all nodes
  Few nodes;                      // element-wise: users before what they use
  Few values;                     // nodes outside, output 0 of which is an argument so far
  std::vector<PlanValue> others;  // arguments that are other outputs
};

class ElementwiseFusion : public Fusion {
 public:
  using Fusion::Fusion;

  void Run() {
    FindUsers();
    region_of_.assign(plan_.nodes.size(), -1);
    for (int id = static_cast<int>(plan_.nodes.size()) - 1; id >= 0; --id) {
      if (IsReduction(id)) {
        Begin(id, true);
      } else if (IsElementwise(id)) {
        const int region = RegionOfUsers(id);
        if (region < 0 || !Join(id, region)) Begin(id, false);
      }
    }
    for (const Region& region : regions_) {
      const size_t nodes = region.nodes.size() + (region.reduces ? 1 : 0);
      if (nodes >= (region.shape.num_elements() >= kLarge ? 2 : kFewestOfSmall)) Fuse(region);
    }
  }

 private:
  // BiasAdd adds a vector to the last dimension, as AddV2 does.
  static absl::string_view StepOf(const PlanNode& n) {
    const std::string& op = n.node->op_name();
    const bool is_sum =
        op == "BiasAdd" && n.node->attr_or<std::string>("data_format", "NHWC") == "NHWC";
    return is_sum ? absl::string_view("AddV2") : absl::string_view(op);
  }

  bool IsReduction(int id) const {
    const PlanNode& n = plan_.nodes[id];
    if (n.inputs.size() != 2 || !IsFusable(n) || n.node->num_outputs() != 1 ||
        !n.controls.empty()) {
      return false;
    }
    const PlanValue& x = n.inputs[0];
    const Tensor* const axes = ConstantOf(n.inputs[1]);
    return axes != nullptr && !plan_.nodes[n.inputs[1].node].may_be_dead && x.output == 0 &&
           ShapeOf(x).IsFullyDefined() && plan_.nodes[x.node].type(0) == n.node->output_type(0) &&
           IsFusableReduction(n.node->op_name(), n.node->output_type(0), ShapeOf(x), *axes);
  }

  bool IsElementwise(int id) const {
    const PlanNode& n = plan_.nodes[id];
    if (!IsFusable(n) || n.node->num_outputs() != 1 || !n.controls.empty()) return false;
    const DataType type = n.node->output_type(0);
    const Shape& shape = n.shapes[0];
    if (!shape.IsFullyDefined() || shape.num_elements() == 0) return false;
    for (const PlanValue& v : n.inputs) {
      if (plan_.nodes[v.node].type(v.output) != type || !ShapeOf(v).IsFullyDefined()) return false;
    }
    // It refuses other vectors than AddV2 does.
    if (n.node->op_name() == "BiasAdd" &&
        (shape.rank() < 2 || ShapeOf(n.inputs[1]) != Shape({shape.dim(-1)}))) {
      return false;
    }
    const std::optional<FusableOp> op = FindFusableOp(StepOf(n), n.inputs.size(), type);
    if (!op || n.inputs.size() == 1) return op.has_value();
    const absl::StatusOr<Shape> both = BroadcastShapes(ShapeOf(n.inputs[0]), ShapeOf(n.inputs[1]));
    return both.ok() && *both == shape &&
           (op->broadcasts || ShapeOf(n.inputs[0]) == ShapeOf(n.inputs[1]));
  }

  // -1 unless all users are in one.
  int RegionOfUsers(int id) const {
    if (users_[id].empty() || uses_others_[id]) return -1;
    int region = -1;
    for (const int user : users_[id]) {
      if (user < 0 || region_of_[user] < 0) return -1;
      if (region >= 0 && region_of_[user] != region) return -1;
      region = region_of_[user];
    }
    return region;
  }

  void Begin(int id, bool reduces) {
    region_of_[id] = static_cast<int>(regions_.size());
    Region& region = regions_.emplace_back();
    region.result = id;
    region.reduces = reduces;
    if (reduces) {
      region.values = {plan_.nodes[id].inputs[0].node};
      region.shape = ShapeOf(plan_.nodes[id].inputs[0]);
    } else {
      region.shape = plan_.nodes[id].shapes[0];
      AddNode(id, &region);
    }
  }

  bool Join(int id, int number) {
    Region& region = regions_[number];
    const PlanNode &n = plan_.nodes[id], &result = plan_.nodes[region.result];
    if (n.shapes[0] != region.shape || !n.runs_with(result) ||
        n.node->output_type(0) != result.node->output_type(0) ||
        region.nodes.size() >= kMostFusedOps) {
      return false;
    }
    Region with = region;
    with.values.erase(std::remove(with.values.begin(), with.values.end(), id), with.values.end());
    AddNode(id, &with);
    if (with.values.size() + with.others.size() > kMostFusedArguments) return false;
    region = std::move(with);
    region_of_[id] = number;
    return true;
  }

  void AddNode(int id, Region* region) const {
    region->nodes.push_back(id);
    for (const PlanValue& v : plan_.nodes[id].inputs) {
      if (v.output != 0) {
        if (!absl::c_linear_search(region->others, v)) region->others.push_back(v);
      } else if (!absl::c_linear_search(region->values, v.node)) {
        region->values.push_back(v.node);
      }
    }
  }

  void Fuse(const Region& region) {
    PlanNode& result = plan_.nodes[region.result];
    const DataType type = result.node->output_type(0);
    std::vector<PlanValue> values;  // the arguments, then the nodes in the order of their steps
    for (const int node : region.values) values.push_back({node, 0});
    values.insert(values.end(), region.others.begin(), region.others.end());
    const size_t num_arguments = values.size();
    std::vector<std::string> ops;
    std::vector<int64_t> operands;
    std::vector<float> params;
    double cost_ns = 0;
    for (auto id = region.nodes.rbegin(); id != region.nodes.rend(); ++id) {
      const PlanNode& n = plan_.nodes[*id];
      const char* const param = FindFusableOp(StepOf(n), n.inputs.size(), type)->param;
      ops.emplace_back(StepOf(n));
      params.push_back(param == nullptr ? 0 : n.node->attr_or<float>(param, 0));
      for (size_t k = 0; k < 2; ++k) {
        operands.push_back(k < n.inputs.size() ? absl::c_find(values, n.inputs[k]) - values.begin()
                                               : -1);
      }
      values.push_back({*id, 0});
      cost_ns += n.cost_ns;
    }
    NodeBuilder builder(made(), region.reduces ? "_FusedReduction" : "_FusedElementwise");
    builder.Name(result.node->name())
        .InputList(Outputs(num_arguments, Stand(type)))
        .Attr("operands", operands)
        .Attr("params", params);
    if (region.reduces) {
      const Tensor& axes = *ConstantOf(result.inputs[1]);
      std::vector<int64_t> list;
      for (int64_t i = 0; i < axes.num_elements(); ++i) list.push_back(axes.IntAt(i));
      builder.Attr("axes", list).Attr("keep_dims", result.node->attr_or<bool>("keep_dims", false));
      ops.push_back(result.node->op_name());
      cost_ns += result.cost_ns;
    }
    builder.Attr("fused_ops", ops);
    Node* const node = builder.Build();
    if (!made().TakeStatus().ok() || node == nullptr) return;
    values.resize(num_arguments);
    const std::set<int> nodes(region.nodes.begin(), region.nodes.end());
    if (Replace(region.result, *node, values, nodes)) result.cost_ns = cost_ns;
  }

  std::vector<Region> regions_;
  std::vector<int> region_of_;  // by node; -1: in none
};

}  // namespace

void FuseElementwise(PlanGraph& plan, const PlanEnvironment& env) {
  ElementwiseFusion(plan, env).Run();
}

}  // namespace weir
