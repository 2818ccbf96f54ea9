#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "weir/kernels/nn/separable_conv.h"
#include "weir/session/passes/passes.h"
#include "weir/session/plan/fusion.h"

// Fuses depthwise separable convolutions. Networks for small machines consist of convolutions that
// do little work per element: 1x1 filters to several times as many channels, one filter for each of
// these, and 1x1 filters back to few channels (MobileNet, EfficientNet, MnasNet). Most of their
// time goes into writing intermediate values and reading them back, and with several threads into
// synchronizing after each convolution. This pass fuses the three, or the last two, into one node,
// _FusedDepthwiseSeparableConv2D, whose kernel keeps the intermediate values in the cache.
//
// It runs after FuseEpilogues, which has fused batch norms, biases, activations and shortcuts, and
// it requires what that leaves of such networks: a bias in each convolution, Relu, Relu6 or no
// activation, channels last, one filter per channel, and intermediate values without other users.
// The filters must be step-invariant, as those of inference are: the kernel keeps them packed. Sums
// are accumulated in another order, so that results differ by rounding.
namespace weir {

namespace {

// The epilogue of a fused convolution, restricted to what the new kernel supports.
struct Epilogue {
  bool adds = false;
  std::string activation = {};
};

class SeparableFusion : public Fusion {
 public:
  using Fusion::Fusion;

  void Run() {
    std::vector<int> depthwise_nodes;
    for (size_t i = 0; i < plan_.nodes.size(); ++i) {
      const PlanNode& n = plan_.nodes[i];
      if (!n.removed && n.Is("_FusedDepthwiseConv2dNative"))
        depthwise_nodes.push_back(static_cast<int>(i));
    }
    if (depthwise_nodes.empty()) return;
    for (const int depthwise : depthwise_nodes) FuseAround(depthwise);
  }

 private:
  std::optional<Epilogue> EpilogueOf(const PlanNode& n) const {
    const auto ops = n.node->attr<std::vector<std::string>>("fused_ops");
    Epilogue epilogue;
    size_t next = 1;
    if (ops.empty() || ops[0] != "BiasAdd") return std::nullopt;
    if (next < ops.size() && ops[next] == "Add") {
      epilogue.adds = true;
      ++next;
    }
    if (next < ops.size()) epilogue.activation = ops[next++];
    const bool known = epilogue.activation.empty() || epilogue.activation == "Relu" ||
                       epilogue.activation == "Relu6";
    return known && next == ops.size() ? std::optional(epilogue) : std::nullopt;
  }

  // True for a convolution of images with their channels last and with step-invariant filters.
  bool IsFusableConv(const PlanNode& n) const {
    return IsFusable(n) && n.node->output_type(0) == DT_FLOAT && n.controls.empty() &&
           n.node->attr_or<std::string>("data_format", "NHWC") == "NHWC" &&
           plan_.IsStepInvariant(n.inputs[1]) && ShapeOf(n.inputs[1]).IsFullyDefined() &&
           ShapeOf(n.inputs[1]).rank() == 4;
  }
  bool IsPointwise(const PlanNode& n) const {
    if (!n.Is("_FusedConv2D") || !IsFusableConv(n)) return false;
    const Shape &x = ShapeOf(n.inputs[0]), &filter = ShapeOf(n.inputs[1]);
    return x.has_rank() && x.rank() == 4 && filter.dim(0) == 1 && filter.dim(1) == 1 &&
           filter.dim(2) == x.dim(3) && n.node->attr<std::string>("padding") != "EXPLICIT" &&
           absl::c_all_of(n.node->attr<std::vector<int64_t>>("strides"),
                          [](int64_t stride) { return stride == 1; });
  }

  // True for the expanding convolution. A pointwise convolution that follows a depthwise one
  // belongs to that one.
  bool IsExpansion(const PlanNode& n) const {
    if (!IsPointwise(n) || plan_.nodes[n.inputs[0].node].Is("_FusedDepthwiseConv2dNative"))
      return false;
    const std::optional<Epilogue> epilogue = EpilogueOf(n);
    return epilogue && !epilogue->adds;
  }

  void FuseAround(int depthwise) {
    const PlanNode& middle = plan_.nodes[depthwise];
    if (!IsFusableConv(middle) || ShapeOf(middle.inputs[1]).dim(3) != 1 ||
        ShapeOf(middle.inputs[1]).dim(2) < FewestSeparableChannels()) {
      return;
    }
    const int last = uses().OnlyUser(depthwise);
    if (last < 0) return;
    const PlanNode& project = plan_.nodes[last];
    if (!IsPointwise(project) || project.inputs[0] != PlanValue{depthwise, 0} ||
        !CanDisappear(middle, project)) {
      return;
    }
    const std::optional<Epilogue> depthwise_epilogue = EpilogueOf(middle),
                                  epilogue = EpilogueOf(project);
    if (!depthwise_epilogue || !epilogue || depthwise_epilogue->adds) return;

    std::set<int> nodes = {depthwise, last};
    absl::InlinedVector<PlanValue, 3> inputs;
    std::optional<Epilogue> expand_epilogue;
    const int first = middle.inputs[0].node;
    const PlanNode& expand = plan_.nodes[first];
    // The shortcut may not begin at the expanded value either.
    if (IsExpansion(expand) && CanDisappear(expand, project) && uses().OnlyUser(first) >= 0) {
      expand_epilogue = EpilogueOf(expand);
      nodes.insert(first);
    }
    const auto take = [&](const PlanNode& n) {
      inputs.push_back(n.inputs[1]);
      inputs.push_back(n.inputs[2]);
    };
    inputs.push_back(expand_epilogue ? expand.inputs[0] : middle.inputs[0]);
    if (expand_epilogue) take(expand);
    take(middle);
    take(project);
    if (epilogue->adds) inputs.push_back(project.inputs[3]);
    double cost_ns = 0;
    for (const int node : nodes) cost_ns += plan_.nodes[node].cost_ns;
    const Node* const node =
        MakeNode(middle, project, expand_epilogue, *depthwise_epilogue, *epilogue);
    if (node != nullptr && Replace(last, *node, inputs, nodes)) plan_.nodes[last].cost_ns = cost_ns;
  }

  const Node* MakeNode(const PlanNode& middle, const PlanNode& project,
                       const std::optional<Epilogue>& expand_epilogue,
                       const Epilogue& depthwise_epilogue, const Epilogue& epilogue) {
    const auto placeholders = [&](bool any) {
      return any ? Outputs{MakePlaceholder(DT_FLOAT)} : Outputs{};
    };
    NodeBuilder builder(internal_graph(), "_FusedDepthwiseSeparableConv2D");
    builder.Name(absl::StrCat(project.node->name(), "/separable")).Input(MakePlaceholder(DT_FLOAT));
    builder.InputList(placeholders(expand_epilogue.has_value()))
        .InputList(placeholders(expand_epilogue.has_value()));
    for (int i = 0; i < 4; ++i) builder.Input(MakePlaceholder(DT_FLOAT));
    builder.InputList(placeholders(epilogue.adds));
    for (const char* name : {"strides", "padding", "explicit_paddings", "dilations"}) {
      if (const AttrValue* value = middle.node->FindAttr(name)) builder.Attr(name, *value);
    }
    const Node* const node =
        builder.Attr("num_expand", int64_t{expand_epilogue.has_value()})
            .Attr("num_addends", int64_t{epilogue.adds})
            .Attr("activations",
                  std::vector<std::string>{expand_epilogue ? expand_epilogue->activation : "",
                                           depthwise_epilogue.activation, epilogue.activation})
            .Build();
    return internal_graph().TakeStatus().ok() ? node : nullptr;
  }
};

}  // namespace

void FuseSeparableConvs(PlanGraph& plan, const PlanEnvironment& env) {
  SeparableFusion(plan, env).Run();
}

}  // namespace weir
