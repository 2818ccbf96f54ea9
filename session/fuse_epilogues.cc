#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "weir/session/fusion.h"

// Networks multiply, and then do something small to each element of the product: add a bias,
// normalize, add what a shortcut brings, clip. Node by node, each of these walks memory once more,
// and for a convolution of few channels they take as long as the product itself. Here the product
// takes them up: Conv2D, DepthwiseConv2dNative or MatMul becomes TensorFlow's _FusedConv2D,
// _FusedDepthwiseConv2dNative or _FusedMatMul, whose kernels finish each piece of the result while
// it is in the cache.
//
// From the product on, the pass follows values that one node alone takes, and takes up, in this
// order, if they are there:
//
//   FusedBatchNorm in inference  y = (x - mean) * scale / sqrt(variance + epsilon) + offset. With
//     constants all over, the factor goes into the filter and the rest is a bias
//     (Jacob et al. 2018, section 3.2), so that nothing is left to do for it
//   BiasAdd, or Add of a vector  the bias
//   Add, AddN of two             of a tensor of the same shape: the sum is made where that tensor
//     lies, if nobody needs it any more
//   Relu, Relu6, Elu, ...        an activation
//
// The fused node stands in the place of the last one it has taken up, under that one's name; the
// others are not run. Results differ by rounding alone: of a folded factor, and of sums, which
// begin with the bias, or with the tensor in whose place they are made. Nodes that wait for a
// control edge, or that are waited for, fetched or on an accelerator stay as they are. In a branch
// that may not be taken the fused node is dead when one of its inputs is, as the last node would
// have been.
namespace weir {

namespace {

struct Product {
  absl::string_view op, fused;
  bool is_conv;
};
constexpr Product kProducts[] = {{"Conv2D", "_FusedConv2D", true},
                                 {"DepthwiseConv2dNative", "_FusedDepthwiseConv2dNative", true},
                                 {"MatMul", "_FusedMatMul", false}};
constexpr absl::string_view kActivations[] = {"Relu",      "Relu6", "Elu",
                                              "LeakyRelu", "Tanh",  "Sigmoid"};

// An input of a fused node: a value of the plan, or a constant that the pass has computed.
struct Argument {
  PlanValue value;
  Tensor computed;
};

// What a product has taken up so far.
struct Chain {
  const Product* product = nullptr;
  int first = -1, last = -1;    // nodes: the product, and the one whose place the fused node takes
  std::vector<int> inner = {};  // the nodes before the last
  Argument filter = {};
  std::optional<Argument> bias = {}, addend = {};
  std::string activation = {};
  float alpha = 0;
};

class EpilogueFusion : public Fusion {
 public:
  using Fusion::Fusion;

  void Run() {
    std::vector<Chain> chains;
    for (size_t id = 0; id < plan_.nodes.size(); ++id) {
      const PlanNode& n = plan_.nodes[id];
      const auto* product =
          absl::c_find_if(kProducts, [&](const Product& p) { return p.op == n.node->op_name(); });
      if (product == std::end(kProducts) || !IsFusableFloat(n)) continue;
      const int node = static_cast<int>(id);
      chains.push_back({.product = product, .first = node, .last = node});
      chains.back().filter.value = n.inputs[1];
    }
    if (chains.empty()) return;
    FindUsers();
    for (Chain& chain : chains) {
      while (TakeUp(&chain)) {
      }
      if (chain.bias || chain.addend || IsMatMulInLoop(chain)) Replace(chain);
    }
  }

 private:
  bool IsFusableFloat(const PlanNode& n) const {
    return IsFusable(n) && n.node->output_type(0) == DT_FLOAT;
  }
  // Null if it is not known.
  const Tensor* ConstantOf(const Argument& a) const {
    return a.computed.initialized() ? &a.computed : Fusion::ConstantOf(a.value);
  }
  static std::string FormatOf(const PlanNode& n) {
    return n.node->attr_or<std::string>("data_format", "NHWC");
  }

  // The node after the last one joins the chain, if it can.
  bool TakeUp(Chain* chain) {
    if (users_[chain->last].size() != 1 || !chain->activation.empty()) return false;
    const int id = users_[chain->last][0];
    const PlanNode& n = plan_.nodes[id];
    const PlanNode& product = plan_.nodes[chain->first];
    if (!IsFusableFloat(n) || uses_others_[id] || !n.controls.empty() || !n.runs_with(product))
      return false;
    const std::string& op = n.node->op_name();
    const bool is_add = op == "Add" || op == "AddV2" || IsSumOfTwo(n);
    bool taken = false;
    if (op == "FusedBatchNorm" || op == "FusedBatchNormV2" || op == "FusedBatchNormV3") {
      taken = FoldBatchNorm(n, chain);
    } else if (op == "BiasAdd" || op == "BiasAddV1") {
      taken = FormatOf(n) == FormatOf(product) && n.inputs[0] == PlanValue{chain->last, 0} &&
              TakeBias(n.inputs[1], chain);
    } else if (is_add) {
      taken = TakeSummand(n, chain);
    } else if (absl::c_linear_search(kActivations, op) && (chain->bias || chain->addend)) {
      chain->activation = op;
      chain->alpha = n.node->attr_or<float>("alpha", 0);
      taken = true;
    }
    if (!taken) return false;
    chain->inner.push_back(chain->last);
    chain->last = id;
    return true;
  }

  // An AddN, which refuses other shapes than its result's.
  bool IsSumOfTwo(const PlanNode& n) const {
    return n.Is("AddN") && n.inputs.size() == 2 && ShapeOf(n.inputs[0]) == ShapeOf(n.inputs[1]);
  }

  // Its kernel may find that one of the matrices comes again in each iteration, and keep it packed.
  bool IsMatMulInLoop(const Chain& chain) const {
    return !chain.product->is_conv && plan_.nodes[chain.first].loop >= 0;
  }

  // A vector that is known to have an element a channel: of another one BiasAdd complains itself.
  bool TakeBias(const PlanValue& bias, Chain* chain) const {
    const Shape& shape = plan_.nodes[chain->last].shapes[0];
    if (chain->bias || chain->addend || !shape.has_rank() || shape.rank() < 2) return false;
    const bool first = FormatOf(plan_.nodes[chain->first]) == "NCHW";
    const int64_t channels = shape.dim(first ? 1 : -1);
    if (channels < 0 || ShapeOf(bias) != Shape({channels})) return false;
    chain->bias = Argument{bias, {}};
    return true;
  }

  bool TakeSummand(const PlanNode& n, Chain* chain) const {
    if (FormatOf(plan_.nodes[chain->first]) != "NHWC" || chain->addend) return false;
    const PlanValue& other = n.inputs[n.inputs[0].node == chain->last ? 1 : 0];
    const Shape &before = plan_.nodes[chain->last].shapes[0], &shape = ShapeOf(other);
    if (shape.has_rank() && shape.rank() == 1) return TakeBias(other, chain);
    if (!shape.IsFullyDefined() || shape != before) return false;
    chain->addend = Argument{other, {}};
    return true;
  }

  bool FoldBatchNorm(const PlanNode& n, Chain* chain) const {
    const PlanNode& product = plan_.nodes[chain->first];
    if (!chain->product->is_conv || chain->addend || n.node->attr<bool>("is_training") ||
        n.inputs[0] != PlanValue{chain->last, 0} || FormatOf(n) != FormatOf(product)) {
      return false;
    }
    const Tensor* const filter = ConstantOf(chain->filter);
    if (filter == nullptr || filter->rank() != 4) return false;
    const bool depthwise = chain->product->op != "Conv2D";
    const int64_t channels = depthwise ? filter->dim(2) * filter->dim(3) : filter->dim(3);
    const float* params[4];  // scale, offset, mean, variance
    for (int i = 0; i < 4; ++i) {
      const Tensor* const t = ConstantOf({n.inputs[1 + i], {}});
      if (t == nullptr || t->dtype() != DT_FLOAT || t->num_elements() != channels) return false;
      params[i] = t->data<float>();
    }
    const Tensor* const bias = chain->bias ? ConstantOf(*chain->bias) : nullptr;
    if (chain->bias && (bias == nullptr || bias->num_elements() != channels)) return false;

    const double epsilon = n.node->attr<float>("epsilon");
    std::vector<double> factor(static_cast<size_t>(channels));
    Tensor folded_bias(DT_FLOAT, Shape({channels})), folded(DT_FLOAT, filter->shape());
    for (int64_t c = 0; c < channels; ++c) {
      factor[c] = params[0][c] / std::sqrt(params[3][c] + epsilon);
      const double shift = bias != nullptr ? bias->data<float>()[c] : 0.0;
      folded_bias.data<float>()[c] =
          static_cast<float>(params[1][c] + (shift - params[2][c]) * factor[c]);
    }
    const float* const from = filter->data<float>();
    float* const to = folded.data<float>();
    const int64_t rows = channels == 0 ? 0 : filter->num_elements() / channels;
    env_.pool.ParallelFor(rows, static_cast<double>(channels), [&](int64_t begin, int64_t end) {
      for (int64_t at = begin * channels; at < end * channels; at += channels) {
        for (int64_t c = 0; c < channels; ++c)
          to[at + c] = static_cast<float>(from[at + c] * factor[static_cast<size_t>(c)]);
      }
    });
    chain->filter.computed = folded;
    chain->bias = Argument{{}, folded_bias};
    return true;
  }

  // ---- the fused node

  // What stands for an argument in the graph of made nodes, and in the plan's for one that has been
  // computed.
  Output MakePlaceholder(const Argument& a) {
    if (!a.computed.initialized()) return Fusion::MakePlaceholder(DT_FLOAT);
    return MakeConst("fused/argument", a.computed)->output(0);
  }

  Node* MakeNode(const Chain& chain) {
    const Node& product = *plan_.nodes[chain.first].node;
    Outputs args;
    std::vector<std::string> ops;
    if (chain.bias) {
      args.push_back(MakePlaceholder(*chain.bias));
      ops.push_back("BiasAdd");
    }
    if (chain.addend) {
      args.push_back(MakePlaceholder(*chain.addend));
      ops.push_back("Add");
    }
    if (!chain.activation.empty()) ops.push_back(chain.activation);
    NodeBuilder builder(made(), chain.product->fused);
    builder.Name(plan_.nodes[chain.last].node->name())
        .Input(MakePlaceholder({plan_.nodes[chain.first].inputs[0], {}}))
        .Input(MakePlaceholder(chain.filter))
        .InputList(args);
    if (chain.product->op == "Conv2D") builder.InputList({});  // host_args
    for (const auto& [name, value] : product.attrs()) {
      const bool kept = name[0] != '_' && name != "T" && name != "grad_a" && name != "grad_b";
      if (kept) builder.Attr(name, value);
    }
    builder.Attr("num_args", static_cast<int64_t>(args.size()))
        .Attr("fused_ops", ops)
        .Attr("leakyrelu_alpha", chain.alpha);
    if (IsMatMulInLoop(chain)) builder.Attr("_in_loop", true);
    Node* node = builder.Build();
    return made().TakeStatus().ok() ? node : nullptr;
  }

  void Replace(const Chain& chain) {
    const Node* const node = MakeNode(chain);
    const KernelDef* const def = node == nullptr ? nullptr : env_.kernels.Find(*node, kCpu);
    if (def == nullptr) return;
    Device* const device = plan_.nodes[chain.first].device;
    std::vector<const Argument*> arguments = {&chain.filter};
    if (chain.bias) arguments.push_back(&*chain.bias);
    if (chain.addend) arguments.push_back(&*chain.addend);
    std::vector<Shape> shapes = {ShapeOf(plan_.nodes[chain.first].inputs[0])};
    PlanGraph::Flags lasting = {plan_.IsStepInvariant(plan_.nodes[chain.first].inputs[0])};
    for (const Argument* a : arguments) {
      const bool computed = a->computed.initialized();
      shapes.push_back(computed ? a->computed.shape() : ShapeOf(a->value));
      lasting.push_back(computed || plan_.IsStepInvariant(a->value));
    }
    const KernelInit init = env_.InitFor(*node, *device, shapes, lasting);
    absl::StatusOr<Kernel> kernel = def->make(init);
    if (!kernel.ok()) return;
    absl::InlinedVector<PlanValue, 3> inputs = {plan_.nodes[chain.first].inputs[0]};
    for (size_t i = 0; i < arguments.size(); ++i) {
      const Argument& a = *arguments[i];
      inputs.push_back(a.computed.initialized()
                           ? AddConstant(*node->input(static_cast<int>(i) + 1).node, a.computed)
                           : a.value);
    }
    PlanNode& n = plan_.nodes[chain.last];
    n.node = node;
    n.def = def;
    n.inputs = std::move(inputs);
    n.controls = plan_.nodes[chain.first].controls;
    n.shapes.resize(1);
    n.kernel = device->Wrap(init, *std::move(kernel));
    n.cost_ns = def->cost(init);
    for (const int inner : chain.inner) plan_.nodes[inner].Remove();
  }
};

}  // namespace

void FuseEpilogues(PlanGraph& plan, const PlanEnvironment& env) { EpilogueFusion(plan, env).Run(); }

}  // namespace weir
