#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "weir/session/fusion.h"

// Networks for small machines are built of convolutions that do little for each element: 1x1
// filters to several times as many channels, a filter for each of these, and 1x1 filters back to
// few (MobileNet, EfficientNet, MnasNet). Their time goes into writing what stands between and
// reading it back, and with several threads into waiting for each other after each. This pass makes
// one node of the three, or of the last two, _FusedDepthwiseSeparableConv2D, whose kernel keeps
// what stands between in the cache.
//
// It comes after FuseEpilogues, which has taken up batch norms, biases, activations and shortcuts,
// and wants what that leaves of such networks: a bias in each, Relu, Relu6 or no activation,
// channels last, one filter a channel, and values between that nobody else needs. The filters must
// last from step to step, as those of inference do: they are kept packed. Sums are made in another
// order, so that results differ by rounding.
namespace weir {

namespace {

// What a fused convolution does after its product, where the new kernel can.
struct End {
  bool adds = false;
  std::string activation = {};
};

class SeparableFusion : public Fusion {
 public:
  using Fusion::Fusion;

  void Run() {
    std::vector<int> found;
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      const PlanNode& n = plan_.nodes[i];
      if (!n.removed && n.Is("_FusedDepthwiseConv2dNative")) found.push_back(static_cast<int>(i));
    }
    if (found.empty()) return;
    FindUsers();
    for (const int depthwise : found) TakeTogether(depthwise);
  }

 private:
  std::optional<End> EndOf(const PlanNode& n) const {
    const auto ops = n.node->attr<std::vector<std::string>>("fused_ops");
    End end;
    size_t next = 1;
    if (ops.empty() || ops[0] != "BiasAdd") return std::nullopt;
    if (next < ops.size() && ops[next] == "Add") {
      end.adds = true;
      ++next;
    }
    if (next < ops.size()) end.activation = ops[next++];
    const bool known =
        end.activation.empty() || end.activation == "Relu" || end.activation == "Relu6";
    return known && next == ops.size() ? std::optional(end) : std::nullopt;
  }

  // A convolution of images with their channels last, whose filters last.
  bool Fits(const PlanNode& n) const {
    return IsFusable(n) && n.node->output_type(0) == DT_FLOAT && n.controls.empty() &&
           n.node->attr_or<std::string>("data_format", "NHWC") == "NHWC" &&
           plan_.IsStepInvariant(n.inputs[1]) && ShapeOf(n.inputs[1]).IsFullyDefined() &&
           ShapeOf(n.inputs[1]).rank() == 4;
  }
  bool IsPointwise(const PlanNode& n) const {
    if (!n.Is("_FusedConv2D") || !Fits(n)) return false;
    const Shape &x = ShapeOf(n.inputs[0]), &filter = ShapeOf(n.inputs[1]);
    return x.has_rank() && x.rank() == 4 && filter.dim(0) == 1 && filter.dim(1) == 1 &&
           filter.dim(2) == x.dim(3) && n.node->attr<std::string>("padding") != "EXPLICIT" &&
           absl::c_all_of(n.node->attr<std::vector<int64_t>>("strides"),
                          [](int64_t stride) { return stride == 1; });
  }

  // Those that follow filters of a channel belong to these.
  bool Expands(const PlanNode& n) const {
    if (!IsPointwise(n) || plan_.nodes[n.inputs[0].node].Is("_FusedDepthwiseConv2dNative"))
      return false;
    const std::optional<End> end = EndOf(n);
    return end && !end->adds;
  }

  void TakeTogether(int depthwise) {
    const PlanNode& middle = plan_.nodes[depthwise];
    if (!Fits(middle) || ShapeOf(middle.inputs[1]).dim(3) != 1) return;
    if (users_[depthwise].size() != 1) return;
    const int last = users_[depthwise][0];
    const PlanNode& project = plan_.nodes[last];
    if (!IsPointwise(project) || project.inputs[0] != PlanValue{depthwise, 0} ||
        !CanDisappear(middle, project)) {
      return;
    }
    const std::optional<End> filtered = EndOf(middle), end = EndOf(project);
    if (!filtered || !end || filtered->adds) return;

    std::set<int> nodes = {depthwise, last};
    absl::InlinedVector<PlanValue, 3> inputs;
    std::optional<End> expanded;
    const int first = middle.inputs[0].node;
    const PlanNode& expand = plan_.nodes[first];
    // Nor may the shortcut begin there.
    if (Expands(expand) && CanDisappear(expand, project) && users_[first].size() == 1) {
      expanded = EndOf(expand);
      nodes.insert(first);
    }
    const auto take = [&](const PlanNode& n) {
      inputs.push_back(n.inputs[1]);
      inputs.push_back(n.inputs[2]);
    };
    inputs.push_back(expanded ? expand.inputs[0] : middle.inputs[0]);
    if (expanded) take(expand);
    take(middle);
    take(project);
    if (end->adds) inputs.push_back(project.inputs[3]);
    double cost_ns = 0;
    for (const int node : nodes) cost_ns += plan_.nodes[node].cost_ns;
    const Node* const node = MakeNode(middle, project, expanded, *filtered, *end);
    if (node != nullptr && Replace(last, *node, inputs, nodes)) plan_.nodes[last].cost_ns = cost_ns;
  }

  const Node* MakeNode(const PlanNode& middle, const PlanNode& project,
                       const std::optional<End>& expanded, const End& filtered, const End& end) {
    const auto stands = [&](bool any) { return any ? Outputs{MakePlaceholder(DT_FLOAT)} : Outputs{}; };
    NodeBuilder builder(made(), "_FusedDepthwiseSeparableConv2D");
    builder.Name(absl::StrCat(project.node->name(), "/separable")).Input(MakePlaceholder(DT_FLOAT));
    builder.InputList(stands(expanded.has_value())).InputList(stands(expanded.has_value()));
    for (int i = 0; i < 4; ++i) builder.Input(MakePlaceholder(DT_FLOAT));
    builder.InputList(stands(end.adds));
    for (const char* name : {"strides", "padding", "explicit_paddings", "dilations"}) {
      if (const AttrValue* value = middle.node->FindAttr(name)) builder.Attr(name, *value);
    }
    const Node* const node =
        builder.Attr("num_expand", int64_t{expanded.has_value()})
            .Attr("num_addends", int64_t{end.adds})
            .Attr("activations", std::vector<std::string>{expanded ? expanded->activation : "",
                                                          filtered.activation, end.activation})
            .Build();
    return made().TakeStatus().ok() ? node : nullptr;
  }
};

}  // namespace

void FuseSeparableConvs(PlanGraph& plan, const PlanEnvironment& env) {
  SeparableFusion(plan, env).Run();
}

}  // namespace weir
